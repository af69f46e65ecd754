"""True dynamics of the arms for planning: many arms at once, in one call into MuJoCo."""

from collections.abc import Callable, Sequence

import gymnasium
import mujoco
import numpy as np
import torch
from mujoco import rollout as mujoco_rollout
from torch import Tensor

from psrl.tasks import pusher, reacher

MODULES = {reacher.ReacherEnv: reacher, pusher.PusherEnv: pusher}


def physics_state(env: gymnasium.Env) -> np.ndarray:
    """The arm's qpos and qvel as one vector [Q + V]: unlike Pusher's observation, all that decides its future."""
    return env.unwrapped.state_vector()


def advance(env: gymnasium.Env, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Physics states [M, Q + V] one environment step after `states` [M, Q + V] under the actions [M, A].

    The environment's own simulation stays as it is.
    """
    env = env.unwrapped
    bound = MODULES[type(env)].TORQUE
    full = np.concatenate([np.zeros((len(states), 1)), states], axis=1)  # MuJoCo's full state: time, qpos, qvel
    controls = np.clip(actions, -bound, bound)[:, None].repeat(env.frame_skip, axis=1)
    following, _ = mujoco_rollout.rollout(env.model, mujoco.MjData(env.model), full, controls)
    return following[:, -1, 1:]


def observe(env: gymnasium.Env, states: Tensor) -> Tensor:
    """Observations [..., S] at physics states [..., Q + V]."""
    env = env.unwrapped
    return MODULES[type(env)].observation(*states.tensor_split([env.model.nq], dim=-1))


def true_model(envs: Sequence[gymnasium.Env]) -> tuple[Callable, Callable]:
    """The `step` and `reward` that `psrl.cem.plan` takes, for B arms; states are physics states [B, M, Q + V]."""
    reward_of = MODULES[type(envs[0].unwrapped)].reward
    goals = torch.from_numpy(np.stack([env.unwrapped.goal() for env in envs]))[:, None]

    def step(states: Tensor, actions: Tensor) -> Tensor:
        rows = zip(envs, states.double().cpu().numpy(), actions.double().cpu().numpy(), strict=True)
        following = torch.from_numpy(np.stack([advance(*row) for row in rows]))
        return following.to(states.device)

    def reward(states: Tensor, actions: Tensor, following: Tensor) -> Tensor:
        return reward_of(observe(envs[0], states), actions, observe(envs[0], following), goals.to(states.device))

    return step, reward
