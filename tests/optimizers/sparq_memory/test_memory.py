from __future__ import annotations

import pickle
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sparq_sim import Answer, Query
from sparq_sim.gp.predictor import Predictor
from sparq_sim.optimizers.sparq_memory.memory import DriftMemory, ExpertWarning
from sparq_sim.plugin.briefing import SourceTerms
from tests.optimizers.sparq_memory.plays import GRID, start_memory

TERMS = SourceTerms(std=0.1)


def observation(t: int, x: float, value: float) -> Answer:
    return Query(t, "reward", np.array([[x]]), float(t)).answer([value], stds=0.1)


def query(t: int, *xs: float) -> Query:
    return Query(t, "expert", np.array(xs)[:, None], float(t))


def std_at(predictor: Predictor, x: float) -> float:
    return float(predictor.std(np.array([[x]]))[0])


def mean_at(predictor: Predictor, x: float) -> float:
    return float(predictor.mean(np.array([[x]]))[0])


def grown(rounds: int) -> DriftMemory:
    """Return a memory after some rounds in which the reward was 0."""
    memory = start_memory(experts={"expert": TERMS})
    rng = np.random.default_rng(0)
    for t in range(1, rounds + 1):
        memory.predictor(float(t))
        x = float(rng.choice(GRID[:, 0]))
        memory.record_play(np.array([x]), float(t))
        memory.learn(observation(t, x, 0.1 * rng.normal()))
    return memory


# What is believed.


def test_it_believes_what_it_is_told() -> None:
    memory = start_memory(experts={"expert": TERMS})
    memory.learn(observation(1, 0.2, 1.2))
    memory.learn(query(1, 0.6, 0.8).answer([-0.5, 0.7], stds=0.1))
    found = memory.predictor(1.0)
    for x, value in ((0.2, 1.2), (0.6, -0.5), (0.8, 0.7)):
        assert mean_at(found, x) == pytest.approx(value, abs=0.1)
        assert std_at(found, x) < 0.15
    assert std_at(found, 0.0) > 0.5


def test_what_it_knows_fades_with_time() -> None:
    memory = grown(10)
    stds = [std_at(memory.predictor(11.0 + later), 0.5) for later in (0.0, 5.0, 20.0)]
    assert stds[0] < stds[1] < stds[2]


def test_readings_that_nobody_asked_for_are_learnt() -> None:
    memory = start_memory(experts={"expert": TERMS})
    before = std_at(memory.predictor(1.0), 0.5)
    pushed = Query(-1, "expert", np.array([[0.5]]), 1.0)
    memory.learn(pushed.answer([2.0], stds=0.1))
    found = memory.predictor(1.0)
    assert mean_at(found, 0.5) == pytest.approx(2.0, abs=0.15)
    assert std_at(found, 0.5) < 0.2 * before


def test_what_the_design_tells_is_believed_before_the_first_round() -> None:
    design = Query(1, "reward", GRID, 0.0).answer(np.sin(6 * GRID[:, 0]), stds=0.1)
    found = start_memory(design=design).predictor(1.0)
    assert_allclose(found.mean(), np.sin(6 * GRID[:, 0]), atol=0.25)


@settings(max_examples=15)
@given(order=st.permutations(range(6)))
def test_answers_that_are_awaited_may_come_in_any_order(order: Sequence[int]) -> None:
    prompt, late = grown(3), grown(3)
    queries = [query(t, 0.1 * t, 0.9) for t in range(4, 10)]
    for t in range(4, 10):
        for memory in (prompt, late):
            memory.predictor(float(t))
            memory.record_queries((queries[t - 4],))
            memory.learn(observation(t, 0.4, 0.1))
        prompt.learn(queries[t - 4].answer([0.2, -0.1], stds=0.1))
    prompt.predictor(10.0)
    for arrival, number in enumerate(order):
        when = 10.0 + arrival
        measured = queries[number].asked_at
        late.learn(
            queries[number].answer([0.2, -0.1], stds=0.1, measured_at=measured, arrived_at=when)
        )
        found = late.predictor(when)
    expected = prompt.predictor(15.0)
    assert_allclose(found.mean(), expected.mean(), atol=1e-8)
    assert_allclose(found.std(), expected.std(), atol=1e-8)


def test_to_be_asked_what_it_believes_changes_nothing() -> None:
    memory = grown(5)
    first, second = memory.predictor(6.0), memory.predictor(6.0)
    assert_array_equal(first.mean(), second.mean())
    assert_array_equal(first.std(), second.std())


# Surprises and doubts.


def test_a_reward_that_is_another_at_a_stroke_is_learnt_anew() -> None:
    memory = grown(30)
    for t in range(31, 41):
        memory.learn(observation(t, 0.02 * (t - 20), 6.0))
        memory.predictor(float(t))
    notes = memory.notes()
    assert notes["restarts"] >= 1
    assert notes["doubted"] == 0
    assert mean_at(memory.predictor(41.0), 0.4) > 4.0


def test_where_it_is_as_foretold_nothing_is_forgotten() -> None:
    memory = grown(100)
    memory.predictor(101.0)
    assert memory.notes()["restarts"] == 0
    assert 0.3 < memory.notes()["surprise"] < 2.0


