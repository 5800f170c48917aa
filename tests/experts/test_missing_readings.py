"""Of what a record lacks, no expert knows more than that."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from sparq_experts.adversary import Adversary
from sparq_experts.biased import Biased
from sparq_experts.blind_spot import BlindSpot
from sparq_experts.drifting_bias import DriftingBias
from sparq_experts.forecast import Forecast
from sparq_experts.human import Human
from sparq_experts.lagged import Lagged
from sparq_experts.logbook import Logbook
from sparq_experts.quantised import Quantised
from sparq_experts.simulator import Simulator
from sparq_experts.truth import Truth
from sparq_sim import Environment, Expert
from sparq_sim.plugin.contract import Landscape
from sparq_sim.testing import check_expert
from tests.experts import consult
from tests.gappy import Gappy, GappyLandscape

EXPERTS = [
    Truth(),
    Biased(),
    DriftingBias(),
    Lagged(lag=0.5),
    Quantised(),
    Human(thinking=0.0, opens=0.0, closes=24.0),
    Adversary(bound=1e6),
    BlindSpot(lower=(0.0,), upper=(0.1,)),
    Logbook(),
    Simulator(),
]
LEFT_AND_RIGHT = [0.25, 0.75]


@pytest.mark.parametrize("expert", EXPERTS, ids=repr)
def test_a_gap_is_no_reading_and_the_other_points_are_answered(expert: Expert) -> None:
    heard = consult(expert, [6.0], LEFT_AND_RIGHT, environment=Gappy())
    (answer,) = heard.answers
    assert answer.rows.tolist() == [0]
    # The average of the adversary is of what there is, too.
    assert np.abs(answer.values).max() < 3.0
    (failure,) = heard.failures
    assert failure.rows.tolist() == [1]
    assert failure.reason == "no reading"
    assert heard.records[-1].fate == "unavailable"


@pytest.mark.parametrize("expert", [*EXPERTS, Forecast(), Forecast(method="gp")], ids=repr)
def test_they_obey_the_laws_in_a_world_with_gaps(expert: Expert) -> None:
    check_expert(expert, Gappy())


@pytest.mark.parametrize("expert", EXPERTS, ids=repr)
def test_after_a_gap_all_is_answered_again(expert: Expert) -> None:
    heard = consult(expert, [8.0], LEFT_AND_RIGHT, environment=Gappy())
    assert not heard.failures


def test_a_lagged_expert_lacks_what_was_not_read_then() -> None:
    heard = consult(Lagged(lag=2.0), [5.0, 8.0], [0.75], environment=Gappy())
    assert [answer.measured_at for answer in heard.answers] == [3.0]
    assert [failure.arrived_at for failure in heard.failures] == [8.0]


def test_a_blind_spot_and_a_gap_in_one_query_are_both_named() -> None:
    expert = BlindSpot(lower=(0.2,), upper=(0.3,))
    (failure,) = consult(expert, [6.0], [0.1, 0.25, 0.75], environment=Gappy()).failures
    assert failure.reason == "blind spot or no reading"


def test_an_adversary_who_can_read_nowhere_says_so() -> None:
    class Dark(Environment):
        def start(self, rng: Generator) -> Landscape:
            landscape = GappyLandscape()
            landscape.available = lambda points, time: np.zeros(len(points), bool)  # type: ignore[method-assign]
            return landscape

    (failure,) = consult(Adversary(), [6.0], [0.1], environment=Dark()).failures
    assert failure.reason == "no reading"


def test_a_log_keeps_its_entry_over_a_gap_and_does_not_log_what_fills_it() -> None:
    heard = consult(Logbook(refresh_after=0.5), [4.0, 6.0, 8.0], [0.75], environment=Gappy())
    assert [answer.measured_at for answer in heard.answers] == [4.0, 4.0, 8.0]
    assert heard.errors == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("method", ["persistence", "ar", "gp"])
def test_a_forecast_leaves_gaps_out_and_reaches_from_the_last_reading(method: str) -> None:
    expert = Forecast.model_validate({"method": method, "window": 20, "order": 1})
    during, after = consult(expert, [7.0, 12.0], [0.75], environment=Gappy()).answers
    read = np.sin(0.75 + np.array([0.0, 1.0, 2.0, 3.0, 4.0, 7.0, 8.0, 9.0, 10.0, 11.0]))
    # At 7 the readings of 5 and 6 are missing, so that the last one is three steps old.
    assert (during.values[0], during.stds[0]) == expert.predict(read[:5], 3.0)
    assert (after.values[0], after.stds[0]) == expert.predict(read, 1.0)


def test_a_forecast_without_a_reading_in_its_window_says_so() -> None:
    expert = Forecast(method="persistence", window=2)
    heard = consult(expert, [7.0], LEFT_AND_RIGHT, environment=Gappy())
    assert heard.answers[0].rows.tolist() == [0]
    assert [(f.rows.tolist(), f.reason) for f in heard.failures] == [([1], "no reading")]
