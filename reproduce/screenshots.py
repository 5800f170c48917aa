"""Take the pictures of the report for its page: `python -m reproduce.screenshots [name ...]`.

Plays small studies into a temporary folder, opens their reports in Chromium without a window, and
writes docs/pictures/report. Needs a browser (`make browser`; reproduce/browser.py says where it is
sought), and selenium, which the dependency group `test` brings.
"""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

from reproduce import DOCS, browser
from sparq_sim.report import write
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.study import Study

FOLDER = DOCS / "pictures" / "report"
WIDE, NARROW = 1280, 390
"""Pixels across: of a window, and of a phone."""

HILL = {
    "kernel": {"kind": "squared-exponential", "length_scale": 5.7, "variance": 0.23},
    "mean": 1.5,
}
"""The synthetic function at time 0, by likelihood."""
OZONE = {
    "kernel": {
        "kind": "sum",
        "parts": [
            {"kind": "constant", "variance": 170.0},
            {"kind": "matern-3/2", "length_scale": 0.5, "variance": 25.0},
        ],
    },
    "mean": 37.0,
    "width": 1.0,
    "rate": 100.0,
    "schedule": {"kind": "constant", "count": 6},
}
"""As in the scenario paper/ozone-six-synthetic."""
PLUME = {
    "kernel": {"kind": "squared-exponential", "length_scale": 1.6, "variance": 0.6},
    "mean": 0.3,
    "width": 1.0,
    "rate": 0.01,
}
LOSSY = {
    "noise": 0.1,
    "cost_per_point": 0.001,
    "service": {"kind": "exponential", "mean": 0.4},
    "transit": 0.3,
    "capacity": 14,
    "loss": 0.2,
    "split": True,
    "patience": 2.5,
    "policy": {"retries": 2, "backoff": 0.3},
    "faults": [{"kind": "duplicate", "share": 0.05}, {"kind": "nan", "share": 0.05}],
    "outages": [[30, 33]],
}
STUDIES: Mapping[str, Mapping[str, Any]] = {
    "map": {
        "title": "Where to measure ozone today",
        "rounds": 120,
        "replications": 2,
        "environment": {"kind": "sensor-network"},
        "feedback": {"noise": 1.0},
        "experts": {
            "network": {
                "kind": "truth",
                "channel": {"noise": 1.0, "service": 0.2, "transit": 0.1, "capacity": 1},
            }
        },
        "optimizers": {
            "sparq-waiting": {"kind": "sparq-gp-ucb", "waits": True, **OZONE},
            "sparq-gp-ucb": {"kind": "sparq-gp-ucb", **OZONE},
        },
    },
    "plume": {
        "title": "A plume, and a simulator of it",
        "rounds": 100,
        "replications": 1,
        "environment": {"kind": "plume"},
        "feedback": {"noise": 0.1},
        "experts": {
            "simulator": {
                "kind": "simulator",
                "resolution": 0.5,
                "service_per_cell": 0.002,
                "processors": 5,
                "std": 0.04,
            }
        },
        "optimizers": {
            "sparq-gp-ucb": {
                "kind": "sparq-gp-ucb",
                "retain": 3.0,
                "schedule": {"kind": "constant", "count": 20},
                **PLUME,
            },
            "ui-gp-ucb": {"kind": "ui-gp-ucb", **PLUME},
        },
    },
    "network": {
        "title": "Ozone, by 28 nodes with batteries",
        "rounds": 60,
        "replications": 2,
        "record": "full",
        "environment": {"kind": "sensor-network"},
        "feedback": {"noise": 1.0},
        "experts": {
            "sensors": {
                "kind": "sensors",
                "seconds": 86400.0,
                "scale": 0.045,
                "battery": 40.0,
                "measuring_energy": 0.05,
                "measuring_time": 1.0,
                "listening": {"kind": "windows", "every": 21600.0},
                "path_loss": {"kind": "oulu", "fading": "rayleigh"},
                "channel": {"split": True},
            }
        },
        "optimizers": {
            "sparq-gp-ucb": {"kind": "sparq-gp-ucb", **OZONE},
            "ui-gp-ucb": {"kind": "ui-gp-ucb", "kernel": OZONE["kernel"], "mean": OZONE["mean"]},
        },
    },
    "timeline": {
        "title": "Loss, retries and faults",
        "rounds": 80,
        "replications": 2,
        "record": "full",
        "environment": {"kind": "synthetic"},
        "feedback": {"noise": 0.1},
        "experts": {"expert": {"kind": "truth", "channel": LOSSY}},
        "optimizers": {"sparq-gp-ucb": {"kind": "sparq-gp-ucb", "retain": 3.0, **HILL}},
    },
    "sweep": {
        "title": "How late, and how lossy, may an expert be?",
        "rounds": 150,
        "replications": 3,
        "record": "full",
        "environment": {"kind": "synthetic"},
        "feedback": {"noise": 0.1},
        "experts": {
            "expert": {"kind": "truth", "channel": {"noise": 0.1, "cost_per_point": 0.001}}
        },
        "optimizers": {
            "sparq-gp-ucb": {"kind": "sparq-gp-ucb", "retain": 3.0, **HILL},
            "tv-gp-ucb": {"kind": "tv-gp-ucb", "epsilon": 0.1, **HILL},
        },
        "sweep": {
            "experts.expert.channel.transit": [0.0, 1.0, 2.0, 4.0, 8.0],
            "experts.expert.channel.loss": [0.0, 0.3, 0.6, 0.9],
        },
    },
}


@dataclass(frozen=True)
class Shot:
    """A picture of a page: from the top of one element to the end of another."""

    study: str
    first: str
    """A selector."""
    last: str
    width: int = WIDE
    height: int | None = None
    """At most so many pixels."""
    dark: bool = False
    optimizer: str = ""
    """Whose play is watched."""
    share: float = 0.0
    """How far into it."""


