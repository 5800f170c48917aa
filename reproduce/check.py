"""Check every block of README and of the documentation: `python -m reproduce.check [page ...]`.

- Python blocks run in order, in one namespace a page, on event loops that do not wait. An `output`
  block right after one must be what it printed.
- A TOML block is a whole scenario, or a part of one, which is laid over a small one unless it
  extends another: it must load, fit the schema that editors check by, and play. Or it is a part of
  a pyproject.toml: the plug-ins that it announces must be classes of the page, under names that
  are free, and scenarios of the page may use them.
- A scenario with something real in it is not played.
- A TOML block that opens with `toml refused` must be refused.
- A TOML block after a line that ends with the name of a file, as in "`plant.toml`:", may be
  extended by later ones under that name.
- A block that opens with `json message` must be a message of the wire format.

The reference must list every public name. The first failure of a page is told with its line, and
the exit code is 1.

Why not Sybil or pytest-examples: Sybil would find the blocks, which takes 30 lines here, and run
the Python ones; pytest-examples knows Python only. All the rest, which is most of this module,
would stay: scenarios and parts of them, entry points as if installed, classes that worker processes
can unpickle, event loops that do not wait, input that must be refused.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import re
import sys
import tomllib
import traceback
import warnings
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from types import ModuleType
from typing import Any
from unittest.mock import patch

import scipy.linalg  # noqa: F401 - its BLAS must be loaded to be held to one thread
from jsonschema import Draft202012Validator
from threadpoolctl import threadpool_limits

import sparq_sim
from reproduce import DOCS, ROOT, reference
from sparq_sim import Scenario
from sparq_sim.errors import SparqError
from sparq_sim.plugin.registry import GROUPS, AnyKind, find_family, kind_of, load
from sparq_sim.remote.wire import MESSAGES, decode, read_message, wire_schema
from sparq_sim.scenario.schema import build_schema
from sparq_sim.testing import WaitlessLoop

PAGE = "documentation_page"
FENCE = re.compile(r"^```(\S*)[ \t]*(.*?)\s*$")
NAMED = re.compile(r"`([\w-]+\.\w+)`:$")
REFUSED = "refused"
"""Marks a block of wrong input."""

BASE = """
rounds = 6
environment.kind = "synthetic"
feedback.noise = 0.1
experts.sensor = { kind = "truth", channel = { noise = 0.1 } }
optimizers = ["uniform"]
"""
"""The scenario over which parts of one are laid."""
HEADER = (
    "Date,Source,Site ID,POC,Daily Max 8-hour Ozone Concentration,Units,State,County,"
    "Site Latitude,Site Longitude"
)
SITES = ("360050110,1,0.030,ppm,New York,Bronx,40.8", "360810124,1,0.040,ppm,New York,Queens,40.7")
DAYS = ("12/29/2016", "12/30/2016", "12/31/2016", "01/01/2017", "01/02/2017", "01/03/2017")
FILES = {
    "base.toml": BASE,
    "data/ad_viz_daily.csv": "\n".join(
        [HEADER, *(f"{day},AQS,{site},-73.8" for day in DAYS for site in SITES)]
    ),
}
"""What is in the folder in which the blocks of a page are run."""


class WrongError(Exception):
    """A block is not as it should be, at a *line* of its page."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page where the text begins."""

    language: str
    mark: str
    """What the opening line says after the language."""
    text: str
    line: int
    follows: bool
    """Whether only empty lines part it from the block before."""
    file: str = ""
    """What the page calls it: the line before ends with the name of a file and a colon."""


def read_blocks(page: Path) -> Iterator[Block]:
    """Return the fenced blocks of a page in order."""
    opening: re.Match[str] | None = None
    begun, kept, follows, above = 0, [""], False, ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fence = FENCE.match(line)
        if opening is None and fence:
            opening, begun, kept = fence, number + 1, []
        elif opening is not None and line.rstrip() == "```":
            named = NAMED.search(above)
            file = named[1] if named and not follows else ""
            yield Block(opening[1], opening[2], "\n".join(kept) + "\n", begun, follows, file)
            opening, follows = None, True
        elif opening is not None:
            kept.append(line)
        elif line.strip():
            follows, above = False, line.rstrip()


