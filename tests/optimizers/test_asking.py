"""Optimizers other than SparQ-GP-UCB that ask experts as it does, and remember in their own way."""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray
from pydantic import ValidationError

from sparq_environments.synthetic import Synthetic
from sparq_sim import Briefing, Channel, Rules, Sites, Trace, play
from sparq_sim.domain import Box
from sparq_sim.errors import PluginError, SparqError
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.messages import Query
from sparq_sim.optimizers.et_gp_ucb import ETGPUCB
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.gp_ucb_sdf import GPUCBSDF
from sparq_sim.optimizers.r_gp_ucb import RGPUCB
from sparq_sim.optimizers.shared.asking import Asking
from sparq_sim.optimizers.shared.prior import Fitting, GPPrior
from sparq_sim.optimizers.shared.schedules import ConstantSchedule, LogarithmicSchedule
from sparq_sim.optimizers.shared.selection import Way
from sparq_sim.optimizers.shared.ucb import AskingGPOptimizer, GPOptimizer
from sparq_sim.optimizers.shared.widths import LogarithmicWidth
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.optimizers.sparq_memory import SparQMemory
from sparq_sim.optimizers.sw_gp_ucb import SWGPUCB
from sparq_sim.optimizers.tv_gp_ucb import TVGPUCB
from sparq_sim.optimizers.ui_gp_ucb import UIGPUCB
from sparq_sim.optimizers.ui_tvbo import UITVBO
from sparq_sim.optimizers.w_gp_ucb import WGPUCB
from sparq_sim.plugin.briefing import Access
from sparq_sim.simulation.measures import average_regret
from sparq_sim.testing import Teller, check_optimizer

Array = NDArray[np.float64]
VARIANCE, SCALE, MEAN, NOISE = 0.23, 5.7, 1.5, 0.01
KERNEL = SquaredExponential(variance=VARIANCE, length_scale=SCALE)
ROAD = Channel(noise=0.1)
GRID = np.linspace(-50.0, 50.0, 501)
ROUNDS = 30

BASELINES: dict[str, AskingGPOptimizer] = {
    "gp-ucb": GPUCB(),
    "gp-ucb-sdf": GPUCBSDF(),
    "et-gp-ucb": ETGPUCB(delta=1e-300),  # So that nothing surprises it.
    "sw-gp-ucb": SWGPUCB(window=4),
    "r-gp-ucb": RGPUCB(block=5),
    "w-gp-ucb": WGPUCB(weight=0.7),
    "ui-gp-ucb": UIGPUCB(),
    "tv-gp-ucb": TVGPUCB(epsilon=0.1),
    "ui-tvbo": UITVBO(rate=0.03),
}


def played(
    model: GPOptimizer,
    rounds: int = ROUNDS,
    *,
    transit: float = 0.0,
    access: Access = "past",
    experts: tuple[str, ...] = ("expert",),
) -> Trace:
    channel = Channel(noise=0.1, transit=transit)
    return play(
        model,
        Synthetic(),
        Rules(rounds=rounds, access=access),
        experts={name: (Teller(), channel) for name in experts},
        feedback=ROAD,
        replication=1,
    )


def asking(model: AskingGPOptimizer, **how: object) -> AskingGPOptimizer:
    known = {"kernel": KERNEL, "mean": MEAN, "asking": Asking.model_validate(how)}
    return model.model_copy(update=known)


# What each believes, transcribed with nothing but numpy: the times of observations and answers, in
# rounds, and the time of the choice, give factors of the kernel and the noise of each.


class Model:
    """How a method weighs what was measured at some times when it chooses at another."""

    def kept(self, times: Array, now: float) -> NDArray[np.bool_]:
        return np.ones(len(times), dtype=bool)

    def noise(self, times: Array, now: float) -> Array:
        return np.full(len(times), NOISE)

    def covariance(self, first: Array, second: Array) -> Array:
        return np.ones((len(first), len(second)))


class Windowed(Model):
    def kept(self, times: Array, now: float) -> NDArray[np.bool_]:
        return times >= now - 4


class Blocked(Model):
    def kept(self, times: Array, now: float) -> NDArray[np.bool_]:
        return times >= (now - 1) // 5 * 5 + 1


class Weighted(Model):
    def noise(self, times: Array, now: float) -> Array:
        return np.asarray(NOISE * 0.7 ** -(now - 1 - times))


