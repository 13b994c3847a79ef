"""What iterations need not make anew: buffers that are dead at their ends, and views of arrays that stay."""

import random
import re
from collections.abc import Iterator

import numpy as np
import pytest
from agreement import agrees_with_dynamic, few, program_of
from hypothesis import given
from hypothesis import strategies as st

from symgrad import grad, value_and_grad

RNG = np.random.default_rng(0)
K, U, V = 0.5 + RNG.random(149), RNG.normal(size=150), RNG.normal(size=150)


def heat(k, u, target):
    u = u.copy()
    for _ in range(30):
        flux = k * (u[1:] - u[:-1])
        u[1:-1] += 0.2 * (flux[1:] - flux[:-1])
    return np.sum((u - target) ** 2)


def burgers(nu, u, target):
    u = u.copy()
    for _ in range(30):
        un = u.copy()
        u[1:-1] = un[1:-1] - 0.02 * un[1:-1] * (un[2:] - un[:-2]) + nu * (un[2:] - 2 * un[1:-1] + un[:-2])
        u[0] = 0.0
        u[-1] = 0.0
    return np.sum((u - target) ** 2)


def waves(c, e, h):
    e, h = e.copy(), h[1:].copy()
    for t in range(30):
        h += c * (e[1:] - e[:-1])
        e[1:-1] += 0.4 * (h[1:] - h[:-1])
        e[5] += np.sin(0.3 * t)
    return np.sum(e**2) + np.sum(h**3)


def kept(k, u, target):
    """What is put into a list is another array in each iteration."""
    seen = []
    for _ in range(30):
        flux = k * (u[1:] - u[:-1])
        seen.append(np.sin(flux))
        u = u.copy()
        u[:-1] += 0.1 * seen[-1]
        if len(seen) > 3:
            u[1:] -= 0.1 * seen[-3]
    return np.sum((u - target) ** 2) + sum(np.sum(one[::2]) for one in seen)


def shown(k, u, target):
    """What goes round is a view of what does, too, or it itself at times."""
    s, part, seen, old = 0.0, u[1:], [], target
    for _ in range(30):
        s = s + np.sum(part * k)
        if s > 0:
            old = u
        part = u[1:]
        seen.append(u[::3])
        u = 0.9 * u + 0.1 * np.sin(target)
        s = s + np.sum(part * old[1:])
    return s + sum(np.sum(one**2) for one in seen)


def left_alone(k, u, target):
    s = 0.0
    for _ in range(30):
        for i in range(4):
            s = s + u[i] * target[i]
        w = np.cos(u) + 1.0
        u = u + 0.1 * w
        s = s + np.sum(w * u)
    return s * k[0]


def turned(k, u, target):
    """What goes round is read before it becomes a view of what stays."""
    w = np.ones_like(u)
    for _ in range(30):
        u = np.sin(u * w)
        w[::-1] = target
    return np.sum(u * w) * k[0]


FUNCTIONS = [
    (heat, (K, U, V)),
    (burgers, (0.05, U, V)),
    (waves, (0.3, U, V)),
    (kept, (K, U, V)),
    (shown, (K, U, V)),
    (left_alone, (K, U, V)),
    (turned, (K, U, V)),
]


@pytest.mark.parametrize(("fun", "args"), FUNCTIONS)
def test_gives_what_the_function_gives(fun, args):
    derivative, dynamic = value_and_grad(fun, (0, 1, 2)), value_and_grad(fun, (0, 1, 2), mode="dynamic")
    for k in range(5):
        given_now = [arg * (1 + 0.1 * k) for arg in args]
        value, slopes = derivative(*given_now)
        np.testing.assert_allclose(value, fun(*given_now), rtol=1e-12)
        for found, wanted in zip(slopes, dynamic(*given_now)[1], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)
    assert derivative.cache_info().hits >= 2


def in_loops(text: str) -> str:
    """The lines of code that iterations run."""
    return "\n".join([line for line in text.splitlines() if line.startswith("        ") and "#" not in line])


