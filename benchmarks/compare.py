"""Comparing: our code beside a peer that does the same work, as a ratio with a goal."""

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

Work = Callable[[], object]


@dataclass(frozen=True)
class Goal:
    """A bound on a ratio of times; made by `at_most` or `at_least`."""

    bound: Literal["at most", "at least"]
    times: float

    def __str__(self) -> str:
        return f"{self.bound} {self.times:g} x"

    def ratio(self, ours: float, peer: float) -> float:
        """Give the ratio that the bound is about."""
        return ours / peer if self.bound == "at most" else peer / ours

    def holds(self, ratio: float) -> bool:
        """Tell whether a *ratio* keeps to it."""
        return ratio <= self.times if self.bound == "at most" else ratio >= self.times


def at_most(times: float) -> Goal:
    """Allow ours to take *times* as long as the peer: the ratio is ours / peer."""
    return Goal("at most", times)


def at_least(times: float) -> Goal:
    """Demand that ours be *times* as fast as the peer: the ratio is peer / ours."""
    return Goal("at least", times)


@dataclass(frozen=True)
class Pair:
    """The same work done twice: by *ours* and by a *peer*, which imports its library itself.

    *units* is how many times a call does what the line is about.
    """

    what: str
    ours: Work
    peer: Work
    goal: Goal
    units: int = 1
    repetitions: int | None = None
    """How often both are timed, if not as often as the others."""


@dataclass(frozen=True)
class Row:
    """What was measured of a pair; times in seconds for one unit, None without the peer."""

    what: str
    ours: float | None
    peer: float | None
    ratio: float | None
    goal: str
    holds: bool | None
    missing: str | None = None
    """The library that the peer needs and that is not installed."""


def compare(pair: Pair, *, repetitions: int) -> Row:
    """Time both in turn, so that a slow moment of the machine meets both; take medians."""
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
        # What takes a hundredth of its peer's time is worth more than one look at it.
        for _ in range(min(9, int(peer_times[-1] / max(ours_times[-1], 1e-9) / 10))):
            ours_times.append(_time(pair.ours))
    ours, peer = (median(times) / pair.units for times in (ours_times, peer_times))
    ratio = pair.goal.ratio(ours, peer)
    return Row(pair.what, ours, peer, ratio, str(pair.goal), pair.goal.holds(ratio))


def _time(work: Work) -> float:
    gc.collect()  # So that neither pays for what the other left behind.
    # CPU time: the machine may have other work to do.
    began = process_time()
    work()
    return process_time() - began


def growth(what: str, work: Callable[[int], object], *, sizes: tuple[int, int], most: float) -> Row:
    """Measure the exponent with which the time of *work* grows between two sizes."""
    small, large = (_time(lambda size=size: work(size)) for size in sizes)  # type: ignore[misc] # bound now
    exponent = log(large / small) / log(sizes[1] / sizes[0])
    return Row(what, large, small, exponent, f"at most t^{most:g}", exponent <= most)


def main(title: str, pairs: Iterable[Pair | Callable[[], Row]], *, repetitions: int = 7) -> None:
    """Compare all *pairs* as the command line says, take rows of other kinds as made, and exit."""
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
        # Into a file as to a screen, a row is a line.
        Console(width=max(100, Console().width)).print(table(title, rows))
    sys.exit(1 if options.check and any(row.holds is False for row in rows) else 0)


def table(title: str, rows: Iterable[Row]) -> Table:
    """Lay *rows* out for a reader."""
    laid = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    laid.add_column("what; peer", no_wrap=True)
    for column in ("ours", "peer", "ratio", "goal", "holds"):
        laid.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        if row.ours is None or row.peer is None or row.ratio is None:
            laid.add_row(f"{row.what}: {row.missing} is not installed", "", "", "", row.goal, "")
        else:
            holds = "[green]yes[/]" if row.holds else "[bold red]no[/]"
            times = duration(row.ours), duration(row.peer)
            laid.add_row(row.what, *times, f"{row.ratio:.3g} x", row.goal, holds)
    return laid


def duration(seconds: float) -> str:
    """Write a time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
