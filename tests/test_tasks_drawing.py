"""Pictures of the tasks: with OpenGL where there is one, and without."""

import os
import subprocess
import sys

import matplotlib.pyplot as plt
import mujoco
import numpy as np
import pytest
from matplotlib.figure import Figure

from psrl.tasks import TASKS, drawing, pusher, reacher

RENDER_ARMS = """
import gymnasium, numpy, psrl
for name in ("psrl/Reacher-v0", "psrl/Pusher-v0"):
    env = gymnasium.make(name, render_mode="rgb_array")
    env.reset(seed=0)
    try:
        first = env.render()
    except gymnasium.error.DependencyNotInstalled as error:
        print("refused:", error)
    else:
        for _ in range(20):
            env.step(env.action_space.high)
        second = env.render()
        print("rendered", first.shape, first.dtype, bool(first.std() > 10), bool(numpy.any(first != second)))
"""


@pytest.mark.parametrize("name", ["cartpole", "pendulum"])
def test_cartpole_and_pendulum_render_without_opengl(name):
    env = TASKS[name].make(render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert first.dtype == np.uint8 and first.ndim == 3 and first.shape[2] == 3
    assert first.min() < 100 and first.max() == 255
    for _ in range(10):
        env.step(env.action_space.high)
    assert np.any(env.render() != first)
    assert TASKS[name].make().unwrapped.render() is None


def rendered(backend: str) -> list[str]:
    environment = {**os.environ, "MUJOCO_GL": backend}
    command = [sys.executable, "-c", RENDER_ARMS]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout.splitlines()


def test_arms_render_where_egl_is_and_say_what_to_install_elsewhere():
    for outcome in rendered("egl"):
        picture = outcome == "rendered (480, 480, 3) uint8 True True"
        assert picture or outcome.startswith("refused: MuJoCo found no OpenGL")


def test_without_opengl_the_error_names_the_remedy():
    outcomes = rendered("disabled")
    assert len(outcomes) == 2
    for outcome in outcomes:
        assert outcome.startswith("refused: MuJoCo found no OpenGL")
        assert "MUJOCO_GL=egl" in outcome and "libegl1" in outcome and "psrl.tasks.drawing" in outcome


def test_the_view_is_a_rotation_with_up_upwards():
    view = drawing.view()
    np.testing.assert_allclose(view @ view.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(view) == pytest.approx(1.0)
    assert view[1, 2] > 0 and view[0, 2] == 0


def polygon_area(corners: np.ndarray) -> float:
    x, y = corners.T
    return 0.5 * abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1)))


def test_silhouettes_have_the_size_of_the_shapes():
    model = reacher.build()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    view = drawing.view()
    for geom in range(model.ngeom):
        radius, half = model.geom_size[geom, :2]
        disc = np.pi * radius**2
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SPHERE:
            expected = disc
        else:
            axis = data.geom_xmat[geom].reshape(3, 3)[:, 2]
            expected = disc + 2 * radius * 2 * half * np.linalg.norm(view[:2] @ axis)
        # polygons of 24 corners are about 1% smaller than circles
        assert polygon_area(drawing.outline(model, data, geom, view)) == pytest.approx(expected, rel=0.015)


def test_invisible_shapes_are_not_drawn():
    model = pusher.build()
    ax = Figure().add_subplot()
    drawing.draw_pusher(ax, np.zeros(11))
    assert len(ax.patches) == model.ngeom - 1


@pytest.mark.parametrize("name", list(TASKS))
def test_filmstrips_have_a_row_per_episode_and_a_picture_per_step(name):
    width = {"cartpole": 4, "pendulum": 2, "reacher": 10, "pusher": 11}[name]
    fig = drawing.filmstrip(name, {"one": np.zeros((9, width)), "two": np.zeros((9, width))}, [0, 4, 8])
    assert len(fig.axes) == 6
    assert [ax.get_xlabel() for ax in fig.axes[3:]] == ["step 0", "step 4", "step 8"]
    assert [ax.get_title(loc="left") for ax in fig.axes[::3]] == ["one", "two"]
    assert all(len(ax.patches) + len(ax.lines) > 1 for ax in fig.axes)
    plt.close(fig)
