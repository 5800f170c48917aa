from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from pydantic import ValidationError

from sparq_experts.lagged import Lagged
from sparq_sim.testing import check_expert
from tests.experts import consult


def test_it_obeys_the_laws() -> None:
    check_expert(Lagged())


@given(lag=st.floats(0, 20), now=st.floats(0, 20))
def test_it_tells_the_reward_of_then_and_when_that_was(lag: float, now: float) -> None:
    heard = consult(Lagged(lag=lag), [now], [0.1, 0.9])
    (answer,) = heard.answers
    assert answer.measured_at == max(0.0, now - lag)
    assert_array_equal(answer.values, heard.truth.rewards(answer.points, answer.measured_at))


@pytest.mark.parametrize("lag", [-1.0, float("inf"), float("nan")])
def test_a_lag_that_is_none_is_refused(lag: float) -> None:
    with pytest.raises(ValidationError, match="lag"):
        Lagged(lag=lag)
