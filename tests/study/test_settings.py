from __future__ import annotations

from sparq_sim.study.settings import agree, format_setting, format_value, keep_fullest


def test_settings_that_are_special_cases_stand_for_the_general() -> None:
    assert keep_fullest([{}, {"a": 1}, {"a": 2}, {"a": 1, "b": 0}]) == [
        {"a": 2},
        {"a": 1, "b": 0},
    ]
    assert keep_fullest([{}]) == [{}]


def test_settings_agree_where_both_have_a_value() -> None:
    assert agree({"a": 1}, {"b": 2})
    assert not agree({"a": 1, "b": 1}, {"b": 2})


def test_a_swept_table_is_told_in_words() -> None:
    assert format_value('{"every":600.0,"kind":"periodic"}') == "periodic, every 600"
    assert format_value('{"low":1,"high":true}') == "low 1, high yes"
    assert format_value("{no table") == "{no table"


def test_fields_of_one_name_and_one_value_are_named_once() -> None:
    alike = {"experts.once.channel.loss": 0.3, "experts.again.channel.loss": 0.3}
    assert format_setting({**alike, "rounds": 5}) == "loss 0.3, rounds 5"
    apart = alike | {"experts.again.channel.loss": 0}
    assert format_setting(apart) == "once.channel.loss 0.3, again.channel.loss 0"
