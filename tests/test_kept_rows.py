"""Rows that objects hold, of which a loop that ends early has left some: they are read by columns afterwards."""

import numpy as np
import pytest
from agreement import hangs_on_no_count, right_at

from symgrad import grad, value_and_grad

A, B = np.random.default_rng(0).standard_normal((30, 3)), np.random.default_rng(1).standard_normal(30)


class Fit:
    """Descends until the loss falls no more, and keeps what it sees."""

    row = staticmethod(lambda k, loss, w: {"epoch": k, "loss": loss})

    def __init__(self, x):
        self.w, self.rate, self.history = x[:3], x[3], []
        self.best, self.bad = np.inf, 0

    def epoch(self, k):
        error = A @ self.w - B
        self.w = self.w - self.rate * (A.T @ error) / 30
        loss = np.mean(error**2)
        self.history.append(self.row(k, loss, self.w))
        return loss

    def stops(self, loss):
        if loss < self.best - 1e-3:
            self.best, self.bad = loss, 0
            return False
        self.bad += 1
        return self.bad > 2

    def run(self, n=80):
        last = np.inf
        for k in range(n):
            loss = self.epoch(k)
            if last - loss < 1e-3:
                break
            last = loss
        return self

    def patiently(self, n=80):
        for k in range(n):
            if self.stops(self.epoch(k)):
                break
        return self


class Pairs(Fit):
    row = staticmethod(lambda k, loss, w: (k, loss))


class Arrays(Fit):
    row = staticmethod(lambda k, loss, w: {"loss": loss, "w": w})


def last_row(x):
    fit = Fit(x).run()
    return fit.history[-1]["loss"] - fit.history[0]["loss"] + 0.1 * len(fit.history)


def by_a_comprehension(x):
    fit = Fit(x).run()
    if not fit.history:
        return 0.0
    return np.mean([row["loss"] for row in fit.history])


def by_a_generator(x):
    return sum(row["loss"] * row["epoch"] for row in Fit(x).run().history)


def by_a_loop(x):
    fit, total, highest = Fit(x).run(), 0.0, 0.0
    for row in fit.history:
        total = total + row["loss"] ** 2
        highest = max(highest, row["loss"])
    return total + highest


def counted(x):
    fit = Pairs(x).run()
    return sum(i * loss for i, (_, loss) in enumerate(fit.history))


def unpacked(x):
    fit, total = Pairs(x).run(), 0.0
    for k, loss in fit.history:
        total = total + k * loss
    k, loss = fit.history[-1]
    return total + k * loss + fit.history[0][-1] * fit.history[-1][0]


def as_an_array(x):
    return np.sum(np.array(Pairs(x).run().history)[:, 1] ** 2)


def arrays_beside(x):
    fit = Arrays(x).run()
    return sum(row["loss"] for row in fit.history) + np.sum(fit.history[-1]["w"])


def the_best(x):
    fit = Fit(x).run()
    best = min(fit.history, key=lambda row: row["loss"])
    return best["loss"] + x[0] * best["epoch"]


def the_worst_of_pairs(x):
    k, loss = max(Pairs(x).run().history, key=lambda row: row[1])
    return loss + x[1] * k


def the_best_if_any(x):
    best = min(Arrays(x).run().history, key=lambda row: row["loss"], default=None)
    if best is None:
        return 0.0
    return best["loss"] + np.sum(best["w"] ** 2)


def the_best_of_a_local(x):
    w, rows, last = x[:3], [], np.inf
    for k in range(80):
        error = A @ w - B
        w, loss = w - x[3] * (A.T @ error) / 30, np.mean(error**2) + 0.01 * abs(k - 5)
        rows.append({"k": k, "loss": loss, "w": w})
        if k > 4 and last - loss < 1e-3:
            break
        last = loss
    best = min(rows, key=lambda row: row["loss"])
    return best["loss"] * best["k"] + np.sum(best["w"]) + len(rows)


def with_patience(x):
    fit = Fit(x).patiently()
    return fit.best + sum(row["loss"] for row in fit.history)


@pytest.mark.parametrize(
    "fun",
    [
        last_row, by_a_comprehension, by_a_generator, by_a_loop, counted, unpacked, as_an_array, arrays_beside, with_patience,
        the_best, the_worst_of_pairs, the_best_if_any, the_best_of_a_local,
    ],
)  # fmt: skip
def test_how_many_rows_there_are_is_no_way_of_its_own(fun):
    hangs_on_no_count(fun, (0.3, 0.35, 0.25, 0.4, 0.2, 0.45), 5)


