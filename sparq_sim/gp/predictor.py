"""The interfaces of all posteriors: what is believed of a reward, apart from how it is computed."""

from __future__ import annotations

from typing import Protocol

from numpy.typing import ArrayLike

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.gp.kernels import Kernel
from sparq_sim.gp.observations import Observations, Positions

__all__ = ["Posterior", "Predictor"]


class Predictor(Protocol):
    """What is believed of the reward: at the candidates, or at any points."""

    def mean(self, points: ArrayLike | None = None) -> Values:
        """Return the mean of the reward.

        Args:
            points: Where, (n, d); by default at the candidates.

        Returns:
            The mean at each point, in reward units, (n,); a copy, which may be changed.
        """
        ...

    def std(self, points: ArrayLike | None = None) -> Values:
        """Return the std of the reward.

        Args:
            points: Where, (n, d); by default at the candidates.

        Returns:
            The std at each point, in reward units, (n,); a copy, which may be changed.
        """
        ...

    def mean_gradient(self, point: Point) -> Point:
        """Return the derivative of the mean by the coordinates of a point, (d,).

        Args:
            point: Where, (d,).
        """
        ...

    def std_gradient(self, point: Point) -> Point:
        """Return the derivative of the std by the coordinates of a point, (d,); 0 where it is 0.

        Args:
            point: Where, (d,).
        """
        ...

    @property
    def log_determinant(self) -> float:
        """Log det(I + S^-1/2 K S^-1/2), S = diag(variances): twice the information gain in nats."""


class Posterior(Predictor, Protocol):
    """A Gaussian process given observations, each with its own noise variance.

    Variances are positive and finite. One below 2.2e-16 of the prior variance counts as that much,
    because float64 resolves no finer one. No other noise is ever added.
    """

    kernel: Kernel
    """The covariance of the reward before any observation."""
    prior_mean: float
    """The mean of the reward before any observation, in reward units."""
    observations: Observations
    """What was observed so far."""

    @property
    def candidates(self) -> Points | None:
        """The candidates, (g, d), if there are any."""

    def __len__(self) -> int: ...

    def add(self, points: ArrayLike, values: ArrayLike, *, variances: ArrayLike) -> None:
        """Add observations.

        Args:
            points: Where they were made, (n, d), or one point, (d,).
            values: What was observed, in reward units, (n,).
            variances: The noise variance of all, or one for each, in squared reward units.

        Raises:
            ValueError: If points, values or variances are not good.
            OffCandidatesError: If the posterior is limited to candidates and a point is none of
                them.
        """

    def replace(self, position: int, value: float, *, variance: float) -> None:
        """Replace the value and the variance of one observation; its point stays.

        Args:
            position: Which observation, counted from 0.
            value: The new value, in reward units.
            variance: The new noise variance, in squared reward units.
        """

    def remove(self, positions: Positions) -> None:
        """Remove observations; later ones move up, as in a list.

        Args:
            positions: Which ones.
        """

    def set_variances(self, variances: ArrayLike) -> None:
        """Replace the noise variances of all observations, as when they age.

        Args:
            variances: One for all, or one for each, in squared reward units.
        """
