"""The planner against problems whose answer is known."""

import math

import pytest
import torch

from psrl import cem
from psrl.settings import Planner

SETTINGS = Planner(400, 40, 12, 6, 0.1, 1.0, 0.0)


def generators(count, seed=0):
    return [torch.Generator().manual_seed(seed + i) for i in range(count)]


def point_mass(state, action):
    """Position and speed of a unit mass pushed by the action."""
    position, speed = state[..., :1], state[..., 1:]
    return torch.cat([position + 0.5 * speed, speed + 0.5 * action], dim=-1)


def quadratic(state, action, following):
    return -(following.square().sum(-1) + 0.1 * action.square().sum(-1))


def best_plan(state, horizon):
    """The exact optimum of the linear-quadratic problem, by its normal equations."""
    basis = torch.eye(horizon, dtype=torch.float64)

    def stack(actions):
        current, terms = state.double(), []
        for t in range(horizon):
            current = point_mass(current, actions[t : t + 1])
            terms += [current, math.sqrt(0.1) * actions[t : t + 1]]
        return torch.cat(terms)

    offset = stack(torch.zeros(horizon, dtype=torch.float64))
    matrix = torch.stack([stack(column) - offset for column in basis], dim=1)
    solution = torch.linalg.lstsq(matrix, -offset).solution
    return solution, -(matrix @ solution + offset).square().sum().item()


def test_finds_the_optimum_of_a_linear_quadratic_problem():
    state = torch.tensor([[0.3, -0.2], [0.1, 0.4], [0.0, 0.0]])
    mean = cem.plan(point_mass, quadratic, state, torch.zeros(3, 6, 1), SETTINGS, 3.0, generators(3))
    returns = cem.rollout(point_mass, quadratic, state, mean[:, :, None])
    for b in range(3):
        plan, value = best_plan(state[b], 6)
        assert value - 0.01 <= returns[b, 0].item() <= value + 1e-5
        assert (mean[b, :, 0].double() - plan).abs().max() < 0.1


def test_more_iterations_come_closer():
    state = torch.tensor([[1.0, -1.0]]).expand(20, -1).contiguous()
    gaps = []
    for iterations in (1, 3, 9):
        settings = Planner(100, 10, iterations, 6, 0.1, 1.0, 0.0)
        mean = cem.plan(point_mass, quadratic, state, torch.zeros(20, 6, 1), settings, 3.0, generators(20))
        gaps.append(
            best_plan(state[0], 6)[1] - cem.rollout(point_mass, quadratic, state, mean[:, :, None]).mean().item()
        )
    assert gaps[0] > 2 * gaps[1] > 4 * gaps[2] > 0


def test_plans_stay_inside_the_box():
    outward = lambda state, action, following: action.sum(-1)  # noqa: E731
    mean = cem.plan(point_mass, outward, torch.zeros(2, 2), torch.zeros(2, 6, 1), SETTINGS, 0.5, generators(2))
    assert mean.abs().max() <= 0.5
    assert (mean > 0.45).all()


@pytest.mark.parametrize(("variance", "bound", "sd"), [(0.25, 100.0, 0.5), (4.0, 100.0, 2.0), (4.0, 1.0, 0.5)])
def test_the_first_candidates_spread_as_far_as_variance_and_bound_say(variance, bound, sd):
    """The bound is two sds away at least."""
    tried = []

    def note(state, action, following):
        tried.append(action)
        return -action.square().sum(-1)

    settings = Planner(4000, 40, 1, 6, 0.1, variance, 0.0)
    cem.plan(point_mass, note, torch.zeros(1, 2), torch.zeros(1, 6, 1), settings, bound, generators(1))
    # of a normal cut at two sds, as below
    shrunk = math.sqrt(1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / math.erf(math.sqrt(2)))
    assert tried[0].std().item() == pytest.approx(sd * shrunk, rel=0.02)


def test_truncated_normals_stay_within_two_and_have_their_variance():
    draws = cem.truncated_normal((200_000,), generators(1), torch.device("cpu"))
    assert draws.abs().max() <= 2.0 + 1e-6
    # variance of a standard normal conditioned on [-2, 2]: 1 - 4 density(2) / mass
    expected = 1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / math.erf(math.sqrt(2))
    assert draws.var().item() == pytest.approx(expected, abs=4 * math.sqrt(2 / 200_000))
    assert abs(draws.mean().item()) < 4 / math.sqrt(200_000)


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_rollouts_that_overflow_rank_last(poison):
    """Where an action is positive the model breaks: plans must avoid it, though a broken 0 would beat all rewards."""

    def breaks(state, action):
        return torch.where(action > 0, poison, point_mass(state, action))

    reward = lambda state, action, following: -1 - 0 * following.sum(-1)  # noqa: E731
    actions = torch.linspace(-1, 1, 11).view(1, 1, 11, 1)
    returns = cem.rollout(breaks, reward, torch.zeros(1, 2), actions)
    assert (returns[0, 6:] == -math.inf).all() and (returns[0, :6] == -1).all()
    mean = cem.plan(breaks, reward, torch.zeros(1, 2), torch.zeros(1, 2, 1), SETTINGS, 1.0, generators(1))
    assert torch.isfinite(mean).all() and (mean < 0).all()


def test_a_model_that_always_breaks_still_gives_an_action():
    broken = lambda state, action: torch.full_like(state, math.nan)  # noqa: E731
    mean = cem.plan(broken, quadratic, torch.zeros(1, 2), torch.zeros(1, 6, 1), SETTINGS, 1.0, generators(1))
    assert torch.isfinite(mean).all()


def test_a_trial_plans_in_a_batch_as_it_plans_alone():
    state = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    batch = cem.plan(point_mass, quadratic, state, torch.zeros(5, 6, 1), SETTINGS, 1.0, generators(5))
    alone = cem.plan(point_mass, quadratic, state[3:4], torch.zeros(1, 6, 1), SETTINGS, 1.0, generators(1, seed=3))
    assert torch.equal(batch[3:4], alone)


def test_particles_average_the_noise():
    noise = torch.Generator().manual_seed(0)

    def noisy(state, action):
        return point_mass(state, action) + torch.randn(state.shape, generator=noise)

    linear = lambda state, action, following: following.sum(-1)  # noqa: E731
    actions = torch.zeros(1, 3, 3000, 1)
    one = cem.rollout(noisy, linear, torch.zeros(1, 2), actions, particles=1).var()
    many = cem.rollout(noisy, linear, torch.zeros(1, 2), actions, particles=10).var()
    assert one / many == pytest.approx(10, rel=0.15)


def test_a_collapsed_trial_keeps_its_plan_while_others_go_on():
    settings = Planner(400, 4, 12, 6, 0.0, 1.0, 0.05)
    state = torch.tensor([[0.3, -0.2], [0.3, -0.2]])
    short = cem.plan(point_mass, quadratic, state, torch.zeros(2, 6, 1), settings, 3.0, generators(2))
    longer = Planner(400, 4, 30, 6, 0.0, 1.0, 0.05)
    assert torch.equal(short, cem.plan(point_mass, quadratic, state, torch.zeros(2, 6, 1), longer, 3.0, generators(2)))


def test_shift_drops_the_executed_action():
    assert torch.equal(cem.shift(torch.tensor([[[1.0], [2.0], [3.0]]])), torch.tensor([[[2.0], [3.0], [0.0]]]))
