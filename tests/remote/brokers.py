"""Real brokers for tests: mosquitto where it is installed, and amqtt, each a process of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Self

import pytest

from tests.conftest import PATIENCE

Kind = Literal["mosquitto", "amqtt"]

_AMQTT = """\
listeners:
  default:
    type: tcp
    bind: 127.0.0.1:{port}
plugins:
  amqtt.plugins.authentication.AnonymousAuthPlugin:
    allow_anonymous: true
"""
_MOSQUITTO = """\
user root
set_tcp_nodelay true
listener {port} 127.0.0.1
allow_anonymous {anonymous}
"""


def find_mosquitto() -> str | None:
    """Return the program of mosquitto, which Debian puts where only root looks, or None."""
    if (named := os.environ.get("SPARQ_MOSQUITTO")) is not None:
        return named if Path(named).is_file() else None
    return shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")


class Broker:
    """A broker on loopback, which can be stopped and started again on its port."""

    def __init__(self, kind: Kind, folder: Path, options: str = "") -> None:
        self.kind = kind
        self.version: Literal["5", "3.1.1"] = "5" if kind == "mosquitto" else "3.1.1"
        self.host = "127.0.0.1"
        self.port = 0
        self._options = options
        self._folder = folder
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        # Whoever else takes the free port first makes the broker end at once: then another.
        for _ in range(20):
            port = self.port or _find_port()
            self._child = self._launch(port)
            if self._listens(port):
                self.port = port
                return self
        raise AssertionError(f"{self.kind} does not start: {self._log.read_text()[-2000:]}")

    @property
    def _log(self) -> Path:
        return self._folder / "broker.log"

    def _launch(self, port: int) -> subprocess.Popen[bytes]:
        file = self._folder / "broker.conf"
        if self.kind == "mosquitto":
            program = find_mosquitto()
            assert program is not None
            anonymous = "false" if "password_file" in self._options else "true"
            text = _MOSQUITTO.format(port=port, anonymous=anonymous) + self._options
            command = [program, "-c", str(file)]
        else:
            text = _AMQTT.format(port=port)
            command = [sys.executable, "-m", "amqtt.scripts.broker_script", "-c", str(file)]
        file.write_text(text)
        with self._log.open("wb") as log:
            return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def _listens(self, port: int) -> bool:
        assert self._child is not None
        deadline = time.monotonic() + PATIENCE / 20
        while self._child.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection((self.host, port)).close()
            except OSError:
                time.sleep(0.02)
            else:
                # A child that could not have the port ends; another program would answer on it.
                time.sleep(0.02)
                return self._child.poll() is None
        self.stop()
        return False

    def stop(self) -> None:
        """Kill it, as a crash would."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None


def _find_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def run_broker(kind: Kind, folder: Path, options: str = "") -> Iterator[Broker]:
    """Run a broker, or skip the test where it is not installed."""
    if kind == "mosquitto" and find_mosquitto() is None:
        missing = os.environ.get("SPARQ_MOSQUITTO", "mosquitto")
        pytest.skip(f"{missing} is not installed; `make broker` installs Debian's")
    broker = Broker(kind, folder, options)
    try:
        yield broker.start()
    finally:
        broker.stop()


@pytest.fixture(params=["mosquitto", "amqtt"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """Run each kind of broker; tests that take it run on both."""
    with run_broker(request.param, tmp_path) as running:
        yield running


@pytest.fixture
def any_broker(tmp_path: Path) -> Iterator[Broker]:
    """Run one broker: mosquitto where it is installed, else amqtt."""
    with run_broker("mosquitto" if find_mosquitto() else "amqtt", tmp_path) as running:
        yield running
