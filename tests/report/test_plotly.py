from __future__ import annotations

from hashlib import sha256

from sparq_sim.report.html.plotly import DIGEST, FILES, FOLDER, PACKAGE, read_plotly


def test_the_script_is_the_one_that_its_authors_publish() -> None:
    assert sha256((FOLDER / FILES[0]).read_bytes()).hexdigest() == DIGEST
    assert f"plotly.js (cartesian - minified) v{PACKAGE.rpartition('@')[2]}" in read_plotly()[:120]


def test_its_licence_comes_with_it() -> None:
    assert "MIT License" in (FOLDER / "LICENSE").read_text(encoding="utf-8")


def test_nothing_in_it_can_end_the_element_that_holds_it() -> None:
    assert "</script" not in read_plotly().lower()
    assert "<!--" not in read_plotly()
    assert "\r" not in read_plotly()
