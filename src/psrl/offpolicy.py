"""The loop of the methods that learn a policy: stable-baselines3's networks and updates, our steps and seeds."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import ContinuousCritic
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, create_mlp
from stable_baselines3.sac.policies import SACPolicy
from torch import nn

from psrl.config import Run
from psrl.learner import Episode
from psrl.tasks import TASKS


class GlobalRandomness:
    """A state of torch's global generator, which stable-baselines3 draws from: lent to a block, then taken back.

    What runs outside the block sees nothing of it, and the block nothing of what runs outside.
    """

    def __init__(self, seed: int, device: torch.device):
        self.on_gpu = device.type == "cuda"
        devices = ["cpu", device] if self.on_gpu else ["cpu"]
        self.state = [torch.Generator(name).manual_seed(seed).get_state() for name in devices]

    @contextmanager
    def lent(self) -> Iterator[None]:
        outside = self._read()
        self._write(self.state)
        try:
            yield
        finally:
            self.state = self._read()
            self._write(outside)

    def _read(self) -> list[torch.Tensor]:
        return [torch.get_rng_state(), torch.cuda.get_rng_state()] if self.on_gpu else [torch.get_rng_state()]

    def _write(self, state: list[torch.Tensor]) -> None:
        torch.set_rng_state(state[0])
        if self.on_gpu:
            torch.cuda.set_rng_state(state[1])


class OffPolicy(ABC):
    """One trial of a policy that is improved after every environment step; a subclass says how.

    ``returns`` are those of the episodes in which the policy explores, as for every other method. After each of them
    it plays one more without exploring, in an environment of its own, and learns nothing from it: ``return_greedy``.
    """

    def __init__(self, run: Run, device: str = "cpu"):
        self.run, self.settings, self.device = run, run.settings, torch.device(device)
        self.task = TASKS[run.task]
        (self.seed,) = run.seeds
        self.env, self.greedy_env = self.make_env(), self.make_env()
        self.generator = torch.Generator(self.device).manual_seed(self.seed)
        self.steps = 0
        self.randomness = GlobalRandomness(self.seed, self.device)
        with self.randomness.lent():
            self.algorithm = self.build()
        self.algorithm.set_logger(Logger(None, []))

    def make_env(self) -> gymnasium.Env:
        return self.task.make(self.run.noise)

    @abstractmethod
    def build(self) -> OffPolicyAlgorithm:
        """The library's algorithm: networks, optimisers, ``train``."""

    @abstractmethod
    def explore(self, state: np.ndarray) -> torch.Tensor:
        """The action to try at state [S], in units of the action bound: [A]."""

    @abstractmethod
    def improve(self, at_step: int) -> None:
        """Called after every environment step, whose transition has been recorded."""

    @abstractmethod
    def record(self, *transition: torch.Tensor) -> None:
        """Keep state [1, S], action [1, A] in units of the bound, reward [1, 1] and next state [1, S]."""

    def episode(self, progress: Callable[[int], None] = lambda step: None) -> Episode:
        self.logged: dict[str, list[float]] = {}
        with self.randomness.lent():
            total, seconds = self._play(progress)
            began = time.perf_counter()
            greedy = self._play_greedily()
        seconds["evaluate"] = time.perf_counter() - began
        metrics = {"return_greedy": np.array([greedy])}
        metrics |= {name: np.array([np.mean(values)]) for name, values in self.logged.items()}
        metrics |= {f"seconds_{name}": np.array([value]) for name, value in seconds.items()}
        return Episode(np.array([total]), metrics)

    def _play(self, progress: Callable[[int], None]) -> tuple[float, dict[str, float]]:
        seconds, total = dict.fromkeys(("train", "plan", "env"), 0.0), 0.0
        state, _ = self.env.reset(seed=self.seed if self.steps == 0 else None)
        for t in range(self.run.steps):
            began = time.perf_counter()
            action = self.explore(state)
            acted = self._unscaled(action)  # waits for the device, so that the clock counts what it did
            planned = time.perf_counter()
            following, reward, terminated, *_ = self.env.step(acted)
            self.task.check_unended(terminated)
            stepped = time.perf_counter()
            self.record(*(self._row(item) for item in (state, action, [reward], following)))
            self.steps += 1
            self.improve(t)
            state, total = following, total + reward
            seconds["plan"] += planned - began
            seconds["env"] += stepped - planned
            seconds["train"] += time.perf_counter() - stepped
            progress(t + 1)
        return total, seconds

    def _play_greedily(self) -> float:
        total = 0.0
        # The seed's own first episode is the one the policy learned from: another stream.
        state, _ = self.greedy_env.reset(seed=self.seed + 2**31 if self.steps == self.run.steps else None)
        for _ in range(self.run.steps):
            state, reward, *_ = self.greedy_env.step(self._unscaled(self.act(state, deterministic=True)))
            total += reward
        return total

    def act(self, state: np.ndarray, deterministic: bool) -> torch.Tensor:
        """The policy's action at state [S], in units of the action bound: [A]."""
        with torch.no_grad():
            return self.algorithm.policy._predict(self._row(state), deterministic)[0]

    def random_action(self) -> torch.Tensor:
        return 2 * torch.rand(self.task.action_dim, generator=self.generator, device=self.device) - 1

    def train(self, updates: int, batch: int) -> None:
        """Update the policy on batches of ``algorithm.replay_buffer``."""
        self.algorithm.train(updates, batch)
        losses = self.algorithm.logger.name_to_value
        self.log(loss_actor=losses["train/actor_loss"], loss_critic=losses["train/critic_loss"])

    def log(self, **values: float) -> None:
        """Metrics of which the episode's mean is reported."""
        for name, value in values.items():
            self.logged.setdefault(name, []).append(float(value))

    def _row(self, values) -> torch.Tensor:
        return torch.as_tensor(values, dtype=torch.float32, device=self.device)[None]

    def _unscaled(self, action: torch.Tensor) -> np.ndarray:
        return action.cpu().numpy() * self.task.action_bound

    def state_dict(self) -> dict:
        environments = [env.unwrapped.np_random.bit_generator.state for env in (self.env, self.greedy_env)]
        entropy = getattr(self.algorithm, "log_ent_coef", None)
        return {
            "steps": self.steps,
            "algorithm": self.algorithm.get_parameters(),
            "updates": self.algorithm._n_updates,
            "log_entropy": None if entropy is None else entropy.detach(),
            "generator": self.generator.get_state(),
            "global_randomness": self.randomness.state,
            "environments": environments,
        }

    def load_state_dict(self, state: dict) -> None:
        self.steps = state["steps"]
        self.algorithm.set_parameters(state["algorithm"], device=self.device)
        self.algorithm._n_updates = state["updates"]
        if state["log_entropy"] is not None:
            self.algorithm.log_ent_coef.data.copy_(state["log_entropy"])
        self.generator.set_state(state["generator"])
        self.randomness.state = state["global_randomness"]
        for env, stored in zip((self.env, self.greedy_env), state["environments"], strict=True):
            env.reset(seed=self.seed)
            env.unwrapped.np_random.bit_generator.state = stored


