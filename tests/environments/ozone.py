"""Where the real ozone readings are: never part of the project, so their tests may be skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

NAME = "nyc28_ozone_2016_2017.csv"
BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data" / NAME


def ozone_file() -> Path:
    """Return the file that SPARQ_OZONE names, or the one beside the checkout; or skip the test."""
    named = os.environ.get("SPARQ_OZONE")
    file = Path(named) if named else BESIDE
    if not file.is_file():
        pytest.skip(f"{file} is not there; set SPARQ_OZONE to where {NAME} is")
    return file
