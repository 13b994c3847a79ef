"""Lists from which loops take items again run as arrays with two ends: stacks, queues, and lists that loops filter or empty.

``q.append(v)`` is ``q[q_end] = v``, ``q_end = q_end + 1``; ``v = q.pop()`` is ``q_end = q_end - 1``, ``v = q[q_end]``, and
``q.popleft()`` moves ``q_first``; ``if q:`` asks whether one is before the other. How long the list is hangs on what the loop
decided, and so is a number that goes round, as any other; the items stay in an array of some ``room``. A list of tuples of one
length is as many arrays. So is a list that objects have as an attribute, in all functions that name it: ``self.q_end``.

That is done where the text shows all that happens to a list, and where a loop that decides was seen to take items from it, or
to begin it anew: see ``symgrad.loops.stacks``. Where the text does not show that there are items, the function asks.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import CodeType, MappingProxyType
from typing import Any, NamedTuple

from symgrad.source.constants import bound_anywhere
from symgrad.source.lists import called
from symgrad.source.syntax import (
    COMPREHENSIONS,
    LOCAL_READERS,
    MODULES,
    SCOPES,
    FunctionNode,
    assigned,
    copied,
    declared,
    fresh,
    int_of,
    is_append,
    is_length,
    located,
    mentioned,
    names_stored,
    names_within,
    own_parts,
    paired,
    parameters,
    parts_of,
    placed,
    walk,
)

SHRINKS = "__symgrad_shrinks__"  # what learns that a loop takes items from lists
ROOM = "__symgrad_room__"  # what makes an array with some room
MADE = "__symgrad_made__"  # what learns of what a list is made by
PUT = "__symgrad_put__"  # what is put there
TAKEN = "__symgrad_taken_out__"  # what makes Python's ints of what was there
FULL = "__symgrad_full__"  # what is called where there is no room for another item
_LOOPS = (ast.For, ast.While)
_INNER = (*SCOPES, *COMPREHENSIONS, ast.NamedExpr)
_OTHERS = (ast.Yield, ast.YieldFrom, ast.Await, ast.Try, ast.TryStar, ast.Match, ast.With, ast.AsyncFor, ast.AsyncWith)
_BUILTINS = frozenset(["len", "list", "sum", "min", "max", "range", "enumerate", "reversed", "zip", "IndexError", "ValueError"])
_METHODS = frozenset(["append", "pop", "popleft", "clear", "copy"])
_PURE = _BUILTINS | {ROOM, MADE, PUT, TAKEN, FULL, "abs", "float", "int"}
_TURNED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_OPPOSITE = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}


class Stack(NamedTuple):
    """A list that has so much ``room`` in arrays, one for each item of a tuple, if it is one of such; without any, it stays a
    list. The name of an attribute has a dot before it. ``whole``: the numbers of columns with nothing but ints in them."""

    name: str
    room: int
    columns: int = 0
    whole: frozenset[int] = frozenset()


def may_shrink(code: CodeType, stacks: Collection[Stack]) -> bool:
    """Whether a function that does nothing again may name such lists, or take items from others."""
    return bool(stacks) or not {"pop", "popleft"}.isdisjoint(code.co_names)


def with_stacks(function: FunctionNode, stacks: Collection[Stack], around: Collection[str]) -> FunctionNode:
    """The function, changed in place: these lists have two ends; where loops take items from others that may have, the function
    tells. ``around``: the names that there are outside of the function."""
    if not isinstance(function, ast.FunctionDef) or any([isinstance(part, _OTHERS) for part in walk(function)]):
        return function
    if not _BUILTINS.isdisjoint({*around, *bound_anywhere(function)}) or not LOCAL_READERS.isdisjoint(mentioned(function)):
        return function
    known = {one.name: one for one in stacks}
    owned = _with_names(function, {name for name, one in known.items() if one.room and name.startswith(".")})
    known |= {name: known[f".{name.rpartition('.')[2]}"]._replace(name=name) for name in owned}
    names = (_taken_from(function) | owned) - parameters(function) - declared(function) - names_within(function)
    maker, body = _made(function, names, known)
    groups = maker.groups()
    chosen = {name for group in groups if all([name in known and known[name].room for name in group]) for name in group}
    others = sorted({name for group in groups if known.keys().isdisjoint(group) for name in group})
    if chosen:
        function.body = body if chosen == maker.names else _made(function, chosen, known)[1]
    if others:
        widths = {name: len(maker.columns[name]) if name in maker.pairs else 0 for name in others}
        told = [ast.Tuple([ast.Constant(name), ast.Constant(width)], ast.Load()) for name, width in widths.items()]
        _tell(function.body, others, told, False)
    for name in sorted(_attributes_taken(function) - {name[1:] for name in known if name.startswith(".")}):
        _tell_of(function.body, name)
    return _with_attributes(function) if owned else function


def _with_names(function: ast.FunctionDef, attributes: Collection[str]) -> set[str]:
    """Have names, with dots in them, in the place of these attributes: ``self.q``. Which names that are."""
    found = set()
    stored = {name for loop in own_parts(function) if isinstance(loop, _LOOPS) for name in names_stored(loop)}
    for node in [*walk(function)] if attributes else ():
        for field, value in ast.iter_fields(node):
            every = value if isinstance(value, list) else [value]
            for i, part in enumerate(every):
                chain = _chain(part) if isinstance(part, ast.Attribute) and f".{part.attr}" in attributes else ""
                if chain and chain.partition(".")[0] not in stored:
                    found.add(chain)
                    new = placed(ast.Name(chain, part.ctx), part)
                    if isinstance(value, list):
                        value[i] = new
                    else:
                        setattr(node, field, new)
    return found


def _chain(node: ast.AST) -> str:
    """``a.b.c`` as a text; an empty one if it is anything else."""
    if isinstance(node, ast.Attribute):
        owner = _chain(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return node.id if isinstance(node, ast.Name) else ""


def _with_attributes(node: Any) -> Any:
    """Have the attributes again in the place of names with dots in them."""
    if isinstance(node, ast.Name) and "." in node.id:
        first, *others = node.id.split(".")
        made: ast.expr = placed(ast.Name(first, ast.Load()), node)
        for i, attribute in enumerate(others, 1):
            made = placed(ast.Attribute(made, attribute, node.ctx if i == len(others) else ast.Load()), node)
        return made
    for field, value in ast.iter_fields(node):
        if isinstance(value, list):
            value[:] = [_with_attributes(part) if isinstance(part, ast.AST) else part for part in value]
        elif isinstance(value, ast.AST):
            setattr(node, field, _with_attributes(value))
    return node


def _attributes_taken(function: ast.FunctionDef) -> set[str]:
    """The names of attributes from which a function takes items, or which it filters."""
    return {name for part in own_parts(function) if isinstance(part, ast.stmt) for name in _taken_of(part)}


def _taken_of(node: ast.AST) -> dict[str, ast.expr]:
    """The attributes from which a statement takes items, by their names: what is no statement in it does so."""
    found: dict[str, ast.expr] = {}
    target: Any = node.targets[0] if isinstance(node, ast.Assign) and isinstance(node.value, ast.ListComp) else None
    if isinstance(target, ast.Attribute) and _chain(_gone_through(node.value)) == _chain(target) != "":  # type: ignore[attr-defined]
        found[target.attr] = _gone_through(node.value)  # type: ignore[attr-defined]
    for part in own_parts(node, (*SCOPES, ast.stmt)):
        if _taken(part, ast.Attribute) and _chain(part.func.value):  # type: ignore[attr-defined]
            found[part.func.value.attr] = part.func.value  # type: ignore[attr-defined]
    return found


def _tell_of(block: list[ast.stmt], name: str) -> None:
    """Let statements that take items from an attribute come behind others that tell of it."""
    for statement in [*block]:
        for inner in (getattr(statement, "body", None), getattr(statement, "orelse", None)):
            if isinstance(inner, list) and not isinstance(statement, SCOPES):
                _tell_of(inner, name)
        owner = _taken_of(statement).get(name)
        if owner is not None:
            told = ast.Tuple([ast.Constant(f".{name}"), copied(owner)], ast.Load())
            block.insert(block.index(statement), _told([told], statement))


def _told(lists: Sequence[ast.expr], like: ast.stmt) -> ast.stmt:
    return located(placed(ast.Expr(ast.Call(ast.Name(SHRINKS, ast.Load()), [copied(one) for one in lists], [])), like))  # type: ignore[no-any-return]


def _made(function: ast.FunctionDef, names: set[str], known: Mapping[str, Stack]) -> tuple[_Maker, list[ast.stmt]]:
    """The statements in which those of the lists that may have two ends have them."""
    while True:
        maker = _Maker(function, names, known)
        try:
            return maker, maker.whole(copied(function).body)
        except _Refused as end:
            names = names - end.names


def _taken_from(function: ast.FunctionDef) -> set[str]:
    """The names of lists from which loops take items, or that they begin anew when they have read them; and of those that
    comprehensions make of these there."""
    found = set()
    made: list[tuple[str, str]] = []
    for loop in own_parts(function):
        if isinstance(loop, _LOOPS):
            read = set[str]()
            for part in (inner for one in loop.body for inner in _in_order(one)):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                    read.add(part.id)
                elif _taken(part) or isinstance(part, ast.Delete):
                    found |= {part.id for part in walk(part) if isinstance(part, ast.Name)}
                elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name) and _begins(part.value):
                    name, source = part.targets[0].id, _run_over(part.value)
                    found |= {name} & read
                    made += [(name, source)] if source else []
    for _ in made:
        found |= {name for name, source in made if source in found}
    return found & {name for part in own_parts(function) for name in _begun(part)}


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a statement, but for functions in it; what an assignment reads comes before it."""
    for part in reversed(parts_of(node)) if isinstance(node, ast.Assign) else parts_of(node):
        if not isinstance(part, SCOPES):
            yield from _in_order(part)
    yield node


