"""The ranked chart: all optimizers, the best on top, as a list that needs no script.

Each row has a name, a track on which its mean lies, and a number. What lies on a track is placed in
per cent of its width, so that it fits every screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from sparq_sim.analysis.axis import Axis, find_axis
from sparq_sim.analysis.intervals import FEWEST
from sparq_sim.analysis.standings import Ranking, Standings, label_of
from sparq_sim.analysis.summary import Summary, group
from sparq_sim.report.data import ChartData
from sparq_sim.report.html.track import Track, make_track
from sparq_sim.report.looks import Look
from sparq_sim.report.phrases import choose_decimals, format_decimals, format_number
from sparq_sim.report.uncertainty import find_interval
from sparq_sim.study.settings import Setting, format_setting, format_value

__all__ = ["Mark", "RankedChart", "RankedRow", "make_ranked_chart"]

_MOST_ROWS = 24
"""Of optimizers or settings: more than fit on a screen."""


@dataclass(frozen=True)
class Mark:
    """What lies on a track: the mean of an optimizer, and how sure it is."""

    at: float
    """Where the mean is, in per cent of the track."""
    look: Look
    """The optimizer's."""
    words: str
    """All of it in words."""
    height: float = 50.0
    """How far below the top of the track, in per cent of its height."""
    ends: tuple[float, float] | None = None
    """Where its interval begins and ends; None where there is none."""
    plays: Sequence[float] = ()
    """Where its plays are, if they are too few for an interval."""


@dataclass(frozen=True)
class RankedRow:
    """A row: an optimizer, a setting, or what a simple policy would get."""

    name: str
    """What it is called."""
    number: str
    """The mean; of a setting, that of its best optimizer."""
    marks: Sequence[Mark] = ()
    """What lies on its track."""
    look: Look | None = None
    """Of an optimizer."""
    level: tuple[float, float] | None = None
    """Of a simple policy: where it is, and where it would be if the track went on."""
    leads: bool = False
    """Whether it is the best."""
    by: str = ""
    """Of a setting with several optimizers: which one is its best."""


@dataclass(frozen=True)
class RankedChart:
    """The whole chart."""

    rows: Sequence[RankedRow]
    """The best first; of several settings, in their order."""
    ticks: Sequence[tuple[float, str]]
    """Where numbers stand below the tracks."""
    lines: Sequence[float]
    """Where lines go through all rows: what simple policies would get."""
    key: Sequence[tuple[str, Look]]
    """The optimizers, where rows are settings."""
    caption: str
    """What is drawn."""


def make_ranked_chart(data: ChartData, standings: Standings | None) -> RankedChart | None:
    """Make the ranked chart of a study.

    Args:
        data: Its plays, levels and looks.
        standings: Its rows, ranked.

    Returns:
        The chart; None where nothing can be ranked.
    """
    if standings is None or not standings.rankings:
        return None
    rankings = standings.rankings[:_MOST_ROWS]
    rows = [place.row for each in rankings for place in each.places]
    plays = group(standings.found)
    numbers = {
        label_of(row): [
            n for play in plays[label_of(row)] if (n := data.criterion.of(play)) is not None
        ]
        for row in rows
    }
    drawer = _Drawer(
        data,
        make_track([*_list_extents(rows, numbers)], from_zero=data.criterion.from_zero),
        numbers,
    )
    return drawer.draw_one(rankings[0]) if len(rankings) == 1 else drawer.draw_several(rankings)


def _list_extents(
    rows: Iterable[Summary], numbers: dict[tuple[str, str], list[float]]
) -> Iterable[tuple[float, float, float]]:
    """Yield for each row the mean, and what the track should show around it."""
    for row in rows:
        low, high = find_interval(row.judged, positive=row.criterion.from_zero)
        if isfinite(low):
            yield row.judged.mean, low, high
        else:
            own = numbers[label_of(row)]
            yield row.judged.mean, min(own), max(own)


