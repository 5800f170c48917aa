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
