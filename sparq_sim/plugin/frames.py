"""Frames: where in the files of plug-ins an error was raised."""

from __future__ import annotations

import sysconfig
from functools import lru_cache
from pathlib import Path
from traceback import walk_tb
from types import CodeType, FrameType

from sparq_sim.errors import SparqError, escape_surrogates
from sparq_sim.plugin.origins import list_entry_points

__all__ = ["MOST_FRAMES", "describe_error", "is_of_plugin", "locate_error"]

MOST_FRAMES = 3
"""How many places an error is followed through, the deepest ones."""


def locate_error(error: BaseException) -> str:
    """Return where in the files of plug-ins an error was raised, from the outermost call inwards.

    Files of plug-ins are those of packages that have any, and all that are neither of this
    package nor of an installed one. Folders are left out, because the text goes into traces, which
    must not depend on where things are installed.

    Args:
        error: As it was caught, with its traceback.

    Returns:
        Text for the end of a message, as " (expert.py:14 in answer > helper.py:7 in read)"; empty
        where no file of a plug-in is involved.
    """
    frames = [each for each in walk_tb(error.__traceback__) if is_of_plugin(each[0])]
    more = ["…"] if len(frames) > MOST_FRAMES else []
    shown = [*more, *map(_show_frame, frames[-MOST_FRAMES:])]
    return f" ({' > '.join(shown)})" if frames else ""


def describe_error(error: BaseException, *, anywhere: bool = False) -> str:
    """Return an error as text for a user: its type, message, place in a plug-in, and notes.

    Args:
        error: As it was caught, with its traceback; of a `SparqError`, only message and notes are
            returned.
        anywhere: Whether the place is shown also where no file of a plug-in is involved.
    """
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    if isinstance(error, SparqError):
        return escape_surrogates(f"{error}{notes}")
    deepest = [f" ({_show_frame(frame)})" for frame in walk_tb(error.__traceback__)][-1:]
    where = locate_error(error) or ("".join(deepest) if anywhere else "")
    if isinstance(error, MemoryError):
        told = f"out of memory{where}: {str(error) or 'no more can be had'}; ask for less at a time"
        return f"{told}{notes}"
    return escape_surrogates(f"{type(error).__name__}: {error}{where}{notes}")


def _show_frame(at: tuple[FrameType, int]) -> str:
    frame, line = at
    return f"{_name_file(frame.f_code)}:{line} in {frame.f_code.co_name}"


def _name_file(code: CodeType) -> str:
    path = Path(code.co_filename)
    return f"{path.parent.name}/{path.name}" if path.name == "__init__.py" else path.name


def is_of_plugin(frame: FrameType) -> bool:
    """Return whether a frame runs code of a plug-in, or of a user's own script.

    Args:
        frame: Of a traceback, or of a thread.
    """
    # Comprehensions have frames in some versions of Python; the function around them says enough.
    if frame.f_code.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"):
        return False
    module = str(frame.f_globals.get("__name__", ""))
    package = module.partition(".")[0]
    if package == "sparq_sim":
        return module.startswith("sparq_sim.optimizers.")
    file = frame.f_code.co_filename
    return _has_plugins(package) if file.startswith("<frozen") or _is_installed(file) else True


@lru_cache(maxsize=1024)
def _is_installed(file: str) -> bool:
    """Return whether a file belongs to Python itself or to a package that was installed."""
    path = Path(file)
    if {"site-packages", "dist-packages"} & set(path.parts):
        return True
    homes = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    return any(path.is_relative_to(home) for home in homes)


@lru_cache(maxsize=1024)
def _has_plugins(package: str) -> bool:
    """Return whether an installed *package* has plug-ins."""
    return any(entry.module.partition(".")[0] == package for entry in list_entry_points())
