from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator
from pydantic import ValidationError

from sparq_experts.logbook import Logbook
from sparq_sim import Channel, Environment
from sparq_sim.arrays import Points, Values
from sparq_sim.plugin.contract import Landscape
from sparq_sim.testing import check_expert
from tests.conftest import Run
from tests.experts import consult, landscape

EXPERTS = [
    Logbook(),
    Logbook(refresh_after=3.0, service_per_evaluation=0.1, std=0.1),
    Logbook(entries=20, reach=0.1, evaluates=False),
]


@pytest.mark.parametrize("expert", EXPERTS, ids=repr)
def test_it_obeys_the_laws(expert: Logbook) -> None:
    check_expert(expert)


def test_it_evaluates_once_and_answers_from_its_log_ever_after() -> None:
    heard = consult(Logbook(), [2.0, 3.0, 9.0])
    assert [answer.measured_at for answer in heard.answers] == [2.0, 2.0, 2.0]
    assert heard.errors == [0.0, 0.0, 0.0]


def test_an_entry_older_than_allowed_is_evaluated_anew() -> None:
    heard = consult(Logbook(refresh_after=3.0), [2.0, 5.0, 5.5, 8.0, 9.0])
    assert [answer.measured_at for answer in heard.answers] == [2.0, 2.0, 5.5, 5.5, 9.0]


def test_only_evaluations_take_time(run: Run) -> None:
    expert = Logbook(service_per_evaluation=0.5, refresh_after=4.0)
    heard = consult(expert, [1.0, 4.0, 8.0], [0.1, 0.2, 0.3], run=run)
    assert [answer.arrived_at for answer in heard.answers] == [2.5, 4.0, 9.5]
    assert [answer.measured_at for answer in heard.answers] == [2.5, 2.5, 9.5]


def test_noise_is_drawn_once_for_each_evaluation_and_claimed() -> None:
    heard = consult(Logbook(std=0.3, refresh_after=5.0), [1.0, 2.0, 3.0, 7.0])
    first, second, third, fourth = (answer.values[0] for answer in heard.answers)
    assert first == second == third
    assert heard.errors[0] != 0 != heard.errors[3] != heard.errors[0]
    assert {answer.stds[0] for answer in heard.answers} == {0.3}
    assert fourth != first


def test_the_noise_of_evaluations_has_its_std() -> None:
    points = np.linspace(0, 1, 1000).tolist()
    errors = np.array(consult(Logbook(std=0.3), [1.0], points).errors)
    assert abs(errors.mean()) < 5 * 0.3 / np.sqrt(len(errors))
    assert abs(errors.var() / 0.09 - 1) < 5 * np.sqrt(2 / len(errors))


def test_a_log_alone_answers_near_its_entries_and_fails_elsewhere() -> None:
    expert = Logbook(entries=2, reach=0.1, evaluates=False)  # At 0.25 and 0.75.
    heard = consult(expert, [6.0], [0.25, 0.3, 0.5, 0.7, 1.0])
    (answer,), (failure,) = heard.answers, heard.failures
    assert (answer.rows.tolist(), failure.rows.tolist()) == ([0, 1, 3], [2, 4])
    assert answer.measured_at == 0.0
    entries = heard.truth.rewards(np.array([[0.25], [0.25], [0.75]]), 0.0)
    assert answer.values.tolist() == entries.tolist()


def test_a_log_without_any_of_the_points_says_so() -> None:
    (failure,) = consult(Logbook(entries=2, evaluates=False), [6.0], [0.5]).failures
    assert "not in the log" in failure.reason


def test_a_query_is_dated_by_its_oldest_entry_and_split_rows_each_by_their_own() -> None:
    def dates(*, split: bool) -> list[float]:
        channel = Channel(split=split)
        # The first point is in the log from time 0, the second is evaluated when it is asked for.
        heard = consult(Logbook(entries=2), [3.0], [0.25, 0.5], channel=channel)
        return [answer.measured_at for answer in heard.answers]

    assert dates(split=False) == [0.0]
    assert dates(split=True) == [0.0, 3.0]


def test_a_log_that_stays_empty_is_refused_with_the_remedy() -> None:
    with pytest.raises(ValidationError, match="the log stays empty; give it entries"):
        Logbook(evaluates=False)


# The entries of the beginning


class Noisy(Environment):
    """The slope, with a noise of its own."""

    def start(self, rng: Generator) -> Landscape:
        slope = landscape()

        def observe(points: Points, time: float, rng: Generator) -> Values:
            return slope.rewards(points, time) + rng.standard_normal(len(points))

        slope.observe = observe  # type: ignore[attr-defined]
        return slope


def test_entries_owe_nothing_to_the_query_that_comes_first() -> None:
    expert = Logbook(entries=2, std=0.3, evaluates=False)
    first, second = consult(expert, [1.0, 2.0], [0.25]).answers
    # During an outage the first query does not reach it.
    (alone,) = consult(expert, [1.0, 2.0], [0.25], channel=Channel(outages=((0.5, 1.5),))).answers
    assert first.values[0] == second.values[0] == alone.values[0]


def test_entries_have_the_noise_of_the_world_and_are_dated_at_the_beginning() -> None:
    expert = Logbook(entries=1000, evaluates=False)
    points = landscape().domain.cover(1000).ravel().tolist()
    heard = consult(expert, [5.0], points, environment=Noisy())
    assert heard.answers[0].measured_at == 0.0
    errors = np.array(heard.errors)
    assert abs(errors.mean()) < 5 / np.sqrt(len(errors))
    assert abs(errors.var() - 1) < 5 * np.sqrt(2 / len(errors))


# Looking up


@pytest.mark.parametrize("reach", [1e-12, 0.03])
def test_an_entry_within_reach_is_found_also_after_the_log_has_grown(reach: float) -> None:
    expert = Logbook(reach=reach)
    heard = consult(expert, [1.0, 2.0], [0.1, 0.5], channel=Channel(split=True))
    # The second point of the first query is logged when the first one is there already.
    assert [answer.measured_at for answer in heard.answers] == [1.0] * 4
    assert heard.errors == [0.0] * 4


def test_without_reach_only_the_very_same_point_is_found() -> None:
    points = [0.25, 0.25 + 1e-12, 0.75]
    heard = consult(Logbook(entries=2, evaluates=False), [1.0], points)
    assert heard.answers[0].rows.tolist() == [0, 2]
    assert heard.failures[0].rows.tolist() == [1]
