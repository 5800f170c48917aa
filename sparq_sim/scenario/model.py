"""Scenarios: all that fixes plays but chance, from a TOML file or in Python."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    NonNegativeInt,
    PositiveInt,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import models_json_schema
from pydantic_core import InitErrorDetails, PydanticCustomError

from sparq_sim.errors import PluginError, ScenarioError, SparqError, did_you_mean
from sparq_sim.fields import is_number
from sparq_sim.messages import AGENT_NAME, REWARD
from sparq_sim.plugin.environment import Environment, Landscape
from sparq_sim.plugin.expert import Expert
from sparq_sim.plugin.field_docs import read_field_docs, read_summary
from sparq_sim.plugin.frames import describe_error
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.optimizer import Optimizer
from sparq_sim.plugin.registry import (
    GROUPS,
    AnyKind,
    Kind,
    add_kind,
    find_family,
    kind_of,
    kind_to_write,
    list_installed,
    list_names,
    load,
)
from sparq_sim.scenario.files import (
    ABSENT,
    DEFAULTS,
    FILE_FIELDS,
    WITHOUT,
    Keys,
    Layer,
    Layers,
    Problems,
    Table,
    at_path,
    contents,
    dotted,
    entry,
    is_type,
    merged,
    named,
    overridden,
    read,
    reasons,
    shown,
    undotted,
    without,
)
from sparq_sim.scenario.problems import nonsense
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.channel.policy import check_fallbacks
from sparq_sim.simulation.play import Played, Watch
from sparq_sim.simulation.rules import Rules
from sparq_sim.simulation.trace import Trace

UNSET = "unset"
"""In place of the value of a field that only other settings of a list have."""
MOST_SETTINGS = 10_000
MOST_LOOKS = 4


def _refusal(reason: str, *keys: str | int, given: object = None) -> ValidationError:
    """Make the error that something at *keys* is wrong; pydantic puts it among the others."""
    error = PydanticCustomError("scenario", "{reason}", {"reason": reason})
    return _refusals([InitErrorDetails(type=error, loc=keys, input=given)])


def _refusals(details: list[InitErrorDetails]) -> ValidationError:
    return ValidationError.from_exception_data("Scenario", details)


def _no_table(kind: Kind) -> ValidationError:
    return _refusal(f"should be a table with a kind; the kinds are: {', '.join(list_names(kind))}")


def _plugged(kind: Kind, given: Any, info: ValidationInfo) -> Any:
    """Read a table with a `kind` by the plug-in's own model; take a model as it is."""
    if isinstance(given, BaseModel):
        return given
    if not isinstance(given, Mapping):
        raise _no_table(kind)
    name = given.get("kind")
    if "kind" not in given:
        raise _refusal(f"missing; say which {kind}: {', '.join(list_names(kind))}", "kind")
    if not isinstance(name, str):
        raise _refusal(f"expected the name of an {kind}", "kind", given=name)
    allow_import = bool((info.context or {}).get("allow_import", False))
    try:
        model = load(kind, name, allow_import=allow_import)
    except PluginError as error:
        raise _refusal(str(error), "kind", given=name) from error
    fields = {key: value for key, value in given.items() if key != "kind"}
    try:
        return model.model_validate(fields, context=info.context)
    except ValidationError:
        raise
    except Exception as error:  # A validator of the plug-in's own, that is broken.
        raise _refusal(
            f"{kind} {name!r} fails on its fields: {describe_error(error)}", "kind"
        ) from error


def _environment(given: Any, info: ValidationInfo) -> Any:
    return _plugged("environment", given, info)


def _expert(given: Any, info: ValidationInfo) -> Any:
    return _plugged("expert", given, info)


def _optimizer(given: Any, info: ValidationInfo) -> Any:
    """Read an optimizer, with the defaults of the scenario for the fields that it does not set.

    A table that it has itself is laid over that of the defaults, as over that of a file extended.
    """
    defaults: Mapping[str, Any] = (info.data or {}).get(DEFAULTS) or {}
    match given:
        case Optimizer():
            model, own = type(given), {key: getattr(given, key) for key in given.model_fields_set}
        case {"kind": str() as kind} if defaults:
            allow_import = bool((info.context or {}).get("allow_import", False))
            try:
                model = load("optimizer", kind, allow_import=allow_import)
            except PluginError:
                return _plugged("optimizer", given, info)
            own = {key: merged(defaults.get(key), value) for key, value in given.items()}
        case _:
            return _plugged("optimizer", given, info)
    fields = model.model_fields.keys() - own.keys()
    more = {key: value for key, value in defaults.items() if key in fields}
    if isinstance(given, Optimizer):
        if not more:
            return given
        made = model.model_validate(own | more, context=info.context)
    else:
        made = _plugged("optimizer", own | more, info)
    # Only its own: where a sweep changes a default, the optimizer takes the new one.
    object.__setattr__(made, "__pydantic_fields_set__", own.keys() - {"kind"})
    return made