class Injecting(Model):
    def noise(self, times: Array, now: float) -> Array:
        return np.asarray(NOISE * (1 + (now - 1 - times) ** 2))


class Forgetting(Model):
    def covariance(self, first: Array, second: Array) -> Array:
        return np.asarray(0.9 ** (np.abs(np.subtract.outer(first, second)) / 2))


class Wandering(Model):
    def covariance(self, first: Array, second: Array) -> Array:
        return np.asarray(1 + 0.03 * np.minimum.outer(first, second))


MODELS: dict[str, Callable[[], Model]] = {
    "gp-ucb": Model,
    "gp-ucb-sdf": Model,
    "et-gp-ucb": Model,
    "sw-gp-ucb": Windowed,
    "r-gp-ucb": Blocked,
    "w-gp-ucb": Weighted,
    "ui-gp-ucb": Injecting,
    "tv-gp-ucb": Forgetting,
    "ui-tvbo": Wandering,
}


def space(a: Array, b: Array) -> Array:
    return np.asarray(VARIANCE * np.exp(-((a[:, None] - b[None, :]) ** 2) / (2 * SCALE**2)))


def bounds(model: Model, points: Array, values: Array, times: Array, now: float) -> Array:
    """Return the upper confidence bounds on the grid, from the dense formulas."""
    kept = model.kept(times, now)
    points, values, times = points[kept], values[kept], times[kept]
    matrix = space(points, points) * model.covariance(times, times)
    inverse = np.linalg.inv(matrix + np.diag(model.noise(times, now)))
    present = np.array([now])
    cross = space(GRID, points) * model.covariance(present, times)
    variances = VARIANCE * model.covariance(present, present)[0, 0] - np.einsum(
        "ij,jk,ik->i", cross, inverse, cross
    )
    mean = MEAN + cross @ inverse @ (values - MEAN)
    return np.asarray(mean + sqrt(0.8 * log(4 * now)) * np.sqrt(variances))


# The filter of TV-GP-UCB takes what was measured before its time approximately.
IN_TIME = [(name, 0.0) for name in BASELINES]
LATE = [(name, 1.5) for name in BASELINES if name != "tv-gp-ucb"]


@pytest.mark.parametrize(("name", "transit"), [*IN_TIME, *LATE])
def test_answers_count_as_measurements_in_each_methods_own_way(name: str, transit: float) -> None:
    # Teacher-forced: each move is compared with that of the transcription from the same history.
    trace = played(asking(BASELINES[name]), transit=transit)
    replies, model, decided, most = trace.replies, MODELS[name](), 0, 0
    for t in range(2, ROUNDS + 1):
        by_now = (replies["arrived_at"] <= t) & (replies["round"] < t)
        points, times = replies["x"][by_now], replies["measured_at"][by_now]
        most = max(most, int((replies["source"][by_now] == "expert").sum()))
        expected = bounds(model, points, replies["value"][by_now], times, float(t))
        mine = np.abs(GRID - trace.points[t - 1, 0]).argmin()
        assert expected[mine] >= expected.max() - 1e-8
        decided += (expected >= expected.max() - 1e-6).sum() == 1
    assert most > 100
    assert decided > 15


def test_the_reference_tells_the_methods_apart() -> None:
    rng = np.random.default_rng(0)
    points, values = rng.choice(GRID, 40), rng.normal(MEAN, 0.5, 40)
    times = np.repeat(np.arange(1.0, 11.0), 4)
    found = [bounds(make(), points, values, times, 11.0) for make in {*MODELS.values()}]
    for number, one in enumerate(found):
        assert all(np.abs(one - other).max() > 1e-3 for other in found[:number])


def test_a_filter_learns_a_late_batch_at_the_time_of_its_measurement() -> None:
    # An approximation, by tv-gp-ucb: answers of two rounds ago say less than those of now.
    prior = GPPrior(KERNEL, MEAN, None, LogarithmicWidth(), GRID[:, None], on_candidates_only=True)
    stds = []
    for measured_at in (8.0, 10.0):
        memory = TVGPUCB(epsilon=0.1).start_memory(
            prior, Briefing(Box(-50.0, 50.0)), np.random.default_rng(0)
        )
        own = Query(1, "reward", GRID[[0], None], 10.0)
        memory.learn(own.answer([1.5], stds=0.1))
        batch = Query(2, "expert", GRID[[100, 400], None], measured_at)
        memory.learn(batch.answer([1.0, 2.0], stds=0.1, measured_at=measured_at, arrived_at=10.0))
        stds.append(memory.predictor(11.0).std()[[100, 400]])
    kept = 0.9 ** np.array([3, 1])
    exact = np.sqrt(VARIANCE * (1 - kept * VARIANCE / (VARIANCE + NOISE)))
    assert np.array(stds) == pytest.approx(np.stack([exact, exact], axis=1), abs=1e-4)


