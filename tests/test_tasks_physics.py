"""The physics of Cartpole and Pendulum: against Gymnasium's own, against energy, with the paper's noise."""

import gymnasium
import numpy as np
import pytest
import torch

from psrl.tasks import TASKS, cartpole, pendulum


def test_cartpole_moves_as_gymnasiums_under_ten_newton():
    theirs, ours = gymnasium.make("CartPole-v1").unwrapped, TASKS["cartpole"].make().unwrapped
    theirs.reset(seed=0)
    ours.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(500):
        # within the limits: beyond them theirs warns
        start = rng.uniform(-1, 1, 4) * [2.0, 3.0, 0.2, 3.0]
        theirs.state, ours.state = start.copy(), start.copy()
        theirs.steps_beyond_terminated = None
        right = int(rng.integers(2))
        theirs.step(right)
        ours.step(np.array([2.0 * right - 1.0]))
        np.testing.assert_allclose(ours.state, theirs.state, rtol=0, atol=1e-12)


def test_cartpoles_acceleration_is_affine_in_the_action():
    state = torch.randn(100, 4, dtype=torch.float64)
    moved = [cartpole.dynamics(state, torch.full((100, 1), a, dtype=torch.float64)) for a in (-1.0, 0.0, 0.25, 1.0)]
    assert torch.allclose(moved[1], (moved[0] + moved[3]) / 2, atol=1e-12)
    assert torch.allclose(moved[2], 0.75 * moved[1] + 0.25 * moved[3], atol=1e-12)
    assert not torch.allclose(moved[0], moved[3], atol=1e-3)


def test_pendulum_moves_and_pays_as_gymnasiums_from_the_same_states():
    theirs, ours = gymnasium.make("Pendulum-v1").unwrapped, TASKS["pendulum"].make().unwrapped
    theirs.reset(seed=0)
    ours.reset(seed=0)
    rng = np.random.default_rng(0)
    for episode in range(20):
        start = np.array([3.14159, -0.02816067]) if episode == 0 else rng.uniform(-1, 1, 2) * [2 * np.pi, 8.0]
        theirs.state, ours.state = start.copy(), start.copy()
        for _ in range(50):
            torque = rng.uniform(-3, 3, 1)  # the clipping of torque and of speed included
            seen, reward, *_ = theirs.step(torque)
            observation, value, *_ = ours.step(torque)
            np.testing.assert_allclose(ours.state, theirs.state, rtol=0, atol=1e-12)
            np.testing.assert_allclose(observation, seen, rtol=0, atol=1e-6)
            assert value == pytest.approx(float(reward), abs=1e-12)


def test_pendulum_starts_hanging_down():
    observation, _ = TASKS["pendulum"].make().reset(seed=1)
    np.testing.assert_allclose(observation, [np.cos(3.14159), np.sin(3.14159), -0.02816067], rtol=0, atol=1e-12)
    assert observation[0] < -0.999999


def cartpole_energy(state):
    """Cart 1.0 kg, pole a uniform rod of 0.1 kg and 1 m hinged at its end."""
    _, v, theta, omega = state.unbind(-1)
    kinetic = 0.5 * 1.1 * v**2 + 0.1 * 0.5 * v * omega * theta.cos() + 0.5 * (0.1 / 3) * omega**2
    return kinetic + 0.1 * 9.8 * 0.5 * theta.cos()


def pendulum_energy(observation):
    """A uniform rod of 1 kg and 1 m hinged at its end."""
    cos, _, speed = observation.unbind(-1)
    return 0.5 / 3 * speed**2 + 0.5 * 10 * cos


@pytest.mark.parametrize("name", ["cartpole", "pendulum"])
def test_the_force_does_exactly_the_work_that_changes_the_energy(name, monkeypatch):
    """Energy gained = power x time, up to the integrator's error per step, which falls with the square of the time."""
    module, step_name = {"cartpole": (cartpole, "TAU"), "pendulum": (pendulum, "DT")}[name]
    generator = torch.Generator().manual_seed(0)
    action = 2 * torch.rand(2000, 1, generator=generator, dtype=torch.float64) - 1
    speed = torch.randn(2000, generator=generator, dtype=torch.float64)
    angle = 6 * torch.rand(2000, generator=generator, dtype=torch.float64)
    if name == "cartpole":
        spin = torch.randn(2000, generator=generator, dtype=torch.float64)
        state, energy, power = torch.stack([angle, speed, angle, spin], -1), cartpole_energy, 10 * action[:, 0] * speed
    else:
        state, energy, power = torch.stack([angle.cos(), angle.sin(), speed], -1), pendulum_energy, action[:, 0] * speed
    duration = getattr(module, step_name)
    gaps = []
    for factor in (1.0, 0.5, 0.25):
        monkeypatch.setattr(module, step_name, factor * duration)
        gained = energy(module.dynamics(state, action)) - energy(state)
        gaps.append((gained - power * factor * duration).abs().mean())
    assert gaps[1] / gaps[0] == pytest.approx(0.25, rel=0.1)
    assert gaps[2] / gaps[1] == pytest.approx(0.25, rel=0.05)


