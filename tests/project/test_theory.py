"""The checks of reproduce/theory.py, in small, and what it has written."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log

import numpy as np
import pytest
from numpy.testing import assert_allclose

from reproduce import DOCS, theory
from sparq_environments.rkhs_walk import RKHSWalk
from sparq_sim.gp.bounds import tail_bound
from sparq_sim.simulation.randomness import Streams
from sparq_sim.testing import check_environment

SMALL = theory.QUICK


# What holds


def test_the_papers_band_holds_the_function_in_every_round_where_noise_outweighs_drift() -> None:
    row = theory._measure_coverage("clocked", theory.WALK, "theory", SMALL)
    assert row["now_rounds"] == row["before_rounds"] == 1


def test_divergence_keeps_its_bound_and_is_tiny_for_the_inducing_points() -> None:
    for row in theory.divergences(replace(SMALL, rounds=40)):
        assert row["bound_kept"] == 1
        assert row["kl"] <= 0.2


def test_tail_of_eigenvalues_keeps_its_bound_in_the_units_at_hand() -> None:
    for row in theory.tails(SMALL):
        assert row["uniform"] < row["bound"]
        assert row["played"] < row["bound"]


def test_queries_stay_below_their_schedule_and_observations_are_kept_by_the_papers_rule() -> None:
    rounds = 200
    trace = theory.WALK.play(theory.WALK.sparq("practical"), rounds)
    chosen = np.arange(1, rounds + 1)
    queries = trace.rounds["note_queries"]
    assert (queries <= np.ceil(6 * np.log(chosen))).all()
    # Choosing the point of round t + 1, ages a with a^2 + 1 <= log t are kept, and the newest.
    rule = [max(1, 1 + int((log(t) - 1) ** 0.5) if log(t) >= 1 else 1) for t in chosen]
    assert trace.rounds["note_kept"][1:].tolist() == rule[:-1]


# What does not


def test_the_band_around_yesterdays_function_loses_todays_where_drift_outweighs_noise() -> None:
    row = theory._measure_coverage("clocked", replace(theory.WALK, noise=0.01), "theory", SMALL)
    assert row["before_rounds"] == 1
    assert row["now_rounds"] < 0.8


def test_a_few_answers_do_not_know_what_answers_about_all_plays_would() -> None:
    _, model, trace = theory.play_watched(theory.WALK, "practical", rounds=240)
    ratios = [
        model.book[t].belief.std[-1] / theory._pretend_std(theory.WALK, trace.points[: t + 1])
        for t in (60, 239)
    ]
    assert ratios[0] > 1.33
    assert ratios[1] > ratios[0]


def test_the_divergence_of_the_algorithms_own_posterior_is_not_small() -> None:
    model = theory.WALK.sparq("practical", diagnose=True)
    assert theory.WALK.play(model, 60).rounds["note_kl_subset"][-1] > 1


def test_the_bound_on_the_tail_fails_in_larger_units() -> None:
    row = theory.tails(SMALL)[0]
    unit = row["fails_below"] / 2
    bound = tail_bound(row["queries"], points=1, length_scale=0.2 * unit, diameter=unit)
    assert row["uniform"] > bound


def test_the_norm_of_the_papers_function_has_no_end() -> None:
    rows = theory.norms(SMALL)
    grown = [row["ridge_1e-8"] / row["ridge_1e-4"] for row in rows]
    # At l = 5.7 it grows fast, because of its hill. At l = 3 the hill settles, at a norm that is
    # known: <f, f>_k of exp(-x^2 / 2 s^2) is s^2 / (l (2 s^2 - l^2)^1/2). A constant never does.
    assert min(grown[:2]) > 3
    assert_allclose(grown[4], 1.0, atol=1e-4)
    assert min(grown[2], grown[5]) > 1.01
    assert_allclose(rows[4]["ridge_1e-8"] ** 2, 10 / (3 * 11**0.5), rtol=1e-3)


def test_a_coin_keeps_both_assumptions() -> None:
    coin = theory.Coin()
    check_environment(coin)
    landscape = coin.start(Streams(0).generator("environment"))
    points = landscape.domain.grid(501)
    values = np.array([landscape.rewards(points, float(t)) for t in range(40)])
    assert 0.9 < np.abs(np.diff(values, axis=0)).max() <= 1
    weights = np.array([0.5, -0.5])
    ends = np.array([[0.25], [0.75]])
    assert weights @ theory.WALK.kernel(ends, ends) @ weights <= 1


def test_no_play_that_precedes_the_coin_escapes_its_regret_but_waiting_play_does() -> None:
    for row in theory.coin(replace(SMALL, rounds=60)):
        if row["play"] == "clocked":
            assert abs(row["regret"] - row["unavoidable"]) < 4 * row["standard_error"]
        else:
            assert row["regret"] < 0.1


# How it is measured


def test_watching_changes_nothing() -> None:
    place = theory.WALK
    _, _, trace = theory.play_watched(place, "practical", rounds=60)
    assert trace.digest() == place.play(place.sparq("practical"), 60).digest()


def test_a_belief_is_written_down_as_it_was_when_the_point_was_chosen() -> None:
    place = replace(theory.WALK, environment=RKHSWalk(change=0.1))
    _, model, trace = theory.play_watched(place, "practical", rounds=40)
    for seen, width in zip(model.book, trace.rounds["note_width"], strict=True):
        bounds = seen.belief.mean + seen.belief.width * seen.belief.std
        assert seen.belief.width == width
        assert bounds[-1] >= bounds.max() - 1e-9


@pytest.mark.parametrize("power", [0.25, 0.5, 1.0])
def test_tail_exponent_finds_the_power_whatever_came_before(power: float) -> None:
    regrets = np.arange(1, 20_001.0) ** (power - 1)
    regrets[:1000] += 5.0
    assert_allclose(theory.tail_exponent(regrets), power, atol=0.01)


def test_long_plays_are_summed_up_in_a_row() -> None:
    short = replace(SMALL, long=400)
    row = theory._measure_growth(theory.WALK, "theory", short, theory._gains(theory.WALK, 400))
    assert row["plays"] == SMALL.plays
    assert row["tail_low"] < row["tail"] < row["tail_high"]
    assert row["queries_400"] <= row["schedule"]
    assert row["bound_400"] > row["uniform"] > row["regret_end"]
    assert row["informative"] > 400


# What is written

COMMITTED = json.loads((DOCS / "results" / "theory.json").read_text(encoding="utf-8"))


def test_every_check_is_written_down() -> None:
    assert COMMITTED.keys() == theory.CHECKS.keys()


def test_norms_are_those_committed() -> None:
    for now, then in zip(theory.norms(theory.FULL), COMMITTED["norms"], strict=True):
        assert now["function"] == then["function"]
        for column in ("ridge_1e-2", "ridge_1e-4", "ridge_1e-6", "ridge_1e-8"):
            assert_allclose(now[column], then[column], rtol=1e-3)


@pytest.mark.slow
def test_tails_and_the_regret_of_the_coin_are_those_committed() -> None:
    for now, then in zip(theory.tails(theory.FULL), COMMITTED["tails"], strict=True):
        for column in ("uniform", "bound"):
            assert_allclose(now[column], then[column], rtol=1e-4)
    for now, then in zip(theory.coin(theory.FULL), COMMITTED["coin"], strict=True):
        # Other machines round otherwise, and plays then part: only the means agree.
        assert abs(now["regret"] - then["regret"]) <= 2 * then["standard_error"] + 1e-5


@pytest.mark.slow
def test_long_plays_do_not_reach_the_root_of_the_rounds() -> None:
    gains = theory._gains(theory.PAPER, 8000)
    effort = replace(theory.FULL, long=8000)
    row = theory._measure_growth(theory.PAPER, "theory", effort, gains)
    assert row["tail_low"] > 0.5


def test_choices_and_limits_are_compared_play_by_play() -> None:
    few = replace(SMALL, rounds=30)
    row = theory._compare_choices(theory.WALK, "practical", few)
    assert_allclose(row["minus"], row["anew"] - row["kept"])
    assert row["minus_low"] < row["minus"] < row["minus_high"]
    rows = [r for r in theory.limits(few) if (r["world"], r["width"]) == ("walk", "practical")]
    assert [each["limit"] for each in rows] == [*theory.LIMITS]
    assert rows[-1]["kept"] == 29 > rows[1]["kept"] > rows[0]["kept"]
    for each in rows[1:]:
        assert_allclose(each["minus"], each["regret"] - rows[0]["regret"])
