from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.random import Generator
from numpy.testing import assert_array_equal

from sparq_sim import Channel, Results, Rules, Scenario, SparqError, Study, Trace, play
from sparq_sim.arrays import Points
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.messages import Move
from sparq_sim.optimizers.fixed import Fixed
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.shared.prior import Fitting
from sparq_sim.optimizers.shared.ucb import UCBAgent
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Agent, Belief, Briefing, Optimizer
from sparq_sim.simulation.beliefs import Watched, belief_map
from sparq_sim.study.executors import InProcess
from sparq_sim.testing import Slope, Teller
from tests.bookkeeping import Battery
from tests.gappy import Gappy

RECORD = """
rounds = 5
environment = { kind = "recorded", files = ["record.csv"], coverage = 0.5 }
feedback.noise = 1.0
optimizers = ["gp-ucb"]
"""

GIVEN: dict[str, Any] = {
    "kernel": SquaredExponential(variance=0.3, length_scale=0.4),
    "mean": 0.5,
}
PLACES = np.array([[0.0], [0.2], [0.7]])
LATE = Channel(transit=1.7, loss=0.3, noise=0.1, split=True)


def scenario(optimizer: Optimizer, **fields: Any) -> Scenario:
    chosen: dict[str, Any] = {
        "rounds": 8,
        "environment": Slope(),
        "feedback": Channel(noise=0.1),
        "experts": {"sage": (Teller(), LATE)},
        "optimizers": {"keen": optimizer},
        "seed": 3,
    }
    return Scenario(**{**chosen, **fields})


class Diarist(SparQGPUCB):
    """Writes down what it believes at the places when it chooses a point."""

    diary: ClassVar[list[Belief | None]] = []

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        Diarist.diary.clear()
        return _DiaristAgent(self, briefing, rng)


class _DiaristAgent(UCBAgent):
    def ask(self, now: float) -> Move:
        move = super().ask(now)
        if move.point is not None:
            Diarist.diary.append(self.belief(PLACES, now))
        return move


def written(trace: Trace) -> Iterator[tuple[int, Belief | None]]:
    """Return the last entry of the diary before each round's end, by round."""
    diary = list(Diarist.diary)
    for row, moves in enumerate(np.cumsum(trace.rounds["moved"]).tolist()):
        yield row + 1, diary[moves - 1]


# The same as in the play


@pytest.mark.parametrize(
    ("optimizer", "fields"),
    [
        (Diarist(**GIVEN), {}),
        (Diarist(**GIVEN, waits=True), {}),
        (Diarist(**GIVEN), {"thinking": 1.6}),
        (Diarist(fitting=Fitting(plays=4)), {"environment": Slope(place="line")}),
    ],
    ids=["clocked", "waiting", "thinking for longer than a round", "fitted after a while"],
)
def test_what_was_believed_is_what_the_agent_believed_while_it_played(
    optimizer: Diarist, fields: dict[str, Any]
) -> None:
    trace = scenario(optimizer, **fields).play("keen")
    known = dict(written(trace))
    for number in (1, 5, 8):
        believed, expected = trace.belief_at(number, PLACES), known[number]
        if expected is None:
            assert np.isnan([*believed.mean, *believed.std, believed.width]).all()
        else:
            assert_array_equal(believed.mean, expected.mean)
            assert_array_equal(believed.std, expected.std)
            assert believed.width == expected.width
    assert not np.isnan(believed.mean).any()


def test_slow_thinkers_miss_rounds_in_which_the_belief_before_counts() -> None:
    trace = scenario(Diarist(**GIVEN), thinking=1.6).play("keen")
    (missed, *_) = np.flatnonzero(~trace.rounds["moved"]).tolist()
    before, within = (trace.belief_at(number, PLACES) for number in (missed, missed + 1))
    assert_array_equal(before.mean, within.mean)


def test_all_rounds_at_once_are_what_each_is_alone() -> None:
    trace = scenario(SparQGPUCB(**GIVEN)).play("keen")
    everything = belief_map(trace, PLACES)
    some = belief_map(trace, PLACES, rounds=[6, 2])
    assert everything.mean.shape == everything.std.shape == everything.truth.shape == (8, 3)
    assert_array_equal(some.mean, everything.mean[[5, 1]])
    assert_array_equal(some.rounds, [6, 2])
    assert_array_equal(some.times, [6.0, 2.0])
    assert_array_equal(trace.belief_at(6, PLACES).std, some.std[0])


