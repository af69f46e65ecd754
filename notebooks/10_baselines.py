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
# # The baselines: what they model, how they explore, what they cost
#
# A new method is only as good as what it is compared with. The paper compares MPC-PSRL with PETS, MBPO, SAC and DDPG.
#
# **Questions.** What does each of the four model, and where is MPC-PSRL different? What does a step of each cost? Are
# ours as good as they should be? And does the posterior of MPC-PSRL say better than an ensemble what is not known?
#
# **Answers in advance.** The four differ in what they learn (nothing but values, a model, or both) and in what makes
# them explore (noise, entropy, or nothing but the errors of a model). On the same data the ensemble's spread is
# *closer* to its true error than the posterior of MPC-PSRL's last layer: that MPC-PSRL "better captures the model
# uncertainty" does not hold up here. That is one task, the Pendulum, after two random episodes, in five data sets.
#
# Runs in about a minute. You need Sections 4 and 5 of the paper; notebooks 07 to 09 explain MPC-PSRL's own parts.

# %%
import csv

import matplotlib.pyplot as plt
import numpy as np
import torch
from IPython.display import Markdown, display
from matplotlib.patches import Patch
from scipy import stats

from psrl import cem, claims, cost, levels, paper, statistics
from psrl.agent import Regression
from psrl.claims import Comparison, Curve
from psrl.config import read_params, resolve
from psrl.ensemble import Ensemble
from psrl.features import Networks
from psrl.figures import COLOURS, LABELS, save, use_style
from psrl.learner import METHODS, make_learner
from psrl.notebook import scaled, toy
from psrl.paper import Setting
from psrl.pets import PETS
from psrl.published import Study
from psrl.results import Files
from psrl.tasks import TASKS
from psrl.uncertainty import Prediction, coverage

use_style()
params = read_params()

# %% tags=["parameters"]
trials = scaled(5, 3)  # data sets on which the two kinds of models are compared
epochs = scaled(100, 40)  # passes over each of them
repeats = scaled(20, 10)  # draws of the particles per candidate
reference = scaled(200, 60)  # particles that stand for infinitely many

# %% [markdown]
# ## 1. Five ways to use the same 200 steps
#
# | | learns | says what it does not know by | explores because | acts by |
# |---|---|---|---|---|
# | MPC-PSRL | dynamics (and reward) | a posterior of the last layer | it believes one sample per episode | planning |
# | PETS | dynamics | disagreement of five networks | - (its plans average over the networks) | planning |
# | MBPO | dynamics (and reward), policy, values | the same five networks | entropy is paid for | a network |
# | SAC | policy, values | nothing | entropy is paid for | a network |
# | DDPG | policy, values | nothing | noise is added to its actions | a network |
#
# PETS alone cannot do without the reward function.
#
# Only MPC-PSRL acts on *one* guess at the truth. PETS averages its guesses away before it decides: a plan that is
# excellent in one network and bad in four looks bad, and is not tried. It explores neither by optimism nor by sampling,
# only as far as its models err. That is the difference between posterior sampling and planning under uncertainty.
#
# What does that take, per environment step? The counts follow from the settings, all for the tenth episode: training
# passes over the data so far, and MBPO's rollouts grow from 1 step to 15 over 30 episodes.


# %% tags=["nbval-check-output"]
def settings(task, method):
    return resolve(params, task=task, method=method, seeds=[0], episodes=1).settings


episode = 10


def model_rows(method, chosen):
    """Network evaluations by which one action is decided, or a step's share of the imagined data is made."""
    if method in ("psrl", "pets"):
        planner = chosen.planner
        return planner.population * chosen.particles * planner.horizon * planner.iterations
    return chosen.rollouts * chosen.rollout.length(episode) if method == "mbpo" else 0


def gradient_steps(method, chosen, task):
    """Of models and of policies, per environment step."""
    steps = params["tasks"][task]["steps"]
    if method in ("psrl", "pets"):
        return chosen.epochs.dynamics * np.ceil((episode - 1) * steps / chosen.batch) / steps
    return chosen.model_updates / chosen.retrain_every + chosen.updates if method == "mbpo" else 1.0


counts = {}
print(f"{'':12s}{'':12s}{'model evaluations':>18s}{'gradient steps':>16s}   per environment step, episode {episode}")
for task in ("pendulum", "reacher"):
    for method in ("psrl", "pets", "mbpo", "sac", "ddpg"):
        chosen = settings(task, method)
        counts[task, method] = model_rows(method, chosen), gradient_steps(method, chosen, task)
        print(f"{task:12s}{LABELS[method]:12s}{counts[task, method][0]:18,d}{counts[task, method][1]:16.1f}")
    assert counts[task, "pets"][0] == 5 * counts[task, "psrl"][0], "PETS steps five particles where MPC-PSRL steps one"
    assert toy() or counts[task, "mbpo"][0] < counts[task, "psrl"][0], "short rollouts are cheaper than plans"

# %% [markdown]
# A gradient step is not the same for all: one of PETS, and the model's third of MBPO's, trains five networks at once.
# Those of MPC-PSRL are counted with the reward given; one that is learned takes as many again, and half more on the
# Pendulum.

