"""Doing nothing: the other policy, besides random actions, that knows nothing. It is simulated where it is needed."""

from functools import cache

import numpy as np

EPISODES = 50


def returns(task: str, noise: float, steps: int, action: float = 0.0) -> np.ndarray:
    """Of episodes in which one action is held, [EPISODES]; the start of episode i is drawn with seed i."""
    from psrl.tasks import TASKS  # loads MuJoCo, which reading results does not need

    envs = TASKS[task].make_vec(EPISODES, noise)
    envs.reset(seed=list(range(EPISODES)))
    held = np.full((EPISODES, TASKS[task].action_dim), action)
    collected = sum(envs.step(held)[1] for _ in range(steps))
    envs.close()
    return collected


@cache
def mean_return(task: str, noise: float, steps: int) -> float:
    """Of episodes without any action."""
    return float(np.mean(returns(task, noise, steps)))
