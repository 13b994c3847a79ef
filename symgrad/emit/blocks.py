"""The printing of groups: one loop over blocks of rows, every operation with ``out=`` into a block that stays in the cache."""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

from symgrad import runtime
from symgrad.buffers import empty
from symgrad.emit.build import SPELLINGS, Builder, Expr, Signature, default_spelling, literal, mark, method, name, number
from symgrad.emit.build import call as call_of
from symgrad.emit.printer import Def, For, If, Line
from symgrad.ir import CAPTURED, CONST, INPUT, Node, name_of
from symgrad.ops import engine
from symgrad.ops.core import REGISTRY
from symgrad.optimize import cost
from symgrad.optimize.fuse import Group, adds_columns, adds_rows, is_elementwise, is_slice, is_view, is_whole, reduced
from symgrad.optimize.lower import INNER, LOGISTIC, MANY, SOME, WITH_OUT
from symgrad.optimize.memory import Layout, Scratch, Window, first_row, lay_out, overlap
from symgrad.optimize.rewriting import len_of
from symgrad.parallel import alone, several, share
from symgrad.program import Program

_ADD = np.add.reduce  # one object, so that it gets one name
REDUCE: dict[Any, Any] = {
    REGISTRY[np.sum]: _ADD,
    REGISTRY[np.mean]: _ADD,
    REGISTRY[np.max]: np.maximum.reduce,
    REGISTRY[np.min]: np.minimum.reduce,
}
SHARED = 9216  # numbers of a matrix, from which on BLAS shares its product with a vector among its threads
FEW = 256  # numbers in each of several matrices, from which on a product costs less than a sum
KEYWORD_OUT = (np.maximum, np.minimum)  # NumPy deprecates their positional out


