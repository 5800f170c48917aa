"""Executors: where plays are computed. In this process, in others, or on a Dask cluster."""

from __future__ import annotations

import inspect
import os
import pickle
import signal
import sys
import threading
import warnings
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib import import_module
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.util import Finalize
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from sparq_sim.arrays import Point
from sparq_sim.errors import PluginError, SparqError
from sparq_sim.plugin.environment import Environment, Landscape
from sparq_sim.plugin.frames import describe_error
from sparq_sim.plugin.hooks import LANDSCAPE_HOOKS
from sparq_sim.simulation.delivery.programs import kill_all
from sparq_sim.simulation.lifetime import Resources, close_all, run_at_once
from sparq_sim.simulation.randomness import Streams
from sparq_sim.study.store import FolderStore, PlayFiles, PlayId, encode
from sparq_sim.study.store.keys import list_plugins, name_code
from sparq_sim.study.store.provenance import describe_play

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

__all__ = [
    "Batch",
    "Dask",
    "ExecutorError",
    "InProcess",
    "Outcome",
    "PlayExecutor",
    "Pooled",
    "Processes",
    "SharedLandscape",
    "Step",
    "Task",
    "Work",
    "perform",
]

MOST_DEATHS = 2
"""A play that has killed this many workers is given up."""
OTHER_CODE = (
    "the code has changed under the study: a file of sparq-sim or of a plug-in was edited after it "
    "was loaded (restart Python, or the notebook's kernel, and run again), or workers have another "
    "version (install the same on both)"
)
KILLED = "its worker was killed more than once: out of memory, or a crash in native code?"
MOST_FALSE_STARTS = 3
"""Workers that die before they can do anything, one after the other, have no prospects."""
QUICK = 0.5
"""Seconds; a shorter play is worth handing out ahead."""
LANDSCAPES = 2
"""How many started landscapes a worker keeps."""
SECONDS_TO_CLOSE = 5.0
"""For a worker whose coordinator has died, to close what it holds."""
MOST_BESTS = 100_000
"""Of how many times a worker remembers the best point of a landscape: some 30 MB."""


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


@dataclass(frozen=True, slots=True)
class Step:
    """A task as it is sent to a worker, its scenario pickled."""

    play: PlayId
    scenario: bytes
    code: str


@dataclass(frozen=True, slots=True)
class Batch:
    """What a worker is sent: the plays to compute, and where to write them."""

    folder: str | None
    """The folder of the study; None where plays are kept elsewhere, and sent home."""
    mark: str
    """A file in the folder; who sees it writes there, and others send their results home."""
    steps: tuple[Step, ...]
    """The plays, in the order in which they are computed."""


Status: TypeAlias = Literal["done", "failed", "killed", "unreadable"]


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

    def __len__(self) -> int:
        return sum(map(len, self.groups))


Outcomes: TypeAlias = Generator[Outcome, None, None]


class PlayExecutor(Protocol):
    """Computes plays, in any order."""

    def outcomes(self, work: Work) -> Outcomes:
        """Compute all plays; closed early, let those that have begun finish, and no others.

        Args:
            work: What to compute.

        Yields:
            The outcome of each play, as soon as it is known.
        """


# What a worker does


class _Memory(threading.local):
    """What a worker keeps from batch to batch."""

    def __init__(self) -> None:
        self.scenarios: dict[bytes, Scenario] = {}
        self.landscapes: deque[_Kept] = deque()


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """A started landscape, and what it holds."""

    environment: Environment
    seed: int
    replication: int
    landscape: Landscape
    resources: Resources

    def close(self) -> None:
        """Leave what it holds; that this fails is no fault of the play at hand."""
        try:
            run_at_once(self.resources.close())
        except PluginError as error:
            warnings.warn(str(error), NotClosedWarning, stacklevel=2)


class NotClosedWarning(UserWarning):
    """What a shared landscape holds could not be closed."""


_memory = _Memory()
_ends_with_study = False
"""Whether this process is a worker of one study, and closes what it keeps when it ends."""


