from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from math import comb, exp

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from sparq_experts.wireless.battery import Battery
from sparq_experts.wireless.listening import AlwaysOn
from sparq_experts.wireless.medium import Medium, Packet, PacketFate
from sparq_experts.wireless.node import DutyCycle, Gateway, Node
from sparq_experts.wireless.presets import AnyRadio, Ieee802154Cc2420, LoraSx1272Eu868
from sparq_sim.simulation.clock.virtual import SimClock
from tests.experts.wireless.networks import (
    QUIET,
    SF7,
    Town,
    play_town,
    sensors,
    within_three_errors,
)

FREE = DutyCycle(1.0, 1.0)
BATCHES = 40


def lora(**fields: object) -> LoraSx1272Eu868:
    return LoraSx1272Eu868.model_validate(
        {"spreading_factor": 7, "channels": 1, "receptions": None, **fields}
    )


def make_gateway(index: int = 0) -> Gateway:
    return Gateway(index, f"gateway-{index}", FREE, default_rng(index))


def make_node(radio: AnyRadio, *powers: float, index: int = 0) -> Node:
    """Make a node whose packets have these powers at the gateways, and theirs at it."""
    return Node(
        index,
        f"node-{index}",
        np.zeros((1, 1)),
        radio,
        Battery(1e9),
        AlwaysOn(),
        FREE,
        up=powers,
        down=powers,
        gate=SimClock().gate(1),
        rng=default_rng(index),
        phase=0.0,
    )


def make_medium(gateways: int = 1, nodes: int = 1) -> Medium:
    between = [[-200.0] * nodes] * nodes
    return Medium([make_gateway(index) for index in range(gateways)], between, QUIET)


def send_all(
    medium: Medium, node: Node, starts: Sequence[float], airtime: float, payload: int = 10
) -> list[PacketFate]:
    """Send packets of one node, each when its time has come, and give their fates in order."""
    fates: dict[int, PacketFate] = {}
    on_air: list[tuple[float, int, Packet]] = []

    def end_those_until(moment: float) -> None:
        while on_air and on_air[0][0] <= moment:
            _, number, packet = heappop(on_air)
            fates[number] = medium.end(packet)

    for number, start in enumerate(starts):
        end_those_until(start)
        packet = medium.begin_up(node, payload, start, airtime)
        heappush(on_air, (packet.end, number, packet))
    end_those_until(np.inf)
    return [fates[number] for number in range(len(starts))]


# ALOHA


def check_share(delivered: Sequence[bool], expected: float) -> None:
    """Check a share within 3 standard errors; packets that collide with each other do so together,
    so the error is that of the mean of long batches."""
    cut = len(delivered) // BATCHES * BATCHES
    shares = np.array(delivered[:cut], dtype=float).reshape(BATCHES, -1).mean(axis=1)
    error = shares.std(ddof=1) / np.sqrt(BATCHES)
    assert error < 0.02
    assert abs(shares.mean() - expected) <= 3 * error


@pytest.mark.parametrize("load", [0.1, 0.5, 1.0])
def test_pure_aloha_delivers_a_share_of_exp_of_minus_twice_the_load(load: float) -> None:
    rng = default_rng(1)
    starts = np.cumsum(rng.exponential(1 / load, 12_000)).tolist()
    node = make_node(lora(capture="none"), -100.0)
    fates = send_all(make_medium(), node, starts, airtime=1.0)
    assert set(fates) == {PacketFate.DELIVERED, PacketFate.COLLIDED}
    check_share([fate is PacketFate.DELIVERED for fate in fates], exp(-2 * load))


@pytest.mark.parametrize("load", [0.1, 0.5, 1.0])
def test_slotted_aloha_delivers_a_share_of_exp_of_minus_the_load(load: float) -> None:
    rng = default_rng(2)
    arrivals = np.cumsum(rng.exponential(1 / load, 12_000))
    slots = np.ceil(arrivals).tolist()
    node = make_node(lora(capture="none"), -100.0)
    fates = send_all(make_medium(), node, slots, airtime=1.0)
    check_share([fate is PacketFate.DELIVERED for fate in fates], exp(-load))


