"""Live plays that were interrupted go on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from sparq_sim import SparqError
from sparq_sim.errors import JournalError
from sparq_sim.journal.entries import EventEntry, MoveEntry
from sparq_sim.journal.reader import read_journal
from sparq_sim.simulation.delivery.budget import Budget
from sparq_sim.simulation.rehearsal import RehearsalError
from tests.live.plant import read_log
from tests.live.playing import cut_journal, entries, plan, play


def count_until(folder: Path, kind: str, which: int = 1) -> int:
    """Return the number of the entry that is the *which*-th of its kind."""
    found = read_journal(folder / "journal.jsonl").entries
    return [entry.n for entry in found if entry.type == kind][which - 1]


def list_keys(folder: Path) -> list[str]:
    return [line["key"] for line in read_log(folder / "log") if "key" in line]


@pytest.mark.parametrize("honours", [True, False])
def test_a_play_goes_on_from_each_entry_of_its_journal(tmp_path: Path, honours: bool) -> None:
    sources = {"environment": {"honours": honours}, "experts": {"lab": lab(tmp_path, honours)}}
    scenario = plan(tmp_path, rounds=3, **sources)
    whole = play(scenario, tmp_path / "out")
    moves = [entry.point for entry in entries(tmp_path / "out", MoveEntry)]
    for cut in range(len(read_journal(tmp_path / "out" / "journal.jsonl").entries)):
        out = tmp_path / f"cut-{cut}"
        out.mkdir()
        shutil.copy(tmp_path / "out" / "journal.jsonl", out)
        cut_journal(out, cut)
        before = [entry.point for entry in entries(out, MoveEntry)]
        trace = play(scenario, out, resume=True)
        assert before == moves[: len(before)]
        assert trace.points[: len(before)].tolist() == moves[: len(before)]
        assert trace.rounds["round"].tolist() == [1, 2, 3]
        assert trace.spent == trace.replies["cost"].sum()
        assert read_journal(out / "journal.jsonl").to_trace() == trace
        if honours:  # A step is written whole; only a cut within one leaves what was never sent.
            unsent = trace.replies["reason"] == "interrupted"
            assert trace.digest() == whole.digest() or unsent.any() or trace.spent == whole.spent


def lab(folder: Path, honours: bool, **channel: Any) -> dict[str, Any]:
    return {
        "kind": "tests.live.plant:Lab",
        "log": str(folder / "log"),
        "honours": honours,
        "channel": {"cost": 0.5, **channel},
    }


def interrupt(folder: Path, *, honours: bool, **fields: Any) -> Any:
    """Play, and cut the journal after the first step, as a crash would."""
    sources = {"environment": {"honours": honours}, "experts": {"lab": lab(folder, honours)}}
    scenario = plan(folder, rounds=3, **{**sources, **fields})
    play(scenario, folder / "out")
    cut_journal(folder / "out", count_until(folder / "out", "ask", 2))
    (folder / "log").unlink()
    return scenario


def test_open_questions_are_sent_again_by_the_same_key_and_their_answers_count(
    tmp_path: Path,
) -> None:
    scenario = interrupt(tmp_path, honours=True)
    header = read_journal(tmp_path / "out" / "journal.jsonl").header
    trace = play(scenario, tmp_path / "out", resume=True)
    assert list_keys(tmp_path)[:2] == [f"{header.play}/reward/1/all", f"{header.play}/lab/100/all"]
    assert set(trace.replies["fate"]) == {"answered"}
    assert (trace.rounds["reward"] > 0).all()
    assert trace.spent == 1.5


def test_open_questions_of_others_have_failed_as_interrupted(tmp_path: Path) -> None:
    scenario = interrupt(tmp_path, honours=False)
    trace = play(scenario, tmp_path / "out", resume=True)
    assert not any(key.endswith(("/reward/1/all", "/lab/100/all")) for key in list_keys(tmp_path))
    failed = trace.replies["reason"] == "interrupted"
    assert trace.replies["source"][failed].tolist() == ["lab", "lab", "reward"]
    assert trace.replies["heard"][failed].all()
    assert trace.spent == 1.5
    heard = entries(tmp_path / "out", MoveEntry)[1].heard
    assert len(heard) == 2


@pytest.mark.parametrize("charged", ["asked", "served", "answered"])
def test_what_is_sent_again_is_charged_once(tmp_path: Path, charged: str) -> None:
    experts = {"lab": lab(tmp_path, True, charged=charged)}
    scenario = interrupt(tmp_path, honours=True, experts=experts)
    trace = play(scenario, tmp_path / "out", resume=True)
    assert trace.spent == trace.replies["cost"].sum() == 1.5


@pytest.mark.parametrize("policy", [{"rate": {"points": 2, "every": 50.0}}, {"retries": 2}])
def test_questions_that_were_held_back_fail_as_interrupted(
    tmp_path: Path, policy: dict[str, Any]
) -> None:
    scenario = plan(tmp_path, rounds=4, experts={"lab": lab(tmp_path, True, policy=policy)})
    play(scenario, tmp_path / "out")
    cut_journal(tmp_path / "out", count_until(tmp_path / "out", "turn", 2))
    trace = play(scenario, tmp_path / "out", resume=True)
    columns = (trace.replies[name].tolist() for name in ("source", "query", "row"))
    ends = list(zip(*columns, strict=True))
    assert len(ends) == len(set(ends)) == 12
    if "rate" in policy:
        assert "interrupted" in trace.replies["reason"]


def test_a_journal_whose_last_line_was_cut_goes_on(tmp_path: Path) -> None:
    scenario = interrupt(tmp_path, honours=True)
    file = tmp_path / "out" / "journal.jsonl"
    with file.open("ab") as journal:
        journal.write(b'{"type":"reply","n":4,"uni')
    trace = play(scenario, tmp_path / "out", resume=True)
    assert trace.rounds["round"].tolist() == [1, 2, 3]
    (resumed,) = (e for e in entries(tmp_path / "out", EventEntry) if e.what == "resumed")
    assert resumed.numbers["cut_bytes"] == 26


def test_before_the_first_move_the_safe_state_of_the_start_is_applied(tmp_path: Path) -> None:
    scenario = plan(tmp_path, environment={"safe": "apply [0.5]"})
    play(scenario, tmp_path / "out")
    cut_journal(tmp_path / "out", 0)
    (tmp_path / "log").unlink()
    play(scenario, tmp_path / "out", resume=True)
    moments = [line.get("moment") for line in read_log(tmp_path / "log")]
    assert [moment for moment in moments if moment] == ["start", "end"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"seed": 4}, "differs in seed"),
        ({"rounds": 7}, "differs in rounds"),
        ({"environment": {"takes": 0.01}}, "differs in environment"),
        (
            {"optimizers": {"prober": {"kind": "tests.live.plant:Prober", "mistake": 0.1}}},
            "differs in optimizer",
        ),
    ],
)
def test_another_play_is_refused_with_what_differs(
    tmp_path: Path, fields: dict[str, Any], told: str
) -> None:
    interrupt(tmp_path, honours=False)
    kept = (tmp_path / "out" / "journal.jsonl").read_bytes()
    other = plan(tmp_path, **{"rounds": 3, "experts": {"lab": lab(tmp_path, False)}, **fields})
    with pytest.raises(SparqError, match=f"begun with another scenario; it {told}"):
        play(other, tmp_path / "out", resume=True)
    assert (tmp_path / "out" / "journal.jsonl").read_bytes() == kept
    assert not (tmp_path / "log").exists()


def test_an_optimizer_that_does_something_else_now_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = interrupt(tmp_path, honours=False)
    from tests.live.plant import ProberAgent

    as_before = ProberAgent.ask

    def ask(self: ProberAgent, now: float) -> Any:
        self._sum += 0.25
        return as_before(self, now)

    monkeypatch.setattr(ProberAgent, "ask", ask)
    with pytest.raises(RehearsalError, match=r"round 1: .*now plays.*start a new one"):
        play(scenario, tmp_path / "out", resume=True)
    # With the code of before it goes on, and nothing that was spent is forgotten.
    assert read_journal(tmp_path / "out" / "journal.jsonl").to_trace().spent == 0.5
    monkeypatch.setattr(ProberAgent, "ask", as_before)
    assert len(play(scenario, tmp_path / "out", resume=True)) == 3


def test_a_play_that_ended_as_planned_is_refused(tmp_path: Path) -> None:
    scenario = plan(tmp_path)
    play(scenario, tmp_path / "out")
    with pytest.raises(SparqError, match=r"ended as planned \(rounds\).*--out"):
        play(scenario, tmp_path / "out", resume=True)


def test_a_folder_without_a_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SparqError, match=r"no journal\.jsonl"):
        play(plan(tmp_path), tmp_path / "out", resume=True)


def test_a_journal_without_a_whole_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "journal.jsonl").write_text('{"type":"pl')
    with pytest.raises(JournalError, match="no whole first line"):
        play(plan(tmp_path), tmp_path / "out", resume=True)


def test_rates_count_what_was_sent_before(tmp_path: Path) -> None:
    policy = {"rate": {"points": 2, "every": 4.0, "beyond": "refuse"}}
    scenario = plan(tmp_path, rounds=6, experts={"lab": lab(tmp_path, False, policy=policy)})
    whole = play(scenario, tmp_path / "out")
    cut_journal(tmp_path / "out", count_until(tmp_path / "out", "ask", 2))
    trace = play(scenario, tmp_path / "out", resume=True)

    def refused(trace: Any) -> list[int]:
        replies = trace.replies
        rounds: list[int] = replies["round"][replies["fate"] == "rate"].tolist()
        return rounds

    assert refused(trace) == refused(whole)
    assert refused(whole)


def test_a_budget_for_a_round_is_not_granted_twice(tmp_path: Path) -> None:
    budget = Budget(per_round=1.0)
    budget.restore([0.25, 0.5], number=3, taken=[0.5])
    assert budget.spent == 0.75
    assert not budget.pay(0.75, 3)
    assert budget.pay(0.5, 3)
    assert budget.pay(1.0, 4)
