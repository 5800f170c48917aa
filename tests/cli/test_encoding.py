"""No console and no log is too poor for what is printed: what it lacks is spelt in ASCII."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparq_sim.cli.encoding import spell_for

_COMMANDS = """
import sys
from sparq_sim.cli.main import main

folder = sys.argv[1]
for command in (
    ["compare", folder], ["compare", folder, "--price", "0.01"], ["compare", folder, "--json"],
    ["-h"], ["run", "-h"], ["list"], ["list", "--json"], ["show", "optimizer", "sparq-gp-ucb"],
    ["run", "synthetic\\u2026\\u00b1\\u2500"],
):
    try:
        main(command)
    except SystemExit as ended:
        print("ended", ended.code, flush=True)
"""
_POOR = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "cp1252": {"PYTHONIOENCODING": "cp1252"},
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


def _print_all(folder: Path, poor: str) -> tuple[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", _COMMANDS, str(folder)],
        env={**kept, **_POOR[poor]},
        capture_output=True,
        encoding="ascii" if poor == "C" else poor,
        check=True,
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize("poor", _POOR)
def test_nothing_that_is_printed_ends_in_a_traceback(study: Path, poor: str) -> None:
    printed, errors = _print_all(study, poor)
    assert printed.count("ended 0") == 8
    assert "ended 2" in printed
    assert "Traceback" not in errors
    assert "no scenario" in errors or "synthetic" in errors
    spelt = poor in ("ascii", "C")
    assert ("+/-" in printed) == spelt
    assert ("±" in printed) != spelt
    assert "?" not in printed.replace("did you mean", "").partition("ended 0")[0]


def test_numbers_stay_in_their_columns_where_a_sign_takes_three(study: Path) -> None:
    printed, _ = _print_all(study, "ascii")
    table = [line for line in printed.splitlines() if "+/-" in line and "row" not in line]
    places = {line.index("+/-") for line in table[:2]}
    assert len(places) == 1
    assert not any("..." in line for line in table)


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("0.41 ± 0.10", "0.41 +/- 0.10"),
        ("least … most", "least ... most"),
        ("tr(Σ⁻¹(K \N{MINUS SIGN} Q))", "tr(Sigma-1(K - Q))"),
        ("┌─┬─┐│", "+-+-+|"),
        ("Würzburg, Łódź", "Wurzburg, Lodz"),
        ("40 %\N{NO-BREAK SPACE}of", "40 % of"),
        ("漢", "?"),
        ("a\udcffb", "a\udcffb"),
    ],
)
def test_a_character_that_is_lacking_is_spelt_readably(text: str, spelt: str) -> None:
    assert spell_for("ascii", text) == spelt


def test_what_an_encoding_has_stays() -> None:
    assert spell_for("latin-1", "± …") == "± ..."
    assert spell_for("utf-8", "± …") == "± …"
