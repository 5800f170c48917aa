"""Figures of one play for print: what is drawn of a belief and of a timeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.patches import Rectangle
from numpy.testing import assert_allclose

from sparq_sim import Scenario, Study
from sparq_sim.errors import SparqError
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.report.print import PlayView, draw, save
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.testing import Slope
from tests.report.test_replay import GIVEN, Cube
from tests.report.test_trace_events import run


def played(folder: Path, **fields: Any) -> Results:
    chosen: dict[str, Any] = {"environment": Slope(), "rounds": 12, "replications": 2}
    chosen["optimizers"] = {"gp": GPUCB(**GIVEN)}
    study = Study(Scenario(**(chosen | fields)), folder)
    study.run(InProcess())
    return study.results


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return played(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(tmp_path_factory.mktemp("asked"), "rounds")


def view(*of: Any) -> dict[str, Any]:
    return {"view": PlayView(*of), "allow_import": True}


def test_a_belief_in_one_dimension_has_the_mean_and_bound_of_its_round(results: Results) -> None:
    (axes,) = draw(results, "belief", **view("gp,1", 8)).axes
    lines: dict[Any, Any] = {line.get_label(): line for line in axes.lines}
    places = np.asarray(lines["posterior mean"].get_xdata(), dtype=float)
    play = next(each for each in results.finished() if each.replication == 1)
    trace = results.read(play.key).trace
    belief = trace.belief_at(8, places[:, None], allow_import=True)
    assert_allclose(lines["posterior mean"].get_ydata(), belief.mean)
    bound = belief.mean + belief.width * belief.std
    assert_allclose(lines["upper confidence bound"].get_ydata(), bound)
    assert lines["played"].get_xdata()[0] == trace.points[7, 0]
    (known,) = (each for each in axes.collections if isinstance(each, PathCollection))
    faintness = np.asarray(known.get_facecolor())[:, 3]
    assert len(faintness) == 7
    assert (np.diff(faintness) > 0).all()  # What is newer is drawn last, and stronger.


def test_a_figure_of_a_play_is_the_same_bytes_every_time(results: Results, tmp_path: Path) -> None:
    for kind in ("belief", "timeline"):
        first, second = (
            save(results, kind, tmp_path / f"{name}.svg", allow_import=True).read_bytes()
            for name in "ab"
        )
        assert first == second


@pytest.mark.parametrize("place", ["square", "sites"])
def test_a_belief_in_a_plane_has_four_panels(tmp_path: Path, place: Any) -> None:
    study = played(tmp_path, environment=Slope(place=place), rounds=5, replications=1)
    figure = draw(study, "belief", **view("", 4))
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == ["true reward", "posterior mean", "std", "upper confidence bound"]


def test_a_timeline_shows_phases_and_declared_outages_of_its_part(asked: Results) -> None:
    (axes,) = draw(asked, "timeline", **view("asker", None, 0.0, 10.0)).axes
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert names == ["reward", "gauges", "sage"]
    (outage,) = (each for each in axes.patches if isinstance(each, Rectangle))
    assert (outage.get_x(), outage.get_width()) == (3.0, 2.0)
    play = asked.finished()[0]
    trace = asked.read(play.key).trace
    assert "source" not in trace.replies  # They were not recorded: it is played again.
    phases = {str(each.get_label()) for each in axes.collections}
    assert {"waiting", "service", "transit"} <= phases
    bars = [each for each in axes.collections if isinstance(each, LineCollection)]
    assert all(len(each.get_segments()) for each in bars)


def test_the_round_of_a_timeline_is_in_its_middle(asked: Results) -> None:
    (axes,) = draw(asked, "timeline", **view("asker", 8)).axes
    begin, end = axes.get_xlim()
    now = asked.read(asked.finished()[0].key).trace.rounds["played_at"][7]
    assert begin < now < end
    assert any(text.get_text().startswith("round 8,") for text in axes.texts)


@pytest.mark.parametrize(
    ("kind", "of", "told"),
    [
        ("belief", ("nobody",), "play 'nobody': no key begins so"),
        ("belief", ("gp,1", 13), "there is no round 13 in gp, seed 0, replication 1; it has round"),
        ("belief", ("", None, 2.0), "a belief is of one round; name it by --round"),
        ("timeline", ("", None, 5.0, 5.0), "--from must be before --to"),
        ("timeline", ("", None, float("nan")), "--from nan: expected a time in clock units"),
        ("timeline", ("", None, 90.0, 99.0), "nothing happened from 90 to 99; the play lasted"),
        ("cost", ("gp",), "a figure 'cost' is not of one play; leave out --play"),
    ],
)
def test_what_cannot_be_drawn_of_a_play_is_told(
    results: Results, kind: str, of: tuple[Any, ...], told: str
) -> None:
    with pytest.raises(SparqError, match=told):
        draw(results, kind, **view(*of))


def test_what_has_no_belief_or_too_many_coordinates_is_told(tmp_path: Path) -> None:
    plain = played(tmp_path / "plain", optimizers={"random": Uniform()})
    with pytest.raises(SparqError, match="optimizer 'random' has no belief"):
        draw(plain, "belief", allow_import=True)
    cube = played(tmp_path / "cube", environment=Cube(), rounds=3)
    with pytest.raises(SparqError, match="over 3 coordinates cannot be drawn; for its numbers"):
        draw(cube, "belief", allow_import=True)
