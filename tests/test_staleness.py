"""No stale result, ever: what a function reads from outside changes, and the next call knows.

``traps.py`` has the table of what is read, how it changes and where it is read; ``impure.py`` the functions with side
effects. ``pytest --hypothesis-profile=deep`` reads every capture in every place.
"""

from __future__ import annotations

import builtins
import collections
import dataclasses
import enum
import functools
import gc
import importlib
import inspect
import itertools
import linecache
import math
import operator
import pickle
import sys
import textwrap
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import corners
import impure
import numpy as np
import probes
import pytest
import specials
import traps
from agreement import function_of, right_at
from hypothesis import given
from hypothesis import strategies as st
from ops_samples import deep

import symgrad.numpy
from symgrad import custom_jvp, custom_vjp, grad, jacobian, primitive, value_and_grad, vjp
from symgrad.errors import LeavesNumPy
from symgrad.pytree import flatten

X = np.array([0.7, -1.3])
CALLS = 4


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the exception that it raises."""
    try:
        return call()
    except Exception as error:
        return error


def differences(fun: Callable[[Any], Any], x: Any) -> Any:
    """The gradient by central differences of the plain function."""
    step = 1e-6 * np.eye(len(x))
    return np.array([(fun(x + h) - fun(x - h)) / 2e-6 for h in step])


def check(derivative: Any, fun: Callable[[Any], Any], when: str) -> None:
    """Several calls agree with dynamic mode and with finite differences, exceptions included."""
    expected = outcome(lambda: grad(fun, mode="dynamic")(X))
    numeric = outcome(lambda: differences(fun, X))
    for i in range(CALLS):
        found = outcome(lambda: derivative(X))
        for other, tolerance in ((expected, 1e-9), (numeric, 1e-5)):
            if isinstance(other, Exception) or isinstance(found, Exception):
                assert type(found) is type(other), f"{when}, call {i}: {found!r}, not {other!r}"
            else:
                np.testing.assert_allclose(found, other, tolerance, tolerance, err_msg=f"{when}, call {i}")


# -- traps ---------------------------------------------------------------------------------------------------------


def chosen() -> Iterator[tuple[traps.Capture, str]]:
    """Each capture in the function itself and, by turns, in some of the other places."""
    places = list(traps.PLACES)
    for i, capture in enumerate(traps.CAPTURES):
        yield capture, "function"
        others = places[1:]
        for j in range(len(others) if deep() else 4):
            yield capture, others[(4 * i + j) % len(others)]


@pytest.mark.parametrize(
    ("capture", "place"), list(chosen()), ids=lambda part: part.name if isinstance(part, traps.Capture) else part
)
def test_trap(capture: traps.Capture, place: str, tmp_path: Path) -> None:
    trap = traps.build(capture, place, tmp_path)
    derivative = grad(trap.fun)
    check(derivative, trap.fun, "at first")
    hits = derivative.cache_info().hits
    assert bool(hits) is not capture.dynamic, derivative.explain()
    for i in range(trap.changes):
        if i % 3 == 2:  # from another thread
            thread = threading.Thread(target=trap.change, args=(i,))
            thread.start()
            thread.join()
        else:
            trap.change(i)
        check(derivative, trap.fun, f"after {capture.changes[i]}")


def test_there_are_enough_traps() -> None:
    names = [capture.name for capture in traps.CAPTURES]
    assert len(set(names)) == len(names)
    assert sum(len(capture.changes) for capture in traps.CAPTURES) * len(traps.PLACES) > 150


def leaves(tree: Any) -> list[Any]:
    """What a derivative gives, as a list; an exception is one."""
    return [tree] if isinstance(tree, Exception) else flatten(tree)[0]


@pytest.mark.parametrize(("name", "fun", "changes", "kind"), probes.PROBES, ids=[probe[0] for probe in probes.PROBES])
def test_probe(name: str, fun: Any, changes: Any, kind: Any) -> None:
    probes.reset()
    derivative = kind(fun)
    for i in range(-1, len(changes)):
        if i >= 0:
            changes[i]()
        expected = leaves(outcome(lambda: kind(fun, mode="dynamic")(X)))
        for _ in range(CALLS):
            for a, b in zip(leaves(outcome(lambda: derivative(X))), expected, strict=True):
                if isinstance(b, (str, Exception)) or isinstance(a, Exception):
                    assert (type(a), str(a)) == (type(b), str(b)) or (type(a) is type(b) and isinstance(b, Exception))
                else:
                    np.testing.assert_allclose(a, b, 1e-9)


@pytest.mark.parametrize("name", "relative plain dotted within within_dotted within_as within_more object_of".split())
def test_packages(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However a function imports what it reads, inside it or not, a change in the other module is seen."""
    home = tmp_path / "trap_package"
    home.mkdir()
    (home / "__init__.py").write_text("", encoding="utf-8")
    (home / "config.py").write_text(
        "class Kind:\n    w = 2.0\nOBJECT, W, TABLE = Kind(), 2.0, {'a': 2.0}\ndef scale(x): return x * W\n", encoding="utf-8"
    )
    (home / "use.py").write_text(PACKAGE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    use = importlib.import_module("trap_package.use")
    config = sys.modules["trap_package.config"]
    fun = getattr(use, name)
    derivative = grad(fun)
    changes: list[Callable[[], None]] = [
        lambda: None,
        lambda: setattr(config, "W", 3.0),
        lambda: setattr(use, "W0", 5.0),
        lambda: setattr(config, "scale", lambda x: x),
        lambda: config.TABLE.update(a=9.0),
        lambda: setattr(config.Kind, "w", 4.0),
        lambda: setattr(use, "config", types.SimpleNamespace(W=8.0)),
        lambda: delattr(config, "W"),
    ]
    for i, change in enumerate(changes):
        change()
        check(derivative, fun, f"after change {i}")
    assert derivative.cache_info().hits
    for module in [module for module in sys.modules if module.startswith("trap_package")]:
        del sys.modules[module]


PACKAGE = """
import numpy as np
import trap_package
from . import config
from .config import W as W0, OBJECT
def relative(x): return np.sum(x) * config.W
def plain(x): return np.sum(x) * W0
def dotted(x): return np.sum(x) * trap_package.config.W
def within(x):
    from .config import W
    return np.sum(x) * W
def within_dotted(x):
    import trap_package.config
    return np.sum(x) * trap_package.config.W
def within_as(x):
    from trap_package import config as c
    return np.sum(x) * c.W
def within_more(x):
    from .config import scale as s, TABLE
    return np.sum(s(x)) * TABLE["a"]
def object_of(x): return np.sum(x) * OBJECT.w
"""


FLAG, GAIN, TERMS = True, 2.0, [1.0, 2.0]


def several(x: Any) -> Any:
    return np.sum(x * x) * (GAIN if FLAG else 1.0) + sum([t * np.sum(np.sin(x)) for t in TERMS])


@given(
    st.lists(st.tuples(st.sampled_from(["flag", "gain", "append", "pop", "item", "none"]), st.floats(0.1, 5.0)), max_size=12)
)
def test_any_sequence_of_changes(changes: list[tuple[str, float]]) -> None:
    global FLAG, GAIN
    FLAG, GAIN, TERMS[:] = True, 2.0, [1.0, 2.0]
    derivative = grad(several)
    for kind, value in [("none", 0.0), *changes]:
        if kind == "flag":
            FLAG = not FLAG
        elif kind == "gain":
            GAIN = value
        elif kind == "append" and len(TERMS) < 4:
            TERMS.append(value)
        elif kind == "pop" and TERMS:
            TERMS.pop()
        elif kind == "item" and TERMS:
            TERMS[-1] = value
        for _ in range(3):
            expected = 2 * X * (GAIN if FLAG else 1.0) + sum(TERMS) * np.cos(X)
            np.testing.assert_allclose(derivative(X), expected, 1e-12)


def test_other_kinds_of_derivatives_see_changes() -> None:
    box = types.SimpleNamespace(w=2.0)
    values = value_and_grad(lambda x: np.sum(x * x) * box.w)
    rows = jacobian(lambda x: x * x * box.w)
    for w in (2.0, 3.0, 5.0):
        box.w = w
        for _ in range(CALLS):
            value, slope = values(X)
            np.testing.assert_allclose(value, np.sum(X * X) * w)
            np.testing.assert_allclose(slope, 2 * X * w)
            np.testing.assert_allclose(rows(X), np.diag(2 * X * w))
    assert values.cache_info().misses == rows.cache_info().misses == 2


def test_what_is_returned_beside_the_result_is_fresh() -> None:
    notes, name = [1.0, {"k": 2}], "a"
    derivative = grad(lambda x: (np.sum(x), (notes, name)), has_aux=True)
    for _ in range(CALLS):
        assert derivative(X)[1] == ([1.0, {"k": 2}], "a")
    notes[0], notes[1]["k"], name = 3.0, 7, "b"
    assert derivative(X)[1] == ([3.0, {"k": 7}], "b")


def test_defaults_that_argnums_names_are_read_anew() -> None:
    def fun(x: Any, w: float = 2.0) -> Any:
        return np.sum(x) * w**2

    derivative = grad(fun, argnums="w")
    assert [derivative(X) for _ in range(CALLS)] == [2 * 2.0 * np.sum(X)] * CALLS
    fun.__defaults__ = (5.0,)
    assert derivative(X) == 2 * 5.0 * np.sum(X)


def test_argument_objects_may_change() -> None:
    class Model:
        def __init__(self) -> None:
            self.w, self.on = 2.0, True

        @functools.partial(grad, argnums=1)
        def loss(self, x: Any) -> Any:
            return np.sum(x * x) * (self.w if self.on else 1.0)

    def loss(x: Any, model: Any) -> Any:
        return np.sum(x * x) * (model.w if model.on else 1.0)

    model, derivative = Model(), grad(loss)
    for w, on in ((2.0, True), (3.0, True), (3.0, False), (4.0, True)):
        model.w, model.on = w, on
        for _ in range(CALLS):
            np.testing.assert_allclose(derivative(X, model), 2 * X * (w if on else 1.0))
    assert derivative.cache_info().misses == 4


def test_rules_of_the_users_see_changes() -> None:
    gain = 2.0

    @custom_vjp
    def reverse(x: Any) -> Any:
        return x * gain

    @custom_jvp
    def forward(x: Any) -> Any:
        return x * gain

    @primitive
    def opaque(x: Any) -> Any:
        return x * gain

    reverse.defvjp(lambda x: (x * gain, None), lambda _, g: (g * gain,))
    forward.defjvp(lambda x, t: (x[0] * gain, t[0] * gain))
    opaque.defvjp(lambda g, y, x: g * gain)
    for fun in (reverse, forward, opaque):
        gain = 2.0
        derivative = value_and_grad(lambda x, fun=fun: np.sum(fun(x)))
        for gain in (2.0, 3.0, 4.0):
            for _ in range(CALLS):
                value, slope = derivative(X)
                np.testing.assert_allclose(value, np.sum(X) * gain)
                np.testing.assert_allclose(slope, gain)
        assert derivative.cache_info().misses == 2, derivative.explain()


# -- impurity ------------------------------------------------------------------------------------------------------


def runs(fun: Any, call: Callable[[], Any]) -> int:
    """How often a function of ``impure.py`` runs in a call."""
    count = 0

    def watch(frame: types.FrameType, event: str, arg: Any) -> None:
        nonlocal count
        code = frame.f_code
        count += event == "call" and code.co_name == fun.__name__ and code.co_filename == impure.__file__

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    return count


def history(fun: Any, derivative: Any) -> list[str]:
    """The results of some calls from a fresh start, and what they left behind."""
    impure.reset()
    found = []
    for _ in range(6):
        found.append(repr(derivative(X)))
        found.append(impure.state())
    return found


@pytest.mark.parametrize(("fun", "expected"), impure.CASES, ids=lambda part: getattr(part, "__name__", part))
def test_impure(fun: Any, expected: str) -> None:
    """As in dynamic mode, draw by draw and effect by effect; the user's line is named."""
    derivative = grad(fun)
    assert history(fun, derivative) == history(fun, grad(fun, mode="dynamic"))
    if expected == "dynamic":
        assert derivative.cache_info().hits == 0
        reason = derivative.explain()
        assert "dynamic mode" in reason
        assert "impure.py:" in reason
    elif expected == "compiled":
        assert derivative.cache_info().hits > 0


@pytest.mark.parametrize(("fun", "expected"), impure.CASES, ids=lambda part: getattr(part, "__name__", part))
def test_the_function_runs_once_a_call(fun: Any, expected: str) -> None:
    impure.reset()
    derivative = grad(fun)
    for _ in range(3):
        hits = derivative.cache_info().hits
        count = runs(fun, lambda: derivative(X))
        assert count == (0 if derivative.cache_info().hits > hits else 1)


def test_plain_functions_sequence() -> None:
    """The draws are those that the plain function would have made."""
    impure.reset()
    plain = [impure.pyrandom(X) for _ in range(5)]
    impure.reset()
    np.testing.assert_allclose([grad(impure.pyrandom)(X) for _ in range(5)], np.outer(plain / np.sum(X), [1, 1]))


def test_functions_made_in_a_traced_call_live_on() -> None:
    """What they hold and read is plain, long after the trace has ended."""
    box = types.SimpleNamespace(made=None, kept=None, w=2.0)

    def fun(x: Any) -> Any:
        weight = box.w
        box.made = lambda y: [y * box.w for _ in range(2)] if box.kept else y
        box.kept = {"w": weight, "all": [weight * 2, (box.w,)]}
        return np.sum(x) * weight

    derivative = grad(fun)
    for w in (2.0, 3.0):
        box.w = w
        np.testing.assert_allclose(derivative(X), w)
        assert box.kept == {"w": w, "all": [2 * w, (w,)]}
        assert type(box.kept["w"]) is float
        assert box.made(1.5) == [1.5 * w] * 2
    assert "box.made is changed" in derivative.explain()


def test_compiled_mode_says_once_what_it_leaves_out() -> None:
    log: list[int] = []

    def fun(x: Any) -> Any:
        log.extend([1])
        return np.sum(x * x)

    derivative = grad(fun, mode="compiled")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(6):
            np.testing.assert_allclose(derivative(X), 2 * X)
    (one,) = found
    line = fun.__code__.co_firstlineno + 1
    assert f"test_staleness.py:{line}: log.extend" in str(one.message)
    assert one.filename == __file__
    assert log == [1, 1]
    assert derivative.cache_info().hits == 4


def test_compiled_mode_does_not_compile_random_numbers() -> None:
    impure.reset()
    derivative = grad(impure.pyrandom, mode="compiled")
    assert len({repr(derivative(X)) for _ in range(5)}) == 5


def test_exceptions_leave_the_derivative_usable() -> None:
    box: dict[str, float] = {}

    def fun(x: Any) -> Any:
        return np.sum(x) * box["w"]

    derivative = grad(fun)
    for w in (None, 2.0, None, 3.0):
        box.clear()
        if w is None:
            for _ in range(2):
                with pytest.raises(KeyError, match="w") as caught:
                    derivative(X)
                assert fun.__code__.co_firstlineno + 1 in [entry.lineno + 1 for entry in caught.traceback]
        else:
            box["w"] = w
            for _ in range(CALLS):
                np.testing.assert_allclose(derivative(X), w)


# -- what must stay compiled ---------------------------------------------------------------------------------------

SCALES: dict[str, Any] = {}


@pytest.mark.parametrize("kind", [float, int, np.float64, np.float32, np.int64, lambda i: np.full(2, float(i))])
def test_a_number_that_changes_at_every_call_is_traced_a_few_times_only(kind: Any) -> None:
    derivative = grad(lambda x: np.sum(x * x * SCALES["w"]))
    for i in range(30):
        SCALES["w"] = kind(i)
        np.testing.assert_allclose(derivative(X), 2 * X * i, 1e-6)
    assert derivative.cache_info().misses <= 4, derivative.explain()


def test_many_numbers_that_change_at_every_call() -> None:
    box = types.SimpleNamespace(step=0, rate=1.0, terms=[1.0, 2], more={"a": 3})
    derivative = grad(
        lambda x: np.sum(x * x) * box.rate + box.step * np.sum(x) + sum([t * x[0] for t in box.terms]) * box.more["a"]
    )
    for i in range(30):
        box.step, box.rate, box.terms[0], box.terms[1], box.more["a"] = i, 1 / (i + 1), i * 0.5, i + 2, -i
        expected = 2 * X * box.rate + i + np.array([sum(box.terms) * -i, 0.0])
        np.testing.assert_allclose(derivative(X), expected, 1e-9)
    assert derivative.cache_info().misses <= 4, derivative.explain()


def test_a_new_object_at_every_call_is_no_new_trace() -> None:
    holder = types.SimpleNamespace()
    derivative = grad(lambda x: np.sum(x * x) * holder.config.w + holder.table["k"][0])
    for i in range(20):
        holder.config, holder.table = types.SimpleNamespace(w=float(i)), {"k": [float(i)]}
        np.testing.assert_allclose(derivative(X), 2 * X * i)
    assert derivative.cache_info().misses == 2, derivative.explain()


def test_flags_that_alternate_are_compiled_both() -> None:
    box = types.SimpleNamespace(on=True, kind="a")
    derivative = grad(lambda x: np.sum(x * x) if box.on else np.sum(np.sin(x)) if box.kind == "a" else np.sum(x))
    for i in range(40):
        box.on, box.kind = i % 2 == 0, "ab"[i // 2 % 2]
        expected = 2 * X if box.on else np.cos(X) if box.kind == "a" else np.ones(2)
        np.testing.assert_allclose(derivative(X), expected)
    assert derivative.cache_info().misses <= 10, derivative.explain()


def test_a_variable_of_an_enclosing_function_that_is_deleted_and_comes_back() -> None:
    def make() -> Any:
        scale, wave = 2.0, np.sin

        def delete() -> None:
            nonlocal scale, wave
            del scale, wave

        def put(number: float, function: Any) -> None:
            nonlocal scale, wave
            scale, wave = number, function

        return lambda x: np.sum(wave(x) * scale), delete, put

    fun, delete, put = make()
    derivative = grad(fun)
    for _ in range(CALLS):
        np.testing.assert_allclose(derivative(X), 2.0 * np.cos(X))
    delete()
    with pytest.raises(NameError):
        derivative(X)
    for number, function, slope in ((3.0, np.sin, np.cos), (3.0, np.exp, np.exp)):
        put(number, function)
        for _ in range(CALLS):
            np.testing.assert_allclose(derivative(X), number * slope(X))
    assert derivative.cache_info().misses == 5  # two for each function, and the one that raised


def test_names_of_a_module_are_looked_up_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import numpy as np\nup, down, abs, _own = np.sin, np.cos, np.square, np.tanh\n"
    (tmp_path / "waves.py").write_text(f"{text}def fun(x): return np.sum(up(x) + down(x) + abs(x) + _own(x))\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("waves")
    slopes = {np.sin: np.cos, np.cos: lambda x: -np.sin(x), np.square: lambda x: 2 * x, np.tanh: lambda x: 1 - np.tanh(x) ** 2}
    derivative = grad(module.fun)
    for name, function in [("up", np.sin), ("up", np.cos), ("down", np.square), ("_own", np.sin), ("abs", np.sin)]:
        setattr(module, name, function)
        expected = sum(slopes[vars(module)[each]](X) for each in ("up", "down", "abs", "_own"))
        for _ in range(CALLS):
            np.testing.assert_allclose(derivative(X), expected)
    del module.abs  # the builtin takes its place
    for _ in range(CALLS):
        np.testing.assert_allclose(derivative(X), expected - np.cos(X) + np.sign(X))
    del module.up
    with pytest.raises(NameError):
        derivative(X)


def test_calls_hold_nothing_when_they_are_over() -> None:
    """Objects and big arguments go when the program lets go of them, not at some later collection."""
    noted: list[int] = []
    objects: dict[str, Any] = {}

    class Scaled:
        scale = 2.0

    def plain(x: Any, y: Any) -> Any:
        return np.sum(x * y) * objects["there"].scale

    def noting(x: Any, y: Any) -> Any:
        noted.append(1)
        return plain(x, y)

    gc.collect()
    gc.disable()
    try:
        for derivative in (grad(plain), grad(noting), grad(plain, mode="dynamic"), jacobian(plain)):
            one, other = objects["there"], y = Scaled(), np.ones(2)
            held = weakref.ref(one), weakref.ref(other)
            for _ in range(3):
                derivative(X, y)
            del one, other, y
            objects.clear()
            assert [reference() for reference in held] == [None, None]
    finally:
        gc.enable()


def test_what_is_not_looked_at_causes_no_trace() -> None:
    box = types.SimpleNamespace(on=False, used=2.0, unused=1.0)
    derivative = grad(lambda x: np.sum(x) * (box.unused if box.on else box.used))
    for i in range(20):
        box.unused, box.more = float(i), i
        np.testing.assert_allclose(derivative(X), 2.0)
    assert derivative.cache_info().misses == 2


def test_a_guard_of_one_branch_does_not_hinder_the_other() -> None:
    box = types.SimpleNamespace(level=1)
    derivative = grad(lambda x: x[0] * np.sum(x) if x[0] < 0 else np.sum(x) * (2.0 if box.level == 1 else 3.0))
    for _ in range(CALLS):
        derivative(X), derivative(-X)
    box.level = 2
    for _ in range(CALLS):
        derivative(-X)
    before = derivative.cache_info().misses
    for _ in range(CALLS):
        np.testing.assert_allclose(derivative(-X), [np.sum(-X) - X[0], -X[0]])
    assert derivative.cache_info().misses == before


def test_large_arrays_are_passed_and_not_copied() -> None:
    data = types.SimpleNamespace(table=np.linspace(0.0, 1.0, 200_000))
    shared: list[bool] = []

    def look(x: Any, table: Any) -> Any:
        shared.append(np.shares_memory(table, data.table))
        return np.sum(x) * table[-1]

    looked = primitive(look).defvjp(lambda g, y, x, table: g * table[-1] * np.ones_like(x), None)
    derivative = value_and_grad(lambda x: looked(x, data.table))
    for _ in range(2):
        derivative(X)
    shared.clear()
    for last in (2.0, 3.0):
        data.table = np.full(200_000, last)
        np.testing.assert_allclose(derivative(X)[1], last)
    assert shared
    assert all(shared)
    assert derivative.cache_info().hits == 2


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_caches_keep_plain_values(mode: str) -> None:
    """What a user's cache holds is of use after the trace: loop indices, integers, what has no derivative."""
    asked: list[Any] = []

    @functools.lru_cache
    def weight(n: Any) -> Any:
        asked.append(n)
        return 1.0 / (n + 1)

    series = grad(lambda x: sum([weight(k) * x**k for k in range(4)]), mode=mode)
    steps = grad(lambda x, n: weight(n) * x**n + weight(np.floor(x)) + weight(n=n), mode=mode)
    for x in (0.5, 1.5, 2.5):
        assert abs(series(x) - (0.5 + 2 * x / 3 + 3 * x**2 / 4)) < 1e-14
        assert abs(steps(x, 2) - 2 * x / 3) < 1e-14
        assert weight(3) == 0.25
    assert {type(n) for n in asked} == {int, np.float64}


@pytest.mark.parametrize("size", [0, 1, 2, 3, 128, None])
def test_caches_that_forget_are_filled_as_plain_calls_fill_them(size: int | None) -> None:
    def calls(derive: Any) -> tuple[list[float], list[int]]:
        asked: list[int] = []

        @functools.lru_cache(size)
        def square(n: int) -> float:
            asked.append(n)
            return float(n * n)

        slope = derive(lambda x, n: x * square(n))
        return [slope(1.0, n) for n in (1, 1, 1, 2, 2, 2, 1, 1, 3, 3, 3, 1, 2, 3, 4, 4, 4, 1)], asked

    assert calls(grad) == calls(lambda fun: fun)


def test_caches_are_asked_by_those_calls_alone_that_ask_them() -> None:
    """A cached function that fails in a branch not taken is nothing to the call."""
    numbers = {0: 1.0, 1: 2.0}

    @functools.cache
    def inverse(n: Any) -> Any:
        if numbers[n] == 0.0:
            raise ArithmeticError(n)
        return 1.0 / numbers[n]

    derivative = grad(lambda x: x * (inverse(0) if x > 0 else inverse(1)))
    for x in (1.0, -1.0, 1.0, -1.0, 1.0):
        assert derivative(x) == (1.0 if x > 0 else 0.5)
    inverse.cache_clear()
    numbers[1] = 0.0
    for x in (1.0, 2.0, 3.0):
        assert derivative(x) == 1.0
    with pytest.raises(ArithmeticError):
        derivative(-1.0)


def _counted_by_a_method() -> Any:
    counts: Any = collections.Counter()

    def fun(x: Any) -> Any:
        counts.update([int(3 * x[0])])
        counts.subtract(["a"])
        return np.sum(x) * (len(counts) - counts["a"])

    return fun


def _items_that_are_made() -> Any:
    items: Any = collections.defaultdict(lambda: len(items) + 1.0)
    return lambda x: np.sum(x) * items[int(x[0] > 0)] + items[2 + int(x[1] > 1)] * x[1]


def _lists_that_are_made() -> Any:
    items: Any = collections.defaultdict(list)

    def fun(x: Any) -> Any:
        items[int(3 * x[0])].append(1.0)
        return np.sum(x) * sum(map(len, items.values())) + x[0] * len(items)

    return fun


def _numbers_as_keys() -> Any:
    memory: Any = {}

    def fun(x: Any) -> Any:
        key = int(3 * x[0])
        if key not in memory:
            memory[key] = len(memory) + 1.0
        memory[round(x[1]), key] = 2.0
        memory.update({key - 1: 1.0, "seen": memory.get("seen", set()) | {key}})
        return np.sum(x) * memory[key] + x[1] * (len(memory) + len(memory["seen"]))

    return fun


def _states_that_go_round() -> Any:
    state, numbers = types.SimpleNamespace(a=1.0, b=0.5), [1.0, 2.0]

    def step(a: Any, b: Any) -> Any:
        return b, 0.5 * a

    def fun(x: Any) -> Any:
        state.a, state.b = state.b, state.a + 0.1
        state.a, state.b = step(state.a, state.b)
        scale, numbers[0], numbers[1] = numbers[1], numbers[1] + state.b, numbers[0]
        return np.sum(x) * (state.a + scale) + x[0] * numbers[0]

    return fun


MAKES = [_counted_by_a_method, _items_that_are_made, _lists_that_are_made, _numbers_as_keys, _states_that_go_round]


@pytest.mark.parametrize("make", MAKES)
def test_outer_containers_are_what_plain_calls_leave(make: Any, sharing: None) -> None:
    """Three derivatives of functions of the same code, one after the other, each with containers of its own."""
    derivatives = [value_and_grad(make()) for _ in range(3)]
    for seed, derivative in enumerate(derivatives):
        plain, dynamic, rng = make(), value_and_grad(make(), mode="dynamic"), np.random.default_rng(seed)
        for _ in range(16):
            x = 1.5 * rng.normal(size=4)
            value, slope = derivative(x)
            np.testing.assert_allclose(value, plain(x), rtol=1e-12)
            np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-12)


def test_functions_without_source() -> None:
    """Harmless ones are compiled; what others read is not known, so they are not. Both are right."""
    space: dict[str, Any] = {"np": np, "W": 2.0, "L": [2.0]}
    exec("def calm(x): return np.sum(x * x) * W\ndef wild(x): return np.sum(x * x) * L[0]\ndef both(x): return calm(x)", space)
    for name, hits in (("calm", True), ("wild", False), ("both", True)):
        derivative = grad(space[name])
        for w in (2.0, 3.0):
            space["W"] = space["L"][0] = w
            for _ in range(CALLS):
                np.testing.assert_allclose(derivative(X), 2 * X * w)
        assert bool(derivative.cache_info().hits) is hits
        assert hits or "the source of wild is not at hand" in derivative.explain()
    made = eval("lambda x: np.sum(x * x) * W", space)
    derivative = grad(made)
    for _ in range(CALLS):
        derivative(X)
    space["W"] = 5.0
    np.testing.assert_allclose(derivative(X), 10 * X)


def test_threads_change_and_call() -> None:
    """Each thread has a weight of its own; all call one derivative."""
    local = threading.local()
    weights = [float(i) for i in range(8)]
    box = dict.fromkeys(range(8), 0.0)
    derivative = grad(lambda x, i: np.sum(x * x) * box[i])
    wrong: list[Any] = []

    def work(i: int) -> None:
        for k in range(25):
            box[i] = weights[i] + k
            x = X if i % 2 else np.append(X, 1.0)
            found = derivative(x, i)
            if not np.allclose(found, 2 * x * box[i]):
                wrong.append((i, k, found))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert local


# -- type(x) -------------------------------------------------------------------------------------------------------


def _by_type(x: Any) -> Any:
    return x * x if type(x) is float else x**3


class _ByType:
    def __call__(self, x: Any) -> Any:
        return self.method(x)

    def method(self, x: Any) -> Any:
        return _by_type(x)


TYPED: dict[str, Any] = {
    "function": _by_type,
    "helper": lambda x: _by_type(x) * 1.0,
    "lambda": lambda x: x * x if type(x) in (float, int) else x**3,
    "object": _ByType(),
    "method": _ByType().method,
    "map": lambda x: sum(map(_by_type, [x])),
    "reduce": lambda x: functools.reduce(lambda a, b: a * b if type(a) is float else a + b, [x, x]),
    "isinstance": lambda x: x * x if isinstance(x, float) else x**3,
    "class": lambda x: x * x if x.__class__ is float else x**3,
    "derivative": lambda x: x + grad(lambda t: t**3 / 3 if type(t) is float else t)(x) - x,
}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("name", TYPED)
def test_types_are_those_of_values(name: str, mode: str) -> None:
    derivative = grad(TYPED[name], mode=mode)
    assert [derivative(2.0) for _ in range(CALLS)] == [4.0] * CALLS
    assert vjp(TYPED[name], 2.0)[1](1.0) == (4.0,)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_types_in_functions_without_source(mode: str) -> None:
    space: dict[str, Any] = {}
    exec("def ask(x): return x * x if type(x) is float else x**3\ndef call(x): return ask(x)", space)
    exec("def kind(x): return x * x if isinstance(x, float) else x**3", space)
    for name in ("ask", "call"):
        with pytest.raises(LeavesNumPy, match="isinstance"):
            grad(space[name], mode=mode)(2.0)
    assert grad(space["kind"], mode=mode)(2.0) == 4.0


# -- corners -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", corners.CASES, ids=lambda make: make.__name__)
def test_corner(make: Any) -> None:
    fun, changes = make()
    derivative = grad(lambda x: np.sum(fun(x)))
    for change in [lambda: None, *changes]:
        change()
        for i in range(CALLS):
            x = 0.7 + 0.01 * i
            np.testing.assert_allclose(derivative(x), grad(lambda x: np.sum(fun(x)), mode="dynamic")(x), 1e-9)
            slope = (np.sum(fun(x + 1e-6)) - np.sum(fun(x - 1e-6))) / 2e-6
            np.testing.assert_allclose(derivative(x), slope, 1e-4, 1e-6)


# -- warnings ------------------------------------------------------------------------------------------------------


def _within(context: Callable[[], Any]) -> Any:
    def fun(x: Any) -> Any:
        with context():
            warnings.simplefilter("ignore")
            y = np.log(x * 0.0)
        return np.sum(np.where(np.isfinite(y), y, x * x))

    return fun


def _below(x: Any) -> Any:
    with np.errstate(all="ignore"):
        y = np.where(x > 2, np.sqrt(np.maximum(x - 2, 0)), 0) + np.log(x * 0.0) * 0
    return np.sum(np.where(np.isfinite(y), y, x * x))


def _errstate(x: Any) -> Any:
    with np.errstate(divide="ignore"):
        y = np.log(x * 0.0)
    return np.sum(np.where(np.isfinite(y), y, x * x))


@pytest.mark.parametrize("size", [3, 50])
@pytest.mark.parametrize(
    "fun", [_errstate, _below, _within(warnings.catch_warnings)], ids=["errstate", "below", "catch_warnings"]
)
def test_warnings_that_the_function_silences_stay_silent(fun: Any, size: int) -> None:
    derivative, x = grad(fun), np.ones(size)
    for _ in range(CALLS):
        np.testing.assert_array_equal(derivative(x), 2 * x)
    assert derivative.cache_info().hits == CALLS - 2


def test_errors_that_the_function_asks_for_are_raised() -> None:
    def fun(x: Any) -> Any:
        with np.errstate(divide="raise"):
            return np.sum(np.log(x))

    derivative = grad(fun)
    for _ in range(CALLS):
        np.testing.assert_array_equal(derivative(np.ones(3)), np.ones(3))
    with pytest.raises(FloatingPointError):
        derivative(np.zeros(3))


ARRAYS_OF_OTHER_THINGS = {
    "objects": (np.array([1, None], object), lambda x, v: np.sum(x) * v[0], 5),
    "iterated": (np.array([1, 2], object), lambda x, v: np.sum(x) * sum(v), 5),
    "words": (np.array(["a", "bb"]), lambda x, v: np.sum(x) * len(v[0]) + np.sum(v == "a"), "cc"),
    "records": (np.array([(1.0, 2)], [("a", "f8"), ("b", "i4")]), lambda x, v: np.sum(x * v["a"]) * v[0]["b"], (9.0, 4)),
    "record array": (np.rec.array([(1.0, 2)], [("a", "f8"), ("b", "i4")]), lambda x, v: np.sum(x * v.a), (9.0, 4)),
    "dates": (np.array(["2020-01-01"], "M8[D]"), lambda x, v: np.sum(x) * (v[0].astype(int) % 7), "2020-01-03"),
    "memoryview": (memoryview(bytearray(b"ab")), lambda x, v: np.sum(x) * v[0] + sum(v), 5),
    "memoryview of floats": (memoryview(np.ones(3)), lambda x, v: np.sum(x * v) + v.tolist()[0], 5.0),
    "bytearray": (bytearray(b"ab"), lambda x, v: np.sum(x) * v[0] + sum(v), 5),
}


@pytest.mark.parametrize("name", ARRAYS_OF_OTHER_THINGS)
def test_arguments_that_are_no_numbers_and_change(name):
    """Told apart by identity, and read anew where they are read."""
    value, fun, new = ARRAYS_OF_OTHER_THINGS[name]
    derivative, x = grad(fun), np.array([0.5, -1.2, 2.0])
    for step in range(6):
        if step == 4:
            value[0] = new
        np.testing.assert_array_equal(derivative(x, value), grad(fun, mode="dynamic")(x, value))


POWER = 3
SCALE = types.SimpleNamespace(mode="twice", by=2.0)


def test_guards_and_arguments_do_not_share_names():
    """The checks of a compiled call have names of their own, whatever the function's arguments are called."""

    def powered(t):
        return t**POWER * SCALE.by if SCALE.mode == "twice" else t

    def found(_found):
        return _found**POWER

    for fun, slope in ((powered, 24.0), (found, 12.0)):
        derivative = grad(fun)
        assert [derivative(2.0) for _ in range(4)] == [slope] * 4
        assert derivative.cache_info().hits == 2


class Linear:
    """Compares by its slope, and can be called."""

    def __init__(self, slope):
        self.slope = slope

    def __eq__(self, other):
        return self.slope == other.slope

    __hash__ = None

    def __call__(self, x):
        return self.slope * x


def test_calling_objects_does_not_compare_them():
    derivative = grad(lambda x: Linear(x)(x))
    assert [derivative(2.0) for _ in range(3)] == [4.0] * 3


class Wave:
    def __init__(self) -> None:
        self.height, self.table, self.on = 2.0, np.ones(2), True

    def of(self, x: Any) -> Any:
        return self.height * x**2 if self.on else x

    def change(self) -> None:
        self.height, self.on = 5.0, not self.on
        self.table += 3.0


METHODS = {
    "own": lambda wave: wave.of,
    "array": lambda wave: wave.table.dot,
    "wrapper": lambda wave: wave.table.__mul__,
    "item": lambda wave: wave.table.__getitem__,
}


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("which", METHODS)
def test_what_a_method_is_bound_to_changes(which: str, kept: bool) -> None:
    """Methods are given as arguments, the same object or one made anew, and read from outside."""
    wave = Wave()
    box = types.SimpleNamespace(method=METHODS[which](wave))

    def given(x: Any, method: Any) -> Any:
        return np.sum(method(x) if which != "item" else x * method(1))

    def read(x: Any) -> Any:
        return given(x, box.method)

    by_argument, by_name = grad(given), grad(read)
    for _ in range(3):
        for _ in range(CALLS):
            method = box.method if kept else METHODS[which](wave)
            expected = differences(functools.partial(given, method=method), X)
            np.testing.assert_allclose(by_argument(X, method), expected, rtol=1e-6)
            np.testing.assert_allclose(by_name(X), expected, rtol=1e-6)
        wave.change()
    assert by_argument.cache_info().misses <= 4, by_argument.explain()
    assert by_name.cache_info().misses <= 4, by_name.explain()


def test_the_class_of_an_object_that_is_called_changes() -> None:
    class Square:
        def __call__(self, x: Any) -> Any:
            return self.of(x)

        def of(self, x: Any) -> Any:
            return x * x

    class Cube(Square):
        def of(self, x: Any) -> Any:
            return x * x * x

    class Both(Cube):
        def __call__(self, x: Any) -> Any:
            return self.of(x) * x

    fun: Any = Square()
    derivative = grad(fun)
    for kind, slope in [(Square, 3.0), (Cube, 6.75), (Both, 13.5), (Square, 3.0)]:
        fun.__class__ = kind
        assert [derivative(1.5) for _ in range(CALLS)] == [slope] * CALLS


def test_a_method_of_an_array_that_is_not_followed_is_not_compiled() -> None:
    table = np.ones(2)
    box = types.SimpleNamespace(device=table.__dlpack_device__)
    derivative = grad(lambda x: np.sum(x) * (2.0 if box.device() else 0.0))
    for _ in range(CALLS):
        np.testing.assert_allclose(derivative(X), 2.0)
    assert "is not followed" in derivative.explain()


@pytest.mark.parametrize("call", [lambda law: law.logpdf, lambda law: law(0.5, 2.0).logpdf, lambda law: law(0.5, 2.0)])
def test_distributions_from_outside_may_be_others(call) -> None:
    """Held under a name, frozen, or as a bound method: what they compute is theirs, not of their kind."""
    stats = pytest.importorskip("symgrad.scipy.stats")
    box = types.SimpleNamespace()
    derivatives = [
        grad(lambda x: np.sum(box.law(x) if callable(box.law) else box.law.logpdf(x))),
        grad(lambda x, law: np.sum(law(x) if callable(law) else law.logpdf(x))),
    ]
    for law in (stats.norm, stats.laplace):
        box.law = call(law)
        expected = grad(lambda x, law=box.law: np.sum(law(x) if callable(law) else law.logpdf(x)), mode="dynamic")(X)
        for _ in range(CALLS):
            np.testing.assert_allclose(derivatives[0](X), expected)
            np.testing.assert_allclose(derivatives[1](X, box.law), expected)
    assert derivatives[0].cache_info().misses == 4


@pytest.mark.parametrize("name", ["CubicSpline", "PchipInterpolator", "interp1d", "RegularGridInterpolator", "norm", "gamma"])
def test_what_splines_and_frozen_distributions_hold_is_read_anew(name) -> None:
    """That of another one, and what is changed in place."""
    scipy = pytest.importorskip("symgrad.scipy")
    points, heights, box = np.linspace(-2.0, 2.0, 7), np.cos(np.arange(7.0)) + 2.0, types.SimpleNamespace()

    def make() -> Any:
        if hasattr(scipy.stats, name):
            return getattr(scipy.stats, name)(heights, scale=2.0)
        return getattr(scipy.interpolate, name)((points,) if name[0] == "R" else points, heights)

    fun = lambda x: np.sum(box.held.logpdf(np.exp(x[0]) / 6) if hasattr(box.held, "logpdf") else box.held(x[:, None]) ** 2)
    derivative = grad(fun)
    box.held = make()
    check(derivative, fun, "at first")
    heights[2] = 1.5
    check(derivative, fun, "changed in place")
    box.held = make()
    check(derivative, fun, "made anew")
    assert derivative.cache_info().misses == 2


def test_arrays_whose_dtype_is_equal_and_another_object_are_answered_by_code() -> None:
    """As those that were pickled, and those of a foreign byte order."""
    foreign = X.astype(X.dtype.newbyteorder())
    for first in (X, pickle.loads(pickle.dumps(X)), foreign):
        box = types.SimpleNamespace(table=first)
        by_argument, by_name = grad(lambda x, a: np.sum(x * a)), grad(lambda x, box=box: np.sum(x * box.table))
        for i in range(CALLS):
            box.table = np.array([i, -1.0]).astype(pickle.loads(pickle.dumps(first.dtype)))
            np.testing.assert_allclose(by_argument(X, box.table), box.table)
            np.testing.assert_allclose(by_name(X), box.table)
        assert by_argument.cache_info().misses == by_name.cache_info().misses == 2


def test_equal_dtypes_are_one_argument() -> None:
    derivative = grad(lambda x, kind: np.sum(x.astype(kind) * 2))
    for _ in range(CALLS):
        np.testing.assert_allclose(derivative(X, pickle.loads(pickle.dumps(np.dtype("f4")))), 2.0)
    assert derivative.cache_info().misses == 2


def test_what_functions_in_a_list_for_numpy_read() -> None:
    wave = Wave()
    box = types.SimpleNamespace(height=2.0, parts=[lambda x: x * box.height, wave.of])

    def tall(x: Any) -> Any:
        return x**3 * box.height

    funs = [
        lambda x: np.sum(np.piecewise(x, [x > 0], box.parts)),
        lambda x: np.sum(np.piecewise(x, [x > 0], [tall, wave.of])),
        lambda x: np.sum(np.piecewise(x, condlist=[x > 0, x <= 0], funclist=(tall, 1.0))),
    ]
    for fun in funs:
        derivative = grad(fun)
        for when in ("first", "changed", "changed again"):
            check(derivative, fun, when)
            box.height += 1.0
            wave.change()
        assert derivative.cache_info().hits


def test_whether_outer_arrays_share_memory():
    a, b = np.ones(6), np.ones(6)
    derivative = grad(
        lambda x: x**2 * (2.0 if np.shares_memory(a, b) else 1.0) * (3.0 if np.may_share_memory(a, b[1:]) else 1.0)
    )
    for other, expected in ((b, 1.0), (a, 6.0), (a[:2], 6.0), (b, 1.0)):
        b = other
        for _ in range(3):
            assert derivative(0.5) == expected


def test_what_inspect_sees_of_functions():
    """It looks at the very functions, and at what their variables are now."""
    k = 2.0

    def scaled(x, power):
        return k * x**power

    def fun(x):
        known = inspect.getclosurevars(scaled).nonlocals["k"]
        return scaled(x, 2) * known * len(inspect.getfullargspec(scaled).args) * len(inspect.signature(scaled).parameters)

    for mode in ("auto", "dynamic"):
        derivative = grad(fun, mode=mode)
        for value in (2.0, 3.0):
            k = value
            for _ in range(3):
                assert derivative(0.5) == 4 * k * k


def filling(x):
    out = np.zeros(2)
    for i in range(2):
        out[i] = x[i] ** 3
    return np.sum(out)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_functions_that_do_what_those_before_did_not(mode):
    """They fill arrays, ask for types and make lists, which tracing must know beforehand."""
    holder = types.SimpleNamespace()

    @dataclasses.dataclass(frozen=True, slots=True)
    class Equal:
        fun: Callable[..., Any] = dataclasses.field(compare=False)

        def __call__(self, x):
            return self.fun(x)

    class Other(Equal):  # with a dict
        pass

    derivative = grad(lambda x: holder.fun(x), mode=mode)
    others = [
        lambda x: np.sum(x**3),
        filling,
        lambda x: np.sum(x**3) if type(x) is np.ndarray else np.sum(x),
        lambda x: np.sum(np.array([x[0] ** 3, x[1] ** 3])),
    ]
    x = np.array([1.0, 2.0])
    for fun in (*others, *others[::-1]):
        holder.fun = fun
        for _ in range(3):
            np.testing.assert_allclose(derivative(x), 3 * x**2)
            np.testing.assert_allclose(grad(Equal(fun), mode=mode)(x), 3 * x**2)
            np.testing.assert_allclose(grad(Other(fun), mode=mode)(x), 3 * x**2)


STRETCH = 2.0


class Stretched:
    """A descriptor that assigns by name, as those that check or convert what they are given do."""

    factor = 3.0

    def __init__(self, power: float) -> None:
        self.power = power

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = "_" + name

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else getattr(owner, self.name) ** self.power

    def __set__(self, owner: Any, value: Any) -> None:
        setattr(owner, self.name, self.longer(value))
        owner.__dict__["seen"] = 1.0

    def longer(self, value: Any) -> Any:
        return value * STRETCH * self.factor


class Spring:
    length = Stretched(2.0)

    def __init__(self, length: Any) -> None:
        super().__setattr__("ends", 2)
        self.length = length


def test_what_descriptors_of_new_objects_read(monkeypatch):
    """They are compiled, and what they, and the methods that they call, read from outside is guarded."""
    derivative = grad(fun := lambda x: sum([Spring(v).length for v in x]) * Spring(x[0]).ends)
    check(derivative, fun, "at first")
    assert derivative.cache_info()[:2] == (2, 2)
    monkeypatch.setitem(globals(), "STRETCH", 5.0)
    check(derivative, fun, "a global of a method that is called")
    monkeypatch.setattr(Spring.__dict__["length"], "power", 3.0)
    check(derivative, fun, "what the descriptor holds")
    monkeypatch.setattr(Stretched, "factor", 1.0)
    check(derivative, fun, "what its class has")
    monkeypatch.setattr(Stretched, "longer", lambda self, value: value + 1.0)
    check(derivative, fun, "a method that is called")
    monkeypatch.setattr(Spring, "length", Stretched(1.0))
    Spring.__dict__["length"].__set_name__(Spring, "length")
    check(derivative, fun, "another descriptor")
    assert "dynamic mode" not in derivative.explain()


class Place:
    def __init__(self, place: int) -> None:
        self.place = place

    def __index__(self) -> int:
        return self.place


HELD = np.array(1)
PART = slice(0, HELD)


def test_slices_of_what_changes():
    place = Place(1)
    given, own = slice(0, HELD), slice(place)
    derivatives = [(value_and_grad(fun), fun) for fun in (lambda x, s: np.sum(np.sin(x)[s]), lambda x, s: np.sum(x[PART] ** 2))]
    x = np.array([0.3, 0.7, 0.9])
    for end in (1, 1, 1, 2, 1, 3, 2):
        HELD[...] = place.place = end
        for derivative, fun in derivatives:
            for part in (given, own, slice(0, np.int64(end))):
                value, slope = derivative(x, part)
                assert value == pytest.approx(fun(x, part), rel=1e-14)
                assert np.count_nonzero(slope) == end


class Level(enum.Enum):
    LOW = 1

    def __init__(self, factor: int) -> None:
        self.factor = float(factor)


class Title(str):
    factor: float


class Count(int):
    factor: float


TITLE, COUNT = Title("a"), Count(3)
RECORDS = np.array([(np.nan, 1), (np.nan, 1)], dtype=[("other", float), ("factor", int)])
ROW, RECORD = RECORDS[0], RECORDS.view(np.recarray)[1]


@pytest.mark.parametrize("held", [Level.LOW, TITLE, COUNT, RECORD, ROW])
def test_attributes_of_constants(held):
    """Of members of an enum, of the user's own kinds of text and numbers, and rows of structured arrays."""
    x = np.array([0.5, 1.5])
    take = (lambda one: one["factor"]) if held is ROW else (lambda one: one.factor)
    derivatives = grad(lambda x: np.sum(x) * take(held)), grad(lambda x, one: np.sum(x) * take(one))
    for factor in (1, 1, 1, 1, 2, 1, 2, 3):
        if held is ROW or held is RECORD:
            held["factor"] = factor
        else:
            held.factor = factor
        np.testing.assert_array_equal(derivatives[0](x), [factor, factor])
        np.testing.assert_array_equal(derivatives[1](x, held), [factor, factor])
    assert all(derivative.cache_info().hits for derivative in derivatives)


def on_three_sides(rates):
    """Of which the last side alone asks how many there are."""

    def total(x):
        if x > 1:
            return x + rates[0]
        if x > 0:
            return x * x + rates[0]
        return x * len(rates) + rates[0]

    return total


@pytest.mark.parametrize("users", [1, 2])
def test_what_one_side_alone_asks_is_checked_where_its_code_is_made_later(users):
    rates = [0.5, 1.5]
    fun = on_three_sides(rates)
    derivatives = [value_and_grad(on_three_sides(rates)) for _ in range(users)]
    for x in [2.0] * 3 + [0.5] * 3 + [-1.0] * 4:
        for derivative in derivatives if x > 0 else derivatives[:1]:
            assert derivative(x)[0] == fun(x)
    hits = derivatives[0].cache_info().hits
    assert derivatives[0](-2.0) == (fun(-2.0), 2.0)
    assert derivatives[0].cache_info().hits > hits
    rates.append(2.5)
    for derivative in derivatives[::-1]:
        assert derivative(-1.0) == (fun(-1.0), 3.0)
    rates.pop()
    for derivative in derivatives:
        assert derivative(-1.0) == (fun(-1.0), 2.0)
        assert derivative(0.5) == (fun(0.5), 1.0)


RATE = [1.0]


class Rates(dict):
    def __missing__(self, key):
        return key * RATE[0]


class Scaled(list):
    def __getitem__(self, place):
        return place * RATE[0]


@pytest.mark.parametrize("kind", [Rates, Scaled])
@pytest.mark.parametrize(
    "use",
    [
        lambda held: held[2],
        lambda held: operator.getitem(held, 2),
        lambda held: operator.itemgetter(2)(held),
        lambda held: held.__getitem__(2),
        lambda held: sum(map(held.__getitem__, [2, 3])),
        lambda held: (lambda get: get(2))(held.__getitem__),
        lambda held: max([2, 3], key=held.__getitem__) * held[3],
    ],
)
def test_what_containers_of_a_functions_own_classes_read(kind, use):
    def fun(x):
        return use(kind()) * x * x

    derivative = value_and_grad(fun)
    for rate in (1.0, 1.0, 1.0, 2.0, -1.0):
        RATE[0] = rate
        assert derivative(1.5) == (fun(1.5), 2 * fun(1.5) / 1.5)


class Scaling:
    """A descriptor."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, owner, kind):
        return getattr(owner, self.name)

    def __set__(self, owner, value):
        setattr(owner, self.name, value * RATE[0])

    def __delete__(self, owner):
        setattr(owner, self.name, RATE[0])


class Settings:
    described = Scaling()

    def __init__(self):
        self.held = {}

    @property
    def rate(self):
        return self.kept

    @rate.setter
    def rate(self, value):
        self.kept = value * RATE[0]

    @rate.deleter
    def rate(self):
        self.kept = RATE[0]

    def __setitem__(self, key, value):
        self.held[key] = value * RATE[0]

    def __delitem__(self, key):
        self.held[key] = RATE[0]

    def __getattr__(self, name):
        if name == "unknown":
            return RATE[0]
        raise AttributeError(name)

    def __iter__(self):
        return self

    def __next__(self):
        return RATE[0]


class Total(float):
    def __mul__(self, other):
        return float(self) * other * RATE[0]


class Row(tuple):
    def __add__(self, other):
        return Row((*self, *other, RATE[0]))


class Listed(list):
    def __iter__(self):
        return (item * RATE[0] for item in list.__iter__(self))

    def __contains__(self, item):
        return item < RATE[0]


def set_property(x):
    made = Settings()
    made.rate = 3.0
    return made.kept * x


def set_by_name(x):
    made = Settings()
    setattr(made, "rate", 3.0)  # noqa: B010
    return made.kept * x


def delete_property(x):
    made = Settings()
    del made.rate
    return made.kept * x


def set_described(x):
    made = Settings()
    made.described = 3.0
    return made.described * x


def delete_described(x):
    made = Settings()
    del made.described
    return made.described * x


def set_item(x):
    made = Settings()
    made["a"] = 3.0
    return made.held["a"] * x


def delete_item(x):
    made = Settings()
    del made["a"]
    return made.held["a"] * x


@pytest.mark.parametrize(
    "fun",
    [
        set_property,
        set_by_name,
        delete_property,
        set_described,
        delete_described,
        set_item,
        delete_item,
        lambda x: Settings().unknown * x,
        lambda x: next(Settings()) * x,
        lambda x: Total(2.0) * x,
        lambda x: (Row((1.0,)) + Row((2.0,)))[-1] * x,
        lambda x: list(Listed([1.0, 2.0]))[1] * x,
        lambda x: sum(a * b for a, b in zip(Listed([1.0, 2.0]), (x, x), strict=True)),
        lambda x: x * operator.contains(Listed([1.0]), 1.5),
    ],
)
def test_what_methods_read_that_python_calls_of_its_own_accord(fun):
    derivative = value_and_grad(fun)
    for rate in (1.0, 1.0, 1.0, 2.0, -1.0):
        RATE[0] = rate
        assert derivative(1.5) == pytest.approx((fun(1.5), fun(1.5) / 1.5), rel=1e-12)


class Flagged:
    """Objects that are equal as long as a global says so."""

    equal = False

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return 1

    def __eq__(self, other):
        return Flagged.equal

    def __class_getitem__(cls, number):
        return number * (2 if Flagged.equal else 1)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: len({Flagged(1), Flagged(2)}) * x,
        lambda x: len({Flagged(i) for i in range(3)}) * x,
        lambda x: len({Flagged(i): i for i in range(3)}) * x,
        lambda x: {Flagged(1): x}.get(Flagged(2), x * x),
        lambda x: Flagged[3] * x,
    ],
)
def test_what_keys_and_classes_read(fun, monkeypatch):
    derivative = value_and_grad(fun)
    for equal in (False, False, False, True, True, False):
        monkeypatch.setattr(Flagged, "equal", equal)
        assert derivative(3.0)[0] == fun(3.0)


def by_import(x):
    import imported_later.part as part

    return x * part.scale


def by_import_of_a_package(x):
    import imported_later.part

    return x * imported_later.part.scale


def by_import_from(x):
    from imported_later.part import scale

    return x * scale


@pytest.mark.parametrize(
    "fun", [by_import, by_import_of_a_package, by_import_from, lambda x: x * __import__("imported_later").part.scale]
)
def test_another_module_in_the_place_of_one_that_is_imported_in_a_function(fun, monkeypatch):
    derivative = value_and_grad(fun)
    for scale in (2.0, 2.0, 5.0, 5.0):
        package, part = types.ModuleType("imported_later"), types.ModuleType("imported_later.part")
        package.part, part.scale = part, scale
        monkeypatch.setitem(sys.modules, "imported_later", package)
        monkeypatch.setitem(sys.modules, "imported_later.part", part)
        for _ in range(3):
            assert derivative(3.0) == (3.0 * scale, scale)


def by_name_of_numpys(x):
    return np.sum(np.tanh(x))


def by_lookup(x):
    return np.sum(getattr(np, "tanh")(x))  # noqa: B009


def by_import_as(x):
    import numpy as other

    return np.sum(other.tanh(x))


def by_import_from_numpy(x):
    from numpy import tanh

    return np.sum(tanh(x))


def by_import_from_a_part(x):
    from numpy.linalg import norm

    return norm(x)


def by_names_in_a_part(x):
    return np.linalg.norm(x)


def by_iteration(x):
    return sum(map(np.tanh, x)) + sum([np.tanh(v) for v in x])


def by_symgrads_namespace(x):
    return np.sum(symgrad.numpy.tanh(x))


def of_a_constant(x):
    return np.sum(x) * np.pi


@pytest.mark.parametrize(
    "fun",
    [
        *[by_name_of_numpys, by_lookup, by_import_as, by_import_from_numpy, by_import_from_a_part, by_names_in_a_part],
        *[by_iteration, by_symgrads_namespace, of_a_constant],
    ],
)
def test_other_functions_in_the_place_of_numpys(fun, monkeypatch):
    derivative = value_and_grad(fun)
    for scale in (None, 2.0, 3.0):
        if scale is not None:
            monkeypatch.setattr(np, "tanh", lambda x, scale=scale: scale * x)
            monkeypatch.setattr(np.linalg, "norm", lambda x, scale=scale: scale * np.sum(x))
            monkeypatch.setattr(np, "pi", scale)
        for _ in range(CALLS):
            value, slope = derivative(X)
            assert value == pytest.approx(fun(X))
            np.testing.assert_allclose(slope, differences(fun, X), rtol=1e-6)


def by_pythons_own(x):
    return np.sum(abs(x)) * ord("a")


def test_other_functions_in_the_place_of_pythons_own(monkeypatch):
    derivative = value_and_grad(by_pythons_own)
    for name, other in (("abs", abs), ("abs", lambda x: 2.0 * x), ("ord", lambda x: 5.0)):
        monkeypatch.setattr(builtins, name, other)
        for _ in range(CALLS):
            value, slope = derivative(X)
            assert value == pytest.approx(by_pythons_own(X))
            np.testing.assert_allclose(slope, differences(by_pythons_own, X), rtol=1e-6)
        assert "guarded: abs is abs" not in derivative.explain()  # what nobody asks


@pytest.mark.parametrize("source", [True, False])
def test_names_that_somebody_has_put_among_pythons_own(source, monkeypatch):
    code = "def fun(x):\n    return np.sum(x) * SOMEWHERE"
    space = {"np": np}
    exec(compile(code, "<somewhere>", "exec"), space)
    if source:
        monkeypatch.setitem(linecache.cache, "<somewhere>", (len(code), None, code.splitlines(True), "<somewhere>"))
    gradient = grad(space["fun"])
    for value in (2.0, 3.0, np.array(4.0), 5):
        monkeypatch.setattr(builtins, "SOMEWHERE", value, raising=False)
        for _ in range(CALLS):
            assert gradient(X).tolist() == [value, value]
    space["SOMEWHERE"] = 7.0
    assert gradient(X).tolist() == [7.0, 7.0]
    del space["SOMEWHERE"]
    assert gradient(X).tolist() == [5.0, 5.0]
    monkeypatch.delattr(builtins, "SOMEWHERE")
    with pytest.raises(NameError):
        gradient(X)


def test_names_of_the_users_are_not_the_codes_own():
    """Globals named as Python's functions, and as what the code calls, are the user's alone."""
    code = """
        from numpy import cos, exp, sin

        def square(x):
            return x * x

        type = len = tuple = Exception = float = abs = 2.0

        def fun(x):
            return exp(-x) * sin(x) + type * len * tuple * Exception * float * square(x) + abs
        """
    space: dict[str, Any] = {}
    exec(textwrap.dedent(code), space)
    derivative = value_and_grad(space["fun"])
    changes = [("cos", None), ("type", 3.0), ("exp", np.cos), ("square", np.sin), ("len", 5.0), ("exp", np.exp)]
    for name, value in changes:
        space[name] = value
        for x in (0.3, 0.7, -1.1) + (np.float64(0.2), 5) * 3:
            found, slope = derivative(x)
            assert found == pytest.approx(space["fun"](x))
            assert slope == pytest.approx((space["fun"](x + 1e-6) - space["fun"](x - 1e-6)) / 2e-6, abs=1e-6)
    assert derivative.cache_info().hits > 10
    assert "__warningregistry__" not in space
    del space["square"]
    with pytest.raises(NameError, match="square"):
        derivative(0.3)


FACTOR = {"f": 1.0}


class Dual:
    """Numbers with operators that read attributes of their class."""

    factor, steps = 1.0, np.array([1.0, 2.0])

    def __init__(self, a, fun=None):
        self.a, self.fun = a, fun

    @staticmethod
    def lifted(other):
        return other if isinstance(other, Dual) else Dual(other)

    @property
    def scale(self):
        return FACTOR["f"]

    def scaled(self):
        return self.a * FACTOR["f"]

    def __add__(self, other):
        return Dual(self.a + self.factor * self.lifted(other).a)

    __radd__ = __add__

    def __mul__(self, other):
        return self.a * self.steps[0] * other

    def __sub__(self, other):
        return self.a * self.scale - other.a

    def __neg__(self):
        return self.scaled()

    def __abs__(self):
        return self.scaled()

    def __invert__(self):
        return self.fun(self)

    def __matmul__(self, other):
        return self.a * self.factor * other

    def __imul__(self, other):
        self.a = self.a * self.factor * other
        return self

    def __lt__(self, other):
        return self.a * self.factor < other.a

    def __setitem__(self, i, value):
        self.a = value * self.factor


ONE = Dual(1.5)


def multiplied(x):
    d = Dual(x)
    d *= 2.0
    return d.a


def multiplied_in_a_list(x):
    both = [Dual(x), Dual(2.0)]
    both[0] *= 2.0
    return both[0].a


def multiplied_in_an_object(x):
    d = Dual(1.0)
    d.inner = Dual(x)
    d.inner *= 2.0
    return d.inner.a


def assigned(x):
    d = Dual(1.0)
    d[0] = x
    return d.a


NOT_FOLLOWED = [
    lambda x: sum([Dual(x), Dual(2.0)], 1.0).a,
    lambda x: x * x if Dual(x) < Dual(2.5) else x,
    multiplied,
    multiplied_in_a_list,
    multiplied_in_an_object,
]


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: (Dual(x) + Dual(2 * x)).a,
        lambda x: (2.0 + Dual(x)).a,
        lambda x: (x + Dual(x)).a,
        lambda x: Dual(x) * 2.0,
        lambda x: (ONE + Dual(x)).a * x,
        lambda x: Dual(x) - Dual(x * x),
        lambda x: -Dual(x),
        lambda x: abs(Dual(x)),
        lambda x: operator.add(Dual(x), Dual(x * x)).a,
        lambda x: ~Dual(x, lambda d: d.a * FACTOR["f"]),
        lambda x: Dual(x) @ 3.0,
        assigned,
        *NOT_FOLLOWED,
    ],
)
def test_what_operators_read_of_their_class(fun):
    """They are followed; those that Python calls within ``sum``, ``<`` and ``*=`` are looked at for what they could read."""
    derivative = value_and_grad(fun)

    def check():
        h = 1e-6
        assert derivative(1.5) == pytest.approx((fun(1.5), (fun(1.5 + h) - fun(1.5 - h)) / (2 * h)), rel=1e-6)

    with pytest.MonkeyPatch.context() as patch:
        for _ in range(3):
            check()
        assert ("dynamic" in derivative.explain()) == (fun in NOT_FOLLOWED)
        patch.setattr(Dual, "factor", 4.0)
        patch.setattr(Dual, "steps", np.array([5.0, 2.0]))
        patch.setitem(FACTOR, "f", 6.0)
        patch.setattr(ONE, "a", 2.5)
        check()
        for name in ("__add__", "__radd__"):
            patch.setattr(Dual, name, lambda self, other: Dual(7.0 * self.a))
        check()
    check()


class Wide(Dual):
    def __radd__(self, other):
        return Dual(self.a * 100 + other.a)


def test_operators_are_asked_in_pythons_order():
    fun = lambda x: (Dual(x) + Wide(2 * x)).a + (Wide(x) + Dual(x)).a + (np.float64(2.0) + Dual(x)).a
    derivative = value_and_grad(fun)
    for _ in range(4):
        assert derivative(1.5) == pytest.approx((fun(1.5), 204.0), rel=1e-12)
    with pytest.raises(TypeError, match=">>: 'Dual' and"):
        grad(lambda x: Dual(x) >> x)(1.5)


def remembered(fun):
    known = {}

    def asked(i):
        if i not in known:
            known[i] = fun(i)
        return known[i]

    return asked


def by_the_factor(fun):
    factor = FACTOR["f"]
    return lambda i: factor * fun(i)


@pytest.mark.parametrize("decorator", [remembered, by_the_factor])
def test_decorators_of_inner_functions_are_followed(decorator, monkeypatch):
    def fun(x):
        @decorator
        def squared(i):
            return x[i] ** 2

        return squared(0) + squared(0) * squared(1)

    derivative, x = value_and_grad(fun), np.array([1.5, 2.0])
    for factor in (3.0, 3.0, 3.0, 5.0, 5.0):
        monkeypatch.setitem(FACTOR, "f", factor)
        value, slope = derivative(x)
        assert value == fun(x)
        np.testing.assert_allclose(slope, value_and_grad(fun, mode="dynamic")(x)[1])
    assert "dynamic" not in derivative.explain()


class Base:
    k = 1.0

    def f(self, x):
        return x


class Between(Base):
    pass


class Derived(Between):
    def f(self, x):
        more = 2.0 if hasattr(super(), "more") else 1.0
        return super().f(x) * super().k * more * getattr(super(), "other", 1.0)


class Elsewhere:
    k = 3.0

    def f(self, x):
        return x**3


def test_super_finds_what_a_class_between_gets():
    derived = Derived()
    derivative = grad(fun := lambda x: np.sum(derived.f(x)))
    check(derivative, fun, "at first")
    Between.f = lambda self, x: x**2
    check(derivative, fun, "a method")
    Between.f = lambda self, x: x**3
    check(derivative, fun, "another one")
    del Between.f
    check(derivative, fun, "none")
    Between.k = 5.0
    check(derivative, fun, "a number")
    Between.more = 3.0
    check(derivative, fun, "what is asked for")
    Between.other = 7.0
    check(derivative, fun, "what has a default")
    Derived.__bases__ = (Elsewhere,)
    check(derivative, fun, "another class")


# -- attributes that each call sets alike ----------------------------------------------------------------------------


def columns(d: int, x: Any) -> Any:
    columns.place = d  # type: ignore[attr-defined]

    def column(i: int) -> Any:
        size = d - i - 1
        found = np.concatenate((np.zeros(i + 1), x[columns.place : columns.place + size]))  # type: ignore[attr-defined]
        columns.place += size  # type: ignore[attr-defined]
        return found

    return np.column_stack([column(i) for i in range(d)])


def sets_numbers(x: Any, m: Any) -> Any:
    m.fitted = True
    m.kind = "a"
    m.n = len(x)
    m.rate = 0.5
    return np.sum(x**2) * m.n * m.rate


def sets_in_a_loop(x: Any, m: Any) -> Any:
    m.n = 0
    for k in range(5):
        m.n += k
    return np.sum(x**2) * m.n


def sets_by_sign(x: Any, m: Any) -> Any:
    if x[0] > 0:
        m.kind = "positive"
    else:
        m.kind = "negative"
    return np.sum(x**2) * (2.0 if m.kind == "positive" else 3.0)


def fills_once(x: Any, m: Any) -> Any:
    if not m.fitted:
        m.n = 7
        m.fitted = True
    return np.sum(x**2) * m.n


def counts(x: Any, m: Any) -> Any:
    m.n += 1
    return np.sum(x**2) * m.n


def counts_on(x: Any, m: Any) -> Any:
    m.n = m.n + 1
    return np.sum(x**2) * m.n


def keeps(x: Any, m: Any) -> Any:
    m.last = x[0] > 0
    m.rate = np.sum(x)
    return np.sum(x**2) * (2.0 if m.last else 3.0)


def swaps(x: Any, m: Any) -> Any:
    m.n = 3
    m.n, m.rate = m.rate, m.n
    return np.sum(x**2) * m.n


def puts_back(x: Any, m: Any) -> Any:
    before, m.kind = m.kind, "b"
    result = np.sum(x**2) * len(m.kind)
    m.kind = before
    return result


def sets_behind(x: Any, m: Any) -> Any:
    m.n = 3
    vars(m)["n"] = 5
    return np.sum(x**2) * m.n


class Model:
    def __init__(self) -> None:
        self.n, self.fitted, self.kind, self.rate, self.last = 0, False, "", 1.0, None


STEADY = [sets_numbers, sets_in_a_loop, sets_by_sign, fills_once, counts, counts_on]


@pytest.mark.parametrize("fun", [*STEADY, keeps, swaps, puts_back, sets_behind])
def test_attributes_are_set_as_the_function_does(fun: Any) -> None:
    """Where they would be what they are, code sets none; where they are not, nobody may tell."""
    rng = np.random.default_rng(0)
    derivative, models = grad(fun), (Model(), Model())
    for i in range(24):
        x = rng.normal(size=3)
        np.testing.assert_allclose(derivative(x, models[0]), grad(fun, mode="dynamic")(x, models[1]))
        assert {k: repr(v) for k, v in vars(models[0]).items()} == {k: repr(v) for k, v in vars(models[1]).items()}
        if i % 5 == 4:  # somebody else does, too
            for model in models:
                model.n, model.kind, model.fitted = i, "c", False
    assert bool(derivative.cache_info().hits) == (fun in STEADY)


class Logged:
    def __init__(self) -> None:
        object.__setattr__(self, "log", [])

    def __setattr__(self, name: str, value: Any) -> None:
        self.log.append((name, value))  # type: ignore[attr-defined]
        object.__setattr__(self, name, value)


def test_attributes_that_classes_set_in_ways_of_their_own() -> None:
    owner: Any = Logged()

    def fun(x: Any) -> Any:
        owner.a = 3
        return np.sum(x) * owner.a

    derivative = grad(fun)
    for _ in range(6):
        derivative(np.ones(2))
    assert owner.log == [("a", 3)] * 6


def test_attributes_of_functions() -> None:
    derivative = grad(lambda x: np.sum(np.tanh(columns(4, x)) ** 2))
    for i in range(5):
        x = np.linspace(0.1, 1.0 + i, 10)
        np.testing.assert_allclose(derivative(x), np.where(np.arange(10) < 4, 0, 2 * np.tanh(x) / np.cosh(x) ** 2))
        assert columns.place == 10  # type: ignore[attr-defined]
    assert derivative.cache_info().hits == 2  # what goes round in a loop is found out by the first trace


def test_attributes_of_functions_that_are_set_by_name() -> None:
    def helper(x: Any) -> Any:
        return x

    helper.n = 0  # type: ignore[attr-defined]

    def fun(x: Any) -> Any:
        setattr(helper, "n", helper.n + 1)  # type: ignore[attr-defined]  # noqa: B010
        return np.sum(x)

    derivative = grad(fun)
    for _ in range(6):
        derivative(np.ones(2))
    assert helper.n == 6  # type: ignore[attr-defined]


def test_forms_outside_that_share_loops() -> None:
    """What one of them knows of the ways through loops is not the other one's."""
    box = types.SimpleNamespace(flag=True, n=4, rng=np.random.default_rng(77))

    def fun(w: Any) -> Any:
        x, t = w, 0.0
        if box.flag:
            x = 0.8 * x + 0.05 * (box.rng.normal(size=6) + np.sin(x))
        for _ in range(9):
            for _ in range(box.n):
                x = 0.8 * x + 0.1 * np.tanh(x) * np.sin(t)
                if np.sum(x) > 0:
                    continue
            t = 0.9 * t + np.sin(np.sin(np.tanh(t)))
        for _ in range(box.n):
            if t > 0.3 and np.mean(x) > 0:
                continue
        return t + np.sum(x * x)

    derivative, rng = value_and_grad(fun), np.random.default_rng(1)
    for i in range(12):
        box.flag, box.n = i % 3 != 2, 6 if i == 3 else 4
        box.rng = np.random.default_rng(123 if i == 5 else 3 if i == 6 else 77 + i)
        start = box.rng.bit_generator.state
        w = np.linspace(-1.0, 1.0, 6) + 0.3 * rng.normal(size=6)
        value, slope = derivative(w)
        box.rng.bit_generator.state = start
        assert value == pytest.approx(fun(w))
        box.rng.bit_generator.state = start
        np.testing.assert_allclose(slope, grad(fun, mode="dynamic")(w), rtol=1e-8, atol=1e-12)


# -- code that is not followed -------------------------------------------------------------------------------------


@functools.cache
def program(text: str, space: types.ModuleType) -> Any:
    """A function of a module, with its source at hand."""
    source, name = f"def fun(x):\n    return {text}\n", f"<program {text}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), vars(space))
    return vars(space).pop("fun")


@pytest.mark.parametrize("text", specials.PROGRAMS)
def test_what_code_that_is_not_followed_asks(text: str) -> None:
    """Special methods that C code calls, objects that libraries look into: what they read is looked at again."""
    fun = program(text, specials)
    for change in specials.CHANGES:
        specials.reset()
        derivative = grad(fun)
        for _ in range(3):
            derivative(1.5)
        change()
        found = derivative(1.5)
        specials.reset()
        change()
        assert found == grad(fun, mode="dynamic")(1.5), change.__name__


# what C code does not ask, or asks of what has no special methods of the user's, is compiled
AS_BEFORE = """
sum(map(operator.mul, [x, x], xs)) * k
list(map(np.sin, [x, x]))[0] * k
list(map(abs, [x]))[0] * k
list(filter(None, [x, 0.0]))[0] * k
sorted([x, 1.0], key=abs)[0] * k
functools.reduce(operator.mul, [x, 2.0, k])
list(itertools.accumulate([x, 2.0], operator.mul))[1] * k
list(itertools.starmap(lambda a, b: a * b, zip([x], xs)))[0] * k
sum(itertools.chain.from_iterable([[x], [x]])) * k
sum(v for v in xs) * x
dict(zip("ab", xs))["a"] * x
copy.copy(ps)[0].a * x
(lambda r: r.extend(layers) or r[0])([])(x)
[list(g)[0](x) for _, g in itertools.groupby(layers, key=lambda layer: layer.a)][0]
list(itertools.starmap(lambda layer, y: layer(y), zip(layers, [x, x])))[0]
dict(zip("ab", layers))["a"](x)
[layer(x) for layer in map(Layer, xs)][0]
functools.reduce(lambda y, layer: layer(y), layers, x)
heapq.nlargest(1, ps, key=lambda p: p.a)[0].a * x
[p.a for p in map(P, xs)][0] * x
copy.deepcopy({"a": xs})["a"][0] * x
np.array(list(map(float, xs))).sum() * x
""".strip().splitlines()


@pytest.mark.parametrize("text", AS_BEFORE)
def test_what_asks_nothing_is_compiled(text: str) -> None:
    specials.reset()
    derivative = grad(program(text, specials))
    for _ in range(4):
        derivative(1.5)
    assert derivative.cache_info().hits == 2


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_types_that_map_calls_are_followed(mode: str) -> None:
    np.testing.assert_allclose(grad(lambda x: sum(map(np.float64, x)), mode=mode)(X), [1.0, 1.0])


# functions without source, and what changes
UNSEEN = [
    ("def inner(x, y=2.0): return x * y\ndef f(x): return inner(x)", "inner.__defaults__ = (7.0,)"),
    ("def inner(x, *, y=2.0): return x * y\ndef f(x): return inner(x)", "inner.__kwdefaults__ = {'y': 7.0}"),
    ("def inner(x, *, y=2.0): return x * y\ndef f(x): return inner(x)", "inner.__kwdefaults__['y'] = 7.0"),
    ("def inner(x, y=[2.0]): return x * y[0]\ndef f(x): return inner(x)", "inner.__defaults__[0][0] = 7.0"),
    ("k0 = 2.0\ndef f(x): return f.__globals__['k0'] * x", "k0 = 7.0"),
    ("k0 = 2.0\ndef f(x): return getattr(f, '__globals__')['k0'] * x", "k0 = 7.0"),
    ("class O: kl = 2.0\ndef f(x): return getattr(O, 'kl') * x", "O.kl = 7.0"),
    ("class O: kl = 2.0\nn = 'kl'\ndef f(x): return getattr(O, n) * x", "O.kl = 7.0"),
    ("class O: kl = 2.0\ndef f(x): return O.__dict__['kl'] * x", "O.kl = 7.0"),
    ("class B: kl = 2.0\nclass O(B): pass\ndef f(x): return O().kl * x", "O.kl = 7.0"),
    ("class V:\n  def __neg__(s, k=2.0): return k\ndef f(x): return -V() * x", "V.__neg__.__defaults__ = (7.0,)"),
    ("class V:\n  k = 2.0\n  def __neg__(s): return getattr(s, 'k')\ndef f(x): return -V() * x", "V.k = 7.0"),
    (
        "class M(type):\n  def __iter__(c): return iter([k0])\nclass Z(metaclass=M): pass\nk0 = 2.0\n"
        "def f(x): return sum(Z) * x",
        "k0 = 7.0",
    ),
    ("import math\nmath.k0 = 2.0\ndef f(x): return math.k0 * x", "math.k0 = 7.0"),
    (
        "import sys, types\nsys.modules['m_x'] = types.SimpleNamespace(k=2.0)\ndef f(x):\n  import m_x\n  return m_x.k * x",
        "sys.modules['m_x'].k = 7.0",
    ),
]


@pytest.mark.parametrize(("source", "change"), UNSEEN)
def test_what_functions_without_source_read(source: str, change: str) -> None:
    space: dict[str, Any] = {}
    exec(source, space)
    derivative = grad(space["f"])
    assert [derivative(1.5) for _ in range(3)] == [2.0] * 3
    exec(change, space)
    assert derivative(1.5) == 7.0
    sys.modules.pop("m_x", None)
    vars(math).pop("k0", None)


@pytest.mark.parametrize(
    "ask", ["d.get('b', 0.1)", "d['b'] if 'b' in d else 0.5", "sum(d.values())", "sum(dict(d)[k] for k in d)"]
)
@pytest.mark.parametrize("outside", [True, False])
def test_to_look_puts_no_defaults(ask, outside):
    """Whether code still holds is asked without a change to the dict that is there now."""
    space = {"np": np, "d": None}
    fun = eval(f"lambda x, {'other' if outside else 'd'}: np.sum(x) * ({ask})", space)
    derivative, x = value_and_grad(fun), np.ones(3)
    for kind in (dict, lambda **items: collections.defaultdict(lambda: 7.0, **items)):
        for items in ({"a": 1.0, "b": 2.0}, {"a": 1.0}, {"b": 3.0}, {}):
            for _ in range(3):
                space["d"] = d = kind(**items)
                value, slope = derivative(x, d)
                assert dict(d) == items
                assert value == pytest.approx(fun(x, d))
                np.testing.assert_allclose(slope, np.full(3, value / 3), rtol=1e-12)


class FromOne(list):
    def __getitem__(self, i):
        return super().__getitem__(i - 1)


class OneMore(list):
    def __len__(self):
        return super().__len__() + 1


class TenTimes(dict):
    def __getitem__(self, key):
        return 10.0 * super().__getitem__(key)


class Minus(collections.namedtuple("Pair", "first second")):
    def __getitem__(self, i):
        return -super().__getitem__(i)


@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "sum(o)", "sum([v * 2 for v in o])", "(lambda a, b: a - 3 * b)(*o)", "sum(i * v for i, v in enumerate(o))",
        "np.sum(np.array(o)) * o[1]", "sum(o.values())", "sum(v for k, v in o.items())", "o.get('a')",
        "(lambda a, b: a - b)(**o)", "o['a'] + sum(o.values())",
    ],
)  # fmt: skip
def test_containers_with_items_of_their_own(text, outside):
    """Python itself reads what is in them, whatever ``x[key]`` gives."""
    made = [TenTimes(a=1.5, b=2.0)] if "o.values" in text or "o.items" in text or "o.get" in text or "**" in text else []
    for o in made or [FromOne([1.5, 2.0]), Minus(1.5, 2.0), OneMore([1.5, 2.0])]:
        fun = eval(f"lambda x, {'other' if outside else 'o'}: np.sum(x) * ({text})", {"np": np, "o": o})
        derivative = value_and_grad(fun)
        for factor in (1.0, 2.0, 3.0, 4.0):
            x = factor * np.ones(2)
            value, slope = derivative(x, o)
            assert value == pytest.approx(fun(x, o))
            np.testing.assert_allclose(slope, np.full(2, value / (2 * factor)))


