from __future__ import annotations

from dataclasses import replace
from io import StringIO
from math import inf
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from sparq_sim import Estimate, Expert, Query, World
from sparq_sim.analysis.cautions import NO_REGRET, cautions
from sparq_sim.analysis.contrasts import Contrast, compare_without
from sparq_sim.analysis.levels import Levels
from sparq_sim.analysis.prices import BreakEven
from sparq_sim.analysis.standings import find_standings
from sparq_sim.analysis.summary import Spread, summary
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.report.terminal import (
    contrast_table,
    expert_in_words,
    legend,
    meter_tables,
    summary_table,
)
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.store import StoreError
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker
from tests.bookkeeping import run_metered
from tests.plants import Plant, steer
from tests.study.plays import scenario


class Raiser(Expert):
    """Has a mistake in it."""

    async def answer(self, query: Query, world: World) -> Estimate:
        raise ZeroDivisionError("division by zero")


def finished(folder: Path, **changes: object) -> Results:
    study = Study(scenario(**changes), folder)
    study.run(InProcess())
    return study.results


def column(study: Results, heading: str) -> list[str]:
    columns = summary_table("", find_standings(study)).columns
    (found,) = [each for each in columns if each.header == heading]
    return [str(cell).strip() for cell in found.cells]


def shown(study: Results, width: int) -> str:
    screen = Console(width=width)
    with screen.capture() as captured:
        screen.print(summary_table("A study", find_standings(study), width=width))
    return captured.get()


def test_two_optimizers_that_are_alike_are_two_rows(tmp_path: Path) -> None:
    study = finished(tmp_path, optimizers={"one": Uniform(), "other": Uniform()})
    assert [each.optimizer for each in summary(study)] == ["one", "other"]


def test_a_narrow_terminal_does_without_some_columns_but_not_without_settings(
    tmp_path: Path,
) -> None:
    sweep = {"feedback.noise": [0.125, 0.25]}
    study = finished(tmp_path, optimizers={"uniform": Uniform()}, sweep=sweep, replications=2)
    wide, narrow = shown(study, 200), shown(study, 40)
    assert all(column in wide for column in ("plays", "least … most", "exponent", "wall"))
    assert "wall" not in narrow
    for text in ("noise", "0.125", "0.25", "average regret"):
        assert text in wide
        assert text in narrow


def test_the_table_says_of_how_many_plays_it_is_and_of_how_many_planned(tmp_path: Path) -> None:
    finished(tmp_path, optimizers={"uniform": Uniform()}, replications=3)
    assert column(Results.open(tmp_path), "plays") == ["3"]
    next((tmp_path / "rounds").iterdir()).unlink()
    assert column(Results.open(tmp_path), "plays") == ["2 of 3"]


def test_a_mistake_in_an_expert_is_told_after_the_study(tmp_path: Path) -> None:
    changes = {"experts": {"raiser": Raiser()}, "optimizers": {"asker": Asker(batch=1)}}
    study = finished(tmp_path, replications=2, **changes)
    (told,) = (caution.text for caution in cautions(study))
    assert "raiser raised ZeroDivisionError: division by zero (test_terminal.py:" in told
    asked = 2 * (scenario().rounds or 0)
    assert told.startswith(f"{asked} of {asked} answers of 'raiser' were useless; the first: ")


def test_plays_of_several_scenarios_are_not_thrown_together(tmp_path: Path) -> None:
    for rounds in (20, 25):
        several = scenario(rounds=rounds, optimizers={"uniform": Uniform()})
        Study(several, tmp_path, into=True).run(InProcess())
    (tmp_path / "scenario.json").unlink()
    with pytest.raises(StoreError, match=r"plays of several scenarios, and no scenario\.json says"):
        Results.open(tmp_path)


# Contrasts


def differing(low: float, high: float, **setting: object) -> Contrast:
    middle = (low + high) / 2
    return Contrast(
        optimizer="mine",
        setting=setting,
        against="without liar",
        price=0.0,
        here=1.0,
        there=1.0 - middle,
        difference=Spread(middle, 1.0, low, high, 4),
        better=0.5,
        break_even=BreakEven(None, ()),
    )


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.1, 0.3, "'liar' harms mine: with it, average regret is 0.2000 higher (95 % interval"),
        (-0.3, -0.1, "'liar' helps mine: with it, average regret is 0.2000 lower (95 % interval"),
        (0.0, 0.0, "'liar' makes no difference to mine."),
        (
            -0.1,
            0.1,
            "unclear whether the expert 'liar' helps mine: the 95 % interval of the difference",
        ),
    ],
)
def test_an_expert_is_said_to_help_or_harm(low: float, high: float, words: str) -> None:
    (text,) = expert_in_words("liar", [differing(low, high)])
    assert words in text


def test_of_several_settings_those_with_harm_are_named() -> None:
    found = [
        differing(0.1, 0.3, transit=3),
        differing(-0.3, -0.1, transit=0),
        differing(-0.1, 0.1, transit=1),
        differing(0.0, 0.0, transit=2),
    ]
    (text,) = expert_in_words("liar", found)
    assert text == (
        "Effect of the expert 'liar' on mine in 4 settings: helps 1, harms 1 (transit 3), none 1, "
        "unclear 1 (interval includes 0)."
    )


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (BreakEven(0.5, ((0.25, 1.0),)), "0.5 (0.25 to 1)"),
        (BreakEven(0.5, ((0.25, inf),)), "0.5 (from 0.25)"),
        (BreakEven(0.5, ((0.0, inf),)), "0.5 (any price)"),
        (BreakEven(None, ((0.0, 0.1), (2.0, inf))), "none (0 to 0.1 or from 2)"),
        (BreakEven(None, ()), "none"),
    ],
)
def test_a_break_even_price_is_shown_with_all_that_is_possible(found: BreakEven, text: str) -> None:
    made = contrast_table("", [replace(differing(-1, 1), break_even=found)], priced=True)
    assert list(made.columns[-1].cells) == [text]


