"""Doing nothing: the other policy, besides random actions, that knows nothing. It is simulated where it is needed."""

from collections.abc import Sequence
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


def by_episode(task: str, seeds: Sequence[int], episodes: int, steps: int) -> np.ndarray:
    """Of the episodes that a planner with these seeds plays, had it done nothing in them: [B, episodes].

    Without noise alone: there only a reset draws from an environment's generator, whatever is played between two.
    """
    from psrl.tasks import TASKS

    envs = TASKS[task].make_vec(len(seeds), 0.0)
    still, columns = np.zeros((len(seeds), TASKS[task].action_dim)), []
    for episode in range(episodes):
        envs.reset(seed=None if episode else list(seeds))
        columns.append(sum(envs.step(still)[1] for _ in range(steps)))
    envs.close()
    return np.stack(columns, axis=1)


@cache
def mean_return(task: str, noise: float, steps: int) -> float:
    """Of episodes without any action."""
    return float(np.mean(returns(task, noise, steps)))
