from __future__ import annotations

import re
import subprocess
from importlib import import_module
from pathlib import Path
from subprocess import DEVNULL

import numpy as np
import pytest

from tests.commands import run_commands

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    commands = [command.partition(" ") for command in "".join(blocks("sh")).splitlines()]
    assert {program for program, _, _ in commands} == {"make", "sparq-sim"}
    # This very test runs under `make test`; that the targets exist is enough.
    for target in [arguments for program, _, arguments in commands if program == "make"]:
        subprocess.run(["make", "-n", *target.split()], cwd=ROOT, stdout=DEVNULL, check=True)
    run_commands(*[rest for program, _, rest in commands if program == "sparq-sim"], cwd=tmp_path)


def test_the_expert_of_the_readme_knows_nothing_of_what_fills_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sparq_environments.recorded import Recorded
    from sparq_sim import Expert
    from tests.experts import consult

    rows = [
        f"{day},{site},{place},0,{10 * day}"
        for day in range(15)
        for place, site in enumerate(("gappy", "whole"))
        if site == "whole" or not 5 <= day <= 9
    ]
    record = tmp_path / "record.csv"
    record.write_text("\n".join(["time,site,lat,lon,value", *rows]), encoding="utf-8")
    code = next(block for block in blocks("python") if "(Expert)" in block)
    (tmp_path / "expert_of_the_readme.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    module = vars(import_module("expert_of_the_readme"))
    classes = [each for each in module.values() if isinstance(each, type)]
    (written,) = [each for each in classes if issubclass(each, Expert) and each is not Expert]

    expert = written.model_validate({"lag": 1.0})
    environment = Recorded(files=(str(record),), coverage=0.5)
    heard = consult(expert, [3.0, 7.0, 12.0], np.zeros((1, 2)), environment=environment)
    assert [record.fate for record in heard.records] == ["answered", "unavailable", "answered"]
    assert [answer.values.tolist() for answer in heard.answers] == [[20.0], [110.0]]
    assert [failure.reason for failure in heard.failures] == ["no reading"]


def test_every_plugin_is_in_the_readme() -> None:
    from sparq_sim.plugin.registry import list_names

    text = README.read_text(encoding="utf-8")
    for name in (*list_names("environment"), *list_names("expert"), *list_names("optimizer")):
        assert f"`{name}`" in text, name
