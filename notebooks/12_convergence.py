# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,-all
#     formats: ipynb,py:percent
#     notebook_metadata_filter: kernelspec,-jupytext.text_representation.jupytext_version
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How many episodes until convergence?
#
# **Question.** The paper's appendix gives the average number of episodes each method needs to converge, and does not
# say what converging means. With a definition that is written down: how many episodes does each method need, how sure
# can five trials make us, and does the answer depend on the definition?
#
# The table of this notebook is `results/tables/convergence.csv`, `.md` and `.json` (`dvc metrics show`). What is not
# yet run, or has no reference run to compare with, says so. Numbers in sentences about results are computed.
#
# Runs in about half a minute. You need Section 5 of the paper and its appendix "Experimental details".

# %%
import textwrap

import numpy as np
from IPython.display import Markdown, display
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator
from scipy import stats

from psrl import convergence, curves, idle, paper, statistics, tables
from psrl.config import read_params
from psrl.convergence import RULE, STAYS, Rule
from psrl.figures import COLOURS, LABELS, save, use_style
from psrl.forest import Row, forest
from psrl.notebook import scaled, toy
from psrl.published import Study

use_style()
study = Study.load()

# %% tags=["parameters"]
seed = statistics.SEED  # of every bootstrap interval
simulations = scaled(1000, 300)  # of five trials with a known mean, to see what the intervals cover
thresholds, windows = (0.8, 0.85, 0.9, 0.95), (1, 3, 5)  # the definitions that are tried besides ours

# %% [markdown]
# ## 1. The definition
#
# A return means little by itself, so it is first put on a scale on which 1 is the planner that knows the true dynamics
# and what the methods plan with ("oracle planner": same task, same noise, same cross-entropy method; on Cartpole it
# plans with the authors' smooth reward as they do, on the Pendulum it looks 30 steps ahead instead of 20, because at 20
# its plans freeze, notebook 08). The usual 0 is the policy of random actions. That fails here. Three of the four tasks
# charge for actions by their square, and where actions are large, random ones are ruinous. On the Reacher a random
# action costs $0.01\cdot 7\cdot 20^2/3$ on average, 1400 in an episode; an arm that never moves loses 180. No return
# exceeds 0, so the idle arm would score at least $1 - 180/1400 = 0.87$, whatever the oracle planner achieves, and a
# scale that begins there measures nothing. So 0 is **the better of two policies that know nothing**: random actions,
# and no action.
#
# On this scale a run **converges in the first episode that opens a window of three episodes whose mean score is at
# least 0.9**. A window of three makes one lucky episode insufficient. It does not make the gain permanent: this is when
# a run *first gets there*, and runs may lose it again. So there is a second number beside it, the episode from which on
# it **lasts**: all later windows, up to the end of the run, are as good, and at least one of them shares no episode
# with the first. It needs the whole run, and a longer run has more occasions to fail; that is why it is not the
# definition. Both stand in one place, `psrl.convergence`.

# %% tags=["nbval-check-output"]
print(f"Convergence: {RULE}.\n")
print(f"{'':22s}{'random':>10s}{'no action':>10s}{'oracle':>10s}   score of no action if random were 0")
places = list(dict.fromkeys((setting.task, setting.noise) for setting in paper.SETTINGS))
for task, noise in places:
    setting = paper.Setting(task, noise, "learned")
    random, oracle = (study.find(setting, method) for method in paper.REFERENCES)
    name = f"{task.capitalize()}{', noisy' if noise else ''}"
    if not (random and oracle):
        print(f"{name:22s}{'not yet run':>30s}")
        continue
    ends = random.returns.mean(), idle.mean_return(task, noise, random.run.steps), oracle.returns.mean()
    naive = f"{statistics.normalised_score(ends[1], ends[0], ends[2]):.2f}" if ends[2] > ends[0] else "none"
    print(f"{name:22s}" + "".join(f"{end:10.1f}" for end in ends) + f"{naive:>20s}")
    assert toy() or study.scale(setting), "the oracle planner is better than the policies that know nothing"

