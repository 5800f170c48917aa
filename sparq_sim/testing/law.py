"""Law: one statement that a plug-in must obey, with a name that says what holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from numpy.random import Generator, Philox

from sparq_sim.plugin.model import Model

__all__ = [
    "FindViolation",
    "Law",
    "LawError",
    "UncheckedError",
    "check_all",
    "full_name",
    "make_law",
    "make_rng",
]

FindViolation: TypeAlias = Callable[[], object]
"""Returns what was seen that breaks a law; None if the law holds."""


class LawError(AssertionError):
    """A plug-in broke a law; the message names the plug-in, the law and what was seen."""


class UncheckedError(Exception):
    """A law cannot be checked: another that it rests on is broken, or its hook is not there."""


@dataclass(eq=False)
class Law:
    """One law that a plug-in obeys: `name` says what holds, and `check` finds whether it does."""

    name: str
    """What holds, as "rewards are finite"."""
    test: Callable[[], None] = field(repr=False)
    """Raises an error where the law is broken."""
    rests_on: tuple[Law, ...] = field(default=(), repr=False)
    """Laws without which this one means nothing."""
    _holds: bool | None = field(default=None, init=False, repr=False)

    def check(self) -> None:
        """Check the law.

        Raises:
            LawError: The law is broken. Where the plug-in itself raised an error, that is raised.
            UncheckedError: A law that it rests on is broken, or its hook is not there.
        """
        __tracebackhide__ = True  # pytest shows where a test failed, not how it was called.
        self._holds = False
        for basis in self.rests_on:
            if not basis.holds:
                raise UncheckedError(f"rests on a law that is broken: {basis.name}")
        self.test()
        self._holds = True

    @property
    def holds(self) -> bool:
        """Whether it holds; checked once."""
        if self._holds is None:
            with suppress(Exception):
                self.check()
        return bool(self._holds)


def check_all(laws: Iterable[Law]) -> None:
    """Check one law after the other, and leave out those that cannot be checked.

    Args:
        laws: In an order in which each comes after those that it rests on.

    Raises:
        LawError: The first law that is broken. Where the plug-in itself raised an error, that is
            raised.
    """
    __tracebackhide__ = True
    for law in laws:
        with suppress(UncheckedError):
            law.check()


def make_law(
    model: Model,
    name: str,
    find_violation: FindViolation,
    *bases: Law,
    remedy: str | Callable[[], str] = "",
) -> Law:
    """Return a law of a model.

    Args:
        model: Whose law it is; an error names it.
        name: What holds.
        find_violation: Returns what breaks the law, or None where it holds.
        bases: The laws that it rests on.
        remedy: How to obey it, shown when it is broken; a function where that depends on what was
            seen.
    """

    def test() -> None:
        __tracebackhide__ = True
        if (seen := find_violation()) is not None:
            cure = remedy if isinstance(remedy, str) else remedy()
            statement = f"{name}: {cure}" if cure else name
            raise LawError(f"{full_name(model)}: {statement}; seen: {seen!s:.300}")

    return Law(name, test, bases)


def full_name(model: Model) -> str:
    """Return the module and the class of a model, as "my_package.experts.Lagged".

    Args:
        model: A plug-in or a part of one.
    """
    return f"{type(model).__module__}.{type(model).__name__}"


def make_rng(seed: int) -> Generator:
    """Return a new generator of random numbers.

    Args:
        seed: An equal one gives equal numbers.
    """
    return Generator(Philox(key=seed))
