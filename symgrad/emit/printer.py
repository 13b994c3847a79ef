"""Printing: statements of an AST as source text, with comments. The only module that imports astor."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

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
    generator = _Generator("    ")
    generator.visit(ast.Expr(node) if isinstance(node, ast.expr) else node)  # a statement needs no parentheses
    generator.result.append("\n")
    return "".join(generator.result).strip()


@dataclass
class Line:
    """A simple statement, with a comment at its end."""

    node: ast.stmt
    comment: str = ""


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


@dataclass
class For:
    """``for target in over: body``."""

    target: ast.expr
    over: ast.expr
    body: list[Any] = field(default_factory=list)


@dataclass
class While:
    """``while test: body``."""

    test: ast.expr
    body: list[Any] = field(default_factory=list)


Block = Sequence[Line | Comment | If | For | While]


def source(header: str, docstring: str, body: Block) -> str:
    """A function's source: ``def header:``, docstring, body."""
    lines = [f"def {header}:"]
    if docstring:
        lines += _docstring(docstring)
    return "\n".join([*lines, *statements(body)]) + "\n"


def statements(body: Block) -> list[str]:
    """The lines of a function's body."""
    lines: list[str] = []
    _block(body, 1, lines)
    return lines


def _docstring(docstring: str) -> list[str]:
    rows = docstring.replace("\\", "\\\\").replace('"""', "'''").splitlines()
    if len(rows) == 1:
        return [f'    """{rows[0]}"""']
    return [f'    """{rows[0]}', *(f"    {row}".rstrip() for row in rows[1:]), '    """']


def _block(body: Block, depth: int, lines: list[str]) -> None:
    indent = "    " * depth
    for item in body:
        if isinstance(item, Comment):
            lines.append(f"{indent}# {item.text}")
        elif isinstance(item, Line):
            lines.append(indent + text(item.node) + (f"  # {item.comment}" if item.comment else ""))
        elif isinstance(item, For):
            lines.append(f"{indent}for {text(item.target)} in {text(item.over)}:")
            _block(item.body, depth + 1, lines)
        elif isinstance(item, While):
            lines.append(f"{indent}while {text(item.test)}:")
            _block(item.body, depth + 1, lines)
        else:
            lines.append(f"{indent}if {text(item.test)}:" + (f"  # {item.comment}" if item.comment else ""))
            _block(item.body, depth + 1, lines)
            if item.orelse:
                lines.append(f"{indent}else:")
                _block(item.orelse, depth + 1, lines)