# %% [markdown]
# ## 2. What a step costs
#
# The same question, measured: milliseconds on one core per environment step and trial on the Pendulum, all methods in
# one run on one machine (`psrl bench step`; notebook 11, Section 6, has the other tasks), over the first 15 episodes. A
# plan with a learned reward evaluates a second network at each of its steps, so only methods in the same setting are to
# be compared. A planner trains on all data so far before each episode; MBPO, SAC and DDPG train as much at every step.
#
# The trials of MPC-PSRL and PETS share a process: five of them plan and train as one batch, and a trial's part is a
# fifth of it. The trials of MBPO, SAC and DDPG run one by one, and pay alone for what a batch would share.


# %% tags=["nbval-check-output"]
study = Study.load()
prices = {key[1:]: price for key, price in cost.read().items() if key[0] == "pendulum"}
places = {"reward given": ("oracle", ("psrl", "psrl-eb", "pets", "mbpo"))}
places["reward learned"] = ("learned", ("psrl", "psrl-eb", "mbpo", "sac", "ddpg"))
costs = {}
for place, (reward, methods) in places.items():
    for method in methods:
        price, known = prices[method, reward], np.arange(15)
        costs[place, method] = parts = {"acting": price.act, "training": price.train + (price.growth * known).mean()}
        together = f"{cost.TRIALS} trials in a batch" if METHODS[method].batched else "trials one by one"
        told = "  ".join(f"{kind} {part:6.1f}" for kind, part in parts.items())
        print(f"{place:16s}{LABELS[method]:20s}{sum(parts.values()):6.1f} ms   {told}   ({together})")
whole = {key: sum(parts.values()) for key, parts in costs.items()}
ratio = whole["reward learned", "psrl"] / whole["reward given", "psrl"]
print(f"a learned reward costs MPC-PSRL {ratio:.1f} times a given one")
assert max(whole, key=whole.get)[1] == "mbpo", "the dearest, as the title says"

# %%
fig, ax = plt.subplots(figsize=(7.5, 4))
tints = {"acting": 1.0, "training": 0.45}
rows, below = {}, 0.0
for place, (_, methods) in places.items():
    rows |= {(place, method): below + i for i, method in enumerate(methods)}
    below += len(methods) + 0.5
for (place, method), y in rows.items():
    left = 0.0
    for kind, part in costs[place, method].items():
        ax.barh(y, part, left=left, color=COLOURS[method], alpha=tints[kind], height=0.6)
        left += part
    alone = "" if METHODS[method].batched else ", one by one"
    ax.text(left, y, f" {left:.0f} ms{alone}", va="center", fontsize=9)
ax.set_yticks(list(rows.values()), [f"{LABELS[method]}, {place}" for place, method in rows])
ax.set(ylim=(max(rows.values()) + 0.6, -0.6), xlabel="milliseconds on one core per step on the Pendulum and trial")
title = f"A step of MBPO costs most; learning the reward makes MPC-PSRL {ratio:.1f} times as dear"
fig.suptitle(title, x=0.01, ha="left", fontsize=11)
handles = [Patch(color="#222222", alpha=alpha, label=kind) for kind, alpha in tints.items()]
ax.legend(handles=handles, loc="lower right")
ax.set_xlim(0, 1.4 * max(whole.values()))
save(
    fig,
    "10_costs",
    alt="Horizontal bars, one per method and setting: milliseconds on one core per environment step on the Pendulum "
    "with the reward given and with a learned reward, split by tint into acting and training.",
    inputs=[cost.FILE],
)

# %% [markdown]
# ## 3. Does the posterior capture uncertainty better than an ensemble?
#
# **Claim** (Section 5.3): ensembles of limited size only simulate a Bayesian model, and MPC-PSRL "better captures the
# model uncertainty". If that were so, the spread of its posterior would be closer to its own error than the ensemble's
# spread is to the ensemble's error.
#
# **Experiment.** Two episodes of random torques on the noisy Pendulum. On the *same* rows we fit the ensemble of PETS
# (five networks) and the features and posterior of MPC-PSRL, with the published scales and with those of maximum
# evidence. Then we ask both about two sets of states they have not seen: *near*, from other random episodes, and
# *far*, from episodes that pump energy into the swing and leave the region where the data are. As the true dynamics
# are known, so is the error of a model's mean, without noise.


# %%
task, level = TASKS["pendulum"], 0.01


def collect(policy, steps, first_seed):
    """Rows (state, action, change) of one episode per trial, [B, T, 2 S + A]."""
    rows = []
    for seed in range(first_seed, first_seed + trials):
        env, rng = task.make(level), np.random.default_rng([seed, 1])
        state, _ = env.reset(seed=seed)
        rows.append([])
        for _ in range(steps):
            action = np.array([policy(state, rng)], dtype=np.float32)
            following, *_ = env.step(action)
            rows[-1].append(np.concatenate([state, action, following - state]))
            state = following
    return torch.tensor(np.array(rows), dtype=torch.float32)


def at_random(state, rng):
    return rng.uniform(-2, 2)


def pumping(state, rng):
    return np.clip(2 * np.sign(state[2]) + rng.normal(0, 0.5), -2, 2)


