"""A play on a watched page, as far as its journal has come."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparq_sim.journal.reader import read_journal
from sparq_sim.journal.writer import JournalWriter
from sparq_sim.live.watch.journal import WatchedJournal
from sparq_sim.live.watch.journal_charts import Marks, posterior_chart
from sparq_sim.live.watch.open import open_watched
from sparq_sim.live.watch.posterior import Posterior, View
from sparq_sim.live.watch.screen import Screen
from sparq_sim.simulation.beliefs import replay_beliefs
from sparq_sim.simulation.lifetime import open_landscape
from tests.conftest import wait_until
from tests.journal.samples import HEADER
from tests.live.playing import plan as steered_plan
from tests.live.playing import play as play_plan
from tests.live.watch.conftest import curious, play_live
from tests.live.watch.pages import ask, small, watching
from tests.report.waverers import Waverer


@contextmanager
def shown(path: Path) -> Iterator[Screen]:
    screen = Screen(WatchedJournal(path))
    try:
        yield screen
    finally:
        screen.close()


def text_of(screen: Screen) -> str:
    return screen.now().body.decode()


def tile(text: str, name: str) -> str:
    found = re.search(rf"<dt>{name}</dt><dd[^>]*>(.*?)(?:<small>.*?)?</dd>", text)
    assert found is not None, name
    return found[1]


def test_parts_of_a_whole_are_one_chart(tmp_path: Path) -> None:
    plan = curious(optimizers={"waverer": Waverer()})
    with shown(play_live(plan, tmp_path / "play")) as screen:
        text = text_of(screen)
    titles = re.findall(r"<h3>(.*?)</h3>", text)
    assert titles.count("What waverer believed: time scale") == 1
    assert not any("time_scale/" in title for title in titles)


def test_numbers_move_while_a_journal_grows(curious_journal: Path, tmp_path: Path) -> None:
    lines = curious_journal.read_bytes().splitlines(keepends=True)
    journal = tmp_path / "growing.jsonl"
    seen = []
    with watching(tmp_path_of(journal, lines[:1])) as server:
        for start in range(1, len(lines), 15):
            with journal.open("ab") as file:
                file.writelines(lines[start : start + 15])
            _, text = ask(server)
            found = re.search(r'<b id="rounds">(\d+)</b> of 8', text)
            assert found is not None
            seen.append((int(found[1]), float(tile(text, "Spent"))))
    assert seen == sorted(seen)
    assert len(set(seen)) > 2
    trace = read_journal(curious_journal).to_trace()
    assert seen[-1][0] == 8
    assert seen[-1][1] == pytest.approx(trace.spent)
    assert "ended: rounds" in text


def tmp_path_of(journal: Path, lines: list[bytes]) -> Path:
    journal.write_bytes(b"".join(lines))
    return journal


def test_the_page_tells_what_is_applied_asked_answered_and_happened(
    curious_journal: Path, tmp_path: Path
) -> None:
    lines = curious_journal.read_bytes().splitlines(keepends=True)
    until = max(n for n, line in enumerate(lines) if b'"type":"turn"' in line)
    journal = tmp_path_of(tmp_path / "part.jsonl", lines[:until])
    past = read_journal(journal).past()
    with shown(journal) as screen:
        text = text_of(screen)
    assert tile(text, "In flight") == str(len(past.open))
    assert tile(text, "In force").startswith("x = ")
    assert text.count('<th scope="row">sage</th>') >= len(past.open)
    assert "±" in text
    assert "Late rounds, pauses" in text


def test_rewards_of_a_system_that_is_steered_are_as_observed(tmp_path: Path) -> None:
    trace = play_plan(steered_plan(tmp_path, rounds=3), tmp_path / "out")
    with shown(tmp_path / "out" / "journal.jsonl") as screen:
        text = text_of(screen)
    reward = float(tile(text, "Newest reward").replace("\u2212", "-"))
    assert reward == pytest.approx(trace.rounds["reward"][-1], rel=1e-3)


def test_the_folder_of_a_live_play_is_watched_by_its_journal(curious_journal: Path) -> None:
    watched = open_watched(curious_journal.parent)
    assert isinstance(watched, WatchedJournal)
    watched.close()


def test_a_journal_is_only_read(curious_journal: Path) -> None:
    before = curious_journal.stat().st_mtime_ns, curious_journal.read_bytes()
    with shown(curious_journal) as screen:
        tag = screen.now().tag
        wait_until(lambda: b"Posterior of round 8" in screen.now().body)
        assert screen.now().tag != tag
        assert screen.now().tag == screen.now().tag
    assert (curious_journal.stat().st_mtime_ns, curious_journal.read_bytes()) == before


# Whether it is being written


def state(text: str) -> str:
    found = re.search(r'role="status">(.*?)<', text)
    assert found is not None
    return found[1]


def test_a_play_is_running_while_its_journal_is_held(curious_journal: Path, tmp_path: Path) -> None:
    lines = curious_journal.read_bytes().splitlines(keepends=True)
    journal = tmp_path_of(tmp_path / "journal.jsonl", lines[:-1])
    with shown(journal) as screen, JournalWriter.append_to(read_journal(journal)) as writer:
        assert state(text_of(screen)) == "Running"
        writer.event("late", "round 7 began 0.2 s late", at=7.2, round=7)
        text = text_of(screen)
        assert "<b>late</b> round 7 began 0.2 s late" in text
        writer.event("paused", "somebody is at the door", at=7.3)
        assert state(text_of(screen)) == "Paused"
        writer.event("continued", "", at=7.3)
        assert state(text_of(screen)) == "Running"
        writer.end("interrupted", at=8.0, spent=1.0)
        assert state(text_of(screen)) == "Interrupted"
    with shown(curious_journal) as screen:
        assert state(text_of(screen)) == "Ended"


def test_an_old_journal_that_nobody_holds_is_broken_off(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with JournalWriter.create(path, HEADER), shown(path) as screen:  # It was made long ago.
        assert state(text_of(screen)) == "Running"
    with shown(path) as screen:
        known = Path("/proc/locks").exists()
        assert state(text_of(screen)) == ("Broken off" if known else "Running")
        wait_until(lambda: b"does not tell what was played" in screen.now().body)


# Journals in a bad way


def test_a_journal_without_a_whole_line_waits(curious_journal: Path, tmp_path: Path) -> None:
    first = curious_journal.read_bytes().splitlines(keepends=True)[0]
    journal = tmp_path_of(tmp_path / "journal.jsonl", [first[:40]])
    with shown(journal) as screen:
        assert "The play has not begun" in text_of(screen)
        with journal.open("ab") as file:
            file.write(first[40:])
        assert "A small hill" in text_of(screen)


def test_damage_is_told_beside_what_came_before_it(curious_journal: Path, tmp_path: Path) -> None:
    lines = curious_journal.read_bytes().splitlines(keepends=True)
    journal = tmp_path_of(tmp_path / "journal.jsonl", [*lines[:40], b"{damaged}\n", *lines[41:]])
    rounds = sum(b'"type":"turn"' in line for line in lines[:40])
    with shown(journal) as screen:
        text_of(screen)
        text = text_of(screen)
        assert text_of(screen) == text
    assert f'<b id="rounds">{rounds}</b>' in text
    assert "line 41" in text
    assert "Cannot be read" in text
    assert "head -n 40" in text


@pytest.mark.parametrize("content", [b"not a journal\n", b'{"type":"move"}\n', b"\xff\xfe\n"])
def test_what_is_no_journal_is_told(tmp_path: Path, content: bytes) -> None:
    with shown(tmp_path_of(tmp_path / "journal.jsonl", [content])) as screen:
        text = text_of(screen)
    assert "line 1" in text
    assert "is this the journal of a play?" in text
    assert "has not begun" not in text


def test_a_journal_that_is_deleted_is_told(curious_journal: Path, tmp_path: Path) -> None:
    journal = tmp_path_of(tmp_path / "journal.jsonl", [curious_journal.read_bytes()])
    with shown(journal) as screen:
        text_of(screen)
        journal.unlink()
        text = text_of(screen)
    assert "cannot be read: No such file" in text
    assert '<b id="rounds">8</b>' in text


def test_text_of_others_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    poison = "</script><script>window.__hacked=1</script>"
    scenario = small(title=poison, optimizers={"<img src=x>": {"kind": "uniform"}})
    with shown(play_live(scenario, tmp_path / "play")) as screen:
        wait_until(lambda: b"states no belief" in screen.now().body)
        text = text_of(screen)
    assert poison not in text
    assert "<img" not in text


# What is believed


def rehearsed(path: Path) -> View | str:
    """Return what the agent of a journal believes in the end, or why that is not known."""
    journal = read_journal(path)
    posterior = Posterior(journal.header)
    thoughts = journal.past().thoughts
    try:
        point = thoughts[-1].move.point
        posterior.feed(thoughts, None if point is None else point.tolist())
        wait_until(
            lambda: (
                (posterior.view is not None and posterior.view.round == thoughts[-1].round)
                or (
                    " being started" not in posterior.reason
                    and " no move yet" not in posterior.reason
                )
            )
        )
        return posterior.reason if posterior.view is None else posterior.view
    finally:
        posterior.close()


def test_what_is_believed_is_what_the_agent_believed_in_virtual_time(
    curious_journal: Path,
) -> None:
    view = rehearsed(curious_journal)
    assert isinstance(view, View)
    ((points, belief),) = view.slices
    played = curious().prepare("curious")
    with open_landscape(played.environment, played.seed, played.replication) as landscape:
        trace = played.again(landscape=landscape)
        last = np.array([len(trace) - 1])
        _, (theirs,) = replay_beliefs(played, points, last, like=trace, landscape=landscape)
    assert theirs is not None
    assert view.round == len(trace)
    assert belief.mean == pytest.approx(theirs.mean)
    assert belief.std == pytest.approx(theirs.std)


@pytest.mark.parametrize(
    ("environment", "figures", "kind"),
    [
        ({"kind": "moving-peaks", "dimensions": 2}, 2, "heatmap"),
        ({"kind": "moving-peaks", "dimensions": 3}, 3, "scatter"),
        ({"kind": "sensor-network"}, 1, "bar"),
    ],
)
def test_a_belief_is_a_map_slices_or_bars(
    tmp_path: Path, environment: dict[str, Any], figures: int, kind: str
) -> None:
    kernel = {"kind": "squared-exponential", "variance": 900.0, "length_scale": 20.0}
    optimizer = {"kind": "gp-ucb", "kernel": kernel, "acquisition": {"grid": 5}}
    scenario = small(environment=environment, optimizers={"curious": optimizer}, rounds=3)
    path = play_live(scenario, tmp_path / "play")
    view = rehearsed(path)
    assert isinstance(view, View), view
    journal = read_journal(path)
    domain = journal.header.domain
    marks = Marks.of(journal.past(), journal.past().turns[-1].point.tolist(), domain.dimensions)
    (chart,) = posterior_chart(view, domain, marks)
    assert chart.title == "Posterior of round 3"
    assert len(chart.figures) == figures
    assert chart.figures[0]["data"][0].get("type", "scatter") == kind
    with shown(path) as screen:
        wait_until(lambda: b"Posterior of round 3" in screen.now().body)


def test_an_agent_without_belief_is_told(tmp_path: Path) -> None:
    path = play_live(small(), tmp_path / "play")
    assert rehearsed(path) == "The optimizer 'calm' states no belief."


def test_another_scenario_than_that_of_the_journal_is_told(
    curious_journal: Path, tmp_path: Path
) -> None:
    content = curious_journal.read_text()
    path = tmp_path / "journal.jsonl"
    path.write_text(content.replace('"length_scale":3.0', '"length_scale":0.5', 1))
    assert str(rehearsed(path)).startswith("The agent does not do again what it did: round ")
    path.write_text(content.replace('"kind":"sparq-gp-ucb"', '"kind":"gone"', 1))
    assert "gone" in str(rehearsed(path))
