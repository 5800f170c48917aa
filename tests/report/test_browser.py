from __future__ import annotations

import base64
import re
from itertools import cycle
from pathlib import Path

import pytest

from sparq_sim.report.data import ReportData
from sparq_sim.report.html.page import render
from tests.report.conftest import HOSTILE, Browser, only, poisoned

DRAWN = "document.querySelectorAll('.plot .main-svg').length > 0"
INK = "getComputedStyle(document.querySelector('.legendtext')).fill"
ALL_DRAWN = "[...document.querySelectorAll('.plot')].every(p => p.querySelector('.main-svg'))"


@pytest.fixture(scope="module")
def page(told: ReportData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(told))
    return path


def open_all(browser: Browser, page: Path, width: int = 1280) -> None:
    """Open a page in a window so tall that all of it is seen, and drawn."""
    browser.open(page, width=width, height=20_000)
    browser.wait(ALL_DRAWN)


def ink(browser: Browser) -> tuple[str, str]:
    """Give the colours of the paper and of a chart's text."""
    colours = browser.run(f"return [getComputedStyle(document.body).backgroundColor, {INK}]")
    return tuple(colours)


def test_a_page_opens_without_complaint_and_without_the_network(
    browser: Browser, page: Path
) -> None:
    open_all(browser, page)
    assert browser.complaints() == []
    assert browser.fetched() == [page.as_uri()]


def test_the_finding_and_the_ranked_chart_are_above_the_fold(browser: Browser, page: Path) -> None:
    browser.open(page, width=1280, height=900)
    ends = browser.run(
        "return ['.lead', '#ranked .ticks'].map("
        "place => document.querySelector(place).getBoundingClientRect().bottom)"
    )
    assert 0 < ends[0] < ends[1] <= 900


def test_charts_are_drawn_when_they_come_near(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert not browser.run("return document.querySelector('#map-0 .main-svg')")
    browser.run("document.querySelector('#map-0').scrollIntoView()")
    browser.wait("document.querySelector('#map-0 .main-svg')")


def test_no_chart_is_made_ready_before_one_comes_near(browser: Browser, page: Path) -> None:
    browser.open(page, height=100)
    assert browser.run("return typeof Plotly") == "undefined"
    browser.run("document.querySelector('#average-regret').scrollIntoView()")
    browser.wait(DRAWN)


def test_each_task_draws_one_chart(browser: Browser, page: Path) -> None:
    open_all(browser, page)
    browser.run(
        "window.tasks = []; let now = 0; const react = Plotly.react;"
        " Plotly.react = (...given) => {"
        "   if (!now++) queueMicrotask(() => { tasks.push(now); now = 0; });"
        "   return react(...given); };"
        " document.getElementById('theme').click()"
    )
    count = browser.run("return document.querySelectorAll('.plot').length")
    browser.wait(f"tasks.length >= {count}")
    assert browser.run("return tasks") == [1] * count


def test_the_system_or_a_click_makes_it_dark(browser: Browser, page: Path) -> None:
    seen = []
    for dark in (False, True):
        browser.open(page, dark=dark)
        browser.run("document.querySelector('#average-regret').scrollIntoView()")
        browser.wait(DRAWN)
        seen.append(ink(browser))
        before = seen[-1]
        browser.run("document.getElementById('theme').click()")
        browser.wait(f"{INK} !== '{before[1]}'")
        seen.append(ink(browser))
    light, clicked_dark, dark_system, clicked_light = seen
    assert light == clicked_light
    assert dark_system == clicked_dark
    assert light[0] != dark_system[0]
    assert light[1] != dark_system[1]
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_width_needs_scrolling_aside(browser: Browser, page: Path, width: int) -> None:
    open_all(browser, page, width)
    assert browser.run("return document.scrollingElement.scrollWidth <= innerWidth")
    assert browser.run("return innerWidth") == width


def test_another_setting_redraws_the_curves(browser: Browser, page: Path) -> None:
    open_all(browser, page)
    last = "document.querySelector('#average-regret .plot').data.at(-4).y.join()"
    before = browser.run(f"return {last}")
    browser.run(
        "const s = document.getElementById('setting'); s.value = 3;"
        " s.dispatchEvent(new Event('change'))"
    )
    browser.wait(f"{last} !== '{before}'")


def test_a_box_changes_the_scale(browser: Browser, page: Path) -> None:
    open_all(browser, page)
    kind = "document.querySelector('#average-regret .plot')._fullLayout.yaxis.type"
    before = browser.run(f"return {kind}")
    after = {"linear": "log", "log": "linear"}[before]
    browser.run("document.querySelector('#average-regret .log').click()")
    browser.wait(f"{kind} === '{after}'")
    assert browser.complaints() == []


def test_a_name_in_the_legend_brings_its_curve_before_the_others(
    browser: Browser, page: Path
) -> None:
    open_all(browser, page)
    find = "document.querySelector('#{} .legendtoggle[aria-label=\"careless\"]')"
    opacity = (
        "return [...document.querySelectorAll('#{} .curve:not(.traces):not(.spread)')]"
        ".map(e => getComputedStyle(e).opacity).sort()"
    )
    browser.run(find.format("average-regret") + ".focus()")
    assert browser.run(opacity.format("average-regret")) == ["0.2", "1"]
    assert browser.run(opacity.format("cumulative-regret")) == ["1", "1"]
    enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
    for kind in ("keyDown", "keyUp"):
        browser.command("Input.dispatchKeyEvent", type=kind, **enter)
    assert browser.run(opacity.format("cumulative-regret")) == ["0.2", "1"]
    pressed = find.format("cumulative-regret") + ".getAttribute('aria-pressed')"
    assert browser.run(f"return {pressed}") == "true"
    assert browser.complaints() == []


def test_on_paper_there_are_several_pages_with_all_charts(browser: Browser, page: Path) -> None:
    browser.open(page, dark=True)
    plain = base64.b64decode(browser.command("Page.printToPDF", printBackground=True)["data"])
    assert plain.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", plain)) >= 4
    assert browser.run(f"return {ALL_DRAWN}")
    assert browser.run("return document.documentElement.dataset.theme") == "dark"


def test_charts_on_paper_cover_no_text(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    browser.wait(ALL_DRAWN)
    browser.command("Emulation.setEmulatedMedia", media="print")
    spare = browser.run(
        "return [...document.querySelectorAll('.plot')].map(p => p.getBoundingClientRect().bottom"
        " - p.querySelector('.main-svg').getBoundingClientRect().bottom)"
    )
    browser.command("Emulation.setEmulatedMedia", media="")
    assert min(spare) > -1


def test_hostile_text_runs_no_script(browser: Browser, told: ReportData, tmp_path: Path) -> None:
    # Each text in the page gets another of them; over the pages, all of them come everywhere near.
    tags = ["a", "script", "img", "iframe", "svg", "style", "link", "meta", "base", "object", "b"]
    counted = f"return {tags}.map(tag => document.getElementsByTagName(tag).length)"
    path = tmp_path / "hostile.html"

    def opened(page: str) -> list[int]:
        path.write_bytes(page.encode("utf-8", "replace"))
        open_all(browser, path)
        found: list[int] = browser.run(counted)
        return found

    harmless = opened(render(poisoned(told, only("harmless"))))
    for first in (0, 100):
        words = cycle(HOSTILE[first:] + HOSTILE[:first])
        assert opened(render(poisoned(told, words))) == harmless
        assert browser.run("return window.__hacked") is None
        assert browser.complaints() == []
        assert browser.fetched() == [path.as_uri()]
