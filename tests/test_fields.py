"""Dictionaries whose items alone a function names are locals, and what the function does stays as it is."""

import ast
import inspect
import textwrap

import numpy as np
import pytest
from agreement import right_at

from symgrad import value_and_grad
from symgrad.source.fields import as_locals


def rewritten(fun):
    return ast.unparse(ast.fix_missing_locations(as_locals(ast.parse(textwrap.dedent(inspect.getsource(fun))).body[0])))


def log(x):
    kept = {"x": [], "v": []}
    s = 0.0
    for v in x:
        s = 0.9 * s + v
        kept["x"].append(s)
        kept["v"].append(v * s)
    return np.mean(np.array(kept["x"]) ** 2) + np.sum(kept["v"])


def state(x):
    now = {"low": np.inf, "high": -np.inf, "n": 0}
    for v in x:
        if v < now["low"]:
            now["low"] = v
        if v > now["high"]:
            now["high"] = v
        now["n"] += 1
    return (now["high"] - now["low"]) * now["n"]


def made_anew(x):
    total = 0.0
    for i in range(3):
        some = {"sum": 0.0, "items": [x[i]], "two words": 2.0}
        for v in x:
            if v > 0.5:
                some["sum"] += v * some["two words"]
                some["items"].append(v)
        total += some["sum"] * len(some["items"])
    some["items"][0] = 7.0
    return total + x[0] * some["items"][0] + [w * 2 for w in some["items"]][-1]


def names_are_taken(x):
    d_k = 3.0
    d = {"k": x[0]}
    for v in x:
        if v > 0:
            d["k"] = d["k"] * 0.5 + v
    return d["k"] * d_k


APART = [log, state, made_anew, names_are_taken]


def asked_for_others(x):
    d = {"k": x[0]}
    for v in x:
        if v > 1:
            d["new"] = v
    return d["k"] + d.get("new", 0.0)


def in_a_function(x):
    d = {"k": x[0]}

    def twice():
        d["k"] = d["k"] * 2
        return d["k"]

    return sum(twice() for v in x if v > 0.5) + d["k"]


def handed_on(x):
    d = {"k": x[0], "items": [1.0]}
    for v in x:
        if v > 1:
            d["k"] = d["k"] * v
        d["items"].append(v)
    other = d
    other["k"] += 1.0
    return d["k"] + d["items"][-1]


def made_twice(x):
    d = {"k": x[0]}
    for v in x:
        if v > 1:
            d = {"k": v}
    return d["k"]


def deleted(x):
    d = {"k": x[0], "l": x[1]}
    for v in x:
        if v > 0 and "l" in d:
            del d["l"]
    return d["k"] * len(d)


LEFT = [asked_for_others, in_a_function, handed_on, made_twice, deleted]


@pytest.mark.parametrize("fun", APART)
def test_items_are_locals(fun):
    assert not any(isinstance(node, ast.Dict) for node in ast.walk(ast.parse(rewritten(fun))))


@pytest.mark.parametrize("fun", LEFT)
def test_others_stay(fun):
    assert rewritten(fun) == ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(fun))))


@pytest.mark.parametrize("fun", [*APART, *LEFT])
def test_they_do_what_they_did(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(12):
        right_at(derivative, fun, rng.normal(size=20), (1e-12, 0), (1e-9, 1e-12))


def test_a_dictionary_that_is_returned():
    def fun(x):
        d = {"items": [], "total": 0.0}
        for v in x:
            d["items"].append(v * 2)
            if v > 0:
                d["total"] += v
        return d["total"] + d["items"][0], d

    derivative, rng = value_and_grad(fun, has_aux=True), np.random.default_rng(0)
    for _ in range(3):
        x = rng.normal(size=20)
        (value, found), _ = derivative(x)
        expected, made = fun(x)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        assert list(found) == list(made)
        np.testing.assert_allclose(found["items"], made["items"])
        np.testing.assert_allclose(found["total"], made["total"])


def test_logs_of_long_loops_are_arrays():
    derivative, rng = value_and_grad(log), np.random.default_rng(0)
    for _ in range(3):
        x = rng.normal(size=500)
        derivative(x)
    assert len(derivative.source(x, fast=True).splitlines()) < 60
