"""What the arguments of a call are: its signature, how a function takes them, and how code checks those that it gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from symgrad import pytree
from symgrad.emit.names import Names
from symgrad.equal import told
from symgrad.errors import NotDifferentiable
from symgrad.ir import aval_of
from symgrad.pytree import LEAF, SAME, TreeDef, item_of
from symgrad.source.origins import METHODS, module_of
from symgrad.watch.likeness import Likeness, is_anew, likeness

ABSENT = object()  # an argument that was not given
MOST = 2**63  # what NumPy makes no int64 of


class Static:
    """A leaf of the arguments that is no number: part of the signature, by value where it has one, else by identity.

    Functions and objects that are made anew are known by what they are alike in, unless ``strict``; what they hold is read.
    """

    __slots__ = ("key", "value")

    def __init__(self, value: Any, strict: bool = False) -> None:
        self.value = value
        self.key: Any
        if not strict and is_anew(value) and (like := likeness(value)) is not None:
            self.value = like
            self.key = (type(value), like)
            return
        if _is_slice(value):
            self.key = (type(value), repr(value))
            return
        try:
            hash(value)
            self.key = (told(value), value)
        except (TypeError, ValueError):  # the latter of a memoryview that can be written to
            self.key = (type(value), id(value))

    @property
    def is_like(self) -> bool:
        """Whether others may take its place."""
        return type(self.value) is Likeness

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.key == other.key


def kind_of(leaf: Any, strict: bool = False) -> Any:
    """What a signature holds of a leaf: its ``Aval`` and Python type when it is a number, else the ``Static`` itself."""
    kind = type(leaf)
    if kind is np.ndarray and leaf.dtype.kind in "fciub":
        return aval_of(leaf)
    if kind is int and not -MOST <= leaf < MOST:
        return (kind, aval_of(leaf), "large")
    if kind in (float, int, complex) or (isinstance(leaf, np.generic) and leaf.dtype.kind in "fciub"):
        return (kind, aval_of(leaf))
    if isinstance(leaf, np.ndarray):
        if leaf.dtype.kind not in "fciub":
            return Static(leaf)
        name = f"{module_of(type(leaf))}.{type(leaf).__qualname__}"
        refusal = Mapped if type(leaf) is np.memmap else NotDifferentiable
        masked = isinstance(leaf, np.ma.MaskedArray)  # of which asarray would drop the mask
        plain = "x.filled(0.0), and ~x.mask beside it" if masked else "np.asarray(x)"
        raise refusal(f"an argument is a {name}; pass a plain array: {plain}")
    check_foreign((leaf,))
    return Static(leaf, strict)


def check_foreign(leaves: Sequence[Any]) -> None:
    """Raise ``Foreign`` where one of the leaves is of a kind that brings its own bridge."""
    bridge = foreign(leaves)
    if bridge is not None:
        raise Foreign(bridge)


def foreign(leaves: Sequence[Any]) -> Bridge | None:
    """The bridge of the leaves that have one."""
    return next((bridge for kind, bridge in FOREIGN.items() if any(isinstance(leaf, kind) for leaf in leaves)), None)


class Bridge(NamedTuple):
    """How a kind of values that is no array goes through derivatives.

    ``call(derivative, args, kwargs)`` calls one; ``plain`` of the same gives the derivative, args and kwargs, of arrays, that
    this comes down to. ``vjp(fun, primals, has_aux)`` and ``jvp(fun, primals, tangents, has_aux)`` are the functions' own.
    """

    call: Callable[..., Any]
    plain: Callable[..., Any]
    vjp: Callable[..., Any]
    jvp: Callable[..., Any]


FOREIGN: dict[type, Bridge] = {}


class Foreign(Exception):
    """A call has an argument of such a kind."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge)
        self.bridge = bridge


class Mapped(NotDifferentiable):
    """An argument is an array in a file, which ``unmapped`` makes a plain one of the same memory."""


def unmapped(tree: Any) -> Any:
    """A tree of arguments with plain arrays for those in files."""
    return pytree.map_tree(lambda leaf: np.asarray(leaf) if type(leaf) is np.memmap else leaf, tree)


class Layout(NamedTuple):
    """A call's arguments as a tree: positional ones, names and values of keyword ones; the kinds of all leaves."""

    tree: TreeDef
    keywords: tuple[str, ...]
    kinds: tuple[Any, ...]

    def found(self, given: tuple[tuple[Any, ...], tuple[Any, ...]], leaves: Sequence[Any], fun: Any) -> list[Any]:
        """Where paths begin in a call of ``fun``: its leaves, the containers that have more than items, and the function."""
        return [*leaves, *self.tree.holders(given), fun] if self.tree.holds else [*leaves, fun]


