"""The command line: sparq-sim."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

import sparq_sim
from sparq_sim.errors import SparqError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from sparq_sim.plugins import Kind
    from sparq_sim.trace import Trace

app = typer.Typer(
    help=sparq_sim.__doc__,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
)

KINDS: tuple[Kind, ...] = ("environment", "expert", "optimizer")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(sparq_sim.__version__)
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


@app.command("list")
def list_plugins() -> None:
    """List the environments, experts and optimizers that are installed."""
    from sparq_sim import plugins

    for kind in KINDS:
        typer.echo(f"{kind}s: {', '.join(plugins.names(kind))}")


@app.command()
def demo(
    rounds: Annotated[int, typer.Option(min=20, help="Rounds of a play.")] = 500,
    replications: Annotated[int, typer.Option(min=1, help="Plays of an optimizer.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Of all chance.")] = 0,
) -> None:
    """Play the paper's synthetic function with four optimizers, and print a table."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    from sparq_sim.channel import Channel
    from sparq_sim.loop import Rules, play
    from sparq_sim.measures import references
    from sparq_sim.plugins import load
    from sparq_sim.streams import Streams

    console = Console()
    environment = load("environment", "synthetic")()
    landscape = environment.start(Streams(seed).generator("environment"))
    expert = load("expert", "truth")()
    feedback = Channel(noise=0.1)
    road = Channel(noise=0.1, cost_per_point=0.001)
    traces: dict[str, list[Trace]] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("plays", total=len(DEMO) * replications)
        for name in DEMO:
            progress.update(task, description=name)
            for replication in range(replications):
                trace = play(
                    load("optimizer", name)(),
                    environment,
                    Rules(rounds=rounds),
                    experts={"expert": (expert, road)},
                    feedback=feedback,
                    seed=seed,
                    replication=replication,
                    landscape=landscape,
                )
                traces.setdefault(name, []).append(trace)
                progress.advance(task)
    times = [float(t) for t in range(1, rounds + 1)]
    levels = references(landscape, times)
    table = _demo_table(traces)
    table.add_section()
    for label, level in (
        ("uniform, expected", levels.uniform),
        ("best fixed point", levels.fixed),
        ("one round late", levels.late),
    ):
        table.add_row(label, f"{level:.4f}         ", style="dim")
    console.print(table)
    _explain(console, rounds, replications)


DEMO = ("uniform", "gp-ucb", "tv-gp-ucb", "sparq-gp-ucb")
"""What the demonstration compares: chance, no memory of time, forgetting, and asking."""


def _demo_table(traces: dict[str, list[Trace]]) -> Table:
    import numpy as np
    from rich import box
    from rich.table import Table

    from sparq_sim.measures import average_regret, exponent, regret, tally

    table = Table(title="The paper's synthetic function", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("policy", no_wrap=True)
    for heading in ("average regret", "growth", "asked", "spent", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, plays in traces.items():
        finals = np.array([average_regret(trace)[-1] for trace in plays])
        growth = exponent(np.mean([regret(trace) for trace in plays], axis=0))
        asked = np.mean([tally(trace).asked / len(trace) for trace in plays])
        table.add_row(
            name,
            f"{finals.mean():.4f} ± {finals.std():.4f}",
            f"{growth.value:.2f} ± {(growth.high - growth.low) / 2:.2f}",
            f"{asked:.1f}",
            f"{np.mean([trace.spent for trace in plays]):.2f}",
            f"{np.mean([trace.rounds['wall'].sum() for trace in plays]):.2f}",
        )
    return table


def _explain(console: Console, rounds: int, replications: int) -> None:
    console.print(
        f"{rounds} rounds, {replications} replications: mean ± std\n"
        "growth   a in R_t ~ t^a, with its 95 % interval\n"
        "asked    points a round, of an expert who knows the truth but for noise\n"
        "spent    on them, at 0.001 a point\n"
        "seconds  of an agent's computing, a play\n"
        "Below the line: what simple policies would get, with full knowledge of the function.",
        style="dim",
    )


def main() -> None:
    """Run the command line; what a user can mend is said in one line, with exit code 2."""
    try:
        app()
    except SparqError as error:
        typer.echo(f"Error: {error}", err=True)
        sys.exit(2)
