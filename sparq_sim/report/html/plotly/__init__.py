"""Plotly: the script that draws the charts of pages, as its authors publish it.

`plotly-cartesian.min.js` and `LICENSE` are files of the npm package; `make plotly` fetches them
anew and compares them with what is stated here.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

__all__ = ["DIGEST", "FILES", "FOLDER", "PACKAGE", "read_plotly"]

PACKAGE = "plotly.js-cartesian-dist-min@4.1.1"
"""The package, as npm names it: of Plotly's bundles, the smallest with heat maps."""
FILES = ("plotly-cartesian.min.js", "LICENSE")
"""What is kept of the package."""
FOLDER = Path(__file__).parent
"""Where it is kept."""
DIGEST = "79542150855a52c567260e3137095dbe2b744e6d702a5cabe67da246942fba7a"
"""SHA-256 of the script, in hexadecimal digits."""


# Chromium then compiles each function once: otherwise it reads most of them three times, since they
# lie in one another, and the page stands still for almost twice as long.
_HINT = "//# allFunctionsCalledOnLoad\n"


@cache
def read_plotly() -> str:
    """Read the script, which defines `Plotly` in a page and needs no network."""
    return _HINT + (FOLDER / FILES[0]).read_text(encoding="utf-8")
