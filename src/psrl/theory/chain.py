"""A deep chain: why one posterior sample per *episode*.

A corridor of ``length`` steps. Each step the learner may go right or give up (and go home for 0). Who goes right
``length`` times in a row opens the door at the end and gets theta + noise, theta ~ N(0, 1) unknown, noise of sd 1;
nobody else learns anything about theta. Transitions are known and theta has one Gaussian posterior N(m, s^2), so a
model is one number, planning is its sign, and the chance to open the door in an episode is known exactly:

    psrl        Phi(m / s)            one sample decides the whole walk
    per-step    Phi(m / s)^length     every step asks a new sample
    mean        1 if m > 0 else 0     the posterior mean decides; at the prior it stays at home
    dither      (epsilon/2)^length or (1 - epsilon/2)^length     the mean decides, but each step is flipped to a
                random move with probability epsilon

The regret of an episode, averaged over the walk, is theta (1{theta > 0} - chance).

Shapes: B draws of theta, E episodes.
"""

import numpy as np
from scipy.special import ndtr

from psrl.config import ConfigError

RULES = ("psrl", "per-step", "mean", "dither")
EPSILON = 0.1


def open_chance(rule, length, mean, sd):
    """Probability [B] that ``rule`` walks to the end of the corridor, given posterior ``mean`` [B] and ``sd`` [B]."""
    if rule in ("psrl", "per-step"):
        return ndtr(mean / sd) ** (1 if rule == "psrl" else length)
    if rule == "mean":
        return (mean > 0).astype(float)
    if rule == "dither":
        return np.where(mean > 0, 1 - EPSILON / 2, EPSILON / 2) ** length
    raise ConfigError(f"rule {rule!r} is unknown; valid: {', '.join(RULES)}")


def regret(rule, length, draws, episodes, seed):
    """Expected regret of each episode [B, E] given the data before it, for ``draws`` thetas from the prior."""
    truths, noise, choice = (np.random.default_rng([seed, stream]) for stream in range(3))
    theta = truths.standard_normal(draws)
    opened, total = np.zeros(draws), np.zeros(draws)
    result = np.empty((draws, episodes))
    for k in range(episodes):
        # one conjugate Gaussian: precision 1 + openings, mean = sum of rewards / precision
        chance = open_chance(rule, length, total / (1 + opened), 1 / np.sqrt(1 + opened))
        result[:, k] = theta * ((theta > 0) - chance)
        opens = choice.random(draws) < chance
        total += opens * (theta + noise.standard_normal(draws))
        opened += opens
    return result
