from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparq_sim.report.data import pareto_front

NUMBERS = st.floats(0, 10)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=30))
def test_the_front_is_what_nobody_beats(points: list[tuple[float, float]]) -> None:
    front = {points[i] for i in pareto_front(points)}
    unbeaten = {
        point
        for point in points
        if not any(
            other != point and other[0] <= point[0] and other[1] <= point[1] for other in points
        )
    }
    assert front == unbeaten
