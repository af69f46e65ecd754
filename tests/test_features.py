"""The stacked networks: right gradients, independent trials, a fit that fits."""

import copy
import math

import pytest
import torch

from psrl.features import Networks

DECAY = (1e-5, 1e-5, 1e-5)


def make(count, inputs=3, outputs=2, seed=0, decay=DECAY):
    generators = [torch.Generator().manual_seed(seed + i) for i in range(count)]
    return Networks([inputs, 32, 32, 10], outputs, decay, 1e-3, generators)


def toy(count, rows=256, seed=7):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(1, rows, 3, generator=g).expand(count, -1, -1) * torch.tensor([4.0, 100.0, 0.01])
    y = torch.stack([torch.sin(x[..., 0]), x[..., 1] / 50 - 1], dim=-1)
    return x.contiguous(), y


def test_a_fit_learns_mean_and_noise_level():
    x, y = toy(2, rows=640)
    noisy = y + 0.1 * torch.randn(y.shape, generator=torch.Generator().manual_seed(1))
    networks = make(2)
    networks.fit(x, noisy, epochs=50, batch=32)
    with torch.no_grad():
        mean, logvar = networks(x)
    assert (mean - y).square().mean().sqrt() < 0.08
    assert logvar.exp().mean().sqrt().item() == pytest.approx(0.1, rel=0.25)


def test_a_trial_learns_in_a_batch_as_it_learns_alone():
    x, y = toy(5)
    together, alone = make(5), make(1, seed=3)
    together.fit(x, y, epochs=3, batch=32)
    alone.fit(x[:1], y[:1], epochs=3, batch=32)
    for many, one in zip(together.parameters(), alone.parameters(), strict=True):
        # not bit for bit: the optimiser's vector kernel rounds the last few of a block differently
        assert torch.allclose(many[3:4], one, rtol=1e-4, atol=1e-6)


def test_networks_of_a_batch_differ():
    networks = make(3)
    assert not torch.equal(networks.weights[0][0], networks.weights[0][1])
    assert not torch.equal(networks.weights[0][1], networks.weights[0][2])


def test_weight_decay_is_the_gradient_of_the_l2_term():
    """Where the likelihood is flat (zero inputs, zero features), one step of Adam follows the penalty alone."""
    networks = make(1, decay=(0.1, 0.0, 0.0))
    before = [w.detach().clone() for w in networks.weights]
    zeros = torch.zeros(1, 8, 3)
    networks.loss(zeros, torch.zeros(1, 8, 2)).sum().backward()
    networks.optimiser.step()
    # Adam's first step has size learning_rate in the direction of the gradient's sign
    assert torch.allclose(before[0] - networks.weights[0], 1e-3 * before[0].sign(), atol=1e-6)
    assert torch.equal(before[1], networks.weights[1])


def test_log_variance_stays_within_its_bounds():
    networks = make(1)
    with torch.no_grad():
        networks.biases[-1][..., 2:] = 1e4
        _, high = networks(torch.zeros(1, 4, 3))
        networks.biases[-1][..., 2:] = -1e4
        _, low = networks(torch.zeros(1, 4, 3))
    assert high.max() <= 0.5 + 1e-4 and low.min() >= -10.0 - 1e-4


def test_inputs_that_do_not_vary_are_only_centred():
    networks = make(1)
    x = torch.cat([torch.full((1, 50, 1), 0.1), torch.randn(1, 50, 2)], dim=-1)
    networks.standardise_with(x)
    assert networks.sd[0, 0, 0] == 1 and networks.mean[0, 0, 0] == pytest.approx(0.1)


def test_a_fit_goes_on_from_a_saved_state():
    x, y = toy(2)
    one, other = make(2), make(2, seed=50)
    one.fit(x, y, epochs=2, batch=32)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for mine, theirs in zip(one.generators, other.generators, strict=True):
        theirs.set_state(mine.get_state())
    one.fit(x, y, epochs=2, batch=32)
    other.fit(x, y, epochs=2, batch=32)
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_saved_state_is_loaded_to_where_the_networks_are():
    """The meta device stands for a GPU: it has no numbers, but tensors on it are not on the CPU."""
    networks = make(2)
    state = copy.deepcopy(networks.state_dict())
    networks.weights = [weight.detach().to("meta") for weight in networks.weights]
    networks.load_state_dict(state)
    assert networks.mean.device.type == networks.sd.device.type == "meta"


def test_the_reported_loss_is_the_likelihood():
    x, y = toy(1, rows=64)
    networks = make(1)
    networks.standardise_with(x)
    mean, logvar = networks(x)
    gaussian = torch.distributions.Normal(mean, (logvar / 2).exp()).log_prob(y).mean()
    penalty = 0.01 * 2 * 10.5
    assert networks.loss(x, y).item() == pytest.approx(-2 * gaussian.item() - math.log(2 * math.pi) + penalty, rel=1e-4)
