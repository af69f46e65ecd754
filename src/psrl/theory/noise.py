"""Lemma 1: how far, in L1, a displacement of its mean moves a noise distribution.

    ||P_1 - P_2|| = int |p(x - mu_1) - p(x - mu_2)| dx,   delta = mu_1 - mu_2,   always between 0 and 2

Families are symmetric about 0 with variance 1, so that what is left of the lemma's constant is the shape of
the noise. A noise of standard deviation sigma has the same distances at delta / sigma.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import comb as choose
from math import factorial, inf, pi, sqrt

import numpy as np
from scipy import stats
from scipy.special import erf

ROOT3, ROOT5 = sqrt(3.0), sqrt(5.0)
# Mixtures and combs live here up to a mass of 1e-32; a tooth of the comb with w = 128 gets about 330 points.
GRID = np.linspace(-12.0, 12.0, 160_001)


@dataclass(frozen=True)
class Family:
    """A symmetric density of variance 1 and the three numbers that may bound its displacement.

    ``variation`` is V(p) = int |p'| (jumps included), ``fisher`` is I(p) = int p'^2 / p, ``kurtosis`` the
    excess E x^4 - 3. ``mass(r)`` = P(|x| < r) is given for unimodal densities and yields their closed form.
    """

    name: str
    density: Callable[[np.ndarray], np.ndarray]
    p_max: float
    variation: float
    fisher: float
    kurtosis: float
    mass: Callable[[np.ndarray], np.ndarray] | None = None

    def l1(self, shift):
        """||P_1 - P_2|| for displacements ``shift`` [...]."""
        shift = np.abs(np.asarray(shift, dtype=float))
        if self.mass is not None:
            # Case 1 of Appendix A: unimodal densities cross in the middle only; 2 P(|x| < |delta|/2) is left
            return 2 * self.mass(shift / 2)
        return np.vectorize(lambda one: _quadrature(self.density, one), otypes=[float])(shift)


def gaussian_l1(distance, sd=1.0):
    """The exact value for N(mu_i, sd^2 I) in any dimension: 2 (2 Phi(|delta|_2 / 2 sd) - 1)."""
    return 2 * erf(np.asarray(distance) / (2 * sqrt(2) * sd))


def gauss():
    return Family("Gauss", stats.norm.pdf, 1 / sqrt(2 * pi), sqrt(2 / pi), 1.0, 0.0, lambda r: erf(r / sqrt(2)))


def uniform():
    """On [-sqrt 3, sqrt 3]: the jumps leave the variation finite and make the Fisher information infinite."""
    height = 1 / (2 * ROOT3)

    def density(x):
        return np.where(np.abs(x) <= ROOT3, height, 0.0)

    return Family("uniform", density, height, 2 * height, inf, -1.2, lambda r: np.minimum(r / ROOT3, 1.0))


def laplace():
    root2 = sqrt(2.0)

    def density(x):
        return np.exp(-root2 * np.abs(x)) / root2

    return Family("Laplace", density, 1 / root2, root2, 2.0, 3.0, lambda r: -np.expm1(-root2 * r))


def student():
    """Student's t, three degrees of freedom, over sqrt 3: I = 3 (nu+1)/(nu+3) = 2, no fourth moment."""

    def density(x):
        return (2 / pi) / np.square(1 + np.square(x))

    def mass(r):
        return (2 / pi) * (np.arctan(r) + r / (1 + np.square(r)))

    return Family("t3", density, 2 / pi, 4 / pi, 2.0, inf, mass)


def spike():
    """|x|^{-1/2} / (4 sqrt a) on [-a, a], a = sqrt 5: unimodal, variance 1, and no finite constant at all."""

    def density(x):
        size = np.abs(np.asarray(x, dtype=float))
        inside = np.divide(1.0, np.sqrt(size), out=np.full_like(size, inf), where=size > 0)
        return np.where(size <= ROOT5, inside / (4 * sqrt(ROOT5)), 0.0)

    # E x^4 = a^4 / 9 = 25/9
    return Family("spike", density, inf, inf, inf, 25 / 9 - 3, lambda r: np.minimum(np.sqrt(r / ROOT5), 1.0))


def mixture(separation=0.9):
    """Two equal Gaussians at +-separation whose width keeps the variance at 1: bimodal beyond sqrt(1/2)."""
    width = sqrt(1 - separation**2)

    def density(x):
        near, far = ((np.abs(x) - sign * separation) / width for sign in (1, -1))
        return (np.exp(-np.square(near) / 2) + np.exp(-np.square(far) / 2)) / (2 * width * sqrt(2 * pi))

    # the fourth cumulant of +-separation is -2 separation^4; Gaussian noise adds none
    p = density(GRID)
    return Family(
        "two Gaussians", density, p.max(), total_variation(p), fisher_information(p, GRID), -2 * separation**4
    )


