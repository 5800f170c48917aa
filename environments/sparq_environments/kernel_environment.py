"""The base of environments whose rewards are functions of a kernel: `markov-gp`, `rkhs-walk`."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field, FiniteFloat, model_validator

from sparq_sim.domain import Box
from sparq_sim.fields import Size
from sparq_sim.gp.kernels import (
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    SquaredExponential,
)
from sparq_sim.plugin.contract import Environment

__all__ = ["AnyStationary", "KernelEnvironment"]

AnyStationary = Annotated[
    SquaredExponential | Matern12 | Matern32 | Matern52 | RationalQuadratic,
    Field(discriminator="kind"),
]
"""A stationary kernel, chosen by its `kind`."""

_FEWEST, _MOST = 1024, 16384  # points from which a search begins in two dimensions or more


class KernelEnvironment(Environment):
    """The base of environments that are made of a kernel, on the box [lower, upper]^dimensions."""

    level_evaluations = 5_000_000

    kernel: AnyStationary = SquaredExponential(length_scale=0.2)
    """The kernel: how smooth the reward is; its length scale is in units of the points."""
    dimensions: Size = 1
    """How many coordinates a point has."""
    lower: FiniteFloat = 0.0
    """The lower bound of each coordinate."""
    upper: FiniteFloat = 1.0
    """The upper bound of each coordinate."""

    @model_validator(mode="after")
    def _kernel_fits_box(self) -> KernelEnvironment:
        if not self.lower < self.upper:
            raise ValueError(f"lower {self.lower} must lie below upper {self.upper}; swap them")
        scale = self.kernel.length_scale
        if isinstance(scale, tuple) and len(scale) != self.dimensions:
            raise ValueError(
                f"kernel.length_scale has {len(scale)} entries for {self.dimensions} dimensions; "
                "give one number, or one for each dimension"
            )
        return self

    def box(self) -> Box:
        """Return the domain."""
        return Box([self.lower] * self.dimensions, [self.upper] * self.dimensions)

    def cover_size(self, per_cell: int) -> int | None:
        """Return how many points a search for the best point begins from.

        Args:
            per_cell: How many points there are for each cell of a length scale.

        Returns:
            The number of points, from 1,024 to 16,384; None on a line, for the default.
        """
        if self.dimensions == 1:
            return None
        scales = np.broadcast_to(self.kernel.length_scale, self.dimensions)
        cells = float(np.prod(1 + (self.upper - self.lower) / scales))
        return int(min(max(per_cell * cells, _FEWEST), _MOST))
