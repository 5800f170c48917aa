"""Scenes: how a domain is shown, and where rewards and beliefs are taken for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from sparq_sim.arrays import Points
from sparq_sim.domain import Domain, Sites
from sparq_sim.errors import mask_invisible

__all__ = ["Scene", "SceneKind"]

_LINE, _FIELD, _BELIEVED_FIELD = 101, 31, 21
"""Points per dimension of a curve, of the true field and of the believed ones; the first and the
last lie on the grids of 501 and 41 on which optimizers search unless told otherwise."""

SceneKind: TypeAlias = Literal["line", "field", "map", "strips"]
"""How a domain is shown: a curve, a plane, sites on a map, or a strip per coordinate."""


@dataclass(frozen=True)
class Scene:
    """How a domain is shown, and at which points rewards and beliefs are taken for it."""

    kind: SceneKind
    """Curve, plane, map or strips."""
    true: Points
    """Where true rewards are taken, (n, d)."""
    believed: Points
    """Where beliefs are taken, (m, d)."""
    shape: Mapping[str, Any]
    """What a renderer must know of the domain: names and limits of the coordinates, and places."""

    @classmethod
    def of(cls, domain: Domain) -> Scene:
        """Return how a domain is shown.

        Args:
            domain: A box or sites.
        """
        if isinstance(domain, Sites):
            return cls._of_sites(domain)
        shape: dict[str, Any] = {
            "coordinates": [mask_invisible(name) for name in domain.names],
            "lower": domain.lower.tolist(),
            "upper": domain.upper.tolist(),
        }
        if domain.dimensions == 1:
            line = domain.grid(_LINE)
            return cls("line", line, line, {**shape, "places": line[:, 0].tolist()})
        if domain.dimensions == 2:
            sizes = {"true": _FIELD, "believed": _BELIEVED_FIELD}
            fields = [domain.grid(size) for size in sizes.values()]
            return cls("field", fields[0], fields[1], {**shape, "sizes": sizes})
        nowhere = np.empty((0, domain.dimensions))
        return cls("strips", nowhere, nowhere, shape)

    @classmethod
    def _of_sites(cls, domain: Sites) -> Scene:
        points = domain.points
        shape: dict[str, Any] = {
            "coordinates": [mask_invisible(name) for name in domain.names],
            "lower": points.min(axis=0).tolist(),
            "upper": points.max(axis=0).tolist(),
        }
        if domain.dimensions == 1:
            order = np.argsort(points[:, 0])
            chosen = order[np.unique(np.linspace(0, len(order) - 1, _LINE).round().astype(int))]
            line = points[chosen]
            return cls("line", line, line, {**shape, "places": line[:, 0].tolist(), "sites": True})
        across, up = _axes(domain.names)
        named = {
            "names": [mask_invisible(name) for name in domain.site_names],
            "axes": [across, up],
            "earth": _latitude(domain.names[up]),
            "places": points[:, [across, up]].tolist(),
        }
        return cls("map", points, points, {**shape, **named})


def _axes(names: Sequence[str]) -> tuple[int, int]:
    """Find which coordinates go across and up a map: longitude and latitude where there are any."""
    up = [i for i, name in enumerate(names) if _latitude(name)]
    across = [i for i, name in enumerate(names) if name.lower().startswith(("lon", "lng"))]
    return (across[0], up[0]) if across and up else (0, 1)


def _latitude(name: str) -> bool:
    return name.lower().startswith("lat")
