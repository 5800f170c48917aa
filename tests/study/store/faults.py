"""Faults of storage, injected where files of a study are opened, written, synced and renamed."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from sparq_sim.study.store import files

__all__ = ["ERRORS", "Faults", "Span"]

Span = Literal["once", "on"]
"""Whether one call fails, or all from then on, as on a disk that stays full."""

ERRORS = (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT)
"""How calls fail, in turn."""


class Faults:
    """Lets the call of a number fail, of all that change what is in a folder.

    They are those that open, write to, sync, rename and remove files, and make folders.
    """

    def __init__(self, folder: Path, at: int, span: Span = "once") -> None:
        self._folder = folder
        self._at = at
        self._span = span
        self.calls: list[str] = []
        """What was called so far, the one that failed included."""
        self.failed = ""
        """What failed first; nothing as long as all goes well."""

    @property
    def met(self) -> bool:
        """Whether a call has failed."""
        return bool(self.failed)

    @contextmanager
    def inject(self) -> Iterator[Faults]:
        """Inject the faults."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("open", "replace", "unlink", "mkdir"):
                patch.setattr(os, name, self._guard(name, getattr(os, name)))
            # By a number of a file, not by its path: only what writes whole files calls it.
            patch.setattr(os, "fsync", self._guard("fsync", os.fsync, everywhere=True))
            patch.setattr(files, "open", self._open, raising=False)
            yield self

    def hit(self, call: str, path: object) -> None:
        """Count a call, and let it fail if it is its turn."""
        self.calls.append(call)
        count = len(self.calls)
        if count == self._at or (count > self._at and self._span == "on"):
            self.failed = self.failed or call
            number = ERRORS[self._at % len(ERRORS)]
            raise OSError(number, os.strerror(number), str(path))

    def _guard(
        self, name: str, real: Callable[..., Any], *, everywhere: bool = False
    ) -> Callable[..., Any]:
        def guarded(path: Any, *others: Any, **named: Any) -> Any:
            if everywhere or (
                not isinstance(path, int) and str(path).startswith(str(self._folder))
            ):
                self.hit(name, path)
            return real(path, *others, **named)

        return guarded

    def _open(self, path: Path, mode: str) -> io.BufferedWriter:
        self.hit("open", path)
        return io.BufferedWriter(_Failing(path, mode.replace("b", ""), self))


class _Failing(io.FileIO):
    """A file to which half may be written when it fails, as where a disk becomes full."""

    def __init__(self, path: Path, mode: str, faults: Faults) -> None:
        super().__init__(path, mode)
        self._faults = faults
        self._path = path

    def write(self, content: Any, /) -> int:
        whole = bytes(content)
        try:
            self._faults.hit("write", self._path)
        except OSError:
            super().write(whole[: len(whole) // 2])
            raise
        return super().write(whole)
