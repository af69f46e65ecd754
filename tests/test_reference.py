"""Random actions and the planner that knows the truth, which the normalised score is measured by."""

import numpy as np
import pytest
import tiny
import torch

from psrl.config import resolve
from psrl.mpc import ModelPredictiveControl
from psrl.reference import OraclePlanner, RandomPolicy
from psrl.tasks import TASKS

CLASSES = {"random": RandomPolicy, "oracle": OraclePlanner}


def learner(method, task, seeds=(0, 1), steps=20, overrides=None, **values):
    params = tiny.params()
    params["tasks"][task]["steps"] = steps
    run = resolve(params, task=task, method=method, seeds=list(seeds), episodes=2, overrides=overrides, **values)
    return CLASSES[method](run, "cpu")


def episode(*arguments, **values):
    return learner(*arguments, **values).episode(lambda step: None).returns


@pytest.mark.parametrize("task", ["cartpole", "pendulum", "reacher", "pusher"])
def test_random_actions_repeat_with_the_seed_and_only_with_it(task):
    first = episode("random", task, seeds=(0, 1), steps=60)
    assert np.array_equal(first, episode("random", task, seeds=(0, 1), steps=60))
    assert np.array_equal(first[1:], episode("random", task, seeds=(1,), steps=60))
    assert task == "cartpole" or first[0] != first[1]


@pytest.mark.parametrize("method", ["random", "oracle"])
def test_an_episode_may_be_longer_than_the_papers(method):
    steps = TASKS["pendulum"].steps + 5
    seen: list[int] = []
    learner(method, "pendulum", steps=steps).episode(seen.append)
    assert seen[-1] == steps


@pytest.mark.parametrize("task", ["cartpole", "pendulum", "reacher", "pusher"])
def test_knowing_the_truth_beats_chance_from_the_first_episode(task):
    steps = {"cartpole": 80, "pendulum": 60}.get(task, 10)
    planner = {"population": 40, "elites": 8, "iterations": 3, "horizon": 12}
    known = episode("oracle", task, steps=steps, overrides={"planner": planner})
    chance = episode("random", task, steps=steps)
    assert (known > chance).all()


def test_it_balances_the_pole_without_a_fall():
    planner = {"population": 100, "elites": 10, "iterations": 4, "horizon": 25}
    assert np.array_equal(episode("oracle", "cartpole", steps=100, overrides={"planner": planner}), [100.0, 100.0])


@pytest.mark.parametrize("task", ["reacher", "pusher"])
def test_planning_leaves_the_arm_where_it_is(task):
    oracle = learner("oracle", task)
    state = oracle._reset(first=True)
    before = [env.unwrapped.state_vector().copy() for env in oracle.envs.envs]
    mean = torch.zeros(2, oracle.settings.planner.horizon, 7)
    planned = oracle.plan(state, mean, 0)
    assert planned.shape == mean.shape and planned.abs().max() > 0
    assert all(np.array_equal(a, env.unwrapped.state_vector()) for a, env in zip(before, oracle.envs.envs, strict=True))


def test_an_arm_is_planned_for_on_the_device_of_the_plan(monkeypatch):
    """The meta device stands for a GPU: it has no numbers, but tensors on it are not on the CPU."""
    oracle = learner("oracle", "reacher")
    oracle._reset(first=True)
    oracle.device = torch.device("meta")
    monkeypatch.setattr(ModelPredictiveControl, "plan", lambda self, state, mean, at_step: state)
    assert oracle.plan(None, None, 0).device.type == "meta"


@pytest.mark.parametrize(("method", "task"), [("random", "pendulum"), ("oracle", "pendulum"), ("oracle", "reacher")])
def test_a_loaded_state_goes_on_as_if_never_interrupted(method, task, tmp_path):
    noise = 0.01 if task == "pendulum" else 0.0
    whole, resumed = (learner(method, task, noise=noise) for _ in range(2))
    whole.episode(lambda step: None)
    torch.save(whole.state_dict(), tmp_path / "state.pt")
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=False))
    assert np.array_equal(whole.episode(lambda step: None).returns, resumed.episode(lambda step: None).returns)
