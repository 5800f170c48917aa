"""Replays: one play per optimizer, played again from what is stored, and watched."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Points
from sparq_sim.domain import Domain, Sites
from sparq_sim.errors import mask_invisible
from sparq_sim.plugin.environment import Environment, Landscape
from sparq_sim.plugin.optimizer import Belief
from sparq_sim.report.network import NetworkData, read_networks
from sparq_sim.simulation.beliefs import describe_difference, find_play, replay_beliefs
from sparq_sim.simulation.blas import one_thread
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.simulation.play import Played
from sparq_sim.simulation.trace import Trace
from sparq_sim.study.settings import format_setting

if TYPE_CHECKING:
    from sparq_sim.study.results import Results
    from sparq_sim.study.store import StoredSummary

__all__ = ["Film", "Replay", "Scene", "SceneKind", "play_again"]

_MOST_FRAMES = 150
"""Of a replay; of longer plays, as many rounds are shown, evenly spread."""
_MOST_IN_ALL = 900
"""Frames of all replays together."""
_MOST_SECONDS = 60.0
"""Of computing by an agent; a play that took longer is not played again for a report."""
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


@dataclass(frozen=True)
class Film:
    """What a watched play has shown: its trace, and more at some of its rounds."""

    scene: Scene
    """How the domain is shown."""
    trace: Trace
    """Of the play, played again."""
    period: float
    """Clock units between rounds."""
    frames: NDArray[np.intp]
    """Rows of the trace's rounds: (n,)."""
    rewards: NDArray[np.float64]
    """True ones, at the scene's points when each frame was played: (n, g)."""
    best: Points
    """Best point when each frame was played: (n, d)."""
    beliefs: Sequence[Belief | None]
    """Of the agent in each frame; None where it had none."""
    networks: Sequence[NetworkData] = ()
    """Those of its sources that are networks."""

    def every(self, stride: int) -> Film:
        """Return fewer frames: the last, and every *stride*-th before it.

        Args:
            stride: From one frame that is kept to the next.
        """
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
    """One play to watch; where it could not be played again, *missing* says why."""

    title: str
    """What is played, by whom."""
    notes: tuple[str, ...] = ()
    """What a viewer must know."""
    play: str = ""
    """Which play it is: its seed and replication."""
    missing: str = ""
    """Why there is no film."""
    film: Film | None = field(default=None, repr=False)
    """What is to be seen."""


def play_again(
    study: Results, *, order: Sequence[str] = (), allow_import: bool = False
) -> list[Replay]:
    """Play the first play of each optimizer again, and return what is to be seen of it.

    Args:
        study: A study with finished plays.
        order: Names of optimizers, in the order in which to return their plays.
        allow_import: Whether plays may name code to run, as `module:Class`.

    Returns:
        One per optimizer; where a play cannot be played again, with the reason.
    """
    plays = study.finished()
    plays.sort(key=lambda found: order.index(found.optimizer) if found.optimizer in order else -1)
    first: dict[str, StoredSummary] = {}
    settings: dict[str, set[str]] = {}
    for found in plays:
        first.setdefault(found.optimizer, found)
        settings.setdefault(found.optimizer, set()).add(repr(found.setting))
    frames = _MOST_IN_ALL // max(1, len(first))
    with ExitStack() as started:
        projector = _Projector(study, frames, started, allow_import=allow_import)
        return [projector.replay(found, len(settings[name])) for name, found in first.items()]


class _Projector:
    """Plays again; keeps the last landscape that was *started*, for starting may take long."""

    def __init__(
        self, study: Results, frames: int, started: ExitStack, *, allow_import: bool
    ) -> None:
        self._study = study
        self._stack = started
        self._frames = max(2, min(_MOST_FRAMES, frames))
        self._allow_import = allow_import
        self._started: tuple[Environment, int, int, Landscape] | None = None

    def replay(self, found: StoredSummary, settings: int) -> Replay:
        """Play a stored play again; where that fails, return the reason."""
        values = format_setting(found.setting)
        title = f"{found.optimizer} ({values})" if values else found.optimizer
        if not found.knows_best:
            return Replay(
                title,
                missing="its rewards are known only where and when it played, so that there is no "
                "landscape to show",
            )
        seconds = found.measures.get("wall") or 0.0
        if seconds > _MOST_SECONDS:
            return Replay(title, missing=f"its agent took {seconds:.0f} s; too long to play again")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # They were given when it was played first.
                return self._play(found, title, settings)
        except Exception as error:  # Whatever plug-ins, files and versions can do.
            reason = " ".join(str(error).split())
            return Replay(title, missing=f"{type(error).__name__}: {reason:.300}")

    def _play(self, found: StoredSummary, title: str, settings: int) -> Replay:
        stored = self._study.read(found.key)
        played = find_play(stored.trace, allow_import=self._allow_import)
        rounds = len(stored.trace)
        frames = np.unique(np.linspace(0, rounds - 1, min(rounds, self._frames)).round())
        film = _film(played, stored.trace, self._landscape(played), frames.astype(np.intp))
        networks, wrong = read_networks(film.trace.accounts)
        film = replace(film, networks=networks)
        play = f"seed {found.seed}, replication {found.replication}"
        notes = [f"{play.capitalize()}.", *wrong]
        if settings > 1:
            notes.append(f"One of {settings} settings of the sweep.")
        if film.trace.digest() != found.digest:
            title = f"{title}, not as stored"
            notes.append(
                "Played again, it is not the play that was stored, as happens with another "
                "version, processor or library. First difference: "
                f"{describe_difference(stored.trace, film.trace)}."
            )
        return Replay(title, tuple(notes), play=play, film=film)

    def _landscape(self, played: Played) -> Landscape:
        same = played.environment, played.seed, played.replication
        if self._started is None or self._started[:3] != same:
            self._started = None
            self._stack.close()
            self._started = *same, self._stack.enter_context(open_landscape(*same))
        return self._started[3]


def _film(played: Played, stored: Trace, landscape: Landscape, frames: NDArray[np.intp]) -> Film:
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


def _rewards(landscape: Landscape, scene: Scene, time: float) -> NDArray[np.float64]:
    return landscape.rewards(scene.true, time) if len(scene.true) else np.empty(0)
