"""Programs for tests: Python children that do as they are told, and the lab, in C if possible."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

LAB = Path(__file__).with_name("lab.c")


def python(code: str) -> tuple[str, ...]:
    """Return the command of a child that runs some *code*, with `json`, `sys` and `time`."""
    return (sys.executable, "-u", "-c", "import json, os, sys, time\n" + dedent(code))


def for_each_message(code: str) -> tuple[str, ...]:
    """Return the command of a child that runs *code* for each `message`; `reply` writes one."""
    head = """
    def reply(**fields):
        made = {"type": "answer", "id": message["id"], "values": [0.5]} | fields
        print(json.dumps(made), flush=True)

    for line in sys.stdin:
        message = json.loads(line)
    """
    return python(dedent(head) + indent(dedent(code), "    "))


ANSWERING = for_each_message("reply(values=[2 * point[0] for point in message['points']])")


def compile_lab(folder: Path) -> tuple[str, ...]:
    """Return the command of the lab in C, after compiling it; skip where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    program = folder / "lab"
    options = ["-Wall", "-Wextra", "-Werror", "-std=c99", "-O1", "-o", str(program)]
    made = subprocess.run([compiler, *options, str(LAB)], capture_output=True, check=False)
    assert made.returncode == 0, made.stderr.decode()
    return (str(program),)
