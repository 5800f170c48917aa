"""Plays of Figure 1 beside the same plays with the posterior computed by scikit-learn.

`paper/synthetic` is played as it is, and again with scikit-learn in the place of the posterior: its
regressor, the optimizer off and each observation with its own variance, is fitted anew whenever
something was observed, forgotten or aged. All else is ours in both: the play, the fit of the kernel
to the design (found once for all, in both), the widths, the choice of queries. For TV-GP-UCB
scikit-learn fits points in space and time: (1 - epsilon)^(|dt|/2) is its Matern kernel with nu 1/2.

The last row is the time of all 240 plays, from those timed here, beside the six minutes that two
cores have in three.

Run it from the root of the repository: `python -m benchmarks.figure1 [--check] [--json]`. One BLAS
thread, as in every play. Both were first found to make the same moves.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from statistics import median
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from benchmarks.compare import Pair, Row, at_least, main
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.observations import Observations, Positions, check_points
from sparq_sim.gp.posterior.predictor import Predictor
from sparq_sim.messages import Answer
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior, PriorWarning
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.trace import Trace

SCENARIO = Scenario.load("paper/synthetic")
COMPARED = tuple(SCENARIO.optimizers)
ALLOWED = 2 * 180.0
"""CPU seconds: two cores for three minutes."""


class Refitted:
    """A posterior by scikit-learn, fitted anew after every change."""

    def __init__(self, prior: GPPrior) -> None:
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel

        assert isinstance(prior.kernel, SquaredExponential)
        self.kernel = prior.kernel
        self.prior_mean = prior.mean
        self.observations = Observations(prior.kernel)
        self.candidates: Points | None = prior.candidates
        self._kernel = ConstantKernel(prior.kernel.variance) * RBF(prior.kernel.length_scale)
        self._model: Any = None
        self.predicted: tuple[Values, Values] | None = None

    def __len__(self) -> int:
        return len(self.observations)

    def add(self, points: ArrayLike, values: ArrayLike, *, variances: ArrayLike) -> None:
        """Add observations."""
        rows = check_points(points)
        self.observations.add(rows, values, variances=variances, places=[-1] * len(rows))
        self._forget()

    def replace(self, position: int, value: float, *, variance: float) -> None:
        """Change an observation."""
        self.observations.replace(position, value, variance=variance)
        self._forget()

    def remove(self, positions: Positions) -> None:
        """Take observations out."""
        self.observations.remove(positions)
        self._forget()

    def set_variances(self, variances: ArrayLike) -> None:
        """Let observations age."""
        self.observations.set_variances(variances)
        self._forget()

    def mean(self, points: ArrayLike | None = None) -> Values:
        """Give the mean at the candidates."""
        return self._belief()[0] + self.prior_mean

    def std(self, points: ArrayLike | None = None) -> Values:
        """Give the std at the candidates."""
        return self._belief()[1]

    def mean_gradient(self, point: Point) -> Point:
        """Refuse: on a grid nothing climbs."""
        raise NotImplementedError

    def std_gradient(self, point: Point) -> Point:
        """Refuse: on a grid nothing climbs."""
        raise NotImplementedError

    @property
    def log_determinant(self) -> float:
        """From the factor that the fit leaves."""
        if not len(self):
            return 0.0
        diagonal = np.diagonal(self._fitted().L_)
        return float(2 * np.log(diagonal).sum() - np.log(self.observations.variances).sum())

    def _forget(self) -> None:
        self._model = self.predicted = None

    def _fitted(self) -> Any:
        from sklearn.gaussian_process import GaussianProcessRegressor

        if self._model is None:
            seen = self.observations
            model = GaussianProcessRegressor(self._kernel, alpha=seen.variances, optimizer=None)
            self._model = model.fit(seen.points, seen.values - self.prior_mean)
        return self._model

    def _belief(self) -> tuple[Values, Values]:
        if self.predicted is None:
            if len(self):
                self.predicted = self._fitted().predict(self.candidates, return_std=True)
            else:
                count = 0 if self.candidates is None else len(self.candidates)
                self.predicted = np.zeros(count), np.full(count, self.kernel.variance**0.5)
        return self.predicted


class RefittedInTime(Memory):
    """What TV-GP-UCB remembers, by scikit-learn: all points in space and time."""

    def __init__(self, prior: GPPrior, period: float, epsilon: float) -> None:
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

        super().__init__(prior, period)
        assert isinstance(prior.kernel, SquaredExponential)
        forever = 1e12
        lasts = -2 / np.log1p(-epsilon)
        self._kernel = (
            ConstantKernel(prior.kernel.variance)
            * RBF([prior.kernel.length_scale, forever])
            * Matern([forever, lasts], nu=0.5)
        )
        self._seen: list[tuple[float, float, float, float]] = []

    def learn(self, answer: Answer) -> None:
        """Keep the answer."""
        moment = answer.measured_at / self.period
        variances = self.prior.variances(answer)
        for point, value, variance in zip(answer.points, answer.values, variances, strict=True):
            self._seen.append((point[0], moment, value, variance))

    def predictor(self, now: float) -> Predictor:
        """Fit all anew."""
        from sklearn.gaussian_process import GaussianProcessRegressor

        fitted = Refitted(self.prior)
        if self._seen:
            x, moments, values, variances = np.array(self._seen).T
            model = GaussianProcessRegressor(self._kernel, alpha=variances, optimizer=None)
            model.fit(np.column_stack([x, moments]), values - self.prior.mean)
            here = np.full(len(self.prior.candidates), now / self.period)
            places = np.column_stack([self.prior.candidates[:, 0], here])
            fitted.predicted = model.predict(places, return_std=True)
        return fitted


def ours(optimizer: str) -> Trace:
    """Play as the scenario says."""
    return SCENARIO.play(optimizer)


def refitted(optimizer: str) -> Trace:
    """Play with scikit-learn's posterior."""
    import sklearn.gaussian_process  # noqa: F401 # not in the middle of a play

    with (
        patch.object(GPPrior, "start_posterior", lambda prior: Refitted(prior)),
        patch("sparq_sim.optimizers.tv_gp_ucb._TimeMemory", RefittedInTime),
    ):
        return SCENARIO.play(optimizer)


