"""Frames: where in the files of plug-ins an error was raised."""

from __future__ import annotations

import sysconfig
from functools import lru_cache
from pathlib import Path
from traceback import walk_tb
from types import CodeType, FrameType

from sparq_sim.errors import SparqError
from sparq_sim.plugin.origins import list_entry_points

MOST_FRAMES = 3
"""Of those that are shown, the deepest."""


def locate_error(error: BaseException) -> str:
    """Return where in the files of plug-ins *error* was raised, from the outside in.

    Files of plug-ins are those of packages that have any, and all that are neither of this
    package nor of an installed one. They are told by their names alone, because the text goes
    into traces, which must not depend on where things are installed.

    Returns:
        Text to put behind a message, as " (expert.py:14 in answer > helper.py:7 in read)"; nothing
        where no file of a plug-in is involved.
    """
    frames = [each for each in walk_tb(error.__traceback__) if _is_of_plugin(each[0])]
    more = ["…"] if len(frames) > MOST_FRAMES else []
    shown = [*more, *map(_shown, frames[-MOST_FRAMES:])]
    return f" ({' > '.join(shown)})" if frames else ""


def describe_error(error: BaseException, *, anywhere: bool = False) -> str:
    """Return what to tell a user of *error*: its type, message, place in a plug-in, and notes.

    Args:
        error: One that was written for users is its message alone.
        anywhere: Whether one that no plug-in has to do with is placed where it was raised.
    """
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    if isinstance(error, SparqError):
        return f"{error}{notes}"
    deepest = [f" ({_shown(frame)})" for frame in walk_tb(error.__traceback__)][-1:]
    where = locate_error(error) or ("".join(deepest) if anywhere else "")
    return f"{type(error).__name__}: {error}{where}{notes}"


def _shown(at: tuple[FrameType, int]) -> str:
    frame, line = at
    return f"{_name(frame.f_code)}:{line} in {frame.f_code.co_name}"


def _name(code: CodeType) -> str:
    path = Path(code.co_filename)
    return f"{path.parent.name}/{path.name}" if path.name == "__init__.py" else path.name


def _is_of_plugin(frame: FrameType) -> bool:
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
