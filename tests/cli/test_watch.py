"""The command `watch`, as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from sparq_sim.cli.main import app, main
from tests.conftest import PATIENCE


def test_the_address_is_printed_and_an_interrupt_ends_it_with_code_0(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sparq_sim", "watch", str(tmp_path)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "no_proxy": "*"},
    ) as process:
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", first)
            assert found is not None, first
            with urlopen(found[0], timeout=PATIENCE) as response:
                assert b"No play is finished yet" in response.read()
            process.send_signal(signal.SIGINT)
            rest = process.stdout.read()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
    assert "Ended." in rest
    assert "Traceback" not in rest


def test_what_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["watch", str(tmp_path / "nothing")])
    assert ended.value.code == 2
    assert "there is no study or journal" in capsys.readouterr().err


def test_help_lists_it_under_live_play() -> None:
    text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "120"}).output
    assert re.search(r"Live play.*\bwatch\b", text, re.DOTALL)
