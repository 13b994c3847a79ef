"""Lists from which loops that decide take items again, and that they filter or begin anew: stacks and queues, of locals and of
objects. How long they are goes round, and code is made; what anybody else sees of them is a list."""

import random
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pytest
from agreement import function_of
from test_states import draws, right

from symgrad import value_and_grad


def stack(p, x):
    items, s = [0.3], 0.0
    for v in x:
        if v * p[0] < 0.5:
            items.append(v * p[1])
        elif items:
            s += items.pop() ** 2
    return s + len(items)


def queue(p, x):
    waiting, now, s = deque(), 0.0, 0.0
    for v in x:
        now = now + abs(v) * p[0]
        waiting.append((now, v))
        while waiting and waiting[0][0] < now - p[1]:
            came, work = waiting.popleft()
            s += (now - came) * work
    while waiting:
        came, work = waiting.popleft()
        s += came * work
    return s


def filtered(p, x):
    kept, s = [], 0.0
    for v in x:
        kept = [0.9 * one for one in kept if one > 0.2 * p[1]]
        kept.append(v * p[0])
        s += sum(kept) + max(kept)
    return s


def emptied(p, x):
    stock, coming, s = 1.0, [], 0.0
    for v in x:
        stock = stock + sum(coming) - v
        coming = []
        if stock < p[0]:
            coming.append(p[1])
        s += stock**2
    return s


def on_the_way(p, x):
    stock, way, s = 2 * p[0], [], 0.0
    for day, v in enumerate(x):
        here = [amount for due, amount in way if due <= day]
        way = [(due, amount) for due, amount in way if due > day]
        for amount in here:
            stock += amount
        stock = stock - abs(v)
        if stock < p[1]:
            way.append((day + 3, 2.0))
            s += 1.0
        s += 0.05 * stock
    return s


def window(p, x):
    last, s = deque(), 0.0
    for v in x:
        last.append(v * p[0])
        if sum(last) > 2 * p[1]:
            last.popleft()
        s += max(last) if last else 0.0
    return s


def intervals(p, x):
    todo, s = [(0.0, 2.0)], 0.0
    while todo:
        a, b = todo.pop()
        m = (a + b) / 2
        one = (b - a) * np.sin(m * p[0]) * p[1]
        two = (m - a) * np.sin((a + m) / 2 * p[0]) * p[1] + (b - m) * np.sin((m + b) / 2 * p[0]) * p[1]
        if abs(one - two) < 1e-2 + 0.01 * abs(x[0]):
            s += two
        else:
            todo.append((a, m))
            todo.append((m, b))
    return s


def places(p, x):
    open_, s = [], 0.0
    for k, v in enumerate(x):
        if v * p[0] < 0.5:
            open_.append(k)
        elif open_:
            s += x[open_.pop()] * v * p[1]
    return s


def averaged(p, x):
    items = []
    for v in x:
        if v * p[0] < 0.5:
            items.append(v * p[1])
        elif items:
            items.pop()
    return np.mean(items) if items else p[0]


class Server:
    def __init__(self, rate):
        self.rate, self.busy, self.waiting = rate, 0.0, deque()

    def arrive(self, now, work):
        self.waiting.append((now, work))

    def run(self, now):
        s = 0.0
        while self.waiting and self.busy < now:
            came, work = self.waiting.popleft()
            self.busy = max(self.busy, came) + work / self.rate
            s += self.busy - came
        return s


def of_objects(p, x):
    server, now, s = Server(0.5 + p[0] ** 2), 0.0, 0.0
    for v in x:
        now = now + abs(v)
        server.arrive(now, abs(v) * p[1])
        s += server.run(now)
    return s + len(server.waiting)


@dataclass
class Delay:
    gain: float
    items: list = field(default_factory=list)

    def step(self, v):
        self.items.append(v)
        return self.items.pop(0) ** 2 if v > 0.3 * self.gain else 0.0


def of_dataclasses(p, x):
    delay, s = Delay(p[0]), 0.0
    for v in x:
        s += delay.step(v * p[1])
    return s


