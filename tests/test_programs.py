"""Random programs: every way to a derivative gives the same numbers, and those are the finite differences.

``pytest --hypothesis-profile=deep tests/test_programs.py`` searches for long.
"""

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from agreement import same, tolerance
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from symgrad import grad, graph, hessian, hvp, jacfwd, jacobian, jacrev, jvp, runtime, value_and_grad, vjp, vmap, without
from symgrad.emit.build import build
from symgrad.errors import CheckFailed, Unexplored
from symgrad.ir import Aval, Node
from symgrad.optimize.pipeline import for_readers, improve, speed_up
from symgrad.optimize.rewriting import infer
from symgrad.optimize.switches import OPTIMISATIONS
from symgrad.pytree import flatten
from symgrad.testing import QUIET_FORMS, Program, check_grads, programs
from symgrad.transform.loop import Loop

REAL = tuple(form for form in QUIET_FORMS if form != "complex")
slow = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])


def few(fraction: float) -> settings:
    """The running profile with a part of its examples, for what takes long."""
    return settings(slow, max_examples=max(int(settings().max_examples * fraction), 5))


def check(program: Program, order: int) -> None:
    try:
        check_grads(program.fun, program.arguments(), order=order)
    except CheckFailed as error:
        assume("settle" not in str(error))  # a kink happens to be near: no finite differences there
        raise


def all_of(program: Program) -> tuple[int, ...]:
    return tuple(range(len(program.specs)))


@slow
@given(programs(max_ops=12))
def test_first_order(program: Program) -> None:
    check(program, 1)


@pytest.mark.long
@few(0.3)
@given(programs())
def test_long_programs(program: Program) -> None:
    check(program, 1)


@few(0.3)
@given(programs(max_ops=5))
def test_second_order(program: Program) -> None:
    check(program, 2)


@few(0.6)
@given(programs(max_ops=8, forms=("masked", "smooth", "reduce", "write")))
def test_what_is_not_selected_stays_out(program: Program) -> None:
    with np.errstate(all="ignore"):
        check(program, 1)


def is_steady(program: Program, args: list[Any], value: Any) -> bool:
    """Whether rounding changes the value by little, which it does not in the sine of 1e8."""
    moved = program(*[_moved(arg) for arg in args])
    return bool(abs(moved - value) <= 2**-40 * abs(value))


def _moved(arg: Any) -> Any:
    if np.result_type(arg).kind not in "fc":
        return arg
    return np.asarray(arg * (1 + 2**-50)) if isinstance(arg, np.ndarray) else arg * (1 + 2**-50)


@slow
@given(programs(max_ops=8), st.lists(st.integers(0, 9), min_size=3, max_size=9))
def test_compiled_and_dynamic_agree_on_all_branches(program: Program, seeds: list[int]) -> None:
    """Arguments of other seeds take other branches; each end of the tree is compiled when it was met twice."""
    compiled = value_and_grad(program.fun, argnums=all_of(program))
    dynamic = value_and_grad(program.fun, argnums=all_of(program), mode="dynamic")
    for seed in [*seeds, *seeds, *seeds]:
        args = program.arguments(seed)
        with np.errstate(all="ignore"):
            try:
                value = program(*args)
            except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError):
                continue  # the source was written for other branches
            assume(np.isfinite(value) and is_steady(program, args, value))
            result = compiled(*args)
            same(result, dynamic(*args), args)
        np.testing.assert_allclose(result[0], value, rtol=tolerance([*args, value]))


@slow
@given(programs(max_ops=8), st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(0, 2**12))
def test_batches_are_stacks(program: Program, seeds: list[int], shared: int) -> None:
    """Values and gradients of a batch, whose elements may take other branches, and some arguments of which are shared."""
    draws = [program.arguments(seed) for seed in seeds]
    axes = [None if shared >> i & 1 else 0 for i in range(len(program.specs))]
    assume(0 in axes)
    # an element of an array is a NumPy number, not a Python one or an array
    rows = [[draws[0][i] if axis is None else np.asarray(row[i])[()] for i, axis in enumerate(axes)] for row in draws]
    with np.errstate(all="ignore"):
        try:
            assume(all(np.all(np.isfinite(program(*row))) for row in rows))
        except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError):
            assume(False)  # the source was written for other branches
        single = value_and_grad(program.fun, argnums=all_of(program), mode="dynamic")
        results = [single(*row) for row in rows]
        batched = vmap(value_and_grad(program.fun, argnums=all_of(program)), tuple(axes))
        columns = [draws[0][i] if axis is None else np.stack([row[i] for row in rows]) for i, axis in enumerate(axes)]
        expected = [np.stack(leaves) for leaves in zip(*[flatten(result)[0] for result in results], strict=True)]
        for _ in range(3):
            same(flatten(batched(*columns))[0], expected, columns)


@slow
@given(programs(max_ops=10))
def test_gradients_are_tangents(program: Program) -> None:
    """Public forward and reverse mode agree, and so does what both return beside the derivative."""
    args, others = program.arguments(), program.arguments(program.seed + 1)
    value, grads = value_and_grad(program.fun, argnums=all_of(program))(*args)
    out, tangent = jvp(program.fun, args, others)
    again, pullback = vjp(program.fun, *args)
    same(value, out, args)
    same(value, again, args)
    same(grads, pullback(np.ones_like(value)[()]), args)
    slope = sum(np.sum(np.real(np.conj(g) * t)) for g, t in zip(grads, others, strict=True))
    size = sum(np.sum(np.abs(g) * np.abs(t)) for g, t in zip(grads, others, strict=True))
    assert abs(tangent - slope) <= tolerance([*args, value]) * (1.0 + size)


