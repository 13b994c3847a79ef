"""The printing that runs: the same program in NumPy calls that cost less than those a reader would want.

* ufuncs are called by name, with a dead buffer as their positional ``out``;
* numbers beside arrays are 0-d arrays made once, which NumPy takes faster than Python's;
* ``x.dot(w)`` for ``x @ w``, ``np.add.reduce`` for ``np.sum``, and the like;
* a program of nothing but double-precision numbers, or of small arrays taken apart into such, is written for Python's floats
  and ``math``. Where those raise and NumPy would not, the same program in NumPy's calls runs.
"""

from __future__ import annotations

import ast
import functools
import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from symgrad import runtime
from symgrad.emit.blocks import BlockBuilder, assign, subscript, through
from symgrad.emit.build import (
    SPELLINGS,
    Builder,
    Code,
    Expr,
    Signature,
    Spelling,
    default_spelling,
    defined,
    index_of,
    is_contiguous,
    is_trivial,
    literal,
    may_be_view,
    method,
    name,
    narrowed,
    number,
    reads,
    written_over,
    zeros,
)
from symgrad.emit.build import call as call_of
from symgrad.emit.cells import Cells
from symgrad.emit.numbers import (
    ABS,
    CONDITIONAL,
    EXACT,
    EXP,
    MATH,
    MIXING,
    OPERATORS,
    REPEATING,
    ROUNDED,
    decaying,
    elements,
    packer,
)
from symgrad.emit.printer import For, If, Line, While, With, text
from symgrad.emit.quiet import hidden, quietly
from symgrad.emit.steady import SMALL, settled
from symgrad.emit.tidy import tidy
from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Node, by_index, size_of
from symgrad.ir import Sequence as ListAval
from symgrad.ops import create, engine, index
from symgrad.ops.core import REGISTRY, Op, ops_of
from symgrad.ops.elementwise import EXTREME
from symgrad.ops.scan import Running
from symgrad.optimize.fuse import Group, adds_columns, adds_rows, fuse, turned
from symgrad.optimize.layout import COLUMNS, CROSS, FRONT, MATRICES
from symgrad.optimize.loops import STACK
from symgrad.optimize.lower import PRODUCTS, WITH_OUT
from symgrad.optimize.memory import SLOW_IN_PLACE, is_read_before
from symgrad.optimize.pipeline import improve, speed_up
from symgrad.optimize.rewriting import PLACES, const, is_number
from symgrad.optimize.scalarizer import turns_of
from symgrad.optimize.scalars import CELL, LIST, LISTED, PACK, PICK, UNPACK
from symgrad.optimize.whole import is_cell
from symgrad.parallel import alone
from symgrad.program import Branch, Leaf, Program, Tree, leaves_of
from symgrad.transform.loop import Body, Loop

FAST: dict[Any, Spelling] = {}
LARGE = 4096  # numbers of an array, from which on the order in which they are put together matters for the time
BIG = 1 << 16  # bytes of an array, and statements of a program, from which it pays to let go of what is dead
COPY = 2048  # bytes that are copied in the time that it takes to begin with it
RUN = 32  # numbers in a row of an array, from which on it is added to another by a call of its own,
LONG = 256  # and numbers in all such
ROWS = 2048  # rows of few numbers, from which on to begin with each costs more than with calls for the columns
MANY = 500
CHOSEN = 1024  # numbers that a mask chooses, up to which to make an array for them takes as long as to choose
PICKED = 512  # numbers read at index arrays, from which on it pays to tell their places in memory
SEVERAL = 3  # lists that are better one of tuples

_CHOICES = {EXTREME, REGISTRY[np.where]}
_REPEATING = REPEATING | {REGISTRY[np.roll]}
# functions that always make a new array
_NEW = {CROSS, FRONT, MATRICES, PRODUCTS} | {
    REGISTRY[key]
    for key in (
        np.matmul,
        np.dot,
        np.outer,
        np.where,
        np.sum,
        np.mean,
        np.prod,
        np.max,
        np.min,
        np.concatenate,
        np.stack,
        np.roll,
        np.cumsum,
        np.cumprod,
    )
}

NEGATIVE = REGISTRY[np.negative]
_ARITHMETIC = {REGISTRY[key] for key in (np.add, np.subtract, np.multiply, np.true_divide)}
_OUT_LAST = {
    REGISTRY[np.outer],
    CROSS,
    FRONT,
    PRODUCTS,
}  # functions that take ``out`` after their arguments, however they are spelt
_ALONG_ONE = {REGISTRY[key] for key in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft)}
_ALONG_SEVERAL = {REGISTRY[key] for key in (np.fft.fft2, np.fft.ifft2, np.fft.fftn, np.fft.ifftn)}


def build_fast(program: Program, signature: Signature, off: frozenset[str] = frozenset()) -> Code:
    """The program as the source of the function that runs; ``off`` names the optimisations that are switched off."""
    return FastBuilder(program, signature, off).build()


def _fast(*keys: Any) -> Callable[[Spelling], Spelling]:
    def register(rule: Spelling) -> Spelling:
        for key in keys:
            FAST[key if isinstance(key, Op) else REGISTRY[key]] = rule
        return rule

    return register


# what is known on one side of a branch alone: another side may make the same values otherwise
_OF_A_SIDE = (
    "remaining", "lent", "owner", "order", "assemblies", "written", "whole", "zeroed", "into", "changes", "negatives",
    "negated", "early",
)  # fmt: skip


