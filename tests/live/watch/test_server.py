"""Who is served, and what goes with each answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparq_sim.errors import SparqError
from sparq_sim.live.watch.open import open_watched
from sparq_sim.live.watch.screen import Screen
from sparq_sim.live.watch.server import WatchServer
from tests.live.watch.pages import ask, watching


@pytest.mark.parametrize("path", ["/", "/now", "/elsewhere"])
@pytest.mark.parametrize("token", ["", "wrong", "wrong%C3%A9", "%FF"])
def test_without_its_token_nothing_is_served(tmp_path: Path, path: str, token: str) -> None:
    with watching(tmp_path) as server:
        response, text = ask(server, path, token=token)
    assert response.status == 403
    assert "The token is missing or wrong" in text
    assert "progress" not in text


def test_each_server_has_a_token_of_its_own(tmp_path: Path) -> None:
    with watching(tmp_path) as one, watching(tmp_path) as other:
        assert one.token != other.token
        assert len(one.token) >= 24
        assert one.address == f"http://127.0.0.1:{one.server_port}/?token={one.token}"
        assert ask(one, token=other.token)[0].status == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_another_name_of_this_machine_is_refused(tmp_path: Path, host: str) -> None:
    with watching(tmp_path) as server:
        response, text = ask(server, "/", headers={"Host": host})
    assert response.status == 403
    assert "for browsers on this machine" in text


@pytest.mark.parametrize("host", ["127.0.0.1:9000", "localhost:1", "LOCALHOST", "[::1]:80"])
def test_the_names_of_loopback_are_served_at_any_port(tmp_path: Path, host: str) -> None:
    with watching(tmp_path) as server:
        assert ask(server, headers={"Host": host})[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "BREW"])
def test_only_reading_is_allowed(tmp_path: Path, method: str) -> None:
    with watching(tmp_path) as server:
        response, _ = ask(server, method=method)
    assert response.status == 405
    assert response.headers["Allow"] == "GET"


def test_no_answer_may_be_stored_framed_or_told_to_others(tmp_path: Path) -> None:
    with watching(tmp_path) as server:
        answers = [ask(server, path) for path in ("/", "/now", "/other")]
        answers.append(ask(server, token="wrong"))
    for response, _ in answers:
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        policy = response.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe-eval" not in policy
        assert "script-src 'unsafe-inline'" not in policy


def test_the_page_may_ask_its_own_server_and_nobody_else(tmp_path: Path) -> None:
    with watching(tmp_path) as server:
        response, text = ask(server, "/")
    assert "connect-src 'self'" in response.headers["Content-Security-Policy"]
    assert "connect-src &#39;self&#39;" in text
    assert "Plotly" in text
    assert server.token not in text


def test_what_has_not_changed_is_not_sent_again(tmp_path: Path) -> None:
    with watching(tmp_path) as server:
        first, text = ask(server)
        same, nothing = ask(server, headers={"If-None-Match": first.headers["ETag"]})
        other, again = ask(server, headers={"If-None-Match": '"another"'})
    assert (same.status, nothing) == (304, "")
    assert same.headers["ETag"] == first.headers["ETag"]
    assert float(same.headers["Sparq-Now"]) > 1e9
    assert (other.status, again) == (200, text)


def test_a_browser_may_look_for_an_icon(tmp_path: Path) -> None:
    with watching(tmp_path) as server:
        response, _ = ask(server, "/favicon.ico", token="none")
    assert response.status == 204


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with (
        watching(tmp_path) as server,
        pytest.raises(SparqError, match=rf"--port {server.server_port}: .*another port"),
    ):
        WatchServer(Screen(open_watched(tmp_path)), port=server.server_port)


def test_what_is_not_there_cannot_be_watched(tmp_path: Path) -> None:
    with pytest.raises(SparqError, match=r"there is no study or journal .*sparq-sim run"):
        open_watched(tmp_path / "nothing")
