"""Fields: types of numbers for models, and checks of a value before pydantic reads it.

Pydantic alone would read "5" and true as the whole numbers 5 and 1, and "yes" as true.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from errno import ENAMETOOLONG
from functools import partial
from glob import has_magic, iglob
from itertools import takewhile
from math import isfinite
from pathlib import Path, PurePath
from typing import Annotated, Any, Self, TypeAlias

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    NonNegativeFloat,
    PositiveFloat,
)
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_before_validator_function

__all__ = [
    "NOT_FINITE",
    "Amount",
    "Command",
    "ModestAmount",
    "ModestPositive",
    "Positive",
    "Probability",
    "Quantity",
    "RunsProgram",
    "ScenarioString",
    "Share",
    "Size",
    "add_checks",
    "is_number",
    "is_whole",
    "table_error",
]

Amount: TypeAlias = Annotated[NonNegativeFloat, Field(allow_inf_nan=False)]
"""A finite number, 0 or more."""
Positive: TypeAlias = Annotated[PositiveFloat, Field(allow_inf_nan=False)]
"""A finite number above 0."""
_LARGEST = 1e50
"""Of what is drawn or added in a play; fourth powers of much larger numbers overflow."""


def _refuse_huge(number: float) -> float:
    if number > _LARGEST:
        raise ValueError(f"{number:g} is too large to compute with; give at most {_LARGEST:g}")
    return number


ModestAmount: TypeAlias = Annotated[Amount, AfterValidator(_refuse_huge)]
"""A number from 0 to 1e50, with which can be computed."""
ModestPositive: TypeAlias = Annotated[Positive, AfterValidator(_refuse_huge)]
"""A number above 0, and at most 1e50, with which can be computed."""
Size: TypeAlias = Annotated[int, Field(ge=1, le=100_000)]
"""A whole number from 1 to 100,000: how many of what is kept in memory."""
Probability: TypeAlias = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1."""
Share: TypeAlias = Annotated[float, Field(gt=0, lt=1)]
"""A number above 0 and below 1."""

NOT_FINITE = ("inf", "-inf", "nan")
"""How numbers that JSON does not have are written in it; a field of numbers reads them."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """What the number in a field is: its unit, and where its default value comes from.

    It stands in the annotation of a field. `sparq-sim show` prints it, and the JSON schema has it:

        receive: Annotated[Positive, Quantity("W", "18.8 mA at 3.3 V", "read in the data sheet")]

    A subclass that has another default declares the field again, with another quantity.
    """

    unit: str
    """The unit, such as "W" or "dBm"; empty for a pure number."""
    source: str = ""
    """Where the default comes from, with the numbers that it was computed from."""
    standing: str = ""
    """How sure that is: where it was read, or "memory"; empty if it was read in the source."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Add what is known to the schema of the field."""
        written = handler(schema)
        told = {"unit": self.unit, "source": self.source, "standing": self.standing}
        return {**written, **{name: text for name, text in told.items() if text}}


def is_number(given: Any) -> bool:
    """Return whether a value is a number; true and false are none.

    Args:
        given: Any value.
    """
    return isinstance(given, int | float) and not isinstance(given, bool)


def is_whole(given: Any) -> bool:
    """Return whether a value is a whole number, of Python or of numpy; true and false are none.

    Args:
        given: Any value.
    """
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


class ScenarioString(str):
    """A string in a scenario file, which knows the folder of that file."""

    __slots__ = ("folder", "homes")
    folder: Path
    """Where the file is."""
    homes: Sequence[Path] | None
    """Folders that files of data must be in; None if they may be anywhere."""

    @classmethod
    def within(cls, folder: Path, text: str, *, homes: Sequence[Path] | None = None) -> Self:
        """Return a string as it stands in a scenario file.

        Args:
            folder: Where the file is.
            text: The string.
            homes: Folders that files of data must be in; by default they may be anywhere.
        """
        made = cls(text)
        made.folder = folder
        made.homes = homes
        return made

    @property
    def path(self) -> str:
        """The file that the text names; a relative path starts from the folder."""
        return str(self.folder / Path(self).expanduser())

    def read_path(self) -> str:
        """Return the file, or the pattern of files, that the text names as data to be read.

        Raises:
            ValueError: It leads out of the folders that it must be in, by its text or by a
                symbolic link.
        """
        try:
            path = self.path
        except RuntimeError as error:  # Of a user in ~USER whom nobody knows.
            raise ValueError(f"cannot be looked for: {error}") from error
        try:
            os.lstat(path)
        except OSError as error:  # What is not there is told by who reads it.
            if error.errno == ENAMETOOLONG:
                raise ValueError("is too long for the name of a file; shorten it") from error
        if self.homes is not None:
            homes = [home.resolve() for home in self.homes]
            for found in _find_real(path):
                if not any(found.is_relative_to(home) for home in homes):
                    raise ValueError(
                        f"leads to {found}, out of the folder of the scenario, {homes[0]}; move "
                        "the file there, name it by --set, or allow this by --allow-outside (in "
                        "Python, by allow_outside=True)"
                    )
        return path

    def __reduce__(self) -> tuple[Callable[..., ScenarioString], tuple[Any, ...]]:
        return partial(ScenarioString.within, homes=self.homes), (self.folder, str(self))


