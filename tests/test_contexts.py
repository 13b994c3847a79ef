"""Loops that decide are code wherever they stand: in methods, in a ``with`` or a ``try``, in functions of functions."""

import itertools
import linecache
import textwrap

import numpy as np
import pytest

from symgrad import value_and_grad

BODIES = {
    "decides": """
        r = 0.0
        for t in x:
            if t > 0:
                r += t * t
            else:
                r -= t
    """,
    "appends": """
        out = []
        for t in x:
            if t > 0:
                out.append(t ** 2)
        r = sum(out) + x[0]
    """,
    "writes": """
        y = np.zeros(len(x))
        for i in range(len(x)):
            if x[i] > 0:
                y[i] = x[i] ** 2
        r = np.sum(y * np.arange(len(x)))
    """,
    "pairs": """
        r = 0.0
        for i in range(len(x)):
            for j in range(i):
                d = x[i] - x[j]
                if abs(d) < 1:
                    r += d * d
    """,
    "comprehension": """
        r = sum([t * t if t > 0 else -t for t in x]) + max(abs(t) for t in x)
    """,
    "resets": """
        v, best = x[0], 0.0
        for t in x:
            v = v * 0.5 + t
            if v < 0:
                v = 0.0
            best = max(best, v)
        r = best + v
    """,
}
CONTEXTS = {
    "function": "def fun(x):\n{1}\n    return r",
    "method": "class C:\n    def m(self, x):\n{2}\n        return r\nfun = C().m",
    "static method": "class C:\n    @staticmethod\n    def m(x):\n{2}\n        return r\nfun = C.m",
    "class method": "class C:\n    @classmethod\n    def m(cls, x):\n{2}\n        return r\nfun = C.m",
    "object that is called": "class C:\n    def __call__(self, x):\n{2}\n        return r\nfun = C()",
    "property": """
class C:
    def __init__(self, x):
        self.x = x
    @property
    def value(self):
        x = self.x
{2}
        return r
def fun(x):
    return C(x).value""",
    "beside super": """
class B:
    def scale(self):
        return 2.0
class C(B):
    def m(self, x):
        scale = super().scale()
{2}
        return r * scale
fun = C().m""",
    "closure": "def make(c):\n    def inner(x):\n{2}\n        return r * c\n    return inner\nfun = make(2.0)",
    "function in a function": """
def fun(x):
    def inner():
        nonlocal scale
        scale = 1.5
{2}
        return r * scale
    scale = 1.0
    return inner()""",
    "with": "def fun(x):\n    with np.errstate(all='ignore'):\n{2}\n    return r",
    "try": "def fun(x):\n    try:\n{2}\n    except ValueError:\n        return x[0]\n    return r",
    "finally": "def fun(x):\n    try:\n{2}\n    finally:\n        scale = 2.0\n    return r * scale",
    "under an if": "def fun(x):\n    r = 0.0\n    if x[0] > -100:\n{2}\n    return r",
    "in a loop": """
def fun(x):
    total = 0.0
    for k in range(3):
{2}
        total = total + r * (k + 1)
    return total""",
    "beside a global": "SCALE = 2.0\ndef fun(x):\n    global UNUSED\n{1}\n    return r * SCALE",
    "generator": "def parts(x):\n{1}\n    yield r\n    yield r * 2\ndef fun(x):\n    return sum(parts(x))",
    "match": """
def fun(x, kind="a"):
    match kind:
        case "a":
{3}
        case _:
            r = 0.0
    return r""",
    "called twice": "def part(x):\n{1}\n    return r\ndef fun(x):\n    return part(x) + part(x**2 - 0.5)",
}


def written(context, body):
    """The function of a source that Python can find again."""
    source = CONTEXTS[context]
    for depth in (1, 2, 3):
        source = source.replace(f"{{{depth}}}", textwrap.indent(textwrap.dedent(BODIES[body]).strip(), "    " * depth))
    name, space = f"<{context}, {body}>", {"np": np, "__name__": "a_module"}
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), space)
    return space["fun"]


@pytest.mark.parametrize(("context", "body"), [*itertools.product(CONTEXTS, BODIES)])
def test_loops_that_decide_are_code_wherever_they_stand(context, body):
    fun = written(context, body)
    derivative, dynamic = value_and_grad(fun), value_and_grad(fun, mode="dynamic")
    for k, x in enumerate(np.random.default_rng(7).normal(size=(20, 8))):
        value, slope = derivative(x)
        assert value == pytest.approx(fun(x), rel=1e-12)
        if k % 4 == 3:
            np.testing.assert_allclose(slope, dynamic(x)[1], rtol=1e-10, atol=1e-12)
    assert derivative.cache_info().misses <= 10
