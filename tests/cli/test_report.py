"""`report`, `plot` and `export` write files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sparq_sim.cli.main import app
from tests.cli.invoking import ends_with, runner, said
from tests.plants import steer


def test_a_report_is_written_where_it_is_asked_for(folder: Path, tmp_path: Path) -> None:
    to = tmp_path / "page.html"
    assert runner.invoke(app, ["report", str(folder), "-o", str(to)]).output == f"{to}\n"
    assert to.is_file()


def test_a_report_of_no_study_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "there is no finished play" in said(capsys, "report", str(tmp_path))


def test_a_film_of_no_play_is_refused_before_anything_is_computed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "page.html"
    for more, reason in (
        (["--film", "nobody,3"], "no optimizer is called so"),
        (["--film", "0123456789"], "no key begins so"),
        (["--film", "sparq", "--no-replays"], "give one of them"),
    ):
        assert reason in said(capsys, "report", str(folder), "-o", str(to), *more)
        assert not to.exists()


def test_a_figure_is_drawn_of_one_value_of_a_sweep(folder: Path, tmp_path: Path) -> None:
    for where in ("transit=2", "experts.expert.channel.transit=2.0"):
        to = tmp_path / "regret.svg"
        told = runner.invoke(
            app, ["plot", str(folder), "average-regret", "-o", str(to), "--where", where]
        )
        assert told.output == f"{to}\n"
        assert to.read_text(encoding="utf-8").startswith("<?xml")


def test_a_figure_that_cannot_be_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = str(tmp_path / "regret.svg")
    for kind, where, reason in (
        ("averge-regret", "transit=2", "did you mean 'average-regret'?"),
        ("average-regret", "transit=3", "3"),
        ("average-regret", "transit", "expected FIELD=VALUE"),
    ):
        assert reason in said(capsys, "plot", str(folder), kind, "-o", to, "--where", where)


def test_shares_that_nobody_noted_end_with_the_reason(folder: Path, tmp_path: Path) -> None:
    to = tmp_path / "shares.svg"
    told = ends_with(2, "plot", str(folder), "shares", "-o", str(to))
    assert "no optimizer noted parts of a whole" in told
    assert not to.exists()


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_a_study_is_exported(study: Path, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"table.{ending}"
    result = runner.invoke(app, ["export", str(study), str(file), "--what", "rounds"])
    assert result.exit_code == 0, result.output
    assert file.stat().st_size > 1000


def test_the_timeline_of_the_play_that_is_named_is_exported(study: Path, tmp_path: Path) -> None:
    file = tmp_path / "play.json"
    asked = ["export", str(study), str(file), "--what", "timeline"]
    told = ends_with(2, *asked)
    key = re.search(r"add --play, such as (\w{8}), which is (.+)", told)
    assert key is not None
    done = runner.invoke(app, [*asked, "--play", key[1]])
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"{file}: {key[2]}")
    assert json.loads(file.read_text())["otherData"]["play"] == key[2]
    assert "no key begins so" in ends_with(2, *asked, "--play", "nobody")
    assert "add --what timeline" in ends_with(2, *asked[:3], "--play", key[1])


def test_an_export_to_no_folder_is_refused(study: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "none" / "a.csv")
    assert f"cannot write {file}: No such file" in ends_with(2, "export", str(study), file)


def test_files_of_a_study_without_a_known_best_say_so(tmp_path: Path) -> None:
    folder, out = tmp_path / "study", tmp_path / "out"
    steer(folder, replications=2)
    out.mkdir()
    for asked, words in (([], "so there is no regret"), (["--against", "best-seen"], "best seen")):
        for command in (
            ["plot", str(folder), "cost", "-o", str(out / "cost.svg")],
            ["export", str(folder), str(out / "rounds.csv"), "--what", "rounds"],
        ):
            told = runner.invoke(app, [*command, *asked])
            assert told.exit_code == 0, told.output
            assert words in told.output
        made = runner.invoke(app, ["report", str(folder), "-o", str(out / "x.html"), *asked])
        assert made.exit_code == 0
        assert words in (out / "x.html").read_text()
    assert "regret_to_best_seen" in (out / "rounds.csv").read_text()


def test_another_word_than_best_seen_is_refused(study: Path) -> None:
    told = runner.invoke(app, ["report", str(study), "--against", "worst"])
    assert "expected best-seen" in str(told.exception)


def test_what_a_chart_shows_is_exported(study: Path, tmp_path: Path) -> None:
    file = tmp_path / "curve.csv"
    ends_with(0, "export", str(study), str(file), "--what", "chart:average-regret")
    assert file.read_text().startswith('"chart","optimizer","play","x","y","low","high"\n')
    told = ends_with(2, "export", str(study), str(file), "--what", "chart:heat")
    assert "there is no table of a chart 'heat'" in told


def test_a_figure_takes_wishes_for_its_axis_and_optimizers(study: Path, tmp_path: Path) -> None:
    command = ("plot", str(study), "average-regret", "-o", str(tmp_path / "a.svg"))
    ends_with(0, *command, "--only", "uniform, sparq-gp-ucb", "--log", "--ylim", "0.1,2")
    assert "tv-gp-ucb" not in (tmp_path / "a.svg").read_text()
    for limits in ("2,0.1", "1", "a,b", "0,inf"):
        assert f"--ylim {limits}: expected LOW,HIGH" in ends_with(2, *command, "--ylim", limits)