def _find_real(path: str) -> Iterator[Path]:
    """Yield where a path, or pattern of paths, leads to, symbolic links followed."""
    yield Path(os.path.realpath(path))
    if has_magic(path):
        firm = takewhile(lambda part: not has_magic(part), Path(path).parts)
        yield Path(os.path.realpath(Path(*firm)))
        for each in iglob(path, recursive=True):
            yield Path(os.path.realpath(each))


def _resolve_program(given: Any) -> Any:
    """Return a command whose program, if it is a path in a scenario file, starts from there."""
    match given:
        case [ScenarioString() as program, *arguments] if os.sep in program:
            # Absolute, as "./lab" would lose its dot, and be looked for on the PATH.
            return [os.path.abspath(program.path), *arguments]
    return given


class RunsProgram:
    """Marks a field whose value is a program that is run; see `Command`."""


Command: TypeAlias = Annotated[
    tuple[str, ...], Field(min_length=1), BeforeValidator(_resolve_program), RunsProgram()
]
"""A program and its arguments; a relative path in a scenario file starts from its folder.

A scenario with such a field is played only where programs are allowed (`--allow-programs`).
"""


# How a value is checked before pydantic reads it


def _error(reason: str) -> PydanticCustomError:
    return PydanticCustomError("field", "{reason}", {"reason": reason})


def _check_whole(given: Any) -> Any:
    if isinstance(given, bool):
        raise _error("should be a whole number, not true or false")
    if isinstance(given, str | float):
        number = _parse_number(given)
        meant = f"; write {number:.0f}" if number is not None and number.is_integer() else ""
        quotes = " without quotes" if meant and isinstance(given, str) else ""
        raise _error(f"should be a whole number{meant}{quotes}")
    return given


def _check_number(given: Any) -> Any:
    if isinstance(given, bool):
        raise _error("should be a number, not true or false")
    if isinstance(given, str) and given not in NOT_FINITE:
        meant = (
            f"; write {given.strip()} without quotes" if _parse_number(given) is not None else ""
        )
        raise _error(f"should be a number{meant}")
    return given


def _check_truth(given: Any) -> Any:
    if isinstance(given, str):
        raise _error("should be true or false, without quotes")
    if is_number(given):
        raise _error("should be true or false")
    return given


def _parse_number(given: str | float) -> float | None:
    """Return the number that *given* is or holds, if it is a finite one."""
    try:
        number = float(given)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _resolve_path(given: Any) -> Any:
    """Return a path in a scenario file as one from the folder of that file."""
    return given.read_path() if isinstance(given, ScenarioString) else given


def table_error(given: Any, kinds: Sequence[str], *, number: bool = False) -> PydanticCustomError:
    """Return the error for a value that is no table, where one of several kinds is expected.

    Args:
        given: The value.
        kinds: All kinds that there are.
        number: Whether a bare number is read as one of them.
    """
    wanted = "a number, or a table with a kind" if number else "a table with a kind"
    if isinstance(given, str) and given in kinds:
        return _error(f'should be {wanted}: write {{ kind = "{given}" }}')
    return _error(f"should be {wanted}; the kinds are: {', '.join(kinds)}")


@dataclass(frozen=True)
class _TableCheck:
    """Refuses what is no table, where a table has one of several *kinds*."""

    kinds: tuple[str, ...]

    def __call__(self, given: Any) -> Any:
        if isinstance(given, Mapping | BaseModel):
            return given
        raise table_error(given, self.kinds)


# Where these checks are added

_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "int": _check_whole,
    "float": _check_number,
    "bool": _check_truth,
}
_INNER = (
    *("schema", "fields", "choices", "items_schema", "keys_schema", "values_schema"),
    *("lax_schema", "strict_schema", "json_schema", "python_schema", "steps"),
)
"""Under what pydantic keeps the schemas that a schema is made of."""


def add_checks(schema: Any) -> Any:
    """Return a pydantic core schema that also checks numbers, truth values, paths and tables.

    Models within are left alone: they have their checks, or are not ours.

    Args:
        schema: A schema, or a list, tuple or dictionary of schemas; changed in place.
    """
    if isinstance(schema, list | tuple):
        return type(schema)(add_checks(inner) for inner in schema)
    if not isinstance(schema, dict):  # The label of a choice.
        return schema
    match schema:
        case {"type": "function-before", "function": {"function": check}} if _is_own_check(check):
            return schema
        case {"type": "int" | "float" | "bool" as kind}:
            return no_info_before_validator_function(_CHECKS[kind], schema)
        case {"type": "lax-or-strict", "strict_schema": {"python_schema": {"cls": type() as kind}}}:
            if issubclass(kind, PurePath):
                return no_info_before_validator_function(_resolve_path, schema)
    for key in _INNER if isinstance(schema.get("type"), str) else list(schema):
        if key in schema:
            schema[key] = add_checks(schema[key])
    if schema.get("type") == "tagged-union":
        check = _TableCheck(tuple(map(str, schema["choices"])))
        return no_info_before_validator_function(check, schema)
    return schema


def _is_own_check(check: object) -> bool:
    return check in (_check_whole, _check_number, _check_truth, _resolve_path) or isinstance(
        check, _TableCheck
    )
