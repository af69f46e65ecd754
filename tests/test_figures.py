"""The colours of the methods: one each, and the palette behind them."""

import seaborn

from psrl import figures, learner


def test_the_palette_is_seaborns_for_colour_blind_readers():
    known = seaborn.color_palette("colorblind").as_hex()
    assert list(figures._PALETTE) == known[: len(figures._PALETTE)]


def test_every_method_has_a_colour_of_its_own():
    assert figures.COLOURS.keys() == figures.LABELS.keys() == learner.METHODS.keys()
    assert len(set(figures.COLOURS.values())) == len(figures.COLOURS)
