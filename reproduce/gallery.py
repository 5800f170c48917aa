"""The gallery: a card for each environment and each study, with its picture and what plays it.

`python -m reproduce --render-only` writes them into docs/gallery.md, between these markers:

`<!-- gallery environments -->`
    the environments that are simulated, in the order of their page.
`<!-- gallery studies -->`
    the bundled scenarios by folder: a card for each that has a figure on a page, and then the
    others by name; where none has a figure, the first of the page is that of all.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from reproduce import DOCS
from reproduce.studies import read_list
from sparq_sim.plugin.field_docs import read_own_doc
from sparq_sim.plugin.registry import list_simulated, load
from sparq_sim.scenario.bundled import find_bundled

_FOLDERS = {
    "": ("First steps", "tutorial.md"),
    "paper": ("The paper", "paper.md"),
    "questions": ("Questions", "questions.md"),
    "experts": ("Experts", "guides/experts.md"),
    "memory": ("Memory", "memory.md"),
    "sensors": ("Sensor networks", "guides/sensors.md"),
}
"""What each folder of scenarios is called, and the page that is about it."""
_ENVIRONMENTS = DOCS / "guides" / "environments.md"
_MOST_TITLES = 8
"""Of more scenarios without a card, only the names are listed."""
_PICTURE = re.compile(r"^!\[(?P<shows>[^\]]*)\]\((?P<file>[^)]*)\)$", re.MULTILINE)
_HEADING = re.compile(r"^(?P<level>#{1,3}) (?P<text>.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Card:
    """A card: a picture, a name and a sentence, which lead to a place on a page."""

    title: str
    text: str
    link: str
    """Of the page, from docs, perhaps with the heading."""
    picture: str
    """From docs."""
    shows: str
    """What is seen in the picture."""

    def __str__(self) -> str:
        """Write the card as a part of a grid."""
        page, _, place = self.link.partition("#")
        lines = [
            f":::{{grid-item-card}} {self.title}",
            f":img-top: {self.picture}",
            f":img-alt: {self.shows}",
            f":link: {page.removesuffix('.md')}.html{f'#{place}' if place else ''}",
        ]
        return "\n".join([*lines, "", self.text, ":::"])


@dataclass(frozen=True)
class Place:
    """Where a picture stands on a page; its fields are those of a card."""

    link: str
    file: str
    shows: str


def format_gallery(what: str) -> str:
    """Return the cards of all environments or studies, as a page has them.

    Args:
        what: "environments" or "studies".

    Raises:
        ValueError: It is neither of them.
    """
    match what:
        case "environments":
            return _lay_out(_list_environments(), look="portraits")
        case "studies":
            return "\n\n".join(_list_studies())
    raise ValueError(f"there is no gallery of {what!r}; choose environments or studies")


def _lay_out(cards: Iterable[Card], *, look: str = "figures") -> str:
    """Return a grid of cards; their *look* is a class of docs/_static/pages.css."""
    inside = "\n\n".join(map(str, cards))
    return f"::::{{grid}} 1 2 2 2\n:gutter: 3\n:class-container: {look}\n\n{inside}\n\n::::"


def _list_environments() -> list[Card]:
    simulated = {*list_simulated("environment")}
    places = {Path(place.file).stem: place for place in _find_pictures(_ENVIRONMENTS)}
    return [
        Card(kind, _first_sentence(kind), place.link, place.file, place.shows)
        for kind, place in places.items()
        if kind in simulated
    ]


def _first_sentence(kind: str) -> str:
    paragraph = read_own_doc(load("environment", kind)).partition("\n\n")[0]
    sentence = " ".join(paragraph.split()).partition(". ")[0].rstrip(".")
    return f"{sentence}."


def _list_studies() -> list[str]:
    pictures: dict[str, Place] = {}
    for page in sorted(DOCS.rglob("*.md")):
        if "_build" not in page.parts:
            pictures |= {Path(place.file).stem: place for place in _find_pictures(page)}
    shown = {
        each.scenario: pictures[name]
        for name, each in reversed(read_list().items())
        if each.figures and name in pictures
    }
    titles = {
        name: tomllib.loads(file.read_text(encoding="utf-8")).get("title", name)
        for name, file in find_bundled().items()
    }
    parts = []
    folders = sorted(titles, key=lambda name: [*_FOLDERS].index(_folder(name)))
    for folder, names in groupby(folders, key=_folder):
        parts.append(_describe_folder(folder, {name: titles[name] for name in names}, shown))
    return parts


def _folder(name: str) -> str:
    first, slash, _ = name.partition("/")
    return first if slash else ""


def _describe_folder(folder: str, titles: Mapping[str, str], shown: Mapping[str, Place]) -> str:
    """Return the heading of a folder of scenarios, its cards, and the names of the others."""
    heading, page = _FOLDERS[folder]
    cards = [
        Card(titles[name], f"`{name}`", place.link, place.file, place.shows)
        for name in titles
        if (place := shown.get(name))
    ]
    parts = [f"### {heading}"]
    if not cards and (whole := _find_pictures(DOCS / page)):
        first = whole[0]
        cards = [Card(heading, f"{len(titles)} scenarios", page, first.file, first.shows)]
    if cards:
        parts.append(_lay_out(cards))
    if others := {name: title for name, title in titles.items() if name not in shown}:
        many = len(others) > _MOST_TITLES
        named = [f"`{name}`" if many else f"`{name}` ({title})" for name, title in others.items()]
        also = "Also: " * bool(cards)
        parts.append(f"{also}{(', ' if many else '; ').join(named)}. See [{heading}]({page}).")
    return "\n\n".join(parts)


def _find_pictures(page: Path) -> list[Place]:
    """Return the pictures of a page, each with the heading that it stands under."""
    text = page.read_text(encoding="utf-8")
    found = []
    for picture in _PICTURE.finditer(text):
        above = [*_HEADING.finditer(text[: picture.start()])]
        place = f"#{make_slug(above[-1]['text'])}" if len(above) > 1 else ""
        file = (page.parent / picture["file"]).resolve().relative_to(DOCS)
        link = f"{page.relative_to(DOCS).as_posix()}{place}"
        found.append(Place(link, file.as_posix(), picture["shows"]))
    return found


def make_slug(heading: str) -> str:
    """Return the anchor of a heading, as MyST makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
