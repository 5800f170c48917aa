"""Attacks by a scenario file that somebody else has written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.invoking import ends_with

SMALL = 'rounds = 2\noptimizers = ["uniform"]\n'
SIMULATED = '[environment]\nkind = "synthetic"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("# " + "x" * 1_000_000, "larger than 500 kB"),
        ("a = " + "[" * 500 + "]" * 500, "nested deeper than 50 levels"),
        (".".join("a" * 500) + " = 1", "nested deeper than 50 levels"),
        ("a = " + "[" * 100_000, "nested deeper than 50 levels"),
        ("rounds = 1" + "0" * 5000, "not TOML"),
        ("rounds = 0x1" + "0" * 5000, "more than 64 bits"),
    ],
)
def test_a_scenario_that_is_large_or_deep_is_refused(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "huge.toml"
    file.write_text(text)
    assert told in ends_with(2, "check", str(file))


def test_variables_in_a_path_are_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_PLACE", "elsewhere")
    file = tmp_path / "named.toml"
    file.write_text(
        SMALL + '[environment]\nkind = "recorded"\nfiles = "$SECRET_PLACE/${HOME}.csv"\n'
    )
    told = ends_with(2, "check", str(file))
    assert "$SECRET_PLACE/${HOME}.csv" in told
    assert "elsewhere" not in told


@pytest.mark.parametrize("table", ["environment", "experts.a", "optimizers.a"])
def test_a_scenario_cannot_name_code_to_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    mark = tmp_path / "sung"
    (tmp_path / "canary_named.py").write_text(f"open({str(mark)!r}, 'w')\n")
    monkeypatch.syspath_prepend(tmp_path)
    parts = {"environment": SIMULATED, "optimizers.a": '[optimizers.a]\nkind = "uniform"\n'}
    parts[table] = f'[{table}]\nkind = "canary_named:Canary"\n'
    file = tmp_path / "named.toml"
    file.write_text("rounds = 2\n" + "".join(parts.values()))
    for command in ("check", "show", "run", "live"):
        assert "names code to import" in ends_with(2, command, str(file))
    assert not mark.exists()
