"""Printing: statements of an AST as source text, with comments. The only module that imports astor."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

with warnings.catch_warnings():  # astor names node classes that Python 3.12 deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from astor.code_gen import SourceGenerator


class _Generator(SourceGenerator):  # type: ignore[misc]
    """astor's generator, with numbers printed by ``repr`` (astor's own way is deprecated in Python 3.12)."""

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if value is Ellipsis:
            self.write("...")
        elif isinstance(value, float) and value != value:
            self.write('float("nan")')
        elif isinstance(value, float) and value in (float("inf"), float("-inf")):
            self.write('float("inf")' if value > 0 else '-float("inf")')
        else:
            self.write(repr(value))


def text(node: ast.AST) -> str:
    """One statement or expression as source, on one line."""
    return _simple(node) or _by_astor(node)


def _simple(node: ast.AST) -> str | None:
    """Names, numbers, and calls and assignments of such, in a tenth of astor's time: most of a long function is that."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant):
        return repr(node.value) if type(node.value) in (int, bool) else None
    if isinstance(node, ast.Attribute):
        owner = None if isinstance(node.value, ast.Constant) else _simple(node.value)
        return owner and f"{owner}.{node.attr}"
    if isinstance(node, ast.Call) and not node.keywords:
        function, *args = [_simple(part) for part in (node.func, *node.args)]
        return f"{function}({', '.join(args)})" if function and all(args) else None  # type: ignore[arg-type]
    if isinstance(node, ast.Expr):
        return _simple(node.value)
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = _simple(node.targets[0]), _simple(node.value)
        return target and value and f"{target} = {value}"
    return None


def _by_astor(node: ast.AST) -> str:
    generator = _Generator("    ")
    generator.visit(ast.Expr(node) if isinstance(node, ast.expr) else node)  # a statement needs no parentheses
    generator.result.append("\n")
    return "".join(generator.result).strip()


class Origin(NamedTuple):
    """Where a statement is from: the user's ``(file, line)``, and the pass that wrote it (None: the function itself).

    ``hidden``: it computes what masks alone choose from.
    """

    line: tuple[str, int] | None
    phase: str | None
    hidden: bool = False


class Row(NamedTuple):
    """A line of source."""

    text: str
    origin: Origin | None


@dataclass
class Line:
    """A simple statement, with a comment at its end."""

    node: ast.stmt
    comment: str = ""
    origin: Origin | None = None


@dataclass
class Comment:
    """A comment on a line of its own."""

    text: str


@dataclass
class If:
    """``if test: body``; what follows it in the enclosing block is the other side, unless ``orelse`` is given."""

    test: ast.expr
    body: list[Any] = field(default_factory=list)
    orelse: list[Any] = field(default_factory=list)
    comment: str = ""
    origin: Origin | None = None


@dataclass
class For:
    """``for target in over: body``."""

    target: ast.expr
    over: ast.expr
    body: list[Any] = field(default_factory=list)
    origin: Origin | None = None


@dataclass
class While:
    """``while test: body``."""

    test: ast.expr
    body: list[Any] = field(default_factory=list)
    origin: Origin | None = None


@dataclass
class With:
    """``with manager: body``."""

    manager: ast.expr
    body: list[Any]
    origin: Origin | None = None


@dataclass
class Def:
    """``def head: body``, a function within, and the statement that calls it: until then what it reads is needed."""

    head: str
    body: list[Any]
    use: ast.stmt
    origin: Origin | None = None


Block = Sequence[Line | Comment | If | For | While | With | Def]


def source(header: str, docstring: str, body: Sequence[Row]) -> str:
    """A function's source: ``def header:``, docstring, body."""
    lines = [f"def {header}:"]
    if docstring:
        lines += _docstring(docstring)
    return "\n".join([*lines, *(row.text for row in body)]) + "\n"


def statements(body: Block) -> list[Row]:
    """The lines of a function's body."""
    rows: list[Row] = []
    _block(body, 1, rows)
    return rows


def _docstring(docstring: str) -> list[str]:
    rows = docstring.replace("\\", "\\\\").replace('"""', "'''").splitlines()
    if len(rows) == 1:
        return [f'    """{rows[0]}"""']
    return [f'    """{rows[0]}', *(f"    {row}".rstrip() for row in rows[1:]), '    """']


def _block(body: Block, depth: int, rows: list[Row]) -> None:
    indent = "    " * depth
    for item in body:
        if isinstance(item, Comment):
            rows.append(Row(f"{indent}# {item.text}", None))
        elif isinstance(item, Line):
            rows.append(Row(indent + text(item.node) + _remark(item.comment), item.origin))
        elif isinstance(item, For):
            rows.append(Row(f"{indent}for {text(item.target)} in {text(item.over)}:", item.origin))
            _block(item.body, depth + 1, rows)
        elif isinstance(item, While):
            rows.append(Row(f"{indent}while {text(item.test)}:", item.origin))
            _block(item.body, depth + 1, rows)
        elif isinstance(item, With):
            rows.append(Row(f"{indent}with {text(item.manager)}:", item.origin))
            _block(item.body, depth + 1, rows)
        elif isinstance(item, Def):
            rows.append(Row(f"{indent}def {item.head}:", item.origin))
            _block(item.body, depth + 1, rows)
            rows.append(Row(indent + text(item.use), item.origin))
        else:
            rows.append(Row(f"{indent}if {text(item.test)}:{_remark(item.comment)}", item.origin))
            _block(item.body, depth + 1, rows)
            if item.orelse:
                rows.append(Row(f"{indent}else:", item.origin))
                _block(item.orelse, depth + 1, rows)


def _remark(comment: str) -> str:
    return f"  # {comment}" if comment else ""
