"""A user names a play by how its key begins, or by what was played."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from sparq_sim.errors import SparqError
from sparq_sim.study.choice import choose_play, name_in_words
from sparq_sim.study.results import Results
from sparq_sim.study.store import PlayId, StoredSummary
from sparq_sim.study.store.codec import PlayFiles, TableName


class _Shelf:
    """Keeps summaries alone."""

    def __init__(self, *plays: PlayId) -> None:
        self._kept = {
            each.key: StoredSummary(each, "rounds", "", measures={}, broken={}, ended="rounds")
            for each in plays
        }

    def keep(self, files: PlayFiles) -> None:
        raise NotImplementedError

    def finished(self) -> Mapping[str, StoredSummary]:
        return self._kept

    def load(self, key: str, table: TableName) -> pa.Table:
        raise NotImplementedError


def _study(*plays: PlayId) -> Results:
    return Results(_Shelf(*plays), plays)


def _play(key: str, optimizer: str, replication: int = 0, **setting: object) -> PlayId:
    paths = {f"experts.sage.{name}": value for name, value in setting.items()}
    return PlayId(key, "", optimizer, paths, seed=0, replication=replication)


PLAYS = _study(
    _play("a1" * 16, "uniform"),
    _play("ab" * 16, "uniform", 1),
    _play("c1" * 16, "sparq", transit=2.0),
    _play("c2" * 16, "sparq", 1, transit=2.0),
    _play("d1" * 16, "sparq", transit=10.0),
    _play("e1" * 16, "tabled", faults='{"every":600.0,"kind":"periodic"}'),
    _play("e2" * 16, "tabled", faults="[0,1]"),
    _play("f1" * 16, "parted", split=True),
    _play("f2" * 16, "parted", split=False),
)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("ab", "ab"),
        ("AB" * 16, "ab"),
        ("uniform", "a1"),
        ("uniform,1", "ab"),
        ("uniform, seed=0, replication=1", "ab"),
        ("sparq,transit=2", "c1"),
        ("sparq,transit=2,1", "c2"),
        ("sparq,experts.sage.transit=10.0", "d1"),
        ('tabled,faults={"every":600.0,"kind":"periodic"}', "e1"),
        ("tabled,faults=[0, 1],0", "e2"),
        ("parted,split=false", "f2"),
    ],
)
def test_a_play_is_found_by_its_key_or_by_what_was_played(text: str, key: str) -> None:
    assert choose_play(PLAYS, text).key == key * 16


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a", "2 keys begin so; write more of it: a1a1a1a1 is uniform, seed 0, replication 0; ab"),
        ("", "no optimizer is called so: there are: parted, sparq, tabled, uniform"),
        ("sparqq", "did you mean 'sparq'?"),
        ("uniform,7", "there is no replication '7'; there are: 0, 1"),
        ("uniform,seed=7", "there is no seed '7'; there are: 0"),
        ("uniform,transit=2", "'transit' is not swept"),
        ("sparq,transit=3", "transit was never 3; there are: 2, 10"),
        ("sparq", "sparq played in 2 settings; add which, as in sparq,transit=2.0; there are: "),
    ],
)
def test_a_play_that_is_not_clear_is_refused_with_those_there_are(text: str, words: str) -> None:
    with pytest.raises(SparqError) as told:
        choose_play(PLAYS, text)
    assert words in str(told.value)


@pytest.mark.parametrize("name", ["tabled", "parted"])
def test_every_setting_that_an_error_names_is_found_as_it_is_written(name: str) -> None:
    with pytest.raises(SparqError) as told:
        choose_play(PLAYS, name)
    for text in str(told.value).partition("there are: ")[2].split("; "):
        assert choose_play(PLAYS, f"{name},{text}").optimizer == name


def test_a_play_in_words_tells_what_tells_it_from_others() -> None:
    assert name_in_words(choose_play(PLAYS, "d1")) == "sparq (transit 10), seed 0, replication 0"
