"""Transitions kept for learning a policy, in the form in which stable-baselines3 asks for them."""

from typing import Any

import torch
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from torch import Tensor


class Replay:
    """The last ``capacity`` transitions, one per row, drawn uniformly with a generator of its own.

    No transition is terminal: the tasks end by a time limit only, and a time limit is no reason to value what would
    have come after it at zero. Actions are in units of the action bound.
    """

    def __init__(self, state_dim: int, action_dim: int, capacity: int, generator: torch.Generator):
        self.columns = (state_dim, action_dim, 1, state_dim)
        self.table = torch.zeros(capacity, sum(self.columns), device=generator.device)
        self.generator, self.added = generator, 0

    def __len__(self) -> int:
        return min(self.added, len(self.table))

    def add(self, state: Tensor, action: Tensor, reward: Tensor, following: Tensor) -> None:
        """Append n rows: [n, S], [n, A], [n, 1], [n, S]."""
        rows = torch.cat([state, action, reward, following], dim=-1).to(self.table)
        place = torch.arange(self.added, self.added + len(rows), device=self.table.device) % len(self.table)
        self.table[place] = rows
        self.added += len(rows)

    def rows(self) -> tuple[Tensor, ...]:
        """All transitions: states, actions, rewards, next states."""
        return self.table[: len(self)].split(self.columns, dim=-1)

    def draw(self, batch: int) -> Tensor:
        """Rows [batch, .], with replacement."""
        place = torch.randint(len(self), (batch,), generator=self.generator, device=self.table.device)
        return self.table[place]

    def sample(self, batch_size: int, env: Any = None) -> ReplayBufferSamples:
        """What stable-baselines3's ``train`` calls; ``env`` is its place for a normalisation that is not used."""
        state, action, reward, following = self.draw(batch_size).split(self.columns, dim=-1)
        return ReplayBufferSamples(state, action, following, torch.zeros_like(reward), reward)

    def state_dict(self) -> dict:
        # A clone: a slice is a view, and saving it would save all of the table.
        return {"rows": self.table[: len(self)].clone(), "added": self.added, "generator": self.generator.get_state()}

    def load_state_dict(self, state: dict) -> None:
        self.table[: len(state["rows"])] = state["rows"]
        self.added = state["added"]
        self.generator.set_state(state["generator"])


class Mixture(Replay):
    """Batches with a fixed share of real transitions, the rest from a model."""

    def __init__(self, real: Replay, imagined: Replay, real_share: float):
        self.columns, self.real, self.imagined, self.real_share = real.columns, real, imagined, real_share

    def draw(self, batch: int) -> Tensor:
        real = round(self.real_share * batch)
        return torch.cat([self.real.draw(real), self.imagined.draw(batch - real)])
