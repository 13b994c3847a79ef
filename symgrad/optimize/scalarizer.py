"""Takes programs of small arrays apart: every array becomes a *grid*, an object array of the nodes of its elements.

What an operation does to grids, a table says (``grids``): a *rule* gives the grid of its result, or None, and then it stays a
NumPy call between a ``pack`` and an ``unpack``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from symgrad.ir import CAPTURED, CONST, INPUT, Aval, Node, ancestors
from symgrad.ir import Sequence as ListAval
from symgrad.ops import engine, index
from symgrad.ops.core import REGISTRY, Op, ops_of
from symgrad.optimize.exact import decisive
from symgrad.optimize.loops import SCALAR, STACK, BodyProgram
from symgrad.optimize.rewriting import Simplifier, const, is_op
from symgrad.optimize.scalars import BOOL, CELL, CHOICE, COMMUTING, FLOAT, INT, LIST, LISTED, NUMBERS, PACK, PICK, TESTS, UNPACK
from symgrad.optimize.whole import (
    LARGEST,
    filled_tables,
    is_cell,
    is_kept,
    is_left,
    is_long,
    is_narrow,
    is_row,
    is_window,
    tables_of,
)
from symgrad.program import Program
from symgrad.transform.loop import Body, Course, Loop, loop_of

MOST = 2000  # operations on numbers that arrays are taken apart into, so that the first call stays quick
NARROW = 4  # numbers of a row of a table that are read and written one by one
MORE = 1.5  # times the operations that there are anyway: a long program of numbers may stay one
HOPE = 3  # how many times more than that there may be at first, for zeros and equal numbers shorten it
TURNS = 10  # of a loop that says not how many

BLAS = ops_of(np.matmul, np.dot)
_VIEWS = ops_of(index.GETITEM, np.reshape, np.transpose, np.expand_dims, np.swapaxes, np.moveaxis)

Grid = Any  # an object array of nodes
Rule = Callable[["Scalarizer", Node, list[Grid], dict[str, Any]], "Grid | None"]


class Unsuited(Exception):
    """A program cannot, or should not, be taken apart."""


class Scalarizer(Simplifier):
    """Rebuilds a program element by element; simplifies numbers as it goes."""

    def __init__(
        self, program: Program, table: Mapping[Any, Rule], calls: bool, turns: int = 1, fixed: Sequence[Node] | None = None
    ) -> None:
        super().__init__(program, SCALAR)
        self.table = table  # what operations do to grids
        self.calls = calls  # whether products may be left to NumPy
        self.left = False  # whether one was
        self.turns, self.fixed = turns, fixed  # of a loop that this is the body of: how often it runs, and its invariants
        self.lists: dict[tuple[Node, tuple[int, ...]], Node] = {}  # arrays as nested lists, by places along some axes
        nodes = program.nodes()
        self.elements_read = {arg for node in nodes for arg in node.args if node.op not in BLAS}
        values = {arg for node in nodes for arg in (node.args[: len(node.op.rules)] if is_window(node) else node.args)}
        self.places = {node for node in nodes if _is_row(node) and node not in values}  # which nothing else is made of
        self.grids: dict[Node, Any] = {}  # of every node: its grid; of a loop, those of its results
        self.arrays: dict[Node, Node] = {}  # the arrays that NumPy calls need whole
        self.raises = False  # whether what overflows raises, as a Python number does in what the user wrote
        self.most = 2 * max(HOPE * MOST, MORE * len(program.nodes()))  # nodes, before it is too much
        self.tables = filled_tables(program) if fixed is None else set()  # arrays that stay whole: see ``tables_of``

    def run(self, exact: Any = ()) -> Program:
        """The program of numbers. Raises ``Unsuited``."""
        decided = decisive(self.program) | set(ancestors(exact))
        for node in self.program.nodes():
            self.take(node, node in decided)
        mapping = {}
        for leaf in self.program.leaves():
            for node in leaf.nodes():
                mapping[node] = self.array(node) if node.aval.shape else self._one(node)
        for node in self.program.decisions():
            mapping[node] = self._one(node)
        return self.program.map(self.graph, mapping)

    def take(self, node: Node, exact: bool) -> None:
        """Take one node apart."""
        start = len(self.graph)
        self.phase, self.exact = node.phase, exact
        self.raises = node.phase is None and isinstance(node.aval, Aval) and node.aval.kind == "python"
        self.grids[node] = grid = self._taken(node)
        for made in self.graph.nodes[start:]:
            made.line, made.phase = made.line or node.line, made.phase or node.phase
            made.exact = exact
        if node.name and type(grid) is np.ndarray:
            for place, element in np.ndenumerate(grid):
                element.name = element.name or "_".join([node.name, *map(str, place)])
                element.exact = element.exact or exact
        if len(self.graph) > self.most:
            raise Unsuited

    def _taken(self, node: Node) -> Any:
        op, params = node.op, dict(node.params)
        if op is INPUT:
            new = self.graph.input(params["position"], node.aval)
            return self._input(node, new)
        if op is CONST:
            value = params["value"]
            return grid_of(self.graph.const(value.item() if isinstance(value, np.generic) else value))
        if op is CAPTURED:
            array = self.program.graph.arrays[node]
            if array.flags.writeable or array.base is not None or is_long(node):  # it may be changed from outside
                return self._input(node, self.graph.captured(array))
            return self.each(lambda value: self.graph.const(value), array.astype(object))
        if isinstance(op, Loop):
            if "arrays" in params:  # what it saves are arrays already, not lists
                raise Unsuited
            return self._loop(node)
        if op is engine.ITEM:
            item = self.grids[node.args[0]][params["item"]]
            if type(item) is not Node:
                return item
            self.arrays[node] = item
            return None if is_long(node) or is_kept(node) or node in self.tables else self._apart(item)
        if op is engine.ADD_LISTS and self.grids[node.args[0]] is not None and self.grids[node.args[1]] is not None:
            return self.each(lambda a, b: self.graph.add(op, (a, b), (), a.aval), *self._of(node.args))
        if op is engine.STACKED:
            columns = self._lists(node.args[0])
            shape = (-1, *node.aval.shape[1:])  # of a loop with a test, it may be longer in other calls
            self.arrays[node] = self.graph.add(STACK, columns, (("shape", shape),), node.aval)
            return None
        if op is engine.RANGE:
            return grid_of(self.graph.add(op, tuple(map(self._one, node.args)), (), node.aval))
        if op is engine.UNSTACKED:
            return self._columns(self.array(node.args[0]))
        if op is STACK:
            self.arrays[node] = new = self.graph.add(STACK, self._lists(node.args[0]), node.params, node.aval)
            return None if is_long(node) else self._apart(new)
        if node in self.tables:
            self.arrays[node] = self._put(node) if is_window(node) or _is_narrow_row(node) else self._called(node)
            return None
        if is_left(node) or any(map(is_narrow, node.args)):
            return self._whole(node)
        if op is index.GETITEM and node.args[0] in self.tables and _is_narrow_row(node):
            return self._cells(node, [*np.indices(node.aval.shape)])
        if op is index.GETITEM and node.args[0] in self.tables and not (is_cell(node) or is_window(node)):
            return self._whole(node)
        if op is index.GETITEM and node.args[0] in self.tables:
            return self._cells(node)
        if not all(isinstance(arg.aval, Aval) for arg in node.args):
            raise Unsuited
        if node in self.places:  # which are no large numbers: Python's have their sums
            return self.each(lambda a, b: self.make(op, (a, b), (), INT), *self._of(node.args))
        rule = self.table.get(op)
        found = None if rule is None else rule(self, node, self._of(node.args), params)
        return self._whole(node) if found is None else found

    def _lists(self, node: Node) -> tuple[Node, ...]:
        """A list of arrays, or the lists of numbers in its place."""
        grid = self.grids[node]
        return (self.arrays[node],) if grid is None else tuple(grid.ravel().tolist())

    def _of(self, nodes: Sequence[Node]) -> list[Grid]:
        return [self.grids[node] for node in nodes]

    def _places(self, node: Node) -> list[Any]:
        """The index of what names numbers of an array, as grids and plain numbers."""
        arrays = node.args[len(node.op.rules) :]
        parts = [arrays[part.number] if type(part) is index.Hole else part for part in dict(node.params)["spec"]]
        if any([type(part) is Node and isinstance(self.grids[part], list) for part in parts]):
            raise Unsuited
        return [self.grids[part] if type(part) is Node else part for part in parts]

    def _cells(self, node: Node, within: Sequence[Any] = ()) -> Grid:
        """Numbers of an array that stays whole, read one by one; of a row, those ``within`` it."""
        array, kind = self.array(node.args[0]), NUMBERS[node.aval.dtype]

        def read(*place: Any) -> Node:
            at = [part if isinstance(part, Node) else self.graph.const(int(part)) for part in place]
            return self.make(CELL, (array, *at), (), kind)

        return self.each(read, *self._places(node), *[axis.astype(object) for axis in within])

    def _put(self, node: Node) -> Node:
        """An array with numbers written, or added, one by one."""
        array, parts = self.array(node.args[0]), self._places(node)
        spec = (("spec", tuple([index.Hole(number) for number in range(len(node.args[0].aval.shape))])),)
        parts += [*np.indices(node.args[0].aval.shape[len(parts) :])]
        for number, *place in zip(*[grid.flat for grid in np.broadcast_arrays(self.grids[node.args[1]], *parts)], strict=True):
            at = [part if isinstance(part, Node) else self.graph.const(int(part)) for part in place]
            array = self.graph.add(node.op, (array, number, *at), spec, node.aval)
        return array

    def _one(self, node: Node) -> Node:
        """The node of a number."""
        grid = self.grids[node]
        if isinstance(grid, list) or grid.shape:
            raise Unsuited
        node = grid[()]
        assert isinstance(node, Node)
        return node

    def each(self, fun: Callable[..., Node], *grids: Grid) -> Grid:
        """A grid from grids, broadcast, element by element."""
        with np.errstate(all="ignore"):  # constants are folded meanwhile
            made = np.frompyfunc(fun, len(grids), 1)(*grids)
        return made if type(made) is np.ndarray else grid_of(made)

    def number(self, key: Any, *args: Any) -> Node:
        """An operation on numbers, simplified."""
        op = key if isinstance(key, Op) else REGISTRY[key]
        nodes = tuple([arg if isinstance(arg, Node) else self.graph.const(arg) for arg in args])
        if op in COMMUTING and nodes[0].index > nodes[1].index:
            nodes = nodes[::-1]
        return self.make(op, nodes, (), BOOL if op in TESTS else FLOAT)

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
        return None if is_long(node) or is_narrow(node) else self._apart(new)

    def _apart(self, new: Node) -> Grid:
        """The elements of a value that NumPy has."""
        aval = new.aval
        if isinstance(aval, ListAval):
            raise Unsuited
        if aval.kind == "python":
            return grid_of(new)
        if not aval.shape:
            return grid_of(self.graph.add(engine.TO_PYTHON, (new,), (), NUMBERS[aval.dtype]))
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
        if any([isinstance(self.grids[array], list) or array.aval.dtype != int for array in arrays]):
            return None
        if not all(type(part) in (index.Hole, index.Slice, int) for part in spec) or not self._is_given(whole):
            return None
        if math.prod(whole.aval.shape) > max(LARGEST, 4 * self.turns):
            return None  # it would not be read often enough
        axes = tuple([axis for axis, part in enumerate(spec) if type(part) is index.Hole])
        if not axes:
            return None
        if any([array.aval.shape for array in arrays]):
            return self._window_of(node, axes) if is_window(node) and len(axes) == len(spec) else None
        places = [self.grids[array][()] for array in arrays]
        path = [places[spec[axis].number] for axis in axes]
        shape = tuple([size for axis, size in enumerate(whole.aval.shape) if axis not in axes])
        aval = NUMBERS[whole.aval.dtype]
        one = self.graph.add(PICK, (self.list_of(whole, axes), *path), (), ListAval(aval) if shape else aval)
        rest = tuple([part for part in spec if type(part) is not index.Hole])
        found = self._unpacked(one, shape, aval) if shape else grid_of(one)
        found = found[index.fill(rest, ())] if rest else found
        return found if type(found) is np.ndarray else grid_of(found)

    def _window_of(self, node: Node, axes: tuple[int, ...]) -> Grid:
        """A few numbers of a list that is made before the loop."""
        whole, aval = node.args[0], NUMBERS[node.aval.dtype]
        listed = self.list_of(whole, axes)
        return self.each(lambda *path: self.graph.add(PICK, (listed, *path), (), aval), *self._places(node))

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
            elif len(node.aval.shape) == 1 and not self.is_whole(node) and node.op is not CAPTURED:
                self.lists[key] = self.graph.add(LISTED, tuple(self.grids[node].tolist()), (), aval)
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
        numbers = is_cell(node)
        args = [self.array(arg) if arg.aval.shape or not numbers else self._one(arg) for arg in node.args]
        return self.graph.add(node.op, tuple(args), node.params, node.aval)

    def _whole(self, node: Node) -> Grid:
        """A NumPy call between numbers."""
        if node.op.sized:
            raise Unsuited
        new = self._called(node)
        if isinstance(node.aval, Aval):
            self.arrays[node] = new
            return None if is_long(node) else self._apart(new)
        return [self.graph.add(engine.ITEM, (new,), (("item", i),), aval) for i, aval in enumerate(node.aval)]

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
        inner = Scalarizer(BodyProgram(body), self.table, self.calls, self.turns * turns_of(course), body.invariants)
        tables, n = tables_of(body), len(body.carry)
        firsts, lists, steady = op.split(node.args)
        seen = {item: arg for item, arg in zip(body.invariants, steady, strict=True) if arg in self.tables}
        kept = {item: one for item, one in zip(body.elements, lists, strict=True) if is_long(item)}
        if any([not isinstance(one.aval, Aval) and one not in self.arrays for one in kept.values()]):
            raise Unsuited  # lists of arrays that were taken apart
        inner.tables.update(seen, kept, *tables.values())
        roles = [inner.apart(items, role) for items, role in ((body.carry, "carry"), (body.elements, "element"))]
        inner.apart([body.index], "index")
        fixed = inner.apart(body.invariants, "invariant")
        given = [(x, arg) for x, arg in zip(body.invariants, steady, strict=True) if isinstance(x.aval, Aval)]
        arrays = [(x, arg) for x, arg in given if x.aval.shape and x not in seen]
        for i, (item, _) in enumerate(arrays):  # as a whole too: what is not needed is trimmed
            inner.arrays[item] = whole = inner.graph.input(("whole", i), item.aval)
            whole.name = item.name
            fixed.append(whole)
        decided = {*body.nodes()} if self.exact or op.decides else decisive(inner.program)
        for item in body.nodes():
            inner.take(item, item.phase is None and item in decided)
        after = [grid_of(inner.array(item)) if i in tables else inner.grids[item] for i, item in enumerate(body.after)]
        uncut = [item in inner.tables or is_long(item) for item in body.saved]
        saved = [grid_of(inner.array(item)) if one else inner.grids[item] for item, one in zip(body.saved, uncut, strict=True)]
        if any(type(grid) is not np.ndarray for grid in (*after, *saved)):
            raise Unsuited
        self.left = self.left or inner.left
        read_from = dict(zip(body.invariants, steady, strict=True))
        read_from |= {item: self.program.graph.captured(array) for item, array in body.graph.arrays.items()}
        read = [(self.list_of(read_from[item], axes), new) for (item, axes), new in inner.lists.items() if item in read_from]
        fixed += [new for _, new in read]
        new = Body(inner.graph, roles[0], inner._one(body.index), roles[1], fixed, _flat(after), _flat(saved))
        test = course.test
        grids = [grid_of(self.array(arg)) if i in tables else self.grids[arg] for i, arg in enumerate(firsts)]
        grids += [
            grid_of(self.array(one)) if item in kept else self._sequence(one)
            for item, one in zip(body.elements, lists, strict=True)
        ]
        grids += [grid_of(self.array(arg)) if arg in self.tables else self.grids[arg] for arg in steady]
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
            one = uncut[len(results) - n] if len(results) >= n else len(results) in tables
            results.append(items[()] if one else items)
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
            if is_long(item):
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


def turns_of(course: Course) -> int:
    """About how often a loop runs."""
    return 1 if course.once else course.count or TURNS


def _is_narrow_row(node: Node) -> bool:
    """Whether it is a row of so few numbers that they are read or written one by one."""
    return is_row(node) and math.prod(node.args[0].aval.shape[len(dict(node.params)["spec"]) :]) <= NARROW


def _is_row(node: Node) -> bool:
    """Whether it is whole numbers beside one, as slices that move with an index are."""
    return (
        is_op(node, np.add)
        and bool(node.aval.shape)
        and node.aval.dtype == int
        and not all(arg.aval.shape for arg in node.args)
    )


def _listed(aval: Any, depth: int) -> Any:
    """What is known of lists of lists of such values."""
    for _ in range(depth):
        aval = ListAval(aval)
    return aval


def grid_of(node: Node) -> Grid:
    """The grid of a number."""
    grid = np.empty((), object)
    grid[()] = node
    return grid


def _flat(grids: Sequence[Grid]) -> list[Node]:
    return [node for grid in grids if grid is not None for node in grid.ravel().tolist()]
