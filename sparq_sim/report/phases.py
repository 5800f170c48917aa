"""Phases: the life of queries on networks, beside the replies to which they belong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparq_sim.errors import mask_invisible
from sparq_sim.report.network import PHASES, NetworkData
from sparq_sim.report.network_tables import AT
from sparq_sim.simulation.trace import Columns, Trace

__all__ = ["find_phases"]

_CLOSE = 1e-9
"""By how much two moments may differ that are the same, in clock units."""


def find_phases(
    networks: Sequence[NetworkData],
    trace: Trace,
    starts: NDArray[np.intp],
    shown: NDArray[np.bool_],
) -> tuple[Columns, list[str], list[str]]:
    """Return the phases of the replies that are shown, in the order of journeys and of time.

    Args:
        networks: Those of a play.
        trace: The play, with its replies.
        starts: The first row of each journey: of replies that travelled together.
        shown: Which journeys are shown.

    Returns:
        Columns: the number of the journey among those shown, which of its points it is, phase and
        node as numbers among their names, start after the question was asked, and duration, both in
        clock units. And the names of the phases, and of the nodes.
    """
    replies = trace.replies
    journeys = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(replies["round"]))))
    numbers = np.cumsum(shown) - 1
    found: list[tuple[int, int, float, str, int, float]] = []
    nodes: list[str] = []
    for network in networks:
        own = np.flatnonzero((replies["source"] == network.source) & shown[journeys])
        for row, at in _match(network, trace, own):
            journey = journeys[row]
            started = float(network.phases["started_at"][at])
            found.append(
                (
                    int(numbers[journey]),
                    min(row - int(starts[journey]), 254),
                    started - float(replies["asked_at"][row]),
                    mask_invisible(str(network.phases["phase"][at])),
                    len(nodes) + int(network.phases["node"][at]),
                    float(network.phases["ended_at"][at]) - started,
                )
            )
        nodes += network.names
    found.sort(key=lambda each: each[:3])
    occurring = {each[3] for each in found}
    names = [name for name in PHASES if name in occurring]
    names += sorted(occurring.difference(PHASES))[: 250 - len(names)]
    found = [each for each in found if each[3] in names]
    columns: dict[str, NDArray[Any]] = {
        "journey": np.array([each[0] for each in found], dtype=float),
        "place": np.array([each[1] for each in found], dtype=np.intp),
        "start": np.array([each[2] for each in found], dtype=float),
        "phase": np.array([names.index(each[3]) for each in found], dtype=np.intp),
        "node": np.array([each[4] for each in found], dtype=float),
        "length": np.array([each[5] for each in found], dtype=float),
    }
    return columns, names, nodes


def _match(network: NetworkData, trace: Trace, own: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """Yield the row of the reply to which each phase belongs, and the row of the phase.

    A phase is of the point that has its row in the query; where the table does not tell, of the
    point whose nearest node it has. Of several attempts it is the first that ends after the phase.

    Args:
        network: The network whose phases they are.
        trace: The play.
        own: Rows of the replies of that network that are shown.
    """
    replies, phases = trace.replies, network.phases
    if not phases or not len(own):
        return
    by_row = "row" in phases
    of = replies["row"][own] if by_row else _nearest_nodes(network, trace, own)
    rows: dict[tuple[int, int], list[int]] = {}
    for row, query, which in zip(own.tolist(), replies["query"][own], of, strict=True):
        rows.setdefault((int(query), int(which)), []).append(row)
    asked, arrived = replies["asked_at"], replies["arrived_at"]
    which = phases["row" if by_row else "node"]
    for at in np.flatnonzero(np.isin(phases["query"], replies["query"][own])).tolist():
        candidates = rows.get((int(phases["query"][at]), int(which[at])), [])
        start, end = phases["started_at"][at] + _CLOSE, phases["ended_at"][at] - _CLOSE
        begun = [row for row in candidates if asked[row] <= start] or candidates[:1]
        if begun:
            yield min(begun, key=lambda row: (arrived[row] < end, abs(arrived[row] - end))), at


def _nearest_nodes(network: NetworkData, trace: Trace, own: NDArray[np.intp]) -> Any:
    """Return which node is nearest to the point of each reply; without coordinates, the first."""
    names = [name for name in trace.coordinates if AT + name in network.nodes]
    if not names:
        return np.zeros(len(own), dtype=np.intp)
    points = np.stack([trace.replies[name][own] for name in names], axis=1)
    places = np.stack([network.nodes[AT + name] for name in names], axis=1)
    # Each place once: there are many replies, and few places.
    unique, back = np.unique(points, axis=0, return_inverse=True)
    nearest = [int(((places - point) ** 2).sum(axis=1).argmin()) for point in unique]
    return np.array(nearest, dtype=np.intp)[back.ravel()]
