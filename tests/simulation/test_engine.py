from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from math import inf, nan
from time import perf_counter
from typing import Any, Literal

import numpy as np
import pytest
from numpy.random import Generator
from numpy.testing import assert_allclose, assert_array_equal
from pydantic import ValidationError

from sparq_sim import (
    Answer,
    Box,
    Briefing,
    Channel,
    Environment,
    Estimate,
    Expert,
    Move,
    Optimizer,
    PluginError,
    Query,
    Rules,
    Trace,
    World,
    play,
    play_live,
)
from sparq_sim.arrays import Points, Values
from sparq_sim.messages import Reply
from sparq_sim.plugin.contract import Agent, Landscape
from sparq_sim.simulation.clock.realtime import SlowStartWarning
from sparq_sim.simulation.play import Experts
from sparq_sim.testing import Asker, Slope, Teller, WaitlessLoop

HALF = np.array([0.5])


class Scripted(Optimizer):
    """Does as a function says: (ask number, now, replies so far) -> Move."""

    script: Callable[[int, float, list[Reply]], Move]

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return ScriptedAgent(self)


class ScriptedAgent:
    def __init__(self, model: Scripted) -> None:
        self._script = model.script
        self._asks = count(1)
        self.replies: list[Reply] = []

    def ask(self, now: float) -> Move:
        return self._script(next(self._asks), now, self.replies)

    def tell(self, reply: Reply) -> None:
        self.replies.append(reply)


def scripted(
    script: Callable[[int, float, list[Reply]], Move], rules: Rules, **more: object
) -> Trace:
    return play(Scripted(script=script), Slope(), rules, **more)  # type: ignore[arg-type] # passed on


def query(number: int, now: float, *points: float) -> Query:
    return Query(number, "expert", np.array(points or (0.5,))[:, None], now)


def test_round_t_is_played_at_t_periods() -> None:
    trace = scripted(lambda n, now, _: Move(HALF), Rules(rounds=5, period=0.1))
    assert_array_equal(trace.rounds["round"], [1, 2, 3, 4, 5])
    assert_array_equal(trace.rounds["played_at"], [t * 0.1 for t in range(1, 6)])
    assert trace.ended == "rounds"


def test_regret_is_taken_when_the_point_is_played() -> None:
    trace = scripted(lambda n, now, _: Move(HALF), Rules(rounds=9))
    top = 0.5 + 0.4 * np.sin(0.3 * np.arange(1, 10))
    np.testing.assert_allclose(trace.rounds["regret"], (0.5 - top) ** 2, atol=1e-15)


@pytest.mark.parametrize("service", [0.0, 0.4, 1.0, 2.5])
def test_a_reward_is_that_of_the_moment_when_it_is_measured(service: float) -> None:
    trace = play(
        Asker(),
        Slope(),
        Rules(rounds=8),
        feedback=Channel(service=service),
        experts={"expert": Teller()},
    )
    own = trace.replies["source"] == "reward"
    answered = own & (trace.replies["fate"] == "answered")
    assert answered.sum() >= 6
    landscape = Slope().start(np.random.default_rng(0))
    for x, value, at in zip(
        *(trace.replies[name][answered] for name in ("x0", "value", "measured_at")), strict=True
    ):
        assert value == landscape.rewards(np.array([[x]]), at)[0]


def test_with_channels_that_take_no_time_clocked_play_is_algorithm_1() -> None:
    heard: list[list[tuple[str, float]]] = []

    def script(number: int, now: float, replies: list[Reply]) -> Move:
        heard.append([(r.query.source, r.arrived_at) for r in replies])
        replies.clear()
        return Move(HALF, (query(number, now),))

    scripted(script, Rules(rounds=4), experts={"expert": Teller()})
    assert heard == [[]] + [[("expert", t), ("reward", t)] for t in (1.0, 2.0, 3.0)]


