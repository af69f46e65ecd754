"""What is published and what is not yet run.

Published is what params.yaml lists: every experiment of it has its results, or loading is refused. Planned is what
profiles/paper.yaml lists on top. Files in results/ that neither lists do not exist for the analysis.
"""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from psrl import config, idle, paper, paths
from psrl.config import ConfigError, Run
from psrl.convergence import Scale
from psrl.learner import units
from psrl.paper import Setting
from psrl.results import Files, is_current

PROFILE = "paper"
ACTORS = ("mbpo", "sac", "ddpg")  # act with exploration noise; judged, as in their public code, by a greedy episode


@dataclass(frozen=True)
class Trials:
    """The B trials of a published experiment."""

    name: str
    run: Run
    collected: np.ndarray  # [B, episodes], return of every episode, exploration included: what regret counts
    returns: np.ndarray  # [B, episodes], what was learned before the episode is worth (:func:`read`)
    seconds: np.ndarray  # [B, episodes], of the process that ran the trial; trials that run as one batch share it

    @property
    def files(self) -> list[Path]:
        """All that is read of it."""
        files = Files.named(self.name)
        return [files.runs, files.provenance, *([files.metrics] if self.run.method in ACTORS else [])]

    @property
    def batch(self) -> int:
        """Trials per process."""
        return len(units(self.run)[0].seeds)

    @cached_property
    def cpu_seconds(self) -> np.ndarray:
        """[B, episodes]: a trial's share of its process's CPU time; measured as a whole, spread like the wall clock."""
        path = Files.named(self.name).provenance
        try:
            total = json.loads(path.read_text())["seconds"]
            share = total["cpu"] / total["wall"]
        except (OSError, ValueError, KeyError) as error:
            raise ConfigError(f"{path} does not tell the CPU time of {self.name} ({type(error).__name__})") from None
        return self.seconds / self.batch * share


def read(name: str, run: Run) -> Trials:
    """The results of an experiment of params.yaml, checked to be those of ``run``: all its seeds, all its episodes.

    A planner plays episode k with what it has learned from the k - 1 before it. An actor's greedy episode after episode
    k has learned from k, so it counts for episode k + 1; its first episode is random, like a planner's. So all methods
    are compared after the same experience. But MBPO does not train before its second episode, nor SAC and DDPG
    before they have some steps, so their first greedy episodes are of an untrained policy (notebook 13, Section 3).
    """
    files = Files.named(name)
    rows = _rows(files.runs, name, ("return", "seconds"))
    collected, seconds = (_table(rows, run, column, files.runs, name) for column in ("return", "seconds"))
    returns = collected
    if run.method in ACTORS:
        greedy = [row for row in _rows(files.metrics, name, ("value",)) if row["metric"] == "return_greedy"]
        after = _table(greedy, run, "value", files.metrics, name)
        returns = np.concatenate([collected[:, :1], after[:, :-1]], axis=1)
    if not is_current(files, run):
        raise ConfigError(
            f"the results of {name} are not what params.yaml lists: made with other settings or by another version of "
            f"the method, or changed since; `psrl sweep {name}` makes them"
        )
    return Trials(name, run, collected, returns, seconds)


def _rows(path: Path, name: str, columns: tuple[str, ...]) -> list[dict]:
    """Rows of a tidy table with numbers in their places."""
    try:
        with open(path, newline="") as file:
            return [
                row
                | {column: float(row[column]) for column in ("noise", *columns)}
                | {column: int(row[column]) for column in ("seed", "episode")}
                for row in csv.DictReader(file)
            ]
    except FileNotFoundError:
        where = path.relative_to(paths.ROOT)
        raise ConfigError(f"params.yaml lists {name}, but {where} is not there; `psrl sweep {name}` makes it") from None
    except (KeyError, ValueError, TypeError) as error:
        raise ConfigError(f"{path.relative_to(paths.ROOT)} is not a table of results: {error}") from None


def _table(rows: list[dict], run: Run, column: str, path: Path, name: str) -> np.ndarray:
    """[B, episodes] of one column."""
    cells = {(row["seed"], row["episode"]): row[column] for row in rows}
    kinds = {(row["task"], row["method"], row["reward"], row["noise"]) for row in rows}
    episodes = range(1, run.episodes + 1)
    expected = {(seed, episode) for seed in run.seeds for episode in episodes}
    if kinds != {(run.task, run.method, run.reward, run.noise)} or cells.keys() != expected:
        raise ConfigError(
            f"{path.relative_to(paths.ROOT)} is not what params.yaml lists: {run.task}, {run.method}, {run.reward} "
            f"reward, noise {run.noise:g}, seeds {', '.join(map(str, run.seeds))}, {run.episodes} episodes; "
            f"`psrl sweep {name}` makes it"
        )
    return np.array([[cells[seed, episode] for episode in episodes] for seed in run.seeds])


def _curve(run: Run, variation: str) -> tuple:
    """What makes two experiments the same curve. Some methods are the same whether or not the reward is given."""
    reward = run.reward if run.method in paper.MODEL_BASED else None
    # A reference has one curve: with the settings its experiment says.
    return run.task, run.noise, reward, run.method, "" if run.method in paper.REFERENCES else variation


