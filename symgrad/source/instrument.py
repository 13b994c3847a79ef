"""The user's function, rewritten so that a trace sees what it reads from outside its arguments.

``instrumented(fun, hooks)`` is a function with the same code, globals, closure cells and lines, in which each read of a
global, a closure variable, an attribute or an item, each call, iteration, truth test and outside write goes through
``hooks``. It runs in place of the user's function while that is traced; nothing of the user's is changed.

The rewriting works on the source, found again by file and line, and is only trusted where compiling that source gives the
very bytecode that the function has.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import linecache
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from inspect import CO_GENERATOR
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple

from symgrad.source.columns import in_columns
from symgrad.source.comprehensions import iterators, unrolled
from symgrad.source.constants import bound_anywhere, space_of
from symgrad.source.decisions import decided
from symgrad.source.displays import displayed
from symgrad.source.exits import at_the_end, way_out
from symgrad.source.fields import as_locals
from symgrad.source.generators import INLINED, called, inlined
from symgrad.source.holders import HOLDER, held, taken_by
from symgrad.source.iterators import NEXT, REST, STARTED, by_place
from symgrad.source.lasts import SHORT, last_items
from symgrad.source.lists import (
    AT,
    BEHIND,
    CHOSEN,
    CHOSEN_AT,
    IN_TURN,
    ITEM,
    ITEMS,
    PART,
    RAGGED,
    ROW,
    ROWS,
    ROWS_AT,
    ROWS_OF,
    STILL,
    TAKEN,
    WHOLE,
    Appended,
    appended,
    in_room,
    marked,
)
from symgrad.source.liveness import Ends, live, live_between, note_live, read_later, used_between, used_from
from symgrad.source.matches import as_ifs
from symgrad.source.nests import joined
from symgrad.source.origins import is_users, names_in
from symgrad.source.rows import as_arrays
from symgrad.source.sections import deciding, in_sections
from symgrad.source.segments import SUMMED, with_segments
from symgrad.source.sentinels import with_flags
from symgrad.source.several import apart
from symgrad.source.stacks import FULL, MADE, PUT, ROOM, SHRINKS, Stack, may_shrink, with_stacks
from symgrad.source.stacks import TAKEN as TAKEN_OUT
from symgrad.source.states import CODE, HELD, IS_TEXT, TEXT, State, codes_in, decoded_in, with_codes
from symgrad.source.swaps import TWO, always
from symgrad.source.syntax import (
    COMPREHENSIONS,
    FRAME_READERS,
    LOCAL_READERS,
    MODULES,
    FunctionNode,
    assigned,
    bound_by,
    bound_in,
    changed_in,
    copied,
    counted_by,
    declared,
    given,
    in_class,
    int_of,
    is_append_of,
    is_default,
    is_plain_call,
    is_range,
    is_truth,
    located,
    names_read,
    names_read_in,
    names_stored,
    owner_of,
    paired,
    parts_of,
    placed,
    walk,
    with_private_names,
    without_notes,
)
from symgrad.source.tables import Group, with_tables
from symgrad.source.targets import in_turn, one_by_one, taken_apart
from symgrad.source.texts import numbered
from symgrad.source.tuples import item_by_item

HOOKS = "__symgrad__"
_FACTORY = "__symgrad_factory__"
FILES = 256  # of which is remembered what is in them
_DEEP = 20_000  # calls, for expressions as deep as Python compiles


class _How(NamedTuple):
    """What the rewriting of a function hangs on, beside its code: see ``instrumented``."""

    kind: type[_Calls | _Rewriter]
    sections: frozenset[int] | None
    tables: frozenset[Group]
    rooms: frozenset[int]
    lent: frozenset[tuple[str, str]]
    states: frozenset[State]
    stacks: frozenset[Stack]


# by identity, and by rewriter: code objects of different files can be equal
_codes: dict[
    tuple[int, _How, bool, frozenset[str]],
    tuple[weakref.ref[CodeType], CodeType | None, dict[str, CodeType]],
] = {}


def instrumented(
    fun: FunctionType,
    hooks: Any,
    calls_only: bool = False,
    sections: frozenset[int] | None = None,
    tables: frozenset[Group] = frozenset(),
    rooms: frozenset[int] = frozenset(),
    lent: frozenset[tuple[str, str]] = frozenset(),
    states: frozenset[State] = frozenset(),
    stacks: frozenset[Stack] = frozenset(),
) -> Callable[..., Any] | None:
    """The rewritten function; ``None`` where its source cannot be had or is not what was compiled.

    ``calls_only``: of what it does, only calls go through the hooks, ``a @ b``, ``a is b``, ``np.r_[...]``, ``np.c_[...]``
    and what is written into; ``sections``: see ``symgrad.source.sections``, and the lines that decide again and again, None
    where there are to be none; ``tables``: the lists that are arrays, see ``symgrad.source.tables``; ``rooms``: the lines of
    ``while`` loops that append to lists in objects; ``lent``: the parameters that are holders, and the names of lists there;
    ``states``: the lines of loops, and the locals that stand for texts in them, see ``symgrad.source.states``; ``stacks``: the
    lists that have two ends, see ``symgrad.source.stacks``.
    """
    kind = _Calls if calls_only else _Rewriter if sections is None else _InSections
    how = _How(kind, sections, tables, rooms, lent, states, stacks)
    new, generators = _rewritten(fun, how, True)
    if any([_generator(fun, name) is not one for name, one in generators.items()]):  # that other functions stand in by now
        new, _ = _rewritten(fun, how, False)
    if new is None:
        return None
    code = fun.__code__
    cells = dict(zip(code.co_freevars, fun.__closure__ or (), strict=True))
    cells[HOOKS] = CellType(hooks)
    closure = tuple(cells[name] for name in new.co_freevars)
    made = FunctionType(new, fun.__globals__, fun.__name__, fun.__defaults__, closure)
    made.__kwdefaults__ = fun.__kwdefaults__
    made.__qualname__ = fun.__qualname__
    return made


def _rewritten(fun: FunctionType, how: _How, inline: bool) -> tuple[CodeType | None, dict[str, CodeType]]:
    """The rewritten code; with generators of the module in it, these, by their names."""
    code = fun.__code__
    shadowed = frozenset([name for name in _builtin_names(code) if name in fun.__globals__ or _is_replaced(name)])
    key = id(code), how, inline, shadowed
    known = _codes.get(key)
    if known is None or known[0]() is not code:
        try:
            made = _rewrite(fun, how, inline)
        except RecursionError:  # a sum of hundreds of numbers, say
            made = _deeply(fun, how, inline)
        known = _codes[key] = (weakref.ref(code, functools.partial(_forget, _codes, key)), *made)
    return known[1:]


def _deeply(fun: FunctionType, how: _How, inline: bool) -> tuple[CodeType | None, dict[str, CodeType]]:
    """The same of a function whose expressions are deeper than Python's functions go; nothing if they are deeper still."""
    with _parsing:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, _DEEP))
        try:
            return _rewrite(fun, how, inline)
        except RecursionError:
            return None, {}
        finally:
            sys.setrecursionlimit(before)


def _generator(fun: FunctionType, name: str) -> CodeType | None:
    """The code of a generator of the same file that is there under a name, and that knows no more than its arguments."""
    one = fun.__globals__.get(name)
    if type(one) is not FunctionType or one.__globals__ is not fun.__globals__ or one.__kwdefaults__:
        return None
    code = one.__code__
    own = code.co_flags & CO_GENERATOR and not code.co_freevars and code.co_filename == fun.__code__.co_filename
    return code if own else None


def _forget(codes: dict[Any, Any], key: Any, _: Any) -> None:
    codes.pop(key, None)


def _rewrite(fun: FunctionType, how: _How, inline: bool) -> tuple[CodeType | None, dict[str, CodeType]]:
    code = fun.__code__
    owner = _class_of(fun)
    node, free, imports = _source(fun, owner) or (None, [], [])
    if node is None:
        return None, {}
    rewriter = how.kind(frozenset(free), owner)
    tree = without_notes(copied(node) if owner is None else with_private_names(copied(node), owner))
    tree = tree if how.kind is _Calls else held(taken_apart(tree), space_of(fun), taken, how.lent)
    codes: dict[str, CodeType] = {}
    asked, around = Counter[str](), {*fun.__globals__, *free}
    turns, own = how.kind is not _Calls and _turns(tree, fun), not any(map(_is_replaced, _builtin_names(code)))
    if own and (turns or (how.kind is not _Calls and may_shrink(code, how.stacks))):
        asked = _builtins_in(tree, around)
        tree = with_stacks(tree, how.stacks, around)
    if turns and own:
        tree = _with_statements(tree) if isinstance(tree, ast.Lambda) else tree
        space = space_of(fun)
        generators: dict[str, ast.FunctionDef] = {}
        waiting = [*called(tree)] if inline else []
        while waiting:
            name = waiting.pop()
            one = _generator(fun, name) if name not in generators else None
            found = _source(fun.__globals__[name], None) if one is not None else None
            if one is not None and found is not None and isinstance(found[0], ast.FunctionDef):
                codes[name], generators[name] = one, found[0]
                waiting += called(found[0])
        tree = as_locals(displayed(as_ifs(inlined(in_turn(tree), generators, around)), space), space)
        tree = in_columns(tree, space)
        tree = by_place(last_items(at_the_end(tree, space, with_lists=True), around), around)
        tree = with_tables(item_by_item(one_by_one(tree)), how.tables, around)
        tree = with_codes(numbered(tree, fun.__globals__), how.states)
        tree = as_arrays(always(with_flags(tree)), fun.__globals__)
        tree = inlined(unrolled(tree, space), generators, around)
        tree = apart(in_columns(at_the_end(unrolled(tree, space), space), space))  # also in generators that stand for loops
        tree = in_room(joined(with_segments(tree, fun), fun), how.rooms)
        tree = decided(marked(tree if how.sections is None else in_sections(tree, how.sections), space), fun, owner)
    elif how.kind is not _Calls:
        tree = marked(tree, space_of(fun))
    if asked and isinstance(tree, ast.FunctionDef):
        tree.body[:0] = [_named(name, tree) for name in asked - _builtins_in(tree, around)]  # so that they are guarded
    return _compile(rewriter.function(tree), [*free, HOOKS], code, imports, owner), codes


def taken(fun: FunctionType, around: frozenset[int] = frozenset()) -> tuple[frozenset[str], frozenset[str]]:
    """The parameters of a function of the user's which holders may be, and those that it fills: see
    ``symgrad.source.holders``; ``around``: codes (ids) of the functions that ask."""
    code = fun.__code__
    known = _taken.get(id(code))
    if known is None or known[0]() is not code:
        found = None
        if is_users(fun) and id(code) not in around and HOOKS not in code.co_freevars:
            found = _source(fun, _class_of(fun))
        among = functools.partial(taken, around=around | {id(code)})
        names = (frozenset[str](), frozenset[str]()) if found is None else taken_by(found[0], space_of(fun), among)
        if around:
            return names
        known = _taken[id(code)] = weakref.ref(code, functools.partial(_forget, _taken, id(code))), names
    return known[1]


_taken: dict[int, tuple[weakref.ref[CodeType], tuple[frozenset[str], frozenset[str]]]] = {}


@functools.lru_cache(maxsize=4096)
def _builtin_names(code: CodeType) -> tuple[str, ...]:
    """The names of builtins that code mentions, of which somebody may make others."""
    return tuple([name for name in names_in(code) if name in _PYTHONS])


def _is_replaced(name: str) -> bool:
    """Whether somebody has put another among the builtins."""
    return vars(builtins).get(name) is not _PYTHONS[name]


_PYTHONS = dict(vars(builtins))


def _named(name: str, like: ast.AST) -> ast.stmt:
    """A statement that does nothing but name something."""
    return located(placed(ast.Expr(ast.Name(name, ast.Load())), like))  # type: ignore[no-any-return]


def _builtins_in(function: FunctionNode, around: Collection[str]) -> Counter[str]:
    """How often a function names builtins, which are none of the names ``around`` it, nor its own."""
    names = Counter([node.id for node in walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)])
    own = {*around, *bound_anywhere(function)}
    return Counter({name: often for name, often in names.items() if name in _PYTHONS and name not in own})


