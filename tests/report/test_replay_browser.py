"""The player of replays, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pytest
from markupsafe import Markup
from numpy.random import Generator

from sparq_sim import report
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Sites
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.optimizers.tv_gp_ucb import TVGPUCB
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Environment, Landscape
from sparq_sim.report.html.embed import embed
from sparq_sim.report.html.page import TEMPLATES, read_player
from sparq_sim.report.html.replay import pack_all
from sparq_sim.report.replay import play_again
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from sparq_sim.testing import Slope, Teller
from tests.report.conftest import RUN, Browser
from tests.report.test_replay import GIVEN, Cube

EVIL = f"</script><img src=x onerror={RUN}>"


class Towns(Environment):
    """Four places with names that nobody should run."""

    def start(self, rng: Generator) -> Landscape:
        return _TownsLandscape()


class _TownsLandscape:
    domain = Sites(
        [[50.0, 8.0], [51.0, 10.0], [52.0, 9.0], [53.0, 12.0]],
        [f"{EVIL}{i}" for i in range(4)],
        ["lat", "lon"],
    )

    def rewards(self, points: Points, time: float) -> Values:
        return np.asarray(np.sin(points[:, 0] + 0.2 * time))

    def best(self, time: float) -> tuple[Point, float]:
        rewards = self.rewards(self.domain.points, time)
        return self.domain.points[rewards.argmax()], float(rewards.max())


WORLDS: dict[str, Environment] = {
    "line": Slope(),
    "field": Slope(place="square"),
    "map": Towns(),
    "strips": Cube(),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page with nothing but the player, for each kind of scene."""
    home = tmp_path_factory.mktemp("pages")
    made = {}
    for name, environment in WORLDS.items():
        slow = Channel(service=0.4, transit=1.3, noise=0.1, loss=0.2, capacity=1)
        sparse = {"sparq": SparQGPUCB(**GIVEN), "tv": TVGPUCB(**GIVEN), "gp": GPUCB(**GIVEN)}
        climbing: dict[str, Any] = {} if name == "strips" else sparse
        played = Scenario(
            environment=environment,
            rounds=12,
            feedback=Channel(noise=0.1),
            experts={"sage": (Teller(), slow)},
            optimizers={**climbing, EVIL: Uniform()},
        )
        study = Study(played, home / name)
        study.run(InProcess())
        made[name] = home / f"{name}.html"
        made[name].write_text(alone(study.results), encoding="utf-8")
    return made


def alone(study: Results) -> str:
    """Write a page of the player only, under a policy as strict as that of the report."""
    found = play_again(study, allow_import=True, seconds=0)
    order = list(dict.fromkeys(replay.title for replay in found))
    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(loader=loader, autoescape=True)
    environment.globals["text_of"] = lambda name: Markup((TEMPLATES / name).read_text())
    page = environment.from_string(
        """<!doctype html><html lang="en"><meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none';
          script-src 'unsafe-inline'; style-src 'unsafe-inline'">
        <style>{{ text_of("page.css") }}{{ text_of("replay.css") }}</style>
        <body><main>{% include "replay.html.j2" %}</main>
        <script>{{ player }}</script></body></html>"""
    )
    return page.render(
        replays=found,
        replay_data=embed(pack_all(found, study.finished(), order=order, folder=EVIL)),
        player=Markup(read_player()),
    )


