"""How Sphinx builds the documentation: `make docs`.

Signatures of models are written here, in `_field`, not by autodoc-pydantic: that leaves out the
signature of a model, where a reader looks for the names of its arguments and their defaults.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform

import sparq_sim
from sparq_sim.plugin.contract import Model

sys.path.append(str(Path(__file__).parents[1]))
from reproduce import pages, reference
from reproduce.dark import write_twin
from reproduce.formulas import to_mathml

project = "sparq-sim"
version = release = sparq_sim.__version__

extensions = [
    *("myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"),
    *("sphinx_copybutton", "sphinx_design"),
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "sparq-sim"
html_show_copyright = False
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
copybutton_selector = "div:not(.highlight-output):not(.highlight-text) > div.highlight > pre"

autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # `show_signature` writes them as the source does
python_maximum_signature_line_length = 88
suppress_warnings = ["ref.python"]  # Several things are called Fixed; a link leads to one of them.

_SPANS = re.compile(r"`(?P<code>[^`]+)`|(?<![\w*])\*(?P<italic>\w[\w -]*)\*(?![\w*])")
_MARKUP = re.compile(r"([\\*|_])")
_COLON = "\ue000"  # No docstring has this character.
_ANNOTATED = re.compile(r"Annotated\[(.+?), Field\([^()]*\)\]")


def keep_colons(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Hide colons in the sentence of a field, of which napoleon would take the first for a type."""
    if what in ("attribute", "data"):
        lines[:] = [line.replace(":", _COLON) for line in lines]


def as_plain_text(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Take formulas in docstrings as text: only `code`, *italics*, lists and paragraphs count.

    A block of code, which begins below a line that ends in "::", stays as it is.
    """
    code_within: int | None = None  # How far the line above the block is indented.
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if code_within is not None and line and indent <= code_within:
            code_within = None
        if code_within is None:
            lines[number] = _plain(line.replace(_COLON, ":"))
            if line.endswith("::"):
                code_within = indent


def _plain(line: str) -> str:
    done, plain = 0, ""
    for span in _SPANS.finditer(line):
        plain += _MARKUP.sub(r"\\\1", line[done : span.start()])
        code, italic = span["code"], span["italic"]
        plain += rf"\ ``{code}``\ " if code else rf"\ *{italic}*\ "
        done = span.end()
    return plain + _MARKUP.sub(r"\\\1", line[done:])


def show_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: Any
) -> tuple[str, str | None] | None:
    """Show annotations as the source has them; of models, the fields with their defaults."""
    if inspect.isclass(obj) and issubclass(obj, Model):
        fields = [_field(obj, field) for field in obj.model_fields if field != "kind"]
        return (f"(*, {', '.join(fields)})" if fields else "()"), None
    if getattr(obj, "_is_protocol", False):
        return "", None
    if signature is None:
        return None
    try:
        found = inspect.signature(obj)
    except (TypeError, ValueError):
        return None
    kept = [_as_written(part) for part in found.parameters.values() if part.name != "self"]
    shown = found.replace(parameters=kept, return_annotation=inspect.Signature.empty)
    gives = "" if inspect.isclass(obj) else found.return_annotation
    return str(shown), gives if isinstance(gives, str) else getattr(gives, "__name__", None)


class _Verbatim:
    """Shown as *text*, without the quotes that a string would have."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _as_written(part: inspect.Parameter) -> inspect.Parameter:
    if isinstance(part.annotation, str):
        part = part.replace(annotation=_Verbatim(part.annotation))
    made = part.default is not part.empty and "<" in repr(part.default)
    return part.replace(default=_Verbatim("...")) if made else part


def _field(model: type[Model], name: str) -> str:
    field = model.model_fields[name]
    owners = [base for base in model.__mro__ if name in inspect.get_annotations(base)]
    written = inspect.get_annotations(owners[0])[name]
    kind = written if isinstance(written, str) else getattr(written, "__name__", "")
    while kind != (shorter := _ANNOTATED.sub(r"\1", kind)):
        kind = shorter
    shown = f"{name}: {kind}" if kind not in ("", "Annotated") and "[" not in kind else name
    if field.is_required():
        return shown
    default = field.get_default(call_default_factory=True)
    if not isinstance(default, Model):
        return f"{shown} = {default!r}"
    given = [f"{part}={getattr(default, part)!r}" for part in sorted(default.model_fields_set)]
    return f"{shown} = {type(default).__name__}({', '.join(given)})"


def skip(app: Sphinx, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what pydantic adds to every model."""
    return True if name == "model_config" else None


def whole_docstrings(app: Sphinx, name: str, source: list[str]) -> None:
    """Show whole docstrings where the page, as it stands, has their first sentences."""
    source[:] = [pages.MARKED.sub(_directives, text) for text in source]


def _directives(found: re.Match[str]) -> str:
    if found["what"] not in reference.MARKERS:
        return found[0]
    return reference.format_directives(found["what"], found["given"].removeprefix(":").strip())


def write_formula(translator: Any, node: nodes.math) -> None:
    """Write a formula in running text."""
    translator.body.append(_draw_formula(node, display=False))
    raise nodes.SkipNode


def write_formula_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own."""
    translator.body.append(f'<div class="formula">{_draw_formula(node, display=True)}</div>\n')
    raise nodes.SkipNode


def _draw_formula(node: nodes.Element, *, display: bool) -> str:
    try:
        return to_mathml(node.astext(), display=display)
    except ValueError as error:
        raise ExtensionError(str(error)) from error


class ShowDarkTwins(SphinxTransform):
    """Put the dark twin of each picture beside it; the theme shows the one that suits the page.

    That of an SVG is made here; one of another kind, `picture-dark.png`, lies beside it.
    """

    default_priority = 400

    def apply(self, **_: Any) -> None:
        home = Path(self.env.doc2path(self.env.docname)).parent
        for light in list(self.document.findall(nodes.image)):
            file = (home / light["uri"]).resolve()
            twin = file.with_stem(f"{file.stem}-dark")
            if file.suffix == ".svg" and file.is_file():
                twin = write_twin(
                    file, Path(self.app.srcdir) / "_build" / "dark" / file.parent.name
                )
            if not twin.is_file():
                continue
            dark = light.deepcopy()
            dark["uri"] = f"/{twin.relative_to(self.app.srcdir).as_posix()}"
            for image, theme in ((light, "light"), (dark, "dark")):
                image["classes"] = [*image.get("classes", []), f"only-{theme}"]
            light.parent.insert(light.parent.index(light) + 1, dark)


def setup(app: Sphinx) -> None:
    """Set how docstrings and signatures are read, and how formulas and figures are drawn."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula_block, None))
    app.add_transform(ShowDarkTwins)
    app.connect("source-read", whole_docstrings)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", keep_colons, priority=100)
    app.connect("autodoc-process-docstring", as_plain_text)
    app.connect("autodoc-process-signature", show_signature)
