"""Episodes to look at: played by chance, or by the planner that knows the true dynamics and reward.

`python -m psrl.tasks.episodes reacher pusher` records one planned episode of each under results/filmstrips, in about
two minutes of computing per arm.
"""

import csv
import dataclasses
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import numpy as np
import torch

from psrl import cem, config, paths
from psrl.config import ConfigError
from psrl.settings import Planner
from psrl.tasks.rollout import physics_state, true_model
from psrl.tasks.task import TASKS, Reward, Task


@dataclass(frozen=True)
class Episodes:
    """B episodes of a task: states [B, T + 1, ...] as `psrl.tasks.drawing` takes them, and rewards [B, T]."""

    states: np.ndarray
    rewards: np.ndarray

    @property
    def returns(self) -> np.ndarray:
        """Sums of rewards [B]."""
        return self.rewards.sum(axis=1)


def random_episodes(task: Task, seeds: Sequence[int], noise: float = 0.0) -> Episodes:
    """Uniformly random actions, from another stream than the environment's, which the seed alone begins."""
    generators = [np.random.default_rng([seed, 1]) for seed in seeds]
    size = task.action_dim

    def act(envs, observations):
        return task.action_bound * np.stack([generator.uniform(-1, 1, size) for generator in generators])

    return _play(task, seeds, noise, act)


def planned_episodes(
    task: Task, seeds: Sequence[int], settings: Planner, noise: float = 0.0, reward: Reward | None = None
) -> Episodes:
    """The cross-entropy planner on the true noise-free dynamics, maximising `reward` or else the planning reward."""
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    mean = torch.zeros(len(seeds), settings.horizon, task.action_dim)
    maximised = reward or task.planning_reward

    def act(envs, observations):
        nonlocal mean
        if task.dynamics:
            model = task.dynamics, lambda state, action, following: maximised(state, action, following, None)
            state = torch.from_numpy(observations).float()
        else:
            model, state = true_model(envs), torch.from_numpy(np.stack([physics_state(env) for env in envs]))
        with torch.inference_mode():
            plan = cem.plan(*model, state, mean, settings, task.action_bound, generators)
        mean = cem.shift(plan)
        return plan[:, 0].numpy()

    return _play(task, seeds, noise, act)


def _play(task: Task, seeds: Sequence[int], noise: float, act: Callable) -> Episodes:
    vector = task.make_vec(len(seeds), noise)
    observations, _ = vector.reset(seed=list(seeds))
    states, rewards = [drawn(vector.envs)], []
    for _ in range(task.steps):
        observations, reward, *_ = vector.step(act(vector.envs, observations))
        states.append(drawn(vector.envs))
        rewards.append(reward)
    return Episodes(np.stack(states, axis=1), np.stack(rewards, axis=1))


def drawn(envs: Sequence[gymnasium.Env]) -> np.ndarray:
    """What a drawing of each environment needs: an arm's qpos, else the state."""
    inner = [env.unwrapped for env in envs]
    return np.stack([env.data.qpos.copy() if hasattr(env, "data") else np.array(env.state) for env in inner])


def recording(name: str) -> Path:
    """The file that holds the recorded episode of a task."""
    return paths.RESULTS / "filmstrips" / f"{name}.csv"


def save(episodes: Episodes, path: Path) -> None:
    """Write the one episode as a table: a row per step with the reward of that step; the last row has none."""
    (states,), (rewards,) = episodes.states, episodes.rewards
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["step", "reward", *(f"state_{i}" for i in range(states.shape[1]))])
    for step, state in enumerate(states):
        reward = f"{rewards[step]:.6f}" if step < len(rewards) else ""
        writer.writerow([step, reward, *(f"{value:.6f}" for value in state)])
    paths.write_atomic(path, table.getvalue())


def load(path: Path) -> Episodes:
    """Read what `save` wrote."""
    table = np.genfromtxt(path, delimiter=",", skip_header=1)
    return Episodes(states=table[None, :, 2:], rewards=table[None, :-1, 1])


def main(names: Sequence[str]) -> int:
    """Record a planned episode of each task: seed 0, the planner of params.yaml with a quarter of its population.

    That is enough for a picture; the returns to compare with are those of the experiments with the method `oracle`.
    """
    torch.set_num_threads(1)
    try:
        tasks = config.read_params()["tasks"]
        for name in names:
            if name not in tasks:
                raise ConfigError(f"task {name!r} is unknown; valid: {', '.join(tasks)}")
        for name in names:
            settings = config.build(Planner, tasks[name].get("planner"), f"tasks.{name}.planner")
            fewer = dataclasses.replace(settings, population=settings.population // 4, elites=settings.elites // 4)
            save(planned_episodes(TASKS[name], [0], fewer), recording(name))
    except ConfigError as error:
        print(f"psrl.tasks.episodes: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["reacher", "pusher"]))
