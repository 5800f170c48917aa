from __future__ import annotations

import pickle
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import BeforeValidator, Field, FilePath, ValidationError

from sparq_sim import Channel, Expert, Rules
from sparq_sim.fields import Amount, Quantity, ScenarioString
from sparq_sim.optimizers.shared.schedules import ConstantSchedule, EverySchedule
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.plugin.contract import Model
from sparq_sim.simulation.channel.draws import Exponential, Uniform


class Sensor(Expert):
    """Has fields of all sorts."""

    count: int = 1
    share: float = 1.0
    either: int | float | str = 1
    on: bool = False
    numbers: tuple[int, ...] = ()
    by_name: dict[str, float] = Field(default_factory=dict)
    seconds: Annotated[
        float, BeforeValidator(lambda given: float(str(given).removesuffix("s")))
    ] = 1


class Library(Model):
    """Has paths of all sorts."""

    book: Path | None = None
    shelf: tuple[Path, ...] = ()
    by_name: dict[str, Path] = Field(default_factory=dict)
    there: FilePath | None = None
    catalogue: Path | Literal["none"] = "none"
    title: str = ""


def refused(model: type[Model], **given: Any) -> str:
    """Give what is said of the only field that is refused."""
    with pytest.raises(ValidationError) as error:
        model(**given)
    (detail,) = error.value.errors()
    return detail["msg"]


# Numbers and truth values


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("5", "should be a whole number; write 5 without quotes"),
        ("5.0", "should be a whole number; write 5 without quotes"),
        ("five", "should be a whole number"),
        (2.0, "should be a whole number; write 2"),
        (2.5, "should be a whole number"),
        (inf, "should be a whole number"),
        (True, "should be a whole number, not true or false"),
    ],
)
def test_what_is_no_whole_number_is_not_read_as_one(given: object, told: str) -> None:
    assert refused(Sensor, count=given) == told


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("3", "should be a number; write 3 without quotes"),
        (" 1e-3 ", "should be a number; write 1e-3 without quotes"),
        ("three", "should be a number"),
        (True, "should be a number, not true or false"),
    ],
)
def test_what_is_no_number_is_not_read_as_one(given: object, told: str) -> None:
    assert refused(Sensor, share=given) == told


@pytest.mark.parametrize(
    ("given", "told"),
    [("yes", "should be true or false, without quotes"), (1, "should be true or false")],
)
def test_what_is_no_truth_value_is_not_read_as_one(given: object, told: str) -> None:
    assert refused(Sensor, on=given) == told


def test_numbers_within_lists_and_tables_are_looked_at_too() -> None:
    assert "write 2" in refused(Sensor, numbers=[1, 2.0])
    assert "not true or false" in refused(Sensor, by_name={"a": True})
    assert "not true or false" in refused(Channel, outages=[(0, True)])
    assert "without quotes" in refused(Channel, policy={"rate": {"points": "3"}})


def test_a_whole_number_is_a_number_and_numbers_of_numpy_are_numbers() -> None:
    assert Rules(rounds=1, period=1).period == 1.0
    sensor = Sensor(count=np.int64(3), share=np.float32(0.5), on=np.True_)
    assert (sensor.count, sensor.share, sensor.on) == (3, 0.5, True)


def test_infinity_can_be_given_as_json_writes_it() -> None:
    assert Channel.model_validate({"patience": "inf"}).patience == inf


def test_a_field_of_several_types_takes_what_it_is_given() -> None:
    for given in (5, 5.0, "5"):
        taken = Sensor(either=given).either
        assert (taken, type(taken)) == (given, type(given))


def test_the_own_validators_of_a_field_come_first() -> None:
    assert Sensor.model_validate({"seconds": "3s"}).seconds == 3.0


def test_a_model_within_models_is_looked_at_once() -> None:
    """Each message once, however deep the nesting."""
    given = {"kind": "every", "rounds": 2, "schedule": {"kind": "constant", "count": "3"}}
    assert refused(SparQGPUCB, schedule=given).count("whole number") == 1
    assert (
        SparQGPUCB(schedule=EverySchedule(rounds=2, schedule=ConstantSchedule(count=3))).schedule(2)
        == 3
    )


# Tables with a kind


def test_a_number_for_a_table_with_a_kind_is_told_the_kinds() -> None:
    assert refused(SparQGPUCB, schedule=5) == (
        "should be a table with a kind; "
        "the kinds are: logarithmic, logarithmic-power, constant, every, windowed, guaranteed"
    )
    for field in ("kernel", "routing", "fitting.length_scale"):
        outer, _, inner = field.partition(".")
        given = {inner: 5} if inner else 5
        assert "should be a table with a kind; the kinds are: " in refused(
            SparQGPUCB, **{outer: given}
        )


def test_the_name_of_a_kind_alone_is_told_how_to_write_it() -> None:
    told = 'should be a table with a kind: write { kind = "cheapest" }'
    assert refused(SparQGPUCB, routing="cheapest") == told


def test_where_a_number_will_do_it_is_said() -> None:
    assert refused(Channel, transit="soon").startswith("should be a number, or a table with a kind")
    assert Channel(transit=2, service=Exponential(mean=1.0)).transit.expected == 2.0
    assert "not true or false" in refused(Uniform, low=0.0, high=True)


# Paths


def test_a_path_from_a_file_is_sought_from_its_folder(tmp_path: Path) -> None:
    def written(text: str) -> Any:
        return ScenarioString.within(tmp_path, text)

    (tmp_path / "there.csv").touch()
    library = Library(
        book=written("a.csv"),
        shelf=(written("b.csv"), written("/c.csv")),
        by_name={"d": written("d.csv")},
        there=written("there.csv"),
        catalogue=written("none"),
        title=written("e.csv"),
    )
    assert library.book == tmp_path / "a.csv"
    assert library.shelf == (tmp_path / "b.csv", Path("/c.csv"))
    assert library.by_name == {"d": tmp_path / "d.csv"}
    assert library.there == tmp_path / "there.csv"
    assert (library.catalogue, library.title) == ("none", "e.csv")


def test_a_path_in_python_is_taken_as_it_is() -> None:
    assert Library.model_validate({"book": "a.csv"}).book == Path("a.csv")


def test_a_string_from_a_file_keeps_its_folder_on_its_way_to_a_worker(tmp_path: Path) -> None:
    again = pickle.loads(pickle.dumps(ScenarioString.within(tmp_path, "a.csv")))
    assert again == "a.csv"
    assert again.path == str(tmp_path / "a.csv")


class Pump(Model):
    """Has quantities."""

    power: Annotated[Amount, Quantity("W", "plate on the pump", "from memory")] = 40.0
    """What it draws."""
    share: Annotated[float, Quantity("", standing="a guess")] = 0.5
    """How often it runs."""


def test_the_schema_of_a_quantity_has_its_unit_and_source() -> None:
    fields = Pump.model_json_schema()["properties"]
    assert fields["power"] == {
        "default": 40.0,
        "description": "What it draws. Unit: W.",
        "minimum": 0,
        "source": "plate on the pump",
        "standing": "from memory",
        "title": "Power",
        "type": "number",
        "unit": "W",
    }
    assert fields["share"]["description"] == "How often it runs."
    assert fields["share"]["standing"] == "a guess"
    assert not {"unit", "source"} & fields["share"].keys()


def test_a_quantity_changes_nothing_that_a_field_takes() -> None:
    assert Pump(power=3).power == 3
    with pytest.raises(ValidationError, match="should be a number; write 3 without quotes"):
        Pump.model_validate({"power": "3"})
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        Pump(power=-1)
