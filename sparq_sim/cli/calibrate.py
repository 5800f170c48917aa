"""The command `calibrate`: channels fitted to a journal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparq_sim.cli.output import emit
from sparq_sim.errors import SparqError

if TYPE_CHECKING:
    from sparq_sim.simulation.trace import Trace

__all__ = ["calibrate"]


def calibrate(
    journal: Annotated[
        Path,
        typer.Argument(
            help="A journal, or the folder of a live play; or a stored play with its replies: a "
            "trace file, or a file in the rounds folder of a study."
        ),
    ],
) -> None:
    """Fit channels to what was heard in a play, and print them as TOML.

    A scenario takes the tables as they are; comments say how well each part fits.
    """
    from sparq_sim.live.calibrate.channels import calibrate as fit
    from sparq_sim.live.calibrate.toml import write_toml

    trace = _read_trace(journal)
    try:
        channels = fit(trace)
    except SparqError as error:
        raise SparqError(f"{journal}: {error}") from error
    emit(write_toml(channels, f"{journal.name}, {len(trace)} rounds").rstrip("\n"))


def _read_trace(file: Path) -> Trace:
    """Read a play from any file that holds one with its replies."""
    from sparq_sim.cli.plays import read_stored
    from sparq_sim.live.folder import JOURNAL
    from sparq_sim.simulation.trace import Trace

    file = file / JOURNAL if (file / JOURNAL).is_file() else file
    if not file.is_file():
        raise SparqError(f"{file} is not a file; give a journal, as `sparq-sim live` writes it")
    with file.open("rb") as content:
        begin = content.read(4)
    if begin == b"PAR1":
        return read_stored(file).trace
    if begin == b"PK\x03\x04":
        return Trace.load(file)
    from sparq_sim.journal.reader import read_journal

    return read_journal(file).to_trace()
