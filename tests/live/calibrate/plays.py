"""Plays over a channel of which all is known, to fit a channel to."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from sparq_sim import Channel, Rules, Trace, play
from sparq_sim.journal.header import make_header
from sparq_sim.journal.writer import JournalWriter
from sparq_sim.live.calibrate.channels import FittedChannel, calibrate
from sparq_sim.messages import Move, Query, Reply
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.optimizer import Agent, Asks, Optimizer
from sparq_sim.simulation.play import Played
from sparq_sim.testing.samples import Slope, Teller


class Doubter(Optimizer):
    """Asks about two to four points in turn, of which two are the same."""

    asks: ClassVar[Asks | None] = "past"
    most: int = 4
    """About how many points at most."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return _DoubterAgent(briefing, rng, self.most)


class _DoubterAgent:
    def __init__(self, briefing: Briefing, rng: Generator, most: int) -> None:
        self._briefing, self._rng, self._most = briefing, rng, most
        self._ids = count(1)

    def ask(self, now: float) -> Move:
        point = self._briefing.domain.sample(self._rng, 1)[0]
        asks = []
        for name in self._briefing.experts:
            number = next(self._ids)
            points = np.tile(point, (min(2 + number % 3, self._most), 1))
            asks.append(Query(number, name, points, now))
        return Move(point, tuple(asks))

    def tell(self, reply: Reply) -> None:
        pass


def hear(channel: Channel, *, rounds: int = 300, seed: int = 5, most: int = 4) -> Trace:
    """Play with one expert, "lab", at the end of the channel."""
    experts = {"lab": (Teller(), channel)}
    return play(Doubter(most=most), Slope(), Rules(rounds=rounds), experts=experts, seed=seed)


def record(channel: Channel, path: Path, *, rounds: int) -> None:
    """Play as `hear` does, and keep a journal."""
    played = Played(
        Doubter(), Slope(), Rules(rounds=rounds), {"lab": (Teller(), channel)}, Channel(), 5, 0
    )
    domain = Slope().start(np.random.default_rng(0)).domain
    with JournalWriter.create(path, make_header(played, domain)) as journal:
        play(
            played.optimizer,
            played.environment,
            played.rules,
            experts=played.experts,
            seed=played.seed,
            journal=journal,
        )


def fit(channel: Channel, *, rounds: int = 300, seed: int = 5, most: int = 4) -> FittedChannel:
    """Fit a channel to a play over *channel*."""
    return calibrate(hear(channel, rounds=rounds, seed=seed, most=most))["lab"]