def _begun(node: ast.AST) -> list[str]:
    """The names of the lists that a statement begins."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return []
    pairs = paired(node.targets[0], node.value)
    return [target.id for target, value in pairs if isinstance(target, ast.Name) and _begins(value)]


def _begins(value: ast.expr) -> bool:
    """Whether it is a new list, or a new ``deque`` of any length."""
    if isinstance(value, ast.Call) and _called(value) in ("list", "deque") and not value.keywords:
        return not value.args or (len(value.args) == 1 and isinstance(value.args[0], ast.List) and _begins(value.args[0]))
    if isinstance(value, ast.List):
        return not any([isinstance(item, ast.Starred) for item in value.elts])
    return isinstance(value, ast.ListComp) and bool(_run_over(value))


def _items(value: Any) -> list[ast.expr]:
    """The items of a list that is begun."""
    return value.elts if isinstance(value, ast.List) else _items(value.args[0]) if value.args else []


def _called(node: ast.Call) -> str:
    """The name of what is called, ``deque`` of ``collections.deque``."""
    func = node.func
    if isinstance(func, ast.Attribute) and getattr(func.value, "id", "") == "collections":
        return func.attr
    return getattr(func, "id", "")


def _gone_through(node: Any) -> Any:
    """What a comprehension runs over, if that is all that it does; anything else is itself."""
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return node
    part = node.generators[0]
    inner = [one for within in (node.elt, part.target, *part.ifs) for one in walk(within)]
    simple = len(node.generators) == 1 and not part.is_async
    return part.iter if simple and not any([isinstance(one, _INNER) for one in inner]) else None


def _run_over(value: ast.expr) -> str:
    """The name of the list that a comprehension filters."""
    return getattr(_gone_through(value), "id", "") if isinstance(value, ast.ListComp) else ""


def _taken(node: ast.AST, of: type[ast.expr] = ast.Name) -> tuple[str, int] | None:
    """The name of the list from which it takes an item, and where: 0, or -1."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return None
    owner, how = node.func.value, node.func.attr
    place = (0 if how == "popleft" else -1) if not node.args else int_of(node.args[0]) if len(node.args) == 1 else None
    fine = isinstance(owner, of) and how in ("pop", "popleft") and place in (0, -1) and (how == "pop" or not node.args)
    return (getattr(owner, "id", ""), place) if fine and place is not None else None


def _tell(block: list[ast.stmt], names: Collection[str], told: Sequence[ast.expr], in_loop: bool) -> None:
    """Let statements in loops come behind others which tell that they take items from lists of these names."""
    for statement in [*block]:
        for inner in (getattr(statement, "body", None), getattr(statement, "orelse", None)):
            if isinstance(inner, list) and not isinstance(statement, SCOPES):
                _tell(inner, names, told, in_loop or isinstance(statement, _LOOPS))
        first = statement.test if isinstance(statement, ast.If) else statement
        if in_loop and not isinstance(statement, _LOOPS) and not _shortened(first).isdisjoint(names):
            block.insert(block.index(statement), _told(told, statement))


