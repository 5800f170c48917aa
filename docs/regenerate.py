"""Regenerate the numbers and figures of the documentation.

`python docs/regenerate.py [NAME ...] [--jobs N] [--render-only]` plays the studies that
docs/results/studies.toml lists, by default all, and goes on where it stopped. What they come to is
written to docs/results/NAME.json, drawn to docs/pictures/results, and set into the pages, between
the markers that studies.toml explains. Without names, everything else that docs and README show is
made again too: the pictures and tables of environments, the checks of theory, the demo. With
--render-only nothing is played: pages are written from the JSON. Plays are known by the version of
the package, not by its code: when that changes, delete studies/docs first.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from io import BytesIO
from math import isfinite
from os.path import expandvars
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from sparq_sim import Scenario, figures
from sparq_sim.analysis import Spread, spread, summary
from sparq_sim.errors import SparqError, did_you_mean
from sparq_sim.executors import Processes
from sparq_sim.measures import references
from sparq_sim.store import Found, canonical, write_whole
from sparq_sim.streams import Streams
from sparq_sim.study import Study, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row: TypeAlias = Mapping[str, Any]
Results: TypeAlias = Mapping[str, Any]

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
RESULTS, PICTURES, STUDIES = DOCS / "results", DOCS / "pictures" / "results", Path("studies/docs")
LEVELS = ("uniform", "fixed", "late")
OZONE = "$SPARQ_OZONE"
"""Names the file of real readings; without it their table stays as it is."""
MARKED = re.compile(r"<!-- (?P<what>[a-z]+)(?P<given>[^>]*?) -->(?P<text>.*?)<!-- end -->", re.S)


@dataclass(frozen=True)
class Listed:
    """A study that studies.toml lists; the fields are explained there."""

    name: str
    scenario: str
    columns: Sequence[str]
    overrides: Sequence[str] = ()
    needs: Sequence[str] = ()
    baseline: str | None = None
    sample: int = 3
    figures: Sequence[Mapping[str, Any]] = ()

    @property
    def command(self) -> str:
        """What plays it."""
        # In double quotes where possible, so that a shell puts in variables.
        quoted = [quote(each) if '"' in each else f'"{each}"' for each in self.overrides]
        settings = "".join(f" --set {each}" for each in quoted)
        return f"sparq-sim run {self.scenario}{settings}"

    def load(self, *more: str) -> Scenario:
        """Load its scenario, with *more* overrides."""
        return Scenario.load(self.scenario, overrides=[*map(expandvars, self.overrides), *more])

    @property
    def missing(self) -> list[str]:
        """The files it needs that are not there."""
        return [file for file in self.needs if not Path(expandvars(file)).is_file()]


def listed() -> dict[str, Listed]:
    """Read the list of studies."""
    table = tomllib.loads((RESULTS / "studies.toml").read_text(encoding="utf-8"))
    return {name: Listed(name=name, **fields) for name, fields in table.items()}


def results(name: str) -> Results:
    """Read what a study came to."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        raise SparqError(f"{path} is not there; run: python docs/regenerate.py {name}")
    found: Results = json.loads(path.read_text(encoding="utf-8"))
    return found


# From plays to numbers


def regenerate(one: Listed, jobs: int | None) -> None:
    """Play a study, write what it comes to, and draw it."""
    study = Study(scenario := one.load(), STUDIES / one.name)
    report = study.run(Processes(jobs))
    if report.troubles:
        raise SparqError(f"{one.name}: {report.troubles[0].reason}")
    told = {
        "scenario": one.scenario,
        "overrides": list(one.overrides),
        "rounds": scenario.rules.most_rounds,
        "replications": scenario.replications,
        "levels": levels(scenario),
        "rows": rows(study, one.baseline),
    }
    text = json.dumps(_short(told), indent=1, ensure_ascii=False)
    write_whole(RESULTS / f"{one.name}.json", f"{text}\n".encode())
    for figure in one.figures:
        draw(study, results(one.name), PICTURES / f"{figure.get('file', one.name)}.svg", figure)
    played = report.done - report.resumed
    print(f"{one.name}: {played} plays in {report.elapsed:.0f} s, {report.resumed} found")


