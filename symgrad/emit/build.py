"""A program as Python: which values become variables, in which order, in which branch, and how each is spelled.

An operation prints as a call of its NumPy function unless the table ``SPELLINGS`` knows better (operators, indexing,
methods). Values that are used once and have no name of the user's are inlined while the expression stays short. In-place
writes into a buffer that nobody else reads print as statements.
"""

from __future__ import annotations

import ast
import cmath
import functools
import itertools
import linecache
import math
import operator
import os
import re
import weakref
from collections import Counter, deque
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad import runtime
from symgrad.emit.names import Names
from symgrad.emit.printer import Comment, For, If, Line, Origin, While, source, statements, text
from symgrad.emit.tidy import names_in
from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Node, ancestors, name_of
from symgrad.ops import create, engine, index
from symgrad.ops.core import REGISTRY, Op
from symgrad.ops.elementwise import operator_power
from symgrad.optimize.pipeline import improve
from symgrad.optimize.rewriting import const
from symgrad.program import Branch, Leaf, Program, Tree, leaves_of, preorder
from symgrad.pytree import LEAF, TreeDef
from symgrad.transform.loop import Body, Loop
from symgrad.transform.solver import Called, Solver

Expr = ast.expr
LONGEST = 10  # operations inlined into one expression
WIDE = 72  # characters of an expression that is inlined, and of one that has a name of its own to go by
SHORT = 24
LONG = 90  # characters of a returned expression


@dataclass
class Signature:
    """How the generated function is called: its parameters as source, and where each input comes from.

    ``access[i]`` is the name and path of input ``i``, such as ``("params", (("item", "w"),))``.
    """

    name: str
    parameters: str
    names: list[str]
    access: dict[Any, tuple[str, tuple[tuple[str, Any], ...]]]
    doc: str


@dataclass
class Code:
    """Generated source, the lines of its body alone, where each is from, and what its names stand for besides ``np``.

    ``python``: it computes with Python's numbers, which raise where NumPy's become infinite.
    """

    source: str
    body: list[str]
    origins: list[Origin | None]
    namespace: dict[str, Any]
    python: bool = False
    before: str = ""  # the sources of functions that it hands on, for readers


def defined(code: Code, title: str) -> Any:
    """The function of this name that code defines."""
    namespace = {"np": np, "runtime": runtime, **code.namespace}
    filename = execute(code.source, title, namespace)
    weakref.finalize(namespace[title], linecache.cache.pop, filename, None)
    return namespace[title]


def execute(text: str, title: str, namespace: dict[str, Any]) -> str:
    """Run source; the name of the file that tracebacks show it in."""
    filename = f"<symgrad {title} {next(_serial)}>"
    exec(compile(text, filename, "exec"), namespace)
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    return filename


_serial = itertools.count(1)


def build(program: Program, signature: Signature, *, fresh: bool = True) -> Code:
    """The program as the source of one function.

    ``fresh`` makes every result an array of its own, C-contiguous: the function that runs needs it, a reader does not.
    """
    return Builder(program, signature, fresh).build()


# -- small AST makers ----------------------------------------------------------------------------------------------


def name(text: str) -> Expr:
    """``a.b.c`` as an expression."""
    if "." not in text:
        return ast.Name(text, ast.Load())
    first, *rest = text.split(".")
    result: Expr = ast.Name(first, ast.Load())
    for part in rest:
        result = ast.Attribute(result, part, ast.Load())
    return result


def call(function: str | Expr, *args: Expr, **keywords: Expr) -> Expr:
    """A call."""
    target = name(function) if isinstance(function, str) else function
    return ast.Call(target, list(args), [ast.keyword(key, value) for key, value in keywords.items()])


def method(owner: Expr, attribute: str, *args: Expr, **keywords: Expr) -> Expr:
    """A method call."""
    return call(ast.Attribute(owner, attribute, ast.Load()), *args, **keywords)


def literal(value: Any) -> Expr:
    """A static parameter as an expression: numbers, strings, tuples, dtypes, slices."""
    if isinstance(value, np.dtype):
        if value.char in "gG":  # their own names hang on the machine
            return name("np.longdouble" if value.char == "g" else "np.clongdouble")
        known = name_of(value)
        return name(f"np.{known}") if known in np.sctypeDict else call("np.dtype", ast.Constant(value.str))
    if isinstance(value, type) and issubclass(value, np.generic):
        return literal(np.dtype(value))
    if isinstance(value, type):
        return name(value.__name__)
    if isinstance(value, (tuple, list)):
        return ast.Tuple([literal(item) for item in value], ast.Load())
    if isinstance(value, (np.bool_, np.integer, np.floating, np.complexfloating)):
        return call(literal(value.dtype), _digits(value))
    return number(value)


def _digits(value: Any) -> Expr:
    """What a NumPy number is made of: a Python number; text where that has too few digits."""
    if isinstance(value, np.clongdouble):
        return ast.BinOp(literal(value.real), ast.Add(), ast.BinOp(ast.Constant(1j), ast.Mult(), literal(value.imag)))
    return ast.Constant(str(value)) if isinstance(value, np.longdouble) else number(value.item())


def number(value: Any) -> Expr:
    """A Python constant; negative numbers as a minus sign, inf and nan through NumPy."""
    if isinstance(value, float) and not math.isfinite(value):
        text = "np.nan" if math.isnan(value) else "np.inf"
        return ast.UnaryOp(ast.USub(), name(text)) if value == -math.inf else name(text)
    if (isinstance(value, float) and math.copysign(1.0, value) < 0) or (isinstance(value, int) and value < 0):
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    if isinstance(value, complex) and not _is_of_two_literals(value):
        return call("complex", number(value.real), number(value.imag))
    if isinstance(value, complex) and value.real != 0:
        sign: ast.operator = ast.Sub() if np.copysign(1.0, value.imag) < 0 else ast.Add()
        return ast.BinOp(number(value.real), sign, ast.Constant(complex(0, abs(value.imag))))
    return ast.Constant(value)


def _is_of_two_literals(value: complex) -> bool:
    """Whether ``a + bj`` is the number: not with a minus before a zero, which sums drop, nor what is infinite or no number."""
    return cmath.isfinite(value) and not any([part == 0 and math.copysign(1.0, part) < 0 for part in (value.real, value.imag)])


_WRITTEN = (str, bytes, bool, int, float, complex, type(None), type(...), np.bool_)


def _is_written(key: Any) -> bool:
    """Whether a dict's key has a literal that makes it; a member of an ``Enum``, even of texts, has none."""
    return all(map(_is_written, key)) if type(key) is tuple else type(key) in _WRITTEN or isinstance(key, np.number)


# -- spellings -----------------------------------------------------------------------------------------------------

Spelling = Callable[["Builder", Node, list[Expr]], Expr]
SPELLINGS: dict[Any, Spelling] = {}


def spelling(*keys: Any) -> Callable[[Spelling], Spelling]:
    """Put a spelling into the table, for operations given by NumPy function or by op."""

    def register(rule: Spelling) -> Spelling:
        for key in keys:
            SPELLINGS[key if isinstance(key, Op) else REGISTRY[key]] = rule
        return rule

    return register


def _binary(operation: ast.operator) -> Spelling:
    def spell(b: Builder, node: Node, args: list[Expr]) -> Expr:
        left, right = node.args
        numpys = node.aval.kind != "python" and right.aval == ((), float, "scalar")
        if numpys and left.aval.kind == "python" and left.aval.dtype.kind == "c":
            return ast.BinOp(call("np.complex128", args[0]), operation, args[1])  # or Python takes float64 for a float
        return ast.BinOp(args[0], operation, args[1])

    return spell


def _compare(operation: ast.cmpop) -> Spelling:
    return lambda b, node, args: ast.Compare(args[0], [operation], [args[1]])


def _unary(operation: ast.unaryop) -> Spelling:
    return lambda b, node, args: ast.UnaryOp(operation, args[0])


