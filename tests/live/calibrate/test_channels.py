"""What is fitted to a simulated play is the channel of the play.

Of so many 95 % intervals, one or two miss the truth in most plays. The seeds here are of plays in
which none does; the last test counts how often they hold, over 100 plays of each kind.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from sparq_sim import Channel, Rules, play
from sparq_sim.errors import SparqError
from sparq_sim.live.calibrate import draws
from sparq_sim.live.calibrate.channels import calibrate
from sparq_sim.live.calibrate.draws import FEWEST, fit_draw
from sparq_sim.live.calibrate.families import FAMILIES, Amounts
from sparq_sim.live.calibrate.fits import Fit, wilson_interval
from sparq_sim.live.calibrate.loss import fit_bursts
from sparq_sim.simulation.channel.draws import Constant, Empirical, Pareto
from sparq_sim.simulation.channel.noise import Bursts, Gaussian, Random
from sparq_sim.simulation.trace import Trace
from sparq_sim.testing.samples import Asker, Slope, Teller
from tests.live.calibrate.plays import fit, hear

DRAWS: list[dict[str, Any]] = [
    {"kind": "exponential", "mean": 1.5},
    {"kind": "lognormal", "median": 2.0, "sigma": 0.5},
    {"kind": "gamma", "shape": 4.0, "scale": 0.5},
    {"kind": "uniform", "low": 0.5, "high": 2.5},
    {"kind": "pareto", "minimum": 0.5, "shape": 2.5},
]
KINDS = [draw["kind"] for draw in DRAWS]


def holds(found: Fit, **truth: float) -> bool:
    """Return whether all intervals of a fit hold the truth."""
    return all(low <= truth[name] <= high for name, (low, high) in found.intervals.items())


def parameters(draw: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in draw.items() if name != "kind"}


# Latency


@pytest.mark.parametrize("draw", DRAWS, ids=KINDS)
@pytest.mark.parametrize("field", ["service", "transit"])
def test_the_family_and_its_parameters_are_recovered(draw: dict[str, Any], field: str) -> None:
    fits = fit(Channel(**{field: draw}), most=2).fits
    found, other = fits[field], fits["transit" if field == "service" else "service"]
    assert found.value is not None
    assert found.value.kind == draw["kind"]  # type: ignore[attr-defined] # all draws have one
    assert holds(found, **parameters(draw))
    assert found.p_value is not None
    assert found.p_value > 0.01
    assert other.value is None


@pytest.mark.parametrize("draw", DRAWS[:3], ids=KINDS[:3])
def test_what_was_given_up_counts_as_longer(draw: dict[str, Any]) -> None:
    fitted = fit(Channel(transit=draw, patience=2.5), most=2, seed=1)
    assert fitted.fates["late"] > 20
    assert holds(fitted.fits["transit"], **parameters(draw))
    assert fitted.fits["patience"].value == 2.5


def test_service_and_transit_are_told_apart_while_others_wait() -> None:
    channel = Channel(
        service={"kind": "exponential", "mean": 0.4}, transit=DRAWS[1], capacity=1, loss=0.1
    )
    fits = fit(channel, most=2).fits
    assert holds(fits["service"], mean=0.4)
    assert holds(fits["transit"], median=2.0, sigma=0.5)
    assert holds(fits["loss"], probability=0.1)
    assert fits["capacity"].value == 1


def test_constants_are_found_exactly() -> None:
    channel = Channel(service=0.3, service_per_point=0.2, transit=1.5)
    fits = fit(channel).fits
    assert fits["service"].value == Constant(value=0.3)
    assert fits["service_per_point"].value == Constant(value=0.2)
    assert fits["transit"].value == Constant(value=1.5)


def test_what_a_point_adds_to_random_service_is_found() -> None:
    found = fit(Channel(service=DRAWS[2], service_per_point=0.5), rounds=600).fits
    low, high = found["service_per_point"].intervals["value"]
    assert low <= 0.5 <= high


def test_where_no_family_fits_quantiles_are_taken_and_that_is_said() -> None:
    values = (0.5, 0.6, 5.0, 5.1)
    found = fit(Channel(transit=Empirical(values=values)), most=2).fits["transit"]
    assert isinstance(found.value, Empirical)
    assert set(found.value.values) & set(values)
    assert "no family fits" in found.told[0]


def test_points_that_travel_alone_are_counted_alone() -> None:
    fitted = fit(Channel(transit=DRAWS[0], split=True, loss=0.2, patience=20.0), rounds=150)
    assert fitted.fits["split"].value is True
    assert sum(fitted.fates.values()) > 400
    assert holds(fitted.fits["transit"], mean=1.5)
    assert holds(fitted.fits["loss"], probability=0.2)


def test_retries_are_timed_from_when_they_are_served() -> None:
    policy = {"retries": 3, "backoff": 0.5}
    channel = Channel(transit=DRAWS[1], loss=0.3, patience=12.0, policy=policy)
    fits = fit(channel, most=2).fits
    assert holds(fits["transit"], median=2.0, sigma=0.5)
    assert holds(fits["loss"], probability=0.3)


# One latency, as of a real source: an answer arrives when service ends.


def test_a_source_that_may_also_lose_is_told_from_a_slow_one() -> None:
    rng = default_rng(1)
    drawn, limit = rng.exponential(1.0, 800), 5.0
    came = (drawn <= limit) & (rng.random(800) >= 0.1)
    lost = int((~came).sum())
    amounts = Amounts(drawn[came], np.full(lost, limit), np.full(int(came.sum()), limit))
    found = fit_draw(amounts, tolerance=1e-9, may_be_lost=True)
    low, high = found.lost_interval
    assert low <= 0.1 <= high
    assert found.intervals["mean"][0] <= 1.0 <= found.intervals["mean"][1]


def test_the_age_of_a_value_on_arrival_is_transit() -> None:
    trace = hear(Channel(service={"kind": "exponential", "mean": 0.7}, transit=0.4), most=2)
    # As a real source has it: nobody sees when the answer was sent.
    replies = {**trace.replies, "sent_at": trace.replies["arrived_at"]}
    fits = calibrate(Trace(trace.rounds, replies, trace.coordinates, trace.ended, trace.spent))[
        "lab"
    ].fits
    assert fits["transit"].value == Constant(value=0.4)
    assert holds(fits["service"], mean=0.7)


# Loss


def test_losses_in_bursts_are_told_from_independent_ones() -> None:
    truth = Bursts(good_spell=20.0, bad_spell=5.0)
    found = fit(Channel(loss=truth), rounds=600, most=2).fits["loss"]
    assert isinstance(found.value, Bursts)
    assert found.intervals["good_spell"][0] <= 20 <= found.intervals["good_spell"][1]
    assert found.intervals["bad_spell"][0] <= 5 <= found.intervals["bad_spell"][1]
    assert isinstance(fit(Channel(loss=0.2), most=2).fits["loss"].value, Random)


def test_bursts_in_which_not_all_is_lost_are_fitted() -> None:
    truth = Bursts(good_spell=30.0, bad_spell=10.0, lost_in_good=0.05, lost_in_bad=0.7)
    chances, rng = truth.start(default_rng(3)), default_rng(4)
    moments = np.arange(2000) / 2
    lost = np.array([rng.random() < chances(moment) for moment in moments])
    fitted = fit_bursts(moments, lost)
    assert fitted is not None
    assert holds(
        Fit(intervals=fitted[1]),
        good_spell=30.0,
        bad_spell=10.0,
        lost_in_good=0.05,
        lost_in_bad=0.7,
    )


def test_the_interval_of_a_share_is_that_of_wilson() -> None:
    # Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    table = {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }
    for (lost, total), interval in table.items():
        assert wilson_interval(lost, total) == pytest.approx(interval, abs=5e-5)


# Noise


def test_noise_is_measured_by_repeated_answers() -> None:
    found = fit(Channel(noise=0.1)).fits["noise"]
    assert isinstance(found.value, Gaussian)
    assert found.value.claimed is None
    assert holds(found, std=0.1)


@pytest.mark.parametrize("claimed", [0.02, 0.5])
def test_a_claimed_std_that_is_wrong_is_contradicted(claimed: float) -> None:
    found = fit(Channel(noise=Gaussian(std=0.1, claimed=claimed))).fits["noise"]
    assert holds(found, std=0.1)
    assert isinstance(found.value, Gaussian)
    assert found.value.claimed == claimed
    assert "but the values differ" in " ".join(found.told)


def test_drift_is_no_noise() -> None:
    channel = Channel(transit={"kind": "uniform", "high": 0.9}, noise=0.3)
    service = channel.model_copy(update={"service": channel.transit, "transit": Constant(value=0)})
    experts = {"lab": (Teller(), service)}
    trace = play(Asker(batch=3), Slope(), Rules(rounds=600), experts=experts)
    found = calibrate(trace)["lab"].fits["noise"]
    assert "drift is removed" in found.told[0]
    assert holds(found, std=0.3)


def test_a_std_that_drift_may_explain_is_an_upper_bound() -> None:
    trace = play(Asker(), Slope(), Rules(rounds=200), experts={"lab": (Teller(), Channel())})
    found = calibrate(trace)["lab"].fits["noise"]
    assert "may be smaller" in found.told[0]


def test_without_repeated_answers_the_claim_is_taken_and_that_is_said() -> None:
    trace = play(Asker(batch=1), Slope(), Rules(rounds=50), feedback=Channel(noise=0.3))
    found = calibrate(trace)["reward"].fits["noise"]
    assert found.value == Gaussian(std=0.3)
    assert "as all answers claim" in found.told[0]
    assert "10 are needed" in found.told[0]


def test_a_source_without_noise_has_none() -> None:
    assert fit(Channel()).fits["noise"].value is None


# Cost


@pytest.mark.parametrize("charged", ["asked", "answered"])
def test_costs_and_when_they_fall_due_are_found(charged: str) -> None:
    channel = Channel(cost=0.5, cost_per_point=0.25, charged=charged, loss=0.2)
    fits = fit(channel).fits
    assert fits["cost"].value == Constant(value=0.5)
    assert fits["cost_per_point"].value == Constant(value=0.25)
    assert (fits["charged"].value or "asked") == charged


def test_costs_that_fall_due_when_served_are_told_by_what_never_was() -> None:
    fits = fit(Channel(service=2.0, cost=1.0, charged="served", capacity=1, patience=8.0)).fits
    assert fits["charged"].value == "served"
    assert fits["cost"].value == Constant(value=1.0)


def test_random_costs_are_fitted() -> None:
    assert holds(fit(Channel(cost=DRAWS[2]), most=2).fits["cost"], shape=4.0, scale=0.5)


def test_what_costs_nothing_has_no_cost() -> None:
    assert "cost" not in fit(Channel()).fits


# Too little


def test_too_few_answers_are_not_fitted_and_it_is_said_how_many_are_needed() -> None:
    found = fit(Channel(transit=DRAWS[0]), rounds=8).fits["transit"]
    assert found.value is None
    assert "too few" in found.told[0]
    assert f"at least {FEWEST}" in found.told[0]


def test_a_play_without_replies_is_refused() -> None:
    trace = hear(Channel(), rounds=3)
    bare = Trace(trace.rounds, {}, trace.coordinates, trace.ended, trace.spent)
    with pytest.raises(SparqError, match='record = "full"'):
        calibrate(bare)
    empty = {name: column[:0] for name, column in trace.replies.items()}
    with pytest.raises(SparqError, match="nobody was asked"):
        calibrate(Trace(trace.rounds, empty, trace.coordinates, trace.ended, trace.spent))


def test_requests_with_an_injected_fault_are_left_out() -> None:
    faults = ({"kind": "late", "delay": 50.0, "share": 0.2},)
    fitted = fit(Channel(transit=1.0, faults=faults), rounds=100)
    assert fitted.fits["transit"].value == Constant(value=1.0)
    assert fitted.faults > 5


# Likelihoods, against scipy


def test_densities_and_tails_are_those_of_scipy() -> None:
    from scipy import stats

    at = np.linspace(0.6, 4.0, 20)
    references = {
        "exponential": ([1.5], stats.expon(scale=1.5)),
        "lognormal": ([2.0, 0.5], stats.lognorm(0.5, scale=2.0)),
        "gamma": ([4.0, 0.5], stats.gamma(4.0, scale=0.5)),
        "uniform": ([0.5, 4.5], stats.uniform(0.5, 4.0)),
        "pareto": ([0.5, 2.5], stats.pareto(2.5, scale=0.5)),
    }
    for family in FAMILIES:
        values, reference = references[family.kind]
        given = np.array(values)
        assert family.log_density(given, at) == pytest.approx(reference.logpdf(at))
        assert family.exceed(given, at) == pytest.approx(reference.sf(at))


def test_gamma_is_estimated_as_scipy_does() -> None:
    from scipy import stats

    drawn = default_rng(0).gamma(3.0, 0.7, 400)
    (gamma,) = (family for family in FAMILIES if family.kind == "gamma")
    shape, _, scale = stats.gamma.fit(drawn, floc=0)
    assert gamma.estimate(drawn) == pytest.approx([shape, scale], rel=1e-4)


# Many plays


@pytest.mark.slow
@pytest.mark.parametrize("draw", DRAWS, ids=KINDS)
@pytest.mark.parametrize("patience", [inf, 3.0])
def test_intervals_hold_the_truth_in_95_of_100_plays(
    draw: dict[str, Any], patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "_SAMPLES", 1)  # How well a family fits is not asked here.
    channel = Channel(transit=draw, loss=0.1, noise=0.2, patience=patience)
    held: dict[str, list[bool]] = {}
    for seed in range(100):
        fits = fit(channel, rounds=150, seed=seed, most=2).fits
        truth = {"loss": {"probability": 0.1}, "noise": {"std": 0.2}}
        if getattr(fits["transit"].value, "kind", "") == draw["kind"]:
            truth["transit"] = parameters(draw)
        for field, values in truth.items():
            for name, value in values.items():
                low, high = fits[field].intervals[name]
                held.setdefault(f"{field} {name}", []).append(low <= value <= high)
    for name, each in held.items():
        # Cut off at 3, a lognormal and a gamma distribution look alike.
        assert len(each) >= 50, name
        # Fewer than 89 of 100 have a probability below 1 % where each has 95 %.
        assert np.mean(each) >= 0.885, f"{name}: {np.mean(each):.0%}"


# Real clocks


def hear_in_real_time(channel: Channel) -> Trace:
    """Play as `hear` does, with the delays of an event loop and rounds of 1 s."""
    heard = hear(channel)
    rng = default_rng(3)
    replies = {name: np.array(column) for name, column in heard.replies.items()}
    _, of_query = np.unique(replies["query"], return_inverse=True)
    delay = rng.exponential(0.003, of_query.max() + 1)[of_query]
    for name in ("served_at", "sent_at", "measured_at", "arrived_at"):
        replies[name] += delay
    replies["arrived_at"] += rng.exponential(0.0005, of_query.max() + 1)[of_query]
    return replace(heard, replies=replies)


def test_in_real_time_what_was_given_up_still_tells_of_patience() -> None:
    draw = {"kind": "exponential", "mean": 1.5}
    channel = Channel.model_validate({"service": draw, "patience": 2.0})
    found = calibrate(hear_in_real_time(channel))["lab"]
    assert found.fields["patience"] == pytest.approx(2.0, abs=0.01)
    assert holds(found.fits["service"], mean=1.5)
    assert "loss" not in found.fields
    assert "too short to matter" in found.fits["transit"].told[0]
    assert "transit" not in found.fields


def test_in_real_time_a_queue_is_found_and_setting_out_is_none() -> None:
    draw = {"kind": "exponential", "mean": 0.8}
    queued = Channel.model_validate({"service": draw, "capacity": 1})
    assert calibrate(hear_in_real_time(queued))["lab"].fields["capacity"] == 1
    alone = Channel.model_validate({"service": {"kind": "exponential", "mean": 0.01}})
    assert calibrate(hear_in_real_time(alone))["lab"].fits["capacity"] == Fit()


@pytest.mark.parametrize(
    "more", [{}, {"loss": 0.1}, {"transit": {"kind": "exponential", "mean": 0.5}}], ids=str
)
def test_where_no_family_fits_what_was_given_up_is_lost(more: dict[str, Any]) -> None:
    service = {"kind": "empirical", "values": (0.1, 0.1, 1.0, 5.0, 9.0)}
    heard = hear(Channel.model_validate({"service": service, "patience": 4.0, **more}))
    found = calibrate(heard)["lab"]
    assert isinstance(found.fields["service"], Empirical)
    failed = found.fates["late"] + found.fates.get("lost", 0)
    share = failed / (failed + found.fates["answered"])
    assert found.fields["loss"].probability == pytest.approx(share, abs=0.02)


def test_with_too_few_answers_what_was_given_up_is_lost() -> None:
    service = {"kind": "exponential", "mean": 100.0}
    found = calibrate(hear(Channel.model_validate({"service": service, "patience": 2.0})))["lab"]
    assert found.fates["answered"] < FEWEST
    assert found.fields["loss"].probability > 0.9


def test_a_draw_without_a_mean_is_never_chosen() -> None:
    amounts = Amounts.of(0.1 * default_rng(1).random(200) ** (-1 / 0.7))
    found = fit_draw(amounts, tolerance=1e-9)
    assert found.draw is not None
    assert not isinstance(found.draw, Pareto)
