"""A part of the reward that is carried along, as a hill that moves."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Matrix, Values
from sparq_sim.optimizers.sparq_memory.features import SpatialFeatures
from sparq_sim.optimizers.sparq_memory.hypothesis import Hypothesis, Transition

__all__ = ["Carried", "Currents"]

_FASTEST = 0.7
"""How far anything is carried in a round at most, in lengths."""
_LEVEL = 20.0
"""Within how many rounds the level is forgotten."""
_CARRIED = 0.5
"""The share of the prior variance that is carried; the rest stays."""


@dataclass(frozen=True, slots=True, eq=False)
class Currents:
    """How the features of a reward change when it is shifted."""

    derivatives: NDArray[np.float64]
    """For each coordinate, the weights of the derivative of a function, (d, r-1, r-1)."""
    lengths: Values
    """Over which length the reward changes along each coordinate, (d,)."""

    @classmethod
    def of(cls, features: SpatialFeatures) -> Currents:
        """Return how some features change.

        Args:
            features: The features.
        """
        return cls(features.derivatives(), features.lengths())

    def shift(self, distance: Values) -> Matrix:
        """Return what weights become when the function is shifted, (r-1, r-1).

        Args:
            distance: How far along each coordinate, (d,), below a length.
        """
        step: Matrix = -np.tensordot(distance, self.derivatives, axes=1)
        unit = np.eye(len(step))
        # The series of the exponential of a derivative, to the third order.
        shifted: Matrix = unit + step @ (unit + step @ (unit / 2 + step / 6))
        return shifted


class Carried(Hypothesis):
    """A part of the reward stays, and the other moves as a whole, with a velocity that changes.

        f_t(x) = stays(x) + moves_t(x),  moves_{t+1}(x) = moves_t(x - v_t) + a little news

    The velocity v_t, one for the whole domain, is an Ornstein-Uhlenbeck process. Weights and
    velocity are learnt together, linearised about their means (an extended Kalman filter).

    Args:
        rank: The number of features, r.
        currents: How the features change when the reward is shifted.
        speed: The std of the velocity, in lengths a round.
        steady: Within how many rounds the velocity is forgotten.
        time_scale: Within how many rounds the shape of what moves is forgotten.
    """

    def __init__(
        self, rank: int, currents: Currents, *, speed: float, steady: float, time_scale: float
    ) -> None:
        super().__init__(rank, len(currents.lengths), 1.0 - _CARRIED)
        self._currents = currents
        self._variances: Values = (speed * currents.lengths) ** 2
        self._steady = steady
        self._time_scale = time_scale
        self.reset()

    def reset(self) -> None:
        self.mean[:] = 0.0
        self.covariance[:] = 0.0
        staying = np.arange(self.rank)
        self.covariance[staying, staying] = self.staying
        self.covariance[staying + self.rank, staying + self.rank] = _CARRIED
        self._seed_rest()

    def _seed_rest(self) -> None:
        rest = np.arange(2 * self.rank, len(self.mean))
        self.covariance[rest, rest] = self._variances

    def remember(self, rounds: float) -> float:
        return self.staying + _CARRIED * exp(-rounds / self._time_scale)

    def _move(self, rounds: float) -> Transition:
        begin, level, velocity = self.rank, 2 * self.rank - 1, 2 * self.rank
        kept, kept_level = exp(-rounds / self._time_scale), exp(-rounds / _LEVEL)
        kept_velocity = exp(-rounds / self._steady)
        currents = self._currents
        most = _FASTEST * currents.lengths
        distance = np.clip(self.mean[velocity:] * rounds, -most, most)
        shifted = kept * currents.shift(distance)
        moved = shifted @ self.mean[begin:level]
        by_velocity = -rounds * (currents.derivatives @ moved).T  # (r-1, d)

        def transition(rows: Matrix) -> Matrix:
            carried = np.array(rows)
            carried[begin:level] = shifted @ rows[begin:level] + by_velocity @ rows[velocity:]
            carried[level] *= kept_level
            carried[velocity:] *= kept_velocity
            return carried

        self.mean = np.array(self.mean)
        self.mean[begin:level] = moved
        self.mean[level] *= kept_level
        self.mean[velocity:] *= kept_velocity
        self.covariance = transition(transition(self.covariance).T)
        places = np.arange(begin, len(self.mean))
        new: Values = np.full(len(places), _CARRIED * (1 - kept**2))
        new[level - begin] = _CARRIED * (1 - kept_level**2)
        new[velocity - begin :] = self._variances * (1 - kept_velocity**2)
        self.covariance[places, places] += new
        return transition
