"""Checks on what callers hand to the environments."""

import math

import numpy as np

from psrl.config import ConfigError


def clipped(action, bound: float, size: int) -> tuple[list[float], float]:
    """Return `action` [A] clipped to the box [-bound, bound], and its sum of squares; refuse NaN and other shapes.

    Plain floats: for a handful of numbers numpy's calls would cost more than a step of the arms' physics may.
    """
    action = np.asarray(action)
    if action.shape != (size,):
        raise ValueError(f"action {action.tolist()} has shape {action.shape}, expected ({size},)")
    values, squares = action.tolist(), 0.0
    for value in values:
        if not -bound <= value <= bound:
            return _pulled_in(values, bound)
        squares += value * value
    return values, squares


def _pulled_in(values: list[float], bound: float) -> tuple[list[float], float]:
    if any(map(math.isnan, values)):
        raise ValueError(f"action {values} contains NaN")
    inside = [min(max(value, -bound), bound) for value in values]
    return inside, sum(value * value for value in inside)


def checked_noise(noise: float) -> float:
    """Return the noise's standard deviation as a float; refuse a negative or infinite one."""
    if not (isinstance(noise, int | float | np.number) and 0 <= noise < math.inf):
        raise ConfigError(f"noise is {noise!r}, but must be a finite standard deviation >= 0 (the paper uses 0.01)")
    return float(noise)
