"""The guide of live play: its files and commands, as a reader would use them."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reproduce import DOCS
from reproduce.check import read_blocks
from sparq_sim.journal.reader import read_journal
from tests.conftest import PATIENCE
from tests.remote.brokers import Kind, find_mosquitto, run_broker

GUIDE = DOCS / "guides" / "live.md"
BLOCKS = list(read_blocks(GUIDE))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with all files of the guide."""
    for block in BLOCKS:
        if block.file:
            (tmp_path / block.file).write_text(block.text)
    assert {"plant.toml", "real-lab.toml", "plant.c", "real-plant.toml", "cassette.toml"} <= {
        path.name for path in tmp_path.iterdir()
    }
    return tmp_path


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARQ_TOKEN", "one that is known in both terminals")


def find_command(text: str) -> list[str]:
    """Return the one command of the guide that has some *text* in it."""
    (found,) = [
        block.text for block in BLOCKS if block.language == "sh" and re.search(text, block.text)
    ]
    program, *arguments = shlex.split(found.partition(" > ")[0])
    if program == "sparq-sim":
        return [sys.executable, "-m", "sparq_sim", *arguments]
    return [program, *arguments]


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def find_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@contextmanager
def served(command: list[str], folder: Path) -> Iterator[None]:
    """Run a server of the guide, from its first line on; Ctrl-C ends it with code 0."""
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        assert "Serving" in child.stdout.readline()
        yield
    finally:
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=PATIENCE)
    assert child.returncode == 0


@contextmanager
def web_lab(folder: Path) -> Iterator[None]:
    """Serve the laboratory on a port that is free."""
    port = str(find_port())
    replace_in(folder / "real-lab.toml", "8765", port)
    command = [part.replace("8765", port) for part in find_command("serve-expert.*--http")]
    with served(command, folder):
        yield


def answered(folder: Path, play: str) -> int:
    trace = read_journal(folder / "live" / play / "journal.jsonl").to_trace()
    assert trace.ended == "rounds"
    assert len(trace) == 20
    replies = trace.replies
    return int(((replies["source"] == "lab") & (replies["fate"] == "answered")).sum())


def test_a_scenario_is_played_by_real_time(folder: Path) -> None:
    assert "round 20 of 20" in run(find_command("live plant.toml"), folder)
    assert answered(folder, "plant") > 0


def test_a_web_service_is_asked_and_its_channel_calibrated(folder: Path) -> None:
    with web_lab(folder):
        run(find_command("live real-lab.toml"), folder)
    assert answered(folder, "real-lab") > 0
    assert "[experts.lab.channel]" in run(find_command("calibrate"), folder)


def test_a_source_on_a_broker_is_asked(folder: Path, tmp_path: Path) -> None:
    kind: Kind = "mosquitto" if find_mosquitto() else "amqtt"
    with run_broker(kind, tmp_path) as broker:
        port = str(broker.port)
        replace_in(folder / "broker-lab.toml", "1883", port)
        command = [part.replace("1883", port) for part in find_command("serve-expert.*--mqtt")]
        if kind == "amqtt":
            command += ["--version", "3.1.1"]
            with (folder / "broker-lab.toml").open("a") as file:
                file.write('version = "3.1.1"\n')
        with served(command, folder):
            run(find_command("live broker-lab.toml"), folder)
    assert answered(folder, "broker-lab") > 0


def test_a_plant_in_c_is_steered_paused_and_resumed(folder: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    run(find_command("^gcc"), folder)
    pause, note = folder / "PAUSE", next(b.text for b in BLOCKS if b.text.startswith("printf"))
    with web_lab(folder):
        command = find_command("live real-plant.toml --speed 5 --allow-programs$")
        child = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith("round 3 "):
                subprocess.run(note, shell=True, cwd=folder, check=True)
            elif "maintenance" in line:
                pause.unlink()
            elif line.startswith("round 8 "):
                child.send_signal(signal.SIGINT)
        child.stdout.close()
        assert child.wait(PATIENCE) == 130
        told = run(find_command("--resume"), folder)
    assert "resumed after round" in told
    assert "safe state (end) reached: apply [0.0]" in told
    trace = read_journal(folder / "live/real-plant/journal.jsonl").to_trace()
    assert trace.rounds["round"].tolist() == list(range(1, 21))
    assert abs(trace.points[5:]).max() <= 10.0
    assert not trace.knows_best
    replayed = [sys.executable, "-m", "sparq_sim", "run", "cassette.toml", "--no-report"]
    assert "sparq-gp-ucb" in run(replayed, folder)
