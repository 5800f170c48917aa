"""Life: what plug-ins hold, such as a client, a child process or a file, is entered and left.

What `start` gives may be a context manager, for experts also an asynchronous one. Whoever started
it enters it, and leaves it after its last use, whatever has happened in between.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from sparq_sim.errors import LiveOnlyError, PluginError
from sparq_sim.plugin.environment import Environment, Landscape
from sparq_sim.plugin.frames import account
from sparq_sim.simulation.blas import one_thread
from sparq_sim.simulation.randomness import Streams

T = TypeVar("T")

MOST_AWAITS = 100
"""Of what cannot be awaited: who tries again so often will not stop."""

_open: list[Life] = []
"""All that hold something now, in this process."""


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """What was entered, asynchronously if *awaited*."""

    who: str
    manager: Any
    awaited: bool

    async def leave(self, error: BaseException | None) -> None:
        """Leave it, because of *error* if there is one."""
        told = (None, None, None) if error is None else (type(error), error, error.__traceback__)
        if self.awaited:
            with _naming(f"{self.who}.__aexit__"):
                await self.manager.__aexit__(*told)
        else:
            self.manager.__exit__(*told)


class Life:
    """What was entered, to be left in reverse order at the end of an `async with`."""

    def __init__(self) -> None:
        self._held: list[_Held] = []

    @property
    def holds(self) -> bool:
        """Whether anything is to be left."""
        return bool(self._held)

    async def enter(self, who: str, started: Any, *, may_await: bool = False) -> Any:
        """Enter what *who* has started, if it is a context manager.

        Args:
            who: As it is to be named in messages.
            started: What `start` gave.
            may_await: Whether it may be an asynchronous one.

        Returns:
            What takes part in the play: what entering gives, or, if that is None, *started*.

        Raises:
            PluginError: It is an asynchronous context manager and may not be, or what comes of a
                `start` that is a generator, or asynchronous.
            LiveOnlyError: It awaits what passes in real time only, in virtual time.
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
        """Start and enter the landscape of an environment."""
        who = f"environment {type(environment).__name__}"
        with one_thread(), starting(who):
            started = environment.start(streams.generator("environment"))
            landscape: Landscape = await self.enter(who, started)
        return landscape

    async def close(self, error: BaseException | None = None) -> None:
        """Leave all, the latest first; what goes wrong in it is noted on *error*, if there is one.

        Raises:
            PluginError: Something went wrong in it, and there is no *error*.
        """
        first = error
        while self._held:
            held = self._held.pop()
            try:
                await held.leave(error)
            except BaseException as trouble:
                if not isinstance(trouble, Exception):  # Ctrl-C, once more.
                    first = trouble
                elif trouble is not error:
                    told = f"{held.who} could not be closed: {account(trouble)}"
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
def starting(who: str) -> Iterator[None]:
    """Note on an error that it was *who* could not be started."""
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


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a *coroutine* and return its result; what it awaits must take no time."""
    step: Callable[[Any], Any] = coroutine.send
    given: Any = None
    for _ in range(MOST_AWAITS):
        try:
            awaited = step(given)
        except StopIteration as end:
            result: T = end.value
            return result
        step = coroutine.throw
        given = LiveOnlyError(
            f"awaits {awaited!r}, which passes in real time only; in virtual time nothing that "
            "takes time can be awaited there: play it live"
        )
    coroutine.close()
    raise given


@contextmanager
def started_landscape(
    environment: Environment, seed: int, replication: int = 0
) -> Iterator[Landscape]:
    """Start the landscape that plays of this *seed* and *replication* meet, and close it after."""
    life = Life()
    landscape = at_once(life.start_landscape(environment, Streams(seed, replication)))
    try:
        yield landscape
    except BaseException as error:
        at_once(life.close(error))
        raise
    at_once(life.close())


def close_all(error: BaseException) -> None:
    """Leave all that is held in this process, which must end because of *error*."""
    while _open:
        at_once(_open[-1].close(error))
