from __future__ import annotations

from math import pi, sin

import pytest
from pydantic import ValidationError

from sparq_experts.biased import Biased, DriftingBias
from sparq_sim.plugin.contract import Expert
from sparq_sim.testing import check_expert
from tests.experts import consult


@pytest.mark.parametrize("expert", [Biased(), DriftingBias()], ids=repr)
def test_they_obey_the_laws(expert: Expert) -> None:
    check_expert(expert)


def test_a_bias_is_the_same_at_every_point_and_time() -> None:
    heard = consult(Biased(bias=-0.25), [0.0, 3.0, 9.5], [0.0, 0.4, 1.0])
    assert heard.errors == pytest.approx([-0.25] * 9)


def test_a_drifting_bias_is_an_offset_a_trend_and_a_cycle() -> None:
    expert = DriftingBias(offset=0.5, rate=0.1, amplitude=2.0, cycle=8.0)
    moments = [0.0, 2.0, 4.0, 5.5]
    expected = [0.5, 0.7 + 2.0, 0.9, 1.05 + 2.0 * sin(2 * pi * 5.5 / 8.0)]
    assert consult(expert, moments).errors == pytest.approx(expected)


def test_neither_knows_of_its_bias() -> None:
    for expert in (Biased(), DriftingBias()):
        (answer,) = consult(expert, [4.0]).answers
        assert answer.stds.tolist() == [0.0]


def test_a_cycle_of_no_length_is_refused() -> None:
    with pytest.raises(ValidationError, match="cycle"):
        DriftingBias(cycle=0.0)
