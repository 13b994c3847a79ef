"""Dictionaries whose items alone a function names are locals, and what the function does stays as it is."""

import ast
import collections
import inspect
import textwrap
from collections import defaultdict

import numpy as np
import pytest
from agreement import right_at

from symgrad import value_and_grad
from symgrad.source.displays import displayed
from symgrad.source.fields import as_locals


def by_displays(fun):
    node = ast.parse(textwrap.dedent(inspect.getsource(fun))).body[0]
    return ast.fix_missing_locations(displayed(node, fun.__globals__))


def rewritten(fun):
    return ast.unparse(ast.fix_missing_locations(as_locals(by_displays(fun), fun.__globals__)))


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


def asked_for_others(x):
    d = {"k": x[0]}
    for v in x:
        if v > 1:
            d["new"] = v
    return d["k"] + d.get("new", 0.0)


def sums(x):
    d = {}
    for v in x:
        k = "up" if v > 0 else "down"
        d[k] = d.get(k, 0.0) + v
    return d.get("up", 0.0) ** 2 - d.get("down", 1.0)


def defaults(x):
    d = defaultdict(float)
    seen = {}
    for v in x:
        if v > 0:
            d["up"] += v
        else:
            d["down"] += v * v
            seen["down"] = True
    return d["up"] - d["down"] if "down" in seen else d["up"]


def two_by_one_key(x):
    n = collections.Counter()
    every = defaultdict(list)
    for v in x:
        k = "a"
        if v > 0.2:
            k = "b"
        n[k] += 1
        every[k].append(v * v)
        n["all"] += 1
    return (sum(every["a"]) + 1.0) / (n["a"] + 1) + np.sum(every["b"]) / n["all"]


def largest(x):
    most = {"none": x[0]}
    for v in x:
        key = "neg"
        if v > 0:
            key = "pos"
        if most.get(key) is None:
            most[key] = v
        else:
            most[key] = max(most[key], v)
    return most.get("pos", 0.0) - most.get("neg", 0.0) * most["none"]


def beside_other_items(x):
    d = {}
    w, i = [1.0, 2.0], 1
    for v in x:
        k = "up" if v > 0 else "down"
        d[k] = d.get(k, 0.0) + v
        s = w[i] if v > 1 else 0.0
        d["more"] = s
    return d.get("up", 0.0) + d["more"]


def asked_for_in_the_end(x):
    d = {"k": x[0], "l": 0.0}
    for v in x:
        if v > 0:
            d["l"] += v
    return d["k"] + d.get("l", 2.0) - d.get("other", 0.3)


def also_arrays(x):
    d = {}
    d["s"] = x.copy()
    d["s"] += 1
    if np.sum(x) > 0:
        d["t"] = d["s"] * 2
    return np.sum(d["s"] * d["t"]) if "t" in d else d["s"][0]


APART = [
    asked_for_in_the_end,
    log,
    state,
    made_anew,
    names_are_taken,
    asked_for_others,
    sums,
    defaults,
    two_by_one_key,
    largest,
]


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


def by_number(x):
    d = {}
    for i, v in enumerate(x):
        d[i % 3] = d.get(i % 3, 0.0) + v * i
    return d[0] * d[1] - d[2]


def not_the_builtin(x):
    float = lambda: x[0]
    d = defaultdict(float)
    for v in x:
        if v > 0:
            d["k"] += v
    return d["k"]


def default_that_may_fail(x):
    d = {}
    for v in x:
        if v > 0:
            d["a"] = v
    return d.get("a", d["a"] * 2)


def put_by_a_loop(x):
    d = {}
    for d["k"] in x:
        pass
    return d["k"] * d.get("k", 1.0)


def key_that_changes_at_once(x):
    d = {"a": 0.0, "b": 1.0}
    k = "a"
    for v in x:
        if v > 0:
            k, d[k] = "b", v
    return d["a"] * 2 + d["b"]


def key_that_may_be_unbound(x):
    d, s = {}, 0.0
    d["a"] = 1.0
    for v in x:
        s = s + (d[k] if s > 0 else 0.5) * v  # noqa: F821
        k = "a"  # noqa: F841
    return s


def text_that_is_put_together(x):
    d = {"aa": 1.0, "ab": x[0]}
    k = "a"
    k += "b" if x[0] > 0 else "a"
    for v in x:
        if v > 0:
            d["ab"] = v
    return d[k] * x[1]


def run_over(x):
    d = {}
    for v in x[:4]:
        d["up" if v > 0 else "down"] = v
    return sum(d.values())


def begun_with_its_own_items(x):
    total = 0.0
    for i in range(4):
        d = {"a": x[0] if i == 0 else d["b"], "b": x[1] if i == 0 else d["a"] * 2.0}  # noqa: F821
        total = total + d["a"] * (i + 1)
    return total


def changed_as_it_is_returned(x):
    d = {"a": x[0], "b": x[1]}
    for v in x:
        if v > 0:
            d["b"] = d["b"] * 0.5 + v
    return d.pop("a") * d["b"] + len(d)


def changed_when_it_is_returned(x):
    def totals():
        d = {"a": x[0]}
        for v in x:
            d["a"] = d["a"] + v
        try:
            return d
        finally:
            d["a"] = d["a"] * 5.0

    return totals()["a"]


def begun_in_part(x):
    total, known = 0.0, False
    for v in x:
        try:
            d = {"a": v, "b": [1.0][int(v > 1)] * v}
            known = True
        except IndexError:
            pass
        if known:
            total = total + d["a"] * d["b"]
    return total


def put_by_a_comprehension(x):
    d, total = {"a": 0.0}, 0.0
    for v in x:
        total = total + sum([d["a"] * 2.0 for d["a"] in (v, v * 3.0)]) + d["a"]
    return total


