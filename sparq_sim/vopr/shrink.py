"""Shrink a case that breaks a law to a smaller one that breaks it still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sparq_sim.errors import SparqError
from sparq_sim.scenario.tables import Table, join_path
from sparq_sim.vopr.case import Case

__all__ = ["shrink"]

_MOST_TRIES = 150
_KEPT = {"rounds", "environment", "optimizers", "seed", "record", "levels"}
"""What no scenario can do without."""


def shrink(case: Case, breaks: Callable[[Case], bool]) -> Case:
    """Return a case of which parts are left out, and that still breaks a law.

    Experts, channels, policies and faults are left out one by one, and rounds are taken from the
    end, as long as anything can be.

    Args:
        case: A case that breaks a law.
        breaks: Whether a valid case breaks the same law.
    """
    tries = 0
    while True:
        for smaller in _list_smaller(case):
            tries += 1
            if tries > _MOST_TRIES:
                return case
            if _is_valid(smaller) and breaks(smaller):
                case = smaller
                break
        else:
            return case


def _is_valid(case: Case) -> bool:
    try:
        case.scenario  # noqa: B018 - it is made when it is looked at
    except SparqError:
        return False
    return True


def _list_smaller(case: Case) -> Iterator[Case]:
    """Yield cases that are smaller by one part, the largest parts first."""
    table = case.table
    rounds = int(table["rounds"])
    for fewer in sorted({rounds // 2, rounds - 1} - {0, rounds}):
        yield replace(case, rounds=fewer)
    for path in _list_parts(table):
        yield replace(case, without=(*case.without, path))


def _list_parts(table: Table) -> Iterator[str]:
    """Yield the paths of what can be left out."""
    experts = table.get("experts", {})
    yield from (join_path(["experts", name]) for name in experts)
    channels: dict[tuple[str, ...], Table] = {("feedback",): table.get("feedback", {})}
    channels |= {
        ("experts", name, "channel"): each.get("channel", {}) for name, each in experts.items()
    }
    yield from (join_path(keys) for keys, channel in channels.items() if channel)
    yield from (join_path([key]) for key in table if key not in _KEPT and key != "experts")
    for keys, channel in channels.items():
        yield from (join_path([*keys, field]) for field in channel)
        yield from (join_path([*keys, "policy", field]) for field in channel.get("policy", {}))
        faults = channel.get("faults", [])
        yield from (join_path([*keys, "faults", str(n)]) for n in range(len(faults)))
