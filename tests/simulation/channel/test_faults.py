from __future__ import annotations

import warnings
from collections.abc import Callable
from math import inf
from typing import Any, get_args

import numpy as np
import pytest
from numpy.random import Generator
from numpy.testing import assert_array_equal

from sparq_sim import (
    Answer,
    Briefing,
    Channel,
    Estimate,
    Expert,
    Failure,
    Move,
    Query,
    Rules,
    Trace,
    World,
    play,
)
from sparq_sim.errors import HookError
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.messages import Reply
from sparq_sim.optimizers.shared.acquisition import Acquisition
from sparq_sim.optimizers.shared.routing import Cheapest, Fastest, Information, Shares
from sparq_sim.optimizers.shared.ucb import UCBAgent
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.optimizers.sparq_memory import SparQMemory
from sparq_sim.optimizers.sparq_memory.memory import ExpertWarning
from sparq_sim.plugin.contract import Agent
from sparq_sim.plugin.registry import list_names, load
from sparq_sim.simulation.channel.faults import Fault, FaultKind, FaultModel
from sparq_sim.simulation.channel.policy import Policy
from sparq_sim.simulation.records import Fate
from sparq_sim.testing import Asker, Slope, Teller
from tests.conftest import Run
from tests.simulation.delivery.asking import Heard, ask_one, consult

KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
FREE = (Fate.OUTAGE, Fate.BUDGET, Fate.ACCESS, Fate.RATE, Fate.DUPLICATE, Fate.STRAY)
"""What never costs anything."""
LANDSCAPE = Slope().start(np.random.default_rng(0))


def struck(
    run: Run, kind: FaultKind, *points: float, expert: Expert | None = None, **road: Any
) -> Heard:
    """Ask once, at 0, of a source whose every answer is struck by a fault of 1.5."""
    fault = Fault(kind=kind, share=1.0, delay=1.5, factor=0.25)
    channel = Channel(**{"cost": 1, "faults": (fault,), **road})
    heard = ask_one(run, expert or Teller(), channel, *points, until=100.0)
    assert set(heard.of("fault")) == {(kind,)}
    assert heard.context.budget.spent == (0 if kind == "outage" else 1)
    return heard


def reason(heard: Heard) -> str:
    (reply,) = [record.reply for record in heard.records]
    assert isinstance(reply, Failure)
    return reply.reason


class Echo(Expert):
    """Answers with the points that it was asked about."""

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(query.points[:, 0])


class Courteous(Expert):
    """Says beforehand what it would mean if a value were absent."""

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(np.zeros(len(query.points)), absent="no reading")


# Each does what it says.


def test_raise_is_an_exception_at_the_end_of_service(run: Run) -> None:
    heard = struck(run, "raise", service=2, transit=1)
    assert heard.of("fate", "sent_at", "arrived_at", "cost") == [("invalid", 2, 3, 1)]
    assert reason(heard) == "expert raised InjectedError: a fault was injected: raise"


def test_hang_never_answers_and_holds_its_slot_until_it_is_given_up(run: Run) -> None:
    channel = Channel(patience=5, capacity=1, faults=(Fault(kind="hang", share=1.0),))
    asks = [(0.0, "expert", [0.1]), (2.0, "expert", [0.2])]
    heard = consult(run, {"expert": (Teller(), channel)}, asks)
    assert heard.of("fate", "served_at", "arrived_at") == [("late", 0, 5), ("late", 5, 7)]
    endless = struck(run, "hang")
    assert endless.of("fate", "arrived_at", "heard") == [("unanswered", 100, False)]


@pytest.mark.parametrize(("kind", "told"), [("nan", "nan"), ("infinity", "inf")])
@pytest.mark.parametrize("expert", [Teller(), Courteous()], ids=["plain", "courteous"])
def test_nan_and_infinity_are_no_numbers_and_have_no_excuse(
    run: Run, kind: FaultKind, told: str, expert: Expert
) -> None:
    heard = struck(run, kind, 0.1, 0.2, expert=expert, noise=0.1)
    assert heard.of("fate", "rows", "cost") == [("invalid", [0, 1], 1)]
    assert reason(heard) == f"expert gave {told} with std 0.0; expected finite numbers"


