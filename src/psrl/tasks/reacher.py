"""7-DOF Reacher: bring the hand to a point that is drawn at reset.

Observation: 7 joint angles, 3 goal coordinates, 7 joint speeds. Action: 7 torques in [-20, 20].
"""

import mujoco
import numpy as np
import torch
from torch import Tensor

from psrl.tasks import arm
from psrl.tasks.arm_env import ArmEnv
from psrl.tasks.inputs import clipped

TORQUE = 20.0
GOAL = (0.0, 0.25, 0.0)
GOAL_SD = 0.1
GOAL_COLOUR = (0.8, 0.15, 0.15, 1.0)

ARM = arm.Arm(
    base=(0.0, -0.188, 0.0),
    ranges=((-2.2854, 1.714602), (-0.5236, 1.3963), (-3.9, 0.8), (-2.3213, 0.0), None, (-2.094, 0.0), None),
    damping=(10.0, 10.0, 0.1, 1.0, 0.1, 0.1, 0.1),
    torque=TORQUE,
    forearm=0.321,
    reach=0.16828,
    density=1000.0,
    friction=(0.5, 0.1, 0.1),
    integrator=mujoco.mjtIntegrator.mjINT_RK4,
)


def add_hand(wrist) -> None:
    """A palm with two fingers; the end effector is the point between the two finger tips' joints."""
    arm.capsule(wrist, (-0.02, 0, 0, 0.02, 0, 0), 0.01)
    palm = wrist.add_body(name="palm")
    arm.capsule(palm, (0.05, 0, -0.02, 0.05, 0, 0.02), 0.05, rgba=arm.HAND_COLOUR)
    for name, side in (("left", 1), ("right", -1)):
        finger = palm.add_body(name=f"{name}_finger", pos=(0.07691, side * 0.03, 0))
        arm.capsule(finger, (0, 0, 0, 0.09137, side * 0.00495, 0), 0.01, rgba=arm.HAND_COLOUR)
        tip = finger.add_body(name=f"{name}_finger_tip", pos=(0.09137, side * 0.00495, 0))
        arm.capsule(tip, (0, 0, 0, 0.09137, 0, 0), 0.01, rgba=arm.HAND_COLOUR)
    wrist.add_site(name="end_effector", pos=(ARM.reach, 0, 0))


def add_scene(world) -> None:
    """The goal, on three slides whose coordinates are its position."""
    target = world.add_body(name="target", pos=GOAL)
    for name, axis, start in zip("xyz", np.eye(3), GOAL, strict=True):
        arm.slide(target, f"target_{name}", axis, ref=start, armature=0.0)
    arm.sphere(target, (0, 0, 0), 0.035, rgba=GOAL_COLOUR)


def build() -> mujoco.MjModel:
    """Compile the model."""
    return arm.build(ARM, add_hand, add_scene)


def observation(qpos: Tensor, qvel: Tensor) -> Tensor:
    """Observation [..., 17] at qpos [..., 10] and qvel [..., 10]."""
    return torch.cat([qpos, qvel[..., :7]], dim=-1)


def reward(state: Tensor, action: Tensor, next_state: Tensor, context: Tensor) -> Tensor:
    """The environment's reward [...], at the state after the step; `context` [..., 3] is the goal."""
    miss = arm.end_effector(next_state[..., :7], ARM.base, ARM.reach) - context
    return -miss.square().sum(-1) - 0.01 * action.clamp(-TORQUE, TORQUE).square().sum(-1)


class ReacherEnv(ArmEnv):
    """The Reacher; qpos is the 7 joint angles, then the 3 coordinates of the goal."""

    metadata = {"render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"], "render_fps": 50}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None):
        super().__init__(
            2, render_mode, distance=2.2, azimuth=240.0, elevation=-35.0, lookat=np.array([0.35, -0.1, -0.1])
        )

    def build(self) -> mujoco.MjModel:
        return build()

    def observed(self) -> tuple[np.ndarray, ...]:
        return self.data.qpos, self.data.qvel[:7]

    def _attach(self) -> None:
        super()._attach()
        self._hand, self._goal = self.data.site("end_effector").xpos, self.data.qpos[7:]

    def goal(self) -> np.ndarray:
        """The point to reach [3]."""
        return self._goal.copy()

    def reset_model(self) -> np.ndarray:
        qpos = self.init_qpos.copy()
        qpos[7:] += self.np_random.normal(0.0, GOAL_SD, size=3)
        self.set_state(qpos, self.init_qvel)
        return self.observe()

    def step(self, action):
        torques, squares = clipped(action, TORQUE, 7)
        self.simulate(torques)
        x, y, z = self._hand.tolist()
        goal_x, goal_y, goal_z = self._goal.tolist()
        value = -((x - goal_x) ** 2 + (y - goal_y) ** 2 + (z - goal_z) ** 2) - 0.01 * squares
        if self.render_mode == "human":
            self.render()
        return self.observe(), value, False, False, {}
