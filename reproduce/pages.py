"""Set what is in docs/results into the pages, between markers.

A *source* of numbers is a study that studies.toml lists, a check of reproduce/theory.py as
`theory.growth`, a benchmark as `benchmarks.engine`, a table of reproduce/memory.py as
`memory.worlds`, or a printed table, `drift` or `ozone`. In a page these are written anew, up to
`<!-- end -->`:

`<!-- results: SOURCE -->`
    its table, or as `<!-- results: SOURCE | columns | rows -->`, each part apart by semicolons.
    Columns are those of the rows in docs/results, or of a study total@PRICE and the last word of
    what is swept; `column: heading` renames one. Rows are given by what stands in a column of text,
    `gp-ucb; tv-gp-ucb` or `walk; practical`, and by a value, `transit=2`. For columns, `by transit`
    makes a table of average regrets, by transit and optimizer.
`<!-- number: SOURCE, column, rows -->0.123<!-- end -->`
    a number in running text: of one row, or the `least column` or `most column` of several. With
    `column ±` it has its interval; `column:.1f` says how to write it, `column:.0%` as a share. Of a
    study without rows it is a level: uniform, fixed or late.
`<!-- trend: SOURCE, column to column, rows -->falls<!-- end -->`
    "rises", "falls" or "hardly changes" (by less than a tenth), from one column to another.
`<!-- side: SOURCE, column against other, rows -->below<!-- end -->`
    "below", "above", or "not clearly above or below" where an interval holds the other, which is a
    number, a column of the same row, or of a study a level. Of several rows, all must be there.
`<!-- levels: STUDY -->`
    the reference levels of a study, in a sentence.
`<!-- drift table -->`, `<!-- ozone table -->`, `<!-- coverage table -->`, `<!-- demo output -->`
    what a script printed, kept in docs/results.
`<!-- demo finding -->x<!-- end -->`
    in running text: the first sentence that the demo prints below its table.

The markers of the reference are explained in reproduce/reference.py, those of the gallery in
reproduce/gallery.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from reproduce import DOCS, ROOT, reference
from reproduce.gallery import format_gallery
from reproduce.studies import LEVELS, RESULTS, Listed, Row, read_list, read_results, shorten_paths
from sparq_sim.errors import SparqError, did_you_mean
from sparq_sim.study.settings import format_value as format_swept

MARKED = re.compile(r"<!-- (?P<what>[a-z]+)(?P<given>[^>]*?) -->(?P<text>.*?)<!-- end -->", re.S)
BOOKS = ("theory", "benchmarks", "memory", "memory_tuning", "fitting")
"""Files of docs/results with the rows of several parts."""
PRINTED = ("drift", "ozone", "demo", "coverage")
"""Files of docs/results, as .txt, with what scripts print."""


# Rows


def find_rows(name: str) -> list[Row]:
    """Return the rows of a source."""
    book, _, part = name.partition(".")
    known: list[str] = [*read_list(), "drift", "ozone"]
    if book in BOOKS:
        parts = read_results(book)
        if part in parts:
            return list(parts[part])
        known = [f"{book}.{each}" for each in parts]
    elif name in ("drift", "ozone"):
        return _read_table(read_printed(name))
    elif name in known:
        return list(read_results(name)["rows"])
    raise SparqError(f"nothing is called {name!r}: {did_you_mean(name, known)}")


def read_printed(name: str) -> str:
    """Read what a script has printed."""
    return (RESULTS / f"{name}.txt").read_text(encoding="utf-8").rstrip()


def read_finding() -> str:
    """Return the first sentence that the demo prints below its table."""
    *_, finding, _ = read_printed("demo").split("\n\n")
    lines = finding.splitlines()
    ends = next(place for place, line in enumerate(lines) if line.endswith("."))
    return " ".join(lines[: ends + 1])


def _read_table(text: str) -> list[Row]:
    """Read a table in Markdown."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    heads, _, *body = lines
    return [
        {head: _number_if(cell) for head, cell in zip(heads, line, strict=True)} for line in body
    ]


def _number_if(text: str) -> float | str:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return text


def select_rows(found: Sequence[Row], wanted: str) -> list[Row]:
    """Return the rows that have all that is *wanted*; of several texts of one column, any."""
    rows = list(found)
    texts: dict[str, set[str]] = {}
    for row in rows:
        for column, value in row.items():
            texts.setdefault(column, set()).update(_texts(value))
    names = [part for part in _parts(wanted) if "=" not in part]
    known = set[str]().union(*texts.values())
    for name in names:
        if name not in known:
            raise SparqError(f"no row is called {name!r}: {did_you_mean(name, known)}")
    for column, own in texts.items():
        if own & {*names}:
            rows = [row for row in rows if {*_texts(row.get(column))} & {*names}]
    for word, value in (part.split("=") for part in _parts(wanted) if "=" in part):
        rows = [row for row in rows if format_value(_value(row, word)) == value]
    if not rows:
        raise SparqError(f"no row has {wanted!r}")
    return rows


