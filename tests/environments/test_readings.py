from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from sparq_environments._file_rows import ReadingError
from sparq_environments._readings import Choice, read
from sparq_environments._site_record import Rule, SiteRecord, build_record

OLD = (
    "Date,Source,Site ID,POC,Daily Max 8-hour Ozone Concentration,UNITS,DAILY_AQI_VALUE,Site Name,"
    "DAILY_OBS_COUNT,PERCENT_COMPLETE,AQS_PARAMETER_CODE,AQS_PARAMETER_DESC,CBSA_CODE,CBSA_NAME,"
    "STATE_CODE,STATE,COUNTY_CODE,COUNTY,SITE_LATITUDE,SITE_LONGITUDE"
)
NEW = (
    "Date,Source,Site ID,POC,Daily Max 8-hour Ozone Concentration,Units,Daily AQI Value,"
    "Local Site Name,Daily Obs Count,Percent Complete,AQS Parameter Code,"
    "AQS Parameter Description,Method Code,CBSA Code,CBSA Name,State FIPS Code,State,"
    "County FIPS Code,County,Site Latitude,Site Longitude"
)
BRONX, QUEENS, ESSEX = "360050110", "360810124", "340130003"
PLACES = {
    BRONX: ("New York", "Bronx", 40.82, -73.90),
    QUEENS: ("New York", "Queens", 40.74, -73.82),
    ESSEX: ("New Jersey", "Essex", 40.72, -74.15),
}
LIMITS = Choice(limits=(0.0, 500.0))


def epa_row(
    day: str, site: str, value: object, *, units: str = "ppm", poc: int = 1, header: str = OLD
) -> str:
    state, county, latitude, longitude = PLACES[site]
    method = "" if header == OLD else "087,"
    return (
        f'{day},AQS,{site},{poc},{value},{units},30,"A, B",17,100,44201,Ozone,{method}35620,'
        f'"New York-Newark, NY",00,{state},000,{county},{latitude},{longitude}'
    )


def epa(file: Path, rows: Sequence[str], header: str = OLD) -> Path:
    file.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return file


def two_days(header: str, year: int = 2016, *, units: str = "ppm") -> list[str]:
    values = {BRONX: (0.031, 0.041), QUEENS: (0.029, 0.047), ESSEX: (0.033, 0.033)}
    factor = 1 if units == "ppm" else 1000
    return [
        epa_row(f"01/0{day + 1}/{year}", site, factor * both[day], units=units, header=header)
        for site, both in values.items()
        for day in (0, 1)
    ]


def tidy(file: Path, *rows: str, header: str = "date,site,lat,lon,value") -> Path:
    file.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return file


def record(
    *files: Path, choice: Choice = LIMITS, gaps: Rule = "carry", least: float = 0.0
) -> SiteRecord:
    return build_record(read(files, choice), gaps=gaps, coverage=least)


def values(made: SiteRecord) -> dict[str, list[float]]:
    return dict(zip(made.sites, made.values.T.tolist(), strict=True))


# EPA's files


@pytest.mark.parametrize("header", [OLD, NEW], ids=["old", "new"])
@pytest.mark.parametrize("units", ["ppm", "ppb"])
def test_both_headers_and_both_units_give_the_same_ppb(
    tmp_path: Path, header: str, units: str
) -> None:
    file = epa(tmp_path / "epa.csv", two_days(header, units=units), header)
    made = record(file)
    assert values(made) == {BRONX: [31, 41], QUEENS: [29, 47], ESSEX: [33, 33]}
    assert made.places[made.sites.index(QUEENS)].tolist() == [40.74, -73.82]
    assert made.observed.all()
    assert made.repairs == ()


def test_files_of_several_years_and_headers_make_one_record(tmp_path: Path) -> None:
    old = epa(tmp_path / "2016.csv", [epa_row("12/31/2016", s, 0.03) for s in (BRONX, QUEENS)])
    rows = [epa_row("01/01/2017", s, 0.04, header=NEW) for s in (BRONX, QUEENS)]
    new = epa(tmp_path / "2017.csv", rows, NEW)
    assert values(record(new, old)) == {BRONX: [30, 40], QUEENS: [30, 40]}


