"""Laws that every plug-in obeys, for plug-in authors to run; and a loop that skips its waits."""

from sparq_sim.testing.checks import (
    Asker,
    Law,
    LawError,
    Slope,
    Teller,
    UncheckedError,
    WaitlessLoop,
    check_environment,
    check_expert,
    check_optimizer,
    check_part,
    environment_laws,
    expert_laws,
    laws,
    optimizer_laws,
    part_laws,
)

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
