from __future__ import annotations

import pytest
from numpy.testing import assert_array_equal

from sparq_sim.gp.observations import check_values


def test_a_number_is_the_value_of_one_point_and_of_no_more() -> None:
    assert_array_equal(check_values(1.5, 1), [1.5])
    with pytest.raises(ValueError, match=r"values of shape \(1,\) for 2 points"):
        check_values(1.5, 2)
