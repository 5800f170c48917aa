from __future__ import annotations

import re
import warnings
from math import ceil, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparq_experts.sensors import Sensors
from sparq_experts.wireless.checks import (
    LinkBudget,
    SensorsWarning,
    check_battery,
    check_duty,
    check_gateways,
    check_links,
    check_payload,
    check_round,
    compute_duty,
    compute_links,
    describe_links,
)
from sparq_experts.wireless.lifetime import compute_lifetime
from sparq_experts.wireless.node import DutyCycle
from sparq_experts.wireless.placing import Scattered, place
from sparq_experts.wireless.presets import Ieee802154Cc2420, LoraSx1272Eu868
from sparq_experts.wireless.propagation import LorasimLoss
from sparq_sim.domain import Box, Sites
from sparq_sim.errors import PluginError
from sparq_sim.plugin.contract import Briefing

SF7 = LoraSx1272Eu868(spreading_factor=7)
SF12 = LoraSx1272Eu868(spreading_factor=12)


def link(
    loss: float,
    *,
    node: str = "a",
    rate: int = 7,
    highest_power: float = 20.0,
    downlink_margin: float = 9.0,
) -> LinkBudget:
    return LinkBudget(
        node=node,
        gateway="gateway",
        distance=250.0,
        rate=rate,
        power=14.0,
        highest_power=highest_power,
        loss=loss,
        sensitivity=-130.0,
        downlink_margin=downlink_margin,
    )


# Links


def test_a_link_budget_is_power_less_loss_less_sensitivity() -> None:
    budget = link(140.0)
    assert (budget.received, budget.margin) == (-126.0, 4.0)


def test_each_node_uses_the_gateway_of_the_smallest_loss() -> None:
    domain = Sites([[0.0], [10.0]], ["west", "east"])
    places = place(None, domain, scale=40.0, gateways=[[1.0], [9.0], [5.0]])
    # A hill stands between the western node and the gateway beside it.
    losses = np.array([[150.0, 160.0, 140.0], [150.0, 127.41, 140.0]])
    west, east = compute_links(places, losses, [SF7, SF12])
    assert (west.gateway, west.distance, west.rate) == ("gateway-2", 200.0, 7)
    assert (east.gateway, east.distance, east.rate) == ("gateway-1", 40.0, 12)
    assert east.margin == pytest.approx(14 - 127.41 + 142.5)
    assert east.downlink_margin == pytest.approx(27 - 127.41 + 137)


def test_the_margin_is_zero_at_the_range_of_the_radio() -> None:
    loss = LorasimLoss()
    reach = loss.range(SF7.transmit_power - SF7.sensitivity("gateway"))
    places = place(None, Sites([[0.0]]), gateways=[[reach]])
    (found,) = compute_links(places, loss.loss(places.distances), [SF7])
    assert found.margin == pytest.approx(0.0, abs=1e-9)


def test_links_are_described_in_columns() -> None:
    lines = describe_links([link(140.0), link(150.5, node="far away")])
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split("  ")[0] == "node"
    numbers = ["14.0", "150.5", "-136.5", "-130.0", "-6.5", "+9.0"]
    assert lines[2].split() == ["far", "away", "gateway", "250", "SF7", *numbers]


def test_nodes_within_reach_raise_no_warning() -> None:
    check_links([link(140.0), link(144.0)])


def test_no_node_within_reach_is_refused_with_the_budget_of_each() -> None:
    links = [link(150.0 + i, node=f"n{i}") for i in reversed(range(15))]
    with pytest.raises(PluginError) as caught:
        check_links(links)
    first, header, *rows, left, remedy = str(caught.value).splitlines()
    assert "15 nodes, none within reach of a gateway: the best link lacks 6.0 dB" in first
    assert (
        "raise radio.transmit_power (now 14 dBm, at most 20), raise radio.spreading_factor "
        "(now 7), lower `scale`, or add a gateway that is nearer"
    ) in remedy
    assert header.split()[:2] == ["node", "gateway"]
    assert [row.split()[0] for row in rows] == [f"n{i}" for i in range(12)]
    assert rows[1].split()[5:9] == ["151.0", "-137.0", "-130.0", "-7.0"]
    assert left == "and 3 more"


