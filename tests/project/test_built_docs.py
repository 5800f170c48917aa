"""The built documentation: formulas are drawn, and nothing is fetched from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reproduce import DOCS, ROOT, pages
from reproduce.formulas import to_mathml

CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
FORMULA = re.compile(r"\$\$(?P<display>.+?)\$\$|\$(?P<inline>[^$\n]+)\$", re.DOTALL)


def formulas() -> set[tuple[str, bool]]:
    """All formulas of the documentation, each with whether it stands on its own line."""
    texts = (page.read_text(encoding="utf-8") for page in pages.list_pages())
    found = (match for text in texts for match in FORMULA.finditer(CODE.sub("", text)))
    return {(match["display"] or match["inline"], bool(match["display"])) for match in found}


class Page(HTMLParser):
    """What a page shows as text, and what its browser would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.shown, self.fetched, self.formulas = "", list[str](), 0
        self._hidden = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "style", "pre", "code", "annotation", "title"):
            self._hidden = self._hidden or tag
        self.formulas += tag == "math"
        if tag == "link" and given.get("rel") not in ("index", "search", "next", "prev"):
            self.fetched.append(given.get("href") or "")
        self.fetched += [value for name, value in attrs if name == "src" and value]

    def handle_endtag(self, tag: str) -> None:
        if tag == self._hidden:
            self._hidden = ""

    def handle_data(self, data: str) -> None:
        self.shown += "" if self._hidden else data


@pytest.mark.parametrize(("formula", "display"), sorted(formulas()))
def test_every_formula_is_drawn_and_none_of_its_commands_is_left(
    formula: str, display: bool
) -> None:
    drawn = to_mathml(formula, display=display)
    page = Page(drawn)
    assert page.formulas == 1
    assert page.shown.strip()
    assert "\\" not in page.shown
    assert "merror" not in drawn


def test_a_formula_that_cannot_be_drawn_is_refused_with_its_text() -> None:
    with pytest.raises(ValueError, match=r"formula '.*nosuchcommand"):
        to_mathml(r"x + \nosuchcommand", display=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation, built."""
    for needed in ("sphinx", "myst_parser", "furo", "sphinx_copybutton", "sphinx_design"):
        pytest.importorskip(needed)
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", str(DOCS), str(folder)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return folder


def test_the_built_documentation_is_whole_without_a_network(built: Path) -> None:
    drawn = 0
    for path in built.rglob("*.html"):
        page = Page(path.read_text(encoding="utf-8"))
        drawn += page.formulas
        assert not re.search(r"\\\(|\\\[|\$\S", page.shown), f"{path.name} shows a raw formula"
        for address in page.fetched:
            assert not re.match(r"(\w+:)?//", address), f"{path.name} fetches {address}"
            file = path.parent / address.partition("?")[0].partition("#")[0]
            assert file.exists(), f"{path.name} lacks {address}"
    assert drawn >= len(formulas())
    for path in built.rglob("*.css"):
        fetched = re.findall(
            r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")]*)", path.read_text()
        )
        assert not fetched, path.name
