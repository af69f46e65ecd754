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
# # What survives: every claim of the paper's theory on one page
#
# **Question.** After the checks of notebooks 01 to 04, which statements of Sections 2 to 4 and Appendices A to D can
# be used as they stand, which need a condition, and which do not hold?
#
# **Answer in advance.** The main result survives: for linear-Gaussian models with bounded rewards and actions the
# Bayesian regret of PSRL is polynomial in $H$ and $d$ and grows like $\sqrt T$, at the rate $\tilde O(H^{3/2}d\sqrt T)$
# of Theorem 1 and, where the prior makes systems unstable so rarely that $\kappa H\lesssim\log T$ (notebook 04,
# Section 6), at $\tilde O(Hd\sqrt T)$. Its key idea, that *noise* makes the future value Lipschitz, is right and best
# possible for Gaussian noise. What does not survive are steps that were stated more generally than they hold: other
# noises, a radius for pairs fixed in advance, a smaller dimension for the reward term and for features.
#
# Every row carries a check of its core that runs here, in seconds; if it failed, this notebook would not execute. The
# evidence column says where the full argument is.

# %%
from collections.abc import Callable
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown

from psrl.figures import COLOURS, save, use_style
from psrl.notebook import scaled, toy
from psrl.theory import bandit, bounds, chain, decomposition, features, growth, lqr, noise, regret, study, variances
from psrl.theory.posterior import Posterior

use_style()

# %% tags=["parameters"]
draws = scaled(4000, 2000)  # draws of the truth where a check simulates


# %%
class Claim(NamedTuple):
    """One row: what the paper says, what we found, and a function that returns True while that is so."""

    claim: str
    verdict: str
    evidence: str
    repaired: str
    consequence: str
    check: Callable[[], bool]


def nb(number, section):
    """A link to a section of another notebook."""
    names = {0: "00_tour", 1: "01_noise", 2: "02_decomposition", 3: "03_variances", 4: "04_regret"}
    return f"[{number:02d} §{section}]({names[number]}.ipynb)"


def table(claims):
    """The claims as Markdown; a claim whose check fails stops the notebook."""
    for claim in claims:
        assert claim.check(), claim.claim
    head = "| claim | verdict | evidence | statement that holds | for the algorithm |\n|---|---|---|---|---|\n"
    rows = (f"| {c.claim} | **{c.verdict}** | {c.evidence} | {c.repaired} | {c.consequence} |" for c in claims)
    return Markdown(head + "\n".join(rows))


generator = np.random.default_rng(50)
BLOCKS = np.random.default_rng(51)

# %% [markdown]
# ## 1. Setting and decomposition (Sections 2 and 3.1)


# %%
def time_indexed():
    K = lqr.riccati([[0.9]], [[1.0]], np.eye(1), np.eye(1), 5).K
    return np.ptp(K) > 0.3 and K[-1] == 0


def half_of_sampled_rewards_exceed_the_true_bound():
    # theta' phi with |phi| <= 1 is bounded by |theta|; after twenty rewards, truth and sample
    theta, belief = generator.standard_normal((draws, 5, 1)), Posterior(draws, np.ones(5), 1, 0.5)
    for _ in range(20):
        phi = generator.standard_normal((draws, 5))
        phi /= np.maximum(1, np.linalg.norm(phi, axis=1, keepdims=True))
        belief.update(phi, (phi[:, None, :] @ theta)[:, 0] + 0.5 * generator.standard_normal((draws, 1)))
    larger = np.linalg.norm(belief.sample(generator), axis=1) > np.linalg.norm(theta, axis=1)
    return abs(larger.mean() - 0.5) < 4 * 0.5 / np.sqrt(draws)


