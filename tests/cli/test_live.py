"""`live` plays by real time, and ends cleanly whatever happens."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from sparq_sim.journal.reader import read_journal
from tests.cli.invoking import ends_with
from tests.conftest import wait_until
from tests.live.plant import read_log
from tests.live.playing import Process

SCENARIO = """
title = "A plant"
rounds = {rounds}
access = "domain"
[environment]
kind = "tests.live.plant:Plant"
log = "{folder}/log"
safe = "apply [0.5]"
unsafe = {unsafe}
[experts.lab]
kind = "tests.live.plant:Lab"
log = "{folder}/log"
channel.cost = 0.5
[optimizers.prober]
kind = "tests.live.plant:Prober"
[live]
seconds = 0.5
"""


def write(folder: Path, more: str = "", *, rounds: int = 5, unsafe: int = 0) -> str:
    file = folder / "plant.toml"
    file.write_text(SCENARIO.format(rounds=rounds, folder=folder, unsafe=unsafe) + more)
    return str(file)


def moments(folder: Path) -> list[str]:
    return [line["moment"] for line in read_log(folder / "log") if line["what"] == "safe"]


def test_a_play_is_shown_round_by_round_and_summed_up(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Process(write(tmp_path), "--out", str(out), "--speed", "10") as child:
        code, told = child.end()
    assert code == 0, told
    assert "round 5 of 5: (" in told
    assert "Note: safe state (start) reached: apply [0.5]" in told
    assert "5 rounds; " in told
    assert "ended: rounds" in told
    assert f"sparq-sim report {out}" in told
    again = ("live", write(tmp_path), "--out", str(out), "--allow-import")
    assert "that has ended" in ends_with(2, *again)
    assert "ended as planned" in ends_with(2, *again, "--resume")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_stops_a_play_cleanly(tmp_path: Path, number: signal.Signals, code: int) -> None:
    out = tmp_path / "out"
    file = write(tmp_path, rounds=1000)
    with Process(file, "--out", str(out), "--speed", "10") as child:
        wait_until(lambda: len(read_log(tmp_path / "log")) > 6)
        ended, told = child.stop(number)
    assert ended == code, told
    assert "Stopped. All that happened is in" in told
    assert "--resume goes on" in told
    assert "ended: interrupted" in told
    assert "Traceback" not in told
    assert moments(tmp_path) == ["start", "interrupt"]
    assert read_log(tmp_path / "log")[-1]["what"] == "exit"
    journal = read_journal(out / "journal.jsonl")
    assert not journal.open_questions()
    assert len(journal.to_trace()) > 0


def test_a_second_ctrl_c_does_not_give_up_the_safe_state(tmp_path: Path) -> None:
    file, slowly = write(tmp_path, rounds=1000), ("--set", "environment.safe_after=1.0")
    with Process(file, "--out", str(tmp_path / "out"), "--speed", "10", *slowly) as child:
        wait_until(lambda: len(read_log(tmp_path / "log")) > 6)
        child.process.send_signal(signal.SIGINT)
        wait_until(lambda: "interrupt" in moments(tmp_path))
        ended, told = child.stop(signal.SIGINT)
    assert ended == 130, told
    assert "still ending the play" in told
    assert "safe state (interrupt) reached" in told
    assert "reached" in [line["what"] for line in read_log(tmp_path / "log")]


def test_a_system_that_is_not_safe_is_an_error(tmp_path: Path) -> None:
    file = write(tmp_path, unsafe=99)
    with Process(file, "--out", str(tmp_path / "out")) as child:
        code, told = child.end()
    assert code == 2
    assert "see to the system yourself" in " ".join(told.split())
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--optimizer", "prbr"], "no optimizer of this scenario is called 'prbr'"),
        (["--set", "optimizers.other.kind='uniform'"], "several optimizers: choose one"),
        (["--set", "sweep={'experts.lab.channel.cost' = [0.1, 0.2]}"], "has a sweep"),
        (["--speed", "0"], "speed must be a number above 0"),
        (["--resume"], "no play to go on with"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_sentence(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    command = ("live", write(tmp_path), "--out", str(tmp_path / "out"), "--allow-import")
    said = ends_with(2, *command, *arguments)
    assert told in " ".join(said.split())
    assert not (tmp_path / "log").exists()


def test_run_refuses_what_is_real_before_anything_is_played(tmp_path: Path) -> None:
    out = tmp_path / "study"
    said = ends_with(2, "run", write(tmp_path), "--allow-import", "--out", str(out))
    assert "environment Plant, expert 'lab': real" in " ".join(said.split())
    assert not out.exists()
    assert not (tmp_path / "log").exists()
