"""Replays: one play an optimizer, played again from its provenance and watched."""

from __future__ import annotations

import json
import warnings
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Points
from sparq_sim.domain import Domain, Sites
from sparq_sim.errors import visible
from sparq_sim.messages import AGENT_NAME
from sparq_sim.plugin.environment import Environment, Landscape
from sparq_sim.plugin.optimizer import Belief
from sparq_sim.simulation.beliefs import describe_difference, find_play, replay_beliefs
from sparq_sim.simulation.blas import one_thread
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.simulation.play import Played
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.trace import Columns, Trace
from sparq_sim.study.settings import in_words

if TYPE_CHECKING:
    from sparq_sim.study.results import Results
    from sparq_sim.study.store import StoredSummary

MOST_FRAMES = 150
"""Of a replay; of longer plays, as many rounds are shown, evenly spread."""
MOST_IN_ALL = 900
"""Frames of all replays together."""
MOST_BYTES = 3_000_000
"""Of all replays together, as JSON."""
MOST_SECONDS = 60.0
"""Of computing by an agent; a play that took longer is not played again for a report."""
LINE, FIELD, BELIEVED_FIELD = 101, 31, 21
"""Points a dimension of a curve, of the true field and of the believed ones; the first and the
last lie on the grids of 501 and 41 on which optimizers search unless told otherwise."""
MOST_LANES = 24
"""Of the timeline, shared by all sources."""
HIDDEN = 255
"""The lane of what finds no lane free."""

Packed: TypeAlias = dict[str, Any]
Floats: TypeAlias = NDArray[np.float64]
SceneKind: TypeAlias = Literal["line", "field", "map", "strips"]


@dataclass(frozen=True)
class Scene:
    """How a domain is shown, and at which points rewards and beliefs are taken for it."""

    kind: SceneKind
    true: Points
    believed: Points
    shape: Mapping[str, Any]
    """What the page must know of the domain."""

    @classmethod
    def of(cls, domain: Domain) -> Scene:
        """Choose how to show a *domain*."""
        if isinstance(domain, Sites):
            return cls._of_sites(domain)
        shape: dict[str, Any] = {
            "coordinates": [visible(name) for name in domain.names],
            "lower": domain.lower.tolist(),
            "upper": domain.upper.tolist(),
        }
        if domain.dimensions == 1:
            line = domain.grid(LINE)
            return cls("line", line, line, {**shape, "places": line[:, 0].tolist()})
        if domain.dimensions == 2:
            sizes = {"true": FIELD, "believed": BELIEVED_FIELD}
            fields = [domain.grid(size) for size in sizes.values()]
            return cls("field", fields[0], fields[1], {**shape, "sizes": sizes})
        nowhere = np.empty((0, domain.dimensions))
        return cls("strips", nowhere, nowhere, shape)

    @classmethod
    def _of_sites(cls, domain: Sites) -> Scene:
        points = domain.points
        shape: dict[str, Any] = {
            "coordinates": [visible(name) for name in domain.names],
            "lower": points.min(axis=0).tolist(),
            "upper": points.max(axis=0).tolist(),
        }
        if domain.dimensions == 1:
            order = np.argsort(points[:, 0])
            chosen = order[np.unique(np.linspace(0, len(order) - 1, LINE).round().astype(int))]
            line = points[chosen]
            return cls("line", line, line, {**shape, "places": line[:, 0].tolist(), "sites": True})
        across, up = _axes(domain.names)
        named = {
            "names": [visible(name) for name in domain.site_names],
            "axes": [across, up],
            "earth": _latitude(domain.names[up]),
            "places": points[:, [across, up]].tolist(),
        }
        return cls("map", points, points, {**shape, **named})


def _axes(names: Sequence[str]) -> tuple[int, int]:
    """Say which coordinates go across and up a map: longitude and latitude where there are any."""
    up = [i for i, name in enumerate(names) if _latitude(name)]
    across = [i for i, name in enumerate(names) if name.lower().startswith(("lon", "lng"))]
    return (across[0], up[0]) if across and up else (0, 1)


