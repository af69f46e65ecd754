"""Section 3.5: posterior sampling keeps the mean of an optimal value, unless features are fitted to the same data."""

import numpy as np
import pytest

from psrl.config import ConfigError
from psrl.theory import features


def bias(way, points, draws=10_000):
    """Mean of sampled minus true optimal value, and its standard error."""
    true, sampled = features.amplitudes(way, draws, points, np.random.default_rng([51, points]))
    return (sampled - true).mean(), (sampled - true).std() / np.sqrt(draws)


@pytest.mark.parametrize("points", [0, 5, 15])
@pytest.mark.parametrize("way", ["known", "average"])
def test_the_exact_posterior_keeps_the_identity(way, points):
    value, error = bias(way, points)
    assert abs(value) < 4 * error


def test_fitted_features_break_it_and_data_mend_it():
    (few, few_error), (many, many_error) = bias("relearn", 5), bias("relearn", 60)
    assert few > 8 * few_error
    assert abs(many) < few / 5 + 4 * many_error


def test_the_bias_has_either_sign():
    value, error = bias("relearn", 2)
    assert value < -4 * error


def test_an_unknown_way_is_refused_by_name():
    with pytest.raises(ConfigError, match="'guess' is unknown; valid: known, relearn, average"):
        features.amplitudes("guess", 5, 3, np.random.default_rng(0))
