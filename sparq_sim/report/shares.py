"""Shares: wholes whose parts optimizers noted as `group/part`, over the rounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from sparq_sim.analysis.curves import Series
from sparq_sim.report.palette import spread_shares
from sparq_sim.simulation.trace import NOTE, Columns, split_note
from sparq_sim.study.settings import Setting
from sparq_sim.study.store import canonical

__all__ = ["Shares", "choose_colours", "find_shares", "is_share", "list_parts", "spell_out"]


@dataclass(frozen=True)
class Shares:
    """How a whole was divided over the rounds: the mean over an optimizer's plays in a setting."""

    group: str
    """The whole, as it was noted."""
    optimizer: str
    """Name of the optimizer."""
    setting: Setting
    """Swept values of its plays."""
    parts: tuple[str, ...]
    """The parts, in the order in which they were noted."""
    rounds: NDArray[np.float64]
    """Middles of the bins of rounds that are averaged over, from 1: (bins,)."""
    values: NDArray[np.float64]
    """The share of each part, from 0 to 1: (parts, bins)."""


def is_share(name: str) -> bool:
    """Return whether a series is a part of a whole that an optimizer noted.

    Args:
        name: As in `Series`.
    """
    return bool(_split_series(name)[0])


def find_shares(series: Iterable[Series]) -> list[Shares]:
    """Return the wholes whose parts were noted, one for each group, optimizer and setting.

    Args:
        series: All there are; those that are no parts are left out.
    """
    wholes: dict[tuple[str, str, str], dict[str, Series]] = {}
    for each in series:
        group, part = _split_series(each.name)
        if group:
            key = group, each.optimizer, canonical(dict(each.setting))
            wholes.setdefault(key, {})[part] = each
    return [_join(group, parts) for (group, _, _), parts in wholes.items()]


def list_parts(rounds: Columns) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return the columns of the parts of each group that was noted in a play.

    Args:
        rounds: The rounds of a trace.
    """
    groups: dict[str, dict[str, NDArray[np.float64]]] = {}
    for name, column in rounds.items():
        group, part = split_note(name.removeprefix(NOTE))
        if name.startswith(NOTE) and group:
            groups.setdefault(group, {})[part] = column
    return groups


def choose_colours(wholes: Sequence[Shares], group: str) -> dict[str, int]:
    """Choose a colour for each part of a group, the same for all optimizers and settings.

    Args:
        wholes: All there are.
        group: The whole that is coloured.

    Returns:
        Which colour of `palette.SHARES`, from 1. Parts that are numbers have them by their size,
        others in the order in which they were noted.
    """
    noted = dict.fromkeys(part for each in wholes if each.group == group for part in each.parts)
    numbers = {part: _read_number(part) for part in noted}
    parts = (
        sorted(noted, key=numbers.__getitem__) if all(map(isfinite, numbers.values())) else noted
    )
    return dict(zip(parts, spread_shares(len(noted)), strict=True))


def spell_out(name: str) -> str:
    """Return a group or a part as readers see it: "time scale" for `time_scale`.

    Args:
        name: As it was noted.
    """
    return name.replace("_", " ")


def _split_series(name: str) -> tuple[str, str]:
    kind, _, noted = name.partition(" ")
    return split_note(noted) if kind == "note" else ("", name)


def _join(group: str, parts: dict[str, Series]) -> Shares:
    first = next(iter(parts.values()))
    rounds = np.unique(np.concatenate([each.rounds for each in parts.values()]))
    # Where the others are noted and a part is not, there is nothing of it.
    values = np.zeros((len(parts), len(rounds)))
    for row, each in zip(values, parts.values(), strict=True):
        row[np.searchsorted(rounds, each.rounds)] = each.means
    return Shares(group, first.optimizer, first.setting, tuple(parts), rounds, values)


def _read_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
