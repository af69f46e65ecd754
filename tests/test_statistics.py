"""Statistics by identities, closed forms, and what intervals cover on data whose truth is known."""

import numpy as np
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from psrl import statistics
from psrl.statistics import Interval, bootstrap, iqm, probability_of_improvement

numbers = st.floats(-1e3, 1e3, width=32)
trials = arrays(float, st.integers(2, 9), elements=numbers)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_iqm_of_five_is_the_mean_of_the_middle_three():
    assert iqm(np.array([100.0, 2.0, -50.0, 4.0, 3.0])) == pytest.approx(3.0)


@given(trials, st.randoms())
def test_iqm_is_the_mean_of_the_middle_in_any_order(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    assert iqm(np.array(shuffled)) == pytest.approx(iqm(values), abs=1e-9)
    left_out = len(values) // 4  # on each side
    assert iqm(values) == pytest.approx(np.sort(values)[left_out : len(values) - left_out].mean(), abs=1e-9)


@given(trials, trials)
def test_probability_of_improvement_is_mann_and_whitney_s_u_and_complementary(x, y):
    found = probability_of_improvement(x, y)
    assert found == pytest.approx(stats.mannwhitneyu(x, y, method="asymptotic").statistic / (len(x) * len(y)))
    assert found + probability_of_improvement(y, x) == pytest.approx(1)


def test_probability_of_improvement_of_two_normals():
    x, y = rng(1).normal(1.0, 1.0, 600), rng(2).normal(0.0, 1.0, 600)
    exact = stats.norm.cdf(1 / np.sqrt(2))
    assert abs(probability_of_improvement(x, y) - exact) < 4 * np.sqrt(2 * exact * (1 - exact) / 600)
    # only the order of the scores counts
    assert probability_of_improvement(np.exp(x), np.exp(y)) == probability_of_improvement(x, y)


@given(arrays(float, st.integers(1, 8), elements=st.floats(-0.5, 1.5, width=32)))
def test_a_profile_falls_and_its_area_is_the_mean_score(values):
    levels = np.linspace(0, 1, 4001)
    profile = statistics.performance_profile(values, levels)
    assert np.all(np.diff(profile.estimate) <= 0)
    # area of P(X >= level) over [0, 1] is E[min(max(X, 0), 1)]
    assert np.trapezoid(profile.estimate, levels) == pytest.approx(np.clip(values, 0, 1).mean(), abs=1e-3)


def test_the_band_of_a_profile_is_scipy_s_exact_interval_and_never_covers_too_little():
    n, shares = 5, np.linspace(0.01, 0.99, 99)
    # k of n trials reach level 0
    bands = [statistics.performance_profile(np.r_[np.ones(k), -np.ones(n - k)], [0.0]) for k in range(n + 1)]
    for k, band in enumerate(bands):
        exact = stats.binomtest(k, n).proportion_ci(0.95)
        assert (band.low[0], band.high[0]) == pytest.approx((exact.low, exact.high))
    covered = sum(
        stats.binom.pmf(k, n, shares) * ((band.low <= shares) & (shares <= band.high)) for k, band in enumerate(bands)
    )
    assert covered.min() >= 0.95


@given(arrays(float, (3, 4), elements=numbers), st.floats(-50, 50), st.floats(1, 50), st.floats(0.5, 3), numbers)
def test_the_score_does_not_depend_on_the_unit_of_the_return(returns, floor, gap, factor, shift):
    score = statistics.normalised_score(returns, floor, floor + gap)
    other = statistics.normalised_score(
        factor * returns + shift, factor * floor + shift, factor * (floor + gap) + shift
    )
    np.testing.assert_allclose(score, other, rtol=1e-6, atol=1e-6)
    assert statistics.normalised_score(floor, floor, floor + gap) == 0
    assert statistics.normalised_score(floor + gap, floor, floor + gap) == pytest.approx(1)


def test_regret_counts_episodes_at_score_zero():
    assert statistics.normalised_regret(np.zeros((2, 7)))[:, -1].tolist() == [7, 7]
    assert not statistics.normalised_regret(np.ones((2, 7))).any()
    scores = rng().uniform(size=(5, 30))
    np.testing.assert_allclose(statistics.normalised_regret(scores)[:, -1], 30 * (1 - scores.mean(axis=1)))


@pytest.mark.parametrize(("episodes", "last"), [(2, 2), (15, 3), (40, 4), (1000, 100)])
def test_the_final_level_is_the_last_tenth_but_at_least_three(episodes, last):
    returns = np.arange(episodes, dtype=float)[None, :]
    assert statistics.final_level(returns) == pytest.approx(returns[0, -last:].mean())


def test_the_tail_is_student_s_for_few_trials_and_plain_for_many():
    assert statistics.tail([10**6]) == pytest.approx(0.025, abs=1e-4)
    five = statistics.tail([5])
    assert five == pytest.approx(stats.norm.cdf(-np.sqrt(5 / 4) * stats.t.ppf(0.975, 4)))
    assert five < statistics.tail([5, 5]) < statistics.tail([5] * 4) < statistics.tail([20])


@given(arrays(float, st.integers(5, 9), elements=numbers), st.floats(0.1, 10), numbers)
@settings(max_examples=25)
def test_an_interval_moves_with_its_data_and_stays_within_them(values, factor, shift):
    found = bootstrap(np.mean, [values], rng(), resamples=1999)
    moved = bootstrap(np.mean, [factor * values + shift], rng(), resamples=1999)
    for part in ("estimate", "low", "high"):
        assert getattr(moved, part) == pytest.approx(factor * getattr(found, part) + shift, abs=1e-6)
    assert values.min() - 1e-9 <= found.low <= found.high <= values.max() + 1e-9


def test_intervals_repeat_with_the_generator_and_with_nothing_else():
    groups = [rng(1).normal(size=5), rng(2).normal(size=5)]
    first = bootstrap(statistics.difference_of_means, groups, rng(3))
    legacy = tiny.global_state()
    assert bootstrap(statistics.difference_of_means, groups, rng(3)) == first
    assert bootstrap(statistics.difference_of_means, groups, rng(4)) != first
    assert tiny.global_state() == legacy


@pytest.mark.parametrize(("sizes", "enough"), [([4], False), ([5], True), ([3, 3], False), ([4, 4], True)])
def test_where_trials_are_too_few_there_is_no_interval(sizes, enough):
    # of four values even the whole range misses their median in one case of eight
    groups = [rng(n).normal(size=n) for n in sizes]
    found = bootstrap(statistics.mean_over_groups(np.mean), groups, rng(), resamples=1999)
    assert np.isfinite(found.low) == np.isfinite(found.high) == enough


def test_one_trial_has_no_interval_and_equal_trials_a_point():
    single = bootstrap(np.mean, [np.array([3.0])], rng())
    assert single.estimate == 3 and np.isnan(single.low) and np.isnan(single.high)
    assert not (single.above_zero or single.below_zero)
    assert format(single, ".1f") == "3.0"
    assert bootstrap(np.mean, [np.full(5, 2.0)], rng()) == Interval(2.0, 2.0, 2.0)


def test_too_few_resamples_give_no_interval():
    """With five trials the tail of a 95 % interval holds one of a thousand resamples; of a hundred it holds none."""
    values = [np.arange(5.0)]
    assert np.isnan(bootstrap(np.mean, values, rng(), resamples=100).low)
    assert np.isfinite(bootstrap(np.mean, values, rng()).low)
    two = [np.arange(5.0), np.arange(5.0)]
    one_of_eleven = 1 - 0.05 / 11
    assert np.isnan(bootstrap(statistics.difference_of_means, two, rng(), one_of_eleven).low)


def test_welch_covers_at_confidences_that_a_bootstrap_cannot_have():
    confidence, simulations = 1 - 0.05 / 11, 4000
    x, y = rng().normal(1, 1, (simulations, 5)), rng(1).normal(0, 3, (simulations, 5))
    found = [statistics.welch(*pair, confidence) for pair in zip(x, y, strict=True)]
    missed = np.mean([not interval.low <= 1 <= interval.high for interval in found])
    assert missed < 2 * (1 - confidence)
    assert found[0].estimate == pytest.approx(x[0].mean() - y[0].mean())


def covered(interval: Interval, truth: float) -> float:
    return float(np.mean((interval.low <= truth) & (truth <= interval.high)))


def test_intervals_of_five_trials_cover_what_they_say_where_plain_ones_do_not():
    draws = rng(5).normal(size=(1500, 5))
    error = np.sqrt(0.95 * 0.05 / 1500)
    ours = covered(bootstrap(np.mean, [draws], rng(), resamples=1999), 0.0)
    options = {"vectorized": True, "axis": -1, "method": "percentile", "n_resamples": 1999, "rng": rng()}
    plain = covered(stats.bootstrap([draws], np.mean, **options).confidence_interval, 0.0)
    assert plain < 0.87 and ours > 0.92 - 3 * error
    assert covered(bootstrap(iqm, [draws], rng(), resamples=1999), 0.0) > 0.92 - 3 * error


def test_intervals_of_differences_and_over_tasks_cover_what_they_say():
    error = np.sqrt(0.95 * 0.05 / 800)
    x, y = rng(6).normal(size=(800, 5)), rng(7).normal(1.0, 1.5, size=(800, 5))
    assert covered(bootstrap(statistics.difference_of_means, [x, y], rng(), resamples=1999), -1.0) > 0.92 - 3 * error
    tasks = [rng(8 + m).normal(m, 1.0, size=(800, 5)) for m in range(3)]
    found = bootstrap(statistics.mean_over_groups(np.mean), tasks, rng(), resamples=1999)
    assert abs(covered(found, 1.0) - 0.95) < 0.02 + 3 * error


def test_stratified_intervals_do_not_take_differences_between_tasks_for_noise():
    easy, hard = rng(1).normal(1.0, 0.1, 5), rng(2).normal(-1.0, 0.1, 5)
    stratified = bootstrap(statistics.mean_over_groups(np.mean), [easy, hard], rng())
    mixed = bootstrap(np.mean, [np.concatenate([easy, hard])], rng())
    assert stratified.estimate == pytest.approx(mixed.estimate)
    assert 4 * (stratified.high - stratified.low) < mixed.high - mixed.low


def test_every_task_counts_the_same_in_a_mean_over_pairs():
    win, lose = [np.ones(5), np.zeros(5)], [np.zeros(2), np.ones(3)]
    found = bootstrap(statistics.mean_over_pairs(probability_of_improvement), [*win, *lose], rng())
    assert found == Interval(0.5, 0.5, 0.5)


def test_a_task_that_always_fails_is_not_trimmed_away():
    easy, failed = np.ones(5), np.zeros(5)
    found = bootstrap(statistics.mean_over_groups(iqm), [easy, easy, easy, failed], rng())
    assert found.estimate == pytest.approx(0.75)
    assert iqm(np.concatenate([easy, easy, easy, failed])) == pytest.approx(1.0), "as one heap it would be"


def test_the_interval_of_a_difference_is_student_s_with_pooled_degrees_of_freedom():
    assert statistics.tail([5, 5]) == pytest.approx(stats.norm.cdf(-np.sqrt(5 / 4) * stats.t.ppf(0.975, 8)))
    x, y = rng(1).normal(size=200), rng(2).normal(size=200)
    found = bootstrap(statistics.difference_of_means, [x, y], rng())
    exact = stats.ttest_ind(x, y).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=0.015)


def test_welch_has_the_degrees_of_freedom_of_welch_and_satterthwaite():
    x, y = np.arange(5.0), 10 * np.arange(5.0)
    errors = np.array([x.var(ddof=1), y.var(ddof=1)]) / 5
    freedom = errors.sum() ** 2 / np.square(errors).sum() * 4
    found = statistics.welch(x, y, 0.99)
    assert found.high - found.low == pytest.approx(2 * stats.t.ppf(0.995, freedom) * np.sqrt(errors.sum()))