data = torch.cat([collect(at_random, 200, 0), collect(at_random, 200, 100)], dim=1)
unseen = {"near": collect(at_random, 200, 200), "far": collect(pumping, 120, 300)}
x, y = data.split([4, 3], dim=-1)
farthest = data[..., 2].abs().amax()
assert unseen["far"][..., 2].abs().amax() > 1.5 * farthest, "far is beyond the data"


# %%
def posterior_of(method):
    chosen = settings("pendulum", method)
    generators = [torch.Generator().manual_seed(seed) for seed in range(trials)]
    sizes = [4, *[chosen.network.width] * chosen.network.layers, round(chosen.penultimate * 4)]
    networks = Networks(sizes, 3, chosen.network.decay, chosen.learning_rate, generators)
    regression = Regression(networks, chosen, epochs)
    regression.learn(x, y)
    return lambda rows: Prediction.of_regression(regression, rows)


pets = settings("pendulum", "pets")
ensemble = Ensemble(4, 3, pets.ensemble, pets.member, pets.learning_rate, range(trials))
ensemble.fit(x, y, epochs, pets.batch)
models = {
    "pets": lambda rows: Prediction.of_ensemble(ensemble, rows),
    "psrl": posterior_of("psrl"),
    "psrl-eb": posterior_of("psrl-eb"),
}

# %% [markdown]
# Two questions to each model, for 90% intervals. Does the *true* change lie where its spread, what it says it does not
# know, puts it? And does the *observed* change lie where its spread and its noise together put it?

# %%
truth = {name: (task.dynamics(rows[..., :3], rows[..., 3:4]) - rows[..., :3]).double() for name, rows in unseen.items()}
inside, wrong = {}, {}
print(f"{'':22s}{'rms error':>10s}{'rms spread':>12s}{'truth within':>14s}{'seen within':>13s}")
for name, rows in unseen.items():
    for method, predict in models.items():
        said = predict(rows[..., :4])
        error, spread = (value.double().square().mean().sqrt() for value in (said.mean - truth[name], said.spread))
        within = coverage(said.mean, said.spread, truth[name])
        seen = coverage(said.mean, said.total, rows[..., 4:])
        inside[name, method], wrong[name, method] = within.numpy(), error.item()
        print(f"{name:5s}{LABELS[method]:18s}{error:9.3f}{spread:12.4f}{within.mean():13.0%}{seen.mean():13.0%}")

# %%
for name in unseen:
    for method in ("psrl", "psrl-eb"):
        better = inside[name, "pets"] - inside[name, method]
        assert (better > 0).all(), "in every trial the ensemble's spread holds the truth more often"
assert inside["near", "pets"].mean() > 0.8, "near the data the ensemble's intervals hold about what they promise"
assert inside["near", "psrl"].mean() < 0.5, "those of the last layer do not, even there"
assert inside["far", "pets"].mean() < 0.9, "far from the data nobody's intervals do"
for name in unseen:
    errors = [wrong[name, method] for method in models]
    print(f"{name}: largest over smallest error {max(errors) / min(errors):.1f}")
    assert scaled(max(errors) < 2 * min(errors), True), "errors of the same size"

# %% [markdown]
# Error against spread, point by point. The states are sorted by what a model says it does not know and put into ten
# groups; each dot is the rms error of a group, over all data sets; a faint line is one of the five data sets. On the
# diagonal a model knows how wrong it is; above it, it does not.


# %%
def in_groups(error, spread):
    """Root mean squares of spread and error in ten groups, from the least to the most spread."""
    order = spread.flatten().argsort()
    groups = (values.flatten()[order].chunk(10) for values in (spread, error))
    return [[group.square().mean().sqrt().item() for group in side] for side in groups]


fig, panels = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True)
for ax, (name, rows) in zip(panels, unseen.items(), strict=True):
    for method, predict in models.items():
        said = predict(rows[..., :4])
        error, spread = (said.mean - truth[name]).double(), said.spread.double()
        for one_error, one_spread in zip(error, spread, strict=True):
            ax.plot(*in_groups(one_error, one_spread), color=COLOURS[method], lw=0.7, alpha=0.45)
        ax.plot(*in_groups(error, spread), "o-", color=COLOURS[method], ms=5, lw=1.4, label=LABELS[method])
    ax.axline((1e-3, 1e-3), (1e-2, 1e-2), color="#595959", lw=1, ls="--")
    ax.set(xscale="log", yscale="log", xlabel="spread the model claims")
panels[0].set_title("near the data")
panels[1].set_title("far from the data")
panels[0].set_ylabel("rms error of its mean")
panels[0].text(0.06, 0.13, "error = spread", rotation=35, fontsize=9, color="#595959")
panels[1].legend(loc="lower right")
fig.suptitle("Near the data the ensemble knows its error, far away nobody does; the last layer is too sure everywhere")
save(
    fig,
    "10_spread_error",
    alt="Two panels of rms error against claimed spread on logarithmic axes, near and far from the data. The dots of "
    "the ensemble follow the diagonal near the data and lie above it far away; those of both posteriors lie one to two "
    "orders of magnitude to the left of it. Faint lines are single data sets; the ensemble's stay apart from the "
    "posteriors'.",
)

