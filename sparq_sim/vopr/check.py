"""Check a case: play it in several ways, and hold the plays against every law there is."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from sparq_sim.domain import Domain
from sparq_sim.plugin.environment import Coarsening, Observing, WithGaps
from sparq_sim.plugin.frames import describe_error
from sparq_sim.plugin.optimizer import Agent, Believing
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.laws import Broken, find_broken, find_misheard
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.simulation.play import Played
from sparq_sim.simulation.trace import WALL, Trace, first_difference
from sparq_sim.testing.samples import Teller
from sparq_sim.vopr.case import Case
from sparq_sim.vopr.generate import PLAYER
from sparq_sim.vopr.parts import Inquirer
from sparq_sim.vopr.playing import Diverging, overhear, play_on_live_clock
from sparq_sim.vopr.truth import PLAIN, find_untrue

__all__ = ["Checked", "check_case"]

NEWCOMER = "newcomer"
"""The expert who is added to see that nobody else's luck changes."""
_PLACES = 5
"""At which beliefs are looked at."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a case was found to be."""

    broken: tuple[Broken, ...]
    """What breaks a law; nothing where all hold."""
    digest: str
    """Of the trace; empty where the play failed."""
    fates: Counter[str]
    """How many points had each fate."""


def check_case(case: Case) -> Checked:
    """Play a case in several ways, and return what breaks a law.

    Args:
        case: A case that makes a valid scenario.
    """
    with warnings.catch_warnings():
        # Of what random scenarios are warned, such as priors far from all that is observed.
        warnings.simplefilter("ignore")
        try:
            return _check(case.scenario.prepare(PLAYER))
        except Exception as error:
            told = describe_error(error, anywhere=True)
            return Checked((Broken("a valid scenario can be played", told),), "", Counter())


def _check(played: Played) -> Checked:
    beliefs = _Beliefs()
    hearing, trace = overhear(played, looks=beliefs.look)
    trace = replace(trace, played=played)
    broken = [
        *find_broken(trace, played, plain=_list_plain(played)),
        *find_misheard(hearing, trace),
        *beliefs.broken,
        *find_untrue(trace, played),
        *(found for check in _COMPARISONS for found in check(played, trace)),
    ]
    return Checked(tuple(broken), trace.digest(), Counter(trace.replies["fate"].tolist()))


def _list_plain(played: Played) -> list[str]:
    """Return the names of the experts that answer once, and charge nothing themselves."""
    pairs = {name: each for name, each in played.experts.items() if isinstance(each, tuple)}
    return [name for name, (expert, _) in pairs.items() if isinstance(expert, PLAIN)]


class _Beliefs:
    """Looks at what an agent believes, which must be finite."""

    def __init__(self) -> None:
        self.broken: list[Broken] = []

    def look(self, agent: Agent, domain: Domain, now: float) -> None:
        if not isinstance(agent, Believing) or self.broken:
            return
        belief = agent.belief(domain.cover(_PLACES), now)
        if belief is None:
            return
        sound = np.isfinite(belief.mean).all() and np.isfinite(belief.std).all()
        if not (sound and (belief.std >= 0).all() and isfinite(belief.width)):
            told = f"at time {now}: mean {belief.mean}, std {belief.std}, width {belief.width}"
            self.broken.append(Broken("beliefs are finite", told))


# Plays that must be equal, or equal up to some time, or but for something


def _play_again(played: Played, trace: Trace) -> Iterator[Broken]:
    yield from _compare("played again, a play is the same", trace, played.again())


def _play_live(played: Played, trace: Trace) -> Iterator[Broken]:
    yield from _compare("both clocks give one trace", trace, play_on_live_clock(played))


def _compare(law: str, trace: Trace, other: Trace) -> Iterator[Broken]:
    if trace.digest() != other.digest():
        yield Broken(law, first_difference(trace, other) or "digests differ")


def _change_future(played: Played, trace: Trace) -> Iterator[Broken]:
    """Let the rewards be others from the middle of the play on: nobody can have known."""
    with open_landscape(played.environment, played.seed, played.replication) as landscape:
        if isinstance(landscape, Observing | WithGaps | Coarsening) or len(trace) < 2:
            return
        after = float(trace.rounds["played_at"][len(trace) // 2])
        other = played.again(landscape=Diverging(landscape, after))
    law = "nobody knows the future"
    for name, moment in (("rounds", "played_at"), ("replies", "arrived_at")):
        mine, theirs = getattr(trace, name), getattr(other, name)
        before, there = mine[moment] <= after, theirs[moment] <= after
        columns = (mine.keys() & theirs.keys()) - {WALL}
        for column in sorted(columns):
            if not _is_same(mine[column][before], theirs[column][there]):
                yield Broken(law, f"the future from {after} on changes {name} before, in {column}")
                return


def _add_newcomer(played: Played, trace: Trace) -> Iterator[Broken]:
    """Ask one expert more, whom nobody heeds: that must change nothing for anybody else."""
    optimizer = played.optimizer
    if not isinstance(optimizer, Inquirer) or optimizer.waits or not optimizer.sources:
        return
    model = played.experts.get(optimizer.sources[0])
    channel = model[1] if isinstance(model, tuple) else Channel()
    free = {
        "cost": 0.0,
        "cost_per_point": 0.0,
        "policy": {**dict(channel.policy), "fallback": None},
    }
    crowd = replace(
        played,
        optimizer=optimizer.model_copy(update={"ignores": (NEWCOMER,)}),
        experts={NEWCOMER: (Teller(), Channel(**{**dict(channel), **free})), **played.experts},
    )
    other = crowd.again()
    others = other.replies["source"] != NEWCOMER
    law = "one more expert changes nobody's luck"
    for column in sorted(trace.rounds.keys() - {WALL}):
        if not _is_same(trace.rounds[column], other.rounds[column]):
            yield Broken(law, f"rounds differ in {column}")
            return
    for column in sorted(trace.replies):
        if not _is_same(trace.replies[column], other.replies[column][others]):
            yield Broken(law, f"replies differ in {column}")
            return


def _is_same(mine: np.ndarray, other: np.ndarray) -> bool:
    is_number = mine.dtype.kind == "f"
    return len(mine) == len(other) and bool(np.array_equal(mine, other, equal_nan=is_number))


_COMPARISONS: tuple[Callable[[Played, Trace], Iterator[Broken]], ...] = (
    _play_again,
    _play_live,
    _change_future,
    _add_newcomer,
)
