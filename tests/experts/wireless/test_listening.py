from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sparq_experts.wireless.listening import WakeUps, Windows


def test_a_query_waits_for_the_next_wake_up() -> None:
    wake_ups = WakeUps(every=10.0, lasting=1.0)
    assert wake_ups.next(3.0, phase=2.5) == (3.0, 3.5)
    assert wake_ups.next(4.0, phase=2.5) == (12.5, 13.5)
    assert wake_ups.next(0.0, phase=2.5) == (2.5, 3.5)


@given(st.floats(0.0, 1e6), st.floats(0.0, 1.0), st.floats(0.1, 1e4), st.floats(0.01, 0.99))
def test_a_wake_up_is_never_further_than_the_time_between_two(
    time: float, place: float, every: float, share: float
) -> None:
    wake_ups = WakeUps(every=every, lasting=share * every)
    begins, ends = wake_ups.next(time, phase=place * every)
    assert time <= begins <= time + every * (1 + 1e-9)
    assert begins <= ends


def test_a_node_that_never_sleeps_has_no_wake_ups() -> None:
    with pytest.raises(ValidationError, match=r"lasting 2 s of every 2 s.*always"):
        WakeUps(every=2.0, lasting=2.0)


def test_windows_open_one_after_the_other() -> None:
    with pytest.raises(ValidationError, match="must open after the first"):
        Windows(first=2.0, second=1.0)


@pytest.mark.parametrize("every", [1e-12, 0.00099])
def test_times_below_a_millisecond_are_refused(every: float) -> None:
    with pytest.raises(ValidationError, match=r"every\n.*greater than or equal to 0\.001"):
        Windows(every=every)
    with pytest.raises(ValidationError, match=r"every\n.*greater than or equal to 0\.001"):
        WakeUps(every=every, lasting=every / 2)
    assert WakeUps(every=0.001, lasting=0.0001).share == pytest.approx(0.1)


def test_wake_ups_are_long_enough_to_notice_a_packet() -> None:
    wake_ups = WakeUps(every=600.0, lasting=0.1)
    assert wake_ups.lengthen(0.05) == wake_ups
    assert wake_ups.lengthen(0.16384).lasting == 0.16384
    assert wake_ups.lengthen(1e6).lasting == 600.0
