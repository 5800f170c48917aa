from __future__ import annotations

import pytest
from numpy.testing import assert_allclose

from sparq_sim import Box
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.sparq_memory.carried import Carried, Currents
from sparq_sim.optimizers.sparq_memory.features import SpatialFeatures
from sparq_sim.optimizers.sparq_memory.markov import Markov
from sparq_sim.optimizers.sparq_memory.members import DRIFTS, MEMBERS, Member

GRID = Box(0.0, 1.0).grid(51)
FEATURES = SpatialFeatures(SquaredExponential(variance=2.0, length_scale=0.3), GRID)
CURRENTS = Currents.of(FEATURES)


@pytest.mark.parametrize("member", MEMBERS, ids=lambda each: f"{each.drift} {each.time_scale:g}")
def test_every_member_begins_with_the_variance_of_the_prior(member: Member) -> None:
    one = member.start(FEATURES, CURRENTS)
    at = FEATURES.at(GRID)
    foresight = one.foresee(0.0, 0.0)
    assert_allclose(foresight.mean, 0.0)
    assert_allclose(at @ foresight.covariance @ at.T, at @ at.T, atol=1e-9)


@pytest.mark.parametrize("member", MEMBERS, ids=lambda each: f"{each.drift} {each.time_scale:g}")
def test_every_member_is_of_the_kind_that_it_states(member: Member) -> None:
    one = member.start(FEATURES, CURRENTS)
    assert isinstance(one, Carried if member.drift == "carried" else Markov)
    assert one.remember(0.0) == pytest.approx(1.0)
    assert 0.0 < one.remember(member.time_scale) < 1.0
    if isinstance(one, Markov):
        # Of what changes, an OU process keeps 1 / e after its time scale, and Matern 3/2 48 %.
        kept = (one.remember(member.time_scale) - 1 + member.changing) / member.changing
        assert kept == pytest.approx(0.368 if member.drift == "jitter" else 0.483, abs=1e-3)


def test_there_are_members_of_every_drift() -> None:
    assert {each.drift for each in MEMBERS} == set(DRIFTS)
