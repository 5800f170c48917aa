"""Style of figures for print: fonts, sizes and texts as journals want them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from sparq_sim.errors import SparqError, mask_invisible
from sparq_sim.report.palette import INK

__all__ = ["STYLE", "UNDATED", "apply_style", "literal", "need_matplotlib"]

STYLE: dict[Any, Any] = {
    # It comes with matplotlib, as does what stands in for it (DejaVu Serif): the same everywhere.
    "font.family": ["STIXGeneral", "serif"],
    "mathtext.fontset": "stix",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "axes.titlepad": 3,
    "axes.labelpad": 2,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.xmargin": 0.02,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 4,
    "lines.markeredgewidth": 0.4,
    "errorbar.capsize": 1.5,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "legend.borderpad": 0.1,
    "legend.columnspacing": 1.4,
    "legend.handlelength": 2.8,
    "legend.handletextpad": 0.5,
    "legend.labelspacing": 0.3,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,  # TrueType, which journals ask for.
    "svg.fonttype": "none",  # Text stays text.
    "svg.hashsalt": "sparq-sim",
}
"""Parameters of matplotlib."""
UNDATED: dict[str, dict[str, Any]] = {
    ".pdf": {"CreationDate": None},
    ".svg": {"Date": None},
    ".png": {},
}
"""Metadata of a file, by its ending, without a date: the same figure has the same bytes."""


def need_matplotlib() -> None:
    """Check that matplotlib is installed.

    Raises:
        SparqError: It is not; the message says how to install it.
    """
    try:
        import matplotlib  # noqa: F401 - asked for only
    except ImportError:
        raise SparqError(
            "figures are drawn by matplotlib, which is not installed; "
            "run: pip install 'sparq-sim[plots]'"
        ) from None


def apply_style() -> AbstractContextManager[None]:
    """Return a context in which this style is in force, and nothing of the user's own."""
    from matplotlib import style

    return style.context(STYLE, after_reset=True)


def literal(text: str, most: int = 48) -> str:
    """Return a text that matplotlib shows as it is, on one line that has room.

    Args:
        text: A name or label, perhaps from elsewhere.
        most: Letters for which there is room.
    """
    line = " ".join(mask_invisible(text).split())
    return (line if len(line) <= most else f"{line[: most - 1]}…").replace("$", r"\$")
