"""Sections 3.1 and 3.2: the regret decomposition and the Lipschitz constant of the future value (Lemma 2).

Three checks that need no approximation:

* the Bellman decomposition of V^k_k - V^*_k into one-step differences, in linear-quadratic problems;
* a family of bounded-reward problems whose future value is known in closed form, which decides how tight
  C (H - i) R_max is;
* the posterior-sampling identity E[V*_{M*} - V^k_{M^k}] = 0, measured over draws of the true problem.

Shapes as in ``lqr``: H horizon, S state, U control, D = S + U inputs, N draws, ``...`` any batch.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import erf

from psrl.theory import lqr
from psrl.theory.posterior import Posterior


class Model(NamedTuple):
    """An MDP of the linear-quadratic kind: A, Q [..., S, S], B [..., S, U], R [..., U, U]; reward = -cost."""

    A: np.ndarray
    B: np.ndarray
    Q: np.ndarray
    R: np.ndarray

    def closed_loop(self, K):
        """The next mean state (A + B K_i) s and the stage cost s' (Q + K_i' R K_i) s: [H, ..., S, S] each."""
        return self.A + self.B @ K, self.Q + np.swapaxes(K, -1, -2) @ self.R @ K

    def value(self, K, noise_sd, initial):
        """V^M_{mu,1} averaged over s_1 with second moment ``initial`` [..., S, S]."""
        return -lqr.value(self.A, self.B, K, self.Q, self.R, noise_sd).mean(initial)


def one_step_differences(sampled, true, K):
    """The two sums of Section 3.1 as quadratic forms of the state s_i: ([H, ..., S, S], [H, ..., S, S]).

    s' D s is   r^k(h_i) - r^*(h_i)   and   U^k_i(P^k(h_i)) - U^k_i(P^*(h_i))   at h_i = (s, K_i s). The noise
    adds the same constant to both future values, so it drops out.
    """
    (next_k, cost_k), (next_star, cost_star) = sampled.closed_loop(K), true.closed_loop(K)
    later = lqr.value(sampled.A, sampled.B, K, sampled.Q, sampled.R).P[1:]

    def future(step):
        return np.swapaxes(step, -1, -2) @ later @ step

    return cost_star - cost_k, future(next_star) - future(next_k)


def along(form, moments):
    """Expected differences E[s_i' D_i s_i] [H, ...], for second moments [H or H+1, ..., S, S] of the states."""
    return np.einsum("h...ij,h...ji->h...", form, moments[: len(form)])


def gains(growth, steps):
    """How much of a displacement of s_{i+1} the sign of s_{i+1+j} still shows, j = 0..steps-1: [..., steps].

    With s' = growth * s + eps the mean moves by growth^j and the deviation is sd sqrt(1 + ... + growth^{2j});
    their ratio is (1 + growth^-2 + ... + growth^-2j)^{-1/2} / sd.
    """
    powers = np.asarray(growth, dtype=float)[..., None] ** (-2.0 * np.arange(steps))
    return 1 / np.sqrt(np.cumsum(powers, axis=-1))


def sign_value(state, growth, steps, sd=1.0):
    """V_{i+1}(s) for the reward R_max sign(s), R_max = 1, with ``steps`` = H - i rewards to come."""
    # after j steps the state is N(growth^j s, sd^2 (1 + ... + growth^{2(j-1)})); E sign N(m, v) = erf(m/sqrt(2v))
    state = np.asarray(state, dtype=float)[..., None]
    later = growth * gains(growth, steps - 1) * state / (sqrt(2) * sd)
    return np.sign(state[..., 0]) + erf(later).sum(axis=-1)


def sign_future(mean, growth, steps, sd=1.0):
    """U_i(N(mean, sd^2)) = E V_{i+1}(mean + eps) of the same problem."""
    return erf(np.asarray(mean, dtype=float)[..., None] * gains(growth, steps) / (sqrt(2) * sd)).sum(axis=-1)


class Identity(NamedTuple):
    """Values over N draws of the true problem and E episodes, each averaged over the initial state."""

    true: np.ndarray  # V^*_*, the optimal value of the true problem [N]
    sampled: np.ndarray  # V^k_k, the optimal value of the sampled problem [E, N]
    achieved: np.ndarray  # V^*_k, the sampled problem's policy in the true problem [E, N]
    mean_model: np.ndarray  # optimal value of the correct posterior mean: a function of the history alone [E, N]


def posterior_identity(draws, episodes, generator, *, prior_scale=1.0, noise_scale=1.0, resample=True):
    """Run PSRL on ``draws`` problems with S = 2, U = 1, Q = R = I, H = 5 and Gaussian (A, B).

    The agent believes a prior deviation ``prior_scale`` and a noise deviation ``noise_scale`` times the true
    ones: at 1 and 1 its samples are from the posterior, and the identity must hold. ``resample=False`` keeps the
    sample of the first episode.
    """
    # a prior this narrow keeps the value's tails light enough for a mean over draws
    S, U, horizon, prior_sd, noise_sd = 2, 1, 5, 0.4, 0.5
    Q, R, initial = np.eye(S), np.eye(U), np.eye(S)
    truth = prior_sd * generator.standard_normal((draws, S + U, S))
    widths = np.full(S + U, prior_sd)
    exact = Posterior(draws, widths, S, noise_sd)
    believed = Posterior(draws, prior_scale * widths, S, noise_scale * noise_sd)

    def solve(weights):
        A, B = split(weights, S)
        solution = lqr.riccati(A, B, Q, R, horizon, noise_sd)
        return solution.K, -solution.cost.mean(initial)

    sampled, achieved, mean_model = [], [], []
    weights = believed.sample(generator)
    for _ in range(episodes):
        K, value_k = solve(weights)
        A, B = split(truth, S)
        sampled.append(value_k)
        achieved.append(-lqr.value(A, B, K, Q, R, noise_sd).mean(initial))
        mean_model.append(solve(exact.mean)[1])
        start = generator.standard_normal((draws, S))
        states, controls, _ = lqr.simulate(A, B, K, Q, R, noise_sd, start, generator)
        inputs = np.concatenate([states[:-1], controls], axis=-1)
        # the posterior moves between episodes only, and one sample serves a whole episode
        for x, y in zip(inputs, states[1:], strict=True):
            exact.update(x, y)
            believed.update(x, y)
        if resample:
            weights = believed.sample(generator)
    return Identity(solve(truth)[1], np.stack(sampled), np.stack(achieved), np.stack(mean_model))


def split(weights, state):
    """[A B]' [..., D, S] as A [..., S, S] and B [..., S, U]."""
    joint = np.swapaxes(weights, -1, -2)
    return joint[..., :state], joint[..., state:]


def z_score(sample):
    """Mean over its standard error; the entries are independent."""
    sample = np.asarray(sample)
    return sample.mean() / (sample.std(ddof=1) / sqrt(sample.size))
