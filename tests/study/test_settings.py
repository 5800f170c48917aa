from __future__ import annotations

from sparq_sim.study.settings import agree, keep_fullest


def test_settings_that_are_special_cases_stand_for_the_general() -> None:
    assert keep_fullest([{}, {"a": 1}, {"a": 2}, {"a": 1, "b": 0}]) == [
        {"a": 2},
        {"a": 1, "b": 0},
    ]
    assert keep_fullest([{}]) == [{}]


def test_settings_agree_where_both_have_a_value() -> None:
    assert agree({"a": 1}, {"b": 2})
    assert not agree({"a": 1, "b": 1}, {"b": 2})