def _latitude(name: str) -> bool:
    return name.lower().startswith("lat")


@dataclass(frozen=True)
class Film:
    """What a watched play has shown: its trace, and more at some of its rounds."""

    scene: Scene
    trace: Trace
    period: float
    frames: NDArray[np.intp]
    """Rows of the trace's rounds: (n,)."""
    rewards: Floats
    """True ones, at the scene's points when each frame was played: (n, g)."""
    best: Points
    """(n, d)."""
    beliefs: Sequence[Belief | None]

    def every(self, stride: int) -> Film:
        """Give fewer frames: the last, and each *stride*-th before it."""
        if stride == 1:
            return self
        kept = np.arange(len(self.frames))[::-stride][::-1]
        return replace(
            self,
            frames=self.frames[kept],
            rewards=self.rewards[kept],
            best=self.best[kept],
            beliefs=[self.beliefs[i] for i in kept],
        )


@dataclass(frozen=True)
class Replay:
    """One play to be watched in the page; where there is none, *missing* says why."""

    title: str
    notes: tuple[str, ...] = ()
    missing: str = ""
    film: Film | None = field(default=None, repr=False)
    stride: int = 1
    """Only each so-manieth frame is shown, and a window that much shorter."""

    def data(self) -> dict[str, Any]:
        """Give all that the player draws, JSON-able, thinned and quantised."""
        if self.film is None:
            return {"title": visible(self.title), "missing": visible(self.missing)}
        film = self.film.every(self.stride)
        rounds = film.trace.rounds
        times = rounds["played_at"][film.frames]
        before, after = _window(film, self.stride)
        shown = _near(rounds["played_at"], rounds["played_at"], times, before=before, after=0.0)
        replies, lanes = _replies(film, times, before=before, after=after)
        notes = list(self.notes)
        if len(film.frames) < len(film.trace):
            notes.append(f"{len(film.frames)} of its {len(film.trace)} rounds are shown.")
        if lanes["hidden"]:
            notes.append(f"The timeline has no room for {lanes['hidden']} of the queries.")
        return {
            "title": visible(self.title),
            "notes": [visible(note) for note in notes],
            "scene": film.scene.kind,
            **film.scene.shape,
            "period": film.period,
            "total": len(film.trace),
            "window": [before, after],
            "frames": np.searchsorted(np.flatnonzero(shown), film.frames).tolist(),
            "best": _packed(film.best, "u2"),
            **_fields(film),
            "rounds": _rounds(film.trace, shown),
            "replies": replies,
            "lanes": lanes,
        }


def replays(
    study: Results, *, order: Sequence[str] = (), allow_import: bool = False
) -> list[Replay]:
    """Play the first play of each optimizer again, and give what is to be seen of it.

    Those of optimizers in *order* come in that order. With *allow_import*, plays may name code to
    run, as `module:Class`. What cannot be played again is there with the reason.
    """
    plays = study.finished()
    plays.sort(key=lambda found: order.index(found.optimizer) if found.optimizer in order else -1)
    first: dict[str, StoredSummary] = {}
    settings: dict[str, set[str]] = {}
    for found in plays:
        first.setdefault(found.optimizer, found)
        settings.setdefault(found.optimizer, set()).add(repr(found.setting))
    frames = MOST_IN_ALL // max(1, len(first))
    with ExitStack() as started:
        projector = _Projector(study, frames, started, allow_import=allow_import)
        shown = [projector.replay(found, len(settings[name])) for name, found in first.items()]
    while sum(len(json.dumps(replay.data())) for replay in shown) > MOST_BYTES:
        if all(replay.film is None or replay.stride > len(replay.film.frames) for replay in shown):
            break
        shown = [replace(replay, stride=2 * replay.stride) for replay in shown]
    return shown


