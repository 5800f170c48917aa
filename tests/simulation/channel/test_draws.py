from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, Philox
from pydantic import TypeAdapter, ValidationError
from scipy import stats

from sparq_sim.arrays import Values
from sparq_sim.simulation.channel.draws import (
    AnyDraw,
    Constant,
    Draw,
    Empirical,
    Exponential,
    Gamma,
    Lognormal,
    Pareto,
    Uniform,
    read_column,
)

ADAPTER: TypeAdapter[Draw] = TypeAdapter(AnyDraw)
DRAWS: list[Draw] = [
    Constant(value=1.5),
    Uniform(low=1.0, high=4.0),
    Exponential(mean=0.7),
    Lognormal(median=2.0, sigma=0.5),
    Gamma(shape=2.5, scale=0.4),
    Gamma(shape=0.5, scale=3.0),
    Pareto(minimum=2.0, shape=5.0),
    Empirical(values=(0.0, 1.0, 1.0, 7.5)),
]
LEVELS = np.array([0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99])

each_draw = pytest.mark.parametrize("draw", DRAWS, ids=repr)


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


def read(given: object) -> Draw:
    return ADAPTER.validate_python(given)


# What is drawn


@each_draw
def test_the_average_of_many_is_what_is_expected(draw: Draw) -> None:
    samples = draw.sample(stream(1), 20_000)
    error = samples.std() / math.sqrt(len(samples))
    assert samples.mean() == pytest.approx(draw.expected, abs=5 * error + 1e-12)


@pytest.mark.parametrize(
    ("draw", "quantiles"),
    [
        (Uniform(low=1.0, high=4.0), stats.uniform.ppf(LEVELS, loc=1.0, scale=3.0)),
        (Exponential(mean=0.7), stats.expon.ppf(LEVELS, scale=0.7)),
        (Lognormal(median=2.0, sigma=0.5), stats.lognorm.ppf(LEVELS, 0.5, scale=2.0)),
        (Gamma(shape=2.5, scale=0.4), stats.gamma.ppf(LEVELS, 2.5, scale=0.4)),
        (Pareto(minimum=2.0, shape=1.5), stats.pareto.ppf(LEVELS, 1.5, scale=2.0)),
    ],
    ids=repr,
)
def test_as_many_lie_below_a_quantile_as_should(draw: Draw, quantiles: Values) -> None:
    samples = draw.sample(stream(2), 20_000)
    shares = (samples[:, None] <= quantiles).mean(axis=0)
    assert (abs(shares - LEVELS) < 5 * np.sqrt(LEVELS * (1 - LEVELS) / len(samples))).all()


def test_each_recorded_value_is_as_likely() -> None:
    samples = Empirical(values=(0.0, 1.0, 1.0, 7.5)).sample(stream(3), 20_000)
    values, counts = np.unique(samples, return_counts=True)
    assert values.tolist() == [0.0, 1.0, 7.5]
    assert (abs(counts / len(samples) - [0.25, 0.5, 0.25]) < 5 * 0.5 / math.sqrt(20_000)).all()


def test_a_constant_draws_nothing() -> None:
    rng = stream()
    assert Constant(value=1.5).sample(rng, 3).tolist() == [1.5, 1.5, 1.5]
    assert rng.random() == stream().random()


def test_a_tail_with_shape_one_or_less_expects_infinity() -> None:
    assert Pareto(minimum=1.0, shape=1.0).expected == math.inf
    assert Pareto(minimum=3.0, shape=1.5).expected == pytest.approx(9.0)


@each_draw
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**64 - 1), many=st.integers(0, 40), few=st.integers(0, 40))
def test_a_draw_does_not_depend_on_how_many_are_drawn(
    draw: Draw, seed: int, many: int, few: int
) -> None:
    few = min(few, many)
    samples = draw.sample(stream(seed), many)
    assert samples.shape == (many,)
    assert samples[:few].tolist() == draw.sample(stream(seed), few).tolist()


