"""Commands about what is installed: `list` and `show`."""

from __future__ import annotations

import json
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparq_sim.cli.completion import complete_thing, complete_thing_name
from sparq_sim.cli.options import AllowImport, AllowOutside, Overrides, load_scenario
from sparq_sim.cli.output import cut, emit, say
from sparq_sim.errors import SparqError

if TYPE_CHECKING:
    from sparq_sim.plugin.registry import AnyKind

__all__ = ["KINDS", "Listing", "list_installed", "show"]

KINDS: dict[str, AnyKind] = {
    "environments": "environment",
    "experts": "expert",
    "optimizers": "optimizer",
    "draws": "draw",
    "noises": "noise",
    "losses": "loss",
    "faults": "fault",
    "kernels": "kernel",
    "priors": "prior",
    "widths": "width",
    "lengths": "length",
    "schedules": "schedule",
    "routings": "routing",
}
"""The kinds of plug-ins, by their plural."""


class Listing(StrEnum):
    """What `list` can list."""

    ENVIRONMENTS = "environments"
    EXPERTS = "experts"
    OPTIMIZERS = "optimizers"
    SCENARIOS = "scenarios"
    DRAWS = "draws"
    NOISES = "noises"
    LOSSES = "losses"
    FAULTS = "faults"
    KERNELS = "kernels"
    PRIORS = "priors"
    WIDTHS = "widths"
    LENGTHS = "lengths"
    SCHEDULES = "schedules"
    ROUTINGS = "routings"


def list_installed(
    what: Annotated[
        Listing | None, typer.Argument(help="What to list; everything by default.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: a list of objects, one a thing.")
    ] = False,
) -> None:
    """List installed scenarios and plug-ins, each with what it is in a line."""
    things = [
        {"kind": each.value, "name": name, "about": _describe(each, name)}
        for each in (Listing if what is None else [what])
        for name in _list_names(each)
    ]
    if as_json:
        emit(json.dumps(things, indent=2))
        return
    width = max((len(each["name"]) for each in things), default=0)
    for kind, alike in groupby(things, key=itemgetter("kind")):
        if what is None:
            say(f"{kind}:")
        for each in alike:
            line = f"{each['name']:{width}}  {each['about']}".rstrip()
            say(cut(f"  {line}" if what is None else line))


def show(
    what: Annotated[
        str,
        typer.Argument(
            help="A scenario; or environment, expert, optimizer, kernel ...",
            autocompletion=complete_thing,
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Argument(
            help="Name of the plug-in; or a field of it, as in plume.wind.gusts.",
            autocompletion=complete_thing_name,
        ),
    ] = None,
    overrides: Overrides = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the environment into this file: .html, .png, .svg or .pdf."),
    ] = None,
    horizon: Annotated[float, typer.Option(help="Last time to draw, in clock units.")] = 100.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the environment to draw.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a scenario as JSON; by default, as TOML.")
    ] = False,
    allow_import: AllowImport = False,
    allow_outside: AllowOutside = False,
) -> None:
    """Show a scenario with all defaults, or a plug-in with all its fields.

    With --plot, draw an environment.
    """
    sort = KINDS.get(what) or next((each for each in KINDS.values() if each == what), None)
    if plot is not None and sort != "environment":
        raise SparqError(f"--plot draws environments only: `show environment KIND --plot {plot}`")
    if sort is not None:
        if kind is None:
            raise SparqError(f"say which {sort}; there are: {', '.join(_list_plugins(sort))}")
        if plot is None:
            _show_plugin(sort, kind, allow_import=allow_import)
        else:
            from sparq_sim.report.environment import portray
            from sparq_sim.scenario.loading import make_environment

            made = make_environment(kind, overrides or (), allow_import=allow_import)
            say(str(portray(made, plot, name=kind, horizon=horizon, seed=seed)))
    else:
        from sparq_sim.scenario.toml_text import write_toml_table

        data = load_scenario(
            what, overrides, allow_import=allow_import, allow_outside=allow_outside
        ).resolve()
        emit(json.dumps(data, indent=2) if as_json else write_toml_table(data).rstrip("\n"))


def _list_names(what: Listing) -> list[str]:
    if what is Listing.SCENARIOS:
        from sparq_sim.scenario.bundled import find_bundled

        return sorted(find_bundled())
    return _list_plugins(KINDS[what.value])


def _describe(what: Listing, name: str) -> str:
    """Return the title of a scenario, or the first line of the docstring of a plug-in."""
    from sparq_sim.plugin.field_docs import read_own_doc

    try:
        if what is Listing.SCENARIOS:
            from sparq_sim.scenario.files import read_scenario

            return str(read_scenario(name).values.get("title", ""))
        from sparq_sim.plugin.registry import load

        model = load(KINDS[what.value], name)
    except SparqError as error:
        return str(error).splitlines()[0]
    return read_own_doc(model).partition("\n")[0]


def _list_plugins(kind: AnyKind) -> list[str]:
    from sparq_sim.plugin import registry as plugins

    return plugins.list_names(kind)


def _show_plugin(kind: AnyKind, name: str, *, allow_import: bool) -> None:
    from sparq_sim.cli.describe import describe_fields, describe_itself, describe_path
    from sparq_sim.plugin.registry import load

    plugin, path = name, ""
    if ":" not in name and name not in _list_plugins(kind):
        plugin, _, path = name.partition(".")
    model = load(kind, plugin, allow_import=allow_import)
    if path:
        lines = describe_path(model, path)
    else:
        lines = [*describe_itself(model), "", *describe_fields(model)]
    emit("\n".join([name, "", *lines]))
