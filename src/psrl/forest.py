"""Estimates with intervals, one row each; a row without results says so."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from psrl.statistics import Interval

GREY = "#595959"
OPAQUE = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # a note stays readable on the reference line


@dataclass(frozen=True)
class Row:
    """A label, what is known, and the values of single trials where they are to be seen."""

    label: str
    interval: Interval | None
    colour: str
    trials: np.ndarray | None = None  # [B]
    note: str = "not yet run"  # said in place of the interval where there is none


def forest(ax: Axes, rows: Sequence[Row], reference: float | None = None) -> None:
    """Draw rows from top to bottom: interval as a line, estimate as a dot, trials as small dots."""
    for y, row in enumerate(rows):
        if row.interval is None:
            place = {"transform": ax.get_yaxis_transform(), "ha": "right", "va": "center"}
            ax.text(0.98, y, row.note, fontsize=9, color=GREY, bbox=OPAQUE, **place)
            continue
        ax.plot([row.interval.low, row.interval.high], [y, y], color=row.colour, lw=2.2, solid_capstyle="butt")
        ax.plot(row.interval.estimate, y, "o", color=row.colour, ms=6)
        if row.trials is not None:
            ax.plot(row.trials, np.full(len(row.trials), y + 0.22), ".", color=row.colour, ms=4, alpha=0.6)
    if reference is not None:
        ax.axvline(reference, color=GREY, lw=0.9, ls="--")
    ax.set_yticks(range(len(rows)), [row.label for row in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    if not any(row.interval for row in rows):
        ax.set_xticks([])
