"""Probabilistic ensembles (Chua et al., 2018): E Gaussian networks per trial, each trained on a bootstrap of its own.

Where members disagree the data do not decide (epistemic uncertainty); what each predicts as variance is noise
(aleatoric). MPC-PSRL has a posterior over the last layer instead.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from psrl.features import Networks
from psrl.model import Perceptrons
from psrl.settings import Member


class Ensemble:
    """E networks for each of B trials, trained as one batch of G = B E."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        members: int,
        member: Member,
        learning_rate: float,
        seeds: Sequence[int],
        device: torch.device | str = "cpu",
    ):
        self.members = members
        # A member's generator comes from its trial's seed alone, so trials beside it change a trial by rounding only.
        keys = [np.random.SeedSequence([seed, index]) for seed in seeds for index in range(members)]
        generators = [torch.Generator(device).manual_seed(int(key.generate_state(1)[0])) for key in keys]
        sizes = [inputs, *[member.width] * member.layers]
        self.networks = Networks(sizes, outputs, member.decay, learning_rate, generators, device)

    def fit(self, x: Tensor, y: Tensor, epochs: int, batch: int) -> dict[str, np.ndarray]:
        """Train every member on its bootstrap of x [B, n, I], y [B, n, K]; metrics of the fit, each [B].

        ``spread`` is the sd between members' means at the data, ``fit_rmse`` the error of their average there.
        """
        rows = [data.repeat_interleave(self.members, dim=0) for data in (x, y)]
        loss = self.networks.fit(*rows, epochs, batch).view(-1, self.members).mean(dim=1)
        if not loss.isfinite().all():
            raise ValueError("the ensemble's loss is nan or inf; valid: finite data, a smaller learning rate")
        mean, _ = self.predict(x)
        error = (mean.mean(dim=1) - y).square().mean(dim=(1, 2)).sqrt()
        spread = mean.var(dim=1, correction=0).mean(dim=(1, 2)).sqrt()
        values = {"loss": loss, "fit_rmse": error, "spread": spread}
        return {name: value.double().cpu().numpy() for name, value in values.items()}

    @torch.no_grad()
    def predict(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of every member at x [B, n, I], each [B, E, n, K]."""
        mean, logvar = self.networks(x.repeat_interleave(self.members, dim=0))
        return mean.unflatten(0, (-1, self.members)), logvar.exp().unflatten(0, (-1, self.members))

    def state_dict(self) -> dict:
        generators = [generator.get_state() for generator in self.networks.generators]
        return {"networks": self.networks.state_dict(), "generators": generators}

    def load_state_dict(self, state: dict) -> None:
        self.networks.load_state_dict(state["networks"])
        for generator, stored in zip(self.networks.generators, state["generators"], strict=True):
            generator.set_state(stored)


class Sampler:
    """The ensemble frozen for rollouts: draws outputs for M rows per trial, row r answered by member r mod E.

    With P particles per candidate in neighbouring rows, a candidate's particles are spread over the members, and each
    keeps its member along a rollout. ``shuffle`` deals the rows out to the members anew at every call instead. Rows of
    one member are brought together, so that a step of all particles is one product [B E, M / E, .] per layer.
    """

    def __init__(self, ensemble: Ensemble, generators: Sequence[torch.Generator], shuffle: bool = False):
        networks, self.members = ensemble.networks, ensemble.members
        self.outputs, self.size = networks.outputs, sum(weight.numel() for weight in networks.weights)
        self.generators, self.shuffle = generators, shuffle
        high, low = networks.logvar_high.detach(), networks.logvar_low.detach()
        # The softly bounded log-variance l of features.py has exp(l) = e^low + e^high sigmoid(raw - high):
        # the shift by -high goes into the last layer's bias, and one sigmoid is left to compute.
        self.floor, self.range = low.exp(), high.exp()
        bias = networks.biases[-1].detach() - torch.cat([torch.zeros_like(high), high], dim=-1)
        self.perceptrons = Perceptrons.fold(networks, networks.weights[-1], bias)

    def __call__(self, x: Tensor) -> Tensor:
        """Outputs [B, M, K] for rows x [B, M, I], the predicted noise included; M is a multiple of E."""
        batch, rows, _ = x.shape
        if self.shuffle:
            draws = [torch.randperm(rows, generator=generator, device=x.device) for generator in self.generators]
            order = torch.stack(draws)[..., None]
            x = x.gather(1, order.expand_as(x))
        grouped = x.unflatten(1, (-1, self.members)).transpose(1, 2).flatten(0, 1)
        mean, raw = self.perceptrons(grouped).split(self.outputs, dim=-1)
        noise = torch.empty_like(mean, memory_format=torch.contiguous_format)
        for draw, generator in zip(noise.unflatten(0, (batch, -1)), self.generators, strict=True):
            draw.normal_(generator=generator)
        sd = raw.sigmoid().mul_(self.range).add_(self.floor).sqrt_()
        drawn = noise.mul_(sd).add_(mean)
        drawn = drawn.unflatten(0, (batch, -1)).transpose(1, 2).flatten(1, 2)
        return torch.empty_like(drawn).scatter_(1, order.expand_as(drawn), drawn) if self.shuffle else drawn

    def flops(self, rows: int) -> int:
        """Operations that the matrix products of one call need for ``rows`` rows per trial."""
        return 2 * self.size * rows // self.members
