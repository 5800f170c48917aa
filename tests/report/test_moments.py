from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparq_sim import Channel, Rules, play
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.report.moments import choose_rounds, find_moments
from sparq_sim.testing import Slope, Teller
from tests.report.test_replay import GIVEN


def test_the_longest_outage_comes_before_the_largest_regret() -> None:
    out = Channel(outages=[(4, 6), (11, 16)])
    experts = {"sage": (Teller(), out)}
    trace = play(SparQGPUCB(**GIVEN), Slope(), Rules(rounds=30), experts=experts)
    outage, worst = find_moments(trace)
    assert outage.about == "outage of sage"
    regrets = trace.rounds["regret"]
    assert 11 <= outage.row + 1 <= 15
    assert regrets[outage.row] == regrets[10:15].max()
    assert (worst.about, worst.row) == ("largest regret", 3 + int(regrets[3:].argmax()))


def test_a_play_without_regret_has_no_moments() -> None:
    trace = play(GPUCB(**GIVEN), Slope(), Rules(rounds=3))
    trace.rounds["regret"][:] = 0
    assert find_moments(trace) == []


@given(st.integers(1, 2000), st.lists(st.integers(0, 1999), max_size=4), st.integers(2, 150))
def test_no_more_rounds_are_filmed_than_may_be_the_first_and_last_among_them(
    total: int, moments: list[int], most: int
) -> None:
    rows = choose_rounds(total, {row: 1 for row in moments if row < total}, most=most)
    assert (rows[0], rows[-1]) == (0, total - 1)
    assert (np.diff(rows) > 0).all()
    assert len(rows) <= most + len(moments) + 2
    assert {row for row in moments if row < total} <= {*rows.tolist()}
