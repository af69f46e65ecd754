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
    for i, value in enumerate(values):
        if not -bound <= value <= bound:
            if math.isnan(value):
                raise ValueError(f"action {action.tolist()} contains NaN")
            values[i] = value = math.copysign(bound, value)
        squares += value * value
    return values, squares


def checked_noise(noise: float) -> float:
    """Return the noise's standard deviation as a float; refuse a negative or infinite one."""
    if not (isinstance(noise, int | float | np.number) and 0 <= noise < math.inf):
        raise ConfigError(f"noise is {noise!r}, but must be a finite standard deviation >= 0 (the paper uses 0.01)")
    return float(noise)