class Player:
    """The player in an open page."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        browser.wait("document.querySelector('#replay').dataset.frame !== undefined")

    @property
    def frame(self) -> int:
        self.settle()
        return int(self.browser.run("return document.querySelector('#replay').dataset.frame"))

    @property
    def told(self) -> str:
        self.settle()
        return str(self.browser.run("return document.querySelector('[data-of=round]').textContent"))

    def settle(self) -> None:
        """Wait until what is to be drawn is drawn."""
        self.browser.driver.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => done()))"
        )

    def picture(self, name: str) -> str:
        self.settle()
        return str(self.browser.run(f"return document.querySelector('.replay-{name}').toDataURL()"))

    def slide(self, frame: int) -> None:
        """Go to a frame of a replay of which all rounds are filmed."""
        self.browser.run(
            "const slider = document.querySelector('.replay-slider');"
            f"slider.value = {frame + 1}; slider.dispatchEvent(new Event('input'))"
        )

    def choose(self, field: str, value: str) -> None:
        self.browser.run(
            f"const select = document.querySelector('[name=replay-{field}]');"
            f"select.value = {value!r}; select.dispatchEvent(new Event('change'))"
        )

    @property
    def words(self) -> str:
        self.settle()
        return str(self.browser.run("return document.querySelector('.replay-words').textContent"))

    def crawl(self) -> None:
        """Let the next frame come as ever, and those after it so late that no test misses one."""
        self.browser.run(
            f"""const begun = {self.frame}, root = document.querySelector('#replay');
            const speed = document.querySelector('.replay-speed select');
            speed.value = '8';
            speed.add(new Option('crawling', '0.001'));
            new MutationObserver((_, observer) => {{
              if (Number(root.dataset.frame) === begun) return;
              speed.value = '0.001';
              observer.disconnect();
            }}).observe(root, {{ attributeFilter: ['data-frame'] }});"""
        )

    def click(self, selector: str, number: int = 0) -> None:
        self.browser.run(f"document.querySelectorAll({selector!r})[{number}].click()")

    def press(self, key: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.browser.driver).send_keys(key).perform()


@pytest.fixture
def quiet(browser: Browser) -> Iterator[Browser]:
    """A browser that must not complain, and in which nothing foreign may run."""
    yield browser
    assert browser.run("return window.__hacked") is None
    assert browser.complaints() == []
    assert len(browser.fetched()) == 1  # The page itself.


def opened(browser: Browser, page: Path, **how: Any) -> Player:
    browser.open(page, **how)
    return Player(browser)


@pytest.mark.parametrize("scene", WORLDS)
def test_the_slider_changes_scene_timeline_and_numbers(
    quiet: Browser, pages: dict[str, Path], scene: str
) -> None:
    player = opened(quiet, pages[scene])
    player.slide(4)
    before = [player.picture(name) for name in ("scene", "timeline", "regret")]
    assert player.told == "5 of 12"
    player.slide(9)
    after = [player.picture(name) for name in ("scene", "timeline", "regret")]
    assert player.told == "10 of 12"
    assert all(one != other for one, other in zip(before, after, strict=True))
    player.slide(4)
    assert [player.picture(name) for name in ("scene", "timeline", "regret")] == before


def test_the_slider_tells_round_time_and_regret_to_those_who_do_not_see(
    quiet: Browser, pages: dict[str, Path]
) -> None:
    player = opened(quiet, pages["line"])
    player.slide(6)
    player.settle()
    told = quiet.run("return document.querySelector('.replay-slider').ariaValueText")
    assert told.startswith("round 7 of 12, time 7, regret ")
    label = quiet.run("return document.querySelector('.replay-scene').ariaLabel")
    assert "Round 7: the newest answer of sage is " in label
    assert player.words in label
    assert re.search(r"; played .+, lost [\d.]+\.$", player.words)
    live = "return document.querySelector('.replay-words').ariaLive"
    assert quiet.run(live) == "polite"
    player.crawl()
    player.click(".replay-play")
    assert quiet.run(live) == "off"  # Else a listener would hear nothing but numbers.


def test_play_goes_on_to_the_end_and_pause_stops_it(quiet: Browser, pages: dict[str, Path]) -> None:
    player = opened(quiet, pages["line"])
    player.slide(2)
    assert player.frame == 2
    # In the page, because on a busy machine the end could come before a click from here.
    pressed = quiet.driver.execute_async_script(
        """const done = arguments[0], root = document.querySelector('#replay');
        const button = document.querySelector('.replay-play');
        new MutationObserver((_, observer) => {
          if (root.dataset.frame === '2') return;
          observer.disconnect();
          const pressed = button.ariaPressed;
          button.click();
          done(pressed);
        }).observe(root, { attributeFilter: ['data-frame'] });
        button.click();"""
    )
    assert pressed == "true"
    stopped = player.frame
    assert 2 < stopped < 11
    for _ in range(15):  # At 60 frames a second, longer than one of the replay lasts.
        player.settle()
    assert player.frame == stopped
    quiet.run("document.querySelector('.replay-speed select').value = '30'")
    player.click(".replay-play")
    quiet.wait("document.querySelector('#replay').dataset.frame === '11'")
    quiet.wait("document.querySelector('.replay-play').ariaPressed === 'false'")


def test_arrows_step_and_the_space_bar_plays(quiet: Browser, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.keys import Keys

    player = opened(quiet, pages["line"])
    player.slide(3)
    for focus in (".replay-scene", ".replay-slider"):
        quiet.run(f"document.querySelector({focus!r}).focus()")
        player.press(Keys.ARROW_RIGHT)
        player.press(Keys.ARROW_RIGHT)
        assert player.frame == 5
        player.press(Keys.ARROW_LEFT)
        player.press(Keys.ARROW_LEFT)
        assert player.frame == 3
        player.press(Keys.END)
        assert player.frame == 11
        player.slide(3)
        player.crawl()
        player.press(Keys.SPACE)
        quiet.wait("Number(document.querySelector('#replay').dataset.frame) > 3")
        player.press(Keys.SPACE)
        assert quiet.run("return document.querySelector('.replay-play').ariaPressed") == "false"
        player.slide(3)


def test_another_optimizer_is_shown_at_the_same_time(
    quiet: Browser, pages: dict[str, Path]
) -> None:
    player = opened(quiet, pages["line"])
    player.slide(7)
    pictures = set()
    for number in range(4):
        player.click(".replay-tabs button", number)
        pictures.add(player.picture("scene"))
        assert player.told == "8 of 12"
    assert len(pictures) == 4
    names = quiet.run(
        "return [...document.querySelectorAll('.replay-tabs button')].map((b) => b.textContent)"
    )
    assert names == ["sparq", "tv", "gp", EVIL]


@pytest.mark.parametrize("scene", ["field", "map"])
def test_colours_show_truth_mean_or_std_as_chosen(
    quiet: Browser, pages: dict[str, Path], scene: str
) -> None:
    player = opened(quiet, pages[scene])
    player.slide(6)
    pictures = set()
    for view in ("true", "mean", "bound", "std", "all"):
        player.click(f"[name=replay-view][value={view}]")
        pictures.add(player.picture("scene"))
    assert len(pictures) == 5
    player.click(".replay-tabs button", 3)  # Who believes nothing has the truth only.
    disabled = "[...document.querySelectorAll('[name=replay-view]:disabled')].map((v) => v.value)"
    assert quiet.run(f"return {disabled}") == ["mean", "bound", "std", "all"]


def test_the_legend_explains_what_is_drawn_and_nothing_else(
    quiet: Browser, pages: dict[str, Path]
) -> None:
    legend = (
        "return [...document.querySelectorAll('.replay-legend')[0].querySelectorAll('li')]"
        ".filter((item) => item.offsetParent).map((item) => item.innerText.trim())"
    )
    player = opened(quiet, pages["line"])
    assert "posterior mean ± 1 std" in quiet.run(legend)
    player.click(".replay-tabs button", 3)
    assert quiet.run(legend) == [
        "true reward now",
        "played now",
        "best point now",
        "regret",
        "own observation, fading with its age",
        "± 1 std of an answer, as its source claims",
    ]


def test_a_site_under_the_pointer_tells_its_name_as_text(
    quiet: Browser, pages: dict[str, Path]
) -> None:
    player = opened(quiet, pages["map"])
    player.slide(6)
    player.settle()
    quiet.run(
        """const canvas = document.querySelector('.replay-scene');
        const box = canvas.getBoundingClientRect();
        for (let x = 0; x < box.width; x += 6) for (let y = 0; y < box.height; y += 6) {
          canvas.dispatchEvent(new PointerEvent('pointermove',
            { clientX: box.left + x, clientY: box.top + y }));
          if (!document.querySelector('.replay-tip').hidden) return;
        }"""
    )
    tip = quiet.run("return document.querySelector('.replay-tip').textContent")
    assert tip.startswith(EVIL)
    assert "true reward" in tip
    assert quiet.run("return document.querySelector('.replay-tip').children.length") == 0


def test_an_outage_is_told_in_words_and_its_worst_round_is_gone_to(
    quiet: Browser, tmp_path: Path
) -> None:
    out = Scenario(
        environment=Slope(),
        rounds=12,
        experts={"sage": (Teller(), Channel(outages=[(5, 9)]))},
        optimizers={"sparq": SparQGPUCB(**GIVEN)},
    )
    study = Study(out, tmp_path / "out")
    study.run(InProcess())
    page = tmp_path / "page.html"
    page.write_text(alone(study.results), encoding="utf-8")
    player = opened(quiet, page)
    assert "the outage of sage" in player.words  # With it the page opens.
    player.slide(7)
    assert player.words.startswith("Round 8: the outage of sage goes on; the newest answer of sage")
    player.slide(4)
    assert "the outage of sage begins" in player.words
    player.slide(9)
    assert "outage" not in player.words
    quiet.wait("location.hash.endsWith(',10')")
    player.click(".replay-moments button")
    assert "the outage of sage" in player.words


def test_pointing_anywhere_tells_what_is_true_and_believed_there(
    quiet: Browser, pages: dict[str, Path]
) -> None:
    player = opened(quiet, pages["field"])
    player.slide(9)
    player.click("[name=replay-view][value=true]")
    player.settle()
    quiet.run(
        """const canvas = document.querySelector('.replay-scene');
        const box = canvas.getBoundingClientRect();
        for (let x = box.width / 3; x < box.width; x += 7) {
          canvas.dispatchEvent(new PointerEvent('pointermove',
            { clientX: box.left + x, clientY: box.top + box.height / 3 }));
          const tip = document.querySelector('.replay-tip');
          if (!tip.hidden && tip.textContent.startsWith('x0')) return;
        }"""
    )
    tip = quiet.run("return document.querySelector('.replay-tip').textContent").splitlines()
    beginnings = [line.rsplit(" ", 1)[0] for line in tip[1:2]] + [line[:14] for line in tip[2:]]
    assert beginnings == ["true reward", "posterior mean", "upper bound " + tip[3][12:14]]


def test_two_optimizers_are_shown_at_the_same_round_on_one_scale(
    quiet: Browser, pages: dict[str, Path]
) -> None:
    player = opened(quiet, pages["line"])
    player.slide(7)
    alone = player.picture("scene")
    player.choose("rival", "3")
    names = "return [...document.querySelectorAll('.replay-name')].map((n) => n.innerText)"
    player.settle()
    one, other = quiet.run(names)
    assert one.startswith("sparq: regret ")
    assert other.startswith(f"{EVIL}: regret ")
    assert player.picture("rival") != player.picture("scene") != alone
    assert quiet.run("return document.querySelector('.replay-rival').ariaLabel").count("Round 8:")
    player.click(".replay-tabs button", 1)
    assert quiet.run(names)[0].startswith("tv: regret ")
    player.choose("rival", "")
    assert quiet.run("return document.querySelector('.replay-rival').offsetParent") is None


def test_a_link_leads_to_a_moment_and_a_hostile_one_nowhere(
    quiet: Browser, pages: dict[str, Path]
) -> None:
    address = pages["line"].absolute().as_uri()
    player = opened(quiet, pages["line"])
    opening = player.told
    player.click(".replay-tabs button", 1)
    player.slide(4)
    quiet.wait("location.hash === '#replay=tv,,0,5'")
    for link in ("nobody,,0,3", "tv,,0,1e9", "tv,%E0%A4%A,0,3", "tv,,9,3", "__proto__,,0,2"):
        quiet.open("about:blank")
        quiet.open(f"{address}#replay={link}")
        assert Player(quiet).told == opening
    quiet.open("about:blank")
    quiet.open(f"{address}#replay=gp,,0,9")
    assert Player(quiet).told == "9 of 12"
    pressed = "document.querySelector('.replay-tabs [aria-pressed=true]').textContent"
    assert quiet.run(f"return {pressed}") == "gp"


@pytest.mark.parametrize("scene", WORLDS)
def test_on_a_phone_nothing_is_wider_than_the_screen(
    quiet: Browser, pages: dict[str, Path], scene: str
) -> None:
    opened(quiet, pages[scene], width=390)
    assert quiet.run("return document.documentElement.scrollWidth") <= 390


def test_a_change_of_theme_redraws(quiet: Browser, pages: dict[str, Path]) -> None:
    player = opened(quiet, pages["line"])
    before = player.picture("scene")
    quiet.run(
        "document.documentElement.dataset.theme = 'dark';"
        "document.dispatchEvent(new Event('themechange'))"
    )
    assert player.picture("scene") != before


def test_the_report_has_the_player_in_it(quiet: Browser, study: Results, tmp_path: Path) -> None:
    named = "careless,loss=0.4,noise=0.3,1"
    page = report.write(study, tmp_path / "report.html", films=[named])
    player = opened(quiet, page)
    chosen = "return [...document.querySelectorAll('.replay-choice select')].map((s) => s.value)"
    assert quiet.run(chosen)[1] == "1"
    assert quiet.run("return document.querySelector('.replay-more').innerText").count("--film")
    before = player.picture("scene")
    player.slide(20)
    assert player.told == "21 of 30"
    assert player.picture("scene") != before
    player.click("#theme")
    assert player.told == "21 of 30"
