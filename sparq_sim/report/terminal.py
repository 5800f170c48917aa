"""Terminal: tables of results, drawn by rich, and sentences about experts.

Long because all tables share how numbers are written and how they fit the width of a screen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from string import ascii_lowercase

from rich import box
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

from sparq_sim.analysis.cautions import describe_criterion
from sparq_sim.analysis.contrasts import Contrast
from sparq_sim.analysis.levels import Level
from sparq_sim.analysis.prices import BreakEven
from sparq_sim.analysis.standings import Standings
from sparq_sim.analysis.summary import Spread, Summary
from sparq_sim.errors import mask_invisible
from sparq_sim.report.phrases import describe_ranges
from sparq_sim.report.results_table import Cell, Line, ResultsTable, make_results_table, name_paths
from sparq_sim.study.settings import format_setting, format_value, list_paths, shorten_paths

__all__ = [
    "contrast_table",
    "expert_in_words",
    "legend",
    "meter_tables",
    "summary_table",
]

_RANKS = {
    "asked": -5,
    "plays": -4,
    "exponent": -3,
    "answered": -2,
    "spent": -1,
    "wall": 1,
    "least … most": 2,
}
"""What a narrow terminal does without later than other columns, below 0, or before them."""
_ROOM = "room"
"""What a narrow terminal does without as well: wide gaps, long names, and prices on one line."""
_LONG = 8
"""A longer name of a column is a letter there."""
_LARGE = 1e6
"""Numbers from here on are written in powers of ten."""
_MARK = " !"
"""Stands behind a number that cannot be right."""


def summary_table(
    title: str,
    standings: Standings,
    reference_levels: Sequence[Level] = (),
    *,
    width: int = 10**6,
) -> Table:
    """Return the table of results of a study.

    Args:
        title: Of the study; none where it is empty.
        standings: Its rows, ranked.
        reference_levels: Settings and what simple policies would get in them.
        width: In characters. What tells rows apart is always shown; other columns where there is
            room for them.
    """
    told = make_results_table(standings, reference_levels)
    expendable = [column.heading for column in told.columns if column.is_expendable]
    dropped = sorted(expendable, key=lambda name: (-_RANKS.get(name, 0), -expendable.index(name)))
    return _fit(lambda without: _table(title, told, without=without), dropped, width=width)


def _fit(make: Callable[[Sequence[str]], Table], optional: Sequence[str], *, width: int) -> Table:
    """Make a table, leaving out as many of its *optional* columns as it takes to fit a width."""
    for omitted in range(len(optional)):
        table = make(optional[:omitted])
        if Console(width=10**6).measure(table).maximum <= width:
            return table
    return make(optional)


def _table(title: str, told: ResultsTable, *, without: Sequence[str]) -> Table:
    table = Table(title=_safe(title) or None, box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("optimizer", no_wrap=True)
    for heading in told.paths.values():
        table.add_column(_safe(heading), justify="right", no_wrap=True)
    columns = [each.heading for each in told.columns if each.heading not in without]
    for heading in columns:
        justify: JustifyMethod = "left" if heading == "verdict" else "right"
        table.add_column(heading, justify=justify, no_wrap=True)
    reaches = {
        heading: max((len(_reach(line, heading)) for line in told.lines), default=0)
        for heading in columns
    }
    for line in told.lines:
        setting = [_safe(_shown(line.setting.get(path, ""))) for path in told.paths]
        cells = [_cell(line, heading, reaches[heading]) for heading in columns]
        table.add_row(_safe(line.name), *setting, *cells, style="dim" if line.is_level else "")
    return table


def _reach(line: Line, heading: str) -> str:
    cell = line.cells.get(heading, Cell())
    return (f" ± {cell.reach}" if cell.reach else "") + _MARK * cell.is_impossible


def _cell(line: Line, heading: str, width: int) -> str:
    """Write a number such that those of the column stand below each other."""
    cell = line.cells.get(heading, Cell())
    return f"{cell.text}{_reach(line, heading):{width}}" if cell.text else ""


def meter_tables(summaries: Sequence[Summary], *, width: int = 10**6) -> list[Table]:
    """Return what the meters of experts showed in the last round of plays; none without meters.

    Args:
        summaries: One per row; those without meters are left out.
        width: In characters. What does not fit into one table goes into another.
    """
    rows = [each for each in summaries if each.meters]
    names = list(dict.fromkeys(name for each in rows for name in each.meters))
    tables: list[Table] = []
    while names:
        count = len(names)
        table = _meter_table(rows, names)
        while count > 1 and Console(width=10**6).measure(table).maximum > width:
            count -= 1
            table = _meter_table(rows, names[:count])
        tables.append(table)
        names = names[count:]
    return tables


def _meter_table(rows: Sequence[Summary], names: Sequence[str]) -> Table:
    paths = name_paths([each.setting for each in rows])
    table = Table(title="Meters, in the last round", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("optimizer", no_wrap=True)
    for heading in paths.values():
        table.add_column(_safe(heading), justify="right", no_wrap=True)
    for name in names:
        table.add_column(_safe(name.replace("_", "\n")), justify="right", no_wrap=True)
    for each in rows:
        setting = [_safe(_shown(each.setting.get(path, ""))) for path in paths]
        cells = [_meter(each.meters[name]) if name in each.meters else "" for name in names]
        table.add_row(_safe(each.optimizer), *setting, *cells)
    return table


def _meter(spread: Spread) -> str:
    """Write what meters showed; what they measure, and so how large it is, is not known."""
    reach = (spread.high - spread.low) / 2
    mean = _plain(spread.mean, 4)
    return f"{mean} ± {_plain(reach, 2)}" if isfinite(reach) else mean


def _plain(number: float, digits: int) -> str:
    """Write a number with so many digits, large ones in full."""
    return f"{number:.0f}" if 10**digits <= abs(number) < 1e9 else f"{number:.{digits}g}"


def _count(numbers: Sequence[int], thing: str) -> str:
    few, many = min(numbers), max(numbers)
    count = f"{few}" if few == many else f"{few} to {many}"
    return f"{count} {thing}{'' if many == 1 else 's'}"


def legend(table: Table, standings: Standings, levels: Sequence[Level] = ()) -> str:
    """Return the lines that explain a `summary_table`.

    Args:
        table: The table; only columns that it shows are explained.
        standings: Its rows, ranked.
        levels: Settings and what simple policies would get in them.
    """
    told = make_results_table(standings, levels)
    shown = {str(column.header) for column in table.columns}
    meanings = {
        each.heading.replace("\n", " "): each.meaning
        for each in told.columns
        if each.meaning and each.heading in shown
    }
    width = max(map(len, meanings), default=0) + 2
    lines = [f"{name:{width}}{meaning}" for name, meaning in meanings.items()]
    return "\n".join([*told.remarks, *lines])


# What a setting, a price or an expert changes


def contrast_table(
    title: str, contrasts: Sequence[Contrast], *, priced: bool, width: int = 10**6
) -> Table:
    """Return a table of paired differences: what plays come to, and which is better.

    Args:
        title: Of the study; none where it is empty.
        contrasts: One per row.
        priced: Whether a price was given: then there is a column of break-even prices.
        width: In characters. What does not fit is left out or folded, but never the difference
            and the verdict.
    """
    return _fit(
        lambda without: _contrast_table(title, contrasts, priced=priced, without=without),
        ("there", "here", _ROOM),
        width=width,
    )


def _contrast_table(
    title: str, contrasts: Sequence[Contrast], *, priced: bool, without: Sequence[str]
) -> Table:
    names = shorten_paths(list_paths(each.setting for each in contrasts))
    criterion = contrasts[0].criterion
    fixed = _fixed(contrasts)
    varied = [path for path in names if path not in fixed]
    narrow = _ROOM in without
    letters = _letters([names[path] for path in varied]) if narrow else {}
    headings = {
        "here": criterion.with_price if priced else criterion.heading,
        "there": "against",
        "difference": "difference",
        "verdict": "verdict",
    } | ({"break-even": "break-even"} if priced else {})
    headings = {key: heading for key, heading in headings.items() if key not in without}
    padding = (0, 1, 0, 0) if narrow else (0, 1)
    table = Table(title=_safe(title) or None, box=box.SIMPLE_HEAD, pad_edge=False, padding=padding)
    # Columns that may be folded are narrowed before all others.
    table.add_column("optimizer", overflow="fold")
    for path in varied:
        name = letters.get(names[path], names[path])
        table.add_column(_safe(name), justify="right", overflow="fold")
    for heading in headings.values():
        table.add_column(heading, justify="right", no_wrap=True)
    for each in contrasts:
        cells = {
            "here": _number(each.here),
            "there": _number(each.there),
            "difference": _with_reach(each.difference, 4, sign="+"),
            "verdict": each.verdict,
            "break-even": _prices(each.break_even, narrow=narrow),
        }
        setting = [_safe(_shown(each.setting.get(path, ""))) for path in varied]
        table.add_row(_safe(each.optimizer), *setting, *(cells[key] for key in headings))
    count = _count([each.difference.count for each in contrasts], "pair")
    table.caption = f"{count} per row: mean difference ± half the width of its 95 % interval"
    if sentence := describe_criterion(criterion):
        table.caption += f". {sentence}"
    if fixed:
        told = ", ".join(f"{names[path]} {_shown(value)}" for path, value in fixed.items())
        table.caption += f"; in all rows {_safe(told)}"
    if letters:
        table.caption += f"; {_safe(', '.join(f'{letters[name]} is {name}' for name in letters))}"
    return table


def _letters(names: Sequence[str]) -> dict[str, str]:
    """Call long names by letters."""
    long = [name for name in names if len(name) > _LONG]
    return dict(zip(long, ascii_lowercase, strict=False))


def _fixed(contrasts: Sequence[Contrast]) -> dict[str, object]:
    """Return the values, but of the path compared, that all rows share and need no column."""
    first, *others = (each.setting for each in contrasts)
    return {
        path: value
        for path, value in first.items()
        if others
        and path != contrasts[0].path
        and all(path in other and other[path] == value for other in others)
    }


def _prices(found: BreakEven, *, narrow: bool = False) -> str:
    """Write a price and its interval, on a line each where it is *narrow*."""
    line = "\n" if narrow else " "
    price = "none" if found.price is None else f"{found.price:.3g}"
    pieces = describe_ranges(found.ranges)
    return f"{price}{line}({f'{line}or '.join(pieces)})" if pieces else price


def expert_in_words(
    expert: str, contrasts: Sequence[Contrast], *, played: Mapping[str, int] | None = None
) -> list[str]:
    """Return, for each optimizer, a sentence on whether an *expert* helps or harms.

    Args:
        expert: Name of the expert.
        contrasts: Of plays with it and without it.
        played: In how many settings each optimizer played; by default, those of the contrasts.
    """
    by_optimizer: dict[str, list[Contrast]] = {}
    for each in contrasts:
        by_optimizer.setdefault(each.optimizer, []).append(each)
    return [
        _one_in_words(expert, found[0])
        if len(found) == 1
        else _all_in_words(expert, found, of=(played or {}).get(name, len(found)))
        for name, found in by_optimizer.items()
    ]


def _one_in_words(expert: str, found: Contrast) -> str:
    criterion, gap, name = found.criterion, found.difference, found.optimizer
    what = criterion.label
    if found.price:
        what = f"{criterion.word} {'minus' if criterion.more_is_better else 'plus'} price"
    if found.setting:
        name = f"{name} (where {format_setting(found.setting)})"
    match found.verdict:
        case "equal":
            return f"The expert {expert!r} makes no difference to {name}."
        case "unclear" if not isfinite(gap.low):
            return (
                f"It is unclear whether the expert {expert!r} helps {name}: there is only one pair."
            )
        case "unclear":
            return (
                f"It is unclear whether the expert {expert!r} helps {name}: the 95 % interval of "
                f"the difference, {_number(gap.low)} to {_number(gap.high)}, includes 0."
            )
        case "better":
            verb = "helps"
        case "worse":
            verb = "harms"
    more, gap = ("lower", -gap) if gap.mean < 0 else ("higher", gap)
    return (
        f"The expert {expert!r} {verb} {name}: with it, {what} is {_number(gap.mean)} {more} "
        f"(95 % interval {_number(gap.low)} to {_number(gap.high)})."
    )


def _all_in_words(expert: str, found: Sequence[Contrast], *, of: int) -> str:
    where = {
        verdict: [format_setting(each.setting) for each in found if each.verdict == verdict]
        for verdict in ("worse", "better", "equal", "unclear")
    }
    harmed = f" ({'; '.join(where['worse'])})" if where["worse"] else ""
    why = " (interval includes 0)" if where["unclear"] else ""
    return (
        f"Effect of the expert {expert!r} on {found[0].optimizer} in "
        f"{len(found)}{f' of {of}' if of > len(found) else ''} settings: "
        f"helps {len(where['better'])}, harms {len(where['worse'])}{harmed}, "
        f"none {len(where['equal'])}, unclear {len(where['unclear'])}{why}."
    )


def _with_reach(spread: Spread, digits: int, *, sign: str = "") -> str:
    reach = (spread.high - spread.low) / 2
    mean = _number(spread.mean, digits, sign=sign)
    return f"{mean} ± {_number(reach, digits)}" if isfinite(reach) else mean


def _number(number: float, digits: int = 4, *, sign: str = "") -> str:
    """Write a number with so many digits behind the point, or in all if it is large."""
    return f"{number:{sign}.{digits}{'f' if abs(number) < _LARGE else 'g'}}"


def _safe(text: str) -> str:
    return escape(mask_invisible(text))


def _shown(value: object) -> str:
    return format_value(value) if isinstance(value, float | str) else str(value)
