"""Lemma 1: closed forms against quadrature and simulation, and the inequalities that bound them."""

import numpy as np
import pytest
from scipy.integrate import quad

from psrl.theory import noise

FAMILIES = {family.name: family for family in [*noise.families(), noise.comb(32.0)]}
SHIFTS = np.array([1e-3, 0.03, 0.2, 0.7, 1.5, 4.0])
every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
UNIMODAL = ["uniform", "Gauss", "t3", "Laplace", "spike"]


def integrate(function, edge, breaks):
    return quad(function, -edge, edge, points=breaks, limit=2000, epsabs=1e-11, epsrel=1e-11)[0]


def support(family):
    """Where the density lives, up to a negligible second moment (not for t3), and its irregular points."""
    edge = {"uniform": noise.ROOT3, "spike": noise.ROOT5, "Laplace": 30.0}.get(family.name, 12.0)
    breaks = np.linspace(-edge, edge, 161)[1:-1] if "comb" in family.name else [0.0]
    return edge, breaks


@every_family
def test_density_is_a_symmetric_law_of_variance_one(family):
    x = np.linspace(0.01, 3.0, 500)
    np.testing.assert_allclose(family.density(x), family.density(-x), rtol=1e-12)
    if family.name == "t3":
        total, second = (quad(lambda x, k=k: x**k * family.density(x), -np.inf, np.inf, limit=500)[0] for k in (0, 2))
    else:
        edge, breaks = support(family)
        total, second = (integrate(lambda x, k=k: x**k * family.density(x), edge, breaks) for k in (0, 2))
    assert total == pytest.approx(1, abs=1e-8)
    assert second == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("name", ["uniform", "Laplace", "Gauss", "two Gaussians", "comb w=8", "spike"])
def test_kurtosis_is_the_fourth_moment_less_three(name):
    edge, breaks = support(FAMILIES[name])
    fourth = integrate(lambda x: x**4 * FAMILIES[name].density(x), edge, breaks)
    assert fourth - 3 == pytest.approx(FAMILIES[name].kurtosis, abs=1e-6)


@pytest.mark.parametrize("name", UNIMODAL)
@pytest.mark.parametrize("shift", [0.05, 0.7, 2.0])
def test_unimodal_closed_form_is_the_integral(name, shift):
    family = FAMILIES[name]
    edge, _ = support(family)
    breaks = sorted({-edge + shift / 2, edge - shift / 2, -shift / 2, 0.0, shift / 2})

    def gap(x):
        return abs(float(family.density(x - shift / 2)) - float(family.density(x + shift / 2)))

    if name == "t3":
        numeric = 2 * quad(gap, 0, np.inf, limit=500)[0]
    else:
        numeric = integrate(gap, edge + shift / 2, breaks)
    assert family.l1(shift) == pytest.approx(numeric, rel=1e-6)


def test_gaussian_is_the_family_at_its_scale():
    np.testing.assert_allclose(noise.gaussian_l1(SHIFTS, 0.3), FAMILIES["Gauss"].l1(SHIFTS / 0.3), rtol=1e-12)


@pytest.mark.parametrize("dim", [1, 7, 40])
def test_gaussian_value_depends_on_the_distance_alone(dim):
    """Any dimension, any direction: ||P_1 - P_2|| = 2 E_1 (1 - p_2/p_1)_+ by simulation."""
    generator = np.random.default_rng(dim)
    delta = generator.standard_normal(dim)
    delta *= 0.9 / np.linalg.norm(delta)
    x = 0.6 * generator.standard_normal((200_000, dim))
    log_ratio = (x @ delta - 0.9**2 / 2) / 0.6**2
    sample = 2 * np.clip(-np.expm1(log_ratio), 0, None)
    assert abs(sample.mean() - noise.gaussian_l1(0.9, 0.6)) < 4 * sample.std() / np.sqrt(len(sample))


