"""Errors of a store: a folder that cannot be used, and a file that is not fit to be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import errorcode
from pathlib import Path

import pyarrow as pa

from sparq_sim.errors import SparqError

__all__ = [
    "SET_RIGHT",
    "StoreError",
    "UnfitError",
    "explain_content_errors",
    "explain_disk_errors",
    "explain_no_play",
]


SET_RIGHT = "run the scenario into this folder again, which sets it aside and plays what is missing"
"""What to do about a file that cannot be read."""
_OF_CONTENT = (ValueError, LookupError, TypeError, AttributeError)
"""What content that is not as it was written raises where it is taken apart."""


class StoreError(SparqError):
    """A study folder cannot be read or written."""


class UnfitError(Exception):
    """A file is foreign, truncated or corrupted; the message says how."""


def explain_no_play(place: object, notes: Sequence[str] = ()) -> str:
    """Return the message for a place without a finished play, with the remedy.

    Args:
        place: The folder, or another store of plays.
        notes: What is known of files that were left out.
    """
    if isinstance(place, Path) and not place.is_dir():
        return (
            f"{place}: no such folder; check the path, or run a scenario into it: "
            f"sparq-sim run SCENARIO --out {place}"
        )
    told = "".join(f"; {note}" for note in notes)
    return f"there is no finished play in {place}{told or '; run the scenario there first'}"


@contextmanager
def explain_disk_errors(what: str, path: Path) -> Iterator[None]:
    """Turn trouble with the disk into one sentence.

    Args:
        what: The verb: what is done to the file.
        path: The file or folder.

    Yields:
        Nothing.

    Raises:
        StoreError: The system refused.
    """
    try:
        yield
    except OSError as error:
        name = errorcode.get(error.errno or 0, type(error).__name__)
        raise StoreError(
            f"cannot {what} {path}: {name}, {error.strerror or error}; "
            "free space, fix the permissions or choose another folder, and run again"
        ) from error


@contextmanager
def explain_content_errors(complaint: str) -> Iterator[None]:
    """Turn trouble with the content of a file into an `UnfitError`.

    Args:
        complaint: What to say of the file.

    Yields:
        Nothing.

    Raises:
        UnfitError: The content is not as it was written.
        StoreError: The system refused to read the file.
    """
    try:
        yield
    except (pa.ArrowException, OSError, *_OF_CONTENT) as error:
        if isinstance(error, FileNotFoundError):
            raise UnfitError("it is gone") from error
        # Arrow's own complaints about content have no number; those of the system have one.
        if isinstance(error, OSError) and error.errno is not None:
            name = errorcode.get(error.errno, "")
            raise StoreError(
                f"cannot read {error.filename or 'a file'}: {name}, {error}"
            ) from error
        reason = next(iter(str(error).splitlines()), repr(error))
        raise UnfitError(f"{complaint} ({reason})") from error
