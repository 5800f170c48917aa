"""The tables of the page on environments are what their commands print."""

from __future__ import annotations

import subprocess
import sys

import pytest
from numpy.random import Generator, Philox

from reproduce import DOCS, drift_table, ozone_table
from sparq_environments.recorded import Recorded
from sparq_sim.plugin import registry as plugins
from tests.environments.ozone import ozone_file

PAGE = (DOCS / "guides" / "environments.md").read_text(encoding="utf-8")
CHEAP = ("synthetic", "markov-gp", "sensor-network", "rod")


def rows(text: str) -> dict[str, list[str]]:
    """Return the cells of each row of a table in Markdown, by the first."""
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: others for first, *others in cells}


def on_the_page(name: str) -> dict[str, list[str]]:
    """Return the rows between the marks of a table."""
    return rows(PAGE.split(f"<!-- {name} table -->")[1].split("<!-- end -->")[0])


def numbers(cells: list[str]) -> list[float]:
    return [float(cell.replace(",", "")) for cell in cells]


def test_every_environment_has_a_section_and_a_picture() -> None:
    for name in plugins.list_simulated("environment"):
        assert f"\n### {name}\n" in PAGE
        picture = f"pictures/environments/{name}.svg"
        assert f"](../{picture})" in PAGE
        assert (DOCS / picture).read_text().startswith("<?xml")


def test_every_environment_that_needs_no_file_has_its_drift_in_the_table() -> None:
    measured = {row.split(",")[0] for row in on_the_page("drift")}
    assert measured == set(plugins.list_simulated("environment")) - {"recorded"}
    assert list(on_the_page("drift")) == list(drift_table.ROWS)


@pytest.mark.parametrize(
    "name",
    [*CHEAP, *(pytest.param(name, marks=pytest.mark.slow) for name in on_the_page("drift"))],
)
def test_the_drift_on_the_page_is_what_the_command_measures(name: str) -> None:
    ((_, (*found, tolerance)),) = rows(f"|\n|\n{drift_table.format_line(name)}").items()
    *said, said_tolerance = on_the_page("drift")[name]
    assert tolerance == said_tolerance
    # Three digits are written, and other builds may round otherwise.
    assert numbers(found) == pytest.approx(numbers(said), rel=0.01)


def test_the_synthetic_figures_on_the_page_are_what_the_command_prints() -> None:
    command = [sys.executable, "-m", "reproduce.ozone_table"]
    printed = rows(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert list(printed) == list(on_the_page("ozone"))
    for name, (_, said) in on_the_page("ozone").items():
        # Two digits are written, and other builds may round otherwise.
        assert numbers(printed[name]) == pytest.approx([float(said)], abs=0.011)


def test_the_real_figures_on_the_page_are_those_of_the_file() -> None:
    record = Recorded(files=(str(ozone_file()),)).start(Generator(Philox(key=0)))
    real = ozone_table.compute_figures(record, record.steps)
    said = {name: float(real) for name, (real, _) in on_the_page("ozone").items()}
    assert real == pytest.approx(said, abs=0.006)
