"""Bayesian linear regression for a batch of draws of the truth, as the regret experiments need it.

    y = W' x + eps,   eps ~ N(0, noise_sd^2 I_K),   columns of W i.i.d. N(0, Sigma_p)       (Section 2.2, linear kernel)

Every output has the same posterior covariance Sigma_n (Section 2.2), so one matrix serves them all. It is kept
as a square root, Sigma_n = root root', and each row of data multiplies the root: O(D^2) per row, positive
definite by construction, and a posterior sample is one product. Tests hold it to the batch formula of Section 4.1.

Shapes: B draws of the truth, D features, K outputs.
"""

import numpy as np


class Posterior:
    """Posterior of the weights ``W`` [B, D, K] given the rows seen so far."""

    def __init__(self, draws, prior_sd, outputs, noise_sd):
        """``prior_sd`` [D] are the prior sds of the weights of each feature; the prior mean is zero."""
        prior_sd = np.asarray(prior_sd, dtype=float)
        self.noise_sd = float(noise_sd)
        self.mean = np.zeros((draws, len(prior_sd), outputs))
        self.root = np.tile(np.diag(prior_sd), (draws, 1, 1))

    def sd(self, x):
        """sigma_k(x) = |root' x|: posterior sd of each output at x [B, ..., D] -> [B, ...]."""
        x = np.asarray(x, dtype=float)
        flat = x.reshape(len(x), -1, x.shape[-1])
        return np.linalg.norm(flat @ self.root, axis=-1).reshape(x.shape[:-1])

    def sample(self, generator):
        """One draw of the weights from the posterior of every truth: [B, D, K]."""
        return self.mean + self.root @ generator.standard_normal(self.mean.shape)

    def update(self, x, y):
        """Condition on one row: features x [B, D], outputs y [B, K]. Returns sigma^2(x) before the update, [B]."""
        # v = root' x; Sigma x = root v; the predictive variance of y is |v|^2 + noise^2
        v = (x[:, None, :] @ self.root)[:, 0]
        variance = np.sum(v * v, axis=-1)
        total = variance + self.noise_sd**2
        cross = (self.root @ v[:, :, None])[:, :, 0]
        surprise = y - (x[:, None, :] @ self.mean)[:, 0]
        self.mean += cross[:, :, None] * (surprise / total[:, None])[:, None, :]
        # Sigma - Sigma x x' Sigma / total = root (I - c v v')^2 root'  with  c = 1 / (total + noise sqrt(total))
        shrink = 1.0 / (total + self.noise_sd * np.sqrt(total))
        self.root -= (cross * shrink[:, None])[:, :, None] * v[:, None, :]
        return variance

    def covariance(self):
        """Sigma_n [B, D, D]."""
        return self.root @ np.swapaxes(self.root, -1, -2)


def batch_posterior(X, Y, prior_sd, noise_sd):
    """Mean [D, K] and covariance [D, D] from all rows X [n, D], Y [n, K] at once, as Section 4.1 writes it."""
    # A = sigma^-2 Phi Phi' + Sigma_p^-1,  W | D ~ N(sigma^-2 A^-1 Phi Y, A^-1)
    precision = X.T @ X / noise_sd**2 + np.diag(1.0 / np.square(prior_sd))
    return np.linalg.solve(precision, X.T @ Y) / noise_sd**2, np.linalg.inv(precision)


def gp_posterior(X, y, x, kernel, noise_sd):
    """The same as a Gaussian process (Section 2.2): means [m] and covariance [m, m] at the points x [m, D].

    The paper's line for the covariance ends in K(X, x); it must be K(X, x'), as here, to be a function of both.
    """
    gram = kernel(X, X) + noise_sd**2 * np.eye(len(X))
    cross = kernel(X, x)
    solved = np.linalg.solve(gram, cross)
    return solved.T @ y, kernel(x, x) - cross.T @ solved