def _source(fun: FunctionType, owner: str | None) -> tuple[FunctionNode, list[str], list[ast.stmt]] | None:
    """The node of a function, its free variables and its file's imports; None where its source is not what was compiled."""
    code, found = fun.__code__, definition(fun)
    free = [name for name in code.co_freevars if not (owner and name == "__class__")]
    if found is None:
        return None
    try:
        plain = _compile(found[0], free, code, found[1], owner)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return None if plain is None or not _same_code(plain, code) else (found[0], free, found[1])


def _with_statements(node: ast.Lambda) -> FunctionNode:
    """A lambda as a function of that name, for loops are statements."""
    made = placed(_function("<lambda>", [], [placed(ast.Return(node.body), node.body)]), node)
    made.args = node.args
    return made  # type: ignore[no-any-return]


def _turns(tree: FunctionNode, fun: FunctionType) -> bool:
    """Whether anything in a function is done again, or only sometimes: straight code, which may be long, is left as it is."""
    if any([isinstance(part, _TURNS) for part in walk(tree)]) or not iterators(fun).isdisjoint(names_in(fun.__code__)):
        return True
    return any([_generator(fun, name) is not None for name in called(tree)])


_TURNS = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.IfExp, ast.Match, *COMPREHENSIONS)


def _class_of(fun: FunctionType) -> str | None:
    parts = fun.__qualname__.split(".")
    return parts[-2] if len(parts) > 1 and parts[-2][0] != "<" else None


# -- finding the source --------------------------------------------------------------------------------------------


def definition(fun: FunctionType) -> tuple[FunctionNode, list[ast.stmt]] | None:
    """The node of a function in its file, and the file's imports; None where the source cannot be had."""
    code = fun.__code__
    lines = linecache.getlines(code.co_filename, fun.__globals__)
    if not lines:
        return None
    try:
        imports, functions = _contents("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return None
    found = [node for node in functions if _matches(node, code)]
    if not found or (len(found) > 1 and code.co_name != "<lambda>"):
        return None
    return min(found, key=_size), imports  # the innermost lambda


@functools.lru_cache(FILES)
def _contents(text: str) -> tuple[list[ast.stmt], list[FunctionNode]]:
    """The imports and the functions of a file, given its text."""
    tree = parsed(text)
    return _imports(tree), [node for node in walk(tree) if isinstance(node, FunctionNode)]


def in_loops(lines: Collection[tuple[str, int]]) -> frozenset[tuple[str, int]]:
    """Those of some lines of files in which loops decide that run to their ends."""
    found = set[tuple[str, int]]()
    for name in {name for name, _ in lines}:
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):
            _, functions = _contents("".join(linecache.getlines(name)))
            loops = [part for node in functions for part in walk(node) if isinstance(part, ast.For)]
            found |= {(name, line) for loop in loops for line in deciding(loop)}
    return frozenset(found.intersection(lines))


def parsed(text: str, mode: str = "exec") -> Any:
    """``ast.parse``, in one thread at a time: in some releases of Python 3.11 all threads count how deep they are together."""
    with _parsing:
        return ast.parse(text, mode=mode)


_parsing = threading.RLock()


def _size(node: FunctionNode) -> tuple[int, int]:
    first, last = _span(node)
    return last[0] - first[0], last[1] - first[1]


def _span(node: ast.expr | ast.stmt) -> tuple[tuple[int, int], tuple[int, int]]:
    """Line and column of the start and of the end."""
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)


def _imports(module: ast.Module) -> list[ast.stmt]:
    """The module's own imports: CPython compiles ``np.sin(x)`` in another way where ``np`` is an imported name."""
    found: list[ast.stmt] = []
    stack: list[ast.AST] = list(module.body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if getattr(node, "module", None) != "__future__":
                found.append(node)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            stack.extend(parts_of(node))
    return found


def _matches(node: FunctionNode, code: CodeType) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        return node.name == code.co_name and first == code.co_firstlineno
    if code.co_name != "<lambda>" or not node.lineno <= code.co_firstlineno <= node.body.lineno:
        return False
    start, end = _span(node.body)
    places = [((a, c), (b, d)) for a, b, c, d in code.co_positions() if None not in (a, b, c, d) and (a, c) != (b, d)]
    return all(start <= first and last <= end for first, last in places)


def _compile(
    node: FunctionNode, free: Sequence[str], original: CodeType, imports: Sequence[ast.stmt], owner: str | None
) -> CodeType | None:
    """The code of a function node, nested in a factory that makes ``free`` its closure variables."""
    bare = _bare(node)
    body: list[ast.stmt] = [placed(ast.Expr(bare), node) if isinstance(node, ast.Lambda) else bare]
    if owner is not None:  # private names are mangled in a class, and super() looks for one
        body = [_class(owner, body)]
    name = owner or getattr(node, "name", None)
    if name is not None and name not in free:  # a global of the user's, and not a local of the factory
        body.insert(0, ast.Global([name], lineno=1, col_offset=0))
    module = ast.Module([*imports, _function(_FACTORY, free, body)], [])
    code: CodeType = compile(module, original.co_filename, "exec", dont_inherit=True, flags=original.co_flags & _FUTURE)
    path = [_FACTORY, *([owner] if owner else []), "<lambda>" if isinstance(node, ast.Lambda) else node.name]
    for name in path:
        inner = [item for item in code.co_consts if isinstance(item, CodeType) and item.co_name == name]
        if not inner:
            return None
        code = inner[0]
    return code


def _function(name: str, parameters: Sequence[str], body: list[ast.stmt]) -> ast.stmt:
    arguments = ast.arguments([], [ast.arg(item, lineno=1, col_offset=0) for item in parameters], None, [], [], None, [])
    node = ast.FunctionDef(name, arguments, body, [], lineno=1, col_offset=0)
    if "type_params" in ast.FunctionDef._fields:
        node.type_params = []  # type: ignore[attr-defined, unused-ignore]
    return node


def _class(name: str, body: list[ast.stmt]) -> ast.stmt:
    node = ast.ClassDef(name, [], [], body, [], lineno=1, col_offset=0)
    if "type_params" in ast.ClassDef._fields:
        node.type_params = []  # type: ignore[attr-defined, unused-ignore]
    return node


# what the rewritten function calls by these names
_OWN = {
    ROW: "row", TWO: "two", CHOSEN: "is_chosen", CHOSEN_AT: "is_chosen_at", AT: "chosen_at", ROWS: "has_rows",
    ROWS_AT: "has_rows_at", PART: "column", STILL: "is_still", ROWS_OF: "rows_of", ITEMS: "every_item",
    TAKEN: "taken", ITEM: "item_of", BEHIND: "behind",
    IN_TURN: "in_turn", RAGGED: "ragged", SUMMED: "summed", INLINED: "inlined", STARTED: "started", NEXT: "next_of",
    REST: "rest_of", SHORT: "short", HOLDER: "holder", WHOLE: "whole_number",
    CODE: "code_of", TEXT: "text_of", IS_TEXT: "is_text", HELD: "held_at",
    SHRINKS: "shrinks", ROOM: "room_for", MADE: "made_by", PUT: "put_in", TAKEN_OUT: "taken_out", FULL: "full",
}  # fmt: skip
_FUTURE = 0x1000000  # from __future__ import annotations


def _bare(node: Any) -> Any:
    """A function node without decorators and defaults: those are the user's objects, and exist already."""
    args = node.args
    empty = ast.arguments(
        args.posonlyargs, args.args, args.vararg, args.kwonlyargs, [None for _ in args.kwonlyargs], args.kwarg, []
    )
    fields = dict(ast.iter_fields(node))
    fields["args"] = empty
    if not isinstance(node, ast.Lambda):
        fields["decorator_list"] = []
        if "type_params" in fields:
            fields["type_params"] = []
    return ast.copy_location(type(node)(**fields), node)


def _same_code(a: CodeType, b: CodeType) -> bool:
    """Whether two code objects do the same, nested ones included."""
    if a.co_code != b.co_code or a.co_names != b.co_names or a.co_varnames != b.co_varnames:
        return False
    if set(a.co_freevars) != set(b.co_freevars) or len(a.co_consts) != len(b.co_consts):
        return False
    for x, y in zip(a.co_consts, b.co_consts, strict=True):
        if isinstance(x, CodeType) and isinstance(y, CodeType):
            if not _same_code(x, y):
                return False
        elif type(x) is not type(y) or repr(x) != repr(y):
            return False
    return True


# -- rewriting -----------------------------------------------------------------------------------------------------


def _own(node: FunctionNode) -> FunctionNode:
    """A function that the rewritten one makes, which names the hooks at least: so it is known for one."""
    parts = [node.body] if isinstance(node, ast.Lambda) else node.body
    if any([isinstance(item, ast.Name) and item.id == HOOKS for part in parts for item in walk(part)]):
        return node
    hooks = placed(ast.Name(HOOKS, ast.Load()), node)
    if isinstance(node, ast.Lambda):
        node.body = placed(ast.BoolOp(ast.And(), [hooks, node.body]), node)
    else:
        node.body.insert(ast.get_docstring(node, clean=False) is not None, placed(ast.Expr(hooks), node))
    return node


def _hook(name: str, at: ast.AST, *args: ast.expr) -> ast.Call:
    target = placed(ast.Attribute(ast.Name(HOOKS, ast.Load()), name, ast.Load()), at)
    target.end_lineno, target.end_col_offset = target.lineno, target.col_offset  # tracebacks look
    return placed(ast.Call(target, list(args), []), at)  # type: ignore[no-any-return]


def _attribute(node: ast.Attribute, owner: str | None) -> ast.Call:
    """The attribute of an object, in the class ``owner``, by way of the hooks."""
    return _hook("attribute", node, node.value, ast.Constant(in_class(node.attr, owner)))


_HELD = (ast.Attribute, ast.Subscript)  # what may give a list that an object holds, or a dict
_LISTING = ("locals", "vars", "dir")  # without arguments, what there is in a frame: the hooks, too


class _Calls(ast.NodeTransformer):
    """Puts the hooks for calls in, those for ``@``, ``is``, ``np.r_`` and ``np.c_``, and those for what is written into.

    ``free``: the function's closure variables; ``owner``: the class whose body it stands in.
    """

    def __init__(self, free: frozenset[str], owner: str | None) -> None:
        self.free, self.owner = free, owner

    def function(self, node: FunctionNode) -> FunctionNode:
        """The rewritten function."""
        return located(self.generic_visit(node))  # type: ignore[no-any-return]

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Store):
            return _into_held(node)
        plain = isinstance(node.value, ast.Name) and node.value.id in MODULES
        return node if plain or not isinstance(node.ctx, ast.Load) else _attribute(node, self.owner)

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):  # a method, nearly always
            self.generic_visit(node.func)
            node.args, node.keywords = [*map(self.visit, node.args)], [*map(self.visit, node.keywords)]
        else:
            self.generic_visit(node)
        name = _called_name(node)
        if name not in FRAME_READERS:
            return _followed(node)
        return _hook("frame_reader", node, ast.Constant(name), node) if name in _LISTING and not node.args else node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Store):
            return _into_held(node)
        name = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", None)
        if name not in ("r_", "c_") or not isinstance(node.ctx, ast.Load):
            return node
        return _hook("item", node, node.value, _as_value(node.slice))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        return _product(node) if isinstance(node.op, ast.MatMult) else node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        return _identities(node, [node.left, *node.comparators]) if _compares_objects(node) else node

    def visit_match_case(self, node: ast.match_case) -> Any:
        """What a pattern names is no expression."""
        node.guard, node.body = node.guard and self.visit(node.guard), [*map(self.visit, node.body)]
        return node


def _asks_for_state(node: ast.Compare) -> bool:
    """Whether it is ``x.state == "text"``, or ``!=``."""
    known = len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and isinstance(node.left, ast.Attribute)
    (side, *_) = node.comparators
    return known and isinstance(side, ast.Constant) and type(side.value) is str


