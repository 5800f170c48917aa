"""Check the paper's theorems: `python -m reproduce.theory [--quick] [name ...]`.

By default all checks; the whole takes some fifteen minutes on two cores. It prints what it finds
and writes docs/results/theory.json, from which `python -m reproduce` writes the pages. With
--quick, checks run in small, and nothing is written.

Long because it is a list of checks, each of which stands alone.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from math import floor, log, nan, sqrt
from multiprocessing import get_context
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, Philox
from pydantic import PrivateAttr

from reproduce.studies import RESULTS, read_results, write
from sparq_environments.rkhs_walk import RKHSWalk
from sparq_environments.synthetic import Synthetic
from sparq_experts.truth import Truth
from sparq_sim import Box, Briefing, Channel, Environment, Optimizer, Rules, Scenario, Trace, play
from sparq_sim.analysis.summary import Spread, spread
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.gp.bounds import (
    decay,
    divergence_bound,
    domain_constant,
    information_gains,
    regret_bound,
    std_ratio_bound,
    tail_bound,
)
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.sparse.exchange import mixing_steps
from sparq_sim.gp.sparse.greedy import merge
from sparq_sim.gp.sparse.matrices import tail_sum
from sparq_sim.messages import Move, Reply
from sparq_sim.optimizers.shared.prior import PriorParameters, PriorWarning, find_prior
from sparq_sim.optimizers.shared.schedules import GuaranteedSchedule, LogarithmicSchedule
from sparq_sim.optimizers.shared.ucb import GPOptimizer, UCBAgent
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.plugin.contract import Agent, Belief, Landscape
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.simulation.measures import average_regret, regret
from sparq_sim.simulation.randomness import Streams
from sparq_sim.simulation.references import compute_references

DELTA = 0.05

Row = dict[str, Any]
"""Numbers and names, by their columns."""
Rows = list[Row]


@dataclass(frozen=True)
class Effort:
    """How much to play: *rounds* of a short play and of a *long* one, *replications*, *plays*.

    The last is how many plays there are where a mean over them has an interval.
    """

    rounds: int
    long: int
    replications: int
    plays: int


FULL = Effort(rounds=500, long=20_000, replications=4, plays=8)
QUICK = Effort(rounds=120, long=800, replications=1, plays=2)


@dataclass(frozen=True)
class Place:
    """An environment with a prior that fits it; *norm* bounds that of the reward less *mean*."""

    name: str
    environment: Environment
    kernel: SquaredExponential
    norm: float
    diameter: float
    mean: float = 0.0
    noise: float = 0.1
    waits: bool = False
    rate: float | None = None

    def widths(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the two widths that are compared."""
        return {
            "theory": {"kind": "paper", "norm": self.norm, "delta": DELTA},
            "practical": {"kind": "logarithmic"},
        }

    def sparq(self, width: str, **fields: Any) -> SparQGPUCB:
        """Return SparQ-GP-UCB with a width called *width*."""
        return SparQGPUCB.model_validate(
            {
                "kernel": self.kernel,
                "mean": self.mean,
                "width": self.widths()[width],
                "waits": self.waits,
                "rate": self.rate,
                **fields,
            }
        )

    def landscape(self, replication: int) -> Landscape:
        """Start the environment as a play of this *replication* does."""
        with open_landscape(self.environment, 0, replication) as landscape:
            return landscape  # It holds nothing open.

    def play(
        self,
        optimizer: Optimizer,
        rounds: int,
        *,
        replication: int = 0,
        landscape: Landscape | None = None,
    ) -> Trace:
        """Play, with an expert whose noise is that of the observations."""
        road = Channel.model_validate({"noise": self.noise})
        with warnings.catch_warnings():
            # In short plays 6 log t is less than a width of theory wants; that is known.
            warnings.simplefilter("ignore", PriorWarning)
            return play(
                optimizer,
                self.environment,
                Rules(rounds=rounds),
                experts={"expert": (Truth(), road)},
                feedback=road,
                replication=replication,
                landscape=landscape,
            )


