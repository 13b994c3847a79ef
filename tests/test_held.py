"""Objects, functions and methods of which a local, or an attribute, holds now this, now that one go round loops as numbers,
where they are elsewhere, too, as the loop begins; and which of them it is, is never mixed up."""

import random

import numpy as np
import pytest
from agreement import function_of
from test_states import draws, right

from symgrad import value_and_grad


class Gain:
    def __init__(self, k):
        self.k, self.n = k, 0

    def step(self, s):
        self.n += 1
        return s * self.k

    def bump(self, v):
        self.k = self.k * 0.95 + 0.02 * v


def scaled(c):
    def scale(s):
        return s * c

    return scale


def closures(p, x):
    low, high = scaled(p[0] * 0.5), scaled(p[1])
    gain, s = low, p[0]
    for v in x:
        if v > 0.5:
            gain = high
        elif v < -0.5:
            gain = low
        s = gain(s) + 0.1 * v
    return s


def defined(p, x):
    def up(s):
        return s * 0.9 + p[1] * 0.1

    def down(s):
        return s * 0.7 - 0.05

    act, s = up, p[0]
    for v in x:
        act = down if v > 0.5 else up if v < -0.5 else act
        s = act(s) + 0.1 * v
    return s


def objects(p, x):
    a, b = Gain(0.9), Gain(p[1])
    gain, s, i = a, p[0], 0
    while i < len(x):
        if x[i] > 0.5:
            gain = b
        elif x[i] < -0.5:
            gain = a
        gain.bump(x[i])
        s = gain.step(s) + 0.1 * x[i]
        i += 1
    return s + a.k + 2.0 * b.k + 0.01 * a.n


def nested(p, x):
    a, b = Gain(0.9), Gain(p[1])
    gain, s = a, p[0]
    for row in np.reshape(x, (-1, 5)):
        for v in row:
            if v > 0.5:
                gain = b
            elif v < -0.5:
                gain = a
            s = gain.step(s) + 0.1 * v
        s = s * 0.99
    return s + 0.01 * b.n


def swapped(p, x):
    a, b, s = Gain(0.9), Gain(p[1]), p[0]
    for v in x:
        if v > 0.5:
            a, b = b, a
        s = a.step(s) + 0.1 * v * b.k
    return s + a.k


def given_by_calls(p, x):
    def pick(gain, a, b, s):
        return b if s > 0.6 else a if s < 0.2 else gain

    a, b = Gain(p[0] * 0.9), Gain(p[1])
    gain, s = a, p[0]
    for v in x:
        gain = pick(gain, a, b, s)
        s = gain.step(s) + 0.1 * v
    return s


def items(p, x):
    gains = [Gain(0.9), Gain(p[1]), Gain(0.5)]
    gain, s = gains[0], p[0]
    for v in x:
        if v > 0.5:
            gain = gains[1]
        elif v < -0.5:
            gain = gains[2]
        s = gain.step(s) + 0.1 * v
    return s


class Car:
    def __init__(self, p):
        self.low, self.high, self.rate = Gain(0.9), Gain(p[1]), p[1]
        self.now = self.low

    def up(self, s):
        return s * 0.9 + self.rate * 0.1

    def down(self, s):
        return s * 0.7 - self.rate * 0.05

    def drive(self, s, v):
        if v > 0.5:
            self.now = self.high
        elif v < -0.5:
            self.now = self.low
        return self.now.step(s) + 0.1 * v


def attributes(p, x):
    car, s = Car(p), p[0]
    gain = car.low
    for v in x:
        if v > 0.5:
            gain = car.high
        elif v < -0.5:
            gain = car.low
        s = gain.step(s) + 0.1 * v
    return s


def methods(p, x):
    car, s = Car(p), p[0]
    act = car.up
    for v in x:
        if v > 0.5:
            act = car.down
        elif v < -0.5:
            act = car.up
        s = act(s) + 0.1 * v
    return s


def in_objects(p, x):
    car, s = Car(p), p[0]
    for v in x:
        s = car.drive(s, v)
    return s + 0.01 * car.high.n + car.now.k


