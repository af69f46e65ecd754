"""When a run has converged: the one place that defines it.

The paper reports episodes to convergence and does not say what convergence is. Here a run has converged in the first
episode that opens a window of :attr:`Rule.window` episodes whose mean normalised score is at least
:attr:`Rule.threshold`. The score is 0 for the better of two policies that know nothing (uniformly random actions, no
action at all) and 1 for the planner that knows the truth, on the same task with the same noise.

Why not random actions alone as 0: their return is mostly the price of their actions. On the Reacher they cost so much
that an arm which never moves would score about 0.9 and count as converged in its first episode.

Why the oracle planner looks 30 steps ahead on the Pendulum, not 20 as the methods do: at 20 its plans freeze at the
bounds of the torque (notebook 08), and a planner that knows the truth would set a lower mark than methods that do not.

That is an event, and a run may lose again what it had. :data:`STAYS` asks for more: that all later windows are as good,
up to the end of the run, with room for at least one that shares no episode with the first. It needs the whole run, so
it depends on where a run was stopped, and is given beside the other.

A run that has not converged when it ends is *censored*: all that is known is that it would take longer. Its time is
infinite, and no statistic here drops it. All runs of an experiment are equally long, so Kaplan and Meier's estimate of
the share still waiting is the plain share, up to the end.
"""

from dataclasses import dataclass

import numpy as np

from psrl import statistics
from psrl.statistics import Interval


@dataclass(frozen=True)
class Rule:
    """From when on a run counts as converged."""

    threshold: float = 0.9
    window: int = 3
    stays: bool = False  # whether all later windows must be good too, up to the end of the run

    def __str__(self) -> str:
        return (
            f"first episode that opens a window of {self.window} episodes with mean normalised score of at least "
            f"{self.threshold:g}{', as all later ones do' if self.stays else ''} "
            "(0: the better of random actions and no action, 1: the oracle planner)"
        )

    def limit(self, episodes: int) -> int:
        """The last episode in which a run of this many episodes can be seen to converge; 0 where there is none."""
        return max(0, episodes - (2 if self.stays else 1) * self.window + 1)


RULE = Rule()
STAYS = Rule(stays=True)


@dataclass(frozen=True)
class Scale:
    """The two ends of the normalised score on a task, as mean returns."""

    floor: float
    ceiling: float

    def __call__(self, returns: np.ndarray) -> np.ndarray:
        return statistics.normalised_score(returns, self.floor, self.ceiling)

    @classmethod
    def of(cls, random: float, idle: float, oracle: float) -> "Scale":
        """From the mean returns of random actions, of no action, and of the planner that knows the truth."""
        return cls(max(random, idle), oracle)


def window_means(scores: np.ndarray, rule: Rule = RULE) -> np.ndarray:
    """Mean score of every window, by the episode that opens it, [B, windows]."""
    if scores.shape[-1] < rule.window:
        return np.empty((*scores.shape[:-1], 0))
    return np.lib.stride_tricks.sliding_window_view(scores, rule.window, axis=-1).mean(axis=-1)


def times(scores: np.ndarray, rule: Rule = RULE) -> np.ndarray:
    """Episode of convergence of each run of scores [B, episodes], counted from 1; infinite where censored. [B]"""
    good = window_means(scores, rule) >= rule.threshold
    if rule.stays:
        good = np.logical_and.accumulate(good[..., ::-1], axis=-1)[..., ::-1][..., : rule.limit(scores.shape[-1])]
    never = np.ones((*good.shape[:-1], 1), dtype=bool)  # found last where nothing is found before
    first = 1.0 + np.argmax(np.concatenate([good, never], axis=-1), axis=-1)
    return np.where(first > good.shape[-1], np.inf, first)


def held(scores: np.ndarray, rule: Rule = RULE) -> float:
    """Of the windows after a run's first good one, the share that is good too; nan where there are none."""
    good = window_means(scores, rule) >= rule.threshold
    after = np.cumsum(good, axis=-1) - good > 0
    return float(good[after].mean()) if after.any() else float("nan")


def median(found: np.ndarray, axis: int = -1) -> np.ndarray:
    """Kaplan and Meier's median: the first episode by which at least half of the runs have converged, else infinite."""
    ordered = np.sort(found, axis=axis)
    return np.take(ordered, (found.shape[axis] + 1) // 2 - 1, axis=axis)


def restricted_mean(found: np.ndarray, limit: int, axis: int = -1) -> np.ndarray:
    """Mean of min(time, limit): the mean where nothing is censored, else a lower bound of it."""
    return np.minimum(found, limit).mean(axis=axis)


def waiting(found: np.ndarray, episodes: np.ndarray) -> np.ndarray:
    """Share of the runs that have not converged by each of the episodes."""
    return (np.asarray(found)[None, :] > np.asarray(episodes)[:, None]).mean(axis=-1)


@dataclass(frozen=True)
class Summary:
    """Convergence of the runs of one experiment."""

    times: np.ndarray  # [B], infinite where censored
    limit: int  # the last episode in which convergence could be seen
    mean: Interval  # restricted to the limit
    median: Interval
    held: float

    @property
    def converged(self) -> int:
        return int(np.isfinite(self.times).sum())

    @property
    def censored(self) -> int:
        return len(self.times) - self.converged

    def __str__(self) -> str:
        """``20.2 [18.0, 23.4]``, or ``at least 20.2 [18.0, inf) (1 of 5 censored at 28)``.

        Where runs are censored only the lower end of the restricted mean's interval says something about the mean.
        """
        if not self.limit:
            return "too few episodes"
        if not self.converged:
            return f"more than {self.limit} ({self.censored} of {len(self.times)} censored)"
        if self.censored:
            least = "" if np.isnan(self.mean.low) else f" [{self.mean.low:.1f}, inf)"
            told = f"({self.censored} of {len(self.times)} censored at {self.limit})"
            return f"at least {self.mean.estimate:.1f}{least} {told}"
        return f"{self.mean:.1f}"


def summarise(scores: np.ndarray, rng: np.random.Generator, rule: Rule = RULE) -> Summary:
    """Of scores [B, episodes]: restricted mean and median with intervals over trials."""
    found, limit = times(scores, rule), rule.limit(scores.shape[-1])
    mean = statistics.bootstrap(lambda x, axis: restricted_mean(x, limit, axis), [found], rng)
    # An infinite time is put just beyond the limit while quantiles of resamples are interpolated, then taken back.
    bounded = statistics.bootstrap(median, [np.minimum(found, limit + 1)], rng)
    ends = [float(np.inf if value > limit else value) for value in (bounded.estimate, bounded.low, bounded.high)]
    return Summary(found, limit, mean, Interval(*ends), held(scores, rule))
