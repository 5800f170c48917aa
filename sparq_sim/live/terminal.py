"""The terminal of a live play: how far it is, what is applied, and the newest answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from time import monotonic

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sparq_sim.errors import mask_invisible
from sparq_sim.live.play import LiveWatch
from sparq_sim.messages import REWARD, Answer, Failure
from sparq_sim.simulation.records import Record, Turn

__all__ = ["show_live"]

NEWEST, NEWS = 8, 4
"""How many answers and lines of news are on the screen."""


@contextmanager
def show_live(console: Console, *, rounds: int, title: str) -> Iterator[LiveWatch]:
    """Show a live play: on a terminal a picture that changes, elsewhere a line for each round.

    Args:
        console: Where to show it.
        rounds: How many rounds there are.
        title: What the play is called.

    Yields:
        What to give to `live` as `watch`.
    """
    screen = _Screen(rounds, title)
    if not console.is_terminal:
        yield _print_lines(console, rounds)
        return
    with Live(get_renderable=screen.render, console=console, refresh_per_second=4) as picture:
        try:
            yield screen.take
        finally:
            picture.refresh()


def _print_lines(console: Console, rounds: int) -> LiveWatch:
    """Return what prints a line for each round, and for each piece of news.

    A round is printed when its reward is there, or when the next one is over.
    """
    failures: set[str] = set()  # Each is told once.
    observed: dict[int, float] = {}
    waiting: list[Turn] = []

    def print_round(turn: Turn) -> None:
        told = observed.pop(turn.round, turn.reward)
        reward = f"  reward {told:.6g}" if isfinite(told) else "  no reward yet"
        _print(console, f"round {turn.round} of {rounds}: {_show_point(turn)}{reward}")

    def print_waiting() -> None:
        while waiting:
            print_round(waiting.pop(0))

    def take(news: Turn | Record | str) -> None:
        match news:
            case str():
                print_waiting()
                _print(console, f"Note: {news}")
            case Turn():
                print_waiting()
                waiting.append(news)
                if news.round in observed or isfinite(news.reward) or not news.moved:
                    print_waiting()
            case Record() if isinstance(news.reply, Failure):
                told = f"{news.reply.query.source}: {news.reply.reason}"
                if told not in failures:
                    failures.add(told)
                    _print(console, f"Note: {told}")
            case Record() if news.reply.query.source == REWARD:
                observed[news.reply.query.id] = float(news.reply.values[0])
                if waiting and waiting[0].round in observed:
                    print_waiting()

    return take


def _print(console: Console, line: str) -> None:
    console.print(mask_invisible(line), highlight=False, markup=False, soft_wrap=True)


def _show_point(turn: Turn) -> str:
    numbers = ", ".join(f"{number:.4g}" for number in turn.point.tolist())
    return f"({numbers}){'' if turn.moved else ', still in force'}"


class _Screen:
    """What a terminal shows of a live play."""

    def __init__(self, rounds: int, title: str) -> None:
        self._rounds = rounds
        self._title = title
        self._began = monotonic()
        self._turn: Turn | None = None
        self._reward: float | None = None
        self._counts = {"answered": 0, "failed": 0}
        self._answers: deque[Record] = deque(maxlen=NEWEST)
        self._news: deque[str] = deque(maxlen=NEWS)

    def take(self, news: Turn | Record | str) -> None:
        """Take in what has happened."""
        match news:
            case str():
                self._news.append(news)
            case Turn():
                self._turn = news
                if "started_late" in news.notes:
                    late = news.notes["started_late"]
                    self._news.append(f"round {news.round} began {late:.3g} clock units late")
            case Record():
                self._take_reply(news)

    def _take_reply(self, record: Record) -> None:
        reply = record.reply
        if reply.query.source == REWARD and isinstance(reply, Answer):
            self._reward = float(reply.values[0])
            return
        self._counts["answered" if isinstance(reply, Answer) else "failed"] += 1
        self._answers.append(record)

    def render(self) -> RenderableType:
        """Return the picture of now."""
        parts: list[RenderableType] = [Text(mask_invisible(self._head()), style="bold")]
        if self._turn is not None:
            reward = "not known yet" if self._reward is None else f"{self._reward:.6g}"
            parts.append(
                Text(
                    f"applied {_show_point(self._turn)}   newest reward {reward}   "
                    f"spent {self._turn.spent:g}   answers {self._counts['answered']}, "
                    f"failures {self._counts['failed']}"
                )
            )
        if self._answers:
            parts.append(self._table())
        parts += [Text(mask_invisible(line), style="dim") for line in self._news]
        return Group(*parts)

    def _head(self) -> str:
        number = 0 if self._turn is None else self._turn.round
        elapsed = monotonic() - self._began
        title = self._title or "live play"
        return f"{title}: round {number} of {self._rounds}, {elapsed:.0f} s; Ctrl-C stops it"

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False)
        table.add_column("source")
        for name in ("asked at", "latency", "points", "first value", "std"):
            table.add_column(name, justify="right")
        table.add_column("")
        for record in reversed(self._answers):
            table.add_row(*_row(record))
        return table


def _row(record: Record) -> list[str]:
    reply = record.reply
    source = mask_invisible(reply.query.source)
    latency = reply.arrived_at - reply.asked_at
    row = [source, f"{reply.asked_at:.2f}", f"{latency:.3g}", str(len(reply.rows))]
    if isinstance(reply, Answer):
        return [*row, f"{reply.values[0]:.5g}", f"{reply.stds[0]:.3g}", ""]
    return [*row, "", "", mask_invisible(reply.reason)[:60]]