@pytest.mark.parametrize("period", [1.0, 0.1, 1 / 3])
@pytest.mark.parametrize("rounds_late", range(11))
def test_a_transit_of_k_periods_delays_an_answer_by_exactly_k_rounds(
    period: float, rounds_late: int
) -> None:
    delays = []

    def script(number: int, now: float, replies: list[Reply]) -> Move:
        for reply in replies:
            if reply.query.source == "expert":
                delays.append(number - reply.query.id)
        replies.clear()
        return Move(HALF, (query(number, now),))

    channel = Channel(transit=rounds_late * period)
    scripted(script, Rules(rounds=60, period=period), experts={"expert": (Teller(), channel)})
    # What is there within the instant of asking serves the next ask, one round on.
    assert delays == [max(1, rounds_late)] * (60 - max(1, rounds_late))


def test_replies_of_one_instant_come_in_the_order_of_source_query_and_row() -> None:
    def script(number: int, now: float, replies: list[Reply]) -> Move:
        if number == 2:
            due_now = [r for r in replies if r.arrived_at == now]
            order = [(r.query.source, r.query.id, int(r.rows[0])) for r in due_now]
            assert order == sorted(order)
            assert len(order) == 6
        asked = (
            Query(3, "b", np.array([[0.5], [0.5]]), now),
            Query(2, "b", np.array([[0.5], [0.5]]), now),
            Query(1, "a", np.array([[0.5], [0.5]]), now),
        )
        return Move(HALF, asked if number == 1 else ())

    road = Channel(transit=1, split=True)
    scripted(script, Rules(rounds=2), experts={"b": (Teller(), road), "a": (Teller(), road)})


# Waiting play.


def test_a_waiting_agent_is_asked_again_when_replies_arrive_and_plays_then() -> None:
    def script(number: int, now: float, replies: list[Reply]) -> Move:
        if replies and replies[-1].query.source == "expert":
            replies.clear()
            return Move(HALF)
        if number == 1:
            return Move(HALF)
        return Move(None, (query(number, now),))

    trace = scripted(script, Rules(rounds=4), experts={"expert": (Teller(), Channel(transit=0.25))})
    assert_array_equal(trace.rounds["played_at"], [1, 2.25, 3.25, 4.25])
    assert trace.rounds["moved"].all()


def test_all_replies_of_an_instant_are_told_before_a_waiting_agent_is_asked() -> None:
    told: list[int] = []

    def script(number: int, now: float, replies: list[Reply]) -> Move:
        experts = [r for r in replies if r.query.source == "expert"]
        if number == 1:
            return Move(HALF)
        if number == 2:
            return Move(None, (query(2, now, 0.5, 0.5, 0.5),))
        told.append(len(experts))
        return Move(HALF)

    road = Channel(transit=0.5, split=True)
    scripted(script, Rules(rounds=2), experts={"expert": (Teller(), road)})
    assert told == [3]


def test_a_round_without_a_move_is_charged_at_its_end_to_the_point_in_force() -> None:
    def script(number: int, now: float, replies: list[Reply]) -> Move:
        return Move(HALF) if number == 1 else Move(None)

    trace = scripted(script, Rules(rounds=3))
    assert_array_equal(trace.rounds["moved"], [True, False, False])
    assert_array_equal(trace.rounds["played_at"], [1, 3, 4])
    assert_array_equal(trace.rounds["x0"], [0.5] * 3)
    tops = 0.5 + 0.4 * np.sin(0.3 * np.array([1, 3, 4]))
    np.testing.assert_allclose(trace.rounds["regret"], (0.5 - tops) ** 2, atol=1e-15)
    assert (trace.replies["source"] == "reward").sum() == 1


def test_an_agent_that_waits_out_the_first_round_is_refused() -> None:
    with pytest.raises(PluginError, match="waits out the first round"):
        scripted(lambda n, now, _: Move(None), Rules(rounds=3))


def test_an_agent_that_asks_for_ever_and_never_plays_is_refused() -> None:
    def script(number: int, now: float, replies: list[Reply]) -> Move:
        if number == 1:
            return Move(HALF)
        return Move(None, (query(number, now),))

    with pytest.raises(PluginError, match="asked 10000 times in round 2"):
        scripted(script, Rules(rounds=3), experts={"expert": Teller()})


# Thinking.


def test_thinking_time_puts_the_move_off() -> None:
    trace = scripted(lambda n, now, _: Move(HALF), Rules(rounds=3, thinking=0.25))
    # The first move is thought out before the play begins.
    assert_array_equal(trace.rounds["played_at"], [1, 2.25, 3.25])


