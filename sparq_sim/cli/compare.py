"""The command `compare`: tables of one or more studies, and paired differences."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparq_sim.cli.completion import complete_folder, complete_swept
from sparq_sim.cli.options import (
    BEST_SEEN,
    AllowImport,
    ExecutorName,
    Jobs,
    make_executor,
)
from sparq_sim.cli.output import emit, print_notes, say
from sparq_sim.errors import SparqError

if TYPE_CHECKING:
    from sparq_sim.analysis.contrasts import Contrast
    from sparq_sim.study.executors import PlayExecutor
    from sparq_sim.study.results import Results
    from sparq_sim.study.store import StoredSummary

__all__ = ["compare"]

_MOST_NAMED = 6
"""How many rows that a comparison leaves out are named; the others are counted."""


def compare(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of studies.", autocompletion=complete_folder)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: a list of objects.")] = False,
    between: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Compare the values of this swept field in pairs.",
            autocompletion=complete_swept,
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXPERT",
            help="Play again without this expert, and compare in pairs. May be repeated.",
        ),
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(help="Compare regret plus spending, at this price per unit of cost."),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VALUE",
            help="What to compare with: a value for --between, an optimizer for --price. "
            "best-seen, alone or besides: regret against the best seen in each play, where the "
            "best reward is not known.",
        ),
    ] = None,
    jobs: Jobs = None,
    executor: ExecutorName = "processes",
    allow_import: AllowImport = False,
) -> None:
    """Compare the optimizers of one or more studies.

    With --between, --without or --price, compare in pairs: what changes with
    a swept value, an expert or the price of queries.
    """
    from functools import partial

    from sparq_sim.analysis.cautions import rows_with_notes
    from sparq_sim.analysis.kept_levels import read_levels
    from sparq_sim.analysis.standings import find_standings
    from sparq_sim.cli.results import print_results
    from sparq_sim.study.results import Results

    if between is not None and without:
        raise SparqError("--between and --without cannot be combined; use one at a time")
    value, best_seen = _read_against(against or [])
    if value is not None and (without or (between is None and price is None)):
        raise SparqError("--against goes with --between FIELD, or with --price alone")
    studies = [Results.open(folder) for folder in folders]
    if between is not None or without or price is not None:
        if without:
            play = partial(
                _compare_without,
                executor=make_executor(executor, jobs),
                allow_import=allow_import,
                best_seen=best_seen,
            )
            asked = [partial(play, expert=expert, price=price or 0.0) for expert in without]
        elif between is not None:
            along = partial(_compare_values, path=between, against=value, best_seen=best_seen)
            asked = [partial(along, price=price or 0.0)]
        else:
            between_all = partial(_compare_prices, against=value, best_seen=best_seen)
            asked = [partial(between_all, price=price or 0.0)]
        _print_comparisons(studies, asked, price=price, as_json=as_json, best_seen=best_seen)
        return
    if as_json:
        rows = [row for study in studies for row in rows_with_notes(study, best_seen=best_seen)]
        emit(json.dumps(rows, indent=2))
    for study in studies:
        if not as_json:
            standings = find_standings(study, best_seen=best_seen)
            levels = read_levels(study) if standings.criterion.is_regret else []
            print_results(study.title or str(study.folder), standings, levels)
        print_notes(study, best_seen=best_seen, skip=() if as_json else ("no regret",))


def _read_against(given: Sequence[str]) -> tuple[str | None, bool]:
    """Return the value to compare with, if any, and whether regret is against the best seen."""
    values = [value for value in given if value != BEST_SEEN]
    if len(values) > 1:
        raise SparqError(f"--against is given for {' and '.join(values)}; choose one")
    return (values[0] if values else None), BEST_SEEN in given


def _print_comparisons(
    studies: Sequence[Results],
    asked: Sequence[Callable[[Results], _Comparison]],
    *,
    price: float | None,
    as_json: bool,
    best_seen: bool,
) -> None:
    """Print the comparisons of each study: paired differences, and remarks on them."""
    from sparq_sim.analysis.cautions import cautions
    from sparq_sim.cli.console import find_room, make_console
    from sparq_sim.report.terminal import contrast_table

    console, rows = make_console(), []
    for study in studies:
        answers: list[_Comparison] = []
        for ask in asked:
            answers.append(answer := ask(study))
            if as_json:
                warned = cautions(study, *answer.beside, best_seen=best_seen)
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
            table = contrast_table(name, answer.rows, priced=priced, width=find_room(console))
            console.print(table)
            for remark in answer.remarks:
                say(remark)
            if price is not None:
                criterion = answer.rows[0].criterion
                name = criterion.with_price
                shown = any(column.header == name for column in table.columns)
                subject = f"{name.capitalize()} is the" if shown else "The difference is in"
                sign = "minus" if criterion.more_is_better else "plus"
                say(
                    f"{subject} {criterion.label} {sign} the spending per round, at a price "
                    f"of {price:g} per unit of cost.\nBelow the break-even price, the one that "
                    "spends more is better; its 95 % interval is in brackets."
                )
        for note in (note for answer in answers for note in answer.notes):
            say(f"Note: {note}", err=True)
        beside = (other for answer in answers for other in answer.beside)
        print_notes(study, *beside, best_seen=best_seen, skip=() if as_json else ("no regret",))
    if as_json:
        emit(json.dumps(rows, indent=2))


@dataclass(frozen=True)
class _Comparison:
    """The result of one comparison within a study."""

    rows: list[Contrast]
    remarks: Sequence[str]
    """For a reader of the table."""
    notes: Sequence[str] = ()
    """What must be known in any case."""
    beside: tuple[Results, ...] = ()
    """Studies whose plays are compared with those of the study."""


def _note_left_out(plays: Sequence[StoredSummary]) -> list[str]:
    """Return a note on rows that are compared with none, of which these are *plays*."""
    from sparq_sim.study.settings import format_setting

    left = [
        f"{each.optimizer} ({format_setting(each.setting)})" if each.setting else each.optimizer
        for each in plays
    ]
    more = f"; and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
    named = "; ".join(left[:_MOST_NAMED])
    return [f"left out, because there are no plays to compare with: {named}{more}"] if left else []


def _compare_values(
    study: Results, *, path: str, against: str | None, price: float, best_seen: bool
) -> _Comparison:
    """Compare the values of a swept path."""
    from sparq_sim.analysis.contrasts import compare_values, find_linked_paths, find_unpaired
    from sparq_sim.scenario.files import read_value
    from sparq_sim.study.settings import find_path, list_paths

    found = study.finished()
    value = None if against is None else read_value(against)
    rows = compare_values(found, path, against=value, price=price, best_seen=best_seen)
    path = find_path(path, list_paths(each.setting for each in found))
    moving = find_linked_paths(found, path)
    along = f" (together with {', '.join(moving)}, which is swept along with it)" if moving else ""
    remarks = [f"Compared with {path} = {rows[0].against}{along}, all else being equal."]
    changed = [each for each in found if path in each.setting]
    if same := sorted({each.optimizer for each in found} - {each.optimizer for each in changed}):
        remarks.append(f"It makes no difference to: {', '.join(same)}.")
    return _Comparison(rows, remarks, _note_left_out(find_unpaired(changed, rows)))


def _compare_prices(
    study: Results, *, price: float, against: str | None, best_seen: bool
) -> _Comparison:
    """Compare optimizers by regret plus price, or reward minus price."""
    from sparq_sim.analysis.contrasts import compare_at_price, find_cheapest, find_unpaired

    found = study.finished()
    rows = compare_at_price(found, price, against=against, best_seen=best_seen)
    least = find_cheapest(found, best_seen=best_seen)
    why = ""
    if against is None:
        why = ", which spends least"
        if len(least) > 1:
            has = "most reward" if rows[0].criterion.more_is_better else "least regret"
            why = f": of those that spend least ({', '.join(least)}), it has the {has}"
    remark = f"Compared with {rows[0].against}{why}."
    return _Comparison(rows, [remark], _note_left_out(find_unpaired(found, rows)))


def _compare_without(
    study: Results,
    *,
    expert: str,
    price: float,
    executor: PlayExecutor,
    allow_import: bool,
    best_seen: bool,
) -> _Comparison:
    """Play what is missing without an expert, and compare."""
    from sparq_sim.analysis.contrasts import compare_without, find_unpaired
    from sparq_sim.analysis.summary import group
    from sparq_sim.cli.console import make_console
    from sparq_sim.report.progress import show_progress
    from sparq_sim.report.terminal import expert_in_words
    from sparq_sim.study.ablation import plan_without
    from sparq_sim.study.executors import catch_sigterm
    from sparq_sim.study.settings import agree

    other = plan_without(study, expert, allow_import=allow_import)
    with show_progress(make_console(err=True)) as watch, catch_sigterm():
        done = other.run(executor, watch=watch)
    notes = list(done.notes)
    if done.failed_plays:
        reasons = "; ".join(dict.fromkeys(failure.reason for failure in done.failed_plays))
        count = f"{len(done.failed_plays)} of {len(other.plays())} plays"
        failed = f"{count} without the expert {expert!r} failed: {reasons}"
        if not done.done:
            raise SparqError(failed)
        notes.append(failed)
    found = study.finished()
    rows = compare_without(
        found, other.results.finished(), expert, price=price, best_seen=best_seen
    )
    # Those that were refused are in the notes of the study without the expert.
    tried = {play.label: play for play in other.plays()}.values()
    left = [
        play
        for play in find_unpaired(found, rows)
        if any(play.optimizer == o.optimizer and agree(play.setting, o.setting) for o in tried)
    ]
    played = Counter(name for name, _ in group(found))
    words = expert_in_words(expert, rows, played=played)
    return _Comparison(rows, words, [*notes, *_note_left_out(left)], (other.results,))
