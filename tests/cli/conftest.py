"""Studies that several tests of the command line read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparq_sim.cli.main import app
from tests.cli.invoking import SMALL, runner


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studies") / "small"
    result = runner.invoke(app, ["run", "synthetic", "--out", str(folder), *SMALL])
    assert result.exit_code == 0, result.output
    assert "8 plays in" in result.output
    for words in ("uniform", "sparq-gp-ucb", "best fixed point", "one round late"):
        assert words in result.output
    return folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("studies") / "swept"
    told = runner.invoke(
        app,
        [
            *("run", "synthetic", "--executor", "in-process", "--out", str(out), "--set"),
            *("rounds=25", "--set", "replications=1", "--set", 'optimizers=["uniform"]', "--set"),
            "sweep={'experts.expert.channel.transit' = [10.0, 2.0]}",
        ],
    )
    assert told.exit_code == 0, told.output
    assert f"Report: {out / 'report.html'}" in re.sub(r"\s+", " ", told.output)
    return out
