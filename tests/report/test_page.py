from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from sparq_sim import report
from sparq_sim.report.data import ReportData
from sparq_sim.report.gather import gather
from sparq_sim.report.html.page import render
from sparq_sim.study.executors import InProcess
from sparq_sim.study.progress import Progress
from sparq_sim.study.results import Results
from sparq_sim.study.store import StoreError
from sparq_sim.study.study import Study
from tests.bookkeeping import run_metered
from tests.report.conftest import HOSTILE, only, played, poisoned, scenario
from tests.study.plays import flip, truncate


class Parsed(HTMLParser):
    """The elements of a page in order, their attributes, and its text and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.declarations: list[str] = []
        self._within = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self._within = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.elements.append((f"/{tag}", ()))
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within == "script":
            self.scripts[-1] += data
        elif self._within != "style":
            self.text += data

    def handle_comment(self, data: str) -> None:
        self.declarations.append(data)

    def unknown_decl(self, data: str) -> None:
        self.declarations.append(data)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the script of charts out where pages are not opened: it is large."""
    monkeypatch.setattr("sparq_sim.report.html.page.read_plotly", lambda: "")


# What a page tells


def test_a_page_tells_title_winner_results_and_provenance(study: Results, tmp_path: Path) -> None:
    path = report.write(study, tmp_path / "report.html", replays=False)
    text = " ".join(Parsed(path.read_text()).text.split())
    assert "A hill and a sage" in text
    assert "16 of 16 plays finished" in text
    assert "the lowest average regret" in text
    for words in ("uniform, expected", "one round late", "OpenBLAS".lower(), "numpy", "CPU"):
        assert words in text
    assert f"sparq-sim report {study.folder}" in text
    assert "sparq-sim reproduce" in text


def test_an_empty_study_gives_a_page_that_says_so(tmp_path: Path) -> None:
    study = Study(scenario(), tmp_path / "never")
    text = Parsed(report.write(study.results, tmp_path / "report.html").read_text()).text
    assert "0 of 16 plays finished" in text
    assert "no finished play yet" in text
    assert len(text) < 3000


def test_a_half_finished_study_gives_a_page_that_says_so(tmp_path: Path, quick: None) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Study(scenario(), tmp_path).run(InProcess(), watch=interrupt)
    for study in (Study(scenario(), tmp_path).results, Results.open(tmp_path)):
        assert "not finished: 3 of 16 plays are" in Parsed(render(gather(study))).text


def test_one_play_is_counted_in_the_singular(tmp_path: Path, quick: None) -> None:
    one = scenario(sweep={}, replications=1, optimizers={"careless": {"kind": "uniform"}})
    study = Study(one, tmp_path)
    study.run(InProcess())
    assert "1 of 1 play finished" in Parsed(render(gather(study.results))).text
    more = Study(scenario(sweep={}, replications=1), tmp_path)
    assert "1 of 2 plays is. What follows" in Parsed(render(gather(more.results))).text


def test_spoilt_plays_are_named_and_left_out(tmp_path: Path, quick: None) -> None:
    played(tmp_path, sweep={}, replications=3)
    flipped, truncated, *_ = sorted((tmp_path / "rounds").iterdir())
    flip(flipped)
    truncate(truncated)
    told = gather(Study(scenario(sweep={}, replications=3), tmp_path).results, replays=False)
    assert (told.finished, told.planned) == (4, 6)
    text = Parsed(render(told)).text
    assert flipped.name in text
    assert truncated.name in text


def test_where_replies_are_not_kept_the_page_says_what_is_missing(
    tmp_path: Path, quick: None
) -> None:
    told = gather(played(tmp_path, record="rounds", sweep={}, replications=1), replays=False)
    assert not {"asked", "staleness"} & {each.name for each in told.charts.series}
    assert 'record = "full"' in Parsed(render(told)).text


