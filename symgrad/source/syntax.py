"""Reading and copying syntax trees."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeGuard

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)  # what has names of its own
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
# these look at the frame that calls them, so they cannot be called on its behalf
FRAME_READERS = frozenset({"super", "locals", "globals", "eval", "exec", "vars", "dir", "breakpoint"})
LOCAL_READERS = FRAME_READERS - {"super"}  # these see all locals
MODULES = frozenset(["np", "numpy", "math"])  # names whose functions decide on nothing, and change no argument
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
TRIES = (ast.Try, ast.TryStar, ast.With)  # which may go on where something was left in the middle
LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.GeneratorExp)  # what may read a name when it is called


# of each there is but one, in all trees; other libraries put attributes of theirs on them (``executing``, ``parent``)
SIGNS = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


def copied(node: Any) -> Any:
    """A deep copy of a tree, positions included."""
    if isinstance(node, SIGNS):
        return node
    new = node.__new__(type(node))
    for name, value in vars(node).items():
        if type(value) is list:
            setattr(new, name, [copied(item) if isinstance(item, ast.AST) else item for item in value])
        else:
            setattr(new, name, copied(value) if isinstance(value, ast.AST) else value)
    return new


def parts_of(node: ast.AST) -> list[ast.AST]:
    """The nodes right in a node; not operators, nor whether a name is read or written, which are nodes of their own."""
    return _PARTS[type(node)](node)


def own_parts(node: ast.AST, but: tuple[type[ast.AST], ...] = SCOPES) -> Iterator[ast.AST]:
    """What is in a node, ``but`` for what is of these kinds, functions and classes as a rule, and in them."""
    for part in parts_of(node):
        if not isinstance(part, but):
            yield part
            yield from own_parts(part, but)


def _parts_in(*names: str) -> Callable[[Any], list[ast.AST]]:
    """What finds the nodes in these fields of a node, each of which may be a node, a list with some, or none."""

    def parts(node: Any) -> list[ast.AST]:
        found: list[ast.AST] = []
        for name in names:
            value = getattr(node, name, None)
            if type(value) is list:
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
        return found

    return parts


class _Parts(dict[type, Callable[[Any], list[ast.AST]]]):
    """Of each kind of node, what finds the nodes in it."""

    def __missing__(self, kind: type[ast.AST]) -> Callable[[Any], list[ast.AST]]:
        self[kind] = found = _parts_in(*[name for name in kind._fields if name not in _NO_NODES])
        return found


_NO_NODES = frozenset(["ctx", "op", "ops", "id", "attr", "arg", "level", "module", "type_comment", "conversion"])
_PARTS = _Parts(
    {  # of the most frequent ones, in a fifth of the time
        ast.Name: lambda node: [],
        ast.Constant: lambda node: [],
        ast.Attribute: lambda node: [node.value],
        ast.Call: lambda node: [node.func, *node.args, *node.keywords],
        ast.BinOp: lambda node: [node.left, node.right],
        ast.UnaryOp: lambda node: [node.operand],
        ast.Compare: lambda node: [node.left, *node.comparators],
        ast.Subscript: lambda node: [node.value, node.slice],
        ast.Tuple: lambda node: [*node.elts],
        ast.Assign: lambda node: [*node.targets, node.value],
        ast.AugAssign: lambda node: [node.target, node.value],
        ast.Expr: lambda node: [node.value],
    }
)


def walk(node: ast.AST) -> list[ast.AST]:
    """What ``ast.walk`` goes through, as it is now."""
    found = [node]
    for one in found:
        found += parts_of(one)
    return found


def located(node: Any) -> Any:
    """``ast.fix_missing_locations`` in a fraction of the time: what has no place is where the node is that it is in."""
    stack = [node]
    while stack:
        parent = stack.pop()
        children = parts_of(parent)
        for child in children:
            if not hasattr(child, "lineno"):
                placed(child, parent)
        stack += children
    return node


def placed(node: Any, like: Any) -> Any:
    """A new node in the place of another; what is in it and has no place of its own gets it in the end, from ``located``."""
    node.lineno, node.col_offset, node.end_lineno, node.end_col_offset = (
        like.lineno, like.col_offset, like.end_lineno, like.end_col_offset
    )  # fmt: skip
    return node


def assigned(name: str, value: ast.expr, like: Any) -> ast.stmt:
    """``name = value``, in the place of another node."""
    return located(placed(ast.Assign([ast.Name(name, ast.Store())], value), like))  # type: ignore[no-any-return]


def paired(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """What gets what where ``value`` is assigned to ``target``: item by item where both are tuples."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def is_append(node: Any, of: type[ast.expr] | tuple[type[ast.expr], ...] = ast.Name) -> bool:
    """Whether it is ``name.append(x)``, or the same ``of`` something else than a name."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
        return False
    return isinstance(node.func, ast.Attribute) and node.func.attr == "append" and isinstance(node.func.value, of)


def is_default(node: Any) -> bool:
    """Whether it is ``x.setdefault(key, [])``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "setdefault":
        return False
    return len(node.args) == 2 and not node.keywords and isinstance(node.args[1], ast.List) and not node.args[1].elts


