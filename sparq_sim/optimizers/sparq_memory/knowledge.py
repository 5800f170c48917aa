"""Knowledge gradient: what an answer is worth to the next decision, in reward units."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from sparq_sim.arrays import Matrix, Values
from sparq_sim.optimizers.sparq_memory.hypothesis import Foresight

__all__ = ["Prospect"]

_NODES, _SHARES = hermegauss(7)
_SHARES = _SHARES / _SHARES.sum()
_LOOKED_AT = 24
"""How many points are looked at closely."""


class Prospect:
    """What is believed of the reward when it would be measured, and when an answer would be used.

    It changes with every answer that is counted as if it were there.

    Args:
        foresight: What is believed of the weights of the features.
        targets: The features of the points between which the next decision is made, (n, r).
    """

    def __init__(self, foresight: Foresight, targets: Matrix) -> None:
        self._now = foresight.first_covariance.copy()
        self._cross: Matrix = targets @ foresight.cross
        means: Values = targets @ foresight.mean
        self._behind: Values = means - means.max()

    def count(self, feature: Values, variance: float) -> None:
        """Count an answer about a point as if it were there.

        Args:
            feature: The features of the point, (r,).
            variance: The noise variance of the answer.
        """
        reached = self._now @ feature
        total = float(feature @ reached) + variance
        self._cross -= np.outer(self._cross @ feature, reached / total)
        self._now -= np.outer(reached, reached / total)

    def gains(self, features: Matrix, variances: Values) -> Values:
        """Return by how much an answer about each point raises the best expected reward, (q,).

        The points with the largest upper limits are looked at closely; those of the others, which
        are lower than some of these limits, count as 0.

        Args:
            features: The features of the points, (q, r).
            variances: The noise variance of an answer about each, (q,).
        """
        totals = np.einsum("qr,qr->q", features @ self._now, features) + variances
        slopes = self._cross @ (features / np.sqrt(totals)[:, None]).T
        gains: Values = np.zeros(len(features))
        looked = np.arange(len(features))
        if len(features) > _LOOKED_AT:
            limits = (self._behind[:, None] + 2 * np.abs(slopes)).max(axis=0)
            looked = np.argpartition(-limits, _LOOKED_AT)[:_LOOKED_AT]
            slopes = slopes[:, looked]
        raised = np.zeros(slopes.shape[1])
        for node, share in zip(_NODES, _SHARES, strict=True):
            raised += share * (self._behind[:, None] + node * slopes).max(axis=0)
        gains[looked] = np.maximum(raised, 0.0)
        return gains