def _shortened(node: ast.AST) -> set[str]:
    """The names of the lists from which a statement takes items, or which it begins."""
    found = {one[0] for one in map(_taken, walk(node)) if one}
    if isinstance(node, ast.Delete):
        found |= {part.id for part in walk(node) if isinstance(part, ast.Name)}
    return found.union(_begun(node))


class _Source(NamedTuple):
    """What a loop runs over: lists, each from an item on; one after the other where they are ``zipped``, with a number where
    they are ``numbered``."""

    lists: tuple[tuple[str, int], ...]
    zipped: bool = False
    numbered: bool = False
    backwards: bool = False


def _source_of(node: Any, names: Collection[str]) -> _Source | None:
    """The lists of these names over which a loop runs, if it runs over nothing else."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        begin, name = node.slice.lower, getattr(node.value, "id", "")
        start = int_of(begin) if begin is not None else 0
        whole = node.slice.upper is None and node.slice.step is None and start is not None and start >= 0
        return _Source(((name, start or 0),)) if whole and name in names else None
    if isinstance(node, ast.Name):
        return _Source(((node.id, 0),)) if node.id in names else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    how, parts = node.func.id, [_source_of(arg, names) for arg in node.args]
    if node.keywords or not parts or any([part is None for part in parts]):
        return None
    one: Any = parts[0]
    if how == "zip" and all([part is not None and part._replace(lists=()) == _Source(()) for part in parts]):
        return _Source(tuple([part.lists[0] for part in parts if part is not None]), zipped=True)
    if how == "enumerate" and len(parts) == 1 and not one.numbered:
        return one._replace(numbered=True)  # type: ignore[no-any-return]
    return _Source(one.lists, backwards=True) if how == "reversed" and len(parts) == 1 and one == _Source(one.lists) else None


class _Refused(Exception):
    """Something happens to lists of these names that no two ends tell of."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.names = {*names}


