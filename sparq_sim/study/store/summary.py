"""Summaries of stored plays: what is known of them without reading their rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparq_sim.simulation.trace import AS_PLANNED
from sparq_sim.study.store.keys import Label, PlayId, Setting

__all__ = ["StoredSummary"]


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """What is known of a finished play without reading its rounds."""

    play: PlayId
    """Which play it is."""
    record: str
    """What is stored: its "rounds", or "full", its replies as well."""
    digest: str
    """Of its trace, replies included."""
    measures: Mapping[str, float | None]
    """The numbers that a table of plays shows; None for those that are not finite."""
    broken: Mapping[str, Mapping[str, Any]]
    """By source, what was useless in its answers, if anything was."""
    ended: str
    """Why the play ended: by its "rounds", its "horizon", or something else."""
    experts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By expert, how many points it was asked about, and how many attempts had each fate."""
    rounds_planned: int | None = None
    """None where that is not known."""
    warnings: Sequence[str] = ()
    """What was warned of while it was played."""
    meters: Mapping[str, float | None] = field(default_factory=dict)
    """What the meters of experts showed in the last round, by `<expert>_<name>`; None for what is
    not finite."""
    knows_best: bool = True
    """Whether the best reward is known, and so regret."""
    has_checksum: bool = True
    """Whether damage to what is stored would be noticed; not in files of early versions."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StoredSummary:
        """Return what a provenance says; what one of an older version lacks has its default.

        Args:
            data: The provenance as it is in the file.

        Raises:
            KeyError: Something is missing that files of all versions have.
        """
        return cls(
            play=PlayId.from_json(data),
            record=data["record"],
            digest=data["digest"],
            measures=data["measures"],
            broken=data["broken"],
            ended=data["ended"],
            experts=data.get("experts", {}),
            rounds_planned=data.get("rounds_planned"),
            warnings=data.get("warnings", ()),
            meters=data.get("meters", {}),
            knows_best=data.get("knows_best", True),
            has_checksum="checksums" in data,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the summary as a provenance holds it."""
        return {
            **self.play.to_json(),
            "record": self.record,
            "digest": self.digest,
            "measures": dict(self.measures),
            "broken": dict(self.broken),
            "ended": self.ended,
            "experts": dict(self.experts),
            "rounds_planned": self.rounds_planned,
            "warnings": list(self.warnings),
            **({"meters": dict(self.meters)} if self.meters else {}),
            **({} if self.knows_best else {"knows_best": False}),
        }

    @property
    def key(self) -> str:
        """The key of the play."""
        return self.play.key

    @property
    def optimizer(self) -> str:
        """The name of the optimizer that played."""
        return self.play.optimizer

    @property
    def setting(self) -> Setting:
        """The swept values that made a difference to the play."""
        return self.play.setting

    @property
    def seed(self) -> int:
        """The seed of the play."""
        return self.play.seed

    @property
    def replication(self) -> int:
        """The replication that was played, from 0."""
        return self.play.replication

    @property
    def label(self) -> Label:
        """The row of a table that the play belongs to."""
        return self.play.label

    @property
    def reward_without_best(self) -> float | None:
        """The mean reward of a play that does not know the best; None if it does, or none came."""
        return None if self.knows_best else self.measures.get("mean_reward")

    @property
    def ended_early(self) -> bool:
        """Whether the play ended before its rounds or its horizon."""
        return self.ended not in AS_PLANNED
