"""What the normalised score is measured by: random actions and the planner that knows the truth.

The planner is 1. 0 is the better of random actions and no action at all (`psrl.convergence`).
"""

import time
from collections.abc import Callable

import numpy as np
from torch import Tensor

from psrl import cem
from psrl.config import Run
from psrl.learner import Episode
from psrl.mpc import ModelPredictiveControl
from psrl.tasks import TASKS, rollout


class RandomPolicy:
    """Uniformly random actions in B trials.

    A trial's one generator draws its actions and, at each reset, the seed of its environment: it is the whole state.
    """

    def __init__(self, run: Run, device: str):
        self.task, self.steps = TASKS[run.task], run.steps
        self.env = self.task.make_vec(len(run.seeds), run.noise)
        self.generators = [np.random.default_rng(seed) for seed in run.seeds]

    def episode(self, progress: Callable[[int], None]) -> Episode:
        began = time.perf_counter()
        returns = np.zeros(len(self.generators))
        self.env.reset(seed=[int(generator.integers(2**31)) for generator in self.generators])
        bound, size = self.task.action_bound, self.task.action_dim
        for step in range(self.steps):
            actions = np.stack([generator.uniform(-bound, bound, size) for generator in self.generators])
            returns += self.env.step(actions)[1]
            progress(step + 1)
        seconds = np.full(len(returns), time.perf_counter() - began)
        return Episode(returns, {"seconds_env": seconds})

    def state_dict(self) -> dict:
        return {"generators": [generator.bit_generator.state for generator in self.generators]}

    def load_state_dict(self, state: dict) -> None:
        for generator, saved in zip(self.generators, state["generators"], strict=True):
            generator.bit_generator.state = saved


class OraclePlanner(ModelPredictiveControl):
    """The task's planner on the true, noise-free dynamics and reward, from the first episode on; it learns nothing."""

    explores = False

    def learn(self) -> dict[str, np.ndarray]:
        return {}

    def model(self, at_step: int) -> tuple[cem.Step, cem.Reward]:
        if self.task.dynamics is None:
            return rollout.true_model(self.envs.envs)
        return self.task.dynamics, self.oracle

    def plan(self, state: Tensor, mean: Tensor, at_step: int) -> Tensor:
        """From the observation [B, S], except for the arms: what they show does not decide all of their future."""
        if self.task.dynamics is None:
            state = self._tensor(np.stack([rollout.physics_state(env) for env in self.envs.envs]))
        return super().plan(state, mean, at_step)