def test_channels_share_the_load_of_aloha() -> None:
    rng = default_rng(3)
    starts = np.cumsum(rng.exponential(1 / 1.5, 12_000)).tolist()
    node = make_node(lora(capture="none", channels=3), -100.0)
    fates = send_all(make_medium(), node, starts, airtime=1.0)
    check_share([fate is PacketFate.DELIVERED for fate in fates], exp(-2 * 1.5 / 3))


def test_nodes_that_report_at_moments_of_their_own_are_pure_aloha() -> None:
    """Each of n nodes sends once a period P: (1 - 2 T / P)^(n - 1), near exp(-2 G), arrive."""
    count, plays, load = 100, 30, 0.5
    radio = {**SF7, "capture": "none", "channels": 1, "receptions": None, "duty_limit": 1.0}
    airtime = LoraSx1272Eu868(spreading_factor=7).airtime(12)
    period = count * airtime / load
    shares = []
    for seed in range(plays):
        outcome = play_town(
            sensors(radio=radio, battery=np.inf, push={"kind": "periodic", "every": period}),
            Town(sites=count, apart=1.0),
            rounds=2,
            period=period,
            seed=seed,
        )
        # The second packets have neighbours on both sides.
        sent = outcome.packets["started_at"]
        second = (sent >= period) & (sent < 2 * period)
        assert second.sum() == count
        shares.append((outcome.packets["fate"][second] == "delivered").mean())
    error = np.std(shares, ddof=1) / np.sqrt(plays)
    expected = (1 - 2 * airtime / period) ** (count - 1)
    assert expected == pytest.approx(exp(-2 * load), abs=0.01)
    assert error < 0.02
    assert abs(np.mean(shares) - expected) <= 3 * error


# Bit errors and fading


def compute_success(decibels: float, size: int) -> float:
    """(1 - bit error)^bits, by the formula of the standard."""
    ratio = 10 ** (decibels / 10)
    terms = [(-1) ** k * comb(16, k) * exp(20 * ratio * (1 / k - 1)) for k in range(2, 17)]
    return float((1 - 8 / 15 / 16 * sum(terms)) ** (8 * size))


@pytest.mark.parametrize("decibels", [-0.5, 0.0, 0.5, 1.0, 3.0])
def test_a_packet_is_read_with_the_probability_that_its_bits_are(decibels: float) -> None:
    floor = Ieee802154Cc2420().noise_floor
    distance = 10 ** ((0.0 - (floor + decibels) - 55.0) / 24.0)
    outcome = play_town(
        sensors(
            radio={
                "kind": "ieee802154-cc2420",
                "acknowledged": False,
                "retransmissions": 0,
                "chip_sensitivity": -100.0,
            },
            nodes=[{"name": "site-0", "distance": distance}],
            battery=np.inf,
            payload=20,
            push={"kind": "periodic", "every": 0.01},
        ),
        rounds=1,
        period=10.0,
    )
    (sent,), (delivered,) = outcome.nodes["sent"], outcome.nodes["delivered"]
    assert sent > 1900
    # 6 bytes of preamble, 11 of headers and checksum, 20 of payload.
    assert within_three_errors(delivered / sent, compute_success(decibels, 6 + 11 + 20), sent)
    assert outcome.nodes["lost"][0] == sent - delivered


@pytest.mark.parametrize("decibels", [-1.5, -0.5])
def test_an_acknowledgement_is_read_with_the_probability_that_its_11_bytes_are(
    decibels: float,
) -> None:
    floor = Ieee802154Cc2420().noise_floor
    distance = 10 ** ((0.0 - (floor + decibels) - 55.0) / 24.0)
    outcome = play_town(
        sensors(
            radio={
                "kind": "ieee802154-cc2420",
                "retransmissions": 0,
                "chip_sensitivity": -100.0,
            },
            nodes=[{"name": "site-0", "distance": distance}],
            battery=np.inf,
            push={"kind": "periodic", "every": 0.01},
        ),
        rounds=1,
        period=15.0,
    )
    fates = outcome.select(purpose="acknowledgement")["fate"]
    assert set(fates) == {"delivered", "faded"}
    assert len(fates) > 1500
    # 6 bytes of preamble, 5 of frame.
    share = (fates == "delivered").mean()
    assert within_three_errors(share, compute_success(decibels, 6 + 5), len(fates))
    assert not within_three_errors(share, compute_success(decibels, 6 + 11), len(fates))


