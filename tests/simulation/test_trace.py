from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from zipfile import ZipFile

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sparq_sim import (
    Channel,
    PluginError,
    Rules,
    Scenario,
    SparqError,
    from_function,
    play,
    play_live,
)
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.simulation.trace import Columns, Trace, first_difference, split_note
from sparq_sim.study.store import FORMAT, keys, provenance
from sparq_sim.study.store.codec import describe_table
from sparq_sim.testing import Asker, Slope, Teller
from tests.simulation.recording import EAST_NORTH, answered, query, traced, turn


def test_a_note_is_a_part_of_a_whole_where_both_have_names() -> None:
    assert split_note("time_scale/10") == ("time_scale", "10")
    assert split_note("of/a/part") == ("of", "a/part")
    for plain in ("width", "/10", "time_scale/"):
        assert split_note(plain) == ("", plain)


def test_parts_of_a_whole_are_saved_in_their_order(tmp_path: Path) -> None:
    notes = {"scale/3": 0.2, "scale/10": 0.5, "scale/1": 0.3}
    traced([turn(notes=notes)]).save(tmp_path / "trace")
    found = [name for name in Trace.load(tmp_path / "trace").rounds if name.startswith("note_")]
    assert found == ["note_scale/3", "note_scale/10", "note_scale/1"]


def test_a_trace_of_what_cannot_be_pickled_can_be_pickled_itself() -> None:
    told = from_function(lambda points, time: np.zeros(len(points)))
    trace = play(Asker(), Slope(), Rules(rounds=3), experts={"told": told})
    copy = pickle.loads(pickle.dumps(trace))
    assert copy == trace
    assert hash(copy) == hash(trace)
    assert copy != play(Asker(), Slope(), Rules(rounds=4), experts={"told": told})
    assert copy.played is None
    plain = play(Asker(), Slope(), Rules(rounds=3))
    assert pickle.loads(pickle.dumps(plain)).played.rules == plain.played.rules  # type: ignore[union-attr] # it was just played


def test_points_of_a_trace_are_the_columns_of_its_coordinates() -> None:
    trace = traced([turn(1), turn(2)])
    assert len(trace) == 2
    assert trace.points.tolist() == [[1.0, -1.0], [2.0, -2.0]]
    assert trace.coordinates == EAST_NORTH


def test_a_trace_shows_itself_in_one_short_line() -> None:
    trace = traced([turn(), turn()], [answered(query(rows=2), [0, 1])])
    told = repr(replace(trace, spent=0.1 + 0.2))
    assert told == "Trace(rounds=2, replies=2, ended='horizon', spent=0.3)"


def test_a_trace_of_rounds_alone_shows_itself_too() -> None:
    told = repr(replace(traced([turn()]), replies={}))
    assert told == "Trace(rounds=1, replies=0, ended='horizon', spent=1.5)"


# Digests
def altered(columns: Columns, name: str) -> Columns:
    """Change the last cell of one column, whatever it holds."""
    column = columns[name].copy()
    if column.dtype.kind == "U":
        column[-1] = column[-1][:-1] + "~" if column[-1] else "~"
    elif column.dtype.kind == "b":
        column[-1] = not column[-1]
    else:
        column[-1] = 99.0 if np.isnan(column[-1]) else np.nextafter(column[-1], 99.0)
    if column.dtype.kind == "i":
        column[-1] = columns[name][-1] + 1
    return {**columns, name: column}


def test_equal_plays_have_equal_digests(trace: Trace) -> None:
    assert replace(trace).digest() == trace.digest()
    assert pickle.loads(pickle.dumps(trace)).digest() == trace.digest()


def test_wall_time_leaves_the_digest_as_it_is() -> None:
    assert traced([turn(wall=0.1)]).digest() == traced([turn(wall=7.0)]).digest()


def test_any_other_cell_changes_the_digest(trace: Trace) -> None:
    digests = {trace.digest()}
    for name in trace.rounds.keys() - {"wall"}:
        digests.add(replace(trace, rounds=altered(trace.rounds, name)).digest())
    for name in trace.replies:
        digests.add(replace(trace, replies=altered(trace.replies, name)).digest())
    assert len(digests) == len(trace.rounds) + len(trace.replies)


