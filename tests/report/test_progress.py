from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from sparq_sim.analysis.levels import compute_levels
from sparq_sim.report import progress
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
