"""Small arrays taken apart: a program of them becomes one of Python floats, element by element.

A NumPy call costs more than a dozen operations on Python's floats, however small its arrays. Here every array becomes a
*grid*: an object array of the nodes of its elements. What an operation does to a grid is said once in the table ``GRIDS``:
elementwise operations are done element by element, NumPy's own functions move elements about and sum products of them
(they take object arrays), and what is not in the table stays a NumPy call between a ``pack`` and an ``unpack``.

A long array may be there that is only read from at indices, as data is in a loop: it becomes a list, which gives its numbers
faster. *Tables*, which loops read and write number by number, stay arrays, and so do long ones that NumPy alone has to do
with. A program is left as it is where it has anything else but small arrays of double precision, or would not be faster.
"""

from __future__ import annotations

import functools
import math
import operator
import weakref
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Graph, Node, ancestors
from symgrad.ir import Sequence as ListAval
from symgrad.ops import create, engine, index, linalg
from symgrad.ops.core import REGISTRY, Op
from symgrad.optimize.elimination import Factors, cholesky
from symgrad.optimize.loops import SCALAR, STACK, BodyProgram, decisive, rows_apart, trim_loops
from symgrad.optimize.lower import INNER
from symgrad.optimize.rewriting import Simplifier, const, is_op
from symgrad.program import Program
from symgrad.transform.loop import Body, Loop, loop_of

LARGEST = 100  # elements of an array that is taken apart
FEW = 4  # elements from which on a call is cheaper than many operations on each
LARGEST_SYSTEM = 3  # rows of a matrix that is eliminated in
MOST = 2000  # operations on numbers, so that the first call stays quick
HOPE = 3  # how many times more than that there may be at first, for zeros and equal numbers shorten it

Grid = Any  # an object array of nodes

FLOAT, INT, BOOL = (Aval((), np.dtype(kind), "python") for kind in (float, int, bool))
NUMBERS = {aval.dtype: aval for aval in (FLOAT, INT, BOOL)}

# -- operations on numbers alone -----------------------------------------------------------------------------------


def _larger(a: float, b: float) -> float:
    return b if a <= b or b != b else a


def _smaller(a: float, b: float) -> float:
    return b if a >= b or b != b else a


def _sign(x: float) -> float:
    return 1.0 if x > 0.0 else -1.0 if x < 0.0 else 0.0 if x == 0.0 else x


def _step(x: float, at: float) -> float:
    return 1.0 if x > 0.0 else at if x == 0.0 else 0.0 if x < 0.0 else x


def _nested(x: Any, axes: tuple[int, ...]) -> Any:
    first = np.moveaxis(x, axes, range(len(axes)))
    return (first.reshape(*first.shape[: len(axes)], -1) if len(axes) < x.ndim else first).tolist()


UNPACK = Op(np.ravel, "constant", (), name="unpack", fun=lambda x: tuple(np.ravel(x).tolist()))
LIST = Op(np.ndarray.tolist, "constant", (), name="list", fun=_nested)
PICK = Op(list.__getitem__, "constant", (), name="pick", fun=lambda x, *places: functools.reduce(operator.getitem, places, x))
CELL = Op(np.ndarray.item, "constant", (), name="cell", fun=lambda x, *places: x.item(*places))
PACK = Op(np.array, "constant", (), name="pack", fun=lambda *x, shape, dtype: np.array(x, dtype).reshape(shape))
POWER = Op(math.pow, "constant", (), name="pow")
CHOICE = Op(_larger, "constant", (), name="choice", fun=lambda c, x, y: x if c else y)
EITHER = Op(_smaller, "constant", (), name="either", fun=lambda a, b: a or b)
LARGER = Op(_larger, "constant", (), name="larger")
SMALLER = Op(_smaller, "constant", (), name="smaller")
SIGN = Op(_sign, "constant", (), name="sign")
STEP = Op(_step, "constant", (), name="step")


class Unsuited(Exception):
    """A program cannot, or should not, be taken apart."""


def scalarize(program: Program) -> Program:
    """The same program on numbers, where it is one of small arrays and that is faster."""
    whole, program = program, rows_apart(program)
    nodes = program.nodes()
    if not _all_small(nodes, program.roots()) or not any(_takes_apart(node) for node in nodes):
        return whole
    if _operations(nodes, False) > HOPE * MOST or OPERATION * _operations(nodes, True) > HOPE * cost(whole):
        return whole  # before it takes long to find out
    found = [whole]
    for calls in (True, False):
        scalarizer = Scalarizer(program, calls)
        try:
            taken = trim_loops(scalarizer.run())
        except Unsuited:
            break
        taken = Simplifier(taken, SCALAR).run(decisive(taken))
        taken.apart = True
        found.append(taken)
        if not scalarizer.left:
            break
    return min(found, key=cost)


def _all_small(nodes: Sequence[Node], ends: Sequence[Node], inside: bool = False, tables: Container[Node] = ()) -> bool:
    """Whether there are no arrays but small ones, those that are only read from at indices, ``tables`` of a loop, and others
    where NumPy does with them what takes no elements apart."""
    for node in (*nodes, *ends):
        known = isinstance(node.op, Loop) or _fits(node.aval) or _is_data(node) or node in tables or _is_filled(node)
        if not known and not _is_left(node):
            return False
    for node in nodes:
        if isinstance(node.op, Loop):
            body, own = node.op.body, tables_of(node.op.body)
            carry, sequences, _ = node.op.split(node.args)
            if any(map(_is_long, (*(arg for i, arg in enumerate(carry) if i not in own), *sequences))):
                return False
            given = set().union(*own.values(), [body.after[i] for i in own])
            if not _all_small([*body.inputs, *body.nodes()], [*body.after, *body.saved], True, given):
                return False
        elif any(map(_is_long, node.args)) and not (_is_element(node) or node in tables or _is_left(node)):
            return False
    return not inside or not any(_is_long(end) for end in ends if end not in tables)


_tables: weakref.WeakKeyDictionary[Body, dict[int, set[Node]]] = weakref.WeakKeyDictionary()  # they are asked for often


def tables_of(body: Body) -> dict[int, set[Node]]:
    """The carried arrays of a loop that its iterations read and write number by number, at places known at run time, and long
    ones with which NumPy does more.

    By their numbers, with all that is such an array in an iteration. They stay arrays, however small.
    """
    found = _tables.get(body)
    if found is None:
        found = _tables[body] = _found_tables(body)
    return found


