"""Plays of Figure 1 compared with the same plays with the posterior computed by scikit-learn.

`paper/synthetic` is played as it is, and again with scikit-learn in place of our posterior: its
regressor, without the optimizer of hyperparameters and with a variance for each observation, is
refitted whenever something was observed, forgotten or aged. Everything else is ours in both: the
play, the fit of the kernel to the design (done once, for both), the widths, the choice of points to
ask about. For TV-GP-UCB scikit-learn fits points in space and time: (1 - epsilon)^(|dt|/2) is its
Matern kernel with nu 1/2.

The last row is the time of all 240 plays, projected from those timed here, compared with six
minutes: two cores for three minutes.

Run it from the root of the repository: `python -m benchmarks.figure1 [--check] [--json]`. It uses
one BLAS thread, as every play does, and first checks that both sides make the same moves.
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
from sparq_sim.gp.predictor import Predictor
from sparq_sim.messages import Answer
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior, PriorWarning
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.trace import Trace

SCENARIO = Scenario.load("paper/synthetic")
COMPARED = tuple(SCENARIO.optimizers)
ALLOWED = 2 * 180.0
"""CPU seconds: two cores for three minutes."""


class RefittedPosterior:
    """A posterior computed by scikit-learn, refitted after every change."""

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
        """Remove observations."""
        self.observations.remove(positions)
        self._forget()

    def set_variances(self, variances: ArrayLike) -> None:
        """Set the variances of all observations."""
        self.observations.set_variances(variances)
        self._forget()

    def mean(self, points: ArrayLike | None = None) -> Values:
        """Return the mean at the candidates."""
        return self._belief()[0] + self.prior_mean

    def std(self, points: ArrayLike | None = None) -> Values:
        """Return the std at the candidates."""
        return self._belief()[1]

    def mean_gradient(self, point: Point) -> Point:
        """Raise an error: on a grid no gradient is needed."""
        raise NotImplementedError

    def std_gradient(self, point: Point) -> Point:
        """Raise an error: on a grid no gradient is needed."""
        raise NotImplementedError

    @property
    def log_determinant(self) -> float:
        """The log determinant, from the factor of the fit."""
        if not len(self):
            return 0.0
        diagonal = np.diagonal(self._fit().L_)
        return float(2 * np.log(diagonal).sum() - np.log(self.observations.variances).sum())

    def _forget(self) -> None:
        self._model = self.predicted = None

    def _fit(self) -> Any:
        from sklearn.gaussian_process import GaussianProcessRegressor

        if self._model is None:
            seen = self.observations
            model = GaussianProcessRegressor(self._kernel, alpha=seen.variances, optimizer=None)
            self._model = model.fit(seen.points, seen.values - self.prior_mean)
        return self._model

    def _belief(self) -> tuple[Values, Values]:
        if self.predicted is None:
            if len(self):
                self.predicted = self._fit().predict(self.candidates, return_std=True)
            else:
                count = 0 if self.candidates is None else len(self.candidates)
                self.predicted = np.zeros(count), np.full(count, self.kernel.variance**0.5)
        return self.predicted


class RefittedInTime(Memory):
    """The memory of TV-GP-UCB with scikit-learn: all points in space and time."""

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
        """Fit everything again."""
        from sklearn.gaussian_process import GaussianProcessRegressor

        fitted = RefittedPosterior(self.prior)
        if self._seen:
            x, moments, values, variances = np.array(self._seen).T
            model = GaussianProcessRegressor(self._kernel, alpha=variances, optimizer=None)
            model.fit(np.column_stack([x, moments]), values - self.prior.mean)
            here = np.full(len(self.prior.candidates), now / self.period)
            places = np.column_stack([self.prior.candidates[:, 0], here])
            fitted.predicted = model.predict(places, return_std=True)
        return fitted


def play_ours(optimizer: str) -> Trace:
    """Play the scenario as it is."""
    return SCENARIO.play(optimizer)


def play_refitted(optimizer: str) -> Trace:
    """Play with scikit-learn's posterior."""
    import sklearn.gaussian_process  # noqa: F401 # loaded here, not in the middle of a play

    with (
        patch.object(GPPrior, "start_posterior", lambda prior: RefittedPosterior(prior)),
        patch("sparq_sim.optimizers.tv_gp_ucb._TimeMemory", RefittedInTime),
    ):
        return SCENARIO.play(optimizer)


def compare_plays(what: str, optimizers: Sequence[str]) -> Pair:
    """Compare one play of each of *optimizers*."""
    return Pair(
        what,
        lambda: [play_ours(optimizer) for optimizer in optimizers],
        lambda: [play_refitted(optimizer) for optimizer in optimizers],
        at_least(20),
        repetitions=3,
    )


def time_play(optimizer: str) -> float:
    """Return the median CPU time of a play, in seconds."""
    times = []
    for replication in range(5):
        began = process_time()
        SCENARIO.play(optimizer, replication)
        times.append(process_time() - began)
    return median(times)


def project_all() -> Row:
    """Project the time of all plays from a few."""
    total = SCENARIO.replications * sum(map(time_play, SCENARIO.optimizers))
    share = total / ALLOWED
    return Row("240 plays, CPU time; 6 minutes", total, ALLOWED, share, "at most 1 x", share <= 1)


def check_agreement() -> None:
    """Exit with an error if scikit-learn's posterior leads to other moves."""
    for optimizer in COMPARED:
        if not np.array_equal(play_ours(optimizer).points, play_refitted(optimizer).points):
            raise SystemExit(f"{optimizer} makes other moves with scikit-learn's posterior")


if __name__ == "__main__":
    warnings.simplefilter("ignore", PriorWarning)  # The paper asks about few points.
    with threadpool_limits(limits=1):
        check_agreement()
        main(
            "Figure 1",
            [
                compare_plays("GP-UCB, a play; scikit-learn", ["gp-ucb"]),
                compare_plays("all six, a play each; scikit-learn", COMPARED),
                project_all,
            ],
        )
