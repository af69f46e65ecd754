"""Pictures of the tasks without OpenGL: matplotlib drawings of a state, filmstrips of an episode."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import matplotlib.pyplot as plt
import mujoco
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Polygon
from mujoco import mjtGeom
from scipy.spatial import ConvexHull

from psrl.tasks import cartpole, pendulum, pusher, reacher

INK = "#333333"
RAIL = "#999999"
STEEL = "#6b8099"
AMBER = "#de8f05"
RED = "#cc2626"

# Where the arms are seen from: the angle about z from the x axis, and the angle above the horizon, in degrees.
AZIMUTH, ELEVATION = 60.0, 45.0
EDGE = np.stack([np.cos(np.linspace(0, 2 * np.pi, 25)), np.sin(np.linspace(0, 2 * np.pi, 25))], axis=1)


# What is shown of each task, in metres: left and right, bottom and top (of the projection, for the arms).
WINDOWS = {
    "cartpole": ((-2.6, 2.6), (-1.15, 1.15)),
    "pendulum": ((-1.15, 1.15), (-1.15, 1.15)),
    "reacher": ((-1.1, 0.4), (-0.6, 0.55)),
    "pusher": ((-1.2, 0.1), (-0.65, 0.7)),
}


def bare(ax: Axes, name: str) -> None:
    """Show the task's window at equal scales, without ticks or frame."""
    x, y = WINDOWS[name]
    ax.set(xlim=x, ylim=y, aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def draw_cartpole(ax: Axes, state: Sequence[float]) -> None:
    """Cart and pole at state (x, speed, theta, speed); the ticks on the rail are the limits of the reward."""
    x, _, theta, _ = state
    bare(ax, "cartpole")
    ax.plot([-2.6, 2.6], [0, 0], color=RAIL, lw=1, zorder=0)
    for limit in (-cartpole.X_LIMIT, cartpole.X_LIMIT):
        ax.plot([limit, limit], [-0.1, 0.1], color=RED, lw=1.5)
    (left, right), _ = WINDOWS["cartpole"]
    if not left < x < right:
        away = {"x": right, "ha": "right"} if x > 0 else {"x": left, "ha": "left"}
        ax.text(y=0.35, s="off the track", fontsize=8, color=RED, **away)
        return
    inside = bool(cartpole.upright(x, theta))
    ax.add_patch(FancyBboxPatch((x - 0.25, -0.12), 0.5, 0.24, boxstyle="round,pad=0.02", fc=STEEL, ec=INK, lw=0.8))
    length = 2 * cartpole.POLE_HALF_LENGTH
    ax.plot(
        [x, x + length * np.sin(theta)],
        [0, length * np.cos(theta)],
        color=AMBER if inside else RED,
        lw=4,
        solid_capstyle="round",
    )
    ax.plot(x, 0, "o", color=INK, ms=3)


def draw_pendulum(ax: Axes, state: Sequence[float]) -> None:
    """The rod at state (angle, speed)."""
    angle = state[0]
    bare(ax, "pendulum")
    ax.add_patch(Circle((0, 0), pendulum.LENGTH, fc="none", ec=RAIL, lw=0.8, ls=":"))
    ax.plot([0, np.sin(angle)], [0, np.cos(angle)], color=AMBER, lw=6, solid_capstyle="round")
    ax.plot(0, 0, "o", color=INK, ms=4)


def view() -> np.ndarray:
    """The rows of this rotation [3, 3] are the picture's right, its up, and the direction towards the viewer."""
    azimuth, elevation = np.radians([AZIMUTH, ELEVATION])
    towards = np.array([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)])
    right = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
    return np.stack([right, np.cross(towards, right), towards])


def outline(model: mujoco.MjModel, data: mujoco.MjData, geom: int, rotation: np.ndarray) -> np.ndarray:
    """Corners [M, 2] of the shape's silhouette, seen from infinitely far away.

    Capsules and spheres become the hull of the discs at their ends, which is exact; a cylinder the hull of its rims.
    """
    kind, size = model.geom_type[geom], model.geom_size[geom]
    centre, axes = data.geom_xpos[geom], data.geom_xmat[geom].reshape(3, 3)
    if kind == mjtGeom.mjGEOM_PLANE:
        corners = centre + np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * size[:2] @ axes[:, :2].T
        return corners @ rotation[:2].T
    half = np.outer([-1, 1], axes[:, 2]) * (0.0 if kind == mjtGeom.mjGEOM_SPHERE else size[1])
    ends = (centre + half) @ rotation[:2].T
    rim = EDGE * size[0]
    if kind == mjtGeom.mjGEOM_CYLINDER:
        rim = rim @ axes[:, :2].T @ rotation[:2].T
    points = (ends[:, None] + rim).reshape(-1, 2)
    return points[ConvexHull(points).vertices]


def draw_arm(ax: Axes, model: mujoco.MjModel, qpos: np.ndarray) -> None:
    """An arm and its scene at `qpos`, from MuJoCo's body positions, nearer shapes over farther ones."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_kinematics(model, data)
    rotation = view()
    shown = [geom for geom in range(model.ngeom) if model.geom_rgba[geom, 3] > 0]
    flat = {geom: model.geom_type[geom] == mjtGeom.mjGEOM_PLANE for geom in shown}
    for geom in sorted(shown, key=lambda geom: (not flat[geom], data.geom_xpos[geom] @ rotation[2])):
        edge = "none" if flat[geom] else INK
        ax.add_patch(Polygon(outline(model, data, geom, rotation), fc=model.geom_rgba[geom], ec=edge, lw=0.5))


def draw_reacher(ax: Axes, qpos: np.ndarray) -> None:
    """The Reacher at `qpos` [10]."""
    bare(ax, "reacher")
    draw_arm(ax, _reacher(), qpos)


def draw_pusher(ax: Axes, qpos: np.ndarray) -> None:
    """The Pusher at `qpos` [11]."""
    bare(ax, "pusher")
    draw_arm(ax, _pusher(), qpos)


_reacher, _pusher = cache(reacher.build), cache(pusher.build)

# What each drawing takes: Cartpole's state, Pendulum's (angle, speed), an arm's qpos.
DRAW = {"cartpole": draw_cartpole, "pendulum": draw_pendulum, "reacher": draw_reacher, "pusher": draw_pusher}


def filmstrip(
    name: str, episodes: Mapping[str, np.ndarray], steps: Sequence[int], width: float = 1.6, first: int = 0
) -> Figure:
    """A row of pictures per episode, labelled by its key; states [T, ...] as `DRAW` takes them, shown at `steps`.

    `first` is the step that the first state belongs to.
    """
    (left, right), (low, high) = WINDOWS[name]
    height = width * (high - low) / (right - left) + 0.3
    shape = (width * len(steps), height * len(episodes))
    fig, axes = plt.subplots(len(episodes), len(steps), figsize=shape, squeeze=False, layout="constrained")
    for row, (label, states) in zip(axes, episodes.items(), strict=True):
        row[0].set_title(label, loc="left", fontsize=9)
        for ax, step in zip(row, steps, strict=True):
            DRAW[name](ax, states[step - first])
    for ax, step in zip(axes[-1], steps, strict=True):
        ax.set_xlabel(f"step {step}", fontsize=9)
    return fig


def image(draw: Callable[[Axes], None], pixels: int = 400) -> np.ndarray:
    """What `draw` puts on a square of white, as an array [pixels, pixels, 3] of bytes."""
    fig = Figure(figsize=(4, 4), dpi=pixels / 4)
    canvas = FigureCanvasAgg(fig)
    draw(fig.add_axes((0, 0, 1, 1)))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