def _found_tables(body: Body) -> dict[int, set[Node]]:
    found: dict[int, set[Node]] = {}
    for i, (item, after) in enumerate(zip(body.carry, body.after, strict=True)):
        if not isinstance(item.aval, Aval) or not item.aval.shape or item.aval.dtype != np.float64:
            continue
        table, places = {item}, _is_long(item)
        for node in body.nodes():
            if node.op is engine.ITEM and _is_filled(node) and node.args[0].args[dict(node.params)["item"]] in table:
                table.add(node)
                continue
            if not (used := [k for k, arg in enumerate(node.args) if arg in table]):
                continue
            if isinstance(node.op, Loop) and len(used) == 1 and used[0] in tables_of(node.op.body):
                places = True
            elif used == [0] and _is_cell(node):
                places = places or len(node.args) > len(node.op.rules)
                table |= {node} if node.op is not index.GETITEM else set()
            elif not (_is_long(item) and _is_left(node)):
                break
        else:
            ends = [one for one in (*body.after, *body.saved) if one in table]
            if places and (ends == [after] or (_is_long(item) and not ends and _is_left(after))):
                found[i] = table
    return found


def _is_cell(node: Node) -> bool:
    """Whether one number of an array is read, written, or added to."""
    if node.op not in (index.GETITEM, index.SETITEM, index.INDEX_ADD) or not isinstance(node.args[0].aval, Aval):
        return False
    spec = dict(node.params)["spec"]
    whole = len(spec) == len(node.args[0].aval.shape) and all([type(part) in (index.Hole, int) for part in spec])
    places = node.args[len(node.op.rules) :]
    numbers = all([arg.aval.shape == () for arg in node.args[1:]]) and all([place.aval.dtype.kind in "iu" for place in places])
    return whole and numbers


def _is_filled(node: Node) -> bool:
    """Whether it is what a loop has made of a table."""
    if node.op is not engine.ITEM or not isinstance(node.args[0].op, Loop):
        return False
    return dict(node.params)["item"] in tables_of(node.args[0].op.body)


def _is_long(node: Node) -> bool:
    return isinstance(node.aval, Aval) and math.prod(node.aval.shape) > LARGEST


def _is_element(node: Node) -> bool:
    """Whether it is read from an array at indices."""
    return node.op is index.GETITEM and not any(map(_is_long, node.args[1:]))


def _is_left(node: Node) -> bool:
    """Whether it is of long arrays, and left to NumPy: arithmetic, sums, and what is written at known places."""
    if not any(map(_is_long, (node, *node.args))):
        return False
    if _is_cell(node):
        return node.op is not index.GETITEM and node.aval.dtype == node.args[1].aval.dtype == np.float64
    if any(not isinstance(value.aval, Aval) or value.aval.dtype != np.float64 for value in (node, *node.args)):
        return node.op is STACK
    write = node.op in (index.SCATTER, index.SETITEM, index.INDEX_ADD) and len(node.args) == len(node.op.rules)
    return write or node.op in _LEFT


def _is_data(node: Node) -> bool:
    """Whether it is an array, however long, that is there before."""
    return node.op in (INPUT, CAPTURED) and isinstance(node.aval, Aval) and node.aval.dtype in NUMBERS


def _fits(aval: Any) -> bool:
    """Whether a value is of numbers that Python has, and of few; or a list of such."""
    if isinstance(aval, ListAval):
        return _fits(aval.element)
    if isinstance(aval, tuple) and not isinstance(aval, Aval):
        return all(map(_fits, aval))
    return isinstance(aval, Aval) and aval.dtype in NUMBERS and math.prod(aval.shape) <= LARGEST


def _takes_apart(node: Node) -> bool:
    if isinstance(node.op, Loop):
        return any(_takes_apart(inner) for inner in (*node.op.body.inputs, *node.op.body.nodes()))
    return isinstance(node.aval, Aval) and node.aval.kind == "array"


# -- what it costs -------------------------------------------------------------------------------------------------

# microseconds, as measured: of NumPy's calls on arrays of a few elements, views and scalars; of Python's numbers
CALL, VIEW, NUMBER, LAPACK = 0.27, 0.1, 0.06, 3.0
STREAM = 0.001  # of each number of an array
OPERATION, FUNCTION, ELEMENT, PACKING, UNPACKING = 0.008, 0.028, 0.009, 0.12, 0.03
TURNS = 10  # of a loop that says not how many


def cost(program: Program) -> float:
    """About how many microseconds a program takes, beside what any way to compute it does."""
    return sum(map(_cost, program.nodes()))


def _cost(node: Node) -> float:
    op, aval = node.op, node.aval
    if op in (INPUT, CONST, CAPTURED, engine.ITEM):
        return 0.0
    if isinstance(op, Loop):
        return (op.course.count or TURNS) * (sum(map(_cost, op.body.nodes())) + 0.02 * len(op.body.saved + op.body.elements))
    if op is UNPACK:
        return UNPACKING + ELEMENT * len(aval) if isinstance(node.args[0].aval, Aval) else ELEMENT * len(aval)
    if op is LIST:
        return UNPACKING + ELEMENT * float(math.prod(node.args[0].aval.shape))
    if op is PICK:
        return OPERATION * len(node.args)
    if op is CELL:
        return NUMBER
    if op is STACK:
        return CALL + ELEMENT * float(math.prod(aval.shape))
    if op is PACK:
        return PACKING + ELEMENT * len(node.args) if dict(node.params)["dtype"] == float else 3 * CALL
    if op in _SOLVING:
        return LAPACK
    if not isinstance(aval, Aval):
        return 2 * CALL
    if aval.kind == "python" and op in _PLAIN and all(arg.aval.kind == "python" for arg in node.args):
        return OPERATION
    if aval.kind == "python" and op not in (index.GETITEM, engine.TO_PYTHON):
        return FUNCTION
    if op.alias or op in (engine.TO_PYTHON, engine.TO_FLOAT):
        return VIEW
    if aval.kind != "array" and all(arg.aval.kind != "array" for arg in node.args):
        return NUMBER if op in _PLAIN else CALL
    calls = 1.0 if isinstance(op.key, np.ufunc) or op in _BLAS else 2.0
    return calls * CALL + STREAM * math.prod(aval.shape)


# -- the pass ------------------------------------------------------------------------------------------------------


