"""Writes the generated pages: ``python docs/generate.py``. The tests compare them with what this writes now."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np

import symgrad
from symgrad.api import GraphView
from symgrad.compile import improve

HERE = Path(__file__).parent

# -- how it works --------------------------------------------------------------------------------------------------


def loss(w, x, y):
    r = np.tanh(x @ w) - y
    return r @ r


def how_it_works() -> str:
    """One function on its way through tracer, graph, reverse, simplify and emit, with the real intermediate results."""
    w, x, y = np.array([0.5, -1.0, 0.2]), np.sin(np.arange(600.0)).reshape(200, 3), np.cos(np.arange(200.0))
    gradient = symgrad.grad(loss)
    for _ in range(3):
        result = gradient(w, x, y)
    variant = gradient._compiler.ready(gradient._user, (w, x, y), {})
    simplified = improve(variant.program.confirmed(), frozenset())
    parts = {
        "function": inspect.getsource(loss).rstrip(),
        "traced": str(symgrad.graph(loss, w, x, y)),
        "reversed": str(gradient.graph(w, x, y)),
        "nodes": len(gradient.graph(w, x, y)),
        "simplified": str(GraphView(simplified.graph, simplified.roots())),
        "fewer": len(GraphView(simplified.graph, simplified.roots())),
        "source": gradient.source(w, x, y),
        "fast": gradient.source(w, x, y, fast=True),
        "explain": gradient.explain(),
        "result": np.array2string(result, precision=6),
        "beside": str(gradient.annotate(w, x, y)),
    }
    return HOW.format(**parts)


HOW = """# How symgrad works

This page follows one function through symgrad. All that is shown is real: the page is generated, and tested to be current.

```python
{function}
```

`gradient = symgrad.grad(loss)` is called with `w` of 3, `x` of 200 by 3 and `y` of 200 numbers.

## 1. The tracer records what NumPy is asked to do

`loss` runs once, with the real values. In place of `w`, `x` and `y` it gets *tracers*: objects that hold a value and answer
NumPy's protocols (`__array_ufunc__`, `__array_function__`), operators and methods. Each step computes its value at once, so
Python's `if` and `for` just work, and is written down as a *node* of a *graph*: an operation, the nodes that it takes, and
what is known of its result.

```text
{traced}
```

Nodes are interned: asking for the same operation on the same nodes gives the same node, so nothing is there twice.

## 2. Reverse mode goes back through the graph

Each operation has one rule: how the derivative by its result becomes the derivative by its arguments. `reverse` starts with 1
at the output and applies the rules from the end to the beginning. The rules are written in NumPy, so what they do is recorded
in the same graph ({nodes} nodes now); `identity` marks what the derivative is taken by.

```text
{reversed}
```

## 3. Simplification

Rewriting rules and a few passes over the graph remove what does nothing, put constants together, and choose cheaper
equivalents. {fewer} nodes are left.

```text
{simplified}
```

## 4. Emission

The graph becomes a Python function: in the names of the original, with short expressions put inside one another.

```python
{source}
```

This is the printing for readers. The one that runs is the same graph in the calls that cost least, with results written into
buffers that are not needed any more:

```python
{fast}
```

Beside the lines that they are from (`<` marks the backward pass):

```text
{beside}
```

## 5. Calls

The first two calls trace the function; when both traces agree, the code is compiled and kept for arguments of these types and
shapes. From then on a call checks types, shapes and what the function reads from outside, and runs the code.

```text
{explain}
```

The result of the call above: `{result}`.

That code is found again by the code of the function: the gradient of another function object of the same code, such as a
closure that each training step makes anew, is checked by the same text, with that function's variables in place of the first
one's (Python keeps a function's text and its variables apart), and nothing is traced.

