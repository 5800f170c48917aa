from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator, Philox
from pydantic import ValidationError

from sparq_environments._file_rows import ReadingError
from sparq_environments.recorded import Recorded, RecordedLandscape
from sparq_experts.truth import Truth
from sparq_sim import Rules, play
from sparq_sim.messages import Move, Query, Reply
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Agent, Briefing, Optimizer
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.references import compute_references
from tests.environments.ozone import ozone_file

DAYS, SITES = 40, 5


def rng() -> Generator:
    return Generator(Philox(key=0))


def begin(file: Path, **changes: object) -> RecordedLandscape:
    return Recorded.model_validate({"files": str(file), **changes}).start(rng())


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A network whose values are known: whole numbers from 0 to 9, with two gaps on day 7."""
    file = tmp_path / "network.csv"
    rows = [
        f"{np.datetime64('2020-01-01') + day},s{site},{site},{-site},{value(day, site)}"
        for day in range(DAYS)
        for site in range(SITES)
        if (day, site) not in {(7, 0), (7, 3)}
    ]
    file.write_text("\n".join(["date,site,lat,lon,value", *rows]), encoding="utf-8")
    return file


def value(day: int, site: int) -> int:
    return (7 * day + 3 * site) % 10


# The record as a landscape


@pytest.mark.parametrize(("time", "day"), [(0.0, 0), (0.99, 0), (1.0, 1), (12.5, 12), (40.0, 39)])
def test_a_reward_is_the_value_of_the_day_that_has_begun(
    table: Path, time: float, day: int
) -> None:
    landscape = begin(table)
    rewards = landscape.rewards(landscape.domain.points, time)
    assert rewards.tolist() == [value(day, site) for site in range(SITES)]
    assert landscape.domain.site_names == ("s0", "s1", "s2", "s3", "s4")
    assert landscape.domain.names == ("lat", "lon")


@pytest.mark.parametrize("time", [40.01, 1e9, -1.0, float("nan")])
def test_beyond_its_end_the_record_is_silent_and_says_how_long_it_is(
    table: Path, time: float
) -> None:
    landscape = begin(table)
    told = r"40 steps and ends at time 40; .* Play at most 39 periods of 1"
    with pytest.raises(ReadingError, match=told):
        landscape.rewards(landscape.domain.points, time)
    with pytest.raises(ReadingError, match=told):
        landscape.best(time)


def test_a_record_of_n_days_serves_n_minus_1_rounds(table: Path) -> None:
    record = Recorded(files=(str(table),))
    assert len(play(Uniform(), record, Rules(rounds=DAYS - 1, design=3))) == DAYS - 1
    with pytest.raises(ReadingError, match="Play at most 39 periods"):
        play(Uniform(), record, Rules(rounds=DAYS + 1))


# Gaps


def test_filled_values_are_told_from_those_that_were_read(table: Path) -> None:
    landscape = begin(table)
    points = landscape.domain.points
    assert landscape.available(points, 7.5).tolist() == [False, True, True, False, True]
    assert landscape.available(points[::-1], 8.0).all()
    assert landscape.repairs == ("2 of 200 values (1.0 %) are gaps, filled by 'interpolate'",)


class Surveyor(Optimizer):
    """Plays the first site and asks about all."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return StartedSurveyor(briefing)


class StartedSurveyor:
    def __init__(self, briefing: Briefing) -> None:
        self._points = briefing.domain.cover(1)

    def ask(self, now: float) -> Move:
        return Move(self._points[0], (Query(int(now), "monitor", self._points, now),))

    def tell(self, reply: Reply) -> None:
        pass


def test_a_query_at_a_filled_value_can_fail_while_the_others_are_answered(table: Path) -> None:
    record = Recorded(files=(str(table),))
    rules = Rules(rounds=8, access="domain")
    trace = play(Surveyor(), record, rules, experts={"monitor": Truth()})
    replies = trace.replies
    asked = replies["source"] == "monitor"
    failed = asked & (replies["fate"] == Fate.UNAVAILABLE)
    assert replies["asked_at"][failed].tolist() == [7.0, 7.0]
    assert replies["row"][failed].tolist() == [0, 3]
    assert (replies["fate"][asked & ~failed] == Fate.ANSWERED).all()
    assert (asked & ~failed).sum() == 8 * SITES - 2


# Files


def test_a_model_reads_nothing_until_it_starts() -> None:
    model = Recorded(files=("nowhere/*.csv",))
    assert pickle.loads(pickle.dumps(model)) == model
    with pytest.raises(ReadingError, match=r"no file matches 'nowhere/\*.csv' in "):
        model.start(rng())
    with pytest.raises(ReadingError, match=r"nowhere.csv: No such file or directory; check"):
        Recorded(files=("nowhere.csv",)).start(rng())


def test_a_tilde_is_home(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(table.parent))
    for file in ("~/network.csv", "~/net*.csv"):
        assert Recorded(files=(file,)).start(rng()).steps == DAYS


def test_patterns_gather_files_and_none_is_read_twice(table: Path) -> None:
    lines = table.read_text(encoding="utf-8").splitlines()
    for name, part in (("part1.csv", lines[1:100]), ("part2.csv", lines[100:])):
        (table.parent / name).write_text("\n".join([lines[0], *part]), encoding="utf-8")
    pattern, again = str(table.parent / "part?.csv"), str(table.parent / "part1.csv")
    whole, parts = begin(table), Recorded(files=(pattern, again)).start(rng())
    assert parts.repairs == whole.repairs
    assert compute_references(parts, range(DAYS)) == compute_references(whole, range(DAYS))


def test_a_file_is_read_once_until_it_changes(table: Path) -> None:
    first = begin(table).best(0.0)
    before = table.stat()
    text = table.read_text(encoding="utf-8")
    # As large and as old as before: what is remembered serves.
    table.write_text(text.replace("2020-01-01,s3,3,-3,9", "2020-01-01,s3,3,-3,0"), encoding="utf-8")
    os.utime(table, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert begin(table).best(0.0)[1] == first[1] == 9
    os.utime(table, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert begin(table).best(0.0)[1] == 6


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"files": ()},
        {"files": "a.csv", "coverage": 1.5},
        {"files": "a.csv", "gaps": "guess"},
        {"files": "a.csv", "limits": (5.0, 1.0)},
        {"files": "a.csv", "limits": (0.0, float("inf"))},
        {"files": "a.csv", "county": "Bronx"},
    ],
    ids=repr,
)
def test_parameters_that_cannot_be_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Recorded.model_validate(fields)


def test_single_names_and_years_need_no_brackets() -> None:
    short = Recorded.model_validate({"files": "a.csv", "years": 2016, "counties": "Bronx"})
    assert short == Recorded(files=("a.csv",), years=(2016,), counties=("Bronx",))


# Ozone around New York, 2016 and 2017


def test_simple_policies_lose_what_was_measured_on_real_ozone() -> None:
    landscape = begin(ozone_file())
    assert (landscape.steps, len(landscape.domain.points)) == (731, 28)
    levels = compute_references(landscape, range(731))
    assert (levels.uniform, levels.fixed, levels.late) == pytest.approx(
        (9.82, 6.01, 5.50), abs=0.03
    )


def test_the_share_of_filled_ozone_values_is_told() -> None:
    landscape = begin(ozone_file())
    assert landscape.repairs == ("364 of 20468 values (1.8 %) come as filled in (observed 0)",)