class NormalisedCritics(SACPolicy):
    """SAC's networks, with layer normalisation (Ba et al., 2016) in the critics, between each product and its ReLU.

    However far out an input lies, what the last layer sees then has the same length.
    """

    def make_critic(self, features_extractor: BaseFeaturesExtractor | None = None) -> ContinuousCritic:
        critic = super().make_critic(features_extractor)
        for index, plain in enumerate(critic.q_networks):
            layers = create_mlp(plain[0].in_features, 1, self.net_arch, post_linear_modules=[nn.LayerNorm])
            critic.q_networks[index] = nn.Sequential(*layers).to(self.device)
            critic.add_module(f"qf{index}", critic.q_networks[index])
        return critic


def soft_actor_critic(
    learner: OffPolicy,
    width: int,
    learning_rate: float,
    discount: float,
    entropy: float,
    policy: type[SACPolicy] = SACPolicy,
) -> stable_baselines3.SAC:
    """Two hidden layers of ``width``, the entropy weight fixed, or tuned by the library when it is 0."""
    return stable_baselines3.SAC(
        policy,
        learner.env,
        learning_rate=learning_rate,
        buffer_size=1,  # our own replay takes its place
        gamma=discount,
        ent_coef=entropy or "auto",
        policy_kwargs={"net_arch": [width, width], "optimizer_kwargs": {"fused": True}},
        device=learner.device,
    )