def decomposition_is_exact():
    A, B = 0.4 * generator.standard_normal((2, 100, 3, 3)), generator.standard_normal((2, 100, 3, 2))
    sampled, true = (decomposition.Model(A[m], B[m], np.eye(3), np.eye(2)) for m in (0, 1))
    K = lqr.riccati(*sampled, 6).K
    moments = lqr.covariances(true.A, true.B, K, np.eye(3), 0.3)
    total = sum(
        decomposition.along(d, moments).sum(axis=0) for d in decomposition.one_step_differences(sampled, true, K)
    )
    gap = sampled.value(K, 0.3, np.eye(3)) - true.value(K, 0.3, np.eye(3))
    return np.all(
        np.abs(total - gap) < 1e-10 * np.abs(sampled.value(K, 0.3, np.eye(3)) + true.value(K, 0.3, np.eye(3)))
    )


def identity_holds_and_a_wrong_prior_breaks_it():
    right = decomposition.posterior_identity(draws, 2, generator)
    wrong = decomposition.posterior_identity(draws, 2, generator, prior_scale=2.0)
    z = [decomposition.z_score((run.true - run.sampled).mean(axis=0)) for run in (right, wrong)]
    return abs(z[0]) < 4 < abs(z[1])


table(
    [
        Claim(
            "§2.1: a policy $\\mu:\\mathcal S\\to\\mathcal A$ is optimal at every step",
            "does not hold",
            nb(2, 5),
            "$\\mu=(\\mu_1,\\dots,\\mu_H)$; no proof changes",
            "a plan must know how many steps are left, or accept a loss (last table)",
            time_indexed,
        ),
        Claim(
            "§2.1, 2.2: rewards bounded by $R_{\\max}$ *and* Gaussian, without loss of generality",
            "does not hold for sampled models",
            nb(2, 3) + ", " + nb(4, 4),
            "reward known and bounded, or features bounded, prior cut at the bound and sampled by rejection",
            "keep sampled rewards within their known range",
            half_of_sampled_rewards_exceed_the_true_bound,
        ),
        Claim(
            "§3.1: $\\tilde\\Delta_k$ is a sum of one-step differences along the true trajectory",
            "holds",
            nb(2, 1),
            "exactly, for any two models and any policy",
            "one-step errors, weighted by future value, are the right thing to reduce",
            decomposition_is_exact,
        ),
        Claim(
            "§3.1: $V^{M^*}_{\\mu^*}-V^{M^k}_{\\mu^k}$ has mean zero",
            "holds when the sample is from the exact posterior",
            nb(2, 4),
            "given $\\mathcal H_k$; a wrong prior or noise scale breaks it",
            "scales of prior and noise are part of the guarantee, not tuning",
            identity_holds_and_a_wrong_prior_breaks_it,
        ),
    ]
)

# %% [markdown]
# ## 2. Noise and the future value (Lemmas 1 and 2, Appendix A)


# %%
def gaussian_constant():
    shift = np.logspace(-6, 1, 50)
    ratio = noise.gaussian_l1(shift) / (np.sqrt(2 / np.pi) * shift)
    return np.all(ratio <= 1) and ratio[0] > 1 - 1e-9 and np.sqrt(2 / np.pi) < 1


def constants_differ_at_equal_variance():
    return noise.laplace().variation > 1.7 * noise.gauss().variation > 2 * noise.uniform().variation


def combs_have_no_constant():
    return all(noise.comb(w).variation > w / 2 * noise.comb(w).p_max / 0.8 for w in (8, 32, 128))


def cube_constant_grows_with_dimension():
    shift = np.full(64, 1e-6)
    return abs(noise.cube_l1(shift) / (2 * noise.uniform().p_max * np.linalg.norm(shift)) - 8) < 0.01


def uncorrelated_is_not_independent():
    at45 = [
        noise.rotated_square_correlation(f.kurtosis, np.pi / 4)
        for f in (noise.gauss(), noise.uniform(), noise.laplace())
    ]
    return at45[0] == 0 and at45[1] < -0.4 and at45[2] > 0.4


