"""Real servers of watched pages, and what is asked of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Thread
from typing import Any

from sparq_sim.live.watch.open import open_watched
from sparq_sim.live.watch.screen import Screen
from sparq_sim.live.watch.server import WatchServer
from sparq_sim.scenario.model import Scenario


@contextmanager
def watching(path: Path, *, every: float = 0.1) -> Iterator[WatchServer]:
    """Serve the page of a study or a journal, on a port that is free."""
    with WatchServer(Screen(open_watched(path), every=every)) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(
    server: WatchServer,
    path: str = "/now",
    *,
    token: str | None = None,
    method: str = "GET",
    headers: dict[str, str] | None = None,
) -> tuple[HTTPResponse, str]:
    """Ask a server over a real socket, with its token unless another is given."""
    connection = HTTPConnection("127.0.0.1", server.server_port)
    try:
        chosen = server.token if token is None else token
        connection.request(method, f"{path}?token={chosen}", headers=headers or {})
        response = connection.getresponse()
        return response, response.read().decode()
    finally:
        connection.close()


def small(**fields: Any) -> Scenario:
    """Return a scenario that is played in no time."""
    chosen: dict[str, Any] = {
        "title": "A small hill",
        "rounds": 5,
        "levels": False,
        "environment": {"kind": "synthetic"},
        "optimizers": {"calm": {"kind": "uniform"}},
    }
    return Scenario(**(chosen | fields))
