"""LoRa: every airtime, sensitivity and limit against numbers from elsewhere."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sparq_experts.wireless.lora import (
    LARGEST_PAYLOADS,
    SENSITIVITIES,
    LoraRadio,
    compute_airtime,
    needs_low_data_rate,
)
from sparq_experts.wireless.presets import LoraSx1272Eu868, LoraWholeNode
from sparq_experts.wireless.radio import Side, Signal

FACTORS = st.integers(7, 12)


def radio(factor: int | str = 7, **fields: object) -> LoraRadio:
    return LoraSx1272Eu868.model_validate({"spreading_factor": factor, **fields})


def heard(power: float, rate: int = 7, start: float = 0.0, end: float = 1.0) -> Signal:
    return Signal(power, rate, start, end)


# PL, SF, IH, CR, kHz, preamble, CRC, DE and seconds: the test suite of ns-3 lorawan.
NS3 = [
    (10, 7, 0, 1, 125, 8, 1, 0, 0.041216),
    (10, 8, 0, 1, 125, 8, 1, 0, 0.072192),
    (10, 8, 1, 2, 125, 8, 1, 0, 0.078336),
    (10, 8, 1, 2, 125, 10, 1, 1, 0.082432),
    (10, 10, 1, 2, 125, 10, 1, 1, 0.280576),
    (10, 10, 1, 2, 250, 10, 1, 1, 0.140288),
    (10, 10, 1, 2, 500, 10, 1, 1, 0.070144),
    (10, 10, 0, 2, 500, 8, 1, 1, 0.078336),
    (10, 12, 0, 2, 500, 8, 1, 1, 0.264192),
    (50, 12, 0, 2, 500, 8, 1, 1, 0.657408),
    (50, 12, 0, 2, 125, 8, 1, 1, 2.629632),
    (50, 12, 0, 1, 125, 8, 1, 1, 2.301952),
]


@pytest.mark.parametrize(
    ("size", "factor", "implicit", "code", "khz", "preamble", "crc", "slow", "seconds"), NS3
)
def test_airtime_is_that_of_the_test_suite_of_ns3(
    size: int,
    factor: int,
    implicit: int,
    code: int,
    khz: int,
    preamble: int,
    crc: int,
    slow: int,
    seconds: float,
) -> None:
    computed = compute_airtime(
        size,
        factor,
        implicit_header=bool(implicit),
        code_rate=code,
        bandwidth=1000 * khz,
        preamble=preamble,
        crc=bool(crc),
        low_data_rate=bool(slow),
    )
    assert computed == pytest.approx(seconds, abs=1e-9)


# Milliseconds of 10, 20 and 51 bytes at 4/5 and 125 kHz.
BY_FACTOR = {
    7: (41.216, 56.576, 102.656),
    8: (72.192, 102.912, 184.832),
    9: (144.384, 185.344, 328.704),
    10: (288.768, 370.688, 616.448),
    11: (577.536, 741.376, 1314.816),
    12: (991.232, 1318.912, 2465.792),
}


@pytest.mark.parametrize("factor", BY_FACTOR)
def test_airtime_of_10_20_and_51_bytes(factor: int) -> None:
    computed = [1000 * compute_airtime(size, factor) for size in (10, 20, 51)]
    assert computed == pytest.approx(BY_FACTOR[factor], abs=1e-6)
    bare = radio(factor, overhead=0)
    assert [1000 * bare.airtime(size) for size in (10, 20, 51)] == pytest.approx(computed)


def test_headers_of_lorawan_add_13_bytes() -> None:
    assert radio(7).overhead == 13
    assert radio(7).airtime(7) == compute_airtime(20, 7)


def test_low_data_rate_is_set_at_sf11_and_sf12_with_125_khz_only() -> None:
    slow = {(sf, khz) for sf in range(7, 13) for khz in (125, 250, 500)
            if needs_low_data_rate(sf, 1000 * khz)}  # fmt: skip
    assert slow == {(11, 125), (12, 125), (12, 250)}


@given(FACTORS, st.integers(0, 241))
def test_a_longer_payload_is_never_shorter_on_the_air(factor: int, size: int) -> None:
    assert compute_airtime(size + 1, factor) >= compute_airtime(size, factor)


@given(st.integers(7, 11), st.integers(0, 242))
def test_a_higher_spreading_factor_is_longer_on_the_air(factor: int, size: int) -> None:
    assert compute_airtime(size, factor + 1) > compute_airtime(size, factor)


# Mistakes of others


def test_code_rate_5_is_refused_which_would_make_airtime_1_4_to_1_5_times_too_long() -> None:
    with pytest.raises(ValueError, match="code_rate: 5: should be 1, 2, 3 or 4, for 4/5"):
        compute_airtime(20, 7, code_rate=5)
    with pytest.raises(ValidationError, match="code_rate"):
        radio(7, code_rate=5)
    mistaken = {sf: _with_code_rate_5(20, sf) / compute_airtime(20, sf) for sf in range(7, 13)}
    assert 1.39 < min(mistaken.values()) < max(mistaken.values()) < 1.51


def _with_code_rate_5(size: int, factor: int) -> float:
    blocks = ceil((8 * size - 4 * factor + 44) / (4 * (factor - 2 * (factor > 10))))
    return float((12.25 + 8 + blocks * (5 + 4)) * 2**factor / 125e3)


def test_payload_and_low_data_rate_count_without_which_airtime_would_be_0_54_to_0_64_of_this() -> (
    None
):
    ratios = [_as_in_flora(factor) / compute_airtime(51, factor) for factor in range(7, 13)]
    assert (min(ratios), max(ratios)) == pytest.approx((0.54, 0.64), abs=0.005)


def _as_in_flora(factor: int) -> float:
    """Return the airtime with 20 bytes whatever the payload, blocks rounded down, no DE.

    FLoRa counts the 8 symbols of the header twice.
    """
    blocks = (8 * 20 - 4 * factor + 44) // (4 * factor)
    return float((12.25 + 8 + 8 + 5 * blocks) * 2**factor / 125e3)


def test_blocks_are_rounded_up_where_integer_division_would_lose_one() -> None:
    # 8 * 20 - 28 + 44 = 176 bits in blocks of 28: 7 blocks, not 6.
    assert compute_airtime(20, 7) == pytest.approx((12.25 + 8 + 7 * 5) * 2**7 / 125e3)


# Sensitivity and limits


def test_sensitivities_are_those_of_chip_gateway_and_lorasim() -> None:
    assert SENSITIVITIES == {
        "sx1272": (-124, -127, -130, -133, -135, -137),
        "sx1301": (-130, -132.5, -135, -137.5, -140, -142.5),
        "lorasim": (-126.5, -127.25, -131.25, -132.75, -134.5, -133.25),
    }
    apart = [max(row) - min(row) for row in zip(*SENSITIVITIES.values(), strict=True)]
    assert max(apart) == 9.25


@pytest.mark.parametrize("factor", range(7, 13))
def test_node_and_gateway_have_sensitivities_of_their_own(factor: int) -> None:
    assert radio(factor).sensitivity("node") == SENSITIVITIES["sx1272"][factor - 7]
    assert radio(factor).sensitivity("gateway") == SENSITIVITIES["sx1301"][factor - 7]


def test_twice_the_bandwidth_costs_3_db() -> None:
    wide = radio(7, bandwidth=250_000)
    assert wide.sensitivity("node") == pytest.approx(-124 + 3.01, abs=0.001)
    assert wide.airtime(0) == radio(7).airtime(0) / 2


def test_largest_payloads_of_data_rates_0_to_5() -> None:
    assert [radio(12 - rate).largest_payload for rate in range(6)] == [51, 51, 51, 115, 242, 242]
    assert {*LARGEST_PAYLOADS} == {*range(7, 13)}


@pytest.mark.parametrize("at", ["node", "gateway"])
def test_a_packet_is_read_from_the_sensitivity_on(at: Side) -> None:
    limit = radio(9).sensitivity(at)
    assert radio(9).success(limit, 20, at) == 1
    assert radio(9).success(limit - 0.01, 20, at) == 0


def test_a_node_listens_for_5_symbols_at_least() -> None:
    assert radio(7).shortest_listen == pytest.approx(5 * 1.024e-3)
    assert radio(12).shortest_listen == pytest.approx(5 * 32.768e-3)


def test_an_acknowledgement_has_headers_only() -> None:
    assert radio(7).acknowledgement == 0
    assert radio(7).ack_airtime == compute_airtime(13, 7)


def test_lora_does_not_listen_before_it_talks() -> None:
    assert radio(7).carrier_sense is None


# The rate of a link


@pytest.mark.parametrize(
    ("loss", "factor"), [(0, 7), (134, 7), (134.1, 8), (146.5, 12), (146.6, 12), (300, 12)]
)
def test_auto_takes_the_lowest_factor_that_closes_the_link(loss: float, factor: int) -> None:
    # 14 dBm - 10 dB of margin - (-130 dBm) = 134 dB at SF7, and 146.5 dB at SF12.
    found = radio("auto").for_link(loss)
    assert found.rate == factor
    assert found.airtime(20) == compute_airtime(33, factor)


def test_a_given_factor_stays_whatever_the_link() -> None:
    fixed = radio(9)
    assert fixed.for_link(200) is fixed


def test_auto_counts_as_12_as_long_as_no_link_is_known() -> None:
    assert radio("auto").rate == 12


@given(st.floats(0, 200), st.floats(0, 50))
def test_more_loss_never_means_a_lower_factor(loss: float, more: float) -> None:
    auto = radio("auto")
    assert auto.for_link(loss + more).rate >= auto.for_link(loss).rate


@pytest.mark.parametrize("given", [6, 13, "7", "fast", 7.5])
def test_other_factors_are_refused(given: object) -> None:
    with pytest.raises(ValidationError, match="spreading_factor"):
        LoraSx1272Eu868.model_validate({"spreading_factor": given})


# Collisions


def test_the_named_capture_decides_who_survives() -> None:
    own, other = heard(-100), heard(-103)
    survivals = {
        name: radio(7, capture=name).survival(own, [other])
        for name in ("goursaud", "flora", "none")
    }
    assert survivals == {"goursaud": 0, "flora": 1, "none": 0}


def test_nothing_on_the_air_destroys_nothing() -> None:
    assert radio(7).survival(heard(-120), []) == 1
    assert radio(7, capture="none").survival(heard(-120), [heard(-50, start=1.0, end=2.0)]) == 1


@pytest.mark.parametrize(("capture", "symbols"), [("goursaud", 3), ("flora", 2)])
def test_a_collision_in_the_first_symbols_of_the_preamble_does_no_harm(
    capture: str, symbols: int
) -> None:
    lora = radio(9, capture=capture)
    own = heard(-120, 9)
    harmless = heard(-80, 9, -1.0, symbols * lora.symbol)
    harmful = heard(-80, 9, -1.0, symbols * lora.symbol + 1e-6)
    assert lora.survival(own, [harmless]) == 1
    assert lora.survival(own, [harmful]) == 0
    assert radio(9, capture="none").survival(own, [harmless]) == 0


def test_the_capture_of_802_15_4_is_no_capture_of_lora() -> None:
    with pytest.raises(ValidationError, match="goursaud"):
        radio(7, capture="sinr")


@given(st.floats(-150, -50), st.floats(-150, -50), st.floats(0, 30), FACTORS, FACTORS)
def test_a_stronger_packet_survives_what_a_weaker_one_does(
    power: float, other: float, more: float, own: int, theirs: int
) -> None:
    lora, others = radio(own), [heard(other, theirs)]
    assert lora.survival(heard(power + more, own), others) >= lora.survival(
        heard(power, own), others
    )


# Presets


def test_the_sx1272_draws_44_ma_at_14_dbm_and_sleeps_with_1_5_ua() -> None:
    chip = LoraSx1272Eu868()
    assert chip.send_draw == pytest.approx(3.3 * 44e-3)
    assert chip.model_copy(update={"transmit_power": 10.0}).send_draw == pytest.approx(3.3 * 31e-3)
    assert chip.receive == pytest.approx(3.3 * 11.2e-3)
    assert chip.sleep == pytest.approx(3.3 * 1.5e-6)


def test_a_whole_node_draws_what_was_measured() -> None:
    node = LoraWholeNode()
    assert dict(node.send) == {2: 0.0918, 5: 0.0959, 8: 0.1016, 11: 0.1208, 14: 0.1465}
    assert 0.034 <= node.receive <= 0.039
    assert (node.sleep, node.compute) == (5.7e-6, 0.015)


def test_eu868_allows_1_percent_on_3_channels_and_a_gateway_receives_8() -> None:
    for preset in (LoraSx1272Eu868(), LoraWholeNode()):
        assert (preset.duty_limit, preset.channels, preset.receptions) == (0.01, 3, 8)
