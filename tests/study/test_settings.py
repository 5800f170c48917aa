from __future__ import annotations

from sparq_sim.study.settings import agree, fullest


def test_settings_that_are_special_cases_stand_for_the_general() -> None:
    assert fullest([{}, {"a": 1}, {"a": 2}, {"a": 1, "b": 0}]) == [{"a": 2}, {"a": 1, "b": 0}]
    assert fullest([{}]) == [{}]


def test_settings_agree_where_both_have_a_value() -> None:
    assert agree({"a": 1}, {"b": 2})
    assert not agree({"a": 1, "b": 1}, {"b": 2})
