"""The environment `program`: a real system, steered by a program over its pipes."""

from __future__ import annotations

from sparq_sim.remote.program import ProgramAddress
from sparq_sim.remote.system import RealEnvironment

__all__ = ["Program"]


class Program(ProgramAddress, RealEnvironment):
    """A real system that a program steers: it applies points and reports rewards.

    It is for live play only. The program reads a request of the wire format from each line of
    stdin, and writes the reward to stdout, a line each. In a scenario file::

        [environment]
        kind = "program"
        command = ["./plant"]
        bounds = [[0.0, 1.0]]
        safe_state = { start = [0.5], end = "hold", failure = { command = ["./stop.sh"] } }

    Nobody knows the best reward of a real system, so a play has no regret.
    """
