from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sparq_experts.wireless.node_table import NodeAt
from sparq_experts.wireless.placing import (
    AnyPlacing,
    NodeFile,
    NodeTable,
    Places,
    Scattered,
    check_placing,
    place,
)
from sparq_sim import Scenario
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.errors import PluginError, ScenarioError
from sparq_sim.plugin.contract import Answering, Briefing, Expert, Model

SQUARE = Box([0.0, 0.0], [1.0, 2.0])
LINE = Box(0.0, 10.0)
TOWN = Sites([[0.0, 0.0], [3.0, 4.0], [6.0, 0.0]], ["harbour", "hill", "mill"])


class Network(Model):
    """A model with nodes, as an expert has them."""

    nodes: AnyPlacing | None = None
    """Where the nodes are."""


class Watched(Expert):
    """An expert with nodes, in a scenario."""

    nodes: AnyPlacing | None = None
    """Where the nodes are."""

    def start(self, briefing: Briefing) -> Answering:
        place(self.nodes, briefing.domain)
        raise PluginError("the nodes are placed")


def load(folder: Path, nodes: str) -> Scenario:
    file = folder / "scenario.toml"
    lines = (
        "rounds = 3",
        'environment.kind = "synthetic"',
        'optimizers.uniform.kind = "uniform"',
        f'experts.net = {{ kind = "{__name__}:Watched", nodes = {nodes} }}',
    )
    file.write_text("\n".join(lines), encoding="utf-8")
    return Scenario.load(file, allow_import=True)


def listed(*rows: dict[str, object], domain: Domain = SQUARE, scale: float = 1.0) -> Places:
    return place(Network.model_validate({"nodes": rows}).nodes, domain, scale=scale)


def from_file(folder: Path, text: str, domain: Domain = SQUARE) -> Places:
    file = folder / "nodes.csv"
    file.write_text(text, encoding="utf-8")
    return place(NodeFile(file=file), domain)


# The forms of `nodes`


def test_without_nodes_there_is_one_at_each_site_with_its_name() -> None:
    places = place(None, TOWN)
    assert places.names == TOWN.site_names
    assert places.points.tolist() == TOWN.points.tolist()
    assert places.batteries == (None, None, None)


def test_a_box_needs_nodes_and_the_error_shows_the_forms() -> None:
    with pytest.raises(PluginError, match=r"nodes: missing; .*scattered = 30.*file = .*at = "):
        place(None, SQUARE)


def test_scattered_nodes_depend_on_the_seed_alone_and_more_nodes_keep_the_first() -> None:
    few, many = (place(Scattered(scattered=count, seed=1), SQUARE) for count in (3, 30))
    assert few.points.tolist() == many.points[:3].tolist()
    other = place(Scattered(scattered=3, seed=2), SQUARE)
    assert few.points.tolist() != other.points.tolist()
    assert few.names == ("node-0", "node-1", "node-2")


def test_scattered_nodes_spread_evenly_are_a_cover() -> None:
    places = place(Scattered(scattered=4, spread="even"), LINE)
    assert places.points[:, 0].tolist() == [1.25, 3.75, 6.25, 8.75]


def test_nodes_are_not_scattered_over_sites() -> None:
    with pytest.raises(PluginError, match=r"nodes.scattered: 5: .* 3 sites; leave `nodes` out"):
        place(Scattered(scattered=5), TOWN)


def test_a_list_of_nodes_has_names_and_batteries_of_its_own() -> None:
    places = listed(
        {"name": "n1", "at": [0.2, 0.4], "battery": 500.0, "spreading_factor": 9},
        {"at": [1, 2], "distance": 250},
    )
    assert places.names == ("n1", "node-1")
    assert places.batteries == (500.0, None)
    assert places.spreading_factors == (9, None)
    assert places.given_distances == (None, 250.0)


def test_on_a_line_a_number_is_a_place() -> None:
    places = listed({"at": 3.0}, {"at": 7.0}, domain=LINE, scale=100.0)
    assert places.east_north.tolist() == [[300.0, 0.0], [700.0, 0.0]]
    assert places.node_distances[0, 1] == 400.0


