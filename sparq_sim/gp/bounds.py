"""Bounds: what the theorems of the paper promise, as numbers to compare with what was measured.

The paper is Mauduit, Berthier and Simonetto 2025; T rounds, Q points asked in a round, noise
variance sigma^2, and a squared exponential kernel of variance v and length scale l.
"""

from __future__ import annotations

from math import comb, e, isfinite, log, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike

from sparq_sim.arrays import Points, Values
from sparq_sim.gp.kernels import Kernel

__all__ = [
    "LARGEST_DIVERGENCE",
    "decay",
    "divergence_bound",
    "domain_constant",
    "information_gains",
    "operator_tail",
    "regret_bound",
    "std_ratio_bound",
    "tail_bound",
]

LARGEST_DIVERGENCE = 0.2
"""Proposition 1 of Burt, Rasmussen and van der Wilk 2020, which the proofs use, ends here."""


def information_gains(
    kernel: Kernel, candidates: Points, *, rounds: int, noise_variance: float
) -> Values:
    """Compute the maximum information gain gamma_t for each number of observations t, greedily.

    gamma_t = max over t points X of log det(I + K_XX / sigma^2) / 2. Each point is the one of the
    largest variance given those before. This reaches at least 1 - 1/e of the maximum (Krause and
    Guestrin 2005), and a point may be chosen again. The cost is O(rounds n^2).

    Args:
        kernel: The kernel of the reward.
        candidates: The points to choose from, (n, d).
        rounds: The largest t, at least 1.
        noise_variance: sigma^2, in squared reward units.

    Returns:
        gamma_t for t = 1 .. *rounds*, in nats, (rounds,).

    Raises:
        ValueError: If *rounds* is below 1, or the noise variance not positive.
    """
    _check_positive(noise_variance=noise_variance)
    if rounds < 1:
        raise ValueError(f"rounds is {rounds}: give at least 1")
    covariance = kernel(candidates, candidates)
    gains = np.empty(rounds)
    for t in range(rounds):
        best = int(covariance.diagonal().argmax())
        column = covariance[best].copy()
        gains[t] = log(1 + column[best] / noise_variance) / 2
        covariance -= np.outer(column / (column[best] + noise_variance), column)
    return np.cumsum(gains)


def regret_bound(
    rounds: ArrayLike,
    *,
    widths: ArrayLike,
    gains: ArrayLike,
    noise_variance: float,
    divergence: float = LARGEST_DIVERGENCE,
) -> Values:
    """Compute the bound of Theorem 1 on the cumulative regret R_T.

    With probability 1 - delta, R_T <= 2 beta_T sqrt(1 + sqrt(3 eta)) sqrt(2 T (1 + (sigma^2 log
    T)^2) gamma_T), the last inequality with constants in its proof, which takes k(x, x) <= 1.

    Args:
        rounds: T, one number or several, from 1 on.
        widths: beta_T, one number or one for each T.
        gains: gamma_T in nats, one number or one for each T.
        noise_variance: sigma^2, in squared reward units.
        divergence: eta, the bound on twice the divergence, from 0 to 1/5.

    Returns:
        The bound for each T, in reward units.

    Raises:
        ValueError: If a number is outside its range.
    """
    _check_positive(noise_variance=noise_variance)
    number = np.asarray(rounds, dtype=np.float64)
    if (number < 1).any():
        raise ValueError(f"rounds from {number.min():g} on: they are numbered from 1")
    spread = 1 + (noise_variance * np.log(number)) ** 2
    bound: Values = (
        2
        * np.asarray(widths, dtype=np.float64)
        * std_ratio_bound(divergence)
        * np.sqrt(2 * number * spread * np.asarray(gains, dtype=np.float64))
    )
    return bound


def std_ratio_bound(divergence: float) -> float:
    """Compute the bound sqrt(1 + sqrt(3 eta)) on the sparse std over that from all observations.

    Proposition 3 bounds sigma^s / sigma^v so (Burt, Rasmussen and van der Wilk 2020,
    Proposition 1), for 2 KL <= eta <= 1/5.

    Args:
        divergence: eta, from 0 to 1/5.

    Returns:
        The bound on the ratio, 1 or more.

    Raises:
        ValueError: If eta is outside its range.
    """
    if not 0 <= divergence <= LARGEST_DIVERGENCE:
        raise ValueError(f"divergence is {divergence}: the bound holds from 0 to 1/5")
    return sqrt(1 + sqrt(3 * divergence))


def domain_constant(diameter: float, *, dimensions: int = 1) -> float:
    """Compute C_D = (sqrt(2 pi) l_q / 8)^d e^8 of Theorem 3.

    It has the unit of a volume: the theorem takes densities on the domain to be at most 1. Where
    plays are uniform in [0, l_q]^1 the density is 1 / l_q, and C_D / l_q would do in any unit.

    Args:
        diameter: l_q, the diameter of the domain, in units of the points.
        dimensions: d, the number of coordinates.

    Returns:
        C_D.

    Raises:
        ValueError: If an argument is not positive.
    """
    _check_positive(diameter=diameter)
    _check_dimensions(dimensions)
    return float((sqrt(2 * pi) * diameter / 8) ** dimensions * e**8)


