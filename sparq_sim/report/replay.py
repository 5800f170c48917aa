"""Replays: plays of a study, played again from what is stored, and watched."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Points
from sparq_sim.errors import SparqError
from sparq_sim.plugin.environment import UNNAMED, Environment, Landscape, Units, read_units
from sparq_sim.plugin.exits import refuse_exits
from sparq_sim.plugin.optimizer import Belief
from sparq_sim.report.moments import Moment, choose_rounds, find_moments
from sparq_sim.report.network import NetworkData, read_networks
from sparq_sim.report.roster import Roster
from sparq_sim.report.scene import Scene
from sparq_sim.simulation.beliefs import (
    describe_difference,
    find_play,
    is_same_play,
    replay_beliefs,
)
from sparq_sim.simulation.blas import one_thread
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.simulation.trace import Trace
from sparq_sim.study.choice import choose_play
from sparq_sim.study.settings import format_setting

if TYPE_CHECKING:
    from sparq_sim.simulation.play import Played
    from sparq_sim.study.results import Results
    from sparq_sim.study.store import StoredPlay, StoredSummary

__all__ = ["Film", "Replay", "film_round", "play_again"]

_MOST_FRAMES = 150
"""Of a replay; of longer plays, as many rounds are shown."""
_MOST_IN_ALL = 900
"""Frames of the first replays of all optimizers together."""
_MORE_SECONDS = 3.0
"""How long further plays are filmed, after those that must be."""
_MOST_NUMBERS = 400_000
"""Of all films together, after which no further plays are filmed."""
_MOST_SECONDS = 60.0
"""Of computing by an agent; a play that took longer is not played again for a report."""


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
    moments: Sequence[Moment] = ()
    """Its rounds that are worth seeing, the most telling first."""
    units: Units = UNNAMED
    """Those of the environment."""

    @property
    def size(self) -> int:
        """About how many numbers a page has to hold for it."""
        believed = sum(belief is not None for belief in self.beliefs) * len(self.scene.believed)
        return self.rewards.size + 2 * believed + 2 * len(self.trace.replies["round"])

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
    key: str = ""
    """The key of the play."""
    is_first: bool = False
    """Whether it is the first play of its optimizer."""
    is_wished: bool = False
    """Whether a user has named it."""


def play_again(
    study: Results,
    *,
    order: Sequence[str] = (),
    films: Sequence[str] = (),
    allow_import: bool = False,
    seconds: float = _MORE_SECONDS,
) -> list[Replay]:
    """Play some plays again, and return what is to be seen of them.

    Args:
        study: A study with finished plays.
        order: Names of optimizers, in the order in which to return their plays.
        films: Names of plays to film in any case, as `choose_play` reads them.
        allow_import: Whether plays may name code to run, as `module:Class`.
        seconds: How long to go on with further plays, after the first of each optimizer and those
            that are named.

    Returns:
        The first play of each optimizer, those that are named, and others, the more telling
        earlier; where a play cannot be played again, with the reason.

    Raises:
        SparqError: A play that is named is not there.
    """
    roster = Roster(study.finished(), order)
    firsts = roster.list_firsts()
    wished = [choose_play(study, name) for name in films]
    with ExitStack() as started:
        frames = max(2, min(_MOST_FRAMES, _MOST_IN_ALL // max(1, len(firsts))))
        projector = _Projector(study, roster, frames, started, allow_import=allow_import)
        shown: dict[str, Replay] = {}
        for play in (*firsts, *wished):
            if play.key not in shown:
                shown[play.key] = projector.replay(
                    play, is_first=play in firsts, is_wished=play in wished
                )
        begun = perf_counter()
        # Where one cannot be played again, others of its kind cannot either.
        failed = any(replay.missing for replay in shown.values())
        for play in () if failed else roster.list_others():
            size = sum(replay.film.size for replay in shown.values() if replay.film)
            if size > _MOST_NUMBERS or perf_counter() - begun > seconds:
                break
            if play.key not in shown and (more := projector.replay(play)).film is not None:
                shown[play.key] = more
    return list(shown.values())


class _Projector:
    """Plays again; keeps the last landscape that was *started*, for starting may take long."""

    def __init__(
        self,
        study: Results,
        roster: Roster,
        frames: int,
        started: ExitStack,
        *,
        allow_import: bool,
    ) -> None:
        self._study = study
        self._roster = roster
        self._stack = started
        self._frames = frames
        self._allow_import = allow_import
        self._started: tuple[Environment, int, int, Landscape] | None = None
        self._moments: dict[str, list[Moment]] = {}

    def replay(
        self, found: StoredSummary, *, is_first: bool = False, is_wished: bool = False
    ) -> Replay:
        """Play a stored play again; where that fails, return the reason."""
        values = format_setting(found.setting)
        title = f"{found.optimizer} ({values})" if values else found.optimizer
        play = f"seed {found.seed}, replication {found.replication}"
        replay = Replay(title, play=play, key=found.key, is_first=is_first, is_wished=is_wished)
        if not found.knows_best:
            return replace(
                replay,
                missing="its rewards are known only where and when it played, so that there is no "
                "landscape to show",
            )
        seconds = found.measures.get("wall") or 0.0
        if seconds > _MOST_SECONDS:
            return replace(
                replay, missing=f"its agent took {seconds:.0f} s; too long to play again"
            )
        try:
            with warnings.catch_warnings(), refuse_exits():
                warnings.simplefilter("ignore")  # They were given when it was played first.
                return self._play(found, replay)
        except Exception as error:  # Whatever plug-ins, files and versions can do.
            reason = " ".join(str(error).split())
            return replace(replay, missing=f"{type(error).__name__}: {reason:.300}")

    def _play(self, found: StoredSummary, replay: Replay) -> Replay:
        stored = self._study.read(found.key)
        if not len(stored.trace):
            return replace(replay, missing="it ended before its first round")
        played = find_play(stored.trace, allow_import=self._allow_import)
        frames = self._choose_frames(found, stored.trace)
        film = _film(played, stored.trace, self._landscape(played), frames)
        networks, wrong = read_networks(film.trace.accounts)
        film = replace(film, networks=networks)
        title, notes = replay.title, [f"{replay.play.capitalize()}.", *wrong]
        if film.trace.digest() != found.digest:
            title = f"{title}, not as stored"
            notes.append(
                "Played again, it is not the play that was stored, as happens with another "
                "version, processor or library. First difference: "
                f"{describe_difference(stored.trace, film.trace)}."
            )
        return replace(replay, title=title, notes=tuple(notes), film=film)

    def _choose_frames(self, found: StoredSummary, trace: Trace) -> NDArray[np.intp]:
        """Choose the rounds to film, the same for all optimizers in a setting and draw."""
        if len(trace) <= self._frames:
            return np.arange(len(trace))
        self._moments.setdefault(found.key, find_moments(trace))
        winner, *others = self._roster.list_rivals(found)
        # What happens to the winner is seen longer than the mishaps of the others.
        shares = {moment.row: 1 for play in others for moment in self._find_moments(play)[-1:]}
        shares |= {moment.row: 4 for moment in self._find_moments(winner)}
        return choose_rounds(
            len(trace),
            {row: share for row, share in shares.items() if row < len(trace)},
            most=self._frames,
        )

    def _find_moments(self, play: StoredSummary) -> list[Moment]:
        if play.key not in self._moments:
            try:
                self._moments[play.key] = find_moments(self._study.read(play.key).trace)
            except SparqError:  # A damaged file, which is told elsewhere.
                self._moments[play.key] = []
        return self._moments[play.key]

    def _landscape(self, played: Played) -> Landscape:
        same = played.environment, played.seed, played.replication
        if self._started is None or self._started[:3] != same:
            self._started = None
            self._stack.close()
            self._started = *same, self._stack.enter_context(open_landscape(*same))
        return self._started[3]


def film_round(stored: StoredPlay, number: int, *, allow_import: bool = False) -> Film:
    """Return what is to be seen of one round of a play; it is played again.

    What is true and what is believed are taken at the same points.

    Args:
        stored: The play.
        number: The number of the round, from 1.
        allow_import: Whether the play may name code to run, as `module:Class`.

    Raises:
        NoBeliefError: The agent has no belief.
        SparqError: It cannot be played again as it was, or its domain has more dimensions than can
            be shown.
    """
    if not stored.provenance.summary.knows_best:
        raise SparqError(
            "its rewards are known only where and when it played, so that there is no landscape to "
            "show; draw 'timeline' or 'reward'"
        )
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # They were given when it was played first.
        played = find_play(stored.trace, allow_import=allow_import)
        where = played.environment, played.seed, played.replication
        landscape = stack.enter_context(open_landscape(*where))
        scene = Scene.of(landscape.domain)
        if not len(scene.true):
            raise SparqError(
                f"a belief over {landscape.domain.dimensions} coordinates cannot be drawn; for its "
                "numbers take Trace.belief_at in Python or `sparq-sim explain`, for the queries a "
                "figure 'timeline'"
            )
        scene, row = replace(scene, believed=scene.true), np.array([number - 1])
        film = _film(played, stored.trace, landscape, row, scene=scene, strict=True)
    if not is_same_play(stored.trace, film.trace):
        raise SparqError(
            "played again it is not the play that was stored, so what was believed cannot be told. "
            f"First difference: {describe_difference(stored.trace, film.trace)}"
        )
    return film


def _film(
    played: Played,
    stored: Trace,
    landscape: Landscape,
    frames: NDArray[np.intp],
    *,
    scene: Scene | None = None,
    strict: bool = False,
) -> Film:
    """Play, looking at the agent in the rounds of *frames*."""
    scene = scene or Scene.of(landscape.domain)
    trace, beliefs = replay_beliefs(
        played, scene.believed, frames, like=stored, landscape=landscape, strict=strict
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
            moments=find_moments(trace),
            units=read_units(played.environment),
        )


def _rewards(landscape: Landscape, scene: Scene, time: float) -> NDArray[np.float64]:
    return landscape.rewards(scene.true, time) if len(scene.true) else np.empty(0)
