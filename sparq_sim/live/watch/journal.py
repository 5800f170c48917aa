"""The journal of a play that is watched: what is applied, asked, answered, spent and believed."""

from __future__ import annotations

from math import isfinite, nan
from pathlib import Path
from time import time
from typing import Any

import numpy as np

from sparq_sim.analysis.curves import read_series
from sparq_sim.journal.reader import JournalTail
from sparq_sim.live.watch.journal_charts import Marks, posterior_chart, reward_chart
from sparq_sim.live.watch.journal_state import JournalState, describe_point, has_writer
from sparq_sim.live.watch.posterior import Posterior, View
from sparq_sim.live.watch.screen import Look, Mood
from sparq_sim.report.data import ChartData, series_order
from sparq_sim.report.gather import MOST_POINTS
from sparq_sim.report.html.curves import series_charts
from sparq_sim.report.html.embed import embed
from sparq_sim.report.html.figure import Chart
from sparq_sim.report.html.page import describe_charts
from sparq_sim.report.html.shares import share_charts
from sparq_sim.report.shares import find_shares
from sparq_sim.simulation.recorder import list_rewards
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.trace import AS_PLANNED

__all__ = ["WatchedJournal"]

_PATIENT_ROUNDS, _PATIENT_SECONDS = 3, 15.0
"""Rounds, and seconds at least, without an entry after which the reader is told so."""


class WatchedJournal:
    """A play as its journal tells it, and as its agent, rehearsed beside it, believes."""

    def __init__(self, path: Path, *, allow_import: bool = False) -> None:
        """Watch a journal; nothing of it is read yet.

        Args:
            path: The file.
            allow_import: Whether its scenario may name code to run, as `module:Class`.
        """
        self._path = path
        self._allow_import = allow_import
        self._tail = JournalTail(path)
        self._state: JournalState | None = None
        self._posterior: Posterior | None = None
        self._fed = 0
        self._seen: tuple[object, ...] = ()
        self._look: Look | None = None

    def refresh(self) -> Look:
        entries = self._tail.poll()
        if self._state is None:
            if self._tail.header is None:
                return self._look or self._keep(self.blank())
            self._state = JournalState(self._tail.header)
            self._posterior = Posterior(self._tail.header, allow_import=self._allow_import)
        for entry in entries:
            self._state.take(entry)
        posterior = self._posterior
        assert posterior is not None
        thoughts = self._state.past.thoughts
        posterior.feed(thoughts[self._fed :], self._state.in_force)
        self._fed = len(thoughts)
        told = self._describe_state(self._state)
        seen = (self._tail.whole_bytes, told, posterior.view, posterior.reason)
        if self._look is None or seen != self._seen or self._look.template != "journal.html.j2":
            self._seen = seen
            context = self._describe(self._state, posterior.view, posterior.reason)
            return self._keep(self._make_look(context, *told, self._state))
        return self._look

    def blank(self) -> Look:
        context = {"title": str(self._path), "name": str(self._path), "charts": embed({})}
        return Look("empty.html.j2", context, "Not begun", "waiting", None)

    def close(self) -> None:
        if self._posterior is not None:
            self._posterior.close()

    def _keep(self, look: Look) -> Look:
        self._look = look
        return look

    def _describe_state(self, state: JournalState) -> tuple[str, Mood]:
        if state.end is not None:
            return ("Ended" if state.end.ended in AS_PLANNED else "Interrupted"), "ended"
        # Not at once: the list of locks does not show writers in other containers.
        if time() - state.news_at > _find_quiet(state) and has_writer(self._path) is False:
            return "Broken off", "ended"
        return ("Paused", "waiting") if state.paused else ("Running", "running")

    def _make_look(
        self, context: dict[str, Any], word: str, mood: Mood, state: JournalState
    ) -> Look:
        return Look(
            template="journal.html.j2",
            context=context,
            state=word,
            mood=mood,
            news_at=state.news_at,
            quiet=_find_quiet(state),
        )

    def _describe(self, state: JournalState, view: View | None, reason: str) -> dict[str, Any]:
        header, past = state.header, state.past
        domain = header.domain
        marks = Marks.of(past, state.in_force, domain.dimensions)
        turns = past.turns
        rewards = list_rewards(turns, past.records)
        known = rewards[np.isfinite(rewards)]
        regrets = np.array([turn.best - turn.reward for turn in turns], dtype=float)
        steered = bool(len(turns)) and not any(isfinite(turn.best) for turn in turns)
        sections: dict[str, list[Chart]] = {
            "posterior": [] if view is None else posterior_chart(view, domain, marks),
            "rewards": reward_chart(turns, rewards, observed=steered),
            "series": self._series(state) if turns else [],
        }
        all_charts = [chart for section in sections.values() for chart in section]
        name = header.title or f"Play of {header.optimizer}"
        return {
            "title": f"{state.rounds}/{header.rounds} {name}",
            "name": name,
            "path": str(self._path),
            "header": header,
            "rounds": state.rounds,
            "in_force": "" if state.in_force is None else describe_point(domain, state.in_force),
            "safe": state.safe,
            "reward": float(known[-1]) if len(known) else nan,
            "mean_reward": float(known.mean()) if len(known) else nan,
            "average_regret": float(regrets.mean()) if len(turns) and not steered else nan,
            "spent": past.spent,
            "budget": _read_budget(header.scenario.get("budget")),
            "flights": state.flights(),
            "in_flight": len(past.open),
            "points_in_flight": sum(len(ask.rows) for ask in past.open),
            "answers": state.answers(),
            "answered": state.fates[Fate.ANSWERED],
            "other_fates": {
                fate: count for fate, count in state.fates.items() if fate != Fate.ANSWERED
            },
            "events": list(reversed(state.events)),
            "end": state.end,
            "unit": state.unit,
            "reason": "" if view is not None else reason,
            "sections": sections,
            "charts": embed(describe_charts(all_charts)),
        }

    def _series(self, state: JournalState) -> list[Chart]:
        optimizer = state.header.optimizer
        series = read_series(state.builder.to_trace(), optimizer=optimizer, most_points=MOST_POINTS)
        data = ChartData(
            optimizers=[optimizer],
            kinds={optimizer: state.header.optimizer_kind},
            series=series_order(series),
            shares=find_shares(series),
        )
        return [*series_charts(data), *share_charts(data)]


def _find_quiet(state: JournalState) -> float:
    """Return after how many seconds without an entry the reader is told so."""
    round_seconds = state.header.period * (state.header.seconds or 0.0)
    return max(_PATIENT_SECONDS, _PATIENT_ROUNDS * round_seconds)


def _read_budget(given: object) -> float:
    """Return the budget that a scenario has; infinite where it has none."""
    return float(given) if isinstance(given, int | float) else float("inf")
