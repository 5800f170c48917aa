from __future__ import annotations

from math import ceil, log

import pytest
from pydantic import TypeAdapter

from sparq_sim import Box, Briefing, PluginError
from sparq_sim.gp.kernels import Matern52, SquaredExponential
from sparq_sim.optimizers.shared.lengths import AnyLength, ForgettingLength, Length, VariationLength

BRIEFING = Briefing(Box(0.0, 1.0), rounds=500)
SMOOTH = SquaredExponential()


@pytest.mark.parametrize(("epsilon", "rounds"), [(0.001, 68), (0.01, 38), (0.03, 29), (0.1, 22)])
def test_bogunovics_blocks_have_the_lengths_of_their_experiments(
    epsilon: float, rounds: int
) -> None:
    assert ForgettingLength(epsilon=epsilon)(SMOOTH, BRIEFING) == rounds


def test_matern_blocks_follow_their_own_exponent() -> None:
    c = 2 / (5 + 2)
    assert ForgettingLength(epsilon=0.01)(Matern52(), BRIEFING) == ceil(24 * 0.01 ** (-1 / (4 - c)))


def test_windows_follow_the_variation_budget() -> None:
    gain = log(500) ** 2
    assert VariationLength(budget=30.3)(SMOOTH, BRIEFING) == ceil(gain**0.25 * (500 / 30.3) ** 0.5)
    assert VariationLength()(SMOOTH, BRIEFING) == ceil(gain**0.25 * 500**0.5)


def test_no_length_exceeds_the_play() -> None:
    short = Briefing(Box(0.0, 1.0), rounds=5)
    assert VariationLength(budget=1e-3)(SMOOTH, short) == 5
    assert ForgettingLength(epsilon=0.001)(SMOOTH, short) == 5


def test_a_formula_in_the_rounds_needs_the_rounds() -> None:
    with pytest.raises(PluginError, match="give rounds or a horizon"):
        VariationLength()(SMOOTH, Briefing(Box(0.0, 1.0)))


def test_a_bare_number_is_a_length() -> None:
    length: Length = TypeAdapter(AnyLength).validate_python(12)
    assert length(SMOOTH, BRIEFING) == 12
