"""Plays that were never played, of which all that counts is what they come to."""

from __future__ import annotations

from collections.abc import Sequence

from sparq_sim.study.settings import Setting
from sparq_sim.study.store import PlayId, StoredSummary, canonical


def make_plays(
    optimizer: str,
    numbers: Sequence[float | None],
    *,
    setting: Setting | None = None,
    reward: bool = False,
    spent: float = 0.0,
    **measures: float,
) -> list[StoredSummary]:
    """Return a play of 10 rounds per number, which is its average regret or its mean reward."""
    setting = setting or {}
    return [
        StoredSummary(
            play=PlayId(
                key=f"{optimizer}-{canonical(dict(setting))}-{replication}",
                family="",
                optimizer=optimizer,
                setting=setting,
                seed=0,
                replication=replication,
            ),
            record="rounds",
            digest="",
            measures={
                "average_regret": None if reward else number,
                "mean_reward": number if reward else None,
                "spent": spent,
                "rounds": 10.0,
                "answered": 0.0,
                "staleness": None,
                **measures,
            },
            broken={},
            ended="rounds",
            knows_best=not reward,
        )
        for replication, number in enumerate(numbers)
    ]
