"""Theorem 1 in numbers: the bound as printed, the repaired one, and where the distance to the regret comes from.

Three repairs: a radius that holds for all pairs at once; the L1 distance of two next-state distributions never exceeds
2, so a variance counts as min(1, sigma_k / sigma_f); and the sum of those over a run is bounded without taking the
largest of each episode (``variances.stale_sum_bound``). Rewards lie in [-R_max, R_max] with R_max = 1 throughout.

Shapes: B draws of the truth, E episodes, H steps.
"""

from math import pi, sqrt

import numpy as np
from scipy.optimize import brentq

from psrl.theory.noise import gaussian_l1
from psrl.theory.variances import gain_bound, joint_radius, stale_sum_bound, variance_sum_bounds


def lipschitz(noise_sd):
    """C of Lemma 1 for Gaussian noise, sqrt(2 / pi) / sigma_f."""
    return sqrt(2 / pi) / noise_sd


def paper_bound(steps, horizon, states, controls, noise_sd, largest):
    """The chain (10) of Theorem 1 made explicit with Appendix C (its sigma_f^2 restored): transition part only.

    8 C H^{3/2} R_max sqrt(T) sqrt(d_s log(2 T d_s)) sqrt(sum of variances), ``largest`` = C_1, which bounds the prior
    variance h' Sigma_p h of every pair met.
    """
    features, episodes = states + controls, steps / horizon
    gain = gain_bound(episodes, features, largest, noise_sd)
    variances = variance_sum_bounds(gain, largest, noise_sd)[1]
    scale = 8 * lipschitz(noise_sd) * horizon**1.5 * np.sqrt(steps)
    return scale * np.sqrt(states * np.log(2 * steps * states)) * np.sqrt(variances)


def repaired_bound(steps, horizon, states, controls, noise_sd, largest, expansion=0.0):
    """The repaired theorem: O~(H d sqrt((1 + H kappa) T)), kappa = E log max_{j<H} ||A^j|| / H.

    2 / sqrt(pi) H R_max (sqrt(d_s) + sqrt(d) + sqrt(2 log(K T))) (2 sqrt(T I_T / log 2) + 2 H I_T / log 2) + 2 R_max

    sigma_f and C_1 appear inside a logarithm only. ``largest`` need not bound every pair: either it is the mean of
    h' Sigma_p h over all steps and runs, or, with ``expansion`` = kappa, the constant C_3 of notebook 04, Section 6,
    which grows like H^2 where that mean may grow faster than exponentially.
    """
    features, episodes = states + controls, steps / horizon
    gain = gain_bound(steps, features, largest, noise_sd) + features * horizon * expansion
    width = sqrt(states) + sqrt(features) + np.sqrt(2 * np.log(episodes * steps))
    return 2 / sqrt(pi) * horizon * width * stale_sum_bound(steps, horizon, gain) + 2


def useful_from(bound, horizon, **constants):
    """The T from which ``bound`` is below the trivial R_max T."""

    def excess(log_steps):
        return np.log(bound(np.exp(log_steps), horizon, **constants)) - log_steps

    return np.exp(brentq(excess, np.log(10 * horizon), 200))


def ladder(sd, error, noise_sd, features):
    """From the printed bound to the regret, one repair or refinement at a time: {what: [B]}, each for the whole run.

    ``sd`` [B, E, H] are the realised sigma_k(h_i), ``error`` [B, E, H] the realised f^k(h_i) - f*(h_i), d_s = 1. The
    confidence level is delta = 1 / T as in the paper. Rewards are assumed in [0, 1], so a value function minus the
    middle of its range is at most (H - i) / 2.
    """
    _, episodes, horizon = sd.shape
    steps, C = episodes * horizon, lipschitz(noise_sd)
    left = horizon - 1.0 - np.arange(horizon)  # H - i for i = 1..H
    log_term = np.log(4 * steps**2)  # log(4 T d_s / delta)
    uniform = joint_radius(sd, 1, features, 1 / (steps * episodes))

    def total(terms):
        return terms.sum(axis=(1, 2))

    return {
        "as printed, with σ_k(h_kmax)": 4 * C * horizon**2 * np.sqrt(2 * log_term) * sd.max(axis=-1).sum(axis=-1),
        "each pair's own σ_k, (H − i) for 2H": total(2 * C * left * np.sqrt(2 * log_term) * sd),
        "radius that holds for all pairs": total(C * left * uniform),
        "an L1 distance is at most 2": total(left * gaussian_l1(uniform, noise_sd)),
        "rewards in [0, 1], centred": total(left / 2 * gaussian_l1(uniform, noise_sd)),
        "realised model errors": total(left / 2 * gaussian_l1(np.abs(error), noise_sd)),
    }
