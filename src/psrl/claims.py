"""The empirical claims of the paper as data, and verdicts that are computed from published results.

A claim is a list of comparisons; each has a measure, a direction that counts in our favour, and an interval. The rule
that turns an interval into a verdict is :func:`judge`, and nobody types a verdict.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from psrl import convergence, statistics
from psrl.figures import LABELS
from psrl.paper import FIGURE_1, FIGURE_2, NOT_SHOWN, Setting
from psrl.published import Study, Trials
from psrl.statistics import SEED, Interval

MARGIN = 0.1  # of normalised score: closer than this is "similar"

# of a comparison: all but "partly", which is for claims whose comparisons do not agree
Verdict = Literal["yes", "partly", "no", "undecided", "not yet run", "not planned"]
OPEN = ("not yet run", "not planned")
# mean over the episodes that both have; mean over the last tenth of each; episodes to convergence, fewer is better
Measure = Literal["return", "level", "episodes"]
Relation = Literal["better", "similar", "not worse"]


@dataclass(frozen=True)
class Curve:
    """A method in a setting, possibly with a changed setting of its own (`psrl.published.describe`)."""

    setting: Setting
    method: str
    variation: str = ""

    def __str__(self) -> str:
        return f"{LABELS[self.method]}{', ' if self.variation else ''}{self.variation}"


@dataclass(frozen=True)
class Comparison:
    """Whether ``ours`` relates to ``theirs`` as claimed."""

    ours: Curve
    theirs: Curve
    measure: Measure = "return"
    relation: Relation = "better"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, in our words, and the comparisons that test it."""

    where: str
    text: str
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True)
class Finding:
    """What the published results say about a comparison; no difference where something is missing."""

    verdict: Verdict
    difference: Interval | None = None  # positive: in favour of ours
    unit: str = ""
    improvement: Interval | None = None  # probability that a trial of ours beats one of theirs
    note: str = ""  # what is missing, or why an interval decides nothing


def judge(difference: Interval, relation: Relation, margin: float = MARGIN) -> Verdict:
    """``yes``: the whole interval lies where the claim says; ``no``: none of it does; else ``undecided``."""
    floor, ceiling = {"better": (0.0, np.inf), "similar": (-margin, margin), "not worse": (-margin, np.inf)}[relation]
    if difference.low > floor and difference.high <= ceiling:
        return "yes"
    return "no" if difference.high <= floor or difference.low > ceiling else "undecided"


def summarise(verdicts: Iterable[Verdict]) -> Verdict:
    """Of a claim from those of its comparisons; what is not run does not count.

    ``partly``: some comparisons confirm it and others do not. Where none does, one that refutes it makes it ``no``.
    """
    verdicts = list(verdicts)
    run = {verdict for verdict in verdicts if verdict not in OPEN}
    if len(run) < 2:
        return run.pop() if run else "not planned" if verdicts and set(verdicts) == {"not planned"} else "not yet run"
    return "partly" if "yes" in run else "no"


def examine(study: Study, comparison: Comparison, margin: float = MARGIN) -> Finding:
    """Compare two curves of published results.

    A level is one "at convergence": a curve that has not converged may still rise, and where that could overturn the
    verdict it is undecided. Nor do episodes to convergence refute anything where too few trials converge.
    """
    curves = (comparison.ours, comparison.theirs)
    ours, theirs = (study.find(c.setting, c.method, c.variation) for c in curves)
    scale = study.scale(comparison.ours.setting) if comparison.ours.setting == comparison.theirs.setting else None
    if not (ours and theirs):
        return _missing(study, curves)
    if not scale and (comparison.relation != "better" or comparison.measure == "episodes"):
        return Finding("not yet run", note=study.unscaled(comparison.ours.setting) or "no common score")
    common = min(ours.run.episodes, theirs.run.episodes)
    groups = [_values(trials, comparison.measure, common, scale) for trials in (ours, theirs)]
    unit = "episodes" if comparison.measure == "episodes" else "score" if scale else "return"
    difference, improvement = (
        statistics.bootstrap(statistic, groups, np.random.default_rng(SEED))
        for statistic in (statistics.difference_of_means, statistics.probability_of_improvement)
    )
    verdict = judge(difference, comparison.relation, margin)
    note = _open(comparison, verdict, difference, (ours, theirs), common, scale) if scale else ""
    return Finding("undecided" if note else verdict, difference, unit, improvement, note)