def test_gradients_by_containers_with_items_of_their_own():
    derivative = grad(lambda o: o["a"] ** 2 + sum(o.values()))
    for _ in range(4):
        found = derivative(TenTimes(a=1.5, b=2.0))
        assert dict(found.items()) == {"a": 301.0, "b": 1.0}


NAMED = {  # what a function computes by builtins, of which the passes over its source leave some out; and what another is
    "sum of items": ("sum(v * v for v in x)", "sum", lambda items: next(iter(items))),
    "sum of a list": ("sum([v * v for v in x])", "sum", lambda items: next(iter(items))),
    "sum": ("sum(x * x)", "sum", lambda items: items[1]),
    "max of items": ("max(v * v for v in x)", "max", lambda items: next(iter(items))),
    "any": ("x[0] if any(v > 1 for v in x) else x[1]", "any", lambda items: False),
    "all": ("x[0] if all(v > 0 for v in x) else x[1]", "all", lambda items: False),
    "map": ("sum(map(lambda v: v * v, x))", "map", lambda fun, items: [items[0]]),
    "filter": ("sum(filter(lambda v: v > 1, x))", "filter", lambda fun, items: [items[1]]),
    "zip": ("sum([a * b for a, b in zip(x, x[1:])])", "zip", lambda a, b: [(a[0], b[0])]),
    "enumerate": ("sum([i * v for i, v in enumerate(x)])", "enumerate", lambda items: [(5, items[0])]),
    "range": ("sum([i * x[i] for i in range(3)])", "range", lambda n: [1, 1]),
    "len": ("len(x) * x[0]", "len", lambda items: 7),
    "reversed": ("sum([v for v in reversed(x)])", "reversed", lambda items: [items[0]]),
}


