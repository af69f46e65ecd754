"""Bayesian linear regression on features (Section 4.1): posterior, exact samples, evidence.

    y = w^T phi(x) + eps,  eps ~ N(0, sigma^2),  w ~ N(0, Sigma_p)
    p(w | D) = N(sigma^-2 A^-1 Phi Y, A^-1),  A = sigma^-2 Phi Phi^T + Sigma_p^-1

Phi of the paper, D x n, is the transpose of the row-wise ``phi`` [B, n, D] here. All in float64; no inverse is formed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Posterior:
    """The posterior of B regressions with K outputs each; A and its factor are shared by the outputs.

    precision = A [B, D, D]; moment = sigma^-2 Phi Y [B, D, K]; factor = L with L L^T = A; mean [B, D, K].
    """

    precision: Tensor
    moment: Tensor
    factor: Tensor
    mean: Tensor
    noise_sd: float

    @classmethod
    def fit(cls, phi: Tensor, y: Tensor, prior_sd: float, noise_sd: float) -> "Posterior":
        """From rows phi [B, n, D] and targets y [B, n, K], with Sigma_p = prior_sd^2 I. Costs O(D^2 n + D^3)."""
        eye = torch.eye(phi.shape[-1], dtype=torch.float64, device=phi.device)
        prior = cls._from(eye.expand(len(phi), -1, -1) / prior_sd**2, y.new_zeros(1, dtype=torch.float64), noise_sd)
        return prior.update(phi, y)

    @classmethod
    def _from(cls, precision: Tensor, moment: Tensor, noise_sd: float) -> "Posterior":
        factor, failed = torch.linalg.cholesky_ex(precision)
        if failed.any():
            finite = precision.isfinite().all()
            worst = torch.linalg.cond(precision).max().item() if finite else math.inf
            raise ValueError(
                f"the posterior precision is not positive definite (condition number {worst:.1e}); "
                f"valid: finite features, and scales that keep it below about 1e15"
            )
        moment = moment.expand(*precision.shape[:-1], moment.shape[-1])
        return cls(precision, moment, factor, torch.cholesky_solve(moment, factor), noise_sd)

    def update(self, phi: Tensor, y: Tensor) -> "Posterior":
        """Add k rows while the features stay as they are: A + sigma^-2 phi^T phi, in O(D^2 k + D^3)."""
        scaled = phi.double() / self.noise_sd**2
        precision = self.precision + scaled.mT @ phi.double()
        return self._from(precision, self.moment + scaled.mT @ y.double(), self.noise_sd)

    def sample(self, generators: Sequence[torch.Generator]) -> Tensor:
        """One exact draw of w per trial [B, D, K]: mean + L^-T z has covariance (L L^T)^-1 = A^-1."""
        return self.mean + torch.linalg.solve_triangular(self.factor.mT, _normal(self.mean, generators), upper=True)

    def variance(self, phi: Tensor) -> Tensor:
        """Posterior variance of w^T phi at rows phi [B, n, D], without the noise: |L^-1 phi|^2, [B, n, 1]."""
        half = torch.linalg.solve_triangular(self.factor, phi.double().mT, upper=False)
        return half.square().sum(dim=1)[..., None]

    def trace(self) -> Tensor:
        """Trace of the posterior covariance of one output's weights, [B]: |L^-1|^2."""
        eye = torch.eye(self.mean.shape[1], dtype=torch.float64, device=self.mean.device)
        return torch.linalg.solve_triangular(self.factor, eye.expand_as(self.factor), upper=False).square().sum((1, 2))

    def noise(self) -> Tensor:
        """Noise sd of every output, [B, 1, K]."""
        return torch.full_like(self.mean[:, :1], self.noise_sd)

    def information_gain(self, prior_sd: float) -> Tensor:
        """I(y; w) of one output in nats, [B]: half the growth of log det A over the prior's."""
        size = self.mean.shape[1]
        log_det = 2 * self.factor.diagonal(dim1=1, dim2=2).log().sum(dim=1)
        return 0.5 * (log_det + size * math.log(prior_sd**2))


