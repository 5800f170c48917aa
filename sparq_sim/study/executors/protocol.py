"""What an executor is, and the messages between a study, its executor and workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from sparq_sim.errors import SparqError
from sparq_sim.study.store import FolderStore, PlayFiles, PlayId

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

__all__ = [
    "KILLED",
    "Batch",
    "ExecutorError",
    "Outcome",
    "Outcomes",
    "PlayExecutor",
    "Status",
    "Step",
    "Task",
    "Work",
]

KILLED = "its worker was killed more than once: out of memory, or a crash in native code?"
"""Why a play is given up."""
Status: TypeAlias = Literal["done", "failed", "killed", "unreadable"]
"""What can become of a play."""


class ExecutorError(SparqError):
    """Plays cannot be computed where they were sent."""


@dataclass(frozen=True, slots=True)
class Task:
    """A play to be computed: which it is, what is played, and by which code."""

    play: PlayId
    """Which play."""
    scenario: Scenario
    """What is played, without a sweep."""
    code: str
    """Names the code that computes it, as `name_code` does; a worker must have the same."""
    laws: bool = False
    """Whether the laws of plays are checked; it fails if one is broken."""


@dataclass(frozen=True, slots=True)
class Step:
    """A task as it is sent to a worker, its scenario pickled."""

    play: PlayId
    """Which play it is."""
    scenario: bytes
    """Its scenario, pickled."""
    code: str
    """The hash of the code that the play depends on, as the sender has loaded it."""
    laws: bool = False
    """Whether the laws of plays are checked."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a worker is sent: the plays to compute, and where to write them."""

    folder: str | None
    """The folder of the study; None where plays are kept elsewhere, and sent home."""
    mark: str
    """A file in the folder; who sees it writes there, and others send their results home."""
    steps: tuple[Step, ...]
    """The plays, in the order in which they are computed."""
    limit: float | None = None
    """Seconds after which a worker itself ends a play; None where somebody else does."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a play: a few numbers, and where the worker cannot write, its files."""

    play: PlayId
    """Which play."""
    status: Status
    """Whether it is done; if not, why: it failed, killed its worker, or could not be unpickled."""
    seconds: float = 0.0
    """How long it took."""
    average_regret: float | None = None
    """Of the play; None where it is not finite, or not known."""
    mean_reward: float | None = None
    """Of a play that does not know the best reward, and so no regret; otherwise None."""
    message: str = ""
    """Why it is not done."""
    warnings: tuple[str, ...] = ()
    """What was warned of while it was played."""
    files: PlayFiles | None = None
    """The finished play, where the worker has not written it."""


@dataclass
class Work:
    """What is to be computed: tasks in groups that share a landscape, and how to send some."""

    groups: deque[deque[Task]]
    """Tasks that share a landscape, together; executors take them out."""
    pack: Callable[[Sequence[Task]], Batch]
    """Makes what a worker is sent."""
    home: FolderStore | None
    """Where plays are written, if that is a folder; otherwise outcomes carry their files."""
    limit: float | None = None
    """Seconds of real time that a play may take, from when a worker begins it; None: no limit."""

    def __len__(self) -> int:
        return sum(map(len, self.groups))


Outcomes: TypeAlias = Generator[Outcome, None, None]
"""What an executor yields; closed early, it lets what has begun finish."""


class PlayExecutor(Protocol):
    """Computes plays, in any order."""

    def outcomes(self, work: Work) -> Outcomes:
        """Compute all plays; closed early, let those that have begun finish, and no others.

        Args:
            work: What to compute.

        Yields:
            The outcome of each play, as soon as it is known.
        """
