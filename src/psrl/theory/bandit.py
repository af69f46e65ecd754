"""The reward term of Appendix D alone: Thompson sampling in a linear bandit, which is PSRL with H = 1.

    r = w*' a + eps,   |a| <= 1,   w* ~ N(0, I_D),   eps ~ N(0, noise_sd^2)

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


def thompson(generator, draws, dimension, steps, noise_sd=1.0):
    """Thompson sampling for ``steps`` steps in ``draws`` bandits, each with its own w* from the prior."""
    truth = generator.standard_normal((draws, dimension, 1))
    best = np.linalg.norm(truth[:, :, 0], axis=-1)
    posterior = Posterior(draws, np.ones(dimension), 1, noise_sd)
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


def predicted_constant(dimension):
    """Regret / sqrt(T) for large T, from a mean-field calculation: (d - 1), whatever |w*| and with noise_sd = 1.

    Let tau^2 be the posterior variance across w*. The action is off by an angle theta with
    theta^2 = 2 (d - 1) tau^2 / |w*|^2 (half from the sample, half from the mean), so each step costs
    |w*| theta^2 / 2 and adds 2 tau^2 / |w*|^2 to each of the d - 1 precisions 1 / tau^2. Hence
    1 / tau^2 = 2 sqrt(t) / |w*|, the cost of step t is (d - 1) / (2 sqrt(t)), and the sum is (d - 1) sqrt(T).
    """
    return dimension - 1


def _inner(weights, action):
    return np.einsum("bdk,bd->b", weights, action)
