from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator, Philox
from pydantic import ValidationError

from sparq_environments._file_rows import ReadingError
from sparq_environments.recorded import Recorded, RecordedLandscape

HEADER = "time,site,lat,lon,value"
MINUTES = 10
READINGS = 200
Rows = Sequence[tuple[object, str, float]]


def begin(file: Path, **fields: object) -> RecordedLandscape:
    return Recorded.model_validate({"files": str(file), **fields}).start(Generator(Philox(key=0)))


def write(file: Path, rows: Rows, header: str = HEADER) -> Path:
    places = {site: place for place, site in enumerate(sorted({site for _, site, _ in rows}))}
    lines = [f"{time},{site},{places[site]},0,{value}" for time, site, value in rows]
    file.write_text("\n".join([header, *lines]), encoding="utf-8")
    return file


def values(landscape: RecordedLandscape) -> dict[str, list[float]]:
    domain = landscape.domain
    steps = [landscape.rewards(domain.points, float(t)).tolist() for t in range(landscape.steps)]
    return dict(zip(domain.site_names, np.transpose(steps).tolist(), strict=True))


@pytest.fixture
def logger(tmp_path: Path) -> Path:
    """Two loggers that read every 10 minutes, up to 20 s early or late, and now and then not."""
    rng = Generator(Philox(key=1))
    start = datetime.fromisoformat("2024-05-01T08:00:00")
    rows = []
    for number in range(READINGS):
        for site in ("a", "b"):
            jitter = timedelta(seconds=int(rng.integers(-20, 21)))
            told = start + number * timedelta(minutes=MINUTES) + jitter
            if 0 < number < READINGS - 1 and rng.random() < 0.05:
                continue
            rows.append((told.isoformat(" "), site, float(number % 50)))
    return write(tmp_path / "logger.csv", rows)


def test_times_with_jitter_are_refused_with_the_fields_that_help(logger: Path) -> None:
    with pytest.raises(ReadingError) as refused:
        begin(logger)
    told = str(refused.value)
    assert re.search(r"a site is read about every \d+: round_to = 600 moves", told)
    assert "step = 600 makes one value" in told
    assert "lower coverage" not in told


def test_times_off_the_grid_are_refused_by_file_and_line_with_the_same_remedy(
    tmp_path: Path,
) -> None:
    rows = [(time, site, 1.0) for time in (0.0, 1.03, 1.99, 3.0) for site in "ab"]
    with pytest.raises(ReadingError, match=r"t.csv, line \d, time: .* round_to = 1 moves each"):
        begin(write(tmp_path / "t.csv", rows))


def test_rounded_to_its_interval_a_logger_can_be_played(logger: Path) -> None:
    landscape = begin(logger, round_to=600, gaps="carry")
    assert landscape.steps == READINGS
    read = landscape.available(landscape.domain.points, 0.0)
    assert read.all()
    for series in values(landscape).values():
        off = [value - number % 50 for number, value in enumerate(series)]
        # A missed reading is filled by the one before.
        assert np.mean(np.equal(off, 0)) > 0.9
    rounding, *_ = landscape.repairs
    assert rounding == "times rounded to multiples of 600, each by at most 20"


HOURLY: Rows = (
    *((1, "a", 1.0), (5, "a", 2.0), (9, "a", 6.0), (12, "a", 8.0), (29, "a", 9.0)),
    *((0, "b", 1.0), (11, "b", 3.0), (20, "b", 5.0)),
)


@pytest.mark.parametrize(
    ("how", "a"), [("mean", [3.0, 8.0, 9.0]), ("first", [1, 8, 9]), ("last", [6, 8, 9])]
)
def test_a_step_has_one_value_made_of_its_own_readings(
    tmp_path: Path, how: str, a: list[float]
) -> None:
    landscape = begin(write(tmp_path / "t.csv", HOURLY), step=10, resample=how)
    assert values(landscape) == {"a": a, "b": [1.0, 3.0, 5.0]}
    told = f"8 readings resampled to 6, the {how} of each site's in a step of 10"
    assert landscape.repairs == (told,)


