"""Scenario files: TOML in layers, each of which knows the line of every key."""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache, reduce
from glob import glob
from hashlib import blake2b, file_digest
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from sparq_sim.errors import ScenarioError, did_you_mean
from sparq_sim.fields import ScenarioString

Keys: TypeAlias = tuple[str, ...]
"""Where a value is: keys of tables, and places in arrays from "0" on."""
Table: TypeAlias = dict[str, Any]

DEFAULTS = "optimizer_defaults"
"""The table of fields that all optimizers of a scenario share."""
WITHOUT = "without"
"""The field of a file that lists what is taken out of what it extends."""
MOST_BYTES = 1_000_000
MOST_LEVELS = 50
LARGEST_WHOLE = 2**1024
"""No field takes a larger number, not even as a float."""
FILE_FIELDS = ("file", "files")
"""Fields that name files though they may be strings; all fields of paths name files, too."""
GROUP = "sparq_sim.scenarios"
"""The entry points that name packages with scenario files in them."""


@dataclass(frozen=True)
class Layer:
    """Values from one place: a file, with the *lines* of its keys, or an override, with none."""

    name: str
    values: Table
    lines: Mapping[Keys, int] = field(default_factory=dict)
    left_out: Sequence[Keys] = ()
    """What is taken out of the layers below before its own values are laid on them."""

    def line(self, keys: Keys) -> int:
        """Give the line of *keys*, or of the nearest table around them."""
        known = (keys[:size] for size in range(len(keys), 0, -1))
        return next((self.lines[k] for k in known if k in self.lines), 1)

    def where(self, keys: Keys) -> str:
        """Name the place of *keys*."""
        return f"{self.name}:{self.line(keys)}" if self.lines else self.name

    def depth(self, keys: Keys) -> int:
        """Count how many of *keys*, one within the other, this layer has."""
        value: Any = self.values
        for count, key in enumerate(keys):
            value = entry(value, key)
            if value is ABSENT:
                return count
        return len(keys)


@dataclass(frozen=True)
class Layers:
    """Values from several places, of which later ones win."""

    layers: Sequence[Layer]

    @property
    def values(self) -> Table:
        """All values together."""
        table: Table = {}
        for layer in self.layers:
            table = merged(reduce(_taken_out, layer.left_out, table), layer.values)
        return table

    def giver(self, keys: Keys) -> Layer:
        """Find the layer that gave *keys*; of equals, the last."""
        return max(reversed(self.layers), key=lambda layer: layer.depth(keys))

    def order(self, keys: Keys) -> tuple[int, int]:
        """Order *keys* as one reads: by layer, from what was named first, and by line."""
        giver = self.giver(keys)
        return [layer is giver for layer in self.layers].index(True), giver.line(keys)


ABSENT = object()


def entry(value: Any, key: str) -> Any:
    """Give what is in a table or an array at *key*, or ABSENT."""
    if isinstance(value, dict):
        return value.get(key, ABSENT)
    if isinstance(value, list) and key.isdecimal() and key.isascii() and len(key) < 10:
        return value[int(key)] if int(key) < len(value) else ABSENT
    return ABSENT


def at_path(data: Any, path: str) -> Any:
    """Return what is at a *path* of data, or ABSENT."""
    for key in undotted(path):
        data = entry(data, key)
    return data


