"""Compare `sparq-memory` with others over the ten worlds of the scenarios memory/.

From docs/results/memory-*.json, which `python -m reproduce memory-function` and the like make, to
docs/results/memory.json and two figures. Differences are paired by replication; a p-value is that
of a paired t-test, corrected by Holm's method for all comparisons of its table. "better" and
"worse" stand where it is below 0.05.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from math import sqrt
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
from scipy import stats

from reproduce.figures import PICTURES
from reproduce.studies import Row, read_results, shorten_paths, write
from sparq_sim import Scenario
from sparq_sim.report.looks import find_look
from sparq_sim.report.palette import GREY, SERIES
from sparq_sim.report.print.style import STYLE, apply_style
from sparq_sim.study.store import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORLDS = {
    "function": "paper's function",
    "rkhs_walk": "RKHS walk",
    "switching": "switches, 2-d",
    "markov_slow": "slow Markov process",
    "markov_fast": "fast Markov process",
    "peaks": "moving peaks, 2-d",
    "hartmann": "Hartmann, 6-d",
    "plume": "plume, 2-d",
    "rod": "rod",
    "ozone": "ozone, 28 sites (ppb)",
}
CAPS = (1, 2, 4, 8, 16)
LATE = (3, 6, 11)
"""Transits in rounds; answers are 2, 5 and 10 rounds late."""
OTHERS = ("sparq, theory", "sparq, every 5th", "tv", "w", "ui", "ui-tvbo")
BELIEFS = ("function", "markov_slow", "switching")
LEVEL = 0.05
_OURS, _PEERS = find_look("sparq-memory"), find_look("sparq-gp-ucb")
FIGURES = ("memory-queries", "memory-late", "memory-beliefs")
"""What `draw` draws."""


@dataclass(frozen=True)
class Comparison:
    """Two ways to play in one world, paired by replication."""

    world: str
    ours: Sequence[float]
    peer: Sequence[float]

    @property
    def ratio(self) -> float:
        """The mean of ours over that of the peer."""
        return float(np.mean(self.ours) / np.mean(self.peer))

    @property
    def p_value(self) -> float:
        """That of a paired t-test."""
        if np.allclose(self.ours, self.peer):
            return 1.0
        return float(stats.ttest_rel(self.ours, self.peer).pvalue)


def pair(world: str, ours: Row, peer: Row) -> Comparison:
    """Pair two rows by replication, as far as both have been played."""
    regrets = zip(ours["average_regrets"], peer["average_regrets"], strict=False)
    first, second = zip(*regrets, strict=True)
    return Comparison(world, first, second)


def judge(comparisons: Sequence[Comparison]) -> list[str]:
    """Return "better", "worse" or "unclear" for each, corrected by Holm's method for all."""
    order = np.argsort([each.p_value for each in comparisons])
    verdicts = ["unclear"] * len(comparisons)
    for rank, place in enumerate(order):
        if comparisons[place].p_value * (len(comparisons) - rank) >= LEVEL:
            break
        verdicts[place] = "better" if comparisons[place].ratio < 1 else "worse"
    return verdicts


def find_row(world: str, optimizer: str, **swept: object) -> Row:
    """Return the row of an optimizer in a world, of the late study where something is swept."""
    name = f"memory-late-{world}" if swept else f"memory-{world}"
    for row in read_results(name)["rows"]:
        setting = shorten_paths(row["setting"])
        if row["optimizer"] == optimizer and all(setting[k] == v for k, v in swept.items()):
            return dict(row)
    raise ValueError(f"{name} has no row {optimizer!r} with {swept}")


def tell(regrets: Sequence[float]) -> str:
    """Write the mean of some plays, and half its 95 % interval."""
    reach = stats.t.ppf(0.975, len(regrets) - 1) * np.std(regrets, ddof=1) / sqrt(len(regrets))
    mean = float(np.mean(regrets))
    decimals = 4 if mean < 0.025 else 3 if mean < 2 else 2
    return f"{mean:.{decimals}f} ± {reach:.{decimals}f}"


def _prices(world: str) -> list[float]:
    rows = read_results(f"memory-late-{world}")["rows"]
    found = {float(shorten_paths(row["setting"])["cost_per_point"]) for row in rows}  # type: ignore[arg-type] # numbers
    return sorted(found - {0.0})


def _compare(pick: Callable[[str], tuple[Row, Row]]) -> dict[str, Comparison]:
    found = {}
    for world in WORLDS:
        found[world] = pair(world, *pick(world))
    return found


def worlds() -> Iterator[Row]:
    """Yield two queries a round at past points, beside SparQ-GP-UCB at 6 log t."""
    pairs = {world: (find_row(world, "memory"), find_row(world, "sparq")) for world in WORLDS}
    verdicts = judge([*_compare(pairs.__getitem__).values()])
    for (world, (ours, peer)), verdict in zip(pairs.items(), verdicts, strict=True):
        yield {
            "world": WORLDS[world],
            "memory": tell(ours["average_regrets"]),
            "queries": f"{ours['asked_per_round']:.1f}",
            "sparq": tell(peer["average_regrets"]),
            "its queries": f"{peer['asked_per_round']:.1f}",
            "lower in": f"{_share_lower(ours, peer):.0%} of plays".replace("%", " %"),
            "memory is": verdict,
        }


