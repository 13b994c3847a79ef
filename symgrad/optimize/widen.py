"""Numbers of narrow types, made wide before loops read them one by one.

Python has one kind of ints and one of floats: what is read of an array of ``int32`` or ``float32`` would have to stay NumPy's.
Where all that is done with such numbers gives the same of wider ones, to the bit, loops are given the array as ``int64`` or
``float64``, and may be taken apart (``scalarize``).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from symgrad.ir import INPUT, Aval, Node
from symgrad.ir import Sequence as ListAval
from symgrad.ops import engine, index
from symgrad.ops.core import REGISTRY, ops_of
from symgrad.optimize.exact import decisive
from symgrad.optimize.loops import BodyProgram, body_of
from symgrad.optimize.rewriting import Simplifier, const
from symgrad.optimize.scalars import WIDE, WIDENED
from symgrad.program import Program
from symgrad.tracing.trace import IN_PLACE
from symgrad.transform.loop import Loop, loop_of

ROOM = 16  # what may be added to places, as they are widened: the narrowest go to 127
_ADDING = ops_of(np.add, np.subtract)
_TESTS = ops_of(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)
_CASTS = {engine.ASTYPE, engine.TO_PYTHON, engine.TO_FLOAT, engine.BOOL, engine.NOT}
_TRUTHS = ops_of(np.isnan, np.isinf, np.isfinite, np.logical_and, np.logical_or, np.logical_not)
_PRODUCTS = ops_of(np.matmul, np.dot, np.where)


def widen(program: Program) -> Program:
    """The same program, its loops with wide numbers where narrow ones do the same."""
    if not any(isinstance(node.op, Loop) for node in program.nodes()):
        return program
    for most in (ROOM, 0):
        wide = _wide_in(program, most > 0)
        room = sum([abs(_added(node) or 0) for node in wide])
        if room <= most:
            break
    return _Widener(program, wide, room).run() if wide else program


def _wide_in(program: Program, sums: bool) -> set[Node]:
    """The narrow values in bodies of loops, and lists that these save, that may be wide; ``sums`` with numbers, too."""
    found, bad = set[Node](), set[Node]()
    bound = defaultdict[Node, list[Node]](list)  # what is as wide as what else

    def look(nodes: list[Node], ends: list[Node], top: bool) -> None:
        given = {node for node in nodes if top and not isinstance(node.aval, ListAval)}  # which are made wide for loops
        if top:  # and then for who reads single numbers of them, too
            for_loops = {arg for node in nodes if isinstance(node.op, Loop) for arg in node.args}
            given -= {node for node in nodes if node.op is index.GETITEM and node.args[0] in for_loops and not node.aval.shape}
        bad.update([end for end in ends if _is_narrow(end)])
        for node in nodes:
            found.update([node] if _is_narrow(node) and node not in given else [])
            if isinstance(node.op, Loop):
                body, n = node.op.body, len(node.op.body.carry)
                arrays = body.saved if node.params else ()  # which are saved as such
                bad.update([one for one in (*body.carry, body.index, *arrays) if _is_narrow(one)])
                look([*body.inputs, *body.nodes()], body.after, False)
                saved.update({(node, n + i): one for i, one in enumerate(body.saved)})
                for arg, item in zip(node.args[n:], [*body.elements, *body.invariants], strict=True):
                    if _is_narrow(item) and arg not in given:
                        bound[arg].append(item)
                        bound[item].append(arg)
                bad.update([arg for arg in node.args[:n] if _is_narrow(arg)])
                continue
            added = sums and _added(node) is not None
            for k, arg in enumerate(node.args):
                if _is_narrow(arg) and not (added or _gives_the_same(node, k)):
                    bad.add(arg)
            if not _is_narrow(node) or node.op is INPUT:
                continue
            source = saved.get((node.args[0], dict(node.params)["item"])) if node.op is engine.ITEM else None
            source = node.args[0] if node.op is index.GETITEM or added else source
            if source is None:
                bad.add(node)
            elif source not in given:
                bound[source].append(node)
                bound[node].append(source)

    saved: dict[tuple[Node, int], Node] = {}
    look(program.nodes(), [*program.roots()], True)
    waiting = [*bad]
    while waiting:
        for other in bound[waiting.pop()]:
            if other not in bad:
                bad.add(other)
                waiting.append(other)
    return found - bad


def _is_narrow(node: Node) -> bool:
    aval = node.aval.element if isinstance(node.aval, ListAval) else node.aval
    return isinstance(aval, Aval) and aval.dtype in WIDE


def _added(node: Node) -> int | None:
    """The number that is added to a place, as which narrow numbers may go on; None where it is something else."""
    if node.op not in _ADDING or not isinstance(node.aval, Aval) or node.aval.shape or node.aval.dtype.kind != "i":
        return None
    return const(node.args[1]) if _is_narrow(node) and type(const(node.args[1])) is int else None


def _gives_the_same(node: Node, k: int) -> bool:
    """Whether an operation gives the same if its argument of number ``k``, which is narrow, is wide."""
    op, narrow = node.op, node.args[k].aval
    if op is engine.ITEM or op in _CASTS or op in _TRUTHS:
        return True
    if op is index.GETITEM and k == 0:
        return True
    if k >= len(op.rules) and (op is index.GETITEM or op in IN_PLACE):
        return narrow.dtype.kind in "iu"  # a place
    if op in _TESTS:
        return all(_compares_as_wide(arg, narrow.dtype) for arg in node.args)
    known = isinstance(op.key, np.ufunc) and op.family in ("elementwise", "constant") and op is not REGISTRY[np.ldexp]
    return (known or op in _PRODUCTS) and isinstance(node.aval, Aval) and node.aval.dtype in (int, float)


def _compares_as_wide(other: Node, dtype: np.dtype[Any]) -> bool:
    """Whether what a number of this type is compared with is not rounded to that first."""
    if dtype.kind != "f" or other.aval.kind != "python":
        return True
    value = const(other)
    with np.errstate(over="ignore"):
        return value is not None and (value != value or dtype.type(value).item() == value)


class _Widener(Simplifier):
    """Rebuilds a program with ``wide`` values."""

    def __init__(self, program: Program, wide: set[Node], room: int) -> None:
        super().__init__(program, {})
        self.wide, self.room, self.decisive = wide, room, decisive(program)

    def visit(self, node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Loop):
            return self._loop(node, args)
        if node not in self.wide:
            return super().visit(node, args)
        if node.op is index.GETITEM:
            args = (self._wide(args[0]), *args[1:])
        new = self.visit_as(node.op, node, args, _widened(node.aval))
        new.active, new.exact = node.active, new.exact or self.exact
        return new

    def _loop(self, node: Node, args: tuple[Node, ...]) -> Node:
        body, n = node.op.body, len(node.op.body.carry)
        if self.wide.isdisjoint([*body.inputs, *body.nodes()]):
            return self.visit_as(node.op, node, args)
        given = [*args[:n]]
        for arg, item in zip(args[n:], [*body.elements, *body.invariants], strict=True):
            given.append(self._wide(arg) if item in self.wide else arg)
        exact = node.op.decides or node in self.decisive
        made = loop_of(body_of(body, _Widener(BodyProgram(body, exact), self.wide, self.room).run()), node.op.course)
        saved = zip(node.aval[n:], made.body.saved, strict=True)
        lists = [ListAval(one.aval) if isinstance(aval, ListAval) else aval for aval, one in saved]
        return self.visit_as(made, node, tuple(given), (*node.aval[:n], *lists))

    def _wide(self, node: Node) -> Node:
        if self.room and _is_narrow(node) and node.aval.dtype.kind == "i":
            return self.call(WIDENED, node, room=self.room)
        return self.call(engine.ASTYPE, node, dtype=WIDE[node.aval.dtype]) if _is_narrow(node) else node


def _widened(aval: Any) -> Any:
    if isinstance(aval, ListAval):
        return ListAval(_widened(aval.element))
    return aval._replace(dtype=WIDE[aval.dtype])