def lemma_two_is_tight():
    # reward sign(s), s' = growth s + eps: share of C (H - i) R_max that is attained, H - i = 20
    step, steps = 1e-6, 20
    slopes = [2 * decomposition.sign_future(step / 2, g, steps) / step for g in (0.5, 1.0, 10.0)]
    share = np.array(slopes) / (np.sqrt(2 / np.pi) * steps)
    return np.all(share <= 1) and share[0] < 0.1 and share[-1] > 0.99


table(
    [
        Claim(
            "Lemma 1 and remark of App. A, Gaussian noise: $C=\\sqrt{2/\\pi}/\\sigma$, better than Pinsker",
            "holds",
            nb(1, 1),
            "$\\lVert P_1-P_2\\rVert=2(2\\Phi(\\lVert\\delta\\rVert_2/2\\sigma)-1)$; best constant",
            "all that the theorem uses; nothing for $\\sigma=0$ (Reacher, Pusher)",
            gaussian_constant,
        ),
        Claim(
            "Lemma 1: $C$ depends on the variance only, for any symmetric noise",
            "does not hold",
            nb(1, 2),
            "$V(p)=\\int\\lvert p'\\rvert$ in one dimension, $=2p_{\\max}$ if unimodal",
            "another noise model needs its own constant",
            constants_differ_at_equal_variance,
        ),
        Claim(
            "App. A, Case 2: not unimodal, $C=2(C_0+1)p_{\\max}$",
            "does not hold",
            nb(1, 3),
            "$V(p)$ in place of it",
            "none: models are Gaussian",
            combs_have_no_constant,
        ),
        Claim(
            "App. A, rotation: $d$ dimensions reduce to one",
            "holds when Gaussian",
            nb(1, 4),
            "else $\\sqrt d\\,V(p)$, or $\\sqrt{I(p)}$ with finite Fisher information",
            "none: models are Gaussian",
            cube_constant_grows_with_dimension,
        ),
        Claim(
            "App. A, footnote: uncorrelated after rotation, so independent",
            "does not hold",
            nb(1, 5),
            "rotation invariance of the Gaussian does the work",
            "none",
            uncorrelated_is_not_independent,
        ),
        Claim(
            "Lemma 2 and its remark: Lipschitz constant $CHR_{\\max}$, a result and not an assumption",
            "holds when rewards of the sampled model are bounded",
            nb(2, 2),
            "$C(H-i)R_{\\max}$, tight in the limit; stable systems need only a constant",
            "noise smooths the future; linear $H$ is the price of allowing unstable models",
            lemma_two_is_tight,
        ),
    ]
)

# %% [markdown]
# ## 3. Variances (Lemma 3, Appendices C and D)


# %%
def only_one_covariance_is_symmetric():
    X, x = generator.standard_normal((6, 3)), generator.standard_normal((2, 3))
    solved = np.linalg.solve(X @ X.T + 0.25 * np.eye(6), X @ x.T)
    right = x @ x.T - (X @ x.T).T @ solved
    printed = x @ x.T - np.diag((X @ x.T).T @ solved)[:, None]
    exact = x @ np.linalg.inv(X.T @ X / 0.25 + np.eye(3)) @ x.T
    return (
        np.allclose(right, exact)
        and not np.allclose(printed, printed.T)
        and np.allclose(np.diag(printed), np.diag(exact))
    )


def fixed_pairs_are_covered_and_visited_ones_are_not():
    # pairs that PSRL visits with H = 1: actions of a linear bandit
    many = bandit.thompson(generator, 40, 64, 200).ratio > variances.fixed_radius(1.0, 1, 0.05)
    return variances.fixed_violation(1, 0.05) < 0.1 and many.mean() > 0.8


def the_union_bound_over_steps_does_not_help():
    steps = 400
    radius = variances.fixed_radius(1.0, 1, 0.05 / (2 * steps))  # log(4 T d_s / delta)
    few, many = (bandit.thompson(generator, 20, d, steps).ratio > radius for d in (16, 128))
    return few.any(axis=1).mean() < 0.1 and many.any(axis=1).all() and many.mean() > 0.7


