"""Phases in a page: the life of queries on a network, packed for the script of the timeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparq_sim.errors import mask_invisible
from sparq_sim.report.network import PHASES, NetworkData
from sparq_sim.simulation.trace import Columns

__all__ = ["find_phases"]


def find_phases(
    networks: Sequence[NetworkData],
    replies: Columns,
    starts: NDArray[np.intp],
    shown: NDArray[np.bool_],
) -> tuple[Columns, list[str], list[str]]:
    """Return the phases of the replies that are shown, in the order of journeys and of time.

    Args:
        networks: Those of a play.
        replies: All replies of the play.
        starts: The first row of each journey: of what travelled together.
        shown: Which journeys are shown.

    Returns:
        Columns: the number of the journey among those shown, which of its points it is, phase and
        node as numbers among their names, start after the question was asked, and duration, both in
        clock units. And the names of the phases, and of the nodes.
    """
    journeys = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(replies["round"]))))
    numbers = np.cumsum(shown) - 1
    found: list[tuple[int, int, float, str, int, float]] = []
    nodes: list[str] = []
    for network in networks:
        if not network.phases:
            continue
        own = np.flatnonzero((replies["source"] == network.source) & shown[journeys])
        # Attempts of one point, in their order.
        own = own[np.argsort(replies["asked_at"][own], kind="stable")]
        rows: dict[tuple[int, int], list[int]] = {}
        for row in own.tolist():
            key = int(replies["query"][row]), int(replies["row"][row])
            rows.setdefault(key, []).append(row)
        phases = network.phases
        near = np.flatnonzero(np.isin(phases["query"], replies["query"][own]))
        for at in near.tolist():
            key = int(phases["query"][at]), int(phases["row"][at])
            started = float(phases["started_at"][at])
            attempts = rows.get(key, [])
            begun = [row for row in attempts if replies["asked_at"][row] <= started + 1e-9]
            if not attempts:
                continue
            row = begun[-1] if begun else attempts[0]
            found.append(
                (
                    int(numbers[journeys[row]]),
                    row - int(starts[journeys[row]]),
                    started - float(replies["asked_at"][row]),
                    mask_invisible(str(phases["phase"][at])),
                    len(nodes) + int(phases["node"][at]),
                    float(phases["ended_at"][at]) - started,
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
        "place": np.array([min(each[1], 254) for each in found], dtype=np.intp),
        "start": np.array([each[2] for each in found], dtype=float),
        "phase": np.array([names.index(each[3]) for each in found], dtype=np.intp),
        "node": np.array([each[4] for each in found], dtype=float),
        "length": np.array([each[5] for each in found], dtype=float),
    }
    return columns, names, nodes
