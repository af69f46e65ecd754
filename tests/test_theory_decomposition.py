"""Sections 3.1 and 3.2: identities to rounding, closed forms against quadrature, controls that must fail."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from psrl.theory import decomposition, lqr, noise

HORIZON, SD = 7, 0.3


def random_model(generator, draws=400, S=3, U=2):
    def cost(size):
        root = generator.standard_normal((draws, size, size))
        return root @ np.swapaxes(root, -1, -2) / size + 0.2 * np.eye(size)

    A, B = 0.4 * generator.standard_normal((draws, S, S)), 0.5 * generator.standard_normal((draws, S, U))
    return decomposition.Model(A, B, cost(S), cost(U))


@pytest.fixture
def pair():
    generator = np.random.default_rng(0)
    return random_model(generator), random_model(generator)


def decomposed(sampled, true, K, moments):
    return sum(decomposition.along(form, moments) for form in decomposition.one_step_differences(sampled, true, K)).sum(
        0
    )


@pytest.mark.parametrize("policy", ["optimal in the sample", "arbitrary"])
def test_decomposition_is_exact_for_any_policy(pair, policy):
    sampled, true = pair
    K = lqr.riccati(*sampled, HORIZON).K
    if policy == "arbitrary":
        K = 0.2 * np.random.default_rng(1).standard_normal(K.shape)
    initial = np.diag([1.0, 2.0, 0.5])
    gap = sampled.value(K, SD, initial) - true.value(K, SD, initial)
    total = decomposed(sampled, true, K, lqr.covariances(true.A, true.B, K, initial, SD))
    scale = np.abs(sampled.value(K, SD, initial)) + np.abs(true.value(K, SD, initial))
    assert np.max(np.abs(total - gap) / scale) < 1e-12


def test_the_trajectory_must_be_the_true_one(pair):
    """With the sampled model's own trajectory the sum misses the gap; with both roles exchanged it is exact again."""
    sampled, true = pair
    K = lqr.riccati(*sampled, HORIZON).K
    gap = sampled.value(K, SD, np.eye(3)) - true.value(K, SD, np.eye(3))
    own = lqr.covariances(sampled.A, sampled.B, K, np.eye(3), SD)
    assert np.median(np.abs(decomposed(sampled, true, K, own) / gap - 1)) > 0.1
    np.testing.assert_allclose(-decomposed(true, sampled, K, own), gap, rtol=1e-9, atol=1e-9)


def test_decomposition_holds_along_simulated_trajectories(pair):
    sampled, true = (decomposition.Model(*(m[5] for m in model)) for model in pair)
    K = lqr.riccati(*sampled, HORIZON).K
    start = np.array([1.0, -0.5, 0.3])
    rollouts = np.broadcast_to(start, (20_000, 3))
    states, _, _ = lqr.simulate(true.A, true.B, K, true.Q, true.R, SD, rollouts, np.random.default_rng(2))
    forms = sum(decomposition.one_step_differences(sampled, true, K))
    sums = np.einsum("hni,hij,hnj->n", states[:-1], forms, states[:-1])
    exact = sampled.value(K, SD, np.outer(start, start)) - true.value(K, SD, np.outer(start, start))
    assert abs(sums.mean() - exact) < 4 * sums.std() / np.sqrt(len(sums))


@pytest.mark.parametrize("growth", [0.5, 1.0, 1.3, 4.0])
def test_future_value_is_the_smoothed_value(growth):
    for mean in (-1.1, 0.05, 0.6):
        smooth = quad(
            lambda e, m=mean: decomposition.sign_value(m + 0.7 * e, growth, 6, 0.7) * np.exp(-e * e / 2),
            -9, 9, points=[-mean / 0.7], limit=500,
        )[0] / np.sqrt(2 * np.pi)  # fmt: skip
        assert decomposition.sign_future(mean, growth, 6, 0.7) == pytest.approx(smooth, rel=1e-7)


def test_value_by_simulation():
    generator = np.random.default_rng(3)
    state = np.full(200_000, 0.8)
    total = np.zeros_like(state)
    for _ in range(5):
        total += np.sign(state)
        state = 1.3 * state + 0.7 * generator.standard_normal(state.shape)
    exact = decomposition.sign_value(0.8, 1.3, 5, 0.7)
    assert abs(total.mean() - exact) < 4 * total.std() / np.sqrt(len(total))


