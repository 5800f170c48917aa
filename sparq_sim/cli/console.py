"""The console that tables and progress are drawn on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rich.console import (
    Console,
    ConsoleOptions,
    HighlighterType,
    JustifyMethod,
    OverflowMethod,
    RenderableType,
)
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from sparq_sim.cli.encoding import spell_for
from sparq_sim.errors import mask_invisible

__all__ = ["find_room", "make_console"]

_SIGNS = 3
"""In how many columns of a table, at most, numbers have a sign that may have to be spelt."""


def make_console(*, err: bool = False, quiet: bool = False) -> Console:
    """Return a console on standard output, or on standard error; *quiet* ones print nothing."""
    return _SpellingConsole(stderr=err, emoji=False, quiet=quiet)


def find_room(console: Console) -> int:
    """Return how wide a table may be, of which the signs have not been spelt yet."""
    return console.width - _SIGNS * (len(spell_for(console.encoding, "±")) - 1)


class _SpellingConsole(Console):
    """A console that spells what its encoding lacks before it measures how wide a text is.

    Characters that would control the terminal are masked: names and texts are of any origin.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            # Those of rich itself, such as to move the cursor, are no text.
            yield (
                segment if segment.control else segment._replace(text=mask_invisible(segment.text))
            )

    @property
    def options(self) -> ConsoleOptions:
        # Its lines are spelt as well, and need no frame that is wider.
        return replace(super().options, encoding="utf-8")

    def render_str(
        self,
        text: str,
        *,
        style: str | Style = "",
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        emoji: bool | None = None,
        markup: bool | None = None,
        highlight: bool | None = None,
        highlighter: HighlighterType | None = None,
    ) -> Text:
        return super().render_str(
            spell_for(self.encoding, mask_invisible(text)),
            style=style,
            justify=justify,
            overflow=overflow,
            emoji=emoji,
            markup=markup,
            highlight=highlight,
            highlighter=highlighter,
        )