@pytest.mark.parametrize(("name", "where"), [*[(name, "module") for name in NAMED], ("filter", "builtins")])
def test_a_name_of_a_builtins_that_is_another_ones(name, where, tmp_path, monkeypatch):
    """Also where the code knows nothing of it any more: it is not what it was."""
    text, builtin, other = NAMED[name]
    fun = function_of(f"def fun(x):\n    return {text}\n", tmp_path / "named.py")
    derivative, x = value_and_grad(fun), np.array([2.0, 1.0, 3.0])
    for _ in range(4):
        before = derivative(x)
    assert before[0] == fun(x)
    space = fun.__globals__ if where == "module" else vars(builtins)
    with monkeypatch.context() as context:
        context.setitem(space, builtin, other)
        found = [(derivative(x), fun(x), value_and_grad(fun, mode="dynamic")(x)[1]) for _ in [0, 1, 2]]
    for (value, slope), expected, theirs in found:
        assert value == expected != before[0]
        np.testing.assert_array_equal(slope, theirs)
    value, slope = derivative(x)
    assert value == before[0]
    np.testing.assert_array_equal(slope, before[1])


def still_right(derivative, fun, calls=3):
    """Its calls give what the function does now."""
    for _ in range(calls):
        right_at(derivative, fun, np.array([0.3, -0.2, 0.9]), value=(1e-14, 0.0), slope=(1e-13, 1e-15))


