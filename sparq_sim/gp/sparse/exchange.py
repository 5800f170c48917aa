"""M-DPP approximately: a random walk among sets of points, each visited by its determinant."""

from collections.abc import Sequence
from math import ceil, lgamma, log

import numpy as np

from sparq_sim.arrays import Matrix, Values
from sparq_sim.gp.sparse.dpp import check_weights
from sparq_sim.gp.sparse.greedy import Rows, pivoted_cholesky
from sparq_sim.gp.sparse.matrices import NOT_FINITE, RANK_TOLERANCE, check_covariance, check_matrix

__all__ = ["ExchangeChain", "exchange_variances", "mixing_steps"]

_BLOCK = 12  # About one proposal in six is accepted, so longer blocks are mostly thrown away.
_CHUNK = 4096  # Of random numbers drawn at once.


def mixing_steps(points: int, size: int, *, epsilon: float, most: int | None = None) -> int:
    """Compute after how many steps the chain is near to the M-DPP.

    N M log(C(N, M) M! / epsilon), for a greedy start (Burt, Rasmussen and van der Wilk 2019,
    supplement); idle steps are counted.

    Args:
        points: N, how many points there are.
        size: M, how many of them a set has.
        epsilon: How near, in total variation, above 0 and below 1.
        most: An upper limit of the steps; by default none.

    Returns:
        The number of steps, *most* where that is less.

    Raises:
        ValueError: If *size* or *epsilon* is out of its range.
    """
    if not 0 <= size <= points:
        raise ValueError(f"size is {size} of {points} points: give between 0 and {points}")
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon is {epsilon}: give a total variation between 0 and 1")
    ordered_sets = lgamma(points + 1) - lgamma(points - size + 1)
    steps = ceil(points * size * (ordered_sets - log(epsilon)))
    return steps if most is None else min(steps, most)


