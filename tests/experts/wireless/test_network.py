"""What holds of every network, whatever its radio, batteries, listening and traffic."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from sparq_sim.errors import PluginError
from tests.experts.wireless.networks import Caller, Column, Outcome, Town, play_town, sensors

REFUSED = ("duty cycle", "channel busy")
ROUNDING = 1e-6
"""Seconds."""
COUNTED = ("sent", "delivered", "lost", "collided", "refused")

# Random networks


def amounts(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers of all sizes from *low* to *high*."""
    return st.floats(np.log10(low), np.log10(high)).map(lambda power: float(10**power))


radios: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(["lora-sx1272-eu868", "lora-whole-node"]),
            "spreading_factor": st.sampled_from(["auto", 7, 9]),
            "capture": st.sampled_from(["goursaud", "flora", "none"]),
            "channels": st.integers(1, 3),
            "receptions": st.sampled_from([None, 1, 2, 8]),
        }
    ),
    st.fixed_dictionaries(
        {
            "kind": st.just("ieee802154-cc2420"),
            "capture": st.sampled_from(["sinr", "none"]),
            "receptions": st.sampled_from([None, 1]),
        }
    ),
).flatmap(
    lambda radio: st.fixed_dictionaries(
        {
            **{name: st.just(value) for name, value in radio.items()},
            "duty_limit": st.sampled_from([1.0, 0.5, 0.1, 0.02]),
            "gateway_duty_limit": st.sampled_from([1.0, 0.5, 0.1]),
            "duty_window": st.floats(5.0, 50.0),
            "backoff": st.floats(0.0, 1.0),
        }
    ).flatmap(
        lambda known: st.integers(0, 3).map(
            lambda times: {**known, "acknowledged": times > 0, "retransmissions": max(0, times - 1)}
        )
    )
)
listenings: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({"kind": "always"}),
    st.builds(
        lambda every, first, gap: {
            "kind": "windows",
            "every": every,
            "first": first,
            "second": first + gap,
        },
        st.floats(3.0, 20.0),
        st.floats(0.05, 1.0),
        st.floats(0.1, 1.0),
    ),
    st.builds(
        lambda every, share: {"kind": "wake-ups", "every": every, "lasting": share * every},
        st.floats(0.5, 10.0),
        st.floats(0.01, 0.9),
    ),
)
pushes: st.SearchStrategy[dict[str, Any] | None] = st.one_of(
    st.none(),
    st.builds(lambda every: {"kind": "periodic", "every": every}, st.floats(0.5, 10.0)),
    st.builds(
        lambda every, delta: {"kind": "on-delta", "every": every, "delta": delta},
        st.floats(0.5, 5.0),
        st.floats(0.05, 1.0),
    ),
)
harvests: st.SearchStrategy[dict[str, Any] | None] = st.one_of(
    st.none(),
    st.builds(lambda power: {"kind": "constant", "power": power}, amounts(1e-6, 0.1)),
    st.builds(
        lambda power, day, share: {
            "kind": "daylight",
            "power": power,
            "day": day,
            "share": share,
            "sunrise": 0.3 * day,
        },
        amounts(1e-4, 0.2),
        st.floats(2.0, 40.0),
        st.floats(0.1, 0.9),
    ),
)
amounts_or_none = st.one_of(st.just(0.0), st.floats(0.001, 0.3))
settings_of_networks = st.fixed_dictionaries(
    {
        "radio": radios,
        "listening": listenings,
        "push": pushes,
        "harvest": harvests,
        "battery": st.one_of(amounts(1e-4, 10.0), amounts(1e-3, 0.3), st.sampled_from([1e4, inf])),
        "payload": st.integers(1, 51),
        "query_payload": st.integers(0, 51),
        "measuring_energy": st.one_of(st.just(0.0), amounts(1e-5, 0.01)),
        "measuring_time": amounts_or_none,
        "computing_time": amounts_or_none,
        "noise": st.sampled_from([0.0, 0.1]),
        "drift": st.sampled_from([0.0, 0.1]),
        "remember": st.sampled_from([0.0, 0.5]),
        "cost_per_joule": st.sampled_from([0.0, 10.0]),
        "ends_when_dead": st.sampled_from([None, "first", 0.6]),
        "seconds": st.sampled_from([1.0, 0.1, 7.0, 3600.0]),
        "seed": st.integers(0, 5),
    }
)


