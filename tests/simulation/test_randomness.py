from __future__ import annotations

import math
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator
from scipy import stats

from sparq_sim.simulation.randomness import Streams

SETTINGS = settings(max_examples=50, deadline=None)

seeds = st.integers(0, 2**70)
names = st.text("ab-/01é", max_size=8)
rounds = st.integers(1, 10**9)


def numbers(rng: Generator) -> list[float]:
    return [rng.random() for _ in range(4)]


def disturb(rng: Generator, floats: int, integers: int) -> None:
    """Draw in ways that leave half-used words behind."""
    rng.standard_normal(floats)
    rng.integers(10, size=integers, dtype=np.uint32)


# Streams by name


@SETTINGS
@given(seed=seeds, replication=st.integers(0, 10**6), name=names)
def test_the_same_name_gives_the_same_numbers(seed: int, replication: int, name: str) -> None:
    first = Streams(seed, replication).generator(name)
    second = Streams(seed, replication).generator(name)
    assert numbers(first) == numbers(second)


@SETTINGS
@given(
    keys=st.lists(
        st.tuples(seeds, st.integers(0, 10**6), names),
        min_size=2,
        max_size=10,
        unique=True,
    )
)
def test_another_seed_replication_or_name_gives_other_numbers(
    keys: list[tuple[int, int, str]],
) -> None:
    firsts = {Streams(seed, number).generator(name).random() for seed, number, name in keys}
    assert len(firsts) == len(keys)


def test_digits_do_not_slip_between_seed_replication_and_name() -> None:
    alike = [(1, 11, "a"), (11, 1, "a"), (1, 1, "1/a"), (1, 1, "1a"), (111, 0, "a")]
    keys = {Streams(seed, number).key(name).tobytes() for seed, number, name in alike}
    assert len(keys) == len(alike)


def test_a_stream_asked_for_twice_begins_at_its_beginning() -> None:
    streams = Streams(3)
    disturb(streams.generator("scout"), 5, 3)
    assert numbers(streams.generator("scout")) == numbers(Streams(3).generator("scout"))


def test_drawing_from_one_stream_shifts_no_other() -> None:
    streams = Streams(3)
    scout, reward = streams.generator("scout"), streams.generator("reward")
    disturb(scout, 5, 3)
    assert numbers(reward) == numbers(Streams(3).generator("reward"))


def test_the_first_replication_is_number_zero() -> None:
    assert numbers(Streams(3).generator("scout")) == numbers(Streams(3, 0).generator("scout"))


@pytest.mark.parametrize("bad", [-1, 1.0, "7", None, math.nan])
def test_a_seed_that_is_no_whole_number_from_zero_on_is_refused_by_value(bad: object) -> None:
    number = cast("int", bad)  # What a caller without a type checker may pass.
    with pytest.raises(ValueError, match=f"seed must be a whole number, 0 or more, not {bad!r}"):
        Streams(number)
    with pytest.raises(ValueError, match=f"replication must be a whole number, .* not {bad!r}"):
        Streams(0, number)


def test_streams_of_neighbouring_names_are_uncorrelated_and_uniform() -> None:
    streams = Streams(0)
    draws = np.array([streams.generator(f"expert-{i}").random() for i in range(2_000)])
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 5 / math.sqrt(len(draws))
    assert stats.kstest(draws, "uniform").pvalue > 1e-3


# Streams that begin anew with each round


@SETTINGS
@given(
    seed=seeds,
    number=rounds,
    earlier=st.lists(st.tuples(rounds, st.integers(0, 9), st.integers(0, 9)), max_size=5),
)
def test_a_round_owes_nothing_to_the_rounds_before_nor_to_what_was_drawn_in_them(
    seed: int, number: int, earlier: list[tuple[int, int, int]]
) -> None:
    stream = Streams(seed).by_round("scout")
    for other, floats, integers in earlier:
        if other != number:
            disturb(stream.at(other), floats, integers)
    assert numbers(stream.at(number)) == numbers(Streams(seed).by_round("scout").at(number))


def test_half_a_word_left_over_from_one_round_is_not_used_in_the_next() -> None:
    fresh, used = Streams(0).by_round("scout"), Streams(0).by_round("scout")
    used.at(1).integers(10, dtype=np.uint32)
    assert used.at(2).integers(2**32, size=3, dtype=np.uint32).tolist() == (
        fresh.at(2).integers(2**32, size=3, dtype=np.uint32).tolist()
    )


def test_within_a_round_the_stream_goes_on_where_it_was_left() -> None:
    piecemeal, whole = Streams(0).by_round("scout"), Streams(0).by_round("scout")
    pieces = [piecemeal.at(3).random() for _ in range(6)]
    assert pieces == whole.at(3).random(6).tolist()


@SETTINGS
@given(seed=seeds, chosen=st.lists(rounds, min_size=2, max_size=10, unique=True))
def test_each_round_has_numbers_of_its_own(seed: int, chosen: list[int]) -> None:
    stream = Streams(seed).by_round("scout")
    assert len({stream.at(number).random() for number in chosen}) == len(chosen)


def test_rounds_differ_between_names_and_replications() -> None:
    firsts = {
        Streams(0, replication).by_round(name).at(1).random()
        for replication in (0, 1)
        for name in ("scout", "reward")
    }
    assert len(firsts) == 4


def test_a_round_repeats_no_number_of_the_stream_of_the_same_name() -> None:
    whole = Streams(0).generator("scout").random(1_000)
    by_round = Streams(0).by_round("scout")
    rounds = np.concatenate([by_round.at(number).random(10) for number in range(1, 101)])
    assert not np.intersect1d(whole, rounds).size
    assert len(np.unique(rounds)) == len(rounds)


@pytest.mark.parametrize("distance", [1, 2, 10])
def test_neighbouring_rounds_are_uncorrelated(distance: int) -> None:
    stream = Streams(0).by_round("scout")
    draws = np.array([stream.at(number).standard_normal(3) for number in range(1, 3_001)])
    early, late = draws[:-distance], draws[distance:]
    for first in range(3):
        for second in range(3):
            correlation = np.corrcoef(early[:, first], late[:, second])[0, 1]
            assert abs(correlation) < 5 / math.sqrt(len(early))


@pytest.mark.parametrize("bits", [32, 64])
def test_first_draws_over_the_rounds_are_uniform(bits: int) -> None:
    stream = Streams(0).by_round("scout")
    kind = np.uint32 if bits == 32 else np.uint64
    draws = [int(stream.at(i).integers(2**bits, dtype=kind)) / 2**bits for i in range(1, 3_001)]
    assert stats.kstest(draws, "uniform").pvalue > 1e-3
