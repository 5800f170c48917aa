from __future__ import annotations

import pytest

from reproduce.coverage import Case, list_cases

SOUND = [case for case in list_cases() if case.holds]
MODES = {case.plays: case for case in list_cases() if not case.holds}


def name(case: Case) -> str:
    return f"{case.interval}, {case.plays} plays, {case.model}"


@pytest.mark.parametrize("case", SOUND, ids=name)
def test_an_interval_holds_what_it_should_in_95_of_100_cases(case: Case) -> None:
    # 93 to 97 %, and two standard errors of 1000 intervals.
    assert 0.916 < case.measure(1_000) < 0.984


@pytest.mark.slow
@pytest.mark.parametrize("case", SOUND, ids=name)
def test_an_interval_holds_what_it_should_in_93_to_97_of_100_cases(case: Case) -> None:
    assert 0.93 < case.measure(10_000) < 0.97


def test_few_plays_of_two_modes_have_an_interval_that_is_far_too_narrow() -> None:
    # All four plays are of the frequent mode in 0.85^4 of the cases.
    assert MODES[4].measure(2_000) == pytest.approx(1 - 0.85**4, abs=0.05)
    assert 0.70 < MODES[8].measure(2_000) < 0.80
    assert MODES[40].measure(2_000) > 0.90
