"""What the engine's tests share: a repository of toy size, and the command run in it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import yaml

from psrl.config import apply_profile, read_params

ROOT = Path(__file__).resolve().parent.parent


TASK = {
    "steps": 20,
    "planner": {"population": 20, "elites": 4, "iterations": 2, "horizon": 4},
    "network": {"width": 16},
    "member": {"width": 16},
    "epochs": {"dynamics": 2, "reward": 2},
}
SMALL = {"width": 16, "batch": 8, "random_steps": 10, "train_after": 10}
ROLLOUTS = {"rollouts": 20, "updates": 2, "retrain_every": 10, "model_updates": 4}
METHODS = {"sac": SMALL, "ddpg": SMALL, "mbpo": ROLLOUTS | {"policy_width": 16, "policy_batch": 8}}


def params(experiments: dict | None = None) -> dict:
    """params.yaml at toy sizes, with these experiments."""
    published = read_params(ROOT / "params.yaml")
    sizes = {"tasks": dict.fromkeys(published["tasks"], TASK), "methods": METHODS}
    return apply_profile(published, sizes) | {"experiments": experiments or {}}


def repository(folder: Path, experiments: dict | None = None) -> Path:
    (folder / "params.yaml").write_text(yaml.safe_dump(params(experiments), sort_keys=False))
    return folder


def environment(**extra: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PSRL_", "RAY_"))}
    return kept | {"OMP_NUM_THREADS": "1"} | extra


def start(folder: Path, *arguments: str, **extra: str) -> subprocess.Popen:
    """The command `psrl` in a process of its own."""
    code = "import sys; from psrl.cli import main; sys.exit(main())"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment(**extra), **pipes)


def psrl(folder: Path, *arguments: str, **extra: str) -> subprocess.CompletedProcess:
    with start(folder, *arguments, **extra) as process:
        try:
            out, err = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def global_state() -> tuple:
    """Of numpy's global generator, its place in the block of numbers included."""
    name, key, *rest = np.random.get_state()  # noqa: NPY002
    return name, key.tobytes(), *rest


def without_times(table: str) -> list[str]:
    """A table of runs without its last column, the seconds, which are a measurement."""
    return [line.rpartition(",")[0] for line in table.splitlines()]