def _is_in_row(node: ast.Subscript) -> bool:
    """Whether it is an item of the first or of the last row of a list that an object may hold, or of one of some rows."""
    rows = node.value
    if not isinstance(node.slice, ast.Constant) or not isinstance(rows, ast.Subscript) or int_of(rows.slice) not in (0, -1):
        return False
    if hasattr(rows, "hook") or hasattr(rows, "grown"):
        return False
    use = getattr(rows.value, "use", None)
    return isinstance(rows.value, _HELD) or (isinstance(use, ast.Constant) and use.value in ("first", "last"))


def _into_held(node: Any) -> Any:
    """What is assigned to, in an object or a container that the hooks are told of."""
    node.value = _hook("held", node.value, node.value)
    return node


def _compares_objects(node: ast.Compare) -> bool:
    """Whether it is ``a is b``, or a chain of such, of what is no constant."""
    constants = [isinstance(side, ast.Constant) for side in (node.left, *node.comparators)]
    return all([isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops]) and constants.count(False) > 1


def _identities(node: ast.Compare, sides: list[ast.expr]) -> Any:
    return _hook("are_one", node, _constant(tuple([isinstance(op, ast.Is) for op in node.ops])), *sides)


def _reading(target: ast.Name) -> ast.expr:
    """A function that holds the cell of a variable, which it reads."""
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), ast.Name(target.id, ast.Load()))


def _then(value: Any, effects: list[Any]) -> Any:
    """A value, after which something else is done; that is in the place of the last of several that are assigned at once."""
    if isinstance(value, (ast.Tuple, ast.List)):
        value.elts[-1] = _then(value.elts[-1], effects)
        return value
    if isinstance(value, ast.Starred):
        value.value = _then(value.value, effects)
        return value
    both = ast.Tuple([value, *[effect.value for effect in effects]], ast.Load())
    return placed(ast.Subscript(both, ast.Constant(0), ast.Load()), value)


def _hashed(node: ast.expr) -> ast.expr:
    """What becomes a key, or a member of a set."""
    return node if isinstance(node, ast.Constant) else _hook("hashed", node, node)


def _product(node: Any) -> Any:
    """A matrix product by way of the hooks: SciPy's sparse arrays do not ask the other factor."""
    return placed(_hook("matmul", node, node.left, node.right), node)


