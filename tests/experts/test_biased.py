from __future__ import annotations

import pytest

from sparq_experts.biased import Biased
from sparq_sim.testing import check_expert
from tests.experts import consult


def test_it_obeys_the_laws() -> None:
    check_expert(Biased())


def test_a_bias_is_the_same_at_every_point_and_time() -> None:
    heard = consult(Biased(bias=-0.25), [0.0, 3.0, 9.5], [0.0, 0.4, 1.0])
    assert heard.errors == pytest.approx([-0.25] * 9)


def test_it_claims_to_be_exact() -> None:
    (answer,) = consult(Biased(), [4.0]).answers
    assert answer.stds.tolist() == [0.0]
