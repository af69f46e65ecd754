"""The activation that planning uses: as accurate as torch's, on values of every size."""

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from psrl.model import Perceptrons
from psrl.swish import swish_in


def swish(x: Tensor) -> Tensor:
    result = x.clone()
    swish_in(result)()
    return result


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1.0, 5.0, 15.0])
@pytest.mark.parametrize("shape", [(1, 7, 3), (5, 40, 200)])  # fewer numbers than one vector, and an odd rest
def test_it_is_as_accurate_as_float32_allows(scale, shape):
    x = scale * torch.randn(shape, generator=torch.Generator().manual_seed(0))
    exact = F.silu(x.double())
    unit = torch.finfo(torch.float32).eps
    assert ((swish(x) - exact) / exact).abs().max() < 2 * unit


def test_every_number_comes_out_the_same_wherever_it_stands():
    """Vectorised or left over at the end: a trial is the same whatever trials are computed beside it."""
    x = 5 * torch.randn(1, 1, 37, generator=torch.Generator().manual_seed(1))
    alone = torch.stack([swish(number.view(1, 1, 1)).squeeze() for number in x.flatten()])
    assert torch.equal(swish(x).flatten(), alone)


def test_limits():
    far = torch.tensor([[[0.0, 1e30, 200.0, -200.0, -1e30]]])
    torch.testing.assert_close(swish(far), torch.tensor([[[0.0, 1e30, 200.0, 0.0, 0.0]]]), atol=1e-6, rtol=0)
    assert (
        not swish(torch.tensor([[[float("nan"), float("inf")]]])).isfinite().any()
    )  # a rollout that breaks stays broken


def test_a_perceptron_gives_the_same_for_any_number_of_rows():
    generator = torch.Generator().manual_seed(2)
    sizes = [3, 20, 20, 5, 2]
    weights = [torch.randn(2, a, b, generator=generator) for a, b in pairwise(sizes)]
    biases = [torch.randn(2, 1, b, generator=generator) for b in sizes[1:]]
    perceptrons = Perceptrons(weights, biases)
    x = torch.randn(2, 12, 3, generator=generator)
    expected = x.double()
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        expected = F.silu(expected @ weight.double() + bias)
    expected = expected @ weights[-1].double() + biases[-1]
    for rows in (12, 5, 12):
        torch.testing.assert_close(perceptrons(x[:, :rows]).double(), expected[:, :rows], rtol=1e-4, atol=1e-4)
