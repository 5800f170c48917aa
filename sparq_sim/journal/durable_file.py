"""A durable file: lines are appended to it, whole or not at all, by one process at a time."""

from __future__ import annotations

import os
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from tempfile import gettempdir

from sparq_sim.errors import JournalError

__all__ = ["DurableFile"]


class DurableFile:
    """An open file that is locked, and to whose end lines are written.

    Each line is handed to the operating system by one call, so that it outlives the process; `sync`
    makes it outlive a loss of power. A line that cannot be written in full, as on a full disk, is
    taken back in full. The lock ends with `close`, or with the process.

    It is made by `create` or `reopen`.
    """

    def __init__(self, path: Path, flags: int) -> None:
        """Open and lock a file; see `create` and `reopen`.

        Args:
            path: Where the file is.
            flags: As for `os.open`.

        Raises:
            JournalError: It cannot be opened, or another writer has it.
        """
        self.path = path
        """Where the file is."""
        self._descriptor: int | None = _open_locked(path, flags | os.O_RDWR | os.O_APPEND)
        self._size = 0
        self._synced = True

    @classmethod
    def create(cls, path: Path, line: bytes) -> DurableFile:
        """Begin a file with its first line, which is durable then.

        Args:
            path: A file that does not exist yet, in a folder that does.
            line: The first line, with its end.

        Returns:
            The file, to be closed.

        Raises:
            JournalError: There is such a file, or it cannot be written.
        """
        file = cls(path, os.O_CREAT | os.O_EXCL)
        try:
            file.append(line)
            file.sync()
            _sync_folder(path.parent)
        except BaseException:
            file._release()
            with suppress(OSError):
                path.unlink()
            raise
        return file

    @classmethod
    def reopen(cls, path: Path, *, length: int, whole: int) -> DurableFile:
        """Go on with a file after its last whole line; what follows that line is removed.

        Args:
            path: The file.
            length: How long it was when it was read, in bytes.
            whole: How long it was up to the end of its last whole line.

        Returns:
            The file, to be closed.

        Raises:
            JournalError: Another writer has the file, it has changed since it was read, or it
                cannot be written.
        """
        file = cls(path, 0)
        try:
            if os.fstat(file._opened).st_size != length:
                raise JournalError(f"{path} has changed since it was read; read it again")
            os.ftruncate(file._opened, whole)
            os.fsync(file._opened)
        except BaseException as error:
            file._release()
            if isinstance(error, OSError):
                raise _describe(path, error) from error
            raise
        file._size = whole
        return file

    def append(self, line: bytes) -> None:
        """Write a line, whole or not at all; it outlives the process.

        Args:
            line: The line, with its end.

        Raises:
            JournalError: It cannot be written, or the file is closed.
        """
        descriptor = self._opened
        self._synced = False
        written = 0
        try:
            while written < len(line):  # More than once only where the disk becomes full.
                written += os.write(descriptor, line[written:])
        except BaseException as error:
            try:
                os.ftruncate(descriptor, self._size)
            except OSError:
                self._release()  # Half a line remains, and nothing may follow it.
            if isinstance(error, OSError):
                raise _describe(self.path, error) from error
            raise
        self._size += written

    def sync(self) -> None:
        """Make all that was written durable, also against the loss of power.

        Raises:
            JournalError: The disk does not do it, or the file was deleted; what it held is then
                in another file, which the message names.
        """
        if self._synced:
            return
        try:
            os.fsync(self._opened)
            is_deleted = not os.fstat(self._opened).st_nlink
        except OSError as error:
            raise _describe(self.path, error) from error
        if is_deleted:
            raise JournalError(
                f"{self.path} was deleted while it was being written; {self._rescue()}"
            )
        self._synced = True

    def close(self) -> None:
        """Make all durable, close the file, and let another writer have it.

        Raises:
            JournalError: As for `sync`.
        """
        if self._descriptor is not None:
            try:
                self.sync()
            finally:
                self._release()

    @property
    def _opened(self) -> int:
        if self._descriptor is None:
            raise JournalError(f"{self.path} is closed; nothing can be written to it")
        return self._descriptor

    def _release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _rescue(self) -> str:
        """Write what a deleted file holds to another one, and say where that is."""
        path = Path(gettempdir()) / f"{self.path.stem}-{os.getpid()}{self.path.suffix}"
        try:
            with path.open("xb") as file:
                file.write(os.pread(self._opened, self._size, 0))
        except OSError as error:
            return f"{path}, where its content should have been kept: {error.strerror or error}"
        return f"its content is in {path}"


def _open_locked(path: Path, flags: int) -> int:
    try:
        descriptor = os.open(path, flags, 0o666)
    except FileExistsError as error:
        raise JournalError(
            f"{path} exists already; choose another file, or resume the play of this one"
        ) from error
    except OSError as error:
        raise _describe(path, error) from error
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise JournalError(
            f"{path} is being written by another play; wait for its end, or stop it"
        ) from error
    except OSError:
        pass  # The file system has no locks.
    return descriptor


def _sync_folder(folder: Path) -> None:
    """Make durable that a new file is in its folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _describe(path: Path, error: OSError) -> JournalError:
    """Return the error that tells what to do where a file cannot be written."""
    match error:
        case FileNotFoundError():
            remedy = f"there must be a folder {path.parent}"
        case NotADirectoryError():
            remedy = f"{path.parent} must be a folder"
        case IsADirectoryError():
            remedy = "name a file, not a folder"
        case PermissionError():
            remedy = "choose a folder in which you may write"
        case _:
            remedy = "all lines before are whole; make room, and resume the play"
    return JournalError(f"{path} cannot be written: {error.strerror or error}; {remedy}")
