"""SAC and DDPG: the library's updates in our loop, seeded, resumable, and through time limits."""

import random

import numpy as np
import pytest
import tiny
import torch

from psrl import levels
from psrl.config import resolve
from psrl.modelfree import ACTOR_CLIP, CRITIC_CLIP, DDPG, SAC
from psrl.replay import Mixture, Replay

CLASSES = {"sac": SAC, "ddpg": DDPG}


def learner(method, task="pendulum", seed=0, episodes=4, overrides=None, **values):
    return CLASSES[method](
        resolve(tiny.params(), task=task, method=method, seeds=[seed], episodes=episodes, overrides=overrides, **values)
    )


def outcomes(agent, episodes):
    """Returns and losses of the next episodes."""
    names = ("return_greedy", "loss_actor", "loss_critic")
    results = [agent.episode() for _ in range(episodes)]
    return np.array([[episode.returns[0], *(episode.metrics[name][0] for name in names)] for episode in results])


@pytest.mark.parametrize("method", ["sac", "ddpg"])
def test_all_randomness_comes_from_the_seed(method):
    quiet = outcomes(learner(method, noise=0.01), 3)
    torch.manual_seed(123)
    disturbed = learner(method, noise=0.01)
    rows = []
    for _ in range(3):
        torch.rand(7)
        np.random.uniform()  # noqa: NPY002, the global generator
        rows.append(outcomes(disturbed, 1))
    assert np.array_equal(quiet, np.concatenate(rows))
    assert not np.array_equal(quiet, outcomes(learner(method, seed=1, noise=0.01), 3))


@pytest.mark.parametrize("method", ["sac", "ddpg"])
def test_it_leaves_the_global_generators_as_they_were(method):
    before = torch.get_rng_state(), tiny.global_state(), random.getstate()
    learner(method).episode()
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1:] == (tiny.global_state(), random.getstate())


@pytest.mark.parametrize("task", ["pendulum", "reacher"])
@pytest.mark.parametrize(("method", "overrides"), [("sac", {}), ("sac", {"entropy": 0.0}), ("ddpg", {})])
def test_a_loaded_state_goes_on_as_if_never_interrupted(method, task, overrides, tmp_path):
    """The replay is smaller than what is seen, so that it has wrapped around at the checkpoint."""
    whole, resumed = (learner(method, task, overrides={"replay": 30, **overrides}) for _ in range(2))
    outcomes(whole, 2)
    torch.save(whole.state_dict(), tmp_path / "state.pt")
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=False))
    assert np.array_equal(outcomes(whole, 2), outcomes(resumed, 2))
    for a, b in zip(whole.algorithm.policy.parameters(), resumed.algorithm.policy.parameters(), strict=True):
        assert torch.equal(a, b)


def test_training_and_the_policy_begin_when_they_are_set_to():
    agent = learner("ddpg", overrides={"random_steps": 30, "train_after": 10, "action_noise": 0.0})
    agent.episode()
    agent.episode()
    assert agent.algorithm._n_updates == 2 * 20 - 10
    state, action, *_ = agent.replay.rows()
    policy = agent.algorithm.policy._predict(state)
    # An untrained tanh policy keeps near zero; what was drawn uniformly does not.
    assert (action[30:] - policy[30:]).abs().max() < 0.1
    assert (action[:30] - policy[:30]).abs().max() > 0.5


def test_the_known_level_of_sac_is_measured_in_gymnasiums_pendulum():
    agent = levels.OnGymnasium(resolve(tiny.params(), task="pendulum", method="sac", seeds=[0], episodes=1))
    assert {agent.env.spec.id, agent.greedy_env.spec.id} == {"Pendulum-v1"}


def test_ddpg_explores_with_noise_in_the_units_of_the_action():
    """As in the public code. The Pendulum's torque is at most 2, and the policy acts in units of that."""
    agent = learner("ddpg", overrides={"action_noise": 0.1})
    state = np.zeros((1, 3), dtype=np.float32)
    policy = agent.act(state, deterministic=True)
    drawn = torch.cat([agent.noisy_action(state) - policy for _ in range(2000)]) * agent.task.action_bound
    assert drawn.std().item() == pytest.approx(0.1, rel=0.1)


