"""Place over time: which play is shown, what is true there, and what is said of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparq_sim import Scenario, Study
from sparq_sim.arrays import Points
from sparq_sim.domain import Box, Sites
from sparq_sim.errors import SparqError
from sparq_sim.optimizers.fixed import Fixed
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.report.gather import gather
from sparq_sim.report.html.page import TEMPLATES, render
from sparq_sim.report.html.place import pack_places
from sparq_sim.report.palette import BADNESS, GROUND
from sparq_sim.report.place import Paint, PlacePicture, find_most_telling, read_places, shade
from sparq_sim.report.place.ground import look_around
from sparq_sim.report.place.words import describe_play
from sparq_sim.report.print import draw, kinds, save
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.testing import Slope
from tests.plants import steer_and_simulate
from tests.report.test_replay import Cube

LINE = Box(0.0, 100.0, ["x"])
TIMES = np.arange(1, 401)
WAVE = 50 + 20 * np.sin(TIMES / 20)


def played(folder: Path, **fields: Any) -> Results:
    optimizers = {"random": Uniform(), "fixed": Fixed(point=(0.5,))}
    chosen = {"environment": Slope(), "rounds": 20, "replications": 3, "optimizers": optimizers}
    study = Study(Scenario(**{**chosen, **fields}), folder)
    study.run(InProcess())
    return study.results


def pictured(study: Results, **how: Any) -> list[PlacePicture]:
    settings = {repr(play.setting): play.setting for play in study.finished()}
    return read_places(study, list(settings.values()), allow_import=True, **how)


def column(values: Any) -> Points:
    return np.asarray(values, dtype=float)[:, None]


# What is said


@pytest.mark.parametrize(
    ("heights", "told"),
    [
        (WAVE + 1, "Follows the best: within 5 of the best in 100 % of the rounds."),
        (np.roll(WAVE, 7), "Follows, about 7 rounds late: within 5 of the best in "),
        (np.full(400, 50.0), "Sticks within 5 of 50 all along: within 5 of the best in "),
        (np.where(TIMES < 101, WAVE, 30), "Sticks within 5 of 30 from round "),
        (np.random.default_rng(0).uniform(0, 100, 400), "Goes everywhere: within 5 of the best"),
        (np.where(TIMES % 100 < 40, WAVE, 5), "Finds the best at times: within 5 of the best in 4"),
        (np.where(TIMES % 100 < 20, WAVE, 97 - TIMES / 40), "Mostly elsewhere: within 5 of the"),
    ],
    ids=["follows", "late", "sticks", "settles", "everywhere", "at times", "elsewhere"],
)
def test_words_tell_who_follows_who_sticks_and_who_jumps(heights: Any, told: str) -> None:
    assert describe_play(column(heights), TIMES, column(WAVE), LINE).startswith(told)


def test_who_stays_where_the_best_stays_has_found_it() -> None:
    there = np.full(400, 30.0)
    told = describe_play(column(there + 1), TIMES, column(there), LINE)
    assert told.startswith(
        "Finds the best and stays within 5 of 31 all along: within 5 of the best"
    )


def test_a_site_is_the_best_or_it_is_not() -> None:
    sites = Sites([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], ["a", "b", "c", "<d>"])
    best = sites.points[np.arange(400) // 100]
    always = sites.points[np.full(400, 3)]
    told = describe_play(always, TIMES, best, sites)
    assert told == (
        "Sticks at <d> all along: at the best in 25 % of the rounds, by chance in 25 %."
    )


@pytest.mark.parametrize(
    ("points", "told"),
    [
        (column([]), "Never played."),
        (column(np.full(9, 3.0)), "Stays within 0.05 of 3 all along."),
        (column(np.arange(400)), "Moves on and on."),
        (column(np.arange(400) % 2), "Goes everywhere."),
    ],
)
def test_where_the_best_is_not_known_only_the_moves_are_told(points: Points, told: str) -> None:
    assert describe_play(points, TIMES[: len(points)], None, None) == told


# What is true


@pytest.mark.parametrize("place", ["line", "square", "sites"])
def test_the_ground_is_the_true_reward_at_its_times_and_places(tmp_path: Path, place: Any) -> None:
    world = Slope(place=place)
    (picture,) = pictured(played(tmp_path, environment=world, optimizers={"random": Uniform()}))
    landscape, ground = world.start(None), picture.ground  # type: ignore[arg-type] # no chance
    assert ground is not None
    assert_allclose(ground.times, np.arange(1, 21))
    for row, time in enumerate(ground.times.tolist()):
        best, highest = landscape.best(time)
        if place == "line":
            rewards = landscape.rewards(ground.heights[:, None], time)
            assert_allclose(ground.rewards[row], rewards)
            assert_allclose(ground.best[row], best[0])
        elif place == "sites":
            assert isinstance(landscape.domain, Sites)
            order = [landscape.domain.site_names.index(name) for name in picture.axis.names]
            rewards = landscape.rewards(landscape.domain.points, time)[order]
            mean = rewards.mean() if ground.relative else 0.0
            assert_allclose(ground.rewards[row], rewards - mean)
            assert ground.best[row] == rewards.argmax()
        else:
            assert ground.best[row] == 0.0
            assert ground.rewards[row].max() == pytest.approx(highest, abs=0.01)


def test_a_dot_lies_where_the_round_was_played_and_has_its_regret(tmp_path: Path) -> None:
    study = played(tmp_path)
    (picture,) = pictured(study, replication=1)
    assert picture.play == "seed 0, replication 1"
    for row in picture.rows:
        (play,) = (
            each
            for each in study.finished()
            if (each.optimizer, each.replication) == (row.title, 1)
        )
        trace = study.read(play.key).trace
        assert_allclose(row.heights, trace.points[:, 0])
        assert_allclose(row.values, trace.rounds["regret"])
        assert_allclose(row.times, trace.rounds["played_at"])


def test_the_play_shown_is_the_median_of_the_best_which_is_on_top(tmp_path: Path) -> None:
    study = played(tmp_path)
    (picture,) = pictured(study)
    regrets = {
        name: {
            play.replication: play.measures["average_regret"] or 0.0
            for play in study.finished()
            if play.optimizer == name
        }
        for name in ("random", "fixed")
    }
    means = {name: np.mean(list(found.values())) for name, found in regrets.items()}
    best = min(means, key=lambda name: means[name])
    assert picture.rows[0].title == best
    middle = sorted(regrets[best], key=lambda number: regrets[best][number])[1]
    assert picture.play == f"seed 0, replication {middle}"


def test_in_more_than_two_dimensions_there_are_distances_without_a_ground(tmp_path: Path) -> None:
    optimizers = {"there": Fixed(point=(1.0,) * 3), "opposite": Fixed(point=(0.0,) * 3)}
    (picture,) = pictured(played(tmp_path, environment=Cube(), optimizers=optimizers))
    assert picture.axis.kind == "distance"
    assert picture.ground is not None
    assert picture.ground.rewards.size == 0
    assert [row.heights[0] for row in picture.rows] == pytest.approx([0.0, 1.0])


def test_the_settings_of_a_single_optimizer_are_rows_of_one_picture(tmp_path: Path) -> None:
    optimizers = {"fixed": Fixed(point=(0.5,))}
    study = played(tmp_path, optimizers=optimizers, sweep={"feedback.noise": [0.1, 0.2, 0.4]})
    (picture,) = pictured(study)
    assert [row.title for row in picture.rows] == ["noise 0.1", "noise 0.2", "noise 0.4"]
    assert not picture.ranked


def test_settings_in_one_world_share_its_ground(tmp_path: Path) -> None:
    pictures = pictured(played(tmp_path, sweep={"feedback.noise": [0.1, 0.2]}))
    assert [each.setting for each in pictures] == ["noise 0.1", "noise 0.2"]
    assert len(pack_places(pictures)["grounds"]) == 1


def test_where_true_rewards_cannot_be_had_the_dots_are_there(tmp_path: Path) -> None:
    study = played(tmp_path)
    (picture,) = read_places(study, [{}], allow_import=False)
    assert picture.ground is None
    assert "The true reward is not shown: " in picture.notes[0]
    assert len(picture.rows[0].heights) == 20
    assert picture.paint.word == "regret"


def test_what_takes_too_long_is_shown_at_fewer_times_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    landscape = Slope().start(None)  # type: ignore[arg-type] # it needs no chance
    clock = iter(np.arange(0.0, 1e4, 1.0).tolist())
    monkeypatch.setattr("sparq_sim.report.place.ground.monotonic", lambda: next(clock))
    world = look_around(landscape, np.arange(1.0, 401.0), seconds=40.0)
    assert len(world.times) == 30
    assert np.ptp(np.diff(world.times)) <= 2
    with pytest.raises(SparqError, match="take longer than 3 s"):
        look_around(landscape, np.arange(1.0, 401.0), seconds=3.0)


def test_where_the_best_is_not_known_dots_are_coloured_by_reward(steered: Results) -> None:
    pictures = read_places(steered, [play.setting for play in steered.finished()][:1])
    paint = pictures[0].paint
    assert paint.word == "reward"
    assert paint.good > paint.bad
    assert any(np.isnan(row.values).any() for row in pictures[0].rows)
    assert pictures[0].ground is None


def test_of_plays_that_differ_in_knowing_the_best_all_are_coloured_by_reward(
    tmp_path: Path,
) -> None:
    pictures = read_places(steer_and_simulate(tmp_path), [{}])
    assert pictures[0].paint.word == "reward"


def test_a_play_that_ended_early_says_so(tmp_path: Path) -> None:
    experts = {"sage": {"kind": "truth", "channel": {"cost": 1.0}}}
    asking = {
        "kind": "sparq-gp-ucb",
        "kernel": {"kind": "squared-exponential", "length_scale": 0.3},
    }
    study = played(
        tmp_path,
        experts=experts,
        optimizers={"asking": asking, "random": Uniform()},
        budget=5.0,
        ends_when_spent=True,
    )
    (picture,) = pictured(study)
    told = {row.title: row.words for row in picture.rows}
    assert " Its play ended in round " in told["asking"]
    assert "ended" not in told["random"]


def test_a_replication_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(SparqError, match="no finished play has replication 7; there are: 0, 1, 2"):
        pictured(played(tmp_path), replication=7)


# For print


@pytest.mark.parametrize("width", [3.4, 6.8])
def test_a_figure_has_a_row_per_optimizer_and_a_dot_per_round(tmp_path: Path, width: float) -> None:
    figure = draw(played(tmp_path), "place", width=width, allow_import=True)
    assert figure.get_figwidth() == width
    rows, scales = figure.axes[:2], figure.axes[2:]
    assert {axes.get_title(loc="left") for axes in rows} == {"random", "fixed"}
    for axes in rows:
        assert sum(np.ma.count(dots.get_offsets()) for dots in axes.collections[1:]) == 40
    assert [" ".join(axes.get_xlabel().split()) for axes in scales] == [
        "regret of the round, up to that of random points",
        "true reward",
    ]


@pytest.mark.parametrize("place", ["square", "sites"])
def test_a_figure_is_the_same_bytes_every_time(tmp_path: Path, place: Any) -> None:
    optimizers = {"random": Uniform()}
    study = played(tmp_path / "study", environment=Slope(place=place), optimizers=optimizers)
    files = [tmp_path / "one.svg", tmp_path / "other.svg"]
    for file in files:
        save(study, "place", file, replication=2, allow_import=True)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert "time (clock units)" in files[0].read_text()


def test_a_figure_shows_what_nobody_observed(steered: Results, tmp_path: Path) -> None:
    assert save(steered, "place", tmp_path / "plant.pdf").stat().st_size > 5000
    assert "place" in kinds(steered)


def test_a_figure_of_places_is_of_a_study_and_only_it_is_of_a_replication(tmp_path: Path) -> None:
    study = played(tmp_path)
    with pytest.raises(SparqError, match="a figure 'place' is drawn of a study"):
        draw(gather(study, replays=False).charts, "place")
    with pytest.raises(SparqError, match="shows all replications; leave out replication 1"):
        draw(study, "average-regret", replication=1)
    with pytest.raises(SparqError, match="no finished play has replication 9"):
        draw(study, "place", replication=9)


# What the page is given


def test_a_study_without_a_play_has_no_picture(tmp_path: Path) -> None:
    study = Study(Scenario.load("synthetic"), tmp_path).results
    data = gather(study, replays=False, places=True)
    assert data.places == ()
    assert 'id="place"' not in render(data)


def test_twelve_plays_of_thousands_of_rounds_take_a_few_hundred_kilobytes(tmp_path: Path) -> None:
    (picture,) = pictured(played(tmp_path, rounds=2500, replications=1))
    (row, *_) = picture.rows
    assert len(row.rounds) == 2000
    assert (row.rounds[0], row.rounds[-1], row.total) == (1, 2500, 2500)
    packed = pack_places([replace(picture, rows=[row] * 12)])
    assert len(json.dumps(packed)) < 600_000


def test_the_most_telling_picture_is_that_of_the_rows_furthest_apart(tmp_path: Path) -> None:
    (picture,) = pictured(played(tmp_path))
    dull = replace(picture, rows=picture.rows[:1])
    assert find_most_telling([dull, picture, dull]) == 1
    assert find_most_telling([]) == 0


def test_small_regrets_are_told_apart() -> None:
    shares = shade(np.array([-1.0, 0.0, 0.25, 1.0, 9.0, np.nan]), Paint("regret", 0.0, 1.0))
    assert_allclose(shares, [0.0, 0.0, 0.5, 1.0, 1.0, np.nan])
    assert_allclose(shade(np.array([5.0, 1.0]), Paint("reward", 5.0, 1.0)), [0.0, 1.0])
    assert_allclose(shade(np.array([2.0]), Paint("regret", 2.0, 2.0)), [0.0])


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as WCAG 2 defines it."""
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def read_colours(theme: str) -> dict[str, list[str]]:
    """Return the colours of ground and regrets on a page, from low to high."""
    style = (TEMPLATES / "place.css").read_text().split("@media screen")[theme == "dark"]
    return {
        name: re.findall(rf"--{name}-\d: (#\w{{6}});", style)[:5] for name in ("ground", "regret")
    }


def test_print_has_the_colours_of_the_light_page() -> None:
    assert read_colours("light") == {"ground": list(GROUND), "regret": list(BADNESS)}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_dots_that_follow_and_dots_that_fail_stand_out_from_all_of_the_ground(theme: str) -> None:
    colours = read_colours(theme)
    assert [len(each) for each in colours.values()] == [5, 5]
    for ground in colours["ground"]:
        for dot in colours["regret"]:
            dark, light = sorted([luminance(ground), luminance(dot)])
            assert (light + 0.05) / (dark + 0.05) >= 3.0
    steps = np.diff([luminance(colour) for colour in colours["ground"]])
    assert (steps < 0).all() or (steps > 0).all()