_WALK_KERNEL = SquaredExponential(length_scale=0.2)
WALK = Place("walk", RKHSWalk(kernel=_WALK_KERNEL, norm=2.0), _WALK_KERNEL, 2.0, diameter=1.0)
STILL = replace(WALK, name="walk at rest", environment=RKHSWalk(kernel=_WALK_KERNEL, change=0.0))
FAST = replace(WALK, name="walk, change 1", environment=RKHSWalk(kernel=_WALK_KERNEL, change=1.0))
# Kernel and mean as marginal likelihood finds them on centred data of one time; the norm is that
# of a ridge regression, for the function lies in no space of a squared exponential kernel.
PAPER = Place(
    "paper's function",
    Synthetic(),
    SquaredExponential(variance=0.23, length_scale=5.7),
    4.7,
    diameter=100.0,
    mean=1.5,
)


class Coin(Environment):
    """f_t = s_t g, where s_t is +1 or -1 by a fair coin, drawn again each round; on [0, 1].

    g = (k(., 1/4) - k(., 3/4)) / 2 with the kernel of the walk, so ||f_t||_k = ||g||_k < 1 and
    sup_x |f_{t+1}(x) - f_t(x)| = 2 max g < 1: Assumptions 1 and 2 hold. Whatever is known of the
    past, f_t(x) is 0 in the mean for every x. So a point chosen before f_t is seen costs max g in
    the mean, in every round.
    """

    def start(self, rng: Generator) -> Landscape:
        """Draw the key of all coins."""
        return _CoinLandscape(rng)


class _CoinLandscape:
    domain = Box(0.0, 1.0, ["x"])

    def __init__(self, rng: Generator) -> None:
        self._key = rng.integers(2**63, size=2, dtype=np.uint64)
        fine = np.linspace(0.0, 1.0, 100_001)[:, None]
        values = self._unflipped(fine)
        self._ends = {1.0: fine[values.argmax()], -1.0: fine[values.argmin()]}

    def _unflipped(self, points: Points) -> Values:
        values: Values = _WALK_KERNEL(points, np.array([[0.25], [0.75]])) @ np.array([0.5, -0.5])
        return values

    def _side(self, time: float) -> float:
        coin = Generator(Philox(key=self._key, counter=[0, 0, floor(time), 0]))
        return 1.0 if coin.random() < 0.5 else -1.0

    def rewards(self, points: Points, time: float) -> Values:
        """Return f_t at each point."""
        return self._side(time) * self._unflipped(points)

    def best(self, time: float) -> tuple[Point, float]:
        """Return the top, or the bottom where the coin has changed the sign."""
        side = self._side(time)
        point = self._ends[side]
        return point, side * float(self._unflipped(point[None])[0])


class Seen(NamedTuple):
    """What was believed at *now*, when a point was chosen; the last entry is of that point."""

    now: float
    belief: Belief


class Watched(Optimizer):
    """Plays as *inner* does, and writes down what it believes at *points* when it chooses."""

    inner: SparQGPUCB
    points: tuple[float, ...]
    _book: list[Seen] = PrivateAttr(default_factory=list)

    @property
    def book(self) -> list[Seen]:
        """What was written, one line per round."""
        return self._book

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        """Return the agent that is watched."""
        agent = self.inner.start(briefing, rng)
        assert isinstance(agent, UCBAgent)
        return _Watching(agent, np.array(self.points)[:, None], self._book)


class _Watching:
    def __init__(self, agent: UCBAgent, points: Points, book: list[Seen]) -> None:
        self._agent, self._points, self._book = agent, points, book

    def ask(self, now: float) -> Move:
        move = self._agent.ask(now)
        if move.point is not None:
            belief = self._agent.belief(np.vstack([self._points, move.point]), now)
            assert belief is not None
            self._book.append(Seen(now, belief))
        return move

    def tell(self, reply: Reply) -> None:
        self._agent.tell(reply)


def play_watched(
    place: Place, width: str, *, rounds: int, replication: int = 0
) -> tuple[Landscape, Watched, Trace]:
    """Play and watch, on every fifth candidate."""
    landscape = place.landscape(replication)
    assert isinstance(landscape.domain, Box)
    points = tuple(landscape.domain.grid(501)[::5, 0].tolist())
    model = Watched(inner=place.sparq(width), points=points)
    trace = place.play(model, rounds, replication=replication, landscape=landscape)
    return landscape, model, trace


# The checks