def given(call: ast.Call) -> list[ast.expr]:
    """What a call gives a function."""
    return [*call.args, *[word.value for word in call.keywords]]


def is_append_of(node: ast.expr) -> bool:
    """Whether it is ``x.append``, which is not called here."""
    return isinstance(node, ast.Attribute) and node.attr == "append"


def is_plain_call(call: ast.Call) -> bool:
    """Whether all that a function is given is there one by one."""
    return all([word.arg for word in call.keywords]) and not any([isinstance(item, ast.Starred) for item in call.args])


def counted_by(loop: ast.For) -> list[str]:
    """The names that stand for where a loop is: ``for i in range(...)``, ``for i, v in enumerate(...)``."""
    made = getattr(getattr(loop.iter, "func", None), "id", None)
    target = loop.target.elts[0] if made == "enumerate" and isinstance(loop.target, ast.Tuple) else loop.target
    return [*names_stored(target)] if made in ("range", "enumerate") else []


def fresh(name: str, taken: set[str]) -> str:
    """A name that is not taken, which it is from now on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def in_class(name: str, owner: str | None) -> str:
    """What a name in a class is for Python: of two underscores at its beginning it makes a private one."""
    private = owner is not None and owner.strip("_") and name.startswith("__") and not name.endswith("__")
    return f"_{owner.lstrip('_')}{name}" if owner and private else name


def with_private_names(node: Any, owner: str) -> Any:
    """A method, changed in place: the variables are named as Python does, when it has compiled it. Functions and classes in it
    keep their names, which can be seen."""
    names = {part.name for part in walk(node) if isinstance(part, _DEFINITIONS)}
    waiting = [part for part in parts_of(node) if not isinstance(part, ast.ClassDef)]
    while waiting:
        part: Any = waiting.pop()
        waiting += [inner for inner in parts_of(part) if not isinstance(inner, ast.ClassDef)]
        for field in _NAMED.get(type(part), ()):
            name = getattr(part, field)
            if type(name) is list:
                setattr(part, field, [in_class(item, owner) for item in name])
            elif name is not None and name not in names:
                setattr(part, field, in_class(name, owner))
    return node


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NAMED: dict[type, tuple[str, ...]] = {
    **dict.fromkeys([ast.arg, ast.keyword], ("arg",)),
    **dict.fromkeys([ast.ExceptHandler, ast.MatchAs, ast.MatchStar], ("name",)),
    **dict.fromkeys([ast.Global, ast.Nonlocal], ("names",)),
    ast.Name: ("id",),
    ast.alias: ("asname",),
    ast.MatchMapping: ("rest",),
}


def owner_of(node: ast.AST) -> ast.AST:
    """What ``a.b[0].c`` is of in the end: ``a``."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node


