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
# # Lemma 1: how far does a displaced mean move the noise?
#
# The regret bound of the paper is polynomial in the episode length because noise smooths the future. Lemma 1 is the
# place where that happens: if two models predict next states that differ by a little, then the two *distributions* of
# the next state differ by a little, and by how much is a constant $C$ that the noise decides.
#
# **Question.** Which noises have such a constant, what is it, and does it depend on the dimension?
#
# **Answer in advance.** For Gaussian noise, which is all that the theorem uses, the lemma is right and its constant
# is the best possible. The general statement, for every symmetric noise and with a constant that depends on the
# variance only, needs a repair in three places; Section 6 states and proves four versions that hold.
#
# Runs in under half a minute. You need densities, the mean value theorem and the Cauchy-Schwarz inequality.

# %%
from math import pi, sqrt

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from psrl.figures import save, use_style
from psrl.notebook import interactive, scaled
from psrl.theory import noise

use_style()

# %% tags=["parameters"]
draws = scaled(60_000, 12_000)  # samples of noise where a cell simulates
dimensions = scaled(64, 16)  # largest dimension of a displaced noise vector
per_curve = scaled(110, 40)  # displacements on a curve

# %% [markdown]
# ## 1. The statement, and the Gaussian case
#
# **Lemma 1.** Let $\epsilon_1, \epsilon_2 \in \mathbb R^d$ have independent coordinates from one symmetric zero-mean
# distribution, and let $P_1, P_2$ be the distributions of $\mu_1 + \epsilon_1$ and $\mu_2 + \epsilon_2$. Then
#
# $$
# \|P_1 - P_2\| \;\le\; C\,\|\mu_1 - \mu_2\|_2 ,
# $$
#
# with $C$ a function of the variance of the noise only.
#
# Here $\|P_1 - P_2\| = \int |p_1(x) - p_2(x)|\,dx$, which lies between 0 (no displacement) and 2 (no overlap). We
# write $\delta = \mu_1 - \mu_2$ for the displacement and keep $d$ for the dimension.
#
# **Gaussian noise, $\epsilon \sim \mathcal N(0, \sigma^2 I_d)$.** The distribution does not change under rotations,
# so turn the first axis into the direction of $\delta$. The other coordinates are independent of the first and equal
# in $P_1$ and $P_2$; they integrate to one, and a one-dimensional integral remains. The densities cross once, half
# way:
#
# $$
# \|P_1 - P_2\| = 2\Big(2\,\Phi\Big(\tfrac{\|\delta\|_2}{2\sigma}\Big) - 1\Big)
# \;\le\; \sqrt{\tfrac 2\pi}\;\frac{\|\delta\|_2}{\sigma}
# \;<\; \frac{\|\delta\|_2}{\sigma} \quad (\text{Pinsker}).
# $$
#
# The first inequality is the tangent at 0 of a function that is concave on the right of 0. The last is what Pinsker's
# inequality $\|P_1-P_2\| \le \sqrt{2\,\mathrm{KL}}$ gives with $\mathrm{KL} = \|\delta\|_2^2 / 2\sigma^2$ nats; the
# remark in Appendix A makes the same comparison.


# %% tags=["nbval-check-output"]
def by_quadrature(shift):
    crossing = quad(lambda x: abs(norm.pdf(x - shift / 2) - norm.pdf(x + shift / 2)), -12, 12, points=[0])
    return crossing[0]


shift = np.array([0.01, 0.5, 1.0, 2.0, 5.0])
exact, paper, pinsker = noise.gaussian_l1(shift), sqrt(2 / pi) * shift, shift
print("shift / sigma   exact    sqrt(2/pi)   Pinsker")
for row in zip(shift, exact, paper, pinsker, strict=True):
    print("{:10.2f} {:10.4f} {:10.4f} {:10.4f}".format(*row))

assert np.allclose(exact, [by_quadrature(s) for s in shift], atol=1e-9)
assert np.all(exact <= paper) and np.all(paper < pinsker)
assert exact[0] / paper[0] > 0.9999, "the constant sqrt(2/pi)/sigma is attained by small displacements"

# %%
x = np.linspace(0, 5, 400)
fig, ax = plt.subplots(figsize=(7, 3.8))
ax.plot(x, x, "--", color="C5", label=r"Pinsker, $|\delta|/\sigma$")
ax.plot(x, sqrt(2 / pi) * x, color="C1", label=r"the paper, $\sqrt{2/\pi}\,|\delta|/\sigma$")
ax.plot(x, noise.gaussian_l1(x), color="C0", label=r"exact, $2(2\Phi(|\delta|/2\sigma)-1)$")
ax.axhline(2, color="0.3", lw=1, ls=":")
ax.text(4.95, 2.04, "no overlap left: 2", ha="right", va="bottom", fontsize=9)
ax.set(xlabel=r"displacement $|\delta|/\sigma$ (standard deviations)", ylabel=r"$\|P_1-P_2\|$ ($L_1$)", ylim=(0, 3.2))
ax.set_title("Gaussian noise: the paper's constant is the slope at zero, so it cannot be improved")
ax.legend(loc="lower right")
alt = (
    "Three curves from the origin: Pinsker's line is steepest, the paper's line is the tangent of the exact "
    "curve, which bends over towards 2."
)
save(fig, "01_gaussian", alt=alt)

# %% [markdown]
# The exact value depends on $\delta$ through its length alone, in every dimension. That can be simulated without a
# grid, because $\|P_1 - P_2\| = 2\,\mathbb E_{x\sim P_1}\big(1 - p_2(x)/p_1(x)\big)_+$.

# %% tags=["nbval-check-output"]
generator = np.random.default_rng(1)
for d in (1, 4, dimensions):
    delta = generator.standard_normal(d)
    delta /= np.linalg.norm(delta)
    sample = generator.standard_normal((draws, d))
    overlap = 2 * np.clip(-np.expm1(sample @ delta - 1 / 2), 0, None)  # log p2/p1 = <x, delta> - |delta|^2 / 2
    error = overlap.std() / sqrt(draws)
    assert abs(overlap.mean() - noise.gaussian_l1(1.0)) < 4 * error
print(f"|delta| = sigma, any dimension, any direction: {noise.gaussian_l1(1.0):.4f}")

# %% [markdown]
# ## 2. Is the constant a function of the variance?
#
# Appendix A treats one dimension first. **Case 1** is a unimodal density. Its argument is short and right: the
# displaced densities cross in the middle only, so
#
# $$
# \|P_1-P_2\| = 2\int_{-|\delta|/2}^{|\delta|/2} p(z)\,dz \;\le\; 2\,p_{\max}\,|\delta| ,
# $$
#
# and $2p_{\max}$ is the slope at zero. The step that needs care is the sentence after it, that $p_{\max}$ depends on
# the variance. For *one shape* it does: stretching a noise by $\sigma$ divides its peak by $\sigma$, so
# $C = c_{\text{shape}}/\sigma$. Between shapes it does not. To see only the shape, all our families have variance 1:
#
# | family | density | why it is here |
# |---|---|---|
# | uniform | flat on $[-\sqrt3, \sqrt3]$ | jumps |
# | Gauss | $\varphi(x)$ | the paper's |
# | t3 | Student, 3 degrees of freedom, scaled | heavy tails |
# | Laplace | $e^{-\sqrt2\,\lvert x\rvert}/\sqrt2$ | a corner |
# | two Gaussians | $\tfrac12\mathcal N(\pm 0.9,\,0.19)$ | two modes |
# | comb | $\varphi(x)(1+\cos\omega x)$, normalised | many modes |
# | spike | $\propto\lvert x\rvert^{-1/2}$ on $[-\sqrt5,\sqrt5]$ | unimodal, infinite peak |


# %%
def overlap_panel(ax, family, shift):
    """Both densities with the area between them, whose size is the distance."""
    x = np.linspace(-4, 4, 602)  # an even number of points, so that no one hits the spike
    left, right = family.density(x + shift / 2), family.density(x - shift / 2)
    ax.fill_between(x, left, right, color="C1", alpha=0.35, lw=0)
    ax.plot(x, left, color="C0", lw=1.2)
    ax.plot(x, right, color="C2", lw=1.2)
    ax.set(ylim=(0, 1.75), xlim=(-4, 4))
    ax.set_title(rf"{family.name}: $\|P_1-P_2\|$ = {family.l1(shift):.2f}", fontsize=10)


shown = [noise.uniform(), noise.gauss(), noise.laplace(), noise.spike(), noise.mixture(), noise.comb(8.0)]
fig, axes = plt.subplots(2, 3, figsize=(9.5, 4.8), sharex=True, sharey=True)
for ax, family in zip(axes.flat, shown, strict=True):
    overlap_panel(ax, family, 0.4)
fig.supxlabel("next state (standard deviations of the noise)", fontsize=10)
fig.supylabel("density", fontsize=10)
fig.suptitle("One variance, one displacement (0.4), six distances: the shaded area", x=0.02, ha="left", fontsize=11)
alt = (
    "Six small panels, each with a density and its copy displaced by 0.4; the shaded area between them differs "
    "from family to family, from 0.23 for the uniform to 1.30 for the comb."
)
save(fig, "01_shift", alt=alt)

# %% [markdown]
# Move the displacement yourself (the slider shows up in a live session; the picture above is one position of it).
# Watch the comb: at $\delta = 2\pi/\omega$ the teeth meet again.

# %%
if interactive():
    from IPython.display import display
    from ipywidgets import FloatSlider, interact

    @interact(family={f.name: f for f in noise.families()}, shift=FloatSlider(0.4, min=0.01, max=3, step=0.01))
    def explore(family, shift):
        fig, ax = plt.subplots(figsize=(6, 3.2))
        overlap_panel(ax, family, shift)
        plt.close(fig)
        display(fig)