def _open(
    comparison: Comparison,
    verdict: Verdict,
    difference: Interval,
    trials: tuple[Trials, Trials],
    common: int,
    scale: convergence.Scale,
) -> str:
    """Why a verdict about convergence stays open although its interval decides; empty where it does not."""
    if verdict == "undecided" or comparison.measure == "return":
        return ""
    episodes = common if comparison.measure == "episodes" else None
    waiting = [int(np.isinf(convergence.times(scale(each.returns[:, :episodes]))).sum()) for each in trials]
    if comparison.measure == "episodes":  # censored trials of both make ties, which say nothing
        tied = verdict == "no" and difference.high == 0 and all(waiting)
        return f"too few trials converge in {common} episodes" if tied else ""
    similar = comparison.relation == "similar"
    if verdict == "yes":  # 0: ours, 1: theirs; who can overturn the verdict by rising
        rising = (0, 1) if similar else (1,)
    else:
        rising = (1,) if similar and difference.estimate > 0 else (0,)
    told = [
        f"{waiting[side]} of {len(trials[side].returns)} trials of {(comparison.ours, comparison.theirs)[side]}"
        for side in rising
        if waiting[side]
    ]
    return f"{' and '.join(told)} have not converged" if told else ""


def _missing(study: Study, curves: tuple[Curve, Curve]) -> Finding:
    absent = [c for c in curves if not study.find(c.setting, c.method, c.variation)]
    listed = all(study.is_planned(c.setting, c.method, c.variation) for c in absent)
    return Finding("not yet run" if listed else "not planned", note=" and ".join(f"{c} on {c.setting}" for c in absent))


def _values(trials: Trials, measure: Measure, common: int, scale: convergence.Scale | None) -> np.ndarray:
    """[B], larger is better."""
    if measure == "episodes":
        times = convergence.times(scale(trials.returns[:, :common]))
        return -np.minimum(times, convergence.RULE.limit(common))
    values = trials.returns[:, :common].mean(axis=-1) if measure == "return" else statistics.final_level(trials.returns)
    return scale(values) if scale else values


def against(settings: Iterable[Setting], others: Iterable[str], measure: Measure, relation: Relation, ours: str):
    """The same comparison in several settings, with several methods."""
    others = list(others)
    return tuple(Comparison(Curve(s, ours), Curve(s, o), measure, relation) for s in settings for o in others)