@pytest.mark.parametrize(("fun", "args"), [FUNCTIONS[0], FUNCTIONS[2]])
def test_iterations_make_little_anew(fun, args):
    text = in_loops(grad(fun, (0, 1, 2)).source(*args, fast=True))
    assert len(re.findall(r"= (multiply|subtract|add|divide|negative)\(", text)) <= 1, text  # what is saved
    assert "negative" not in text


def test_views_of_an_array_that_stays_are_made_once():
    text = grad(heat, (0, 1, 2)).source(K, U, V, fast=True)
    assert not re.search(r"\bu\[|g_u\[", in_loops(text)), text
    assert "zeros" not in in_loops(text)


def test_multiples_of_one_cotangent_are_one():
    """Three of them are added to ``g_u``: by what is known before the loop."""
    text = in_loops(grad(burgers, (0, 1)).source(0.05, U, V, fast=True))
    _, backward = text.split("reversed", 1) if "reversed" in text else ("", text.split("g_u[", 1)[1])
    assert len(re.findall(r"\b(multiply|divide)\(", backward)) <= 3, backward


SLICES = ["[1:]", "[:-1]", "[2:]", "[:-2]", "[1:-1]", "[::2]", "[::-1]"]


def lines(rng: random.Random) -> Iterator[str]:
    """The lines of a loop over time, of small arrays that go round in place, or anew."""
    yield "def program(x, y, k):"
    yield "    u, v, s, seen = x.copy(), y * 1.0, 0.0, []"
    yield f"    for t in range({rng.choice([4, 12, 34])}):"
    names = ["u", "v", "k"]
    for at in range(rng.randint(2, 5)):
        a, b = rng.choice(names), rng.choice(names)
        if rng.random() < 0.4:
            one, other = rng.choice(
                [("[1:]", "[:-1]"), ("[2:]", "[:-2]"), ("[::2]", "[::2]"), ("", "[::-1]"), ("[1:-1]", "[2:]")]
            )
            size = {"[1:-1]": f"{b}[2:]"}.get(one, f"{b}{other}")
            yield (
                f"        d{at} = {a}{one} {rng.choice('+-*')} {size}"
                if one != "[1:-1]"
                else f"        d{at} = {a}[1:-1] * {b}[2:]"
            )
            cut = {"[1:]": "[1:]", "[2:]": "[1:-1]", "[::2]": "[::2]", "": "", "[1:-1]": "[2:]"}[one]
            into = rng.choice("uv")
            yield f"        {into}{cut or '[:]'} {rng.choice(['+=', '-=', '='])} 0.1 * np.sin(d{at})"
        elif rng.random() < 0.5:
            yield f"        e{at} = np.{rng.choice(['sin', 'tanh', 'cos'])}({a} * k) {rng.choice('+-')} {b}"
            names.append(f"e{at}")
        elif rng.random() < 0.2:  # another array altogether, of which this is a view
            into = rng.choice(["v[:]", "u[:]", "u[::-1]", "v[::-1]"])
            yield f"        {into} = {rng.choice('xyk')}{rng.choice(['[::-1]', '[:]', ''])}"
        else:
            yield f"        {rng.choice('uv')} = 0.5 * {a} + 0.1 * {b} * {rng.choice(names)}"
        if rng.random() < 0.2:
            yield f"        seen.append({rng.choice(names)}{rng.choice(['', '[1:]', '.copy()'])})"
    yield "        s = s + np.sum(u * v)"
    yield "    return s + np.sum(u * k) + sum([np.sum(one**2) for one in seen])"


@few
@given(st.integers(0, 2**40))
def test_random_steps(seed: int) -> None:
    n = 40 if seed % 2 else 7  # which is taken apart into numbers
    agrees_with_dynamic(program_of(lines(random.Random(seed)), {"x": (n,), "y": (n,), "k": (n,)}, seed), scaled=True, calls=4)
