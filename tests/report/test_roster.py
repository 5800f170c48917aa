from __future__ import annotations

from pathlib import Path

from sparq_sim.report.roster import Roster, name_play
from sparq_sim.study.choice import choose_play
from sparq_sim.study.results import Results
from tests.report.conftest import played


def test_each_play_is_found_by_its_name(study: Results) -> None:
    for play in study.finished():
        assert choose_play(study, name_play(play)).key == play.key


def test_a_play_is_found_in_all_settings_that_make_no_difference_to_it(tmp_path: Path) -> None:
    study = played(tmp_path, rounds=3, sweep={"optimizers.curious.width": [1.0, 2.0]})
    roster = Roster(study.finished(), ["curious", "careless"])
    assert roster.optimizers == ["curious", "careless"]
    assert len(roster.settings) == 2
    found = [
        [roster.find(name, setting, (0, 1)) for setting in roster.settings]
        for name in roster.optimizers
    ]
    keys = [{play.key for play in plays if play is not None} for plays in found]
    assert [len(each) for each in keys] == [2, 1]


def test_the_winner_has_the_lowest_mean_regret(study: Results) -> None:
    roster = Roster(study.finished())
    assert roster.find_winner(roster.settings[0]) == "curious"
    assert Roster([]).list_firsts() == [*Roster([]).list_others()] == []
