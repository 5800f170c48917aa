from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, nan
from typing import Any, get_args

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.random import Generator
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from sparq_sim import (
    Briefing,
    Channel,
    Expert,
    Move,
    Optimizer,
    Rules,
    Trace,
    play,
)
from sparq_sim.messages import Reply
from sparq_sim.plugin.contract import Agent
from sparq_sim.simulation.channel.channel import Due
from sparq_sim.simulation.channel.faults import Fault, FaultKind
from sparq_sim.simulation.channel.noise import Noise
from sparq_sim.simulation.channel.policy import Policy, Rate
from sparq_sim.simulation.laws import find_broken, find_misheard
from sparq_sim.simulation.measures import tally
from sparq_sim.simulation.play import Played
from sparq_sim.simulation.records import UNASKED
from sparq_sim.testing import Slope, Teller
from sparq_sim.vopr.parts import Beacon, Dicer, Inquirer, Lagged, Patchy, Relay, Stammerer
from sparq_sim.vopr.playing import overhear, play_on_live_clock

LANDSCAPE = Slope().start(np.random.default_rng(0))
PERIODS = (1.0, 0.1, 1 / 3)

# Scenarios. Whole and half multiples of the period make many things happen at one instant.


def draws(unit: float) -> st.SearchStrategy[Any]:
    """Amounts of several kinds, about one *unit* each."""
    return st.sampled_from(
        [
            0.0,
            0.5 * unit,
            unit,
            2 * unit,
            {"kind": "uniform", "low": 0.2 * unit, "high": 1.5 * unit},
            {"kind": "exponential", "mean": 0.8 * unit},
            {"kind": "lognormal", "median": 0.5 * unit, "sigma": 0.7},
            {"kind": "gamma", "shape": 2.0, "scale": 0.4 * unit},
            {"kind": "pareto", "minimum": 0.3 * unit, "shape": 2.5},
            {"kind": "empirical", "values": (0.25 * unit, unit, 1.5 * unit)},
        ]
    )


noises: st.SearchStrategy[Any] = st.sampled_from(
    [
        0.0,
        0.1,
        {"kind": "gaussian", "std": 0.2, "claimed": 0.05},
        {"kind": "student-t", "std": 0.1},
        {"kind": "bounded", "std": 0.1},
        {"kind": "value-dependent", "floor": 0.05, "share": 0.2},
        {"kind": "distance-dependent", "floor": 0.05, "slope": 0.3, "origin": (0.5,)},
    ]
)


def losses(period: float) -> st.SearchStrategy[Any]:
    bursts = {"kind": "bursts", "good_spell": 5 * period, "bad_spell": 2 * period}
    return st.sampled_from([0.0, 0.3, bursts, {**bursts, "lost_in_good": 0.1, "lost_in_bad": 0.6}])


def open_roads(period: float, *, split: bool, per_point: bool = True) -> st.SearchStrategy[Channel]:
    """Channels on which nobody stands in another's way: all slots, and all the patience."""
    more = (
        {"service_per_point": draws(0.3 * period), "cost_per_point": draws(0.01)}
        if per_point
        else {}
    )
    return st.builds(
        Channel,
        service=draws(period),
        transit=draws(period),
        cost=draws(0.03),
        noise=noises,
        loss=losses(period),
        outages=st.sampled_from([(), ((3 * period, 5.5 * period),)]),
        split=st.just(split),
        **more,
    )


def policies(period: float, fallback: str | None) -> st.SearchStrategy[Policy]:
    return st.builds(
        Policy,
        retries=st.sampled_from([0, 1, 3]),
        backoff=st.sampled_from([0.0, 0.5 * period, 1.3 * period]),
        timeout=st.sampled_from([inf, 2.5 * period]),
        fallback=st.sampled_from([None, fallback]),
        rate=st.sampled_from([None, Rate(points=3, every=period)])
        | st.just(Rate(points=2, every=period, beyond="refuse")),
        remember=st.sampled_from([0.0, 2 * period]),
        merge=st.booleans(),
    )


