from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.random import Generator
from numpy.testing import assert_allclose, assert_array_equal

from sparq_sim import Channel, Rules, play
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box, Sites
from sparq_sim.errors import SparqError
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.fixed import Fixed
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.r_gp_ucb import RGPUCB
from sparq_sim.optimizers.shared.prior import Fitting
from sparq_sim.optimizers.shared.ucb import GPOptimizer, UCBAgent
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.optimizers.sw_gp_ucb import SWGPUCB
from sparq_sim.optimizers.tv_gp_ucb import TVGPUCB
from sparq_sim.optimizers.ui_gp_ucb import UIGPUCB
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.optimizers.w_gp_ucb import WGPUCB
from sparq_sim.plugin.contract import Agent, Briefing, Environment, Landscape, Optimizer, round_at
from sparq_sim.report import replay as films
from sparq_sim.report.html import replay
from sparq_sim.report.html.packing import mark_shown, pack_numbers
from sparq_sim.report.html.replay import pack, pack_all
from sparq_sim.report.replay import Replay, play_again
from sparq_sim.report.roster import Roster
from sparq_sim.report.scene import Scene
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.beliefs import Watched
from sparq_sim.study.executors import InProcess
from sparq_sim.study.study import Study
from sparq_sim.testing import Slope, Teller

KERNEL = SquaredExponential(variance=0.3, length_scale=0.4)
GIVEN: dict[str, Any] = {"kernel": KERNEL, "mean": 0.5}
LATE = Channel(transit=1.7, loss=0.3, noise=0.1, split=True)


class Cube(Environment):
    """Three coordinates, the best at their sum's highest."""

    def start(self, rng: Generator) -> Landscape:
        return _CubeLandscape()


class _CubeLandscape:
    domain = Box([0.0] * 3, [1.0] * 3)

    def rewards(self, points: Points, time: float) -> Values:
        return np.asarray(points.sum(axis=1))

    def best(self, time: float) -> tuple[Point, float]:
        return np.ones(3), 3.0


class Moody(Optimizer):
    """Plays what it fancies at the moment; so it is never the same again."""

    fancy: ClassVar[float] = 0.25

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        if Moody.fancy < 0:
            raise RuntimeError("no\nfancy")
        return Fixed(point=(Moody.fancy,)).start(briefing, rng)


def scenario(**fields: Any) -> Scenario:
    chosen: dict[str, Any] = {
        "rounds": 25,
        "environment": Slope(),
        "feedback": Channel(noise=0.1),
        "experts": {"sage": (Teller(), LATE)},
        "optimizers": {"gp-ucb": GPUCB(**GIVEN), "calm": Uniform()},
    }
    return Scenario(**{**chosen, **fields})


def shown(folder: Path, **fields: Any) -> list[Replay]:
    study = Study(scenario(**fields), folder)
    study.run(InProcess())
    return play_again(study.results, allow_import=True, seconds=0)


def unpacked(packed: dict[str, Any]) -> Values:
    """Read numbers as the page does."""
    shape = tuple(packed["shape"])
    if "same" in packed:
        return np.full(shape, packed["same"])
    codes = np.frombuffer(base64.b64decode(packed["bytes"]), dtype=f"<{packed['kind']}")
    if packed["kind"] == "f4":
        return codes.reshape(shape).astype(float)
    absent = codes == np.iinfo(codes.dtype).max
    values = np.where(absent, np.nan, packed["low"] + codes * packed["step"])
    return values.reshape(shape)


# Watching


EVERY = [
    GPUCB(**GIVEN),
    RGPUCB(**GIVEN, block=5, carry=1),
    SWGPUCB(**GIVEN, window=6),
    WGPUCB(**GIVEN),
    TVGPUCB(**GIVEN),
    UIGPUCB(**GIVEN),
    SparQGPUCB(**GIVEN),
    SparQGPUCB(**GIVEN, waits=True, selection="exact"),
    GPUCB(fitting=Fitting(plays=5, every=7)),
]


