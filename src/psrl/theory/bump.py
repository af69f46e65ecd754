"""A problem with bounded rewards, as Theorem 1 asks for, that is solved exactly in any dimension.

    s' = a s + b' u + eps,   |u| <= 1 in R^U,   reward exp(-(s - target)^2 / (2 width^2)) in (0, 1],   s_1 = 0

The state is one number and the control a vector of which only b' u matters: with weights (a, b) the means a s + b' u
that can be reached from s fill the interval a s +- |b|, and the best control is a multiple of b. So dynamic
programming on a one-dimensional grid solves every dimension. The value W of a mean is interpolated linearly between
knots, which is itself an MDP (the mean is rounded to one of two knots at random), so optimal values, values of other
policies, and therefore regrets are exact for it.

Shapes: B draws of the truth, G grid points, U control, D = 1 + U features (d; here d_s = 1), H steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np

from psrl.config import ConfigError
from psrl.theory.posterior import Posterior

RULES = ("psrl", "mean", "mean-random", "per-step")


@dataclass(frozen=True)
class Problem:
    """A distribution over bump problems: the prior that learners know."""

    controls: int = 2
    horizon: int = 5
    prior_sd_a: float = 0.3
    prior_sd_b: float = 1.0
    noise_sd: float = 0.5
    target: float = 2.0
    width: float = 1.0
    extent: float = 6.0
    spacing: float = 0.2

    @property
    def prior_sd(self):
        """Prior sds of the D weights; those of b are scaled so that |b| does not grow with the dimension."""
        return np.r_[self.prior_sd_a, np.full(self.controls, self.prior_sd_b / np.sqrt(self.controls))]

    @cached_property
    def grid(self):
        half = round(self.extent / self.spacing)
        return np.arange(-half, half + 1) * self.spacing

    @cached_property
    def reward(self):
        return np.exp(-0.5 * ((self.grid - self.target) / self.width) ** 2)

    @cached_property
    def kernel(self):
        """Probabilities [G means, G states] of the next state; rows sum to one."""
        weight = np.exp(-0.5 * ((self.grid[:, None] - self.grid) / self.noise_sd) ** 2)
        return weight / weight.sum(axis=-1, keepdims=True)


class Knots:
    """Points [B, n] located between the knots of a grid, ready to interpolate functions [B, G] there."""

    def __init__(self, problem, points):
        last = len(problem.grid) - 1
        position = np.clip((points + problem.extent) / problem.spacing, 0, last)
        left = np.minimum(position.astype(int), last - 1)
        self.share = position - left
        self.index = left + np.arange(len(points))[:, None] * (last + 1)  # into the flattened function

    def __call__(self, function):
        flat = function.ravel()
        below = flat[self.index]
        return below + self.share * (flat[self.index + 1] - below)


class Reach:
    """The interval of means that each grid state can reach under ``weights`` [B, D], and the best mean in it.

    A piecewise linear function is largest at an end of the interval or at a knot inside. The largest of a run of knots
    is the larger of two overlapping runs whose length is a power of two, and those are tabulated by doubling.
    """

    def __init__(self, problem, weights):
        radius = np.linalg.norm(weights[:, 1:], axis=-1, keepdims=True)
        centre = weights[:, :1] * problem.grid
        self.grid, self.low, self.high = problem.grid, centre - radius, centre + radius
        self.at_low, self.at_high = Knots(problem, self.low), Knots(problem, self.high)
        last = len(problem.grid) - 1
        first = np.ceil((self.low + problem.extent) / problem.spacing).clip(0, last).astype(int)
        final = np.floor((self.high + problem.extent) / problem.spacing).clip(0, last).astype(int)
        level = np.frexp(np.maximum(final - first + 1, 1))[1] - 1
        self.levels = level.max()
        table = (level * len(weights) + np.arange(len(weights))[:, None]) * (last + 1)
        self.runs = table + first, table + np.maximum(final + 1 - (1 << level), 0)

    def best(self, W):
        """Largest value of W [B, G] within reach of each grid state, and the mean that attains it, both [B, G]."""
        values, where = [W], [np.broadcast_to(self.grid, W.shape)]
        for j in range(self.levels):
            shift = 1 << j
            value, place = values[-1].copy(), where[-1].copy()
            better = values[-1][:, shift:] > value[:, :-shift]
            np.copyto(value[:, :-shift], values[-1][:, shift:], where=better)
            np.copyto(place[:, :-shift], where[-1][:, shift:], where=better)
            values.append(value)
            where.append(place)
        values, where = np.stack(values).ravel(), np.stack(where).ravel()
        best, mean = self.at_low(W), self.low
        candidates = [(self.at_high(W), self.high), *((values[run], where[run]) for run in self.runs)]
        for value, place in candidates:
            # an interval may hold no knot at all; then the tabulated one is out of reach
            better = (value > best) & (place >= self.low) & (place <= self.high)
            best, mean = np.where(better, value, best), np.where(better, place, mean)
        return best, mean


class Solution(NamedTuple):
    """Optimal control of given weights: values ``V`` [H+1, B, G] and ``push`` [H, B, G] in [-1, 1] along b / |b|."""

    V: np.ndarray
    push: np.ndarray


class Episode(NamedTuple):
    """Exact regret [B], pairs visited [B, H, D], and there the model minus the truth and sigma_k, both [B, H]."""

    regret: np.ndarray
    pairs: np.ndarray
    error: np.ndarray
    sd: np.ndarray


def solve(problem, weights):
    """Dynamic programming for ``weights`` [B, D]: V_i(s) = r(s) + max of W_i over the means within reach."""
    reach = Reach(problem, weights)
    size = np.maximum(np.linalg.norm(weights[:, 1:], axis=-1, keepdims=True), 1e-300)
    V = np.zeros((problem.horizon + 1, len(weights), len(problem.grid)))
    push = np.zeros((problem.horizon, len(weights), len(problem.grid)))
    V[-2] = problem.reward  # the last control earns nothing, so it is zero
    for i in reversed(range(problem.horizon - 1)):
        best, mean = reach.best(V[i + 1] @ problem.kernel.T)
        V[i] = problem.reward + best
        push[i] = np.clip((mean - weights[:, :1] * problem.grid) / size, -1, 1)
    return Solution(V, push)


def evaluate(problem, weights, push, direction):
    """Values [H+1, B, G] in ``weights`` of the policy that applies ``push`` [H, B, G] along ``direction`` [H, B, U]."""
    V = np.zeros((problem.horizon + 1, len(weights), len(problem.grid)))
    V[-2] = problem.reward
    for i in reversed(range(problem.horizon - 1)):
        along = np.einsum("bu,bu->b", weights[:, 1:], direction[i])
        mean = weights[:, :1] * problem.grid + push[i] * along[:, None]
        V[i] = problem.reward + Knots(problem, mean)(V[i + 1] @ problem.kernel.T)
    return V


def unit(vectors):
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-300)


def learn(problem, rule, draws, seed) -> Iterator[Episode]:
    """Episodes, without end, of ``rule`` in each of ``draws`` problems drawn from the prior; rules as in regret.py."""
    if rule not in RULES:
        raise ConfigError(f"rule {rule!r} is unknown; valid: {', '.join(RULES)}")
    truths, noise, choice = (np.random.default_rng([seed, stream]) for stream in range(3))
    posterior = Posterior(draws, problem.prior_sd, 1, problem.noise_sd)
    truth = posterior.sample(truths)[:, :, 0]
    start = len(problem.grid) // 2
    best = solve(problem, truth).V[0, :, start]
    for k in count():
        model, push, direction = _policy(problem, rule, k, posterior, choice)
        regret = best - evaluate(problem, truth, push, direction)[0, :, start]
        pairs = np.empty((draws, problem.horizon, len(problem.prior_sd)))
        after = np.zeros((draws, problem.horizon + 1))
        for i in range(problem.horizon):
            state = after[:, i, None]
            # between knots the push is interpolated
            pairs[:, i] = np.concatenate([state, Knots(problem, state)(push[i]) * direction[i]], axis=-1)
            after[:, i + 1] = np.einsum("bd,bd->b", truth, pairs[:, i])
            after[:, i + 1] += problem.noise_sd * noise.standard_normal(draws)
        yield Episode(regret, pairs, np.einsum("hbd,bhd->bh", model - truth, pairs), posterior.sd(pairs))
        for i in range(problem.horizon):
            posterior.update(pairs[:, i], after[:, i + 1, None])


def _policy(problem, rule, k, posterior, generator):
    """The models of each step [H, B, D], the push [H, B, G] they ask for, and its direction [H, B, U]."""
    if rule == "per-step":
        model = np.stack([posterior.sample(generator)[:, :, 0] for _ in range(problem.horizon)])
        push = np.stack([solve(problem, m).push[i] for i, m in enumerate(model)])
        return model, push, unit(model[:, :, 1:])
    weights = (posterior.sample(generator) if rule == "psrl" else posterior.mean.copy())[:, :, 0]
    model = np.broadcast_to(weights, (problem.horizon, *weights.shape))
    if rule == "mean-random" and k == 0:
        random = generator.standard_normal((*model.shape[:-1], problem.controls))
        return model, np.ones((*model.shape[:-1], len(problem.grid))), unit(random)
    return model, solve(problem, weights).push, unit(model[:, :, 1:])