def all_pairs_are_covered_by_the_uniform_radius():
    posterior = Posterior(draws, np.ones(20), 4, 1.0)
    ratio = variances.worst_ratio(posterior, posterior.sample(generator), posterior.sample(generator))
    return ratio.max() < variances.uniform_radius(1.0, 4, 20, 0.05)


def sums_of_variances():
    X = np.ones((1, 1000, 1))
    sums = variances.sequential_variances(X, [1.0], 10.0)
    literal, corrected = variances.variance_sum_bounds(variances.information_gain(sums, 10.0), 1.0, 10.0)
    return literal[0] < sums.sum() <= corrected[0]


def largest_of_each_episode():
    X = generator.standard_normal((20, 15, 8, 3))
    v = variances.episode_variances(X, np.ones(3), 0.5)
    gain = variances.information_gain(v.fresh.reshape(20, -1), 0.5)
    stale = np.minimum(1, np.sqrt(v.stale) / 0.5).sum(axis=(1, 2))
    return np.all(v.largest <= v.subset * (1 + 1e-9)) and np.all(stale <= variances.stale_sum_bound(120, 8, gain))


def exponent(name, along, offset=0, per=None):
    """Exponent of PSRL's final regret in a size, from a committed study."""
    frame = study.read(name)
    frame = frame[frame.rule == "psrl"]
    last = frame[frame.episodes == frame.groupby(along).episodes.transform("max")]
    x, blocks = study.blocks(last, along)
    return growth.bootstrap_slope(x - offset, blocks / (per(x) if per else 1.0), BLOCKS)


def reward_term_is_linear_in_d():
    return toy() or exponent("bandit", "d").low > 0.6


def constant_c1():
    # C_1 100 times larger: the printed bound grows like its root, the repaired one like its logarithm
    sizes = dict(steps=1e8, horizon=20, states=4, controls=1, noise_sd=0.1)
    printed, repaired = (
        b(largest=100.0, **sizes) / b(largest=1.0, **sizes) for b in (bounds.paper_bound, bounds.repaired_bound)
    )
    return printed > 7 and repaired < 1.2


table(
    [
        Claim(
            "§2.2: posterior covariance with $\\mathcal K(X,x)$ twice",
            "does not hold",
            nb(3, 7),
            "$\\mathcal K(X,x')$; the variance, all that is used, is right",
            "none: implementations use the right one",
            only_one_covariance_is_symmetric,
        ),
        Claim(
            "Proof of Lemma 3: radius $2\\sqrt{2d_s\\sigma_k^2(h)\\log(2d_s/\\delta)}$ at each pair visited",
            "holds when the pair is fixed in advance; not at pairs that follow the sample",
            nb(3, 1) + ", " + nb(3, 2),
            "Lemma 3′: $2\\sigma_k(h)(\\sqrt{d_s}+\\sqrt d+\\sqrt{2\\log(2/\\delta)})$, all pairs at once",
            "none: no radius is computed; an optimistic (UCB) variant must use Lemma 3′",
            fixed_pairs_are_covered_and_visited_ones_are_not,
        ),
        Claim(
            "... and with $\\log(4Td_s/\\delta)$, a union bound, at all $T$ steps of a run",
            "does not hold for large $d$",
            nb(3, 2),
            "the union hides the failure for moderate $d$ (in a bandit with $d=128$ four steps of five are outside); "
            "Lemma 3′ needs one over episodes only",
            "none",
            the_union_bound_over_steps_does_not_help,
        ),
        Claim(
            "Remark after Lemma 3: point-wise concentration, so no assumption on an RKHS norm (a measure of "
            "smoothness that other analyses must assume bounded)",
            "conclusion holds, reason does not",
            nb(3, 3),
            "uniform concentration, free of that assumption because the prior is Gaussian",
            "none",
            all_pairs_are_covered_by_the_uniform_radius,
        ),
        Claim(
            "Proof of Theorem 1: subset of the largest variance per episode",
            "holds",
            nb(3, 5),
            "Proposition on stale sums, which saves $\\sqrt H$ once $T\\ge H^2d$",
            "updating once per episode costs little",
            largest_of_each_episode,
        ),
        Claim(
            "App. C: $\\sum_i\\sigma_i^2\\le2C_2I_n$",
            "holds when $\\sigma_f\\le1$",
            nb(3, 4),
            "$2\\sigma_f^2C_2I_n$, always",
            "none",
            sums_of_variances,
        ),
        Claim(
            "App. C: $C_1$ bounded because episodes do not expand with $T$",
            "holds when pairs stay bounded, with $H$ too; Gaussian noise and prior leave no bound",
            nb(3, 4) + ", " + nb(4, 6),
            "truncated sums: $\\sigma_f$ and a constant inside a logarithm; beside it $2H\\kappa$, "
            "$\\kappa=\\frac1H\\mathbb E\\log\\max_{j<H}\\lVert A^j\\rVert$",
            "unstable closed loops are where the printed constant explodes",
            constant_c1,
        ),
        Claim(
            "App. D: reward term $\\tilde O(\\sqrt{dHT})$",
            "does not hold",
            nb(3, 6),
            "$\\tilde O(d\\sqrt{HT})$, and $d\\sqrt T$ is seen; below the transition term",
            "wide reward features cost as much as wide transition features",
            reward_term_is_linear_in_d,
        ),
    ]
)

