"""Compare the time of our code with that of a peer that does the same work."""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from math import log
from statistics import median
from time import process_time
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table

__all__ = [
    "Goal",
    "Pair",
    "Row",
    "Work",
    "at_least",
    "at_most",
    "compare",
    "format_duration",
    "growth",
    "main",
]

Work = Callable[[], object]
"""A function whose time is measured; what it returns is ignored."""


@dataclass(frozen=True)
class Goal:
    """A bound on a ratio of times; made by `at_most` or `at_least`."""

    bound: Literal["at most", "at least"]
    """Whether ours may take at most so many times as long, or must be at least so fast."""
    times: float
    """The ratio of times."""

    def __str__(self) -> str:
        return f"{self.bound} {self.times:g} x"

    def ratio(self, ours: float, peer: float) -> float:
        """Return the ratio that the bound applies to.

        Args:
            ours: Our time, in seconds.
            peer: The time of the peer, in seconds.
        """
        return ours / peer if self.bound == "at most" else peer / ours

    def holds(self, ratio: float) -> bool:
        """Return whether a *ratio* meets the goal."""
        return ratio <= self.times if self.bound == "at most" else ratio >= self.times


def at_most(times: float) -> Goal:
    """Return the goal that ours takes at most *times* as long as the peer (ratio ours / peer)."""
    return Goal("at most", times)


def at_least(times: float) -> Goal:
    """Return the goal that ours is at least *times* as fast as the peer (ratio peer / ours)."""
    return Goal("at least", times)


@dataclass(frozen=True)
class Pair:
    """The same work, done by us and by a peer."""

    what: str
    """What is compared, and with which peer: the label of the row."""
    ours: Work
    """Our code."""
    peer: Work
    """The code of the peer, which imports its library itself."""
    goal: Goal
    """The ratio that is wanted."""
    units: int = 1
    """How many units of work one call does; times are given for one unit."""
    repetitions: int | None = None
    """How often both are timed; by default as often as the other pairs."""


@dataclass(frozen=True)
class Row:
    """What was measured of a pair; None where the peer's library is not installed."""

    what: str
    """The label of the row."""
    ours: float | None
    """Our time, in seconds for one unit."""
    peer: float | None
    """The time of the peer, in seconds for one unit."""
    ratio: float | None
    """The ratio that the goal applies to."""
    goal: str
    """The goal, in words."""
    holds: bool | None
    """Whether the goal is met."""
    missing: str | None = None
    """The library that the peer needs and that is not installed."""


def compare(pair: Pair, *, repetitions: int) -> Row:
    """Time both sides of a pair in turn, and compare their medians.

    They take turns so that a slow moment of the machine affects both.

    Args:
        pair: What to time.
        repetitions: How often each side is timed.

    Returns:
        The times and the ratio.
    """
    try:
        pair.peer()
    except ModuleNotFoundError as error:
        return Row(pair.what, None, None, None, str(pair.goal), None, missing=error.name)
    pair.ours()
    ours_times: list[float] = []
    peer_times: list[float] = []
    for _ in range(repetitions):
        ours_times.append(_time(pair.ours))
        peer_times.append(_time(pair.peer))
        # What is much faster than its peer can be timed more often.
        for _ in range(min(9, int(peer_times[-1] / max(ours_times[-1], 1e-9) / 10))):
            ours_times.append(_time(pair.ours))
    ours, peer = (median(times) / pair.units for times in (ours_times, peer_times))
    ratio = pair.goal.ratio(ours, peer)
    return Row(pair.what, ours, peer, ratio, str(pair.goal), pair.goal.holds(ratio))


def _time(work: Work) -> float:
    gc.collect()  # So that neither side collects the garbage of the other.
    # CPU time, because the machine may have other work to do.
    began = process_time()
    work()
    return process_time() - began


def growth(
    what: str,
    work: Callable[[int], object],
    *,
    sizes: tuple[int, int],
    most: float,
    repetitions: int = 1,
) -> Row:
    """Measure the exponent with which a time grows with the size of the work.

    Args:
        what: The label of the row.
        work: Does the work of a given size.
        sizes: A small and a large size.
        most: The largest exponent that is allowed.
        repetitions: How often each size is timed; the shortest time counts.

    Returns:
        The two times, and the exponent as their ratio.
    """
    small, large = (
        min(_time(lambda size=size: work(size)) for _ in range(repetitions))  # type: ignore[misc] # bound now
        for size in sizes
    )
    exponent = log(large / small) / log(sizes[1] / sizes[0])
    return Row(what, large, small, exponent, f"at most t^{most:g}", exponent <= most)


def main(title: str, pairs: Iterable[Pair | Callable[[], Row]], *, repetitions: int = 7) -> None:
    """Run a benchmark as the command line says, print its rows, and exit.

    Args:
        title: The title of the table.
        pairs: The pairs to compare, and functions that return rows of other kinds.
        repetitions: How often each side of a pair is timed, unless the pair says otherwise.

    Raises:
        SystemExit: Always; with status 1 if `--check` is given and a goal is missed.
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a goal is missed")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    options = parser.parse_args()
    rows = [
        compare(pair, repetitions=pair.repetitions or repetitions)
        if isinstance(pair, Pair)
        else pair()
        for pair in pairs
    ]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        # Wide enough that a row is one line, also in a file.
        Console(width=max(100, Console().width)).print(_build_table(title, rows))
    sys.exit(1 if options.check and any(row.holds is False for row in rows) else 0)


def _build_table(title: str, rows: Iterable[Row]) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("what; peer", no_wrap=True)
    for column in ("ours", "peer", "ratio", "goal", "holds"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        if row.ours is None or row.peer is None or row.ratio is None:
            table.add_row(f"{row.what}: {row.missing} is not installed", "", "", "", row.goal, "")
        else:
            holds = "[green]yes[/]" if row.holds else "[bold red]no[/]"
            times = format_duration(row.ours), format_duration(row.peer)
            table.add_row(row.what, *times, f"{row.ratio:.3g} x", row.goal, holds)
    return table


def format_duration(seconds: float) -> str:
    """Return a time as text, in the unit that suits it.

    Args:
        seconds: The time, in seconds.
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