def test_a_file_that_cannot_be_written_is_one_sentence(study: Results, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot write"):
        report.write(study, tmp_path / "no" / "such" / "folder.html", replays=False)


# Alone in the world


def test_a_page_names_no_remote_source(told: ReportData) -> None:
    parsed = Parsed(render(told))
    (policy,) = [v for tag, name, v in parsed.attributes if (tag, name) == ("meta", "content")][:1]
    assert policy.startswith("default-src 'none';")
    assert not re.search(r"https?:|\*|unsafe-eval|script-src[^;]*unsafe-inline", policy)
    assert not [tag for tag, name, _ in parsed.attributes if name in ("src", "srcset", "action")]
    links = [value for _, name, value in parsed.attributes if name == "href"]
    assert links
    assert all(link.startswith("#") for link in links)


def test_the_policy_allows_just_the_scripts_of_the_page(told: ReportData) -> None:
    text = render(told)
    scripts = re.findall(
        r'<script(?: type="text/plain" id="plotly")?>(.*?)</script>', text, re.DOTALL
    )
    hashes = [base64.b64encode(sha256(s.encode()).digest()).decode() for s in scripts]
    assert (
        re.findall(r"sha256-([\w+/=]+)", text.split("</title>")[0].replace("&#39;", "'")) == hashes
    )
    assert sum("* plotly.js (" in script for script in scripts) == 1


# Hostile text


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    folder = tmp_path_factory.mktemp("small")
    cost, noise = "experts.sage.channel.cost", "feedback.noise"
    sweep = {"way": "zip", noise: [0.1, 0.2], cost: [0.1, 0.2]}
    study = played(folder, rounds=4, replications=1, sweep=sweep)
    told = gather(study, replays=False)
    notes = {"notes": ["set aside", "left out"], "finished": 3}
    return ReportData(**{**{n: getattr(told, n) for n in told.__dataclass_fields__}, **notes})


def test_hostile_text_adds_no_element(small: ReportData, quick: None) -> None:
    assert len(HOSTILE) >= 200
    harmless = Parsed(render(poisoned(small, only("harmless"))))
    for text in HOSTILE:
        parsed = Parsed(render(poisoned(small, only(text))))
        assert parsed.elements == harmless.elements, text
        assert parsed.declarations == harmless.declarations, text
        theme, data, *code = parsed.scripts
        assert [theme, *code] == [harmless.scripts[0], *harmless.scripts[2:]], text
        assert json.loads(data).keys() == json.loads(harmless.scripts[1]).keys()


def test_hostile_text_is_shown_as_it_is(small: ReportData, quick: None) -> None:
    text = "</script><img src=x onerror=alert(1)>{{ 7 * 7 }}&amp;"
    shown = Parsed(render(poisoned(small, only(text)))).text
    assert f"{text}A hill and a sage" in shown
    assert f"{text}curious" in shown


def test_each_text_of_a_page_was_poisoned(small: ReportData, quick: None) -> None:
    marks: Iterator[str] = (f"mark{i}-" for i in count())
    poison = poisoned(small, marks)
    text = render(poison)
    for part in (
        poison.title,
        poison.folder,
        poison.finding.sentence,
        *poison.finding.more,
        *poison.notes,
        *poison.commands,
    ):
        assert part in text
    for name in poison.charts.optimizers:
        assert text.count(name) > 5


def test_hostile_names_go_through_a_study(tmp_path: Path, quick: None) -> None:
    name = "</script><script>window.__hacked=1</script>"
    sage: dict[str, Any] = {"kind": "truth", "channel": {"noise": 0.1}}
    hostile = {
        "title": f"{name}\ud800\u202e",
        "optimizers": {name: {"kind": "uniform"}, "'\"><b>": {"kind": "uniform"}},
        "experts": {"<img src=x onerror=alert(1) ": sage},
    }
    fields: dict[str, Any] = {"sweep": {}, "replications": 1, "rounds": 20}
    plain = report.write(played(tmp_path / "a", **fields), tmp_path / "a.html", replays=False)
    path = report.write(
        played(tmp_path / "b", **fields, **hostile), tmp_path / "b.html", replays=False
    )
    tags = [{tag for tag, _ in Parsed(p.read_text()).elements} for p in (plain, path)]
    assert tags[1] <= tags[0]


def test_meters_have_a_table_and_charts(tmp_path: Path) -> None:
    text = render(gather(run_metered(tmp_path), replays=False))
    page = Parsed(text)
    assert "Meters, in the last round" in page.text
    assert "battery energy used" in page.text
    assert "Battery left" in page.text
    assert ("table", "id", "meters") in page.attributes


def test_a_page_without_meters_has_no_table_of_them() -> None:
    assert "Meters, in the last" not in render(ReportData(title="t"))


@pytest.mark.parametrize("best_seen", [False, True])
def test_a_page_without_a_known_best_shows_no_number_that_is_none(
    steered: Results, best_seen: bool
) -> None:
    html = render(gather(steered, replays=False, best_seen=best_seen))
    text = re.sub(r"<(script|style).*?</\1>", "", html, flags=re.DOTALL)
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)
    assert "exponent</th>" not in text
    assert "mean reward</th>" in text
    assert ("against\nthe best seen</th>" in text) == best_seen
    assert "The best reward is not known here" in text
    assert "unobserved</th>" in text