def test_a_node_that_can_send_no_louder_and_no_slower_is_not_told_to() -> None:
    with pytest.raises(PluginError, match=r"\nTo reach one, lower `scale` or add a gateway"):
        check_links([link(144.5, rate=12, highest_power=14.0)])


def test_nodes_out_of_reach_are_warned_of_with_their_margins() -> None:
    with pytest.warns(
        SensorsWarning, match=r"out of reach .*: 2 of 3 nodes, .*'b' \(-1.0 dB\), 'c'"
    ):
        check_links([link(140.0), link(146.5, node="c"), link(145.0, node="b")])


def test_nodes_that_cannot_hear_are_warned_of_only_where_they_are_asked() -> None:
    links = [link(140.0, downlink_margin=-3.0), link(140.0, node="b")]
    check_links(links, asked=False)
    with pytest.warns(SensorsWarning, match=r"cannot hear it: 1 of 2, .*'a' \(-3.0 dB\)"):
        check_links(links)


def test_a_warning_lists_at_most_twelve_nodes() -> None:
    far = [link(150.0, node=f"n{i}") for i in range(40)]
    with pytest.warns(SensorsWarning, match=r"40 of 41 nodes, .* and 28 more\. To reach"):
        check_links([link(140.0), *far])


def test_the_whole_way_from_places_to_a_refusal() -> None:
    places = place(Scattered(scattered=3, seed=1), Box([0.0, 0.0], [1.0, 1.0]), scale=1e5)
    losses = LorasimLoss().loss(places.distances)
    with pytest.raises(PluginError, match="3 nodes, none within reach"):
        check_links(compute_links(places, losses, [SF12.for_link(loss) for loss in losses[:, 0]]))


# Packets


@pytest.mark.parametrize(
    ("rate", "most"), [(7, 242), (8, 242), (9, 115), (10, 51), (11, 51), (12, 51)]
)
def test_the_largest_payload_of_each_rate_fits_and_one_byte_more_does_not(
    rate: int, most: int
) -> None:
    radio = SF7.model_copy(update={"spreading_factor": rate})
    check_payload(most, radio)
    with pytest.raises(PluginError, match=rf"payload: {most + 1} bytes: SF{rate} allows {most} "):
        check_payload(most + 1, radio)


def test_a_payload_that_is_too_large_is_told_the_rates_that_allow_it() -> None:
    with pytest.raises(PluginError) as caught:
        check_payload(100, SF12, "mill")
    text = str(caught.value)
    assert "SF12 of node 'mill' allows 51 bytes beside 13 bytes of headers" in text
    assert "SF7 (242 bytes), SF8 (242 bytes), SF9 (115 bytes)" in text
    with pytest.raises(PluginError, match=r"no spreading factor allows more than 242"):
        check_payload(300, SF12)


def test_a_frame_of_802154_has_127_bytes_with_its_headers() -> None:
    radio = Ieee802154Cc2420()
    check_payload(116, radio)
    with pytest.raises(PluginError, match=r"payload: 117 bytes: the radio allows 116 .* 11 bytes"):
        check_payload(117, radio)


def test_a_schedule_within_the_duty_cycle_passes() -> None:
    check_duty(["a"], [SF7], [SF7.airtime(20)], every=60.0)


def test_a_schedule_beyond_the_duty_cycle_is_refused_with_the_shortest_period() -> None:
    airtime = 1.318912  # 20 bytes at SF12
    with pytest.raises(PluginError) as caught:
        check_duty(["near", "far"], [SF7, SF12], [0.056576, airtime], every=60.0)
    text = str(caught.value)
    assert "every: 60 s: node 'far' (SF12) would send 1.319 s in each period" in text
    assert "2.2 % of the time, but the duty cycle allows 1 %: 27 packets in 3600 s" in text
    assert "The shortest period that fits is 133.4 s" in text
    check_duty(["far"], [SF12], [airtime], every=133.4)


def test_a_packet_longer_than_the_whole_window_allows_is_refused() -> None:
    radio = SF12.model_copy(update={"duty_window": 60.0})
    with pytest.raises(PluginError, match=r"0 packets in 60 s. No period fits"):
        check_duty(["a"], [radio], [1.3], every=1e9)


def test_without_a_schedule_the_duty_cycle_is_a_warning() -> None:
    radios = [SF12, SF12]
    with pytest.warns(SensorsWarning, match=r"node 'a' \(SF12\) and 1 other node would send"):
        check_duty(["a", "b"], radios, [1.3, 1.3], every=60.0, scheduled=False)