class Page:
    """A page whose blocks are checked in order, in the current folder."""

    def __init__(self, path: Path, module: ModuleType) -> None:
        self._path = path
        self._module = module
        self._printed: str | None = None
        """By the block before, if that was of Python."""
        self._announced: list[tuple[int, EntryPoint]] = []
        """With the lines of their blocks."""

    def check(self, block: Block) -> bool:
        """Check a block, and return whether there was anything to check."""
        printed, self._printed = self._printed, None
        if block.language in ("python", "toml") and block.mark not in ("", REFUSED):
            raise WrongError(block.line, f"no block is marked {block.mark!r}, only {REFUSED!r}")
        match block.language:
            case "python":
                self._run(block)
            case "toml" if block.mark == REFUSED:
                self._see_refused(block)
            case "toml":
                self._read(block)
            case "json" if block.mark == "message":
                self._read_message(block)
            case "output":
                self._compare(block, printed)
            case _:
                return False
        return True

    def check_names(self) -> None:
        """Raise an error where a plug-in of the page is not there, or has a name that is taken."""
        for line, entry in self._announced:
            try:
                load(GROUPS[entry.group], entry.name)
            except SparqError as error:
                raise WrongError(line, str(error)) from error
        for name, thing in vars(self._module).items():
            if not isinstance(thing, type) or thing.__module__ != PAGE:
                continue
            if (kind := kind_of(thing)) is not None and name in _bundled_classes(kind):
                raise WrongError(self._line(name), f"a bundled {kind} is called {name} too")

    def _line(self, name: str) -> int:
        """Return where the page defines the class *name*."""
        lines = self._path.read_text(encoding="utf-8").splitlines()
        return next(n for n, line in enumerate(lines, 1) if line.startswith(f"class {name}("))

    # Python

    def _run(self, block: Block) -> None:
        # Empty lines before, so that tracebacks name the lines of the page.
        source = "\n" * (block.line - 1) + block.text
        heard = io.StringIO()
        try:
            code = compile(source, str(self._path), "exec", dont_inherit=True)
            with redirect_stdout(heard), patch("asyncio.run", run_at_once):
                exec(code, vars(self._module))
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == str(self._path)]
            line = lines[0] if lines else getattr(error, "lineno", None)
            raise WrongError(line or block.line, f"{type(error).__name__}: {error}") from error
        self._printed = heard.getvalue()

    def _compare(self, block: Block, printed: str | None) -> None:
        if printed is None or not block.follows:
            raise WrongError(block.line, "output that follows no python block")
        if printed.rstrip() != block.text.rstrip():
            raise WrongError(block.line, f"the block before printed\n{printed}")

    # JSON

    def _read_message(self, block: Block) -> None:
        try:
            message = decode(block.text.encode())
            read_message(message, *MESSAGES)
        except SparqError as error:
            raise WrongError(block.line, f"it {error}") from error
        for wrong in Draft202012Validator(wire_schema()).iter_errors(message):
            raise WrongError(block.line, f"the schema refuses {wrong.json_path}: {wrong.message}")

    # TOML

    def _read(self, block: Block) -> None:
        try:
            table = tomllib.loads(block.text)
            if table.keys() & {"project", "build-system"}:
                self._announce(block, table.get("project", {}).get("entry-points", {}))
            else:
                whole = {"environment", "optimizers"} <= table.keys() or "extends" in table
                self._play(block, whole=whole)
        except (SparqError, tomllib.TOMLDecodeError) as error:
            raise WrongError(block.line, str(error)) from error

    def _see_refused(self, block: Block) -> None:
        try:
            self._read(block)
        except WrongError:
            return
        raise WrongError(block.line, f"the block is marked {REFUSED!r}, and is not refused")

    def _play(self, block: Block, *, whole: bool) -> None:
        # The lines are those of the page; that of the fence says what a part is laid over.
        above = "\n" if whole else 'extends = "base.toml"\n'
        file = Path(f"{self._path.stem}.toml")
        file.write_text("\n" * (block.line - 2) + above + block.text, encoding="utf-8")
        if block.file:  # Later blocks may extend it.
            Path(block.file).write_text(block.text, encoding="utf-8")
        Scenario.load(file).settings()
        self._fit(block, tomllib.loads(file.read_text(encoding="utf-8")))
        _, setting = Scenario.load(file, overrides=["rounds=6"]).settings()[-1]
        if setting.environment.is_real or any(
            each.expert.is_real for each in setting.experts.values()
        ):
            return
        for optimizer in setting.optimizers:
            setting.play(optimizer)

    def _fit(self, block: Block, table: Mapping[str, Any]) -> None:
        own = (self._path, len(self._announced)) if self._announced else None
        for error in _validator(own).iter_errors(table):
            raise WrongError(block.line, f"the schema refuses {error.json_path}: {error.message}")

    def _announce(self, block: Block, groups: Mapping[str, Mapping[str, str]]) -> None:
        """Install the plug-ins of the page, as pip would."""
        home = Path(f"page_{block.line}-1.0.dist-info")
        home.mkdir()
        (home / "METADATA").write_text(f"Name: page-{block.line}\nVersion: 1.0\n")
        written = []
        for group, entries in groups.items():
            written.append(f"[{group}]")
            for name, value in entries.items():
                entry = EntryPoint(name, value, group)
                if group not in GROUPS:
                    raise WrongError(block.line, f"plug-ins are not sought in {group!r}")
                self._stand_in(block, entry.module)
                self._announced.append((block.line, entry))
                written.append(f"{name} = {value}")
        (home / "entry_points.txt").write_text("\n".join([*written, ""]))
        importlib.invalidate_caches()

    def _stand_in(self, block: Block, module: str) -> None:
        """Use the page as the *module* that an entry point names."""
        if sys.modules.get(module) is not self._module and find_spec(module) is not None:
            raise WrongError(block.line, f"there is a module {module!r} already")
        sys.modules[module] = self._module


