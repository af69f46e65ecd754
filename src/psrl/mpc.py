"""The loop of Algorithm 1 that every planning method shares: act by model predictive control, keep what was seen."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from psrl import cem
from psrl.config import Run
from psrl.learner import Episode
from psrl.tasks import TASKS


class ModelPredictiveControl(ABC):
    """B trials of a planning method: environments, generators and data; a subclass brings the model."""

    explores = True  # whether the first episode's actions are random, for want of a model

    def __init__(self, run: Run, device: str = "cpu"):
        self.run, self.settings, self.device = run, run.settings, torch.device(device)
        self.task = TASKS[run.task]
        self.envs = self.task.make_vec(len(run.seeds), run.noise)
        self.generators = [torch.Generator(self.device).manual_seed(seed) for seed in run.seeds]
        sizes = {"x": self.task.state_dim + self.task.action_dim, "change": self.task.state_dim, "reward": 1}
        self.data = {key: torch.zeros(len(run.seeds), 0, size, device=self.device) for key, size in sizes.items()}
        self.context: Tensor | None = None

    @abstractmethod
    def learn(self) -> dict[str, np.ndarray]:
        """Refit the model to all data; metrics of the fit, each [B]. Called before every episode but the first."""

    @abstractmethod
    def model(self, at_step: int) -> tuple[cem.Step, cem.Reward]:
        """What to plan with at this step of the episode."""

    def episode(self, progress: Callable[[int], None] = lambda step: None) -> Episode:
        """One episode of every trial: learn from what is known, then plan, act and record, step by step."""
        first = self.data["x"].shape[1] == 0
        explore = self.explores and first
        seconds = dict.fromkeys(("train", "plan", "env"), 0.0)
        clock = time.perf_counter()
        metrics = {} if first else self.learn()
        seconds["train"] = time.perf_counter() - clock
        state = self._reset(first)
        mean = torch.zeros(len(state), self.settings.planner.horizon, self.task.action_dim, device=self.device)
        rows: list[tuple[Tensor, ...]] = []
        for t in range(self.run.steps):
            clock = time.perf_counter()
            if explore:
                action = self._random_action()
            else:
                mean = self.plan(state, mean, t)
                action, mean = mean[:, 0], cem.shift(mean)
            acted = action.cpu().numpy()  # waits for the device, so that the clock counts what it did
            planned = time.perf_counter()
            following, rewards, terminated, *_ = self.envs.step(acted)
            self.task.check_unended(terminated)
            seconds["plan"] += planned - clock
            following, rewards = self._tensor(following), self._tensor(rewards)
            rows.append((torch.cat([state, action], dim=-1), following - state, rewards[:, None]))
            state = following
            seconds["env"] += time.perf_counter() - planned
            progress(t + 1)
        fresh = [torch.stack(column, dim=1).float() for column in zip(*rows, strict=True)]
        for key, new in zip(self.data, fresh, strict=True):
            self.data[key] = torch.cat([self.data[key], new], dim=1)
        returns = torch.stack([reward for *_, reward in rows]).double().sum(dim=(0, 2))
        for key, value in seconds.items():
            metrics[f"seconds_{key}"] = np.full(len(returns), value)
        return Episode(returns.cpu().numpy(), metrics)

    def plan(self, state: Tensor, mean: Tensor, at_step: int) -> Tensor:
        """Improve the plan [B, H, A] from state [B, S]."""
        step, reward = self.model(at_step)
        particles = getattr(self.settings, "particles", 1)
        bound = self.task.action_bound
        with torch.inference_mode():
            return cem.plan(
                step, reward, state.float(), mean, self.settings.planner, bound, self.generators, particles=particles
            )

    def oracle(self, state: Tensor, action: Tensor, following: Tensor) -> Tensor:
        """The true reward function as the planner is given it, [B, M]."""
        honest = self.settings.planning_reward == "honest"
        function = self.task.reward if honest else self.task.planning_reward
        context = None if self.context is None else self.context[:, None]
        return function(state, action, following, context)

    def _reset(self, first: bool) -> Tensor:
        state, _ = self.envs.reset(seed=list(self.run.seeds) if first else None)
        if self.task.context_dim:
            goals = [self.task.context(env) for env in self.envs.envs]
            self.context = self._tensor(np.stack(goals)).float()
        return self._tensor(state)

    def _random_action(self) -> Tensor:
        shape, bound = (self.task.action_dim,), self.task.action_bound
        draws = [torch.rand(shape, generator=g, device=self.device) for g in self.generators]
        return (2 * torch.stack(draws) - 1) * bound

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.as_tensor(array, dtype=torch.float64, device=self.device)

    def state_dict(self) -> dict:
        return {
            "data": self.data,
            "generators": [generator.get_state() for generator in self.generators],
            "environments": [env.unwrapped.np_random.bit_generator.state for env in self.envs.envs],
        }

    def load_state_dict(self, state: dict) -> None:
        self.data = {key: value.to(self.device) for key, value in state["data"].items()}
        for generator, stored in zip(self.generators, state["generators"], strict=True):
            generator.set_state(stored)
        self.envs.reset(seed=list(self.run.seeds))
        for env, stored in zip(self.envs.envs, state["environments"], strict=True):
            env.unwrapped.np_random.bit_generator.state = stored