def pair(what: str, optimizers: Sequence[str]) -> Pair:
    """Compare a play of each of some optimizers."""
    return Pair(
        what,
        lambda: [ours(optimizer) for optimizer in optimizers],
        lambda: [refitted(optimizer) for optimizer in optimizers],
        at_least(20),
        repetitions=3,
    )


def seconds(optimizer: str) -> float:
    """Time a play, in CPU seconds."""
    times = []
    for replication in range(5):
        began = process_time()
        SCENARIO.play(optimizer, replication)
        times.append(process_time() - began)
    return median(times)


def whole() -> Row:
    """Project the time of all plays."""
    total = SCENARIO.replications * sum(map(seconds, SCENARIO.optimizers))
    share = total / ALLOWED
    return Row("240 plays, CPU time; 6 minutes", total, ALLOWED, share, "at most 1 x", share <= 1)


def check_agreement() -> None:
    """Stop where scikit-learn's posterior leads to other moves."""
    for optimizer in COMPARED:
        if not np.array_equal(ours(optimizer).points, refitted(optimizer).points):
            raise SystemExit(f"{optimizer} makes other moves with scikit-learn's posterior")


if __name__ == "__main__":
    warnings.simplefilter("ignore", PriorWarning)  # As many queries as the paper asks are few.
    with threadpool_limits(limits=1):
        check_agreement()
        main(
            "Figure 1",
            [
                pair("GP-UCB, a play; scikit-learn", ["gp-ucb"]),
                pair("all six, a play each; scikit-learn", COMPARED),
                whole,
            ],
        )
