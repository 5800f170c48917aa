"""Candidates: the points at which predictions are wanted, found again by their coordinates."""

from __future__ import annotations

from numpy.typing import ArrayLike

from sparq_sim.arrays import Points
from sparq_sim.gp.observations import check_points

__all__ = ["Candidates", "OffCandidatesError"]

_MANY = 8  # So many points are worth a look whether they are those of the last time.


class OffCandidatesError(ValueError):
    """Raised where a point is not among the candidates that a posterior is limited to."""


class Candidates:
    """The points at which predictions are wanted again and again.

    Args:
        points: The candidates, (g, d), at least one.

    Raises:
        ValueError: If there are none, or a coordinate is not finite.
    """

    def __init__(self, points: ArrayLike) -> None:
        self.points = check_points(points)
        if not self.points.size:
            raise ValueError("there are no candidates: give at least one point, as (g, d)")
        self.points.flags.writeable = False
        self._last: tuple[bytes, list[int]] = (b"", [])
        self._places: dict[bytes, int] = {}
        for place, point in enumerate(self.points):
            self._places.setdefault(point.tobytes(), place)

    def __len__(self) -> int:
        return len(self.points)

    def find_places(self, points: Points) -> list[int]:
        """Return which candidate each point is.

        Args:
            points: Points that were checked, (n, d).

        Returns:
            The row of each point among the candidates, -1 where it is none of them.

        Raises:
            ValueError: If the points have another number of coordinates.
        """
        if points.shape[1] != self.points.shape[1]:
            raise ValueError(
                f"points of {points.shape[1]} coordinates, "
                f"but the candidates have {self.points.shape[1]}"
            )
        if len(points) < _MANY:
            return [self._places.get(point.tobytes(), -1) for point in points]
        # An expert is asked about the same points round after round.
        key, (last, found) = points.tobytes(), self._last
        if key != last:
            found = [self._places.get(point.tobytes(), -1) for point in points]
            self._last = key, found
        return found

    def require_places(self, points: Points) -> list[int]:
        """Return which candidate each point is, where all must be candidates.

        Args:
            points: Points that were checked, (n, d).

        Returns:
            The row of each point among the candidates.

        Raises:
            OffCandidatesError: If a point is none of the candidates.
        """
        places = self.find_places(points)
        if -1 in places:
            raise OffCandidatesError(
                f"{points[places.index(-1)]} is not among the {len(self)} candidates: "
                "add it to them, or use a CholeskyPosterior"
            )
        return places
