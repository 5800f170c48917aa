"""Sense: what a scenario cannot mean, found before it is played."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from sparq_sim.simulation.channel.channel import Channel

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

Nonsense: TypeAlias = tuple[tuple[str, ...], str]
"""The keys of the field that is wrong, and what is wrong with it, with a remedy."""


def nonsense(scenario: Scenario) -> Iterator[Nonsense]:
    """Find what nobody can mean: answers that can never come, questions that nobody asks.

    Args:
        scenario: One without a sweep; of a swept one, each setting is looked at.

    Yields:
        Where in the scenario, and what is wrong there.
    """
    roads = {("feedback",): scenario.feedback} | {
        ("experts", name, "channel"): each.channel for name, each in scenario.experts.items()
    }
    for keys, channel in roads.items():
        yield from _never_answered(keys, channel, lasts=_lasts(scenario))
    yield from _asked_in_vain(scenario)


def _lasts(scenario: Scenario) -> float:
    """Return the time from the first round to the end of the play."""
    period, rounds = scenario.period, scenario.most_rounds
    return min((rounds + 1) * period, scenario.horizon) - period


def _never_answered(keys: tuple[str, ...], channel: Channel, *, lasts: float) -> Iterator[Nonsense]:
    """Find a channel over which no answer can come in time."""
    least = channel.least_latency
    shortest = f"service and transit take at least {least:g}"
    if least > channel.patience:
        yield (
            (*keys, "patience"),
            f"ends before any answer can come: {shortest}; give more patience, or shorten them",
        )
    elif least > channel.policy.timeout:
        yield (
            (*keys, "policy", "timeout"),
            f"ends before any answer can come: {shortest}; allow more time, or shorten them",
        )
    elif least > lasts:
        slowest = max(
            ("transit", "service", "service_per_point"),
            key=lambda name: float(getattr(channel, name).least),
        )
        yield (
            (*keys, slowest),
            f"no answer can come before the play ends: {shortest}, and the play lasts {lasts:g}; "
            "shorten them, or play more rounds",
        )


def _asked_in_vain(scenario: Scenario) -> Iterator[Nonsense]:
    """Find optimizers that have nobody to ask, and access of which nobody makes use."""
    for name, optimizer in scenario.optimizers.items():
        if optimizer.asks in ("past", "anywhere") and not scenario.experts:
            yield (
                ("optimizers", name),
                "asks experts, and the scenario has none; add a table [experts.NAME], or take "
                "another optimizer",
            )
    if scenario.access == "domain" and all(
        optimizer.asks in ("never", "past") for optimizer in scenario.optimizers.values()
    ):
        yield (
            ("access",),
            "no optimizer of this scenario asks beyond the points already played; take it out "
            "(an optimizer of your own that does says `asks: ClassVar = 'anywhere'`)",
        )
