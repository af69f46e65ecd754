"""Statistics of a handful of runs, as pure functions: aggregates after Agarwal et al. (2021) and bootstrap intervals.

Scores and returns are arrays [B, episodes] or [B]: one row per trial. A *group* is the values of the trials of one
experiment; groups are resampled separately, which is what "stratified" means.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
RESAMPLES = 9999
SEED = 0  # each interval of the analysis starts a generator with it: a new experiment leaves the others' as they are


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its interval; nan where the trials are too few for one."""

    estimate: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        """The estimate, then the interval in brackets.

        >>> f"{Interval(20.2, 18.4, 23):.1f}"
        '20.2 [18.4, 23.0]'
        """
        if np.isnan(self.low) or np.isnan(self.high):
            return format(self.estimate, spec)
        low, high = (format(value, spec) for value in (self.low, self.high))
        return f"{format(self.estimate, spec)} [{low}, {high}]"

    @property
    def above_zero(self) -> bool:
        return self.low > 0

    @property
    def below_zero(self) -> bool:
        return self.high < 0


def normalised_score(returns: np.ndarray, floor: float, ceiling: float) -> np.ndarray:
    """0 at ``floor``, 1 at ``ceiling``, linear between and beyond.

    >>> normalised_score([0, 50, 300], floor=0, ceiling=200)
    array([0.  , 0.25, 1.5 ])
    """
    return (np.asarray(returns) - floor) / (ceiling - floor)


def normalised_regret(scores: np.ndarray) -> np.ndarray:
    """Cumulative regret against the policy of score 1, [B, episodes]; its unit is an episode at score 0."""
    return np.cumsum(1 - np.asarray(scores), axis=-1)


def final_level(returns: np.ndarray) -> np.ndarray:
    """Each trial's mean over the last part of its episodes, [B]: what the paper calls performance at convergence."""
    return returns[..., -last_part(returns.shape[-1]) :].mean(axis=-1)


def last_part(episodes: int) -> int:
    """A tenth of the episodes, but at least three."""
    return min(episodes, max(3, episodes // 10))


def iqm(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """Interquartile mean: of the middle half of the values (of five, the middle three).

    >>> float(iqm([-1000, 1, 2, 3, 7]))
    2.0
    """
    return stats.trim_mean(values, 0.25, axis=axis)


def probability_of_improvement(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
    """P(X > Y) + P(X = Y) / 2 for a random trial of each: Mann and Whitney's U over the number of pairs."""
    x, y = np.moveaxis(np.asarray(x), axis, -1), np.moveaxis(np.asarray(y), axis, -1)
    wins = np.sign(x[..., :, None] - y[..., None, :])
    return (1 + wins.mean(axis=(-2, -1))) / 2


def performance_profile(values: np.ndarray, levels: np.ndarray, confidence: float = CONFIDENCE) -> Interval:
    """Share of the trials that reach each level, [levels], with the exact binomial interval of Clopper and Pearson.

    Not a bootstrap: where all trials reach a level, every resample does, and its interval would be [1, 1].
    """
    k, n, miss = (np.asarray(values)[None, :] >= np.asarray(levels)[:, None]).sum(axis=-1), len(values), 1 - confidence
    low = np.where(k > 0, stats.beta.ppf(miss / 2, np.maximum(k, 1), n - k + 1), 0.0)
    high = np.where(k < n, stats.beta.ppf(1 - miss / 2, k + 1, np.maximum(n - k, 1)), 1.0)
    return Interval(k / n, low, high)


def mean_over_groups(statistic: Callable) -> Callable:
    """A statistic of one group -> its mean over several: every task counts the same, also where it has all failures."""
    return lambda *groups, axis: np.mean([statistic(group, axis=axis) for group in groups], axis=0)


def mean_over_pairs(statistic: Callable) -> Callable:
    """A statistic of two groups -> its mean over several pairs x1, y1, x2, y2, ...: every task counts the same."""
    return lambda *groups, axis: np.mean(
        [statistic(x, y, axis=axis) for x, y in zip(groups[::2], groups[1::2], strict=True)], axis=0
    )


def difference_of_means(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.mean(x, axis=axis) - np.mean(y, axis=axis)


def welch(x: np.ndarray, y: np.ndarray, confidence: float = CONFIDENCE) -> Interval:
    """Difference of two means, trials of unequal variance, with Welch's interval.

    For confidences that a bootstrap of a few trials cannot have: its most extreme resample is not extreme enough.
    """
    found = stats.ttest_ind(x, y, equal_var=False).confidence_interval(confidence)
    return Interval(float(difference_of_means(x, y)), float(found.low), float(found.high))


def tail(sizes: Sequence[int], confidence: float = CONFIDENCE) -> float:
    r"""Share of resamples to leave out on each side so that an interval from a few trials covers about what it says.

    Resampling n values underestimates their variance by (n-1)/n and takes it for known: with five trials a plain 95 %
    percentile interval of a mean covers about 83 %. Hesterberg (2014) goes further into the tails, to the
    :math:`\Phi(-\sqrt{n/(n-1)}\; t_{n-1})` quantile, which for a normal mean is Student's interval. Several groups pool
    their degrees of freedom.
    """
    sizes = np.asarray(sizes, dtype=float)
    n = len(sizes) / np.sum(1 / sizes)
    quantile = stats.t.ppf((1 + confidence) / 2, np.sum(sizes - 1))
    return float(stats.norm.cdf(-np.sqrt(n / (n - 1)) * quantile))


def bootstrap(
    statistic: Callable,
    groups: Sequence[np.ndarray],
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> Interval:
    """``statistic(*groups, axis=-1)`` and its interval; each group is resampled along its last axis, on its own.

    Leading axes are kept: estimate, low and high then are arrays. Too few trials allow no interval: where even the most
    extreme resample is likelier than the tail to leave out, as for a single group of fewer than five. Nor do too few
    resamples: where the tail holds none of them.
    """
    groups = [np.asarray(group, dtype=float) for group in groups]
    estimate = statistic(*groups, axis=-1)
    sizes = [group.shape[-1] for group in groups]
    rarest = max(1 / resamples, np.prod([size**-size for size in map(float, sizes)]))
    if min(sizes) < 2 or rarest > tail(sizes, confidence):
        nothing = np.full(np.shape(estimate), np.nan)[()]
        return Interval(estimate, nothing, nothing)
    found = stats.bootstrap(
        groups,
        statistic,
        n_resamples=resamples,
        vectorized=True,
        axis=-1,
        confidence_level=1 - 2 * tail(sizes, confidence),
        method="percentile",
        rng=rng,
    ).confidence_interval
    return Interval(estimate, found.low, found.high)
