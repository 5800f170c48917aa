"""The command `run`: play a scenario into the folder of a study."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparq_sim.cli.options import (
    AllowImport,
    AllowOutside,
    ExecutorName,
    Jobs,
    MostPlays,
    OpenPage,
    Overrides,
    Source,
    load_scenario,
    make_executor,
)
from sparq_sim.cli.output import say
from sparq_sim.cli.report import REPORT, open_page, write_report
from sparq_sim.errors import SparqError
from sparq_sim.limits import MOST_PLAYS
from sparq_sim.plugin.exits import refuse_exits
from sparq_sim.plugin.frames import describe_error

if TYPE_CHECKING:
    from sparq_sim.analysis.levels import Level, Levels
    from sparq_sim.study.results import Results

__all__ = ["run"]


def run(
    scenario: Source,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the study; studies/NAME by default.")
    ] = None,
    overrides: Overrides = None,
    jobs: Jobs = None,
    executor: ExecutorName = "processes",
    limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="How long a play may take before it is ended; 3600 by default, 0 for no limit.",
        ),
    ] = None,
    into: Annotated[
        bool, typer.Option("--into", help="Use the folder even if it holds another scenario.")
    ] = False,
    allow_import: AllowImport = False,
    allow_outside: AllowOutside = False,
    most_plays: MostPlays = MOST_PLAYS,
    no_report: Annotated[
        bool, typer.Option("--no-report", help="Do not write report.html.")
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit with code 3 if results are meaningless: all answers useless, or regret "
            "below 0.",
        ),
    ] = False,
    laws: Annotated[
        bool,
        typer.Option(
            "--laws", help="Check each play against the laws of plays; one that breaks a law fails."
        ),
    ] = False,
    open_: OpenPage = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what would be played, and how much is there."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print errors and notes only.")
    ] = False,
) -> None:
    """Run a scenario: play all its optimizers, settings and replications.

    Plays that the folder already holds are reused: an interrupted run continues.
    """
    from sparq_sim.analysis.cautions import cautions
    from sparq_sim.analysis.kept_levels import keep_levels
    from sparq_sim.analysis.levels import compute_levels, note_estimates
    from sparq_sim.analysis.standings import find_standings
    from sparq_sim.cli.console import make_console
    from sparq_sim.cli.results import print_results
    from sparq_sim.report.progress import show_level_progress, show_progress
    from sparq_sim.study.executors import LIMIT
    from sparq_sim.study.progress import count_plays
    from sparq_sim.study.study import Study

    if open_ and no_report:
        raise SparqError("--open opens the report: leave out --no-report")
    loaded = load_scenario(
        scenario, overrides, allow_import=allow_import, allow_outside=allow_outside, check_data=True
    )
    name = Path(scenario)
    folder = out or Path("studies") / (name.stem if name.suffix or name.is_absolute() else name)
    screen = make_console(err=True, quiet=quiet)
    study = Study(loaded, folder, into=into, most_plays=most_plays)
    if dry_run:
        from sparq_sim.cli.dry_run import print_plan

        print_plan(study)
        return
    with _stopping(folder):
        with show_progress(screen) as watch:
            done = study.run(
                make_executor(executor, jobs),
                watch=watch,
                laws=laws,
                limit=LIMIT if limit is None else limit,
            )
        standings = find_standings(study.results)
        rows = standings.rows
        known: dict[str, Levels] = {}
        if rows:
            reference_levels: list[Level] = []
            try:
                if rows[0].criterion.is_regret:  # Levels are regrets.
                    with refuse_exits(), show_level_progress(screen) as watch_levels:
                        reference_levels = compute_levels(
                            loaded,
                            replications=sorted({p.replication for p in study.results.finished()}),
                            known=known,
                            watch=watch_levels,
                        )
            except Exception as error:  # A plug-in may raise anything; the plays are there.
                say(f"Note: no reference levels: {describe_error(error)}", err=True)
            keep_levels(study.results, reference_levels)
            if not quiet:
                print_results(loaded.title, standings, reference_levels)
        warned = cautions(study.results)
        for note in (
            *done.notes,
            *(caution.text for caution in warned if caution.topic != "no regret"),
            *note_estimates(known.values()),
        ):
            say(f"Note: {note}", err=True)
        if not quiet:
            plays = count_plays(done.done - done.resumed)
            say(f"{plays} in {done.elapsed:.1f} s, {done.resumed} reused; all in {folder}")
        if rows and not no_report:
            made = _try_report(
                study.results, folder / REPORT, allow_import=allow_import, known=known
            )
            if made and not quiet:
                say(f"Report: {made}")
            if made and open_:
                open_page(made)
    if done.failed_plays:
        failed: dict[str, list[str]] = {}
        for failure in done.failed_plays:
            failed.setdefault(failure.reason, []).append(failure.play.optimizer)
        for reason, names in failed.items():
            told = ", ".join(dict.fromkeys(names))
            say(f"Failed: {told} ({len(names)} of {len(study.plays())}): {reason}", err=True)
        raise typer.Exit(1)
    if strict and any(caution.grave for caution in warned):
        say("Error: some results are meaningless; see the notes above (--strict)", err=True)
        raise typer.Exit(3)


@contextmanager
def _stopping(folder: Path) -> Iterator[None]:
    """Say how to go on where a signal stops what is done meanwhile, and end with its code."""
    from sparq_sim.study.executors import catch_sigterm

    with catch_sigterm():
        try:
            yield
        except KeyboardInterrupt as stop:
            message = f"Stopped. Finished plays are in {folder}; run the same command to continue."
            say(message, err=True)
            raise typer.Exit(128 + getattr(stop, "number", signal.SIGINT)) from None


def _try_report(
    study: Results, to: Path, *, allow_import: bool, known: dict[str, Levels]
) -> Path | None:
    """Write the report of a run; if that fails, say so and go on."""
    try:
        with refuse_exits():
            return write_report(study, to, replays=True, allow_import=allow_import, known=known)
    except Exception as error:  # Plug-ins, files and disks may raise anything.
        say(f"Note: no report: {describe_error(error)}; `sparq-sim report` tries again", err=True)
        return None
