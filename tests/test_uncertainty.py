"""One form for the uncertainty of ensembles and of regression on features."""

import pytest
import tiny
import torch

from psrl.agent import Regression
from psrl.config import resolve
from psrl.ensemble import Ensemble, Sampler
from psrl.features import Networks
from psrl.settings import Member
from psrl.uncertainty import Prediction, coverage

X = torch.randn(2, 80, 3, generator=torch.Generator().manual_seed(0))
Y = torch.cat([X[..., :1] ** 2, 0.1 * X[..., 1:2]], dim=-1)


def generators():
    return [torch.Generator().manual_seed(i) for i in range(2)]


@pytest.mark.parametrize("method", ["psrl", "psrl-eb"])
def test_the_spread_of_a_regression_is_that_of_its_samples(method):
    settings = resolve(tiny.params(), task="pendulum", method=method, seeds=[0, 1], episodes=1).settings
    regression = Regression(Networks([3, 16, 6], 2, settings.network.decay, 1e-3, generators()), settings, 20)
    regression.learn(X, Y)
    draws, seeds = 3000, generators()
    sampled = torch.stack([regression.draw(seeds)(X[:, :5]).double() for _ in range(draws)])
    said = Prediction.of_regression(regression, X[:, :5])
    assert ((sampled.mean(0) - said.mean).abs() < 5 * said.spread / draws**0.5 + 1e-6).all()
    # Single precision rounds sums of size 1 at 1e-7: below ten times that a spread is not to be told from rounding.
    large = said.spread > 1e-6
    assert large.any()
    torch.testing.assert_close(sampled.std(0)[large], said.spread[large], rtol=0.1, atol=0)
    assert (said.total > said.spread).all()


def test_the_total_of_an_ensemble_is_that_of_its_draws():
    ensemble = Ensemble(3, 2, 5, Member(1, 16, (0.0, 0.0, 0.0)), 1e-2, [0, 1])
    ensemble.fit(X, Y, epochs=10, batch=32)
    point = X[:, :1].expand(-1, 50_000, -1)
    drawn = Sampler(ensemble, generators())(point)
    said = Prediction.of_ensemble(ensemble, X[:, :1])
    torch.testing.assert_close(drawn.std(dim=1), said.total[:, 0], rtol=0.03, atol=0)


def test_coverage_counts_what_lies_within():
    y = torch.randn(3, 4000, 2, generator=torch.Generator().manual_seed(1))
    assert coverage(torch.zeros_like(y), torch.ones_like(y), y).tolist() == pytest.approx([0.9] * 3, abs=0.02)
    assert coverage(torch.zeros_like(y), torch.full_like(y, 0.5), y, 0.95).tolist() == pytest.approx(
        [0.673] * 3, abs=0.03
    )