def decay(length_scale: float, *, diameter: float) -> float:
    """Compute alpha: the eigenvalues of K_q fall like exp(-alpha m) in one dimension.

    K_q is the operator of the kernel under q = N(mu, s^2), s = *diameter* / 8. Its eigenvalues are
    v (1 - B) B^m, m = 0, 1, .., with B = b / (a + b + sqrt(a^2 + 2 a b)), a = 1 / (4 s^2) and
    b = 1 / (2 l^2) (Zhu et al. 1998; Rasmussen and Williams 2006, 4.3.1), and alpha = -log B.

    Args:
        length_scale: l, in units of the points.
        diameter: The diameter of the domain, in units of the points.

    Returns:
        alpha.

    Raises:
        ValueError: If an argument is not positive.
    """
    _check_positive(length_scale=length_scale, diameter=diameter)
    a, b = 16 / diameter**2, 1 / (2 * length_scale**2)
    return log((a + b + sqrt(a * a + 2 * a * b)) / b)


def operator_tail(
    size: int, *, length_scale: float, diameter: float, variance: float = 1.0, dimensions: int = 1
) -> float:
    """Compute the sum of all but the largest eigenvalues of K_q: v B^Q in one dimension.

    In d dimensions the eigenvalues are v (1 - B)^d B^m, each (m + d - 1 over d - 1) times; B is
    that of `decay`.

    Args:
        size: Q, how many of the largest eigenvalues to leave out.
        length_scale: l, in units of the points.
        diameter: The diameter of the domain, in units of the points.
        variance: v, in squared reward units.
        dimensions: d, the number of coordinates.

    Returns:
        The sum, in squared reward units.

    Raises:
        ValueError: If an argument is out of its range.
    """
    _check_positive(variance=variance)
    _check_dimensions(dimensions)
    if size < 0:
        raise ValueError(f"size is {size}: give 0 or more")
    ratio = float(np.exp(-decay(length_scale, diameter=diameter)))
    degree, left, total = 0, size, 0.0
    while power := ratio**degree:  # until it underflows, at the latest
        many = comb(degree + dimensions - 1, dimensions - 1)
        kept = min(left, many)
        left -= kept
        term = (many - kept) * power
        total += term
        # SourceTerms have long been falling when degree (1 - B) exceeds d by far.
        if total > 0 and term <= 1e-17 * total and degree * (1 - ratio) > 10 * dimensions:
            break
        degree += 1
    return variance * (1 - ratio) ** dimensions * total


def tail_bound(
    size: int,
    *,
    points: int,
    length_scale: float,
    diameter: float,
    variance: float = 1.0,
    dimensions: int = 1,
) -> float:
    """Compute the bound on E[Lambda_Q], the sum of all but Q eigenvalues of K (T, T).

    E[Lambda_Q] <= C_D T sum_{m>Q} lambda_m, Theorem 3.

    Args:
        size: Q, how many of the largest eigenvalues to leave out.
        points: T, how many points were played.
        length_scale: l, in units of the points.
        diameter: The diameter of the domain, in units of the points.
        variance: v, in squared reward units.
        dimensions: d, the number of coordinates.

    Returns:
        The bound, in squared reward units.
    """
    tail = operator_tail(
        size,
        length_scale=length_scale,
        diameter=diameter,
        variance=variance,
        dimensions=dimensions,
    )
    return domain_constant(diameter, dimensions=dimensions) * points * tail


def divergence_bound(
    size: int,
    *,
    points: int,
    tail: float,
    noise_variance: float,
    variance: float = 1.0,
    epsilon: float = 0.0,
) -> float:
    """Compute the bound on E[KL[P^E || P^v]] for Q points drawn nearly from a Q-DPP.

    It is (2 T v epsilon + (Q + 1) Lambda_Q) / sigma^2, from the proof of Proposition 2.

    Args:
        size: Q, how many points are drawn.
        points: T, how many points were played.
        tail: Lambda_Q of the points played, or a bound on it such as `tail_bound`.
        noise_variance: sigma^2, in squared reward units.
        variance: v, in squared reward units.
        epsilon: How far the draw is from the Q-DPP, in total variation.

    Returns:
        The bound, in nats.

    Raises:
        ValueError: If the noise variance is not positive.
    """
    _check_positive(noise_variance=noise_variance)
    return (2 * points * variance * epsilon + (size + 1) * tail) / noise_variance


def _check_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not (isfinite(number) and number > 0):
            raise ValueError(f"{name} is {number}: give a positive number")


def _check_dimensions(dimensions: int) -> None:
    if dimensions < 1:
        raise ValueError(f"dimensions is {dimensions}: give 1 or more")