class _Drawer:
    """Draws rows on tracks of one scale."""

    def __init__(
        self, data: ChartData, track: Track, numbers: dict[tuple[str, str], list[float]]
    ) -> None:
        self._data = data
        self._track = track
        self._numbers = numbers
        self._decimals = choose_decimals(
            abs(sum(each) / len(each)) for each in numbers.values() if each
        )

    def _write(self, mean: float) -> str:
        return format_decimals(mean, self._decimals)

    def draw_one(self, ranking: Ranking) -> RankedChart:
        """Draw the optimizers of one setting, with the levels in their ranks."""
        several = len(ranking.places) > 1
        ranked = [
            (
                place.row.loss,
                RankedRow(
                    name=place.row.optimizer,
                    number=self._write(place.row.judged.mean),
                    marks=[self._mark(place.row)],
                    look=self._data.look(place.row.optimizer),
                    leads=several and place is ranking.best,
                ),
            )
            for place in ranking.places
        ]
        levels = self._draw_levels(ranking.setting)
        ranked += [(height, row) for height, row in levels]
        ranked.sort(key=lambda each: each[0])
        return self._finish([row for _, row in ranked], levels, [])

    def draw_several(self, rankings: Sequence[Ranking]) -> RankedChart:
        """Draw each setting as a row, with all optimizers on its track."""
        axis = find_axis([each.setting for each in rankings])
        names = dict.fromkeys(place.row.optimizer for each in rankings for place in each.places)
        listed = [name for name in self._data.optimizers if name in names]
        rows = [
            RankedRow(
                name=_name_setting(each.setting, axis),
                number=self._write(each.best.row.judged.mean),
                marks=self._mark_all(each, listed),
                look=self._data.look(each.best.row.optimizer) if len(names) > 1 else None,
                by=each.best.row.optimizer if len(names) > 1 else "",
            )
            for each in rankings
        ]
        settings = [each.setting for each in rankings]
        same = len({tuple(self._data.levels_in(setting)) for setting in settings}) == 1
        levels = sorted(self._draw_levels(settings[0]) if same else [], key=lambda each: each[0])
        key = [(name, self._data.look(name)) for name in listed]
        return self._finish([*rows, *(row for _, row in levels)], levels, key)

    def _mark_all(self, ranking: Ranking, listed: Sequence[str]) -> list[Mark]:
        """Mark all optimizers of a setting, below each other as they are listed in the key."""
        rows = sorted(
            (place.row for place in ranking.places), key=lambda row: listed.index(row.optimizer)
        )
        step = 100 / (len(listed) + 1)
        return [
            replace(self._mark(row), height=step * (1 + listed.index(row.optimizer)))
            for row in rows
        ]

    def _mark(self, row: Summary) -> Mark:
        place, judged = self._track.place, row.judged
        low, high = find_interval(judged, positive=row.criterion.from_zero)
        words = f"{row.optimizer}: {format_number(judged.mean)}"
        if isfinite(low):
            words += f", 95 % interval {format_number(low)} to {format_number(high)}"
        own = self._numbers[label_of(row)]
        return Mark(
            at=place(judged.mean),
            look=self._data.look(row.optimizer),
            words=f"{words}, {len(own)} play{'' if len(own) == 1 else 's'}",
            ends=(place(low), place(high)) if isfinite(low) else None,
            plays=() if isfinite(low) or len(own) < 2 else [place(number) for number in own],
        )

    def _draw_levels(self, setting: Setting) -> list[tuple[float, RankedRow]]:
        return [
            (
                height,
                RankedRow(
                    name=name,
                    number=self._write(height),
                    level=(self._track.place(height), self._track.extend(height)),
                ),
            )
            for name, height in self._data.levels_in(setting)
        ]

    def _finish(
        self,
        rows: Sequence[RankedRow],
        levels: Sequence[tuple[float, RankedRow]],
        key: Sequence[tuple[str, Look]],
    ) -> RankedChart:
        counts = {len(each) for each in self._numbers.values()}
        scale = ", on a logarithmic scale" * self._track.scale.logarithmic
        told = [f"{self._data.criterion.label.capitalize()}{scale}."]
        if max(counts) >= FEWEST:
            told.append("Bars are 95 % intervals of the mean.")
        if any(1 < count < FEWEST for count in counts):
            told.append("Small dots are single plays.")
        if levels:
            told.append("In italics: what simple policies would get.")
        lines = [
            self._track.place(height)
            for height, _ in levels
            if 0 <= self._track.extend(height) <= 100
        ]
        return RankedChart(rows, self._track.ticks, lines, key, " ".join(told))


def _name_setting(setting: Setting, axis: Axis | None) -> str:
    if axis is None:
        return format_setting(setting)
    return f"{axis.name} {format_value(setting[axis.path])}"
