"""Lifetime: what plug-ins hold open, such as a client, a child process or a file, is closed.

What `start` returns may be a context manager, for experts also an asynchronous one. Whoever calls
`start` enters it, and exits it after its last use, whatever has happened in between. Landscapes
are started here and nowhere else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from numpy.random import Generator

from sparq_sim.errors import LiveOnlyError, PluginError
from sparq_sim.plugin.environment import Environment, Landscape
from sparq_sim.plugin.exits import explain_exit
from sparq_sim.plugin.frames import describe_error
from sparq_sim.plugin.steered import SteeredEnvironment
from sparq_sim.simulation.blas import one_thread
from sparq_sim.simulation.randomness import Streams

__all__ = ["Resources", "close_all", "note_failed_start", "open_landscape", "run_at_once"]

T = TypeVar("T")

_MOST_AWAITS = 100
"""How often a coroutine may await what cannot be awaited; one that goes on so long never stops."""

_open: list[Resources] = []
"""All resources of this process that hold something open now."""


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """A context manager that was entered, asynchronously if *awaited*."""

    who: str
    manager: Any
    awaited: bool

    async def exit(self, error: BaseException | None) -> None:
        """Exit it, because of *error* if there is one."""
        told = (None, None, None) if error is None else (type(error), error, error.__traceback__)
        if self.awaited:
            with _naming(f"{self.who}.__aexit__"):
                await self.manager.__aexit__(*told)
        else:
            self.manager.__exit__(*told)


class Resources:
    """What plug-ins hold open during a play: a stack of context managers, as contextlib has one.

    Each is entered when its plug-in has started; all are exited in reverse order by `close`, or at
    the end of an `async with`. Unlike an `AsyncExitStack` it takes context managers of both kinds,
    names the plug-in in every error, and can be closed from outside by `close_all`.
    """

    def __init__(self) -> None:
        self._held: list[_Held] = []

    @property
    def holds(self) -> bool:
        """Whether anything is open."""
        return bool(self._held)

    async def enter(self, who: str, started: Any, *, may_await: bool = False) -> Any:
        """Enter what a plug-in has started, if it is a context manager.

        Args:
            who: The plug-in, as error messages name it.
            started: What its `start` returned.
            may_await: Whether that may be an asynchronous context manager.

        Returns:
            What takes part in the play: what entering returned, or, if that is None, *started*.

        Raises:
            PluginError: If *started* is an asynchronous context manager and must not be, or if
                `start` is a generator function or a coroutine function.
            LiveOnlyError: If entering it, in virtual time, awaits what passes in real time only.
        """
        kind = type(started)
        awaited = may_await and hasattr(kind, "__aenter__")
        if awaited:
            with _naming(f"{who}.__aenter__"):
                entered = await started.__aenter__()
        elif hasattr(kind, "__enter__"):
            entered = started.__enter__()
        elif hasattr(kind, "__aenter__"):
            raise PluginError(
                f"{who}: start gives an asynchronous context manager ({kind.__name__}), as only "
                "experts may; define __enter__ and __exit__ instead of __aenter__ and __aexit__"
            )
        else:
            _refuse_unstarted(who, started)
            return started
        if not self._held:
            _open.append(self)
        self._held.append(_Held(who, started, awaited))
        return started if entered is None else entered

    async def start_landscape(self, environment: Environment, streams: Streams) -> Landscape:
        """Start and enter the landscape that a play of an environment meets.

        Args:
            environment: What is played.
            streams: The randomness of the play.

        Returns:
            The landscape, open until these resources are closed.

        Raises:
            PluginError: As `enter` does; whatever else `start` raises has a note of who it was.
        """
        return await self._start_landscape(environment, streams.generator("environment"))

    async def _start_landscape(self, environment: Environment, rng: Generator) -> Landscape:
        who = f"environment {type(environment).__name__}"
        with one_thread(), note_failed_start(who):
            started = environment.start(rng)
            # What is only simulated is entered at once; what is real may have to connect.
            may_await = isinstance(environment, SteeredEnvironment)
            landscape: Landscape = await self.enter(who, started, may_await=may_await)
        return landscape

    async def close(self, error: BaseException | None = None) -> None:
        """Exit all that was entered, the latest first.

        Args:
            error: Why, if the play has failed. Further errors in closing are noted on it.

        Raises:
            PluginError: If something could not be closed, and there is no *error*.
        """
        first = error
        while self._held:
            held = self._held.pop()
            try:
                await held.exit(error)
            except BaseException as trouble:
                if not isinstance(trouble, Exception):  # Ctrl-C, once more.
                    first = trouble
                elif trouble is not error:
                    told = f"{held.who} could not be closed: {describe_error(trouble)}"
                    if first is None:
                        first = PluginError(told)
                        first.__cause__ = trouble
                    else:
                        first.add_note(told)
        if self in _open:
            _open.remove(self)
        if first is not None and first is not error:
            raise first

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        await self.close(error)


def _refuse_unstarted(who: str, started: object) -> None:
    """Refuse what comes of a `start` that was called and has not run yet."""
    if inspect.isgenerator(started):
        raise PluginError(
            f"{who}: start is a generator; write @contextmanager (of contextlib) above it"
        )
    if inspect.isasyncgen(started):
        raise PluginError(
            f"{who}: start is an asynchronous generator; write @asynccontextmanager (of "
            "contextlib) above it"
        )
    if inspect.iscoroutine(started):
        started.close()  # Or Python warns that nobody has awaited it.
        raise PluginError(
            f"{who}: start must be a method that is not async: `def start`; what takes time to "
            "begin, such as a client that connects, does so in `async def __aenter__`"
        )


@contextmanager
def note_failed_start(who: str) -> Iterator[None]:
    """Note on every error raised within the block that *who* could not be started.

    Args:
        who: The plug-in that is started; an error that names it already gets no note.
    """
    try:
        yield
    except Exception as error:
        if who not in str(error):
            error.add_note(f"{who} could not be started")
        raise


@contextmanager
def _naming(who: str) -> Iterator[None]:
    """Name who awaits what cannot be awaited."""
    try:
        yield
    except LiveOnlyError as error:
        raise LiveOnlyError(f"{who} {error}") from None
    except RuntimeError as error:
        if "no running event loop" not in str(error):
            raise
        raise LiveOnlyError(
            f"{who} calls asyncio, which runs in real time only; play it live"
        ) from error
    except GeneratorExit as error:
        raise PluginError(f"{who} awaits the clock of a play that is over") from error


def run_at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end without an event loop, and return its result.

    Args:
        coroutine: It must not await anything that takes time.

    Raises:
        LiveOnlyError: Where it does; the error is raised within it first.
        PluginError: A plug-in has raised what would end the program, such as SystemExit.
    """
    step: Callable[[Any], Any] = coroutine.send
    given: Any = None
    for _ in range(_MOST_AWAITS):
        try:
            awaited = step(given)
        except StopIteration as end:
            result: T = end.value
            return result
        except BaseException as error:
            if (told := explain_exit(error)) is None:
                raise
            raise told from error
        step = coroutine.throw
        given = LiveOnlyError(
            f"awaits {awaited!r}, which passes in real time only; in virtual time nothing that "
            "takes time can be awaited there: play it live"
        )
    coroutine.close()
    raise given


@contextmanager
def open_landscape(
    environment: Environment, seed: int = 0, replication: int = 0, *, rng: Generator | None = None
) -> Iterator[Landscape]:
    """Start a landscape, and close it after the `with` block.

    Args:
        environment: Whose landscape.
        seed: Of the plays that meet this landscape.
        replication: Of these plays.
        rng: The randomness of the landscape, in place of what plays of this *seed* and
            *replication* draw.

    Yields:
        The landscape.

    Raises:
        PluginError: If `start` returns what cannot be entered, or it cannot be closed.
        LiveOnlyError: If the environment is real.
    """
    if environment.is_real:
        raise LiveOnlyError(
            f"environment {type(environment).__name__} is real: it is reached by live play only"
        )
    chance = Streams(seed, replication).generator("environment") if rng is None else rng
    resources = Resources()
    landscape = run_at_once(resources._start_landscape(environment, chance))
    try:
        yield landscape
    except BaseException as error:
        run_at_once(resources.close(error))
        raise
    run_at_once(resources.close())


def close_all(error: BaseException) -> None:
    """Close all resources of this process, which must end.

    Args:
        error: Why it must end.
    """
    while _open:
        run_at_once(_open[-1].close(error))
