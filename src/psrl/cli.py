"""The command `psrl`: a subcommand per thing one does, each explained by --help. Heavy imports wait until needed."""

import argparse
import os
import shlex
import sys
from pathlib import Path

from psrl import config, paths
from psrl.config import ConfigError


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(arguments)
    try:
        code = options.call(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the flush at exit would fail once more
        print("psrl: whoever read the output left before its end", file=sys.stderr)
        return 1
    except ConfigError as error:
        print(f"psrl: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        again = shlex.join(["psrl", *arguments])
        saved = f"; finished episodes are saved. Go on with: {again}" if options.call in (_run, _sweep) else ""
        print(f"\npsrl: stopped{saved}", file=sys.stderr)
        return 130
    except RuntimeError as error:
        from psrl.checkpoint import Stop

        if not isinstance(error, Stop):
            raise
        print(f"psrl: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="psrl", description="MPC-PSRL and its baselines: run, look, measure, redraw.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, call, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(call=call)
        return sub

    run = command("run", _run, "run one experiment in this process; run again, it goes on where it stopped")
    run.add_argument("task", help=f"the environment: {', '.join(config.TASK_NAMES)}")
    run.add_argument("--method", default="psrl", help="the learner: a name under methods in params.yaml (psrl)")
    run.add_argument(
        "--reward",
        default="oracle",
        help="oracle: a method with a model is given the reward; learned: it is not (oracle)",
    )
    run.add_argument(
        "--noise", type=float, default=0.0, help="sd of the environment's noise, Cartpole and Pendulum (0)"
    )
    run.add_argument("--seeds", type=_numbers, default=[0], metavar="0,1,2", help="one trial each (0)")
    run.add_argument("--episodes", type=int, default=15, metavar="N", help="per trial, the random first included (15)")
    run.add_argument("--out", type=Path, metavar="FILE", help="the table to write; metrics and provenance go beside it")
    run.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the method: planner.horizon=20"
    )

    sweep = command("sweep", _sweep, "run the experiments of params.yaml that are missing or stale, in parallel")
    sweep.add_argument(
        "names", nargs="*", help="experiments, or patterns such as 'cartpole-*'; all where none is named"
    )
    sweep.add_argument(
        "--profile",
        help="a file of profiles/, without .yaml, laid over params.yaml to add experiments or episodes: paper",
    )
    sweep.add_argument("--dry", action="store_true", help="only say what would be run")
    sweep.add_argument("--storage", type=Path, help="a folder all machines see, for checkpoints; else they go by Ray")
    sweep.add_argument("--workers", type=_positive, metavar="N", help="units at once; one per core or GPU by default")

    for sub in (run, sweep):
        sub.add_argument("--device", default="cpu", help="cpu, cuda, or auto: cuda where there is one (cpu)")
        sub.add_argument("--wait", action="store_true", help="wait for a process that already runs the same, not stop")

    show = command("show", _show, "print a learning curve")
    show.add_argument("name", help="an experiment that has results, or a table that psrl run wrote")

    bench = command("bench", _bench, "measure, as psrl/bench.py explains, what things cost")
    bench.add_argument("what", choices=["plan", "train", "scaling", "posterior", "memory", "side", "sweep", "step"])
    bench.add_argument("--task", help="of plan, train, scaling, sweep and step: one task")
    bench.add_argument("--json", action="store_true", help="print the measurements as JSON")

    notebook = command("notebook", _notebook, "execute notebooks and write their paired .ipynb")
    notebook.add_argument("names", nargs="*", help="such as 01_noise; all where none is named")

    report = command("report", _report, "compare figures, tables and notebooks with the committed ones")
    report.add_argument("--since", type=Path, metavar="FILE", help="count files newer than FILE as regenerated")
    return parser


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers such as 0,1,2") from None


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _run(options: argparse.Namespace) -> int:
    run = config.resolve(
        config.read_params(),
        task=options.task,
        method=options.method,
        reward=options.reward,
        noise=options.noise,
        seeds=options.seeds,
        episodes=options.episodes,
        overrides=config.parse_overrides(options.set),
    )
    from psrl import engine, results

    device = engine.choose_device(options.device)
    name = f"{run.task}-{run.method}-{run.reward}-{run.hash[:8]}.csv"
    files = results.Files.at(options.out or paths.ROOT / "build" / "runs" / name)
    files.check()
    results.write(files, run, engine.run_here(run, device, options.wait))
    print(files.runs)
    return 0


def _sweep(options: argparse.Namespace) -> int:
    from psrl import sweep

    published = config.experiments()
    planned = config.experiments(config.read_profile(options.profile)) if options.profile else published
    runs = sweep.select(options.names, planned)
    sweep.refuse_to_replace(published, runs)
    code = sweep.main(runs, options.dry, options.storage, options.workers, options.device, options.wait)
    if any(run != published.get(name) for name, run in runs.items()):
        print(
            f"notebooks read what params.yaml lists: what is new or longer, copy from profiles/{options.profile}.yaml"
        )
    return code


def _show(options: argparse.Namespace) -> int:
    from psrl import progress, results

    path = Path(options.name)
    if path.suffix != ".csv" and not os.path.isfile(path):
        path = results.Files.named(options.name).runs
        if not path.exists():
            config.experiment(options.name)  # refuses an unknown name
    print(progress.curve(results.read(path)))
    return 0


def _bench(options: argparse.Namespace) -> int:
    from psrl.bench import main as bench

    return bench(options)


def _notebook(options: argparse.Namespace) -> int:
    from psrl.pipeline import execute_all

    return execute_all(options.names)


def _report(options: argparse.Namespace) -> int:
    from psrl.report import main as report

    return report(options.since)
