"""Create a plug-in package that works, or a scenario file, to start from."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from sparq_sim.errors import SparqError, did_you_mean
from sparq_sim.plugin.registry import Kind
from sparq_sim.scenario.scaffold.names import (
    check_spelling,
    find_plugin_objections,
    find_scenario_objections,
    to_class_name,
    to_module_name,
)

__all__ = ["Creatable", "create"]

Creatable: TypeAlias = Literal["environment", "expert", "optimizer", "scenario"]
"""What can be created."""

_TEMPLATES = Path(__file__).parent / "templates"
_DOES: dict[Kind, str] = {
    "environment": "is a drifting hill",
    "expert": "knows the reward as it was a while ago",
    "optimizer": "stays near the best point it knows of",
}
"""What the plug-in of each kind does, as its package says it."""


def create(kind: Creatable, name: str, folder: Path) -> list[Path]:
    """Write a plug-in package into `folder/name`, or a scenario into `folder/name.toml`.

    Args:
        kind: What to create.
        name: What it is called: lower-case words joined by dashes.
        folder: Where to put it; the folder must exist.

    Returns:
        The files written.

    Raises:
        SparqError: The name or the place cannot be used, or a file cannot be written; nothing is
            left behind.
    """
    known = [*_DOES, "scenario"]
    if kind not in known:
        raise SparqError(f"cannot make a new {kind!r}: {did_you_mean(str(kind), known)}")
    check_spelling(name)
    if kind == "scenario":
        home, target = folder, folder / f"{name}.toml"
        files = _render({target.name: "scenario.toml"}, name=name)
        objections = find_scenario_objections(name)
    else:
        home = target = folder / name
        files = _render_package(kind, name)
        objections = find_plugin_objections(kind, name, files)
    if objection := next(objections, None):
        raise SparqError(f"{name!r} cannot name a new {kind}: {objection}; use another name")
    _check_place(folder, target)
    return _write(home, files)


def _render_package(kind: Kind, name: str) -> dict[str, str]:
    """Return the text of each file of a plug-in package."""
    module = to_module_name(name)
    templates = {
        "pyproject.toml": "package/pyproject.toml",
        "README.md": "package/README.md",
        f"{module}.py": f"{kind}/plugin.py",
        f"test_{module}.py": f"{kind}/tests.py",
        "scenario.toml": f"{kind}/scenario.toml",
    }
    model = to_class_name(name)
    return _render(templates, kind=kind, name=name, module=module, model=model, does=_DOES[kind])


def _render(templates: Mapping[str, str], **words: str) -> dict[str, str]:
    """Return the text of each file, made from its template with *words* in place of variables."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True
    )
    return {
        file: environment.get_template(f"{template}.jinja").render(words)
        for file, template in templates.items()
    }


def _check_place(folder: Path, target: Path) -> None:
    """Check that *folder* is one, and that in it *target* is free: absent, or an empty folder."""
    try:
        if not folder.is_dir():
            raise SparqError(f"{folder}: no such folder; make it first, or name another")
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise SparqError(f"{target}: exists already; move it, or use another name")
    except OSError as error:
        place = error.filename or target
        raise SparqError(f"{place}: cannot be read: {error.strerror}; name another") from error


def _write(home: Path, files: Mapping[str, str]) -> list[Path]:
    """Write *files* into *home*: all of them, or none."""
    fresh = not home.exists()
    written: list[Path] = []
    try:
        home.mkdir(exist_ok=True)
        for name, text in files.items():
            with (home / name).open("x", encoding="utf-8", newline="\n") as stream:
                written.append(home / name)
                stream.write(text)
    except OSError as error:
        with suppress(OSError):
            for file in written:
                file.unlink()
            if fresh:
                home.rmdir()
        place = error.filename or home
        raise SparqError(
            f"{place}: cannot be written: {error.strerror}; fix that, or name another folder"
        ) from error
    return written
