"""Nested containers of values: tuples, lists, dicts, namedtuples, dataclasses and None.

``flatten`` takes a tree apart into leaves and a hashable ``TreeDef``; the ``TreeDef`` puts leaves together again.

>>> leaves, tree = flatten({"w": 1.0, "b": (2.0, None)})
>>> leaves
[1.0, 2.0]
>>> tree.unflatten([10.0, 20.0])
{'w': 10.0, 'b': (20.0, None)}
"""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symgrad.equal import is_same


class TreeDef:
    """The shape of a tree: what kind of container, its keys, and its children. Hashable and comparable."""

    __slots__ = ("_hash", "children", "holds", "keys", "kind", "repeats", "size")

    def __init__(self, kind: Any, keys: tuple[Any, ...] = (), children: tuple[TreeDef, ...] = ()) -> None:
        self.kind, self.keys, self.children = kind, keys, children
        self.size: int = 1 if kind is LEAF else sum([child.size for child in children])
        self.repeats: bool = kind is SAME or any([child.repeats for child in children])
        self.holds: bool = holds_more(kind) or any([child.holds for child in children])
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.kind, self.keys, self.children))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, TreeDef)
            and self.kind == other.kind
            and is_same(self.keys, other.keys)
            and self.children == other.children
        )

    def __reduce__(self) -> Any:
        return TreeDef, (self.kind, self.keys, self.children)  # a hash holds in its own process alone

    def __repr__(self) -> str:
        return f"TreeDef({self.unflatten(['*'] * self.size)!r})"

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """The tree with these leaves.

        Raises ``ValueError`` when their number is not ``self.size``.
        """
        if len(leaves) != self.size:
            raise ValueError(f"the tree has {self.size} leaves, got {len(leaves)}")
        if self.repeats:
            return self._repeated(iter(leaves), [])
        return leaves[0] if self.kind is LEAF else self._build(iter(leaves))

    @property
    def is_known_again(self) -> bool:
        """Whether it is a container of which there may be another one that is the same: there is one empty tuple alone."""
        return self.kind is not LEAF and self.kind is not None and (self.kind is not tuple or bool(self.children))

    def _repeated(self, leaves: Iterator[Any], made: list[Any]) -> Any:
        """The same, where containers come again: ``made`` has those so far, by number."""
        if self.kind is SAME:
            return made[self.keys[0]]
        if not self.is_known_again:
            return self._build(leaves)
        place = len(made)
        made.append(None)
        made[place] = self._of([child._repeated(leaves, made) for child in self.children])
        return made[place]

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.kind is LEAF:
            return next(leaves)
        if self.kind is None:
            return None
        return self._of([next(leaves) if child.kind is LEAF else child._build(leaves) for child in self.children])

    def _of(self, items: list[Any]) -> Any:
        """The container with these items."""
        kind = self.kind
        if kind is tuple:
            return tuple(items)
        if kind is list:
            return items
        if issubclass(kind, dict):
            return kind(zip(self.keys, items, strict=True))
        if issubclass(kind, tuple):
            return tuple.__new__(kind, items)  # a class of the user's may make others of its arguments
        result = object.__new__(kind)  # a dataclass: its fields as they are, without running __init__ on leaves
        for name, item in zip(self.keys, items, strict=True):
            object.__setattr__(result, name, item)
        return result

    def rebuild(self, leaves: Iterator[Any], like: Any, made: list[tuple[Any, Any]], ones: dict[int, Any] | None) -> Any:
        """The tree with these leaves; ``made`` gets each container of ``like``, and what was made of it.

        Those that are ``SAME`` are one, and with ``ones`` all that are one in ``like``.
        """
        kind = self.kind
        if kind is LEAF:
            return next(leaves)
        if kind is None:
            return None
        if kind is SAME:
            return next(copy for one, copy in made if one is like)
        items = [
            next(leaves) if child.kind is LEAF else child.rebuild(leaves, item, made, ones)
            for child, item in zip(self.children, _items(like), strict=True)
        ]
        if ones is not None and id(like) in ones:
            return ones[id(like)]
        result = self._of(items)
        if holds_more(kind):
            _carry(like, result)
        if self.is_known_again:
            made.append((like, result))
        if ones is not None:
            ones[id(like)] = result
        return result

    def holders(self, like: Any) -> Iterator[Any]:
        """The containers in ``like``, a tree of this shape, that may have attributes beside their items, in the order in which
        they are rebuilt."""
        if self.holds and self.kind is not SAME:
            for child, item in zip(self.children, _items(like), strict=True):
                yield from child.holders(item)
            if holds_more(self.kind):
                yield like

    def paths(self) -> list[tuple[tuple[str, Any], ...]]:
        """One access path a leaf: steps ``("item", key)`` or ``("attr", name)`` from the root; ``("tuple item", key)``, or of a
        dict, where the class makes something else of ``x[key]``."""
        if self.kind is LEAF:
            return [()]
        if self.kind is SAME:
            return []
        if self.kind is None:
            return []
        step = "attr" if dataclasses.is_dataclass(self.kind) else item_of(self.kind)
        keys = self.keys or range(len(self.children))
        return [((step, k), *path) for k, child in zip(keys, self.children, strict=True) for path in child.paths()]


