"""The posterior of a live play: its agent, rehearsed from the journal in a thread of its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from threading import Condition, Thread
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Points
from sparq_sim.domain import Domain, Sites
from sparq_sim.errors import SparqError
from sparq_sim.journal.entries import Header
from sparq_sim.plugin.frames import describe_error
from sparq_sim.plugin.optimizer import Agent, Belief, Believing
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.blas import one_thread
from sparq_sim.simulation.past import Thought
from sparq_sim.simulation.randomness import Streams
from sparq_sim.simulation.rehearsal import Rehearsal, RehearsalError
from sparq_sim.simulation.start import brief_agent

__all__ = ["Posterior", "View", "list_points", "start_again"]

_LINE, _FIELD, _SLICE = 161, 41, 81
"""Points of a curve, of each side of a map, and of a curve through more than two dimensions."""
_MOST_SITES, _MOST_SLICES = 60, 6
_PACE = 1.0
"""Seconds between two looks at an agent that has moves to catch up with."""
_PATIENCE = 2.0
"""Seconds that an end waits for a move to be made again."""


@dataclass(frozen=True)
class View:
    """What an agent believes, at the points of one or several slices of the domain."""

    round: int
    """The round of its last move."""
    slices: Sequence[tuple[Points, Belief]]
    """Points, (n, d), and what is believed there; one, or one for each coordinate."""


def list_points(domain: Domain, through: NDArray[np.float64] | None) -> list[Points]:
    """Return where to ask for a belief: curves, a map, or sites.

    Args:
        domain: Where points may lie.
        through: The point that curves of more than two dimensions go through; the middle of the
            domain where it is None.

    Returns:
        One set of points, (n, d), or one for each of the first coordinates.
    """
    if isinstance(domain, Sites):
        return [domain.points[:_MOST_SITES]]
    if domain.dimensions <= 2:
        return [domain.grid(_LINE if domain.dimensions == 1 else _FIELD)]
    centre = (domain.lower + domain.upper) / 2 if through is None else through
    slices = []
    for axis in range(min(domain.dimensions, _MOST_SLICES)):
        points = np.repeat(centre[None, :], _SLICE, axis=0)
        points[:, axis] = np.linspace(domain.lower[axis], domain.upper[axis], _SLICE)
        slices.append(points)
    return slices


class Posterior:
    """What the agent of a play believes, found by rehearsing it in the background.

    `feed` hands over what it was told and did; `view` is the newest picture, and `reason` says why
    there is none.
    """

    def __init__(self, header: Header, *, allow_import: bool = False) -> None:
        """Begin to rehearse; the agent is started by the thread.

        Args:
            header: Which play it is.
            allow_import: Whether its scenario may name code to run, as `module:Class`.
        """
        self.view: View | None = None
        self.reason = "The agent is being started."
        self._header = header
        self._allow_import = allow_import
        self._news = Condition()
        self._thoughts: list[Thought] = []
        self._through: NDArray[np.float64] | None = None
        self._closed = False
        self._thread = Thread(target=self._run, name="rehearsal", daemon=True)
        self._thread.start()

    def feed(self, thoughts: Sequence[Thought], in_force: Sequence[float] | None) -> None:
        """Hand over what the agent was told and did since the last call.

        Args:
            thoughts: In their order.
            in_force: The point that was applied last.
        """
        with self._news:
            self._thoughts.extend(thoughts)
            self._through = None if in_force is None else np.array(in_force, dtype=float)
            self._news.notify()

    def close(self) -> None:
        """End the thread, after the move that it is about."""
        with self._news:
            self._closed = True
            self._news.notify()
        self._thread.join(_PATIENCE)

    def _run(self) -> None:
        try:
            with one_thread(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # They were given when it was played.
                with start_again(self._header, allow_import=self._allow_import) as agent:
                    self._rehearse(agent)
        except RehearsalError as error:
            self._give_up(f"The agent does not do again what it did: {error}")
        except Exception as error:  # Whatever plug-ins, files and versions can do.
            self._give_up(f"The agent cannot be rehearsed: {describe_error(error)}")

    def _rehearse(self, agent: Agent) -> None:
        if not isinstance(agent, Believing):
            self._give_up(f"The optimizer {self._header.optimizer!r} states no belief.")
            return
        self.reason = "The agent has made no move yet."
        domain = self._header.domain
        rehearsal = Rehearsal(agent, domain)
        looked = monotonic() - _PACE
        done = 0
        while True:
            if (found := self._wait(done)) is None:
                return
            thought, left, through = found
            rehearsal.take(thought)
            done += 1
            # While it catches up, it is looked at now and then.
            if not left or monotonic() - looked >= _PACE:
                self.view = _look(agent, thought, list_points(domain, through))
                looked = monotonic()
                if self.view is None:
                    self.reason = "The agent believes nothing yet."

    def _wait(self, done: int) -> tuple[Thought, int, NDArray[np.float64] | None] | None:
        """Wait for the next thought; return it, how many follow, and the point in force."""
        with self._news:
            self._news.wait_for(lambda: self._closed or len(self._thoughts) > done)
            if self._closed:
                return None
            return self._thoughts[done], len(self._thoughts) - done - 1, self._through

    def _give_up(self, reason: str) -> None:
        self.view, self.reason = None, reason


def _look(agent: Believing, thought: Thought, where: Sequence[Points]) -> View | None:
    slices = []
    for points in where:
        belief = agent.belief(points, thought.now)
        if belief is None:
            return None
        slices.append((points, belief))
    return View(thought.round, slices)


@contextmanager
def start_again(header: Header, *, allow_import: bool = False) -> Iterator[Agent]:
    """Start the agent of a journal as it was started when its play began.

    Args:
        header: Which play it is.
        allow_import: Whether its scenario may name code to run, as `module:Class`.

    Yields:
        The agent.

    Raises:
        SparqError: It cannot be started from what the journal tells.
    """
    if not header.scenario:
        raise SparqError("the journal does not tell what was played")
    scenario = Scenario.from_fingerprint(
        header.scenario, seed=header.seed, name=header.optimizer, allow_import=allow_import
    )
    played = scenario.prepare(header.optimizer, header.replication)
    if played.rules.design:
        raise SparqError("it was shown a design before the play, which is not in the journal")
    channels = {name: entry.channel for name, entry in scenario.experts.items()}
    briefing = brief_agent(played, header.domain, channels)
    rng = Streams(played.seed, played.replication).generator("optimizer")
    agent = played.optimizer.start(briefing, rng)
    with agent if isinstance(agent, AbstractContextManager) else nullcontext(agent) as entered:
        yield entered