def coverage(effort: Effort) -> Rows:
    """Count how often |mu - f| <= beta sigma, f being f_t, and f_{t-1}, which was measured.

    Proposition 4: for all t at once, with probability 1 - delta / 2, for mu_{t-1} and f_t.
    """
    exact = replace(WALK, noise=0.01)
    waiting = replace(exact, waits=True)
    aged = replace(waiting, rate=0.01)
    cases = [
        ("clocked", WALK, "theory"),
        ("clocked", WALK, "practical"),
        ("clocked", exact, "theory"),
        ("waiting", waiting, "theory"),
        ("waiting, ageing at Delta^2", aged, "theory"),
        ("clocked", FAST, "theory"),
        ("clocked", PAPER, "theory"),
    ]
    return [_measure_coverage(mode, place, width, effort) for mode, place, width in cases]


def _measure_coverage(mode: str, place: Place, width: str, effort: Effort) -> Row:
    excesses: dict[str, list[Values]] = {"now": [], "before": []}
    for replication in range(effort.replications):
        landscape, model, _ = play_watched(
            place, width, rounds=effort.rounds, replication=replication
        )
        points = np.array(model.points)[:, None]
        for now, belief in model.book:
            reach = belief.width * belief.std[:-1]
            for name, time in (("now", now), ("before", now - 1.0)):
                errors = np.abs(belief.mean[:-1] - landscape.rewards(points, time))
                excesses[name].append(errors / reach)
    row: Row = {"world": place.name, "noise": place.noise, "play": mode, "width": width}
    for name, several in excesses.items():
        inside = np.array(several) <= 1
        row[f"{name}_points"] = float(inside.mean())
        row[f"{name}_rounds"] = float(inside.all(axis=1).mean())
        row[f"{name}_largest"] = float(np.max(several))
    return row


