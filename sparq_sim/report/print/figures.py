"""Figures for print: what a study comes to, drawn by matplotlib to .pdf, .svg or .png."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.analysis.curves import ROUND_REGRET
from sparq_sim.errors import SparqError, did_you_mean
from sparq_sim.report.choice import choose, find_setting, series_by_kind
from sparq_sim.report.data import ChartData, kind_of_curve
from sparq_sim.report.differences import find_rankings
from sparq_sim.report.fates import find_fates
from sparq_sim.report.figure_kinds import KINDS
from sparq_sim.report.gather import gather
from sparq_sim.report.network import NetworkData, read_stored_networks
from sparq_sim.report.place import PlacePicture, find_most_telling, read_places
from sparq_sim.report.prices import find_prices
from sparq_sim.report.print.curves import cost_panel, regret_panels, series_panels
from sparq_sim.report.print.differences import difference_panels
from sparq_sim.report.print.fates import fate_panels
from sparq_sim.report.print.layout import AS_FITS, Axis, lay_out
from sparq_sim.report.print.marks import Lines
from sparq_sim.report.print.meters import BY, is_constant, list_meters, meter_panel
from sparq_sim.report.print.network import draw_network
from sparq_sim.report.print.place import draw_places
from sparq_sim.report.print.plays import OF_ONE_PLAY, WINNER, PlayView, check_view, draw_play
from sparq_sim.report.print.prices import price_panels
from sparq_sim.report.print.shares import share_panels
from sparq_sim.report.print.style import UNDATED, apply_style, need_matplotlib
from sparq_sim.report.print.sweeps import draw_heat_maps, sweep_panels
from sparq_sim.study.results import Results
from sparq_sim.study.settings import Setting
from sparq_sim.study.store import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLUMN", "SUFFIXES", "LevelOrCurve", "draw", "kinds", "save"]

_JUDGED = (
    *("average-regret", "cumulative-regret", ROUND_REGRET, "mean-reward", "reward"),
    *("differences", "cost", "price", "sweep", "heat-map"),
)
"""The kinds of figures that show what plays are compared by."""
_WITHOUT_AXIS = ("differences", "heat-map", "network", "place", "shares", *OF_ONE_PLAY)
"""Kinds of figures whose axis to the left shows no quantity that could be on another scale."""
SUFFIXES = (".pdf", ".svg", ".png")
"""The endings of files that figures can be saved to."""
COLUMN = 3.4
"""How wide a column of a two-column journal is, in inches."""

LevelOrCurve: TypeAlias = float | Sequence[float] | NDArray[np.float64]
"""What a user adds to a figure: a level, or a value per round."""


def save(
    study: Results | ChartData,
    kind: str,
    to: Path | str,
    *,
    width: float = COLUMN,
    lines: Mapping[str, LevelOrCurve] | None = None,
    where: Setting | None = None,
    only: Sequence[str] = (),
    axis: Axis = AS_FITS,
    optimizer: str | None = None,
    replication: int | None = None,
    view: PlayView = WINNER,
    best_seen: bool = False,
    allow_import: bool = False,
) -> Path:
    """Draw a figure to a file; the same figure has the same bytes every time.

    Args:
        study: A study, or what was gathered of it.
        kind: One of `KINDS`, or of what `kinds` lists.
        to: The file; it ends in .pdf, .svg or .png.
        width: Of the figure, in inches; by default, a column of a journal.
        lines: Drawn besides, under their names, as by `draw`.
        where: Values of swept parameters to look at; by default, all.
        only: Optimizers to show; by default, all.
        axis: What is asked of the axis to the left, as by `draw`.
        optimizer: Whose network is drawn, as by `draw`.
        replication: Of which places are drawn, as by `draw`.
        view: Which play a belief or timeline is of, and when, as by `draw`.
        best_seen: Whether regret is against the best seen, as by `draw`.
        allow_import: Whether plays may name code to run, as by `draw`.

    Returns:
        The file.

    Raises:
        SparqError: The file cannot be written, or there is nothing to draw.
    """
    to = Path(to)
    suffix = to.suffix.lower()
    if suffix not in SUFFIXES:
        raise SparqError(f"cannot draw to {to.name!r}; end it in {', '.join(SUFFIXES)}")
    if not to.parent.is_dir():
        raise SparqError(f"cannot draw to {str(to)!r}: there is no folder {str(to.parent)!r}")
    figure = draw(
        study,
        kind,
        width=width,
        lines=lines,
        where=where,
        only=only,
        axis=axis,
        optimizer=optimizer,
        replication=replication,
        view=view,
        best_seen=best_seen,
        allow_import=allow_import,
    )
    content = BytesIO()
    with apply_style():
        figure.savefig(content, format=suffix[1:], metadata=UNDATED[suffix])
    write_whole(to, content.getvalue())
    return to


def draw(
    study: Results | ChartData,
    kind: str,
    *,
    width: float = COLUMN,
    lines: Mapping[str, LevelOrCurve] | None = None,
    where: Setting | None = None,
    only: Sequence[str] = (),
    axis: Axis = AS_FITS,
    optimizer: str | None = None,
    replication: int | None = None,
    view: PlayView = WINNER,
    best_seen: bool = False,
    allow_import: bool = False,
) -> Figure:
    """Return a figure of a study, drawn by matplotlib.

    Args:
        study: A study, or what was gathered of it.
        kind: One of `KINDS`, or of what `kinds` lists.
        width: In inches; by default, a column of a journal.
        lines: Drawn besides, under their names: a number as a level, several as the values of
            rounds 1, 2, …
        where: Values of swept parameters to look at, by path or its last word; by default, all.
        only: Names of the optimizers to show; by default, all.
        axis: What is asked of the axis to the left: that it is logarithmic, or where it begins and
            ends; by default, it fits what is drawn.
        optimizer: Whose network is drawn; by default, that of the first optimizer that has one.
            Other kinds of figures show all optimizers.
        replication: Of which places are drawn; by default, that in which the best optimizer did as
            in its median play. Other kinds of figures show all replications.
        view: Which play a belief or timeline is of, and when; by default, the last round of the
            first play of the best optimizer. Other kinds of figures show all plays.
        best_seen: Whether regret is against the best reward seen in each play, where the best
            reward is not known; what was gathered of a study says so itself.
        allow_import: Whether plays may name code to run, as `module:Class`, for the true reward
            below places, a belief or a timeline.

    Raises:
        SparqError: There is nothing to draw, or an argument is not as described.
    """
    need_matplotlib()
    if not 1 <= width <= 30:
        raise SparqError(f"a figure must be from 1 to 30 inches wide, not {width!r}")
    data = _chart_data(study, best_seen=best_seen)
    if kind not in (known := {*KINDS, *series_by_kind(data, KINDS), *_meters_by_kind(data)}):
        if kind.startswith(BY) and is_constant(data, kind.removeprefix(BY)):
            raise SparqError(
                f"{kind.removeprefix(BY)} is the same for all optimizers and settings, so that "
                f"{data.criterion.word} cannot be drawn against it; compare more of them"
            )
        alike = {each for each in known if each.startswith(BY) == kind.startswith(BY)}
        raise SparqError(f"no kind of figure is called {kind!r}: {did_you_mean(kind, alike)}")
    if not data.found:
        raise SparqError("there is no finished play to draw; run the study first")
    _check_criterion(data, kind)
    check_view(kind, view)
    if optimizer is not None and kind != "network":
        raise SparqError(f"a figure {kind!r} shows all optimizers; leave out {optimizer!r}")
    if replication is not None and kind != "place":
        raise SparqError(
            f"a figure {kind!r} shows all replications; leave out replication {replication}"
        )
    if only and kind in ("network", "place"):
        raise SparqError(f"a figure {kind!r} cannot leave out optimizers; leave out --only")
    if axis != AS_FITS and kind in _WITHOUT_AXIS:
        raise SparqError(f"a figure {kind!r} has no axis that --log or --ylim could change")
    arrange = partial(lay_out, width=width, axis=axis)
    chosen = choose(data, where or {}, only)
    series = series_by_kind(chosen, KINDS)
    more = _check_lines(lines or {}, kind)
    if kind == "network":
        fixed = dict(find_setting(data, name, value) for name, value in (where or {}).items())
        return draw_network(_find_network(study, data, fixed, optimizer), width=width)
    if kind == "place":
        settings, at = chosen.settings, replication
        picture = _find_place(study, settings, replication=at, allow_import=allow_import)
        return draw_places(picture, width=width)
    if kind in OF_ONE_PLAY:
        return draw_play(
            study,
            kind,
            chosen,
            view,
            is_narrowed=bool(where or only),
            width=width,
            allow_import=allow_import,
        )
    with apply_style():
        match kind:
            case "average-regret" | "cumulative-regret" | "mean-reward":
                average = kind != "cumulative-regret"
                return arrange(regret_panels(chosen, more, average=average))
            case "differences":
                return lay_out(difference_panels(chosen), width, alike=False)
            case "fates":
                return lay_out(fate_panels(chosen), width, alike=False)
            case "cost" | "price" | "spent" if not chosen.spends:
                raise SparqError(f"nothing was spent in this study, so it has no figure {kind!r}")
            case "cost":
                return arrange([cost_panel(chosen, more)])
            case "price":
                return arrange(price_panels(chosen))
            case "sweep":
                return arrange(sweep_panels(chosen, more))
            case "heat-map":
                return draw_heat_maps(chosen, width)
            case "shares":
                return arrange(share_panels(chosen))
            case _ if kind in (meters := _meters_by_kind(chosen)):
                return arrange([meter_panel(chosen, meters[kind], more)])
            case _ if kind in series:
                return arrange(series_panels(chosen, series[kind], more))
    raise SparqError(
        f"this study has nothing to show of {kind!r}: no expert was asked, or replies were not "
        "recorded; run the scenario with record = 'full'"
    )


def kinds(study: Results | ChartData, *, best_seen: bool = False) -> list[str]:
    """Return the kinds of figures for which a study has data.

    Args:
        study: A study, or what was gathered of it.
        best_seen: Whether regret is against the best seen, as by `draw`.
    """
    data = _chart_data(study, best_seen=best_seen)
    varied, judged = len(data.varied_paths), not data.has_nothing_to_judge
    there = {
        **{kind_of_curve(data.criterion, average=each): bool(data.bands) for each in (True, False)},
        "differences": judged and any(find_rankings(data)),
        "cost": data.spends and judged,
        "price": find_prices(data) is not None,
        "fates": any(find_fates(data, setting) for setting in data.settings),
        "sweep": varied > 0 and judged,
        "heat-map": varied > 1 and judged,
        "shares": bool(data.shares),
    }
    found = [*(kind for kind, is_there in there.items() if is_there), *series_by_kind(data, KINDS)]
    found += _meters_by_kind(data) if judged else ()
    if isinstance(study, Results) and read_stored_networks(study)[0]:
        found.append("network")
    if isinstance(study, Results) and data.found:
        # Whether an optimizer has a belief shows only when it plays.
        found += ["place", "timeline"]
    return found


def _chart_data(study: Results | ChartData, *, best_seen: bool) -> ChartData:
    if isinstance(study, ChartData):
        return study
    return gather(study, replays=False, best_seen=best_seen).charts


def _check_criterion(data: ChartData, kind: str) -> None:
    """Refuse regret where the best reward is not known, and observed rewards where it is."""
    criterion = data.criterion
    if data.has_nothing_to_judge and (kind in _JUDGED or kind.startswith(BY)):
        raise SparqError(f"no reward was observed in any play, so that there is no figure {kind!r}")
    if kind in ("average-regret", "cumulative-regret", ROUND_REGRET) and criterion.more_is_better:
        raise SparqError(
            f"the best reward is not known here, so there is no {kind.replace('-', ' ')}; draw "
            "mean-reward or reward, or regret against the best seen: --against best-seen"
        )
    if kind == "mean-reward" and not criterion.more_is_better:
        other = "the best reward is known here" if criterion.is_regret else "with best-seen"
        raise SparqError(f"{other}, draw average-regret in place of mean-reward")
    if kind == "reward" and criterion.is_regret:
        raise SparqError("the best reward is known here, draw average-regret in place of reward")


def _find_network(
    study: Results | ChartData, data: ChartData, where: Setting, optimizer: str | None
) -> NetworkData:
    """Return the network of an optimizer, or of the first that has one."""
    if isinstance(study, ChartData):
        raise SparqError("a figure 'network' is drawn of a study, not of what was gathered of it")
    if optimizer is not None and optimizer not in data.optimizers:
        hint = did_you_mean(optimizer, data.optimizers)
        raise SparqError(f"no optimizer is called {optimizer!r}: {hint}")
    order = data.optimizers if optimizer is None else [optimizer]
    shown, _ = read_stored_networks(study, order=order, where=where, only=optimizer)
    if not shown:
        raise SparqError(
            "this study has no network to draw: no expert left a table 'nodes', or what experts "
            "leave was not recorded; run the scenario with record = 'full'"
        )
    return shown[0].network


def _find_place(
    study: Results | ChartData,
    settings: Sequence[Setting],
    *,
    replication: int | None,
    allow_import: bool,
) -> PlacePicture:
    """Return where optimizers played in the setting in which they lie furthest apart."""
    if isinstance(study, ChartData):
        raise SparqError("a figure 'place' is drawn of a study, not of what was gathered of it")
    found = read_places(study, settings, replication=replication, allow_import=allow_import)
    if not found:
        raise SparqError("no play could be read; their files are damaged")
    return found[find_most_telling(found)]


def _meters_by_kind(data: ChartData) -> dict[str, str]:
    """Return the meters that regret can be drawn against, by the kinds of figures."""
    return {f"{BY}{name}": name for name in list_meters(data)}


def _check_lines(lines: Mapping[str, LevelOrCurve], kind: str) -> Lines:
    """Check the lines that a user adds, and return them as arrays."""
    several = kind not in ("cost", "sweep") and not kind.startswith(BY)
    found = {}
    for name, values in lines.items():
        if kind in (*_WITHOUT_AXIS, "price"):
            what = "figure of shares" if kind == "shares" else kind.replace("-", " ")
            raise SparqError(f"a {what} has no place for the line {name!r}")
        found[name] = np.asarray(values, dtype=float)
        if not found[name].size or found[name].ndim > several:
            wanted = "a number, or one a round" if several else "a number"
            raise SparqError(f"the line {name!r} of a figure {kind!r} must be {wanted}")
    return found
