"""Placing: where nodes and gateways are, and how far from each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    field_validator,
)
from pydantic_core import PydanticCustomError

from sparq_experts.wireless.metre_map import MetreMap, build_map, compute_distances
from sparq_experts.wireless.node_table import (
    ListedNode,
    NodeAt,
    check_fields,
    check_file,
    read_nodes,
)
from sparq_sim.arrays import Matrix, Points, all_finite, freeze_array
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.errors import PluginError, did_you_mean
from sparq_sim.plugin.contract import Model

__all__ = [
    "AnyPlacing",
    "NodeFile",
    "NodeTable",
    "Places",
    "Scattered",
    "check_placing",
    "place",
]

_FORMS = (
    'nodes = { scattered = 30, seed = 1 }, nodes = { file = "nodes.csv" } or '
    "nodes = [{ at = [0.2, 0.4] }, ...]"
)


class Scattered(Model):
    """Nodes scattered over a box, the same in all replications."""

    scattered: Annotated[int, Field(ge=1, le=100_000)]
    """How many nodes, 1 to 100,000."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Another seed gives other places; without effect where `spread` is `even`."""
    spread: Literal["uniform", "even"] = "uniform"
    """How: `uniform` at random, or `even` without chance, with no two nodes close together."""


class NodeFile(Model):
    """Nodes listed in a CSV file with a header line, one node a line.

    Its columns are one for each coordinate of the domain, by its name or as x0, x1, ..., and
    optionally `name`, `battery` (J), `spreading_factor` and `distance` (m to the gateway, in place
    of that on the map). On a domain of sites, the names of sites can stand for the coordinates.
    """

    file: Path
    """The CSV file. A relative path starts from the working directory or, in a scenario file, from
    the folder of that file; `~` is the home directory."""


class NodeTable(Model):
    """Nodes listed in the scenario: `nodes = [{ name = "n1", at = [0.2, 0.4] }, ...]`."""

    rows: tuple[NodeAt, ...]
    """The nodes, each a table with `at`, and optionally `name`, `battery`, `spreading_factor` and
    `distance`."""

    @field_validator("rows")
    @classmethod
    def _not_empty(cls, rows: tuple[NodeAt, ...]) -> tuple[NodeAt, ...]:
        if not rows:
            raise ValueError(f"there are no nodes; write {_FORMS}")
        return rows


_CHOICES: Mapping[str, type[Model]] = {"scattered": Scattered, "file": NodeFile, "rows": NodeTable}
"""The field by which each model is recognised."""


def _read_placing(given: Any) -> Any:
    """Return a list of nodes as a table, and refuse what is no placing."""
    if isinstance(given, list | tuple):
        return {"rows": given}
    if isinstance(given, Mapping):
        found = [key for key in _CHOICES if key in given]
        if not found:
            raise _error(f"should have `scattered` or `file`: write {_FORMS}")
        if len(found) > 1:
            raise _error(
                f"should have one of {' and '.join(f'`{key}`' for key in found)}, not both; a "
                "scenario that extends another takes out a field of that by `without`"
            )
        check_fields(given, _CHOICES[found[0]])
    elif not isinstance(given, BaseModel):
        raise _error(f"should be a table or a list of nodes: write {_FORMS}")
    return given


def _find_choice(given: Any) -> str | None:
    """Return the tag of the model that a table is of, or that a model is."""
    for key, model in _CHOICES.items():
        if isinstance(given, model) or (isinstance(given, Mapping) and key in given):
            return model.__name__
    return None


def _error(reason: str) -> PydanticCustomError:
    return PydanticCustomError("placing", "{reason}", {"reason": reason})


AnyPlacing: TypeAlias = Annotated[
    Annotated[Scattered, Tag("Scattered")]
    | Annotated[NodeFile, Tag("NodeFile")]
    | Annotated[NodeTable, Tag("NodeTable")],
    Discriminator(_find_choice),
    BeforeValidator(
        _read_placing,
        json_schema_input_type=Scattered | NodeFile | NodeTable | tuple[NodeAt, ...],
    ),
]
"""Where nodes are, as a field: a table with `scattered` or `file`, or a list of nodes."""


