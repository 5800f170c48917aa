"""Gaussian processes and sampling compared with scikit-learn, BoTorch, LAPACK and DPPy.

- GP-UCB on 1,000 grid points: scikit-learn refits in every round, without its optimizer of
  hyperparameters; BoTorch builds a model with fixed noise in every round.
- Ageing noise: all variances change; 500 observations at 121 distinct points.
- TV-GP-UCB: the dense form factors K o D in every round.
- SparQ-GP-UCB: the ratio is the exponent with which the time of a play grows between the two
  numbers of rounds.

Run it from the root of the repository: `python -m benchmarks.engine [--check] [--json]`. It uses
one BLAS thread, as every play does, and first checks that both sides compute the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from benchmarks.compare import Pair, Row, at_least, growth, main
from sparq_sim import Channel, Rules, play
from sparq_sim.arrays import Matrix, Values
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.posterior import CholeskyPosterior
from sparq_sim.gp.posterior.drifting import KalmanPosterior
from sparq_sim.gp.posterior.feature_posterior import FeaturePosterior
from sparq_sim.gp.posterior.features import Features
from sparq_sim.gp.sparse.dpp import ExactSampler, eigenfeatures
from sparq_sim.gp.sparse.exchange import ExchangeChain
from sparq_sim.gp.sparse.greedy import select_greedily
from sparq_sim.optimizers.shared.selection import Way
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.plugin.registry import load
from sparq_sim.testing import Teller

ROUNDS = 500
GRID = np.linspace(-50.0, 50.0, 1000)[:, None]
SCALE = 3.16
VARIANCE = 0.01
KERNEL = SquaredExponential(length_scale=SCALE)
EPSILON = 0.03
CHOSEN = 37
STEPS = 2000
DRAWS = 10
AGEINGS = 20

MeanAndStd = tuple[Values, Values]


def choose(mean: Values, std: Values, number: int) -> int:
    """Return the index of the highest upper confidence bound in round *number*."""
    return int(np.argmax(mean + sqrt(0.8 * log(4 * number)) * std))


@cache
def path() -> tuple[NDArray[np.intp], Values]:
    """Play GP-UCB once and return its points and observations, which all methods then use."""
    posterior = CholeskyPosterior(KERNEL, candidates=GRID)
    noise = np.random.default_rng(1).normal(0, 0.1, ROUNDS)
    places, values = [], []
    for number in range(1, ROUNDS + 1):
        place = choose(posterior.mean(), posterior.std(), number)
        x = float(GRID[place, 0])
        values.append(np.exp(-0.05 * (x - 2) ** 2) + 0.5 * np.cos(0.2 * x) + noise[number - 1])
        posterior.add(GRID[place], values[-1], variances=VARIANCE)
        places.append(place)
    return np.array(places), np.array(values)


@cache
def gram() -> Matrix:
    """Return the kernel matrix of the grid."""
    return KERNEL(GRID, GRID)


def agree(one: MeanAndStd, other: MeanAndStd, tolerance: float) -> None:
    """Exit with an error if two methods differ by more than *tolerance*."""
    gap = max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))
    if gap > tolerance:
        raise SystemExit(f"the methods differ by {gap:.1e}, more than {tolerance:.0e}")


# GP-UCB, 500 rounds.


def ours_static() -> MeanAndStd:
    """Add an observation and predict, in every round."""
    posterior = CholeskyPosterior(KERNEL, candidates=GRID)
    for number, (place, value) in enumerate(zip(*path(), strict=True), 1):
        choose(posterior.mean(), posterior.std(), number)
        posterior.add(GRID[place], value, variances=VARIANCE)
    return posterior.mean(), posterior.std()


def scikit_learn() -> MeanAndStd:
    """Refit in every round, without the optimizer of hyperparameters."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    places, values = path()
    for number in range(1, ROUNDS + 1):
        model = GaussianProcessRegressor(RBF(SCALE), alpha=VARIANCE, optimizer=None)
        model.fit(GRID[places[:number]], values[:number])
        mean, std = model.predict(GRID, return_std=True)
        choose(mean, std, number)
    return mean, std


