"""Play one optimizer against one environment, in virtual or in real time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sparq_sim.errors import PluginError
from sparq_sim.plugin.environment import Environment, Landscape
from sparq_sim.plugin.expert import Expert
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.optimizer import Optimizer
from sparq_sim.simulation.blas import one_thread
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.clock.protocol import Clock
from sparq_sim.simulation.clock.realtime import LiveClock
from sparq_sim.simulation.clock.virtual import SimClock
from sparq_sim.simulation.engine import Engine
from sparq_sim.simulation.lifetime import Resources, run_at_once
from sparq_sim.simulation.randomness import Streams
from sparq_sim.simulation.records import Turn
from sparq_sim.simulation.rules import Rules
from sparq_sim.simulation.trace import Trace

__all__ = ["Experts", "Played", "Watch", "check_model", "play", "play_live"]

Experts = Mapping[str, Expert | tuple[Expert, Channel]]
"""Experts by name, each with its channel, or alone for one that adds nothing."""

Watch = Callable[[Turn], None]
"""Called after each round."""


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """All that fixes a play."""

    optimizer: Optimizer
    environment: Environment
    rules: Rules
    experts: Experts
    feedback: Channel
    seed: int
    replication: int
    live: bool = False
    """Whether it was played in real time, which never comes out twice the same."""
    name: str = ""
    """Of the optimizer, where it has one."""

    def __post_init__(self) -> None:
        _check_parts(self.optimizer, self.environment, self.rules, self.experts)

    @property
    def optimizer_name(self) -> str:
        """That of the optimizer, or else of its class."""
        return self.name or type(self.optimizer).__name__

    def again(self, *, landscape: Landscape | None = None, watch: Watch | None = None) -> Trace:
        """Play it in virtual time: see `play`."""
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
) -> Trace:
    """Play in virtual time, and give the trace.

    The reward arrives over *feedback*. All chance comes from *seed* and *replication*: the same
    two give the same trace. A started *landscape* of this environment and replication can be
    handed in, to share what is dear to compute.
    """
    played = Played(
        optimizer, environment, rules, experts or {}, feedback or Channel(), seed, replication
    )
    clock = SimClock(rules.period)

    async def run(main: Coroutine[Any, Any, Trace]) -> Trace:
        return clock.run(main)

    return run_at_once(_play(played, clock, run, landscape=landscape, watch=watch))


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
) -> Trace:
    """Play in real time, a clock unit lasting *seconds*; otherwise as `play`.

    Channels apply in full; give those to real services as `Channel.to_real_source`.
    """
    given = (experts or {}, feedback or Channel())
    played = Played(optimizer, environment, rules, *given, seed, replication, live=True)
    clock = LiveClock(rules.period, seconds=seconds)
    return await _play(played, clock, clock.run, landscape=landscape, watch=watch)


async def _play(
    played: Played,
    clock: Clock,
    run: Callable[[Coroutine[Any, Any, Trace]], Awaitable[Trace]],
    *,
    landscape: Landscape | None,
    watch: Watch | None,
) -> Trace:
    """Start and enter all who take part, play, and leave what was entered, also on failure."""
    streams = Streams(played.seed, played.replication)
    async with Resources() as resources:
        with one_thread():
            if landscape is None:
                landscape = await resources.start_landscape(played.environment, streams)
            engine = Engine(played, clock, streams, landscape, watch)
            await engine.start(resources)
        # Again, for the libraries that the plug-ins have loaded meanwhile.
        with one_thread():
            return replace(await run(engine.play()), played=played)


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
    """Refuse, by PluginError, a *thing* that is no model of its *kind*: a class, say."""
    if not isinstance(thing, kind):
        wanted = f"an instance of sparq_sim.{kind.__name__}"
        if isinstance(thing, type) and issubclass(thing, kind):
            wanted += f", as {thing.__name__}(…) makes"
        raise PluginError(f"{what}: expected {wanted}, not {thing!r:.80}")
