"""MBPO: short model rollouts from real states, the right rewards on them, and a policy trained on both."""

import numpy as np
import pytest
import tiny
import torch

from psrl.config import ConfigError, resolve
from psrl.mbpo import MBPO
from psrl.settings import Rollout


def learner(task="pendulum", reward="oracle", seed=0, episodes=4, steps=20, overrides=None, **values):
    params = tiny.params()
    params["tasks"][task]["steps"] = steps
    return MBPO(
        resolve(
            params,
            task=task,
            method="mbpo",
            reward=reward,
            seeds=[seed],
            episodes=episodes,
            overrides=overrides,
            **values,
        )
    )


def outcomes(agent, episodes):
    results = [agent.episode() for _ in range(episodes)]
    return np.array([[episode.returns[0], episode.metrics["return_greedy"][0]] for episode in results])


def test_rollouts_grow_from_1_to_15_between_episodes_1_and_30():
    lengths = [Rollout(1, 15, 1, 30).length(episode) for episode in range(1, 41)]
    assert lengths[0] == 1 and lengths[29:] == [15] * 11
    assert set(np.diff(lengths[:30])) == {0, 1} and lengths[28] == 14


def test_rollouts_on_pusher_stay_at_1():
    pusher = resolve(tiny.params(), task="pusher", method="mbpo", seeds=[0], episodes=1)
    assert {pusher.settings.rollout.length(episode) for episode in range(1, 100)} == {1}


@pytest.mark.parametrize("task", ["pendulum", "reacher"])
@pytest.mark.parametrize("reward", ["oracle", "learned"])
def test_a_loaded_state_goes_on_as_if_never_interrupted(task, reward, tmp_path):
    noise = 0.01 if task == "pendulum" else 0.0
    whole, resumed = (learner(task, reward, noise=noise) for _ in range(2))
    outcomes(whole, 2)
    torch.save(whole.state_dict(), tmp_path / "state.pt")
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=False))
    torch.rand(5)
    assert np.array_equal(outcomes(whole, 2), outcomes(resumed, 2))


@pytest.mark.parametrize("task", ["cartpole", "pendulum", "reacher", "pusher"])
def test_rollouts_begin_at_real_states_and_are_paid_by_the_true_reward(task):
    agent = learner(task, overrides={"rollout": {"first_length": 3, "last_length": 3}})
    outcomes(agent, 3)
    count = agent.settings.rollouts * agent.settings.retrain_every
    with agent.randomness.lent():
        state, action, reward, following = agent.imagine().rows()
    assert len(state) == 3 * count
    # Their first states are real ones, drawn from all three episodes; their second states are what the model made.
    real = agent.real.rows()[0]
    place = torch.cdist(state[:count].double(), real.double()).argmin(dim=1)
    assert torch.equal(state[:count], real[place])
    assert set((place // agent.run.steps).tolist()) == {0, 1, 2}
    assert torch.equal(state[count:], following[:-count])
    context = agent.contexts[place // agent.run.steps].repeat(3, 1)
    paid = agent.task.reward(state, action * agent.task.action_bound, following, context)
    assert torch.allclose(paid, reward[:, 0], atol=1e-5)


def test_a_rollout_on_reacher_keeps_the_goal_of_its_episode():
    agent = learner("reacher")
    outcomes(agent, 3)
    goals = agent.real.rows()[0][:, 7:10].view(3, -1, 3)
    assert torch.allclose(goals, agent.contexts[:, None].expand_as(goals), atol=1e-6)
    assert torch.pdist(agent.contexts).min() > 1e-3


def test_a_learned_reward_is_an_output_of_the_ensemble():
    agent = learner("cartpole", "learned", steps=100, overrides={"model_updates": 600, "member": {"width": 32}})
    outcomes(agent, 1)
    agent.fit()
    state, action, reward, _ = agent.real.rows()
    mean, _ = agent.ensemble.predict(torch.cat([state, action * agent.task.action_bound], dim=-1)[None])
    assert mean.shape[-1] == agent.task.state_dim + 1
    unexplained = (mean[0, ..., -1].mean(dim=0) - reward[:, 0]).var() / reward.var()
    assert unexplained < 0.2
    with agent.randomness.lent():
        _, _, imagined, _ = agent.imagine().rows()
    assert abs(imagined.mean() - reward.mean()) < reward.std()


def test_the_first_episode_is_random_and_trains_nothing():
    agent = learner()
    first = agent.episode()
    assert "loss_critic" not in first.metrics and agent.algorithm._n_updates == 0
    second = agent.episode()
    assert agent.algorithm._n_updates == agent.settings.updates * agent.run.steps
    assert second.metrics["rollout_length"] == 1


def test_rollouts_that_the_members_cannot_share_are_refused():
    with pytest.raises(ConfigError, match="rollouts is 401; valid: a multiple of ensemble, 5"):
        learner(overrides={"rollouts": 401})


def test_what_critics_believe_is_bounded_however_far_a_cart_has_run():
    """Critics and their targets do not grow with the distance of a state; the actor, whose layers are plain, does."""
    agent = learner("cartpole")
    outcomes(agent, 3)
    critic, target, actor = (getattr(agent.algorithm, name) for name in ("critic", "critic_target", "actor"))
    state = torch.tensor([[1.0, 0.0, 0.5, 0.0]]) * torch.tensor([[1e3], [1e6]])
    with torch.no_grad():
        for believed in zip(*(network(state, torch.zeros(2, 1)) for network in (critic, target)), strict=True):
            for near, far in believed:
                assert torch.allclose(near, far, rtol=0.01, atol=1e-3)
        assert not torch.allclose(*actor.latent_pi(state), rtol=0.5)
    trained = {id(p) for group in critic.optimizer.param_groups for p in group["params"]}
    assert trained == {id(p) for p in critic.parameters()}


def test_the_highest_value_is_that_of_the_best_real_state():
    agent = learner("cartpole")
    outcomes(agent, 3)
    with agent.randomness.lent(), torch.no_grad():
        values = [
            torch.cat(agent.algorithm.critic(state[None], agent.act(state.numpy(), deterministic=True)[None])).min()
            for state in agent.real.rows()[0]
        ]
    assert agent.highest_value() == pytest.approx(max(values).item(), rel=1e-5)
