"""Watched pages in a real browser: numbers move, and nothing of the reader's is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparq_sim.live.watch.server import WatchServer
from sparq_sim.study.executors import InProcess
from sparq_sim.study.progress import Progress
from sparq_sim.study.study import Study
from tests.live.watch.pages import small, watching
from tests.report.conftest import Browser

DRAWN = "[...document.querySelectorAll('.plot')].every(p => p.querySelector('.main-svg'))"


@contextmanager
def visiting(browser: Browser, path: Path) -> Iterator[WatchServer]:
    """Serve a page, and leave it before its server ends."""
    with watching(path) as server:
        try:
            yield server
        finally:
            browser.driver.get("about:blank")


def text(browser: Browser, selector: str) -> str:
    found: str = browser.run(f"return document.querySelector('{selector}').textContent")
    return found


def test_numbers_and_curves_move_while_a_study_runs(browser: Browser, tmp_path: Path) -> None:
    go_on = threading.Semaphore(0)
    stop = threading.Event()

    def hold(progress: Progress) -> None:
        while not go_on.acquire(timeout=0.05):
            if stop.is_set():
                return

    study = Study(small(replications=3), tmp_path)
    player = threading.Thread(target=study.run, args=(InProcess(),), kwargs={"watch": hold})
    with visiting(browser, tmp_path) as server:
        player.start()
        try:
            browser.open(server.address, height=6000)
            seen = []
            for done in ("0", "1", "2", "3"):
                browser.wait(f"document.getElementById('done')?.textContent === '{done}'")
                browser.wait(DRAWN)
                first = "document.querySelector('#average-regret .plot')?.data.at(-1).y.join()"
                seen.append(browser.run(f"return {first}"))
                go_on.release()
            browser.wait("document.getElementById('state-word').textContent === 'Finished'")
        finally:
            stop.set()
            player.join()
        assert browser.run("return document.title").startswith("3/3 ")
        assert browser.run("return document.querySelector('progress').value") == 3
        assert "last news" in text(browser, "#state-age")
        assert seen[0] is None
        assert len(set(seen)) == 4
        assert browser.complaints() == []
        fetched = browser.fetched()
        assert all(
            address.startswith(f"http://127.0.0.1:{server.server_port}/") for address in fetched
        )
        assert len(fetched) > 4


def test_numbers_and_the_posterior_move_while_a_journal_grows(
    browser: Browser, curious_journal: Path, tmp_path: Path
) -> None:
    lines = curious_journal.read_bytes().splitlines(keepends=True)
    turns = [n for n, line in enumerate(lines) if b'"type":"turn"' in line]
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(lines[0])
    with visiting(browser, journal) as server, journal.open("ab", buffering=0) as file:
        browser.open(server.address, height=6000)
        browser.wait("document.getElementById('rounds').textContent === '0'")
        browser.wait("/no move yet/.test(document.getElementById('belief').textContent)")
        written, seen = 1, []
        for number in (3, 8):
            file.writelines(lines[written : turns[number - 1] + 1])
            written = turns[number - 1] + 1
            browser.wait(f"document.getElementById('rounds').textContent === '{number}'")
            # The move of a round is rehearsed in the background.
            browser.wait(f"document.querySelector('#posterior h3')?.textContent.endsWith({number})")
            browser.wait(DRAWN)
            mean = "document.querySelector('#posterior .plot').data[2].y.join()"
            seen.append((browser.run(f"return {mean}"), text(browser, "#spent")))
        assert len({mean for mean, _ in seen}) == 2
        assert len({spent for _, spent in seen}) == 2
        # How long ago things were goes on without news.
        ago = "document.querySelector('#answers [data-at]').textContent"
        browser.wait(f"/^\\d+ (s|min|h|days) ago$/.test({ago})")
        file.writelines(lines[written:])
        browser.wait("document.getElementById('state-word').textContent === 'Ended'")
        assert browser.complaints() == []


def test_scroll_focus_choices_and_theme_stay_when_the_page_changes(
    browser: Browser, tmp_path: Path
) -> None:
    fields = {"sweep": {"feedback.noise": [0.1, 0.3]}}
    Study(small(**fields), tmp_path).run(InProcess())
    with visiting(browser, tmp_path) as server:
        browser.open(server.address, height=700)
        browser.wait("document.getElementById('done').textContent === '2'")
        browser.run(
            "document.getElementById('theme').click();"
            "const chosen = document.getElementById('setting');"
            "chosen.value = 1; chosen.dispatchEvent(new Event('change')); chosen.focus();"
            "document.querySelector('details').open = true;"
            "window.marked = chosen; scrollTo(0, 500)"
        )
        browser.wait("scrollY === 500")
        Study(small(**fields, replications=2), tmp_path).run(InProcess())
        browser.wait("document.getElementById('done').textContent === '4'")
        kept = browser.run(
            "return [scrollY > 400, document.activeElement === window.marked, window.marked.value,"
            "document.querySelector('details').open, document.documentElement.dataset.theme]"
        )
        # What comes to stand above moves all by as much; the browser scrolls along.
        assert kept == [True, True, "1", True, "dark"]
        assert browser.complaints() == []


def test_a_page_says_when_its_server_is_gone(browser: Browser, tmp_path: Path) -> None:
    with watching(tmp_path) as server:
        browser.open(server.address)
        browser.wait("document.getElementById('state-word').textContent === 'Not begun'")
        assert browser.complaints() == []
    browser.wait("/has ended/.test(document.getElementById('state-word').textContent)")
    assert browser.run("return document.getElementById('state').dataset.mood") == "broken"
    browser.driver.get("about:blank")


def test_a_wrong_token_is_refused_in_plain_words(browser: Browser, tmp_path: Path) -> None:
    with visiting(browser, tmp_path) as server:
        browser.open(f"{server.address}x")
        assert "The token is missing or wrong" in text(browser, "main")
        assert not browser.run("return document.querySelector('progress')")


@pytest.mark.parametrize("width", [320])
def test_no_width_needs_scrolling_aside(
    browser: Browser, curious_journal: Path, width: int
) -> None:
    with visiting(browser, curious_journal) as server:
        browser.open(server.address, width=width, height=6000)
        browser.wait("document.getElementById('posterior')")
        browser.wait(DRAWN)
        assert browser.run("return document.scrollingElement.scrollWidth <= innerWidth")
