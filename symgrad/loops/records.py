"""Lists of records of one structure: dicts, named tuples or objects, one an iteration of a loop that decides.

A record stays what it is; but a number that is read of the one whose turn it is, or one of a few texts, comes from a column, an
array of that field of all, at the loop's index. So iterations are alike, as those over the rows of an array are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symgrad.loops.iterables import Over, column_of, listed, may_be_column
from symgrad.source.origins import is_users, is_users_class, of_class
from symgrad.tracing.kinds import fields_of
from symgrad.tracing.trace import Trace

Step = tuple[str, Any]  # ("item", key) or ("attr", name)
_ABSENT = object()


class Records:
    """The records that a loop runs over, and the columns that were read of them so far.

    ``read`` is how a number in one of them is read, which notes where it is from.
    """

    def __init__(self, trace: Trace, value: Any, read: Callable[[Any, Step, Any], Any]) -> None:
        self.trace, self.value, self.items, self.read = trace, value, [*value], read
        self.turn: Any = None
        self.current: Any = None
        self._columns: dict[Step, tuple[list[Any], Over | None]] = {}

    def at(self, index: Any) -> Any:
        """The record whose turn it is."""
        self.turn = index
        self.current = self.value[getattr(index, "value", index)]
        return self.current

    def is_turned(self) -> bool:
        """Whether the loop runs, and is at the index of the last record that it was given."""
        node = getattr(self.turn, "node", None)
        running = [roller for roller in self.trace.rollers if roller.boundaries]
        return node is not None and any([roller.boundaries[-1].at is node for roller in running])

    def field(self, step: Step, value: Any) -> Any:
        """A number of the record whose turn it is, from its column; ``value`` where it is in none, or was changed since."""
        if not self.is_turned() or self.items[self.turn.value] is not self.current:
            return value
        if step not in self._columns:
            self._columns[step] = self._column(step)
        before, column = self._columns[step]
        return value if column is None or before[self.turn.value] is not value else column.at(self.turn)

    def _column(self, step: Step) -> tuple[list[Any], Over | None]:
        before = [_found(item, step) for item in self.items]
        if not may_be_column(before):
            return before, None
        read = [self.read(item, step, value) for item, value in zip(self.items, before, strict=True)]
        return before, column_of(read, 0, self.trace.once)


def records(trace: Trace, value: Any, fewest: int, read: Callable[[Any, Step, Any], Any]) -> tuple[Over, Records] | None:
    """A list of at least so many records, and how it is run over; None for others.

    No iteration is passed over: what is read of a record that is no number may be another in each.
    """
    if type(value) not in (list, tuple) or len(value) < fewest or len({*map(type, value)}) > 1 or not _is_record(value[0]):
        return None
    found = Records(trace, value, read)
    return listed(value, found.items, found.at)._replace(holds=lambda: False), found


def _is_record(value: Any) -> bool:
    kind = type(value)
    if kind is dict or (isinstance(value, tuple) and hasattr(kind, "_fields") and kind.__basicsize__ == tuple.__basicsize__):
        return True
    asks = any([is_users(of_class(kind, name)) for name in ("__getattr__", "__getattribute__")])
    return is_users_class(kind) and not asks and fields_of(value) is not None


def _found(item: Any, step: Step) -> Any:
    """What is at a place in a record, by no method of its class's."""
    how, name = step
    if how == "item":
        held: Any = item if type(item) is dict or (isinstance(item, tuple) and type(name) is int) else {}
        return held[name] if name in (held if type(held) is dict else range(len(held))) else _ABSENT
    if isinstance(item, tuple):
        return item[type(item)._fields.index(name)] if name in type(item)._fields else _ABSENT  # type: ignore[attr-defined]
    return (fields_of(item) or {}).get(name, _ABSENT)