class ExchangeChain:
    """A random walk among sets of points, which exchanges one point at a time.

    One step is that of the paper's appendix: i uniform in Z, j uniform outside, and
    Z - i + j becomes the set with probability 1/2 min{1, det L_{Z-i+j} / det L_Z}.

    Args:
        matrix: The kernel matrix of the distinct points, (n, n).
        size: How many points a set has; the length of the greedy set where that is shorter.
        rng: The generator to draw with.
        weights: How often each point was played, above 0, (n,); by default once each.
        start: The rows to begin with, of which the first *size* count. Rows that are missing, or
            depend on earlier ones, are filled in greedily; by default all are.
        tolerance: A point whose variance given the rest of the set is at most this share of
            k(x, x) never enters.

    Raises:
        ValueError: If an argument is out of its range.
    """

    def __init__(
        self,
        matrix: Matrix,
        size: int,
        *,
        rng: np.random.Generator,
        weights: Values | None = None,
        start: Sequence[int] | Rows | None = None,
        tolerance: float = RANK_TOLERANCE,
    ) -> None:
        self._matrix = check_matrix(matrix)
        if not np.isfinite(self._matrix).all():
            raise ValueError(NOT_FINITE)
        self._variances = np.diagonal(self._matrix).copy()
        weights = check_weights(weights, points=len(self._matrix))
        rows, factor = pivoted_cholesky(
            self._matrix.__getitem__,
            self._variances,
            size=size,
            tolerance=tolerance,
            weights=weights,
            start=_check_start(start, points=len(self._matrix)),
            rng=rng,
        )
        outside = np.setdiff1d(np.arange(len(self._matrix)), rows)
        self._order = np.concatenate([rows, outside])  # the set, then all others
        self._size = len(rows)
        self._log_weights = np.log(weights)
        self._floor = tolerance * self._variances
        self._rng = rng
        # The whole matrix would take longer to check than hundreds of steps take to walk.
        self._block = check_covariance(self._matrix[np.ix_(rows, rows)])
        self._factor = np.tril(factor[:, rows].T)

    @property
    def rows(self) -> Rows:
        """The set where the walk stands now, by its rows, (m,)."""
        return self._order[: self._size].copy()

    def run(self, steps: int) -> Rows:
        """Walk on from the present set.

        Args:
            steps: How many steps, 0 or more, idle ones counted.

        Returns:
            The set then, by its rows, (m,).

        Raises:
            ValueError: If *steps* is below 0.
        """
        if steps < 0:
            raise ValueError(f"steps is {steps}: give 0 or more")
        if not 0 < self._size < len(self._order):
            return self.rows
        # Idle steps change nothing, so it is enough to know how many there are.
        moves = int(self._rng.binomial(steps, 0.5))
        while moves:
            self._walk(min(moves, _CHUNK))
            moves -= min(moves, _CHUNK)
        return self.rows

    def _log_ratios(self, leaving: Rows, entering: Rows) -> Values:
        """Return log det L_{Z-i+j} - log det L_Z, i and j being places in the order of rows."""
        inside, old, new = self._order[: self._size], self._order[leaving], self._order[entering]
        columns = self._matrix[new].take(inside, axis=1).T
        gained, lost = exchange_variances(
            self._factor, columns, self._variances[new], leaving=leaving
        )
        ratios = np.full(len(new), -np.inf)
        np.log(gained / lost, out=ratios, where=gained > self._floor[new])
        ratios += self._log_weights[new] - self._log_weights[old]
        return ratios

    def _walk(self, moves: int) -> None:
        """Make *moves* proposals, judging a block of them against the same set at once."""
        leaving = self._rng.integers(self._size, size=moves)
        entering = self._rng.integers(self._size, len(self._order), size=moves)
        thresholds = -self._rng.standard_exponential(moves)  # logarithms of uniform numbers
        done = 0
        while done < moves:
            block = slice(done, done + _BLOCK)
            accepted = self._log_ratios(leaving[block], entering[block]) > thresholds[block]
            first = int(accepted.argmax())
            if not accepted[first]:
                done += _BLOCK
                continue
            # What follows the first acceptance is judged again, against the new set.
            done += first
            self._exchange(int(leaving[done]), int(entering[done]))
            done += 1

    def _exchange(self, leaving: int, entering: int) -> bool:
        """Exchange two places of the order, unless the new set is singular to rounding."""
        order, block = self._order.copy(), self._block.copy()
        order[leaving], order[entering] = order[entering], order[leaving]
        row = self._matrix[order[leaving]].take(order[: self._size])
        block[leaving], block[:, leaving] = row, row
        try:
            factor = np.linalg.cholesky(block).astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            return False
        self._order, self._block, self._factor = order, block, factor
        return True


def exchange_variances(
    factor: Matrix, columns: Matrix, variances: Values, *, leaving: Rows
) -> tuple[Values, Values]:
    """Compute Var(j | Z - i) and Var(i | Z - i), whose ratio is det K_{Z-i+j} / det K_Z.

    With b = L^-1 k(Z, x_j) and g = L^-1 e_i: Var(i | Z - i) = 1 / g'g and
    Var(j | Z - i) = k_jj - b'b + (b'g)^2 / g'g.

    Args:
        factor: L, the Cholesky factor of K_ZZ, (m, m).
        columns: k(Z, x_j) of each entering point j, (m, b).
        variances: k(x_j, x_j), (b,).
        leaving: The place of i in Z for each j, (b,).

    Returns:
        Both variances, each (b,).
    """
    size, count = columns.shape
    right = np.zeros((size, 2 * count))
    right[:, :count] = columns
    right[leaving, np.arange(count, 2 * count)] = 1.0
    solved = np.linalg.solve(factor, right)
    seen, gone = solved[:, :count], solved[:, count:]
    lost = 1 / np.einsum("ij,ij->j", gone, gone)
    gained = np.maximum(variances - np.einsum("ij,ij->j", seen, seen), 0.0)
    gained += np.einsum("ij,ij->j", seen, gone) ** 2 * lost
    return gained, lost


def _check_start(start: Sequence[int] | Rows | None, *, points: int) -> Rows:
    rows = np.asarray(() if start is None else start, dtype=np.intp)
    if rows.ndim != 1 or ((rows < 0) | (rows >= points)).any():
        raise ValueError(f"start {start} is no list of rows: give numbers from 0 to {points - 1}")
    return rows
