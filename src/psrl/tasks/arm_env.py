"""What the Reacher's and the Pusher's environments have in common."""

from abc import ABC, abstractmethod

import gymnasium
import numpy as np
from gymnasium.envs.mujoco.mujoco_env import MujocoEnv
from gymnasium.spaces import Box
from mujoco import MjData, MjModel, mj_kinematics, mj_step

NO_GL = (
    "MuJoCo found no OpenGL to render with: on a machine without a display install EGL (Debian, Ubuntu: libegl1 and "
    "libgl1-mesa-dri) and set MUJOCO_GL=egl before Python starts, or draw without OpenGL with psrl.tasks.drawing"
)


class ArmEnv(MujocoEnv, ABC):
    """A `MujocoEnv` whose model comes from an `MjSpec` instead of a file.

    Subclasses build their model and say which parts of the simulation they observe. Views of those parts are kept,
    since looking them up at every step would cost a twentieth of it.

    MuJoCo leaves body positions one sub-step behind qpos after `mj_step`. Here `simulate` brings them up to date, so
    that observations and rewards are functions of the current qpos and qvel, however the state was reached.
    """

    def __init__(self, frame_skip: int, render_mode: str | None = None, **camera):
        # MujocoEnv insists on an existing path; the model is described in Python, so this file stands for it.
        super().__init__(__file__, frame_skip, None, render_mode, default_camera_config=camera)
        self._attach()
        # Nothing is bounded: joint limits are soft.
        self.observation_space = Box(-np.inf, np.inf, shape=self.observe().shape, dtype=np.float64)

    @abstractmethod
    def build(self) -> MjModel:
        """Compile the model."""

    @abstractmethod
    def observed(self) -> tuple[np.ndarray, ...]:
        """Views of `self.data` which, joined, are the observation; the simulation keeps them up to date."""

    def observe(self) -> np.ndarray:
        """The observation [S]."""
        return np.concatenate(self._parts)

    def _attach(self) -> None:
        self._controls, self._parts = self.data.ctrl, self.observed()

    def __setstate__(self, state: dict) -> None:
        # A copied or unpickled environment has a simulation of its own to look at.
        self.__dict__.update(state)
        self._attach()

    def _initialize_simulation(self):
        model = self.build()
        model.vis.global_.offwidth, model.vis.global_.offheight = self.width, self.height
        return model, MjData(model)

    def simulate(self, torques: list[float]) -> None:
        """Apply the torques for `frame_skip` sub-steps and bring body positions up to date.

        MujocoEnv's own stepping also computes contact forces on bodies, which no observation here contains.
        """
        model, data = self.model, self.data
        self._controls[:] = torques
        mj_step(model, data, self.frame_skip)
        mj_kinematics(model, data)

    def render(self):
        try:
            return super().render()
        except gymnasium.error.Error:
            raise
        except Exception as error:
            # GLFW, EGL and OSMesa each fail with an exception of their own.
            raise gymnasium.error.DependencyNotInstalled(NO_GL) from error
