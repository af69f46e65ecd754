"""MBPO (Janner et al., 2019): SAC trained mostly on short rollouts of an ensemble, begun at states really visited."""

import math

import numpy as np
import torch
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from psrl.config import Run
from psrl.ensemble import Ensemble, Sampler
from psrl.offpolicy import NormalisedCritics, OffPolicy, soft_actor_critic
from psrl.replay import Mixture, Replay


class MBPO(OffPolicy):
    """One trial of MBPO; its first episode is random, like that of the planning methods.

    With a learned reward the ensemble has one more output. The oracle is always the environment's own reward: a policy
    becomes good at what it is paid for, and the smoother function the authors plan with on Cartpole is another task.

    The critics normalise their hidden layers. At 40 updates per step plain ones diverge on Cartpole, where most states
    are carts that have run away: what such a state is worth hangs on one further out, and so on to where there are no
    data and an estimate can feed on itself (notebook 10, Section 5).

    Rollouts are begun when the model is fitted, all that are due until the next fit, and are kept until then: from one
    episode to the next nothing of them is left, and a checkpoint needs only what is real.
    """

    def __init__(self, run: Run, device: str = "cpu"):
        super().__init__(run, device)
        settings, state_dim, action_dim = self.settings, self.task.state_dim, self.task.action_dim
        self.real = Replay(state_dim, action_dim, run.episodes * run.steps, self.generator)
        self.contexts = torch.zeros(0, self.task.context_dim, device=self.device)  # of each episode, in their order
        self.ensemble = Ensemble(
            state_dim + action_dim,
            state_dim + (run.reward == "learned"),
            settings.ensemble,
            settings.member,
            settings.learning_rate,
            run.seeds,
            self.device,
        )

    def build(self) -> OffPolicyAlgorithm:
        settings = self.settings
        return soft_actor_critic(
            self,
            settings.policy_width,
            settings.policy_learning_rate,
            settings.discount,
            settings.entropy,
            policy=NormalisedCritics,
        )

    def explore(self, state: np.ndarray) -> torch.Tensor:
        if self.steps % self.run.steps == 0:
            goal = self.task.context(self.env)
            context = torch.zeros(1, 0) if goal is None else self._row(goal)
            self.contexts = torch.cat([self.contexts, context.to(self.device)])
        return self.random_action() if len(self.contexts) == 1 else self.act(state, deterministic=False)

    def record(self, *transition: torch.Tensor) -> None:
        self.real.add(*transition)

    def improve(self, at_step: int) -> None:
        if len(self.contexts) == 1:
            return
        settings = self.settings
        if at_step % settings.retrain_every == 0:
            self.fit()
            self.algorithm.replay_buffer = Mixture(self.real, self.imagine(), settings.real_share)
            self.log(value_highest=self.highest_value())
        self.train(settings.updates, settings.policy_batch)

    @torch.no_grad()
    def highest_value(self) -> float:
        """What the critics, the lower of the two, believe the best of all real states to be worth."""
        state = self.real.rows()[0]
        action = self.algorithm.policy._predict(state, deterministic=True)
        return torch.cat(self.algorithm.critic(state, action), dim=-1).amin(dim=-1).max().item()

    def fit(self) -> None:
        """Refit the ensemble to all that is real."""
        state, action, reward, following = self.real.rows()
        x = torch.cat([state, action * self.task.action_bound], dim=-1)
        y = torch.cat([following - state, reward], dim=-1)[:, : self.ensemble.networks.outputs]
        passes = math.ceil(self.settings.model_updates / math.ceil(len(x) / self.settings.batch))
        metrics = self.ensemble.fit(x[None], y[None], passes, self.settings.batch)
        self.log(**{f"{name}_dynamics": value.item() for name, value in metrics.items()})

    @torch.no_grad()
    def imagine(self) -> Replay:
        """Rollouts of the policy in the model, begun at real states drawn uniformly; each step draws a member."""
        settings, state_dim = self.settings, self.task.state_dim
        length, count = settings.rollout.length(len(self.contexts)), settings.rollouts * settings.retrain_every
        sampler = Sampler(self.ensemble, [self.generator], shuffle=True)
        imagined = Replay(state_dim, self.task.action_dim, count * length, self.generator)
        place = torch.randint(len(self.real), (count,), generator=self.generator, device=self.device)
        state, context = self.real.rows()[0][place], self.contexts[place // self.run.steps]
        for _ in range(length):
            action = self.algorithm.policy._predict(state)
            torque = action * self.task.action_bound
            predicted = sampler(torch.cat([state, torque], dim=-1)[None])[0]
            following, reward = state + predicted[:, :state_dim], predicted[:, state_dim:]
            if self.run.reward == "oracle":
                reward = self.task.reward(state, torque, following, context)[:, None]
            imagined.add(state, action, reward, following)
            state = following
        self.log(rollout_length=length)
        return imagined

    def state_dict(self) -> dict:
        own = {"real": self.real.state_dict(), "contexts": self.contexts, "ensemble": self.ensemble.state_dict()}
        return super().state_dict() | own

    def load_state_dict(self, state: dict) -> None:
        super().load_state_dict(state)
        self.real.load_state_dict(state["real"])
        self.contexts = state["contexts"].to(self.device)
        self.ensemble.load_state_dict(state["ensemble"])
