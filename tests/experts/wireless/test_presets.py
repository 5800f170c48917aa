"""Presets: every constant has a unit, a source and a sentence, and can be changed."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pydantic import TypeAdapter

from sparq_experts.wireless.presets import (
    AnyRadio,
    Ieee802154Cc2420,
    LoraSx1272Eu868,
    LoraWholeNode,
)
from sparq_experts.wireless.propagation import CastaliaLoss, LorasimLoss, OuluLoss
from sparq_experts.wireless.radio import Radio
from sparq_sim.fields import Quantity
from sparq_sim.plugin.field_docs import read_field_docs
from sparq_sim.plugin.model import Model

RADIOS: list[Radio] = [LoraSx1272Eu868(), LoraWholeNode(), Ieee802154Cc2420()]
PRESETS = [type(each) for each in RADIOS]
LOSSES: list[type[Model]] = [LorasimLoss, OuluLoss, CastaliaLoss]
NO_QUANTITIES = {"kind", "crc", "implicit_header"}


def quantity(model: type[Model], name: str) -> Quantity | None:
    found = (each for each in model.model_fields[name].metadata if isinstance(each, Quantity))
    return next(found, None)


def read(**given: Any) -> Any:
    return TypeAdapter[Radio](AnyRadio).validate_python(given)


@pytest.mark.parametrize("model", [*PRESETS, *LOSSES])
def test_every_constant_of_a_preset_has_a_unit_and_a_source(model: type[Model]) -> None:
    for name in model.model_fields.keys() - NO_QUANTITIES:
        found = quantity(model, name)
        assert found is not None, name
        assert found.source, name


@pytest.mark.parametrize("model", [*PRESETS, *LOSSES])
def test_every_field_of_a_preset_has_a_default_and_a_sentence(model: type[Model]) -> None:
    docs = read_field_docs(model)
    for name, info in model.model_fields.items():
        assert not info.is_required(), name
        assert name in docs


@pytest.mark.parametrize("model", PRESETS)
def test_the_schema_has_the_unit_of_each_draw(model: type[Model]) -> None:
    fields = model.model_json_schema()["properties"]
    for name in ("receive", "listen", "sleep", "compute"):
        assert fields[name]["unit"] == "W"
        assert fields[name]["source"]
        assert fields[name]["description"]
    assert fields["transmit_power"]["unit"] == "dBm"


def test_what_is_quoted_from_memory_says_so() -> None:
    threshold = quantity(Ieee802154Cc2420, "busy_threshold")
    assert threshold is not None
    assert "memory" in threshold.standing


@pytest.mark.parametrize("preset", RADIOS)
def test_a_preset_is_found_by_its_kind_and_changed_by_its_fields(preset: Radio) -> None:
    kind = preset.model_dump()["kind"]
    assert read(kind=kind) == preset
    assert read(kind=kind, sleep=1.0).sleep == 1
    assert pickle.loads(pickle.dumps(preset)) == preset
    assert {preset: 1}[read(kind=kind)] == 1
