"""Texts, and members of an ``Enum``, that stand for states: they are numbers in the function that is traced, where nothing else
is done with them; ``match`` statements on them are ``if``s."""

import ast
import enum

import numpy as np
import pytest
from agreement import right_at

from symgrad import value_and_grad
from symgrad.source.matches import as_ifs
from symgrad.source.texts import numbered


def machine(x):
    state, energy = "idle", 0.0
    for v in x:
        if state == "idle":
            if v > 0.5:
                state = "run"
        elif state == "run":
            energy = energy + v * v
            if v < -0.5:
                state = "stop"
        else:
            energy = energy * 0.9
            if v > 0:
                state = "idle"
    return energy + x[0]


def last(x):
    total = 0.0
    for v in x:
        if v > 0:
            kind = "up"
            total = total + v
        else:
            kind = "down"
            total = total + 2 * v
    return total if kind == "up" else -total


def turns(x):
    total, before = 0.0, None
    for v in x:
        side = "high" if v > 0.3 else "low"
        if before is not None and side != before:
            total = total + v * v
        before = side
    return total + x[0]


def among(x):
    total = 0.0
    mode = other = "a"
    for v in x:
        if mode in ("a", "b") and v > 0:
            total += v
        elif mode not in ["a", other]:
            total -= v * v
        if v > 1:
            mode = "c"
        elif v < -1:
            mode = "b"
    return total


def regime(x):
    speed = abs(x[0])
    if speed < 0.3:
        kind, factor = "laminar", 2.0
    elif speed < 0.8:
        kind, factor = "transition", x[1]
    else:
        kind, factor = "turbulent", 0.5
    if kind == "laminar":
        factor = factor * x[2]
    if x[3] > 0:
        factor = factor + x[3] ** 2
    if kind != "laminar" and x[4] > 0:
        factor = factor * 1.1
    if x[5] > 0:
        factor = factor * x[5]
    return factor * x[6]


def matched(x):
    state, energy = "idle", 0.0
    for v in x:
        match state:
            case "idle" | "stop" if v > 0.5:
                state = "run"
            case "run":
                energy = energy + v * v
                if v < -0.5:
                    state = "stop"
            case _:
                energy = energy * 0.9
    return energy + x[0]


class Phase(enum.Enum):
    IDLE, RUN, STOP = range(3)
    REST = 2


class Gear(enum.IntEnum):
    LOW, HIGH = 1, 2


class Side(enum.StrEnum):
    UP, DOWN = "up", "down"


def with_members(x):
    phase, energy = Phase.IDLE, 0.0
    for v in x:
        match phase:
            case Phase.IDLE:
                phase = Phase.RUN if v > 0.3 else phase
            case Phase.RUN:
                energy = energy + v * v
                if v < -0.5:
                    phase = Phase.IDLE
            case other:
                energy = energy * 0.9 if other is Phase.STOP else 100.0
                if v > 0:
                    phase = Phase.IDLE
    return energy + x[0] if phase is not Phase.STOP else energy


def with_members_that_are_texts(x):
    side, gear, total = "up", Gear.LOW, 0.0
    for v in x:
        if side == Side.UP and v < 0:
            side, total = Side.DOWN, total + v * v
        elif side == "down":
            side, total = "up", total - v
        gear = Gear.HIGH if gear == Gear.LOW and v > 0.2 else Gear.LOW
        if gear != Gear.HIGH:
            total = total * 0.9
    return total + x[0]


OFF, ON = 0, 1


class Level:
    LOW, HIGH = 3, 5


def with_numbers(x):
    state, level, total = OFF, Level.LOW, 0.0
    for v in x:
        if state == OFF:
            state = ON if v > 0.2 else state
        elif state == 1:
            total = total + level * v * v
            if v < -0.3:
                state = OFF
        level = Level.HIGH if total > 4 else Level.LOW
    return total * (state + level)


STATES = [machine, last, turns, among, regime, matched, with_members, with_members_that_are_texts, with_numbers]


@pytest.mark.parametrize("fun", STATES)
def test_states_in_loops(fun):
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    rng = np.random.default_rng(0)
    for k in range(80):
        x = rng.normal(size=8)
        x = np.abs(x) if k < 3 else -np.abs(x) if k < 6 else x
        value, slope = derivative(x)
        assert np.isclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-9, atol=1e-12)
    assert derivative.cache_info().misses < 25


