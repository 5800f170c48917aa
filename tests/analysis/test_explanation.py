"""A round is explained by what the agent had heard, believed, asked and got."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sparq_sim.analysis.explanation import Explanation, explain
from sparq_sim.errors import SparqError
from sparq_sim.study.store import FolderStore, StoredPlay
from sparq_sim.study.store.protocol import read_play
from tests.study.plays import stored

LATE = {"sage": {"kind": "truth", "channel": {"noise": 0.1, "transit": 3.0, "loss": 0.2}}}


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> StoredPlay:
    folder = tmp_path_factory.mktemp("play")
    key, _ = stored(folder, experts=LATE)
    return read_play(FolderStore(folder), key)


@pytest.fixture(scope="module")
def explained(play: StoredPlay) -> Explanation:
    return explain(play, 20)


def test_beliefs_are_those_by_which_the_move_was_chosen(
    play: StoredPlay, explained: Explanation
) -> None:
    points = [list(place.point.values()) for place in explained.places]
    belief = play.trace.belief_at(20, points)
    np.testing.assert_allclose([place.mean for place in explained.places], belief.mean)
    np.testing.assert_allclose([place.std for place in explained.places], belief.std)
    assert explained.width == belief.width
    for place in explained.places:
        assert place.ucb == pytest.approx(place.mean + belief.width * place.std)


def test_the_point_played_has_the_highest_bound_and_the_best_the_highest_truth(
    explained: Explanation,
) -> None:
    played, best, *others = explained.places
    assert (played.what, best.what) == ("played", "best")
    assert all(played.ucb >= place.ucb - 1e-9 for place in others)
    assert best.truth - played.truth == pytest.approx(explained.regret)
    assert played.truth == pytest.approx(explained.reward)


def test_late_answers_are_awaited_and_then_heard(play: StoredPlay, explained: Explanation) -> None:
    replies, now = play.trace.replies, explained.chosen_at
    of_sage = replies["source"] == "sage"
    answered = of_sage & (replies["fate"] == "answered") & (replies["arrived_at"] <= now)
    awaited = of_sage & (replies["asked_at"] < now) & (replies["arrived_at"] > now)
    own, sage = explained.heard
    assert (own.source, own.answered, own.new, own.newest_age) == ("reward", 19, 1, 1.0)
    assert (sage.answered, sage.awaited) == (answered.sum(), awaited.sum())
    assert sage.new == (answered & (replies["arrived_at"] == now)).sum()
    assert sage.newest_age == 3.0


def test_what_was_asked_is_told_with_what_became_of_it(
    play: StoredPlay, explained: Explanation
) -> None:
    replies = play.trace.replies
    asked = (replies["round"] == 20) & (replies["source"] == "sage")
    assert len(explained.asked) == asked.sum() == explained.notes["queries"]
    fates = {each.fate for each in explained.asked}
    assert fates <= {"answered", "lost"}
    assert all(np.isfinite(each.value) == (each.fate == "answered") for each in explained.asked)


def test_who_states_no_belief_is_explained_by_the_rest(tmp_path: Path) -> None:
    key, _ = stored(tmp_path, optimizer="uniform")
    explained = explain(read_play(FolderStore(tmp_path), key), 3)
    assert [place.what for place in explained.places] == ["played", "best"]
    assert explained.remarks == ["uniform states no belief, so only the truth is told"]
    assert json.loads(json.dumps(explained.to_json(), allow_nan=False))["width"] is None


def test_what_was_heard_is_found_where_only_rounds_were_recorded(
    tmp_path: Path, explained: Explanation
) -> None:
    key, _ = stored(tmp_path, experts=LATE, record="rounds")
    again = explain(read_play(FolderStore(tmp_path), key), 20)
    assert again.heard == explained.heard
    assert again.places == explained.places


@pytest.mark.parametrize("number", [0, 26])
def test_a_round_that_was_not_played_is_refused(play: StoredPlay, number: int) -> None:
    with pytest.raises(
        SparqError, match=f"there is no round {number}; the play has rounds 1 to 25"
    ):
        explain(play, number)


def test_a_play_that_cannot_be_played_again_is_explained_by_what_is_stored(
    play: StoredPlay, explained: Explanation
) -> None:
    unknown = replace(play, trace=replace(play.trace, provenance={}))
    told = explain(unknown, 20)
    assert told.remarks[0].startswith("what it believed is not known: the trace does not tell")
    assert [place.what for place in told.places] == ["played"]
    assert (told.heard, told.asked) == (explained.heard, explained.asked)