def the_best_is_changed(x):
    fit = Fit(x).run()
    best = min(fit.history, key=lambda row: row["loss"])
    best["loss"] = x[0]
    return sum(row["loss"] for row in fit.history) + best["epoch"]


def the_best_is_one_of_them(x):
    fit = Fit(x).run()
    best = max(fit.history, key=lambda row: row["loss"])
    return fit.history.index(best) + best["loss"] + x[0] * any(row is best for row in fit.history)


def rows_are_changed_after_the_best(x):
    fit = Fit(x).run()
    best = min(fit.history, key=lambda row: row["loss"])

    def scale(rows):
        for row in rows:
            row["loss"] = 2.0 * row["loss"]

    scale(fit.history)
    return best["loss"] + x[0] * best["epoch"]


def rows_are_divided_by_the_best(x):
    fit = Fit(x).run()
    best = max(fit.history, key=lambda row: row["loss"])
    for row in fit.history:
        row["loss"] = row["loss"] / best["loss"]
    return sum(row["loss"] for row in fit.history)


def the_array_of_the_best_is_written_into(x):
    fit = Arrays(x).run()
    best = min(fit.history, key=lambda row: row["loss"])
    best["w"][0] = 5.0 * x[0]
    return np.sum(fit.history[-1]["w"]) + np.sum(best["w"] ** 2)


def arrays_are_written_into_after_the_best(x):
    fit = Arrays(x).run()
    best = max(fit.history, key=lambda row: row["loss"])
    for row in fit.history:
        row["w"][0] = x[1]
    return np.sum(best["w"] ** 2) + best["loss"]


def the_best_gets_more(x):
    fit = Fit(x).run()
    best = max(fit.history, key=lambda row: row["loss"])
    best |= {"loss": x[0]}
    return sum(row["loss"] for row in fit.history) + best["epoch"]


def the_best_pair_is_one_of_them(x):
    fit = Pairs(x).run()
    best = max(fit.history, key=lambda row: row[1])
    return best[1] + x[0] * sum([k for k, row in enumerate(fit.history) if row is best], 1)


def the_best_by_something_else(x):
    fit = Pairs(x).run()
    best = min(fit.history, key=lambda row: -row[1])
    return best[1] + min(fit.history)[1] + min(fit.history, key=lambda row: abs(row[0] - 2))[1]


def a_row_is_changed(x):
    fit = Fit(x).run()
    fit.history[-1]["loss"] = x[0]
    for row in fit.history:
        row["loss"] = row["loss"] * 2.0
    return sum(row["loss"] for row in fit.history)


def a_row_is_kept(x):
    fit = Fit(x).run()
    best = fit.history[-1]
    best["loss"] = best["loss"] + x[1]
    return fit.history[-1]["loss"] + (best is fit.history[-1]) * x[0]


def rows_of_another_kind(x):
    fit = Fit(x).run()
    fit.history.append({"epoch": -1, "loss": x[0], "more": x[1]})
    return sum(row["loss"] for row in fit.history) + fit.history[-1]["more"]


def the_last_one_that_a_loop_has_seen(x):
    row = {"loss": 0.0}
    for row in Fit(x).run().history:  # noqa: B007
        pass
    return row["loss"] * x[0]


def a_key_that_is_not_there(x):
    try:
        return sum(row["size"] for row in Fit(x).run().history)
    except KeyError:
        return x[0] * x[3]


def a_key_that_is_no_place(x):
    fit = Pairs(x).run()
    try:
        return fit.history[-1][1.0]
    except TypeError:
        return fit.history[-1][True] * x[0]


def changed_while_it_is_run_over(x):
    fit, total = Fit(x).run(), 0.0
    for row in fit.history:
        total = total + row["loss"]
        fit.history.pop()
    return total


def longer_while_it_is_run_over(x):
    fit, total = Pairs(x).run(), 0.0
    for k, loss in fit.history:
        total = total + loss
        if k == 0:
            fit.history.append((7, x[0]))
    return total


def changed_by_what_is_called(x):
    fit = Fit(x).run()

    def taken(loss):
        fit.history.pop()
        return loss

    return sum(taken(row["loss"]) for row in fit.history)


def rows_are_written_meanwhile(x):
    fit, total = Fit(x).run(), 0.0
    for row in fit.history:
        fit.history[-1]["loss"] = 7.0 * x[1]
        total = total + row["loss"]
    return total


