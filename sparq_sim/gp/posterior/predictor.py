"""What is believed of a reward: the interfaces of all posteriors, without the means to compute."""

from __future__ import annotations

from typing import Protocol

from numpy.typing import ArrayLike

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.gp.kernels import Kernel
from sparq_sim.gp.observations import Observations, Positions


class Predictor(Protocol):
    """What is believed of the reward: at the candidates, or at any points."""

    def mean(self, points: ArrayLike | None = None) -> Values:
        """Give the mean of the reward at *points* (n, d), or at the candidates."""
        ...

    def std(self, points: ArrayLike | None = None) -> Values:
        """Give the std of the reward at *points* (n, d), or at the candidates."""
        ...

    def mean_gradient(self, point: Point) -> Point:
        """Give the derivative (d,) of the mean by *point*."""
        ...

    def std_gradient(self, point: Point) -> Point:
        """Give the derivative (d,) of the std by *point*; 0 where the std is 0."""
        ...

    @property
    def log_determinant(self) -> float:
        """Log det(I + S^-1/2 K S^-1/2), S = diag(variances)."""


class Posterior(Predictor, Protocol):
    """A Gaussian process given observations, each with its own noise variance.

    Variances are positive and finite. One below 2.2e-16 of the prior variance acts as that much:
    float64 knows no finer. No other noise is ever added.
    """

    kernel: Kernel
    prior_mean: float
    observations: Observations

    @property
    def candidates(self) -> Points | None:
        """The candidates (g, d), if there are any."""

    def __len__(self) -> int: ...

    def add(self, points: ArrayLike, values: ArrayLike, *, variances: ArrayLike) -> None:
        """Add observations of *values* (n,) at *points* (n, d), or one at a point (d,)."""

    def replace(self, position: int, value: float, *, variance: float) -> None:
        """Put another value and variance in the place of an observation, at the same point."""

    def remove(self, positions: Positions) -> None:
        """Take observations out; later ones move up, as in a list."""

    def set_variances(self, variances: ArrayLike) -> None:
        """Give all observations other variances, as when they age."""
