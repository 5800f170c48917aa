from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_python_of_the_documentation_runs_and_prints_what_it_says() -> None:
    ran = subprocess.run(
        [sys.executable, ROOT / "docs" / "check.py"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