def item_of(kind: Any) -> str:
    """How an item of a container is read: the name of a step."""
    own = tuple if issubclass(kind, tuple) else dict if issubclass(kind, dict) else list
    return "item" if kind.__getitem__ in (own.__getitem__, OrderedDict.__getitem__) else f"{own.__name__} item"


def holds_more(kind: Any) -> bool:
    """Whether a container of this kind may have attributes beside its fields, or items."""
    return isinstance(kind, type) and kind not in (tuple, list, dict, OrderedDict) and kind.__dictoffset__ != 0


def beside(tree: Any) -> dict[str, Any]:
    """The attributes of a container that are none of its fields; what a class computes of these, and keeps, is none."""
    kind = type(tree)
    fields = [field.name for field in dataclasses.fields(tree)] if dataclasses.is_dataclass(tree) else ()
    more = [name for name in vars(tree) if name not in fields]
    return {name: vars(tree)[name] for name in more if not isinstance(getattr(kind, name, None), functools.cached_property)}


def _carry(like: Any, made: Any) -> None:
    """Give a container the attributes that another one has beside its items."""
    for name, value in beside(like).items():
        vars(made).setdefault(name, value)


class _Named:
    """What is but once."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


LEAF = _Named("LEAF")
SAME = _Named("SAME")  # a container that is in the tree already; the key says which one
LEAVES: set[type] = {float, int, bool, complex, str, np.ndarray, np.float64, np.float32}  # which nothing need be asked of
_LEAF_DEF = TreeDef(LEAF)
_NONE_DEF = TreeDef(None)


_known: dict[Any, TreeDef] = {}  # of tuples and lists: what is compared often is one object


def _remember(tree: TreeDef) -> TreeDef:
    if len(_known) < 1000:
        _known[tree.kind, tree.children] = tree
    return tree


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of ``tree``, in order, and its ``TreeDef``. Whatever is not a known container is a leaf."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def flatten_once(tree: Any) -> tuple[list[Any], TreeDef]:
    """The same, of each container once: one that comes again is ``SAME``, with its number among those that are in the tree."""
    leaves: list[Any] = []
    return leaves, _flatten_once(tree, leaves, {})


def _flatten_once(tree: Any, leaves: list[Any], met: dict[int, int]) -> TreeDef:
    keys = None if tree is None or type(tree) in LEAVES else _keys(tree)
    if keys is None or (type(tree) is tuple and not tree):
        return _flatten(tree, leaves)
    if id(tree) in met:
        return TreeDef(SAME, (met[id(tree)],))
    met[id(tree)] = len(met)
    return TreeDef(type(tree), keys, tuple([_flatten_once(item, leaves, met) for item in _items(tree)]))


def _keys(tree: Any) -> tuple[Any, ...] | None:
    """The keys of a container, those of tuples and lists being empty; None for a leaf. A traced number that is a key, of which
    the value was asked, stands for that."""
    kind = type(tree)
    if kind is tuple or kind is list or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return ()
    if issubclass(kind, dict) and (kind.__init__ is dict.__init__ or kind is OrderedDict):
        return tuple([key if type(key) is str else getattr(key, "__symgrad_key__", key) for key in tree])
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


def is_container(tree: Any) -> bool:
    """Whether a value, which is not None, is taken apart."""
    return type(tree) not in LEAVES and _keys(tree) is not None


def _items(tree: Any) -> Sequence[Any]:
    """What is in a container, in the order of its leaves."""
    if isinstance(tree, dict):
        return [*tree.values()]
    if isinstance(tree, (tuple, list)):
        return tree
    return [getattr(tree, field.name) for field in dataclasses.fields(tree)]


def _flatten(tree: Any, leaves: list[Any]) -> TreeDef:
    kind = type(tree)
    if kind in LEAVES:
        leaves.append(tree)
        return _LEAF_DEF
    if tree is None:
        return _NONE_DEF
    if kind is tuple or kind is list:
        children = tuple([_flatten(item, leaves) for item in tree])
        return _known.get((kind, children)) or _remember(TreeDef(kind, (), children))
    keys = _keys(tree)
    if keys is None:
        leaves.append(tree)
        return _LEAF_DEF
    return TreeDef(kind, keys, tuple([_flatten(item, leaves) for item in _items(tree)]))


def map_tree(fun: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """``tree`` with ``fun`` applied to each leaf, and to the leaves of ``rest`` at the same places.

    >>> map_tree(lambda a, b: a + b, {"w": 1, "b": [2]}, {"w": 10, "b": [20]})
    {'w': 11, 'b': [22]}
    """
    leaves, treedef = flatten(tree)
    columns = [leaves]
    for other in rest:
        more, other_def = flatten(other)
        if other_def != treedef:
            raise ValueError(f"the trees differ: {treedef} and {other_def}")
        columns.append(more)
    return treedef.unflatten([fun(*row) for row in zip(*columns, strict=True)])