def perform(batch: Batch) -> list[Outcome]:
    """Compute the plays of a batch, and write each as soon as it is finished.

    Args:
        batch: What a worker is sent.

    Returns:
        What became of each play.

    Raises:
        ExecutorError: The code or the files here are not those that the study names.
    """
    home = None
    if batch.folder is not None and (Path(batch.folder) / batch.mark).exists():
        home = FolderStore(batch.folder)
    try:
        return [_receive(step, home) for step in batch.steps]
    finally:
        if not _ends_with_study:  # Nobody says here which batch is the last.
            _close_landscapes()


def _receive(step: Step, home: FolderStore | None) -> Outcome:
    try:
        scenario = _unpack(step.scenario)
    except Exception as error:
        return Outcome(step.play, "unreadable", message=f"{type(error).__name__}: {error}")
    return _compute(Task(step.play, scenario, step.code), home)


def _compute(task: Task, home: FolderStore | None) -> Outcome:
    play, scenario = task.play, task.scenario
    if home and (found := home.peek(play.key, scenario.record)):
        return Outcome(
            play,
            "done",
            average_regret=found.measures["average_regret"],
            warnings=tuple(found.warnings),
        )
    began = perf_counter()
    warned: list[str] = []
    try:
        if name_code(list_plugins(scenario, play.optimizer)) != task.code:
            raise ExecutorError(OTHER_CODE)
        with _noting(warned):
            landscape = _landscape(scenario.environment, scenario.seed, play.replication)
            trace = scenario.play(play.optimizer, play.replication, landscape=landscape)
        provenance = describe_play(
            scenario,
            play.optimizer,
            play.replication,
            trace,
            setting=play.setting,
            identity=play.scenario,
            warnings=warned,
        )
        if provenance.play.key != play.key:
            if not provenance.fingerprint.get("unwritten"):
                raise ExecutorError(_other_files(provenance.fingerprint.get("contents", ())))
            # A function is written as its address, which is another in each process.
            provenance = provenance.with_play(play)
        files = encode(trace, provenance)
    except ExecutorError:
        raise
    except Exception as error:
        return Outcome(
            play,
            "failed",
            perf_counter() - began,
            message=describe_error(error, anywhere=True),
            warnings=tuple(warned),
        )
    if home:
        home.keep(files)
    return Outcome(
        play,
        "done",
        perf_counter() - began,
        average_regret=provenance.summary.measures["average_regret"],
        warnings=tuple(warned),
        files=None if home else files,
    )


def _other_files(files: Iterable[str]) -> str:
    """Explain why a play is another for a worker than for the study, which names *files*."""
    return (
        "the worker sees another scenario: a file that it names has changed since it was loaded "
        "(run again; if a plug-in writes it, let its field be a str, not a Path), or is another "
        f"one there (copy it): {', '.join(files) or 'none is named'}"
    )


@contextmanager
def _noting(texts: list[str]) -> Iterator[None]:
    """Add to *texts* what is warned of meanwhile, instead of printing it, each once.

    What is to be heard of is for the filters of warnings to say. They are one for all threads, so
    a play in a thread beside the main one warns as ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings(record=True) as caught:
        try:
            yield
        finally:
            texts += dict.fromkeys(map(_warning, caught))


def _warning(caught: warnings.WarningMessage) -> str:
    """Write what was warned of; of others' warnings also which they are, and whence."""
    if caught.category.__module__.partition(".")[0] == "sparq_sim":
        return str(caught.message)
    place = f"{Path(caught.filename).name}:{caught.lineno}"
    return f"{caught.category.__name__}: {caught.message} ({place})"


def _unpack(packed: bytes) -> Scenario:
    known = _memory.scenarios
    name = blake2b(packed, digest_size=16).digest()
    if name not in known:
        scenario = pickle.loads(packed)
        while len(known) >= 32:
            known.pop(next(iter(known)))
        known[name] = scenario
    return known[name]


