"""Lists that functions within fill, as callbacks do, are as the lists that objects hold: how many items there are is no way of
its own, and whatever else is done with them sees what there is."""

import ast

import numpy as np
import pytest
from agreement import hangs_on_no_count, right_at

from symgrad import value_and_grad
from symgrad.source.holders import held
from symgrad.source.instrument import taken

A, B = np.random.default_rng(0).standard_normal((30, 3)), np.random.default_rng(1).standard_normal(30)


def descend(x, callback, tolerance=1e-3):
    w, last = x[:3], np.inf
    for k in range(80):
        error = A @ w - B
        w, loss = w - x[3] * (A.T @ error) / 30, np.mean(error**2)
        callback(k, loss)
        if last - loss < tolerance:
            break
        last = loss
    return w


def by_a_callback(x):
    losses = []

    def note(k, loss):
        losses.append(loss)

    w = descend(x, note)
    return np.mean(losses) + losses[-1] * w[0]


def by_a_lambda(x):
    losses: list[float] = []
    w = descend(x, lambda k, loss: losses.append(k * loss))
    return sum(losses) + w[0]


def into_a_dict(x):
    log = {"loss": [], "size": []}

    def note(k, loss):
        log["loss"].append(loss)
        log["size"].append(k + 1.0)

    w = descend(x, note)
    return np.mean(log["loss"]) + len(log["size"]) * w[0] + log["size"][-1]


def in_rows(x):
    rows = []

    def note(k, loss):
        rows.append({"k": k, "loss": loss})

    descend(x, note)
    return rows[-1]["loss"] + sum(row["loss"] for row in rows)


def in_the_same_function(x):
    losses, w, last = [], x[:3], np.inf

    def note(loss):
        losses.append(loss)

    for _ in range(80):
        error = A @ w - B
        w, loss = w - x[3] * (A.T @ error) / 30, np.mean(error**2)
        note(loss)
        if last - loss < 1e-3:
            break
        last = loss
    return np.mean(losses) + len(losses) * w[0]


def handed_back(x):
    def fit():
        seen = []
        w = descend(x, lambda k, loss: seen.append(loss))
        return w, seen

    w, seen = fit()
    return np.mean(seen) + w[0]


@pytest.mark.parametrize("fun", [by_a_callback, by_a_lambda, into_a_dict, in_rows, in_the_same_function, handed_back])
def test_how_many_items_there_are_is_no_way_of_its_own(fun):
    hangs_on_no_count(fun, (0.3, 0.35, 0.25, 0.4, 0.2), 4)


def changed(x):
    losses = []
    descend(x, lambda k, loss: losses.append(loss))
    losses.reverse()
    losses[0] = x[1]
    losses.insert(0, losses.pop())
    return sum(i * loss for i, loss in enumerate(losses[:3])) + len(losses)


def given_on(x):
    losses = []

    def note(k, loss, all_of=losses):
        losses.append(loss)
        assert all_of is losses

    descend(x, note)
    box = [losses]
    box[0].append(x[0])
    return np.sum(losses) + box[0][-1]


def read_within(x):
    losses = []

    def note(k, loss):
        losses.append(loss + (0.1 * losses[-1] if losses else 0.0))

    descend(x, note)
    return np.sum(losses)


def in_recursion(x):
    leaves = []

    def walk(v, depth):
        if depth == 0:
            leaves.append(np.sin(v))
            return
        walk(v * x[0], depth - 1)
        walk(v * x[1] + 0.1, depth - 1)

    walk(1.0, 4)
    return np.sum(np.array(leaves) ** 2) + leaves[2] * len(leaves)


def of_the_same_name(x):
    out = []

    def note(out):
        out.append(x[0])
        return out

    other = note([x[1]])
    out = [*out, *note(out), 1.0]
    return sum(other) + sum(out)


@pytest.mark.parametrize("fun", [changed, given_on, read_within, in_recursion, of_the_same_name])
def test_whatever_else_is_done_with_them(fun):
    derivative = value_and_grad(fun)
    for rate in (0.3, 0.4, 0.3):
        right_at(derivative, fun, np.array([0.4, -0.3, 0.8, rate]), value=(1e-11, 1e-13), slope=(1e-9, 1e-11))


def test_a_list_that_is_not_there_yet_is_what_python_says_it_is():
    def f(x):
        def note(value):
            values.append(value)

        note(x)
        values = []
        return x

    with pytest.raises(NameError, match="values"):
        value_and_grad(f)(1.0)


@pytest.mark.parametrize(
    "body",
    [
        "y = []; y = [x]; g = lambda: y.append(x)",
        "y = []; g = lambda y: y.append(x)",
        "y = []; g = lambda: len(y)",
        "g = lambda: y.append(x); y = []",
        "y = []; g = lambda: y.append(locals())",
        "y = []; g = lambda: y.append(x); del y",
    ],
)
def test_other_lists_are_left_where_they_are(body):
    source = f"def f(x):\n    {body}\n    return g"
    assert ast.unparse(held(ast.parse(source).body[0], {}, taken)) == ast.unparse(ast.parse(source).body[0])
