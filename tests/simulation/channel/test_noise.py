from __future__ import annotations

import math
import pickle
from random import Random as Shuffler

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, Philox
from pydantic import TypeAdapter, ValidationError
from scipy import stats

from sparq_sim.arrays import Values
from sparq_sim.simulation.channel.noise import (
    AnyLoss,
    AnyNoise,
    Bounded,
    Bursts,
    DistanceDependent,
    Gaussian,
    Loss,
    Noise,
    Random,
    StudentT,
    ValueDependent,
)

NOISE: TypeAdapter[Noise] = TypeAdapter(AnyNoise)
LOSS: TypeAdapter[Loss] = TypeAdapter(AnyLoss)
NOISES: list[Noise] = [
    Gaussian(std=0.3),
    StudentT(std=0.3, freedom=9.0),
    Bounded(std=0.3),
    ValueDependent(floor=0.1, share=0.2),
    DistanceDependent(floor=0.1, slope=0.2, origin=(1.0, 1.0)),
]
LOSSES: list[Loss] = [
    Random(probability=0.25),
    Bursts(good_spell=8.0, bad_spell=2.0, lost_in_good=0.1, lost_in_bad=0.9),
]
LEVELS = np.array([0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99])

each_noise = pytest.mark.parametrize("noise", NOISES, ids=repr)
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


# Errors


@each_noise
def test_units_have_mean_zero_and_variance_one(noise: Noise) -> None:
    units = noise.units(stream(1), 40_000)
    squares = units**2
    assert abs(units.mean()) < 5 / math.sqrt(len(units))
    assert abs(squares.mean() - 1) < 5 * squares.std() / math.sqrt(len(units))


@pytest.mark.parametrize(
    ("noise", "quantiles"),
    [
        (Gaussian(std=1.0), stats.norm.ppf(LEVELS)),
        (StudentT(std=1.0), stats.t.ppf(LEVELS, 3.0) / math.sqrt(3.0)),
        (StudentT(std=1.0, freedom=9.0), stats.t.ppf(LEVELS, 9.0) * math.sqrt(7 / 9)),
        (Bounded(std=1.0), stats.uniform.ppf(LEVELS, -math.sqrt(3), 2 * math.sqrt(3))),
        (ValueDependent(share=1.0), stats.norm.ppf(LEVELS)),
        (DistanceDependent(slope=1.0, origin=(0.0,)), stats.norm.ppf(LEVELS)),
    ],
    ids=repr,
)
def test_as_many_units_lie_below_a_quantile_as_should(noise: Noise, quantiles: Values) -> None:
    units = noise.units(stream(2), 20_000)
    shares = (units[:, None] <= quantiles).mean(axis=0)
    assert (abs(shares - LEVELS) < 5 * np.sqrt(LEVELS * (1 - LEVELS) / len(units))).all()


def test_bounded_noise_never_exceeds_its_bound_but_comes_near() -> None:
    largest = abs(Bounded(std=1.0).units(stream(3), 20_000)).max()
    assert 0.999 * math.sqrt(3) < largest <= math.sqrt(3)


@each_noise
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**64 - 1), few=st.integers(0, 20), more=st.integers(0, 20))
def test_an_error_does_not_depend_on_how_many_are_drawn(
    noise: Noise, seed: int, few: int, more: int
) -> None:
    units = noise.units(stream(seed), few + more)
    assert units.shape == (few + more,)
    assert units[:few].tolist() == noise.units(stream(seed), few).tolist()


# How large they are


@pytest.mark.parametrize("noise", [Gaussian(std=0.3), StudentT(std=0.3), Bounded(std=0.3)])
def test_even_noise_has_its_std_everywhere(noise: Noise) -> None:
    points, values = np.array([[0.0], [1e6]]), np.array([0.0, 1e6])
    assert np.broadcast_to(noise.stds(points, values), 2).tolist() == [0.3, 0.3]
    assert noise.expected_std == 0.3


def test_value_dependent_noise_adds_variances() -> None:
    noise = ValueDependent(floor=3.0, share=2.0)
    stds = noise.stds(np.zeros((3, 1)), np.array([0.0, 2.0, -2.0]))
    assert np.asarray(stds).tolist() == [3.0, 5.0, 5.0]
    assert noise.expected_std == 3.0


