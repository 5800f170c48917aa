"""Operators: the small mistakes that can be made in a piece of source code."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["OPERATORS", "Mutant", "find_mutants"]

_COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_BOUNDARIES = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_CALCULATED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}

OPERATORS = (
    "comparison",
    "arithmetic",
    "boolean",
    "constant",
    "condition",
    "sign",
    "return",
    "statement",
    "arguments",
    "loop",
)
"""The names of all operators: what each changes."""

_KEY = re.compile(r"[\w./-]+")
"""A text that is a key, a name or a format, and no words for a reader."""
_FOR_TYPES = {"TypeVar", "ParamSpec", "NewType"}
_NEVER_SWAPPED = {
    "isinstance",
    "issubclass",
    "hasattr",
    "max",
    "min",
    "maximum",
    "minimum",
    "hypot",
}
"""Functions of which everybody knows whether the order of arguments matters."""
_DANGEROUS = {"kill", "killpg", "rmtree", "unlink", "rmdir"}
"""Functions of which a wrong argument could harm others on the machine."""
_FOR_READERS = re.compile(r"(Error|Warning|Unaffordable|Unavailable)$|^_?(warn|did_you_mean)")


@dataclass(frozen=True)
class Mutant:
    """One small mistake in one file."""

    file: str
    """The file, relative to the root of the project."""
    number: int
    """The number of the first line that differs, from 1."""
    last: int
    """The number of the last line of what is changed."""
    within: str
    """The class and function that it is in, as `Class.function`; empty outside of both."""
    operator: str
    """What kind of mistake it is, one of `OPERATORS`."""
    before: str
    """The first line that differs, without indentation, as it is."""
    after: str
    """The same line with the mistake."""
    start: int
    """Where the change begins in the source, in bytes."""
    end: int
    """Where it ends."""
    new: str
    """What stands there instead."""

    def apply(self, source: str) -> str:
        """Return the *source* of the file with the mistake.

        Args:
            source: The whole text of the file.
        """
        text = source.encode()
        return (text[: self.start] + self.new.encode() + text[self.end :]).decode()


def find_mutants(source: str, file: str) -> list[Mutant]:
    """Return all mutants of a *source*, in its order; very few do not compile.

    Args:
        source: The text of the file.
        file: Its name, relative to the root of the project.
    """
    finder = _Finder(source, file)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda mutant: (mutant.start, mutant.end, mutant.new))


class _Finder(ast.NodeVisitor):
    """Finds what can be changed, and leaves out what only readers and type checkers see."""

    def __init__(self, source: str, file: str) -> None:
        self._file = file
        self._names: list[str] = []
        self._text = source.encode()
        self._lines = [0]
        for line in self._text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self.found: list[Mutant] = []

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None  # What was parsed has an end.
        assert node.end_col_offset is not None
        return (
            self._lines[node.lineno - 1] + node.col_offset,
            self._lines[node.end_lineno - 1] + node.end_col_offset,
        )

    def _source(self, node: ast.expr | ast.stmt) -> str:
        start, end = self._span(node)
        return self._text[start:end].decode()

    def _put(self, operator: str, node: ast.expr | ast.stmt, new: str) -> None:
        self._put_at(operator, self._span(node), new)

    def _put_at(self, operator: str, span: tuple[int, int], new: str) -> None:
        start, end = span
        if self._text[start:end].decode() == new:
            return
        number = bisect_right(self._lines, start)
        last = bisect_right(self._lines, max(start, end - 1))
        rest = self._text[end : self._lines[last]].decode()
        before = self._text[self._lines[number - 1] : self._lines[last]].decode()
        after = self._text[self._lines[number - 1] : start].decode() + new + rest
        pairs = zip(before.split("\n"), after.split("\n"), strict=False)
        told = next((pair for pair in pairs if pair[0] != pair[1]), (before, after))
        self.found.append(
            Mutant(
                self._file,
                number,
                last,
                ".".join(self._names),
                operator,
                told[0].strip(),
                told[1].strip(),
                *span,
                new,
            )
        )

    def _put_between(
        self, operator: str, nodes: tuple[ast.expr, ast.expr], signs: tuple[str, str]
    ) -> None:
        """Change the sign that stands between two expressions."""
        left, right = nodes
        start, end = self._span(left)[1], self._span(right)[0]
        old, new = signs
        pattern = r"\s+".join(map(re.escape, old.split()))
        pattern = rf"\b{pattern}\b" if old.isidentifier() or " " in old else pattern
        between = re.search(pattern, self._text[start:end].decode())
        if between is not None:
            place = start + between.start(), start + between.end()
            self._put_at(operator, place, new)

    # What is not code of the play.

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave out texts with fields: messages, whose fields Python 3.11 does not place."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave out assertions, which tell type checkers what is known."""

    def visit_arguments(self, node: ast.arguments) -> None:
        """Look at defaults, and not at annotations."""
        for default in (*node.defaults, *node.kw_defaults):
            if default is not None:
                self.visit(default)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Look at the body, unless it is a protocol."""
        if not any("Protocol" in ast.unparse(base) for base in node.bases):
            self._names.append(node.name)
            self._visit_all(node.body)
            self._names.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Look at defaults and body, and not at decorators."""
        self._names.append(node.name)
        self.visit(node.args)
        self._visit_all(node.body)
        self._names.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Raise(self, node: ast.Raise) -> None:
        """Do not raise; the text of the error is left out."""
        self._put("statement", node, "pass")

    def visit_Call(self, node: ast.Call) -> None:
        """Swap the first two arguments; leave out what only readers or type checkers see."""
        name = ast.unparse(node.func).split(".")[-1]
        if name in _FOR_TYPES or _FOR_READERS.search(name):
            return
        if name in _DANGEROUS:
            return
        if name == "cast":
            self._visit_all(node.args[1:])
            return
        match node.args:
            case [first, second, *_] if name not in _NEVER_SWAPPED and not any(
                isinstance(each, ast.Starred) for each in (first, second)
            ):
                between = self._text[self._span(first)[1] : self._span(second)[0]].decode()
                swapped = self._source(second) + between + self._source(first)
                self._put_at("arguments", (self._span(first)[0], self._span(second)[1]), swapped)
        self.generic_visit(node)

    def _visit_all(self, nodes: Sequence[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    # Statements.

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave out a call, and not a docstring."""
        if isinstance(node.value, ast.Constant):
            return
        if not isinstance(node.value, ast.Yield | ast.YieldFrom):
            self._put("statement", node, "pass")
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Leave out what is set on an object."""
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if names & {"__all__", "__slots__"}:
            return
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._put("statement", node, "pass")
        self._visit_all([*node.targets, node.value])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Look at the value, unless it is a type."""
        if node.value is not None and "TypeAlias" not in ast.unparse(node.annotation):
            if not isinstance(node.target, ast.Name):
                self._put("statement", node, "pass")
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Calculate otherwise."""
        if (signs := _CALCULATED.get(type(node.op))) is not None:
            augmented = signs[0] + "=", signs[1] + "="
            self._put_between("arithmetic", (node.target, node.value), augmented)
        self._put("statement", node, "pass")
        self.visit(node.value)

    def visit_Delete(self, node: ast.Delete) -> None:
        """Leave it there."""
        self._put("statement", node, "pass")

    def visit_Return(self, node: ast.Return) -> None:
        """Return nothing."""
        if node.value is not None:
            self._put("return", node, "return None")
            self.visit(node.value)

    def visit_Break(self, node: ast.Break) -> None:
        """Go on."""
        self._put("loop", node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        """End the loop."""
        self._put("loop", node, "break")

    def visit_If(self, node: ast.If) -> None:
        """Do the opposite."""
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self._negate(node.test)
            self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        """Do the opposite."""
        self._negate(node.test)
        self.generic_visit(node)

    # Expressions.

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Choose the other."""
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Keep the others."""
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        # What one comparison says is turned round as a comparison.
        is_turned = isinstance(test, ast.Compare) and (
            len(test.ops) == 1 and not isinstance(test.ops[0], _BOUNDARIES)
        )
        if not is_turned and not isinstance(test, ast.UnaryOp):
            self._put("condition", test, f"not ({self._source(test)})")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Leave out a sign or a negation."""
        operator = "condition" if isinstance(node.op, ast.Not) else "sign"
        self._put(operator, node, f"({self._source(node.operand)})")
        self.visit(node.operand)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Move a boundary, or compare for the opposite."""
        operands = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            self._put_between("comparison", (left, right), _COMPARED[type(op)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Calculate otherwise."""
        if (signs := _CALCULATED.get(type(node.op))) is not None:
            self._put_between("arithmetic", (node.left, node.right), signs)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Join otherwise."""
        signs = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for pair in zip(node.values, node.values[1:], strict=False):
            self._put_between("boolean", pair, signs)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Change it."""
        for new in _other_constants(node.value):
            self._put("constant", node, new)


def _other_constants(value: object) -> Iterator[str]:
    match value:
        case bool():
            yield repr(not value)
        case int() | float():
            yield repr(value + 1)
        case str() if _KEY.fullmatch(value):
            yield f'"XX{value}"'
