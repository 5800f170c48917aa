from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    script = tmp_path / "readme.py"
    script.write_text("\n".join(blocks("python")), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-W", "error", script], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "Tally(asked=" in ran.stdout


@pytest.mark.parametrize("command", "".join(blocks("sh")).splitlines())
def test_the_commands_of_the_readme_run(command: str) -> None:
    program, *arguments = command.split()
    if (
        program == "make"
    ):  # This very test runs under `make test`; that the target exists is enough.
        ran = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, check=False)
    else:
        assert program == "sparq-sim"
        ran = subprocess.run(
            [sys.executable, "-m", "sparq_sim", *arguments], capture_output=True, check=False
        )
    assert ran.returncode == 0, ran.stderr.decode()


def test_every_plugin_is_in_the_readme() -> None:
    from sparq_sim.plugins import names

    text = README.read_text(encoding="utf-8")
    for name in (*names("environment"), *names("expert"), *names("optimizer")):
        assert f"`{name}`" in text, name