def test_distance_dependent_noise_grows_with_the_way_from_its_origin() -> None:
    noise = DistanceDependent(floor=1.0, slope=0.5, origin=(1.0, 1.0))
    points = np.array([[1.0, 1.0], [4.0, 5.0], [-2.0, -3.0], [1.0, 3.0]])
    assert np.asarray(noise.stds(points, np.zeros(4))).tolist() == [1.0, 3.5, 3.5, 2.0]
    assert noise.expected_std == 1.0


def test_an_origin_of_other_dimensions_is_refused_with_both_numbers() -> None:
    noise = DistanceDependent(slope=1.0, origin=(0.0, 0.0))
    with pytest.raises(ValueError, match=r"origin of 2 coordinates; points have 1"):
        noise.stds(np.zeros((1, 1)), np.zeros(1))


@each_noise
def test_a_claim_is_told_beforehand_and_changes_no_error(noise: Noise) -> None:
    bold = noise.model_copy(update={"claimed": 0.05})
    points, values = np.ones((3, 2)), np.array([0.0, 1.0, 2.0])
    assert bold.expected_std == 0.05
    assert bold.units(stream(), 3).tolist() == noise.units(stream(), 3).tolist()
    np.testing.assert_array_equal(bold.stds(points, values), noise.stds(points, values))


@pytest.mark.parametrize(
    ("noise", "silent"),
    [
        (Gaussian(std=0.0), True),
        (Gaussian(std=0.0, claimed=0.0), True),
        (Gaussian(std=0.0, claimed=0.1), False),
        (Gaussian(std=0.1), False),
        (Gaussian(std=0.1, claimed=0.0), False),
        (Bounded(std=0.0), True),
        (StudentT(std=0.0), True),
        (ValueDependent(share=0.1), False),
        (DistanceDependent(slope=0.1, origin=(0.0,)), False),
    ],
    ids=repr,
)
def test_noise_is_silent_if_there_is_none_nor_a_claim_of_any(noise: Noise, silent: bool) -> None:
    assert noise.silent is silent


# How noise and loss are written


@pytest.mark.parametrize("number", [0, 2, 0.25])
def test_a_bare_number_is_the_std_of_normal_errors(number: float) -> None:
    assert NOISE.validate_python(number) == Gaussian(std=number)


@pytest.mark.parametrize("number", [0, 1, 0.25])
def test_a_bare_number_is_a_probability_of_loss(number: float) -> None:
    assert LOSS.validate_python(number) == Random(probability=number)


@each_noise
def test_noise_survives_being_written_down_and_pickled(noise: Noise) -> None:
    assert NOISE.validate_python(noise.model_dump()) == noise
    assert NOISE.validate_json(noise.model_dump_json()) == noise
    copy = pickle.loads(pickle.dumps(noise))
    assert (copy, hash(copy)) == (noise, hash(noise))


@each_loss
def test_loss_survives_being_written_down_and_pickled(loss: Loss) -> None:
    assert LOSS.validate_python(loss.model_dump()) == loss
    assert LOSS.validate_json(loss.model_dump_json()) == loss
    copy = pickle.loads(pickle.dumps(loss))
    assert (copy, hash(copy)) == (loss, hash(loss))


@pytest.mark.parametrize(
    "given",
    [
        -0.1,
        math.nan,
        math.inf,
        True,
        "loud",
        {"kind": "pink", "std": 1.0},
        {"kind": "gaussian", "std": 1.0, "sigma": 1.0},
        {"kind": "gaussian", "std": 1.0, "claimed": -1.0},
        {"kind": "gaussian", "std": 1.0, "claimed": math.nan},
        {"kind": "student-t", "std": 1.0, "freedom": 2.0},
        {"kind": "student-t", "std": 1.0, "freedom": math.inf},
        {"kind": "value-dependent", "share": 0.0},
        {"kind": "value-dependent", "share": 0.1, "floor": -0.1},
        {"kind": "distance-dependent", "slope": 0.1, "origin": []},
        {"kind": "distance-dependent", "slope": 0.1},
    ],
    ids=repr,
)
def test_noise_that_cannot_be_is_refused(given: object) -> None:
    with pytest.raises(ValidationError):
        NOISE.validate_python(given)


