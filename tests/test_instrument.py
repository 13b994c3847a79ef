"""Instrumented functions compute what the plain ones do, raise what they raise, at the lines where they raise it."""

from __future__ import annotations

import ast
import gc
import operator
import sys
import traceback
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any

import pytest
import shapes
from agreement import function_of
from hypothesis import given
from hypothesis import strategies as st

from symgrad import grad
from symgrad.source.instrument import FILES, definition, instrumented, parsed

SHAPES = list(shapes.SHAPES)
if sys.version_info >= (3, 12):
    import shapes_new

    SHAPES += shapes_new.SHAPES


class Inert:
    """Hooks that do what Python does."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def _second(self, name: str, value: Any) -> Any:
        return value

    glob = cell = wrote = frame_reader = _second

    def _first(self, value: Any, *more: Any) -> Any:
        return value

    iterate = run_over = mapping = unpacked = unpack = test = whole = shown = compared = stored = assigned = kept = matched = (
        identity
    ) = _first
    class_made = class_decorator = operand = changed = key = asked = answer = wrote_through = spliced = worded = _first
    manager = place = raised = left = renamed = appended = hashed = chosen = handed = given_back = rows = _first
    failed, started = staticmethod(AssertionError), staticmethod(iter)

    def next_of(self, items: Any, place: int) -> Any:
        return next(items)

    rest_of = held = _first
    holder = staticmethod(SimpleNamespace)

    def cut(self, owner: Any, key: Any, fun: Any) -> Any:
        return owner[key]

    def is_state(self, owner: Any, name: str, text: str, equal: bool) -> bool:
        return (getattr(owner, name) == text) is equal

    def _nothing(self, *more: Any) -> None:
        return None

    wrote_name = wrote_into = wrote_around = sets = trying = caught = swallowed = fixed = start = met = inner = filled = (
        asked_of
    ) = _nothing

    def are_one(self, wanted: tuple[bool, ...], *values: Any) -> bool:
        return all((a is b) is same for same, a, b in zip(wanted, values, values[1:], strict=False))

    def attribute(self, owner: Any, name: str) -> Any:
        return getattr(owner, name)

    def item(self, owner: Any, key: Any) -> Any:
        return owner[key]

    def given_default(self, owner: Any, key: Any, value: Any) -> Any:
        return owner.setdefault(key, value)

    def append_of(self, owner: Any) -> Any:
        return owner.append

    attribute_for = lent = attribute_unasked = attribute
    item_for = item_unasked = item

    def length(self, fun: Any, owner: Any) -> Any:
        return fun(owner)

    def within(self, item: Any, owner: Any) -> bool:
        return item in owner

    def slice(self, *ends: Any) -> slice:
        return slice(*ends)

    Unbound = NameError

    def loop(self, value: Any, *facts: Any) -> Any:
        return value

    def records(self, value: Any, decides: int) -> Any:
        return value

    def over(self, fun: Any, decides: bool, *args: Any, **options: Any) -> Any:
        return self.call(fun, *args, **options)

    def span(self, fun: Any, target: str, *args: Any) -> Any:
        return self.call(fun, *args)

    def stretch(self, owner: Any, start: Any, stop: Any) -> Any:
        return owner[start:stop]

    def whole_number(self, end: Any) -> Any:
        return operator.index(end)

    def in_turn(self, *lists: Any) -> list[Any]:
        return [item for items in zip(*lists, strict=True) for item in items]

    def ragged(self, fun: Any, outer: Any, ends: Any, *tables: Any) -> list[Any]:
        return [(i, j) for i in outer for j in fun(*ends(i))]

    def summed(self, *facts: Any) -> None: ...

    def number(self, loop: Any, name: str, value: Any, *facts: Any) -> Any:
        return value

    def decorator(self, fun: Any) -> Any:
        return fun

    def numbers(self, *facts: Any) -> None: ...

    def changed_in(self, *facts: Any) -> None: ...

    def negated(self, value: Any) -> bool:
        return not value

    def again(self, roller: Any, test: Any) -> bool:
        return bool(test)

    ends = again

    def part(self, roller: Any, value: Any, names: Any) -> Any:
        return value

    def imported(self, module: str, level: int, name: str, value: Any) -> Any:
        return value

    def module(self, name: str) -> None:
        pass

    def call(self, fun: Any, /, *args: Any, **kwargs: Any) -> Any:
        return follow(fun)(*args, **kwargs)

    def call_for(self, places: tuple[int, ...], fun: Any, /, *args: Any, **kwargs: Any) -> Any:
        return follow(fun)(*args, **kwargs)

    def caller(self, fun: Any) -> Any:
        return follow(fun)


def follow(fun: Any) -> Callable[..., Any]:
    """The instrumented function, of one of the shapes' own."""
    if isinstance(fun, MethodType):
        return MethodType(follow(fun.__func__), fun.__self__)
    known = isinstance(fun, FunctionType) and "shapes" in fun.__code__.co_filename
    return instrumented(fun, Inert()) or fun if known and "__symgrad__" not in fun.__code__.co_freevars else fun