class _Maker:
    """Makes the statements of a ``function`` in which the lists of these ``names`` have two ends."""

    def __init__(self, function: ast.FunctionDef, names: Collection[str], known: Mapping[str, Stack]) -> None:
        self.names, self.known = {*names}, known
        self.free = mentioned(function)
        self.pairs: set[str] = set()  # the lists of tuples
        self.columns = {name: self._columns(function, name) for name in sorted(names)}
        self.ends = {name: self._own(f"{name}_end") for name in sorted(names)}
        lost = {one[0] for part in walk(function) for one in [_taken(part)] if one and one[1] == 0}
        lost |= {getattr(part.value, "id", "") for part in walk(function) if isinstance(part, ast.Subscript) and _is_gone(part)}
        lost |= {name for name in names if "." in name}  # other functions may take some there
        self.firsts = {name: self._own(f"{name}_first") for name in sorted(lost.intersection(names))}
        attributes = Counter([name.rpartition(".")[2] for name in names if "." in name])
        self.twice = {name for name in names if attributes[name.rpartition(".")[2]] > 1}  # which may be one and the same
        self.least: dict[str, int] = {}  # how long the lists are at least, as far as the text tells
        self.links: list[set[str]] = []  # names of lists that must both have two ends, or none
        self.before: list[ast.stmt] | None = None  # what comes before a statement; None where nothing can
        self.read: set[str] = set()  # the lists that a statement has read so far
        self.called = False  # whether it has called a function that may change those of objects
        self.begun = {name for name in names if "." in name}

    def _own(self, name: str) -> str:
        """The name of an end, or a column, which other functions know if it is an attribute."""
        return name if "." in name else fresh(name, self.free)

    def _fresh(self, name: str) -> str:
        """The name of a local."""
        return fresh(name.replace(".", "_"), self.free)

    def groups(self) -> list[set[str]]:
        """The names, together with those that have two ends if they have."""
        groups = {name: {name} for name in self.names}
        for link in self.links:
            every = set[str]().union(*[groups[name] for name in link])
            groups.update(dict.fromkeys(every, every))
        return [*{id(group): group for group in groups.values()}.values()]

    def _columns(self, function: ast.FunctionDef, name: str) -> list[str]:
        """The names of the arrays that stand for a list: one, or one of each of the items of its tuples."""
        if name in self.known and "." in name:
            width = self.known[name].columns
            self.pairs |= {name} if width else set()
            return [f"{name}_{i}" for i in range(width or 1)]
        put: list[ast.expr] = []
        for part in own_parts(function):
            call: Any = part.value if isinstance(part, ast.Expr) else None
            if is_append(call) and call.func.value.id == name:
                put.append(call.args[0])
            elif isinstance(part, ast.AugAssign) and getattr(part.target, "id", "") == name:
                put += part.value.elts if isinstance(part.value, ast.List) else []
            elif isinstance(part, ast.Assign) and name in _begun(part):
                for target, value in paired(part.targets[0], part.value):
                    if getattr(target, "id", "") == name:
                        put += [value.elt] if isinstance(value, ast.ListComp) else _items(value)
        widths = {len(one.elts) if isinstance(one, ast.Tuple) else 0 for one in put}
        width = widths.pop() if len(widths) == 1 else 0
        self.pairs |= {name} if width else set()
        return [fresh(f"{name}_{i}", self.free) for i in range(width)] or [name]

    # ---- statements ----

    def whole(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements of the function."""
        result: list[ast.stmt] = []
        for i, statement in enumerate(body):
            named = mentioned(statement) & self.names - self.begun
            for name in sorted(named):
                within = isinstance(statement, _LOOPS) and not any([name in mentioned(later) for later in body[i + 1 :]])
                if not within and name not in _begun(statement):  # it may have been begun, or not
                    raise _Refused(name)
                if within and not self._begins_first(statement, name):
                    raise _Refused(name)
                result += self._room(name, statement)
                self.begun.add(name)
            result += self._statement(statement)
        return result

    def _room(self, name: str, like: ast.stmt) -> list[ast.stmt]:
        """The arrays of a list are made."""
        owner = [_name(name.rpartition(".")[0])] if "." in name else []
        known_as = ast.Constant(self._known_as(name))
        made = [called(ROOM, known_as, ast.Constant(i), *owner) for i in range(len(self.columns[name]))]
        return [assigned(column, value, like) for column, value in zip(self.columns[name], made, strict=True)]

    def _known_as(self, name: str) -> str:
        """The name by which others know a list."""
        return f".{name.rpartition('.')[2]}" if "." in name else name

    def _begins_first(self, loop: ast.stmt, name: str) -> bool:
        """Whether each iteration begins a list before anything else happens to it."""
        for statement in getattr(loop, "body", ()):
            if name in mentioned(statement):
                return name in _begun(statement) or (isinstance(statement, _LOOPS) and self._begins_first(statement, name))
        return False

    def _block(self, block: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [new for statement in block for new in self._statement(statement)]

    def _statement(self, node: Any) -> list[ast.stmt]:
        if mentioned(node).isdisjoint(self.names):
            self.least = self._kept(self.least, node)
            return [node]
        self.before, self.read, self.called = [], set(), False
        if isinstance(node, ast.If):
            made = self._if(node)
        elif isinstance(node, ast.While):
            made = self._while(node)
        elif isinstance(node, ast.For):
            made = self._for(node)
        elif isinstance(node, ast.Assign):
            made = self._assign(node)
        elif isinstance(node, ast.AugAssign):
            made = self._augmented(node)
        elif isinstance(node, ast.Delete):
            made = self._deleted(node)
        elif isinstance(node, ast.Expr) and is_append(node.value) and node.value.func.value.id in self.names:  # type: ignore[attr-defined]
            made = self._append(node.value.func.value.id, node.value.args[0], node)  # type: ignore[attr-defined]
        elif isinstance(node, ast.Expr) and (taken := _taken(node.value)) and taken[0] in self.names:
            self._move(*taken, node)
            made = self._comes_before()
        elif isinstance(node, ast.Expr) and _is_emptied(node.value) in self.names:
            made = self._emptied(_is_emptied(node.value), node)
        elif isinstance(node, (ast.Expr, ast.Return, ast.Assert, ast.Raise)):
            new = self._parts(node)
            made = [*self._comes_before(), new]
        else:
            raise _Refused(*mentioned(node) & self.names)
        self.before = []
        if not isinstance(node, (ast.If, *_LOOPS)):
            self.least = self._kept(self.least, node)
        return made

    def _comes_before(self) -> list[ast.stmt]:
        made, self.before = self.before or [], []
        return made

    def _if(self, node: ast.If) -> list[ast.stmt]:
        told = self._told(node.test)
        node.test = self._truth(node.test)
        first, least, ends = self._comes_before(), self.least, []
        for block, more in zip((node.body, node.orelse), told, strict=True):
            self.least = _both(least, more)
            block[:] = self._block(block)
            ends += [] if block and isinstance(block[-1], (ast.Return, ast.Raise, ast.Break, ast.Continue)) else [self.least]
        self.least = _either(*ends) if ends else {}
        return [*first, node]

    def _while(self, node: ast.While) -> list[ast.stmt]:
        told = self._told(node.test)
        self._shorter_in(node)
        least = {**self.least}
        node.test = self._truth(node.test)
        first, tested = self._comes_before(), {**self.least}
        self.least = _both(tested, told[0])
        node.body = self._block(node.body)
        self.least = least if any([isinstance(part, ast.Break) for part in own_parts(node)]) else _both(tested, told[1])
        node.orelse = self._block(node.orelse)
        if first and node.orelse:
            raise _Refused(*mentioned(node) & self.names)
        if first:
            node.body[:0] = [*first, _if(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], node)]
            node.test = placed(ast.Constant(True), node.test)
        return [node]

    def _for(self, node: ast.For) -> list[ast.stmt]:
        source = _source_of(node.iter, self.names)
        within = {name for name, _ in source.lists} if source else set()
        changed = within.intersection(_changed(node)) | self.names.intersection(names_stored(node.target))
        changed |= {name for name in within if "." in name and self._calls(*node.body)} | (within & self.twice)
        if changed:
            raise _Refused(*changed)
        begin: list[ast.stmt] = []
        if source:
            place, node.iter = self._range(source, node.iter)
            begin = self._given(node.target, source, _name(place), node)
            node.target = placed(ast.Name(place, ast.Store()), node.target)
        else:
            node.iter = self._value(node.iter)
        first = self._comes_before()
        self._shorter_in(node)
        least = {**self.least}
        node.body = [*begin, *self._block(node.body)]
        self.least = least
        node.orelse = self._block(node.orelse)
        return [*first, node]

    def _range(self, source: _Source, like: Any) -> tuple[str, ast.expr]:
        """A name for the places of the items of lists, and what these are."""
        [name, start], *others = source.lists
        place = self._fresh(f"{name}_place")
        if source.zipped:
            ends = [_plus(self._less(_name(self.ends[one]), one), -start) for one, start in source.lists]
            bounds = [located(placed(ast.Call(_name("min"), ends, []), like))] if others else ends
        else:
            bounds = [_plus(self._first(name), start), _name(self.ends[name])]
        if source.backwards:
            bounds = [_plus(end, -1) for end in reversed(bounds)] + [ast.Constant(-1)]
        return place, located(placed(ast.Call(_name("range"), bounds, []), like))

    def _given(self, target: Any, source: _Source, place: ast.expr, like: Any) -> list[ast.stmt]:
        """The items of lists at a place are assigned."""
        made: list[ast.stmt] = []
        [name, start], *_ = source.lists
        if source.numbered:
            if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
                raise _Refused(name)
            number = place if source.zipped else _plus(self._less(place, name), -start)
            made.append(_assign(target.elts[0], number, like))
            target = target.elts[1]
        if not source.zipped:
            return [*made, *self._put(target, name, place, like)]
        if not isinstance(target, ast.Tuple) or len(target.elts) != len(source.lists):
            raise _Refused(name)
        for part, (one, begin) in zip(target.elts, source.lists, strict=True):
            at = _plus(place, begin)
            at = ast.BinOp(self._first(one), ast.Add(), at) if one in self.firsts else at
            made += self._put(part, one, at, like)
        return made

    def _shorter_in(self, loop: ast.stmt) -> None:
        """Nothing is known of the lists that iterations of a loop change."""
        changed = {*_changed(loop)}
        self.least = self._kept({name: least for name, least in self.least.items() if name not in changed}, loop)

    def _assign(self, node: ast.Assign) -> list[ast.stmt]:
        target, value = node.targets[0], node.value
        if len(node.targets) > 1:
            raise _Refused(*mentioned(node) & self.names)
        pairs = paired(target, value)
        if len(pairs) > 1 and not self.names.isdisjoint(names_stored(target)):
            others = {part.id for _, one in pairs for part in walk(one) if isinstance(part, ast.Name)}
            if not others.isdisjoint(names_stored(target)):
                raise _Refused(*self.names.intersection(names_stored(target)))
            return [new for to, one in pairs for new in self._statement(_assign(to, one, node))]
        if isinstance(target, ast.Name) and target.id in self.names:
            return self._anew(target.id, value, node)
        if isinstance(target, ast.Subscript) and getattr(target.value, "id", "") in self.names:
            name: str = target.value.id  # type: ignore[attr-defined]
            if name in self.pairs:
                raise _Refused(name)
            node.value = called(PUT, ast.Constant(self._known_as(name)), ast.Constant(0), self._value(value))
            node.targets = [self._item_of(target)]
            located(node)
            return [*self._comes_before(), node]
        if isinstance(target, ast.Name) and _run_over(value) in self.names:
            return self._listed(target.id, value, node)
        taken = _taken(value)
        if taken and taken[0] in self.names and self.names.isdisjoint(mentioned(target)):
            place = self._move(*taken, node)
            return [*self._comes_before(), *self._put(target, taken[0], place, node)]
        node.value = self._value(value)
        node.targets = [self._value(target)]
        return [*self._comes_before(), node]

    def _put(self, target: Any, name: str, place: ast.expr, like: Any) -> list[ast.stmt]:
        """An item of a list is assigned, which may be a tuple."""
        items = self._items(name, place)
        parts = target.elts if isinstance(target, ast.Tuple) and name in self.pairs else []
        if len(parts) == len(items) and all([isinstance(part, ast.Name) for part in parts]):
            return [_assign(part, item, like) for part, item in zip(parts, items, strict=True)]
        return [_assign(target, self._one_of(name, items, like), like)]

    def _listed(self, name: str, value: Any, node: ast.Assign) -> list[ast.stmt]:
        """A list, which stays one, of what a comprehension makes of the items of another one."""
        source, part = _Source(((_run_over(value), 0),)), value.generators[0]
        self._stays(source, [value.elt, *part.ifs])
        place, places = self._range(source, node)
        target, elt, *ifs = self._renamed([part.target, value.elt, *part.ifs])
        append: ast.expr = ast.Call(ast.Attribute(_name(name), "append", ast.Load()), [elt], [])
        put: list[ast.stmt] = [located(placed(ast.Expr(append), node))]
        for one in reversed(ifs):
            put = [_if(one, put, node)]
        loop = ast.For(ast.Name(place, ast.Store()), places, [*self._given(target, source, _name(place), node), *put], [], None)
        return [assigned(name, ast.List([], ast.Load()), node), located(placed(loop, node))]

    def _stays(self, source: _Source, parts: Sequence[ast.expr]) -> None:
        """Refuse lists that may change while a loop runs over them, or where what it computes names some."""
        names = {name for name, _ in source.lists}
        others = any([not self.names.isdisjoint(mentioned(part)) for part in parts])
        if others or any(["." in name and self._calls(*parts) for name in names]):
            raise _Refused(*names)

    def _anew(self, name: str, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        """A list is begun, or filtered."""
        source = _run_over(value)
        if source:
            return self._filtered(name, source, value, node)
        if not _begins(value):
            raise _Refused(name)
        items = _items(value)
        if any([name in mentioned(item) for item in items]):
            raise _Refused(name)
        made = [*(self._room(name, node) if "." in name else []), *self._emptied(name, node)]
        if isinstance(value, ast.Call):
            maker = called(MADE, ast.Constant(self._known_as(name)), value.func)
            made.insert(0, located(placed(ast.Expr(maker), node)))
        for item in items:
            made += self._append(name, item, node)
        return made

    def _emptied(self, name: str, like: Any) -> list[ast.stmt]:
        ends = [self.ends[name], *([self.firsts[name]] if name in self.firsts else [])]
        self.least[name] = 0
        return [assigned(end, ast.Constant(0), like) for end in ends]

    def _filtered(self, name: str, source: str, value: Any, node: ast.stmt) -> list[ast.stmt]:
        """A list of what a comprehension makes of the items of a list, which may be the same one."""
        part = value.generators[0]
        if source not in self.names or name in mentioned(value.elt) or any([name in mentioned(one) for one in part.ifs]):
            raise _Refused(name)
        self.links.append({name, source})
        if "." in source and (self._calls(value.elt, *part.ifs) or (name != source and {name, source} <= self.twice)):
            raise _Refused(name, source)
        whole = _Source(((source, 0),))
        place, places = self._range(whole, node)
        target, elt, *ifs = self._renamed([part.target, value.elt, *part.ifs])
        self.before, kept = None, self._fresh(f"{name}_kept")
        test = [self._truth(one) for one in ifs]
        put: list[ast.stmt] = []
        first: list[ast.stmt] = []
        last: list[ast.stmt] = []
        if name == source:
            columns = self.columns[name]
            if name in self.pairs and not isinstance(elt, ast.Tuple):
                raise _Refused(name)
            parts = elt.elts if name in self.pairs else [elt]
            for i, (column, one) in enumerate(zip(columns, parts, strict=True)):
                value = called(PUT, ast.Constant(self._known_as(name)), ast.Constant(i), self._value(one))
                put.append(_assign(ast.Subscript(_name(column), _name(kept), ast.Store()), value, node))
            put.append(assigned(kept, _plus(_name(kept), 1), node))
            first, last = [assigned(kept, self._first(name), node)], [assigned(self.ends[name], _name(kept), node)]
        else:
            first = [*(self._room(name, node) if "." in name else []), *self._emptied(name, node)]
            self.before = []
            put = self._append(name, elt, node)
        for one in reversed(test):
            put = [located(placed(ast.If(one, put, []), node))]
        loop = ast.For(ast.Name(place, ast.Store()), places, [*self._given(target, whole, _name(place), node), *put], [], None)
        self.least[name] = 0
        return [*first, located(placed(loop, node)), *last]

    def _renamed(self, parts: Sequence[ast.expr]) -> list[Any]:
        """The parts of a comprehension, whose variables, in the first one, have names of their own."""
        parts = [copied(part) for part in parts]
        names = {name: fresh(name, self.free) for name in names_stored(parts[0])}
        for part in [inner for one in parts for inner in walk(one)]:
            if isinstance(part, ast.Name):
                part.id = names.get(part.id, part.id)
        return [*parts]

    def _append(self, name: str, value: ast.expr, like: Any) -> list[ast.stmt]:
        columns = self.columns[name]
        first: list[ast.stmt] = []
        if name in self.pairs and not isinstance(value, ast.Tuple):
            names = [self._fresh(f"{column}_new") for column in columns]
            first = [_assign(ast.Tuple([ast.Name(new, ast.Store()) for new in names], ast.Store()), self._value(value), like)]
            value = ast.Tuple([_name(new) for new in names], ast.Load())
        parts = value.elts if name in self.pairs and isinstance(value, ast.Tuple) else [value]
        if len(parts) != len(columns):
            raise _Refused(name)
        parts = [self._value(part) for part in parts]
        made = [*self._comes_before(), *first]
        for i, part in enumerate(parts if len(parts) > 1 else []):  # all are computed before any is put there
            if not isinstance(part, (ast.Name, ast.Constant)):
                made.append(assigned(new := self._fresh(f"{columns[i]}_new"), part, like))
                parts[i] = _name(new)
        room, known_as = self.known[name].room if name in self.known else 1, self._known_as(name)
        full = ast.Expr(called(FULL, ast.Constant(known_as)))
        made.append(_if(_compared(_name(self.ends[name]), ast.GtE, ast.Constant(room)), [full], like))
        for i, (column, part) in enumerate(zip(columns, parts, strict=True)):
            value = called(PUT, ast.Constant(known_as), ast.Constant(i), part)
            made.append(_assign(ast.Subscript(_name(column), _name(self.ends[name]), ast.Store()), value, like))
        made.append(assigned(self.ends[name], _plus(_name(self.ends[name]), 1), like))
        self.least[name] = self.least.get(name, 0) + 1
        return made

    def _augmented(self, node: ast.AugAssign) -> list[ast.stmt]:
        target = node.target
        if isinstance(target, ast.Name) and target.id in self.names:
            if not isinstance(node.op, ast.Add) or not isinstance(node.value, ast.List) or len(node.value.elts) != 1:
                raise _Refused(target.id)
            return self._append(target.id, node.value.elts[0], node)
        if isinstance(target, ast.Subscript) and getattr(target.value, "id", "") in self.names:
            name = target.value.id  # type: ignore[attr-defined]
            if name in self.pairs or name in mentioned(node.value):
                raise _Refused(name)
            node.target = self._item_of(target)
        else:
            node.target = self._value(target)
        node.value = self._value(node.value)
        return [*self._comes_before(), node]

    def _deleted(self, node: ast.Delete) -> list[ast.stmt]:
        part: Any = node.targets[0]
        name = getattr(getattr(part, "value", None), "id", "")
        if len(node.targets) > 1 or name not in self.names or int_of(part.slice) not in (0, -1):
            raise _Refused(*mentioned(node) & self.names)
        self._move(name, int_of(part.slice) or 0, node, "list assignment index out of range")
        return self._comes_before()

    # ---- expressions ----

    def _value(self, node: Any) -> Any:
        """An expression, in what comes for a value."""
        if mentioned(node).isdisjoint(self.names):
            self.called |= self._calls(node)
            return node
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in self.names:
            return self._item_of(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, (ast.BoolOp, ast.IfExp)) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            return self._choice(node, False)
        if isinstance(node, ast.Compare):
            node.left, node.comparators[0] = self._value(node.left), self._value(node.comparators[0])
            node.comparators[1:] = [self._at_times(part) for part in node.comparators[1:]]
            return node
        if isinstance(node, (ast.Name, ast.Slice, ast.NamedExpr, *SCOPES)):
            raise _Refused(*mentioned(node) & self.names)
        if isinstance(node, (ast.Dict, *COMPREHENSIONS)):  # in which order parts are computed, the tree does not tell
            before, self.before = self.before, None
            self._parts(node)
            self.before = before
            return node
        new = self._parts(node)
        if isinstance(new, ast.Subscript) and isinstance(new.value, ast.Tuple) and isinstance(new.ctx, ast.Load):
            at = int_of(new.slice)
            if at is not None and -len(new.value.elts) <= at < len(new.value.elts):
                return new.value.elts[at]
        return new

    def _parts(self, node: Any) -> Any:
        """The same, its parts changed."""
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                value[:] = [self._value(part) if isinstance(part, ast.AST) else part for part in value]
            elif isinstance(value, ast.AST):
                setattr(node, field, self._value(value))
        return node

    def _calls(self, *nodes: ast.AST) -> bool:
        """Whether something calls functions that may change the lists of objects, or of which the order matters."""
        return any([self._is_other(part) for node in nodes for part in walk(node)])

    def _is_other(self, node: ast.AST) -> bool:
        """Whether it calls such a function: none of NumPy's, and no method of these lists."""
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute):
            owner = getattr(node.func.value, "id", "")
            return owner not in MODULES and not (owner in self.names and node.func.attr in _METHODS)
        return getattr(node.func, "id", "") not in _PURE

    def _told(self, test: ast.expr) -> tuple[dict[str, int], dict[str, int]]:
        """How long lists are at least if a test is true, and if it is not."""
        return self._kept(_least(test, True), test), self._kept(_least(test, False), test)

    def _kept(self, least: dict[str, int], node: ast.AST) -> dict[str, int]:
        """What is still known of lists when something was computed, which may call functions that change those of objects."""
        gone = {name for name in least if "." in name} if self._calls(node) else self.twice
        return {name: number for name, number in least.items() if name not in gone}

    def _at_times(self, node: Any, test: bool = False, more: Mapping[str, int] = MappingProxyType({})) -> Any:
        """An expression that is computed only at times, and then if the lists are that long."""
        before, least = self.before, self.least
        self.before, self.least = None, _both(least, more)
        made = self._truth(node) if test else self._value(node)
        self.before, self.least = before, least
        return made

    def _truth(self, node: Any) -> Any:
        """An expression, of which only matters whether it is true."""
        if isinstance(node, ast.Name) and node.id in self.names:
            self.read.add(node.id)
            return located(placed(_compared(_name(self.ends[node.id]), ast.Gt, self._first(node.id)), node))
        chooses = isinstance(node, (ast.BoolOp, ast.IfExp)) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
        return self._choice(node, True) if chooses and not mentioned(node).isdisjoint(self.names) else self._value(node)

    def _choice(self, node: Any, test: bool) -> Any:
        """``a and b``, ``a or b``, ``not a``, ``a if b else c``."""
        if isinstance(node, ast.UnaryOp):
            node.operand = self._truth(node.operand)
        elif isinstance(node, ast.BoolOp):
            told: dict[str, int] = {}
            way = isinstance(node.op, ast.And)
            parts = []
            for i, part in enumerate(node.values):
                more = self._told(part)[not way]
                if i:
                    parts.append(self._at_times(part, test, told))
                else:
                    parts.append(self._truth(part) if test else self._value(part))
                told = _both(self._kept(told, part), more)
            node.values = parts
        else:
            return self._one_or_other(node, test)
        return node

    def _one_or_other(self, node: ast.IfExp, test: bool) -> Any:
        """``a if b else c``: a statement, if something comes before one of them."""
        told, read, least = self._told(node.test), {*self.read}, self.least
        node.test = self._truth(node.test)
        if self.before is None:
            node.body, node.orelse = self._at_times(node.body, test, told[0]), self._at_times(node.orelse, test, told[1])
            return node
        before, asked, blocks, values, ends = self.before, {*self.read}, [], [], []
        self.read = read
        for part, more in zip((node.body, node.orelse), told, strict=True):
            self.before, self.least = [], _both(least, more)
            values.append(self._truth(part) if test else self._value(part))
            blocks.append(self.before)
            ends.append(self.least)
        self.before, self.least, self.read = before, _either(*ends), self.read | asked
        if not any(blocks):
            node.body, node.orelse = values
            return node
        name = self._fresh("one")
        for block, value in zip(blocks, values, strict=True):
            block.append(assigned(name, value, node))
        self.before.append(located(placed(ast.If(node.test, *blocks), node)))
        return placed(_name(name), node)

    def _call(self, node: ast.Call) -> Any:
        taken, name = _taken(node), getattr(node.func, "id", "")
        given = node.args[0] if len(node.args) == 1 and not node.keywords else None
        source = _source_of(_gone_through(given), self.names)
        if taken and taken[0] in self.names:
            place = self._move(*taken, node)
            columns = self.columns[taken[0]]
            names = [self._fresh(f"{column}_item") for column in columns]
            for new, item in zip(names, self._items(taken[0], place), strict=True):
                self._comes(taken[0], assigned(new, item, node))
            return self._one_of(taken[0], [_name(new) for new in names], node)
        if source and is_length(node, one := source.lists[0][0]):
            self.read.add(one)
            return located(placed(self._less(_name(self.ends[one]), one), node))
        if name in ("sum", "min", "max") and source:
            return self._total(name, source, given, node)
        if isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") in MODULES:
            node.args = [self._given_to_numpy(arg) for arg in node.args]
            for word in node.keywords:
                word.value = self._value(word.value)
            return node
        self._parts(node)
        self.called |= self._is_other(node)
        return node

    def _given_to_numpy(self, node: Any) -> Any:
        """What a function of NumPy's is given, which makes an array of its own of a list of numbers."""
        name = getattr(node, "id", "")
        if name not in self.names or name in self.pairs:
            return self._value(node)
        self.read.add(name)
        part = ast.Slice(self._first(name), _name(self.ends[name]), None)
        copy = ast.Attribute(ast.Subscript(_name(self.columns[name][0]), part, ast.Load()), "copy", ast.Load())
        return located(placed(ast.Call(copy, [], []), node))

    def _total(self, how: str, source: _Source, given: Any, like: Any) -> ast.expr:
        """``sum``, ``min`` or ``max`` of a list, or of what is computed of its items, one by one."""
        name = source.lists[0][0]
        self.read |= {one for one, _ in source.lists}
        total = self._fresh(f"{name}_{how}")
        if isinstance(given, ast.GeneratorExp | ast.ListComp):
            part = given.generators[0]
            target, elt, *ifs = self._renamed([part.target, given.elt, *part.ifs])
        else:
            one = self._fresh(f"{name}_one")
            target, elt, ifs = ast.Name(one, ast.Store()), _name(one), []
        simple = how == "sum" or not (ifs or source.zipped)
        if not simple:
            raise _Refused(*[one for one, _ in source.lists])
        self._stays(source, [elt, *ifs])
        place, places = self._range(source, like)
        take = self._given(target, source, _name(place), like)
        if how == "sum":
            zero = 0 if len(self._whole(name)) == len(self.columns[name]) else 0.0
            self._comes(name, assigned(total, ast.Constant(zero), like))
            more: list[ast.stmt] = [assigned(total, ast.BinOp(_name(total), ast.Add(), elt), like)]
        else:
            self._need(name, 1, like, f"{how}() iterable argument is empty", "ValueError")
            first = self._given(copied(target), source, self._first(name), like)
            self._comes(name, *first, assigned(total, copied(elt), like))
            value = self._fresh(f"{name}_value")
            better = _compared(_name(value), ast.Gt if how == "max" else ast.Lt, _name(total))
            more = [assigned(value, elt, like), _if(better, [assigned(total, _name(value), like)], like)]
        for test in reversed(ifs):
            more = [_if(test, more, like)]
        self._comes(name, located(placed(ast.For(ast.Name(place, ast.Store()), places, [*take, *more], [], None), like)))
        return placed(_name(total), like)  # type: ignore[no-any-return]

    def _item_of(self, node: Any) -> Any:
        """An item of a list, which is read or assigned."""
        name, at = node.value.id, int_of(node.slice)
        self.read.add(name)
        if isinstance(node.slice, ast.Slice):
            raise _Refused(name)
        if at is not None:
            self._need(name, at + 1 if at >= 0 else -at, node)
            place = _plus(self._first(name) if at >= 0 else _name(self.ends[name]), at)
        else:
            place = self._looked_up(name, self._value(node.slice), node)
        if not isinstance(node.ctx, ast.Load) and name not in self.pairs:
            return located(placed(ast.Subscript(_name(self.columns[name][0]), place, node.ctx), node))
        return self._one_of(name, self._items(name, place), node)

    def _looked_up(self, name: str, index: ast.expr, like: Any) -> ast.expr:
        """Where an item of any index is."""
        at = self._fresh(f"{name}_at")
        self._comes(name, assigned(at, index, like))
        length = self._less(_name(self.ends[name]), name)
        below = _compared(_name(at), ast.Lt, ast.Constant(0))
        self._comes(name, _if(below, [assigned(at, ast.BinOp(_name(at), ast.Add(), length), like)], like))
        outside = ast.BoolOp(ast.Or(), [copied(below), _compared(_name(at), ast.GtE, copied(length))])
        self._comes(name, _if(outside, [_raised("IndexError", "list index out of range")], like))
        return ast.BinOp(self._first(name), ast.Add(), _name(at)) if name in self.firsts else _name(at)

    def _one_of(self, name: str, items: list[Any], like: Any) -> Any:
        one = ast.Tuple([*items], ast.Load()) if name in self.pairs else items[0]
        return located(placed(one, like))

    def _move(self, name: str, place: int, like: Any, error: str = "pop from empty list") -> ast.expr:
        """An item is taken from a list: where it was."""
        if name in self.read:  # what was read before would be read after
            raise _Refused(name)
        self._need(name, 1, like, error)
        self.least[name] = max(self.least.get(name, 0) - 1, 0)
        if place:
            self._comes(name, assigned(self.ends[name], _plus(_name(self.ends[name]), -1), like))
            return _name(self.ends[name])
        self._comes(name, assigned(self.firsts[name], _plus(_name(self.firsts[name]), 1), like))
        return _plus(_name(self.firsts[name]), -1)

    def _need(self, name: str, least: int, like: Any, error: str = "list index out of range", kind: str = "IndexError") -> None:
        """A list has so many items at least, or an error is raised."""
        if self.least.get(name, 0) < least:
            test = _compared(_name(self.ends[name]), ast.Lt, _plus(self._first(name), least))
            self._comes(name, _if(test, [_raised(kind, error)], like))
            self.least[name] = least

    def _comes(self, name: str, *statements: ast.stmt) -> None:
        """These come before the statement, if something can: what it has called by then may change no list, nor be called
        behind something else."""
        if self.before is None or (self.called and ("." in name or self._calls(*statements))):
            raise _Refused(name)
        self.before += statements

    def _items(self, name: str, place: ast.expr) -> list[ast.expr]:
        """What is at a place of a list, column by column: Python's ints, where there are only such."""
        whole = self._whole(name)
        items = [ast.Subscript(_name(column), copied(place), ast.Load()) for column in self.columns[name]]
        return [called(TAKEN, item) if i in whole else item for i, item in enumerate(items)]

    def _whole(self, name: str) -> frozenset[int]:
        return self.known[name].whole if name in self.known else frozenset()

    def _first(self, name: str) -> ast.expr:
        return _name(self.firsts[name]) if name in self.firsts else ast.Constant(0)

    def _less(self, value: ast.expr, name: str) -> ast.expr:
        """So far from the begin of a list."""
        return ast.BinOp(value, ast.Sub(), self._first(name)) if name in self.firsts else value


