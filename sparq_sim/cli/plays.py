"""Commands about single plays of a study: `reproduce` and `diff`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparq_sim.cli.options import AllowImport
from sparq_sim.errors import SparqError

if TYPE_CHECKING:
    from sparq_sim.study.store import StoredPlay

__all__ = ["diff", "reproduce"]

PlayFile = Annotated[Path, typer.Argument(help="A play: a file in the rounds folder of a study.")]


def reproduce(file: PlayFile, allow_import: AllowImport = False) -> None:
    """Play one play of a study again from its provenance, and compare digests."""
    from sparq_sim.scenario.model import Scenario

    told = _read_play(file).provenance
    scenario = Scenario.from_fingerprint(
        told["play"], seed=told["seed"], name=told["optimizer"], allow_import=allow_import
    )
    digest = scenario.play(told["optimizer"], told["replication"]).digest()
    if digest != told["digest"]:
        typer.echo(f"{file}: differs; stored {told['digest']}, played now {digest}", err=True)
        raise typer.Exit(1)
    typer.echo(f"{file}: identical, {digest}")


def diff(a: PlayFile, b: PlayFile) -> None:
    """Say where two plays part: the first record that differs; exit code 1 if they do."""
    from sparq_sim.simulation.trace import first_difference

    difference = first_difference(_read_play(a).trace, _read_play(b).trace)
    typer.echo(difference or "identical")
    if difference:
        raise typer.Exit(1)


def _read_play(file: Path) -> StoredPlay:
    from sparq_sim.study import store

    remedy = "give one from the folder `rounds` of a study"
    if not file.is_file():
        raise SparqError(f"{file} is no file; {remedy}")
    home = file.absolute().parent
    if home.name != "rounds" or file.suffix != ".parquet":
        raise SparqError(f"{file} is no play: it is in no study's folder `rounds`; {remedy}")
    return store.read(home.parent, file.stem)