def _texts(value: object) -> list[str]:
    """Return the names by which a cell is chosen: each part of "what; peer" of a benchmark."""
    return _parts(value) if isinstance(value, str) else []


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip()]


def _value(row: Row, column: str) -> Any:
    return shorten_paths(row.get("setting", {})).get(column, row.get(column))


def find_quantity(row: Row, column: str) -> tuple[Any, float | None]:
    """Return the value of a column, and half its interval where it has one."""
    if column.startswith("total@"):
        price = float(column.removeprefix("total@"))
        return row["average_regret"] + price * row["asked_per_round"], None
    if (low := row.get(f"{column}_low")) is not None:
        return row[column], (row[f"{column}_high"] - low) / 2
    return _value(row, column), None


# Numbers


def format_value(value: object) -> str:
    """Write what is swept."""
    if isinstance(value, str) and value.startswith("{"):
        return format_swept(value)
    return f"{value:g}" if isinstance(value, float | int) else "" if value is None else str(value)


def _decimals(numbers: Sequence[float]) -> int:
    """Return how many decimals are shown, given the largest of *numbers*."""
    largest = max((abs(number) for number in numbers), default=0.0)
    return 4 if largest < 0.025 else 3 if largest < 2 else 2 if largest < 20 else int(largest < 200)


def _format_measured(value: float, reach: float | None, decimals: int) -> str:
    text = f"{value:,.{decimals}f}"
    return text if reach is None else f"{text} ± {reach:,.{decimals}f}"


def _three_digits(value: object) -> str:
    """Write a number of a source that has no intervals."""
    if not isinstance(value, float | int):
        return format_value(value)
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    return f"{value:.3g}" if 1e-3 <= abs(value) < 1e6 else f"{value:.1e}"


def format_number(name: str, column: str, wanted: str = "") -> str:
    """Write one number of a source, as the page asks."""
    column, _, form = (part.strip() for part in column.partition(":"))
    if column in LEVELS and not wanted:
        (level,) = read_results(name)["levels"]
        return format(level[column], form) if form else _level(level[column])
    pick, _, rest = column.partition(" ")
    rows = select_rows(find_rows(name), wanted)
    if pick in ("least", "most"):
        column, ends = rest, min if pick == "least" else max
        rows = [ends(rows, key=lambda row: find_quantity(row, column)[0])]
    if len(rows) > 1:
        raise SparqError(f"{name}: {wanted!r} are {len(rows)} rows; say which, or least, or most")
    value, reach = find_quantity(rows[0], column.removesuffix("±").strip())
    if not isinstance(value, float | int):
        if form or not value:
            raise SparqError(f"{name} has no number {column!r} in row {wanted!r}")
        return str(value)
    if form:
        return format(value, form).replace("%", " %")
    if name not in read_list():
        return _three_digits(value)
    return _format_measured(value, reach if column.endswith("±") else None, _decimals([value]))


def name_trend(name: str, columns: str, wanted: str = "") -> str:
    """Return the word for the change from one column of a row to another."""
    (row,) = select_rows(find_rows(name), wanted)
    first, second = (find_quantity(row, part.strip())[0] for part in columns.split(" to "))
    change = second / first - 1
    return "hardly changes" if abs(change) < 0.1 else "rises" if change > 0 else "falls"


def name_side(name: str, columns: str, wanted: str = "") -> str:
    """Return the word for where the interval of a column lies, seen from another number."""
    column, other = (part.strip() for part in columns.split(" against "))
    sides = {_find_side(name, row, column, other) for row in select_rows(find_rows(name), wanted)}
    return sides.pop() if len(sides) == 1 else "not clearly above or below"


def _find_side(name: str, row: Row, column: str, other: str) -> str:
    value, reach = find_quantity(row, column)
    if other in LEVELS and name in read_list():
        (level,) = read_results(name)["levels"]
        apart = value - level[other]
    else:
        number = _number_if(other)
        apart = value - (find_quantity(row, number)[0] if isinstance(number, str) else number)
    if abs(apart) <= (reach or 0.0):
        return "not clearly above or below"
    return "above" if apart > 0 else "below"


def _level(value: float) -> str:
    return _format_measured(value, None, _decimals([value]))


def describe_levels(name: str) -> str:
    """Return a sentence on what simple policies would get."""
    sentences = []
    found = read_results(name)["levels"]
    for level in found:
        at = ", ".join(
            f"{word} {format_value(value)}"
            for word, value in shorten_paths(level["setting"]).items()
        )
        uniform, fixed, late = (_level(level[each]) for each in LEVELS)
        sentences.append(
            f"{f'At {at}, u' if len(found) > 1 and at else 'U'}niform play would have {uniform}, "
            f"the best fixed point {fixed}, and the best point of the round before {late}."
        )
    return " ".join(sentences)


# Tables


