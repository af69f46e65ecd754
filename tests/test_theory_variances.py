"""Lemma 3 and Appendix C: posteriors, radii, sums of variances. Statistical tests allow 4 standard errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psrl.theory import bandit, bounds, variances
from psrl.theory.posterior import Posterior, batch_posterior, gp_posterior


def trained(draws, features, outputs, rows, seed, noise_sd=0.7):
    """A posterior after ``rows`` rows, with the data it saw and the generator."""
    generator = np.random.default_rng(seed)
    prior_sd = np.linspace(0.5, 2.0, features)
    posterior = Posterior(draws, prior_sd, outputs, noise_sd)
    X = generator.standard_normal((draws, rows, features))
    Y = generator.standard_normal((draws, rows, outputs))
    for i in range(rows):
        posterior.update(X[:, i], Y[:, i])
    return posterior, X, Y, prior_sd, generator


def close_to_rate(hits, probability):
    """Whether a share of hits is within 4 binomial standard errors of a probability."""
    return abs(hits.mean() - probability) <= 4 * np.sqrt(probability * (1 - probability) / hits.size)


def test_row_by_row_equals_the_batch_formula_after_many_rows():
    posterior, X, Y, prior_sd, _ = trained(draws=3, features=4, outputs=2, rows=2000, seed=0)
    for b in range(3):
        mean, covariance = batch_posterior(X[b], Y[b], prior_sd, 0.7)
        np.testing.assert_allclose(posterior.mean[b], mean, rtol=0, atol=1e-12)
        np.testing.assert_allclose(posterior.covariance()[b], covariance, rtol=1e-10, atol=1e-18)


def test_weight_space_equals_the_gaussian_process_with_a_linear_kernel():
    posterior, X, Y, prior_sd, generator = trained(draws=1, features=4, outputs=1, rows=30, seed=1)
    points = generator.standard_normal((5, 4))

    def kernel(x, z):
        return (x * prior_sd**2) @ z.T

    mean, covariance = gp_posterior(X[0], Y[0, :, 0], points, kernel, 0.7)
    np.testing.assert_allclose(points @ posterior.mean[0, :, 0], mean, atol=1e-12)
    np.testing.assert_allclose(points @ posterior.covariance()[0] @ points.T, covariance, atol=1e-12)
    np.testing.assert_allclose(posterior.sd(points[None])[0] ** 2, np.diag(covariance), atol=1e-12)


def test_samples_have_the_posterior_covariance():
    posterior, *_, generator = trained(draws=1, features=3, outputs=1, rows=5, seed=2)
    samples = np.stack([posterior.sample(generator)[0, :, 0] for _ in range(20_000)])
    white = np.linalg.solve(posterior.root[0], (samples - posterior.mean[0, :, 0]).T)
    np.testing.assert_allclose(white @ white.T / len(samples), np.eye(3), atol=4 * np.sqrt(2 / len(samples)))


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_papers_radius_fails_at_a_fixed_pair_as_often_as_computed(outputs):
    posterior, *_, generator = trained(draws=40_000, features=3, outputs=outputs, rows=2, seed=3)
    pair = np.broadcast_to([0.3, -1.0, 0.5], (40_000, 3))
    difference = posterior.sample(generator) - posterior.sample(generator)
    distance = np.linalg.norm(np.einsum("bdk,bd->bk", difference, pair), axis=-1)
    delta = 1.9 * outputs  # far too bold, so that failures are frequent enough to count
    failed = distance > variances.fixed_radius(posterior.sd(pair), outputs, delta)
    assert failed.mean() > 0.01
    assert close_to_rate(failed, variances.fixed_violation(outputs, delta))


@pytest.mark.parametrize("both", [False, True])
def test_the_papers_radius_fails_at_the_aligned_pair_as_often_as_computed(both):
    features, delta = 10, 0.05
    posterior, *_, generator = trained(draws=20_000, features=features, outputs=1, rows=3, seed=4)
    sample = posterior.sample(generator)
    against = posterior.sample(generator) if both else posterior.mean
    worst = variances.worst_ratio(posterior, sample, against)
    radius = variances.fixed_radius(1.0, 1, delta) * (1.0 if both else 0.5)
    assert close_to_rate(worst > radius, variances.aligned_violation(features, delta, both))
    assert variances.aligned_violation(features, delta) > 10 * delta


def test_the_worst_ratio_is_attained_and_never_exceeded():
    posterior, *_, generator = trained(draws=50, features=5, outputs=3, rows=4, seed=5)
    first, second = posterior.sample(generator), posterior.sample(generator)
    worst = variances.worst_ratio(posterior, first, second)

    def ratio(pair):
        return np.linalg.norm(np.einsum("bdk,bd->bk", first - second, pair), axis=-1) / posterior.sd(pair)

    for _ in range(200):
        assert np.all(ratio(generator.standard_normal((50, 5))) <= worst * (1 + 1e-12))
    left = np.linalg.svd(np.linalg.solve(posterior.root, first - second))[0][:, :, 0]
    attained = np.linalg.solve(np.swapaxes(posterior.root, -1, -2), left[:, :, None])[:, :, 0]
    np.testing.assert_allclose(ratio(attained), worst, rtol=1e-10)


@pytest.mark.parametrize("features, outputs", [(2, 1), (10, 1), (6, 4), (24, 17)])
def test_the_uniform_radii_hold_at_the_worst_pair(features, outputs):
    delta = 0.2
    posterior, *_, generator = trained(draws=2000, features=features, outputs=outputs, rows=3, seed=6)
    worst = variances.worst_ratio(posterior, posterior.sample(generator), posterior.sample(generator))
    slack = 4 * np.sqrt(delta * (1 - delta) / len(worst))
    assert (worst > variances.uniform_radius(1.0, outputs, features, delta)).mean() <= delta + slack
    assert (worst > variances.joint_radius(1.0, outputs, features, delta)).mean() <= delta + slack
    assert variances.joint_radius(1.0, outputs, features, delta) < variances.uniform_radius(
        1.0, outputs, features, delta
    )


def test_information_gain_adds_up_to_the_determinant():
    generator, prior_sd = np.random.default_rng(7), np.array([0.4, 1.0, 3.0])
    X = generator.standard_normal((4, 25, 3))
    gain = variances.information_gain(variances.sequential_variances(X, prior_sd, 0.3), 0.3)
    np.testing.assert_allclose(gain, variances.information_gain_direct(X, prior_sd, 0.3), rtol=1e-12)


def test_the_gain_bound_is_attained_by_balanced_designs_and_by_no_others():
    features, repeats, largest, noise_sd = 4, 6, 2.5, 0.5
    balanced = np.sqrt(largest) * np.tile(np.eye(features), (repeats, 1))[None]
    bound = variances.gain_bound(features * repeats, features, largest, noise_sd)
    np.testing.assert_allclose(variances.information_gain_direct(balanced, np.ones(4), noise_sd), bound, rtol=1e-12)
    other = np.random.default_rng(8).standard_normal((50, features * repeats, features))
    other *= np.sqrt(largest) / np.linalg.norm(other, axis=-1, keepdims=True)
    assert np.all(variances.information_gain_direct(other, np.ones(4), noise_sd) < bound)


def test_the_gain_bound_needs_the_mean_of_the_prior_variances_only():
    X = np.random.default_rng(10).standard_normal((400, 30, 4)) * np.linspace(0.1, 3, 30)[:, None]
    size, gain = np.square(X).sum(axis=-1), variances.information_gain_direct(X, np.ones(4), 0.5)
    assert np.all(gain < variances.gain_bound(30, 4, size.mean(axis=1), 0.5)), "of each run"
    assert gain.mean() < variances.gain_bound(30, 4, size.mean(), 0.5), "of all runs"


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), noise_sd=st.floats(0.01, 30), features=st.integers(1, 8), n=st.integers(1, 60))
def test_the_corrected_sum_of_variances_holds(seed, noise_sd, features, n):
    X = np.random.default_rng(seed).standard_normal((3, n, features))
    largest = np.square(X).sum(axis=-1).max()
    sums = variances.sequential_variances(X, np.ones(features), noise_sd)
    gain = variances.information_gain(sums, noise_sd)
    literal, corrected = variances.variance_sum_bounds(gain, largest, noise_sd)
    assert np.all(sums.sum(axis=-1) <= corrected * (1 + 1e-9))
    np.testing.assert_allclose(corrected, noise_sd**2 * literal)


def test_the_printed_sum_of_variances_fails_for_large_noise():
    X = np.ones((1, 1000, 1))
    sums = variances.sequential_variances(X, [1.0], 10.0)
    literal, corrected = variances.variance_sum_bounds(variances.information_gain(sums, 10.0), 1.0, 10.0)
    assert literal[0] < sums.sum() / 90 and sums.sum() <= corrected[0]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    noise_sd=st.floats(0.02, 5),
    features=st.integers(1, 6),
    horizon=st.integers(1, 30),
    drift=st.floats(0, 3),
)
def test_episode_sums_hold_for_any_run(seed, noise_sd, features, horizon, drift):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((3, 12, horizon, features))
    X += drift * generator.standard_normal((3, 12, 1, features))  # pairs of an episode resemble one another
    v = variances.episode_variances(X, np.ones(features), noise_sd)
    tolerance = 1 + 1e-9
    assert np.all(v.fresh <= v.stale * tolerance)
    assert np.all(v.largest <= v.subset * tolerance), "more data cannot raise a posterior variance"
    gain = variances.information_gain(v.fresh.reshape(3, -1), noise_sd)
    small = np.minimum(1, np.sqrt(v.stale) / noise_sd).sum(axis=(1, 2))
    assert np.all(small <= variances.stale_sum_bound(12 * horizon, horizon, gain) * tolerance)
    of_subset = variances.information_gain(v.subset, noise_sd)
    cap = variances.variance_sum_bounds(of_subset, np.square(X).sum(axis=-1).max(), noise_sd)[1]
    assert np.all(v.largest.sum(axis=-1) <= cap * tolerance)


def test_thompson_sampling_starts_as_computed_and_learns():
    run = bandit.thompson(np.random.default_rng(9), draws=4000, dimension=10, steps=50)
    assert np.all(run.regret >= -1e-12)
    # at the prior the action is the direction of the sample: |w^k' a| / sigma = |w^k| is chi with d degrees of freedom
    failed = run.one_sided[:, 0] > np.sqrt(2 * np.log(2 / 0.05))
    assert close_to_rate(failed, variances.aligned_violation(10, 0.05))
    # and it is independent of w*, so the first step costs E|w*| on average
    first = run.regret[:, 0]
    assert abs(first.mean() - np.sqrt(10 - 0.5)) < 4 * first.std() / np.sqrt(len(first)) + 0.01
    assert run.regret[:, -10:].mean() < 0.6 * first.mean()


def test_information_is_bounded_by_the_expected_growth_even_where_pairs_explode():
    # s' = a s + u + eps, a ~ N(0, 1), random u: mean of I_T over runs against (d / 2) (log(1 + T C_3 / d) + 2 H kappa)
    generator, draws, episodes, horizon = np.random.default_rng(5), 200, 5, 60
    a = generator.standard_normal((draws, 1))
    pairs = np.zeros((draws, episodes, horizon, 2))
    state = np.zeros((draws, episodes))
    for i in range(horizon):
        u = generator.uniform(-1, 1, (draws, episodes))
        pairs[:, :, i] = np.stack([state, u], axis=-1)
        state = a * state + u + generator.standard_normal((draws, episodes))
    flat = pairs.reshape(draws, -1, 2)
    gain = 0.5 * np.linalg.slogdet(np.eye(2) + np.swapaxes(flat, 1, 2) @ flat)[1]
    kappa = np.maximum(0, np.log(np.abs(generator.standard_normal(10**6)))).mean()
    constant = 1 + 3 * horizon**2 * (1 + 1)  # lambda = u_max = E b^2 = sigma_f = d_s = 1, s_1 = 0
    bound = variances.gain_bound(episodes * horizon, 2, constant, 1.0) + 2 * horizon * kappa
    assert gain.mean() < bound < 3 * gain.mean()
    assert gain.max() > bound, "a single run may gain more"


def test_the_repaired_bound_forgets_the_noise_level_and_the_printed_one_does_not():
    sizes = dict(horizon=20, states=4, controls=1, largest=1.0)
    printed = [bounds.paper_bound(1e6, noise_sd=sd, **sizes) for sd in (0.1, 0.001)]
    repaired = [bounds.repaired_bound(1e6, noise_sd=sd, **sizes) for sd in (0.1, 0.001)]
    assert printed[1] / printed[0] > 50 and repaired[1] / repaired[0] < 2


def test_the_bounds_grow_as_the_theorem_says():
    sizes = dict(states=4, controls=1, noise_sd=0.5, largest=1.0)

    def exponent(bound, first, second):
        return np.log(bound(**{**sizes, **second}) / bound(**{**sizes, **first})) / np.log(10)

    in_T = (dict(steps=1e12, horizon=10), dict(steps=1e13, horizon=10))
    in_H = (dict(steps=1e13, horizon=10), dict(steps=1e13, horizon=100))
    assert 0.5 < exponent(bounds.paper_bound, *in_T) < 0.56 and 0.5 < exponent(bounds.repaired_bound, *in_T) < 0.56
    assert 1.4 < exponent(bounds.paper_bound, *in_H) < 1.5 and 0.95 < exponent(bounds.repaired_bound, *in_H) < 1.05
    # where systems are often unstable the gain is of order H, and the power of H is the theorem's own
    unstable = (dict(steps=1e16, horizon=H, largest=H**2, expansion=0.12) for H in (1e3, 1e4))
    assert 1.4 < exponent(bounds.repaired_bound, *unstable) < 1.5
    useful = bounds.useful_from(bounds.repaired_bound, 10, **sizes)
    assert bounds.repaired_bound(useful, 10, **sizes) == pytest.approx(useful)


def test_the_repaired_bound_is_its_lemmas_put_together():
    """2 / sqrt(pi) H gamma: Lemma 1's slope times the radius at delta = 1 / (K T), per unit of sigma_k / sigma_f."""
    T, H, states, controls, sd, kappa = 6e4, 30, 4, 2, 0.3, 0.05
    gain = variances.gain_bound(T, 6, 2.5, sd) + 6 * H * kappa  # (b) of Theorem 1': d / 2 (log(...) + 2 H kappa)
    slope = bounds.lipschitz(sd) * variances.joint_radius(sd, states, 6, 1 / (T / H * T))
    exact = H * slope * (2 * np.sqrt(T * gain / np.log(2)) + 2 * H * gain / np.log(2)) + 2
    assert bounds.repaired_bound(T, H, states, controls, sd, 2.5, kappa) == pytest.approx(exact)
    uniform = variances.uniform_radius(sd, states, 6, 0.1)
    assert uniform == pytest.approx(np.sqrt(2) * variances.joint_radius(sd, states, 6, 0.05)), "an event for each model"
