"""Draws: random quantities, each a function of a generator."""

from __future__ import annotations

import csv
import math
from abc import abstractmethod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.random import Generator, Philox
from pydantic import (
    Field,
    model_validator,
)

from sparq_sim.arrays import Values
from sparq_sim.fields import ModestAmount, ModestPositive
from sparq_sim.limits import check_data_file
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.parts import PartChoice, check_number, check_numbers
from sparq_sim.plugin.result_checks import ResultChecks

__all__ = [
    "PROBES",
    "AnyDraw",
    "Constant",
    "Draw",
    "Empirical",
    "Exponential",
    "Gamma",
    "Lognormal",
    "Pareto",
    "Uniform",
    "read_column",
]


def _amounts(draw: Draw, given: object, rng: Generator, count: int) -> Values:
    return check_numbers(draw, "sample", given, count=count, least=max(0.0, draw.least))


def _expected(draw: Draw, given: object) -> float:
    # Where the tail is heavy there may be no mean.
    return math.inf if given == math.inf else check_number(draw, "expected", given, least=0.0)


class Draw(Model):
    """A quantity that is never negative: a duration in clock units, or a cost."""

    _result_checks: ClassVar[ResultChecks] = {"sample": _amounts, "expected": _expected}

    @property
    @abstractmethod
    def expected(self) -> float:
        """The mean of the draws; infinite where there is none."""

    @property
    def least(self) -> float:
        """What no draw falls below; 0 unless more is known."""
        return 0.0

    @abstractmethod
    def sample(self, rng: Generator, count: int) -> Values:
        """Draw *count* of them; the first of many is the same as one alone.

        Args:
            rng: The generator to draw from.
            count: How many.

        Returns:
            The draws, (count,), none below `least`.
        """


class Constant(Draw):
    """The same *value* each time."""

    kind: Literal["constant"] = "constant"
    value: ModestAmount
    """What each draw is: a duration in clock units, or a cost."""

    @property
    def expected(self) -> float:
        """What is expected: *value*."""
        return self.value

    @property
    def least(self) -> float:
        """What no draw falls below: *value*."""
        return self.value

    def sample(self, rng: Generator, count: int) -> Values:
        """Return *value*, *count* times, without drawing anything."""
        return np.full(count, self.value)


class Uniform(Draw):
    """Between *low* and *high*, each value with the same probability."""

    kind: Literal["uniform"] = "uniform"
    low: ModestAmount = 0.0
    """What no draw falls below."""
    high: ModestAmount
    """What no draw exceeds; at least `low`."""

    @model_validator(mode="after")
    def _in_order(self) -> Uniform:
        if self.low > self.high:
            raise ValueError(f"low {self.low} lies above high {self.high}; swap them")
        return self

    @property
    def expected(self) -> float:
        """What is expected: (low + high) / 2."""
        return (self.low + self.high) / 2

    @property
    def least(self) -> float:
        """What no draw falls below: *low*."""
        return self.low

    def sample(self, rng: Generator, count: int) -> Values:
        """Draw *count* of them."""
        return rng.uniform(self.low, self.high, count)


class Exponential(Draw):
    """Durations that forget how long they have lasted; *mean* in clock units."""

    kind: Literal["exponential"] = "exponential"
    mean: ModestPositive
    """The mean of the draws: a duration in clock units, or a cost."""

    @property
    def expected(self) -> float:
        """What is expected."""
        return self.mean

    def sample(self, rng: Generator, count: int) -> Values:
        """Draw *count* of them."""
        return rng.exponential(self.mean, count)


class Lognormal(Draw):
    """Most near *median*, a few much longer; *sigma* is the std of the logarithm."""

    kind: Literal["lognormal"] = "lognormal"
    median: ModestPositive
    """What half of the draws exceed: a duration in clock units, or a cost."""
    sigma: ModestPositive
    """The std of the logarithm of a draw; the larger, the heavier the tail."""

    @property
    def expected(self) -> float:
        """What is expected: median exp(sigma^2 / 2)."""
        exponent = math.log(self.median) + self.sigma**2 / 2
        return math.exp(exponent) if exponent < 709 else math.inf

    def sample(self, rng: Generator, count: int) -> Values:
        """Draw *count* of them."""
        return rng.lognormal(math.log(self.median), self.sigma, count)