steps = read_params()["tasks"]["reacher"]["steps"]
random_actions, nothing = 0.01 * 7 * 20**2 / 3 * steps, idle.mean_return("reacher", 0.0, steps)
print(f"\nReacher: random actions cost {random_actions:.0f} an episode, the idle arm loses {-nothing:.0f} in all,")
print(f"so it would score at least {1 + nothing / random_actions:.2f} on a scale that begins at random actions")
assert toy() or 1 + nothing / random_actions > 0.85
assert toy() or random_actions > 5 * -nothing, "Section 9: a random episode costs several idle ones"

# %% [markdown]
# The upper end of the scale is itself a mean over trials. Where few of them were run, a threshold of 0.9 is only known
# as well as that mean: below, episodes to convergence with the oracle planner's level moved by two standard errors.

# %% tags=["nbval-check-output"]
for task, noise in places:
    setting = next(s for s in paper.SETTINGS if (s.task, s.noise) == (task, noise))
    oracle, trials, scale = study.find(setting, "oracle"), study.find(setting, "psrl"), study.scale(setting)
    if not (scale and trials):
        continue
    error = oracle.returns.mean(axis=1).std(ddof=1) / np.sqrt(len(oracle.returns))
    moved = []
    for shift in (-2, 0, 2):
        scores = convergence.Scale(scale.floor, scale.ceiling + shift * error)(trials.returns)
        found = convergence.times(scores)
        moved.append(convergence.restricted_mean(found, RULE.limit(scores.shape[1])))
    told = ", ".join(f"{value:.1f}" for value in moved)
    print(f"{setting!s:22s}oracle {scale.ceiling:7.1f} +- {error:4.1f}; lower, as is, higher: MPC-PSRL takes {told}")

# %% [markdown]
# On the Reacher that mean is over few goals, one per trial, and how far a goal is away matters more than how well one
# plans. What an idle arm loses on the same goals and on fifty tells whether they are easy ones; with it as a control
# variate the level can be moved to the average goal.

# %% tags=["nbval-check-output"]
setting = paper.Setting("reacher", 0.0, "oracle")
oracle, trials, scale = study.find(setting, "oracle"), study.find(setting, "psrl"), study.scale(setting)
if scale and trials:
    still = idle.returns(setting.task, setting.noise, oracle.run.steps)
    same = still[list(oracle.run.seeds)]  # the first episode of a seed has the same goal whoever plays it
    slope, _ = np.polyfit(same, oracle.returns[:, 0], 1)
    level = oracle.returns[:, 0].mean() + slope * (still.mean() - same.mean())
    print(
        f"{setting}: an idle arm loses {-same.mean():.1f} on the oracle planner's goals, {-still.mean():.1f} on fifty"
    )
    print(f"{setting}: oracle planner {scale.ceiling:.1f}, moved to the average goal {level:.1f}")
    found = convergence.times(convergence.Scale(scale.floor, level)(trials.returns))
    mean = convergence.restricted_mean(found, RULE.limit(trials.run.episodes))
    print(f"{setting}: with it MPC-PSRL takes {mean:.1f}")

# %% [markdown]
# Nor is it only the upper end. Every episode of the Reacher has a goal of its own, and a far one costs more, however
# well one plays. So there we also score an episode by its own goal: 0 is what an idle arm loses at it, 1 the line from
# there to the oracle planner's returns that was fitted above. Below: how closely the late scores of a planner follow
# the goals (rank correlation), and what changes when each episode is scored by its own. The table of Section 2 keeps
# one scale for all, as goals are part of the task; read its "lasts" on the Reacher with this in mind. The line rests on
# five goals.

