"""The seven-joint arm that Reacher and Pusher share, described once and built with MuJoCo's `MjSpec`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import mujoco
import torch
from mujoco import mjtGeom, mjtJoint
from torch import Tensor

ARM_COLOUR = (0.42, 0.5, 0.6, 1.0)
HAND_COLOUR = (0.87, 0.56, 0.02, 1.0)
EYE_COLOUR = (0.95, 0.95, 0.95, 1.0)
PUPIL_COLOUR = (0.1, 0.1, 0.1, 1.0)
ARMATURE = 0.04

# Distances along the chain (metres): shoulder to lift pivot, lift pivot to elbow, elbow to wrist flex.
SHOULDER, UPPER_ARM, FOREARM = 0.1, 0.4, 0.321


class Link(NamedTuple):
    """A body of the chain, hinged at its own origin; a `fixed` link has no joint and no angle."""

    name: str
    offset: float  # along the parent's x axis
    axis: tuple[int, int, int] | None  # None: fixed to its parent
    capsule: tuple[tuple[float, ...], float] | None  # (from xyz to xyz, radius)


def chain(forearm: float) -> list[Link]:
    """The links from shoulder to wrist, each the child of the one before; `forearm` is its capsule's length."""
    z, y, x = (0, 0, 1), (0, 1, 0), (1, 0, 0)
    return [
        Link("shoulder_pan", 0.0, z, ((0, 0, -0.4, 0, 0, 0.2), 0.1)),
        Link("shoulder_lift", SHOULDER, y, ((0, -0.1, 0, 0, 0.1, 0), 0.1)),
        Link("upper_arm_roll", 0.0, x, ((-0.1, 0, 0, 0.1, 0, 0), 0.02)),
        Link("upper_arm", 0.0, None, ((0, 0, 0, UPPER_ARM, 0, 0), 0.06)),
        Link("elbow_flex", UPPER_ARM, y, ((0, -0.02, 0, 0, 0.02, 0), 0.06)),
        Link("forearm_roll", 0.0, x, ((-0.1, 0, 0, 0.1, 0, 0), 0.02)),
        Link("forearm", 0.0, None, ((0, 0, 0, forearm, 0, 0), 0.05)),
        Link("wrist_flex", FOREARM, y, ((0, -0.02, 0, 0, 0.02, 0), 0.01)),
        Link("wrist_roll", 0.0, x, None),
    ]


@dataclass(frozen=True)
class Arm:
    """What differs between the two arms (SI units, radians); sequences of seven run from shoulder to wrist."""

    base: tuple[float, float, float]  # position of the shoulder
    ranges: tuple[tuple[float, float] | None, ...]  # None: unlimited
    damping: tuple[float, ...]
    torque: float  # every motor's limit
    forearm: float  # length of the forearm's capsule
    reach: float  # from the wrist to the hand's reference point, along the hand's axis
    density: float
    friction: tuple[float, float, float]
    integrator: mujoco.mjtIntegrator


def capsule(body, fromto, radius: float, **kwargs):
    """Add a capsule to `body`."""
    return body.add_geom(type=mjtGeom.mjGEOM_CAPSULE, fromto=fromto, size=[radius, 0, 0], **kwargs)


def sphere(body, pos, radius: float, **kwargs):
    """Add a sphere to `body`."""
    return body.add_geom(type=mjtGeom.mjGEOM_SPHERE, pos=pos, size=[radius, 0, 0], **kwargs)


def slide(body, name: str, axis, **kwargs):
    """Add a slide joint to `body`."""
    return body.add_joint(name=name, type=mjtJoint.mjJNT_SLIDE, axis=axis, **kwargs)


def build(arm: Arm, add_hand: Callable, add_scene: Callable) -> mujoco.MjModel:
    """Compile the arm with the hand that `add_hand(wrist)` and the scene that `add_scene(world)` attach."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.timestep = 0.01
    spec.option.gravity = [0, 0, 0]
    spec.option.iterations = 20
    spec.option.integrator = arm.integrator
    defaults = spec.default.geom
    defaults.density, defaults.friction = arm.density, arm.friction
    defaults.contype = defaults.conaffinity = 0
    defaults.condim, defaults.margin = 1, 0.002
    defaults.rgba = ARM_COLOUR
    spec.default.joint.armature = ARMATURE

    spec.visual.headlight.ambient = spec.visual.headlight.diffuse = [0.45] * 3
    spec.add_texture(
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_FLAT,
        width=8,
        height=8,
        rgb1=[1] * 3,
        rgb2=[1] * 3,
    )

    body, joints = spec.worldbody, 0
    for i, link in enumerate(chain(arm.forearm)):
        body = body.add_body(name=link.name, pos=(link.offset, 0, 0) if i else arm.base)
        if i == 0:
            for side in (-0.06, 0.06):
                sphere(body, (side, 0.05, 0.2), 0.05, rgba=EYE_COLOUR)
                sphere(body, (side, 0.09, 0.2), 0.03, rgba=PUPIL_COLOUR)
        if link.axis:
            limits = arm.ranges[joints]
            body.add_joint(
                name=link.name,
                axis=link.axis,
                damping=[arm.damping[joints], 0, 0],
                limited=limits is not None,
                range=limits or (0, 0),
            )
            motor = spec.add_actuator(
                name=link.name, target=link.name, trntype=mujoco.mjtTrn.mjTRN_JOINT, ctrllimited=True
            )
            motor.ctrlrange = (-arm.torque, arm.torque)
            motor.set_to_motor()
            joints += 1
        if link.capsule:
            capsule(body, *link.capsule)
    add_hand(body)
    add_scene(spec.worldbody)
    return spec.compile()


def end_effector(angles: Tensor, base: tuple[float, float, float], reach: float) -> Tensor:
    """Position [..., 3] of the point `reach` beyond the wrist, for joint angles [..., 7].

    The point is carried from the hand back to the shoulder, one rotation at a time; the wrist's roll turns about
    the axis the point lies on and does not move it.
    """
    cos, sin = angles.cos().unbind(-1), angles.sin().unbind(-1)

    def about_x(x, y, z, joint):
        return x, y * cos[joint] - z * sin[joint], y * sin[joint] + z * cos[joint]

    def about_y(x, y, z, joint):
        return x * cos[joint] + z * sin[joint], y, z * cos[joint] - x * sin[joint]

    x, y, z = reach * cos[5], torch.zeros_like(cos[5]), -reach * sin[5]  # wrist flex
    x, y, z = about_x(x, y, z, 4)  # forearm roll
    x, y, z = about_y(x + FOREARM, y, z, 3)  # elbow
    x, y, z = about_x(x, y, z, 2)  # upper arm roll
    x, y, z = about_y(x + UPPER_ARM, y, z, 1)  # shoulder lift
    x = x + SHOULDER
    x, y = x * cos[0] - y * sin[0], x * sin[0] + y * cos[0]  # shoulder pan
    return torch.stack([x + base[0], y + base[1], z + base[2]], dim=-1)
