from __future__ import annotations

import gc

import pytest

from sparq_sim.simulation.garbage import collect_rarely


def test_collections_are_rarer_within_the_block_and_as_before_after_it() -> None:
    before = gc.get_threshold()
    with collect_rarely():
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before


@pytest.mark.parametrize("objects", [0, 50_000])
def test_what_a_user_has_set_to_be_rarer_is_kept(objects: int) -> None:
    before = gc.get_threshold()
    try:
        gc.set_threshold(objects, 5, 5)
        with collect_rarely():
            assert gc.get_threshold() == (objects, 5, 5)
        assert gc.get_threshold() == (objects, 5, 5)
    finally:
        gc.set_threshold(*before)


def test_an_error_leaves_collections_as_they_were() -> None:
    before = gc.get_threshold()
    with pytest.raises(RuntimeError, match="wrong"), collect_rarely():
        raise RuntimeError("wrong")
    assert gc.get_threshold() == before
