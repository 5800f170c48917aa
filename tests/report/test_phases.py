from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparq_sim import Channel
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.report.html.replay import pack
from sparq_sim.report.network import read_networks
from sparq_sim.report.phases import find_phases
from sparq_sim.report.replay import Replay, play_again
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.trace import Trace
from sparq_sim.study.executors import InProcess
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker, Slope
from tests.report.conftest import Browser
from tests.report.networks import Gauges, make_accounts
from tests.report.test_replay import unpacked
from tests.report.test_replay_browser import alone, opened


def study(folder: Path, batch: int = 3, **fields: Any) -> Study:
    """Play a network, with an optimizer that asks it and one that does not."""
    chosen: dict[str, Any] = {"rounds": 12, **fields}
    asked = Scenario(
        environment=Slope(),
        feedback=Channel(noise=0.1),
        experts={"gauges": (Gauges(), Channel())},
        optimizers={"asker": Asker(batch=batch), "calm": Uniform()},
        **chosen,
    )
    made = Study(asked, folder)
    made.run(InProcess())
    return made


@pytest.fixture(scope="module")
def replays(tmp_path_factory: pytest.TempPathFactory) -> list[Replay]:
    made = study(tmp_path_factory.mktemp("gauges"))
    return play_again(made.results, allow_import=True)


def test_every_phase_of_a_query_is_within_its_bar(replays: list[Replay]) -> None:
    data = pack(replays[0])
    lives, replies = data["lanes"]["phases"], data["replies"]
    assert lives["names"] == ["asleep", "backoff", "measure", "downlink", "uplink", "lost"]
    journeys = unpacked(lives["journey"]).astype(int)
    latencies = unpacked(replies["arrived_at"]) - unpacked(replies["asked_at"])
    starts, lengths = unpacked(lives["start"]), unpacked(lives["length"])
    assert (starts >= 0).all()
    answered = (unpacked(replies["fate"]) == 0)[journeys]
    assert (starts + lengths <= latencies[journeys] + 1e-5)[answered].all()
    assert (unpacked(lives["place"]) < unpacked(replies["size"])[journeys]).all()
    # The last of them is the uplink with which the answer arrives.
    for journey in np.unique(journeys):
        own = journeys == journey
        if unpacked(replies["fate"])[journey] == 0:
            assert_allclose((starts + lengths)[own].max(), latencies[journey], atol=1e-5)


def test_short_phases_keep_their_durations_late_in_a_long_play(replays: list[Replay]) -> None:
    lives = pack(replays[0])["lanes"]["phases"]
    uplinks = unpacked(lives["phase"]) == lives["names"].index("uplink")
    assert_allclose(unpacked(lives["length"])[uplinks], 1e-4, rtol=1e-6)


def test_who_asks_nobody_has_no_phases(replays: list[Replay]) -> None:
    lives = pack(replays[1])["lanes"]["phases"]
    assert (lives["names"], lives["nodes"], lives["journey"]["shape"]) == ([], [], [0])


REPLIES: dict[str, Any] = {
    "round": np.ones(4),
    "source": np.array(["sensors"] * 4),
    "query": np.array([1, 1, 1, 2]),
    "row": np.array([0, 0, 1, 0]),
    "x": np.array([0.1, 0.1, 0.9, 0.1]),
    "asked_at": np.array([0.0, 5.0, 0.0, 6.0]),
    "arrived_at": np.array([3.0, 8.0, 4.0, 9.0]),
}
PHASES: dict[str, Any] = {
    "query": [1, 1, 1, 1, 9],
    "row": [0, 0, 0, 1, 0],
    "node": [0, 0, 0, 1, 0],
    "phase": ["lost", "uplink", "dance", "measure", "uplink"],
    "started_at": [1.0, 6.0, 5.0, 3.0, 1.0],
    "ended_at": [2.0, 7.0, 5.5, 4.0, 2.0],
}


