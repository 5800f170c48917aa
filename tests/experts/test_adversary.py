from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sparq_experts.adversary import Adversary
from sparq_sim.testing import check_expert
from tests.experts import consult

POINTS = np.linspace(0, 1, 21).tolist()


def test_it_obeys_the_laws() -> None:
    check_expert(Adversary())


@given(bound=st.floats(0, 3), now=st.floats(0, 20))
def test_it_never_errs_by_more_than_its_bound(bound: float, now: float) -> None:
    errors = consult(Adversary(bound=bound), [now], POINTS).errors
    assert max(map(abs, errors)) <= bound + 1e-12


def test_it_lowers_the_best_and_raises_the_worst_by_all_it_may() -> None:
    heard = consult(Adversary(bound=0.1), [5.0], POINTS)
    rewards = heard.truth.rewards(heard.answers[0].points, 5.0)
    assert heard.errors[int(rewards.argmax())] == pytest.approx(-0.1)
    assert heard.errors[int(rewards.argmin())] == pytest.approx(0.1)


def test_without_a_bound_to_speak_of_it_turns_the_order_round() -> None:
    heard = consult(Adversary(bound=1e6), [5.0], POINTS)
    rewards = heard.truth.rewards(heard.answers[0].points, 5.0)
    assert np.argsort(heard.answers[0].values).tolist() == np.argsort(-rewards).tolist()


def test_a_point_alone_is_lied_about_as_one_among_others() -> None:
    among = consult(Adversary(), [5.0], POINTS).errors
    assert [consult(Adversary(), [5.0], [point]).errors[0] for point in POINTS] == among


def test_it_claims_what_it_is_told_to_claim() -> None:
    (answer,) = consult(Adversary(claimed=0.01), [5.0], POINTS).answers
    assert set(answer.stds.tolist()) == {0.01}


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(ValidationError, match="bound"):
        Adversary(bound=-0.1)
