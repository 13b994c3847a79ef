"""Texts, members of an ``Enum`` and None that calls give, or that objects hold, go round loops as numbers; what an object has
is decided on where somebody asks for it. Objects that keep histories, and classes of the function's own, are in loops, too."""

import bisect
import copy
import dataclasses
import enum
import operator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest
from agreement import right_at, slopes

from symgrad import grad, hessian, jvp, value_and_grad


def step(state, s, v):
    if state == "dry":
        return ("wet", s + v) if v > 0.3 else ("dry", s * 0.9)
    return ("dry", s - v) if v < -0.2 else ("wet", s * 1.1 + v)


def flip(state, v):
    return "a" if v < -0.5 else state


class Mode(enum.Enum):
    OFF = 0
    ON = 1
    WAIT = 2


RATES = {Mode.OFF: 0.1, Mode.ON: 0.5, Mode.WAIT: -0.2}
WEIGHTS = {"wet": 2.0, "dry": 3.0, "x": 5.0, "wetx": 7.0, "dryx": 11.0}


def advance(mode, s, v):
    if mode is Mode.OFF:
        return Mode.ON if v > 0.5 else Mode.OFF
    if mode is Mode.ON:
        return Mode.WAIT if s > 3 else Mode.ON
    return Mode.OFF if v < -0.3 else Mode.WAIT


def pick(mode, v):
    if mode is None:
        return "up" if v > 1 else None
    if mode == "up":
        return "down" if v < -0.5 else "up"
    return None if v > 0.5 else "down"


def decide(state, s, v, k):
    if k > 25:
        return "done"
    if state == "run" and v < -1:
        return "slow"
    if state == "slow" and v > 1:
        return "run"
    return "done" if s < 0.2 else state


class Tank:
    """A state, a level, a history."""

    def __init__(self, state="dry"):
        self.state, self.s, self.log, self.rows = state, 0.0, [], []

    def step(self, v):
        if self.state == "dry":
            if v > 0.3:
                self.state = "wet"
                self.s = self.s + v
            else:
                self.s = self.s * 0.9
        elif v < -0.2:
            self.state = "dry"
            self.s -= v
        else:
            self.s = self.s * 1.1 + v

    def noted(self, v):
        self.step(v)
        self.log.append(self.s)
        self.rows.append({"s": self.s, "v": v})


class Slotted:
    __slots__ = ("s", "state")

    def __init__(self):
        self.state, self.s = "dry", 0.0

    step = Tank.step


class Guarded(Tank):
    """The state behind a property."""

    @property
    def state(self):
        return self._state

    @state.setter
    def state(self, value):
        self._state = value


@dataclass
class Record:
    state: str = "dry"
    s: float = 0.0
    step = Tank.step


class Handlers:
    """The state's method is looked up in a dict that the object holds."""

    def __init__(self):
        self.state, self.e = "idle", 0.0
        self.handlers = {"idle": self.idle, "run": self.run, "cool": self.cool}

    def idle(self, v, p):
        return "run" if v > 0.4 else "idle"

    def run(self, v, p):
        self.e = self.e + p[1] * v
        return "cool" if self.e > 1.5 else "run"

    def cool(self, v, p):
        self.e = self.e * 0.7
        return "idle" if self.e < 0.5 else "cool"

    def step(self, v, p):
        self.state = self.handlers[self.state](v, p)


def ran(p, x, made=Tank):
    tank = made()
    for v in x:
        tank.step(v * p[1])
    return tank


# -- locals that calls give ----------------------------------------------------------------------------------------


def handed_on(p, x):
    state, s = "dry", p[0]
    for v in x:
        state, s = step(state, s, v * p[1])
    return s


def read_after(p, x):
    state, s = "dry", p[0]
    for v in x:
        state, s = step(state, s, v * p[1])
    return s * WEIGHTS[state]


def members(p, x):
    mode, s = Mode.OFF, p[0]
    for v in x:
        s = s + RATES[mode] * p[1] * (1 + 0.1 * v)
        mode = advance(mode, s, v)
    return s


