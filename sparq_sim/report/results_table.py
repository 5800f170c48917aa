"""The table of results: which columns, rows and words it has, on a terminal as in a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite

from sparq_sim.analysis.cautions import describe_criterion
from sparq_sim.analysis.criteria import REGRET, REWARD
from sparq_sim.analysis.intervals import FEWEST
from sparq_sim.analysis.levels import Level
from sparq_sim.analysis.standings import Standings, label_of
from sparq_sim.analysis.summary import Spread, Summary
from sparq_sim.report.data import REFERENCES, occurring_fates
from sparq_sim.report.phrases import choose_decimals, format_decimals
from sparq_sim.simulation.measures import LOW_ANSWERED
from sparq_sim.study.settings import Setting, list_paths, shorten_paths

__all__ = ["Cell", "Column", "Line", "ResultsTable", "make_results_table", "name_paths"]

_FATES = {
    "late": "answered after the agent stopped waiting",
    "lost": "lost on the way",
    "refused": "refused by an outage, a budget, the access rule or a rate",
    "invalid": "with an answer of no use, or an error",
    "unavailable": "about which the expert had no reading",
    "open": "not answered when the play ended",
}
"""What became of points asked and not answered: fields of a summary, and what they mean."""


@dataclass(frozen=True)
class Cell:
    """What stands in one place of the table."""

    text: str = ""
    """A number or a word; nothing where there is none to show."""
    reach: str = ""
    """Half the width of its interval, or a standard deviation; nothing where none is known."""
    is_impossible: bool = False
    """Whether the number cannot be right."""


@dataclass(frozen=True)
class Column:
    """A column: one quantity, whose name is the same wherever it is shown."""

    heading: str
    """Its name."""
    meaning: str
    """What it is; nothing where its name says it."""
    cell: Callable[[Summary], Cell] = field(repr=False)
    """What it shows of a row."""
    is_expendable: bool = True
    """Whether it may be left out where there is little room."""


@dataclass(frozen=True)
class Line:
    """A line of the table."""

    name: str
    """Of an optimizer, or of what a simple policy would get."""
    setting: Setting
    """Swept values."""
    cells: Mapping[str, Cell]
    """By the headings of the columns."""
    is_level: bool = False
    """Whether it is about a simple policy."""


@dataclass(frozen=True)
class ResultsTable:
    """The whole table."""

    paths: Mapping[str, str]
    """Swept paths, and their headings."""
    columns: Sequence[Column]
    """All that there is something to show in."""
    lines: Sequence[Line]
    """By setting, and in each the best first."""
    remarks: Sequence[str]
    """Sentences that explain the numbers."""


def make_results_table(standings: Standings, levels: Sequence[Level] = ()) -> ResultsTable:
    """Make the table of a study.

    Args:
        standings: Its rows, ranked.
        levels: What simple policies would get, as far as that is known.

    Returns:
        The table. Reference levels stand in their ranks if there is one setting, else below.
    """
    rows = standings.rows
    decimals = choose_decimals(row.judged.mean for row in rows)
    columns = [*_list_columns(standings, decimals)] if rows else []
    lines = [
        (row.loss, Line(row.optimizer, row.setting, {c.heading: c.cell(row) for c in columns}))
        for row in rows
    ]
    below = [*_list_levels(levels, standings, decimals)]
    if len(standings.rankings) == 1:
        lines = sorted([*lines, *below], key=lambda each: each[0])
        below = []
    return ResultsTable(
        paths=name_paths([row.setting for row in rows]),
        columns=columns,
        lines=[line for _, line in (*lines, *below)],
        remarks=[*_remark(standings, levels)],
    )


def name_paths(settings: Sequence[Setting]) -> dict[str, str]:
    """Return headings for the paths that tell rows apart, as columns of a table.

    Args:
        settings: Those of the rows.

    Returns:
        By path; of those with the same values in all rows, only the first.
    """
    kept: dict[str, list[object]] = {}
    for path in sorted(list_paths(settings)):
        values = [setting.get(path) for setting in settings]
        if values not in kept.values():
            kept[path] = values
    return shorten_paths(kept)


def _list_levels(
    levels: Sequence[Level], standings: Standings, decimals: int
) -> Iterator[tuple[float, Line]]:
    """Yield the reference levels, each once, by setting and size."""
    unique: dict[object, Level] = {}
    for setting, level in levels:
        unique.setdefault(level, (setting, level))
    for setting, level in unique.values():
        numbers = {name: getattr(level, name) for name in REFERENCES}
        for name in sorted(numbers, key=lambda name: numbers[name]):
            std = getattr(level, f"{name}_std")
            cell = Cell(
                format_decimals(numbers[name], decimals),
                format_decimals(std, decimals) if std > 0 else "",
            )
            where = setting if len(unique) > 1 else {}
            heading = standings.criterion.heading
            yield numbers[name], Line(REFERENCES[name], where, {heading: cell}, is_level=True)


def _list_columns(standings: Standings, decimals: int) -> Iterator[Column]:
    """Yield the columns in their order; most are shown only where they are not all 0."""
    rows, criterion = standings.rows, standings.criterion

    def some(name: str) -> bool:
        return any(getattr(row, name) > 0 for row in rows)

    def plain(name: str, digits: int) -> Callable[[Summary], Cell]:
        return lambda row: _write(getattr(row, name), digits)

    def share(name: str) -> Callable[[Summary], Cell]:
        return lambda row: _write_share(getattr(row, name))

    def count(row: Summary) -> Cell:
        planned = standings.planned.get(label_of(row), row.plays)
        return Cell(f"{row.plays} of {planned}" if planned > row.plays else f"{row.plays}")

    yield Column("plays", "finished, of those planned", count)
    yield Column(
        criterion.heading,
        "" if criterion.is_regret else _MEANINGS[criterion.name],
        lambda row: _write_spread(row.judged, decimals, is_impossible=bool(row.impossible)),
        is_expendable=False,
    )
    if any(each.rivals for each in standings.rankings):
        yield Column(
            "verdict",
            "beside the best of the setting, in pairs: unclear is what may be chance",
            lambda row: Cell(standings.judge(row)),
            is_expendable=False,
        )
    if any(row.judged.count > 1 for row in rows):
        yield Column("least … most", "of the plays", lambda row: _write_ends(row.judged, decimals))
    if criterion.is_regret and some("stuck"):
        meaning = "share of the plays with over 5 times the median regret in the last quarter"
        yield Column("stuck", meaning, share("stuck"), is_expendable=False)
    if criterion.name == "regret_to_best_seen":
        digits = choose_decimals(row.mean_reward.mean for row in rows)
        yield Column(
            REWARD.heading,
            _MEANINGS[REWARD.name],
            lambda row: _write_spread(row.mean_reward, digits),
            is_expendable=False,
        )
    if not criterion.is_regret and some("unobserved"):
        meaning = "share of the rounds without an observed reward"
        yield Column("unobserved", meaning, share("unobserved"), is_expendable=False)
    if any(row.ended_early for row in rows):
        meaning = "rounds played, per play: some plays ended early"
        yield Column("rounds", meaning, plain("rounds", 1), is_expendable=False)
    if some("idle"):
        meaning = "share of the rounds without a move"
        yield Column("idle", meaning, share("idle"), is_expendable=False)
    if criterion.is_regret:
        meaning = "a in r_t ~ t^(a-1), how regret falls in the end; at 1, not at all"
        yield Column("exponent", meaning, lambda row: _write_spread(row.exponent, 2))
    if some("asked_per_round"):
        yield Column("asked", "points asked of experts per round", plain("asked_per_round", 1))
        yield from _list_fates(standings)
    if some("retries_per_round"):
        yield Column("retries", "points asked again per round", plain("retries_per_round", 1))
    if some("pushed_per_round"):
        meaning = "readings per round that experts sent without being asked"
        yield Column("pushed", meaning, plain("pushed_per_round", 1))
    if some("staleness"):
        meaning = "age of experts' answers on arrival, in clock units"
        yield Column("staleness", meaning, plain("staleness", 2))
    if any(row.spent.mean > 0 for row in rows):
        yield Column(
            "spent", "cost of the queries, per play", lambda row: _write(row.spent.mean, 2)
        )
    yield Column("wall", "seconds the agent computed, per play", plain("wall", 2))


def _list_fates(standings: Standings) -> Iterator[Column]:
    """Yield what became of the points asked; nothing where all were answered."""
    rows = standings.rows
    if all(not row.answered < 1 for row in rows):
        return
    low = any(row.answered < LOW_ANSWERED for row in rows)
    meaning = "share of the points asked"
    yield Column("answered", meaning, lambda row: _write_share(row.answered), is_expendable=not low)
    for fate, heading in occurring_fates(rows).items():
        if fate in _FATES:
            yield Column(heading, f"{meaning} {_FATES[fate]}", _share_of(fate))


def _share_of(fate: str) -> Callable[[Summary], Cell]:
    return lambda row: _write_share(getattr(row, fate))


_MEANINGS = {
    REWARD.name: "over the rounds with an observed reward; more is better",
    "regret_to_best_seen": "highest reward observed in the same play, minus the mean reward",
}
"""What the table compares by, where that is not regret."""


def _remark(standings: Standings, levels: Sequence[Level]) -> Iterator[str]:
    rows = standings.rows
    if not rows:
        return
    counts = [row.judged.count for row in rows]
    if max(counts) >= FEWEST:
        some = f", of {FEWEST} plays or more" if min(counts) < FEWEST else ""
        yield f"Numbers are means over the plays, ± half the width of their 95 % interval{some}."
    else:
        yield f"Numbers are means over the plays: too few, below {FEWEST}, for an interval."
    if sentence := describe_criterion(standings.criterion):
        yield sentence
    if any(row.impossible for row in rows):
        yield "Marked with ! is regret below 0, which is impossible: see the notes."
    if levels and standings.criterion == REGRET:
        worlds = max(level.worlds for _, level in levels)
        told = f": means ± standard deviation over {worlds} worlds" if worlds > 1 else ""
        yield f"Rows without plays show what simple policies would get, for comparison{told}."


def _write(number: float, decimals: int) -> Cell:
    return Cell(format_decimals(number, decimals) if isfinite(number) else "")


def _write_share(number: float) -> Cell:
    return Cell(f"{100 * number:.0f} %" if isfinite(number) else "")


def _write_ends(spread: Spread, decimals: int) -> Cell:
    if not spread.count:
        return Cell()
    least, most = (format_decimals(end, decimals) for end in (spread.least, spread.most))
    return Cell(f"{least} … {most}")


def _write_spread(spread: Spread, decimals: int, *, is_impossible: bool = False) -> Cell:
    if not spread.count:
        return Cell("none")
    reach = (spread.high - spread.low) / 2 if spread.count >= FEWEST else inf
    return Cell(
        format_decimals(spread.mean, decimals),
        format_decimals(reach, decimals) if isfinite(reach) else "",
        is_impossible,
    )