def posteriors(effort: Effort) -> Rows:
    """Compare sigma^s(x_t) with sigma^v(x_t), the std if all plays were answered again.

    The proof of Theorem 1: their ratio is at most sqrt(1 + sqrt(3 eta)), eta <= 1/5.
    """
    rows: Rows = []
    for place in (WALK, PAPER):
        for width in place.widths():
            rounds = 2 * effort.rounds
            _, model, trace = play_watched(place, width, rounds=rounds)
            stds = np.array([seen.belief.std[-1] for seen in model.book])
            row: Row = {"world": place.name, "width": width}
            row["claimed"] = std_ratio_bound(0.2)
            for share, name in ((10, "tenth"), (2, "half"), (1, "end")):
                chosen = range(rounds // share - 10, rounds // share)
                ratios = [stds[t] / _pretend_std(place, trace.points[: t + 1]) for t in chosen]
                row[f"ratio_{name}"] = float(np.median(ratios))
            row["std_end"] = float(stds[rounds // 2 :].mean())
            rows.append(row)
    return rows


def _pretend_std(place: Place, plays: Points) -> float:
    """Return sigma^v at the last of *plays*, as if all those before were observed again."""
    distinct = merge(plays[:-1])
    noise = np.diag(place.noise**2 / distinct.counts)
    cross = place.kernel(distinct.points, plays[-1:])
    known = cross.T @ np.linalg.solve(place.kernel(distinct.points, distinct.points) + noise, cross)
    return sqrt(place.kernel.variance - float(known[0, 0]))


def divergences(effort: Effort) -> Rows:
    """Compare the divergences of sparse inference, late in a play, with their bounds.

    Proposition 2: E[KL] <= eta with O(log^d t) queries. Its proof gives `proof_by_spectrum` for
    the queries that were asked, from the eigenvalues of the points played; `proof` for the 6 log t
    that were planned, from Theorem 3; and asks for `guaranteed` queries where eta = 1/5.
    """
    rows: Rows = []
    for place in (WALK, PAPER):
        for way in ("greedy", "chain", "exact"):
            model = place.sparq("practical", selection=way, steps=200, diagnose=True)
            trace = place.play(model, effort.rounds)
            notes = {name: trace.rounds[f"note_{name}"] for name in ("kl", "kl_bound", "kl_subset")}
            asked = int(trace.rounds["note_queries"][-1])
            late = slice(-effort.rounds // 10, None)
            row: Row = {"world": place.name, "selection": way, "queries": asked}
            row |= {name: float(np.mean(column[late])) for name, column in notes.items()}
            known = np.isfinite(notes["kl"])  # in rounds with a query
            kept = notes["kl"][known] <= notes["kl_bound"][known] + 1e-9
            row["bound_kept"] = float(kept.mean())
            noise_variance, planned = place.noise**2, LogarithmicSchedule()(effort.rounds)
            row["proof_by_spectrum"] = divergence_bound(
                asked,
                points=effort.rounds,
                tail=tail_sum(place.kernel(trace.points, trace.points), asked),
                noise_variance=noise_variance,
            )
            row["planned"] = planned
            row["proof"] = divergence_bound(
                planned,
                points=effort.rounds,
                tail=_tail(place, planned, effort.rounds),
                noise_variance=noise_variance,
            )
            row["guaranteed"] = make_guaranteed_schedule(place)(effort.rounds)
            rows.append(row)
    return rows


def make_guaranteed_schedule(place: Place, *, divergence: float = 0.2) -> GuaranteedSchedule:
    """Return the schedule of the last equation of the proof of Proposition 2, with its constants.

    In one dimension sum_{m>Q} lambda_m = v B^Q <= v Q exp(-alpha Q), so C is the variance v.
    """
    return GuaranteedSchedule(
        divergence=divergence,
        decay=decay(_scale(place), diameter=place.diameter),
        scale=domain_constant(place.diameter) * place.kernel.variance,
        noise_variance=place.noise**2,
        variance=place.kernel.variance,
    )


def _scale(place: Place) -> float:
    scale = place.kernel.length_scale
    assert isinstance(scale, float)
    return scale


def _tail(place: Place, size: int, points: int) -> float:
    return tail_bound(
        size,
        points=points,
        length_scale=_scale(place),
        diameter=place.diameter,
        variance=place.kernel.variance,
    )


def tails(effort: Effort) -> Rows:
    """Compare Lambda_Q / T with Theorem 3's bound, for uniform points and for those SparQ played.

    The last column: in units of length so large that the domain is shorter than this, the bound
    fails for uniform points, since it falls with the domain and Lambda_Q does not.
    """
    rows: Rows = []
    rng = Streams(0).generator("points")
    for place in (WALK, PAPER):
        domain = place.landscape(0).domain
        uniform = [domain.sample(rng, effort.rounds) for _ in range(effort.replications)]
        played = place.play(place.sparq("theory"), effort.rounds).points
        for size in (1, 5, 10):
            means = [tail_sum(place.kernel(x, x), size) / effort.rounds for x in uniform]
            bound = _tail(place, size, 1)
            own = tail_sum(place.kernel(played, played), size) / effort.rounds
            rows.append(
                {
                    "world": place.name,
                    "queries": size,
                    "uniform": float(np.mean(means)),
                    "played": own,
                    "bound": bound,
                    "fails_below": float(np.mean(means)) / bound * place.diameter,
                }
            )
    return rows


def growth(effort: Effort) -> Rows:
    """Fit exponents to long plays: Theorem 1 has R_T = O~(T^1/2), Theorem 2 a time of O~(T^2).

    Ties of the greedy choice are drawn anew in each round, as in the paper.
    """
    waiting = replace(WALK, name="walk, waiting", waits=True)
    cases = [
        (WALK, "practical"),
        (WALK, "theory"),
        (waiting, "practical"),
        (STILL, "practical"),
        (PAPER, "practical"),
        (PAPER, "theory"),
    ]
    gains = {place.kernel: _gains(place, effort.long) for place in (WALK, PAPER)}
    return [_measure_growth(place, width, effort, gains[place.kernel]) for place, width in cases]


def _gains(place: Place, rounds: int) -> Values:
    domain = place.landscape(0).domain
    assert isinstance(domain, Box)
    return information_gains(
        place.kernel, domain.grid(501), rounds=rounds, noise_variance=place.noise**2
    )


def _measure_growth(place: Place, width: str, effort: Effort, gains: Values) -> Row:
    rounds = effort.long
    plays = _in_processes(partial(_play_long, place, width, rounds=rounds), range(effort.plays))
    landscape = place.landscape(0)
    levels = compute_references(landscape, np.arange(rounds - rounds // 20, rounds + 1.0))
    row: Row = {"world": place.name, "width": width, "rounds": rounds, "plays": len(plays)}
    for name in ("tail", "regret_quarter", "regret_half", "regret_end"):
        row |= _flatten(name, spread(play[name] for play in plays))
    row |= {"late": levels.late, "uniform": levels.uniform}
    for name in ("time", "milliseconds"):
        row[name] = float(np.mean([play[name] for play in plays]))
    for name in (f"queries_{rounds // 20}", f"queries_{rounds}"):
        row[name] = max(play[name] for play in plays)
    row["schedule"] = LogarithmicSchedule()(rounds)
    row |= {name: plays[0][name] for name in ("kept_2_from", "kept_3_from")}
    if width == "theory":
        for t in (min(500, rounds), rounds):
            wide = float(np.mean([play[f"width_{t}"] for play in plays]))
            row[f"bound_{t}"] = _average_bound(t, place, wide, gains[t - 1])
        row["informative"] = _informative(place, wide, gains, levels.uniform)
    return row


def _play_long(place: Place, width: str, replication: int, *, rounds: int) -> Row:
    """Play once, and return what `growth` averages over plays."""
    trace = place.play(place.sparq(width, keeps_choice=False), rounds, replication=replication)
    regrets, kept = regret(trace), trace.rounds["note_kept"]
    seconds, asked = trace.rounds["wall"], trace.rounds["note_queries"]
    row: Row = {"tail": tail_exponent(regrets), "time": _time_exponent(seconds)}
    for name, parts in (("quarter", 4), ("half", 2), ("end", 1)):
        row[f"regret_{name}"] = float(regrets[rounds // (2 * parts) : rounds // parts].mean())
    row["milliseconds"] = 1e3 * float(seconds[rounds // 2 :].mean())
    row |= {f"queries_{t}": float(asked[t - 1]) for t in (rounds // 20, rounds)}
    row |= {f"kept_{n}_from": _first(kept, n) for n in (2, 3)}
    widths = trace.rounds["note_width"]
    return row | {f"width_{t}": float(widths[t - 1]) for t in (min(500, rounds), rounds)}


def _in_processes(task: Callable[[int], Row], over: Iterable[int]) -> Rows:
    """Return what a task gives for each number, in processes of one BLAS thread each."""
    # Spawned: a fork would share what BLAS has started.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return list(pool.map(task, over))


def _flatten(name: str, found: Spread) -> Row:
    """Return a mean over plays and its interval, under the names that pages read."""
    return {name: found.mean, f"{name}_low": found.low, f"{name}_high": found.high}


def _average_bound(rounds: float, place: Place, width: float, gain: float) -> float:
    bound = regret_bound(rounds, widths=width, gains=gain, noise_variance=place.noise**2)
    return float(bound) / rounds


def _informative(place: Place, width: float, gains: Values, uniform: float) -> float:
    """Return the T from which the bound is below uniform play, if gamma grows on like log T."""
    slope = float(gains[-1] - gains[len(gains) // 2]) / log(2)
    rounds = 1.0
    while True:
        beyond = max(0.0, log(rounds / len(gains)))
        gain = float(gains[min(int(rounds), len(gains)) - 1]) + slope * beyond
        if _average_bound(rounds, place, width, gain) < uniform:
            return float(f"{rounds:.1e}")
        rounds *= 1.1


def _first(counts: Values, least: int) -> float:
    """Return the first round from which on at least so many were kept; 0 if there is none."""
    fewer = np.flatnonzero(counts < least)
    first = int(fewer[-1]) + 2 if len(fewer) else 1
    return float(first if first <= len(counts) else 0)


def tail_exponent(regrets: Values) -> float:
    """Fit r_t ~ t^(a - 1) to the mean regrets of the last three octaves, and give a.

    Cumulative regret remembers the beginning; this does not. R_T ~ T^1/2 has a = 1/2, a plateau
    a = 1. It is unknown where an octave has no regret at all.
    """
    rounds = len(regrets)
    first, _, last = (regrets[rounds // 2 ** (n + 1) : rounds // 2**n].mean() for n in (2, 1, 0))
    if not (first > 0 and last > 0):
        return nan
    # Least squares through three equidistant logarithms is the slope from the first to the last.
    return float(1 + log(last / first) / (2 * log(2)))


def _time_exponent(seconds: Values) -> float:
    """Fit S_t ~ t^a to the time of all rounds up to t, the first tenth left out."""
    chosen = np.unique(np.geomspace(len(seconds) // 10 + 1, len(seconds), 60).astype(int))
    slope, _ = np.polyfit(np.log(chosen), np.log(np.cumsum(seconds)[chosen - 1]), 1)
    return float(slope)


def ties(effort: Effort) -> Rows:
    """Compare a greedy choice that is kept, ties and all, with ties drawn anew in each round."""
    return [
        _compare_choices(place, width, effort)
        for place in (WALK, PAPER)
        for width in place.widths()
    ]


def _compare_choices(place: Place, width: str, effort: Effort) -> Row:
    row: Row = {"world": place.name, "width": width}
    regrets: dict[str, Values] = {}
    for name, keeps in (("kept", True), ("anew", False)):
        task = partial(_play_choosing, place, width, rounds=4 * effort.rounds, keeps=keeps)
        plays = _in_processes(task, range(2 * effort.plays))
        regrets[name] = np.array([play["regret"] for play in plays])
        row |= _flatten(name, spread(regrets[name]))
        row[f"{name}_std"] = float(regrets[name].std(ddof=1))
        row[f"{name}_milliseconds"] = float(np.mean([play["milliseconds"] for play in plays]))
    return row | _flatten("minus", spread(regrets["anew"] - regrets["kept"]))


def _play_choosing(place: Place, width: str, replication: int, *, rounds: int, keeps: bool) -> Row:
    trace = place.play(place.sparq(width, keeps_choice=keeps), rounds, replication=replication)
    return {
        "regret": float(regret(trace).mean()),
        "milliseconds": 1e3 * float(trace.rounds["wall"].mean()),
    }


LIMITS: dict[str, dict[str, Any]] = {
    "sigma^2 log t": {"kind": "logarithmic"},
    "5 sigma^2 log t": {"kind": "logarithmic", "factor": 5.0},
    "sigma^2 t^0.2": {"kind": "power", "power": 0.2},
    "none discarded": {"kind": "never"},
}
"""Discarding limits g(t), as fields of SparQ-GP-UCB."""


def limits(effort: Effort) -> Rows:
    """Compare discarding limits g(t): Theorem 1 allows all that are o(t^(1/4))."""
    rows: Rows = []
    for place in (WALK, PAPER):
        for width in place.widths():
            found: dict[str, Values] = {}
            for name, discard in LIMITS.items():
                task = partial(_play_discarding, place, width, rounds=effort.rounds, rule=discard)
                plays = _in_processes(task, range(2 * effort.plays))
                found[name] = np.array([play["regret"] for play in plays])
                row: Row = {"world": place.name, "width": width, "limit": name}
                row |= _flatten("regret", spread(found[name]))
                row["kept"] = float(np.mean([play["kept"] for play in plays]))
                if name != "sigma^2 log t":
                    row |= _flatten("minus", spread(found[name] - found["sigma^2 log t"]))
                rows.append(row)
    return rows


def _play_discarding(
    place: Place, width: str, replication: int, *, rounds: int, rule: Mapping[str, Any]
) -> Row:
    trace = place.play(place.sparq(width, discard=rule), rounds, replication=replication)
    return {
        "regret": float(regret(trace).mean()),
        "kept": float(trace.rounds["note_kept"][-1]),
    }


def selections(effort: Effort) -> Rows:
    """Compare three ways to choose the points to ask about, under both widths."""
    rows: Rows = []
    for place in (WALK, PAPER):
        for width in place.widths():
            row: Row = {"world": place.name, "width": width}
            for way in ("greedy", "chain", "exact"):
                model = place.sparq(width, selection=way, steps=200)
                finals = [
                    float(average_regret(place.play(model, effort.rounds, replication=n))[-1])
                    for n in range(effort.replications)
                ]
                row[way] = float(np.mean(finals))
                row[f"{way}_std"] = float(np.std(finals))
            steps = mixing_steps(effort.rounds, LogarithmicSchedule()(effort.rounds), epsilon=1e-3)
            row["steps_by_theory"] = steps
            rows.append(row)
    return rows


def coin(effort: Effort) -> Rows:
    """Play where the assumptions hold and the past says nothing; see `Coin`."""
    place = replace(WALK, name="coin", environment=Coin(), norm=1.0)
    landscape = place.landscape(0)
    rows: Rows = []
    for mode, waits in (("clocked", False), ("waiting", True)):
        for width in place.widths():
            model = replace(place, waits=waits).sparq(width)
            trace = place.play(model, 4 * effort.rounds, landscape=landscape)
            regrets = regret(trace)
            rows.append(
                {
                    "play": mode,
                    "width": width,
                    "rounds": len(trace),
                    "regret": float(regrets.mean()),
                    "standard_error": float(regrets.std() / sqrt(len(trace))),
                    "unavoidable": 0.0 if waits else landscape.best(0.0)[1],
                }
            )
    return rows


def norms(effort: Effort) -> Rows:
    """Estimate ||f||_k of the paper's function from ever finer ridge regressions, at time 0.

    sqrt(a' K a), a = (K + ridge I)^-1 f on 501 points: it grows without end where f is not in the
    space of k. The hill exp(-x^2 / 20) is in that of a squared exponential of l < 20^1/2 = 4.47.
    """
    points = PAPER.landscape(0).domain.cover(501)
    whole = PAPER.landscape(0).rewards(points, 0.0) - PAPER.mean
    hill = np.exp(-0.05 * points[:, 0] ** 2)
    rows: Rows = []
    for scale, variance in ((_scale(PAPER), PAPER.kernel.variance), (3.0, 1.0)):
        matrix = SquaredExponential(length_scale=scale, variance=variance)(points, points)
        for name, values in (("f - 1.5", whole), ("its hill", hill), ("1", np.ones(len(points)))):
            row: Row = {"function": name, "length_scale": scale}
            for ridge in ("1e-2", "1e-4", "1e-6", "1e-8"):
                weights = np.linalg.solve(matrix + float(ridge) * np.eye(len(points)), values)
                row[f"ridge_{ridge}"] = sqrt(float(weights @ matrix @ weights))
            rows.append(row)
    return rows


class Fitted(Optimizer):
    """Plays as *inner* does, and writes down the prior that it fits to the design."""

    inner: GPOptimizer
    _book: list[PriorParameters] = PrivateAttr(default_factory=list)

    @property
    def book(self) -> list[PriorParameters]:
        """What was fitted, one line per play."""
        return self._book

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        """Fit as the agent is going to."""
        self._book.append(find_prior(self.inner, briefing.design, rng))
        return self.inner.start(briefing, rng)


def fits(effort: Effort) -> Rows:
    """Fit kernel and mean to the designs of paper/synthetic, as all six do: mean and std."""
    scenario = Scenario.load("paper/synthetic", overrides=["rounds=1"])
    inner = scenario.optimizers["gp-ucb"]
    assert isinstance(inner, GPOptimizer)
    model = Fitted(inner=inner)
    for replication in range(10 * effort.replications):
        play(
            model,
            scenario.environment,
            scenario.rules,
            feedback=scenario.feedback,
            replication=replication,
            seed=scenario.seed,
        )
    priors: dict[str, list[float]] = {"length scale": [], "variance": [], "mean": []}
    for each in model.book:
        assert isinstance(each.kernel, SquaredExponential)
        assert isinstance(each.kernel.length_scale, float)
        priors["length scale"].append(each.kernel.length_scale)
        priors["variance"].append(each.kernel.variance)
        priors["mean"].append(each.mean)
    return [
        {"of": name, "average": float(np.mean(numbers)), "std": float(np.std(numbers, ddof=1))}
        for name, numbers in priors.items()
    ]


CHECKS: dict[str, Callable[[Effort], Rows]] = {
    "fits": fits,
    "norms": norms,
    "coverage": coverage,
    "posteriors": posteriors,
    "divergences": divergences,
    "tails": tails,
    "coin": coin,
    "selections": selections,
    "ties": ties,
    "limits": limits,
    "growth": growth,
}


def main(arguments: list[str]) -> None:
    """Run checks, print what they find and, unless quick, write it down."""
    quick = "--quick" in arguments
    names = [name for name in arguments if not name.startswith("--")] or [*CHECKS]
    if unknown := [name for name in names if name not in CHECKS]:
        raise SystemExit(f"no check is called {unknown[0]!r}; there are: {', '.join(CHECKS)}")
    told: dict[str, Rows] = {}
    for name in names:
        begun = perf_counter()
        told[name] = CHECKS[name](QUICK if quick else FULL)
        print(f"\n{name}, {perf_counter() - begun:.0f} s", *told[name], sep="\n", flush=True)
    if not quick:
        kept = read_results("theory") if (RESULTS / "theory.json").exists() else {}
        write("theory", {name: rows for name, rows in {**kept, **told}.items() if name in CHECKS})


if __name__ == "__main__":
    main(sys.argv[1:])
