"""How sure models are of what they predict, in one form for ensembles and for regression on learned features."""

from dataclasses import dataclass
from statistics import NormalDist

import torch
from torch import Tensor

from psrl.agent import Regression
from psrl.ensemble import Ensemble


@dataclass(frozen=True)
class Prediction:
    """Of outputs [B, n, K]: the mean, the sd of what the model does not know, and of what it expects to see."""

    mean: Tensor
    spread: Tensor  # epistemic: between members, or of the posterior
    total: Tensor  # with the noise

    @classmethod
    def of_ensemble(cls, ensemble: Ensemble, x: Tensor) -> "Prediction":
        """The mixture of the members at x [B, n, I]: mean of their variances plus variance of their means."""
        mean, variance = ensemble.predict(x)
        spread = mean.var(dim=1, correction=0)
        return cls(mean.mean(dim=1), spread.sqrt(), (variance.mean(dim=1) + spread).sqrt())

    @classmethod
    def of_regression(cls, regression: Regression, x: Tensor) -> "Prediction":
        """The posterior at x [B, n, I], in the units of the data."""
        with torch.no_grad():
            phi = regression.networks.features(x).double()
        mean = (phi @ regression.posterior.mean + regression.bias()) * regression.scale + regression.shift
        spread = (regression.posterior.variance(phi).sqrt() * regression.scale).expand_as(mean)
        return cls(mean, spread, (spread.square() + regression.noise_sd().square()).sqrt())


def coverage(mean: Tensor, sd: Tensor, y: Tensor, level: float = 0.9) -> Tensor:
    """Share of y [B, n, K] within the central interval of N(mean, sd^2) that should hold ``level`` of them, [B]."""
    width = NormalDist().inv_cdf(0.5 + level / 2)
    return ((y - mean).abs() < width * sd).double().mean(dim=(1, 2))
