from __future__ import annotations

from pathlib import Path

from sparq_scenarios.examples import late_expert, own_expert, small_study


def test_answers_that_come_later_help_less() -> None:
    found = late_expert.main()
    assert found[0.0] < found[2.0] < found[10.0]


def test_a_sensor_that_sleeps_longer_helps_less() -> None:
    found = own_expert.main()
    assert found[1.0] < found[10.0]


def test_a_small_study_is_kept_and_compared_in_pairs(tmp_path: Path) -> None:
    differences = small_study.main(tmp_path / "small", rounds=60)
    assert len(differences) == 2
    assert [each.difference.count for each in differences] == [3, 3]
    assert differences == small_study.main(tmp_path / "small", rounds=60)
