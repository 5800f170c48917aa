from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sparq_experts.quantised import Quantised
from sparq_sim.testing import check_expert
from tests.experts import consult


def test_it_obeys_the_laws() -> None:
    check_expert(Quantised())


@given(step=st.floats(1e-3, 2.0))
def test_values_are_marks_of_the_scale_at_most_half_a_step_off(step: float) -> None:
    heard = consult(Quantised(step=step), [1.0], np.linspace(0, 1, 9).tolist())
    (answer,) = heard.answers
    marks = answer.values / step
    assert marks == pytest.approx(np.rint(marks))
    assert max(map(abs, heard.errors)) <= step / 2 * (1 + 1e-9)


def test_the_error_has_the_std_that_is_claimed() -> None:
    points = np.random.default_rng(1).uniform(0, 1, 4000).tolist()
    heard = consult(Quantised(step=0.01), [1.0], points)
    assert heard.answers[0].stds == pytest.approx(0.01 / sqrt(12))
    # The squares of errors uniform in half a step have the coefficient of variation 2 / sqrt(5).
    ratio = np.mean(np.square(heard.errors)) / (0.01**2 / 12)
    assert abs(ratio - 1) < 5 * 2 / sqrt(5) / sqrt(len(points))


def test_a_scale_without_steps_is_refused() -> None:
    with pytest.raises(ValidationError, match="step"):
        Quantised(step=0.0)