def _short(thing: Any) -> Any:
    """Keep six digits of numbers: more would differ from machine to machine."""
    match thing:
        case float():
            return float(f"{thing:.6g}")
        case dict():
            return {name: _short(value) for name, value in thing.items()}
        case list():
            return [_short(value) for value in thing]
    return thing


def levels(scenario: Scenario) -> list[dict[str, Any]]:
    """Compute the reference levels, means over replications, in each world that is swept."""
    worlds: dict[str, dict[str, Any]] = {}
    for setting, one in scenario.settings():
        world = repr((one.environment, one.seed, one.rules))
        if world in worlds:
            continue
        times = [t * one.rules.period for t in range(1, one.rules.most_rounds + 1)]
        with threadpool_limits(limits=1):
            found = [
                references(one.environment.start(streams.generator("environment")), times)
                for streams in (Streams(one.seed, number) for number in range(one.replications))
            ]
        means = {name: float(np.mean([getattr(f, name) for f in found])) for name in LEVELS}
        worlds[world] = {"setting": setting, **means}
    return list(worlds.values())


def rows(study: Study, baseline: str | None) -> list[dict[str, Any]]:
    """Give a row an optimizer and setting, as `sparq-sim compare --json` does, and differences."""
    groups: dict[tuple[str, str], list[Found]] = {}
    for play in study.found():
        groups.setdefault(label(play), []).append(play)
    made = []
    for each in summary(study):
        row = {name: value for name, value in each.flat().items() if name not in each.setting}
        del row["wall"]  # No two runs agree on it.
        row["setting"] = dict(each.setting)
        if baseline not in (None, each.optimizer):
            own = groups[each.optimizer, canonical(each.setting)]
            (other,) = (
                group
                for group in groups.values()
                if group[0].optimizer == baseline and _agree(group[0].setting, each.setting)
            )
            row |= _compared(own, other)
        made.append(row)
    return made


def _words(setting: Mapping[str, object]) -> dict[str, object]:
    """Call swept values by the last words of their paths."""
    return {path.rpartition(".")[2]: value for path, value in setting.items()}


def _agree(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    first, second = _words(one), _words(other)
    return all(first[word] == second[word] for word in first.keys() & second.keys())


def _compared(own: Sequence[Found], other: Sequence[Found]) -> dict[str, float | None]:
    """Compare plays with those of the baseline in the same replication."""
    theirs = {play.replication: play.measures["average_regret"] or 0.0 for play in other}
    gaps = [(play.measures["average_regret"] or 0.0) - theirs[play.replication] for play in own]
    asked = sum(play.measures["asked"] or 0.0 for play in own)
    asked /= sum(play.measures["rounds"] or 0.0 for play in own)
    told = _flat("minus", spread(gaps))
    # Over the mean of what is asked, so that totals are equal at this price.
    return told | (_flat("break_even", spread(-gap / asked for gap in gaps)) if asked else {})


def _flat(name: str, found: Spread) -> dict[str, float | None]:
    numbers = {name: found.mean} | {
        f"{name}_{n}": getattr(found, n) for n in ("std", "low", "high")
    }
    return {name: number if isfinite(number) else None for name, number in numbers.items()}


# From numbers to pages


def chosen(told: Results, wanted: str) -> list[Row]:
    """Give the rows *wanted*: optimizers and values of what is swept, by semicolons."""
    found = list(told["rows"])
    names = [part for part in _parts(wanted) if "=" not in part]
    known = {row["optimizer"] for row in found}
    for name in names:
        if name not in known:
            raise SparqError(f"no optimizer is called {name!r}: {did_you_mean(name, known)}")
    for word, value in (part.split("=") for part in _parts(wanted) if "=" in part):
        found = [row for row in found if _shown(_words(row["setting"]).get(word)) == value]
    found = [row for row in found if not names or row["optimizer"] in names]
    if not found:
        raise SparqError(f"{told['scenario']} has no row with {wanted!r}")
    return found


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip()]


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float | int) else "" if value is None else str(value)


def quantity(row: Row, column: str) -> tuple[Any, float | None]:
    """Give the value of a column, and half its interval where it has one."""
    words = _words(row["setting"])
    if column in words:
        return words[column], None
    if column.startswith("total@"):
        price = float(column.removeprefix("total@"))
        return row["average_regret"] + price * row["queries_per_round"], None
    if (low := row.get(f"{column}_low")) is not None:
        return row[column], (row[f"{column}_high"] - low) / 2
    return row.get(column), None


