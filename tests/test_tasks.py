"""The four environments as Gymnasium, planners and learners meet them."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import tiny
import torch
from gymnasium.utils.env_checker import check_env

from psrl.config import NOISY_TASKS, ConfigError
from psrl.tasks import TASKS

NAMES = list(TASKS)
ARMS = ["reacher", "pusher"]
NOISY = [name for name in NAMES if TASKS[name].noisy]
PAPER = {
    "cartpole": (4, 1, 200, 1.0),
    "pendulum": (3, 1, 200, 2.0),
    "reacher": (17, 7, 150, 20.0),
    "pusher": (20, 7, 150, 2.0),
}


def random_actions(name: str, count: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    task = TASKS[name]
    return scale * task.action_bound * np.random.default_rng(seed).uniform(-1, 1, (count, task.action_dim))


def episode(env, actions, seed):
    """Observations [T + 1, S] and rewards [T]."""
    observation, _ = env.reset(seed=seed)
    observations, rewards = [observation], []
    for action in actions:
        observation, reward, *_ = env.step(action)
        observations.append(observation)
        rewards.append(reward)
    return np.array(observations), np.array(rewards)


def tensor(array, dtype=torch.float32):
    return None if array is None else torch.as_tensor(np.asarray(array), dtype=dtype)


def test_importing_the_package_registers_the_tasks_without_heavy_imports():
    code = (
        "import psrl, sys, gymnasium; print([i for i in gymnasium.registry if i.startswith('psrl/')], "
        "'torch' in sys.modules, 'mujoco' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    ids = ["psrl/Cartpole-v0", "psrl/Pendulum-v0", "psrl/Reacher-v0", "psrl/Pusher-v0"]
    assert printed.strip() == f"{ids} False False"


@pytest.mark.parametrize("name", NAMES)
def test_sizes_and_bounds_are_the_papers_and_agree_with_the_environment(name):
    task, env = TASKS[name], TASKS[name].make()
    assert (task.state_dim, task.action_dim, task.steps, task.action_bound) == PAPER[name]
    assert env.observation_space.shape == (task.state_dim,)
    assert env.action_space.shape == (task.action_dim,)
    assert np.all(env.action_space.high == task.action_bound) and np.all(env.action_space.low == -task.action_bound)
    assert env.spec.id == task.env_id


@pytest.mark.filterwarnings("ignore:.*(infinity|normalized|render mode).*:UserWarning")
@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_own_checks_pass(name):
    check_env(TASKS[name].make().unwrapped, skip_render_check=True)


@pytest.mark.parametrize("name", NAMES)
def test_episodes_truncate_at_the_limit_and_never_terminate(name):
    task = TASKS[name]
    env = task.make()
    env.reset(seed=0)
    ends = [env.step(np.full(task.action_dim, task.action_bound))[2:4] for _ in range(task.steps)]
    assert ends == [(False, False)] * (task.steps - 1) + [(False, True)]


@pytest.mark.parametrize(("name", "noise"), [("cartpole", 0.01), ("pendulum", 0.01), ("reacher", 0.0), ("pusher", 0.0)])
def test_a_seed_fixes_the_trajectory_whatever_else_runs(name, noise):
    task, actions = TASKS[name], random_actions(name, 40)
    alone = episode(task.make(noise), actions, seed=7)
    again, other = task.make(noise), task.make(noise)
    other.reset(seed=8)
    observations, rewards = [again.reset(seed=7)[0]], []
    for action in actions:
        np.random.standard_normal(3)  # noqa: NPY002 (the environments must not share the global generator)
        other.step(-action)
        observation, reward, *_ = again.step(action)
        observations.append(observation)
        rewards.append(reward)
    assert np.array_equal(alone[0], observations) and np.array_equal(alone[1], rewards)
    if noise or name in ARMS:
        assert not np.array_equal(alone[0], episode(task.make(noise), actions, seed=9)[0])


@pytest.mark.parametrize("name", NAMES)
def test_the_global_generator_is_left_alone(name):
    before = tiny.global_state()
    episode(TASKS[name].make(0.01 if name in NOISY else 0.0), random_actions(name, 5), seed=0)
    assert tiny.global_state() == before


@pytest.mark.parametrize("name", NAMES)
def test_resets_without_a_seed_continue_the_environments_generator(name):
    env = TASKS[name].make()
    starts = [env.reset(seed=3)[0], env.reset()[0]]
    assert np.array_equal(starts, [env.reset(seed=3)[0], env.reset()[0]])
    assert (name == "pendulum") == np.array_equal(*starts)  # Pendulum always starts in the same state


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_is_refused_by_name_and_infinity_is_clipped(name, bad):
    task = TASKS[name]
    env = task.make()
    env.reset(seed=0)
    action = np.zeros(task.action_dim)
    action[-1] = bad
    if np.isnan(bad):
        before = env.unwrapped.state.copy() if name in NOISY else env.unwrapped.state_vector()
        with pytest.raises(ValueError, match=r"action .*nan.* contains NaN"):
            env.step(action)
        after = env.unwrapped.state if name in NOISY else env.unwrapped.state_vector()
        assert np.array_equal(before, after)
    else:
        assert np.isfinite(env.step(action)[0]).all()


@pytest.mark.parametrize("name", NAMES)
def test_an_action_of_another_shape_is_refused(name):
    task = TASKS[name]
    env = task.make()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="shape"):
        env.step(np.zeros(task.action_dim + 1))


@pytest.mark.parametrize("name", NAMES)
def test_actions_beyond_the_box_act_and_cost_like_the_bound(name):
    bound = TASKS[name].action_bound
    actions = random_actions(name, 20, scale=3.0)
    assert np.abs(actions).max() > bound
    beyond = episode(TASKS[name].make(), actions, seed=0)
    at_bound = episode(TASKS[name].make(), np.clip(actions, -bound, bound), seed=0)
    assert np.array_equal(beyond[0], at_bound[0]) and np.array_equal(beyond[1], at_bound[1])


@pytest.mark.parametrize("name", NAMES)
def test_the_callers_action_is_not_modified(name):
    env = TASKS[name].make()
    env.reset(seed=0)
    action = np.full(TASKS[name].action_dim, 100.0)
    env.step(action)
    assert np.all(action == 100.0)


@pytest.mark.parametrize("name", NOISY)
@pytest.mark.parametrize("noise", [-0.01, np.nan, np.inf, "0.01", None])
def test_an_impossible_noise_level_is_refused_by_name(name, noise):
    with pytest.raises(ConfigError, match="noise is"):
        TASKS[name].make(noise)


@pytest.mark.parametrize("name", ARMS)
def test_the_arms_have_no_noise_level(name):
    assert not TASKS[name].noisy and name not in NOISY_TASKS
    with pytest.raises(ConfigError, match=rf"noise is 0\.01 on {name}"):
        TASKS[name].make(0.01)
    with pytest.raises(ConfigError, match=rf"noise is 0\.01 on {name}"):
        TASKS[name].make_vec(2, noise=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_vector_copies_equal_single_environments(name):
    task, noise = TASKS[name], 0.01 if name in NOISY else 0.0
    seeds, steps = [11, 12, 13], 30
    actions = np.stack([random_actions(name, steps, seed) for seed in seeds], axis=1)  # [T, B, A]
    together = task.make_vec(len(seeds), noise)
    observations, rewards = [together.reset(seed=seeds)[0]], []
    for action in actions:
        observation, reward, *_ = together.step(action)
        observations.append(observation)
        rewards.append(reward)
    for b, seed in enumerate(seeds):
        single = episode(task.make(noise), actions[:, b], seed)
        assert np.array_equal(single[0], np.array(observations)[:, b])
        assert np.array_equal(single[1], np.array(rewards)[:, b])


def test_vector_copies_go_on_until_they_are_reset():
    task = TASKS["pendulum"]
    envs = task.make_vec(2)
    envs.reset(seed=[0, 1])
    for _ in range(task.steps + 5):
        observation, _, terminated, truncated, _ = envs.step(np.ones((2, 1)))
        assert not truncated.any() and not terminated.any()
    fresh, _ = envs.reset()
    assert not np.allclose(observation, fresh) and np.allclose(fresh[0], fresh[1])


def set_random_state(name: str, env, rng) -> np.ndarray:
    """Put the environment anywhere the task can go, and return the observation."""
    inner = env.unwrapped
    if name == "cartpole":
        inner.state = rng.uniform(-1, 1, 4) * [3.0, 2.0, 0.4, 2.0]
        return inner.state.copy()
    if name == "pendulum":
        inner.state = rng.uniform(-1, 1, 2) * [2 * np.pi, 8.0]
        angle, speed = inner.state
        return np.array([np.cos(angle), np.sin(angle), speed])
    qpos = np.concatenate([rng.uniform(-1.5, 0.5, 7), rng.normal(0, 0.3, inner.model.nq - 7)])
    qvel = np.concatenate([rng.normal(0, 2, 7), np.zeros(inner.model.nv - 7)])
    inner.set_state(qpos, qvel)
    return inner.observe()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", NAMES)
def test_the_batched_reward_is_the_environments(name, dtype):
    task, rng = TASKS[name], np.random.default_rng(1)
    env = task.make()
    env.reset(seed=0)
    rows = []
    for action in random_actions(name, 300, seed=2, scale=1.2):  # some of them beyond the box
        state = set_random_state(name, env, rng)
        context = task.context(env)
        following, reward, *_ = env.unwrapped.step(action)
        rows.append((state, action, following, np.zeros(0) if context is None else context, reward))
    state, action, following, context, reward = (np.array(column) for column in zip(*rows, strict=True))
    given = tensor(context, dtype) if task.context_dim else None
    computed = task.reward(tensor(state, dtype), tensor(action, dtype), tensor(following, dtype), given)
    assert computed.shape == (300,) and computed.dtype == dtype
    np.testing.assert_allclose(computed.numpy(), reward, rtol=0, atol=1e-5)
    # any leading dimensions
    grid = [tensor(x, dtype).reshape(3, 2, 50, -1) for x in (state, action, following)]
    folded = task.reward(*grid, given.reshape(3, 2, 50, -1) if task.context_dim else None)
    assert torch.equal(folded.reshape(300), computed)


def test_one_goal_serves_a_whole_population():
    task = TASKS["reacher"]
    state, action = torch.randn(5, 40, 17), torch.randn(5, 40, 7)
    goals = torch.randn(5, 3)
    together = task.reward(state, action, state, goals[:, None])
    assert torch.allclose(together[2], task.reward(state[2], action[2], state[2], goals[2]))


@pytest.mark.parametrize("name", NAMES)
def test_the_planning_reward_differs_from_the_honest_one_only_on_cartpole(name):
    task = TASKS[name]
    assert (task.planning_reward is task.reward) == (name != "cartpole")


def test_cartpoles_planning_reward_is_the_authors():
    state = torch.tensor([[0.0, 0.0, 0.0, 0.0], [2.0, 9.0, torch.pi / 3, -9.0]])
    values = TASKS["cartpole"].planning_reward(state, torch.zeros(2, 1), torch.zeros(2, 4), None)
    assert torch.allclose(values, torch.tensor([1.0, 0.5 - 0.04]))


@pytest.mark.parametrize("name", NOISY)
def test_the_batched_dynamics_are_the_environments(name):
    task, rng = TASKS[name], np.random.default_rng(4)
    env = task.make()
    env.reset(seed=0)
    for action in random_actions(name, 300, seed=5, scale=1.2):
        state = set_random_state(name, env, rng)
        following = env.unwrapped.step(action)[0]
        predicted = task.dynamics(tensor(state, torch.float64)[None, None], tensor(action, torch.float64)[None, None])
        assert predicted.shape == (1, 1, task.state_dim)
        np.testing.assert_allclose(predicted[0, 0].numpy(), following, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ARMS)
def test_copied_and_unpickled_arms_go_on_alone(name):
    env, actions = TASKS[name].make(), random_actions(name, 12)
    env.reset(seed=0)
    for action in actions[:4]:
        env.step(action)
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    original = [env.step(action)[0] for action in actions[4:]]
    for other in copies:
        assert np.array_equal(original, [other.step(action)[0] for action in actions[4:]])


@pytest.mark.parametrize("name", ARMS)
def test_observations_are_functions_of_the_current_state(name):
    """A step's observation equals the one after setting the same state, though MuJoCo leaves positions behind."""
    env = TASKS[name].make()
    env.reset(seed=0)
    for action in random_actions(name, 20):
        stepped = env.step(action)[0]
    inner = env.unwrapped
    inner.set_state(inner.data.qpos.copy(), inner.data.qvel.copy())
    np.testing.assert_allclose(stepped, inner.observe(), rtol=0, atol=1e-14)