@dataclass(frozen=True)
class Case:
    """A network, and how it is played."""

    fields: dict[str, Any]
    sites: int
    calls: dict[int, tuple[int, ...]]
    together: bool
    period: float
    patience: float
    budget: float
    seed: int


@st.composite
def cases(draw: st.DrawFn, sites: int, rounds: int) -> Case:
    """Small networks that are asked a lot; times are in seconds."""
    fields: dict[str, Any] = {**draw(settings_of_networks)}
    lora = fields["radio"]["kind"].startswith("lora")
    count = draw(st.integers(1, sites))
    fields["path_loss"] = {
        "kind": "oulu" if lora else "castalia-2.4ghz",
        "shadowing": draw(st.sampled_from([0.0, 3.0])),
        "fading": draw(st.sampled_from(["none", "rayleigh"])),
    }
    fields["scale"] = draw(st.sampled_from([300.0, 2000.0] if lora else [5.0, 15.0]))
    middle = (count - 1) / 2
    fields["gateways"] = draw(st.sampled_from([(), ((0.0,), (middle,)), ((middle + 0.3,),)]))
    called = st.lists(st.integers(0, count - 1), max_size=4).map(tuple)
    return Case(
        fields,
        count,
        {number: draw(called) for number in range(1, rounds + 1)},
        together=draw(st.booleans()),
        period=draw(st.sampled_from([1.0, 2.5, 10.0])),
        patience=draw(st.sampled_from([inf, 0.4])),
        budget=draw(st.sampled_from([inf, 0.5])),
        seed=draw(st.integers(0, 100)),
    )


def play_case(case: Case) -> Outcome:
    seconds = case.fields["seconds"]
    try:
        return play_town(
            sensors(**case.fields),
            Town(sites=case.sites, apart=1.0, speed=0.3 * seconds),
            rounds=len(case.calls),
            caller=Caller(calls=case.calls, together=case.together),
            channel={"patience": case.patience * case.period / seconds},
            period=case.period / seconds,
            budget=case.budget,
            seed=case.seed,
        )
    except PluginError:  # No link closes, or the schedule exceeds the duty cycle.
        reject()


def check_laws(outcome: Outcome) -> None:
    check_energy(outcome)
    check_counts(outcome)
    check_meters(outcome)
    check_deaths(outcome)
    check_radios(outcome)
    check_duty_cycles(outcome)
    check_energy_of_packets(outcome)


def check_energy(outcome: Outcome) -> None:
    nodes, energy = outcome.nodes, outcome.energy
    on_mains = np.isinf(nodes["capacity"])
    used = np.where(on_mains, 0.0, nodes["capacity"]) - np.where(on_mains, 0.0, nodes["left"])
    used = used + nodes["harvested"] - nodes["wasted"]
    scale = np.where(on_mains, 1.0, nodes["capacity"]) + nodes["harvested"] + energy
    assert np.all(on_mains | (abs(used - energy) <= 1e-9 * scale)), used - energy
    assert np.all((nodes["left"] >= 0) & (nodes["left"] <= nodes["capacity"]))
    assert np.array_equal(nodes["left"] == 0, ~np.isnan(nodes["died_at"]))
    assert all((nodes[name] >= 0).all() for name in nodes if name.startswith("energy_"))