class FastBuilder(BlockBuilder):
    """Keeps track of which buffers the code owns and when they die."""

    add_at = "runtime.add_each"

    def __init__(self, program: Program, signature: Signature, off: frozenset[str]) -> None:
        super().__init__(program, signature, off)
        self.inputs: set[str] = set()  # arrays that have a name
        self.products: dict[str, set[str]] = {}  # functions that multiply some of them
        self.remaining: dict[Node, int] = {}
        self.root: dict[Node, Node] = {}  # of a view, the node that owns the memory
        self.members: dict[Node, list[Node]] = {}
        self.reads: dict[Node, set[Node]] = {}
        self.numbers: dict[Any, np.generic] = {}  # of NumPy's that the code names, by kind and value
        self.owner: dict[Node, str] = {}  # variables whose arrays this code may overwrite once they are dead
        self.free: dict[tuple[Any, ...], list[str]] = {}
        self.order: dict[Node, bool | None] = {}
        self.scalar = "math" not in off and all(map(_plain_number, self.nodes))
        self.turned = turned(self.nodes)
        self.hidden = hidden(self.nodes, program.roots())
        self.python: set[Node] = set()  # what is surely a Python number
        self.chosen: set[Node] = set()  # of choices by a mask, those that are numbers of NumPy's
        self.items = _items(self.nodes)
        if self.scalar or program.apart:
            self._keep_together(self.nodes, program.roots())
        self.whole: dict[Node, Node] = {}  # of writes that put an array together: the last one of them
        self.zeroed: set[Node] = set()  # of arrays, those that are zero but for what is put there
        self.into: dict[Node, Node] = {}  # of values that may be computed in such an array: the write that puts them there
        self.written: dict[Node, Node] = {}  # of writes whose value was
        self.changes: dict[Node, tuple[Node, Node]] = {}  # what a part of an array becomes: the write, and the part as it was
        self.assemblies: dict[Node, str] = {}
        self.over: dict[Body, set[Node]] = {}  # the arrays that bodies of loops write over
        self.left: dict[Loop, list[set[Node] | None]] = {}  # what loops leave behind of their arguments
        self.lent: Counter[Node] = Counter()  # how many loops were given an array, and are through with it
        self.computed: dict[Body, set[Node]] = {}  # the carried arrays that bodies may compute what they become in
        self.carried: dict[Node, Node] = {}  # those of the loop that is printed next, with what they become
        self.becomes: dict[Node, Node] = {}  # what is computed in the place of a carried array, if that may be
        self.dead: dict[str, Expr] = {}  # variables whose arrays the iteration that was printed last needs no more, and such
        self.seen: dict[str, Aval] = {}  # the variables of arrays in it
        self.negatives: set[Node] = set()  # what is to be added to a view, as which its opposite is subtracted,
        self.negated: set[Node] = set()  # and is not computed
        self.early: set[Node] = set()  # reads of arrays that are written over before what is read is used
        self.straight = False  # no branch follows: what is not used below is used nowhere
        self.cells = Cells()

    def _keep_together(self, nodes: Sequence[Node], ends: Sequence[Node]) -> None:
        """Numbers that a loop saves for the same other loops lie in one list, as tuples, which is faster than in many."""
        readers: dict[Node, set[Node | None]] = {end: {None} for end in ends}  # None: whoever
        for node in nodes:
            carried, read, _ = node.op.counts if isinstance(node.op, Loop) else (0, 0, 0)
            for place, arg in enumerate(node.args):
                goes_round = carried <= place < carried + read and node.args.count(arg) == 1
                readers.setdefault(arg, set()).add(node if goes_round else None)
            if isinstance(node.op, Loop):
                self._keep_together(node.op.body.nodes(), [*node.op.body.after, *node.op.body.saved])
        groups: dict[Any, list[Node]] = {}
        for item, whom in readers.items():
            if item.op is engine.ITEM and isinstance(item.aval, ListAval) and None not in whom and _plain_number(item):
                groups.setdefault((item.args[0], frozenset(whom)), []).append(item)
        for (loop, _), items in groups.items():
            if len(items) >= SEVERAL:
                items.sort(key=lambda item: dict(item.params)["item"])  # as the loop saves them
                saved = [dict(item.params)["item"] - len(loop.op.body.carry) for item in items]
                self.together.setdefault(loop, []).append(saved)
                self.places |= {item: (place, len(items)) for place, item in enumerate(items)}

    def build(self) -> Code:
        code = super().build()
        code.python = self.scalar or self.program.apart
        return code

    def _defined(self, program: Program, signature: Signature) -> tuple[Code, Any]:
        improved = improve(program, self.off)
        code = build_fast(speed_up(improved, self.off), signature, self.off)
        made = defined(code, signature.name)
        if code.python:  # where Python's numbers raise, NumPy's do not
            off = self.off | {"math"}
            made = runtime.either(made, defined(build_fast(speed_up(improved, off), signature, off), signature.name))
        return code, made

    def _finished(self, block: list[Any]) -> list[Any]:
        for variable, given in self.products.items():
            chosen = call_of("runtime.product_of", *map(name, sorted(given)))
            block.insert(self.top, Line(assign(name(variable), chosen)))
        if self.program.apart and "lists" not in self.off:
            self.cells.listed(block)
        if "buffers" not in self.off and (len(block) >= MANY or any(size_of(node) >= BIG for node in self.nodes)):
            inputs = [self.exprs.get(node) for node in self.nodes if node.op is INPUT]
            block = tidy(block, {expr.id for expr in inputs if isinstance(expr, ast.Name)})
        block = quietly(block, self.names.unique("heard")) if self.hidden else block
        # where masks are missed, no warning is raised: the code that has them says what there is to say
        return [With("runtime.raising", self.names.unique("errors"), block)] if self.program.strict else block

    def _snapshot(self) -> Any:
        free = {key: list(value) for key, value in self.free.items()}
        own = {name: getattr(self, name).copy() for name in _OF_A_SIDE}
        return super()._snapshot(), free, self.straight, own

    def _restore(self, kept: Any) -> None:
        base, self.free, self.straight, own = kept
        vars(self).update(own)
        super()._restore(base)

    def _tree(self, tree: Tree, block: list[Any], done: set[Node]) -> None:
        ends = leaves_of(tree)
        self.straight = self.straight or (next(ends, None) is not None and next(ends, None) is None)
        super()._tree(tree, block, done)

    def product(self, node: Node, args: list[Expr]) -> Expr:
        """A product that decides something: ``matmul`` adds up what has gaps in another order than ``dot``, which is quicker.
        Whether arguments have gaps is asked once."""
        arrays = [arg.args[0] if arg.op is REGISTRY[np.transpose] else arg for arg in node.args]
        given = {text(self.exprs[array]) for array in arrays if not self._lies_densely(array)}
        if not given:
            return method(args[0], "dot", args[1])
        if not given <= self.inputs:
            return call_of(self.bind("matmul", np.matmul), *args)
        known = next((variable for variable, other in self.products.items() if other == given), None)
        if known is None:
            known = self.names.unique("product")
            self.products[known] = given
        return call_of(known, *args)

    def _lies_densely(self, array: Node) -> bool:
        """Whether the memory of an array surely has no gaps."""
        return self.arrays[array].flags.forc if array.op is CAPTURED else self._is_contiguous(array)

    def _unexplored(self, branch: Branch, value: Expr) -> ast.stmt:
        """With the place where other code may go on."""
        statement = super()._unexplored(branch, value)
        assert isinstance(statement, ast.Raise)
        assert isinstance(statement.exc, ast.Call)
        statement.exc.args += [ast.Constant(branch.number), value]
        return statement

    def _leaf(self, leaf: Leaf, block: list[Any], done: set[Node]) -> None:
        self.straight = True
        super()._leaf(leaf, block, done)

    def _put(self, values: list[tuple[Any, Expr]], block: list[Any]) -> None:
        """Where others have put something else there meanwhile, the function itself goes on with that; so it does, before
        anything is put, where there is no such item."""
        for place, _ in values:
            if place not in self.signature.access and place.steps[-1][0] == "item":
                block.append(Line(ast.Expr(self._place(place, ast.Load()))))
            elif place in self.signature.access:
                other = ast.Compare(self._place(place, ast.Load()), [ast.IsNot()], [name(self.signature.access[place][0])])
                block.append(If(other, [Line(ast.Raise(call_of("Unexplored", ast.Constant(f"{place!r} was changed")), None))]))
        super()._put(values, block)

    def _nodes(self, nodes: list[Node], block: list[Any], done: set[Node]) -> None:
        if not self.remaining:
            self.remaining = dict(self.uses)
        if "buffers" not in self.off:
            self._look_at_writes(nodes)
            nodes = self._read_before_writes(nodes)
        units = [*fuse(nodes, self.uses, self.turned, alone())] if "blocks" not in self.off else nodes
        self._leave_to_groups({node for unit in units if isinstance(unit, Group) for node in unit.nodes})
        for unit in units:
            if isinstance(unit, Group):
                done.update(unit.nodes)
                self._group(unit, block)
            else:
                super()._nodes([unit], block, done)
                self._note_order(unit)
                if unit.op is engine.ITEM and isinstance(unit.args[0].op, Loop) and _is_own_array(unit):
                    self.owner[unit], self.order[unit] = expr_name(self.exprs[unit]), True

    def _note_order(self, node: Node) -> None:
        """A loop has written into an array, which is a copy of what it began with, or that itself."""
        if node.op is engine.ITEM and node in self.buffers and isinstance(node.args[0].op, Loop):
            first = node.args[0].args[dict(node.params)["item"]]
            if self.buffers.get(first) != self.buffers[node] or self._in_order(first):
                self.order[node] = True

    def _group(self, group: Group, block: list[Any]) -> None:
        for node in group.nodes:
            self._in_order(node)
            for arg in reads(node) if node not in group.views else ():  # views are printed after the loop, and counted there
                self.remaining[arg] -= 1
        super()._group(group, block)
        for node in group.nodes:
            self._retire(node)
        for node in (*group.results, *group.ends):
            if node.aval.shape:
                self.owner[node], self.order[node] = expr_name(self.exprs[node]), True

    def _input(self, node: Node, block: list[Any]) -> None:
        super()._input(node, block)
        if isinstance(self.exprs[node], ast.Name) and node.aval.kind == "array":
            self.inputs.add(expr_name(self.exprs[node]))
        if self.scalar and node.aval.kind == "scalar" and node.aval.dtype == np.float64:  # Python's take a third of the time
            variable = self.names.unique(expr_name(self.exprs[node]))
            block.append(Line(assign(name(variable), call_of("float", self.exprs[node]))))
            self.exprs[node] = name(variable)
            self.python.add(node)

    def _value(self, node: Node, block: list[Any]) -> None:
        if node.op is UNPACK:
            self._unpack(node, block)
            return
        if node.op is PACK:
            self._pack(node, block)
            return
        if node.op is engine.REQUIRE_FINITE:
            block.append(Line(ast.Expr(self._spell(node, block)), self._comment(node, block)))
            self.exprs[node], self.weight[node] = ast.Constant(None), 0
            return
        if node in self.negatives and isinstance(self.exprs[node.args[0]], ast.Name):
            self.exprs[node], self.weight[node] = self.exprs[node.args[0]], 0
            self.negated.add(node)
            return
        self._in_order(node)  # once for each, so that it need not look far back
        if node in self.early:
            self._read_early(node, block)
            return
        view = may_be_view(node)
        if view and node.args:
            root = self.root.get(node.args[0], node.args[0])
            self.root[node] = root
            self.members.setdefault(root, []).append(node)
        for arg in node.args:
            self.remaining[arg] -= 1
        chooses = self._chooses_a_number(node)
        if chooses:
            self.chosen.add(node)
        if node.op in _REPEATING or chooses:
            for arg in node.args[chooses:]:
                late = chooses and arg.phase is not None  # what the function computes warns as NumPy does, chosen or not
                if self.weight[arg] and not (late and not any([self.weight[one] for one in arg.args])):
                    self._store(arg, self.exprs[arg], block)
        if self.uses[node] == 1 and self._is_light(node, view):
            reads: set[Node] = set()  # the buffers that the expression of this node reads, wherever it ends up
            for arg in node.args:
                reads |= self.reads.get(arg, {self.root.get(arg, arg)})
            self.exprs[node] = self._spell(node, block)
            self.reads[node] = reads
            for root in reads:
                self.members.setdefault(root, []).append(node)
            self.weight[node] = 0 if is_trivial(node, self.weight) else 1 + sum(self.weight[a] for a in node.args)
            return
        if self._is_ufunc(node) and "buffers" not in self.off:
            self._ufunc(node, block)
            return
        if self._chosen_in_place(node, block):
            return
        expr = self._spell(node, block)
        row = self.rows.get(node)
        reduces = row is not None and self._reduces(node, expr)
        out = (self._out(node) if row is None else name(row)) if reduces or self._takes_out(node, expr) else None
        self._retire(node)
        if out is not None:
            assert isinstance(expr, ast.Call)
            if reduces and len(expr.args) > 3:  # array, axis, dtype, out, keepdims
                expr.args[3] = out
            elif reduces or _is_transform(node):
                expr.keywords.append(ast.keyword("out", out))
            else:
                expr.args.append(out)
            if row is not None:
                block.append(Line(ast.Expr(expr), self._comment(node, block)))
                self.exprs[node], self.weight[node] = out, 0
                return
        self._store(node, expr, block)
        if (node.op in _NEW or _is_transform(node)) and node.aval.shape:
            self.owner[node] = expr_name(self.exprs[node])

    def _is_light(self, node: Node, view: bool) -> bool:
        """Whether it is quick to compute where it is read, with all that is in its expression."""
        if not (view or node.op is PICK or all([getattr(arg.aval, "kind", "array") != "array" for arg in node.args])):
            return False
        return node.op is engine.TO_PYTHON or sum([self.weight[arg] for arg in node.args]) < 6

    def _read_early(self, node: Node, block: list[Any]) -> None:
        """``x[index].copy()``, so that ``x`` can be written over."""
        for arg in node.args:
            self.remaining[arg] -= 1
        expr, row = self._spell(node, block), self.rows.get(node)
        if row is not None:
            block.append(Line(ast.Assign([ast.Subscript(name(row), ast.Constant(...), ast.Store())], expr, lineno=0)))
            self.exprs[node], self.weight[node] = name(row), 0
            return
        variable = self.names.of(node)
        block.append(Line(assign(name(variable), method(expr, "copy") if _is_slice(node) else expr)))
        self.exprs[node], self.weight[node] = name(variable), 0
        if node.aval.shape:
            self.owner[node] = variable

    def _read_before_writes(self, nodes: list[Node]) -> list[Node]:
        """``nodes`` with the reads ``x[index]`` before writes over ``x``, where nothing else needs ``x`` then.

        What they read is copied if it is used later: that costs less than a copy of ``x`` for each write.
        """
        place = {node: i for i, node in enumerate(nodes)}
        bases = {node.args[0]: node for node in nodes if node.op in index.WRITING and node.aval.shape}
        own = [base for base in bases if base in self.buffers or (base in place and self._is_made(base))]
        writes = [bases[base] for base in own]
        if not writes:
            return nodes
        readers: dict[Node, list[Node]] = {base: [] for base in own}  # of those, and of views of them
        for node in nodes:
            found = [readers[arg] for arg in reads(node) if arg in readers]
            for readers_of in found:
                readers_of.append(node)
            if found and may_be_view(node):
                readers[node] = []
        last: dict[Node, float] = {}  # where a value is needed for the last time
        for node, here in reversed(readers.items()):
            elsewhere = len(here) < self.uses.get(node, 0) or any([isinstance(reader.op, Loop) for reader in here])
            seen = [last[reader] if may_be_view(reader) else place[reader] for reader in here]
            last[node] = math.inf if elsewhere else max(seen, default=0)
        moved: dict[Node, list[Node]] = {}
        gone: set[Node] = set()
        for write in writes:
            base, now = write.args[0], place[write]
            others = [node for node in readers[base] if node is not write]
            if not others or len(others) + 1 != self.uses[base]:
                continue
            later = [node for node in others if place[node] > now or (may_be_view(node) and last[node] > now)]
            sizes = [size_of(node) + COPY for node in later if node.op in (index.GETITEM, CELL) and _is_slice(node)]
            after = {arg for node in later for arg in node.args if place.get(arg, 0) > now}
            known = all([node.op in (index.GETITEM, CELL) for node in later]) and all([arg.op is CONST for arg in after])
            if known and sum(sizes) <= size_of(base) + COPY:
                self.early.update(later)
                moved[write] = sorted({*after, *[node for node in later if place[node] > now]} - gone, key=by_index)
                gone.update(moved[write])
        return [one for node in nodes if node not in gone for one in (*moved.get(node, ()), node)]

    def _is_made(self, node: Node) -> bool:
        """Whether a value is an array of its own, made here."""
        if node.op is engine.ITEM and isinstance(node.args[0].op, Loop):
            place, body = dict(node.params)["item"], node.args[0].op.body
            return place < len(body.carry) and body.carry[place] in self._overwritten(body)
        return bool(node.args) and not may_be_view(node)

    def _overwritten(self, body: Body) -> set[Node]:
        if body not in self.over:
            self.over[body] = self._written_over(body)
        return self.over[body] | self.computed.get(body, set())

    def _written_over(self, body: Body) -> set[Node]:
        """With those that are read, too: what is read before a write, and used after it, is copied."""
        found = super()._overwritten(body)
        kept = [*body.after, *body.saved, *(arg for node in body.nodes() if isinstance(node.op, Loop) for arg in node.args)]
        for item, versions in written_over(body) if "buffers" not in self.off else ():
            views = [reader for _, readers in versions for reader in readers if may_be_view(reader)]
            loops = [(reader, node) for node, readers in versions for reader in readers if isinstance(reader.op, Loop)]
            given = [(loop.op, place) for loop, node in loops for place, arg in enumerate(loop.args) if arg is node]
            left = [self._left_views(op)[place] for op, place in given]
            if None not in left and all([view.op is index.GETITEM for view in views]):
                found.add(item)
                self.early.update(itertools.chain(*(some or () for some in left)))
                for node in kept:  # the next iteration writes over what this one ends with
                    while node.args and may_be_view(node):
                        if node in versions[-1][1]:
                            self.early.add(node)
                        node = node.args[0]
        return found

    def _computed_over(self, loop: Node) -> dict[Node, Node]:
        """The small carried arrays in the place of which an iteration may compute what it ends with: nothing else goes round as
        they are, and what they become is an array of its own, which nothing holds."""
        body: Body = loop.op.body
        if loop.op.course.once or "buffers" in self.off:
            return {}
        arrays, ends = dict(loop.params).get("arrays", ()), Counter(body.after)
        held = {item for place, item in enumerate(body.saved) if place not in arrays}
        held.update([_memory(node) for node in (*body.after, *body.saved) if _memory(node) is not node])  # views go round, too
        for inner in [node for node in body.nodes() if isinstance(node.op, Loop)]:
            lefts = zip(inner.args, self._left_views(inner.op), strict=True)
            held.update([_memory(arg) for arg, left in lefts if left is None or left])
        return {
            item: after
            for item, after in zip(body.carry, body.after, strict=True)
            if after.aval == item.aval and 0 < size_of(item) <= SMALL and self._is_ufunc(after)
            if ends[after] == 1 and not ends[item] and after not in body.saved and held.isdisjoint((item, after))
        }

    def _is_over(self, base: Node) -> bool:
        return super()._is_over(base) or (self.straight and self._is_left(base, 0))

    def _is_last(self, loop: Node, base: Node) -> bool:
        return super()._is_last(loop, base) or (self.straight and loop.args.count(base) == 1 and self._is_left(base, 1))

    def _is_left(self, base: Node, uses: int) -> bool:
        """Whether so many uses of an array are left; loops that left no view of it are through with it."""
        views = self.members.get(base, ())
        return self.remaining[base] - self.lent[base] == uses and not any([self.remaining.get(view, 0) for view in views])

    def _loop(self, node: Node, block: list[Any]) -> None:
        self.cells.loops += 1
        self.carried = self._computed_over(node)
        self.computed[node.op.body] = {*self.carried}
        self.becomes.update({after: item for item, after in self.carried.items()})
        super()._loop(node, block)
        for table in (self.order, self.assemblies, self.written, self.changes):
            for inner in node.op.body.nodes():  # which another loop may have, too
                table.pop(inner, None)
        self.cells.loops -= 1
        if not node.op.course.once and "buffers" not in self.off:
            place = max([i for i, item in enumerate(block) if isinstance(item, For | While)])
            carried = [x.id for x in self.results[node][: len(node.op.body.carry)] if isinstance(x, ast.Name)]
            block[place:place] = settled(block[place], carried, self.dead, self.seen, self.namespace, self.names.unique)
        for arg, left in zip(node.args, self._left_views(node.op), strict=True):
            self.lent[arg] += left is not None and self.early.issuperset(left)

    def _left_views(self, op: Loop) -> list[set[Node] | None]:
        """Of each argument of a loop, the parts that it leaves behind as they are; None where it may leave other views, as of
        what it carries."""
        if op in self.left:
            return self.left[op]
        body = op.body
        inputs = [*body.elements, *body.invariants]
        roots = {item: item for item in inputs if size_of(item)}
        left: dict[Node, set[Node] | None] = {item: set() for item in roots}
        for node in body.nodes():
            if node.args and may_be_view(node) and node.args[0] in roots:
                roots[node] = roots[node.args[0]]
            for arg, inner in zip(node.args, self._left_views(node.op), strict=True) if isinstance(node.op, Loop) else ():
                if arg in roots:
                    known = left[roots[arg]]
                    left[roots[arg]] = None if known is None or inner is None else known | inner
        for end in roots.keys() & {*body.after, *body.saved}:
            known = left[roots[end]]
            left[roots[end]] = None if known is None or end.op is not index.GETITEM else known | {end}
        self.left[op] = [*[None] * len(body.carry), *[left.get(item) for item in inputs]]
        return self.left[op]

    def _unpack(self, node: Node, block: list[Any]) -> None:
        """``x_0, x_1, _ = x.tolist()``: the elements that are read get names; few of many are asked for one by one."""
        (array,) = node.args
        self.remaining[array] -= 1
        self._retire(node)
        read, count, listed = self.items.get(node, {}), len(node.aval), isinstance(array.aval, ListAval)
        names = [self.names.of(read[item]) if item in read else "_" for item in range(count)]
        value, comment = self.exprs[array], self._comment(node, block)
        if len(read) < (2 if listed else 0.2 * count) and (len(read) == 1 or isinstance(value, ast.Name)):
            for item in read:
                place = ast.Constant(item)
                one = ast.Subscript(value, place, ast.Load()) if listed else method(value, "item", place)
                if not listed and len(array.aval.shape) == 1:
                    self.cells.note(one, value, array.aval)
                block.append(Line(assign(name(names[item]), one), comment))
                comment = ""
        else:
            targets: list[Expr] = [ast.Name(variable, ast.Store()) for variable in names]
            value = value if listed else elements(self, value, array.aval)
            block.append(Line(ast.Assign([ast.Tuple(targets, ast.Store())], value, lineno=0), comment))
        self.results[node] = [name(variable) for variable in names]

    def _pack(self, node: Node, block: list[Any]) -> None:
        """Numbers written into a new array."""
        shape = node.aval.shape
        for arg in node.args:
            self.remaining[arg] -= 1
        args = [self.exprs[arg] for arg in node.args]
        if all(is_number(arg, 0.0) for arg in node.args):
            self._store(node, zeros(self, node, []), block)
            self.buffers[node] = expr_name(self.exprs[node])
        elif node.aval.dtype == np.float64:
            dead = self._dead_buffer((shape, node.aval.dtype, True))
            if dead is None:
                size = literal(shape if len(shape) > 1 else shape[0])
                self._store(node, call_of(self.bind("empty", np.empty), size), block)
            else:
                self.exprs[node], self.weight[node] = name(dead), 0
            write = self.bind(f"pack_{len(args)}", packer(len(args)))
            block.append(Line(ast.Expr(call_of(write, self.exprs[node], ast.Constant(0), *args))))
            self.owner[node], self.order[node] = expr_name(self.exprs[node]), True
        else:
            self._store(node, method(call_of("np.array", ast.List(args, ast.Load())), "reshape", literal(shape)), block)

    def _at_once(self, changed: list[tuple[ast.Name, Expr]], block: list[Any]) -> None:
        """One after the other, which is cheaper: each when no other new value needs the old one any more."""
        waiting = {target.id: (value, _names(value) - {target.id}) for target, value in changed}
        needed = Counter([variable for _, names in waiting.values() for variable in names])  # by other new values
        places = {variable: i for i, variable in enumerate(waiting)}
        free = [place for variable, place in places.items() if not needed[variable]]
        every, targets = list(waiting), set(waiting)
        rest = iter(every)
        late: list[tuple[str, Expr]] = []
        while waiting:
            if not free and len(waiting) <= 3:  # for so many, Python makes no tuple
                super()._at_once([(ast.Name(variable, ast.Store()), value) for variable, (value, _) in waiting.items()], block)
                break
            alone = bool(free)
            variable = every[heapq.heappop(free)] if alone else next(one for one in rest if one in waiting)
            value, names = waiting.pop(variable)
            for other in names & waiting.keys():
                needed[other] -= 1
                if not needed[other]:
                    heapq.heappush(free, places[other])
            if not alone:
                if isinstance(value, ast.Name) and value.id not in targets:
                    late.append((variable, value))
                    continue
                late.append((variable, name(self.names.unique(variable))))
                variable = expr_name(late[-1][1])
            block.append(Line(ast.Assign([ast.Name(variable, ast.Store())], value, lineno=0)))
        for variable, value in late:
            block.append(Line(ast.Assign([ast.Name(variable, ast.Store())], value, lineno=0)))

    def _body(self, nodes: list[Node], block: list[Any]) -> None:
        """One iteration: only what it made itself is overwritten in it, and not what it hands on."""
        kept = self.owner, self.free, self.straight
        self.owner, self.free, self.straight = {}, {}, True
        carried, self.carried = {item: self.buffers[item] for item in self.carried}, {}
        self.owner.update(carried)
        inputs = [arg for node in nodes for arg in node.args]
        for one in {*nodes, *inputs, *carried}:
            self.remaining[one], self.lent[one] = self.uses.get(one, 0), 0
        super()._body(nodes, block)
        kinds = [(kind, variable) for kind, variables in self.free.items() for variable in variables]
        kinds += [(self._kind(one), variable) for one, variable in self.owner.items() if self._dies(one)]
        kinds = [(kind, variable) for kind, variable in kinds if kind[2] is not False and variable not in carried.values()]
        self.dead = {variable: self._allocate(*kind[:2]) for kind, variable in kinds}
        shown = [(self.exprs[one], one.aval) for one in (*nodes, *inputs) if one in self.exprs]
        self.seen = {
            expr.id: aval for expr, aval in shown if isinstance(expr, ast.Name) and getattr(aval, "kind", None) == "array"
        }
        self.owner, self.free, self.straight = kept

    def _is_to_keep(self, value: Node) -> bool:
        """Views, too."""
        return not isinstance(self.exprs[value], (ast.Name, ast.Constant, ast.UnaryOp))

    def _turns(self, count: int, shown: Sequence[int]) -> Expr:
        """``repeat(None, n)``, which makes no numbers."""
        return call_of(self.bind("repeat", itertools.repeat), ast.Constant(None), number(count))

    def _array(self, aval: Aval) -> Expr:
        return self._allocate(aval.shape, aval.dtype, scratch=aval.nbytes >= BIG)

    def _write(self, node: Node, block: list[Any]) -> None:
        for arg in reads(node):
            self.remaining[arg] -= 1
        if self.written.get(node) is None:
            base = node.args[0]
            fresh = node.op is not index.SCATTER and base in self.owner and self.straight
            if fresh and self._in_order(base) is not False and self._dies(base):
                self.buffers[base] = self.owner.pop(base)
                self.order[node] = self._in_order(base)
            super()._write(node, block)
            self._subtract(node, block)
            self._write_columns(node, block)
            self._note_cell(node, block[-1])
            self._add_to_view(node, block)
            if node.aval.shape and "buffers" not in self.off:
                self.owner[node] = self.buffers[node]
            return
        variable = self._assembly(node, block) if node in self.whole else self.buffers[node.args[0]]  # its value is there
        self.exprs[node], self.weight[node], self.buffers[node] = name(variable), 0, variable
        if node not in self.whole:
            self.owner[node] = variable

    def _note_cell(self, node: Node, item: Any) -> None:
        """A number of the array's own kind is written to one place of it."""
        statement = item.node if isinstance(item, Line) else None
        if not (is_cell(node) or _starts_with_cell(node)) or not isinstance(statement, ast.Assign | ast.AugAssign):
            return
        (target,) = statement.targets if isinstance(statement, ast.Assign) else (statement.target,)
        value = node.args[node.op is not index.SCATTER].aval
        if isinstance(target, ast.Subscript) and value.kind == "python" and value.dtype == node.aval.dtype:
            self.cells.note(target, target.value, node.aval)

    def _course(self, *args: Any) -> Any:
        loop = super()._course(*args)
        if isinstance(loop, (For, While)):
            loop.turns = turns_of(args[0].course)
        return loop

    def _subtract(self, node: Node, block: list[Any]) -> None:
        """``x[i] -= v`` where ``-v`` was to be added."""
        if node.op is index.INDEX_ADD and node.args[1] in self.negated:
            block[-1].node.op = ast.Sub()
            self.remaining[node.args[1].args[0]] -= 1

    def _write_columns(self, node: Node, block: list[Any]) -> None:
        """What was just written into short pieces of rows, column by column."""
        spec, value = dict(node.params)["spec"], node.args[node.op is not index.SCATTER]
        if not _leaves_out(spec, node.aval.shape) or not self._is_narrow(index.region(spec, node.aval.shape)):
            return
        if (
            value.aval.dtype != node.aval.dtype
            or node.aval.dtype not in (np.float64, np.float32)
            or not isinstance(block[-1], Line)
        ):
            return
        line = block[-1].node
        if isinstance(line, ast.Assign | ast.AugAssign):
            (target,) = line.targets if isinstance(line, ast.Assign) else (line.target,)
            assert isinstance(target, ast.Subscript)
            place = ast.Subscript(target.value, target.slice, ast.Load())
            ufunc, terms = (np.positive, [line.value]) if isinstance(line, ast.Assign) else (_sum(line), [place, line.value])
            block[-1].node = ast.Expr(call_of("runtime.by_columns", name(self.bind(ufunc.__name__, ufunc)), *terms, place))

    def _add_to_view(self, node: Node, block: list[Any]) -> None:
        """``x[i, :n] += v`` as a sum into that view: Python would set ``x``'s items once more."""
        item = block[-1]
        if not isinstance(item, Line) or not isinstance(item.node, ast.AugAssign) or not _is_slice(node):
            return
        place, value, ufunc = item.node.target, item.node.value, _sum(item.node)
        assert isinstance(place, ast.Subscript)
        view = self.names.unique(f"{expr_name(place.value)}_part")
        item.node = assign(name(view), ast.Subscript(place.value, place.slice, ast.Load()))
        block.append(Line(ast.Expr(call_of(self.bind(ufunc.__name__, ufunc), name(view), value, name(view)))))

    def _look_at_writes(self, nodes: Sequence[Node]) -> None:
        """Find arrays that are put together from parts, all of them, and parts that can be computed in place."""
        following = {}
        for node in nodes:
            if node.op in index.WRITING and node.args[0].op in index.SCATTERING and self.uses[node.args[0]] == 1:
                following[node.args[0]] = node
        here = set(nodes)
        for node in nodes:
            for value in node.args[1:2] if node.op is index.INDEX_ADD and node.args[0].op is not create.ZEROS else ():
                alone = value in here and value.op is NEGATIVE and self.uses[value] == 1
                if alone and value.aval.shape and self._is_ufunc(value.args[0]) and _is_slice(node):
                    self.negatives.add(value)
        for node in nodes:
            if node.op is index.SETITEM and _is_slice(node) and len(node.args) == 2:
                base, value = node.args
                before = [arg for arg in value.args if arg.op is index.GETITEM and arg.args == (base,)]
                before = [arg for arg in before if arg.params == node.params and arg.aval == value.aval and self.uses[arg] == 1]
                alone = value in here and self.uses[value] == 1 and value.aval.dtype == node.aval.dtype
                if before and alone and self._is_ufunc(value) and value.op.key not in SLOW_IN_PLACE:
                    self.changes[value] = node, before[0]
        for first in nodes:
            if first.op not in index.SCATTERING or not (first.op is index.SCATTER or first.args[0].op is create.ZEROS):
                continue
            chain = [first]
            while chain[-1] in following:
                chain.append(following[chain[-1]])
            parts = [node.args[node is not first or first.op is not index.SCATTER] for node in chain]
            if not is_tiled(chain):
                self._look_at_first(chain, here)
                continue
            for node, part in zip(chain, parts, strict=True):
                self.whole[node] = chain[-1]
                if self.uses[part] == 1 and part in here and self._is_ufunc(part) and part.aval.dtype == node.aval.dtype:
                    self.into[part] = node

    def _leave_to_groups(self, grouped: Collection[Node]) -> None:
        """Arrays of which groups put parts together, in memory of their own, are put together there."""
        ends = {self.whole[node] for node in grouped if node in self.whole}
        for node in [node for node, end in self.whole.items() if end in ends]:
            del self.whole[node]
        self.into = {part: write for part, write in self.into.items() if write in self.whole}
        self.zeroed -= ends

    def _look_at_first(self, chain: Sequence[Node], here: Collection[Node]) -> None:
        """What is put into zeros first may be computed there, and all of it in the row that it is for."""
        first, end = chain[0], chain[-1]
        part = first.args[first.op is not index.SCATTER]
        if len(first.args) > len(first.op.rules):
            return
        whole = (
            part.aval.shape == index.region(dict(first.params)["spec"], end.aval.shape) and part.aval.dtype == end.aval.dtype
        )
        computed = whole and self.uses[part] == 1 and part in here and self._is_ufunc(part) and _is_slice(first)
        if not (computed or end in self.rows):
            return
        self.whole[first] = end
        self.zeroed.add(end)
        if computed:
            self.into[part] = first

    def _assembly(self, node: Node, block: list[Any]) -> str:
        """The array that a write is part of; all of it is written, or zero."""
        end = self.whole[node]
        if end not in self.assemblies:
            self.assemblies[end] = variable = self.rows.get(end) or self.names.of(end)
            if end in self.zeroed and end in self.rows:
                block.append(Line(ast.Expr(method(name(variable), "fill", ast.Constant(0)))))
            elif end in self.zeroed:
                block.append(Line(assign(name(variable), zeros(self, end, []))))
            elif end not in self.rows:
                block.append(Line(assign(name(variable), self._allocate(end.aval.shape, end.aval.dtype))))
        return self.assemblies[end]

    def _buffer(self, node: Node, base: Node | None, block: list[Any]) -> str:
        if node in self.whole:
            return self._assembly(node, block)
        return super()._buffer(node, base, block)

    def _part(self, node: Node, block: list[Any]) -> Expr | None:
        """Where to compute a part of an array that is put together."""
        write = self.into.get(node)
        if write is None:
            return None
        self.written[write] = node
        spec = dict(write.params)["spec"]
        return ast.Subscript(name(self._assembly(write, block)), index_of(spec, []), ast.Load())

    def _changed(self, node: Node, block: list[Any]) -> Expr | None:
        """``x[i, :n]``, where that alone is changed of ``x``, which nothing else needs before: a name of the view."""
        if node not in self.changes or not self.straight or self.changes[node][0] in self.whole:
            return None
        write, before = self.changes[node]
        base = write.args[0]
        if base in self.owner and self._in_order(base) is not False and self._is_left(base, 1):
            self.buffers[base] = self.owner.pop(base)
            self.order[write] = self._in_order(base)
        elif base not in self.buffers or not self._is_left(base, 1):
            return None
        view = name(self.names.unique(f"{self.buffers[base]}_part"))
        part = ast.Subscript(name(self.buffers[base]), index_of(dict(write.params)["spec"], []), ast.Load())
        block.append(Line(assign(view, part), self._comment(node, block)))
        self.exprs[before], self.written[write] = view, node
        return view

    def _is_ufunc(self, node: Node) -> bool:
        ufunc = bool(node.args) and isinstance(node.op.key, np.ufunc) and node.op.family in ("elementwise", "constant")
        return (ufunc or node.op in WITH_OUT) and isinstance(node.aval, Aval) and node.aval.shape != () and not node.params

    def _ufunc(self, node: Node, block: list[Any]) -> None:
        """``f(a, b, out)``, with a dead buffer as ``out`` where there is one."""
        in_place = self.straight and node.op.key not in SLOW_IN_PLACE
        row = self.rows.get(node)
        place = self._part(node, block) or self._changed(node, block) if row is None else name(row)
        target = self._dead_argument(node, block) if in_place and place is None else None
        args = [self.exprs[arg] for arg in node.args]
        if in_place:
            self._retire(node)
        if target is None and place is None and self.straight:
            target = self._dead_buffer(self._kind(node))
        asked = target is None and place is None and self._is_asked_for(node)
        if asked:
            self.order[node] = True
            target = self._dead_buffer(self._kind(node))
        if not in_place:
            self._retire(node)
        if target is not None:
            place = name(target)
        if place is None:
            new = {"out": self._allocate(node.aval.shape, node.aval.dtype)} if asked else {}
            expr = call_of(self._function(node), *self._operands(node, args), **new)
            self._store(node, self._repeating(node, expr) if asked else expr, block)
            self.owner[node] = expr_name(self.exprs[node])
            return
        expr = self._into(node, self._operands(node, args), place, strided=target is None and row is None)
        block.append(Line(ast.Expr(self._repeating(node, expr)), self._comment(node, block)))
        self.exprs[node], self.weight[node] = place, 0
        if target is not None:
            self.owner[node] = target

    def _chosen_in_place(self, node: Node, block: list[Any]) -> bool:
        """Write what a mask chooses into the row that is there for it, or into ``y``, where nothing reads that any more:
        half of what ``where`` takes for few numbers is to make an array."""
        few = node.op is REGISTRY[np.where] and node.aval.shape != () and math.prod(node.aval.shape) <= CHOSEN
        if not few or "buffers" in self.off:
            return False
        mask, x, y = node.args
        row = self.rows.get(node)
        if row is not None and y.op is CONST:
            calls = [method(name(row), "fill", self.exprs[y])]
            calls.append(call_of(self.bind("copyto", np.copyto), name(row), self.exprs[x], where=self.exprs[mask]))
            self._retire(node)
        elif row is None and self._is_free_for(node, y, x):
            row = self.owner.pop(y)
            calls = [call_of(self.bind("putmask", np.putmask), name(row), self.exprs[mask], self.exprs[x])]
            self._retire(node)
            self.owner[node] = row
        else:
            return False
        block += [Line(ast.Expr(call), self._comment(node, block)) for call in calls]
        self.exprs[node], self.weight[node] = name(row), 0
        return True

    def _chooses_a_number(self, node: Node) -> bool:
        """Whether a mask that is one flag chooses between numbers of NumPy's, as ``x if mask else y`` does in a hundredth of
        the time of ``where``."""
        if node.op not in _CHOICES or node.aval.shape or self.scalar:
            return False
        mask, x, y = node.args
        return (
            mask.aval.dtype == bool and not mask.aval.shape and all([self._is_numpys(arg, node.aval.dtype) for arg in (x, y)])
        )

    def _is_numpys(self, node: Node, dtype: Any) -> bool:
        """Whether it is a number of NumPy's of that kind, or becomes one as it stands."""
        if node.op is CONST:
            value = const(node)
            exact = dtype.char == "f" and abs(value) <= 2**24 and float(np.float32(value)) == value
            return exact or dtype.char in "dD?" or (dtype.char == "l" and type(value) is int)
        if node.aval.dtype != dtype:
            return False
        numpys = node.aval.kind == "scalar" and not self._is_python(node)
        return numpys or node in self.chosen or (node.aval.kind == "python" and dtype == np.float64)

    def _numpys(self, node: Node, dtype: Any) -> Expr:
        if node.op is CONST:
            return self._number(dtype.type(const(node)))
        expr = self.exprs[node]
        return call_of(self.bind(dtype.name, dtype.type), expr) if node.aval.kind == "python" else expr

    def _is_free_for(self, node: Node, y: Node, x: Node) -> bool:
        """Whether ``y`` may become what a mask chooses from it and ``x``, of which it needs as many numbers, or one."""
        alike = x.aval.dtype == node.aval.dtype or x.aval.kind == "python"
        whole = node.args[0].aval.shape == node.aval.shape and x.aval.shape in ((), node.aval.shape) and y.aval == node.aval
        apart = y not in self.root and y is not self.root.get(x, x)
        return self.straight and alike and whole and apart and y in self.owner and self._dies(y)

    def _is_asked_for(self, node: Node) -> bool:
        """Whether an array in C order is handed over for a result: one of NumPy's own would follow the arguments."""
        wanted = self._is_pooled(node.aval.shape, node.aval.dtype) or (self.straight and self._has_columns(node))
        return wanted and self._in_order(node) is not False

    def _repeating(self, node: Node, call: Expr) -> Expr:
        """The call of a ufunc with ``out``, where its numbers repeat as is quickest."""
        if math.prod(node.aval.shape) < min(ROWS, runtime.FEW_ROWS):
            return call
        if self._has_columns(node):
            return flat("runtime.by_columns", call)
        if self._in_order(node) is not True:
            shapes, shape = self.beside(node), node.aval.shape
            many = math.prod(shape) >= 4 * runtime.FEW_ROWS and any([other not in ((), shape) for other in shapes])
            return flat("runtime.by_rows", call) if many else call
        return through(call_of("runtime.row_by_row"), call) if self.repeats(node) else call

    def _has_columns(self, node: Node) -> bool:
        """Whether numbers are repeated in or for rows of a few, or left out, at each of which NumPy would begin a loop."""
        if not self._is_narrow(node.aval.shape) or node.aval.dtype not in (np.float64, np.float32):
            return False
        arrays = [arg.aval for arg in node.args if arg.aval.kind == "array"]
        if any(aval.dtype != node.aval.dtype for aval in arrays):
            return False
        if any(map(_has_gaps, node.args)):
            return isinstance(node.op.key, np.ufunc)
        if node.op not in _ARITHMETIC or len(arrays) != 2 or node.aval.dtype != np.float64:
            return False
        few = node.aval.shape[-1]
        repeated = [aval.shape[-1:] == (1,) or math.prod(aval.shape) == few for aval in arrays]
        return () not in [aval.shape for aval in arrays] and True in repeated

    def _is_narrow(self, shape: tuple[int, ...]) -> bool:
        """Whether an array has many rows of a few numbers."""
        return 1 < shape[-1] <= COLUMNS and math.prod(shape[:-1]) >= ROWS and "layout" not in self.off

    def _out(self, node: Node) -> Expr | None:
        """An array for a big result: a dead one, else one from the pool."""
        if not self._is_pooled(node.aval.shape, node.aval.dtype):
            return None
        self.order[node] = True
        dead = self._dead_buffer(self._kind(node))
        return name(dead) if dead else self._allocate(node.aval.shape, node.aval.dtype)

    def _takes_out(self, node: Node, expr: Expr) -> bool:
        """Whether it is ``a.dot(b)``, ``matmul(a, b)``, ``concatenate(arrays, axis)``, or the like."""
        if not isinstance(expr, ast.Call):
            return False
        if node.op in _OUT_LAST or _is_transform(node):
            return True
        if isinstance(expr.func, ast.Name):
            function = self.namespace.get(expr.func.id)
            return function is np.matmul or function is np.concatenate or expr.func.id in self.products
        if not isinstance(expr.func, ast.Attribute):
            return False
        return expr.func.attr in ("dot", "running") or (node.op in _OWN_OUT and ast.unparse(expr.func.value) == "runtime")

    def _reduces(self, node: Node, expr: Expr) -> bool:
        """Whether it is ``add_reduce(a, axis)``, ``np.logaddexp.reduce(a, axis=0)``, or the like, of more than one number."""
        if not isinstance(expr, ast.Call) or not node.aval.shape or "buffers" in self.off:
            return False
        if isinstance(expr.func, ast.Name):
            return getattr(self.namespace.get(expr.func.id), "__name__", None) == "reduce"
        return isinstance(expr.func, ast.Attribute) and expr.func.attr == "reduce"

    def _dead_buffer(self, kind: tuple[Any, ...]) -> str | None:
        waiting = self.free.get(kind) if self.straight and "buffers" not in self.off else None
        return waiting.pop() if waiting else None

    def _dead_base(self, group: Group, node: Node) -> str | None:
        variable = self.owner.get(node) or self.buffers.get(node)
        free = self.straight and "buffers" not in self.off and variable is not None
        read = [arg for member in group.nodes for arg in member.args if self.root.get(arg, arg) is node]
        alone = len(read) == 1  # by the slice that is added first
        if not (free and alone and self._in_order(node) and self._dies(node)):
            return None
        self.owner.pop(node, None)
        return variable

    def _dead_window(self, group: Group, node: Node) -> str | None:
        if not self.straight or "buffers" in self.off:
            return None
        read = [window for window, _ in group.windows]
        others = {arg for member in group.nodes for arg in member.args}  # in blocks or, the factor of a product, whole
        for window, lane in group.windows:
            seen = any([self.root.get(other, other) is window for other in others if other is not window])
            fits = self._kind(window) == (node.aval.shape, node.aval.dtype, True) and lane == group.lanes[node]
            alone = window in self.owner and read.count(window) == 1 and not seen and self._dies(window)
            if fits and alone and is_read_before(group, window, node):
                return self.owner.pop(window)
        return None

    def _dead_argument(self, node: Node, block: list[Any]) -> str | None:
        """An argument's buffer that nothing reads after this node, of the right shape and dtype; it may be seen turned. The one
        that goes round first, if this is what it becomes."""
        wanted = self.buffers.get(self.becomes[node]) if node in self.becomes else None
        for arg in node.args if wanted is None else sorted(node.args, key=lambda arg: self.owner.get(arg) != wanted):
            root = self.root.get(arg, arg)
            fits = arg.aval.shape == node.aval.shape and arg.aval.dtype == node.aval.dtype
            if root in self.owner and fits and self._is_whole(arg, root) and self._dies(root):
                variable = self.owner.pop(root)
                if arg is root:
                    return variable
                if not isinstance(self.exprs[arg], ast.Name):
                    self._store(arg, self.exprs[arg], block)
                return expr_name(self.exprs[arg])
        return None

    def _is_whole(self, view: Node, root: Node) -> bool:
        """Whether a view shows every element of a buffer once."""
        while view is not root:
            if view.op not in (REGISTRY[np.reshape], REGISTRY[np.transpose], REGISTRY[np.expand_dims]):
                return False
            (view,) = view.args
        return True

    def _kind(self, node: Node) -> tuple[Any, ...]:
        """What buffers must have in common to stand in for each other: the order of their memory, too."""
        return node.aval.shape, node.aval.dtype, self._in_order(node)

    def _in_order(self, node: Node) -> bool | None:
        """Whether the buffer of a node is in C order: True if surely, False if it surely is not, None if who knows."""
        if node not in self.order:
            found: bool | None
            if node.op in (REGISTRY[np.transpose], REGISTRY[np.swapaxes]) and len(node.aval.shape) > 1:
                found = False
            elif node.args and node.op.family == "elementwise" and len(node.aval.shape) < 2:
                found = True
            elif node.args and node.op.family == "elementwise":
                shaped = [arg for arg in node.args if len(arg.aval.shape) > 1 and sum([n > 1 for n in arg.aval.shape]) > 1]
                orders = [self._in_order(arg) for arg in shaped]
                found = False if False in orders else None if None in orders else True
            else:
                found = is_contiguous(node) or None
            self.order[node] = found
        return self.order[node]

    def _dies(self, node: Node) -> bool:
        return self.remaining[node] == 0 and not any(self.remaining.get(view, 0) for view in self.members.get(node, ()))

    def _retire(self, node: Node) -> None:
        """Put the buffers that die here aside, for later results."""
        for arg in node.args:
            root = self.root.get(arg, arg)
            if root in self.owner and self._dies(root):
                variable = self.owner.pop(root)
                self.free.setdefault(self._kind(root), []).append(variable)

    def _number(self, value: Any) -> Expr:
        if self.scalar and isinstance(value, np.float64):
            value = float(value)
        if type(value) is float and value in (math.inf, -math.inf):
            infinite = name(self.bind("inf", math.inf))
            return infinite if value > 0 else ast.UnaryOp(ast.USub(), infinite)
        if isinstance(value, np.generic):  # to make one costs more than most that is done with it
            kept = self.numbers.setdefault((value.dtype, value.tobytes()), value)
            return name(self.bind("number" if value else "zero", kept))
        return super()._number(value)

    def _is_contiguous(self, node: Node) -> bool:
        return self._in_order(node) is True

    def _output(self, out: Any, kind: str, used: set[Node]) -> Expr:
        expr = super()._output(out, kind, used)
        if kind == "scalar" and isinstance(out, Node) and out.aval.kind == "scalar" and self.scalar:
            return self._number_of_numpys(out, expr)
        return expr

    def _number_of_numpys(self, out: Node, expr: Expr) -> Expr:
        if out.aval.kind == "array" and not self.scalar:
            return super()._number_of_numpys(out, expr)
        return call_of(self.bind(out.aval.dtype.name, out.aval.dtype.type), expr)

    def _spell(self, node: Node, block: list[Any]) -> Expr:
        args = [self.exprs[arg] for arg in node.args]
        if self.scalar or self._is_own(node) or (self.program.apart and node.op in ROUNDING):
            if node.op in MIXING and any(arg.aval.dtype == np.float64 for arg in node.args):
                args = [self._as_float(arg) or expr for arg, expr in zip(node.args, args, strict=True)]
            expr = self._python_spelling(node, args)
            if expr is not None:
                return expr
        if node in self.chosen:
            return ast.IfExp(args[0], *[self._numpys(arg, node.aval.dtype) for arg in node.args[1:]])
        if node.op is engine.TO_NUMPY and node.args[0] in self.chosen and node.args[0].aval.dtype == node.aval.dtype:
            return args[0]
        rule = FAST.get(node.op) or SPELLINGS.get(node.op, default_spelling)
        expr = rule(self, node, args)
        if (self.scalar or self.program.apart) and node.op in GROWING and node.aval == _INT64:
            return call_of("runtime.int64", expr)  # which NumPy's are, where this is Python's
        return expr

    def _as_float(self, arg: Node) -> Expr | None:
        """A whole number as a float, which Python works with faster beside another float; None for anything else."""
        value = const(arg)
        return self._number(float(value)) if type(value) is int and abs(value) <= EXACT else None

    def _python_spelling(self, node: Node, args: list[Expr]) -> Expr | None:
        """An operation on numbers as Python has it."""
        known = all(self._is_python(arg) for arg in node.args)
        if node.op in MATH and (not node.exact or node.op in ROUNDED):
            self.python.add(node)
            args = [decaying(arg) for arg in args] if node.op is EXP else args
            return call_of(self.bind(MATH[node.op].__name__, MATH[node.op]), *args)
        if node.op in MATH and self._is_own(node):
            return call_of("float", default_spelling(self, node, args))
        if node.op in CONDITIONAL:
            return CONDITIONAL[node.op](self, node, args)
        if node.op is engine.TO_PYTHON and known:
            self.python.add(node)
            return args[0]
        if node.op in ABS:
            (arg,) = node.args
            inner = arg.args[0] if arg.op is engine.TO_NUMPY and arg.aval.dtype == np.float64 else arg
            if self._is_python(inner):
                self.python.add(node)
                return call_of("abs", self.exprs[inner])
        if node.op in ROUNDING and self._is_python(node.args[0]) and node.aval.dtype == np.float64:
            digits = [const(arg) for arg in node.args[1:]] or [dict(node.params).get("decimals", 0)]
            if type(digits[0]) is int:
                self.python.add(node)
                return call_of("runtime.rounded", args[0], number(digits[0]))
        if node.op in OPERATORS and known:
            self.python.add(node)
        called = isinstance(node.op.key, np.ufunc) and node.op not in FAST and node.op not in SPELLINGS
        if called and node.aval.dtype == np.float64:  # of NumPy's number, whatever follows would take longer
            self.python.add(node)
            return call_of("float", default_spelling(self, node, args))
        return None

    def _is_python(self, node: Node) -> bool:
        plain = node.op in (CONST, INPUT) and getattr(node.aval, "kind", "") == "python"
        return plain or node in self.python or self._is_own(node)

    def _is_own(self, node: Node) -> bool:
        """Whether it is a number of an array that was taken apart."""
        return self.program.apart and getattr(node.aval, "kind", "") == "python"


