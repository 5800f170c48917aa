"""Acquisition: the search for the point of the highest upper confidence bound."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.random import Generator
from pydantic import Field

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.errors import PluginError
from sparq_sim.fields import Positive, Size
from sparq_sim.gp.predictor import Predictor
from sparq_sim.limits import MOST_CANDIDATES
from sparq_sim.plugin.model import Model

__all__ = ["Acquisition", "pick"]

_TIE = 1e-9
"""Scores this close, relatively, are equal: two exact ways to compute them differ that much."""

_ROUNDING = 1e-13
"""Differences of scores below this, relatively, are rounding."""

_GRIDS = {1: 501, 2: 41}
"""Points a dimension of the grid, unless given; beyond two dimensions there is none."""


class Acquisition(Model):
    """How the upper confidence bound is maximised.

    On sites and on a fixed grid this is exact. A grid is the default in one and two dimensions,
    because points on it are either equal or well apart; beyond, a Sobol set is searched, and its
    best points are improved by gradients.
    """

    grid: Annotated[int, Field(ge=2, le=MOST_CANDIDATES)] | None = None
    """How many points the grid has in each dimension, at least 2; by default 501 in one dimension,
    41 in two and no grid beyond."""
    refine: bool = False
    """Whether to climb from the best candidates; always so where there is no grid."""
    candidates: Annotated[int, Field(ge=1, le=MOST_CANDIDATES)] = 512
    """How many Sobol points there are to begin with, where there is no grid; rounded up to a power
    of 2."""
    starts: Size = 4
    """From how many of the best candidates to climb."""
    merge: Positive = 1e-3
    """Climbed points are rounded to multiples of this share of the range, to merge repeats."""

    def climbs(self, domain: Domain) -> bool:
        """Return whether points other than the candidates may be chosen.

        Args:
            domain: Where the play takes place.
        """
        return isinstance(domain, Box) and (self.refine or not self._per_dimension(domain))

    def candidate_points(self, domain: Domain) -> Points:
        """Return the fixed candidates, (g, d): the sites, a grid, or a Sobol set.

        Args:
            domain: Where the play takes place.
        """
        if isinstance(domain, Sites):
            return domain.points
        if per_dimension := self._per_dimension(domain):
            if per_dimension**domain.dimensions > MOST_CANDIDATES:
                raise PluginError(
                    f"a grid of {per_dimension:,} points in each of {domain.dimensions} dimensions "
                    f"has more points than can be searched, {MOST_CANDIDATES:,}; lower `grid`, or "
                    "leave it out"
                )
            return domain.grid(per_dimension)
        from scipy.stats.qmc import Sobol  # here, because it takes a second to load

        powers = max(1, (self.candidates - 1).bit_length())
        unit = Sobol(domain.dimensions, scramble=False).random_base2(powers)
        return self._snap(domain.lower + unit * (domain.upper - domain.lower), domain)

    def _per_dimension(self, domain: Box) -> int | None:
        return self.grid or _GRIDS.get(domain.dimensions)

    def choose(
        self,
        predictor: Predictor,
        width: float,
        *,
        domain: Domain,
        points: Points,
        rng: Generator,
        bounds: Box | None = None,
    ) -> Point:
        """Return the point with the highest mean + width * std, (d,).

        Args:
            predictor: What is believed of the reward.
            width: How many stds above the mean the bound lies.
            domain: Where the play takes place.
            points: The candidates, as `candidate_points` returns them, (g, d).
            rng: Breaks ties.
            bounds: Within which to choose, where candidates lie within them; by default anywhere.
        """
        scores = predictor.mean() + width * predictor.std()
        if bounds is not None:
            (allowed,) = bounds.contains(points).nonzero()
            if not len(allowed):  # Of a few candidates, none may lie in narrow bounds.
                middle = (bounds.lower + bounds.upper) / 2
                allowed = ((points - middle) ** 2).sum(axis=1).argmin(keepdims=True)
            scores, points = scores[allowed], points[allowed]
        chosen = pick(scores, rng)
        if isinstance(domain, Box) and self.climbs(domain):
            domain = domain if bounds is None else bounds
            others = [row for row in np.argsort(-scores)[: self.starts] if row != chosen]
            starts = points[[chosen, *others[: self.starts - 1]]]
            starts = np.clip(starts, domain.lower, domain.upper)
            return self._climb(predictor, width, domain=domain, starts=starts, rng=rng)
        point: Point = points[chosen]
        return point

    def _climb(
        self, predictor: Predictor, width: float, *, domain: Box, starts: Points, rng: Generator
    ) -> Point:
        """Climb in the unit cube and in units of the std, as the search has absolute tolerances."""
        from scipy.optimize import minimize  # here, because it takes half a second to load

        reach = domain.upper - domain.lower
        unit = float(predictor.std().max()) or 1.0
        level = float(predictor.mean(starts[:1])[0])

        def descent(share: Point) -> tuple[float, Point]:
            point = domain.lower + share * reach
            score = predictor.mean(point[None])[0] - level + width * predictor.std(point[None])[0]
            slope = predictor.mean_gradient(point) + width * predictor.std_gradient(point)
            return -float(score) / unit, -slope * reach / unit

        tops = [
            minimize(
                descent,
                (start - domain.lower) / reach,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, 1.0)] * len(reach),
            ).x
            for start in starts
        ]
        snapped = self._snap(np.vstack([domain.lower + np.array(tops) * reach, starts]), domain)
        scores = predictor.mean(snapped) + width * predictor.std(snapped)
        climbed: Point = snapped[pick(scores, rng)]
        return climbed

    def _snap(self, points: Points, domain: Box) -> Points:
        steps = self.merge * (domain.upper - domain.lower)
        near = domain.lower + np.round((points - domain.lower) / steps) * steps
        inside: Points = np.clip(near, domain.lower, domain.upper)
        return inside


def pick(scores: Values, rng: Generator) -> int:
    """Return the place of the highest score; among equals *rng* decides, never the order.

    Equal are scores within a relative 1e-9 of their spread: a level common to all must not make
    them alike.

    Args:
        scores: The scores, (n,).
        rng: Breaks ties.

    Raises:
        ValueError: Some scores are not finite.
    """
    # By position: `max` and `min` take twice the time.
    top, least = scores.item(scores.argmax()), scores.item(scores.argmin())
    margin = max(_TIE * (top - least), _ROUNDING * abs(top))
    (equals,) = (scores >= top - margin).nonzero()
    if len(equals) == 1:
        return equals.item(0)
    if not len(equals):
        raise ValueError(
            "no candidate can be chosen, as the scores of some are not finite: rewards, noise or "
            "claimed stds are too large to compute with; give them in a larger unit"
        )
    return equals.item(rng.integers(len(equals)))