def test_how_the_play_ended_changes_the_digest(trace: Trace) -> None:
    others = [
        replace(trace, ended="budget"),
        replace(trace, spent=np.nextafter(1.5, 2.0)),
        replace(trace, coordinates=("north", "east")),
    ]
    assert len({trace.digest(), *(other.digest() for other in others)}) == 4


def test_a_missing_row_changes_the_digest() -> None:
    records = [answered(query(1), [0, 1]), answered(query(2), [0, 1])]
    digests = {traced(records=records[:count]).digest() for count in range(3)}
    digests |= {traced([turn(number) for number in range(count)]).digest() for count in (1, 2)}
    assert len(digests) == 5


def test_an_extra_note_changes_the_digest() -> None:
    assert traced([turn()]).digest() != traced([turn(notes={"beta": 0.0})]).digest()


def with_accounts(trace: Trace, **columns: Any) -> Trace:
    return replace(trace, accounts={"net/nodes": {k: np.array(v) for k, v in columns.items()}})


def test_accounts_change_the_digest_of_all_and_not_that_of_the_rounds(trace: Trace) -> None:
    kept = [
        with_accounts(trace, left=[1.0]),
        with_accounts(trace, left=[2.0]),
        with_accounts(trace, right=[1.0]),
        with_accounts(trace, left=[1.0, 1.0]),
    ]
    assert len({trace.digest(), *(each.digest() for each in kept)}) == 5
    assert {each.digests()[0] for each in kept} == {trace.digests()[0]}
    assert replace(trace, accounts={}).digest() == trace.digest()


def test_the_first_difference_of_accounts_is_told(trace: Trace) -> None:
    one = with_accounts(trace, node=[0, 1], left=[1.0, 2.0])
    assert first_difference(one, with_accounts(trace, node=[0, 1], left=[1.0, 2.0])) is None
    told = first_difference(one, with_accounts(trace, node=[0, 1], left=[1.0, 3.0]))
    assert told == "net/nodes, row 2: left 2.0 and 3.0"
    told = first_difference(one, with_accounts(trace, node=[0], left=[1.0]))
    assert told == "net/nodes: 2 rows and 1"
    assert first_difference(one, trace) == "accounts: only the first has the table net/nodes"


def test_what_is_no_number_differs_from_one_and_not_from_itself(trace: Trace) -> None:
    one = with_accounts(trace, node=[0, 1], left=[1.0, np.nan])
    assert first_difference(one, with_accounts(trace, node=[0, 1], left=[1.0, np.nan])) is None
    told = first_difference(one, with_accounts(trace, node=[0, 1], left=[1.0, 2.0]))
    assert told == "net/nodes, row 2: left nan and 2.0"


def test_columns_in_another_order_of_memory_have_the_same_digest(trace: Trace) -> None:
    strided = {name: np.repeat(column, 2)[::2] for name, column in trace.rounds.items()}
    assert replace(trace, rounds=strided).digest() == trace.digest()


# Saved and loaded
def test_a_saved_trace_comes_back_whole(tmp_path: Path, trace: Trace) -> None:
    trace.save(tmp_path / "play.zip")
    again = Trace.load(tmp_path / "play.zip")
    assert again.digest() == trace.digest()
    assert first_difference(again, trace) is None
    assert again.rounds["wall"].tolist() == trace.rounds["wall"].tolist()
    assert (again.ended, again.spent, again.coordinates) == ("horizon", 1.5, EAST_NORTH)


