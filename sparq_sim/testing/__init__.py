"""Laws that every plug-in obeys, for plug-in authors to run; and a loop that skips its waits."""

from sparq_sim.testing.checks import (
    check_environment,
    check_expert,
    check_optimizer,
    check_part,
    laws,
)
from sparq_sim.testing.law import Law, LawError, UncheckedError
from sparq_sim.testing.laws_of_environments import environment_laws
from sparq_sim.testing.laws_of_experts import expert_laws
from sparq_sim.testing.laws_of_optimizers import optimizer_laws
from sparq_sim.testing.laws_of_parts import part_laws
from sparq_sim.testing.samples import Asker, Slope, Teller
from sparq_sim.testing.waitless_loop import WaitlessLoop

__all__ = [
    "Asker",
    "Law",
    "LawError",
    "Slope",
    "Teller",
    "UncheckedError",
    "WaitlessLoop",
    "check_environment",
    "check_expert",
    "check_optimizer",
    "check_part",
    "environment_laws",
    "expert_laws",
    "laws",
    "optimizer_laws",
    "part_laws",
]
