"""Planted bugs are found, and nothing is found without them."""

from __future__ import annotations

import pytest

from sparq_sim.vopr import Case, check_case
from tests.vopr.planted import BUGS, find_bug

FOUND = {
    "answer used before arrival": (0, "an answer is told when it has arrived, and at once"),
    "cost not charged": (0, "each attempt costs what its channel says"),
    "stream shared": (0, "sources do not share their luck"),
    "slot never freed": (0, "nobody waits while a slot is free"),
    "stale answer counted fresh": (0, "an answer is measured before it is sent"),
    "retry charged twice": (0, "each attempt costs what its channel says"),
    "gap value served": (6, "what is faulty is not served"),
    "energy not booked": (15, "energy used and left is what there was"),
}
"""For each bug a seed at which it is found, and a law that it breaks."""


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_breaks_a_law(bug: str) -> None:
    seed, law = FOUND[bug]
    with BUGS[bug]():
        assert law in {broken.law for broken in check_case(Case(seed)).broken}


@pytest.mark.parametrize("seed", sorted({seed for seed, _ in FOUND.values()}))
def test_without_it_the_same_seed_breaks_none(seed: int) -> None:
    assert check_case(Case(seed)).broken == ()


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found_within_500_seeds(bug: str) -> None:
    assert find_bug(BUGS[bug], most=500) is not None
