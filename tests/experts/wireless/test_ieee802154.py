"""IEEE 802.15.4: airtimes, bit errors and success against the formula, and the CC2420."""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sparq_experts.wireless.ieee802154 import (
    compute_airtime,
    compute_bit_error,
    compute_success,
)
from sparq_experts.wireless.lifetime import compute_lifetime
from sparq_experts.wireless.presets import Ieee802154Cc2420
from sparq_experts.wireless.radio import Signal

CHIP = Ieee802154Cc2420()
DAY = 86_400.0
TWO_AA = 18_720.0
"""J in two AA cells, as Castalia has it."""


def heard(power: float, start: float = 0.0, end: float = 1e-3) -> Signal:
    return Signal(power, 0, start, end)


def ratio(decibels: float) -> float:
    return float(10 ** (decibels / 10))


@pytest.mark.parametrize(("frame", "milliseconds"), [(20, 0.832), (127, 4.256), (5, 0.352)])
def test_airtime_of_a_frame(frame: int, milliseconds: float) -> None:
    assert 1000 * compute_airtime(frame) == pytest.approx(milliseconds)


def test_headers_are_part_of_the_frame_and_an_acknowledgement_has_none() -> None:
    assert CHIP.airtime(20 - CHIP.overhead) == pytest.approx(0.832e-3)
    assert CHIP.ack_airtime == pytest.approx(0.352e-3)
    assert CHIP.acknowledgement + CHIP.overhead == 5
    assert CHIP.largest_payload == 127 - CHIP.overhead
    assert CHIP.airtime(CHIP.largest_payload) == pytest.approx(4.256e-3)


@pytest.mark.parametrize(
    ("decibels", "error"),
    [(5, 7.38e-14), (2, 5.13e-7), (-1, 0.00114), (-4, 0.0391), (-7, 0.175)],
)
def test_bit_errors_at_a_signal_to_noise_ratio(decibels: float, error: float) -> None:
    # These numbers were cut after three digits, not rounded.
    assert compute_bit_error(ratio(decibels)) == pytest.approx(error, rel=0.01)


@given(st.floats(-30, 15))
def test_bit_errors_are_those_of_the_formula_with_50_digits(decibels: float) -> None:
    snr = ratio(decibels)
    with mpmath.workdps(50):
        exact = (
            mpmath.mpf(8)
            / 15
            / 16
            * sum(
                (-1) ** k * comb(16, k) * mpmath.exp(20 * mpmath.mpf(snr) * (mpmath.mpf(1) / k - 1))
                for k in range(2, 17)
            )
        )
    assert compute_bit_error(snr) == pytest.approx(float(exact), rel=1e-6, abs=1e-12)


def test_without_any_signal_half_of_the_bits_are_wrong() -> None:
    assert sum(Fraction((-1) ** k * comb(16, k)) for k in range(2, 17)) == 15
    assert compute_bit_error(0.0) == pytest.approx(0.5)


@given(st.floats(-110, -60), st.integers(0, 116))
def test_success_is_the_probability_that_no_bit_is_wrong(power: float, payload: int) -> None:
    bits = 8 * (6 + CHIP.overhead + payload)
    right = 1 - compute_bit_error(ratio(power - CHIP.noise_floor))
    assert CHIP.success(power, payload, "gateway") == pytest.approx(right**bits, abs=1e-12)


@given(st.floats(-120, -50), st.floats(0, 20), st.integers(0, 116))
def test_more_power_never_lowers_success(power: float, more: float, payload: int) -> None:
    weaker = CHIP.success(power, payload, "node")
    assert CHIP.success(power + more, payload, "node") >= weaker - 1e-9


@given(st.floats(-120, -50), st.integers(0, 115))
def test_a_longer_packet_never_succeeds_more_often(power: float, payload: int) -> None:
    shorter = CHIP.success(power, payload, "node")
    assert CHIP.success(power, payload + 1, "node") <= shorter + 1e-12


def test_at_the_sensitivity_1_percent_of_packets_with_20_bytes_of_frame_are_lost() -> None:
    payload = 20 - CHIP.overhead
    assert CHIP.sensitivity("gateway") == CHIP.sensitivity("node") == -95
    assert CHIP.success(-95, payload, "gateway") == pytest.approx(0.99, abs=0.001)
    # With the noise floor of Castalia the sensitivity would be 4.5 dB better than the chip's.
    castalia = CHIP.model_copy(update={"noise_floor": -100.0})
    assert castalia.success(-99.4, payload, "gateway") > 0.99


def test_a_sender_listens_as_the_standard_has_it() -> None:
    sense = CHIP.carrier_sense
    assert (sense.min_exponent, sense.max_exponent, sense.backoffs) == (3, 5, 4)
    assert (sense.unit, sense.sensing) == pytest.approx((20 * 16e-6, 128e-6))
    assert sense.turnaround == pytest.approx(192e-6)
    assert (CHIP.retransmissions, CHIP.acknowledged) == (3, True)


