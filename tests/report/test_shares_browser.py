"""Parts of a whole on a page, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparq_sim import report
from sparq_sim.optimizers.uniform import Uniform
from tests.report.conftest import Browser
from tests.report.test_browser import ALL_DRAWN, open_all
from tests.report.test_replay_browser import Player, opened, quiet
from tests.report.waverers import SCALES, Waverer, waver

__all__ = ["quiet"]

# It sets window.__hacked without an underscore, which names of parts lose.
EVIL = r"</script><img src=x onerror=window['\x5f\x5fhacked']=1>"
TOLD = "return [...document.querySelectorAll('.replay-shares p')].map((p) => p.textContent)"
PIECES = "[...document.querySelectorAll('.replay-bar')][1].children"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of one who believes nothing, a waverer, and one with names that none should run.

    The waverers begin in the third round.
    """
    home = tmp_path_factory.mktemp("wavering")
    evil = Waverer(begins=3, scales=(EVIL, "2"))
    study = waver(
        home / "study",
        optimizers={"calm": Uniform(), "waverer": Waverer(begins=3), "evil": evil},
    )
    return report.write(study, home / "report.html", allow_import=True)


def show(browser: Browser, page: Path, frame: int, optimizer: int = 1, width: int = 1280) -> Player:
    player = opened(browser, page, width=width)
    player.click(".replay-tabs button", optimizer)
    player.slide(frame)
    player.settle()
    return player


def test_the_areas_of_a_round_fill_the_whole_and_have_the_colours_of_the_theme(
    quiet: Browser, page: Path
) -> None:
    fills = (
        "[...document.querySelectorAll('#shares-1 .fills path')]"
        ".map((path) => getComputedStyle(path).fill)"
    )
    open_all(quiet, page)
    assert quiet.run(f"return {ALL_DRAWN}")
    names = "[...document.querySelectorAll('#shares-1 .legendtext')].map((t) => t.textContent)"
    assert quiet.run(f"return {names}") == list(SCALES)
    light = quiet.run(f"return {fills}")
    assert len(set(light)) == len(SCALES)
    quiet.run("document.getElementById('theme').click()")
    quiet.wait(f"{fills}.join() !== '{','.join(light)}'")
    dark = quiet.run(f"return {fills}")
    assert len(set(dark)) == len(SCALES)
    tops = "document.querySelector('#shares-1 .plot')._fullLayout.yaxis.range"
    assert quiet.run(f"return {tops}") == [0, 100]


def test_a_round_under_the_pointer_tells_each_part_in_per_cent(quiet: Browser, page: Path) -> None:
    open_all(quiet, page)
    quiet.run(
        "Plotly.Fx.hover(document.querySelector('#shares-0 .plot'), { xval: 10, yval: 50 }, 'xy')"
    )
    quiet.wait("document.querySelectorAll('#shares-0 .hoverlayer .legendtext').length >= 2")
    told = quiet.run(
        "return [...document.querySelectorAll('#shares-0 .hoverlayer .legendtext')]"
        ".map((text) => text.textContent)"
    )
    assert told == ["motion : 10.0 %", "jitter : 90.0 %"]


def test_the_replay_shows_and_says_what_was_believed_in_the_round(
    quiet: Browser, page: Path
) -> None:
    player = show(quiet, page, 9)
    drift, scales = quiet.run(TOLD)
    assert drift == "drift: jitter (90 %), motion (10 %)"
    assert scales.startswith("time scale: ")
    shares = [float(each) for each in quiet.run(f"return [...{PIECES}].map(p => p.style.flexGrow)")]
    assert sum(shares) == pytest.approx(1, abs=1e-3)
    likeliest = max(range(len(SCALES)), key=shares.__getitem__)
    assert scales.startswith(f"time scale: {SCALES[likeliest]} ({100 * shares[likeliest]:.0f} %)")
    wide = f"{PIECES}[{likeliest}].getBoundingClientRect().width"
    whole = "document.querySelectorAll('.replay-bar')[1].getBoundingClientRect().width"
    assert quiet.run(f"return {wide} / {whole}") == pytest.approx(shares[likeliest], abs=0.02)
    slider = quiet.run("return document.querySelector('.replay-slider').ariaValueText")
    assert slider.endswith(f"; {drift}; {scales}")
    player.slide(4)
    player.settle()
    assert quiet.run(TOLD)[0] == "drift: jitter (80 %), motion (20 %)"


def test_no_part_of_a_name_is_shown_below_the_bar(quiet: Browser, page: Path) -> None:
    clipped = (
        "return [...document.querySelectorAll('.replay-bar b')].filter((name) =>"
        " name.style.visibility !== 'hidden'"
        " && name.offsetWidth > name.parentElement.clientWidth).length"
    )
    for width in (360, 1280):
        player = show(quiet, page, 2, width=width)
        for frame in range(2, 12):
            player.slide(frame)
            player.settle()
            assert quiet.run(clipped) == 0
        assert quiet.run("return document.documentElement.scrollWidth") <= width


def test_the_replay_says_where_nothing_is_noted_and_shows_nothing_of_who_notes_nothing(
    quiet: Browser, page: Path
) -> None:
    player = show(quiet, page, 1)
    assert quiet.run(TOLD)[0] == "drift: nothing noted in this round"
    player.click(".replay-tabs button", 0)
    player.settle()
    assert quiet.run("return document.querySelector('.replay-shares').hidden")
    assert quiet.run("return document.querySelector('.replay-shares').offsetHeight") == 0


def test_names_of_parts_are_shown_not_obeyed(quiet: Browser, page: Path) -> None:
    show(quiet, page, 9, optimizer=2)
    assert EVIL in quiet.run("return document.querySelector('.replay-shares').textContent")
    assert quiet.run("return document.querySelectorAll('.replay-shares img').length") == 0
    open_all(quiet, page)
    assert quiet.run("return document.querySelectorAll('img').length") == 0
