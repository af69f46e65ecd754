"""The finite-horizon linear-quadratic problem of Appendix B, solved and evaluated exactly.

    s_{i+1} = A s_i + B u_i + eps,   eps ~ N(0, noise_sd^2 I),   cost_i = s_i' Q s_i + u_i' R u_i,   i = 1..H

The reward is minus the cost, so the value of the paper is minus the cost-to-go s' P_i s + c_i computed here,
and V_{H+1} = 0: no terminal cost. Policies are time-indexed, u_i = K_i s_i: with a finite horizon the best
action depends on the steps that remain. Arrays over steps are stacked first and 0-based, so ``P[0]`` is the
P_1 of the formulas and ``P[H]`` is zero.

Shapes: H horizon, S state, U control (A names the matrix here), ``...`` any leading batch of systems, which
broadcasts everywhere: one call solves a problem for every draw of (A, B).
"""

from typing import NamedTuple

import numpy as np
from scipy import stats


class CostToGo(NamedTuple):
    """Cost-to-go s' P_i s + c_i of a linear policy: ``P`` [H+1, ..., S, S], ``c`` [H+1, ...]."""

    P: np.ndarray
    c: np.ndarray

    def at(self, state, step=0):
        """Expected cost of the steps from ``step`` on, from ``state`` [..., S]: minus the paper's value."""
        return np.einsum("...i,...ij,...j->...", state, self.P[step], state) + self.c[step]

    def mean(self, covariance, step=0):
        """The same averaged over a zero-mean state with ``covariance`` [..., S, S]."""
        return np.einsum("...ij,...ji->...", self.P[step], covariance) + self.c[step]


class Solution(NamedTuple):
    """Optimal gains ``K`` [H, ..., U, S] and the cost-to-go they attain."""

    K: np.ndarray
    cost: CostToGo


def riccati(A, B, Q, R, horizon, noise_sd=0.0):
    """Solve by dynamic programming. A [..., S, S], B [..., S, U], Q [..., S, S] >= 0, R [..., U, U] > 0.

    The gains do not depend on the noise, only the constants do: the problem is certainty equivalent.
    """
    A, B, Q, R = (np.asarray(m, dtype=float) for m in (A, B, Q, R))
    P = np.broadcast_to(np.zeros_like(Q), np.broadcast_shapes(A.shape, Q.shape))
    gains = []
    for _ in range(horizon):
        # K_i = -(R + B' P_{i+1} B)^{-1} B' P_{i+1} A
        BtP = _t(B) @ P
        K = -np.linalg.solve(R + BtP @ B, BtP @ A)
        P = _backup(A, B, K, Q, R, P)
        gains.append(K)
    K = np.stack(gains[::-1])
    return Solution(K, value(A, B, K, Q, R, noise_sd))


def value(A, B, K, Q, R, noise_sd=0.0):
    """Exact cost-to-go of *given* gains K [H, ..., U, S] in a *given* system; nothing is optimised.

    Gains found for one system may be evaluated in another: V^*_k is ``value(A_star, B_star, K_k, ...)``.
    ``noise_sd`` is a scalar or broadcasts with the batch.
    """
    A, B, Q, R, K = (np.asarray(m, dtype=float) for m in (A, B, Q, R, K))
    batch = np.broadcast_shapes(*(m.shape[:-2] for m in (A, B, Q, R, K[0])), np.shape(noise_sd))
    P = np.zeros((len(K) + 1, *batch, *Q.shape[-2:]))
    c = np.zeros((len(K) + 1, *batch))
    for i in reversed(range(len(K))):
        P[i] = _backup(A, B, K[i], Q, R, P[i + 1])
        # the noise adds E[eps' P_{i+1} eps] = noise_sd^2 tr P_{i+1} at each step
        c[i] = c[i + 1] + np.square(noise_sd) * np.trace(P[i + 1], axis1=-2, axis2=-1)
    return CostToGo(P, c)


