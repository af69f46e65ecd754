"""Looping pictures of what was learned on each task, drawn while the book is built."""

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from psrl import config, film
from psrl.tasks import TASKS, drawing

FRAMES = 36  # of an episode, evenly spaced
MILLISECONDS = 120  # per frame
WIDTH = 320  # of one picture, in pixels


def frames(name: str) -> list[Image.Image]:
    """A learner's first and last episode side by side, a picture per step that is shown."""
    episodes, last = film.load(name), config.experiment(name, section="films").episodes
    shown = {"episode 1": episodes[film.FIRST], f"episode {last}": episodes[film.LAST]}
    (left, right), (low, high) = drawing.WINDOWS[name]
    steps = np.linspace(1, len(episodes[film.FIRST].rewards[0]), FRAMES).round().astype(int)
    fig = Figure(figsize=(3.2 * len(shown), 3.2 * (high - low) / (right - left) + 0.3), dpi=WIDTH / 3.2)
    canvas = FigureCanvasAgg(fig)
    axes = fig.subplots(1, len(shown))
    fig.subplots_adjust(0.01, 0.01, 0.99, 1 - 0.3 / fig.get_figheight(), wspace=0.02)
    pictures = []
    for step in steps:
        for ax, (label, episode) in zip(axes, shown.items(), strict=True):
            ax.clear()
            drawing.DRAW[name](ax, episode.states[0, step - 1])
            ax.set_title(f"{label}, step {step}", loc="left", fontsize=9)
        canvas.draw()
        pictures.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy()))
    return pictures


def make(folder: Path) -> None:
    """Write NAME.webp, the loop, and NAME.png, its last frame for readers who want nothing to move."""
    for name in TASKS:
        pictures = frames(name)
        pictures[-1].save(folder / f"{name}.png", optimize=True)
        pace = [MILLISECONDS] * (FRAMES - 1) + [12 * MILLISECONDS]
        pictures[0].save(
            folder / f"{name}.webp", save_all=True, append_images=pictures[1:], duration=pace, loop=0, quality=85
        )
