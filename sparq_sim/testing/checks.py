"""Checks: functions by which the author of a plug-in checks all its laws.

A test of a plug-in is one line: `test_my_expert = laws(MyExpert(lag=2.0))`, of which pytest shows
each law under its name; or `check_expert(MyExpert(lag=2.0))`, anywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial

from sparq_sim.arrays import Points
from sparq_sim.plugin.environment import Environment
from sparq_sim.plugin.expert import Expert
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.optimizer import Optimizer
from sparq_sim.simulation.play import Experts, check_model
from sparq_sim.testing.law import Law, UncheckedError, check_all, full_name
from sparq_sim.testing.laws_of_environments import environment_laws
from sparq_sim.testing.laws_of_experts import choose_environment, expert_laws
from sparq_sim.testing.laws_of_optimizers import optimizer_laws
from sparq_sim.testing.laws_of_parts import part_laws

__all__ = ["check_environment", "check_expert", "check_optimizer", "check_part", "laws"]


def check_environment(environment: Environment, *, horizon: float = 20.0) -> None:
    """Check all laws of environments, and of the hooks that the landscape has.

    Args:
        environment: What is checked.
        horizon: Until when its landscape is looked at, in clock units.

    Raises:
        LawError: One is broken; the message names the law and what was seen.
    """
    __tracebackhide__ = True
    check_model("environment", Environment, environment)
    check_all(environment_laws(environment, horizon=horizon))


def check_expert(
    expert: Expert,
    environment: Environment | str | None = None,
    *,
    others: Experts | None = None,
) -> None:
    """Check all laws of experts: one answers what it is asked, and leaves everything as it was.

    Args:
        expert: What is checked.
        environment: What it is asked about, or the name of an installed one, as "plume"; by
            default a small one.
        others: Experts that it asks, by name.

    Raises:
        LawError: One is broken; the message names the law and what was seen.
    """
    __tracebackhide__ = True
    check_model("expert", Expert, expert)
    check_all(expert_laws(expert, environment, others=others))


def check_optimizer(optimizer: Optimizer, *, rounds: int = 15) -> None:
    """Check all laws of optimizers: one moves within the domain, and bears what sources do to it.

    Args:
        optimizer: What is checked.
        rounds: How many rounds each play has.

    Raises:
        LawError: One is broken; the message names the law and what was seen.
    """
    __tracebackhide__ = True
    check_model("optimizer", Optimizer, optimizer)
    check_all(optimizer_laws(optimizer, rounds=rounds))


def check_part(part: Model, *, points: Points | None = None) -> None:
    """Check that a draw, a noise, a loss or a kernel keeps what others rely on.

    Args:
        part: What is checked.
        points: Where a kernel is looked at, (n, d); by default along a line.

    Raises:
        LawError: One is broken; the message names the law and what was seen.
    """
    __tracebackhide__ = True
    check_all(part_laws(part, points))


def laws(
    model: Model,
    *,
    environment: Environment | str | None = None,
    others: Experts | None = None,
) -> Callable[[Law], None]:
    """Return a test of all laws of a *model*, for pytest to run one by one.

    `test_my_expert = laws(MyExpert(lag=2.0))` is a whole test: pytest shows each law under its
    name, and skips those that rest on a broken one.

    Args:
        model: What is checked.
        environment: What an expert is asked about, as for `check_expert`.
        others: Experts that an expert asks, by name.

    Raises:
        TypeError: *model* is no plug-in and no part of one, or *environment* or *others* are
            given for one that is no expert.
    """
    found: Callable[[], Iterator[Law]]
    if isinstance(model, Expert):
        found = partial(expert_laws, model, choose_environment(environment), others=others)
    elif environment is not None or others is not None:
        raise TypeError(f"environment and others are for experts, not for {full_name(model)}")
    elif isinstance(model, Environment):
        found = partial(environment_laws, model)
    elif isinstance(model, Optimizer):
        found = partial(optimizer_laws, model)
    elif isinstance(model, Model):
        found = partial(part_laws, model)
    else:
        raise TypeError(f"laws are those of plug-ins and their parts, not of {model!r}")

    def test(law: Law) -> None:
        __tracebackhide__ = True
        try:
            law.check()
        except UncheckedError as unchecked:
            import pytest  # It runs this, so it is there.

            pytest.skip(str(unchecked))

    # Read by the pytest plug-in: the laws, and the line that asked for them, where the test is.
    frame = sys._getframe(1)
    place = frame.f_code.replace(co_firstlineno=frame.f_lineno)
    vars(test).update(sparq_laws=found, place_as=place)
    # In the body of a class, where a function would be given the object as its law.
    return staticmethod(test) if "__qualname__" in frame.f_locals else test