@few(0.6)
@given(programs(max_ops=6, forms=REAL, outputs="tree"))
def test_jacobians_agree(program: Program) -> None:
    args = program.arguments()
    assume(not any(map(np.iscomplexobj, program(*args).values())))
    rows, columns = jacrev(program.fun, argnums=all_of(program)), jacfwd(program.fun, argnums=all_of(program))
    expected = jacobian(program.fun, argnums=all_of(program), mode="dynamic")(*args)
    for _ in range(3):
        same(rows(*args), expected, args)
        same(columns(*args), expected, args)


@few(0.6)
@given(programs(max_ops=6, forms=REAL))
def test_hessians_are_symmetric(program: Program) -> None:
    args = program.arguments()
    matrix = hessian(program.fun, argnums=all_of(program))
    first = matrix(*args)
    same(matrix(*args), first, args)
    same(matrix(*args), first, args)
    precision = tolerance(args)
    for i, x in enumerate(args):
        for j in range(len(args)):
            block, mirror = (np.reshape(first[a][b], (np.size(args[a]), np.size(args[b]))) for a, b in ((i, j), (j, i)))
            np.testing.assert_allclose(block, mirror.T, rtol=0, atol=precision * (1 + np.max(np.abs(block), initial=0)))
        assert np.shape(first[i][i]) == np.shape(x) * 2
    v = program.arguments(program.seed + 1)[0]
    product = hvp(program.fun)(args[0], v, *args[1:])
    expected = np.tensordot(first[0][0], v, np.ndim(v))
    np.testing.assert_allclose(product, expected, rtol=0, atol=precision * (1 + np.max(np.abs(expected), initial=0)))


@slow
@given(programs(max_ops=12))
def test_both_printings_run_alone(program: Program) -> None:
    """The readable source and the fast one are valid Python, and give the derivative without symgrad around them."""
    args = program.arguments()
    derivative = grad(program.fun, argnums=all_of(program))
    expected = derivative(*args)
    same(derivative.compiled(*args)(*args), expected, args)
    spec = derivative._compiler.traced(derivative._user, args, {})
    code = build(for_readers(improve(spec.program, frozenset()), frozenset()), spec.signature(), fresh=False)
    assert code.source.rstrip("\n") == derivative.source(*args)
    for text in (code.source, derivative.source(*args, fast=True)):
        (function,) = ast.parse(text).body
        assert isinstance(function, ast.FunctionDef)
        assert ast.get_docstring(function)
    namespace: dict[str, Any] = {"np": np, "runtime": runtime, "Unexplored": Unexplored, **code.namespace}
    exec(compile(code.source, "<readable>", "exec"), namespace)
    result = namespace[derivative._compiler.name](*args)
    for x, y in zip(result, expected, strict=True):  # a reader may get a view, or a NumPy number for a 0-d array
        size = max(1.0, float(np.max(np.abs(y), initial=0.0)))
        np.testing.assert_allclose(x, y, rtol=0, atol=size * tolerance(args))


@slow
@given(programs(max_ops=12), st.sets(st.sampled_from(sorted(OPTIMISATIONS)), min_size=1))
def test_optimisations_change_nothing(program: Program, off: set[str]) -> None:
    args = program.arguments()
    with without(*off):
        plain = grad(program.fun, argnums=all_of(program))
    full = grad(program.fun, argnums=all_of(program))
    for _ in range(3):
        same(plain(*args), full(*args), args)


@slow
@given(programs(max_ops=12))
def test_graphs_are_well_formed(program: Program) -> None:
    args = program.arguments()
    for view in (graph(program.fun, *args), grad(program.fun, argnums=all_of(program)).graph(*args)):
        view.graph.verify()
        assert str(view).endswith("return " + ", ".join(f"%{node.index}" for node in view.outputs))


@slow
@given(programs(max_ops=12))
def test_operations_have_the_types_that_numpy_gives(program: Program) -> None:
    """No rewrite changes what an operation is of, and believes it to be as it was."""
    args = program.arguments()
    derivative = value_and_grad(program.fun, argnums=all_of(program))
    traced = derivative._compiler.traced(derivative._user, args, {})
    for node in with_bodies(speed_up(improve(traced.program, frozenset()), frozenset()).nodes()):
        if node.args and isinstance(node.op.key, np.ufunc) and isinstance(node.aval, Aval):
            wanted = infer(node.op, node.args, node.params)
            assert (node.aval.shape, node.aval.dtype) == (wanted.shape, wanted.dtype), node


def with_bodies(nodes: list[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        if isinstance(node.op, Loop):
            yield from with_bodies(node.op.body.nodes())


@slow
@given(programs(max_ops=12))
def test_arguments_stay_as_they_are(program: Program) -> None:
    """Nothing writes into an argument, and no result shares memory with one or with another result."""
    args = program.arguments()
    derivative = value_and_grad(program.fun, argnums=all_of(program))
    for _ in range(3):
        results = [r for r in flatten(derivative(*args))[0] if isinstance(r, np.ndarray)]
        for a, b in zip(args, program.arguments(), strict=True):
            np.testing.assert_array_equal(a, b)
        for i, r in enumerate(results):
            assert r.flags.writeable
            assert r.flags.c_contiguous
            others = [*args, *results[:i]]
            assert not any(np.shares_memory(r, x) for x in others if isinstance(x, np.ndarray))
