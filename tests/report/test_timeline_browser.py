"""The timeline in a real browser: touched, read, gone through by keys, and folded away."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparq_sim import Channel, report
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker, Slope, Teller
from tests.report.conftest import Browser
from tests.report.test_phases import LEGEND, TIP
from tests.report.test_replay_browser import Player, alone, opened
from tests.report.test_timeline import OUTAGES, Chronicler

TOUCH = """
const [name, x, y] = arguments, canvas = document.querySelector(`.replay-${name}`);
const box = canvas.getBoundingClientRect();
canvas.dispatchEvent(new PointerEvent('pointermove',
  { clientX: box.left + x, clientY: box.top + y }));
const tip = canvas.parentElement.querySelector('.replay-tip');
return tip.hidden ? '' : tip.textContent;
"""
HEARD = "return document.querySelector('.replay-heard').textContent"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of one who asks a late source, an old one and a crowded one, and of another."""
    crowd = Channel(transit={"kind": "exponential", "mean": 12.0}, loss=0.2, split=True)
    asked = Scenario(
        environment=Slope(),
        rounds=40,
        experts={
            "late": (Teller(), Channel(service=0.6, transit=1.5, outages=OUTAGES)),
            "old": (Chronicler(), Channel(transit=0.5)),
            "crowd": (Teller(), crowd),
        },
        optimizers={"asker": Asker(batch=30), "calm": Uniform()},
    )
    home = tmp_path_factory.mktemp("timeline")
    study = Study(asked, home / "study")
    study.run(InProcess())
    made = home / "page.html"
    made.write_text(alone(study.results), encoding="utf-8")
    return made


@pytest.fixture
def player(browser: Browser, page: Path) -> Player:
    player = opened(browser, page)
    player.slide(20)
    player.settle()
    return player


def test_a_query_tells_how_old_its_value_was_and_an_outage_its_times(player: Player) -> None:
    find = player.browser.driver.execute_script
    assert "measured at 16.5, 3 old" in find(TIP, "asked at 19, answered at 19.5", "timeline", 16)
    assert "measured at 19.6, 1.5 old" in find(TIP, "asked at 19, answered at 21.1", "timeline", 16)
    player.slide(8)
    player.settle()
    assert find(TIP, "outage from 9.5", "timeline", 16) == "late: outage from 9.5 to 12"
    legend = " ".join(player.browser.run(LEGEND))
    for words in ("measured before it was asked for", "outage: nobody", "too many for bars"):
        assert words in legend
    assert player.browser.complaints() == []


def test_where_there_are_too_many_for_bars_their_number_is_told(player: Player) -> None:
    told = player.browser.driver.execute_script(TIP, "points on their way", "timeline", 16)
    assert told.startswith("crowd, ")
    assert "transit 100 %" in told


def test_what_is_touched_in_the_timeline_is_marked_in_the_scene_and_the_other_way_round(
    player: Player,
) -> None:
    for one, other in (("timeline", "scene"), ("scene", "timeline")):
        player.browser.driver.execute_script(TOUCH, one, -50, -50)
        before = player.picture(other)
        assert player.browser.driver.execute_script(TIP, "late: 2", one)
        assert player.picture(other) != before
        player.browser.driver.execute_script(TOUCH, one, -50, -50)
        assert player.picture(other) == before


def test_keys_go_from_query_to_query_which_is_told_and_to_its_moment(player: Player) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = player.browser
    browser.run("document.querySelector('.replay-timeline').focus()")
    before = player.picture("scene")
    player.press(Keys.ARROW_RIGHT)
    first = browser.run(HEARD)
    assert "asked at 21" in first
    assert player.frame == 20
    assert player.picture("scene") != before
    tip = "return document.querySelector('.replay-timeline').parentElement.children[1]"
    assert browser.run(f"{tip}.textContent") == first
    player.press(Keys.ARROW_LEFT)
    assert browser.run(HEARD) != first
    player.press(Keys.HOME)
    assert "asked at 1," in browser.run(HEARD)
    player.press(Keys.END)
    assert "asked at 40" in browser.run(HEARD)
    player.press(Keys.ENTER)
    assert player.told == "40 of 40"
    player.press(Keys.ESCAPE)
    assert browser.run(f"{tip}.hidden")
    assert browser.run(HEARD) == ""
    assert browser.run("return document.activeElement.tagName") == "BODY"
    assert browser.complaints() == []


def test_where_nothing_takes_time_a_line_says_so_and_unfolds_the_timeline(player: Player) -> None:
    browser = player.browser
    seen = "return document.querySelector('.replay-timeline').checkVisibility()"
    summary = "return document.querySelector('.replay-queries summary').innerText"
    assert browser.run(seen)
    player.click(".replay-tabs button", 1)
    player.settle()
    assert not browser.run(seen)
    assert browser.run(summary) == "Every answer arrives in the round in which it is asked."
    player.click(".replay-queries summary")
    player.settle()
    assert browser.driver.execute_script(TIP, "reward: 1 point", "timeline", 16)
    player.click(".replay-tabs button", 0)
    player.settle()
    assert browser.run(seen)


def test_the_timeline_is_in_the_report_on_paper(
    browser: Browser, study: Results, tmp_path: Path
) -> None:
    opened(browser, report.write(study, tmp_path / "report.html"))
    browser.command("Emulation.setEmulatedMedia", media="print")
    seen = browser.run("return document.querySelector('.replay-timeline').offsetHeight")
    browser.command("Emulation.setEmulatedMedia", media="")
    assert seen > 60