# %% [markdown]
# Now the constants. Besides $2p_{\max}$ we print the two numbers on which Section 6 builds: the **total variation**
# $V(p) = \int |p'(x)|\,dx$ (a jump counts with its height) and the root of the **Fisher information**
# $I(p) = \int p'(x)^2/p(x)\,dx$. The last column is measured: the largest $\|P_1-P_2\|/|\delta|$ on a grid of
# displacements.

# %% tags=["nbval-check-output"]
shifts = np.geomspace(1e-3, 6, per_curve // 2)
print("variance 1       2 p_max        V    sqrt I   measured")
for family in noise.families():
    worst = np.max(family.l1(shifts) / shifts)
    row = (2 * family.p_max, family.variation, sqrt(family.fisher), worst)
    print(f"{family.name:14s}" + "".join(f"{value:10.3f}" for value in row))
    assert family.variation <= sqrt(family.fisher) + 1e-9
    if np.isfinite(family.variation):
        assert worst <= family.variation + 1e-6 and worst > 0.999 * family.variation

# %% [markdown]
# Three readings.
#
# * **Different shapes, different constants.** At variance 1 the unimodal constants run from 0.577 (uniform) over
#   0.798 (Gauss) and 1.273 (t3) to 1.414 (Laplace).
# * **No upper limit.** The spike has variance 1 and one mode, and no constant at all: its distance is
#   $2\sqrt{|\delta|/(2\sqrt5)}$, so the ratio to $|\delta|$ grows without bound as $\delta\to0$.
# * **But a lower limit.** Among densities below $p_{\max}$ the least variance is that of the uniform one (mass moved
#   towards the middle until the ceiling stops it), so $\sigma^2 \ge 1/(12\,p_{\max}^2)$ and
#   $2p_{\max}\ge 0.577/\sigma$: the uniform noise is the kindest, in one dimension.
#
# For the two families that are not unimodal the measured constant exceeds $2p_{\max}$; it equals $V$ for all with
# finite $V$. That is the subject of Section 3.

# %% tags=["nbval-check-output"]
constants = {family.name: 2 * family.p_max for family in noise.families()}
unimodal = ["uniform", "Gauss", "t3", "Laplace"]
assert np.round([constants[name] for name in unimodal], 3).tolist() == [0.577, 0.798, 1.273, 1.414]
assert min(constants.values()) == constants["uniform"]
tiny = np.array([1e-2, 1e-4, 1e-6])
print("spike, ratio at 1e-2, 1e-4, 1e-6:", np.round(noise.spike().l1(tiny) / tiny, 1).tolist())
assert np.allclose(noise.spike().l1(tiny), 2 * np.sqrt(tiny / (2 * sqrt(5))))

# %%
grid = np.geomspace(3e-3, 5, per_curve)
fig, ax = plt.subplots(figsize=(8, 4.2))
for family, colour in zip(noise.families()[::-1], ["C6", "C4", "C3", "C1", "C2", "C0", "C5"], strict=True):
    ax.plot(grid, family.l1(grid) / grid, color=colour, label=family.name)
guide = np.array([2e-2, 1e-1])
ax.plot(guide, 1.6 * guide**-0.5, "k:", lw=1)
ax.text(5e-2, 7.6, r"slope $-1/2$", fontsize=9)
ax.set(xscale="log", yscale="log", xlabel=r"displacement $|\delta|$ (standard deviations)", ylim=(0.3, 20))
ax.set(ylabel=r"$\|P_1-P_2\| \,/\, |\delta|$ (per standard deviation)")
ax.set_yticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
ax.set_title("Same variance, different constants: the shape of the noise decides")
ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
alt = (
    "Ratio of distance to displacement against displacement for seven noises of variance 1: most level off at "
    "different constants between 0.58 and 5.2 for small displacements, the spike keeps growing with slope minus "
    "one half."
)
save(fig, "01_families", alt=alt)

# %% [markdown]
# ## 3. Case 2: densities with several modes
#
# For a density that is not unimodal, Appendix A takes a $C_0$ such that $p_2$ decreases beyond
# $(\mu_1+\mu_2)/2 + C_0|\delta|$, bounds the integrand by $p_{\max}$ before that point, and arrives at
#
# $$
# \|P_1-P_2\| \;\le\; 2\,(C_0+1)\,p_{\max}\,|\delta| .
# $$
#
# The inequality holds; the question is what $C_0$ is. Two things happen.
#
# **$C_0$ depends on $\delta$.** If the last mode of the noise is at $m$, the point must lie beyond it:
# $C_0|\delta| \gtrsim m$, so $C_0 \approx m/|\delta|$. Then the bound tends to $2\,m\,p_{\max}$ instead of 0 as
# $\delta\to0$, and it is no Lipschitz bound.
#
# **$C_0$ need not exist.** That a density integrates to one does not make it decrease in the end. The comb
# $\varphi(x)(1+\cos\omega x)$ returns to zero and rises again in every period, for ever.
#
# We measure the least $C_0$ that makes the argument work, namely $p_2\ge p_1$ beyond the point (which is weaker than
# "decreasing").

# %% tags=["nbval-check-output"]
bimodal, comb = noise.mixture(0.9), noise.comb(8.0)
gaps = np.array([1.0, 0.3, 0.1, 0.03, 0.01])
least = np.array([noise.smallest_c0(bimodal, gap) for gap in gaps])
print("two Gaussians: |delta|, least C0, C0 |delta|, Case 2 bound, exact distance")
for gap, c0 in zip(gaps, least, strict=True):
    bound = 2 * (c0 + 1) * bimodal.p_max * gap
    print(f"{gap:8.2f} {c0:9.2f} {c0 * gap:9.3f} {bound:9.3f} {bimodal.l1(gap):9.4f}")
    assert bimodal.l1(gap) <= bound  # true, but it does not vanish with delta
assert np.allclose(least[1:] * gaps[1:], 0.9, atol=0.01), "C0 = m / |delta| with the mode at m = 0.9"
assert noise.smallest_c0(comb, 0.1) == np.inf, "the comb never stops rising"

# %%
some = np.geomspace(0.01, 1.2, per_curve // 3)
c0 = np.array([noise.smallest_c0(bimodal, gap) for gap in some])
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8))
left.loglog(some, c0, color="C3")
left.loglog(some, 0.9 / some, "k:", lw=1)
left.text(0.06, 22, r"$m/|\delta|$: slope $-1$", fontsize=9)
left.set(xlabel=r"displacement $|\delta|$ (standard deviations)", ylabel=r"least $C_0$ for Case 2 (no unit)")
left.set_title(r"$C_0$ grows like $1/|\delta|$ ...")
right.loglog(some, 2 * (c0 + 1) * bimodal.p_max * some, color="C3", label=r"Case 2, $2(C_0+1)p_{\max}|\delta|$")
right.loglog(some, bimodal.variation * some, "--", color="C2", label=r"repaired, $V(p)\,|\delta|$")
right.loglog(some, bimodal.l1(some), color="C0", label="exact")
right.set(xlabel=r"displacement $|\delta|$ (standard deviations)", ylabel=r"$\|P_1-P_2\|$ ($L_1$)")
right.set_title("... so the bound does not vanish")
right.legend(loc="lower right")
alt = (
    "Left: the least C0 falls with slope minus one in the displacement. Right: the Case 2 bound stays near 0.8 "
    "while the exact distance and V times the displacement go to zero together."
)
save(fig, "01_case2", alt=alt)

