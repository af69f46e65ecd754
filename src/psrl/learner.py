"""What the engine asks of a method, and which class each method is."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

import numpy as np

from psrl.config import Run


@dataclass(frozen=True)
class Episode:
    """What one episode of B trials gave."""

    returns: np.ndarray  # [B], sum of rewards
    metrics: dict[str, np.ndarray]  # name -> [B]; seconds of planning, losses, posterior spread, ...


class Learner(Protocol):
    """B trials of one experiment, a trial per seed of ``run``; constructed as ``Class(run, device)``.

    Between two episodes the whole state, random generators included, is in :meth:`state_dict`, a nest of dicts,
    lists, tensors, arrays and numbers: a learner that loads it goes on exactly as the one that gave it.
    """

    def episode(self, progress: Callable[[int], None]) -> Episode:
        """Run one episode of every trial; ``progress(step)`` is called after each environment step."""

    def state_dict(self) -> dict: ...

    def load_state_dict(self, state: dict) -> None: ...


@dataclass(frozen=True)
class Method:
    """Where a method's class is, and whether it trains all seeds as one batch (else a seed is a run of its own)."""

    location: str
    batched: bool


METHODS = {
    "psrl": Method("psrl.agent:MPCPSRL", batched=True),
    "psrl-eb": Method("psrl.agent:MPCPSRL", batched=True),
    "pets": Method("psrl.pets:PETS", batched=True),
    "mbpo": Method("psrl.mbpo:MBPO", batched=False),
    "sac": Method("psrl.modelfree:SAC", batched=False),
    "ddpg": Method("psrl.modelfree:DDPG", batched=False),
    "random": Method("psrl.reference:RandomPolicy", batched=True),
    "oracle": Method("psrl.reference:OraclePlanner", batched=True),
}


def make_learner(run: Run, device: str = "cpu") -> Learner:
    module, name = METHODS[run.method].location.split(":")
    return getattr(import_module(module), name)(run, device)


def units(run: Run) -> list[Run]:
    """The pieces of an experiment that are computed, and resumed, separately."""
    return [run] if METHODS[run.method].batched else [run.with_seeds((seed,)) for seed in run.seeds]
