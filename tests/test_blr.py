"""Bayesian linear regression is exact: against dense formulas, Gaussian processes, and its own limits."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from psrl.blr import EvidencePosterior, Posterior


def data(rows=60, size=5, outputs=3, batch=2, noise=0.3, seed=0):
    g = torch.Generator().manual_seed(seed)
    phi = torch.randn(batch, rows, size, generator=g, dtype=torch.float64)
    w = torch.randn(batch, size, outputs, generator=g, dtype=torch.float64)
    return phi, phi @ w + noise * torch.randn(batch, rows, outputs, generator=g, dtype=torch.float64), w


def generators(count, seed=0):
    return [torch.Generator().manual_seed(seed + i) for i in range(count)]


def test_posterior_is_the_formula_of_section_4_1():
    phi, y, _ = data()
    posterior = Posterior.fit(phi, y, prior_sd=0.7, noise_sd=0.3)
    for b in range(len(phi)):
        a = phi[b].T @ phi[b] / 0.3**2 + torch.eye(5, dtype=torch.float64) / 0.7**2
        assert torch.allclose(posterior.precision[b], a, rtol=1e-12)
        assert torch.allclose(posterior.mean[b], torch.linalg.solve(a, phi[b].T @ y[b]) / 0.3**2, rtol=1e-10)


def test_weight_space_is_a_gaussian_process_with_linear_kernel():
    phi, y, _ = data()
    new = torch.randn(2, 7, 5, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    posterior = Posterior.fit(phi, y, prior_sd=0.7, noise_sd=0.3)
    kernel = 0.7**2 * phi @ phi.mT + 0.3**2 * torch.eye(60)
    cross = 0.7**2 * new @ phi.mT
    assert torch.allclose(new @ posterior.mean, cross @ torch.linalg.solve(kernel, y), atol=1e-11)
    variance = 0.7**2 * new.square().sum(-1) - (cross @ torch.linalg.solve(kernel, cross.mT)).diagonal(dim1=1, dim2=2)
    assert torch.allclose(posterior.variance(new)[..., 0], variance, atol=1e-11)


def test_samples_have_the_posterior_mean_and_covariance():
    phi, y, _ = data(rows=8, batch=1)
    posterior = Posterior.fit(phi, y, prior_sd=0.7, noise_sd=0.3)
    wide = posterior.__class__(*(getattr(posterior, f) for f in ("precision", "moment", "factor", "mean")), 0.3)
    draws = torch.cat([wide.sample(generators(1, seed)) for seed in range(4000)])
    covariance = torch.linalg.inv(posterior.precision[0])
    standard_error = covariance.diagonal().sqrt()[:, None] / math.sqrt(4000)
    assert ((draws.mean(0) - posterior.mean[0]).abs() < 5 * standard_error).all()
    for k in range(3):
        measured = torch.cov(draws[:, :, k].T)
        scale = torch.outer(covariance.diagonal().sqrt(), covariance.diagonal().sqrt())
        assert ((measured - covariance).abs() < 5 * math.sqrt(2 / 4000) * scale).all()


def test_evidence_posterior_samples_have_its_mean_and_variance():
    phi, y, _ = data(rows=12, batch=1)
    posterior = EvidencePosterior.fit(phi, y)
    draws = torch.cat([posterior.sample(generators(1, seed)) for seed in range(4000)])
    for k in range(3):
        ridge = torch.linalg.inv(
            phi[0].T @ phi[0] / posterior.noise_sd[0, 0, k] ** 2 + torch.eye(5) / posterior.prior_sd[0, 0, k] ** 2
        )
        scale = torch.outer(ridge.diagonal().sqrt(), ridge.diagonal().sqrt())
        assert ((torch.cov(draws[:, :, k].T) - ridge).abs() < 5 * math.sqrt(2 / 4000) * scale).all()
        assert torch.allclose(ridge @ phi[0].T @ y[0, :, k] / posterior.noise_sd[0, 0, k] ** 2, posterior.mean[0, :, k])


def test_adding_rows_is_fitting_all_rows():
    phi, y, _ = data()
    whole = Posterior.fit(phi, y, 0.7, 0.3)
    parts = Posterior.fit(phi[:, :50], y[:, :50], 0.7, 0.3).update(phi[:, 50:57], y[:, 50:57])
    parts = parts.update(phi[:, 57:], y[:, 57:])
    assert torch.allclose(whole.mean, parts.mean, atol=1e-12)
    assert torch.allclose(whole.factor, parts.factor, atol=1e-10)


def test_more_data_never_widens_the_posterior():
    phi, y, _ = data()
    new = torch.randn(2, 20, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    variances = [Posterior.fit(phi[:, :n], y[:, :n], 0.7, 0.3).variance(new) for n in (0, 1, 10, 60)]
    for before, after in pairwise(variances):
        assert (after <= before + 1e-15).all()
    assert torch.allclose(variances[0][..., 0], 0.49 * new.square().sum(-1))


def test_information_gain_obeys_the_chain_rule():
    phi, y, _ = data(batch=1)
    gain = Posterior.fit(phi, y, 0.7, 0.3).information_gain(0.7)
    steps = 0.0
    for n in range(60):
        before = Posterior.fit(phi[:, :n], y[:, :n], 0.7, 0.3)
        steps += 0.5 * torch.log1p(before.variance(phi[:, n : n + 1]) / 0.3**2).sum()
    assert gain.item() == pytest.approx(float(steps), rel=1e-12)


def test_credible_intervals_cover_as_often_as_they_say():
    rng = torch.Generator().manual_seed(1)
    batch = 2000
    w = 0.7 * torch.randn(batch, 5, 1, generator=rng, dtype=torch.float64)
    phi = torch.randn(batch, 20, 5, generator=rng, dtype=torch.float64)
    y = phi @ w + 0.3 * torch.randn(batch, 20, 1, generator=rng, dtype=torch.float64)
    new = torch.randn(batch, 1, 5, generator=rng, dtype=torch.float64)
    posterior = Posterior.fit(phi, y, 0.7, 0.3)
    z = ((new @ (posterior.mean - w)) / posterior.variance(new).sqrt()).abs().flatten()
    for level, quantile in ((0.5, 0.6745), (0.9, 1.6449), (0.95, 1.96)):
        standard_error = math.sqrt(level * (1 - level) / batch)
        assert abs((z < quantile).double().mean().item() - level) < 4 * standard_error


def test_evidence_is_the_marginal_likelihood():
    phi, y, _ = data(rows=15, batch=1, outputs=1)
    posterior = EvidencePosterior.fit(phi, y)
    alpha, sigma = posterior.prior_sd.item(), posterior.noise_sd.item()
    covariance = alpha**2 * phi[0] @ phi[0].T + sigma**2 * torch.eye(15)
    direct = multivariate_normal(np.zeros(15), covariance.numpy()).logpdf(y[0, :, 0].numpy())
    assert posterior.log_evidence.item() == pytest.approx(direct, rel=1e-9)


def test_chosen_scales_beat_all_others():
    phi, y, _ = data(rows=40, batch=2)
    posterior = EvidencePosterior.fit(phi, y)
    for factor in (0.5, 0.9, 1.1, 2.0):
        for k in range(3):
            for prior, noise in ((factor, 1.0), (1.0, factor), (factor, factor)):
                for b in range(2):
                    alpha = (posterior.prior_sd[b, 0, k] * prior).item()
                    sigma = (posterior.noise_sd[b, 0, k] * noise).item()
                    covariance = alpha**2 * phi[b] @ phi[b].T + sigma**2 * torch.eye(40)
                    other = multivariate_normal(np.zeros(40), covariance.numpy()).logpdf(y[b, :, k].numpy())
                    assert other < posterior.log_evidence[b, k].item()


def test_evidence_recovers_the_scales_that_made_the_data():
    g = torch.Generator().manual_seed(4)
    phi = torch.randn(1, 4000, 200, generator=g, dtype=torch.float64)
    w = torch.randn(1, 200, 2, generator=g, dtype=torch.float64) * torch.tensor([0.1, 3.0])
    y = phi @ w + torch.tensor([0.5, 0.02]) * torch.randn(1, 4000, 2, generator=g, dtype=torch.float64)
    posterior = EvidencePosterior.fit(phi, y)
    assert torch.allclose(posterior.prior_sd[0, 0], torch.tensor([0.1, 3.0], dtype=torch.float64), rtol=0.15)
    assert torch.allclose(posterior.noise_sd[0, 0], torch.tensor([0.5, 0.02], dtype=torch.float64), rtol=0.04)


def test_evidence_recovers_the_prior_where_there_is_no_noise_at_all():
    phi, y, w = data(noise=0.0)
    posterior = EvidencePosterior.fit(phi, y)
    assert torch.allclose(posterior.prior_sd[:, 0], w.square().mean(dim=1).sqrt(), rtol=0.1)


def test_evidence_survives_targets_without_variation():
    phi, y, _ = data()
    y[..., 1] = 0.0
    posterior = EvidencePosterior.fit(phi, y)
    assert posterior.mean[..., 1].abs().max() == 0
    assert torch.isfinite(posterior.sample(generators(2))).all()
    assert (posterior.variance(phi)[..., 1] < 1e-10).all()


def test_the_chosen_scales_grow_with_the_targets():
    """Scaling targets scales both sds and leaves the choice of their ratio alone."""
    phi, y, _ = data()
    small, large = EvidencePosterior.fit(phi, y), EvidencePosterior.fit(phi, 1e3 * y)
    assert torch.allclose(large.prior_sd / small.prior_sd, torch.full_like(small.prior_sd, 1e3), rtol=1e-4)
    assert torch.allclose(large.noise_sd / small.noise_sd, torch.full_like(small.noise_sd, 1e3), rtol=1e-4)


@pytest.mark.parametrize("broken", ["nan", "equal columns and no prior"])
def test_a_posterior_that_is_not_positive_definite_says_so(broken):
    phi, y, _ = data()
    if broken == "nan":
        phi[0, 0, 0] = math.nan
    else:
        phi = phi[..., :1] * torch.tensor([1, 1 / 3, 1 / 7, 1 / 9, 1 / 11], dtype=torch.float64)
    with pytest.raises(ValueError, match=r"not positive definite \(condition number (inf|\d\.\de\+1\d)\)"):
        Posterior.fit(phi, y, prior_sd=1e12, noise_sd=0.3)
