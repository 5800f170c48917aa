"""The reference: each public name with its signature and its sentence, as the source has them.

reproduce/pages.py writes it into docs/reference.md, between these markers:

`<!-- names: MODULE -->`
    the public names of a module: those of its `__all__`, or else its classes, functions and types
    with a docstring; but for those that `sparq_sim` itself has. Or as `<!-- names: MODULE | a; b
    -->` only these, in this order.
`<!-- plugins: KIND -->`
    the environments, experts or optimizers that come with sparq-sim.

In the built documentation docs/conf.py has whole docstrings in the place of sentences.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import distribution
from inspect import cleandoc, getsource, isclass, isfunction
from itertools import pairwise
from typing import Any

import sparq_sim
from reproduce import DOCS
from sparq_sim.errors import SparqError, did_you_mean

PAGE = DOCS / "reference.md"
HOME = "sparq_sim"
MARKERS = ("names", "plugins")
_SPANS = re.compile(r"`[^`]+`|(?<![\w*])\*\w[\w -]*\*(?![\w*])")
_MARKUP = re.compile(r"([\\*_<\[|$~`])")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Entry:
    """A name that is listed: where it is imported from, and as what kind of plug-in, if any."""

    module: str
    name: str
    kind: str = ""

    @property
    def value(self) -> Any:
        """What it names."""
        return getattr(import_module(self.module), self.name)

    @property
    def path(self) -> str:
        """The whole name."""
        return f"{self.module}.{self.name}"


# What is listed


def public(module: str) -> list[str]:
    """List the public names of a module, in the order of its source."""
    loaded = import_module(module)
    if (given := getattr(loaded, "__all__", None)) is not None:
        return list(given)
    own = [
        name
        for name, value in vars(loaded).items()
        if (isclass(value) or isfunction(value)) and value.__module__ == module
    ]
    return [name for name in (*_aliases(module), *own) if not name.startswith("_")]


def entries(marker: str, given: str) -> list[Entry]:
    """List what a marker of the page stands for."""
    if marker == "plugins":
        return _bundled(given)
    module, _, names = (part.strip() for part in given.partition("|"))
    known = public(module)
    wanted = [name.strip() for name in names.split(";") if name.strip()]
    for name in wanted:
        if name not in known:
            raise SparqError(f"{module} has no public {name!r}: {did_you_mean(name, known)}")
    if not wanted:
        wanted = [name for name in known if module == HOME or not _is_public(module, name)]
    return [Entry(module, name) for name in wanted]


def listed(page: str) -> list[Entry]:
    """List all that a *page* of the reference lists."""
    found = re.findall(rf"<!-- ({'|'.join(MARKERS)}): ([^>]*?) -->", page)
    return [entry for marker, given in found for entry in entries(marker, given)]


def _is_public(module: str, name: str) -> bool:
    value = getattr(import_module(module), name)
    return name in sparq_sim.__all__ and getattr(sparq_sim, name) is value


def _bundled(kind: str) -> list[Entry]:
    found = distribution("sparq-sim").entry_points.select(group=f"{HOME}.{kind}s")
    if not found:
        raise SparqError(f"sparq-sim has no plug-ins of the kind {kind!r}")
    return sorted((Entry(e.module, e.attr, e.name) for e in found), key=lambda entry: entry.kind)


# As Markdown, which reads as it stands


def markdown(marker: str, given: str) -> str:
    """Write a part of the reference."""
    lines = [line for entry in entries(marker, given) for line in _lines(entry)]
    about = "" if marker == "plugins" or "|" in given else _summary(_tree(given)) + "\n\n"
    return about + "\n".join(lines)


def _lines(entry: Entry) -> Iterator[str]:
    """Yield the line of a name, and those of its fields and methods."""
    value = entry.value
    if not (isclass(value) or isfunction(value)):
        yield _item(entry.name, _escaped(_aliases(entry.module).get(entry.name, "")))
        return
    node = _node(value)
    if not isclass(value):
        yield _item(_signature(node), _summary(node))
        return
    yield _item(_class_line(entry, node), _summary(node), entry.kind or _tag(node))
    # What a class declares anew takes the place of what its base has.
    members = dict(line for each in _with_private_bases(value) for line in _members(each))
    yield from (f"  {line}" for line in members.values())


def _class_line(entry: Entry, node: ast.ClassDef) -> str:
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
            return f"{entry.name}({', '.join([*_arguments(inner.args)][1:])})"
    bases = [base for base in entry.value.__mro__[1:] if not base.__name__.startswith("_")]
    base = bases[0].__name__
    named = entry.path if entry.kind else entry.name
    return f"class {named}" if base in ("object", "Protocol", "ABC") else f"class {named}({base})"


def _members(owner: type) -> Iterator[tuple[str, str]]:
    """Yield the line of each own field and method of a class, by its name."""
    for inner, after in pairwise([*_node(owner).body, ast.Pass()]):
        match inner:
            case ast.AnnAssign(target=ast.Name(id=name)):
                if not name.startswith("_") and (name != "kind" or _literal(after)):
                    yield name, _item(_field(name, inner), _escaped(_literal(after)))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if ast.get_docstring(inner) and _is_new(owner, name):
                    yield name, _item(_signature(inner, method=True), _summary(inner))


def _tag(node: ast.ClassDef) -> str:
    """Return the kind by which a table chooses a class, if one does: the field has no sentence."""
    for inner, after in pairwise([*node.body, ast.Pass()]):
        match inner:
            case ast.AnnAssign(target=ast.Name(id="kind"), value=ast.Constant(value=str() as tag)):
                return "" if _literal(after) else tag
    return ""


def _is_new(owner: type, name: str) -> bool:
    """Return whether a method is public, and not that of a base in another form."""
    return not name.startswith("_") and not any(hasattr(base, name) for base in owner.__bases__)


def _with_private_bases(value: type) -> Iterator[type]:
    """Yield a class after those of its bases that are not listed."""
    yield from (base for base in reversed(value.__mro__[1:]) if base.__name__.startswith("_"))
    yield value


def _item(code: str, text: str, tag: str = "") -> str:
    named = f"- `{code}` (`{tag}`)" if tag else f"- `{code}`"
    return f"{named}: {text}" if text else named


def _field(name: str, node: ast.AnnAssign) -> str:
    kind = ast.unparse(_Plain().visit(node.annotation))
    default = _default(node.value)
    return f"{name}: {kind}" if default is None else f"{name}: {kind} = {default}"


def _default(node: ast.expr | None) -> str | None:
    match node:
        case ast.Call(func=ast.Name(id="Field" | "field"), args=args, keywords=keywords):
            given = {keyword.arg: keyword.value for keyword in keywords}
            if "default_factory" in given:
                return f"{ast.unparse(given['default_factory'])}()"
            inner = args[0] if args else given.get("default")
            return ast.unparse(inner) if inner is not None else None
        case None:
            return None
    return ast.unparse(node)


class _Plain(ast.NodeTransformer):
    """Leaves out what an annotation says beside the type."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[kind, *_])):
                return kind
        return node


