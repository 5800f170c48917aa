"""Find where in a TOML text each key and element begins."""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import suppress

from sparq_sim.errors import ScenarioError
from sparq_sim.limits import MOST_LEVELS
from sparq_sim.scenario.tables import Keys, NotTomlError, parse_keys

__all__ = ["find_lines"]

_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_SCALAR = re.compile(
    r'''"""(?:\\.|[^"\\]|"(?!""))*+"{3,5}|\'\'\'(?:[^']|'(?!''))*+'{3,5}'''
    r"""|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+'|[^"',\[\]{}#\n][^,\]}#\n]*+""",
    re.DOTALL,
)


class _TooDeepError(Exception):
    """Levels beyond the limit, in line *line*."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def find_lines(text: str, name: str) -> dict[Keys, int]:
    """Return the line of each key and element in a TOML *text*, counted from 1.

    Where the text is not TOML, the search ends: `tomllib` explains what is wrong with it.

    Args:
        text: The text.
        name: What messages call it: the file, or the option that it was given by.

    Raises:
        ScenarioError: The text is nested deeper than 50 levels.
    """
    scanner = _Scanner(text)
    try:
        with suppress(NotTomlError):
            scanner.scan()
    except _TooDeepError as error:
        raise ScenarioError(
            f"{name}:{error.line}: nested deeper than {MOST_LEVELS} levels; make it flatter"
        ) from error
    return scanner.lines


class _Scanner:
    """Goes through a text once, and notes where each key and element begins."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Keys, int] = {}
        self._text = text
        self._at = 0
        self._line_ends = [found.start() for found in re.finditer("\n", text)]
        self._lengths: dict[Keys, int] = {}
        """Of arrays of tables, so far."""

    def scan(self) -> None:
        """Read headers and assignments to the end."""
        table: Keys = ()
        while self._skip_blanks() < len(self._text):
            if self._text[self._at] == "[":
                table = self._read_header()
            else:
                self._read_assignment(table)

    def _read_header(self) -> Keys:
        line, twice = self._line, self._text.startswith("[[", self._at)
        self._at += 2 if twice else 1
        self._skip_blanks()
        *outer, last = self._read_key(())
        table: Keys = ()
        for key in outer:
            table = (*table, key)
            self.lines.setdefault(table, line)
            if table in self._lengths:
                table = (*table, str(self._lengths[table] - 1))
        table = (*table, last)
        self.lines.setdefault(table, line)
        if twice:
            self._lengths[table] = self._lengths.get(table, 0) + 1
            table = (*table, str(self._lengths[table] - 1))
            self._note(table, line)
        for _ in range(2 if twice else 1):
            self._skip_blanks()
            self._take("]")
        return table

    def _read_assignment(self, table: Keys) -> None:
        line = self._line
        keys = self._read_key(table)
        for size in range(len(table) + 1, len(table) + len(keys)):
            self.lines.setdefault((*table, *keys)[:size], line)
        self._note((*table, *keys), line)
        self._skip_blanks()
        self._take("=")
        self._read_value((*table, *keys))

    def _read_value(self, keys: Keys) -> None:
        self._skip_blanks()
        opening = self._text[self._at : self._at + 1]
        if opening not in ("[", "{"):
            self._match(_SCALAR)
            return
        closing = "]" if opening == "[" else "}"
        self._at += 1
        count = 0
        while self._skip_blanks() < len(self._text) and self._text[self._at] != closing:
            if opening == "[":
                self._note((*keys, str(count)), self._line)
                self._read_value((*keys, str(count)))
            else:
                self._read_assignment(keys)
            count += 1
            self._skip_blanks()
            if self._text[self._at : self._at + 1] != closing:
                self._take(",")
        self._take(closing)

    def _read_key(self, table: Keys) -> Keys:
        """Read a key, dotted or not, of *table*."""
        keys, end = parse_keys(self._text, self._at)
        if len(table) + len(keys) > MOST_LEVELS:
            raise _TooDeepError(self._line)
        self._at = end
        return keys

    def _note(self, keys: Keys, line: int) -> None:
        if len(keys) > MOST_LEVELS:
            raise _TooDeepError(line)
        self.lines[keys] = line

    @property
    def _line(self) -> int:
        return bisect_right(self._line_ends, self._at - 1) + 1

    def _skip_blanks(self) -> int:
        found = _BLANK.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._at

    def _take(self, text: str) -> None:
        if not self._text.startswith(text, self._at):
            raise NotTomlError
        self._at += len(text)

    def _match(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        if not found:
            raise NotTomlError
        self._at = found.end()
