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
# # MPC-PSRL, line by line
#
# Algorithm 1 of the paper joins three parts that the last notebooks took one at a time: features learned by a network,
# Bayesian linear regression on them, and planning by the cross-entropy method.
#
# **Question.** What does the agent believe, what does it do, and how does the one turn into the other, from its first
# random episode to the tenth? And what do the units of the targets and the scales of the Bayesian layer decide?
#
# **Answer in advance.** One sampled model per episode is enough to balance a pole within a handful of episodes. The
# published scales make samples that hardly differ: what the first planned episode hopes for is then decided by how the
# network extrapolates (Section 4). Our variant `psrl-eb` changes two things, it standardises the targets and it chooses
# the scales by maximum evidence. With a learned reward it swings the pendulum up sooner, and more reliably. That first
# hope is changed by standardising alone (Section 4). Which of the two changes makes the learning curves better is not
# separated here.
#
# Runs in about a minute: a pole is balanced live, everything about five seeds is read from committed results.

# %%
import json
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from IPython.display import display
from matplotlib.ticker import MaxNLocator

from psrl import convergence
from psrl.agent import MPCPSRL
from psrl.config import read_params, resolve
from psrl.figures import COLOURS, LABELS, save, use_style
from psrl.model import SampledModel
from psrl.notebook import scaled, toy
from psrl.paper import Setting
from psrl.paths import RESULTS
from psrl.published import Study
from psrl.results import Files
from psrl.tasks import TASKS

use_style()
torch.set_num_threads(1)

# %% tags=["parameters"]
episodes = scaled(5, 3)  # of the live run
population, horizon = scaled(200, 40), scaled(25, 8)  # of its planner; the paper's are 500 and 30
steps = scaled(200, 40)
samples = 20  # posterior samples in a fan
wanderings = scaled(6, 2)  # random episodes whose rewards are fitted in Section 5

# %% [markdown]
# ## 1. The algorithm and where its lines are
#
# | Algorithm 1 | code |
# |---|---|
# | initialise $\mathcal D$ with random actions for one episode | `ModelPredictiveControl.episode`, first call |
# | sample a transition model and a cost model at the beginning of each episode | `MPCPSRL.model`, `Regression.draw` |
# | obtain action using MPC with planning horizon $\tau$ | `cem.plan`, first action of the final mean |
# | $\mathcal D = \mathcal D \cup \{(s_i, a_i, r_i, s_{i+1})\}$ | `ModelPredictiveControl.episode` |
# | train cost and dynamics representations $\phi_r, \phi_f$ using data in $\mathcal D$ | `Networks.fit` |
# | update $\phi_r(s,a), \phi_f(s,a)$ for all $(s,a)$ collected | `Networks.features` in `Regression.learn` |
# | posterior update of $w_r, w_f$ | `Posterior.fit`, or `EvidencePosterior.fit` |
#
# A step of the sampled model is, with $w$ drawn once per episode,
#
# $$ s_{i+1} = s_i + w^\top \phi_f(s_i, a_i) + b + \epsilon, \qquad \epsilon \sim \mathcal N(0, \sigma^2 I). $$
#
# We follow one agent, of the variant `psrl-eb`, on the stochastic Cartpole with the planner's oracle reward. Its
# planner is a little smaller than in the paper so that it runs while you read.

