"""Checks: what a scenario cannot mean, found before it is played."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from warnings import catch_warnings

from sparq_sim.errors import PluginError, ScenarioError, SparqError, did_you_mean
from sparq_sim.fields import is_whole
from sparq_sim.messages import AGENT_NAME, REWARD
from sparq_sim.plugin.environment import Environment
from sparq_sim.plugin.exits import refuse_exits
from sparq_sim.plugin.expert import Expert
from sparq_sim.scenario.files import FILE_FIELDS
from sparq_sim.scenario.layers import DEFAULTS, merge, name_optimizers
from sparq_sim.scenario.tables import (
    ABSENT,
    Keys,
    format_value,
    get_entry,
    join_path,
    split_path,
)
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.channel.policy import check_fallbacks
from sparq_sim.simulation.lifetime import open_landscape

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

__all__ = [
    "Finding",
    "check_data",
    "check_plays",
    "find_bad_names",
    "find_contradictions",
    "find_missing_experts",
    "find_unknown_defaults",
    "find_unreached_defaults",
]

Finding: TypeAlias = tuple[Keys, str]
"""The keys of the field that is wrong, and what is wrong with it, with a remedy."""


# Names


def find_bad_names(scenario: Scenario) -> Iterator[Finding]:
    """Yield experts whose name is taken, and fallbacks that lead to no expert.

    Args:
        scenario: The scenario to check.
    """
    for name in scenario.experts:
        if name in (REWARD, AGENT_NAME) or ">" in name:
            taken = f"{REWARD!r}, {AGENT_NAME!r} and names with > are reserved"
            reason = f"no expert may have this name: {taken}"
            yield ("experts", name), f"{reason}; rename it"
    try:
        policies = {name: each.channel.policy for name, each in scenario.experts.items()}
        check_fallbacks({REWARD: scenario.feedback.policy, **policies})
    except PluginError as error:
        yield ("experts",), str(error)


def find_missing_experts(scenario: Scenario) -> Iterator[Finding]:
    """Yield optimizers and experts that name an expert which the scenario does not have.

    Args:
        scenario: The scenario to check.
    """
    for name, optimizer in scenario.optimizers.items():
        try:
            optimizer.check_experts(scenario.experts)
        except PluginError as error:
            yield ("optimizers", name), str(error)
    for name, entry in scenario.experts.items():
        try:
            entry.expert.check_experts(scenario.experts)
        except PluginError as error:
            yield ("experts", name), str(error)


# Defaults of optimizers


def find_unknown_defaults(scenario: Scenario) -> Iterator[Finding]:
    """Yield defaults for fields that no optimizer of the scenario has.

    Args:
        scenario: The scenario to check.
    """
    known = {field for each in scenario.optimizers.values() for field in type(each).model_fields}
    for name in scenario.optimizer_defaults.keys() - known:
        reason = f"no optimizer of this scenario has such a field; {did_you_mean(name, known)}"
        yield (DEFAULTS, name), reason


def find_unreached_defaults(scenario: Scenario, given: Any) -> Iterator[Finding]:
    """Yield swept fields within a default that an optimizer has merged into its own.

    Args:
        scenario: The scenario.
        given: What it was made from; only tables show what an optimizer has set itself.
    """
    own = name_optimizers(given.get("optimizers")) if isinstance(given, Mapping) else None
    if not isinstance(own, Mapping):
        return
    for path in scenario.sweep.paths():
        keys = split_path(path)
        for name, table in own.items() if keys[0] == DEFAULTS and keys[2:] else ():
            field = get_entry(table, keys[1]) if isinstance(table, Mapping) else ABSENT
            default = scenario.optimizer_defaults.get(keys[1])
            if isinstance(field, Mapping) and merge(default, field) != field:
                reason = (
                    f"does not reach the optimizer {name!r}, which has a part of {keys[1]!r} "
                    f"itself: sweep {join_path(('optimizers', name, *keys[1:]))} beside it, by "
                    f"way = 'zip', or leave {keys[1]!r} to the defaults"
                )
                yield ("sweep", path), reason


# Contradictions


def find_contradictions(scenario: Scenario) -> Iterator[Finding]:
    """Yield what nobody can mean: answers that can never come, questions that nobody asks.

    Args:
        scenario: One without a sweep; of a swept one, check each setting.
    """
    channels = {("feedback",): scenario.feedback} | {
        ("experts", name, "channel"): each.channel for name, each in scenario.experts.items()
    }
    for keys, channel in channels.items():
        yield from _find_unanswerable(keys, channel, lasts=_compute_length(scenario))
    yield from _find_unasked(scenario)
    for name, optimizer in scenario.optimizers.items():
        if reason := _explain_refusal(optimizer.check_access, scenario.access):
            yield ("optimizers", name), reason


def _compute_length(scenario: Scenario) -> float:
    """Return the time from the first round to the end of the play."""
    period, rounds = scenario.period, scenario.most_rounds
    return min((rounds + 1) * period, scenario.horizon) - period


def _find_unanswerable(keys: Keys, channel: Channel, *, lasts: float) -> Iterator[Finding]:
    """Yield a channel over which no answer can come in time."""
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


def _find_unasked(scenario: Scenario) -> Iterator[Finding]:
    """Yield optimizers that have nobody to ask, and access that nobody uses."""
    for name, optimizer in scenario.optimizers.items():
        if optimizer.where_asks() in ("past", "anywhere") and not scenario.experts:
            yield (
                ("optimizers", name),
                "asks experts, and the scenario has none; add a table [experts.NAME], or take "
                "another optimizer",
            )
    if scenario.access == "domain" and all(
        optimizer.where_asks() in ("never", "past") for optimizer in scenario.optimizers.values()
    ):
        yield (
            ("access",),
            "no optimizer of this scenario asks beyond the points already played; take it out "
            "(an optimizer of your own that does says `asks: ClassVar = 'anywhere'`)",
        )


# How many


def check_plays(scenario: Scenario, most: int) -> None:
    """Refuse a scenario of too many plays.

    Args:
        scenario: The scenario, whose settings are counted, not made.
        most: How many plays there may be.

    Raises:
        ScenarioError: There are more; the message has the number.
    """
    settings, optimizers = scenario.sweep.count(), len(scenario.optimizers)
    swept = scenario.sweep.values.get("replications", ())
    replications = max([scenario.replications, *filter(is_whole, swept)])
    plays = settings * optimizers * replications
    if plays > most:
        raise ScenarioError(
            f"{optimizers:,} optimizers in {settings:,} settings, with up to {replications:,} "
            f"replications each, are {plays:,} plays; at most {most:,} make a study: give fewer "
            f"replications or values, or allow more by --most-plays {plays} (in Python, by "
            "most_plays)"
        )


# Data


def check_data(
    settings: Sequence[tuple[Mapping[str, object], Scenario]],
    where: Callable[[Keys], str],
) -> None:
    """Check that environments and experts can be played until the end, in some settings.

    Args:
        settings: Values by path, and the scenario that has them.
        where: Returns the place of a field, to stand before what is wrong with it.

    Raises:
        ScenarioError: Data are missing, unreadable or too short: what the `check_play` of
            environments and experts refuses, or the `check_domain` of experts.
    """
    problems: list[str] = []
    seen: set[str] = set()
    for setting, one in settings:
        until = one.rules.ends_at
        for keys, plugin in _find_plugins_with_data(one):
            looked_at = repr((keys, plugin, until))
            if looked_at in seen:
                continue
            seen.add(looked_at)
            if reason := _explain_refusal(plugin.check_play, until):
                reason += _name_setting(setting)
                problems.append(f"{where(keys)}{join_path(keys)}: {reason}")
        if not problems:
            for name, reason in _find_misplaced_experts(one, seen):
                keys = ("experts", name)
                reason += _name_setting(setting)
                problems.append(f"{where(keys)}{join_path(keys)}: {reason}")
    if problems:
        raise ScenarioError(*problems)


def _name_setting(setting: Mapping[str, object]) -> str:
    swept = ", ".join(f"{path} = {format_value(v)}" for path, v in setting.items())
    return f" (where {swept})" if swept else ""


def _find_misplaced_experts(scenario: Scenario, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the experts that refuse the domain of the environment, each with the reason."""
    checking = {
        name: each.expert
        for name, each in scenario.experts.items()
        if type(each.expert).check_domain is not Expert.check_domain
    }
    looked_at = repr((scenario.environment, checking))
    if not checking or looked_at in seen:
        return
    seen.add(looked_at)
    try:
        with open_landscape(scenario.environment, scenario.seed) as landscape:
            domain = landscape.domain
    except Exception:  # A play tells what is wrong with the environment.
        return
    for name, expert in checking.items():
        # What an expert warns of, it warns of in the play as well.
        with catch_warnings(action="ignore"):
            reason = _explain_refusal(expert.check_domain, domain)
        if reason:
            yield name, reason


def _find_plugins_with_data(scenario: Scenario) -> Iterator[tuple[Keys, Environment | Expert]]:
    """Yield all that may read data, each with the keys of the field that names its files."""
    plugins: dict[Keys, Environment | Expert] = {("environment",): scenario.environment}
    plugins |= {("experts", name): each.expert for name, each in scenario.experts.items()}
    for keys, plugin in plugins.items():
        named = [field for field in FILE_FIELDS if field in type(plugin).model_fields]
        yield (*keys, *named[:1]), plugin


def _explain_refusal(check: Callable[..., None], given: object) -> str:
    """Explain why a check of a plug-in refuses what is *given*, if it does."""
    try:
        with refuse_exits():
            check(given)
    except SparqError as error:
        return str(error)
    except Exception as error:
        return f"{check.__qualname__} raised {type(error).__name__}: {error}"
    return ""
