"""The pictures of the report's page, and reports of plug-ins that are named as module:Class."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from reproduce import DOCS, ROOT, screenshots
from reproduce import browser as chromium
from sparq_sim.cli.main import main
from sparq_sim.report import write
from sparq_sim.study.results import Results
from tests.commands import run as run_python
from tests.report.conftest import Browser, played


def test_each_picture_is_there_small_and_in_the_guide() -> None:
    guide = (DOCS / "guides" / "report.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"pictures/report/([\w-]+)\.png", guide)) == sorted(screenshots.SHOTS)
    for name in screenshots.SHOTS:
        assert (screenshots.FOLDER / f"{name}.png").stat().st_size < 200_000


def test_a_picture_is_of_the_part_asked_for(browser: Browser, tmp_path: Path) -> None:
    page = write(played(tmp_path / "study", sweep={}, replications=1), tmp_path / "page.html")
    camera = screenshots.Camera(browser.driver)
    shot = screenshots.Shot("", *screenshots.PLAYER, optimizer="curious", share=0.5)
    image = Image.open(io.BytesIO(camera.take(page, shot)))
    assert image.width == 1100 - 2 * 24 + 2 * 16  # The page's text, with an edge.
    assert browser.run("return document.querySelector('#replay').dataset.frame") == "14"
    assert browser.run("return document.querySelector('[data-of=round]').textContent") == "15 of 30"
    screenshots.save(camera.take(page, shot), tmp_path / "small.png")
    with Image.open(tmp_path / "small.png") as small:
        assert (small.size, small.mode) == (image.size, "P")


# Where the browser is


@pytest.fixture
def hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two programs that are not there, named by the variables."""
    absent = [tmp_path / program for program in chromium.VARIABLES.values()]
    for variable, path in zip(chromium.VARIABLES, absent, strict=True):
        monkeypatch.setenv(variable, str(path))
    return absent


def test_the_variables_name_the_browser_and_its_driver(hidden: list[Path]) -> None:
    assert list(chromium.find_programs()) == chromium.find_absent() == hidden
    hidden[1].touch()
    assert chromium.find_absent() == hidden[:1]


def test_what_no_variable_names_is_on_the_path_or_where_debian_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in chromium.VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "chromium").touch(mode=0o755)
    assert chromium.find_programs() == (tmp_path / "chromium", Path("/usr/bin/chromedriver"))


def test_without_a_browser_it_says_what_to_install(
    hidden: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert screenshots.main([]) == 1
    assert f"There is no {hidden[0]} and no {hidden[1]}: `make browser`" in capsys.readouterr().out


def test_without_a_browser_tests_that_need_one_are_skipped_and_name_it(hidden: list[Path]) -> None:
    asked = "tests/report/test_browser.py::test_charts_are_drawn_when_they_come_near"
    said = run_python("-m", "pytest", "-p", "no:cacheprovider", "-rs", asked, cwd=ROOT)
    assert f"there is no browser: {hidden[0]} and {hidden[1]} not found" in said
    assert "1 skipped" in said


# Plug-ins named as module:Class

HILL = '''
from multiprocessing import parent_process
from sparq_environments.synthetic import Synthetic

class Hill(Synthetic):
    """A hill of my own."""

class Shy(Synthetic):
    """A hill that only workers see."""

    def start(self, rng):
        if parent_process() is None:
            raise OSError("not in broad daylight")
        return super().start(rng)
'''
FILE = """
rounds = 5
environment.kind = "my_hill:{name}"
optimizers.calm.kind = "uniform"
"""


def run(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    """Play five rounds on a hill of one's own, in another process."""
    (folder / "my_hill.py").write_text(HILL, encoding="utf-8")
    (folder / "mine.toml").write_text(FILE.format(name=name), encoding="utf-8")
    program = (sys.executable, "-m", "sparq_sim", "run", "mine.toml", "--out", "mine")
    return subprocess.run(
        [*program, "--allow-import", "--jobs", "1"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_code_that_a_study_names_is_run_for_its_report_only_when_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(tmp_path, "Hill")
    assert done.returncode == 0, done.stderr
    monkeypatch.syspath_prepend(str(tmp_path))
    told = {"run": (tmp_path / "mine" / "report.html").read_text(encoding="utf-8")}
    for name, options in (("allowed", ["--allow-import"]), ("refused", [])):
        page = tmp_path / f"{name}.html"
        with pytest.raises(SystemExit) as left:
            main(["report", str(tmp_path / "mine"), "-o", str(page), *options])
        assert left.value.code == 0
        told[name] = page.read_text(encoding="utf-8")
    for name in ("run", "allowed"):
        assert "A hill of my own." in told[name]
        assert "best fixed point" in told[name]
        assert "No replay of" not in told[name]
    assert "no reference levels" in told["refused"]
    assert "No replay of <b>calm</b>" in told["refused"]
    assert "--allow-import" in told["refused"]
    assert "A hill of my own." not in told["refused"]


def test_a_run_whose_landscape_cannot_be_had_again_is_told_without_it(tmp_path: Path) -> None:
    done = run(tmp_path, "Shy")
    assert done.returncode == 0, done.stderr
    assert "Note: no reference levels: OSError: not in broad daylight (my_hill.py:" in done.stderr
    assert "Report: mine/report.html" in done.stdout
    assert "No replay of <b>calm</b>: OSError: not in broad daylight" in (
        tmp_path / "mine" / "report.html"
    ).read_text(encoding="utf-8")


def test_a_run_whose_report_cannot_be_written_keeps_its_plays_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "mine" / "report.html").mkdir(parents=True)
    done = run(tmp_path, "Hill")
    assert done.returncode == 0
    assert "Note: no report: cannot write" in done.stderr
    assert len(Results.open(tmp_path / "mine").finished()) == 1
