"""Play one optimizer against one environment, in virtual or in real time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from sparq_sim.errors import LiveOnlyError, PluginError
from sparq_sim.plugin.environment import Environment, Landscape
from sparq_sim.plugin.exits import refuse_exits
from sparq_sim.plugin.expert import Expert
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.optimizer import Optimizer
from sparq_sim.simulation.blas import one_thread
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.clock.protocol import Clock
from sparq_sim.simulation.clock.realtime import LiveClock
from sparq_sim.simulation.clock.virtual import SimClock
from sparq_sim.simulation.engine import Engine
from sparq_sim.simulation.garbage import collect_rarely
from sparq_sim.simulation.journaling import Journaling
from sparq_sim.simulation.laws import check_laws
from sparq_sim.simulation.lifetime import Resources, run_at_once
from sparq_sim.simulation.randomness import Streams
from sparq_sim.simulation.records import Turn
from sparq_sim.simulation.rules import Rules
from sparq_sim.simulation.supervision import Supervision
from sparq_sim.simulation.trace import Trace

__all__ = ["Experts", "Played", "Watch", "check_model", "play", "play_live", "refuse_real"]

Experts = Mapping[str, Expert | tuple[Expert, Channel]]
"""Experts by name, each with its channel, or alone for one that adds nothing."""

Watch = Callable[[Turn], None]
"""Called after each round."""


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """All that fixes a play; made again from it, a play in virtual time has the same trace."""

    optimizer: Optimizer
    """What plays."""
    environment: Environment
    """What is played in."""
    rules: Rules
    """What may be done, and when the play ends."""
    experts: Experts
    """Who can be asked, by name."""
    feedback: Channel
    """The channel over which the reward arrives."""
    seed: int
    """The number from which all chance is made."""
    replication: int
    """Which of several plays with this seed it is, from 0."""
    live: bool = False
    """Whether it was played in real time, which never comes out twice the same."""
    name: str = ""
    """What the optimizer is called, if it has a name."""

    def __post_init__(self) -> None:
        check_model("feedback", Channel, self.feedback)
        _check_parts(self.optimizer, self.environment, self.rules, self.experts)

    @property
    def optimizer_name(self) -> str:
        """The name of the optimizer, or else of its class."""
        return self.name or type(self.optimizer).__name__

    def again(
        self,
        *,
        landscape: Landscape | None = None,
        watch: Watch | None = None,
        laws: bool = False,
    ) -> Trace:
        """Play it once more, in virtual time.

        Args:
            landscape: The started environment of this seed and replication; by default a new one.
            watch: Called after each round.
            laws: Whether to check the laws of plays, as `play` does.

        Returns:
            The trace, which remembers what was played.
        """
        trace = play(
            self.optimizer,
            self.environment,
            self.rules,
            experts=self.experts,
            feedback=self.feedback,
            seed=self.seed,
            replication=self.replication,
            landscape=landscape,
            watch=watch,
            laws=laws,
        )
        return replace(trace, played=self)


def play(
    optimizer: Optimizer,
    environment: Environment,
    rules: Rules,
    *,
    experts: Experts | None = None,
    feedback: Channel | None = None,
    seed: int = 0,
    replication: int = 0,
    landscape: Landscape | None = None,
    watch: Watch | None = None,
    journal: Journaling | None = None,
    laws: bool = False,
) -> Trace:
    """Play one optimizer against one environment in virtual time, and return the trace.

    The same arguments give the same trace, and each source draws from streams of its own: adding
    an expert changes no other random number.

    Args:
        optimizer: What plays.
        environment: What it plays in: the reward, which changes with time.
        rules: How many rounds there are and how long they last, budgets, and where experts may be
            asked.
        experts: Who can be asked, by name: each an expert with its channel, as a pair, or an
            expert alone, who then answers at once, exactly and for free.
        feedback: The channel over which the reward of each play arrives; by default at once and
            without noise.
        seed: The number from which all random numbers are made; 0 or more.
        replication: Which of several plays with this seed it is, from 0: each has other random
            numbers.
        landscape: A started environment of this seed and replication, to share what takes long to
            compute; by default the environment is started here.
        watch: Called with what happened after each round.
        journal: Writes down what happens as it happens, as a `JournalWriter` does.
        laws: Whether to check, when the play has ended, that its trace obeys the laws that every
            play must obey; it changes nothing in the trace.

    Returns:
        What happened: a row for each round and one for each point asked about. Regret, cost and
        staleness are computed from it by `sparq_sim.simulation.measures`.

    Raises:
        PluginError: Something that takes part cannot be used, or does what it may not.
        LiveOnlyError: The environment or an expert is real, or an expert awaits what passes in
            real time only.
        BrokenLawError: With *laws*, the trace breaks one: a mistake of the simulator or a plug-in.

    Example:
        An optimizer and an expert, 100 rounds long::

            trace = play(
                SparQGPUCB(),
                Synthetic(),
                Rules(rounds=100),
                experts={"expert": (Truth(), Channel(noise=0.1, transit=2.0))},
            )
    """
    played = Played(
        optimizer, environment, rules, experts or {}, feedback or Channel(), seed, replication
    )
    clock = SimClock(rules.period)

    async def run(main: Coroutine[Any, Any, Trace]) -> Trace:
        return clock.run(main)

    refuse_real(played)
    beside = Supervision(journal, play_id="" if journal is None else journal.play_id)
    trace = run_at_once(_play(played, clock, run, beside, landscape=landscape, watch=watch))
    if laws:
        check_laws(trace, played)
    return trace


async def play_live(
    optimizer: Optimizer,
    environment: Environment,
    rules: Rules,
    *,
    experts: Experts | None = None,
    feedback: Channel | None = None,
    seed: int = 0,
    replication: int = 0,
    landscape: Landscape | None = None,
    watch: Watch | None = None,
    seconds: float = 1.0,
    laws: bool = False,
) -> Trace:
    """Play one optimizer against one environment in real time, and return the trace.

    Channels apply in full; give those to real services as `Channel.to_real_source` makes them.

    Args:
        optimizer: What plays.
        environment: What it plays in.
        rules: As for `play`.
        experts: As for `play`.
        feedback: As for `play`.
        seed: As for `play`.
        replication: As for `play`.
        landscape: As for `play`.
        watch: Called with what happened after each round.
        seconds: How long a clock unit lasts.
        laws: As for `play`.

    Returns:
        What happened, as for `play`.

    Raises:
        PluginError: Something that takes part cannot be used, or does what it may not.
        BrokenLawError: As for `play`.
    """
    given = (experts or {}, feedback or Channel())
    played = Played(optimizer, environment, rules, *given, seed, replication, live=True)
    clock = LiveClock(rules.period, seconds=seconds)
    beside = Supervision(play_id=uuid4().hex)
    trace = await _play(played, clock, clock.run, beside, landscape=landscape, watch=watch)
    if laws:
        check_laws(trace, played)
    return trace


async def _play(
    played: Played,
    clock: Clock,
    run: Callable[[Coroutine[Any, Any, Trace]], Awaitable[Trace]],
    supervision: Supervision,
    *,
    landscape: Landscape | None,
    watch: Watch | None,
) -> Trace:
    """Start all who take part, play, and close what they hold open, also on failure."""
    streams = Streams(played.seed, played.replication)
    with refuse_exits():
        async with Resources() as resources:
            with one_thread():
                if landscape is None:
                    landscape = await resources.start_landscape(played.environment, streams)
                engine = Engine(played, clock, streams, landscape, watch, supervision)
                await engine.start(resources)
            # Again, for the libraries that the plug-ins have loaded meanwhile.
            with one_thread(), collect_rarely():
                return replace(await run(engine.play()), played=played)


def refuse_real(played: Played) -> None:
    """Raise LiveOnlyError where something real takes part, which virtual time cannot reach.

    Args:
        played: What is to be played in virtual time.
    """
    real = [f"expert {name!r}" for name, expert in _list_experts(played.experts) if expert.is_real]
    if played.environment.is_real:
        real.insert(0, f"environment {type(played.environment).__name__}")
    if real:
        raise LiveOnlyError(
            f"{', '.join(real)}: real, so not to be reached in virtual time; play the scenario by "
            "`sparq-sim live`, or put a simulated one in its place"
        )


def _list_experts(experts: Experts) -> list[tuple[str, Expert]]:
    return [(name, each[0] if isinstance(each, tuple) else each) for name, each in experts.items()]


def _check_parts(optimizer: object, environment: object, rules: object, experts: object) -> None:
    """Refuse what can take no part in a play: a class, say, in the place of a model."""
    given: list[tuple[str, type[Model], object]] = [
        ("optimizer", Optimizer, optimizer),
        ("environment", Environment, environment),
        ("rules", Rules, rules),
    ]
    if not isinstance(experts, Mapping):
        raise PluginError(f"experts: expected {{name: expert}}, not {experts!r:.80}")
    for name, each in experts.items():
        expert, channel = each if isinstance(each, tuple) and len(each) == 2 else (each, Channel())
        given += [
            (f"expert {name!r}", Expert, expert),
            (f"channel of expert {name!r}", Channel, channel),
        ]
    for what, kind, thing in given:
        check_model(what, kind, thing)


def check_model(what: str, kind: type[Model], thing: object) -> None:
    """Raise PluginError where a thing is no model of its kind, but a class, for instance.

    Args:
        what: How the message names the thing.
        kind: What it should be.
        thing: What is given.
    """
    if not isinstance(thing, kind):
        wanted = f"an instance of sparq_sim.{kind.__name__}"
        if isinstance(thing, type) and issubclass(thing, kind):
            wanted += f", as {thing.__name__}(…) makes"
        raise PluginError(f"{what}: expected {wanted}, not {thing!r:.80}")
