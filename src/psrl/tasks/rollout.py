"""True dynamics of the arms for planning: many action sequences in one call into MuJoCo."""

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


def advance(env: gymnasium.Env, start: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Physics states [N, H, Q + V] after each of the actions [N, H, A], from `start` [N, Q + V].

    The environment's own simulation stays as it is.
    """
    env = env.unwrapped
    bound = MODULES[type(env)].TORQUE
    full = np.concatenate([np.zeros((len(start), 1)), start], axis=1)  # MuJoCo's full state: time, qpos, qvel
    states, _ = mujoco_rollout.rollout(
        env.model,
        mujoco.MjData(env.model),
        full,
        np.repeat(np.clip(actions, -bound, bound), env.frame_skip, axis=1),
        # The solver starts where the environment's next step would: the same actions give the same bits.
        initial_warmstart=env.data.qacc_warmstart.copy(),
    )
    return states[:, env.frame_skip - 1 :: env.frame_skip, 1:]


def observe(env: gymnasium.Env, states: Tensor) -> Tensor:
    """Observations [..., S] at physics states [..., Q + V]."""
    env = env.unwrapped
    return MODULES[type(env)].observation(*states.tensor_split([env.model.nq], dim=-1))


def rollout(env: gymnasium.Env, start: np.ndarray, actions: Tensor) -> tuple[Tensor, Tensor]:
    """Run action sequences [N, H, A] from the physics state `start` [Q + V].

    Returns observations [N, H + 1, S], the first of them at `start`, and the environment's rewards [N, H].
    """
    actions = actions.detach().cpu().double()
    first = np.broadcast_to(start, (len(actions), len(start)))
    states = np.concatenate([first[:, None], advance(env, first, actions.numpy())], axis=1)
    seen = observe(env, torch.from_numpy(states))
    env = env.unwrapped
    reward = MODULES[type(env)].reward
    return seen, reward(seen[:, :-1], actions, seen[:, 1:], torch.from_numpy(env.goal()))


def true_model(envs: Sequence[gymnasium.Env]) -> tuple[Callable, Callable]:
    """The `step` and `reward` that `psrl.cem.plan` takes, for B arms; states are physics states [B, M, Q + V]."""

    def step(states: Tensor, actions: Tensor) -> Tensor:
        rows = zip(envs, states.double().numpy(), actions.double().numpy(), strict=True)
        following = np.stack([advance(env, start, action[:, None])[:, 0] for env, start, action in rows])
        return torch.from_numpy(following)

    def reward(states: Tensor, actions: Tensor, following: Tensor) -> Tensor:
        goals = torch.from_numpy(np.stack([env.unwrapped.goal() for env in envs]))[:, None]
        honest = MODULES[type(envs[0].unwrapped)].reward
        return honest(observe(envs[0], states), actions, observe(envs[0], following), goals)

    return step, reward