# Whom and what they ask.


@pytest.mark.parametrize("name", BASELINES)
def test_by_default_nobody_is_asked_and_an_expert_changes_nothing(name: str) -> None:
    model = BASELINES[name].model_copy(update={"kernel": KERNEL, "mean": MEAN})
    alone, beside = played(model, experts=()), played(model)
    assert_array_equal(alone.points, beside.points)
    assert set(beside.replies["source"]) == {"reward"}
    assert "note_queries" not in beside.rounds


@pytest.mark.parametrize("name", BASELINES)
def test_the_number_of_queries_is_noted_and_obeys_the_schedule(name: str) -> None:
    trace = played(asking(BASELINES[name], selection="random"))
    asked = trace.replies["round"][trace.replies["source"] == "expert"]
    counts = np.bincount(asked.astype(int), minlength=ROUNDS + 1)[1:]
    assert_array_equal(trace.rounds["note_queries"], counts)
    schedule, distinct = LogarithmicSchedule(), set[float]()
    for t, (count, point) in enumerate(zip(counts, trace.points[:, 0], strict=True), start=1):
        distinct.add(point)
        assert count == min(schedule(t), len(distinct))


def test_greedy_asks_as_sparq_does_for_the_same_plays() -> None:
    # Without drift, ageing and forgetting both see the same, as long as all points are told anew.
    schedule = {"kind": "constant", "count": 3}
    sparq = SparQGPUCB(kernel=KERNEL, mean=MEAN, schedule=ConstantSchedule(count=3))
    first, second = played(sparq, 3), played(asking(GPUCB(), schedule=schedule), 3)
    assert_array_equal(first.points[:2], second.points[:2])
    for t in (1, 2):
        asked = [
            trace.replies["x"][
                (trace.replies["round"] == t) & (trace.replies["source"] != "reward")
            ]
            for trace in (first, second)
        ]
        assert len(asked[0]) == t
        assert_array_equal(*asked)


@pytest.mark.parametrize("way", ["uniform", "grid"])
def test_points_never_played_are_asked_about_where_the_rules_allow(way: Way) -> None:
    for model in (
        asking(TVGPUCB(), selection=way),
        SparQGPUCB(kernel=KERNEL, mean=MEAN, selection=way),
    ):
        trace = played(model, access="domain")
        expert = trace.replies["source"] == "expert"
        assert set(trace.replies["fate"][expert]) == {"answered"}
        assert set(trace.replies["x"][expert]) - set(trace.points[:, 0])
        assert np.isin(trace.replies["x"][expert], GRID).all()
        assert_array_equal(
            trace.rounds["note_queries"], [LogarithmicSchedule()(t) for t in range(1, ROUNDS + 1)]
        )


@pytest.mark.parametrize("way", ["uniform", "grid"])
def test_points_never_played_are_refused_where_the_rules_do_not_allow(way: Way) -> None:
    told = f"selection = '{way}' asks about .* set `access = \"domain\"`, or choose greedy"
    for model in (asking(TVGPUCB(), selection=way), SparQGPUCB(selection=way)):
        with pytest.raises(PluginError, match=told):
            model.check_access("past")
        with pytest.raises(SparqError, match=told):
            played(model)
        model.check_access("domain")


def test_several_experts_share_the_points_by_a_routing() -> None:
    shares = {"kind": "shares", "shares": {"one": 1.0, "two": 1.0}}
    trace = played(
        asking(WGPUCB(weight=0.7), selection="random", routing=shares), experts=("one", "two")
    )
    asked = [int((trace.replies["source"] == name).sum()) for name in ("one", "two")]
    assert sum(asked) == trace.rounds["note_queries"].sum()
    assert 0 <= asked[0] - asked[1] <= ROUNDS
    cheapest = asking(GPUCB(), routing={"kind": "cheapest"})
    assert set(played(cheapest, experts=("one", "two")).replies["source"]) == {"reward", "one"}


