"""Attacks on the terminal of a reader, by texts in files that somebody else has made."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.invoking import ends_with
from tests.security.watchmen import watch

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\r\x08\u2066x"
"""Sets the title of the window, clears the screen, and turns the direction of text."""
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

SCENARIO = """
title = TEXT
rounds = 12
replications = 2
levels = false
[environment]
kind = "synthetic"
[experts.HINT]
kind = "truth"
[optimizers.CALM]
kind = "uniform"
[sweep]
"experts.HINT.channel.transit" = [1.0, 2.0]
"""


def write(folder: Path, *, name: str = "calm", hint: str = "hint") -> Path:
    file = folder / "evil.toml"
    text = SCENARIO.replace("TEXT", json.dumps(f"A study {EVIL}"))
    quoted = json.dumps(name)
    file.write_text(text.replace("CALM", quoted).replace("HINT", hint), encoding="utf-8")
    return file


def check(told: str) -> None:
    found = CONTROL.search(told)
    assert found is None, told[max(0, found.start() - 40) : found.end() + 40]


def test_titles_do_not_control_the_terminal(tmp_path: Path) -> None:
    write(tmp_path)
    commands = (
        *(
            "check evil.toml",
            "show evil.toml",
            "run evil.toml --dry-run",
            "run evil.toml --out s --executor in-process",
        ),
        *("compare s", "explain s --play calm,transit=1,0 --round 2", "watch nothing"),
    )
    seen, codes, text = watch(*commands, cwd=tmp_path)
    assert seen == []
    assert codes == [0, 0, 0, 0, 0, 0, 2]
    check(text)


def test_names_do_not_control_the_terminal(tmp_path: Path) -> None:
    """Whether such names are refused or taken."""
    write(tmp_path, name=f"calm {EVIL}")
    commands = (
        "check evil.toml",
        "show evil.toml",
        "run evil.toml --out s --executor in-process",
        "compare s",
    )
    seen, codes, text = watch(*commands, cwd=tmp_path)
    assert seen == []
    assert set(codes) <= {0, 2}
    check(text)


@pytest.mark.parametrize(
    "wrong",
    [
        'rounds = "TEXT"',
        '"TEXT" = 3',
        'environment = { kind = "TEXT" }',
        'extends = "TEXT"',
        'environment = { kind = "recorded", file = "TEXT" }',
        "TEXT",
    ],
)
def test_errors_show_what_a_file_has_without_obeying_it(tmp_path: Path, wrong: str) -> None:
    file = tmp_path / "wrong.toml"
    as_toml = json.dumps(EVIL)[1:-1] if wrong != "TEXT" else EVIL
    file.write_text(wrong.replace("TEXT", as_toml), encoding="utf-8")
    check(ends_with(2, "check", str(file)))


@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["show", "scenario"]])
def test_what_is_listed_has_no_control_characters(arguments: Sequence[str]) -> None:
    code = 2 if arguments[0] == "show" else 0
    check(ends_with(code, *arguments))