def without(data: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """Return a copy of *data* without what is at *paths*; in a list, its place stays."""
    copy: dict[str, Any] = deepcopy(dict(data))
    for path in paths:
        *outer, last = undotted(path)
        inner: Any = copy
        for key in outer:
            inner = entry(inner, key)
        if entry(inner, last) is ABSENT:
            continue
        if isinstance(inner, dict):
            del inner[last]
        else:
            inner[int(last)] = None
    return copy


def merged(base: Any, over: Any, keys: Keys = ()) -> Any:
    """Lay *over* on *base*: tables merge deeply, anything else is replaced.

    A table of another `kind` (or another `way` to sweep) replaces the whole one, whose fields
    would be foreign to it; only the channel of an expert stays.
    """
    if keys == ("optimizers",) and isinstance(over, dict):
        base = named(base)
    if isinstance(base, list) and isinstance(over, dict):
        if over and all(entry(base, key) is not ABSENT for key in over):
            places = enumerate(base)
            return [
                merged(v, over[str(i)], (*keys, str(i))) if str(i) in over else v for i, v in places
            ]
        return over
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    for tag in ("kind", "way"):
        if tag in base and tag in over and base[tag] != over[tag]:
            stays = ("channel",) if len(keys) == 2 and keys[0] == "experts" else ()
            base = {key: base[key] for key in stays if key in base}
    return base | {
        key: merged(base[key], value, (*keys, key)) if key in base else value
        for key, value in over.items()
    }


def named(optimizers: Any) -> Any:
    """Read a list of kinds as a table of optimizers, each named as its kind."""
    if isinstance(optimizers, list) and all(isinstance(kind, str) for kind in optimizers):
        return {kind: {"kind": kind} for kind in optimizers}
    return optimizers


# Reading


def read(source: str | Path, overrides: Sequence[str] = ()) -> Layers:
    """Read a file, or the bundled scenario of that name, what it extends, and the overrides."""
    layers: list[Layer] = []
    chain: list[Path] = []
    file = located(source)
    extends: Any = ""
    while extends is not None:
        layer = _layer(file)
        if (real := file.resolve()) in chain:
            raise ScenarioError(
                f"{layers[-1].where(('extends',))}: extends: {extends!r}: extends itself; "
                f"take one out of: {', '.join(str(path) for path in [*chain, real])}"
            )
        chain.append(real)
        layers.append(layer)
        extends = layer.values.pop("extends", None)
        if extends is not None:
            file = _extended(extends, file, layer)
    refused: list[str] = []
    layers.reverse()
    for text in overrides:
        try:
            layers.append(_override(text))
        except ScenarioError as error:
            refused += error.problems
    if refused:
        raise ScenarioError(*refused)
    whole = Layers(())
    for layer in layers:
        whole = Layers([*whole.layers, _leaving_out(layer, whole)])
    return whole


# What is taken out of what is extended


def _leaving_out(layer: Layer, base: Layers) -> Layer:
    """Read which parts of its *base* a layer is `without`."""
    if WITHOUT not in layer.values:
        return layer
    given = layer.values[WITHOUT]
    if not base.layers:
        raise ScenarioError(
            f"{layer.where((WITHOUT,))}: {WITHOUT}: goes with `extends`; there is nothing to take "
            "out of"
        )
    if not isinstance(given, list) or not all(isinstance(path, str) for path in given):
        raise ScenarioError(
            f"{layer.where((WITHOUT,))}: {WITHOUT}: {shown(given)}: expected a list of paths, as "
            'in ["optimizers.uniform"]'
        )
    problems, found, values = [], [], base.values
    for place, path in enumerate(given):
        written, known = _sought(values, undotted(path))
        if written is None:
            problems.append(
                f"{layer.where((WITHOUT, str(place)))}: {WITHOUT}: {str(path)!r}: is not in what "
                f"is extended; {did_you_mean(path, known)}"
            )
        else:
            found.append(written)
    if problems:
        raise ScenarioError(*problems)
    rest = {key: value for key, value in layer.values.items() if key != WITHOUT}
    return replace(layer, values=rest, left_out=found)


def _sought(values: Table, keys: Keys) -> tuple[Keys | None, list[str]]:
    """Find where in a table *keys* are written; if nowhere, list the paths that there are."""
    sweep = values.get("sweep")
    if keys[0] == "sweep" and isinstance(sweep, dict) and keys != ("sweep", "settings"):
        lists = {key: value for key, value in sweep.items() if key != "settings"}
        paths = {("sweep", *path): at for at, path in _swept(lists, ("sweep",))}
        leaves = [path for path in paths if not any(path == p[: len(path)] != p for p in paths)]
        # A list of settings goes as a whole: what one of them sweeps has no list of its own.
        leaves += [("sweep", "settings")] if "settings" in sweep else []
        return {("sweep",): ("sweep",), **paths}.get(keys), [dotted(path) for path in leaves]
    inner: Any = values
    for depth, key in enumerate(keys):
        outer = named(inner) if keys[:depth] == ("optimizers",) else inner
        inner = entry(outer, key)
        if inner is ABSENT:
            others = outer if isinstance(outer, dict) else {}
            return None, [dotted((*keys[:depth], other)) for other in others]
    return keys, []


def _taken_out(values: Table, keys: Keys) -> Table:
    """Return a table without what is at *keys*, and without tables of a sweep that it empties."""
    if keys[0] == "optimizers" and keys[1:]:
        values = values | {"optimizers": named(values["optimizers"])}
    rest: Table = _without(values, keys)
    inner: Any = rest
    for key in keys[:-1]:
        inner = entry(inner, key)
    return _taken_out(rest, keys[:-1]) if keys[0] == "sweep" and keys[1:] and not inner else rest


def bundled() -> dict[str, Path]:
    """Give the file of each scenario that installed packages bring, by name."""
    return {name: claims[0] for name, claims in sorted(_claims()[0].items())}


def _claims() -> tuple[dict[str, list[Path]], list[str]]:
    """Give the files that claim each name, and which packages cannot be loaded."""
    claims: dict[str, list[Path]] = {}
    broken: list[str] = []
    for package in sorted({entry.value for entry in entry_points(group=GROUP)}):
        try:
            home = Path(str(files(package)))
            inside = sorted(home.rglob("*.toml"))
        except (Exception, SystemExit) as error:
            broken.append(f"{package} cannot be loaded: {type(error).__name__}: {error}")
            continue
        for file in inside:
            claims.setdefault(file.relative_to(home).with_suffix("").as_posix(), []).append(file)
    return claims, broken


def located(source: str | Path) -> Path:
    """Find a file: given by its path, or as the name of a bundled scenario."""
    path = Path(source)
    if isinstance(source, Path) or path.suffix == ".toml" or path.is_absolute():
        return path
    claims, broken = _claims()
    if len(claims.get(source, ())) > 1:
        owners = ", ".join(str(file) for file in claims[source])
        raise ScenarioError(f"{source}: is claimed twice: {owners}; give the file itself")
    if source in claims:
        return claims[source][0]
    # A folder of results is often called as its scenario.
    if path.is_file():
        return path
    hint = "; ".join([did_you_mean(source, claims), *broken])
    raise ScenarioError(f"{source}: no such file, and no scenario is called so; {hint}")


def _extended(extends: Any, file: Path, layer: Layer) -> Path:
    """Find the file that *file* extends."""
    where = layer.where(("extends",))
    if not isinstance(extends, str) or not extends or "\0" in extends:
        raise ScenarioError(f"{where}: extends: {shown(extends)}: expected a file or a name")
    beside = file.parent / extends
    try:
        found = beside if beside.is_file() else located(extends)
    except (ScenarioError, OSError) as error:
        raise ScenarioError(f"{where}: extends: {error}") from error
    found = found if found.is_absolute() else file.parent / extends
    if not found.exists():
        hint = _called_without_suffix(Path(extends)) or f"it is sought at {found}"
        raise ScenarioError(f"{where}: extends: {extends!r}: no such file; {hint}")
    return found


def _layer(file: Path) -> Layer:
    text = _text(file)
    lines = _checked_lines(text, str(file))
    try:
        values = tomllib.loads(text)
    # Besides TOMLDecodeError: whole numbers of too many digits, and dates that are none.
    except (ValueError, RecursionError, OverflowError) as error:
        raise ScenarioError(f"{file}:{_mistake(str(error), text)}") from error
    return _writable(Layer(str(file), _from_folder(values, file.parent), {(): 1, **lines}))


def _writable(layer: Layer) -> Layer:
    """Refuse whole numbers, given in hexadecimal, that Python cannot write in decimals."""

    def check(value: Any, keys: Keys) -> None:
        match value:
            case dict():
                for key, inner in value.items():
                    check(inner, (*keys, key))
            case list():
                for inner in value:
                    check(inner, keys)
            case int() if abs(value) > LARGEST_WHOLE:
                raise ScenarioError(
                    f"{layer.where(keys)}: {dotted(keys)}: a whole number of hundreds of digits; "
                    "give a smaller one"
                )

    check(layer.values, ())
    return layer


def _text(file: Path) -> str:
    try:
        if file.is_dir():
            raise ScenarioError(f"{file}: is a folder; name a file in it")
        with file.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        hint = _called_without_suffix(file) or "check the path"
        raise ScenarioError(f"{file}: cannot be read: {error.strerror}; {hint}") from error
    except ValueError as error:  # A null character in the path.
        raise ScenarioError(f"{str(file)!r}: cannot be read: {error}; check the path") from error
    if len(content) > MOST_BYTES:
        raise ScenarioError(
            f"{file}: is larger than 1 MB, too large for a scenario; keep data in files of its own"
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


def _called_without_suffix(file: Path) -> str:
    """Hint at the bundled scenario that is called as a *file* that is not there."""
    name = file.with_suffix("").as_posix()
    known = file.suffix == ".toml" and not file.exists() and name in bundled()
    return f"the bundled scenario is called {name!r}, without .toml" if known else ""


def _mistake(message: str, text: str) -> str:
    """Say in which line what is no TOML, from the *message* of tomllib."""
    if at := re.search(r" \(at line (\d+), column (\d+)\)$", message):
        return f"{at[1]}: not TOML: {message[: at.start()]} at column {at[2]}"
    # The end of the document, or no position at all.
    line = text.count("\n") + 1 if message.endswith("(at end of document)") else 1
    return f"{line}: not TOML: {message}"


def _from_folder(value: Any, folder: Path, key: str = "") -> Any:
    """Return a value of a file in *folder*, whose strings know that folder.

    A field of paths then seeks a relative one from there; under `file` and `files` it is done now,
    because they may be fields of strings: patterns, say.
    """
    if isinstance(value, dict):
        return {k: _from_folder(v, folder, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_from_folder(v, folder, key) for v in value]
    if not isinstance(value, str):
        return value
    written = ScenarioString.within(folder, value)
    # "a.b.file" is a path of fields, in a sweep.
    return written.path if key.rpartition(".")[2] in FILE_FIELDS else written


def contents(paths: Iterable[str]) -> dict[str, str]:
    """Hash what is in the files at *paths*, or patterns of such; what is not there, is not."""
    return {
        path: _hashed(Path(path))
        for given in paths
        for path in sorted(glob(str(Path(given).expanduser()), recursive=True)) or [given]
        if Path(path).exists()
    }


def _hashed(path: Path) -> str:
    """Hash a file, or what is in a folder, such as that of a study, by names and sizes."""
    if path.is_dir():
        inside = sorted((str(p.relative_to(path)), p.stat().st_size) for p in path.rglob("*"))
        return blake2b(repr(inside).encode(), digest_size=16).hexdigest()
    stat = path.stat()
    return _hash(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _hash(path: Path, changed_at: int, size: int) -> str:
    """Hash a file; while it is not written to, once."""
    with path.open("rb") as stream:
        return file_digest(stream, "blake2b").hexdigest()[:32]


def overridden(overrides: Sequence[str]) -> Layers:
    """Read values given as FIELD=VALUE alone."""
    return Layers([_override(text) for text in overrides])


def _override(text: str) -> Layer:
    """Read FIELD=VALUE as a layer; a value that is no TOML is a string, if it does not look it."""
    name = f"--set {text}"
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or "\n" in text:
        raise ScenarioError(f"{name}: expected FIELD=VALUE, as in seed=3")
    _checked_lines(text, name)
    try:
        return _writable(Layer(name, tomllib.loads(text)))
    except (ValueError, RecursionError, OverflowError) as error:
        if value.strip()[:1] in ("[", "{", '"', "'"):
            raise ScenarioError(f"{name}: not TOML: {error}") from error
    try:
        return Layer(name, tomllib.loads(f"{key}={json.dumps(value.strip(), ensure_ascii=False)}"))
    except ValueError as error:
        raise ScenarioError(f"{name}: {key.strip()} is no path of fields: {error}") from error


# Lines


class _TooDeepError(Exception):
    """Levels beyond the limit, in line *line*."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def _checked_lines(text: str, name: str) -> dict[Keys, int]:
    try:
        return lines(text)
    except _TooDeepError as error:
        raise ScenarioError(
            f"{name}:{error.line}: nested deeper than {MOST_LEVELS} levels; make it flatter"
        ) from error


def lines(text: str) -> dict[Keys, int]:
    """Find the line of each key and element in a TOML text.

    At what is no TOML it stops; it is for tomllib to complain.
    """
    scanner = _Scanner(text)
    with suppress(_NoTomlError):
        scanner.document()
    return scanner.lines


class _NoTomlError(Exception):
    """The text does not go on as TOML."""


_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_KEY = re.compile(r"""(?:"(?:\\.|[^"\\\n])*+"|'[^'\n]*+'|[A-Za-z0-9_-]++)""")
_DOT = re.compile(r"[ \t]*+\.[ \t]*+")
_SCALAR = re.compile(
    r'''"""(?:\\.|[^"\\]|"(?!""))*+"{3,5}|\'\'\'(?:[^']|'(?!''))*+'{3,5}'''
    r"""|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+'|[^"',\[\]{}#\n][^,\]}#\n]*+""",
    re.DOTALL,
)


class _Scanner:
    """Goes through a text once, and notes where each key and element begins."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Keys, int] = {}
        self._text = text
        self.at = 0
        self._ends = [found.start() for found in re.finditer("\n", text)]
        self._lengths: dict[Keys, int] = {}
        """Of arrays of tables, so far."""

    def document(self) -> None:
        """Read headers and assignments to the end."""
        table: Keys = ()
        while self._blank() < len(self._text):
            if self._text[self.at] == "[":
                table = self._header()
            else:
                self._assignment(table)

    def _header(self) -> Keys:
        line, twice = self._line, self._text.startswith("[[", self.at)
        self.at += 2 if twice else 1
        self._blank()
        *outer, last = self.key(())
        table: Keys = ()
        for key in outer:
            table = (*table, key)
            self.lines.setdefault(table, line)
            if table in self._lengths:
                table = (*table, str(self._lengths[table] - 1))
        table = (*table, last)
        self.lines.setdefault(table, line)
        if twice:
            self._lengths[table] = self._lengths.get(table, 0) + 1
            table = (*table, str(self._lengths[table] - 1))
            self._note(table, line)
        for _ in range(2 if twice else 1):
            self._blank()
            self._take("]")
        return table

    def _assignment(self, table: Keys) -> None:
        line = self._line
        keys = self.key(table)
        for size in range(len(table) + 1, len(table) + len(keys)):
            self.lines.setdefault((*table, *keys)[:size], line)
        self._note((*table, *keys), line)
        self._blank()
        self._take("=")
        self._value((*table, *keys))

    def _value(self, keys: Keys) -> None:
        self._blank()
        opening = self._text[self.at : self.at + 1]
        if opening not in ("[", "{"):
            self._match(_SCALAR)
            return
        closing = "]" if opening == "[" else "}"
        self.at += 1
        count = 0
        while self._blank() < len(self._text) and self._text[self.at] != closing:
            if opening == "[":
                self._note((*keys, str(count)), self._line)
                self._value((*keys, str(count)))
            else:
                self._assignment(keys)
            count += 1
            self._blank()
            if self._text[self.at : self.at + 1] != closing:
                self._take(",")
        self._take(closing)

    def key(self, table: Keys) -> Keys:
        """Read a key, dotted or not, of *table*."""
        keys: list[str] = []
        while True:
            keys.append(_unquoted(self._match(_KEY)))
            if len(table) + len(keys) > MOST_LEVELS:
                raise _TooDeepError(self._line)
            if not (dot := _DOT.match(self._text, self.at)):
                return tuple(keys)
            self.at = dot.end()

    def _note(self, keys: Keys, line: int) -> None:
        if len(keys) > MOST_LEVELS:
            raise _TooDeepError(line)
        self.lines[keys] = line

    @property
    def _line(self) -> int:
        return bisect_right(self._ends, self.at - 1) + 1

    def _blank(self) -> int:
        found = _BLANK.match(self._text, self.at)
        self.at = found.end() if found else self.at
        return self.at

    def _take(self, text: str) -> None:
        if not self._text.startswith(text, self.at):
            raise _NoTomlError
        self.at += len(text)

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self.at)
        if not found:
            raise _NoTomlError
        self.at = found.end()
        return found[0]


def _unquoted(key: str) -> str:
    if key[0] not in "\"'":
        return key
    try:
        return tomllib.loads(f"{key} = 0").popitem()[0]
    except tomllib.TOMLDecodeError as error:
        raise _NoTomlError from error


# What is wrong


class Problems:
    """Gathers what pydantic finds wrong with *values*, told with file, line and a hint.

    *fields* lists the fields that the table at some keys has; *whole* is what all values make.
    """

    def __init__(
        self,
        layers: Layers,
        values: Table,
        fields: Callable[[Table, Keys], list[str]],
        *,
        whole: str = "scenario",
    ) -> None:
        self._told: dict[str, tuple[int, int]] = {}
        self._layers = layers
        self._values = values
        self._fields = fields
        self._whole = whole
        self._blamed: list[Keys] = []

    @property
    def told(self) -> list[str]:
        """All that is wrong, in the order of reading."""
        return sorted(self._told, key=lambda line: self._told[line])

    def add(self, error: ValidationError, values: Table) -> Table:
        """Add the errors that are news, and give *values* without what is wrong in them."""
        known = list(self._blamed)
        for detail in reasons(error):
            keys, about = self._keys(detail)
            if not any(_overlap(each, about) for each in known):
                line = f"{self._layers.giver(keys).where(keys)}: {self._line(detail, keys)}"
                self._told.setdefault(line, self._layers.order(keys))
            # Without its kind, nothing can be said of a table.
            whole = len(keys) > 1 and keys[-1] == "kind"
            self._blamed.append(about[:-1] if whole else about)
            values = _without(values, keys[:-1] if whole else keys)
        return values

    def _keys(self, detail: ErrorDetails) -> tuple[Keys, Keys]:
        """Find where in the values an error is, and which field it is about."""
        loc = self._given_at([str(key) for key in detail["loc"]])
        if loc[:1] == ["sweep"] and len(loc) > 1:
            for written, path in _swept(self._values.get("sweep"), ("sweep",)):
                if path in (undotted(loc[1]), undotted(loc[-1])):
                    return written, path
        keys: Keys = ()
        value: Any = self._values
        for place, key in enumerate(loc):
            inner = entry(value, key)
            tag = isinstance(value, dict) and value.get("kind") == key and len(loc) > place + 1
            if inner is ABSENT or (tag and entry(value, loc[place + 1]) is not ABSENT):
                # The tag of a union or the name of a type, unless it is what is missing.
                if place == len(loc) - 1 and detail["type"] in ("missing", "scenario"):
                    keys = (*keys, key)
                continue
            keys, value = (*keys, key), inner
        if detail["type"].startswith("union_tag") and isinstance(value, dict):
            keys = (*keys, "kind")
        return keys, keys

    def _given_at(self, loc: list[str]) -> list[str]:
        """Find a field of an optimizer where it was given: with it, or for all of them."""
        if loc[:1] == ["optimizers"] and len(loc) > 2:
            own = entry(named(self._values.get("optimizers")), loc[1])
            shared = self._values.get(DEFAULTS)
            if entry(own, loc[2]) is ABSENT and entry(shared, loc[2]) is not ABSENT:
                return [DEFAULTS, *loc[2:]]
        return loc

    def _line(self, detail: ErrorDetails, keys: Keys) -> str:
        given: Any = self._values
        for key in keys:
            given = entry(given, key)
        value = () if given is ABSENT or not keys else (shown(given),)
        return ": ".join((dotted(keys) or self._whole, *value, self._reason(detail, keys)))

    def _reason(self, detail: ErrorDetails, keys: Keys) -> str:
        context = detail.get("ctx", {})
        match detail["type"]:
            case "extra_forbidden":
                known = self._fields(self._values, keys[:-1])
                return f"no such field; {did_you_mean(keys[-1], known)}"
            case "missing":
                return "missing; add it"
            case "union_tag_invalid":
                kinds = re.findall("'([^']*)'", str(context.get("expected_tags")))
                return f"no such kind; {did_you_mean(str(context.get('tag')), kinds)}"
            case "union_tag_not_found":
                return "missing; say which kind it is"
            case "literal_error" if isinstance(detail["input"], str):
                words = re.findall("'([^']*)'", str(context.get("expected")))
                return f"should be {context['expected']}; {did_you_mean(detail['input'], words)}"
            case "model_type":
                known = self._fields(self._values, keys)
                return f"should be a table; its fields are: {', '.join(known)}"
            case "tuple_type" | "list_type":
                return "should be a list, in [ ]"
            case "dict_type":
                return "should be a table; see `show`"
        reason = " ".join(detail["msg"].split()).removeprefix("Value error, ")
        if detail["type"] == "scenario" and len(keys) == 3 and keys[-1] == "kind":
            reason += self._misnamed(keys)
        return reason.replace("Input should", "should")

    def _misnamed(self, keys: Keys) -> str:
        """Ask whether the name of a table without a kind is that of another, misspelt."""
        others = [name for name in self._values[keys[0]] if name != keys[1]]
        close = get_close_matches(keys[1], others, n=1)
        missing = entry(entry(self._values[keys[0]], keys[1]), "kind") is ABSENT
        return f"; or did you mean {close[0]!r}?" if close and missing else ""


def reasons(error: ValidationError) -> list[ErrorDetails]:
    """Return what an error is made of, but for choices that were not meant.

    Where a field takes a number or a list, pydantic tells of a wrong number that it is no list.
    """
    details = error.errors(include_url=False)
    meant = {
        detail["loc"][:place]
        for detail in details
        for place, key in enumerate(detail["loc"])
        if is_type(key) and not _of_other_type(detail)
    }
    return [each for each in details if not (_of_other_type(each) and each["loc"][:-1] in meant)]


def _of_other_type(detail: ErrorDetails) -> bool:
    """Return whether a choice of a union is wrong only because another choice was meant."""
    return detail["type"].endswith("_type") and any(map(is_type, detail["loc"][-1:]))


def is_type(key: str | int) -> bool:
    """Return whether a key in an error of pydantic names a choice of a union, not a field."""
    return (
        re.fullmatch(r"(function-[a-z]+|tuple|list|set|frozenset|dict)\[.*\]", str(key)) is not None
    )


def _overlap(one: Keys, other: Keys) -> bool:
    """Tell whether one is within the other; what is wrong with the whole is its own matter."""
    size = min(len(one), len(other))
    if size == 0:
        return one == other or (one or other) in (("rounds",), ("horizon",))
    return one[:size] == other[:size]


def _without(values: Any, keys: Keys) -> Any:
    """Give *values* with the entry at *keys* taken out."""
    if not keys or entry(values, keys[0]) is ABSENT:
        return values
    if isinstance(values, list):
        place = int(keys[0])
        inner = [_without(values[place], keys[1:])] if len(keys) > 1 else []
        return [*values[:place], *inner, *values[place + 1 :]]
    rest = {key: value for key, value in values.items() if key != keys[0]}
    return rest | ({keys[0]: _without(values[keys[0]], keys[1:])} if len(keys) > 1 else {})


def _swept(table: Any, outer: Keys, path: Keys = ()) -> Iterator[tuple[Keys, Keys]]:
    """Give where each swept path is written, and the path."""
    items = enumerate(table) if isinstance(table, list) else ()
    for key, value in table.items() if isinstance(table, dict) else items:
        keys = (*outer, str(key))
        # Places in the list of settings are no part of a path.
        inner = (
            path
            if keys[:2] == ("sweep", "settings") and len(keys) < 4
            else (*path, *undotted(str(key)))
        )
        if inner:
            yield keys, inner
        if isinstance(value, dict) or keys == ("sweep", "settings"):
            yield from _swept(value, keys, inner)


# Paths and values in words


def dotted(keys: Sequence[str]) -> str:
    """Write *keys* as TOML writes them."""
    return ".".join(
        key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)
        for key in keys
    )


def undotted(text: str) -> Keys:
    """Read keys as `dotted` writes them; where they are no TOML, split at the dots."""
    scanner = _Scanner(text)
    try:
        keys = scanner.key(())
    except (_NoTomlError, _TooDeepError):
        return tuple(text.split("."))
    return keys if scanner.at == len(text) else tuple(text.split("."))


def shown(value: Any) -> str:
    """Show a value in an error, cut where it is long."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no whole numbers of more than 4300 digits.
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
