"""The page of a report, to people who read it otherwise: judged by axe in a browser."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from sparq_sim.report import write
from tests.report.conftest import Browser, played

RUN_AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then(({violations}) => done(violations.map(
  ({id, nodes}) => `${id}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`)));
"""


@pytest.fixture(scope="module")
def axe() -> str:
    """The script that judges a page."""
    pytest.importorskip("axe_core_python", reason="pages are judged by axe")
    return (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with all its parts, replays and places over time among them."""
    folder = tmp_path_factory.mktemp("whole")
    outage: dict[str, Any] = {"noise": 0.1, "cost": 0.1, "transit": 1.5, "outages": [[8, 14]]}
    study = played(
        folder / "study",
        replications=5,
        experts={"sage": {"kind": "truth", "channel": outage}},
        sweep={"experts.sage.channel.loss": [0.0, 0.4]},
    )
    return write(study, folder / "page.html")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (320, False)])
def test_axe_finds_nothing_wrong_in_a_whole_report(
    browser: Browser, page: Path, axe: str, width: int, dark: bool
) -> None:
    browser.open(page, width=width, height=20_000, dark=dark)
    browser.wait("[...document.querySelectorAll('.plot')].every(p => p.querySelector('.main-svg'))")
    browser.run(axe)
    assert browser.driver.execute_async_script(RUN_AXE) == []
    assert browser.complaints() == []
    assert browser.fetched() == [page.as_uri()]
    assert browser.run("return document.scrollingElement.scrollWidth <= innerWidth")
