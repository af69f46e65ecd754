"""The linear-quadratic problem: identities, each against an independent computation."""

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import solve_discrete_are
from scipy.optimize import minimize

from psrl.theory import lqr

Q, R = np.diag([1.0, 0.5, 2.0]), np.array([[0.7, 0.1], [0.1, 0.4]])
HORIZON = 6


@pytest.fixture
def systems():
    """A batch [5, 2] of random systems with S = 3, U = 2."""
    generator = np.random.default_rng(0)
    return 0.5 * generator.standard_normal((5, 2, 3, 3)), generator.standard_normal((5, 2, 3, 2))


def test_each_batch_entry_is_its_own_problem(systems):
    A, B = systems
    batch = lqr.riccati(A, B, Q, R, HORIZON, noise_sd=0.3)
    single = lqr.riccati(A[3, 1], B[3, 1], Q, R, HORIZON, noise_sd=0.3)
    np.testing.assert_allclose(batch.K[:, 3, 1], single.K, rtol=1e-12)
    np.testing.assert_allclose(batch.cost.P[:, 3, 1], single.cost.P, rtol=1e-12)
    np.testing.assert_allclose(batch.cost.c[:, 3, 1], single.cost.c, rtol=1e-12)


def test_riccati_agrees_with_direct_minimisation_over_open_loop_controls(systems):
    """Without noise the best open-loop sequence of controls attains the closed-loop cost."""
    A, B, start = systems[0][0, 0], systems[1][0, 0], np.array([1.0, -2.0, 0.5])

    def cost(flat):
        state, total = start, 0.0
        for control in flat.reshape(HORIZON, 2):
            total += state @ Q @ state + control @ R @ control
            state = A @ state + B @ control
        return total

    best = minimize(cost, np.zeros(2 * HORIZON), tol=1e-12).fun
    assert lqr.riccati(A, B, Q, R, HORIZON).cost.at(start) == pytest.approx(best, rel=1e-7)


def test_long_horizon_reaches_the_algebraic_riccati_equation(systems):
    A, B = systems[0][1, 0], systems[1][1, 0]
    P = lqr.riccati(A, B, Q, R, 200).cost.P[0]
    np.testing.assert_allclose(P, solve_discrete_are(A, B, Q, R), rtol=1e-9)


def test_no_perturbed_policy_beats_the_optimal_one(systems):
    A, B = systems
    optimal = lqr.riccati(A, B, Q, R, HORIZON, noise_sd=0.3)
    generator = np.random.default_rng(1)
    for scale in (1e-3, 0.1, 1.0):
        other = optimal.K + scale * generator.standard_normal(optimal.K.shape)
        gap = lqr.value(A, B, other, Q, R, 0.3).P[0] - optimal.cost.P[0]
        assert np.linalg.eigvalsh(gap).min() > -1e-10


def test_noise_changes_the_constant_and_not_the_gains(systems):
    A, B = systems
    quiet, loud = (lqr.riccati(A, B, Q, R, HORIZON, noise_sd=sd) for sd in (0.0, 0.5))
    np.testing.assert_array_equal(quiet.K, loud.K)
    assert np.all(quiet.cost.c == 0) and np.all(loud.cost.c[0] > 0)


def test_value_is_the_mean_cost_of_rollouts(systems):
    """Policy evaluation of a *mismatched* policy against Monte Carlo, within four standard errors."""
    A, B = systems[0][0], systems[1][0]
    K = lqr.riccati(A[1], B[1], Q, R, HORIZON).K
    start = np.array([1.0, 0.5, -1.0])
    exact = lqr.value(A[0], B[0], K, Q, R, 0.4).at(start)
    rollouts = np.broadcast_to(start, (20_000, 3))
    states, controls, costs = lqr.simulate(A[0], B[0], K, Q, R, 0.4, rollouts, np.random.default_rng(2))
    assert states.shape == (HORIZON + 1, 20_000, 3) and controls.shape == (HORIZON, 20_000, 2)
    total = costs.sum(axis=0)
    assert abs(total.mean() - exact) < 4 * total.std() / np.sqrt(len(total))


def test_value_equals_the_sum_of_expected_costs_along_the_second_moments(systems):
    """Backwards (cost-to-go) and forwards (moments) are two ways to one number."""
    A, B = systems
    K = lqr.riccati(B @ R @ np.swapaxes(B, -1, -2) * 0.1 + A, B, Q, R, HORIZON).K
    initial = np.diag([1.0, 2.0, 0.5])
    backwards = lqr.value(A, B, K, Q, R, 0.3).mean(initial)
    moments = lqr.covariances(A, B, K, initial, 0.3)
    stage = Q + np.swapaxes(K, -1, -2) @ R @ K
    forwards = np.einsum("h...ij,h...ji->...", stage, moments[:-1])
    np.testing.assert_allclose(backwards, forwards, rtol=1e-12)


