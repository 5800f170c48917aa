"""The command `vopr`: the simulator attacks itself with random plays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sparq_sim.cli.output import say
from sparq_sim.errors import SparqError, did_you_mean

if TYPE_CHECKING:
    from sparq_sim.vopr.run import Failed, Tested

__all__ = ["vopr"]

_LINES = 20
"""Of progress, for all seeds together."""


def vopr(
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many seeds to play; 100 by default.")
    ] = None,
    begin: Annotated[int, typer.Option("--from", min=0, help="The first seed.")] = 0,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Play this seed alone, as a failure tells.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH", help="Leave out a part of the scenario of --seed. May be repeated."
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Play so many rounds of the scenario of --seed.")
    ] = None,
    executor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also play on this executor: in-process, pooled, processes, dask, or none. May be "
            "repeated; by default every tenth seed is played on all of them, and --seed on none.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes that check seeds.")] = 1,
) -> None:
    """Test the simulator by random plays, which must break no law.

    Each seed is a random scenario. It is played under both clocks, twice, with another future and
    with one more expert, and all that must hold is checked. A failure is made as small as it can
    be, and printed with the command that plays it again; the exit code is then 1.
    """
    from sparq_sim.vopr.case import Case
    from sparq_sim.vopr.executors import list_executors
    from sparq_sim.vopr.run import run_vopr

    there = list_executors()
    for name in executor or ():
        if name not in (*there, "none"):
            known = did_you_mean(name, [*there, "none"])
            raise SparqError(
                f"--executor {name}: no such executor, or it is not installed: {known}"
            )
    chosen = there if executor is None and seed is None else executor or []
    if seed is None:
        if without or rounds:
            raise SparqError("--without and --rounds are about one scenario; give its --seed")
        cases = [Case(number) for number in range(begin, begin + (seeds or 100))]
    else:
        if seeds is not None or begin:
            raise SparqError("--seed is one seed alone; leave out --seeds and --from")
        cases = [Case(seed, tuple(without or ()), rounds)]
        _ = cases[0].scenario  # What cannot be left out is said at once.
    step = max(1, len(cases) // _LINES)

    def tell(tested: Tested) -> None:
        if len(cases) > 1 and (tested.seeds % step == 0 or tested.seeds == len(cases)):
            failed = f", {len(tested.failed)} failed" if tested.failed else ""
            say(f"{tested.seeds} of {len(cases)} seeds{failed}", err=True, dim=True)

    tested = run_vopr(
        cases,
        executors=[name for name in chosen if name != "none"],
        jobs=jobs,
        watch=tell,
    )
    _print_coverage(tested, is_single=seed is not None)
    for failed in tested.failed:
        _print_failed(failed)
    if tested.failed:
        raise typer.Exit(1)
    say(f"{tested.seeds} {'seed' if tested.seeds == 1 else 'seeds'}: every law holds")


def _print_coverage(tested: Tested, *, is_single: bool) -> None:
    """Print how many seeds had what, and what none of many had."""
    from sparq_sim.vopr.coverage import list_unmet

    groups: dict[str, list[str]] = {}
    for (group, name), count in sorted(tested.met.items()):
        groups.setdefault(group, []).append(f"{name} {count}")
    for group, names in groups.items():
        say(f"{group}: {', '.join(names)}")
    if is_single:
        return
    for group, names in list_unmet(tested.met).items():
        say(f"Warning: of {group}, never met: {', '.join(names)}", err=True)


def _print_failed(failed: Failed) -> None:
    for broken in failed.broken:
        say(f"Broken: {broken}", err=True)
    say(f"Play it again: {failed.command}", err=True)
