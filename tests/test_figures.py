"""The colours of the methods: one each, and the palette behind them; files that do not depend on last bits."""

import matplotlib.pyplot as plt
import pytest
import seaborn

from psrl import figures, learner, paths


def test_the_palette_is_seaborns_for_colour_blind_readers():
    known = seaborn.color_palette("colorblind").as_hex()
    assert list(figures._PALETTE) == known[: len(figures._PALETTE)]


def test_every_method_has_a_colour_of_its_own():
    assert figures.COLOURS.keys() == figures.LABELS.keys() == learner.METHODS.keys()
    assert len(set(figures.COLOURS.values())) == len(figures.COLOURS)


@pytest.mark.parametrize("nudge, same", [(1e-12, True), (1e-3, False)])
def test_the_last_bits_of_a_layout_do_not_change_the_file(nudge, same, tmp_path, monkeypatch):
    """The layout's solver returns other last bits in another process; here they are changed by its own margins."""
    monkeypatch.setattr(paths, "FIGURES", tmp_path)
    figures.use_style()
    files = []
    for right in (1.0, 1.0 - nudge):
        fig, axes = plt.subplots(2, 2)
        for ax in axes.flat:
            ax.plot([1, 2, 4], marker="o")
        fig.legend(axes[0, 0].lines, ["a line"], loc="outside lower center")
        fig.get_layout_engine().set(rect=(0, 0, right, 1))
        files.append(figures.save(fig, "layout", alt="Four panels of one line each.").svg)
    assert (files[0] == files[1]) == same
    assert (tmp_path / "layout.svg").read_text() == files[1]
