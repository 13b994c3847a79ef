"""Lists that functions fill or read which are handed them: how many items there are is no way of its own, and whatever else is
done with them sees what there is."""

import functools
import re

import numpy as np
import pytest
from agreement import hangs_on_no_count, right_at

from symgrad import value_and_grad

A, B = np.random.default_rng(0).standard_normal((30, 3)), np.random.default_rng(1).standard_normal(30)
RATES = (0.3, 0.35, 0.2, 0.5, 0.15, 0.4)


def step(w, rate):
    error = A @ w - B
    return w - rate * (A.T @ error) / 30, np.mean(error**2)


def descend(x, losses, tolerance=1e-3):
    w, last = x[:3], np.inf
    for _ in range(80):
        w, loss = step(w, x[3])
        losses.append(loss)
        if last - loss < tolerance:
            break
        last = loss
    return w


def by_position(x):
    losses = []
    w = descend(x, losses)
    return np.mean(losses) + losses[-1] * w[0]


def passed_on(x):
    losses = []
    return np.sum(descend_more_roughly(x, losses)) + losses[0] + len(losses) * x[0]


def descend_more_roughly(x, losses):
    return descend(x, losses, tolerance=2e-3)


def into_a_dict(x):
    log = {"loss": [], "size": []}
    w = noted(x, log=log)
    return log["loss"][-1] + np.sum(log["size"]) * w[0]


def noted(x, *, log=None):
    w, last = x[:3], np.inf
    for _ in range(80):
        w, loss = step(w, x[3])
        if log is not None:
            log["loss"].append(loss)
            log["size"].append(np.sum(w**2))
        if last - loss < 1e-3:
            break
        last = loss
    return w


def by_a_method_of_the_list(x):
    losses = []
    w = called_back(x, callback=losses.append)
    return sum(losses) + losses[-1] * w[0]


def called_back(x, callback):
    w, last = x[:3], np.inf
    for _ in range(80):
        w, loss = step(w, x[3])
        callback(loss)
        if last - loss < 1e-3:
            break
        last = loss
    return w


class Fit:
    def __init__(self, x):
        self.x, self.losses = x, []

    def run(self, history):
        self.w, last = self.x[:3], np.inf
        for _ in range(80):
            self.w, loss = step(self.w, self.x[3])
            history.append(loss)
            self.losses.append(loss)
            if last - loss < 1e-3:
                break
            last = loss
        return self

    def run_itself(self):
        self.w = self.x[:3]
        while not converged(self.losses):
            self.w, loss = step(self.w, self.x[3])
            self.losses.append(loss)
        return self


def of_a_method(x):
    history = []
    fit = Fit(x).run(history)
    return np.mean(history) + fit.losses[-1] * fit.w[0]


def spread(losses):
    return np.max(losses) - np.min(losses)


def read_by_another(x):
    losses = []
    descend(x, losses)
    return spread(losses) + losses[-1]


def read_after_its_own_loop(x):
    w, last, losses = x[:3], np.inf, []
    for _ in range(80):
        w, loss = step(w, x[3])
        losses.append(loss)
        if last - loss < 1e-3:
            break
        last = loss
    return spread(losses) * w[0]


def converged(losses):
    return len(losses) > 2 and losses[-2] - losses[-1] < 1e-3


def ended_by_another(x):
    w, losses = x[:3], []
    for _ in range(80):
        w, loss = step(w, x[3])
        losses.append(loss)
        if converged(losses):
            break
    return losses[-1] + np.sum(w)


def ended_before_it_begins(x):
    w, losses = x[:3], []
    while not converged(losses):
        w, loss = step(w, x[3])
        losses.append(loss)
    return losses[-1] + np.sum(w) / len(losses)


def of_an_object(x):
    return np.mean(Fit(x).run_itself().losses)


def with_what_was_there(x):
    times, values = [0.0], [x[0]]
    integrate(x, times, values)
    return np.sum(np.array(times) * np.array(values))


def integrate(x, times, values):
    t, y, h = 0.0, x[0], 0.05
    while t < 1.0:
        slope = -y * (1 + x[3])
        error = abs(slope + (y + h * slope) * (1 + x[3])) * h / 2
        if error < 2e-2:
            t, y = t + h, y + h * slope
            times.append(t)
            values.append(y)
        h = h * min(1.5, max(0.3, np.sqrt(2e-2 / (error + 1e-12))))


