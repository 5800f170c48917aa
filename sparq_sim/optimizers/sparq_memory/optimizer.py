"""SparQ with memory: the optimizer, its fields and whom it may ask."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from numpy.random import Generator
from pydantic import NonNegativeInt

from sparq_sim.errors import PluginError, did_you_mean
from sparq_sim.fields import Amount
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.shared.ucb import GPOptimizer
from sparq_sim.optimizers.shared.widths import AnyWidth, ConstantWidth
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.optimizer import Asks

__all__ = ["SparQMemory"]


class SparQMemory(GPOptimizer):
    """SparQ with memory: it keeps all answers, learns how the reward changes, and asks what pays.

    A bank of hypotheses foretells the reward: that it stands still, that it changes at each place
    with or without a velocity, within some rounds or within hundreds, or that a part of it is
    carried along as a whole. They are weighed by how well they foretold, and the evidence is
    forgotten slowly. The point with the highest upper confidence bound is played, for the moment at
    which the move takes effect; what an expert can be asked is worth less exploring by a play, and
    so is what few rounds are left for.

    Queries are those whose answers raise the best expected reward of the next decision most (the
    knowledge gradient), as long as that is worth their price over the rounds for which an answer
    stays true. Answers count at the moment of their measurement, however late they come. Now and
    then an expert is asked about the point that is played: where its answers differ from the
    observations by more than they claim, they are believed less, and a warning states it. The cost
    of a round does not grow.
    """

    asks: ClassVar[Asks | None] = "anywhere"
    queries: NonNegativeInt = 2
    """About how many points to ask in a round at most, all experts together; 0 to ask nobody."""
    price: Amount | None = None
    """What an answer about one point must be worth, in reward units; by default what the channel of
    the expert charges for it."""
    experts: tuple[str, ...] | None = None
    """The names of the experts that may be asked; by default all of the play."""
    width: AnyWidth = ConstantWidth(value=1.75)
    """How many stds above the mean the upper confidence bound lies, where no expert can be asked: a
    number, or a table with a `kind`. It is up to 1.2 times as many early in a play, and fewer near
    its end."""
    waits: bool = False
    """Whether to ask when a round begins and to play when the answers are there."""

    def start_memory(self, prior: GPPrior, briefing: Briefing, rng: Generator) -> Memory:
        from sparq_sim.optimizers.sparq_memory.memory import DriftMemory  # It loads scipy.

        return DriftMemory(self, prior, briefing)

    def check_experts(self, names: Collection[str]) -> None:
        for name in self.experts or ():
            if name not in names:
                raise PluginError(
                    f"no expert of this play is called {name!r}: {did_you_mean(name, names)}"
                )
