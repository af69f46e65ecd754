"""A learner's first and last episode, recorded to be looked at.

`python -m psrl.film cartpole` trains what the section ``films`` of params.yaml lists under that name and writes both
episodes to results/films; from two minutes of computing (Cartpole) to a quarter of an hour (Pusher).
"""

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from psrl import config, paths
from psrl.config import ConfigError, Run
from psrl.learner import make_learner
from psrl.tasks.episodes import Episodes, drawn

FOLDER = paths.RESULTS / "films"
FIRST, LAST = "first", "last"
PLANNERS = ("psrl", "psrl-eb", "pets")  # they keep their environments and data where a film can see them


def record(run: Run) -> dict[str, Episodes]:
    """Train the run; its first and its last episode, states [B, T, ...] after each of the T steps."""
    if run.method not in PLANNERS or run.episodes < 2:
        raise ConfigError(
            f"a film is of method {run.method!r} and {run.episodes} episodes; valid: {', '.join(PLANNERS)}, at least 2"
        )
    learner, episodes, states = make_learner(run), {}, []
    for number in range(1, run.episodes + 1):
        states.clear()
        learner.episode(lambda step: states.append(drawn(learner.envs.envs)))
        rewards = learner.data["reward"][:, -run.steps :, 0].cpu().numpy()
        print(f"{run.task}: episode {number} of {run.episodes}, return {rewards[0].sum():.1f}", flush=True)
        episodes[FIRST if number == 1 else LAST] = Episodes(np.stack(states, axis=1), rewards)
    return episodes


def file(name: str) -> Path:
    """Where a film is."""
    return FOLDER / f"{name}.csv"


def save(episodes: dict[str, Episodes], path: Path) -> None:
    """Write the first trial as a tidy table: a row per episode and step, the state after the step and its reward."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    size = episodes[FIRST].states.shape[-1]
    writer.writerow(["episode", "step", "reward", *(f"state_{i}" for i in range(size))])
    for name, episode in episodes.items():
        for step, (reward, state) in enumerate(zip(episode.rewards[0], episode.states[0], strict=True), start=1):
            writer.writerow([name, step, f"{reward:.6f}", *(f"{value:.6f}" for value in state)])
    paths.write_atomic(path, table.getvalue())


def load(name: str) -> dict[str, Episodes]:
    """The film ``name``, as `record` gave it."""
    path = file(name)
    try:
        with open(path, newline="") as source:
            rows = list(csv.reader(source))[1:]
    except FileNotFoundError:
        raise ConfigError(f"{path} is not there; `python -m psrl.film {name}` makes it") from None
    values = {key: np.array([row[2:] for row in rows if row[0] == key], dtype=float) for key in (FIRST, LAST)}
    return {key: Episodes(table[None, :, 1:], table[None, :, 0]) for key, table in values.items()}


def main(names: Sequence[str]) -> int:
    import torch

    torch.set_num_threads(1)
    try:
        for name in names or config.read_params().get("films", {}):
            save(record(config.experiment(name, section="films")), file(name))
    except ConfigError as error:
        print(f"psrl.film: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