WHOLE = "body", "body"
PLACES = ".places-rows", ".places-legend"
PLAYER = ".replay-tabs", ".replay"
SHOTS: Mapping[str, Shot] = {
    "overview": Shot("synthetic", *WHOLE, height=1100),
    "place": Shot("synthetic", *PLACES),
    "place-dark": Shot("synthetic", *PLACES, dark=True),
    "place-map": Shot("map", *PLACES),
    "place-field": Shot("plume", *PLACES),
    "dark": Shot("synthetic", "#time", "#average-regret", dark=True),
    "phone": Shot("synthetic", *WHOLE, width=NARROW, height=844),
    "replay-phone": Shot("synthetic", *PLAYER, width=NARROW, optimizer="sparq-gp-ucb", share=0.35),
    "replay-line": Shot("synthetic", *PLAYER, optimizer="sparq-gp-ucb", share=0.35),
    "replay-map": Shot("map", *PLAYER, optimizer="sparq-waiting", share=0.32),
    "replay-field": Shot("plume", *PLAYER, optimizer="sparq-gp-ucb", share=0.88),
    "timeline": Shot(
        "timeline",
        ".replay-heading",
        ".replay",
        optimizer="sparq-gp-ucb",
        share=0.42,
    ),
    "network": Shot("network", "#network", "#network"),
    "network-timeline": Shot(
        "network",
        ".replay-heading",
        ".replay",
        optimizer="sparq-gp-ucb",
        share=0.3,
    ),
    "sweep": Shot("sweep", "#sweep", "#sweep"),
}


def play_study(name: str, folder: Path) -> Path:
    """Play a study, and give its report."""
    # The bundled one as `make demo` plays it.
    scenario = Scenario(**STUDIES[name]) if name in STUDIES else Scenario.load(name)
    study = Study(scenario, folder / name)
    done = study.run()
    if done.failed_plays:
        raise RuntimeError(f"{name}: {done.failed_plays[0].reason}")
    return write(study.results, folder / f"{name}.html")


class Camera:
    """Chromium without a window."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def take(self, page: Path, shot: Shot) -> bytes:
        """Open a page, bring it to what the picture is of, and give that as PNG."""
        from selenium.webdriver.support.ui import WebDriverWait

        theme = {"name": "prefers-color-scheme", "value": "dark" if shot.dark else "light"}
        self._command("Emulation.setEmulatedMedia", features=[theme])
        self._resize(shot.width, 900)
        self._driver.get(page.as_uri())
        if shot.optimizer:
            self._driver.execute_script(WATCH, shot.optimizer, shot.share)
        # As tall as the picture: charts are drawn when they come near the window.
        self._resize(shot.width, shot.height or self._driver.execute_script(HEIGHT))
        WebDriverWait(self._driver, 120, 0.1).until(lambda driver: driver.execute_script(DRAWN))
        left, top, width, height = self._driver.execute_script(PLACE, shot.first, shot.last)
        height = min(height, shot.height or height)
        clip = {"x": left, "y": top, "width": width, "height": height, "scale": 1}
        taken = self._command("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(taken["data"])

    def _resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < WIDE}
        self._command("Emulation.setDeviceMetricsOverride", **size)

    def _command(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._driver.execute_cdp_cmd(name, arguments)
        return answer


WATCH = """
const [optimizer, share] = arguments;
const tabs = [...document.querySelectorAll(".replay-tabs button")];
tabs.find((tab) => tab.textContent.startsWith(optimizer)).click();
const slider = document.querySelector(".replay-slider");
slider.value = Math.round(slider.max * share);
slider.dispatchEvent(new Event("input"));
"""
HEIGHT = "return Math.ceil(document.documentElement.scrollHeight)"
DRAWN = """
const near = (plot) => plot.getBoundingClientRect().top < innerHeight;
return [...document.querySelectorAll(".plot")]
  .every((plot) => plot.querySelector(".main-svg") || !near(plot));
"""
PLACE = """
const [first, last] = [...arguments].map((selector) => document.querySelector(selector));
const [begin, end] = [first.getBoundingClientRect(), last.getBoundingClientRect()];
const edge = first === document.body ? 0 : Math.min(16, begin.left);
return [
  begin.left - edge, begin.top + scrollY - edge,
  begin.width + 2 * edge, end.bottom - begin.top + 2 * edge,
];
"""


def save(picture: bytes, path: Path) -> None:
    """Write a picture with at most 256 colours, which take a third of the room."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    # Without a round of k-means thin lines would lose their colours to large areas.
    image.quantize(256, kmeans=1, dither=Image.Dither.NONE).save(path, optimize=True)


def main(names: list[str]) -> int:
    """Take the pictures called *names*, or all."""
    if absent := browser.find_absent():
        print(
            f"There is no {' and no '.join(map(str, absent))}: `make browser` installs them, as "
            f"root, or {' and '.join(browser.VARIABLES)} name them."
        )
        return 1
    if unknown := [name for name in names if name not in SHOTS]:
        print(f"No picture is called {', '.join(unknown)}; there are: {', '.join(SHOTS)}")
        return 1
    chosen = {name: shot for name, shot in SHOTS.items() if name in names or not names}
    FOLDER.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as home:
        folder = Path(home)
        studies = dict.fromkeys(shot.study for shot in chosen.values())
        pages = {name: play_study(name, folder) for name in studies}
        with browser.drive(folder / "chromium", "hide-scrollbars") as driver:
            camera = Camera(driver)
            for name, shot in chosen.items():
                path = FOLDER / f"{name}.png"
                save(camera.take(pages[shot.study], shot), path)
                print(f"{path}: {path.stat().st_size // 1024} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
