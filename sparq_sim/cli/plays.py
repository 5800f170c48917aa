"""Commands about single plays of a study: `reproduce` and `diff`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparq_sim.cli.options import AllowImport
from sparq_sim.cli.output import say
from sparq_sim.errors import SparqError

if TYPE_CHECKING:
    from sparq_sim.study.store import StoredPlay

__all__ = ["diff", "read_stored", "reproduce"]

PlayFile = Annotated[
    Path, typer.Argument(help="A stored play: a file in the rounds folder of a study.")
]


def reproduce(file: PlayFile, allow_import: AllowImport = False) -> None:
    """Play one play of a study again, and check that the result is identical.

    The exit code is 1 if it is not.
    """
    from sparq_sim.scenario.model import Scenario

    stored = read_stored(file).provenance
    if "live" in stored.further:
        raise SparqError(
            f"{file}: it was played in real time, which never comes out twice the same; the "
            "journal beside it can be replayed by the environment and the expert `replay`"
        )
    play, known = stored.play, stored.summary.digest
    scenario = Scenario.from_fingerprint(
        stored.fingerprint, seed=play.seed, name=play.optimizer, allow_import=allow_import
    )
    digest = scenario.play(play.optimizer, play.replication).digest()
    if digest != known:
        say(f"{file}: differs; stored {known}, played now {digest}", err=True)
        raise typer.Exit(1)
    say(f"{file}: identical, {digest}")


def diff(a: PlayFile, b: PlayFile) -> None:
    """Show the first difference between two stored plays.

    The exit code is 1 if they differ.
    """
    from sparq_sim.simulation.trace import first_difference

    difference = first_difference(read_stored(a).trace, read_stored(b).trace)
    say(difference or "identical")
    if difference:
        raise typer.Exit(1)


def read_stored(file: Path) -> StoredPlay:
    """Read a stored play.

    Args:
        file: A file in the folder `rounds` of a study.

    Raises:
        SparqError: It is no such file.
    """
    from sparq_sim.study.store import FolderStore
    from sparq_sim.study.store.protocol import read_play

    remedy = "give one from the folder `rounds` of a study"
    if not file.is_file():
        raise SparqError(f"{file} is not a file; {remedy}")
    home = file.absolute().parent
    if home.name != "rounds" or file.suffix != ".parquet":
        raise SparqError(f"{file} is not a stored play; {remedy}")
    return read_play(FolderStore(home.parent), file.stem)