def _share_lower(ours: Row, peer: Row) -> float:
    pairs = zip(ours["average_regrets"], peer["average_regrets"], strict=True)
    return float(np.mean([own < other for own, other in pairs]))


def equal() -> Iterator[Row]:
    """Yield ratios of regrets at equal caps; with 2 queries SparQ-GP-UCB asks in two ways."""
    made: dict[str, dict[int, Comparison]] = {world: {} for world in WORLDS}
    for cap in CAPS:
        name = "memory" if cap == 2 else f"memory, {cap}"
        for world in WORLDS:
            peers = [find_row(world, f"sparq, {cap}")]
            if cap == 2:
                peers.append(find_row(world, "sparq, 2 kept"))
            peer = min(peers, key=lambda row: row["average_regret"])
            own = find_row(world, name)
            made[world][cap] = pair(world, own, peer)
    verdicts = iter(judge([each for ours in made.values() for each in ours.values()]))
    for world, compared in made.items():
        yield {
            "world": WORLDS[world],
            **{f"{cap}": f"{each.ratio:.2f} {next(verdicts)}" for cap, each in compared.items()},
        }


def anywhere() -> Iterator[Row]:
    """Yield two queries a round anywhere, beside SparQ-GP-UCB at past points and anywhere."""
    ours = {world: find_row(world, "memory", access="domain") for world in WORLDS}
    past = {world: find_row(world, "sparq") for world in WORLDS}
    domain = {world: find_row(world, "sparq", access="domain") for world in WORLDS}
    first = [*_compare(lambda world: (ours[world], past[world])).values()]
    second = [*_compare(lambda world: (ours[world], domain[world])).values()]
    verdicts = judge([*first, *second])
    for place, world in enumerate(WORLDS):
        yield {
            "world": WORLDS[world],
            "memory": tell(ours[world]["average_regrets"]),
            "sparq, past points": tell(past[world]["average_regrets"]),
            "memory is": verdicts[place],
            "sparq, anywhere": tell(domain[world]["average_regrets"]),
            "and beside it": verdicts[place + len(WORLDS)],
        }


def others() -> Iterator[Row]:
    """Yield two queries a round, beside other ways to ask, and methods that ask nobody."""
    made = {
        world: {
            name: pair(world, find_row(world, "memory"), find_row(world, name)) for name in OTHERS
        }
        for world in WORLDS
    }
    verdicts = iter(judge([each for own in made.values() for each in own.values()]))
    for world, own in made.items():
        yield {
            "world": WORLDS[world],
            "memory": tell(find_row(world, "memory")["average_regrets"]),
            "memory, 0": tell(find_row(world, "memory, 0")["average_regrets"]),
            **{name: f"{np.mean(each.peer):.3g} ({next(verdicts)})" for name, each in own.items()},
        }


def late() -> Iterator[Row]:
    """Yield answers that are late, beside SparQ-GP-UCB; and asking nobody."""
    made: dict[str, dict[int, Comparison]] = {world: {} for world in WORLDS}
    for world, own in made.items():
        for transit in LATE:
            ours, peer = (find_row(world, name, transit=transit) for name in ("memory", "sparq"))
            own[transit] = pair(world, ours, peer)
    verdicts = iter(judge([each for own in made.values() for each in own.values()]))
    for world, own in made.items():
        yield {
            "world": WORLDS[world],
            "asking nobody": tell(find_row(world, "memory, 0")["average_regrets"]),
            **{
                f"{transit - 1} rounds late": f"{np.mean(each.ours):.3g} for "
                f"{np.mean(each.peer):.3g}, {next(verdicts)}"
                for transit, each in own.items()
            },
        }


def price() -> Iterator[Row]:
    """Yield what a round comes to, regret and queries, at two prices of a query."""
    for world in WORLDS:
        nobody = find_row(world, "memory, 0")["average_regret"]
        for each in _prices(world):
            ours, peer = (
                find_row(world, name, cost_per_point=each) for name in ("memory", "sparq")
            )
            totals = [row["average_regret"] + each * row["asked_per_round"] for row in (ours, peer)]
            yield {
                "world": WORLDS[world],
                "price": f"{each:g}",
                "queries": f"{ours['asked_per_round']:.2f}",
                "memory": f"{totals[0]:.3g}",
                "sparq": f"{totals[1]:.3g}",
                "asking nobody": f"{nobody:.3g}",
            }


def counts(parts: Mapping[str, Sequence[Row]]) -> Iterator[Row]:
    """Yield in how many of ten worlds it is better, worse, or neither."""
    columns = {
        "2 queries, past points; SparQ at 6 log t": ("worlds", "memory is"),
        "2 queries anywhere; SparQ at 6 log t, past points": ("anywhere", "memory is"),
        "2 queries anywhere; SparQ at 6 log t, anywhere": ("anywhere", "and beside it"),
        **{f"{cap} queries; SparQ with as many": ("equal", f"{cap}") for cap in CAPS},
        **{
            f"{transit - 1} rounds late; SparQ": ("late", f"{transit - 1} rounds late")
            for transit in LATE
        },
        **{f"2 queries; {name}": ("others", name) for name in OTHERS},
    }
    for what, (part, column) in columns.items():
        said = [str(row[column]) for row in parts[part]]
        yield {
            "what": what,
            **{word: sum(word in text for text in said) for word in ("better", "worse", "unclear")},
        }