def _operations(nodes: Sequence[Node], running: bool) -> float:
    """About how many operations on numbers there are, in the code or while it is ``running``."""
    total = 0.0
    for node in nodes:
        if isinstance(node.op, Loop):
            turns = (node.op.course.count or TURNS) if running else 1
            total += turns * _operations(node.op.body.nodes(), running)
        elif isinstance(node.aval, Aval) and node.op not in _FREE and not _is_long(node) and not _is_cell(node):
            sizes = [math.prod(value.aval.shape) for value in (node, *node.args) if isinstance(value.aval, Aval)]
            total += 2 * math.sqrt(math.prod(sizes)) if node.op in _SUMMING else max(sizes)
    return total


class Element:
    """A number of a program with Python's operators, for NumPy's functions to work on in object arrays."""

    __slots__ = ("node", "s")

    def __init__(self, s: Scalarizer, node: Node) -> None:
        self.s, self.node = s, node

    def _with(self, key: Any, other: Any) -> Any:
        if not isinstance(other, Element):  # where NumPy starts a sum or a product
            assert other in (0, 1)
            return self
        return Element(self.s, self.s.number(key, self.node, other.node))

    def __add__(self, other: Any) -> Any:
        return self._with(np.add, other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        return self._with(np.multiply, other)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Any:
        return self._with(np.subtract, other)

    def __neg__(self) -> Any:
        return Element(self.s, self.s.number(np.negative, self.node))

    def conjugate(self) -> Any:
        """Itself: it is real."""
        return self


class Scalarizer(Simplifier):
    """Rebuilds a program element by element; simplifies numbers as it goes."""

    def __init__(self, program: Program, calls: bool, turns: int = 1, fixed: Sequence[Node] | None = None) -> None:
        super().__init__(program, SCALAR)
        self.calls = calls  # whether products may be left to NumPy
        self.turns, self.fixed = turns, fixed  # of a loop that this is the body of: how often it runs, and its invariants
        self.lists: dict[tuple[Node, tuple[int, ...]], Node] = {}  # arrays as nested lists, by places along some axes
        self.left = False  # whether one was
        nodes = program.nodes()
        self.elements_read = {arg for node in nodes for arg in node.args if node.op not in _BLAS}
        self.grids: dict[Node, Any] = {}  # of every node: its grid; of a loop, those of its results
        self.arrays: dict[Node, Node] = {}  # the arrays that NumPy calls need whole
        self.tables: set[Node] = set()  # arrays that stay whole: see ``tables_of``

    def run(self, exact: Any = ()) -> Program:
        """The program of numbers. Raises ``Unsuited``."""
        decided = decisive(self.program) | set(ancestors(exact))
        for node in self.program.nodes():
            self.take(node, node in decided)
        mapping = {}
        for leaf in self.program.leaves():
            for node in leaf.required:
                mapping[node] = self._one(node)
            for node in leaf.outputs:
                if isinstance(node, Node):
                    mapping[node] = self.array(node) if node.aval.shape else self._one(node)
        for node in self.program.decisions():
            mapping[node] = self._one(node)
        return self.program.map(self.graph, mapping)

    def take(self, node: Node, exact: bool) -> None:
        """Take one node apart."""
        start = len(self.graph)
        self.phase, self.exact = node.phase, exact
        self.grids[node] = grid = self._taken(node)
        for made in self.graph.nodes[start:]:
            made.line, made.phase = made.line or node.line, made.phase or node.phase
            made.exact = exact
        if node.name and type(grid) is np.ndarray:
            for place, element in np.ndenumerate(grid):
                element.name = element.name or "_".join([node.name, *map(str, place)])
                element.exact = element.exact or exact
        if len(self.graph) > 2 * HOPE * MOST:
            raise Unsuited

    def _taken(self, node: Node) -> Any:
        op, params = node.op, dict(node.params)
        if op is INPUT:
            new = self.graph.input(params["position"], node.aval)
            return self._input(node, new)
        if op is CONST:
            value = params["value"]
            return _grid(self.graph.const(value.item() if isinstance(value, np.generic) else value))
        if op is CAPTURED:
            array = self.program.graph.arrays[node]
            if array.flags.writeable or array.base is not None or _is_long(node):  # it may be changed from outside
                return self._input(node, self.graph.captured(array))
            return self._each(lambda value: self.graph.const(value), array.astype(object))
        if isinstance(op, Loop):
            if "arrays" in params:  # what it saves are arrays already, not lists
                raise Unsuited
            return self._loop(node)
        if op is engine.ITEM:
            item = self.grids[node.args[0]][params["item"]]
            if type(item) is not Node:
                return item
            self.arrays[node] = item
            return None if _is_long(node) or node in self.tables else self._apart(item)
        if op is engine.ADD_LISTS:
            return self._each(lambda a, b: self.graph.add(op, (a, b), (), a.aval), *self._of(node.args))
        if op is engine.STACKED:
            columns = tuple(self.grids[node.args[0]].ravel().tolist())
            shape = (-1, *node.aval.shape[1:])  # of a loop with a test, it may be longer in other calls
            self.arrays[node] = self.graph.add(STACK, columns, (("shape", shape),), node.aval)
            return None
        if op is engine.UNSTACKED:
            return self._columns(self.array(node.args[0]))
        if op is STACK:
            lists = tuple(self.grids[node.args[0]].ravel().tolist())
            self.arrays[node] = new = self.graph.add(STACK, lists, node.params, node.aval)
            return None if _is_long(node) else self._apart(new)
        if node in self.tables:
            self.arrays[node] = self._called(node)
            return None
        if _is_left(node):
            return self._whole(node)
        if op is index.GETITEM and node.args[0] in self.tables:
            places = [self._one(node.args[1 + part.number]) if type(part) is index.Hole else part for part in params["spec"]]
            return _grid(self.number(CELL, self.array(node.args[0]), *places))
        if not all(isinstance(arg.aval, Aval) for arg in node.args):
            raise Unsuited
        rule = GRIDS.get(op)
        found = None if rule is None else rule(self, node, self._of(node.args), params)
        return self._whole(node) if found is None else found

    def _of(self, nodes: Sequence[Node]) -> list[Grid]:
        return [self.grids[node] for node in nodes]

    def _one(self, node: Node) -> Node:
        """The node of a number."""
        grid = self.grids[node]
        if isinstance(grid, list) or grid.shape:
            raise Unsuited
        node = grid[()]
        assert isinstance(node, Node)
        return node

    def _each(self, fun: Callable[..., Node], *grids: Grid) -> Grid:
        """A grid from grids, broadcast, element by element."""
        made = np.frompyfunc(fun, len(grids), 1)(*grids)
        return made if type(made) is np.ndarray else _grid(made)

    def number(self, key: Any, *args: Any) -> Node:
        """An operation on numbers, simplified."""
        op = key if isinstance(key, Op) else REGISTRY[key]
        nodes = tuple([arg if isinstance(arg, Node) else self.graph.const(arg) for arg in args])
        if op in _COMMUTING and nodes[0].index > nodes[1].index:
            nodes = nodes[::-1]
        return self.make(op, nodes, (), BOOL if op in _TESTS else FLOAT)

    def choice(self, test: Node, x: Node, y: Node) -> Node:
        """``x`` where ``test`` is true, else ``y``."""
        known = const(test)
        return self.number(CHOICE, test, x, y) if known is None and x is not y else y if known is False else x

    def _fold(self, op: Any, args: tuple[Node, ...], params: tuple[tuple[str, Any], ...]) -> Node | None:
        found = super()._fold(op, args, params)
        value = None if found is None else const(found)
        return self.graph.const(value.item()) if isinstance(value, np.generic) else found

    # ---- arrays and their elements ----

    def _input(self, node: Node, new: Node) -> Grid:
        new.name = node.name
        self.arrays[node] = new
        return None if _is_long(node) else self._apart(new)

    def _apart(self, new: Node) -> Grid:
        """The elements of a value that NumPy has."""
        aval = new.aval
        if isinstance(aval, ListAval):
            raise Unsuited
        if aval.kind == "python":
            return _grid(new)
        if not aval.shape:
            return _grid(self.graph.add(engine.TO_PYTHON, (new,), (), NUMBERS[aval.dtype]))
        return self._unpacked(new, aval.shape, NUMBERS[aval.dtype])

    def _unpacked(self, new: Node, shape: tuple[int, ...], aval: Aval) -> Grid:
        """The elements of an array, or of a list."""
        whole = self.graph.add(UNPACK, (new,), (), (aval,) * math.prod(shape))
        whole.name = new.name
        grid = np.empty(shape, object)
        for item, place in enumerate(np.ndindex(shape)):
            grid[place] = self.graph.add(engine.ITEM, (whole,), (("item", item),), aval)
        return grid

    def picked(self, node: Node) -> Grid | None:
        """What lies at an index that is known at run time: of a list, which is made before the loop; None where it is not."""
        whole, *arrays = node.args
        spec = dict(node.params)["spec"]
        places = [self.grids[array][()] if array.aval.shape == () else None for array in arrays]
        if any(place is None or place.aval.dtype != int for place in places):
            return None
        if not all(type(part) in (index.Hole, index.Slice, int) for part in spec) or not self._is_given(whole):
            return None
        if math.prod(whole.aval.shape) > max(LARGEST, 4 * self.turns):
            return None  # it would not be read often enough
        axes = tuple([axis for axis, part in enumerate(spec) if type(part) is index.Hole])
        path = [places[spec[axis].number] for axis in axes]
        shape = tuple([size for axis, size in enumerate(whole.aval.shape) if axis not in axes])
        aval = NUMBERS[whole.aval.dtype]
        one = self.graph.add(PICK, (self.list_of(whole, axes), *path), (), ListAval(aval) if shape else aval)
        rest = tuple([part for part in spec if type(part) is not index.Hole])
        found = self._unpacked(one, shape, aval) if shape else _grid(one)
        found = found[index.fill(rest, ())] if rest else found
        return found if type(found) is np.ndarray else _grid(found)

    def _is_given(self, node: Node) -> bool:
        """Whether it is there before the loop whose body this is."""
        return self.fixed is not None and (node in self.fixed or node.op is CAPTURED)

    def list_of(self, node: Node, axes: tuple[int, ...]) -> Node:
        """An array as nested lists, by its places along these axes; that of what is given is made before the loop."""
        key = node, axes
        if key not in self.lists:
            aval = _listed(NUMBERS[node.aval.dtype], 1 + len(axes) - (len(axes) == len(node.aval.shape)))
            if self._is_given(node):
                self.lists[key] = self.graph.input(("list", *key), aval)
            else:
                self.lists[key] = self.graph.add(LIST, (self.array(node),), (("axes", axes),), aval)
            self.lists[key].name = node.name
        return self.lists[key]

    def array(self, node: Node) -> Node:
        """The node of a value as a whole."""
        if node not in self.arrays:
            if not node.aval.shape:
                self.arrays[node] = one = self._one(node)
                if node.aval.kind == "array":
                    self.arrays[node] = self.graph.add(engine.TO_ARRAY, (one,), (), node.aval)
            elif node.op is CAPTURED:
                self.arrays[node] = self.graph.captured(self.program.graph.arrays[node])
            elif node.op in _VIEWS and len(node.args) == 1 and node.args[0] in self.arrays:
                self.arrays[node] = self.graph.add(node.op, (self.arrays[node.args[0]],), node.params, node.aval)
            else:
                elements = tuple(self.grids[node].ravel().tolist())
                params = (("dtype", node.aval.dtype), ("shape", node.aval.shape))
                self.arrays[node] = self.graph.add(PACK, elements, params, node.aval)
            new = self.arrays[node]
            new.name, new.line, new.phase = new.name or node.name, new.line or node.line, new.phase or node.phase
        return self.arrays[node]

    def is_whole(self, node: Node) -> bool:
        """Whether a value is there as an array."""
        return node in self.arrays or (node.op in _VIEWS and len(node.args) == 1 and self.is_whole(node.args[0]))

    def _called(self, node: Node) -> Node:
        """The NumPy call of a node; what is written to one place of an array is a number."""
        numbers = _is_cell(node)
        args = [self.array(arg) if arg.aval.shape or not numbers else self._one(arg) for arg in node.args]
        return self.graph.add(node.op, tuple(args), node.params, node.aval)

    def _whole(self, node: Node) -> Grid:
        """A NumPy call between numbers."""
        if node.op.sized:
            raise Unsuited
        new = self._called(node)
        if isinstance(node.aval, Aval):
            self.arrays[node] = new
            return None if _is_long(node) else self._apart(new)
        items = [self.graph.add(engine.ITEM, (new,), (("item", i),), aval) for i, aval in enumerate(node.aval)]
        return [self._apart(item) for item in items]

    # ---- loops ----

    def _columns(self, rows: Node) -> Grid:
        """The rows of an array as lists of numbers, one for each place in a row."""
        shape, number = rows.aval.shape, NUMBERS[rows.aval.dtype]
        grid = np.empty(shape[1:], object)
        for place in np.ndindex(shape[1:]):
            spec = (index.EVERY, *place)
            aval = Aval(shape[:1], rows.aval.dtype, "array")
            column = self.graph.add(index.GETITEM, (rows,), (("spec", spec),), aval) if place else rows
            grid[place] = self.graph.add(LIST, (column,), (("axes", (0,)),), ListAval(number))
        return grid

    def _sequence(self, node: Node) -> Grid:
        """What a loop runs over, as lists of numbers: it may be an array, which was computed for all iterations before."""
        return self._columns(self.array(node)) if isinstance(node.aval, Aval) else self.grids[node]

    def _loop(self, node: Node) -> Any:
        """A loop whose carried arrays go round as numbers, and whose lists of arrays are several of numbers."""
        op: Loop = node.op
        body, course = op.body, op.course
        inner = Scalarizer(BodyProgram(body), self.calls, self.turns * (course.count or TURNS), body.invariants)
        tables = tables_of(body)
        inner.tables.update(*tables.values())
        roles = [inner.apart(items, role) for items, role in ((body.carry, "carry"), (body.elements, "element"))]
        inner.apart([body.index], "index")
        fixed = inner.apart(body.invariants, "invariant")
        firsts, lists, steady = op.split(node.args)
        arrays = [(item, arg) for item, arg in zip(body.invariants, steady, strict=True) if item.aval.shape]
        for i, (item, _) in enumerate(arrays):  # as a whole too: what is not needed is trimmed
            inner.arrays[item] = whole = inner.graph.input(("whole", i), item.aval)
            whole.name = item.name
            fixed.append(whole)
        decided = {*body.nodes()} if self.exact or op.decides else decisive(inner.program)
        for item in body.nodes():
            inner.take(item, item.phase is None and item in decided)
        after = [_grid(inner.array(item)) if i in tables else inner.grids[item] for i, item in enumerate(body.after)]
        saved = [inner.grids[item] for item in body.saved]
        if any(type(grid) is not np.ndarray for grid in (*after, *saved)):
            raise Unsuited
        self.left = self.left or inner.left
        given = dict(zip(body.invariants, steady, strict=True))
        given |= {item: self.program.graph.captured(array) for item, array in body.graph.arrays.items()}
        read = [(self.list_of(given[item], axes), new) for (item, axes), new in inner.lists.items() if item in given]
        fixed += [new for _, new in read]
        new = Body(inner.graph, roles[0], inner._one(body.index), roles[1], fixed, _flat(after), _flat(saved))
        test = course.test
        grids = [_grid(self.array(arg)) if i in tables else self.grids[arg] for i, arg in enumerate(firsts)]
        grids += [*map(self._sequence, lists), *self._of(steady)]
        if test is not None:
            test = sum([grid.size for grid in grids[:test]])
        args = [*_flat(grids), *(self.array(arg) for _, arg in arrays), *(x for x, _ in read)]
        made = loop_of(new, replace(course, test=test))
        avals = (*(item.aval for item in new.carry), *(ListAval(item.aval) for item in new.saved))
        whole = self.graph.add(made, tuple(args), (), avals)
        results: list[Any] = []
        place = 0
        for grid in (*after, *saved):
            items = np.empty(grid.shape, object)
            for where in np.ndindex(grid.shape):
                items[where] = self.graph.add(engine.ITEM, (whole,), (("item", place),), avals[place])
                place += 1
            results.append(items[()] if len(results) in tables else items)
        return results

    def apart(self, items: Sequence[Node], role: str) -> list[Node]:
        """Inputs of a body, element by element."""
        found = []
        for i, item in enumerate(items):
            aval, depth = item.aval, 0
            while isinstance(aval, ListAval):
                aval, depth = aval.element, depth + 1
            if not isinstance(aval, Aval):
                raise Unsuited
            if item in self.tables:
                self.grids[item], self.arrays[item] = None, self.graph.input((role, i), item.aval)
                self.arrays[item].name = item.name
                found.append(self.arrays[item])
                continue
            if _is_long(item):
                self.grids[item] = None
                continue
            number = _listed(NUMBERS[aval.dtype], depth)
            grid = np.empty(aval.shape, object)
            for place in np.ndindex(aval.shape):
                grid[place] = new = self.graph.input((role, i, place), number)
                new.name = "_".join([item.name, *map(str, place)]) if item.name else None
                found.append(new)
            self.grids[item] = grid
        return found


def _listed(aval: Any, depth: int) -> Any:
    """What is known of lists of lists of such values."""
    for _ in range(depth):
        aval = ListAval(aval)
    return aval


def _grid(node: Node) -> Grid:
    grid = np.empty((), object)
    grid[()] = node
    return grid


def _flat(grids: Sequence[Grid]) -> list[Node]:
    return [node for grid in grids if grid is not None for node in grid.ravel().tolist()]


# -- what operations do to grids -----------------------------------------------------------------------------------

Rule = Callable[[Scalarizer, Node, list[Grid], dict[str, Any]], "Grid | None"]
GRIDS: dict[Any, Rule] = {}


def grid_rule(*keys: Any) -> Callable[[Rule], Rule]:
    """Put a rule into the table, for operations given by NumPy function or by op. It may return None: a NumPy call."""

    def register(rule: Rule) -> Rule:
        for key in keys:
            GRIDS[key if isinstance(key, Op) else REGISTRY[key]] = rule
        return rule

    return register


def _ops(*keys: Any) -> set[Any]:
    return {key if isinstance(key, Op) else REGISTRY[key] for key in keys}


_PLAIN = _ops(np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.abs)
_COMMUTING = _ops(np.add, np.multiply)
_LEFT = _PLAIN | _ops(STACK, INNER, create.ZEROS, np.broadcast_to, np.square, np.sum, np.mean, np.dot, np.vdot, np.vecdot)
_TESTS = _ops(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
              engine.NOT, engine.AND, EITHER)  # fmt: skip
_VIEWS = _ops(index.GETITEM, np.reshape, np.transpose, np.expand_dims, np.swapaxes, np.moveaxis)


@grid_rule(
    engine.IDENTITY, engine.STOP, engine.TO_PYTHON, engine.TO_NUMPY, engine.TO_ARRAY, np.positive, np.real, np.conjugate,
    np.copy,
)  # fmt: skip
def same(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    """What changes no number."""
    (grid,) = grids
    return grid.reshape(node.aval.shape) if node.args[0].aval.dtype == node.aval.dtype else None


@grid_rule(engine.ASTYPE, engine.TO_FLOAT)
def cast(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    if node.args[0].aval.dtype == node.aval.dtype:
        return grids[0]
    return s._each(lambda x: s.number(engine.TO_FLOAT, x), grids[0]) if node.aval.dtype == float else None


@grid_rule(engine.BOOL, engine.NOT, engine.AND)
def truth(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    if any(arg.aval.dtype != bool for arg in node.args):
        return None
    return grids[0].reshape(()) if node.op is engine.BOOL else s._each(lambda *x: s.number(node.op, *x), *grids)


def _elementwise(*keys: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what an operation does to each element: ``rule(s, *elements)``, None where only NumPy knows."""

    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        def apply(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
            if params or node.aval.dtype not in (float, bool):
                return None
            made = s._each(lambda *elements: rule(s, *elements), *grids)
            if any(element is None for element in made.flat):
                return None
            return made

        grid_rule(*keys)(apply)
        return rule

    return register


def _direct(key: Any) -> None:
    """Elementwise operations that a number has too."""

    @_elementwise(key)
    def rule(s: Scalarizer, *elements: Node) -> Node:
        return s.number(key, *elements)


for _key in (
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
    np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh,
    np.exp, np.expm1, np.exp2, np.log, np.log1p, np.log2, np.log10, np.sqrt, np.cbrt, np.hypot, np.arctan2, np.copysign,
):  # fmt: skip
    _direct(_key)


def _arithmetic(key: Any) -> None:
    """Arithmetic, of at least one float: Python's integers and truth values have other sums than NumPy's."""

    @_elementwise(key)
    def rule(s: Scalarizer, *elements: Node) -> Node | None:
        return s.number(key, *elements) if any(e.aval.dtype == float for e in elements) else None


for _sum in (np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.abs):
    _arithmetic(_sum)


@_elementwise(np.fabs)
def fabs(s: Scalarizer, x: Node) -> Node:
    return s.number(np.abs, x)


@_elementwise(np.square)
def square(s: Scalarizer, x: Node) -> Node | None:
    return s.number(np.multiply, x, x) if x.aval.dtype == float else None


@_elementwise(np.reciprocal)
def reciprocal(s: Scalarizer, x: Node) -> Node | None:
    return s.number(np.true_divide, 1.0, x) if x.aval.dtype == float else None


@_elementwise(np.power, np.float_power)
def power(s: Scalarizer, x: Node, y: Node) -> Node | None:
    if x.aval.dtype != float:
        return None
    exponent = const(y)
    if exponent == 2:
        return s.number(np.multiply, x, x)
    if s.exact:
        return None
    if exponent == 1:
        return x
    if exponent == 0.5:
        return s.number(np.sqrt, x)
    if exponent in (3, 4):
        square = s.number(np.multiply, x, x)
        return s.number(np.multiply, square, x if exponent == 3 else square)
    if exponent in (-1, -2):
        return s.number(np.true_divide, 1.0, x if exponent == -1 else s.number(np.multiply, x, x))
    return s.number(POWER, x, y)


def _as_float(s: Scalarizer, x: Node) -> Node:
    if x.aval.dtype == float:
        return x
    value = const(x)
    if value is not None:
        return s.graph.const(float(value))
    return s.number(CHOICE, x, 1.0, 0.0) if x.aval.dtype == bool else s.number(engine.TO_FLOAT, x)


@_elementwise(np.maximum)
def maximum(s: Scalarizer, x: Node, y: Node) -> Node:
    if is_op(y, np.greater) and _is_decay(x) and s.phase is not None:
        return s.number(CHOICE, y, 1.0, x)
    return s.number(LARGER, _as_float(s, x), _as_float(s, y))


def _is_decay(x: Node) -> bool:
    """Whether it is ``exp(-abs(z))``, which lies between 0 and 1."""
    return is_op(x, np.exp) and is_op(x.args[0], np.negative) and is_op(x.args[0].args[0], np.abs)


@_elementwise(np.minimum)
def minimum(s: Scalarizer, x: Node, y: Node) -> Node:
    return s.number(SMALLER, _as_float(s, x), _as_float(s, y))


@grid_rule(np.logaddexp)
def logaddexp(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    if s.exact or node.aval.dtype != float or math.prod(node.aval.shape) > FEW:
        return None

    def of(x: Node, y: Node) -> Node:
        low, high = s.number(SMALLER, x, y), s.number(LARGER, x, y)
        rest = s.number(np.log1p, s.number(np.exp, s.number(np.subtract, low, high)))
        same = s.number(np.add, x, math.log(2.0))  # infinities have no difference
        return s.choice(s.number(np.equal, x, y), same, s.number(np.add, high, rest))

    return s._each(lambda x, y: of(_as_float(s, x), _as_float(s, y)), *grids)


@_elementwise(np.deg2rad, np.radians)
def radians(s: Scalarizer, x: Node) -> Node | None:
    return s.number(np.multiply, x, math.pi / 180.0) if x.aval.dtype == float else None


@_elementwise(np.rad2deg, np.degrees)
def degrees(s: Scalarizer, x: Node) -> Node | None:
    return s.number(np.multiply, x, 180.0 / math.pi) if x.aval.dtype == float else None


@_elementwise(np.sign)
def sign(s: Scalarizer, x: Node) -> Node | None:
    return s.number(SIGN, x) if x.aval.dtype == float else None


@_elementwise(np.heaviside)
def heaviside(s: Scalarizer, x: Node, at: Node) -> Node:
    return s.number(STEP, _as_float(s, x), _as_float(s, at))


@_elementwise(np.clip)
def clip(s: Scalarizer, x: Node, low: Node, high: Node) -> Node | None:
    if const(low) is None or const(high) is None or not const(low) <= const(high) or x.aval.dtype != float:
        return None
    low, high = _as_float(s, low), _as_float(s, high)
    x = s.number(CHOICE, s.number(np.less, x, low), low, x)
    return s.number(CHOICE, s.number(np.greater, x, high), high, x)


@grid_rule(np.where)
def where(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    if node.args[0].aval.dtype != bool or node.aval.dtype != float:
        return None
    return s._each(lambda c, x, y: s.number(CHOICE, c, _as_float(s, x), _as_float(s, y)), *grids)


@grid_rule(np.logical_and, np.bitwise_and)
def both(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    return _of_truths(s, engine.AND, node, grids)


@grid_rule(np.logical_or, np.bitwise_or)
def either(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    return _of_truths(s, EITHER, node, grids)


@grid_rule(np.logical_not, np.invert)
def negated(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    return _of_truths(s, engine.NOT, node, grids)


def _of_truths(s: Scalarizer, op: Op, node: Node, grids: list[Grid]) -> Grid | None:
    if any(arg.aval.dtype != bool for arg in node.args):
        return None
    return s._each(lambda *x: s.number(op, *x), *grids)


@_elementwise(np.isnan)
def isnan(s: Scalarizer, x: Node) -> Node:
    return s.number(np.not_equal, x, x)


# ---- what NumPy itself does to object arrays ----


def _run(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid:
    """NumPy's own function, on elements."""
    wrapped = [np.frompyfunc(lambda e: Element(s, e), 1, 1)(grid) for grid in grids]
    wrapped = [w if type(w) is np.ndarray else _grid(w) for w in wrapped]
    return _unwrapped(s, node, node.op.fun(*wrapped, **params))


def _unwrapped(s: Scalarizer, node: Node, made: Any) -> Grid:
    made = np.asarray(made, object)
    if made.shape != node.aval.shape:
        raise Unsuited
    found = np.empty(made.shape, object)
    for place, element in np.ndenumerate(made):
        number = isinstance(element, Element)
        found[place] = element.node if number else s.graph.const(node.aval.dtype.type(element).item())
    return found


_MOVES = (
    np.reshape, np.ravel, np.squeeze, np.expand_dims, np.broadcast_to, np.transpose, np.matrix_transpose, np.swapaxes,
    np.moveaxis, np.flip, np.rot90, np.roll, np.concatenate, np.stack, np.tile, np.diagonal, np.tril, np.triu,
)  # fmt: skip


_FREE = {INPUT, CONST, CAPTURED} | _ops(*_MOVES, index.GETITEM, engine.ITEM, engine.TO_PYTHON, create.ZEROS, create.EYE)


@grid_rule(*_MOVES)
def move(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    """What only moves elements about."""
    if any(arg.aval.dtype != node.aval.dtype for arg in node.args):
        return None
    return _run(s, node, grids, params)


@grid_rule(create.DIAGONAL)
def alone(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    return move(s, node, grids, params)


@grid_rule(np.diag)
def diagonal(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    """In derivatives, zeros that are known would stay zero where those of NumPy's matrix, times infinity, do not."""
    return None if s.phase is not None and grids[0].ndim == 1 else move(s, node, grids, params)


_PRODUCTS = (
    np.matmul, np.dot, np.inner, np.outer, np.vdot, np.vecdot, np.tensordot, np.einsum, np.cross, np.kron,
    *((np.matvec, np.vecmat) if hasattr(np, "matvec") else ()),
)  # fmt: skip


_SUMMING = _ops(*_PRODUCTS)
_FROM_ZERO = _ops(*_PRODUCTS, np.sum, np.trace) - _ops(np.outer, np.cross, np.kron)
_BLAS = _ops(np.matmul, np.dot)


def _is_dear(s: Scalarizer, node: Node, grids: list[Grid]) -> bool:
    """Whether a product costs more on numbers than as a call, with what that takes to be packed and unpacked."""
    sizes = [math.prod(value.aval.shape) for value in (node, *node.args)]
    if not s.calls or node.op not in _BLAS or any(const(element) is not None for grid in grids for element in grid.flat):
        return False
    saved, conversions = 0.0, UNPACKING + ELEMENT * sizes[0]
    for arg, size in zip(node.args, sizes[1:], strict=True):
        if not s.is_whole(arg):
            conversions += PACKING + ELEMENT * size
        elif arg not in s.elements_read:
            saved += UNPACKING + ELEMENT * size
    dear = bool(OPERATION * 2 * math.sqrt(math.prod(sizes)) + saved > CALL + conversions)
    s.left = s.left or dear
    return dear


@grid_rule(*_PRODUCTS, np.sum, np.trace, np.cumsum, np.prod, np.cumprod, np.diff)
def combine(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    """Sums and products. A sum's last bit hangs on the order, which is NumPy's own where a decision hangs on the sum."""
    if node.op is REGISTRY[np.sum] and node.args[0].aval.dtype == bool and node.aval.dtype == float:  # how many are true
        numbers = s._each(lambda x: _as_float(s, x), grids[0])
        return _run(s, node, [numbers], {name: value for name, value in params.items() if name != "dtype"})
    if (
        (s.exact and not _in_order(node))
        or any(aval.dtype != float for aval in (node.aval, *[arg.aval for arg in node.args]))
        or 0 in [grid.size for grid in grids]
        or _is_dear(s, node, grids)
    ):
        return None
    found = _run(s, node, grids, {name: value for name, value in params.items() if name not in ("dtype", "optimize")})
    return s._each(lambda x: _from_zero(s, x), found) if node.op in _FROM_ZERO else found


def _from_zero(s: Scalarizer, total: Node) -> Node:
    """A sum as NumPy's, which starts from 0: that of nothing but ``-0.0`` is 0."""
    return total if s.phase is not None or _has_plus(total) else s.number(np.add, total, 0.0)


def _has_plus(x: Node) -> bool:
    """Whether a number, as it was made, cannot be ``-0.0``."""
    seen: set[Node] = set()
    waiting = [x]  # of which one suffices
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if one.op is CONST:
            plus = math.copysign(1.0, const(one)) > 0
        elif is_op(one, np.multiply):
            plus = one.args[0] is one.args[1]
        else:
            plus = is_op(one, np.square) or is_op(one, np.exp) or is_op(one, np.abs)
        if plus:
            return True
        if is_op(one, np.add) or is_op(one, np.log1p) or is_op(one, np.sqrt):
            waiting += one.args
    return False


def _in_order(node: Node) -> bool:
    """Whether NumPy adds one element after the other: along one axis, fewer than eight."""
    if node.op in _ops(np.cross, np.outer, np.diff, np.cumsum):
        return True
    shape, axis = node.args[0].aval.shape, dict(node.params).get("axis")
    if node.op not in _ops(np.sum, np.mean) or not (len(shape) < 2 or type(axis) is int):
        return False
    return not shape or shape[axis or 0] < 8


@grid_rule(np.mean, np.var, np.std, np.linalg.norm)
def moment(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    """Means, and roots of sums of squares."""
    axis, rest = params.get("axis"), set(params) - {"axis", "keepdims", "ddof"}
    if (s.exact and not _in_order(node)) or rest or node.args[0].aval.dtype != float or not grids[0].size:
        return None
    keepdims = bool(params.get("keepdims"))

    def total(grid: Grid, keepdims: bool, over: float) -> Grid:
        elements = np.frompyfunc(lambda e: Element(s, e), 1, 1)(grid)
        sums = np.asarray(np.sum(elements, axis=axis, keepdims=keepdims), object)
        return s._each(lambda e: s.number(np.true_divide, _from_zero(s, e.node), over), sums)

    grid = grids[0]
    count = grid.size // max(math.prod(node.aval.shape), 1)
    if node.op is REGISTRY[np.mean]:
        return total(grid, keepdims, count)
    if node.op is not REGISTRY[np.linalg.norm]:
        grid = s._each(lambda x, m: s.number(np.subtract, x, m), grid, total(grid, True, count))
        count -= params.get("ddof", 0)
        if count <= 0:
            return None
    else:
        count = 1
    squares = total(s._each(lambda x: s.number(np.multiply, x, x), grid), keepdims, count)
    return squares if node.op is REGISTRY[np.var] else s._each(lambda x: s.number(np.sqrt, x), squares)


@grid_rule(np.max, np.min)
def extreme(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    (grid,) = grids
    if node.args[0].aval.dtype != float or not grid.size or set(params) - {"axis", "keepdims"}:
        return None
    if not grid.ndim:
        return grid
    op = LARGER if node.op is REGISTRY[np.max] else SMALLER
    axes = params.get("axis")
    axes = range(grid.ndim) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    axes = [axis % grid.ndim for axis in axes]
    rest = [axis for axis in range(grid.ndim) if axis not in axes]
    rows = grid.transpose(*rest, *axes).reshape(*(grid.shape[axis] for axis in rest), -1)
    found = np.frompyfunc(lambda x, y: s.number(op, x, y), 2, 1).reduce(rows, axis=-1)
    return np.reshape(found, node.aval.shape) if type(found) is np.ndarray else _shaped(found, node.aval.shape)


def _shaped(node: Node, shape: tuple[int, ...]) -> Grid:
    return _grid(node).reshape(shape)


# ---- linear algebra ----

_SOLVING = _ops(np.linalg.inv, np.linalg.solve, np.linalg.det, np.linalg.slogdet, np.linalg.cholesky, linalg.cofactor)


def _of_matrix(key: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what is done to one small square matrix: ``rule(s, matrix, *others)``."""

    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        def apply(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Any:
            plain = all(arg.aval.dtype == float for arg in node.args) and not params and not s.exact
            if not plain or grids[0].ndim > 2 or not 0 < len(grids[0]) <= LARGEST_SYSTEM:
                return None
            return rule(s, *grids)

        grid_rule(key)(apply)
        return rule

    return register


@_of_matrix(np.linalg.inv)
def inverse(s: Scalarizer, matrix: Grid) -> Grid:
    return Factors(s, matrix).inverse()


@_of_matrix(np.linalg.solve)
def solution(s: Scalarizer, matrix: Grid, right: Grid) -> Grid | None:
    if right.ndim > 2:
        return None
    return Factors(s, matrix).solve(right.reshape(len(right), -1)).reshape(right.shape)


@_of_matrix(np.linalg.det)
def determinant(s: Scalarizer, matrix: Grid) -> Grid:
    return _grid(Factors(s, matrix).determinant())


@_of_matrix(np.linalg.slogdet)
def sign_and_logarithm(s: Scalarizer, matrix: Grid) -> list[Grid]:
    return [_grid(part) for part in Factors(s, matrix).sign_and_logarithm()]


_of_matrix(np.linalg.cholesky)(cholesky)


@grid_rule(linalg.cofactor)
def cofactor(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    (grid,) = grids
    few = 0 < grid.shape[-1] <= LARGEST_SYSTEM
    return _run(s, node, grids, params) if few and node.aval.dtype == float else None


# ---- indices and writes ----


def _place(s: Scalarizer, node: Node, first: int) -> Any:
    """A static index; None where it hangs on values."""
    arrays = []
    for arg in node.args[first:]:
        grid = s.grids[arg]
        if any(const(element) is None for element in grid.flat):
            return None
        arrays.append(np.array([const(e) for e in grid.flat], arg.aval.dtype).reshape(grid.shape)[()])
    return (index.fill(dict(node.params)["spec"], arrays),)


@grid_rule(index.GETITEM)
def getitem(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    place = _place(s, node, 1)
    if place is None:
        return s.picked(node)
    if grids[0] is None:
        return None
    found = grids[0][place[0]]
    return found if type(found) is np.ndarray else _grid(found)


@grid_rule(index.SETITEM)
def setitem(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    place = _place(s, node, 2)
    if place is None or node.aval.dtype != float:
        return None
    found = grids[0].copy()
    value = s._each(lambda e: _as_float(s, e), grids[1])
    found[place[0]] = value if value.shape else value[()]
    return found


@grid_rule(index.INDEX_ADD, index.SCATTER)
def scatter(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    empty = node.op is index.SCATTER
    place = _place(s, node, 1 if empty else 2)
    if place is None or node.aval.dtype != float:
        return None
    base = np.full(node.aval.shape, s.graph.const(0.0), object) if empty else grids[0].copy()
    numbers = np.arange(base.size).reshape(base.shape)[place[0]]
    values = np.broadcast_to(s._each(lambda e: _as_float(s, e), grids[0 if empty else 1]), np.shape(numbers))
    flat = base.reshape(-1)
    for number, value in zip(np.ravel(numbers).tolist(), values.ravel().tolist(), strict=True):
        flat[number] = s.number(np.add, flat[number], value)
    return flat.reshape(node.aval.shape)


@grid_rule(create.ZEROS, create.EYE)
def constant(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid:
    values = np.array(node.op.fun(**params).tolist(), object)
    return s._each(lambda value: s.graph.const(value), values.reshape(node.aval.shape))


@grid_rule(create.FULL)
def full(s: Scalarizer, node: Node, grids: list[Grid], params: dict[str, Any]) -> Grid | None:
    if node.aval.dtype != float or grids[0].shape:
        return None
    return np.full(node.aval.shape, _as_float(s, grids[0][()]), object)


__all__ = [
    "CHOICE",
    "EITHER",
    "LARGER",
    "LIST",
    "PACK",
    "PICK",
    "POWER",
    "SIGN",
    "SMALLER",
    "STEP",
    "UNPACK",
    "Graph",
    "cost",
    "scalarize",
]
