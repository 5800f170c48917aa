"""Fits on a grid: a kernel and a mean that few observations of a changing reward make likely."""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from sparq_sim.arrays import Points, Values
from sparq_sim.gp.kernels import SquaredExponential

__all__ = ["LENGTHS", "TIME_SCALES", "VARIANCES", "GridFit", "find_scale", "fit_on_grid"]

LENGTHS = 0.12 * np.exp(0.7 * np.linspace(-2.2, 2.2, 11))
"""Length scales as shares of the domain's reach, where that has one dimension; in d dimensions all
are longer by sqrt(d), as distances are."""
TIME_SCALES = (inf, 200.0, 50.0, 12.0)
"""After how many rounds the correlation of the reward with itself has fallen to 1/e."""
VARIANCES = np.exp(0.7 * np.linspace(-3.4, 3.4, 17))
"""Variances of the reward, as multiples of the variance of the observations."""

_LENGTH_PRIOR = -0.5 * np.linspace(-2.2, 2.2, 11) ** 2
_VARIANCE_PRIOR = -0.5 * np.linspace(-3.4, 3.4, 17) ** 2


class GridFit(NamedTuple):
    """A kernel and a mean, averaged over the grid."""

    kernel: SquaredExponential
    """The kernel in space, its parameters the geometric means over the grid."""
    mean: float
    """The prior mean, in reward units."""
    weights: NDArray[np.float64]
    """The probability of each length scale, time scale and variance, (11, 4, 17)."""


def find_scale(values: Values) -> float:
    """Return the variance that some observations suggest for the reward, above 0.

    Where all are equal, a reward may be anything like them.

    Args:
        values: What was observed, in reward units, (n,).
    """
    return float(values.var()) or max(float(np.abs(values).max()), 1e-3) ** 2


def fit_on_grid(
    points: Points,
    values: Values,
    *,
    times: Values,
    variances: Values,
    reach: Values,
    mean: float | None = None,
) -> GridFit:
    """Average the kernel and the mean over a grid, each weighed by its probability.

    The model is v exp(-s / 2) exp(-|t - t'| / tau), s = sum_j ((a_j - b_j) / (l reach_j))^2: the
    reward changes while it is observed, and change is not taken for roughness or noise. The prior
    of log l and log v is normal with std 0.7, around 0.12 sqrt(d) and the variance of *values*; tau
    is as likely one as another; the mean may be anything. An average moves little where
    observations say little. O(n^3) for each length and time scale; all variances share that.

    Args:
        points: Where observations were made, (n, d), n at least 1.
        values: What was observed, in reward units, (n,).
        times: When, in rounds, (n,).
        variances: The noise variance of each, above 0, in squared reward units, (n,).
        reach: The extent of the domain in each dimension, above 0, (d,).
        mean: The prior mean, in reward units; by default averaged with the kernel.

    Returns:
        The averages, and the weights of all points of the grid.
    """
    dimensions = points.shape[1]
    scale = find_scale(values)
    level = float(values.mean()) if mean is None else mean
    lengths = LENGTHS * sqrt(dimensions)
    # Divided by the noise, observations have the covariance v R + I, and one eigendecomposition of
    # R serves all v.
    weights = np.sqrt(scale / variances)
    whitened = np.column_stack([(values - level) / sqrt(scale) * weights, weights])
    scaled = points / reach
    squares = np.square(scaled[:, None] - scaled).sum(axis=-1)
    in_space = np.exp(-0.5 * squares / np.square(lengths)[:, None, None])
    apart = np.abs(times[:, None] - times)
    in_time = np.exp(-apart / np.array(TIME_SCALES)[:, None, None])
    correlations = in_space[:, None] * in_time * np.outer(weights, weights)
    values_of_r, vectors = _decompose(correlations)
    rotated = np.swapaxes(vectors, -1, -2) @ whitened
    seen, ones = rotated[..., None, :, 0], rotated[..., None, :, 1]
    spectrum = 1 + np.maximum(values_of_r, 0.0)[..., None, :] * VARIANCES[:, None]
    heights = _LENGTH_PRIOR[:, None, None] + _VARIANCE_PRIOR - 0.5 * np.log(spectrum).sum(axis=-1)
    heights -= 0.5 * (seen * seen / spectrum).sum(axis=-1)
    offsets = np.zeros(heights.shape)
    if mean is None:
        known = (ones * ones / spectrum).sum(axis=-1)
        along = (seen * ones / spectrum).sum(axis=-1)
        offsets = along / known
        heights += 0.5 * (along * offsets - np.log(known))
    odds = np.exp(heights - heights.max())
    odds /= odds.sum()
    length = np.exp(odds.sum(axis=(1, 2)) @ np.log(lengths))
    scales = tuple((length * reach).tolist())
    return GridFit(
        SquaredExponential(
            variance=scale * float(np.exp(odds.sum(axis=(0, 1)) @ np.log(VARIANCES))),
            length_scale=scales if dimensions > 1 else scales[0],
        ),
        level + sqrt(scale) * float((odds * offsets).sum()),
        odds,
    )


def _decompose(
    matrices: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the eigenvalues and eigenvectors of symmetric matrices, (..., n, n)."""
    try:
        return np.linalg.eigh(matrices)
    except np.linalg.LinAlgError:
        # LAPACK's divide and conquer gives up on a few sound matrices with entries of very unlike
        # size (1e-148 beside 1); its older QR iteration, which is slower, does not.
        size = matrices.shape[-1]
        pairs = [eigh(each, driver="ev") for each in matrices.reshape(-1, size, size)]
        found, vectors = (np.stack(each) for each in zip(*pairs, strict=True))
        return found.reshape(matrices.shape[:-1]), vectors.reshape(matrices.shape)