# What a reader calls a setting, or a value of it, where its name does not tell.
NAMES = {"horizon": "planning horizon"}
VALUES = {
    ("sample", "step"): "a new sample each step",
    ("sample", "mean"): "posterior mean",
    ("scales", "standardised"): "standardised targets",
    ("planning_reward", "honest"): "the true reward to plan with",
}


def describe(overrides: Mapping, settings: Any) -> str:
    """{"bayes": {"prior_sd": 1.0}} -> "prior sd x0.1", relative to the method's own; empty for the method as it is."""
    words = []
    for key, value in overrides.items():
        usual, name = getattr(settings, key), NAMES.get(key, key.replace("_", " "))
        if isinstance(value, Mapping):
            words.append(describe(value, usual))
        elif key == "penultimate":  # in units of d = ds + da, of which the paper speaks
            words.append(f"feature layer {value:g}d")
        elif isinstance(value, int | float) and usual:
            words.append(f"{name} x{value / usual:g}")
        else:
            words.append(VALUES.get((key, value), f"{name} {value}"))
    return ", ".join(words)


class Study:
    """All published experiments with their results, and the planned ones without."""

    def __init__(self, published: dict[str, Trials], complete: dict[str, Run], variations: dict[str, str]):
        self.published, self.variations = published, variations
        self.planned = {name: run for name, run in complete.items() if name not in published}
        self.goal = {name: run.episodes for name, run in complete.items()}  # a published curve may have fewer so far
        self._curves: dict[tuple, Trials] = {}
        for name, trials in published.items():
            first = self._curves.setdefault(_curve(trials.run, variations[name]), trials)
            if first is not trials:
                raise ConfigError(
                    f"params.yaml lists one curve twice, as {first.name} and as {name}; valid: one of them"
                )
        self._planned = {_curve(run, variations[name]) for name, run in self.planned.items()}

    @classmethod
    def load(cls) -> "Study":
        params, complete = config.read_params(), config.read_profile(PROFILE)
        published = {name: read(name, run) for name, run in config.experiments(params).items()}
        plan, variations = config.profile(PROFILE)["experiments"], {}
        for name, values in complete["experiments"].items():
            plain = {key: value for key, value in values.items() if key != "set"}
            changed = plan.get(name, values).get("set", {})  # as planned: run at toy sizes, it is still that curve
            variations[name] = describe(changed, config.resolve(complete, where=name, **plain).settings)
        return cls(published, config.experiments(complete), variations)

    def find(self, setting: Setting, method: str, variation: str = "") -> Trials | None:
        """The published trials of a method in a setting, or None."""
        return self._curves.get(self._key(setting, method, variation))

    def is_planned(self, setting: Setting, method: str, variation: str = "") -> bool:
        """Whether it belongs to the complete list but is not published."""
        return self._key(setting, method, variation) in self._planned

    def _key(self, setting: Setting, method: str, variation: str) -> tuple:
        reward = setting.reward if method in paper.MODEL_BASED else None
        return setting.task, setting.noise, reward, method, variation

    def listed(self, setting: Setting) -> list[str]:
        """Methods of a setting, published or planned; model-free ones once per task, where the reward is learned."""
        return [
            method
            for method in paper.METHODS
            if (self.find(setting, method) or self.is_planned(setting, method))
            and not (setting.given and method in paper.MODEL_FREE)
        ]

    def methods(self, setting: Setting, among: tuple[str, ...] = paper.METHODS) -> list[str]:
        """Those that are published in a setting."""
        return [method for method in among if self.find(setting, method)]

    def missing(self, setting: Setting, among: tuple[str, ...] = paper.METHODS) -> list[str]:
        """Those that are planned in a setting and not yet run."""
        return [method for method in among if self.is_planned(setting, method)]

    def ablations(self) -> dict[Setting, list[str]]:
        """Setting -> the variations of MPC-PSRL there, published or planned, in the order they are listed."""
        runs = {name: trials.run for name, trials in self.published.items()} | self.planned
        found: dict[Setting, list[str]] = {}
        for name, variation in self.variations.items():
            run = runs[name]
            if variation and run.method == "psrl":
                found.setdefault(Setting(run.task, run.noise, run.reward), []).append(variation)
        return found

    def scale(self, setting: Setting) -> Scale | None:
        """The normalised score of a setting; None where there is none, see :meth:`unscaled`."""
        random, oracle = (self.find(setting, method) for method in paper.REFERENCES)
        if not (random and oracle):
            return None
        nothing = idle.mean_return(setting.task, setting.noise, random.run.steps)
        scale = Scale.of(float(random.returns.mean()), nothing, float(oracle.returns.mean()))
        return scale if scale.ceiling > scale.floor else None

    def unscaled(self, setting: Setting) -> str:
        """Why a setting has no normalised score; empty where it has one."""
        if not all(self.find(setting, method) for method in paper.REFERENCES):
            return "no reference run yet"
        return "" if self.scale(setting) else "the oracle planner is no better than a policy that knows nothing"

    def scores(self, setting: Setting, method: str) -> np.ndarray | None:
        """Normalised scores [B, episodes]; None where trials or references are missing."""
        trials, scale = self.find(setting, method), self.scale(setting)
        return scale(trials.returns) if trials and scale else None

    def files(self, *settings: Setting) -> list[Path]:
        """The results that a figure of these settings is drawn from."""
        found = [self.find(s, method) for s in settings for method in (*paper.METHODS, *paper.REFERENCES)]
        return sorted({file for trials in found if trials for file in trials.files})