def test_a_thought_longer_than_a_round_leaves_rounds_without_a_move() -> None:
    trace = scripted(lambda n, now, _: Move(HALF), Rules(rounds=6, thinking=2.5))
    assert_array_equal(trace.rounds["moved"], [True, False, False, True, False, False])
    assert trace.rounds["played_at"][3] == 4.5


def test_queries_go_out_when_the_thought_is_finished() -> None:
    def script(number: int, now: float, replies: list[Reply]) -> Move:
        return Move(HALF, (query(number, now),))

    trace = scripted(script, Rules(rounds=3, thinking=0.25), experts={"expert": Teller()})
    asked = trace.replies["asked_at"][trace.replies["source"] == "expert"]
    assert_array_equal(asked, [1, 2.25, 3.25])


def test_thinking_grows_with_the_effort_that_the_agent_states() -> None:
    def script(number: int, now: float, replies: list[Reply]) -> Move:
        return Move(HALF, notes={"own": 1.0, "effort": 9.0}, effort=number)

    slow = {"scale": 0.01, "power": 2}
    trace = scripted(script, Rules(rounds=4, thinking=0.25, thinking_by_effort=slow))
    assert_allclose(trace.rounds["played_at"], [1, 2.29, 3.34, 4.41])
    assert_array_equal(trace.rounds["note_effort"], [1, 2, 3, 4])
    assert_array_equal(trace.rounds["note_own"], [1, 1, 1, 1])


def test_effort_takes_no_time_and_leaves_no_note_unless_the_rules_say_so() -> None:
    def script(number: int, now: float, replies: list[Reply]) -> Move:
        return Move(HALF, effort=1e9)

    trace = scripted(script, Rules(rounds=3))
    assert_array_equal(trace.rounds["played_at"], [1, 2, 3])
    assert "note_effort" not in trace.rounds


@pytest.mark.parametrize("effort", [-1.0, float("nan"), float("inf"), "3", None])
def test_an_effort_that_is_no_number_to_make_time_of_is_refused(effort: Any) -> None:
    rules = Rules(rounds=3, thinking_by_effort={"scale": 1.0})
    with pytest.raises(PluginError, match=r"states the effort .*; expected a finite number"):
        scripted(lambda n, now, _: Move(HALF, effort=effort), rules)


def test_an_effort_of_0_takes_no_time() -> None:
    rules = Rules(rounds=3, thinking_by_effort={"scale": 1.0})
    trace = scripted(lambda n, now, _: Move(HALF, effort=0), rules)
    assert_array_equal(trace.rounds["played_at"], [1, 2, 3])


def test_an_effort_beyond_all_time_leaves_the_first_point_in_play() -> None:
    rules = Rules(rounds=4, thinking_by_effort={"scale": 1.0, "power": 400})
    trace = scripted(lambda n, now, _: Move(HALF, effort=1e9), rules)
    assert_array_equal(trace.rounds["moved"], [True, False, False, False])


# Access, budgets, ends.


def test_under_past_access_experts_answer_only_about_points_already_played() -> None:
    def script(number: int, now: float, replies: list[Reply]) -> Move:
        return Move(
            np.array([number / 10]),
            (query(number, now, number / 10, 0.1), query(number + 100, now, 0.9)),
        )

    rules = Rules(rounds=3)
    fates = scripted(script, rules, experts={"expert": (Teller(), Channel(cost=1))}).replies
    asked = fates["source"] == "expert"
    assert_array_equal(fates["fate"][asked & (fates["query"] < 100)], ["answered"] * 6)
    assert_array_equal(fates["fate"][asked & (fates["query"] > 100)], ["access"] * 3)
    assert fates["cost"][asked].sum() == 3
    free = scripted(
        script, rules.model_copy(update={"access": "domain"}), experts={"expert": Teller()}
    )
    assert set(free.replies["fate"]) == {"answered"}


def asking(number: int, now: float, replies: list[Reply]) -> Move:
    return Move(HALF, (query(number, now),))


