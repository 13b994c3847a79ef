"""The last items of a list that a loop appends to, as far from its end as it reads them, go round in locals.

``xs.append(step(xs[-1]))``, ``if abs(xs[-1] - xs[-2]) < tol: break`` reads where the list ends, which hangs on how often the
loop has run. ``before, last = last, step(last)``, ``xs.append(last)``, ``if abs(last - before) < tol: break`` reads what any
loop has, and the list is one that is appended to and nothing else. So is ``len(xs)`` a number that goes round.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Container, Iterator, Sequence
from typing import Any

from symgrad.source.constants import bound_anywhere
from symgrad.source.exits import has_test, leaves
from symgrad.source.lists import from_the_end
from symgrad.source.syntax import (
    LOCAL_READERS,
    MODULES,
    FunctionNode,
    assigned,
    blocks_of,
    changed_in,
    declared,
    ends_of,
    fresh,
    is_append,
    is_length,
    located,
    mentioned,
    names_stored,
    names_within,
    own_parts,
    paired,
    placed,
    walk,
)

SHORT = "__symgrad_short__"  # raises the error of a list that is too short
_ORDERED = (ast.NamedExpr, ast.With, ast.AsyncWith)  # of which it matters what comes first
_OTHERS = (ast.Yield, ast.YieldFrom, ast.Await, ast.Try, ast.TryStar, ast.Match, ast.Delete)


def last_items(function: FunctionNode, around: Container[str]) -> FunctionNode:
    """The function, changed in place, as are those in it: loops that a test ends read the last items of such lists from locals.
    ``around``: the names that there are outside of the function."""
    if not any(map(is_append, walk(function))) or "len" in around or "len" in bound_anywhere(function):
        return function
    for node in [*walk(function)]:
        if isinstance(node, ast.FunctionDef) and not any([isinstance(part, _OTHERS) for part in walk(node)]):
            names = mentioned(node)
            lists = _lists(node) if names.isdisjoint(LOCAL_READERS) else set()
            for block in [*blocks_of(node)] if lists else ():
                _change(block, node, lists, names)
    return function


def _lists(function: ast.FunctionDef) -> set[str]:
    """The locals that are only ever bound to lists that the function makes there, and that no function in it names."""
    parts = [*own_parts(function)]
    stored = Counter([part.id for part in parts if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)])
    made = Counter([name for part in parts for name in _made(part)])
    others = declared(function) | names_within(function) | {part.arg for part in walk(function) if isinstance(part, ast.arg)}
    return {name for name, often in made.items() if stored[name] == often} - others


def _made(node: ast.AST) -> dict[str, ast.List]:
    """The lists that a statement makes and binds to names."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return {}
    pairs = [(target, value) for target, value in paired(node.targets[0], node.value) if isinstance(target, ast.Name)]
    lists = [(target.id, value) for target, value in pairs if isinstance(value, ast.List)]
    return {name: value for name, value in lists if not any([isinstance(item, ast.Starred) for item in value.elts])}


def _change(block: list[ast.stmt], function: ast.FunctionDef, lists: Collection[str], taken: set[str]) -> None:
    """Have the loops of a block read such items from locals: those that may end early, and of others those of lists to which
    ``if``s append."""
    for loop in [*block]:
        if isinstance(loop, (ast.For, ast.While)) and not loop.orelse:
            within: Any = own_parts(loop) if has_test(loop) or leaves(loop) else _chosen_parts(loop)
            owners = {part.func.value.id for part in within if isinstance(part, ast.Call) and is_append(part)}  # type: ignore[attr-defined]
            for name in sorted(owners & {*lists}):
                _in_locals(block, block.index(loop), name, function, taken)


def _chosen_parts(loop: ast.stmt) -> Iterator[ast.AST]:
    """What is in the ``if``s of a loop."""
    for part in own_parts(loop):
        if isinstance(part, ast.If):
            yield from own_parts(part)


