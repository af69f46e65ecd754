"""`python -m psrl.levels`: our SAC on Gymnasium's own Pendulum-v1, where it is known what a sound SAC reaches.

Writes results/levels/sac-pendulum-v1.csv: 100 episodes of 200 steps, 20,000 steps in all, for three seeds, with the
settings of the SAC baseline. Notebook 10 reads it. About two minutes per seed.
"""

import csv
import io

import gymnasium
import torch

from psrl import paths
from psrl.config import read_params, resolve
from psrl.modelfree import SAC

EPISODES, SEEDS = 100, (0, 1, 2)
PATH = paths.RESULTS / "levels" / "sac-pendulum-v1.csv"


class OnGymnasium(SAC):
    """The same learner in the library's environment: random starts instead of always hanging down."""

    def make_env(self) -> gymnasium.Env:
        return gymnasium.make("Pendulum-v1")


def trial(seed: int, episodes: int) -> list[dict]:
    run = resolve(read_params(), task="pendulum", method="sac", reward="learned", seeds=[seed], episodes=episodes)
    learner, rows = OnGymnasium(run), []
    for episode in range(1, episodes + 1):
        outcome = learner.episode()
        greedy = outcome.metrics["return_greedy"][0]
        rows.append({"seed": seed, "episode": episode, "steps": episode * run.steps})
        rows[-1] |= {"return": f"{outcome.returns[0]:.3f}", "return_greedy": f"{greedy:.3f}"}
    return rows


def main() -> None:
    torch.set_num_threads(1)
    rows = [row for seed in SEEDS for row in trial(seed, EPISODES)]
    table = io.StringIO()
    writer = csv.DictWriter(table, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    paths.write_atomic(PATH, table.getvalue())


if __name__ == "__main__":
    main()
