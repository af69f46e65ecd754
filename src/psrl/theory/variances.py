"""Lemma 3 and Appendix C: confidence radii, sums of posterior variances, information gain.

Two models W^k and W* drawn independently from one posterior N(mean, Sigma) per output differ at a pair h by
(W^k - W*)' h. The radii bound that difference by multiples of sigma_k(h): the paper's for a pair fixed before the
draw, the uniform ones for all pairs at once. The sums bound what those sigma_k add up to over a run.

Shapes: B draws of the truth, E episodes, H steps per episode, n points, D features (d), K outputs (d_s).
"""

from typing import NamedTuple

import numpy as np
from scipy import stats

from psrl.theory.posterior import Posterior


def fixed_radius(sd, outputs, delta):
    """The paper's radius of |f^k(h) - f*(h)|: right with probability 1 - 2 delta for a pair *fixed* in advance."""
    # 2 sqrt(2 d_s sigma_k^2(h) log(2 d_s / delta)), the line before Eq. (8)
    return 2 * np.asarray(sd) * np.sqrt(2 * outputs * np.log(2 * outputs / delta))


def uniform_radius(sd, outputs, features, delta):
    """The repaired radius, right for *all* pairs at once with probability 1 - delta."""
    # 2 sigma_k(h) (sqrt(d_s) + sqrt(d) + sqrt(2 log(2 / delta)))
    return 2 * np.asarray(sd) * (np.sqrt(outputs) + np.sqrt(features) + np.sqrt(2 * np.log(2 / delta)))


def joint_radius(sd, outputs, features, delta):
    """The repaired radius when W^k and W* are treated together: sqrt(2) in place of 2, one event in place of two."""
    # W^k - W* = sqrt(2) Sigma^{1/2} G given the history, because the two are independent given it
    return np.sqrt(2) * np.asarray(sd) * (np.sqrt(outputs) + np.sqrt(features) + np.sqrt(2 * np.log(1 / delta)))


def fixed_violation(outputs, delta):
    """Exact probability that |f^k(h) - f*(h)| exceeds ``fixed_radius`` at a fixed pair."""
    # |f^k - f*|^2 / (2 sigma^2) is chi-squared with d_s degrees of freedom
    return stats.chi2.sf(4 * outputs * np.log(2 * outputs / delta), outputs)


def aligned_violation(features, delta, both=False):
    """Exact probability that the radius fails at the pair that *follows the draw*, for one output.

    One-sided: h along Sigma^{-1/2} (w^k - mean), against sqrt(2 log(2 / delta)). ``both``: h along
    Sigma^{-1/2} (w^k - w*), against the whole radius.
    """
    return stats.chi2.sf((4 if both else 2) * np.log(2 / delta), features)


def worst_ratio(posterior, first, second):
    """max over all pairs h of |(first - second)' h| / sigma_k(h): operator norm of root^-1 (first - second), [B]."""
    return np.linalg.norm(np.linalg.solve(posterior.root, first - second), ord=2, axis=(-2, -1))


def sequential_variances(X, prior_sd, noise_sd):
    """sigma_i^2(h_i) [B, n]: the variance at each of the points X [B, n, D] given those before it."""
    posterior = Posterior(len(X), prior_sd, 1, noise_sd)
    target = np.zeros((len(X), 1))  # variances do not depend on the targets
    return np.stack([posterior.update(X[:, i], target) for i in range(X.shape[1])], axis=1)


def information_gain(variances, noise_sd):
    """I_n = 1/2 sum_i log(1 + sigma_i^2(h_i) / sigma^2) over the last axis, in nats (Lemma 5.3 of Srinivas et al.)."""
    return 0.5 * np.log1p(variances / noise_sd**2).sum(axis=-1)


def information_gain_direct(X, prior_sd, noise_sd):
    """The same in one step: 1/2 log det(I + sigma^-2 X Sigma_p X')."""
    scaled = X * np.asarray(prior_sd) / noise_sd
    return 0.5 * np.linalg.slogdet(np.eye(X.shape[-1]) + np.swapaxes(scaled, -1, -2) @ scaled)[1]


def gain_bound(n, features, largest, noise_sd):
    """I_n <= d/2 log(1 + n C_1 / (d sigma^2)), ``largest`` = C_1 >= the mean of the prior variances h' Sigma_p h.

    With the mean over steps *and* runs in place of C_1 it bounds the mean of I_n: the logarithm is concave.
    """
    return 0.5 * features * np.log1p(n * largest / (features * noise_sd**2))


def variance_sum_bounds(gain, largest, noise_sd):
    """Appendix C as printed, 2 C_2 I_n, and with the factor it lost, 2 sigma_f^2 C_2 I_n."""
    ratio = largest / noise_sd**2
    c2 = ratio / np.log1p(ratio)
    return 2 * c2 * gain, 2 * noise_sd**2 * c2 * gain


class EpisodeVariances(NamedTuple):
    """Variances at the pairs of a run whose posterior is updated between episodes only."""

    stale: np.ndarray  # [B, E, H] sigma_k^2(h_i), given the episodes before
    fresh: np.ndarray  # [B, E, H] given all pairs before, those of the same episode included
    largest: np.ndarray  # [B, E] sigma_k^2(h_kmax)
    subset: np.ndarray  # [B, E] sigma'_k^2(h_kmax), given only h_1max, ..., h_(k-1)max


def episode_variances(X, prior_sd, noise_sd):
    """All four variances of the proof of Theorem 1 along pairs X [B, E, H, D]."""
    draws, episodes, horizon, _ = X.shape
    full, few = (Posterior(draws, prior_sd, 1, noise_sd) for _ in range(2))
    target = np.zeros((draws, 1))
    stale, fresh = np.empty((2, draws, episodes, horizon))
    subset = np.empty((draws, episodes))
    for k in range(episodes):
        stale[:, k] = full.sd(X[:, k]) ** 2
        for i in range(horizon):
            fresh[:, k, i] = full.update(X[:, k, i], target)
        subset[:, k] = few.update(X[np.arange(draws), k, stale[:, k].argmax(axis=-1)], target)
    return EpisodeVariances(stale, fresh, stale.max(axis=-1), subset)


def stale_sum_bound(steps, horizon, gain):
    """sum_{k,i} min(1, sigma_k(h_i) / sigma_f) <= 2 sqrt(T I_T / log 2) + 2 H I_T / log 2, for any run.

    An episode in which the determinant of the precision at most doubles has sigma_k^2 <= 2 sigma_{k,i}^2; there are at
    most 2 I_T / log 2 others, and each of those costs at most H.
    """
    return 2 * np.sqrt(steps * gain / np.log(2)) + 2 * horizon * gain / np.log(2)
