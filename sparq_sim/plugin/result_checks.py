"""Result checks: what a user's own part returns is checked in every call of its methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import FunctionType
from typing import Any, TypeAlias

__all__ = ["ResultCheck", "ResultChecks", "check_results", "without_result_checks"]

ResultCheck: TypeAlias = Callable[..., Any]
"""Takes a part, what its method returned, and the arguments of the call.

It returns what is used in place of that, or raises a HookError.
"""
ResultChecks: TypeAlias = Mapping[str, ResultCheck]
"""Checks by the name of the method or property whose result they check."""

_checking: ContextVar[bool] = ContextVar("checking", default=True)


def check_results(model: type, checks: ResultChecks) -> None:
    """Replace methods and properties of a class by ones whose results are checked.

    Methods that it inherits are checked as well: their results may depend on new fields.

    Args:
        model: The class; changed in place.
        checks: The checks.
    """
    for name, check in checks.items():
        member = next(vars(base)[name] for base in model.__mro__ if name in vars(base))
        if getattr(member, "__isabstractmethod__", False):
            continue
        if isinstance(member, property) and member.fget is not None:
            setattr(model, name, property(_checked_method(model, member.fget, check)))
        elif isinstance(member, FunctionType):
            setattr(model, name, _checked_method(model, member, check))


def _checked_method(
    model: type, method: Callable[..., Any], check: ResultCheck
) -> Callable[..., Any]:
    @wraps(method)
    def checked(part: Any, /, *args: Any, **options: Any) -> Any:
        given = method(part, *args, **options)
        # A subclass calls it by super(), and has a check of its own result.
        is_checked = type(part) is model and _checking.get()
        return check(part, given, *args, **options) if is_checked else given

    return checked


@contextmanager
def without_result_checks() -> Iterator[None]:
    """Check no results in this context: for laws, which look at them themselves.

    Yields:
        Nothing.
    """
    before = _checking.set(False)
    try:
        yield
    finally:
        _checking.reset(before)
