from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from sparq_sim.analysis.levels import compute_levels
from sparq_sim.report import progress
from sparq_sim.study.executors import InProcess
from sparq_sim.study.progress import Progress
from sparq_sim.study.study import Study
from tests.study.plays import scenario


@pytest.mark.parametrize(("unseen", "seen"), [(0.0, True), (1e9, False)])
def test_levels_that_take_long_are_watched(
    unseen: float, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LEVELS_UNSEEN", unseen)
    screen = StringIO()
    with progress.show_level_progress(
        Console(file=screen, force_terminal=True, width=100)
    ) as watch:
        compute_levels(scenario(), watch=watch)
    assert ("reference levels" in screen.getvalue()) == seen
    assert ("levels = false leaves them out" in screen.getvalue()) == seen


def _watch(console: Console, folder: Path) -> None:
    swept = scenario(replications=2, sweep={"feedback.noise": [0.1, 0.2]})
    with progress.show_progress(console) as watch:
        Study(swept, folder).run(InProcess(), watch=watch)


def test_a_terminal_is_told_what_was_played_how_much_is_done_and_how_long_it_takes(
    tmp_path: Path,
) -> None:
    screen = StringIO()
    _watch(Console(file=screen, force_terminal=True, width=100, height=40), tmp_path)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert "8 of 8 plays done" in shown
    assert "sparq-gp-ucb (noise 0.1): average regret " in shown
    assert "the last was " in shown


def test_a_log_has_a_line_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for between, lines in ((0.0, 9), (1e9, 0)):
        monkeypatch.setattr(progress, "BETWEEN_LINES", between)
        log = StringIO()
        _watch(Console(file=log, width=40), tmp_path / str(lines))
        assert log.getvalue().count("\n") == lines


@pytest.mark.parametrize(
    ("seconds", "words"), [(4.2, "4 s"), (89, "89 s"), (600, "10 min"), (7200, "2.0 h")]
)
def test_what_is_left_is_told_as_one_tells_it(seconds: float, words: str, tmp_path: Path) -> None:
    log = StringIO()
    with progress.show_progress(Console(file=log, force_terminal=True, width=100)) as watch:
        watch(
            Progress(
                done=1, total=2, resumed=0, failed=0, elapsed=seconds, notes=(), last=None, sums={}
            )
        )
    assert f"1 of 2 plays done, about {words} left" in log.getvalue()
