"""Pauses: a play and its clock stand still, and bounds may change meanwhile."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from sparq_sim.domain import Box
from sparq_sim.fields import ScenarioString
from sparq_sim.journal.entries import EventEntry, MoveEntry
from sparq_sim.live import pause as pausing
from sparq_sim.live.pause import Notice, PauseCondition, make_condition, read_notice
from sparq_sim.scenario.live_table import PauseCommand, PauseFile
from sparq_sim.scenario.model import Scenario
from tests.live.playing import cut_journal, entries, plan, play

BOUNDS = [[0.6, 0.7]]


class Scripted:
    """A condition that says at each look what it was told to."""

    def __init__(self, *notices: Notice | None) -> None:
        self._notices = iter(notices)

    async def __call__(self) -> Notice | None:
        return next(self._notices, None)


def ask(condition: PauseCondition) -> Notice | None:
    async def main() -> Notice | None:
        return await condition()

    return asyncio.run(main())


def list_events(folder: Path) -> list[str]:
    return [entry.what for entry in entries(folder / "out", EventEntry) if entry.what != "late"]


def test_the_clock_stands_still_while_a_play_is_paused(tmp_path: Path) -> None:
    condition = Scripted(None, Notice("tea"), Notice("tea"), Notice("tea"))
    trace = play(plan(tmp_path), tmp_path / "out", pause=condition)
    assert trace.rounds["played_at"].tolist() == [1, 2, 3, 4, 5, 6]
    paused, continued = entries(tmp_path / "out", EventEntry)
    assert paused.text == "paused before round 2: tea"
    assert (continued.what, continued.at) == ("continued", 2.0)
    assert continued.numbers["seconds"] == pytest.approx(3 * pausing.CHECK_EVERY)


def test_answers_that_come_during_a_pause_are_recorded(tmp_path: Path) -> None:
    lab = {"kind": "tests.live.plant:Lab", "log": str(tmp_path / "log"), "takes": 1.2}
    pause = Scripted(None, Notice("tea"), Notice("tea"), Notice("tea"), Notice("tea"))
    trace = play(plan(tmp_path, experts={"lab": lab}), tmp_path / "out", pause=pause)
    of_first = trace.replies["query"] == 100
    assert trace.replies["arrived_at"][of_first].tolist() == [2.0, 2.0]
    assert trace.replies["fate"][of_first].tolist() == ["answered", "answered"]


def test_an_agent_that_cannot_be_restricted_is_moved_within_the_bounds(tmp_path: Path) -> None:
    scenario = plan(tmp_path, rounds=8)
    pause = Scripted(None, None, Notice("narrower", BOUNDS))
    trace = play(scenario, tmp_path / "out", pause=pause)
    assert ((trace.points[2:] >= 0.6) & (trace.points[2:] <= 0.7)).all()
    assert (trace.points[:2] < 0.6).any() or (trace.points[:2] > 0.7).any()
    assert (trace.rounds["note_moved_within"][2:] > 0).any()
    assert list_events(tmp_path) == ["paused", "continued", "bounds"]


def test_a_move_that_was_thought_before_is_carried_out_within_new_bounds(tmp_path: Path) -> None:
    # By the rules, the agent thinks for longer than a round: its moves wait for the next one.
    scenario = plan(tmp_path, rounds=8, thinking=1.5)
    pause = Scripted(None, None, Notice("narrower", BOUNDS))
    trace = play(scenario, tmp_path / "out", pause=pause)
    later = trace.rounds["moved"] & (trace.rounds["round"] >= 3)
    assert ((trace.points[later] >= 0.6) & (trace.points[later] <= 0.7)).all()
    moves = entries(tmp_path / "out", MoveEntry)
    assert any(move.at - move.now > 1.0 for move in moves)
    cut_journal(tmp_path / "out", moves[-1].n)
    again = play(scenario, tmp_path / "out", resume=True)
    assert again.points[:5].tolist() == trace.points[:5].tolist()


@pytest.mark.parametrize("kind", ["prober", "gp-ucb"])
def test_a_play_goes_on_with_the_same_moves_after_bounds_were_changed(
    tmp_path: Path, kind: str
) -> None:
    given: dict[str, Any] = {
        "kind": f"tests.live.plant:{kind.title()}" if kind == "prober" else kind
    }
    if kind == "gp-ucb":
        given |= {"kernel": {"kind": "squared-exponential", "length_scale": 0.3}}
    scenario = plan(tmp_path, rounds=8, optimizers={kind: given})
    pause = Scripted(None, Notice("", BOUNDS), None, None, Notice("", [[0.1, 0.65]]))
    play(scenario, tmp_path / "out", optimizer=kind, pause=pause)
    moves = [entry.point for entry in entries(tmp_path / "out", MoveEntry)]
    last = entries(tmp_path / "out", MoveEntry)[5].n
    cut_journal(tmp_path / "out", last)
    trace = play(scenario, tmp_path / "out", optimizer=kind, resume=True)
    assert trace.points[:6].tolist() == moves[:6]
    assert ((trace.points[4:] >= 0.1) & (trace.points[4:] <= 0.65)).all()
    if kind == "gp-ucb":
        assert "note_moved_within" not in trace.rounds


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ([[0.5, 1.5]], "reach beyond the domain"),
        ([[0.1, 0.2], [0.3, 0.4]], "cannot be used"),
        ([[0.7, 0.6]], "cannot be used"),
        ("wide", "cannot be used"),
        (7, "cannot be used"),
        ([["a", "b"]], "cannot be used"),
        ([[float("nan"), 0.5]], "cannot be used"),
    ],
)
def test_wrong_bounds_are_refused_and_those_of_before_stay(
    tmp_path: Path, bounds: object, told: str
) -> None:
    notice = Notice("", bounds)
    trace = play(plan(tmp_path), tmp_path / "out", pause=Scripted(notice, notice))
    assert list_events(tmp_path) == ["paused", "bounds refused", "continued"]
    assert told in entries(tmp_path / "out", EventEntry)[1].text
    assert "note_moved_within" not in trace.rounds


def test_bounds_leave_some_of_the_sites(tmp_path: Path) -> None:
    scenario = _sites()
    empty, few = Notice("", [[0.1, 0.2], [0.1, 0.2]]), Notice("", [[0.0, 0.6], [0.4, 0.6]])
    trace = play(scenario, tmp_path / "out", pause=Scripted(empty, few))
    assert "hold none of the sites" in entries(tmp_path / "out", EventEntry)[1].text
    assert {tuple(point) for point in trace.points.tolist()} == {(0.0, 0.5), (0.5, 0.5)}
    assert (trace.rounds["note_moved_within"] > 0).any()


def _sites() -> Scenario:
    given: dict[str, Any] = {
        "rounds": 12,
        "environment": {"kind": "sparq_sim.testing:Slope", "place": "sites"},
        "optimizers": ["uniform"],
    }
    return Scenario.model_validate(given, context={"allow_import": True})


def test_a_file_pauses_while_it_exists(tmp_path: Path) -> None:
    file = tmp_path / "pause.toml"
    look = make_condition(PauseFile(file=file))
    assert ask(look) is None
    file.write_text("")
    assert ask(look) == Notice(f"{file} exists")
    file.write_text('reason = "cleaning"\nbounds = [[0.25, 0.5]]\n')
    assert ask(look) == Notice("cleaning", [[0.25, 0.5]])
    file.write_bytes(b"\xff no TOML\nat all")
    told = ask(look)
    assert told is not None
    assert told.reason.endswith("no TOML")
    file.unlink()
    file.mkdir()
    told = ask(look)
    assert told is not None
    assert "directory" in told.reason


@pytest.mark.parametrize(
    ("command", "timeout", "reason"),
    [
        ((sys.executable, "-c", ""), 60.0, None),
        ((sys.executable, "-c", "exit(3)"), 60.0, "ended with code 3"),
        ((sys.executable, "-c", "print('too hot'); exit(1)"), 60.0, "too hot"),
        ((sys.executable, "-c", "import time; time.sleep(600)"), 0.1, "did not end within 0.1 s"),
        (("/no/such/program",), 60.0, "cannot be run: No such file"),
    ],
)
def test_a_command_pauses_unless_it_ends_well(
    command: tuple[str, ...], timeout: float, reason: str | None
) -> None:
    notice = ask(make_condition(PauseCommand(command=command, timeout=timeout)))
    assert (notice is None) is (reason is None)
    assert notice is None or (reason or "") in notice.reason


def test_a_relative_program_of_a_scenario_starts_from_its_folder(tmp_path: Path) -> None:
    written = [ScenarioString.within(tmp_path, each) for each in ("./check", "./data")]
    assert PauseCommand.model_validate({"command": written}).command == (
        str(tmp_path / "check"),
        "./data",
    )


def test_a_file_of_the_scenario_pauses_a_play_in_real_time(tmp_path: Path) -> None:
    file = tmp_path / "pause.toml"
    scenario = plan(tmp_path, live={"seconds": 0.02, "pause": {"kind": "file", "file": str(file)}})
    file.write_text("bounds = [[0.4, 0.45]]\n")

    def watch(news: object) -> None:
        if isinstance(news, str) and news.startswith("paused"):
            asyncio.get_running_loop().call_later(0.05, file.unlink)

    from sparq_sim.live.play import live

    trace = asyncio.run(live(scenario, folder=tmp_path / "out", watch=watch))
    assert Box(0.4, 0.45).contains(trace.points).all()
    assert trace.rounds["played_at"][0] < 6.0


def test_a_notice_may_be_any_text() -> None:
    assert read_notice(b"", default="why").reason == "why"
    assert read_notice(b"two\nlines", default="why").reason == "two"
    assert len(read_notice(b"x" * 999, default="why").reason) == 200
