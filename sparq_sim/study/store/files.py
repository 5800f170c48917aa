"""Files that are there in full or not at all, even if the writer is killed or the power fails."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from sparq_sim.study.store.errors import explain_disk_errors

__all__ = [
    "list_writers",
    "remove_parts",
    "replace_file",
    "temporary_name",
    "whole_file",
    "write_whole",
]

_PART = re.compile(r"\..+\.(?P<host>[0-9a-f]{8})\.(?P<pid>\d+)\.[0-9a-f]{8}\.part")
_LONGEST_STEM = 50
"""Of a file's own name: a temporary name must not be too long for the system."""
_HOST = blake2b(socket.gethostname().encode(), digest_size=4).hexdigest()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there in full or not at all, even if the power fails.

    Args:
        path: The file; one that is there is replaced.
        content: All of it.

    Raises:
        StoreError: It cannot be written.
    """
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file of a study as `replace_file` does, and explain trouble with the disk.

    Args:
        path: What the file is called in the end.

    Yields:
        The file to write to.

    Raises:
        StoreError: It cannot be written.
    """
    with explain_disk_errors("write", path), replace_file(path) as file:
        yield file


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file under a temporary name, and rename it when it is complete and durable.

    Until then, and if anything fails, the file that is there stays as it is.

    Args:
        path: What the file is called in the end.

    Yields:
        The file to write to; afterwards it is *path*, or gone.

    Raises:
        OSError: It cannot be written.
    """
    part = temporary_name(path)
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
        _sync_folder(path.parent)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def temporary_name(path: Path) -> Path:
    """Return a name beside a file by which its writer is known: the machine and the process.

    Args:
        path: What the file is to be called.
    """
    return path.with_name(
        f".{path.stem[:_LONGEST_STEM]}.{_HOST}.{os.getpid()}.{uuid4().hex[:8]}.part"
    )


def remove_parts(folder: Path) -> None:
    """Remove temporary files that killed writers of this machine have left behind.

    Args:
        folder: Where they are.

    Raises:
        StoreError: One of them cannot be removed.
    """
    for part in folder.glob(".*.part"):
        if (match := _PART.fullmatch(part.name)) and _is_dead(match["host"], match["pid"]):
            with explain_disk_errors("remove", part):
                part.unlink(missing_ok=True)


def list_writers(folder: Path, stem: str) -> list[Path]:
    """List the temporary files of writers that are alive, or on another machine.

    Args:
        folder: Where they are.
        stem: What the file is to be called, without its suffix.

    Returns:
        Those files; of a folder that is not there, none.
    """
    found = []
    for part in folder.glob(f".{stem}.*.part"):
        if (match := _PART.fullmatch(part.name)) and not _is_dead(match["host"], match["pid"]):
            found.append(part)
    return found


def _is_dead(host: str, pid: str) -> bool:
    """Return whether a process of this machine is gone; that of another may be alive."""
    if host != _HOST:
        return False
    try:
        os.kill(int(pid), 0)
        # In a container, nobody may be there to bury the dead.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except ProcessLookupError:
        return True
    except FileNotFoundError:  # It was buried meanwhile, or this system tells of no process.
        return Path("/proc/self/stat").exists()
    except OSError:
        return False


def _sync_folder(folder: Path) -> None:
    """Make durable what the files of a folder are called."""
    if os.name == "nt":  # pragma: no cover - folders cannot be synced there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
