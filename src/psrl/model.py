"""The sampled model that a plan steps through: features from the networks, last-layer weights from the posterior."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from psrl.features import Networks

FUSED = torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability().startswith("AVX")
ROWS = 512  # at a time: a layer's inputs and outputs stay in the processor's second cache


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str = "none") -> Tensor:
    """A layer on a CPU, x [M, I], weight [K, I] and bias [K], by oneDNN in one call, activation included.

    torch's products are MKL's, which leaves half of an AMD processor's vector units idle.
    """
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, activation, [], "")


class Perceptrons:
    """B plain perceptrons, swish inside, ready to be evaluated many times: [B, M, I] -> [B, M, K]."""

    def __init__(self, weights: Sequence[Tensor], biases: Sequence[Tensor]):
        self.size = sum(weight.numel() for weight in weights)  # multiplications per row, over all B
        self.fused = FUSED and weights[0].device.type == "cpu"
        layout = (lambda weight: weight.mT) if self.fused else (lambda weight: weight)  # [B, K, I] or [B, I, K]
        self.weights = [layout(weight.detach().float()).contiguous() for weight in weights]
        self.biases = [bias.detach().float() for bias in biases]

    @classmethod
    def fold(cls, networks: Networks, last: Tensor, bias: Tensor) -> "Perceptrons":
        """Feature networks with another last layer; the standardisation of inputs goes into the first layer.

        W^T (x - m) / s + b = (W / s)^T x + (b - (W / s)^T m), in float64 so that nothing is lost.
        """
        first = networks.weights[0].double() / networks.sd.double().mT
        offset = networks.biases[0] - networks.mean.double() @ first
        return cls([first, *networks.weights[1:-1], last], [offset, *networks.biases[1:-1], bias])

    def __call__(self, x: Tensor) -> Tensor:
        if self.fused:
            trials = zip(x, zip(*self.weights, strict=True), zip(*self.biases, strict=True), strict=True)
            return torch.stack([self._trial(*trial) for trial in trials])
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = F.silu(torch.baddbmm(bias, x, weight), inplace=True)
        return torch.baddbmm(self.biases[-1], x, self.weights[-1])

    def _trial(self, x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> Tensor:
        """One perceptron, a part of the rows after another: [M, I] -> [M, K]."""
        outs = []
        for part in x.split(ROWS):
            for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
                part = linear(part, weight, bias[0], "swish")
            outs.append(linear(part, weights[-1], biases[-1][0]))
        return torch.cat(outs)

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
        """Expected reward of the sampled reward model, [B, M]; its zero-mean noise would only blur the ranking."""
        return self.rewards(torch.cat([state, action], dim=-1)).squeeze(-1)
