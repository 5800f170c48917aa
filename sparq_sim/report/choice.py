"""Choice: what of a study a chart shows, by kind, settings and optimizers."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from sparq_sim.analysis.curves import Band, Series
from sparq_sim.analysis.summary import Summary
from sparq_sim.errors import SparqError, did_you_mean
from sparq_sim.report.data import ChartData
from sparq_sim.report.shares import Shares
from sparq_sim.study.settings import Setting, agree, find_path, find_value, keep_fullest
from sparq_sim.study.store import StoredSummary, canonical

__all__ = ["choose", "find_setting", "series_by_kind"]


def choose(data: ChartData, where: Setting, only: Sequence[str] = ()) -> ChartData:
    """Return what was played in some settings by some optimizers, settings by their values.

    Args:
        data: What there is.
        where: Values of swept parameters, by path or its last word; those not named are kept all.
        only: Names of optimizers; none for all.

    Raises:
        SparqError: There is no such parameter, value or optimizer.
    """
    for name in only:
        if name not in data.optimizers:
            hint = did_you_mean(name, data.optimizers)
            raise SparqError(f"no optimizer is called {name!r}: {hint}")
    names = [name for name in data.optimizers if not only or name in only]
    fixed = dict(find_setting(data, name, value) for name, value in where.items())

    def is_chosen(each: StoredSummary | Summary | Band | Series | Shares) -> bool:
        return each.optimizer in names and agree(each.setting, fixed)

    chosen = replace(
        # All optimizers stay listed, for their places decide on colours.
        data,
        found=[each for each in data.found if is_chosen(each)],
        summaries=[each for each in data.summaries if is_chosen(each)],
        bands=[each for each in data.bands if is_chosen(each)],
        series=[each for each in data.series if is_chosen(each)],
        shares=[each for each in data.shares if is_chosen(each)],
        levels=[(setting, level) for setting, level in data.levels if agree(setting, fixed)],
    )
    orders = {
        path: [canonical(value) for value in chosen.values(path)] for path in chosen.varied_paths
    }
    settings = sorted(
        keep_fullest(each.setting for each in chosen.found),
        key=lambda setting: [
            order.index(canonical(setting[path])) if path in setting else -1
            for path, order in orders.items()
        ],
    )
    return replace(chosen, settings=settings)


def find_setting(data: ChartData, name: str, value: object) -> tuple[str, object]:
    """Return the path and the value that a user means by a name, in full or its last word.

    Args:
        data: What there is.
        name: What a user calls it.
        value: What a user writes.

    Raises:
        SparqError: There is no such parameter or value.
    """
    path = find_path(name, data.swept_paths)
    return path, find_value(value, data.values(path), path)


def series_by_kind(data: ChartData, taken: Container[str]) -> dict[str, str]:
    """Return the names of series by the kinds of figures that show them.

    Args:
        data: What there is.
        taken: Kinds of figures that have these names already.
    """
    found: dict[str, str] = {}
    for name in dict.fromkeys(series.name for series in data.series):
        # Where replies were not recorded, the points that optimizers note as `queries` have to do.
        noted = "asked" if name == "note queries" else name.partition(" ")[2]
        free = noted not in found and (noted not in taken or noted == "asked")
        found[noted if noted and free else name] = name
    return found
