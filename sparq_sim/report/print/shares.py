"""Shares for print: stacked areas of what optimizers noted as parts of a whole."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from sparq_sim.errors import SparqError
from sparq_sim.report.data import ChartData, curve_name
from sparq_sim.report.palette import SHARES
from sparq_sim.report.print.layout import Artists, Panel, setting_titles
from sparq_sim.report.print.style import literal
from sparq_sim.report.shares import Shares, choose_colours, spell_out
from sparq_sim.study.settings import agree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["share_panels"]


def share_panels(data: ChartData) -> list[Panel]:
    """Return a panel for each optimizer and each whole that it noted by its parts, per setting.

    Args:
        data: What is drawn.

    Raises:
        SparqError: No optimizer noted parts of a whole.
    """
    if not data.shares:
        raise SparqError(
            "this study has nothing to show of 'shares': no optimizer noted parts of a whole, as "
            "Move(point, notes={'time_scale/3': 0.1, 'time_scale/10': 0.9}) does"
        )
    groups = dict.fromkeys(whole.group for whole in data.shares)
    colours = {group: choose_colours(data.shares, group) for group in groups}
    panels = []
    for setting, where in zip(data.settings, setting_titles(data), strict=True):
        for whole in data.shares:
            if agree(whole.setting, setting):
                name = spell_out(whole.group)
                prefix = f"{name}: " if len(groups) > 1 else ""
                paint = partial(_paint, whole=whole, colours=colours[whole.group], prefix=prefix)
                title = f"{curve_name(whole, setting)}: {name}" + (f", {where}" if where else "")
                panels.append(Panel(("round", "share (%)"), paint, title, from_zero=False))
    return panels


def _paint(axes: Axes, *, whole: Shares, colours: Mapping[str, int], prefix: str) -> Artists:
    names = [literal(f"{prefix}{spell_out(part)}") for part in whole.parts]
    areas = axes.stackplot(
        whole.rounds,
        100 * whole.values,
        labels=names,
        colors=[SHARES[colours[part] - 1] for part in whole.parts],
        # White lines tell neighbours apart, in grey too.
        edgecolor="white",
        linewidth=0.3,
    )
    axes.set_ylim(0, 100)
    axes.margins(x=0)
    return dict(zip(names, areas, strict=True))