def count_fates(fates: Column) -> dict[str, int]:
    refused = int(np.isin(fates, REFUSED).sum())
    delivered, collided = int((fates == "delivered").sum()), int((fates == "collided").sum())
    sent = len(fates) - refused
    return dict(
        zip(COUNTED, (sent, delivered, sent - delivered - collided, collided, refused), strict=True)
    )


def sent_by(outcome: Outcome) -> list[tuple[dict[str, Any], dict[str, Column]]]:
    """Return the row of each node and gateway, with its packets."""
    packets, nodes, gateways = outcome.packets, outcome.nodes, outcome.gateways
    up = packets["direction"] == "up"
    found = []
    for table, number, rows in (
        (nodes, packets["node"], up),
        (gateways, nodes["gateway"][packets["node"]], ~up),
    ):
        for index in range(len(table["name"])):
            chosen = rows & (number == index)
            row = {name: column[index] for name, column in table.items()}
            found.append((row, {name: column[chosen] for name, column in packets.items()}))
    return found


def check_counts(outcome: Outcome) -> None:
    seconds = outcome.model.seconds
    for row, packets in sent_by(outcome):
        assert row["sent"] == row["delivered"] + row["lost"] + row["collided"]
        assert {name: row[name] for name in COUNTED} == count_fates(packets["fate"])
        lasted = (packets["ended_at"] - packets["started_at"]).sum() * seconds
        assert row["airtime"] == pytest.approx(lasted, rel=1e-6, abs=1e-6)
    assert outcome.packets["number"].tolist() == list(range(len(outcome.packets["number"])))


def check_meters(outcome: Outcome) -> None:
    """Check the meters of each round against the tables, as of its end."""
    rounds, nodes, packets = outcome.trace.rounds, outcome.nodes, outcome.packets
    if not len(outcome.trace):  # Dead before the first round.
        return
    on_air = ~np.isin(packets["fate"], REFUSED)
    lasted = (packets["ended_at"] - packets["started_at"]) * outcome.model.seconds
    for row, now in enumerate(rounds["played_at"]):
        metered = {name: rounds[f"meter_network_{name}"][row] for name in COUNTED}
        past = packets["ended_at"] <= now * (1 + 1e-12)
        counted = count_fates(packets["fate"][past])
        # Queries of this very moment may be refused at once, after the meters were read.
        of_now = np.isclose(packets["ended_at"][~on_air], now, rtol=1e-12).sum()
        assert 0 <= counted["refused"] - metered["refused"] <= of_now
        assert metered == {**counted, "refused": metered["refused"]}
        airtime = lasted[past & on_air].sum()
        assert rounds["meter_network_airtime"][row] == pytest.approx(airtime, rel=1e-6, abs=1e-6)
        assert rounds["meter_network_alive"][row] == (~(nodes["died_at"] <= now)).sum()
    energies = rounds["meter_network_energy"]
    assert (np.diff(energies) >= -1e-12).all()
    assert energies[-1] <= outcome.energy.sum() * (1 + 1e-9)
    levels = outcome.table("levels")
    if outcome.model.harvest is None and outcome.model.battery < inf:
        for now, energy in zip(rounds["played_at"], energies, strict=True):
            left = levels["left"][np.isclose(levels["time"], now)].sum()
            used = nodes["capacity"].sum() - left
            assert energy == pytest.approx(used, rel=1e-9, abs=1e-9 * nodes["capacity"].sum())


def check_deaths(outcome: Outcome) -> None:
    nodes, packets, replies = outcome.nodes, outcome.packets, outcome.trace.replies
    slack = ROUNDING / outcome.model.seconds
    died_at = np.where(np.isnan(nodes["died_at"]), inf, nodes["died_at"])
    death = died_at[packets["node"]]
    up = packets["direction"] == "up"
    assert (packets["started_at"][up] <= death[up] + slack).all()
    assert (packets["ended_at"][up] <= death[up] + slack).all()
    heard = packets["fate"] == "delivered"
    assert (packets["ended_at"][heard] <= death[heard] + slack).all()
    answered = replies["fate"] == "answered"
    answered &= replies["source"] == "network"
    whose = np.searchsorted(nodes["at_x0"], replies["x0"][answered])
    assert (replies["measured_at"][answered] <= died_at[whose] + slack).all()


