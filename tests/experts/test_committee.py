from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from sparq_experts.committee import Committee
from sparq_experts.lagged import Lagged
from sparq_experts.truth import Truth
from sparq_sim import Channel, PluginError
from sparq_sim.testing import check_expert
from tests.conftest import Run
from tests.experts import consult

STDS = {"poor": 0.4, "fair": 0.2, "good": 0.1}
PRECISION = sum(std**-2 for std in STDS.values())
MEMBERS = {name: (Truth(), Channel(noise=std)) for name, std in STDS.items()}
COMMITTEE = Committee(members=tuple(STDS))
POINTS = np.linspace(0, 1, 4000).tolist()


def test_it_obeys_the_laws() -> None:
    check_expert(COMMITTEE, others=MEMBERS)


def test_the_variance_of_its_errors_is_the_precision_weighted_one() -> None:
    errors = np.array(consult(COMMITTEE, [1.0], POINTS, others=MEMBERS).errors)
    assert abs(errors.mean()) < 5 / np.sqrt(PRECISION * len(errors))
    # The variance of normal errors is known to within a share of sqrt(2 / n).
    assert abs(errors.var() * PRECISION - 1) < 5 * np.sqrt(2 / len(errors))


def test_the_std_it_claims_is_the_precision_weighted_one() -> None:
    (answer,) = consult(COMMITTEE, [1.0], POINTS, others=MEMBERS).answers
    assert answer.stds == pytest.approx(PRECISION**-0.5)


def test_it_is_better_than_its_best_member() -> None:
    errors = np.array(consult(COMMITTEE, [1.0], POINTS, others=MEMBERS).errors)
    assert errors.var() < min(STDS.values()) ** 2


def test_members_who_fail_at_a_point_are_left_out_there() -> None:
    members = MEMBERS | {"good": (Truth(), Channel(noise=0.1, loss=0.5, split=True))}
    heard = consult(COMMITTEE, [1.0], POINTS, others=members)
    (answer,) = heard.answers
    without = (PRECISION - 0.1**-2) ** -0.5
    with_it = PRECISION**-0.5
    assert sorted({round(float(std), 12) for std in answer.stds}) == pytest.approx(
        [with_it, without]
    )
    errors = np.array(heard.errors) / answer.stds
    assert abs(errors.var() - 1) < 5 * np.sqrt(2 / len(errors))


def test_points_that_no_member_knows_fail() -> None:
    members = {"only": (Truth(), Channel(noise=0.1, loss=0.5, split=True))}
    heard = consult(Committee(members=("only",)), [1.0], POINTS[:100], others=members)
    (answer,), (failure,) = heard.answers, heard.failures
    assert sorted([*answer.rows, *failure.rows]) == list(range(100))
    assert 20 < len(failure.rows) < 80


def test_if_no_member_answers_it_says_so() -> None:
    members = {"only": (Truth(), Channel(loss=1.0))}
    (failure,) = consult(Committee(members=("only",)), [1.0], others=members).failures
    assert "no member answered" in failure.reason


def test_members_are_asked_all_at_once_and_awaited(run: Run) -> None:
    members = {
        "quick": (Truth(), Channel(service=1.0, noise=1.0)),
        "slow": (Truth(), Channel(service=3.0, transit=2.0, noise=1.0)),
    }
    heard = consult(Committee(members=("slow", "quick")), [1.0], others=members, run=run)
    assert [answer.arrived_at for answer in heard.answers] == [6.0]


def test_its_date_is_the_precision_weighted_one() -> None:
    members = {
        "new": (Truth(), Channel(noise=1.0)),
        "old": (Lagged(lag=4.0), Channel(noise=0.5)),
    }
    (answer,) = consult(Committee(members=("new", "old")), [5.0], others=members).answers
    assert answer.measured_at == pytest.approx((5.0 * 1 + 1.0 * 4) / 5)


def test_members_cost_what_their_channels_say() -> None:
    members = {
        "dear": (Truth(), Channel(cost=2.0, noise=0.1)),
        "cheap": (Truth(), Channel(cost_per_point=0.25, noise=0.1)),
    }
    committee = Committee(members=("dear", "cheap"))
    heard = consult(committee, [1.0, 2.0], [0.1, 0.2], others=members, channel=Channel(cost=0.125))
    assert heard.spent == 2 * (2.0 + 0.5 + 0.125)
    assert [answer.cost for answer in heard.answers] == [0.125, 0.125]


def test_a_member_who_claims_to_be_exact_decides() -> None:
    members = {"exact": (Truth(), Channel()), "poor": (Truth(), Channel(noise=0.4))}
    heard = consult(Committee(members=("exact", "poor")), [1.0], POINTS[:50], others=members)
    assert max(map(abs, heard.errors)) < 1e-9


def test_a_member_whom_nobody_knows_is_refused_before_the_play() -> None:
    with pytest.raises(PluginError, match=r"'goood': did you mean 'good'\?"):
        consult(Committee(members=("goood",)), [1.0], others=MEMBERS)


def test_a_circle_of_committees_fails_and_ends_no_play() -> None:
    others = {"second": (Committee(members=("expert",)), Channel())}
    heard = consult(Committee(members=("second",)), [1.0], others=others)
    assert "no member answered" in heard.failures[0].reason
    refused = [r.reply for r in heard.records if r.reply.query.source == "second"]
    assert "experts ask in a circle" in refused[0].reason  # type: ignore[union-attr]


def test_a_committee_that_asks_itself_is_told_so() -> None:
    (failure,) = consult(Committee(members=("expert",)), [1.0]).failures
    assert "experts ask in a circle: expert>expert" in failure.reason


def test_committees_may_sit_in_committees() -> None:
    others = MEMBERS | {"below": (Committee(members=("poor", "fair")), Channel())}
    (answer,) = consult(Committee(members=("below", "good")), [1.0], others=others).answers
    assert answer.stds == pytest.approx(PRECISION**-0.5)


@pytest.mark.parametrize("members", [(), ("good", "good")])
def test_nobody_or_one_twice_is_no_committee(members: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError, match="members"):
        Committee(members=members)
