"""Editors are told what a scenario file can have."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sparq_sim.scenario.bundled import find_bundled
from sparq_sim.scenario.model import Scenario
from sparq_sim.scenario.schema import build_schema
from tests.scenario.samples import (
    FULL,
    SMALL,
    problems,
    write,
)


def test_the_schema_knows_the_plug_ins_and_is_json() -> None:
    found = json.loads(json.dumps(build_schema(), allow_nan=False))
    assert found["$defs"]["optimizer: tv-gp-ucb"]["properties"]["kind"]["const"] == "tv-gp-ucb"
    assert "channel" in found["$defs"]["expert: truth"]["properties"]
    choices = found["properties"]["environment"]["anyOf"]
    assert {"$ref": "#/$defs/part of environment: synthetic"} in choices
    assert set(Scenario.model_fields) | {"extends", "without"} == found["properties"].keys()


def test_each_reference_of_the_schema_leads_somewhere() -> None:
    found = build_schema()
    references = re.findall(r'"\$ref": "#/\$defs/([^"]*)"', json.dumps(found))
    assert references
    assert set(references) <= found["$defs"].keys()


def test_the_schema_allows_a_bare_number_only_where_one_is_read() -> None:
    found: Any = build_schema()["$defs"]
    transit = found["Channel"]["properties"]["transit"]
    assert {"type": "number"} in transit["anyOf"]
    schedule = found["optimizer: sparq-gp-ucb"]["properties"]["schedule"]
    assert "number" not in json.dumps(schedule)


@pytest.fixture(scope="module")
def validator() -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    found = build_schema()
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


@pytest.mark.parametrize("file", [FULL, *find_bundled().values()], ids=lambda file: file.stem)
def test_a_scenario_that_plays_fits_the_schema(validator: Any, file: Path) -> None:
    validator.validate(tomllib.loads(file.read_text(encoding="utf-8")))


EXTENDING = f"extends = {json.dumps(str(FULL))}\n"


PARTIAL = SMALL.replace('["uniform"]', '{ a = { kind = "gp-ucb", kernel = { variance = 2 } } }')


SHARING = f"""{PARTIAL}
optimizer_defaults.kernel = {{ kind = "matern-5/2", length_scale = 2 }}
"""


@pytest.mark.parametrize(
    "text",
    [
        EXTENDING + "experts.sensor.channel.noise = 0.3",
        EXTENDING + "experts.sensor.channel.service.sigma = 0.3",
        EXTENDING + "experts.sensor.channel.outages.1.0 = 2.5",
        EXTENDING + 'experts."a second".channel.cost_per_point.values.0 = 0.3',
        EXTENDING + "optimizers.sparq.schedule.factor = 2.0",
        EXTENDING + 'optimizers = ["uniform"]\nwithout = ["sweep"]',
        SHARING,
        SHARING.replace('kind = "matern-5/2", ', "").replace("var", 'kind = "matern-3/2", var'),
        SMALL.replace('kind = "synthetic"', 'kind = "recorded", files = "a.csv", years = 2016'),
    ],
)
def test_a_table_that_is_laid_over_another_fits_the_schema_in_part(
    validator: Any, tmp_path: Path, text: str
) -> None:
    Scenario.load(write(tmp_path, text))
    validator.validate(tomllib.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        EXTENDING + "experts.sensor.channel.nois = 0.3",
        EXTENDING + "experts.sensor.channel.service.sigmas = 0.3",
        EXTENDING + 'experts.sensor.channel.outages.1.0 = "late"',
        EXTENDING + 'experts.sensor.channel.noise = "much"',
        EXTENDING + 'experts.sensor.kind = "trooth"',
        EXTENDING + 'optimizers.sparq.schedule.factor = "x"',
        EXTENDING + 'optimizers = ["unifrom"]',
        EXTENDING + "round = 5",
        EXTENDING + 'rounds = "5"',
        SHARING.replace("variance", "varianse"),
        SHARING.replace("length_scale", "length_scales"),
        SHARING.replace("matern-5/2", "matern-6/2"),
        SHARING.replace('kind = "gp-ucb", ', ""),
        SHARING.replace("optimizer_defaults.kernel", "thinking"),
        SMALL.replace('{ kind = "synthetic" }', "{ variance = 2 }"),
        PARTIAL,
        SMALL.replace("optimizers", "optimizer"),
        SMALL + 'experts.a = { kind = "truth", channel.transit = { high = 2 } }',
        SMALL + "experts.a.channel.noise = 2",
    ],
)
def test_a_mistake_does_not_fit_the_schema(validator: Any, tmp_path: Path, text: str) -> None:
    assert problems(write(tmp_path, text))
    assert not validator.is_valid(tomllib.loads(text))
