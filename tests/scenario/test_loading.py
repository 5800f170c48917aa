"""What would be read as another thing is refused; broken files are told as such."""

from __future__ import annotations

import json
import re
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparq_sim.cli.main import main
from sparq_sim.errors import ScenarioError
from sparq_sim.scenario.loading import make_environment
from sparq_sim.scenario.model import Scenario
from tests.scenario.samples import (
    FULL,
    SMALL,
    problem,
    problems,
    write,
)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('rounds = "5"', "rounds: '5': should be a whole number; write 5 without quotes"),
        ("replications = true", "replications: true: should be a whole number, not true or false"),
        ('feedback.split = "yes"', "feedback.split: 'yes': should be true or false, without quote"),
        ("feedback.capacity = 2.0", "feedback.capacity: 2.0: should be a whole number; write 2"),
        (
            'feedback.transit = { kind = "exponential", mean = "3" }',
            "feedback.transit.mean: '3': should be a number; write 3 without quotes",
        ),
        (
            'feedback.noise = { kind = "gaussian", std = true }',
            "feedback.noise.std: true: should be a number, not true or false",
        ),
        (
            "feedback.policy.retries = true",
            "feedback.policy.retries: true: should be a whole number, not true or false",
        ),
        (
            'experts.a = { kind = "lagged", lag = "2" }',
            "experts.a.lag: '2': should be a number; write 2 without quotes",
        ),
        (
            'optimizers.a = { kind = "gp-ucb", kernel = { kind = "matern-3/2", variance = "1" } }',
            "optimizers.a.kernel.variance: '1': should be a number; write 1 without quotes",
        ),
        ("environment = 5", "environment: 5: should be a table with a kind; the kinds are: "),
        ("experts.a = 5", "experts.a: 5: should be a table with a kind; the kinds are: "),
        ("optimizers.a = 5", "optimizers.a: 5: should be a table with a kind; the kinds are: "),
        ("feedback = 5", "feedback: 5: should be a table; its fields are: service, "),
        (
            'optimizers.a = { kind = "sparq-gp-ucb", schedule = 5 }',
            "optimizers.a.schedule: 5: should be a table with a kind; the kinds are: logarithmic, ",
        ),
        (
            'environment = { kind = "plume", wind = [{ kind = "gust" }] }',
            "environment.wind.0.kind: 'gust': no such kind; did you mean 'gusts'?",
        ),
    ],
)
def test_what_would_be_read_as_another_thing_is_refused_with_its_line(
    tmp_path: Path, line: str, told: str
) -> None:
    name = re.match(r"\w+", line)
    assert name
    fields = {
        "rounds": "rounds = 5",
        "optimizers": "optimizers.u.kind = 'uniform'",
        "environment": "environment.kind = 'synthetic'",
    }
    others = [text for field, text in fields.items() if field != name[0]]
    file = write(tmp_path, "\n".join([*others, line]))
    assert problem(file).startswith(f"{file}:{len(others) + 1}: {told}")
    override = problem(write(tmp_path, "\n".join(others)), line)
    assert override.startswith(f"--set {line}: {told}")


def test_a_swept_value_is_not_read_as_another_thing(tmp_path: Path) -> None:
    file = write(tmp_path, f'{SMALL}[sweep]\n"feedback.capacity" = [1, 2.0]\nrounds = ["5"]\n')
    assert problems(file) == (
        f'{file}:5: sweep."feedback.capacity": [1, 2.0]: should be a whole number; write 2',
        f"{file}:6: sweep.rounds: ['5']: should be a whole number; write 5 without quotes",
    )


def test_fields_of_a_lone_environment_are_strict_too() -> None:
    with pytest.raises(ScenarioError, match="--set centres='5': centres: '5': should be a whole n"):
        make_environment("rkhs-walk", ["centres='5'"])


TEXT = FULL.read_text(encoding="utf-8")


WORDS = st.sampled_from(
    [
        *("-1", "0", "1e400", "nan", "inf", '""', '"x"', "true", "[]", "{}", "1979-05-27"),
        *('{ kind = "constant" }', "{ kind = 3 }", '["a", "a"]', "[[1]]", '"\\u0000"'),
        "0x" + "f" * 5000,
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    rows = TEXT.splitlines()
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(rows) - 1))
        row = rows[place]
        way = draw(st.sampled_from(["delete", "repeat", "rename", "value", "swap", "key", "inner"]))
        match way:
            case "delete":
                del rows[place]
            case "repeat":
                rows.insert(draw(st.integers(0, len(rows))), row)
            case "rename":
                at = draw(st.integers(0, len(row)))
                rows[place] = row[:at] + draw(st.text(max_size=3)) + row[at + 1 :]
            case "value":
                rows[place] = f"{row.partition('=')[0]} = {draw(WORDS)}"
            case "inner":
                spots = list(re.finditer(r"= ([^,={}]+)(?=[,}])", row))
                if spots:
                    spot = draw(st.sampled_from(spots))
                    rows[place] = row[: spot.start(1)] + draw(WORDS) + row[spot.end(1) :]
            case "swap":
                other = draw(st.integers(0, len(rows) - 1))
                rows[place], rows[other] = rows[other], row
            case "key":
                rows.insert(place, f"{draw(st.sampled_from(KEYS))} = {draw(WORDS)}")
        rows = rows or [""]
    content = "\n".join(rows).encode(errors="replace")
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(content)))
        content = content[:at] + draw(st.binary(max_size=5)) + content[at:]
    return content


KEYS = ["kind", "extends", "sweep", "experts", "optimizers", "channel", "feedback.noise", "a.b.c"]


def accepted_or_told(folder: Path, content: bytes) -> None:
    file = write(folder, content)
    told: tuple[str, ...] = ()
    try:
        scenario = Scenario.load(file)
    except ScenarioError as error:
        told = error.problems or ("nothing is told",)
    for line in told:
        assert re.fullmatch(rf"{re.escape(str(file))}:\d+: .+", line), line
    if not told:
        for _, each in scenario.settings():
            for name in each.optimizers:
                json.dumps(each.fingerprint(name), allow_nan=False)


@settings(max_examples=100)
@given(content=mutated())
def test_a_mutated_file_is_accepted_or_told_with_file_and_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    accepted_or_told(tmp_path_factory.getbasetemp(), content)


@pytest.mark.slow
@settings(max_examples=2000, derandomize=False)
@given(content=mutated() | st.binary(max_size=300))
def test_of_two_thousand_mutated_files_check_accepts_or_explains_each(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = write(tmp_path_factory.getbasetemp(), content)
    said = StringIO()
    with redirect_stderr(said), redirect_stdout(StringIO()), pytest.raises(SystemExit) as ended:
        main(["check", str(file)])
    assert ended.value.code in (0, None, 2)
    if ended.value.code == 2:
        for line in said.getvalue().removeprefix("Error: ").splitlines():
            assert re.match(rf"{re.escape(str(file))}:\d+: ", line), line
