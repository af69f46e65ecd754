"""Continuous Cartpole: keep the pole upright by pushing the cart with any force in +-10 N.

State (x, speed of x, theta, speed of theta), theta = 0 upright; action a in [-1, 1], force 10 a.
"""

import math

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor

from psrl.tasks.inputs import checked_noise, clipped

TAU = 0.02
GRAVITY = 9.8
CART_MASS = 1.0
POLE_MASS = 0.1
POLE_HALF_LENGTH = 0.5
FORCE = 10.0
X_LIMIT = 2.4
THETA_LIMIT = math.radians(12)


def euler_step(x, x_dot, theta, theta_dot, sin, cos, action):
    """Advance the frictionless cart and pole by `TAU`; arguments are floats or tensors of one shape.

    `sin` and `cos` are those of theta, so that this one formula serves the environment and the torch planner.
    """
    mass = CART_MASS + POLE_MASS
    moment = POLE_MASS * POLE_HALF_LENGTH
    push = (FORCE * action + moment * theta_dot**2 * sin) / mass
    theta_acc = (GRAVITY * sin - cos * push) / (POLE_HALF_LENGTH * (4 / 3 - POLE_MASS * cos**2 / mass))
    x_acc = push - moment * theta_acc * cos / mass
    # Explicit Euler: positions move with the old speeds.
    return x + TAU * x_dot, x_dot + TAU * x_acc, theta + TAU * theta_dot, theta_dot + TAU * theta_acc


def upright(x, theta):
    """Whether cart and pole are within the limits that pay the reward."""
    return (abs(x) <= X_LIMIT) & (abs(theta) <= THETA_LIMIT)


def dynamics(state: Tensor, action: Tensor) -> Tensor:
    """True noise-free next state [..., 4] of states [..., 4] and actions [..., 1]."""
    x, x_dot, theta, theta_dot = state.unbind(-1)
    push = action[..., 0].clamp(-1, 1)
    return torch.stack(euler_step(x, x_dot, theta, theta_dot, theta.sin(), theta.cos(), push), dim=-1)


def reward(state: Tensor, action: Tensor, next_state: Tensor, context=None) -> Tensor:
    """The environment's reward [...]: 1, also for the step that leaves the limits, 0 while it stays outside."""
    before = upright(state[..., 0], state[..., 2])
    after = upright(next_state[..., 0], next_state[..., 2])
    return (before | after).to(state.dtype)


def planning_reward(state: Tensor, action: Tensor, next_state: Tensor, context=None) -> Tensor:
    """The authors' planning oracle cos(theta) - 0.01 x^2 [...]: smooth where the true reward is a step."""
    return state[..., 2].cos() - 0.01 * state[..., 0] ** 2


class CartpoleEnv(gymnasium.Env):
    """Cartpole whose episodes go on after the pole has fallen.

    `noise` is the standard deviation of the independent Gaussian added to each component of the new state and to
    the reward.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012

    def __init__(self, noise: float = 0.0, render_mode: str | None = None):
        self.noise = checked_noise(noise)
        self.render_mode = render_mode
        self.observation_space = Box(-np.inf, np.inf, shape=(4,), dtype=np.float64)
        self.action_space = Box(-1.0, 1.0, shape=(1,), dtype=np.float32)
        self.state = np.zeros(4)

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-0.05, 0.05, size=4)
        return self.state.copy(), {}

    def step(self, action):
        (push,), _ = clipped(action, 1.0, 1)
        x, x_dot, theta, theta_dot = map(float, self.state)
        self.state = np.array(euler_step(x, x_dot, theta, theta_dot, math.sin(theta), math.cos(theta), push))
        if self.noise:
            self.state += self.np_random.normal(0.0, self.noise, size=4)
        paid = upright(x, theta) or upright(self.state[0], self.state[2])
        value = 1.0 if paid else 0.0
        if self.noise:
            value += self.np_random.normal(0.0, self.noise)
        return self.state.copy(), value, False, False, {}

    def render(self):
        from psrl.tasks import drawing

        if self.render_mode == "rgb_array":
            return drawing.image(lambda ax: drawing.draw_cartpole(ax, self.state))
