"""Lists of some items that a function returns to another one of the user's."""

import ast
import sys

import numpy as np
import pytest
from agreement import function_of, hangs_on_no_count, right_at

from symgrad import value_and_grad
from symgrad.source import lists

A, B = np.random.default_rng(0).standard_normal((30, 3)), np.random.default_rng(1).standard_normal(30)


def step(w, rate):
    error = A @ w - B
    return w - rate * (A.T @ error) / 30, np.mean(error**2)


def descend(x, tolerance=1e-3):
    w, losses, last = x[:3], [], np.inf
    for _ in range(80):
        w, loss = step(w, x[3])
        losses.append(loss)
        if last - loss < tolerance:
            break
        last = loss
    return w, losses


def left_in_the_loop(x):
    w, losses = x[:3], []
    for _ in range(80):
        w, loss = step(w, x[3])
        losses.append(loss)
        if len(losses) > 2 and losses[-2] - losses[-1] < 1e-3:
            return w, losses
    return w, losses


def alone(x):
    return descend(x)[1]


def only_losses(x):
    _, losses = descend(x)
    return losses


class Solver:
    def __init__(self, rate):
        self.rate = rate

    def solve(self, x):
        w, sizes = x[:3], []
        while len(sizes) < 80:
            w, loss = step(w, self.rate)
            sizes.append(loss)
            if loss < 0.9:
                break
        return sizes, w


class Keeping(Solver):
    def __init__(self, x):
        self.x, self.losses, self.log = x, [], {"size": []}

    def fit(self):
        w, last = self.x[:3], np.inf
        for _ in range(80):
            w, loss = step(w, self.x[3])
            self.losses.append(loss)
            self.log["size"].append(np.sum(w**2))
            if last - loss < 1e-3:
                break
            last = loss
        return w, self.losses

    def sizes(self):
        self.fit()
        return self.log["size"]


def held_by_an_object(x):
    w, losses = Keeping(x).fit()
    return np.mean(losses) + w[0]


def held_in_its_dict(x):
    keeping = Keeping(x)
    sizes = keeping.sizes()
    return np.mean(sizes) + sizes[-1] + len(keeping.losses)


def mean(x):
    w, losses = descend(x)
    return np.mean(losses) + np.sum(w**2)


def last(x):
    w, losses = descend(x)
    return losses[-1] - losses[0] + np.sum(w**2)


def not_read(x):
    w, _ = descend(x)
    return np.sum(w**2)


def looped_over(x):
    _, losses = descend(x)
    return sum(loss**2 for loss in losses) / len(losses) + max(losses)


def through_two(x):
    losses = only_losses(x)
    return np.sum(np.array(losses) ** 2)


def early(x):
    w, losses = left_in_the_loop(x)
    return np.mean(losses) + w[0]


def method(x):
    solver = Solver(x[3])
    sizes, w = solver.solve(x)
    return np.sum(sizes) + np.sum(w)


def inner(x):
    def run(rate):
        w, losses, before = x[:3], [], np.inf
        for _ in range(80):
            w, loss = step(w, rate)
            losses.append(loss)
            if before - loss < 1e-3:
                break
            before = loss
        return w, losses

    w, losses = run(x[3])
    return np.mean(losses) + w[1]


def as_a_dict(x):
    w, log, last = x[:3], {"loss": [], "size": []}, np.inf
    for _ in range(80):
        w, loss = step(w, x[3])
        log["loss"].append(loss)
        log["size"].append(np.sum(w**2))
        if last - loss < 1e-3:
            break
        last = loss
    return w, log


def in_a_dict(x):
    w, log = as_a_dict(x)
    return np.mean(log["loss"]) + log["size"][-1] + w[0] * len(log["loss"])


def in_pairs(x):
    w, path, last = x[:3], [], np.inf
    for k in range(80):
        w, loss = step(w, x[3])
        path.append((k, loss))
        if last - loss < 1e-3:
            break
        last = loss
    return w, path


def rows(x):
    w, path = in_pairs(x)
    total = sum(k * loss for k, loss in path)
    return total + path[-1][1] + np.sum(np.array(path)[:, 1]) + len(path) * w[0]


def rows_by_place(x):
    _, path = in_pairs(x)
    return np.mean([row[1] for row in path]) + path[0][1]


def at_its_end(x):
    w, losses = descend(x)
    last = losses[-5:]
    return np.mean(last) + len(last) * w[0] + losses[-2] - losses[1] + np.sum(losses[::-1])


def in_parts(x):
    _, losses = descend(x)
    total = sum(losses[2:]) + max(losses[:-1]) + np.sum(losses[::3])
    for loss in losses[1:]:
        total = total + loss**2
    return total


def of_an_object(x):
    keeping = Keeping(x)
    keeping.fit()
    return np.mean(keeping.losses[-4:]) + keeping.losses[-3] + keeping.log["size"][1] + len(keeping.losses[2:])


def twice(x):
    w, losses = descend(x)
    if losses:
        w, more = descend(np.concatenate([w, x[3:] * 0.5]), 1e-4)
        return np.sum(more) + np.sum(losses) + w[0]
    return w[0]


@pytest.mark.parametrize(
    "fun",
    [
        mean, last, not_read, looped_over, through_two, early, method, inner, twice, in_a_dict, rows, rows_by_place,
        held_by_an_object, held_in_its_dict, at_its_end, in_parts, of_an_object,
    ],
)  # fmt: skip
def test_how_many_items_there_are_is_no_way_of_its_own(fun):
    hangs_on_no_count(fun, (0.3, 0.35, 0.25, 0.4, 0.2), 4)


