"""Choice: the one play of a study that a user names, by its key or by what was played."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sparq_sim.errors import SparqError, did_you_mean
from sparq_sim.scenario.files import read_value
from sparq_sim.study.results import Results
from sparq_sim.study.settings import (
    find_path,
    find_value,
    format_setting,
    list_paths,
    list_values,
    shorten_paths,
)
from sparq_sim.study.store import StoredSummary

__all__ = ["choose_play", "name_in_words", "write_setting"]

_MOST_NAMED = 6
"""How many plays or settings an error names; the others are counted."""
_SHORT_KEY = 8
"""Digits of a key that an error shows, unless more are needed to tell plays apart."""
_COMMA = re.compile(r",(?![^\[{]*[\]}])")
"""A comma that is not within a list or a table."""


def choose_play(study: Results, text: str) -> StoredSummary:
    """Return the finished play that a *text* names.

    Args:
        study: The study.
        text: The key of the play, or how its key begins; or an optimizer, as "sparq-gp-ucb", and
            after commas what tells the play from others of it: its replication, "seed=3", and
            values of swept fields, as in "sparq-gp-ucb,transit=2,1". Of several seeds and
            replications that fit, it is the first.

    Raises:
        SparqError: No play fits, or plays of several settings or keys do; it says which there are.
        StoreError: A file cannot be read.
    """
    plays = study.finished()
    names = {each.optimizer for each in plays}
    longest = sorted(names, key=len, reverse=True)
    name = next((each for each in longest if text == each or text.startswith(f"{each},")), None)
    if name is None:
        return _find_by_key(plays, text)
    own = [each for each in plays if each.optimizer == name]
    for part in _COMMA.split(text[len(name) + 1 :]) if text != name else ():
        own = _keep(own, part.strip(), text)
    settings = {each.label: each for each in own}
    if len(settings) > 1:
        told = _name_some([write_setting(each) for each in settings.values()])
        raise SparqError(
            f"play {text!r}: {name} played in {len(settings)} settings; add which, as in "
            f"{name},{write_setting(own[0])}; there are: {told}"
        )
    return min(own, key=lambda each: (each.seed, each.replication))


def name_in_words(play: StoredSummary) -> str:
    """Return what a play is called, as in "sparq-gp-ucb (transit 2), seed 0, replication 1".

    Args:
        play: A play that is stored.
    """
    setting = f" ({format_setting(play.setting)})" if play.setting else ""
    return f"{play.optimizer}{setting}, seed {play.seed}, replication {play.replication}"


def write_setting(play: StoredSummary) -> str:
    """Return the setting of a play as `choose_play` reads it: "transit=2.0,split=true".

    Args:
        play: A play that is stored.
    """
    # The last words of paths do unless two share them.
    names = shorten_paths(play.setting)
    values = {
        path: str(value).lower() if isinstance(value, bool) else value
        for path, value in play.setting.items()
    }
    return ",".join(f"{names[path]}={value}" for path, value in values.items())


def _find_by_key(plays: Sequence[StoredSummary], text: str) -> StoredSummary:
    found = [each for each in plays if text and each.key.startswith(text.lower())]
    if len(found) == 1:
        return found[0]
    if not found:
        hint = did_you_mean(text.partition(",")[0], {each.optimizer for each in plays})
        raise SparqError(f"play {text!r}: no key begins so, and no optimizer is called so: {hint}")
    told = _name_some([f"{each.key[: _digits(found)]} is {name_in_words(each)}" for each in found])
    raise SparqError(f"play {text!r}: {len(found)} keys begin so; write more of it: {told}")


def _digits(plays: Sequence[StoredSummary]) -> int:
    """Return how many digits tell the keys of plays apart."""
    enough = (k for k in range(_SHORT_KEY, 99) if len({p.key[:k] for p in plays}) == len(plays))
    return next(enough)


def _keep(plays: Sequence[StoredSummary], part: str, text: str) -> list[StoredSummary]:
    """Return the plays that a *part* of the *text* fits: a replication, or FIELD=VALUE."""
    field, equals, word = (each.strip() for each in part.partition("="))
    if not equals:
        field, word = "replication", part
    if field in ("seed", "replication"):
        numbers = {f"{getattr(each, field)}": each for each in plays}
        if word not in numbers:
            known = ", ".join(sorted(numbers, key=int))
            raise SparqError(f"play {text!r}: there is no {field} {word!r}; there are: {known}")
        return [each for each in plays if f"{getattr(each, field)}" == word]
    settings = [each.setting for each in plays]
    path = find_path(field, list_paths(settings))
    values = list_values(settings, path)
    # Tables are kept as their JSON, which is not TOML.
    value = word if word in values else find_value(read_value(word), values, path)
    return [each for each in plays if each.setting.get(path) == value]


def _name_some(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
    return "; ".join(texts[:_MOST_NAMED]) + more
