"""The expert `program`: a program that reads and writes lines of JSON."""

from __future__ import annotations

from sparq_sim.remote.program import ProgramAddress
from sparq_sim.remote.source import RealExpert

__all__ = ["Program"]


class Program(ProgramAddress, RealExpert):
    """A program in any language that answers over its pipes; for live play only.

    It reads a question of the wire format from each line of stdin, and writes an answer to stdout,
    a line each. It runs for the whole play, may have many questions at once, and may also write
    readings that nobody asked for. In a scenario file::

        [experts.lab]
        kind = "program"
        command = ["./lab", "--fast"]
        timeout = 10.0
        channel = { cost = 0.5, capacity = 4 }

    To run a program anew for each question, call it from an expert of your own with `world.run`.
    """
