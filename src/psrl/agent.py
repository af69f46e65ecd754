"""MPC-PSRL (Algorithm 1): plan by the cross-entropy method in one posterior sample of the model per episode."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from psrl import cem
from psrl.blr import EvidencePosterior, Posterior
from psrl.config import Run
from psrl.features import Networks
from psrl.model import Perceptrons, SampledModel
from psrl.mpc import ModelPredictiveControl
from psrl.settings import PSRL


@dataclass
class Regression:
    """Features and the Bayesian layer on them, for one target (dynamics or reward) of B trials."""

    networks: Networks
    settings: PSRL
    epochs: int
    shift: Tensor | None = None  # [B, 1, K], what standardisation takes off the targets; zero with published scales
    scale: Tensor | None = None  # [B, 1, K], what it divides them by; one with published scales
    posterior: Posterior | EvidencePosterior | None = None

    def learn(self, x: Tensor, y: Tensor) -> dict[str, np.ndarray]:
        """The dual update: retrain phi on all data, recompute all features, rebuild the posterior of w on them.

        Returned are measures of the fit in the units of the targets that it sees: standardised ones where they are.
        """
        standardised, evidence = self.settings.scales != "published", self.settings.scales == "evidence"
        sd, mean = torch.std_mean(y.double(), dim=1, keepdim=True, correction=0)
        self.shift = mean if standardised else torch.zeros_like(mean)
        self.scale = torch.where(sd < 1e-8, 1.0, sd) if standardised else torch.ones_like(sd)
        y = (y.double() - self.shift) / self.scale
        loss = self.networks.fit(x, y.float(), self.epochs, self.settings.batch)
        with torch.no_grad():
            phi = self.networks.features(x).double()
        target = y - self.bias()  # the network's output bias stays outside the Bayesian layer
        if evidence:
            self.posterior = EvidencePosterior.fit(phi, target)
        else:
            bayes = self.settings.bayes
            self.posterior = Posterior.fit(phi, target, bayes.prior_sd, bayes.noise_sd)
        error = (target - phi @ self.posterior.mean).square().mean(dim=(1, 2)).sqrt()
        noise = self.posterior.noise().mean(dim=(1, 2))
        values = {"loss": loss, "posterior_trace": self.posterior.trace(), "fit_rmse": error, "noise_sd": noise}
        return {name: value.double().cpu().numpy() for name, value in values.items()}

    def bias(self) -> Tensor:
        return self.networks.biases[-1].detach()[..., : self.networks.outputs].double()

    def draw(self, generators: list[torch.Generator]) -> Perceptrons:
        """x -> w . phi(x) + bias in the units of the data, with w drawn from the posterior (or its mean)."""
        posterior = self.posterior
        w = posterior.mean if self.settings.sample == "mean" else posterior.sample(generators)
        return Perceptrons.fold(self.networks, w * self.scale, self.bias() * self.scale + self.shift)

    def noise_sd(self) -> Tensor:
        """Noise sd of the outputs in the units of the data, [B, 1, K]."""
        return self.posterior.noise() * self.scale


class MPCPSRL(ModelPredictiveControl):
    """The agent; ``settings.scales`` chooses the targets' units and how the two scales are found."""

    def __init__(self, run: Run, device: str = "cpu"):
        super().__init__(run, device)
        self.dynamics = self._regression(self.task.state_dim, self.settings.epochs.dynamics)
        self.rewards = self._regression(1, self.settings.epochs.reward) if run.reward == "learned" else None
        self.sampled: SampledModel | None = None

    def _regression(self, outputs: int, epochs: int) -> Regression:
        settings, network = self.settings, self.settings.network
        inputs = self.task.state_dim + self.task.action_dim
        sizes = [inputs, *[network.width] * network.layers, max(1, round(settings.penultimate * inputs))]
        networks = Networks(sizes, outputs, network.decay, settings.learning_rate, self.generators, self.device)
        return Regression(networks, settings, epochs)

    def learn(self) -> dict[str, np.ndarray]:
        fits = {"dynamics": (self.dynamics, "change"), "reward": (self.rewards, "reward")}
        metrics = {}
        for name, (regression, target) in fits.items():
            if regression is not None:
                fitted = regression.learn(self.data["x"], self.data[target])
                metrics |= {f"{key}_{name}": value for key, value in fitted.items()}
        return metrics

    def model(self, at_step: int) -> tuple[cem.Step, cem.Reward]:
        """The episode's sample, drawn at its first step; ``sample: step`` draws another one every step."""
        if at_step == 0 or self.settings.sample == "step":
            rewards = None if self.rewards is None else self.rewards.draw(self.generators)
            dynamics = self.dynamics.draw(self.generators)
            self.sampled = SampledModel(dynamics, self.dynamics.noise_sd(), self.generators, rewards)
        reward = self.oracle if self.rewards is None else self.sampled.reward
        return self.sampled.step, reward

    def _regressions(self) -> list[Regression]:
        return [regression for regression in (self.dynamics, self.rewards) if regression is not None]

    def state_dict(self) -> dict:
        return super().state_dict() | {"networks": [item.networks.state_dict() for item in self._regressions()]}

    def load_state_dict(self, state: dict) -> None:
        super().load_state_dict(state)
        for regression, stored in zip(self._regressions(), state["networks"], strict=True):
            regression.networks.load_state_dict(stored)
