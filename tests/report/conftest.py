"""A real browser, for pages to be opened in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields as fields_of
from dataclasses import is_dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reproduce import browser as chromium
from sparq_sim.report.data import ChartData, ReportData
from sparq_sim.report.gather import gather
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from tests.conftest import PATIENCE
from tests.plants import Plant, steer


class Browser:
    """Chromium without a window; tells what went wrong, and what was fetched."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        driver.set_script_timeout(PATIENCE)

    def open(
        self, page: Path | str, *, width: int = 1280, height: int = 900, dark: bool = False
    ) -> None:
        """Open a file, or an address, in a window of that size, under a light or a dark system."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 640,
        )
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[theme])
        self.complaints(), self.fetched()  # What an earlier page has left.
        self.driver.get(page if isinstance(page, str) else page.absolute().as_uri())

    def command(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol."""
        answer: dict[str, Any] = self.driver.execute_cdp_cmd(name, arguments)
        return answer

    def run(self, script: str) -> Any:
        """Run a script in the page, and give what it returns."""
        return self.driver.execute_script(script)

    def wait(self, condition: str) -> None:
        """Wait until a condition holds in the page."""
        from selenium.webdriver.support.ui import WebDriverWait

        waiting = WebDriverWait(self.driver, PATIENCE, 0.05)
        waiting.until(lambda _: self.run(f"return {condition}"))

    def complaints(self) -> list[str]:
        """Give what the console has said since last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def fetched(self) -> list[str]:
        """Give the addresses asked for since last asked, but for those within the page."""
        messages = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        asked = [
            str(message["params"]["request"]["url"])
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]
        return [address for address in asked if not address.startswith(("data:", "blob:"))]


FLAGS = (
    "disable-quic",
    "disable-background-networking",
    "disable-component-update",
    "disable-sync",
)
LOGS = {"goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"}}


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium, or that which SPARQ_CHROMIUM names."""
    pytest.importorskip("selenium", reason="pages are opened in a browser driven by selenium")
    if absent := chromium.find_absent():
        pytest.skip(
            f"there is no browser: {' and '.join(map(str, absent))} not found; `make browser` "
            f"installs it, or set {' and '.join(chromium.VARIABLES)}"
        )
    home = tmp_path_factory.mktemp("chromium")
    with chromium.drive(home, *FLAGS, capabilities=LOGS) as driver:
        yield Browser(driver)


def scenario(**fields: Any) -> Scenario:
    """Give a scenario of which a report has all there is to tell."""
    kernel = {"kind": "squared-exponential", "length_scale": 3.0}
    curious = {"kernel": kernel, "acquisition": {"grid": 21}, "diagnose": True}
    sage = {"kind": "truth", "channel": {"noise": 0.1, "cost": 0.1, "transit": 1.5}}
    chosen: dict[str, Any] = {
        "title": "A hill and a sage",
        "rounds": 30,
        "replications": 2,
        "environment": {"kind": "synthetic"},
        "feedback": {"noise": 0.1},
        "experts": {"sage": sage},
        "optimizers": {
            "careless": {"kind": "uniform"},
            "curious": {"kind": "sparq-gp-ucb", **curious},
        },
        "record": "full",
        "sweep": {"experts.sage.channel.loss": [0.0, 0.4], "feedback.noise": [0.1, 0.3]},
    }
    return Scenario(**{**chosen, **fields})


def played(folder: Path, **fields: Any) -> Results:
    study = Study(scenario(**fields), folder)
    study.run(InProcess())
    return study.results


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two optimizers in four settings, two replications each; not to be changed."""
    return played(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="session")
def told(study: Results) -> ReportData:
    """What the page of that study tells, but for replays."""
    return gather(study, replays=False)


def with_six_plays(data: ChartData) -> ChartData:
    """Give the same curves, as if they were of six plays each."""
    bands = [
        replace(band, plays=np.full(len(band.rounds), 6), singles=band.singles[:0])
        for band in data.bands
    ]
    return replace(data, bands=bands)


@pytest.fixture(scope="session")
def steered(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Plays that do not know the best reward, in four settings; not to be changed."""
    sweep = {"experts.hint.channel.cost": [0.1, 0.4], "environment.opening": [0.3, 0.6]}
    plant = Plant(silent=0.2)
    return steer(tmp_path_factory.mktemp("steered"), environment=plant, sweep=sweep)


# Hostile text

RUN = "window.__hacked=1"
_CORES = (
    f"<script>{RUN}</script>",
    f"<ScRiPt >{RUN}</sCrIpT >",
    f"<img src=x onerror={RUN}>",
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f"<body onload={RUN}>",
    "<iframe srcdoc='<script>parent.__hacked=1</script>'></iframe>",
    f"<a href='javascript:{RUN}'>x</a>",
    f'<a href="JaVaScRiPt:{RUN}" autofocus onfocus={RUN}>x</a>',
    f"<details open ontoggle={RUN}>",
    f"<math><mi xlink:href='javascript:{RUN}'>",
    f"<object data='javascript:{RUN}'></object>",
    "<link rel=stylesheet href=https://example.org/x.css>",
    "<meta http-equiv=refresh content='0;url=https://example.org'>",
    "<base href=https://example.org/>",
    "<style>*{background:url(https://example.org/x)}</style>",
    f"javascript:{RUN}",
    "{{ 7 * 7 }}{% for x in 5 %}{# #}",
    "${7*7} %{fullData.name} $\\alpha$ %s",
    "\u202e\u2066 txet \u2028\u2029\x00\x1b[31m\x07\ud800",
)
_BEFORE = (
    *("", "</script>", "-->", "]]>", "\"'><", '\\"}];', "\r\n", "*/", "`${"),
    "</title></style></textarea></noscript>",
)
_AFTER = ("<!--", "<![CDATA[")
HOSTILE = [before + core for before in _BEFORE for core in _CORES]
HOSTILE += [core + after for core in _CORES for after in _AFTER]


def poisoned(thing: Any, words: Iterator[str]) -> Any:
    """Put the next of *words* before each text in a thing, however deep."""
    known: dict[str, str] = {}

    def inner(thing: Any) -> Any:
        match thing:
            case str():
                # The same text stays the same, for an optimizer is known by its name.
                return known.setdefault(thing, next(words) + thing)
            case Mapping():
                return {inner(key): inner(value) for key, value in thing.items()}
            case list() | tuple():
                return type(thing)(inner(each) for each in thing)
        if is_dataclass(thing) and not isinstance(thing, type):
            values = {field.name: getattr(thing, field.name) for field in fields_of(thing)}
            # The names of measures are the store's own, and those of criteria ours.
            own = ("measures", "criterion")
            new = {name: v if name in own else inner(v) for name, v in values.items()}
            return type(thing)(**new)
        return thing

    return inner(thing)


def only(text: str) -> Iterator[str]:
    return cycle([text])
