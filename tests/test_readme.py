from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

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


def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    for command in "".join(blocks("sh")).splitlines():
        run(command, tmp_path)


def run(command: str, folder: Path) -> None:
    program, *arguments = command.split()
    if (
        program == "make"
    ):  # This very test runs under `make test`; that the target exists is enough.
        ran = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, check=False)
    else:
        assert program == "sparq-sim"
        ran = subprocess.run(
            [sys.executable, "-m", "sparq_sim", *arguments],
            cwd=folder,
            capture_output=True,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr.decode()


def test_the_scenario_of_the_readme_is_sound(tmp_path: Path) -> None:
    from sparq_sim import Scenario

    text = next(block for block in blocks("toml") if "[environment]" in block)
    (tmp_path / "readme.toml").write_text(text, encoding="utf-8")
    assert len(Scenario.load(tmp_path / "readme.toml").settings()) == 3


def test_every_plugin_is_in_the_readme() -> None:
    from sparq_sim.plugins import names

    text = README.read_text(encoding="utf-8")
    for name in (*names("environment"), *names("expert"), *names("optimizer")):
        assert f"`{name}`" in text, name