def a_parameter_of_that_name(x):
    total = 0.0
    for row in Fit(x).run().history:
        total = total + row["loss"] * (lambda row: row["loss"])({"loss": 10.0})
    return total


def held_twice(x):
    fit = Fit(x).run()
    other = Fit(x)
    other.history = fit.history
    other.run(5)
    return sum(row["loss"] for row in fit.history) + len(other.history)


@pytest.mark.parametrize(
    "fun",
    [
        a_row_is_changed, a_row_is_kept, rows_of_another_kind, the_last_one_that_a_loop_has_seen, a_key_that_is_not_there,
        the_best_is_changed, the_best_is_one_of_them, the_best_by_something_else, rows_are_changed_after_the_best,
        rows_are_divided_by_the_best, the_array_of_the_best_is_written_into, arrays_are_written_into_after_the_best,
        the_best_gets_more, the_best_pair_is_one_of_them,
        a_key_that_is_no_place, held_twice, changed_while_it_is_run_over, longer_while_it_is_run_over,
        changed_by_what_is_called,
        rows_are_written_meanwhile, a_parameter_of_that_name,
    ],
)  # fmt: skip
def test_where_something_else_is_done_with_them_they_are_rows(fun):
    derivative = value_and_grad(fun)
    for rate in (0.3, 0.4, 0.3):
        x = np.array([0.4, -0.3, 0.8, rate])
        right_at(derivative, fun, x, value=(1e-11, 1e-13), slope=(1e-9, 1e-11))


def test_arrays_of_no_rows():
    def f(x):
        fit = Pairs(x).run(int(x[3] > 0.1) * 80)
        return np.array(fit.history).ndim * x[0] + len(fit.history) * x[1]

    def g(x):
        numbers, arrays = [], []
        for k in range(40):
            if x[3] * k > 0.9:
                break
            numbers.append(k)
            arrays.append(x[:2] * k)
        return np.array(arrays[1:]).ndim * x[0] + (np.array(numbers).dtype == float) * x[1] + np.array(arrays).ndim * x[2]

    for fun in (f, g):
        derivative = value_and_grad(fun)
        for rate in (0.3, 0.35, 0.02, 0.25, 40.0, 50.0):
            x = np.array([0.4, -0.3, 0.8, rate])
            right_at(derivative, fun, x, value=(1e-11, 1e-13), slope=(1e-9, 1e-11))


class Counted:
    """Objects that count how often one is asked for their list."""

    def __init__(self):
        self.items, self.asked = [1.0, 2.0, 3.0], 0

    @property
    def log(self):
        self.asked += 1
        return self.items


def test_who_gives_a_list_is_asked_once():
    def f(x):
        one, total = Counted(), 0.0
        for v in one.log:
            total = total + v * x[0]
        total = total + sum(v * x[1] for v in one.log) + one.log[-1]
        return total * one.asked

    derivative = value_and_grad(f)
    for scale in (1.0, 2.0, 3.0):
        right_at(derivative, f, scale * np.array([0.4, 0.3]), value=(1e-11, 1e-13), slope=(1e-9, 1e-11))


def moved(w):
    return w + 0.01 * np.cos(w) - 0.01 * w * np.abs(w) + 0.01 * np.roll(w, 1) + 0.02 * np.roll(w, -1) * np.tanh(w)


def reshaped(u, target, written):
    seen = []
    for _ in range(60):
        u = moved(u.ravel()).reshape(4, 6)
        seen.append(u)
    if written:
        u[0] = 1.0
    return np.sum((seen[-1] - target) ** 2)


@pytest.mark.parametrize("written", [False, True])
def test_arrays_of_another_shape_go_round_beside_a_list(written):
    rng = np.random.default_rng(0)
    u, target, step = rng.normal(size=(4, 6)), rng.normal(size=(4, 6)), rng.normal(size=(4, 6))
    slope = grad(reshaped)
    for k in (1.0, 1.1, 1.2):
        found = slope(k * u, target, written)
        np.testing.assert_allclose(found, grad(reshaped, mode="dynamic")(k * u, target, written), 1e-10)
    ahead, behind = (reshaped(1.2 * u + h * step, target, written) for h in (1e-6, -1e-6))
    np.testing.assert_allclose(np.sum(found * step), (ahead - behind) / 2e-6, 1e-6)
    assert (len(slope.source(u, target, written).splitlines()) < 150) is not written