def _in_locals(block: list[ast.stmt], at: int, name: str, function: ast.FunctionDef, taken: set[str]) -> None:
    """Have the loop at a place in a block, and what is around it, read the last items of a list from locals, if that can be."""
    loop: Any = block[at]
    _ask_for_lengths(function, name)
    made = [i for i, one in enumerate(block[:at]) if name in _made(one)]
    appends = [part for part in own_parts(loop) if isinstance(part, ast.Expr) and is_append(part.value) and _of(part) == name]
    reads = [part for part in own_parts(loop) if _depth(part, name) or is_length(part, name)]
    if not made or not reads or not _is_known(loop, name, function, len(reads) + len(appends)):
        return
    begun: Any = block[made[-1]]
    items: list[Any] = _made(begun)[name].elts
    deepest = max([_depth(part, name) for part in reads])
    behind = block[made[-1] + 1 :]
    changed = name in changed_in(behind)
    rebound = name in [stored for one in [*behind[: at - made[-1] - 1], loop] for stored in names_stored(one)]
    made_of = [*items, *[part.value.args[0] for part in appends]]  # type: ignore[attr-defined]
    if any(map(_is_whole, made_of)):  # which Python's ints may be, as large as they get
        return
    still = isinstance(begun.targets[0], ast.Name) or all(map(_is_still, items))  # else others come before its items
    ordered = any([isinstance(part, _ORDERED) for part in (*walk(begun), *walk(loop))])
    if changed or rebound or ordered or not still:
        return
    lasts = [fresh(f"{name}_{'last' if k == 1 else k}", taken) for k in range(1, deepest + 1)]
    counts = any([is_length(part, name) for part in reads]) or deepest > len(items)
    count = fresh(f"len_{name}", taken) if counts else ""
    first = [assigned(last, ast.Constant(None), begun) for last in lasts[len(items) :]]
    for k in range(len(items), 0, -1):  # in their order
        if k <= deepest or not isinstance(items[-k], ast.Constant):
            last = lasts[k - 1] if k <= deepest else fresh(f"{name}_item", taken)
            first.append(assigned(last, items[-k], begun))
            items[-k] = placed(ast.Name(last, ast.Load()), items[-k])
    first += [assigned(count, ast.Constant(len(items)), begun)] if count else []
    reader = _Reader(name, lasts, count, len(items), fresh(f"{name}_new", taken))
    before = reader.each(block[made[-1] + 1 : at])
    sure = reader.sure
    if isinstance(loop, ast.While):
        loop.test = reader.visit(loop.test)
    loop.body[:] = reader.each(loop.body)
    reader.sure = sure  # it may run no iteration
    for statement in block[at + 1 :]:
        if _others(statement, name):
            break
        reader.visit(statement)
    block[made[-1] : at] = [*first, begun, *before]


def _ask_for_lengths(function: ast.FunctionDef, name: str) -> None:
    """Have tests of whether there is an item, ``if xs``, ask for the length, ``if len(xs) > 0``."""
    for node in own_parts(function):
        if isinstance(node, (ast.If, ast.While, ast.IfExp)):
            node.test = _of_length(node.test, name)


def _of_length(test: ast.expr, name: str) -> ast.expr:
    if isinstance(test, ast.BoolOp):
        test.values = [_of_length(value, name) for value in test.values]
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test.operand = _of_length(test.operand, name)
    elif isinstance(test, ast.Name) and test.id == name:
        length = ast.Call(ast.Name("len", ast.Load()), [test], [])
        return located(placed(ast.Compare(length, [ast.Gt()], [ast.Constant(0)]), test))  # type: ignore[no-any-return]
    return test


def _is_whole(item: ast.expr) -> bool:
    """Whether an expression may be a constant int, or flag."""
    every = [end.operand if isinstance(end, ast.UnaryOp) else end for end in ends_of(item)]
    return any([isinstance(end, ast.Constant) and isinstance(end.value, int) for end in every])


def _is_still(item: ast.expr) -> bool:
    """Whether an expression is the same wherever it is evaluated among the others of a statement."""
    if isinstance(item, ast.UnaryOp):
        return _is_still(item.operand)
    known = isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name) and item.value.id in MODULES
    return known or isinstance(item, (ast.Constant, ast.Name))