class Layer:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x):
        return self.scale * x

    def __repr__(self):
        return "Layer"


class Layers:
    """Weights that are found by the layers themselves."""

    def __init__(self):
        self.each = [Layer(0.5), Layer(-0.3), Layer(0.2)]
        self.weights = {layer: np.arange(3.0) + k for k, layer in enumerate(self.each)}

    def in_turn(self, x):
        for layer in self.each:
            x = np.tanh(layer(x) + self.weights[layer])
        return np.sum(x)

    def by_items(self, x):
        for layer, weights in self.weights.items():
            x = np.tanh(layer.scale * x + weights)
        return np.sum(x)

    def by_keys(self, x):
        for layer in self.weights:
            if layer in self.weights and (layer, 1) not in self.weights:
                x = np.tanh(layer.scale * x + self.weights[layer])
        return np.sum(x)

    def first(self, x):
        return np.sum(x * self.weights[self.each[0]])


@pytest.mark.parametrize("name", ["in_turn", "by_items", "by_keys", "first"])
def test_objects_as_keys(name):
    """What is found by an object is found by that which there is now."""
    net = Layers()
    fun = getattr(net, name)
    derivative = value_and_grad(fun)

    right = functools.partial(still_right, derivative, fun)
    right()
    hits = derivative.cache_info().hits
    right(calls=1)
    assert derivative.cache_info().hits == hits + 1
    net.weights[net.each[0]][1] = 7.0
    right()
    net.weights[net.each[0]] = np.array([2.0, 3.0, 4.0])
    right()
    net.each[0].scale = -0.9
    right()
    net.each[0], net.each[1] = net.each[1], net.each[0]
    right()
    other = Layer(0.8)
    net.weights[other] = np.array([5.0, 6.0, 8.0])
    net.each[0] = other
    right()
    del net.weights[net.each[2]]
    net.each.pop()
    right()