def botorch() -> MeanAndStd:
    """Build a model with fixed noise and fixed hyperparameters in every round."""
    import torch
    from botorch.models import SingleTaskGP
    from gpytorch.kernels import RBFKernel, ScaleKernel
    from gpytorch.means import ZeroMean

    torch.set_num_threads(1)
    places, values = path()
    grid = torch.tensor(GRID)
    noise = torch.full((ROUNDS, 1), VARIANCE, dtype=torch.float64)
    for number in range(1, ROUNDS + 1):
        kernel = ScaleKernel(RBFKernel())
        kernel.outputscale = 1.0
        kernel.base_kernel.lengthscale = SCALE
        model = SingleTaskGP(
            grid[places[:number].tolist()],
            torch.tensor(values[:number])[:, None],
            noise[:number],
            covar_module=kernel,
            mean_module=ZeroMean(),
            outcome_transform=None,
        ).to(torch.float64)
        with torch.no_grad():
            belief = model.posterior(grid)
            mean = belief.mean[:, 0].numpy()
            std = belief.variance[:, 0].sqrt().numpy()
        choose(mean, std, number)
    return mean, std


# Ageing noise, at t = 500.


def age_variances(number: int) -> Values:
    """Return the variances of all observations *number* rounds later."""
    ages = np.arange(ROUNDS)[::-1] + number
    return VARIANCE * (1.0 + np.square(ages))


@cache
def spread_path() -> tuple[NDArray[np.intp], Values]:
    """Return 500 observations at 121 distinct points."""
    rng = np.random.default_rng(2)
    places = rng.permutation(len(GRID))[:121][rng.integers(0, 121, ROUNDS)]
    x = GRID[places, 0]
    return places, np.exp(-0.05 * (x - 2) ** 2) + rng.normal(0, 0.1, ROUNDS)


@cache
def features() -> Features:
    """Compute the features of the grid, once."""
    return Features.of(KERNEL, GRID)


def ours_ageing() -> MeanAndStd:
    """Set the variances of all observations, and predict."""
    places, values = spread_path()
    posterior = FeaturePosterior(features())
    posterior.add(GRID[places], values, variances=VARIANCE)
    for number in range(AGEINGS):
        posterior.set_variances(age_variances(number))
        belief = posterior.mean(), posterior.std()
    return belief


def lapack_ageing() -> MeanAndStd:
    """Factor the covariance again each time, and predict."""
    places, values = spread_path()
    for number in range(AGEINGS):
        covariance = gram()[np.ix_(places, places)] + np.diag(age_variances(number))
        belief = condition(covariance, gram()[places], values)
    return belief


def condition(covariance: Matrix, cross: Matrix, values: Values) -> MeanAndStd:
    """Return mean and std on the grid given *values*, by LAPACK."""
    lower, _ = lapack.dpotrf(covariance, lower=1)
    right = np.asfortranarray(np.column_stack([cross, values]))
    solved, _ = lapack.dtrtrs(lower, right, lower=1)
    mean: Values = solved[:, :-1].T @ solved[:, -1]
    return mean, np.sqrt(1 - np.square(solved[:, :-1]).sum(axis=0))


# TV-GP-UCB, 500 rounds.


def ours_drifting() -> MeanAndStd:
    """Update a Kalman filter in every round."""
    posterior = KalmanPosterior(features())
    for number, (place, value) in enumerate(zip(*path(), strict=True), 1):
        posterior.add(GRID[place], value, variances=VARIANCE)
        posterior.drift(sqrt(1 - EPSILON), EPSILON)
        belief = posterior.mean(), posterior.std()
        choose(*belief, number)
    return belief


def dense_drifting() -> MeanAndStd:
    """Factor K o D + s2 I in every round, as in the paper of TV-GP-UCB."""
    places, values = path()
    times = np.arange(ROUNDS)
    for number in range(1, ROUNDS + 1):
        seen, ages = places[:number], times[:number]
        fading = (1 - EPSILON) ** (0.5 * np.abs(np.subtract.outer(ages, ages)))
        covariance = gram()[np.ix_(seen, seen)] * fading + VARIANCE * np.eye(number)
        cross = gram()[seen] * ((1 - EPSILON) ** (0.5 * (number - ages)))[:, None]
        belief = condition(covariance, cross, values[:number])
        choose(*belief, number)
    return belief


