"""What a function puts somewhere outside: where that is, what was there, and who else may see it."""

from __future__ import annotations

import collections
import contextlib
import enum
import functools
import operator
import types
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, ModuleType, NoneType
from typing import Any, NamedTuple

import numpy as np

from symgrad.errors import SymgradError
from symgrad.source.origins import FUNCTIONS, PLAIN, VALUES, is_object, is_users_class, of_class, own_ways
from symgrad.tracing.tracer import Tracer
from symgrad.watch.guards import Argument, Path, same_value

_SETTERS = object.__setattr__, types.SimpleNamespace.__setattr__
NUMBERS = (int, float, np.float64, np.float32, np.int64)
OPERATIONS = {"Add": operator.add, "Sub": operator.sub, "Mult": operator.mul}  # of augmented assignments
_PLAIN_CONTAINERS = (dict, list, collections.Counter, collections.OrderedDict, collections.defaultdict)
NOTHING = object()  # what is where there is nothing yet
INDIRECT = {("attr", "__dict__"), ("attr", "cell_contents")}  # steps by which attributes and variables are found otherwise


class Repeated(SymgradError):
    """Ended a run that changes a container which comes twice among the arguments: in the next one it is one."""


class Setting(NamedTuple):
    """What was put somewhere into ``owner``, in a ``line``; whether what was there was ``read`` before; and what was really put
    ``there``."""

    owner: Any
    value: Any
    read: bool
    there: Any
    line: str

    def is_still(self, value: Any) -> bool:
        """Whether that is what is there now."""
        if type(value) is np.ndarray:
            return value is self.there
        return same_value(self.value.value if type(self.value) is Tracer else self.value, value)


def is_plainly_set(owner: Any, kind: str, name: str | None) -> bool:
    """Whether to set an attribute of this name, or an item, does nothing else."""
    if kind == "item":
        return any([type(owner) is one for one in _PLAIN_CONTAINERS])
    if type(owner) is type:  # a class that counts its objects
        held: Any = vars(owner).get(name or "")
        return is_users_class(owner) and any([type(held) is one for one in NUMBERS])
    setter: Any = type(owner).__setattr__
    plain = type(owner) is FunctionType or (is_object(owner) and hasattr(owner, "__dict__"))
    return plain and setter in _SETTERS and not hasattr(of_class(type(owner), name or ""), "__set__")


def key_in(owner: Any, key: Any) -> Any:
    """The key of an item that there is, so that to set it changes nothing else; None for another one."""
    if type(key) is str and isinstance(owner, dict):
        return key if key in owner else None
    if type(key) is int and isinstance(owner, dict):
        return next((known for known in owner if known == key and type(known) is int), None)
    return key if type(key) is int and 0 <= key < len(owner) else None


def there(owner: Any, kind: str, key: Any) -> Any:
    """What is at a place, if there is anything."""
    if kind == "attr":
        return getattr(owner, "__dict__", {}).get(key, NOTHING)
    if kind == "cell":
        try:
            return owner.cell_contents
        except ValueError:  # it is empty
            return NOTHING
    return owner.get(key, NOTHING) if isinstance(owner, dict) else owner[key]


def other_than(value: Any) -> Any:
    """Something else of the same kind."""
    if isinstance(value, (bool, np.bool_)):
        return not value
    if isinstance(value, (int, float, np.number, np.ndarray)) and getattr(value, "dtype", np.dtype(int)).kind in "iufc":
        return value + 1 if np.all(value + 1 != value) else value * 0
    return value + "~" if type(value) is str else "~"


def put_back(undo: list[Callable[[], None]]) -> None:
    """Undo what a run has put outside, which is run anew."""
    while undo:
        with contextlib.suppress(LookupError):  # of a place that is no more: what it was in is put back as a whole
            undo.pop()()


def restoring(owner: Any) -> Callable[[], None] | None:
    """What puts all that is in a container, or an object, back as it is now; None where that is not known."""
    if own_ways(type(owner)) or isinstance(owner, ModuleType):
        return None
    held: Any = owner if isinstance(owner, (list, dict, set, collections.deque)) else getattr(owner, "__dict__", None)
    known = held is owner or type(held) is dict
    return functools.partial(_restore, held, held.copy()) if known else None