def _landscape(environment: Environment, seed: int, replication: int) -> Landscape:
    known = _memory.landscapes
    for kept in known:
        same = (seed, replication) == (kept.seed, kept.replication)
        if same and _same(kept.environment, environment):
            return kept.landscape
    while len(known) >= LANDSCAPES:
        known.popleft().close()
    resources = Resources()
    started = run_at_once(resources.start_landscape(environment, Streams(seed, replication)))
    # What is no landscape is for the play to refuse, by name.
    shared = SharedLandscape(started) if isinstance(started, Landscape) else started
    known.append(_Kept(environment, seed, replication, shared, resources))
    return shared


def _close_landscapes() -> None:
    """Close landscapes that hold something; others may serve again."""
    known = _memory.landscapes
    for kept in [kept for kept in known if kept.resources.holds]:
        known.remove(kept)
        kept.close()


class SharedLandscape:
    """A landscape that several plays share: the best of a time is found once for all of them."""

    def __init__(self, landscape: Landscape) -> None:
        self._landscape = landscape
        self._bests: dict[float, tuple[Point, float]] = {}
        self.domain = landscape.domain
        self.rewards = landscape.rewards
        # Its hooks are sought in the object itself, where __getattr__ has no say.
        for hook in LANDSCAPE_HOOKS:
            if hook.optional and inspect.getattr_static(landscape, hook.name, None) is not None:
                with suppress(AttributeError):  # Of a property that has nothing to give.
                    setattr(self, hook.name, getattr(landscape, hook.name))

    def __getattr__(self, name: str) -> Any:
        """Return what else the landscape has."""
        return getattr(self._landscape, name)

    def __dir__(self) -> list[str]:
        """List what the landscape has, so that a hook that is misspelt there is found here."""
        return dir(self._landscape)

    def best(self, time: float) -> tuple[Point, float]:
        """Return a point of the highest reward, and that reward; asked for again, the same."""
        found = self._bests.get(time)
        if found is None:
            if len(self._bests) >= MOST_BESTS:
                del self._bests[next(iter(self._bests))]
            found = self._bests[time] = self._landscape.best(time)
        return found


def _same(a: Environment, b: Environment) -> bool:
    try:
        return bool(a == b)
    except Exception:  # Fields such as arrays may refuse to be compared.
        return False


# In this process


class InProcess:
    """Plays one after the other in this process: for debugging, and for what cannot be sent."""

    def outcomes(self, work: Work) -> Outcomes:
        """Compute all plays."""
        try:
            for group in work.groups:
                for task in group:
                    yield _compute(task, work.home)
        finally:
            _close_landscapes()


# In processes of this machine


@dataclass
class _Lane:
    """One worker process, and the plays it has been given, in order.

    A pool of one each, not one pool of many: a killed worker breaks its pool, and thus only its
    own play is lost and only that is to blame.
    """

    pool: ProcessPoolExecutor
    ready: Future[int]
    queue: deque[tuple[Future[list[Outcome]], Task]] = field(default_factory=deque)
    group: deque[Task] = field(default_factory=deque)
    false_starts: int = 0
    quick: bool = False
    """Whether its plays are over in no time."""

    @classmethod
    def opened(cls) -> _Lane:
        pool = _pool()
        return cls(pool, pool.submit(os.getpid))

    def reopen(self) -> None:
        """Replace a dead worker."""
        self.false_starts = 0 if self.began else self.false_starts + 1
        if self.false_starts >= MOST_FALSE_STARTS:
            raise ExecutorError(
                "worker processes die as soon as they start; a script that runs a study must do so "
                "under `if __name__ == '__main__':`, or use the executor InProcess()"
            )
        self.pool.shutdown(wait=True, cancel_futures=True)
        self.pool = _pool()
        self.ready = self.pool.submit(os.getpid)

    @property
    def began(self) -> bool:
        """Whether the worker was up when it died."""
        return self.ready.done() and self.ready.exception() is None

    def kill(self) -> None:
        """End the worker and what it is computing."""
        if self.began:
            with suppress(OSError):
                os.kill(self.ready.result(), signal.SIGTERM)


def _pool() -> ProcessPoolExecutor:
    # A fork copies the threads' locks but not the threads; a fresh interpreter is always sound.
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_settle)