def _of(append: Any) -> Any:
    return append.value.func.value.id


def _depth(node: ast.AST, name: str) -> int:
    """How far from the end of the list it reads an item; 0 for anything else."""
    known = isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == name and isinstance(node.ctx, ast.Load)
    return (from_the_end(node.slice) or 0) if known else 0  # type: ignore[attr-defined]


def _others(node: ast.AST, name: str) -> bool:
    """Whether a statement does anything with a list but read its last items and its length, or may do so later."""
    lazy = any([isinstance(part, ast.GeneratorExp) for part in walk(node)])
    return _named(node, name) > (0 if lazy else sum([bool(_depth(part, name)) or is_length(part, name) for part in walk(node)]))


def _is_known(loop: ast.stmt, name: str, function: ast.FunctionDef, within: int) -> bool:
    """Whether a loop does with a list what is known, ``within`` it so often, and nothing has given the list away before."""
    parts = [*own_parts(function)]  # in the order of the text
    lazy = {id(part) for one in parts if isinstance(one, ast.GeneratorExp) for part in walk(one)}  # may be read later
    if _named(loop, name) != within:
        return False
    known: list[Any] = [part.value for part in parts if isinstance(part, ast.Subscript) and _depth(part, name)]
    known += [part.args[0] for part in parts if isinstance(part, ast.Call) and is_length(part, name)]
    known += [part.func.value for part in parts if isinstance(part, ast.Call) and is_append(part)]  # type: ignore[attr-defined]
    fine, inside = {*map(id, known)} - lazy, {id(part) for part in own_parts(loop)}
    end = max([i for i, part in enumerate(parts) if id(part) in inside])
    loads = [part for part in parts[:end] if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id == name]
    return all([id(part) in fine for part in loads])


def _named(node: ast.AST, name: str) -> int:
    return sum([isinstance(part, ast.Name) and part.id == name for part in walk(node)])


class _Reader(ast.NodeTransformer):
    """Reads the last items of a list from locals, and its length, which its appends keep."""

    def __init__(self, name: str, lasts: Sequence[str], count: str, sure: int, new: str) -> None:
        self.name, self.lasts, self.count, self.new = name, lasts, count, new
        self.sure = sure  # items that are there for certain

    def each(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The same, in these statements; behind those that append to the list, there is an item more."""
        made: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            made += new if isinstance(new, list) else [new]
            self.sure += isinstance(new, list)
        return made

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        depth = _depth(node, self.name)
        if not 0 < depth <= len(self.lasts):
            return self.generic_visit(node)
        last = placed(ast.Name(self.lasts[depth - 1], ast.Load()), node)
        if depth <= self.sure:
            return last
        there = ast.Compare(ast.Name(self.count, ast.Load()), [ast.GtE()], [ast.Constant(depth)])
        return located(placed(ast.IfExp(there, last, ast.Call(ast.Name(SHORT, ast.Load()), [], [])), node))

    def visit_Call(self, node: ast.Call) -> Any:
        if self.count and is_length(node, self.name):
            return placed(ast.Name(self.count, ast.Load()), node)
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        deep = any([_depth(part, self.name) > 1 for part in walk(node)])
        self.generic_visit(node)
        if not is_append(node.value) or _of(node) != self.name:
            return node
        call: Any = node.value
        made: list[ast.stmt] = []
        if self.lasts:
            item = call.args[0]
            if deep:  # which reads what is no more there when the others have moved
                made.append(assigned(self.new, item, node))
                item = ast.Name(self.new, ast.Load())
            moved = [*zip(self.lasts[:0:-1], self.lasts[-2::-1], strict=True)]
            made += [assigned(last, ast.Name(before, ast.Load()), node) for last, before in moved]
            made.append(assigned(self.lasts[0], item, node))
            call.args = [placed(ast.Name(self.lasts[0], ast.Load()), call)]
        made.append(node)
        if self.count:
            made.append(located(placed(ast.AugAssign(ast.Name(self.count, ast.Store()), ast.Add(), ast.Constant(1)), node)))
        return made
