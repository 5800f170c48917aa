"""Networks: what a source's own tables tell of its nodes, links, batteries and packets.

A source that leaves a table `nodes` in the accounts of a trace is drawn as a network, whatever it
is. The columns are listed in docs/guides/report.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparq_sim.arrays import Matrix, Values
from sparq_sim.errors import mask_invisible
from sparq_sim.report.network_tables import CAUSES, NEEDED, read_table
from sparq_sim.simulation.trace import Columns
from sparq_sim.study.settings import Setting, agree, format_setting

if TYPE_CHECKING:
    from sparq_sim.study.results import Results
    from sparq_sim.study.store import StoredSummary

__all__ = [
    "CAUSES",
    "FATES",
    "PHASES",
    "Batteries",
    "NetworkData",
    "ShownNetwork",
    "read_networks",
    "read_stored_networks",
    "show_networks",
]

FATES = (
    "delivered",
    "faded",
    "collided",
    "gateway full",
    "gateway sending",
    "node busy",
    "node dead",
    "duty cycle",
    "channel busy",
)
"""What can become of a packet, in the order in which it is shown; others follow by name."""
PHASES = {
    "asleep": "waits until the node listens",
    "queue": "waits for the gateway or a busy node",
    "backoff": "backs off",
    "measure": "the node measures",
    "downlink": "downlink",
    "uplink": "uplink",
    "lost": "packet lost",
}
"""Phases in the life of a query, in the order in which they are drawn, and what they are called.