class BlockBuilder(Builder):
    """Prints groups."""

    def __init__(self, program: Program, signature: Signature, off: frozenset[str]) -> None:
        super().__init__(program, signature, fresh=True)
        self.off = off
        self.cast: dict[Any, str | None] = {}  # numbers beside arrays: the 0-d arrays in their place, if any

    def _allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any], scratch: bool = False) -> Expr:
        """A call that gives an array of any content."""
        pooled = self._is_pooled(shape, dtype) or (scratch and "pool" not in self.off)
        function = self.bind("empty", empty if pooled else np.empty)
        return call_of(
            function, literal(shape if len(shape) != 1 or pooled else shape[0]), name(self.bind(name_of(dtype), dtype))
        )

    def _dead_buffer(self, kind: tuple[Any, ...]) -> str | None:
        """A variable whose array nothing reads any more, of this shape, dtype and order in memory."""
        return None

    def _dead_base(self, group: Group, node: Node) -> str | None:
        """The variable of an array that nothing reads any more, in a loop nothing but the slices that are added to it."""
        return None

    def _dead_window(self, group: Group, node: Node) -> str | None:
        """A variable whose array dies in a loop, block by block before this result of it is written."""
        return None

    def _is_pooled(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
        """Whether an array is so big that its memory comes from the pool."""
        return "pool" not in self.off and math.prod(shape) * dtype.itemsize >= cost.SIZES.pooled

    def _group(self, group: Group, block: list[Any]) -> None:
        """The loop of a group, and what is to be done before and after it."""
        for node in group.nodes:
            for arg in node.args:
                self._hoist(arg, block)
        loop = _Loop(self, group, block)
        loop.print()
        for node in group.views:
            self._value(node, block)

    def _hoist(self, node: Node, block: list[Any]) -> None:
        """Compute what was to be computed in place before the loop, once."""
        if node in self.exprs and node.op is not CONST and not isinstance(self.exprs[node], ast.Name):
            variable = self.names.of(node)
            block.append(Line(assign(name(variable), self.exprs[node])))
            self.exprs[node], self.weight[node] = name(variable), 0

    def _operands(self, node: Node, args: list[Expr]) -> list[Expr]:
        """The arguments of a ufunc, numbers in the form that it takes quickest."""
        pairs = zip(node.args, args, strict=True)
        return [expr if arg.op is not CONST else self._number_of(node, arg) or expr for arg, expr in pairs]

    def _into(self, node: Node, operands: list[Expr], target: Expr, strided: bool = False) -> Expr:
        """An elementwise operation with its result written into an array, whose numbers may be ``strided``."""
        if strided and node.op is REGISTRY[np.negative] and node.aval.dtype.kind in "fi":
            # NumPy 2.4 misreads numbers of some strides that it negates into strided memory
            return call_of(self.bind("multiply", np.multiply), *operands, number(-1), target)
        if node.op.key in KEYWORD_OUT:
            return call_of(self._function(node), *operands, out=target)
        return call_of(self._function(node), *operands, target)

    def repeats(self, node: Node, rows: dict[int, int] | None = None) -> bool:
        """Whether numbers repeat in long rows of an operation, or for them; ``rows`` is how many of an axis there are."""
        shape, shapes = node.aval.shape, self.beside(node)
        if rows is None:
            return runtime.repeats_in_rows(shape, shapes, runtime.FEW_ROWS)
        block = [rows.get(i - len(shape), n) for i, n in enumerate(shape)]
        return runtime.repeats_in_rows(block, shapes, runtime.FEW_ROWS // 8)  # NumPy is told once for all blocks

    def beside(self, node: Node) -> list[tuple[int, ...]]:
        """The shapes of the arrays that a cheap operation meets, if they are all of one kind, so that NumPy need cast none."""
        arrays, dtype = [arg.aval for arg in node.args if arg.aval.kind == "array"], node.aval.dtype
        if "rows" in self.off or dtype.char not in "fd" or any([aval.dtype != dtype for aval in arrays]):
            return []
        if node.op in WITH_OUT or cost.weight(node.op.key) > 1:
            return []
        shapes = [aval.shape for aval in arrays]
        return [(len_of(node), 1), *shapes[1:]] if node.op is REGISTRY[np.outer] else shapes

    def added_up(self, node: Node, array: Expr, out: Expr | None = None) -> Expr | None:
        """A sum along an axis as a product with ones, in a half to a seventh of the time; None where it is none."""
        shape, dtype, params = node.args[0].aval.shape, node.args[0].aval.dtype, dict(node.params)
        if "lower" in self.off or node.exact or len(shape) < 2 or 0 in shape or dtype.char not in "fd":
            return None
        axes, most = [*reduced(node)], SOME if dtype == np.float64 else MANY
        if len(axes) != 1 or not 1 < shape[axes[0]] <= most or not params.keys() <= {"axis", "keepdims"}:
            return None
        (axis,), size, keep = axes, math.prod(shape), bool(params.get("keepdims"))
        after = [ast.Slice(None, None, None)] * (-1 - axis)
        if keep and out is not None:
            out = subscript(out, [ast.Constant(...), number(0), *after])
        call = self._product_with_ones(array, shape, dtype, axis, out) if size < SHARED or alone() else None
        if call is None and axis == -1 and size >= SHARED:  # BLAS would wake its threads
            call = call_of("np.einsum", ast.Constant("...a->..."), array, **({} if out is None else {"out": out}))
        return (
            call
            if call is None or out is not None or not keep
            else subscript(call, [ast.Constant(...), ast.Constant(None), *after])
        )

    def _product_with_ones(self, array: Expr, shape: tuple[int, ...], dtype: Any, axis: int, out: Expr | None) -> Expr | None:
        length, target = shape[axis], [] if out is None else [out]
        ones = name(self.bind("ones", self.numbers.setdefault(("ones", dtype, length), np.ones(length, dtype))))
        first, second = (array, ones) if axis == -1 else (ones, array)
        if len(shape) == 2:
            return method(first, "dot", second, *target)
        if axis == -len(shape) and math.prod(shape) >= FEW and out is None:
            return call_of("runtime.add_rows", array, ones)
        if axis >= -2 and math.prod(shape[-2:]) >= FEW:  # matrices are multiplied one by one
            return call_of(self.bind("matmul", np.matmul), first, second, *target)
        return None

    def _function(self, node: Node) -> str:
        """A ufunc, or what is like one."""
        return node.op.name if node.op in WITH_OUT else self.bind(node.op.key.__name__, node.op.key)

    def _number_of(self, node: Node, arg: Node) -> Expr | None:
        """A number beside arrays in a ufunc as a 0-d array, of the dtype that it would be cast to anyway; or as a row."""
        length = node.aval.shape[-1]
        return self._row_of(node, arg, length if length <= cost.SIZES.big else 0)

    def _row_of(self, node: Node, arg: Node, length: int) -> Expr | None:
        """A number as so many in a row where that makes loops faster: those of ``maximum`` are quick for two arrays alone."""
        if arg.op is not CONST or node.op in WITH_OUT:
            return None
        value = dict(arg.params)["value"]
        if not isinstance(value, (int, float)) or isinstance(value, (bool, np.generic)):
            return None
        others = {other.aval.dtype for other in node.args if other.op is not CONST and other.aval.kind == "array"}
        if len(others) != 1:
            return None
        (dtype,) = others
        kinds = tuple([type(value) if other is arg else dtype for other in node.args])
        row = (length,) if node.op.key in KEYWORD_OUT and length > cost.SHORT else ()
        key = (node.op, arg, kinds, row)
        if key not in self.cast:
            self.cast[key] = self._as_array(value, dtype, row) if _is_cast(node.op.key, kinds, dtype) else None
        found = self.cast[key]
        return None if found is None else name(found)

    def _as_array(self, value: float, dtype: np.dtype[Any], row: tuple[int, ...]) -> str:
        """The name of a number as an array, 0-d or a row."""
        key = (repr(value), dtype, row)
        if key not in self.numbers:
            self.numbers[key] = np.full(row, value, dtype)
        return self.bind(f"c{number_name(value)}", self.numbers[key])


def _is_cast(ufunc: np.ufunc, kinds: tuple[Any, ...], dtype: np.dtype[Any]) -> bool:
    """Whether a ufunc of real numbers takes all arguments, Python's numbers among them, as of this dtype."""
    taken = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))[: len(kinds)] if dtype.kind == "f" else ()
    return taken == (dtype,) * len(kinds)


