"""Drops: messages that came and are not used, counted by the reason, and those that came before."""

from __future__ import annotations

import logging
from collections import Counter
from hashlib import blake2b

__all__ = ["EXAMPLE", "MOST_REASONS", "Drops", "Seen"]

MOST_REASONS = 30
"""How many reasons are told apart; what is dropped for a further one is counted together."""
EXAMPLE = 160
"""How many characters are kept of the first example of a reason."""

_log = logging.getLogger(__name__)


class Drops:
    """How many messages were dropped, by the reason; the first of each reason is logged."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        """How many were dropped, by the reason with its first example."""

    def add(self, reason: str, example: str = "") -> None:
        """Count a message that is dropped.

        Args:
            reason: Why, in words that are the same for all of its sort.
            example: What is wrong with this one; kept of the first of its sort.
        """
        if reason not in self._told and len(self._told) >= MOST_REASONS:
            reason, example = "a message for a further reason", ""
        if reason not in self._told:
            told = f"{reason} (the first: {example[:EXAMPLE]})" if example else reason
            _log.warning("dropped %s", told)
            self._told[reason] = told
        self.counts[self._told[reason]] += 1


class Seen:
    """Names that have been there before; the oldest are forgotten.

    Args:
        most: How many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._names: dict[bytes, None] = {}

    def __contains__(self, name: bytes) -> bool:
        return _shorten(name) in self._names

    def add(self, name: bytes) -> None:
        """Keep a name.

        Args:
            name: Of any length.
        """
        self._names[_shorten(name)] = None
        if len(self._names) > self._most:
            del self._names[next(iter(self._names))]


def _shorten(name: bytes) -> bytes:
    return blake2b(name, digest_size=16).digest()