# %% [markdown]
# **What we learn.** Near the data and far from them the errors of the three are of the same size, within a factor of
# two, but not their opinions of them: both posteriors claim a small part of the ensemble's spread. The posterior is
# exact *given its features*: eight or so numbers whose own error, from a network that saw two episodes, it counts as
# certain. The five networks differ in their features too. The published noise level makes it worse (the posterior
# contracts as if observations were ten times as precise as they are); maximum evidence mends the noise but not the
# features. So whatever makes MPC-PSRL explore well, here it is not that its last layer captures more uncertainty than
# an ensemble. We have looked at one task, after two random episodes, in five data sets; later in training, or on an
# arm, it may be otherwise.

# %% [markdown]
# ## 4. How many particles does PETS need?
#
# The original averages 20 particles per candidate; here the published default is 5, one per network. More particles
# make the value of a candidate less noisy, and cost in proportion. What does the noise do to the planner's choice? On
# Cartpole after one random episode we evaluate the same 200 candidates again and again, and count how many of the true
# elites (those by very many particles) are among the chosen. Choosing blindly would find a tenth of them.

# %%
agent = PETS(resolve(params, task="cartpole", method="pets", seeds=[0], episodes=2))
agent.episode()
agent.learn()
step, reward = agent.model(0)
candidates, horizon, elites = 200, 30, 20
generator = torch.Generator().manual_seed(1)
plans = torch.rand(1, horizon, candidates, 1, generator=generator) * 2 - 1
start = torch.zeros(1, 4)


def chosen_by(particles):
    """The elites by a number of particles."""
    with torch.inference_mode():
        value = cem.rollout(step, reward, start, plans, particles)
    return set(value[0].topk(elites).indices.tolist())


best = chosen_by(reference)
found = {}
for particles in (1, 5, 20):
    hits = [len(best & chosen_by(particles)) / elites for _ in range(repeats)]
    found[particles] = np.mean(hits), np.std(hits, ddof=1) / repeats**0.5
    share, error = found[particles]
    print(f"{particles:3d} particles: {share:4.0%} of the elites found (standard error {error:.0%})")
more = elites / candidates < found[1][0] < found[5][0] < found[20][0]
assert toy() or scaled(more, True), "more particles, more of the elites"
networks = [candidate % agent.ensemble.members for _ in range(repeats) for candidate in chosen_by(1)]
dealt = np.bincount(networks, minlength=agent.ensemble.members) / len(networks)
print("one particle: the elites come from the five networks in shares", ", ".join(f"{share:.0%}" for share in dealt))
assert toy() or scaled(dealt.max() > 2 * dealt.min(), True), "a candidate wins by the network that judges it"

# %% [markdown]
# And what does it do to returns? PETS on Cartpole without noise with 1, 5 and 20 particles. The seeds are the same, and
# with them the random first episode and the networks' first weights, so trials can be compared one by one. Returns are
# averaged over the planned episodes that all three have, which are the first two, costs over all planned episodes; with
# twenty particles only three episodes were run, for what they cost. Intervals are of the mean difference *paired by
# seed*; a bootstrap of five differences of one sign cannot reach 0, so beside it stands a sign test.

# %% tags=["nbval-check-output"]
plain = Setting("cartpole", 0.0, "oracle")
usual = settings("cartpole", "pets").particles
by_particles = {
    particles: study.find(plain, "pets", "" if particles == usual else f"particles x{particles / usual:g}")
    for particles in (1, 5, 20)
}
shared = min(trial.run.episodes for trial in by_particles.values())
planned = {particles: trial.returns[:, 1:shared].mean(axis=1) for particles, trial in by_particles.items()}
unlike, ahead, prices = {}, {}, {}
for particles, trial in by_particles.items():
    gain = planned[particles] - planned[usual]
    unlike[particles] = statistics.bootstrap(np.mean, [gain], np.random.default_rng(statistics.SEED))
    ahead[particles] = int((gain > 0).sum())
    chance = stats.binomtest(ahead[particles], len(gain)).pvalue
    compared = f"{unlike[particles]:+.1f}, ahead in {ahead[particles]} of {len(gain)} seeds (p = {chance:.2f})"
    compared = "" if particles == usual else f"; against {usual} {compared}"
    prices[particles] = 1000 * trial.cpu_seconds[:, 1:].mean() / trial.run.steps
    mean, price = planned[particles].mean(), prices[particles]
    print(f"{particles:2d} particles: return {mean:5.1f}, {price:5.0f} CPU ms per step{compared}")
assert toy() or (ahead[1] == 5 and ahead[20] == 4), "one particle is ahead of five in every seed, twenty in four"
late = {particles: trial.returns[:, shared:] for particles, trial in by_particles.items()}
assert toy() or (late[1].min() == late[usual].min() == 200), "and is equal from the next episode on"
assert toy() or unlike[20].high < 0.1 * 200, "twenty gain less than a tenth of a full return"
assert toy() or (3.5 < prices[20] / prices[5] < 4.5 and 3.5 < prices[5] / prices[1] < 4.5), "four times each"