@pytest.mark.parametrize("growth", [0.3, 1.0, 1.5, 30.0])
@pytest.mark.parametrize("steps", [1, 4, 25])
def test_lemma_two_holds_with_the_steps_that_remain(growth, steps):
    """|U(f^k) - U(f^*)| <= (H-i) R_max ||P^k - P^*|| <= C (H-i) R_max |f^k - f^*| for all pairs of means."""
    mean = np.linspace(-3, 3, 121)
    gap = np.abs(np.subtract.outer(mean, mean))
    change = np.abs(np.subtract.outer(*2 * [decomposition.sign_future(mean, growth, steps, 0.6)]))
    assert np.all(change <= steps * noise.gaussian_l1(gap, 0.6) + 1e-9)
    assert np.all(noise.gaussian_l1(gap, 0.6) <= np.sqrt(2 / np.pi) / 0.6 * gap + 1e-12)


def test_lemma_two_is_tight_in_the_limit_and_not_before():
    """Fraction of C (H-i) R_max attained: 1 as the state expands, steps^-1/2 like for a random walk."""
    assert decomposition.gains(1e4, 50).mean() == pytest.approx(1, abs=1e-6)
    tiny = 1e-6
    slope = decomposition.sign_future(tiny, 3.0, 10, 0.5) / tiny
    assert slope / (np.sqrt(2 / np.pi) / 0.5 * 10) == pytest.approx(decomposition.gains(3.0, 10).mean(), rel=1e-6)
    walk = [decomposition.gains(1.0, steps).sum() / np.sqrt(steps) for steps in (100, 10_000)]
    assert walk == pytest.approx([2, 2], rel=0.1)
    # a stable system forgets: the constant stops growing
    assert decomposition.gains(0.5, 200).sum() == pytest.approx(decomposition.gains(0.5, 40).sum(), rel=1e-9)


DRAWS, EPISODES = 4000, 4


@pytest.fixture(scope="module")
def identity():
    return decomposition.posterior_identity(DRAWS, EPISODES, np.random.default_rng(5))


def conditional_z(result):
    """z of the log costs, centred by a function of the history: the identity given H_k, not only on average."""
    history = np.log(-result.mean_model)
    centred = history - history.mean(axis=1, keepdims=True)
    return decomposition.z_score(((np.log(-result.true) - np.log(-result.sampled)) * centred).mean(axis=0))


def test_posterior_samples_satisfy_the_identity(identity):
    assert abs(decomposition.z_score((identity.true - identity.sampled).mean(axis=0))) < 3.5
    assert abs(conditional_z(identity)) < 3.5


def test_regret_is_the_mean_of_the_model_gap(identity):
    """E[V^*_* - V^*_k] = E[V^k_k - V^*_k]: the reason why only the second difference needs a bound."""
    assert np.all(identity.true >= identity.achieved - 1e-9)
    difference = (identity.true - identity.achieved) - (identity.sampled - identity.achieved)
    assert abs(decomposition.z_score(difference.mean(axis=0))) < 3.5


def test_the_posterior_mean_does_not_satisfy_it(identity):
    assert decomposition.z_score((identity.true - identity.mean_model).mean(axis=0)) < -10


@pytest.mark.parametrize("wrong", [{"prior_scale": 0.5}, {"prior_scale": 2.0}, {"noise_scale": 3.0}])
def test_wrong_beliefs_fail_the_identity(wrong):
    result = decomposition.posterior_identity(DRAWS, EPISODES, np.random.default_rng(6), **wrong)
    assert abs(decomposition.z_score((np.log(-result.true) - np.log(-result.sampled)).mean(axis=0))) > 5


def test_a_stale_sample_passes_on_average_and_fails_given_the_history():
    result = decomposition.posterior_identity(DRAWS, EPISODES, np.random.default_rng(7), resample=False)
    assert abs(decomposition.z_score((result.true - result.sampled).mean(axis=0))) < 3.5
    assert conditional_z(result) > 5


def test_no_stationary_gain_attains_the_time_indexed_optimum():
    one = np.eye(1)
    optimal = lqr.riccati(1.1 * one, one, one, one, 5, 0.5).cost.mean(one)

    def stationary(gain):
        return lqr.value(1.1 * one, one, np.full((5, 1, 1), gain), one, one, 0.5).mean(one)

    assert minimize_scalar(stationary, bounds=(-2, 0), method="bounded").fun > 1.01 * optimal
