"""The colours of the methods: one each, from a palette that colour-blind readers can tell apart."""

import seaborn

from psrl import figures


def test_the_palette_is_seaborns_for_colour_blind_readers():
    known = seaborn.color_palette("colorblind").as_hex()
    assert list(figures._PALETTE) == known[: len(figures._PALETTE)]


def test_every_method_has_a_colour_of_its_own():
    assert figures.COLOURS.keys() == figures.LABELS.keys()
    assert len(set(figures.COLOURS.values())) == len(figures.COLOURS)
