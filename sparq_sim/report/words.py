"""Words: a scenario in plain sentences.

Long because each part of a scenario has a sentence of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from sparq_sim.errors import PluginError
from sparq_sim.plugin.field_docs import read_own_doc
from sparq_sim.plugin.registry import Kind, kind_to_write, load
from sparq_sim.report.phrases import count_things, quote
from sparq_sim.study.settings import format_value

__all__ = [
    "Paragraph",
    "describe_scenario",
]

_Data: TypeAlias = Mapping[str, Any]
"""A part of a scenario as it is written down: see `Scenario.fingerprint`."""
_MOST_LISTED = 6
"""Entries of a field that are written one by one."""


@dataclass(frozen=True)
class Paragraph:
    """A few sentences about one part of a scenario."""

    about: str
    """What they are about."""
    text: str
    """The sentences."""


def describe_scenario(
    plays: Mapping[str, _Data],
    sweep: Mapping[str, Sequence[object]],
    *,
    allow_import: bool = False,
    knows_best: bool = True,
) -> list[Paragraph]:
    """Describe what drifts, who answers, how fast and at which cost, and who plays.

    Args:
        plays: The first play of each optimizer, as `Scenario.fingerprint` writes it.
        sweep: Swept values, by path.
        allow_import: Whether plug-ins may be named as `module:Class`.
        knows_best: Whether the best reward is known; where it is not, rewards have a noise of
            their own.

    Returns:
        A paragraph per part; none where there is no play.
    """

    def plugin(kind: Kind, data: _Data) -> str:
        return _plugin(kind, data, allow_import=allow_import)

    if not plays:
        return []
    first = next(iter(plays.values()))
    environment = _table(first.get("environment"))
    experts = _table(first.get("experts"))
    told = [
        Paragraph("What drifts", plugin("environment", environment)),
        Paragraph("Rules", _rules(first)),
        Paragraph(
            "Observations",
            _OWN_CHANNEL
            if _is_real("environment", environment)
            else f"The reward is observed {_channel(_table(first.get('feedback')))}"
            + (" What is steered may add noise of its own." * (not knows_best)),
        ),
    ]
    for name, expert in experts.items():
        own = {key: value for key, value in _table(expert).items() if key != "channel"}
        channel = _channel(_table(_table(expert).get("channel")), expert=True)
        come = _OWN_CHANNEL if _is_real("expert", own) else f"Its answers come {channel}"
        told.append(Paragraph(f"Expert: {name}", f"{plugin('expert', own)} {come}"))
    if not experts:
        told.append(Paragraph("Experts", "There are no experts to ask."))
    for name, play in plays.items():
        told.append(
            Paragraph(f"Optimizer: {name}", plugin("optimizer", _table(play.get("optimizer"))))
        )
    if sweep:
        parts = [
            f"{path} = {', '.join(map(format_value, values))}" for path, values in sweep.items()
        ]
        told.append(
            Paragraph("Swept", f"{'; '.join(parts)}. The lines above describe the first setting.")
        )
    return told


def _table(thing: object) -> _Data:
    return thing if isinstance(thing, Mapping) else {}


def _plugin(kind: Kind, data: _Data, *, allow_import: bool) -> str:
    """Describe a plug-in: its kind, the start of its docstring, and what differs from defaults."""
    name = str(data.get("kind", "unknown"))
    own = {key: value for key, value in data.items() if key != "kind"}
    given = list(_leaves(own))
    if ":" in name and not allow_import:
        return _with("It is code of the study, imported only with --allow-import.", name, given)
    try:
        model = load(kind, name, allow_import=allow_import)
    except PluginError:
        return _with("It is not installed here.", name, given)
    # A plug-in may read its fields otherwise by now, and refuse them; then all are listed.
    with suppress(Exception):
        part = model.model_validate(own, context={"allow_import": allow_import})
        given = list(_differing(part)) or ["the defaults"] * bool(own)
    about = " ".join(read_own_doc(model).split("\n\n")[0].replace("*", "").split())
    return _with(about, name, given)


def _with(about: str, name: str, given: Sequence[str]) -> str:
    return f"{name}. {about}" + (f" With {', '.join(given)}." if given else "")


def _differing(part: BaseModel, usual: object = None, path: str = "") -> Iterator[str]:
    """Yield the fields that differ from *usual*, or from their defaults if it is another kind."""
    same = type(usual) is type(part)
    kind = kind_to_write(part) or getattr(part, "kind", None)
    tagged = bool(path) and not same and kind is not None
    if tagged:
        yield f"{path}kind {kind}"
    for name, field in type(part).model_fields.items():
        value = getattr(part, name)
        default = getattr(usual, name) if same else field.get_default(call_default_factory=True)
        if value == default or (tagged and name == "kind"):
            continue
        here = f"{path}{field.alias or name}"
        if isinstance(value, BaseModel):
            yield from _differing(value, default, f"{here}.")
        elif _several(value, BaseModel):
            for place, each in enumerate(value):
                yield from _differing(each, path=f"{here}.{place}.")
        else:
            yield f"{here} {_write(value)}"


def _leaves(data: _Data, path: str = "") -> Iterator[str]:
    """Yield all fields of data that are given."""
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}{key}.")
        elif _several(value, Mapping):
            yield from _leaves({f"{key}.{place}": each for place, each in enumerate(value)}, path)
        elif value is not None:
            yield f"{path}{key} {_write(value)}"


def _several(value: object, kind: type) -> bool:
    """Return whether a value is a list of some, but not too many, things of a kind."""
    return (
        isinstance(value, list | tuple)
        and 0 < len(value) <= _MOST_LISTED
        and all(isinstance(each, kind) for each in value)
    )


def _write(value: object) -> str:
    if isinstance(value, list | tuple):
        many = len(value) > _MOST_LISTED
        return count_things(len(value), "value") if many else f"[{', '.join(map(_write, value))}]"
    return "none" if value is None else format_value(value)


_OWN_CHANNEL = "It is real: latency, loss and noise are its own."
"""Of what only a real source itself decides."""


def _is_real(kind: Literal["environment", "expert"], data: _Data) -> bool:
    """Return whether a plug-in is real, so that of its channel only a part applies."""
    try:
        return bool(getattr(load(kind, str(data.get("kind"))), "is_real", False))
    except PluginError:  # It is not installed here, or is code that must not be imported.
        return False


def _rules(play: _Data) -> str:
    rounds, period, horizon = (_number(play.get(key)) for key in ("rounds", "period", "horizon"))
    told = count_things(rounds, "round") if isfinite(rounds) else "Rounds"
    told += f", one every {period:g} units of time" if period != 1 else ", one per unit of time"
    told += f", until {horizon:g}." if isfinite(horizon) else "."
    for key, what in (
        ("budget", "for all queries"),
        ("budget_per_round", "for the queries of a round"),
    ):
        if isfinite(limit := _number(play.get(key))):
            told += f" The budget {what} is {limit:g}."
    if _table(play.get("experts")):
        past = play.get("access") == "past"
        told += f" Experts may be asked about {'points already played' if past else 'any point'}."
    if design := play.get("design"):
        verb = "is" if design == 1 else "are"
        told += f" {count_things(design, 'point')} {verb} observed beforehand."
    if thinking := _drawn(play.get("thinking")):
        told += f" The agent thinks for {thinking}."
    if effort := _table(play.get("thinking_by_effort")):
        scale, power = _number(effort.get("scale")), _number(effort.get("power", 1.0))
        told += f" An effort n adds {scale:g} n^{power:g} units of time."
    return told


def _number(thing: object) -> float:
    try:
        return float(thing)  # type: ignore[arg-type] # what is no number is refused just below
    except (TypeError, ValueError):
        return inf


def _channel(channel: _Data, *, expert: bool = False) -> str:
    """Describe a channel, as the end of a sentence: how fast, exact, costly and reliable it is."""
    times = [
        f"{drawn} {what}"
        for key, what in (
            ("service", "in service"),
            ("service_per_point", "in service per point"),
            ("transit", "in transit"),
        )
        if (drawn := _drawn(channel.get(key)))
    ]
    told = f"after {' and '.join(times)}" if times else "at once"
    told += f", {_noise(_table(channel.get('noise')))}"
    costs = [
        f"{drawn} per {what}"
        for key, what in (("cost", "query"), ("cost_per_point", "point"))
        if (drawn := _drawn(channel.get(key)))
    ]
    if costs or expert:
        told += f"; {'costing ' + ' and '.join(costs) if costs else 'free of cost'}"
    if costs and (due := channel.get("charged", "asked")) != "asked":
        told += f", charged when {due}"
    told += f".{_loss(_table(channel.get('loss')))}"
    if capacity := channel.get("capacity"):
        told += f" It serves {capacity} at a time."
    if isfinite(patience := _number(channel.get("patience"))):
        told += f" Answers that take longer than {patience:g} are too late."
    if outages := channel.get("outages"):
        told += f" It cannot be asked during {count_things(len(outages), 'outage')}."
    policy = _table(channel.get("policy"))
    if retries := policy.get("retries"):
        again = "once" if retries == 1 else f"up to {format_value(retries)} times"
        told += f" After a failure it is asked again, {again}."
    if fallback := policy.get("fallback"):
        told += f" When it fails for good, {quote(str(fallback))} is asked."
    if faults := [_table(fault) for fault in channel.get("faults") or ()]:
        shares = [
            f"{format_value(each.get('kind'))} {format_value(each.get('share'))}" for each in faults
        ]
        told += f" Faults are injected: {', '.join(shares)}."
    return told


def _drawn(draw: object) -> str:
    """Describe a draw; nothing for a constant zero."""
    data = _table(draw)
    match data.get("kind"):
        case "constant":
            return f"{_number(data['value']):g}" if data.get("value") else ""
        case "uniform":
            return f"{format_value(data.get('low'))} to {format_value(data.get('high'))}"
        case "exponential":
            return f"{format_value(data.get('mean'))} on average (exponential)"
        case "empirical":
            return f"one of {count_things(len(data.get('values', ())), 'recorded value')}"
        case None:
            return ""
        case kind:
            numbers = [f"{k} {format_value(v)}" for k, v in data.items() if k != "kind"]
            return f"a {kind} draw ({', '.join(numbers)})"


def _noise(noise: _Data) -> str:
    if noise.get("kind") in ("gaussian", "student-t", "bounded"):
        if not noise.get("std"):
            told = "without noise"
        else:
            told = f"with {noise['kind']} noise of std {format_value(noise['std'])}"
    else:
        told = f"with {noise.get('kind', 'unknown')} noise"
    claimed = noise.get("claimed")
    return told if claimed is None else f"{told} (claimed: {format_value(claimed)})"


def _loss(loss: _Data) -> str:
    if loss.get("kind") == "random":
        chance = _number(loss.get("probability"))
        return f" {100 * chance:g} % of them are lost." if chance else ""
    if loss.get("kind") == "bursts":
        return " They are lost in bursts."
    return f" Losses follow the model {loss['kind']}." if "kind" in loss else ""