def test_gaussian_bounds_are_ordered():
    distance = np.linspace(0.01, 8, 200)
    exact = noise.gaussian_l1(distance, 1.3)
    paper, pinsker = np.sqrt(2 / np.pi) * distance / 1.3, distance / 1.3
    assert np.all(exact <= paper) and np.all(paper < pinsker)
    assert exact[0] / paper[0] > 0.9999  # the constant cannot be improved


@every_family
def test_repair_one_bounds_the_distance_and_is_its_slope(family):
    """(i): ||P_1 - P_2|| <= V(p) |delta|, with equality in the limit; and V <= sqrt(I) by Cauchy-Schwarz."""
    if np.isinf(family.variation):
        assert family.l1(1e-8) > 1e3 * 1e-8
        return
    ratio = family.l1(SHIFTS) / SHIFTS
    assert np.all(ratio <= family.variation * (1 + 1e-6))
    assert ratio[0] == pytest.approx(family.variation, rel=1e-3)
    assert family.variation <= np.sqrt(family.fisher) * (1 + 1e-9)


@pytest.mark.parametrize("name", UNIMODAL)
def test_variation_of_a_unimodal_density_is_twice_its_peak(name):
    assert FAMILIES[name].variation == pytest.approx(2 * FAMILIES[name].p_max)


def test_no_density_of_variance_one_is_flatter_than_the_uniform():
    assert all(family.p_max >= FAMILIES["uniform"].p_max for family in FAMILIES.values())


def test_grid_functionals_agree_with_closed_forms():
    p = FAMILIES["Gauss"].density(noise.GRID)
    assert noise.total_variation(p) == pytest.approx(np.sqrt(2 / np.pi), rel=1e-9)
    assert noise.fisher_information(p, noise.GRID) == pytest.approx(1, rel=1e-6)
    p = FAMILIES["comb w=32"].density(noise.GRID)
    # the kinks of sqrt(p) at its zeros cost the grid a little
    assert noise.fisher_information(p, noise.GRID) == pytest.approx(FAMILIES["comb w=32"].fisher, rel=3e-3)


def test_comb_grows_with_its_frequency_at_constant_peak_and_variance():
    combs = [noise.comb(w) for w in (8.0, 32.0, 128.0)]
    peaks = np.array([c.p_max for c in combs])
    np.testing.assert_allclose(peaks, peaks[0], rtol=1e-9)
    for w, c in zip((8.0, 32.0, 128.0), combs, strict=True):
        # averaging |sin| over a tooth: V -> 2w/pi; over half a period the distance is 4/pi, the ratio 4w/pi^2
        assert c.variation == pytest.approx(2 * w / np.pi, rel=0.02)
        assert c.l1(np.pi / w) * w / np.pi == pytest.approx(4 * w / np.pi**2, rel=0.02)


def test_c0_of_case_two_grows_like_one_over_the_displacement():
    mixture = noise.mixture(0.9)
    x = np.linspace(0.5, 1.2, 700_001)
    mode = x[np.argmax(mixture.density(x))]
    for shift in (0.3, 0.1, 0.03):
        assert noise.smallest_c0(mixture, shift) * shift == pytest.approx(mode, abs=2e-3)
    assert noise.smallest_c0(FAMILIES["comb w=8"], 0.1) == np.inf
    assert noise.smallest_c0(FAMILIES["Gauss"], 0.1) == 0


def test_cube_distance_by_simulation():
    generator = np.random.default_rng(0)
    shift = np.array([0.3, -0.8, 0.0, 1.1])
    x = generator.uniform(-noise.ROOT3, noise.ROOT3, (200_000, 4))
    outside = np.any(np.abs(x + shift) > noise.ROOT3, axis=1)
    assert abs(2 * outside.mean() - noise.cube_l1(shift)) < 4 * 2 * outside.std() / np.sqrt(len(x))