def drawn(table: Table, width: int = 80) -> str:
    console = Console(width=width, file=StringIO())
    with console.capture() as capture:
        console.print(table)
    return capture.get()


@pytest.mark.parametrize(
    "settings",
    [
        [{f"experts.sensor{i}.channel.transit": i + j for i in range(9)} for j in range(2)],
        [{"schedule": f'{{"count":{j},"kind":"constant","more":"{"x" * 60}"}}'} for j in range(2)],
    ],
    ids=["many axes", "a table for a value"],
)
def test_in_a_narrow_terminal_settings_are_folded_and_results_are_whole(
    settings: list[dict[str, object]],
) -> None:
    found = [
        replace(differing(0.1, 0.3), setting=setting, break_even=BreakEven(0.5, ((0.25, 1.0),)))
        for setting in settings
    ]
    lines = drawn(contrast_table("", found, priced=True, width=80)).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert sum("+0.2000 ± 0.1000" in line and "worse" in line for line in lines) == 2
    assert sum("(0.25 to 1)" in line for line in lines) == 2


def test_what_all_rows_have_in_common_is_told_once() -> None:
    found = [differing(0.1, 0.3, loss=0.5, transit=t) for t in (1, 2)]
    table = contrast_table("", found, priced=False)
    assert "loss" not in [column.header for column in table.columns]
    assert str(table.caption).endswith("; in all rows loss 0.5")


# Meters


def shown_meters(study: Results, width: int) -> list[str]:
    screen = Console(width=width)
    pages = []
    for table in meter_tables(summary(study), width=width):
        with screen.capture() as captured:
            screen.print(table)
        pages.append(captured.get())
    return pages


def test_meters_have_a_table_of_their_own(tmp_path: Path) -> None:
    sweep = {"feedback.noise": [0.125, 0.25]}
    (text,) = shown_meters(run_metered(tmp_path, sweep=sweep), 100)
    assert "Meters, in the last round" in text
    for part in ("battery", "left", "energy", "noise", "0.125", "asker", "91 ± 0", "100 ± 0"):
        assert part in text


def test_meters_that_do_not_fit_go_into_another_table(tmp_path: Path) -> None:
    study = run_metered(tmp_path, replications=1)
    first, second = shown_meters(study, 20)
    assert ("energy" in first, "left" in first) == (True, False)
    assert ("energy" in second, "left" in second) == (False, True)
    assert all("asker" in text and "±" not in text for text in (first, second))


def test_large_meters_are_written_in_full(tmp_path: Path) -> None:
    (row, *_) = summary(run_metered(tmp_path, replications=2))
    shown = Spread(33_541.2, 1.0, 33_000.0, 34_082.4, 2)
    (table,) = meter_tables([replace(row, meters={"battery_sent": shown})])
    assert list(table.columns[-1].cells) == ["33541 ± 541"]


def test_a_study_without_meters_has_no_table_of_them(tmp_path: Path) -> None:
    assert shown_meters(finished(tmp_path, optimizers={"uniform": Uniform()}), 100) == []


# Where the best reward is not known


@pytest.mark.parametrize("width", [80, 120])
def test_a_table_of_rewards_says_that_the_best_is_not_known(steered: Results, width: int) -> None:
    text = shown(steered, width)
    assert "mean reward" in text
    assert "unobserved" in text
    assert "average regret" not in text
    assert "exponent" not in text
    assert "nan" not in text
    standings = find_standings(steered)
    assert NO_REGRET in legend(summary_table("", standings), standings)
    assert max(map(len, text.splitlines())) <= width


def test_regret_against_the_best_seen_is_called_so(steered: Results) -> None:
    standings = find_standings(steered, best_seen=True)
    table = summary_table("A study", standings, width=120)
    text = drawn(table, 120)
    assert "regret against" in text
    assert "the best seen" in text
    assert "mean reward" in text
    assert "regret against the best seen  highest reward" in legend(table, standings)


def test_an_expert_that_raises_the_reward_helps(steered: Results) -> None:
    found = steered.finished()
    without = [
        replace(play, measures={**play.measures, "mean_reward": -5.0 - play.replication / 100})
        for play in found
    ]
    (first, *_) = compare_without(found, without, "hint")
    (told,) = expert_in_words("hint", [first])
    assert "The expert 'hint' helps" in told
    assert "with it, mean reward is" in told
    assert "higher" in told


def test_where_no_reward_was_observed_none_is_shown(tmp_path: Path) -> None:
    text = shown(steer(tmp_path, environment=Plant(silent=2.0), replications=1), 80)
    assert "none" in text
    assert "nan" not in text


def test_levels_of_several_worlds_are_shown_with_their_standard_deviation(tmp_path: Path) -> None:
    standings = find_standings(finished(tmp_path))
    level = Levels(1.5, 1.0, 0.5, uniform_std=0.3, fixed_std=0.2, late_std=0.1, worlds=8)
    table = summary_table("", standings, [({}, level)])
    names, numbers = ([str(cell) for cell in table.columns[k].cells] for k in (0, 2))
    shown = {name: " ".join(number.split()) for name, number in zip(names, numbers, strict=True)}
    assert shown["uniform, expected"] == "1.500 ± 0.300"
    assert shown["best fixed point"] == "1.000 ± 0.200"
    assert shown["one round late"] == "0.500 ± 0.100"
    told = legend(table, standings, [({}, level)])
    assert "for comparison: means ± standard deviation over 8 worlds." in told
