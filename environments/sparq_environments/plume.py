"""A plume: pollutant that winds carry through a walled place, from sources that move and switch."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Protocol, TypeAlias

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, model_validator

from sparq_environments._transport import Diffusion, Waves, advect, bump, whole_steps
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box
from sparq_sim.fields import Amount, Positive, Probability
from sparq_sim.landscapes.computed import EvolvingEnvironment
from sparq_sim.landscapes.snapshots import CellGrid, State
from sparq_sim.plugin.contract import Landscape, Model

Place: TypeAlias = tuple[FiniteFloat, FiniteFloat]
"""Two coordinates, in length units."""

# Paths of sources


class Path(Model):
    """Where a source is."""

    def drawn(self, rng: Generator) -> Path:
        """Settle what is left to chance."""
        return self

    def at(self, time: float) -> Point:
        """Give the place at *time*."""
        raise NotImplementedError

    def track(self) -> Points:
        """Give places all along the path, for checks: (n, 2)."""
        raise NotImplementedError


class Fixed(Path):
    """Stays where it is."""

    kind: Literal["fixed"] = "fixed"
    place: Place = (5.0, 5.0)
    """Where it stays, in length units."""

    def at(self, time: float) -> Point:
        """Give the one place."""
        return np.array(self.place)

    def track(self) -> Points:
        """Give the one place."""
        return np.array([self.place])


class _Cyclic(Path):
    """Comes back to where it was after each *cycle*."""

    cycle: Positive = 120.0
    """How long the way there and back takes, in clock units."""
    phase: Probability | None = None
    """Probability of the cycle passed at time 0; by default drawn at random."""

    def drawn(self, rng: Generator) -> Path:
        """Draw the phase, unless it is given."""
        return self.model_copy(update={"phase": rng.random()}) if self.phase is None else self

    def at(self, time: float) -> Point:
        """Give the place at *time*."""
        return self._place(2.0 * math.pi * (time / self.cycle + (self.phase or 0.0)))

    def track(self) -> Points:
        """Give 64 places all along the path."""
        return np.array([self._place(2.0 * math.pi * turn / 64) for turn in range(64)])

    def _place(self, angle: float) -> Point:
        raise NotImplementedError


class Line(_Cyclic):
    """Goes from *begin* to *end* and back, slower towards the ends: a harmonic motion."""

    kind: Literal["line"] = "line"
    begin: Place = (2.0, 5.0)
    """Where it turns, in length units."""
    end: Place = (8.0, 5.0)
    """Where it turns back, in length units."""

    def _place(self, angle: float) -> Point:
        share = 0.5 * (1.0 - math.cos(angle))
        return (1.0 - share) * np.array(self.begin) + share * np.array(self.end)


class Circle(_Cyclic):
    """Goes round *centre* at a distance of *radius*."""

    kind: Literal["circle"] = "circle"
    centre: Place = (5.0, 5.0)
    """The middle of the circle, in length units."""
    radius: Positive = 3.0
    """The radius of the circle, in length units."""

    def _place(self, angle: float) -> Point:
        return np.array(self.centre) + self.radius * np.array([math.cos(angle), math.sin(angle)])


# When sources are on


class Switch(Protocol):
    """A settled schedule."""

    def lasting(self, begin: float, end: float) -> float:
        """Give for how long the source is on between two moments."""


class Schedule(Model):
    """When a source is on."""

    def drawn(self, rng: Generator) -> Switch:
        """Settle what is left to chance."""
        raise NotImplementedError


class Always(Schedule):
    """On at all times."""

    kind: Literal["always"] = "always"

    def drawn(self, rng: Generator) -> Switch:
        """Give itself; nothing is left to chance."""
        return self

    def lasting(self, begin: float, end: float) -> float:
        """Give the whole time."""
        return end - begin


class Cycle(Schedule):
    """On for a while and off for a while, in turn."""

    kind: Literal["cycle"] = "cycle"
    on: Positive = 30.0
    """How long it is on, in clock units."""
    off: Positive = 30.0
    """How long it is off, in clock units."""
    phase: Probability | None = None
    """Probability of on and off passed at time 0; by default drawn at random."""

    def drawn(self, rng: Generator) -> Switch:
        """Draw the phase, unless it is given."""
        return self.model_copy(update={"phase": rng.random()}) if self.phase is None else self

    def lasting(self, begin: float, end: float) -> float:
        """Give for how long it is on between two moments."""
        return self._until(end) - self._until(begin)

    def _until(self, time: float) -> float:
        turns, rest = divmod(time + (self.phase or 0.0) * (self.on + self.off), self.on + self.off)
        return turns * self.on + min(rest, self.on)


class Spells(Schedule):
    """On or off by chance, drawn anew at the beginning of each spell."""

    kind: Literal["spells"] = "spells"
    length: Positive = 20.0
    """How long a spell lasts, in clock units."""
    share: Probability = 0.6
    """The probability that it is on in a spell."""

    def drawn(self, rng: Generator) -> Switch:
        """Draw the key of all spells."""
        return _DrawnSpells(self, int(rng.integers(2**63)))


class _DrawnSpells:
    """Spells drawn 256 at a time, from a stream for each block: any time costs the same."""

    def __init__(self, model: Spells, key: int) -> None:
        self._model = model
        self._key = key
        self._block: int | None = None
        self._on: list[bool] = []

    def lasting(self, begin: float, end: float) -> float:
        """Give for how long it is on between two moments."""
        length = self._model.length
        total = 0.0
        for spell in range(math.floor(begin / length), math.floor(end / length) + 1):
            if self._is_on(spell):
                total += max(0.0, min(end, (spell + 1) * length) - max(begin, spell * length))
        return total

    def _is_on(self, spell: int) -> bool:
        block, number = divmod(spell, 256)
        if block != self._block:
            key = np.array([self._key, block % 2**64], dtype=np.uint64)
            chance = Generator(Philox(key=key))
            self._block = block
            self._on = (chance.random(256) < self._model.share).tolist()
        return self._on[number]


# Winds


class Flow(Protocol):
    """A settled wind."""

    def travel(self, begin: float, end: float) -> tuple[float, float]:
        """Give how far the air goes between two moments, in each coordinate."""


class Wind(Model):
    """Air that moves everywhere alike, and changes with time."""

    @property
    def fastest(self) -> float:
        """What its speed never exceeds, in length units a clock unit."""
        raise NotImplementedError

    def drawn(self, rng: Generator) -> Flow:
        """Settle what is left to chance."""
        raise NotImplementedError


class Steady(Wind):
    """Always the same *velocity*."""

    kind: Literal["steady"] = "steady"
    velocity: Place = (0.2, 0.0)
    """The velocity in each coordinate, in length units per clock unit."""

    @property
    def fastest(self) -> float:
        """Its speed."""
        return math.hypot(*self.velocity)

    def drawn(self, rng: Generator) -> Flow:
        """Give itself; nothing is left to chance."""
        return self

    def travel(self, begin: float, end: float) -> tuple[float, float]:
        """Give velocity times duration."""
        return self.velocity[0] * (end - begin), self.velocity[1] * (end - begin)


class Rotating(Wind):
    """Comes from all sides in turn, at the same *speed*."""

    kind: Literal["rotating"] = "rotating"
    speed: Amount = 0.2
    """How fast the wind is, in length units per clock unit."""
    cycle: Positive = 80.0
    """How long a full turn, against the clock, takes, in clock units."""
    phase: Probability | None = None
    """Probability of the turn passed at time 0; by default drawn at random."""

    @property
    def fastest(self) -> float:
        """Its speed."""
        return self.speed

    def drawn(self, rng: Generator) -> Flow:
        """Draw the phase, unless it is given."""
        return self.model_copy(update={"phase": rng.random()}) if self.phase is None else self

    def travel(self, begin: float, end: float) -> tuple[float, float]:
        """Integrate the velocity exactly: a chord of the circle that the air goes round."""
        radius = self.speed * self.cycle / (2.0 * math.pi)
        first, last = (
            2.0 * math.pi * (time / self.cycle + (self.phase or 0.0)) for time in (begin, end)
        )
        return (
            radius * (math.sin(last) - math.sin(first)),
            radius * (math.cos(first) - math.cos(last)),
        )


class Gusts(Wind):
    """Smooth random changes about no wind at all; add a steady wind for another mean."""

    kind: Literal["gusts"] = "gusts"
    std: Amount = 0.08
    """The std of each coordinate of the velocity, in length units per clock unit."""
    cycle: Positive = 15.0
    """The time from gust to gust, about, in clock units."""

    @property
    def fastest(self) -> float:
        """Four stds in each coordinate."""
        return math.sqrt(2.0) * Waves.BOUND * self.std

    def drawn(self, rng: Generator) -> Flow:
        """Draw the waves of both coordinates."""
        return _DrawnGusts(self.std, (Waves(self.cycle, rng), Waves(self.cycle, rng)))


class _DrawnGusts:
    def __init__(self, std: float, waves: tuple[Waves, Waves]) -> None:
        self._std = std
        self._waves = waves

    def travel(self, begin: float, end: float) -> tuple[float, float]:
        """Integrate the waves exactly."""
        along, across = (self._std * wave.integral(begin, end) for wave in self._waves)
        return along, across


# The world


class Source(Model):
    """Something that gives off pollutant, spread normally about where it is."""

    path: Annotated[Fixed | Line | Circle, Field(discriminator="kind")] = Fixed()
    """Where the source is: a table with a `kind`."""
    schedule: Annotated[Always | Cycle | Spells, Field(discriminator="kind")] = Always()
    """When the source is on: a table with a `kind`."""
    rate: Amount = 1.0
    """How much pollutant is given off in a clock unit while the source is on; what would fall
    beyond a wall is not given off."""
    width: Positive = 0.4
    """The std of the spread about where the source is, in length units."""


class Wall(Model):
    """A rectangle that nothing enters; a thin one is a fence."""

    lower: Place
    """The lower left corner of the rectangle, in length units."""
    upper: Place
    """The upper right corner of the rectangle, in length units."""

    @model_validator(mode="after")
    def _in_order(self) -> Wall:
        sizes = [high - low for low, high in zip(self.lower, self.upper, strict=True)]
        if min(sizes) < 0.0 or max(sizes) == 0.0:
            raise ValueError(
                f"lower {self.lower} must lie left of and below upper {self.upper}; swap them"
            )
        return self

    def holds(self, points: Points) -> NDArray[np.bool_]:
        """Tell for each of *points* whether the wall covers it."""
        within = (points >= self.lower) & (points <= self.upper)
        return np.asarray(within.all(axis=1), dtype=bool)


class Plume(EvolvingEnvironment):
    """The concentration c(x, y, t) of a pollutant in a rectangle with walls all round.

    dc/dt + div(u(t) c) = diffusion laplacian(c) - decay c + sources(x, y, t)

    with no flow through walls, against which the wind u, the same everywhere, presses what it
    carries. A point (x, y) is where to sample, the reward the concentration there.

    Finite volumes (LeVeque 2002), a direction at a time: advection by van Leer's limited profiles,
    second order where smooth; implicit diffusion, second order in space and time; sources and decay
    by Strang splitting. All of it is conservative and never negative. Between the middles of cells,
    and between snapshots, the concentration is interpolated linearly: the best point is exact.
    For: physics-based monitoring, with `coarse(resolution)` as what a cheap simulator knows.
    """

    sides: tuple[Positive, Positive] = (10.0, 10.0)
    """Width and height of the rectangle, in length units; its lower left corner is (0, 0)."""
    cells: Annotated[int, Field(ge=8, le=2048)] = 48
    """How many cells there are along each side."""
    diffusion: FiniteFloat = 0.05
    """How fast the pollutant spreads, in squared length units per clock unit; above 0."""
    decay: FiniteFloat = 0.12
    """The share of the pollutant that vanishes in a clock unit; 0 for none."""
    wind: tuple[Annotated[Steady | Rotating | Gusts, Field(discriminator="kind")], ...] = (
        Rotating(),
        Gusts(),
    )
    """The winds, which add up: each a table with a `kind`."""
    sources: Annotated[tuple[Source, ...], Field(min_length=1)] = (
        Source(path=Circle(), rate=1.0),
        Source(path=Fixed(place=(3.0, 7.0)), schedule=Spells(), rate=1.0),
        Source(path=Line(begin=(8.0, 2.0), end=(8.0, 8.0)), schedule=Cycle(), rate=1.0),
    )
    """What gives off pollutant, and where and when."""
    walls: tuple[Wall, ...] = ()
    """Obstacles within the rectangle; the reward inside them is 0."""
    step: Positive = 0.25
    """The solver's time step, in clock units; a snapshot is a whole number of them."""
    spin_up: Amount = 60.0
    """How long is simulated before time 0, from clean air, in clock units; rounded up to whole
    snapshots."""

    @model_validator(mode="after")
    def _is_sound(self) -> Plume:
        if self.diffusion <= 0.0:
            raise ValueError(
                f"diffusion {self.diffusion} must lie above 0: a negative one is unstable, "
                "and without any the field at walls has no width; take for instance 0.05"
            )
        if self.decay < 0.0:
            raise ValueError(f"decay {self.decay} would grow for ever; take 0 or more")
        whole_steps(self.step, self.snapshot)
        fastest = sum(wind.fastest for wind in self.wind)
        if fastest * self.step > min(self.sides):
            raise ValueError(
                f"step {self.step} lets a wind of up to {fastest:.3g} cross the rectangle at once; "
                f"take a step of at most {min(self.sides) / fastest:.3g}"
            )
        return self

    @model_validator(mode="after")
    def _has_room(self) -> Plume:
        for wall in self.walls:
            if not all(
                low < side and high > 0.0
                for low, high, side in zip(wall.lower, wall.upper, self.sides, strict=True)
            ):
                raise ValueError(
                    f"the wall from {wall.lower} to {wall.upper} lies outside the rectangle, "
                    f"which reaches from (0, 0) to {self.sides}"
                )
        for number, source in enumerate(self.sources):
            track = source.path.track()
            inside = ((track >= 0.0) & (track <= self.sides)).all(axis=1)
            for wall in self.walls:
                inside &= ~wall.holds(track)
            if not inside.all():
                raise ValueError(
                    f"sources.{number} comes to {track[~inside][0].round(3).tolist()}, within a "
                    f"wall or outside the rectangle from (0, 0) to {self.sides}; move its path"
                )
        return self

    def domain(self) -> Box:
        """Return the rectangle."""
        return Box([0.0, 0.0], self.sides, ["x", "y"])

    def start(self, rng: Generator) -> Landscape:
        """Draw winds and sources for all times; the field is computed when it is asked for."""
        flows = tuple(wind.drawn(rng) for wind in self.wind)
        sources = tuple(
            (source, source.path.drawn(rng), source.schedule.drawn(rng)) for source in self.sources
        )
        return self.evolve(lambda grid: PlumeSolver(self, flows, sources, grid).advance)


