"""Phrases: numbers, names and counts as sentences have them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, inf, isfinite, log10

from sparq_sim.analysis.intervals import Ranges

__all__ = [
    "add_unit",
    "choose_decimals",
    "count_all",
    "count_things",
    "describe_ranges",
    "format_decimals",
    "format_number",
    "join_names",
    "quote",
]

_LARGE = 1e6
"""Numbers from here on are written in powers of ten."""


def add_unit(label: str, unit: str) -> str:
    """Return a label with the unit of its numbers behind it, if that has a name.

    Args:
        label: Of an axis, say.
        unit: That of its numbers; empty where it has no name.
    """
    return f"{label} ({unit})" if unit else label


def format_number(value: float, significant: int = 3) -> str:
    """Return a number as text; a dash for one that is unknown.

    Args:
        value: The number.
        significant: How many digits to write.
    """
    if not isfinite(value):
        return "\N{EN DASH}"
    return f"{value:.{significant}g}".replace("-", "\N{MINUS SIGN}")


def choose_decimals(numbers: Iterable[float], significant: int = 3) -> int:
    """Choose how many digits behind the point a column of numbers needs.

    Args:
        numbers: Those of the column.
        significant: How many digits the one nearest to 0 should have.

    Returns:
        From 0 to 6.
    """
    least = min((abs(n) for n in numbers if isfinite(n) and n), default=1.0)
    return min(max(significant - 1 - floor(log10(least)), 0), 6)


def format_decimals(value: float, decimals: int) -> str:
    """Return a number as text, with so many digits behind the point; a dash for an unknown one.

    Args:
        value: The number; from a million on, it is written in powers of ten.
        decimals: How many digits.
    """
    if not isfinite(value):
        return "\N{EN DASH}"
    text = f"{value:.{decimals}f}" if abs(value) < _LARGE else f"{value:.4g}"
    return text.replace("-", "\N{MINUS SIGN}")


def count_things(count: float, thing: str) -> str:
    """Return a number of things, as "1 play" or "2 plays".

    Args:
        count: How many.
        thing: What one of them is called.
    """
    return f"{count:g} {thing}{'' if count == 1 else 's'}"


def count_all(count: int, things: str) -> str:
    """Return all of some things, as "both plays" or "all 3 plays".

    Args:
        count: How many; at least two.
        things: What they are called.
    """
    return f"both {things}" if count == 2 else f"all {count} {things}"


def describe_ranges(ranges: Ranges) -> list[str]:
    """Return each piece of a confidence set of prices in words, as "0.1 to 0.3".

    Args:
        ranges: From 0 on.
    """
    return [
        "any price"
        if (low, high) == (0, inf)
        else f"from {low:.3g}"
        if high == inf
        else f"{low:.3g} to {high:.3g}"
        for low, high in ranges
    ]


def quote(name: str) -> str:
    """Return a name, in quotation marks if it could be taken for words of the sentence.

    Args:
        name: Of an optimizer, say; one with a hyphen or a digit, but no space, stays as it is.
    """
    words = name.isalpha() or any(letter.isspace() for letter in name)
    left, right = "\N{LEFT DOUBLE QUOTATION MARK}", "\N{RIGHT DOUBLE QUOTATION MARK}"
    return f"{left}{name}{right}" if words else name


def join_names(names: Sequence[str], tails: Sequence[str] = ()) -> str:
    """Return names as a list in a sentence: "a, b and c".

    Args:
        names: At least one; those of several words are quoted.
        tails: What stands behind each; nothing by default.
    """
    parts = [
        f"{quote(name)}{tail}" for name, tail in zip(names, tails or [""] * len(names), strict=True)
    ]
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
