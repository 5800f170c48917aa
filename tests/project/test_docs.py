"""The blocks of README and of the documentation do what they say, and what checks them does too."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from reproduce import check


def test_the_blocks_of_readme_and_documentation_do_what_they_say() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "reproduce.check"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "README.md: " in ran.stdout


WHOLE = """
rounds = 5
environment.kind = "synthetic"
optimizers = ["uniform"]
"""
OWN = '''
from sparq_sim import Estimate, Expert

class {name}(Expert):
    """Knows nothing."""

    async def answer(self, query, world):
        return Estimate(0.0 * query.points[:, 0])
'''
ENTRY = """
[project.entry-points."sparq_sim.experts"]
{name} = "my_package:{model}"
"""


def found(folder: Path, *blocks: tuple[str, str]) -> tuple[int, str | None]:
    """Check a page of *blocks*, each an opening line and a text."""
    page = folder / "page.md"
    page.write_text("".join(f"```{opening}\n{text.strip()}\n```\n\n" for opening, text in blocks))
    checked, wrong = check.check_page(page)
    return checked, wrong and wrong.removeprefix(f"{page}:")


@pytest.mark.parametrize(
    "blocks",
    [
        [("toml", WHOLE)],
        [("toml", "[experts.other]\nkind = 'lagged'\nlag = 3.0")],
        [("toml", "[experts.sensor.channel]\ntransit = 2.0")],
        [("toml", "[sweep]\n'experts.sensor.channel.loss' = [0.0, 0.5]")],
        [("toml", '[environment]\nkind = "recorded"\nfiles = ["data/ad_viz_*.csv"]')],
        [("toml", "[experts.lab]\nkind = 'http'\nurl = 'https://lab.example/'")],
        [("toml refused", WHOLE.replace("5", "-5"))],
        [("toml refused", "rounds = = 5")],
        [("json message", '{"type": "later", "id": "a", "seconds": 5}')],
    ],
)
def test_a_scenario_or_a_part_of_one_that_plays_is_right(
    tmp_path: Path, blocks: list[tuple[str, str]]
) -> None:
    assert found(tmp_path, *blocks) == (1, None)


@pytest.mark.parametrize(
    ("opening", "text", "told"),
    [
        ("toml", WHOLE.replace("rounds", "round"), r"page.toml:2: round: .*did you mean 'rounds'"),
        ("toml", "[experts.other]\nkind = 'laged'", r"page.toml:3: .*did you mean 'lagged'"),
        ("toml", "[experts.sensor.channel]\ntransit = -1", r"page.toml:3: .*transit"),
        ("toml", "[sweep]\n'experts.nobody.channel.loss' = [0.0]", "nobody"),
        ("toml", '[environment]\nkind = "recorded"\nfiles = ["else/*.csv"]', "no file matches"),
        ("toml", "rounds = = 5", "Invalid value"),
        ("toml refused", WHOLE, "is marked 'refused', and is not refused"),
        ("json message", '{"type": "later", "id": "a"}', "it sent a later without seconds"),
        ("json message", "later", "it sent no JSON"),
        ("toml refuted", WHOLE, "no block is marked 'refuted', only 'refused'"),
    ],
)
def test_a_scenario_or_a_part_of_one_that_does_not_play_is_told_with_its_line(
    tmp_path: Path, opening: str, text: str, told: str
) -> None:
    checked, wrong = found(tmp_path, (opening, text))
    assert checked == 0
    assert re.match(rf"2: .*{told}", str(wrong), re.DOTALL), wrong


# Plug-ins of a page


def own(name: str, model: str) -> list[tuple[str, str]]:
    """A page that announces an expert *name*, and has one whose class is called Hermit."""
    return [("toml", ENTRY.format(name=name, model=model)), ("python", OWN.format(name="Hermit"))]


def test_a_scenario_may_use_a_plug_in_of_its_page(tmp_path: Path) -> None:
    used = ("toml", "[experts.other]\nkind = 'hermit'")
    assert found(tmp_path, *own("hermit", "Hermit"), used) == (3, None)
    assert "my_package" not in sys.modules
    assert "no expert is called 'hermit'" in str(found(tmp_path, used)[1])


def test_a_scenario_that_plays_and_that_editors_would_mark_is_told(tmp_path: Path) -> None:
    entry, (language, text) = own("hermit", "Hermit")
    text += "\n    voice: type = str\n"  # No schema describes it.
    _, wrong = found(tmp_path, entry, (language, text), ("toml", "experts.other.kind = 'hermit'"))
    assert "the schema refuses $.experts.other: " in str(wrong)


@pytest.mark.parametrize(
    ("name", "model", "told"),
    [
        ("lagged", "Hermit", "expert 'lagged' is claimed twice"),
        ("hermit", "Hermits", "cannot be loaded: AttributeError"),
        ("hermit", "Estimate", "is no subclass of sparq_sim.Expert"),
    ],
)
def test_an_entry_point_that_cannot_be_installed_as_it_stands_is_told(
    tmp_path: Path, name: str, model: str, told: str
) -> None:
    _, wrong = found(tmp_path, *own(name, model))
    assert str(wrong).startswith("2: ")
    assert told in str(wrong)


def test_an_entry_point_among_no_plug_ins_is_told(tmp_path: Path) -> None:
    entry = ENTRY.format(name="hermit", model="Hermit").replace("experts", "exports")
    _, wrong = found(tmp_path, ("toml", entry))
    assert wrong == "2: plug-ins are not sought in 'sparq_sim.exports'"


def test_a_class_called_as_a_bundled_one_is_told(tmp_path: Path) -> None:
    _, wrong = found(tmp_path, ("python", OWN.format(name="Lagged")))
    assert wrong == "4: a bundled expert is called Lagged too"