@st.composite
def channels(draw: st.DrawFn, period: float, fallback: str | None = None) -> Channel:
    """Channels of all sorts; every other one with a policy or with faults."""
    channel = draw(plain_channels(period))
    changes: dict[str, object] = {}
    if draw(st.booleans()):
        kinds = draw(st.lists(st.sampled_from(get_args(FaultKind)), max_size=3, unique=True))
        changes["faults"] = tuple(Fault(kind=kind, share=0.3, delay=1.5 * period) for kind in kinds)
    if draw(st.booleans()):
        changes["policy"] = draw(policies(period, fallback))
    if changes and channel.patience == inf:
        changes["patience"] = 2 * period
    return Channel(**{**dict(channel), **changes})


def plain_channels(period: float) -> st.SearchStrategy[Channel]:
    return st.builds(
        Channel,
        service=draws(0.5 * period),
        service_per_point=st.one_of(st.just(0.0), draws(0.1 * period)),
        transit=draws(period),
        cost=draws(0.02),
        cost_per_point=draws(0.005),
        charged=st.sampled_from(get_args(Due)),
        noise=noises,
        loss=losses(period),
        capacity=st.sampled_from([None, 1, 2]),
        patience=st.sampled_from([inf, inf, 0.7 * period, 2 * period, 3 * period]),
        outages=st.sampled_from([(), (), ((3 * period, 5.5 * period),)]),
        split=st.booleans(),
    )


def experts(period: float) -> st.SearchStrategy[Expert]:
    return st.sampled_from(
        [
            Teller(),
            Patchy(),
            Lagged(lag=1.5 * period),
            Stammerer(pause=period),
            Beacon(pause=1.5 * period),
            Relay(other="oracle"),
        ]
    )


@dataclass(frozen=True)
class Scenario:
    """All that fixes a play."""

    optimizer: Inquirer
    rules: Rules
    experts: dict[str, tuple[Expert, Channel]]
    feedback: Channel
    seed: int

    def prepare(self, *, replication: int = 0) -> Played:
        return Played(
            self.optimizer,
            Slope(),
            self.rules,
            experts=self.experts,
            feedback=self.feedback,
            seed=self.seed,
            replication=replication,
        )

    def play(self, *, replication: int = 0) -> Trace:
        return self.prepare(replication=replication).again()

    def with_optimizer(self, **changes: object) -> Scenario:
        return replace(self, optimizer=self.optimizer.model_copy(update=changes))


def rules(period: float, *, thrifty: bool = True) -> st.SearchStrategy[Rules]:
    return st.builds(
        Rules,
        rounds=st.integers(6, 16),
        period=st.just(period),
        budget=st.sampled_from([inf, inf, 3.0, 0.5, 0.0] if thrifty else [inf]),
        budget_per_round=st.sampled_from([inf, inf, 0.3] if thrifty else [inf]),
        ends_when_spent=st.booleans(),
        access=st.sampled_from(["past", "domain"]),
        thinking=st.one_of(st.just(0.0), draws(0.6 * period)),
    )


sizes = st.lists(st.integers(1, 5), min_size=1, max_size=2).map(tuple)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    period = draw(st.sampled_from(PERIODS))
    names = draw(st.sampled_from([("a",), ("a", "b"), ("b", "a", "c")]))
    people = {name: (draw(experts(period)), draw(channels(period, "oracle"))) for name in names}
    return Scenario(
        optimizer=Inquirer(
            sources=(*names, "oracle"),
            sizes=draw(sizes),
            waits=draw(st.booleans()),
            stray=draw(st.booleans()),
        ),
        rules=draw(rules(period)),
        experts={**people, "oracle": (Teller(), draw(channels(period)))},
        feedback=draw(channels(period)),
        seed=draw(st.integers(0, 1000)),
    )


def assert_same(mine: NDArray[Any], other: NDArray[Any], what: str) -> None:
    assert mine.tolist() == other.tolist() or np.array_equal(mine, other, equal_nan=True), what


# Randomness.