def _is_slice(node: Node) -> bool:
    """Whether ``x[index]``, which is read or written to, is a view of ``x``, of one element (``x[..., 0]``) or more, and not a
    number or a copy."""
    if node.op is CELL:
        return False
    spec, axes = dict(node.params)["spec"], len(node.args[0].aval.shape)
    element = len(spec) == axes and all([type(part) in (int, index.Hole) for part in spec])
    places = node.args[len(node.op.rules) :]
    return not element and all([not place.aval.shape and place.aval.dtype.kind in "iu" for place in places])


def _is_own_array(item: Node) -> bool:
    """Whether a result of a loop is an array that it fills, and that nothing else of it is a view of."""
    (loop,) = item.args
    body, arrays = loop.op.body, dict(loop.params).get("arrays", ())
    rows = {body.saved[j] for j in arrays}
    shown = {node for after in body.after for node in _shown(after)}
    return dict(item.params)["item"] - len(body.after) in arrays and rows.isdisjoint(shown)


def _shown(node: Node) -> list[Node]:
    """The nodes whose memory this one may show, from itself on: one that is a row, and is read early, is copied into it."""
    found = [node]
    while found[-1].args and may_be_view(found[-1]):
        found.append(found[-1].args[0])
    return found


def _memory(node: Node) -> Node:
    """The node whose memory another one may show."""
    return _shown(node)[-1]


