"""`explain` tells why a point was played, in words or as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.invoking import ends_with


def test_a_round_is_explained_in_words(study: Path) -> None:
    told = ends_with(0, "explain", str(study), "--play", "sparq-gp-ucb,1", "--round", "20")
    assert told.startswith("Round 20 of 30: sparq-gp-ucb, seed 0, replication 1 (")
    for words in (
        "When it chose, at 20, it had heard:",
        "  reward  19 observations, 1 since the move before; the newest measured 1 before",
        "its upper confidence bound, mean + ",
        "runner-up",
        "below the best, ",
        "By the mean alone it would have played ",
        "It asked expert about ",
        "It noted: kept ",
    ):
        assert words in told


def test_a_round_is_explained_to_programs(study: Path) -> None:
    command = ("explain", str(study), "--play", "tv-gp-ucb", "--round", "20", "--json")
    told = json.loads(ends_with(0, *command))
    assert (told["optimizer"], told["number"]) == ("tv-gp-ucb", 20)
    assert [place["what"] for place in told["places"]][:2] == ["played", "best"]
    assert told["asked"] == []


@pytest.mark.parametrize(
    ("play", "number", "reason"),
    [
        ("sparq", "3", "no optimizer is called so: there are: gp-ucb, sparq-gp-ucb"),
        ("uniform,9", "3", "there is no replication '9'; there are: 0, 1"),
        ("uniform", "31", "there is no round 31; the play has rounds 1 to 30"),
    ],
)
def test_a_round_that_is_not_there_is_refused(
    study: Path, play: str, number: str, reason: str
) -> None:
    told = ends_with(2, "explain", str(study), "--play", play, "--round", number)
    assert reason in " ".join(told.split())
