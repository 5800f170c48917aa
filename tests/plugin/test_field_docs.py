"""Each field of a scenario file has a sentence, which the schema and the screen show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from pydantic import Field

from sparq_sim import Channel, Expert
from sparq_sim.plugin.contract import Model
from sparq_sim.plugin.field_docs import read_field_docs, read_own_doc
from sparq_sim.scenario.schema import build_schema


def properties(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each property of a JSON schema by its path."""
    if isinstance(node, list):
        for place, inner in enumerate(node):
            yield from properties(inner, f"{path}/{place}")
    if not isinstance(node, dict):
        return
    for key, inner in node.items():
        if key == "properties":
            for name, described in inner.items():
                yield f"{path}/{name}", described
                yield from properties(described, f"{path}/{name}")
        elif key not in ("default", "const", "enum"):
            yield from properties(inner, f"{path}/{key}")


def wrong(text: str) -> bool:
    return len(text.split()) < 3 or not text.endswith(".") or bool(re.search(r"\s{2}|\n", text))


def test_each_field_of_a_scenario_file_has_a_sentence_in_the_schema() -> None:
    found = dict(properties(build_schema()))
    assert len(found) > 300
    assert {path: text for path, node in found.items() if wrong(text := _said(node))} == {}


def _said(node: dict[str, Any]) -> str:
    return str(node.get("description", ""))


class Oracle(Expert):
    """Knows what will be.

    Nobody believes it.
    """

    sight: float = 2.0
    """How far it sees,
    in clock units."""
    fee: float = Field(default=0.0, description="What it wants in advance.", alias="price")
    """Not shown: a description is there."""
    name: str = "Pythia"


class Blind(Oracle):
    sight: float = 0.0


def test_the_fields_of_a_plug_in_are_described_by_what_stands_below_them_or_by_field() -> None:
    found = Oracle.model_json_schema()["properties"]
    assert found["sight"]["description"] == "How far it sees, in clock units."
    assert found["price"]["description"] == "What it wants in advance."
    assert "description" not in found["name"]


def test_a_field_that_is_declared_anew_keeps_the_sentence_of_its_base() -> None:
    assert read_field_docs(Blind)["sight"] == "How far it sees, in clock units."


def test_a_class_within_a_function_has_the_sentences_of_its_own() -> None:
    class Oracle(Model):
        sight: float = 2.0
        """Another sentence."""

    assert read_field_docs(Oracle) == {"sight": "Another sentence."}


def test_a_kind_is_described_as_the_model_that_it_chooses() -> None:
    class Chosen(Model):
        """What is chosen
        by its kind.

        And more.
        """

        kind: Literal["chosen"] = "chosen"

    assert read_field_docs(Chosen) == {"kind": "What is chosen by its kind."}


@pytest.mark.parametrize("module", ["__main__", "tests.nowhere"])
def test_a_class_without_a_source_has_a_schema_with_what_its_fields_describe(module: str) -> None:
    code = 'class Typed(Model):\n    a: int = 0\n    "A."\n    b: int = Field(0, description="B.")'
    names: dict[str, Any] = {"__name__": module, "Model": Model, "Field": Field}
    exec(code, names)
    found = names["Typed"].model_json_schema()["properties"]
    assert "description" not in found["a"]
    assert found["b"]["description"] == "B."


def test_help_explains_each_field_and_the_schema_keeps_the_written_docstring() -> None:
    class Timed(Model):
        """Takes its time.

        And says so.
        """

        lag: float = 1.0
        """How long it takes,
        in clock units."""
        bare: int = 0

    help_text = Timed.__doc__
    assert help_text == (
        "Takes its time.\n\nAnd says so.\n\nArgs:\n    lag: How long it takes, in clock units."
    )
    assert Timed().__doc__ == help_text
    assert read_own_doc(Timed) == "Takes its time.\n\nAnd says so."
    assert Timed.model_json_schema()["description"] == "Takes its time.\n\nAnd says so."
    assert "patience: How long after asking" in (Channel.__doc__ or "")
