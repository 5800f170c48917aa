"""Place over time for print: a row per optimizer, the true reward below the rounds it played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from sparq_sim.arrays import Values
from sparq_sim.report.palette import BADNESS, GREY, GROUND, INK
from sparq_sim.report.phrases import format_number
from sparq_sim.report.place import PlaceAxis, PlacePicture, PlaceRow, shade
from sparq_sim.report.print.style import STYLE, apply_style, literal, need_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

__all__ = ["draw_places"]

_WIDE = 5.0
"""Inches, from which on rows are higher."""
_MOST_VECTORS = 4000
"""Dots of a figure; more of them become pixels."""
_LEFT, _SITES, _RIGHT = 0.5, 0.85, 0.1
"""Inches beside the rows: left of them, where there are numbers or names of sites, and right."""
_HEAD, _LINE, _FOOT = 0.23, 0.115, 1.02
"""Inches above a row, of each further line of words, and of what is below the rows."""


def draw_places(picture: PlacePicture, *, width: float = 3.4) -> Figure:
    """Return a figure of where optimizers played over time.

    Args:
        picture: What is drawn, as `sparq_sim.report.place.read_places` returns it.
        width: In inches, from 1 to 30; by default, a column of a journal.
    """
    need_matplotlib()
    from matplotlib.figure import Figure

    left = _SITES if picture.axis.kind == "sites" else _LEFT
    across = width - left - _RIGHT
    texts = [_tell(row, _count_letters(across)) for row in picture.rows]
    heads = [_HEAD + _LINE * (len(lines) - 1) for lines in texts]
    tall = _find_height(picture, width)
    with apply_style():
        high = sum(heads) + tall * len(texts) + _FOOT
        figure = Figure(figsize=(width, high))

        def place(top: float, height: float, *, start: float = 0.0, share: float = 1.0) -> Axes:
            """Return axes so far below the top of the figure, in inches."""
            corner = (left + start * across) / width, 1 - (top + height) / high
            return figure.add_axes((*corner, share * across / width, height / high))

        several = sum(len(row.times) for row in picture.rows) > _MOST_VECTORS
        down = 0.0
        for row, lines, head in zip(picture.rows, texts, heads, strict=True):
            axes = place(down + head, tall)
            down += head + tall
            image = _paint_ground(axes, picture)
            dots = _paint_dots(axes, row, picture, width=across, rasterized=several)
            _write(axes, row, lines)
            _limit(axes, picture)
            axes.tick_params(labelbottom=False)
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("time (clock units)")
        middle = 1 - (down / 2) / high
        label = literal(picture.axis.label)
        figure.text(0.09 / width, middle, label, rotation=90, ha="center", va="center")
        scales = _list_scales(picture, image, dots)
        for number, scale in enumerate(scales):
            start = number / len(scales)
            bar = place(down + _FOOT - 0.5, 0.06, start=start, share=0.85 / len(scales))
            _explain(figure, bar, scale, room=_count_letters(across / len(scales)) - 4)
    return figure


def _count_letters(inches: float) -> int:
    """Return how many letters find room on a line of words."""
    return max(16, int(inches * 72 / (0.44 * STYLE["xtick.labelsize"])))


def _tell(row: PlaceRow, room: int) -> list[str]:
    """Return the lines above a row: its title and its words on one line, if they find room."""
    if len(row.title) + len(row.words) + 4 <= room:
        return [row.words]
    return ["", *wrap(row.words, room)]


def _find_height(picture: PlacePicture, width: float) -> float:
    usual = 0.95 if width >= _WIDE else 0.6
    usual *= 0.8 if len(picture.rows) > 4 else 1.0
    return max(usual, min(1.8, 0.055 * len(picture.axis.names)))


def _write(axes: Axes, row: PlaceRow, lines: Sequence[str]) -> None:
    """Write the title of a row, and its words beside or below it."""
    size = STYLE["xtick.labelsize"]
    below = len(lines) - 1
    axes.set_title(
        literal(row.title), loc="left", fontweight="bold", pad=4 + (72 * _LINE + 1) * below
    )
    if not below:
        axes.set_title(_show(lines[0]), loc="right", color=GREY, fontsize=size)
        return
    axes.annotate(
        "\n".join(map(_show, lines[1:])),
        (0, 1),
        (0, 3),
        xycoords="axes fraction",
        textcoords="offset points",
        color=GREY,
        fontsize=size,
        va="bottom",
        linespacing=1.1,
    )


def _show(line: str) -> str:
    return line.replace("$", r"\$")


def _ramp(colours: Sequence[str]) -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ramp", list(colours))


def _paint_ground(axes: Axes, picture: PlacePicture) -> ScalarMappable | None:
    axes.set_facecolor(GROUND[0])
    ground = picture.ground
    if ground is None:
        return None
    image = None
    if ground.rewards.size:
        image = axes.pcolormesh(
            _edges(ground.times),
            _edges(ground.heights),
            ground.rewards.T,
            cmap=_ramp(GROUND),
            vmin=ground.range[0],
            vmax=ground.range[1],
            rasterized=True,
            linewidth=0,
        )
    if picture.axis.kind == "sites":
        edges = _edges(ground.times)
        axes.hlines(ground.best, edges[:-1], edges[1:], colors=INK, linewidths=0.6, alpha=0.75)
    elif picture.axis.kind == "coordinate":
        axes.plot(ground.times, ground.best, color=INK, linewidth=0.6, alpha=0.8)
    return image


def _edges(middles: Values) -> Values:
    """Return where cells around *middles* begin and end: (n + 1,)."""
    if len(middles) < 2:
        return np.array([middles[0] - 0.5, middles[0] + 0.5])
    inner = (middles[1:] + middles[:-1]) / 2
    return np.concatenate([[2 * middles[0] - inner[0]], inner, [2 * middles[-1] - inner[-1]]])


def _paint_dots(
    axes: Axes, row: PlaceRow, picture: PlacePicture, *, width: float, rasterized: bool
) -> ScalarMappable:
    """Draw the rounds of a row that is so many inches wide."""
    low, high = picture.axis.shown
    inside = (row.heights >= low) & (row.heights <= high)
    look: dict[str, Any] = {"cmap": _ramp(BADNESS), "vmin": 0, "vmax": 1}
    look |= {"zorder": 3, "rasterized": rasterized}
    shades = shade(row.values, picture.paint)
    known = np.isfinite(shades)
    gap = 72 * width / max(1, len(row.times))
    size = min(2.6, 1.2 + 0.35 * gap) ** 2
    moved = inside & known & row.moved
    dots = axes.scatter(
        *(row.times[moved], row.heights[moved], size, shades[moved]),
        linewidths=0,
        clip_on=False,
        **look,
    )
    idle = inside & known & ~row.moved
    ring = axes.scatter(
        row.times[idle], row.heights[idle], size, linewidths=0.4, zorder=3, rasterized=rasterized
    )
    ring.set(facecolor="none", edgecolor=dots.to_rgba(shades[idle]))
    silent = inside & ~known
    axes.plot(
        *(row.times[silent], row.heights[silent]),
        marker="x",
        color=GREY,
        linestyle="",
        markersize=2,
        zorder=3,
    )
    for edge, beyond in ((low, row.heights < low), (high, row.heights > high)):
        axes.scatter(
            *(row.times[beyond], np.full(int(beyond.sum()), edge), 9, shades[beyond]),
            marker="|",
            linewidths=0.5,
            **look,
        )
    return dots


def _limit(axes: Axes, picture: PlacePicture) -> None:
    axes.set_ylim(*picture.axis.shown)
    times = np.array(picture.span)
    axes.set_xlim(*(_edges(picture.ground.times)[[0, -1]] if picture.ground else times))
    axes.locator_params(axis="y", nbins=4)
    if picture.axis.kind == "sites":
        _name_sites(axes, picture.axis)


def _name_sites(axes: Axes, axis: PlaceAxis) -> None:
    count = len(axis.names)
    step = 1 if count <= 12 else max(1, count // 8)
    ticks = list(range(count - 1, -1, -step))
    axes.set_yticks(ticks, [literal(axis.names[tick]) for tick in ticks])
    axes.tick_params(axis="y", labelsize=5 if count > 6 else STYLE["ytick.labelsize"])


@dataclass(frozen=True)
class _Scale:
    """Colours to be explained: where on them there are ticks, and what all of it is called."""

    colours: ScalarMappable
    ticks: Sequence[float]
    names: Sequence[str]
    label: str


def _list_scales(
    picture: PlacePicture, image: ScalarMappable | None, dots: ScalarMappable
) -> list[_Scale]:
    """List the colours of dots, and those of the ground if there is one."""
    good, bad, paint = picture.paint.good, picture.paint.bad, picture.paint
    # Shades are roots, so that half of them is a quarter of the way.
    names = [format_number(good + share * (bad - good)) for share in (0, 0.25, 1)]
    label = f"{paint.word} of the round" + (f", up to {paint.note}" if paint.note else "")
    scales = [_Scale(dots, (0, 0.5, 1), names, label)]
    if image is not None and picture.ground is not None:
        ends = picture.ground.range
        named = [format_number(end) for end in ends]
        scales.append(_Scale(image, ends, named, picture.ground.describe(picture.axis)))
    return scales


def _explain(figure: Figure, axes: Axes, scale: _Scale, *, room: int) -> None:
    bar = figure.colorbar(scale.colours, cax=axes, orientation="horizontal")
    label = fill(scale.label, max(12, room), break_long_words=False)
    bar.set_label(label, fontsize=STYLE["xtick.labelsize"], labelpad=1)
    bar.set_ticks(list(scale.ticks), labels=list(scale.names))
    bar.ax.tick_params(labelsize=6, length=1.5, pad=1)
    bar.outline.set_visible(False)