@each_draw
def test_no_draw_is_negative(draw: Draw) -> None:
    samples = draw.sample(stream(4), 5_000)
    assert (samples >= 0).all()
    assert np.isfinite(samples).all()


# How a draw is written


@pytest.mark.parametrize("number", [0, 3, 0.25])
def test_a_bare_number_is_a_constant(number: float) -> None:
    assert read(number) == Constant(value=number)


@pytest.mark.parametrize("given", [True, "soon", None, [1.0]])
def test_what_is_neither_number_nor_table_is_refused(given: object) -> None:
    with pytest.raises(ValidationError):
        read(given)


@each_draw
def test_a_draw_survives_being_written_down(draw: Draw) -> None:
    assert read(draw.model_dump()) == draw
    assert ADAPTER.validate_json(draw.model_dump_json()) == draw


@each_draw
def test_a_draw_survives_a_pickle_and_keeps_its_hash(draw: Draw) -> None:
    copy = pickle.loads(pickle.dumps(draw))
    assert copy == draw
    assert hash(copy) == hash(draw)


@each_draw
def test_a_draw_cannot_be_changed(draw: Draw) -> None:
    name = next(name for name in type(draw).model_fields if name != "kind")
    with pytest.raises(ValidationError, match="frozen"):
        setattr(draw, name, 2.0)


def test_draws_of_two_kinds_differ() -> None:
    assert len(set(DRAWS)) == len(DRAWS)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("kind", "sound"),
    [
        ("constant", {"value": 1.0}),
        ("uniform", {"low": 0.5, "high": 1.0}),
        ("exponential", {"mean": 1.0}),
        ("lognormal", {"median": 1.0, "sigma": 1.0}),
        ("gamma", {"shape": 1.0, "scale": 1.0}),
        ("pareto", {"minimum": 1.0, "shape": 1.0}),
    ],
)
def test_a_parameter_that_is_negative_or_infinite_is_refused_by_name(
    kind: str, sound: dict[str, float], bad: float
) -> None:
    read({"kind": kind, **sound})
    for name in sound:
        with pytest.raises(ValidationError, match=rf"{kind}\.{name}\b"):
            read({"kind": kind, **sound, name: bad})


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, -math.inf])
def test_a_recorded_value_that_is_negative_or_infinite_is_refused(bad: float) -> None:
    with pytest.raises(ValidationError, match=r"values\.1"):
        Empirical(values=(1.0, bad))


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "exponential", "mean": 0.0},
        {"kind": "lognormal", "median": 1.0, "sigma": 0.0},
        {"kind": "gamma", "shape": 0.0, "scale": 1.0},
        {"kind": "pareto", "minimum": 1.0, "shape": 0.0},
        {"kind": "empirical", "values": []},
    ],
)
def test_a_draw_that_spreads_over_nothing_is_refused(given: object) -> None:
    with pytest.raises(ValidationError):
        read(given)


def test_an_unknown_kind_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ValidationError, match=r"'weibull': there are: .*empirical, .*gamma"):
        read({"kind": "weibull", "scale": 1.0})


def test_an_unknown_field_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match=r"exponential\.rate"):
        read({"kind": "exponential", "mean": 1.0, "rate": 1.0})


def test_a_range_upside_down_is_refused_with_the_remedy() -> None:
    with pytest.raises(ValidationError, match=r"low 2.0 lies above high 1.0; swap them"):
        Uniform(low=2.0, high=1.0)


def test_a_range_of_one_number_is_that_number() -> None:
    assert Uniform(low=2.0, high=2.0).sample(stream(), 3).tolist() == [2.0, 2.0, 2.0]


# Recorded values from a file


