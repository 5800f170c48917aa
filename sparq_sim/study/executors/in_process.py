"""The executor that plays in this process."""

from __future__ import annotations

from sparq_sim.study.executors.landscapes import close_landscapes
from sparq_sim.study.executors.protocol import Outcomes, Work
from sparq_sim.study.executors.worker import compute

__all__ = ["InProcess"]


class InProcess:
    """Plays one after the other in this process: for debugging, and for what cannot be sent.

    A play that takes longer than its limit is ended unless it hangs in native code.
    """

    def outcomes(self, work: Work) -> Outcomes:
        """Compute all plays.

        Args:
            work: What to compute.

        Yields:
            The outcome of each play, as soon as it is known.
        """
        try:
            for group in work.groups:
                for task in group:
                    yield compute(task, work.home, limit=work.limit)
        finally:
            close_landscapes()