def nothing(p, x):
    mode, s = None, p[0]
    for v in x:
        mode = pick(mode, v)
        if mode is None:
            s = s + 0.1 * v
        elif mode == "up":
            s = s * 1.05
        else:
            s = s - 0.02 * p[1]
    return s


def until(p, x):
    state, k, s = "run", 0, p[0]
    while state != "done":
        s = s * 0.9 + 0.1 * p[1] * x[k]
        k += 1
        state = decide(state, s, x[k], k)
    return s


def tables(p, x):
    state, s = "a", p[0]
    following = {"a": {"up": "b", "down": "a"}, "b": {"up": "c", "down": "a"}, "c": {"up": "c", "down": "b"}}
    gains = {"a": 1.0, "b": 0.5, "c": -0.25}
    for v in x:
        state = following[state]["up" if v > 0 else "down"]
        s = s + gains[state] * v * p[1]
    return s


def nested(p, x):
    total = 0.0
    for j in range(3):
        state, s = "dry", p[0] + 0.1 * j
        for v in x:
            state, s = step(state, s, v * p[1])
        total = total + s
    return total


def carried(p, x):
    total, state = p[0], "dry"
    for j in range(5):
        for v in x[:10]:
            state, total = step(state, total, v * p[1] + 0.05 * j)
    return total


def matched(p, x):
    state, s = "a", p[0]
    for v in x:
        match state:
            case "a":
                s = s + v * p[1]
            case "b":
                s = s * 0.9
        state = "b" if state == "a" and v > 0.5 else flip(state, v)
    return s


def now_a_number(p, x):
    """What is in the local is a text at times."""
    state, s = "none", p[0]
    for v in x:
        if state == "none" or state > 1.0:
            s = s + 0.1 * v
        state = ("none" if v < 0 else v * p[1]) if v < 0.8 else flip("none", v)
    return s


def places(p, x):
    """Ints are places in a list."""
    k, s = 0, p[0]
    for v in x:
        k = gear(k, v)
        s = s + [0.1, 0.2, 0.4][k] * v * p[1]
    return s


def gear(k, v):
    if k == 0:
        return 1 if v > 0.3 else 0
    if k == 1:
        return 2 if v > 0.6 else (0 if v < -0.3 else 1)
    return 1 if v < 0 else 2


def functions(p, x):
    s, act = 0.0, rise
    for v in x:
        s = act(s, v * p[0])
        if s > 1:
            act = fall
        elif s < -1:
            act = rise
    return s


def rise(s, v):
    return s + 0.3 + 0.1 * v


def fall(s, v):
    return s - 0.4 + 0.2 * v


class Level(NamedTuple):
    state: str
    s: float


def tuples(p, x):
    now = Level("dry", p[0])
    for v in x:
        now = following(now, v * p[1])
        if now.s > 4:
            now = now._replace(state="dry", s=now.s * 0.5)
    return now.s * WEIGHTS[now.state]


def following(now, v):
    if now.state == "dry":
        return Level("wet", now.s + v) if v > 0.3 else now._replace(s=now.s * 0.9)
    return Level("dry", now.s - v) if v < -0.2 else Level("wet", now.s * 1.1 + v)


LOCALS = {
    "handed_on": (handed_on, 2), "read_after": (read_after, 4), "members": (members, 3), "nothing": (nothing, 3),
    "until": (until, 5), "tables": (tables, 3), "nested": (nested, 3), "carried": (carried, 4), "matched": (matched, 3),
    "now_a_number": (now_a_number, None), "places": (places, 4), "functions": (functions, 6), "tuples": (tuples, 6),
}  # fmt: skip


def draws(i, length=30):
    return np.array([1.0 + 0.01 * i, 0.5]), np.random.default_rng(200 + i).standard_normal(length)


def right(fun, most, calls=8, length=30, often=1):
    """``fun`` is right at every call, its slopes at one of so many, and compiled after ``most``, if that is known."""
    derivative = value_and_grad(fun)
    for i in range(calls):
        p, x = draws(i, length)
        value, gradient = derivative(p, x)
        np.testing.assert_allclose(value, fun(p, x), rtol=1e-11, atol=1e-13)
        if i % often == 0:
            (expected,) = slopes(lambda q, x=x: fun(q, x), (p,))
            np.testing.assert_allclose(gradient, expected, rtol=2e-5, atol=2e-6)
    assert most is None or derivative.cache_info().misses <= most


