"""`psrl bench sweep`: what the engine costs on a Cartpole run, and how eight equal runs spread over the cores."""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from psrl import config

RUNS, EPISODES = 8, 3
COMMAND = "import sys; from psrl.cli import main; sys.exit(main())"


def main(options: argparse.Namespace) -> int:
    """Time one run, then eight like it (Ray's start included), on the task's published settings with one trial each."""
    values = {"task": options.task or "cartpole", "method": "psrl", "episodes": EPISODES}
    names = {f"equal-{seed}": values | {"seeds": [seed]} for seed in range(RUNS)}
    params = config.read_params() | {"experiments": {"one": values | {"seeds": [RUNS]}} | names}
    config.experiments(params)  # refuses an unknown task
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
        one, eight = _seconds(folder, "one"), _seconds(folder, "equal-*")
        engine, wall = _engine_share(folder)
    cores = len(os.sched_getaffinity(0))
    found = {
        "cores": cores,
        "seconds_one": one,
        "seconds_eight": eight,
        "ratio": eight / one,
        "ratio_ideal": -(-RUNS // cores),
        "engine_share": engine / wall,
    }
    if options.json:
        print(json.dumps(found))
    else:
        print(f"one {values['task']} run of {EPISODES} episodes: {one:.1f} s, {engine / wall:.2%} of it engine")
        print(f"{RUNS} on {cores} cores: {eight:.1f} s, {eight / one:.2f} times one (ideal {found['ratio_ideal']})")
    return 0


def _seconds(folder: Path, pattern: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", COMMAND, "sweep", pattern], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _engine_share(folder: Path) -> tuple[float, float]:
    """Seconds of the engine and all seconds of the run `one`."""
    with open(folder / "results" / "metrics" / "one.csv", newline="") as file:
        engine = sum(float(row["value"]) for row in csv.DictReader(file) if row["metric"] == "seconds_engine")
    return engine, json.loads((folder / "results" / "provenance" / "one.json").read_text())["seconds"]["wall"]
