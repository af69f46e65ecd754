"""Learning curves in the form of the paper's Figures 1 and 2, for any subset of the experiments.

Mean over trials, shaded one standard deviation as far as trials reach, raw returns; model-free methods' level at
convergence dotted. A panel names what is not yet run.
"""

from collections.abc import Callable, Iterable, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, SymmetricalLogLocator

from psrl import paper, statistics
from psrl.claims import Comparison, Curve, examine
from psrl.figures import COLOURS, LABELS
from psrl.paper import Setting
from psrl.published import Study

TRIALS = 5  # in the paper; any other number is told
WIDE = ("reacher",)  # random actions cost many times what is left to learn after: a logarithmic axis shows both
BASELINES = ("pets", "mbpo", *paper.MODEL_FREE)
DRAWN_LAST_ON_TOP = ("ddpg", "sac", "mbpo", "pets", "psrl-eb", "psrl")
GREY = "#595959"
DASHES = (0, (6, 3))
TICKS = {(1, 2, 5): 15, (1, 3): 200, (1,): np.inf}  # multiples of powers of ten, for ranges up to such a factor


def grid(
    settings: Sequence[Setting], columns: int, title: str, width: float = 2.5, height: float = 2.4
) -> tuple[Figure, dict[Setting, Axes]]:
    """A panel per setting."""
    rows = -(-len(settings) // columns)
    fig, axes = plt.subplots(rows, columns, figsize=(width * columns, height * rows + 0.8), squeeze=False)
    panels = dict(zip(settings, axes.flat, strict=False))
    for ax in axes.flat[len(panels) :]:
        ax.remove()
    for setting, ax in panels.items():
        ax.set_title(str(setting))
    fig.suptitle(title, x=0.02, ha="left", fontsize=12)
    return fig, panels


def label(panels: dict[Setting, Axes], x: str, y: str) -> None:
    """Name the axes of a grid, the horizontal one at the last panel of each column that is not empty."""
    axes = list(panels.values())
    lowest = {ax.get_subplotspec().colspan.start: ax for ax in axes if len(ax.get_xticks())}
    for ax in lowest.values():
        ax.set_xlabel(x)
    axes[0].figure.supylabel(y, fontsize=10)


def empty(ax: Axes, why: str = "not yet run") -> None:
    ax.set(xticks=[], yticks=[])
    ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color=GREY)


def legend(
    fig: Figure,
    study: Study,
    settings: Sequence[Setting],
    more: Iterable[Artist] = (),
    methods: Iterable[str] = paper.METHODS,
) -> None:
    """Below the panels; it tells the number of seeds where that is not five."""
    handles = []
    for method in methods:
        trials = [found for setting in settings if (found := study.find(setting, method))]
        if trials:
            seeds = sorted({len(each.returns) for each in trials})
            told = "" if seeds == [TRIALS] else f" ({' or '.join(map(str, seeds))} seeds)"
            handles.append(Line2D([], [], color=COLOURS[method], label=LABELS[method] + told))
    if handles:
        columns = 5 if fig.get_figwidth() < 12 else 9
        fig.legend(handles=[*handles, *more], loc="outside lower center", ncols=columns)


def spread(ax: Axes, x: np.ndarray, returns: np.ndarray, method: str, held: bool = False) -> None:
    """Mean and standard deviation over trials of returns [B, episodes] at x [episodes], cut where no trial lies.

    ``held``: a return lasts until the next one. A dot marks the end, which another line may hide.
    """
    mean, steps = returns.mean(axis=0), "post" if held else None
    ax.plot(x, mean, color=COLOURS[method], drawstyle="steps-post" if held else None)
    ax.plot(x[-1:], mean[-1:], "o", color=COLOURS[method], ms=3, clip_on=False)
    if len(returns) > 1:
        deviation = returns.std(axis=0, ddof=1)
        low = np.maximum(mean - deviation, returns.min(axis=0))
        high = np.minimum(mean + deviation, returns.max(axis=0))
        ax.fill_between(x, low, high, color=COLOURS[method], alpha=0.18, lw=0, step=steps)


def figure(study: Study, settings: Sequence[Setting], columns: int) -> Figure:
    """One of the paper's two figures."""
    fig, panels = grid(settings, columns, message(study, settings), width=4.7, height=3.4)
    for setting, ax in panels.items():
        panel(ax, study, setting)
    more: list[Artist] = [Patch(color=GREY, alpha=0.3, lw=0, label="± one sd of the trials")]
    if any(study.methods(setting, paper.MODEL_FREE) for setting in settings):
        more.append(Line2D([], [], color=GREY, ls=":", lw=1.6, label="level at convergence"))
    if any(study.find(setting, "oracle") for setting in settings):
        more.append(Line2D([], [], color=COLOURS["oracle"], ls=DASHES, lw=0.9, label=LABELS["oracle"]))
    legend(fig, study, settings, more)
    return fig