def names_read(node: ast.AST) -> Counter[str]:
    """How often each name is read in a part of a tree; the variables of functions and comprehensions in it are none of its
    names."""
    names: list[str] = []
    own = Counter[str]()
    for item in walk(node):
        if isinstance(item, ast.Name):
            names += [item.id] if isinstance(item.ctx, ast.Load) else []
        elif isinstance(item, ast.AugAssign) and isinstance(item.target, ast.Name):
            names.append(item.target.id)
        elif isinstance(item, COMPREHENSIONS):
            own += _read_of_its_own(item)
        elif isinstance(item, FunctionNode):
            bound, _ = bound_in(item)
            own += Counter({name: often for name, often in names_read_in(item).items() if name in bound})
    return Counter(names) - own


def names_read_in(function: FunctionNode) -> Counter[str]:
    """How often each name is read in the body of a function."""
    return sum(map(names_read, body_of(function)), Counter[str]())


def body_of(function: FunctionNode) -> Sequence[ast.AST]:
    """The statements of a function, or what a ``lambda`` gives."""
    return [function.body] if isinstance(function, ast.Lambda) else function.body


def _read_of_its_own(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> Counter[str]:
    """How often a comprehension reads its own variables, but for where ones within it have such names."""
    first, *others = node.generators
    own = {name for part in node.generators for name in names_stored(part.target)}
    values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    read = Counter[str]()
    for part in (*values, *first.ifs, *others):
        read += names_read(part)
    return Counter({name: often for name, often in read.items() if name in own})


def bound_in(function: FunctionNode) -> tuple[set[str], set[str]]:
    """The names that are local to a function (its comprehensions' own variables not among them), and its global ones."""
    return bound_by(body_of(function), parameters(function))


def parameters(function: FunctionNode) -> set[str]:
    """The names of what a function is given."""
    args = function.args
    every = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
    return {arg.arg for arg in every if arg is not None}


def bound_by(body: Sequence[ast.AST], given: Collection[str] = ()) -> tuple[set[str], set[str]]:
    """The names that statements bind in their own scope, beside those that are ``given``; and the global ones."""
    names = set(given)
    outside: set[str] = set()
    everywhere: set[str] = set()
    stack = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                names.add(node.id)
            continue
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            outside |= set(node.names)
            everywhere |= set(node.names) if isinstance(node, ast.Global) else set()
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
            continue
        elif isinstance(node, ast.Lambda):
            continue
        elif isinstance(node, COMPREHENSIONS):
            names |= {item.target.id for item in walk(node) if isinstance(item, ast.NamedExpr)}
            continue
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(item.asname or item.name).split(".")[0] for item in node.names}
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
        stack.extend(parts_of(node))
    return names - outside, everywhere


def assigned_first(body: Sequence[ast.stmt], names: Sequence[Any]) -> list[str]:
    """Those of ``names``, which only the body reads, that it assigns before it reads them."""
    found: list[str] = []
    seen = {name for statement in body for item in walk(statement) if isinstance(item, LATER) for name in names_read(item)}
    for statement in body:
        if isinstance(statement, ast.Assign):
            seen |= names_read(statement.value).keys()
            found += [
                name for target in statement.targets for name in names_stored(target) if name in names and name not in seen
            ]
        seen |= {item.id for item in walk(statement) if isinstance(item, ast.Name)}
    return found


def declared(node: ast.AST) -> set[str]:
    """The names that a function, or one in it, declares to be another one's, or the module's."""
    return {name for part in walk(node) if isinstance(part, (ast.Global, ast.Nonlocal)) for name in part.names}


def is_truth(node: ast.AST) -> bool:
    """Whether it is a comparison, or ``not`` something."""
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def is_none(node: ast.AST) -> bool:
    """Whether it is the constant None."""
    return isinstance(node, ast.Constant) and node.value is None


