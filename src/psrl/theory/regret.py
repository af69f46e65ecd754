"""Exact Bayesian regret of learners in random linear-quadratic problems (solved as in lqr.py).

    s' = A s + B u + eps,   entries of A and B ~ N(0, prior),   cost |s|^2 + |u|^2,   s_1 ~ N(0, I)

In every episode a learner picks gains, their expected cost in the true system is computed exactly, the episode is
rolled out for data, and the posterior is updated at its end. Only the draw of the truth, of the posterior samples
and of the data is random: the regret of an episode given its gains is not.

Shapes: B draws of the truth, S state, U control, D = S + U features, H steps per episode, E episodes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from psrl.config import ConfigError
from psrl.theory import lqr
from psrl.theory.posterior import Posterior

RULES = ("psrl", "mean", "mean-random", "per-step", "dither", "dither-decay")
DITHER_SD = 0.5


@dataclass(frozen=True)
class Problem:
    """A distribution over linear-quadratic problems: the prior that learners know."""

    states: int = 2
    controls: int = 1
    horizon: int = 5
    prior_sd_A: float = 0.4
    prior_sd_B: float = 1.0
    noise_sd: float = 1.0
    persistence: float = 0.0  # prior mean of A is this multiple of the identity; 1: differences are what is learned
    plan: int | None = None  # steps the learner looks ahead; None: to the end of the episode

    @property
    def prior_sd(self):
        """Prior sds of the D weights, scaled so that the spectral radius of A does not grow with the dimension."""
        sds = np.repeat([self.prior_sd_A, self.prior_sd_B], [self.states, self.controls])
        return sds / np.sqrt(self.states)

    @property
    def costs(self):
        return np.eye(self.states), np.eye(self.controls)

    def split(self, weights):
        """Weights [..., D, S], deviations from the prior mean, -> A [..., S, S] and B [..., S, U]."""
        both = np.swapaxes(weights, -1, -2)
        return both[..., : self.states] + self.persistence * np.eye(self.states), both[..., self.states :]


class Episode(NamedTuple):
    """Exact regret [B] and the pairs visited [B, H, D]."""

    regret: np.ndarray
    pairs: np.ndarray


def truths(problem, draws, seed):
    """The true systems A [B, S, S] and B [B, S, U] that ``learn`` meets with the same arguments."""
    prior = Posterior(draws, problem.prior_sd, problem.states, problem.noise_sd)
    return problem.split(prior.sample(np.random.default_rng([seed, 0])))


def learn(problem, rule, draws, seed) -> Iterator[Episode]:
    """Episodes, without end, of ``rule`` in each of ``draws`` problems drawn from the prior.

    ``psrl``: one posterior sample per episode. ``mean``: certainty equivalence. ``mean-random``: the same after one
    episode of random controls. ``per-step``: a new sample for every step. ``dither``: the posterior mean plus control
    noise of constant sd. ``dither-decay``: the same with a variance that falls like 1 / sqrt(k).
    The same seed gives every rule the same truths and the same noise, so differences between rules are paired.
    """
    if rule not in RULES:
        raise ConfigError(f"rule {rule!r} is unknown; valid: {', '.join(RULES)}")
    noise, choice = (np.random.default_rng([seed, stream]) for stream in (1, 2))
    Q, R = problem.costs
    posterior = Posterior(draws, problem.prior_sd, problem.states, problem.noise_sd)
    A, B = truths(problem, draws, seed)
    start = np.eye(problem.states)
    best = lqr.riccati(A, B, Q, R, problem.horizon, problem.noise_sd).cost.mean(start)
    for k in count():
        K, dither = _gains(problem, rule, k, posterior, choice)
        cost = lqr.value(A, B, K, Q, R, problem.noise_sd)
        regret = cost.mean(start) + dither_cost(cost, B, R, dither) - best
        states, controls = [noise.standard_normal((draws, problem.states))], []
        for gain in K:
            controls.append(_apply(gain, states[-1]) + dither * choice.standard_normal((draws, problem.controls)))
            mean = _apply(A, states[-1]) + _apply(B, controls[-1])
            states.append(mean + problem.noise_sd * noise.standard_normal(mean.shape))
        pairs = np.concatenate([np.stack(states[:-1], axis=1), np.stack(controls, axis=1)], axis=-1)
        yield Episode(regret, pairs)
        # the posterior moves between episodes only, as in Algorithm 1
        for i in range(problem.horizon):
            posterior.update(pairs[:, i], states[i + 1] - problem.persistence * states[i])


def regrets(episodes, number):
    """Regret [B, E] of the first ``number`` episodes of a learner."""
    return np.stack([episode.regret for episode in islice(episodes, number)], axis=1)


def _gains(problem, rule, k, posterior, generator):
    """Gains [H, B, U, S] of episode k and the sd of the noise added to the controls."""
    if rule == "psrl":
        return plan(problem, posterior.sample(generator)), 0.0
    if rule == "per-step":
        samples = [posterior.sample(generator) for _ in range(problem.horizon)]
        return np.stack([plan(problem, sample)[i] for i, sample in enumerate(samples)]), 0.0
    gains = plan(problem, posterior.mean)
    if rule == "mean-random":
        return (0.0 * gains, 1.0) if k == 0 else (gains, 0.0)
    return gains, DITHER_SD * {"mean": 0.0, "dither": 1.0, "dither-decay": (k + 1) ** -0.25}[rule]


def plan(problem, weights):
    """Gains [H, ..., U, S] that are optimal for ``weights`` [..., D, S], looking ``problem.plan`` steps ahead."""
    system = problem.split(weights)
    if problem.plan is None:
        return lqr.riccati(*system, *problem.costs, problem.horizon).K
    return receding(system, problem.costs, problem.horizon, problem.plan)


def receding(system, costs, horizon, lookahead, stop=False):
    """Gains [H, ..., U, S] of model predictive control: each step takes the first gain of a plan of its own.

    A plan covers ``lookahead`` steps, past the end of the episode if need be, unless ``stop`` cuts it there.
    """
    gains = lqr.riccati(*system, *costs, max(horizon, lookahead)).K
    left = horizon - np.arange(horizon)
    # the gain with n steps to go is the n-th from the end of any long enough solution
    return gains[-np.minimum(lookahead, left) if stop else np.full(horizon, -lookahead)]


def dither_cost(cost, B, R, sd):
    """Expected cost that control noise adds over an episode: sd^2 tr(R + B' P_{i+1} B) at step i."""
    inner = np.swapaxes(B, -1, -2) @ cost.P[1:] @ B
    return sd**2 * (np.trace(R) + np.trace(inner, axis1=-2, axis2=-1)).sum(axis=0)


def _apply(matrix, vector):
    return (matrix @ vector[..., None])[..., 0]
