"""The larger regret studies: ``python -m psrl.theory.study NAME`` writes results/theory/NAME.csv (notebooks 03, 04).

A study lets learners (``rules``) run in one kind of problem while one size grows (``vary``: horizon or dimension). Its
table is tidy: one row per rule, size, number of episodes and block of draws, with the block's mean cumulative regret.
Sizes and seeds are those of the section ``theory`` of params.yaml.
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
import pandas as pd

from psrl import paths
from psrl.config import ConfigError, build, read_params
from psrl.settings import setting
from psrl.theory import bandit, bump, chain, regret

FOLDER = paths.RESULTS / "theory"
BLOCKS = 25
CHECKPOINTS = 8
RULES = {"bandit": ("psrl",), "lqr": regret.RULES, "bump": bump.RULES, "chain": chain.RULES}
PROBLEMS = {"lqr": regret, "bump": bump}  # whose sizes are chosen; the other two have one each
ONLY = {"bandit": "dimension", "chain": "horizon"}


@dataclass(frozen=True)
class Study:
    """One table of cumulative regrets."""

    kind: Literal["bandit", "lqr", "bump", "chain"] = setting("the problem that is learned")
    rules: tuple[str, ...] = setting("the learners, by the names of the problem's module")
    vary: Literal["horizon", "dimension"] = setting("the size that grows")
    values: tuple[int, ...] = setting("the values of that size", low=1)
    episodes: tuple[int, ...] = setting("the episodes at each of those values", low=1)
    draws: int = setting("draws of the truth", low=BLOCKS)
    seed: int = setting("seed of all generators", low=0)
    fixed: Mapping = setting("other sizes of the problem where they differ from its defaults")

    def problem(self) -> str | None:
        unknown = [rule for rule in self.rules if rule not in RULES[self.kind]]
        if unknown:
            return f"rules holds {unknown[0]!r}; valid for {self.kind}: {', '.join(RULES[self.kind])}"
        if self.vary != ONLY.get(self.kind, self.vary):
            return f"vary is {self.vary!r}; valid for {self.kind}: {ONLY[self.kind]}, its only size"
        sizes = [size.name for size in fields(PROBLEMS[self.kind].Problem)] if self.kind in PROBLEMS else []
        foreign = [name for name in self.fixed if name not in sizes]
        if foreign:
            return f"fixed holds {foreign[0]!r}; valid for {self.kind}: {', '.join(sizes) or 'nothing'}"
        if len(self.episodes) != len(self.values):
            return f"episodes has {len(self.episodes)} numbers; valid: one for each of the {len(self.values)} values"
        if self.draws % BLOCKS:
            return f"draws is {self.draws}; valid: a multiple of {BLOCKS}, the number of blocks"
        return None


def load(name) -> Study:
    """The study ``name`` of params.yaml."""
    studies = read_params().get("theory", {})
    if name not in studies:
        raise ConfigError(f"study {name!r} is unknown; valid: {', '.join(studies)}")
    return build(Study, {"fixed": {}, **studies[name]}, f"theory.{name}")


def table(study) -> pd.DataFrame:
    """Run the study. Columns: rule, d, H, episodes, steps, block, regret (mean over the block's draws, cumulative)."""
    rows = []
    for value, episodes in zip(study.values, study.episodes, strict=True):
        points = np.unique(np.ceil(episodes / 2.0 ** np.arange(CHECKPOINTS)).astype(int))
        for rule in study.rules:
            each, size, horizon = _run(study, rule, value, episodes)
            total = each.cumsum(axis=1)[:, points - 1].reshape(BLOCKS, -1, len(points)).mean(axis=1)
            rows += [
                (rule, size, horizon, k, k * horizon, block, total[block, j])
                for j, k in enumerate(points)
                for block in range(BLOCKS)
            ]
    return pd.DataFrame(rows, columns=["rule", "d", "H", "episodes", "steps", "block", "regret"])


def _run(study, rule, value, episodes):
    """Regret [B, E] of one rule at one size, with the dimension d and the horizon H of the problem."""
    if study.kind == "bandit":
        return bandit.thompson(np.random.default_rng(study.seed), study.draws, value, episodes).regret, value, 1
    if study.kind == "chain":
        return chain.regret(rule, value, study.draws, episodes, study.seed), 1, value
    module = PROBLEMS[study.kind]
    problem = module.Problem(**{**study.fixed, **_size(study, value)})
    learner = module.learn(problem, rule, study.draws, study.seed)
    return regret.regrets(learner, episodes), len(problem.prior_sd), problem.horizon


def _size(study, value):
    if study.vary == "horizon":
        return {"horizon": value}
    if study.kind == "bump":
        return {"controls": value - 1}
    return {"states": value // 2, "controls": value - value // 2}


def read(name) -> pd.DataFrame:
    """The committed table of a study."""
    path = FOLDER / f"{name}.csv"
    if not path.is_file():
        raise ConfigError(f"{path} is not there; make it with: python -m psrl.theory.study {name}")
    return pd.read_csv(path)


def blocks(frame, along, **where):
    """Values [X] of the column ``along`` and the regrets [N, X] of the rows that match ``where``."""
    for column, value in where.items():
        frame = frame[frame[column] == value]
    wide = frame.pivot(index="block", columns=along, values="regret")
    return wide.columns.to_numpy(float), wide.to_numpy()


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description="Run one study of section theory of params.yaml.")
    parser.add_argument("name", help="such as lqr; writes results/theory/NAME.csv")
    name = parser.parse_args(arguments).name
    try:
        result = table(load(name))
    except ConfigError as error:
        print(f"psrl: {error}", file=sys.stderr)
        return 2
    # five digits are more than the sampling error leaves, and survive another processor's last bits
    paths.write_atomic(FOLDER / f"{name}.csv", result.to_csv(index=False, float_format="%.5g"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