class Leaves(list[Any]):
    """The leaves of a call's arguments, and these as they were ``given``: positional ones, and those by name."""

    def __init__(self, leaves: Sequence[Any], given: tuple[tuple[Any, ...], tuple[Any, ...]]) -> None:
        super().__init__(leaves)
        self.given = given


def layout(args: Sequence[Any], kwargs: dict[str, Any], strict: bool = False, once: bool = False) -> tuple[Layout, Leaves]:
    """The signature of a call and the leaves of its arguments; ``once``: those of containers that come again are there once."""
    given = tuple(args), tuple(kwargs.values())
    leaves, tree = (pytree.flatten_once if once else pytree.flatten)(given)
    return Layout(tree, tuple(kwargs), tuple([kind_of(leaf, strict) for leaf in leaves])), Leaves(leaves, given)


class Form:
    """How a function takes its arguments: the names of its parameters.

    ``keywords`` are the names of keyword-only ones; ``None`` where a keyword may be anything, or mean something else than
    the parameter of that name: then arguments are handed over just as they are given.
    """

    def __init__(self, title: str, positional: list[str], only: int, rest: str, keywords: list[str] | None) -> None:
        self.title = title  # the function's own name, for Python's errors of calls that do not fit
        self.positional, self.only, self.rest, self.keywords = positional, only, rest, keywords

    def names(self, count: int, keywords: Sequence[str]) -> list[str]:
        """A name for each argument of a call: the parameter's, unless generated code means something else by it."""
        names = self.positional[:count]
        names = [*names, *(f"{self.rest}_{i}" for i in range(count - len(names))), *keywords]
        free = Names(set())
        return [free.unique(name) for name in names]

    def normal(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same call with positional arguments where it can have them."""
        args = tuple(args)
        if not kwargs or self.keywords is None:
            return args, kwargs
        more = []
        for name in self.positional[max(len(args), self.only) :] if len(args) >= self.only else ():
            if name not in kwargs:
                break
            more.append(name)
        rest = {name: value for name, value in kwargs.items() if name not in more}
        return (*args, *(kwargs[name] for name in more)), rest

    def entry(self, names: list[str], call: Layout, named: bool) -> tuple[str, list[str], str, str]:
        """Of a function that answers such calls: its parameters, the conditions on them, and the call as it was given.

        The call is there twice: the second holds where the conditions do, and what lies outside has taken the names of
        parameters that were left out.

        ``named``: its parameters are the function's own, so that arguments given by name need no dict.
        """
        count = len(call.tree.children[0].children)
        form = ["not _busy"]
        if not named or self.keywords is None or count > len(self.positional):
            form += ["not _more", f"len(_named) == {len(call.keywords)}" if call.keywords else "not _named"]
            for keyword, name in zip(call.keywords, names[count:], strict=True):
                form.append(f"({name} := _named.get({keyword!r}, _ABSENT)) is not _ABSENT")
            first = [*(f"{name}=_ABSENT" for name in names[:count]), *("/" for _ in names[:1] if count)]
            given = f"_present({', '.join([*names[:count], '*_more'])}), _named"
            return ", ".join([*first, "*_more", "**_named"]), form, given, given
        form.append("not _more")
        form += [f"{name} is _ABSENT" for name in (*self.positional, *self.keywords) if name not in names]
        first = [f"{name}=_ABSENT" for name in self.positional]
        first[self.only : self.only] = ["/"] if self.only else []
        last = [f"{name}=_ABSENT" for name in self.keywords]
        here = {name: name if name in names else "_ABSENT" for name in (*self.positional, *self.keywords)}
        given, within = (
            f"*_given(({''.join([f'{spell(name)}, ' for name in self.positional])}), _more, "
            f"({''.join([f'{spell(name)}, ' for name in self.keywords])}))"
            for spell in (str, here.__getitem__)
        )
        return ", ".join([*first, "*_more", *last]), form, given, within

    def given(self, values: Sequence[Any], more: tuple[Any, ...], named: Sequence[Any]) -> Any:
        """The call that such a function got, from what its parameters are."""
        count = next((i for i, value in enumerate(values) if value is ABSENT), len(values))
        names = (*self.positional[count:], *(self.keywords or ()))
        kwargs = {name: v for name, v in zip(names, (*values[count:], *named), strict=True) if v is not ABSENT}
        return (*values[:count], *more), kwargs


# -- checks of arguments, as source --------------------------------------------------------------------------------------


def _item(kind: Any, name: str, key: str) -> str:
    """An item of a container as an expression."""
    own, _, _ = item_of(kind).rpartition(" ")
    return f"{own}.__getitem__({name}, {key})" if own else f"{name}[{key}]"


def check_tree(
    tree: TreeDef,
    name: str,
    kinds: Iterator[Any],
    checks: list[str],
    space: dict[str, Any],
    leaves: list[str],
    containers: list[str],
    holders: list[str],
) -> None:
    """Conditions that an argument has the tree and the kinds of a signature, as source; the names of its leaves, of the
    containers that they are in, and of its ``holders``."""
    if tree.kind is SAME:
        checks.append(f"{name} is {containers[tree.keys[0]]}")
        return
    if tree.kind is LEAF:
        leaves.append(name)
        check_kind(next(kinds), name, checks, space)
        return
    if tree.kind is None:
        checks.append(f"{name} is None")
        return
    if tree.is_known_again:
        containers.append(name)
    slot = f"_k{len(space)}"
    space[slot] = tree.kind
    checks.append(f"type({name}) is {slot}")
    if issubclass(tree.kind, dict):
        keys = f"_keys{len(space)}"
        space[keys] = tree.keys
        text = all([type(key) is str for key in tree.keys])
        checks.append(f"tuple({name}) == {keys}" if text else f"_alike(tuple({name}), {keys})")
        reads = []
        for i in range(len(tree.keys)):
            space[f"{keys}_{i}"] = tree.keys[i]
            reads.append(_item(tree.kind, name, f"{keys}_{i}"))
    elif issubclass(tree.kind, (tuple, list)):
        checks.append(f"len({name}) == {len(tree.children)}")
        reads = [_item(tree.kind, name, str(i)) for i in range(len(tree.children))]
    else:
        reads = [f"{name}.{key}" for key in tree.keys]
    for i, (read, child) in enumerate(zip(reads, tree.children, strict=True)):
        part = f"_{name.lstrip('_')}_{i}"
        checks.append(f"(({part} := {read}) is {part})")
        check_tree(child, part, kinds, checks, space, leaves, containers, holders)
    if pytree.holds_more(tree.kind):
        holders.append(name)


def check_kind(kind: Any, name: str, checks: list[str], space: dict[str, Any]) -> None:
    """Conditions that a value is of a kind."""
    if isinstance(kind, Static) and kind.is_like:
        return  # what they are alike in is guarded as it is read
    if isinstance(kind, Static) and _is_slice(kind.value):
        checks.append(f"type({name}) is {type(kind.value).__name__} and repr({name}) == {repr(kind.value)!r}")
    elif isinstance(kind, Static):
        slot = f"_s{len(space)}"
        space[slot] = kind.value
        if _comparable(kind):
            checks.append(f"type({name}) is type({slot}) and {name} == {slot}")
        else:
            equals: Any = type(kind.value).__eq__
            by_value = kind.key[-1] is kind.value and equals is not object.__eq__
            checks.append(f"_alike({name}, {slot})" if by_value else f"{name} is {slot}")
    elif isinstance(kind, tuple) and not hasattr(kind, "_fields"):
        slot = f"_{kind[0].__name__}"
        space[slot] = kind[0]
        checks.append(f"type({name}) is {slot}")
        if kind[0] is int:
            checks.append(f"{'not ' * (len(kind) > 2)}{-MOST} <= {name} < {MOST}")
    else:
        slot = f"_d{kind.dtype.str[1:]}"
        if space.setdefault(slot, kind.dtype) is not kind.dtype:
            slot = f"{slot}_{len(space)}"
            space[slot] = kind.dtype
        same = f"({name}.dtype is {slot} or {name}.dtype == {slot})"  # unpickled arrays have a dtype object of their own
        checks.append(f"type({name}) is _ndarray and {same} and {name}.shape == {kind.shape!r}")


def shown(kind: Any) -> str:
    """A kind as people are told of it."""
    if isinstance(kind, Static):
        by_value = _is_slice(kind.value) or isinstance(kind.value, (str, bytes, bool, NoneType))
        if isinstance(kind.value, Likeness):
            return kind.value.name
        return repr(kind.value)[:40] if by_value else getattr(kind.value, "__name__", type(kind.value).__name__)
    return str(kind[1] if type(kind) is tuple else kind)


def _is_slice(value: Any) -> bool:
    """Whether it is a slice or a range of Python's own ints, which are as their text says."""
    return type(value) in (slice, range) and all([type(n) in (int, NoneType) for n in (value.start, value.stop, value.step)])


def _comparable(kind: Static) -> bool:
    """Whether all of its type that equal it are the same, which floats of a class of the user's are not: 0.0 and -0.0."""
    return isinstance(kind.value, (str, bytes, bool, int, np.dtype, *METHODS))
