"""The table `live` of a scenario: how it is played in real time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from sparq_sim.fields import Command, Positive
from sparq_sim.plugin.model import Model

__all__ = ["AnyPause", "LiveTable", "PauseCommand", "PauseFile"]


class PauseFile(Model):
    """Pauses a live play while a file exists.

    The file may hold TOML: `reason`, for the journal, and `bounds`, a pair of numbers for each
    coordinate within which points must lie when the play goes on.
    """

    kind: Literal["file"] = "file"
    file: Path
    """The file, which need not exist; a relative path starts from the folder of the scenario."""


class PauseCommand(Model):
    """Pauses a live play while a command ends with another exit code than 0.

    What it prints may be TOML, as in a file that pauses.
    """

    kind: Literal["command"] = "command"
    command: Command
    """The program and its arguments; no shell is involved. It is run before each round. A relative
    path of the program, as "./check", starts from the folder of the scenario."""
    timeout: Positive = 10.0
    """How long it may take, in seconds; a play whose condition cannot be found out is paused."""


AnyPause: TypeAlias = Annotated[PauseFile | PauseCommand, Field(discriminator="kind")]
"""A condition under which a live play pauses: a table with a `kind`."""


class LiveTable(Model):
    """How a scenario is played in real time, by `sparq-sim live`; virtual time knows none of it."""

    seconds: Positive = 1.0
    """How long a clock unit lasts, in seconds."""
    pause: AnyPause | None = None
    """The condition under which the play and its clock stand still; by default never."""
