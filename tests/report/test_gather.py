from __future__ import annotations

from sparq_sim.report.gather import _choose


def test_of_too_many_settings_some_are_chosen_evenly() -> None:
    many = [{"a": i} for i in range(101)]
    assert [each["a"] for each in _choose(many, 5)] == [0, 25, 50, 75, 100]