def test_states_whose_numbers_change(monkeypatch):
    derivative, x = value_and_grad(with_numbers), np.cos(np.arange(12.0))
    for change in [{}, {"OFF": 1, "ON": 0}, {"ON": 7}, {"OFF": 2.5}]:
        for name, value in change.items():
            monkeypatch.setitem(globals(), name, value)
        for factor in (1.0, -1.0, 2.0, 0.3):
            assert derivative(factor * x)[0] == pytest.approx(with_numbers(factor * x), rel=1e-12)
    monkeypatch.setattr(Level, "HIGH", 50)
    assert derivative(x)[0] == pytest.approx(with_numbers(x), rel=1e-12)


class Equal(enum.Enum):
    A, B = 0, 1

    def __eq__(self, other):
        return self.value == other


def equal_to_numbers(x):
    state, total = Equal.A, 0.0
    for v in x:
        if state == 0:
            total, state = total + v * v, Equal.B
        elif v > 0:
            state = Equal.A
    return total


def by_identity(x):
    """A text is not the member that is equal to it."""
    side, total = "up", 0.0
    for v in x:
        if side is Side.UP:
            total = total + v * v
        side = Side.UP if v > 0 else "up"
    return total


@pytest.mark.parametrize("fun", [equal_to_numbers, by_identity])
def test_members_that_are_equal_to_other_things(fun):
    derivative = value_and_grad(fun)
    for x in np.random.default_rng(1).normal(size=(8, 6)):
        assert derivative(x)[0] == pytest.approx(fun(x), rel=1e-12)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_names_in_patterns(mode):
    """In dynamic mode, they were an error."""

    def fun(x, phase, point):
        match phase:
            case Phase.IDLE:
                x = x * x
            case enum.Enum():
                x = x * 3.0
        match point:
            case [Phase.RUN, float(scale)] if scale > 0:
                return x * scale
            case _:
                return x

    derivative = value_and_grad(fun, mode=mode)
    for phase in (Phase.IDLE, Phase.RUN, Phase.IDLE):
        for point in ([Phase.RUN, 2.0], [Phase.RUN, -1.0], [Phase.STOP, 2.0]):
            assert derivative(1.5, phase, point)[0] == fun(1.5, phase, point)


def rewritten(body):
    tree = ast.parse("def f(x):\n" + "\n".join(f"    {line}" for line in body.split("\n")))
    return (
        "\n".join(ast.unparse(numbered(as_ifs(tree.body[0]), {})).split("\n")[1:])
        .replace("    ", "", 1)
        .replace("\n    ", "\n")
    )


def test_what_is_numbered():
    assert rewritten("s = 'a'\nif x:\n    s = 'b'\nreturn x if s == 'b' else 0") == (
        "s = 0\nif x:\n    s = 1\nreturn x if s == 1 else 0"
    )
    assert rewritten("s = None\nt = 'a' if x else s\nreturn s is None or t != 'c'") == (
        "s = 0\nt = 1 if x else s\nreturn s == 0 or t != 2"
    )
    assert rewritten("s = 'a' if x else 'b'\nreturn x[s][1] + x.y.get(s, 0)") == (
        "s = 0 if x else 1\nreturn (x['a'] if s == 0 else x['b'])[1] + (x.y.get('a', 0) if s == 0 else x.y.get('b', 0))"
    )
    assert rewritten("s, t = 'a', 'b'\nif x:\n    s = t\nreturn x[s][t]").endswith(
        "return (x['a'] if s == 0 else x['b'])['a'] if t == 0 else (x['a'] if s == 0 else x['b'])['b']"
    )


def test_matches():
    assert rewritten("match x[0]:\n    case -1 | 2 if x:\n        return 1\n    case None:\n        return 2") == (
        "subject = x[0]\nif (subject == -1 or subject == 2) and x:\n    return 1\nelif subject is None:\n    return 2"
    )
    assert rewritten("match x:\n    case c.A:\n        return 1\n    case y:\n        return y") == (
        "if x == c.A:\n    return 1\nelse:\n    y = x\n    return y"
    )


