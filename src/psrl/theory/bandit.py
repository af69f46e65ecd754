"""The reward term of Appendix D alone: Thompson sampling in a linear bandit, which is PSRL with H = 1.

    r = w*' a + eps,   |a| <= 1,   w* ~ N(0, prior_sd^2 I_D),   eps ~ N(0, noise_sd^2)

The best action for weights w is w / |w|, so a posterior sample is solved exactly and the regret of an action is
|w*| - w*' a exactly, noise excluded.

Shapes: B draws of w*, D dimensions (d), T steps.
"""

from typing import NamedTuple

import numpy as np

from psrl.theory.posterior import Posterior


class BanditRun(NamedTuple):
    """One run of Thompson sampling per draw of w*, all arrays [B, T]."""

    regret: np.ndarray  # of each step
    ratio: np.ndarray  # |w^k' a - w*' a| / sigma_k(a), what Lemma 3 bounds
    one_sided: np.ndarray  # |w^k' a - mean' a| / sigma_k(a), the half of it that the proof bounds first
    variance: np.ndarray  # sigma_k^2(a)


def thompson(generator, draws, dimension, steps, noise_sd=1.0, prior_sd=1.0):
    """Thompson sampling for ``steps`` steps in ``draws`` bandits, each with its own w* from the prior."""
    truth = prior_sd * generator.standard_normal((draws, dimension, 1))
    best = np.linalg.norm(truth[:, :, 0], axis=-1)
    posterior = Posterior(draws, np.full(dimension, prior_sd), 1, noise_sd)
    run = BanditRun(*np.empty((4, draws, steps)))
    for t in range(steps):
        sample = posterior.sample(generator)
        action = sample[:, :, 0] / np.linalg.norm(sample[:, :, 0], axis=-1, keepdims=True)
        sampled, real, mean = (_inner(w, action) for w in (sample, truth, posterior.mean))
        reward = real + noise_sd * generator.standard_normal(draws)
        run.variance[:, t] = posterior.update(action, reward[:, None])
        sd = np.sqrt(run.variance[:, t])
        run.regret[:, t] = best - real
        run.ratio[:, t] = np.abs(sampled - real) / sd
        run.one_sided[:, t] = np.abs(sampled - mean) / sd
    return run


def mean_field_constants():
    """Two guesses that bracket regret / ((d - 1) sqrt(T)) for large T, whatever |w*|, with noise_sd = 1.

    Across w* = R e the posterior mean is off by an error of variance tau^2 in each of d - 1 directions and the sample
    by tau^2 more, so a step costs (d - 1) tau^2 / R. What it teaches about those directions is how much the action
    *moves*, because a constant offset cannot be told from a change of R. The fresh half tau^2 / R^2 moves every step;
    the error of the mean only drifts. Try tau^2 = kappa R / sqrt(t), so that the precision is sqrt(t) / (kappa R) and
    the regret 2 kappa (d - 1) sqrt(T).

    - Only the fresh half counts: sum_t tau^2 / R^2 = 2 kappa sqrt(t) / R, hence kappa^2 = 1/2 and the constant sqrt(2).
    - The drift counts as well, in all directions alike: the error e_t of the mean has E[e_s e_t] = tau_t^2 for s < t,
      so the spread of (e_s + fresh) around its average adds up to (4 - 4/3) kappa sqrt(t) / R, hence kappa^2 = 3/8 and
      the constant sqrt(3/2).
    """
    return np.sqrt(1.5), np.sqrt(2.0)


def _inner(weights, action):
    return np.einsum("bdk,bd->b", weights, action)