def is_tiled(chain: Sequence[Node]) -> bool:
    """Whether writes put all of an array there, each element once, in slabs along one axis."""
    if any(node.op is index.INDEX_ADD for node in chain[1:]) or not chain[0].aval.shape:
        return False
    shape = chain[0].aval.shape
    spans = []
    for node in chain:
        spec = dict(node.params)["spec"]
        value = node.args[node.op is not index.SCATTER]
        if not all(type(part) is index.Slice for part in spec) or len(spec) > len(shape):
            return False
        places = [range(*slice(*part).indices(size)) for part, size in zip(spec, shape, strict=False)]
        cut = [axis for axis, place in enumerate(places) if place != range(shape[axis])]
        region = (*map(len, places), *shape[len(places) :])
        if len(cut) != 1 or places[cut[0]].step != 1 or value.aval.shape != region:
            return False
        spans.append((cut[0], places[cut[0]].start, places[cut[0]].stop))
    spans.sort()
    axis, ends = spans[0][0], [0, *(stop for _, _, stop in spans)]
    return ends[-1] == shape[axis] and all(a == axis and start == end for (a, start, _), end in zip(spans, ends, strict=False))


def _sum(statement: ast.AugAssign) -> Any:
    """What adds, or subtracts."""
    return np.subtract if isinstance(statement.op, ast.Sub) else np.add


