"""Files: read scenario files, the files that they extend, and overrides, as layers."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sparq_sim.errors import ScenarioError
from sparq_sim.fields import ScenarioString
from sparq_sim.limits import MOST_BYTES, MOST_TEXT
from sparq_sim.scenario.bundled import find_bundled, find_file, find_homes
from sparq_sim.scenario.layers import Layer, Layers, stack
from sparq_sim.scenario.tables import Keys, format_value, join_path
from sparq_sim.scenario.toml_lines import find_lines

__all__ = ["FILE_FIELDS", "read_overrides", "read_scenario", "read_value"]

FILE_FIELDS = ("file", "files")
"""Fields that name files though they may be strings; all fields of paths name files, too."""

_LARGEST_WHOLE = 2**63 - 1
"""As TOML has it. What a play computes, and what it stores, cannot hold a larger one."""

_FEWER = f"give at most {MOST_TEXT:,}"


def read_scenario(
    source: str | Path, overrides: Sequence[str] = (), *, allow_outside: bool = False
) -> Layers:
    """Read a scenario file, what it extends, and overrides.

    Args:
        source: The path of a file, or the name of a bundled scenario.
        overrides: Fields to set, each FIELD=VALUE; they win over the files.
        allow_outside: Whether files may name others that are not in their own folder.

    Returns:
        The values as they are written, not yet checked by any model.

    Raises:
        ScenarioError: A file cannot be read or is not TOML, or an override is none.
    """
    layers: list[Layer] = []
    chain: list[Path] = []
    file = find_file(source)
    extends: Any = ""
    while extends is not None:
        homes = None if allow_outside else (file.parent, *find_homes())
        layer = _read_file(file, homes)
        if (real := file.resolve()) in chain:
            raise ScenarioError(
                f"{layers[-1].where(('extends',))}: extends: {extends!r}: extends itself; "
                f"take one out of: {', '.join(str(path) for path in [*chain, real])}"
            )
        chain.append(real)
        layers.append(layer)
        extends = layer.values.pop("extends", None)
        if extends is not None:
            file = _find_extended(extends, file, layer, homes)
    problems: list[str] = []
    layers.reverse()
    for text in overrides:
        try:
            layers.append(_read_override(text))
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(*problems)
    return stack(layers)


def read_overrides(overrides: Sequence[str]) -> Layers:
    """Read *overrides* alone, each FIELD=VALUE.

    Args:
        overrides: The overrides, in the order in which they apply.

    Raises:
        ScenarioError: An override has no field or no value, or is not TOML.
    """
    return Layers([_read_override(text) for text in overrides])


def read_value(text: str) -> object:
    """Read the *text* of a value as an override has it: as TOML, or else as a string.

    Args:
        text: The value alone.

    Raises:
        ScenarioError: It begins like TOML, and is none.
    """
    value: object = read_overrides([f"value={text}"]).values["value"]
    return value


def _read_override(text: str) -> Layer:
    """Read FIELD=VALUE; a value that neither is TOML nor looks like it is a string."""
    name = f"--set {text}"
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or "\n" in text:
        raise ScenarioError(f"{name}: expected FIELD=VALUE, as in seed=3")
    find_lines(text, name)  # Refuses what is nested too deep.
    try:
        return _check_sizes(Layer(name, tomllib.loads(text)))
    except (ValueError, RecursionError, OverflowError) as error:
        if value.strip()[:1] in ("[", "{", '"', "'"):
            raise ScenarioError(f"{name}: not TOML: {error}") from error
    try:
        return Layer(name, tomllib.loads(f"{key}={json.dumps(value.strip(), ensure_ascii=False)}"))
    except ValueError as error:
        raise ScenarioError(f"{name}: {key.strip()} is no path of fields: {error}") from error


def _find_extended(extends: Any, file: Path, layer: Layer, homes: Sequence[Path] | None) -> Path:
    """Find the file that *file* extends: anywhere if it is called as a scenario is."""
    where = layer.where(("extends",))
    if not isinstance(extends, str) or not extends or "\0" in extends:
        raise ScenarioError(f"{where}: extends: {format_value(extends)}: expected a file or a name")
    beside = file.parent / extends
    try:
        found = beside if beside.is_file() else find_file(extends)
    except (ScenarioError, OSError) as error:
        raise ScenarioError(f"{where}: extends: {error}") from error
    found = found if found.is_absolute() else file.parent / extends
    if not found.exists():
        hint = _suggest_bundled(Path(extends)) or f"it was looked for at {found}"
        raise ScenarioError(f"{where}: extends: {extends!r}: no such file; {hint}")
    if found.suffix != ".toml":
        try:
            ScenarioString.within(file.parent, extends, homes=homes).read_path()
        except ValueError as error:
            raise ScenarioError(f"{where}: extends: {extends!r}: {error}") from error
    if found.exists() and not found.is_file():
        raise ScenarioError(
            f"{where}: extends: {extends!r}: is no file, but a folder, a device or a pipe; name a "
            "scenario file"
        )
    return found


def _read_file(file: Path, homes: Sequence[Path] | None) -> Layer:
    text = _read_text(file)
    lines = find_lines(text, str(file))
    try:
        values = tomllib.loads(text)
    # Besides TOMLDecodeError: whole numbers of too many digits, and dates that are none.
    except (ValueError, RecursionError, OverflowError) as error:
        raise ScenarioError(f"{file}:{_locate_mistake(str(error), text)}") from error
    layer = Layer(str(file), values, {(): 1, **lines})
    return _check_sizes(replace(layer, values=_Reader(layer, file.parent, homes).read(values)))


def _read_text(file: Path) -> str:
    try:
        if file.is_dir():
            raise ScenarioError(f"{file}: is a folder; name a file in it")
        with file.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        hint = _suggest_bundled(file) or "check the path"
        raise ScenarioError(f"{file}: cannot be read: {error.strerror}; {hint}") from error
    except ValueError as error:  # A null character in the path.
        raise ScenarioError(f"{str(file)!r}: cannot be read: {error}; check the path") from error
    if len(content) > MOST_BYTES:
        raise ScenarioError(
            f"{file}: is larger than 500 kB, too large for a scenario; keep data in other files"
        )
    try:
        # Some editors on Windows begin a file with a byte order mark.
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ScenarioError(
            f"{file}:{line}: not a text in UTF-8 (byte {content[error.start]:#04x}); "
            "save it in that encoding"
        ) from error


def _suggest_bundled(file: Path) -> str:
    """Name the bundled scenario that is called as a *file* that is not there."""
    name = file.with_suffix("").as_posix()
    known = file.suffix == ".toml" and not file.exists() and name in find_bundled()
    return f"the bundled scenario is called {name!r}, without .toml" if known else ""


def _locate_mistake(message: str, text: str) -> str:
    """Return the line of what is not TOML, and the *message* of tomllib about it."""
    if at := re.search(r" \(at line (\d+), column (\d+)\)$", message):
        return f"{at[1]}: not TOML: {message[: at.start()]} at column {at[2]}"
    # The end of the document, or no position at all.
    line = text.count("\n") + 1 if message.endswith("(at end of document)") else 1
    return f"{line}: not TOML: {message}"


def _check_sizes(layer: Layer) -> Layer:
    """Refuse whole numbers of more than 64 bits, and texts and names that nobody would write."""

    def refuse(keys: Keys, reason: str) -> ScenarioError:
        place = join_path([format_value(key)[1:-1] for key in keys])
        return ScenarioError(f"{layer.where(keys)}: {place}: {reason}")

    def check(value: Any, keys: Keys) -> None:
        match value:
            case dict():
                for key, inner in value.items():
                    if len(key) > MOST_TEXT:
                        raise refuse((*keys, key), f"a name of {len(key):,} characters; {_FEWER}")
                    check(inner, (*keys, key))
            case list():
                for inner in value:
                    check(inner, keys)
            case str() if len(value) > MOST_TEXT:
                raise refuse(keys, f"a text of {len(value):,} characters; {_FEWER}")
            case int() if abs(value) > _LARGEST_WHOLE:
                raise refuse(
                    keys,
                    "a whole number of more than 64 bits; give a smaller one, or one with a "
                    "decimal point",
                )

    check(layer.values, ())
    return layer


@dataclass(frozen=True)
class _Reader:
    """Makes the strings of a file know its folder: a field of paths seeks relative ones there.

    Under `file` and `files` that is done now, because they may be fields of strings, such as
    patterns.
    """

    layer: Layer
    folder: Path
    homes: Sequence[Path] | None

    def read(self, value: Any, keys: Keys = ()) -> Any:
        if isinstance(value, dict):
            return {key: self.read(inner, (*keys, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.read(inner, (*keys, str(i))) for i, inner in enumerate(value)]
        if not isinstance(value, str):
            return value
        written = ScenarioString.within(self.folder, value, homes=self.homes)
        return self._find_file(written, keys) if self._names_file(keys) else written

    def _names_file(self, keys: Keys) -> bool:
        names = (key for key in reversed(keys) if not key.isdecimal())
        # "a.b.file" is a path of fields, in a sweep.
        return next(names, "").rpartition(".")[2] in FILE_FIELDS

    def _find_file(self, written: ScenarioString, keys: Keys) -> str:
        try:
            return written.read_path()
        except ValueError as error:
            place = f"{self.layer.where(keys)}: {join_path(keys)}: {format_value(str(written))}"
            raise ScenarioError(f"{place}: {error}") from error