@dataclass(frozen=True)
class Places:
    """Where the n nodes and the g gateways of a network are."""

    names: tuple[str, ...]
    """The names of the nodes."""
    points: Points
    """The nodes in coordinates of the domain, (n, d)."""
    map: MetreMap
    """How coordinates of the domain become metres."""
    east_north: Points
    """The nodes on a map, in m, (n, 2)."""
    batteries: tuple[float | None, ...]
    """The energy in the full battery of each node, in J; None where it has none of its own."""
    spreading_factors: tuple[int | None, ...]
    """The spreading factor of each node; None where it has none of its own."""
    given_distances: tuple[float | None, ...]
    """The distance of each node to the gateway, in m; None where it is that of the map."""
    gateway_names: tuple[str, ...]
    """The names of the gateways."""
    gateway_points: Points
    """The gateways in coordinates of the domain, (g, d)."""
    gateway_east_north: Points
    """The gateways on a map, in m, (g, 2)."""
    distances: Matrix
    """From each node to each gateway, over all coordinates, in m, (n, g)."""

    @cached_property
    def node_distances(self) -> Matrix:
        """The distance from each node to each other over all coordinates, in m: (n, n)."""
        metres = self.map.to_metres(self.points)
        return freeze_array(compute_distances(metres, metres))

    def find_nearest(self, points: Points) -> NDArray[np.intp]:
        """Return the number of the node that is nearest to each point, in metres: (m,).

        Args:
            points: In coordinates of the domain, (m, d).
        """
        metres = self.map.to_metres
        distances = compute_distances(metres(points), metres(self.points))
        nearest: NDArray[np.intp] = distances.argmin(axis=1)
        return nearest


def check_placing(placing: AnyPlacing | None) -> None:
    """Check what can be checked of a placing before the domain is known: that its file is there.

    Args:
        placing: Where nodes are; None for one node a site.

    Raises:
        PluginError: The file cannot be read; the message has the remedy.
    """
    if isinstance(placing, NodeFile):
        check_file(placing.file)


def place(
    placing: AnyPlacing | None,
    domain: Domain,
    *,
    scale: float = 1.0,
    gateways: Sequence[Sequence[float]] = (),
) -> Places:
    """Return where the nodes and gateways of a network are.

    Distances are Euclidean over all coordinates, each turned into metres (see `MetreMap`).

    Args:
        placing: Where nodes are; None for one node at each site of a domain of sites.
        domain: Where points may lie.
        scale: Metres per unit of the coordinates; where they are latitude and longitude, metres on
            the map per metre on the earth.
        gateways: Points in coordinates of the domain; they may lie outside of it. Without any, one
            gateway is at the mean of the nodes.

    Raises:
        PluginError: A node lies outside the domain or is no site, two nodes have one place or one
            name, a gateway is no point, or the file of nodes is not as it must be. The message has
            the field, the value and the remedy.
    """
    listed = _list_nodes(placing, domain)
    nodes = [node for _, node in listed]
    points = freeze_array([_find_point(where, node, domain) for where, node in listed])
    names = _name_nodes(nodes, points, domain)
    wheres = [where for where, _ in listed]
    _check_inside(wheres, names, points, domain)
    _check_different(wheres, names, points)
    metre_map = build_map(domain, points, scale)
    stations = _read_gateways(gateways, points)
    distances = compute_distances(metre_map.to_metres(points), metre_map.to_metres(stations))
    for i, (where, node) in enumerate(listed):
        if node.distance is not None:
            _check_one_gateway(where, node.distance, len(stations))
            distances[i] = node.distance
    return Places(
        names=names,
        points=points,
        map=metre_map,
        east_north=freeze_array(metre_map.draw(points)),
        batteries=tuple(node.battery for node in nodes),
        spreading_factors=tuple(node.spreading_factor for node in nodes),
        given_distances=tuple(node.distance for node in nodes),
        gateway_names=_number_names("gateway", len(stations)),
        gateway_points=stations,
        gateway_east_north=freeze_array(metre_map.draw(stations)),
        distances=freeze_array(distances),
    )


# Nodes


def _list_nodes(placing: AnyPlacing | None, domain: Domain) -> list[ListedNode]:
    """Return the nodes as they are written, each with where that is."""
    match placing:
        case None:
            if isinstance(domain, Box):
                raise PluginError(
                    f"nodes: missing; a field without sites needs to be told where: {_FORMS}"
                )
            return [("nodes", NodeAt(at=tuple(row))) for row in domain.points.tolist()]
        case Scattered():
            if isinstance(domain, Sites):
                raise PluginError(
                    f"nodes.scattered: {placing.scattered}: nodes are scattered over a box, but "
                    f"this domain has {len(domain.points)} sites; leave `nodes` out for a node at "
                    'each of them, or list some: nodes = [{ name = "'
                    + domain.site_names[0]
                    + '" }]'
                )
            points = (
                domain.cover(placing.scattered)
                if placing.spread == "even"
                else domain.sample(Generator(Philox(key=placing.seed)), placing.scattered)
            )
            return [("nodes.scattered", NodeAt(at=tuple(row))) for row in points.tolist()]
        case NodeFile():
            return read_nodes(placing.file, domain.names, sites=isinstance(domain, Sites))
        case NodeTable():
            return [(f"nodes.{i}", node) for i, node in enumerate(placing.rows)]


