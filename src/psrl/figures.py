"""One style for all figures, one colour per method, and one way to save a figure and show it in its notebook."""

import base64
import hashlib
import html
import io
import re
from collections.abc import Iterable
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from psrl import paths

# seaborn's palette "colorblind", written out: importing seaborn for it takes longer than drawing a figure.
_PALETTE = ("#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc", "#ca9161")

# MPC-PSRL is red as in the paper; the rest of the palette is safe for colour-blind readers.
COLOURS = {
    "psrl": "#d1242f",
    "psrl-eb": _PALETTE[1],
    "pets": _PALETTE[2],
    "mbpo": _PALETTE[0],
    "sac": _PALETTE[4],
    "ddpg": _PALETTE[5],
    "oracle": "#222222",
    "random": "#949494",
}
LABELS = {
    "psrl": "MPC-PSRL",
    "psrl-eb": "MPC-PSRL, evidence",
    "pets": "PETS",
    "mbpo": "MBPO",
    "sac": "SAC",
    "ddpg": "DDPG",
    "oracle": "oracle planner",
    "random": "random policy",
}


def use_style() -> None:
    """Call once at the top of a notebook."""
    plt.style.use(Path(__file__).with_name("psrl.mplstyle"))


class Shown:
    """A saved figure as a notebook shows it: the picture, its alternative text and a link to the line that saves it."""

    def __init__(self, svg: str, name: str, alt: str):
        self.svg, self.name, self.alt = svg, name, alt

    def _repr_html_(self) -> str:
        picture = base64.b64encode(self.svg.encode()).decode()
        notebook, line = source_of(self.name)
        source = f'<a href="{notebook}#L{line}">{notebook}, line {line}</a>' if notebook else "a live cell"
        return (
            f'<figure style="margin:0"><img style="max-width:100%" alt="{html.escape(self.alt, quote=True)}" '
            f'src="data:image/svg+xml;base64,{picture}"/>'
            f"<figcaption><small>figures/{self.name}.svg, drawn by {source}</small></figcaption></figure>"
        )

    def __repr__(self) -> str:
        return f"figures/{self.name}.svg: {self.alt}"


def source_of(name: str) -> tuple[str | None, int]:
    """The notebook (its .py) and the line that save the figure ``name``."""
    for notebook in sorted(paths.NOTEBOOKS.glob("*.py")):
        text = notebook.read_text()
        if call := re.search(rf'\bsave\(\s*\w+,\s*"{re.escape(name)}"', text):
            return notebook.name, text.count("\n", 0, call.start()) + 1
    return None, 0


def hash_of(files: Iterable[Path]) -> str:
    """Seven hexadecimal digits that change when the name or content of any of the files does."""
    digest = hashlib.sha256()
    for file in sorted(Path(f) for f in files):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:7]


class Settled(ConstrainedLayoutEngine):
    """Constrained layout that leaves axes at multiples of a millionth of the figure.

    The solver behind it orders its sums by memory address, so the last bits of a position differ from one process to
    the next, and the names inside an SVG are hashes of all bits.
    """

    def execute(self, fig: Figure) -> None:
        super().execute(fig)
        for ax in fig.axes:
            ax.set_position([round(value, 6) for value in ax.get_position(original=True).bounds])
            ax.set_in_layout(True)  # set_position takes them out


def save(fig: Figure, name: str, *, alt: str, inputs: Iterable[Path] = ()) -> Shown:
    """Write ``figures/NAME.svg``, the same bytes for the same figure, and return it for display.

    ``alt`` says in a sentence or two what one sees. ``inputs`` are the result files the figure is drawn from; their
    short hash is printed in the corner, so that a picture can be traced to its data.
    """
    inputs = list(inputs)
    fig.set_layout_engine(Settled(**fig.get_layout_engine().get()))
    if inputs:
        strip = 0.1 / fig.get_figheight()  # a tenth of an inch below all labels
        fig.get_layout_engine().set(rect=(0, strip, 1, 1 - strip))
        fig.text(0.998, 0.004, f"data {hash_of(inputs)}", ha="right", va="bottom", fontsize=6, color="#767676")
    buffer = io.StringIO()
    with plt.rc_context({"svg.hashsalt": name}):
        fig.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Title": alt})
    plt.close(fig)
    svg = buffer.getvalue()
    paths.write_atomic(paths.FIGURES / f"{name}.svg", svg)
    return Shown(svg, name, alt)
