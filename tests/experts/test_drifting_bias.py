from __future__ import annotations

from math import pi, sin

import pytest
from pydantic import ValidationError

from sparq_experts.drifting_bias import DriftingBias
from sparq_sim.testing import check_expert
from tests.experts import consult


def test_it_obeys_the_laws() -> None:
    check_expert(DriftingBias())


def test_a_drifting_bias_is_an_offset_a_trend_and_a_cycle() -> None:
    expert = DriftingBias(offset=0.5, rate=0.1, amplitude=2.0, cycle=8.0)
    moments = [0.0, 2.0, 4.0, 5.5]
    expected = [0.5, 0.7 + 2.0, 0.9, 1.05 + 2.0 * sin(2 * pi * 5.5 / 8.0)]
    assert consult(expert, moments).errors == pytest.approx(expected)


def test_it_claims_to_be_exact() -> None:
    (answer,) = consult(DriftingBias(), [4.0]).answers
    assert answer.stds.tolist() == [0.0]


def test_a_cycle_of_no_length_is_refused() -> None:
    with pytest.raises(ValidationError, match="cycle"):
        DriftingBias(cycle=0.0)
