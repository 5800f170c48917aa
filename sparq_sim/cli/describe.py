"""Describe: the fields of a plug-in as text, with those of the tables within it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import wrap
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sparq_sim.cli.output import find_width
from sparq_sim.errors import SparqError, did_you_mean
from sparq_sim.fields import Quantity
from sparq_sim.plugin.field_docs import read_field_docs, read_own_doc, read_summary
from sparq_sim.plugin.parts import PartChoice

__all__ = ["describe_fields", "describe_itself", "describe_path"]

_WIDTH = 100
"""Columns of a line, where the terminal has as many."""
_STEP = 4
"""By how much what belongs to a field is indented."""

_NO_BREAK = "\N{NO-BREAK SPACE}"


def describe_itself(model: type[BaseModel]) -> list[str]:
    """Return the docstring of a model; its paragraphs are filled, unless they have lines of code.

    Args:
        model: The class of models.
    """
    lines: list[str] = []
    for prose, group in groupby(read_own_doc(model).splitlines(), key=_is_prose):
        together = list(group)
        lines += _wrap(" ".join(together), 0) if prose else together
    return lines


def _is_prose(line: str) -> bool:
    return bool(line) and line[0] not in " -*|>`"


def describe_fields(model: type[BaseModel], indent: int = 2) -> list[str]:
    """Return lines on each field of a model: default, unit, sentence, source, and tables within.

    Args:
        model: The class of models.
        indent: By how many columns the names of fields are indented.
    """
    return list(_describe_fields(model, indent, (model,)))


def describe_path(model: type[BaseModel], path: str) -> list[str]:
    """Return lines on one field of a model, or on one kind of table that it can hold.

    Args:
        model: The class of models.
        path: A field, as "radio"; a kind of it, as "radio.lora-whole-node"; or a field of that.

    Raises:
        SparqError: There is no such field or kind; it says which there are.
    """
    name, _, rest = path.partition(".")
    info = model.model_fields.get(name)
    if info is None:
        raise SparqError(f"no field {name!r}: {did_you_mean(name, [*model.model_fields])}")
    if not rest:
        return list(_describe_field(model, name, 2, (model,)))
    models = _find_models(info)
    if not models:
        raise SparqError(f"{name} has no fields of its own: leave out {rest!r}")
    kinds = {kind: each for each in models if (kind := _kind_of(each))}
    for kind, each in kinds.items():
        if rest == kind:
            return [*describe_itself(each), "", *_describe_kind(each, 2, (model, each), {})]
        if rest.startswith(f"{kind}."):
            return describe_path(each, rest.removeprefix(f"{kind}."))
    if kinds:
        raise SparqError(f"{name} has no kind {rest!r}: {did_you_mean(rest, kinds)}")
    has_it = (each for each in models if rest.partition(".")[0] in each.model_fields)
    return describe_path(next(has_it, models[0]), rest)


def _describe_fields(
    model: type[BaseModel], indent: int, within: Sequence[type[BaseModel]]
) -> Iterator[str]:
    # What must be given comes first; for the rest, the order of the source is the best.
    for name in sorted(model.model_fields, key=lambda name: not _is_required(model, name)):
        yield from _describe_field(model, name, indent, within)


def _is_required(model: type[BaseModel], name: str) -> bool:
    return model.model_fields[name].is_required()


def _describe_field(
    model: type[BaseModel], name: str, indent: int, within: Sequence[type[BaseModel]]
) -> Iterator[str]:
    info = model.model_fields[name]
    # A table may hold others like it.
    models = [each for each in _find_models(info) if each not in within]
    yield from _wrap(f"{name} {_describe_default(info, short=bool(models))}", indent, hang=8)
    inner = indent + _STEP
    yield from _wrap(read_field_docs(model).get(name, ""), inner)
    yield from _wrap(_describe_source(info), inner)
    if len(models) == 1 and not _kind_of(models[0]):
        yield from _describe_fields(models[0], inner, (*within, models[0]))
        return
    known: dict[str, tuple[type[BaseModel], list[str]]] = {}
    for each in models:
        yield from _wrap(_name_table(each), inner)
        yield from _wrap(read_summary(each), inner + _STEP)
        yield from _describe_kind(each, inner + _STEP, (*within, each), known)


def _describe_kind(
    model: type[BaseModel],
    indent: int,
    within: Sequence[type[BaseModel]],
    known: dict[str, tuple[type[BaseModel], list[str]]],
) -> Iterator[str]:
    """Yield lines on the fields of one of several models; those that an earlier has are named only.

    *known* has, for each field, the model where its lines were printed last, and these.
    """
    alike: dict[type[BaseModel], list[str]] = {}
    for name in model.model_fields:
        if name == "kind" and _kind_of(model):
            continue
        lines = list(_describe_field(model, name, indent, within))
        earlier, printed = known.setdefault(name, (model, lines))
        if earlier is not model and printed == lines:
            alike.setdefault(earlier, []).append(name)
        else:
            known[name] = (model, lines)
            yield from lines
    for earlier, names in alike.items():
        yield from _wrap(f"as for {_name_table(earlier)}: {', '.join(names)}", indent, hang=_STEP)


def _name_table(model: type[BaseModel]) -> str:
    """Return by what a table is told from others: its kind, or the fields that it must have."""
    if kind := _kind_of(model):
        return f'kind = "{kind}"'
    needed = [name for name, info in model.model_fields.items() if info.is_required()]
    return f"with {', '.join(needed)}" if needed else model.__name__


def _describe_default(info: FieldInfo, *, short: bool) -> str:
    """Return the default and the unit; *short* leaves out what tables have by default."""
    quantity = _find_quantity(info)
    # Spaces in a unit are no place to break a line.
    unit = f" {quantity.unit.replace(' ', _NO_BREAK)}" if quantity and quantity.unit else ""
    if info.is_required():
        return f"required, in{unit}" if unit else "required"
    default = info.get_default(call_default_factory=True, validated_data={})
    return f"= {_write(default) if short else repr(default)}{unit}"


def _write(default: Any) -> str:
    """Return a default as Python writes it, without fields that have their default."""
    if isinstance(default, BaseModel):
        fields = {
            name: value
            for name, value in default
            if name == "kind" or value != type(default).model_fields[name].default
        }
        given = ", ".join(f"{name}={_write(value)}" for name, value in fields.items())
        return f"{type(default).__name__}({given})"
    if isinstance(default, tuple):
        inner = ", ".join(map(_write, default))
        return f"({inner},)" if len(default) == 1 else f"({inner})"
    return repr(default)


def _describe_source(info: FieldInfo) -> str:
    quantity = _find_quantity(info)
    if quantity is None or not (quantity.source or quantity.standing):
        return ""
    if not quantity.source:
        return f"Source: {quantity.standing}"
    standing = f" ({quantity.standing})" if quantity.standing else ""
    return f"Source: {quantity.source}{standing}"


def _find_quantity(info: FieldInfo) -> Quantity | None:
    return next((each for each in info.metadata if isinstance(each, Quantity)), None)


def _find_models(info: FieldInfo) -> list[type[BaseModel]]:
    """Return the models that a field can hold; not parts, which `show` prints by their names."""
    if any(isinstance(each, PartChoice) for each in info.metadata):
        return []
    return [*dict.fromkeys(_walk(info.annotation))]


def _walk(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is Annotated:
        inner, *beside = get_args(annotation)
        if not any(isinstance(each, PartChoice) for each in beside):
            yield from _walk(inner)
    else:
        for each in get_args(annotation):
            yield from _walk(each)


def _kind_of(model: type[BaseModel]) -> str:
    """Return the `kind` that tells a model from others; empty where it has none, or a choice."""
    info = model.model_fields.get("kind")
    choices = get_args(info.annotation) if info is not None else ()
    return str(choices[0]) if len(choices) == 1 else ""


def _wrap(text: str, indent: int, *, hang: int = 0) -> list[str]:
    lines = wrap(
        text,
        min(_WIDTH, find_width() or _WIDTH),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hang),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]