def written(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    file = folder / "latency.csv"
    file.write_text(text, encoding=encoding, newline="")
    return file


def test_values_are_read_from_a_column(tmp_path: Path) -> None:
    file = written(tmp_path, "host,seconds\na,0.5\nb,2\n")
    draw = read({"kind": "empirical", "file": str(file), "column": "seconds"})
    assert draw == Empirical(values=(0.5, 2.0))


def test_what_was_read_from_a_file_is_kept_without_it(tmp_path: Path) -> None:
    file = written(tmp_path, "seconds\n0.5\n2\n")
    draw = read({"kind": "empirical", "file": file, "column": "seconds"})
    file.unlink()
    assert read(draw.model_dump()) == pickle.loads(pickle.dumps(draw)) == draw


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    file = written(tmp_path, "seconds\r\n0.5\r\n", encoding="utf-8-sig")
    assert file.read_bytes().startswith(b"\xef\xbb\xbf")
    assert read_column(file, "seconds") == (0.5,)


def test_empty_cells_and_short_rows_are_passed(tmp_path: Path) -> None:
    file = written(tmp_path, "host,seconds\na,1\nb,\nc\n\nd,  \ne, 3 \n")
    assert read_column(file, "seconds") == (1.0, 3.0)


def test_a_missing_column_is_named_with_those_there_are(tmp_path: Path) -> None:
    file = written(tmp_path, "host,seconds\na,1\n")
    with pytest.raises(ValidationError, match="no column 'minutes'; its columns are: host, second"):
        read({"kind": "empirical", "file": file, "column": "minutes"})


@pytest.mark.parametrize("cell", ["soon", "-1", "nan", "inf", "1.5s"])
def test_a_cell_that_is_no_number_is_named_with_its_line(tmp_path: Path, cell: str) -> None:
    file = written(tmp_path, f"host,seconds\na,1\nb,{cell}\nc,2\n")
    complaint = f"latency.csv, line 3, seconds: '{cell}' is not a finite number, 0 or more"
    with pytest.raises(ValidationError, match=complaint):
        read({"kind": "empirical", "file": file, "column": "seconds"})


def test_a_quoted_line_break_counts_as_a_line(tmp_path: Path) -> None:
    file = written(tmp_path, 'host,seconds\n"a\nb",1\nc,soon\n')
    with pytest.raises(ValueError, match="line 4, seconds: 'soon'"):
        read_column(file, "seconds")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"nowhere\.csv cannot be read: No such file"):
        read({"kind": "empirical", "file": tmp_path / "nowhere.csv", "column": "seconds"})


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        read_column(tmp_path, "seconds")


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "latency.csv"
    file.write_bytes(b"seconds\n\xff\xfe\n")
    with pytest.raises(ValueError, match=r"latency\.csv is not a text file in UTF-8"):
        read_column(file, "seconds")


@pytest.mark.parametrize("text", ["seconds\n", "seconds,host\n,a\n ,b\n"])
def test_a_column_without_a_number_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match="has no number in column 'seconds'"):
        read_column(written(tmp_path, text), "seconds")


def test_an_empty_file_has_no_columns(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no column 'seconds'"):
        read_column(written(tmp_path, ""), "seconds")


@pytest.mark.parametrize(
    "given",
    [
        {"file": "latency.csv"},
        {"column": "seconds"},
        {"file": "latency.csv", "column": "seconds", "values": [1.0]},
    ],
)
def test_values_are_given_or_read_but_not_both(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="give either values, or file and column"):
        read({"kind": "empirical", **given})


@pytest.mark.parametrize(
    "given",
    [
        1e200,
        {"kind": "lognormal", "median": 1.0, "sigma": 1e200},
        {"kind": "uniform", "low": 1e308, "high": 1.7e308},
        {"kind": "empirical", "values": [1.7e308, 1.7e308]},
    ],
)
def test_what_is_too_large_to_compute_with_is_refused(given: object) -> None:
    with pytest.raises(ValidationError, match="too large to compute with; give at most 1e"):
        ADAPTER.validate_python(given)