def format_table(name: str, columns: str = "", wanted: str = "") -> str:
    """Return rows of a source as a Markdown table; for a study, with the command that plays it."""
    lines = select_rows(find_rows(name), wanted)
    study = read_list().get(name)
    given = _parts(columns) or _all_columns(study, lines)
    if given[0].startswith("by "):
        body = _make_cross_table(lines, given[0].removeprefix("by "))
    else:
        body = _make_cells(lines, given, rounded=study is None)
    text = "\n".join(f"| {' | '.join(line)} |" for line in body)
    return text if study is None else f"{text}\n\n{_caption(study, lines)}"


def _all_columns(study: Listed | None, lines: Sequence[Row]) -> list[str]:
    return list(study.columns) if study else list(dict.fromkeys(c for row in lines for c in row))


def _caption(study: Listed, lines: Sequence[Row]) -> str:
    plays = " or ".join(map(str, sorted({row["plays"] for row in lines})))
    return f"*{plays} replications; ± half a 95 % interval. `{study.command}`*"


def _make_cells(
    lines: Sequence[Row], given: Sequence[str], *, rounded: bool
) -> list[Sequence[str]]:
    """Return the cells of a table with the columns *given*, one line per row."""
    parted = [part.partition(":") for part in given]
    names = [name.strip() for name, _, _ in parted]
    known = set[str]().union(*lines, *(shorten_paths(row.get("setting", {})) for row in lines))
    for name in names:
        if name not in known and not name.startswith("total@"):
            raise SparqError(f"there is no column {name!r}: {did_you_mean(name, known)}")
    heads = [head.strip() or name.replace("_", " ") for name, _, head in parted]
    aligned = ["---" if any(_texts(row.get(name)) for row in lines) else "---:" for name in names]
    cells = (_column(lines, name, rounded=rounded) for name in names)
    return [heads, aligned, *zip(*cells, strict=True)]


def _make_cross_table(lines: Sequence[Row], word: str) -> list[Sequence[str]]:
    """Return average regrets: one line per swept value, one column per optimizer."""
    names = list(dict.fromkeys(row["optimizer"] for row in lines))
    cells: dict[str, dict[str, str]] = {}
    regrets = _column(lines, "average_regret", rounded=False)
    for row, cell in zip(lines, regrets, strict=True):
        cells.setdefault(format_value(shorten_paths(row["setting"]).get(word)), {})[
            row["optimizer"]
        ] = cell
    if "" in cells:
        raise SparqError(f"by {word}: it is not swept for {', '.join(cells[''])}")
    body = [[value, *(found.get(name, "") for name in names)] for value, found in cells.items()]
    return [[word, *names], ["---:"] * (len(names) + 1), *body]


def _column(lines: Sequence[Row], name: str, *, rounded: bool) -> Iterator[str]:
    pairs = [find_quantity(row, name) for row in lines]
    swept = any(name in shorten_paths(row.get("setting", {})) for row in lines)
    decimals = _decimals([value for value, _ in pairs if isinstance(value, float)])
    for value, reach in pairs:
        if rounded:
            yield _three_digits(value) + ("" if reach is None else f" ± {reach:.2g}")
        elif swept or not isinstance(value, float):
            yield format_value(value)
        else:
            yield _format_measured(value, reach, decimals)


# Pages


def render_text(text: str) -> str:
    """Write all marked parts of a page anew."""
    return MARKED.sub(
        lambda found: (
            f"<!-- {found['what']}{found['given']} -->"
            f"{_render_marker(found['what'], found['given'].removeprefix(':').strip())}<!-- end -->"
        ),
        text,
    )


def _render_marker(what: str, given: str) -> str:
    match what:
        case "number":
            return format_number(*_split(given))
        case "trend":
            return name_trend(*_split(given))
        case "side":
            return name_side(*_split(given))
        case "results":
            return f"\n\n{format_table(*(part.strip() for part in given.split('|')))}\n\n"
        case "levels":
            return f"\n\n{describe_levels(given)}\n\n"
        case "gallery":
            return f"\n\n{format_gallery(given)}\n\n"
        case _ if what in reference.MARKERS:
            return f"\n\n{reference.format_markdown(what, given)}\n\n"
        case "demo" if given == "finding":
            return read_finding()
        case _ if what in PRINTED:
            text = read_printed(what)
            return f"\n\n{text}\n\n" if given == "table" else f"\n```text\n{text}\n```\n"
    raise SparqError(f"there is no marker {what!r}")


def _split(given: str) -> list[str]:
    """Return source, columns and rows of a marker in running text."""
    return [part.strip() for part in given.split(",", 2)]


def list_pages() -> list[Path]:
    """List the pages that may hold results."""
    ours = [page for page in DOCS.rglob("*.md") if "_build" not in page.parts]
    return [ROOT / "README.md", *sorted(ours)]


def render() -> None:
    """Write the pages whose marked parts have changed; raise an error for those that cannot be."""
    wrong = []
    for page in list_pages():
        name, old = page.relative_to(ROOT), page.read_text(encoding="utf-8")
        try:
            new = render_text(old)
        except (SparqError, ValueError, TypeError) as error:
            wrong.append(f"{name}: {error}")
            continue
        if new != old:
            page.write_text(new, encoding="utf-8")
            print(f"{name}: written")
    if wrong:
        raise SparqError("\n".join(wrong))
