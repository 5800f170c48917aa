"""Parts: what plug-ins and channels are made of, open to classes of users' own.

A field that is annotated as `Annotated[Draw, Open("draw", Constant, Uniform, ...)]` takes every
model that derives from `Draw`, and tables: by their `kind`, read by one of the bundled classes or
by the class that an entry point of the group `sparq_sim.draws` names so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

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

from sparq_sim.errors import PluginError
from sparq_sim.fields import is_number, no_table
from sparq_sim.frames import account
from sparq_sim.models import Part
from sparq_sim.plugins import (
    PartKind,
    check_unclaimed,
    family,
    installed,
    kind_written,
    load,
    name_of,
    with_kind,
)


class Open:
    """Annotates the base of a family of parts, which users may add to.

    Args:
        kind: What they are; it names the group of entry points.
        bundled: The classes that are known without one, each with a field `kind`.
        number: The kind, and its field, that a bare number is read as.
        probe: Returns what is wrong with what a part of a user's own gives, if anything is: it is
            found when a model takes it, not in the middle of a play.
    """

    def __init__(
        self,
        kind: PartKind,
        *bundled: type[Part],
        number: tuple[str, str] | None = None,
        probe: Callable[[Any], str | None] = lambda part: None,
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
        if isinstance(given, family(self.kind).base):
            return self._probed(given)
        if self._number and is_number(given):
            kind, field = self._number
            return handler({"kind": kind, field: given})
        if not isinstance(given, Mapping):
            known = dict.fromkeys([*self.bundled, *installed(self.kind)])
            raise no_table(given, [*known], number=self._number is not None)
        if "kind" not in given:
            raise _refusal("missing; say which kind it is")
        kind, context = str(given["kind"]), info.context or {}
        try:
            if kind in self.bundled:
                if context:  # Of a file, whose author may mean the other.
                    check_unclaimed(self.kind, kind)
                return handler(given)
            model = load(self.kind, kind, allow_import=bool(context.get("allow_import")))
        except PluginError as error:
            raise _refusal(str(error)) from error
        # A class of a user's own need not have a field for its kind.
        own = {key: value for key, value in given.items() if key != "kind"}
        try:
            part = model.model_validate(given if kind in _kinds(model) else own, context=context)
        except ValidationError:
            raise
        except Exception as error:  # A validator of its own, that is broken.
            told = account(error)
            raise _refusal(f"{self.kind} {kind!r} fails on its fields: {told}") from error
        return self._probed(part)

    def _probed(self, part: Part) -> Part:
        """Return a *part*, unless it is a user's own and does not give what it should."""
        if type(part) in self.bundled.values():
            return part
        try:
            wrong = self._probe(part)
        except Exception as error:
            wrong = f"raises {account(error)}"
        if wrong:
            raise PydanticCustomError(
                "part", "{reason}", {"reason": f"{self.kind} {name_of(type(part))!r} {wrong}"}
            )
        return part


def _kinds(model: type[BaseModel]) -> tuple[str, ...]:
    """Return what the field `kind` of a *model* may be; nothing where it has none."""
    field = model.model_fields.get("kind")
    return () if field is None else get_args(field.annotation)


def _refusal(reason: str) -> PydanticCustomError:
    # As pydantic calls an error about the tag of a union: it is then told of the kind.
    return PydanticCustomError("union_tag", "{reason}", {"reason": reason})


def _write(part: Any, handler: SerializerFunctionWrapHandler) -> Any:
    """Write all fields of a part, those of a user's own class too, and its kind."""
    return with_kind(handler(part), kind_written(part))