def two_with_one_name(x):
    def totals():
        d = {"a_b": x[0] * 2.0}
        d_a = {}
        for v in x:
            d_a["b"] = d_a.get("b", 0.0) + v * v
        d["a_b"] = d["a_b"] + d_a["b"]
        d_a["b"] = 1.0
        return d

    return totals()["a_b"]


MORE = [default_that_may_fail, put_by_a_loop, key_that_changes_at_once, key_that_may_be_unbound, text_that_is_put_together]
MORE += [two_with_one_name]
LEFT = [by_number, not_the_builtin, run_over, in_a_function, handed_on, made_twice, deleted]
LEFT += [
    begun_with_its_own_items,
    changed_as_it_is_returned,
    changed_when_it_is_returned,
    begun_in_part,
    put_by_a_comprehension,
]


def beside_an_array(x):
    s, kept = np.zeros(2), {"x": [], "v": []}
    for v in x:
        s = 0.9 * s + v
        kept["x"].append(s[0])
        kept["v"].append(v * s[1])
    return np.mean(np.array(kept["x"]) ** 2) + np.sum(kept["v"]) + s[0]


def made_by_a_call(x):
    kept = dict(x=[], v=[])  # noqa: C408
    for v in x:
        kept["x"].append(v * v)
        kept["v"].append(v)
    return sum(np.mean(one) for one in kept.values())


def made_by_a_comprehension(x):
    kept = {name: [] for name in ("x", "v")}
    for v in x:
        kept["x"].append(v * v)
        kept["v"].append(v)
    arrays = {name: np.array(one) for name, one in kept.items()}
    return arrays["x"] @ arrays["v"]


def all_items(x):
    now, kept = {"a": x[0], "b": x[1]}, {"a": [], "b": []}
    for v in x:
        now["a"], now["b"] = 0.9 * now["a"] + v, now["b"] * 0.5 - v * now["a"]
        for k in kept:
            kept[k].append(now[k])
    for k, one in kept.items():
        kept[k] = np.array(one)
    return max(np.max(one) for one in kept.values()) + sum([np.sum(kept[k]) for k in kept])


def swapped_at_once(x):
    a, d = x[0], {"k": 1.0}
    for v in x:
        a, d = v, {"k": d["k"] + a}
    return a * d["k"]


def shadowed(x):
    def dict(**items):
        return {"k": 2.0 * items["k"]}

    d = dict(k=x[0])
    return d["k"] * x[1]


def named_after(x):
    d = {"a": x[0], "b": x[1]}
    for k in d:
        d[k] = d[k] * 2.0
    return d[k] + d["a"]


def two_at_once(x):
    d = {"a": x[0], "b": x[1]}
    for k, v in d.items():
        d["b"] = v * 3.0
        d[k] = v + d["b"]
    return d["a"] * d["b"]


def left_early(x):
    d = {"a": x[0], "b": x[1], "c": x[2]}
    total = 0.0
    for v in d.values():
        if v > 0.5:
            break
        total += v
    return total + sum(v * w for v in d.values() for w in d.values())


APART += [beside_an_array, made_by_a_call, made_by_a_comprehension, all_items]
LEFT += [named_after, two_at_once, left_early]
MORE += [swapped_at_once, shadowed]


@pytest.mark.parametrize("fun", APART)
def test_items_are_locals(fun):
    assigned = [node.value for node in ast.walk(ast.parse(rewritten(fun))) if isinstance(node, ast.Assign)]
    assert not any(isinstance(value, ast.Dict) for value in assigned)


@pytest.mark.parametrize("fun", LEFT)
def test_others_stay(fun):
    assert rewritten(fun) == ast.unparse(by_displays(fun))


@pytest.mark.parametrize("fun", [*APART, *LEFT, *MORE, also_arrays])
def test_they_do_what_they_did(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(12):
        x = rng.normal(size=20)
        x[0] = abs(x[0])
        right_at(derivative, fun, x, (1e-12, 0), (1e-9, 1e-12))


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


def absent(x):
    d = {}
    for v in x:
        if v > 1:
            d["k"] = v
    return d["k"] * 2


def added_to(x):
    d = {}
    for v in x:
        if v > 1:
            d["k"] = v
        if v > 2:
            d["k"] += v
    d["other"] += 1.0
    return d["k"]


def given_to_a_list(x):
    d = defaultdict(list)
    for v in x:
        d["all"].append(v)
        if v > 0:
            d["up"].append(v)
    return sum(d["up"]) * d["up"][0]


@pytest.mark.parametrize(("fun", "kind"), [(absent, KeyError), (added_to, KeyError), (given_to_a_list, IndexError)])
def test_keys_that_are_not_there(fun, kind):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(3):
        if fun is not added_to:
            right_at(derivative, fun, rng.normal(size=20), (1e-12, 0), (1e-9, 1e-12))
        with pytest.raises(kind) as found:
            derivative(-np.abs(rng.normal(size=20)))
        with pytest.raises(kind) as expected:
            fun(-np.ones(20))
        assert found.value.args == expected.value.args


@pytest.mark.parametrize("fun", [sums, defaults, two_by_one_key, largest])
def test_sums_by_keys_are_compiled(fun):
    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(8):
        derivative(rng.normal(size=30))
    before = derivative.cache_info().misses
    for _ in range(20):
        derivative(rng.normal(size=30))
    assert derivative.cache_info().misses <= before + 1


def test_logs_of_long_loops_are_arrays():
    derivative, rng = value_and_grad(log), np.random.default_rng(0)
    for _ in range(3):
        x = rng.normal(size=500)
        derivative(x)
    assert len(derivative.source(x, fast=True).splitlines()) < 60
