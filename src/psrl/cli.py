"""The command `psrl`: a subcommand per thing one does, each explained by --help. Heavy imports wait until needed."""

import argparse
import sys
from pathlib import Path

from psrl.config import ConfigError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="psrl", description=__doc__.split(":")[0])
    commands = parser.add_subparsers(dest="command", required=True)

    notebook = commands.add_parser("notebook", help="execute notebooks and write their paired .ipynb")
    notebook.add_argument("names", nargs="*", help="such as 01_noise; all where none is named")
    notebook.set_defaults(run=_notebook)

    report = commands.add_parser("report", help="compare figures, tables and notebooks with the committed ones")
    report.add_argument("--since", type=Path, metavar="FILE", help="count files newer than FILE as regenerated")
    report.set_defaults(run=_report)

    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except ConfigError as error:
        print(f"psrl: {error}", file=sys.stderr)
        return 2


def _notebook(options: argparse.Namespace) -> int:
    from psrl.pipeline import execute_all

    return execute_all(options.names)


def _report(options: argparse.Namespace) -> int:
    from psrl.report import main as report

    return report(options.since)