def _called_name(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _may_lend(node: ast.Call) -> bool:
    """Whether a call may give a function of the user's a list that an object holds."""
    fun = first = node.func
    while isinstance(first, ast.Attribute):
        first = first.value
    name = getattr(first, "id", "")
    if not is_plain_call(node) or name in (MODULES if first is not fun else _LOOKING):
        return False
    return any([isinstance(value, ast.Attribute) for value in given(node)])


def _followed(node: ast.Call) -> Any:
    """A call by way of the hooks."""
    takes = getattr(node, "takes", None)
    if is_plain_call(node):
        before = [_constant(tuple(takes or ()))] if takes or getattr(node, "lends", False) else []
        call = _hook("call_for" if before else "call", node, *before, node.func, *node.args)
    else:  # Python's words about wrong ones name the function that is called
        call = ast.Call(_hook("caller", node.func, node.func), node.args, [])
    call.keywords = node.keywords
    return placed(call, node)


class _Used(NamedTuple):
    """What the loops of a function ask about its names: how often it reads each, what functions in it read, what these assign
    of its variables, and what they count with."""

    read: Counter[str]
    later: frozenset[str]
    assigned: frozenset[str]
    counted: frozenset[str]
    made_of: dict[str, set[str]]  # the names that each is assigned something of


_NONE = _Used(Counter(), frozenset(), frozenset(), frozenset(), {})


def _used_in(function: FunctionNode) -> _Used:
    every = [*walk(function)]
    if not any([isinstance(part, (ast.For, ast.While)) for part in every]):
        return _NONE
    inner = [part for part in every if isinstance(part, ast.FunctionDef) and part is not function and declared(part)]
    counted = _counted([part for item in inner for part in walk(item)])
    names = frozenset().union(*map(declared, inner))
    made_of: dict[str, set[str]] = {}
    for part in every:
        for target, value in _given_by(part):
            found = {item.id for item in walk(value) if isinstance(item, ast.Name)}
            for name in names_stored(target):
                made_of.setdefault(name, set()).update(found)
    read = names_read_in(function)
    if not read.keys().isdisjoint(LOCAL_READERS):
        read.update({part.id for part in every if isinstance(part, ast.Name)})  # once more, by these
    return _Used(read, read_later(function), names, frozenset(counted), made_of)


def _given_by(part: ast.AST) -> list[tuple[ast.AST, ast.AST]]:
    """What gets what in a part of a tree: targets and values."""
    if isinstance(part, ast.Assign):
        return [(target, part.value) for target in part.targets]
    if isinstance(part, (ast.For, ast.comprehension)):
        return [(part.target, part.iter)]
    if isinstance(part, (ast.AnnAssign, ast.NamedExpr)) and part.value is not None:
        return [(part.target, part.value)]
    return []


def _changed_by(part: ast.AST) -> set[str]:
    """The names of what a statement, or a call, may change in place: a call all that it is given, but for NumPy's."""
    if isinstance(part, (ast.Subscript, ast.Attribute)) and not isinstance(part.ctx, ast.Load):
        return {item.id for item in walk(owner_of(part)) if isinstance(item, ast.Name)}
    if isinstance(part, ast.AugAssign):
        return {part.target.id} if isinstance(part.target, ast.Name) else set()
    if not isinstance(part, ast.Call):
        return set()
    fun: Any = part.func
    if (
        not _may_do_anything(part)
        and getattr(fun, "attr", "") not in _CHANGING
        and all([word.arg != "out" for word in part.keywords])
    ):
        return set()
    return {item.id for item in walk(part) if isinstance(item, ast.Name)}


def _may_do_anything(part: ast.AST) -> bool:
    """Whether it is a call, but for NumPy's and those of builtins that look at what they are given; or lets others go on."""
    if not isinstance(part, ast.Call):
        return isinstance(part, (ast.Yield, ast.YieldFrom, ast.Await))
    fun = part.func
    plain = isinstance(fun, ast.Attribute) and isinstance(fun.value, ast.Name) and fun.value.id in MODULES
    return not plain and not (isinstance(fun, ast.Name) and fun.id in _LOOKING)


_CHANGING = frozenset(["fill_diagonal", "put", "put_along_axis", "place", "putmask", "copyto"])
_LAZY = ("zip", "enumerate", "reversed")
_BY_INDEX = (*_LAZY, "pairwise", "islice", "combinations", "permutations", "product", "combinations_with_replacement")
_LOOKING = frozenset(["abs", "bool", "enumerate", "float", "int", "len", "max", "min", "pow", "range", "round", "sum", "zip"])


def _own_names(at: ast.AST, private: tuple[str, ...] | None, doubtful: tuple[str, ...]) -> ast.expr:
    """The names that a loop has for itself: some are known when it begins."""
    if private is None or not doubtful:
        return _constant(private)
    return _hook("private", at, _constant(private), _constant(doubtful))


class _Rewriter(ast.NodeTransformer):
    """Puts the hooks in. ``free``: the function's closure variables; ``owner``: the class whose body it stands in."""

    def __init__(self, free: frozenset[str], owner: str | None) -> None:
        self.free, self.owner = free, owner
        self.scopes: list[tuple[set[str], set[str]]] = []  # of each function: its own names, and those declared global
        self.bodies: list[int] = []  # which scopes are of classes, whose names only the class's own body sees
        self.used: list[_Used] = []  # of each function
        self.shared = set[str]()  # the names that functions in it may give to something else
        self._loops = 0  # that it is in
        self.places: list[str] = []  # the names of where those are
        self.around: list[list[str]] = [[]]  # the names of the loops that a statement of each function may leave

    def function(self, node: FunctionNode) -> FunctionNode:
        """The rewritten function: its body, not its decorators and defaults."""
        if not self.scopes:  # its annotations are there already
            for arg in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]:
                if arg is not None:
                    arg.annotation = None
            if not isinstance(node, ast.Lambda):
                node.returns = None
            self.shared = declared(node)
        self.scopes.append(bound_in(node))
        self.used.append(_used_in(node))
        if not isinstance(node, ast.Lambda) and self.used[-1] is not _NONE:  # of its loops
            note_live(node)
        self.around.append([])
        node.body = self.visit(node.body) if isinstance(node, ast.Lambda) else self._body(node.body)
        self.scopes.pop()
        self.used.pop()
        self.around.pop()
        return _own(node) if self.scopes else located(node)

    def _body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in statements:
            new = self.visit(statement)
            result.extend(new if isinstance(new, list) else [new])
        return result

    def _local(self, name: str) -> bool:
        for number, (bound, outside) in reversed(list(enumerate(self.scopes))):
            if number in self.bodies and number < len(self.scopes) - 1:
                continue
            if name in bound:
                return True
            if name in outside:
                return False
        return False

    # ---- scopes ----

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.decorator_list = [_hook("decorator", item, self.visit(item)) for item in node.decorator_list]
        node.args.defaults = [self.visit(item) for item in node.args.defaults]
        node.args.kw_defaults = [item and self.visit(item) for item in node.args.kw_defaults]
        return self.function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return self.visit_FunctionDef(node)  # type: ignore[arg-type]

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        node.args.defaults = [self.visit(item) for item in node.args.defaults]
        node.args.kw_defaults = [item and self.visit(item) for item in node.args.kw_defaults]
        return self.function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        """A class of the function's own: what its body and its methods do is followed."""
        decorators = [_hook("class_decorator", item, self.visit(item)) for item in node.decorator_list]
        made = placed(ast.Attribute(ast.Name(HOOKS, ast.Load()), "class_made", ast.Load()), node)
        node.decorator_list = [*decorators, made]  # which is the first that it goes through
        node.bases = [self.visit(item) for item in node.bases]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        outer, self.owner = self.owner, node.name
        self.bodies.append(len(self.scopes))
        self.scopes.append(bound_by(node.body))
        self.used.append(_NONE)
        body: list[ast.stmt] = []
        for item in node.body:
            note = getattr(item, "annotation", None)
            body += self._body([item])
            if isinstance(item, ast.AnnAssign) and note is not None:
                item.annotation = note  # dataclasses ask for it
        node.body = body
        self.scopes.pop()
        self.used.pop()
        self.bodies.pop()
        self.owner = outer
        return [*self._effects(ast.copy_location(ast.Name(node.name, ast.Store()), node)), node]

    def _comprehension(self, node: Any) -> Any:
        first, *rest = node.generators
        first.iter = self._iterated(first.iter, first.target)  # evaluated outside the new scope
        self.scopes.append(({name for g in node.generators for name in names_stored(g.target)}, set()))
        first.target = self.visit(first.target)
        first.ifs = [self._truth(item) for item in first.ifs]
        for generator in rest:
            generator.iter = self._iterated(generator.iter, generator.target)
            generator.ifs = [self._truth(item) for item in generator.ifs]
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        if isinstance(node, (ast.SetComp, ast.DictComp)):
            field = "key" if isinstance(node, ast.DictComp) else "elt"
            setattr(node, field, _hashed(getattr(node, field)))
        self.scopes.pop()
        return node

    def _iterated(self, node: ast.expr, target: ast.expr) -> Any:
        """What is iterated over, its items being put into ``target``."""
        if isinstance(target, (ast.Tuple, ast.List)):
            return _hook("unpacked", node, self.visit(node), ast.Constant(_nested(target)))
        return _hook("run_over", node, self.visit(node))

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    # ---- reads ----

    def visit_Constant(self, node: ast.Constant) -> Any:
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        way, table = getattr(node, "hook", ("", None))
        if way:
            return _hook(way, node, node, _constants(table))
        use = getattr(node, "use", None)
        if use is not None:
            return _hook("handed", node, node, self.visit(use))
        if hasattr(node, "given_back"):
            return _hook("given_back", node, node, ast.Constant(node.given_back))
        if not isinstance(node.ctx, ast.Load) or self._local(node.id):
            return node
        kind = "cell" if node.id in self.free else "glob"
        return _hook(kind, node, ast.Constant(node.id), node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if not isinstance(node.ctx, ast.Load) and self._outer_chain(node.value):
            return node  # the very object is changed, not what a trace makes of it
        if not isinstance(node.ctx, ast.Load):
            node.value = self._assigned_in(node)
            return node
        if hasattr(node, "given_back"):
            return self._given_back(node)
        node.value = self.visit(node.value)
        return (
            _hook("lent", node, node.value, ast.Constant(node.attr)) if hasattr(node, "lent") else _attribute(node, self.owner)
        )

    def _given_back(self, node: Any) -> Any:
        """What an object holds, which a function returns: it may be a list of some items."""
        place = ast.Constant(node.given_back)
        del node.given_back
        return _hook("given_back", node, self._given(node), place)

    def _assigned_in(self, target: Any) -> ast.expr:
        """What has the item or the attribute that is assigned; of one that names alone lead to, a statement reports it."""
        found: ast.expr = self.visit(target.value)
        if _is_plain_chain(target.value):
            return found
        return _hook("wrote_through", target.value, found, *getattr(target, "facts", ()))

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if hasattr(node, "given_back"):
            return self._given_back(node)
        if hasattr(node, "cut"):
            return _hook("cut", node, self.visit(node.value), _as_value(self.visit(node.slice)), self.visit(node.cut))
        if isinstance(node.ctx, ast.Load):
            own = getattr(node, "hook", None) or getattr(node, "grown", None)
            if not own and _is_in_row(node):
                rows: Any = node.value
                held = ast.Name(rows.value.id, ast.Load()) if hasattr(rows.value, "use") else self._unasked(rows.value)
                return _hook("item_in", node, held, rows.slice, node.slice)
            node.value, node.slice = self.visit(node.value) if own else self._unasked(node.value), self.visit(node.slice)
            way, table = getattr(node, "hook", ("", None))
            if way:
                return _hook(way, node, node.value, _constants(table), *_parts_of_index(node.slice))
            if hasattr(node, "use"):
                return _hook("handed", node, _hook("item", node, node.value, node.slice), self.visit(node.use))
            loop, name = getattr(node, "grown", ("", ""))
            if loop:
                return _hook("grown_item", node, ast.Name(loop, ast.Load()), ast.Constant(name), node.value, node.slice)
            return _hook("item", node, node.value, _as_value(node.slice))
        owner: Any = self.visit(copied(node.value)) if _is_plain_chain(node.value) else None
        if self._outer_chain(node.value):
            node.value = _hook("place", node.value, node.value)
        else:
            node.value = self._assigned_in(node)
        parts = _parts_of_index(node.slice)
        if hasattr(node, "places"):
            table = node.table  # type: ignore[attr-defined]
            facts = [(_constants(table), copied(node.value), ast.Constant(i)) for i in range(len(parts))]
            places: list[Any] = [_hook("table_place", p, self.visit(p), *more) for p, more in zip(parts, facts, strict=True)]
            node.slice = places[0] if len(places) == 1 else placed(ast.Tuple(places, ast.Load()), node.slice)
            return node
        if isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Store):
            node.value = _hook("spliced", node.value, node.value)
        known = owner is None or any([isinstance(part, ast.Slice) for part in parts]) or isinstance(node.slice, ast.Constant)
        node.slice = self._index(node.slice) if known else _hook("key", node.slice, self.visit(node.slice), owner)
        if hasattr(node, "table"):
            node.slice = _hook("table_asked", node.slice, node.slice, _constants(node.table))
        return node

    def _index(self, node: ast.expr) -> ast.expr:
        """The index of what is assigned."""
        if isinstance(node, ast.Slice):
            return self.visit(node)  # type: ignore[no-any-return]
        if isinstance(node, ast.Tuple):
            node.elts = [self._index(item) for item in node.elts]
            return node
        return self._whole(node)

    def _outer_chain(self, node: ast.expr) -> bool:
        """Whether an expression is a chain of attributes and items of something outside."""
        if not _is_plain_chain(node):
            return False
        owner = owner_of(node)
        return isinstance(owner, ast.Name) and not self._local(owner.id)

    # ---- operators: what is combined, compared or shown is read as a whole ----

    def _whole(self, node: ast.expr, hook: str = "whole") -> ast.expr:
        if isinstance(node, ast.Constant):
            return node
        return _hook(hook, node, self.visit(node))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        if isinstance(node.op, ast.MatMult):
            return _product(self.generic_visit(node))
        right = "shown" if isinstance(node.op, ast.Mod) else "operand"
        node.left, node.right = self._whole(node.left, "operand"), self._whole(node.right, right)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if hasattr(node, "ends"):
            return _hook("negated", node, self.visit(_asked(node.operand)))
        if isinstance(node.op, ast.Not):
            node.operand = self._truth(node.operand)
        else:
            node.operand = self._whole(node.operand, "operand")
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            found = _hook("within", node, self.visit(node.left), self._unasked(node.comparators[0]))
            return placed(found if isinstance(node.ops[0], ast.In) else ast.UnaryOp(ast.Not(), found), node)
        sides = [node.left, *node.comparators]
        if _compares_objects(node):
            return _identities(node, [self.visit(side) for side in sides])
        if all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            sides = [_hook("identity", side, self._unasked(side), ast.Constant(True)) for side in sides]
        elif _asks_for_state(node):  # of what goes round as a number, that alone is asked
            asked: Any = node.left
            owner, facts = self._unasked(asked.value), [ast.Constant(in_class(asked.attr, self.owner)), sides[1]]
            equal = ast.Constant(isinstance(node.ops[0], ast.Eq))
            return _hook("is_state", node, owner, *facts, equal)
        else:
            sides = [self._whole(side, "compared") for side in sides]
        node.left, *node.comparators = sides
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        node.values = list(map(self.visit, node.values))
        return _hook("worded", node, node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        node.value = self._whole(node.value, "shown")
        if isinstance(node.format_spec, ast.JoinedStr):
            node.format_spec.values = list(map(self.visit, node.format_spec.values))
        return node

    def visit_Starred(self, node: ast.Starred) -> Any:
        if isinstance(node.ctx, ast.Load):
            node.value = _hook("iterate", node.value, self.visit(node.value))
        else:
            node.value = self.visit(node.value)
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> Any:
        node.value = _hook("run_over", node.value, self.visit(node.value))
        return node

    def visit_Dict(self, node: ast.Dict) -> Any:
        node.values = [
            self.visit(value) if key is not None else _hook("mapping", value, self.visit(value))
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        node.keys = [key and _hashed(self.visit(key)) for key in node.keys]
        return node

    def visit_Set(self, node: ast.Set) -> Any:
        self.generic_visit(node)
        node.elts = [item if isinstance(item, ast.Starred) else _hashed(item) for item in node.elts]
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        node.value = self.visit(node.value)
        if not self._local(node.target.id):
            node.value = _hook("wrote", node.value, ast.Constant(node.target.id), node.value)
        return node

    # ---- calls, iteration, tests ----

    def visit_Call(self, node: ast.Call) -> Any:
        name = _called_name(node)
        if name in FRAME_READERS and not self._local(name) and not (name == "vars" and node.args):
            node.args = [*map(self.visit, node.args)]
            return node if name == "super" else _hook("frame_reader", node, ast.Constant(name), node)
        if name in _OWN:
            made = _hook(_OWN[name], node, *map(self.visit, node.args))
            if name != ROWS_OF or hasattr(node, "chosen_from"):
                return made
            return _hook("given_back", node, made, ast.Constant(getattr(node, "given_back", None)))
        node.lends = _may_lend(node)  # type: ignore[attr-defined]
        one = len(node.args) == 1 and not node.keywords
        if one and name == "len" and isinstance(node.args[0], _HELD):
            part = isinstance(node.args[0], ast.Subscript) and isinstance(node.args[0].slice, ast.Slice)
            given = self._given(node.args[0]) if part else self._unasked(node.args[0])
            return _hook("length", node, self.visit(node.func), given)
        if one and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            owner: Any = node.func.value
            if is_default(owner):
                parts = self._unasked(owner.func.value), *map(self.visit, owner.args)
                node.func.value = _hook("given_default", owner, *parts)
            else:
                node.func.value = self._unasked(owner)
            node.func = _attribute(node.func, self.owner)
        else:
            node.func = self.visit(node.func)
        node.args = [*map(self._lent if node.lends else self._given if is_plain_call(node) else self.visit, node.args)]  # type: ignore[attr-defined]
        if hasattr(node, "best") and not isinstance(node.args[0], ast.Name):
            node.args = [_hook("handed", node, *node.args, ast.Constant(node.best))]
        value = self._lent if node.lends else self.visit  # type: ignore[attr-defined]
        node.keywords = [
            placed(ast.keyword(k.arg, value(k.value) if k.arg else _hook("mapping", k.value, self.visit(k.value))), k)
            for k in node.keywords
        ]
        return _followed(node)

    def _given(self, value: ast.expr, way: str = "for") -> Any:
        """What a function is given: an attribute, or an item, may be a list of which nobody needs to know yet which items it
        has."""
        made = self.visit(value)
        if isinstance(value, _HELD) and made.func.attr in ("attribute", "item"):
            made.func.attr = f"{made.func.attr}_{way}"
        return made

    def _lent(self, value: ast.expr) -> Any:
        """The same where a function of the user's may be given what holds a list, or its ``append``."""
        if is_append_of(value) and isinstance(value.value, _HELD):  # type: ignore[attr-defined]
            return _hook("append_of", value, self._unasked(value.value))  # type: ignore[attr-defined]
        made = self._given(value)
        if isinstance(value, ast.Attribute) and made.func.attr == "attribute_for":
            made.func.attr = "lent"
        return made

    def _unasked(self, value: ast.expr) -> Any:
        """What an item is read of, or appended to, or how long it is, or whether it is None: an attribute, or an item, which
        nothing else is done with."""
        return self._given(value, "unasked")

    def visit_For(self, node: ast.For) -> Any:
        """``loop = hooks.loop(...); for ... in loop:``, with the numbers that go round traced before it begins."""
        loop, private, doubtful, stored, numbers, tested = self._loop(node)
        private = None if hasattr(node, "sections") else private
        effects = self._effects(node.target)
        nested = _nested(node.target) if isinstance(node.target, (ast.Tuple, ast.List)) else None
        used = used_between(node, tested)
        passing = self._anew(node, stored, used[0], tested)
        _mark_passing(node, {*passing}.intersection((*(private or ()), *doubtful)))
        anew = _constant(passing)
        decides = int(node.decides) and (1 if tested else 2)  # type: ignore[attr-defined]
        known = [ast.Constant(tested), ast.Constant(nested), anew, ast.Constant(decides)]
        lists, chosen = self._appended(loop, node)
        known.append(_constant(tuple(lists)))
        names = [_own_names(node, private, doubtful), _iterated(node, stored)]
        if hasattr(node, "section"):
            made = _hook("section", node, *names, anew)
        elif hasattr(node, "room"):
            site = _constant((node.lineno, node.col_offset))
            made = _hook("room", node, site, *names, anew, ast.Constant(decides), known[-1], self._apart(node))
        else:
            own = () if private is None else (*names_stored(node.target),) if tested else (*private, *doubtful)
            part = node.iter, node.target, decides, changed_in(node.body)
            found = self._span(node, own) or self._part(*part, records=bool(decides) or not lists)
            made = _hook("loop", node.iter, found, *names, *known, self._apart(node))
        start = assigned(loop, made, node)
        node.iter = placed(ast.Name(loop, ast.Load()), node.iter)
        before, self.places = self.places, [*self.places, *counted_by(node)]
        node.target = self.visit(node.target)
        node.body, node.orelse = [*effects, *self._repeated(loop, node, stored, private, used)], self._body(node.orelse)
        self.places = before
        self._loops -= 1
        gone = assigned(loop, ast.Constant(None), node)  # a generator ends with its loop
        return [start, *numbers, node, *chosen, gone]

    def visit_While(self, node: ast.While) -> Any:
        """``loop = hooks.start(...); while hooks.again(loop, test):``, or without the test where that is ``True``."""
        loop, private, doubtful, stored, numbers, tested = self._loop(node)
        used = used_between(node, tested)
        passing = self._anew(node, stored, used[0], tested)
        _mark_passing(node, {*passing}.intersection((*(private or ()), *doubtful)))
        anew = _constant(passing)
        facts = [_own_names(node, private, doubtful), _iterated(node, stored), anew, self._apart(node)]
        made = _hook("start", node, *facts, ast.Constant(node.lineno))
        start = assigned(loop, made, node)
        if not isinstance(node.test, ast.Constant):
            whole, together = node.test, _looked_at_together(node.test)
            _mark_ends(whole)
            test = self.visit(_asked(whole))
            if together:
                names = _constant(tuple(sorted(together)))
                parts = [_hook("part", part, ast.Name(loop, ast.Load()), part, names) for part in test.values[:-1]]
                test.values[:-1] = parts
            node.test = _hook("again", whole, ast.Name(loop, ast.Load()), test)
        node.body, node.orelse = self._repeated(loop, node, stored, private, used), self._body(node.orelse)
        self._loops -= 1
        return [start, *numbers, node]

    def _anew(self, node: ast.For | ast.While, stored: Collection[str], used: Set[str], tested: bool) -> tuple[str, ...]:
        """The locals that an iteration assigns before it reads them; ``used`` are those that it may read."""
        targets, leaving = names_stored(node.target) if isinstance(node, ast.For) else [], way_out(node)
        if tested and leaving is not None:  # by which each iteration begins its turn
            every = {*targets, *stored} - used_from(node, leaving)
        else:
            every = {*targets, *({*stored} - used)}
        return tuple(sorted(every.difference(self.used[-1].later.difference(targets), *map(names_read, node.orelse))))

    def _apart(self, node: ast.For | ast.While) -> ast.expr:
        """The locals that a loop has nothing to do with, nor what it may call."""
        named = {name.id for name in walk(node) if isinstance(name, ast.Name)}
        every = self.scopes[-1][0] if named.isdisjoint(LOCAL_READERS) else set[str]()
        return _constant(tuple(sorted(every - named - self.used[-1].later)))

    def _repeated(
        self,
        loop: str,
        node: ast.For | ast.While,
        stored: Sequence[str],
        private: Sequence[str] | None,
        used: Sequence[frozenset[str]],
    ) -> list[ast.stmt]:
        """The body of a loop, which is told where all ways through a statement meet again; ``used``: see ``used_between``."""
        assigned = {*stored, *(names_stored(node.target) if isinstance(node, ast.For) else ())} - self.used[-1].later
        live = live_between(node, frozenset(assigned.difference(private or ())))
        facts = [_constant((node.lineno, node.col_offset)), _constant(tuple(sorted(assigned - live[0])))]
        result: list[ast.stmt] = [placed(ast.Expr(_hook("inner", node, ast.Name(loop, ast.Load()), *facts)), node)]
        self.around[-1].append(loop)
        for number, statement in enumerate(node.body):
            joins = number + 1 < len(node.body) and private is not None and not hasattr(statement, "leaves")
            if _goes_on(statement):
                private = None  # from here on, some ways miss what the others do
            elif joins and private is not None and any([isinstance(item, _DECIDING) for item in walk(statement)]):
                names = [_constant(tuple(sorted(assigned - places[number + 1]))) for places in (live, used)]
                met = _hook("met", statement, ast.Name(loop, ast.Load()), ast.Constant(number), *names)
                result += [*self._body([statement]), placed(ast.Expr(met), statement)]
                continue
            result += self._body([statement])
        self.around[-1].pop()
        return result

    def visit_Break(self, node: ast.Break) -> Any:
        """The loop is told: it ends in the middle of an iteration."""
        return [
            placed(ast.Expr(_hook("left", node, ast.Constant(None), ast.Name(self.around[-1][-1], ast.Load()))), node),
            node,
        ]

    def visit_Return(self, node: ast.Return) -> Any:
        """All loops are told that it ends."""
        self.generic_visit(node)
        if self.around[-1]:
            value = node.value or placed(ast.Constant(None), node)
            node.value = _hook("left", value, value, *[ast.Name(loop, ast.Load()) for loop in reversed(self.around[-1])])
        return node

    def _loop(
        self, node: ast.For | ast.While
    ) -> tuple[str, tuple[str, ...] | None, tuple[str, ...], tuple[str, ...], list[ast.stmt], bool]:
        """A name for a loop; the names that it assigns and nothing else reads, None where others run between its iterations;
        those of which that is so unless they stand for arrays, which may have other names; all that it assigns; statements that
        trace its numbers; whether it ends by an ``if``, which is marked with that name."""
        self._loops += 1
        loop = f"{HOOKS[:-2]}_loop_{self._loops}__"  # no name that a class makes its own
        self.scopes[-1][0].add(loop)
        leaving = way_out(node)
        inside = Counter[str]()
        for part in [*node.body, *([node.test] if isinstance(node, ast.While) else [])]:
            inside += names_read(part)
        outside = Counter[str]()
        if leaving is not None:
            leaving.leaves = loop  # type: ignore[attr-defined]
            ends = isinstance(node, ast.For) and not hasattr(node, "room")  # for room, the loop has a test
            rest = node.body[node.body.index(leaving) + 1 :] if ends else []
            for part in leaving.body:  # it runs when the loop is over
                outside += names_read(part)
            from_before = live(rest, frozenset(), Ends())
            for part in rest:  # and this in the last iteration, behind all tests
                outside += Counter({name: often for name, often in names_read(part).items() if name in from_before})
            inside -= outside
        stores = {name for statement in node.body for name in names_stored(statement)} & self.scopes[-1][0]
        around, counted = frozenset[str](), frozenset[str]()
        if any([isinstance(part, ast.Call) for part in walk(node)]):
            around, counted = [names & self.scopes[-1][0] for names in (self.used[-1].assigned, self.used[-1].counted)]
        stores |= around
        target = set(names_stored(node.target)) if isinstance(node, ast.For) else set()
        every = self.used[-1].read
        dead = self._dead(node) - outside.keys()
        changed = dead and self._changed(node) - decoded_in(node)
        # what iterations have come to, the next run of the loop may read, if there is one around
        kept = getattr(node, "live", every.keys() if leaving is not None or self._loops > 1 else ())
        own = {name for name in stores | target if every[name] == inside[name] and name not in kept}
        private = tuple(sorted(own | ((stores | target) & (dead - changed))))
        doubtful = tuple(sorted(dead.intersection(stores | target) - {*private}))
        counting = _counted([*walk(node)]) | counted | codes_in(node)
        below = [*_below_ifs(node.body)]
        _mark_toggles([*_below_ifs(node.body, True)])
        places = {*self.places, *[name for item in walk(node) if isinstance(item, ast.For) for name in counted_by(item)]}
        counting |= {name for statement in below for name in _flags(statement)}
        rebuilt = {name for statement in below for name in _rebuilt(statement)}
        body = [*_below_ifs(node.body, True)]
        counting |= _noted_places(below, places) | _measured(node, body if below else []) | rebuilt
        decides = node.decides  # type: ignore[union-attr]
        given = [one for one in body if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)] if decides else []
        several = [one.targets[0] for one in given if isinstance(one.targets[0], ast.Tuple)]
        counting |= {name for target in several for name in names_stored(target)} - _used_as_places(node)
        for one in given:
            items = one.targets[0].elts if isinstance(one.targets[0], ast.Tuple) else []
            one.parts = loop, [getattr(item, "id", "") in counting for item in items]  # type: ignore[attr-defined]
        first: list[ast.stmt] = []
        chosen = {name for statement in below for name in names_stored(statement)} & stores
        behind = _stored_beside(node, leaving) & outside.keys()
        for name in sorted((stores - target) & (inside.keys() | behind | around | (chosen - set(private)))):
            facts = ast.Name(loop, ast.Load()), ast.Constant(name), ast.Name(name, ast.Load())
            read = _hook("number", node, *facts, ast.Constant(name in counting), ast.Constant(bool(chosen) or decides))
            first.append(assigned(name, read, node))
        if any([isinstance(item, (ast.For, ast.While)) for item in node.body]):  # which may run no iteration
            for statement in node.body:
                if isinstance(statement, ast.Assign):
                    statement.numbers = loop, []  # type: ignore[attr-defined]
        anything = hasattr(node, "section")
        for statement in _below_ifs(node.body, bool(chosen) or anything):  # a number that is put in place of what goes round
            if isinstance(statement, ast.Assign):
                known = stores & (inside.keys() | chosen)
                found = _resets(statement, anything)
                reset = [one for one in found if not isinstance(one[0], ast.Name) or one[0].id in known]
                reset = [(item, i, counts or getattr(item, "id", "") in counting) for item, i, counts in reset]
                statement.numbers, statement.rebuilt = (loop, reset), rebuilt  # type: ignore[attr-defined]
        whiles = [item for item in walk(node) if isinstance(item, ast.While)]  # which some iterations may not enter
        put = _put_into([*below, *[item for one in whiles for statement in one.body for item in walk(statement)]])
        used = _used_by_calls(node)
        calls = ast.Constant(node.fills), _constant(node.attributes)  # type: ignore[union-attr]
        for name in sorted((put.keys() | used) & inside.keys() & self.scopes[-1][0] - target - decoded_in(node)):
            owned = _constant(tuple([(*place, counts) for place, counts in put.get(name, {}).items()]))
            owner = ast.Constant(name), ast.Name(name, ast.Load())
            first.append(ast.Expr(_hook("numbers", node, ast.Name(loop, ast.Load()), *owner, owned, *calls)))
        settled = self.scopes[-1][0] - stores - target
        for name, made_of in _filled(node):
            if name in settled:
                names = [ast.Name(item, ast.Load()) for item in (name, *sorted(made_of & settled))]
                first.append(ast.Expr(_hook("filled", node, *names)))
                if chosen:  # some iterations may not
                    more = sorted(made_of & stores - target)
                    first += [ast.Expr(_hook("filled", node, names[0], ast.Name(item, ast.Load()))) for item in more]
        node.grows = appended(node, self.scopes[-1][0]) if isinstance(node, ast.For) else []  # type: ignore[union-attr]
        grown = {one.name for one in node.grows}  # type: ignore[union-attr]
        for name in sorted(_looked_up(node, stores | target) - stores - target - grown):
            if name in settled or not self._local(name):
                read = self.visit(placed(ast.Name(name, ast.Load()), node))
                first.append(ast.Expr(_hook("looked_up", node, ast.Name(loop, ast.Load()), read, ast.Constant(decides))))
        numbers = [self._if_bound(statement, node) for statement in first]
        return loop, None if _pauses(node) else private, doubtful, tuple(sorted(stores)), numbers, leaving is not None

    def _dead(self, loop: ast.For | ast.While) -> set[str]:
        """The locals that nobody reads when a loop is over, before they are assigned again, as far as that is known."""
        used = self.used[-1]
        if not hasattr(loop, "live") or not used.read.keys().isdisjoint(LOCAL_READERS):
            return set()
        read: frozenset[str] = loop.live | used.later
        return self.scopes[-1][0] - read

    def _changed(self, loop: ast.For | ast.While) -> set[str]:
        """The locals whose arrays a loop may change in place, by their names or by others, as far as its text tells."""
        changed = {name for part in walk(loop) for name in _changed_by(part)}
        more = set(changed)
        while more:
            new = {other for name in more for other in self.used[-1].made_of.get(name, ())} - changed
            changed |= new
            more = new
        return changed

    def _appended(self, loop: str, node: ast.For) -> tuple[list[tuple[str, int, bool, str]], list[ast.stmt]]:
        """The lists that a loop only appends to, and what follows it: of those to which not all iterations do, the function
        gets what there is."""
        lists: list[Appended] = node.grows  # type: ignore[attr-defined]
        after: list[ast.stmt] = []
        for name, _, some, statements, read, _ in lists:
            for statement in statements:
                statement.appends = loop, name
            for item in read:
                item.grown = loop, name
            if some:
                facts = ast.Constant(name), ast.Constant(name in getattr(node, "kept", ()))
                made = _hook("chosen", node, ast.Name(name, ast.Load()), ast.Name(loop, ast.Load()), *facts)
                after.append(self._if_bound(assigned(name, made, node), node))
        return [(one.name, one.deepest, one.some, one.constants) for one in lists], after

    def _if_bound(self, statement: ast.stmt, like: ast.AST) -> ast.stmt:
        """A statement that does nothing where a local that it reads has no value yet."""
        unbound = ast.Attribute(ast.Name(HOOKS, ast.Load()), "Unbound", ast.Load())
        return placed(ast.Try([statement], [ast.ExceptHandler(unbound, None, [ast.Pass()])], [], []), like)  # type: ignore[no-any-return]

    def visit_Expr(self, node: ast.Expr) -> Any:
        loop, name = getattr(node, "appends", ("", ""))
        self.generic_visit(node)
        if name:
            parts = node.value, ast.Name(loop, ast.Load()), ast.Constant(name), ast.Name(name, ast.Load())
            node.value = _hook("appended", node.value, *parts)
        return node

    def visit_If(self, node: ast.If) -> Any:
        loop = getattr(node, "leaves", None)
        if loop is None:
            return self._tested(node)
        _mark_ends(node.test)
        node.test = _hook("ends", node.test, ast.Name(loop, ast.Load()), self._condition(node.test))
        node.body = self._body(node.body)
        return node

    def _span(self, loop: ast.For, names: Sequence[str]) -> Any:
        """``range(...)`` that a ``for`` statement runs over, with its target if that is one of these names; None for others."""
        node, target = loop.iter, loop.target
        if not is_range(node):
            return None
        if self._local("range") or not isinstance(target, ast.Name) or any([isinstance(arg, ast.Starred) for arg in node.args]):
            return None
        name = ast.Constant(target.id if target.id in names else None)
        return _hook("span", node, self.visit(node.func), name, *map(self.visit, node.args))

    def _stretch(self, node: Any) -> Any:
        """``items[i + 1:]`` that a ``for`` statement runs over; None for others, and for constant ends."""
        if not _is_part(node):
            return None
        given = [ast.Constant(None) if end is None else self.visit(end) for end in (node.slice.lower, node.slice.upper)]
        return _hook("stretch", node, self.visit(node.value), *given)

    def _over(self, node: ast.expr, target: ast.expr | None, decides: int, changed: Set[str]) -> Any:
        """What a ``for`` statement, which ``decides``, runs over; ``zip`` and its like are left to the hook, which may do it by
        index. Of which names it has ``changed`` what is in them."""
        if not isinstance(node, ast.Call) or any(item.arg is None for item in node.keywords):
            return self.visit(node)
        made = getattr(node.func, "attr", _called_name(node))
        if made not in _BY_INDEX or (made in _LAZY and self._local(made)):
            return self.visit(node)
        parts = _parts(node, target)
        args = [self._part(*pair, decides, changed, bool(decides), True) for pair in zip(node.args, parts, strict=True)]
        made = _hook("over", node, self.visit(node.func), ast.Constant(decides), *args)
        made.keywords = [placed(ast.keyword(item.arg, self.visit(item.value)), item) for item in node.keywords]
        return placed(made, node)

    def _part(
        self, node: ast.expr, target: ast.expr | None, decides: int, changed: Set[str], records: bool, given: bool = False
    ) -> Any:
        """What a ``for`` statement runs over, or what ``zip`` and its like are ``given``; the items of which are assigned to
        ``target``, where that is known; they may be ``records``."""
        found = (None if given else self._stretch(node)) or self._over(node, target, decides, changed)
        if isinstance(target, ast.Name) and records and target.id not in changed:
            return _hook("records", node, found, ast.Constant(decides))
        if not (given and isinstance(target, (ast.Tuple, ast.List))):
            return found
        return _hook("rows", node, found, ast.Constant(_nested(target)), ast.Constant(decides))

    def visit_With(self, node: ast.With) -> Any:
        effects = [e for item in node.items if item.optional_vars for e in self._effects(item.optional_vars)]
        for item in node.items:
            item.context_expr = _hook("manager", item.context_expr, self.visit(item.context_expr))
            item.optional_vars = item.optional_vars and self.visit(item.optional_vars)
        node.body = [*effects, *self._body(node.body)]
        return node

    def visit_Import(self, node: ast.Import) -> Any:
        names = {name: None for item in node.names for name in (item.name.split(".")[0], item.name)}
        return [node, *[placed(ast.Expr(_hook("module", node, ast.Constant(name))), node) for name in names]]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """What is imported inside the function comes from outside, too."""
        reads = []
        for item in node.names:
            name = item.asname or item.name
            given = [ast.Constant(node.module or ""), ast.Constant(node.level), ast.Constant(item.name)]
            value = _hook("imported", node, *given, ast.Name(name, ast.Load()))
            reads.append(assigned(name, value, node))
            reads += [] if self._local(name) else [placed(ast.Expr(_hook("wrote_name", node, ast.Constant(name))), node)]
        return [node, *reads]

    def visit_Assign(self, node: ast.Assign) -> Any:
        (target, *others) = node.targets
        if not others:
            self._mark_number(target)
        alone = not others and isinstance(target, ast.Attribute)
        effects = [effect for target in node.targets for effect in self._effects(target, node.value, alone)]
        loop, reset = getattr(node, "numbers", ("", ()))
        item = isinstance(node.value, (ast.Attribute, ast.Subscript)) and isinstance(self, _InSections)
        apart = not others and isinstance(target, (ast.Tuple, ast.List))  # nobody gets the object itself
        value: Any = self._unasked(node.value) if apart else self.visit(node.value)
        if loop:
            value = _under_another_name(value) if item else _renamed(value, target, getattr(node, "passing", None))
        for target, i, counts in reset:
            given = value if i is None else value.elts[i]
            facts = [ast.Name(loop, ast.Load()), ast.Constant(ast.unparse(target)), given, ast.Constant(counts)]
            if not isinstance(target, ast.Name):
                facts += [ast.Constant(False), copied(target.value)]
            elif target.id in getattr(node, "rebuilt", ()):
                facts[-1:] = [ast.Constant(True), ast.Constant(True)]
            number = _hook("number", given, *facts)
            if i is None:
                value = number
            else:
                value.elts[i] = number
        if hasattr(node, "parts"):  # numbers in a tuple that a call gives
            turning, counted = node.parts
            known = ast.Name(turning, ast.Load()), ast.Constant(ast.unparse(target)), value, _constant(tuple(counted))
            value = _hook("parts", value, *known)
        if effects and any([self._may_move(target, node.value) for target in node.targets]):
            value, effects = _then(value, effects), []
        node.value = self._kept(value, node.targets)
        unpacking = [target for target in node.targets if isinstance(target, (ast.Tuple, ast.List))]
        if unpacking:
            nested = ast.Constant(any(map(_nested, unpacking)))
            names = [target.id if isinstance(target, ast.Name) else None for target in unpacking[0].elts]
            node.value = _hook("unpack", node.value, node.value, nested, _constant(tuple(names)))
        node.targets = [self.visit(target) for target in node.targets]
        return [*effects, node]

    def _mark_number(self, target: ast.expr) -> None:
        """A single target that may stand for a number outside, which code can set as well."""
        if isinstance(target, ast.Name):
            named = len(self.scopes) == 1 and not self._local(target.id)
        elif isinstance(target, ast.Subscript):
            named = isinstance(target.slice, (ast.Constant, ast.Name)) and _is_plain_chain(target.value)
            named = named and not hasattr(target, "places")
        else:
            named = isinstance(target, ast.Attribute) and _is_plain_chain(target.value)
        if named:
            target.sets = True  # type: ignore[attr-defined]

    def _place_set(self, target: Any) -> list[ast.expr]:
        """Where such a target is: its owner, if that is none of the function's variables, and how it is found there."""
        if isinstance(target, ast.Name):
            return [ast.Constant(target.id)]
        named = isinstance(target, ast.Attribute)
        key = ast.Constant(in_class(target.attr, self.owner)) if named else copied(target.slice)
        return [self.visit(copied(target.value)), ast.Constant("attr" if named else "item"), key]

    def _kept(self, value: Any, targets: Sequence[ast.expr], how: str | None = None) -> Any:
        """What is assigned, or combined with what is there as an operator says (``how``): plain where what it is assigned to
        outlives the call."""
        for target in targets:
            if isinstance(target, (ast.Tuple, ast.List)):
                parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
                if len(target.elts) == len(parts) and not any(isinstance(part, ast.Starred) for part in (*target.elts, *parts)):
                    value.elts = [self._kept(part, [to]) for part, to in zip(parts, target.elts, strict=True)]
            elif hasattr(target, "table"):
                hook = "table_made" if isinstance(target, ast.Name) else "table_entry"
                value = _hook(hook, value, value, _constants(target.table))
            elif hasattr(target, "sets"):
                hook = "assigned" if isinstance(target, ast.Name) else "stored"
                value = _hook(hook, value, value, *self._place_set(target), ast.Constant(how))
            elif isinstance(target, ast.Name) and not self._local(target.id):
                value = _hook("kept", value, value)
            elif isinstance(target, (ast.Attribute, ast.Subscript)) and _is_plain_chain(target.value):
                value = _hook("stored", value, value, self.visit(copied(target.value)))
        return value

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self._mark_number(node.target)
        effects = self._effects(node.target, node.value)
        if isinstance(node.target, ast.Name) and not (effects or hasattr(node.target, "sets")):  # it may be another's name, too
            name = ast.Name(node.target.id, ast.Load())
            effects = [placed(ast.Expr(_hook("wrote_into", node.target, _hook("changed", node.target, name))), node.target)]
        if isinstance(node.target, (ast.Attribute, ast.Subscript)):
            target: Any = node.target
            named = isinstance(target, ast.Attribute)
            key: Any = ast.Constant(in_class(target.attr, self.owner)) if named else target.slice
            facts = copied(key), ast.Constant(named)
            if isinstance(key, (ast.Constant, ast.Name)) and _is_plain_chain(target.value):
                changed = _hook("changed_in", target, self.visit(copied(target.value)), *facts)
                effects = [*effects, placed(ast.Expr(changed), target)]
            elif isinstance(key, (ast.Constant, ast.Name)):
                target.facts = facts
        node.value = self._kept(self._whole(node.value), [node.target], type(node.op).__name__)
        node.target = self.visit(node.target)
        return [*effects, node]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        effects = self._effects(node.target)
        node.annotation = ast.copy_location(ast.Constant(None), node.annotation)
        node.value = node.value and self._kept(self.visit(node.value), [node.target])
        node.target = self.visit(node.target)
        return [*effects, node]

    def visit_Delete(self, node: ast.Delete) -> Any:
        return [*(effect for target in node.targets for effect in self._effects(target)), self.generic_visit(node)]

    def _may_move(self, target: ast.expr, value: ast.expr) -> bool:
        """Whether the object may be another, an item or an attribute of which is assigned, when the value has been computed."""
        if isinstance(target, (ast.Tuple, ast.List)):
            return any([self._may_move(item, value) for item in target.elts])
        if not isinstance(target, (ast.Attribute, ast.Subscript)):
            return isinstance(target, ast.Starred) and self._may_move(target.value, value)
        every = [*walk(value)]
        bound = {part.target.id for part in every if isinstance(part, ast.NamedExpr)}
        if not bound.isdisjoint(names_read(target.value)):
            return True
        known = isinstance(target.value, ast.Name) and target.value.id not in self.shared
        return not known and any(map(_may_do_anything, every))

    def _meets(self, value: ast.expr) -> list[str]:
        """The locals that an iteration surely reads for what it assigns."""
        maybe = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.NamedExpr, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)
        for part in walk(value):
            own = isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and self._local(part.func.id)
            if own or isinstance(part, maybe):  # a function of its own may assign what is read after it
                return []
        return [name for name in names_read(value) if self._local(name)]

    def _effects(self, target: ast.expr, value: ast.expr | None = None, alone: bool = False) -> list[ast.stmt]:
        """Statements that report a write, of this ``value``, to something outside the function; of what an attribute has
        before, unless it is ``alone``, which is reported when the value has been computed."""
        if isinstance(target, (ast.Tuple, ast.List)):
            return [effect for item in target.elts for effect in self._effects(item, value)]
        if isinstance(target, ast.Starred):
            return self._effects(target.value, value)
        if isinstance(target, ast.Name):
            if target.id in self.scopes[-1][0]:
                return []
            if self._local(target.id):
                return [placed(ast.Expr(_hook("wrote_around", target, _reading(target))), target)]
            if hasattr(target, "sets"):
                return []
            return [placed(ast.Expr(_hook("wrote_name", target, ast.Constant(target.id))), target)]
        if isinstance(target, (ast.Attribute, ast.Subscript)) and _is_plain_chain(target.value):
            met = self._meets(value) if self._loops and value is not None else []
            seen = [self.visit(copied(target.value))]
            if hasattr(target, "sets") and isinstance(target, ast.Attribute):
                seen = self._place_set(target)
            elif hasattr(target, "sets"):  # its index is looked at after the value
                seen += [ast.Constant("item"), ast.Constant(None)]
            hook = "sets" if hasattr(target, "sets") else "wrote_into"
            calls = [_hook(hook, target, *seen, *(ast.Name(name, ast.Load()) for name in met))]
            if isinstance(target, ast.Attribute) and not alone:
                name = ast.Constant(in_class(target.attr, self.owner))
                calls.insert(0, _hook("asked_of", target, self.visit(copied(target.value)), name))
            return [placed(ast.Expr(call), target) for call in calls]
        return []  # what another expression gives is looked up once: see ``_assigned_in``

    def _tested(self, node: Any) -> Any:
        whole, node.test = node.test, placed(ast.Constant(None), node.test)
        self.generic_visit(node)
        node.test = _hook("test", whole, self._condition(whole))
        return node

    def _condition(self, test: ast.expr) -> Any:
        """A test; in a loop, where the parts of an ``and`` or ``or`` may be looked at together, they are."""
        _asked(test)
        if isinstance(test, _HELD):
            return _hook("handed", test, self._given(test), ast.Constant("test"))
        if not self._loops or not isinstance(test, ast.BoolOp) or not all(map(_is_harmless, test.values[1:])):
            return self.visit(test)
        every = ast.Constant(isinstance(test.op, ast.And))
        names = [set(names_read(part)) for part in test.values]
        whole = self.visit(test)
        for i, part in enumerate(whole.values[:-1]):
            later = _constant(tuple(sorted(set().union(*names[i + 1 :]))))
            whole.values[i] = _hook("aside", part, part, every, ast.Constant(i == 0), later)
        return _hook("together", whole, whole, every)

    visit_IfExp = _tested

    def visit_Assert(self, node: ast.Assert) -> Any:
        """``if __debug__ and not test: raise AssertionError(message)``."""
        test = ast.UnaryOp(ast.Not(), self._truth(node.test))
        words = [self.visit(node.msg)] if node.msg is not None else []
        failed = ast.Raise(_hook("failed", node, *words), None)
        return placed(ast.If(ast.BoolOp(ast.And(), [ast.Name("__debug__", ast.Load()), test]), [failed], []), node)

    def _truth(self, test: ast.expr) -> Any:
        """An expression that is but asked for its truth."""
        return _hook("test", test, self._condition(test) if isinstance(test, _HELD) else self.visit(_asked(test)))

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """``hooks.answer(hooks.asked(a) or b)``: an object whose class says what is true is itself the result."""
        if hasattr(node, "asked"):
            node.values = [_hook("test", value, self.visit(value)) for value in node.values]
            return node
        *before, last = node.values
        node.values = [*[_hook("asked", value, self.visit(value)) for value in before], self.visit(last)]
        return _hook("answer", node, node)

    def visit_Try(self, node: Any) -> Any:
        leaves = any(isinstance(item, (ast.Return, ast.Break, ast.Continue)) for s in node.finalbody for item in walk(s))
        floats = ast.Constant(max([_catches_floats(handler) for handler in node.handlers], default=0))
        self.generic_visit(node)
        if leaves:
            node.finalbody = [placed(ast.Expr(_hook("swallowed", node)), node.finalbody[0]), *node.finalbody]
        if node.handlers:
            start = placed(ast.Expr(_hook("trying", node, ast.Constant(True), floats)), node)
            end = placed(ast.Expr(_hook("trying", node, ast.Constant(False))), node)
            node.body = [start, *node.body]
            for handler in node.handlers:
                if handler.type is not None:
                    handler.type = _hook("whole", handler.type, handler.type)  # a tuple may be from outside
                caught = placed(ast.Expr(_hook("caught", handler)), handler)
                handler.body = [caught, *handler.body]
            return [placed(ast.Try([node], [], [], [end]), node)]
        return node

    visit_TryStar = visit_Try

    def visit_Raise(self, node: ast.Raise) -> Any:
        self.generic_visit(node)
        if node.exc is not None:
            node.exc = _hook("raised", node.exc, node.exc)
        return node

    def visit_Match(self, node: ast.Match) -> Any:
        patterns = [item for case in node.cases for item in walk(case.pattern)]
        node.subject = _hook("whole", node.subject, self.visit(node.subject))
        if any(isinstance(item, ast.MatchClass) for item in patterns):
            node.subject = _hook("matched", node.subject, node.subject)
        if any(isinstance(item, ast.MatchSingleton) and item.value is not None for item in patterns):
            depth = max(_depth(case.pattern) for case in node.cases)
            node.subject = _hook("flagged", node.subject, node.subject, ast.Constant(depth))
        values = [item.value for item in patterns if isinstance(item, ast.MatchValue)]
        named = [copied(item) for item in values if isinstance(item, ast.Attribute)]
        reads = [placed(ast.Expr(_hook("fixed", item, self.visit(item))), item) for item in named]
        for case in node.cases:
            if case.guard is not None:
                case.guard = self._truth(case.guard)
            case.body = self._body(case.body)
        return [*reads, node]