numbers = st.floats(width=64)


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Make a trace of any numbers and words, as a Recorder never would."""
    rounds, replies = draw(st.integers(0, 4)), draw(st.integers(0, 4))

    def columns(rows: int, texts: Sequence[str]) -> dict[str, Any]:
        names = draw(st.lists(st.sampled_from(["x", "seed", "optimizer", "note_a b"]), unique=True))
        return {
            "round": draw(arrays(np.int64, rows)),
            "moved": draw(arrays(bool, rows)),
            **{name: draw(arrays(float, rows, elements=numbers)) for name in names},
            **{
                name: np.array(draw(st.lists(words, min_size=rows, max_size=rows)), dtype=np.str_)
                for name in texts
            },
        }

    return Trace(
        rounds=columns(rounds, ()),
        replies=draw(st.sampled_from([{}, columns(replies, ["source", "reason"])])),
        coordinates=tuple(draw(st.lists(words, max_size=2))),
        ended=draw(words),
        spent=draw(st.floats(0, 1e300)),
    )


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(trace=traces())
def test_any_trace_keeps_its_digest_through_a_file(tmp_path: Path, trace: Trace) -> None:
    trace.save(tmp_path / "any.zip")
    again = Trace.load(tmp_path / "any.zip")
    assert again.digest() == trace.digest()
    first = (tmp_path / "any.zip").read_bytes()
    again.save(tmp_path / "any.zip")
    assert (tmp_path / "any.zip").read_bytes() == first


def test_a_file_tells_what_was_played_by_whom_and_with_what(tmp_path: Path) -> None:
    scenario = Scenario(
        environment=Slope(),
        experts={"sage": (Teller(), Channel(transit=0.5))},
        optimizers={"calm": Uniform()},
        rounds=3,
        seed=7,
    )
    scenario.play("calm", 2).save(tmp_path / "play.zip")
    told = Trace.load(tmp_path / "play.zip").provenance
    assert (told["optimizer"], told["seed"], told["replication"]) == ("calm", 7, 2)
    assert (told["rounds_planned"], told["live"]) == (3, False)
    assert told["play"] == scenario.fingerprint("calm")
    assert {"sparq-sim", "numpy"} <= told["versions"].keys()


def test_the_tables_within_a_file_are_plain_parquet(tmp_path: Path) -> None:
    trace = play(Asker(), Slope(), Rules(rounds=4), experts={"sage": Teller()})
    trace.save(tmp_path / "play.zip")
    with ZipFile(tmp_path / "play.zip") as archive:
        assert archive.namelist() == ["rounds.parquet", "replies.parquet"]
        archive.extractall(tmp_path)
    table = pq.read_table(tmp_path / "replies.parquet")
    assert table["source"].to_pylist() == trace.replies["source"].tolist()


def test_a_play_of_what_no_file_can_hold_is_saved_all_the_same(tmp_path: Path) -> None:
    expert = from_function(lambda points, time: points.sum(axis=1))
    trace = play(Asker(), Slope(), Rules(rounds=3), experts={"expert": expert})
    trace.save(tmp_path / "play.zip")
    again = Trace.load(tmp_path / "play.zip")
    assert again.digest() == trace.digest()
    with pytest.raises(SparqError, match="could not be written"):
        again.belief_at(1, [[0.5]])


class Loner(Uniform):
    """Takes no part in a scenario with experts."""

    def check_experts(self, names: Collection[str]) -> None:
        if names:
            raise PluginError("works alone")


def test_a_play_that_makes_no_scenario_is_saved_with_the_reason(tmp_path: Path) -> None:
    trace = play(Loner(), Slope(), Rules(rounds=3), experts={"sage": Teller()})
    trace.save(tmp_path / "play.zip")
    again = Trace.load(tmp_path / "play.zip")
    assert again.digest() == trace.digest()
    with pytest.raises(SparqError, match=r"does not tell what was played \(.*works alone.*\)"):
        again.belief_at(1, [[0.5]])


def test_a_play_in_real_time_is_saved_and_says_so(tmp_path: Path) -> None:
    trace = asyncio.run(play_live(Uniform(), Slope(), Rules(rounds=2), seconds=0.2))
    trace.save(tmp_path / "live.zip")
    again = Trace.load(tmp_path / "live.zip")
    assert again.digest() == trace.digest()
    for each in (trace, again):
        with pytest.raises(SparqError, match="played in real time"):
            each.belief_at(1, [[0.5]])


def test_a_trace_replaces_the_file_that_was_there_and_leaves_nothing_else(
    tmp_path: Path, trace: Trace
) -> None:
    path = tmp_path / "play.zip"
    path.write_text("old")
    trace.save(str(path))
    assert Trace.load(str(path)).digest() == trace.digest()
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_trace_is_not_saved_under_what_is_no_name(name: str, trace: Trace) -> None:
    with pytest.raises(SparqError, match="is no name for a file; give one"):
        trace.save(name)


def test_a_trace_is_not_saved_where_there_is_no_folder(tmp_path: Path, trace: Trace) -> None:
    with pytest.raises(SparqError, match=r"there is no folder .*nowhere; make it first"):
        trace.save(tmp_path / "nowhere" / "play.zip")


def test_a_trace_that_cannot_be_written_leaves_the_old_file(tmp_path: Path, trace: Trace) -> None:
    with pytest.raises(SparqError, match=r"cannot write .*nowhere/play\.zip"):
        trace.save(tmp_path / "nowhere" / "play.zip")


def test_what_is_no_trace_is_refused_by_name_with_a_remedy(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "play.zip"
    remedy = "give a file that Trace.save has written"
    with pytest.raises(SparqError, match=rf"cannot read the trace .*play\.zip: No such.*{remedy}"):
        Trace.load(path)
    with pytest.raises(SparqError, match=rf"cannot read the trace .*: Is a directory; {remedy}"):
        Trace.load(tmp_path)
    path.write_text("round,reward")
    with pytest.raises(SparqError, match=rf"play\.zip is no trace; {remedy}"):
        Trace.load(path)
    with ZipFile(path, "w") as archive:
        archive.writestr("letter.txt", "Dear all")
    with pytest.raises(SparqError, match=rf"or no trace: it holds no rounds\.parquet; {remedy}"):
        Trace.load(path)


def test_a_table_of_a_study_is_not_taken_for_a_trace(tmp_path: Path, trace: Trace) -> None:
    trace.save(tmp_path / "play.zip")
    with ZipFile(tmp_path / "play.zip") as archive:
        archive.extractall(tmp_path)
    with pytest.raises(SparqError, match=r"rounds\.parquet is a table.*Results\.open\(FOLDER\)"):
        Trace.load(tmp_path / "rounds.parquet")


def test_a_trace_of_a_newer_format_is_refused(
    tmp_path: Path, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (keys, provenance):
        monkeypatch.setattr(module, "FORMAT", FORMAT + 1)
    trace.save(tmp_path / "play.zip")
    monkeypatch.undo()
    with pytest.raises(SparqError, match=r"play\.zip: .* of format 4, .* use the version that"):
        Trace.load(tmp_path / "play.zip")


def test_no_damage_to_a_file_goes_unnoticed(tmp_path: Path, trace: Trace) -> None:
    path, harmed = tmp_path / "play.zip", Random(0)
    trace.save(path)
    whole = path.read_bytes()
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[harmed.randrange(len(whole))] ^= 1 << harmed.randrange(8)
        path.write_bytes(damaged[: harmed.choice([None, None, harmed.randrange(len(whole))])])
        with suppress(SparqError):  # Nothing but that; where nothing is said, nothing is wrong.
            assert Trace.load(path).digest() == trace.digest()


def test_a_file_that_has_lost_its_replies_is_not_taken_for_one_without(
    tmp_path: Path, trace: Trace
) -> None:
    path = tmp_path / "play.zip"
    trace.save(path)
    with ZipFile(path) as archive:
        rounds = archive.read("rounds.parquet")
    with ZipFile(path, "w") as archive:
        archive.writestr("rounds.parquet", rounds)
    with pytest.raises(SparqError, match=r"holds no replies\.parquet, though"):
        Trace.load(path)


def test_a_file_whose_numbers_were_changed_is_refused(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "play.zip"
    trace.save(path)
    with ZipFile(path) as archive:
        archive.extractall(tmp_path)
    table = pq.read_table(tmp_path / "rounds.parquet")
    told = json.loads(table.schema.metadata[b"sparq_sim"])
    told["spent"] = 0.0
    # Whoever changes it on purpose can make it a checksum as well.
    pq.write_table(describe_table(table, told), tmp_path / "rounds.parquet")
    with ZipFile(path, "w") as archive:
        for name in ("rounds.parquet", "replies.parquet"):
            archive.write(tmp_path / name, name)
    with pytest.raises(SparqError, match="content does not match its digest"):
        Trace.load(path)
