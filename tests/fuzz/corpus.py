"""The corpus: scenario files that are right, to be made wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from reproduce import DOCS, ROOT
from reproduce.check import FILES, read_blocks
from sparq_sim.scenario.bundled import find_bundled
from sparq_sim.scenario.scaffold.create import create

__all__ = ["BESIDE", "read_corpus"]

BESIDE: Mapping[str, str] = {
    **FILES,
    "ring.toml": 'extends = "ring.toml"\n',
    "there.toml": 'extends = "and-back.toml"\n',
    "and-back.toml": 'extends = "there.toml"\n',
    "nodes.csv": "x0,name,battery\n0.2,one,5.0\n0.7,two,\n",
    "costs.csv": "cost\n0.1\n0.3\n",
}
"""What lies in the folder of the file that is checked, by path."""


@cache
def read_corpus() -> list[str]:
    """Return the text of all scenarios that there are, in files and in the documentation."""
    files = [*find_bundled().values(), ROOT / "tests" / "scenarios" / "full.toml"]
    texts = [file.read_text(encoding="utf-8") for file in files]
    with TemporaryDirectory() as folder:
        for kind in ("expert", "environment", "optimizer", "scenario"):
            made = create(kind, f"own-{kind}", Path(folder))
            texts += [file.read_text(encoding="utf-8") for file in made if file.suffix == ".toml"]
    for page in sorted(DOCS.rglob("*.md")):
        blocks = [block for block in read_blocks(page) if block.language == "toml"]
        texts += [_complete(block.text) for block in blocks if "entry-points" not in block.text]
    return [text for text in texts if _is_toml(text)]


def _is_toml(text: str) -> bool:
    try:
        return bool(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return False


def _complete(text: str) -> str:
    """Return a block of the documentation as a scenario."""
    whole = "extends" in text or "[environment" in text or "environment." in text
    return text if whole and "optimizers" in text else f'extends = "base.toml"\n{text}'
