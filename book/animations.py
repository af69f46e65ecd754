"""Looping pictures of an episode of each task, drawn while the book is built."""

import dataclasses
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from psrl import config
from psrl.settings import Planner
from psrl.tasks import TASKS, drawing, episodes

FRAMES = 36  # of an episode, evenly spaced
MILLISECONDS = 120  # per frame
WIDTH = 320  # of one picture, in pixels


def played(name: str) -> dict[str, episodes.Episodes]:
    """An episode of random actions and one of the planner that knows the true dynamics and reward, from seed 0.

    The arms' planned episodes are those of results/filmstrips. Planning the other two takes seconds: it is done here,
    as there, with a quarter of the planner's population.
    """
    task, recording = TASKS[name], episodes.recording(name)
    if recording.is_file():
        planned = episodes.load(recording)
    else:
        settings = config.build(Planner, config.read_params()["tasks"][name]["planner"], f"tasks.{name}.planner")
        fewer = dataclasses.replace(settings, population=settings.population // 4, elites=settings.elites // 4)
        planned = episodes.planned_episodes(task, [0], fewer)
    return {"random actions": episodes.random_episodes(task, [0]), "planned on the true dynamics": planned}


def frames(name: str, shown: dict[str, episodes.Episodes]) -> list[Image.Image]:
    """The episodes side by side, a picture per step that is shown."""
    (left, right), (low, high) = drawing.WINDOWS[name]
    steps = np.linspace(0, TASKS[name].steps, FRAMES).round().astype(int)
    fig = Figure(figsize=(3.2 * len(shown), 3.2 * (high - low) / (right - left) + 0.3), dpi=WIDTH / 3.2)
    canvas = FigureCanvasAgg(fig)
    axes = fig.subplots(1, len(shown))
    fig.subplots_adjust(0.01, 0.01, 0.99, 1 - 0.3 / fig.get_figheight(), wspace=0.02)
    pictures = []
    for step in steps:
        for ax, (label, episode) in zip(axes, shown.items(), strict=True):
            ax.clear()
            drawing.DRAW[name](ax, episode.states[0, step])
            ax.set_title(f"{label}, step {step}", loc="left", fontsize=9)
        canvas.draw()
        pictures.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy()))
    return pictures


def make(folder: Path) -> None:
    """Write NAME.webp, the loop, and NAME.png, its last frame for readers who want nothing to move."""
    for name in TASKS:
        pictures = frames(name, played(name))
        pictures[-1].save(folder / f"{name}.png", optimize=True)
        pace = [MILLISECONDS] * (FRAMES - 1) + [12 * MILLISECONDS]
        pictures[0].save(
            folder / f"{name}.webp", save_all=True, append_images=pictures[1:], duration=pace, loop=0, quality=85
        )
