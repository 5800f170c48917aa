from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.fields import Positive
from sparq_sim.gp.kernels import (
    Forgetting,
    Kernel,
    Matern12,
    Matern32,
    RationalQuadratic,
    SpaceTime,
    SquaredExponential,
    Wiener,
)
from sparq_sim.plugin.contract import Model
from sparq_sim.simulation.channel.draws import (
    Constant,
    Draw,
    Empirical,
    Exponential,
    Gamma,
    Lognormal,
    Pareto,
    Uniform,
)
from sparq_sim.simulation.channel.noise import (
    Bounded,
    Bursts,
    Chances,
    DistanceDependent,
    Gaussian,
    Loss,
    Noise,
    Random,
    StudentT,
    ValueDependent,
)
from sparq_sim.testing import LawError, check_part

BUNDLED: list[Model] = [
    Constant(value=2.0),
    Uniform(high=3.0),
    Exponential(mean=0.3),
    Lognormal(median=1.0, sigma=1.5),
    Gamma(shape=0.3, scale=2.0),
    Pareto(minimum=1.0, shape=1.5),
    Pareto(minimum=1.0, shape=0.5),
    Empirical(values=(1.0, 4.0)),
    Gaussian(std=1.0),
    StudentT(std=1.0),
    Bounded(std=0.0),
    ValueDependent(share=0.1),
    DistanceDependent(slope=1.0, origin=(0.0, 1.0)),
    Random(probability=0.3),
    Bursts(good_spell=3.0, bad_spell=1.0),
    SquaredExponential(length_scale=0.3),
    Matern12(),
    Matern32(),
    RationalQuadratic(),
    Forgetting(epsilon=0.1),
    Wiener(rate=0.2),
]


@pytest.mark.parametrize("part", BUNDLED, ids=lambda part: type(part).__name__)
def test_bundled_parts_keep_the_laws(part: Model) -> None:
    check_part(part)


def test_a_kernel_is_looked_at_where_it_is_told_to_be() -> None:
    kernel = SpaceTime(space=SquaredExponential(), time=Wiener(rate=0.1))
    check_part(kernel, points=np.random.default_rng(0).random((7, 3)))


class Broken(Draw):
    """A draw of which any part can be put wrong."""

    shift: float = 0.0
    told: Positive = 0.5
    floor: float = 0.0
    forgetful: bool = False
    short: bool = False

    @property
    def expected(self) -> float:
        return self.told

    @property
    def least(self) -> float:
        return self.floor

    def sample(self, rng: Generator, count: int) -> Values:
        drawn = rng.random(count) + self.shift
        return drawn[: count - self.short] if self.short else drawn[:: -1 if self.forgetful else 1]


class Loud(Noise):
    """Noise whose units are none."""

    factor: float = 1.0
    centre: float = 0.0
    std: float = 1.0

    @property
    def expected_std(self) -> float:
        return 1.0

    def units(self, rng: Generator, count: int) -> Values:
        return self.factor * rng.standard_normal(count) + self.centre

    def stds(self, points: Points, values: Values) -> float:
        return self.std


class Moody(Loss):
    """A loss that remembers who asked."""

    chance: float = 0.5
    drawn: bool = True

    def start(self, rng: Generator) -> Chances:
        return lambda moment: float(rng.random()) if self.drawn else self.chance


class Bent(Kernel):
    """A kernel of which any part can be put wrong."""

    sign: int = 1
    tilt: int = 0
    variance: float = 1.0
    steep: float = 1.0
    scale: float = 1.0
    linear: bool = False

    def __call__(self, a: Points, b: Points) -> Matrix:
        if self.linear:
            return a @ b.T
        gaps = a - b.T
        return np.asarray(self.sign * np.exp(-self.scale * gaps**2) + self.tilt * gaps)

    def diagonal(self, points: Points) -> Values:
        return super().diagonal(points) if self.linear else np.full(len(points), self.variance)

    def gradient(self, point: Point, points: Points) -> Matrix:
        return self.steep * super().gradient(point, points)

    def derivatives(self, points: Points) -> list[Matrix]:
        found = super().derivatives(points)
        return found if self.scale == 1.0 else found[1:]


@pytest.mark.parametrize(
    ("part", "law"),
    [
        (Broken(short=True), "sample gives as many finite numbers as asked for"),
        (Broken(forgetful=True), "sample gives the same first number alone and among many"),
        (Broken(shift=-0.5), "no draw is negative"),
        (Broken(floor=0.3), "no draw falls below least"),
        (Broken(told=0.6), "samples average to expected"),
        (Loud(centre=0.3), "units average to 0"),
        (Loud(factor=1.2), "units have variance 1"),
        (Loud(std=-1.0), "stds are one, or one a point, and not negative"),
        (Moody(), "chances do not depend on the order"),
        (Moody(chance=1.5, drawn=False), "chances lie from 0 to 1"),
        (Bent(tilt=1), "is symmetric"),
        (Bent(sign=-1), "has no negative eigenvalue"),
        (Bent(variance=2.0), "diagonal is that of the matrix"),
        (Bent(linear=True), "k of a point with itself is above 0; add a constant kernel"),
        (Bent(steep=-1.0), "its numbers are positive"),
        (Bent(steep=1.1), "gradient is the derivative by the point"),
        (Bent(scale=2.0), "derivatives are those by the log-parameters"),
    ],
)
def test_a_part_that_breaks_a_law_is_told_which(part: Model, law: str) -> None:
    with pytest.raises(LawError, match=law):
        check_part(part)