def comb(frequency):
    """phi(x) (1 + cos w x), normalised: twice the Gaussian's peak whatever w, with w / 2 pi teeth per unit.

    For w >= 8 its variance is 1 and its excess kurtosis 0 up to w^4 exp(-w^2/2) < 1e-10.
    """
    tooth = np.exp(-(frequency**2) / 2)

    def density(x):
        return stats.norm.pdf(x) * (1 + np.cos(frequency * x)) / (1 + tooth)

    # p'^2/p = phi (x + w tan(w x/2))^2 (1 + cos w x), whose terms integrate in closed form
    fisher = 1 + frequency**2 / (1 + tooth)
    p = density(GRID)
    return Family(f"comb w={frequency:g}", density, p.max(), total_variation(p), fisher, 0.0)


def families():
    """One of each kind, in the order of the tables."""
    return [uniform(), gauss(), student(), laplace(), mixture(), comb(8.0), spike()]


def total_variation(p):
    """V(p) from values on a grid: never above the true one, and equal when the extrema are grid points."""
    return np.abs(np.diff(p)).sum()


def fisher_information(p, grid):
    """I(p) = int p'^2/p = 4 int ((sqrt p)')^2 from values on a grid; this form divides by no small p."""
    return 4 * np.sum(np.square(np.diff(np.sqrt(p))) / np.diff(grid))


def _quadrature(density, shift):
    gap = np.abs(density(GRID - shift / 2) - density(GRID + shift / 2))
    return np.trapezoid(gap, GRID)


def smallest_c0(family, shift):
    """The least C_0 of Case 2: p_2 >= p_1 where x > (mu_1 + mu_2)/2 + C_0 |delta|; infinite if there is none.

    Measured on the module's grid with the midpoint at 0, mu_2 = shift/2 and mu_1 = -shift/2.
    """
    x = GRID[GRID > 0]
    wrong = family.density(x - shift / 2) < family.density(x + shift / 2)
    if not wrong.any():
        return 0.0
    last = x[wrong][-1]
    # a density that still rises in the last tenth of the grid, where p < 1e-25, is taken to rise for ever
    return inf if last > 0.9 * x[-1] else last / shift


def cube_l1(shift, half_width=ROOT3):
    """Exact distance of uniform noise on a cube moved by ``shift`` [..., dim]: 2 (1 - the shared part)."""
    shared = np.clip(1 - np.abs(shift) / (2 * half_width), 0, None)
    return 2 * (1 - np.prod(shared, axis=-1))


def cube_diagonal_peak(dim):
    """Largest density of (x_1 + ... + x_dim)/sqrt(dim), uniform x_j of variance 1: the p' of equation (16).

    The sum of dim uniforms on [0, 1] has density sum_j (-1)^j C(dim, j) (x - j)_+^{dim-1} / (dim-1)!. It is
    evaluated at its centre dim/2 in exact integers, because the sum alternates.
    """
    terms = sum((-1) ** j * choose(dim, j) * (dim - 2 * j) ** (dim - 1) for j in range((dim + 1) // 2))
    density = terms / (2 ** (dim - 1) * factorial(dim - 1))
    return density * sqrt(dim) / (2 * ROOT3)


def score_slope(scores):
    """Slope at 0 of ||P_1 - P_2|| along the diagonal in dimensions 1..D, from ``scores`` [N, D] of the noise.

    The slope in direction u is E|<u, score>|. Returns estimates [D] and standard errors [D].
    """
    sums = np.abs(np.cumsum(scores, axis=1)) / np.sqrt(np.arange(1, scores.shape[1] + 1))
    return sums.mean(axis=0), sums.std(axis=0, ddof=1) / sqrt(len(scores))


def rotated_square_correlation(kurtosis, angle):
    """Correlation of y_1^2 and y_2^2 after rotating two i.i.d. noises of variance 1 by ``angle``.

    y_1 and y_2 are always uncorrelated. With kappa the excess kurtosis, the cumulant of (y_1, y_1, y_2, y_2)
    is kappa sin^2(2 angle) / 2, and Var(y_1^2) = 2 + kappa (1 - sin^2(2 angle) / 2).
    """
    bend = np.square(np.sin(2 * np.asarray(angle)))
    return kurtosis * bend / (4 + kurtosis * (2 - bend))
