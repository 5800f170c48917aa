"""Differences: how much worse each optimizer is than the best of its setting, pair by pair."""

from __future__ import annotations

from sparq_sim.analysis.standings import Place, Ranking, rank_plays
from sparq_sim.report.data import ChartData
from sparq_sim.study.settings import agree, format_setting

__all__ = ["DIFFERENCES", "describe_place", "find_rankings", "label_axis", "name_place"]

DIFFERENCES = (
    "How much worse each optimizer is than the best, in the same replications: mean and 95 % "
    "interval; dots are single pairs, where they are fewer than five. Open markers may be chance, "
    "when all pairs of optimizers are looked at together (Holm)."
)
"""What a chart of differences shows."""


def find_rankings(data: ChartData) -> list[Ranking | None]:
    """Return who is how far behind the best, for each setting that is shown over the rounds.

    Args:
        data: What is drawn.

    Returns:
        A ranking per setting; None where there are no two optimizers to compare.
    """
    found = [
        ranking for ranking in rank_plays(data.found, data.criterion).rankings if ranking.rivals
    ]
    return [
        next((ranking for ranking in found if agree(ranking.setting, setting)), None)
        for setting in data.settings
    ]


def name_place(place: Place, ranking: Ranking) -> str:
    """Return what an optimizer is called beside others of the same setting.

    Args:
        place: Its place.
        ranking: That of the setting.
    """
    rest = {k: v for k, v in place.row.setting.items() if k not in ranking.setting}
    return ", ".join(filter(None, [place.row.optimizer, format_setting(rest)]))


def describe_place(place: Place) -> str:
    """Return how far behind the best an optimizer is, how surely, and in how many pairs.

    Args:
        place: Of a rival of the best.
    """
    said = {"worse": "worse", "equal": "equal", "unclear": "may be chance"}.get(place.verdict, "")
    pairs = f"{place.behind.count} pair{'s' * (place.behind.count != 1)}"
    return (
        ", ".join([f"{place.behind.mean:+.3g}", said, pairs]) if place.behind.count else "no pair"
    )


def label_axis(data: ChartData, ranking: Ranking) -> str:
    """Return the label of the axis of differences from the best.

    Args:
        data: What is drawn.
        ranking: That of a setting.
    """
    side = "below" if data.criterion.more_is_better else "above"
    return f"{data.criterion.label} {side} that of {ranking.best.row.optimizer}"