def _changed(loop: ast.stmt) -> Iterator[str]:
    """The names of the lists that a loop may change."""
    for part in own_parts(loop):
        taken = _taken(part)
        if taken:
            yield taken[0]
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            yield getattr(part.func.value, "id", "")
        elif isinstance(part, (ast.Assign, ast.AugAssign, ast.Delete)):
            for one in part.targets if isinstance(part, (ast.Assign, ast.Delete)) else [part.target]:
                yield from [inner.id for inner in walk(one) if isinstance(inner, ast.Name)]


def _is_gone(node: ast.Subscript) -> bool:
    """Whether the first item of a list is deleted."""
    return isinstance(node.ctx, ast.Del) and int_of(node.slice) == 0


def _is_emptied(node: ast.expr) -> str:
    """The name of the list that ``name.clear()`` empties."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.args or node.keywords:
        return ""
    return getattr(node.func.value, "id", "") if node.func.attr == "clear" else ""


def _least(test: ast.expr, way: bool) -> dict[str, int]:
    """How long lists are at least, if a test is true, or is not."""
    if isinstance(test, ast.Name):
        return {test.id: 1} if way else {}
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _least(test.operand, not way)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) == way:
        found: dict[str, int] = {}
        for part in test.values:
            found = _both(found, _least(part, way))
        return found
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return {}
    left, right, sign = test.left, test.comparators[0], type(test.ops[0])
    if int_of(left) is not None:
        left, right, sign = right, left, _TURNED.get(sign, sign)
    number = int_of(right)
    name = getattr(left.args[0], "id", "") if isinstance(left, ast.Call) and len(left.args) == 1 else ""
    sign = sign if way else _OPPOSITE.get(sign, sign)
    if number is None or not name or not is_length(left, name):
        return {}
    if sign is ast.NotEq:
        return {name: 1} if number == 0 else {}
    return {name: number + (sign is ast.Gt)} if sign in (ast.Gt, ast.GtE, ast.Eq) else {}


def _both(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """What is known where both hold."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {*one, *other}}


def _either(*ways: Mapping[str, int]) -> dict[str, int]:
    """What is known where one of them holds."""
    return {name: min([way.get(name, 0) for way in ways]) for name in ways[0]}


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _plus(value: ast.expr, more: int) -> ast.expr:
    """A number, and ``more``."""
    if (number := int_of(value)) is not None:
        return ast.Constant(number + more)
    sign: ast.operator = ast.Add() if more > 0 else ast.Sub()
    return ast.BinOp(value, sign, ast.Constant(abs(more))) if more else value


def _compared(left: ast.expr, sign: type[ast.cmpop], right: ast.expr) -> ast.expr:
    return ast.Compare(left, [sign()], [right])


def _assign(target: ast.expr, value: ast.expr, like: Any) -> ast.stmt:
    return located(placed(ast.Assign([target], value), like))  # type: ignore[no-any-return]


def _if(test: ast.expr, body: list[ast.stmt], like: Any) -> ast.stmt:
    return located(placed(ast.If(test, body, []), like))  # type: ignore[no-any-return]


def _raised(kind: str, text: str) -> ast.stmt:
    return ast.Raise(ast.Call(_name(kind), [ast.Constant(text)], []), None)
