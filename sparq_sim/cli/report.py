"""Commands that turn a study into files: `report`, `plot`, `export`, `compact`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparq_sim.cli.options import AllowImport, Folder, read_value
from sparq_sim.cli.output import print_notes, say
from sparq_sim.errors import SparqError

if TYPE_CHECKING:
    from sparq_sim.simulation.references import References
    from sparq_sim.study.results import Results

__all__ = ["REPORT", "compact", "export", "plot", "report", "write_report"]

REPORT = "report.html"


class Exported(StrEnum):
    """What `export` can write."""

    SUMMARY = "summary"
    ROUNDS = "rounds"
    REPLIES = "replies"


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
    from sparq_sim.study.results import Results

    study, file = Results.open(folder, begun=True), to or folder / REPORT
    made = write_report(study, file, replays=not no_replays, allow_import=allow_import, known={})
    say(str(made))


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
    from sparq_sim.study.results import Results

    chosen = dict(_parse_condition(text) for text in where or [])
    study = Results.open(folder)
    say(str(save(study, kind, to, width=width, where=chosen)))
    print_notes(study)


def export(
    folder: Folder,
    to: Annotated[Path, typer.Argument(help="A file that ends in .csv, .parquet or .json.")],
    what: Annotated[Exported, typer.Option(help="Which table.")] = Exported.SUMMARY,
) -> None:
    """Write the summary, the rounds or the replies of a study to one file."""
    from sparq_sim.analysis.export import export as write
    from sparq_sim.study.results import Results

    study = Results.open(folder)
    write(study, to, what.value)
    typer.echo(f"{to}")
    print_notes(study)


def compact(folder: Folder) -> None:
    """Merge the many small files of a study into a few."""
    from sparq_sim.study.results import Results

    Results.open(folder).compact()
    typer.echo(f"{folder}: compacted")


def write_report(
    study: Results, to: Path, *, replays: bool, allow_import: bool, known: dict[str, References]
) -> Path:
    """Write a report, showing how far its reference levels have come; those *known* are taken."""
    from functools import partial

    from rich.console import Console

    from sparq_sim.analysis.levels import compute_levels
    from sparq_sim.report import write
    from sparq_sim.report.progress import show_level_progress

    with show_level_progress(Console(stderr=True)) as watch:
        find = partial(compute_levels, known=known, watch=watch)
        return write(study, to, replays=replays, allow_import=allow_import, levels=find)


def _parse_condition(text: str) -> tuple[str, object]:
    """Read FIELD=VALUE; a field is one of those swept, in full or its last word."""
    name, equals, value = text.partition("=")
    if not equals:
        raise SparqError(f"--where {text}: expected FIELD=VALUE, as in transit=2")
    return name.strip(), read_value(value)
