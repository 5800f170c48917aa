"""All that is wrong with a file is told at once, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparq_sim.scenario.model import Scenario
from tests.scenario.samples import (
    SMALL,
    problem,
    problems,
    write,
)


def test_all_errors_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    text = """\
perod = 2
seed = "x"
environment = { kind = "synthetic", size = 3 }
[experts.sensor]
kind = "trut"
[experts.other]
kind = "truth"
channel = { loss = 3, service = { kind = "exponentail", mean = 3 } }
[optimizers.a]
kind = "tv-gp-ucb"
epsilom = 0.1
[optimizers.b]
[sweep]
"experts.other.channel.nois" = [1]
"""
    file = write(tmp_path, text)
    told = [
        "1: scenario: a play needs rounds or a horizon, or it never ends",
        "1: perod: 2: no such field; did you mean 'period'?",
        "2: seed: 'x': should be a whole number",
        "3: environment.size: 3: no such field; there are: kind",
        "5: experts.sensor.kind: 'trut': no expert is called 'trut': did you mean 'truth'?",
        "8: experts.other.channel.loss: 3: should be less than or equal to 1",
        "8: experts.other.channel.service.kind: 'exponentail': "
        "no draw is called 'exponentail': did you mean 'exponential'?",
        "11: optimizers.a.epsilom: 0.1: no such field; did you mean 'epsilon'?",
        "12: optimizers.b.kind: missing; say which optimizer: ",
    ]
    found = problems(file)
    for line in told:
        assert any(each.startswith(f"{file}:{line}") for each in found), (line, found)
    assert len(found) == len(told)


def test_a_wrong_sweep_is_told_beside_other_errors(tmp_path: Path) -> None:
    file = write(tmp_path, f"{SMALL}seed = -1\n[sweep]\nround = [3]\n")
    assert [line.split(": ")[1] for line in problems(file)] == ["seed", "sweep.round"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"rounds = 3\nseed = = 4\n", ":2: not TOML: Invalid value at column 8"),
        (b"rounds = [1,\n", ":2: not TOML: "),
        (b"rounds = " + b"9" * 5000, ":1: not TOML: "),
        (b"a = 1\nb = '\xff'\n", ":2: not a text in UTF-8 (byte 0xff); save it in that encoding"),
        (b"#" * 500_001, ": is larger than 500 kB"),
        (b"\na = " + b"[" * 100_000, ":2: nested deeper than 50 levels; make it flatter"),
        (b".".join([b"a"] * 100_000) + b" = 1", ":1: nested deeper than 50 levels"),
        (b"[" + b".".join([b"a"] * 100_000) + b"]", ":1: nested deeper than 50 levels"),
        (b"a = " + b"{b=" * 100, ":1: nested deeper than 50 levels; make it flatter"),
    ],
)
def test_what_is_no_scenario_file_gives_one_clear_error(
    tmp_path: Path, content: bytes, told: str
) -> None:
    file = write(tmp_path, content)
    assert problem(file).startswith(f"{file}{told}")


def test_a_missing_file_and_a_folder_give_one_clear_error(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    assert problem(missing) == (
        f"{missing}: cannot be read: No such file or directory; check the path"
    )
    assert problem(tmp_path) == f"{tmp_path}: is a folder; name a file in it"
    assert "null" in problem("a\0.toml")


def test_an_empty_file_is_told_what_is_missing(tmp_path: Path) -> None:
    file = write(tmp_path, "")
    assert problems(file) == (
        f"{file}:1: environment: missing; add it",
        f"{file}:1: optimizers: missing; add it",
    )


def test_a_byte_order_mark_and_windows_line_ends_are_no_matter(tmp_path: Path) -> None:
    text = "\ufeff" + SMALL.replace("\n", "\r\n") + "perod = 1\r\n"
    file = write(tmp_path, text)
    assert problem(file).startswith(f"{file}:4: perod: 1: ")


def test_code_named_in_a_file_runs_only_if_allowed(tmp_path: Path) -> None:
    text = f'{SMALL}[experts.late]\nkind = "tests.scenario.samples:Lagged"\nlag = 5\n'
    file = write(tmp_path, text)
    assert problem(file).startswith(
        f"{file}:5: experts.late.kind: 'tests.scenario.samples:Lagged': "
    )
    scenario = Scenario.load(file, allow_import=True)
    assert scenario.experts["late"].expert.model_dump() == {"lag": 5.0}


def test_an_optimizer_listed_twice_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, SMALL.replace('["uniform"]', '["uniform", "uniform"]'))
    assert problem(file).startswith(f"{file}:2: optimizers: ")
    assert "named twice" in problem(file)
