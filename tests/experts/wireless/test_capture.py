"""Capture: named matrices, sums of powers, and the part of the preamble that matters."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparq_experts.wireless.capture import CAPTURES
from sparq_experts.wireless.signals import Signal, to_dbm, to_milliwatts


def heard(power: float, rate: int = 7, start: float = 0.0, end: float = 1.0) -> Signal:
    return Signal(power, rate, start, end)


def survives(name: str, own: Signal, *others: Signal) -> bool:
    return CAPTURES[name].survives(own, others, symbol=0.01, preamble=8)


@pytest.mark.parametrize(
    ("name", "same", "lowest", "highest"), [("goursaud", 6, -36, -16), ("flora", 1, -25, -8)]
)
def test_a_matrix_has_its_threshold_on_the_diagonal_and_its_range_beside(
    name: str, same: float, lowest: float, highest: float
) -> None:
    matrix = CAPTURES[name]
    pairs = {(own, other): matrix.threshold(own, other)
             for own in range(7, 13) for other in range(7, 13)}  # fmt: skip
    beside = [value for (own, other), value in pairs.items() if own != other]
    assert {value for (own, other), value in pairs.items() if own == other} == {same}
    assert (min(beside), max(beside)) == (lowest, highest)


def test_rows_are_the_packet_and_columns_the_others() -> None:
    assert CAPTURES["goursaud"].threshold(7, 12) == -20
    assert CAPTURES["goursaud"].threshold(12, 7) == -36
    assert CAPTURES["flora"].threshold(8, 12) == -13
    assert CAPTURES["flora"].threshold(12, 8) == -25


@pytest.mark.parametrize(("name", "threshold"), [("goursaud", 6.0), ("flora", 1.0)])
def test_at_the_threshold_a_packet_survives(name: str, threshold: float) -> None:
    assert survives(name, heard(-100 + threshold), heard(-100))
    assert not survives(name, heard(-100.01 + threshold), heard(-100))


@pytest.mark.parametrize("power", [-20.0, -140.0])
def test_without_capture_any_overlap_destroys_both(power: float) -> None:
    strong, weak = heard(power), heard(-140, 12, 0.999, 2.0)
    assert not survives("none", strong, weak)
    assert not survives("none", weak, strong)


def test_powers_of_one_spreading_factor_add_up_in_milliwatts() -> None:
    own = heard(-94)
    assert survives("goursaud", own, heard(-100))
    assert not survives("goursaud", own, heard(-101), heard(-101))  # Together -98 dBm.
    assert survives("goursaud", own, heard(-103.1), heard(-103.1))


def test_powers_of_different_spreading_factors_are_judged_apart() -> None:
    own = heard(-94)
    assert survives("goursaud", own, heard(-100), heard(-78, 8))
    assert not survives("goursaud", own, heard(-100), heard(-77, 8))


def test_signals_one_after_the_other_do_not_add_up() -> None:
    own = heard(-94)
    first, second = heard(-100, end=0.5), heard(-100, start=0.5)
    assert survives("goursaud", own, first, second)
    assert not survives("goursaud", own, first, heard(-100, start=0.499))


def test_a_signal_that_is_over_before_the_receiver_needs_the_preamble_does_not_add_up() -> None:
    own = heard(-94)
    early = heard(-50, start=-1.0, end=0.03)
    assert survives("goursaud", own, early, heard(-100), heard(-78, 8))


def test_a_preamble_shorter_than_what_is_needed_counts_from_its_start() -> None:
    rule = CAPTURES["goursaud"]
    own, before = heard(-100), heard(-50, start=-1.0, end=0.0)
    assert rule.survives(own, [before], symbol=0.01, preamble=4)
    assert not rule.survives(own, [heard(-50, end=0.001)], symbol=0.01, preamble=4)


def test_signals_too_weak_to_be_numbers_do_no_harm() -> None:
    assert survives("goursaud", heard(-100), heard(-inf), heard(-inf))


SIGNALS = st.builds(
    lambda power, rate, start, length: Signal(power, rate, start, start + length),
    st.integers(-110, -80),
    st.integers(7, 9),
    st.integers(-8, 8).map(float),
    st.integers(1, 8).map(float),
)


@given(SIGNALS, st.lists(SIGNALS, max_size=6), st.sampled_from(["goursaud", "flora"]))
def test_a_packet_survives_if_it_does_at_every_moment(
    own: Signal, others: list[Signal], name: str
) -> None:
    rule = CAPTURES[name]
    first = own.start + (8 - rule.needed) * 0.25
    # Signals begin and end at whole numbers, and the preamble is needed from a quarter on.
    moments = [moment / 4 + 1 / 8 for moment in range(-40, 80)]
    expected = True
    for moment in moments:
        if not first <= moment < own.end:
            continue
        for rate in range(7, 13):
            at_once = [
                each for each in others if each.rate == rate and each.start <= moment < each.end
            ]
            together = sum(to_milliwatts(each.power) for each in at_once)
            if together and own.power - to_dbm(together) < rule.threshold(own.rate, rate) - 1e-9:
                expected = False
    assert rule.survives(own, others, symbol=0.25, preamble=8) == expected


def test_each_matrix_names_where_it_comes_from() -> None:
    for name, rule in CAPTURES.items():
        assert rule.name == name
        assert rule.source
        assert rule.standing


def test_milliwatts_and_dbm_are_inverse() -> None:
    assert to_milliwatts(0.0) == 1
    assert to_milliwatts(-30.0) == pytest.approx(1e-3)
    assert to_dbm(to_milliwatts(-123.4)) == pytest.approx(-123.4)
    assert to_milliwatts(-inf) == 0
