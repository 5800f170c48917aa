from __future__ import annotations

from collections.abc import Callable, Collection
from math import nan
from pathlib import Path

import numpy as np
import pytest
from pyarrow import csv as pyarrow_csv
from pyarrow import parquet
from pydantic import ValidationError

from sparq_environments.moving_peaks import MovingPeaks
from sparq_experts.replay import Replay
from sparq_experts.truth import Truth
from sparq_sim import (
    Box,
    Channel,
    Failure,
    Query,
    Results,
    Rules,
    Scenario,
    SparqError,
    Study,
    play,
)
from sparq_sim.analysis.export import export
from sparq_sim.arrays import all_rows
from sparq_sim.journal.entries import Header
from sparq_sim.journal.writer import JournalWriter
from sparq_sim.scenario.plugins import ExpertEntry
from sparq_sim.simulation.records import Fate, Record
from sparq_sim.study.executors import InProcess
from sparq_sim.testing import Asker, Slope, check_expert
from tests.experts import consult

TABLE = """time,x0,value,std
0,0.2,10,0.1
1,0.2,11,0.1
2,0.2,12,0.1
0,0.8,20,0.2
4,0.8,24,0.3
3,0.5,33,0.4
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "table.csv"
    file.write_text(TABLE, encoding="utf-8")
    return file


def written(folder: Path, text: str) -> Path:
    file = folder / "other.csv"
    file.write_text(text, encoding="utf-8")
    return file


def test_it_obeys_the_laws(table: Path) -> None:
    check_expert(Replay(file=table, reach=1.0))


def test_it_tells_the_latest_that_was_recorded_by_now_with_its_date(table: Path) -> None:
    answers = consult(Replay(file=table), [0.5, 1.0, 1.9, 7.0], [0.2]).answers
    assert [answer.values[0] for answer in answers] == [10, 11, 11, 12]
    assert [answer.measured_at for answer in answers] == [0, 1, 1, 2]
    assert {answer.stds[0] for answer in answers} == {0.1}


def test_the_nearest_place_counts_of_which_something_is_known_by_now(table: Path) -> None:
    early, late = consult(Replay(file=table, reach=0.5), [1.5, 3.5], [0.55]).answers
    assert (early.values[0], late.values[0]) == (20, 33)


def test_what_lies_beyond_its_reach_fails(table: Path) -> None:
    heard = consult(Replay(file=table, reach=0.05), [5.0], [0.1, 0.16, 0.84, 0.3])
    assert heard.answers[0].rows.tolist() == [1, 2]
    assert heard.answers[0].values.tolist() == [12, 24]
    assert heard.failures[0].rows.tolist() == [0, 3]


def test_where_nothing_is_near_it_says_so(table: Path) -> None:
    (failure,) = consult(Replay(file=table), [5.0], [0.3]).failures
    assert "nothing recorded by now" in failure.reason


def test_a_query_is_dated_by_its_oldest_answer_and_split_rows_each_by_their_own(
    table: Path,
) -> None:
    def dates(*, split: bool) -> list[float]:
        heard = consult(Replay(file=table), [5.0], [0.2, 0.8], channel=Channel(split=split))
        return [answer.measured_at for answer in heard.answers]

    assert dates(split=False) == [2.0]
    assert dates(split=True) == [2.0, 4.0]


def test_a_play_may_begin_within_the_table(table: Path) -> None:
    expert = Replay(file=table, begins_at=1.5)
    answers = consult(expert, [0.6, 1.0], [0.2]).answers
    assert [answer.values[0] for answer in answers] == [12, 12]
    assert answers[0].measured_at == 0.5


def test_csv_and_parquet_say_the_same(table: Path) -> None:
    other = table.with_suffix(".parquet")
    parquet.write_table(pyarrow_csv.read_csv(table), other)
    both = [
        consult(Replay(file=file, reach=1.0), [0.0, 2.0, 5.0], [0.1, 0.6]).answers
        for file in (table, other)
    ]
    for one, another in zip(*both, strict=True):
        assert one.values.tolist() == another.values.tolist()
        assert one.measured_at == another.measured_at


def test_a_part_of_a_table_can_be_chosen(tmp_path: Path) -> None:
    text = "time,x0,value,site,year\n0,0.5,1,north,1999\n0,0.5,2,south,1999\n0,0.5,3,south,2000\n"
    file = written(tmp_path, text)
    expert = Replay(file=file, where=(("site", "south"), ("year", 1999)))
    assert consult(expert, [1.0]).answers[0].values.tolist() == [2.0]


# An earlier study


def studied(folder: Path, replications: int = 1, **changes: object) -> Results:
    experts = {
        "lab": ExpertEntry(expert=Truth(), channel=Channel(noise=0.1, transit=0.5, loss=0.2))
    }
    scenario = Scenario.model_validate(
        {
            "environment": Slope(),
            "experts": experts,
            "optimizers": {"asker": Asker(batch=3)},
            "rounds": 8,
            "replications": replications,
            "record": "full",
            **changes,
        }
    )
    study = Study(scenario, folder)
    study.run(InProcess())
    return study.results


def replayed(file: Path, *where: tuple[str, str | int]) -> list[tuple[float, float]]:
    """Replay what the lab said about the point that was asked for most."""
    expert = Replay(file=file, where=(("source", "lab"), *where), reach=2.0)
    answers = consult(expert, [1.0, 3.0, 9.5], [0.5]).answers
    return [(answer.values[0], answer.measured_at) for answer in answers]


def test_it_tells_what_an_expert_of_an_earlier_study_answered(tmp_path: Path) -> None:
    study = studied(tmp_path / "study")
    replies = study.table("replies").to_pydict()
    answered = [i for i, fate in enumerate(replies["fate"]) if fate == "answered"]
    told = {
        (replies["value"][i], replies["measured_at"][i])
        for i in answered
        if replies["source"][i] == "lab"
    }
    seen = replayed(tmp_path / "study")
    assert set(seen) <= told
    assert len(set(seen)) > 1


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_exported_replies_say_the_same_as_the_study(tmp_path: Path, suffix: str) -> None:
    study = studied(tmp_path / "study")
    file = tmp_path / f"replies{suffix}"
    export(study, file, "replies")
    assert replayed(file) == replayed(tmp_path / "study")


def test_replications_are_not_mixed(tmp_path: Path) -> None:
    studied(tmp_path / "study", replications=2)
    with pytest.raises(
        SparqError, match=r"several replication \(0, 1\), .*: where = \[\[\"replication\", 0\]\]"
    ):
        replayed(tmp_path / "study")
    assert replayed(tmp_path / "study", ("replication", 0)) != replayed(
        tmp_path / "study", ("replication", 1)
    )


@pytest.mark.parametrize("swept", [False, True])
def test_plays_of_several_seeds_are_not_mixed_and_one_can_be_chosen(
    tmp_path: Path, swept: bool
) -> None:
    for changes in [{"sweep": {"seed": (3, 4)}}] if swept else [{"seed": 3}, {"seed": 4}]:
        studied(tmp_path / "study", **changes)
    with pytest.raises(SparqError, match=r'several seed \(3, 4\).* where = \[\["seed", 3\]\]'):
        replayed(tmp_path / "study")
    first, second = (replayed(tmp_path / "study", ("seed", seed)) for seed in (3, 4))
    assert first != second


@pytest.mark.parametrize("exported", [False, True])
def test_environments_that_are_swept_are_not_mixed(tmp_path: Path, exported: bool) -> None:
    world, sweep = MovingPeaks(dimensions=1), {"environment.peaks": (2, 3)}
    study = studied(tmp_path / "study", environment=world, sweep=sweep)
    file = tmp_path / "study"
    if exported:
        file = tmp_path / "replies.csv"
        export(study, file, "replies")
    told = r'several environment.peaks \(2, 3\).* where = \[\["environment.peaks", 2\]\]'
    with pytest.raises(SparqError, match=told):
        replayed(file)
    first, second = (replayed(file, ("environment.peaks", peaks)) for peaks in (2, 3))
    assert first != second


# Bad tables


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("time,x0,value\n0,0.5,1\n1,0.5,high\n", r"other.csv, line 3, value: 'high' is no number"),
        ("time,x0,value\n0,,1\n", r"line 2, x0: '' is no number"),
        ("time,x0,value\ninf,0.5,1\n", r"line 2, time: 'inf' is no number"),
        ("time,x0,value,std\n0,0.5,1,-1\n", r"line 2, std: -1.0 is negative"),
        ("time,x0,value\n0,0.5\n", r"line 2: 2 cells; the header has 3"),
        (f"time,x0,value\n0,0.5,{'1' * 200_000}\n", r"other.csv, line 2: field larger than"),
        ("time,x,value\n0,0.5,1\n", r"no column 'x0'; its columns are: time, x, value"),
        ("x0,value\n0.5,1\n", r"no column 'time'"),
        ("time,x0,value\n", r"has no rows"),
        ("", r"has no rows"),
        ("time,x0,value\n-3,0.5,1\n", r"no row is left from time 0.0 on"),
    ],
)
def test_a_bad_table_is_refused_with_file_line_and_column(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(SparqError, match=reason):
        consult(Replay(file=written(tmp_path, text)), [1.0])


def test_a_part_that_is_not_there_is_refused_with_those_that_are(table: Path) -> None:
    with pytest.raises(SparqError, match=r"no row has x0 '0.3'; there are: 0.2, 0.5, 0.8"):
        consult(Replay(file=table, where=(("x0", "0.3"),)), [1.0])


def test_a_file_that_is_missing_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SparqError, match=r"gone.csv cannot be read: No such file"):
        consult(Replay(file=tmp_path / "gone.csv"), [1.0])
    with pytest.raises(SparqError, match=r"table.xlsx: expected a .csv or .parquet file"):
        consult(Replay(file=tmp_path / "table.xlsx"), [1.0])
    (tmp_path / "fake.parquet").write_bytes(b"nothing of the kind")
    with pytest.raises(SparqError, match=r"fake.parquet is no Parquet file"):
        consult(Replay(file=tmp_path / "fake.parquet"), [1.0])
    (tmp_path / "latin.csv").write_bytes("time,x0,value,Ort\n0,0.5,1,K\xf6ln".encode("latin-1"))
    with pytest.raises(SparqError, match=r"latin.csv is not a text file in UTF-8"):
        consult(Replay(file=tmp_path / "latin.csv"), [1.0])


def test_a_table_is_read_once_before_the_play_not_within_it(table: Path) -> None:
    started = Replay(file=table, reach=1.0)
    with pytest.raises(SparqError, match="no column 'x1'"):
        play(Asker(), Slope(place="square"), Rules(rounds=3), experts={"expert": started})


def test_blank_lines_are_no_rows(table: Path) -> None:
    expert = Replay(file=table)
    before = consult(expert, [7.0], [0.2, 0.8]).answers[0].values.tolist()
    table.write_text(TABLE.replace("value,std\n", "value,std\n\n") + "\n\n", encoding="utf-8")
    assert consult(expert, [7.0], [0.2, 0.8]).answers[0].values.tolist() == before


def test_a_tilde_is_home(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(table.parent))
    (answer,) = consult(Replay(file=Path("~/table.csv")), [0.5], [0.2]).answers
    assert answer.values.tolist() == [10.0]


# Journals.


def heard_at(asked_at: float, value: float, *, number: int = 1, place: float = 0.5) -> Record:
    """A reply to a question about a place: measured after 0.5, and there after 1.5."""
    query = Query(number, "lab", np.array([[place]]), asked_at)
    answer = query.answer([value], stds=0.1, measured_at=asked_at + 0.5, arrived_at=asked_at + 1.5)
    return Record(answer, Fate.ANSWERED, True, 1, "agent", asked_at, asked_at)


def failed_at(asked_at: float, place: float, fate: Fate = Fate.LATE, *, number: int = 9) -> Record:
    query = Query(number, "lab", np.array([[place]]), asked_at)
    failure = Failure(query, all_rows(1), f"it was {fate}", asked_at, asked_at + 2.0)
    return Record(failure, fate, fate != Fate.LOST, 1, "agent", nan, nan)


def told_at(moment: float, value: float) -> Record:
    query = Query(-1, "lab", np.array([[0.5]]), moment)
    return Record(query.answer([value]), Fate.ANSWERED, True, 1, "lab", moment, moment)


@pytest.fixture
def journal(tmp_path: Path) -> Callable[..., Path]:
    def write(*records: Record, superseded: Collection[Record] = ()) -> Path:
        file = tmp_path / "play.jsonl"
        header = Header(
            play="0" * 32,
            unix=0.0,
            seconds=None,
            optimizer="uniform",
            seed=0,
            replication=0,
            period=1.0,
            rounds=9,
            domain=Box(0.0, 1.0),
        )
        with JournalWriter.create(file, header) as writer:
            for record in records:
                is_superseded = record in superseded
                writer.reply(record, superseded=is_superseded, at=record.reply.arrived_at)
        return file

    return write


def test_of_a_journal_the_answer_asked_for_at_the_nearest_moment_counts(
    journal: Callable[..., Path],
) -> None:
    file = journal(heard_at(2.0, 20.0), heard_at(4.0, 40.0, number=2))
    answers = consult(Replay(file=file), [0.5, 2.9, 3.1, 9.0]).answers
    assert [answer.values[0] for answer in answers] == [20, 20, 40, 40]
    assert {answer.stds[0] for answer in answers} == {0.1}


def test_of_a_journal_answers_come_as_late_and_are_dated_as_then(
    journal: Callable[..., Path],
) -> None:
    file = journal(heard_at(2.0, 20.0))
    (answer,) = consult(Replay(file=file), [5.0]).answers
    assert (answer.arrived_at, answer.measured_at) == (6.5, 5.5)
    (prompt,) = consult(Replay(file=file, latency=False), [5.0]).answers
    assert (prompt.arrived_at, prompt.measured_at) == (5.0, 5.0)


def test_of_a_journal_answers_asked_for_at_one_moment_take_turns(
    journal: Callable[..., Path],
) -> None:
    file = journal(heard_at(2.0, 21.0), heard_at(2.0, 22.0, number=2))
    answers = consult(Replay(file=file), [2.0, 2.0, 2.0]).answers
    assert [answer.values[0] for answer in answers] == [21, 22, 21]


def test_of_a_journal_what_failed_fails_again_and_what_was_lost_is_lost(
    journal: Callable[..., Path],
) -> None:
    file = journal(
        heard_at(2.0, 20.0),
        failed_at(2.0, 0.3),
        failed_at(2.0, 0.4, Fate.LOST, number=8),
    )
    late, *_ = consult(Replay(file=file), [3.0], [0.3]).failures
    assert (late.reason, late.arrived_at) == ("it was late", 5.0)
    assert not consult(Replay(file=file), [3.0], [0.4]).records
    # A point of a query fails alone.
    some = consult(Replay(file=file), [3.0], [0.5, 0.3])
    assert some.answers[0].rows.tolist() == [0]
    assert some.failures[0].reason == "it was late"


def test_of_a_journal_an_attempt_that_another_followed_does_not_count(
    journal: Callable[..., Path],
) -> None:
    first = failed_at(2.0, 0.5)
    answer = heard_at(2.0, 20.0, number=9)
    (heard,) = consult(Replay(file=journal(first, answer, superseded=[first])), [2.0]).answers
    assert heard.values[0] == 20.0


def test_what_was_not_asked_within_reach_is_not_in_the_journal(
    journal: Callable[..., Path],
) -> None:
    file = journal(heard_at(2.0, 20.0))
    (failure,) = consult(Replay(file=file), [2.0], [0.6]).failures
    assert (failure.reason, failure.arrived_at) == ("not in the journal", 2.0)
    (answer,) = consult(Replay(file=file, reach=0.2), [2.0], [0.6]).answers
    assert answer.values[0] == 20.0
    both = consult(Replay(file=file), [2.0], [0.5, 0.6])
    assert both.failures[0].reason == "not in the journal"


def test_of_a_journal_readings_that_nobody_asked_for_are_sent_again(
    journal: Callable[..., Path],
) -> None:
    file = journal(told_at(2.0, 20.0), told_at(4.5, 40.0))
    answers = consult(Replay(file=file, begins_at=1.0), []).answers
    assert [(answer.arrived_at, answer.values[0]) for answer in answers] == [(1, 20), (3.5, 40)]


def test_a_play_may_begin_within_a_journal(journal: Callable[..., Path]) -> None:
    file = journal(heard_at(2.0, 20.0), heard_at(4.0, 40.0, number=2))
    (answer,) = consult(Replay(file=file, begins_at=3.0), [0.0]).answers
    assert answer.values[0] == 40.0


def test_a_cassette_obeys_the_laws(journal: Callable[..., Path]) -> None:
    file = journal(heard_at(2.0, 20.0))
    check_expert(Replay(file=file, reach=1.0))


def test_fields_of_tables_and_of_journals_are_not_mixed(tmp_path: Path, table: Path) -> None:
    with pytest.raises(ValidationError, match="of a journal, choose a source"):
        Replay(file=tmp_path / "play.jsonl", where=(("source", "lab"),))
    with pytest.raises(ValidationError, match="source and latency are for a journal"):
        Replay(file=table, source="lab")


def test_a_journal_is_checked_before_the_play(tmp_path: Path, journal: Callable[..., Path]) -> None:
    with pytest.raises(SparqError, match=r"gone\.jsonl cannot be read: No such file"):
        Replay(file=tmp_path / "gone.jsonl").check_play(9.0)
    Replay(file=journal(heard_at(2.0, 20.0))).check_play(9.0)
