"""Reading a study into pictures of place over time: which play is shown, and what is seen of it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from statistics import fmean, median_low
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from sparq_sim.errors import SparqError, mask_invisible
from sparq_sim.plugin.exits import refuse_exits
from sparq_sim.report.place.data import (
    Paint,
    PlaceAxis,
    PlacePicture,
    PlaceRow,
)
from sparq_sim.report.place.ground import Place, World, look_around
from sparq_sim.report.place.words import describe_play
from sparq_sim.simulation.beliefs import find_play
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.study.settings import Setting, agree, format_setting
from sparq_sim.study.store import StoreError, canonical

if TYPE_CHECKING:
    from sparq_sim.simulation.trace import Trace
    from sparq_sim.study.results import Results
    from sparq_sim.study.store import StoredSummary

__all__ = ["read_places"]

_MOST_ROWS = 12
"""Of a picture."""
_MOST_PICTURES = 6
"""Of a study; of more settings, some are shown."""
_MOST_DOTS = 2000
"""Of a row; of longer plays, as many rounds are shown, evenly spread."""
_SECONDS = 10.0
"""Of starting landscapes and taking true rewards, of all pictures together."""


def read_places(
    study: Results,
    settings: Sequence[Setting],
    *,
    replication: int | None = None,
    allow_import: bool = False,
) -> list[PlacePicture]:
    """Read where optimizers played, and what was true there.

    Args:
        study: A study.
        settings: Those to show; of many, some are, evenly chosen.
        replication: Which one; by default, that in which the best optimizer did as in its median
            play.
        allow_import: Whether plays may name code to run, as `module:Class`.

    Returns:
        A picture per setting; where there is one optimizer in several settings, they are the rows
        of one picture if they share a world.

    Raises:
        SparqError: No play has that replication.
    """
    found = [play for play in study.finished() if play.measures.get("rounds")]
    if replication is not None:
        numbers = sorted({play.replication for play in found})
        found = [play for play in found if play.replication == replication]
        if numbers and not found:
            raise SparqError(
                f"no finished play has replication {replication}; there are: "
                f"{', '.join(map(str, numbers))}"
            )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # They were given when it was played first.
        reader = _Reader(study, allow_import=allow_import)
        return [
            picture
            for rows in _choose_rows(found, settings)
            if (picture := reader.read(rows)) is not None
        ]


# Which plays are shown


@dataclass(frozen=True)
class _Candidates:
    """The plays of which a row shows one."""

    title: str
    plays: Sequence[StoredSummary]

    @property
    def loss(self) -> float:
        return fmean(map(_loss, self.plays))


@dataclass(frozen=True)
class _Rows:
    """The rows of a picture, before their plays are chosen."""

    setting: str
    rows: Sequence[_Candidates]
    ranked: bool = True


def _choose_rows(plays: Sequence[StoredSummary], settings: Sequence[Setting]) -> list[_Rows]:
    """Return which plays each picture can show."""
    alone = len({play.optimizer for play in plays}) == 1 and len(settings) > 1
    chosen = _thin(settings, _MOST_ROWS if alone else _MOST_PICTURES)
    pictures = []
    for setting in chosen:
        here: dict[str, list[StoredSummary]] = {}
        for play in plays:
            if agree(play.setting, setting):
                rest = {path: v for path, v in play.setting.items() if path not in setting}
                title = f"{play.optimizer}, {format_setting(rest)}" if rest else play.optimizer
                here.setdefault(title, []).append(play)
        rows = [_Candidates(mask_invisible(title), each) for title, each in here.items()]
        rows = sorted(rows, key=lambda each: each.loss)[:_MOST_ROWS]
        pictures.append(_Rows(mask_invisible(format_setting(setting)), rows))
    pictures = [picture for picture in pictures if picture.rows]
    if alone and pictures:
        rows = [_Candidates(each.setting, row.plays) for each in pictures for row in each.rows]
        return [_Rows("", rows[:_MOST_ROWS], ranked=False)]
    return pictures


def _thin(settings: Sequence[Setting], most: int) -> list[Setting]:
    if len(settings) <= most:
        return list(settings)
    return [settings[i] for i in np.linspace(0, len(settings) - 1, most).round().astype(int)]


def _loss(play: StoredSummary) -> float:
    """Return what a play is compared by, such that less is better."""
    regret, reward = (play.measures.get(name) for name in ("average_regret", "mean_reward"))
    loss = regret if play.knows_best else None if reward is None else -reward
    return loss if loss is not None and isfinite(loss) else 1e300


def _choose_plays(rows: Sequence[_Candidates]) -> dict[str, StoredSummary]:
    """Return a play for each row, all of one replication, as most rows have it.

    Of these it is the one in which the best row did as in its median play.
    """
    counts: dict[tuple[int, int], int] = {}
    for row in rows:
        for number in {(play.seed, play.replication) for play in row.plays}:
            counts[number] = counts.get(number, 0) + 1
    best = min(rows, key=lambda row: row.loss)
    own = list(best.plays)
    most = max(counts[play.seed, play.replication] for play in own)
    own = [play for play in own if counts[play.seed, play.replication] == most]
    middle = median_low([(_loss(play), play.seed, play.replication) for play in own])
    return {
        row.title: play
        for row in rows
        for play in row.plays
        if (play.seed, play.replication) == middle[1:]
    }


# What is seen of them


class _Reader:
    """Reads pictures; keeps the worlds that were looked at, for several settings may share one."""

    def __init__(self, study: Results, *, allow_import: bool) -> None:
        self._study = study
        self._allow_import = allow_import
        self._worlds: dict[str, World | str] = {}
        self._seconds = _SECONDS

    def read(self, chosen: _Rows) -> PlacePicture | None:
        """Return a picture; None where none of its plays can be read."""
        plays = _choose_plays(chosen.rows)
        traces: dict[str, Trace] = {}
        for title, play in plays.items():
            try:
                traces[title] = self._study.read(play.key).trace
            except StoreError:
                continue  # The report says elsewhere which files are damaged.
        if not traces:
            return None
        first = plays[next(iter(traces))]
        worlds = {title: _identify(trace) for title, trace in traces.items()}
        known = worlds[next(iter(traces))]
        alike = {title: trace for title, trace in traces.items() if worlds[title] == known}
        notes = [
            f"{row.title} is not shown: it has no such play, or its environment is another."
            for row in chosen.rows
            if row.title not in alike
        ]
        seen = self._look(known, list(alike.values()), first)
        world = None if isinstance(seen, str) else seen
        if isinstance(seen, str):
            notes.append(f"The true reward is not shown: {seen}.")
        paint = _choose_paint(list(alike.values()), world)
        place = world.place if world else _guess_place(list(alike.values()))
        longest = max(len(trace) for trace in alike.values())
        rows = [
            _read_row(title, trace, world, place, paint, planned=longest)
            for title, trace in alike.items()
        ]
        ends = [trace.rounds["played_at"][[0, -1]] for trace in alike.values()]
        return PlacePicture(
            setting=chosen.setting,
            ranked=chosen.ranked,
            play=f"seed {first.seed}, replication {first.replication}",
            axis=_fit_axis(place.axis, rows),
            paint=paint,
            rows=rows,
            span=(min(float(end[0]) for end in ends), max(float(end[1]) for end in ends)),
            ground=world.ground if world else None,
            notes=notes,
        )

    def _look(self, known: str, traces: Sequence[Trace], play: StoredSummary) -> World | str:
        """Return the world of some plays, or why it is not known."""
        longest = max(traces, key=len)
        key = f"{known} {play.seed} {play.replication} {len(longest)}"
        if key not in self._worlds:
            begun = monotonic()
            try:
                with refuse_exits():
                    self._worlds[key] = self._look_around(longest, traces)
            except Exception as error:  # Whatever plug-ins, files and versions can do.
                reason = " ".join(str(error).split())
                self._worlds[key] = mask_invisible(f"{reason:.300}")
            self._seconds -= monotonic() - begun
        return self._worlds[key]

    def _look_around(self, longest: Trace, traces: Sequence[Trace]) -> World:
        if self._seconds <= 0:
            raise SparqError("there was no time for it besides those of other settings")
        played = find_play(longest, allow_import=self._allow_import)
        with open_landscape(played.environment, played.seed, played.replication) as landscape:
            for trace in traces:
                landscape.domain.check(trace.points[_known(trace)])
            times = longest.rounds["played_at"]
            return look_around(landscape, times, seconds=max(1.0, self._seconds))


def _identify(trace: Trace) -> str:
    told: Mapping[str, Any] = trace.provenance.get("play", {})
    return canonical([told.get("environment"), list(trace.coordinates)])


def _known(trace: Trace) -> Any:
    """Return which rounds have a point: (rounds,)."""
    return np.isfinite(trace.points).all(axis=1)


def _choose_paint(traces: Sequence[Trace], world: World | None) -> Paint:
    """Return how rounds are coloured: by regret, if it is known of all plays."""
    word = "regret" if all(trace.knows_best for trace in traces) else "reward"
    values = np.concatenate([trace.rounds[word] for trace in traces])
    values = values[np.isfinite(values)]
    if word == "regret":
        if world and world.random_regret > 0:
            return Paint("regret", 0.0, world.random_regret, "that of random points")
        return Paint("regret", 0.0, float(np.quantile(values, 0.95)) if len(values) else 1.0)
    low, high = np.quantile(values, [0.02, 0.98]).tolist() if len(values) else (0.0, 1.0)
    return Paint("reward", high, low)


def _guess_place(traces: Sequence[Trace]) -> Place:
    """Return the first coordinate, within the limits of what was played."""
    points = np.concatenate([trace.points[_known(trace), 0] for trace in traces])
    low, high = (float(points.min()), float(points.max())) if len(points) else (0.0, 1.0)
    room = 0.04 * (high - low) or 0.5
    label = mask_invisible(traces[0].coordinates[0])
    return Place(
        PlaceAxis("coordinate", label, (low - room, high + room)), lambda points, _: points[:, 0]
    )


def _fit_axis(axis: PlaceAxis, rows: Sequence[PlaceRow]) -> PlaceAxis:
    """Return an axis of distances that ends where the furthest play is."""
    furthest = max((float(row.heights.max()) for row in rows if len(row.heights)), default=0.0)
    if axis.kind != "distance" or not furthest:
        return axis
    return replace(axis, limits=(0.0, min(1.0, 1.08 * furthest)))


def _read_row(
    title: str, trace: Trace, world: World | None, place: Place, paint: Paint, *, planned: int
) -> PlaceRow:
    rows = np.flatnonzero(_known(trace))
    points, times = trace.points[rows], trace.rounds["played_at"][rows]
    best = world.find_best(times) if world else np.full(points.shape, np.nan)
    heights = place.height(points, best)
    words = describe_play(
        points,
        trace.rounds["round"][rows],
        best if world else None,
        world.domain if world else None,
    )
    if len(trace) < planned:
        words = f"{words} Its play ended in round {len(trace)} ({trace.ended})."
    shown = np.unique(np.linspace(0, len(rows) - 1, _MOST_DOTS).round().astype(int))
    shown = shown if len(rows) > _MOST_DOTS else np.arange(len(rows))
    return PlaceRow(
        title=title,
        rounds=trace.rounds["round"][rows][shown],
        times=times[shown],
        heights=heights[shown],
        values=trace.rounds[paint.word][rows][shown],
        moved=trace.rounds["moved"][rows][shown],
        total=len(trace),
        words=words,
    )