def test_noise_level_may_differ_between_systems(systems):
    A, B = systems
    K = lqr.riccati(A, B, Q, R, HORIZON).K
    sd = np.linspace(0.1, 1.0, 10).reshape(5, 2)
    together = lqr.value(A, B, K, Q, R, sd)
    assert together.c[0, 4, 0] == pytest.approx(lqr.value(A[4, 0], B[4, 0], K[:, 4, 0], Q, R, sd[4, 0]).c[0])
    states, _, _ = lqr.simulate(A, B, K, Q, R, sd, np.zeros((5, 2, 3)), np.random.default_rng(0))
    assert states.shape == (HORIZON + 1, 5, 2, 3)


def test_the_best_gain_depends_on_the_steps_that_remain(systems):
    """Nothing is worth doing at the last step, something is before: a stationary policy cannot be optimal."""
    K = lqr.riccati(*systems, Q, R, HORIZON).K
    assert np.abs(K[-1]).max() == 0
    assert np.abs(K[0]).max() > 0.1


def test_largest_eigenvalue_saturates_exactly_when_the_system_is_stabilisable():
    """Appendix B: spectral radius 1.2 twice; lambda_1 is exponential in H only where no control reaches."""
    A = np.array([[[1.2, 1.0], [0.0, 1.2]], [[1.2, 0.0], [0.0, 0.5]]])
    B = np.array([[0.0], [1.0]])
    assert list(lqr.stabilisable(A, B)) == [True, False]
    eigenvalue = lqr.largest_eigenvalues(A, B, np.eye(2), np.eye(1), 40)
    assert eigenvalue.shape == (40, 2)
    assert eigenvalue[39, 0] == pytest.approx(eigenvalue[19, 0], rel=1e-3)
    # an unreached mode costs sum_{j<H} 1.2^{2j} whatever is done
    for length in (5, 20, 40):
        assert eigenvalue[length - 1, 1] == pytest.approx((1.2 ** (2 * length) - 1) / 0.44, rel=1e-12)


def test_largest_eigenvalue_of_a_short_episode_is_its_own_solution(systems):
    A, B = systems
    every = lqr.largest_eigenvalues(A, B, Q, R, 7)
    for length in (1, 4, 7):
        P = lqr.riccati(A, B, Q, R, length).cost.P[0]
        np.testing.assert_allclose(every[length - 1], np.linalg.eigvalsh(P)[..., -1], rtol=1e-12)


def test_the_mean_of_the_eigenvalue_over_a_prior_explodes_and_its_median_does_not():
    mean, median = lqr.eigenvalues_over_a_prior(1.2, 80)
    # the same by the scalar recursion, at the quantiles of |b| for a short episode
    b, P = stats.norm.ppf(0.5 + 0.5 * (np.arange(200_000) + 0.5) / 200_000), 0.0
    for _ in range(5):
        P = 1 + 1.2**2 * P / (1 + b**2 * P)
    assert mean[4] == pytest.approx(P.mean(), rel=1e-4) and median[4] == pytest.approx(np.median(P), rel=1e-4)
    # lambda_1 is about 1.2^(2H) for |b| < 1.2^-H and about 0.44 / b^2 above, so the mean is of order 1.2^H
    np.testing.assert_allclose(mean[[39, 59, 79]] / mean[[19, 39, 59]], 1.2**20, rtol=0.05)
    assert median[79] == pytest.approx(median[19], rel=1e-6)


def test_more_controls_tame_the_mean_of_the_eigenvalue():
    """P(|b| < e) is of order e^m for m controls, and lambda_1 of order 1 / |b|^2 above 1.2^-H, 1.2^(2H) below."""
    draws = np.linalg.norm(np.random.default_rng(0).standard_normal((400_000, 2)), axis=1)
    P = 0.0
    for _ in range(5):
        P = 1 + 1.2**2 * P / (1 + draws**2 * P)
    two, _ = lqr.eigenvalues_over_a_prior(1.2, 80, controls=2)
    assert two[4] == pytest.approx(P.mean(), abs=5 * P.std() / np.sqrt(len(P)))
    np.testing.assert_allclose(np.diff(two[[19, 39, 59, 79]]), two[39] - two[19], rtol=0.01)
    three, _ = lqr.eigenvalues_over_a_prior(1.2, 80, controls=3)
    assert three[79] == pytest.approx(three[39], rel=1e-3)


def test_stable_modes_need_no_control():
    assert lqr.stabilisable(0.9 * np.eye(2), np.zeros((2, 1)))
    assert not lqr.stabilisable(np.eye(2), np.zeros((2, 1)))
