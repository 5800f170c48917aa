from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparq_sim.report.network import read_networks
from tests.report.networks import make_accounts, make_network


def test_a_source_with_a_table_of_nodes_is_a_network_whoever_it_is() -> None:
    other = {"gauge/log": {"time": np.arange(3)}, "nodes": {}}
    accounts = {**make_accounts(), **make_accounts(5, source="a/b"), **other}
    networks, notes = read_networks(accounts)
    assert notes == ()
    assert [(n.source, len(n.names)) for n in networks] == [("sensors", 12), ("a/b", 5)]


def test_nodes_alone_are_enough() -> None:
    nodes = make_accounts()["sensors/nodes"]
    few = {name: nodes[name] for name in ("name", "east", "north", "capacity", "left", "died_at")}
    (network,), notes = read_networks({"s/nodes": few})
    assert notes == ()
    assert (network.links, network.batteries, network.energies) == ([], None, {})
    assert network.count_packets() == {}
    assert np.isnan(network.delivered).all()
    assert not network.used.any()


def test_a_share_is_what_is_left_of_the_capacity_and_unknown_on_mains() -> None:
    network = make_network()
    nodes = network.nodes
    assert_allclose(network.shares[:-1], nodes["left"][:-1] / 100)
    assert np.isnan(network.shares[-1])
    assert network.dead.tolist() == [True] * 2 + [False] * 10


def test_batteries_end_with_their_node_and_the_median_goes_on() -> None:
    batteries = make_network().batteries
    assert batteries is not None
    assert batteries.nodes.tolist() == list(range(11))
    for column, death in enumerate(batteries.deaths):
        known = batteries.times[np.isfinite(batteries.shares[:, column])]
        assert known[0] == 0
        assert known[-1] == (
            50 if np.isnan(death) else batteries.times[batteries.times <= death][-1]
        )
    assert np.isfinite(batteries.median).all()
    assert (np.diff(batteries.median) <= 0).all()


def test_nodes_that_are_looked_at_at_different_times_keep_what_they_had() -> None:
    accounts = make_accounts(2, mains=0, dead=0)
    accounts["sensors/levels"] = {
        "time": [0, 0, 1, 2],
        "node": [0, 1, 0, 1],
        "left": [100, 100, 50, 20],
        "alive": [True] * 4,
    }
    (network,), _ = read_networks(accounts)
    batteries = network.batteries
    assert batteries is not None
    assert_allclose(batteries.shares, [[1.0, 1.0], [0.5, 1.0], [0.5, 0.2]])
    assert_allclose(batteries.median, [1.0, 0.75, 0.35])


def test_packets_are_counted_by_purpose_and_direction() -> None:
    counts = make_network().count_packets()
    assert set(counts) == {
        *("report up", "report down", "answer up", "answer down"),
        *("query up", "query down", "heartbeat up", "heartbeat down"),
    }
    assert sum(sum(fates.values()) for fates in counts.values()) == 400
    totals = [sum(fates.values()) for fates in counts.values()]
    assert totals == sorted(totals, reverse=True)


def test_energy_is_told_by_the_causes_that_occurred() -> None:
    network = make_network()
    assert list(network.energies) == ["measure", "send", "receive", "listen", "sleep"]
    assert_allclose(network.used, np.sum(list(network.energies.values()), axis=0))


@pytest.mark.parametrize(
    ("table", "column", "values", "complaint"),
    [
        ("nodes", "east", None, "nodes of sensors is not drawn: it has no column 'east'"),
        ("nodes", "east", [np.nan] * 12, "'east' has a value that is not finite"),
        ("nodes", "left", ["full"] * 12, "'left' does not hold numbers"),
        ("nodes", "name", [["a"]] * 12, "'name' has 2 dimensions in place of 1"),
        ("nodes", "rate", [7] * 3, "columns differ in length"),
        ("levels", "node", [12] * 1212, "'node' goes beyond the 12 nodes"),
        ("levels", "node", [-1] * 1212, "'node' goes beyond the 12 nodes"),
        ("gateways", "north", None, "gateways of sensors is not drawn: it has no column 'north'"),
        ("packets", "fate", None, "packets of sensors is not drawn"),
    ],
)
def test_a_wrong_table_is_noted_and_left_out(
    table: str, column: str, values: Any, complaint: str
) -> None:
    accounts = make_accounts()
    if values is None:
        del accounts[f"sensors/{table}"][column]
    else:
        accounts[f"sensors/{table}"][column] = values
    networks, (note,) = read_networks(accounts)
    assert complaint in note
    assert len(networks) == (table != "nodes")


def test_an_empty_table_of_nodes_is_noted() -> None:
    empty = {name: column[:0] for name, column in make_accounts()["sensors/nodes"].items()}
    assert read_networks({"s/nodes": empty}) == (
        (),
        ("The table nodes of s is not drawn: it has no row.",),
    )


def test_a_gateway_that_is_not_there_has_no_link() -> None:
    accounts = make_accounts()
    accounts["sensors/nodes"]["gateway"] = [-1, 7, *[1] * 10]
    (network,), _ = read_networks(accounts)
    assert network.links == [(node, 1) for node in range(2, 12)]


def test_names_cannot_steer_what_shows_them() -> None:
    assert make_network(3, name="a\u202e").names[0] == "a\ufffd0"
