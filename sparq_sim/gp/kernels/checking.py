"""Checks that a kernel is a covariance."""

from __future__ import annotations

import numpy as np

from sparq_sim.arrays import Matrix, Points
from sparq_sim.errors import PluginError
from sparq_sim.gp.kernels.base import Kernel
from sparq_sim.plugin.frames import locate_error
from sparq_sim.plugin.registry import name_of

__all__ = ["check_kernel", "lowest_eigenvalue"]

_SINGLE = 1e-6
"""What rounding may come to in a kernel that computes in single precision."""


def check_kernel(kernel: Kernel, points: Points) -> None:
    """Check that a kernel is a covariance, as far as some points show it.

    Args:
        kernel: The kernel to check.
        points: Where to evaluate it, (n, d).

    Raises:
        PluginError: If it takes no such points, or k is of the wrong shape, not finite, not
            symmetric, not positive where it is a variance, or has a negative eigenvalue.
    """
    try:
        matrix = kernel(points, points)
    except ValueError as error:
        where = locate_error(error)  # Of a kernel of one's own.
        raise PluginError(f"the kernel {name_of(type(kernel))!r}: {error}{where}") from error
    wrong = ""
    if not np.isfinite(matrix).all():
        wrong = "is not finite"
    elif not np.allclose(matrix, np.transpose(matrix)):
        wrong = "is not symmetric"
    elif not (kernel.diagonal(points) > 0).all():
        place = points[int(np.argmin(kernel.diagonal(points) > 0))].tolist()
        wrong = (
            f"is not positive on its diagonal, at {place}: k of a point with itself must be above "
            "0; where it is 0 by nature, add a `constant` kernel"
        )
    elif (lowest := lowest_eigenvalue(matrix, rounding=_SINGLE)) < 0:
        wrong = f"has the negative eigenvalue {lowest:.3g}: it is no covariance"
    if wrong:
        raise PluginError(f"the kernel {name_of(type(kernel))!r} of {len(points)} points {wrong}")


def lowest_eigenvalue(matrix: Matrix, *, rounding: float = 1e-9) -> float:
    """Return the lowest eigenvalue of a symmetric *matrix*.

    Args:
        matrix: A covariance, (n, n).
        rounding: Up to this share of the highest eigenvalue, the lowest is taken for 0.
    """
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
    return 0.0 if abs(values[0]) <= rounding * values[-1] else float(values[0])