_OF_NO_NUMBER = frozenset(
    "AssertionError AttributeError EOFError ImportError IndexError KeyError LinAlgError LookupError ModuleNotFoundError "
    "NameError NotImplementedError OSError OverflowError RecursionError StopIteration TypeError UnboundLocalError UnicodeError "
    "ValueError ZeroDivisionError".split()
)


def _catches_floats(handler: ast.ExceptHandler) -> int:
    """Whether it may catch what NumPy raises, where it is asked to, for numbers that are too large, or none; 2 for warnings."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {getattr(kind, "attr", getattr(kind, "id", "")) for kind in kinds} - _OF_NO_NUMBER
    return 2 if names - {"ArithmeticError", "FloatingPointError"} else int(bool(names))


class _InSections(_Rewriter):
    """The same, for functions with sections."""


def _depth(pattern: ast.AST) -> int:
    """How deep a pattern looks into what it is compared with."""
    within = max(map(_depth, parts_of(pattern)), default=0)
    return within + isinstance(pattern, (ast.MatchSequence, ast.MatchMapping, ast.MatchClass))


def _parts(node: Any, target: Any) -> list[ast.expr | None]:
    """What the items of each argument of ``zip`` or ``enumerate`` are assigned to, where that is known."""
    known = isinstance(target, (ast.Tuple, ast.List)) and not any(
        [isinstance(item, ast.Starred) for item in [*node.args, *target.elts]]
    )
    made = _called_name(node)
    if known and made == "zip" and len(target.elts) == len(node.args):
        return [*target.elts]
    if known and made == "enumerate" and len(target.elts) == 2:
        return [target.elts[1], *[None for _ in node.args[1:]]]
    return [None for _ in node.args]


def _is_part(node: Any) -> bool:
    """Whether it is ``items[a:b]``, where one of these is no constant."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice) or node.slice.step is not None:
        return False
    return not all([end is None or int_of(end) is not None for end in (node.slice.lower, node.slice.upper)])


