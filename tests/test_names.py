"""Parameters may have any name: also one that generated code has a use for."""

import builtins
import keyword
import linecache
import re
import string

import numpy as np

from symgrad import export, grad, runtime, value_and_grad

TEXT = """
import numpy as xp
POWER, RATE, MODE, TABLE = 3, 0.5, "a", {"k": 2.0, "l": xp.array([1.0, 2.0, 3.0])}
def fun(ONE, TWO, THREE=2, *, FOUR=1.5):
    if ONE > 0.2:
        made = ONE**POWER * RATE
    else:
        made = xp.exp(ONE) * THREE
    for i in range(THREE):
        made = made + xp.sin(ONE * (i + 1)) * FOUR
    return made * xp.sum(xp.tanh(TWO * TABLE["l"]) * TABLE["k"]) * len(MODE)
"""
PLACES = ("ONE", "TWO", "THREE", "FOUR")
KEPT = {"xp", "POWER", "RATE", "MODE", "TABLE", "range", "len", "made", "i", *keyword.kwlist}


def made(names):
    """The function with these parameters, from a file of its own."""
    chosen = dict(zip(PLACES, names, strict=True))
    text = re.sub(r"[A-Za-z_]\w*", lambda word: chosen.get(word[0], word[0]), TEXT)
    filename = f"<parameters {' '.join(names)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    space = {}
    exec(compile(text, filename, "exec"), space)
    return space["fun"]


def results(names):
    derivative, b = value_and_grad(made(names), argnums=(0, 1)), np.array([0.1, -0.5, 2.0])
    calls = [(a, b) for a in (0.5, 0.1, 0.7) * 3] + [(0.5, b, 3)] * 2
    found = [derivative(*args) for args in calls] + [derivative(0.5, **{names[1]: b, names[3]: 0.7}) for _ in range(3)]
    assert "dynamic" not in derivative.explain()
    return [number for value, slopes in found for number in (value, slopes[0], *slopes[1])]


def test_parameters_of_any_name():
    before = {*linecache.cache}
    expected = results(PLACES)
    words = {*dir(runtime), *filter(str.islower, dir(builtins)), *string.ascii_lowercase, "self", "args", "_"}
    for filename in {*linecache.cache} - before:  # of what was generated
        words.update(re.findall(r"[A-Za-z_]\w*", "".join(linecache.cache[filename][2])))
    words = sorted(word for word in words - KEPT if word.isidentifier() and not word.startswith("__"))
    assert {"_same", "_miss", "sin"} <= {*words}
    outside = ("j", "k", "l", "l_0")  # a default is left out, and something else from outside has its name
    for names in [outside, *zip(*[iter([*words, *PLACES])] * 4, strict=False)]:
        np.testing.assert_allclose(results(names), expected, rtol=1e-12, err_msg=str(names))


def test_arguments_named_as_others():
    def first(args_0, *args):
        return args_0 * 2 + sum(arg * (i + 1) for i, arg in enumerate(args))

    def second(x, /, **more):
        return x * more["x"]

    def third(min, min_, *, t=2.0):
        return min * min_**2 * t

    for fun, args, kwargs, expected in (
        (first, (1.0, 2.0, 3.0), {}, (10.0, 2.0)),
        (second, (2.0,), {"x": 4.0}, (8.0, 4.0)),
        (third, (3.0, 2.0), {}, (24.0, 8.0)),
    ):
        derivative = value_and_grad(fun)
        for _ in range(4):
            assert derivative(*args, **kwargs) == expected


def test_values_called_underscore():
    """As generated loops call what they do not read."""

    def local(x):
        _ = np.sin(x)
        y = x
        for _i in range(12):
            y = np.sin(y * x) + _
        return np.sum(y * _)

    def parameter(_):
        y = _
        for _i in range(12):
            y = np.sin(y * _) + _
        return np.sum(y * _)

    x = np.linspace(0.2, 0.9, 100)
    for fun in (local, parameter):
        derivative, expected = grad(fun), grad(fun, mode="dynamic")(x)
        for _ in range(3):
            np.testing.assert_allclose(derivative(x), expected, rtol=1e-12)
        assert "dynamic" not in derivative.explain()
        space = {}
        exec(export(derivative, x), space)
        np.testing.assert_allclose(space[f"grad_{fun.__name__}"](x), expected, rtol=1e-12)
