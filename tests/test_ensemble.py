"""Probabilistic ensembles: calibrated where there are data, in disagreement where there are none."""

import numpy as np
import pytest
import torch

from psrl.ensemble import Ensemble, Sampler
from psrl.settings import Member

MEMBER = Member(layers=2, width=32, decay=(1e-5, 1e-5, 1e-5))
NOISE = 0.1


def ensemble(inputs=1, outputs=1, seeds=(0,), members=5, member=MEMBER):
    return Ensemble(inputs, outputs, members, member, 3e-3, seeds)


def curve(x):
    return torch.sin(3 * x)


def points(n, seed):
    """Inputs on both sides of a gap, [1, n, 1]."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-1.0, 1.0], n)
    return torch.tensor(side * rng.uniform(0.7, 2.0, n), dtype=torch.float32).view(1, n, 1)


def noisy(x, seed):
    return curve(x) + NOISE * torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def fitted():
    model, x = ensemble(), points(400, seed=1)
    model.fit(x, noisy(x, seed=2), epochs=150, batch=32)
    return model


def spread(model, x):
    """Sd between the members' means, [n]."""
    mean, _ = model.predict(x)
    return mean[0, :, :, 0].std(dim=0)


def test_its_intervals_hold_what_they_promise_where_there_are_data(fitted):
    x = points(2000, seed=3)
    mean, variance = fitted.predict(x)
    centre = mean.mean(dim=1)
    total = variance.mean(dim=1) + mean.var(dim=1, correction=0)
    z = (noisy(x, seed=4) - centre) / total.sqrt()
    # The standard errors of the two frequencies are 0.5% and 1%; the rest is room for what 400 points leave undecided.
    assert 0.91 < (z.abs() < 1.96).float().mean() < 0.985
    assert 0.60 < (z.abs() < 1.0).float().mean() < 0.78


def test_it_tells_noise_from_ignorance(fitted):
    x = points(500, seed=5)
    _, variance = fitted.predict(x)
    assert variance.sqrt().mean().item() == pytest.approx(NOISE, rel=0.15)
    assert spread(fitted, x).mean() < 0.75 * NOISE


def test_members_disagree_off_the_data(fitted):
    on = spread(fitted, points(500, seed=6)).mean()
    gap = spread(fitted, torch.linspace(-0.35, 0.35, 50).view(1, -1, 1)).mean()
    beyond = spread(fitted, torch.linspace(2.8, 3.5, 50).view(1, -1, 1)).mean()
    assert gap > 2 * on
    assert beyond > 5 * on


def test_a_trial_in_a_batch_is_as_it_would_be_alone():
    x, y = points(60, seed=0), noisy(points(60, seed=0), seed=1)
    together, alone = ensemble(seeds=(3, 7)), ensemble(seeds=(7,))
    for a, b in zip(together.networks.weights, alone.networks.weights, strict=True):
        assert torch.equal(a[5:], b)
    together.fit(x.expand(2, -1, -1), y.expand(2, -1, -1), epochs=5, batch=16)
    alone.fit(x, y, epochs=5, batch=16)
    torch.testing.assert_close(together.predict(x.expand(2, -1, -1))[0][1:], alone.predict(x)[0], rtol=1e-4, atol=1e-5)


def test_no_two_members_are_alike():
    model = ensemble(seeds=(0, 1))
    first = model.networks.weights[0].flatten(1)
    assert torch.pdist(first).min() > 0.1


def test_a_loaded_state_goes_on_as_if_never_interrupted(tmp_path):
    x, y = points(60, seed=0), noisy(points(60, seed=0), seed=1)
    whole, other = ensemble(), ensemble(seeds=(9,))
    whole.fit(x, y, epochs=2, batch=16)
    torch.save(whole.state_dict(), tmp_path / "state.pt")
    whole.fit(x, y, epochs=2, batch=16)
    other.load_state_dict(torch.load(tmp_path / "state.pt"))
    other.fit(x, y, epochs=2, batch=16)
    assert torch.equal(whole.predict(x)[0], other.predict(x)[0])


def sampler(model, trials=1, shuffle=False, seed=0):
    return Sampler(model, [torch.Generator().manual_seed(seed + i) for i in range(trials)], shuffle)


def test_draws_have_the_mean_and_variance_their_member_predicts():
    model = ensemble(inputs=3, outputs=2, seeds=(0, 1))
    x = torch.randn(2, 60, 3)
    model.fit(x, torch.cat([x[..., :1], 3 * x[..., 1:2]], dim=-1), epochs=1, batch=16)
    point, n = torch.tensor([0.3, -1.0, 2.0]), 20_000
    drawn = sampler(model, trials=2)(point.expand(2, 5 * n, 3)).unflatten(1, (n, 5))
    mean, variance = model.predict(point.expand(2, 1, 3))
    error = (variance[:, :, 0] / n).sqrt()
    assert ((drawn.mean(dim=1) - mean[:, :, 0]).abs() < 5 * error).all()
    torch.testing.assert_close(drawn.var(dim=1), variance[:, :, 0], rtol=0.06, atol=0)


def certain(model):
    """The same ensemble with hardly any noise, its weights as they were drawn."""
    for bound in (model.networks.logvar_low, model.networks.logvar_high):
        bound.data.fill_(-40.0)
    return model


def nearest_member(model, x, drawn):
    """Which member's mean each row [M, K] is, and how far off."""
    mean, _ = model.predict(x)
    distance = (mean[0] - drawn[0]).abs().amax(dim=-1)
    return distance.argmin(dim=0), distance.amin(dim=0).max()


def test_row_r_is_answered_by_member_r_modulo_e():
    model, x = certain(ensemble(inputs=3, outputs=2)), torch.randn(1, 40, 3)
    member, off = nearest_member(model, x, sampler(model)(x))
    assert off < 1e-5
    assert torch.equal(member, torch.arange(40) % 5)


def test_shuffled_rows_change_members_but_keep_their_place():
    model, x = certain(ensemble(inputs=3, outputs=2)), torch.randn(1, 200, 3)
    draw = sampler(model, shuffle=True)
    first, off = nearest_member(model, x, draw(x))
    second, _ = nearest_member(model, x, draw(x))
    assert off < 1e-5
    for member in (first, second):
        assert torch.equal(member.bincount(minlength=5), torch.full((5,), 40))
    # Two independent deals agree in a fifth of the rows, give or take four standard errors.
    assert abs((first == second).float().mean() - 0.2) < 4 * (0.2 * 0.8 / 200) ** 0.5


def test_flops_are_those_of_the_products():
    model = ensemble(inputs=3, outputs=2, seeds=(0, 1))
    one_row = 2 * (3 * 32 + 32 * 32 + 32 * 4)
    assert sampler(model, trials=2).flops(50) == 2 * 50 * one_row