def check_apart(packets: dict[str, Column], seconds: float) -> None:
    """Check that no two packets are on the air at once."""
    on_air = sorted(zip(packets["started_at"], packets["ended_at"], strict=True))
    for (_, end), (start, _) in pairwise(on_air):
        assert end <= start + ROUNDING / seconds


def check_radios(outcome: Outcome) -> None:
    """Check that nobody does two things at once."""
    packets, seconds = outcome.packets, outcome.model.seconds
    was_on_air = ~np.isin(packets["fate"], REFUSED)
    for _, own in sent_by(outcome):
        sent = ~np.isin(own["fate"], REFUSED)
        check_apart({name: column[sent] for name, column in own.items()}, seconds)
    received = (packets["direction"] == "down") & (packets["energy"] > 0)
    for node in range(len(outcome.nodes["name"])):
        own_up = (packets["direction"] == "up") & was_on_air
        rows = (packets["node"] == node) & (own_up | received)
        check_apart({name: column[rows] for name, column in packets.items()}, seconds)
    most = outcome.model.radio.receptions
    assert most is None or (outcome.gateways["busiest"] <= most).all()
    if len(outcome.gateways["name"]) == 1:  # It hears nothing while it sends.
        downs = np.flatnonzero((packets["direction"] == "down") & was_on_air)
        ups = np.flatnonzero((packets["direction"] == "up") & (packets["fate"] == "delivered"))
        starts = np.maximum.outer(packets["started_at"][downs], packets["started_at"][ups])
        ends = np.minimum.outer(packets["ended_at"][downs], packets["ended_at"][ups])
        assert (ends - starts <= ROUNDING / seconds).all()


def check_duty_cycles(outcome: Outcome) -> None:
    radio, seconds = outcome.model.radio, outcome.model.seconds
    window = radio.duty_window
    for row, packets in sent_by(outcome):
        limit = radio.gateway_duty_limit if "busiest" in row else radio.duty_limit
        starts, ends = packets["started_at"] * seconds, packets["ended_at"] * seconds
        for moment in (*ends, *(starts + window)):
            from_ = np.maximum(starts, moment - window)
            lasted = np.maximum(np.minimum(ends, moment) - from_, 0.0)
            assert lasted.sum() <= limit * window * (1 + 1e-6) + ROUNDING


def check_energy_of_packets(outcome: Outcome) -> None:
    model, packets = outcome.model, outcome.packets
    up = packets["direction"] == "up"
    sent = up & ~np.isin(packets["fate"], REFUSED)
    lasted = (packets["ended_at"] - packets["started_at"]) * model.seconds
    expected = model.radio.send_draw * lasted[sent]
    assert packets["energy"][sent] == pytest.approx(expected, rel=1e-6, abs=1e-7)
    assert (packets["energy"][up & ~sent] == 0).all()
    longest = model.radio.send_draw * 3.0
    for cause, rows in (("send", up), ("receive", ~up)):
        own = np.bincount(
            packets["node"][rows], packets["energy"][rows], len(outcome.nodes["name"])
        )
        more = outcome.nodes[f"energy_{cause}"] - own
        # A packet that is on the air when the play ends is not in the table.
        assert (more >= -1e-9).all()
        assert (more <= longest).all()


@settings(max_examples=200)
@given(cases(sites=4, rounds=5))
def test_energy_is_conserved_and_nothing_is_done_twice_at_once_or_after_death(case: Case) -> None:
    check_laws(play_case(case))


@pytest.mark.slow
@settings(max_examples=300)
@given(cases(sites=12, rounds=25))
def test_larger_networks_obey_the_same_laws_for_longer(case: Case) -> None:
    check_laws(play_case(case))