Where the function looks at a value (`if r @ r > 1.0:`), the trace notes the *guard*, and the code gets an `if`; the side that
no call has taken yet is traced when one does. Five `if`s one after the other have up to 32 ways. Where more than eight are
known, the function is traced anew with *sections*: its ways meet behind each `if`, and where it returns, as they do in the body
of a loop, so that a few calls tell what each side does, and the code has one `if` for each. Texts that only stand for states
(`state = "idle"`, `if state == "run":`) are numbers in the function that is traced, which can be decided on in code; others
(`state = step(state, v)`, `self.state = "run"`) go from one iteration to the next as numbers. What cannot be compiled without
changing what the function means (random numbers, clocks, writes to outer objects) runs in *dynamic mode*: traced at each call,
by the same rules.
"""

# -- conventions ---------------------------------------------------------------------------------------------------

POINTS = [
    ("`abs` at 0", "grad(np.abs)(0.0)"),
    ("`sign`, `floor`, comparisons", "grad(np.floor)(1.0)"),
    ("`maximum`, `minimum` at a tie", "grad(np.maximum, (0, 1))(2.0, 2.0)"),
    ("`max`, `min` with several largest elements", "grad(np.max)(np.array([1.0, 3.0, 3.0]))"),
    ("`maximum.accumulate`: as the maximum of all until there", "jacobian(np.maximum.accumulate)(np.array([2.0, 2.0]))"),
    ("`clip` at a bound: as inside", "grad(lambda x: np.clip(x, 0.0, 1.0))(1.0)"),
    ("softplus, composed, at 0: exact", "grad(lambda z: np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))))(0.0)"),
    ("`x ** y` by x, where y is 0", "grad(lambda x: x**0.0)(0.0)"),
    ("`x ** y` by y, where x is 0 and y not negative", "grad(lambda y: 0.0**y)(2.0)"),
    ("`norm` at 0", "grad(np.linalg.norm)(np.zeros(2))"),
    ("`std` of equal elements", "grad(np.std)(np.ones(2))"),
    ("`hypot` at the origin", "grad(np.hypot, (0, 1))(0.0, 0.0)"),
    ("`arctan2` at the origin", "grad(np.arctan2, (0, 1))(0.0, 0.0)"),
    ("`logaddexp` of two times -inf", "grad(np.logaddexp, (0, 1))(-np.inf, -np.inf)"),
    ("`prod` with a zero: exact", "grad(np.prod)(np.array([0.0, 2.0, 3.0]))"),
    ("`sort`: the order that NumPy took", "jacobian(np.sort)(np.array([2.0, 1.0]))"),
    ("a Python int is a float", "grad(lambda x: x**2)(3)"),
    ("single precision stays", "grad(lambda x: x**2)(np.float32(3.0))"),
    ("complex argument, real result: steepest ascent", "grad(lambda z: np.abs(z) ** 2)(1.0 + 2.0j)"),
    ("`holomorphic=True`", "grad(lambda z: z**2, holomorphic=True)(1.0 + 2.0j)"),
]


def conventions() -> str:
    """The table of conventions, each with its result."""
    space = {name: getattr(symgrad, name) for name in ("grad", "jacobian")} | {"np": np}
    lines = [
        "# Conventions",
        "",
        "Where a derivative exists, it is that. Elsewhere a general principle decides: at a convex kink",
        "the subgradient of least norm, at a concave one its mirror image. The README's table says it in words; here it is",
        "computed:",
        "",
        "| point | call | result |",
        "| --- | --- | --- |",
    ]
    for point, code in POINTS:
        result = re.sub(r"\s+", " ", repr(eval(code, space)))  # of this file's own text
        lines.append(f"| {point} | `{code}` | `{result}` |")
    return "\n".join(lines) + "\n"


# -- the reference -------------------------------------------------------------------------------------------------

MODULES = ["symgrad", "symgrad.testing", "symgrad.pytest_plugin", "symgrad.sparse", "symgrad.dask", "symgrad.errors"]


def reference() -> str:
    """All public functions and classes, from their docstrings."""
    parts = ["# Reference", "", "Generated from the docstrings."]
    for name in MODULES:
        module = importlib.import_module(name)
        parts += ["", f"## `{name}`", "", _text(inspect.getdoc(module) or "")]
        for public in sorted(_public(module), key=str.lower):
            parts += _entry(f"{public}", getattr(module, public))
    return "\n".join(parts).rstrip() + "\n"


def _public(module: Any) -> list[str]:
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = [
        n for n, value in vars(module).items() if not n.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    return [n for n in own if (inspect.isfunction(getattr(module, n)) or inspect.isclass(getattr(module, n)))]


def _entry(name: str, value: Any) -> list[str]:
    if inspect.isclass(value):
        lines = ["", f"### class `{name}`", "", _text(inspect.getdoc(value) or "")]
        if issubclass(value, BaseException):
            return lines
        methods = [n for n, m in vars(value).items() if not n.startswith("_") and inspect.isfunction(m) and inspect.getdoc(m)]
        for method in methods:
            lines += [
                "",
                f"#### `{name}.{method}{_signature(getattr(value, method))}`",
                "",
                _text(inspect.getdoc(getattr(value, method))),
            ]
        return lines
    return ["", f"### `{name}{_signature(value)}`", "", _text(inspect.getdoc(value) or "")]


def _signature(value: Any) -> str:
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(value).parameters.values() if p.name != "self"]
    return str(inspect.Signature(parameters))


def _text(doc: str) -> str:
    """A docstring as Markdown: sections as lists, examples as code."""
    rows: list[str] = []
    code = section = False
    for line in doc.splitlines():
        section = section and (line.startswith(" ") or not line)
        example = line.startswith((">>> ", "... ")) or (code and line.strip() != "")
        if example and not code:
            rows += ["```python"]
        if code and not example:
            rows += ["```"]
        code = example
        if code:
            rows.append(line)
        elif line in ("Args:", "Returns:", "Raises:"):
            rows += [f"**{line[:-1]}**", ""]
            section = True
        elif section and re.match(r"    [*\w][*\w, ]*: ", line):
            name, _, rest = line.strip().partition(": ")
            rows.append(f"- `{name}`: {rest}")
        else:
            rows.append(line.strip() if section else line)
    return "\n".join([*rows, *(["```"] if code else [])])


PAGES = {"how_it_works.md": how_it_works, "conventions.md": conventions, "reference.md": reference}

if __name__ == "__main__":
    for file, page in PAGES.items():
        (HERE / file).write_text(page(), encoding="utf-8")
        print(f"wrote {HERE / file}")