# %%
fig, (ax, cost) = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=(3, 2))
shades = {1: "#8fd3bd", 5: COLOURS["pets"], 20: "#01402f"}
for offset, (particles, trial) in zip((-0.06, 0, 0.06), by_particles.items(), strict=True):
    x = np.arange(1, trial.run.episodes + 1) + offset
    ax.plot(x, trial.returns.T, "o", color=shades[particles], ms=4, alpha=0.5)
    ax.plot(x, trial.returns.mean(axis=0), color=shades[particles], label=str(particles))
longest = max(trial.run.episodes for trial in by_particles.values())
ax.set(xlabel="episodes", ylabel="return", xticks=range(1, longest + 1))
ax.legend(loc="lower right", title="particles")
cost.bar([str(particles) for particles in prices], prices.values(), color=shades.values(), width=0.6)
for x, height in enumerate(prices.values()):
    cost.text(x, height, f"{height:.0f}", ha="center", va="bottom", fontsize=9)
cost.margins(y=0.12)
cost.set(xlabel="particles per candidate", ylabel="CPU ms per environment step")
fig.suptitle("PETS on Cartpole: twenty particles cost four times what five cost; five trials show no clear gain")
save(
    fig,
    "10_particles",
    alt="Left: returns of PETS on Cartpole without noise, with 1, 5 and 20 particles per candidate: "
    "single trials as dots and their mean. Right: bars of CPU milliseconds per environment step, which grow in "
    "proportion to the particles.",
    inputs=[file for trial in by_particles.values() for file in trial.files],
)

# %% [markdown]
# **What we learn.** Twenty particles find more of the elites than five and gain less than a tenth of a full return, at
# four times the price. One particle finds fewest of them and is ahead of five in the first two planned episodes of
# every seed, at a quarter of the price; from the fourth episode on both earn 200 in every trial. Five trials settle
# neither difference (the sign tests). If one particle does learn sooner, it may be because it judges a candidate by a
# single network, and those win that a hopeful network judges (the shares above): optimism by accident, nearer to
# MPC-PSRL's belief in one model than to an average over five. That is a guess, on an easy task without noise. We keep
# five, one for each network, because PETS is defined by that average.

# %% [markdown]
# ## 5. Are they as good as they should be?
#
# A weak baseline makes any method look good, so each is held against a level that is known.
#
# **SAC** on Gymnasium's own Pendulum-v1 should exceed -200 within 20,000 steps. `python -m psrl.levels` runs it with
# the settings of our baseline (three seeds) and writes `results/levels/sac-pendulum-v1.csv`.

# %% tags=["nbval-check-output"]
with open(levels.PATH, newline="") as file:
    table = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
reached = {}
for seed in levels.SEEDS:
    rows = [row for row in table if row["seed"] == seed]
    assert len(rows) == levels.EPISODES and rows[-1]["steps"] == 20_000
    reached[seed] = np.mean([row["return_greedy"] for row in rows[-20:]])
    print(f"SAC on Pendulum-v1, seed {seed}: mean of the last 20 greedy episodes {reached[seed]:7.1f}")
assert min(reached.values()) > -200

# %%
fig, ax = plt.subplots(figsize=(7, 3.6))
for seed in levels.SEEDS:
    rows = [row for row in table if row["seed"] == seed]
    ax.plot([row["steps"] / 1000 for row in rows], [row["return_greedy"] for row in rows], color=COLOURS["sac"], lw=1)
    ax.plot([rows[-20]["steps"] / 1000, 20], [reached[seed]] * 2, color="#222222", lw=2.2)
ax.axhline(-200, color="#595959", ls="--", lw=1)
ax.text(20, -450, "asked: -200, of the mean\nof the last 20 (black)", fontsize=9, color="#595959", ha="right", va="top")
ax.set(xlabel="environment steps (thousands)", ylabel="return of a greedy episode", ylim=(-2000, 50))
ax.set_title("SAC reaches what is known of it on Gymnasium's Pendulum")
save(
    fig,
    "10_sac_pendulum",
    alt="Greedy returns of SAC on Gymnasium's Pendulum-v1 against thousands of environment steps, three seeds: from "
    "about -1500 to around -150 within 5,000 steps, with four single episodes that fail later.",
    inputs=[levels.PATH],
)

# %% [markdown]
# **PETS** on Cartpole without noise should be as good as MPC-PSRL there: not worse by more than a tenth of the way from
# knowing nothing to the oracle planner, in the last episodes that there are. **MBPO** should need at most half of SAC's
# steps in the environment to the same return on the Pendulum: 90% of the way from the random first episode to the lower
# of the two final levels (mean of the last tenth of the episodes, at least three). Both are read from the published
# runs.


# %% tags=["nbval-check-output"]
def steps_to(trial, target):
    """Environment steps learned from when the mean curve over trials first reaches a return; infinite if never."""
    reached = np.flatnonzero(trial.returns.mean(axis=0) >= target)
    return reached[0] * trial.run.steps if len(reached) else np.inf


both = Comparison(Curve(plain, "pets"), Curve(plain, "psrl"), "level", "not worse")
level = claims.examine(study, both)
for curve in (both.ours, both.theirs):
    last = statistics.final_level(study.find(plain, curve.method).returns)
    mean = statistics.bootstrap(np.mean, [last], np.random.default_rng(statistics.SEED))
    print(f"Cartpole without noise, mean return of the last three episodes: {curve!s:9s}{mean:.1f}")