@pytest.mark.parametrize(
    "body",
    [
        "s = 'a'\nreturn s",
        "s = 'a'\nprint(s)\nreturn s == 'b'",
        "s = 'a'\nreturn x(s)",
        "s = 'a'\nreturn x[s, 0]",
        "s = 'a'\nreturn x[0](1)[s]",
        "s = 'a'\nx[s] = 1\nreturn s == 'b'",
        "s = 'a'\nx[s] += 1\nreturn s == 'b'",
        "s = 'a'\nreturn x.get(0, s)",
        "s = 'a'\ns += 'b'\nreturn s == 'ab'",
        "s = 'a'\nreturn 'a' in s",
        "s = 'a'\nreturn s < 'b'",
        "s = 'a'\ns = x\nreturn s == 'b'",
        "s = t = 'a'\nreturn (s == 'b', t)",
        "s = 'a'\nfor s in x:\n    pass\nreturn s == 'b'",
        "s = 'a'\ng = lambda: s\nreturn s == 'b'",
        "s = 'a'\ntry:\n    x()\nexcept ValueError as s:\n    pass\nreturn s == 'b'",
        "s = 'a'\nimport s\nreturn s == 'b'",
        "s = 'a'\nreturn s is 'b'",
        "s = 'a'\nreturn s == x",
        "s = 'a'\ns: str = 'b'\nreturn s == 'b'",
        "s = 'a'\nif (s := 'b') == 'b':\n    pass\nreturn s == 'b'",
        "s = 'a'\nreturn locals() if s == 'a' else 0",
        "global s\ns = 'a'\nreturn s == 'b'",
        "x = 'a'\nreturn x == 'b'",
        "s = None\nreturn s is None",
        "s = 'a'\nmatch s:\n    case 'a':\n        return 1\n    case [y]:\n        return y\nreturn s == 'b'",
        "s = 'a'\nmatch s:\n    case y if y > x:\n        return 1\nreturn s == 'b'",
        "s = 'a'\ndel s\nreturn s == 'b'",
        "s, t = x\nif s == 'a':\n    s = 'b'\nreturn 0",
        "s = 'a'\nreturn f'{s}' if s == 'a' else 0",
        "y = ['a' if v > 0 else 'b' for v in x]\nreturn y",
        "y = ['a' if v > 0 else v for v in x]\nreturn [s == 'a' for s in y]",
        "y = ['a']\ny.append(x)\nreturn [s == 'a' for s in y]",
        "y = ['a']\ny.extend(x)\nreturn [s == 'a' for s in y]",
        "y = ['a']\nreturn [len(s) for s in y]",
        "y = ['a']\nreturn [x(s) for s in y if s == 'a']",
        "y = ['ab']\nreturn [s == 'a' for s, t in y]",
        "y = ['a']\nfor s in y:\n    s = x\nreturn s == 'a'",
        "y = ['a', 'b']\nreturn y[0] < y[1]",
        "y = ['a']\nreturn y == ['a']",
        "y = ['a']\nreturn [y[0] for k in x]",
        "y = z = ['a']\nreturn [s == 'a' for s in y]",
        "y = ['a']\ny[0] = 'b'\nreturn y[0] == 'a'",
        "y = ['a']\nlen = x\nreturn len(y)",
        "y = ['a']\ng = lambda: y\nreturn [s == 'a' for s in y]",
    ],
)
def test_what_stays(body):
    assert rewritten(body) == body


def kinds_beside(x):
    kinds, s = ["up" if v > 0 else "down" for v in x], 0.0
    for kind, v in zip(kinds, x, strict=True):
        if kind == "up":
            s += v
        else:
            s -= 0.5 * v
    return s


def kinds_appended(x):
    kinds = []
    for v in x:
        if v > 1:
            kinds.append("high")
        elif v > 0:
            kinds.append("low")
        else:
            kinds.append("none")
    s = 0.0
    for k, kind in enumerate(kinds):
        if kind == "high":
            s += x[k] ** 2
        elif kind in ("low", "other"):
            s += x[k]
    return s


def kinds_at_places(x):
    kinds, n, s = ["up" if v > 0 else "down" for v in x], 0, 0.0
    for k in range(1, len(x)):
        if kinds[k] != kinds[k - 1]:
            n += 1
            s += x[k] * n
    return s


def neighbouring_kinds(x):
    kinds, s = [None if v > 0 else "down" for v in x], 0.0
    for a, b in zip(kinds, kinds[1:], strict=False):  # noqa: RUF007
        if a is None and b != a:
            s += 1.0
    return s * x[0]


def members(x):
    kinds = [Phase.IDLE if v > 0.3 else Phase.RUN for v in x]
    return sum(v * v for kind, v in zip(kinds, x, strict=True) if kind is Phase.IDLE)


def two_lists(x):
    kinds, others, s = ["a" if v > 0 else "b" for v in x], ["b" if v > 1 else "c" for v in x], 0.0
    for a, b, v in zip(kinds, others, x, strict=True):
        if a == b:
            s += v
        if a == "a" and b != "c":
            s += 2 * v
    return s


