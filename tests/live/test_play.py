"""Live plays: what is written before anything is done, and safe states whatever happens."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sparq_sim import Channel, SparqError
from sparq_sim.errors import JournalError
from sparq_sim.journal.entries import AskEntry, EventEntry
from sparq_sim.journal.reader import read_journal
from sparq_sim.journal.writer import JournalWriter
from sparq_sim.live.play import UnsafeError, live
from sparq_sim.simulation.start import reduce_if_real
from tests.live.plant import PlantDriver, Prober, read_log
from tests.live.playing import cut_journal, entries, plan, play, without_waiting

SAFE = {"safe": "apply [0.5]"}


def moments(folder: Path) -> list[str]:
    return [line["moment"] for line in read_log(folder / "log") if line["what"] == "safe"]


def list_events(folder: Path) -> list[tuple[str, str]]:
    return [(entry.what, entry.text) for entry in entries(folder / "out", EventEntry)]


def test_a_system_is_made_safe_at_the_start_and_at_the_end(tmp_path: Path) -> None:
    play(plan(tmp_path, environment=SAFE), tmp_path / "out")
    assert moments(tmp_path) == ["start", "end"]
    assert list_events(tmp_path) == [
        (what, f"{moment}: apply [0.5]")
        for moment in ("start", "end")
        for what in ("safe", "safe reached")
    ]
    done = [line["what"] for line in read_log(tmp_path / "log")]
    assert (done[:2], done[-2:]) == (["enter", "safe"], ["safe", "exit"])


def test_hold_does_nothing(tmp_path: Path) -> None:
    play(plan(tmp_path), tmp_path / "out")
    assert (moments(tmp_path), list_events(tmp_path)) == ([], [])


def test_a_play_whose_agent_fails_makes_safe_and_can_go_on(tmp_path: Path) -> None:
    prober = {"kind": "tests.live.plant:Prober", "fails_in": 4}
    scenario = plan(tmp_path, environment=SAFE, optimizers={"prober": prober})
    with pytest.raises(ValueError, match="out of ideas"):
        play(scenario, tmp_path / "out")
    assert moments(tmp_path) == ["start", "failure"]
    assert [line["what"] for line in read_log(tmp_path / "log")][-1] == "exit"
    journal = read_journal(tmp_path / "out" / "journal.jsonl")
    assert (journal.past().ended or "").startswith("failed: ")
    assert len(journal.to_trace()) == 3
    with pytest.raises(ValueError, match="out of ideas"):
        play(scenario, tmp_path / "out", resume=True)


def cancel(scenario: Any, folder: Path, *, when: str) -> None:
    """Play, and cancel it when there is a line of news that begins so."""

    async def main() -> None:
        task = asyncio.ensure_future(live(scenario, folder=folder / "out", watch=watch))

        def stop() -> None:
            task.cancel()

        stops.append(stop)
        await task

    def watch(news: object) -> None:
        told = news if isinstance(news, str) else f"round {getattr(news, 'round', '')}"
        if told.startswith(when):
            stops[0]()

    stops: list[Any] = []
    with pytest.raises(asyncio.CancelledError):
        without_waiting(main())


def test_a_cancelled_play_is_recorded_made_safe_and_goes_on(tmp_path: Path) -> None:
    scenario = plan(tmp_path, environment=SAFE)
    cancel(scenario, tmp_path, when="round 3")
    assert moments(tmp_path) == ["start", "interrupt"]
    journal = read_journal(tmp_path / "out" / "journal.jsonl")
    assert journal.past().ended == "interrupted"
    assert not journal.open_questions()
    trace = play(scenario, tmp_path / "out", resume=True)
    assert trace.rounds["round"].tolist() == [1, 2, 3, 4, 5, 6]
    assert moments(tmp_path) == ["start", "interrupt", "end"]


@pytest.mark.parametrize("policy", [{"fallback": "spare"}, {"retries": 3}])
def test_nothing_is_asked_any_more_when_a_play_is_cancelled(
    tmp_path: Path, policy: dict[str, Any]
) -> None:
    slow = {"kind": "tests.live.plant:Lab", "log": str(tmp_path / "log"), "takes": 100.0}
    spare = {"kind": "tests.live.plant:Lab", "log": str(tmp_path / "spare")}
    experts = {"lab": {**slow, "channel": {"policy": policy}}, "spare": spare}
    scenario = plan(tmp_path, experts=experts)
    cancel(scenario, tmp_path, when="round 2")
    asked = read_journal(tmp_path / "out" / "journal.jsonl").to_trace().replies
    lab = asked["source"] == "lab"
    assert set(asked["reason"][lab]) == {"interrupted"}
    assert asked["heard"][lab].all()
    # What the agent itself has asked of it, the last time perhaps too late to reach it.
    assert (asked["source"] == "spare").sum() == lab.sum()
    assert len(read_log(tmp_path / "spare")) * 2 <= lab.sum()


def test_a_safe_state_that_is_being_reached_is_not_given_up_when_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[str] = []
    tasks: list[asyncio.Task[Any]] = []

    async def slowly(self: PlantDriver, moment: str) -> None:
        if moment != "start":
            tasks[0].cancel()
            await asyncio.sleep(1.0)
        reached.append(moment)

    async def main() -> None:
        tasks.append(
            asyncio.ensure_future(live(plan(tmp_path, environment=SAFE), folder=tmp_path / "out"))
        )
        await tasks[0]

    monkeypatch.setattr(PlantDriver, "make_safe", slowly)
    with pytest.raises(asyncio.CancelledError):
        without_waiting(main())
    assert reached == ["start", "end"]


def test_a_safe_state_is_tried_three_times(tmp_path: Path) -> None:
    play(plan(tmp_path, environment={**SAFE, "unsafe": 2}), tmp_path / "out")
    assert moments(tmp_path) == ["start"] * 3 + ["end"]
    assert [what for what, _ in list_events(tmp_path)] == [
        *("safe", "unsafe", "unsafe", "safe reached"),
        *("safe", "safe reached"),
    ]


def test_a_play_that_was_killed_before_its_safe_state_reaches_it_when_it_is_resumed(
    tmp_path: Path,
) -> None:
    scenario = plan(tmp_path, environment=SAFE)
    whole = play(scenario, tmp_path / "out")
    found = read_journal(tmp_path / "out" / "journal.jsonl").entries
    cut_journal(tmp_path / "out", len(found) - 1)  # Without "safe reached".
    trace = play(scenario, tmp_path / "out", resume=True)
    assert moments(tmp_path) == ["start", "end", "end"]
    assert trace.digest() == whole.digest()
    with pytest.raises(SparqError, match="ended as planned"):
        play(scenario, tmp_path / "out", resume=True)


def test_a_play_goes_on_at_its_own_speed(tmp_path: Path) -> None:
    scenario = plan(tmp_path)
    cancel(scenario, tmp_path, when="round 3")
    with pytest.raises(SparqError, match="leave --speed out"):
        play(scenario, tmp_path / "out", resume=True, speed=7.0)
    play(scenario, tmp_path / "out", resume=True)


def test_a_safe_state_that_cannot_be_reached_is_an_error_that_says_so(tmp_path: Path) -> None:
    scenario = plan(tmp_path, environment={**SAFE, "unsafe": 99})
    with pytest.raises(UnsafeError, match=r"valve is stuck.*tried 3 times; see to the system"):
        play(scenario, tmp_path / "out")
    assert moments(tmp_path) == ["start"] * 3 + ["failure"] * 3
    assert all(line["what"] != "apply" for line in read_log(tmp_path / "log"))


def test_a_system_is_made_safe_where_the_journal_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_before = JournalWriter.ask

    def ask(self: JournalWriter, *given: Any, **more: Any) -> None:
        as_before(self, *given, **more)
        if given[0].question.query.id == 2:
            self._file.path.unlink()

    monkeypatch.setattr(JournalWriter, "ask", ask)
    with pytest.raises(JournalError, match="was deleted while it was being written"):
        play(plan(tmp_path, environment=SAFE), tmp_path / "out")
    assert moments(tmp_path) == ["start", "failure"]
    applied = [line for line in read_log(tmp_path / "log") if line["what"] == "apply"]
    assert len(applied) == 1  # Not the one that could not be made durable.


def test_a_system_is_made_safe_where_nobody_can_be_told(tmp_path: Path) -> None:
    def watch(news: object) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        play(plan(tmp_path, environment={**SAFE, "unsafe": 1}), tmp_path / "out", watch=watch)
    assert moments(tmp_path) == ["start", "start", "failure"]


def test_what_is_asked_and_applied_is_in_the_file_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process reads the file when the plant is asked."""
    seen: list[bool] = []
    as_before = PlantDriver.apply

    async def apply(self: PlantDriver, query: Any, world: Any) -> Any:
        file = tmp_path / "out" / "journal.jsonl"
        child = await asyncio.create_subprocess_exec(
            "cat", str(file), stdout=asyncio.subprocess.PIPE
        )
        told, _ = await child.communicate()
        lines = [json.loads(line) for line in told.splitlines()]
        moves = [line["point"] for line in lines if line["type"] == "move"]
        keys = [line["key"] for line in lines if line["type"] == "ask"]
        seen.append(moves[-1] == query.points[0].tolist() and world.key in keys)
        return await as_before(self, query, world)

    monkeypatch.setattr(PlantDriver, "apply", apply)
    scenario = plan(tmp_path, rounds=3, live={"seconds": 0.05})
    asyncio.run(live(scenario, folder=tmp_path / "out"))
    assert seen
    assert all(seen)