@pytest.mark.parametrize(
    ("optimizer", "place"),
    [
        *((optimizer, "line") for optimizer in EVERY),
        *((optimizer, place) for optimizer in EVERY[3:7] for place in ("square", "sites")),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_who_is_watched_plays_the_same_and_plays_the_highest_bound_believed(
    optimizer: GPOptimizer, place: Literal["line", "square", "sites"]
) -> None:
    bounds: dict[int, float] = {}
    at_points: dict[int, Any] = {}
    rules = Rules(rounds=18)
    domain = Slope(place=place).start(None).domain  # type: ignore[arg-type] # it needs no chance
    candidates = optimizer.acquisition.candidate_points(domain)

    def look(agent: Agent, now: float) -> None:
        assert isinstance(agent, UCBAgent)
        belief = agent.belief(candidates, now)
        if belief is not None:
            scores = belief.mean + belief.width * belief.std
            bounds[round_at(now, 1.0)] = float(scores.max())
            at_points[round_at(now, 1.0)] = dict(
                zip(map(tuple, candidates.tolist()), scores.tolist(), strict=True)
            )

    def trace(player: Optimizer) -> Any:
        experts = {"sage": (Teller(), LATE)}
        return play(player, Slope(place=place), rules, experts=experts, feedback=LATE, seed=5)

    watched = trace(Watched(optimizer=optimizer, looks=look))
    assert watched.digest() == trace(optimizer).digest()
    assert len(bounds) >= 8
    for number, highest in bounds.items():
        if watched.rounds["moved"][number - 1]:
            played = tuple(watched.points[number - 1].tolist())
            assert at_points[number][played] == pytest.approx(highest, rel=1e-8)


def test_what_is_shown_of_a_belief_is_the_posterior_by_another_library(tmp_path: Path) -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    (shown_play,) = shown(tmp_path, optimizers={"gp-ucb": GPUCB(**GIVEN)})
    data, film = pack(shown_play), shown_play.film
    assert film is not None
    frame = 17
    replies, now = film.trace.replies, film.trace.rounds["played_at"][frame]
    known = (replies["source"] == "reward") & (replies["asked_at"] < now)
    model = GaussianProcessRegressor(
        ConstantKernel(0.3, "fixed") * RBF(0.4, "fixed"), alpha=0.01, optimizer=None
    )
    model.fit(replies["x0"][known, None], replies["value"][known] - 0.5)
    mean, std = model.predict(np.array(data["places"])[:, None], return_std=True)
    assert known.sum() == frame
    steps = data["mean"]["step"], data["std"]["step"]
    assert max(steps) < 1e-4
    assert_allclose(unpacked(data["mean"])[frame], mean + 0.5, atol=steps[0])
    assert_allclose(unpacked(data["std"])[frame], std, atol=steps[1])
    width = film.trace.rounds["note_width"][frame]
    assert unpacked(data["width"])[frame] == pytest.approx(width, rel=1e-6)


def test_a_belief_rests_on_answers_that_age_and_is_told_so(tmp_path: Path) -> None:
    sparse = SparQGPUCB(**GIVEN, rate=0.04)
    (shown_play,) = shown(tmp_path, optimizers={"sparq": sparse})
    data, film = pack(shown_play), shown_play.film
    assert film is not None
    frame = 20
    now = film.trace.rounds["played_at"][frame]
    counts = unpacked(data["evidence"]["counts"]).astype(int)
    rows = slice(counts[:frame].sum(), counts[: frame + 1].sum())
    places = unpacked(data["evidence"]["places"])[rows].round().astype(int)
    replies = {name: column[places] for name, column in film.trace.replies.items()}
    assert (replies["arrived_at"] <= now).all()
    assert (replies["fate"] == "answered").all()
    assert {*replies["source"]} == {"reward", "sage"}
    ages = np.maximum(now - replies["measured_at"] - 1, 0)
    stds = np.sqrt(0.01 + 0.04 * ages**2)
    assert ages.max() > 1
    assert_allclose(
        unpacked(data["evidence"]["stds"])[rows], stds, atol=data["evidence"]["stds"]["step"]
    )
    belief = film.beliefs[frame]
    assert belief is not None
    assert belief.evidence is not None
    assert len(belief.evidence.values) == len(places)


def test_who_keeps_no_answers_one_by_one_tells_none(tmp_path: Path) -> None:
    (shown_play,) = shown(tmp_path, optimizers={"tv": TVGPUCB(**GIVEN)})
    assert pack(shown_play)["evidence"] is None


def test_in_a_round_without_a_move_the_belief_of_the_move_before_is_shown(tmp_path: Path) -> None:
    (slow,) = shown(tmp_path, optimizers={"slow": GPUCB(**GIVEN)}, thinking=1.6)
    film = slow.film
    assert film is not None
    (missed, *_) = np.flatnonzero(~film.trace.rounds["moved"]).tolist()
    before, within = film.beliefs[missed - 1], film.beliefs[missed]
    assert before is not None
    assert before is within


# What the page is given


def test_the_data_are_what_the_play_had(tmp_path: Path) -> None:
    for shown_play in shown(tmp_path):
        data, film = pack(shown_play), shown_play.film
        assert film is not None
        trace, landscape = film.trace, Slope().start(None)  # type: ignore[arg-type]
        rounds = {name: unpacked(packed) for name, packed in data["rounds"].items()}
        assert_array_equal(rounds["round"], trace.rounds["round"])
        assert_allclose(rounds["point"], trace.points, atol=1e-5)
        for name in ("played_at", "regret", "reward", "best", "spent"):
            assert_allclose(rounds[name], trace.rounds[name], rtol=1e-6, atol=1e-6)
        assert data["frames"] == list(range(25))
        for frame, time in enumerate(trace.rounds["played_at"]):
            rewards = landscape.rewards(np.array(data["places"])[:, None], time)
            assert_allclose(unpacked(data["true"])[frame], rewards, atol=1e-4)
            assert_allclose(unpacked(data["best"])[frame], landscape.best(time)[0], atol=1e-4)
        replies = {name: unpacked(packed) for name, packed in data["replies"].items()}
        assert_allclose(replies["value"], trace.replies["value"], atol=1e-4)
        assert_allclose(replies["point"][:, 0], trace.replies["x0"], atol=1e-4)
        sizes = replies["size"].round().astype(int)
        assert_allclose(np.repeat(replies["arrived_at"], sizes), trace.replies["arrived_at"])
        fates = np.array(data["lanes"]["fates"])[replies["fate"].astype(int)]
        assert_array_equal(np.repeat(fates, sizes), trace.replies["fate"])
        sources = np.array(data["lanes"]["sources"])[replies["source"].astype(int)]
        assert_array_equal(np.repeat(sources, sizes), trace.replies["source"])


def test_rows_that_travel_alone_have_journeys_and_lanes_of_their_own(tmp_path: Path) -> None:
    slow = Channel(service={"kind": "exponential", "mean": 0.7}, capacity=2, split=True)
    optimizers = {"sparq": SparQGPUCB(**GIVEN)}
    (shown_play,) = shown(
        tmp_path, optimizers=optimizers, experts={"sage": (Teller(), slow)}, rounds=40
    )
    data, film = pack(shown_play), shown_play.film
    assert film is not None
    replies = {name: unpacked(packed) for name, packed in data["replies"].items()}
    once, sizes = film.trace.replies, replies["size"].round().astype(int)
    assert sizes.sum() == len(once["row"])
    answered = data["lanes"]["fates"].index("answered")
    assert (sizes[replies["fate"] == answered] == 1).all()
    assert not np.isnan(replies["lane"]).any()
    assert data["lanes"]["styles"] == ["lanes", "thin"]
    for source in (0, 1):
        for lane in range(data["lanes"]["counts"][source]):
            own = (replies["source"] == source) & (replies["lane"] == lane)
            order = np.argsort(replies["asked_at"][own])
            starts, ends = replies["asked_at"][own][order], replies["arrived_at"][own][order]
            assert own.sum() > 0
            assert (starts[1:] > ends[:-1]).all()
    # Waiting, service and transit, as shares of the whole.
    known = ~np.isnan(once["sent_at"]) & (once["arrived_at"] > once["asked_at"])
    latency = (once["arrived_at"] - once["asked_at"])[known]
    for share, moment in (("served", "served_at"), ("sent", "sent_at")):
        expected = (once[moment] - once["asked_at"])[known] / latency
        assert_allclose(np.repeat(replies[share], sizes)[known], expected, atol=0.01)


numbers = st.floats(-1e6, 1e6) | st.just(np.nan)


@given(
    arrays(float, array_shapes(max_dims=2), elements=numbers), st.sampled_from(["u1", "u2", "f4"])
)
def test_packed_numbers_come_back_to_half_a_step(
    given: Values, kind: Literal["u1", "u2", "f4"]
) -> None:
    packed = json.loads(json.dumps(pack_numbers(given, kind), allow_nan=False))
    again = unpacked(packed)
    step = packed.get("step", 0.0)
    assert_allclose(again, given, rtol=1e-6, atol=step * 0.5001 + 1e-9, equal_nan=True)
    if "step" in packed and not np.isnan(given).all():
        levels = {"u1": 254, "u2": 65534}[kind]
        assert step == pytest.approx(np.ptp(given[~np.isnan(given)]) / levels) or step == 1.0


moments = st.lists(st.floats(0, 100), min_size=1, max_size=8).map(sorted)


@given(moments, st.tuples(st.floats(0, 100), st.floats(0, 30)), st.floats(0, 20), st.floats(0, 5))
def test_nothing_that_a_frame_shows_is_left_out(
    times: list[float], span: tuple[float, float], before: float, after: float
) -> None:
    start, end = span[0], span[0] + span[1]
    (kept,) = mark_shown(
        np.array([start]), np.array([end]), np.array(times), before=before, after=after
    )
    assert kept == any(start - after <= time <= end + before for time in times)


def test_of_long_plays_150_rounds_are_filmed_and_all_around_the_worst(tmp_path: Path) -> None:
    (shown_play,) = shown(tmp_path, optimizers={"calm": Uniform()}, rounds=400)
    data, film = pack(shown_play), shown_play.film
    assert film is not None
    rounds = unpacked(data["rounds"]["round"])[data["frames"]]
    assert len(rounds) == 150
    assert (rounds[0], rounds[-1]) == (1, 400)
    assert np.diff(rounds).max() <= 6
    worst = 41 + int(film.trace.rounds["regret"][40:].argmax())
    assert {*range(worst - 20, min(401, worst + 40))} <= {*rounds}
    ((frame, about),) = data["moments"]
    assert (rounds[frame], about) == (worst, "largest regret")
    assert f"{len(rounds)} of its 400 rounds are filmed." in data["notes"]
    assert_allclose(unpacked(data["regrets"]), film.trace.rounds["regret"], atol=1e-4)


def test_what_is_too_much_for_a_page_is_thinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimizers = {"sparq": SparQGPUCB(**GIVEN), "gp-ucb": GPUCB(**GIVEN)}
    found = shown(tmp_path, optimizers=optimizers, rounds=80)
    full = pack_all(found)["films"]
    monkeypatch.setattr(replay, "_MOST_BYTES", 60_000)
    thinned = pack_all(found)["films"]
    sizes = [len(json.dumps(each)) for each in (full, thinned)]
    assert sizes[0] > 120_000
    assert sizes[1] <= 60_000
    for data in thinned:
        assert 4 < len(data["frames"]) <= 40
        assert unpacked(data["rounds"]["round"])[data["frames"][-1]] == 80


@pytest.mark.slow
@pytest.mark.parametrize("place", ["line", "square", "sites"])
def test_six_plays_of_500_rounds_take_less_than_three_megabytes(
    tmp_path: Path, place: Literal["line", "square", "sites"]
) -> None:
    optimizers = {
        f"sparq-{i}": SparQGPUCB(**GIVEN, width=1.0 + i, acquisition={"grid": 21}) for i in range(6)
    }
    found = shown(tmp_path, environment=Slope(place=place), optimizers=optimizers, rounds=500)
    assert [each.missing for each in found] == [""] * 6
    assert len(json.dumps(pack_all(found))) < 3_000_000


# Scenes


@pytest.mark.parametrize(
    ("environment", "kind"),
    [
        (Slope(), "line"),
        (Slope(place="square"), "field"),
        (Slope(place="sites"), "map"),
        (Cube(), "strips"),
    ],
)
def test_each_domain_has_its_scene_and_who_believes_nothing_shows_no_belief(
    tmp_path: Path, environment: Environment, kind: str
) -> None:
    (calm,) = shown(tmp_path, environment=environment, optimizers={"calm": Uniform()}, rounds=4)
    data = json.loads(json.dumps(pack(calm), allow_nan=False))
    assert data["scene"] == kind
    assert not {"mean", "std", "width"} & data.keys()
    assert ("true" in data) == (kind != "strips")
    assert unpacked(data["best"]).shape == (4, len(data["coordinates"]))


def test_a_field_is_believed_where_the_agent_searches(tmp_path: Path) -> None:
    (found,) = shown(
        tmp_path,
        environment=Slope(place="square"),
        optimizers={"tv": TVGPUCB(**GIVEN)},
        rounds=6,
    )
    data = pack(found)
    assert unpacked(data["true"]).shape == (6, data["sizes"]["true"] ** 2)
    assert unpacked(data["mean"]).shape == (6, data["sizes"]["believed"] ** 2)
    candidates = TVGPUCB().acquisition.candidate_points(Box([0.0, 0.0], [1.0, 1.0]))
    places = {tuple(row) for row in candidates.round(9).tolist()}
    believed = Scene.of(Box([0.0, 0.0], [1.0, 1.0])).believed.round(9).tolist()
    assert {tuple(row) for row in believed} <= places


def test_before_there_is_a_prior_no_belief_is_shown(tmp_path: Path) -> None:
    (found,) = shown(tmp_path, optimizers={"learner": GPUCB()}, rounds=15)
    absent = np.isnan(unpacked(pack(found)["mean"])).all(axis=1)
    assert absent.tolist() == [True] * 8 + [False] * 7


def test_maps_have_longitude_across_and_latitude_up() -> None:
    places = Sites([[50.0, 8.0], [48.0, 11.0]], ["A\u202e", "B"], ["latitude", "lon"])
    scene = Scene.of(places)
    assert (scene.kind, scene.shape["axes"], scene.shape["earth"]) == ("map", [1, 0], True)
    assert scene.shape["places"] == [[8.0, 50.0], [11.0, 48.0]]
    assert scene.shape["names"] == ["A\ufffd", "B"]
    plain = Scene.of(Sites([[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]))
    assert (plain.shape["axes"], plain.shape["earth"]) == ([0, 1], False)


def test_sites_on_a_line_are_a_line_in_order() -> None:
    scene = Scene.of(Sites([[3.0], [1.0], [2.0]]))
    assert (scene.kind, scene.shape["places"]) == ("line", [1.0, 2.0, 3.0])
    assert len(Scene.of(Sites(np.arange(1000.0)[:, None])).true) == 101


# Which plays, and when it fails


def test_the_first_play_of_each_optimizer_is_filmed_then_the_hardest_setting_then_the_worst_draw(
    tmp_path: Path,
) -> None:
    study = Study(
        scenario(sweep={"feedback.noise": [0.1, 0.2, 0.3]}, replications=2, rounds=4), tmp_path
    )
    study.run(InProcess())
    found = play_again(study.results, order=["gp-ucb", "calm"], allow_import=True, seconds=60)
    told = [(each.title, each.play[-1], each.is_first) for each in found]
    assert told[:2] == [("gp-ucb (noise 0.1)", "0", True), ("calm (noise 0.1)", "0", True)]
    assert told[6:] == [("gp-ucb (noise 0.1)", "1", False), ("calm (noise 0.1)", "1", False)]
    roster = Roster(study.results.finished(), ["gp-ucb", "calm"])
    hardest = [each["feedback.noise"] for each in roster.rank_settings()]
    hardest.remove(0.1)
    assert [title[-4:-1] for title, *_ in told[2:6:2]] == [f"{noise}" for noise in hardest]
    assert {title[:4] for title, *_ in told[2:4]} == {"gp-u", "calm"}


def test_a_page_tells_which_plays_are_filmed_and_how_the_others_are(tmp_path: Path) -> None:
    study = Study(scenario(sweep={"feedback.noise": [0.1, 0.3]}, replications=2), tmp_path)
    study.run(InProcess())
    plays = study.results.finished()

    def packed(*names: str) -> dict[str, Any]:
        found = play_again(study.results, films=names, allow_import=True, seconds=0)
        return pack_all(found, plays, order=["gp-ucb", "calm"], folder="my studies")

    data = packed()
    assert data["settings"] == ["noise 0.1", "noise 0.3"]
    assert data["draws"] == ["0", "1"]
    ((filmed, *others), *_), _ = data["plays"]
    assert filmed == 0
    assert data["films"][data["opens"]]["title"] == "gp-ucb (noise 0.1)"
    assert others == ["gp-ucb,noise=0.1,1"]
    assert data["command"] == "sparq-sim report 'my studies' --film"
    named = data["plays"][1][1][1]
    wished = packed(named)
    assert wished["plays"][1][1][1] == wished["opens"] == 2
    assert wished["films"][2]["title"] == "calm (noise 0.3)"
    with pytest.raises(SparqError, match="did you mean 'calm'"):
        packed("clam,0")


def test_fields_that_are_swept_side_by_side_are_named_once(tmp_path: Path) -> None:
    experts = {name: (Teller(), LATE) for name in ("sage", "fool")}
    sweep: dict[str, Any] = {f"experts.{name}.channel.loss": [0.0, 0.5] for name in experts}
    chosen = {"experts": experts, "rounds": 3, "optimizers": {"calm": Uniform()}}
    named = {}
    for way in ("zip", "grid"):
        study = Study(scenario(**chosen, sweep=sweep | {"way": way}), tmp_path / way)
        study.run(InProcess())
        named[way] = pack_all([], study.results.finished())["settings"]
    assert named["zip"] == ["loss 0", "loss 0.5"]
    assert "fool.channel.loss 0, sage.channel.loss 0.5" in named["grid"]


def test_films_of_one_world_hold_its_rewards_once(tmp_path: Path) -> None:
    data = pack_all(shown(tmp_path))
    assert [film["true"] for film in data["films"]] == [0, 0] or len(data["common"]) == 2
    assert len(data["common"]) == 2  # Rewards, and where they are best.


def test_an_empty_study_has_no_replays(tmp_path: Path) -> None:
    assert play_again(Study(scenario(), tmp_path).results) == []


def test_where_a_plug_in_is_missing_the_replay_is_left_out_and_named(tmp_path: Path) -> None:
    optimizers = {"moody": Moody(), "calm": Uniform()}
    synthetic = {"kind": "synthetic"}
    kept = {"environment": synthetic, "experts": {}, "optimizers": optimizers, "rounds": 4}
    study = Study(scenario(**kept), tmp_path)
    study.run(InProcess())
    moody, calm = play_again(study.results)  # And the file may not name code to run.
    assert (moody.title, moody.film) == ("moody", None)
    assert "tests.report.test_replay:Moody" in moody.missing
    assert [film["title"] for film in pack_all([moody, calm])["films"]] == ["calm"]
    assert not calm.missing
    assert pack(calm)["scene"] == "line"


def test_a_play_that_fails_when_played_again_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study(scenario(optimizers={"moody": Moody()}, rounds=4), tmp_path)
    study.run(InProcess())
    monkeypatch.setattr(Moody, "fancy", -1.0)
    (moody,) = play_again(study.results, allow_import=True)
    assert moody.missing == "RuntimeError: no fancy"


@pytest.mark.parametrize("record", ["rounds", "full"])
def test_a_play_that_is_another_when_played_again_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: str
) -> None:
    study = Study(scenario(optimizers={"moody": Moody()}, rounds=4, record=record), tmp_path)
    study.run(InProcess())
    monkeypatch.setattr(Moody, "fancy", 0.75)
    (moody,) = play_again(study.results, allow_import=True)
    assert moody.title == "moody, not as stored"
    assert "First difference: rounds, row 1 (round 1): " in moody.notes[1]
    assert "x0 0.25 and 0.75" in moody.notes[1]


def test_a_play_that_took_long_is_not_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study(scenario(optimizers={"calm": Uniform()}, rounds=4), tmp_path)
    study.run(InProcess())
    monkeypatch.setattr(films, "_MOST_SECONDS", 0.0)
    (calm,) = play_again(study.results, allow_import=True)
    assert "too long to play again" in calm.missing