# %% [markdown]
# ## 4. The theorem, features, and the algorithm (Sections 3.4, 3.5, 4.1, 5.3, Appendix B)


# %%
def rate_in_T():
    frame = study.read("bump")
    x, blocks = study.blocks(frame, "steps", rule="psrl")
    return toy() or growth.bootstrap_slope(x[-5:], blocks[:, -5:], BLOCKS).high < 0.6


def rate_in_d_and_H():
    return toy() or (exponent("bump-dimension", "d", offset=2).high < 1.1 and exponent("bump-horizon", "H").high < 1.5)


def eigenvalue():
    A, reached, missed = np.diag([1.2, 0.9]), np.eye(2)[:, :1], np.eye(2)[:, 1:]
    growth_of = [lqr.largest_eigenvalues(A, B, np.eye(2), np.eye(1), 40)[[19, 39]] for B in (reached, missed)]
    one_system = growth_of[0][1] < 1.02 * growth_of[0][0] and growth_of[1][1] > 1000 * growth_of[1][0]
    mean, median = lqr.eigenvalues_over_a_prior(1.2, 60)
    one_control = abs(mean[59] / mean[39] / 1.2**20 - 1) < 0.05 and median[59] < 1.001 * median[19]
    three, _ = lqr.eigenvalues_over_a_prior(1.2, 60, controls=3)
    return one_system and one_control and three[59] < 1.01 * three[19]


