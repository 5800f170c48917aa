"""Per point: what of a duration or a cost grows with the number of points of a query."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Values
from sparq_sim.live.calibrate.families import Interval
from sparq_sim.live.calibrate.fits import Fit, format_interval
from sparq_sim.simulation.channel.draws import Constant

__all__ = ["Slope", "fit_per_point"]

_SIGNIFICANT = 3.3
"""A slope counts from so many standard errors on: chance alone reaches that once in 2000 times."""
_FEWEST = 10
"""So many queries of a size must there be for a slope."""


@dataclass(frozen=True)
class Slope:
    """What each point of a query adds."""

    value: float
    """The slope; 0 where nothing shows one."""
    interval: Interval
    """Its 95 % interval."""
    told: str
    """How it was found; empty where there is nothing to tell."""

    def to_fit(self) -> Fit:
        """Return it as the fit of a field: a constant."""
        value = Constant(value=self.value) if self.value else None
        return Fit(value, (self.told,) if self.told else (), {"value": self.interval})


def fit_per_point(amounts: Values, sizes: NDArray[np.int64], *, tolerance: float) -> Slope:
    """Return by how much amounts grow with each point.

    Args:
        amounts: Durations or costs, (n,).
        sizes: About how many points each query was, (n,).
        tolerance: Amounts that differ by no more are equal.
    """
    nothing = Slope(0.0, (0.0, inf), "")
    if not len(amounts) or (np.ptp(amounts) <= tolerance and np.ptp(sizes) > 0):
        return nothing
    if np.ptp(sizes) == 0:
        size = int(sizes[0])
        alike = f"left out: it cannot be fitted, because all queries had {size} points"
        return nothing if size == 1 else Slope(0.0, (0.0, inf), alike)
    design = np.column_stack([np.ones(len(sizes)), sizes])
    (base, slope), *_ = np.linalg.lstsq(design, amounts, rcond=None)
    rest = amounts - design @ [base, slope]
    if np.abs(rest).max() <= max(tolerance, 1e-9 * float(np.abs(amounts).max())):
        value = float(f"{slope:.9g}")
        told = f"the same for each point of {len(sizes)} queries"
        return Slope(value, (value, value), told) if slope > tolerance else nothing
    common = np.isin(sizes, np.flatnonzero(np.bincount(sizes) >= _FEWEST))
    amounts, sizes, design = amounts[common], sizes[common], design[common]
    if not len(sizes) or np.ptp(sizes) == 0:
        few = "left out: to fit it, queries of two sizes are needed, "
        return Slope(0.0, (0.0, inf), f"{few}{_FEWEST} or more of each")
    (base, slope), *_ = np.linalg.lstsq(design, amounts, rcond=None)
    rest = amounts - design @ [base, slope]
    # Robust against a spread that grows with the size (White 1980).
    inverse = np.linalg.inv(design.T @ design)
    error = float(np.sqrt((inverse @ (design.T * rest**2) @ design @ inverse)[1, 1]))
    if slope < _SIGNIFICANT * error:
        return nothing
    interval = (float(slope - 1.96 * error), float(slope + 1.96 * error))
    # Nothing took less than its points take.
    value = min(float(slope), float((amounts / sizes).min()))
    return Slope(
        value,
        (min(interval[0], value), interval[1]),
        f"slope over sizes {sizes.min()} to {sizes.max()}, 95 % {format_interval(interval)}; "
        "taken as constant",
    )
