"""A channel with slots is a queue: against the closed forms of queueing theory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from math import factorial, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from sparq_sim import Answer, Channel, Query
from sparq_sim.arrays import Values
from sparq_sim.simulation.clock.virtual import SimClock
from sparq_sim.simulation.records import Record
from sparq_sim.testing import Slope, Teller
from tests.delivery import ask, connect, context_on

CUSTOMERS = 20_000
WARM_UP = 1_000
BATCHES = 20


@dataclass(frozen=True)
class Queue:
    """Poisson arrivals at *rate*, exponential service of mean 1, so many *servers*."""

    rate: float
    servers: int
    seed: int

    @property
    def load(self) -> float:
        """The share of time that a server works: rho."""
        return self.rate / self.servers

    @property
    def chance_of_waiting(self) -> float:
        """Erlang's formula C; the load where there is one server."""
        busy = self.rate**self.servers / factorial(self.servers) / (1 - self.load)
        idle = sum(self.rate**k / factorial(k) for k in range(self.servers))
        return busy / (idle + busy)

    @property
    def expected_wait(self) -> float:
        """C / (servers mu - lambda); rho / (mu - lambda) where there is one server."""
        return self.chance_of_waiting / (self.servers - self.rate)


ONE = Queue(rate=0.7, servers=1, seed=1)
THREE = Queue(rate=2.4, servers=3, seed=2)
QUEUES = pytest.mark.parametrize("queue", [ONE, THREE], ids=["M/M/1", "M/M/3"])


class Office:
    """Customers come to a connection; how many are there is counted as they come and go."""

    def __init__(self, queue: Queue, clock: SimClock) -> None:
        self._queue = queue
        self._clock = clock
        landscape = Slope().start(np.random.default_rng(0))
        self._context = context_on(clock, landscape, seed=queue.seed, hear=self._left)
        service = {"kind": "exponential", "mean": 1.0}
        channel = Channel(service=service, capacity=queue.servers)
        connect("expert", Teller(), channel, self._context)
        self._gaps = self._context.streams.generator("gaps").exponential(1 / queue.rate, CUSTOMERS)
        self._present = 0
        self._since = 0.0
        self._empty = clock.signal()
        self.waiting_area = 0.0
        """The integral over time of how many are there beyond those that can be served."""
        self.records: list[Record] = []

    async def open(self) -> None:
        """Let all customers come, and the last one go."""
        point = np.array([[0.5]])
        for number, gap in enumerate(self._gaps, 1):
            await self._clock.sleep(float(gap))
            self._count(+1)
            ask(self._context, Query(number, "expert", point, self._clock.now))
        await self._empty

    def _left(self, record: Record) -> None:
        self._count(-1)
        self.records.append(record)
        if len(self.records) == CUSTOMERS:
            self._empty.set()

    def _count(self, change: int) -> None:
        now = self._clock.now
        self.waiting_area += max(0, self._present - self._queue.servers) * (now - self._since)
        self._present, self._since = self._present + change, now


@dataclass(frozen=True, eq=False)
class Day:
    """What happened, by customer in the order of arrival."""

    arrivals: Values
    waits: Values
    services: Values
    closed_at: float
    waiting_area: float


@cache
def day(queue: Queue) -> Day:
    clock = SimClock()
    office = Office(queue, clock)
    clock.run(office.open())
    records = sorted(office.records, key=lambda record: record.reply.query.id)
    assert all(isinstance(record.reply, Answer) for record in records)
    asked = np.array([record.reply.asked_at for record in records])
    served = np.array([record.served_at for record in records])
    sent = np.array([record.sent_at for record in records])
    return Day(asked, served - asked, sent - served, clock.now, office.waiting_area)


def estimate(samples: NDArray[np.float64]) -> tuple[float, float]:
    """Give the mean without the warm-up, and its standard error by batch means."""
    means = samples[WARM_UP:].reshape(BATCHES, -1).mean(axis=1)
    return float(means.mean()), float(means.std(ddof=1)) / sqrt(BATCHES)


def test_the_formulas_are_those_of_the_textbook() -> None:
    assert ONE.expected_wait == pytest.approx(0.7 / (1 - 0.7))
    assert ONE.chance_of_waiting == pytest.approx(0.7)
    # P(wait) = a^3 / (a^3 + 3 (1 - rho) (a^2 + 2a + 2)), a = 2.4.
    assert THREE.chance_of_waiting == pytest.approx(2.4**3 / (2.4**3 + 0.6 * (2.4**2 + 6.8)))


@QUEUES
def test_the_mean_wait_is_what_the_formula_says(queue: Queue) -> None:
    mean, error = estimate(day(queue).waits)
    assert error < queue.expected_wait / 10
    assert abs(mean - queue.expected_wait) < 3 * error


@QUEUES
def test_as_many_wait_as_the_formula_says(queue: Queue) -> None:
    share, error = estimate((day(queue).waits > 0).astype(float))
    assert error < 0.02
    assert abs(share - queue.chance_of_waiting) < 3 * error


@QUEUES
def test_arrivals_and_services_are_what_was_ordered(queue: Queue) -> None:
    seen = day(queue)
    gaps = np.diff(seen.arrivals, prepend=0.0)
    for samples, mean in ((gaps, 1 / queue.rate), (seen.services, 1.0)):
        # The standard deviation of an exponential is its mean.
        assert abs(samples.mean() / mean - 1) < 3 / sqrt(CUSTOMERS)
        assert abs(np.corrcoef(samples[1:], samples[:-1])[0, 1]) < 3 / sqrt(CUSTOMERS)
    assert abs(np.corrcoef(gaps, seen.services)[0, 1]) < 3 / sqrt(CUSTOMERS)


@QUEUES
def test_each_customer_waits_until_the_first_server_is_free(queue: Queue) -> None:
    seen = day(queue)
    free_at = [0.0] * queue.servers  # Kiefer and Wolfowitz 1955; Lindley 1952 for one server.
    waits = []
    for arrival, service in zip(seen.arrivals, seen.services, strict=True):
        begun = max(float(arrival), heappop(free_at))
        heappush(free_at, begun + float(service))
        waits.append(begun - float(arrival))
    assert_allclose(seen.waits, waits, atol=1e-9)


@QUEUES
def test_the_number_waiting_is_the_rate_times_the_wait(queue: Queue) -> None:
    # Little's law, exact between two moments at which nobody is there.
    seen = day(queue)
    number_waiting = seen.waiting_area / seen.closed_at
    rate = len(seen.arrivals) / seen.closed_at
    assert number_waiting == pytest.approx(rate * seen.waits.mean(), rel=1e-9)
    # And about what the formula says, since the day is long.
    assert number_waiting == pytest.approx(queue.rate * queue.expected_wait, rel=0.15)