def _decimals(numbers: Sequence[float]) -> int:
    """Give how many decimals are worth showing beside the largest of *numbers*."""
    largest = max((abs(number) for number in numbers), default=0.0)
    return 4 if largest < 0.025 else 3 if largest < 2 else 2 if largest < 20 else int(largest < 200)


def _number(value: float, reach: float | None, decimals: int) -> str:
    shown = f"{value:,.{decimals}f}"
    return shown if reach is None else f"{shown} ± {reach:,.{decimals}f}"


def table(one: Listed, columns: str = "", wanted: str = "") -> str:
    """Lay out the results of a study in Markdown."""
    told = results(one.name)
    lines = chosen(told, wanted)
    given = _parts(columns) or list(one.columns)
    if given[0].startswith("by "):
        body = _crossed(lines, given[0].removeprefix("by "))
    else:
        body = _listed(lines, given)
    plays = sorted({row["plays"] for row in lines})
    return "\n".join(
        [
            "",
            *(f"| {' | '.join(line)} |" for line in body),
            "",
            f"*{' or '.join(map(str, plays))} replications; ± half a 95 % interval. "
            f"`{one.command}`; written here by `make results`.*",
            "",
        ]
    )


def _listed(lines: Sequence[Row], given: Sequence[str]) -> list[Sequence[str]]:
    """Give the cells of a table with the columns *given*, a line a row."""
    parted = [part.partition(":") for part in given]
    names = [name.strip() for name, _, _ in parted]
    known = set[str]().union(*lines, *(_words(row["setting"]) for row in lines))
    for name in names:
        if name not in known and not name.startswith("total@"):
            raise SparqError(f"there is no column {name!r}: {did_you_mean(name, known)}")
    heads = [head.strip() or name.replace("_", " ") for name, _, head in parted]
    aligned = ["---" if name == "optimizer" else "---:" for name in names]
    return [heads, aligned, *zip(*(_column(lines, name) for name in names), strict=True)]


def _crossed(lines: Sequence[Row], word: str) -> list[Sequence[str]]:
    """Give average regrets: a line a value of what is swept, a column an optimizer."""
    names = list(dict.fromkeys(row["optimizer"] for row in lines))
    cells: dict[str, dict[str, str]] = {}
    for row, cell in zip(lines, _column(lines, "average_regret"), strict=True):
        cells.setdefault(_shown(_words(row["setting"]).get(word)), {})[row["optimizer"]] = cell
    if "" in cells:
        raise SparqError(f"by {word}: it is not swept for {', '.join(cells[''])}")
    body = [[value, *(found.get(name, "") for name in names)] for value, found in cells.items()]
    return [[word, *names], ["---:"] * (len(names) + 1), *body]


def _column(lines: Sequence[Row], name: str) -> Iterator[str]:
    pairs = [quantity(row, name) for row in lines]
    swept = any(name in _words(row["setting"]) for row in lines)
    decimals = _decimals([value for value, _ in pairs if isinstance(value, float)])
    for value, reach in pairs:
        plain = swept or not isinstance(value, float)
        yield _shown(value) if plain else _number(value, reach, decimals)


def number(name: str, column: str, wanted: str = "") -> str:
    """Write one number of a row, with its interval if *column* ends in ±; or a level."""
    told = results(name)
    if column in LEVELS:
        (level,) = told["levels"]
        return _number(level[column], None, _decimals([level[column]]))
    (row,) = chosen(told, wanted)
    value, reach = quantity(row, column.removesuffix("±").strip())
    if not isinstance(value, float):
        raise SparqError(f"{name} has no number {column!r} in row {wanted!r}")
    return _number(value, reach if column.endswith("±") else None, _decimals([value]))


