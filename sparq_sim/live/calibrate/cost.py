"""Cost: what a query and each of its points cost, and when it fell due."""

from __future__ import annotations

import numpy as np

from sparq_sim.live.calibrate.draws import fit_draw
from sparq_sim.live.calibrate.families import Amounts
from sparq_sim.live.calibrate.fits import Fit
from sparq_sim.live.calibrate.per_point import fit_per_point
from sparq_sim.live.calibrate.requests import Requests
from sparq_sim.simulation.channel.channel import Due
from sparq_sim.simulation.records import Fate

__all__ = ["fit_cost"]

_EQUAL = 1e-9
"""Costs that differ by less than this share are equal."""


def fit_cost(requests: Requests) -> dict[str, Fit]:
    """Fit `cost`, `cost_per_point` and `charged` to what was asked of one source.

    Args:
        requests: What was asked of it.

    Returns:
        The fits by field; empty where nothing ever cost anything.
    """
    costs = requests.costs
    if not len(costs) or not costs.any():
        return {}
    charged, told = _find_due(requests)
    due = _is_due(requests, charged)
    tolerance = _EQUAL * float(costs.max())
    slope = fit_per_point(costs[due], requests.sizes[due], tolerance=tolerance)
    rest = costs[due] - slope.value * requests.sizes[due]
    fitted = fit_draw(
        Amounts.of(np.where(rest <= tolerance, 0.0, rest)), tolerance=tolerance, what="costs"
    )
    fits = {"cost": fitted.to_fit(), "cost_per_point": slope.to_fit()}
    if told:
        fits["charged"] = Fit(None if charged == "asked" else charged, (told,))
    return fits


def _find_due(requests: Requests) -> tuple[Due, str]:
    """Return when costs fall due, and what shows it."""
    unserved = np.isnan(requests.served_at) & requests.having(Fate.LATE, Fate.UNANSWERED)
    unanswered = ~requests.having(Fate.ANSWERED) & ~unserved
    # What is still under way when the play ends may be charged later.
    unanswered &= ~requests.having(Fate.UNANSWERED)
    failed = int(unanswered.sum())
    waiting = int(unserved.sum())
    if failed and not requests.costs[unanswered].any():
        return "answered", f"no cost for the {failed} that failed"
    if waiting and not requests.costs[unserved].any():
        return "served", f"no cost for the {waiting} that were never served"
    if waiting:
        return "asked", f"the {waiting} that were never served also had a cost"
    if failed:
        told = f'left out: the {failed} that failed also had a cost, so "asked" or "served" are '
        return "asked", told + 'possible; "asked", the default, is taken'
    told = "left out: all were answered, so these data do not show when a cost is charged; "
    return "asked", told + '"asked", the default, is taken'


def _is_due(requests: Requests, charged: Due) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if charged == "asked":
        return np.ones(len(requests), dtype=bool)
    if charged == "served":
        return np.isfinite(requests.served_at)
    return requests.having(Fate.ANSWERED)