def claims(ours: str = "psrl") -> list[Claim]:
    """Of Sections 5.2, 5.3 and 4.1, with ``ours`` in the part of MPC-PSRL."""
    given, learned = [s for s in FIGURE_2 if s.given], [s for s in FIGURE_2 if not s.given]
    noisy_given, noisy_learned = FIGURE_1[:2], FIGURE_1[2:]
    reacher, pusher = ([s for s in given if s.task == task] for task in ("reacher", "pusher"))
    ablated = [*noisy_given, *reacher]
    stochastic = (
        *against(noisy_given, ("pets", "mbpo"), "return", "better", ours),
        *against(noisy_learned, ("mbpo",), "return", "better", ours),
    )
    baselines = (
        *stochastic,
        *against(given, ("pets", "mbpo"), "return", "better", ours),
        *against(learned, ("mbpo",), "return", "better", ours),
    )

    def varied(variations: Iterable[str], relation: Relation) -> tuple[Comparison, ...]:
        return tuple(
            Comparison(Curve(s, ours), Curve(s, ours, v), "return", relation) for v in variations for s in ablated
        )

    def faster(settings: list[Setting]) -> tuple[Comparison, ...]:
        return against(settings, ("pets", "mbpo"), "episodes", "better", ours)

    def harder(setting: Setting) -> tuple[Comparison, ...]:
        easy = Setting(setting.task, 0.0, "oracle")
        return tuple(Comparison(Curve(easy, method), Curve(setting, method)) for method in (ours, "pets", "mbpo"))

    def suffices(width: str, wider: Iterable[str]) -> tuple[Comparison, ...]:
        return tuple(
            Comparison(Curve(s, ours, width), Curve(s, ours, w), "return", "not worse") for w in wider for s in ablated
        )

    return [
        Claim("5.2", "In the noisy Cartpole and Pendulum it outperforms the model-based baselines.", stochastic),
        Claim(
            "5.2",
            "Without noise and with the reward given, Cartpole and Pendulum are easy: model-based methods do alike.",
            (
                *against(NOT_SHOWN, ("pets", "mbpo"), "return", "similar", ours),
                *against(NOT_SHOWN, ("mbpo",), "return", "similar", "pets"),
            ),
        ),
        Claim("5.2", "Noise makes them harder, even with the reward given.", sum(map(harder, noisy_given), ())),
        Claim("5.2", "Pusher (r): it converges in fewer episodes than PETS and MBPO.", faster(pusher)),
        Claim(
            "5.2",
            "Pusher (r): at convergence the three perform alike.",
            against(pusher, ("pets", "mbpo"), "level", "similar", ours),
        ),
        Claim("5.2", "Reacher (r): it converges in fewer episodes than PETS and MBPO.", faster(reacher)),
        Claim(
            "5.2",
            "Reacher (r): it also performs better at convergence.",
            against(reacher, ("pets", "mbpo"), "level", "better", ours),
        ),
        Claim(
            "5.2",
            "With the same planner as PETS it learns from fewer samples.",
            against([*noisy_given, *given], ("pets",), "return", "better", ours),
        ),
        Claim(
            "5.2",
            "Where the reward has to be learned it outperforms MBPO, SAC and DDPG.",
            (
                *against(learned, ("mbpo", "sac", "ddpg"), "return", "better", ours),
                *against(noisy_learned, ("mbpo",), "return", "better", ours),
            ),
        ),
        Claim(
            "5.2",
            "Where the reward has to be learned it matches SAC (the abstract: model-free methods) at convergence.",
            against(learned, ("sac", "ddpg"), "level", "not worse", ours),
        ),
        Claim(
            "5.2",
            "Reacher and Pusher: where the reward has to be learned it converges in fewer episodes than MBPO.",
            against([s for s in learned if s.task in ("reacher", "pusher")], ("mbpo",), "episodes", "better", ours),
        ),
        Claim("5.3", "Over all tasks it outperforms PETS and MBPO.", baselines),
        Claim(
            "5.3",
            "Model-based methods learn from fewer samples than model-free ones.",
            (
                *against(learned, ("sac", "ddpg"), "return", "better", ours),
                *against(learned, ("sac", "ddpg"), "return", "better", "mbpo"),
                *against([*NOT_SHOWN, *given], ("sac", "ddpg"), "return", "better", "pets"),
            ),
        ),
        Claim(
            "5.3, implied",
            "One sampled model per episode beats a new sample at every step.",
            varied(["a new sample each step"], "better"),
        ),
        Claim(
            "5.3, implied",
            "Sampling the posterior beats planning with its mean.",
            varied(["posterior mean"], "better"),
        ),
        Claim(
            "4.1",
            "A feature layer of the order of d suffices (d, or 2d as published): wider ones are not better.",
            (
                *suffices("feature layer 1d", ["", "feature layer 4d", "feature layer 8d"]),
                *suffices("", ["feature layer 4d", "feature layer 8d"]),
            ),
        ),
    ]