@dataclass(frozen=True)
class EvidencePosterior:
    """The same posterior with prior and noise sd of every output chosen by maximum evidence.

    One eigendecomposition Phi Phi^T = V diag(lambda) V^T serves all outputs and all scales: in its basis A is diagonal.
    basis = V [B, D, D]; eigenvalues [B, D, 1]; mean [B, D, K]; prior_sd, noise_sd [B, 1, K]; log_evidence [B, K].
    """

    basis: Tensor
    eigenvalues: Tensor
    mean: Tensor
    prior_sd: Tensor
    noise_sd: Tensor
    log_evidence: Tensor

    @classmethod
    def fit(cls, phi: Tensor, y: Tensor) -> "EvidencePosterior":
        """From rows phi [B, n, D] and targets y [B, n, K]."""
        phi, y = phi.double(), y.double()
        gram = phi.mT @ phi
        if not (gram.isfinite().all() and y.isfinite().all()):
            raise ValueError("features or targets are nan or inf; valid: finite ones, below about 1e150 in size")
        eigenvalues, basis = torch.linalg.eigh(gram)
        eigenvalues = eigenvalues.clamp_min(0)[..., None]
        projected = basis.mT @ (phi.mT @ y)
        power = y.square().sum(dim=1, keepdim=True)
        ridge = _maximise(lambda g: log_evidence(g, eigenvalues, projected, power, y.shape[1]), eigenvalues, y)
        noise_sd = _noise_variance(ridge, eigenvalues, projected, power, y.shape[1]).sqrt()
        evidence = log_evidence(ridge, eigenvalues, projected, power, y.shape[1])
        mean = basis @ (projected / (eigenvalues + ridge))
        return cls(basis, eigenvalues, mean, noise_sd / ridge.sqrt(), noise_sd, evidence[:, 0])

    def _variances(self) -> Tensor:
        """Diagonal of A^-1 in the eigenbasis, per output: [B, D, K]."""
        return 1 / (self.eigenvalues / self.noise_sd**2 + 1 / self.prior_sd**2)

    def sample(self, generators: Sequence[torch.Generator]) -> Tensor:
        """One exact draw of w per trial, [B, D, K]."""
        return self.mean + self.basis @ (self._variances().sqrt() * _normal(self.mean, generators))

    def variance(self, phi: Tensor) -> Tensor:
        """Posterior variance of w^T phi at rows phi [B, n, D], without the noise, [B, n, K]."""
        return (phi.double() @ self.basis).square() @ self._variances()

    def trace(self) -> Tensor:
        """Trace of the posterior covariance of the weights, mean over outputs, [B]."""
        return self._variances().sum(dim=1).mean(dim=-1)

    def noise(self) -> Tensor:
        return self.noise_sd


def log_evidence(ridge: Tensor, eigenvalues: Tensor, projected: Tensor, power: Tensor, rows: int) -> Tensor:
    """log N(y; 0, alpha^2 Phi^T Phi + sigma^2 I), [B, 1, K], at ridge = sigma^2 / alpha^2 and the best sigma^2 for it.

    -2 log p = n log(2 pi sigma^2) + sum_i log(1 + lambda_i / ridge) + q / sigma^2
    with q = y^T (Phi^T Phi / ridge + I)^-1 y, at sigma^2 = q / n
    """
    left = _left(ridge, eigenvalues, projected, power)
    variance = _noise_variance(ridge, eigenvalues, projected, power, rows)
    fit = torch.where(left / rows < variance, left / variance, rows)  # n, but where the variance is at its floor
    return -0.5 * (
        rows * torch.log(2 * math.pi * variance) + torch.log1p(eigenvalues / ridge).sum(1, keepdim=True) + fit
    )


# Below this share of the targets' variance, differences are rounding: float64 sums of squares carry no more.
_VARIANCE_FLOOR = 1e-12


def _left(ridge: Tensor, eigenvalues: Tensor, projected: Tensor, power: Tensor) -> Tensor:
    """y^T (Phi^T Phi / ridge + I)^-1 y"""
    return power - (projected.square() / (eigenvalues + ridge)).sum(dim=1, keepdim=True)


def _noise_variance(ridge: Tensor, eigenvalues: Tensor, projected: Tensor, power: Tensor, rows: int) -> Tensor:
    left = _left(ridge, eigenvalues, projected, power)
    return torch.maximum(left / rows, _VARIANCE_FLOOR * (1 + power / rows))


def _maximise(evidence, eigenvalues: Tensor, y: Tensor) -> Tensor:
    """The ridge with the largest evidence for every output, [B, 1, K]: a grid over 28 decades, then golden section."""
    grid = torch.linspace(math.log(1e-14), math.log(1e14), 113, dtype=torch.float64, device=y.device)
    largest = eigenvalues.amax(dim=1, keepdim=True).clamp_min(1e-300).log().expand(-1, -1, y.shape[-1])
    values = torch.stack([evidence((largest + point).exp()) for point in grid])
    best = grid[values.argmax(dim=0)] + largest
    low, high = best - (grid[1] - grid[0]), best + (grid[1] - grid[0])
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(40):
        left, right = high - golden * (high - low), low + golden * (high - low)
        rises = evidence(left.exp()) < evidence(right.exp())
        low, high = torch.where(rises, left, low), torch.where(rises, high, right)
    return ((low + high) / 2).exp()


def _normal(like: Tensor, generators: Sequence[torch.Generator]) -> Tensor:
    """Standard normals in the shape of ``like`` [B, ...], trial by trial from its own generator."""
    draws = [torch.randn(like.shape[1:], generator=g, dtype=like.dtype, device=like.device) for g in generators]
    return torch.stack(draws)