class Link:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x, w):
        return np.tanh(self.scale * x + w)

    def __eq__(self, other):
        return self.scale == other.scale

    __hash__ = None

    def __repr__(self):
        return "Link"


LINKS: list[Any] = []
HANDED_ON = {
    "slice": lambda ws: zip(LINKS[:-1], ws, strict=False),
    "enumerated": lambda ws: ((link, ws[k]) for k, link in enumerate(LINKS[1:])),
    "copy": lambda ws: zip(list(LINKS), ws, strict=False),
    "sum": lambda ws: zip(LINKS[:1] + LINKS[2:], ws, strict=False),
    "pairs": lambda ws: [(link, w) for (link, _), w in zip([(LINKS[0], 1), (LINKS[2], 2)], ws, strict=False)],
    "neighbours": lambda ws: [(b, w) for (a, b), w in zip(itertools.pairwise(LINKS), ws, strict=False) if a.scale > -9],
    "kept": lambda ws: zip([link for link in LINKS if link.scale > 0], ws, strict=False),
    "sorted": lambda ws: zip(sorted(LINKS, key=lambda link: link.scale), ws, strict=False),
    "reversed": lambda ws: zip(reversed(LINKS), ws, strict=False),
}


@pytest.mark.parametrize("name", HANDED_ON)
def test_objects_that_are_only_handed_on(name, monkeypatch):
    """In lists that the function makes of them, too: nobody asks them for what is equal, or how they are shown."""
    given = HANDED_ON[name]
    LINKS[:] = Link(0.5), Link(-0.3), Link(0.8)

    def fun(x):
        for link, w in given([x * 0.5, x + 0.25, x**2]):
            x = link(x, w)
        return np.sum(x)

    derivative = value_and_grad(fun)

    right = functools.partial(still_right, derivative, fun)
    right()
    hits = derivative.cache_info().hits
    right(calls=1)
    assert derivative.cache_info().hits == hits + 1
    LINKS[0].scale = 0.7
    right()
    LINKS[1] = Link(0.4)
    right()
    monkeypatch.setattr(Link, "__call__", lambda self, x, w: self.scale * x * w)
    right()
    LINKS[0] = lambda x, w: x - w
    if name not in ("kept", "sorted", "neighbours"):
        right()


