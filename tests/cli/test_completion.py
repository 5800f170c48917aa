"""A shell offers what can stand where a word is being typed, and loads nothing heavy for it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

_COMPLETE = """
import sys
from sparq_sim.cli.main import main

sys.argv = ["sparq-sim"]
try:
    main()
finally:
    print("loaded", *(sys.modules.keys() & {"pyarrow", "matplotlib", "scipy", "plotly"}))
"""


def _complete(typed: str, cwd: Path) -> tuple[list[str], str]:
    """Return what bash offers, and what was loaded for it."""
    words = shlex.split(typed.replace("|", ""))
    done = subprocess.run(
        [sys.executable, "-c", _COMPLETE],
        env={
            **os.environ,
            "_SPARQ_SIM_COMPLETE": "complete_bash",
            "COMP_WORDS": typed.replace("|", ""),
            "COMP_CWORD": str(len(words) - (not typed.endswith(" |"))),
        },
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    *offered, loaded = done.stdout.splitlines()
    return [word for word in offered if word], loaded


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sparq-sim run synth|", ["synthetic"]),
        ("sparq-sim run synthetic --set experts.expert.k|", ["experts.expert.kind="]),
        ("sparq-sim run synthetic --set repl|", ["replications="]),
        ("sparq-sim plot studies/swept round-|", ["round-regret"]),
        ("sparq-sim export studies/swept a.csv --what chart:sw|", ["chart:sweep"]),
        ("sparq-sim show expert logb|", ["logbook"]),
        ("sparq-sim compare stud|", ["studies/swept"]),
    ],
)
def test_a_word_is_completed(typed: str, offered: list[str], folder: Path, tmp_path: Path) -> None:
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "swept").symlink_to(folder)
    assert _complete(typed, tmp_path) == (offered, "loaded")


def test_a_swept_field_is_completed(folder: Path, tmp_path: Path) -> None:
    offered, _ = _complete(f"sparq-sim compare {folder} --between exp|", tmp_path)
    assert offered == ["experts.expert.channel.transit"]