def test_it_must_be_clear_who_is_asked() -> None:
    model = asking(TVGPUCB())
    with pytest.raises(PluginError, match="there are several experts: say which one to ask"):
        model.check_experts(["one", "two"])
    with pytest.raises(SparqError, match="there are several experts"):
        played(model, experts=("one", "two"))
    with pytest.raises(PluginError, match=r"no expert of this play is called 'ona'.*one"):
        asking(TVGPUCB(), expert="ona").check_experts(["one", "two"])
    both = asking(TVGPUCB(), expert="one", routing={"kind": "cheapest"})
    with pytest.raises(PluginError, match="give one"):
        both.check_experts(["one"])
    chosen = played(asking(TVGPUCB(), expert="two"), experts=("one", "two"))
    assert set(chosen.replies["source"]) == {"reward", "two"}


def test_where_there_is_nobody_to_ask_they_play_on() -> None:
    assert set(played(asking(TVGPUCB()), experts=()).replies["source"]) == {"reward"}


def test_where_an_optimizer_asks_depends_on_its_fields() -> None:
    assert TVGPUCB().where_asks() == "never"
    assert asking(TVGPUCB()).where_asks() == "anywhere"
    assert asking(TVGPUCB(), selection="newest").where_asks() == "past"
    assert SparQGPUCB().where_asks() == SparQMemory().where_asks() == "anywhere"
    assert SparQGPUCB(selection="newest").where_asks() == "past"


@pytest.mark.parametrize("model", [SparQGPUCB, SparQMemory])
def test_those_who_ask_by_themselves_have_no_such_field(model: type[GPOptimizer]) -> None:
    assert "asking" not in model.model_fields
    with pytest.raises(ValidationError, match="asking"):
        model.model_validate({"asking": {}})


def test_divergences_need_points_that_were_played() -> None:
    with pytest.raises(ValidationError, match="selection = 'grid' asks about others"):
        SparQGPUCB(selection="grid", diagnose=True)


# How they play.


@pytest.mark.parametrize("name", BASELINES)
def test_each_obeys_the_laws_of_optimizers_while_it_asks(name: str) -> None:
    check_optimizer(asking(BASELINES[name]))


def test_after_a_new_fit_all_plays_may_still_be_asked_about() -> None:
    model = GPUCB(fitting=Fitting(plays=5, every=10), asking=Asking(selection="random"))
    trace = played(model)
    assert_array_equal(trace.rounds["note_queries"][:4], np.full(4, np.nan))
    distinct = len(np.unique(trace.points[:, 0]))
    assert trace.rounds["note_queries"][-1] == min(LogarithmicSchedule()(ROUNDS), distinct)


def test_an_answer_can_surprise_and_each_value_is_a_test() -> None:
    prior = GPPrior(KERNEL, MEAN, None, LogarithmicWidth(), GRID[:, None], on_candidates_only=True)
    briefing = Briefing(Sites(GRID[:, None]))
    memory = ETGPUCB(delta=0.1).start_memory(prior, briefing, np.random.default_rng(0))
    points = GRID[::100, None]

    def told(number: int, values: list[float]) -> None:
        query = Query(number, "expert", points[: len(values)], float(number))
        memory.learn(query.answer(values, stds=0.1))

    told(1, [MEAN] * 5)
    told(2, [MEAN] * 5)
    # sqrt(rho) (sigma + s) at t = 11 tests and at t = 12, where sigma is known of two answers.
    std = sqrt(VARIANCE / (1 + 2 * VARIANCE / NOISE))
    eleventh, fifteenth = (
        sqrt(2 * log(2 * (np.pi * t) ** 2 / 6 / 0.1)) * (std + 0.1) for t in (11, 15)
    )
    told(3, [MEAN] * 4 + [MEAN + (eleventh + fifteenth) / 2])
    assert memory.notes()["resets"] == 0
    told(4, [MEAN + 2.0, *[MEAN] * 4])
    assert memory.notes()["resets"] == 1
    assert memory.size == 5


@pytest.mark.parametrize("name", ["tv-gp-ucb", "w-gp-ucb", "ui-tvbo"])
def test_asking_helps(name: str) -> None:
    alone = BASELINES[name].model_copy(update={"kernel": KERNEL, "mean": MEAN})
    regrets = [average_regret(played(model, 150))[-1] for model in (asking(BASELINES[name]), alone)]
    assert regrets[0] < 0.8 * regrets[1]