def _settle() -> None:
    """Leave Ctrl-C to the coordinator, do not outlive it, and close what is held at the end."""
    global _ends_with_study
    _ends_with_study = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    Finalize(None, _close_landscapes, exitpriority=0)
    threading.Thread(target=_follow, daemon=True).start()


def _end(number: int, _: object) -> None:
    """Close what is held, and die of the signal as without it."""
    try:
        kill_all()
        close_all(Terminated())
    finally:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _follow() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        sleep(SECONDS_TO_CLOSE)
        os._exit(1)


class Terminated(KeyboardInterrupt):
    """Somebody asked this process to end, by SIGTERM."""


@contextmanager
def terminable() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C in a hurry, as those who send it do not wait for long.

    Worker processes end at once, with what they are computing; then `Terminated` is raised.
    """

    def end(*_: object) -> None:
        for worker in active_children():
            worker.terminate()
        raise Terminated

    if threading.current_thread() is not threading.main_thread():  # Others get no signals.
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Processes:
    """Plays in *jobs* processes of this machine; by default, one a core."""

    def __init__(self, jobs: int | None = None) -> None:
        if jobs is not None and jobs < 1:
            raise ExecutorError(f"jobs must be at least 1, not {jobs}")
        self.jobs = jobs or cores()

    def outcomes(self, work: Work) -> Outcomes:
        """Compute all plays; a killed worker is replaced, and its play tried once more."""
        lanes = [_Lane.opened() for _ in range(min(self.jobs, len(work)))]
        deaths: Counter[str] = Counter()
        try:
            while True:
                for lane in lanes:
                    self._fill(lane, lanes, work)
                waiting = [lane.queue[0][0] for lane in lanes if lane.queue]
                if not waiting:
                    return
                wait(waiting, return_when=FIRST_COMPLETED)
                for lane in lanes:
                    yield from self._drain(lane, deaths)
        except KeyboardInterrupt as stop:
            if not isinstance(stop, Terminated):
                _announce_wait(lanes)
            raise
        finally:
            _close(lanes)

    def _fill(self, lane: _Lane, lanes: Sequence[_Lane], work: Work) -> None:
        """Keep one play running, and a quick worker another one waiting, so as not to be idle.

        What waits at a worker cannot be called back, so a slow one has nothing waiting.
        """
        while len(lane.queue) < 1 + lane.quick and (task := _next(lane, lanes, work)) is not None:
            try:
                lane.queue.append((lane.pool.submit(perform, work.pack([task])), task))
            except BrokenExecutor:
                lane.group.appendleft(task)
                if lane.queue:  # Whoever is to blame is in there.
                    return
                lane.reopen()

    def _drain(self, lane: _Lane, deaths: Counter[str]) -> Iterator[Outcome]:
        while lane.queue and lane.queue[0][0].done():
            future, task = lane.queue.popleft()
            try:
                outcomes = future.result()
            except BrokenExecutor:
                lane.group.extendleft(waiting for _, waiting in reversed(lane.queue))
                lane.queue.clear()
                deaths[task.play.key] += lane.began
                lane.reopen()
                if deaths[task.play.key] >= MOST_DEATHS:
                    yield Outcome(task.play, "killed", message=KILLED)
                else:
                    lane.group.appendleft(task)
            else:
                lane.quick = all(outcome.seconds < QUICK for outcome in outcomes)
                yield from outcomes


def cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _next(lane: _Lane, lanes: Sequence[_Lane], work: Work) -> Task | None:
    """Take a play of the lane's own group, of a fresh one, or of whoever has most left."""
    if not lane.group and work.groups:
        lane.group = work.groups.popleft()
    if lane.group:
        return lane.group.popleft()
    longest = max(lanes, key=lambda other: len(other.group)).group
    return longest.pop() if longest else None


def _announce_wait(lanes: Sequence[_Lane]) -> None:
    """Write what is waited for after Ctrl-C, and how to wait no longer."""
    begun = sum(
        not future.done() and not future.cancel() for lane in lanes for future, _ in lane.queue
    )
    if begun:
        plays = "1 play" if begun == 1 else f"{begun} plays"
        sys.stderr.write(f"Finishing {plays}; Ctrl-C again ends them at once.\n")
        sys.stderr.flush()


