"""Section 3.5: what learning the features from the same data does to posterior sampling.

    y = w' phi_c(x) + eps,   phi_c(x) = (cos c x, sin c x),   frequency c unknown among a few, w ~ N(0, I_2)

The amplitude |w| is the largest value of the function, so it plays the part of an optimal value. If the model is drawn
from the true posterior, its amplitude has the same mean as the truth's: the identity that PSRL's analysis starts from.
Three ways to treat the features:

    known     c is given
    relearn   c is fitted to the data (best fit), then w is drawn as if c had been known: Section 4.1
    average   c is drawn from its posterior, then w given c: the exact posterior

Shapes: B draws of the truth, C frequencies, n points.
"""

import numpy as np

from psrl.config import ConfigError

WAYS = ("known", "relearn", "average")


def amplitudes(way, draws, points, generator, frequencies=tuple(range(1, 21)), noise_sd=0.5):
    """Amplitudes of the truth and of a sampled model, [B] each, after ``points`` observations at random places."""
    if way not in WAYS:
        raise ConfigError(f"way {way!r} is unknown; valid: {', '.join(WAYS)}")
    rates = np.asarray(frequencies, dtype=float)
    true = generator.integers(len(rates), size=draws)
    w = generator.standard_normal((draws, 2))
    x = generator.uniform(0, 2 * np.pi, (draws, 1, points)) * rates[:, None]  # [B, C, n]
    phi = np.stack([np.cos(x), np.sin(x)], axis=-1)  # [B, C, n, 2]
    y = np.einsum("bnf,bf->bn", phi[np.arange(draws), true], w) + noise_sd * generator.standard_normal((draws, points))
    # posterior of w given c: precision I + Phi'Phi / sigma^2; evidence of c: N(y; 0, Phi Phi' + sigma^2 I)
    precision = np.eye(2) + np.swapaxes(phi, -1, -2) @ phi / noise_sd**2
    pull = np.einsum("bcnf,bn->bcf", phi, y) / noise_sd**2
    mean = np.linalg.solve(precision, pull[..., None])[..., 0]
    if way == "known":
        chosen = true
    elif way == "relearn":
        residual = y[:, None] - np.einsum("bcnf,bcf->bcn", phi, mean)
        chosen = np.square(residual).sum(axis=-1).argmin(axis=-1)
    else:
        evidence = 0.5 * np.einsum("bcf,bcf->bc", pull, mean) - 0.5 * np.linalg.slogdet(precision)[1]
        # the largest of evidence plus Gumbel noise is a draw with probabilities proportional to exp(evidence)
        chosen = (evidence + generator.gumbel(size=evidence.shape)).argmax(axis=-1)
    rows = np.arange(draws)
    root = np.linalg.cholesky(np.linalg.inv(precision[rows, chosen]))
    sample = mean[rows, chosen] + np.einsum("bij,bj->bi", root, generator.standard_normal((draws, 2)))
    return np.linalg.norm(w, axis=-1), np.linalg.norm(sample, axis=-1)
