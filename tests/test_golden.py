"""Generated sources as files, to be read in a diff; what they show is also run, and gives what the derivative gives.

``pytest --update-golden`` writes them.
"""

import ast
import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import golden_functions as fun
import numpy as np
import pytest
from agreement import alike

from symgrad import elementwise_grad, grad, hessian, hvp, jacfwd, jacobian, runtime, value_and_grad, vmap, without
from symgrad.emit import printer
from symgrad.emit.build import build
from symgrad.errors import Unexplored
from symgrad.optimize.switches import OPTIMISATIONS
from symgrad.pytree import flatten


def numbers(*shape: int) -> np.ndarray:
    """Fixed, uneven numbers."""
    size = int(np.prod(shape))
    return np.sin(np.arange(1.0, size + 1.0) * 1.7).reshape(shape)


@dataclass
class Case:
    """A golden file: the derivative that it shows, and the calls that it must have seen, the last of them shown."""

    name: str
    make: Callable[[], Any]
    calls: list[tuple[Any, ...]]
    fast: bool = False


def case(name: str, make: Callable[[], Any], *args: Any, before: Sequence[tuple[Any, ...]] = (), fast: bool = False):
    return pytest.param(Case(name, make, [*before, args], fast), id=name)


def in_arrays(make: Callable[[], Any]) -> Callable[[], Any]:
    """The same derivative with its arrays, however small, in NumPy calls."""

    def made() -> Any:
        with without("scalarize"):
            return make()

    return made


X, Y, LABELS = numbers(5, 3), numbers(5), np.array([0, 2, 1, 1, 0])
DICT = {"hidden": {"w": numbers(3, 4), "b": numbers(4)}, "out": {"w": numbers(4), "b": 0.5}}
TUPLE = (numbers(2, 3), numbers(3, 3), numbers(3))
MAPS = (numbers(3, 2), numbers(3, 2), numbers(3, 2))

CASES = [
    case("one_layer", lambda: grad(fun.one_layer, (0, 1)), X, numbers(3), np.ones(5), np.zeros(3), fast=True),
    case("logistic", in_arrays(lambda: grad(fun.logistic)), numbers(3), X, (Y > 0) + 0.0, fast=True),
    case(
        "softmax_classifier",
        lambda: grad(fun.softmax_classifier, (0, 1)),
        numbers(3, 4),
        numbers(4),
        X,
        LABELS,
        fast=True,
    ),
    case("recurrent", lambda: grad(fun.recurrent), TUPLE, numbers(3, 2), numbers(3)),
    case("perceptron", in_arrays(lambda: grad(fun.perceptron)), DICT, X, Y, fast=True),
    case("attention", lambda: grad(fun.attention, (0, 1, 2)), *MAPS, X),
    case("rosenbrock", lambda: grad(fun.rosenbrock), numbers(4)),
    case("rosenbrock_hvp", lambda: hvp(fun.rosenbrock), numbers(4), np.arange(4.0)),
    case("rosenbrock_hessian", lambda: hessian(fun.rosenbrock), numbers(4)),
    case("black_scholes", lambda: grad(fun.black_scholes, (0, 3)), 105.0, 100.0, 0.01, 0.2, 0.5),
    case("marginal_likelihood", lambda: value_and_grad(fun.marginal_likelihood), np.array([0.1, 0.2, -1.0]), Y, Y[::-1]),
    case("log_sum_exp", lambda: grad(fun.log_sum_exp), numbers(4)),
    case("spread", lambda: grad(fun.spread), numbers(4)),
    case("intensity", lambda: grad(fun.intensity), numbers(3) + 1j * numbers(3)[::-1]),
    case("projectile", lambda: value_and_grad(fun.projectile, (0, 1)), 30.0, 0.8, fast=True),
    case("swish", lambda: elementwise_grad(fun.swish), numbers(4)),
    case("polar", lambda: jacfwd(fun.polar), np.array([2.0, 0.3])),
    case("swish_jacobian", lambda: jacobian(fun.swish), numbers(3)),
    case("ridge", lambda: grad(fun.ridge), numbers(3)),
    case("huber", lambda: grad(fun.huber, ("r", "delta")), -3.0, 1.0, before=[(0.5, 1.0)]),
    case("huber_one_side", lambda: grad(fun.huber), 0.5, 1.0),
    case("newton_root", lambda: grad(fun.newton_root), 10.0, before=[(2.0,), (1.21,), (1.0,)], fast=True),
    case("upwind", lambda: grad(fun.upwind, (0, 1)), numbers(5), 0.4),
    case("embedding", lambda: grad(fun.embedding), numbers(4, 2), np.array([0, 2, 0])),
    case("clipped", lambda: grad(fun.clipped), numbers(3)),
    case(
        "per_example_gradients",
        lambda: vmap(grad(fun.cross_entropy, (0, 1)), (None, None, 0, 0)),
        numbers(3, 4),
        numbers(4),
        X,
        LABELS,
        fast=True,
    ),
    case("huber_batch", lambda: vmap(fun.huber, (0, None)), numbers(5), 0.7, before=[(np.full(5, 0.1), 0.7)]),
    case("newton_batch", lambda: vmap(fun.newton_root), np.array([2.0, 10.0, 1.21])),
    case("checkpointed", lambda: grad(fun.two_layers), numbers(3, 3), X),
    case("fit_and_residual", lambda: value_and_grad(fun.fit_and_residual, has_aux=True), numbers(3), X, Y),
]


