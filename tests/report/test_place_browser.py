"""Place over time on a page, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparq_sim import Scenario, Study
from sparq_sim.optimizers.fixed import Fixed
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.report.gather import gather
from sparq_sim.report.html.page import render
from sparq_sim.study.executors import InProcess
from sparq_sim.testing import Slope
from tests.plants import steer
from tests.report.conftest import Browser
from tests.report.test_browser import open_all
from tests.report.test_replay import Cube
from tests.report.test_replay_browser import EVIL, quiet

__all__ = ["quiet"]

SCENES = ("line", "square", "sites", "cube", "plant")
COLOURS = """
const canvas = document.querySelectorAll('.places canvas')[arguments[0]];
const { width, height } = canvas;
// Of a copy, for a canvas that is read often complains.
const copy = Object.assign(document.createElement('canvas'), { width, height });
const pen = copy.getContext('2d', { willReadFrequently: true });
pen.drawImage(canvas, 0, 0);
const { data } = pen.getImageData(0, 0, width, height);
const seen = new Set();
for (let i = 0; i < data.length; i += 4) {
  if (data[i + 3] === 255) seen.add(data.slice(i, i + 3).join());
}
return [...seen];
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports with the picture of places, for each kind of place; two settings on the line."""
    home = tmp_path_factory.mktemp("pages")
    return {name: write_page(home, name) for name in SCENES}


def write_page(home: Path, name: str) -> Path:
    if name == "plant":
        results = steer(home / name, replications=1)
    else:
        point = (0.5,) * {"line": 1, "cube": 3}.get(name, 2)
        points = {"optimizers.fixed.point": [[0.5], [0.9]]}
        sweep: dict[str, Any] = points if name == "line" else {}
        scenario = Scenario(
            environment=Cube() if name == "cube" else Slope(place=name),
            rounds=30,
            replications=1,
            optimizers={"fixed": Fixed(point=point), EVIL: Uniform()},
            sweep=sweep,
        )
        study = Study(scenario, home / name)
        study.run(InProcess())
        results = study.results
    data = gather(results, replays=False, levels=False, allow_import=True, places=True)
    page = home / f"{name}.html"
    page.write_text(render(data), encoding="utf-8")
    return page


def colours(browser: Browser, row: int = 0) -> set[str]:
    """Give the colours of a row, once it is drawn."""
    browser.driver.execute_async_script(
        "const done = arguments[0];requestAnimationFrame(() => requestAnimationFrame(() => done()))"
    )
    return set(browser.driver.execute_script(COLOURS, row))


def tip(browser: Browser, row: int = 0) -> str:
    return str(
        browser.run(
            f"const tip = document.querySelectorAll('.places-tip')[{row}];"
            "return tip.hidden ? '' : tip.textContent"
        )
    )


@pytest.mark.parametrize("scene", SCENES)
def test_each_kind_of_place_is_drawn_without_complaint(
    quiet: Browser, pages: dict[str, Path], scene: str
) -> None:
    open_all(quiet, pages[scene])
    assert len(colours(quiet)) > 30
    told = quiet.run("return document.querySelector('.places figcaption').textContent")
    assert told.endswith(".")
    assert quiet.run("return document.querySelectorAll('.places img').length") == 0


@pytest.mark.parametrize("width", [320, 390, 1440])
def test_it_fits_a_page_of_any_width(quiet: Browser, pages: dict[str, Path], width: int) -> None:
    for scene in ("line", "sites"):
        open_all(quiet, pages[scene], width)
        assert len(colours(quiet)) > 30
        assert quiet.run("return document.scrollingElement.scrollWidth <= innerWidth")
        quiet.fetched()
    quiet.open(pages["line"])


def test_it_is_drawn_in_the_colours_of_the_theme(quiet: Browser, pages: dict[str, Path]) -> None:
    quiet.open(pages["line"])
    light = colours(quiet)
    quiet.run("document.getElementById('theme').click()")
    assert len(light & colours(quiet)) < len(light) / 4


def test_a_round_is_told_where_it_is_pointed_at_and_by_the_arrow_keys(
    quiet: Browser, pages: dict[str, Path]
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    quiet.open(pages["sites"])
    colours(quiet)
    quiet.run("document.querySelector('.places canvas').focus()")
    keys = ActionChains(quiet.driver)
    keys.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT).perform()
    assert tip(quiet).startswith("round 3, time 3\nsite site-4, best site-")
    assert "\nregret " in tip(quiet)
    keys.send_keys(Keys.END).perform()
    assert tip(quiet).startswith("round 30, ")
    shown = "return [...document.querySelectorAll('.places-hair')].map((hair) => hair.hidden)"
    assert quiet.run(shown) == [False, False]  # The same moment in the other row.
    quiet.run("document.activeElement.blur()")
    assert tip(quiet) == ""
    quiet.run(
        """const canvas = document.querySelectorAll('.places canvas')[0];
        const { left, top } = canvas.getBoundingClientRect();
        const at = { clientX: left + canvas.clientWidth / 2, bubbles: true };
        for (let y = 0; y < canvas.clientHeight; y += 10) {
          canvas.dispatchEvent(new PointerEvent('pointermove', { ...at, clientY: top + y }));
          if (!document.querySelector('.places-tip').hidden) break;
        }"""
    )
    assert tip(quiet).startswith("round 1")


def test_another_setting_is_shown_as_chosen(quiet: Browser, pages: dict[str, Path]) -> None:
    quiet.open(pages["line"])
    drawn = "return [...document.querySelectorAll('.places canvas')].map((c) => c.toDataURL())"
    pictures = set()
    for number in (0, 1):
        quiet.run(
            f"""const select = document.querySelector('.places-setting select');
            select.value = '{number}';
            select.dispatchEvent(new Event('change', {{ bubbles: true }}));"""
        )
        colours(quiet)
        pictures.add(tuple(quiet.run(drawn)))
    assert len(pictures) == 2


def test_a_window_around_the_best_opens_to_the_whole_domain(quiet: Browser, tmp_path: Path) -> None:
    scenario = Scenario.load("synthetic", overrides=["rounds=30", "replications=1"])
    study = Study(scenario, tmp_path / "study")
    study.run(InProcess())
    data = gather(study.results, replays=False, levels=False, places=True)
    assert data.places[0].axis.window is not None
    page = tmp_path / "page.html"
    page.write_text(render(data), encoding="utf-8")
    quiet.open(page)
    outside = "return document.querySelector('[data-needs=outside]').hidden"
    colours(quiet)
    assert not quiet.run(outside)
    quiet.run("document.querySelector('.places-whole input').click()")
    colours(quiet)
    assert quiet.run(outside)


def test_it_is_on_paper(quiet: Browser, pages: dict[str, Path]) -> None:
    quiet.open(pages["line"], dark=True)
    dark = colours(quiet)
    quiet.run("dispatchEvent(new Event('beforeprint'))")
    assert len(dark & set(quiet.driver.execute_script(COLOURS, 0))) < len(dark) / 4
    quiet.run("dispatchEvent(new Event('afterprint'))")