# %% [markdown]
# Could another multiple of $p_{\max}$ do? No. The comb keeps its variance (1) and its peak ($2p_{\max} = 1.596$)
# whatever $\omega$, while its teeth become steeper. Displaced by half a tooth, $|\delta| = \pi/\omega$, the teeth
# fill the gaps and the distance is about $4/\pi$, whence a ratio of $4\omega/\pi^2$; the supremum, reached as
# $\delta\to0$, is $V(p)\approx 2\omega/\pi$ (the mean of $|\omega\sin\omega x|$). Its Fisher information is
# $1+\omega^2$ up to $e^{-\omega^2/2}$.

# %% tags=["nbval-check-output"]
frequencies = np.array([8.0, 16.0, 32.0, 64.0, 128.0])
combs = [noise.comb(w) for w in frequencies]
half_tooth = np.array([c.l1(pi / w) * w / pi for c, w in zip(combs, frequencies, strict=True)])
variation = np.array([c.variation for c in combs])
print("omega       2 p_max   half tooth      V    sqrt I")
for w, c, ratio in zip(frequencies, combs, half_tooth, strict=True):
    print(f"{w:5.0f} {2 * c.p_max:12.3f} {ratio:12.2f} {c.variation:9.2f} {sqrt(c.fisher):9.2f}")
assert np.allclose(half_tooth, 4 * frequencies / pi**2, rtol=0.02)
assert np.allclose(variation, 2 * frequencies / pi, rtol=0.02)
assert np.ptp([c.p_max for c in combs]) < 1e-9

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.7), width_ratios=[1.25, 1])
x = np.linspace(-3, 3, 600)
left.plot(x, combs[0].density(x), color="C0", lw=1.2, label=r"comb, $\omega=8$")
left.plot(x, combs[0].density(x - pi / 8), color="C1", lw=1.2, label="displaced by half a tooth")
left.plot(x, norm.pdf(x), color="0.3", ls=":", label="Gauss")
left.set(xlabel="state (standard deviations)", ylabel="density", ylim=(0, 1.1))
left.set_title("Half a tooth fills the gaps")
left.legend(loc="upper center", ncol=2, columnspacing=1)
right.loglog(frequencies, [sqrt(c.fisher) for c in combs], "s--", color="C5", ms=4, label=r"$\sqrt{I}$")
right.loglog(frequencies, variation, "o-", color="C2", ms=4, label=r"$V$, the supremum")
right.loglog(frequencies, half_tooth, "^-", color="C0", ms=4, label="half a tooth")
right.loglog(frequencies, [2 * c.p_max for c in combs], "-", color="C1", label=r"$2p_{\max}$")
right.set(xlabel=r"teeth $\omega$ (radians per standard deviation)", ylim=(1, 400), ylabel=r"$\|P_1-P_2\|/|\delta|$")
right.set_xticks(frequencies, [f"{w:.0f}" for w in frequencies])
right.minorticks_off()
right.legend(loc="upper left")
right.set_title(r"No multiple of $p_{\max}$ bounds the ratio")
alt = (
    "Left: a Gaussian comb and its copy displaced by half a tooth, each filling the gaps of the other. Right: the"
    " ratio of distance to displacement at half a tooth lies below V, which lies below root I; all three grow "
    "linearly with the number of teeth, while twice the peak stays at 1.6."
)
save(fig, "01_comb", alt=alt)

# %% [markdown]
# ## 4. The dimension
#
# For $d\ge2$ the appendix rotates the last axis into the direction of $\delta$ and claims (its equation (16)) that
# the $d$-dimensional distance is that of the **marginals** along the new axis. Take the simplest test: uniform noise
# on a cube, for which the exact distance is a product,
#
# $$
# \|P_1-P_2\| = 2\Big(1 - \prod_{j=1}^d \big(1 - |\delta_j|/2\sqrt3\big)_+\Big).
# $$
#
# Along an axis this is the one-dimensional value. Along the diagonal, $\delta_j = |\delta|/\sqrt d$, its slope at
# zero is $\sqrt d\;\cdot 2p_{\max}$. A marginal never exceeds the joint distance (throwing information away cannot
# help to tell two laws apart), so equation (16) would need equality where only "$\ge$" is true.

# %% tags=["nbval-check-output"]
step, cube = 1e-4, noise.uniform()
print("dimension   joint / (2 p_max |delta|)   marginal / (2 p_max |delta|)")
for d in (1, 2, 4, 16, 64):
    joint = noise.cube_l1(np.full(d, step / sqrt(d))) / (cube.variation * step)
    marginal = noise.cube_diagonal_peak(d) / cube.p_max
    print(f"{d:9d} {joint:20.3f} {marginal:28.3f}")
    assert 0.98 * sqrt(d) < joint <= sqrt(d) + 1e-9
    assert marginal <= sqrt(d) + 1e-12 and marginal < 1.42

# in dimension 2 the marginal is a triangle and happens to agree, at every displacement: dimension 2 shows nothing
for t in (0.01, 1.0, 4.0):
    triangle = 2 * (1 - (1 - t / (2 * sqrt(6))) ** 2)
    assert abs(noise.cube_l1(np.full(2, t / sqrt(2))) - triangle) < 1e-12

# %% [markdown]
# In units of $2p_{\max}$ the true slope grows like $\sqrt d$; the marginal's stays below 1.42 and tends to the
# Gaussian's. Is the growth a property of high dimension, or of the uniform noise? For a smooth density the slope in
# direction $u$ is $\mathbb E|\langle u, s(\epsilon)\rangle|$, where $s = p'/p$ is the score: the derivative of
# $p(x - tu)$ in $t$, integrated in absolute value. Along the diagonal this is a normalised sum of independent scores,
# of variance $I(p)$, so it stays below $\sqrt{I}$ and tends to $\sqrt{2I/\pi}$ by the central limit theorem. The
# uniform's score is two spikes at its jumps, and its $I$ is infinite: that is what makes the difference.

# %%
generator = np.random.default_rng(2)
size, root2 = (draws, dimensions), sqrt(2)
laplace_score = root2 * np.sign(generator.laplace(size=size))
t = generator.standard_t(3, size=size) / sqrt(3)
slopes = {"Laplace": noise.score_slope(laplace_score), "t3": noise.score_slope(4 * t / (1 + t**2))}
dims = np.arange(1, dimensions + 1)
for name, family in {"Laplace": noise.laplace(), "t3": noise.student()}.items():
    slope, error = slopes[name]
    assert np.all(slope <= sqrt(family.fisher) + 1e-9), "repair (iii): the constant sqrt(I) serves every dimension"
    assert abs(slope[0] - family.variation) < 4 * error[0] + 1e-9, "in one dimension the slope is V"
    assert abs(slope[-1] / sqrt(2 * family.fisher / pi) - 1) < 0.05, "and sqrt(2 I / pi) in many"

# %%
fig, ax = plt.subplots(figsize=(7.5, 4.2))
ax.loglog(dims, np.sqrt(dims) * cube.variation, color="C1", label="uniform, along the diagonal (exact)")
ax.loglog(
    dims,
    [2 * noise.cube_diagonal_peak(int(d)) for d in dims],
    "--",
    color="C1",
    label="uniform, equation (16): its marginal",
)
for (name, (slope, error)), colour in zip(slopes.items(), ["C3", "C2"], strict=True):
    ax.plot(dims, slope, color=colour, label=f"{name}, along the diagonal")
    ax.fill_between(dims, slope - 2 * error, slope + 2 * error, color=colour, alpha=0.3, lw=0)
ax.axhline(sqrt(2 / pi), color="C0", label="Gauss, every direction (exact)")
ax.axhline(root2, color="0.4", ls=":", lw=1.2, label=r"$\sqrt{I}$ of Laplace and t3")
ax.text(dims[-1], 0.72 * np.sqrt(dims[-1]) * cube.variation, r"slope $1/2$", ha="right", fontsize=9)
ax.set(xlabel="dimension $d$", ylabel=r"slope of $\|P_1-P_2\|$ at zero (per standard deviation)", ylim=(0.5, 7))
ticks = [d for d in (1, 2, 4, 8, 16, 32, 64) if d <= dimensions]
ax.set_xticks(ticks, map(str, ticks))
ax.set_yticks([0.5, 1, 2, 5], ["0.5", "1", "2", "5"])
ax.minorticks_off()
ax.set_title(r"Jumps make the constant grow like $\sqrt{d}$; smooth noise does not")
ax.legend(loc="upper left")
alt = (
    "Slope of the distance at zero against the dimension: for uniform noise along the diagonal it grows like the "
    "square root of the dimension, for Laplace, t3 and Gaussian noise it stays between 0.8 and 1.41, and the "
    "marginal of the uniform levels off near 0.8."
)
save(fig, "01_dimension", alt=alt)

# %% [markdown]
# ## 5. Where the rotation fails: uncorrelated is not independent
#
# The proof says: after a rotation the covariance is still $\sigma^2 I_d$, *therefore* the new coordinates are
# independent, since dependent ones could only be related linearly. The first half is right for every noise; the
# second holds for Gaussian vectors. Take $d=2$ and turn by an angle $\theta$,
# $y_1 = \epsilon_1\cos\theta + \epsilon_2\sin\theta$, $y_2 = -\epsilon_1\sin\theta + \epsilon_2\cos\theta$.
# Independent coordinates would have uncorrelated squares. With $\kappa = \mathbb E\epsilon^4 - 3$ (variance 1) and
# fourth cumulants, which add for independent terms,
#
# $$
# \mathrm{Cov}(y_1^2, y_2^2) = 2\kappa\cos^2\theta\,\sin^2\theta = \tfrac{\kappa}{2}\sin^2 2\theta, \quad
# \mathrm{Var}(y_1^2) = 2 + \kappa\,(1 - \tfrac12 \sin^2 2\theta),
# $$
#
# $$
# \mathrm{corr}(y_1^2, y_2^2) = \frac{\kappa\,\sin^2 2\theta}{4 + \kappa\,(2 - \sin^2 2\theta)}
# \;=\; \frac{\kappa}{\kappa+4}\ \text{ at } 45^\circ .
# $$
#
# This vanishes at every angle only if $\kappa = 0$. More is true (Bernstein; Darmois and Skitovich): i.i.d. noises
# that stay independent under one rotation that mixes them are Gaussian. So the rotation argument works exactly in the
# case that the paper uses.

# %% tags=["nbval-check-output"]
generator = np.random.default_rng(3)
plane = {
    "uniform": generator.uniform(-sqrt(3), sqrt(3), (20, draws, 2)),
    "Laplace": generator.laplace(scale=1 / root2, size=(20, draws, 2)),
    "Gauss": generator.standard_normal((20, draws, 2)),
}
kurtosis = {"uniform": -1.2, "Laplace": 3.0, "Gauss": 0.0}


def turned(points, degrees):
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return points @ np.array([[c, -s], [s, c]])


def square_correlation(points):
    """Mean and standard error over the 20 batches."""
    each = [np.corrcoef(np.square(batch).T)[0, 1] for batch in points]
    return np.mean(each), np.std(each, ddof=1) / sqrt(len(each))


for name, points in plane.items():
    after = turned(points, 45)
    mean, error = square_correlation(after)
    exact = noise.rotated_square_correlation(kurtosis[name], pi / 4)
    plain = np.corrcoef(after.reshape(-1, 2).T)[0, 1]
    print(f"{name:8s} at 45 degrees: correlation of squares {exact:+.4f} (exact)")
    assert abs(mean - exact) < 4 * error and abs(plain) < 4 / sqrt(20 * draws) * 1.5
assert noise.rotated_square_correlation(-1.2, pi / 4) == -1.2 / 2.8  # uniform: -3/7
assert noise.rotated_square_correlation(3.0, pi / 4) == 3 / 7  # Laplace: +3/7

