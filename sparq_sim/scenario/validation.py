"""Validation errors: made for what a scenario finds wrong with itself, and read again."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

__all__ = ["is_union_choice", "join_details", "make_detail", "make_error", "select_details"]


def make_error(reason: str, *keys: str | int, given: object = None) -> ValidationError:
    """Return the error that one value is wrong, for a validator to raise.

    Args:
        reason: What is wrong, with a remedy.
        keys: Where the value is, from the model that is validated.
        given: The value.
    """
    return join_details([make_detail(reason, *keys, given=given)])


def join_details(details: Sequence[InitErrorDetails]) -> ValidationError:
    """Return one error made of several *details*.

    Args:
        details: As pydantic takes them; at least one.
    """
    return ValidationError.from_exception_data("Scenario", list(details))


def make_detail(
    reason: str, *keys: str | int, given: object = None, error_type: str = "scenario"
) -> InitErrorDetails:
    """Return what is wrong with one value, to be listed in an error.

    Args:
        reason: What is wrong, with a remedy.
        keys: Where the value is, from the model that is validated.
        given: The value.
        error_type: `scenario`, or `sweep` for what a swept value leads to.
    """
    error = PydanticCustomError(error_type, "{reason}", {"reason": reason})
    return InitErrorDetails(type=error, loc=keys, input=given)


def select_details(error: ValidationError) -> list[ErrorDetails]:
    """Return the details of an *error*, except those of union choices that were not meant.

    Where a field takes a number or a list, pydantic says of a wrong number that it is no list.

    Args:
        error: What pydantic raised.
    """
    details = error.errors(include_url=False)
    meant = {
        detail["loc"][:place]
        for detail in details
        for place, key in enumerate(detail["loc"])
        if is_union_choice(key) and not _is_of_other_type(detail)
    }
    return [each for each in details if not (_is_of_other_type(each) and each["loc"][:-1] in meant)]


def is_union_choice(key: str | int) -> bool:
    """Return whether a *key* in an error of pydantic names a choice of a union, not a field.

    Args:
        key: A part of the location of an error.
    """
    return (
        re.fullmatch(r"(function-[a-z]+|tuple|list|set|frozenset|dict)\[.*\]", str(key)) is not None
    )


def _is_of_other_type(detail: ErrorDetails) -> bool:
    """Return whether a choice of a union is wrong only because another choice was meant."""
    return detail["type"].endswith("_type") and any(map(is_union_choice, detail["loc"][-1:]))
