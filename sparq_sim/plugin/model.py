"""Model: the frozen, validated base of every plug-in and of the parts that plug-ins are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from sparq_sim.errors import PluginError
from sparq_sim.fields import add_checks
from sparq_sim.plugin.field_docs import DocWithFields, describe_fields
from sparq_sim.plugin.origins import hash_sources
from sparq_sim.plugin.result_checks import ResultChecks, check_results
from sparq_sim.plugin.sources import Source, is_core

__all__ = ["Model"]


class Model(BaseModel):
    """A frozen pydantic model whose fields are the parameters of a plug-in or of a part of one.

    Declare fields in the class, with a sentence below each: `sparq-sim show` prints it, and the
    JSON schema has it. A subclass has no `__init__` and keeps no state: what changes during a play
    belongs to what `start` returns. So a model can be written in a scenario file, compared,
    hashed, pickled, and used in many plays.

    Fields are strict: an `int` takes neither "5" nor true nor 5.0. Unknown fields are refused. A
    relative `pathlib.Path` in a scenario file starts from the folder of that file.

    Raises:
        pydantic.ValidationError: A field is missing, unknown or not of its type.
        PluginError: A subclass has an `__init__`, or a field `kind`, where its name is written.

    Example:
        A bundle of parameters that a plug-in has as a field::

            class Pump(Model):
                rate: Positive = 1.0
                '''Litres in a clock unit.'''
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    _sources: ClassVar[Mapping[str, Source]] = {}
    _result_checks: ClassVar[ResultChecks] = {}
    """How the results of its methods are checked where a class outside this package defines them.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        add_checks(handler.resolve_ref_schema(schema))
        return schema

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe each field by its sentence."""
        written = handler(schema)
        describe_fields(cls, handler.resolve_ref_schema(written))
        return written

    @classmethod
    def __pydantic_init_subclass__(cls, **options: object) -> None:
        """Refuse a class that is more than its fields, and note the source it is loaded from."""
        super().__pydantic_init_subclass__(**options)
        # By name: what is to be seen here is whether somebody has replaced it.
        if getattr(cls, "__init__") is not BaseModel.__init__:  # noqa: B009
            raise PluginError(
                f"{cls.__name__} has an __init__ of its own, but a plug-in is its fields: declare "
                "them in the class, as in `lag: float = 2.0`, and make what changes in start"
            )
        if cls.__doc__:
            # A descriptor is what Python asks for the docstring; its type is not foreseen.
            cls.__doc__ = DocWithFields(cls.__doc__)  # type: ignore[assignment]
        if not is_core(cls):
            _check_kind_field(cls)
            check_results(cls, cls._result_checks)
        cls._sources = hash_sources(cls)


def _check_kind_field(model: type[Model]) -> None:
    """Refuse a plug-in with a field `kind` of its own: what is written there is its name."""
    field = model.model_fields.get("kind")
    if field is None or get_origin(field.annotation) is Literal:
        return
    # What only a plug-in has within it is written without a name, and may have such a field.
    if any(
        base is not Model and is_core(base) for base in model.__mro__ if issubclass(base, Model)
    ):
        raise PluginError(
            f"{model.__name__} has a field `kind` of its own, but under `kind` the name of the "
            "class is written and read: call the field something else, as `sort`"
        )
