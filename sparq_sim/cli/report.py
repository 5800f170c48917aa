"""Commands that turn a study into files: `report`, `plot`, `export`, `compact`."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparq_sim.cli.completion import complete_figure, complete_table
from sparq_sim.cli.options import (
    Against,
    AllowImport,
    Folder,
    OpenPage,
    OptionalPlayName,
    read_against,
)
from sparq_sim.cli.output import print_notes, say
from sparq_sim.errors import SparqError

if TYPE_CHECKING:
    from sparq_sim.analysis.levels import Levels
    from sparq_sim.study.results import Results

__all__ = ["REPORT", "compact", "export", "open_page", "plot", "report", "write_report"]

REPORT = "report.html"
"""What the report of a study is called in its folder."""
TIMELINE = "timeline"
"""What `export` is told that writes the timeline of a play."""
CHART = "chart:"
"""Before the name of a chart, what `export` is told that writes its numbers."""


def report(
    folder: Folder,
    to: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="File to write; report.html in the folder by default."),
    ] = None,
    no_replays: Annotated[
        bool, typer.Option("--no-replays", help="Leave out replays of plays, for a smaller file.")
    ] = False,
    film: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLAY",
            help="A play to watch in it: its key, or its optimizer and, after commas, its "
            "replication and values of swept fields, as in sparq-gp-ucb,transit=2,1. May be "
            "repeated.",
        ),
    ] = None,
    against: Against = None,
    open_: OpenPage = False,
    allow_import: AllowImport = False,
) -> None:
    """Write the report of a study, as one HTML file that works offline."""
    from sparq_sim.study.results import Results

    if film and no_replays:
        raise SparqError("--film shows plays, and --no-replays leaves them out: give one of them")
    study, file = Results.open(folder, begun=True), to or folder / REPORT
    made = write_report(
        study,
        file,
        replays=not no_replays,
        films=film or (),
        allow_import=allow_import,
        known={},
        best_seen=read_against(against),
    )
    say(str(made))
    if open_:
        open_page(made)


def plot(
    folder: Folder,
    kind: Annotated[
        str,
        typer.Argument(
            help="What to draw: average-regret, cumulative-regret, mean-reward, reward, cost, "
            "sweep, heat-map, spent, asked, retries, pushed, staleness, shares, place, network, "
            "belief or timeline of one play, or the name of a note that optimizers record, or of a "
            "meter of an expert; by- and a meter draws regret against it.",
            autocompletion=complete_figure,
        ),
    ],
    to: Annotated[Path, typer.Option("-o", "--out", help="File to write: .pdf, .svg or .png.")],
    width: Annotated[float, typer.Option(help="Width in inches.")] = 3.4,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE",
            help="Only plays with this value of a swept field. May be repeated.",
        ),
    ] = None,
    optimizer: Annotated[
        str | None, typer.Option(help="Whose network to draw; that of the first by default.")
    ] = None,
    replication: Annotated[
        int | None,
        typer.Option(
            help="Of which to draw places; by default, that in which the best optimizer did as in "
            "its median play."
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(metavar="NAME[,NAME]", help="Only these optimizers; by default, all."),
    ] = None,
    log: Annotated[
        bool, typer.Option("--log", help="Draw the axis to the left logarithmic.")
    ] = False,
    ylim: Annotated[
        str | None,
        typer.Option(metavar="LOW,HIGH", help="Where the axis to the left begins and ends."),
    ] = None,
    play: Annotated[
        str | None,
        typer.Option(
            metavar="PLAY",
            help="Of which play to draw the belief or the timeline, named as for report --film; by "
            "default, the first of the best optimizer.",
        ),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--round",
            min=1,
            help="The round of a belief, or in the middle of a timeline; by default, the last.",
        ),
    ] = None,
    begin: Annotated[
        float | None,
        typer.Option("--from", metavar="TIME", help="When a timeline begins, in clock units."),
    ] = None,
    end: Annotated[
        float | None, typer.Option("--to", metavar="TIME", help="When a timeline ends.")
    ] = None,
    against: Against = None,
    allow_import: AllowImport = False,
) -> None:
    """Draw one figure of a study, for print."""
    from sparq_sim.report.print import Axis, PlayView, save
    from sparq_sim.study.results import Results

    chosen = dict(_parse_condition(text) for text in where or [])
    study = Results.open(folder)
    best_seen = read_against(against)
    made = save(
        study,
        kind,
        to,
        width=width,
        where=chosen,
        only=[name.strip() for name in only.split(",")] if only else (),
        axis=Axis(log, _parse_limits(ylim)),
        optimizer=optimizer,
        replication=replication,
        view=PlayView(play or "", number, begin, end),
        best_seen=best_seen,
        allow_import=allow_import,
    )
    say(str(made))
    print_notes(study, best_seen=best_seen)


def export(
    folder: Folder,
    to: Annotated[Path, typer.Argument(help="File to write: .csv, .parquet or .json.")],
    what: Annotated[
        str,
        typer.Option(
            help="Table to export: summary, rounds, replies, or EXPERT/TABLE for what an expert "
            "leaves at the end of a play, as network/nodes; or chart:KIND for what a chart "
            "shows, a row a point, as chart:average-regret. Or timeline: the queries of one play, "
            "as .json for ui.perfetto.dev; name it by --play.",
            autocompletion=complete_table,
        ),
    ] = "summary",
    play: OptionalPlayName = None,
    against: Against = None,
    allow_import: AllowImport = False,
) -> None:
    """Export a table of a study, or the timeline of a play."""
    from functools import partial

    from sparq_sim.analysis.export import export as write
    from sparq_sim.analysis.export import write_table
    from sparq_sim.study.results import Results

    study, best_seen = Results.open(folder), read_against(against)
    if (what == TIMELINE) != (play is not None):
        raise SparqError(_explain_play(study, play))
    if play is not None:
        _export_timeline(study, to, play, allow_import=allow_import)
        return
    if what.startswith(CHART):
        from sparq_sim.report.chart_table import tabulate_chart

        kind = what.removeprefix(CHART)
        guarded = write_table(partial(tabulate_chart, study, kind, best_seen=best_seen), to)
    else:
        guarded = write(study, to, what, best_seen=best_seen)
    say(str(to))
    if guarded:
        texts = "1 text begins" if guarded == 1 else f"{guarded} texts begin"
        say(
            f"Note: {texts} as a formula of a spreadsheet would, and got an apostrophe before it; "
            ".parquet and .json have it as it is",
            err=True,
        )
    print_notes(study, best_seen=best_seen)


def _explain_play(study: Results, play: str | None) -> str:
    """Return what is missing beside --what timeline, or beside --play."""
    from sparq_sim.study.choice import name_in_words

    if play is not None:
        return f"--play {play}: only a timeline is of one play; add --what {TIMELINE}"
    first = study.finished()[0]
    return (
        f"--what {TIMELINE}: it is of one play; add --play, such as {first.key[:8]}, which is "
        f"{name_in_words(first)}"
    )


def _export_timeline(study: Results, to: Path, play: str, *, allow_import: bool) -> None:
    from sparq_sim.report.trace_events import write_timeline
    from sparq_sim.study.choice import choose_play, name_in_words

    chosen = choose_play(study, play)
    write_timeline(study, to, chosen, allow_import=allow_import)
    say(f"{to}: {name_in_words(chosen)}; open it in https://ui.perfetto.dev")
    for note in study.notes:
        say(f"Note: {note}", err=True)


def compact(folder: Folder) -> None:
    """Merge the many small files of a study into a few large ones."""
    from sparq_sim.study.results import Results

    study = Results.open(folder)
    study.compact()
    say(f"{folder}: compacted")
    for note in study.notes:
        say(f"Note: {note}", err=True)


def open_page(page: Path) -> None:
    """Open a page in a browser, or say that there is none."""
    if typer.launch(page.absolute().as_uri()):
        say(f"Note: no browser could be opened; the page is {page}", err=True)


def write_report(
    study: Results,
    to: Path,
    *,
    replays: bool,
    films: Sequence[str] = (),
    allow_import: bool,
    known: dict[str, Levels],
    best_seen: bool = False,
) -> Path:
    """Write the report of a study, with a progress bar while reference levels are computed.

    Args:
        study: The study.
        to: The file to write.
        replays: Whether plays can be watched in it.
        films: Names of plays that can be watched in any case.
        allow_import: Whether stored scenarios may name code to import.
        known: Reference levels that need not be computed again; those computed are added.
        best_seen: Whether regret is against the best reward seen in each play, where the best
            reward is not known.

    Returns:
        The file written.
    """
    from functools import partial

    from sparq_sim.analysis.levels import compute_levels
    from sparq_sim.cli.console import make_console
    from sparq_sim.report import write
    from sparq_sim.report.progress import show_level_progress

    with show_level_progress(make_console(err=True)) as watch:
        find = partial(compute_levels, known=known, watch=watch)
        return write(
            study,
            to,
            replays=replays,
            films=films,
            allow_import=allow_import,
            levels=find,
            best_seen=best_seen,
        )


def _parse_limits(text: str | None) -> tuple[float, float] | None:
    """Read LOW,HIGH; None where nothing is given."""
    if text is None:
        return None
    try:
        low, high = (float(word) for word in text.split(","))
    except ValueError:
        low = high = nan
    if not (isfinite(low) and isfinite(high) and low < high):
        raise SparqError(f"--ylim {text}: expected LOW,HIGH, two numbers that grow, as in 0,0.5")
    return low, high


def _parse_condition(text: str) -> tuple[str, object]:
    """Read FIELD=VALUE; the field is the path of a swept field, or its last word."""
    from sparq_sim.scenario.files import read_value

    name, equals, value = text.partition("=")
    if not equals:
        raise SparqError(f"--where {text}: expected FIELD=VALUE, as in transit=2")
    return name.strip(), read_value(value)
