"""The reference: each public name with its signature and its sentence, as the source has them.

Public are the names in the `__all__` of each module whose path has no underscore at the start of a
part. `python -m reproduce --render-only` writes them into docs/reference.md, between these markers:

`<!-- names: MODULE -->`
    the names of a module; or as `<!-- names: MODULE | a; b -->` only these, in this order.
`<!-- room: PACKAGE -->`
    the names of a package, and those of each module within under a heading.
`<!-- plugins: KIND -->`
    the environments, experts or optimizers that come with sparq-sim.

Each thing is listed once: not again where it comes from if `sparq_sim`, or a package above, has it,
nor where a plug-in is defined. In the built documentation docs/conf.py has whole docstrings in the
place of sentences.

Long because it writes signatures as the source has them, by reading the syntax of the source.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import distribution
from inspect import cleandoc, getsource, isclass, isfunction, unwrap
from itertools import pairwise
from pkgutil import walk_packages
from typing import Any

from reproduce import DOCS
from sparq_sim.errors import SparqError, did_you_mean

PAGE = DOCS / "reference.md"
HOME = "sparq_sim"
MARKERS = ("names", "room", "plugins")
PACKAGES = (HOME, "sparq_experts", "sparq_environments")
KINDS = ("environment", "expert", "optimizer")
INNER = (
    "sparq_sim.cli",
    "sparq_sim.documents",
    "sparq_sim.gp.candidates",
    "sparq_sim.gp.kernels.",
    "sparq_sim.gp.sparse.matrices",
    "sparq_sim.journal.codec",
    "sparq_sim.journal.durable_file",
    "sparq_sim.journal.rebuilding",
    "sparq_sim.limits",
    "sparq_sim.live.calibrate.cost",
    "sparq_sim.live.calibrate.draws",
    "sparq_sim.live.calibrate.families",
    "sparq_sim.live.calibrate.latency",
    "sparq_sim.live.calibrate.loss",
    "sparq_sim.live.calibrate.noise",
    "sparq_sim.live.calibrate.per_point",
    "sparq_sim.live.calibrate.requests",
    "sparq_sim.live.watch",
    "sparq_sim.optimizers.sparq_memory.",
    "sparq_sim.plugin.briefing",
    "sparq_sim.plugin.environment",
    "sparq_sim.plugin.expert",
    "sparq_sim.plugin.expert_results",
    "sparq_sim.plugin.field_docs",
    "sparq_sim.plugin.frames",
    "sparq_sim.plugin.model",
    "sparq_sim.plugin.optimizer",
    "sparq_sim.plugin.origins",
    "sparq_sim.plugin.result_checks",
    "sparq_sim.plugin.sources",
    "sparq_sim.plugin.steered",
    "sparq_sim.pytest_plugin",
    "sparq_sim.remote.broker_link",
    "sparq_sim.remote.drops",
    "sparq_sim.remote.serve.asking",
    "sparq_sim.remote.tasks",
    "sparq_sim.report.data",
    "sparq_sim.report.environment.",
    "sparq_sim.report.figure_kinds",
    "sparq_sim.report.finding.",
    "sparq_sim.report.gather",
    "sparq_sim.report.html",
    "sparq_sim.report.looks",
    "sparq_sim.report.network_tables",
    "sparq_sim.report.palette",
    "sparq_sim.report.phrases",
    "sparq_sim.report.place",
    "sparq_sim.report.print.",
    "sparq_sim.report.progress",
    "sparq_sim.report.replay",
    "sparq_sim.report.terminal",
    "sparq_sim.report.words",
    "sparq_sim.scenario.checks",
    "sparq_sim.scenario.field_names",
    "sparq_sim.scenario.files",
    "sparq_sim.scenario.fingerprint",
    "sparq_sim.scenario.layers",
    "sparq_sim.scenario.loading",
    "sparq_sim.scenario.plugins",
    "sparq_sim.scenario.problems",
    "sparq_sim.scenario.programs",
    "sparq_sim.scenario.scaffold",
    "sparq_sim.scenario.settings",
    "sparq_sim.scenario.tables",
    "sparq_sim.scenario.toml_lines",
    "sparq_sim.scenario.validation",
    "sparq_sim.simulation.agent_driver",
    "sparq_sim.simulation.blas",
    "sparq_sim.simulation.clock.base",
    "sparq_sim.simulation.clock.blocking",
    "sparq_sim.simulation.clock.expert_clock",
    "sparq_sim.simulation.delivery",
    "sparq_sim.simulation.engine",
    "sparq_sim.simulation.moves",
    "sparq_sim.simulation.recorder",
    "sparq_sim.simulation.reward",
    "sparq_sim.simulation.start",
    "sparq_sim.study.differences",
    "sparq_sim.study.executors.",
    "sparq_sim.study.folder_claim",
    "sparq_sim.study.folder_contents",
    "sparq_sim.study.plan",
    "sparq_sim.study.progress",
    "sparq_sim.study.settings",
    "sparq_sim.study.store.",
    "sparq_sim.testing.",
    "sparq_sim.vopr",
)
"""What other modules use, and users do not: it is not listed. With a dot at the end, only what is
within a package is meant, whose own names are listed. What the modules of `plugin` define that
authors of plug-ins need is listed under `sparq_sim.plugin.contract`."""
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
        """What it names; of a function that is cached or otherwise wrapped, the function itself."""
        return unwrap(getattr(import_module(self.module), self.name))

    @property
    def path(self) -> str:
        """The whole name."""
        return f"{self.module}.{self.name}"


# What is listed


def list_modules() -> list[str]:
    """List the public modules, and the packages that have names of their own."""
    found = []
    for package in PACKAGES:
        roots = import_module(package).__path__
        within = walk_packages(roots, f"{package}.")
        names = [package, *sorted(each.name for each in within)]
        found += [name for name in names if not re.search(r"(^|\.)_", name) and _has_names(name)]
    return found


def _has_names(module: str) -> bool:
    if not hasattr(import_module(module), "__path__"):
        return True
    return any(not isinstance(node, ast.Expr | ast.ImportFrom) for node in _tree(module).body)


def is_inner(module: str) -> bool:
    """Return whether a *module* is for other modules only."""
    return any(module == room or module.startswith(f"{room.rstrip('.')}.") for room in INNER)


def list_names(module: str) -> list[str]:
    """List the public names of a *module*: its `__all__`."""
    try:
        return list(import_module(module).__all__)
    except AttributeError:
        raise SparqError(f"{module} has no __all__, which says what is public") from None


def list_entries(marker: str, given: str) -> list[Entry]:
    """List what a *marker* of the page stands for, with what is *given* in it."""
    if marker == "plugins":
        return list(_bundled(given))
    if marker == "room":
        return [entry for module in _room(given) for entry in list_entries("names", module)]
    module, _, names = (part.strip() for part in given.partition("|"))
    known = list_names(module)
    wanted = [name.strip() for name in names.split(";") if name.strip()]
    for name in wanted:
        if name not in known:
            raise SparqError(f"{module} has no public {name!r}: {did_you_mean(name, known)}")
    if not wanted:
        wanted = [name for name in known if not _is_elsewhere(module, name)]
    return [Entry(module, name) for name in wanted]


def _room(package: str) -> list[str]:
    """Return the public modules of a package that users need, itself among them."""
    within = [name for name in list_modules() if f"{name}.".startswith(f"{package}.")]
    if not within:
        raise SparqError(f"there is no package {package!r} with public modules")
    return [name for name in within if not is_inner(name)]


def list_page(page: str) -> list[Entry]:
    """List all that a *page* of the reference lists."""
    found = re.findall(rf"<!-- ({'|'.join(MARKERS)}): ([^>]*?) -->", page)
    return [entry for marker, given in found for entry in list_entries(marker, given)]


def _is_elsewhere(module: str, name: str) -> bool:
    """Return whether a package above has the same thing, or the list of plug-ins."""
    value = getattr(import_module(module), name)
    if any(value is entry.value for kind in KINDS for entry in _bundled(kind)):
        return True
    parts = module.split(".")
    above = {HOME, *(".".join(parts[:size]) for size in range(1, len(parts)))} - {module}
    return any(
        name in getattr(import_module(each), "__all__", ())
        and getattr(import_module(each), name) is value
        for each in above
    )


@cache
def _bundled(kind: str) -> tuple[Entry, ...]:
    found = distribution("sparq-sim").entry_points.select(group=f"{HOME}.{kind}s")
    if not found:
        raise SparqError(f"sparq-sim has no plug-ins of the kind {kind!r}")
    plugins = (Entry(e.module, e.attr, e.name) for e in found)
    return tuple(sorted(plugins, key=lambda entry: entry.kind))


# As Markdown, which reads as it stands


def format_markdown(marker: str, given: str) -> str:
    """Write a part of the reference."""
    if marker == "room":
        return "\n\n".join(
            f"### {module}\n\n{format_markdown('names', module)}"
            for module in _room(given)
            if list_entries("names", module)
        )
    lines = [line for entry in list_entries(marker, given) for line in _lines(entry)]
    about = "" if marker == "plugins" or "|" in given else _summary(_tree(given)) + "\n\n"
    return about + "\n".join(lines)


def _lines(entry: Entry) -> Iterator[str]:
    """Yield the line of a name, and those of its fields and methods."""
    value = entry.value
    if not (isclass(value) or isfunction(value)):
        yield _item(entry.name, _escaped(_sentence_below(entry.module, entry.name)))
        return
    node = find_node(value)
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
    for inner, after in pairwise([*find_node(owner).body, ast.Pass()]):
        match inner:
            case ast.AnnAssign(target=ast.Name(id=name)):
                if not name.startswith("_") and (name != "kind" or find_literal(after)):
                    yield name, _item(_field(name, inner), _escaped(find_literal(after)))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if ast.get_docstring(inner) and _is_new(owner, name):
                    yield name, _item(_signature(inner, method=True), _summary(inner))


def _tag(node: ast.ClassDef) -> str:
    """Return the kind by which a table chooses a class, if one does: the field has no sentence."""
    for inner, after in pairwise([*node.body, ast.Pass()]):
        match inner:
            case ast.AnnAssign(target=ast.Name(id="kind"), value=ast.Constant(value=str() as tag)):
                return "" if find_literal(after) else tag
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


def find_node(value: Any) -> Any:
    """Return where a class or a function is defined; of an overloaded one, the last."""
    nodes = _tree(value.__module__).body
    return [node for node in nodes if getattr(node, "name", "") == value.__name__][-1]


def find_literal(node: ast.AST) -> str:
    """Return the text of a string that stands alone, such as a sentence below a field."""
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
                if find_literal(after):
                    found[name] = find_literal(after).partition("\n\n")[0]
    return found


def _sentence_below(module: str, name: str) -> str:
    """Return what stands below a type or a constant, in the module that defines it."""
    return _aliases(_find_home(module, name)).get(name, "")


def _find_home(module: str, name: str) -> str:
    """Return the module that defines a name, where *module* imports it."""
    for node in _tree(module).body:
        if isinstance(node, ast.ImportFrom) and name in (alias.name for alias in node.names):
            return _find_home(str(node.module), name)
    return module


# As directives, by which Sphinx shows whole docstrings


def format_directives(marker: str, given: str) -> str:
    """Write a part of the reference for Sphinx."""
    if marker == "room":
        return "\n\n".join(
            f"### {module}\n\n{format_directives('names', module)}"
            for module in _room(given)
            if list_entries("names", module)
        )
    about = "" if marker == "plugins" or "|" in given else _summary(_tree(given))
    lines = [line for entry in list_entries(marker, given) for line in _directive(entry)]
    return "\n".join([about, "", "```{eval-rst}", *lines, "```"])


def _directive(entry: Entry) -> list[str]:
    value = entry.value
    if isfunction(value):
        return [f".. autofunction:: {entry.path}"]
    if not isclass(value):
        home = _find_home(entry.module, entry.name)  # Sphinx finds the sentence only there.
        return [f".. autodata:: {home}.{entry.name}", "   :no-value:"]
    if issubclass(value, BaseException):
        return [f".. autoexception:: {entry.path}"]
    hidden = ["   :exclude-members: start, start_memory"] if entry.kind else []
    return [f".. autoclass:: {entry.path}", *hidden]
