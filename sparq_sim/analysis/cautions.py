"""Cautions: what must be known of a study's results before they are believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sparq_sim.analysis.criteria import Criterion, choose_criterion
from sparq_sim.analysis.standings import find_standings, label_of
from sparq_sim.analysis.summary import count_stuck, group
from sparq_sim.simulation.measures import LOW_ANSWERED
from sparq_sim.simulation.records import Fate
from sparq_sim.study.results import Results
from sparq_sim.study.store import Label, StoredSummary, canonical

__all__ = [
    "NO_REGRET",
    "Caution",
    "Topic",
    "cautions",
    "describe_criterion",
    "rows_with_notes",
]

Topic: TypeAlias = Literal[
    "impossible",
    "useless",
    "no regret",
    "best seen",
    "mixed",
    "no levels",
    "unobserved",
    "unanswered",
    "early",
    "idle",
    "stuck",
]
"""What a caution can be about."""

NO_REGRET = (
    "The best reward is not known here, so there is no regret; rewards are as observed, with "
    "their noise."
)
"""What a table of rewards says of itself."""
_MIXED = (
    "The best reward is not known in all plays, so all are compared by their mean reward: without "
    "noise where the best is known, else as observed, with its noise."
)
_BEST_SEEN = (
    "The best reward is not known {where}: regret is against the best seen, the highest reward "
    "observed in the same play."
)


@dataclass(frozen=True)
class Caution:
    """Something that a reader of the results must know."""

    topic: Topic
    """What it is about."""
    text: str
    """The whole of it, in a sentence."""
    rows: frozenset[Label]
    """Rows of the summary that it is about."""
    grave: bool = False
    """Whether the numbers of these rows mean nothing."""


def cautions(*studies: Results, best_seen: bool = False) -> list[Caution]:
    """Look for results that are impossible, useless or not comparable.

    Args:
        studies: One, or several whose plays are compared with each other.
        best_seen: Whether regret is against the best reward seen in each play, where the best
            reward is not known.

    Returns:
        What was found, grave cautions first.
    """
    found = [play for study in studies for play in study.finished()]
    criterion = choose_criterion(found, best_seen=best_seen)
    return list(_find(group(found), criterion))


def describe_criterion(criterion: Criterion) -> str:
    """Return a sentence on what a table shows in place of regret; none where it shows regret.

    Args:
        criterion: What the plays are compared by.
    """
    if criterion.is_regret:
        return ""
    if not criterion.more_is_better:
        return _BEST_SEEN.format(where="in all plays" if criterion.mixed else "here")
    return _MIXED if criterion.mixed else NO_REGRET


def rows_with_notes(study: Results, *, best_seen: bool = False) -> list[dict[str, object]]:
    """Return the rows of a study's summary, each with the cautions about it.

    Args:
        study: A study with finished plays.
        best_seen: As by `cautions`.

    Returns:
        Flat rows, as `Summary.flat` gives them, by setting and the best first; with how many plays
        are `planned`, the `verdict` beside the best, and a list of texts under `notes`.
    """
    found = cautions(study, best_seen=best_seen)
    standings = find_standings(study, best_seen=best_seen)
    return [
        {
            **row.flat(),
            "planned": max(row.plays, standings.planned.get(label_of(row), 0)),
            "verdict": standings.judge(row) or None,
            "notes": [
                caution.text
                for caution in found
                if (row.optimizer, canonical(dict(row.setting))) in caution.rows
            ],
        }
        for row in standings.rows
    ]


def _find(rows: Mapping[Label, Sequence[StoredSummary]], criterion: Criterion) -> Iterable[Caution]:
    found = [
        *_impossible(rows),
        *_useless(rows),
        *_no_regret(rows, criterion),
        *_unobserved(rows, criterion),
        *_unanswered(rows),
        *_early(rows),
        *_idle(rows),
        *_stuck(rows, criterion),
    ]
    return sorted(found, key=lambda caution: not caution.grave)


def _impossible(rows: Mapping[Label, Sequence[StoredSummary]]) -> Iterable[Caution]:
    """Name the plays whose regret is below 0."""
    bad = {
        row: [play for play in plays if play.measures.get("impossible_rounds")]
        for row, plays in rows.items()
    }
    bad = {row: plays for row, plays in bad.items() if plays}
    if bad:
        played = sum(len(rows[row]) for row in bad)
        yield Caution(
            "impossible",
            f"regret is below 0 in {sum(map(len, bad.values()))} of {_plays(played)} of "
            f"{_optimizers(bad)}: the environment's `best` is not its best reward, so these "
            "regrets mean nothing; `sparq_sim.testing.check_environment` finds where",
            frozenset(bad),
            grave=True,
        )


def _no_regret(
    rows: Mapping[Label, Sequence[StoredSummary]], criterion: Criterion
) -> Iterable[Caution]:
    """Say what plays are compared by, where some of them do not know the best reward."""
    if criterion.is_regret:
        return
    yield Caution("no regret", describe_criterion(criterion), frozenset(rows))
    everyone = [play for plays in rows.values() for play in plays]
    if not criterion.more_is_better:
        yield Caution(
            "best seen",
            "regret against the best seen bounds regret from neither side: noise and drift raise "
            "it, and a better point that was never played lowers it; a play that found no good "
            "point may have little of it, so look at the mean reward as well",
            frozenset(rows),
        )
    if knowing := [play for play in everyone if play.knows_best]:
        told = (
            f"the best reward is known in {len(knowing)} of {_plays(len(everyone))}, those of "
            f"{_optimizers(play.label for play in knowing)}"
        )
        if old := sum("mean_reward" not in play.measures for play in knowing):
            told += (
                f"; {old} of them, of an earlier version, have no rewards in their summaries and "
                "are left out of comparisons: run the scenario in a new folder"
            )
        yield Caution("mixed", told, frozenset(play.label for play in knowing))
    yield Caution(
        "no levels",
        "exponents of regret and reference levels are left out: both need the best reward",
        frozenset(rows),
    )


def _unobserved(
    rows: Mapping[Label, Sequence[StoredSummary]], criterion: Criterion
) -> Iterable[Caution]:
    """Name the plays in which rewards were not observed."""
    if criterion.is_regret:
        return
    missing: dict[Label, tuple[float, float]] = {}
    for row, plays in rows.items():
        if count := sum(play.measures.get("unobserved_rounds") or 0.0 for play in plays):
            missing[row] = count, sum(play.measures["rounds"] or 0.0 for play in plays)
    if missing:
        count, rounds = (sum(column) for column in zip(*missing.values(), strict=True))
        others = "" if count == rounds else ": means are over the other rounds"
        yield Caution(
            "unobserved",
            f"no reward was observed in {count:g} of {rounds:g} rounds of "
            f"{_optimizers(missing)}{others}",
            frozenset(missing),
        )


def _useless(rows: Mapping[Label, Sequence[StoredSummary]]) -> Iterable[Caution]:
    """Name the experts whose answers were of no use: usually a plug-in with a mistake."""
    counts: dict[str, Counter[str]] = {}
    reasons: dict[str, str] = {}
    where: dict[str, set[Label]] = {}
    for row, plays in rows.items():
        for play in plays:
            for source, told in play.broken.items():
                counts.setdefault(source, Counter()).update(
                    invalid=told["invalid"], asked=told["asked"]
                )
                reasons.setdefault(source, told["reason"])
                where.setdefault(source, set()).add(row)
    for source, count in counts.items():
        yield Caution(
            "useless",
            f"{count['invalid']} of {count['asked']} answers of {source!r} were useless; "
            f"the first: {reasons[source]}",
            frozenset(where[source]),
            grave=any(_all_useless(rows[row], source) for row in where[source]),
        )


def _all_useless(plays: Sequence[StoredSummary], source: str) -> bool:
    told = [play.broken.get(source) for play in plays]
    return all(each is not None and each["invalid"] == each["asked"] for each in told)


def _of_expert(plays: Iterable[StoredSummary], source: str) -> Counter[str]:
    """Sum what became of all that was put to an expert."""
    total: Counter[str] = Counter()
    for play in plays:
        total.update(play.experts.get(source, {}))
    return total


def _unanswered(rows: Mapping[Label, Sequence[StoredSummary]]) -> Iterable[Caution]:
    """Name the experts that answered less than half of what they were asked."""
    bad: dict[str, dict[Label, Counter[str]]] = {}
    asked_in: Counter[str] = Counter()
    for row, plays in rows.items():
        for source in dict.fromkeys(name for play in plays for name in play.experts):
            told = _of_expert(plays, source)
            asked_in[source] += 1
            if told[Fate.ANSWERED] < LOW_ANSWERED * told["asked"] and not _all_useless(
                plays, source
            ):
                bad.setdefault(source, {})[row] = told
    for source, by_row in bad.items():
        total = sum(by_row.values(), Counter())
        fates = [each for each in total.most_common() if each[0] not in ("asked", Fate.ANSWERED)]
        reasons = ", ".join(f"{fate} {count}" for fate, count in fates)
        some = len(by_row) < asked_in[source]
        yield Caution(
            "unanswered",
            f"the expert {source!r} answered less than half of what it was asked"
            f"{f' in {len(by_row)} of {asked_in[source]} rows' if some else ''}: "
            f"{total[Fate.ANSWERED]} of {total['asked']} points ({reasons})",
            frozenset(by_row),
        )


def _early(rows: Mapping[Label, Sequence[StoredSummary]]) -> Iterable[Caution]:
    """Name the plays that ended before their last round, beside others that did not."""
    short = {row: [play for play in plays if play.ended_early] for row, plays in rows.items()}
    short = {row: plays for row, plays in short.items() if plays}
    if short:
        early = [play for plays in short.values() for play in plays]
        everyone = [play for plays in rows.values() for play in plays]
        lasted = sorted({int(play.measures["rounds"] or 0) for play in early})
        span = f"{lasted[0]} to {lasted[-1]}" if len(lasted) > 1 else f"{lasted[0]}"
        planned = max(play.rounds_planned or 0 for play in early)
        reasons = ", ".join(dict.fromkeys(play.ended for play in early))
        told = (
            f"{len(early)} of {_plays(len(everyone))} ended early, after {span}"
            f"{f' of {planned}' if planned else ''} rounds ({reasons}): {_optimizers(short)}"
        )
        if len({play.measures["rounds"] for play in everyone}) > 1:
            told += "; averages over different numbers of rounds cannot be compared"
        yield Caution("early", told, frozenset(short))


def _idle(rows: Mapping[Label, Sequence[StoredSummary]]) -> Iterable[Caution]:
    """Name the optimizers that let rounds pass without a move."""
    idle: dict[Label, tuple[float, float]] = {}
    for row, plays in rows.items():
        if passed := sum(play.measures.get("idle_rounds") or 0.0 for play in plays):
            idle[row] = passed, sum(play.measures["rounds"] or 0.0 for play in plays)
    if idle:
        passed, rounds = (sum(column) for column in zip(*idle.values(), strict=True))
        yield Caution(
            "idle",
            f"{passed:g} of {rounds:g} rounds of {_optimizers(idle)} passed without a move: the "
            "previous point stayed in force",
            frozenset(idle),
        )


def _stuck(
    rows: Mapping[Label, Sequence[StoredSummary]], criterion: Criterion
) -> Iterable[Caution]:
    """Name the optimizers whose plays fall into two modes: most go well, and some stick."""
    if not criterion.is_regret:
        return
    counts = {row: count for row, plays in rows.items() if (count := count_stuck(plays))}
    if counts:
        played = sum(len(rows[row]) for row in counts)
        yield Caution(
            "stuck",
            f"{sum(counts.values())} of {_plays(played)} of {_optimizers(counts)} stuck, with more "
            "than 5 times the median regret in the last quarter: plays are in two modes, so their "
            "intervals may be far too narrow; look at the least and the most, and play more",
            frozenset(counts),
        )


def _plays(count: int) -> str:
    return f"{count} play{'' if count == 1 else 's'}"


def _optimizers(rows: Iterable[Label]) -> str:
    return ", ".join(dict.fromkeys(optimizer for optimizer, _ in rows))
