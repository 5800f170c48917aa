"""Parts of a whole on a page, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparq_sim import report
from sparq_sim.optimizers.uniform import Uniform
from tests.report.conftest import Browser
from tests.report.test_browser import ALL_DRAWN, open_all
from tests.report.test_replay_browser import quiet
from tests.report.waverers import SCALES, Waverer, waver

__all__ = ["quiet"]

# It sets window.__hacked without an underscore, which names of parts lose.
EVIL = r"</script><img src=x onerror=window['\x5f\x5fhacked']=1>"


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


def test_the_areas_of_a_round_fill_the_whole_and_have_the_colours_of_the_theme(
    quiet: Browser, page: Path
) -> None:
    fills = (
        "return [...document.querySelectorAll('#shares-1 .fills path')]"
        ".map((path) => getComputedStyle(path).fill)"
    )
    open_all(quiet, page)
    assert quiet.run(f"return {ALL_DRAWN}")
    names = "[...document.querySelectorAll('#shares-1 .legendtext')].map((t) => t.textContent)"
    assert quiet.run(f"return {names}") == list(SCALES)
    light = quiet.run(fills)
    assert len(set(light)) == len(SCALES)
    quiet.run("document.getElementById('theme').click()")
    dark = quiet.run(fills)
    assert len(set(dark)) == len(SCALES)
    assert dark != light
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
