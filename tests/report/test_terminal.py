from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from numpy.random import Generator
from rich.console import Console

from sparq_sim import Estimate, Expert, Query, World
from sparq_sim.analysis.cautions import cautions
from sparq_sim.analysis.summary import summary
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Landscape
from sparq_sim.report import terminal as console
from sparq_sim.report.terminal import OPTIONAL, estimates, levels, summary_table
from sparq_sim.simulation.references import References
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.store import StoreError
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker, Slope
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


# Reference levels


class Dear(Slope):
    """A world that says how much it may be asked; *started* times so far."""

    level_evaluations = 1_000

    def start(self, rng: Generator) -> Landscape:
        STARTED.append(self)
        return super().start(rng)


STARTED: list[Dear] = []


def test_reference_levels_keep_to_the_budget_of_the_environment() -> None:
    ((_, level),) = levels(scenario(environment=Dear(), rounds=500))
    assert level.estimated_from == "3 of 500 rounds at 268 points"
    assert estimates([level, level]) == [
        "reference levels are estimated, from 3 of 500 rounds at 268 points"
    ]
    assert estimates([References(0.0, 0.0, 0.0)]) == []


def test_levels_that_are_not_wanted_are_not_computed() -> None:
    STARTED.clear()
    assert levels(scenario(environment=Dear(), levels=False)) == []
    assert not STARTED


def test_levels_that_are_known_are_not_computed_again() -> None:
    STARTED.clear()
    known: dict[str, References] = {}
    first, again = (levels(scenario(environment=Dear()), known=known) for _ in range(2))
    assert first == again
    assert len(STARTED) == 1


@pytest.mark.parametrize(("unseen", "seen"), [(0.0, True), (1e9, False)])
def test_levels_that_take_long_are_watched(
    unseen: float, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "LEVELS_UNSEEN", unseen)
    screen = StringIO()
    with console.watching_levels(Console(file=screen, force_terminal=True, width=100)) as watch:
        levels(scenario(environment=Dear()), watch=watch)
    assert ("reference levels" in screen.getvalue()) == seen
    assert ("levels = false leaves them out" in screen.getvalue()) == seen
