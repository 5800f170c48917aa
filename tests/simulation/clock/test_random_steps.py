from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from math import inf
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from sparq_sim.simulation.clock.protocol import AGENT, ARRIVAL, DEADLINE, Clock, Order
from tests.conftest import on_live_clock, on_sim_clock
from tests.simulation.clock.plain import PlainClock

Step = tuple[Any, ...]
"""What is done, and with what."""
Log = list[tuple[Any, ...]]
"""When, who (processes by name) did what."""

MAIN, CALLS = "main", "calls"
SIGNALS, CAPACITIES = 3, (1, 2)

orders = st.sampled_from([ARRIVAL, DEADLINE, AGENT])
spans = st.sampled_from([0.0, 0.5, 1.0, 1.5, 3.0])
leads = spans.filter(bool)
# Moments collide often, some have passed, and one never comes.
moments = st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 5.0, inf])
waits: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("sleep"), spans),
    st.tuples(st.just("until"), moments, orders),
    st.tuples(st.just("signal"), st.integers(0, SIGNALS - 1)),
    st.tuples(st.just("gate"), st.integers(0, len(CAPACITIES) - 1), spans),
    st.tuples(st.just("process"), st.integers(0, 9)),
    st.tuples(st.just("set"), st.integers(0, SIGNALS - 1)),
    st.tuples(st.just("cancel"), st.integers(0, 9)),
)


class PlannedError(Exception):
    """What a process fails with."""


@dataclass
class Stage:
    """What processes share, on any clock, and the log of what they do."""

    clock: Clock
    log: Log = field(default_factory=list)

    def __post_init__(self) -> None:
        self.signals = [self.clock.signal() for _ in range(SIGNALS)]
        self.gates = [self.clock.gate(capacity) for capacity in CAPACITIES]
        self.within = [0] * len(CAPACITIES)
        self.processes: list[Any] = []

    def note(self, *what: Any) -> None:
        self.log.append((self.clock.now, *what))

    async def work(self, number: int, plan: list[Step], stubborn: bool, fails: bool) -> int:
        """Wait for one thing after another, and note each."""
        name = f"process {number}"
        self.note(name, "begins")
        for wait in plan:
            try:
                await self.wait(name, wait, number)
            except asyncio.CancelledError:
                self.note(name, "cancelled")
                if not stubborn:
                    raise
            else:
                self.note(name, *wait)
        if fails:
            self.note(name, "fails")
            raise PlannedError(name)
        return number

    async def wait(self, name: str, wait: Step, before: int) -> None:
        match wait:
            case "sleep", duration:
                await self.clock.sleep(duration)
            case "until", moment, order:
                await self.clock.until(moment, order)
            case "signal", number:
                self.note(name, "hears", await self.signals[number])
            case "set", number:
                self.signals[number].set(before)
            case "cancel", number:
                if number < len(self.processes):
                    self.processes[number].cancel()
            case "process", number:
                # No circles: nobody would ever end, which is allowed, and tells nothing.
                if number < before:
                    self.note(name, "gets", await self.processes[number])
            case "gate", number, duration:
                async with self.gates[number]:
                    self.within[number] += 1
                    self.note(name, "enters", number)
                    assert self.within[number] <= CAPACITIES[number]
                    try:
                        await self.clock.sleep(duration)
                    finally:
                        self.within[number] -= 1

    async def take(self, step: Step) -> None:
        """Do one step of the machine."""
        clock = self.clock
        match step:
            case "start", plan, stubborn, fails:
                work = self.work(len(self.processes), plan, stubborn, fails)
                self.processes.append(clock.start(work))
            case "call", after, order:
                clock.call_at(clock.now + after, lambda: self.note(CALLS, order), order)
            case "cancel at", number, after, order:
                cancel = self.processes[number % len(self.processes)].cancel
                clock.call_at(clock.now + after, cancel, order)
            case "wait", *wait:
                await self.wait(MAIN, tuple(wait), 0)
                self.note(MAIN, *wait)


On = Callable[[Callable[[Clock], Coroutine[Any, Any, None]]], None]


def on_plain_clock(main: Callable[[Clock], Coroutine[Any, Any, None]]) -> None:
    clock = PlainClock()
    clock.run(main(clock))  # type: ignore[arg-type] # as much of a clock as is needed


def perform(on: On, steps: list[Step]) -> Log:
    """Return the log of all steps on a clock, and who failed in the end, if somebody did."""
    stages: list[Stage] = []

    async def main(clock: Clock) -> None:
        stages.append(stage := Stage(clock))
        for step in steps:
            await stage.take(step)
        await clock.until(clock.now, AGENT)
        stage.note(MAIN, "ends")

    try:
        on(main)
    except PlannedError as error:
        stages[0].note("the run", "fails", *error.args)
    return stages[0].log


def up_to_failure(log: Log) -> Log:
    """Return a log up to where somebody fails, or all of it.

    Who goes on beside one that fails, before the run ends with it, is nobody's promise.
    """
    fails = [place for place, entry in enumerate(log) if entry[2] == "fails"]
    return log[: fails[0] + 1] if fails else log


class Steps(RuleBasedStateMachine):
    """Random steps, which are taken on the plain list and on both clocks when all are known."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self.started = 0

    @initialize()
    def begin(self) -> None:
        self.start([("sleep", 1.0)], stubborn=False, fails=False)

    @rule(
        plan=st.lists(waits, min_size=1, max_size=4),
        stubborn=st.booleans(),
        fails=st.sampled_from([False] * 19 + [True]),
    )
    def start(self, plan: list[Step], stubborn: bool, fails: bool) -> None:
        self.steps.append(("start", plan, stubborn, fails))
        self.started += 1

    @rule(after=leads, order=orders)
    def call(self, after: float, order: Order) -> None:
        self.steps.append(("call", after, order))

    @rule(number=st.integers(0, 9), after=leads, order=orders)
    def cancel_at(self, number: int, after: float, order: Order) -> None:
        self.steps.append(("cancel at", number, after, order))

    @rule(number=st.integers(0, 9))
    def cancel(self, number: int) -> None:
        self.steps.append(("wait", "cancel", number % self.started))

    @rule(number=st.integers(0, SIGNALS - 1))
    def set_signal(self, number: int) -> None:
        self.steps.append(("wait", "set", number))

    @rule(duration=spans)
    def advance(self, duration: float) -> None:
        self.steps.append(("wait", "sleep", duration))

    @rule(moment=moments.filter(lambda moment: moment < inf), order=orders)
    def wait_at(self, moment: float, order: Order) -> None:
        self.steps.append(("wait", "until", moment, order))

    def teardown(self) -> None:
        expected = perform(on_plain_clock, self.steps)
        assert perform(on_sim_clock, self.steps) == expected
        assert up_to_failure(perform(on_live_clock, self.steps)) == up_to_failure(expected)


def check(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Steps, settings=settings(max_examples=examples, stateful_step_count=steps)
    )


def test_both_clocks_do_as_a_plain_sorted_list_does() -> None:
    check(120, 20)


@pytest.mark.slow
def test_both_clocks_do_as_a_plain_sorted_list_does_for_long() -> None:
    check(1500, 40)