def _nested(target: ast.Tuple | ast.List) -> bool:
    return any(isinstance(item, (ast.Tuple, ast.List)) for item in target.elts)


def _is_plain_chain(node: ast.expr) -> bool:
    """Whether something is looked up by names and numbers alone, so that looking twice does no harm."""
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and _is_plain_index(node.slice)):
        node = node.value
    return isinstance(node, ast.Name)


def _is_plain_index(node: ast.expr) -> bool:
    if isinstance(node, (ast.UnaryOp, ast.BinOp, ast.Tuple)):
        return all(_is_plain_index(part) for part in parts_of(node) if isinstance(part, ast.expr))
    return isinstance(node, ast.Constant) or _is_plain_chain(node)


def _constant(names: tuple[Any, ...] | None) -> ast.expr:
    return ast.Constant(None) if names is None else ast.Tuple([ast.Constant(name) for name in names], ast.Load())


def _constants(table: Any) -> ast.expr:
    """``(("a", "b"), 1)``."""
    return ast.Tuple([_constants(item) if isinstance(item, tuple) else ast.Constant(item) for item in table], ast.Load())


def _parts_of_index(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _as_value(node: ast.expr) -> Any:
    """A subscript as an expression: slices as calls of ``slice``."""
    if isinstance(node, ast.Slice):
        ends = [end or ast.Constant(None) for end in (node.lower, node.upper, node.step)]
        return _hook("slice", node, *ends)
    if isinstance(node, ast.Tuple):
        return placed(ast.Tuple([_as_value(item) for item in node.elts], ast.Load()), node)
    return node


# what a decision may be in
_DECIDING = (ast.If, ast.IfExp, ast.BoolOp, ast.Assert, ast.Match, ast.Call)


def _goes_on(statement: ast.stmt) -> bool:
    """Whether a statement of a loop may end its iteration by ``continue``."""
    if isinstance(statement, (ast.For, ast.While)):
        return any(map(_goes_on, statement.orelse))
    return isinstance(statement, ast.Continue) or any([_goes_on(s) for s in parts_of(statement) if not isinstance(s, ast.expr)])  # type: ignore[arg-type]


def _pauses(loop: ast.AST) -> bool:
    """Whether a loop is left now and then, and goes on later."""
    return any(isinstance(item, (ast.Yield, ast.YieldFrom, ast.Await)) for item in walk(loop))


def _asked(test: ast.expr) -> ast.expr:
    """A test, whose ``and``s and ``or``s are but asked for their truth: marked."""
    if isinstance(test, ast.BoolOp):
        test.asked = True  # type: ignore[attr-defined]
        for value in test.values:
            _asked(value)
    return test


def _mark_toggles(statements: Sequence[ast.stmt]) -> None:
    """What turns a flag, ``up = not up``, need not look at it for that."""
    for statement in statements:
        value = statement.value if isinstance(statement, ast.Assign) else None
        turned = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not) and names_read(value)
        if turned and turned.keys() & set(names_stored(statement)):
            value.ends = True  # type: ignore[union-attr]


