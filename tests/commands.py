"""How tests run Python as a user would: in a process and an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run(*arguments: str, cwd: Path, **variables: str) -> str:
    """Run Python with *arguments*, and give what it prints; it must end well."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "PYTHON", "COV_"))
    }
    done = subprocess.run(
        [sys.executable, "-P", *arguments],
        cwd=cwd,
        env={**kept, "OPENBLAS_NUM_THREADS": "1", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


_COMMANDS = """
import shlex
import sys
from sparq_sim.cli.main import main

if __name__ == "__main__":
    for command in sys.argv[1:]:
        try:
            main(shlex.split(command))
        except SystemExit as ended:
            if ended.code:
                sys.exit(f"{command}: ended with {ended.code}")
"""


def run_commands(*commands: str, cwd: Path, **variables: str) -> str:
    """Run commands of sparq-sim one after another in one process, and give what they print."""
    return run("-c", _COMMANDS, *commands, cwd=cwd, **variables)
