"""The tasks as planners and learners see them: sizes, bounds, oracle rewards and true dynamics."""

from collections.abc import Callable
from dataclasses import dataclass

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from torch import Tensor

from psrl.config import NOISY_TASKS, ConfigError
from psrl.tasks import STEPS, cartpole, pendulum, pusher, reacher

Reward = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


@dataclass(frozen=True)
class Task:
    """A control task.

    reward, planning_reward: (state [..., S], action [..., A], next_state [..., S], context [..., C] or None) -> [...],
        on any device. `reward` is the environment's own without noise; `planning_reward` is what the authors' code
        gives to the planner as the oracle, another function on Cartpole. (On the Reacher it gives the reward of the
        step before; here it is the reward.)
    dynamics: (state [..., S], action [..., A]) -> next_state [..., S], true and noise-free; None for the MuJoCo tasks
        (see `psrl.tasks.rollout`).

    >>> task = TASKS["pendulum"]
    >>> observation, _ = task.make(noise=0.01).reset(seed=0)
    >>> observation.shape, task.steps, task.action_bound
    ((3,), 200, 2.0)
    """

    name: str
    state_dim: int
    action_dim: int
    action_bound: float  # actions lie in [-action_bound, action_bound]
    context_dim: int  # C, the goal's coordinates; 0 where there is no goal
    noisy: bool  # whether the environment takes a noise level
    reward: Reward
    planning_reward: Reward
    dynamics: Callable[[Tensor, Tensor], Tensor] | None = None

    @property
    def env_id(self) -> str:
        return f"psrl/{self.name.capitalize()}-v0"

    @property
    def steps(self) -> int:
        """Steps per episode, T."""
        return STEPS[self.name.capitalize()]

    def make(self, noise: float = 0.0, render_mode: str | None = None) -> gymnasium.Env:
        """One environment."""
        return gymnasium.make(self.env_id, render_mode=render_mode, **self._noise(noise))

    def make_vec(self, num_envs: int, noise: float = 0.0) -> VectorEnv:
        """B copies that step together, without a time limit: the caller counts the steps and resets."""
        return gymnasium.make_vec(
            self.env_id,
            num_envs,
            vectorization_mode="sync",
            max_episode_steps=-1,
            vector_kwargs={"autoreset_mode": AutoresetMode.DISABLED},
            **self._noise(noise),
        )

    def check_unended(self, terminated: object) -> None:
        """Refuse an environment that ends an episode: learning bootstraps through the time limit, the only end here."""
        if np.any(terminated):
            raise ConfigError(
                f"the environment of {self.name} ended an episode by itself; valid: one that goes on until it is reset"
            )

    def context(self, env: gymnasium.Env) -> np.ndarray | None:
        """What the rewards need beside state and action: the goal [3] of an arm, nothing elsewhere."""
        return env.unwrapped.goal() if self.context_dim else None

    def _noise(self, noise: float) -> dict[str, float]:
        if self.noisy:
            return {"noise": noise}
        if noise != 0:
            noisy = " and ".join(NOISY_TASKS)
            raise ConfigError(f"noise is {noise!r} on {self.name}, but only {noisy} have a noise level")
        return {}


TASKS = {
    task.name: task
    for task in (
        Task("cartpole", 4, 1, 1.0, 0, True, cartpole.reward, cartpole.planning_reward, cartpole.dynamics),
        Task("pendulum", 3, 1, pendulum.TORQUE, 0, True, pendulum.reward, pendulum.reward, pendulum.dynamics),
        Task("reacher", 17, 7, reacher.TORQUE, 3, False, reacher.reward, reacher.reward),
        Task("pusher", 20, 7, pusher.TORQUE, 3, False, pusher.reward, pusher.reward),
    )
}