def index_of(spec: index.Spec, arrays: Sequence[Expr]) -> Expr:
    parts: list[Expr] = []
    for part in spec:
        if type(part) is index.Hole:
            parts.append(arrays[part.number])
        elif type(part) is index.Window:
            start = arrays[part.number]
            parts.append(ast.Slice(_moved(start, part.first), _moved(start, part.first + part.width)))
        elif type(part) is index.Cut:
            parts.append(_slice(arrays[part.start], arrays[part.stop]))
        elif type(part) is index.Slice:
            ends = [None if end is None else number(end) for end in part]
            parts.append(ast.Slice(*ends))
        else:
            parts.append(number(part))
    return parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())


def _slice(start: Expr, stop: Expr) -> ast.Slice:
    """``start:stop``."""
    return ast.Slice(None if _is_zero(start) else start, stop)


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, ast.Constant) and expr.value == 0


def narrowed(array: Expr, start: Expr, stop: Expr, node: Node) -> Expr:
    """``x[start:stop]``; of ``x[i, :]``, ``x[i, start:stop]``; what is computed of slices alone is that already."""
    if node.op is index.SLICED:
        return array
    part = _slice(start, stop)
    if isinstance(array, ast.Subscript) and isinstance(array.slice, ast.Tuple):
        whole = [isinstance(item, ast.Slice) for item in array.slice.elts]
        if sum(whole) == 1 and text(array.slice.elts[whole.index(True)]) == ":":
            parts = [part if is_slice else item for is_slice, item in zip(whole, array.slice.elts, strict=True)]
            return ast.Subscript(array.value, ast.Tuple(parts, ast.Load()), ast.Load())
    return _subscript(array, part)


def _moved(start: Expr, steps: int) -> Expr:
    """So many places further, or back."""
    return ast.BinOp(start, ast.Add() if steps > 0 else ast.Sub(), number(abs(steps))) if steps else start


def _subscript(base: Expr, where: Expr) -> Expr:
    return ast.Subscript(base, where, ast.Load())