# %%
params = read_params()
params["tasks"]["cartpole"]["steps"] = steps
run = resolve(
    params,
    task="cartpole",
    method="psrl-eb",
    reward="oracle",
    noise=0.01,
    seeds=[0],
    episodes=episodes,
    overrides={"planner": {"population": population, "elites": population // 10, "horizon": horizon}},
)
agent = MPCPSRL(run)


def fan(agent, start, length):
    """Along the last episode's actions: what posterior samples predict, the true noise-free path, what happened."""
    generator = [torch.Generator().manual_seed(start)]
    last = agent.data["x"][:, -agent.run.steps :]
    state_dim = agent.task.state_dim
    paths = []
    for _ in range(samples):
        perceptrons = agent.dynamics.draw(generator)
        model = SampledModel(perceptrons, torch.zeros(1, 1, state_dim), generator)
        state, path = last[:, start : start + 1, :state_dim], []
        for t in range(length):
            state = model.step(state, last[:, start + t : start + t + 1, state_dim:])
            path.append(state[0, 0])
        paths.append(torch.stack(path))
    happened = last[0, start + 1 : start + 1 + length, :state_dim]
    state, truth = last[0, start, :state_dim], []
    for t in range(length):
        state = agent.task.dynamics(state, last[0, start + t, state_dim:])
        truth.append(state)
    return torch.stack(paths), torch.stack(truth), happened


history = []
for episode in range(1, episodes + 1):
    result = agent.episode()
    angles = agent.data["x"][0, -steps:, 2]
    predicted = fan(agent, steps // 4, min(horizon, 15)) if episode > 1 else None
    history.append({"return": result.returns[0], "angles": torch.rad2deg(angles).numpy(), "fan": predicted})
    print(f"episode {episode}: return {result.returns[0]:.0f} of {steps}")

# %% [markdown]
# ## 2. What the agent does in its first episode and in its last
#
# In episode 1 the pole falls within a second or so, and each step spent outside the allowed angle earns nothing. The
# figure cuts angles at 90 degrees: a pole that has fallen goes on below the cart, where nothing is earned either.

# %%
fig, ax = plt.subplots(figsize=(7, 3.2))
shown = sorted({0, 1, len(history) // 2, len(history) - 1})
for shade, index in zip(np.linspace(0.25, 1, len(shown)), shown, strict=True):
    entry = history[index]
    ax.plot(
        np.arange(steps) * 0.02,
        np.clip(entry["angles"], -90, 90),
        color=plt.cm.viridis(1 - shade),
        label=f"episode {index + 1}: return {entry['return']:.0f}",
    )
ax.axhspan(-12, 12, color="#029e73", alpha=0.12, lw=0)
ax.text(steps * 0.02, 13, "pays 1 per step", ha="right", va="bottom", fontsize=9, color="#02624a")
ax.set(xlabel="time in the episode (s)", ylabel="pole angle (degrees, cut at ±90)", ylim=(-95, 95))
ax.set_yticks([-90, -45, 0, 45, 90])
ax.set_title("A random episode lets the pole fall; a few episodes later it stands")
ax.legend(ncols=2, loc="lower left")
save(
    fig,
    "09_episodes",
    alt="Pole angle against time, cut at 90 degrees: far outside the rewarded band in episode 1, inside it throughout "
    "in the last one.",
)

# %%
late = max(entry["return"] for entry in history[len(history) // 2 :])
print("best return in the second half above that of the random episode:", bool(late > history[0]["return"]))
assert late > history[0]["return"]
assert scaled(late >= 195, True), "Cartpole is solved live at full scale"

# %% [markdown]
# ## 3. What a posterior sample looks like
#
# Take the actions the agent really executed in an episode, start where it was, and let samples of the model predict
# where it goes. Each sample is a whole world; the agent believes in one of them per episode. The samples that the last
# episode is planned with are closer together, and closer to the truth, than those of the first planned one; none of
# them has seen the episode that it is compared with. They need not get there steadily: each panel starts from another
# state and follows other actions. The path to compare them with is that of the true dynamics without noise; what really
# happened strays from it by chance, 0.01 rad at every step.

# %%
predicted = [index for index, entry in enumerate(history) if entry["fan"] is not None]
fig, axes = plt.subplots(1, len(predicted), figsize=(2.6 * len(predicted) + 0.8, 3.4), sharex=True, sharey=True)
for ax, index in zip(axes, predicted, strict=True):
    sampled, truth, happened = history[index]["fan"]
    time = np.arange(1, len(truth) + 1) * 0.02
    for path in sampled:
        ax.plot(time, torch.rad2deg(path[:, 2]), color=COLOURS["psrl-eb"], lw=0.8, alpha=0.6)
    ax.plot(time, torch.rad2deg(truth[:, 2]), color="black", lw=2)
    ax.plot(time, torch.rad2deg(happened[:, 2]), color="black", lw=1, ls=":")
    ax.set(title=f"episode {index + 1}", xlabel="seconds ahead")
axes[0].set_ylabel("pole angle (degrees)")
axes[0].plot([], [], color=COLOURS["psrl-eb"], label=f"{samples} sampled models")
axes[0].plot([], [], color="black", lw=2, label="true dynamics")
axes[0].plot([], [], color="black", lw=1, ls=":", label="what happened")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
title = "Twenty samples of the model: closer at the end than at the start"
fig.suptitle(title, x=0.01, ha="left", fontsize=11)
save(
    fig,
    "09_fans",
    alt="Fans of twenty predicted pole angles beside the true one in each planned episode, all on one scale; the "
    "last fan is narrower than the first.",
)

# %%
spread = [entry["fan"][0][:, -1, 2].std().item() for entry in history[1:]]
error = [(entry["fan"][0][:, -1, 2] - entry["fan"][1][-1, 2]).abs().mean().item() for entry in history[1:]]
for name, values in (("spread of the samples", spread), ("their distance from the truth", error)):
    print(f"{name} at the end, by episode (degrees):", np.degrees(values).round(1))
assert scaled(spread[-1] < 0.5 * spread[0] and error[-1] < 0.5 * error[0], True), "closer at the end than at the start"

# %% [markdown]
# ## 4. What units and scales decide: Pendulum with a learned reward
#
# The published variant (`psrl`) regresses raw targets with a prior and noise sd set per task. The second variant
# (`psrl-eb`) differs in two things: it standardises targets, and it lets the evidence choose both scales of every
# output each episode. To tell them apart we also take one step of the two: standardised targets with the published
# scales.
#
# After one random episode the pendulum has only ever hung down. What does each variant believe about the reward of
# standing upright, where it has never been? Five seeds, the published training, no tuning.

# %%
task = TASKS["pendulum"]
angles = torch.linspace(-np.pi, np.pi, 181)
states = torch.stack([angles.cos(), angles.sin(), torch.zeros_like(angles)], dim=-1)
inputs = torch.cat([states, torch.zeros(len(angles), 1)], dim=-1).expand(5, -1, -1)
true_reward = task.reward(states, torch.zeros(len(angles), 1), states, None)


def after_one_episode(method, **overrides):
    """Regression of the reward after a random episode, with its belief on the grid: mean and sd [B, n]."""
    run = resolve(
        read_params(),
        task="pendulum",
        method=method,
        reward="learned",
        noise=0.01,
        seeds=[0, 1, 2, 3, 4],
        episodes=1,
        overrides=overrides,
    )
    agent = MPCPSRL(run)
    agent.episode()
    agent.learn()
    regression = agent.rewards
    with torch.no_grad():
        phi = regression.networks.features(inputs).double()
        fitted = regression.networks.features(agent.data["x"]).double()
    mean = (phi @ regression.posterior.mean + regression.bias()) * regression.scale + regression.shift
    sd = regression.posterior.variance(phi).sqrt() * regression.scale
    inside = (fitted @ regression.posterior.mean + regression.bias()) * regression.scale + regression.shift
    rmse = (inside - agent.data["reward"]).square().mean(dim=(1, 2)).sqrt()
    return mean[..., 0], sd[..., 0], rmse, agent.data["reward"]


beliefs = {method: after_one_episode(method) for method in ("psrl", "psrl-eb")}
between = "psrl, standardised targets"
compared = {"psrl": beliefs["psrl"], between: after_one_episode("psrl", scales="standardised")}
compared["psrl-eb"] = beliefs["psrl-eb"]

# %%
fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.3), sharey=True)
for ax, (method, (mean, sd, _, _)) in zip(axes, beliefs.items(), strict=True):
    for m, s in zip(mean, sd, strict=True):
        ax.fill_between(torch.rad2deg(angles), m - 2 * s, m + 2 * s, color=COLOURS[method], alpha=0.25, lw=0)
        ax.plot(torch.rad2deg(angles), m, color=COLOURS[method], lw=1)
    ax.plot(torch.rad2deg(angles), true_reward, color="black", label="true reward")
    ax.set(title=LABELS[method], xlabel="angle from upright (degrees)", xticks=[-180, -90, 0, 90, 180])
axes[0].set_ylabel("reward per step")
axes[1].legend(loc="lower center")
fig.suptitle(
    "One random episode, then: what is upright worth? (five seeds, mean and two posterior sd)",
    x=0.01,
    ha="left",
    fontsize=11,
)
save(
    fig,
    "09_reward_belief",
    alt="Predicted reward against the angle for five seeds: with raw targets and the published scales they extrapolate "
    "below the truth at upright, with invisible bands; with standardised targets and scales by evidence, above it.",
)

# %%
upright = int(angles.abs().argmin())
summary = {
    method: {
        "fit error on the episode": rmse.mean().item(),
        "sd of its targets": rewards.std().item(),
        "belief at upright": mean[:, upright].mean().item(),
        "posterior sd there": sd[:, upright].mean().item(),
        "errors in posterior sds": ((mean - true_reward).abs() / sd)[:, upright].median().item(),
    }
    for method, (mean, sd, rmse, rewards) in compared.items()
}
display(pd.DataFrame(summary).T.map(lambda value: f"{value:.2g}"))

# %% [markdown]
# What we see, checked below:
#
# - All fit the episode they have seen; a raw target near -9 is not out of reach for the published network.
# - All are overconfident about upright: the truth lies many posterior sds away. A Bayesian *last layer* knows only the
#   directions that its features have, and features trained on a hanging pendulum have none for standing.
# - The difference is the direction of the error. With raw targets the network has learned a large negative level and
#   carries it on: upright looks worse than hanging. With standardised targets the level is taken out, and upright looks
#   better. A planner goes where it hopes for reward, so the one has no reason yet to go up, and the other has.
# - This is the work of standardising alone: with standardised targets and the published scales the belief at upright is
#   the same as by evidence. What the evidence adds is a posterior sd some 60 times as large, still far too small.
#
# It is a belief after *one* episode, and it does not last: Section 5 shows that the published variant gets there too,
# and how much later.
#
# So the difference is not that the small noise scale leaves no uncertainty to explore with, though it leaves very
# little; all have far too little. It is optimism by extrapolation, and it is a property of this task: a target whose
# unseen values lie above the seen ones.

# %%
for method, row in summary.items():
    assert toy() or row["fit error on the episode"] < 0.25 * row["sd of its targets"], method
    assert toy() or row["errors in posterior sds"] > 3, method
seen = beliefs["psrl"][3].mean().item()
assert toy() or summary["psrl"]["belief at upright"] < seen < summary["psrl-eb"]["belief at upright"]
assert toy() or summary["psrl"]["posterior sd there"] < summary["psrl-eb"]["posterior sd there"]
raw, same_scales, by_evidence = (summary[name]["belief at upright"] for name in ("psrl", between, "psrl-eb"))
assert toy() or abs(by_evidence - same_scales) < 0.01 * (same_scales - raw), "standardising alone moves the belief"
wider = summary["psrl-eb"]["posterior sd there"] / summary[between]["posterior sd there"]
print(f"posterior sd at upright, evidence over published scales, both on standardised targets: {wider:.0f} times")
assert toy() or 50 < wider < 70

# %% [markdown]
# ## 5. Does it learn? Five seeds at the paper's settings
#
# From committed results, every seed shown. The thresholds are the levels we asked of the implementation before any run:
# to be reached at some episode, which is not to say that they are held.

# %%
study = Study.load()
published = {name: trials.run for name, trials in study.published.items()}
panels = {
    "Cartpole, oracle reward": (["cartpole-noisy-oracle-psrl"], 195),
    "Pendulum, oracle reward": (["pendulum-noisy-oracle-psrl"], -700),
    "Pendulum, learned reward": (["pendulum-noisy-learned-psrl", "pendulum-noisy-learned-psrl-eb"], -700),
    "Reacher, oracle reward": (["reacher-oracle-psrl"], -60),
}
available = {name: pd.read_csv(Files.named(name).runs) for names, _ in panels.values() for name in names}


def at(name, low, high):
    """Mean return over seeds, by episode, in a range of episodes."""
    table = available[name]
    return table[table.episode.between(low, high)].groupby("episode")["return"].mean()


fig, axes = plt.subplots(1, len(panels), figsize=(3.4 * len(panels), 3.2), squeeze=False)
for ax, (title, (names, level)) in zip(axes[0], panels.items(), strict=True):
    for name in names:
        table, method = available[name], published[name].method
        for _, trial in table.groupby("seed"):
            ax.plot(trial["episode"], trial["return"], color=COLOURS[method], lw=0.7, alpha=0.5)
        mean = table.groupby("episode")["return"].mean()
        ax.plot(mean.index, mean, color=COLOURS[method], lw=2.2, label=LABELS[method])
    ax.axhline(level, color="black", ls=":", lw=1)
    ax.set(title=f"{title}\n(dotted: {level}, asked for)", xlabel="episode")
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.legend(loc="lower right")
axes[0, 0].set_ylabel("return")
axes[0, -1].set_ylim(-330, 10)  # the random first episode, far below, would hide all others
axes[0, -1].text(2.3, -320, f"from {at('reacher-oracle-psrl', 1, 1).item():.0f}", fontsize=9)
save(
    fig,
    "09_learning",
    inputs=[Files.named(name).runs for name in available],
    alt="Learning curves of five seeds and their mean, one panel per task; dotted: the level asked for. With a learned "
    "reward on the Pendulum the variant (standardised targets, scales by evidence) crosses it before the published "
    "method.",
)


# %%
checks = {
    "Cartpole: every seed reaches 195 in some episode before the 7th": (
        available["cartpole-noisy-oracle-psrl"].query("episode < 7").groupby("seed")["return"].max().min() >= 195
    ),
    "Pendulum, oracle reward: mean over seeds above -700 in some episode up to the 10th": (
        at("pendulum-noisy-oracle-psrl", 1, 10).max() > -700
    ),
    "Pendulum, learned reward, variant: mean over seeds above -700 in some episode up to the 7th": (
        at("pendulum-noisy-learned-psrl-eb", 1, 7).max() > -700
    ),
    "Reacher: mean over seeds and episodes 15 to 20 above -60": at("reacher-oracle-psrl", 15, 20).mean() > -60,
}
for text, verdict in checks.items():
    print(f"{'yes' if verdict else 'NO '}  {text}")
    assert toy() or verdict, text

# %% [markdown]
# What is reached need not last. On the Pendulum single runs fall back to the bottom after they had swung up, with the
# reward given too. And with a learned reward some runs on Cartpole do not get there. The rule of notebook 12 counts the
# runs that converge: three episodes on end with a mean score of at least 0.9.


# %%
def converged(name):
    """How many runs of an experiment converge, by the rule of notebook 12, and how many there are."""
    trials = study.published[name]
    scale = study.scale(Setting(trials.run.task, trials.run.noise, trials.run.reward))
    if toy() and scale is None:  # an oracle planner of toy size may know no better
        return 0, len(trials.returns)
    return int(np.isfinite(convergence.times(scale(trials.returns))).sum()), len(trials.returns)


counted = {name: converged(name) for name in [*available, "cartpole-noisy-learned-psrl", "cartpole-learned-psrl"]}
for name, (runs, among) in counted.items():
    print(f"{runs} of {among} runs converge within {published[name].episodes} episodes: {name}")
assert toy() or counted["cartpole-noisy-oracle-psrl"] == counted["pendulum-noisy-oracle-psrl"] == (5, 5)
assert toy() or counted["pendulum-noisy-learned-psrl"] == (4, 5)
assert toy() or (counted["cartpole-noisy-learned-psrl"], counted["cartpole-learned-psrl"]) == ((3, 5), (2, 5))
name = "pendulum-noisy-oracle-psrl"
later, means = available[name].query("episode > 10"), at(name, 11, 15)
fallen = later[later["return"] < -1000]
print(f"{name}, mean over seeds by episode from the 11th: {means.round(0).tolist()}")
print(f"below -1000 after the 10th episode: {len(fallen)} of {len(later)} episodes, in {fallen.seed.nunique()} runs")
assert toy() or (len(fallen) > 0 and means.min() < -700), "they fall back"

# %% [markdown]
# And what the variant (standardised targets, scales by evidence) is worth on the Pendulum with a learned reward, seed
# by seed (the seeds begin with the same random episode): the first episode above -700, and the mean return of the ten
# last. Which of its two changes does it is not separated here. With the reward given, an ablation that standardises
# alone is in notebook 11, Section 8.

# %%
learned = {name: available[name] for name in panels["Pendulum, learned reward"][0]}
first, late = {}, {}
for name, table in learned.items():
    good = table[table["return"] > -700].groupby("seed")["episode"].min()
    first[name] = good.reindex(table["seed"].unique(), fill_value=np.inf).to_numpy()
    late[name] = table[table["episode"] > table["episode"].max() - 10].groupby("seed")["return"].mean().to_numpy()
    label = LABELS[published[name].method]
    print(f"{label:20s} first above -700 in episode {first[name].tolist()}, then {late[name].round(0).tolist()}")
published_scales, by_evidence = learned
assert toy() or np.median(first[by_evidence]) < np.median(first[published_scales]), "the variant is sooner"
assert toy() or late[by_evidence].mean() > late[published_scales].mean(), "and better in the end"

# %% [markdown]
# ### Where the variant fails: Cartpole without noise
#
# On Cartpole with the reward to be learned the variant converges in all five runs with noise, and in none without. The
# reward there is a step: exactly 1 while the pole is up and the cart on its track, exactly 0 elsewhere, which is where
# most rows are once a pole has fallen. The features are trained by a Gaussian likelihood that also learns a variance at
# every input, and where targets are *exactly* constant that likelihood has no maximum: the variance may shrink for ever
# (its soft bounds are learned too), and a row counts by the inverse of its variance. Noise of 0.01 ends this; without
# it the loss keeps falling while the fit does not get better. From the published runs, means over seeds of the last fit
# (its error in sds of the targets):


# %%
def last_fit(name, metric):
    table = pd.read_csv(Files.named(name).metrics).query("metric == @metric")
    return table[table.episode == table.episode.max()].value.to_numpy()


with_noise, without = "cartpole-noisy-learned-psrl-eb", "cartpole-learned-psrl-eb"
losses, errors = (
    {name: last_fit(name, metric) for name in (with_noise, without)} for metric in ("loss_reward", "fit_rmse_reward")
)
for name in (with_noise, without):
    (runs, among), late = converged(name), study.published[name].returns[:, -5:].mean()
    print(f"{name:32s} loss {losses[name].mean():6.1f}, error {errors[name].mean():.2f}", end="")
    print(f", last five returns {late:5.1f}, {runs} of {among} converge")
assert toy() or losses[without].max() < losses[with_noise].min(), "a better loss in every run"
assert toy() or errors[without].min() > errors[with_noise].max(), "and a worse fit"
assert toy() or (converged(with_noise)[0], converged(without)[0]) == (5, 0)

# %% [markdown]
# Those runs differ in their data too. So here are the same rows twice, random episodes without any noise, fitted once
# as they are and once with noise of 0.01 added to the recorded rewards and to nothing else. *Weight* is the share of
# the inverse variances that belongs to the rows that pay.


# %%
def reward_fits(noise_sd):
    """The variant's reward, refitted after each random episode: error of the last fit, and weight of the rows that pay.

    Both [B]; the error is to the true rewards, in their sd.
    """
    learner = MPCPSRL(replace(still, reward="learned"))
    draws = torch.randn(rewards.shape, generator=torch.Generator().manual_seed(0))
    for end in range(still.steps, rows.shape[1] + 1, still.steps):
        learner.rewards.learn(rows[:, :end], (rewards + noise_sd * draws)[:, :end])
    with torch.no_grad():
        weight = (-learner.rewards.networks(rows)[1]).exp()
        features = learner.rewards.networks.features(rows).double()
    believed = (features @ learner.rewards.posterior.mean + learner.rewards.bias()) * learner.rewards.scale
    error = (believed + learner.rewards.shift - rewards).square().mean(dim=(1, 2)).sqrt() / rewards.std(dim=(1, 2))
    return error.numpy(), ((weight * rewards).sum(dim=(1, 2)) / weight.sum(dim=(1, 2))).numpy()


class Wanderer(MPCPSRL):
    """Acts at random in every episode."""

    def learn(self):
        return {}

    def plan(self, state, mean, at_step):
        return self._random_action()[:, None].expand_as(mean)


still = resolve(params, task="cartpole", method="psrl-eb", seeds=[0, 1, 2, 3, 4], episodes=wanderings)
wanderer = Wanderer(still)
for _ in range(wanderings):
    wanderer.episode()
rows, rewards = wanderer.data["x"], wanderer.data["reward"]
paying = rewards.mean().item()
fits = {noise_sd: reward_fits(noise_sd) for noise_sd in (0.0, 0.01)}
print(f"rows that pay: {paying:.0%}")
for noise_sd, (error, weight) in fits.items():
    print(f"noise of {noise_sd:4.2f} on the recorded rewards: errors {error.round(2).tolist()}, ", end="")
    print(f"weight of the rows that pay: at most {weight.max():.1e}")
exact, noisy = (error.mean() for error, _ in fits.values())
print(f"the error with noise is {noisy / exact:.2f} times the error without, on average")
assert toy() or scaled(noisy < exact, True), "noise on the targets makes a better fit"
assert toy() or scaled(fits[0.0][1].max() < 0.1 * paying, True), "without it the rows that pay hardly count"

# %% [markdown]
# So the network is paid for certainty about what never changes, and the rows with the step that it should learn hardly
# count; this is known of such likelihoods (Seitzer et al., 2022). Noise on the recorded rewards alone makes the *fit*
# better on average. With it, too, the rows that pay count for little, so their weight is not the whole difference, and
# the published method has the same likelihood; two of its five runs get there. Nor need the fit be the whole reason why
# the variant's runs fail: here are the last of five episodes without noise and with the reward given, where only the
# dynamics are learned.

# %%
still_given = Setting("cartpole", 0.0, "oracle")
given = {method: study.find(still_given, method).returns[:, :5][:, -1] for method in ("psrl", "psrl-eb")}
for method, returns in given.items():
    print(f"{LABELS[method]:20s}", returns.round(0).tolist())
assert toy() or ((given["psrl"] == 200).all() and (given["psrl-eb"] == 200).sum() == 3)

# %% [markdown]
# The variant lets the pole fall in two of five runs, the published method in none. Five runs each do not tell whether
# that is chance, and five episodes not whether it lasts; but a reward that is hard to fit cannot be the cause there.

# %% [markdown]
# ## 6. What it costs
#
# Times belong to a machine and a moment, so nothing is timed here: `psrl bench NAME --json > results/bench/NAME.json`
# measured ratios within one run on a quiet machine, one thread, and this section reads them.
#
# **Planning** is bound by matrix products. The yardstick is a plain product of two 2048 x 2048 float32 matrices by the
# same library on the same thread; *share* is how much of its speed a whole plan reaches (median over neighbouring pairs
# of measurements). PETS plans with five networks and five particles through the same code.


# %%
def bench(name):
    """Rows of a committed measurement."""
    return json.loads((RESULTS / "bench" / f"{name}.json").read_text())["rows"]


plans = pd.DataFrame(bench("plan")).replace({"method": LABELS})
display(plans.set_index(["task", "method", "trials"]).rename(columns=lambda name: name.replace("_", " ")))

# %% [markdown]
# A layer is one call, activation included; the rest goes into random numbers, copies of inputs and rewards.
# **Training** five trials as one batch against one network alone in plain eager torch, per network step; two runs
# **side by side** on two cores against one; the **memory** of a Pusher run with 200 episodes of data, five trials:

# %%
training, beside, memory = bench("train"), bench("side")[0], bench("memory")[0]
for row in training:
    print(f"training on {row['task']}: five together cost {row['ratio_of_five']:.2f} of one alone, each")
print(f"two runs side by side take {beside['ratio']:.2f} times as long as one")
print(f"peak memory of Pusher at 200 episodes: {memory['peak_gib']:.2f} GiB")
assert max(row["ratio_of_five"] for row in training) <= 0.5 and beside["ratio"] <= 1.15 and memory["peak_gib"] < 1.4

# %% [markdown]
# A **sweep** hands equal runs to the cores through Ray. In a run the engine does what is neither planning, training nor
# environment: it builds the learner once and saves a checkpoint after every episode.

# %%
swept = bench("sweep")[0]
print(f"eight {swept['task']} runs on {swept['cores']} cores take {swept['ratio']:.2f} times as long as one alone,")
print(f"{swept['ray_start_s']} s of Ray's start included")
name = "cartpole-noisy-oracle-psrl"
spent = pd.read_csv(Files.named(name).metrics).query("seed == 0").groupby("metric")["value"].sum()
share = spent["seconds_engine"] / spent.filter(like="seconds_").sum()
print(f"the engine's share of the published run {name}: {share:.2%}")
assert swept["cores"] == 2 and swept["ratio"] <= 4.4 and (toy() or share < 0.02)

# %% [markdown]
# A plan grows in proportion to population, horizon and iterations (notebook 08). The **posterior** of $N$ rows with
# $d$ features takes $O(d^2 N + d^3)$: along a line of slope one in $N$ once $N$ is well above $d$ (a little steeper
# where the features no longer fit into the processor's cache).

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.4))
table = pd.DataFrame([row for row in bench("scaling") if row["quantity"].startswith("posterior")])
for index, (name, rows) in enumerate(table.groupby("task", sort=False)):
    rows = rows.sort_values("value")
    ax.plot(rows["value"], rows["ms"], "o-", color=f"C{index}", ms=5, label=name)
    last = rows.iloc[-1]
    ax.plot(rows["value"], last["ms"] * rows["value"] / last["value"], ":", color=f"C{index}", lw=1.2)
    growth = (last["ms"] / rows.iloc[0]["ms"]) / (last["value"] / rows.iloc[0]["value"])
    assert 0.5 < growth < 2, "in proportion to the rows within a factor of two"
ax.set(xscale="log", yscale="log", xlabel="rows", ylabel="one posterior (ms)")
ax.set_title("The posterior costs roughly in proportion to the rows (dotted: exactly)")
ax.legend(loc="upper left")
save(
    fig,
    "09_posterior_cost",
    alt="Time of a posterior update against the number of rows for 32 to 256 features on logarithmic axes: straight "
    "lines of slope about one, higher for more features.",
    inputs=[RESULTS / "bench" / "scaling.json"],
)

# %% [markdown]
# ## What we learned
#
# - With the reward given, Algorithm 1 solves Cartpole within a handful of episodes and swings the Pendulum up within
#   ten, though single runs fall back later. With a learned reward fewer runs converge in 15 episodes: on the Pendulum
#   four of five, on Cartpole three of five with noise and two of five without (notebook 12).
# - A Bayesian last layer is exact about its weights and silent about its features. Off the data both variants are
#   overconfident by many sds, and what the first planned episode hopes for is extrapolation.
# - The variant (standardised targets, scales by evidence) removes two numbers per task that would otherwise be set by
#   hand, at the price of one eigendecomposition. On the Pendulum with a learned reward it also learns sooner. The hope
#   it starts with comes from standardising; which of the two makes it learn sooner is not separated here.
#
# ## Where we differ from the paper and the authors' code
#
# | | paper | authors' code | here |
# |---|---|---|---|
# | hidden layers | 2 of 200; arms 4 of 200 | 2 of 200 and 1 of 2d; arms 3 of 200 and 1 of 2d | the code's |
# | rows to train the features on | not said | a bootstrap; the posterior takes all | the code's |
# | weight decay, passes over the data | not given | per task | the code's |
# | horizon on Pendulum | 20 | 30 | 20 |
# | particles per candidate | several | 1 | 1, a setting |
# | noise of the reward model in a plan | yes | yes | left out: zero mean, it only blurs the ranking |
# | oracle on Cartpole | the reward | $\cos\theta - 0.01x^2$ | that, a setting; the true reward is an ablation |
# | NaN rollouts | not said | count as 0 | rank last |
# | early stop of the planner | not said | largest variance below 0.01 | the same, per trial, nothing waits for it |
# | random seeds | five trials | none set | five seeds, each with its own generator |
# | training after the last episode | yes | yes | before the next episode, so that the last fit is not wasted |
