"""Fits: a value for a field of a channel, with what is known of how good it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isinf, sqrt

import numpy as np
from scipy import stats

from sparq_sim.live.calibrate.families import Interval

__all__ = ["Fit", "format_interval", "format_number", "format_share", "wilson_interval"]


@dataclass(frozen=True)
class Fit:
    """What was found for one field of a channel."""

    value: object = None
    """A part of a channel (a draw, a noise, a loss) or a plain value; None where the field is best
    left out, because its default fits or because nothing is known."""
    told: tuple[str, ...] = ()
    """How it was found and how well it fits: sentences, or parts of one."""
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """95 % intervals by parameter."""
    p_value: float | None = None
    """How often data of the fitted distribution would fit worse than these; None if not tested."""


def format_number(number: float) -> str:
    """Return a number with four digits.

    Args:
        number: The number.
    """
    return f"{number:.4g}"


def format_interval(interval: Interval) -> str:
    """Return an interval in words.

    Args:
        interval: Its ends.
    """
    low, high = interval
    return f"{low:.3g} or more" if isinf(high) else f"{low:.3g} to {high:.3g}"


def format_share(share: float) -> str:
    """Return a share as a percentage.

    Args:
        share: From 0 to 1.
    """
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.3g} %"


def wilson_interval(count: int, total: int) -> Interval:
    """Return the 95 % interval of a probability (Wilson 1927).

    Args:
        count: How often it happened.
        total: How often it could have happened, at least once.
    """
    z = float(stats.norm.ppf(0.975))
    share = count / total
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z * sqrt(share * (1 - share) / total + z**2 / (4 * total**2)) / (1 + z**2 / total)
    low, high = np.clip([middle - half, middle + half], 0.0, 1.0).tolist()
    # Rounding must not shut out what has been seen.
    return (0.0 if count == 0 else low, 1.0 if count == total else high)
