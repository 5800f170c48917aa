"""The workshop: a copy of the project in which mistakes are planted and tests run."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from mutants.operators import Mutant

__all__ = ["TestRun", "Workshop", "open_workshop"]

_MARK = "SPARQ_MUTANTS_RUN"
"""The environment variable by which all processes of one run are found."""
_FOLDERS = ("", "experts", "environments", "scenarios")
_PYTEST = ("-m", "pytest", "-p", "mutants.watching", "-p", "no:cacheprovider", "-p", "no:xdist")
_TIME_SIGNALS = (signal.SIGXCPU, signal.SIGPROF, signal.SIGALRM)
_WALL = 8
"""How many times its limit of CPU time a run may last: a machine may be busy, a test may wait."""


@dataclass(frozen=True)
class TestRun:
    """How a run of tests ended."""

    code: int | None
    """The exit code; None if it was ended because it took too long."""
    said: str
    """What it wrote."""
    seconds: float
    """The CPU time that it took, with that of its processes, in seconds."""


class Workshop:
    """A copy of the project, in which one mistake at a time is made.

    Args:
        root: Of the copy.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._planted = 0

    @contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        """Have a mistake in the copy for a while.

        Args:
            mutant: The mistake.
        """
        path = self.root / mutant.file
        source, before = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(mutant.apply(source), encoding="utf-8")
        # Python compiles a file anew if its time in whole seconds or its size differs.
        self._planted += 1
        os.utime(path, (self._planted, self._planted))
        try:
            yield
        finally:
            path.write_text(source, encoding="utf-8")
            os.utime(path, (before.st_atime, before.st_mtime))

    def run_tests(
        self,
        tests: Sequence[str],
        *,
        limit: float,
        program: Sequence[str] = (),
        notes: Path | None = None,
        known: Path | None = None,
        options: Sequence[str] = ("-x",),
    ) -> TestRun:
        """Run tests in the copy, and end all processes that they leave behind.

        Args:
            tests: Their names, or files or folders of tests.
            limit: How much CPU time each process may take, in seconds.
            program: What runs pytest, such as a measurement of coverage; by default nothing.
            notes: Where the outcomes are noted; by default nowhere.
            known: Where it is noted how long tests take; by default none has a limit of its own.
            options: Of pytest.
        """
        listed = self.root / ".tests-to-run"
        listed.write_text("\n".join(tests), encoding="utf-8")
        mark = uuid4().hex
        environ = os.environ | {
            "PYTHONPATH": os.pathsep.join(str(self.root / folder) for folder in _FOLDERS),
            "OPENBLAS_NUM_THREADS": "1",
            _MARK: mark,
        }
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        if notes is not None:
            environ["SPARQ_MUTANTS_NOTES"] = str(notes)
        if known is not None:
            environ["SPARQ_MUTANTS_KNOWN"] = str(known)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = int(limit) + 1
        with subprocess.Popen(
            [sys.executable, *program, *_PYTEST, *options, f"@{listed.name}"],
            cwd=self.root,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5)),
        ) as process:
            try:
                said, _ = process.communicate(timeout=_WALL * limit)
                code: int | None = process.returncode
            except subprocess.TimeoutExpired:
                process.kill()
                _end_all(mark)  # They hold what is read from.
                said, _ = process.communicate()
                code = None
        _end_all(mark)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        is_late = code is not None and -code in _TIME_SIGNALS
        return TestRun(None if is_late else code, said, taken)


def _end_all(mark: str) -> None:
    """End all processes that have a *mark* in their environment (only Linux tells)."""
    needle = f"{_MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if needle in (folder / "environ").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)
        except OSError:  # It has ended, or belongs to somebody else.
            continue


@contextmanager
def open_workshop(root: Path) -> Iterator[Workshop]:
    """Copy all files of a project that git knows or would add, for as long as the block lasts.

    Args:
        root: Of the project.
    """
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=root, check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for name in filter(None, names.split("\0")):
            if (root / name).is_file():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, Path(folder) / name)
        yield Workshop(Path(folder))