@pytest.mark.parametrize(
    ("choice", "sites"),
    [
        (Choice(states=("new york",)), (BRONX, QUEENS)),
        (Choice(counties=("Queens", "Essex")), (ESSEX, QUEENS)),
        (Choice(sites=(BRONX, ESSEX)), (ESSEX, BRONX)),
    ],
    ids=repr,
)
def test_sites_are_chosen_by_state_county_or_name(
    tmp_path: Path, choice: Choice, sites: tuple[str, ...]
) -> None:
    file = epa(tmp_path / "epa.csv", two_days(OLD))
    assert record(file, choice=choice).sites == sites


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (Choice(states=("New Yrok",)), "has state 'New Yrok': did you mean 'New York'?"),
        (Choice(counties=("Kings",)), "has county 'Kings': "),
        (Choice(sites=("360050111",)), f"has site '360050111': did you mean '{BRONX}'?"),
    ],
    ids=repr,
)
def test_a_choice_that_no_row_meets_is_refused_with_what_there_is(
    tmp_path: Path, choice: Choice, told: str
) -> None:
    with pytest.raises(ReadingError, match=re.escape(told)):
        read((epa(tmp_path / "epa.csv", two_days(OLD)),), choice)


@pytest.mark.parametrize("pocs", [(1, 2), (2, 1), (3, 1, 2)])
def test_of_several_instruments_the_lowest_poc_counts_and_it_is_told(
    tmp_path: Path, pocs: tuple[int, ...]
) -> None:
    rows = [epa_row("01/01/2016", BRONX, 0.03 + 0.001 * poc, poc=poc) for poc in pocs]
    made = record(epa(tmp_path / "epa.csv", [*rows, *two_days(OLD)[2:]]))
    assert values(made)[BRONX][0] == 31
    assert made.repairs[0] == f"{len(pocs) - 1} readings of a higher POC left out"


def test_another_pollutant_is_refused_with_file_and_column(tmp_path: Path) -> None:
    header = OLD.replace("Max 8-hour Ozone", "Mean PM2.5")
    file = epa(tmp_path / "pm.csv", two_days(OLD, units="ug/m3 LC"), header)
    told = r"pm.csv, line 1, column 'Daily Mean PM2.5 Concentration': holds no Ozone; .* pollutant"
    with pytest.raises(ReadingError, match=told):
        read((file,), LIMITS)
    assert read((file,), Choice(pollutant="PM2.5")).rows


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (epa_row("2016-01-01", BRONX, 0.03), "column 'Date': '2016-01-01' is not a date as MM/DD"),
        (epa_row("13/01/2016", BRONX, 0.03), "column 'Date': '13/01/2016' is not a date"),
        (epa_row("01/03/2015", BRONX, 0.03), "column 'Date': 01/03/2015 is of 2015, not of 2016"),
        (epa_row("01/03/2016", BRONX, "0,03"), "21 cells for 20 columns"),
        (epa_row("01/03/2016", BRONX, "high"), "Concentration': 'high' is not a number"),
        (epa_row("01/03/2016", BRONX, "inf"), "Concentration': 'inf' is not a number"),
        (epa_row("01/03/2016", BRONX, -0.003), "Concentration': -0.003 is -3, beyond 0 to 500"),
        (epa_row("01/03/2016", BRONX, 41), "Concentration': 41 is 41000, beyond 0 to 500"),
        (epa_row("01/03/2016", BRONX, 1, units="%"), "column 'UNITS': '%' is none of ppm, ppb"),
        (epa_row("01/01/2016", BRONX, 0.032), "value: 32 contradicts 31 in "),
        (epa_row("01/03/2016", BRONX, 0.03).replace("40.82", "140.82"), "column 'SITE_LATITUDE'"),
        (epa_row("01/03/2016", BRONX, 0.03).replace("40.82", "40.92"), "lies at (40.92, -73.9)"),
        (epa_row("01/03/2016", BRONX, 0.03).replace(BRONX, ""), "column 'Site ID': is empty"),
    ],
)
def test_a_bad_row_is_refused_with_file_line_and_column(
    tmp_path: Path, row: str, told: str
) -> None:
    file = epa(tmp_path / "epa.csv", [*two_days(OLD), row])
    choice = Choice(years=(2016,), limits=(0.0, 500.0))
    with pytest.raises(ReadingError, match=re.escape(told)) as caught:
        read((file,), choice)
    assert f"{file}, line 8" in str(caught.value)


