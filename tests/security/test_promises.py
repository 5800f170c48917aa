"""Each line of SECURITY.md names a test that attacks it, and which is run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
_HEADS = ("| refused |", "|---")
LINES = [
    line
    for section in PAGE.split("\n## ")
    if "| refused |" in section
    for line in section.splitlines()
    if line.startswith("|") and not line.startswith(_HEADS)
]


@pytest.mark.parametrize("line", LINES)
def test_each_line_names_a_test_that_is_run(line: str) -> None:
    found = re.fullmatch(r"\| (\S.*) \|.*\| `(tests/\S+\.py)::(test_\w+)` \|", line)
    assert found is not None, line
    tree = ast.parse((ROOT / found[2]).read_text(encoding="utf-8"))
    functions = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert found[3] in functions
    marks = [ast.unparse(each) for each in functions[found[3]].decorator_list]
    assert not any("skip" in mark or "xfail" in mark for mark in marks)


def test_each_input_has_its_lines() -> None:
    for name in ("Scenarios", "Studies and traces", "Journals", "Messages", "Servers", "Plug-ins"):
        section = PAGE.partition(f"\n## {name}")[2].partition("\n## ")[0]
        assert section.count("`tests/") >= 4
    assert len(LINES) >= 40