def ends_of(value: ast.expr) -> list[ast.expr]:
    """What an expression may be the value of: the sides of ``a if c else b``."""
    return [*ends_of(value.body), *ends_of(value.orelse)] if isinstance(value, ast.IfExp) else [value]


def blocks_of(node: Any) -> Iterator[list[ast.stmt]]:
    """The statements of a function, block by block, but for functions in it."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            yield block
            for statement in block:
                if not isinstance(statement, SCOPES):
                    yield from blocks_of(statement)
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield from blocks_of(part)


def without_notes(function: FunctionNode) -> FunctionNode:
    """The function, changed in place, as are those in it: what gets a value has no annotation: none is evaluated."""
    for node in walk(function):
        for block in blocks_of(node) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else ():
            for i, one in enumerate(block):
                if isinstance(one, ast.AnnAssign) and one.value is not None:
                    block[i] = placed(ast.Assign([one.target], one.value), one)
    return function


def local_names(function: ast.AST) -> set[str]:
    """The names that a function, or one in it, has as parameters or assigns, but for those that are another one's."""
    given = {part.arg for part in walk(function) if isinstance(part, ast.arg)}
    return given.union(names_stored(function)) - declared(function)


def names_within(function: ast.AST) -> set[str]:
    """The names that the functions and classes in a function mention."""
    inner = [node for node in walk(function) if isinstance(node, SCOPES) and node is not function]
    return {part.id for node in inner for part in walk(node) if isinstance(part, ast.Name)}


def mentioned(function: ast.AST) -> set[str]:
    """The names that a function, or one in it, mentions, or has as parameters."""
    every = [*walk(function)]
    return {part.id for part in every if isinstance(part, ast.Name)} | {part.arg for part in every if isinstance(part, ast.arg)}


def mentioned_outside(function: ast.FunctionDef) -> set[str]:
    """The names that its decorators, defaults and annotations mention, which are those of what it stands in."""
    args = function.args
    every = [*function.decorator_list, function.returns, *args.defaults, *args.kw_defaults]
    every += [arg.annotation for arg in walk(args) if isinstance(arg, ast.arg)]
    return {part.id for one in every if one is not None for part in walk(one) if isinstance(part, ast.Name)}


def calls(name: str, node: ast.expr) -> bool:
    """Whether it is a call of what has this name, without keywords but for ``strict``."""
    if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != name:
        return False
    return all([one.arg == "strict" and isinstance(one.value, ast.Constant) for one in node.keywords])


def int_of(index: ast.expr) -> int | None:
    """The int that an index is in the text, with or without a minus; None for anything else."""
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
        inner = int_of(index.operand) if isinstance(index.operand, ast.Constant) else None
        return None if inner is None else -inner
    return index.value if isinstance(index, ast.Constant) and type(index.value) is int else None


def is_length(node: ast.AST, name: str) -> bool:
    """Whether it is ``len(name)``."""
    known = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len" and len(node.args) == 1 and not node.keywords
    return known and getattr(node.args[0], "id", "") == name  # type: ignore[attr-defined]


def is_range(node: Any) -> TypeGuard[ast.Call]:
    """Whether it is ``range(...)``, without keywords."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range" and not node.keywords


def changed_in(body: Sequence[ast.stmt]) -> set[str]:
    """The names of what statements assign attributes or items of."""
    found = set()
    for item in [part for statement in body for part in walk(statement)]:
        if isinstance(item, (ast.Attribute, ast.Subscript)) and isinstance(item.ctx, (ast.Store, ast.Del)):
            base: ast.expr = item
            while isinstance(base, (ast.Attribute, ast.Subscript)):
                base = base.value
            found |= {base.id} if isinstance(base, ast.Name) else set()
    return found


def names_stored(node: ast.AST) -> Iterator[str]:
    for item in walk(node):
        if isinstance(item, ast.Name) and isinstance(item.ctx, (ast.Store, ast.Del)):
            yield item.id