def quadratic_rewards_explode():
    # median and mean regret of PSRL over 400 steps, with episodes of 5 and of 40
    spread = {}
    for horizon in (5, 40):
        problem = regret.Problem(horizon=horizon, prior_sd_A=0.4)
        total = regret.regrets(regret.learn(problem, "psrl", 400, seed=45), 400 // horizon).sum(axis=1)
        spread[horizon] = np.median(total), total.mean()
    return spread[40][0] < 3 * spread[5][0] and spread[40][1] > 1000 * spread[40][0]


def bias(way, points, number):
    """Mean of sampled minus true amplitude over draws of the truth, and its z-score."""
    true, sampled = features.amplitudes(way, number, points, generator)
    return (sampled - true).mean(), decomposition.z_score(sampled - true)


relearned = {points: bias("relearn", points, times * draws) for points, times in ((2, 10), (5, 10), (80, 1))}


def relearned_features_break_the_identity():
    broken = abs(bias("average", 5, draws)[1]) < 4 < min(relearned[5][1], -relearned[2][1])
    return broken and abs(relearned[80][0]) < 0.01


def size_of_the_bound():
    sizes = dict(states=4, controls=1, noise_sd=0.1, largest=1.0)
    printed, repaired = (bounds.useful_from(b, 200, **sizes) for b in (bounds.paper_bound, bounds.repaired_bound))
    return 5e13 < printed < 5e14 and 1e9 < repaired < 1e10


def a_sample_per_step_is_as_good(name):
    # regret of a sample per step minus PSRL's: below zero at first, never above it beyond error
    table = study.read(name)
    per_step, psrl = (study.blocks(table, "steps", rule=rule)[1] for rule in ("per-step", "psrl"))
    mean, half = growth.mean_interval(per_step - psrl)
    return mean[0] + half[0] < 0 and np.all(mean - half < 0) and np.all(-mean < 0.2 * psrl.mean(axis=0))


def commitment():
    prior = np.zeros(1), np.ones(1)
    corridor = chain.open_chance("psrl", 20, *prior)[0] == 0.5 and chain.open_chance("per-step", 20, *prior)[0] < 1e-6
    # the pushes of notebook 00, Section 3
    push = dict(states=1, controls=1, prior_sd_A=0.1, noise_sd=0.5, persistence=0.8)
    psrl, per_step = (
        regret.regrets(regret.learn(regret.Problem(**push), rule, draws, seed=52), 60).sum(axis=1).mean()
        for rule in ("psrl", "per-step")
    )
    return (
        corridor and 0.3 < per_step / psrl < 0.75 and (toy() or all(map(a_sample_per_step_is_as_good, ("lqr", "bump"))))
    )


def planning_floor():
    system, costs = (np.array([[1.0, 0.3], [0.0, 1.0]]), np.array([[0.0], [0.3]])), (np.eye(2), np.eye(1))
    best = lqr.riccati(*system, *costs, 20, 1.0).cost.mean(np.eye(2))
    K = regret.receding(system, costs, 20, 5)
    return lqr.value(*system, K, *costs, 1.0).mean(np.eye(2)) > best + 10


table(
    [
        Claim(
            "Theorem 1: $\\tilde O(H^{3/2}d\\sqrt T)$, growth in $T$",
            "holds, with bounded rewards and actions and the repaired steps",
            nb(4, 2) + ", " + nb(4, 3),
            "Theorem 1′: $\\tilde O(HR_{\\max}d\\sqrt{(1+\\kappa H)T})$, [04 §6](04_regret.ipynb)",
            "PSRL explores enough; no bonus needed",
            rate_in_T,
        ),
        Claim(
            "Theorem 1, growth in $d$ and $H$",
            "holds",
            nb(4, 4),
            "$d$ is needed; $H^{3/2}$ is not seen, and not needed if $\\kappa H$ is small",
            "dimension of the features is what to economise",
            rate_in_d_and_H,
        ),
        Claim(
            "Theorem 1 as a number",
            "says nothing for the paper's tasks",
            nb(4, 7),
            "hundreds of times the regret; Cartpole: below $R_{\\max}T$ after $10^{14}$ steps (repaired: at least "
            "$3\\cdot10^9$)",
            "read it as scaling, not as a guarantee",
            size_of_the_bound,
        ),
        Claim(
            "Remark of §3.4 and App. B: $\\lambda_1$ of an LQR is exponential in $H$",
            "for one system only if a growing mode cannot be controlled; for the mean over a Gaussian prior of $B$ if "
            "there are no more controls than independent modes with one real growth factor ($A=\\rho I$)",
            nb(4, 9),
            "one stabilisable system: converges to the Riccati solution; mean over the prior, one real growing mode: "
            "like $\\rho^H$, not $\\rho^{2H}$, with one control, like $H$ with two, bounded with more",
            "none",
            eigenvalue,
        ),
        Claim(
            "Remark of §3.4: earlier bounds for the LQR can be improved by this analysis",
            "does not follow: it needs bounded rewards, and an LQR's are not",
            ", ".join([nb(2, 3), nb(4, 4)]),
            "none; with a wide prior the expected regret itself explodes with $H$",
            "bounded rewards are not a formality",
            quadratic_rewards_explode,
        ),
        Claim(
            "§3.5: features, $\\tilde O(H^{3/2}d_\\phi\\sqrt T)$",
            "holds when $\\phi,\\psi$ are fixed, $\\phi$ is bounded, $d_\\psi=O(d_\\phi)$, rewards are bounded (known, "
            "or with the cut prior), and the model is linear with Gaussian noise in them",
            ", ".join([nb(3, 6), nb(4, 6)]),
            "even $\\tilde O(Hd_\\phi\\sqrt T)$: bound (a) of Theorem 1′, without $\\kappa$; for unbounded nonlinear "
            "features, such as $s^2$, the information gain can be exponential in $H$ and no polynomial bound is shown",
            "width of the penultimate layer is the dimension that counts",
            lambda: toy() or exponent("bandit", "d", offset=1).high < 1.1,
        ),
        Claim(
            "§3.5: ... and still holds when $\\phi$ is re-learned",
            "does not follow: the proof's first identity fails",
            "`psrl.theory.features`, checked in this cell",
            "the sampled optimum has a bias of either sign; in one example it vanishes with data ("
            + ", ".join(f"{value:+.2f} at {points} points" for points, (value, _) in relearned.items())
            + "); whether the rate survives is open",
            "the method is a heuristic here; evidence-based scales (notebook 07) help to keep it honest",
            relearned_features_break_the_identity,
        ),
        Claim(
            "§4.1: modified bound $\\tilde O(H^{3/2}\\sqrt{d\\,d_\\phi T})$",
            "does not hold",
            nb(3, 6),
            "$\\tilde O(H^{3/2}d_\\phi\\sqrt T)$ for $d_\\phi\\ge d$",
            "no discount for leaving targets without features; keep $d_\\phi$ near $d$, as the authors do",
            reward_term_is_linear_in_d,
        ),
        Claim(
            "§5.3: one model per episode instead of re-sampling at every step",
            "holds when rewards are many coordinated steps away",
            ", ".join([nb(4, 5), nb(4, 2), nb(4, 3), nb(0, 3)]),
            "where every step teaches, a sample per step is as good or better (a little in LQR and bump, by half in "
            "00 §3)",
            "one sample per episode is insurance: two to three times the regret of 00 §3, where every step teaches; "
            "decisive where rewards are many steps away",
            commitment,
        ),
        Claim(
            "§5.3: performance guaranteed from a Bayesian view",
            "holds when models are solved exactly and the posterior is exact",
            nb(4, 8),
            "planning a few steps ahead (MPC) adds a loss in every episode that data do not remove",
            "choose $\\tau$ by this loss; stop plans at the end of the episode",
            planning_floor,
        ),
    ]
)

# %% [markdown]
# Not checked here, because they are statements about other work: that the bound is the first of its kind for PSRL in
# continuous spaces, and that it equals the best known bound of optimistic methods (Section 1). The second compares
# different settings: linear-Gaussian transitions here, linear MDPs there.
#
# ## 5. The exponents in one picture
#
# The bounds carry logarithms, which a fitted power shows as a little more. Rows in $T$ are fitted over the last factor
# 16, in the three problems at their main size. While $T$ is not yet large the power in $T$ is higher, up to 0.61 over
# such a window and 0.56 over the last doubling of $T$ (all sizes: notebook 04, Section 4). The repaired exponent in $H$
# is 1 because these priors make systems unstable so rarely that $\kappa H\lesssim\log T$ (notebook 04, Section 6). For
# the LQR, whose costs are unbounded, it is a comparison only: the theorem does not cover it.

# %%
growth_rows = [("reward term: bandit, in $d-1$", exponent("bandit", "d", offset=1), 0.5, 1.0)]
growth_rows += [("bump, in $d-2$", exponent("bump-dimension", "d", offset=2), 1.0, 1.0)]
growth_rows += [("LQR, in $d$ (per coordinate)", exponent("lqr-dimension", "d", per=lambda x: x / 2), 1.0, 1.0)]
growth_rows += [
    ("bump, in $H$", exponent("bump-horizon", "H"), 1.5, 1.0),
    ("LQR, in $H$", exponent("lqr-horizon", "H"), 1.5, 1.0),
]
for label, name, where in (
    ("bandit, in $T$", "bandit", {"d": 16}),
    ("bump, in $T$", "bump", {}),
    ("LQR, in $T$", "lqr", {}),
):
    x, blocks = study.blocks(study.read(name), "steps", rule="psrl", **where)
    growth_rows.append((label, growth.bootstrap_slope(x[-5:], blocks[:, -5:], BLOCKS), 0.5, 0.5))

excess = max(measured.value - repaired for _, measured, _, repaired in growth_rows)
assert toy() or 0 < excess < 0.02

fig, ax = plt.subplots(figsize=(7.5, 4))
for y, (_, measured, printed, repaired) in enumerate(growth_rows):
    ax.plot([measured.low, measured.high], [y, y], color=COLOURS["psrl"], lw=3, solid_capstyle="butt")
    ax.plot(measured.value, y, "o", color=COLOURS["psrl"], label="measured, 95% interval" if y == 0 else None)
    ax.plot(printed, y - 0.22, "v", color="C1", label="paper" if y == 0 else None)
    ax.plot(repaired, y + 0.22, "^", color="C2", label="repaired" if y == 0 else None)
ax.set_yticks(range(len(growth_rows)), labels=[row[0] for row in growth_rows])
ax.invert_yaxis()
ax.set(xlabel="exponent of PSRL's Bayesian regret", xlim=(0, 1.65))
fig.suptitle("No estimate exceeds the repaired exponent by more than 0.02", x=0.01, ha="left", size=11)
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
save(
    fig,
    "05_exponents",
    inputs=sorted(study.FOLDER.glob("*.csv")),
    alt="Measured exponents of regret in T, d and H with intervals, beside the paper's and the repaired ones: no "
    "estimate is above the repaired exponent by more than 0.02; the bandit's exponent in d is one, above the half of "
    "Appendix D.",
)

# %% tags=["nbval-check-output"]
for label, measured, printed, repaired in growth_rows:
    print(f"{label.replace('$', ''):30s} measured {measured}   paper {printed:g}   repaired {repaired:g}")
    assert toy() or measured.low < repaired + 0.05, label
assert toy() or growth_rows[0][1].low > growth_rows[0][2]

# %% [markdown]
# ## What we learned
#
# 1. **The rate survives.** Bounded rewards and actions, Gaussian noise, linear models, exact posterior, exact planning:
#    then PSRL's Bayesian regret is $\tilde O(H^{3/2}d\sqrt T)$ and, if $\kappa H\lesssim\log T$ (systems hardly ever
#    unstable), $\tilde O(Hd\sqrt T)$.
# 2. **What the repairs cost.** A factor $\sqrt d$ where few outputs meet many features: the reward term and the
#    modified bound of Section 4.1. A factor $\sigma_f^2$ in a constant. Nothing in the order of the theorem.
# 3. **What the algorithm takes from the theory.** One sample per episode, as insurance; honest prior and noise scales;
#    few features; bounded rewards; plans that are long enough and know the end. It does not take a guarantee: features
#    are re-learned, plans are short and approximate, and the bound is vacuous at the paper's sample sizes.
#
# ## Where we differ from the paper and the authors' code
#
# The table is the difference. Where a statement is repaired, the repair is what the later notebooks mean when they say
# "the theory". The authors' code implements none of the analysis, so no row contradicts it.