# The M-DPP, N = 500, M = 37.


@cache
def crowded_points() -> tuple[Matrix, Matrix]:
    """Return the kernel matrix and the features of 500 points of a grid."""
    grid = np.linspace(-50.0, 50.0, 1001)[:, None]
    rows = np.random.default_rng(0).choice(1001, 500, replace=False)
    return KERNEL(grid[rows], grid[rows]), eigenfeatures(KERNEL(grid, grid))[:, rows]


def ours_exact() -> None:
    """Draw some sets; nothing is kept between draws."""
    rng = np.random.default_rng(1)
    for _ in range(DRAWS):
        ExactSampler(crowded_points()[1], CHOSEN).sample(rng)


def dppy_exact() -> None:
    """Draw some sets; nothing is kept between draws."""
    from dppy.finite_dpps import FiniteDPP

    for seed in range(DRAWS):
        FiniteDPP("likelihood", L=crowded_points()[0]).sample_exact_k_dpp(CHOSEN, random_state=seed)


def ours_chain() -> object:
    """Take the steps of the chain, including those that change nothing."""
    return ExchangeChain(crowded_points()[0], CHOSEN, rng=np.random.default_rng(1)).run(STEPS)


def dppy_chain() -> object:
    """Take as many steps from the same greedy start; its own start fails on such data."""
    from dppy.finite_dpps import FiniteDPP

    matrix = crowded_points()[0]
    start = select_greedily(matrix, CHOSEN).tolist()
    dpp = FiniteDPP("likelihood", L=matrix)
    return dpp.sample_mcmc_k_dpp(CHOSEN, s_init=start, nb_iter=STEPS, random_state=1)


# SparQ-GP-UCB, whole plays.


def play_sparq(rounds: int, selection: Way = "greedy") -> object:
    """Play the paper's function with a length scale of 6.7."""
    kernel = SquaredExponential(variance=1.25, length_scale=6.7)
    noise = Channel(noise=0.1)
    return play(
        SparQGPUCB(kernel=kernel, mean=1.5, selection=selection),
        load("environment", "synthetic")(),
        Rules(rounds=rounds),
        experts={"expert": (Teller(), noise)},
        feedback=noise,
    )


def measure_growth(selection: Way) -> Callable[[], Row]:
    """Return what measures how the time of a play grows with its rounds."""
    what = f"SparQ-GP-UCB, {selection}, 20,000 rounds; 2,000"
    return lambda: growth(
        what, lambda rounds: play_sparq(rounds, selection), sizes=(2_000, 20_000), most=1.15
    )


PAIRS: list[Pair | Callable[[], Row]] = [
    Pair(
        "GP-UCB, 500 rounds; scikit-learn",
        ours_static,
        scikit_learn,
        at_least(150),
        repetitions=3,
    ),
    Pair(
        "GP-UCB, 500 rounds; BoTorch",
        ours_static,
        botorch,
        at_least(500),
        repetitions=1,
    ),
    Pair(
        "ageing noise, t = 500; LAPACK",
        ours_ageing,
        lapack_ageing,
        at_least(15),
        units=AGEINGS,
    ),
    Pair(
        "TV-GP-UCB, 500 rounds; dense",
        ours_drifting,
        dense_drifting,
        at_least(80),
        repetitions=3,
    ),
    Pair("exact M-DPP, 37 of 500; DPPy", ours_exact, dppy_exact, at_least(15), units=DRAWS),
    Pair(
        "exchange chain, a step; DPPy",
        ours_chain,
        dppy_chain,
        at_least(3),
        units=STEPS,
        repetitions=9,
    ),
    measure_growth("greedy"),
    measure_growth("exact"),
]


def check_agreement() -> None:
    """Exit with an error if both sides do not compute the same numbers."""
    agree(ours_static(), scikit_learn(), 1e-8)
    agree(ours_ageing(), lapack_ageing(), 1e-10)
    agree(ours_drifting(), dense_drifting(), 1e-10)


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        check_agreement()
        main("The engine beside its peers", PAIRS)
