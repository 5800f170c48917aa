"""What a picture of place over time shows, whatever draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Matrix, Values

__all__ = [
    "Ground",
    "Paint",
    "PlaceAxis",
    "PlacePicture",
    "PlaceRow",
    "find_most_telling",
    "shade",
]

AxisKind: TypeAlias = Literal["coordinate", "sites", "distance"]


@dataclass(frozen=True)
class PlaceAxis:
    """What is called a place: a coordinate, the rank of a site, or the distance to the best."""

    kind: AxisKind
    """Coordinate, sites or distance."""
    label: str
    """What it is called."""
    limits: tuple[float, float]
    """The whole domain."""
    window: tuple[float, float] | None = None
    """The part in which the best point moves, where that is a small one."""
    names: Sequence[str] = ()
    """Of the sites, from the lowest place on."""

    @property
    def shown(self) -> tuple[float, float]:
        """The part that is shown unless a reader wants the whole domain."""
        return self.window or self.limits


@dataclass(frozen=True)
class Ground:
    """The true reward by time and place."""

    times: Values
    """When it was taken, in clock units, growing: (n,)."""
    heights: Values
    """At which places, growing: (m,)."""
    rewards: Matrix
    """The rewards: (n, m); nothing (n, 0) where there are too many coordinates to show them."""
    best: Values
    """Where the best point was at these times: (n,)."""
    relative: bool
    """Whether rewards are differences from the mean of the moment, as where all places rise and
    fall together."""

    @property
    def range(self) -> tuple[float, float]:
        """The rewards of the first and of the last colour."""
        if not self.rewards.size:
            return 0.0, 1.0
        # A single deep hole, or a peak, would take all colours; next to nothing is nothing.
        low, high = np.quantile(self.rewards, [0.02, 0.998]).tolist()
        return (0.0 if abs(low) < 1e-3 * (high - low) else low), high

    def describe(self, axis: PlaceAxis) -> str:
        """Return what its colours show.

        Args:
            axis: What is called a place.
        """
        what = "highest true reward at a distance" if axis.kind == "distance" else "true reward"
        return f"{what}, less the mean of the moment" if self.relative else what


@dataclass(frozen=True)
class Paint:
    """How rounds are coloured: by their regret, or where that is not known by their reward."""

    word: Literal["regret", "reward"]
    """Which of both."""
    good: float
    """The value of the best colour."""
    bad: float
    """The value from which on the worst colour is used."""
    note: str = ""
    """What the worst colour means."""


@dataclass(frozen=True)
class PlaceRow:
    """Where one optimizer played."""

    title: str
    """The optimizer, or in what its play differs from those of the other rows."""
    rounds: NDArray[np.int64]
    """Numbers of the rounds that are drawn: (k,)."""
    times: Values
    """When they were played, in clock units: (k,)."""
    heights: Values
    """Where: (k,)."""
    values: Values
    """Regret, or observed reward: (k,); NaN where it is not known."""
    moved: NDArray[np.bool_]
    """Whether the optimizer moved in the round, or the point before stayed in force: (k,)."""
    total: int
    """How many rounds were played."""
    words: str
    """What one sees."""


@dataclass(frozen=True)
class PlacePicture:
    """One replication of each optimizer: where it played, round by round."""

    setting: str
    """The swept values, in words; nothing where nothing is swept."""
    play: str
    """Which seed and replication it is."""
    axis: PlaceAxis
    """What is called a place."""
    paint: Paint
    """How rounds are coloured."""
    rows: Sequence[PlaceRow]
    """The optimizers, the best first, or the settings of the only one."""
    span: tuple[float, float]
    """From when to when, in clock units."""
    ground: Ground | None = field(default=None, repr=False)
    """The true reward, if it is known."""
    ranked: bool = True
    """Whether the rows are optimizers, the best first; else they are settings of one of them."""
    notes: Sequence[str] = ()
    """What a viewer must know."""

    @property
    def contrast(self) -> float:
        """How far the rows lie apart by their means: of several pictures, the most is telling."""
        means = [
            float(row.values[known].mean())
            for row in self.rows
            if (known := np.isfinite(row.values)).any()
        ]
        return max(means, default=0.0) - min(means, default=0.0)


def find_most_telling(pictures: Sequence[PlacePicture]) -> int:
    """Return the number of the picture whose rows lie furthest apart; 0 where there is none.

    Args:
        pictures: Those of a study.
    """
    return max(range(len(pictures)), key=lambda i: pictures[i].contrast, default=0)


def shade(values: Values, paint: Paint) -> Values:
    """Return how bad values are, from 0, the best colour, to 1, the worst: (k,).

    It is the root of the share, so that small regrets can be told apart.

    Args:
        values: Regrets, or rewards; NaN stays NaN.
        paint: How they are coloured.
    """
    share = (values - paint.good) / ((paint.bad - paint.good) or 1.0)
    return np.sqrt(np.clip(share, 0.0, 1.0))
