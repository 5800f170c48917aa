"""Portraits: the reward of an environment over space and time, to be looked at before playing.

`sample` computes the data, `layout` decides which panels show them, and two renderers draw these:
`write_html` with Plotly, `draw_figure` with matplotlib.
"""

from __future__ import annotations

from pathlib import Path

from sparq_sim.errors import SparqError
from sparq_sim.plugin.environment import Environment
from sparq_sim.report.environment.data import Portrait, sample
from sparq_sim.report.environment.html import write_html
from sparq_sim.report.environment.print import draw_figure, need_matplotlib
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.study.store.files import whole_file

__all__ = ["Portrait", "draw_figure", "portray", "sample", "write_html"]

_SUFFIXES = (".html", ".png", ".svg", ".pdf")


def portray(
    environment: Environment, to: Path, *, name: str, horizon: float = 100.0, seed: int = 0
) -> Path:
    """Draw an environment to a file, as plays meet it in replication 0.

    Args:
        environment: What is drawn.
        to: The file; it ends in .html, or, with the extra `plots`, in .png, .svg or .pdf.
        name: Of the environment, as the title.
        horizon: Until when, from time 0, in clock units.
        seed: Of the plays.

    Returns:
        The file.

    Raises:
        SparqError: The file has another ending or no folder, or cannot be written, or matplotlib
            is needed and missing.
    """
    suffix = to.suffix.lower()
    if suffix not in _SUFFIXES:
        raise SparqError(f"cannot draw to {to.name!r}; end it in {', '.join(_SUFFIXES)}")
    if not to.parent.is_dir():
        raise SparqError(f"cannot draw to {str(to)!r}: there is no folder {str(to.parent)!r}")
    if suffix != ".html":
        need_matplotlib()  # Said before the world is computed, which may take long.
    with open_landscape(environment, seed) as landscape:
        portrait = sample(landscape, horizon, name=name)
    if suffix == ".html":
        write_html(portrait, to)
    else:
        with whole_file(to) as file:
            draw_figure(portrait).savefig(file, format=suffix[1:], dpi=150)
    return to
