"""On a terminal, lines end between words; elsewhere they stay whole."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from sparq_sim.cli.main import app
from sparq_sim.cli.output import cut, say
from tests.cli.invoking import runner

_COMMANDS = """
import sys
from sparq_sim.cli.main import main

folder = sys.argv[1]
for command in (
    ["compare", folder], ["compare", folder, "--price", "0.01"], ["-h"], ["plot", "-h"],
    ["list"], ["show", "optimizer", "sparq-gp-ucb"], ["plot", folder, "averge", "-o", "a.svg"],
    ["plot", folder],
):
    try:
        main(command)
    except SystemExit:
        pass
"""


def _on_a_terminal(columns: int, *arguments: str) -> str:
    """Run Python on a terminal of so many columns, and give all that is on it then."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, *arguments]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**kept, "TERM": "xterm"}
    )
    os.close(theirs)
    content = b""
    while True:
        try:
            if not (more := os.read(ours, 65536)):
                break
        except OSError:  # Nobody writes to it any more.
            break
        content += more
    os.close(ours)
    assert process.wait() == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", content.decode()).replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [60, 80])
def test_no_line_is_longer_than_the_terminal_is_wide(study: Path, columns: int) -> None:
    shown = _on_a_terminal(columns, "-c", _COMMANDS, str(study))
    assert [line for line in shown.splitlines() if len(line) > columns] == []
    words = " ".join(shown.split())
    for whole in (
        "Below the break-even price, the one that spends more is better; its 95 % interval is in",
        "as an exact draw of the determinantal process that the chain approximates, at random",
        "Error: no kind of figure is called 'averge': did you mean 'average-regret'?",
    ):
        assert whole in words


def test_what_stands_behind_a_gap_stays_behind_it() -> None:
    script = "from sparq_sim.cli.output import say; say('wall   seconds the agent computed')"
    assert _on_a_terminal(24, "-c", script) == "wall   seconds the agent\n       computed\n"


def test_elsewhere_a_line_stays_whole(capsys: pytest.CaptureFixture[str]) -> None:
    say("word " * 100)
    assert capsys.readouterr().out.count("\n") == 1
    assert cut("word " * 100) == "word " * 100


@pytest.mark.parametrize("command", [(), ("run",), ("list",), ("serve-expert",)])
def test_help_has_a_short_option_everywhere(command: tuple[str, ...]) -> None:
    shown = runner.invoke(app, [*command, "-h"])
    assert shown.exit_code == 0
    assert shown.output == runner.invoke(app, [*command, "--help"]).output