def test_the_name_of_a_site_can_stand_for_its_coordinates() -> None:
    places = listed({"name": "mill", "battery": 5.0}, {"at": [3.0, 4.0]}, domain=TOWN)
    assert places.points.tolist() == [[6.0, 0.0], [3.0, 4.0]]
    assert places.names == ("mill", "hill")


def test_a_placing_is_written_and_read_again() -> None:
    for form in ([{"at": [0.2, 0.4]}], {"scattered": 3}, {"file": "nodes.csv"}):
        network = Network.model_validate({"nodes": form})
        assert Network.model_validate(network.model_dump(mode="json")) == network
        assert hash(network) == hash(network.model_copy())


def test_models_are_taken_as_they_are() -> None:
    table = NodeTable(rows=(NodeAt(at=(0.1, 0.1)),))
    assert Network(nodes=table).nodes == table
    assert Network.model_validate({"nodes": table.rows}).nodes == table
    assert Network(nodes=Scattered(scattered=2)).nodes == Scattered(scattered=2)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([], r"there are no nodes; write"),
        ({}, r"should have `scattered` or `file`: write nodes = "),
        ({"scatterd": 3}, r"should have `scattered` or `file`"),
        (
            {"scattered": 3, "file": "a.csv"},
            r"one of `scattered` and `file`, not both; .*`without`",
        ),
        (30, r"should be a table or a list of nodes: write nodes = \{ scattered = 30"),
        ({"scattered": 0}, r"greater than or equal to 1"),
        ({"scattered": "3"}, r"whole number; write 3 without quotes"),
        ({"scattered": 3, "sed": 3}, r"no field 'sed'; did you mean 'seed'\?"),
        ([{"at": [0.0, 0.0], "batery": 1.0}], r"no field 'batery'; did you mean 'battery'\?"),
        ([3], r"should be a table, such as \{ at = "),
        ([{"at": [0.0, 0.0], "battery": 0.0}], r"greater than 0"),
        ([{"at": [0.0, 0.0], "battery": -1.0}], r"greater than 0"),
        ([{"at": [float("nan"), 0.0]}], r"finite"),
        ([{"at": [0.0, 0.0], "spreading_factor": 13}], r"less than or equal to 12"),
    ],
)
def test_a_wrong_form_is_refused_once_with_the_remedy(nodes: object, message: str) -> None:
    with pytest.raises(ValidationError, match=message) as caught:
        Network.model_validate({"nodes": nodes})
    assert caught.value.error_count() == 1


def test_the_schema_has_all_forms() -> None:
    text = str(Network.model_json_schema())
    assert all(f"#/$defs/{name}" in text for name in ("Scattered", "NodeFile", "NodeAt"))


# Scenarios


def test_a_file_is_found_from_the_folder_of_the_scenario_and_its_content_counts(
    tmp_path: Path,
) -> None:
    file = tmp_path / "nodes.csv"
    file.write_text("x0\n0.1\n", encoding="utf-8")
    scenario = load(tmp_path, '{ file = "nodes.csv" }')
    with pytest.raises(PluginError, match="the nodes are placed"):
        scenario.play("uniform")
    before = scenario.fingerprint("uniform")
    assert [*before["contents"]] == [str(file)]
    file.write_text("x0\n0.25\n", encoding="utf-8")
    assert scenario.fingerprint("uniform") != before


