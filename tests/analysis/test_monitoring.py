from __future__ import annotations

from math import isnan, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sparq_sim import (
    Channel,
    Estimate,
    Expert,
    Query,
    Results,
    Rules,
    Scenario,
    SparqError,
    Study,
    play,
)
from sparq_sim.analysis.monitoring import alarms, exceedances, map_rmse, monitor, survival
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import World
from sparq_sim.simulation.beliefs import BeliefMap, belief_map
from sparq_sim.study.executors import InProcess
from sparq_sim.testing import Asker, Slope, Teller

Rows = list[list[float]]


def seen(truth: Rows, mean: Rows, std: Rows | float = 1.0) -> BeliefMap:
    """Make a map of a row a round, played at 1.5, 3.0, ..., and a column a place."""
    believed = np.array(mean, dtype=float)
    rounds = np.arange(1, len(truth) + 1)
    return BeliefMap(
        rounds=rounds,
        times=np.asarray(1.5 * rounds, dtype=float),
        places=np.arange(believed.shape[1], dtype=float)[:, None],
        truth=np.array(truth, dtype=float),
        mean=believed,
        std=np.broadcast_to(np.array(std, dtype=float), believed.shape),
    )


def one_place(truth: list[float], mean: list[float], std: float = 1.0) -> BeliefMap:
    return seen([[number] for number in truth], [[number] for number in mean], std)


# The map


def test_the_error_of_a_map_is_the_root_of_the_mean_square_over_places() -> None:
    errors = map_rmse(seen([[1.0, 2.0], [0.0, 0.0]], [[4.0, 6.0], [0.0, 0.0]]))
    assert errors.tolist() == [sqrt((9 + 16) / 2), 0.0]


def test_the_error_leaves_out_what_has_no_reading_and_is_unknown_where_nothing_is_known() -> None:
    truth = [[nan, 2.0], [nan, nan], [1.0, 1.0]]
    mean = [[4.0, 6.0], [1.0, 1.0], [nan, nan]]
    assert_array_equal(map_rmse(seen(truth, mean)), [4.0, nan, nan])


# Exceedances


def test_missed_and_false_exceedances_are_counted_over_rounds_and_places() -> None:
    truth = [[5.0, 1.0, 5.0], [5.0, 4.0, nan]]
    mean = [[4.5, 1.0, 3.0], [2.0, 4.5, 9.0]]
    counts = exceedances(seen(truth, mean), 4.0)
    assert (counts.exceeded, counts.believed, counts.missed, counts.false) == (3, 2, 2, 1)
    assert (counts.known, counts.unknown) == (5, 1)
    assert (counts.missed_share, counts.false_share) == (2 / 3, 1 / 2)


def test_what_is_not_believed_yet_is_missed() -> None:
    counts = exceedances(one_place([5.0, 1.0], [nan, nan]), 4.0)
    assert (counts.exceeded, counts.missed, counts.believed, counts.false) == (1, 1, 0, 0)


def test_shares_of_nothing_are_unknown() -> None:
    counts = exceedances(one_place([1.0, 1.0], [1.0, 1.0]), 4.0)
    assert counts.exceeded == counts.missed == counts.false == 0
    assert isnan(counts.missed_share)
    assert isnan(counts.false_share)


def test_a_higher_quantile_warns_sooner() -> None:
    # z of 0.975 is 1.96: 3 + 2 z = 6.92 and 0 + 2 z = 3.92, against 4.
    map_ = one_place([5.0, 1.0], [3.0, 0.0], std=2.0)
    assert exceedances(map_, 4.0).missed == 1
    assert exceedances(map_, 4.0, quantile=0.975).missed == 0
    assert exceedances(map_, 4.0, quantile=0.975).false == 0
    assert exceedances(map_, 4.0, quantile=0.98).false == 1


