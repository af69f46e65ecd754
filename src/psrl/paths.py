"""Where things are. The repository is the nearest folder above the working directory that holds params.yaml."""

import os
from pathlib import Path


def find_root(start: Path | None = None) -> Path:
    """The nearest ancestor of ``start`` (default: the working directory) with a params.yaml, else ``start`` itself."""
    start = Path(start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / "params.yaml").is_file():
            return folder
    return start


ROOT = find_root()
PARAMS = ROOT / "params.yaml"
NOTEBOOKS = ROOT / "notebooks"
RESULTS = ROOT / "results"
RUNS = RESULTS / "runs"  # one tidy table of returns per experiment
METRICS = RESULTS / "metrics"  # losses, posterior spread, planner time of the same runs
PROVENANCE = RESULTS / "provenance"  # configuration, versions, machine of the same runs
TABLES = RESULTS / "tables"
FIGURES = Path(os.environ.get("PSRL_FIGURES", ROOT / "figures"))
CHECKPOINTS = Path(os.environ.get("PSRL_CHECKPOINTS", ROOT / "checkpoints"))


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader, or a crash, sees either the old content or the new one, never a part."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