def test_a_row_that_repeats_another_is_left_out_and_told(tmp_path: Path) -> None:
    rows = two_days(OLD)
    made = record(epa(tmp_path / "epa.csv", [*rows, *rows[:2]]))
    assert values(made)[BRONX] == [31, 41]
    assert made.repairs == ("2 rows that repeat another left out",)


# Tidy files

TIDY_ROWS = ("2020-02-28,a,1,2,5", "2020-02-29,a,1,2,6", "2020-02-28,b,3,4,7", "2020-03-01,b,3,4,9")


def test_a_tidy_file_gives_a_step_for_each_day_also_of_leap_years(tmp_path: Path) -> None:
    made = record(tidy(tmp_path / "tidy.csv", *TIDY_ROWS))
    assert values(made) == {"a": [5, 6, 6], "b": [7, 7, 9]}
    assert made.observed.tolist() == [[True, True], [True, False], [False, True]]
    assert made.repairs == ("2 of 6 values (33.3 %) are gaps, filled by 'carry'",)


def test_parquet_gives_what_csv_gives(tmp_path: Path) -> None:
    cells = [row.split(",") for row in TIDY_ROWS]
    table = pa.table(
        {
            "date": pa.array([row[0] for row in cells]).cast(pa.date32()),
            "site": [row[1] for row in cells],
            "lat": [float(row[2]) for row in cells],
            "lon": [float(row[3]) for row in cells],
            "value": [float(row[4]) for row in cells],
        }
    )
    parquet.write_table(table, tmp_path / "tidy.parquet")
    midnights = table.set_column(0, "date", table["date"].cast(pa.timestamp("us")))
    parquet.write_table(midnights, tmp_path / "midnights.parquet")
    text = record(tidy(tmp_path / "tidy.csv", *TIDY_ROWS))
    for name in ("tidy.parquet", "midnights.parquet"):
        columns = record(tmp_path / name)
        assert values(columns) == values(text)
        assert columns.places.tolist() == text.places.tolist()


@pytest.mark.parametrize(
    "times",
    [
        ("0.5", "1.0", "2.0"),
        ("2020-01-01T00:00", "2020-01-01T06:00", "2020-01-01T18:00"),
        ("2020-01-01 00:00:00+02:00", "2020-01-01 06:00:00+02:00", "2020-01-01 18:00:00+02:00"),
    ],
    ids=repr,
)
def test_times_lie_on_a_grid_whose_step_is_their_smallest_distance(
    tmp_path: Path, times: tuple[str, ...]
) -> None:
    rows = [f"{time},{site},{i},0,{i}" for time in times for i, site in enumerate("ab")]
    made = record(tidy(tmp_path / "t.csv", *rows, header="time,site,lat,lon,value"))
    assert made.observed.tolist() == [[True] * 2, [True] * 2, [False] * 2, [True] * 2]


def test_a_time_off_the_grid_is_refused_with_its_line(tmp_path: Path) -> None:
    rows = [f"{time},{site},{i},0,1" for time in (0, 1, 2.5) for i, site in enumerate("ab")]
    file = tidy(tmp_path / "t.csv", *rows, header="time,site,lat,lon,value")
    with pytest.raises(
        ReadingError, match=r"line 6, time: 2.5 is not a whole number of steps of 1"
    ):
        record(file)


