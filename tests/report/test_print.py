from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import rc_context, rcParams
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from sparq_sim import SparqError
from sparq_sim.analysis.curves import bands
from sparq_sim.analysis.intervals import bound_positive
from sparq_sim.analysis.levels import compute_levels
from sparq_sim.analysis.summary import summary
from sparq_sim.report.data import ChartData
from sparq_sim.report.gather import gather
from sparq_sim.report.print import KINDS, SUFFIXES, Axis, draw, kinds, save
from sparq_sim.report.print.marks import find_look
from sparq_sim.study.results import Results
from sparq_sim.study.store import StoredSummary
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker
from tests.analysis.test_cautions import Beacon
from tests.plants import Plant, steer
from tests.report.conftest import played, scenario, with_six_plays

LOSS, NOISE = "experts.sage.channel.loss", "feedback.noise"
HOSTILE = "</text><script>alert(1)</script> $x^{ \x00\n_&"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two optimizers, two losses, two noises, two replications, thirty rounds."""
    return played(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def material(study: Results) -> ChartData:
    return gather(study, replays=False).charts


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> ChartData:
    """One optimizer that asks nobody, one setting, one replication."""
    study = played(
        tmp_path_factory.mktemp("plain"),
        sweep={},
        experts={},
        replications=1,
        optimizers={"careless": {"kind": "uniform"}},
        record="rounds",
    )
    return gather(study, replays=False).charts


def changed(thing: Any, **fields: Any) -> Any:
    """Change the setting or the optimizer of what is known of a play, or of a band."""
    if isinstance(thing, StoredSummary):
        return replace(thing, play=replace(thing.play, **fields))
    return replace(thing, **fields)


def line(axes: Axes, label: str) -> Line2D:
    (found,) = [each for each in axes.get_lines() if each.get_label() == label]
    return found


def curve(axes: Axes, label: str) -> NDArray[np.float64]:
    """Give the points of a line: (n, 2)."""
    return np.asarray(line(axes, label).get_xydata(), dtype=float)


def hue(shade: Any) -> str:
    return to_hex(shade.get_facecolor()[0])


def texts(figure: Figure) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def panel(figure: Figure, title: str) -> Axes:
    (found,) = [axes for axes in figure.axes if axes.get_title() == title]
    return found


def title(setting: Mapping[str, object]) -> str:
    return f"loss {setting[LOSS]:g}, noise {setting[NOISE]:g}"


def regret(material: ChartData, optimizer: str, setting: Mapping[str, object]) -> float:
    """Give the mean of the average regrets of all plays in settings like this one."""
    return float(
        np.mean(
            [
                found.measures["average_regret"]
                for found in material.found
                if found.optimizer == optimizer and setting.items() <= found.setting.items()
            ]
        )
    )


# What is drawn

RARE = ("retries", "pushed")
WITHOUT_BEST = ("mean-reward", "reward")
OF_PLAYS = ("shares", "place", "belief", "timeline", "network")
ORDINARY = [kind for kind in KINDS if kind not in (*RARE, *WITHOUT_BEST, *OF_PLAYS)]


def test_a_study_has_all_kinds_and_what_was_noted(material: ChartData) -> None:
    assert {*ORDINARY, "kl_bound"} <= {*kinds(material)}


@pytest.mark.parametrize("kind", [*ORDINARY, "kl_bound"])
def test_every_kind_is_drawn(material: ChartData, kind: str, tmp_path: Path) -> None:
    assert save(material, kind, tmp_path / "figure.svg").stat().st_size > 5000


@pytest.mark.parametrize("kind", RARE)
def test_retries_and_readings_sent_unasked_are_drawn_where_there_are_any(
    kind: str, tmp_path: Path
) -> None:
    flaky = {"loss": 0.5, "patience": 1.0, "policy": {"retries": 3}}
    experts = {"sage": {"kind": "truth", "channel": flaky}, "beacon": Beacon()}
    optimizers = {"asker": Asker(batch=1)}
    study = played(tmp_path, experts=experts, optimizers=optimizers, sweep={})
    assert save(study, kind, tmp_path / "figure.svg").stat().st_size > 5000


def test_an_unknown_kind_is_answered_with_each_kind_once(material: ChartData) -> None:
    with pytest.raises(SparqError) as refused:
        draw(material, "nonsense")
    listed = str(refused.value).partition("there are: ")[2].split(", ")
    assert len(listed) == len(set(listed))
    assert {*KINDS, "kl_bound"} <= set(listed)


def test_a_study_is_drawn_as_what_was_gathered_of_it(study: Results, material: ChartData) -> None:
    drawn, again = (
        draw(each, "average-regret", where={LOSS: 0, NOISE: 0.1}) for each in (study, material)
    )
    for name in ("careless", "curious"):
        assert np.array_equal(curve(drawn.axes[0], name), curve(again.axes[0], name))


@pytest.mark.parametrize("quantity", ["average_regret", "cumulative_regret"])
def test_regret_curves_and_their_bands_are_those_of_the_analysis(
    study: Results, material: ChartData, quantity: Any
) -> None:
    figure = draw(with_six_plays(material), quantity.replace("_", "-"))
    for band in bands(study, quantity):
        axes = panel(figure, title(band.setting))
        assert np.allclose(curve(axes, band.optimizer), np.c_[band.rounds, band.mean])
        colour = line(axes, band.optimizer).get_color()
        (shade,) = [
            each
            for each in axes.collections
            if isinstance(each, PolyCollection) and hue(each) == colour
        ]
        (path,) = shade.get_paths()
        edges = {tuple(np.round(point, 6)) for point in np.asarray(path.vertices)}
        for heights in bound_positive(band.mean, band.high - band.mean):
            assert edges >= {(t, round(y, 6)) for t, y in zip(band.rounds, heights, strict=True)}


def test_fewer_than_five_plays_are_thin_lines(material: ChartData) -> None:
    figure = draw(material, "average-regret")
    for setting in material.settings:
        axes = panel(figure, title(setting))
        assert not axes.collections
        thin = [each for each in axes.get_lines() if each.get_linewidth() < 0.5]
        assert len(thin) == 2 * len(material.optimizers)


def test_the_axis_fits_the_curves_and_names_levels_beyond_it(material: ChartData) -> None:
    far = [(setting, replace(level, uniform=1e6)) for setting, level in material.levels]
    axes = draw(replace(material, levels=far), "average-regret").axes[0]
    assert axes.get_ylim() == draw(material, "average-regret").axes[0].get_ylim()
    assert any(
        text.get_text().startswith("\N{UPWARDS ARROW} ") and "1e+06" in text.get_text()
        for text in axes.texts
    )


def test_reference_levels_are_dashed_lines_in_every_figure_of_regret(material: ChartData) -> None:
    (_, level), *_ = compute_levels(scenario())
    wanted = {
        "uniform, expected": level.uniform,
        "best fixed point": level.fixed,
        "one round late": level.late,
    }
    for kind in ("average-regret", "cumulative-regret", "cost", "sweep"):
        for axes in draw(material, kind).axes:
            for name, height in wanted.items():
                steps = 30 if kind == "cumulative-regret" else 1
                assert curve(axes, name)[-1, 1] == pytest.approx(steps * height)
                assert line(axes, name).get_linestyle() != "-"


def test_the_cost_figure_shows_each_optimizer_in_each_setting(
    study: Results, material: ChartData
) -> None:
    (axes,) = draw(material, "cost").axes
    for name in ("careless", "curious"):
        (marks,) = [each for each in axes.containers if each.get_label() == name]
        assert isinstance(marks, ErrorbarContainer)
        rows = [each for each in summary(study) if each.optimizer == name]
        wanted = [(each.spent.mean, each.average_regret.mean) for each in rows]
        drawn = np.asarray(marks.lines[0].get_xydata(), dtype=float)
        assert np.allclose(np.sort(drawn, axis=0), np.sort(wanted, axis=0))


def test_nobody_is_below_and_left_of_the_front(study: Results, material: ChartData) -> None:
    front = curve(draw(material, "cost").axes[0], "Pareto front")
    rows = [(each.spent.mean, each.average_regret.mean) for each in summary(study)]
    for spent, height in rows:
        assert not any(spent < x and height < y for x, y in front)
    assert {tuple(point) for point in front[:-1]} <= set(rows)


def test_a_sweep_shows_the_means_of_all_plays_at_each_value(material: ChartData) -> None:
    figure = draw(material, "sweep")
    for axes, path in zip(figure.axes, (LOSS, NOISE), strict=True):
        assert axes.get_xlabel() == path.rpartition(".")[2]
        for name in ("careless", "curious"):
            for value, height in curve(axes, name):
                assert height == pytest.approx(regret(material, name, {path: value}))


def test_a_heat_map_shows_the_mean_of_the_plays_of_each_cell(material: ChartData) -> None:
    figure = draw(material, "heat-map")
    for name in ("careless", "curious"):
        (mesh,) = [c for c in panel(figure, name).collections if isinstance(c, QuadMesh)]
        wanted = [
            [regret(material, name, {LOSS: x, NOISE: y}) for x in (0, 0.4)] for y in (0.1, 0.3)
        ]
        assert np.allclose(np.reshape(np.asarray(mesh.get_array()), (2, 2)), wanted)


def test_queries_are_those_of_the_summary(study: Results, material: ChartData) -> None:
    figure = draw(material, "asked")
    for row in summary(study):
        if row.optimizer == "curious":
            asked = curve(panel(figure, title(row.setting)), "curious")[:, 1]
            assert asked.mean() == pytest.approx(row.asked_per_round)


def test_answers_are_as_stale_as_their_transit_is_long(material: ChartData) -> None:
    for axes in draw(material, "staleness").axes:
        assert np.allclose(curve(axes, "curious")[:, 1], 1.5)


def test_optimizers_that_note_their_queries_need_no_replies(material: ChartData) -> None:
    series = [replace(s, name="note queries") for s in material.series if s.name == "asked"]
    assert draw(replace(material, series=series), "asked").axes[0].get_lines()


def test_a_note_never_takes_the_place_of_another_kind(material: ChartData) -> None:
    (first, *_) = material.series
    noted = replace(material, series=[*material.series, replace(first, name="note cost")])
    assert draw(noted, "cost").axes[0].get_ylabel() == "average regret"
    assert draw(noted, "note cost").axes[0].get_ylabel() == "cost"


def test_one_replication_has_no_band(plain: ChartData) -> None:
    (axes,) = draw(plain, "average-regret").axes
    assert not axes.collections
    assert len(curve(axes, "careless")) == 30


def test_lines_are_drawn_besides(material: ChartData) -> None:
    bound = 3 / np.sqrt(np.arange(1, 31))
    figure = draw(material, "average-regret", lines={"bound": bound, "goal": 0.2})
    for axes in figure.axes:
        assert np.array_equal(curve(axes, "bound"), np.c_[np.arange(1, 31), bound])
        assert np.array_equal(curve(axes, "goal"), [[1, 0.2], [30, 0.2]])
    assert texts(figure)[-2:] == ["bound", "goal"]


def test_a_line_may_have_the_name_of_an_optimizer(plain: ChartData) -> None:
    assert texts(draw(plain, "average-regret", lines={"careless": 1.0})).count("careless") == 2


# Of a sweep


def test_settings_are_in_the_order_of_their_values(material: ChartData) -> None:
    tenfold = {0.0: 2.0, 0.4: 10.0}

    def moved(each: Any) -> Any:
        return changed(each, setting={"loss": tenfold[each.setting[LOSS]]})

    swept = replace(
        material,
        found=[moved(each) for each in material.found],
        bands=[moved(each) for each in material.bands],
    )
    titles = [axes.get_title() for axes in draw(swept, "average-regret").axes]
    assert titles == ["loss 2", "loss 10"]


@pytest.mark.parametrize("where", [{LOSS: 0.0}, {"loss": 0}])
def test_a_figure_may_be_of_some_settings(material: ChartData, where: dict[str, object]) -> None:
    titles = [axes.get_title() for axes in draw(material, "average-regret", where=where).axes]
    assert titles == ["noise 0.1", "noise 0.3"]
    (axes,) = draw(material, "sweep", where=where).axes
    for value, height in curve(axes, "curious"):
        assert height == pytest.approx(regret(material, "curious", {LOSS: 0.0, NOISE: value}))


@pytest.mark.parametrize(
    ("values", "scale", "places"),
    [
        ((0.0, 2.0), "linear", [0.0, 2.0]),
        ((0.001, 1.0), "log", [0.001, 1.0]),
        (("fast", "slow"), "linear", [0.0, 1.0]),
    ],
)
def test_swept_values_lie_where_they_can_be_told_apart(
    material: ChartData, values: tuple[Any, Any], scale: str, places: list[float]
) -> None:
    new: dict[object, Any] = dict(zip((0.0, 0.4), values, strict=True))
    found = [changed(each, setting={"speed": new[each.setting[LOSS]]}) for each in material.found]
    (axes,) = draw(replace(material, found=found), "sweep").axes
    assert axes.get_xscale() == scale
    assert list(curve(axes, "curious")[:, 0]) == places
    if isinstance(values[0], str):
        assert [text.get_text() for text in axes.get_xticklabels()] == list(values)


# How it looks


def test_more_optimizers_than_colours_look_different() -> None:
    names = [f"optimizer {i}" for i in range(32)]
    many = ChartData(optimizers=names)
    assert len({repr(find_look(many, name)) for name in names}) == 32


def test_a_title_that_is_wider_than_its_panel_has_several_lines(material: ChartData) -> None:
    names = {"experts.sage.channel.loss": "experts.sage.the_share_of_answers_lost"}
    renamed = [
        changed(each, setting={names.get(path, path): v for path, v in each.setting.items()})
        for each in material.found
    ]
    bands = [
        replace(each, setting={names.get(path, path): v for path, v in each.setting.items()})
        for each in material.bands
    ]
    figure = draw(replace(material, found=renamed, bands=bands), "average-regret")
    assert figure.axes[0].get_title() == "the_share_of_answers_lost 0,\nnoise 0.1"


def test_a_figure_is_as_wide_as_wanted(material: ChartData) -> None:
    assert draw(material, "sweep").get_figwidth() == 3.4
    assert draw(material, "sweep", width=7.0).get_figwidth() == 7.0


def test_the_style_of_a_user_neither_shows_nor_changes(plain: ChartData, tmp_path: Path) -> None:
    ours = save(plain, "average-regret", tmp_path / "ours.png").read_bytes()
    loud: dict[Any, Any] = {
        "font.size": 20,
        "xtick.labelsize": 19,
        "axes.spines.top": True,
        "lines.linewidth": 9,
    }
    with rc_context(loud):
        assert save(plain, "average-regret", tmp_path / "theirs.png").read_bytes() == ours
        assert all(rcParams[name] == value for name, value in loud.items())


def test_a_figure_shown_elsewhere_looks_as_when_saved(material: ChartData, tmp_path: Path) -> None:
    saved = save(material, "sweep", tmp_path / "saved.png").read_bytes()
    with rc_context({"font.size": 20, "xtick.labelsize": 19, "xtick.major.size": 9}):
        draw(material, "sweep").savefig(tmp_path / "shown.png", dpi=300)
    assert (tmp_path / "shown.png").read_bytes() == saved


def test_names_are_shown_as_they_are(material: ChartData, tmp_path: Path) -> None:
    names = {"careless": f"{HOSTILE} one", "curious": "_two $ and $"}

    def renamed(things: Any) -> Any:
        return [changed(each, optimizer=names[each.optimizer]) for each in things]

    hostile = replace(
        material,
        optimizers=list(names.values()),
        found=renamed(material.found),
        bands=renamed(material.bands),
    )
    drawn = ElementTree.parse(save(hostile, "average-regret", tmp_path / "figure.svg"))
    shown = {each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert {"</text><script>alert(1)</script> $x^{ \ufffd _& one", "_two $ and $"} <= shown
    assert not [each for each in drawn.iter() if each.tag.endswith("script")]


# Files


def test_a_pdf_has_truetype_fonts_and_no_date(plain: ChartData, tmp_path: Path) -> None:
    content = save(plain, "average-regret", tmp_path / "figure.PDF").read_bytes()
    assert content.startswith(b"%PDF-")
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    assert b"/CreationDate" not in content


def test_an_svg_keeps_text_as_text_and_no_date(plain: ChartData, tmp_path: Path) -> None:
    root = ElementTree.parse(save(plain, "average-regret", tmp_path / "figure.svg")).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    tags = {each.tag.rpartition("}")[2] for each in root.iter()}
    assert "text" in tags
    assert "date" not in tags


def test_a_png_has_300_dots_an_inch(plain: ChartData, tmp_path: Path) -> None:
    content = save(plain, "average-regret", tmp_path / "figure.png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(content[16:20], "big") == 3.4 * 300


ELSEWHERE = """
import hashlib, json, sys
from pathlib import Path
from sparq_sim.report import print as figures
from sparq_sim.report.gather import gather
from sparq_sim.study.results import Results
from sparq_sim.study.store import StoredSummary
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker
facts = {"before": "matplotlib" in sys.modules}
material = gather(Results.open(sys.argv[1]), replays=False).charts
for suffix in figures.SUFFIXES:
    file = figures.save(material, "cost", Path(sys.argv[2]) / f"figure{suffix}")
    facts[suffix] = hashlib.sha256(file.read_bytes()).hexdigest()