def _signature(node: Function, *, method: bool = False) -> str:
    marks = {ast.unparse(each) for each in node.decorator_list}
    name = f".{node.name}" if method else node.name
    if "property" in marks:
        return name
    first = int(method and "staticmethod" not in marks)
    before = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    before += "classmethod " if "classmethod" in marks else ""
    gives = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{before}{name}({', '.join([*_arguments(node.args)][first:])}){gives}"


def _arguments(given: ast.arguments) -> Iterator[str]:
    plain = [*given.posonlyargs, *given.args]
    defaults = [*[None] * (len(plain) - len(given.defaults)), *given.defaults]
    yield from map(_argument, plain, defaults)
    if given.vararg or given.kwonlyargs:
        yield f"*{ast.unparse(given.vararg) if given.vararg else ''}"
    yield from map(_argument, given.kwonlyargs, given.kw_defaults)
    if given.kwarg:
        yield f"**{ast.unparse(given.kwarg)}"


def _argument(given: ast.arg, default: ast.expr | None) -> str:
    return ast.unparse(given) + (f" = {ast.unparse(default)}" if default else "")


def _summary(node: ast.Module | ast.ClassDef | Function) -> str:
    """Return the first paragraph of a docstring."""
    return _escaped((ast.get_docstring(node) or "").partition("\n\n")[0])


def _escaped(text: str) -> str:
    """Write formulas as they are; only `code` and *italics* count."""
    text, done, plain = " ".join(text.split()), 0, ""
    for span in _SPANS.finditer(text):
        plain += _MARKUP.sub(r"\\\1", text[done : span.start()]) + span[0]
        done = span.end()
    return plain + _MARKUP.sub(r"\\\1", text[done:])


# The source


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(getsource(import_module(module)))


def _node(value: Any) -> Any:
    """Return where a class or a function is defined; of an overloaded one, the last."""
    nodes = _tree(value.__module__).body
    return [node for node in nodes if getattr(node, "name", "") == value.__name__][-1]


def _literal(node: ast.AST) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str() as text)):
            return cleandoc(text)
    return ""


@cache
def _aliases(module: str) -> dict[str, str]:
    """Return the types of a module that have a docstring, which stands below them."""
    found = {}
    for node, after in pairwise(_tree(module).body):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if not name.isupper() and _literal(after):
                    found[name] = _literal(after)
    return found


# As directives, by which Sphinx shows whole docstrings


def directives(marker: str, given: str) -> str:
    """Write a part of the reference for Sphinx."""
    about = "" if marker == "plugins" or "|" in given else _summary(_tree(given))
    lines = [line for entry in entries(marker, given) for line in _directive(entry)]
    return "\n".join([about, "", "```{eval-rst}", *lines, "```"])


def _directive(entry: Entry) -> list[str]:
    value = entry.value
    if isfunction(value):
        return [f".. autofunction:: {entry.path}"]
    if not isclass(value):
        return [f".. autodata:: {entry.path}", "   :no-value:"]
    if issubclass(value, BaseException):
        return [f".. autoexception:: {entry.path}"]
    hidden = ["   :exclude-members: start, start_memory"] if entry.kind else []
    return [f".. autoclass:: {entry.path}", *hidden]
