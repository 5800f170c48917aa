from __future__ import annotations

import numpy as np
import pytest

from sparq_sim.optimizers.sparq_memory.trust import Audits, Trust

OBSERVED, CLAIMED = 0.01, 0.04
"""Noise variances."""
POINT = np.array([0.5]).tobytes()


def compared(std: float, count: int, seed: int, *, bias: float = 0.0) -> tuple[Trust, int | None]:
    """Compare answers of a true *std*; return also after how many of them they were doubted."""
    rng = np.random.default_rng(seed)
    trust, doubted = Trust(), None
    for number in range(1, count + 1):
        difference = bias + std * rng.normal() - OBSERVED**0.5 * rng.normal()
        trust.compare(difference, OBSERVED, CLAIMED)
        if trust.doubted and doubted is None:
            doubted = number
    return trust, doubted


def test_an_honest_expert_is_hardly_ever_doubted() -> None:
    doubted = [compared(CLAIMED**0.5, 60, seed)[1] for seed in range(200)]
    assert sum(each is not None for each in doubted) <= 2


def test_a_std_that_is_five_times_as_large_as_claimed_is_found_within_10_comparisons() -> None:
    found = [compared(5 * CLAIMED**0.5, 10, seed)[1] for seed in range(200)]
    assert sum(each is not None for each in found) >= 198


def test_a_bias_of_five_stds_is_found_within_10_comparisons() -> None:
    found = [compared(CLAIMED**0.5, 10, seed, bias=1.0)[1] for seed in range(200)]
    assert sum(each is not None for each in found) >= 198


def test_two_comparisons_are_too_few_to_doubt() -> None:
    trust = Trust()
    for _ in range(2):
        trust.compare(100.0, OBSERVED, CLAIMED)
    assert not trust.doubted
    trust.compare(100.0, OBSERVED, CLAIMED)
    assert trust.doubted


def test_a_doubted_expert_is_believed_as_far_as_it_was_seen() -> None:
    observed, true = 0.5, 4.0
    rng = np.random.default_rng(0)
    variances = []
    for _ in range(100):
        trust = Trust()
        for _ in range(60):
            trust.compare((observed + true) ** 0.5 * rng.normal(), observed, CLAIMED)
        assert trust.doubted
        variances.append(trust.variance(CLAIMED))
    # The noise of the observations is not its own.
    assert np.mean(variances) == pytest.approx(true, abs=0.3)
    assert trust.worth(CLAIMED) == pytest.approx(CLAIMED / trust.variance(CLAIMED))


def test_a_doubted_expert_is_not_believed_more_than_it_claims() -> None:
    trust, _ = compared(1.0, 60, 0)
    assert trust.doubted
    assert trust.variance(1e6) == 1e6


def test_an_honest_expert_is_believed_as_it_claims() -> None:
    trust, _ = compared(CLAIMED**0.5, 60, 0)
    assert trust.variance(CLAIMED) == CLAIMED
    assert trust.worth(CLAIMED) == 1.0


def test_an_expert_that_has_become_honest_is_believed_again() -> None:
    trust, _ = compared(1.0, 20, 0)
    assert trust.doubted
    rng = np.random.default_rng(1)
    for _ in range(150):
        trust.compare((OBSERVED + CLAIMED) ** 0.5 * rng.normal(), OBSERVED, CLAIMED)
    assert not trust.doubted


def test_the_share_answered_follows_what_comes() -> None:
    trust = Trust()
    for number in range(400):
        trust.count_answer(came=number % 4 != 0)
    assert trust.answered == pytest.approx(0.75, abs=0.1)
    for _ in range(60):
        trust.count_answer(came=False)
    assert trust.answered < 0.01
    assert trust.worth(CLAIMED) == trust.answered


def test_audits_become_rarer_but_never_rarer_than_every_tenth_round() -> None:
    trust = Trust()
    audited = []
    for number in range(1, 101):
        if trust.is_audit_due(number):
            trust.record_audit(number)
            audited.append(number)
    gaps = np.diff(audited)
    assert audited[:4] == [1, 2, 4, 7]
    assert gaps.max() == gaps[-1] == 10


def count(trust: Trust) -> int:
    return trust._count


@pytest.mark.parametrize("answer_first", [False, True])
def test_an_answer_and_an_observation_of_one_point_and_moment_are_compared(
    answer_first: bool,
) -> None:
    audits, trust, expected = Audits(), Trust(), Trust()
    for time in range(5):
        if answer_first:
            audits.answer(trust, POINT, float(time), 3.0, CLAIMED)
        audits.observe(POINT, float(time), 1.0, OBSERVED)
        if not answer_first:
            audits.answer(trust, POINT, float(time), 3.0, CLAIMED)
        expected.compare(2.0, OBSERVED, CLAIMED)
    assert count(trust) == 5
    assert trust.variance(CLAIMED) == pytest.approx(expected.variance(CLAIMED))


def test_other_points_and_other_moments_are_not_compared() -> None:
    audits, trust = Audits(), Trust()
    audits.observe(POINT, 1.0, 0.0, OBSERVED)
    audits.answer(trust, POINT, 1.5, 3.0, CLAIMED)
    audits.answer(trust, np.array([0.6]).tobytes(), 1.0, 3.0, CLAIMED)
    audits.observe(POINT, 2.0, 0.0, OBSERVED)
    assert count(trust) == 0


def test_two_experts_are_compared_with_one_observation() -> None:
    audits, one, other = Audits(), Trust(), Trust()
    audits.observe(POINT, 1.0, 0.0, OBSERVED)
    audits.answer(one, POINT, 1.0, 3.0, CLAIMED)
    audits.answer(other, POINT, 1.0, 3.0, CLAIMED)
    assert count(one) == count(other) == 1


def test_what_waits_for_a_comparison_does_not_grow() -> None:
    audits, trust = Audits(), Trust()
    for time in range(500):
        audits.observe(POINT, float(time), 0.0, OBSERVED)
        audits.answer(trust, POINT, time + 0.5, 0.0, CLAIMED)
    assert len(audits._observed) == len(audits._answered) == 64
    audits.answer(trust, POINT, 499.0, 0.0, CLAIMED)
    assert count(trust) == 1
