"""What an environment step of each method costs: measured on one machine in one run (`psrl bench step`).

Curves are run over weeks on whatever machine there is, so their own times cannot be compared. Here every method is
timed on every task as it is run, planners with five trials as one batch, and the time of a trial is split into

    act     the plan, or the policy's action
    train   training per step, for methods whose training does not grow with the data
    growth  training per step and known episode: planners refit their model to all data before every episode

The environment's own step, the same for all methods of a task, is left out, and so are greedy evaluations and saving.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch

from psrl import paths
from psrl.blr import Posterior
from psrl.config import ConfigError, Run, read_params, resolve
from psrl.learner import METHODS, make_learner

TRIALS = 5
ROUNDS = 2  # over everything, and the smaller number counts: what else the machine does can only add, for minutes
PLANNERS, ACTORS = ("psrl", "psrl-eb", "pets"), ("mbpo", "sac", "ddpg")
FILE = paths.RESULTS / "bench" / "step.json"


@dataclass(frozen=True)
class Cost:
    """Milliseconds on one core, by its wall clock, per environment step of one trial."""

    act: float
    train: float
    growth: float  # per episode known
    update: float  # of growth, the Bayesian update: features of all rows, and the posterior; measured for psrl alone
    first: int  # episodes that cost nothing: they are played at random, without training

    def per_step(self, episodes: int) -> np.ndarray:
        """In each of the first episodes, [episodes]; the k-th one knows the k - 1 before it."""
        known = np.arange(episodes)
        return np.where(known < self.first, 0.0, self.act + self.train + self.growth * known)


def read() -> dict[tuple[str, str, str], Cost]:
    """What was measured, by task, method and reward; SAC and DDPG, which never see the function, under learned."""
    try:
        rows = json.loads(FILE.read_text())["rows"]
        costs = {(row["task"], row["method"], row["reward"]): row for row in rows}
        names = ("act", "train", "growth", "update")
        return {key: Cost(*(row[f"{name}_ms"] for name in names), row["first"]) for key, row in costs.items()}
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(
            f"{FILE} cannot be used ({type(error).__name__}: {error}); valid: what `psrl bench step --json` prints"
        ) from None


def step(tasks: list[str]) -> list[dict]:
    """A row per task, method and reward."""
    cases = [
        (task, method, reward)
        for task, method, reward in product(tasks, (*PLANNERS, *ACTORS), ("oracle", "learned"))
        # PETS needs the reward function, the model-free methods never see it
        if (method, reward) not in (("pets", "learned"), ("sac", "oracle"), ("ddpg", "oracle"))
    ]
    rounds = [[_measure(*case) for case in cases] for _ in range(ROUNDS)]
    rows = []
    for (task, method, reward), *measured in zip(cases, *rounds, strict=True):
        least = {name: round(min(each[name] for each in measured), 4) for name in measured[0]}
        rows.append({"task": task, "method": method, "reward": reward, **least})
    return rows


def _measure(task: str, method: str, reward: str) -> dict[str, float]:
    return (_planner if METHODS[method].batched else _actor)(task, method, reward)


def _run(task: str, method: str, reward: str, trials: int, steps: int | None = None) -> Run:
    params = read_params()
    if steps is not None:
        params["tasks"][task]["steps"] = steps
    return resolve(params, task=task, method=method, reward=reward, seeds=list(range(trials)), episodes=2)


def _planner(task: str, method: str, reward: str) -> dict[str, float]:
    run = _run(task, method, reward, TRIALS)
    agent = make_learner(run)
    agent.episode()  # random actions
    share = 1000 / (TRIALS * run.steps)  # of seconds, in milliseconds per step and trial; one episode is known
    growth = share * _seconds(agent.learn)
    state = agent._reset(first=False)
    mean = torch.zeros(TRIALS, agent.settings.planner.horizon, agent.task.action_dim)
    act = min(_seconds(lambda t=t: agent.plan(state, mean, t)) for t in range(3))
    update = 0.0
    if method == "psrl":
        update = share * _seconds(lambda: [_update(item, agent.data["x"]) for item in agent._regressions()])
    return {"act_ms": 1000 * act / TRIALS, "train_ms": 0.0, "growth_ms": growth, "update_ms": update, "first": 1}


@torch.no_grad()
def _update(regression: object, x: torch.Tensor) -> Posterior:
    """What the last layer costs: the features of all rows, and the posterior on them."""
    phi = regression.networks.features(x).double()
    bayes = regression.settings.bayes
    return Posterior.fit(phi, x.new_zeros(*x.shape[:2], regression.networks.outputs), bayes.prior_sd, bayes.noise_sd)


def _actor(task: str, method: str, reward: str) -> dict[str, float]:
    """A short episode, the first in which the policy acts and trains from the first step to the last."""
    settings = _run(task, method, reward, 1).settings
    if method == "mbpo":  # trains and plays by its policy from the second episode on; refits its model so often
        run, before, first = _run(task, method, reward, 1, settings.retrain_every), 1, 1
    else:
        run = _run(task, method, reward, 1, 100)
        before = settings.random_steps // run.steps
        first = settings.train_after // read_params()["tasks"][task]["steps"]
    learner = make_learner(run)
    for _ in range(before):
        learner.episode()
    spent = learner.episode().metrics
    act, train = (1000 * spent[f"seconds_{kind}"].item() / run.steps for kind in ("plan", "train"))
    return {"act_ms": act, "train_ms": train, "growth_ms": 0.0, "update_ms": 0.0, "first": first}


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