@st.composite
def joined(draw: st.DrawFn) -> tuple[Scenario, Scenario]:
    """The same scenario without and with one more expert, whom the optimizer ignores."""
    scenario = draw(scenarios())
    asked, channel = draw(st.booleans()), draw(channels(scenario.rules.period))
    expert: Expert = draw(st.sampled_from([Teller(), Patchy(), Lagged(lag=0.1)]))
    if asked:  # What it costs would be missing elsewhere, and its replies would wake a waiter.
        channel = channel.model_copy(
            update={"cost": Channel().cost, "cost_per_point": Channel().cost}
        )
        expert = draw(st.sampled_from([expert, Beacon(pause=scenario.rules.period)]))
        scenario = scenario.with_optimizer(waits=False)
    name = draw(st.sampled_from(["Newcomer", "a2", "newcomer", "z"]))
    newcomer = {name: (expert, channel)}
    people = draw(st.sampled_from([scenario.experts | newcomer, newcomer | scenario.experts]))
    bigger = replace(scenario, experts=people)
    return scenario, bigger.with_optimizer(ignores=(name,)) if asked else bigger


@settings(max_examples=80)
@given(joined())
def test_adding_an_expert_shifts_nobody_else(pair: tuple[Scenario, Scenario]) -> None:
    smaller, bigger = pair
    before, after = smaller.play(), bigger.play()
    (name,) = bigger.experts.keys() - smaller.experts.keys()
    for column in before.rounds.keys() - {"wall"}:
        assert_same(before.rounds[column], after.rounds[column], column)
    # Sources number the queries that they open themselves in one row.
    others = after.replies["source"] != name
    own = before.replies["query"] < 0
    for column in before.replies:
        first, second = before.replies[column], after.replies[column][others]
        if column == "query":
            first, second = np.where(own, -1, first), np.where(own, -1, second)
        assert_same(first, second, column)
    assert (before.ended, before.spent) == (after.ended, after.spent)


Luck = dict[int, NDArray[np.float64]]
"""For each round, what befell the things asked in it, in the order of asking: (things, effects)."""


def errors(trace: Trace, noise: Noise) -> Luck:
    """Give the error of each point that the expert was asked about, in stds; NaN if it failed."""
    replies = trace.replies
    met: Luck = {}
    for number, rows in asked_by_round(trace).items():
        points = replies["x0"][rows][:, None]
        truth = np.concatenate(
            [
                LANDSCAPE.rewards(points[i : i + 1], float(then)) if then >= 0 else [nan]
                for i, then in enumerate(replies["measured_at"][rows])
            ]
        )
        stds = np.broadcast_to(noise.stds(points, truth), truth.shape)
        met[number] = ((replies["value"][rows] - truth) / np.where(stds == 0, 1.0, stds))[:, None]
    return met


def journeys(trace: Trace, *, split: bool) -> Luck:
    """Give moments, cost, fate and dice of each point that travelled alone, or of each query."""
    replies = trace.replies
    met: Luck = {}
    for number, rows in asked_by_round(trace).items():
        if not split:
            rows = rows[replies["row"][rows] == 0]
        names = ("asked_at", "served_at", "sent_at", "arrived_at", "cost")
        dice = replies.get("note_dice", np.full(len(replies["row"]), nan))[rows]
        fates = [
            ("answered", "lost", "outage", "unanswered").index(f) for f in replies["fate"][rows]
        ]
        met[number] = np.array([*(replies[name][rows] for name in names), fates, dice]).T
    return met


def asked_by_round(trace: Trace) -> dict[int, NDArray[np.intp]]:
    replies = trace.replies
    of_expert = np.flatnonzero(replies["source"] == "expert")
    rows = of_expert[np.lexsort((replies["row"][of_expert], replies["query"][of_expert]))]
    return {int(n): rows[replies["round"][rows] == n] for n in np.unique(replies["round"][rows])}


def assert_same_journeys(mine: Luck, other: Luck, things: int) -> None:
    assert mine.keys() == other.keys()
    for number in mine:
        assert_array_equal(mine[number][:things], other[number][:things], f"round {number}")


