from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparq_sim.errors import JournalError
from sparq_sim.journal.durable_file import DurableFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "play.jsonl"


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Have the operating system refuse bytes of a file beyond its *size*, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def reopen(path: Path) -> DurableFile:
    size = path.stat().st_size
    return DurableFile.reopen(path, length=size, whole=size)


def test_each_line_is_in_the_file_at_once(path: Path) -> None:
    file = DurableFile.create(path, b"first\n")
    file.append(b"second\n")
    assert path.read_bytes() == b"first\nsecond\n"
    file.close()


def test_a_file_that_exists_is_not_touched(path: Path) -> None:
    path.write_bytes(b"precious\n")
    with pytest.raises(JournalError, match=r"play\.jsonl exists already; choose another file"):
        DurableFile.create(path, b"first\n")
    assert path.read_bytes() == b"precious\n"


def test_a_second_writer_is_refused_until_the_first_has_closed(path: Path) -> None:
    first = DurableFile.create(path, b"first\n")
    with pytest.raises(JournalError, match="is being written by another play; wait for its end"):
        reopen(path)
    first.append(b"second\n")
    first.close()
    second = reopen(path)
    second.append(b"third\n")
    second.close()
    assert path.read_bytes() == b"first\nsecond\nthird\n"


def test_the_lock_ends_with_the_process_even_if_it_is_killed(path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from sparq_sim.journal.durable_file import DurableFile\n"
        "file = DurableFile.create(Path(sys.argv[1]), b'first\\n'); file.append(b'second\\n')\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        with pytest.raises(JournalError, match="is being written by another play"):
            reopen(path)
        other.send_signal(signal.SIGKILL)
    reopen(path).close()
    assert path.read_bytes() == b"first\nsecond\n"


def test_a_line_for_which_there_is_no_room_is_taken_back_and_can_be_written_later(
    path: Path,
) -> None:
    file = DurableFile.create(path, b"first\n")
    with at_most(10):
        with pytest.raises(JournalError) as caught:
            file.append(b"second\n")
        assert path.read_bytes() == b"first\n"
    assert str(caught.value) == (
        f"{path} cannot be written: File too large; all lines before are whole; make room, and "
        "resume the play"
    )
    file.append(b"second\n")
    file.close()
    assert path.read_bytes() == b"first\nsecond\n"


def test_a_file_that_cannot_be_begun_leaves_nothing_behind(path: Path) -> None:
    with at_most(3), pytest.raises(JournalError, match="File too large"):
        DurableFile.create(path, b"first\n")
    assert not path.exists()


def test_where_half_a_line_cannot_be_taken_back_nothing_follows_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int, length: int) -> None:
        raise OSError("the disk is gone")

    file = DurableFile.create(path, b"first\n")
    monkeypatch.setattr(os, "ftruncate", fail)
    with at_most(10), pytest.raises(JournalError, match="File too large"):
        file.append(b"second\n")
    assert path.read_bytes() == b"first\nseco"
    with pytest.raises(JournalError, match="is closed; nothing can be written to it"):
        file.append(b"third\n")


@pytest.fixture
def rescue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("sparq_sim.journal.durable_file.gettempdir", lambda: str(tmp_path))
    return tmp_path


def test_what_a_vanished_folder_held_is_kept_elsewhere(rescue: Path) -> None:
    folder = rescue / "plays"
    folder.mkdir()
    file = DurableFile.create(folder / "play.jsonl", b"first\n")
    file.append(b"second\n")
    shutil.rmtree(folder)
    file.append(b"third\n")
    with pytest.raises(JournalError, match="was deleted while it was being written; its content"):
        file.sync()
    (kept,) = rescue.iterdir()
    assert kept.read_bytes() == b"first\nsecond\nthird\n"
    with pytest.raises(JournalError, match="was deleted"):
        file.close()


def test_where_a_vanished_file_cannot_be_kept_the_reason_is_told(rescue: Path) -> None:
    file = DurableFile.create(rescue / "play.jsonl", b"first\n")
    (rescue / "play.jsonl").unlink()
    (rescue / f"play-{os.getpid()}.jsonl").write_bytes(b"another")
    file.append(b"second\n")
    with pytest.raises(JournalError, match="where its content should have been kept: File exists"):
        file.close()


def test_a_folder_that_is_renamed_does_no_harm(tmp_path: Path) -> None:
    folder = tmp_path / "plays"
    folder.mkdir()
    file = DurableFile.create(folder / "play.jsonl", b"first\n")
    folder.rename(tmp_path / "moved")
    file.append(b"second\n")
    file.close()
    assert (tmp_path / "moved/play.jsonl").read_bytes() == b"first\nsecond\n"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing/play.jsonl", "No such file or directory; there must be a folder"),
        ("file/play.jsonl", "Not a directory; "),
    ],
)
def test_where_no_file_can_be_the_remedy_is_told(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match=f"cannot be written: {reason}"):
        DurableFile.create(tmp_path / name, b"first\n")


def test_a_folder_cannot_be_reopened(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="Is a directory; name a file, not a folder"):
        DurableFile.reopen(tmp_path, length=0, whole=0)


def test_what_has_changed_since_it_was_read_is_not_reopened(path: Path) -> None:
    path.write_bytes(b"first\nsecond\n")
    with pytest.raises(JournalError, match="has changed since it was read; read it again"):
        DurableFile.reopen(path, length=6, whole=6)
    assert path.read_bytes() == b"first\nsecond\n"
    reopen(path).close()  # It is not locked.


def test_a_closed_file_can_be_closed_again_and_takes_nothing(path: Path) -> None:
    file = DurableFile.create(path, b"first\n")
    file.close()
    file.close()
    with pytest.raises(JournalError, match="is closed"):
        file.append(b"second\n")