told = f"{level.difference:+.2f} of normalised score" if level.difference else level.note
print(f"PETS minus MPC-PSRL: {told}")
assert toy() or claims.judge(level.difference, both.relation) == "yes"

pair = {method: study.find(Setting("pendulum", 0.0, "learned"), method) for method in ("mbpo", "sac")}
begun = np.mean([trial.returns[:, 0].mean() for trial in pair.values()])
target = begun + 0.9 * (min(statistics.final_level(trial.returns).mean() for trial in pair.values()) - begun)
needed = {method: steps_to(trial, target) for method, trial in pair.items()}
print(f"Pendulum, steps to {target:.0f}: " + ", ".join(f"{LABELS[m]} {v:,.0f}" for m, v in needed.items()))
print(f"MBPO needs {needed['sac'] / needed['mbpo']:.1f} times fewer steps than SAC")
assert toy() or needed["sac"] >= 2 * needed["mbpo"]

# %% [markdown]
# **Critics** should not believe the impossible. A step pays at most 1 on Cartpole and 0 elsewhere, and the bonus of SAC
# and MBPO for a random action is at most $\alpha d_a\log 2$, as actions lie in $[-1, 1]$ for the policy. So no state is
# worth more than $(r_{\max} + \alpha d_a\log 2)/(1 - \gamma)$. What the actor is trained to raise is the critics'
# estimate; its mean over states and over the updates of an episode is in `results/metrics`. Below are the lowest and
# the highest of each trial's episodes. On Cartpole, where nothing is paid less than 0, a mean far below 0 is as wrong
# as one above the limit. A mean can only be a sign, as errors at single states cancel in it. So for MBPO the last
# number is what its critics believe the best of all real states to be worth, a mean over the three or four fits of an
# episode, in the highest of all trials' episodes.


# %% tags=["nbval-check-output"]
def logged(found, metric):
    """Of each trial its values of a metric, one per episode that has it."""
    with open(Files.named(found.name).metrics, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == metric]
    return [[float(row["value"]) for row in rows if int(row["seed"]) == seed] for seed in found.run.seeds]


beyond = {}
for setting in (*paper.SETTINGS, *paper.NOT_SHOWN):
    for method in study.methods(setting, ("mbpo",) if setting.given else ("mbpo", "sac", "ddpg")):
        found = study.find(setting, method)
        bonus = getattr(found.run.settings, "entropy", 0.0) * TASKS[setting.task].action_dim * np.log(2)
        limit = ((setting.task == "cartpole") + bonus) / (1 - found.run.settings.discount)
        means = [np.negative(losses or [np.inf]) for losses in logged(found, "loss_actor")]
        believed = [(values.min(), values.max()) for values in means]
        tops = [max(values) for values in logged(found, "value_highest") if values]
        beyond[setting, method] = sum(high > limit for _, high in believed), sum(top > limit for top in tops)
        told = ", ".join(f"{low:.0f} to {high:.0f}" for low, high in believed)
        best = f"; best state {max(tops):.0f}" if tops else ""
        print(f"{setting!s:20s}{LABELS[method]:5s} at most possible: {limit:3.0f}   believed: {told}{best}")
suspect = [f"{LABELS[m]} on {s} ({count} trials)" for (s, m), (count, _) in beyond.items() if count]
print("mean beyond what is possible:", "; ".join(suspect) or "nobody")
suspect = [f"{s} ({count} trials)" for (s, _), (_, count) in beyond.items() if count]
print("MBPO, best state beyond what is possible, as an episode's mean:", "; ".join(suspect) or "nowhere")
assert toy() or not any(count for (_, method), (count, _) in beyond.items() if method != "ddpg")

# %% [markdown]
# SAC stays below it with plain networks at one update per step, and so does DDPG but for the arms: its one critic, with
# nothing against overestimation, believes there in values above 0 where all rewards are negative, and the method does
# not converge in 1000 episodes (notebook 12). Its settings are those of the public code, and we leave them.
#
# MBPO makes 40 updates per step, on transitions of a model. Plain critics do not bear that: up to commit 426f02d of
# this repository it had them, and this cell said there that two of five trials on the noisy Cartpole (r) believed in
# 365 and in 1954; none of the five held the pole in the end. Why is not hard to guess: most of what MBPO sees on
# Cartpole are carts that have run away, as episodes do not end, where the original MBPO has a rule that ends them. What
# such a state is worth depends on one a little further out, and so on to where there are no data and an estimate can
# feed on itself. Now every hidden layer of the critics is normalised (Ba et al., 2016), so that however far out a state
# lies, what the last layer sees has the same length, and states need not be scaled any more. Bounded targets, scaled or
# compressed states and a larger batch, tried in single trials with plain critics, were not enough. Whether the authors'
# MBPO had the trouble cannot be known: the paper gives neither such details nor its curves as numbers.

# %% [markdown]
# ## 6. Settings: the original, the appendix, here
#
# The last column is read from `params.yaml`, not typed. "-" means that the source does not say.


# %%
def show(rows):
    lines = ["| | original | the paper's appendix | here |", "|---|---|---|---|"]
    display(Markdown("\n".join(lines + [f"| {' | '.join(map(str, row))} |" for row in rows])))