@pytest.mark.parametrize("dim", [1, 2, 4, 16, 64])
def test_cube_constant_is_root_dim_along_the_diagonal_and_one_along_an_axis(dim):
    tiny, slope = 1e-6, FAMILIES["uniform"].variation
    diagonal = noise.cube_l1(np.full(dim, tiny / np.sqrt(dim))) / tiny
    assert diagonal == pytest.approx(np.sqrt(dim) * slope, rel=1e-4)
    axis = np.zeros(dim)
    axis[0] = 0.4
    assert noise.cube_l1(axis) == pytest.approx(slope * 0.4)


def test_repair_two_bounds_the_cube_by_the_one_norm():
    shift = np.random.default_rng(1).normal(size=(500, 6))
    assert np.all(noise.cube_l1(shift) <= FAMILIES["uniform"].variation * np.abs(shift).sum(-1) + 1e-12)


def test_diagonal_marginal_peak():
    """Dimensions 1 and 2 by hand (uniform, triangle), the Gaussian limit, and a simulation in between."""
    assert noise.cube_diagonal_peak(1) == pytest.approx(FAMILIES["uniform"].p_max)
    assert noise.cube_diagonal_peak(2) == pytest.approx(1 / np.sqrt(6))
    assert noise.cube_diagonal_peak(120) == pytest.approx(FAMILIES["Gauss"].p_max, rel=2e-3)
    x = np.random.default_rng(2).uniform(-noise.ROOT3, noise.ROOT3, (400_000, 5)).sum(1) / np.sqrt(5)
    near = np.abs(x) < 0.05
    assert abs(near.mean() / 0.1 - noise.cube_diagonal_peak(5)) < 4 * near.std() / 0.1 / np.sqrt(len(x)) + 1e-3


@pytest.mark.parametrize("dim", range(1, 20))
def test_a_marginal_never_exceeds_the_joint_distance(dim):
    """Slopes along the diagonal: equation (16) sets them equal, which happens in dimensions 1 and 2 only."""
    joint, marginal = np.sqrt(dim) * FAMILIES["uniform"].variation, 2 * noise.cube_diagonal_peak(dim)
    if dim <= 2:
        assert marginal == pytest.approx(joint)
    else:
        assert marginal < 0.8 * joint


def test_score_slopes_of_laplace_noise_are_mean_absolute_sums_of_signs():
    signs = np.random.default_rng(3).choice([-1.0, 1.0], (100_000, 6))
    slope, error = noise.score_slope(np.sqrt(2) * signs)
    mean_absolute_sum = np.array([1, 1, 1.5, 1.5, 1.875, 1.875])  # of 1..6 fair signs
    exact = np.sqrt(2) * mean_absolute_sum / np.sqrt(np.arange(1, 7))
    assert np.all(np.abs(slope - exact) < 4 * error + 1e-9)
    assert np.all(exact <= np.sqrt(FAMILIES["Laplace"].fisher) + 1e-12)  # repair (iii)


@pytest.mark.parametrize("name", ["uniform", "Laplace", "Gauss"])
@pytest.mark.parametrize("degrees", [10, 45])
def test_correlation_of_squares_after_a_rotation(name, degrees):
    generator, angle = np.random.default_rng(4), np.radians(degrees)
    draw = {
        "uniform": lambda size: generator.uniform(-noise.ROOT3, noise.ROOT3, size),
        "Laplace": lambda size: generator.laplace(scale=1 / np.sqrt(2), size=size),
        "Gauss": generator.standard_normal,
    }[name]
    x = draw((20, 50_000, 2))
    y = np.square(x @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]))
    batches = np.array([np.corrcoef(batch.T)[0, 1] for batch in y])
    exact = noise.rotated_square_correlation(FAMILIES[name].kurtosis, angle)
    assert abs(batches.mean() - exact) < 4 * batches.std(ddof=1) / np.sqrt(len(batches))
    assert noise.rotated_square_correlation(FAMILIES[name].kurtosis, 0.0) == 0