def _find_point(where: str, node: NodeAt, domain: Domain) -> tuple[float, ...]:
    """Return the coordinates of a node, which the name of a site can stand for."""
    if node.at is None:
        if isinstance(domain, Box):
            raise PluginError(f"{where}: at is missing; write {_example(domain)}")
        if node.name is None:
            raise PluginError(f"{where}: at and name are missing; write one, to tell the site")
        if node.name not in domain.site_names:
            raise PluginError(
                f"{where}: name: {node.name!r} is no site, and at is missing; "
                f"{did_you_mean(node.name, domain.site_names)}"
            )
        row: list[float] = domain.points[domain.site_names.index(node.name)].tolist()
        return tuple(row)
    if len(node.at) != domain.dimensions:
        raise PluginError(
            f"{where}: at: {list(node.at)} has {len(node.at)} coordinates, but a point of the "
            f"domain has {domain.dimensions}: {', '.join(domain.names)}; write {_example(domain)}"
        )
    return node.at


def _example(domain: Domain) -> str:
    low = domain.lower if isinstance(domain, Box) else domain.points[0]
    return f"at = {low.tolist()}, for example"


def _name_nodes(nodes: Sequence[NodeAt], points: Points, domain: Domain) -> tuple[str, ...]:
    """Return the name of each node: its own, that of its site, or a number."""
    numbered = [f"node-{i}" for i in range(len(nodes))]
    if isinstance(domain, Sites):
        inside = domain.contains(points)
        numbered = [
            domain.site_names[domain.index(point[None])[0]] if at_site else name
            for name, point, at_site in zip(numbered, points, inside, strict=True)
        ]
    return tuple(node.name or name for node, name in zip(nodes, numbered, strict=True))


def _number_names(what: str, count: int) -> tuple[str, ...]:
    return (what,) if count == 1 else tuple(f"{what}-{i}" for i in range(count))


def _check_inside(
    wheres: Sequence[str], names: Sequence[str], points: Points, domain: Domain
) -> None:
    for i in np.flatnonzero(~domain.contains(points)).tolist():
        node, at = f"{wheres[i]}: node {names[i]!r} at", points[i].tolist()
        if isinstance(domain, Box):
            raise PluginError(
                f"{node} {at} lies outside the field, which reaches from {domain.lower.tolist()} "
                f"to {domain.upper.tolist()} ({', '.join(domain.names)}); move it inside"
            )
        nearest = int(((domain.points - points[i]) ** 2).sum(axis=1).argmin())
        raise PluginError(
            f"{node} {at} is none of the {len(domain.points)} sites; the nearest is "
            f"{domain.site_names[nearest]!r} at {domain.points[nearest].tolist()}"
        )


def _check_different(wheres: Sequence[str], names: Sequence[str], points: Points) -> None:
    at: dict[tuple[float, ...], int] = {}
    named: dict[str, int] = {}
    for i, (name, point) in enumerate(zip(names, points.tolist(), strict=True)):
        if (other := at.setdefault(tuple(point), i)) != i:
            raise PluginError(
                f"{wheres[i]}: node {name!r} is at {point}, as is {names[other]!r} "
                f"({wheres[other]}); move one, or take one out"
            )
        if (other := named.setdefault(name, i)) != i:
            raise PluginError(
                f"{wheres[i]}: the name {name!r} is also that of the node at "
                f"{points[other].tolist()} ({wheres[other]}); give each node its own"
            )


# Gateways


def _read_gateways(gateways: Sequence[Sequence[float]], points: Points) -> Points:
    dimensions = points.shape[1]
    for i, given in enumerate(gateways):
        if len(given) != dimensions or not all_finite(np.asarray(given, dtype=float)):
            raise PluginError(
                f"gateways.{i}: {list(given)} is no place; write {dimensions} finite "
                f"{'number' if dimensions == 1 else 'numbers'}, in coordinates of the domain"
            )
    return freeze_array(gateways if len(gateways) else points.mean(axis=0, keepdims=True))


def _check_one_gateway(where: str, distance: float, gateways: int) -> None:
    if gateways > 1:
        raise PluginError(
            f"{where}: distance: {distance:g} m is that to the only gateway, but there are "
            f"{gateways}; keep one gateway, or leave `distance` out"
        )
