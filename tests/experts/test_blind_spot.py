from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from sparq_experts.blind_spot import BlindSpot
from sparq_sim import PluginError
from sparq_sim.testing import Slope, check_expert
from tests.experts import consult


def test_it_obeys_the_laws() -> None:
    check_expert(BlindSpot(lower=(0.3,), upper=(0.6,)))


def test_it_fails_within_the_box_bounds_included_and_nowhere_else() -> None:
    points = [0.0, 0.2999, 0.3, 0.45, 0.6, 0.6001, 1.0]
    heard = consult(BlindSpot(lower=(0.3,), upper=(0.6,)), [2.0], points)
    (answer,), (failure,) = heard.answers, heard.failures
    assert answer.rows.tolist() == [0, 1, 5, 6]
    assert failure.rows.tolist() == [2, 3, 4]
    assert failure.reason == "blind spot"
    assert heard.records[-1].fate == "unavailable"
    assert heard.errors == [0.0] * 4


def test_a_point_is_in_the_box_if_all_its_coordinates_are() -> None:
    points = np.array([[0.5, 0.5], [0.5, 0.9], [0.9, 0.5]])
    expert = BlindSpot(lower=(0.4, 0.4), upper=(0.6, 0.6))
    heard = consult(expert, [2.0], points, environment=Slope(place="square"))
    assert heard.failures[0].rows.tolist() == [0]


@pytest.mark.parametrize(
    ("lower", "upper", "reason"),
    [
        ((0.5,), (0.4,), "swap"),
        ((0.5,), (0.6, 0.7), "1 coordinates and upper 2"),
        ((), (), "at least 1"),
        ((float("nan"),), (1.0,), "finite"),
    ],
)
def test_what_is_no_box_is_refused(
    lower: tuple[float, ...], upper: tuple[float, ...], reason: str
) -> None:
    with pytest.raises(ValidationError, match=reason):
        BlindSpot(lower=lower, upper=upper)


def test_a_box_of_other_dimensions_than_the_domain_is_refused_before_the_play() -> None:
    with pytest.raises(PluginError, match="lower has 2 coordinates; points have 1"):
        consult(BlindSpot(lower=(0.1, 0.1), upper=(0.2, 0.2)), [1.0])
