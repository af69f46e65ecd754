"""`psrl bench sweep`: how eight equal runs spread over the cores."""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from psrl import config, pool

RUNS, EPISODES = 8, 3
COMMAND = "import sys; from psrl.cli import main; sys.exit(main())"


def sweep(tasks: list[str]) -> list[dict]:
    """Time one run, then eight like it (Ray's start included), on the task's published settings with one trial each."""
    (task,) = tasks
    values = {"task": task, "method": "psrl", "episodes": EPISODES}
    names = {f"equal-{seed}": values | {"seeds": [seed]} for seed in range(RUNS)}
    params = config.read_params() | {"experiments": {"one": values | {"seeds": [RUNS]}} | names}
    config.experiments(params)  # refuses an unknown task
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
        (one, _), (eight, said) = _run(folder, "one"), _run(folder, "equal-*")
    ray = re.search(r"Ray is ready after (\d+) s", said)
    return [
        {
            "task": task,
            "episodes": EPISODES,
            "cores": pool.cores(),
            "one_s": round(one, 1),
            "eight_s": round(eight, 1),
            "ray_start_s": int(ray[1]) if ray else 0,
            "ratio": round(eight / one, 2),
        }
    ]


def _run(folder: Path, pattern: str) -> tuple[float, str]:
    """Seconds of a sweep, and what it printed."""
    began = time.perf_counter()
    command = [sys.executable, "-c", COMMAND, "sweep", pattern]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"psrl sweep failed: {done.stdout}")
    return time.perf_counter() - began, done.stdout