def level_sentence(name: str) -> str:
    """Say what simple policies would get."""
    sentences = []
    for level in results(name)["levels"]:
        at = ", ".join(
            f"{word} {_shown(value)}" for word, value in _words(level["setting"]).items()
        )
        many = len(results(name)["levels"]) > 1
        uniform, fixed, late = (_number(level[n], None, _decimals([level[n]])) for n in LEVELS)
        sentences.append(
            f"{f'At {at}, u' if many and at else 'U'}niform play would have {uniform}, the best "
            f"fixed point {fixed}, and the best point of the round before {late}."
        )
    return f"\n{' '.join(sentences)}\n"


def rendered(text: str, printed: Mapping[str, str] | None = None) -> str:
    """Write all marked parts of a page anew; those *printed* by scripts only if given."""
    studies = listed()

    def replaced(found: re.Match[str]) -> str:
        what, given = found["what"], found["given"].removeprefix(":")
        first, columns, wanted = (part.strip() for part in [*given.split("|"), "", ""][:3])
        inner = found["text"]
        if what in ("results", "levels", "number"):
            if first not in studies:
                raise SparqError(f"no study is called {first!r}: {did_you_mean(first, studies)}")
            match what:
                case "results":
                    inner = f"\n{table(studies[first], columns, wanted)}\n"
                case "levels":
                    inner = f"\n{level_sentence(first)}\n"
                case "number":
                    inner = number(first, columns, wanted)
        elif new := (printed or {}).get(f"{what}{given}"):
            inner = f"\n\n{new}\n"
        return f"<!-- {what}{found['given']} -->{inner}<!-- end -->"

    return MARKED.sub(replaced, text)


def pages() -> list[Path]:
    """List the pages that may hold results."""
    ours = [page for page in DOCS.rglob("*.md") if "_build" not in page.parts]
    return [ROOT / "README.md", *sorted(ours)]


def render(printed: Mapping[str, str] | None = None) -> None:
    """Write the pages whose marked parts have changed; tell of those that cannot be."""
    wrong = []
    for page in pages():
        name, old = page.relative_to(ROOT), page.read_text(encoding="utf-8")
        try:
            new = rendered(old, printed)
        except (SparqError, ValueError) as error:
            wrong.append(f"{name}: {error}")
            continue
        if new != old:
            page.write_text(new, encoding="utf-8")
            print(f"{name}: written")
    if wrong:
        raise SparqError("\n".join(wrong))


# Figures that are drawn from the numbers alone


def draw(study: Study, told: Results, to: Path, wanted: Mapping[str, Any]) -> None:
    """Draw one figure: those of `sparq-sim plot`, and a few of this page's own."""
    own: dict[str, Callable[[Axes, Results, Any], None]] = {
        "price": _paint_totals,
        "against": _paint_against,
        "rows": _paint_rows,
    }
    to.parent.mkdir(parents=True, exist_ok=True)
    kind, width = wanted["kind"], wanted.get("width", 5.0)
    if kind not in own:
        figures.save(study, kind, to, width=width, where=wanted.get("where"))
        return
    from matplotlib.figure import Figure

    content = BytesIO()
    with figures._style():
        figure = Figure(figsize=(width, 0.62 * width), layout="constrained")
        axes = figure.add_subplot()
        own[kind](axes, told, wanted.get("what"))
        if kind != "rows":
            figure.legend(loc="outside right upper")
        figure.savefig(content, format="svg", metadata={"Date": None})
    write_whole(to, content.getvalue())


def _paint_totals(axes: Axes, told: Results, end: float) -> None:
    lines = told["rows"]
    prices = np.linspace(0.0, end, 2)
    for place, row in enumerate(lines):
        totals = row["average_regret"] + prices * row["queries_per_round"]
        colour = figures.SERIES[place % len(figures.SERIES)]
        dashes = "-" if row["queries_per_round"] else "--"
        axes.plot(prices, totals, color=colour, linestyle=dashes, label=row["optimizer"])
    # Whoever costs more than twice what asking nobody does is of no interest.
    free = [row["average_regret"] for row in lines if not row["queries_per_round"]]
    axes.set(xlabel="price per query", ylabel="regret and price, a round", xlim=(0.0, end))
    axes.set_ylim(0.0, 2 * max(free) if free else None)


