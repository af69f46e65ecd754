"""Convergence by hand-made curves, survival analysis as scipy knows it, and simulated runs with known times."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from psrl import convergence, idle
from psrl.convergence import RULE, STAYS, Rule, Scale
from psrl.tasks import TASKS

scores = arrays(float, st.tuples(st.integers(1, 5), st.integers(1, 12)), elements=st.floats(-1, 1.5, width=32))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def curve(*values: float) -> np.ndarray:
    return np.array([values], dtype=float)


@pytest.mark.parametrize(
    ("values", "time"),
    [
        ((1, 1, 1, 0, 0), 1),  # from the start
        ((0, 0, 0.9, 0.9, 0.9), 3),  # the threshold itself counts
        ((0, 1, 0.7, 1, 0), 2),  # a weak episode inside a good window
        ((0, 0, 0, 1, 1), np.inf),  # two good episodes open no window of three
        ((0.89, 0.89, 0.89, 0.89, 0.89), np.inf),
        ((1, 1), np.inf),  # too short for any window
    ],
)
def test_the_first_good_window_opens_at(values, time):
    assert convergence.times(curve(*values)).tolist() == [time]


@given(scores)
def test_asking_for_more_takes_longer(values):
    for low, high in ((0.5, 0.8), (0.8, 0.9), (0.9, 0.95)):
        assert np.all(convergence.times(values, Rule(low, 3)) <= convergence.times(values, Rule(high, 3)))


@given(scores, st.integers(0, 4))
def test_a_delay_delays_and_the_order_of_trials_does_not_matter(values, delay):
    late = np.concatenate([np.full((len(values), delay), -9.0), values], axis=1)
    found = convergence.times(values)  # a window that reaches into the delay is far below any threshold
    np.testing.assert_array_equal(convergence.times(late), found + delay)
    np.testing.assert_array_equal(convergence.times(values[::-1]), found[::-1])


@given(scores, st.integers(1, 12))
def test_stopping_a_run_early_censors_and_changes_nothing_else(values, episodes):
    complete, cut = convergence.times(values), convergence.times(values[:, :episodes])
    limit = RULE.limit(min(episodes, values.shape[1]))
    np.testing.assert_array_equal(cut, np.where(complete <= limit, complete, np.inf))


@given(st.lists(st.one_of(st.integers(1, 20), st.just(np.inf)), min_size=1, max_size=9))
def test_medians_and_means_are_those_of_kaplan_and_meier(times):
    found, limit = np.array(times, dtype=float), 20
    data = stats.CensoredData.right_censored(np.minimum(found, limit), np.isinf(found))
    survival = stats.ecdf(data).sf
    episodes = np.arange(limit + 1)
    share = survival.evaluate(episodes)
    np.testing.assert_allclose(convergence.waiting(found, episodes), share)
    # the restricted mean is the area under the survival curve up to the limit
    assert convergence.restricted_mean(found, limit) == pytest.approx(share[:limit].sum())
    assert convergence.median(found) == next(iter(episodes[share <= 0.5]), np.inf)


def runs(times: np.ndarray, episodes: int) -> np.ndarray:
    """Scores that jump from 0 to 1 in the episode of convergence."""
    return (np.arange(1, episodes + 1)[None, :] >= times[:, None]).astype(float)


def test_geometric_times_have_the_restricted_mean_of_the_closed_form():
    times, episodes, p = rng(1).geometric(0.1, 4000), 30, 0.1
    found, limit = convergence.times(runs(times, episodes), Rule(0.9, 3)), RULE.limit(episodes)
    np.testing.assert_array_equal(found, np.where(times <= limit, times, np.inf))
    exact = (1 - (1 - p) ** limit) / p
    assert abs(convergence.restricted_mean(found, limit) - exact) < 4 * np.minimum(times, limit).std() / np.sqrt(4000)
    kept = found[np.isfinite(found)].mean()
    assert kept < 0.9 * exact < exact < 1 / p, "dropping the censored runs would flatter the method"


def coverage(times: np.ndarray, truth: float, episodes: int) -> float:
    """Of the intervals of [draws, 5] times, censored by the end of the run."""
    summaries = [convergence.summarise(runs(row, episodes), rng(3)).mean for row in times]
    return float(np.mean([interval.low <= truth <= interval.high for interval in summaries]))


def test_intervals_of_the_restricted_mean_cover_it():
    limit, error = RULE.limit(22), np.sqrt(0.92 * 0.08 / 200)
    around_ten = np.arange(4, 17)
    assert coverage(rng(2).choice(around_ten, (200, 5)), around_ten.mean(), 22) > 0.92 - 3 * error
    # Times that are as skewed as can be, with every twentieth run censored: five runs rarely show the long ones.
    p = 0.15
    assert coverage(rng(2).geometric(p, (200, 5)), (1 - (1 - p) ** limit) / p, 22) > 0.87 - 3 * error


def test_a_summary_counts_censored_runs_and_says_at_least():
    every = convergence.summarise(runs(np.array([4, 5, 6, 7, 8]), 15), rng())
    assert every.converged == 5 and str(every).startswith("6.0 [") and every.held == 1.0
    some = convergence.summarise(runs(np.array([4, 5, 6, 90, 90]), 15), rng())
    assert (some.converged, some.censored, some.limit) == (3, 2, 13)
    assert some.mean.estimate == pytest.approx((4 + 5 + 6 + 13 + 13) / 5)
    assert some.median.estimate == 6 and some.median.high == np.inf
    assert str(some) == f"at least 8.2 [{some.mean.low:.1f}, inf) (2 of 5 censored at 13)"
    none = convergence.summarise(runs(np.full(5, 90), 15), rng())
    assert str(none) == "more than 13 (5 of 5 censored)" and none.median.estimate == np.inf and np.isnan(none.held)
    short = convergence.summarise(runs(np.array([1, 1]), 2), rng())
    assert str(short) == "too few episodes"


def test_held_tells_runs_that_lose_it_again():
    lost = np.array([[0, 1, 1, 1, 0, 0, 0, 0]], dtype=float)
    assert convergence.times(lost).tolist() == [2]
    assert convergence.held(lost) == 0.0
    assert convergence.held(np.array([[0.0, 1, 1, 1, 1, 1]])) == 1.0


def test_what_has_to_last_converges_after_the_last_lapse():
    lapse = np.array([[0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1]], dtype=float)
    assert convergence.times(lapse).tolist() == [2]
    assert convergence.times(lapse, STAYS).tolist() == [7], "the windows from episode 7 on are the last and all good"
    assert convergence.times(lapse[:, :6], STAYS).tolist() == [np.inf], "stopped in the lapse it has not lasted"
    assert convergence.times(lapse[:, :11], STAYS).tolist() == [np.inf], "no later window is free of the first one's"
    assert STAYS.limit(12) == 7 and STAYS.limit(5) == 0


@given(arrays(float, (3, 12), elements=st.floats(0, 1)))
def test_to_last_takes_at_least_as_long_as_to_reach(scores):
    assert np.all(convergence.times(scores, STAYS) >= convergence.times(scores))


def test_zero_is_the_better_policy_that_knows_nothing():
    scale = Scale.of(random=-1500.0, idle=-180.0, oracle=-20.0)
    assert scale(np.array([-180.0, -20.0, -100.0])).tolist() == [0, 1, 0.5]
    assert Scale.of(random=-1740.0, idle=-1970.0, oracle=-350.0).floor == -1740


def test_an_idle_arm_would_pass_for_trained_if_random_actions_were_zero():
    """No return exceeds 0, and random actions cost the Reacher 0.01 |a|^2 before anything moves."""
    task = TASKS["reacher"]
    random_actions = -0.01 * task.action_dim * task.action_bound**2 / 3 * task.steps
    nothing = idle.mean_return("reacher", 0.0, task.steps)
    assert (nothing - random_actions) / (0 - random_actions) > 0.85
    assert nothing == idle.mean_return.__wrapped__("reacher", 0.0, task.steps), "the same every time"


def test_what_is_played_does_not_change_later_goals():
    """So an idle arm can be put into every episode of a planner after the fact."""
    seeds, steps, task = [3, 4], 20, TASKS["reacher"]
    found = idle.by_episode("reacher", seeds, 2, steps)
    np.testing.assert_allclose(found[:, 0], idle.returns("reacher", 0.0, steps)[seeds])
    envs = task.make_vec(len(seeds), 0.0)
    envs.reset(seed=seeds)
    for _ in range(steps):
        envs.step(np.random.default_rng(0).uniform(-20, 20, (len(seeds), task.action_dim)))
    envs.reset()
    still = np.zeros((len(seeds), task.action_dim))
    np.testing.assert_allclose(found[:, 1], sum(envs.step(still)[1] for _ in range(steps)))
    assert np.abs(found[:, 1] - found[:, 0]).min() > 0.01, "each episode has its own goal"
