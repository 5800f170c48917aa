"""The plan: what is worked out before the play."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparq_experts.sensors import Sensors
from sparq_experts.wireless.plan import NetworkPlan, plan_network
from sparq_experts.wireless.presets import Ieee802154Cc2420
from sparq_experts.wireless.propagation import CastaliaLoss
from sparq_sim import Sites
from sparq_sim.plugin.contract import Briefing
from tests.experts.wireless.networks import CC2420, SF7

SITES = Sites(10.0 * np.arange(5)[:, None])


def plan(**fields: Any) -> NetworkPlan:
    return plan_network(Sensors.model_validate(fields), Briefing(SITES))


@pytest.mark.parametrize("acknowledged", [False, True])
def test_nodes_of_lora_do_not_hear_each_other_and_no_matrix_is_built(acknowledged: bool) -> None:
    assert plan(radio={**SF7, "acknowledged": acknowledged}).between == []


def test_the_loss_between_two_nodes_is_the_same_in_both_directions() -> None:
    planned = plan(radio=CC2420, seed=3)
    powers = np.array(planned.between)
    assert powers.shape == (5, 5)
    losses = Ieee802154Cc2420().transmit_power - powers
    np.testing.assert_array_equal(losses, losses.T)
    # With shadowing, which differs from link to link.
    shadowing = (losses - CastaliaLoss().loss(planned.places.node_distances))[np.triu_indices(5, 1)]
    assert len(np.unique(shadowing)) == 10
    np.testing.assert_array_equal(powers, plan(radio=CC2420, seed=3).between)
    assert not np.array_equal(powers, plan(radio=CC2420, seed=4).between)