# %%
fig, axes = plt.subplots(1, 4, figsize=(12, 3.5), width_ratios=[1, 1, 1, 1.25])
colours = {"uniform": "C1", "Laplace": "C3", "Gauss": "C0"}
for ax, (name, points) in zip(axes, plane.items(), strict=False):
    ax.plot(*turned(points[0, :500], 45).T, ".", ms=2.5, alpha=0.6, color=colours[name])
    ax.set(xlim=(-4, 4), ylim=(-4, 4), aspect="equal", xlabel=r"$y_1$ (standard deviations)")
    exact = noise.rotated_square_correlation(kurtosis[name], pi / 4)
    ax.set_title(f"{name}: corr of squares {exact:+.2f}", fontsize=10)
axes[0].set_ylabel(r"$y_2$ (standard deviations)")
angles = np.arange(0, 91, 7.5)
for name, points in plane.items():
    dense = np.linspace(0, 90, 181)
    axes[3].plot(dense, noise.rotated_square_correlation(kurtosis[name], np.radians(dense)), color=colours[name])
    measured = np.array([square_correlation(turned(points[:, :4000], angle)) for angle in angles])
    axes[3].errorbar(angles, measured[:, 0], 2 * measured[:, 1], fmt="o", ms=3, color=colours[name])
axes[3].set(xlabel=r"rotation angle $\theta$ (degrees)", xticks=[0, 45, 90], ylim=(-0.62, 0.62))
axes[3].set_ylabel(r"corr$(y_1^2, y_2^2)$")
axes[3].set_title("by angle (lines exact)", fontsize=10)
for name, height in {"uniform": -0.52, "Laplace": 0.5, "Gauss": 0.03}.items():
    axes[3].text(45, height, name, color=colours[name], fontsize=9, ha="center")
fig.suptitle(
    "After 45 degrees all three are uncorrelated; only the Gaussian is independent", x=0.02, ha="left", fontsize=11
)
alt = (
    "Noise turned by 45 degrees: the uniform fills a diamond, the Laplace noise reaches into the corners of a "
    "square, the Gaussian fills a disc. Right: the correlation of the squared coordinates against the angle is "
    "negative for the uniform, positive for Laplace and zero for the Gaussian."
)
save(fig, "01_rotation", alt=alt)

# %% [markdown]
# ## 6. Four statements that hold
#
# Let $p$ be the density of one coordinate.
#
# **(i) One dimension.** If $p$ has bounded variation $V(p) = \int|p'|$, then $\|P_1-P_2\| \le V(p)\,|\delta|$, and no
# smaller constant does. If $p$ is unimodal, $V(p) = 2p_{\max}$.
#
# *Proof.* $|p(x) - p(x-\delta)| \le \int_{x-\delta}^{x} |p'(t)|\,dt$. Integrate over $x$ and exchange the integrals:
# each $t$ is counted for the $x$ in an interval of length $|\delta|$. (With jumps, read $|p'(t)|dt$ as the variation
# measure of $p$.) Dividing by $\delta\to0$ gives $\int|p'|$ back, so the constant is best. A unimodal density rises
# by $p_{\max}$ and falls by $p_{\max}$. $\square$
#
# **(ii) Independent coordinates.** $\|P_1-P_2\| \le V(p)\,\|\delta\|_1 \le \sqrt d\;V(p)\,\|\delta\|_2$.
#
# *Proof.* Displace one coordinate after another. Between two neighbours only one factor of the product density
# changes, so their distance is the one-dimensional one, at most $V(p)|\delta_j|$ by (i). Add up with the triangle
# inequality, then Cauchy-Schwarz. The cube of Section 4 shows that $\sqrt d$ cannot be left out. $\square$
#
# **(iii) Finite Fisher information.** If $p$ is absolutely continuous, $\|P_1-P_2\| \le \sqrt{I(p)}\;\|\delta\|_2$ in
# every dimension.
#
# *Proof.* Let $q$ be the joint density and $s_j = p'(x_j)/p(x_j)$. Along the path $q(x - t\delta)$, $0\le t\le1$,
#
# $$
# \|P_1-P_2\| \le \int_0^1\!\!\int |\langle\delta, \nabla q(x - t\delta)\rangle|\,dx\,dt
# = \mathbb E|\langle\delta, s\rangle| \le \sqrt{\mathbb E\langle\delta, s\rangle^2} = \sqrt{I(p)}\|\delta\|_2,
# $$
#
# because the scores are independent with mean 0 and variance $I(p)$. $\square$
#
# **(iv) Gaussian.** $\|P_1-P_2\| = 2(2\Phi(\|\delta\|_2/2\sigma)-1) \le \sqrt{2/\pi}\,\|\delta\|_2/\sigma$ (Section
# 1). Here (iii) gives $\|\delta\|_2/\sigma$, Pinsker's constant: Cauchy-Schwarz costs the factor
# $\sqrt{\pi/2}\approx1.25$.
#
# For a noise of standard deviation $\sigma$, $V$ and $\sqrt I$ are divided by $\sigma$: this much of "depends on the
# variance" is general. The next cell tries to break (i), (ii) and (iii).

