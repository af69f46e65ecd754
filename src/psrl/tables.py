"""The convergence table: one row per setting and method, the paper's number beside ours, in three formats."""

import csv
import io
import json
import math
import textwrap
from dataclasses import dataclass

import numpy as np

from psrl import convergence, paper, paths
from psrl.convergence import RULE, STAYS, Summary
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
    lasting: Summary | None = None  # the same where all later windows have to be as good

    def __str__(self) -> str:
        return str(self.summary) if self.summary else self.status


def lines(study: Study) -> list[Line]:
    """All methods of all settings, published or planned."""
    found = []
    for setting in paper.SETTINGS:
        for method in study.listed(setting):
            trials, scores = study.find(setting, method), study.scores(setting, method)
            if trials is None:
                found.append(Line(setting, method, "not yet run"))
                continue
            summaries = [
                None if scores is None else convergence.summarise(scores, np.random.default_rng(SEED), rule)
                for rule in (RULE, STAYS)
            ]
            status = study.unscaled(setting) or "published"
            found.append(Line(setting, method, status, *trials.returns.shape, *summaries))
    return found


def as_csv(table: list[Line]) -> str:
    """Tidy, columns as results/README.md explains them; a median that half of the runs never reach is inf."""
    header = ["task", "noise", "reward", "method", "status", "paper_episodes", "seeds", "episodes"]
    for prefix in ("", "lasting_"):
        header += [f"{prefix}last_countable", f"{prefix}converged"]
        header += [f"{prefix}{name}{end}" for name in ("mean", "median") for end in ("", "_low", "_high")]
    header += ["share_held"]
    rows = []
    for line in table:
        setting = line.setting
        row = [setting.task, setting.noise, setting.reward, line.method, line.status]
        row += [paper.CONVERGENCE.get((setting, line.method), ""), line.seeds or "", line.episodes or ""]
        if line.summary:
            for found in (line.summary, line.lasting):
                ends = [v for i in (found.mean, found.median) for v in (i.estimate, i.low, i.high)]
                row += [found.limit, found.converged, *map(_number, ends)]
            row += [_number(line.summary.held)]
        rows.append(row + [""] * (len(header) - len(row)))
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([header, *rows])
    return buffer.getvalue()


def as_markdown(table: list[Line]) -> str:
    """Side by side, a row per setting: the paper's number before ours; then ours where it has to last."""
    cells = {(line.setting, line.method): line for line in table}
    columns = [("psrl", True), ("psrl", False), ("psrl-eb", False), ("pets", True), ("pets", False), ("mbpo", True)]
    columns += [("mbpo", False), ("sac", True), ("sac", False), ("ddpg", False)]

    def cell(setting: Setting, method: str, theirs: bool) -> str:
        line = cells.get((setting, method))
        return "-" if line is None else paper.convergence(setting, method) if theirs else str(line)

    def lasting(setting: Setting, method: str) -> str:
        line = cells.get((setting, method))
        return "-" if line is None else str(line.lasting or line.status)

    first = [[str(s), *(cell(s, *column) for column in columns)] for s in paper.SETTINGS]
    head = ["", *(f"{LABELS[method]}, {'paper' if theirs else 'here'}" for method, theirs in columns)]
    second = [[str(s), *(lasting(s, method) for method in paper.METHODS)] for s in paper.SETTINGS]
    text = (
        f"Episodes to convergence: {RULE}. Mean over trials with a 95 % bootstrap interval. A run that never converges "
        "is censored: it counts with the last episode in which its convergence could have been seen, so the mean is a "
        "lower bound, and its interval has no upper end. In every episode all methods are judged by what they have "
        "learned from the episodes before it. (r): the reward function is given. The paper does not define convergence."
    )
    more = (
        "Episodes until it lasts, here: the same, but all later windows up to the end of the run have to be as good, "
        "and there must be one that shares no episode with the first. "
        "This depends on how many episodes a run has (column `episodes` of the CSV)."
    )
    return "\n".join(
        [*_wrapped(text), *_rows(head, first), *_wrapped(more), *_rows(["", *map(LABELS.get, paper.METHODS)], second)]
    )


def _wrapped(text: str) -> list[str]:
    return [*textwrap.wrap(text, 120), ""]


def _rows(head: list[str], body: list[list[str]]) -> list[str]:
    return [*(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *body]), ""]


def as_json(table: list[Line], study: Study) -> str:
    """For `dvc metrics`: means, censored runs and those that last, of what is published."""
    content: dict = {"published experiments": len(study.published), "planned besides": len(study.planned)}
    for line in table:
        if line.summary and line.summary.limit:
            entry = {"mean": round(float(line.summary.mean.estimate), 2), "censored": line.summary.censored}
            entry["lasts"] = line.lasting.converged
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
