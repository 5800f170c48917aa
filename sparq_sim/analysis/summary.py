"""Analysis: what a study's plays come to, over replications."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.errors import SparqError, did_you_mean
from sparq_sim.simulation import measures
from sparq_sim.simulation.trace import Trace
from sparq_sim.study.results import Results
from sparq_sim.study.settings import Setting, agree
from sparq_sim.study.store import Kind, Label, StoredSummary, canonical

if TYPE_CHECKING:
    import pyarrow as pa

    from sparq_sim.analysis.monitoring import Monitored

Curve: TypeAlias = Literal["average_regret", "cumulative_regret", "regret", "spent"]
CONFIDENCE = 0.95

_CURVES = {
    "average_regret": measures.average_regret,
    "cumulative_regret": measures.cumulative_regret,
    "regret": measures.regret,
    "spent": measures.spent,
}


class AnalysisError(SparqError):
    """Something is asked of a study that it cannot tell."""


@dataclass(frozen=True)
class Spread:
    """A mean over replications, their standard deviation, and the mean's 95 % interval.

    The interval is Student's: mean ± t s / sqrt(n). It is unknown (NaN) for one replication.
    """

    mean: float
    std: float
    low: float
    high: float
    count: int


def spread(numbers: Iterable[float | None]) -> Spread:
    """Summarise *numbers*, leaving out those that are unknown."""
    known = np.array([n for n in numbers if n is not None and isfinite(n)], dtype=float)
    if not len(known):
        return Spread(nan, nan, nan, nan, 0)
    mean = float(known.mean())
    std = float(known.std(ddof=1)) if len(known) > 1 else nan
    reach = float(_reach(np.array([std]), np.array([len(known)]))[0])
    return Spread(mean, std, mean - reach, mean + reach, len(known))


def _reach(stds: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give half the width of the interval of each mean; NaN for fewer than two numbers."""
    reach = student(counts) * stds / np.sqrt(np.maximum(counts, 1))
    return np.where(counts > 1, reach, nan)


