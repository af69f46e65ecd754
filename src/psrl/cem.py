"""Planning (Section 4.2): the cross-entropy method over action sequences, for B trials at once.

The planner knows no model. It is given ``step(state, action) -> next_state`` and ``reward(state, action, next_state)``;
whether the reward is the oracle or learned is which function is passed.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from psrl.settings import Planner

Step = Callable[[Tensor, Tensor], Tensor]  # [B, M, S], [B, M, A] -> [B, M, S]
Reward = Callable[[Tensor, Tensor, Tensor], Tensor]  # [B, M, S], [B, M, A], [B, M, S] -> [B, M]; all H steps at once

TRUNCATION = 2.0  # standard normals beyond +-2 are not drawn
_MASS = math.erf(TRUNCATION / math.sqrt(2))


def truncated_normal(shape: Sequence[int], generators: Sequence[torch.Generator], device: torch.device) -> Tensor:
    """Standard normals conditioned on [-2, 2], [B, *shape], by the inverse distribution function."""
    draws = torch.empty(len(generators), *shape, device=device)
    for draw, generator in zip(draws, generators, strict=True):
        draw.uniform_(-_MASS, _MASS, generator=generator)
    return draws.erfinv_().mul_(math.sqrt(2))


def rollout(step: Step, reward: Reward, state: Tensor, actions: Tensor, particles: int = 1) -> Tensor:
    """Mean return over ``particles`` noisy rollouts of actions [B, H, N, A] from state [B, S]: [B, N].

    A rollout that overflows or turns NaN returns -inf: on tasks with negative rewards anything else would win.
    """
    batch, horizon, candidates, _ = actions.shape
    actions = actions if particles == 1 else actions.repeat_interleave(particles, dim=2)
    states = [state[:, None].expand(-1, candidates * particles, -1)]
    for t in range(horizon):
        states.append(step(states[-1], actions[:, t]))
    # All rewards in one call: many small ones cost more than they compute.
    visited = torch.stack(states, dim=1)  # [B, H + 1, N P, S]
    rewards = reward(visited[:, :-1].flatten(1, 2), actions.flatten(1, 2), visited[:, 1:].flatten(1, 2))
    total = rewards.view(batch, horizon, candidates, particles).mean(dim=-1).sum(dim=1)
    return torch.where(total.isfinite(), total, -math.inf)


def plan(
    step: Step,
    reward: Reward,
    state: Tensor,
    mean: Tensor,
    settings: Planner,
    bound: float,
    generators: Sequence[torch.Generator],
    particles: int = 1,
) -> Tensor:
    """Improve the plan ``mean`` [B, H, A] from ``state`` [B, S], actions within +-bound; nothing waits for the host."""
    variance = torch.full_like(mean, settings.initial_variance)
    for _ in range(settings.iterations):
        # sample: the sd leaves room for two of them between the mean and the nearer bound
        room = ((bound - mean.abs()) / 2).square()
        sd = torch.minimum(variance, room).sqrt()
        draws = truncated_normal((mean.shape[1], settings.population, mean.shape[2]), generators, mean.device)
        actions = draws.mul_(sd[:, :, None]).add_(mean[:, :, None])
        # evaluate
        returns = rollout(step, reward, state, actions, particles)
        # keep elites, by index: ties stay apart
        best = returns.topk(settings.elites, dim=1, sorted=False).indices
        index = best[:, None, :, None].expand(-1, mean.shape[1], -1, mean.shape[2])
        elite_variance, elite_mean = torch.var_mean(actions.gather(2, index), dim=2, correction=0)
        # refit; a trial whose variance has collapsed keeps its plan
        going = variance.amax(dim=(1, 2), keepdim=True) > settings.tolerance
        mean = torch.where(going, torch.lerp(elite_mean, mean, settings.smoothing), mean)
        variance = torch.where(going, torch.lerp(elite_variance, variance, settings.smoothing), variance)
    return mean


def shift(mean: Tensor) -> Tensor:
    """The plan for the next step: drop the executed action, append zeros."""
    return torch.cat([mean[:, 1:], torch.zeros_like(mean[:, :1])], dim=1)