def assert_same_errors(mine: Luck, other: Luck, things: int) -> None:
    assert mine.keys() == other.keys()
    for number in mine:
        first, second = mine[number][:things], other[number][:things]
        heard = np.isfinite(first) & np.isfinite(second)
        assert_allclose(first[heard], second[heard], atol=1e-9, err_msg=f"round {number}")


def asked_in(scenario: Scenario, *sizes: int, skipped: int = 0) -> Trace:
    return scenario.with_optimizer(sizes=sizes, skipped=skipped).play()


@st.composite
def consultations(draw: st.DrawFn, *, split: bool, per_point: bool = True) -> Scenario:
    period = draw(st.sampled_from(PERIODS))
    return Scenario(
        optimizer=Inquirer(sources=("expert",)),
        rules=draw(rules(period, thrifty=False)),
        experts={"expert": (Dicer(), draw(open_roads(period, split=split, per_point=per_point)))},
        feedback=draw(channels(period)),
        seed=draw(st.integers(0, 1000)),
    )


@settings(max_examples=40)
@given(consultations(split=True))
def test_the_jth_point_asked_in_a_round_meets_the_same_luck_under_every_optimizer(
    scenario: Scenario,
) -> None:
    noise = scenario.experts["expert"][1].noise
    few, many = asked_in(scenario, 2), asked_in(scenario, 5, skipped=3)
    assert few.rounds["x0"][0] != many.rounds["x0"][0]
    assert_same_journeys(journeys(few, split=True), journeys(many, split=True), 2)
    assert_same_errors(errors(few, noise), errors(many, noise), 2)


@settings(max_examples=40)
@given(consultations(split=False, per_point=False))
def test_the_kth_query_of_a_round_meets_the_same_luck_whatever_its_size(
    scenario: Scenario,
) -> None:
    noise = scenario.experts["expert"][1].noise
    few, many = asked_in(scenario, 2, 1), asked_in(scenario, 5, 3, 1, skipped=3)
    assert_same_journeys(journeys(few, split=False), journeys(many, split=False), 2)
    assert_same_errors(errors(few, noise), errors(many, noise), 3)


@settings(max_examples=40)
@given(consultations(split=True))
def test_points_that_travel_alone_do_not_care_how_they_were_bundled(scenario: Scenario) -> None:
    noise = scenario.experts["expert"][1].noise
    one, two = asked_in(scenario, 5), asked_in(scenario, 2, 3)
    assert_same_journeys(journeys(one, split=True), journeys(two, split=True), 5)
    assert_same_errors(errors(one, noise), errors(two, noise), 5)


@settings(max_examples=40)
@given(consultations(split=False))
def test_what_is_drawn_for_each_point_does_not_care_how_points_were_bundled(
    scenario: Scenario,
) -> None:
    expert, channel = scenario.experts["expert"]
    channel = channel.model_copy(update={"service": Channel().service, "cost": Channel().cost})
    scenario = replace(scenario, experts={"expert": (expert, channel)})
    one, two = asked_in(scenario, 5), asked_in(scenario, 2, 3)
    assert_same_errors(errors(one, channel.noise), errors(two, channel.noise), 5)
    whole, halves = journeys(one, split=False), journeys(two, split=False)
    assert whole.keys() == halves.keys()
    for number in whole:
        _, served_at, sent_at, _, cost, *_ = whole[number].sum(axis=0)
        _, served_both, sent_both, _, cost_both, *_ = halves[number].sum(axis=0)
        assert_allclose(cost, cost_both, rtol=1e-12)
        if np.isfinite(sent_at - served_at + sent_both - served_both):  # Answered before the end.
            assert_allclose(sent_at - served_at, sent_both - served_both, atol=1e-9)


@settings(max_examples=25)
@given(scenarios())
def test_the_same_seed_gives_the_same_play_and_another_replication_another(
    scenario: Scenario,
) -> None:
    digest = scenario.play().digest()
    assert digest == scenario.play().digest()
    assert digest != scenario.play(replication=1).digest()
    assert digest != replace(scenario, seed=scenario.seed + 1).play().digest()


