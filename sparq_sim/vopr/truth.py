"""Laws of truth: what was true is computed anew, and compared with what was played and answered."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sparq_sim.messages import REWARD
from sparq_sim.plugin.environment import Landscape, Observing, WithGaps
from sparq_sim.plugin.expert import Expert
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.laws import Broken
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.simulation.play import Played
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.trace import NOTE, Trace
from sparq_sim.testing.samples import Teller
from sparq_sim.vopr.parts import SAID, Beacon, Dicer, Lagged, Patchy, Relay, Stammerer

__all__ = ["PLAIN", "find_untrue"]

PLAIN: tuple[type[Expert], ...] = (Teller, Patchy, Dicer, Lagged, Beacon, Relay)
"""Experts that answer a question once, when its service ends, and charge nothing themselves."""
_TRUTHFUL: tuple[type[Expert], ...] = (Teller, Patchy, Dicer, Beacon, Stammerer)
"""Experts that tell the reward of the moment of which they tell it."""
_MISLEADING = ("wrong-point", "clock-skew")
"""Faults under which an answer is not true."""
_ROUNDING = 1e-9
_MOST = 50
"""Of the rounds and answers of a play that are computed anew."""


def find_untrue(trace: Trace, played: Played) -> Iterator[Broken]:
    """Yield rewards and answers that are not what was true at their time.

    Args:
        trace: The play.
        played: What was played.
    """
    yield from _find_misdated(trace)
    with open_landscape(played.environment, played.seed, played.replication) as landscape:
        yield from _find_wrong_rewards(trace, landscape)
        for name, channel in _list_exact(played, landscape):
            yield from _find_wrong_answers(trace, name, channel, landscape)


def _find_misdated(trace: Trace) -> Iterator[Broken]:
    """Compare the time that an answer is about with what its source said of it."""
    replies = trace.replies
    if NOTE + SAID not in replies:
        return
    said = replies[NOTE + SAID]
    honest = replies["fault"] != "clock-skew"
    told = np.isfinite(said) & np.isfinite(replies["measured_at"]) & (replies["attempt"] > 0)
    for row in np.flatnonzero(told & honest & (said != replies["measured_at"]))[:3].tolist():
        seen = f"said at {said[row]}, measured_at {replies['measured_at'][row]}"
        law = "an answer is as old as its source says"
        yield Broken(law, seen, str(replies["source"][row]), int(replies["round"][row]))


def _find_wrong_rewards(trace: Trace, landscape: Landscape) -> Iterator[Broken]:
    rounds, points = trace.rounds, trace.points
    for row in range(len(trace))[:_MOST]:
        time = float(rounds["played_at"][row])
        reward = float(landscape.rewards(points[row : row + 1], time)[0])
        best = float(landscape.best(time)[1])
        seen = float(rounds["reward"][row]), float(rounds["best"][row])
        if not np.allclose(seen, (reward, best), rtol=_ROUNDING, atol=_ROUNDING):
            told = f"reward and best were {seen}, and are {(reward, best)} at {time}"
            yield Broken("a round has the reward of its time", told, round=row + 1)


def _list_exact(played: Played, landscape: Landscape) -> Iterator[tuple[str, Channel]]:
    """Yield the sources whose answers are the reward itself."""
    if played.feedback.noise.silent and not isinstance(landscape, Observing):
        yield REWARD, played.feedback
    for name, each in played.experts.items():
        expert, channel = each if isinstance(each, tuple) else (each, Channel())
        if isinstance(expert, _TRUTHFUL) and channel.noise.silent:
            yield name, channel


def _find_wrong_answers(
    trace: Trace, name: str, channel: Channel, landscape: Landscape
) -> Iterator[Broken]:
    replies = trace.replies
    # Answers that are shared may be those of a fallback, which has noise of its own.
    exact = (replies["source"] == name) & (replies["fate"] == Fate.ANSWERED.value)
    exact &= (replies["attempt"] > 0) & ~np.isin(replies["fault"], _MISLEADING)
    for row in np.flatnonzero(exact)[:_MOST].tolist():
        point = np.array([[replies[x][row] for x in trace.coordinates]])
        time, value = float(replies["measured_at"][row]), float(replies["value"][row])
        where = str(replies["source"][row]), int(replies["round"][row])
        if isinstance(landscape, WithGaps) and not landscape.available(point, time)[0]:
            told = f"value {value} at {time}"
            yield Broken("where there is no reading, nothing is answered", told, *where)
            return
        truth = float(landscape.rewards(point, time)[0])
        if not np.isclose(value, truth, rtol=_ROUNDING, atol=_ROUNDING):
            told = f"value {value}, but the reward at {time} was {truth}"
            yield Broken("an answer without noise is true", told, *where)
            return