def test_wrong_shape_is_one_value_too_many(run: Run) -> None:
    heard = struck(run, "wrong-shape", 0.1, 0.2)
    assert heard.of("fate", "rows") == [("invalid", [0, 1])]
    assert reason(heard) == "expert gave values (3,) and stds (); expected (2,)"


def test_wrong_point_gives_values_of_other_points(run: Run) -> None:
    heard = struck(run, "wrong-point", 0.1, 0.2, expert=Echo())
    (answer,) = [record.reply for record in heard.records]
    assert isinstance(answer, Answer)
    assert_array_equal(answer.points, [[0.1], [0.2]])
    assert ((answer.values >= 0) & (answer.values <= 1)).all()
    assert not np.isin(answer.values, [0.1, 0.2]).any()


def test_late_is_measured_later(run: Run) -> None:
    heard = struck(run, "late", service=2, transit=1)
    assert heard.of("fate", "measured_at", "sent_at", "arrived_at") == [("answered", 3.5, 3.5, 4.5)]
    assert values(heard) == LANDSCAPE.rewards(np.array([[0.5]]), 3.5)


def test_duplicate_is_sent_twice_and_heard_once(run: Run) -> None:
    heard = struck(run, "duplicate", service=2, transit=1)
    assert heard.of("fate", "heard", "arrived_at", "cost") == [
        ("answered", True, 3, 1),
        ("duplicate", False, 3, 0),
    ]


def test_out_of_order_is_measured_in_time_and_held_back(run: Run) -> None:
    heard = struck(run, "out-of-order", service=2, transit=1)
    assert heard.of("fate", "measured_at", "arrived_at") == [("answered", 2, 4.5)]
    assert values(heard) == LANDSCAPE.rewards(np.array([[0.5]]), 2.0)


@pytest.mark.parametrize("capacity", [None, 1])
def test_out_of_order_lets_what_was_asked_later_arrive_earlier(
    run: Run, capacity: int | None
) -> None:
    fault = Fault(kind="out-of-order", share=0.5, delay=3)
    channel = Channel(service=0.5, capacity=capacity, faults=(fault,))
    asks = [(0.0, "expert", [0.1]), (1.0, "expert", [0.2])]
    plays = (consult(run, {"expert": (Teller(), channel)}, asks, seed=seed) for seed in range(20))
    # One in which the first query is struck and the second is not.
    wanted = {(1, "out-of-order"), (2, "")}
    heard = next(each for each in plays if set(each.of("id", "fault")) == wanted)
    assert heard.of("id", "measured_at", "arrived_at") == [(2, 1.5, 1.5), (1, 0.5, 3.5)]


def test_given_up_answers_after_patience_has_ended(run: Run) -> None:
    heard = struck(run, "given-up", service=2, transit=1, patience=5)
    assert heard.of("fate", "heard", "arrived_at", "cost") == [
        ("late", True, 5, 1),
        ("stray", False, 5 + 1.5 + 1, 0),
    ]


def test_given_up_is_too_late_also_without_a_delay(run: Run) -> None:
    fault = Fault(kind="given-up", share=1.0, delay=0)
    heard = ask_one(run, Teller(), Channel(patience=5, faults=(fault,)))
    assert heard.of("fate", "arrived_at") == [("late", 5), ("stray", 5)]


@pytest.mark.parametrize(
    ("kind", "patience"), [("duplicate", inf), ("duplicate", 5.0), ("given-up", 5.0)]
)
def test_what_is_lost_arrives_neither_twice_nor_astray(
    run: Run, kind: FaultKind, patience: float
) -> None:
    channel = Channel(loss=1.0, patience=patience, faults=(Fault(kind=kind, share=1.0),))
    heard = ask_one(run, Teller(), channel)
    assert len(heard.records) == 1


def test_lost_is_lost_on_the_road(run: Run) -> None:
    heard = struck(run, "lost", service=2, transit=1)
    assert heard.of("fate", "heard", "arrived_at") == [("lost", False, 3)]
    impatient = struck(run, "lost", service=2, transit=1, patience=5)
    assert impatient.of("fate", "heard", "arrived_at") == [("lost", True, 5)]


def test_outage_finds_nobody_and_is_free(run: Run) -> None:
    heard = struck(run, "outage", service=2)
    assert heard.of("fate", "heard", "arrived_at", "cost") == [("outage", True, 0, 0)]


