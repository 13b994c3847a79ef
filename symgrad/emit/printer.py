"""Printing: statements of an AST as source text, with comments. The only module that imports astor."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

with warnings.catch_warnings():  # astor names node classes that Python 3.12 deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from astor.code_gen import SourceGenerator


class _Generator(SourceGenerator):  # type: ignore[misc]
    """astor's generator, with numbers printed by ``repr`` (astor's own way is deprecated in Python 3.12)."""

    def visit_Constant(self, node: ast.Constant) -> None:
        self.write(_constant(node))


def text(node: ast.AST) -> str:
    """One statement or expression as source, on one line."""
    try:
        return _bare(node)
    except KeyError:
        return _by_astor(node)


def _by_astor(node: ast.AST) -> str:
    generator = _Generator("    ")
    generator.visit(ast.Expr(node) if isinstance(node, ast.expr) else node)  # a statement needs no parentheses
    generator.result.append("\n")
    return "".join(generator.result).strip()


# -- what most of a long function is, in a tenth of astor's time -------------------------------------------------------

# how tightly the parts of an expression hold together
_NOT, _COMPARED, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM, _OWNER = range(1, 9)
_SIGNS: dict[type[ast.AST], tuple[str, int]] = {
    ast.Add: (" + ", _SUM), ast.Sub: (" - ", _SUM), ast.Mult: (" * ", _PRODUCT), ast.Div: (" / ", _PRODUCT),
    ast.MatMult: (" @ ", _PRODUCT), ast.Pow: (" ** ", _POWER), ast.USub: ("-", _SIGN), ast.Not: ("not ", _NOT),
    ast.Lt: (" < ", _COMPARED), ast.LtE: (" <= ", _COMPARED), ast.Gt: (" > ", _COMPARED), ast.GtE: (" >= ", _COMPARED),
    ast.Eq: (" == ", _COMPARED), ast.NotEq: (" != ", _COMPARED),
}  # fmt: skip


def _simple(node: Any, least: int = 0) -> str:
    """A node, in parentheses where it holds together less than ``least``; ``KeyError`` for what is left to astor."""
    kind = type(node)
    return node.id if kind is ast.Name else _SIMPLE[kind](node, least)


def _bare(node: ast.AST) -> str:
    """A node where a tuple needs no parentheses."""
    return _listed(node.elts) if type(node) is ast.Tuple and node.elts else _simple(node)


def _listed(nodes: Sequence[ast.expr]) -> str:
    """The items of a tuple."""
    return ", ".join([_simple(node) for node in nodes]) + ("," if len(nodes) == 1 else "")


def _constant(node: ast.Constant, least: int = 0) -> str:
    value = node.value
    if value is Ellipsis:
        return "..."
    if isinstance(value, float) and value != value:
        return 'float("nan")'
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return 'float("inf")' if value > 0 else '-float("inf")'
    return f"({value!r})" if least == _OWNER and isinstance(value, (int, float, complex)) else repr(value)


def _call(node: ast.Call, least: int) -> str:
    given = [arg.id if type(arg) is ast.Name else _simple(arg) for arg in node.args]
    for item in node.keywords:
        given.append(f"{'**' if item.arg is None else f'{item.arg}='}{_simple(item.value)}")
    return f"{_simple(node.func, _OWNER)}({', '.join(given)})"


def _binary(node: ast.BinOp, least: int) -> str:
    sign, level = _SIGNS[type(node.op)]
    left, right = (_ATOM, _SIGN) if level == _POWER else (level, level + 1)
    return _held(f"{_simple(node.left, left)}{sign}{_simple(node.right, right)}", level, least)


def _unary(node: ast.UnaryOp, least: int) -> str:
    sign, level = _SIGNS[type(node.op)]
    return _held(f"{sign}{_simple(node.operand, level)}", level, least)


def _compared(node: ast.Compare, least: int) -> str:
    sides = [_simple(side, _COMPARED + 1) for side in (node.left, *node.comparators)]
    signs = [_SIGNS[type(op)][0] for op in node.ops]
    return _held("".join([part for pair in zip(sides, [*signs, ""], strict=True) for part in pair]), _COMPARED, least)


def _held(shown: str, level: int, least: int) -> str:
    return f"({shown})" if level < least else shown


def _slice(node: ast.Slice, least: int) -> str:
    lower, upper = ("" if end is None else _simple(end) for end in (node.lower, node.upper))
    return f"{lower}:{upper}" + ("" if node.step is None else f":{_simple(node.step)}")


_SIMPLE: dict[type[ast.AST], Callable[[Any, int], str]] = {
    ast.Name: lambda node, least: node.id,
    ast.Constant: _constant,
    ast.Attribute: lambda node, least: f"{_simple(node.value, _OWNER)}.{node.attr}",
    ast.Call: _call,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compared,
    ast.Tuple: lambda node, least: f"({_listed(node.elts)})",
    ast.List: lambda node, least: f"[{', '.join([_simple(item) for item in node.elts])}]",
    ast.Subscript: lambda node, least: f"{_simple(node.value, _OWNER)}[{_bare(node.slice)}]",
    ast.Slice: _slice,
    ast.Expr: lambda node, least: _bare(node.value),
    ast.Assign: lambda node, least: " = ".join(map(_bare, (*node.targets, node.value))),
    ast.AugAssign: lambda node, least: f"{_simple(node.target)}{_SIGNS[type(node.op)][0].rstrip()}= {_bare(node.value)}",
    ast.Raise: lambda node, least: f"raise {_simple(node.exc)}",
    ast.Return: lambda node, least: f"return {_bare(node.value)}",
    ast.Delete: lambda node, least: f"del {', '.join([_simple(item) for item in node.targets])}",
}


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
    shown: str | None = None

    def text(self) -> str:
        """The statement as source, from when on it stays as it is."""
        if self.shown is None:
            self.shown = text(self.node)
        return self.shown


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
    """``for target in over: body``, about so many ``turns``."""

    target: ast.expr
    over: ast.expr
    body: list[Any] = field(default_factory=list)
    origin: Origin | None = None
    turns: int = 1


@dataclass
class While:
    """``while test: body``, about so many ``turns``."""

    test: ast.expr
    body: list[Any] = field(default_factory=list)
    origin: Origin | None = None
    turns: int = 1


@dataclass
class With:
    """``body`` with another handling of NumPy's errors: ``begin`` names what begins it and gives what there was before,
    which ``before`` names."""

    begin: str
    before: str
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
            rows.append(Row(indent + item.text() + _remark(item.comment), item.origin))
        elif isinstance(item, For):
            rows.append(Row(f"{indent}for {text(item.target)} in {text(item.over)}:", item.origin))
            _block(item.body, depth + 1, rows)
        elif isinstance(item, While):
            rows.append(Row(f"{indent}while {text(item.test)}:", item.origin))
            _block(item.body, depth + 1, rows)
        elif isinstance(item, With):
            rows.append(Row(f"{indent}{item.before} = {item.begin}()", item.origin))
            rows.append(Row(f"{indent}try:", item.origin))
            _block(item.body, depth + 1, rows)
            rows.append(Row(f"{indent}finally:", item.origin))
            rows.append(Row(f"{indent}    runtime.end({item.before})", item.origin))
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