# %% tags=["nbval-check-output"]
learned = [method for method in ("psrl", "psrl-eb", "pets") if scale and study.scores(setting, method) is not None]
for method in learned:
    trials = study.find(setting, method)
    at_rest = idle.by_episode(setting.task, trials.run.seeds, trials.run.episodes, trials.run.steps)
    ceiling = oracle.returns[:, 0].mean() + slope * (at_rest - same.mean())
    own, one = (trials.returns - at_rest) / (ceiling - at_rest), scale(trials.returns)
    late = slice(trials.run.episodes // 2, None)
    follows = stats.spearmanr(at_rest[:, late].ravel(), one[:, late].ravel()).statistic
    print(f"{setting}, {LABELS[method]}: correlation with the goals {follows:.2f};", end="")
    for name, rule in (("converge", RULE), ("last", STAYS)):
        counts = [int(np.isfinite(convergence.times(scores, rule)).sum()) for scores in (one, own)]
        print(f" {counts[0]} of {len(one)} {name}, by their own goals {counts[1]};", end="")
    means = [convergence.restricted_mean(convergence.times(s), RULE.limit(s.shape[1])) for s in (one, own)]
    print(f" episodes {means[0]:.1f}, by their own goals {means[1]:.1f}")

# %% [markdown]
# A planner is judged by the returns it collects. MBPO, SAC and DDPG act with exploration noise and are judged by greedy
# episodes, one after each episode. A planner plays episode $k$ with what it has learned from $k-1$ episodes, so the
# greedy episode after episode $k-1$ stands beside it: in every episode all have had the same experience.
#
# ## 2. The table
#
# Mean over trials with a 95 % interval. **Runs that never converge are counted, not dropped**: of such a run we know
# only that it would take longer than the last episode in which its convergence could have been seen. It enters with
# that episode (a restricted mean, as in survival analysis), which makes the mean a lower bound. Then the table says "at
# least" and gives only the lower end of the interval; the upper end of the restricted mean's would be the length of the
# runs and nothing else. Where no run converges it says "more than".

# %% tags=["nbval-check-output"]
table = tables.write(study)
display(Markdown(tables.as_markdown(table)))

# %% [markdown]
# The same with what the mean hides: how many of the runs converge, the median by Kaplan and Meier (infinite where
# fewer than half converge), and how the runs go on. "Held" is the share of the windows after a run's first good one
# that reach the threshold too; "lasts" counts the runs for which it lasts, as defined above.

# %% tags=["nbval-check-output"]
scored = [line for line in table if line.summary]
known = [line for line in scored if line.summary.limit]  # with episodes enough for a window
print(f"{'':22s}{'':20s}{'episodes':>9s}{'converged':>11s}{'median':>20s}{'held':>7s}{'lasts':>8s}")
for line in known:
    name, share, median = LABELS[line.method], f"{line.summary.converged} of {line.seeds}", f"{line.summary.median:.0f}"
    held = "-" if np.isnan(line.summary.held) else f"{line.summary.held:.2f}"
    lasts = f"{line.lasting.converged} of {line.seeds}"
    print(f"{line.setting!s:22s}{name:20s}{line.episodes:9d}{share:>11s}{median:>20s}{held:>7s}{lasts:>8s}")
if not known:
    print("nothing to show yet: no published curve has its reference runs and episodes enough")

# %% [markdown]
# ## 3. Who converges when
#
# The share of runs that have converged by each episode. A line that ends below 1 is an experiment in which some runs
# did not converge; short vertical marks are the paper's averages. Lines that would hide each other are set apart by a
# hundredth. Panels with more than 50 episodes are logarithmic beyond the tenth.


# %%
def grid(title, lines, **layout):
    """A small panel per setting; those that none of the lines belongs to say why."""
    fig, panels = curves.grid(paper.SETTINGS, title=title, **({"columns": 5} | layout))
    for setting, ax in panels.items():
        if not any(line.setting == setting for line in lines):
            why = (study.unscaled(setting) or "too few episodes") if study.methods(setting) else "not yet run"
            curves.empty(ax, textwrap.fill(why, 24))
    return fig, panels


def finish(fig, panels, lines, x, y, more=()):
    curves.label(panels, x, y)
    shown = [method for method in paper.METHODS if any(line.method == method for line in lines)]
    curves.legend(fig, study, [line.setting for line in lines], more, shown)


censored, runs = sum(line.summary.censored for line in known), sum(line.seeds for line in known)
fig, panels = grid(f"{runs - censored} of {runs} runs converge while they last", known)
for line in known:
    ax, limit = panels[line.setting], line.summary.limit
    episodes = np.arange(limit + 1)
    share = 1 - convergence.waiting(line.summary.times, episodes)
    apart = 0.012 * paper.METHODS.index(line.method)
    ax.step(episodes, share - apart, where="post", color=COLOURS[line.method], lw=1.4)
    number = paper.CONVERGENCE.get((line.setting, line.method))
    if number:
        ax.axvline(number, ymax=0.12, color=COLOURS[line.method], lw=2.5)
    ax.set_ylim(-0.1, 1.04)
for setting in {line.setting: None for line in known}:
    ax, last = panels[setting], max(line.summary.limit for line in known if line.setting == setting)
    if last > 50:
        ax.set_xscale("symlog", linthresh=10)
        ticks = (0, 5, 10, 100, 500) if last > 200 else (0, 5, 10, 40, 100)
        ax.set_xticks(ticks, labels=map(str, ticks))
        ax.minorticks_off()
        ax.set_xlim(left=-0.5)
        ax.set_title(f"{setting} (log beyond 10)")
    else:
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
marks = [Line2D([], [], color="#595959", ls="", marker="|", ms=9, mew=2.5, label="paper's average")]
finish(fig, panels, known, "episode", "share of runs converged", marks)
alt = (
    "Share of runs that have converged against the episode, one panel per setting, one rising staircase per method; "
    f"{censored} of {runs} runs do not converge."
)
save(fig, "12_converged", alt=alt, inputs=study.files(*paper.SETTINGS))

# %% [markdown]
# ## 4. Does it depend on the definition?
#
# The restricted mean for other thresholds and windows, and for the rule that asks the run to stay there. A higher
# threshold takes longer. A longer window need not: it forgives a weak episode, and as it needs more room before the end
# of a run, a run that never converges counts with an earlier episode. What matters for the paper's claim is the order
# of the methods, so below the picture we count in how many of the definitions MPC-PSRL needs fewer episodes than each
# baseline, both restricted to the episodes that both have, and give the difference with its interval for ours and for
# the one that asks it to last. Definitions that leave a run fewer than two episodes to converge in are left out. SAC
# and DDPG, whose numbers are ten times as large, have a table instead of lines. Where no run converges there is no
# line: its height would be the length of the curve, not a speed.


# %%
def restricted(scores, rule):
    """[B]: episodes to convergence, at most the last that counts."""
    return np.minimum(convergence.times(scores, rule), rule.limit(scores.shape[1]))


STYLES = {"window 1": ":", "window 3": "-", "window 5": "--", "window 3, lasts": (0, (4, 1, 1, 1, 1, 1))}
kinds = [{"window": window} for window in windows] + [{"window": 3, "stays": True}]
rules = [Rule(threshold, **kind) for kind in kinds for threshold in thresholds]
planners = [line for line in known if line.method in paper.MODEL_BASED]
fig, panels = grid("Episodes to convergence under other definitions", planners)
for line in planners:
    scores = study.scores(line.setting, line.method)
    for kind, style in zip(kinds, STYLES.values(), strict=True):
        if Rule(**kind).limit(line.episodes) < 2:
            continue
        values = []
        for rule in (Rule(threshold, **kind) for threshold in thresholds):
            some = np.isfinite(convergence.times(scores, rule)).any()
            values.append(restricted(scores, rule).mean() if some else np.nan)
        panels[line.setting].plot(thresholds, values, ".", ls=style, color=COLOURS[line.method], lw=1.4)
    panels[line.setting].set_xticks(thresholds, labels=[f"{threshold:g}" for threshold in thresholds])
styles = [Line2D([], [], color="#595959", ls=style, label=name) for name, style in STYLES.items()]
finish(fig, panels, planners, "threshold (normalised score)", "episodes to convergence (restricted mean)", styles)
alt = (
    "Restricted mean of the episodes to convergence against the threshold, one panel per setting, one colour per "
    "method, one line style per window and one for the rule that asks it to last; lines rise with the threshold."
)
save(fig, "12_sensitivity", alt=alt, inputs=study.files(*paper.SETTINGS))

# %% tags=["nbval-check-output"]
for line in known:
    if line.method in paper.MODEL_FREE:
        scores = study.scores(line.setting, line.method)
        print(f"{line.setting}, {LABELS[line.method]}, episodes at threshold {', '.join(map(str, thresholds))}")
        for kind, name in zip(kinds, STYLES, strict=True):
            values = (restricted(scores, Rule(threshold, **kind)).mean() for threshold in thresholds)
            print(f"  {name:16s}", "".join(f"{value:8.1f}" for value in values))

# %% tags=["nbval-check-output"]
pairs = [
    (line.setting, line.method)
    for line in known
    if line.method in ("pets", "mbpo") and study.scores(line.setting, "psrl") is not None
]
for setting, other in pairs:
    ours, theirs = (study.scores(setting, method) for method in ("psrl", other))
    common = min(ours.shape[1], theirs.shape[1])
    ours, theirs = ours[:, :common], theirs[:, :common]
    signs = [
        np.sign(restricted(theirs, rule).mean() - restricted(ours, rule).mean())
        for rule in rules
        if rule.limit(common) > 1
    ]
    faster, alike, slower = (signs.count(sign) for sign in (1, 0, -1))
    told = f"faster under {faster} definitions, equal under {alike}, slower under {slower}"
    print(f"{setting}, MPC-PSRL against {LABELS[other]}: {told};")
    for name, rule in (("to get there", RULE), ("until it lasts", STAYS)):
        if rule.limit(common) < 2:
            print(f"  episodes {name}: {common} common episodes are too few")
            continue
        groups = [restricted(scores, rule) for scores in (ours, theirs)]
        found = statistics.bootstrap(statistics.difference_of_means, groups, np.random.default_rng(seed))
        print(f"  episodes {name}, MPC-PSRL minus {LABELS[other]}: {found:+.1f}")
if not pairs:
    print("no setting has MPC-PSRL, a model-based baseline and both reference runs yet")

# %% [markdown]
# On the Pendulum the rows of MPC-PSRL hang on the threshold more than elsewhere. What it returns there once it has
# learned is of two kinds, above -460 or between -700 and -500 (notebook 11, Section 2), and the threshold lies between
# them: how many of three neighbouring episodes happen to be of the better kind decides whether their mean reaches it.
# So there "converges" is late, and "held" and "lasts" are low, by a chance that a lower threshold would not see.

# %% tags=["nbval-check-output"]
for setting in paper.SETTINGS:
    trials, scale = study.find(setting, "psrl"), study.scale(setting)
    if setting.task != "pendulum" or not (trials and scale):
        continue
    late = trials.returns[:, 6:]
    kinds = [late[late > -500], late[(late <= -500) & (late > -700)]]
    if not all(kind.size for kind in kinds):
        continue
    good, other = (float(scale(kind.mean())) for kind in kinds)
    windows_of = ", ".join(f"{(k * good + (3 - k) * other) / 3:.2f}" for k in range(4))
    print(f"{setting!s:22s}scores {good:.2f} ({kinds[0].size} episodes) and {other:.2f} ({kinds[1].size});", end="")
    print(f" means of three with 0, 1, 2, 3 of the better kind: {windows_of}")

# %% [markdown]
# ## 5. What an interval from five trials is worth
#
# The bootstrap resamples the trials. With five of them it sees too little spread: the resampled mean has $(n-1)/n$ of
# the variance it should have, and takes that for certain. A plain "95 %" percentile interval of five trials covers the
# true mean in about 83 % of all cases. All intervals here go further into the tails, to the
#
# $$
# \Phi\Big(-\sqrt{\tfrac{n}{n-1}}\;t_{n-1,\,0.975}\Big)
# $$
#
# quantile of the resamples (Hesterberg, 2014), which for a normal mean is Student's interval. With fewer than five
# trials the resamples have no such tail, and no interval is given. Below: how often each kind covers the truth,
# simulated for five trials.


# %%
def coverage(draw, truth, statistic=np.mean, groups=1):
    """Of our intervals and of plain percentile intervals."""
    generator = np.random.default_rng(seed)
    data = [draw(generator, (simulations, 5)) for _ in range(groups)]
    ours = statistics.bootstrap(statistic, data, generator, resamples=1999)
    options = {"vectorized": True, "axis": -1, "method": "percentile", "n_resamples": 1999, "rng": generator}
    plain = stats.bootstrap(data, statistic, **options).confidence_interval
    return [np.mean((found.low <= truth) & (truth <= found.high)) for found in (ours, plain)]


normal = np.random.Generator.standard_normal
cases = {
    "mean, normal": coverage(normal, 0.0),
    "interquartile mean, normal": coverage(normal, 0.0, statistics.iqm),
    "mean, exponential": coverage(lambda g, size: g.exponential(size=size), 1.0),
    "difference of two means": coverage(normal, 0.0, statistics.difference_of_means, groups=2),
    "P(improvement), truth 0.5": coverage(normal, 0.5, statistics.probability_of_improvement, groups=2),
    "P(improvement), truth 0.86": coverage(
        normal,
        stats.norm.cdf(1.5 / np.sqrt(2)),
        lambda x, y, axis: statistics.probability_of_improvement(x + 1.5, y, axis),
        2,
    ),
}
error = np.sqrt(0.95 * 0.05 / simulations)
for name, (ours, plain) in cases.items():
    print(f"{name:28s} ours {ours:.2f}, plain {plain:.2f}")
    assert ours > plain, "going further into the tails can only cover more"
assert cases["mean, normal"][0] > 0.92 - 3 * error and abs(cases["mean, normal"][1] - 0.83) < 0.02 + 3 * error
assert cases["difference of two means"][0] > 0.93 - 3 * error

# %% [markdown]
# Skewed results (the exponential row) remain hard with five trials: an interval there says less than it promises, and
# episodes to convergence are of this kind, whole numbers of which the longest are censored. So does an interval of a
# probability of improvement near 1 (the last row): where all five runs of one method beat all five of another,
# resampling cannot see that a sixth might not, and the interval is [1, 1], which is to be read as "25 of 25 pairs", no
# more. Shares of runs are worse still, as five of five would always give [1, 1]; the profiles of Section 8 have the
# exact binomial intervals of Clopper and Pearson instead, which never cover too little.
#
# ## 6. How good at the end
#
# Normalised score at the end of each curve, as interquartile mean (of five trials, the middle three) with its interval;
# small dots are trials. In a setting the model-based methods are compared after the same number of episodes, those of
# the shortest of their curves, unless it is less than half as long as the longest: such a curve stands with its own
# end. The model-free ones are read at the end of theirs. The number of episodes stands with the name.
#
# The oracle planner is a reference and not a bound: its cross-entropy search is approximate and looks a few dozen steps
# ahead, so a learned policy can end above 1. What clearly does is printed.


# %% tags=["nbval-check-output"]
def lengths(setting, among=paper.MODEL_BASED):
    """Episodes of the published curves of these methods in a setting."""
    return [study.find(setting, method).run.episodes for method in study.methods(setting, among)]


def end(setting, method):
    """The episode at which a curve is read."""
    own, others = study.find(setting, method).run.episodes, lengths(setting)
    if method in paper.MODEL_FREE:
        return own
    return min(own, *(each for each in others if 2 * each >= max(others)))


def iqm_row(line):
    shown = end(line.setting, line.method)
    values = statistics.final_level(study.scores(line.setting, line.method)[:, :shown])
    interval = statistics.bootstrap(statistics.iqm, [values], np.random.default_rng(seed))
    return Row(f"{LABELS[line.method]} ({shown})", interval, COLOURS[line.method], values)


fig, panels = grid("Score at the end of the curves: interquartile mean over trials", scored, columns=4, width=3.1)
above = []
for setting, ax in panels.items():
    rows = [iqm_row(line) for line in scored if line.setting == setting]
    if rows:
        forest(ax, rows, reference=1.0)
        if min(row.interval.low for row in rows) < -1:
            ax.set_xscale("symlog", linthresh=1)
            ax.xaxis.set_major_locator(FixedLocator([-20, -5, -1, 0, 1]))
            ax.xaxis.set_major_formatter("{x:g}")
            ax.set_title(f"{setting} (log below -1)")
    above += [f"{setting}: {row.label} {row.interval:.2f}" for row in rows if row.interval.low > 1]
print("above the oracle planner:", "; ".join(above) or "nobody")
curves.label(panels, "normalised score", "")
alt = (
    "Interquartile mean of the final normalised score with its 95 percent interval, one panel per setting, one row per "
    "method; the dashed line at 1 is the oracle planner."
)
save(fig, "12_scores", alt=alt, inputs=study.files(*paper.SETTINGS))

# %% [markdown]
# Over settings: the mean of their interquartile means, with an interval from a bootstrap that resamples every setting
# on its own (stratified). Only settings in which all the methods of a line are published enter, after the episodes that
# these methods have in common (in brackets; so few that a task is not yet learned lower the mean of all methods). The
# runs of all settings are not thrown into one heap before they are trimmed, as is often done: with five runs each, the
# quarter that is trimmed can be one whole task, the one that a method fails.


# %% tags=["nbval-check-output"]
def shared(methods):
    """Settings in which all of them have scores."""
    return [s for s in paper.SETTINGS if all(study.scores(s, method) is not None for method in methods)]


for methods in (("psrl", "psrl-eb", "mbpo"), ("psrl", "psrl-eb", "pets", "mbpo")):
    settings = shared(methods)
    title = ", ".join(methods)
    have = "; ".join(f"{setting} ({min(lengths(setting, methods))})" for setting in settings)
    print(f"{title}: settings that have them all (episodes): {have or 'not yet run'}")
    for method in methods if settings else ():
        groups = [
            statistics.final_level(study.scores(setting, method)[:, : min(lengths(setting, methods))])
            for setting in settings
        ]
        overall = statistics.mean_over_groups(statistics.iqm)
        print(f"  {LABELS[method]:20s}{statistics.bootstrap(overall, groups, np.random.default_rng(seed)):.2f}")

# %% [markdown]
# ## 7. Probability of improvement
#
# How likely is a run of MPC-PSRL to beat a run of the other method? Ties count half. Runs are compared by their mean
# score over the episodes that both have: the area under the learning curve.


# %% tags=["nbval-check-output"]
def areas(setting, *methods):
    """[B] each: mean score over the common episodes."""
    scores = [study.scores(setting, method) for method in methods]
    common = min(each.shape[1] for each in scores)
    return [each[:, :common].mean(axis=1) for each in scores]


def improvements(ours, other):
    """Setting -> probability of improvement, and their mean where there are several."""
    settings = [setting for setting in shared((ours, other)) if other in study.listed(setting)]
    groups = [areas(setting, ours, other) for setting in settings]
    one = statistics.probability_of_improvement
    each = [statistics.bootstrap(one, pair, np.random.default_rng(seed)) for pair in groups]
    found = dict(zip(settings, each, strict=True))
    if len(settings) > 1:
        flat = [group for pair in groups for group in pair]
        found["mean"] = statistics.bootstrap(statistics.mean_over_pairs(one), flat, np.random.default_rng(seed))
    return found


others = ("pets", "mbpo", *paper.MODEL_FREE)
for ours in ("psrl", "psrl-eb"):
    found = {other: improvements(ours, other) for other in others}
    lines = [[f"{LABELS[ours]} over", *(LABELS[other] for other in others)], ["---"] * (1 + len(others))]
    for place in [*paper.SETTINGS, "mean"]:
        if any(place in each for each in found.values()):
            lines.append([str(place), *(f"{found[o][place]:.2f}" if place in found[o] else "-" for o in others)])
    if len(lines) > 2:
        display(Markdown("\n".join(f"| {' | '.join(line)} |" for line in lines)))
if not scored:
    print("nothing to compare yet")

# %% [markdown]
# ## 8. Performance profiles
#
# A mean can hide one run that fails. A profile shows all: the share of runs whose final score reaches a level, for
# every level. A line to the right of another is better at every quantile. Curves are read where Section 6 reads them;
# a dashed one is less than half as long as the longest, so it had less time to learn.
#
# The shade is the exact pointwise interval of MPC-PSRL. Those of the others are not drawn, as they would cover each
# other: an interval depends on nothing but how many of the runs reach the level, and for five runs all are wide.

# %% tags=["nbval-check-output"]
reached = statistics.performance_profile(np.arange(1, 6), np.arange(6, 0, -1))
for count, (low, high) in enumerate(zip(reached.low, reached.high, strict=True)):
    print(f"{count} of 5 runs reach a level: their share in the long run is {low:.2f} to {high:.2f}")
assert np.all(reached.high - reached.low > 0.5), "five runs leave more than half of all shares possible"

# %%
levels = np.linspace(-0.2, 1.2, 71)
fig, panels = grid("Performance profiles: how many runs end how high", scored)
for line in scored:
    ax, shown = panels[line.setting], end(line.setting, line.method)
    values = statistics.final_level(study.scores(line.setting, line.method)[:, :shown])
    profile = statistics.performance_profile(values, levels)
    short = 2 * shown < max(lengths(line.setting), default=0)
    ax.plot(levels, profile.estimate, color=COLOURS[line.method], ls="--" if short else "-")
    if line.method == "psrl":
        ax.fill_between(levels, profile.low, profile.high, color=COLOURS[line.method], alpha=0.12, lw=0)
    ax.set(xlim=(0, 1.15), ylim=(-0.04, 1.04))
dashed = Line2D([], [], color="#595959", ls="--", label="less than half as long")
finish(fig, panels, scored, "normalised score at the end", "share of runs that reach it", [dashed])
alt = (
    "Share of runs whose final score reaches a level against the level, one panel per setting, one falling line per "
    "method, that of MPC-PSRL with its interval."
)
save(fig, "12_profiles", alt=alt, inputs=study.files(*paper.SETTINGS))

# %% [markdown]
# ## 9. Regret
#
# What was lost on the way, against the oracle planner: the sum over episodes of 1 minus the normalised score, so its
# unit is an episode at score 0. Here the returns count that were actually collected, exploration included. On the
# Reacher the first, random episode alone costs several such episodes, for every method alike; SAC and DDPG act at
# random for 2,000 steps.

# %%
fig, panels = grid("Regret against the oracle planner: flat is as good as the planner, falling is better", scored)
for line in scored:
    ax, trials = panels[line.setting], study.find(line.setting, line.method)
    regret = statistics.normalised_regret(study.scale(line.setting)(trials.collected))
    regret = regret[:, : max(lengths(line.setting), default=None)]
    band = statistics.bootstrap(np.mean, [regret.T], np.random.default_rng(seed), resamples=4999)
    episodes = np.arange(1, regret.shape[1] + 1)
    ax.plot(episodes, band.estimate, color=COLOURS[line.method])
    ax.fill_between(episodes, band.low, band.high, color=COLOURS[line.method], alpha=0.15, lw=0)
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
finish(fig, panels, scored, "episode", "cumulative regret (episodes at score 0)")
alt = (
    "Cumulative normalised regret against the episode, one panel per setting, one line per method with its interval; "
    "lines flatten when a method plays like the oracle planner."
)
save(fig, "12_regret", alt=alt, inputs=study.files(*paper.SETTINGS))

# %% [markdown]
# ## What we learned
#
# Computed from what is published today.

# %% tags=["nbval-check-output"]
numbers = [line for line in known if (line.setting, line.method) in paper.CONVERGENCE]
for line in numbers:
    number, found = paper.CONVERGENCE[line.setting, line.method], line.summary
    inside = found.mean.low <= number <= found.mean.high
    told = "our interval holds it" if inside else "our interval does not hold it"
    told = "censored" if found.censored else "no interval" if np.isnan(found.mean.low) else told
    print(f"{line.setting}, {LABELS[line.method]}: paper {number:.1f}, here {found}; {told}.")
print(f"{len(numbers)} of the paper's {len(paper.CONVERGENCE)} numbers have ours beside them.")

# %% [markdown]
# ## Where we differ from the paper and the authors' code
#
# | | paper | authors' code | here |
# |---|---|---|---|
# | convergence | not defined | not computed | Section 1, one place in the code |
# | runs that never converge | not mentioned | - | censored and counted |
# | uncertainty of the numbers | none | - | 95 % intervals, widened for five trials (Section 5) |
# | aggregate over tasks | none | - | stratified: interquartile mean, probability of improvement |
# | regret | proved, not measured in the experiments | - | against the oracle planner |
