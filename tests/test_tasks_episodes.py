"""Episodes to look at: reproducible, what the planner earns, and what is recorded."""

import numpy as np
import pytest

from psrl.settings import Planner
from psrl.tasks import STEPS, TASKS, cartpole, episodes

QUICK = Planner(population=60, elites=6, iterations=2, horizon=12, smoothing=0.1, initial_variance=1.0, tolerance=0.01)


@pytest.mark.parametrize("name", list(TASKS))
def test_random_episodes_are_reproducible_and_each_has_its_own_seed(name):
    task = TASKS[name]
    both = episodes.random_episodes(task, [3, 4])
    assert both.states.shape[:2] == (2, task.steps + 1) and both.rewards.shape == (2, task.steps)
    second = episodes.random_episodes(task, [4])
    assert np.array_equal(both.states[1], second.states[0]) and np.array_equal(both.rewards[1], second.rewards[0])
    assert not np.array_equal(both.states[0], both.states[1])


def test_random_actions_are_not_the_noise_of_the_start(monkeypatch):
    """The environment draws its start with the generator of the seed: actions must come from another one."""
    monkeypatch.setattr(episodes, "_play", lambda task, seeds, noise, act: act(None, None))
    actions = episodes.random_episodes(TASKS["cartpole"], range(20))
    starts = np.stack([TASKS["cartpole"].make().reset(seed=seed)[0] for seed in range(20)])
    assert actions.shape == (20, 1) and not np.isclose(actions, starts / 0.05).any()


def test_the_planner_that_knows_the_truth_balances_the_pole():
    task = TASKS["cartpole"]
    planned = episodes.planned_episodes(task, [0, 1], QUICK)
    assert planned.returns.tolist() == [200.0, 200.0]
    assert np.all(cartpole.upright(planned.states[:, :, 0], planned.states[:, :, 2]))
    assert episodes.random_episodes(task, range(10)).returns.max() < 150


def test_the_planner_brings_the_reachers_hand_nearer(monkeypatch):
    monkeypatch.setitem(STEPS, "Reacher", 12)
    task = TASKS["reacher"]
    planned = episodes.planned_episodes(task, [0], QUICK)
    still = -np.sum((np.array([0.98928, -0.188, 0.0]) - planned.states[0, 0, 7:]) ** 2)
    assert planned.rewards.shape == (1, 12) and planned.rewards[0, -1] > still


def test_a_recorded_episode_is_read_back(tmp_path):
    first = episodes.random_episodes(TASKS["pendulum"], [5])
    episodes.save(first, tmp_path / "pendulum.csv")
    again = episodes.load(tmp_path / "pendulum.csv")
    np.testing.assert_allclose(again.states, first.states, atol=1e-6)
    np.testing.assert_allclose(again.rewards, first.rewards, atol=1e-6)


def test_an_unknown_task_is_refused_by_name(capsys):
    assert episodes.main(["reacher", "walker"]) == 2
    err = capsys.readouterr().err
    assert "task 'walker' is unknown; valid: cartpole, pendulum, reacher, pusher" in err and err.count("\n") == 1