def test_the_budget_is_never_overdrawn() -> None:
    experts = {"expert": (Teller(), Channel(cost=0.1))}
    trace = scripted(asking, Rules(rounds=20, budget=1.0), experts=experts)
    fates = trace.replies["fate"][trace.replies["source"] == "expert"]
    assert_array_equal(fates, ["answered"] * 10 + ["budget"] * 10)
    assert trace.spent == pytest.approx(1.0)
    assert trace.ended == "rounds"


def test_a_play_can_end_when_the_budget_is_spent() -> None:
    experts = {"expert": (Teller(), Channel(cost=0.1))}
    rules = Rules(rounds=20, budget=1.0, ends_when_spent=True)
    trace = scripted(asking, rules, experts=experts)
    assert (len(trace), trace.ended) == (11, "budget")


def test_the_budget_of_a_round_is_new_with_each_round() -> None:
    def script(number: int, now: float, replies: list[Reply]) -> Move:
        return Move(HALF, tuple(query(10 * number + i, now) for i in range(3)))

    experts = {"expert": (Teller(), Channel(cost=1))}
    trace = scripted(script, Rules(rounds=4, budget_per_round=2), experts=experts)
    fates = trace.replies["fate"][trace.replies["source"] == "expert"]
    assert sorted(fates) == ["answered"] * 8 + ["budget"] * 4


@pytest.mark.parametrize(("horizon", "rounds"), [(5.0, 4), (5.5, 5), (1.2, 1)])
def test_no_round_begins_at_or_after_the_horizon(horizon: float, rounds: int) -> None:
    assert Rules(horizon=horizon).most_rounds == rounds
    trace = scripted(lambda n, now, _: Move(HALF), Rules(horizon=horizon))
    assert (len(trace), trace.ended) == (rounds, "horizon")


class Stopper(Expert):
    async def answer(self, query: Query, world: World) -> Estimate:
        if query.id == 3:
            world.stop("battery empty")
        return Estimate(np.zeros(len(query.points)))


def test_a_source_can_stop_the_play() -> None:
    trace = scripted(asking, Rules(rounds=20), experts={"expert": Stopper()})
    assert (len(trace), trace.ended) == (3, "battery empty")


def test_what_is_open_at_the_end_is_recorded_as_unanswered() -> None:
    trace = scripted(
        asking, Rules(rounds=4), experts={"expert": (Teller(), Channel(transit=2.5, cost=1))}
    )
    of_expert = trace.replies["source"] == "expert"
    assert_array_equal(trace.replies["fate"][of_expert], ["answered"] * 2 + ["unanswered"] * 2)
    assert trace.replies["cost"].sum() == trace.spent == 4


def test_a_play_without_an_end_is_refused() -> None:
    with pytest.raises(ValidationError, match="needs rounds or a horizon"):
        Rules()


# What an optimizer may get wrong.


