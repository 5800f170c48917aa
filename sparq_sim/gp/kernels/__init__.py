"""Kernels: how alike the rewards of two points are, as small models that add and multiply."""

from typing import Annotated, TypeAlias

from sparq_sim.gp.kernels.base import Constant, Kernel, Product, Sum
from sparq_sim.gp.kernels.checking import check_kernel, lowest_eigenvalue
from sparq_sim.gp.kernels.stationary import (
    LengthScale,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    SquaredExponential,
    Stationary,
)
from sparq_sim.gp.kernels.temporal import Forgetting, SpaceTime, Wiener, stamp
from sparq_sim.plugin.parts import PartChoice

__all__ = [
    "AnyKernel",
    "Constant",
    "Forgetting",
    "Kernel",
    "LengthScale",
    "Matern12",
    "Matern32",
    "Matern52",
    "Product",
    "RationalQuadratic",
    "SpaceTime",
    "SquaredExponential",
    "Stationary",
    "Sum",
    "Wiener",
    "check_kernel",
    "lowest_eigenvalue",
    "stamp",
]

AnyKernel: TypeAlias = Annotated[
    Kernel,
    PartChoice(
        "kernel",
        *(Constant, SquaredExponential, Matern12, Matern32, Matern52, RationalQuadratic),
        *(Forgetting, Wiener, Sum, Product, SpaceTime),
    ),
]
"""A kernel as a field: a table with a `kind`, or a model."""
# Kernels hold kernels of every kind, which are known only now.
for _model in (Sum, Product, SpaceTime):
    _model.model_rebuild(_types_namespace={"AnyKernel": AnyKernel})
