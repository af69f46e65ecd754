"""A repository whose results are invented: learning curves of known shape, for tests of the analysis only."""

import csv
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import yaml
from conftest import ROOT

from psrl.config import Run, experiments, read_params, read_profile
from psrl.learner import units

LEVELS = {"cartpole": (22, 200), "pendulum": (-1740, -350), "reacher": (-1500, -20), "pusher": (-304, -60)}
# episodes until a method has closed 63 % of its gap, in units of the planned episodes of MPC-PSRL, and its final level
PACE = {"psrl": (0.1, 1.0), "psrl-eb": (0.07, 1.02), "pets": (0.15, 0.97), "mbpo": (0.25, 0.93)}
PACE |= {"sac": (1.2, 1.0), "ddpg": (1.5, 0.9)}
LENGTH = {"cartpole": 15, "pendulum": 15, "reacher": 40, "pusher": 200}


def complete() -> dict:
    """params.yaml with everything that profiles/paper.yaml lists."""
    return read_profile("paper")


def returns(run: Run, rng: np.random.Generator) -> np.ndarray:
    """[B, episodes]: an exponential approach with noise; the two references are flat."""
    low, high = LEVELS[run.task]
    if run.method in ("random", "oracle"):
        level = {"random": low, "oracle": high}[run.method]
        return level + 0.03 * abs(high - low) * rng.standard_normal((len(run.seeds), run.episodes)) * 0.2
    pace, level = PACE[run.method]
    if run.task == "reacher":  # costs fall by orders of magnitude
        low, high = -np.log(-low), -np.log(-high)
    time = pace * LENGTH[run.task] * rng.uniform(0.7, 1.4, (len(run.seeds), 1))
    share = level * (1 - np.exp(-np.arange(run.episodes) / time))
    share += 0.02 * rng.standard_normal(share.shape)
    found = low + (high - low) * share
    return -np.exp(-found) if run.task == "reacher" else found


def write(folder: Path, name: str, run: Run, seed: int = 0) -> None:
    """The three files of an experiment, in the engine's format."""
    rng = np.random.default_rng([seed, *name.encode()])
    table, batch = returns(run, rng), len(units(run)[0].seeds)
    seconds = {"psrl": 20, "psrl-eb": 21, "pets": 60, "mbpo": 90}.get(run.method, 3) * batch
    key = [run.task, run.method, run.reward, run.noise]
    rows = [
        [*key, trial, episode + 1, (episode + 1) * run.steps, float(table[i, episode]), seconds * (1 + episode / 30)]
        for i, trial in enumerate(run.seeds)
        for episode in range(run.episodes)
    ]
    for kind in ("runs", "metrics", "provenance"):
        (folder / "results" / kind).mkdir(parents=True, exist_ok=True)
    with open(folder / "results" / "runs" / f"{name}.csv", "w", newline="") as file:
        header = ["task", "method", "reward", "noise", "seed", "episode", "steps", "return", "seconds"]
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    greedy = [[*row[:6], "return_greedy", row[7] + 0.05 * abs(row[7])] for row in rows]
    with open(folder / "results" / "metrics" / f"{name}.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([[*header[:6], "metric", "value"], *greedy])
    spent = {"wall": 100.0, "cpu": 95.0}
    machine = {"device": "cpu", "cpu": "an invented processor", "gpu": None, "threads": 1}
    made = {kind: (folder / "results" / kind / f"{name}.csv").read_bytes() for kind in ("runs", "metrics")}
    sums = {kind: hashlib.sha256(content).hexdigest() for kind, content in made.items()}
    content = {"hash": run.hash, "sha256": sums, "configuration": run.as_dict()}
    content |= {"seconds": spent, "machines": [machine]}
    (folder / "results" / "provenance" / f"{name}.json").write_text(json.dumps(content))


def repository(folder: Path, names: list[str]) -> Path:
    """params.yaml that publishes these experiments of the complete list, their invented results, and the profile."""
    params, everything = read_params(ROOT / "params.yaml"), complete()
    params["experiments"] = {name: everything["experiments"][name] for name in names}
    (folder / "profiles").mkdir(exist_ok=True)
    shutil.copy(ROOT / "profiles" / "paper.yaml", folder / "profiles")
    (folder / "notebooks").mkdir(exist_ok=True)
    publish(folder, params)
    return folder


def publish(folder: Path, params: dict) -> None:
    """params.yaml and the invented results of all it lists."""
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    for name, run in experiments(params).items():
        write(folder, name, run)
