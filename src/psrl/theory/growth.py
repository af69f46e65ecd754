"""How fast a regret grows: slopes on log-log axes with bootstrap intervals.

A study keeps, for every setting, the mean regret of ``N`` blocks of draws of the truth. Blocks are independent, so
resampling them gives intervals without keeping every draw.

Shapes: N blocks, X points along the axis of growth (T, H or d).
"""

from typing import NamedTuple

import numpy as np


class Estimate(NamedTuple):
    """A number and its 95% interval."""

    value: float
    low: float
    high: float

    def __str__(self):
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def slope(x, y):
    """Least-squares exponent p of y ~ x^p: x [X], y [..., X] -> [...]."""
    x, y = np.log(x), np.log(y)
    centred = x - x.mean()
    return y @ centred / (centred @ centred)


def bootstrap_slope(x, blocks, generator, replicates=2000):
    """Exponent of the mean of ``blocks`` [N, X] in x [X], with the percentile interval over resampled blocks."""
    x, blocks = np.asarray(x, dtype=float), np.asarray(blocks, dtype=float)
    chosen = generator.integers(len(blocks), size=(replicates, len(blocks)))
    means = blocks[chosen].mean(axis=1)
    return Estimate(slope(x, blocks.mean(axis=0)), *np.quantile(slope(x, means), [0.025, 0.975]))


def mean_interval(blocks):
    """Mean [X] of ``blocks`` [N, X] and the half-width [X] of its normal 95% interval."""
    blocks = np.asarray(blocks, dtype=float)
    return blocks.mean(axis=0), 1.96 * blocks.std(axis=0, ddof=1) / np.sqrt(len(blocks))