def test_the_truth_beside_a_belief_is_the_noise_free_reward_when_it_was_played() -> None:
    trace = scenario(GPUCB(**GIVEN), thinking=0.25).play("keen")
    seen = belief_map(trace, PLACES, rounds=[4])
    landscape = Slope().start(None)  # type: ignore[arg-type] # it needs no chance
    assert seen.times.tolist() == [4.25]
    assert_array_equal(seen.truth[0], landscape.rewards(PLACES, 4.25))


def test_where_there_is_no_reading_the_truth_is_unknown() -> None:
    trace = play(GPUCB(**GIVEN), Gappy(), Rules(rounds=7))
    seen = belief_map(trace, PLACES)
    assert np.argwhere(np.isnan(seen.truth)).tolist() == [[4, 2], [5, 2]]
    assert np.isfinite(seen.mean).all()


# Wherever the trace comes from


def test_a_trace_from_a_file_tells_what_was_believed(tmp_path: Path) -> None:
    trace = scenario(SparQGPUCB(**GIVEN)).play("keen", 2)
    trace.save(tmp_path / "play.zip")
    again = Trace.load(tmp_path / "play.zip").belief_at(7, PLACES, allow_import=True)
    assert_array_equal(again.mean, trace.belief_at(7, PLACES).mean)


def test_a_play_without_a_scenario_tells_it_and_runs_code_from_a_file_only_if_allowed(
    tmp_path: Path,
) -> None:
    trace = play(GPUCB(**GIVEN), Slope(), Rules(rounds=5), seed=4)
    trace.save(tmp_path / "play.zip")
    loaded = Trace.load(tmp_path / "play.zip")
    with pytest.raises(SparqError, match="names code to import"):
        loaded.belief_at(5, PLACES)
    again = loaded.belief_at(5, PLACES, allow_import=True)
    assert_array_equal(again.mean, trace.belief_at(5, PLACES).mean)


@pytest.mark.parametrize("record", ["rounds", "full"])
def test_a_stored_play_tells_what_was_believed(tmp_path: Path, record: str) -> None:
    played = scenario(SparQGPUCB(**GIVEN), record=record)
    Study(played, tmp_path).run(InProcess())
    study = Results.open(tmp_path)
    (stored,) = (study.read(each).trace for each in study.plays())
    again = stored.belief_at(7, PLACES, allow_import=True)
    assert_array_equal(again.mean, played.play("keen").belief_at(7, PLACES).mean)


def test_who_is_watched_tells_what_it_believes_as_well() -> None:
    seen: list[Belief] = []

    def look(agent: Agent, now: float) -> None:
        assert isinstance(agent, UCBAgent)
        belief = agent.belief(PLACES, now)
        assert belief is not None
        seen.append(belief)

    trace = scenario(Watched(optimizer=GPUCB(**GIVEN), looks=look)).play("keen")
    assert_array_equal(trace.belief_at(5, PLACES).mean, seen[4].mean)
    assert len(seen) == len(trace)


# What cannot be told


def test_a_trace_that_does_not_tell_what_was_played_is_refused() -> None:
    trace = replace(scenario(GPUCB(**GIVEN)).play("keen"), played=None)
    with pytest.raises(SparqError, match=r"does not tell what was played, .* Results\.read"):
        trace.belief_at(1, PLACES)


def test_an_optimizer_without_a_belief_is_named_and_so_is_the_hook() -> None:
    trace = scenario(Uniform()).play("keen")
    with pytest.raises(SparqError, match=r"'keen' has no belief: .*define belief\(points, now\)"):
        trace.belief_at(1, PLACES)


def test_a_round_that_was_not_played_and_a_place_outside_are_refused() -> None:
    trace = scenario(GPUCB(**GIVEN)).play("keen")
    for number in (0, 9, 2.5):
        with pytest.raises(SparqError, match=f"no round {number}; the trace has rounds 1 to 8"):
            belief_map(trace, PLACES, rounds=[number])  # type: ignore[list-item] # half a round
    with pytest.raises(SparqError, match="no round 9"):
        trace.belief_at(9, PLACES)
    with pytest.raises(SparqError, match=r"points of a belief: \[1.5\] lies outside the domain"):
        trace.belief_at(1, [[1.5]])


