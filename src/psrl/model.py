"""The sampled model that a plan steps through: features from the networks, last-layer weights from the posterior."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from psrl.features import Networks
from psrl.swish import swish_in

# Products whose columns are no multiple of 16 are slow: 8 or 10 of them cost three times as much as 16. The feature
# layer is therefore filled up with units that have no weights: swish(0) = 0 adds nothing.
BLOCK = 16
WIDE = 128  # layers from here on are left as they are: 208 columns are slower than 200


class Perceptrons:
    """B plain perceptrons, swish inside, ready to be evaluated many times: [B, M, I] -> [B, M, K]."""

    def __init__(self, weights: Sequence[Tensor], biases: Sequence[Tensor]):
        self.size = sum(weight.numel() for weight in weights)  # multiplications per row, over all B
        *hidden, features, last = weights
        *offsets, features_bias, last_bias = biases
        missing = -features.shape[-1] % BLOCK if features.shape[-1] < WIDE else 0
        weights = [*hidden, F.pad(features, (0, missing)), F.pad(last, (0, 0, 0, missing))]
        biases = [*offsets, F.pad(features_bias, (0, missing)), last_bias]
        self.weights = [weight.detach().float().contiguous() for weight in weights]
        self.biases = [bias.detach().float() for bias in biases]
        self.rows, self.hidden = 0, []  # prepared for this number of rows

    @classmethod
    def fold(cls, networks: Networks, last: Tensor, bias: Tensor) -> "Perceptrons":
        """Feature networks with another last layer; the standardisation of inputs goes into the first layer.

        W^T (x - m) / s + b = (W / s)^T x + (b - (W / s)^T m), in float64 so that nothing is lost.
        """
        first = networks.weights[0].double() / networks.sd.double().mT
        offset = networks.biases[0] - networks.mean.double() @ first
        return cls([first, *networks.weights[1:-1], last], [offset, *networks.biases[1:-1], bias])

    def __call__(self, x: Tensor) -> Tensor:
        if self.rows != x.shape[1]:
            self._prepare(x.shape[1])
        for weight, bias, out, swish in self.hidden:
            x = torch.baddbmm(bias, x, weight, out=out)
            swish()
        return torch.baddbmm(self.biases[-1], x, self.weights[-1])

    def _prepare(self, rows: int) -> None:
        """The hidden layers write in turn to two pieces of memory that are kept: new pages cost time."""
        batch, widths = len(self.weights[0]), [weight.shape[-1] for weight in self.weights[:-1]]
        pieces = [self.weights[0].new_empty(batch * rows * max(widths)) for _ in range(2)]
        outs = [pieces[i % 2][: batch * rows * width].view(batch, rows, width) for i, width in enumerate(widths)]
        activations = [swish_in(out) for out in outs]
        self.rows, self.hidden = rows, list(zip(self.weights[:-1], self.biases[:-1], outs, activations, strict=True))

    def flops(self, rows: int) -> int:
        """Operations that the matrix products of one evaluation need for ``rows`` rows per trial."""
        return 2 * rows * self.size


class SampledModel:
    """Transition s + w . phi(s, a) + bias + N(0, noise^2), and optionally a reward w_r . phi_r(s, a) + bias_r."""

    def __init__(
        self,
        dynamics: Perceptrons,
        noise_sd: Tensor,
        generators: Sequence[torch.Generator],
        rewards: Perceptrons | None = None,
    ):
        self.dynamics, self.rewards, self.generators = dynamics, rewards, generators
        self.noise_sd = noise_sd.float()  # [B, 1, S]

    def step(self, state: Tensor, action: Tensor) -> Tensor:
        """One noisy step of M particles: [B, M, S], [B, M, A] -> [B, M, S]."""
        noise = torch.empty_like(state, memory_format=torch.contiguous_format)
        for draw, generator in zip(noise, self.generators, strict=True):
            draw.normal_(generator=generator)
        change = self.dynamics(torch.cat([state, action], dim=-1))
        return noise.mul_(self.noise_sd).add_(change).add_(state)

    def reward(self, state: Tensor, action: Tensor, following: Tensor) -> Tensor:
        """Expected reward of the sampled reward model, [B, M]; its zero-mean noise would only blur the ranking.

        As many rows at a time as the dynamics take: more would leave the processor's cache.
        """
        x = torch.cat([state, action], dim=-1)
        return torch.cat([self.rewards(part) for part in x.split(self.dynamics.rows, dim=1)], dim=1).squeeze(-1)
