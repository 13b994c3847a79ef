"""The graph: interning, constants that look alike, the text of a dump, and its invariants after each pass."""

import numpy as np
import pytest

from symgrad import grad, graph, hessian, value_and_grad
from symgrad.ir import Graph, aval_of
from symgrad.ops.core import REGISTRY
from symgrad.optimize.loops import trim_loops
from symgrad.optimize.lower import lower
from symgrad.optimize.simplify import simplify


def logistic(w, x, y):
    z = x @ w
    return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))


def branch(w, x, y):
    r = x @ w - y
    return np.sum(np.abs(r)) if r[0] > 0 else np.sum(r**2)


def loop(w, x, y):
    for _ in range(9):
        w = np.tanh(w) - 0.1 * (x @ w - y) @ x
    return np.sum(w)


def writes(w, x, y):
    out = np.zeros_like(w)
    out[1:] = w[1:] * w[:-1]
    out[0] += np.linalg.norm(x @ w)
    return np.sum(out * w)


RNG = np.random.default_rng(0)
ARGS = RNG.normal(size=3), RNG.normal(size=(4, 3)), RNG.normal(size=4)


@pytest.mark.parametrize("make", [value_and_grad, hessian])
@pytest.mark.parametrize("fun", [logistic, branch, loop, writes])
def test_invariants_hold_after_each_pass(fun, make):
    derivative = make(fun)
    program = derivative._compiler.traced(derivative._user, ARGS, {}).program
    for step in (None, trim_loops, simplify, lower):
        program = program if step is None else step(program)
        program.graph.verify()
        assert set(program.roots()) <= set(program.graph.nodes)


def test_equal_operations_are_one_node():
    made = Graph()
    x = made.input(0, aval_of(1.0))
    first = made.add(REGISTRY[np.sin], (x,), (), aval_of(np.float64(0)))
    assert made.add(REGISTRY[np.sin], (x,), (), aval_of(np.float64(0))) is first
    assert len(made) == 2


def test_constants_that_compare_equal_are_not_one():
    made = Graph()
    assert len({made.const(value) for value in (1, 1.0, True, 0.0, -0.0, np.float64(1.0), np.float32(1.0))}) == 7


def test_verify_finds_what_is_wrong():
    made = Graph()
    x = made.input(0, aval_of(1.0))
    made.add(REGISTRY[np.sin], (x,), (), aval_of(np.float64(0)))
    made.nodes.reverse()
    with pytest.raises(AssertionError):
        made.verify()


def test_one_line_a_node():
    text = str(graph(lambda x: np.sum(np.sin(x) * np.sin(x)), np.ones(2)))
    assert text.splitlines() == [
        "%0: float64[2] = input(position=0)",
        "%1: float64[2] = np.sin(%0)",
        "%2: float64[2] = np.multiply(%1, %1)",
        "%3: float64 = np.sum(%2)",
        "return %3",
    ]


def test_indices_that_wrap_round_may_name_one_element_twice():
    """``x[[0, -1]]`` of one row is that row twice, and the compiled transpose must add both."""
    derivative = value_and_grad(lambda x: np.sum(np.sin(x[[0, -1]])))
    x = np.array([[0.3, 0.6, 1.2]])
    for _ in range(4):
        assert np.allclose(derivative(x)[1], 2 * np.cos(x))


def halved(x):
    while x > 1.0:
        x = x / 2.0
    return x


def test_loops_show_what_runs_in_them():
    derivative = grad(halved)
    for _ in range(2):
        derivative(1000.0)
    text = str(derivative.graph(1000.0))
    forward, backward = (part for part in text.split("= loop(")[1:])
    assert "\n    while carried value 0 is true:\n" in forward
    assert "= np.divide(" in forward
    assert "\n    carry %" in forward
    assert "\n    once an element, from the last to the first:\n" in backward
    assert not text.rsplit("return", 1)[1].startswith("    ")
