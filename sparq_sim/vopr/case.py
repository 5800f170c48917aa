"""Cases: a seed becomes a scenario, perhaps without some parts, and a command that replays it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from shlex import join

from pydantic import ValidationError

from sparq_sim.errors import ScenarioError, SparqError
from sparq_sim.scenario.model import Scenario
from sparq_sim.scenario.tables import Table, remove, split_path
from sparq_sim.vopr.generate import generate_table

__all__ = ["Case"]

_MOST_ATTEMPTS = 50
"""At drawing a scenario that is valid."""


@dataclass(frozen=True)
class Case:
    """One random scenario. It is the same on every machine that has the same version."""

    seed: int
    """From which all of it is drawn."""
    without: tuple[str, ...] = ()
    """Dotted paths of what is left out of its table, one after the other."""
    rounds: int | None = None
    """How many rounds are played; by default as many as were drawn."""

    @cached_property
    def _drawn(self) -> Table:
        """The first valid table that the seed gives."""
        for attempt in range(_MOST_ATTEMPTS):
            table = generate_table(self.seed, attempt)
            try:
                _read(table)
            except ScenarioError:
                continue
            return table
        raise SparqError(f"seed {self.seed} gives no valid scenario in {_MOST_ATTEMPTS} attempts")

    @cached_property
    def table(self) -> Table:
        """The table of the scenario, as a file would have it."""
        table = self._drawn
        for path in self.without:
            shorter = remove(table, split_path(path))
            if shorter == table:
                raise SparqError(f"the scenario of seed {self.seed} has no {path} to leave out")
            table = shorter
        return table if self.rounds is None else {**table, "rounds": self.rounds}

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario.

        Raises:
            ScenarioError: What is left out is needed.
        """
        return _read(self.table)

    def command(self, *options: str) -> str:
        """Return the command that plays it again.

        Args:
            options: Further options of the command.
        """
        words = ["sparq-sim", "vopr", "--seed", str(self.seed)]
        for path in self.without:
            words += ["--without", path]
        if self.rounds is not None:
            words += ["--rounds", str(self.rounds)]
        return join([*words, *options])


def _read(table: Table) -> Scenario:
    try:
        return Scenario.model_validate(table, context={"allow_import": True})
    except ValidationError as error:
        raise ScenarioError(*(each["msg"] for each in error.errors())) from error