def test_a_node_listens_until_a_sender_would_have_begun() -> None:
    assert CHIP.shortest_listen == pytest.approx(2.72e-3)


# Collisions


def test_signals_that_do_not_overlap_do_no_harm() -> None:
    others = [heard(-20, 1e-3, 2e-3), heard(-20, -1e-3, 0.0)]
    assert CHIP.survival(heard(-90), others) == 1


def test_with_capture_none_any_overlap_destroys() -> None:
    aloha = CHIP.model_copy(update={"capture": "none"})
    assert aloha.survival(heard(-20), [heard(-120, 0.999e-3, 2e-3)]) == 0
    assert CHIP.survival(heard(-20), [heard(-120, 0.999e-3, 2e-3)]) == 1


@given(st.floats(-97, -80), st.floats(-110, -80))
def test_success_times_survival_is_success_with_the_interference_as_noise(
    power: float, other: float
) -> None:
    payload = 9
    own = heard(power, end=CHIP.airtime(payload))
    noise = ratio(CHIP.noise_floor) + ratio(other)
    expected = compute_success(ratio(power) / noise, 26)
    product = CHIP.success(power, payload, "node") * CHIP.survival(own, [heard(other, -1.0, 1.0)])
    assert product == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_only_bits_that_overlap_suffer() -> None:
    own, power = heard(-90), -91.0
    whole = CHIP.survival(own, [heard(power, -1.0, 1.0)])
    half = CHIP.survival(own, [heard(power, 0.5e-3, 1.0)])
    assert half == pytest.approx(whole**0.5)


def test_powers_of_signals_at_the_same_time_add_up() -> None:
    own = heard(-88)
    two = CHIP.survival(own, [heard(-91, -1.0, 1.0), heard(-91, -1.0, 1.0)])
    one = CHIP.survival(own, [heard(-91 + 3.0103, -1.0, 1.0)])
    in_turn = CHIP.survival(own, [heard(-91, -1.0, 0.5e-3), heard(-91, 0.5e-3, 1.0)])
    assert two == pytest.approx(one, rel=1e-4)
    assert in_turn == pytest.approx(CHIP.survival(own, [heard(-91, -1.0, 1.0)]))
    assert two < in_turn


@given(st.floats(-100, -50), st.floats(-120, -40), st.floats(0, 20))
def test_a_stronger_interferer_never_helps(power: float, other: float, more: float) -> None:
    weaker = CHIP.survival(heard(power), [heard(other)])
    assert 0 <= CHIP.survival(heard(power), [heard(other + more)]) <= weaker + 1e-9


# The chip


def test_the_cc2420_sleeps_with_20_ua_and_426_ua_is_its_idle_mode() -> None:
    assert CHIP.sleep == pytest.approx(3.3 * 20e-6)
    assert CHIP.sleep < 3.3 * 426e-6 / 20


@pytest.mark.parametrize(("current", "days"), [(20e-6, 1694), (426e-6, 148)])
def test_idle_taken_for_sleep_would_cost_nine_tenths_of_the_lifetime(
    current: float, days: float
) -> None:
    # The receiver is on 0.1 % of the time.
    sleeping = 0.999 * 3.3 * current
    lived = compute_lifetime(
        TWO_AA, period=1.0, sleep=sleeping, send=0, airtime=0, receive=CHIP.receive, receiving=1e-3
    )
    assert lived / DAY == pytest.approx(days, abs=1)


def test_the_cc2420_draws_what_its_data_sheet_says() -> None:
    assert CHIP.receive == pytest.approx(3.3 * 18.8e-3)
    assert CHIP.send_draw == pytest.approx(3.3 * 17.4e-3)
    assert dict(CHIP.send)[-25] == pytest.approx(3.3 * 8.5e-3)
    draws = [draw for _, draw in CHIP.send]
    assert draws == sorted(draws, reverse=True)


def test_a_rate_is_not_chosen_for_a_link() -> None:
    assert CHIP.for_link(100) is CHIP
    assert CHIP.rate == 0


def test_headers_that_fill_the_frame_are_refused() -> None:
    with pytest.raises(ValidationError, match="overhead"):
        Ieee802154Cc2420(overhead=127)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"min_exponent": 17, "max_exponent": 17}, "min_exponent\n.*less than or equal to 16"),
        ({"max_exponent": 64}, "max_exponent\n.*less than or equal to 16"),
        ({"min_exponent": 8}, "min_exponent 8 exceeds max_exponent 5"),
        ({"backoffs": 101}, "backoffs\n.*less than or equal to 100"),
        ({"retransmissions": 1100}, "retransmissions\n.*less than or equal to 100"),
    ],
)
def test_waits_without_end_are_refused(fields: dict[str, int], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Ieee802154Cc2420.model_validate(fields)


def test_the_formula_is_the_same_with_plain_numbers() -> None:
    snr = ratio(-4)
    plain = (
        8
        / 15
        / 16
        * sum((-1) ** k * comb(16, k) * exp(20 * snr * (1 / k - 1)) for k in range(2, 17))
    )
    assert compute_bit_error(snr) == pytest.approx(plain)
