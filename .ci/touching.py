"""List the tests that speak of a browser, a broker or readings, or that build and install packages.

A test is listed by itself; its whole file is where a fixture or a helper speaks of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TOUCHING = re.compile(
    r'\b([Bb]roker|Browser|SPARQ_CHROMIUM|ozone_file|SPARQ_OZONE)\b|"(pip|build)"'
)


def touching(file: Path) -> Iterator[str]:
    """Yield the name of each test, fixture or helper of a *file* that speaks of them."""
    text = file.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            continue
        decorators = getattr(node, "decorator_list", [])
        parts = (ast.get_source_segment(text, part) or "" for part in (node, *decorators))
        if any(map(TOUCHING.search, parts)):
            yield getattr(node, "name", "")


for file in sorted(Path("tests").rglob("test_*.py")):
    names = list(touching(file))
    if all(name.startswith("test_") for name in names):
        print(*(f"{file}::{name}" for name in names), sep="\n", end="\n" if names else "")
    else:
        print(file)