class Stack:
    def __init__(self):
        self.data = []

    def push(self, v):
        self.data.append(v)

    def pop(self):
        if not self.data:
            raise IndexError("nothing is there")
        return self.data.pop()

    def __len__(self):
        return len(self.data)


def of_a_class_of_ones_own(p, x):
    items, s = Stack(), 0.0
    for v in x:
        if v * p[0] > 0.4:
            items.push(v * p[1])
        elif len(items) > 0:
            s += items.pop() ** 2
        s += 0.1 * len(items)
    return s


class Sized:
    def __init__(self):
        self.first, self.second = [], []

    def take(self):
        return self.first.pop() if len(self.first) > len(self.second) else 0.0


def of_two_lists(p, x):
    pair, s = Sized(), 0.0
    for v in x:
        if v > 0:
            pair.first.append(v * p[0])
        else:
            pair.second.append(v)
        if v < -0.5 and pair.second:
            s += pair.second.pop() * p[1]
        s += pair.take()
    return s


CODE = [
    stack,
    queue,
    filtered,
    emptied,
    on_the_way,
    window,
    intervals,
    places,
    averaged,
    of_objects,
    of_dataclasses,
    of_two_lists,
]


@pytest.mark.parametrize("fun", CODE, ids=lambda fun: fun.__name__)
def test_lists_that_shrink_go_round(fun):
    right(fun, 8, 20, 24, 3)