def kept_elsewhere(x):
    w, losses = descend(x)
    box = [losses, w]
    return np.sum(box[0]) + len(box[0])


def appended_to(x):
    _, losses = descend(x)
    losses.append(x[0])
    losses[0] = x[1]
    return np.sum(losses)


def in_a_tuple(x):
    found = descend(x)
    return np.sum(found[1]) + found[0][0]


def three_for_two(x):
    first, *others = only_losses(x)
    return first + sum(others)


def given_on(x):
    def total(values):
        values[0] = 0.0
        return sum(values)

    losses = only_losses(x)
    return total(losses) + losses[0]


def compared(x):
    _, losses = descend(x)
    return x[0] * (losses == []) + x[1] * isinstance(losses, list) + sum(sorted(losses)[:2])


def changed_where_it_is_held(x):
    keeping = Keeping(x)
    w, losses = keeping.fit()
    keeping.losses.append(w[0])
    losses[0] = x[1]
    return np.sum(losses) + keeping.losses[0] * len(losses) * (losses is keeping.losses)


def begun_anew(x):
    keeping = Keeping(x)
    keeping.fit()
    w, losses = keeping.fit()
    return np.sum(losses) + w[0]


def recursive(x):
    def down(depth, rate):
        w, losses = descend(np.array([x[0], x[1], x[2], rate]))
        if depth:
            first, more = down(depth - 1, 0.5 * rate)
            every = [down(0, rate)[1], more]
            return first, [*losses, *every[0]]
        return w, losses

    w, losses = down(2, x[3])
    return np.sum(losses) + w[0]


def a_dict_that_is_changed(x):
    w, log = as_a_dict(x)
    log["loss"] = log["loss"][1:]
    return np.sum(log["loss"]) + w[0] + len(log)


def rows_that_are_changed(x):
    _, path = in_pairs(x)
    path[0] = (1, x[0])
    path.append((2, x[1]))
    (_, first), *others = path
    return first + sum(loss for _, loss in others)


def a_dict_that_is_run_over(x):
    _, log = as_a_dict(x)
    return sum(np.mean(values) for values in log.values()) + log["loss"].count(x[0])


def a_key_that_is_not_there(x):
    _, log = as_a_dict(x)
    try:
        return np.sum(log["losses"])
    except KeyError:
        return x[0] * x[1] + np.sum(log["loss"])


@pytest.mark.parametrize(
    "fun",
    [
        kept_elsewhere,
        appended_to,
        in_a_tuple,
        three_for_two,
        given_on,
        compared,
        recursive,
        changed_where_it_is_held,
        begun_anew,
        alone,
        a_dict_that_is_changed,
        a_dict_that_is_run_over,
        rows_that_are_changed,
        a_key_that_is_not_there,
    ],
)
def test_where_something_else_is_done_with_them_they_are_lists(fun):
    f = (lambda x: np.sum(fun(x))) if fun is alone else fun
    derivative = value_and_grad(f)
    for rate in (0.3, 0.4, 0.3):
        x = np.array([0.4, -0.3, 0.8, rate])
        right_at(derivative, f, x, value=(1e-11, 1e-13), slope=(1e-9, 1e-11))


PARTS = [
    "1:",
    ":-1",
    "-2:",
    "-3:-1",
    "2:",
    ":2",
    "::2",
    "1::2",
    "-3::2",
    "5:",
    ":0",
    "::-1",
    "3:1",
    "-9:2",
    "::-2",
    "-1",
    "-2",
    "1",
    "2",
]


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_lists_are_those_of_pythons(part, tmp_path):
    """Of lists of none, one and a few items, some of which were there before."""
    found = f"[items[{part}]]" if ":" not in part else f"items[{part}]"
    text = f"""
def made(x):
    items = [0.5] if x[1] > 0 else []
    for k in range(8):
        if x[0] * k > 1.0:
            break
        items.append(x[0] * (k + 1))
    return items, x

def fun(x):
    items, _ = made(x)
    some = {found}
    try:
        return np.sum(some) + 2.0 * np.sum(items[{part}]) + x[2]
    except IndexError:
        return x[2] * 3.0
"""
    fun = function_of(text, tmp_path / "parts.py")
    derivative = value_and_grad(fun)
    for last in (0.4, 0.3, 2.0, 0.6, 0.2):
        for first in (1.0, -1.0):
            x = np.array([last, first, 0.7])
            try:
                right_at(derivative, fun, x, value=(1e-12, 1e-14), slope=(1e-10, 1e-12))
            except IndexError:
                with pytest.raises(IndexError):
                    fun(x)


def test_complex_numbers_are_compared_as_numpy_has_it():
    def least(x):
        items = []
        for k in range(9):
            items.append(x[0] * (k + 1j))
            if x[0] * k > 1.0:
                break
        return abs(min(items)) + abs(max(items))

    derivative = value_and_grad(least)
    for first in (0.4, 0.3, 0.5):
        right_at(derivative, least, np.array([first, 1.0]), value=(1e-12, 0.0), slope=(1e-10, 1e-12))


def test_many_calls_are_looked_at_once():
    """Each statement that calls a function is looked at for itself, not all that there is beside it."""

    def calls(n):
        lines = ["def f(x):", "    v0 = x.h(1.0)", *[f"    v{i} = x.h(v{i - 1})" for i in range(1, n)], f"    return v{n - 1}"]
        function, events = ast.parse("\n".join(lines)).body[0], []
        sys.setprofile(lambda frame, event, arg: events.append(event))
        try:
            lists.marked(function, {})
        finally:
            sys.setprofile(None)
        return len(events)

    assert calls(160) < 2.5 * calls(80)