def _restore(owner: Any, before: Any) -> None:
    """Put back what was in a container ``before``, and touch nothing else: other threads may read it."""
    if isinstance(owner, list):
        owner[:] = before
    elif isinstance(owner, dict):
        for key in owner.keys() - before.keys():
            del owner[key]
        if [*owner] != [*before]:  # they come in this order
            owner.clear()
        owner.update({key: item for key, item in before.items() if owner.get(key, NOTHING) is not item})
    elif isinstance(owner, set):
        owner.intersection_update(before)
        owner.update(before)
    else:
        owner.clear()
        owner.extend(before)


def put_at(owner: Any, kind: str, key: Any, value: Any) -> None:
    """Put something at a place, or ``NOTHING``, if there was none."""
    if value is NOTHING:
        delattr(owner, "cell_contents" if kind == "cell" else key)
    elif kind == "attr":
        setattr(owner, key, value)
    elif kind == "cell":
        owner.cell_contents = value
    else:
        owner[key] = value


def take_back(owner: Any, dropped: list[Any]) -> None:
    """Undo an ``append``, which has ``dropped`` the first item of a full deque, or none."""
    owner.pop()
    if dropped:
        owner.appendleft(dropped[0])


def leads_into(path: Path, container: Path) -> bool:
    """Whether a path leads on from another one."""
    same = path.root is container.root or (isinstance(path.root, Argument) and path.root == container.root)
    return same and len(path.steps) > len(container.steps) and path.steps[: len(container.steps)] == container.steps


def sees(path: Path, place: Path) -> bool:
    """Whether what was asked at a path may tell what is at a place that another path leads to."""
    within, (kind, key) = place.steps[:-1], place.steps[-1]
    if kind == "cell":
        return ("attr", "cell_contents") in path.steps
    if kind == "item":
        return type(path.root) is ModuleType and vars(path.root) is place.root and path.steps[:1] == (("attr", key),)
    same = path.root is place.root or (isinstance(path.root, Argument) and path.root == place.root)
    if not same or path.steps[: len(within)] != within:
        return False
    rest = path.steps[len(within) :]
    if rest[:1] == (("attr", "__dict__"),):
        return len(rest) == 1 or rest[1] == ("in", key) or rest[1][0] != "in"
    return rest == (("has", key),)


def is_number(value: Any) -> bool:
    """Whether it is a number that nothing is differentiated by."""
    if type(value) is Tracer:
        return value.node.aval.kind != "array" and not value.node.differentiated
    return type(value) in NUMBERS


def is_numeric(value: Any) -> bool:
    """Whether it is a number, or a plain array of numbers or dates."""
    kind = type(value)
    if kind is np.ndarray or issubclass(kind, np.generic):
        return value.dtype.kind in "biufcmM"
    return kind in (int, float, complex)


def is_fixed(value: Any) -> bool:
    """Whether it is a value that nobody can change."""
    kind = type(value)
    if kind is slice:
        return all(map(is_fixed, (value.start, value.stop, value.step)))
    if kind in (tuple, frozenset):
        return all(map(is_fixed, value))
    if isinstance(value, BuiltinFunctionType) and not isinstance(value.__self__, (ModuleType, NoneType)):
        return False
    if isinstance(value, enum.Enum):
        return True
    return (isinstance(value, (*PLAIN, *FUNCTIONS)) or kind in VALUES) and not (
        isinstance(value, np.void) or is_users_class(kind)
    )


def settled(value: Any) -> Any:
    """The plain value of what ``is_settled``; anything else as it is."""
    if type(value) is tuple and is_settled(value):
        return tuple(map(settled, value))
    return value.value if type(value) is Tracer and is_settled(value) else value


def is_settled(value: Any) -> bool:
    """Whether it is a plain value, which is the same whenever code goes this way."""
    if type(value) is Tracer:
        return not value.node.active and is_settled(value.value)
    return value is None or type(value) in (bool, str, *NUMBERS) or (type(value) is tuple and all(map(is_settled, value)))
