"""Exits: a plug-in that would end the program raises an error that names it in place of that."""

from __future__ import annotations

import dis
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from sparq_sim.errors import PluginError
from sparq_sim.plugin.frames import describe_error, is_of_plugin, locate_error

__all__ = ["explain_exit", "leave", "refuse_exits"]

leave = os._exit
"""Ends this process at once, also where plug-ins may not: `os._exit` as Python has it."""
_RAISE = dis.opmap["RAISE_VARARGS"]


def explain_exit(error: BaseException) -> PluginError | None:
    """Return the error that stands for a plug-in's attempt to end the program.

    Args:
        error: As it was caught, with its traceback.

    Returns:
        None for an ordinary error, for a process of a play that is given up, and for a Ctrl-C of
        the user.
    """
    # asyncio's, which is of clocks alone.
    if isinstance(error, Exception) or type(error).__name__ == "CancelledError":
        return None
    if isinstance(error, KeyboardInterrupt | GeneratorExit) and not _is_raised_by_plugin(error):
        return None
    return PluginError(
        f"{describe_error(error, anywhere=True)}; a plug-in must not end the program: let it raise "
        "an error, such as ValueError"
    )


@contextmanager
def refuse_exits() -> Iterator[None]:
    """Have a plug-in that would end the program meanwhile raise a PluginError.

    That is one that raises SystemExit or KeyboardInterrupt, or calls `os._exit`. What ends a
    process from within native code, or by a signal, cannot be refused.

    Yields:
        Nothing.

    Raises:
        PluginError: A plug-in has tried to.
    """
    with _no_exit:
        try:
            yield
        except BaseException as error:
            # Of the program itself, an exit is what is meant.
            if isinstance(error, SystemExit) and not locate_error(error):
                raise
            if (told := explain_exit(error)) is None:
                raise
            raise told from error


def _is_raised_by_plugin(error: BaseException) -> bool:
    """Return whether a statement `raise` of a plug-in has raised an error.

    Ctrl-C is raised between two instructions, or within a call that waits.
    """
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return False
    code = last.tb_frame.f_code
    if code is getattr(signal.getsignal(signal.SIGINT), "__code__", None):
        return False  # Of a script that handles Ctrl-C itself.
    return is_of_plugin(last.tb_frame) and code.co_code[last.tb_lasti] == _RAISE


class _NoExit:
    """Replaces `os._exit` while somebody, in whichever thread, is within."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._within = 0
        self._process = 0

    def __enter__(self) -> None:
        with self._lock:
            self._within += 1
            self._process = os.getpid()
            os._exit = self._refuse

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within:
                os._exit = leave

    def _refuse(self, status: int) -> NoReturn:
        # A process that was forked ends so, and takes nobody with it.
        if os.getpid() != self._process:
            leave(status)
        raise SystemExit(f"os._exit({status})")


_no_exit = _NoExit()
