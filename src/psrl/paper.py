"""What the paper's experiments report, as data: panels of its figures, its table of convergence, its computing time.

Section 5.2 names the panels; the convergence table and the computing times are in the appendix "Experimental details".
The figures themselves give no numbers that could be read off here.
"""

from dataclasses import dataclass

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
# "Generally after" so many episodes (appendix, below the table): a round number for all model-free methods.
MODEL_FREE_CONVERGENCE = {"cartpole": 100, "pendulum": 100, "reacher": 1000, "pusher": 1000}

# Hours for 150,000 environment steps on one RTX 2080 Ti (appendix, last paragraph); for the small tasks an upper limit.
STEPS_TIMED = 150_000
GPU_HOURS = {
    **{(task, method): 1.0 for task in ("cartpole", "pendulum") for method in METHODS if method != "psrl-eb"},
    **{(task, method): 3.0 for task in ("reacher", "pusher") for method in ("pets", "mbpo")},
    **{(task, method): 1.0 for task in ("reacher", "pusher") for method in MODEL_FREE},
    **{(task, "psrl"): 4.0 for task in ("reacher", "pusher")},
}


def convergence(setting: Setting, method: str) -> str:
    """The paper's number of episodes as it gives it, or a dash."""
    if method in MODEL_FREE:
        return f"about {MODEL_FREE_CONVERGENCE[setting.task]}"
    number = CONVERGENCE.get((setting, method))
    return "-" if number is None else f"{number:.1f}"


def milliseconds_per_step(task: str, method: str) -> float | None:
    """Of the paper's GPU, per environment step."""
    hours = GPU_HOURS.get((task, method))
    return None if hours is None else 3.6e6 * hours / STEPS_TIMED