@pytest.mark.parametrize("later", [0.0, 499.0])
def test_no_value_depends_on_readings_of_later_steps(tmp_path: Path, later: float) -> None:
    rows = [*HOURLY, *((time, site, later) for time in (30, 33, 41) for site in "ab")]
    landscape = begin(write(tmp_path / "t.csv", rows), step=10)
    whole = values(landscape)
    assert whole["a"][:3] == [3.0, 8.0, 9.0]


def test_rounding_moves_a_reading_to_before_its_time_by_half_at_most(tmp_path: Path) -> None:
    rows = [(time, site, time) for time in (0.0, 14.9, 15.0, 30.0) for site in "ab"]
    landscape = begin(write(tmp_path / "t.csv", rows), round_to=10)
    assert values(landscape)["a"] == [0.0, 14.9, 15.0, 30.0]
    assert landscape.repairs == ("times rounded to multiples of 10, each by at most 5",)


def test_readings_that_round_to_one_time_become_one(tmp_path: Path) -> None:
    rows = [(time, site, time) for time in (0.0, 9.0, 11.0, 20.0) for site in "ab"]
    landscape = begin(write(tmp_path / "t.csv", rows), round_to=10)
    assert values(landscape)["a"] == [0.0, 10.0, 20.0]
    told = "8 readings resampled to 6, the mean of each site's in a rounded time"
    assert landscape.repairs[1] == told


def test_what_was_read_counts_more_than_what_was_filled_in(tmp_path: Path) -> None:
    rows = [(f"{time}", f"{site}", value) for time, site, value in HOURLY]
    file = tmp_path / "t.csv"
    places = {"a": 0, "b": 1}
    lines = [
        f"{time},{site},{places[site]},0,{value},{int((time, site) != ('9', 'a'))}"
        for time, site, value in rows
    ]
    file.write_text("\n".join([f"{HEADER},observed", *lines]), encoding="utf-8")
    landscape = begin(file, step=10)
    assert values(landscape)["a"] == [1.5, 8.0, 9.0]


def test_steps_begin_at_multiples_whatever_the_first_reading(tmp_path: Path) -> None:
    late = [row for row in HOURLY if int(str(row[0])) >= 5]
    landscape = begin(write(tmp_path / "t.csv", late), step=10, coverage=0.5)
    assert values(landscape)["a"] == [4.0, 8.0, 9.0]


def test_days_can_be_made_weeks(tmp_path: Path) -> None:
    start = datetime.fromisoformat("2024-05-05")  # A multiple of seven days.
    days = [(start + timedelta(days=day)).date().isoformat() for day in range(14)]
    rows = [(day, site, float(number)) for number, day in enumerate(days) for site in "ab"]
    file = write(tmp_path / "t.csv", rows, header="date,site,lat,lon,value")
    assert values(begin(file, step=7))["a"] == [3.0, 10.0]


def test_sites_read_every_sixth_day_are_told_to_resample(tmp_path: Path) -> None:
    start = datetime.fromisoformat("2024-05-05")
    days = [(start + timedelta(days=6 * number)).date().isoformat() for number in range(9)]
    rows = [(day, site, 1.0) for day in days for site in "ab"]
    file = write(tmp_path / "t.csv", rows, header="date,site,lat,lon,value")
    with pytest.raises(ReadingError, match="step = 6 resamples them to steps of so many days"):
        begin(file)


@pytest.mark.parametrize(
    "fields",
    [{"step": 0}, {"step": -1.0}, {"round_to": 0}, {"step": float("inf")}, {"resample": "last"}],
    ids=repr,
)
def test_resampling_that_cannot_be_meant_is_refused(fields: Mapping[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(fields))):
        Recorded.model_validate({"files": "a.csv", **fields})
