from __future__ import annotations

from math import inf, sqrt

import numpy as np
import pytest
from numpy.random import Generator, Philox
from numpy.testing import assert_allclose, assert_array_equal
from pydantic import ValidationError
from scipy import stats
from scipy.optimize import minimize
from sklearn.linear_model import Ridge

from sparq_environments.online_tuning import OnlineTuning, _OnlineTuningLandscape, _Stream
from sparq_sim import Rules, play
from sparq_sim.arrays import Matrix, Point, Values
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.simulation.channel.channel import Channel

WORLDS = [
    OnlineTuning(),
    OnlineTuning(rotation=0.05, switch_every=inf),
    OnlineTuning(rotation=0.0, switch_every=17.5, samples=1, noise=0.1),
    OnlineTuning(features=2, half_lives=(0.1, 4.0), ridges=(1e-4, 1e4)),
]
AFTER_A_JUMP = [61.0, 64.0]

each_world = pytest.mark.parametrize("world", WORLDS, ids=repr)


def rng(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


def started(world: OnlineTuning, seed: int = 1) -> tuple[_OnlineTuningLandscape, _Stream]:
    """Return the landscape, and its stream apart from it."""
    return _OnlineTuningLandscape(world, rng(seed)), _Stream(world, rng(seed))


def history(world: OnlineTuning, stream: _Stream, time: float) -> tuple[Matrix, Values, Values]:
    """Return all pairs that a learner has at *time*, and the age of each in whole steps."""
    steps = [step for step in range(-1010, 130) if time - 10 * world.half_lives[1] <= step < time]
    blocks = {number: stream.draw_pairs(number) for number in {step // 256 for step in steps}}
    inputs = np.concatenate([blocks[step // 256][0][step % 256] for step in steps])
    outputs = np.concatenate([blocks[step // 256][1][step % 256] for step in steps])
    ages = np.repeat(np.array(steps[::-1]) - steps[0], world.samples).astype(float)
    return inputs, outputs, ages


# The best.


@each_world
@pytest.mark.parametrize("time", AFTER_A_JUMP)
def test_best_is_beaten_by_no_random_point_and_no_climb(world: OnlineTuning, time: float) -> None:
    landscape, _ = started(world)
    points = landscape.domain.sample(rng(3), 10_000)
    rewards = landscape.rewards(points, time)
    _, value = landscape.best(time)
    assert np.isfinite(rewards).all()
    assert rewards.max() <= value

    def depth(point: Point) -> float:
        return -float(landscape.rewards(point[None], time)[0])

    bounds = list(zip(landscape.domain.lower, landscape.domain.upper, strict=True))
    for start in points[np.argsort(rewards)[-3:]]:
        climbed = minimize(depth, start, method="Nelder-Mead", bounds=bounds)
        assert -climbed.fun <= value + 1e-9


# The learner, against another's.


@pytest.mark.parametrize("world", WORLDS[:3], ids=repr)
@pytest.mark.parametrize("time", [0.0, 61.0, 99.5])
def test_the_learner_is_scikit_learns_ridge_with_weights(world: OnlineTuning, time: float) -> None:
    landscape, stream = started(world)
    inputs, outputs, ages = history(world, stream, time)
    points = np.concatenate([landscape.domain.sample(rng(4), 4), landscape.domain.grid(2)])
    for (ridge, half_life), fit in zip(10**points, landscape.fit(points, time), strict=True):
        weights = np.exp2(-ages / half_life)
        model = Ridge(alpha=ridge * weights.sum(), fit_intercept=False, solver="cholesky")
        model.fit(inputs, outputs, sample_weight=weights)
        assert_allclose(fit, model.coef_, rtol=1e-9, atol=1e-11)


def test_a_learner_that_keeps_everything_recovers_a_concept_that_stays() -> None:
    world = OnlineTuning(rotation=0.0, switch_every=inf, half_lives=(1.0, 1000.0), features=3)
    landscape, stream = started(world)
    (fit,) = landscape.fit(np.array([[-3.0, 3.0]]), 100.0)
    # Effective pairs: (sum a)^2 / sum a^2 = 2 h / ln 2, of 4 a step.
    error = world.noise / sqrt(2 * 1000 / np.log(2) * world.samples)
    assert np.abs(fit - stream.concepts(np.array([100.0]))[0]).max() < 5 * error


def test_tomorrows_data_are_not_known_today() -> None:
    landscape, _ = started(OnlineTuning())
    point = np.array([[-1.0, 1.0]])
    assert_array_equal(landscape.fit(point, 8.5), landscape.fit(point, 9.0))
    assert (landscape.fit(point, 9.0) != landscape.fit(point, 9.0 + 1e-9)).all()


# The reward and its observations.


def test_the_reward_is_the_error_on_a_great_held_out_batch() -> None:
    world = OnlineTuning()
    landscape, stream = started(world)
    points = landscape.domain.sample(rng(5), 6)
    for time in (61.0, 100.0):
        inputs = rng(6).standard_normal((200_000, world.features))
        outputs = inputs @ stream.concepts(np.array([time]))[0]
        outputs += world.noise * rng(7).standard_normal(len(outputs))
        squares = (outputs[:, None] - inputs @ landscape.fit(points, time).T) ** 2
        errors = squares.std(axis=0) / sqrt(len(squares))
        assert (abs(-squares.mean(axis=0) - landscape.rewards(points, time)) < 4 * errors).all()


@pytest.mark.parametrize("batch", [1, 20])
def test_observations_are_chi_squared_about_the_reward(batch: int) -> None:
    # So they are unbiased, and have std |f| sqrt(2 / batch).
    landscape, _ = started(OnlineTuning(batch=batch))
    points = np.repeat(landscape.domain.sample(rng(8), 3), 4_000, axis=0)
    rewards = landscape.rewards(points, 61.0)
    ratios = (batch * landscape.observe(points, 61.0, rng(9)) / rewards).reshape(3, -1)
    for row in ratios:
        assert stats.kstest(row, stats.chi2(batch).cdf).pvalue > 0.001
        assert abs(row.mean() - batch) < 4 * sqrt(2 * batch / row.size)


def test_the_variance_of_observations_falls_with_the_batch() -> None:
    spreads = []
    for batch in (4, 16, 64):
        landscape, _ = started(OnlineTuning(batch=batch))
        points = np.full((4_000, 2), [-1.0, 1.0])
        spreads.append(landscape.observe(points, 50.0, rng(10)).var())
    assert_allclose(np.divide(spreads[:-1], spreads[1:]), 4.0, rtol=0.15)


def test_an_observation_does_not_depend_on_how_many_are_made() -> None:
    landscape, _ = started(OnlineTuning())
    points = landscape.domain.sample(rng(11), 5)
    many = landscape.observe(points, 3.0, rng(12))
    assert_allclose(landscape.observe(points[:2], 3.0, rng(12)), many[:2], rtol=1e-12)


def test_it_plays_with_noise_of_its_own() -> None:
    world = OnlineTuning()
    trace = play(Uniform(), world, Rules(rounds=40), feedback=Channel(), seed=3)
    misses = trace.replies["value"] / trace.rounds["reward"]
    assert len(set(misses)) == 40
    assert abs(misses.mean() - 1) < 4 * sqrt(2 / world.batch / 40)


# The stream.


@each_world
def test_concepts_have_length_one(world: OnlineTuning) -> None:
    _, stream = started(world)
    concepts = stream.concepts(np.linspace(-500, 20_000, 99))
    assert_allclose(np.linalg.norm(concepts, axis=1), 1.0, rtol=1e-12)


def test_a_concept_turns_at_its_rate_between_jumps() -> None:
    _, stream = started(OnlineTuning(rotation=0.03, switch_every=50.0))
    concepts = stream.concepts(np.arange(-200.0, 200.0))
    turned = np.arccos((concepts[1:] * concepts[:-1]).sum(axis=1))
    jumps = np.arange(-199, 200) % 50 == 0
    assert_allclose(turned[~jumps], 0.03, rtol=1e-6)
    assert turned[jumps].min() > 0.3


def test_data_have_the_moments_that_are_stated() -> None:
    world = OnlineTuning(rotation=0.0, switch_every=inf, samples=40, features=3)
    _, stream = started(world)
    means = stream.moments(-1000, 1000).mean(axis=0)
    # An entry of x x' has variance 2 at most, one of x y no more than 2 + noise^2.
    error = sqrt((2 + world.noise**2) / (2000 * world.samples))
    assert (abs(means[:3] - stream.concepts(np.zeros(1))[0]) < 4 * error).all()
    assert (abs(means[3:] - np.eye(3).ravel()) < 4 * error).all()


def test_what_is_best_moves_after_a_jump_short_half_lives_later_long_ones() -> None:
    after, later, shrunk = [], [], []
    for seed in range(6):
        landscape, _ = started(OnlineTuning(), seed)
        shrunk.append(landscape.best(61.0)[0][0])
        after.append(landscape.best(66.0)[0][1])
        later.append(landscape.best(115.0)[0][1])
    assert np.median(shrunk) > 0  # A ridge above 1: all that is known is out of date.
    assert np.median(after) < 0.3  # A half-life of less than 2.
    assert np.median(later) > 0.6  # Of more than 4.


# What is refused.


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("features", 1),
        ("samples", 0),
        ("noise", 0.0),
        ("noise", inf),
        ("rotation", -0.1),
        ("switch_every", 0.5),
        ("switch_every", float("nan")),
        ("batch", 0),
        ("ridges", (1.0, 0.1)),
        ("ridges", (0.0, 1.0)),
        ("half_lives", (1.0, 1.0)),
        ("half_lives", (1.0, 1e6)),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(field: str, given: object) -> None:
    with pytest.raises(ValidationError, match=field):
        OnlineTuning.model_validate({field: given})


def test_half_lives_in_the_wrong_order_are_refused_with_the_limits() -> None:
    with pytest.raises(ValidationError, match=r"\(9.0, 3.0\) must be .* from 0.1 to 1000"):
        OnlineTuning(half_lives=(9.0, 3.0))