def test_values_given_as_filled_in_are_kept_and_flagged(tmp_path: Path) -> None:
    rows = ("2020-01-01,a,1,2,5,1", "2020-01-01,b,3,4,7,1", "2020-01-02,a,1,2,6,0")
    file = tidy(
        tmp_path / "t.csv", *rows, "2020-01-02,b,3,4,8,1", header="date,site,lat,lon,value,observed"
    )
    made = record(file)
    assert values(made) == {"a": [5, 6], "b": [7, 8]}
    assert made.observed.tolist() == [[True, True], [False, True]]
    assert made.repairs == ("1 of 4 values (25.0 %) come as filled in (observed 0)",)


@pytest.mark.parametrize("cell", ["", "NA", "nan"])
def test_an_empty_value_is_a_gap(tmp_path: Path, cell: str) -> None:
    made = record(tidy(tmp_path / "t.csv", *TIDY_ROWS, f"2020-03-01,a,1,2,{cell}"))
    assert values(made)["a"] == [5, 6, 6]
    assert made.repairs[0] == "1 rows without a value taken as gaps"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "t.csv: the file is empty"),
        ("date,site,lat,lon\n", "t.csv, line 1: column 'value' is missing; there are: date, site"),
        ("date;site;lat;lon;value\n", "column 'date' is missing; there are: date;site;lat"),
        ("Site ID,Date\n", "t.csv, line 1: column 'site latitude' is missing"),
        ("date,site,lat,lon,value\n", "there are no readings in "),
        ("date,site,lat,lon,value\n2020-1-1,a,1,2,3\n", "line 2, column 'date': '2020-1-1' is"),
        ("time,site,lat,lon,value\nnoon,a,1,2,3\n", "column 'time': 'noon' is neither a number"),
        ("time,site,lat,lon,value\nnan,a,1,2,3\n", "column 'time': 'nan' is not a finite"),
        ("date,site,lat,lon,value\n2020-01-01,a,1,2,\n", "all values are empty"),
        (
            "date,site,lat,lon,value,observed\n2020-01-01,a,1,2,3,maybe\n",
            "line 2, column 'observed': 'maybe' is neither 0 nor 1",
        ),
        ("date,site,lat,lon,value\n2020-01-01,a,1,2,3\n", "1 of 1 sites were read"),
        (
            "date,site,lat,lon,value\n2020-01-01,a,1,2,3\n2020-01-01,b,1,2,3\n",
            "sites 'a' and 'b' both lie at [1.0, 2.0]",
        ),
        (
            "date,site,lat,lon,value\n2020-01-01,a,1,2,3\n2021-01-01,b,3,4,3\n",
            "at the same time, so none is best: a from 2020-01-01 to 2020-01-01; b from 2021-01-01",
        ),
        (
            "time,site,lat,lon,value\n0,a,1,2,3\n1e-9,b,3,4,3\n1,b,3,4,3\n",
            "in steps of 1e-09, their smallest distance, are more than",
        ),
    ],
)
def test_a_file_that_cannot_serve_is_refused_with_the_reason(
    tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ReadingError, match=re.escape(told)):
        record(file)


def test_days_and_other_times_do_not_mix(tmp_path: Path) -> None:
    days = tidy(tmp_path / "days.csv", *TIDY_ROWS)
    times = tidy(tmp_path / "times.csv", "1,a,1,2,3", header="time,site,lat,lon,value")
    with pytest.raises(ReadingError, match=r"times.csv.*other files count time by 'date'"):
        read((days, times), LIMITS)


@pytest.mark.parametrize("name", ["bytes.csv", "bytes.parquet"])
def test_a_file_that_is_no_table_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\xff\xfe\x00\x01" * 9)
    with pytest.raises(ReadingError, match=name):
        read((tmp_path / name,), LIMITS)


def test_a_site_that_moved_a_little_keeps_its_first_place(tmp_path: Path) -> None:
    made = record(tidy(tmp_path / "t.csv", *TIDY_ROWS, "2020-03-01,a,1.004,2,5"))
    assert made.places[0].tolist() == [1.0, 2.0]
    assert made.repairs[0] == "1 rows where a site lies a little off; its first place is kept"
