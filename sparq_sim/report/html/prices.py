"""Prices in a page: regret plus the price of what is spent, and where it breaks even."""

from __future__ import annotations

from math import nan

from sparq_sim.report.data import ChartData
from sparq_sim.report.html.figure import (
    Chart,
    Figure,
    PlotlyTrace,
    escape_text,
    line_style,
    make_figure,
    mark,
    round_digits,
)
from sparq_sim.report.phrases import format_number
from sparq_sim.report.prices import PriceLines, PricePicture, describe_set, find_prices
from sparq_sim.report.scales import Scale

__all__ = ["price_charts"]


def price_charts(data: ChartData) -> list[Chart]:
    """Return the chart of regret plus price, if it depends on the price who is best.

    Args:
        data: What it shows.
    """
    picture = find_prices(data)
    if picture is None:
        return []
    word = data.criterion.word
    return [
        Chart(
            "price",
            f"{word[:1].upper()}{word[1:]} and price",
            picture.caption,
            [_draw(data, picture, lines) for lines in picture.settings],
            by="" if picture.swept else "setting",
        )
    ]


def _draw(data: ChartData, picture: PricePicture, lines: PriceLines) -> Figure:
    traces: list[PlotlyTrace] = [
        {
            **mark(name),
            "x": round_digits(lines.prices),
            "y": round_digits(lines.find_heights(name)),
            "mode": "lines+markers" if picture.swept else "lines",
            "name": escape_text(name),
            "line": line_style(data.look(optimizer)),
        }
        for name, optimizer in lines.optimizers.items()
    ]
    low, high = float(lines.prices[0]), float(lines.prices[-1])
    # Points at swept prices are not to be cut in half.
    room = 0.02 * (high - low) if picture.swept else 0.0
    scale = lines.find_scale()
    if scale is not None:
        traces += _mark_changes(lines, scale)
    return make_figure(
        traces,
        x=picture.label,
        y=picture.height_label,
        hovermode="closest",
        showlegend=True,
        xaxis={"range": round_digits([low - room, high + room]), "zeroline": False},
        yaxis={} if scale is None else {"range": round_digits([scale.low, scale.high])},
    )


def _mark_changes(lines: PriceLines, scale: Scale) -> list[PlotlyTrace]:
    """Return break-even prices and their confidence sets, each below where lines cross."""
    low, high = float(lines.prices[0]), float(lines.prices[-1])
    traces: list[PlotlyTrace] = []
    for change, height in zip(lines.totals.changes, lines.list_rows(scale), strict=True):
        pieces = [(start, min(end, high)) for start, end in change.ranges if start <= high]
        x = [place for piece in pieces for place in (*piece, nan)]
        shared = {"hoverinfo": "skip", "showlegend": False, "mode": "lines"}
        price = format_number(change.price)
        side = "right" if change.price < (low + high) / 2 else "left"
        traces += [
            {
                **shared,
                "x": round_digits([change.price] * 2),
                "y": round_digits([height, lines.sign * change.height]),
                "line": {"color": "--muted", "width": 1, "dash": "dot"},
            },
            {
                **shared,
                "x": round_digits(x),
                "y": round_digits([height] * len(x)),
                "line": {"color": "--ink/0.5", "width": 2},
            },
            {
                "x": round_digits([change.price]),
                "y": round_digits([height]),
                "mode": "markers+text",
                "marker": {"color": "--ink", "size": 8},
                "text": [escape_text(f"from {price}: {change.after}")],
                "textposition": f"top {side}",
                "textfont": {"color": "--muted", "size": 12},
                "hovertemplate": escape_text(
                    f"{change.before} up to {price} ({describe_set(change.ranges)}), "
                    f"then {change.after}"
                )
                + "<extra></extra>",
                "showlegend": False,
            },
        ]
    return traces
