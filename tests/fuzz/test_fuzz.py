"""Scenario files that were made wrong end in words, soon."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import run
from tests.fuzz.__main__ import make_cases

ROOT = Path(__file__).parents[2]


def fuzz(checks: int, runs: int, seed: int) -> str:
    sizes = ("--checks", str(checks), "--runs", str(runs), "--seed", str(seed))
    return run("-m", "tests.fuzz", *sizes, cwd=ROOT, PYTHONPATH=str(ROOT))


def test_the_same_seed_makes_the_same_files() -> None:
    one, other = make_cases(5), make_cases(5)
    assert [next(one) for _ in range(5)] == [next(other) for _ in range(5)]


def test_some_mutated_files_are_checked_and_run_without_a_traceback() -> None:
    assert "check: 120 files" in fuzz(120, 8, seed=20)


@pytest.mark.slow
def test_many_mutated_files_are_checked_and_run_without_a_traceback() -> None:
    assert "run: 1000 files" in fuzz(10_000, 1_000, seed=21)
