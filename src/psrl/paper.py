"""What the paper's experiments report, as data: panels of its figures, its table of convergence, its computing time.

Section 5.2 and the captions tell the panels; the convergence table and the computing times are in the appendix
"Experimental details". The figures themselves give no numbers that could be read off here; the authors' repository
holds logs of single runs.
"""

import csv
from dataclasses import dataclass

import numpy as np

from psrl import paths

MODEL_BASED = ("psrl", "psrl-eb", "pets", "mbpo")
MODEL_FREE = ("sac", "ddpg")
REFERENCES = ("random", "oracle")
METHODS = (*MODEL_BASED, *MODEL_FREE)


@dataclass(frozen=True)
class Setting:
    """A panel of a figure: a task, its noise, and whether the reward function is given."""

    task: str
    noise: float
    reward: str

    def __str__(self) -> str:
        """As the paper writes it: (r) where the reward function is given."""
        return f"{self.task.capitalize()}{' (r)' if self.reward == 'oracle' else ''}{', noisy' if self.noise else ''}"

    @property
    def given(self) -> bool:
        return self.reward == "oracle"


NOISE = 0.01
FIGURE_1 = tuple(Setting(task, NOISE, reward) for reward in ("oracle", "learned") for task in ("cartpole", "pendulum"))
FIGURE_2 = (
    Setting("cartpole", 0.0, "learned"),
    Setting("reacher", 0.0, "oracle"),
    Setting("pusher", 0.0, "oracle"),
    Setting("pendulum", 0.0, "learned"),
    Setting("reacher", 0.0, "learned"),
    Setting("pusher", 0.0, "learned"),
)
SETTINGS = FIGURE_1 + FIGURE_2
# Section 5.2 speaks of these and shows no curves.
NOT_SHOWN = tuple(Setting(task, 0.0, "oracle") for task in ("cartpole", "pendulum"))

# Average number of episodes to convergence over five trials (appendix, first table).
CONVERGENCE = {
    (FIGURE_2[1], "psrl"): 20.2,
    (FIGURE_2[2], "psrl"): 146.6,
    (FIGURE_2[4], "psrl"): 29.8,
    (FIGURE_2[5], "psrl"): 151.6,
    (FIGURE_2[1], "mbpo"): 34.6,
    (FIGURE_2[2], "mbpo"): 209.4,
    (FIGURE_2[4], "mbpo"): 54.2,
    (FIGURE_2[5], "mbpo"): 225.0,
    (FIGURE_2[1], "pets"): 26.2,
    (FIGURE_2[2], "pets"): 193.4,
}
# Of the model-free methods, together (appendix, below the table).
MODEL_FREE_CONVERGENCE = {
    **dict.fromkeys(("cartpole", "pendulum"), "after 100"),
    **dict.fromkeys(("reacher", "pusher"), "around 1000"),
}

# Hours for 150,000 environment steps on one RTX 2080 Ti (appendix, last paragraph); for the small tasks an upper limit.
STEPS_TIMED = 150_000
GPU_HOURS = {
    **{(task, method): 1.0 for task in ("cartpole", "pendulum") for method in METHODS if method != "psrl-eb"},
    **{(task, method): 3.0 for task in ("reacher", "pusher") for method in ("pets", "mbpo")},
    **{(task, method): 1.0 for task in ("reacher", "pusher") for method in MODEL_FREE},
    **{(task, "psrl"): 4.0 for task in ("reacher", "pusher")},
}

LOGS = paths.RESULTS / "authors.csv"


def logs() -> dict[Setting, np.ndarray]:
    """Returns [episodes] of single runs of MPC-PSRL by the authors, where we have the log of one."""
    found: dict[Setting, list[float]] = {}
    with LOGS.open() as file:
        for row in csv.DictReader(file):
            found.setdefault(Setting(row["task"], float(row["noise"]), row["reward"]), []).append(float(row["return"]))
    return {setting: np.array(returns) for setting, returns in found.items()}


def convergence(setting: Setting, method: str) -> str:
    """The paper's number of episodes as it gives it, or a dash."""
    if method in MODEL_FREE:
        return MODEL_FREE_CONVERGENCE[setting.task]
    number = CONVERGENCE.get((setting, method))
    return "-" if number is None else f"{number:.1f}"


def milliseconds_per_step(task: str, method: str) -> float | None:
    """Of the paper's GPU, per environment step."""
    hours = GPU_HOURS.get((task, method))
    return None if hours is None else 3.6e6 * hours / STEPS_TIMED