def by_task(method, value):
    """One value for all tasks, or one per task."""
    values = {task: value(settings(task, method)) for task in params["tasks"]}
    same = len(set(values.values())) == 1
    return str(next(iter(values.values()))) if same else ", ".join(f"{task} {v}" for task, v in values.items())


# %% [markdown]
# **PETS** (original: Chua et al., 2018, and its released configurations for Cartpole, Reacher and Pusher)

# %% tags=["nbval-check-output"]
show(
    [
        ("networks", 5, 5, by_task("pets", lambda s: s.ensemble)),
        (
            "hidden layers x width",
            "Cartpole 3 x 500, Reacher 4 x 200, Pusher 3 x 200",
            "Reacher, Pusher 4 x 200",
            by_task("pets", lambda s: f"{s.member.layers} x {s.member.width}"),
        ),
        ("particles per candidate", 20, "-", by_task("pets", lambda s: s.particles)),
        ("a particle's network", "fixed (TS-infinity)", "-", by_task("pets", lambda s: f"fixed per {s.propagation}")),
        ("passes over the data per episode", 5, "-", by_task("pets", lambda s: s.epochs.dynamics)),
        ("rows per gradient step", 32, "-", by_task("pets", lambda s: s.batch)),
        ("step size", "0.001, Reacher 0.00075", "-", by_task("pets", lambda s: s.learning_rate)),
        (
            "population / elites / iterations",
            "400 / 40 / 5, Pusher 500 / 50 / 5",
            "Reacher 400 / 40 / 5, Pusher 500 / 50 / 5",
            by_task("pets", lambda s: f"{s.planner.population} / {s.planner.elites} / {s.planner.iterations}"),
        ),
        ("horizon", 25, "Reacher, Pusher 25", by_task("pets", lambda s: s.planner.horizon)),
    ]
)

# %% [markdown]
# **MBPO** (original: Janner et al., 2019, and its released configuration for InvertedPendulum, the nearest of its
# tasks)

# %% tags=["nbval-check-output"]
show(
    [
        ("networks", "7, the best 5 used", 5, by_task("mbpo", lambda s: s.ensemble)),
        (
            "hidden layers x width",
            "4 x 200",
            "Cartpole, Pendulum 2 x 200; Reacher, Pusher 4 x 200",
            by_task("mbpo", lambda s: f"{s.member.layers} x {s.member.width}"),
        ),
        ("model rollouts per environment step", 400, 400, by_task("mbpo", lambda s: s.rollouts)),
        (
            "their length",
            "1",
            "1 to 15 over episodes 1 to 30; Pusher 1",
            by_task("mbpo", lambda s: f"{s.rollout.first_length} to {s.rollout.last_length}"),
        ),
        ("policy updates per environment step", 10, 40, by_task("mbpo", lambda s: s.updates)),
        ("real share of a policy batch", 0.05, "-", by_task("mbpo", lambda s: s.real_share)),
        ("environment steps between model fits", 250, "-", by_task("mbpo", lambda s: s.retrain_every)),
        (
            "training of the model at a fit",
            "until a held-out fifth stops improving",
            "-",
            by_task("mbpo", lambda s: f"{s.model_updates} steps of {s.batch} rows"),
        ),
        (
            "weight decay: first, hidden, last two layers",
            "2.5e-5 5e-5 7.5e-5, 1e-4 on the last",
            "-",
            by_task("mbpo", lambda s: " ".join(f"{d:g}" for d in s.member.decay)),
        ),
        ("imagined transitions kept", "one epoch (250 steps)", "-", "until the next fit"),
        ("policy, critics: layers x width", "2 x 256", "-", by_task("mbpo", lambda s: f"2 x {s.policy_width}")),
        ("policy batch", 256, "-", by_task("mbpo", lambda s: s.policy_batch)),
        ("entropy weight", "tuned", "-", by_task("mbpo", lambda s: s.entropy or "tuned")),
        ("random steps first", 500, "-", by_task("mbpo", lambda s: "one episode")),
    ]
)

# %% [markdown]
# **SAC** and **DDPG** (original: Haarnoja et al., 2018, and Lillicrap et al., 2016). The appendix names public code
# whose hyperparameters it does not change. That code has two sets: the defaults of its classes, which are the middle
# column and ours, and what its scripts for single tasks pass instead. The script for MuJoCo tasks (commit 00f44ee) has
# 2 x 256, batches of 256, a replay of 1,000,000, 10,000 random steps, an entropy weight of 0.05 (SAC), step sizes of
# 1e-4 and 1e-3 (DDPG), the one for Gym's Pendulum an entropy weight of 0.5; the paper does not say which it used. On
# the arms ours are small, so the curves of SAC and DDPG on the arms may be weaker than the paper's.

