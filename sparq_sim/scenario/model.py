"""Scenarios: all that fixes plays except chance, from a TOML file or in Python.

Long because a scenario is what users make, read and ask in Python: each of its methods is one line
or two on top of a module of this package, and a docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
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

from sparq_sim.errors import ScenarioError, did_you_mean
from sparq_sim.limits import MOST_PLAYERS, MOST_PLAYS
from sparq_sim.plugin.environment import Landscape
from sparq_sim.plugin.optimizer import Optimizer
from sparq_sim.scenario import checks
from sparq_sim.scenario.files import read_scenario
from sparq_sim.scenario.fingerprint import compute_identity, to_data, write_fingerprint
from sparq_sim.scenario.layers import DEFAULTS, name_optimizers
from sparq_sim.scenario.live_table import LiveTable
from sparq_sim.scenario.loading import validate_layers
from sparq_sim.scenario.plugins import EnvironmentTable, ExpertEntry, OptimizerTable, has_flag
from sparq_sim.scenario.settings import find_bad_settings, find_most, list_settings
from sparq_sim.scenario.sweep import Sweep
from sparq_sim.scenario.tables import Keys, join_path
from sparq_sim.scenario.validation import join_details, make_detail
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.rules import Rules

if TYPE_CHECKING:
    from sparq_sim.simulation.play import Played, Watch
    from sparq_sim.simulation.trace import Trace

__all__ = ["Scenario"]


def _refuse_many(given: Any) -> Any:
    if isinstance(given, Mapping | list) and len(given) > MOST_PLAYERS:
        raise ValueError(f"are {len(given):,}; at most {MOST_PLAYERS:,} take part in a scenario")
    return given


def _read_optimizers(given: Any) -> Any:
    """Read a list of kinds as optimizers that are named so."""
    _refuse_many(given)
    if isinstance(given, list) and len({str(kind) for kind in given}) < len(given):
        raise ValueError("an optimizer is named twice; give each a table with a name of its own")
    return name_optimizers(given)


@dataclass(frozen=True, slots=True)
class _Permission:
    """Whether a sweep may name code to import; scenarios are equal with and without it."""

    allow_import: bool = field(default=False, compare=False)


class Scenario(Rules):
    """What is optimised, which optimizers and experts take part, and how often they play.

    Plug-ins are given as models, or as tables with a `kind`, as in a file. A scenario is checked
    when it is made, and does not change afterwards; `settings` returns one for each setting of
    its sweep.
    """

    title: str = ""
    """The title of the study in tables and reports; empty by default."""
    environment: EnvironmentTable
    """The environment, whose reward is optimised: a table with a `kind`."""
    feedback: Channel = Channel()
    """The channel over which the reward of each round arrives."""
    experts: Annotated[dict[str, ExpertEntry], BeforeValidator(_refuse_many)] = Field(
        default_factory=dict
    )
    """The experts that can be asked, by name: each a table with a `kind` and a `channel`."""
    optimizer_defaults: dict[str, Any] = Field(default_factory=dict)
    """Values of fields, for all optimizers that have such a field and do not set it themselves."""
    optimizers: Annotated[
        dict[str, OptimizerTable], Field(min_length=1), BeforeValidator(_read_optimizers)
    ]
    """The optimizers that are compared, on the same random draws: tables with a `kind` by name, or
    a list of kinds."""
    replications: PositiveInt = 1
    """How many times each optimizer plays, each time with other random draws."""
    seed: NonNegativeInt = 0
    """The seed of all random draws: the same seed gives the same plays."""
    record: Literal["rounds", "full"] = "rounds"
    """What a study stores: one row per round (`rounds`), or every reply as well (`full`)."""
    live: LiveTable = LiveTable()
    """How the scenario is played in real time, by `sparq-sim live`."""
    levels: bool = True
    """Whether tables and reports show reference levels: what simple policies would reach."""
    sweep: Sweep = Sweep()
    """Fields that take several values: lists of values by path, such as
    `experts.sensor.channel.loss`, and the `way` to combine them."""
    _permission: _Permission = PrivateAttr(default_factory=_Permission)

    # Making and checking

    @classmethod
    def load(
        cls,
        source: str | Path,
        *,
        overrides: Sequence[str] = (),
        allow_import: bool = False,
        allow_outside: bool = False,
        check_data: bool = False,
    ) -> Self:
        """Load a scenario from a file, or the bundled scenario of a name.

        Args:
            source: The path of a TOML file, or the name of a bundled scenario.
            overrides: Fields to set, each FIELD=VALUE; they win over the file.
            allow_import: Whether the file may name code to import and run, as `module:Class`.
            allow_outside: Whether the file may name files that are not in its own folder.
            check_data: Whether to check the data files that it names, as `Scenario.check_data`; of
                a long sweep, in settings that are spread evenly.

        Raises:
            ScenarioError: The scenario is not valid; all that is wrong is listed, each with its
                file and line.
        """
        layers = read_scenario(source, overrides, allow_outside=allow_outside)
        scenario = validate_layers(cls, layers, allow_import=allow_import)
        if check_data:
            scenario.check_data(
                lambda keys: f"{layers.giver(keys).where(keys)}: ", most=find_most(scenario)
            )
        return scenario

    def check_plays(self, most: int = MOST_PLAYS) -> None:
        """Check how many plays there are, by counting, without making any.

        Args:
            most: How many there may be.

        Raises:
            ScenarioError: There are more; the message has the number.
        """
        checks.check_plays(self, most)

    def check_data(
        self, where: Callable[[Keys], str] = lambda keys: "", *, most: int | None = None
    ) -> None:
        """Check that the data of environments and experts suffice, in every setting.

        Args:
            where: Returns the place of a field, to stand before what is wrong with it; by
                default nothing.
            most: In at most how many settings, spread evenly; by default in all.

        Raises:
            ScenarioError: Data are missing, unreadable or too short: what the `check_play` of
                environments and experts refuses.
        """
        checks.check_data(self._list_settings(most), where)

    @classmethod
    def from_fingerprint(
        cls, fingerprint: Mapping[str, Any], *, seed: int, name: str, allow_import: bool = False
    ) -> Self:
        """Make the scenario of one play from the fingerprint that is stored with it.

        Args:
            fingerprint: What `Scenario.fingerprint` returned.
            seed: The seed of the play.
            name: What the optimizer was called.
            allow_import: Whether the fingerprint may name code to import.

        Returns:
            The scenario, with this optimizer alone.

        Raises:
            ScenarioError: A part of the scenario could not be written, or is no longer valid.
        """
        if unwritten := fingerprint.get("unwritten"):
            raise ScenarioError(f"{', '.join(unwritten)}: could not be written, so not read again")
        left_out = ("optimizer", "contents")
        data = {key: value for key, value in fingerprint.items() if key not in left_out}
        data |= {"optimizers": {name: fingerprint["optimizer"]}, "seed": seed}
        return cls._validate(data, context={"allow_import": allow_import, "played": True})

    # Playing

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
        laws: bool = False,
    ) -> Trace:
        """Play once, in virtual time, and return the trace.

        Args:
            optimizer: The name of an optimizer of this scenario, or another optimizer.
            replication: Which replication, from 0; each has random draws of its own.
            landscape: The started environment of this seed and replication, if there is one
                already; by default it is started anew.
            watch: Called after each round.
            laws: Whether to check that the trace obeys the laws that every play must obey.

        Raises:
            BrokenLawError: With *laws*, the trace breaks one.
        """
        played = self.prepare(optimizer, replication)
        return played.again(landscape=landscape, watch=watch, laws=laws)

    def prepare(self, optimizer: str | Optimizer, replication: int = 0) -> Played:
        """Return all that fixes one play.

        Args:
            optimizer: The name of an optimizer of this scenario, or another optimizer.
            replication: Which replication, from 0.
        """
        from sparq_sim.simulation.play import Played  # Not needed to check a file.

        called = "" if isinstance(optimizer, Optimizer) else optimizer
        return Played(
            optimizer if isinstance(optimizer, Optimizer) else self._get_optimizer(optimizer),
            self.environment,
            self.rules,
            experts={name: (each.expert, each.channel) for name, each in self.experts.items()},
            feedback=self.feedback,
            seed=self.seed,
            replication=replication,
            name=called,
        )

    # Other scenarios made from this one

    def settings(self) -> list[tuple[dict[str, object], Scenario]]:
        """Return each swept setting: the values by path, and the scenario that has them.

        A setting of a list need not name all paths: it gets the scenario's own values of those
        that only others name. Without a sweep there is one setting, with no values.

        Raises:
            ScenarioError: A setting makes no valid scenario.
        """
        return self._list_settings()

    def _list_settings(self, most: int | None = None) -> list[tuple[dict[str, object], Scenario]]:
        if not self.sweep:
            return [({}, self)]
        return list_settings(self, allow_import=self._permission.allow_import, most=most)

    def without(self, expert: str, *, optimizer: str) -> Scenario:
        """Return this scenario with one *optimizer* alone, and without an *expert*.

        All other random draws stay the same. A sweep is left out: see `settings`.

        Args:
            expert: The name of the expert to leave out.
            optimizer: The name of the optimizer to keep.

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
        fields["optimizers"] = {optimizer: self._get_optimizer(optimizer)}
        # Whoever asks experts may be left with none: that is what is to be seen.
        return self._validate(fields, context={"played": True})

    # Writing

    def resolve(self) -> dict[str, object]:
        """Return the scenario as JSON-able data, with all defaults, as a file would have it."""
        return to_data(self)

    def fingerprint(self, optimizer: str) -> dict[str, Any]:
        """Return all that fixes a play of an *optimizer*, except seed and replication, JSON-able.

        Under `contents` are hashes of the files that it names: files are compared by what is in
        them. What cannot be written, such as a function, is there as its `repr`, and its path is
        listed under `unwritten`: plays of such a scenario cannot be recognised later.

        Args:
            optimizer: The name of an optimizer of this scenario.

        Raises:
            ScenarioError: There is no such optimizer.
        """
        return write_fingerprint(self, self._get_optimizer(optimizer))

    def identity(self) -> str:
        """Return twelve digits that stay the same while the scenario does.

        They stand for all that its plays share: the environment, the channel of its rewards, the
        experts and the rules, except swept fields and what cannot be written. So optimizers,
        values of the sweep, replications, seed, title and record may change.
        """
        return compute_identity(self)

    # Within

    def _get_optimizer(self, name: str) -> Optimizer:
        if name not in self.optimizers:
            raise ScenarioError(
                f"no optimizer of this scenario is called {name!r}: "
                f"{did_you_mean(name, self.optimizers)}"
            )
        return self.optimizers[name]

    @classmethod
    def _validate(cls, data: Mapping[str, Any], *, context: Mapping[str, Any]) -> Self:
        try:
            return cls.model_validate(data, context=dict(context))
        except ValidationError as error:
            told = [f"{join_path([str(k) for k in e['loc']])}: {e['msg']}" for e in error.errors()]
            raise ScenarioError(*told) from error

    @model_validator(mode="wrap")
    @classmethod
    def _check(
        cls, given: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        """Refuse what cannot be meant; each check relies on those before it."""
        scenario = handler(given)
        for findings in scenario._find_problems(given, info):
            if details := [make_detail(reason, *keys) for keys, reason in findings]:
                raise join_details(details)
        permission = _Permission(allow_import=has_flag(info, "allow_import"))
        scenario._permission = permission
        # What was wrong at first has been taken out, and others may miss it.
        elsewhere = not has_flag(info, "again")
        bad = find_bad_settings(scenario, allow_import=permission.allow_import, elsewhere=elsewhere)
        if details := list(bad):
            raise join_details(details)
        return scenario

    def _find_problems(
        self, given: Any, info: ValidationInfo
    ) -> Iterator[Iterator[checks.Finding]]:
        """Yield what each check finds."""
        yield checks.find_bad_names(self)
        yield checks.find_unreached_defaults(self, given)
        # What was wrong at first may have been the only optimizer with such a field.
        if not has_flag(info, "again"):
            yield checks.find_unknown_defaults(self)
        # With a sweep, which may change names, each of its settings is checked instead.
        if not self.sweep:
            yield checks.find_missing_experts(self)
            if not has_flag(info, "played"):  # What has been played is not judged again.
                yield checks.find_contradictions(self)
