"""True dynamics of the arms for planning: many action sequences in one call into MuJoCo."""

import gymnasium
import mujoco
import numpy as np
import torch
from mujoco import rollout as mujoco_rollout
from torch import Tensor

from psrl.tasks import pusher, reacher

MODULES = {reacher.ReacherEnv: reacher, pusher.PusherEnv: pusher}


def physics_state(env: gymnasium.Env) -> np.ndarray:
    """The environment's current qpos and qvel, as one vector [Q + V]."""
    return env.unwrapped.state_vector()


def rollout(env: gymnasium.Env, start: np.ndarray, actions: Tensor) -> tuple[Tensor, Tensor]:
    """Run action sequences [N, H, A] from the state `start` [Q + V] without touching the environment.

    Returns observations [N, H + 1, S], the first of them at `start`, and the environment's rewards [N, H].
    """
    env = env.unwrapped
    module, model = MODULES[type(env)], env.model
    controls = actions.detach().cpu().double().clamp(-module.TORQUE, module.TORQUE).numpy()
    n = len(controls)
    # Full physics states are (time, qpos, qvel); the solver starts where the environment's own next step would.
    initial = np.broadcast_to(np.concatenate([[0.0], start]), (n, 1 + len(start)))
    states, _ = mujoco_rollout.rollout(
        model,
        mujoco.MjData(model),
        initial,
        np.repeat(controls, env.frame_skip, axis=1),
        initial_warmstart=env.data.qacc_warmstart.copy(),
    )
    visited = np.concatenate([initial[:, None], states[:, env.frame_skip - 1 :: env.frame_skip]], axis=1)[..., 1:]
    qpos, qvel = torch.from_numpy(visited).tensor_split([model.nq], dim=-1)
    observations = module.observation(qpos, qvel)
    goal = torch.from_numpy(env.goal())
    rewards = module.reward(observations[:, :-1], actions.cpu().double(), observations[:, 1:], goal)
    return observations, rewards
