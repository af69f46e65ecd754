"""Pendulum swing-up: from hanging down, swing up with a torque too weak to lift it directly.

Internal state (angle, speed), angle = 0 upright; observation (cos, sin, speed); action: torque in [-2, 2].
"""

import math

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor

from psrl.tasks.inputs import checked_noise, clipped

DT = 0.05
GRAVITY = 10.0
MASS = 1.0
LENGTH = 1.0
TORQUE = 2.0
MAX_SPEED = 8.0
START = (3.14159, -0.02816067)


def push(speed, sin, torque):
    """Speed after `DT` of gravity and torque on a rod that turns about its end, before clipping."""
    return speed + DT * (1.5 * GRAVITY / LENGTH * sin + 3.0 / (MASS * LENGTH**2) * torque)


def cost(angle, speed, torque):
    """Squared distance from resting upright, and a little of the torque; `angle` in [-pi, pi]."""
    return angle**2 + 0.1 * speed**2 + 0.001 * torque**2


def dynamics(state: Tensor, action: Tensor) -> Tensor:
    """True noise-free next observation [..., 3] of observations [..., 3] and torques [..., 1]."""
    cos, sin, speed = state.unbind(-1)
    speed = push(speed, sin, action[..., 0].clamp(-TORQUE, TORQUE)).clamp(-MAX_SPEED, MAX_SPEED)
    angle = torch.atan2(sin, cos) + DT * speed
    return torch.stack([angle.cos(), angle.sin(), speed], dim=-1)


def reward(state: Tensor, action: Tensor, next_state: Tensor, context=None) -> Tensor:
    """The environment's reward [...], at the state before the step."""
    cos, sin, speed = state.unbind(-1)
    return -cost(torch.atan2(sin, cos), speed, action[..., 0].clamp(-TORQUE, TORQUE))


class PendulumEnv(gymnasium.Env):
    """Gymnasium's pendulum, always started hanging down.

    `noise` is the standard deviation of the independent Gaussian added to the new speed (before the angle is
    integrated and the speed clipped), to the new angle and to the reward.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(self, noise: float = 0.0, render_mode: str | None = None):
        self.noise = checked_noise(noise)
        self.render_mode = render_mode
        high = np.array([1.0, 1.0, MAX_SPEED])
        self.observation_space = Box(-high, high, dtype=np.float64)
        self.action_space = Box(-TORQUE, TORQUE, shape=(1,), dtype=np.float32)
        self.state = np.array(START)

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        super().reset(seed=seed)
        self.state = np.array(START)
        return self._observe(), {}

    def step(self, action):
        (torque,), _ = clipped(action, TORQUE, 1)
        angle, speed = map(float, self.state)
        value = -cost((angle + math.pi) % (2 * math.pi) - math.pi, speed, torque)
        on_speed, on_angle, on_reward = self.np_random.normal(0.0, self.noise, size=3) if self.noise else (0.0,) * 3
        speed = min(max(push(speed, math.sin(angle), torque) + on_speed, -MAX_SPEED), MAX_SPEED)
        self.state = np.array([angle + DT * speed + on_angle, speed])
        return self._observe(), float(value + on_reward), False, False, {}

    def render(self):
        from psrl.tasks import drawing

        if self.render_mode == "rgb_array":
            return drawing.image(lambda ax: drawing.draw_pendulum(ax, self.state))

    def _observe(self) -> np.ndarray:
        angle, speed = self.state
        return np.array([math.cos(angle), math.sin(angle), speed])
