"""Attacks on the browser of a reader, by texts in a report and in a page that is watched.

tests/report/test_browser.py opens such pages in a real browser, where there is one.
"""

from __future__ import annotations

import base64
import json
import re
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from http.client import HTTPConnection
from pathlib import Path
from socket import create_connection

import pytest

from sparq_sim.live.watch import server as watch_server
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.executors import InProcess
from sparq_sim.study.study import Study
from tests.live.watch.pages import ask, watching
from tests.report.conftest import HOSTILE

_NEVER = {"iframe", "object", "embed", "base", "form", "frame", "applet", "link"}


class Inspector(HTMLParser):
    """Collects what a page would run, load or send."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.scripts: list[str] = []
        self.policy = ""
        self._script: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in _NEVER and not (tag == "link" and given.get("href") == "data:,"):
            self.wrong.append(f"<{tag}>")
        if tag == "meta" and given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given.get("content") or ""
        elif tag == "meta" and "http-equiv" in given:
            self.wrong.append(f"<meta {given}>")
        for name, value in attrs:
            if name.startswith("on") or "javascript:" in (value or "").lower().replace(" ", ""):
                self.wrong.append(f"{tag} {name}={value!r:.80}")
            if name == "src" and not (value or "").startswith("data:"):
                self.wrong.append(f"{tag} src={value!r:.80}")
        if tag == "script" and given.get("type") != "application/json":
            self._script = []

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self._script.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script" and self._script is not None:
            self.scripts.append("".join(self._script))
            self._script = None


def inspect(page: str) -> Inspector:
    inspector = Inspector()
    inspector.feed(page)
    inspector.close()
    return inspector


def check(page: str) -> None:
    """Check that a page has only its own scripts, and loads and sends nothing."""
    found = inspect(page)
    assert found.wrong == []
    assert "default-src 'none'" in found.policy
    assert "unsafe-inline" not in found.policy.partition("script-src")[2].partition(";")[0]
    allowed = set(re.findall(r"'sha256-([^']+)'", found.policy))
    for script in found.scripts:
        # An empty one is in the page that is asked for again, which runs none.
        if script:
            assert base64.b64encode(sha256(script.encode()).digest()).decode() in allowed


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose texts are attacks, as far as a scenario takes them."""
    folder = tmp_path_factory.mktemp("evil") / "study"
    text = "".join(each.encode("utf-8", "replace").decode() for each in HOSTILE)
    scenario = Scenario(
        title=text,
        rounds=6,
        levels=False,
        environment={"kind": "synthetic"},
        experts={"<script src=x onerror=alert(2) ": {"kind": "truth"}},
        optimizers={"<img src=x onerror=alert(1)>": {"kind": "sparq-gp-ucb"}},
        record="full",
    )
    Study(scenario, folder).run(executor=InProcess())
    return folder


def test_a_report_runs_and_loads_nothing_that_a_study_names(study: Path, tmp_path: Path) -> None:
    from sparq_sim.report import write
    from sparq_sim.study.results import Results

    page = write(Results.open(study), tmp_path / "report.html").read_text(encoding="utf-8")
    assert "alert(1)" in unescape(page)
    check(page)


def test_a_watched_page_runs_and_loads_nothing_that_a_study_names(study: Path) -> None:
    with watching(study) as server:
        text = ""
        while "alert(1)" not in unescape(text):
            text = ask(server, "/")[1]
    check(text)


@pytest.mark.parametrize("path", ["/../../etc/passwd", "//etc/passwd", "/%2e%2e/scenario.json"])
def test_a_watched_page_serves_no_files(study: Path, path: str) -> None:
    with watching(study) as server:
        response, text = ask(server, path)
    assert response.status == 404
    assert "root:" not in text


def test_clients_that_say_nothing_do_not_keep_a_watched_page_from_others(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_server, "MOST_CONNECTIONS", 4)
    with watching(study) as server:
        silent = [create_connection(("127.0.0.1", server.server_port)) for _ in range(12)]
        assert ask(server)[0].status == 200
        for each in silent:
            each.close()


def test_a_watched_page_reads_no_body(study: Path) -> None:
    with watching(study) as server:
        connection = HTTPConnection("127.0.0.1", server.server_port)
        connection.putrequest("POST", f"/?token={server.token}")
        connection.putheader("Content-Length", str(10**12))
        connection.endheaders()
        assert connection.getresponse().status == 405
        connection.close()


def test_data_in_a_page_cannot_end_its_element() -> None:
    from sparq_sim.report.html.embed import embed

    for text in HOSTILE:
        made = str(embed({"text": text}))
        assert not set(made) & set("<>&")
        assert json.loads(made) == {"text": text}
