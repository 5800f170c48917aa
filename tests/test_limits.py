"""What is no file of data is refused without being opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sparq_sim.limits import MOST_DATA_BYTES, check_data_file


def refusal(file: Path) -> str:
    with pytest.raises(OSError, match=r".") as refused:
        check_data_file(file)
    return str(refused.value.strerror)


def test_a_pipe_to_which_nobody_writes_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is a device or a pipe" in refusal(tmp_path / "pipe")


def test_a_link_to_a_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "zeros.csv").symlink_to("/dev/zero")
    assert "is a device or a pipe" in refusal(tmp_path / "zeros.csv")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "is a folder" in refusal(tmp_path)


def test_a_file_that_memory_could_not_hold_is_refused_with_its_size(tmp_path: Path) -> None:
    file = tmp_path / "large.csv"
    with file.open("wb") as large:
        large.truncate(MOST_DATA_BYTES)
    check_data_file(file)
    with file.open("wb") as large:
        large.truncate(MOST_DATA_BYTES + 1)
    assert "has 1,000,000,001 bytes, and at most 1,000,000,000 are read" in refusal(file)
