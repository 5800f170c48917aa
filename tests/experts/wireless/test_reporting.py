from __future__ import annotations

from math import inf, nan

import pytest
from pydantic import ValidationError

from sparq_experts.wireless.reporting import OnDelta, Periodic


def test_a_periodic_reading_is_always_sent() -> None:
    assert Periodic(every=60.0).is_due(1.0, 1.0, 0.0)


def test_a_reading_is_sent_where_it_differs_enough_from_the_last_one_sent() -> None:
    push = OnDelta(every=60.0, delta=0.5)
    assert push.is_due(1.0, nan, inf)
    assert not push.is_due(1.4, 1.0, 1e9)
    assert push.is_due(1.5, 1.0, 60.0)
    assert push.is_due(0.5, 1.0, 60.0)


def test_silence_ends_after_its_time() -> None:
    push = OnDelta(every=60.0, delta=0.5, silence=600.0)
    assert not push.is_due(1.0, 1.0, 540.0)
    assert push.is_due(1.0, 1.0, 600.0)


def test_a_silence_shorter_than_a_measurement_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"silence 30 s.*60 s.*periodic"):
        OnDelta(every=60.0, delta=0.5, silence=30.0)