def test_the_name_of_a_request_is_that_in_the_journal(tmp_path: Path) -> None:
    play(plan(tmp_path), tmp_path / "out")
    written = [entry.key for entry in entries(tmp_path / "out", AskEntry)]
    assert written == [line["key"] for line in read_log(tmp_path / "log") if "key" in line]
    assert len(set(written)) == len(written)


def test_a_round_that_begins_late_says_so(tmp_path: Path) -> None:
    prober = {"kind": "tests.live.plant:Prober", "thinks": 0.12}
    scenario = plan(tmp_path, optimizers={"prober": prober}, live={"seconds": 0.05})
    trace = asyncio.run(live(scenario, folder=tmp_path / "out"))
    late = trace.rounds["note_started_late"]
    assert (late[2:5] > 0.01).any()
    assert not trace.rounds["moved"][1]
    told = [entry for entry in entries(tmp_path / "out", EventEntry) if entry.what == "late"]
    assert {entry.numbers["round"] for entry in told} == {
        number for number, by in zip(trace.rounds["round"].tolist(), late, strict=True) if by > 0
    }


def test_of_the_channel_to_something_real_a_play_decides_only_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = {"cost": 0.5, "noise": 0.3, "transit": 3.0, "loss": 0.9, "patience": 30.0}
    lab = {
        "kind": "tests.live.plant:Lab",
        "log": str(tmp_path / "log"),
        "channel": declared,
    }
    told: list[Any] = []
    as_before = Prober.start

    def start(self: Prober, briefing: Any, rng: Any) -> Any:
        told.append(briefing.experts["lab"])
        return as_before(self, briefing, rng)

    monkeypatch.setattr(Prober, "start", start)
    scenario = plan(tmp_path, experts={"lab": lab})
    trace = play(scenario, tmp_path / "out")
    of_lab = trace.replies["source"] == "lab"
    assert set(trace.replies["fate"][of_lab]) == {"answered"}
    assert (trace.replies["arrived_at"] == trace.replies["asked_at"]).all()
    assert (trace.replies["std"][of_lab] == 0.1).all()
    assert (told[0].latency, told[0].std) == (3.0, 0.3)
    prepared = scenario.prepare("prober")
    assert reduce_if_real(prepared, scenario.environment, Channel(noise=0.1)) == Channel(noise=0.1)


def test_a_folder_that_is_used_is_refused_before_anything_is_connected(tmp_path: Path) -> None:
    scenario = plan(tmp_path)
    play(scenario, tmp_path / "out")
    (tmp_path / "log").unlink()
    with pytest.raises(SparqError, match="that has ended: move the folder away"):
        play(scenario, tmp_path / "out")
    (tmp_path / "study" / "rounds").mkdir(parents=True)
    with pytest.raises(SparqError, match="folder of a study"):
        play(scenario, tmp_path / "study")
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_a_speed_is_a_number_above_0(tmp_path: Path, speed: float) -> None:
    with pytest.raises(SparqError, match="speed must be a number above 0"):
        play(plan(tmp_path), tmp_path / "out", speed=speed)
