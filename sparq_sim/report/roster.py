"""The roster: the plays of a study that may be watched, and which of them tell most."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from math import inf, isfinite

from sparq_sim.study.choice import write_setting
from sparq_sim.study.settings import Setting, agree, keep_fullest
from sparq_sim.study.store import StoredSummary, canonical

__all__ = ["Draw", "Roster", "name_play"]

Draw = tuple[int, int]
"""A seed and a replication: what the world and all chance of a play are drawn from."""
_PLAIN = re.compile(r"[\w.,=+-]+", re.ASCII)
"""A name that needs no quotes in a shell, and that nothing else could be read as."""
_LONGEST = 80
"""Characters of the name of a play."""


class Roster:
    """Finished plays by optimizer, setting and draw.

    Args:
        plays: Those of a study, in its order.
        order: Names of optimizers, in the order in which they are shown.
    """

    def __init__(self, plays: Iterable[StoredSummary], order: Sequence[str] = ()) -> None:
        self.plays = sorted(
            plays, key=lambda play: order.index(play.optimizer) if play.optimizer in order else -1
        )
        """All of them."""
        self.optimizers = list(dict.fromkeys(play.optimizer for play in self.plays))
        """Their names, in order."""
        self.settings = keep_fullest([play.setting for play in self.plays])
        """Those of which no others are special cases; one that is empty where nothing is swept."""
        self.draws: list[Draw] = sorted({(play.seed, play.replication) for play in self.plays})
        """Their seeds and replications."""
        self._known = {
            (play.optimizer, canonical(dict(play.setting)), play.seed, play.replication): play
            for play in self.plays
        }
        self._paths = {
            name: {frozenset(play.setting) for play in self.plays if play.optimizer == name}
            for name in self.optimizers
        }

    def find(self, optimizer: str, setting: Setting, draw: Draw) -> StoredSummary | None:
        """Return the play of an optimizer in a setting, if it is finished.

        Args:
            optimizer: Its name.
            setting: One of `settings`; values that make no difference to the optimizer are left
                aside.
            draw: One of `draws`.
        """
        for paths in self._paths.get(optimizer, ()):
            own = {path: value for path, value in setting.items() if path in paths}
            found = self._known.get((optimizer, canonical(own), *draw))
            if found is not None and paths <= setting.keys():
                return found
        return None

    def list_firsts(self) -> list[StoredSummary]:
        """Return the first play of each optimizer: in the first setting that it has, if it can."""
        return [found[0] for name in self.optimizers if (found := [*self._of(name)])]

    def _of(self, optimizer: str) -> Iterator[StoredSummary]:
        for setting in self.settings:
            for draw in self.draws:
                if (found := self.find(optimizer, setting, draw)) is not None:
                    yield found

    def list_others(self) -> Iterator[StoredSummary]:
        """Yield the plays beside the first ones, the more telling earlier.

        First those of the other settings, the hardest first; then, in the first setting, the draws
        in which its winner fared worst. Of each, the plays of all optimizers.
        """
        if not self.settings:
            return
        first = self.settings[0]
        others = [setting for setting in self.rank_settings() if setting is not first]
        best = self.find_winner(first)
        fared = {draw: self.find(best, first, draw) for draw in self.draws} if best else {}
        losses = {draw: _read_regret(play) for draw, play in fared.items() if play}
        draws = sorted(self.draws, key=lambda draw: -losses.get(draw, -inf))
        places = chain(
            ((setting, self.draws[0]) for setting in others),
            ((first, draw) for draw in draws),
        )
        seen = {play.key for play in self.list_firsts()}
        for setting, draw in places:
            best = self.find_winner(setting)
            for name in sorted(self.optimizers, key=lambda name: name != best):
                play = self.find(name, setting, draw)
                if play is not None and play.key not in seen:
                    seen.add(play.key)
                    yield play

    def list_rivals(self, play: StoredSummary) -> list[StoredSummary]:
        """Return the plays of all optimizers in the setting and draw of a play, the winner first.

        Args:
            play: One of `plays`.
        """
        setting = next(each for each in self.settings if agree(each, play.setting))
        draw, best = (play.seed, play.replication), self.find_winner(setting)
        names = sorted(self.optimizers, key=lambda name: name != best)
        return [found for name in names if (found := self.find(name, setting, draw)) is not None]

    def find_winner(self, setting: Setting) -> str:
        """Return the optimizer with the lowest mean regret in a setting; empty where none is known.

        Args:
            setting: One of `settings`.
        """
        means = self._means[canonical(dict(setting))]
        return min(means, key=means.__getitem__, default="")

    def rank_settings(self) -> list[Setting]:
        """Return the settings, those first in which even the winner has much regret."""

        def ease(setting: Setting) -> float:
            return -min(self._means[canonical(dict(setting))].values(), default=0.0)

        return sorted(self.settings, key=ease)

    @cached_property
    def _means(self) -> dict[str, dict[str, float]]:
        """The mean regret of each optimizer that has one, by setting."""
        found: dict[str, dict[str, float]] = {}
        for setting in self.settings:
            means = found.setdefault(canonical(dict(setting)), {})
            for name in self.optimizers:
                plays = [self.find(name, setting, draw) for draw in self.draws]
                regrets = [_read_regret(play) for play in plays if play is not None]
                if regrets and isfinite(mean := sum(regrets) / len(regrets)):
                    means[name] = mean
        return found


def name_play(play: StoredSummary) -> str:
    """Return what `choose_play` finds a play by: what was played, or its key if that is long.

    Args:
        play: A finished play.
    """
    setting = [write_setting(play)] * bool(play.setting)
    seed = [f"seed={play.seed}"] * (play.seed != 0)
    name = ",".join([play.optimizer, *setting, *seed, str(play.replication)])
    return name if _PLAIN.fullmatch(name) and len(name) <= _LONGEST else play.key


def _read_regret(play: StoredSummary) -> float:
    regret = play.measures.get("average_regret")
    return inf if regret is None else regret