@pytest.mark.whole
@pytest.mark.parametrize("case", CASES)
def test_golden(case, golden, monkeypatch):
    derivative = case.make()
    results = [[derivative(*args) for _ in range(3)][-1] for args in case.calls]  # traced, confirmed, compiled
    built = []
    monkeypatch.setattr("symgrad.compile.build", lambda *args, **kwargs: built.append(build(*args, **kwargs)) or built[-1])
    shown = derivative.source(*case.calls[-1])
    run = execute(built[-1], derivative._compiler.traced(derivative._user, case.calls[-1], {}))
    if case.fast:
        shown += "\n\n# the code that runs\n\n" + derivative.source(*case.calls[-1], fast=True)
    golden(f"{case.name}.py", shown)
    for args, expected in zip(case.calls, results, strict=True):
        alike(run(*args), expected)


@pytest.mark.parametrize("switch", [*OPTIMISATIONS, None])
@pytest.mark.parametrize("case", CASES)
def test_each_optimisation_can_be_switched_off(case, switch):
    with without(*([switch] if switch else [])):
        plain = case.make()
    full = case.make()
    for args in [args for args in case.calls for _ in range(3)]:
        for a, b in zip(flatten(plain(*args))[0], flatten(full(*args))[0], strict=True):
            assert type(a) is type(b)
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def execute(code, variant):
    """The function that a readable source defines, fed with what it reads from outside."""
    namespace = {"np": np, "runtime": runtime, "Unexplored": Unexplored, **code.namespace}
    exec(compile(code.source, "<golden>", "exec"), namespace)
    return lambda *args: namespace[variant.family.name](*args, *map(read, variant.lifts))


def read(path):
    """The value that a path from outside leads to."""
    value = path.root
    for kind, key in path.steps:
        value = attrgetter(key)(value) if kind == "attr" else value[key]
    return value


@pytest.mark.parametrize("case", CASES)
def test_source_defines_its_names(case):
    """It can be pasted anywhere: one function, of NumPy and its arguments."""
    (function,) = ast.parse(case.make().source(*case.calls[-1])).body
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    known = {"np", "runtime", "Unexplored", *dir(builtins), *(arg.arg for arg in function.args.args)}
    known |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    assert {node.id for node in names} <= known


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "golden").glob("*.py")), ids=lambda path: path.stem)
def test_what_is_printed_quickly_is_as_astor_has_it(path):
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, (ast.Assign, ast.Expr, ast.expr))]
    assert all(printer.text(node) == printer._by_astor(node) for node in nodes)
