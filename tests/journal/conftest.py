from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journal.samples import quick_folder


@pytest.fixture
def path() -> Iterator[Path]:
    """A file that is not there yet, where making things durable takes no time."""
    with quick_folder() as folder:
        yield folder / "play.jsonl"