@pytest.mark.parametrize(
    ("threshold", "quantile", "told"),
    [(nan, 0.5, "threshold: .* not nan"), (1.0, 0.0, "quantile: .* such as 0.9, not 0.0")],
)
def test_a_threshold_or_quantile_that_means_nothing_is_refused(
    threshold: float, quantile: float, told: str
) -> None:
    for measure in (exceedances, alarms):
        with pytest.raises(SparqError, match=told):
            measure(one_place([1.0], [1.0]), threshold, quantile=quantile)


# Alarms


def test_the_delay_of_an_alarm_is_from_the_truth_to_the_belief() -> None:
    map_ = one_place([1, 5, 5, 5, 5, 1], [1, 1, 1, 5, 5, 5])
    assert alarms(map_, 4.0).delays.tolist() == [2.0]
    assert alarms(map_, 4.0, unit="clock").delays.tolist() == [3.0]


def test_what_is_believed_at_once_or_before_has_no_delay() -> None:
    raised = alarms(one_place([1, 5, 1, 5], [5, 5, 1, 5]), 4.0)
    assert raised.delays.tolist() == [0.0, 0.0]
    assert raised.mean_delay == 0.0


def test_an_exceedance_is_raised_missed_or_open_at_the_end() -> None:
    raised = alarms(one_place([5, 5, 1, 5, 1, 5, 5], [1, 5, 1, 1, 5, 1, 1]), 4.0)
    assert raised.delays.tolist() == [1.0]
    assert (raised.exceedances, raised.missed, raised.open) == (3, 1, 1)


def test_without_any_exceedance_there_is_no_delay() -> None:
    raised = alarms(one_place([1, 1], [5, 5]), 4.0)
    assert (raised.exceedances, raised.missed, raised.open, len(raised.delays)) == (0, 0, 0, 0)
    assert isnan(raised.mean_delay)


def test_a_gap_neither_begins_nor_ends_an_exceedance() -> None:
    raised = alarms(one_place([nan, 5, nan, 5, nan, 1], [5, 1, 1, 5, 1, 1]), 4.0)
    assert (raised.exceedances, raised.delays.tolist()) == (1, [2.0])


def test_a_gap_at_the_place_that_exceeds_ends_nothing_where_places_are_taken_as_one() -> None:
    map_ = seen([[5, 1], [nan, 1], [5, 1]], [[1, 1], [1, 1], [1, 1]])
    together = alarms(map_, 4.0, anywhere=True)
    assert (together.exceedances, together.missed, together.open) == (1, 0, 1)


def test_each_place_has_its_alarm_unless_they_are_taken_as_one() -> None:
    map_ = seen([[5, 1], [5, 5], [1, 5]], [[1, 1], [1, 1], [1, 5]])
    each = alarms(map_, 4.0)
    assert (each.exceedances, each.missed, each.delays.tolist()) == (2, 1, [1.0])
    together = alarms(map_, 4.0, anywhere=True)
    assert (together.exceedances, together.missed, together.delays.tolist()) == (1, 0, [2.0])


def test_a_unit_that_is_none_is_refused() -> None:
    with pytest.raises(SparqError, match=r"no unit of delays is called 'clocks': .* 'clock'"):
        alarms(one_place([1], [1]), 4.0, unit="clocks")  # type: ignore[arg-type] # on purpose


def test_rounds_out_of_order_are_refused() -> None:
    trace = play(GPUCB(**GIVEN), Slope(), Rules(rounds=3))
    with pytest.raises(SparqError, match="rounds in their order"):
        alarms(belief_map(trace, rounds=[3, 1]), 0.5)


levels = st.sampled_from([1.0, 5.0, nan])


@given(st.lists(st.tuples(levels, levels), min_size=1, max_size=12))
def test_every_exceedance_is_raised_missed_or_open(rounds: list[tuple[float, float]]) -> None:
    truth, mean = (list(column) for column in zip(*rounds, strict=True))
    raised = alarms(one_place(truth, mean), 4.0)
    known = [number for number in truth if not isnan(number)]
    begun = sum(
        after > 4 and not before > 4 for before, after in zip([1.0, *known], known, strict=False)
    )
    assert raised.exceedances == begun == len(raised.delays) + raised.missed + raised.open
    counts = exceedances(one_place(truth, mean), 4.0)
    assert counts.missed <= counts.exceeded <= counts.known <= len(truth)