class PlumeSolver:
    """The plume on a *grid*, with winds and sources that were drawn."""

    def __init__(
        self,
        model: Plume,
        flows: tuple[Flow, ...],
        sources: tuple[tuple[Source, Path, Switch], ...],
        grid: CellGrid,
    ) -> None:
        self.grid = grid
        self._flows = flows
        self._sources = sources
        self._step = model.step
        self._steps = whole_steps(model.step, model.snapshot)
        self._remain = math.exp(-model.decay * model.step)
        self._free, self._links = _passages(self.grid, model.walls)
        self._diffusions = [
            Diffusion(_as_one_line(links) * (model.diffusion / spacing**2), model.step)
            for links, spacing in zip(self._links, self.grid.spacings, strict=True)
        ]

    def advance(self, state: State, begin: float) -> State:
        """Give the state one snapshot after *begin*."""
        for number in range(self._steps):
            state = self.step(state, begin + number * self._step)
        return state

    def step(self, state: State, begin: float) -> State:
        """Give the state one step after *begin*: half the emission, transport, the other half."""
        end = begin + self._step
        half = self._emission(begin, end)
        half *= 0.5
        travels = [flow.travel(begin, end) for flow in self._flows]
        state = state + half
        for axis in (0, 1):
            travel = sum(each[axis] for each in travels) / float(self.grid.spacings[axis])
            # The axis of transport comes first and lines lie along it; each .T swaps the two.
            carried = advect(state, travel, self._links[axis]).T
            state = self._diffusions[axis](carried.ravel()).reshape(carried.shape)
        state *= self._remain
        state += half
        return state

    def _emission(self, begin: float, end: float) -> State:
        """Give what the sources give off between two moments, in each cell."""
        along, across = [], []
        for source, path, switch in self._sources:
            if lasting := switch.lasting(begin, end):
                x, y = path.at(0.5 * (begin + end))
                along.append(source.rate * lasting * bump(self.grid, 0, x, source.width))
                across.append(bump(self.grid, 1, y, source.width))
        if not along:
            return np.zeros_like(self._free)
        emission: State = np.array(along).T @ np.array(across)
        emission *= self._free
        return emission


def _passages(grid: CellGrid, walls: tuple[Wall, ...]) -> tuple[State, tuple[State, State]]:
    """Give 1 for each cell that is free, and for each two neighbours that are joined.

    A cell is free unless its middle lies in a wall; neighbours, along either axis, which comes
    first, are joined unless the line between their middles meets one.
    """
    free = np.ones(grid.shape)
    joined = np.ones((2, grid.per_side - 1, grid.per_side))
    for wall in walls:
        within = [
            (middles >= low) & (middles <= high)
            for middles, low, high in zip(grid.axes, wall.lower, wall.upper, strict=True)
        ]
        met = [
            (middles[1:] >= low) & (middles[:-1] <= high)
            for middles, low, high in zip(grid.axes, wall.lower, wall.upper, strict=True)
        ]
        free[np.ix_(*within)] = 0.0
        joined[0][np.ix_(met[0], within[1])] = 0.0
        joined[1][np.ix_(met[1], within[0])] = 0.0
    return free, (joined[0], joined[1])


def _as_one_line(links: State) -> Values:
    """Join the lines along the first axis to one, with walls between them."""
    return np.pad(links, ((0, 1), (0, 0))).T.ravel()[:-1]