@pytest.mark.parametrize("name", LOCALS)
def test_texts_that_calls_give_go_round(name):
    right(*LOCALS[name])


def row_by_row(p, x):
    state, s = "dry", p[0]
    for row in np.reshape(x, (-1, 5)):
        for v in row:
            state = flip(state, v) if v < 0.5 else "wet"
            s = s * (0.9 if state == "a" else p[1]) + 0.1 * v
        s = s * 0.99
    return s


@pytest.mark.parametrize("length", [15, 20, 40])
def test_only_a_loop_within_has_numbers(length):
    """... and the next run of it begins with what the last one has left, which is decided on in between."""
    right(row_by_row, None, 14, length, 7)


def test_the_code_decides_on_numbers():
    derivative = grad(handed_on)
    for i in range(4):
        derivative(*draws(i))
    source = derivative.source(*draws(9))
    assert "state_code == 0" in source
    assert source.count("\n") < 80


def test_other_derivatives():
    p, x = draws(1)
    for _ in range(4):
        _, along = jvp(handed_on, (p, x), (np.ones(2), np.zeros(30)))
        second = hessian(handed_on)(p, x)
    first = grad(handed_on)
    np.testing.assert_allclose(along, first(p, x).sum(), rtol=1e-10)
    h = 1e-6
    step_by = [(first(p + h * e, x) - first(p - h * e, x)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(second, step_by, rtol=1e-5, atol=1e-6)


def test_effects_are_as_often_as_in_python():
    seen = []

    def fun(x):
        state, s = "dry", 0.0
        for v in x:
            state, s = step(state, s, v)
        seen.append(state)
        return s

    derivative = value_and_grad(fun)
    for i in range(6):
        _, x = draws(i)
        right_at(derivative, fun, x, value=(1e-12, 0.0), slope=(1e-10, 1e-12))
        del seen[1:]
        fun(x)
        assert seen[0] == seen[1]
        seen.clear()


# -- what objects and dicts hold -----------------------------------------------------------------------------------


def plainly(p, x):
    return ran(p, x).s * p[0]


def asked(p, x):
    tank = ran(p, x)
    return tank.s * WEIGHTS[tank.state]


def by_getattr(p, x):
    tank = ran(p, x)
    return tank.s * WEIGHTS[getattr(tank, "state")]  # noqa: B009


def by_getter(p, x):
    tank = ran(p, x)
    return tank.s * WEIGHTS[operator.attrgetter("state")(tank)]


def by_vars(p, x):
    tank = ran(p, x)
    return tank.s * WEIGHTS[vars(tank)["state"]] + WEIGHTS[tank.__dict__["state"]]


def in_words(p, x):
    tank = ran(p, x)
    return tank.s * WEIGHTS[f"{tank.state}"] + WEIGHTS["".join([tank.state])]


def longer(p, x):
    tanks = [ran(p, x)]
    tanks[0].state += "x"
    return tanks[0].s * WEIGHTS[tanks[0].state]


def set_after(p, x):
    tank, tanks = ran(p, x), [ran(p, x[:9])]
    tank.state += "x"
    tanks[0].state, factor = "wet", 2.0
    return tank.s * WEIGHTS[tank.state] + factor * tanks[0].s * WEIGHTS[tanks[0].state]


def set_otherwise(p, x):
    tank, other = ran(p, x), ran(p, x[:9])
    setattr(tank, "state", "dry")  # noqa: B010
    other.__dict__["state"] = "dry"
    return tank.s * WEIGHTS[tank.state] + other.s * WEIGHTS[other.state]


def deleted(p, x):
    tank = ran(p, x)
    del tank.state
    return tank.s * (2.0 if hasattr(tank, "state") else 3.0)


def copies(p, x):
    tank = ran(p, x)
    return sum([one.s * WEIGHTS[one.state] for one in (copy.copy(tank), copy.deepcopy(tank))])


def by_class(p, x):
    match ran(p, x):
        case Tank(state="wet", s=s):
            return s * 2
        case tank:
            return tank.s * 3


def in_order(p, x):
    tanks = sorted([ran(p, x), ran(p, x[:15])], key=lambda tank: tank.state)
    return tanks[0].s * p[1]


def slots(p, x):
    tank = ran(p, x, Slotted)
    return tank.s * WEIGHTS[tank.state]


def properties(p, x):
    tank = ran(p, x, Guarded)
    return tank.s * WEIGHTS[tank.state]


def records(p, x):
    one, other = ran(p, x, Record), ran(p, x[:15], Record)
    made = dataclasses.replace(one, s=1.0)
    return one.s * WEIGHTS[made.state] + WEIGHTS[dataclasses.asdict(other)["state"]] * (2.0 if one == other else p[0])


def within(p, x):
    class Own:
        def __init__(self):
            self.state, self.s = "dry", p[0]

        step = Tank.step

        @property
        def weight(self):
            return WEIGHTS[self.state]

    own = Own()
    for v in x:
        own.step(v * p[1])
    return own.s * own.weight


def machine(p, x):
    one = Handlers()
    for v in x:
        one.step(v, p)
    return one.e * p[0]


def again(p, x):
    tank = ran(p, x)
    for v in x[:12]:
        tank.step(v * p[0])
    return tank.s * WEIGHTS[tank.state]


def swapped(p, x):
    one, other = Tank(), Tank("wet")
    for v in x:
        one.step(v * p[1])
        if v > 1:
            one.state, other.state = other.state, one.state
    return one.s * WEIGHTS[one.state] + WEIGHTS[other.state] * p[0]


def dictionaries(p, x):
    now = {"mode": "dry", "s": p[0]}
    for v in x:
        if now["mode"] == "dry" and v > 0.3:
            now["mode"] = "wet"
        elif now["mode"] == "wet" and v < -0.3:
            now["mode"] = "dry"
        now["s"] = now["s"] + v * p[1] * WEIGHTS[now["mode"]]
    return {**now}["s"] * WEIGHTS[dict(now)["mode"]] + WEIGHTS[now.get("mode")]


def lists(p, x):
    states, s = ["dry", "wet"], p[0]
    for v in x:
        if states[0] == "dry" and v > 0.3:
            states[0] = "wet"
        elif v < -0.3:
            states[0] = "dry"
        s = s * 0.95 + v * p[1] * WEIGHTS[states[0]]
    return s * WEIGHTS[states[0]] + WEIGHTS[states[1]]


HELD = {
    "plainly": (plainly, 3), "asked": (asked, 5), "by_getattr": (by_getattr, 5), "by_getter": (by_getter, 5),
    "by_vars": (by_vars, 5), "in_words": (in_words, 5), "longer": (longer, 5), "set_after": (set_after, None),
    "set_otherwise": (set_otherwise, None), "deleted": (deleted, None), "copies": (copies, 5), "by_class": (by_class, 5),
    "in_order": (in_order, None), "slots": (slots, 5), "properties": (properties, 5), "records": (records, None),
    "within": (within, 5), "machine": (machine, None), "again": (again, 5), "swapped": (swapped, None),
    "dictionaries": (dictionaries, 5), "lists": (lists, 5),
}  # fmt: skip


@pytest.mark.parametrize("name", HELD)
def test_texts_that_objects_hold_go_round(name):
    right(*HELD[name])


class Looked:
    """A state that may be asked for in many ways."""

    def __init__(self, state="dry"):
        self.state = state

    def turn(self, v):
        if self.state == "dry":
            if v > 0.3:
                self.state = "wet"
        elif v < -0.2:
            self.state = "dry"

    def __str__(self):
        return self.state

    def __eq__(self, other):
        return self.state == other.state

    def __hash__(self):
        return hash(self.state)

    def __len__(self):
        return 3 + (self.state == "wet")

    def __bool__(self):
        return self.state == "wet"

    def __iter__(self):
        return iter([self.state])


def by_pattern(one):
    match one:
        case Looked(state="wet"):
            return 2.0
    return 3.0


def with_another(one):
    one.state, factor = ("wet" if one.state == "dry" else "dry"), 2.0
    before = WEIGHTS[one.state]
    one.state = "wet" if one.state == "dry" else "dry"
    return factor * before


def made_longer(one):
    one.state += "x"
    weight = WEIGHTS[one.state]
    one.state = one.state[:3]
    return weight


def in_a_loop(one):
    for one.state in (one.state,):  # noqa: B020
        pass
    return WEIGHTS[one.state]


READS = {
    "attribute": lambda one: WEIGHTS[one.state],
    "getattr": lambda one: WEIGHTS[getattr(one, "state")],  # noqa: B009
    "vars": lambda one: WEIGHTS[vars(one)["state"]],
    "copy": lambda one: WEIGHTS[copy.copy(one).state],
    "text": lambda one: WEIGHTS[str(one)] + WEIGHTS[f"{one.state}"] + WEIGHTS["%s" % one],  # noqa: UP031
    "equal": lambda one: 2.0 if one == Looked("wet") else 3.0,
    "equal to a text": lambda one: 2.0 if one.state == "wet" else 3.0,
    "not equal": lambda one: (2.0 if one.state != "wet" else 3.0) + (2.0 if "dry" == one.state else 1.0),  # noqa: SIM300
    "among": lambda one: (2.0 if one in [Looked("wet")] else 3.0) + (1.0 if one.state in {"wet", "x"} else 0.5),
    "hash": lambda one: 2.0 if one in {Looked("wet"): 1} else 3.0,
    "length": lambda one: float(len(one)),
    "truth": lambda one: 2.0 if one else 3.0,
    "order": lambda one: 2.0 if one.state < "s" else 3.0,
    "items": lambda one: WEIGHTS["".join(one)],
    "key": lambda one: WEIGHTS[min([one, Looked("zzz")], key=lambda other: other.state).state],
    "method": lambda one: 2.0 if one.state.startswith("w") else 3.0,
    "set": lambda one: (setattr(one, "state", one.state), WEIGHTS[one.state])[1],
    "pattern": by_pattern,
    "with another": with_another,
    "longer": made_longer,
    "in a loop": in_a_loop,
}


@pytest.mark.parametrize("name", READS)
def test_texts_are_asked_for_while_the_loop_runs(name):
    read = READS[name]

    def fun(p, x):
        one, s = Looked(), p[0]
        for v in x:
            one.turn(v * p[1])
            s = s * 0.9 + read(one) * v * p[1]
        return s

    right(fun, None if name == "length" else 3, calls=5, length=16)


class Held:
    """What is held until it falls: a flag, a number, a text, nothing, or a method."""

    def __init__(self, off, on):
        self.now, self.off, self.on = off, off, on

    def __call__(self, s):
        if self.now == self.off and s > 0.6:
            self.now = self.on
        elif self.now == self.on and s < 0.1:
            self.now = self.off
        return 0.5 if self.now == self.on else 1.0


class Acting:
    def __init__(self):
        self.act = self.free

    def free(self, s):
        if s > 0.6:
            self.act = self.held
            return 0.5
        return 1.0

    def held(self, s):
        if s < 0.1:
            self.act = self.free
            return 1.0
        return 0.5

    def __call__(self, s):
        return self.act(s)


HOLDS = {
    "flag": lambda: Held(False, True), "int": lambda: Held(0, 1), "float": lambda: Held(0.0, 2.5),
    "text": lambda: Held("a", "b"), "nothing": lambda: Held(None, "b"), "member": lambda: Held(Mode.OFF, Mode.ON),
    "method": Acting,
}  # fmt: skip


@pytest.mark.parametrize("name", HOLDS)
def test_what_is_not_left_in_the_first_calls(name):
    """Some calls never come back to the first state, others never leave it."""

    def fun(p, x):
        hold, s = HOLDS[name](), p[0]
        for v in x:
            s = s * 0.9 + 0.4 * v * p[1] * hold(s)
        return s

    right(fun, 6, calls=25, length=20, often=5)


class Table:
    """Between points, by bisection; how often it was left is counted."""

    def __init__(self, xs, ys):
        self.xs, self.ys, self.out = [*xs], ys, 0

    def __call__(self, x):
        i = bisect.bisect_right(self.xs, x)
        if i == 0 or i == len(self.xs):
            self.out += 1
            return self.ys[0 if i == 0 else -1]
        share = (x - self.xs[i - 1]) / (self.xs[i] - self.xs[i - 1])
        return (1 - share) * self.ys[i - 1] + share * self.ys[i]


class Gears:
    ratios = (3.5, 2.1, 1.4, 1.0)

    def __init__(self):
        self.gear = self.shifts = 0

    def shift(self, speed):
        turns = speed * self.ratios[self.gear]
        if turns > 2.0 and self.gear < len(self.ratios) - 1:
            self.gear += 1
            self.shifts += 1
        elif turns < 0.8 and self.gear > 0:
            self.gear -= 1
            self.shifts += 1


DONE = {"shifts": 0}


def drive(p, x):
    table, gears, speed = (
        Table([-2.0, -1.0, -0.3, 0.2, 0.9, 2.0], np.array([0.1, 0.5, 0.2, 0.9, 0.4, 0.3]) * p[0]),
        Gears(),
        0.3,
    )
    for v in x:
        gears.shift(speed)
        speed = max(speed + 0.2 * table(v + speed * p[1]) * gears.ratios[gears.gear] - 0.2 * speed, 0.05)
    DONE["shifts"] += gears.shifts
    return speed + 0.1 * table.out * p[1]


def test_counters_tables_and_gears_of_objects():
    derivative, often = value_and_grad(drive), 0
    for i in range(14):
        p, x = draws(i, 25)
        DONE["shifts"] = 0
        value, gradient = derivative(p, x)
        shifts, DONE["shifts"] = DONE["shifts"], 0
        np.testing.assert_allclose(value, drive(p, x), rtol=1e-11, atol=1e-13)
        assert shifts == DONE["shifts"]
        often += shifts
        (expected,) = slopes(lambda q, x=x: drive(q, x), (p,))
        np.testing.assert_allclose(gradient, expected, rtol=2e-5, atol=2e-6)
    assert often
    assert derivative.cache_info().hits


# -- what comes with such objects ----------------------------------------------------------------------------------


def history(p, x):
    tank = Tank()
    for v in x:
        tank.noted(v * p[1])
    return sum(tank.log) + sum([row["s"] * row["v"] for row in tank.rows])


class Counting(Tank):
    def __init__(self):
        super().__init__()
        self.n, self.pairs = 0, []

    def step(self, v):
        self.n += 1
        self.s = self.s + v if v > 0.3 else self.s * 0.9
        self.pairs.append((self.n, self.s))


def counted(p, x):
    one = Counting()
    for v in x:
        one.step(v * p[1])
    return sum([n * s for n, s in one.pairs])


@dataclass
class Path:
    y: np.ndarray = field(default_factory=lambda: np.zeros(2))
    path: list = field(default_factory=list)

    def step(self, v, p):
        self.y = self.y + np.array([v, 1.0]) * p if v > 0.3 else self.y * 0.9
        self.path.append(self.y.copy())


def arrays(p, x):
    """An array in an object is plain until an iteration makes it a traced one."""
    one = Path()
    for v in x:
        one.step(v, p)
    return np.sum(np.array(one.path) ** 2)


class Several:
    def __init__(self, p):
        self.parts, self.p, self.t = [Tank(), Tank(), Tank()], p, []

    def step(self, v):
        for j, part in enumerate(self.parts):
            part.s = part.s + v * (j + 1) if v > 0 else part.s * self.p[1]
            part.rows.append({"s": part.s, "v": v})
        self.t.append(sum([part.s for part in self.parts]))


def parts(p, x):
    several = Several(p)
    for v in x:
        several.step(v)
    return sum(several.t) + several.parts[1].rows[-1]["s"]


def counts(p, x):
    kinds, s, kind = [], p[0], "a"
    for v in x:
        if v > 0.3:
            kind = "b"
        elif v < -0.3:
            kind = "a"
        kinds.append(kind)
        s = s * 0.9 + (v * p[1] if kind == "b" else 0.1)
    return s * kinds.count("b") + kinds.count("c")


@pytest.mark.parametrize("length", [12, 45])
@pytest.mark.parametrize(("fun", "most"), [(history, 5), (counted, 5), (arrays, 4), (parts, 4), (counts, 3)])
def test_histories_of_short_and_long_loops(fun, most, length):
    right(fun, most, length=length)


def more(n, v):
    return n + 1 if v > 0 else n


def upward(p, x):
    n, s = 0, p[0]
    for v in x:
        n = more(n, v)
        s = s * 0.9 + v * p[1] / (1 + n)
    return s * n


def test_counts_that_calls_give():
    right(upward, 4)


def gears(p, x):
    gear, speed, ratios = 0, 0.3, (3.0, 2.0, 1.0)
    for v in x:
        if speed * ratios[gear] > 1.0 and gear < 2:
            gear += 1
        elif speed * ratios[gear] < 0.7:
            gear = max(gear - 1, 0)
        speed = speed * 0.9 + 0.3 * ratios[gear] * abs(v) * p[1]
    return speed


def test_short_tuples_are_read_by_place():
    right(gears, 6)


class Box:
    def __init__(self, y):
        self.y, self.on = y, False

    def factor(self, s):
        if not self.on and s > 0.6:
            self.on = True
        elif self.on and s < 0.1:
            self.on = False
        return 0.5 if self.on else self.y


def either(now, v, box):
    if now == "none":
        return box if v > 0.3 else now
    return "none" if v < -0.9 else now


def objects(p, x):
    box, now, s = Box(p[0]), "none", p[0]
    for v in x:
        now = either(now, v, box)
        s = s * 0.95 if now == "none" else s * 0.9 + 0.4 * v * p[1] * now.factor(s)
    return s


def hysteresis():
    on = False

    def factor(s):
        nonlocal on
        if not on and s > 0.6:
            on = True
        elif on and s < 0.1:
            on = False
        return 0.5 if on else 1.0

    return factor


def closures(p, x):
    first, second, s = hysteresis(), hysteresis(), p[0]
    factor = first
    for v in x:
        factor = second if v > 0.9 else first if v < -0.9 else factor
        s = s * 0.9 + 0.4 * v * p[1] * factor(s)
    return s


@pytest.mark.parametrize("fun", [objects, closures])
def test_what_a_state_holds_is_kept(fun):
    right(fun, None, calls=16)


def climate():
    season, seen, mean, best = "dry", 0, 0.0, None

    def add(v):
        nonlocal season, seen, mean, best
        if season == "dry" and v > 0.6:
            season = "wet"
        elif season == "wet" and v < -0.6:
            season = "late" if seen > 6 else "dry"
        elif season == "late" and v > 1.0:
            season = "dry"
        seen += v > 0
        mean = mean * 0.9 + v
        if best is None or v > best:
            best = v

    def rate(s):
        return {"dry": 0.9, "wet": 0.5, "late": 0.2}[season] * s + mean * 0.1

    def label():
        return f"{season}-{seen % 2}"

    return add, rate, label, lambda: best


def shared(p, x):
    add, rate, label, best = climate()
    s = p[0]
    for v in x:
        add(v * p[1])
        s = rate(s) * (0.8 if label() == "wet-1" else 1.0)
    return s * best()


def turning():
    state = "a"

    def factor(s):
        nonlocal state
        if state == "a" and s > 0.6:
            state = "b"
        elif state == "b" and s < 0.1:
            state = "a"
        return 1.0 if state == "a" else 0.25

    return factor


def turned(p, x):
    factor, s = turning(), p[0]
    for v in x:
        s = s * 0.9 + 0.4 * v * p[1] * factor(s)
    return s


def locked(p, x):
    factor, s = hysteresis(), p[0]
    for v in x:
        s = s * 0.9 + 0.4 * v * p[1] * factor(s)
    return s


@pytest.mark.parametrize("length", [8, 30, 45])
@pytest.mark.parametrize(("fun", "most"), [(shared, None), (turned, 5), (locked, 4)])
def test_variables_that_functions_share_go_round(fun, most, length):
    right(fun, most, length=length)