def _items(nodes: Sequence[Node]) -> dict[Node, dict[int, Node]]:
    """The elements that are read of each array that is taken apart, by any of the loops that have it in their bodies."""
    found: dict[Node, dict[int, Node]] = {}
    for node in nodes:
        if isinstance(node.op, Loop):
            for array, read in _items(node.op.body.nodes()).items():
                found.setdefault(array, {}).update(read)
        elif node.op is engine.ITEM and node.args[0].op is UNPACK:
            found.setdefault(node.args[0], {})[dict(node.params)["item"]] = node
    return found


def _plain_number(node: Node) -> bool:
    if isinstance(node.op, Loop):
        return all(_plain_number(inner) for inner in (*node.op.body.inputs, *node.op.body.nodes()))
    aval = node.aval
    if isinstance(aval, Aval) and _is_numpys_alone(node):
        return False
    while isinstance(aval, ListAval):
        aval = aval.element
    if not isinstance(aval, Aval) or aval.shape or aval.kind == "array":
        return False
    return aval.dtype in (np.dtype(float), np.dtype(int), np.dtype(bool))


def _is_numpys_alone(node: Node) -> bool:
    """Whether Python's operator gives something else: of truth values, which NumPy adds up to one, and of whole numbers to a
    power that may be negative."""
    if node.op in _POWERS and node.aval == _INT64:
        exponent = const(node.args[1])
        return exponent is None or exponent < 0
    return node.aval.dtype == bool and (node.op in GROWING or node.op in _INVERT)