def found(phases: dict[str, Any], shown: list[bool], **nodes: Any) -> list[tuple[Any, ...]]:
    """Return journey, phase and start of what is found."""
    accounts = {**make_accounts(2, dead=0), "sensors/phases": phases}
    accounts["sensors/nodes"] |= nodes
    networks, notes = read_networks(accounts)
    assert not notes
    trace = Trace({}, REPLIES, coordinates=("x",), ended="rounds", spent=0.0)
    columns, names, _ = find_phases(networks, trace, np.arange(4), np.array(shown))
    words = [names[k] for k in columns["phase"]]
    return list(zip(columns["journey"].tolist(), words, columns["start"].tolist(), strict=True))


def test_a_phase_belongs_to_the_attempt_that_was_under_way() -> None:
    wanted = [(0, "lost", 1.0), (1, "dance", 0.0), (1, "uplink", 1.0), (2, "measure", 3.0)]
    assert found(PHASES, [True] * 4) == wanted


def test_without_rows_a_phase_belongs_to_the_point_nearest_to_its_node() -> None:
    without = {name: column for name, column in PHASES.items() if name != "row"}
    assert found(without, [True] * 4, at_x=[0.0, 1.0]) == found(PHASES, [True] * 4)


def test_phases_of_what_is_not_shown_are_left_out() -> None:
    assert found(PHASES, [False, False, True, True]) == [(0, "measure", 3.0)]
    assert found(PHASES, [False, False, False, True]) == []


# In a browser


TIP = """
const [words, name = 'timeline', step = 3] = arguments;
const canvas = document.querySelector(`.replay-${name}`);
const box = canvas.getBoundingClientRect(), tip = canvas.parentElement.querySelector('.replay-tip');
for (let x = 0; x < box.width; x += step) for (let y = 0; y < box.height; y += 3) {
  canvas.dispatchEvent(new PointerEvent('pointermove',
    { clientX: box.left + x, clientY: box.top + y }));
  if (!tip.hidden && tip.textContent.includes(words)) return tip.textContent;
}
return '';
"""
PIXELS = """
const canvas = document.querySelector('.replay-timeline');
const { width, height } = canvas;
const sheet = Object.assign(document.createElement('canvas'), { width, height });
const probe = sheet.getContext('2d', { willReadFrequently: true });
const style = getComputedStyle(document.querySelector('#replay'));
probe.fillStyle = style.getPropertyValue(arguments[0]);
probe.fillRect(0, 0, 1, 1);
const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
probe.clearRect(0, 0, 1, 1);
probe.drawImage(canvas, 0, 0);
const { data } = probe.getImageData(0, 0, width, height);
let count = 0;
for (let i = 0; i < data.length; i += 4) {
  if (data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255) count += 1;
}
return count;
"""
LEGEND = """
return [...document.querySelectorAll('.replay-legend')[1].querySelectorAll('li')]
  .filter((item) => item.offsetParent).map((item) => item.innerText.trim());
"""


@pytest.mark.parametrize(("batch", "width"), [(1, 1280), (3, 1280), (9, 390)])
def test_the_timeline_shows_phases_however_short_and_tells_them(
    browser: Browser, tmp_path: Path, batch: int, width: int
) -> None:
    page = tmp_path / "page.html"
    page.write_text(alone(study(tmp_path / "study", batch).results), encoding="utf-8")
    player = opened(browser, page, width=width)
    player.slide(10)
    player.settle()
    for colour in ("--mark-uplink", "--mark-downlink", "--mark-measure", "--mark-failed"):
        assert browser.driver.execute_script(PIXELS, colour) > 5, colour
    told = browser.driver.execute_script(TIP, f"gauges: {batch} point")
    assert "uplink 1.0e-4" in told
    assert ("waits until the node listens" if batch == 1 else ": asleep") in told
    legend = browser.run(LEGEND)
    assert {"waits until the node listens", "uplink", "packet lost", "backs off"} <= set(legend)
    assert not {"service", "waits for the gateway or a busy node", "another phase"} & set(legend)
    label = browser.run("return document.querySelector('.replay-timeline').ariaLabel")
    assert "asleep" in label
    player.click(".replay-tabs button", 1)
    assert "uplink" not in browser.run(LEGEND)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []
