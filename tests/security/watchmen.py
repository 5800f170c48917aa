"""Watchmen: commands run while all is noted that data should never do."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from sparq_sim.cli.main import main

_WATCHED = ("pickle.find_class", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")
_noted: list[str] | None = None


def _note(event: str, arguments: tuple[object, ...]) -> None:
    # A hook cannot be taken away; it does nothing while nobody watches.
    if _noted is not None and event in _WATCHED:
        _noted.append(f"{event} {arguments[:2]}"[:200])


sys.addaudithook(_note)


@contextmanager
def _watching(cwd: Path) -> Iterator[list[str]]:
    """Note what happens, and have the folder of the data importable, as it is in a notebook."""
    global _noted
    noted: list[str] = []
    _noted = noted
    path = [*sys.path]
    sys.path.insert(0, str(cwd))
    try:
        with chdir(cwd):
            yield noted
    finally:
        _noted = None
        sys.path[:] = path


def watch(*commands: str, cwd: Path) -> tuple[list[str], list[int], str]:
    """Run commands of sparq-sim, and give what happened that should not, the codes and the text."""
    (cwd / "canary.py").write_text(f"open({str(cwd / 'sung')!r}, 'w').write('it was imported')\n")
    told, codes = StringIO(), list[int]()
    with _watching(cwd) as noted, redirect_stdout(told), redirect_stderr(told):
        for command in commands:
            try:
                main(shlex.split(command))
                codes.append(0)
            except SystemExit as ended:
                codes.append(int(ended.code or 0))
    if (cwd / "sung").exists():
        noted.append("the canary was imported")
    return noted, codes, told.getvalue()
