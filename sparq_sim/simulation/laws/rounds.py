"""Laws of rounds: when they are played, what is regretted, and where experts may be asked."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from sparq_sim.messages import REWARD
from sparq_sim.simulation.laws.broken import Broken
from sparq_sim.simulation.laws.ledger import LawOfPlays, Ledger
from sparq_sim.simulation.measures import mark_impossible
from sparq_sim.simulation.records import Fate

__all__ = ["LAWS_OF_ROUNDS"]


def _played_in_time(ledger: Ledger) -> Iterator[Broken]:
    """Round follows round, and each is played within its time."""
    rules, rounds = ledger.rules, ledger.trace.rounds
    number, started, played = (rounds[name] for name in ("round", "started_at", "played_at"))
    wrong = (number != np.arange(1, len(number) + 1)) | (started != number * rules.period)
    yield from ledger.broken_rounds("rounds follow each other", wrong, "started_at")
    ends = np.minimum((number + 1) * rules.period, rules.horizon)
    moved = rounds["moved"]
    outside = played < started
    if not ledger.is_live:  # A machine may be late. The first move may take as long as it takes.
        outside |= np.where(moved, played > ends, played != ends)
    yield from ledger.broken_rounds("a round is played in its time", outside, "played_at")
    most = rules.most_rounds
    if len(number) > most or (not ledger.trace.ended_early and len(number) < most):
        told = f"{len(number)} rounds of {most}, ended by {ledger.trace.ended}"
        yield Broken("a play has the rounds of its rules", told)
    stays = np.zeros(len(number), dtype=bool)
    for name in ledger.trace.coordinates:
        stays[1:] |= rounds[name][1:] != rounds[name][:-1]
    yield from ledger.broken_rounds("a point stays until the next move", stays & ~moved, "moved")


def _regret_not_negative(ledger: Ledger) -> Iterator[Broken]:
    """Regret is best minus reward, and never negative."""
    trace = ledger.trace
    if not trace.knows_best:
        return
    rounds = trace.rounds
    reward, best, regret = rounds["reward"], rounds["best"], rounds["regret"]
    columns = ("reward", "best", "regret")
    wrong = ~np.isfinite(regret) | (regret != best - reward)
    yield from ledger.broken_rounds("regret is best minus reward", wrong, *columns)
    yield from ledger.broken_rounds("regret is not negative", mark_impossible(trace), *columns)


def _rewards_asked_for(ledger: Ledger) -> Iterator[Broken]:
    """Every move asks for the reward of its point, once and when it is played."""
    rounds = ledger.trace.rounds
    moved = rounds["round"][rounds["moved"]]
    rows = np.flatnonzero(ledger.of(REWARD) & ledger.by_agent & ledger.final)
    rows = rows[np.argsort(ledger["query"][rows], kind="stable")]
    asked = ledger["query"][rows]
    if not np.array_equal(asked, moved):
        apart = np.setxor1d(asked, moved)
        told = f"rounds moved {len(moved)}, rewards {len(asked)}"
        number = int(apart[0]) if len(apart) else 0
        yield Broken("every move asks for its reward", told, REWARD, number)
        return
    places = asked - 1
    other = ledger["asked_at"][rows] != rounds["played_at"][places]
    if ledger.is_live:  # Asking takes time there.
        other = ledger["asked_at"][rows] > rounds["played_at"][places]
    for name in ledger.trace.coordinates:
        other |= ledger[name][rows] != rounds[name][places]
    law = "the reward is that of the point played, at that moment"
    yield from ledger.broken_at(law, rows[other], "asked_at")


def _asked_where_allowed(ledger: Ledger) -> Iterator[Broken]:
    """Where experts may be asked at points already played only, nobody is asked elsewhere."""
    denied = ledger.of_fate(Fate.ACCESS)
    if ledger.rules.access != "past":
        yield from ledger.broken("access is not denied", denied, "asked_at")
        return
    trace = ledger.trace
    asked = np.flatnonzero(ledger.by_agent & ~ledger.of(REWARD))
    if not len(asked):
        return
    names = trace.coordinates
    rounds = trace.rounds
    moved = rounds["moved"]
    points = zip(*(rounds[name][moved].tolist() for name in names), strict=True)
    since: dict[tuple[float, ...], float] = {}
    for point, time in zip(points, rounds["played_at"][moved].tolist(), strict=True):
        since.setdefault(point, time)
    asked_at = ledger["asked_at"][asked].tolist()
    wanted = zip(*(ledger[name][asked].tolist() for name in names), strict=True)
    queries = ledger["query"][asked]
    # A query is refused as a whole. Of what is asked and played at one moment, no trace tells
    # which came first.
    early: set[int] = set()
    at_once: set[int] = set()
    for query, point, time in zip(queries.tolist(), wanted, asked_at, strict=True):
        if (played := since.get(point, inf)) >= time:
            (at_once if played == time else early).add(query)
    refused = denied[asked]
    unsure = np.isin(queries, list(at_once - early))
    wrong = asked[(refused != np.isin(queries, list(early))) & ~(refused & unsure)]
    yield from ledger.broken_at("experts are asked at points played before", wrong, "fate")


LAWS_OF_ROUNDS: tuple[LawOfPlays, ...] = (
    _played_in_time,
    _regret_not_negative,
    _rewards_asked_for,
    _asked_where_allowed,
)
"""All laws of rounds."""