class _Projector:
    """Plays again, sharing landscapes, which may be dear to start, the latest of *started*."""

    def __init__(
        self, study: Results, frames: int, started: ExitStack, *, allow_import: bool
    ) -> None:
        self._study = study
        self._stack = started
        self._frames = max(2, min(MOST_FRAMES, frames))
        self._allow_import = allow_import
        self._started: tuple[Environment, int, int, Landscape] | None = None

    def replay(self, found: StoredSummary, settings: int) -> Replay:
        """Play a stored play again; say why, if that fails in whatever way."""
        values = in_words(found.setting)
        title = f"{found.optimizer} ({values})" if values else found.optimizer
        seconds = found.measures.get("wall") or 0.0
        if seconds > MOST_SECONDS:
            return Replay(title, missing=f"its agent took {seconds:.0f} s; too long to play again")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # They were given when it was played first.
                return self._replayed(found, title, settings)
        except Exception as error:  # Whatever plug-ins, files and versions can do.
            reason = " ".join(str(error).split())
            return Replay(title, missing=f"{type(error).__name__}: {reason:.300}")

    def _replayed(self, found: StoredSummary, title: str, settings: int) -> Replay:
        stored = self._study.read(found.key)
        told = stored.provenance
        played = find_play(stored.trace, allow_import=self._allow_import)
        rounds = len(stored.trace)
        frames = np.unique(np.linspace(0, rounds - 1, min(rounds, self._frames)).round())
        film = _filmed(played, stored.trace, self._landscape(played), frames.astype(np.intp))
        notes = [f"Seed {found.seed}, replication {found.replication}."]
        if settings > 1:
            notes.append(f"One of {settings} settings of the sweep.")
        if film.trace.digest() != told["digest"]:
            title = f"{title}, not as stored"
            notes.append(
                "Played again, it is not the play that was stored, as happens with another "
                "version, processor or library. First difference: "
                f"{describe_difference(stored.trace, film.trace)}."
            )
        return Replay(title, tuple(notes), film=film)

    def _landscape(self, played: Played) -> Landscape:
        same = played.environment, played.seed, played.replication
        if self._started is None or self._started[:3] != same:
            self._started = None
            self._stack.close()
            self._started = *same, self._stack.enter_context(open_landscape(*same))
        return self._started[3]


def _filmed(played: Played, stored: Trace, landscape: Landscape, frames: NDArray[np.intp]) -> Film:
    """Play, looking at the agent in the rounds of *frames*."""
    scene = Scene.of(landscape.domain)
    trace, beliefs = replay_beliefs(
        played, scene.believed, frames, like=stored, landscape=landscape
    )
    frames = frames[frames < len(trace)]
    moments = trace.rounds["played_at"][frames].tolist()
    with one_thread():
        return Film(
            scene=scene,
            trace=trace,
            period=played.rules.period,
            frames=frames,
            rewards=np.array([_rewards(landscape, scene, moment) for moment in moments]),
            best=np.array([landscape.best(moment)[0] for moment in moments], dtype=float),
            beliefs=beliefs[: len(frames)],
        )


def _rewards(landscape: Landscape, scene: Scene, time: float) -> Floats:
    return landscape.rewards(scene.true, time) if len(scene.true) else np.empty(0)


# What the page is given


