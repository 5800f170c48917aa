from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sparq_sim.cli.main import main
from sparq_sim.errors import SparqError
from sparq_sim.report import write
from sparq_sim.report.gather import gather
from sparq_sim.report.network import read_networks
from sparq_sim.report.print import draw, draw_network, kinds, save
from sparq_sim.study.results import Results
from tests.report.networks import make_accounts, make_network
from tests.report.test_phases import study as gauges


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two optimizers with a network that was recorded."""
    return gauges(tmp_path_factory.mktemp("study"), rounds=6, record="full").results


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


@pytest.mark.parametrize("width", [3.4, 7.0])
def test_a_figure_has_map_batteries_and_energy(width: float) -> None:
    network = make_network()
    figure = draw_network(network, width=width)
    area, batteries, energy = [a for a in figure.axes if a.get_label() != "<colorbar>"]
    assert figure.get_figwidth() == width
    assert (area.get_xlabel(), area.get_ylabel()) == ("east (m)", "north (m)")
    assert area.get_aspect() == 1
    assert len(area.get_lines()) == 12
    assert len(batteries.get_lines()) == 11 + 1
    bars = [bar for bar in energy.patches if isinstance(bar, Rectangle)]
    heights = np.reshape([bar.get_height() for bar in bars], (5, 12))
    assert heights.sum(axis=0) == pytest.approx(np.sort(network.used)[::-1])
    assert {"gateway", "node", "on mains", "dead node", "median", "sleep"} <= set(labels(figure))


def test_what_is_unknown_has_no_panel() -> None:
    nodes = make_accounts()["sensors/nodes"]
    few = {name: nodes[name] for name in ("name", "east", "north", "capacity", "left", "died_at")}
    (network,), _ = read_networks({"s/nodes": few})
    panels = [axes for axes in draw_network(network).axes if axes.get_xlabel() == "east (m)"]
    assert len(panels) == 1


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_smallest_networks_can_be_drawn(nodes: int, tmp_path: Path) -> None:
    draw_network(make_network(nodes, mains=0, dead=nodes)).savefig(tmp_path / "small.png")


def test_the_same_figure_has_the_same_bytes(study: Results, tmp_path: Path) -> None:
    one, other = (save(study, "network", tmp_path / f"{name}.pdf") for name in "ab")
    assert one.read_bytes() == other.read_bytes()


def test_the_network_of_the_optimizer_that_is_named_is_drawn(study: Results) -> None:
    assert "network" in kinds(study)
    for optimizer in (None, "asker", "calm"):
        assert labels(draw(study, "network", optimizer=optimizer))


def test_the_command_draws_a_network(study: Results, tmp_path: Path) -> None:
    file = tmp_path / "network.svg"
    arguments = ["plot", str(study.folder), "network", "-o", str(file), "--optimizer", "calm"]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    assert file.stat().st_size > 1000


@pytest.mark.parametrize(
    ("kind", "fields", "complaint"),
    [
        ("network", {"optimizer": "claim"}, "did you mean 'calm'"),
        ("network", {"lines": {"bound": 1.0}}, "no place for the line 'bound'"),
        ("network", {"width": 0.5}, "from 1 to 30 inches wide"),
        ("average-regret", {"optimizer": "calm"}, "shows all optimizers; leave out 'calm'"),
    ],
)
def test_what_is_wrong_is_said(
    study: Results, kind: str, fields: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(SparqError, match=complaint):
        draw(study, kind, **fields)


def test_a_network_that_was_not_recorded_or_gathered_is_not_drawn(
    study: Results, tmp_path: Path
) -> None:
    bare = gauges(tmp_path, rounds=3, record="rounds").results
    assert "network" not in kinds(bare)
    with pytest.raises(SparqError, match="record = 'full'"):
        draw(bare, "network")
    with pytest.raises(SparqError, match="is drawn of a study"):
        draw(gather(study, replays=False).charts, "network")


@pytest.mark.parametrize("replays", [False, True])
def test_a_page_shows_the_network_with_and_without_replays(
    study: Results, tmp_path: Path, replays: bool
) -> None:
    page = write(study, tmp_path / "page.html", replays=replays, allow_import=True).read_text()
    assert 'id="network-map"' in page
    assert ("the one in the replay" in page) == replays
    assert "seed 0, replication 0" in page