def test_an_undriven_pendulum_keeps_its_energy_and_swings():
    """Gymnasium's integrator is symplectic: over an episode the energy wobbles but does not drift."""
    state = torch.tensor([[np.cos(2.0), np.sin(2.0), 0.0]], dtype=torch.float64)
    energies, cosines = [], []
    for _ in range(200):
        state = pendulum.dynamics(state, torch.zeros(1, 1, dtype=torch.float64))
        energies.append(float(pendulum_energy(state)))
        cosines.append(float(state[0, 0]))
    scale = 2 * 5.0  # from hanging to upright
    assert np.ptp(energies) < 0.15 * scale
    assert abs(np.mean(energies[:100]) - np.mean(energies[100:])) < 0.01 * scale
    assert min(cosines) < -0.99 and max(cosines) > np.cos(2.0) - 0.1


def rewards_along(states: list[list[float]]) -> list[float]:
    path = torch.tensor(states, dtype=torch.float64)
    return cartpole.reward(path[:-1], torch.zeros(len(path) - 1, 1), path[1:], None).tolist()


def test_cartpole_pays_the_first_step_outside_and_none_after():
    inside, outside = [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.3, 0.0]
    assert rewards_along([inside, inside, outside, outside, outside]) == [1, 1, 0, 0]
    assert rewards_along([inside, [2.5, 0, 0, 0], [2.6, 0, 0, 0]]) == [1, 0]
    assert rewards_along([outside, outside, inside, inside]) == [0, 1, 1]
    # the limits themselves are inside
    edge = [2.4, 0.0, np.radians(12), 0.0]
    assert rewards_along([edge, edge]) == [1]


def test_a_falling_cartpole_pays_until_one_step_after_it_left():
    env = TASKS["cartpole"].make()
    env.reset(seed=0)
    seen, rewards = [], []
    for _ in range(60):
        observation, reward, *_ = env.step(np.ones(1))
        seen.append(abs(observation[0]) <= 2.4 and abs(observation[2]) <= np.radians(12))
        rewards.append(reward)
    left = seen.index(False)
    assert 3 < left < 40 and not any(seen[left:])
    assert rewards == [1.0] * (left + 1) + [0.0] * (59 - left)


def test_pendulums_reward_looks_at_the_state_before_the_step():
    env = TASKS["pendulum"].make().unwrapped
    env.reset(seed=0)
    env.state = np.array([1.0, 3.0])
    assert env.step(np.array([1.5]))[1] == pytest.approx(-(1.0 + 0.1 * 9.0 + 0.001 * 2.25))
    assert env.state[0] != 1.0


def test_cartpoles_noise_is_independent_on_every_component_and_the_reward():
    env = TASKS["cartpole"].make(noise=0.01).unwrapped
    env.reset(seed=0)
    start = np.array([0.1, -0.2, 0.05, 0.3])
    truth = cartpole.dynamics(torch.tensor(start), torch.tensor([0.5])).numpy()
    draws = []
    for _ in range(4000):
        env.state = start.copy()
        observation, reward, *_ = env.step(np.array([0.5]))
        assert np.array_equal(observation, env.state)  # the noise acts on the state, not only on what is seen
        draws.append([*(observation - truth), reward - 1.0])
    check_white(np.array(draws), 0.01)


def test_pendulums_noise_acts_on_speed_angle_and_reward():
    env = TASKS["pendulum"].make(noise=0.01).unwrapped
    env.reset(seed=0)
    draws = []
    for _ in range(4000):
        env.state = np.array([1.0, 2.0])
        reward = env.step(np.array([0.5]))[1]
        angle, speed = env.state
        calm = 2.0 + 0.05 * (15 * np.sin(1.0) + 3 * 0.5)
        # the noisy speed moves the angle, which then has a noise of its own
        draws.append([speed - calm, angle - 1.0 - 0.05 * speed, reward + 1.0 + 0.4 + 0.00025])
    check_white(np.array(draws), 0.01)


def check_white(draws: np.ndarray, sd: float) -> None:
    """Independent columns of zero mean and this sd, within five standard errors."""
    n = len(draws)
    assert np.all(np.abs(draws.mean(0)) < 5 * sd / np.sqrt(n))
    assert np.all(np.abs(draws.std(0) / sd - 1) < 5 / np.sqrt(2 * n))
    correlation = np.corrcoef(draws.T) - np.eye(draws.shape[1])
    assert np.all(np.abs(correlation) < 5 / np.sqrt(n))


def test_the_speed_stays_clipped_with_noise():
    env = TASKS["pendulum"].make(noise=0.5).unwrapped
    env.reset(seed=0)
    speeds = []
    for _ in range(100):
        env.state = np.array([np.pi / 2, 7.9])
        speeds.append(env.step(np.array([2.0]))[0][2])
    assert max(speeds) == 8.0
