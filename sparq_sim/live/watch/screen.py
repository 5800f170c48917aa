"""The screen: what a watched thing looks like now, as a page that can be asked for again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Protocol, TypeAlias

from sparq_sim.plugin.frames import describe_error
from sparq_sim.report.html.page import THEME, dress, make_environment, read_styles, read_template
from sparq_sim.report.html.plotly import read_plotly

__all__ = ["Look", "Mood", "Screen", "Shown", "Watched"]

_TEMPLATES = Path(__file__).parent / "templates"
Mood: TypeAlias = Literal["running", "waiting", "ended", "broken"]
"""How a watched thing is: which colour its state has, and whether silence means anything."""


@dataclass(frozen=True)
class Look:
    """What is to be seen of a watched thing at one moment."""

    template: str
    """The template that shows it."""
    context: Mapping[str, Any]
    """What the template shows, by name."""
    state: str
    """One or two words: "Running", "Finished"."""
    mood: Mood
    """How it is."""
    news_at: float | None
    """When something happened last, in seconds of the Unix epoch; None if nothing has."""
    quiet: float = 30.0
    """Seconds after which the reader is told that there is no news."""
    hurries: bool = False
    """Whether the rest is to be asked for soon."""
    trouble: str = ""
    """Why what is shown may not be all there is."""


class Watched(Protocol):
    """Something that is watched: a study, or the journal of a play."""

    def refresh(self) -> Look:
        """Return what is to be seen now: the same object where nothing has changed.

        Raises:
            SparqError: It cannot be read; the message says why.
        """

    def blank(self) -> Look:
        """Return what is to be seen while nothing could be read."""

    def close(self) -> None:
        """Let go of files and threads."""


@dataclass(frozen=True)
class Shown:
    """A page without its scripts, as a browser asks for it again and again."""

    body: bytes
    """The page."""
    tag: str
    """Changes with the page: its ETag."""
    look: Look = field(repr=False)
    """What it shows."""


class Screen:
    """Shows a watched thing as pages; several threads may ask at once."""

    def __init__(self, watched: Watched, *, every: float = 1.0) -> None:
        """Show a thing.

        Args:
            watched: The thing.
            every: Seconds between two questions of a page.
        """
        self._watched = watched
        self._every = every
        self._lock = Lock()
        self._last: Look | None = None
        self._shown: Shown | None = None

    def now(self) -> Shown:
        """Return the page as it is now, without scripts."""
        with self._lock:
            look = self._look()
            if self._shown is None or self._shown.look is not look:
                body = self._render(look, {"theme": "", "page": "", "watch": ""}, styles=[])
                tag = f'"{sha256(body).hexdigest()[:32]}"'
                self._shown = Shown(body, tag, look)
            return self._shown

    def page(self) -> tuple[bytes, str]:
        """Return the whole page, and the policy of content that it needs."""
        with self._lock:
            look = self._look()
        scripts = {
            "theme": THEME,
            "plotly": read_plotly(),
            "page": read_template("page.js"),
            "watch": read_template("watch.js", _TEMPLATES),
        }
        styles = [*read_styles(), read_template("watch.css", _TEMPLATES)]
        more = "; connect-src 'self'"
        policy = str(dress(scripts, styles, more=more)["policy"])
        return self._render(look, scripts, styles=styles, more=more), policy

    def close(self) -> None:
        """Let go of what is watched."""
        with self._lock:
            self._watched.close()

    def _look(self) -> Look:
        """Return the look of now; where it cannot be had, the last one, with the reason."""
        try:
            self._last = look = self._watched.refresh()
        except Exception as error:  # Of files, plug-ins and versions: what was seen stays.
            last = self._last or self._watched.blank()
            trouble = describe_error(error)
            if last.trouble == trouble and self._last is not None:
                return last
            look = replace(last, trouble=trouble, state="Cannot be read", mood="broken")
            self._last = look
        return look

    def _render(
        self, look: Look, scripts: Mapping[str, str], *, styles: list[str], more: str = ""
    ) -> bytes:
        template = make_environment(_TEMPLATES).get_template(look.template)
        text = template.render(
            **look.context,
            **dress(scripts, styles, more=more),
            look=look,
            every=min(self._every, 0.2) if look.hurries else self._every,
        )
        # What no page can hold, such as half a character, is replaced.
        return text.encode("utf-8", "replace")