def student(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how many standard errors the interval of a mean of so many numbers reaches."""
    from scipy.special import stdtrit  # The whole of scipy.stats takes half a second to load.

    return np.asarray(stdtrit(np.maximum(counts - 1, 1), (1 + CONFIDENCE) / 2), dtype=float)


@dataclass(frozen=True)
class Summary:
    """What the plays of one optimizer in one swept setting come to."""

    optimizer: str
    setting: Setting
    plays: int
    average_regret: Spread
    exponent: Spread
    """Of fits R_t ~ t^a, one a play."""
    rounds: float
    """How many were played, a play; fewer than planned where plays ended early."""
    asked_per_round: float
    """Points that the agent asked experts about, each counted once."""
    retries_per_round: float
    """Further attempts at these points."""
    pushed_per_round: float
    """Readings that experts sent without being asked."""
    spent: Spread
    answered: float
    """Share of the points asked about; NaN where nothing was asked, as for those below. The seven
    shares sum to 1."""
    late: float
    lost: float
    refused: float
    """By an outage, a budget, the access rule or a rate."""
    invalid: float
    """Answered by what is of no use."""
    unavailable: float
    """The expert had nothing there."""
    open: float
    """Not answered when the play ended."""
    staleness: float
    """Mean age of experts' answers on arrival, in clock units."""
    idle: float
    """Share of the rounds without a move, in which the point before stayed in force."""
    ended_early: int
    """How many plays ended before their last round."""
    impossible: int
    """How many plays have a regret below 0, which a wrong `best` of the environment makes."""
    wall: float
    """Seconds of the agent's computing, a play."""

    def flat(self) -> dict[str, object]:
        """Give one row of a table: the setting's values, and intervals as columns; NaN is None."""
        return flat(self)


def flat(row: Summary | Monitored) -> dict[str, object]:
    """Return a row of a table: the setting's values, and intervals as columns; NaN is None."""
    told: dict[str, object] = {"optimizer": row.optimizer, **row.setting}
    for field in fields(row)[2:]:
        value = getattr(row, field.name)
        if isinstance(value, Spread):
            told[field.name] = value.mean
            told |= {f"{field.name}_{n}": getattr(value, n) for n in ("std", "low", "high")}
        else:
            told[field.name] = value
    return {name: finite(value) for name, value in told.items()}


def finite(value: object) -> object:
    """Return a value as JSON can write it: None in place of a number that is not finite."""
    return None if isinstance(value, float) and not isfinite(value) else value


def summary(study: Results) -> list[Summary]:
    """Summarise a study's finished plays, a row an optimizer and setting."""
    return [_summary(group) for group in grouped(study.finished()).values()]


def grouped(found: Iterable[StoredSummary]) -> dict[Label, list[StoredSummary]]:
    """Sort plays into the rows of a table: by optimizer and swept setting."""
    groups: dict[Label, list[StoredSummary]] = {}
    for each in found:
        groups.setdefault(each.label, []).append(each)
    return groups


def _summary(plays: Sequence[StoredSummary]) -> Summary:
    def total(name: str) -> float:
        return sum(play.measures.get(name) or 0.0 for play in plays)

    def share(name: str) -> float:
        return total(name) / total("asked") if total("asked") else nan

    def per_round(name: str) -> float:
        return total(name) / total("rounds") if total("rounds") else nan

    answered = [(play.measures["answered"] or 0.0, play.measures["staleness"]) for play in plays]
    return Summary(
        optimizer=plays[0].optimizer,
        setting=plays[0].setting,
        plays=len(plays),
        average_regret=spread(play.measures["average_regret"] for play in plays),
        exponent=spread(play.measures["exponent"] for play in plays),
        rounds=total("rounds") / len(plays),
        asked_per_round=per_round("asked"),
        retries_per_round=per_round("retries"),
        pushed_per_round=per_round("pushed"),
        spent=spread(play.measures["spent"] for play in plays),
        answered=share("answered"),
        late=share("late"),
        lost=share("lost"),
        refused=share("refused"),
        invalid=share("invalid"),
        unavailable=share("unavailable"),
        open=share("open"),
        staleness=(
            sum(count * age for count, age in answered if age is not None) / total("answered")
            if total("answered")
            else nan
        ),
        idle=per_round("idle_rounds"),
        ended_early=sum(play.ended_early for play in plays),
        impossible=sum(bool(play.measures.get("impossible_rounds")) for play in plays),
        wall=total("wall") / len(plays),
    )


@dataclass(frozen=True)
class Difference:
    """How much the average regret of *a* exceeds that of *b* when both meet the same chance."""

    a: str
    b: str
    setting: Setting
    difference: Spread
    better: float
    """Share of replications in which *a* has less regret than *b*."""


def paired(study: Results, a: str, b: str) -> list[Difference]:
    """Compare two optimizers, replication by replication, in each setting that both played.

    Common chance cancels, so the interval is narrower than that of two separate means. A setting
    that makes no difference to one of them is compared with each of the other's.
    """
    found = study.finished()
    names = {each.optimizer for each in found}
    for name in (a, b):
        if name not in names:
            raise AnalysisError(f"no optimizer is called {name!r}: {did_you_mean(name, names)}")
    groups = grouped(found)
    compared = []
    for first in (group for group in groups.values() if group[0].optimizer == a):
        for second in (group for group in groups.values() if group[0].optimizer == b):
            if agree(first[0].setting, second[0].setting):
                compared.append(_difference(first, second))
    return [each for each in compared if each.difference.count]


def _difference(first: Sequence[StoredSummary], second: Sequence[StoredSummary]) -> Difference:
    gaps = [
        mine - theirs
        for one, other in together(first, second)
        if (mine := one.measures["average_regret"]) is not None
        and (theirs := other.measures["average_regret"]) is not None
    ]
    return Difference(
        a=first[0].optimizer,
        b=second[0].optimizer,
        setting={**second[0].setting, **first[0].setting},
        difference=spread(gaps),
        better=float(np.mean([gap < 0 for gap in gaps])) if gaps else nan,
    )


def together(
    first: Iterable[StoredSummary], second: Iterable[StoredSummary]
) -> list[tuple[StoredSummary, StoredSummary]]:
    """Pair plays that met the same chance: those of one seed and replication."""
    theirs = {(play.seed, play.replication): play for play in second}
    return [
        (play, theirs[play.seed, play.replication])
        for play in first
        if (play.seed, play.replication) in theirs
    ]


@dataclass(frozen=True)
class Band:
    """A curve over the rounds: mean over replications, and its 95 % interval; all (rounds,)."""

    optimizer: str
    setting: Setting
    rounds: NDArray[np.int64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    plays: NDArray[np.int64]
    """How many plays lasted that long."""


class _Running:
    """Mean and squared deviations of curves, one curve in memory at a time (Welford 1962)."""

    def __init__(self) -> None:
        self.counts = np.zeros(0, dtype=np.int64)
        self.means, self.squares = np.zeros(0), np.zeros(0)

    def add(self, curve: NDArray[np.float64]) -> None:
        more = max(0, len(curve) - len(self.counts))
        self.counts = np.pad(self.counts, (0, more))
        self.means, self.squares = np.pad(self.means, (0, more)), np.pad(self.squares, (0, more))
        part = slice(len(curve))
        self.counts[part] += 1
        step = curve - self.means[part]
        self.means[part] += step / self.counts[part]
        self.squares[part] += step * (curve - self.means[part])

    @property
    def stds(self) -> NDArray[np.float64]:
        return np.sqrt(self.squares / np.maximum(self.counts - 1, 1))


def bands(study: Results, curve: Curve = "average_regret") -> list[Band]:
    """Give a curve with its band for each optimizer and setting."""
    if curve not in _CURVES:
        raise AnalysisError(f"no curve is called {curve!r}: {did_you_mean(curve, _CURVES)}")
    made = []
    for group in grouped(study.finished()).values():
        running = _Running()
        for play in group:
            trace: Trace = study.read(play.key).trace
            running.add(_CURVES[curve](trace))
        reach = _reach(running.stds, running.counts)
        made.append(
            Band(
                optimizer=group[0].optimizer,
                setting=group[0].setting,
                rounds=np.arange(1, len(running.counts) + 1),
                mean=running.means,
                low=running.means - reach,
                high=running.means + reach,
                plays=running.counts,
            )
        )
    return made


# Export


def export(study: Results, path: Path | str, what: Kind | Literal["summary"] = "summary") -> None:
    """Write the summary, the rounds or the replies to a .csv, .parquet or .json file."""
    path = Path(path)
    writers = {".csv": _to_csv, ".parquet": _to_parquet, ".json": _to_json}
    if path.suffix not in writers:
        raise AnalysisError(f"cannot export to {path.name}; end it in {', '.join(writers)}")
    table = _exported(study, what)
    try:
        writers[path.suffix](table, path)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise AnalysisError(
            f"cannot write {path}: {reason}; make its folder, or choose another file"
        ) from error


def _exported(study: Results, what: Kind | Literal["summary"]) -> pa.Table:
    import pyarrow as pa

    if what != "summary":
        return study.table(what)
    rows = [each.flat() for each in summary(study)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: _column([row.get(name) for row in rows]) for name in names})


def _column(values: Sequence[object]) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(values)
    except pa.ArrowException:
        return pa.array([v if isinstance(v, str | None) else canonical(v) for v in values])


def _to_csv(table: pa.Table, path: Path) -> None:
    from pyarrow import csv

    csv.write_csv(table, path)


def _to_parquet(table: pa.Table, path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(table, path)


def _to_json(table: pa.Table, path: Path) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write("[")
        between = "\n"
        for batch in table.to_batches(max_chunksize=10_000):
            for row in batch.to_pylist():
                plain: dict[str, Any] = {name: finite(value) for name, value in row.items()}
                file.write(between + json.dumps(plain, ensure_ascii=False))
                between = ",\n"
        file.write("\n]\n")


def as_json(rows: Sequence[Difference | Summary]) -> str:
    """Write summaries or differences as a JSON list; what is unknown is null."""
    return json.dumps(
        [row.flat() if isinstance(row, Summary) else _plain(asdict(row)) for row in rows], indent=1
    )


def _plain(thing: Any) -> Any:
    if isinstance(thing, Mapping):
        return {name: _plain(value) for name, value in thing.items()}
    return finite(thing)
