from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sparq_experts.human import Human
from sparq_sim import Rules, play
from sparq_sim.testing import Asker, Slope, check_expert
from tests.conftest import Run
from tests.experts import consult

HOUR = 1.0
DAY = 24.0


def at_work(human: Human, moment: float) -> bool:
    date, hour = divmod(moment, human.day)
    slack = 1e-9 * human.day
    # Who works till midnight is done when the next day begins, and so may be a rounding.
    return any(
        (date - shift) % 7 < human.workdays
        and human.opens - slack <= hour + shift * human.day <= human.closes + slack
        for shift in (-1, 0, 1)
    )


def worked(human: Human, start: float, end: float, parts: int = 20_000) -> float:
    """Return the working time between two moments, by looking at many of them."""
    moments = start + (np.arange(parts) + 0.5) * (end - start) / parts
    hours, dates = moments % human.day, moments // human.day
    there = (dates % 7 < human.workdays) & (hours >= human.opens) & (hours < human.closes)
    return float(there.mean() * (end - start))


def test_it_obeys_the_laws() -> None:
    check_expert(Human())


def test_no_answer_is_measured_or_comes_outside_working_hours() -> None:
    human = Human()
    trace = play(Asker(batch=5), Slope(), Rules(rounds=24 * 14), experts={"expert": human}, seed=4)
    replies = {
        name: column[trace.replies["source"] == "expert"] for name, column in trace.replies.items()
    }
    answered = replies["fate"] == "answered"
    assert answered.sum() > 500
    for moment in (*replies["arrived_at"][answered], *replies["measured_at"][answered]):
        assert at_work(human, moment)


humans = st.builds(
    lambda day, opens, share, workdays: Human(
        day=day,
        opens=opens * day,
        closes=min(day, opens * day + share * (1 - opens) * day),
        workdays=workdays,
    ),
    day=st.floats(0.1, 100),
    opens=st.floats(0, 0.9),
    share=st.floats(0.05, 1),
    workdays=st.integers(1, 7),
)


@given(human=humans, start=st.floats(0, 500), work=st.floats(0, 300))
def test_work_is_done_in_working_hours(human: Human, start: float, work: float) -> None:
    done = human.done_at(start, work)
    assert done >= start
    assert at_work(human, done)


@given(human=humans, date=st.integers(0, 30), weeks=st.integers(1, 5))
def test_whole_weeks_of_work_from_midnight_on_end_when_a_little_less_does(
    human: Human, date: int, weeks: int
) -> None:
    start = date * human.day
    work = weeks * human.workdays * (human.closes - human.opens)
    done, sooner = human.done_at(start, work), human.done_at(start, (1 - 1e-6) * work)
    assert done - sooner <= 2e-6 * work + 1e-9 * human.day


@given(start=st.floats(0, 400), work=st.floats(0.01, 100))
def test_as_much_working_time_passes_as_there_is_work(start: float, work: float) -> None:
    human = Human()
    done = human.done_at(start, work)
    assert worked(human, start, done) == pytest.approx(work, abs=(done - start) / 1000)


@pytest.mark.parametrize(
    ("start", "work", "done"),
    [
        (10 * HOUR, 2 * HOUR, 12 * HOUR),
        (3 * HOUR, 2 * HOUR, 11 * HOUR),
        (16 * HOUR, 2 * HOUR, DAY + 10 * HOUR),
        (17 * HOUR, 0.0, DAY + 9 * HOUR),
        (9 * HOUR, 8 * HOUR, 17 * HOUR),
        (4 * DAY + 16 * HOUR, 3 * HOUR, 7 * DAY + 11 * HOUR),
        (5 * DAY, 1 * HOUR, 7 * DAY + 10 * HOUR),
        (9 * HOUR, 45 * HOUR, 7 * DAY + 14 * HOUR),
        (9 * HOUR, 39.999 * HOUR, 4 * DAY + 16.999 * HOUR),
        (9 * HOUR, 40 * HOUR, 4 * DAY + 17 * HOUR),
        (9 * HOUR, sum([0.1] * 400) * HOUR, 4 * DAY + 17 * HOUR),
        (9 * HOUR, 80 * HOUR, 11 * DAY + 17 * HOUR),
        (12 * HOUR, 40 * HOUR, 7 * DAY + 12 * HOUR),
        (17 * HOUR, 40 * HOUR, 7 * DAY + 17 * HOUR),
        (5 * DAY, 40 * HOUR, 11 * DAY + 17 * HOUR),
    ],
)
def test_work_stops_in_the_evening_and_at_the_weekend(
    start: float, work: float, done: float
) -> None:
    assert Human().done_at(start, work) == pytest.approx(done)


def test_it_does_one_thing_at_a_time(run: Run) -> None:
    heard = consult(Human(thinking=1.0), [9.0, 9.0, 9.5], run=run)
    assert [answer.arrived_at for answer in heard.answers] == [10.0, 11.0, 12.0]


def test_between_two_batches_others_have_their_turn() -> None:
    human = Human(thinking=0.5, batch=2)
    heard = consult(human, [9.0, 9.0], [0.1, 0.2, 0.3])
    first, second = heard.answers
    # Two points of the first, two of the second, the last of the first, that of the second.
    assert (first.measured_at, first.arrived_at) == (10.0, 11.5)
    assert (second.measured_at, second.arrived_at) == (11.0, 12.0)


def test_it_knows_the_reward_of_when_it_thought() -> None:
    heard = consult(Human(thinking=0.5), [3.0], [0.1, 0.2, 0.3])
    assert heard.answers[0].measured_at == 10.5
    assert heard.errors == [0.0, 0.0, 0.0]


def test_thinking_takes_the_times_it_should() -> None:
    human = Human(batch=1, day=1e6, opens=0.0, closes=1e6)
    heard = consult(human, [0.0] * 2000, patience=1e5)
    thought = np.diff([0.0, *(answer.arrived_at for answer in heard.answers)])
    logs = np.log(thought / 0.05)
    assert len(logs) == 2000
    assert abs(logs.mean()) < 5 / np.sqrt(len(logs))
    assert abs(logs.var() - 1) < 5 * np.sqrt(2 / len(logs))


@pytest.mark.parametrize(("opens", "closes"), [(17.0, 9.0), (9.0, 9.0), (9.0, 25.0)])
def test_hours_that_are_none_are_refused(opens: float, closes: float) -> None:
    with pytest.raises(ValidationError, match=r"working hours from .* are none in a day of 24"):
        Human(opens=opens, closes=closes)


@pytest.mark.parametrize("workdays", [0, 8])
def test_a_week_without_work_or_of_eight_days_is_refused(workdays: int) -> None:
    with pytest.raises(ValidationError, match="workdays"):
        Human(workdays=workdays)
