"""Promises: what the methods of parts give, looked at in every call where a user wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import FunctionType
from typing import Any, TypeAlias

ResultCheck: TypeAlias = Callable[..., Any]
"""Takes a part, what its method gave, and the arguments of the call.

It returns what is used of that, or raises a HookError.
"""
ResultChecks: TypeAlias = Mapping[str, ResultCheck]
"""By the method or property that each is about."""

_checking: ContextVar[bool] = ContextVar("looked_at", default=True)


def check_results(model: type, promises: ResultChecks) -> None:
    """Have all that methods and properties of a *model* give looked at.

    A method that it inherits is looked at as well: what it gives may depend on new fields.
    """
    for name, promise in promises.items():
        member = next(vars(base)[name] for base in model.__mro__ if name in vars(base))
        if getattr(member, "__isabstractmethod__", False):
            continue
        if isinstance(member, property) and member.fget is not None:
            setattr(model, name, property(_checked_method(model, name, member.fget, promise)))
        elif isinstance(member, FunctionType):
            setattr(model, name, _checked_method(model, name, member, promise))


def _checked_method(
    model: type, name: str, method: Callable[..., Any], promise: ResultCheck
) -> Callable[..., Any]:
    @wraps(method)
    def watched(part: Any, /, *args: Any, **options: Any) -> Any:
        given = method(part, *args, **options)
        # Of another class it is only what that makes its own of, by super().
        looked_at = type(part) is model and _checking.get()
        return promise(part, given, *args, **options) if looked_at else given

    return watched


@contextmanager
def without_result_checks() -> Iterator[None]:
    """Look at nothing in this context: for laws, which find out themselves what is wrong."""
    before = _checking.set(False)
    try:
        yield
    finally:
        _checking.reset(before)