def shown(x):
    kinds = ["up" if v > 0 else "down" for v in x]
    return sum(v * len(kind) for kind, v in zip(kinds, x, strict=True) if kind == "up")


def counted(x):
    kinds = ["up" if v > 0 else "down" for v in x]
    return x[0] * kinds.count("up") + x[1] * ("none" in kinds) + x[2] * len(kinds)


def states_kept(x):
    kinds, state = [], "idle"
    for v in x:
        if v > 1:
            state = "run"
        elif v < -1:
            state = "idle"
        kinds.append(state)
    s = 0.0
    for kind, v in zip(kinds, x, strict=True):
        if kind == "run":
            s += v
    return s


LISTS = states_kept, kinds_beside, kinds_appended, kinds_at_places, neighbouring_kinds, members, two_lists


@pytest.mark.parametrize("fun", [*LISTS, shown, counted])
def test_texts_in_lists(fun):
    rng, derivative = np.random.default_rng(0), value_and_grad(fun)
    for _ in range(20):
        x = rng.standard_normal(20)
        value, slope = derivative(x)
        expected, other = value_and_grad(fun, mode="dynamic")(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-12, atol=1e-12)
    if fun in LISTS:
        assert derivative.cache_info().misses <= 6


RATES = {"dry": 0.1, "wet": 0.7}
PARAMETERS = {Phase.IDLE: {"a": 0.1, "b": 0.3}, Phase.RUN: {"a": 0.6, "b": -0.3}}
STEPS = {"dry": lambda s, v: s * 0.9 + v, "wet": lambda s, v: s * 0.5 + v**2}


def by_rates(x):
    state, s, out = "dry", x[0], 0.0
    for v in x:
        s = s + v * RATES[state]
        if s > 0.5:
            state = "wet"
        elif s < 0:
            state = "dry"
        out += s**2
    return out


def by_members(x):
    phase, s, out = Phase.IDLE, x[0], 0.0
    for v in x:
        s = s * PARAMETERS[phase]["b"] + v * PARAMETERS[phase]["a"]
        phase = Phase.RUN if s > 0.1 else Phase.IDLE
        out += s**2
    return out


def by_rows(x):
    phase, s, out = Phase.IDLE, x[0], 0.0
    for v in x:
        row = PARAMETERS[phase]
        s = s * row["b"] + v * row["a"]
        phase = Phase.RUN if s > 0.1 else Phase.IDLE
        out += s**2 + row["a"]
    return out


def by_functions_in_rows(x):
    state, s = "dry", x[0]
    for v in x:
        step = STEPS[state]
        s = step(s, v) * 0.5
        if s > 0.5:
            state = "wet"
        elif s < 0:
            state = "dry"
        s = step(s, 0.1)
    return s


def by_traced_rates(x):
    rates = {None: x[1], "up": x[2] * 2, "down": 0.3}
    state, s, out = None, x[0], 0.0
    for v in x:
        s = 0.5 * s + v * rates.get(state, 1.0)
        if s > 0.4:
            state = "up"
        elif s < 0:
            state = "down"
        else:
            state = None
        out += s**2
    return out


def by_steps(x):
    state, s, out, k = "dry", x[0], 0.0, 0
    while k < 200 and out < 20:
        s = STEPS[state](s, x[k % len(x)])
        state = "wet" if s > 0.5 else "dry"
        out, k = out + np.abs(s), k + 1
    return out


@pytest.mark.parametrize("fun", [by_rates, by_members, by_rows, by_functions_in_rows, by_traced_rates, by_steps])
def test_what_dicts_have_for_texts(fun):
    derivative = value_and_grad(fun)
    for seed in range(12):
        x = np.random.default_rng(seed).normal(size=40)
        right_at(derivative, fun, x, value=(5e-13, 5e-13), slope=(1e-9, 1e-12))
    assert derivative.cache_info().misses <= 5


def test_texts_that_a_dict_does_not_have():
    def fun(x):
        state, s = "dry", x[0]
        for v in x:
            s = s + v * RATES[state]
            state = "lost" if s < -1 else "wet" if s > 0.5 else "dry"
        return s

    derivative = value_and_grad(fun)
    for seed in range(12):
        x = np.random.default_rng(seed).normal(size=40)
        try:
            expected = fun(x)
        except KeyError:
            with pytest.raises(KeyError, match="lost"):
                derivative(x)
        else:
            assert derivative(x)[0] == pytest.approx(expected, rel=1e-12)