@pytest.mark.parametrize(
    "given",
    [
        -0.1,
        1.1,
        math.nan,
        True,
        {"kind": "sunspots"},
        {"kind": "random", "probability": 0.1, "seed": 3},
        {"kind": "bursts", "good_spell": 0.0, "bad_spell": 1.0},
        {"kind": "bursts", "good_spell": 1.0, "bad_spell": math.inf},
        {"kind": "bursts", "good_spell": 1.0, "bad_spell": 1.0, "lost_in_bad": 1.5},
        {"kind": "bursts", "good_spell": 1.0, "bad_spell": 1.0, "lost_in_bad": math.nan},
    ],
    ids=repr,
)
def test_loss_that_cannot_be_is_refused(given: object) -> None:
    with pytest.raises(ValidationError):
        LOSS.validate_python(given)


def test_a_bad_spell_that_loses_less_than_a_good_one_is_refused_with_the_remedy() -> None:
    with pytest.raises(ValidationError, match=r"lost_in_good 0.5 exceeds lost_in_bad 0.2; swap"):
        Bursts(good_spell=1.0, bad_spell=1.0, lost_in_good=0.5, lost_in_bad=0.2)


# Loss


def test_random_loss_has_one_chance_at_every_moment_and_draws_nothing() -> None:
    rng = stream()
    chances = Random(probability=0.25).start(rng)
    assert [chances(moment) for moment in (0.0, 3.0, 1e9)] == [0.25, 0.25, 0.25]
    assert rng.random() == stream().random()


@pytest.mark.parametrize(
    ("loss", "lossless"),
    [
        (Random(probability=0.0), True),
        (Random(probability=1e-9), False),
        (Bursts(good_spell=1.0, bad_spell=1.0, lost_in_bad=0.0), True),
        (Bursts(good_spell=1.0, bad_spell=1.0, lost_in_bad=1e-9), False),
        (Bursts(good_spell=1.0, bad_spell=1.0), False),
    ],
    ids=repr,
)
def test_loss_is_lossless_if_nothing_is_ever_lost(loss: Loss, lossless: bool) -> None:
    assert loss.lossless is lossless


BURSTS = Bursts(good_spell=8.0, bad_spell=2.0)
BAD_SHARE = 2.0 / (8.0 + 2.0)
FORGETTING = 1 / 8.0 + 1 / 2.0
"""The rate at which the weather forgets what it was."""


def test_chances_are_those_of_the_two_spells() -> None:
    chances = LOSSES[1].start(stream())
    assert {chances(moment) for moment in np.arange(0.0, 100.0)} == {0.1, 0.9}


def test_in_the_long_run_bad_spells_take_their_share_of_time() -> None:
    horizon = 4_000.0
    chances = BURSTS.start(stream(5))
    share = np.mean([chances(moment) for moment in np.arange(0.0, horizon, 0.5)])
    error = math.sqrt(2 * BAD_SHARE * (1 - BAD_SHARE) / (FORGETTING * horizon))
    assert abs(share - BAD_SHARE) < 5 * error


def test_bad_spells_are_as_likely_at_the_beginning_as_later() -> None:
    plays = 2_000
    error = 5 * math.sqrt(BAD_SHARE * (1 - BAD_SHARE) / plays)
    bad = np.array([[*map(BURSTS.start(stream(i)), (0.0, 3.0, 30.0))] for i in range(plays)])
    assert (abs(bad.mean(axis=0) - BAD_SHARE) < error).all()


def test_a_bad_moment_is_followed_by_another_as_the_chain_has_it() -> None:
    plays, pause = 4_000, 1.5
    bad = np.array([[*map(BURSTS.start(stream(i)), (1.0, 1.0 + pause))] for i in range(plays)])
    after_bad = bad[bad[:, 0] == 1.0, 1]
    chance = BAD_SHARE + (1 - BAD_SHARE) * math.exp(-FORGETTING * pause)
    assert abs(after_bad.mean() - chance) < 5 * math.sqrt(chance * (1 - chance) / len(after_bad))


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**64 - 1),
    moments=st.lists(st.floats(0, 200), min_size=1, max_size=20),
    order=st.randoms(use_true_random=False),
)
def test_spells_are_a_function_of_time_however_often_and_in_what_order_one_asks(
    seed: int, moments: list[float], order: Shuffler
) -> None:
    alone = [BURSTS.start(stream(seed))(moment) for moment in moments]
    shuffled = [*moments, *moments]
    order.shuffle(shuffled)
    chances = BURSTS.start(stream(seed))
    assert [chances(moment) for moment in shuffled] == [
        alone[moments.index(moment)] for moment in shuffled
    ]
