"""Recall: what happened in a play, played again where not all of it was recorded."""

from __future__ import annotations

import warnings

from sparq_sim.errors import SparqError
from sparq_sim.simulation.beliefs import describe_difference, find_play, is_same_play
from sparq_sim.simulation.trace import Trace
from sparq_sim.study.store import StoredPlay

__all__ = ["recall"]


def recall(stored: StoredPlay, *, allow_import: bool = False) -> Trace:
    """Return the trace of a play with its replies; it is played again if they were not recorded.

    Args:
        stored: The play.
        allow_import: Whether a play whose replies were not recorded may name code to run, as
            `module:Class`.

    Raises:
        SparqError: Replies were not recorded, and the play cannot be played again as it was.
    """
    if "source" in stored.trace.replies:
        return stored.trace
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # They were given when it was played first.
        trace = find_play(stored.trace, allow_import=allow_import).again()
    if not is_same_play(stored.trace, trace):
        raise SparqError(
            "replies were not recorded, and played again it is not the play that was stored; run "
            "the scenario with record = 'full'. First difference: "
            f"{describe_difference(stored.trace, trace)}"
        )
    return trace
