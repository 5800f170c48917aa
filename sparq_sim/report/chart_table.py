"""Chart tables: the numbers that a chart shows, a row for each point."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any

from sparq_sim.analysis.export import make_table
from sparq_sim.errors import SparqError, did_you_mean
from sparq_sim.report.choice import choose, series_by_kind
from sparq_sim.report.curves import find_curves
from sparq_sim.report.data import ChartData, kind_of_curve
from sparq_sim.report.gather import gather
from sparq_sim.report.sweeps import find_along, find_axes
from sparq_sim.report.uncertainty import find_interval
from sparq_sim.study.settings import Setting

if TYPE_CHECKING:
    import pyarrow as pa

    from sparq_sim.analysis.summary import Spread
    from sparq_sim.study.results import Results

__all__ = ["list_charts", "tabulate_chart"]

_CURVES = ("average-regret", "cumulative-regret", "mean-reward")
_KINDS = (*_CURVES, "cost", "sweep", "shares")
"""Charts besides those of a series."""


def list_charts(data: ChartData) -> list[str]:
    """Return the kinds of charts of which there are tables.

    Args:
        data: What was gathered of a study.
    """
    curves = [kind_of_curve(data.criterion, average=each) for each in (True, False)]
    found = [*dict.fromkeys(curves)] if data.bands and not data.has_nothing_to_judge else []
    if data.spends and not data.has_nothing_to_judge:
        found.append("cost")
    if data.varied_paths and not data.has_nothing_to_judge:
        found.append("sweep")
    if data.shares:
        found.append("shares")
    return [*found, *series_by_kind(data, _KINDS)]


def tabulate_chart(study: Results, kind: str, *, best_seen: bool = False) -> pa.Table:
    """Return what a chart shows: optimizer, swept fields, x, y, and the interval that is drawn.

    Args:
        study: The study.
        kind: As for `sparq-sim plot`, one of those that `list_charts` lists.
        best_seen: Whether regret is against the best reward seen in each play, where the best
            reward is not known.

    Returns:
        A row for each point: `x`, `y`, and `low` and `high`, null where no interval is drawn. A
        sweep names its field in `along`, a whole its parts in `part`; single plays, which are
        drawn where they are few, are told apart by `play`.

    Raises:
        SparqError: There is no such chart of the study.
    """
    data = choose(gather(study, replays=False, best_seen=best_seen).charts, {})
    if kind not in (known := list_charts(data)):
        raise SparqError(f"there is no table of a chart {kind!r}: {did_you_mean(kind, known)}")
    match kind:
        case _ if kind in _CURVES:
            rows = _curve_rows(data, average=kind != "cumulative-regret")
        case "cost":
            rows = _cost_rows(data)
        case "sweep":
            rows = _sweep_rows(data)
        case "shares":
            rows = _share_rows(data)
        case _:
            rows = _series_rows(data, series_by_kind(data, _KINDS)[kind])
    return make_table([{"chart": kind, **row} for row in rows])


def _row(optimizer: str, setting: Setting, *interval: float, **more: object) -> dict[str, Any]:
    """Return a row; *interval* is y, or y and the ends of the interval drawn around it."""
    y, low, high = interval if len(interval) == 3 else (*interval, float("nan"), float("nan"))
    ends = {"low": low if isfinite(low) else None, "high": high if isfinite(high) else None}
    return {"optimizer": optimizer, **setting, **more, "y": y, **ends}


def _curve_rows(data: ChartData, *, average: bool) -> Iterator[dict[str, Any]]:
    for curve in find_curves(data, {}, average=average):
        band = curve.band
        who = band.optimizer, band.setting
        rounds = band.rounds.tolist()
        numbers = zip(curve.mean.tolist(), curve.low.tolist(), curve.high.tolist(), strict=True)
        for x, drawn in zip(rounds, numbers, strict=True):
            yield _row(*who, *drawn, play="mean", x=x)
        if len(curve.singles) > 1:
            for place, single in enumerate(curve.singles.tolist(), start=1):
                for x, y in zip(rounds, single, strict=True):
                    yield _row(*who, y, play=f"{place}", x=x)


def _series_rows(data: ChartData, name: str) -> Iterator[dict[str, Any]]:
    for series in data.series:
        if series.name == name:
            for x, y in zip(series.rounds.tolist(), series.means.tolist(), strict=True):
                yield _row(series.optimizer, series.setting, y, x=x)


def _cost_rows(data: ChartData) -> Iterator[dict[str, Any]]:
    for each in data.summaries:
        if isfinite(each.judged.mean):
            drawn = _interval(each.judged, data)
            yield _row(each.optimizer, each.setting, *drawn, x=each.spent.mean)


def _sweep_rows(data: ChartData) -> Iterator[dict[str, Any]]:
    for axis in find_axes(data):
        for along in find_along(data, axis):
            for x, spread in zip(axis.numbers or axis.values, along.spreads, strict=True):
                if spread.count:
                    drawn = _interval(spread, data)
                    yield _row(along.optimizer, {}, *drawn, along=axis.label, x=x)


def _share_rows(data: ChartData) -> Iterator[dict[str, Any]]:
    for whole in data.shares:
        for part, values in zip(whole.parts, whole.values, strict=True):
            for x, y in zip(whole.rounds.tolist(), values.tolist(), strict=True):
                yield _row(
                    whole.optimizer, whole.setting, 100 * y, whole=whole.group, part=part, x=x
                )


def _interval(spread: Spread, data: ChartData) -> tuple[float, float, float]:
    return spread.mean, *find_interval(spread, positive=data.criterion.from_zero)