def collect() -> dict[str, list[Row]]:
    """Return all tables, by name."""
    parts = {part.__name__: list(part()) for part in (worlds, equal, anywhere, others, late, price)}
    return {**parts, "counts": list(counts(parts))}


def draw() -> None:
    """Draw regret against queries and against lateness, and what was believed."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    queries, lateness, beliefs = FIGURES
    # Letters as outlines: a reader's browser need not have the font, nor one as narrow.
    with patch.dict(STYLE, {"svg.fonttype": "path"}):
        _draw_grid(queries, _paint_queries, "queries a round")
        _draw_grid(lateness, _paint_late, "rounds late")
        _draw_beliefs(beliefs)


def _draw_grid(name: str, paint: Callable[[Axes, str], None], what: str) -> None:
    from matplotlib.figure import Figure

    content = BytesIO()
    with apply_style():
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        grid = figure.subplots(2, 5)
        for axes, world in zip(grid.flat, WORLDS, strict=True):
            paint(axes, world)
            axes.set_title(WORLDS[world], fontsize=6.5)
            axes.set_yscale("log")
            axes.tick_params(labelsize=5.5, which="both")
        figure.supxlabel(what, fontsize=7)
        figure.supylabel("average regret", fontsize=7)
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=6.5)
        figure.savefig(content, format="svg", metadata={"Date": None})
    write_whole(PICTURES / f"{name}.svg", content.getvalue())


def _paint_queries(axes: Axes, world: str) -> None:
    caps = (0, *CAPS)
    ours = [find_row(world, "memory" if cap == 2 else f"memory, {cap}") for cap in caps]
    peers = [find_row(world, f"sparq, {cap}") for cap in CAPS]
    log_t = find_row(world, "sparq")
    for rows, look, marker, label in (
        (ours, _OURS, _OURS.print_marker, "sparq-memory"),
        (peers, _PEERS, _PEERS.print_marker, "sparq-gp-ucb, constant"),
        ([log_t], _PEERS, "s", "sparq-gp-ucb, 6 log t"),
    ):
        asked = [row["asked_per_round"] for row in rows]
        means = [row["average_regret"] for row in rows]
        axes.plot(asked, means, color=look.ink, marker=marker, markersize=3, lw=1, label=label)
    tv = find_row(world, "tv")["average_regret"]
    axes.axhline(tv, color=GREY, ls="--", lw=0.8, label="tv-gp-ucb, asks nobody")


def _paint_late(axes: Axes, world: str) -> None:
    for name, look, label in (
        ("memory", _OURS, "sparq-memory, 2 queries"),
        ("sparq", _PEERS, "sparq-gp-ucb, 6 log t"),
    ):
        rows = [find_row(world, name), *(find_row(world, name, transit=each) for each in LATE)]
        means = [row["average_regret"] for row in rows]
        lateness = [0, *(transit - 1 for transit in LATE)]
        (line,) = axes.plot(lateness, means, color=look.ink, markersize=3, lw=1, label=label)
        line.set_marker(look.print_marker)
    nobody = find_row(world, "memory, 0")["average_regret"]
    axes.axhline(nobody, color=_OURS.ink, ls=":", lw=0.8, label="sparq-memory, asks nobody")
    tv = find_row(world, "tv")["average_regret"]
    axes.axhline(tv, color=GREY, ls="--", lw=0.8, label="tv-gp-ucb, asks nobody")


def _draw_beliefs(name: str) -> None:
    from matplotlib.figure import Figure

    content = BytesIO()
    with apply_style():
        figure = Figure(figsize=(7.2, 2.2), layout="constrained")
        grid = figure.subplots(1, len(BELIEFS), sharey=True)
        for axes, world in zip(grid.flat, BELIEFS, strict=True):
            trace = Scenario.load(f"memory/{world}").play("memory", replication=0)
            groups: dict[str, Any] = {}
            for column, numbers in trace.rounds.items():
                if column.startswith("note_drift/"):
                    groups[column.partition("/")[2]] = np.asarray(numbers)
            axes.stackplot(
                np.asarray(trace.rounds["round"]),
                *groups.values(),
                labels=list(groups),
                colors=[SERIES[place] for place in range(len(groups))],
            )
            axes.set_title(WORLDS[world], fontsize=7)
            axes.set_xlabel("round", fontsize=7)
            axes.margins(0)
        grid.flat[0].set_ylabel("share believed", fontsize=7)
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=7)
        figure.savefig(content, format="svg", metadata={"Date": None})
    write_whole(PICTURES / f"{name}.svg", content.getvalue())


def make() -> None:
    """Write the tables and draw the figures."""
    write("memory", collect())
    draw()