_INT64 = Aval((), np.dtype(np.int64), "scalar")
_POWERS, _INVERT = ops_of(np.power), ops_of(np.invert)
ROUNDING = ops_of(np.round, np.around)
GROWING = ops_of(np.add, np.subtract, np.multiply, np.negative, np.abs, np.square, np.left_shift, np.power, np.floor_divide)


def _names(expr: Expr) -> set[str]:
    """The variables that an expression reads."""
    return {part.id for part in ast.walk(expr) if isinstance(part, ast.Name)}


def _has_gaps(x: Node) -> bool:
    """Whether the rows of an array are pieces of others, or have others between them."""
    if x.op is not index.GETITEM or len(x.args) != 1:
        return False
    spec, shape = dict(x.params)["spec"], x.args[0].aval.shape
    if not all(type(part) in (int, index.Slice) for part in spec):
        return False
    kept = [type(part) is index.Slice for part in spec] + [True] * (len(shape) - len(spec))
    return _leaves_out(spec, shape) or (kept[0] and kept[-1] and not all(kept))


def _leaves_out(spec: index.Spec, shape: tuple[int, ...]) -> bool:
    """Whether slices leave out numbers of rows, or take the rows backwards."""
    if not spec or not all(type(part) is index.Slice for part in spec):
        return False
    cut = len(spec) == len(shape) and index.region(spec, shape)[-1] < shape[-1]
    return cut or any((part.step or 1) < 0 for part in spec)