class Engaged(Model):
    """An expert and its channel; in a file one table, in which the `channel` is a field."""

    expert: Annotated[Expert, BeforeValidator(_expert)]
    """The expert that answers: a table with a `kind`."""
    channel: Channel = Channel()
    """How the expert is reached: service, transit, cost, noise, loss and more."""

    @model_validator(mode="before")
    @classmethod
    def _together(cls, given: Any) -> Any:
        match given:
            case Expert():
                return {"expert": given}
            case (Expert() as expert, channel):
                return {"expert": expert, "channel": channel}
            case {"expert": Expert()} | Engaged():
                return given
            case Mapping():
                own = {key: value for key, value in given.items() if key != "channel"}
                road = {"channel": given["channel"]} if "channel" in given else {}
                return {"expert": own, **road}
        raise _no_table("expert")


class Sweep(Model):
    """Which fields take which values, and how these are combined to settings."""

    way: Literal["grid", "zip", "list"] = "grid"
    """How values are combined: all with all (`grid`), the first of all, then the second of all
    (`zip`), or as `settings` lists them (`list`)."""
    values: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    """The values of each swept field, by its path, as `experts.sensor.channel.loss`."""
    settings: tuple[dict[str, Any], ...] = ()
    """The settings of a `list`, each a table of values by path."""

    @model_validator(mode="before")
    @classmethod
    def _by_path(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or "values" in given:
            return given
        fixed = {key: given[key] for key in ("way", "settings") if key in given}
        values = {key: value for key, value in given.items() if key not in fixed}
        if "settings" in fixed:
            fixed.setdefault("way", "list")
            if isinstance(fixed["settings"], list | tuple):
                fixed["settings"] = [
                    _by_path(setting, within="kind") if isinstance(setting, Mapping) else setting
                    for setting in fixed["settings"]
                ]
        return {**fixed, "values": _by_path(values)}

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.way == "list" and self.values:
            raise _refusal("give the values in `settings` where the way is list", *self.values)
        if self.way != "list" and self.settings:
            raise _refusal("go with way = 'list' only", "settings")
        for path, values in self.values.items():
            if not values:
                raise _refusal("has no values; give some, or take it out", path)
        sizes = {path: len(values) for path, values in self.values.items()}
        if self.way == "zip" and len(set(sizes.values())) > 1:
            told = ", ".join(f"{path} has {size}" for path, size in sizes.items())
            raise ValueError(f"fields swept together need equally many values; {told}")
        count = math.prod(sizes.values()) if self.way == "grid" else len(self.settings)
        if count > MOST_SETTINGS:
            raise ValueError(f"makes {count} settings; at most {MOST_SETTINGS} make a study")
        return self

    def __bool__(self) -> bool:
        return bool(self.values or self.settings)

    def each(self) -> Iterator[dict[str, Any]]:
        """Give each setting: the values by path."""
        if self.way == "list":
            yield from self.settings
            return
        rows = product if self.way == "grid" else zip
        for row in rows(*self.values.values()):
            yield dict(zip(self.values, row, strict=True))

    def samples(self) -> Iterator[dict[str, Any]]:
        """Give settings in which each value occurs: of a grid, along its edges."""
        if self.way != "grid":
            yield from self.each()
            return
        first = {path: values[0] for path, values in self.values.items()}
        yield first
        for path, values in self.values.items():
            yield from (first | {path: value} for value in values[1:])


def _by_path(table: Mapping[str, Any], within: str | None = None) -> dict[str, Any]:
    """Flatten tables within tables to values by path; a table with a key *within* is a value."""
    flat: dict[str, Any] = {}
    for keys, value in _leaves(table, within):
        if flat.setdefault(dotted(keys), value) is not value:
            raise _refusal("swept twice; take one out", dotted(keys))
    return flat


def _leaves(
    table: Mapping[str, Any], within: str | None, outer: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in table.items():
        keys = (*outer, *undotted(str(key)))
        if isinstance(value, Mapping) and value and (within is None or within not in value):
            yield from _leaves(value, within, keys)
        else:
            yield keys, value


def _listed(given: Any) -> Any:
    """Read a list of kinds as optimizers named so."""
    if isinstance(given, list) and len({str(kind) for kind in given}) < len(given):
        raise ValueError("an optimizer is named twice; give each a table with a name of its own")
    return named(given)


@dataclass(frozen=True, slots=True)
class _Permission:
    """Whether a sweep may name code to import; scenarios are equal with and without it."""

    allow_import: bool = field(default=False, compare=False)

    @property
    def context(self) -> dict[str, bool] | None:
        return {"allow_import": True} if self.allow_import else None


class Scenario(Rules):
    """What is played, by whom and how often.

    Plug-ins are given as models, or as tables with a `kind`, as in a file.
    """

    title: str = ""
    """What tables and reports call the study; by default nothing."""
    environment: Annotated[Environment, BeforeValidator(_environment)]
    """The world that is played in: a table with a `kind`."""
    feedback: Channel = Channel()
    """The channel over which the reward of each play arrives."""
    experts: dict[str, Engaged] = Field(default_factory=dict)
    """Who can be asked, by name: each a table with a `kind` and a `channel`."""
    optimizer_defaults: dict[str, Any] = Field(default_factory=dict)
    """Fields of all optimizers that have such a field and do not set it themselves."""
    optimizers: Annotated[
        dict[str, Annotated[Optimizer, BeforeValidator(_optimizer)]],
        Field(min_length=1),
        BeforeValidator(_listed),
    ]
    """What is compared on the same chance: tables with a `kind` by name, or a list of kinds."""
    replications: PositiveInt = 1
    """How often each optimizer plays, each time with other chance."""
    seed: NonNegativeInt = 0
    """The number from which all chance is made: the same one gives the same plays."""
    record: Literal["rounds", "full"] = "rounds"
    """What a study keeps: a row for each round (`rounds`), or every reply as well (`full`)."""
    levels: bool = True
    """Whether tables and reports show reference levels: what simple policies would get."""
    sweep: Sweep = Sweep()
    """Fields that take several values: lists of values by path, as `experts.sensor.channel.loss`,
    and the `way` to combine them."""
    _permission: _Permission = PrivateAttr(default_factory=_Permission)

    @classmethod
    def load(
        cls,
        source: str | Path,
        *,
        overrides: Sequence[str] = (),
        allow_import: bool = False,
        check_data: bool = False,
    ) -> Self:
        """Read a file, or the scenario of that name that is installed.

        *overrides* are FIELD=VALUE and win over the file. With *allow_import*, the file may name
        code to run, as `module:Class`. With *check_data*, the data files that it names are read
        as well, as by `Scenario.check_data`.
        """
        layers = read(source, overrides)
        values = layers.values
        found = Problems(layers, values, partial(_known_fields, allow_import=allow_import))
        # What is wrong elsewhere may hide behind what is wrong first: look again without it.
        for _ in range(MOST_LOOKS):
            context = {"allow_import": allow_import, "again": bool(found.told)}
            try:
                scenario = cls.model_validate(values, context=context)
            except ValidationError as error:
                values = found.add(error, values)
            else:
                break
        if found.told:
            raise ScenarioError(*found.told)
        if check_data:
            scenario.check_data(lambda keys: f"{layers.giver(keys).where(keys)}: ")
        return scenario

    def check_data(self, where: Callable[[Keys], str] = lambda keys: "") -> None:
        """Refuse plays for which data are missing, unreadable or too short, in any setting.

        Args:
            where: Names the place of a field, to stand before what is wrong with it.

        Raises:
            ScenarioError: What environments and experts refuse by their `check_play`.
        """
        problems: list[str] = []
        seen: set[str] = set()
        for setting, one in self.settings():
            until = one.rules.ends_at
            for keys, part in one._parts_with_data():
                looked_at = repr((keys, part, until))
                if looked_at in seen:
                    continue
                seen.add(looked_at)
                if reason := _refused(part, until):
                    swept = ", ".join(f"{path} = {shown(value)}" for path, value in setting.items())
                    reason += f" (where {swept})" if swept else ""
                    problems.append(f"{where(keys)}{dotted(keys)}: {reason}")
        if problems:
            raise ScenarioError(*problems)

    @property
    def rules(self) -> Rules:
        """The rules of a play."""
        return Rules(**{name: getattr(self, name) for name in Rules.model_fields})

    def play(
        self,
        optimizer: str | Optimizer,
        replication: int = 0,
        *,
        landscape: Landscape | None = None,
        watch: Watch | None = None,
    ) -> Trace:
        """Play once, and give the trace."""
        return self.played(optimizer, replication).again(landscape=landscape, watch=watch)

    def played(self, optimizer: str | Optimizer, replication: int = 0) -> Played:
        """Return all that fixes one play."""
        called = "" if isinstance(optimizer, Optimizer) else optimizer
        return Played(
            optimizer if isinstance(optimizer, Optimizer) else self._called(optimizer),
            self.environment,
            self.rules,
            experts={name: (each.expert, each.channel) for name, each in self.experts.items()},
            feedback=self.feedback,
            seed=self.seed,
            replication=replication,
            name=called,
        )

    def settings(self) -> list[tuple[dict[str, object], Scenario]]:
        """Return each swept setting: the values by path, and the scenario that has them.

        Of a list, where a setting need not name all paths, it has the scenario's own values of
        those that only others name: what is played is told whole, and settings can be compared.
        """
        if not self.sweep:
            return [({}, self)]
        each = [(dict(setting), self._set(setting)) for setting in self.sweep.each()]
        paths = dict.fromkeys(path for setting, _ in each for path in setting)
        return [(_whole(setting, scenario, paths), scenario) for setting, scenario in each]

    def resolved(self) -> dict[str, object]:
        """Write the scenario as JSON-able data, with all defaults, as a file would have it."""
        return _written(self)

    def fingerprint(self, optimizer: str) -> dict[str, Any]:
        """Give all that fixes a play of an optimizer but seed and replication, JSON-able.

        Under `contents` are hashes of the files that it names: a play is not known by their names.
        What cannot be written, such as a function, is there as its `repr`, and the paths of all
        such are listed under `unwritten`: such plays cannot be known again.
        """
        fields = ("environment", "feedback", "experts", *Rules.model_fields)
        unwritten: list[str] = []
        data = {name: _plain(getattr(self, name), (name,), unwritten) for name in fields}
        data["optimizer"] = _plain(self._called(optimizer), ("optimizer",), unwritten)
        played = [*(getattr(self, name) for name in fields), self._called(optimizer)]
        if read := contents(_files(played)):
            data["contents"] = read
        return data | ({"unwritten": unwritten} if unwritten else {})

    def identity(self) -> str:
        """Return twelve digits that stay the same while the scenario does.

        They stand for all that its plays share: the environment, the channel of its rewards, the
        experts and the rules, but for swept fields and what cannot be written. So optimizers,
        values of the sweep, replications, seed, title and record may change.
        """
        data = self.fingerprint(next(iter(self.optimizers)))
        swept = {path for setting in self.sweep.samples() for path in setting} if self.sweep else ()
        left_out = ("optimizer", "unwritten", *swept, *data.get("unwritten", ()))
        text = json.dumps(without(data, left_out), sort_keys=True, ensure_ascii=False)
        return blake2b(text.encode(), digest_size=6).hexdigest()

    @classmethod
    def from_fingerprint(
        cls, fingerprint: Mapping[str, Any], *, seed: int, name: str, allow_import: bool = False
    ) -> Self:
        """Make the scenario of a play again, its optimizer called *name*."""
        if unwritten := fingerprint.get("unwritten"):
            raise ScenarioError(f"{', '.join(unwritten)}: could not be written, so not read again")
        left_out = ("optimizer", "contents")
        data = {key: value for key, value in fingerprint.items() if key not in left_out}
        data |= {"optimizers": {name: fingerprint["optimizer"]}, "seed": seed}
        return cls._validated(data, context={"allow_import": allow_import, "played": True})

    def without(self, expert: str, *, optimizer: str) -> Scenario:
        """Return this scenario with one *optimizer* alone, and without an *expert*.

        All others meet the same chance as with it. A sweep is left out: see `settings`.

        Raises:
            ScenarioError: There is no such expert or optimizer, or something needs the expert.
        """
        if expert not in self.experts:
            raise ScenarioError(
                f"no expert of this scenario is called {expert!r}: "
                f"{did_you_mean(expert, self.experts)}"
            )
        left_out = {"sweep", DEFAULTS}  # The optimizer has taken its defaults.
        fields = {name: getattr(self, name) for name in self.model_fields_set - left_out}
        fields["experts"] = {name: e for name, e in self.experts.items() if name != expert}
        fields["optimizers"] = {optimizer: self._called(optimizer)}
        # Whoever asks experts may be left with none: that is what is to be seen.
        return self._validated(fields, context={"played": True})

    @classmethod
    def _validated(cls, data: Mapping[str, Any], *, context: Mapping[str, Any]) -> Self:
        try:
            return cls.model_validate(data, context=dict(context))
        except ValidationError as error:
            told = [f"{dotted([str(k) for k in e['loc']])}: {e['msg']}" for e in error.errors()]
            raise ScenarioError(*told) from error

    def _parts_with_data(self) -> Iterator[tuple[Keys, Environment | Expert]]:
        """Yield all that may read data, each with the keys of the field that names its files."""
        parts: dict[Keys, Environment | Expert] = {("environment",): self.environment}
        parts |= {("experts", name): each.expert for name, each in self.experts.items()}
        for keys, part in parts.items():
            named = [field for field in FILE_FIELDS if field in type(part).model_fields]
            yield (*keys, *named[:1]), part

    def _called(self, optimizer: str) -> Optimizer:
        if optimizer not in self.optimizers:
            raise ScenarioError(
                f"no optimizer of this scenario is called {optimizer!r}: "
                f"{did_you_mean(optimizer, self.optimizers)}"
            )
        return self.optimizers[optimizer]

    def _set(self, setting: Mapping[str, Any]) -> Scenario:
        """Give the scenario with a *setting* in place of the sweep."""
        try:
            changed = _changed(self, _tree(setting), (), self._permission)
        except ValidationError as error:
            raise ScenarioError(
                *(f"sweep: {path}: {text}" for path, _, text in _blamed(error, setting))
            ) from error
        assert isinstance(changed, Scenario)
        return changed

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        for name in self.experts:
            if name in (REWARD, AGENT_NAME) or ">" in name:
                reason = f"no expert may be called so, as {REWARD!r} or {AGENT_NAME!r}, nor with >"
                raise _refusal(f"{reason}; rename it", "experts", name, given=name)
        try:
            policies = {name: each.channel.policy for name, each in self.experts.items()}
            check_fallbacks({REWARD: self.feedback.policy, **policies})
        except PluginError as error:
            raise _refusal(str(error), "experts") from error
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _swept_defaults_reach(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Refuse to sweep a field within a default that an optimizer has merged into its own."""
        scenario = handler(given)
        own = named(given.get("optimizers")) if isinstance(given, Mapping) else None
        if not isinstance(own, Mapping):
            return scenario
        for path in {path: None for setting in scenario.sweep.samples() for path in setting}:
            keys = undotted(path)
            for name, table in own.items() if keys[0] == DEFAULTS and keys[2:] else ():
                field = entry(table, keys[1]) if isinstance(table, Mapping) else ABSENT
                default = scenario.optimizer_defaults.get(keys[1])
                if isinstance(field, Mapping) and merged(default, field) != field:
                    reason = (
                        f"does not reach the optimizer {name!r}, which has a part of {keys[1]!r} "
                        f"itself: sweep {dotted(('optimizers', name, *keys[1:]))} beside it, by "
                        f"way = 'zip', or leave {keys[1]!r} to the defaults"
                    )
                    raise _refusal(reason, "sweep", path)
        return scenario

    @model_validator(mode="after")
    def _defaults_fit(self, info: ValidationInfo) -> Self:
        # What is wrong in the first place may have been the only optimizer with such a field.
        if (info.context or {}).get("again", False):
            return self
        known = {field for each in self.optimizers.values() for field in type(each).model_fields}
        for name in self.optimizer_defaults.keys() - known:
            reason = f"no optimizer of this scenario has such a field; {did_you_mean(name, known)}"
            raise _refusal(reason, DEFAULTS, name)
        return self

    @model_validator(mode="after")
    def _experts_fit(self) -> Self:
        # With a sweep, which may change names, each of its settings is looked at instead.
        for name, optimizer in self.optimizers.items() if not self.sweep else ():
            try:
                optimizer.check_experts(self.experts)
            except PluginError as error:
                raise _refusal(str(error), "optimizers", name) from error
        for name, engaged in self.experts.items() if not self.sweep else ():
            try:
                engaged.expert.check_experts(self.experts)
            except PluginError as error:
                raise _refusal(str(error), "experts", name) from error
        return self

    @model_validator(mode="after")
    def _makes_sense(self, info: ValidationInfo) -> Self:
        # What has been played is not judged again; of a sweep, each setting is looked at instead.
        if self.sweep or (info.context or {}).get("played", False):
            return self
        details = [
            InitErrorDetails(
                type=PydanticCustomError("scenario", "{reason}", {"reason": reason}),
                loc=keys,
                input=None,
            )
            for keys, reason in nonsense(self)
        ]
        if details:
            raise _refusals(details)
        return self

    @model_validator(mode="after")
    def _sweep_fits(self, info: ValidationInfo) -> Self:
        self._permission = _Permission(bool((info.context or {}).get("allow_import", False)))
        # What is wrong in the first place has been taken out, and others may miss it.
        again = (info.context or {}).get("again", False)
        details: dict[tuple[str, str], InitErrorDetails] = {}
        for setting in self.sweep.samples() if self.sweep else ():
            try:
                _changed(self, _tree(setting), (), self._permission)
            except ValidationError as error:
                for path, value, text in _blamed(error, setting, elsewhere=not again):
                    reason = PydanticCustomError("sweep", "{reason}", {"reason": text})
                    details.setdefault(
                        (path, text),
                        InitErrorDetails(type=reason, loc=("sweep", path), input=value),
                    )
        if details:
            raise _refusals(list(details.values()))
        return self


def _refused(part: Environment | Expert, until: float) -> str:
    """Explain why a plug-in cannot be played until then, if it cannot."""
    try:
        part.check_play(until)
    except SparqError as error:
        return str(error)
    except Exception as error:
        return f"{type(part).__name__}.check_play raised {type(error).__name__}: {error}"
    return ""


# Settings of a sweep


class _Value:
    """A leaf of the changes to make."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _tree(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Turn values by path into tables within tables."""
    tree: dict[str, Any] = {}
    for path, value in setting.items():
        *outer, last = undotted(path)
        inner = tree
        for key in outer:
            inner = inner.setdefault(key, {})
            if isinstance(inner, _Value):
                raise _refusal("is swept, and so is a field around it", *undotted(path))
        if last in inner:
            raise _refusal("is swept, and so is a field within it", *undotted(path))
        inner[last] = _Value(value)
    return tree


def _whole(
    setting: Mapping[str, Any], scenario: Scenario, paths: Collection[str]
) -> dict[str, object]:
    """Return a *setting* with the values that its *scenario* has at the other *paths*."""
    if setting.keys() >= set(paths):
        return dict(setting)
    written = scenario.resolved()
    return {
        path: setting[path] if path in setting else _as_swept(scenario, path, _at(written, path))
        for path in paths
    }


def _at(written: Mapping[str, Any], path: str) -> Any:
    """Return what is at a path of a *written* scenario; `UNSET` where nothing is."""
    value = at_path(written, path)
    return UNSET if value is ABSENT or value is None else value


def _as_swept(scenario: Scenario, path: str, value: Any) -> object:
    """Return a written value as a sweep would have it: as a number where that means the same."""
    numbers = (
        [each for each in value.values() if is_number(each)] if isinstance(value, dict) else []
    )
    for number in numbers:
        try:
            changed = scenario._set({path: number})
        except ScenarioError:
            continue
        if _at(changed.resolved(), path) == value:
            return number
    return value


def _changed(
    thing: Any, changes: Mapping[str, Any], at: tuple[str, ...], permission: _Permission
) -> Any:
    """Give *thing*, which is at a path, with the *changes* made, all at once."""

    def new_of(old: Any, change: Any, *keys: str) -> Any:
        if isinstance(change, _Value):
            return change.value
        return _changed(old, change, (*at, *keys), permission)

    if isinstance(thing, Engaged):
        own = {key: change for key, change in changes.items() if key != "channel"}
        road = {key: change for key, change in changes.items() if key == "channel"}
        expert = new_of(thing.expert, own) if own else thing.expert
        channel = new_of(thing.channel, road["channel"], "channel") if road else thing.channel
        return (
            {"expert": expert, "channel": channel}
            if isinstance(expert, Expert)
            else {
                **expert,
                "channel": channel,
            }
        )
    parts = _parts_of(thing)
    for key in changes:
        if key not in parts and at != (DEFAULTS,):  # Any field may get a default.
            raise _refusal(_missed(thing, key, at), *at, key)
    new = {key: new_of(parts.get(key), change, key) for key, change in changes.items()}
    if isinstance(thing, dict):
        return thing | new
    if isinstance(thing, tuple | list):
        return [new.get(str(place), item) for place, item in enumerate(thing)]
    kept = {key: getattr(thing, key) for key in thing.model_fields_set}
    if "kind" in new:  # Another model, which only the field around it can tell.
        return kept | new
    if isinstance(thing, Scenario):
        kept.pop("sweep", None)
    try:
        return type(thing).model_validate(kept | new, context=permission.context)
    except ValidationError as error:
        raise _refusals([_moved(detail, at) for detail in reasons(error)]) from error


def _missed(thing: Any, key: str, at: tuple[str, ...]) -> str:
    """Explain why there is no *key* to sweep in a *thing* at a path."""
    parts = _parts_of(thing)
    hint = did_you_mean(key, parts)
    if at in (("experts",), ("optimizers",)):
        return f"no {at[0][:-1]} is called {key!r}: {hint}"
    if parts or isinstance(thing, dict | BaseModel):
        return f"no field {key!r} in {dotted(at)}; {hint}" if at else f"no such field; {hint}"
    if thing is None:
        return f"{dotted(at)} is not set, so {key!r} in it cannot be swept; set it first"
    return f"{dotted(at)} is a single value; sweep it, without .{key}"


def _parts_of(thing: Any) -> dict[str, Any]:
    """Give what can be changed in a thing: fields, entries or elements."""
    if isinstance(thing, BaseModel):
        fields = {key: getattr(thing, key) for key in type(thing).model_fields}
        if isinstance(thing, Scenario):
            del fields["sweep"]
        return fields | ({} if kind_of(type(thing)) is None else {"kind": None})
    if isinstance(thing, dict):
        return dict(thing)
    if isinstance(thing, tuple | list):
        return {str(place): item for place, item in enumerate(thing)}
    return {}


def _moved(detail: Any, at: tuple[str, ...]) -> InitErrorDetails:
    """Put an error at a path before its own."""
    reason = detail["msg"].removeprefix("Value error, ")
    error = PydanticCustomError("sweep", "{reason}", {"reason": reason})
    keys = [key for key in detail["loc"] if not is_type(key)]
    return InitErrorDetails(type=error, loc=(*at, *keys), input=detail["input"])


def _blamed(
    error: ValidationError, setting: Mapping[str, Any], *, elsewhere: bool = True
) -> Iterator[tuple[str, Any, str]]:
    """Yield the swept paths that an error is about, with their values and the reason.

    What is wrong *elsewhere*, though because of a swept value, is told of such a path too.
    """
    for detail in error.errors():
        keys = tuple(str(key) for key in detail["loc"])
        swept = _about(keys, setting)
        if not swept and keys[:1] == ("optimizers",):
            keys = (DEFAULTS, *keys[2:])
            swept = _about(keys, setting)
        path = max(swept or setting, key=lambda path: len(undotted(path)) if swept else 0)
        own = undotted(path)
        here = keys[: len(own)] == own
        if not (here or elsewhere or detail["type"] == "scenario"):  # As of a path that is none.
            continue
        text = detail["msg"].removeprefix("Value error, ")
        inner = dotted(keys[len(own) :]) if here else ""
        yield path, setting[path], f"{inner}: {text}" if inner else text


def _about(keys: Keys, setting: Mapping[str, Any]) -> list[str]:
    """List the swept paths that *keys* are at, within or around."""
    return [
        path
        for path in setting
        if (own := undotted(path)) == keys[: len(own)] or own[: len(keys)] == keys
    ]


# Writing


def _written(part: BaseModel) -> dict[str, Any]:
    data: dict[str, Any] = _plain(part, (), [])
    return data


def _plain(value: Any, at: tuple[str, ...], unwritten: list[str]) -> Any:
    """Give a value as JSON-able data; what cannot be is noted as *unwritten*."""

    def inner(value: Any, key: object) -> Any:
        return _plain(value, (*at, str(key)), unwritten)

    match value:
        case Engaged():
            return {
                **_plain(value.expert, at, unwritten),
                "channel": inner(value.channel, "channel"),
            }
        case BaseModel():
            kind = kind_to_write(value)
            if kind and (kind.startswith("__main__:") or "<locals>" in kind):
                unwritten.append(dotted((*at, "kind")))
            fields = {
                field.alias or key: inner(getattr(value, key), key)
                for key, field in type(value).model_fields.items()
            }
            return add_kind(fields, kind)
        case Mapping():
            return {str(key): inner(item, key) for key, item in value.items()}
        case tuple() | list():
            return [inner(item, place) for place, item in enumerate(value)]
        case set() | frozenset():
            return sorted((inner(item, "") for item in value), key=repr)
        case np.ndarray() | np.generic():
            return _plain(value.tolist(), at, unwritten)
        case float() if not math.isfinite(value):
            return str(value)  # JSON has no such numbers; a field of numbers reads the word.
        case None | bool() | int() | float() | str():
            return value
        case Path():
            return str(value)
    unwritten.append(dotted(at))
    return repr(value)


def _files(value: Any, key: str = "") -> Iterator[str]:
    """Yield the files that a value names, which is that of the field *key*."""
    match value:
        case BaseModel():
            for name in type(value).model_fields:
                yield from _files(getattr(value, name), name)
        case Mapping():
            for name, item in value.items():
                yield from _files(item, str(name))
        case tuple() | list() | set() | frozenset():
            for item in value:
                yield from _files(item, key)
        case Path():
            yield str(value)
        case str() if key in FILE_FIELDS:
            yield value


# Which fields there are, for hints and for editors


def _known_fields(
    values: Table,
    keys: Sequence[str],
    *,
    model: type[BaseModel] | None = None,
    allow_import: bool = False,
) -> list[str]:
    """List the fields of the table at *keys*, as far as the kinds in *values* tell.

    The values are those of a *model*, or else of a scenario.
    """
    annotation: Any = model or Scenario
    value: Any = values
    fields = _fields(annotation, value, allow_import=allow_import)
    for key in keys:
        value = entry(value, key)
        # Keys of a mapping and places in a list have the type of their like.
        annotation = fields.get(key, annotation)
        fields = _fields(annotation, value, allow_import=allow_import)
    return [*fields, *(() if keys or model else ("extends", WITHOUT))]


def _fields(annotation: Any, value: Any, *, allow_import: bool) -> dict[str, Any]:
    """Give the annotations by field of the model, among those annotated, that *value* is for."""
    kind = value.get("kind") if isinstance(value, dict) else None
    models = [leaf for leaf in _types(annotation) if issubclass(leaf, BaseModel)]
    for model in models:
        if model is Engaged:
            own = _fields(Expert, value, allow_import=allow_import)
            return {**own, "channel": Channel}
        sort = kind_of(model)
        if sort is not None and model is find_family(sort).base:
            try:
                plugin = load(sort, str(kind), allow_import=allow_import)
            except PluginError:
                return {"kind": str}
            own = {key: field.annotation for key, field in plugin.model_fields.items()}
            return {"kind": str, **own}
    tagged = [
        m for m in models if "kind" in m.model_fields and m.model_fields["kind"].default == kind
    ]
    fields = (tagged or models)[0].model_fields if models else {}
    return {key: field.annotation for key, field in fields.items()}


def _types(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for inner in get_args(annotation):
        yield from _types(inner)


def environment(
    kind: str, overrides: Sequence[str] = (), *, allow_import: bool = False
) -> Environment:
    """Make an environment of a *kind*, its fields set by *overrides* as FIELD=VALUE."""
    model = load("environment", kind, allow_import=allow_import)
    given = overridden(overrides)
    try:
        return model.model_validate(given.values)
    except ValidationError as error:
        # What nobody gave is said of the last layer.
        own = Layer(f"environment {kind} (fields are set by --set FIELD=VALUE)", {})
        layers = Layers([*given.layers, own])
        fields = partial(_known_fields, model=model)
        found = Problems(layers, given.values, fields, whole="environment")
        found.add(error, given.values)
        raise ScenarioError(*found.told) from error


def schema() -> dict[str, Any]:
    """Give the JSON Schema of scenario files, with the plug-ins that are installed."""
    loaded = {kind: _loaded(kind) for kind in GROUPS.values()}
    models = {m for found in loaded.values() for m in found.values()} | {Scenario, Channel}
    ordered = sorted(models, key=lambda model: (model.__module__, model.__name__))
    inputs: list[Any] = [(model, "validation") for model in ordered]
    refs, defs = models_json_schema(inputs, ref_template="#/$defs/{model}")
    definitions: dict[str, Any] = _for_editors(defs["$defs"])

    def definition(model: type[BaseModel]) -> dict[str, Any]:
        found: dict[str, Any] = definitions[refs[model, "validation"]["$ref"].rpartition("/")[2]]
        return found

    docs = read_field_docs(Scenario)
    channel = _described(refs[Channel, "validation"], read_field_docs(Engaged).get("channel"))
    choices: dict[str, Any] = {}
    for kind, found in loaded.items():
        more = {"channel": channel} if kind == "expert" else {}
        for name, model in found.items():
            own = definition(model)
            tag = _described({"const": name}, read_summary(model))
            definitions[f"{kind}: {name}"] = own | {
                "properties": add_kind(own.get("properties", {}) | more, tag),
                "required": [*dict.fromkeys(["kind", *own.get("required", [])])],
            }
        choices[kind] = {"oneOf": [{"$ref": f"#/$defs/{kind}: {name}"} for name in found]}
    definitions = _with_installed(definitions, choices)
    whole = definition(Scenario)
    tables = {"type": "object", "additionalProperties": choices["optimizer"], "minProperties": 1}
    kinds = {"type": "array", "items": {"enum": [*loaded["optimizer"]]}, "minItems": 1}
    special: dict[str, dict[str, Any]] = {
        "environment": choices["environment"],
        "experts": {"type": "object", "additionalProperties": choices["expert"]},
        "optimizers": {"anyOf": [tables, kinds]},
        DEFAULTS: {
            "type": "object",
            "properties": _shared(loaded["optimizer"].values(), definition),
            "additionalProperties": False,
        },
        "sweep": {"type": "object"},
    }
    full = whole["properties"] | {n: _described(node, docs.get(n)) for n, node in special.items()}
    extends = "Another scenario file beside this one, or a bundled scenario, taken as the base."
    taken_out = "Paths to take out of what is extended, such as optimizers.uniform."
    rest = {key: value for key, value in whole.items() if key not in ("properties", "required")}
    made = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **rest,
        # Editors complete by these; what a file needs that has nothing to be laid over is below.
        "properties": {name: _partial(node) for name, node in full.items()}
        | {
            "extends": {"type": "string", "description": extends},
            WITHOUT: {"type": "array", "items": {"type": "string"}, "description": taken_out},
        },
        "allOf": _unless_laid_over(full),
    }
    definitions |= {_part(name): _partial(node) for name, node in definitions.items()}
    return made | {"$defs": _used(made, definitions)}


def _unless_laid_over(full: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return schemas that ask for *full* tables where nothing else can give their fields."""
    own = {name: node for name, node in full.items() if name not in ("optimizers", DEFAULTS)}
    with_kinds = {"additionalProperties": {"required": ["kind"]}}
    described = _described(with_kinds, full["optimizers"].get("description"))
    extends, defaults = {"required": ["extends"]}, {"required": [DEFAULTS]}
    return [
        {
            "if": extends,
            "else": {
                "required": ["environment", "optimizers"],
                "properties": own | {"optimizers": described},
            },
        },
        {
            "if": {"anyOf": [extends, defaults]},
            "else": {"properties": {"optimizers": full["optimizers"]}},
        },
    ]


def _partial(node: Any) -> Any:
    """Return the schema of what is laid over a table that a *node* describes.

    No field is required, nor a `kind`, and elements of a list can be given by their places.
    """
    if isinstance(node, list):
        return [_partial(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "array":
        items = _partial(node.get("prefixItems") or [node.get("items", {})])
        by_place = {
            "type": "object",
            "patternProperties": {"^[0-9]+$": {"anyOf": items}},
            "additionalProperties": False,
        }
        return _described({"anyOf": [node, by_place]}, node.get("description"))
    loose: dict[str, Any] = {}
    for key, value in node.items():
        match key:
            case "$ref":
                loose[key] = f"#/$defs/{_part(value.removeprefix('#/$defs/'))}"
            case "oneOf":  # Without its kind, a table may be one of several.
                loose["anyOf"] = _partial(value)
            case "properties":
                loose[key] = {name: _partial(inner) for name, inner in value.items()}
            case "required" | "discriminator" | "minProperties":
                pass
            case _:
                loose[key] = _partial(value)
    return loose


def _part(name: str) -> str:
    """Return the name of the definition of a part of a table."""
    return f"part of {name}"


def _used(node: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the *definitions* that a node refers to, and those that these refer to."""
    found: dict[str, Any] = {}
    waiting = [*_references(node)]
    while waiting:
        if (name := waiting.pop()) not in found:
            found[name] = definitions[name]
            waiting += _references(found[name])
    return dict(sorted(found.items()))


def _references(node: Any) -> Iterator[str]:
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if key == "$ref":
            yield value.removeprefix("#/$defs/")
        elif isinstance(value, dict | list):
            yield from _references(value)


def _described(node: dict[str, Any], text: str | None) -> dict[str, Any]:
    return node | ({"description": text} if text else {})


def _shared(
    models: Iterable[type[BaseModel]], definition: Callable[[type[BaseModel]], dict[str, Any]]
) -> dict[str, Any]:
    """Return the schemas of the fields of several models; one that differs may be any of them."""
    found: dict[str, list[Any]] = {}
    for model in models:
        for name, own in definition(model).get("properties", {}).items():
            if own not in found.setdefault(name, []):
                found[name].append(own)
    return {name: each[0] if len(each) == 1 else _any_of(each) for name, each in found.items()}


def _any_of(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    told = dict.fromkeys(node["description"] for node in nodes if "description" in node)
    return _described({"anyOf": list(nodes)}, " Or: ".join(told))


def _with_installed(node: Any, choices: Mapping[str, Any]) -> Any:
    """Add the installed parts to the bundled ones, wherever one may be chosen."""
    if isinstance(node, list):
        return [_with_installed(item, choices) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _with_installed(value, choices) for key, value in node.items()}
    if "oneOf" in node and node.get("title") in choices:
        node["oneOf"] = [*node["oneOf"], *choices[node["title"]]["oneOf"]]
    return node


def _loaded(kind: AnyKind) -> dict[str, type[BaseModel]]:
    """Load what is installed of a *kind*, but for what is broken and what no schema describes."""
    found: dict[str, type[BaseModel]] = {}
    for name in list_installed(kind):
        try:
            model: type[BaseModel] = load(kind, name)
            model.model_json_schema()
        except (PluginError, PydanticInvalidForJsonSchema):
            continue
        found[name] = model
    return found


def _for_editors(node: Any) -> Any:
    """Say what validators allow beyond the types, and leave out what JSON cannot write."""
    if isinstance(node, list):
        return [_for_editors(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {
        key: _for_editors(value)
        for key, value in node.items()
        if not (isinstance(value, float) and not math.isfinite(value))
    }
    if node.get("title") == "Empirical":  # Its values can come from a file.
        node["properties"] |= {
            "file": {"type": "string", "description": "A CSV file with recorded values."},
            "column": {"type": "string", "description": "The column of the file to read."},
        }
        node["required"] = []
    if node.get("properties", {}).get("kind", {}).keys() & {"const", "enum"}:
        # It has a default for Python; a file names it.
        node["required"] = [*dict.fromkeys(["kind", *node.get("required", [])])]
    return node
