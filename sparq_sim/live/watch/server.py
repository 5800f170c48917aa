"""The server of a watched page: on loopback only, for those who know its token."""

from __future__ import annotations

import sys
from contextlib import suppress
from hmac import compare_digest
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from socketserver import TCPServer
from threading import Lock
from time import time
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sparq_sim.errors import SparqError
from sparq_sim.live.watch.screen import Screen
from sparq_sim.remote.secrets import make_token

__all__ = ["MOST_CONNECTIONS", "WatchServer"]

_LOOPBACK = "127.0.0.1"
MOST_CONNECTIONS = 64
"""How many connections are served at once; for another one, the oldest is closed."""
_HOSTS = (_LOOPBACK, "localhost", "[::1]")
"""What a browser on this machine calls it; any other name may be one that an attacker's name
server points here."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_NOTHING_ELSE = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_NOW = "Sparq-Now"
"""The header with the time of this machine: pages tell by it how old their news are."""


class WatchServer(ThreadingHTTPServer):
    """Serves a screen on loopback; `address` is what to open in a browser."""

    daemon_threads = True

    def __init__(self, screen: Screen, *, port: int = 0, token: str | None = None) -> None:
        """Bind to a port; `serve_forever` answers.

        Args:
            screen: What is shown.
            port: That of the server; 0 for one that is free.
            token: What askers must know; by default, a random one.

        Raises:
            SparqError: The port cannot be had.
        """
        self.screen = screen
        self.token = token or make_token()
        self._open: dict[socket, None] = {}
        self._lock = Lock()
        try:
            super().__init__((_LOOPBACK, port), _Handler)
        except OSError as error:
            raise SparqError(
                f"--port {port}: {error.strerror or error}; choose another port, or leave it out "
                "for one that is free"
            ) from error

    @property
    def address(self) -> str:
        """The address of the page, with the token."""
        return f"http://{_LOOPBACK}:{self.server_port}/?token={self.token}"

    def server_bind(self) -> None:
        # That of HTTPServer asks a name server for the name of this machine, which may take long.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = _LOOPBACK, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection; where there are too many, the oldest has to go."""
        with self._lock:
            self._open[request] = None
            late = [*self._open][:-MOST_CONNECTIONS]
            for each in late:
                del self._open[each]
                with suppress(OSError):  # It is just being closed.
                    each.shutdown(SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report what went wrong, but for browsers that have gone away."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, traceback)
        self.screen.close()


class _Handler(BaseHTTPRequestHandler):
    """Answers one request: the page, what is new of it, or why not."""

    server: WatchServer
    server_version, sys_version = "sparq-sim", ""
    timeout = 30.0  # Seconds that a request may take to arrive.

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if not self._is_from_here():
            self._refuse(
                HTTPStatus.FORBIDDEN,
                "This page is for browsers on this machine: open the address that sparq-sim watch "
                "has printed.",
            )
        elif asked.path == "/favicon.ico":
            self._send(HTTPStatus.NO_CONTENT, b"", policy=_NOTHING_ELSE)
        elif not self._knows_token(asked.query):
            self._refuse(
                HTTPStatus.FORBIDDEN,
                "The token is missing or wrong. Open the whole address that sparq-sim watch has "
                "printed; each start makes another one.",
            )
        elif asked.path == "/":
            body, policy = self.server.screen.page()
            self._send(HTTPStatus.OK, body, policy=f"{policy}; frame-ancestors 'none'")
        elif asked.path == "/now":
            self._send_news()
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here but the page itself, at /.")

    def _send_news(self) -> None:
        shown = self.server.screen.now()
        headers = {"ETag": shown.tag, _NOW: f"{time():.3f}"}
        if self.headers.get("If-None-Match") == shown.tag:
            self._send(HTTPStatus.NOT_MODIFIED, b"", policy=_NOTHING_ELSE, headers=headers)
        else:
            self._send(HTTPStatus.OK, shown.body, policy=_NOTHING_ELSE, headers=headers)

    def _is_from_here(self) -> bool:
        """Return whether the request names this machine as browsers on it do (DNS rebinding)."""
        host = self.headers.get("Host", "")
        name = host[: host.rindex(":")] if ":" in host.rpartition("]")[2] else host
        return name.lower() in _HOSTS

    def _knows_token(self, query: str) -> bool:
        given = parse_qs(query).get("token", [""])[-1]
        return compare_digest(given.encode("utf-8", "replace"), self.server.token.encode())

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no request that can be understood, or not to GET."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            allowed = {"Allow": "GET"}
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "This page is only read: by GET.", allowed)
        else:
            self._refuse(HTTPStatus(code), explain or message or HTTPStatus(code).description)

    def _refuse(self, status: HTTPStatus, text: str, headers: dict[str, str] | None = None) -> None:
        body = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>sparq-sim watch</title>'
            "<style>body{font:17px/1.6 system-ui,sans-serif;max-width:40rem;margin:4rem auto;"
            "padding:0 1.5rem}</style>"
            f"<main><h1>{status.value} {escape(status.phrase)}</h1><p>{escape(text)}</p></main>"
        )
        self._send(status, body.encode(), policy=_NOTHING_ELSE, headers=headers)

    def _send(
        self, status: HTTPStatus, body: bytes, *, policy: str, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", policy)
        if status is not HTTPStatus.NOT_MODIFIED and status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002, the base names it so
        """Say nothing: a line a second would hide what matters."""