def by_keys(x):
    log, w, last = {}, x[:3], np.inf
    for _ in range(80):
        w, loss = step(w, x[3])
        if "loss" not in log:
            log["loss"] = []
        log["loss"].append(loss)
        if last - loss < 1e-3:
            break
        last = loss
    return log["loss"][-1] + np.mean(log["loss"])


def by_default(x):
    log = {}
    noted_by_name(x, log)
    return log["loss"][-1] + np.mean(log["size"])


def noted_by_name(x, log):
    w, last = x[:3], np.inf
    for _ in range(80):
        w, loss = step(w, x[3])
        log.setdefault("loss", []).append(loss)
        log.setdefault("size", []).append(np.sum(w**2))
        if last - loss < 1e-3:
            break
        last = loss


class Logger:
    def __init__(self):
        self.log = {}

    def add(self, **values):
        for name, value in values.items():
            self.log.setdefault(name, []).append(value)


def by_a_logger(x):
    logger, w, last = Logger(), x[:3], np.inf
    for _ in range(80):
        w, loss = step(w, x[3])
        logger.add(loss=loss, size=np.sum(w**2))
        if last - loss < 1e-3:
            break
        last = loss
    return logger.log["loss"][-1] + np.mean(logger.log["size"])


def twice_into_one(x):
    losses = []
    descend(x, losses, tolerance=1e-2)
    w = descend(0.9 * x, losses)
    return np.mean(losses) + losses[-1] * w[0] + losses[1] * losses[0]


def one_more_between(x):
    fit = Fit(x)
    descend(x, fit.losses, tolerance=1e-2)
    fit.losses.append(x[0])
    descend(0.9 * x, fit.losses)
    return sum(fit.losses) + np.sum(fit.losses[-3:])


def again_and_again(x):
    losses = []
    for factor in (1.0, 0.9, 0.8):
        descend(factor * x, losses, tolerance=5e-3)
    return max(losses) - min(losses) + np.median(losses)


KNOWN = [
    twice_into_one, one_more_between, again_and_again,
    by_keys, by_default, by_a_logger,
    by_position, passed_on, into_a_dict, by_a_method_of_the_list, of_a_method, read_by_another, read_after_its_own_loop,
    ended_by_another, ended_before_it_begins, of_an_object, with_what_was_there,
]  # fmt: skip


@pytest.mark.parametrize("fun", KNOWN)
def test_how_many_items_there_are_is_no_way_of_its_own(fun):
    hangs_on_no_count(fun, RATES, most=3)


def items_of(x):
    losses, w = [], []
    last, now = np.inf, x[:3]
    for _ in range(80):
        now, loss = step(now, x[3])
        losses.append(loss)
        w.append(now)
        if last - loss < 1e-3:
            break
        last = loss
    return losses, w


PARTS = [
    "losses[len(losses) // 2]", "losses[-(len(losses) // 2)]", "np.mean(losses[len(losses) // 2 :])",
    "losses[np.argmin(losses)]", "losses[np.argmax(losses)]", "sum(np.sum(v**2) for v in w)",
    "np.max([np.linalg.norm(v) for v in w])",
    "np.sum([v[0] * v[2] for v in w])", "sum(np.sum((b - a) ** 2) for a, b in zip(w, w[1:]))", "sum(a * c for a, b, c in w)",
]  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_items_and_parts_of_them(part, tmp_path):
    space = {"np": np, "items_of": items_of}
    source = f"def f(x):\n    losses, w = items_of(x)\n    return {part}\n"
    (path := tmp_path / "program.py").write_text(source)
    exec(compile(source, str(path), "exec"), space)
    hangs_on_no_count(space["f"], RATES, most=3)


