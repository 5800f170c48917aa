"""A plugin of pytest: notes which lines each test runs, how long it takes and whether it passes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, settings

if TYPE_CHECKING:
    from coverage import Coverage

_NOTES = "SPARQ_MUTANTS_NOTES"
"""The environment variable with the file in which outcomes are noted."""

_KNOWN = "SPARQ_MUTANTS_KNOWN"
"""The environment variable with the file that tells how long tests take."""
_SPARE = 10.0
"""CPU seconds that any test may take beside those that it took when nothing was planted."""
_PATIENCE = 3.0
"""How many times longer it may last: a machine may be busy, and a test may wait."""

_known: dict[str, float] = {}
_seconds: dict[str, float] = {}
_failed: set[str] = set()


def pytest_sessionstart() -> None:
    """Look for no smaller example: that a test fails is all that is asked of it."""
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    settings.register_profile("mutants", settings.default, phases=phases)
    settings.load_profile("mutants")


def _find_coverage() -> Coverage | None:
    if _NOTES not in os.environ:
        return None
    import coverage

    return coverage.Coverage.current()


def pytest_configure() -> None:
    """Read how long tests take, if that is known."""
    if _KNOWN in os.environ:
        told = json.loads(Path(os.environ[_KNOWN]).read_text(encoding="utf-8"))
        _known.update(told["seconds"])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Have lines that run from now on belong to this test, and end all if it takes too long."""
    if (measured := _find_coverage()) is not None:
        measured.switch_context(item.nodeid)
    if _known:
        _limit(_SPARE + _known.get(item.nodeid, _SPARE))
    result: None = yield
    if _known:
        _limit(0.0)
    return result


def _limit(seconds: float) -> None:
    """Have this process end by a signal after some *seconds* of CPU time; 0 for never."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE * seconds)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how long a test took, with what it needs, and whether it passed."""
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if report.outcome != "passed":
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write down the tests that passed."""
    if _NOTES in os.environ:
        passed = {test: seconds for test, seconds in _seconds.items() if test not in _failed}
        Path(os.environ[_NOTES]).write_text(json.dumps(passed), encoding="utf-8")