def test_without_a_limit_only_packets_that_would_overlap_are_refused() -> None:
    radio = Ieee802154Cc2420()
    check_duty(["a"], [radio], [0.01], every=0.01)
    with pytest.raises(PluginError, match=r"125 % of the time, .* allows 100 %.* is 0\.01 s"):
        check_duty(["a"], [radio], [0.01], every=0.008)


@given(st.floats(0.01, 3.0), st.floats(0.001, 0.5), st.floats(60.0, 600.0), st.floats(1.0, 1.5))
def test_from_the_shortest_period_on_every_packet_is_admitted_and_below_it_not(
    airtime: float, limit: float, window: float, slower: float
) -> None:
    need = compute_duty(airtime, 60.0, limit=limit, window=window)
    assert need.share == airtime / 60.0
    assert need.shortest >= airtime / limit * (1 - 1e-9)
    if need.packets:
        assert all(admitted(airtime, need.shortest * slower * (1 + 1e-9), limit, window))
        assert not all(admitted(airtime, need.shortest * 0.99, limit, window))


def admitted(airtime: float, period: float, limit: float, window: float) -> list[bool]:
    duty = DutyCycle(limit, window)
    count = 2 * ceil(window / period) + 3
    return [duty.admit(i * period, airtime) for i in range(count)]


# Rounds


def test_a_round_shorter_than_a_packet_is_told_with_both_times_and_the_slowest_node() -> None:
    airtimes = [SF7.airtime(12), SF12.airtime(12)]
    assert airtimes == pytest.approx([0.061696, 1.482752])
    check_round(["near", "far"], airtimes, lasting=1.483)
    with pytest.warns(
        SensorsWarning,
        match=r"seconds: a round lasts 1 s, but a reading of node 'far' is on the air for 1\.483 s",
    ):
        check_round(["near", "far"], airtimes, lasting=1.0)


def test_a_play_with_a_wrong_unit_of_time_is_warned_of() -> None:
    field = Sites(np.array([[0.0]]))
    for seconds, warned in ((0.01, True), (86_400.0, False)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Sensors(radio=SF7, seconds=seconds).start(Briefing(field, period=2.0))
        told = [str(each.message) for each in caught]
        assert any("a round lasts 0.02 s" in text for text in told) == warned


# Batteries


def test_batteries_that_end_before_the_play_are_told_with_the_first() -> None:
    with pytest.warns(
        SensorsWarning, match=r"2 of 4 nodes.*'b' after 2.5 of 6 clock units \(0.5 J at 0.02"
    ):
        check_battery(
            ["a", "b", "c", "d"],
            [500.0, 0.5, inf, 1.0],
            [0.02, 0.02, 0.02, 0.02],
            until=60.0,
            seconds=10.0,
        )


def test_batteries_that_last_are_not_warned_of() -> None:
    check_battery(["a", "b"], [1.0, inf], [0.0, 1.0], until=60.0, seconds=1.0)


def test_the_expected_lifetime_is_that_of_the_closed_form() -> None:
    sleep, send, airtime = 3.3 * 1.5e-6, 3.3 * 0.044, 0.056576
    closed = compute_lifetime(18_720.0, period=60.0, sleep=sleep, send=send, airtime=airtime)
    draw = sleep + send * airtime / 60
    check_battery(["a"], [18_720.0], [draw], until=closed * (1 - 1e-9), seconds=1.0)
    with pytest.warns(SensorsWarning, match=re.escape(f"after {closed:.4g}")):
        check_battery(["a"], [18_720.0], [draw], until=closed * (1 + 1e-9), seconds=1.0)


def test_warnings_are_told_as_of_the_code_that_checks() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_battery(["a"], [1.0], [1.0], until=60.0, seconds=1.0)
    assert caught[0].filename == __file__


def test_gateways_that_hear_no_node_are_told_with_their_margins() -> None:
    with pytest.warns(SensorsWarning, match=r"hear no node.*'far' \(-12\.3 dB\)\. Move"):
        check_gateways(["near", "far"], [3.0, -12.34])


def test_gateways_that_hear_a_node_are_not_warned_of() -> None:
    check_gateways(["near"], [0.0])
