"""Small plays come to what was recorded of them, on this machine and by these versions."""

from __future__ import annotations

import pytest

from reproduce.digests import CLOSE, EQUAL, TOLERANCE, play_again, read

RECORDED = read()["plays"]


@pytest.mark.parametrize("name", EQUAL)
def test_a_play_that_adds_multiplies_and_draws_is_equal_everywhere(name: str) -> None:
    """If numpy draws otherwise one day, which it may, this is where it is seen."""
    assert play_again(name) == RECORDED[name]


@pytest.mark.parametrize("name", CLOSE)
def test_a_play_of_linear_algebra_comes_close(name: str) -> None:
    found, then = play_again(name), RECORDED[name]
    assert found["average_regret"] == pytest.approx(then["average_regret"], rel=TOLERANCE)
    assert found["spent"] == pytest.approx(then["spent"], rel=TOLERANCE)


def test_what_was_recorded_is_what_is_played() -> None:
    assert RECORDED.keys() == EQUAL.keys() | CLOSE.keys()