def default_spelling(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``np.function(a, b, option=value)``, an ``op`` of the user's by its name, or a solver with functions."""
    op = node.op
    if isinstance(op, Solver):
        functions = [name(b.function(called)) for called in op.called]
        others = {"args": ast.Tuple(args[op.many :], ast.Load())} if len(args) > op.many else {}
        options = {key: b.option(key, value) for key, value in op.options.items()}
        return call(b.bind(op.run.__name__, op.run), *functions, *args[: op.many], **others, **options)
    keywords = {key: literal(value) for key, value in node.params}
    own = op.key if op.anew and not b.fresh else op.fun  # readers see the user's function itself
    if op.name.startswith("math."):
        function = op.name.replace("math", b.bind("math", math), 1)
    else:
        function = op.name if op.name.startswith(("np.", "runtime.")) else b.bind(op.name, own)
    if op.variadic and op.fun is not op.key:  # NumPy's take a list
        args = [ast.List(args, ast.Load())]
    return call(function, *args, **keywords)


for ufunc, operation in {
    np.add: ast.Add(), np.subtract: ast.Sub(), np.multiply: ast.Mult(), np.true_divide: ast.Div(),
    np.floor_divide: ast.FloorDiv(), np.remainder: ast.Mod(), np.matmul: ast.MatMult(),
    np.bitwise_and: ast.BitAnd(), np.bitwise_or: ast.BitOr(), np.bitwise_xor: ast.BitXor(),
    np.left_shift: ast.LShift(), np.right_shift: ast.RShift(),
}.items():  # fmt: skip
    spelling(ufunc)(_binary(operation))


@spelling(index.DOT)
def dot(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``np.dot(x[:i], y[:i])``."""
    x, y, start, stop = args
    return call("np.dot", narrowed(x, start, stop, node.args[0]), narrowed(y, start, stop, node.args[1]))


@spelling(index.SLICED)
def sliced(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``multiply(x[:i], y[:i])``."""
    *parts, start, stop = args
    of = dict(node.params)["of"]
    pairs = zip(parts, node.args, strict=False)
    parts = [narrowed(part, start, stop, arg) if arg.aval.shape else part for part, arg in pairs]
    return call(b.bind(of.__name__, of), *parts)


@spelling(engine.RANGE)
def ranged(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``range(i)``."""
    return call("range", *(args[1:] if len(args) == 2 and _is_zero(args[0]) else args))


@spelling(np.power)
def power(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """As an operator, where NumPy takes that for the same function."""
    x, exponent = node.args
    known = dict(exponent.params)["value"] if exponent.op is CONST and x.aval.kind == "array" else None
    if operator_power(np.empty(0, x.aval.dtype), known) is not None:
        return default_spelling(b, node, args)
    return _binary(ast.Pow())(b, node, args)


for ufunc, comparison in {
    np.less: ast.Lt(), np.less_equal: ast.LtE(), np.greater: ast.Gt(), np.greater_equal: ast.GtE(),
    np.equal: ast.Eq(), np.not_equal: ast.NotEq(),
}.items():  # fmt: skip
    spelling(ufunc)(_compare(comparison))
for ufunc, sign in {np.negative: ast.USub(), np.positive: ast.UAdd(), np.invert: ast.Invert()}.items():
    spelling(ufunc)(_unary(sign))


@spelling(np.abs)
def absolute(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """Of a Python number, Python's: it stays one."""
    return call("abs" if node.args[0].aval.kind == "python" else "np.abs", *args)


@spelling(index.GETITEM)
def getitem(b: Builder, node: Node, args: list[Expr]) -> Expr:
    base = args[0] if node.args[0].aval.kind == "array" else call("np.asarray", args[0])  # code may have it as Python's
    return _subscript(base, index_of(dict(node.params)["spec"], args[1:]))


@spelling(index.COMBINED_AT)
def combined_at(b: Builder, node: Node, args: list[Expr]) -> Expr:
    spec, by = dict(node.params)["spec"], dict(node.params)["by"]
    return call("runtime.combined_at", *args[:2], _as_value(index_of(spec, args[2:])), ast.Constant(by))


@spelling(index.LAST_WRITE)
def last_write(b: Builder, node: Node, args: list[Expr]) -> Expr:
    return call("runtime.last_write", args[0], _as_value(index_of(dict(node.params)["spec"], args[1:])))


@spelling(engine.WITHIN)
@spelling(engine.AGAIN)
def again(b: Builder, node: Node, args: list[Expr]) -> Expr:
    return args[0]


@spelling(engine.ITEM)
def item(b: Builder, node: Node, args: list[Expr]) -> Expr:
    return _subscript(args[0], ast.Constant(dict(node.params)["item"]))


@spelling(engine.ASTYPE)
def astype(b: Builder, node: Node, args: list[Expr]) -> Expr:
    dtype = literal(dict(node.params)["dtype"])
    if node.args[0].aval.kind == "python":
        return call(dtype, args[0])
    return method(args[0], "astype", dtype)


@spelling(engine.TO_PYTHON)
def to_python(b: Builder, node: Node, args: list[Expr]) -> Expr:
    kinds = {"f": "float", "c": "complex", "i": "int", "u": "int", "b": "bool"}
    if node.args[0].aval.shape or node.aval.kind != "python":  # of a long double, .item() is one
        return method(args[0], "item")
    return call(kinds[node.aval.dtype.kind], args[0])


@spelling(engine.TO_NUMPY)
def to_numpy(b: Builder, node: Node, args: list[Expr]) -> Expr:
    return call(literal(node.aval.dtype), args[0])


@spelling(engine.TO_ARRAY)
def to_array(b: Builder, node: Node, args: list[Expr]) -> Expr:
    return call("np.array", args[0])


@spelling(engine.TO_FLOAT)
def to_float(b: Builder, node: Node, args: list[Expr]) -> Expr:
    return call("float", args[0])


@spelling(engine.INT)
def to_int(b: Builder, node: Node, args: list[Expr]) -> Expr:
    return call("int", args[0])


@spelling(engine.BOOL)
def to_bool(b: Builder, node: Node, args: list[Expr]) -> Expr:
    return call("bool", args[0])


@spelling(engine.NOT)
def to_not(b: Builder, node: Node, args: list[Expr]) -> Expr:
    return ast.UnaryOp(ast.Not(), args[0])


@spelling(engine.AND)
def both(b: Builder, node: Node, args: list[Expr]) -> Expr:
    return ast.BoolOp(ast.And(), args)


@spelling(engine.SIZE)
def size(b: Builder, node: Node, args: list[Expr]) -> Expr:
    return ast.Attribute(args[0], "size", ast.Load())


@spelling(create.ZEROS)
def zeros(b: Builder, node: Node, args: list[Expr]) -> Expr:
    return _zeros(node.aval)


@spelling(create.EYE)
def eye(b: Builder, node: Node, args: list[Expr]) -> Expr:
    params = dict(node.params)
    if params["dtype"] == np.float64:
        return call("np.eye", ast.Constant(params["n"]))
    return call("np.eye", ast.Constant(params["n"]), dtype=literal(params["dtype"]))


@spelling(create.FULL)
def full(b: Builder, node: Node, args: list[Expr]) -> Expr:
    params = dict(node.params)
    return call("np.full", literal(_shape(params["shape"])), args[0], literal(params["dtype"]))


@spelling(np.transpose)
def transpose(b: Builder, node: Node, args: list[Expr]) -> Expr:
    if node.args[0].aval.kind != "array":
        return default_spelling(b, node, args)
    axes = dict(node.params).get("axes")
    return ast.Attribute(args[0], "T", ast.Load()) if axes is None else method(args[0], "transpose", literal(axes))


@spelling(np.reshape)
def reshape(b: Builder, node: Node, args: list[Expr]) -> Expr:
    if node.args[0].aval.kind == "array" and {key for key, _ in node.params} == {"shape"}:
        return method(args[0], "reshape", literal(_shape(dict(node.params)["shape"])))
    rest = {key: literal(value) for key, value in node.params if key != "shape"}
    return call("np.reshape", args[0], literal(_shape(dict(node.params)["shape"])), **rest)


@spelling(np.broadcast_to)
def broadcast_to(b: Builder, node: Node, args: list[Expr]) -> Expr:
    return call("np.broadcast_to", args[0], literal(_shape(dict(node.params)["shape"])))


@spelling(np.expand_dims)
def expand_dims(b: Builder, node: Node, args: list[Expr]) -> Expr:
    axis = dict(node.params)["axis"]
    if node.args[0].aval.kind != "array":
        return default_spelling(b, node, args)
    axes = {i % len(node.aval.shape) for i in (axis if isinstance(axis, tuple) else (axis,))}
    parts: list[Expr] = [ast.Constant(None) if i in axes else ast.Slice(None, None, None) for i in range(len(node.aval.shape))]
    return _subscript(args[0], parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load()))


@spelling(np.einsum)
def einsum(b: Builder, node: Node, args: list[Expr]) -> Expr:
    params = dict(node.params)
    keywords = {key: literal(value) for key, value in params.items() if key != "subscripts"}
    return call("np.einsum", ast.Constant(params["subscripts"]), *args, **keywords)


def _shape(shape: Any) -> Any:
    return shape[0] if isinstance(shape, tuple) and len(shape) == 1 else shape


def _zeros(aval: Aval) -> Expr:
    args = [literal(_shape(aval.shape))]
    if aval.dtype != np.float64:
        args.append(literal(aval.dtype))
    return call("np.zeros", *args)


# operations whose result is a new C-contiguous array whatever their arguments look like
_FRESH_NAMES = {"np.diag", "np.outer", "zeros", "full", "np.eye", "pack"}


class Builder:
    """The state of one build: names given, values already computed, statements so far."""

    add_at = "np.add.at"

    def __init__(self, program: Program, signature: Signature, fresh: bool) -> None:
        self.program, self.signature, self.fresh = program, signature, fresh
        self.nodes = program.nodes()
        self.arrays = dict(program.graph.arrays)  # and those in the bodies of loops
        self.names = Names(set(signature.names))
        self.namespace: dict[str, Any] = {}
        self.bound: dict[int, str] = {}
        self.numbers: dict[Any, Any] = {}
        self.exprs: dict[Node, Expr] = {}
        self.weight: dict[Node, int] = {}
        self.buffers: dict[Node, str] = {}
        self.uses: dict[Node, int] = {}
        self.top = 0  # how many statements only name what is given
        self.handed: dict[Body, str] = {}  # functions that it hands on
        self.before: list[str] = []
        self.results: dict[Node, list[Expr]] = {}  # of loops
        self.returned = Counter[Node]()  # how many results at an end show the memory of a node
        self.filled: dict[Node, list[tuple[tuple[str, Any], ...]]] = {}  # which of them they wrote into, as arrays of their own
        self.together: dict[Node, list[list[int]]] = {}  # of loops: which of what they save lies in one list, as tuples
        self.places: dict[Node, tuple[int, int]] = {}  # of such results: where in the tuples, and how wide those are
        self.lists: dict[int, str] = {}  # of arrays that are there as lists, too, which the namespace holds: where
        self.rows: dict[Node, str] = {}  # of loops that are printed: what an iteration saves, and the row that is for it
        self.stops: dict[Node, Branch] = {}  # ``if``s that do nothing but say that no call has gone this way, and what asks
        self.covered: dict[Node, int] = {}  # of loops in which they are: the flag that is never true, then
        self.hidden: set[Node] = set()  # what masks alone choose from
        self.hiding: set[Node] = set()  # what has that in its expression
        self.outputs = {node for leaf in program.leaves() for node in leaf.nodes()}
        self.common: dict[int, deque[Node]] = {}  # of a tree, by identity: what all its ends need, in order
        self.decided: dict[int, int] = {}  # what may raise an error before it has been decided on: see ``_later``
        self.made: dict[Node, int] = {}
        self.last_phase: str | None = None
        self.loop_phase: str | None = None  # of the loop whose body is printed
        self.lines_shown: set[tuple[str, int]] = set()

    def build(self) -> Code:
        program, signature = self.program, self.signature
        for read in [*(arg for node in self.nodes for arg in reads(node)), *program.roots()]:
            self.uses[read] = self.uses.get(read, 0) + 1
        block: list[Any] = []
        for node in self.nodes:
            if node.op is INPUT:
                self._input(node, block)
        self.top = len(block)
        assert program.root is not None
        self.common = _common(program.root)
        self.decided, self.made = _later(program.root, self.nodes)
        self._tree(program.root, block, set())
        header = f"{signature.name}({signature.parameters})"
        rows = statements(self._finished(block))
        text, origins = [row.text for row in rows], [row.origin for row in rows]
        return Code(source(header, signature.doc, rows), text, origins, self.namespace, before="".join(self.before))

    def _finished(self, block: list[Any]) -> list[Any]:
        """The body of the function, once all of it is there."""
        return block

    def bind(self, wish: str, value: Any) -> str:
        """A name in the generated module for an object: a function of the user's, an array."""
        if id(value) not in self.bound:
            self.bound[id(value)] = self.names.unique(wish)
            self.namespace[self.bound[id(value)]] = value
        return self.bound[id(value)]

    def option(self, wish: str, value: Any) -> Expr:
        """An option of a solver."""
        return name(self.bind(wish, value)) if isinstance(value, dict) else literal(value)

    def function(self, called: Called) -> str:
        """The name of a function that a solver calls."""
        body = called.body
        if body not in self.handed:
            names, wish = Names({"np", "runtime"}), self.names.unique(called.name)
            inputs = [*body.carry, *body.invariants]
            parameters = [names.of(node) for node in inputs]
            access: dict[Any, Any] = {
                dict(node.params)["position"]: (own, ()) for node, own in zip(inputs, parameters, strict=True)
            }
            program, (end,) = Program(), body.after
            program.graph, program.root = body.graph, Leaf([end], TreeDef(LEAF), [end.aval.kind])
            code, made = self._defined(program, Signature(wish, ", ".join(parameters), [*parameters, wish], access, ""))
            self.before.append(f"{code.before}{code.source}\n\n")
            self.handed[body] = wish
            self.namespace[wish] = made
        return self.handed[body]

    def _defined(self, program: Program, signature: Signature) -> tuple[Code, Any]:
        """The code of a function that is handed on, and it."""
        code = build(improve(program, frozenset()), signature, fresh=False)
        return code, defined(code, signature.name)

    def listed(self, array: np.ndarray[Any, Any]) -> str:
        """A name in the generated module for the numbers of an array, as a list."""
        if id(array) not in self.lists:
            self.lists[id(array)] = self.bind("numbers", array.tolist())
        return self.lists[id(array)]

    def _key(self, key: Any) -> Expr:
        """A dict's key."""
        return literal(key) if _is_written(key) else name(self.bind("key", key))

    # ---- inputs ----

    def _input(self, node: Node, block: list[Any]) -> None:
        argument, path = self.signature.access[dict(node.params)["position"]]
        expr = name(argument)
        for step, key in path:
            own, _, way = step.rpartition(" ")
            if own:
                expr = call(f"{own}.__getitem__", expr, self._key(key))
            else:
                expr = ast.Attribute(expr, key, ast.Load()) if way == "attr" else _subscript(expr, self._key(key))
        if path:
            keys = [str(key) for step, key in path]
            wish = node.name or (keys[-1] if keys[-1].isidentifier() else f"{argument}_{'_'.join(keys)}")
            variable = self.names.unique(wish)
            block.append(Line(_assign(variable, expr)))
            expr = name(variable)
        self.exprs[node] = expr
        self.weight[node] = 0

    # ---- the tree ----

    def _tree(self, tree: Tree, block: list[Any], done: set[Node]) -> None:
        """Statements for a tree, into ``block``. One-sided branches continue in the same block, to stay flat."""
        while isinstance(tree, Branch):
            nodes = self._before(tree, done)
            stops = tree.yields and [*tree.cases] == [False] and self._look_for_stops(tree, nodes)
            self._nodes(nodes, block, done)
            self.stops, self.covered = {}, {}
            if stops:
                tree = tree.cases[False]
                continue
            test = self.exprs[tree.node]
            comment = place(tree.line)
            cases = list(tree.cases.items())
            boolean = isinstance(cases[0][0], bool)
            if len(cases) == 1 and boolean:
                value, rest = cases[0]
                unseen = ast.UnaryOp(ast.Not(), test) if value else test
                stop = [Line(self._unexplored(tree, ast.Constant(not value)))]
                block.append(If(unseen, stop, comment=comment, origin=Origin(tree.line, None)))
                tree = rest
                continue
            if boolean:
                (value, first), (_, second) = sorted(cases, key=lambda case: _size(case[1]))
                test = test if value else ast.UnaryOp(ast.Not(), test)
                body: list[Any] = []
                self._side(first, body, done)
                block.append(If(test, body, comment=comment, origin=Origin(tree.line, None)))
                tree = second
                continue
            *cases, (value, rest) = sorted(cases, key=lambda case: _size(case[1])) if len(cases) > 1 else cases
            for other, child in cases:
                body = []
                self._side(child, body, done)
                same = ast.Compare(test, [ast.Eq()], [number(other)])
                block.append(If(same, body, comment=comment, origin=Origin(tree.line, None)))
            unseen = ast.Compare(test, [ast.NotEq()], [number(value)])
            stop = [Line(self._unexplored(tree, test))]
            block.append(If(unseen, stop, comment=comment, origin=Origin(tree.line, None)))
            tree = rest
        self._leaf(tree, block, done)

    def _unexplored(self, branch: Branch, value: Expr) -> ast.stmt:
        """What stands where a value of a branch was not seen yet."""
        message = f"no call has gone this way yet ({place(branch.line)})" if branch.line else "no call has gone this way yet"
        return ast.Raise(call("Unexplored", ast.Constant(message)), None)

    def _side(self, tree: Tree, block: list[Any], done: set[Node]) -> None:
        """One side of a branch; what it computes is not known outside."""
        kept = self._snapshot()
        self._tree(tree, block, set(done))
        self._restore(kept)

    def _snapshot(self) -> Any:
        return dict(self.exprs), dict(self.weight), dict(self.buffers), self.last_phase, set(self.lines_shown)

    def _restore(self, kept: Any) -> None:
        self.exprs, self.weight, self.buffers, self.last_phase, self.lines_shown = kept

    def _before(self, branch: Branch, done: set[Node]) -> list[Node]:
        """What to compute before a branch: what its condition needs, and what every side needs that came earlier."""
        needed, common = ancestors([branch.node], known=done), self.common[id(branch)]
        masks, left = self.decided.get(id(branch), 0), list[Node]()
        while common and common[0].index < branch.node.index:
            (left if masks & self.made.get(common[0], 0) else needed).append(common.popleft())
        common.extendleft(reversed(left))
        return sorted({*needed}.difference(done), key=lambda node: node.index)

    def _leaf(self, leaf: Leaf, block: list[Any], done: set[Node]) -> None:
        self._nodes([node for node in self.common[id(leaf)] if node not in done], block, done)
        for node in leaf.required:
            if self.weight[node]:
                block.append(Line(ast.Expr(self.exprs[node])))
        phases = [node.phase for node in leaf.nodes() if not isinstance(self.exprs[node], ast.Name)]
        if any(phase not in (None, self.last_phase) for phase in phases):
            self.last_phase = next(phase for phase in phases if phase)
            block.append(Comment(self.last_phase))
        self.returned = Counter([_maker(out) for out in leaf.outputs if isinstance(out, Node)])
        outputs, used = iter(zip(leaf.outputs, leaf.kinds, strict=True)), set[Node]()
        result = self._container(leaf.tree, outputs, used)
        if leaf.puts or (len(ast.unparse(result)) > LONG and len(leaf.outputs) > 1):
            self._name_outputs(leaf, block)  # before anything is put anywhere, for they may raise an error
            outputs, used = iter(zip(leaf.outputs, leaf.kinds, strict=True)), set()
            result = self._container(leaf.tree, outputs, used)
        self._put([(place, self._output(*found, used)) for place, found in zip(leaf.puts, outputs, strict=True)], block)
        block.append(Line(ast.Return(result)))
        last = max(leaf.nodes(), key=lambda node: (node.phase is not None, node.index), default=None)
        mark(block[-1:], last, any([node in self.hiding for node in leaf.nodes()]))

    def _put(self, values: list[tuple[Any, Expr]], block: list[Any]) -> None:
        """What a function leaves outside."""
        for place, value in values:
            if place.steps[-1][0] == "append":
                owner, _ = self.signature.access[place.upto(-1)]
                block.append(Line(ast.Expr(method(name(owner), "append", value))))
            else:
                block.append(Line(ast.Assign([self._place(place, ast.Store())], value)))

    def _place(self, place: Any, use: ast.expr_context) -> Expr:
        """A place outside, in an owner that is given."""
        owner, _ = self.signature.access[place.upto(-1)]
        kind, key = place.steps[-1]
        if kind == "item":
            return ast.Subscript(name(owner), self._key(key), use)
        return ast.Attribute(name(owner), "cell_contents" if kind == "cell" else key, use)

    def _name_outputs(self, leaf: Leaf, block: list[Any]) -> None:
        """A line for each result, where all in one are too long to read."""
        for out in leaf.outputs:
            if isinstance(out, Node) and self.weight[out]:
                self._store(out, self.exprs[out], block)

    def _container(self, tree: TreeDef, outputs: Any, used: set[Node]) -> Expr:
        if tree.kind is LEAF:
            out, kind = next(outputs)
            return self._output(out, kind, used)
        if tree.kind is None:
            return ast.Constant(None)
        items = [self._container(child, outputs, used) for child in tree.children]
        if tree.kind is tuple:
            return ast.Tuple(items, ast.Load())
        if tree.kind is list:
            return ast.List(items, ast.Load())
        if tree.kind is dict:
            return ast.Dict([self._key(key) for key in tree.keys], items)
        rebuild = self.bind(f"make_{tree.kind.__name__}", Rebuild(tree))
        return call(rebuild, *items)

    def _output(self, out: Any, kind: str, used: set[Node]) -> Expr:
        if not isinstance(out, Node):
            if out is None or isinstance(out, (str, bool)):
                return ast.Constant(out)
            return name(self.bind("kept", out))
        expr = self.exprs[out]
        again = out in used
        used.add(out)
        if kind == "scalar" and out.aval.kind != "scalar":
            return self._number_of_numpys(out, expr)
        if kind != "array" or (out.op is engine.TO_ARRAY and not isinstance(expr, ast.Name)):
            return expr
        if not out.aval.shape:  # arithmetic on 0-d arrays gives scalars
            return call("np.array", expr)
        if again or self._may_alias(out):
            return method(expr, "copy")
        if self.fresh and len(out.aval.shape) > 1 and not self._is_contiguous(out):
            return call("np.ascontiguousarray", expr)
        return expr

    def _may_alias(self, out: Node) -> bool:
        """Whether a result may share memory with an argument, a constant, or another result."""
        root = _maker(out)
        if _may_alias(root) and root not in self.buffers:
            return True
        return root is not out and self.returned[root] > 1

    def _is_contiguous(self, node: Node) -> bool:
        """Whether a result is surely in C order."""
        return is_contiguous(node)

    def _number_of_numpys(self, out: Node, expr: Expr) -> Expr:
        """Of a 0-d array, which ``np.where`` makes of numbers, or of one of Python's, which a rewrite has put there."""
        if out.aval.kind == "array":
            return _subscript(expr, ast.Tuple([], ast.Load()))
        return call(f"np.{out.aval.dtype.type.__name__}", expr)

    # ---- nodes ----

    def _nodes(self, nodes: list[Node], block: list[Any], done: set[Node]) -> None:
        for node in nodes:
            done.add(node)
            if node in self.exprs:
                continue
            start = len(block)
            if node.op is CONST:
                self.exprs[node] = self._number(dict(node.params)["value"])
                self.weight[node] = 0
            elif node.op is CAPTURED:
                self.exprs[node] = self._captured(node)
                self.weight[node] = 0
            elif node.op is create.ZEROS and node not in self.uses:
                pass  # every write into it makes its own
            elif node in self.stops:
                self._stop(node, block)
            elif isinstance(node.op, Loop):
                self._loop(node, block)
            elif node.op is engine.ITEM and node.args[0] in self.results:
                self.exprs[node], self.weight[node] = self.results[node.args[0]][dict(node.params)["item"]], 0
                if node.params in self.filled.get(node.args[0], ()):
                    self.buffers[node] = text(self.exprs[node])
            elif node.op in index.SCATTERING:
                self._write(node, block)
            else:
                self._value(node, block)
            hides = self._hides(node)
            if hides and not isinstance(self.exprs.get(node), ast.Name):
                self.hiding.add(node)
            mark(block[start:], node, hides)

    def _number(self, value: Any) -> Expr:
        return literal(value)

    def _captured(self, node: Node) -> Expr:
        """An array that the function made itself, without a traced value: as NumPy makes it, where that is plain."""
        array = self.arrays[node]
        shown = _spelled_out(array) if not self.fresh else None
        return shown or name(self.bind(node.name or "const", array))

    def _value(self, node: Node, block: list[Any]) -> None:
        args = [self.exprs[arg] for arg in node.args]
        expr = SPELLINGS.get(node.op, default_spelling)(self, node, args)
        weight = 1 + sum(self.weight[arg] for arg in node.args)
        derived = node.name is not None and node.name.startswith(("g_", "t_"))
        inline = self.uses[node] == 1 and weight <= LONGEST and (not node.name or derived)
        if inline and weight > 2:
            inline = len(ast.unparse(expr)) <= (SHORT if derived and node not in self.outputs else WIDE)
        if is_trivial(node, self.weight):
            inline, weight = True, 0
        if inline:
            self.exprs[node], self.weight[node] = expr, weight
            return
        self._store(node, expr, block)

    def _store(self, node: Node, expr: Expr, block: list[Any]) -> None:
        variable = self.names.of(node)
        statement = _assign(variable, expr)
        block.append(Line(statement, self._comment(node, block, statement)))
        self.exprs[node], self.weight[node] = name(variable), 0

    def _write(self, node: Node, block: list[Any]) -> None:
        """``base[index] = value`` as a statement, in place when the buffer is this code's own and nobody else reads it."""
        params = dict(node.params)
        base = None if node.op is index.SCATTER else node.args[0]
        value, *arrays = [self.exprs[arg] for arg in node.args[base is not None :]]
        index_nodes = node.args[len(node.args) - len(arrays) :]
        several = [n.aval.shape and n.aval.dtype.kind in "iu" for n in index_nodes]
        self._comment(node, block)
        if base is not None and base in self.buffers and self._is_over(base):
            variable = self.buffers[base]
        else:
            variable = self._buffer(node, base, block)
        target = ast.Subscript(name(variable), index_of(params["spec"], arrays), ast.Store())
        for part in params["spec"] if node.args[base is not None].aval.shape else ():
            if type(part) is index.Cut:
                value = narrowed(value, arrays[part.start], arrays[part.stop], node.args[base is not None])
        if node.op is index.SETITEM:
            block.append(Line(ast.Assign([target], value, lineno=0)))
        elif index.may_repeat(params["spec"], several) and not self._unique(index_nodes):
            where = index_of(params["spec"], arrays)
            if self.add_at == Builder.add_at and (shape := _rows_over(node, node.args[base is not None], index_nodes)):
                value = call("np.broadcast_to", value, literal(shape))
            block.append(Line(ast.Expr(call(self.add_at, name(variable), _as_value(where), value))))
        elif node.op is index.SCATTER or (base is not None and base.op is create.ZEROS):
            block.append(Line(ast.Assign([target], value, lineno=0)))
        else:
            block.append(Line(ast.AugAssign(target, ast.Add(), value)))
        self.exprs[node], self.weight[node] = name(variable), 0
        self.buffers[node] = variable

    def _is_over(self, base: Node) -> bool:
        """Whether nothing but the write that comes now needs an array."""
        return self.uses[base] == 1

    def _is_last(self, loop: Node, base: Node) -> bool:
        """Whether nothing but the loop that comes now needs an array."""
        return self._is_over(base)

    def _buffer(self, node: Node, base: Node | None, block: list[Any]) -> str:
        """The variable of the array that a write, and those that follow it, go into."""
        variable = self.names.of(base if base is not None and base.name and not node.name else node)
        block.append(Line(_assign(variable, self._copied(node, base))))
        return variable

    def _copied(self, node: Node, base: Node | None) -> Expr:
        """What a write begins with: an array of its own."""
        if base is None or base.op is create.ZEROS:
            return _zeros(node.aval)
        if not node.aval.shape:
            return call("np.array", self.exprs[base])
        inlined = not isinstance(self.exprs[base], ast.Name) and base.aval.kind == "array"
        return self.exprs[base] if inlined and not _may_alias(base) else method(self.exprs[base], "copy")

    def _unique(self, nodes: Sequence[Node]) -> bool:
        """Whether index arrays surely name no element twice: one of them is a constant without repetitions."""
        if any(n.aval.dtype == bool for n in nodes):  # which stand for as many numbers as they are true
            return False
        shape = np.broadcast_shapes(*[n.aval.shape for n in nodes])
        for n in nodes:
            if n.op is CAPTURED and n.aval.shape == shape and n.aval.dtype.kind in "iu":
                array = self.arrays[n]
                if np.all(array >= 0) and len(np.unique(array)) == array.size:  # -1 may be 0 again
                    return True
        return False

    def _look_for_stops(self, branch: Branch, nodes: list[Node]) -> bool:
        """Whether all that makes a flag true, which is computed now with these ``nodes``, are ``if``s that may as well stop."""
        inner = dict[Node, int]()
        found = [*_flagging(branch.node, None, {*nodes}, inner)]
        self.stops = dict.fromkeys([node for node in found if node is not None], branch)
        self.covered = {} if None in found else inner
        return None not in found

    def _stop(self, node: Node, block: list[Any]) -> None:
        """An ``if`` that does nothing but say that no call has gone this way: it need not wait until its loop has ended."""
        test, *firsts = [self.exprs[arg] for arg in node.args]
        if isinstance(test, ast.Call) and text(test.func) == "np.logical_not":  # of one truth value
            test = ast.UnaryOp(ast.Not(), *test.args)
        block.append(If(test, [Line(self._unexplored(self.stops[node], ast.Constant(True)))]))
        self.results[node] = [test, *firsts]

    def _loop(self, node: Node, block: list[Any]) -> None:
        """A loop: its carried values as variables, its sequences as lists."""
        op: Loop = node.op
        body, course = op.body, op.course
        carry, sequences, invariants = op.split(node.args)
        self.arrays |= body.graph.arrays
        self._comment(node, block)
        variables = [self.names.of(item) for item in body.carry]
        written = self._overwritten(body)
        for place, (variable, item, first) in enumerate(zip(variables, body.carry, carry, strict=True)):
            value = self._own(first)
            if (course.once and place == course.test) or place == self.covered.get(node):
                self.exprs[item], self.weight[item] = value, self.weight[first]
                continue
            if course.once and self._is_passed_on(first) and isinstance(value, ast.Name):
                variables[place] = variable = value.id
            if item in written and first in self.buffers and self._is_last(node, first):
                variables[place] = variable = self.buffers[item] = self.buffers[first]
            elif item in written:
                self.buffers[item] = variable
                value = _zeros(first.aval) if first.op is create.ZEROS else method(value, "copy")
            if text(value) != variable:
                block.append(Line(_assign(variable, value)))
            self.exprs[item], self.weight[item] = name(variable), 0
        for item, value in zip(body.invariants, invariants, strict=True):
            expr = self.exprs[value]
            if self._is_to_keep(value):
                variable = self.names.of(item)
                block.append(Line(_assign(variable, expr)))
                expr = name(variable)
            self.exprs[item], self.weight[item] = expr, 0
        lists = [self.names.unique(f"{self.names.stem(item)}s") for item in body.saved]
        for first, *others in self.together.get(node, ()):
            for j in others:
                lists[j] = lists[first]
        kept: dict[str, list[Node]] = {}
        for variable, item in zip(lists, body.saved, strict=True):
            kept.setdefault(variable, []).append(item)
        arrays = dict(node.params).get("arrays", ())
        rows = {lists[j]: self.names.unique(f"{self.names.stem(body.saved[j])}_row") for j in arrays}
        for variable in kept:
            aval = node.aval[len(variables) + lists.index(variable)]
            new = self._array(aval) if variable in rows else ast.List([], ast.Load())
            block.append(Line(_assign(variable, new)))
        inner: list[Any] = []
        nodes = body.nodes()
        for item in [*(arg for node in nodes for arg in reads(node)), *body.after, *body.saved]:
            self.uses[item] = self.uses.get(item, 0) + 1
        loop = self._course(op, sequences, rows, {a for n in nodes for a in n.args})
        phase, self.loop_phase = self.loop_phase, self.loop_phase or node.phase

        def save(carried: bool) -> None:
            for variable, (item, *more) in kept.items():
                if (item in body.carry and not more) is not carried:
                    continue
                if variable not in rows:
                    value = ast.Tuple([self.exprs[one] for one in (item, *more)], ast.Load()) if more else self.exprs[item]
                    inner.append(Line(ast.Expr(method(name(variable), "append", value))))
                elif text(self.exprs[item]) != rows[variable]:
                    target = ast.Subscript(name(rows[variable]), ast.Constant(...), ast.Store())
                    inner.append(Line(ast.Assign([target], self.exprs[item], lineno=0)))

        save(True)  # before it changes
        self.rows |= {item: rows[variable] for variable, item in zip(lists, body.saved, strict=True) if variable in rows}
        self._body(nodes, inner)
        save(False)
        self.loop_phase = phase
        changed = [
            (ast.Name(variable, ast.Store()), item)
            for variable, item, old in zip(variables, body.after, body.carry, strict=True)
            if item is not old
            and not (node in self.covered and old is body.carry[self.covered[node]])
            and not (old in written and text(self.exprs[item]) == variable)
            and not (course.once and old is body.carry[course.test])  # type: ignore[index]
        ]
        if len(changed) == 1:
            ((target, item),) = changed
            value = self.exprs[item]
            last = inner[-1].node if inner and isinstance(inner[-1], Line) else None
            if self.uses[item] == 1 and isinstance(last, ast.Assign) and text(last.targets[0]) == text(value):
                last.targets = [target]  # the last statement may as well give the new value
            else:
                inner.append(Line(ast.Assign([target], value, lineno=0)))
        elif changed:
            self._at_once([(target, self.exprs[item]) for target, item in changed], inner)
        loop.body = inner or [Line(ast.Pass())]
        mark([loop], node, self._hides(node))
        if not (isinstance(loop, If) and _joined(block, loop)):
            block.append(loop)
        views = [*rows.values(), *(text(self.exprs[e]) for e, s in zip(body.elements, sequences, strict=True) if is_array(s))]
        if views:  # the last row would keep all of them
            block.append(Line(ast.Delete([ast.Name(view, ast.Del()) for view in views])))
        if course.backwards:
            for variable in kept:
                if variable not in rows:
                    block.append(Line(ast.Expr(method(name(variable), "reverse"))))
        self.results[node] = [name(variable) for variable in (*variables, *lists)]
        if node in self.covered:
            self.results[node][self.covered[node]] = self.exprs[node.args[self.covered[node]]]
        self.filled[node] = [(("item", i),) for i, item in enumerate(body.carry) if item in written]
        for item in (*body.inputs, *nodes):  # the same body may run elsewhere, with other variables
            self.exprs.pop(item, None)
            self.weight.pop(item, None)
            self.uses.pop(item, None)
            self.results.pop(item, None)
            self.filled.pop(item, None)
            self.buffers.pop(item, None)
            self.rows.pop(item, None)

    def _at_once(self, changed: list[tuple[ast.Name, Expr]], block: list[Any]) -> None:
        """Several variables get their new values."""
        targets = ast.Tuple([target for target, _ in changed], ast.Store())
        values = ast.Tuple([value for _, value in changed], ast.Load())
        block.append(Line(ast.Assign([targets], values, lineno=0)))

    def _overwritten(self, body: Body) -> set[Node]:
        """The carried arrays that iterations write into, in place."""
        return {item for item, versions in written_over(body) if not any([readers for _, readers in versions])}

    def _hides(self, node: Node) -> bool:
        """Whether masks hide what a node's statements compute."""
        return node in self.hidden or any([arg in self.hiding for arg in node.args])

    def _is_to_keep(self, value: Node) -> bool:
        """Whether what a loop reads in each iteration is computed before it."""
        return self.weight[value] > 0

    def _is_passed_on(self, first: Node) -> bool:
        """Whether it is what one side of an ``if`` leaves, for the other side alone."""
        return (
            first.op is engine.ITEM
            and isinstance(first.args[0].op, Loop)
            and first.args[0].op.course.once
            and self.uses[first] == 1
        )

    def _own(self, first: Node) -> Expr:
        """What a carried value starts with."""
        return self.exprs[first]

    def _body(self, nodes: list[Node], block: list[Any]) -> None:
        """The statements of one iteration."""
        self._nodes(nodes, block, set())

    def _turns(self, count: int, shown: Sequence[int]) -> Expr:
        """What a loop runs over that does not ask which iteration it is in; ``shown`` are the ends of the user's range."""
        return call("range", *map(number, shown))

    def _array(self, aval: Aval) -> Expr:
        """An array of any content."""
        return call("np.empty", literal(aval.shape), literal(aval.dtype))

    def _course(self, op: Loop, sequences: list[Node], rows: dict[str, str], read: set[Node]) -> For | While | If:
        """The head of a loop; ``rows`` names those of the arrays that it fills."""
        body, course = op.body, op.course
        if course.test is not None:
            test = self.exprs[body.carry[course.test]]
            return If(test) if course.once else While(test)
        targets: list[Expr] = []
        over: list[Expr] = []
        indexed = body.index in read or body.index in body.after or body.index in body.saved
        if course.count is not None and (indexed or not (sequences or rows)):
            ends = [course.start, course.start + course.step * course.count, course.step]
            if course.backwards:
                ends = [ends[1] - course.step, course.start - course.step, -course.step]
            shown = ends if ends[2] != 1 else ends[:2] if ends[0] else ends[1:2]
            variable = self.names.unique(body.index.name or "i") if indexed else "_"
            targets.append(ast.Name(variable, ast.Store()))
            over.append(call("range", *map(number, shown)) if indexed else self._turns(course.count, shown))
            self.exprs[body.index], self.weight[body.index] = name(variable), 0
        bundles: dict[str, list[Expr]] = {}  # the targets of lists of several values
        for item, given in zip(body.elements, sequences, strict=True):
            sequence, (place, width) = self.exprs[given], self.places.get(given, (0, 0))
            stem = item.name or (
                re.sub(r"s(_\d+)?$", "", sequence.id) if isinstance(sequence, ast.Name) and not width else "value"
            )
            variable = self.names.unique(stem)
            target: Expr = ast.Name(variable, ast.Store())
            known = text(sequence) in bundles
            if width:
                bundle = bundles.setdefault(text(sequence), [ast.Name("_", ast.Store()) for _ in range(width)])
                bundle[place], target = target, ast.Tuple(bundle, ast.Store())
            if not known:
                targets.append(target)
                over.append(call("reversed", sequence) if course.backwards else sequence)
            self.exprs[item], self.weight[item] = name(variable), 0
        for array, row in rows.items():
            targets.append(ast.Name(row, ast.Store()))
            over.append(call("reversed", name(array)) if course.backwards else name(array))
        if len(over) == 1:
            return For(targets[0], over[0])
        return For(ast.Tuple(targets, ast.Store()), call("zip", *over))

    def _comment(self, node: Node, block: list[Any], statement: ast.stmt | None = None) -> str:
        """The user's line, above the first statement that came from it, or beside it where it says the same."""
        phase = self.loop_phase or node.phase
        if phase != self.last_phase:
            self.last_phase = phase
            if phase is not None:
                block.append(Comment(phase))
        if node.line is None or phase is not None or node.line in self.lines_shown:
            return ""
        self.lines_shown.add(node.line)
        line = linecache.getline(*node.line).strip()
        if statement is not None and (text(statement) == line or not line):
            return place(node.line)
        block.append(Comment(f"{place(node.line)}{': ' if line else ''}{line}"))
        return ""


def _flagging(flag: Node, first: Node | None, here: Container[Node] | None, inner: dict[Node, int]) -> Iterator[Node | None]:
    """The ``if``s that do nothing but make a flag true, which was false, or ``first``; None for what else makes it so, or was
    not computed ``here``. ``inner`` gets the loops that it goes through, and where it is in those."""
    while flag is not first and (first is not None or const(flag) is not False):
        whole = flag.args[0] if flag.op is engine.ITEM else flag
        body = whole.op.body if isinstance(whole.op, Loop) and (here is None or whole in here) else None
        at = dict(flag.params)["item"] if body is not None else 0
        if body is None or at >= len(body.carry):
            yield None
            return
        changed = [i for i, (x, y) in enumerate(zip(body.carry, body.after, strict=True)) if x is not y]
        if whole.op.course.once and changed == [whole.op.course.test, at] and const(body.after[at]) is True:
            yield whole
        else:
            inner[whole] = at
            yield from _flagging(body.after[at], body.carry[at], None, inner)
        flag = whole.args[at]


def written_over(body: Body, only: int | None = None) -> Iterator[tuple[Node, list[tuple[Node, list[Node]]]]]:
    """The carried arrays that an iteration ends with after writes into them, each version of them, and what else is done with
    it: what it began with first, what it ends with last. None that is saved whole. ``only``: the place of one."""
    readers = body.readers
    ends = Counter([*body.after, *body.saved])
    for i, (item, after) in enumerate(zip(body.carry, body.after, strict=True)):
        if not item.aval.shape or only not in (None, i):
            continue
        node, versions = item, []
        while not ends[node]:
            here = readers.get(node, [])
            writes = {reader: reader for reader in here if reader.op in index.WRITING and reader.args[0] is node}
            for loop in here:  # which writes into it, too, or into a copy
                place = loop.args.index(node)
                alone = isinstance(loop.op, Loop) and loop.args.count(node) == 1
                if alone and place < len(loop.op.body.carry) and [*written_over(loop.op.body, place)]:
                    writes |= {one: loop for one in readers[loop] if one.op is engine.ITEM and one.params == (("item", place),)}
            if len(writes) != 1:
                break
            ((after_write, write),) = writes.items()
            versions.append((node, [reader for reader in here if reader is not write]))
            node = after_write
        if node is after and node is not item and ends[node] == 1:
            yield item, [*versions, (node, readers.get(node, []))]


def _common(root: Tree) -> dict[int, deque[Node]]:
    """What all ends of each tree in a tree need, in order: one and the same for a branch of one case and what follows it."""
    found: dict[int, deque[Node]] = {}
    for tree in reversed([*preorder(root)]):
        if isinstance(tree, Leaf):
            found[id(tree)] = deque(ancestors(tree.nodes()))
        else:
            common, *others = [found[id(child)] for child in tree.cases.values()]
            for other in map(set, others):
                common = deque([node for node in common if node in other])
            found[id(tree)] = common
    return found


def _later(root: Tree, nodes: Sequence[Node]) -> tuple[dict[int, int], dict[Node, int]]:
    """Of trees, the masks on whose counts of elements they decide; of nodes, those whose elements they are made of, or by
    whose counts divided: the code knows how many there are, and takes the last one, say; or that there are some.
    """
    places: dict[Node, int] = {}  # of masks, each a bit
    decided: dict[int, int] = {}  # of a tree: those whose counts it decides on
    trees = [*preorder(root)]
    for tree in reversed([tree for tree in trees if isinstance(tree, Branch)]):
        own = _counted(tree.node)
        bits = [] if own is None else [1 << places.setdefault(own, len(places))]
        bits += [decided.get(id(child), 0) for child in tree.cases.values()]
        decided[id(tree)] = functools.reduce(operator.or_, bits, 0)
    made: dict[Node, int] = {}  # of a node: those whose elements it is made of
    for node in nodes if places else ():
        selected = node.args[len(node.op.rules) :] if node.op in _SELECTING else ()
        divided = _counted(node.args[1]) if node.op is REGISTRY[np.true_divide] else None
        bits = [made[arg] for arg in node.args if arg in made]
        bits += [1 << places[mask] for mask in (*selected, divided) if mask in places]
        if bits:
            made[node] = functools.reduce(operator.or_, bits)
    return decided, made


def _counted(node: Node) -> Node | None:
    """The mask of whose count it is made; None of anything else."""
    while node.op in _OF_COUNTS:
        node = next((arg for arg in node.args if arg.op is not CONST), node.args[0])
    return node.args[0] if node.op in _COUNTS and len(node.args) == 1 else None


_SELECTING = (index.GETITEM, index.SETITEM, index.SCATTER, index.INDEX_ADD)
_COUNTS = tuple(REGISTRY[fun] for fun in (np.count_nonzero, np.any))
_TESTS = (np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal)
_OF_COUNTS = (
    engine.TO_PYTHON, engine.TO_NUMPY, engine.ASTYPE, engine.BOOL, engine.NOT,
    *[REGISTRY[fun] for fun in (*_TESTS, np.subtract, np.sqrt)],
)  # fmt: skip


def mark(statements: Sequence[Any], node: Node | None, hidden: bool = False) -> None:
    """Say where statements are from, unless they know."""
    for statement in statements:
        if node is not None and not isinstance(statement, Comment) and statement.origin is None:
            statement.origin = Origin(node.line, node.phase, hidden)
            mark([*getattr(statement, "body", ()), *getattr(statement, "orelse", ())], node, hidden)


def is_trivial(node: Node, weight: dict[Node, int]) -> bool:
    """Views that cost next to nothing and read well anywhere: ``x.T``, ``x[:, None]``."""
    return (
        node.op in (REGISTRY[np.transpose], REGISTRY[np.expand_dims], engine.ITEM, engine.AGAIN, engine.WITHIN)
        and all(weight[arg] == 0 for arg in node.args)
        and not node.name
    )


def _spelled_out(array: np.ndarray[Any, Any]) -> Expr | None:
    """``np.arange(n)``, ``np.eye(n)`` or a short ``np.array([...])``, when an array is that."""
    if array.ndim == 1 and array.dtype == int and array.size and np.array_equal(array, np.arange(array.size)):
        return call("np.arange", number(array.size))
    if array.ndim == 2 and array.dtype == float and np.array_equal(array, np.eye(*array.shape)):
        return call("np.eye", *map(number, array.shape[: 1 if array.shape[0] == array.shape[1] else 2]))
    if array.ndim == 1 and 0 < array.size <= 6 and array.dtype in (np.dtype(float), np.dtype(int)):
        return call("np.array", ast.List([number(value) for value in array.tolist()], ast.Load()))
    return None


def _joined(block: list[Any], side: If) -> bool:
    """Put one side of a decision beside the other one, or more of it below what is there, if that is the last statement but for
    variables that get what does not hang on it."""
    last = len(block)
    while last and isinstance(block[last - 1], Line) and _gives_variable(block[last - 1].node):
        last -= 1
    before = block[last - 1] if last else None
    if not isinstance(before, If) or before.comment:
        return False
    test, body, orelse, origin = before.test, before.body, before.orelse, before.origin
    if text(test) == text(side.test):
        body = [*body, *side.body]
    elif _is_other(test, side.test):
        orelse = [*orelse, *side.body]
    elif _is_other(side.test, test) and not orelse:
        test, body, orelse, origin = side.test, side.body, before.body, side.origin
    else:
        return False
    stored = names_in(before, ast.Store)
    given = block[last:]
    if not stored.isdisjoint(names_in([test, *given])) or not names_in(given, ast.Store).isdisjoint(names_in(before)):
        return False
    block[last - 1 :] = [*given, If(test, body, orelse, origin=origin)]
    return True


def _gives_variable(statement: ast.stmt) -> bool:
    """Whether a statement gives a variable a constant, or what another one is."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    names = {part.id for part in ast.walk(statement.value) if isinstance(part, ast.Name)}
    return isinstance(statement.value, ast.Name) or names <= {"np"}


def _is_other(test: Expr, other: Expr) -> bool:
    """Whether a test is the opposite of another one."""
    return text(other) in (f"np.logical_not({text(test)})", f"not {text(test)}")


def _rows_over(node: Node, value: Node, places: Sequence[Node]) -> tuple[int, ...]:
    """The shape of what is added to along an array's one axis, where ``value`` is one row for many of it: beyond the memory
    of that ``np.add.at`` would read on."""
    if not value.aval.shape or len(node.aval.shape) != 1:
        return ()
    arrays = [np.broadcast_to(0, place.aval.shape) for place in places]
    shape = index.region(dict(node.params)["spec"], node.aval.shape, arrays)
    return shape if len(value.aval.shape) < len(shape) else ()


def _as_value(where: Expr) -> Expr:
    """An index as a value: slices spelled out."""
    if isinstance(where, ast.Tuple):
        return ast.Tuple([_as_value(part) for part in where.elts], ast.Load())
    if isinstance(where, ast.Slice):
        ends = [end or ast.Constant(None) for end in (where.lower, where.upper, where.step)]
        return call("slice", *(ends if where.step else ends[:2]))
    return where


def _assign(variable: str, expr: Expr) -> ast.stmt:
    return ast.Assign([ast.Name(variable, ast.Store())], expr, lineno=0)


def place(line: tuple[str, int] | None) -> str:
    """How comments name a line of the user's."""
    if line is None:
        return ""
    return f"line {line[1]}" if line[0].startswith("<") else f"{os.path.basename(line[0])}:{line[1]}"


def _size(tree: Tree) -> int:
    return sum(1 for _ in leaves_of(tree))


def reads(node: Node) -> list[Node]:
    """The arguments whose values a node needs: not the zeros that it writes into."""
    written = node.op in (index.SETITEM, index.INDEX_ADD) and node.args[0].op is create.ZEROS
    return list(node.args[1:] if written else node.args)


def is_array(node: Node) -> bool:
    """Whether a value is an array; a sequence of a loop's may be one."""
    return isinstance(node.aval, Aval) and node.aval.kind == "array"


def may_be_view(node: Node) -> bool:
    """Whether a result may share memory with the operation's first argument."""
    if node.op is REGISTRY[np.einsum]:
        return len(node.args) == 1
    return bool(node.op.alias) or node.op is engine.ITEM


_WHOLE = {REGISTRY[f] for f in (np.reshape, np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.ravel)}


def _maker(node: Node) -> Node:
    """What has made the memory that a value shows, all of it and forwards, as far as views of it tell."""
    while node.op in _WHOLE:
        node = node.args[0]
    return node


def _may_alias(node: Node) -> bool:
    """Whether a result can share memory with an argument or a constant."""
    if node.op in (INPUT, CAPTURED, CONST) or node.op is engine.ASTYPE:
        return node.op is not engine.ASTYPE
    if node.op in index.SCATTERING or node.op in (create.ZEROS, create.FULL):
        return False
    return may_be_view(node) or node.op in (engine.TO_ARRAY, REGISTRY[np.broadcast_to])


def is_contiguous(node: Node) -> bool:
    """Whether a result is surely in C order."""
    stack, seen = [node], {node}
    while stack:
        node = stack.pop()
        if not isinstance(node.aval, Aval) or len(node.aval.shape) < 2:
            continue
        in_order = node.op is REGISTRY[np.reshape] and dict(node.params).get("order", "C") == "C"
        if in_order or (node.op not in (CONST, INPUT, CAPTURED) and node.op.family == "elementwise"):
            stack += [arg for arg in node.args if arg not in seen]  # in the order of its arguments
            seen.update(node.args)
        elif not _is_made_in_order(node):
            return False
    return True


def _is_made_in_order(node: Node) -> bool:
    """Whether a result that is not elementwise is surely in C order."""
    if node.op is REGISTRY[np.matmul]:
        return len(node.aval.shape) == 2
    return node.op in index.SCATTERING or node.op.name in _FRESH_NAMES


class Rebuild:
    """Puts a namedtuple or a dataclass together again, in generated code."""

    def __init__(self, tree: TreeDef) -> None:
        self.tree = TreeDef(tree.kind, tree.keys, tuple(TreeDef(LEAF) for _ in tree.children))

    def __call__(self, *items: Any) -> Any:
        return self.tree.unflatten(items)
