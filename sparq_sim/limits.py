"""Limits: how much a scenario and the files that it names may ask for, each with its reason.

They are far above what studies need, and below what a machine cannot do. A scenario that needs more
is refused with its number before anything is computed.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

__all__ = [
    "MOST_BYTES",
    "MOST_CANDIDATES",
    "MOST_CHECKED_MODELS",
    "MOST_DATA_BYTES",
    "MOST_DESIGN",
    "MOST_LEVELS",
    "MOST_PLAYERS",
    "MOST_PLAYS",
    "MOST_ROUNDS",
    "MOST_SETTINGS",
    "MOST_TEXT",
    "check_data_file",
]

MOST_BYTES: Final = 500_000
"""Of a scenario file. Large ones that people write have some 50 kB; data belong in other files.
The worst of this size take `check` about a second."""
MOST_LEVELS: Final = 50
"""Of tables and lists within each other. Python's own limit ends in an error without a place."""
MOST_TEXT: Final = 10_000
"""Characters of a text or a name in a scenario. Messages, tables and reports show them."""
MOST_SETTINGS: Final = 10_000
"""That a sweep makes. Each is checked and named; a report with more cannot be read."""
MOST_PLAYS: Final = 1_000_000
"""Of a study, unless more are asked for by `--most-plays`. Each is a file, and takes some 10 kB."""
MOST_PLAYERS: Final = 1_000
"""Optimizers, and experts, of a scenario. Each is checked and named in every setting."""
MOST_CHECKED_MODELS: Final = 5_000
"""Optimizers and experts, counted in each setting, that are validated to check a sweep. This takes
about half a second; of longer sweeps, settings that are spread evenly are checked, and the others
when the study is made."""
MOST_DESIGN: Final = 10_000
"""Points that are observed before the first round. A prior fitted to them inverts a matrix with as
many rows: this many take 800 MB."""
MOST_CANDIDATES: Final = 1_000_000
"""Points among which an optimizer chooses. What it believes of them is computed in every round."""
MOST_ROUNDS: Final = 10_000_000
"""Of a play. A trace has some 20 columns of 8 bytes a round: this many take 1.6 GB."""
MOST_DATA_BYTES: Final = 1_000_000_000
"""Of a file that a play reads. Its cells take some ten times as much memory."""


def check_data_file(file: Path) -> None:
    """Refuse what is no file of data: devices and pipes, which may block or never end, and folders.

    Nothing is opened, because that alone may block.

    Args:
        file: Where it is; a symbolic link is followed.

    Raises:
        OSError: It is not there, is no regular file, or is larger than 1 GB; `strerror` says which,
            with a remedy.
    """
    found = file.stat()
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder; name a file in it", os.fspath(file))
    if not stat.S_ISREG(found.st_mode):
        reason = "is a device or a pipe; name a file, in which data are kept"
        raise OSError(errno.EINVAL, reason, os.fspath(file))
    if found.st_size > MOST_DATA_BYTES:
        reason = (
            f"has {found.st_size:,} bytes, and at most {MOST_DATA_BYTES:,} are read; keep only the "
            "rows and columns that are needed"
        )
        raise OSError(errno.EFBIG, reason, os.fspath(file))