def flat(function: str, call: Expr) -> Expr:
    """``function(f, x, y, out)`` for ``f(x, y, out)``."""
    assert isinstance(call, ast.Call)
    return call_of(function, call.func, *call.args, *[word.value for word in call.keywords])


def expr_name(expr: Expr) -> str:
    """The variable that an expression is."""
    assert isinstance(expr, ast.Name)
    return expr.id


# -- cheaper calls -------------------------------------------------------------------------------------------------


@_fast(np.matmul, np.dot)
def matmul(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``a.dot(b)`` up to two dimensions, where it means the same; stacks by ``matmul``, which takes ``out``, too."""
    a, c = node.args
    plain = all(n.aval.kind == "array" and n.aval.shape and 0 not in n.aval.shape for n in (a, c))
    if plain and node.aval.dtype.kind in "fc" and a.aval.dtype == c.aval.dtype:
        if max(len(a.aval.shape), len(c.aval.shape)) <= 2:
            if not node.exact or node.op is REGISTRY[np.dot] or not isinstance(b, FastBuilder):
                return method(args[0], "dot", args[1])
            return b.product(node, args)
        if node.op is REGISTRY[np.matmul]:
            return call_of(b.bind("matmul", np.matmul), *args)
    return SPELLINGS.get(node.op, default_spelling)(b, node, args)


@_fast(index.DOT)
def dot(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``x[:i].dot(y[:i])``."""
    x, y, start, stop = args
    return method(narrowed(x, start, stop, node.args[0]), "dot", narrowed(y, start, stop, node.args[1]))


@_fast(index.GETITEM)
def getitem(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``x.take(places, axis)`` for rows of an array, in a quarter of the time."""
    x, *arrays = node.args
    if len(arrays) == 1 and len(x.aval.shape) > 1 and arrays[0].aval.kind == "array" and arrays[0].aval.dtype.kind == "i":
        parts = [part for part in dict(node.params)["spec"] if part is not Ellipsis]
        axis = next((i for i, part in enumerate(parts) if type(part) is index.Hole), 0)
        if all([i == axis or part == index.EVERY for i, part in enumerate(parts)]) and _in_front(node, axis):
            return method(args[0], "take", args[1], literal(axis))
    if len(arrays) > 1 and math.prod(node.aval.shape) >= PICKED and all(map(_are_places, arrays)):
        rest = [index.EVERY] * (len(x.aval.shape) - len(arrays))
        spec = [*map(index.Hole, range(len(arrays))), *rest]
        if list(dict(node.params)["spec"]) in (spec, spec[: len(arrays)]) and len({array.aval.shape for array in arrays}) == 1:
            return call_of("runtime.pick", *args)
    return SPELLINGS[node.op](b, node, args)


@_fast(engine.TO_PYTHON)
def to_python(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``numbers[i]`` of a list, in a fifth of the time, for ``int(places[i])`` of an array that stays as it is."""
    (item,) = node.args
    stays = item.op is index.GETITEM and item.args[0].op is CAPTURED and node.aval.kind == "python"
    stays = stays and not item.aval.shape  # ``numbers[i : i + 1].item()`` is no list
    match args[0]:
        case ast.Subscript(ast.Name(variable), where) if stays:
            array: Any = b.namespace.get(variable)
            one = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype in (np.int64, np.float64)
            if one and array.base is None and not array.flags.writeable:
                return ast.Subscript(name(b.listed(array)), where, ast.Load())
    return SPELLINGS[node.op](b, node, args)


def _are_places(node: Node) -> bool:
    return bool(node.aval.kind == "array" and node.aval.dtype == np.int64)


def _in_front(node: Node, axis: int) -> bool:
    """Whether no ellipsis stands before an index array."""
    return Ellipsis not in dict(node.params)["spec"][: axis + 1]


@_fast(np.power)
def power(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``math.pow`` for numbers, which raises where ``x ** 0.5`` turns complex at a negative ``x``: then the call is traced."""
    base, exponent = node.args
    fast = isinstance(b, FastBuilder) and (b.scalar or all(map(b._is_python, node.args)))
    plain = node.aval.kind == "python" or fast  # else NumPy's numbers, which give nan
    if not plain or node.aval.dtype != np.float64:
        return SPELLINGS[node.op](b, node, args)
    whole = exponent.op is CONST and const(exponent) % 1 == 0
    known = base.op is CONST and const(base) >= 0
    return SPELLINGS[node.op](b, node, args) if whole or known else call_of(b.bind("pow", math.pow), *args)


@_fast(LIST)
def as_list(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``x.tolist()``, the axes that are counted by first, the others as one."""
    shape, axes = node.args[0].aval.shape, dict(node.params)["axes"]
    order = (*axes, *(axis for axis in range(len(shape)) if axis not in axes))
    rows = args[0] if order == tuple(range(len(shape))) else method(args[0], "transpose", literal(order))
    if len(shape) > len(axes) + 1:
        rows = method(rows, "reshape", literal((*(shape[axis] for axis in axes), -1)))
    return method(rows, "tolist")


@_fast(LISTED)
def list_of_numbers(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``[a, b]``."""
    return ast.List(args, ast.Load())


@_fast(STACK)
def stacked(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """Lists as the columns of an array."""
    if len(args) == 1:
        columns, ndim = call_of("np.array", *args), 1
    else:
        columns, ndim = ast.Attribute(call_of("np.array", ast.List(args, ast.Load())), "T", ast.Load()), 2
    return columns if len(node.aval.shape) == ndim else method(columns, "reshape", literal(dict(node.params)["shape"]))


def _starts_with_cell(node: Node) -> bool:
    """Whether it is an array of zeros but for one number."""
    whole = node.op is index.SCATTER and len(dict(node.params)["spec"]) == len(node.aval.shape)
    return whole and all([type(part) is int for part in dict(node.params)["spec"]])


@_fast(CELL)
def cell(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``x.item(i, j)``."""
    found = method(args[0], "item", *args[1:])
    if isinstance(b, FastBuilder):
        b.cells.note(found, args[0], node.args[0].aval)
    return found


@_fast(PICK)
def pick(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``x[i][j]``."""
    found, *places = args
    for place in places:
        found = ast.Subscript(found, place, ast.Load())
    return found


@_fast(np.concatenate)
def concatenate(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """By position, so that it takes ``out``."""
    if not set(dict(node.params)) <= {"axis"} or any(arg.aval.dtype != node.aval.dtype for arg in node.args):
        return default_spelling(b, node, args)
    return _joined(b, args, dict(node.params).get("axis", 0))


def _joined(b: Builder, parts: list[Expr], axis: int | None) -> Expr:
    return call_of(b.bind("concatenate", np.concatenate), ast.Tuple(parts, ast.Load()), literal(axis))


@_fast(np.cross)
def cross(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """Without what NumPy's own, which is written in Python, looks at first."""
    shape = node.aval.shape
    if node.params or len(shape) < 2 or any(arg.aval.dtype != node.aval.dtype for arg in node.args):
        return default_spelling(b, node, args)
    return call_of("runtime.cross_rows", *args, literal(shape))


@_fast(np.stack)
def stack(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``np.array([x, y])``, or ``x[:, None]`` beside ``y[:, None]``: NumPy's own is written in Python."""
    axis, ndim = dict(node.params).get("axis", 0), len(node.aval.shape)
    alike = ndim == 1 or all(arg.aval.dtype == node.aval.dtype for arg in node.args)
    if set(dict(node.params)) > {"axis"} or not alike:
        return default_spelling(b, node, args)
    if axis % ndim == 0:
        return call_of("np.array", ast.List(args, ast.Load()))
    place: list[Expr] = [ast.Slice(None, None, None)] * (axis % ndim)
    return _joined(b, [subscript(arg, [*place, ast.Constant(None)]) for arg in args], axis)


@_fast(np.roll)
def roll(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """Along one axis, its end before the rest: NumPy's own is written in Python."""
    params, shape = dict(node.params), node.aval.shape
    axis = 0 if params.get("axis") is None and len(shape) == 1 else params.get("axis")
    if type(axis) is not int or type(params.get("shift")) is not int or 0 in shape or not shape:
        return default_spelling(b, node, args)
    before, cut = [ast.Slice(None, None, None)] * (axis % len(shape)), number(-params["shift"] % shape[axis])
    parts: list[Expr] = [subscript(args[0], [*before, part]) for part in (ast.Slice(cut, None), ast.Slice(None, cut))]
    return _joined(b, parts, axis)


@_fast(np.flip)
def flip(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``x[::-1]``."""
    ndim, axis = len(node.aval.shape), dict(node.params).get("axis")
    axes = range(ndim) if axis is None else [i % ndim for i in (axis if isinstance(axis, tuple) else (axis,))]
    if node.args[0].aval.kind != "array" or not axes:
        return default_spelling(b, node, args)
    step = ast.UnaryOp(ast.USub(), ast.Constant(1))
    return subscript(args[0], [ast.Slice(None, None, step if i in axes else None) for i in range(max(axes) + 1)])


@_fast(np.transpose, np.swapaxes, np.moveaxis)
def turned_view(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``x.transpose(axes)``."""
    (x,) = node.args
    if x.aval.kind != "array" or not node.params:
        return SPELLINGS.get(node.op, default_spelling)(b, node, args)
    order = node.op.fun(np.broadcast_to(0, range(len(x.aval.shape))), **dict(node.params)).shape
    return method(args[0], "transpose", literal(order))


@_fast(np.diagonal, np.trace, np.squeeze, np.ravel)
def as_method(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``x.diagonal()``, which the function calls in the end."""
    if node.args[0].aval.kind != "array":
        return SPELLINGS.get(node.op, default_spelling)(b, node, args)
    return method(args[0], node.op.key.__name__, **{key: literal(value) for key, value in node.params})


@_fast(np.copy)
def copy(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``x.copy()``."""
    if node.args[0].aval.kind != "array" or set(dict(node.params)) != {"order"}:
        return default_spelling(b, node, args)
    order = dict(node.params)["order"]
    return method(args[0], "copy", *([] if order == "C" else [literal(order)]))


def _accumulation(ufunc: np.ufunc) -> Spelling:
    accumulate = ufunc.accumulate  # one object, so that it gets one name

    def spell(b: Builder, node: Node, args: list[Expr]) -> Expr:
        (x,), params = node.args, dict(node.params)
        axis = params.pop("axis", None)
        axis = 0 if axis is None and len(x.aval.shape) == 1 else axis
        if x.aval.kind != "array" or not x.aval.shape or x.aval.dtype.kind not in "fc" or axis is None or params:
            return default_spelling(b, node, args)
        count, run = x.aval.shape[axis], math.prod(x.aval.shape[axis:][1:])
        rows = count > 1 and run >= RUN and math.prod(x.aval.shape) >= LONG * count and x.aval.dtype.kind == "f"
        if rows and isinstance(b, FastBuilder) and "lower" not in b.off:
            return call_of("runtime.running", name(b.bind(ufunc.__name__, ufunc)), args[0], literal(axis))
        return call_of(b.bind(f"{ufunc.__name__}_accumulate", accumulate), args[0], *([literal(axis)] if axis else []))

    return spell


_fast(np.cumsum)(_accumulation(np.add))
_fast(np.cumprod)(_accumulation(np.multiply))
for _key in [key for key in REGISTRY if isinstance(key, Running)]:
    _fast(_key)(_accumulation(_key.ufunc))


def _has_kernel(node: Node) -> bool:
    """Whether all matrices are such that ``np.linalg`` gives them to its kernels as they are."""
    doubles = all([arg.aval.kind == "array" and arg.aval.dtype.char in "dD" for arg in node.args])
    return doubles and not node.params and runtime.KERNELS is not None


@_fast(np.linalg.inv, np.linalg.solve, np.linalg.cholesky)
def matrix(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """Without what NumPy's own looks at first; but for systems that decide something, which might be solved otherwise."""
    if not _has_kernel(node) or (node.exact and node.op is REGISTRY[np.linalg.solve]):
        return SPELLINGS.get(node.op, default_spelling)(b, node, args)
    return call_of(f"runtime.{_CHECKED[node.op]}", *args)


_CHECKED = {REGISTRY[np.linalg.inv]: "inv", REGISTRY[np.linalg.solve]: "solve", REGISTRY[np.linalg.cholesky]: "lower_cholesky"}
_OWN_OUT = {*_CHECKED, REGISTRY[np.cross]}  # what takes ``out`` in this package's own functions


@_fast(np.tril, np.triu)
def triangle(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``np.where`` with a mask that is there: NumPy's own makes it anew, and takes several times as long for it."""
    shape = node.aval.shape[-2:]
    if node.aval.dtype.char not in "fdFD" or len(node.aval.shape) < 2 or math.prod(shape) > PLACES:
        return SPELLINGS.get(node.op, default_spelling)(b, node, args)
    mask = _triangle(shape, dict(node.params).get("k", 0), node.op is REGISTRY[np.tril])
    return call_of(b.bind("where", np.where), name(b.bind("triangle", mask)), args[0], literal(0))


@functools.lru_cache(64)
def _triangle(shape: tuple[int, int], k: int, lower: bool) -> np.ndarray[Any, Any]:
    return np.tri(*shape, k, dtype=bool) if lower else ~np.tri(*shape, k - 1, dtype=bool)


def _is_transform(node: Node) -> bool:
    """Whether it is one of NumPy's Fourier transforms, each step of which has the result's shape."""
    if node.op not in _ALONG_SEVERAL:
        return node.op in _ALONG_ONE
    return node.args[0].aval.shape == node.aval.shape and dict(node.params).get("axes") != ()


@_fast(np.linalg.det, np.linalg.slogdet)
def determinant(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """The kernel itself, which makes a pair of a sign and a logarithm."""
    if not _has_kernel(node):
        return SPELLINGS.get(node.op, default_spelling)(b, node, args)
    key = node.op.key.__name__
    return call_of(b.bind(key, getattr(runtime.KERNELS, key)), *args)


@_fast(np.outer)
def outer(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``multiply.outer`` without the wrapper; in derivatives, where no zero's sign matters, as the product of matrices that it
    is, which NumPy begins with sooner."""
    if not all(len(arg.aval.shape) == 1 for arg in node.args):
        return default_spelling(b, node, args)
    column = subscript(args[0], [ast.Slice(None, None, None), ast.Constant(None)])
    if isinstance(b, FastBuilder) and b.repeats(node):
        return through(call_of("runtime.row_by_row"), call_of(b.bind("multiply", np.multiply), column, args[1]))
    alike = all(arg.aval.dtype == node.aval.dtype and 0 not in arg.aval.shape for arg in node.args)
    if alike and node.phase is not None and not node.exact and node.aval.dtype.kind in "fc":
        return method(column, "dot", subscript(args[1], [ast.Constant(None)]))
    return call_of(b.bind("multiply", np.multiply), column, args[1])


def _reduction(ufunc: np.ufunc) -> Spelling:
    reduce = ufunc.reduce  # one object, so that it gets one name

    def spell(b: Builder, node: Node, args: list[Expr]) -> Expr:
        params, dtype = dict(node.params), node.args[0].aval.dtype
        if node.args[0].aval.kind != "array" or not set(params) <= {"axis", "keepdims", "dtype"}:
            return default_spelling(b, node, args)
        counts = dtype == bool and params.get("dtype") == node.aval.dtype
        if not counts and (dtype != node.aval.dtype or (dtype.kind not in "fc" and ufunc not in _LOGICAL)):
            return default_spelling(b, node, args)
        product = b.added_up(node, args[0]) if isinstance(b, FastBuilder) and ufunc is np.add and not counts else None
        if product is not None:
            return product
        large = (
            not counts and math.prod(node.args[0].aval.shape) >= LARGE and isinstance(b, FastBuilder) and "lower" not in b.off
        )
        large = large and not (node.exact and ufunc in _ROUNDING)
        if large and adds_rows(node):
            keep = [ast.Constant(True)] if params.get("keepdims") else []
            return call_of("runtime.reduce_rows", name(b.bind(ufunc.__name__, ufunc)), args[0], *keep)
        if large and adds_columns(node) and ufunc is np.add:
            total = call_of("np.einsum", ast.Constant("...a->..."), args[0])
            return subscript(total, [ast.Constant(...), ast.Constant(None)]) if params.get("keepdims") else total
        function = b.bind(f"{ufunc.__name__}_reduce", reduce)
        positional = [args[0], literal(params.get("axis"))]
        if counts or params.get("keepdims"):
            positional += [literal(node.aval.dtype) if counts else ast.Constant(None)]
        if params.get("keepdims"):
            positional += [ast.Constant(None), ast.Constant(True)]
        return call_of(function, *positional)

    return spell


_LOGICAL = (np.logical_or, np.logical_and)
_ROUNDING = (np.add, np.multiply)

_add_reduce = _reduction(np.add)


@_fast(np.sum)
def total(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """``count_nonzero`` of a mask, in a tenth of the time; as a number of NumPy's, which decides the types of what it meets."""
    (x,) = node.args
    kept = node.aval.shape or not set(dict(node.params)) <= {"axis", "dtype"}
    if kept or x.aval.kind != "array" or x.aval.dtype != bool or not x.aval.shape:
        return _add_reduce(b, node, args)
    return call_of(f"np.{node.aval.dtype.name}", call_of(b.bind("count_nonzero", np.count_nonzero), args[0]))


_fast(np.prod)(_reduction(np.multiply))
_fast(np.max)(_reduction(np.maximum))
_fast(np.min)(_reduction(np.minimum))
_fast(np.any)(_reduction(np.logical_or))
_fast(np.all)(_reduction(np.logical_and))


@_fast(np.mean)
def mean(b: Builder, node: Node, args: list[Expr]) -> Expr:
    """Sum over count, as NumPy's own; half precision sums in single, so it keeps ``np.mean``."""
    x = node.args[0].aval
    params = dict(node.params)
    plainly = set(params) <= {"axis", "keepdims"} and node.aval.dtype == x.dtype
    if x.kind != "array" or x.dtype.kind not in "fc" or x.dtype.itemsize < 4 or not plainly:
        return default_spelling(b, node, args)
    count = int(np.prod(x.shape)) // max(int(np.prod(node.aval.shape)), 1)
    if count == 0:
        return default_spelling(b, node, args)
    total = _add_reduce(b, node, args)
    return ast.BinOp(total, ast.Div(), ast.Constant(count))
