"""Results of an experiment: two tidy tables and a provenance file that says exactly what made them."""

import csv
import hashlib
import io
import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from psrl import checkpoint, paths
from psrl.checkpoint import Snapshot
from psrl.config import ConfigError, Run

KEYS = ["task", "method", "reward", "noise", "seed", "episode"]


@dataclass(frozen=True)
class Files:
    """The three files of an experiment's results."""

    runs: Path
    metrics: Path
    provenance: Path

    @classmethod
    def named(cls, name: str) -> "Files":
        return cls(paths.RUNS / f"{name}.csv", paths.METRICS / f"{name}.csv", paths.PROVENANCE / f"{name}.json")

    @classmethod
    def at(cls, path: Path) -> "Files":
        """The table at ``path``, the other two beside it."""
        if not path.name:
            raise ConfigError(f"the table {str(path)!r} has no name; valid: a file such as table.csv")
        name = path.name.removesuffix(".csv")
        return cls(path, path.with_name(f"{name}.metrics.csv"), path.with_name(f"{name}.provenance.json"))

    def check(self) -> None:
        """Refuse a place that cannot be written to before anything is computed for it."""
        for path in (self.runs, self.metrics, self.provenance):
            try:
                if path.exists() and not path.is_file():
                    raise ConfigError(f"{path} is there and not a file; valid: a file to write")
                path.parent.mkdir(parents=True, exist_ok=True)
                tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=".part").close()
            except OSError as error:
                raise ConfigError(
                    f"{path} cannot be written: {error.strerror}; valid: a file in a folder one may write to"
                ) from None


def write(files: Files, run: Run, parts: list[tuple[Run, Snapshot]]) -> None:
    """Write what the units of a run gave; provenance last, as it vouches for the other two."""
    tables = _tables(run, parts)
    for path, table in zip((files.runs, files.metrics), tables, strict=True):
        checkpoint.write(path, table)
    checkpoint.write(files.provenance, _provenance(run, parts, tables))


def is_current(files: Files, run: Run) -> bool:
    """Whether the files are there, unchanged since they were written, and made by this very configuration."""
    try:
        provenance = json.loads(files.provenance.read_text())
        content = {"runs": files.runs.read_bytes(), "metrics": files.metrics.read_bytes()}
    except (OSError, ValueError):
        return False
    if not isinstance(provenance, dict):
        return False
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
    rows = len(content["runs"].splitlines()) - 1
    expected = len(run.seeds) * run.episodes
    return provenance.get("hash") == run.hash and provenance.get("sha256") == sums and rows == expected


def longer(files: Files, run: Run) -> int:
    """Episodes of results that are those of this very configuration with more episodes; 0 where they are not."""
    try:
        episodes = int(json.loads(files.provenance.read_text())["configuration"]["episodes"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return episodes if episodes > run.episodes and is_current(files, replace(run, episodes=episodes)) else 0


def read(path: Path) -> dict[int, list[float]]:
    """Episode -> returns of all trials, from a table of runs."""
    try:
        with open(path, newline="") as file:
            rows = [(int(row["episode"]), float(row["return"])) for row in csv.DictReader(file)]
    except FileNotFoundError:
        raise ConfigError(f"{path} is not there; psrl sweep runs the experiments of params.yaml") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}; valid: a table that psrl wrote") from None
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise ConfigError(
            f"{path} is not a table of runs ({type(error).__name__}: {error}); valid: columns episode and return"
        ) from None
    if not rows:
        raise ConfigError(f"{path} has no rows; valid: a table with at least one episode")
    curve: dict[int, list[float]] = {}
    for episode, value in sorted(rows):
        curve.setdefault(episode, []).append(value)
    return curve


def _tables(run: Run, parts: list[tuple[Run, Snapshot]]) -> tuple[str, str]:
    returns, metrics = [], []
    for unit, snapshot in parts:
        for trial, seed in enumerate(unit.seeds):
            for number, entry in enumerate(snapshot.episodes[: run.episodes], start=1):
                key = [run.task, run.method, run.reward, run.noise, seed, number]
                returns.append([*key, number * run.steps, entry["returns"][trial], entry["seconds"]])
                metrics += [[*key, name, entry["metrics"][name][trial]] for name in sorted(entry["metrics"])]
    order = slice(KEYS.index("seed"), KEYS.index("episode") + 1)
    returns.sort(key=lambda row: row[order])
    metrics.sort(key=lambda row: row[order])  # stable: within an episode by name
    return (
        _csv([*KEYS, "steps", "return", "seconds"], returns),
        _csv([*KEYS, "metric", "value"], metrics),
    )


def _csv(header: list[str], rows: list[list]) -> str:
    """Floats as repr writes them: reading gives back the very number."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([header, *rows])
    return buffer.getvalue()


def _provenance(run: Run, parts: list[tuple[Run, Snapshot]], tables: tuple[str, str]) -> str:
    machines = []
    for _, snapshot in parts:
        machines += [machine for machine in snapshot.machines if machine not in machines]
    content = {
        "hash": run.hash,
        "method_version": run.settings.version,
        "configuration": run.as_dict(),
        "machines": machines,
        "seconds": {
            clock: sum(entry[clock] for _, snapshot in parts for entry in snapshot.episodes[: run.episodes])
            for clock in ("wall", "cpu")
        },
        "sha256": {
            name: hashlib.sha256(table.encode()).hexdigest()
            for name, table in zip(("runs", "metrics"), tables, strict=True)
        },
    }
    return json.dumps(content, indent=2) + "\n"
