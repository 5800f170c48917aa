"""List the tests that speak of a browser, a broker or readings, or that build and install packages.

A test speaks of them if it does itself, or a fixture or helper of its file that it names; all tests
of a file do if a fixture that all use does, or what no name has.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

TOUCHING = re.compile(
    r'\b([Bb]roker|Browser|SPARQ_CHROMIUM|ozone_file|SPARQ_OZONE)\b|"(pip|build)"'
)


def read_parts(file: Path) -> list[tuple[str, str]]:
    """Return the names and the text of all parts of a *file* but imports, decorators included."""
    text = file.read_text(encoding="utf-8")
    parts = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [getattr(node, "name", "")]
        if isinstance(node, ast.Assign | ast.AnnAssign):
            stored = (each for each in ast.walk(node) if isinstance(each, ast.Name))
            names = [each.id for each in stored if isinstance(each.ctx, ast.Store)]
        inner = (node, *getattr(node, "decorator_list", []))
        whole = "\n".join(ast.get_source_segment(text, each) or "" for each in inner)
        parts += [(name, whole) for name in names]
    return parts


def find_touching(file: Path) -> list[str]:
    """Return the tests of a *file* that speak of them, or the file itself, which stands for all."""
    parts = read_parts(file)
    found: dict[str, str] = {}
    pattern = TOUCHING
    while more := {n: text for n, text in parts if n not in found and pattern.search(text)}:
        found |= more
        if any(not name or "autouse" in text for name, text in more.items()):
            return [str(file)]
        pattern = re.compile(rf"\b({'|'.join(more)})\b")
    return [f"{file}::{name}" for name, _ in parts if name in found and name.startswith("test_")]


for file in sorted(Path("tests").rglob("test_*.py")):
    for each in find_touching(file):
        print(each)
