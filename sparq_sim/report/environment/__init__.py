"""Portraits: the reward of an environment over space and time, to be looked at before playing.

`sample` takes the numbers, `layout` says which panels show them, and two renderers draw those:
`as_html` with plotly, `as_figure` with matplotlib.
"""

from __future__ import annotations

from pathlib import Path

from sparq_sim.errors import SparqError
from sparq_sim.plugin.environment import Environment
from sparq_sim.report.environment.page import as_html
from sparq_sim.report.environment.picture import as_figure, need_matplotlib
from sparq_sim.report.environment.views import Portrait, sample
from sparq_sim.simulation.lifetime import open_landscape

__all__ = ["Portrait", "as_figure", "as_html", "portray", "sample"]

SUFFIXES = (".html", ".png", ".svg", ".pdf")


def portray(
    environment: Environment, to: Path, *, name: str, horizon: float = 100.0, seed: int = 0
) -> Path:
    """Draw an environment to a file, as plays with this *seed* meet it in replication 0.

    The file ends in .html, or, with the extra `plots`, in .png, .svg or .pdf.
    """
    suffix = to.suffix.lower()
    if suffix not in SUFFIXES:
        raise SparqError(f"cannot draw to {to.name!r}; end it in {', '.join(SUFFIXES)}")
    if not to.parent.is_dir():
        raise SparqError(f"cannot draw to {str(to)!r}: there is no folder {str(to.parent)!r}")
    if suffix != ".html":
        need_matplotlib()  # Said before the world is computed, which may take long.
    with open_landscape(environment, seed) as landscape:
        portrait = sample(landscape, horizon, name=name)
    if suffix == ".html":
        as_html(portrait, to)
    else:
        as_figure(portrait).savefig(to, dpi=150)
    return to
