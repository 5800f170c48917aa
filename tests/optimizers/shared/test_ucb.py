"""What all Gaussian-process optimizers share."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sparq_environments.synthetic import Synthetic
from sparq_experts.truth import Truth
from sparq_sim import Box, Briefing, Channel, Query, Rules, Sites, play
from sparq_sim.arrays import Matrix, Points
from sparq_sim.errors import PluginError
from sparq_sim.gp.kernels import Matern12, Matern32, Matern52, SquaredExponential
from sparq_sim.gp.kernels.temporal import Forgetting
from sparq_sim.optimizers.et_gp_ucb import ETGPUCB
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.gp_ucb_sdf import GPUCBSDF
from sparq_sim.optimizers.r_gp_ucb import RGPUCB
from sparq_sim.optimizers.shared import ucb
from sparq_sim.optimizers.shared.acquisition import Acquisition
from sparq_sim.optimizers.shared.prior import Fitting, PriorParameters, PriorWarning
from sparq_sim.optimizers.shared.ucb import GPOptimizer
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.optimizers.sw_gp_ucb import SWGPUCB
from sparq_sim.optimizers.tv_gp_ucb import TVGPUCB
from sparq_sim.optimizers.ui_gp_ucb import UIGPUCB
from sparq_sim.optimizers.ui_tvbo import UITVBO
from sparq_sim.optimizers.w_gp_ucb import WGPUCB
from sparq_sim.plugin.optimizer import Restrictable
from sparq_sim.simulation.measures import average_regret
from sparq_sim.testing import Slope, Teller, check_optimizer

KERNEL = SquaredExponential(variance=0.23, length_scale=5.7)
NOISE = Channel(noise=0.1)

ALL = [
    GPUCB(),
    RGPUCB(),
    RGPUCB(block=5, carry=1),
    SWGPUCB(),
    WGPUCB(),
    TVGPUCB(),
    UIGPUCB(),
    UITVBO(),
    ETGPUCB(),
    GPUCBSDF(),
    SparQGPUCB(),
    SparQGPUCB(selection="chain", steps=50),
    SparQGPUCB(selection="exact"),
    SparQGPUCB(waits=True),
]


REPEATABLE = [*ALL[:10], SparQGPUCB(keeps_choice=False), ALL[12], ALL[13]]
"""All but those whose chain of choices begins anew with a new prior."""


def name(optimizer: GPOptimizer) -> str:
    changed = optimizer.model_dump(exclude_unset=True)
    return f"{type(optimizer).__name__}{changed or ''}"


@pytest.mark.parametrize("optimizer", ALL, ids=name)
def test_each_obeys_the_laws_of_optimizers(optimizer: GPOptimizer) -> None:
    # A play of 15 rounds on few observations may find a prior that the next one contradicts.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        check_optimizer(optimizer)


HELD = {
    "GP-UCB, all": (GPUCB(), [0, 1, 2, 3, 4, 5, 6, 7]),
    "R-GP-UCB, those of the block": (RGPUCB(block=3), [0, 1, 2, 0, 1, 2, 0, 1]),
    "SW-GP-UCB, those of the window": (SWGPUCB(window=2), [0, 1, 2, 2, 2, 2, 2, 2]),
    "W-GP-UCB, all": (WGPUCB(), [0, 1, 2, 3, 4, 5, 6, 7]),
    "TV-GP-UCB, all": (TVGPUCB(), [0, 1, 2, 3, 4, 5, 6, 7]),
    "UI-TVBO, all": (UITVBO(), [0, 1, 2, 3, 4, 5, 6, 7]),
    "ET-GP-UCB, those since the event": (ETGPUCB(), [0, 1, 2, 3, 4, 5, 6, 7]),
}


@pytest.mark.parametrize(("optimizer", "held"), HELD.values(), ids=HELD.keys())
@pytest.mark.parametrize("climbing", [False, True])
def test_effort_is_the_number_of_observations_held(
    optimizer: GPOptimizer, held: list[int], climbing: bool
) -> None:
    acquisition = Acquisition(refine=climbing)
    known = optimizer.model_copy(update={"kernel": KERNEL, "mean": 1.5, "acquisition": acquisition})
    rules = Rules(rounds=8, thinking_by_effort={"scale": 1e-9})
    trace = play(known, Synthetic(), rules, feedback=NOISE)
    assert_array_equal(trace.rounds["note_effort"], held)


def test_thinking_that_grows_with_the_data_costs_rounds_only_those_who_forget_nothing() -> None:
    rules = Rules(rounds=60, thinking_by_effort={"scale": 2e-5, "power": 3})
    everything, newest = (
        play(optimizer, Synthetic(), rules, feedback=NOISE).rounds["moved"]
        for optimizer in (GPUCB(kernel=KERNEL, mean=1.5), SWGPUCB(kernel=KERNEL, window=10))
    )
    assert newest.all()
    assert everything[:30].all()
    assert everything[40:].mean() < 0.7


def test_a_kernel_that_takes_no_such_points_is_refused_by_name() -> None:
    briefing = Briefing(Box(np.zeros(2), np.ones(2)), Channel().terms, rounds=3)
    with pytest.raises(PluginError, match="the kernel 'forgetting': a kernel of time was given"):
        GPUCB(kernel=Forgetting(epsilon=0.1), mean=0.0).start(briefing, np.random.default_rng(0))


class Picky(SquaredExponential):
    """Takes no points at all."""

    def __call__(self, a: Points, b: Points) -> Matrix:
        raise ValueError("no such points")


def test_a_kernel_of_ones_own_that_fails_is_placed_in_its_file() -> None:
    briefing = Briefing(Box(0.0, 1.0), Channel().terms, rounds=3)
    told = r"Picky': no such points \(test_ucb\.py:\d+ in __call__\)$"
    with pytest.raises(PluginError, match=told):
        GPUCB(kernel=Picky(), mean=0.0).start(briefing, np.random.default_rng(0))


SAME = {
    "R-GP-UCB with one block": RGPUCB(kernel=KERNEL, mean=1.5, width=1.5, block=150),
    "SW-GP-UCB with a window of all": SWGPUCB(kernel=KERNEL, mean=1.5, width=1.5, window=150),
    "W-GP-UCB with weight 1": WGPUCB(kernel=KERNEL, mean=1.5, width=1.5, weight=1.0),
    "TV-GP-UCB that forgets nothing": TVGPUCB(kernel=KERNEL, mean=1.5, width=1.5, epsilon=0.0),
    "UI without ageing": UIGPUCB(kernel=KERNEL, mean=1.5, width=1.5, rate=0.0),
}


@pytest.mark.parametrize("optimizer", SAME.values(), ids=SAME.keys())
@pytest.mark.parametrize("replication", range(3))
def test_without_forgetting_each_is_gp_ucb_move_by_move(
    optimizer: GPOptimizer, replication: int
) -> None:
    rules = Rules(rounds=150)
    plain = GPUCB(kernel=KERNEL, mean=1.5, width=1.5)
    expected = play(plain, Synthetic(), rules, feedback=NOISE, replication=replication)
    got = play(optimizer, Synthetic(), rules, feedback=NOISE, replication=replication)
    assert_array_equal(got.points, expected.points)


# Settings of findings on the paper's function: kernel fitted to centred data, practical widths.
LEVELS = {
    "gp-ucb": (GPUCB(kernel=KERNEL, mean=1.5, width=1.5), 0.349, 0.053),
    "r-gp-ucb": (RGPUCB(kernel=KERNEL, mean=1.5, width=1.5, block=8, carry=1), 0.158, 0.019),
    "ui-gp-ucb": (UIGPUCB(kernel=KERNEL, mean=1.5, width=1.5, rate=1e-3), 0.154, 0.011),
    "sw-gp-ucb": (SWGPUCB(kernel=KERNEL, mean=1.5, width=1.5, window=8), 0.134, 0.016),
    "tv-gp-ucb": (TVGPUCB(kernel=KERNEL, mean=1.5, epsilon=0.1), 0.132, 0.014),
    "w-gp-ucb": (WGPUCB(kernel=KERNEL, mean=1.5, width=1.5, weight=0.7), 0.124, 0.013),
    "sparq-gp-ucb": (SparQGPUCB(kernel=KERNEL, mean=1.5), 0.034, 0.009),
}


@pytest.mark.slow  # levels are means of many plays
@pytest.mark.parametrize(("optimizer", "level", "std"), LEVELS.values(), ids=LEVELS.keys())
def test_tuned_optimizers_reach_their_known_levels_on_the_papers_function(
    optimizer: GPOptimizer, level: float, std: float
) -> None:
    landscape = Synthetic().start(np.random.default_rng(0))
    finals = [
        average_regret(
            play(
                optimizer,
                Synthetic(),
                Rules(rounds=500),
                experts={"expert": (Teller(), NOISE)},
                feedback=NOISE,
                replication=replication,
                landscape=landscape,
            )
        )[-1]
        for replication in range(12)
    ]
    assert abs(np.mean(finals) - level) < 2 * std


# Domains and kernels.


@pytest.mark.parametrize("kind", [SquaredExponential, Matern12, Matern32, Matern52])
@pytest.mark.parametrize("dimensions", [1, 2, 3, 6])
def test_a_quiet_hill_is_climbed_in_any_dimension_under_any_kernel(
    dimensions: int, kind: type[SquaredExponential | Matern12 | Matern32 | Matern52]
) -> None:
    kernel = kind(variance=1.0, length_scale=2.0 * dimensions**0.5)
    model = GPUCB(kernel=kernel, mean=0.0, width=0.2)
    agent = model.start(Briefing(Box(np.zeros(dimensions), np.ones(dimensions))), _rng())
    values = []
    for t in range(1, 41):
        point = agent.ask(float(t)).point
        assert point is not None
        values.append(1 - ((point - 0.3) ** 2).sum() / dimensions)
        agent.tell(Query(t, "reward", point[None], float(t)).answer([values[-1]], stds=0.01))
    assert np.mean(values[-5:]) > 0.93


@pytest.mark.parametrize("optimizer", ALL, ids=name)
def test_each_plays_in_four_dimensions(optimizer: GPOptimizer) -> None:
    optimizer = optimizer.model_copy(update={"kernel": SquaredExponential(), "mean": 0.0})
    briefing = Briefing(Box(np.zeros(4), np.ones(4)), experts={}, rounds=20)
    agent = optimizer.start(briefing, _rng())
    for t in range(1, 21):
        point = agent.ask(float(t)).point
        assert point is not None
        briefing.domain.check(point[None])
        agent.tell(Query(t, "reward", point[None], float(t)).answer([point.sum()], stds=0.1))


def test_sites_are_played_as_they_are() -> None:
    sites = Sites(np.random.default_rng(1).random((28, 2)), coordinates=["lat", "lon"])
    agent = SparQGPUCB().start(Briefing(sites, rounds=30), _rng())
    for t in range(1, 31):
        point = agent.ask(float(t)).point
        assert point is not None
        (site,) = sites.index(point[None])
        agent.tell(Query(t, "reward", point[None], float(t)).answer([point[0]], stds=0.01))
    assert site == sites.points[:, 0].argmax()


def test_an_answer_off_the_grid_is_taken_in() -> None:
    for optimizer in (GPUCB, SWGPUCB, WGPUCB, UIGPUCB, TVGPUCB, SparQGPUCB):
        model = optimizer(kernel=SquaredExponential(length_scale=0.2), mean=0.0)
        agent = model.start(Briefing(Box(0.0, 1.0), rounds=10), _rng())
        off = np.array([[0.1234567]])
        for t in range(1, 6):
            agent.tell(Query(t, "expert", off, float(t)).answer([3.0], stds=0.01))
            agent.tell(Query(t, "reward", np.array([[0.9]]), float(t)).answer([0.0], stds=0.01))
        point = agent.ask(6.0).point
        assert point is not None
        assert abs(point[0] - 0.12) < 0.15


@cache
def climb_hill(dimensions: int, size: float, height: float, level: float) -> float:
    """Return how far below the top the last of 40 rounds was, in heights of the hill."""
    domain = Box(np.zeros(dimensions), np.full(dimensions, size))
    agent = GPUCB(width=1.0).start(Briefing(domain), _rng())
    for t in range(1, 41):
        point = agent.ask(float(t)).point
        assert point is not None
        value = float(1 - ((point / size - 0.3) ** 2).sum())
        query = Query(t, "reward", point[None], float(t))
        agent.tell(query.answer([level + height * value], stds=0.01 * height))
    return 1 - value


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize(
    ("size", "height", "level"),
    [(1e-6, 1.0, 0.0), (1e6, 1.0, 0.0), (1.0, 1e-7, 0.0), (1.0, 1.0, 1e8)],
)
def test_neither_the_size_of_the_domain_nor_the_height_of_the_reward_matters(
    dimensions: int, size: float, height: float, level: float
) -> None:
    plain = climb_hill(dimensions, 1.0, 1.0, 0.0)
    assert climb_hill(dimensions, size, height, level) < plain + 0.05


def test_rounds_are_counted_by_the_clock_not_by_asks() -> None:
    agent = GPUCB(kernel=KERNEL, mean=1.5).start(Briefing(Box(-50.0, 50.0), period=0.5), _rng())
    for now in (0.5, 0.51, 1.003, 2.5):  # Jitter, a second ask in a round, two rounds missed.
        width = agent.ask(now).notes["width"]
    assert width == pytest.approx((0.8 * np.log(4 * 5)) ** 0.5)


@pytest.mark.parametrize("optimizer", [GPUCB(), TVGPUCB(), SparQGPUCB()], ids=name)
@pytest.mark.parametrize("domain", [Box(0.0, 1.0), Sites(np.linspace(0.0, 1.0, 21)[:, None])])
def test_points_lie_within_the_bounds_of_now(optimizer: GPOptimizer, domain: Box | Sites) -> None:
    agent = optimizer.start(Briefing(domain), _rng())
    assert isinstance(agent, Restrictable)
    points = []
    for t in range(1, 31):
        if t == 8:  # The top is at 0.2, and out of reach.
            agent.restrict(Box(0.5, 0.75))
        if t == 22:
            agent.restrict(Box(0.0, 1.0))
        point = agent.ask(float(t)).point
        assert point is not None
        points.append(point[0])
        value = 1 - (point[0] - 0.2) ** 2
        agent.tell(Query(t, "reward", point[None], float(t)).answer([value], stds=0.05))
    assert all(0.5 <= x <= 0.75 for x in points[7:21])
    assert min(points[21:]) < 0.5


# Priors.


def test_exact_observations_are_no_trouble() -> None:
    trace = play(GPUCB(), Slope(), Rules(rounds=40), feedback=Channel())
    assert np.isfinite(trace.rounds["regret"]).all()


def test_all_observations_equal_are_no_trouble() -> None:
    agent = GPUCB().start(Briefing(Box(0.0, 1.0)), _rng())
    for t in range(1, 31):
        point = agent.ask(float(t)).point
        assert point is not None
        agent.tell(Query(t, "reward", point[None], float(t)).answer([1.0], stds=0.1))


def _rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.mark.parametrize("late", [0.0, 2.5])
@pytest.mark.parametrize("optimizer", REPEATABLE, ids=name)
def test_a_new_fit_that_finds_the_same_prior_changes_no_move(
    optimizer: GPOptimizer, late: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = PriorParameters(KERNEL, 1.5, None)
    monkeypatch.setattr(ucb, "find_prior", lambda *_, **__: found)
    channel = Channel(noise=0.1, transit=late, loss=0.1 if late else 0.0)
    once, often = (
        play(
            optimizer.model_copy(update={"kernel": KERNEL, "fitting": fitting}),
            Synthetic(),
            Rules(rounds=40),
            experts={} if optimizer.where_asks() == "never" else {"expert": (Truth(), channel)},
            feedback=Channel(noise=0.1, transit=late / 2),
        )
        for fitting in (Fitting(), Fitting(plays=2, every=7))
    )
    assert_array_equal(often.points, once.points)
