"""A scenario with all its defaults is written as TOML that gives the same scenario."""

from __future__ import annotations

import tomllib
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sparq_sim.scenario.bundled import find_bundled
from sparq_sim.scenario.fingerprint import NumberWord
from sparq_sim.scenario.model import Scenario
from sparq_sim.scenario.toml_text import write_toml_table

_SCALARS = some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text()
_VALUES = some.recursive(
    _SCALARS,
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(), inner, max_size=4),
    max_leaves=20,
)


@given(some.dictionaries(some.text(), _VALUES, max_size=5))
def test_any_table_is_read_back(data: dict[str, Any]) -> None:
    assert tomllib.loads(write_toml_table(data)) == data


def test_what_toml_lacks_is_left_out_and_a_word_for_a_number_is_the_number() -> None:
    written = write_toml_table({"horizon": NumberWord("inf"), "title": "inf", "width": None})
    assert tomllib.loads(written) == {"horizon": inf, "title": "inf"}


def test_short_tables_stay_on_a_line_and_long_lists_get_a_line_each() -> None:
    noise = {"kind": "gaussian", "std": 0.1}
    written = write_toml_table(
        {"feedback": {"noise": noise, "more": "x" * 80}, "a": ["y" * 60] * 2}
    )
    assert 'noise = { kind = "gaussian", std = 0.1 }' in written.splitlines()
    assert "[feedback]" in written
    assert written.startswith("a = [\n    ")


@pytest.mark.parametrize("name", sorted(find_bundled()))
def test_a_bundled_scenario_is_the_same_when_it_is_loaded_again(name: str, tmp_path: Path) -> None:
    file, data = tmp_path / "again.toml", Scenario.load(name).resolve()
    file.write_text(write_toml_table(data), encoding="utf-8")
    assert Scenario.load(file).resolve() == data
