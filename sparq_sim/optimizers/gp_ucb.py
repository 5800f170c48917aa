"""GP-UCB: the upper confidence bound of a reward that stands still."""

from __future__ import annotations

from sparq_sim.optimizers.shared.ucb import AskingGPOptimizer

__all__ = ["GPUCB"]


class GPUCB(AskingGPOptimizer):
    """The optimizer that plays argmax mu(x) + beta_t sigma(x), all observations alike, however old.

    Srinivas, Krause, Kakade and Seeger 2012. With the width of Chowdhury and Gopalan (2017) it is
    IGP-UCB.
    """
