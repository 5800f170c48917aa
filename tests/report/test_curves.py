from __future__ import annotations

import numpy as np

from sparq_sim.analysis.curves import Band
from sparq_sim.report.curves import find_curves, tell_beyond
from sparq_sim.report.data import ChartData


def test_a_chart_tells_of_first_rounds_that_its_axis_leaves_out() -> None:
    for first, beyond in ((9.0, True), (0.2, False)):
        average = np.array([first, *[0.2] * 99])
        rounds = np.arange(1, 101)
        sums = np.array(average * rounds, dtype=float)
        band = Band("o", {}, rounds, sums, sums, sums, np.full(100, 6), np.empty((0, 100)))
        curves = find_curves(ChartData(optimizers=["o"], bands=[band]), {}, average=True)
        assert ("first 4 % of the rounds" in tell_beyond(curves, from_zero=True)) == beyond