class Gamma(Draw):
    """The sum of *shape* exponential durations with mean *scale* each, were *shape* whole."""

    kind: Literal["gamma"] = "gamma"
    shape: ModestPositive
    """How many exponential durations add up; it need not be whole."""
    scale: ModestPositive
    """The mean of each of these durations, in clock units, or as a cost."""

    @property
    def expected(self) -> float:
        """What is expected: shape scale."""
        return self.shape * self.scale

    def sample(self, rng: Generator, count: int) -> Values:
        """Draw *count* of them."""
        return rng.gamma(self.shape, self.scale, count)


class Pareto(Draw):
    """At least *minimum*, with a tail P(X > x) = (minimum / x)^shape; heavy below shape 2."""

    kind: Literal["pareto"] = "pareto"
    minimum: ModestPositive
    """What no draw falls below: a duration in clock units, or a cost."""
    shape: ModestPositive
    """How fast the tail falls: up to 1 there is no mean, up to 2 no variance."""

    @property
    def expected(self) -> float:
        """What is expected: minimum shape / (shape - 1), infinite for shape up to 1."""
        return self.minimum * self.shape / (self.shape - 1) if self.shape > 1 else math.inf

    @property
    def least(self) -> float:
        """What no draw falls below: *minimum*."""
        return self.minimum

    def sample(self, rng: Generator, count: int) -> Values:
        """Draw *count* of them."""
        return self.minimum * (1 + rng.pareto(self.shape, count))


class Empirical(Draw):
    """One of the recorded *values*, which are given, or read from a *column* of a CSV *file*."""

    kind: Literal["empirical"] = "empirical"
    values: Annotated[tuple[ModestAmount, ...], Field(min_length=1)]
    """The recorded values, each drawn with the same probability."""

    @model_validator(mode="before")
    @classmethod
    def _from_file(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not given.keys() & {"file", "column"}:
            return given
        if "values" in given or not given.keys() >= {"file", "column"}:
            raise ValueError("give either values, or file and column")
        rest = {name: field for name, field in given.items() if name not in ("file", "column")}
        return rest | {"values": read_column(Path(str(given["file"])), str(given["column"]))}

    @property
    def expected(self) -> float:
        """What is expected: the average of the values."""
        return math.fsum(self.values) / len(self.values)

    @property
    def least(self) -> float:
        """What no draw falls below: the smallest of the values."""
        return min(self.values)

    def sample(self, rng: Generator, count: int) -> Values:
        """Draw *count* of them, with replacement."""
        return np.asarray(self.values)[rng.integers(len(self.values), size=count)]


def read_column(file: Path, column: str) -> tuple[float, ...]:
    """Read the numbers in a column of a CSV file with a header line.

    Args:
        file: The file.
        column: The name of the column; its empty cells are left out.

    Returns:
        The numbers, in the order of the lines.

    Raises:
        ValueError: If the file cannot be read, has no such column, no number in it, or a cell that
            is not a finite number, 0 or more.
    """
    try:
        check_data_file(file)
        with file.open(newline="", encoding="utf-8-sig") as lines:
            table = csv.DictReader(lines)
            header = table.fieldnames or []
            if column not in header:
                raise ValueError(
                    f"{file} has no column {column!r}; its columns are: {', '.join(header)}"
                )
            cells = [(table.line_num, row[column]) for row in table]
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from error
    except csv.Error as error:
        raise ValueError(f"{file} is no CSV file: {error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not a text file in UTF-8: {error.reason}") from error
    numbers = []
    for line, cell in cells:
        if cell is None or not cell.strip():
            continue
        try:
            number = float(cell)
        except ValueError:
            number = math.nan
        if not 0 <= number < math.inf:
            raise ValueError(
                f"{file}, line {line}, {column}: {cell!r} is not a finite number, 0 or more"
            )
        numbers.append(number)
    if not numbers:
        raise ValueError(f"{file} has no number in column {column!r}")
    return tuple(numbers)


PROBES = 100
"""How many numbers a user's own part is asked for, to see whether it returns them."""


def _probe(draw: Draw) -> object:
    return draw.expected, draw.sample(Generator(Philox(key=0)), PROBES)


AnyDraw: TypeAlias = Annotated[
    Draw,
    PartChoice(
        "draw",
        *(Constant, Uniform, Exponential, Lognormal, Gamma, Pareto, Empirical),
        number=("constant", "value"),
        probe=_probe,
    ),
]
"""A draw as a field: a number, a table with a `kind`, or a model."""