def test_a_slice_of_no_text():
    def f(x):
        losses, _ = items_of(x)
        return sum(losses[slice(1, len(losses) // 2)])

    derivative = value_and_grad(f)
    for rate in RATES:
        right_at(derivative, f, np.array([0.4, -0.3, 0.8, rate]), value=(1e-11, 1e-13), slope=(1e-9, 1e-11))


def test_an_index_beyond_them():
    def f(x):
        losses, _ = items_of(x)
        return losses[len(losses)]

    derivative = value_and_grad(f)
    for rate in RATES:
        with pytest.raises(IndexError, match="list index out of range"):
            derivative(np.array([0.4, -0.3, 0.8, rate]))


def kept(x):
    losses = []
    keep = {}

    def put(there, values):
        there["losses"] = values
        values.append(x[0])

    put(keep, losses)
    keep["losses"].append(x[1])
    return sum(losses)


def keep(there, values):
    there["losses"] = values
    values.append(3.0)


def kept_by_another(x):
    losses, there = [], {}
    descend(x, losses)
    keep(there, losses)
    there["losses"].append(x[0])
    return sum(losses) + losses[-1] * losses[0]


def emptied(x):
    losses = []
    descend(x, losses)
    first = losses[0]
    empty(losses)
    descend(x, losses)
    return first + sum(losses) + len(losses) * x[0]


def empty(values):
    values.append(1.0)
    values.clear()


def bound_anew(x):
    losses = []
    descend(x, losses)
    return total_of(losses) + len(losses) * losses[0]


def total_of(values):
    values = [value**2 for value in values]
    values.append(2.0)
    return sum(values)


def twice(x):
    losses = []
    descend(x, losses)
    return both(losses, losses) + losses[0] + losses[-1]


def both(a, b):
    a.append(1.0)
    b.append(len(a) * 1.0)
    return sum(b) * (a is b)


def in_parts(x):
    losses = []
    functools.partial(descend, x)(losses)
    every = [*losses]
    descend(x, losses=losses)
    return sum(losses) * len(every) + losses[-1]


def raising(x):
    losses = []
    try:
        fill_and_raise(x, losses)
    except KeyError:
        losses.append(x[1])
    return sum(losses)


def fill_and_raise(x, values):
    for k in range(10):
        values.append(x[0] * k)
        if values[-1] > 1.3:
            raise KeyError(k)


def written_into(x):
    losses, w = items_of(x)
    for v in w:
        v *= 0.5
    return np.sum(w[-1]) + np.sum(w[0]) * losses[0]


class Restarted(Fit):
    def restart(self, losses):
        self.losses = [2.0 * self.x[0]]
        self.losses.append(self.x[1])
        return np.mean(losses) + len(losses) + sum(self.losses)

    def next(self):
        self.losses = [self.x[0]]
        return 2.0


def rebound_by_a_method(x):
    fit = Restarted(x)
    descend(x, fit.losses)
    return fit.restart(fit.losses) + fit.losses[-1]


def weighted(values, weight):
    return weight * sum(values) + len(values)


def bound_anew_by_an_argument(x):
    fit = Restarted(x)
    descend(x, fit.losses)
    return weighted(fit.losses, fit.next()) + weighted(weight=fit.next(), values=fit.losses)


def swap(a, b, values):
    a.losses, b.losses = b.losses, a.losses
    values.append(1.5)
    return values[-1] * len(a.losses) + len(b.losses)


def swapped(x):
    a, b = Fit(x), Fit(x)
    descend(x, a.losses)
    return swap(a, b, a.losses) + sum(b.losses)


class Padded:
    def __init__(self):
        self.losses = []

    def __getattribute__(self, name):
        found = object.__getattribute__(self, name)
        return [*found, 1.0] if name == "losses" and len(found) > 3 else found


def through_its_own_way(x):
    padded = Padded()
    losses = padded.losses
    descend(x, losses)
    return weighted(padded.losses, x[0])


def told(x, callback, other):
    callback(x[0])
    known = isinstance(callback, type([].append)) and callback.__name__ == "append" and callback == other
    return x[1] if known and sum(callback.__self__) > 0 else x[2]


def told_by_what_it_is(x):
    losses = []
    return told(x, losses.append, losses.append) * len(losses)


def read_as_it_goes_on(x):
    losses = []
    descend(x, losses, tolerance=1e-2)
    for _k in range(40):
        losses.append(losses[-1] * 0.9 + 0.1 * losses[0])
        if losses[-2] - losses[-1] < 1e-2:
            break
    return sum(losses)


def run_over_as_it_grows(x):
    fit = Fit(x)
    descend(x, fit.losses, tolerance=1e-2)
    total = 0.0
    for loss in fit.losses:
        total = total + loss
        if len(fit.losses) < 30:
            fit.losses.append(x[0])
    return total


def under_two_names(x):
    fit = Fit(x)
    descend(x, fit.losses, tolerance=1e-2)
    losses = fit.losses
    fit.losses.append(2.0 * x[0])
    losses.append(3.0)
    descend(x, fit.losses, tolerance=1e-2)
    return losses[-1] * losses[0] + sum(losses) + len(fit.losses)


@pytest.mark.parametrize(
    "fun",
    [
        read_as_it_goes_on,
        run_over_as_it_grows,
        under_two_names,
        kept,
        kept_by_another,
        emptied,
        bound_anew,
        twice,
        in_parts,
        raising,
        written_into,
    ],
)
def test_whatever_else_is_done_with_them(fun):
    derivative = value_and_grad(fun)
    for rate in RATES:
        right_at(derivative, fun, np.array([0.4, -0.3, 0.8, rate]), value=(1e-11, 1e-13), slope=(1e-9, 1e-11))


THEN = [
    "l[-1] = x[1]", "l.pop()", "l.clear()", "l.sort()", "l.extend([x[1], x[1]])", "l.insert(0, x[1])", "del l[0]",
    "l += [x[2]]", "known = 3.0 in l", "m = l.copy()", "l[:] = l[1:]", "fit.losses = [*l[::-1]]",
    "l.reverse()", "l *= 2", "n = l.index(l[1])",
]  # fmt: skip


@pytest.mark.parametrize("statement", THEN)
def test_whatever_is_done_with_a_list_that_goes_on(statement, tmp_path):
    statement = re.sub(r"\bl\b", "fit.losses", statement)
    source = (
        "def f(x):\n    fit = Fit(x)\n    descend(x, fit.losses, tolerance=1e-2)\n    fit.losses.append(x[0])\n"
        f"    {statement}\n    fit.losses.append(x[1])\n"
        "    descend(0.9 * x, fit.losses, tolerance=1e-2)\n    return sum(fit.losses) + fit.losses[0] * fit.losses[-1]\n"
    )
    space = {"Fit": Fit, "descend": descend}
    (path := tmp_path / "program.py").write_text(source)
    exec(compile(source, str(path), "exec"), space)
    derivative = value_and_grad(space["f"])
    for rate in RATES:
        right_at(derivative, space["f"], np.array([0.4, -0.3, 0.8, rate]), value=(1e-11, 1e-13), slope=(1e-9, 1e-11))


def test_another_function_in_the_place_of_one_that_fills_a_list(monkeypatch):
    derivative, x = value_and_grad(by_position), np.array([0.4, -0.3, 0.8, 0.3])
    before = [derivative(x)[0] for _ in range(4)][-1]

    def other(x, losses, tolerance=1e-3):
        losses += [x[0], x[1]]
        return x

    monkeypatch.setitem(globals(), "descend", other)
    for _ in range(3):
        assert derivative(x)[0] == pytest.approx(by_position(x), rel=1e-12) != pytest.approx(before)


def last_of(x=None, *, l=()):
    return l[-1]


def doubled(x, l):
    l += [v * 0.5 for v in l]
    return l[-1]


class Reader:
    def __init__(self, l):
        self.l = l

    def first_two(self, l):
        return l[:2]


BY_NAME = [
    "descend(0.9 * x, losses=losses, tolerance=1e-2)", "n = last_of(l=losses)", "n = doubled(x, l=losses)",
    "n = sum(Reader(l=losses).l[1:])", "n = sum(Reader(None).first_two(l=losses))", "n = partial(doubled, x)(l=losses)",
    "n = partial(last_of, l=losses)()", "n = max(losses, key=lambda v: -v)", "n = min(losses, key=lambda v: (v - 0.3) ** 2)",
    "n = max(losses, key=lambda v: -v, default=1.0)", "n = max(losses, [x[1]])[0]", "n = sum(losses, x[1])",
    "n = sum(sorted(losses, key=lambda v: -v)[:2])", "n = np.sum(a=losses)", "n = np.max(losses, initial=x[3])",
]  # fmt: skip


@pytest.mark.parametrize("before", ["n = len(losses)", "n = losses[-1]", "n = 1.0"])
@pytest.mark.parametrize("statement", BY_NAME)
@pytest.mark.parametrize("holder", ["losses = []", "fit = Fit(x)"])
def test_lists_that_are_handed_on_by_name_and_with_a_key(holder, statement, before, tmp_path):
    statements = [
        holder,
        "descend(x, losses, tolerance=1e-2)",
        before,
        statement,
        "return sum(losses) * n + x[1] * len(losses)",
    ]
    lines = [re.sub(r"(?<!tolerance=)\blosses\b(?!=)", "fit.losses", one) if "Fit" in holder else one for one in statements]
    source = "def f(x):\n" + "".join([f"    {line}\n" for line in lines])
    names = {"Fit": Fit, "descend": descend, "last_of": last_of, "doubled": doubled, "Reader": Reader}
    space = names | {"np": np, "partial": functools.partial}
    (path := tmp_path / "program.py").write_text(source)
    exec(compile(source, str(path), "exec"), space)
    derivative = value_and_grad(space["f"])
    for rate in RATES[:4]:
        right_at(derivative, space["f"], np.array([0.4, -0.3, 0.8, rate]), value=(1e-11, 1e-13), slope=(1e-9, 1e-11))