# Survival


class Battery(Expert):
    """Answers until a moment, and then ends the play."""

    lasts: float

    async def answer(self, query: Query, world: World) -> Estimate:
        if world.clock.now >= self.lasts:
            world.stop("the battery is empty")
        return Estimate(np.zeros(len(query.points)))


def test_a_play_survives_until_a_source_stops_it() -> None:
    rules = Rules(rounds=9)
    dead = survival(play(Asker(), Slope(), rules, experts={"mote": Battery(lasts=4.0)}))
    assert (dead.rounds, dead.planned, dead.survived) == (4, 9, False)
    assert dead.ended == "the battery is empty"
    alive = survival(play(Asker(), Slope(), rules, experts={"mote": Battery(lasts=99.0)}))
    assert (alive.rounds, alive.planned, alive.survived) == (9, 9, True)


def test_a_play_that_ends_with_its_budget_did_not_survive() -> None:
    rules = Rules(rounds=9, budget=5.0, ends_when_spent=True)
    trace = play(Asker(), Slope(), rules, experts={"sage": (Teller(), Channel(cost=1.0))})
    spent = survival(trace)
    assert (spent.ended, spent.survived, spent.planned) == ("budget", False, 9)
    assert spent.rounds == len(trace) < 9


# Plays and studies

GIVEN: dict[str, Any] = {
    "kernel": SquaredExponential(variance=0.3, length_scale=0.4),
    "mean": 0.5,
}
PLACES = np.array([[0.1], [0.5], [0.9]])


@pytest.fixture
def study(tmp_path: Path) -> Results:
    scenario = Scenario(
        environment=Slope(),
        feedback=Channel(noise=0.1),
        optimizers={"keen": GPUCB(**GIVEN), "calm": Uniform()},
        rounds=12,
        replications=3,
    )
    study = Study(scenario, tmp_path)
    study.run(InProcess())
    return study.results


def test_a_study_is_monitored_as_its_plays_are(study: Results) -> None:
    rows = {row.optimizer: row for row in monitor(study, PLACES, threshold=0.9, allow_import=True)}
    traces = [study.read(play).trace for play in study.plays() if play.optimizer == "keen"]
    maps = [belief_map(trace, PLACES, allow_import=True) for trace in traces]
    keen = rows["keen"]
    assert (keen.plays, keen.believing, keen.ended_early, keen.rounds.mean) == (3, 3, 0, 12.0)
    errors = [sqrt(np.mean(map_rmse(each) ** 2)) for each in maps]
    assert keen.rmse.mean == pytest.approx(np.mean(errors))
    counts = [exceedances(each, 0.9) for each in maps]
    assert keen.missed_share.mean == pytest.approx(np.mean([c.missed_share for c in counts]))
    assert sum(c.exceeded for c in counts) > 0
    raised = [alarms(each, 0.9) for each in maps]
    assert keen.exceedances == sum(each.exceedances for each in raised) > 0
    assert keen.missed == sum(each.missed for each in raised)


def test_an_optimizer_without_a_belief_is_monitored_for_what_needs_none(study: Results) -> None:
    rows = {row.optimizer: row.flat() for row in monitor(study, threshold=0.9, allow_import=True)}
    calm = rows["calm"]
    assert (calm["plays"], calm["believing"], calm["rounds"]) == (3, 0, 12.0)
    assert calm["rmse"] is calm["missed_share"] is calm["delay"] is None
    assert rows["keen"]["rmse"] is not None


def test_by_default_a_box_is_covered_and_all_sites_are_looked_at() -> None:
    line, sites = (
        belief_map(play(GPUCB(**GIVEN), Slope(place=place), Rules(rounds=2)), rounds=[2]).places
        for place in ("line", "sites")
    )
    assert len(line) == 200
    assert_allclose([line.min(), line.max()], [0.0, 1.0], atol=0.01)
    assert len(sites) == 9
