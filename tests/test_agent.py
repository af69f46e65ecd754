"""MPC-PSRL as a whole: deterministic, resumable, the same alone and in a batch, and better than chance."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
import torch

from psrl import model
from psrl.agent import MPCPSRL
from psrl.config import read_params, resolve
from psrl.model import Perceptrons, SampledModel
from psrl.tasks import TASKS


def tiny(task="pendulum", reward="learned", seeds=(0, 1), **changes):
    """A run of a few seconds: short episodes, small networks, a small planner."""
    params = read_params()
    params["tasks"][task]["steps"] = 12
    overrides = {
        "planner": {"population": 20, "elites": 4, "iterations": 2, "horizon": 4},
        "network": {"layers": 2, "width": 16},
        "epochs": {"dynamics": 3, "reward": 3},
    }
    values = {"task": task, "method": "psrl", "reward": reward, "seeds": list(seeds), "episodes": 3, **changes}
    overrides |= values.pop("overrides", {})
    return resolve(params, overrides=overrides, **values)


def returns(learner, episodes):
    return np.stack([learner.episode().returns for _ in range(episodes)])


@pytest.mark.parametrize("method", ["psrl", "psrl-eb"])
@pytest.mark.parametrize("task", ["cartpole", "pendulum", "reacher", "pusher"])
def test_same_seed_same_returns(task, method):
    run = tiny(task, method=method)
    assert np.array_equal(returns(MPCPSRL(run), 3), returns(MPCPSRL(run), 3))


def test_other_seeds_other_returns():
    first, second = returns(MPCPSRL(tiny()), 2)
    assert len(np.unique(first)) == 2 and len(np.unique(second)) == 2


@pytest.mark.parametrize("method", ["psrl", "psrl-eb"])
def test_a_trial_in_a_batch_of_five_is_as_it_would_be_alone(method):
    together = returns(MPCPSRL(tiny(seeds=range(5), method=method, noise=0.01)), 3)
    alone = returns(MPCPSRL(tiny(seeds=(3,), method=method, noise=0.01)), 3)
    assert np.array_equal(together[0, 3:4], alone[0])
    assert np.allclose(together[:, 3:4], alone, rtol=1e-3)


@pytest.mark.parametrize("method", ["psrl", "psrl-eb"])
@pytest.mark.parametrize("task", ["pendulum", "reacher"])
def test_a_loaded_state_goes_on_as_if_never_interrupted(task, method, tmp_path):
    noise = 0.01 if task == "pendulum" else 0.0
    run = tiny(task, method=method, noise=noise)
    whole = MPCPSRL(run)
    first = whole.episode()
    second = whole.episode()
    torch.save(whole.state_dict(), tmp_path / "state.pt")
    rest = returns(whole, 2)
    resumed = MPCPSRL(run)
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert np.array_equal(rest, returns(resumed, 2))
    assert not np.array_equal(first.returns, second.returns)


def test_one_model_per_episode_unless_asked_otherwise():
    models = {}
    for sample in ("episode", "step", "mean"):
        agent = MPCPSRL(tiny(overrides={"sample": sample}))
        agent.episode()
        agent.learn()
        weights = []
        for step in range(3):
            agent.model(step)
            weights.append(agent.sampled.dynamics.weights[-1].clone())
        models[sample] = weights
    assert torch.equal(models["episode"][0], models["episode"][2])
    assert not torch.equal(models["step"][0], models["step"][2])
    assert torch.equal(models["mean"][0], models["mean"][2])
    assert not torch.equal(models["mean"][0], models["episode"][0])


def predictions(scales, change):
    """Of the posterior mean where the data lie, after a fit to targets that ``change`` has put into other units."""
    agent = MPCPSRL(tiny(overrides={"scales": scales, "sample": "mean"}))
    agent.episode()
    regression, x = agent.dynamics, agent.data["x"]
    regression.learn(x, change(agent.data["change"]))
    return regression.draw([])(x)


@pytest.mark.parametrize("scales", ["standardised", "evidence"])
def test_with_standardised_targets_their_units_do_not_matter(scales):
    usual = predictions(scales, lambda y: y)
    assert torch.allclose(predictions(scales, lambda y: 100 * y + 7), 100 * usual + 7, rtol=1e-2, atol=1e-2)


def test_with_raw_targets_they_do():
    usual = predictions("published", lambda y: y)
    assert not torch.allclose(predictions("published", lambda y: 100 * y + 7), 100 * usual + 7, rtol=0.1, atol=0.1)


def test_standardising_alone_keeps_the_published_scales():
    agent = MPCPSRL(tiny(overrides={"scales": "standardised"}))
    agent.episode()
    agent.learn()
    assert torch.allclose(agent.dynamics.noise_sd(), agent.settings.bayes.noise_sd * agent.dynamics.scale)


def test_the_sampled_model_predicts_what_features_and_weights_say():
    agent = MPCPSRL(tiny("reacher", method="psrl-eb"))
    agent.episode()
    agent.learn()
    regression, x = agent.dynamics, agent.data["x"][:, :7]
    perceptrons = dataclasses.replace(regression, settings=dataclasses.replace(agent.settings, sample="mean")).draw([])
    with torch.no_grad():
        phi = regression.networks.features(x).double()
    standardised = phi @ regression.posterior.mean + regression.bias()
    assert torch.allclose(perceptrons(x).double(), standardised * regression.scale + regression.shift, atol=1e-4)


def test_the_sampled_model_moves_with_the_stated_noise():
    weights = [torch.zeros(2, 3, 8), torch.zeros(2, 8, 5), torch.zeros(2, 5, 2)]
    biases = [torch.zeros(2, 1, 8), torch.zeros(2, 1, 5), torch.tensor([[[1.0, 0.0]], [[2.0, 0.0]]])]
    sd = torch.tensor([[[0.1, 0.0]], [[0.0, 0.3]]])
    generators = [torch.Generator().manual_seed(i) for i in range(2)]
    sampled = SampledModel(Perceptrons(weights, biases), sd, generators)
    moved = sampled.step(torch.zeros(2, 20000, 2), torch.zeros(2, 20000, 1))
    assert torch.allclose(moved.mean(1), torch.tensor([[1.0, 0.0], [2.0, 0.0]]), atol=0.01)
    assert torch.allclose(moved.std(1), sd[:, 0], rtol=0.03)


def perceptrons(trials=2):
    g = torch.Generator().manual_seed(0)
    sizes = [3, 20, 20, 5, 2]
    weights = [torch.randn(trials, a, b, generator=g) for a, b in pairwise(sizes)]
    biases = [torch.randn(trials, 1, b, generator=g) for b in sizes[1:]]
    return Perceptrons(weights, biases), weights, biases


@pytest.mark.parametrize("fused", [True, False])  # a CPU's way to compute it, and a GPU's
@pytest.mark.parametrize("rows", [1, 12, 2 * model.ROWS + 3])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 100.0])
def test_perceptrons_compute_what_float64_does(fused, rows, scale, monkeypatch):
    monkeypatch.setattr(model, "FUSED", fused)
    network, weights, biases = perceptrons()
    x = scale * torch.randn(2, rows, 3, generator=torch.Generator().manual_seed(1))
    expected = x.double()
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        expected = torch.nn.functional.silu(expected @ weight.double() + bias)
    expected = expected @ weights[-1].double() + biases[-1]
    torch.testing.assert_close(network(x).double(), expected, rtol=1e-5, atol=1e-5 * expected.abs().max().item())


def test_a_trial_is_the_same_whatever_trials_and_rows_are_computed_beside_it():
    network, weights, biases = perceptrons(trials=3)
    alone = Perceptrons([weight[1:2] for weight in weights], [bias[1:2] for bias in biases])
    x = torch.randn(3, model.ROWS + 40, 3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(network(x)[1:2], alone(x[1:2]))


def test_a_rollout_that_breaks_stays_broken():
    network, *_ = perceptrons()
    x = torch.zeros(2, 3, 3)
    x[:, 0], x[:, 1] = float("nan"), float("inf")
    out = network(x)
    assert not out[:, :2].isfinite().any() and out[:, 2].isfinite().all()


def test_learned_reward_is_what_the_planner_gets():
    for reward in ("oracle", "learned"):
        agent = MPCPSRL(tiny(reward=reward))
        agent.episode()
        agent.learn()
        _, function = agent.model(0)
        assert (function == agent.oracle) == (reward == "oracle")


def transitions(task, trials=2, candidates=7):
    """States, actions and next states for a reward function, small enough for a pole to be upright."""
    g = torch.Generator().manual_seed(0)
    return [0.1 * torch.randn(trials, candidates, n, generator=g) for n in (task.state_dim, task.action_dim)] + [
        0.1 * torch.randn(trials, candidates, task.state_dim, generator=g)
    ]


def test_the_planner_is_paid_at_the_goal_of_this_trial_and_episode():
    agent = MPCPSRL(tiny("reacher", reward="oracle"))
    moves, goals = transitions(agent.task), []
    for _ in range(2):
        agent.episode()
        goals.append(torch.from_numpy(np.stack([agent.task.context(env) for env in agent.envs.envs])).float())
        expected = agent.task.reward(*moves, goals[-1][:, None])
        torch.testing.assert_close(agent.oracle(*moves), expected)
    assert (goals[0] != goals[1]).any() and (goals[0][0] != goals[0][1]).any()


def test_the_planner_is_given_the_reward_that_was_asked_for():
    task = TASKS["cartpole"]
    moves = transitions(task)
    authors, honest = task.planning_reward(*moves, None), task.reward(*moves, None)
    assert (authors != honest).any()
    for name, expected in (("authors", authors), ("honest", honest)):
        agent = MPCPSRL(tiny("cartpole", reward="oracle", overrides={"planning_reward": name}))
        assert torch.equal(agent.oracle(*moves), expected)


@pytest.mark.parametrize(("factor", "width"), [(1.0, 4), (4.0, 16)])  # on the Pendulum d = 3 + 1
def test_the_feature_layer_is_as_wide_as_asked_for(factor, width):
    agent = MPCPSRL(tiny(overrides={"penultimate": factor}))
    agent.episode()
    agent.learn()
    for regression in (agent.dynamics, agent.rewards):
        assert regression.posterior.mean.shape[1] == width


def test_dynamics_and_reward_have_each_their_own_passes_over_the_data():
    params = read_params()["tasks"]["pendulum"]["epochs"]
    assert params["dynamics"] != params["reward"], "which the published numbers rest on"
    agent = MPCPSRL(tiny(overrides={"epochs": {"dynamics": 2, "reward": 5}}))
    agent.episode()
    agent.learn()
    steps = [
        {int(state["step"]) for state in regression.networks.optimiser.state.values()}
        for regression in (agent.dynamics, agent.rewards)
    ]
    batches = -(-agent.run.steps // agent.settings.batch)
    assert steps == [{2 * batches}, {5 * batches}]


def test_the_posterior_uses_all_rows_of_all_episodes():
    agent = MPCPSRL(tiny())
    traces = []
    for _ in range(3):
        agent.episode()
        agent.learn()
        traces.append(agent.data["x"].shape[1])
        rows = agent.dynamics.networks.features(agent.data["x"]).detach().double()
        bayes = agent.settings.bayes
        precision = rows.mT @ rows / bayes.noise_sd**2 + torch.eye(rows.shape[-1]) / bayes.prior_sd**2
        assert torch.allclose(agent.dynamics.posterior.precision, precision, rtol=1e-6)
    assert traces == [12, 24, 36]


@pytest.mark.parametrize("method", ["psrl", "psrl-eb"])
def test_it_balances_the_pole_longer_than_chance(method):
    params = read_params()
    params["tasks"]["cartpole"]["steps"] = 100
    small = {
        "network": {"width": 32},
        "planner": {"population": 60, "elites": 6, "iterations": 3, "horizon": 12},
    }
    run = resolve(params, task="cartpole", method=method, seeds=[0, 1], episodes=4, overrides=small)
    chance, *_, last = returns(MPCPSRL(run), 4)
    assert last.mean() > chance.mean() + 20