def test_an_expert_that_misleads_is_doubted_and_what_was_learnt_is_forgotten() -> None:
    memory = start_memory(experts={"expert": TERMS, "other": TERMS})
    for t in range(1, 4):
        memory.learn(observation(t, 0.5, 0.0))
        memory.learn(query(t, 0.5).answer([2.0], stds=0.1))
        if t < 3:
            memory.predictor(float(t))
    with pytest.warns(ExpertWarning, match="expert 'expert' are less exact .* by about 2"):
        found = memory.predictor(3.0)
    assert memory.notes()["doubted"] == 1
    assert memory.notes()["restarts"] == 1
    # Only the newest observation is left, and not the answer beside it.
    assert mean_at(found, 0.5) == pytest.approx(0.0, abs=1e-9)
    assert std_at(found, 0.5) < 0.2


def test_a_doubted_expert_is_warned_of_once_and_counts_little() -> None:
    memory = start_memory(experts={"expert": TERMS})
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for t in range(1, 20):
            memory.learn(observation(t, 0.5, 0.0))
            memory.learn(query(t, 0.5).answer([3.0 * (-1) ** t], stds=0.1))
            memory.predictor(float(t))
    assert [each.category for each in warned] == [ExpertWarning]
    memory.learn(query(20, 0.0).answer([3.0], stds=0.1))
    assert abs(mean_at(memory.predictor(20.0), 0.0)) < 0.6


# Notes.


def test_the_parts_that_are_noted_sum_to_1() -> None:
    memory = start_memory(experts={"expert": TERMS})
    rng = np.random.default_rng(1)
    for t in range(1, 40):
        memory.learn(observation(t, rng.choice(GRID[:, 0]), rng.normal()))
        memory.predictor(float(t))
        notes = memory.notes()
        for group in ("time_scale/", "drift/"):
            parts = [share for name, share in notes.items() if name.startswith(group)]
            assert sum(parts) == pytest.approx(1.0)
            assert min(parts) >= 0


def test_every_part_is_noted_in_its_order() -> None:
    assert list(start_memory().notes()) == [
        "queries",
        *(f"time_scale/{scale}" for scale in (3, 10, 30, 100, 1000)),
        *(f"drift/{drift}" for drift in ("jitter", "velocity", "carried")),
        "surprise",
        "restarts",
        "doubted",
    ]


def test_a_reward_that_stands_still_is_noted_as_such() -> None:
    memory = start_memory()
    rng = np.random.default_rng(2)
    for t in range(1, 80):
        x = float(rng.choice(GRID[:, 0]))
        memory.learn(observation(t, x, np.sin(6 * x) + 0.1 * rng.normal()))
        memory.predictor(float(t))
    assert memory.notes()["time_scale/1000"] > 0.9


# What it holds.


def hold(memory: DriftMemory, first: int, last: int) -> int:
    """Play with late answers, some of them lost; return the bytes of what is held afterwards."""
    rng = np.random.default_rng(first)
    late: dict[int, Answer] = {}
    for t in range(first, last):
        if t in late:
            memory.learn(late.pop(t))
        memory.predictor(float(t))
        point = rng.choice(GRID)
        memory.record_play(point, float(t))
        chosen = memory.choose_points_to_ask(float(t)).get("expert", GRID[:2])
        sent = Query(t, "expert", chosen, float(t))
        memory.record_queries((sent,))
        seen = np.sin(6 * np.array([point[0], *chosen[:, 0]]) + 0.2 * t)
        seen += 0.1 * rng.normal(size=len(seen))
        memory.learn(observation(t, point[0], seen[0]))
        if t % 3:
            late[t + 4] = sent.answer(seen[1:], stds=0.1, measured_at=t, arrived_at=t + 4.0)
    held = memory._filter, memory._asking, memory._audits, memory._told
    return len(pickle.dumps(held))


def test_what_it_holds_does_not_grow() -> None:
    memory = start_memory(experts={"expert": SourceTerms(std=0.1, latency=4.0)}, rounds=None)
    sizes = [hold(memory, first, first + 100) for first in (1, 101, 201, 301)]
    assert max(sizes[1:]) < 1.1 * sizes[0]
    assert memory.size == start_memory().size


def test_an_expert_that_misleads_again_is_doubted_again() -> None:
    memory = grown(3)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for t in range(4, 260):
            lies = t < 20 or t >= 200
            memory.learn(observation(t, 0.5, 0.0))
            memory.learn(query(t, 0.5).answer([2.0 if lies else 0.0], stds=0.1))
            memory.predictor(float(t))
            if t == 199:
                assert memory.notes()["doubted"] == 0.0
    assert memory.notes()["doubted"] == 1.0
    assert [each.category for each in warned] == [ExpertWarning, ExpertWarning]


def test_parts_of_an_answer_may_come_one_after_the_other() -> None:
    sent = query(4, 0.1, 0.9)

    def hear(*when: int) -> tuple[float, float]:
        memory = grown(3)
        for t in range(4, 10):
            memory.predictor(float(t))
            if t == 4:
                memory.record_queries((sent,))
            memory.learn(observation(t, 0.4, 0.1))
            for row in range(2):
                if when[row] == t:
                    whole = sent.answer([0.8, -0.7], stds=0.1, measured_at=4.0, arrived_at=float(t))
                    rows = np.array([row])
                    part = {"rows": rows, "values": whole.values[rows], "stds": whole.stds[rows]}
                    memory.learn(replace(whole, **part))
        found = memory.predictor(10.0)
        return mean_at(found, 0.9), std_at(found, 0.9)

    assert_allclose(hear(5, 8), hear(4, 4), atol=1e-8)