def test_two_gateways_have_bit_errors_of_their_own() -> None:
    radio, count = Ieee802154Cc2420(), 3000
    power = radio.noise_floor - 1.0
    once = radio.success(power, 60, "gateway")
    assert 0.3 < once < 0.9
    medium, node = make_medium(2), make_node(radio, power, power)
    starts = np.arange(count, dtype=float).tolist()
    fates = send_all(medium, node, starts, airtime=0.001, payload=60)
    delivered = np.mean([fate is PacketFate.DELIVERED for fate in fates])
    assert within_three_errors(float(delivered), 1 - (1 - once) ** 2, count)


@pytest.mark.parametrize("margin", [0.5, 3.0, 10.0])
def test_under_rayleigh_fading_the_share_of_powers_above_the_sensitivity_is_read(
    margin: float,
) -> None:
    radio = LoraSx1272Eu868(spreading_factor=7)
    budget = radio.transmit_power - radio.sensitivity("gateway") - margin
    outcome = play_town(
        sensors(
            radio={**SF7, "duty_limit": 1.0},
            path_loss={"kind": "oulu", "shadowing": 0.0, "fading": "rayleigh"},
            nodes=[{"name": "site-0", "distance": QUIET.range(budget)}],
            battery=np.inf,
            push={"kind": "periodic", "every": 0.1},
        ),
        rounds=1,
        period=100.0,
    )
    (sent,), (delivered,) = outcome.nodes["sent"], outcome.nodes["delivered"]
    assert sent > 1900
    assert within_three_errors(delivered / sent, exp(-(10 ** (-margin / 10))), sent)


# What packets do to each other


def overlap(
    one: Node, other: Node, *, gateways: int = 1, apart: float = 0.5
) -> tuple[PacketFate, PacketFate]:
    """Send two packets of 1 s that overlap, and give their fates."""
    medium = make_medium(gateways, nodes=2)
    first = medium.begin_up(one, 10, 0.0, 1.0)
    second = medium.begin_up(other, 10, apart, 1.0)
    return medium.end(first), medium.end(second)


@pytest.mark.parametrize(
    ("capture", "difference", "survives"),
    [
        ("goursaud", 6.5, True),
        ("goursaud", 5.5, False),
        ("flora", 1.5, True),
        ("flora", 0.5, False),
        ("none", 40.0, False),
    ],
)
def test_the_stronger_packet_survives_by_the_matrix(
    capture: str, difference: float, survives: bool
) -> None:
    radio = lora(capture=capture)
    weak, strong = make_node(radio, -100.0), make_node(radio, -100.0 + difference, index=1)
    fates = overlap(weak, strong)
    expected = PacketFate.DELIVERED if survives else PacketFate.COLLIDED
    assert fates == (PacketFate.COLLIDED, expected)


def test_another_spreading_factor_disturbs_only_when_it_is_far_stronger() -> None:
    own = make_node(lora(spreading_factor=7), -100.0)
    for power, survives in ((-84.5, True), (-83.5, False)):  # 16 dB, Goursaud.
        other = make_node(lora(spreading_factor=8), power, index=1)
        assert (overlap(own, other)[0] is PacketFate.DELIVERED) == survives


def test_packets_that_only_touch_do_not_collide() -> None:
    node = make_node(lora(capture="none"), -100.0)
    medium = make_medium()
    first = medium.begin_up(node, 10, 0.0, 1.0)
    second = medium.begin_up(node, 10, 1.0, 1.0)
    assert medium.end(first) is PacketFate.DELIVERED
    assert medium.end(second) is PacketFate.DELIVERED


def test_one_gateway_that_can_read_a_packet_is_enough() -> None:
    radio = lora()
    near_first, near_second = make_node(radio, -80.0, -120.0), make_node(radio, -120.0, -80.0)
    both = (PacketFate.DELIVERED, PacketFate.DELIVERED)
    assert overlap(near_first, near_second, gateways=2) == both


def test_a_weak_packet_fades_and_disturbs_nobody_much() -> None:
    faint, loud = make_node(lora(), -131.0), make_node(lora(), -100.0, index=1)
    assert overlap(faint, loud) == (PacketFate.FADED, PacketFate.DELIVERED)


