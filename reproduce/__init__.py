"""Make the numbers, tables, figures and pictures of the documentation, and check its pages.

`python -m reproduce` makes all of them; `python -m reproduce.NAME` runs one module alone.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["DOCS", "ROOT"]

ROOT = Path(__file__).resolve().parents[1]
"""The root of the repository."""
DOCS = ROOT / "docs"
"""Where pages, results and pictures are."""
