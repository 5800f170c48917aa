"""Completion: what a shell offers for a word that is being typed; nothing heavy is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

__all__ = [
    "complete_field",
    "complete_figure",
    "complete_folder",
    "complete_scenario",
    "complete_swept",
    "complete_table",
    "complete_thing",
    "complete_thing_name",
]

_DESCRIPTION = "scenario.json"
"""The file by which the folder of a study is known."""
_DEPTH = 3
"""How deep below the folder in which one works studies are looked for."""


def complete_scenario(incomplete: str) -> list[str]:
    """Return the bundled scenarios, and the scenario files here, that begin like a word."""
    from sparq_sim.scenario.bundled import find_bundled

    return _begin_like(incomplete, [*find_bundled(), *_list_files(incomplete, "*.toml")])


def complete_folder(incomplete: str) -> list[str]:
    """Return the folders of studies, here and below, that begin like a word."""
    return _begin_like(incomplete, _list_studies(Path(incomplete)))


def complete_figure(incomplete: str) -> list[str]:
    """Return the kinds of figures."""
    from sparq_sim.report.figure_kinds import KINDS

    return _begin_like(incomplete, KINDS)


def complete_table(incomplete: str) -> list[str]:
    """Return the tables that can be exported."""
    from sparq_sim.report.figure_kinds import KINDS

    charts = [f"chart:{kind}" for kind in KINDS]
    return _begin_like(incomplete, ["summary", "rounds", "replies", "timeline", *charts])


def complete_thing(incomplete: str) -> list[str]:
    """Return what `show` can show: kinds of plug-ins, and scenarios."""
    from sparq_sim.cli.catalogue import KINDS

    return [*_begin_like(incomplete, KINDS.values()), *complete_scenario(incomplete)]


def complete_thing_name(context: typer.Context, incomplete: str) -> list[str]:
    """Return the plug-ins of the kind that is typed before."""
    from sparq_sim.cli.catalogue import KINDS
    from sparq_sim.plugin.registry import list_names

    what = str(context.params.get("what", ""))
    kind = KINDS.get(what, next((each for each in KINDS.values() if each == what), None))
    return [] if kind is None else _begin_like(incomplete, list_names(kind))


def complete_field(context: typer.Context, incomplete: str) -> list[str]:
    """Return the paths of fields of the scenario that is typed before, with "=" behind them."""
    from sparq_sim.errors import SparqError
    from sparq_sim.scenario.files import read_scenario
    from sparq_sim.simulation.rules import Rules

    source, *_ = [*_list_arguments(context, "scenario", "what"), ""]
    paths = [*Rules.model_fields, "seed", "replications", "record", "title"]
    with suppress(SparqError):  # What is there may still be wrong while it is being typed.
        paths += _list_paths(read_scenario(source).values)
    return _begin_like(incomplete, (f"{path}=" for path in paths))


def complete_swept(context: typer.Context, incomplete: str) -> list[str]:
    """Return the fields that are swept in the studies that are typed before."""
    from sparq_sim.documents import read_json_file

    found: list[str] = []
    for folder in _list_arguments(context, "folders"):
        try:
            described = read_json_file(Path(folder) / _DESCRIPTION)
            found += (path for play in described["plays"] for path in play["setting"])
        except (OSError, ValueError, LookupError, TypeError):
            continue  # It is no study, or not yet.
    return _begin_like(incomplete, found)


def _list_arguments(context: typer.Context, *names: str) -> list[str]:
    """Return what is typed for the first of some arguments that is there."""
    for name in names:
        if value := context.params.get(name):
            return (
                [str(each) for each in value] if isinstance(value, list | tuple) else [str(value)]
            )
    # Before an option that lacks its value, arguments have not been told apart yet.
    return [word for word in context.args if not word.startswith("-")]


def _begin_like(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in dict.fromkeys(words) if word.startswith(incomplete)]


def _list_files(incomplete: str, pattern: str) -> Iterator[str]:
    home = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    yield from (str(file) for file in sorted(home.glob(pattern)))
    yield from (f"{each}/" for each in sorted(home.glob("*")) if each.is_dir())


def _list_studies(begun: Path) -> Iterator[str]:
    home = begun if begun.is_dir() else begun.parent
    for depth in range(_DEPTH):
        pattern = "/".join([*["*"] * depth, _DESCRIPTION])
        yield from (str(file.parent) for file in sorted(home.glob(pattern)))


def _list_paths(table: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """List the paths of all values in tables within tables; keys with dots are left out."""
    for key, value in table.items():
        if "." in key:
            continue
        if isinstance(value, Mapping):
            yield from _list_paths(value, f"{before}{key}.")
        else:
            yield f"{before}{key}"