def _packed(numbers: NDArray[Any], kind: Literal["u1", "u2", "f4"]) -> Packed:
    """Pack numbers as base64: single floats, or whole numbers k for low + k step, the last NaN.

    Whatever is all the same is given once.
    """
    array = np.asarray(numbers, dtype=float)
    shape = list(array.shape)
    if array.size and np.isfinite(array.flat[0]) and (array == array.flat[0]).all():
        return {"shape": shape, "same": float(array.flat[0])}
    if kind == "f4":
        return {"shape": shape, "kind": kind, "bytes": _base64(array.astype("<f4"))}
    known = array[np.isfinite(array)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    absent = 2 ** (8 * int(kind[1])) - 1
    step = (high - low) / (absent - 1) or 1.0
    codes = np.where(np.isfinite(array), (array - low) / step, absent)
    bytes_ = _base64(codes.round().astype(f"<{kind}"))
    return {"shape": shape, "kind": kind, "low": low, "step": step, "bytes": bytes_}


def _base64(array: NDArray[Any]) -> str:
    return b64encode(np.ascontiguousarray(array).tobytes()).decode()


def _fields(film: Film) -> dict[str, Any]:
    """Pack true rewards and beliefs; curves finely, since they are drawn, fields for colours."""
    if not film.rewards.size:
        return {}
    kind: Literal["u1", "u2"] = "u2" if film.scene.kind == "line" else "u1"
    low, high = float(film.rewards.min()), float(film.rewards.max())
    data: dict[str, Any] = {"true": _packed(film.rewards, kind), "range": [low, high]}
    known = [belief for belief in film.beliefs if belief is not None]
    if not known:
        return data
    absent = np.full(len(film.scene.believed), np.nan)
    means = np.array([absent if b is None else b.mean for b in film.beliefs])
    stds = np.array([absent if b is None else b.std for b in film.beliefs])
    widths = np.array([np.nan if b is None else b.width for b in film.beliefs])
    # A bound may be far above all rewards; a curve that leaves the picture says as much.
    room = high - low or 1.0
    bounds = [*np.nanquantile(means - stds, [0.02]), *np.nanquantile(means + stds, [0.98])]
    upper = float(np.nanquantile(means + widths[:, None] * stds, 0.9))
    return data | {
        "mean": _packed(means, kind),
        "std": _packed(stds, kind),
        "width": _packed(widths, "f4"),
        "range": [
            min(low, max(bounds[0], low - room / 2)),
            max(high, min(max(bounds[1], upper), high + room)),
        ],
    }


def _rounds(trace: Trace, shown: NDArray[np.bool_]) -> dict[str, Any]:
    """Pack what became of each round that is *shown*."""
    rounds = trace.rounds
    averages = np.cumsum(rounds["regret"]) / np.arange(1, len(trace) + 1)
    return {
        "round": _packed(rounds["round"][shown], "f4"),
        "started_at": _packed(rounds["started_at"][shown], "f4"),
        "played_at": _packed(rounds["played_at"][shown], "f4"),
        "point": _packed(trace.points[shown], "u2"),
        "reward": _packed(rounds["reward"][shown], "f4"),
        "best": _packed(rounds["best"][shown], "f4"),
        "regret": _packed(rounds["regret"][shown], "f4"),
        "average": _packed(averages[shown], "f4"),
        "spent": _packed(rounds["spent"][shown], "f4"),
    }


def _window(film: Film, stride: int) -> tuple[float, float]:
    """Say how much time before and after now is shown: some latencies, and at least a dozen rounds.

    Where frames are left out to save room, less is shown beside each.
    """
    replies = film.trace.replies
    latencies = replies["arrived_at"] - replies["asked_at"]
    usual = 2.5 * float(np.quantile(latencies, 0.9)) if len(latencies) else 0.0
    before = max(min(max(usual, 12 * film.period), 60 * film.period) / stride, 2 * film.period)
    return before, before / 4


def _near(starts: Floats, ends: Floats, times: Floats, *, before: float, after: float) -> Any:
    """Tell for each span from start to end whether some frame, at *times*, shows any of it."""
    next_frame = np.searchsorted(times, starts - after)
    return np.append(times, inf)[next_frame] <= ends + before


def _replies(
    film: Film, times: Floats, *, before: float, after: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Pack what frames at *times* show of replies: what travelled together is one."""
    replies, coordinates = film.trace.replies, film.trace.coordinates
    starts = _journeys(replies)
    sizes = np.diff(np.append(starts, len(replies["round"])))
    once = {name: column[starts] for name, column in replies.items()}
    sources = sorted(set(once["source"].tolist()), key=lambda name: (name != "reward", name))
    lanes = _lanes(once, sources, gap=before / 60)
    shown = _near(once["asked_at"], once["arrived_at"], times, before=before, after=after)
    rows = np.repeat(shown, sizes)
    latencies = np.maximum(once["arrived_at"] - once["asked_at"], 1e-12)
    points = np.stack([replies[name] for name in coordinates], axis=1)[rows]
    # What was never served waited to its end; what was never sent was served to its end.
    served, sent = (
        np.clip(np.nan_to_num((once[name] - once["asked_at"]) / latencies, nan=1.0), 0.0, 1.0)
        for name in ("served_at", "sent_at")
    )
    packed = {
        "source": _coded(once["source"][shown], sources),
        "fate": _coded(once["fate"][shown], tuple(Fate)),
        "asked": _packed((once["asker"] == AGENT_NAME)[shown], "u1"),
        "lane": _codes(lanes[shown]),
        "attempt": _codes(np.minimum(once["attempt"][shown], 254)),
        "size": _packed(sizes[shown], "u2"),
        "asked_at": _packed(once["asked_at"][shown], "f4"),
        "arrived_at": _packed(once["arrived_at"][shown], "f4"),
        "measured_at": _packed(once["measured_at"][shown], "f4"),
        "served": _packed(served[shown], "u1"),
        "sent": _packed(sent[shown], "u1"),
        "point": _packed(points, "u2"),
        "value": _packed(replies["value"][rows], "u2"),
    }
    counts = [
        int(lanes[(once["source"] == name) & (lanes < HIDDEN)].max(initial=-1)) + 1
        for name in sources
    ]
    hidden = int((lanes == HIDDEN).sum())
    names = [visible(name) for name in sources]
    return packed, {
        "sources": names,
        "counts": counts,
        "fates": list(Fate),
        "hidden": hidden,
    }


def _journeys(replies: Columns) -> NDArray[np.intp]:
    """Give the first rows of what travelled together: the same query, attempt, times and fate."""
    same = ("source", "query", "attempt", "fate")
    names = (*same, "asked_at", "served_at", "sent_at", "arrived_at")
    new = np.zeros(len(replies["round"]), dtype=bool)
    new[:1] = True
    for name in names:
        before, after = replies[name][:-1], replies[name][1:]
        new[1:] |= (before != after) & ~((before != before) & (after != after))
    return np.flatnonzero(new)


def _lanes(once: Columns, sources: Sequence[str], *, gap: float) -> NDArray[np.intp]:
    """Give each journey the first lane of its source that is free, if there is room for it."""
    lanes = np.full(len(once["round"]), HIDDEN, dtype=np.intp)
    needs: dict[str, int] = {}
    for source in sources:
        own = np.flatnonzero(once["source"] == source)
        own = own[np.argsort(once["asked_at"][own], kind="stable")]
        free: list[int] = []
        busy: list[tuple[float, int]] = []
        for journey in own.tolist():
            while busy and busy[0][0] <= once["asked_at"][journey]:
                heappush(free, heappop(busy)[1])
            lanes[journey] = heappop(free) if free else len(busy)
            heappush(busy, (once["arrived_at"][journey] + gap, int(lanes[journey])))
        needs[source] = int(lanes[own].max(initial=-1)) + 1
    # What a source does not need is for those that need more.
    room = MOST_LANES
    for place, source in enumerate(sorted(sources, key=lambda name: needs[name])):
        most = max(2, room // (len(sources) - place))
        lanes[(once["source"] == source) & (lanes >= most)] = HIDDEN
        room -= min(needs[source], most)
    return lanes


def _coded(words: NDArray[Any], known: Sequence[str]) -> Packed:
    """Pack words as their numbers among those *known*."""
    order = np.argsort(known)
    return _codes(order[np.searchsorted(np.array(known)[order], words)])


def _codes(numbers: NDArray[np.intp]) -> Packed:
    """Pack small whole numbers as they are."""
    return {
        "shape": [len(numbers)],
        "kind": "u1",
        "low": 0,
        "step": 1,
        "bytes": _base64(numbers.astype("<u1")),
    }
