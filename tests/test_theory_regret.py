"""Exact regret: each solver against a second way to the same number, each learner against what it must do."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from psrl.config import ConfigError
from psrl.theory import bounds, bump, chain, growth, lqr, regret, study, variances


def systems(problem, draws, seed):
    generator = np.random.default_rng(seed)
    size = (draws, problem.states + problem.controls, problem.states)
    return problem.split(generator.standard_normal(size) * problem.prior_sd[:, None])


# Linear-quadratic problems


@pytest.mark.parametrize("rule", regret.RULES)
def test_regret_is_never_negative_and_repeats(rule):
    first, second = (regret.regrets(regret.learn(regret.Problem(), rule, 40, seed=1), 30) for _ in range(2))
    assert first.min() > -1e-10
    np.testing.assert_array_equal(first, second)


def test_certainty_equivalence_never_acts_under_a_zero_mean_prior():
    problem = regret.Problem()
    for episode in islice(regret.learn(problem, "mean", 20, seed=2), 15):
        assert not episode.pairs[:, :, problem.states :].any()
    each = regret.regrets(regret.learn(problem, "mean", 20, seed=2), 15)
    np.testing.assert_allclose(each, each[:, :1] * np.ones(15), rtol=1e-10)


def test_posterior_samples_and_the_mean_with_a_random_start_learn():
    idle = regret.regrets(regret.learn(regret.Problem(), "mean", 100, seed=3), 1).mean()
    for rule in ("psrl", "mean-random", "per-step"):
        each = regret.regrets(regret.learn(regret.Problem(), rule, 100, seed=3), 150)
        assert each[:, -30:].mean() < 0.4 * idle


def test_a_prior_around_persistence_learns_the_same_deviations():
    """Only what differs from the prior mean is learned: with a narrow prior the first plan is nearly optimal."""
    problem = regret.Problem(persistence=0.9, prior_sd_A=1e-6, prior_sd_B=1e-6)
    A, _ = regret.truths(problem, 10, seed=4)
    np.testing.assert_allclose(A, np.broadcast_to(0.9 * np.eye(2), A.shape), atol=1e-5)
    assert regret.regrets(regret.learn(problem, "psrl", 10, seed=4), 3).max() < 1e-9
    wide = regret.Problem(persistence=0.9, prior_sd_A=0.1)
    each = regret.regrets(regret.learn(wide, "psrl", 60, seed=4), 80)
    assert np.median(each[:, -10:]) < 0.1 * np.median(each[:, :3])


def test_dither_costs_what_simulation_says():
    problem, sd = regret.Problem(states=2, controls=2, horizon=4), 0.6
    (A, B), (Q, R) = systems(problem, 1, seed=4), problem.costs
    K = lqr.riccati(A, B, Q, R, problem.horizon).K
    exact = regret.dither_cost(lqr.value(A, B, K, Q, R), B, R, sd)[0]
    generator, n, total = np.random.default_rng(5), 100_000, 0.0
    state = np.zeros((n, 2))  # no start and no other noise: all that is left is the dither
    for gain in K[:, 0]:
        control = state @ gain.T + sd * generator.standard_normal((n, 2))
        total = total + np.square(state).sum(axis=-1) + np.square(control).sum(axis=-1)
        state = state @ A[0].T + control @ B[0].T
    assert abs(total.mean() - exact) < 4 * total.std() / np.sqrt(n)


def test_a_receding_plan_that_reaches_the_end_is_optimal_and_a_short_one_is_not():
    problem = regret.Problem(states=3, controls=2, horizon=12)
    system, costs = systems(problem, 30, seed=6), problem.costs
    full = lqr.riccati(*system, *costs, 12)
    np.testing.assert_array_equal(regret.receding(system, costs, 12, 12, stop=True), full.K)
    assert not regret.receding(system, costs, 12, 1).any(), "with one step to go no control pays"
    # the untruncated plan of any step is the first gain of an episode as long as the plan
    np.testing.assert_allclose(regret.receding(system, costs, 12, 5)[7], lqr.riccati(*system, *costs, 5).K[0])
    gaps = []
    for lookahead in (1, 2, 4, 12):
        K = regret.receding(system, costs, 12, lookahead, stop=True)
        gap = lqr.value(*system, K, *costs, 1.0).mean(np.eye(3)) - lqr.riccati(*system, *costs, 12, 1.0).cost.mean(
            np.eye(3)
        )
        assert gap.min() > -1e-10
        gaps.append(gap.mean())
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3] == pytest.approx(0, abs=1e-12)


# The problem with bounded rewards


def bump_weights(draws, controls, seed):
    return np.random.default_rng(seed).standard_normal((draws, 1 + controls)) * bump.Problem(controls=controls).prior_sd


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), scale=st.floats(0.001, 3))
def test_the_best_mean_within_reach_is_that_of_a_dense_search(seed, scale):
    problem = bump.Problem(spacing=0.5)
    generator = np.random.default_rng(seed)
    weights = generator.standard_normal((2, 3)) * [1.5, scale, scale]
    W = generator.standard_normal((2, len(problem.grid)))
    reach = bump.Reach(problem, weights)
    best, mean = reach.best(W)
    shares = np.linspace(0, 1, 801)
    dense = reach.low[:, :, None] + shares * (reach.high - reach.low)[:, :, None]
    searched = bump.Knots(problem, dense.reshape(2, -1))(W).reshape(dense.shape).max(axis=-1)
    assert np.all(best >= searched - 1e-12)
    np.testing.assert_allclose(bump.Knots(problem, mean)(W), best, atol=1e-9)
    assert np.all((mean >= reach.low) & (mean <= reach.high))


def test_dynamic_programming_agrees_with_its_policy_and_beats_others():
    problem, weights = bump.Problem(controls=3, horizon=6), bump_weights(40, 3, seed=7)
    solution = bump.solve(problem, weights)
    direction = np.broadcast_to(bump.unit(weights[:, 1:]), (6, 40, 3))
    np.testing.assert_allclose(bump.evaluate(problem, weights, solution.push, direction), solution.V, atol=1e-12)
    generator = np.random.default_rng(8)
    for _ in range(20):
        push = generator.uniform(-1, 1, solution.push.shape)
        other = bump.unit(generator.standard_normal(direction.shape))
        assert np.all(bump.evaluate(problem, weights, push, other) <= solution.V + 1e-12)


def test_two_steps_have_a_closed_form():
    problem, weights = bump.Problem(controls=2, horizon=2, spacing=0.02), bump_weights(50, 2, seed=9)
    # E exp(-(m + eps - t)^2 / 2 w^2) = w / sqrt(w^2 + sd^2) exp(-(m - t)^2 / 2 (w^2 + sd^2)); from s = 0, |m| <= |b|
    spread = problem.width**2 + problem.noise_sd**2
    gap = np.maximum(problem.target - np.linalg.norm(weights[:, 1:], axis=-1), 0)
    second = problem.width / np.sqrt(spread) * np.exp(-(gap**2) / (2 * spread))
    exact = np.exp(-0.5 * (problem.target / problem.width) ** 2) + second
    np.testing.assert_allclose(bump.solve(problem, weights).V[0, :, len(problem.grid) // 2], exact, atol=1e-4)


def test_only_the_length_of_b_matters_and_the_grid_is_fine_enough():
    few = bump_weights(20, 2, seed=10)
    many = np.zeros((20, 9))
    many[:, 0], many[:, 5] = few[:, 0], np.linalg.norm(few[:, 1:], axis=-1)
    values = [bump.solve(bump.Problem(controls=n), w).V[0] for n, w in ((2, few), (8, many))]
    np.testing.assert_allclose(*values, atol=1e-12)
    fine = bump.solve(bump.Problem(spacing=0.05, extent=8.0), few).V[0, :, 160]
    np.testing.assert_allclose(values[0][:, 30], fine, atol=0.01)


def test_values_are_those_of_simulated_episodes():
    problem, weights = bump.Problem(controls=1, horizon=4, spacing=0.05), np.array([[0.6, -1.1]])
    solution, n = bump.solve(problem, weights), 40_000
    generator, state, total = np.random.default_rng(11), np.zeros((1, n)), 0.0
    for push in solution.push:
        total = total + np.exp(-0.5 * (state - problem.target) ** 2)
        control = -bump.Knots(problem, state)(push)  # along b / |b| = -1
        state = 0.6 * state - 1.1 * control + problem.noise_sd * generator.standard_normal((1, n))
    exact = solution.V[0, 0, len(problem.grid) // 2]
    assert abs(total.mean() - exact) < 4 * total.std() / np.sqrt(n) + 2e-3  # the grid's share


@pytest.mark.parametrize("rule", bump.RULES)
def test_bump_regret_is_never_negative_and_only_some_learn(rule):
    each = regret.regrets(bump.learn(bump.Problem(controls=3), rule, 60, seed=12), 80)
    assert each.min() > -1e-9
    late, early = each[:, -20:].mean(), each[:, 1:3].mean()
    assert late < 0.3 * early if rule in ("psrl", "per-step") else late > 0.3 * early


def test_the_ladder_descends_to_the_regret():
    problem = bump.Problem(controls=7)
    episodes = list(islice(bump.learn(problem, "psrl", 60, seed=13), 60))
    sd, error = (np.stack([getattr(e, name) for e in episodes], axis=1) for name in ("sd", "error"))
    rungs = bounds.ladder(sd, error, problem.noise_sd, features=8)
    total = sum(e.regret for e in episodes)
    for rung in rungs.values():
        # in expectation: the realised optimism V^k_k - V* has mean zero, not value zero
        assert (rung - total).mean() > 4 * (rung - total).std() / np.sqrt(len(total))
    steps = 60 * problem.horizon
    size = np.mean([np.square(e.pairs * problem.prior_sd).sum(axis=-1) for e in episodes])
    a_priori = bounds.repaired_bound(steps, problem.horizon, 1, 7, problem.noise_sd, largest=size)
    assert rungs["an L1 distance is at most 2"].max() < a_priori


# The chain


@pytest.mark.parametrize("rule", chain.RULES)
def test_the_chance_to_open_the_door_is_that_of_the_walk(rule):
    length, n, generator = 3, 40_000, np.random.default_rng(14)
    mean, sd = np.full(n, 0.4), np.full(n, 0.8)
    samples = mean[:, None] + sd[:, None] * generator.standard_normal((n, length))
    right = {
        "psrl": np.repeat(samples[:, :1] > 0, length, axis=1),
        "per-step": samples > 0,
        "mean": np.ones((n, length), dtype=bool),
        "dither": (generator.random((n, length)) > chain.EPSILON) | (generator.random((n, length)) < 0.5),
    }[rule].all(axis=1)
    chance = chain.open_chance(rule, length, mean, sd)[0]
    assert abs(right.mean() - chance) <= 4 * np.sqrt(chance * (1 - chance) / n)


def test_length_is_nothing_to_one_sample_per_episode_and_everything_to_one_per_step():
    short, long = (chain.regret("psrl", length, 500, 100, seed=15) for length in (2, 20))
    np.testing.assert_array_equal(short, long)
    np.testing.assert_array_equal(
        chain.regret("per-step", 1, 500, 100, seed=15), chain.regret("psrl", 1, 500, 100, seed=15)
    )
    home = chain.regret("mean", 20, 500, 100, seed=15)
    np.testing.assert_allclose(chain.regret("per-step", 20, 500, 100, seed=15), home, atol=1e-5)


@pytest.mark.parametrize("learner", [regret, bump])
def test_an_unknown_rule_is_refused_by_name(learner):
    with pytest.raises(ConfigError, match="'greedy' is unknown; valid: psrl"):
        next(learner.learn(learner.Problem(), "greedy", 2, seed=0))


# Studies and slopes


def test_slopes_recover_an_exponent_and_their_interval_covers_it():
    generator, x = np.random.default_rng(16), 2.0 ** np.arange(4, 10)
    np.testing.assert_allclose(growth.slope(x, 3 * x**0.5), 0.5, rtol=1e-12)
    covered = 0
    for _ in range(100):
        blocks = 3 * x**0.5 * generator.gamma(4, 0.25, (25, len(x)))
        estimate = growth.bootstrap_slope(x, blocks, generator, replicates=300)
        covered += estimate.low <= 0.5 <= estimate.high
    assert covered >= 84  # 95% nominal, less what 25 blocks and 100 trials take


SMALL = dict(rules=("psrl",), vary="dimension", values=(3, 5), episodes=(9, 5), draws=50, seed=17, fixed={})


@pytest.mark.parametrize("kind", ["bandit", "lqr", "bump"])
def test_a_study_is_tidy_cumulative_and_repeats(kind):
    frame = study.table(study.Study(kind=kind, **SMALL))
    assert frame.equals(study.table(study.Study(kind=kind, **SMALL)))
    assert set(frame.d) == {3, 5} and len(frame) == 25 * frame.groupby(["d", "episodes"]).ngroups
    x, blocks = study.blocks(frame, "episodes", d=3, rule="psrl")
    assert x[-1] == 9 and blocks.shape == (25, len(x)) and np.all(np.diff(blocks, axis=1) >= -1e-9)
    assert np.all(frame.steps == frame.episodes * frame.H)


@pytest.mark.parametrize(
    "change, complaint",
    [
        (dict(rules=["greedy"]), "rules holds 'greedy'; valid for lqr"),
        (dict(episodes=[9]), "episodes has 1 numbers; valid: one for each of the 2"),
        (dict(draws=51), "draws is 51; valid: a multiple of 25"),
        (dict(kind="maze"), "kind is 'maze'; valid: bandit, lqr, bump, chain"),
    ],
)
def test_an_impossible_study_is_refused_by_name(change, complaint, monkeypatch):
    values = {"kind": "lqr", **SMALL, **change}
    monkeypatch.setattr(study, "read_params", lambda: {"theory": {"mine": values}})
    with pytest.raises(ConfigError, match=complaint):
        study.load("mine")
    with pytest.raises(ConfigError, match="'other' is unknown; valid: mine"):
        study.load("other")


def test_the_ladder_begins_with_lemma_three_as_printed_and_the_uniform_radius():
    sd = np.random.default_rng(18).uniform(0.1, 2, (3, 7, 4))
    T, C, left = 28, bounds.lipschitz(0.5), np.array([3, 2, 1, 0])
    printed, own, uniform, *_ = bounds.ladder(sd, sd, 0.5, features=6).values()
    radius = variances.fixed_radius(sd, 1, 1 / (2 * T**2))  # log(4 T d_s / delta) at delta = 1 / T
    np.testing.assert_allclose(printed, 2 * C * 4**2 * radius.max(axis=-1).sum(axis=-1))
    np.testing.assert_allclose(own, C * (left * radius).sum(axis=(1, 2)))
    joint = variances.joint_radius(sd, 1, 6, 1 / (7 * T))  # all pairs of all 7 episodes with probability 1 - 1 / T
    np.testing.assert_allclose(uniform, C * (left * joint).sum(axis=(1, 2)))


def test_the_chain_s_posterior_is_calibrated():
    """Phi(m / s) is how often theta is positive, among walks it calls likely as among those it calls unlikely."""
    theta = np.random.default_rng([18, 0]).standard_normal(20_000)
    chance = (theta > 0) - chain.regret("psrl", 5, 20_000, 10, seed=18)[:, -1] / theta
    for likely in (chance > 0.5, chance < 0.5):
        gap = (theta > 0)[likely] - chance[likely]
        assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(len(gap))


def test_the_variance_of_decaying_dither_falls_like_one_over_root_k():
    problem = regret.Problem()
    posterior = regret.Posterior(2, problem.prior_sd, problem.states, problem.noise_sd)
    sds = [regret._gains(problem, "dither-decay", k, posterior, None)[1] for k in range(20)]
    np.testing.assert_allclose(np.square(sds), 0.5**2 / np.sqrt(np.arange(1, 21)))
    assert regret._gains(problem, "dither", 9, posterior, None)[1] == 0.5


def test_intervals_of_growth_have_the_width_of_1_96_standard_errors():
    generator, x = np.random.default_rng(19), 2.0 ** np.arange(6)
    mean, half = growth.mean_interval(generator.normal(5, 1, (25, 4000)))
    exact = 1 - 2 * stats.t.sf(1.96, 24)
    assert abs((np.abs(mean - 5) < half).mean() - exact) < 4 * np.sqrt(exact * (1 - exact) / 4000)
    blocks = x**0.5 * generator.normal(1, 0.01, (25, 6))  # so narrow that the slope is linear in them
    found = growth.bootstrap_slope(x, blocks, generator)
    assert found.high - found.low == pytest.approx(2 * 1.96 * growth.slope(x, blocks).std() / 5, rel=0.1)