def _close(lanes: Sequence[_Lane]) -> None:
    """Let the plays that have begun finish; told to hurry, end them."""
    try:
        for lane in lanes:
            for future, _ in lane.queue:
                future.cancel()
        for lane in lanes:
            lane.pool.shutdown(wait=True, cancel_futures=True)
    except KeyboardInterrupt:
        for lane in lanes:
            lane.kill()
        raise


# On any executor


class Pooled:
    """Plays on any `concurrent.futures.Executor`, which is left open; *workers* is a guess."""

    def __init__(self, executor: Executor, *, workers: int | None = None) -> None:
        self._executor = executor
        self._workers = workers or getattr(executor, "_max_workers", None) or cores()

    def outcomes(self, work: Work) -> Outcomes:
        """Compute all plays, in pieces of groups; a piece that kills its worker is tried again."""
        pieces = deque(_pieces(work.groups, 4 * self._workers))
        running: dict[Future[list[Outcome]], list[Task]] = {}
        try:
            while pieces or running:
                while pieces and len(running) < 2 * self._workers:
                    piece = pieces.popleft()
                    running[self._executor.submit(perform, work.pack(piece))] = piece
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    piece = running.pop(future)
                    yield from _settle_piece(future, piece, pieces)
        finally:
            for future in running:
                future.cancel()
            with suppress(CancelledError):
                wait([future for future in running if not future.cancelled()])


def _settle_piece(
    future: Future[list[Outcome]],
    piece: list[Task],
    pieces: deque[list[Task]],
) -> Iterator[Outcome]:
    try:
        yield from future.result()
    except BrokenExecutor as error:
        raise ExecutorError(
            f"the executor broke ({error}); run again with a new one: finished plays are kept"
        ) from error
    except Exception as error:
        if type(error).__name__ != "KilledWorker":  # Dask's; it may not be installed.
            raise
        if len(piece) == 1:
            yield Outcome(piece[0].play, "killed", message=KILLED)
        else:  # It is not known which of them it was: each goes on alone.
            pieces.extend([task] for task in piece)


def _pieces(groups: Sequence[Sequence[Task]], wanted: int) -> list[list[Task]]:
    """Cut groups until there are as many pieces as *wanted*, or no larger ones than needed."""
    total = sum(map(len, groups))
    longest = max(1, total // max(1, wanted))
    return [
        list(group)[start : start + longest]
        for group in groups
        for start in range(0, len(group), longest)
    ]


# On a Dask cluster


class Dask:
    """Plays on the Dask cluster at *address* (tcp://host:port), or on a local one made for it.

    Workers write to the study's folder where they see it, and send their files home elsewhere.
    """

    def __init__(self, address: str | None = None, *, jobs: int | None = None) -> None:
        self.address = address
        self.jobs = jobs

    def outcomes(self, work: Work) -> Outcomes:
        """Compute all plays."""
        try:
            dask: Any = import_module("distributed")
        except ImportError as error:
            raise ExecutorError(
                "the executor dask needs the extra `dask`: pip install 'sparq-sim[dask]'"
            ) from error
        if self.address is None:
            jobs = self.jobs or cores()
            with (
                dask.LocalCluster(
                    n_workers=jobs, threads_per_worker=1, dashboard_address=None
                ) as cluster,
                dask.Client(cluster) as client,
            ):
                yield from self._on(client, work)
        else:
            try:
                client = dask.Client(self.address, timeout="10s")
            except (OSError, ValueError) as error:
                raise ExecutorError(
                    f"no Dask cluster answers at {self.address}: {error}"
                ) from error
            with client:
                yield from self._on(client, work)

    def _on(self, client: Any, work: Work) -> Iterator[Outcome]:
        threads = sum(client.nthreads().values())
        executor = client.get_executor(pure=False)
        yield from Pooled(executor, workers=max(1, threads)).outcomes(work)
