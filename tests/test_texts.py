"""Texts that stand for states: they are numbers in the function that is traced, where nothing else is done with them."""

import ast

import numpy as np
import pytest

from symgrad import value_and_grad
from symgrad.source.texts import numbered


def machine(x):
    state, energy = "idle", 0.0
    for v in x:
        if state == "idle":
            if v > 0.5:
                state = "run"
        elif state == "run":
            energy = energy + v * v
            if v < -0.5:
                state = "stop"
        else:
            energy = energy * 0.9
            if v > 0:
                state = "idle"
    return energy + x[0]


def last(x):
    total = 0.0
    for v in x:
        if v > 0:
            kind = "up"
            total = total + v
        else:
            kind = "down"
            total = total + 2 * v
    return total if kind == "up" else -total


def turns(x):
    total, before = 0.0, None
    for v in x:
        side = "high" if v > 0.3 else "low"
        if before is not None and side != before:
            total = total + v * v
        before = side
    return total + x[0]


def among(x):
    total = 0.0
    mode = other = "a"
    for v in x:
        if mode in ("a", "b") and v > 0:
            total += v
        elif mode not in ["a", other]:
            total -= v * v
        if v > 1:
            mode = "c"
        elif v < -1:
            mode = "b"
    return total


def regime(x):
    speed = abs(x[0])
    if speed < 0.3:
        kind, factor = "laminar", 2.0
    elif speed < 0.8:
        kind, factor = "transition", x[1]
    else:
        kind, factor = "turbulent", 0.5
    if kind == "laminar":
        factor = factor * x[2]
    if x[3] > 0:
        factor = factor + x[3] ** 2
    if kind != "laminar" and x[4] > 0:
        factor = factor * 1.1
    if x[5] > 0:
        factor = factor * x[5]
    return factor * x[6]


@pytest.mark.parametrize("fun", [machine, last, turns, among, regime])
def test_states_in_loops(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    rng = np.random.default_rng(0)
    for k in range(80):
        x = rng.normal(size=8)
        x = np.abs(x) if k < 3 else -np.abs(x) if k < 6 else x
        value, slope = derivative(x)
        assert np.isclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-9, atol=1e-12)
    assert derivative.cache_info().misses < 25


def rewritten(body):
    tree = ast.parse("def f(x):\n" + "\n".join(f"    {line}" for line in body.split("\n")))
    return "\n".join(ast.unparse(numbered(tree.body[0])).split("\n")[1:]).replace("    ", "", 1).replace("\n    ", "\n")


def test_what_is_numbered():
    assert rewritten("s = 'a'\nif x:\n    s = 'b'\nreturn x if s == 'b' else 0") == (
        "s = 0\nif x:\n    s = 1\nreturn x if s == 1 else 0"
    )
    assert rewritten("s = None\nt = 'a' if x else s\nreturn s is None or t != 'c'") == (
        "s = 0\nt = 1 if x else s\nreturn s == 0 or t != 2"
    )


@pytest.mark.parametrize(
    "body",
    [
        "s = 'a'\nreturn s",
        "s = 'a'\nprint(s)\nreturn s == 'b'",
        "s = 'a'\nreturn x[s]",
        "s = 'a'\ns += 'b'\nreturn s == 'ab'",
        "s = 'a'\nreturn 'a' in s",
        "s = 'a'\nreturn s < 'b'",
        "s = 'a'\ns = x\nreturn s == 'b'",
        "s = t = 'a'\nreturn (s == 'b', t)",
        "s = 'a'\nfor s in x:\n    pass\nreturn s == 'b'",
        "s = 'a'\ng = lambda: s\nreturn s == 'b'",
        "s = 'a'\ntry:\n    x()\nexcept ValueError as s:\n    pass\nreturn s == 'b'",
        "s = 'a'\nimport s\nreturn s == 'b'",
        "s = 'a'\nreturn s is 'b'",
        "s = 'a'\nreturn s == x",
        "s = 'a'\ns: str = 'b'\nreturn s == 'b'",
        "s = 'a'\nif (s := 'b') == 'b':\n    pass\nreturn s == 'b'",
        "s = 'a'\nreturn locals() if s == 'a' else 0",
        "global s\ns = 'a'\nreturn s == 'b'",
        "x = 'a'\nreturn x == 'b'",
        "s = None\nreturn s is None",
        "s = 'a'\nmatch s:\n    case 'a':\n        return 1\nreturn s == 'b'",
        "s = 'a'\ndel s\nreturn s == 'b'",
        "s, t = x\nif s == 'a':\n    s = 'b'\nreturn 0",
        "s = 'a'\nreturn f'{s}' if s == 'a' else 0",
    ],
)
def test_what_stays(body):
    assert rewritten(body) == body
