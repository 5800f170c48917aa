"""The command line: sparq-sim."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sparq_sim
from sparq_sim.errors import SparqError, did_you_mean, visible
from sparq_sim.plugin.frames import account, place

if TYPE_CHECKING:
    from sparq_sim.analysis.contrasts import Contrast
    from sparq_sim.plugin.registry import AnyKind
    from sparq_sim.report.terminal import Level
    from sparq_sim.scenario.model import Scenario
    from sparq_sim.simulation.measures import References
    from sparq_sim.study.executors import PlayExecutor
    from sparq_sim.study.store import Found, StoredPlay
    from sparq_sim.study.study import Study

app = typer.Typer(
    help=sparq_sim.__doc__, no_args_is_help=True, add_completion=True, rich_markup_mode="rich"
)

REPORT = "report.html"
MOST_NAMED = 6
"""Rows that are named where they are left out of a comparison; of others, how many."""
KINDS: dict[str, AnyKind] = {
    "environments": "environment",
    "experts": "expert",
    "optimizers": "optimizer",
    "draws": "draw",
    "noises": "noise",
    "losses": "loss",
    "faults": "fault",
    "kernels": "kernel",
    "priors": "prior",
    "widths": "width",
    "lengths": "length",
    "schedules": "schedule",
    "routings": "routing",
}
"""What can be plugged in, by what several of it are called."""

Source = Annotated[str, typer.Argument(help="A scenario file, or the name of a bundled one.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="FIELD=VALUE", help="Override a field; may be given several times."
    ),
]
AllowImport = Annotated[
    bool, typer.Option("--allow-import", help="Let a file name code to import, module:Class.")
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes; all cores if not given.")]
ExecutorName = Annotated[
    str, typer.Option(help="processes, in-process, dask, or tcp://HOST:PORT of a Dask cluster.")
]
Folder = Annotated[Path, typer.Argument(help="The folder of a study.")]
PlayFile = Annotated[Path, typer.Argument(help="A play: a file in the rounds folder of a study.")]


class Listed(StrEnum):
    """What can be listed."""

    ENVIRONMENTS = "environments"
    EXPERTS = "experts"
    OPTIMIZERS = "optimizers"
    SCENARIOS = "scenarios"
    DRAWS = "draws"
    NOISES = "noises"
    LOSSES = "losses"
    FAULTS = "faults"
    KERNELS = "kernels"
    PRIORS = "priors"
    WIDTHS = "widths"
    LENGTHS = "lengths"
    SCHEDULES = "schedules"
    ROUTINGS = "routings"


class Made(StrEnum):
    """What `new` can make."""

    EXPERT = "expert"
    ENVIRONMENT = "environment"
    OPTIMIZER = "optimizer"
    SCENARIO = "scenario"


class Exported(StrEnum):
    """What `export` can write."""

    SUMMARY = "summary"
    ROUNDS = "rounds"
    REPLIES = "replies"


def _say(text: str, *, err: bool = False) -> None:
    """Print what may hold a name or a reason from elsewhere, and cannot steer the terminal."""
    typer.echo(visible(text), err=err)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(sparq_sim.__version__)
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


@app.command()
def run(
    scenario: Source,
    out: Annotated[
        Path | None, typer.Option(help="The folder of the study; studies/NAME unless given.")
    ] = None,
    overrides: Set = None,
    jobs: Jobs = None,
    executor: ExecutorName = "processes",
    into: Annotated[
        bool, typer.Option("--into", help="Play into the folder even if it holds another scenario.")
    ] = False,
    allow_import: AllowImport = False,
    no_report: Annotated[
        bool, typer.Option("--no-report", help="Leave out the report, report.html in the folder.")
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit with 3 where results mean nothing: all answers useless, regret below 0.",
        ),
    ] = False,
) -> None:
    """Play a scenario: all optimizers, settings and replications; go on where it stopped."""
    from rich.console import Console

    from sparq_sim.analysis.cautions import cautions
    from sparq_sim.analysis.summary import summary
    from sparq_sim.report.terminal import (
        estimates,
        legend,
        levels,
        summary_table,
        watching,
        watching_levels,
    )
    from sparq_sim.study.executors import Terminated, terminable
    from sparq_sim.study.study import Study

    loaded = _load(scenario, overrides, allow_import=allow_import, check_data=True)
    name = Path(scenario)
    folder = out or Path("studies") / (name.stem if name.suffix or name.is_absolute() else name)
    console = Console()
    study = Study(loaded, folder, into=into)
    try:
        with watching(console) as watch, terminable():
            done = study.run(_executor(executor, jobs), watch=watch)
    except KeyboardInterrupt as stop:
        study.store.prepare()  # Workers that were killed may have left files that are not whole.
        typer.echo(f"Stopped. What is finished is in {folder}; the same command goes on.", err=True)
        raise typer.Exit(143 if isinstance(stop, Terminated) else 130) from None
    rows = summary(study)
    known: dict[str, References] = {}
    if rows:
        reference_levels: list[Level] = []
        try:
            with watching_levels(console) as watch_levels:
                reference_levels = levels(loaded, known=known, watch=watch_levels)
        except Exception as error:  # Of a plug-in, whatever it be: the plays are there.
            _say(f"Note: no reference levels: {account(error)}", err=True)
        table = summary_table(loaded.title, rows, reference_levels, width=console.width)
        marked = any(row.impossible for row in rows)
        console.print(table)
        console.print(
            legend(table, replications=loaded.replications, marked=marked),
            style="dim",
            highlight=False,
        )
    warned = cautions(study)
    for note in (*done.notes, *(caution.text for caution in warned), *estimates(known.values())):
        _say(f"Note: {note}", err=True)
    played = done.done - done.resumed
    plays = "1 play" if played == 1 else f"{played} plays"
    _say(f"{plays} in {done.elapsed:.1f} s, {done.resumed} found; all in {folder}")
    if rows and not no_report:
        _report(study, folder / REPORT, allow_import=allow_import, known=known)
    if done.troubles:
        failed: dict[str, list[str]] = {}
        for trouble in done.troubles:
            failed.setdefault(trouble.reason, []).append(trouble.play.optimizer)
        for reason, names in failed.items():
            told = ", ".join(dict.fromkeys(names))
            _say(f"Failed: {told} ({len(names)} of {len(study.plays())}): {reason}", err=True)
        raise typer.Exit(1)
    if strict and any(caution.grave for caution in warned):
        _say("Error: some results mean nothing; see the notes (--strict)", err=True)
        raise typer.Exit(3)


@app.command()
def report(
    folder: Folder,
    to: Annotated[
        Path | None, typer.Option("-o", "--out", help="The file; report.html in the folder.")
    ] = None,
    no_replays: Annotated[
        bool, typer.Option("--no-replays", help="Leave out the plays to watch; smaller, quicker.")
    ] = False,
    allow_import: AllowImport = False,
) -> None:
    """Write the report of a study: one HTML file, which needs no network."""
    from sparq_sim.study.study import Study

    study, file = Study.open(folder, begun=True), to or folder / REPORT
    made = _written(study, file, replays=not no_replays, allow_import=allow_import, known={})
    _say(str(made))


@app.command()
def plot(
    folder: Folder,
    kind: Annotated[
        str,
        typer.Argument(
            help="average-regret, cumulative-regret, cost, sweep, heat-map, spent, queries, "
            "staleness, or the name of a note."
        ),
    ],
    to: Annotated[Path, typer.Option("-o", "--out", help="A file: .pdf, .svg or .png.")],
    width: Annotated[float, typer.Option(help="In inches.")] = 3.4,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD=VALUE", help="Of a sweep, this value only; may be repeated."),
    ] = None,
) -> None:
    """Draw a figure of a study for print."""
    from sparq_sim.report.print import save
    from sparq_sim.study.study import Study

    chosen = dict(_assigned(text) for text in where or [])
    study = Study.open(folder)
    _say(str(save(study, kind, to, width=width, where=chosen)))
    _note(study)


@app.command("list")
def list_all(
    what: Annotated[Listed | None, typer.Argument(help="All of them, if left out.")] = None,
) -> None:
    """List what is installed; of one sort, with a line about each."""
    if what is None:
        for each in Listed:
            _say(f"{each.value}: {', '.join(_names(each))}")
        return
    names = _names(what)
    width = max((len(name) for name in names), default=0)
    for name in names:
        _say(f"{name:{width}}  {_line_about(what, name)}".rstrip())


@app.command()
def show(
    what: Annotated[str, typer.Argument(help="A scenario; or environment, expert, kernel ...")],
    kind: Annotated[
        str | None, typer.Argument(help="Which environment, expert, kernel ...")
    ] = None,
    overrides: Set = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the environment to a file: .html, .png, .svg or .pdf."),
    ] = None,
    horizon: Annotated[float, typer.Option(help="Until when to draw, in clock units.")] = 100.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the chance in what is drawn.")] = 0,
    allow_import: AllowImport = False,
) -> None:
    """Show a scenario with all its defaults, or the fields of a plug-in, or draw an environment."""
    sort = KINDS.get(what) or next((each for each in KINDS.values() if each == what), None)
    if plot is not None and sort != "environment":
        raise SparqError(f"--plot draws environments: `show environment KIND --plot {plot}`")
    if sort is not None:
        if kind is None:
            raise SparqError(f"say which {sort}; there are: {', '.join(_plugin_names(sort))}")
        if plot is None:
            _show_plugin(sort, kind, allow_import=allow_import)
        else:
            from sparq_sim.report.environment import portray
            from sparq_sim.scenario.model import environment

            made = environment(kind, overrides or (), allow_import=allow_import)
            _say(str(portray(made, plot, name=kind, horizon=horizon, seed=seed)))
    else:
        loaded = _load(what, overrides, allow_import=allow_import)
        typer.echo(json.dumps(loaded.resolved(), indent=2))


@app.command()
def check(
    files: Annotated[list[str], typer.Argument(help="Scenario files, or names.")],
    overrides: Set = None,
    allow_import: AllowImport = False,
) -> None:
    """Check scenario files and their data; each error is told with its line, the exit code is 2."""
    problems = []
    for file in files:
        try:
            loaded = _load(file, overrides, allow_import=allow_import, check_data=True)
            count = len(loaded.settings())
        except SparqError as error:
            problems.append(str(error))
        else:
            _say(f"{file}: sound, {count} {'setting' if count == 1 else 'settings'}")
    if problems:
        raise SparqError("\n".join(problems))


@app.command()
def compare(
    folders: Annotated[list[Path], typer.Argument(help="Folders of studies.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects.")] = False,
    between: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Compare the values of a swept field, pair by pair."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXPERT",
            help="Play without an expert too, and compare; may be given several times.",
        ),
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(help="Compare regret plus what is spent, a unit of cost at this price."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE",
            help="With --between, the value to compare with; with --price, the optimizer.",
        ),
    ] = None,
    jobs: Jobs = None,
    executor: ExecutorName = "processes",
    allow_import: AllowImport = False,
) -> None:
    """Compare the optimizers of one or more studies, or what a setting, price or expert changes."""
    from functools import partial

    from rich.console import Console

    from sparq_sim.analysis.cautions import noted_rows
    from sparq_sim.analysis.summary import summary
    from sparq_sim.report.terminal import summary_table
    from sparq_sim.study.study import Study

    if between is not None and without:
        raise SparqError("--between and --without are two questions; ask one at a time")
    if against is not None and (without or (between is None and price is None)):
        raise SparqError("--against goes with --between PATH, or with --price alone")
    studies = [Study.open(folder) for folder in folders]
    if between is not None or without or price is not None:
        if without:
            play = partial(_without, executor=_executor(executor, jobs), allow_import=allow_import)
            asked = [partial(play, expert=expert, price=price or 0.0) for expert in without]
        elif between is not None:
            asked = [partial(_between, path=between, against=against, price=price or 0.0)]
        else:
            asked = [partial(_priced, price=price or 0.0, against=against)]
        _show_contrasts(studies, asked, price=price, as_json=as_json)
        return
    if as_json:
        rows = [row for study in studies for row in noted_rows(study)]
        typer.echo(json.dumps(rows, indent=2))
    for study in studies:
        if not as_json:
            console = Console()
            name = study.title or str(study.folder)
            console.print(summary_table(name, summary(study), width=console.width))
        _note(study)


@app.command()
def export(
    folder: Folder,
    to: Annotated[Path, typer.Argument(help="A file that ends in .csv, .parquet or .json.")],
    what: Annotated[Exported, typer.Option(help="Which table.")] = Exported.SUMMARY,
) -> None:
    """Write the summary, the rounds or the replies of a study to one file."""
    from sparq_sim.analysis.summary import export as write
    from sparq_sim.study.study import Study

    study = Study.open(folder)
    write(study, to, what.value)
    typer.echo(f"{to}")
    _note(study)


@app.command()
def compact(folder: Folder) -> None:
    """Merge the many small files of a study into a few."""
    from sparq_sim.study.study import Study

    Study.open(folder).compact()
    typer.echo(f"{folder}: compacted")


@app.command()
def reproduce(file: PlayFile, allow_import: AllowImport = False) -> None:
    """Play one play of a study again from its provenance, and compare digests."""
    from sparq_sim.scenario.model import Scenario

    told = _stored(file).provenance
    scenario = Scenario.from_fingerprint(
        told["play"], seed=told["seed"], name=told["optimizer"], allow_import=allow_import
    )
    digest = scenario.play(told["optimizer"], told["replication"]).digest()
    if digest != told["digest"]:
        typer.echo(f"{file}: differs; stored {told['digest']}, played now {digest}", err=True)
        raise typer.Exit(1)
    typer.echo(f"{file}: identical, {digest}")


@app.command()
def diff(a: PlayFile, b: PlayFile) -> None:
    """Say where two plays part: the first record that differs; exit code 1 if they do."""
    from sparq_sim.simulation.trace import first_difference

    difference = first_difference(_stored(a).trace, _stored(b).trace)
    typer.echo(difference or "identical")
    if difference:
        raise typer.Exit(1)


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from sparq_sim.scenario.model import schema as made

    typer.echo(json.dumps(made(), indent=2))


@app.command()
def new(
    kind: Made,
    name: Annotated[str, typer.Argument(help="Lower-case words with dashes.")],
    folder: Annotated[Path, typer.Option(help="Where to put it.")] = Path(),
) -> None:
    """Make a working plug-in package with a test, or a scenario, to start from."""
    from sparq_sim.scenario.scaffold import new as write

    for path in write(kind.value, name, folder):
        typer.echo(str(path))


def _show_contrasts(
    studies: Sequence[Study],
    asked: Sequence[Callable[[Study], _Compared]],
    *,
    price: float | None,
    as_json: bool,
) -> None:
    """Print what was *asked* of each study: paired differences, and remarks on them."""
    from rich.console import Console

    from sparq_sim.analysis.cautions import cautions
    from sparq_sim.report.terminal import contrast_table

    console, rows = Console(), []
    for study in studies:
        answers: list[_Compared] = []
        for ask in asked:
            answers.append(answer := ask(study))
            if as_json:
                warned = cautions(study, *answer.beside)
                rows += [
                    {
                        "study": str(study.folder),
                        **each.flat(),
                        "notes": [found.text for found in warned if found.rows & each.rows],
                    }
                    for each in answer.rows
                ]
                continue
            name = study.title or str(study.folder)
            priced = price is not None
            console.print(contrast_table(name, answer.rows, priced=priced, width=console.width))
            for remark in answer.remarks:
                _say(remark)
            if price is not None:
                _say(
                    "Regret + price is the average regret plus what is spent a round, a unit of "
                    f"cost at {price:g}.\nBelow the break-even price, the one that spends more is "
                    "the better; in brackets is its 95 % interval."
                )
        for note in (note for answer in answers for note in answer.notes):
            _say(f"Note: {note}", err=True)
        _note(study, *(other for answer in answers for other in answer.beside))
    if as_json:
        typer.echo(json.dumps(rows, indent=2))


@dataclass(frozen=True)
class _Compared:
    """What a question about a study has come to."""

    rows: list[Contrast]
    remarks: Sequence[str]
    """For a reader of the table."""
    notes: Sequence[str] = ()
    """What must be known in any case."""
    beside: tuple[Study, ...] = ()
    """Studies whose plays are compared with those of the study."""


def _left_alone(plays: Sequence[Found]) -> list[str]:
    """Note which rows are compared with none, of which these are *plays*."""
    from sparq_sim.study.settings import in_words

    left = [
        f"{each.optimizer} ({in_words(each.setting)})" if each.setting else each.optimizer
        for each in plays
    ]
    more = f"; and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
    named = "; ".join(left[:MOST_NAMED])
    return [f"left out, for want of plays to compare with: {named}{more}"] if left else []


def _between(study: Study, *, path: str, against: str | None, price: float) -> _Compared:
    """Compare the values of a swept path."""
    from sparq_sim.analysis.contrasts import alone, between, moving_with
    from sparq_sim.study.settings import path_called, swept

    found = study.found()
    value = None if against is None else _value(against)
    rows = between(found, path, against=value, price=price)
    path = path_called(path, swept(each.setting for each in found))
    moving = moving_with(found, path)
    along = f" together with {', '.join(moving)}, swept side by side" if moving else ""
    remarks = [f"Compared with {path} = {rows[0].against}{along}, all else being equal."]
    changed = [each for each in found if path in each.setting]
    if same := sorted({each.optimizer for each in found} - {each.optimizer for each in changed}):
        remarks.append(f"It makes no difference to: {', '.join(same)}.")
    return _Compared(rows, remarks, _left_alone(alone(changed, rows)))


def _priced(study: Study, *, price: float, against: str | None) -> _Compared:
    """Compare optimizers by regret plus price."""
    from sparq_sim.analysis.contrasts import alone, priced, spending_least

    found = study.found()
    rows = priced(found, price, against=against)
    least = spending_least(found)
    why = ""
    if against is None:
        why = ", which spends least"
        if len(least) > 1:
            why = f": of those that spend least ({', '.join(least)}), it has the least regret"
    remark = f"Compared with {rows[0].against}{why}."
    return _Compared(rows, [remark], _left_alone(alone(found, rows)))


def _without(
    study: Study, *, expert: str, price: float, executor: PlayExecutor, allow_import: bool
) -> _Compared:
    """Play what is missing without an expert, and compare."""
    from rich.console import Console

    from sparq_sim.analysis.contrasts import alone, left_out
    from sparq_sim.analysis.summary import grouped
    from sparq_sim.report.terminal import expert_in_words, watching
    from sparq_sim.study.ablation import without
    from sparq_sim.study.executors import terminable
    from sparq_sim.study.settings import agree
    from sparq_sim.study.study import label

    other = without(study, expert, allow_import=allow_import)
    with watching(Console(stderr=True)) as watch, terminable():
        done = other.run(executor, watch=watch)
    notes = list(done.notes)
    if done.troubles:
        reasons = "; ".join(dict.fromkeys(trouble.reason for trouble in done.troubles))
        count = f"{len(done.troubles)} of {len(other.plays())} plays"
        failed = f"{count} without the expert {expert!r} failed: {reasons}"
        if not done.done:
            raise SparqError(failed)
        notes.append(failed)
    found = study.found()
    rows = left_out(found, other.found(), expert, price=price)
    # Those that were refused are in the notes of the study without the expert.
    tried = {label(play): play for play in other.plays()}.values()
    left = [
        play
        for play in alone(found, rows)
        if any(play.optimizer == o.optimizer and agree(play.setting, o.setting) for o in tried)
    ]
    played = Counter(name for name, _ in grouped(found))
    words = expert_in_words(expert, rows, played=played)
    return _Compared(rows, words, [*notes, *_left_alone(left)], (other,))


def _note(study: Study, *beside: Study) -> None:
    """Print what must be known of a folder and its results, apart from what was asked for."""
    from sparq_sim.analysis.cautions import cautions

    warned = (caution.text for caution in cautions(study, *beside))
    for note in (*study.notes, *study.warnings, *warned):
        _say(f"Note: {note}", err=True)


def _written(
    study: Study, to: Path, *, replays: bool, allow_import: bool, known: dict[str, References]
) -> Path:
    """Write a report, showing how far its reference levels have come; those *known* are taken."""
    from functools import partial

    from rich.console import Console

    from sparq_sim.report import write
    from sparq_sim.report.terminal import levels, watching_levels

    with watching_levels(Console(stderr=True)) as watch:
        find = partial(levels, known=known, watch=watch)
        return write(study, to, replays=replays, allow_import=allow_import, levels=find)


def _report(study: Study, to: Path, *, allow_import: bool, known: dict[str, References]) -> None:
    """Write the report of a run; without one, the plays are there all the same."""
    try:
        made = _written(study, to, replays=True, allow_import=allow_import, known=known)
        _say(f"Report: {made}")
    except Exception as error:  # Whatever plug-ins, files and disks can do.
        _say(f"Note: no report: {account(error)}; `sparq-sim report` tries again", err=True)


def _assigned(text: str) -> tuple[str, object]:
    """Read FIELD=VALUE; a field is one of those swept, in full or its last word."""
    name, equals, value = text.partition("=")
    if not equals:
        raise SparqError(f"--where {text}: expected FIELD=VALUE, as in transit=2")
    return name.strip(), _value(value)


def _value(text: str) -> object:
    """Read a value as --set does."""
    from sparq_sim.scenario.files import overridden

    value: object = overridden([f"value={text}"]).values["value"]
    return value


def _stored(file: Path) -> StoredPlay:
    from sparq_sim.study import store

    remedy = "give one from the folder `rounds` of a study"
    if not file.is_file():
        raise SparqError(f"{file} is no file; {remedy}")
    home = file.absolute().parent
    if home.name != "rounds" or file.suffix != ".parquet":
        raise SparqError(f"{file} is no play: it is in no study's folder `rounds`; {remedy}")
    return store.read(home.parent, file.stem)


def _load(
    source: str,
    overrides: list[str] | None = None,
    *,
    allow_import: bool = False,
    check_data: bool = False,
) -> Scenario:
    from sparq_sim.scenario.model import Scenario

    return Scenario.load(
        source, overrides=overrides or (), allow_import=allow_import, check_data=check_data
    )


def _executor(name: str, jobs: int | None) -> PlayExecutor:
    from sparq_sim.study.executors import Dask, InProcess, Processes

    match name:
        case "processes":
            return Processes(jobs)
        case "in-process":
            return InProcess()
        case "dask":
            return Dask(jobs=jobs)
        case address if "://" in address:
            return Dask(address)
    known = ("processes", "in-process", "dask", "tcp://HOST:PORT")
    raise SparqError(f"no executor is called {name!r}: {did_you_mean(name, known)}")


def _names(what: Listed) -> list[str]:
    if what is Listed.SCENARIOS:
        from sparq_sim.scenario.files import bundled

        return sorted(bundled())
    return _plugin_names(KINDS[what.value])


def _line_about(what: Listed, name: str) -> str:
    """Give the title of a scenario, or the first line of what a model says of itself."""
    from inspect import getdoc

    try:
        if what is Listed.SCENARIOS:
            from sparq_sim.scenario.files import read

            return str(read(name).values.get("title", ""))
        from sparq_sim.plugin.registry import load

        model = load(KINDS[what.value], name)
    except SparqError as error:
        return str(error).splitlines()[0]
    return (getdoc(model) or "").partition("\n")[0]


def _plugin_names(kind: AnyKind) -> list[str]:
    from sparq_sim.plugin import registry as plugins

    return plugins.names(kind)


def _show_plugin(kind: AnyKind, name: str, *, allow_import: bool) -> None:
    from inspect import getdoc

    from pydantic_core import PydanticUndefined

    from sparq_sim.plugin.field_docs import field_docs
    from sparq_sim.plugin.registry import load

    model = load(kind, name, allow_import=allow_import)
    typer.echo(f"{name}\n\n{getdoc(model)}\n")
    docs = field_docs(model)
    for field, info in model.model_fields.items():
        default = "required" if info.default is PydanticUndefined else f"= {info.default!r}"
        typer.echo(f"  {field} {default}")
        if field in docs:
            typer.echo(f"      {docs[field]}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what a user can mend is said plainly, with exit code 2.

    So is what a plug-in raises.
    """
    try:
        app(arguments)
    except SparqError as error:
        _say(f"Error: {account(error)}", err=True)
        sys.exit(2)
    except Exception as error:
        if not place(error):
            raise
        _say(f"Error: {account(error)}", err=True)
        sys.exit(2)