def in_dicts(p, x):
    gains, s = {"a": Gain(0.9), "b": Gain(p[1])}, p[0]
    gains["now"] = gains["a"]
    for v in x:
        if s > 0.6:
            gains["now"] = gains["b"]
        elif s < 0.1:
            gains["now"] = gains["a"]
        s = gains["now"].step(s) + 0.2 * v
    return s + gains["now"].k


class Place:
    def __init__(self, k):
        self.k, self.next = k, None


def linked(p, x):
    a, b, c = Place(0.9), Place(p[1]), Place(0.5)
    a.next, b.next, c.next = b, c, a
    now, s = a, p[0]
    for v in x:
        if v > 0.3:
            now = now.next
        s = s * now.k + 0.1 * v
    return s


def containers(p, x):
    a, b = {"k": 0.9, "m": p[1]}, {"k": 0.7, "m": p[0]}
    low, high = (0.9, p[1]), (0.7, p[0])
    now, pair, s = a, low, p[0]
    for v in x:
        if v > 0.5:
            now, pair = b, low
        elif v < -0.5:
            now, pair = a, high
        k, m = pair
        s = s * now["k"] * k + now["m"] * m * 0.1 * v
    return s


def in_turn(p, x):
    players, k = [Gain(p[0]), Gain(p[1]), Gain(0.5)], 0
    for v in x:
        player = players[k]
        player.k = 0.9 * player.k + 0.1 * v
        if player.k > 0.4:
            k = (k + 1) % 3
        elif v < -1:
            k = 2 - k
    return players[0].k + 2.0 * players[1].k + players[k].k


MOST = {
    closures: 3, defined: 4, objects: 4, nested: 9, swapped: 6, given_by_calls: 6, items: 6, attributes: 7, methods: 9,
    in_objects: 4, in_dicts: 6, in_turn: 8, linked: 4, containers: 8,
}  # fmt: skip


@pytest.mark.parametrize("length", [15, 40])
@pytest.mark.parametrize("fun", MOST, ids=lambda fun: fun.__name__)
def test_what_is_elsewhere_too_goes_round(fun, length):
    right(fun, MOST[fun], 9, length, 3)


def left_behind(p, x):
    a, b = scaled(p[0] + p[1]), scaled(p[1])
    kept, last, s = a, a, p[0]
    for v in x:
        s = s * 0.8 + 0.1 * v
        if s > 0.6:
            last = b if s * v > 0.1 else kept
    return s + kept(1.0) * 4.1 + last(1.0) * 5.1


def alike(p, x):
    a, b = scaled(0.9), scaled(0.9)
    now, s = a, p[0]
    for v in x:
        if v > 0:
            now = b
        if now is b:
            s = s * 0.95 + 0.02 * v
    return s + now(1.0)


@pytest.mark.parametrize("length", [5, 12, 40])
@pytest.mark.parametrize("fun", [left_behind, alike])
def test_functions_of_one_code_are_told_apart(fun, length):
    """Another function with other variables, or such as are alike: two locals hold one function, then two."""
    right(fun, None, 14, length, 5)


# -- random programs ---------------------------------------------------------------------------------------------------

_GAIN = """
class Gain:
    def __init__(self, k):
        self.k, self.n, self.on = k, 0, False
    def step(self, s):
        return s * self.k
    def bump(self, v):
        self.k = self.k * 0.9 + 0.05 * v
        self.n += 1
    def flip(self, s):
        if s > 0.4:
            self.on = True
        elif s < 0:
            self.on = False
        return 0.5 if self.on else 1.0
class Box:
    pass
"""
_TESTS = ("v > 0.5", "v < -0.5", "s > 0.6", "s < 0.1", "t > 0.2", "v > 0", "s * v > 0.1")
_VALUES = ("p[0] * 0.5", "p[1]", "0.7", "0.9", "p[0] + p[1]")
_WHERE = {
    "local": ((), ("a", "b"), ("g", "h")),
    "attr": (("m = Box()",), ("m.a", "m.b"), ("m.now", "m.last")),
    "mixed": (("m = Box()",), ("m.a", "m.b"), ("g", "m.now")),
    "list": (("q = [0, 0, 0]",), ("q[0]", "q[1]", "q[2]"), ("g", "h")),
    "dict": (("q = {}",), ("q['a']", "q['b']"), ("g", "q['now']")),
}


