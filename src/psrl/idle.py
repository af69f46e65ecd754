"""Doing nothing: the other policy, besides random actions, that knows nothing. It is simulated where it is needed."""

from functools import cache

import numpy as np

EPISODES = 50


@cache
def mean_return(task: str, noise: float, steps: int) -> float:
    """Of episodes without any action, from as many starts; the start of episode i is drawn with seed i."""
    from psrl.tasks import TASKS  # loads MuJoCo, which reading results does not need

    envs = TASKS[task].make_vec(EPISODES, noise)
    envs.reset(seed=list(range(EPISODES)))
    nothing = np.zeros((EPISODES, TASKS[task].action_dim))
    returns = sum(envs.step(nothing)[1] for _ in range(steps))
    envs.close()
    return float(np.mean(returns))
