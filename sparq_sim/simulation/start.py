"""Start a play: check and start all who take part, and lay the roads to the sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sparq_sim.domain import Domain
from sparq_sim.errors import PluginError
from sparq_sim.messages import AGENT_NAME, REWARD, Answer, Query
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.environment import Environment, Landscape
from sparq_sim.plugin.expert import Answering, Expert
from sparq_sim.plugin.hooks import (
    AGENT_HOOKS,
    LANDSCAPE_HOOKS,
    Hook,
    check_hooks,
    describe_near_miss,
    find_near_misses,
    has_hook,
)
from sparq_sim.plugin.optimizer import Agent
from sparq_sim.plugin.steered import Steered
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.channel.policy import check_fallbacks
from sparq_sim.simulation.delivery.connection import Connection
from sparq_sim.simulation.delivery.context import PlayContext
from sparq_sim.simulation.delivery.road import build_road
from sparq_sim.simulation.lifetime import Resources, note_failed_start
from sparq_sim.simulation.reward import Reward

if TYPE_CHECKING:
    from sparq_sim.simulation.play import Played

__all__ = [
    "brief_agent",
    "check_feedback",
    "check_landscape",
    "connect_sources",
    "make_briefing",
    "pair_experts",
    "reduce_if_real",
    "start_agent",
]

_NEEDED = {
    "domain": "domain, a Box or Sites",
    "rewards": "rewards(points, time), the noise-free reward at each point: (n,)",
    "best": "best(time), a point of the highest reward, and that reward",
    "ask": "ask(now), which gives a Move",
    "tell": "tell(reply), which takes in what has arrived",
}


def check_landscape(environment: str, landscape: Landscape) -> None:
    """Raise PluginError where a *landscape* cannot be played in.

    Args:
        environment: How messages name its environment.
        landscape: What the environment's `start` gave.
    """
    _check_started(environment, landscape, LANDSCAPE_HOOKS)
    if not isinstance(landscape.domain, Domain):
        raise PluginError(
            f"{environment}: domain is {landscape.domain!r:.80}; expected a Box or "
            "Sites, as Box(0.0, 1.0)"
        )


def pair_experts(played: Played) -> dict[str, tuple[Expert, Channel]]:
    """Return each expert of a play with its channel, by name.

    Args:
        played: What is played.

    Raises:
        PluginError: A name cannot be used, or a fallback leads nowhere.
    """
    experts = played.experts
    if REWARD in experts or AGENT_NAME in experts or any(">" in name for name in experts):
        raise PluginError(
            f"experts cannot be called {REWARD!r} or {AGENT_NAME!r} nor have '>' in a name; "
            f"rename one of: {', '.join(experts)}"
        )
    pairs = {
        name: expert if isinstance(expert, tuple) else (expert, Channel())
        for name, expert in experts.items()
    }
    policies = {name: channel.policy for name, (_, channel) in pairs.items()}
    check_fallbacks({REWARD: played.feedback.policy, **policies})
    return pairs


def check_feedback(environment: str, landscape: Landscape, feedback: Channel) -> None:
    """Raise PluginError where a channel would keep points from being applied to a system.

    Args:
        environment: How messages name the environment.
        landscape: What its `start` gave.
        feedback: The channel of its rewards.
    """
    policy = feedback.policy
    if not isinstance(landscape, Steered) or not (policy.remember or policy.rate or policy.merge):
        return
    field = "remember" if policy.remember else "rate" if policy.rate else "merge"
    raise PluginError(
        f"feedback.policy.{field}: {environment} is steered, and by this some points that are "
        "played would not be applied; leave it out"
    )


def reduce_if_real(played: Played, plugin: Expert | Environment, channel: Channel) -> Channel:
    """Return the *channel* to a source; of that to a real one, only what a play decides.

    A recorded source has the delays and failures of then, and its channel adds none.

    Args:
        played: What is played.
        plugin: The source.
        channel: As it was declared; optimizers are told what it leads them to expect.
    """
    if plugin.is_recording():
        return channel.to_recorded_source()
    return channel.to_real_source() if played.live and plugin.is_real else channel


def make_briefing(
    played: Played,
    context: PlayContext,
    reward: Reward,
    channels: Mapping[str, Channel],
) -> Briefing:
    """Return what a play tells its agent and experts beforehand.

    Args:
        played: What is played.
        context: The play that begins.
        reward: What is observed for a design, if the rules have one.
        channels: The channel to each expert, by name.
    """
    design = played.rules.design
    return replace(
        brief_agent(played, context.landscape.domain, channels),
        design=_observe_design(design, context, reward, played.feedback) if design else None,
    )


def brief_agent(played: Played, domain: Domain, channels: Mapping[str, Channel]) -> Briefing:
    """Return what a play tells its agent beforehand, without the observations of a design.

    Args:
        played: What is played.
        domain: Where points may lie.
        channels: The channel to each expert, by name.
    """
    rules = played.rules
    return Briefing(
        domain=domain,
        observation=played.feedback.terms,
        experts={name: channel.terms for name, channel in channels.items()},
        period=rules.period,
        rounds=rules.most_rounds,
        budget=rules.budget,
        budget_per_round=rules.budget_per_round,
        access=rules.access,
    )


def _observe_design(count: int, context: PlayContext, reward: Reward, feedback: Channel) -> Answer:
    """Observe *count* uniformly drawn points at time 0, with the noise of the feedback."""
    if isinstance(context.landscape, Steered):
        raise PluginError(
            f"design = {count}: {context.environment} can only be tried, so nothing can be "
            "observed before the first round; leave the design out"
        )
    rng = context.streams.generator("design")
    points = context.landscape.domain.sample(rng, count)
    points = points[context.readings.available(points, 0.0)]
    if not len(points):
        raise PluginError("the design finds no reading at time 0: draw more points for it")
    values = context.readings.observe(points, 0.0, lambda: rng)
    reward.check(values, points, 0.0)
    noise, units = feedback.noise, feedback.noise.units(rng, len(points))
    stds = noise.stds(points, values)
    query = Query(context.next_own_query(), REWARD, points, 0.0)
    claimed = stds if noise.claimed is None else noise.claimed
    return query.answer(values + stds * units, stds=claimed)


async def connect_sources(
    experts: Mapping[str, tuple[Expert, Channel]],
    briefing: Briefing,
    context: PlayContext,
    resources: Resources,
    *,
    reward: tuple[Reward, Channel],
) -> list[Connection]:
    """Start the experts, and lay the road to each source into `context.links`.

    Args:
        experts: Each with its channel, by name.
        briefing: What they are told.
        context: The play that begins.
        resources: Enters what they hold, to be left at the end.
        reward: The environment as a source, with its channel.

    Returns:
        The connections, that to the reward first.
    """
    connections: list[Connection] = []

    def connect(name: str, source: Answering, channel: Channel) -> None:
        connection = Connection(name, source, channel, context)
        context.links[name] = build_road(connection)
        connections.append(connection)

    connect(REWARD, *reward)
    for name, (expert, channel) in experts.items():
        who = f"expert {name!r} ({type(expert).__name__})"
        with note_failed_start(who):
            source = await resources.enter(who, expert.start(briefing), may_await=True)
        connect(name, source, channel)
    return connections


async def start_agent(
    played: Played, briefing: Briefing, context: PlayContext, resources: Resources
) -> Agent:
    """Start the optimizer of a play.

    Args:
        played: What is played.
        briefing: What the agent is told.
        context: The play that begins.
        resources: Enters what the agent holds, to be left at the end.

    Returns:
        The agent, entered if it is a context manager.

    Raises:
        PluginError: What its `start` gives is no agent.
    """
    who = f"optimizer {type(played.optimizer).__name__}"
    with note_failed_start(who):
        started = played.optimizer.start(briefing, context.streams.generator("optimizer"))
        agent: Agent = await resources.enter(who, started)
    _check_started(who, agent, AGENT_HOOKS)
    return agent


def _check_started(who: str, started: object, hooks: Sequence[Hook]) -> None:
    """Refuse what a plug-in's `start` gives, unless it can be used by its *hooks*."""
    missing = [hook.name for hook in hooks if not hook.optional and not has_hook(started, hook)]
    if missing:
        hints = [f"; {describe_near_miss(*pair)}" for pair in find_near_misses(started, hooks)]
        raise PluginError(
            f"{who}: start gives an object of type {type(started).__name__}, which must have "
            f"{'; and '.join(_NEEDED[name] for name in missing)}{''.join(hints)}"
        )
    check_hooks(who, started, hooks)