def simulate(A, B, K, Q, R, noise_sd, state, generator):
    """Roll out u_i = K_i s_i from ``state``: states [H+1, ..., S], controls [H, ..., U], costs [H, ...].

    The batches of systems, gains and ``state`` broadcast, so many rollouts of one system, or one rollout of
    each of many, are a single call.
    """
    A, B, K, state = (np.asarray(m, dtype=float) for m in (A, B, K, state))
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-2], K.shape[1:-2], state.shape[:-1], np.shape(noise_sd))
    state = np.broadcast_to(state, (*batch, A.shape[-1]))
    states, controls, costs = [state], [], []
    for gain in K:
        control = _apply(gain, state)
        costs.append(_square(Q, state) + _square(R, control))
        noise = np.asarray(noise_sd)[..., None] * generator.standard_normal(state.shape)
        state = _apply(A, state) + _apply(B, control) + noise
        states.append(state)
        controls.append(control)
    return np.stack(states), np.stack(controls), np.stack(costs)


def covariances(A, B, K, initial, noise_sd):
    """Second moments E[s_i s_i'] [H+1, ..., S, S] of the closed loop from ``initial`` = E[s_1 s_1']."""
    A, B, K, initial = (np.asarray(m, dtype=float) for m in (A, B, K, initial))
    moments = [initial]
    for gain in K:
        F = A + B @ gain
        noise = np.square(noise_sd)[..., None, None] * np.eye(A.shape[-1])
        moments.append(F @ moments[-1] @ _t(F) + noise)
    return np.stack(np.broadcast_arrays(*moments))


def largest_eigenvalues(A, B, Q, R, horizon):
    """lambda_1 of the optimal P_1 for episodes of length 1, ..., ``horizon``: [H, ...] (Appendix B).

    The recursion does not depend on time, so the P_1 of a short episode is a later P_i of a long one.
    """
    P = riccati(A, B, Q, R, horizon).cost.P
    return np.linalg.eigvalsh(P)[-2::-1, ..., -1]


def eigenvalues_over_a_prior(growth, horizon, controls=1):
    """Mean and median over b ~ N(0, I) of lambda_1 for s' = growth s + b . u + eps, Q = 1, R = I: two arrays [H].

    Only |b| matters, which has a chi distribution with ``controls`` degrees of freedom. The mean is an integral over
    log |b|: with one control, systems with a small b, which it hardly reaches, decide it.
    """
    length = stats.chi(controls)
    log_b = np.linspace(-40.0, np.log(10.0), 5001)
    b = np.append(np.exp(log_b), length.median())  # lambda_1 falls as |b| grows, so there it has its own median
    values = largest_eigenvalues([[growth]], b[:, None, None], np.eye(1), np.eye(1), horizon)
    density = length.pdf(b[:-1]) * b[:-1]  # of log |b|
    return np.trapezoid(values[:, :-1] * density, log_b, axis=-1), values[:, -1]


def stabilisable(A, B):
    """Whether controls reach every mode that does not decay by itself, [...] (the Hautus rank test)."""
    A, B = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    modes = np.linalg.eigvals(A)
    pencil = A[..., None, :, :] - modes[..., None, None] * np.eye(A.shape[-1])
    reach = np.broadcast_to(B[..., None, :, :], (*pencil.shape[:-1], B.shape[-1]))
    rank = np.linalg.matrix_rank(np.concatenate([pencil, reach], axis=-1))
    return np.all((rank == A.shape[-1]) | (np.abs(modes) < 1), axis=-1)


def _backup(A, B, K, Q, R, P):
    """One Bellman backup of a linear policy: Q + K'RK + (A+BK)' P (A+BK), symmetric and >= 0 by its form."""
    F = A + B @ K
    return Q + _t(K) @ R @ K + _t(F) @ P @ F


def _t(matrix):
    return np.swapaxes(matrix, -1, -2)


def _apply(matrix, vector):
    return (matrix @ vector[..., None])[..., 0]


def _square(matrix, vector):
    return np.einsum("...i,...ij,...j->...", vector, matrix, vector)
