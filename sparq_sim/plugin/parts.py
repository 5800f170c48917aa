"""Parts: what plug-ins and channels are made of; users may add classes of their own.

A field of type `Annotated[Draw, PartChoice("draw", Constant, Uniform, ...)]` takes every model that
derives from `Draw`, and every table with a `kind`: the name of one of these classes, or of one that
an entry point of the group `sparq_sim.draws` names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, isfinite
from typing import Any, get_args

import numpy as np
from pydantic import (
    BaseModel,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
)
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import (
    any_schema,
    tagged_union_schema,
    with_info_wrap_validator_function,
    wrap_serializer_function_ser_schema,
)

from sparq_sim.arrays import Values
from sparq_sim.errors import HookError, PluginError
from sparq_sim.fields import is_number, table_error
from sparq_sim.plugin.exits import refuse_exits
from sparq_sim.plugin.frames import describe_error
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.registry import (
    PartKind,
    add_kind,
    check_unclaimed,
    find_family,
    kind_of,
    kind_to_write,
    list_installed,
    load,
    name_of,
)

__all__ = ["PartChoice", "check_number", "check_numbers", "result_error"]


class PartChoice:
    """An annotation by which a field reads and writes a part: a model, or a table with a `kind`.

    Args:
        kind: What sort of part it is; it names the group of entry points.
        bundled: The classes that are known without an entry point, each with a field `kind`.
        number: The kind that a bare number is read as, and the field that takes the number.
        probe: Calls a part of a user's own once, so that a wrong result is found when a model
            takes the part, not in the middle of a play.
    """

    def __init__(
        self,
        kind: PartKind,
        *bundled: type[Model],
        number: tuple[str, str] | None = None,
        probe: Callable[[Any], object] = lambda part: None,
    ) -> None:
        self.kind = kind
        self.bundled = {name: model for model in bundled for name in _kinds(model)}
        self._number = number
        self._probe = probe

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        choices = {name: handler.generate_schema(model) for name, model in self.bundled.items()}
        return with_info_wrap_validator_function(
            self._read,
            tagged_union_schema(choices, "kind"),
            serialization=wrap_serializer_function_ser_schema(_write, schema=any_schema()),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        table = {"title": self.kind, **handler(schema)}
        return {"anyOf": [{"type": "number"}, table]} if self._number else table

    def _read(self, given: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        if isinstance(given, find_family(self.kind).base):
            return self._check_part(given)
        if self._number and is_number(given):
            kind, field = self._number
            return handler({"kind": kind, field: given})
        if not isinstance(given, Mapping):
            known = dict.fromkeys([*self.bundled, *list_installed(self.kind)])
            raise table_error(given, [*known], number=self._number is not None)
        if "kind" not in given:
            raise _kind_error("missing; say which kind it is")
        kind, context = str(given["kind"]), info.context or {}
        try:
            if kind in self.bundled:
                if context:  # Of a file, whose author may mean the other.
                    check_unclaimed(self.kind, kind)
                return handler(given)
            model = load(self.kind, kind, allow_import=bool(context.get("allow_import")))
        except PluginError as error:
            raise _kind_error(str(error)) from error
        # A class of a user's own need not have a field for its kind.
        own = {key: value for key, value in given.items() if key != "kind"}
        try:
            with refuse_exits():
                part = model.model_validate(
                    given if kind in _kinds(model) else own, context=context
                )
        except ValidationError:
            raise
        except Exception as error:  # A validator of its own, that is broken.
            reason = f"{self.kind} {kind!r} fails on its fields: {describe_error(error)}"
            raise _kind_error(reason) from error
        return self._check_part(part)

    def _check_part(self, part: Model) -> Model:
        """Return a *part*, after calling it once if it is a user's own."""
        if type(part) in self.bundled.values():
            return part
        try:
            with refuse_exits():
                self._probe(part)
        except Exception as error:
            reason = f"{self.kind} {name_of(type(part))!r} raises {describe_error(error)}"
            reason = str(error) if isinstance(error, HookError) else reason
            raise PydanticCustomError("part", "{reason}", {"reason": reason}) from error
        return part


def _kinds(model: type[BaseModel]) -> tuple[str, ...]:
    """Return what the field `kind` of a *model* may be; nothing where it has none."""
    field = model.model_fields.get("kind")
    return () if field is None else get_args(field.annotation)


def _kind_error(reason: str) -> PydanticCustomError:
    # The type of pydantic's own error about the tag of a union, which is shown as one of `kind`.
    return PydanticCustomError("union_tag", "{reason}", {"reason": reason})


def _write(part: Any, handler: SerializerFunctionWrapHandler) -> Any:
    """Write all fields of a part, those of a user's own class too, and its kind."""
    return add_kind(handler(part), kind_to_write(part))


# Checks of what parts of users' own return


def result_error(part: Model, what: str, given: object, expected: str) -> HookError:
    """Return the error for a part whose method returned something wrong.

    Args:
        part: Whose method it is.
        what: The name of the method or property.
        given: What it returned.
        expected: What it should return, in words.
    """
    shown = repr(given)
    if isinstance(given, np.ndarray):
        shown = f"an array of shape {given.shape} and type {given.dtype}"
    who = f"{kind_of(type(part))} {name_of(type(part))!r}"
    return HookError(f"{who} gives {shown:.80} for {what}; expected {expected}")


def check_number(
    part: Model, what: str, given: object, *, least: float = -inf, most: float = inf
) -> float:
    """Return what a part's method returned, after checking that it is a finite number.

    Args:
        part: Whose method it is.
        what: The name of the method or property.
        given: What it returned.
        least: The least number that is allowed.
        most: The largest number that is allowed.

    Raises:
        HookError: It is no such number.
    """
    found: Any = given
    if isinstance(given, np.ndarray | np.generic) and given.ndim == 0:
        found = given.item()
    if not (is_number(found) and least <= found <= most and isfinite(found)):
        raise result_error(part, what, found, f"a finite number{_bounds(least, most)}")
    return float(found)


def check_numbers(
    part: Model, what: str, given: object, *, count: int, least: float = -inf
) -> Values:
    """Return what a part's method returned, after checking that it is an array of finite numbers.

    Args:
        part: Whose method it is.
        what: The name of the method or property.
        given: What it returned.
        count: How many numbers there should be.
        least: The least number that is allowed.

    Raises:
        HookError: It is no such array.
    """
    expected = f"an array of shape ({count},) of finite numbers{_bounds(least, inf)}"
    if not isinstance(given, np.ndarray) or given.dtype.kind not in "fiu":
        raise result_error(part, what, given, expected)
    if given.shape != (count,):
        raise result_error(part, what, given, expected)
    good = np.isfinite(given) & (given >= least)
    if not good.all():
        raise result_error(part, what, given[int(np.argmin(good))].item(), expected)
    return given


def _bounds(least: float, most: float) -> str:
    if least == -inf:
        return ""
    return f", {least:g} or more" if most == inf else f" from {least:g} to {most:g}"
