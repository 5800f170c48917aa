"""Words: a scenario and its outcome, told in plain sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import getdoc
from math import inf, isfinite
from typing import Any, TypeAlias

from pydantic import BaseModel

from sparq_sim.analysis.summary import Difference, Summary
from sparq_sim.errors import PluginError
from sparq_sim.plugin.registry import Kind, kind_to_write, load
from sparq_sim.study.settings import Setting, shown

Data: TypeAlias = Mapping[str, Any]
"""A part of a scenario as it is written down: see `Scenario.fingerprint`."""
MOST_LISTED = 6
"""Entries of a field that are told one by one."""


@dataclass(frozen=True)
class Paragraph:
    """What is told of one thing."""

    about: str
    text: str


def scenario(
    plays: Mapping[str, Data],
    sweep: Mapping[str, Sequence[object]],
    *,
    allow_import: bool = False,
) -> list[Paragraph]:
    """Tell what drifts, who answers, how fast and how dear, and who plays.

    *plays* has the first play of each optimizer; *sweep* the swept values by path. With
    *allow_import*, plug-ins may be named as `module:Class`.
    """

    def plugin(kind: Kind, data: Data) -> str:
        return _plugin(kind, data, allow_import=allow_import)

    if not plays:
        return []
    first = next(iter(plays.values()))
    environment = _table(first.get("environment"))
    experts = _table(first.get("experts"))
    told = [
        Paragraph("What drifts", plugin("environment", environment)),
        Paragraph("Rules", _rules(first)),
        Paragraph("Observations", f"The reward is seen {_road(_table(first.get('feedback')))}"),
    ]
    for name, expert in experts.items():
        own = {key: value for key, value in _table(expert).items() if key != "channel"}
        road = _road(_table(_table(expert).get("channel")), expert=True)
        told.append(
            Paragraph(f"Expert: {name}", f"{plugin('expert', own)} Its answers come {road}")
        )
    if not experts:
        told.append(Paragraph("Experts", "Nobody can be asked."))
    for name, play in plays.items():
        told.append(
            Paragraph(f"Optimizer: {name}", plugin("optimizer", _table(play.get("optimizer"))))
        )
    if sweep:
        parts = [f"{path} = {', '.join(map(shown, values))}" for path, values in sweep.items()]
        told.append(
            Paragraph(
                "Swept", f"{'; '.join(parts)}. The lines above tell of the first of the settings."
            )
        )
    return told


def _table(thing: object) -> Data:
    return thing if isinstance(thing, Mapping) else {}


def _plugin(kind: Kind, data: Data, *, allow_import: bool) -> str:
    """Tell a plug-in: its kind, the first paragraph of its docstring, what is not as by default."""
    name = str(data.get("kind", "unknown"))
    own = {key: value for key, value in data.items() if key != "kind"}
    given = list(_leaves(own))
    if ":" in name and not allow_import:
        return _with("It is code of the study, imported only with --allow-import.", name, given)
    try:
        model = load(kind, name, allow_import=allow_import)
    except PluginError:
        return _with("It is not installed here.", name, given)
    # A plug-in may read its fields otherwise by now, and refuse them; then all are told.
    with suppress(Exception):
        part = model.model_validate(own, context={"allow_import": allow_import})
        given = list(_differing(part)) or ["the defaults"] * bool(own)
    about = " ".join((getdoc(model) or "").split("\n\n")[0].replace("*", "").split())
    return _with(about, name, given)


def _with(about: str, name: str, given: Sequence[str]) -> str:
    return f"{name}. {about}" + (f" With {', '.join(given)}." if given else "")


def _differing(part: BaseModel, usual: object = None, path: str = "") -> Iterator[str]:
    """Tell the fields that are not as in *usual*, or by default where that is another kind."""
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
            yield f"{here} {_said(value)}"


def _leaves(data: Data, path: str = "") -> Iterator[str]:
    """Tell all fields of data that are given."""
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}{key}.")
        elif _several(value, Mapping):
            yield from _leaves({f"{key}.{place}": each for place, each in enumerate(value)}, path)
        elif value is not None:
            yield f"{path}{key} {_said(value)}"


def _several(value: object, kind: type) -> bool:
    """Tell whether a value is some, but not too many, of a kind."""
    return (
        isinstance(value, list | tuple)
        and 0 < len(value) <= MOST_LISTED
        and all(isinstance(each, kind) for each in value)
    )


def _said(value: object) -> str:
    if isinstance(value, list | tuple):
        many = len(value) > MOST_LISTED
        return counted(len(value), "value") if many else f"[{', '.join(map(_said, value))}]"
    return "none" if value is None else shown(value)


def counted(count: float, thing: str) -> str:
    """Say how many there are of a *thing*."""
    return f"{count:g} {thing}{'' if count == 1 else 's'}"


def quoted(name: str) -> str:
    """Put a name in quotation marks where it would not be known for one word."""
    return (
        f"\N{LEFT DOUBLE QUOTATION MARK}{name}\N{RIGHT DOUBLE QUOTATION MARK}"
        if " " in name
        else name
    )


def _rules(play: Data) -> str:
    rounds, period, horizon = (_number(play.get(key)) for key in ("rounds", "period", "horizon"))
    told = counted(rounds, "round") if isfinite(rounds) else "Rounds"
    told += f", one every {period:g} units of time" if period != 1 else ", one a unit of time"
    told += f", until {horizon:g}." if isfinite(horizon) else "."
    for key, what in (("budget", "for all queries"), ("budget_per_round", "for those of a round")):
        if isfinite(limit := _number(play.get(key))):
            told += f" The budget {what} is {limit:g}."
    if _table(play.get("experts")):
        past = play.get("access") == "past"
        told += f" Experts may be asked about {'points already played' if past else 'any point'}."
    if design := play.get("design"):
        verb = "is" if design == 1 else "are"
        told += f" {counted(design, 'point')} {verb} observed beforehand."
    if thinking := _drawn(play.get("thinking")):
        told += f" The agent thinks for {thinking}."
    if effort := _table(play.get("thinking_by_effort")):
        scale, power = _number(effort.get("scale")), _number(effort.get("power", 1.0))
        told += f" Its effort n takes {scale:g} n^{power:g} units of time on top."
    return told


def _number(thing: object) -> float:
    try:
        return float(thing)  # type: ignore[arg-type] # what is no number is refused just below
    except (TypeError, ValueError):
        return inf


def _road(channel: Data, *, expert: bool = False) -> str:
    """Tell a channel, as the end of a sentence: how fast, how exact, how dear, how surely."""
    times = [
        f"{drawn} {what}"
        for key, what in (
            ("service", "of service"),
            ("service_per_point", "of service a point"),
            ("transit", "on the way"),
        )
        if (drawn := _drawn(channel.get(key)))
    ]
    told = f"after {' and '.join(times)}" if times else "at once"
    told += f", {_noise(_table(channel.get('noise')))}"
    costs = [
        f"{drawn} a {what}"
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
        told += f" After {patience:g} they are too late."
    if outages := channel.get("outages"):
        told += f" Nobody can be asked in {counted(len(outages), 'outage')}."
    policy = _table(channel.get("policy"))
    if retries := policy.get("retries"):
        again = "once" if retries == 1 else f"up to {shown(retries)} times"
        told += f" After a failure it is asked again, {again}."
    if fallback := policy.get("fallback"):
        told += f" When it fails for good, {quoted(str(fallback))} is asked."
    if faults := [_table(fault) for fault in channel.get("faults") or ()]:
        shares = [f"{shown(each.get('kind'))} {shown(each.get('share'))}" for each in faults]
        told += f" Faults are injected: {', '.join(shares)}."
    return told


def _drawn(draw: object) -> str:
    """Tell a draw; nothing for a constant zero."""
    data = _table(draw)
    match data.get("kind"):
        case "constant":
            return f"{_number(data['value']):g}" if data.get("value") else ""
        case "uniform":
            return f"{shown(data.get('low'))} to {shown(data.get('high'))}"
        case "exponential":
            return f"{shown(data.get('mean'))} on average (exponential)"
        case "empirical":
            return f"one of {counted(len(data.get('values', ())), 'recorded value')}"
        case None:
            return ""
        case kind:
            numbers = [f"{k} {shown(v)}" for k, v in data.items() if k != "kind"]
            return f"a {kind} draw ({', '.join(numbers)})"


def _noise(noise: Data) -> str:
    if noise.get("kind") in ("gaussian", "student-t", "bounded"):
        if not noise.get("std"):
            told = "without noise"
        else:
            told = f"with {noise['kind']} noise of std {shown(noise['std'])}"
    else:
        told = f"with {noise.get('kind', 'unknown')} noise"
    claimed = noise.get("claimed")
    return told if claimed is None else f"{told} (claimed: {shown(claimed)})"


def _loss(loss: Data) -> str:
    if loss.get("kind") == "random":
        chance = _number(loss.get("probability"))
        return f" {100 * chance:g} % of them are lost." if chance else ""
    if loss.get("kind") == "bursts":
        return " They are lost in bursts."
    return f" Losses follow the model {loss['kind']}." if "kind" in loss else ""


def number(value: float, significant: int = 3) -> str:
    """Write a number; a dash for one that is unknown."""
    if not isfinite(value):
        return "\N{EN DASH}"
    return f"{value:.{significant}g}".replace("-", "\N{MINUS SIGN}")


# Who won


@dataclass(frozen=True)
class Verdict:
    """Who had the least average regret in a setting, and how sure that is."""

    setting: Setting
    best: Summary
    next: Summary | None
    difference: Difference | None
    """Of the best from the next, replication by replication: negative."""

    @property
    def sure(self) -> bool:
        """Whether the 95 % interval of the difference excludes 0."""
        return self.difference is not None and self.difference.difference.high < 0


NO_WINNER = (
    "No optimizer can be named the best: regret is below 0, which is impossible. See the notes."
)
"""Where all results are impossible."""


def winner(verdicts: Sequence[Verdict]) -> str:
    """Say who won, by how much and how surely."""
    match verdicts:
        case []:
            return "No play is finished, so there is nothing to tell yet."
        case [one]:
            return f"{_one_winner(one)}{_lasted(one.best)}"
    wins = Counter(each.best.optimizer for each in verdicts)
    best, count = wins.most_common(1)[0]
    name = quoted(best)
    if all(each.next is None for each in verdicts):
        return f"There is only one optimizer, {name}, in {len(verdicts)} settings."
    sure = sum(each.sure for each in verdicts if each.best.optimizer == best)
    where = "all" if count == len(verdicts) else f"{count} of the"
    told = f"The optimizer {name} had the least average regret in {where} {len(verdicts)} settings"
    if sure == count:
        certainty = ": each time beyond chance"
    elif sure:
        certainty = f": in {sure} of these beyond chance"
    else:
        certainty = ", but in none of these beyond chance"
    return f"{told}{certainty}, by the 95 % interval of the paired difference from the next."


def _lasted(best: Summary) -> str:
    """Warn that the best may be so because its plays were short."""
    if not best.ended_early:
        return ""
    return (
        f" But {counted(best.ended_early, 'play')} of {best.plays} of {quoted(best.optimizer)} "
        f"ended early: its plays lasted {number(best.rounds)} rounds on average."
    )


def _one_winner(verdict: Verdict) -> str:
    gap, name = verdict.difference, quoted(verdict.best.optimizer)
    mean = number(verdict.best.average_regret.mean)
    if verdict.next is None:
        return f"There is only one optimizer, {name}: its average regret is {mean}."
    told = f"The optimizer {name} had the least average regret, {mean}"
    after = quoted(verdict.next.optimizer)
    if gap is None:
        return f"{told}; the next is {after}."
    margin = gap.difference
    told += f": {number(-margin.mean)} less than {after}, the next"
    if margin.count < 2:
        return f"{told}. With one replication, chance may have decided."
    wins = round(gap.better * margin.count)
    low, high = number(-margin.high), number(-margin.low)
    told += (
        f" (95 % interval of the paired difference: {low} to {high}; "
        f"less in {wins} of {margin.count} replications)."
    )
    return told if verdict.sure else f"{told} The interval includes 0: chance may have decided."
