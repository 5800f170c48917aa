"""The pictures of the report's page, and reports of plug-ins that are named as module:Class."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

from sparq_sim.cli import main
from sparq_sim.report import write
from sparq_sim.study import Study
from tests.report.conftest import Browser, played

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def screenshots() -> ModuleType:
    """The script that takes the pictures."""
    spec = spec_from_file_location("screenshots", DOCS / "screenshots.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # Where its dataclasses look for their types.
    spec.loader.exec_module(module)
    return module


def test_each_picture_is_there_small_and_in_the_guide(screenshots: ModuleType) -> None:
    guide = (DOCS / "guides" / "report.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"pictures/report/([\w-]+)\.png", guide)) == sorted(screenshots.SHOTS)
    for name in screenshots.SHOTS:
        assert (screenshots.FOLDER / f"{name}.png").stat().st_size < 200_000


def test_a_picture_is_of_the_part_asked_for(
    browser: Browser, screenshots: ModuleType, tmp_path: Path
) -> None:
    page = write(played(tmp_path / "study", sweep={}, replications=1), tmp_path / "page.html")
    camera = screenshots.Camera(browser.driver)
    shot = screenshots.Shot("", *screenshots.PLAYER, optimizer="curious", share=0.5)
    image = Image.open(io.BytesIO(camera.take(page, shot)))
    assert image.width == 1100 - 2 * 24 + 2 * 16  # The page's text, with an edge.
    assert browser.run("return document.querySelector('#replay').dataset.frame") == "15"
    assert browser.run("return document.querySelector('[data-of=round]').textContent") == "16 of 30"
    screenshots.saved(camera.take(page, shot), tmp_path / "small.png")
    with Image.open(tmp_path / "small.png") as small:
        assert (small.size, small.mode) == (image.size, "P")


def test_without_a_browser_it_says_what_to_install(
    screenshots: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(screenshots, "CHROMIUM", tmp_path / "chromium")
    assert screenshots.main([]) == 1
    assert f"There is no {tmp_path / 'chromium'}: `make browser`" in capsys.readouterr().out


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
    assert "Note: no reference levels: not in broad daylight" in done.stderr
    assert "Report: mine/report.html" in done.stdout
    assert "No replay of <b>calm</b>: OSError: not in broad daylight" in (
        tmp_path / "mine" / "report.html"
    ).read_text(encoding="utf-8")


def test_a_run_whose_report_cannot_be_written_keeps_its_plays_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "mine" / "report.html").mkdir(parents=True)
    done = run(tmp_path, "Hill")
    assert done.returncode == 0
    assert "Note: no report (StoreError: cannot write" in done.stderr
    assert len(Study.open(tmp_path / "mine").found()) == 1
