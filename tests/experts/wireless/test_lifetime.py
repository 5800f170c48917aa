"""Lifetime: the closed form against published numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparq_experts.wireless.lifetime import compute_lifetime
from sparq_experts.wireless.lora import compute_airtime
from sparq_experts.wireless.presets import LoraSx1272Eu868

TWO_AA = 18_720.0
"""J in two AA cells, as Castalia has it."""
DAY = 86_400.0


@pytest.mark.parametrize(
    ("factor", "period", "days"),
    [(7, 60, 1527), (7, 600, 11_623), (12, 60, 67.8), (12, 600, 669)],
)
def test_lifetime_of_a_node_that_sends_20_bytes_in_each_period(
    factor: int, period: float, days: float
) -> None:
    radio = LoraSx1272Eu868()
    lived = compute_lifetime(
        TWO_AA,
        period=period,
        sleep=radio.sleep,
        send=radio.send_draw,
        airtime=compute_airtime(20, factor),
    )
    assert lived / DAY == pytest.approx(days, rel=1e-3)


def test_each_cause_has_its_share() -> None:
    # 1 W of sleep, and 1 J in each of three ways every 3 s, are 2 W.
    lived = compute_lifetime(
        200, period=3, sleep=1, send=2, airtime=0.5, measure=1, receive=10, receiving=0.1
    )
    assert lived == pytest.approx(100)


@given(st.floats(1, 1e5), st.floats(1.0, 10.0))
def test_a_longer_period_never_shortens_life(period: float, times: float) -> None:
    def live(every: float) -> float:
        return compute_lifetime(1.0, period=every, sleep=1e-6, send=0.1, airtime=0.1)

    assert live(times * period) >= live(period)
