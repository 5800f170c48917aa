"""Expert results: what the optional hooks `meters` and `accounts` of an expert return, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isinf
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparq_sim.errors import HookError, LiveOnlyError, escape_surrogates
from sparq_sim.plugin.expert import Accounting, Metered
from sparq_sim.plugin.frames import describe_error

__all__ = ["read_accounts", "read_meters"]


def read_meters(who: str, source: Metered, time: float) -> dict[str, float]:
    """Return the meters of an expert, by name.

    Args:
        who: The expert, as messages name it.
        source: What its `start` returned.
        time: Now, in clock units.

    Raises:
        HookError: Its `meters` raises an error, or returns something wrong.
    """
    given = _call(who, "meters", source.meters, time)
    meters: dict[str, float] = {}
    for name, number in _items(f"{who}: meters", given, "{name: number}"):
        # Numbers of numpy are Real as well.
        if not isinstance(number, Real) or isinf(number):
            raise HookError(
                f"{who}: meters gives {number!r:.80} for {name!r}; expected a finite number, or "
                "NaN where there is none"
            )
        meters[name] = float(number)
    return meters


def read_accounts(
    who: str, source: Accounting, time: float
) -> dict[str, dict[str, NDArray[np.generic]]]:
    """Return the tables that an expert leaves when a play has ended, by name.

    Args:
        who: The expert, as messages name it.
        source: What its `start` returned.
        time: When the play ended, in clock units.

    Returns:
        Tables of columns of equal length: of float64, int64, bool or text.

    Raises:
        HookError: Its `accounts` raises an error, or returns something wrong.
    """
    given = _call(who, "accounts", source.accounts, time)
    return {
        table: _check_table(f"{who}: accounts, table {table!r}", columns)
        for table, columns in _items(f"{who}: accounts", given, "{table: {column: values}}")
    }


def _check_table(where: str, given: object) -> dict[str, NDArray[np.generic]]:
    columns = {
        name: _check_column(f"{where}, column {name!r}", values)
        for name, values in _items(where, given, "{column: values}")
    }
    if not columns:
        raise HookError(f"{where}: gives no columns; leave the table out, or name its columns")
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
        raise HookError(f"{where}: columns must be of equal length, not {lengths}")
    return columns


def _check_column(where: str, given: Any) -> NDArray[np.generic]:
    try:
        column = np.asarray(given)
    except Exception as error:
        raise HookError(
            f"{where}: gives what is no array ({type(error).__name__}: {error}); expected one "
            "value for each row"
        ) from error
    if column.ndim != 1:
        raise HookError(
            f"{where}: gives an array of shape {column.shape}; expected one value for each row: "
            "(rows,)"
        )
    # Types that a file keeps as they are, and copies, which nobody else can change.
    match column.dtype.kind:
        case "b":
            return column.astype(np.bool_)
        case "f":
            return column.astype(np.float64)
        case "i" | "u" if not len(column) or int(column.max()) <= np.iinfo(np.int64).max:
            return column.astype(np.int64)
        case "U":
            return np.array([escape_surrogates(text) for text in column.tolist()], dtype=np.str_)
    raise HookError(
        f"{where}: gives an array of type {column.dtype}; expected numbers, bools or strings"
    )


def _items(where: str, given: object, wanted: str) -> list[tuple[str, Any]]:
    """Return what a mapping with names as keys has."""
    if not isinstance(given, Mapping):
        raise HookError(f"{where}: gives {given!r:.80}; expected {wanted}")
    for name in given:
        if not (isinstance(name, str) and name.isidentifier()):
            raise HookError(
                f"{where}: the name {name!r:.80} is none; use letters, digits and underscores, "
                "as in 'energy_left'"
            )
    return list(given.items())


def _call(who: str, name: str, hook: Callable[[float], object], time: float) -> object:
    try:
        return hook(time)
    except (HookError, LiveOnlyError):
        raise
    except Exception as error:
        raise HookError(f"{who}: {name} raised {describe_error(error)}") from error
