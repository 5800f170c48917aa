from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from sparq_sim import Estimate, Expert, Query, World
from sparq_sim.analysis.cautions import cautions
from sparq_sim.analysis.summary import summary
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.report.terminal import OPTIONAL, summary_table
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.store import StoreError
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker
from tests.study.test_store import scenario


class Raiser(Expert):
    """Has a mistake in it."""

    async def answer(self, query: Query, world: World) -> Estimate:
        raise ZeroDivisionError("division by zero")


def finished(folder: Path, **changes: object) -> Results:
    study = Study(scenario(**changes), folder)
    study.run(InProcess())
    return study.results


def shown(study: Results, width: int) -> str:
    screen = Console(width=width)
    with screen.capture() as captured:
        screen.print(summary_table("A study", summary(study), width=width))
    return captured.get()


def test_two_optimizers_that_are_alike_are_two_rows(tmp_path: Path) -> None:
    study = finished(tmp_path, optimizers={"one": Uniform(), "other": Uniform()})
    assert [each.optimizer for each in summary(study)] == ["one", "other"]


def test_a_narrow_terminal_does_without_some_columns_but_not_without_settings(
    tmp_path: Path,
) -> None:
    sweep = {"feedback.noise": [0.125, 0.25]}
    study = finished(tmp_path, optimizers={"uniform": Uniform()}, sweep=sweep)
    wide, narrow = shown(study, 200), shown(study, 40)
    assert all(column in wide for column in OPTIONAL if column not in ("pushed", "retries"))
    assert "seconds" not in narrow
    for text in ("noise", "0.125", "0.25", "average regret"):
        assert text in wide
        assert text in narrow


def test_the_table_says_of_how_many_plays_it_is(tmp_path: Path) -> None:
    study = finished(tmp_path, optimizers={"uniform": Uniform()}, replications=3)
    assert "3 plays per row" in shown(study, 100)


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