def test_time_limits_are_bootstrapped_through():
    """Reward 1 at every step and discount 1/2: every state is worth 2, also the last before the time limit."""
    agent = learner(
        "sac", overrides={"discount": 0.5, "entropy": 1e-6, "width": 32, "learning_rate": 3e-3, "batch": 32}
    )
    state = torch.linspace(-1, 1, 21)[:, None].repeat(1, 3)
    action = torch.rand(20, 1, generator=torch.Generator().manual_seed(0)) * 2 - 1
    agent.replay.add(state[:-1], action, torch.ones(20, 1), state[1:])
    agent.logged = {}
    with agent.randomness.lent():
        agent.train(1000, 32)
    value = agent.algorithm.critic(state[:-1], action)[0]
    # The library's targets trail by 200 updates; without the bootstrap the last state would be worth 1.
    assert value[-1].item() == pytest.approx(2, abs=0.2)
    assert value.mean().item() == pytest.approx(2, abs=0.2)


def test_ddpg_gradients_are_clipped():
    agent = learner("ddpg")
    rows = [torch.randn(64, size, generator=torch.Generator().manual_seed(size)) for size in (3, 1)]
    agent.replay.add(rows[0], rows[1].tanh(), torch.full((64, 1), 1e6), rows[0])
    agent.logged, norms = {}, {}
    for name in ("actor", "critic"):
        network = getattr(agent.algorithm, name)
        seen, parameters = norms.setdefault(name, []), list(network.parameters())
        # A second hook, after the one that clips: what the optimiser steps with.
        network.optimizer.register_step_pre_hook(
            lambda *_, seen=seen, parameters=parameters: seen.append(
                torch.stack([parameter.grad.norm() for parameter in parameters]).norm().item()
            )
        )
    agent.train(30, 32)
    assert norms["critic"] == pytest.approx([CRITIC_CLIP] * 30, rel=1e-3)
    assert len(norms["actor"]) == 30 and 0 < max(norms["actor"]) <= ACTOR_CLIP * 1.001


def test_a_gradient_of_zero_is_a_step_like_any_other():
    agent = learner("ddpg")
    for network in (agent.algorithm.actor, agent.algorithm.critic):
        before = [parameter.detach().clone() for parameter in network.parameters()]
        for parameter in network.parameters():
            parameter.grad = torch.zeros_like(parameter)
        network.optimizer.step()
        assert all(map(torch.equal, before, network.parameters()))


def test_sac_gradients_are_not():
    agent = learner("sac")
    rows = [torch.randn(64, size, generator=torch.Generator().manual_seed(size)) for size in (3, 1)]
    agent.replay.add(rows[0], rows[1].tanh(), torch.full((64, 1), 1e6), rows[0])
    agent.logged = {}
    with agent.randomness.lent():
        agent.train(1, 32)
    assert max(parameter.grad.norm() for parameter in agent.algorithm.critic.parameters()) > 1e3


def transitions(first, count):
    number = torch.arange(float(first), first + count)[:, None]
    return number, number, number, number


def test_a_full_replay_forgets_the_oldest():
    replay = Replay(1, 1, 10, torch.Generator().manual_seed(0))
    replay.add(*transitions(0, 7))
    assert len(replay) == 7 and replay.draw(100).max() == 6
    replay.add(*transitions(7, 8))
    assert len(replay) == 10
    assert set(replay.draw(500)[:, 0].tolist()) == set(range(5, 15))
    batch = replay.sample(4)
    assert batch.rewards.shape == (4, 1) and not batch.dones.any()


def test_a_replay_saves_what_it_holds_not_all_it_could():
    replay = Replay(1, 1, 10_000, torch.Generator().manual_seed(0))
    replay.add(*transitions(0, 7))
    rows = replay.state_dict()["rows"]
    assert rows.shape == (7, 4) and rows.untyped_storage().nbytes() == rows.nbytes


def test_a_mixture_has_its_share_of_real_transitions():
    generator = torch.Generator().manual_seed(0)
    real, imagined = Replay(1, 1, 10, generator), Replay(1, 1, 10, generator)
    real.add(*transitions(0, 10))
    imagined.add(*transitions(100, 10))
    mixture = Mixture(real, imagined, 0.05)
    drawn, batch = mixture.draw(200), mixture.sample(200)
    assert (drawn[:, 0] < 25).sum() == 10
    # Transitions hold the same number everywhere, and it arrives in every place.
    assert torch.equal(batch.observations, batch.rewards) and torch.equal(batch.actions, batch.rewards)
    assert torch.equal(batch.observations, batch.next_observations) and (batch.rewards >= 100).sum() == 190