@pytest.mark.parametrize(("service", "dated"), [(2, 0.5), (1, 0)])
def test_clock_skew_dates_an_answer_too_early(run: Run, service: float, dated: float) -> None:
    heard = struck(run, "clock-skew", service=service)
    assert heard.of("fate", "measured_at", "arrived_at") == [("answered", dated, service)]
    assert values(heard) == LANDSCAPE.rewards(np.array([[0.5]]), service)


def test_wrong_std_claims_a_part_of_the_true_one(run: Run) -> None:
    heard = struck(run, "wrong-std", noise=2.0)
    honest = ask_one(run, Teller(), Channel(noise=2.0))
    (answer,), (plain,) = ([record.reply for record in each.records] for each in (heard, honest))
    assert isinstance(answer, Answer)
    assert isinstance(plain, Answer)
    assert_array_equal(answer.stds, [0.5])
    assert_array_equal(answer.values, plain.values)


def values(heard: Heard) -> float:
    (reply,) = [record.reply for record in heard.records]
    assert isinstance(reply, Answer)
    return float(reply.values[0])


# Whom they strike.


def replies(trace: Trace, source: str) -> dict[str, list[Any]]:
    rows = trace.replies["source"] == source
    return {
        name: np.nan_to_num(column[rows]).tolist()
        if column.dtype.kind == "f"
        else column[rows].tolist()
        for name, column in trace.replies.items()
    }


def played(faults: tuple[Fault, ...], *, batch: int = 3, rounds: int = 30, **road: Any) -> Trace:
    noisy = {
        "noise": 0.3,
        "cost": {"kind": "exponential", "mean": 1.0},
        "transit": {"kind": "exponential", "mean": 1.0},
        "loss": 0.2,
        "patience": 8,
        "split": True,
    }
    experts = {
        "faulty": (Teller(), Channel(**{**noisy, **road, "faults": faults})),
        "sound": (Teller(), Channel(**noisy)),
    }
    feedback = Channel(noise=0.1, loss=0.1)
    rules = Rules(rounds=rounds)
    return play(Asker(batch=batch), Slope(), rules, experts=experts, feedback=feedback)


@pytest.mark.parametrize("kind", KINDS)
def test_faults_of_one_source_shift_nobody_else(kind: FaultKind) -> None:
    before, after = played(()), played((Fault(kind=kind, share=0.5),))
    for source in ("sound", "reward"):
        assert replies(before, source) == replies(after, source)


def test_those_whom_a_fault_spares_meet_the_same_luck_as_without_it() -> None:
    before = replies(played(()), "faulty")
    after = replies(played((Fault(kind="wrong-std", share=0.5),)), "faulty")
    for name in before.keys() - {"std", "fault"}:
        assert before[name] == after[name], name
    assert set(after["fault"]) == {"", "wrong-std"}