def _mark_ends(test: ast.expr) -> None:
    """What is negated in a test that ends a loop need not be looked at for that."""
    for part in test.values if isinstance(test, ast.BoolOp) else [test]:
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
            part.ends = True  # type: ignore[attr-defined]
            _mark_ends(part.operand)


def _looked_at_together(test: ast.expr) -> set[str]:
    """The names in ``b`` of a test ``a and b``, where ``b`` may be computed though ``a`` is false, if these are numbers."""
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And) or not all(map(_is_harmless, test.values[1:])):
        return set()
    return {name for part in test.values[1:] for name in names_read(part)}


def _is_harmless(node: ast.expr) -> bool:
    """Whether an expression compares, adds and multiplies variables and numbers, and no more."""
    if isinstance(node, ast.Call):
        return (
            isinstance(node.func, ast.Name)
            and node.func.id == "abs"
            and not node.keywords
            and all(map(_is_harmless, node.args))
        )
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)) and _is_harmless(node.left) and _is_harmless(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_harmless(node.operand)
    if isinstance(node, ast.Compare):
        return (
            len(node.ops) == 1
            and isinstance(node.ops[0], _COMPARISONS)
            and all(map(_is_harmless, (node.left, *node.comparators)))
        )
    return isinstance(node, (ast.Name, ast.Constant))


_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def _counted(nodes: Sequence[ast.AST]) -> set[str]:
    """The names that statements count with: ``k += 1``, ``k = 2 * k + 1``, ``y, k = 0.5 * y, k + 1``, ``s = State(s.y, s.k +
    1)``; and those that are made of each other: ``mid = (low + high) // 2``, ``low = mid``."""
    found = {node.target.id for node in nodes if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)}
    pairs = [pair for node in nodes if isinstance(node, ast.Assign) for pair in _pairs(node)]
    made = [(target.id, value) for target, value in pairs if isinstance(target, ast.Name)]
    found |= {name for name, value in made if isinstance(value, (ast.BinOp, ast.UnaryOp)) and name in names_read(value)}
    found |= {name for name, value in made if isinstance(value, (ast.Call, ast.Tuple)) and _counts_within(name, value)}
    of: dict[str, set[str]] = {}
    for name, value in made:
        if all([isinstance(part, _PLAIN_PARTS) for part in walk(value)]):
            of.setdefault(name, set()).update(names_read(value))
    for name in of:
        reached, waiting = set[str](), [name]
        while waiting:
            more = of.get(waiting.pop(), set()) - reached
            reached |= more
            waiting += more
        found |= {name} if name in reached else set()
    return found


