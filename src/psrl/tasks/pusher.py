"""7-DOF Pusher: push an object on a table to a goal.

Observation: 7 joint angles, 7 joint speeds, position of the hand's tips (3), position of the object (3).
Action: 7 torques in [-2, 2].
"""

import mujoco
import numpy as np
import torch
from torch import Tensor

from psrl.tasks import arm
from psrl.tasks.arm_env import ArmEnv
from psrl.tasks.inputs import clipped

TORQUE = 2.0
OBJECT = (0.45, -0.05, -0.275)
GOAL = (0.45, -0.05, -0.323)
START = (-0.25, 0.15)  # mean offset of the object from OBJECT, along y then x
START_SD = 0.025
ARM_SPEED = 0.005
LIGHT = 1e-5  # density of object and goal: their slides' armature is what gives them inertia
# The hand's tips, the object and the goal, in this order. Their centres of mass (xipos) are observed: that of the
# tips lies between the two, while the origin of their frame is the wrist.
LAST_BODIES = slice(-3, None)
COLLIDES = {"contype": 1, "conaffinity": 1}
OBJECT_COLOUR = (0.0, 0.45, 0.7, 1.0)
GOAL_COLOUR = (0.8, 0.15, 0.15, 1.0)
TABLE_COLOUR = (0.9, 0.88, 0.85, 1.0)

ARM = arm.Arm(
    base=(0.0, -0.6, 0.0),
    ranges=((-2.2854, 2.0), (-0.5236, 1.3963), (-1.5, 1.7), (-2.3213, 0.0), (-1.5, 1.5), (-1.094, 0.0), (-1.5, 1.5)),
    damping=(1.0, 1.0, 0.1, 0.1, 0.1, 0.1, 0.1),
    torque=TORQUE,
    forearm=0.291,
    reach=0.1,
    density=300.0,
    friction=(0.8, 0.1, 0.1),
    integrator=mujoco.mjtIntegrator.mjINT_EULER,
)


def add_hand(wrist) -> None:
    """A U of three bars that can push; the tips' centre of mass lies in the mouth of the U."""
    for bar in ((0, -0.1, 0, 0, 0.1, 0), (0, -0.1, 0, 0.1, -0.1, 0), (0, 0.1, 0, 0.1, 0.1, 0)):
        arm.capsule(wrist, bar, 0.02, rgba=arm.HAND_COLOUR, **COLLIDES)
    tips = wrist.add_body(name="tips_arm")
    for side in (-0.1, 0.1):
        arm.sphere(tips, (0.1, side, 0), 0.01, rgba=arm.HAND_COLOUR)


def add_scene(world) -> None:
    """A table, an object that slides on it, and a goal that only shows where to push."""
    world.add_geom(
        name="table",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        pos=(0, 0.5, -0.325),
        size=(1, 1, 0.1),
        rgba=TABLE_COLOUR,
        **COLLIDES,
    )
    puck = world.add_body(name="object", pos=OBJECT)
    goal = world.add_body(name="goal", pos=GOAL)
    for body, name in ((puck, "object"), (goal, "goal")):
        for direction, axis in (("y", (0, 1, 0)), ("x", (1, 0, 0))):
            arm.slide(body, f"{name}_{direction}", axis, range=(-10.3213, 10.3), limited=True, damping=[0.5, 0, 0])
    cylinder = mujoco.mjtGeom.mjGEOM_CYLINDER
    arm.sphere(puck, (0, 0, 0), 0.05, density=LIGHT, rgba=(0, 0, 0, 0))
    puck.add_geom(type=cylinder, size=(0.05, 0.05, 0), density=LIGHT, contype=1, rgba=OBJECT_COLOUR)
    goal.add_geom(type=cylinder, size=(0.08, 0.001, 0), density=LIGHT, rgba=GOAL_COLOUR)


def build() -> mujoco.MjModel:
    """Compile the model, with contacts as stiff as the authors' MuJoCo made them.

    MuJoCo scales a contact's softness by the inverse weights of the bodies that touch. Since version 3 it takes those
    of a body on axis-aligned slides to be 1 / mass and forgets the armature, which here is all the inertia there is:
    the hand would pass through the object. The general rule, the mean diagonal of J M^-1 J^T, counts it.
    """
    model = arm.build(ARM, add_hand, add_scene)
    for body in ("object", "goal"):
        index = model.body(body).id
        inertia = model.body_mass[index] + arm.ARMATURE
        slides = slice(model.body_dofadr[index], model.body_dofadr[index] + 2)
        model.dof_invweight0[slides] = 1 / inertia
        model.body_invweight0[index] = (2 / (3 * inertia), 0.0)  # two of three directions are free, no rotation is
    return model


def observation(qpos: Tensor, qvel: Tensor) -> Tensor:
    """Observation [..., 20] at qpos [..., 11] and qvel [..., 11]."""
    tips = arm.end_effector(qpos[..., :7], ARM.base, ARM.reach)
    # The object's slides are y, then x.
    offset = torch.stack([qpos[..., 8], qpos[..., 7], torch.zeros_like(qpos[..., 7])], dim=-1)
    return torch.cat([qpos[..., :7], qvel[..., :7], tips, offset + qpos.new_tensor(OBJECT)], dim=-1)


def reward(state: Tensor, action: Tensor, next_state: Tensor, context: Tensor) -> Tensor:
    """The environment's reward [...], at the state before the step; `context` [..., 3] is the goal."""
    tips, puck = state[..., 14:17], state[..., 17:20]
    far, near = (puck - context).abs().sum(-1), (puck - tips).abs().sum(-1)
    return -1.25 * far - 0.5 * near - 0.1 * action.clamp(-TORQUE, TORQUE).square().sum(-1)


class PusherEnv(ArmEnv):
    """The Pusher; qpos is the 7 joint angles, the object's y and x, the goal's y and x (offsets)."""

    metadata = {"render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"], "render_fps": 25}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None):
        super().__init__(
            4, render_mode, distance=2.0, azimuth=240.0, elevation=-40.0, lookat=np.array([0.4, -0.4, -0.1])
        )

    def build(self) -> mujoco.MjModel:
        return build()

    def observed(self) -> tuple[np.ndarray, ...]:
        return self.data.qpos[:7], self.data.qvel[:7], self._places[:6]

    def _attach(self) -> None:
        self._places = self.data.xipos[LAST_BODIES].reshape(-1)
        super()._attach()

    def goal(self) -> np.ndarray:
        """Where the object should be [3]."""
        return self._places[6:].copy()

    def reset_model(self) -> np.ndarray:
        qpos, qvel = self.init_qpos.copy(), self.init_qvel.copy()
        qpos[7:9] = START + self.np_random.normal(0.0, START_SD, size=2)
        qvel[:7] = self.np_random.uniform(-ARM_SPEED, ARM_SPEED, size=7)
        self.set_state(qpos, qvel)
        return self.observe()

    def step(self, action):
        torques, squares = clipped(action, TORQUE, 7)
        tip_x, tip_y, tip_z, x, y, z, goal_x, goal_y, goal_z = self._places.tolist()
        far = abs(x - goal_x) + abs(y - goal_y) + abs(z - goal_z)
        near = abs(x - tip_x) + abs(y - tip_y) + abs(z - tip_z)
        value = -1.25 * far - 0.5 * near - 0.1 * squares
        self.simulate(torques)
        if self.render_mode == "human":
            self.render()
        return self.observe(), value, False, False, {}