def test_a_gateway_receives_as_many_at_once_as_it_can() -> None:
    # On channels of their own, so that none collides.
    medium = make_medium()
    nodes = [make_node(lora(receptions=8, channels=10**6), -100.0, index=i) for i in range(10)]
    packets = [medium.begin_up(node, 10, 0.0, 1.0) for node in nodes]
    fates = [medium.end(packet) for packet in packets]
    assert fates == [PacketFate.DELIVERED] * 8 + [PacketFate.GATEWAY_FULL] * 2
    again = medium.begin_up(nodes[0], 10, 2.0, 1.0)
    assert medium.end(again) is PacketFate.DELIVERED


def test_a_gateway_with_one_receiver_counts_the_second_packet_as_a_collision() -> None:
    one, other = (make_node(lora(receptions=1, channels=10**6), -100.0, index=i) for i in (0, 1))
    assert overlap(one, other) == (PacketFate.DELIVERED, PacketFate.COLLIDED)


def test_a_gateway_that_sends_receives_nothing() -> None:
    gateway = make_gateway()
    medium = Medium([gateway], [[-200.0]], QUIET)
    node = make_node(lora(), -100.0)
    early = medium.begin_up(node, 10, 0.0, 1.0)
    down = medium.begin_down(gateway, node, 10, 0.5, 1.0)
    assert gateway.is_taken(0.5)
    late = medium.begin_up(node, 10, 1.2, 1.0)
    assert medium.end(early) is PacketFate.GATEWAY_SENDING
    assert medium.end(down) is PacketFate.DELIVERED
    assert not gateway.is_taken(2.0)
    assert medium.end(late) is PacketFate.GATEWAY_SENDING
    assert gateway.receiving == 0


def test_another_gateway_hears_what_one_that_sends_misses() -> None:
    gateways = [make_gateway(0), make_gateway(1)]
    medium = Medium(gateways, [[-200.0]], QUIET)
    node = make_node(lora(), -80.0, -100.0)
    packet = medium.begin_up(node, 10, 0.0, 1.0)
    medium.begin_down(gateways[0], node, 10, 0.5, 1.0)
    assert medium.end(packet) is PacketFate.DELIVERED


def test_the_air_is_busy_for_those_who_hear_what_is_on_it() -> None:
    radio = Ieee802154Cc2420()
    nodes = [make_node(radio, -80.0, index=index) for index in range(3)]
    medium = Medium([make_gateway()], [[0.0, -70.0, -90.0]] * 3, QUIET)
    assert not medium.is_busy_at(nodes[1], radio.busy_threshold)
    packet = medium.begin_up(nodes[0], 10, 0.0, 1.0)
    assert medium.is_busy_at(nodes[1], radio.busy_threshold)
    assert not medium.is_busy_at(nodes[2], radio.busy_threshold)
    medium.end(packet)
    assert not medium.is_busy_at(nodes[1], radio.busy_threshold)


def test_up_and_down_disturb_each_other_unless_downlinks_are_inverted() -> None:
    def fate_of_downlink(radio: AnyRadio) -> PacketFate:
        gateway = make_gateway()
        medium = Medium([gateway], [[0.0, -60.0], [-60.0, 0.0]], QUIET)
        target, other = make_node(radio, -80.0), make_node(radio, -80.0, index=1)
        down = medium.begin_down(gateway, target, 10, 0.0, 0.001)
        medium.begin_up(other, 10, 0.0, 0.001)
        return medium.end(down)

    assert fate_of_downlink(Ieee802154Cc2420()) is PacketFate.COLLIDED
    assert fate_of_downlink(lora()) is PacketFate.DELIVERED


def rng_state(rng: Generator) -> object:
    return rng.bit_generator.state


def test_what_another_sends_does_not_change_the_chance_of_a_node() -> None:
    alone, beside = make_node(lora(), -100.0), make_node(lora(), -100.0)
    make_medium().begin_up(alone, 10, 0.0, 1.0)
    medium = make_medium(nodes=2)
    medium.begin_up(make_node(lora(), -100.0, index=1), 10, 0.0, 1.0)
    medium.begin_up(beside, 10, 0.0, 1.0)
    assert rng_state(alone.rng) == rng_state(beside.rng)
