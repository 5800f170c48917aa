"""Terminal: tables of results, drawn by rich, and sentences about experts.

Long because all tables share how numbers are written and how they fit the width of a screen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, isfinite
from string import ascii_lowercase

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sparq_sim.analysis.cautions import describe_criterion
from sparq_sim.analysis.contrasts import Contrast
from sparq_sim.analysis.criteria import BEST_SEEN, REGRET, REWARD
from sparq_sim.analysis.levels import Level
from sparq_sim.analysis.prices import BreakEven
from sparq_sim.analysis.summary import Spread, Summary
from sparq_sim.errors import mask_invisible
from sparq_sim.report.data import REFERENCES
from sparq_sim.simulation.measures import LOW_ANSWERED
from sparq_sim.study.settings import format_setting, format_value, list_paths, shorten_paths

__all__ = [
    "OPTIONAL",
    "contrast_table",
    "expert_in_words",
    "legend",
    "meter_tables",
    "summary_table",
]

OPTIONAL = ("least … most", "wall", "pushed", "retries", "staleness", "spent", "exponent", "asked")
"""Columns that a narrow terminal does without, in this order."""
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
    summaries: Sequence[Summary],
    reference_levels: Sequence[Level] = (),
    *,
    width: int = 10**6,
) -> Table:
    """Return a table of what the plays of a study come to, and what simple policies would get.

    Args:
        title: Of the study; none where it is empty.
        summaries: One per row.
        reference_levels: Settings and what simple policies would get in them.
        width: In characters. What tells rows apart is always shown; other columns where there is
            room for them.
    """
    return _fit(
        lambda without: _table(title, summaries, reference_levels, without=without),
        OPTIONAL,
        width=width,
    )


def _fit(make: Callable[[Sequence[str]], Table], optional: Sequence[str], *, width: int) -> Table:
    """Make a table, leaving out as many of its *optional* columns as it takes to fit a width."""
    for omitted in range(len(optional)):
        table = make(optional[:omitted])
        if Console(width=10**6).measure(table).maximum <= width:
            return table
    return make(optional)


def _table(
    title: str,
    summaries: Sequence[Summary],
    reference_levels: Sequence[Level],
    *,
    without: Sequence[str],
) -> Table:
    paths = sorted(list_paths(each.setting for each in summaries))
    table = Table(title=_safe(title) or None, box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("optimizer", no_wrap=True)
    for path in paths:
        table.add_column(_safe(path.rsplit(".", 1)[-1]), justify="right", no_wrap=True)
    numbers = [_numbers(each) for each in summaries]
    headings = [name for name in _headings(summaries) if name not in without]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for each, cells in zip(summaries, numbers, strict=True):
        setting = [_safe(_shown(each.setting.get(path, ""))) for path in paths]
        table.add_row(_safe(each.optimizer), *setting, *(cells[name] for name in headings))
    table.add_section()
    for setting_of, level in reference_levels:
        setting = [_safe(_shown(setting_of.get(path, ""))) for path in paths]
        if len(reference_levels) == 1:
            setting = [""] * len(paths)
        for name, label in REFERENCES.items():
            spread = f" ± {std:.4f}" if (std := getattr(level, f"{name}_std")) > 0 else " " * 9
            number = f"{getattr(level, name):.4f}{spread}"
            table.add_row(label, *setting, number, style="dim")
    if not reference_levels and summaries:
        count = _count([each.plays for each in summaries], "play")
        table.caption = f"{count} per row: mean ± half the width of its 95 % interval"
        if told := describe_criterion(summaries[0].criterion):
            table.caption += f".\n{told}"
    return table


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
    paths = sorted(list_paths(each.setting for each in rows))
    table = Table(title="Meters, in the last round", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("optimizer", no_wrap=True)
    for path in paths:
        table.add_column(_safe(path.rsplit(".", 1)[-1]), justify="right", no_wrap=True)
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


def _headings(summaries: Sequence[Summary]) -> Iterator[str]:
    """Yield the names of the columns; some are shown only where they are not all 0."""
    criterion = summaries[0].criterion if summaries else REGRET
    yield criterion.heading
    if any(each.judged.count > 1 for each in summaries):
        yield "least … most"
    if criterion.is_regret and any(each.stuck > 0 for each in summaries):
        yield "stuck"
    if criterion.name == "regret_to_best_seen":
        yield REWARD.heading
    if not criterion.is_regret and any(each.unobserved > 0 for each in summaries):
        yield "unobserved"
    if any(each.ended_early for each in summaries):
        yield "rounds"
    if any(each.idle > 0 for each in summaries):
        yield "idle"
    yield from ("exponent", "asked") if criterion.is_regret else ("asked",)
    if any(each.answered < LOW_ANSWERED for each in summaries):
        yield "answered"
    if any(each.retries_per_round > 0 for each in summaries):
        yield "retries"
    if any(each.pushed_per_round > 0 for each in summaries):
        yield "pushed"
    if not criterion.is_regret and any(isfinite(each.staleness) for each in summaries):
        yield "staleness"
    yield from ("spent", "wall")


def _numbers(each: Summary) -> dict[str, str]:
    return {
        REGRET.heading: _with_reach(each.average_regret, 4) + _MARK * bool(each.impossible),
        REWARD.heading: _if_known(each.mean_reward),
        BEST_SEEN.heading: _if_known(each.regret_to_best_seen),
        "least … most": f"{_number(each.judged.least)} … {_number(each.judged.most)}",
        "stuck": f"{100 * each.stuck:.0f} %" if isfinite(each.stuck) else "",
        "unobserved": f"{100 * each.unobserved:.0f} %",
        "staleness": f"{each.staleness:.2f}" if isfinite(each.staleness) else "",
        "rounds": f"{each.rounds:.1f}",
        "idle": f"{100 * each.idle:.0f} %",
        "exponent": _with_reach(each.exponent, 2),
        "asked": f"{each.asked_per_round:.1f}",
        "answered": f"{100 * each.answered:.0f} %" if isfinite(each.answered) else "",
        "retries": f"{each.retries_per_round:.1f}",
        "pushed": f"{each.pushed_per_round:.1f}",
        "spent": f"{each.spent.mean:.2f}",
        "wall": f"{each.wall:.2f}",
    }


def _if_known(spread: Spread) -> str:
    return _with_reach(spread, 4) if spread.count else "none"


def _count(numbers: Sequence[int], thing: str) -> str:
    few, many = min(numbers), max(numbers)
    count = f"{few}" if few == many else f"{few} to {many}"
    return f"{count} {thing}{'' if many == 1 else 's'}"


_MEANINGS = {
    REWARD.heading: "over the rounds with an observed reward; more is better",
    BEST_SEEN.heading: "highest reward observed in the same play, minus the mean reward",
    "least … most": "of the plays",
    "stuck": "share of the plays with over 5 times the median regret in the last quarter",
    "unobserved": "share of the rounds without an observed reward",
    "rounds": "rounds played, per play: some plays ended early",
    "idle": "share of the rounds without a move",
    "exponent": "a in r_t ~ t^(a-1), how regret falls in the end; at 1, not at all",
    "asked": "points asked of experts per round",
    "answered": "share of the points asked",
    "retries": "points asked again per round",
    "pushed": "readings per round that experts sent without being asked",
    "staleness": "age of experts' answers on arrival, in clock units",
    "spent": "cost of the queries, per play",
    "wall": "seconds the agent computed, per play",
}


def legend(table: Table, *, replications: int, marked: bool, worlds: int = 1) -> str:
    """Return the lines that explain the columns of a `summary_table`.

    Args:
        table: The table; only columns that it shows are explained.
        replications: How many there are of each play.
        marked: Whether a number is marked as impossible.
        worlds: How many the reference levels are means over.
    """
    names = [str(column.header) for column in table.columns if column.header in _MEANINGS]
    shown = {name: name.replace("\n", " ") for name in names}
    width = max(map(len, shown.values()), default=0) + 2
    lines = [
        f"{replications} replication{'' if replications == 1 else 's'}: "
        "mean ± half the width of its 95 % interval",
        *(f"{shown[name]:{width}}{_MEANINGS[name]}" for name in names),
    ]
    if marked:
        lines.append(f"{_MARK.strip():{width}}regret below 0, which is impossible: see the notes")
    if any(column.header == REGRET.heading for column in table.columns):
        told = f": mean ± standard deviation over {worlds} worlds" if worlds > 1 else ""
        lines.append(f"The rows below the optimizers show simple policies for comparison{told}.")
    return "\n".join(lines)


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
    pieces = [
        "any price"
        if (low, high) == (0, inf)
        else f"from {low:.3g}"
        if high == inf
        else f"{low:.3g} to {high:.3g}"
        for low, high in found.ranges
    ]
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
