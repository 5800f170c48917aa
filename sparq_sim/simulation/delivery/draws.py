"""Draws of requests: all that chance decides about what is asked of a source.

`QueryDraws` is long because one object must own all draws of an asker at a source.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator, Philox

from sparq_sim.errors import HookError
from sparq_sim.messages import AGENT_NAME, Query
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.channel.draws import Constant, Draw
from sparq_sim.simulation.channel.faults import FaultModel
from sparq_sim.simulation.clock.protocol import Clock
from sparq_sim.simulation.delivery.request import Drawn, Question, Request, Rows
from sparq_sim.simulation.randomness import RoundStream, Streams

__all__ = ["QueryDraws", "SourceDraws", "pick_rows"]


class SourceDraws(dict[str, "QueryDraws"]):
    """The draws at one source, by the path of those who ask; made when somebody first asks."""

    def __init__(self, name: str, channel: Channel, streams: Streams, clock: Clock) -> None:
        """Prepare for anybody to ask.

        Args:
            name: Of the source.
            channel: What is drawn.
            streams: All the chance of the play.
            clock: By which losses come in bursts.
        """
        super().__init__()
        self._name = name
        self._channel = channel
        self._streams = streams
        loss_chance_at = channel.loss.start(streams.generator(f"{name}/spells"))
        self._loss_chance = lambda: loss_chance_at(clock.now)

    def __missing__(self, path: str) -> QueryDraws:
        name = self._name if path == AGENT_NAME else f"{path}>{self._name}"
        # What a source sends of its own accord is one request, whatever it tells of.
        split = self._channel.split and path != self._name
        draws = self[path] = QueryDraws(
            name, self._channel, self._streams, self._loss_chance, split=split
        )
        return draws


class QueryDraws:
    """Draws for one asker at one source; nobody else's requests shift them.

    Each effect (cost, service, transit, loss, noise, faults) has a stream of its own that begins
    anew with every round: the j-th request of a round meets the same chance, whatever else is
    drawn. Further attempts have a stream each.
    """

    def __init__(
        self,
        name: str,
        channel: Channel,
        streams: Streams,
        loss_chance: Callable[[], float],
        *,
        split: bool,
    ) -> None:
        """Prepare the streams.

        Args:
            name: Of the source, and of the path to it unless the agent itself asks.
            channel: What is drawn.
            streams: All the chance of the play.
            loss_chance: Returns the probability that an answer asked for now is lost.
            split: Whether each row of a question is a request of its own.
        """
        self._name = name
        self._channel = channel
        self._streams = streams
        self._loss_chance = loss_chance
        self._split = split
        self._by_effect: dict[str, RoundStream] = {}
        self._round = 0
        self._made = 0  # In this round.
        # What a channel does not do at all is looked up once, not for each request.
        self._cost = _constant(channel.cost)
        self._service = _constant(channel.service)
        self._transit = _constant(channel.transit)
        self._cost_counts_points = _constant(channel.cost_per_point) != 0.0
        self._service_counts_points = _constant(channel.service_per_point) != 0.0
        self._lossless = channel.loss.lossless
        self._noiseless = channel.noise.silent

    def draw(self, question: Question, number: int) -> list[Drawn]:
        """Draw for the first attempt at a question.

        Args:
            question: What is asked.
            number: The round of now.

        Returns:
            What each request meets: one for each row if they are split, else one.

        Raises:
            HookError: A part of the channel, of a user's own, gives what cannot be used.
        """
        channel, split, rows, query = self._channel, self._split, question.rows, question.query
        size = len(rows)
        count = size if split else 1
        subquery = query if size == len(query.points) else pick_rows(query, rows)
        try:
            cost, service, transit = self._cost, self._service, self._transit
            costs = [cost] * count if cost is not None else self._each("cost", number, count)
            services = (
                [service] * count if service is not None else self._each("service", number, count)
            )
            transits = (
                [transit] * count if transit is not None else self._each("transit", number, count)
            )
            if self._cost_counts_points:
                costs = _add(costs, self._each("cost_per_point", number, size))
            if self._service_counts_points:
                services = _add(services, self._each("service_per_point", number, size))
            lost = None
            if not self._lossless:
                lost = (self._stream("loss", number).random(count) < self._loss_chance()).tolist()
            units = None
            if not self._noiseless:
                units = channel.noise.units(self._stream("noise", number), size)
            faults = None
            if channel.faults:
                faults = _draw_faults(channel, self._stream("faults", number), count)
        except HookError as error:
            raise HookError(f"the channel to {query.source!r}: {error}") from error
        if number != self._round:
            self._round, self._made = number, 0
        first = self._made
        self._made += count
        drawn: list[Drawn] = []
        for i in range(count):
            fault = None if faults is None else faults[i]
            # By position: keywords would double the time that this takes.
            each = Drawn(
                rows[i : i + 1] if split else rows,
                subquery.row(i) if split else subquery,
                (number, first + i),
                costs[i],
                services[i],
                transits[i],
                (lost is not None and lost[i]) or (fault is not None and fault.loses),
                units[i : i + 1] if split and units is not None else units,
                fault,
            )
            drawn.append(each)
        return drawn

    def draw_again(self, before: Request, rows: Rows) -> Drawn:
        """Draw for one more attempt at *rows*, after the attempt *before*.

        Args:
            before: The attempt that failed.
            rows: The rows of the query that are asked again.
        """
        channel, size, origin = self._channel, len(rows), before.drawn.origin
        rng = self._generator("again", before.attempt, origin)

        def total(whole: Draw, per_point: Draw) -> float:
            return float(whole.sample(rng, 1)[0] + per_point.sample(rng, size).sum())

        try:
            cost = total(channel.cost, channel.cost_per_point)
            service = total(channel.service, channel.service_per_point)
            transit = float(channel.transit.sample(rng, 1)[0])
            # At the chance of now: in a burst of losses, another attempt meets the same burst.
            lost = bool(rng.random() < self._loss_chance())
            units = None if self._noiseless else channel.noise.units(rng, size)
            fault = _draw_faults(channel, rng, 1)[0] if channel.faults else None
        except HookError as error:
            source = before.question.query.source
            raise HookError(f"the channel to {source!r}: {error}") from error
        query = before.question.query
        subquery = query if size == len(query.points) else pick_rows(query, rows)
        lost = lost or (fault is not None and fault.loses)
        return Drawn(rows, subquery, origin, cost, service, transit, lost, units, fault)

    def generator(self, request: Request) -> Generator:
        """Return the generator that the source may use for this *request* alone.

        Args:
            request: The request.
        """
        return self._generator("answer", request.attempt - 1, request.drawn.origin)

    def _generator(self, purpose: str, attempts: int, origin: tuple[int, int]) -> Generator:
        key = self._streams.key(f"{self._name}/{purpose}")
        return Generator(Philox(key=key, counter=[0, attempts, *origin]))

    def _each(self, field: str, number: int, count: int) -> list[float]:
        """Draw a *field* of the channel for each of *count* requests or points."""
        draw: Draw = getattr(self._channel, field)
        if isinstance(draw, Constant):
            return [draw.value] * count
        stream = self._stream(field.replace("_", "-"), number)
        drawn: list[float] = draw.sample(stream, count).tolist()
        return drawn

    def _stream(self, effect: str, number: int) -> Generator:
        """Return the generator of an *effect* in round *number*."""
        stream = self._by_effect.get(effect)
        if stream is None:
            stream = self._by_effect[effect] = self._streams.by_round(f"{self._name}/{effect}")
        return stream.at(number)


def _draw_faults(channel: Channel, rng: Generator, count: int) -> list[FaultModel | None]:
    """Draw which fault strikes each of *count* requests."""
    shares = np.cumsum([fault.share for fault in channel.faults])
    struck = np.searchsorted(shares, rng.random(count), side="right").tolist()
    return [(*channel.faults, None)[fault] for fault in struck]


def _constant(draw: Draw) -> float | None:
    return draw.value if isinstance(draw, Constant) else None


def pick_rows(query: Query, rows: Rows) -> Query:
    """Return a query about some of its points.

    Args:
        query: The whole query.
        rows: Which of its points.
    """
    return Query(query.id, query.source, query.points[rows], query.asked_at)


def _add(of_requests: list[float], of_points: list[float]) -> list[float]:
    """Add what the points of each request take: one each, or all in one."""
    if len(of_requests) == 1:
        return [of_requests[0] + sum(of_points)]
    return [one + more for one, more in zip(of_requests, of_points, strict=True)]
