"""Networks: what a source's own tables tell of its nodes, links, batteries and packets.

A source that leaves a table `nodes` in the accounts of a trace is drawn as a network, whatever it
is. The columns are listed in docs/guides/report.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparq_sim.arrays import Matrix, Values
from sparq_sim.errors import mask_invisible
from sparq_sim.simulation.trace import Columns
from sparq_sim.study.settings import Setting, agree, format_setting

if TYPE_CHECKING:
    from sparq_sim.study.results import Results
    from sparq_sim.study.store import StoredSummary

__all__ = [
    "AT",
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

CAUSES = ("measure", "send", "receive", "listen", "sleep", "compute")
"""What energy is used for, as in the names of the columns `energy_...`."""
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
    "queue": "waits for the gateway to send",
    "backoff": "backs off",
    "measure": "the node measures",
    "downlink": "downlink",
    "uplink": "uplink",
    "lost": "packet lost",
}
"""Phases in the life of a query, in the order in which they are drawn, and what they are called."""

_Kind: TypeAlias = Literal["text", "number", "whole", "flag"]
_LINKS: Mapping[str, _Kind] = {"gateway": "whole", "distance": "number"}
_COUNTS: Mapping[str, _Kind] = dict.fromkeys(
    ("sent", "delivered", "lost", "collided", "refused"), "whole"
)
_NEEDED: Mapping[str, Mapping[str, _Kind]] = {
    "nodes": {
        "name": "text",
        "east": "number",
        "north": "number",
        "capacity": "number",
        "left": "number",
        "died_at": "number",
    },
    "gateways": {"name": "text", "east": "number", "north": "number"},
    "levels": {"time": "number", "node": "whole", "left": "number", "alive": "flag"},
    "packets": {"purpose": "text", "fate": "text"},
    "phases": {
        "query": "whole",
        "node": "whole",
        "phase": "text",
        "started_at": "number",
        "ended_at": "number",
    },
}
"""Columns without which a table is not drawn."""
_MORE: Mapping[str, Mapping[str, _Kind]] = {
    "nodes": {
        **_LINKS,
        **_COUNTS,
        "margin": "number",
        "rate": "whole",
        "harvested": "number",
        "airtime": "number",
        **{f"energy_{cause}": "number" for cause in CAUSES},
    },
    "gateways": {"airtime": "number", "busiest": "whole"},
    "packets": {"direction": "text"},
    "phases": {"row": "whole"},
}
"""Columns that are shown where they are there."""
AT = "at_"
"""The prefix of columns of nodes that hold the coordinates, in the domain, of the point at which a
node measures."""


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
        purposes = [mask_invisible(str(purpose)) for purpose in self.packets["purpose"]]
        if "direction" in self.packets:
            ways = [mask_invisible(str(way)) for way in self.packets["direction"]]
            both = {p for p, w in zip(purposes, ways, strict=True) if w != "up"}
            both &= {p for p, w in zip(purposes, ways, strict=True) if w == "up"}
            purposes = [f"{p} {w}" if p in both else p for p, w in zip(purposes, ways, strict=True)]
        fates = [mask_invisible(str(fate)) for fate in self.packets["fate"]]
        counts: dict[str, dict[str, int]] = {}
        for purpose, fate in zip(purposes, fates, strict=True):
            of = counts.setdefault(purpose, {})
            of[fate] = of.get(fate, 0) + 1
        most = sorted(counts, key=lambda purpose: -sum(counts[purpose].values()))
        return {purpose: counts[purpose] for purpose in most}


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
        for table in _NEEDED:
            if (given := accounts.get(f"{source}/{table}")) is None:
                continue
            try:
                nodes = len(tables["nodes"]["name"]) if "nodes" in tables else None
                tables[table] = _read_table(given, table, nodes)
            except ValueError as error:
                notes.append(f"The table {table} of {name} is not drawn: {error}.")
                if table == "nodes":
                    break
        if "nodes" in tables:
            networks.append(NetworkData(source, **tables))
    return tuple(networks), tuple(notes)


def _read_table(given: Mapping[str, ArrayLike], table: str, nodes: int | None) -> Columns:
    """Return the columns that are drawn, or raise ValueError with what is wrong with them.

    Args:
        given: The whole table.
        table: Which one it is.
        nodes: How many nodes there are, where that is known.
    """
    needed = _NEEDED[table]
    if missing := [name for name in needed if name not in given]:
        raise ValueError(f"it has no column {missing[0]!r}")
    wanted = {**needed, **{n: k for n, k in _MORE.get(table, {}).items() if n in given}}
    if table == "nodes":
        wanted |= {name: "number" for name in given if name.startswith(AT)}
    columns = {name: _read_column(given[name], name, kind) for name, kind in wanted.items()}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"its columns differ in length: {lengths}")
    if table == "nodes" and not lengths["name"]:
        raise ValueError("it has no row")
    for name in {"east", "north", "time", "started_at", "ended_at"} & columns.keys():
        if not np.isfinite(columns[name]).all():
            raise ValueError(f"its column {name!r} has a value that is not finite")
    if nodes is not None and "node" in columns:
        numbers = columns["node"]
        if ((numbers < 0) | (numbers >= nodes)).any():
            raise ValueError(f"its column 'node' goes beyond the {nodes} nodes that there are")
    return columns


def _read_column(values: ArrayLike, name: str, kind: _Kind) -> NDArray[Any]:
    try:
        column = np.asarray(values)
        match kind:
            case "text":
                column = column.astype(np.str_)
            case "number":
                column = column.astype(float)
            case "whole":
                column = column.astype(np.int64)
            case "flag":
                column = column.astype(bool)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"its column {name!r} does not hold {_HELD[kind]}") from None
    if column.ndim != 1:
        raise ValueError(f"its column {name!r} has {column.ndim} dimensions in place of 1")
    return column


_HELD: Mapping[_Kind, str] = {
    "text": "text",
    "number": "numbers",
    "whole": "whole numbers",
    "flag": "true or false",
}