def follows(derivative, fun, p, x):
    """Assert that value and gradient are those of the plain function and of dynamic mode."""
    value, slope = derivative(p, x)
    np.testing.assert_allclose(value, fun(p, x), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(slope, value_and_grad(fun, mode="dynamic")(p, x)[1], rtol=1e-9, atol=1e-11)


def test_there_is_more_room_where_it_is_needed():
    def fun(p, x):
        items, s = [], 0.0
        for v in x:
            items.append(v * p[0])
            items.append(v)
            if v > 0.9 * p[1]:
                s += items.pop() ** 2
        while items:
            s += 0.01 * items.pop()
        return s

    derivative = value_and_grad(fun)
    for i in range(6):
        follows(derivative, fun, *draws(i, 400))
    assert derivative.cache_info().hits


class Plain:
    def __init__(self):
        self.items = []

    def step(self, v):
        self.items.append(v)
        return self.items.pop(0) if v > 0.2 else 0.0


class Named:
    items = ()  # what others find in the place of the object's

    def __init__(self):
        self.items = []

    step = Plain.step


class Asked(Plain):
    def __getattr__(self, name):
        return 0


LOG = []


def looked_up(p, x):
    one = Plain()
    s = sum([one.step(v * p[0]) for v in x])
    return s + len(vars(one)["items"]) + len(one.items), getattr(one, "items")  # noqa: B009


def of_a_class(p, x):
    one = Named()
    s = sum([one.step(v * p[0]) for v in x])
    return s + len(getattr(one, "items")), 0.0  # noqa: B009


def asked(p, x):
    one = Asked()
    return sum([one.step(v * p[0]) for v in x]) + len(one.items), one.more


def put_outside(p, x):
    one = Plain()
    s = sum([one.step(v) for v in x])
    LOG.append(one)
    return s * p[0], len(LOG[-1].items)


def two_names(p, x):
    items = []
    same, s = items, 0.0
    for v in x:
        items.append(v * p[0])
        if v > 0.2:
            s += same.pop(0)
    return s, items


def handed_on(p, x):
    items, s = [], 0.0
    for v in x:
        items.append(v * p[0])
        if v > 0.2:
            s += taken(items)
    return s, items


def taken(items):
    return items.pop(0) + len(items)


def called_on_the_way(p, x):
    one, s = Plain(), 0.0
    for v in x:
        one.items.append(v * p[0])
        for w in one.items[:5]:
            s += w
        if one.items and one.step(v) > 0 and one.items:
            s += one.items[0] * one.step(v)
    return s, [*one.items]


def of_kinds(p, x):
    items, out = [], None
    for k, v in enumerate(x):
        items.append(k if k % 2 else 0.5)
        if v > 0.2:
            out = items.pop()
    return v * p[0], (out, sum(items), items)


def of_ints(p, x):
    items, out = [], None
    for k, v in enumerate(x):
        items.append(k)
        if v > 0.2:
            out = items.pop()
    return v * p[0], (out, sum(items), max(items, default=None), len(items))


def of_texts(p, x):
    items, s = ["a"], 0.0
    for v in x:
        items.append("a" if v > 0 else "b")
        if v > 0.2:
            s += v * p[0] if items.pop() == items[-1] else v
    return s, items


def of_all_sorts(p, x):
    items, s = [None], 0.0
    for v in x:
        items.append(v * p[0] if v > 0 else (v, v) if v < -1 else None)
        if v > 0.2:
            last = items.pop(0)
            s += 1.0 if last is None else sum(last) if type(last) is tuple else last
    return s, len(items)


OTHERS = [
    looked_up, of_a_class, asked, put_outside, two_names, handed_on, called_on_the_way, of_kinds, of_ints, of_texts,
    of_all_sorts,
]  # fmt: skip


def _shown(value):
    return [_shown(one) for one in value] if isinstance(value, (list, tuple)) else (type(value).__name__, value)


@pytest.mark.parametrize("fun", OTHERS, ids=lambda fun: fun.__name__)
def test_what_others_see_is_a_list(fun):
    derivative, dynamic = value_and_grad(fun, has_aux=True), value_and_grad(fun, has_aux=True, mode="dynamic")
    for p, x in [draws(i, 16) for i in range(8)]:
        (value, aux), slope = derivative(p, x)
        want, beside = fun(p, x)
        np.testing.assert_allclose(value, want, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(slope, dynamic(p, x)[1], rtol=1e-9, atol=1e-12)
        plain, found = _shown(beside), _shown(aux)
        assert str(found).replace("float64", "float") == str(plain).replace("float64", "float")


@pytest.mark.parametrize("order", [(1.0, -1.0), (-1.0, 1.0)])
def test_an_empty_list_raises_as_a_list_does(order):
    def fun(p, x):
        items, s = [p[0], p[1]], 0.0
        for v in x:
            if v > 0:
                s += items.pop() * v
            elif v < -5:
                items.append(v)
        return s

    derivative = value_and_grad(fun)
    for sign in (*order, *order):
        x = np.array([0.5, -1.0, 0.7, sign, -0.2, -0.3])
        if sign > 0:
            with pytest.raises(IndexError, match="pop from empty list"):
                derivative(np.ones(2), x)
        else:
            follows(derivative, fun, np.ones(2), x)


def test_lengths_are_not_negative():
    class Odd:
        def __init__(self, n):
            self.n = n

        def __len__(self):
            return self.n

    def fun(p, x):
        n = 0
        for v in x:
            if v * p[0] > 0:
                n += 1
        return p[0] * len(Odd(n - 3))

    derivative = value_and_grad(fun)
    for often in (4, 5, 3, 4, 2, 6):
        x = np.where(np.arange(8) < often, 1.0, -1.0)
        if often < 3:
            with pytest.raises(ValueError, match="should return >= 0"):
                derivative(np.ones(2), x)
        else:
            follows(derivative, fun, np.ones(2), x)


class Both:
    def __init__(self):
        self.items = [1.0, 2.0]

    def pop(self):
        return self.items.pop(0)


def by_a_method(p, x):
    """``box.pop()`` is no method of the list."""
    box, s = Both(), 0.0
    for v in x:
        if v > 0:
            box.items.append(v)
        if box.items and v < 0.5:
            s += box.pop() * p[0]
            s += box.items.pop()
    return s


def by_another_name(p, x):
    """Two names of one object, whose list is filtered."""
    box = Both()
    same, s = box, 0.0
    for v in x:
        box.items.append(v * p[0])
        same.items = [w for w in box.items if w > -0.5]
        if v > 0.3 and same.items:
            s += same.items.pop()
        for w in box.items:
            s += 0.1 * w
    return s


def in_no_turn(p, x):
    """Loops may run no iteration, and then have put nothing there."""
    items, s = [p[0]], 0.0
    for v in x:
        for _ in range(2 if v > 0.2 else 0):
            items.append(v)
        s += items.pop() * v
    return s


def behind_a_break(p, x):
    items, s = [p[0], 1.0], 0.0
    for v in x:
        while items[-1] > 0.4:
            s += items.pop()
            if v < -0.3:
                break
        s += items[-1] * v
        items.append(v)
    return s


class Backwards(deque):
    def pop(self):
        return self.popleft()


def not_the_same():
    deque = Backwards

    def fun(p, x):
        items, s = deque(), 0.0
        for v in x:
            items.append(v * p[0])
            if v > 0.2:
                s += items.pop() * v
        return s

    return fun


STEPS = []


def step(v):
    STEPS.append(1.0)
    return v * len(STEPS)


def in_order(p, x):
    """What is called before the list is looked through is called before."""
    STEPS.clear()
    items, s = [0.5], 0.0
    for v in x:
        items.append(v)
        if v > 0.2:
            s += items.pop(0) * p[0]
        s += 0.1 * step(v) + sum(0.1 * step(w) for w in items)
    return s


TRAPS = [by_a_method, by_another_name, in_no_turn, behind_a_break, not_the_same(), in_order]


@pytest.mark.parametrize("fun", TRAPS)
def test_what_others_do_to_lists_is_seen(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for i in range(24):
        p, x = draws(i, 8)
        try:
            want = fun(p, x)
        except IndexError as error:
            with pytest.raises(IndexError, match=str(error)):
                derivative(p, x)
        else:
            value, slope = derivative(p, x)
            np.testing.assert_allclose(value, want, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(slope, dynamic(p, x)[1], rtol=1e-9, atol=1e-12)


def test_functions_that_outlive_the_call_have_lists():
    def fun(p, x):
        def later(y, most):
            items, s = [], 0.0
            for v in y:
                items.append(v)
                items.append(-v)
                if v > most:
                    s += items.pop(0)
            return s + sum(items)

        return p[0] * later(x, 0.2), later

    derivative = value_and_grad(fun, has_aux=True)
    for _, x in [draws(i, 200) for i in range(4)]:
        (_, later), _ = derivative(np.ones(2), x)
        np.testing.assert_allclose(later(x, 0.1), fun(np.ones(2), x)[1](x, 0.1), rtol=1e-12)


def test_functions_that_outlive_the_call_do_what_they_do():
    def fun(p, x):
        def later(y):
            cells, found, k, s = [0.0] * 4, [], 0, 0.0
            for i, v in enumerate(y):
                if v > 0:
                    cells[i % 4] = cells[i % 4] + v
            while k < len(y) and s < 3.0:
                if y[k] > 0.5:
                    found.append(y[k])
                s = s + abs(y[k])
                k += 1
            if cells[0] > 1.0:
                s = s + cells[0]
            if cells[1] > 1.0:
                s = s * cells[1]
            return s + cells[2] + sum(found)

        return p[0] * later(x), later

    derivative = value_and_grad(fun, has_aux=True)
    for i in range(14):
        p, x = draws(i, 8)
        (value, later), _ = derivative(p, x)
        np.testing.assert_allclose(value, fun(p, x)[0], rtol=1e-12)
        np.testing.assert_allclose(later(x + 0.1), fun(p, x)[1](x + 0.1), rtol=1e-12)


def program(rng, owner):
    """A function that puts numbers, pairs or ints into lists, reads them and takes them out, as chance has it."""
    names = [f"{owner}{name}" for name in ("q", "h")[: rng.choice([1, 2])]]
    kinds = {name: rng.choice(["number", "number", "pair", "int"]) for name in names}
    queues = {name: rng.random() < 0.3 for name in names}
    lines = ["from collections import deque", "class Box: pass", "def fun(p, x):", "    box = Box()"]
    lines += [f"    {name} = {'deque()' if queues[name] else '[]'}" for name in names]
    lines += ["    s, t, c = p[0], 0.1, 0", "    for k, v in enumerate(x):"]
    for name in names:
        lines.append(f"        if {rng.choice(_TESTS)}: {name}.append({_item(rng, kinds[name])})")
    for _ in range(rng.choice([2, 3, 4])):
        lines += _statements(rng, rng.choice(names), kinds, queues, 0)
    for name in names:
        lines += [f"        if {rng.choice(_TESTS)} and {name}:", *_used(rng, kinds[name], f"{name}.pop()", 12)]
    lines.append(f"    return s + t + 0.1 * c + {' + '.join(f'0.1 * len({name})' for name in names)}")
    return "\n".join(lines) + "\n"


_TESTS = ["v > 0.5", "v < 0", "s > 0.6", "s * v > 0.1", "t > 0.2", "c > 3", "True"]


def _item(rng, kind):
    number = rng.choice(["v", "s", "v * p[1]", "t", "0.5", "np.tanh(s)"])
    return {"number": number, "pair": f"({number}, {rng.choice(['k', 'v', 't'])})", "int": rng.choice(["k", "c", "k % 3"])}[
        kind
    ]


def _used(rng, kind, item, indent):
    use = {
        "number": [f"s = 0.9 * s + 0.1 * {item}", f"t += 0.01 * {item} ** 2"],
        "pair": [f"a, b = {item}", f"s = 0.9 * s + 0.1 * {item}[0]"],
        "int": [f"t += 0.01 * {item}", f"s = 0.9 * s + 0.1 * x[{item} % len(x)]"],
    }[kind]
    line = rng.choice(use)
    more = [" " * indent + "s = 0.9 * s + 0.05 * a * b"] if line.startswith("a, b") else []
    return [" " * indent + line, *more]


def _statements(rng, name, kinds, queues, depth):
    kind, pad = kinds[name], " " * (8 + 4 * depth)
    one, value = ("(a, b)", "a * b") if kind == "pair" else ("y", "y")
    first = f"{name}.popleft()" if queues[name] else f"{name}.pop(0)"
    choice = rng.random()
    if choice < 0.25 and depth < 2:
        return [f"{pad}if {rng.choice(_TESTS)}:", *_statements(rng, name, kinds, queues, depth + 1)]
    if choice < 0.5:
        head = rng.choice([f"if {name}:", f"if len({name}) > 2:", f"while len({name}) > {rng.choice([1, 3])}:"])
        return [pad + head, *_used(rng, kind, first, len(pad) + 4)]
    if choice < 0.6:
        return [f"{pad}if {name}:", *_used(rng, kind, f"{name}[{rng.choice([0, -1])}]", len(pad) + 4)]
    if choice < 0.7:
        return [f"{pad}t += 0.01 * sum({value} for {one} in {name})"]
    if choice < 0.8:
        return [f"{pad}for {one} in {name}: s = 0.95 * s + 0.02 * {value}"]
    if choice < 0.9 and not queues[name]:
        return [f"{pad}{name} = [{one} for {one} in {name} if {value} {rng.choice(['> 0.1', '< s', '* v > 0'])}]"]
    return [f"{pad}if {rng.choice(_TESTS)}: {name}.clear()", f"{pad}c += 1"]


@pytest.mark.parametrize("owner", ["", "box."])
@pytest.mark.parametrize("seed", [*range(4), *[pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 25)]])
def test_random_programs(owner, seed, tmp_path):
    fun = function_of(program(random.Random(f"{owner} {seed}"), owner), tmp_path / f"shrinking{seed}.py")
    derivative = value_and_grad(fun)
    for i in range(8):
        follows(derivative, fun, *draws(i, 12))


def counted(p, x):
    kept, n = np.zeros(40), 0
    for v in x:
        if v * p[0] > 0.2:
            kept[n] = v * p[1]
            n += 1
    return kept, n


def parts(p, x):
    kept, n = counted(p, x)
    return np.mean(kept[:n]) + kept[1:n].sum() + np.max(kept[: n - 1]) + np.sort(kept[:n])[0]


def written_into(p, x):
    kept, n = counted(p, x)
    part = kept[:n]
    part[:2] = part[:2] * 3.0
    part[-1] += 1.0
    return np.sum(kept**2) + len(part) + part[0]


@pytest.mark.parametrize("fun", [parts, written_into])
def test_parts_up_to_a_number_are_views(fun):
    """``x[:n]`` of a number that hangs on the arguments is what a mask selects."""
    derivative = value_and_grad(fun)
    for i in range(20):
        follows(derivative, fun, *draws(i, 24))
    assert fun is written_into or derivative.cache_info().misses <= 8