def test_functions_of_numpys_as_keys():
    table = {np.tanh: 2.0, np.sum: 3.0}

    def fun(x):
        return np.sum(x) * table[np.tanh] + table[np.sum]

    derivative, x = value_and_grad(fun), np.array([0.5, 2.0])
    for table[np.tanh] in (2.0, 2.0, 2.0, 5.0):
        value, slope = derivative(x)
        assert value == fun(x)
        assert slope.tolist() == [table[np.tanh]] * 2
    assert derivative.cache_info().hits > 0


def test_arguments_as_keys():
    one, other, unknown = Layer(1.0), Layer(1.0), Layer(1.0)
    table = {one: 2.0, other: 3.0}
    for fun in (
        lambda x, key: table.get(key, 1.0) * x,
        lambda x, key: 2.0 * x if key in table else x,
        lambda x, key: (table[key] if key in table else 5.0) * x,  # noqa: SIM401
    ):
        derivative = value_and_grad(fun)
        for key in (one, one, one, one, other, unknown, one, other, other, unknown):
            assert derivative(1.5, key)[0] == fun(1.5, key)


class Iterable:
    def __init__(self, values):
        self.values = values

    def __iter__(self):
        return iter(self.values)


def test_objects_that_are_unpacked_in_what_is():
    one = Iterable([1.0, 2.0])
    pair, items = (one, 3.0), [(one, 3.0)]

    def alone(x):
        (a, b), v = pair
        return a * b * v * x

    def each(x):
        total = 0.0
        for (a, b), v in items:
            total += a * b * v * x
        return total

    for fun in (alone, each):
        derivative = value_and_grad(fun)
        for one.values[0] in (1.0, 1.0, 1.0, 7.0, 7.0, 2.0):
            assert derivative(1.5)[0] == fun(1.5)


class Unset:
    """None in a class, which is there, unlike what ``__getattr__`` answers."""

    gate = None

    def gated(self, x):
        return x if self.gate is None else x * self.gate

    def found(self, x):
        return x if getattr(self, "gate", 1.0) is None else 3.0 * x

    def caught(self, x):
        try:
            return x * self.factor
        except AttributeError:
            return x

    def answered(self, x):
        return x * self.answer

    def __getattr__(self, name):
        if name != "answer":
            raise AttributeError(name)
        return 2.0


@pytest.mark.parametrize("name", ["gated", "found", "caught", "answered"])
def test_attributes_that_a_class_has_not_set(name, monkeypatch):
    g = grad(lambda x: getattr(Unset(), name)(x))
    for _ in range(3):
        assert g(2.0) == (2.0 if name == "answered" else 1.0)
    monkeypatch.setattr(Unset, "gate", 3.0)
    monkeypatch.setattr(Unset, "factor", 3.0, raising=False)
    monkeypatch.setattr(Unset, "answer", 3.0, raising=False)
    for _ in range(3):
        assert g(2.0) == 3.0
