"""Run every Python block of the documentation: `python docs/check.py [page ...]`.

The blocks of a page run in order, in one namespace a page. An `output` block right after one must
be what it printed. The reference must list every public name. The first failure of a page is told
with its line, and the exit code is 1.
"""

from __future__ import annotations

import io
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from types import ModuleType
from typing import Any

import scipy.linalg  # noqa: F401 - its BLAS must be loaded to be held to one thread
from threadpoolctl import threadpool_limits

import sparq_sim

HERE = Path(__file__).resolve().parent
PAGE = "documentation_page"
FENCE = re.compile(r"^```(\S*)\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page where the text begins."""

    language: str
    text: str
    line: int
    follows: bool
    """Whether only empty lines part it from the block before."""


def blocks(page: Path) -> Iterator[Block]:
    """Give the fenced blocks of a page in order."""
    language: str | None = None
    begun, kept, follows = 0, [""], False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fence = FENCE.match(line)
        if language is None and fence:
            language, begun, kept = fence[1], number + 1, []
        elif language is not None and line.rstrip() == "```":
            yield Block(language, "\n".join(kept) + "\n", begun, follows)
            language, follows = None, True
        elif language is not None:
            kept.append(line)
        elif line.strip():
            follows = False


def failure(page: Path) -> tuple[int, str | None]:
    """Run a page; give how many blocks ran, and what went wrong, if anything did."""
    name = page.relative_to(HERE)
    # A module, so that classes of the page can be pickled, as the laws for plug-ins ask.
    sys.modules[PAGE] = ModuleType(PAGE)
    namespace: dict[str, Any] = vars(sys.modules[PAGE])
    ran, printed, ended = 0, "", False
    for block in blocks(page):
        if block.language == "output":
            if not (ended and block.follows):
                return ran, f"{name}:{block.line}: output that follows no python block"
            if printed.rstrip() != block.text.rstrip():
                return ran, f"{name}:{block.line}: the block before printed\n{printed}"
        ended = block.language == "python"
        if not ended:
            continue
        # Empty lines before, so that tracebacks name the lines of the page.
        source = "\n" * (block.line - 1) + block.text
        heard = io.StringIO()
        try:
            with redirect_stdout(heard):
                exec(compile(source, str(page), "exec", dont_inherit=True), namespace)
        except Exception as error:
            frames = [
                f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(page)
            ]
            line = frames[0].lineno if frames else getattr(error, "lineno", block.line)
            return ran, f"{name}:{line}: {type(error).__name__}: {error}"
        printed = heard.getvalue()
        ran += 1
    return ran, None


def unlisted() -> list[str]:
    """Give the public names that the reference does not list."""
    text = (HERE / "reference.md").read_text(encoding="utf-8")
    return [name for name in sparq_sim.__all__ if f":: sparq_sim.{name}\n" not in text]


def main(names: list[str]) -> int:
    """Check the pages called *names*, or all."""
    # As in the tests: what warns in the documentation would warn a reader.
    warnings.simplefilter("error")
    pages = [Path(name).resolve() for name in names] or sorted(
        page for page in HERE.rglob("*.md") if "_build" not in page.parts
    )
    failed = False
    for page in pages:
        began = perf_counter()
        with TemporaryDirectory() as folder, chdir(folder), threadpool_limits(limits=1):
            ran, wrong = failure(page)
        if wrong is not None:
            failed = True
            print(wrong)
        elif ran:
            print(f"{page.relative_to(HERE)}: {ran} blocks, {perf_counter() - began:.1f} s")
    for name in unlisted():
        failed = True
        print(f"reference.md: sparq_sim.{name} is public, and not listed")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