@lru_cache(maxsize=1)
def _validator(own: tuple[Path, int] | None) -> Draft202012Validator:
    """Return a validator of the schema, made once for all pages without plug-ins of their own.

    Args:
        own: A page with such plug-ins, and how many it has announced: the schema knows them.
    """
    return Draft202012Validator(build_schema())


def _bundled_classes(kind: AnyKind) -> set[str]:
    (group,) = (group for group, each in GROUPS.items() if each == kind)
    ours = [e for e in entry_points(group=group) if e.dist and e.dist.name == "sparq-sim"]
    parts = {model.__name__ for model in find_family(kind).bundled.values()}
    return parts | {entry.attr for entry in ours}


def run_at_once(main: Coroutine[Any, Any, Any]) -> Any:
    """Run as asyncio does, but do not wait: no page depends on how busy the machine is."""
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        return runner.run(main)


@contextmanager
def open_page(path: Path) -> Iterator[Page]:
    """Open a page in a folder of its own, with a module, so that its classes can be pickled."""
    module = ModuleType(PAGE)
    sys.modules[PAGE] = module
    with TemporaryDirectory() as folder, chdir(folder), threadpool_limits(limits=1):
        for name, text in FILES.items():
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_text(text, encoding="utf-8")
        sys.path.append(folder)
        try:
            yield Page(path, module)
        finally:
            sys.path.remove(folder)
            for name in [name for name, each in sys.modules.items() if each is module]:
                del sys.modules[name]
            importlib.invalidate_caches()


def check_page(path: Path) -> tuple[int, str | None]:
    """Check a page; return how many blocks were checked, and what is wrong, if anything is."""
    checked = 0
    with open_page(path) as page:
        try:
            for block in read_blocks(path):
                checked += page.check(block)
            page.check_names()
        except WrongError as wrong:
            return checked, f"{shorten(path)}:{wrong.line}: {wrong}"
    return checked, None


def shorten(path: Path) -> Path:
    """Return a path from the root of the repository, if it is within."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def find_unlisted() -> list[str]:
    """Return the public names that the reference does not list."""
    listed = {
        entry.path for entry in reference.list_page(reference.PAGE.read_text(encoding="utf-8"))
    }
    return [name for name in sparq_sim.__all__ if f"sparq_sim.{name}" not in listed]


def main(names: list[str]) -> int:
    """Check the pages called *names*, or all."""
    # As in the tests: what warns in the documentation would warn a reader.
    warnings.simplefilter("error")
    pages = [Path(name).resolve() for name in names] or [
        ROOT / "README.md",
        *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts),
    ]
    failed = False
    for page in pages:
        began = perf_counter()
        checked, wrong = check_page(page)
        if wrong is not None:
            failed = True
            print(wrong)
        elif checked:
            print(f"{shorten(page)}: {checked} blocks, {perf_counter() - began:.1f} s")
    for name in find_unlisted():
        failed = True
        print(f"reference.md: sparq_sim.{name} is public, and not listed")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