def _paint_against(axes: Axes, told: Results, word: str) -> None:
    lines = told["rows"]
    values = [_words(row["setting"]).get(word) for row in lines]
    swept = np.unique([float(str(value)) for value in values if value is not None])
    # "gp-ucb, theory" has the colour of "gp-ucb".
    families = list(dict.fromkeys(row["optimizer"].partition(",")[0] for row in lines))
    for name in dict.fromkeys(row["optimizer"] for row in lines):
        own = [row for row in lines if row["optimizer"] == name]
        flat = word not in _words(own[0]["setting"])
        means, low, high = (
            np.array([row[f"average_regret{end}"] for row in own] * (len(swept) if flat else 1))
            for end in ("", "_low", "_high")
        )
        place = families.index(name.partition(",")[0]) % len(figures.SERIES)
        colour, marker = figures.SERIES[place], figures.MARKERS[place]
        (line,) = axes.plot(swept, means, label=name, color=colour, marker="" if flat else marker)
        line.set_linestyle("--" if flat else "-")
        axes.fill_between(swept, low, high, color=colour, alpha=0.12, linewidth=0)
    if len(told["levels"]) == 1:
        fixed = told["levels"][0]["fixed"]
        axes.axhline(fixed, color=figures.GREY, linestyle=":", label="best fixed point")
    axes.set(xlabel=word, ylabel="average regret")
    regrets = [row["average_regret"] for row in lines]
    if max(regrets) > 20 * min(regrets):
        axes.set_yscale("log")
        axes.set_ylim(min(regrets) / 1.5)
    else:
        axes.set_ylim(0.0)
    if swept[0] > 0 and swept[-1] >= 10 * swept[0]:
        axes.set_xscale("log")
        axes.set_xticks(swept, [_shown(value) for value in swept])
        axes.set_xticks([], minor=True)


def _paint_rows(axes: Axes, told: Results, _: object) -> None:
    lines = told["rows"]
    means = [row["average_regret"] for row in lines]
    reaches = [quantity(row, "average_regret")[1] or 0.0 for row in lines]
    places = range(len(lines), 0, -1)
    axes.errorbar(means, places, xerr=reaches, fmt="o", color=figures.SERIES[0])
    axes.set_yticks(list(places), [row["optimizer"] for row in lines])
    axes.set(xlabel="average regret", xlim=(0.0, None))


# All of it


def made_by_scripts() -> dict[str, str]:
    """Run what writes its own pages, and give what other commands print, by their markers."""
    for script in ("pictures.py", "theory.py"):
        subprocess.run([sys.executable, DOCS / script], check=True)
    printed = {"drift table": _printed(DOCS / "drift_table.py"), "demo output": _demo()}
    if Path(readings := expandvars(OZONE)).is_file():
        printed["ozone table"] = _printed(DOCS / "ozone_table.py", readings)
    else:
        print(f"ozone table: left as it is, for {OZONE} is not there")
    return printed


def _printed(*command: str | Path, cwd: Path | str = ROOT) -> str:
    """Run Python; give what it prints."""
    told = " ".join(Path(word).name for word in command)
    print(f"made by: {told}")
    ran = subprocess.run(
        [sys.executable, *command],
        check=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        text=True,
    )
    return ran.stdout


def _demo() -> str:
    """Do as `make demo` does, in a new folder, and give what it prints."""
    with TemporaryDirectory() as folder:
        command = ("-m", "sparq_sim", "run", "synthetic", "--out", "studies/demo")
        told = _printed(*command, cwd=folder)
    return "\n".join(["```text", *(line.rstrip() for line in told.splitlines()), "```", ""])


def main(arguments: Sequence[str]) -> int:
    """Regenerate what is asked for, or everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of studies in studies.toml")
    parser.add_argument("--jobs", type=int, help="processes; all cores if not given")
    parser.add_argument("--render-only", action="store_true", help="play nothing")
    asked = parser.parse_args(arguments)
    studies, printed = listed(), {}
    try:
        for name in asked.names:
            if name not in studies:
                raise SparqError(f"no study is called {name!r}: {did_you_mean(name, studies)}")
        with chdir(ROOT):
            if not asked.render_only:
                for name in asked.names or studies:
                    one = studies[name]
                    if one.missing:
                        print(f"{name}: left as it is, for {', '.join(one.missing)} is not there")
                    else:
                        regenerate(one, asked.jobs)
                printed = made_by_scripts() if not asked.names else {}
            render(printed)
    except SparqError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
