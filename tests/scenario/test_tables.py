"""Paths are read as they are written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparq_sim.scenario.tables import join_path, split_path


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_paths_are_read_as_they_are_written(keys: list[str]) -> None:
    keys = [key for key in keys if "\x7f" not in key] or ["a"]
    assert split_path(join_path(keys)) == tuple(keys)