@pytest.mark.parametrize(
    ("move", "message"),
    [
        (Move(np.array([1.5])), r"point of a move: \[1.5\] lies outside the domain"),
        (Move(np.array([nan])), r"\[nan\] lies outside"),
        (
            Move(np.array([0.1, 0.2])),
            r"ScriptedAgent.ask moves to \[0.1, 0.2\], of shape \(2,\); expected \(1,\)",
        ),
        (
            Move(0.5),  # type: ignore[arg-type] # what a newcomer writes
            r"moves to 0.5, of shape \(\); expected \(1,\), one number for each coordinate \(x0\), "
            r"as in Move\(np.array\(\[0.5\]\)\)",
        ),
        (
            Move(np.float64(0.5)),  # type: ignore[arg-type] # what a newcomer writes
            r"moves to 0.5, of shape \(\); expected \(1,\)",
        ),
        (HALF, "expected a Move"),
        (Move(HALF, (Query(1, "exprt", HALF[None], 1.0),)), "did you mean 'expert'"),
        (Move(HALF, (Query(1, "reward", HALF[None], 1.0),)), "no expert of this play"),
        (Move(HALF, (Query(0, "expert", HALF[None], 1.0),)), "ids are positive"),
        (Move(HALF, (Query(1, "expert", HALF[None], 7.0),)), "dates a query 7.0; now is 1.0"),
        (Move(HALF, (Query(1, "expert", np.array([[3.0]]), 1.0),)), "points of query 1"),
        (Move(HALF, (Query(1, "expert", HALF[None], 1.0),) * 2), "never used twice"),
    ],
)
def test_a_move_that_no_agent_may_make_is_refused(move: Move, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        scripted(lambda n, now, _: move, Rules(rounds=3), experts={"expert": Teller()})


@pytest.mark.parametrize("name", ["reward", "agent", "a>b"])
def test_some_names_are_taken(name: str) -> None:
    with pytest.raises(PluginError, match="cannot be called"):
        scripted(asking, Rules(rounds=3), experts={name: Teller()})


class Idler(Optimizer):
    """Starts what can neither be asked nor told."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return object()  # type: ignore[return-value] # what is wrong with it


def test_an_agent_that_cannot_be_asked_is_refused_at_the_start() -> None:
    told = r"optimizer Idler: start gives an object of type object, which must have ask\(now\)"
    with pytest.raises(PluginError, match=told):
        play(Idler(), Slope(), Rules(rounds=1))


# The environment as a source.


class Broken(Environment):
    """A world with something wrong with it: *how*."""

    how: Literal["no best", "no landscape", "nan", "nan best", "misshapen"]

    def start(self, rng: Generator) -> Landscape:
        if self.how == "no landscape":
            return None  # type: ignore[return-value] # what is wrong with it
        return BrokenLandscape(self.how)


class BrokenLandscape:
    domain = Box(0.0, 1.0)

    def __init__(self, how: str) -> None:
        self._shape = (1,) if how == "misshapen" else ()
        self._reward = nan if how == "nan" else 0.0
        if how != "no best":
            self.best = lambda time: (HALF, nan if how == "nan best" else 1.0)

    def rewards(self, points: Points, time: float) -> Values:
        return np.full((len(points), *self._shape), self._reward)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("no best", "start gives an object of type BrokenLandscape, which must have best(time), "),
        (
            "no landscape",
            "start gives an object of type NoneType, which must have domain, a Box or Sites; and "
            "rewards(points, time), the noise-free reward at each point: (n,); and best(time), ",
        ),
    ],
)
def test_what_a_landscape_lacks_is_named_at_the_start(
    how: Literal["no best", "no landscape"], told: str
) -> None:
    with pytest.raises(PluginError) as refused:
        play(Asker(), Broken(how=how), Rules(rounds=3))
    assert str(refused.value).startswith(f"environment Broken: {told}")


@pytest.mark.parametrize(("design", "time"), [(0, 1.0), (4, 0.0)])
def test_rewards_that_are_no_numbers_name_the_environment(design: int, time: float) -> None:
    told = rf"environment Broken gives the reward nan at \[0\.\d+\], time {time}; expected finite"
    with pytest.raises(PluginError, match=told):
        play(Asker(), Broken(how="nan"), Rules(rounds=3, design=design))


@pytest.mark.parametrize(("design", "shape", "time"), [(0, "1, 1", 1.0), (4, "4, 1", 0.0)])
def test_rewards_of_a_wrong_shape_name_the_environment(
    design: int, shape: str, time: float
) -> None:
    told = rf"environment Broken gives rewards of shape \({shape}\) for \d points at time {time}"
    with pytest.raises(PluginError, match=told):
        play(Asker(), Broken(how="misshapen"), Rules(rounds=3, design=design))


def test_a_best_reward_that_is_no_number_names_the_environment() -> None:
    told = r"environment Broken gives nan as the best reward at time 1\.0"
    with pytest.raises(PluginError, match=told):
        play(Asker(), Broken(how="nan best"), Rules(rounds=3))


class Dicey(Environment):
    """Has noise of its own."""

    def start(self, rng: Generator) -> Landscape:
        return DiceyLandscape()


class DiceyLandscape:
    def __init__(self) -> None:
        slope = Slope().start(np.random.default_rng(0))
        self.domain, self.rewards, self.best = slope.domain, slope.rewards, slope.best

    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return self.rewards(points, time) + rng.normal(size=len(points))


def test_an_environment_may_have_noise_of_its_own() -> None:
    trace = play(Asker(), Dicey(), Rules(rounds=5))
    errors = trace.replies["value"] - trace.rounds["reward"]
    assert len(set(errors)) == 5
    assert trace.digest() == play(Asker(), Dicey(), Rules(rounds=5)).digest()


def test_observations_arrive_over_their_own_channel() -> None:
    feedback = Channel(transit=2, noise=0.1, cost=1)
    trace = play(Asker(), Slope(), Rules(rounds=5), feedback=feedback)
    assert_array_equal(trace.replies["arrived_at"][:3], [3, 4, 5])
    assert trace.spent == 5


def test_what_an_agent_does_to_what_it_was_told_does_not_reach_the_trace() -> None:
    notes: dict[str, float] = {}

    def script(number: int, now: float, replies: list[Reply]) -> Move:
        notes["n"] = number
        for reply in replies:
            assert isinstance(reply, Answer)
            with pytest.raises(ValueError, match="read-only"):
                reply.values[:] = 777.0
        return Move(HALF, notes=notes)

    trace = scripted(script, Rules(rounds=4), feedback=Channel(noise=0.1))
    assert_array_equal(trace.rounds["note_n"], [1, 2, 3, 4])


def test_a_note_that_is_no_number_is_refused() -> None:
    with pytest.raises(PluginError, match="notes what is no number"):
        scripted(lambda n, now, _: Move(HALF, notes={"a": "b"}), Rules(rounds=3))  # type: ignore[dict-item] # on purpose


# Two clocks, one trace.


class Waiting(Optimizer):
    """Asks both experts at the start of a round; plays the best answer so far when one comes."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return WaitingAgent(briefing, rng)


class WaitingAgent:
    def __init__(self, briefing: Briefing, rng: Generator) -> None:
        self._rng = rng
        self._domain = briefing.domain
        self._ids: Iterator[int] = count(1)
        self._open: set[int] = set()
        self._heard: list[Answer] = []
        self._past: list[Points] = []
        self._may_play = True

    def ask(self, now: float) -> Move:
        if self._may_play:
            self._may_play = False
            self._open.clear()
            if self._heard:
                best = max(self._heard, key=lambda answer: float(answer.values.max()))
                self._past.append(best.points[best.values.argmax()])
            else:
                self._past.append(self._domain.sample(self._rng, 1)[0])
            notes = {"answers": float(len(self._heard))}
            self._heard.clear()
            return Move(self._past[-1], notes=notes)
        if self._open:
            return Move(None)
        points = np.array(self._past[-3:])
        queries = tuple(Query(next(self._ids), name, points, now) for name in "ab")
        self._open = {query.id for query in queries}
        return Move(None, queries)

    def tell(self, reply: Reply) -> None:
        if reply.query.source != "reward" and reply.query.id in self._open:
            self._may_play = True
            if isinstance(reply, Answer):
                self._heard.append(reply)


def both_clocks(optimizer: Optimizer, rules: Rules) -> tuple[Trace, Trace]:
    exponential = {"kind": "exponential", "mean": 0.8 * rules.period}
    experts = {
        # Due at the same instant as a round, at times.
        "a": (
            Teller(),
            Channel(transit=2 * rules.period, loss=0.2, patience=3 * rules.period, noise=0.1),
        ),
        "b": (
            Teller(),
            Channel(
                service=exponential,
                capacity=2,
                split=True,
                loss={
                    "kind": "bursts",
                    "good_spell": 9 * rules.period,
                    "bad_spell": 3 * rules.period,
                },
                patience=2 * rules.period,
                noise=0.2,
                cost=0.01,
            ),
        ),
    }
    feedback = Channel(noise=0.1, transit=rules.period)
    virtual = play(optimizer, Slope(), rules, experts=experts, feedback=feedback, seed=11)
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        real = runner.run(
            play_live(optimizer, Slope(), rules, experts=experts, feedback=feedback, seed=11)
        )
    return virtual, real


@pytest.mark.parametrize("period", [1.0, 0.1, 1 / 3])
@pytest.mark.parametrize("optimizer", [Asker(batch=3), Waiting()], ids=["clocked", "waiting"])
@pytest.mark.parametrize("thinking", [0.0, 0.4])
def test_two_clocks_give_one_trace(optimizer: Optimizer, period: float, thinking: float) -> None:
    rules = Rules(rounds=200, period=period, thinking=thinking * period)
    virtual, real = both_clocks(optimizer, rules)
    for name in virtual.rounds.keys() - {"wall"}:
        assert_array_equal(virtual.rounds[name], real.rounds[name], err_msg=name)
    for name in virtual.replies:
        assert_array_equal(virtual.replies[name], real.replies[name], err_msg=name)
    assert virtual.digest() == real.digest()
    # The case is a hard one: replies due with a round, lost ones, late ones.
    on_the_dot = np.isin(virtual.replies["arrived_at"], virtual.rounds["started_at"])
    assert thinking or (on_the_dot & (virtual.replies["source"] == "a")).sum() > 20
    assert {"answered", "lost", "late"} <= set(virtual.replies["fate"])


def live(optimizer: Optimizer, rules: Rules, experts: Experts | None = None) -> Trace:
    """Play live, on a loop whose time passes only where a test skips it."""
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        return runner.run(play_live(optimizer, Slope(), rules, experts=experts))


class Slow(Scripted):
    """Does as its script says, after it has thought for some time."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return SlowAgent(self, asyncio.get_running_loop())


class SlowAgent(ScriptedAgent):
    def __init__(self, model: Slow, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(model)
        assert isinstance(loop, WaitlessLoop)
        self._loop = loop

    def ask(self, now: float) -> Move:
        move = super().ask(now)
        self._loop.skip(move.notes["lasts"])
        return move


def test_an_agent_slower_than_its_rounds_misses_rounds_in_real_time() -> None:
    def slow(number: int, now: float, replies: list[Reply]) -> Move:
        return Move(HALF, notes={"lasts": 0.0 if number == 1 else 2.5})

    trace = live(Slow(script=slow), Rules(rounds=9))
    assert_array_equal(np.flatnonzero(trace.rounds["moved"]) + 1, [1, 4, 7])
    assert_array_equal(trace.rounds["played_at"], [1, 3, 4, 4.5, 6, 7, 7.5, 9, 10])


def test_the_clock_stands_still_while_the_first_move_is_thought_out_in_real_time() -> None:
    def slow(number: int, now: float, replies: list[Reply]) -> Move:
        return Move(HALF, notes={"lasts": 7.5 if number == 1 else 0.0})

    with pytest.warns(SlowStartWarning, match=r"first move took 7\.5 s, and a round lasts 1 s"):
        real = live(Slow(script=slow), Rules(rounds=9))
    assert real.digest() == play(Scripted(script=slow), Slope(), Rules(rounds=9)).digest()


def test_what_is_due_waits_for_the_first_move_in_real_time() -> None:
    class Pulse(Teller):
        """Sends a reading every half unit."""

        async def broadcast(self, world: World) -> None:
            while True:
                await world.clock.sleep(0.5)
                world.send(world.open(HALF[None]), Estimate(np.array([1.0])))

    def slow(number: int, now: float, replies: list[Reply]) -> Move:
        return Move(HALF, notes={"lasts": 2.25 if number == 1 else 0.0})

    rules, experts = Rules(rounds=4), {"pulse": Pulse()}
    with pytest.warns(SlowStartWarning):
        real = live(Slow(script=slow), rules, experts)
    virtual = play(Scripted(script=slow), Slope(), rules, experts=experts)
    assert real.digest() == virtual.digest()
    pulses = real.replies["arrived_at"][real.replies["source"] == "pulse"]
    assert_array_equal(pulses, np.arange(0.5, 5.5, 0.5)[: len(pulses)])


def test_an_agent_that_waits_out_the_first_round_is_refused_in_real_time_too() -> None:
    def waits(number: int, now: float, replies: list[Reply]) -> Move:
        return Move(None, notes={"lasts": 0.0})

    with pytest.raises(PluginError, match="waits out the first round; it must play in it"):
        live(Slow(script=waits), Rules(rounds=9))


@pytest.mark.asyncio
# On a busy machine, the thread of the first move may come late.
@pytest.mark.filterwarnings("ignore::sparq_sim.simulation.clock.realtime.SlowStartWarning")
async def test_a_play_in_real_time_takes_real_time_and_hears_its_experts() -> None:
    experts = {"expert": (Teller(), Channel(transit=0.5))}
    # On a busy machine answers may miss the end.
    for seconds in (0.02, 0.2, 2.0, 20.0):
        began = perf_counter()
        trace = await play_live(Asker(), Slope(), Rules(rounds=5), experts=experts, seconds=seconds)
        if "answered" in trace.replies["fate"]:
            break
    # Rounds last from 1 to 6.
    assert perf_counter() - began >= 6 * seconds
    assert len(trace) == 5
    assert (trace.rounds["played_at"] >= trace.rounds["started_at"]).all()
    assert {"answered"} <= set(trace.replies["fate"]) <= {"answered", "unanswered"}
    assert (trace.replies["arrived_at"] < inf).all()


# Books of experts.


class Bookkeeper(Expert):
    """Counts the queries that it has answered."""

    shows: str = "answered"

    def start(self, briefing: Briefing) -> BookkeeperAtWork:
        return BookkeeperAtWork(self)


class BookkeeperAtWork:
    def __init__(self, model: Bookkeeper) -> None:
        self._shows = model.shows
        self._moments: list[float] = []
        self.asked_for_accounts = 0

    async def answer(self, query: Query, world: World) -> Estimate:
        self._moments.append(world.clock.now)
        return Estimate(np.zeros(len(query.points)))

    def meters(self, time: float) -> dict[str, float]:
        late = {"late": time} if time > 2 else {}
        return {self._shows: float(len(self._moments)), **late}

    def accounts(self, time: float) -> dict[str, dict[str, Any]]:
        self.asked_for_accounts += 1
        return {
            "answers": {"moment": self._moments, "name": ["x"] * len(self._moments)},
            "end": {"time": [time], "calls": [self.asked_for_accounts]},
        }


def test_meters_of_experts_are_columns_of_the_rounds_read_when_a_round_is_played() -> None:
    trace = scripted(asking, Rules(rounds=4), experts={"expert": Bookkeeper(), "other": Teller()})
    meters = {name: column for name, column in trace.rounds.items() if name.startswith("meter_")}
    assert list(meters) == ["meter_expert_answered", "meter_expert_late"]
    # What is asked in a round is answered after the point was played.
    assert_array_equal(meters["meter_expert_answered"], [0, 1, 2, 3])
    assert_array_equal(meters["meter_expert_late"], [nan, nan, 3.0, 4.0])


def test_accounts_of_experts_are_tables_of_the_trace_made_once_at_the_end() -> None:
    trace = scripted(asking, Rules(rounds=3), experts={"expert": Bookkeeper(), "two": Bookkeeper()})
    assert list(trace.accounts) == ["expert/answers", "expert/end", "two/answers", "two/end"]
    assert_array_equal(trace.accounts["expert/answers"]["moment"], [1.0, 2.0, 3.0])
    assert_array_equal(trace.accounts["expert/end"]["time"], [4.0])
    assert_array_equal(trace.accounts["expert/end"]["calls"], [1])
    assert len(trace.accounts["two/answers"]["moment"]) == 0


def test_a_play_without_books_has_neither_meters_nor_accounts() -> None:
    trace = scripted(asking, Rules(rounds=2), experts={"expert": Teller()})
    assert not [name for name in trace.rounds if name.startswith("meter_")]
    assert trace.accounts == {}


def test_meters_of_two_experts_that_would_be_one_column_are_refused() -> None:
    experts = {"a": Bookkeeper(shows="b_c"), "a_b": Bookkeeper(shows="c")}
    with pytest.raises(PluginError, match="meter_a_b_c; rename one of the experts"):
        scripted(lambda n, now, _: Move(HALF), Rules(rounds=2), experts=experts)


class WronglyMetered(Bookkeeper):
    def start(self, briefing: Briefing) -> BookkeeperAtWork:
        at_work = super().start(briefing)
        at_work.meters = lambda time: {"left": inf}  # type: ignore[method-assign] # on purpose
        return at_work


def test_a_wrong_meter_ends_the_play_and_names_the_expert() -> None:
    with pytest.raises(
        PluginError, match=r"^expert 'expert' \(Bookk.*: meters gives inf for 'left"
    ):
        scripted(asking, Rules(rounds=2), experts={"expert": WronglyMetered()})