class Edited(GPUCB):
    """Plays as its code says, which somebody edits."""

    shift: ClassVar[float] = 0.0

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return GPUCB(kernel=self.kernel, mean=0.5 + Edited.shift).start(briefing, rng)


@pytest.mark.parametrize("record", [True, False], ids=["with replies", "without replies"])
def test_a_play_that_comes_out_otherwise_is_refused_with_the_first_difference(
    monkeypatch: pytest.MonkeyPatch, *, record: bool
) -> None:
    trace = scenario(Edited(**GIVEN)).play("keen")
    trace = trace if record else replace(trace, replies={})
    assert np.isfinite(trace.belief_at(8, PLACES).mean).all()
    monkeypatch.setattr(Edited, "shift", 0.3)
    with pytest.raises(SparqError, match=r"does not play as in the trace.*difference: rounds, row"):
        trace.belief_at(8, PLACES)


def test_a_play_that_differs_by_rounding_alone_is_the_same_play() -> None:
    trace = scenario(GPUCB(**GIVEN)).play("keen")
    elsewhere = {**trace.rounds, "reward": np.nextafter(trace.rounds["reward"], 9.0)}
    rounded = replace(trace, rounds=elsewhere)
    assert rounded.digest() != trace.digest()
    assert_array_equal(rounded.belief_at(8, PLACES).mean, trace.belief_at(8, PLACES).mean)


def test_a_play_whose_experts_keep_books_is_known_again_with_and_without_them() -> None:
    books = {"battery": (Battery(), LATE)}
    trace = scenario(SparQGPUCB(**GIVEN, expert="battery"), experts=books).play("keen")
    believed = trace.belief_at(8, PLACES).mean
    for kept in (
        replace(trace, replies={}, accounts={}),
        replace(trace, accounts=shifted(trace, 1e-12)),
    ):
        assert_array_equal(kept.belief_at(8, PLACES).mean, believed)
    for unlike in (shifted(trace, 1.0), {}):
        with pytest.raises(SparqError, match=r"difference: (battery/uses|accounts)"):
            replace(trace, accounts=unlike).belief_at(8, PLACES)


def shifted(trace: Trace, by: float) -> dict[str, Any]:
    """Return the accounts of a play, their times *by* later."""
    uses = trace.accounts["battery/uses"]
    return {**trace.accounts, "battery/uses": {**uses, "time": uses["time"] + by}}


class Confused(Fixed):
    """Believes one number, wherever it is asked."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return _ConfusedAgent(super().start(briefing, rng))


class _ConfusedAgent:
    def __init__(self, agent: Agent) -> None:
        self.ask, self.tell = agent.ask, agent.tell

    def belief(self, points: Points, now: float) -> Belief:
        return Belief(np.zeros(1), np.ones(1), 1.0)


def test_a_belief_of_another_shape_is_refused_by_name() -> None:
    trace = scenario(Confused(point=(0.5,))).play("keen")
    with pytest.raises(SparqError, match=r"_ConfusedAgent.belief gives a mean of shape \(1,\)"):
        trace.belief_at(1, PLACES)


def test_a_belief_on_a_record_that_has_changed_is_refused_by_the_name_of_its_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "play.toml").write_text(RECORD)
    record, saved = tmp_path / "record.csv", tmp_path / "play.zip"
    places = {"a": (54.0, 12.0), "b": (54.1, 12.1), "c": (54.2, 12.2)}
    lines = ["date,site,lat,lon,value"]
    for day in range(1, 10):
        for number, (site, (north, east)) in enumerate(places.items()):
            lines.append(f"2024-05-{day:02},{site},{north},{east},{20 + number + day}")
    record.write_text("\n".join(lines))
    trace = Scenario.load(tmp_path / "play.toml").play("gp-ucb")
    trace.save(saved)
    truth = belief_map(Trace.load(saved)).truth
    assert_array_equal(truth, belief_map(trace).truth)
    record.write_text("\n".join(lines).replace(",22\n", ",5\n"))
    with pytest.raises(SparqError, match=r"record\.csv has changed since the play"):
        belief_map(Trace.load(saved))