def outcome(fun: Callable[..., Any], a: int, b: float) -> tuple[Any, ...]:
    """What a call gives, or raises, and through which lines; a list comprehension has a frame of its own up to Python 3.11."""
    shapes.COUNT = 0
    try:
        return ("value", repr(fun(a, b)))
    except Exception as error:
        lines = [
            (frame.name, frame.lineno)
            for frame in traceback.extract_tb(error.__traceback__)
            if "shapes" in frame.filename and frame.name != "<listcomp>"
        ]
        return (type(error), str(error), lines)


def inner_code(fun: Any) -> FunctionType:
    fun = getattr(fun, "__func__", fun)
    return getattr(fun, "__wrapped__", fun)  # type: ignore[no-any-return]


def plainly(text: Any) -> Any:
    """Without what differs between any two runs."""
    if isinstance(text, tuple):
        return tuple(map(plainly, text))
    return text.split(" at 0x")[0] if isinstance(text, str) else text


@pytest.mark.parametrize("fun", SHAPES, ids=lambda fun: f"{fun.__name__}-{inner_code(fun).__code__.co_firstlineno}")
@pytest.mark.parametrize(("a", "b"), [(0, 0.0), (1, 2.5), (2, -1.5), (5, 0.5)])
def test_same_outcome(fun: Any, a: int, b: float) -> None:
    assert instrumented(inner_code(fun), Inert()) is not None, "its source is not found, or not trusted"
    assert plainly(outcome(follow(fun), a, b)) == plainly(outcome(fun, a, b))


@given(st.sampled_from(SHAPES), st.integers(-20, 20), st.floats(-1e3, 1e3))
def test_same_outcome_anywhere(fun: Any, a: int, b: float) -> None:
    assert plainly(outcome(follow(fun), a, b)) == plainly(outcome(fun, a, b))


def test_equal_code_of_two_files_is_told_apart(tmp_path: Any) -> None:
    """Code objects compare equal across files."""
    made = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.py"
        path.write_text("def f(a, b):\n    return a + b\n", encoding="utf-8")
        space: dict[str, Any] = {"__name__": name}
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)
        made.append(instrumented(space["f"], Inert()))
    assert [fun.__code__.co_filename.rsplit("/", 1)[-1] for fun in made if fun] == ["one.py", "two.py"]


@pytest.fixture
def parents() -> Any:
    """What IPython's tracebacks leave behind (``executing``): parents of nodes, also of those that all trees share."""
    tree = ast.parse("lambda x: -x ** 2 + 1 if x > 0 and x else x")
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            child.parent = node  # type: ignore[attr-defined]
    yield
    for node in ast.walk(tree):
        vars(node).pop("parent", None)


def test_attributes_of_others_on_syntax_trees_are_left_alone(parents: Any) -> None:
    derivative = grad(lambda x: -(x**2) + 1.0 if x > 0 and x < 9 else x)
    assert [derivative(x) for x in (3.0, 3.0, -1.0, 3.0, -1.0)] == [-6.0, -6.0, 1.0, -6.0, 1.0]
    assert "2.0 * x" in derivative.source(3.0)


def test_source_that_has_changed_is_not_trusted(tmp_path: Any) -> None:
    path = tmp_path / "edited.py"
    path.write_text("def f(a, b):\n    return a + b\n", encoding="utf-8")
    space: dict[str, Any] = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)
    path.write_text("def f(a, b):\n    return a - b\n", encoding="utf-8")
    assert instrumented(space["f"], Inert()) is None


def test_no_source_no_twin() -> None:
    space: dict[str, Any] = {}
    exec("def f(a, b): return a + b", space)
    assert instrumented(space["f"], Inert()) is None
    assert instrumented(eval("lambda a, b: a + b"), Inert()) is None


class Garbage:
    """A circle, for the garbage collector to take apart with Python code, which lets other threads run."""

    def __init__(self):
        self.me = self

    def __del__(self):
        sum(range(10))


def test_parsing_in_threads():
    """Python 3.11 counts the depth of all threads' trees together, and may take the sum for an error."""
    text = "\n".join(f"def f{i}(x):\n    return [x + (1 - x), {{'a': x[{i}]}}]" for i in range(150))

    def parse(_):
        garbage = [Garbage() for _ in range(50)]
        return len(parsed(text).body) - len(garbage)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(parse, range(80))) == {100}
    finally:
        sys.setswitchinterval(interval)


def test_old_files_are_forgotten(tmp_path: Path) -> None:
    """What is kept of the files that functions are from does not grow without end: notebooks have one for each cell."""
    made = [function_of(f"def fun(x):\n    return {i} * x\n", tmp_path / f"cell_{i}.py") for i in range(FILES + 1)]
    nodes = [weakref.ref(node) for node, _ in filter(None, map(definition, made))]
    gc.collect()
    assert nodes[0]() is None
    assert nodes[-1]() is not None


@pytest.mark.parametrize("terms", [450, 700])
def test_expressions_that_are_deeper_than_functions_go(terms, tmp_path):
    """Sums of hundreds of numbers, as programs write them, are deep trees."""
    total = " + ".join([f"{i}.0 * x * k" for i in range(terms)])
    fun = function_of(
        f"def fun(x):\n    s = 0.0\n    for k in range(2):\n        s = s + ({total})\n    return s\n", tmp_path / "deep.py"
    )
    limit = sys.getrecursionlimit()
    assert grad(fun)(2.0) == terms * (terms - 1) / 2
    assert sys.getrecursionlimit() == limit
