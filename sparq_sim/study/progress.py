"""Progress: how far a run of a study has come, and what it has come to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

from sparq_sim.study.store import Label, PlayId, StoredSummary

if TYPE_CHECKING:
    from sparq_sim.study.executors import Outcome

__all__ = [
    "FailedPlay",
    "Progress",
    "RunCounter",
    "RunReport",
    "WarningCount",
    "Watch",
    "count_plays",
]

_NUMBERS = re.compile(r"(?<!\S)[-+.\d][-+.\de]*")
"""Numbers that stand alone, in which warnings of several plays may differ."""


def count_plays(count: int) -> str:
    """Return a number of plays in words, such as "1 play".

    Args:
        count: How many there are.
    """
    return "1 play" if count == 1 else f"{count} plays"


@dataclass(frozen=True)
class FailedPlay:
    """A play that did not finish, and why."""

    play: PlayId
    """Which play."""
    reason: str
    """What went wrong, with its place in the code where that is known."""


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    done: int
    """How many plays are finished, those of before included."""
    total: int
    """How many plays the study has."""
    resumed: int
    """How many of those done had been finished before this run."""
    failed: int
    """How many plays did not finish."""
    elapsed: float
    """Seconds since the run began."""
    notes: Sequence[str]
    """What a user should be told: files set aside, a scenario that cannot be sent to workers."""
    last: PlayId | None
    """The play that has just ended; None at the beginning."""
    sums: Mapping[Label, tuple[int, float]] = field(repr=False)
    """How many plays there are of each optimizer and setting, and the sum of average regrets."""
    reward_sums: Mapping[Label, tuple[int, float]] = field(repr=False, default_factory=dict)
    """The same of the mean rewards of plays that do not know the best reward."""

    @property
    def average_regrets(self) -> dict[Label, float]:
        """Means over the plays finished so far, of each optimizer and setting."""
        return {name: total / count for name, (count, total) in self.sums.items()}

    @property
    def mean_rewards(self) -> dict[Label, float]:
        """The same of plays that do not know the best reward, and so no regret."""
        return {name: total / count for name, (count, total) in self.reward_sums.items()}

    @property
    def rate(self) -> float:
        """Plays a second, in this run."""
        return (self.done - self.resumed + self.failed) / self.elapsed if self.elapsed else 0.0

    @property
    def remaining(self) -> float | None:
        """Seconds to go, at the rate so far; None while there is none."""
        left = self.total - self.done - self.failed
        return left / self.rate if self.rate else None


@dataclass(frozen=True)
class RunReport:
    """What a run has come to."""

    done: int
    """How many plays are finished, those of before included."""
    resumed: int
    """How many of them had been finished before this run."""
    elapsed: float
    """Seconds that the run took."""
    failed_plays: tuple[FailedPlay, ...]
    """The plays that did not finish."""
    notes: tuple[str, ...]
    """What a user should be told, warnings of plays included."""


Watch: TypeAlias = Callable[[Progress], None]
"""Called at the beginning of a run and after each play."""


class WarningCount:
    """Counts what plays have warned of; texts that differ by numbers alone are one."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[str, int]] = {}

    def add(self, texts: Sequence[str]) -> None:
        """Add the warnings of one more play.

        Args:
            texts: What was warned of while it was played.
        """
        for kind, text in {_NUMBERS.sub("#", text): text for text in texts}.items():
            first, count = self._texts.get(kind, (text, 0))
            self._texts[kind] = first, count + 1

    def texts(self) -> list[str]:
        """Return each warning once, with the number of plays that it came from."""
        return [
            text if count == 1 else f"{text} (in {count} plays)"
            for text, count in self._texts.values()
        ]


@dataclass
class RunCounter:
    """Counts what becomes of the plays of a run, and informs who watches it."""

    total: int
    """How many plays the study has."""
    notes: list[str]
    """What a user should be told; others add to it during the run."""
    watch: Watch | None
    """Who is informed, if anybody."""
    resumed: int = 0
    """Plays that had been finished before."""
    done: int = 0
    """Plays that this run has finished."""
    failed_plays: list[FailedPlay] = field(default_factory=list)
    """Those that failed, with their reasons."""
    began: float = field(default_factory=perf_counter)
    """When the run began, in seconds of `perf_counter`."""
    sums: dict[Label, tuple[int, float]] = field(default_factory=dict)
    """For each optimizer and setting, the number of plays and the sum of their average regrets."""
    reward_sums: dict[Label, tuple[int, float]] = field(default_factory=dict)
    """The same of the mean rewards of plays that do not know the best reward."""
    warnings: WarningCount = field(default_factory=WarningCount)
    """What plays warned of, and how often."""

    def resume(self, summary: StoredSummary) -> None:
        """Count a play that had been finished before.

        Args:
            summary: What is known of it.
        """
        self.resumed += 1
        self.warnings.add(summary.warnings)
        self._add(summary.label, summary.measures["average_regret"], summary.reward_without_best)

    def take(self, outcome: Outcome) -> None:
        """Count a play that has just ended, and inform who watches.

        Args:
            outcome: What became of it.
        """
        self.warnings.add(outcome.warnings)
        if outcome.status == "done":
            self._add(outcome.play.label, outcome.average_regret, outcome.mean_reward)
        else:
            self.failed_plays.append(FailedPlay(outcome.play, outcome.message))
        self.inform(outcome.play)

    def _add(self, name: Label, average_regret: float | None, mean_reward: float | None) -> None:
        self.done += 1
        for sums, number in ((self.sums, average_regret), (self.reward_sums, mean_reward)):
            if number is not None:
                count, total = sums.get(name, (0, 0.0))
                sums[name] = count + 1, total + number

    def inform(self, last: PlayId | None) -> None:
        """Call who watches, if anybody does.

        Args:
            last: The play that has just ended; None at the beginning.
        """
        if self.watch is not None:
            self.watch(
                Progress(
                    done=self.done,
                    total=self.total,
                    resumed=self.resumed,
                    failed=len(self.failed_plays),
                    elapsed=perf_counter() - self.began,
                    sums=self.sums,
                    reward_sums=self.reward_sums,
                    notes=tuple(self.notes),
                    last=last,
                )
            )

    def report(self) -> RunReport:
        """Return what the run has come to."""
        return RunReport(
            done=self.done,
            resumed=self.resumed,
            elapsed=perf_counter() - self.began,
            failed_plays=tuple(self.failed_plays),
            notes=(*self.notes, *self.warnings.texts()),
        )
