"""The reference lists what users are told to import, and reads as it stands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from inspect import unwrap
from itertools import filterfalse
from pathlib import Path

import pytest

import sparq_sim
from reproduce import DOCS, ROOT, check, reference
from sparq_sim.errors import SparqError

PAGE = reference.PAGE.read_text(encoding="utf-8")
LISTED = {entry.path for entry in reference.list_page(PAGE)}
MODULES = {entry.module for entry in reference.list_page(PAGE)}
TOLD = [ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("guides/*.md")]
OURS = re.compile(r"\bsparq_(?:sim|experts|environments)(?:\.\w+)+")


def imported(page: Path) -> Iterator[str]:
    """Yield what the Python blocks of a page import from us, by its whole name."""
    for block in check.read_blocks(page):
        if block.language != "python":
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and OURS.match(f"{node.module}."):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def named(page: Path) -> Iterator[str]:
    """Yield the modules of ours that the text of a page names."""
    for found in OURS.findall(page.read_text(encoding="utf-8")):
        parts = found.split(".")
        modules = (".".join(parts[:size]) for size in range(len(parts), 1, -1))
        yield from [module for module in modules if _is_module(module)][:1]


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _is_listed(name: str) -> bool:
    """Tell whether a name, or the module that it is, is listed, or the same under `sparq_sim`."""
    if name in LISTED | MODULES:
        return True
    module, _, own = name.rpartition(".")
    shared = own in sparq_sim.__all__
    return shared and getattr(import_module(module), own) is getattr(sparq_sim, own)


@pytest.mark.parametrize("page", TOLD, ids=lambda page: page.name)
def test_what_a_page_tells_users_to_import_is_listed(page: Path) -> None:
    assert [name for name in imported(page) if not _is_listed(name)] == []


@pytest.mark.parametrize("page", TOLD, ids=lambda page: page.name)
def test_the_modules_that_a_page_names_are_listed(page: Path) -> None:
    outer = {*filterfalse(reference.is_inner, reference.list_modules())}
    known = outer | {name.rpartition(".")[0] for name in MODULES}
    assert set(named(page)) - known == set()


def test_each_public_name_is_listed() -> None:
    assert check.find_unlisted() == []


def test_each_public_module_says_what_is_public() -> None:
    without = [
        name for name in reference.list_modules() if not hasattr(import_module(name), "__all__")
    ]
    assert without == []


def test_the_public_names_of_each_module_are_listed_unless_only_other_modules_use_them() -> None:
    listed = [entry.value for entry in reference.list_page(PAGE)]
    for module in filterfalse(reference.is_inner, reference.list_modules()):
        for name in reference.list_names(module):
            value = unwrap(getattr(import_module(module), name))
            assert any(each is value for each in listed), f"{module}.{name}"


def test_what_only_other_modules_use_exists() -> None:
    for room in reference.INNER:
        assert find_spec(room.rstrip(".")) is not None


def test_each_line_of_the_reference_has_a_sentence() -> None:
    """But for the fields of plain classes, which the class tells of."""
    lines = [line for line in PAGE.splitlines() if line.startswith("- ")]
    assert [line for line in lines if not re.search(r"`\)?: .*[.:…]$", line)] == []


def test_a_model_is_listed_with_its_kind_its_fields_and_their_sentences() -> None:
    lines = reference.format_markdown(
        "names", "sparq_sim.simulation.channel.noise | Noise; StudentT"
    ).splitlines()
    assert lines[-1].startswith("  - `freedom: float = 3.0`: Degrees of freedom, above 2;")
    assert (
        "  - `std: ModestAmount`: The true std of an error, in reward units; the same everywhere."
        in lines
    )
    assert any(
        line.startswith("  - `.units(rng: Generator, count: int) -> Values`: Draw ")
        for line in lines
    )
    assert any(
        line.startswith("- `class StudentT(Noise)` (`student-t`): Heavy-tailed") for line in lines
    )


def test_a_function_is_listed_with_its_signature() -> None:
    assert reference.format_markdown(
        "names", "sparq_sim.simulation.measures | staleness"
    ).startswith(
        "- `staleness(trace: Trace, source: str | None = None) -> Values`: Compute how old each"
    )


def test_sphinx_is_told_to_show_the_same_names() -> None:
    assert reference.format_directives("names", "sparq_sim.landscapes.drift").splitlines()[2:] == [
        "```{eval-rst}",
        ".. autoclass:: sparq_sim.landscapes.drift.Drift",
        ".. autofunction:: sparq_sim.landscapes.drift.measure_drift",
        "```",
    ]


@pytest.mark.parametrize(
    ("marker", "given", "told"),
    [
        (
            "names",
            "sparq_sim.landscapes.drift | Drif",
            "sparq_sim.landscapes.drift has no public 'Drif'.*'Drift'",
        ),
        ("plugins", "draw", "no plug-ins of the kind 'draw'"),
    ],
)
def test_what_is_not_there_is_not_listed(marker: str, given: str, told: str) -> None:
    with pytest.raises(SparqError, match=told):
        reference.list_entries(marker, given)
