from __future__ import annotations

import pytest

from sparq_sim.remote.drops import EXAMPLE, MOST_REASONS, Drops, Seen


def test_drops_are_counted_by_their_reason_and_the_first_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    drops = Drops()
    for number in range(1000):
        drops.add("a bad reading", f"it says {number}" + 1000 * "x")
        drops.add("an old reply")
    (bad, count), old = drops.counts.items()
    assert count == 1000
    assert bad.startswith("a bad reading (the first: it says 0xxx")
    assert len(bad) < EXAMPLE + 40
    assert old == ("an old reply", 1000)
    assert len(caplog.records) == 2


def test_of_too_many_reasons_the_last_are_counted_together() -> None:
    drops = Drops()
    for number in range(MOST_REASONS + 20):
        drops.add(f"reason {number}")
    assert len(drops.counts) == MOST_REASONS + 1
    assert drops.counts["a message for a further reason"] == 20


def test_names_are_known_until_too_many_came_after() -> None:
    seen = Seen(2)
    for name in (b"a", b"b", b"c"):
        seen.add(name)
    assert [name in seen for name in (b"a", b"b", b"c")] == [False, True, True]
