"""PETS: trajectory sampling through the ensemble, by the planner that MPC-PSRL uses."""

import numpy as np
import pytest
import tiny
import torch

from psrl import cem
from psrl.config import ConfigError, resolve
from psrl.pets import PETS


def run(task="pendulum", seeds=(0, 1), episodes=3, overrides=None, **values):
    return resolve(
        tiny.params(), task=task, method="pets", seeds=list(seeds), episodes=episodes, overrides=overrides, **values
    )


def returns(learner, episodes):
    return np.stack([learner.episode().returns for _ in range(episodes)])


def drifting(propagation="member", particles=5, candidates=40, trials=1):
    """PETS whose member e only adds e to every state component, without noise."""
    planner = {"population": candidates}
    pets = PETS(
        run(seeds=range(trials), overrides={"propagation": propagation, "particles": particles, "planner": planner})
    )
    networks = pets.ensemble.networks
    for weight in networks.weights:
        weight.data.zero_()
    for bound in (networks.logvar_low, networks.logvar_high):
        bound.data.fill_(-40.0)
    networks.biases[-1].data[:, 0, :3] = torch.arange(5.0).repeat(trials)[:, None]
    return pets


def travelled(pets, particles, steps=10, candidates=40):
    """How far each particle drifts in ``steps`` steps, [candidates, particles]."""
    step, _ = pets.model(0)
    state, action = torch.zeros(1, candidates * particles, 3), torch.zeros(1, candidates * particles, 1)
    with torch.inference_mode():
        for _ in range(steps):
            state = step(state, action)
    return state[0, :, 0].view(candidates, particles)


def test_a_particle_keeps_its_member_along_a_rollout():
    paths = travelled(drifting("member"), particles=5)
    assert torch.allclose(paths, 10 * torch.arange(5.0).expand(40, 5), atol=1e-4)


def test_twenty_particles_are_spread_evenly_over_the_members():
    paths = travelled(drifting("member", particles=20), particles=20)
    counts = (paths / 10).round().long().flatten().bincount(minlength=5)
    assert torch.equal(counts, torch.full((5,), 160))


def test_a_particle_draws_its_member_anew_each_step():
    """Ten independent uniform draws from {0, ..., 4}: mean 20, variance 10 * 2, where fixed members have 100 * 2."""
    paths = travelled(drifting("step"), particles=5)
    assert abs(paths.mean() - 20) < 4 * (20 / 200) ** 0.5
    assert 10 < paths.var() < 40


def test_a_candidate_is_worth_the_mean_over_its_particles():
    pets = drifting("member")
    step, _ = pets.model(0)
    value = cem.rollout(step, lambda s, a, n: n[..., 0], torch.zeros(1, 3), torch.zeros(1, 4, 40, 1), particles=5)
    # Member e is at e, 2e, 3e, 4e after the four steps: 10 e, and 20 on average over the members.
    assert torch.allclose(value, torch.full((1, 40), 20.0), atol=1e-4)


def test_a_learned_reward_is_refused_with_the_reason():
    with pytest.raises(ConfigError, match="pets: oracle, it has no reward model"):
        run(reward="learned")


def test_an_ensemble_that_cannot_share_the_rows_is_refused():
    with pytest.raises(ConfigError, match=r"ensemble is 7; valid: a divisor of population x particles, 100"):
        run(overrides={"ensemble": 7})


def test_a_trial_in_a_batch_is_as_it_would_be_alone():
    together = returns(PETS(run(seeds=(0, 1, 2), noise=0.01)), 3)
    alone = returns(PETS(run(seeds=(2,), noise=0.01)), 3)
    assert np.array_equal(together[0, 2:], alone[0])
    assert np.allclose(together[:, 2:], alone, rtol=1e-3)


@pytest.mark.parametrize("task", ["pendulum", "pusher"])
@pytest.mark.parametrize("propagation", ["member", "step"])
def test_a_loaded_state_goes_on_as_if_never_interrupted(task, propagation, tmp_path):
    this = run(task, overrides={"propagation": propagation})
    whole, resumed = PETS(this), PETS(this)
    returns(whole, 2)
    torch.save(whole.state_dict(), tmp_path / "state.pt")
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=False))
    assert np.array_equal(returns(whole, 1), returns(resumed, 1))


def test_it_balances_the_pole_longer_than_chance():
    params = tiny.params()
    params["tasks"]["cartpole"]["steps"] = 100
    small = {
        "epochs": {"dynamics": 60},
        "member": {"width": 32},
        "planner": {"population": 60, "elites": 6, "iterations": 3, "horizon": 12},
    }
    pets = PETS(resolve(params, task="cartpole", method="pets", seeds=[0, 1], episodes=3, overrides=small))
    chance, _, last = returns(pets, 3)
    assert last.mean() > chance.mean() + 20
