"""SAC and DDPG with the hyperparameters of the public code the authors used, through stable-baselines3.

Their networks and updates are the library's. The loop is ours (:mod:`psrl.offpolicy`), because there the first 2,000
actions are random while training begins after 1,000 steps, and the library has one number for both.
"""

import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from psrl.config import Run
from psrl.offpolicy import OffPolicy, soft_actor_critic
from psrl.replay import Replay

# The norms to which DDPG's gradients are clipped in the public code.
ACTOR_CLIP, CRITIC_CLIP = 0.5, 1.0


class ModelFree(OffPolicy):
    """One update per environment step on a replay of real transitions."""

    def __init__(self, run: Run, device: str = "cpu"):
        super().__init__(run, device)
        self.replay = Replay(self.task.state_dim, self.task.action_dim, self.settings.replay, self.generator)
        self.algorithm.replay_buffer = self.replay

    def explore(self, state: np.ndarray) -> torch.Tensor:
        if self.steps < self.settings.random_steps:
            return self.random_action()
        return self.noisy_action(state)

    def noisy_action(self, state: np.ndarray) -> torch.Tensor:
        """A draw from the policy."""
        return self.act(state, deterministic=False)

    def record(self, *transition: torch.Tensor) -> None:
        self.replay.add(*transition)

    def improve(self, at_step: int) -> None:
        if self.steps > self.settings.train_after:
            self.train(1, self.settings.batch)

    def state_dict(self) -> dict:
        return super().state_dict() | {"replay": self.replay.state_dict()}

    def load_state_dict(self, state: dict) -> None:
        super().load_state_dict(state)
        self.replay.load_state_dict(state["replay"])


class SAC(ModelFree):
    """Soft actor-critic."""

    def build(self) -> OffPolicyAlgorithm:
        settings = self.settings
        return soft_actor_critic(self, settings.width, settings.learning_rate, settings.discount, settings.entropy)


class DDPG(ModelFree):
    """Deep deterministic policy gradient."""

    def build(self) -> OffPolicyAlgorithm:
        settings = self.settings
        algorithm = stable_baselines3.DDPG(
            "MlpPolicy",
            self.env,
            learning_rate=settings.learning_rate,
            buffer_size=1,
            gamma=settings.discount,
            policy_kwargs={"net_arch": [settings.width] * 2, "optimizer_kwargs": {"fused": True}},
            device=self.device,
        )
        # The library has no switch for clipping gradients; its optimisers are torch's, and call us before each step.
        for network, limit in ((algorithm.actor, ACTOR_CLIP), (algorithm.critic, CRITIC_CLIP)):
            clip_before_step(network, limit)
        return algorithm

    def noisy_action(self, state: np.ndarray) -> torch.Tensor:
        """The policy's action with Gaussian noise, clipped to the bound; here all three are in units of the bound."""
        action = self.act(state, deterministic=True)
        noise = torch.randn(action.shape, generator=self.generator, device=self.device)
        return (action + self.settings.action_noise / self.task.action_bound * noise).clamp(-1, 1)


def clip_before_step(network: torch.nn.Module, limit: float) -> None:
    """Clip the norm of the network's gradient to ``limit`` whenever its optimiser is about to step."""
    parameters = list(network.parameters())

    def clip(*_: object) -> None:  # torch takes what a hook returns for new arguments of the step
        torch.nn.utils.clip_grad_norm_(parameters, limit)

    network.optimizer.register_step_pre_hook(clip)