def program(rng, where):
    """A loop in which places hold now this object, now that one, which iterations change, compare and exchange."""
    begin, names, now = _WHERE[where]
    lines = ["def fun(p, x):", *begin, *[f"{name} = Gain({rng.choice(_VALUES)})" for name in names]]
    lines += [f"{name} = {rng.choice(names)}" for name in now] + ["act = " + names[0] + ".step", "s, t = p[0], p[1] * 0.1"]
    lines = [lines[0], *["    " + line for line in lines[1:]], "    for v in x:"]
    for _ in range(rng.randint(3, 5)):
        lines += _statements(rng, names, now, 8)
    lines.append(f"        if {rng.choice(now)} is {rng.choice(names)}:\n            s = s * 0.95 + 0.02 * v")
    ends = [f"{name}.k * {i}.1" for i, name in enumerate((*names, *now), 1)]
    return _GAIN + "\n".join([*lines, "    return s + t + act(0.3) + 0.01 * " + now[0] + ".n + " + " + ".join(ends)]) + "\n"


def _statements(rng, names, now, depth):
    space, one = " " * depth, rng.choice((*now, *now, rng.choice(names)))
    kind = rng.random()
    if kind < 0.35 and depth < 16:
        lines = [f"{space}if {rng.choice(_TESTS)}:", *_statements(rng, names, now, depth + 4)]
        return lines + ([f"{space}else:", *_statements(rng, names, now, depth + 4)] if rng.random() < 0.5 else [])
    if kind < 0.6:
        changes = [f"{rng.choice(now)} = {rng.choice((*names, *now))}"] * 4
        changes += [f"{now[0]}, {now[1]} = {now[1]}, {now[0]}", f"{names[0]}, {names[1]} = {names[1]}, {names[0]}"]
        changes += [f"{rng.choice(now)} = {rng.choice(names)} if {rng.choice(_TESTS)} else {rng.choice(now)}"]
        changes += [f"{rng.choice(names)} = Gain(s * 0.5)", f"act = {rng.choice((*names, *now))}.step"]
        return [space + rng.choice(changes)]
    steps = [f"{one}.bump(v)", f"{one}.n += 1", f"s = {one}.step(s) * 0.9 + 0.1 * v", f"t = t * 0.9 + 0.01 * {one}.n"]
    steps += [f"s = s * 0.8 + 0.1 * v * {one}.flip(s)", f"{one}.on = s > 0.3", "s = act(s) * 0.9 + 0.1 * v"]
    return [space + rng.choice(steps)]


@pytest.mark.parametrize("seed", [*range(3), *[pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 20)]])
@pytest.mark.parametrize("where", _WHERE)
def test_random_programs(where, seed, tmp_path):
    rng = random.Random(f"{where} {seed}")
    right(function_of(program(rng, where), tmp_path / "held.py"), None, 7, rng.choice([5, 12, 40]), 6)


@pytest.mark.parametrize("order", [(1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 1, 1), (1, 0, 1, 0, 1, 0)])
def test_what_is_in_two_places_in_some_calls_alone(order):
    """Two arguments that are one object: another call has two."""

    def fun(p, x, a, b):
        car, s = Car(p), p[0]
        car.first, car.second, gain = a, b, car.low
        for v in x:
            if v > 0.5:
                car.now = car.second
                gain = b
            elif v < -0.5:
                car.now = car.first
                gain = a
            s = s * 0.9 * car.now.k * gain.k + 0.1 * v * p[1]
        return s + car.now.k

    derivative = value_and_grad(fun)
    for i, same in enumerate(order * 2):
        p, x = draws(i, 20)
        a = Gain(0.9)
        b = a if same else Gain(0.5)
        assert derivative(p, x, a, b)[0] == pytest.approx(fun(p, x, a, b), rel=1e-12)