def test_the_jth_point_of_a_round_meets_the_same_fault_whatever_is_asked_beside() -> None:
    faults = tuple(Fault(kind=kind, share=0.07) for kind in KINDS)

    def of_first_two(batch: int) -> list[tuple[int, int, str]]:
        seen = replies(played(faults, batch=batch), "faulty")
        rows = set(zip(seen["round"], seen["row"], seen["fault"], strict=True))
        return sorted(row for row in rows if row[0] > 2 and row[1] < 2)

    assert of_first_two(2) == of_first_two(5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_that_nobody_would_notice_cannot_be_retried(kind: FaultKind) -> None:
    fields = {"faults": (Fault(kind=kind),), "policy": Policy(retries=1)}
    if kind == "given-up":
        with pytest.raises(ValueError, match="needs a finite patience"):
            Channel.model_validate(fields)
    elif kind in ("lost", "hang"):
        with pytest.raises(ValueError, match="a loss is noticed when patience ends"):
            Channel.model_validate(fields)
    else:
        assert Channel.model_validate(fields).policy.retries == 1


class Vague(FaultModel):
    """Holds answers back, or claims, for it knows not how much."""

    held: object = 0.0
    claimed: object = 1.0

    @property
    def held_back(self) -> Any:
        return self.held

    @property
    def claimed_share(self) -> Any:
        return self.claimed


@pytest.mark.parametrize("fields", [{"held": "soon"}, {"held": -1.0}, {"claimed": -0.5}])
def test_a_fault_of_ones_own_that_gives_what_cannot_be_used_ends_the_play(
    run: Run, fields: dict[str, object]
) -> None:
    channel = Channel(faults=(Vague(share=1.0, **fields),))
    with pytest.raises(HookError, match=r"Vague.*(held_back|claimed_share)"):
        ask_one(run, Teller(), channel)


def test_faults_strike_as_often_as_they_say() -> None:
    faults = (Fault(kind="nan", share=0.1), Fault(kind="outage", share=0.6))
    seen = np.array(replies(played(faults, rounds=400, batch=5), "faulty")["fault"])
    # 2000 points: the std of a share of 0.6 is 0.011.
    assert np.mean(seen == "nan") == pytest.approx(0.1, abs=0.03)
    assert np.mean(seen == "outage") == pytest.approx(0.6, abs=0.04)
    assert np.mean(seen == "") == pytest.approx(0.3, abs=0.04)


def test_without_split_a_fault_strikes_whole_queries() -> None:
    trace = played((Fault(kind="nan", share=0.5),), split=False)
    seen = replies(trace, "faulty")
    by_query: dict[int, set[str]] = {}
    for number, fault in zip(seen["query"], seen["fault"], strict=True):
        by_query.setdefault(number, set()).add(fault)
    assert all(len(faults) == 1 for faults in by_query.values())
    assert set.union(*by_query.values()) == {"", "nan"}


def test_a_retry_may_be_spared() -> None:
    fault = Fault(kind="raise", share=0.7)
    seen = replies(played((fault,), loss=0.0, policy=Policy(retries=30)), "faulty")
    last = [not superseded for superseded in seen["superseded"]]
    fates = {fate for fate, is_last in zip(seen["fate"], last, strict=True) if is_last}
    assert "answered" in fates <= {"answered", "unanswered"}
    assert max(seen["attempt"]) > 4


# The matrix: every fault, every optimizer that queries, ten seeds.


class Watched(SparQGPUCB):
    """Shows its agent to whoever watches."""

    watch: Callable[[UCBAgent, float], None]

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        agent = super().start(briefing, rng)
        assert isinstance(agent, UCBAgent)
        return WatchedAgent(agent, self.watch)


class WatchedMemory(SparQMemory):
    """Shows its agent too."""

    watch: Callable[[UCBAgent, float], None]

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        agent = super().start(briefing, rng)
        assert isinstance(agent, UCBAgent)
        return WatchedAgent(agent, self.watch)


class WatchedAgent:
    def __init__(self, agent: UCBAgent, watch: Callable[[UCBAgent, float], None]) -> None:
        self._agent = agent
        self._watch = watch

    def ask(self, now: float) -> Move:
        move = self._agent.ask(now)
        self._watch(self._agent, now)
        return move

    def tell(self, reply: Reply) -> None:
        self._agent.tell(reply)


SHARES = Shares(shares=(("cheap", 1.0), ("dear", 2.0)))
VARIANTS: dict[str, dict[str, Any]] = {
    "clocked": {"expert": "dear"},
    "waits": {"expert": "dear", "waits": True},
    "retains": {"expert": "dear", "retain": 5.0, "rate": 0.001},
    "chain": {"expert": "dear", "selection": "chain", "steps": 50},
    "shares": {"routing": SHARES},
    "cheapest": {"routing": Cheapest()},
    "fastest": {"routing": Fastest(), "waits": True},
    "information": {"routing": Information()},
    "memory": {"queries": 6, "price": 0.0},
}
ROUNDS = 25
COVER = LANDSCAPE.domain.cover(16)


def test_the_matrix_has_every_optimizer_that_queries() -> None:
    asking = set()
    for name in list_names("optimizer"):
        model = load("optimizer", name)
        fields = {"point": (0.5,)} if "point" in model.model_fields else {}
        trace = play(
            model(**fields),
            Slope(),
            Rules(rounds=20),
            experts={"expert": (Teller(), Channel(noise=0.1))},
            feedback=Channel(noise=0.1),
        )
        if "expert" in trace.replies["source"]:
            asking.add(name)
    assert asking == {"sparq-gp-ucb", "sparq-memory"}


def withstand(kind: FaultKind, variant: str, seed: int, policy: Policy) -> Trace:
    """Play with faults on all roads; no posterior may be anything but finite."""
    beliefs = 0

    def check(agent: UCBAgent, now: float) -> None:
        nonlocal beliefs
        belief = agent.belief(COVER, now)
        if belief is not None:
            beliefs += 1
            assert np.isfinite(belief.mean).all()
            assert np.isfinite(belief.std).all()
            assert (belief.std >= 0).all()
            assert np.isfinite(belief.width)

    model = (WatchedMemory if variant == "memory" else Watched)(
        kernel=SquaredExponential(variance=0.1, length_scale=0.2),
        mean=0.8,
        acquisition=Acquisition(grid=21),
        watch=check,
        **VARIANTS[variant],
    )

    def road(share: float, **fields: Any) -> Channel:
        fault = Fault(kind=kind, share=share, delay=1.5)
        return Channel(patience=2.0, split=True, policy=policy, faults=(fault,), **fields)

    experts = {
        "dear": (Teller(), road(0.4, noise=0.1, transit=0.25, cost=1, cost_per_point=0.5)),
        "cheap": (Teller(), road(0.4, noise=0.3, transit=0.1, cost=0.25)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExpertWarning)  # Some faults are lies.
        trace = play(
            model,
            Slope(),
            Rules(rounds=ROUNDS),
            experts=experts,
            feedback=road(0.2, noise=0.1),
            seed=seed,
        )
    assert beliefs >= ROUNDS
    return trace


def check_account(trace: Trace, kind: FaultKind) -> None:
    """The play has ended, faults are counted, and costs follow the declared rule."""
    assert trace.ended == "rounds"
    assert len(trace) == ROUNDS
    assert np.isfinite(trace.points).all()
    moved = trace.rounds["moved"]
    for name in trace.rounds:
        if name.startswith("note_"):
            assert np.isfinite(trace.rounds[name][moved]).all()

    seen = trace.replies
    from_experts = seen["source"] != "reward"
    assert set(seen["fault"][from_experts].tolist()) == {"", kind}
    assert_array_equal(np.isfinite(seen["value"]), seen["fate"] == "answered")
    # What was merged, remembered, refused or never sent is free; the rest was charged when asked.
    unsent = (seen["fate"] == "unanswered") & np.isnan(seen["served_at"])
    free = np.isin(seen["fate"], FREE) | (seen["attempt"] == 0) | unsent
    prices = {"dear": 1.5, "cheap": 0.25, "reward": 0.0}
    price = np.array([prices[source] for source in seen["source"].tolist()])
    assert_array_equal(seen["cost"], np.where(free, 0.0, price))
    assert trace.spent == pytest.approx(seen["cost"].sum(), rel=1e-12)


SIGNS: dict[FaultKind, str] = {
    "raise": "invalid",
    "hang": "late",
    "nan": "invalid",
    "infinity": "invalid",
    "wrong-shape": "invalid",
    "wrong-point": "answered",
    "late": "answered",
    "duplicate": "duplicate",
    "out-of-order": "answered",
    "given-up": "stray",
    "lost": "lost",
    "outage": "outage",
    "clock-skew": "answered",
    "wrong-std": "answered",
}
"""The fate by which each fault shows."""


def run_matrix(kind: FaultKind, variant: str, seeds: range, policy: Policy) -> None:
    fates: set[tuple[str, str]] = set()
    for seed in seeds:
        trace = withstand(kind, variant, seed, policy)
        check_account(trace, kind)
        of_experts = trace.replies["source"] != "reward"
        fates |= set(
            zip(
                trace.replies["fault"][of_experts].tolist(),
                trace.replies["fate"][of_experts].tolist(),
                strict=True,
            )
        )
    assert (kind, SIGNS[kind]) in fates
    assert {fate for fault, fate in fates if not fault} <= {"answered", "unanswered", "late"}


POLICY = Policy(retries=2, backoff=0.3, timeout=4.0, remember=1.0, merge=True)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_optimizer_that_queries_withstands_every_fault(kind: FaultKind, variant: str) -> None:
    run_matrix(kind, variant, range(2), Policy())


@pytest.mark.slow
@pytest.mark.parametrize("policy", [Policy(), POLICY], ids=["plain", "policy"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_optimizer_that_queries_withstands_every_fault_with_ten_seeds(
    kind: FaultKind, variant: str, policy: Policy
) -> None:
    run_matrix(kind, variant, range(10), policy)


@pytest.mark.parametrize("kind", KINDS)
def test_faults_behind_a_policy_are_counted_and_charged_alike(kind: FaultKind) -> None:
    run_matrix(kind, "clocked", range(1), POLICY)