# Accounts.


def keys(trace: Trace, chosen: NDArray[np.bool_]) -> list[tuple[str, int, int]]:
    columns = (trace.replies[name][chosen].tolist() for name in ("source", "query", "row"))
    return list(zip(*columns, strict=True))


class Clerk(Optimizer):
    """Plays as another optimizer does, and writes down every move."""

    optimizer: Optimizer
    file: Callable[[Move], None]

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return ClerkAgent(self.optimizer.start(briefing, rng), self.file)


@dataclass
class ClerkAgent:
    agent: Agent
    file: Callable[[Move], None]

    def ask(self, now: float) -> Move:
        move = self.agent.ask(now)
        self.file(move)
        return move

    def tell(self, reply: Reply) -> None:
        self.agent.tell(reply)


@settings(max_examples=90)
@given(scenarios())
def test_every_point_that_the_agent_asks_about_is_answered_or_fails(scenario: Scenario) -> None:
    moves: list[Move] = []
    clerk = Clerk(optimizer=scenario.optimizer, file=moves.append)
    trace = replace(scenario.prepare(), optimizer=clerk).again()
    replies = trace.replies
    once = ~np.isin(replies["fate"], UNASKED) & ~replies["superseded"]
    recorded = keys(trace, once)
    by_agent = {number for source, number, _ in recorded if source != "reward" and number > 0}
    last = {query.id for query in moves[-1].queries}
    if not last & by_agent:  # The play can end before the last move is thought out.
        moves.pop()
    # By number: a fallback may answer in the place of whom was asked.
    asked = [
        (query.id, row)
        for move in moves
        for query in move.queries
        for row in range(len(query.points))
    ]
    of_agent = once & (replies["asker"] == "agent")
    told = keys(trace, of_agent & (replies["source"] != "reward"))
    assert sorted(asked) == sorted((number, row) for _, number, row in told)
    for name in scenario.experts:
        counts = tally(trace, name)
        assert (
            counts.asked + counts.relayed
            == counts.answered + counts.failed + counts.relayed
            == (once & (replies["source"] == name) & (replies["asker"] != name)).sum()
        )


# Laws of a trace; tests/simulation/laws shows that each of them can be broken.


@settings(max_examples=150)
@given(scenarios())
@example(
    Scenario(
        optimizer=Inquirer(sources=()),
        rules=Rules(rounds=3, budget_per_round=0.15),
        # Begins a reading at 1.5, in the first round, and pays for it at 2.25, in the second.
        experts={"beacon": (Beacon(pause=1.5), Channel(cost=0.06))},
        feedback=Channel(cost=0.1),
        seed=0,
    )
)
def test_a_random_play_breaks_no_law(scenario: Scenario) -> None:
    hearing, trace = overhear(scenario.prepare())
    plain = [name for name, (one, _) in scenario.experts.items() if not isinstance(one, Stammerer)]
    assert find_broken(trace, scenario.prepare(), plain=plain) == []
    assert list(find_misheard(hearing, trace)) == []


# Time.


def test_a_source_that_sends_of_its_own_accord_was_served_from_the_beginning() -> None:
    channel = Channel(service=0.25, transit=0.25)
    replies = play(
        Inquirer(sources=("expert",)),
        Slope(),
        Rules(rounds=3),
        experts={"expert": (Stammerer(pause=0.0), channel)},
    ).replies
    answered = (replies["source"] == "expert") & (replies["fate"] == "answered")
    assert_array_equal(replies["served_at"][answered], replies["asked_at"][answered])


@settings(max_examples=40)
@given(scenarios())
def test_two_clocks_give_one_trace_of_any_scenario(scenario: Scenario) -> None:
    virtual, real = scenario.play(), play_on_live_clock(scenario.prepare())
    for column in virtual.replies:
        assert_same(virtual.replies[column], real.replies[column], column)
    assert virtual.digest() == real.digest()
