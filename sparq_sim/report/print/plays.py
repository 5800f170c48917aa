"""Figures of one play, for print: which play and which part of it a user means."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from textwrap import fill
from typing import TYPE_CHECKING, Final

from sparq_sim.errors import SparqError
from sparq_sim.report.data import ChartData
from sparq_sim.report.journeys import list_outages
from sparq_sim.report.print.belief import draw_belief
from sparq_sim.report.print.style import literal
from sparq_sim.report.print.timeline import choose_part, draw_timeline
from sparq_sim.report.recall import recall
from sparq_sim.report.replay import film_round
from sparq_sim.study.choice import choose_play, name_in_words
from sparq_sim.study.results import Results
from sparq_sim.study.settings import agree
from sparq_sim.study.store import StoredSummary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["OF_ONE_PLAY", "WINNER", "PlayView", "check_view", "draw_play"]

OF_ONE_PLAY: Final = ("belief", "timeline")
"""Kinds of figures that show one play."""


@dataclass(frozen=True)
class PlayView:
    """Which play a figure shows, and when; other kinds of figures show all plays."""

    play: str = ""
    """Its name, as `sparq_sim.study.choice.choose_play` reads it; by default, the first play of the
    best optimizer."""
    number: int | None = None
    """The number of the round, from 1; by default, the last one."""
    begin: float | None = None
    """When a timeline begins, in clock units; by default, it lies around the round."""
    end: float | None = None
    """When it ends; by default, with the play."""


WINNER = PlayView()
"""The first play of the best optimizer."""


def check_view(kind: str, view: PlayView) -> None:
    """Check that a kind of figure shows one play, and the part of it that a user names.

    Args:
        kind: Of the figure.
        view: What the user asks for.

    Raises:
        SparqError: It does not.
    """
    if kind not in OF_ONE_PLAY and view != WINNER:
        raise SparqError(
            f"a figure {kind!r} is not of one play; leave out --play, --round, --from and --to, or "
            f"draw one of {', '.join(OF_ONE_PLAY)}"
        )
    if kind == "belief" and (view.begin, view.end) != (None, None):
        raise SparqError("a belief is of one round; name it by --round, not by --from and --to")


def draw_play(
    study: Results | ChartData,
    kind: str,
    chosen: ChartData,
    view: PlayView,
    *,
    is_narrowed: bool = False,
    width: float,
    allow_import: bool,
) -> Figure:
    """Return a figure of one play.

    Args:
        study: A study.
        kind: One of `OF_ONE_PLAY`.
        chosen: What is left of the study by what a user has asked for.
        view: Which play, and when.
        is_narrowed: Whether the user has asked for some plays only.
        width: In inches.
        allow_import: Whether the play may name code to run, as `module:Class`.

    Raises:
        SparqError: There is no such play or round, or nothing to draw of it.
    """
    if isinstance(study, ChartData):
        raise SparqError(f"a figure {kind!r} is drawn of a study, not of what was gathered of it")
    if view.play and is_narrowed:
        raise SparqError(f"--play {view.play} names the play; leave out --where and --only")
    play = choose_play(study, view.play) if view.play else _find_winner(chosen)
    stored, name = study.read(play.key), name_in_words(play)
    rounds = len(stored.trace)
    number = rounds if view.number is None else view.number
    if not rounds:
        raise SparqError(f"{name}: it ended before its first round; name another by --play")
    if not 1 <= number <= rounds:
        raise SparqError(f"there is no round {number} in {name}; it has rounds 1 to {rounds}")
    if kind == "belief":
        film = film_round(stored, number, allow_import=allow_import)
        return draw_belief(film, title=_wrap(f"{name}, round {number}", width), width=width)
    trace = recall(stored, allow_import=allow_import)
    now = float(trace.rounds["played_at"][number - 1])
    is_around = view.begin is None and view.end is None
    return draw_timeline(
        trace,
        choose_part(trace, number, (view.begin, view.end)),
        outages=list_outages(stored.provenance.fingerprint),
        now=(number, now) if is_around or view.number is not None else None,
        title=_wrap(name, width),
        unit=chosen.units.time,
        width=width,
    )


def _find_winner(chosen: ChartData) -> StoredSummary:
    """Return the first play of the best optimizer, in the first setting."""
    setting = chosen.settings[0] if chosen.settings else {}
    here = [each for each in chosen.summaries if agree(each.setting, setting)]
    rows = [each for each in here if isfinite(each.loss)] or here
    best = min(rows, key=lambda each: each.loss)
    plays = [
        each
        for each in chosen.found
        if each.optimizer == best.optimizer and each.setting == best.setting
    ]
    return min(plays, key=lambda each: (each.seed, each.replication))


def _wrap(title: str, width: float) -> str:
    """Return a title in as many lines as it needs above a figure of so many inches."""
    return fill(literal(title, 300), max(20, int(width * 19)), break_long_words=False)