class _Loop:
    """One loop while it is printed."""

    def __init__(self, builder: BlockBuilder, group: Group, block: list[Any]) -> None:
        self.b, self.group, self.block = builder, group, block
        self.layout: Layout = lay_out(group, builder.uses, "threads" not in builder.off and several())
        self.before: list[Any] = []  # in each thread
        self.body: list[Any] = []
        self.after: list[Any] = []
        self.members = set(group.nodes)
        self.lo, self.hi = builder.names.unique("lo"), builder.names.unique("hi")
        self.arrays: dict[Node, Expr] = {}  # of results and ends
        self.values: dict[Node, Expr] = {}  # of members: their blocks
        self.windows: dict[tuple[Node, int], Expr] = {}  # of arrays from outside
        self.callers: dict[str, str] = {}  # what calls functions otherwise than NumPy would
        self.products: dict[Node, str] = {}  # what multiplies rows of arrays from outside
        self.tiles: dict[tuple[Node, tuple[int, ...]], str] = {}  # of short rows: arrays that repeat them in this shape
        self.uses: dict[Any, int] = {}  # how often members, and windows, are read
        for node in group.nodes:
            for arg, lane in self._blocks(node):
                key = arg if arg in self.members else (arg, lane)
                self.uses[key] = self.uses.get(key, 0) + 1

    def _blocks(self, node: Node) -> list[tuple[Node, int]]:
        """What a member reads in blocks, where it is computed."""
        if is_slice(node):
            lane = -len(node.aval.shape)
            parts = self.layout.parts.get(node, ())
            return [(value, lane) for value, write in parts if not self._is_written(value, node, write)]
        pairs = zip(node.args, self.group.reads[node], strict=True)
        return [(arg, lane) for arg, lane in dict.fromkeys(pairs) if lane is not None]

    def _is_written(self, value: Node, end: Node, write: Node) -> bool:
        """Whether a value is computed in the array that it is to be part of."""
        return self.layout.places.get(value) == Window(end, first_row(write))

    def print(self) -> None:
        b, group = self.b, self.group
        for node in [*group.results, *self.layout.parts]:
            self._array(node)
        self.scratch = self._scratch(self.before)
        for node in group.nodes:
            start = len(self.body)
            self._member(node)
            mark(self.body[start:], node, node in b.hidden)
        blocks = call_of("range", number(0), number(group.length), number(self.layout.rows))
        body = [
            Line(assign(name(self.hi), ast.BinOp(name(self.lo), ast.Add(), number(self.layout.rows)))),
            *self._last(),
            *self.body,
        ]
        if self.layout.shared:  # each thread has scratch of its own
            loop, turns = b.names.unique("loop"), b.names.unique("blocks")
            use = ast.Expr(call_of(b.bind("share", share), name(loop), blocks))
            self.block.append(
                Def(f"{loop}({turns})", [*self.before, For(ast.Name(self.lo, ast.Store()), name(turns), body)], use)
            )
        else:
            self.block += [*self.before, For(ast.Name(self.lo, ast.Store()), blocks, body)]
        self.block += self.after
        for node in (*group.results, *group.ends):
            b.exprs[node], b.weight[node] = self.arrays[node], 0

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return -(-self.group.length // self.layout.rows)

    @property
    def turn(self) -> Expr:
        """Which block it is."""
        return ast.BinOp(name(self.lo), ast.FloorDiv(), number(self.layout.rows))

    # ---- memory ----

    def _array(self, node: Node) -> None:
        """The array of a result; rows that no block writes are zero."""
        b, base = self.b, self.layout.bases.get(node)
        variable = b._dead_base(self.group, base) if base is not None else None
        if variable is not None:
            self.arrays[node], b.buffers[node] = name(variable), variable
            return
        variable = b._dead_window(self.group, node) if node in self.group.lanes else None
        variable = variable or b._dead_buffer((node.aval.shape, node.aval.dtype, True))
        if variable is None:
            variable = b.names.of(node)
            self.block.append(Line(assign(name(variable), b._allocate(node.aval.shape, node.aval.dtype))))
        self.arrays[node] = name(variable)
        b.buffers[node] = variable
        if base is not None:
            self.block.append(Line(ast.Expr(call_of("np.copyto", name(variable), b.exprs[base]))))
        elif node in self.layout.parts:
            start = first_row(self.layout.parts[node][0][1])
            for rest in (slice(None, start), slice(start + self.group.length, None)):
                if range(node.aval.shape[0])[rest]:
                    target = subscript(name(variable), [ast.Slice(_end(rest.start), _end(rest.stop), None)], ast.Store())
                    self.block.append(Line(ast.Assign([target], number(0), lineno=0)))

    def _scratch(self, block: list[Any]) -> list[str]:
        """Names of the scratch blocks, those of one kind made together, by statements into ``block``."""
        kinds: dict[Any, list[int]] = {}
        for place, kind in enumerate(self.layout.scratch):
            kinds.setdefault(kind, []).append(place)
        names = [self.b.names.unique("t") for _ in self.layout.scratch]
        for (rest, lane, dtype), places in kinds.items():
            shape = _with_lane(rest, lane, self.layout.rows)
            if len(places) == 1:
                block.append(Line(assign(name(names[places[0]]), self.b._allocate(shape, dtype, True))))
                continue
            target = ast.Tuple([ast.Name(names[place], ast.Store()) for place in places], ast.Store())
            block.append(Line(ast.Assign([target], self.b._allocate((len(places), *shape), dtype, True), lineno=0)))
        return names

    def _last(self) -> list[Any]:
        """The last block may be shorter."""
        group = self.group
        rest = group.length % self.layout.rows
        if not rest:
            return []
        body = [Line(assign(name(self.hi), number(group.length)))]
        for variable, (others, lane, _) in zip(self.scratch, self.layout.scratch, strict=True):
            cut = subscript(name(variable), [*_whole(len(others) + 1 + lane), ast.Slice(None, number(rest), None)])
            body.append(Line(assign(name(variable), cut)))
        return [If(ast.Compare(name(self.hi), [ast.Gt()], [number(group.length)]), body)]

    def _window(self, array: Expr, node: Node, lane: int, start: int = 0) -> ast.Subscript:
        """The rows of an array that belong to the block."""
        lo, hi = [ast.BinOp(name(end), ast.Add(), number(start)) if start else name(end) for end in (self.lo, self.hi)]
        return subscript(array, [*_whole(len(node.aval.shape) + lane), ast.Slice(lo, hi, None)])

    def _variable(self, array: Expr, expr: Expr) -> Expr:
        """A name for a window of an array."""
        assert isinstance(array, ast.Name)
        variable = self.b.names.unique(f"{array.id}_block")
        self.body.append(Line(assign(name(variable), expr)))
        return name(variable)

    def _read(self, arg: Node, lane: int | None) -> Expr:
        """An argument: its block, or all of it."""
        if lane is None:
            return self.b.exprs[arg]
        if arg in self.members:
            return self.values[arg]
        if (arg, lane) not in self.windows:
            array = self.b.exprs[arg]
            expr: Expr = self._window(array, arg, lane)
            self.windows[arg, lane] = self._variable(array, expr) if self.uses[arg, lane] > 1 else expr
        return self.windows[arg, lane]

    def _tile(self, node: Node, arg: Node) -> Expr | None:
        """A short row that every row of a block meets, as often as a block has rows: NumPy's inner loops then are long."""
        shape, row = node.aval.shape, arg.aval.shape
        rows = self.layout.rows
        alike = all(other is arg or other.aval.shape in ((), shape) for other in node.args)
        short = 1 < math.prod(shape[1:]) <= cost.SHORT // 2 and row in (shape[1:], (1, *shape[1:]))
        if not (
            isinstance(node.op.key, np.ufunc)
            and alike
            and short
            and rows < shape[0]
            and self.group.lanes.get(node) == -len(shape)
        ):
            return None
        key = arg, shape[1:]
        if key not in self.tiles:
            self.tiles[key] = self.b.names.unique("rows")
            tiled = method(call_of("np.broadcast_to", self.b.exprs[arg], literal((rows, *shape[1:]))), "copy")
            self.block.append(Line(assign(name(self.tiles[key]), tiled)))
        return self._cut(name(self.tiles[key]))

    def _place(self, node: Node) -> Expr:
        """Where a member is written."""
        place = self.layout.places[node]
        if isinstance(place, Scratch):
            return name(self.scratch[place.number])
        array = self.arrays[place.array]
        window = self._window(array, node, self.group.lanes[node], place.start)
        again = self.uses.get(node, 0) or node.op is REGISTRY[np.mean]
        return self._variable(array, window) if again else window

    # ---- operations ----

    def _member(self, node: Node) -> None:
        if is_slice(node):
            if node in self.layout.parts:
                self.b._comment(node, self.body)
                self._assemble(node)
            return
        args = [
            self._tile(node, arg) or self._read(arg, lane) for arg, lane in zip(node.args, self.group.reads[node], strict=True)
        ]
        if is_view(node):
            self.values[node] = SPELLINGS.get(node.op, default_spelling)(self.b, node, args)
            return
        self.b._comment(node, self.body)
        if node in self.group.lanes:
            self.values[node] = self._place(node)
            self._compute(node, args, self.values[node])
        else:
            self._end(node, args)

    def _compute(self, node: Node, args: list[Expr], target: Expr) -> None:
        b = self.b
        if node.op is engine.ASTYPE:
            self._do(call_of("np.copyto", target, args[0], ast.Constant("unsafe")))
        elif node.op is REGISTRY[np.where]:
            self._do(call_of("np.copyto", target, call_of("np.where", *args)))  # copying where a mask says so is slower
        elif node.op is LOGISTIC:  # as the function of this name has it
            one = name(b._as_array(1.0, node.aval.dtype, ()))
            self._do(through(self._caller("calm"), call_of(b.bind("exp", np.exp), args[0], target)))
            self._do(call_of(b.bind("add", np.add), target, one, target))
            self._do(call_of(b.bind("divide", np.true_divide), one, target, target))
        elif is_elementwise(node):
            call = b._into(node, self._operands(node, args), target, self._is_strided(node))
            repeats = b.repeats(node, {self.group.lanes[node]: self.layout.rows})
            self._do(through(self._caller("row_by_row"), call) if repeats else call)
        elif node.op in REDUCE:
            self._do(self._reduction(node, args[0], target))
            if node.op is REGISTRY[np.mean]:
                self._do(call_of(b.bind("divide", np.true_divide), target, number(self._count(node)), target))
        else:
            self._do(self._product(node, args, target))

    def _product(self, node: Node, args: list[Expr], *target: Expr) -> Expr:
        """``a.dot(b)``; of rows of an array that may lie column by column, as ``runtime.rows_product`` has it."""
        for arg, lane in zip(node.args, self.group.reads[node], strict=True):
            if lane == -1 and len(arg.aval.shape) == 2 and arg not in self.members:  # columns, which it would copy, too
                return call_of(self.b.bind("matmul", np.matmul), *args, *target)
            if lane == -2 and len(arg.aval.shape) == 2 and arg.op in (INPUT, CAPTURED):
                if arg not in self.products:
                    self.products[arg] = self.b.names.unique("product")
                    self.before.append(
                        Line(assign(name(self.products[arg]), call_of("runtime.rows_product", self.b.exprs[arg])))
                    )
                return call_of(self.products[arg], *args, *target)
        return method(args[0], "dot", args[1], *target)

    def _caller(self, kind: str) -> Expr:
        """What calls functions for all blocks, see ``runtime``."""
        if kind not in self.callers:
            self.callers[kind] = self.b.names.unique(kind)
            self.before.append(Line(assign(name(self.callers[kind]), call_of(f"runtime.{kind}"))))
        return name(self.callers[kind])

    def _operands(self, node: Node, args: list[Expr]) -> list[Expr]:
        """The arguments of a ufunc; numbers in rows as long as the block where its rows are."""
        if self.group.lanes[node] != -1 or node.op.key not in KEYWORD_OUT:
            return self.b._operands(node, args)
        rows = [self.b._row_of(node, arg, self.layout.rows) for arg in node.args]
        cut = self._cut if self.layout.rows > cost.SHORT else lambda number: number
        return [arg if row is None else cut(row) for row, arg in zip(rows, args, strict=True)]

    def _cut(self, row: Expr) -> Expr:
        """As much of a row as the block is long."""
        return subscript(row, [ast.Slice(None, ast.BinOp(name(self.hi), ast.Sub(), name(self.lo)), None)])

    def _is_strided(self, node: Node) -> bool:
        """Whether blocks of a member may have numbers that are not next to each other."""
        rows, length = self.layout.rows, self.group.length
        return self.group.lanes[node] > -len(node.aval.shape) and 1 in (rows, length % rows)

    def _reduction(self, node: Node, arg: Expr, out: Expr) -> Expr:
        """``ufunc.reduce(arg, axis, None, out, keepdims)``."""
        params = dict(node.params)
        keep: list[Expr] = [ast.Constant(True)] if params.get("keepdims") else []
        ufunc = REDUCE[node.op].__self__
        if adds_rows(node) and node in self.group.ends:
            return call_of("runtime.reduce_rows", name(self.b.bind(ufunc.__name__, ufunc)), arg, *keep)
        if ufunc is np.add and node in self.group.lanes and not self.layout.shared:
            product = self.b.added_up(node, arg, out)
            if product is not None:
                return product
        if adds_columns(node) and ufunc is np.add and node in self.group.lanes:
            column = subscript(out, [ast.Constant(...), ast.Constant(0)]) if keep else out
            return call_of("np.einsum", ast.Constant("...a->..."), arg, out=column)
        return call_of(self._reduce(node), arg, literal(params.get("axis")), ast.Constant(None), out, *keep)

    def _reduce(self, node: Node) -> str:
        reduce = REDUCE.get(node.op, REDUCE[REGISTRY[np.sum]])
        return self.b.bind(f"{reduce.__self__.__name__}_reduce", reduce)

    def _count(self, node: Node) -> int:
        """How many elements a mean puts together."""
        return math.prod([node.args[0].aval.shape[axis] for axis in reduced(node)])

    def _do(self, call: Expr) -> None:
        self.body.append(Line(ast.Expr(call)))

    def _end(self, node: Node, args: list[Expr]) -> None:
        """A sum over the lane: of each block, then of all blocks."""
        b = self.b
        parts, variable = b.names.unique("parts"), b.names.of(node)
        first: Expr = ast.List([], ast.Load())
        if self.layout.shared:
            first = ast.BinOp(ast.List([ast.Constant(None)], ast.Load()), ast.Mult(), number(self.count))
        self.block.append(Line(assign(name(parts), first)))
        if node.op in REDUCE:
            part = self._reduction(node, args[0], ast.Constant(None))
        else:
            part = call_of("runtime.inner_rows", *args) if node.op is INNER else self._product(node, args)
        if self.layout.shared:
            self._set(subscript(name(parts), [self.turn]), part)
        else:
            self._do(method(name(parts), "append", part))
        all_parts = call_of("np.concatenate", name(parts)) if node.op is INNER else name(parts)
        total = call_of(self._reduce(node), all_parts, number(0))
        if node.op is REGISTRY[np.mean]:
            total = ast.BinOp(total, ast.Div(), number(self._count(node)))
        self.after.append(Line(assign(name(variable), total)))
        self.arrays[node] = name(variable)

    def _assemble(self, node: Node) -> None:
        """Cotangents of slices: the first is written, where it fills whole rows, the others are added."""
        lane = -len(node.aval.shape)
        parts = self.layout.parts[node]
        start, whole, anew = first_row(parts[0][1]), is_whole(parts[0][1]), node not in self.layout.bases
        heads = self._heads(node) if self.layout.shared and overlap(parts) else None
        if anew and not whole:
            self._set(self._window(self.arrays[node], node, lane, start), number(0))
        for place, (value, write) in enumerate(parts):
            if self._is_written(value, node, write):
                continue
            row, block = first_row(write), self._read(value, lane)
            columns = [ast.Slice(*map(_end, part)) for part in dict(write.params)["spec"][1:]]
            rows = self._window(self.arrays[node], node, lane, row)
            if heads is not None and row < start:  # the rows before are another block's
                before = subscript(heads, [self.turn, ast.Slice(_end(row - first_row(parts[-1][1])), None, None), *columns])
                self._add(heads, before, subscript(block, [ast.Slice(None, number(start - row), None)]))
                block = subscript(block, [ast.Slice(number(start - row), None, None)])
                assert isinstance(rows.slice, ast.Slice)
                rows.slice.lower = ast.BinOp(name(self.lo), ast.Add(), number(start))
            window = subscript(rows.value, [rows.slice, *columns])
            if place == 0 and anew and whole:
                self._set(window, block)
            else:
                self._add(rows.value, window, block)

    def _add(self, array: Expr, window: Expr, value: Expr) -> None:
        """``window += value``, of an array."""
        variable = self._variable(array, window)
        self._do(call_of(self.b.bind("add", np.add), variable, value, variable))

    def _heads(self, node: Node) -> Expr:
        """Where each block adds to rows that the one before it adds to, too: memory of its own, added up after the loop."""
        b, group, rows = self.b, self.group, self.layout.rows
        parts = self.layout.parts[node]
        common, first = overlap(parts), first_row(parts[-1][1])
        heads, shape = b.names.unique("heads"), (self.count, common, *node.aval.shape[1:])
        minus_zero = ast.UnaryOp(ast.USub(), ast.Constant(0.0))  # what changes nothing when it is added
        self.block.append(Line(assign(name(heads), call_of("np.full", literal(shape), minus_zero, literal(node.aval.dtype)))))
        whole, rest = divmod(group.length, rows)
        ends = [ast.Slice(number(first), number(first + whole * rows), None)]
        blocks = method(subscript(self.arrays[node], list(ends)), "reshape", literal((whole, rows, *node.aval.shape[1:])))
        here = subscript(blocks, [ast.Slice(None, None, None), ast.Slice(None, number(common), None)], ast.Store())
        there = subscript(name(heads), [ast.Slice(None, number(whole), None)])
        self.after.append(Line(ast.AugAssign(here, ast.Add(), there)))
        if rest:
            last = ast.Slice(number(first + whole * rows), number(first + whole * rows + common), None)
            here = subscript(self.arrays[node], [last], ast.Store())
            self.after.append(Line(ast.AugAssign(here, ast.Add(), subscript(name(heads), [number(whole)]))))
        return name(heads)

    def _set(self, window: ast.Subscript, value: Expr) -> None:
        """``window = value``, element by element."""
        self.body.append(Line(ast.Assign([ast.Subscript(window.value, window.slice, ast.Store())], value, lineno=0)))


def assign(target: ast.Name | Expr, value: Expr) -> ast.stmt:
    """``target = value``."""
    assert isinstance(target, ast.Name)
    return ast.Assign([ast.Name(target.id, ast.Store())], value, lineno=0)


def subscript(array: Expr, parts: list[Expr], context: ast.expr_context | None = None) -> ast.Subscript:
    """``array[parts]``."""
    return ast.Subscript(array, parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load()), context or ast.Load())


def _with_lane(rest: tuple[int, ...], lane: int, rows: int) -> tuple[int, ...]:
    """The shape of a block, from the other axes."""
    place = len(rest) + 1 + lane
    return (*rest[:place], rows, *rest[place:])


def through(caller: Expr, call: Expr) -> Expr:
    """``caller(f, x, y, out)`` for ``f(x, y, out)``."""
    assert isinstance(call, ast.Call)
    return ast.Call(caller, [call.func, *call.args], call.keywords)


def _whole(count: int) -> list[Expr]:
    """Slices of whole axes."""
    return [ast.Slice(None, None, None) for _ in range(count)]


def _end(end: int | None) -> Expr | None:
    return None if end is None else number(end)


def number_name(value: float) -> str:
    """``2.0`` as ``2``, ``-0.5`` as ``m0_5``: part of a name."""
    text = repr(value).removesuffix(".0")
    return "".join(c if c.isalnum() else "m" if c == "-" else "_" for c in text)
