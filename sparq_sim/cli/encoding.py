"""Encoding: text for consoles and logs that lack some of its characters, in readable ASCII."""

from __future__ import annotations

import codecs
import re
import sys
import unicodedata
from io import TextIOWrapper

__all__ = ["spell_for", "spell_what_streams_lack"]

_HANDLER = "sparq-spell"
_STRICT = ("strict", "surrogateescape", "backslashreplace")
"""How streams treat what they cannot encode unless a user has chosen something else."""
_LETTER = re.compile(r"(LATIN|GREEK) (?P<size>SMALL|CAPITAL) LETTER (?P<letter>\w+)( WITH .*)?$")
"""The name of a letter, of which an accent or a stroke is left out."""
_SPELLED = {
    "±": "+/-",
    "…": "...",
    "\N{EN DASH}": "-",
    "\N{EM DASH}": "-",
    "\N{MINUS SIGN}": "-",
    "\N{MULTIPLICATION SIGN}": "x",
    "·": ".",
    "•": "*",
    "→": "->",
    "←": "<-",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "√": "sqrt",
    "\N{FRACTION SLASH}": "/",
    "∞": "inf",
    "\N{LEFT SINGLE QUOTATION MARK}": "'",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": '"',
    "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
}


def spell_what_streams_lack() -> None:
    """Have standard output and errors spell what their encoding lacks: "±" as "+/-", say.

    Without it, a single such character ends a command with a traceback.
    """
    codecs.register_error(_HANDLER, _replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors in _STRICT:
            stream.reconfigure(errors=_HANDLER)


def spell_for(encoding: str, text: str) -> str:
    """Return a *text* with what an *encoding* lacks spelt in ASCII."""
    codecs.register_error(_HANDLER, _replace)
    return text.encode(encoding, _HANDLER).decode(encoding, "surrogateescape")


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace what cannot be encoded, as handlers of codecs do; bytes of file names stay."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    if all("\udc80" <= character <= "\udcff" for character in lacking):
        return bytes(ord(character) - 0xDC00 for character in lacking), error.end
    return "".join(map(_spell, lacking)), error.end


def _spell(character: str) -> str:
    """Return ASCII that reads like a character, or a question mark."""
    if character in _SPELLED:
        return _SPELLED[character]
    name = unicodedata.name(character, "")
    if name.startswith("BOX DRAWINGS"):
        return _draw(name)
    if name.startswith(("BLOCK", "FULL BLOCK", "LEFT", "RIGHT", "BRAILLE")):
        return "#"
    if letter := _LETTER.match(name):
        small = letter["letter"].lower()
        return small.capitalize() if letter["size"] == "CAPITAL" else small
    parts = unicodedata.normalize("NFKD", character)
    if parts == character:
        return character if character.isascii() else "?"
    return "".join(_spell(part) for part in parts if not unicodedata.combining(part))


def _draw(name: str) -> str:
    """Return the ASCII of a line, or of a corner or crossing of several."""
    direction = "" if " AND " in name else name.rpartition(" ")[2]
    return {"HORIZONTAL": "-", "VERTICAL": "|"}.get(direction, "+")
