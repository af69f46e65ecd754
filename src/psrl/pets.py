"""PETS (Chua et al., 2018): the same planner as MPC-PSRL's, through an ensemble instead of a posterior sample."""

import numpy as np
import torch
from torch import Tensor

from psrl import cem
from psrl.config import Run
from psrl.ensemble import Ensemble, Sampler
from psrl.mpc import ModelPredictiveControl


class PETS(ModelPredictiveControl):
    """B trials of PETS. It has no reward model: the planner is given the oracle (psrl.config refuses anything else)."""

    def __init__(self, run: Run, device: str = "cpu"):
        super().__init__(run, device)
        settings, outputs = self.settings, self.task.state_dim
        inputs = outputs + self.task.action_dim
        self.ensemble = Ensemble(
            inputs, outputs, settings.ensemble, settings.member, settings.learning_rate, run.seeds, self.device
        )
        self.sampler: Sampler | None = None

    def learn(self) -> dict[str, np.ndarray]:
        metrics = self.ensemble.fit(
            self.data["x"], self.data["change"], self.settings.epochs.dynamics, self.settings.batch
        )
        return {f"{name}_dynamics": value for name, value in metrics.items()}

    def model(self, at_step: int) -> tuple[cem.Step, cem.Reward]:
        """Trajectory sampling: all members at once, each particle on one of them; frozen at an episode's first step."""
        if at_step == 0:
            self.sampler = Sampler(self.ensemble, self.generators, shuffle=self.settings.propagation == "step")
        return self.step, self.oracle

    def step(self, state: Tensor, action: Tensor) -> Tensor:
        """One step of M particles: [B, M, S], [B, M, A] -> [B, M, S]."""
        return self.sampler(torch.cat([state, action], dim=-1)).add_(state)

    def state_dict(self) -> dict:
        return super().state_dict() | {"ensemble": self.ensemble.state_dict()}

    def load_state_dict(self, state: dict) -> None:
        super().load_state_dict(state)
        self.ensemble.load_state_dict(state["ensemble"])
