"""A portrait as a figure for print, drawn by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparq_sim.arrays import Values
from sparq_sim.errors import SparqError
from sparq_sim.report.environment.data import Portrait
from sparq_sim.report.environment.layout import (
    REWARD,
    Curve,
    Panel,
    colour_limits,
    find_ends,
    layout,
)
from sparq_sim.report.palette import GREY, INK, PALE, REWARDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_figure", "need_matplotlib"]

_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}
_WIDTH = 9.0  # In inches.


def need_matplotlib() -> None:
    """Check that matplotlib is installed.

    Raises:
        SparqError: It is not; the message says how to install it.
    """
    try:
        import matplotlib  # noqa: F401 - asked for only
    except ImportError:
        raise SparqError(
            "pictures are drawn by matplotlib, which is not installed; "
            "run: pip install 'sparq-sim[plots]', or draw to .html"
        ) from None


def draw_figure(portrait: Portrait) -> Figure:
    """Return a figure of a portrait, for a .png, .svg or .pdf.

    Args:
        portrait: What is shown.

    Raises:
        SparqError: Matplotlib is not installed.
    """
    need_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows = layout(portrait)
    with rc_context(_STYLE):
        height = _WIDTH * sum(row.height for row in rows) + 0.4
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        grid = figure.add_gridspec(len(rows), 1, height_ratios=[row.height for row in rows])
        coloured: dict[int, tuple[list[Axes], Any]] = {}
        for number, row in enumerate(rows):
            cells = grid[number].subgridspec(1, len(row.panels))
            for place, panel in enumerate(row.panels):
                axes = figure.add_subplot(cells[place])
                image = _draw(axes, panel, colour_limits(portrait))
                if image is not None:
                    coloured.setdefault(number, ([], image))[0].append(axes)
                    if place and panel.labels == row.panels[place - 1].labels:
                        axes.set_ylabel("")
                        axes.tick_params(labelleft=False)
        for each, image in coloured.values():
            figure.colorbar(image, ax=each, label=REWARD, pad=0.01, aspect=24, extend="both")
        figure.suptitle(_literal(portrait.name), x=0.01, ha="left", weight="bold", color=INK)
    return figure


def _literal(text: str) -> str:
    """Keep matplotlib from reading dollars as mathematics."""
    return text.replace("$", r"\$")


def _draw(axes: Axes, panel: Panel, limits: tuple[float, float]) -> Any:
    """Draw a panel, and return what its colours belong to, if it has any."""
    low, high = limits
    axes.set_title(panel.title, color=INK)
    axes.set_xlabel(_literal(panel.labels[0]))
    axes.set_ylabel(_literal(panel.labels[1]))
    axes.locator_params(nbins=5)
    image: Any = None
    if panel.field is not None:
        across, up, rewards = panel.field
        image = axes.imshow(
            rewards,
            extent=(*_edges(across), *_edges(up)),
            origin="lower",
            aspect="auto",
            cmap=REWARDS,
            vmin=low,
            vmax=high,
        )
        axes.set(xlim=find_ends(across), ylim=find_ends(up))
    elif panel.places is not None:
        x, y = panel.places.points.T
        image = axes.scatter(
            x, y, c=panel.places.rewards[0], s=26, cmap=REWARDS, vmin=low, vmax=high, linewidths=0
        )
        axes.margins(0.08)
    for curve in panel.curves:
        _draw_curve(axes, curve, over=image is not None, ring=panel.places is not None)
    if image is None and any(curve.name for curve in panel.curves):
        axes.legend(ncols=4, loc="lower right", bbox_to_anchor=(1.0, 0.99), borderpad=0)
    if image is None:
        axes.margins(x=0.0)
        axes.grid(axis="y", color=PALE, linewidth=0.5, alpha=0.6)
        axes.set_axisbelow(True)
    return image


def _edges(middles: Values) -> tuple[float, float]:
    """Return where the first cell begins and the last ends."""
    half = (middles[1] - middles[0]) / 2
    return float(middles[0] - half), float(middles[-1] + half)


def _draw_curve(axes: Axes, curve: Curve, *, over: bool, ring: bool) -> None:
    x, y, colour = curve.x, curve.y, curve.colour
    match curve.style:
        case "dots":
            axes.scatter(x, y, s=7, c=colour, edgecolors="white", linewidths=0.5)
        case "mark" if ring:
            axes.scatter(x, y, s=90, facecolors="none", edgecolors=colour, linewidths=1.4)
        case "mark":
            size, edge = (46, "white") if over else (18, colour)
            axes.scatter(x, y, s=size, c=colour, edgecolors=edge, zorder=3, clip_on=False)
        case "steps":
            axes.plot(x, y, color=colour, linewidth=1.2, drawstyle="steps-pre")
        case "thin":
            axes.plot(x, y, color=colour, linewidth=0.6, label=curve.name)
        case "line":
            axes.plot(x, y, color=colour, linewidth=1.5, label=curve.name)