facts["pyplot"] = "matplotlib.pyplot" in sys.modules
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def elsewhere(study: Results, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Facts told by another process, which hashes otherwise."""
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(study.folder), str(tmp_path_factory.mktemp("it"))],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        check=True,
        text=True,
    )
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_another_process_makes_the_same_file(
    elsewhere: dict[str, Any], material: ChartData, suffix: str, tmp_path: Path
) -> None:
    here = save(material, "cost", tmp_path / f"figure{suffix}").read_bytes()
    assert elsewhere[suffix] == sha256(here).hexdigest()


def test_matplotlib_is_loaded_to_draw_and_pyplot_never(elsewhere: dict[str, Any]) -> None:
    assert (elsewhere["before"], elsewhere["pyplot"]) == (False, False)


# What cannot be drawn


@pytest.mark.parametrize(
    ("kind", "fields", "complaint"),
    [
        ("average-regert", {}, "did you mean 'average-regret'"),
        ("kl-bound", {}, "did you mean 'kl_bound'"),
        ("cost", {"width": 0.5}, "from 1 to 30 inches wide, not 0.5"),
        ("cost", {"width": float("nan")}, "from 1 to 30 inches wide, not nan"),
        ("cost", {"lines": {"bound": [1.0, 2.0]}}, "'bound' of a figure 'cost' must be a number"),
        ("spent", {"lines": {"bound": []}}, "must be a number, or one a round"),
        ("heat-map", {"lines": {"bound": 1.0}}, "no place for the line 'bound'"),
        ("sweep", {"where": {"los": 0}}, "'los' is not swept"),
        ("sweep", {"where": {"loss": 7}}, "was never 7; there are: 0, 0.4"),
        ("sweep", {"where": {"loss": 0, "noise": 0.1}}, "nothing is swept"),
        ("heat-map", {"where": {"loss": 0}}, "sweeps two parameters"),
    ],
)
def test_what_is_wrong_is_said(
    material: ChartData, kind: str, fields: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(SparqError, match=complaint):
        draw(material, kind, **fields)


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        ("cost", "nothing was spent"),
        ("spent", "nothing was spent"),
        ("sweep", "nothing is swept"),
        ("heat-map", "sweeps two parameters"),
        ("staleness", "record = 'full'"),
        ("asked", "no expert was asked"),
    ],
)
def test_what_a_study_does_not_know_is_said(plain: ChartData, kind: str, complaint: str) -> None:
    assert kind not in kinds(plain)
    with pytest.raises(SparqError, match=complaint):
        draw(plain, kind)


def test_a_name_that_two_parameters_share_is_refused(material: ChartData) -> None:
    found = [changed(each, setting={"a.x": 1, "b.x": 2}) for each in material.found]
    with pytest.raises(SparqError, match=r"'x' may be any of a\.x, b\.x"):
        draw(replace(material, found=found), "sweep", where={"x": 1})


def test_too_many_panels_are_refused(material: ChartData) -> None:
    settings = [{"loss": float(i)} for i in range(13)]
    found = [changed(material.found[0], setting=setting) for setting in settings]
    with pytest.raises(SparqError, match="13 panels are too many"):
        draw(replace(material, found=found), "average-regret")


def test_an_unplayed_study_has_no_figures(tmp_path: Path) -> None:
    with pytest.raises(SparqError, match="no finished play"):
        draw(Study(scenario(), tmp_path).results, "cost")


@pytest.mark.parametrize("name", ["figure", "figure.jpg", "figure.html"])
def test_a_file_that_ends_otherwise_is_refused(plain: ChartData, name: str, tmp_path: Path) -> None:
    with pytest.raises(SparqError, match=r"end it in \.pdf, \.svg, \.png"):
        save(plain, "average-regret", tmp_path / name)


def test_a_missing_folder_is_named(plain: ChartData, tmp_path: Path) -> None:
    with pytest.raises(SparqError, match=r"there is no folder '.*nowhere'"):
        save(plain, "average-regret", tmp_path / "nowhere" / "figure.pdf")


def test_without_matplotlib_the_extra_is_named(
    plain: ChartData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SparqError, match=r"pip install 'sparq-sim\[plots\]'"):
        draw(plain, "average-regret")


# Where the best reward is not known


@pytest.mark.parametrize("kind", ["mean-reward", "reward", "cost", "sweep", "heat-map", "spent"])
def test_rewards_are_drawn_in_place_of_regret(steered: Results, kind: str) -> None:
    data = gather(steered, replays=False).charts
    assert kind in kinds(data)
    figure = draw(data, kind, width=7)
    labels = {axes.get_ylabel() for axes in figure.axes}
    assert not any("regret" in label for label in labels)
    if kind not in ("heat-map", "spent"):
        assert figure.axes[0].get_ylim()[0] < -1  # The yield of the plant is negative.


def test_kinds_of_regret_are_refused_with_a_remedy(steered: Results) -> None:
    data = gather(steered, replays=False).charts
    assert "average-regret" not in kinds(data)
    with pytest.raises(SparqError, match="draw mean-reward or reward"):
        draw(data, "average-regret")


@pytest.mark.parametrize("kind", WITHOUT_BEST)
def test_kinds_of_rewards_are_refused_where_the_best_is_known(
    material: ChartData, kind: str
) -> None:
    with pytest.raises(SparqError, match="the best reward is known here"):
        draw(material, kind)


def test_regret_against_the_best_seen_is_drawn_on_request(steered: Results) -> None:
    figure = draw(steered, "average-regret", best_seen=True)
    assert figure.axes[0].get_ylabel() == "average regret against the best seen"
    assert "cumulative-regret" in kinds(steered, best_seen=True)


def test_without_any_reward_there_is_no_figure_of_it(tmp_path: Path) -> None:
    silent = steer(tmp_path, environment=Plant(silent=2.0), replications=1)
    assert kinds(silent)[:2] == ["fates", "spent"]
    for kind in ("mean-reward", "reward", "cost", "sweep"):
        with pytest.raises(SparqError, match="no reward was observed"):
            draw(silent, kind)


def test_only_some_optimizers_are_drawn_in_the_colours_that_they_have(
    material: ChartData,
) -> None:
    first, *_, last = material.optimizers
    whole = draw(material, "average-regret").axes[0]
    part = draw(material, "average-regret", only=[last]).axes[0]
    assert line(part, last).get_color() == line(whole, last).get_color()
    assert first not in {each.get_label() for each in part.lines}
    with pytest.raises(SparqError, match="no optimizer is called 'nobody'"):
        draw(material, "average-regret", only=["nobody"])


@pytest.mark.parametrize("kind", ["average-regret", "sweep", "asked"])
def test_an_axis_is_as_it_was_asked_for(material: ChartData, kind: str) -> None:
    for axes in draw(material, kind, axis=Axis(logarithmic=True)).axes:
        assert axes.get_yscale() == "log"
    limits = (0.25, 0.75)
    for axes in draw(material, kind, axis=Axis(logarithmic=True, limits=limits)).axes:
        assert axes.get_ylim() == pytest.approx(limits)
    for axes in draw(material, kind, axis=Axis(limits=limits)).axes:
        assert axes.get_ylim() == pytest.approx(limits)


def test_an_axis_that_cannot_be_is_refused(material: ChartData) -> None:
    with pytest.raises(SparqError, match="a logarithmic axis begins above 0, not at 0"):
        draw(material, "average-regret", axis=Axis(logarithmic=True, limits=(0, 1)))
    with pytest.raises(SparqError, match="has no axis that --log or --ylim could change"):
        draw(material, "shares", axis=Axis(logarithmic=True))