def panel(ax: Axes, study: Study, setting: Setting) -> None:
    """One setting: return against episode, environment steps on the upper axis, what is not yet run at the side."""
    found = {method: trials for method in DRAWN_LAST_ON_TOP if (trials := study.find(setting, method))}
    if not found:
        empty(ax)
        return
    based = [trials for method, trials in found.items() if method in paper.MODEL_BASED]
    last = max(trials.run.episodes for trials in based or found.values())
    for method, trials in found.items():
        shown = trials.returns[:, :last]
        spread(ax, np.arange(1, shown.shape[1] + 1), shown, method)
        if method in paper.MODEL_FREE:
            ax.axhline(statistics.final_level(trials.returns).mean(), color=COLOURS[method], ls=":", lw=1.6)
    oracle = study.find(setting, "oracle")
    if oracle:
        ax.axhline(oracle.returns.mean(), color=COLOURS["oracle"], ls=DASHES, lw=0.9)
    ax.set(xlabel="episodes", ylabel="return")
    if setting.task in WIDE:
        logarithmic(ax)
        ax.set_ylabel("return (log scale)")
    missing = [LABELS[method] for method in study.missing(setting)]
    if missing:
        text = "\n".join(["not yet run:", *missing])
        ax.text(1.02, 0.02, text, transform=ax.transAxes, ha="left", va="bottom", fontsize=9, color=GREY)
    _episodes_and_steps(ax, last, next(iter(found.values())).run.steps)


def logarithmic(ax: Axes) -> None:
    """Of returns below zero: equal factors of what is lost, equal distances."""
    ax.set_yscale("symlog", linthresh=10)
    ax.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=10, subs=[1, 2, 5]))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_ylim(top=0.7 * ax.dataLim.y1)


def _episodes_and_steps(ax: Axes, last: int, steps: int) -> None:
    ax.set_xlim(1, max(2, last))
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    upper = ax.secondary_xaxis("top", functions=(lambda episode: episode * steps, lambda step: step / steps))
    upper.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    upper.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step / 1000:g}k" if step >= 1000 else f"{step:g}"))
    upper.set_xlabel("environment steps", fontsize=9)


def against_time(study: Study, settings: Sequence[Setting], columns: int, clock: Callable, unit: str) -> Figure:
    """The same curves against a time: ``clock(trials)`` is the hours of every episode, [B, episodes]."""
    fig, panels = grid(settings, columns, f"The same curves against {unit}")
    for setting, ax in panels.items():
        methods = study.methods(setting, DRAWN_LAST_ON_TOP)
        hours = {method: np.cumsum(clock(study.find(setting, method)).mean(axis=0)) for method in methods}
        for method, x in hours.items():
            every = -(-len(x) // 200)  # a line has room for so many points
            spread(ax, x[::every], study.find(setting, method).returns[:, ::every], method, held=True)
        if not hours:
            empty(ax)
            continue
        ax.set_xscale("log")
        begun = [x[x > 0][:2][-1] for x in hours.values() if x.any()]  # the first, random episodes cost nothing
        ax.set_xlim(left=0.7 * min(begun, default=1))
        left, right = ax.get_xlim()
        ax.xaxis.set_major_locator(LogLocator(subs=next(s for s, most in TICKS.items() if right < most * left)))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
        if setting.task in WIDE:
            logarithmic(ax)
    label(panels, f"{unit} (log)", "return (Reacher: log scale)")
    legend(fig, study, settings)
    return fig


def message(study: Study, settings: Sequence[Setting]) -> str:
    """What the panels say, counted: where MPC-PSRL is clearly better than every baseline, than some, worse than one.

    All that is drawn counts, but not a panel whose only baselines are those of another one.
    """
    own = {s: [m for m in study.methods(s, BASELINES) if m in study.listed(s)] for s in settings}
    compared = [s for s in settings if study.find(s, "psrl") and own[s]]
    if not compared:
        return "No panel has both MPC-PSRL and a baseline yet"
    pairs = [[Comparison(Curve(s, "psrl"), Curve(s, other)) for other in study.methods(s, BASELINES)] for s in compared]
    leads = [[examine(study, pair).difference for pair in each] for each in pairs]
    above = [[lead.above_zero for lead in each] for each in leads]
    rest = len(settings) - len(compared)
    told = f"; {rest} cannot be compared yet" if rest else ""
    every, some = sum(map(all, above)), sum(any(each) and not all(each) for each in above)
    behind = sum(any(lead.below_zero for lead in each) for each in leads)
    partly = (f", some in {some}" if some else "") + (f", is clearly beaten in {behind}" if behind else "")
    return f"MPC-PSRL clearly beats every baseline run in {every} of {len(compared)} panels{partly}{told}"


def alternative(study: Study, settings: Sequence[Setting]) -> str:
    """The figure in words, for those who do not see it."""
    sentences = ["Learning curves."]
    for setting in settings:
        ends = [
            f"{LABELS[method]} {statistics.final_level(study.find(setting, method).returns).mean():.0f}"
            for method in study.methods(setting)
        ]
        missing = [LABELS[method] for method in study.missing(setting)]
        told = [f"return at the end: {'; '.join(ends)}"] if ends else []
        told += [f"not yet run: {'; '.join(missing)}"] if missing else []
        sentences.append(f"{setting}, {' - '.join(told) or 'not yet run'}.")
    return " ".join(sentences)