# %% tags=["nbval-check-output"]
show(
    [
        (
            "layers x width",
            "SAC 2 x 256, DDPG 400 + 300",
            "2 x 128",
            by_task("sac", lambda s: f"2 x {s.width}"),
        ),
        ("batch", "SAC 256, DDPG 64", 64, by_task("sac", lambda s: s.batch)),
        ("replay", "1,000,000", "10,000", by_task("sac", lambda s: f"{s.replay:,}")),
        (
            "step size",
            "SAC 3e-4; DDPG actor 1e-4, critic 1e-3",
            "3e-4",
            by_task("sac", lambda s: f"{s.learning_rate:g}"),
        ),
        ("discount", 0.99, 0.99, by_task("sac", lambda s: s.discount)),
        ("random steps first", "-", "2,000", by_task("sac", lambda s: f"{s.random_steps:,}")),
        ("training after steps", "-", "1,000", by_task("sac", lambda s: f"{s.train_after:,}")),
        ("SAC: entropy weight", "by reward scale", 0.2, by_task("sac", lambda s: s.entropy or "tuned")),
        (
            "DDPG: action noise",
            "Ornstein-Uhlenbeck, 0.2",
            "0.1, in units of the action",
            by_task("ddpg", lambda s: s.action_noise),
        ),
        ("DDPG: gradient norm, actor / critic", "-", "0.5 / 1.0", "0.5 / 1.0, by a hook before each step"),
        ("time limit", "-", "as a terminal state", "bootstrapped through"),
    ]
)

# %% [markdown]
# Every method runs through the same interface, and every one of them is the same again for the same seed: two episodes
# at toy sizes, the second of them with what was learned from the first.

# %% tags=["nbval-check-output"]
small = {
    "pets": {"planner": {"population": 20, "elites": 4, "iterations": 2, "horizon": 4}, "epochs": {"dynamics": 2}},
    "mbpo": {"updates": 1, "rollouts": 20, "model_updates": 20},
    "sac": {"random_steps": 100, "train_after": 350},
    "ddpg": {"random_steps": 100, "train_after": 350},
}
for method, overrides in small.items():
    run = resolve(params, task="pendulum", method=method, seeds=[0], episodes=2, overrides=overrides)
    learners = [make_learner(run) for _ in range(2)]
    returns, again = ([learner.episode().returns[0] for _ in range(run.episodes)] for learner in learners)
    assert returns == again
    print(f"{LABELS[method]:6s} returns repeat with the seed")

# %% [markdown]
# ## What we learned
#
# - The four baselines span what there is: a model and a planner (PETS), a model and a policy (MBPO), a policy alone
#   (SAC, DDPG). MPC-PSRL shares PETS' planner. It differs in that it believes one sample for an episode, and also in
#   its model, one network with a narrow feature layer instead of five, and in one particle per candidate instead of
#   five.
# - PETS asks its model five times as often as MPC-PSRL, MBPO pays in policy updates, the model-free methods pay in
#   environment steps.
# - On the same data the ensemble's spread holds the truth more often than the posterior of the last layer, near the
#   data and far from it. The paper's explanation of MPC-PSRL's success, that it captures model uncertainty better than
#   ensembles, is not what we see on the Pendulum after two random episodes, the one place where we looked.
# - More particles find more of the elites, and that is not what decides: on Cartpole five trials show no clear gain
#   of twenty over five, nor a loss of one; after the first two planned episodes one and five are equal.
#
# ## Where we differ from the paper and the authors' code
#
# - **PETS** uses five particles instead of twenty, one per network, because a CPU pays for each of them; it trains as
#   many passes per episode as MPC-PSRL does (the original: five), so that it is not held back by training. Its last
#   hidden layer is as wide as the others, as the appendix says; only MPC-PSRL has a narrow feature layer. Weight decay
#   is that of MPC-PSRL for all ensembles, the heaviest on the last *two* layers; the original has it on the last one.
# - **MBPO** fits its model every 50 steps, because episodes have 150 or 200 where the original had 1000 and fitted
#   every 250; a fit is a fixed number of gradient steps instead of early stopping on held-out data. All rollouts due
#   until the next fit start then, from states drawn uniformly from everything real, and are dropped at the next fit.
#   The oracle is the environment's own reward, on Cartpole too: the authors' smoother planning oracle would be another
#   task for a policy. Without it, the ensemble predicts the reward as one more output. The critics' hidden layers are
#   normalised, which they are not in the original: at 40 updates per step and without a rule that ends an episode plain
#   ones diverge on Cartpole (Section 5).
# - **SAC and DDPG** are stable-baselines3's networks and updates in our own loop, because the library has one number
#   for the random steps and the start of training, and the public code two. The library has no switch for DDPG's
#   gradient clipping; a hook that torch's optimisers call before each step does it. Time limits are truncations: we
#   bootstrap through them; the public code takes whatever an environment calls done for the end of the world, which
#   with Gym's wrappers includes them. On Cartpole its episodes end when the pole falls; here they go on, for all
#   methods. The library draws from torch's global generator; its state is lent to each trial and taken back, so that a
#   seed means the same whatever else runs.
# - **One seed, used twice.** In a trial of SAC, DDPG or MBPO the library's generator (first weights, exploration) and
#   ours (random first actions, rows drawn from the replay) start from the same number, so the first random actions
#   repeat, rescaled, the numbers that made the first weights. Trials are independent of each other all the same. We
#   expect no effect on returns and have not measured one; the next version of these methods should seed them apart.
# - **Returns** of MBPO, SAC and DDPG in the curves of notebook 11 are those of one greedy episode after each episode,
#   as their public code evaluates them, beside the planners' next one; the episodes in which they explore are in
#   `results/runs`.