# %% tags=["nbval-check-output"]
generator = np.random.default_rng(4)
for family in noise.families():
    if np.isfinite(family.variation):
        assert np.all(family.l1(shifts) <= family.variation * shifts * (1 + 1e-6))  # (i)

moves = generator.standard_normal((2000, 8)) * generator.exponential(size=(2000, 1))
two_norm, one_norm = np.linalg.norm(moves, axis=1), np.abs(moves).sum(axis=1)
distance = noise.cube_l1(moves)
assert np.all(distance <= cube.variation * one_norm + 1e-12)  # (ii)
broken = np.mean(distance > cube.variation * two_norm)
print(f"uniform noise, 8 dimensions, random displacements: 2 p_max is too small for {100 * broken:.0f} % of them")
assert broken > 0.3

# (iii) for Laplace noise in d dimensions, by simulation of 2 E(1 - p2/p1)_+
for d in (2, 8):
    for delta in (np.full(d, 0.3), np.eye(d)[0]):
        start = generator.laplace(scale=1 / root2, size=(draws, d))
        log_ratio = root2 * (np.abs(start) - np.abs(start - delta)).sum(axis=1)
        sample = 2 * np.clip(-np.expm1(log_ratio), 0, None)
        assert sample.mean() - 4 * sample.std() / sqrt(draws) <= sqrt(noise.laplace().fisher) * np.linalg.norm(delta)

# %% [markdown]
# ## 7. What the paper needs from the lemma
#
# Sections 2.1 and 3.2 assume $P^k = \mathcal N(f^k, \sigma_f^2 I)$ and $P^* = \mathcal N(f^*, \sigma_f^2 I)$ with one
# $\sigma_f$. That is statement (iv): **nothing downstream of Lemma 1 changes**, and $C = \sqrt{2/\pi}/\sigma_f$. Two
# remarks for the reader who wants to use the bound.
#
# * $C$ grows like $1/\sigma_f$, and this factor does not show in $\tilde O(H^{3/2}d\sqrt T)$. The bound says
#   something ($< 2$) only for prediction errors below $2/C = \sqrt{2\pi}\,\sigma_f$.
# * Without noise there is no bound. The Reacher and the Pusher of the experiments, and the deterministic versions of
#   Cartpole and Pendulum, have $\sigma_f = 0$: the theorem is silent about them, and what helps there is the
#   regularity of the value, not the noise.

# %% tags=["nbval-check-output"]
print("sigma_f      C    says something for errors below")
for sigma in (1.0, 0.1, 0.01):
    C = sqrt(2 / pi) / sigma
    print(f"{sigma:7.2f} {C:7.2f} {2 / C:12.4f}")
    assert abs(2 / C - sqrt(2 * pi) * sigma) < 1e-12
    assert noise.gaussian_l1(2 / C, sigma) < 2  # the exact distance still says something beyond
# the stochastic Cartpole and Pendulum of the paper add noise of variance 0.01, sigma_f = 0.1

# %% [markdown]
# ## What we learned
#
# | part of Lemma 1 | verdict | where |
# |---|---|---|
# | Gaussian, $C=\sqrt{2/\pi}/\sigma$, any dimension | holds, best constant, $\sqrt{\pi/2}$ below Pinsker | Section 1 |
# | unimodal, one dimension, $C = 2p_{\max}$ | holds; $p_{\max}$ depends on the shape too | Section 2 |
# | not unimodal (Case 2) | $C_0\sim1/\lvert\delta\rvert$ or does not exist; $V(p)$ for $2(C_0+1)p_{\max}$ | Section 3 |
# | i.i.d. coordinates, $d\ge2$ | for Gaussians; else $\sqrt d\,V(p)$, or $\sqrt{I(p)}$ if smooth | Sections 4, 5 |
#
# The theorem uses the first row only. The lemma's wider claim, a polynomial dependence on $H$ for many noises,
# survives with (i) to (iii): every noise with finite Fisher information has a constant that is free of the dimension.
#
# ## Where we differ from the paper and the authors' code
#
# * We state Lemma 1 for Gaussian noise, and (i) to (iii) in place of "any symmetric noise, a constant of the
#   variance".
# * Appendix A places both means on the last axis by a rotation. A rotation can do that for the difference
#   $\mu_1-\mu_2$ only; a translation, which changes nothing, is needed as well.
# * Case 1 says $p_2(x) > p_1(x)$ right of the middle; for densities with flat parts (the uniform) it is "$\ge$", with
#   the same result.
# * Neither the algorithm nor its code ever computes $C$: the lemma serves the analysis alone.
