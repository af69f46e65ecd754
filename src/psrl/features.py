"""Feature representation (Section 4.1): networks whose penultimate layer is phi, trained many at a time.

G networks of one shape are stacked: every tensor has a leading dimension G (a trial, or a trial and ensemble member,
each), so that five seeds train as one batch of products instead of five times as many smaller ones.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

LOGVAR_BOUNDS = (-10.0, 0.5)  # where the learned bounds of the log-variance start
BOUND_PENALTY = 0.01


class Networks:
    """G perceptrons x -> phi(x) -> (mean, log-variance) of K outputs, swish inside, inputs standardised.

    ``sizes`` = (I, width, ..., D): inputs, hidden layers, penultimate layer. ``decay`` is the L2 penalty of the first,
    the hidden and the last two layers. One generator per network draws its weights, bootstraps and batches.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        outputs: int,
        decay: tuple[float, float, float],
        learning_rate: float,
        generators: Sequence[torch.Generator],
        device: torch.device | str = "cpu",
    ):
        self.outputs, self.generators = outputs, list(generators)
        groups = len(self.generators)
        widths = [*sizes, 2 * outputs]
        self.weights = [self._initial(a, b, device) for a, b in pairwise(widths)]
        self.biases = [torch.zeros(groups, 1, b, device=device) for b in widths[1:]]
        low, high = (torch.full((groups, 1, outputs), value, device=device) for value in LOGVAR_BOUNDS)
        self.logvar_low, self.logvar_high = low, high
        self.mean = torch.zeros(groups, 1, sizes[0], device=device)
        self.sd = torch.ones(groups, 1, sizes[0], device=device)
        layers = len(self.weights)
        penalty = [decay[0]] + [decay[1]] * (layers - 3) + [decay[2]] * 2
        for parameter in self.parameters():
            parameter.requires_grad_()
        # Adam's weight_decay adds decay * W to the gradient: the gradient of an L2 term decay / 2 |W|^2 in the loss.
        free = {"params": [*self.biases, low, high]}
        decayed = [{"params": [w], "weight_decay": d} for w, d in zip(self.weights, penalty[-layers:], strict=True)]
        self.optimiser = torch.optim.Adam([free, *decayed], lr=learning_rate, fused=True)

    def _initial(self, inputs: int, outputs: int, device: torch.device | str) -> Tensor:
        weights = torch.empty(len(self.generators), inputs, outputs, device=device)
        sd = 0.5 / inputs**0.5
        for weight, generator in zip(weights, self.generators, strict=True):
            torch.nn.init.trunc_normal_(weight, std=sd, a=-2 * sd, b=2 * sd, generator=generator)
        return weights

    def parameters(self) -> list[Tensor]:
        return [*self.weights, *self.biases, self.logvar_low, self.logvar_high]

    def standardise_with(self, x: Tensor) -> None:
        """Take mean and sd of the inputs from x [G, n, I]; an input that does not vary is only centred."""
        sd, mean = torch.std_mean(x.double(), dim=1, keepdim=True, correction=0)
        self.mean = mean.float()
        self.sd = torch.where(sd < 1e-6, 1.0, sd).float()

    def features(self, x: Tensor) -> Tensor:
        """phi(x): [G, n, I] -> [G, n, D]."""
        h = (x - self.mean) / self.sd
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = F.silu(torch.baddbmm(bias, h, weight))
        return h

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and softly bounded log-variance of the outputs, each [G, n, K]."""
        out = torch.baddbmm(self.biases[-1], self.features(x), self.weights[-1])
        mean, logvar = out.split(self.outputs, dim=-1)
        logvar = self.logvar_high - F.softplus(self.logvar_high - logvar)
        logvar = self.logvar_low + F.softplus(logvar - self.logvar_low)
        return mean, logvar

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Gaussian negative log-likelihood (twice it, without the constant) of y [G, n, K], per network: [G]."""
        mean, logvar = self(x)
        likelihood = ((mean - y).square() * torch.exp(-logvar) + logvar).mean(dim=(1, 2))
        return likelihood + BOUND_PENALTY * (self.logvar_high - self.logvar_low).sum(dim=(1, 2))

    def fit(self, x: Tensor, y: Tensor, epochs: int, batch: int) -> Tensor:
        """Train on a bootstrap of x [G, n, I], y [G, n, K], drawn once, reshuffled each epoch; the last losses [G].

        Weights and optimiser go on from the last fit, as in the authors' code.
        """
        self.standardise_with(x)
        rows = x.shape[1]
        drawn = torch.stack([torch.randint(rows, (rows,), generator=g, device=x.device) for g in self.generators])
        losses = x.new_zeros(len(x))
        for _ in range(epochs):
            order = torch.stack([torch.randperm(rows, generator=g, device=x.device) for g in self.generators])
            index = drawn.gather(1, order)[..., None]
            x_epoch = x.gather(1, index.expand(-1, -1, x.shape[-1]))
            y_epoch = y.gather(1, index.expand(-1, -1, y.shape[-1]))
            losses.zero_()
            for start in range(0, rows, batch):
                x_batch, y_batch = x_epoch[:, start : start + batch], y_epoch[:, start : start + batch]
                self.optimiser.zero_grad()
                loss = self.loss(x_batch, y_batch)
                loss.sum().backward()
                self.optimiser.step()
                losses += loss.detach() * x_batch.shape[1] / rows
        return losses

    def state_dict(self) -> dict:
        parameters = [parameter.detach() for parameter in self.parameters()]
        return {"parameters": parameters, "optimiser": self.optimiser.state_dict(), "mean": self.mean, "sd": self.sd}

    def load_state_dict(self, state: dict) -> None:
        with torch.no_grad():
            for parameter, stored in zip(self.parameters(), state["parameters"], strict=True):
                parameter.copy_(stored)
        self.optimiser.load_state_dict(state["optimiser"])
        self.mean, self.sd = (state[name].to(self.weights[0].device) for name in ("mean", "sd"))