def _counts_within(name: str, value: ast.expr) -> bool:
    """Whether an int is added to something in what a name stands for, for a part of what it stands for then."""
    sums = [part for part in walk(value) if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Add, ast.Sub))]
    parts = [one.left for one in sums if _is_int(one.right)]
    return any([isinstance(part, (ast.Attribute, ast.Subscript)) and name in names_read(part) for part in parts])


def _pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """What a statement assigns to what, item by item where both sides are tuples."""
    return paired(node.targets[0], node.value)


def _noted_places(statements: Sequence[ast.stmt], places: Collection[str]) -> set[str]:
    """The names that get numbers made of ``places`` alone: ``k = i``, ``best, k = v, i + 1``; and of such names: ``j = k``."""
    pairs = [pair for statement in statements if isinstance(statement, ast.Assign) for pair in _pairs(statement)]
    made = [
        (target.id, names_read(value).keys())
        for target, value in pairs
        if isinstance(target, ast.Name) and all([isinstance(part, _PLAIN_PARTS) for part in walk(value)])
    ]
    known = {*places}
    while found := {name for name, of in made if of and of <= known} - known:
        known |= found
    return {name for name, of in made if of and of <= known}


_PLAIN_PARTS = (ast.Name, ast.Constant, ast.BinOp)
_OF_INTS = ("range", "int")


def _iterated(node: ast.For | ast.While, stored: Sequence[str]) -> ast.expr:
    """Of the names that a loop stores, those that iterations do, but for the one that ends it."""
    leaving = way_out(node)
    last = {name for statement in (leaving.body if leaving is not None else ()) for name in names_stored(statement)}
    last -= _stored_beside(node, leaving)
    return _constant(tuple([name for name in stored if name not in last]))


def _stored_beside(node: ast.For | ast.While, leaving: ast.If | None) -> set[str]:
    """The names that a loop stores anywhere but where it is left."""
    return {name for statement in node.body if statement is not leaving for name in names_stored(statement)}


def _measured(loop: ast.AST, statements: Sequence[ast.stmt]) -> set[str]:
    """The names that get other values than ints in these statements, and that the ``loop`` compares or computes with, but does
    not use as places: ``best = 0``, ``if v > best: best = v``."""
    pairs = [pair for statement in statements if isinstance(statement, ast.Assign) for pair in _pairs(statement)]
    found = {target.id for target, value in pairs if isinstance(target, ast.Name) and not _is_int(value)}
    # which of two numbers, Python's and NumPy's, these give, hangs on more than their values
    extremes = [one for one, value in pairs if isinstance(value, ast.Call) and _called_name(value) in ("max", "min")]
    found -= {name for one in extremes for name in names_stored(one)}
    every = [*walk(loop)]
    sides = [side for node in every if isinstance(node, ast.Compare) for side in (node.left, *node.comparators)]
    sides += [side for node in every if isinstance(node, ast.BinOp) for side in (node.left, node.right)]
    return {side.id for side in sides if isinstance(side, ast.Name) and side.id in found} - _used_as_places(loop)


def _used_as_places(loop: ast.AST) -> set[str]:
    """The names that tell where a loop reads or writes, or how often something is done."""
    every = [*walk(loop)]
    places = [node.slice for node in every if isinstance(node, ast.Subscript)]
    places += [arg for node in every if isinstance(node, ast.Call) and _called_name(node) in _OF_INTS for arg in node.args]
    return {name for place in places for name in names_read(place)}


def _below_ifs(statements: list[ast.stmt], below: bool = False) -> Iterator[Any]:
    """The statements in ``if``s among these, and in the loops among them; and those that choose what they assign."""
    for statement in statements:
        if below or (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.IfExp)):
            yield statement
        if isinstance(statement, (ast.If, ast.For, ast.While)):
            for part in (statement.body, statement.orelse):
                yield from _below_ifs(part, below or isinstance(statement, ast.If))


def _renamed(value: ast.expr, target: ast.expr, passing: Collection[str] | None) -> Any:
    """What one side of an ``if`` in a loop assigns: of values that have a name already, another one of the same number; or
    array, if neither name is one of those ``passing``, that are done with in each iteration."""
    if isinstance(value, ast.Tuple):
        several = isinstance(target, ast.Tuple) and len(target.elts) == len(value.elts)
        targets = target.elts if several else [target] * len(value.elts)  # type: ignore[attr-defined]
        value.elts = [_renamed(item, to, passing) for item, to in zip(value.elts, targets, strict=True)]
    elif isinstance(value, ast.IfExp):
        value.body, value.orelse = _renamed(value.body, target, passing), _renamed(value.orelse, target, passing)
    elif isinstance(value, ast.Name):
        last = passing is not None and isinstance(target, ast.Name) and {value.id, target.id}.isdisjoint(passing)
        return _under_another_name(value, last)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _READING:
        return _under_another_name(value) if getattr(value.func.value, "id", "") == HOOKS else value
    return value


_READING = frozenset(["item", "item_unasked", "attribute", "attribute_unasked", "glob", "cell"])  # what somebody else holds


def _under_another_name(value: ast.expr, lasts: bool = False) -> ast.expr:
    return _hook("renamed", value, value, ast.Constant(f"{value.lineno}:{value.col_offset}"), ast.Constant(lasts))


def _mark_passing(loop: ast.For | ast.While, names: Set[str]) -> None:
    """What assigns something in a loop that decides, is told which ``names`` each iteration is done with; in loops in one
    another, all are."""
    for statement in walk(loop):
        if isinstance(statement, ast.Assign):
            statement.passing = getattr(statement, "passing", names) & names  # type: ignore[attr-defined]


def _resets(statement: ast.Assign, every: bool = False) -> list[tuple[Any, int | None, bool]]:
    """The names that may get numbers, where, and whether ints are such: ``v = 0.0``, ``v = 1.0 if x > 0 else -1.0``,
    ``v, w = w, 0.0``; and so do items and attributes: ``state["v"] = 0.0``. ``every``: so are ints that a name gets in any
    way."""
    target, value = statement.targets[0], statement.value
    if len(statement.targets) > 1:
        return []
    pairs = paired(target, value)
    whole = pairs == [(target, value)]
    given = [(item, None if whole else i, _may_be_number(part)) for i, (item, part) in enumerate(pairs)]
    names = [(item, i, known or every) for item, i, known in given if isinstance(item, ast.Name)]
    return names + [one for one in given if one[2] and _place(one[0]) is not None]


def _place(target: ast.AST) -> tuple[str, tuple[str, Any]] | None:
    """The name of an object, and the place in it, that is assigned: ``state["v"]``, ``pair[0]``, ``state.v``."""
    if not isinstance(target, (ast.Subscript, ast.Attribute)) or not isinstance(target.value, ast.Name):
        return None
    if isinstance(target, ast.Attribute):
        return target.value.id, ("attr", target.attr)
    key = target.slice.value if isinstance(target.slice, ast.Constant) else None
    return (target.value.id, ("item", key)) if isinstance(key, (str, int)) else None


def _root(target: ast.AST) -> str | None:
    """The name of what has that in it into which something is put: ``state["pair"][0]``, ``state.pair[0]``."""
    if not isinstance(target, (ast.Subscript, ast.Attribute)) or isinstance(target.value, ast.Name):
        return None
    owner = owner_of(target)
    return owner.id if isinstance(owner, ast.Name) else None


def _put_into(statements: list[Any]) -> dict[str, dict[tuple[str, Any], bool]]:
    """The places in objects that statements assign, of each object's name; whether they count there."""
    found: dict[str, dict[tuple[str, Any], bool]] = {}
    for statement in statements:
        if isinstance(statement, (ast.Assign, ast.AugAssign)):
            counts = isinstance(statement, ast.AugAssign)
            for target in (
                [statement.target] if isinstance(statement, ast.AugAssign) else [item for item, _ in _pairs(statement)]
            ):
                name, place = _place(target) or (_root(target), ("within", None))
                if name is not None:
                    found.setdefault(name, {})[place] = counts or found.get(name, {}).get(place, False)
    return found


def _used_by_calls(node: ast.AST) -> set[str]:
    """The names of what calls in a loop are given, and of objects whose methods are called."""
    calls = [part for part in walk(node) if isinstance(part, ast.Call)]
    methods = [part.func.value for part in calls if isinstance(part.func, ast.Attribute)]
    given = [arg for part in calls if isinstance(part.func, ast.Name) or methods for arg in part.args]
    return {item.id for item in [*methods, *given] if isinstance(item, ast.Name)}


def _flags(statement: ast.stmt) -> list[str]:
    """The names that get True or False, or an int, or what a comparison gives."""
    pairs = _pairs(statement) if isinstance(statement, ast.Assign) else []
    return [target.id for target, value in pairs if isinstance(target, ast.Name) and (_is_int(value) or is_truth(value))]


def _rebuilt(statement: ast.stmt) -> list[str]:
    """The names that get tuples, or what calls give, with flags or ints in them: ``state = (x, False)``, ``State(x, 0)``."""
    pairs = _pairs(statement) if isinstance(statement, ast.Assign) else []
    found = [
        (target, value) for target, value in pairs if isinstance(target, ast.Name) and isinstance(value, (ast.Tuple, ast.Call))
    ]
    return [
        target.id for target, value in found if any(map(_is_int, value.elts if isinstance(value, ast.Tuple) else value.args))
    ]


def _is_int(value: ast.expr) -> bool:
    known = isinstance(value, ast.Constant) and isinstance(value.value, int)
    return known or getattr(value, "whole", False)


def _may_be_number(value: ast.expr) -> bool:
    if isinstance(value, ast.IfExp):
        return _may_be_number(value.body) or _may_be_number(value.orelse)
    value = value.operand if isinstance(value, ast.UnaryOp) else value
    return _is_int(value) or (isinstance(value, ast.Constant) and type(value.value) is float)


def _filled(node: ast.AST) -> Iterator[tuple[str, set[str]]]:
    """The names of what statements write items of, and the names that the items are made of."""
    for item in walk(node):
        if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Subscript):
            owner: ast.expr = item.targets[0]
            while isinstance(owner, ast.Subscript):
                owner = owner.value
            if isinstance(owner, ast.Name):
                yield owner.id, set(names_read(item.value))


def _looked_up(node: ast.AST, changing: Collection[str]) -> set[str]:
    """The names of what items are read from, at places that are made of ``changing`` names, and none is written into, nor is a
    list to which a loop around appends."""
    items = [item for item in walk(node) if isinstance(item, ast.Subscript) and isinstance(item.value, ast.Name)]
    others = [item for item in items if not hasattr(item, "grown")]
    read = {item.value.id for item in others if names_read(item.slice).keys() & changing}  # type: ignore[attr-defined]
    return read - {item.value.id for item in items if not isinstance(item.ctx, ast.Load)}  # type: ignore[attr-defined]