In the queue, a query waits for the gateway's transmitter, for a node that is busy, or until a
wake-up or window is over in which the gateway was not free.
"""


@dataclass(frozen=True, eq=False)
class Batteries:
    """The charge of batteries over time; nodes on mains are not among them."""

    nodes: NDArray[np.intp]
    """Rows of the nodes that have a battery: (b,)."""
    times: Values
    """Moments, in clock units: (t,)."""
    shares: Matrix
    """Share of the capacity that is left, NaN once a node is dead: (t, b)."""
    median: Values
    """Median of the shares, dead nodes counted with what they have left: (t,)."""
    deaths: Values
    """When each died, in clock units, NaN if it did not: (b,)."""
    last: Values
    """Share that is left in the end, or was left at death: (b,)."""


@dataclass(frozen=True, eq=False)
class NetworkData:
    """What is drawn of the network of a source; tables that are absent have no columns."""

    source: str
    """The name of the source."""
    nodes: Columns
    """A row for each node."""
    gateways: Columns = field(default_factory=dict)
    """A row for each gateway."""
    levels: Columns = field(default_factory=dict)
    """What batteries had left, over time."""
    packets: Columns = field(default_factory=dict)
    """A row for each packet."""
    phases: Columns = field(default_factory=dict)
    """A row for each phase in the life of each query."""

    @cached_property
    def names(self) -> list[str]:
        """Names of the nodes."""
        return [mask_invisible(str(name)) for name in self.nodes["name"]]

    @cached_property
    def gateway_names(self) -> list[str]:
        """Names of the gateways."""
        return [mask_invisible(str(name)) for name in self.gateways.get("name", ())]

    @cached_property
    def dead(self) -> NDArray[np.bool_]:
        """Whether each node had died by the end of the play: (n,)."""
        return np.isfinite(self.nodes["died_at"])

    @cached_property
    def shares(self) -> Values:
        """Share of its capacity that each battery has left, NaN on mains: (n,)."""
        capacity, left = self.nodes["capacity"], self.nodes["left"]
        known = np.isfinite(capacity) & (capacity > 0)
        return np.where(known, left / np.where(known, capacity, 1.0), np.nan)

    @cached_property
    def energies(self) -> Mapping[str, Values]:
        """Energy of each node by cause, in joules, of the causes that took any: (n,) each."""
        found = {cause: self.nodes.get(f"energy_{cause}") for cause in CAUSES}
        return {cause: e for cause, e in found.items() if e is not None and e.any()}

    @cached_property
    def used(self) -> Values:
        """Energy that each node used, for whatever cause, in joules: (n,)."""
        return np.asarray(np.sum([np.zeros(len(self.names)), *self.energies.values()], axis=0))

    @cached_property
    def delivered(self) -> Values:
        """Share of the packets of each node that were delivered, NaN if it sent none: (n,)."""
        sent, arrived = self.nodes.get("sent"), self.nodes.get("delivered")
        if sent is None or arrived is None:
            return np.full(len(self.names), np.nan)
        return np.where(sent > 0, arrived / np.maximum(sent, 1), np.nan)

    @cached_property
    def links(self) -> list[tuple[int, int]]:
        """Each node with its gateway, as rows of the two tables, where both are known."""
        if "gateway" not in self.nodes or not self.gateways:
            return []
        return [
            (node, gateway)
            for node, gateway in enumerate(self.nodes["gateway"].tolist())
            if 0 <= gateway < len(self.gateway_names)
        ]

    @cached_property
    def batteries(self) -> Batteries | None:
        """The charge of the batteries over time; None if it is unknown or no node has one."""
        own = np.flatnonzero(np.isfinite(self.shares))
        if not len(own) or not self.levels or not len(self.levels["time"]):
            return None
        times, moments = np.unique(self.levels["time"], return_inverse=True)
        left = np.full((len(times), len(self.names)), np.nan)
        left[moments, self.levels["node"]] = self.levels["left"]
        alive = np.ones(left.shape, dtype=bool)
        alive[moments, self.levels["node"]] = self.levels["alive"]
        # Where a node was not looked at, it has what it had before.
        last = np.maximum.accumulate(
            np.where(np.isfinite(left), np.arange(len(times))[:, None], 0), axis=0
        )
        shares = left[last[:, own], own] / self.nodes["capacity"][own]
        living = alive[last[:, own], own] & ~(times[:, None] > self.nodes["died_at"][own])
        known = np.isfinite(shares)
        median = [
            np.median(row[k]) if k.any() else np.nan for row, k in zip(shares, known, strict=True)
        ]
        return Batteries(
            nodes=own,
            times=times,
            shares=np.where(living, shares, np.nan),
            median=np.array(median, dtype=float),
            deaths=self.nodes["died_at"][own],
            last=self.shares[own],
        )

    def count_packets(self) -> dict[str, dict[str, int]]:
        """Return how many packets had each fate, by purpose, in the order in which they are shown.

        A purpose that occurs in both directions is two, "query up" and "query down".
        """
        if not self.packets:
            return {}
        given = [
            self.packets[name] for name in ("purpose", "direction", "fate") if name in self.packets
        ]
        # There may be millions: each combination is looked at once.
        codes, words = zip(*(_encode(column) for column in given), strict=True)
        kinds, numbers = np.unique(np.stack(codes, axis=1), axis=0, return_counts=True)
        rows = [[of[k] for of, k in zip(words, kind, strict=True)] for kind in kinds.tolist()]
        ways: dict[str, set[str]] = {}
        for purpose, *way, _ in rows:
            ways.setdefault(purpose, set()).update(way)
        counts: dict[str, dict[str, int]] = {}
        for (purpose, *way, fate), number in zip(rows, numbers.tolist(), strict=True):
            name = " ".join([purpose, *way]) if len(ways[purpose]) > 1 else purpose
            of = counts.setdefault(name, {})
            of[fate] = of.get(fate, 0) + number
        most = sorted(counts, key=lambda purpose: -sum(counts[purpose].values()))
        return {purpose: counts[purpose] for purpose in most}


def _encode(column: NDArray[np.str_]) -> tuple[NDArray[np.intp], list[str]]:
    """Return words as numbers, and the words that these stand for, as they are shown."""
    words, codes = np.unique(column, return_inverse=True)
    return codes, [mask_invisible(str(word)) for word in words]


@dataclass(frozen=True)
class ShownNetwork:
    """The network of one source in one play."""

    title: str
    """Whose play it is, and of which source where there are several."""
    play: str
    """Which play it is: its seed and replication."""
    network: NetworkData
    """What is drawn."""


def show_networks(title: str, play: str, networks: Sequence[NetworkData]) -> list[ShownNetwork]:
    """Return the networks of a play with a title each.

    Args:
        title: Whose play it is.
        play: Which play it is.
        networks: Those of all its sources.
    """
    several = len(networks) > 1
    return [
        ShownNetwork(f"{title}, {each.source}" if several else title, play, each)
        for each in networks
    ]


def read_stored_networks(
    study: Results,
    *,
    order: Sequence[str] = (),
    where: Setting | None = None,
    only: str | None = None,
) -> tuple[list[ShownNetwork], list[str]]:
    """Return the networks in the first stored play of each optimizer.

    Args:
        study: A study; what sources leave is stored with `record = "full"` only.
        order: Names of optimizers, in the order in which to return their networks.
        where: Values of swept parameters to look at, by path in full; by default, all.
        only: The one optimizer to look at; by default, all.

    Returns:
        The networks; and what is wrong with tables that are left out.
    """
    first: dict[str, StoredSummary] = {}
    for found in study.finished():
        wanted = only in (None, found.optimizer) and agree(found.setting, where or {})
        if found.record == "full" and wanted:
            first.setdefault(found.optimizer, found)
    shown: list[ShownNetwork] = []
    notes: list[str] = []
    names = [name for name in order if name in first]
    for name in [*names, *(name for name in first if name not in names)]:
        found = first[name]
        networks, wrong = read_networks(study.read(found.key).trace.accounts)
        values = format_setting(found.setting)
        title = f"{name} ({values})" if values else name
        play = f"seed {found.seed}, replication {found.replication}"
        shown += show_networks(title, play, networks)
        notes += wrong
    return shown, notes


def read_networks(
    accounts: Mapping[str, Mapping[str, ArrayLike]],
) -> tuple[tuple[NetworkData, ...], tuple[str, ...]]:
    """Return what can be drawn of the networks in the accounts of a trace.

    Args:
        accounts: Tables by "<source>/<table>", as in `Trace.accounts`.

    Returns:
        One for each source with a table `nodes`; and what is wrong with tables that are left out.
    """
    networks: list[NetworkData] = []
    notes: list[str] = []
    for source in [key.rpartition("/")[0] for key in accounts if key.endswith("/nodes")]:
        name = mask_invisible(source)
        tables: dict[str, Columns] = {}
        for table in NEEDED:
            if (given := accounts.get(f"{source}/{table}")) is None:
                continue
            try:
                nodes = len(tables["nodes"]["name"]) if "nodes" in tables else None
                tables[table] = read_table(given, table, nodes)
            except ValueError as error:
                notes.append(f"The table {table} of {name} is not drawn: {error}.")
                if table == "nodes":
                    break
        if "nodes" in tables:
            networks.append(NetworkData(source, **tables))
    return tuple(networks), tuple(notes)