@pytest.mark.parametrize("nodes", ["[{ at = [0.2] }]", "{ scattered = 3 }", "{ file = 'a.csv' }"])
def test_the_fingerprint_of_a_play_can_be_read_again(tmp_path: Path, nodes: str) -> None:
    scenario = load(tmp_path, nodes)
    fingerprint = scenario.fingerprint("uniform")
    again = Scenario.from_fingerprint(fingerprint, seed=0, name="uniform", allow_import=True)
    assert again.experts == scenario.experts


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            "[{ at = [0.2], battery = 0.0 }]",
            r"toml:4: experts.net.nodes.0.battery: 0.0: should be greater",
        ),
        ("[{ at = ['a'] }]", r"experts.net.nodes.0.at.0: 'a': should be a number"),
        ("{ scattered = 3, seeds = 1 }", r"experts.net.nodes: .*no field 'seeds'; .*'seed'\?"),
    ],
)
def test_an_error_names_the_line_and_the_field(tmp_path: Path, nodes: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        load(tmp_path, nodes)


# Metres


def test_distances_are_euclidean_over_all_coordinates_times_the_scale() -> None:
    cube = Box([0.0] * 3, [1.0] * 3)
    places = place(
        NodeTable(rows=(NodeAt(at=(0, 0, 0)), NodeAt(at=(1, 1, 1)))),
        cube,
        scale=100.0,
        gateways=[(0.0, 0.0, 0.0)],
    )
    assert places.distances[:, 0] == pytest.approx([0.0, 100 * 3**0.5])
    assert places.east_north.tolist() == [[0.0, 0.0], [100.0, 100.0]]


@pytest.mark.parametrize("order", [("lat", "lon"), ("Longitude", "Latitude")])
def test_degrees_become_metres_on_the_earth_in_any_order(order: tuple[str, str]) -> None:
    rows = {"harbour": (40.74, -73.78), "estuary": (39.70, -76.02)}
    flip = slice(None) if order[0] == "lat" else slice(None, None, -1)
    domain = Sites([row[flip] for row in rows.values()], list(rows), order)
    places = place(None, domain)
    cosine = np.cos(np.radians((40.74 + 39.70) / 2))
    metres = np.hypot(111_200 * 1.04, 111_200 * cosine * 2.24)
    assert places.node_distances[0, 1] == pytest.approx(metres, rel=1e-9)
    assert places.east_north[0] == pytest.approx([111_200 * cosine * 2.24, 111_200 * 1.04])
    assert place(None, domain, scale=0.01).node_distances[0, 1] == pytest.approx(metres / 100)


def test_the_map_begins_at_the_lowest_corner_of_the_field() -> None:
    places = listed({"at": [-4.0, 7.0]}, domain=Box([-5.0, 5.0], [5.0, 9.0]), scale=10.0)
    assert places.east_north.tolist() == [[10.0, 20.0]]


@given(st.integers(1, 12), st.integers(1, 3), st.integers(0, 5), st.floats(0.1, 1e4))
def test_distances_agree_with_numpy(nodes: int, dimensions: int, seed: int, scale: float) -> None:
    domain = Box([-1.0] * dimensions, [2.0] * dimensions)
    places = place(Scattered(scattered=nodes, seed=seed), domain, scale=scale)
    metres = places.points * scale
    expected = np.linalg.norm(metres[:, None] - metres, axis=2)
    assert places.node_distances == pytest.approx(expected, abs=1e-9 * scale)
    middle = np.linalg.norm(metres - metres.mean(axis=0), axis=1)
    assert places.distances[:, 0] == pytest.approx(middle, abs=1e-9 * scale)
    assert places.find_nearest(places.points).tolist() == list(range(nodes))


# Gateways


def test_the_gateway_is_at_the_mean_of_the_nodes_by_default() -> None:
    places = place(None, TOWN, scale=10.0)
    assert places.gateway_points.tolist() == [[3.0, pytest.approx(4 / 3)]]
    assert places.gateway_names == ("gateway",)
    assert places.distances.shape == (3, 1)


def test_gateways_may_lie_outside_the_field() -> None:
    places = place(None, TOWN, scale=10.0, gateways=[(0.0, -3.0), (6.0, 8.0)])
    assert places.gateway_east_north.tolist() == [[0.0, -30.0], [60.0, 80.0]]
    assert places.gateway_names == ("gateway-0", "gateway-1")
    assert places.distances[0].tolist() == [30.0, 100.0]


@pytest.mark.parametrize(
    ("gateway", "message"),
    [((1.0,), r"gateways.0: \[1.0\] is no place; write 2 finite"), ((1.0, float("inf")), "inf")],
)
def test_a_gateway_is_a_finite_point(gateway: tuple[float, ...], message: str) -> None:
    with pytest.raises(PluginError, match=message):
        place(None, TOWN, gateways=[gateway])


def test_a_given_distance_stands_for_that_on_the_map() -> None:
    places = listed({"at": [0.0, 0.0]}, {"at": [1.0, 0.0], "distance": 750.0}, scale=100.0)
    assert places.distances[:, 0].tolist() == [50.0, 750.0]
    assert places.node_distances[0, 1] == 100.0


def test_a_given_distance_needs_one_gateway() -> None:
    table = NodeTable(rows=(NodeAt(at=(0.0, 0.0), distance=10.0),))
    with pytest.raises(PluginError, match=r"nodes.0: distance: 10 m .* there are 2; keep one"):
        place(table, SQUARE, gateways=[(0.0, 0.0), (1.0, 1.0)])


# Refused nodes


def test_a_node_outside_the_field_is_named_with_its_place_and_the_bounds() -> None:
    with pytest.raises(PluginError) as caught:
        listed({"at": [0.5, 0.5]}, {"name": "stray", "at": [0.5, 2.5]})
    text = str(caught.value)
    assert "nodes.1" in text
    assert "'stray' at [0.5, 2.5]" in text
    assert "from [0.0, 0.0] to [1.0, 2.0]" in text


def test_a_node_that_is_no_site_is_told_the_nearest() -> None:
    with pytest.raises(PluginError, match=r"none of the 3 sites; the nearest is 'hill' at \[3"):
        listed({"at": [3.0, 4.1]}, domain=TOWN)


def test_a_name_that_is_no_site_is_refused_with_the_one_meant() -> None:
    with pytest.raises(PluginError, match=r"nodes.0: name: 'harbor' is no site.*'harbour'\?"):
        listed({"name": "harbor"}, domain=TOWN)


def test_a_node_without_place_or_name_is_refused() -> None:
    with pytest.raises(PluginError, match=r"nodes.0: at and name are missing"):
        listed({"battery": 3.0}, domain=TOWN)
    with pytest.raises(PluginError, match=r"nodes.0: at is missing; write at = \[0.0, 0.0\]"):
        listed({"name": "n1"})


def test_a_point_of_other_dimension_is_refused() -> None:
    with pytest.raises(PluginError, match=r"at: \[0.5\] has 1 coordinates, .* has 2: x0, x1"):
        listed({"at": 0.5})
    with pytest.raises(PluginError, match=r"at: \[\] has 0 coordinates"):
        listed({"at": []})


def test_two_nodes_at_one_place_are_refused() -> None:
    with pytest.raises(PluginError, match=r"nodes.1: node 'b' is at \[0.5, 0.5\], as is 'a'"):
        listed({"name": "a", "at": [0.5, 0.5]}, {"name": "b", "at": [0.5, 0.5]})


def test_two_nodes_of_one_name_are_refused() -> None:
    with pytest.raises(PluginError, match=r"nodes.1: the name 'a' is also that .*\[0.5, 0.5\]"):
        listed({"name": "a", "at": [0.5, 0.5]}, {"name": "a", "at": [0.5, 0.6]})


def test_a_missing_file_is_found_before_the_domain_is_known(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"nowhere.csv cannot be read: .*check `nodes.file`"):
        check_placing(NodeFile(file=tmp_path / "nowhere.csv"))
    check_placing(None)


def test_a_file_of_nodes_is_placed(tmp_path: Path) -> None:
    places = from_file(tmp_path, "x0,x1,name,battery\n0.1,0.2,a,50\n0.3,1.9,,\n")
    assert places.names == ("a", "node-1")
    assert places.batteries == (50.0, None)
    assert places.points.tolist() == [[0.1, 0.2], [0.3, 1.9]]


def test_an_error_about_a_node_of_a_file_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"nodes.csv, line 3: node 'node-1' at \[7.0, 0.0\] lies"):
        from_file(tmp_path, "x0,x1\n0,0\n7,0\n")
    with pytest.raises(PluginError, match=r"nodes.csv, line 3: node .*nodes.csv, line 2\); move"):
        from_file(tmp_path, "x0,x1\n0,0\n0,-0\n")
