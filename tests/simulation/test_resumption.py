from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from sparq_sim import Rules
from sparq_sim.simulation.delivery.budget import Budget
from sparq_sim.simulation.past import Past
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.resumption import restore_budget
from tests.simulation.recording import answered, lost, query


@pytest.mark.parametrize(
    ("fate", "per_round", "exhausted"),
    [(Fate.BUDGET, inf, True), (Fate.BUDGET, 2.0, False), (Fate.LOST, inf, False)],
)
def test_a_budget_is_exhausted_still_if_it_alone_refused_something(
    fate: Fate, per_round: float, exhausted: bool
) -> None:
    refused = replace(lost(query(), [1]), fate=fate)
    past = Past(records=[answered(query(), [0]), refused])
    rules = Rules(rounds=9, budget=4.0, budget_per_round=per_round)
    budget = Budget(rules.budget, rules.budget_per_round)
    restore_budget(budget, past, rules)
    assert (budget.exhausted, budget.spent) == (exhausted, 0.75)
