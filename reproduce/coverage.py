"""How often the intervals that the package prints hold what they should, by simulation.

    python -m reproduce.coverage [REPEATS]

prints the table of docs/guides/studies.md, "How far to trust an interval".
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.random import Generator, Philox

from sparq_sim.analysis.averages import Running
from sparq_sim.analysis.intervals import bound_positive, reach
from sparq_sim.analysis.prices import break_even
from sparq_sim.analysis.summary import spread, spread_exponents
from sparq_sim.arrays import Values

REPEATS = 10_000
ROUNDS = 500
STUCK, LOW, HIGH = 0.15, 0.03, 0.9
"""Two modes: the share of plays that get stuck, and what plays come to that do not, and that do."""

Draw: TypeAlias = Callable[[Generator, int], Iterator[bool]]
"""Yields, as many times as wished, whether an interval held what it should."""


@dataclass(frozen=True)
class Case:
    """An interval, and what it is made of."""

    interval: str
    """Which interval it is."""
    plays: int
    """How many plays it is made of."""
    model: str
    """How plays are distributed."""
    draw: Draw
    """Makes such intervals."""
    holds: bool = True
    """Whether the interval is made for plays such as these."""

    def measure(self, repeats: int = REPEATS) -> float:
        """Return the share of intervals that hold what they should.

        Args:
            repeats: How many intervals are made.
        """
        rng = Generator(Philox(key=0))
        return float(np.mean([*self.draw(rng, repeats)]))


def _means(rng: Generator, repeats: int, *, plays: int) -> Iterator[bool]:
    for numbers in rng.normal(0.2, 0.05, (repeats, plays)):
        found = spread(numbers.tolist())
        yield found.low <= 0.2 <= found.high


def _skew_means(rng: Generator, repeats: int, *, plays: int) -> Iterator[bool]:
    for numbers in rng.gamma(4.0, 0.05, (repeats, plays)):
        found = spread(numbers.tolist())
        yield found.low <= 0.2 <= found.high


def _drawn_means(rng: Generator, repeats: int, *, plays: int, shape: float) -> Iterator[bool]:
    """Means of what cannot be negative, with the intervals that charts show."""
    numbers = rng.gamma(shape, 0.2 / shape, (repeats, plays))
    halves = reach(numbers.std(axis=1, ddof=1), np.full(repeats, plays))
    low, high = bound_positive(numbers.mean(axis=1), halves)
    yield from ((low <= 0.2) & (high >= 0.2)).tolist()


def _two_modes(rng: Generator, repeats: int, *, plays: int) -> Iterator[bool]:
    mean = STUCK * HIGH + (1 - STUCK) * LOW
    stuck = rng.random((repeats, plays)) < STUCK
    for numbers in np.where(stuck, HIGH, LOW) * rng.uniform(0.9, 1.1, stuck.shape):
        found = spread(numbers.tolist())
        yield found.low <= mean <= found.high


def _differences(rng: Generator, repeats: int, *, plays: int) -> Iterator[bool]:
    chance = rng.normal(0.0, 0.2, (repeats, plays, 1))
    for pairs in chance + rng.normal([0.3, 0.25], 0.03, (repeats, plays, 2)):
        found = spread((pairs[:, 0] - pairs[:, 1]).tolist())
        yield found.low <= 0.05 <= found.high


def _prices(rng: Generator, repeats: int, *, plays: int) -> Iterator[bool]:
    for gaps in rng.multivariate_normal(
        [-0.1, 0.5], [[4e-3, -5e-3], [-5e-3, 0.04]], size=(repeats, plays)
    ):
        yield any(low <= 0.2 <= high for low, high in break_even(gaps).ranges)


def _bands(rng: Generator, repeats: int, *, plays: int) -> Iterator[bool]:
    """One round of a curve each: of a band, each round by itself is covered, not all together."""
    running = Running()
    for curve in rng.normal(0.2, 0.05, (plays, repeats)):
        running.add(curve)
    low, high = running.interval()
    yield from ((low <= 0.2) & (high >= 0.2)).tolist()


def _exponents(
    rng: Generator, repeats: int, *, plays: int, power: float, likeness: float, std: float
) -> Iterator[bool]:
    for octaves in _draw_octaves(rng, (repeats, plays), power=power, likeness=likeness, std=std):
        found = spread_exponents(map(tuple, octaves.tolist()))
        # An interval that is not bounded is not printed, and claims nothing.
        yield not (found.low > power or found.high < power)


def _draw_octaves(
    rng: Generator, shape: tuple[int, int], *, power: float, likeness: float, std: float
) -> Values:
    """Draw mean regrets of the last two octaves: t^(power - 1) times exp(std x AR(1))."""
    state, sums = rng.normal(size=shape), np.zeros((*shape, 2))
    # The trend of each octave is made to have the power exactly.
    trend = np.diff(np.arange(ROUNDS + 1.0) ** power)
    for number in range(ROUNDS):
        state = likeness * state + np.sqrt(1 - likeness**2) * rng.normal(size=shape)
        if number >= ROUNDS // 4:
            sums[..., int(number >= ROUNDS // 2)] += trend[number] * np.exp(std * state)
    means: Values = sums / [ROUNDS // 4, ROUNDS // 2]
    return means


def list_cases() -> list[Case]:
    """Return all that is measured; those where the model does not hold last."""
    made = [Case("mean", n, "normal", partial(_means, plays=n)) for n in (4, 8, 40)]
    made += [
        Case("paired difference", n, "normal", partial(_differences, plays=n)) for n in (4, 8, 40)
    ]
    made += [Case("break-even price", n, "normal", partial(_prices, plays=n)) for n in (4, 8, 40)]
    made += [Case("band, each round", n, "normal", partial(_bands, plays=n)) for n in (4, 8, 40)]
    for model, likeness in (("independent rounds", 0.0), ("rounds alike, AR(0.98)", 0.98)):
        for power in (1.0, 0.5):
            made += [
                Case(
                    f"exponent {power:g}",
                    n,
                    model,
                    partial(_exponents, plays=n, power=power, likeness=likeness, std=0.5),
                )
                for n in (8, 40)
            ]
    made.append(Case("mean", 8, "skew (gamma, shape 4)", partial(_skew_means, plays=8)))
    made += [
        Case(
            "mean, as drawn",
            n,
            f"skew (gamma, shape {shape})",
            partial(_drawn_means, plays=n, shape=shape),
        )
        for shape in (4, 1)
        for n in (5, 40)
    ]
    made += [
        Case("mean", n, "two modes", partial(_two_modes, plays=n), holds=False)
        for n in (4, 8, 16, 40, 100)
    ]
    return made


def tabulate(repeats: int = REPEATS) -> str:
    """Return the table of the documentation.

    Args:
        repeats: How many intervals are made, for each row.
    """
    rows = ["| interval of | plays | distributed as | holds the truth in |", "|---|---|---|---|"]
    for case in list_cases():
        share = case.measure(repeats if case.interval[:8] != "exponent" else repeats // 5)
        rows.append(f"| {case.interval} | {case.plays} | {case.model} | {100 * share:.0f} % |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.stdout.write(tabulate(*map(int, sys.argv[1:2])) + "\n")
