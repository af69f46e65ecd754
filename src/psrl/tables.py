"""The convergence table: one row per setting and method, the paper's number beside ours, in three formats."""

import csv
import io
import json
import math
import textwrap
from dataclasses import dataclass

import numpy as np

from psrl import convergence, paper, paths
from psrl.convergence import RULE, Rule, Summary
from psrl.figures import LABELS
from psrl.paper import Setting
from psrl.published import Study
from psrl.statistics import SEED


@dataclass(frozen=True)
class Line:
    """A method in a setting; no summary where results are missing."""

    setting: Setting
    method: str
    status: str  # published, not yet run, or why there is no score
    seeds: int = 0
    episodes: int = 0
    summary: Summary | None = None

    def __str__(self) -> str:
        return str(self.summary) if self.summary else self.status


def lines(study: Study, rule: Rule = RULE) -> list[Line]:
    """All methods of all settings, published or planned."""
    found = []
    for setting in paper.SETTINGS:
        for method in study.listed(setting):
            trials, scores = study.find(setting, method), study.scores(setting, method)
            if trials is None:
                found.append(Line(setting, method, "not yet run"))
                continue
            summary = None if scores is None else convergence.summarise(scores, np.random.default_rng(SEED), rule)
            status = study.unscaled(setting) or "published"
            found.append(Line(setting, method, status, *trials.returns.shape, summary))
    return found


def as_csv(table: list[Line]) -> str:
    """Tidy; a median that half of the runs never reach is inf, what is unknown is empty."""
    header = ["task", "noise", "reward", "method", "status", "paper", "seeds", "episodes", "converged", "limit"]
    header += [f"{name}{end}" for name in ("mean", "median") for end in ("", "_low", "_high")] + ["held"]
    rows = []
    for line in table:
        setting, summary = line.setting, line.summary
        row = [setting.task, setting.noise, setting.reward, line.method, line.status]
        row += [paper.CONVERGENCE.get((setting, line.method), ""), line.seeds or "", line.episodes or ""]
        if summary:
            ends = [v for i in (summary.mean, summary.median) for v in (i.estimate, i.low, i.high)]
            row += [summary.converged, summary.limit, *map(_number, [*ends, summary.held])]
        rows.append(row + [""] * (len(header) - len(row)))
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([header, *rows])
    return buffer.getvalue()


def as_markdown(table: list[Line], rule: Rule = RULE) -> str:
    """Side by side: a row per setting, the paper's number before ours."""
    cells = {(line.setting, line.method): str(line) for line in table}
    columns = [("psrl", True), ("psrl", False), ("psrl-eb", False), ("pets", True), ("pets", False), ("mbpo", True)]
    columns += [("mbpo", False), ("sac", True), ("sac", False), ("ddpg", False)]
    head = ["", *(f"{LABELS[method]}, {'paper' if theirs else 'here'}" for method, theirs in columns)]
    body = [head, ["---"] * len(head)]
    for setting in paper.SETTINGS:
        row = [str(setting)]
        for method, theirs in columns:
            ours = cells.get((setting, method), "-")
            row.append(paper.convergence(setting, method) if theirs and ours != "-" else "-" if theirs else ours)
        body.append(row)
    text = (
        f"Episodes to convergence: {rule}. Mean over trials with a 95 % bootstrap interval. A run that never converges "
        "is censored: it counts with the last episode in which its convergence could have been seen, so the mean is a "
        "lower bound. (r): the reward function is given. The paper does not define convergence."
    )
    return "\n".join([*textwrap.wrap(text, 120), "", *(f"| {' | '.join(row)} |" for row in body), ""])


def as_json(table: list[Line], study: Study) -> str:
    """For `dvc metrics`: means and censored runs of what is published."""
    content: dict = {"published experiments": len(study.published), "planned experiments": len(study.planned)}
    for line in table:
        if line.summary and line.summary.limit:
            entry = {"mean": round(float(line.summary.mean.estimate), 2), "censored": line.summary.censored}
            content.setdefault(str(line.setting), {})[line.method] = entry
    return json.dumps(content, indent=2) + "\n"


def write(study: Study) -> list[Line]:
    """results/tables/convergence.{csv,md,json}."""
    table = lines(study)
    contents = {"csv": as_csv(table), "md": as_markdown(table), "json": as_json(table, study)}
    for ending, content in contents.items():
        paths.write_atomic(paths.TABLES / f"convergence.{ending}", content)
    return table


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"
