from __future__ import annotations

from pathlib import Path
from statistics import mean

from sparq_sim.report.roster import Roster, name_play
from sparq_sim.study.choice import choose_play
from sparq_sim.study.results import Results
from sparq_sim.study.settings import Setting, agree
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
    hardest, *_, easiest = (
        min(_mean(study, name, setting) for name in roster.optimizers)
        for setting in roster.rank_settings()
    )
    assert hardest > easiest
    assert Roster([]).list_firsts() == [*Roster([]).list_others()] == []


def _mean(study: Results, optimizer: str, setting: Setting) -> float:
    return mean(
        play.measures["average_regret"] or 0.0
        for play in study.finished()
        if play.optimizer == optimizer and agree(play.setting, setting)
    )
