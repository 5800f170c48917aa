"""What several tests of plays share."""

from __future__ import annotations

import pytest

from sparq_sim.simulation.trace import Trace
from tests.simulation.recording import answered, lost, query, traced, turn


@pytest.fixture
def trace() -> Trace:
    asked = query(rows=3)
    return traced(
        [turn(1, notes={"beta": 2.0}), turn(2), turn(3)],
        [answered(asked, [0, 2], notes={"depth": 4.0}), lost(asked, [1], 3.0)],
    )
