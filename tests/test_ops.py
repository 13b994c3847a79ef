"""Every registered operation against finite differences, and its derivatives against each other.

All tests iterate the registry: an operation that is added with samples is tested with no change here.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from ops_samples import (
    CONSTANT,
    DIFFERENTIABLE,
    OPERATIONS,
    Case,
    along,
    cases,
    close,
    dot,
    gradient,
    samples_of,
    some,
    some_of,
)

from symgrad import grad, jvp, pytree, vjp, vmap
from symgrad.errors import NotDifferentiable
from symgrad.ops import create
from symgrad.ops.core import REGISTRY, Composite, Op, Refused, Sample

pytestmark = pytest.mark.filterwarnings("ignore:.*fix:DeprecationWarning")  # NumPy 2.5 deprecates np.fix

COMPOSITE = [op for op in DIFFERENTIABLE if isinstance(op, Composite)]
COMPLEX = [op for op in DIFFERENTIABLE if op.complex and op is not create.FULL]  # whose dtype is a parameter
name = lambda op: op.name

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": lambda x: x.copy(),
    "F": lambda x: np.array(x, order="F"),
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x,
    "swapped bytes": lambda x: x.astype(x.dtype.newbyteorder("S")),
    "reversed": lambda x: np.flip(np.flip(x).copy()) if x.ndim else x,
    "read-only": lambda x: _locked(x.copy()),
}


def _locked(x: Any) -> Any:
    x.setflags(write=False)
    return x


@contextmanager
def noted(case: Case, **more: Any) -> Iterator[None]:
    """Say in the traceback which sample it was."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in {case!r} {more or ''}")
        raise


def all_of(case: Case) -> tuple[int, ...]:
    return tuple(range(len(case.primals)))


# -- derivatives ---------------------------------------------------------------------------------------------------


def check_first_order(case: Case) -> None:
    """Value, pullback and pushforward: against NumPy, finite differences, and each other."""
    primals, weights, tangents = case.primals, case.like(case.outputs), case.tangents()
    value, pullback = vjp(case, *primals)
    close(value, case.outputs, 1e-11, "value")
    assert [x.dtype for x in value] == [np.result_type(x) for x in case.outputs]
    grads = pullback(weights)
    assert [(g.shape, g.dtype) for g in grads] == [(x.shape, x.dtype) for x in primals]
    close(case.symmetric(grads), gradient(case, weights), 1e-6, "reverse")
    large = pullback([x * 2.0**300 for x in weights])
    close([g / 2.0**300 for g in large], grads, 1e-9, "reverse, of large cotangents")
    pushed = jvp(case, primals, tangents)[1]
    assert [np.result_type(t) for t in pushed] == [np.result_type(x) for x in case.outputs]
    close(pushed, along(case, primals, tangents), 1e-6, "forward")
    close([dot(weights, pushed)], [dot(grads, tangents)], 1e-9, "<w, J t> = <J' w, t>")


def check_second_order(case: Case) -> None:
    """Forward over reverse against finite differences of the gradient; reverse over reverse against both."""
    primals, weights, tangents = case.primals, case.like(case.outputs), case.tangents()
    other = case.tangents()
    scalar = lambda *xs: dot(weights, case(*xs))
    first = lambda *xs: grad(scalar, all_of(case))(*xs)
    twice = vjp(first, *primals)[1](tuple(other))
    pushed = case.symmetric(jvp(first, primals, tangents)[1])
    numeric = along(lambda *xs: case.symmetric(vjp(case, *xs)[1](weights)), primals, tangents)
    close(pushed, numeric, 1e-6, "forward over reverse")
    close([dot(other, pushed)], [dot(twice, tangents)], 1e-9, "reverse over reverse")
    second = jvp(lambda *xs: jvp(case, xs, other)[1], primals, tangents)[1]
    close([dot(weights, second)], [dot(other, pushed)], 1e-9, "forward over forward")


@pytest.mark.whole
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=name)
def test_first_order(op):
    for case in cases(op):
        with noted(case):
            check_first_order(case)


@pytest.mark.whole
@pytest.mark.parametrize("op", COMPLEX, ids=name)
def test_first_order_of_complex(op):
    for case in cases(op, np.complex128):
        with noted(case):
            check_first_order(case)


@pytest.mark.parametrize("op", COMPLEX, ids=name)
def test_first_order_of_real_with_complex(op):
    for dtypes, sample in itertools.product(itertools.permutations((np.float64, np.complex128)), samples_of(op)):
        try:
            case = Case(op, sample, dtypes)
        except (TypeError, np.exceptions.ComplexWarning):
            continue  # NumPy does not mix them here
        if len(case.primals) > 1:
            with noted(case):
                check_first_order(case)


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=name)
def test_second_order(op):
    for case in cases(op):
        with noted(case):
            check_second_order(case)


@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if isinstance(op, Op) and op.family == "multilinear"], ids=name)
def test_derivatives_of_multilinear_functions_by_an_argument_do_not_read_it(op):
    for case in cases(op):
        for i, x in enumerate(case.primals):
            of = lambda x, case=case, i=i: case(*case.primals[:i], x, *case.primals[i + 1 :])
            cotangents = case.like(case.outputs)
            for there, elsewhere in zip(vjp(of, x)[1](cotangents), vjp(of, x + 1.0)[1](cotangents), strict=True):
                np.testing.assert_array_equal(there, elsewhere)


@pytest.mark.parametrize("op", COMPLEX, ids=name)
def test_second_order_of_complex(op):
    for case in some(op, np.complex128):
        with noted(case):
            check_second_order(case)


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=name)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_single_precision(op, dtype):
    """float32 in, float32 out, and near what float64 gives."""
    for case in some(op, dtype) if dtype == np.float32 or op in COMPLEX else ():
        with noted(case):
            weights, tangents = case.like(case.outputs), case.tangents()
            value, pullback = vjp(case, *case.primals)
            grads, pushed = pullback(weights), jvp(case, case.primals, tangents)[1]
            assert [x.dtype for x in value] == [np.result_type(x) for x in case.outputs]
            assert [t.dtype for t in pushed] == [np.result_type(x) for x in case.outputs]
            assert [g.dtype for g in grads] == [x.dtype for x in case.primals]
            wide = np.result_type(dtype, np.float64)
            exact = [x.astype(wide) for x in case.primals]
            close(grads, vjp(case, *exact)[1](_double(weights)), 2e-3, "reverse")
            close(pushed, jvp(case, exact, _double(tangents))[1], 2e-3, "forward")


def _double(arrays: Any) -> list[Any]:
    return [x.astype(np.result_type(x, np.float64)) for x in arrays]


# -- compiled and dynamic ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=name)
def test_compiled_equals_dynamic(op):
    for case in cases(op):
        with noted(case):
            check_compiled(case)


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=name)
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_compiled_equals_dynamic_in(op, dtype):
    for case in some(op, dtype) if dtype == np.float32 or op in COMPLEX else ():
        with noted(case):
            check_compiled(case)


def check_compiled(case: Case) -> None:
    """Traced twice, then compiled, for every layout of arguments, the gradient is the same, and the caller's own."""
    weights = case.like(case.outputs)
    fun = lambda *xs: dot(weights, case(*xs))
    dynamic = grad(fun, all_of(case), mode="dynamic")
    expected = dynamic(*case.primals)
    check_own(expected, case.primals)
    rtol = 1e-4 if np.finfo(case.dtypes[0]).bits == 32 else 1e-11
    derivative = grad(fun, all_of(case))
    for number, layout in enumerate(["C", "C", *LAYOUTS, "swapped bytes", "swapped bytes"]):  # those have a code of their own
        args = [LAYOUTS[layout](x) for x in case.primals]
        if layout == "swapped bytes" and not takes(case, args):
            continue
        result = derivative(*args)
        with noted(case, call=number, layout=layout):
            close(result, expected, rtol, "gradient")
            check_own(result, args)
        assert all(np.array_equal(a, x) for a, x in zip(args, case.primals, strict=True)), "an argument was changed"
        for g in result:
            g.fill(np.nan)  # which must not be seen by later calls
    derivative.compiled(*case.primals)  # raises if it was not
    for layout in [*LAYOUTS][1:]:
        args = [LAYOUTS[layout](x) for x in case.primals]
        if layout == "swapped bytes" and not takes(case, args):
            continue
        result = dynamic(*args)
        with noted(case, mode="dynamic", layout=layout):
            close(result, expected, rtol, "gradient")
            check_own(result, args)


def takes(case: Case, args: Any) -> bool:
    """Whether the function itself takes such arrays: some of SciPy's do not."""
    try:
        case(*args)
    except (ValueError, TypeError, RuntimeWarning, np.linalg.LinAlgError):
        return False
    return True


def check_own(result: Any, args: Any) -> None:
    """Results are fresh, writable, C-contiguous, and of their arguments' dtypes."""
    for i, (g, x) in enumerate(zip(result, args, strict=True)):
        assert type(g) is np.ndarray
        assert g.dtype.newbyteorder("=") == x.dtype.newbyteorder("=")
        assert g.flags.writeable
        assert g.flags.c_contiguous
        assert not any(np.shares_memory(g, other) for other in (*args, *result[:i]))


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=name)
def test_numbers_give_back_their_kind(op):
    """NumPy scalars and Python floats in place of 0-d arrays."""
    for case in cases(op):
        if not any(x.ndim == 0 for x in case.primals):
            continue
        weights = case.like(case.outputs)
        fun = lambda *xs, case=case, weights=weights: dot(weights, case(*xs))
        expected = grad(fun, all_of(case), mode="dynamic")(*case.primals)
        for number in (np.float64, float):
            args = [number(x) if x.ndim == 0 else x for x in case.primals]
            with noted(case, number=number):
                for derivative in (grad(fun, all_of(case)), grad(fun, all_of(case), mode="dynamic")):
                    for _ in range(3):
                        result = derivative(*args)
                        assert [type(g) for g in result] == [type(x) for x in args]
                        close(result, expected, 1e-11, "gradient")


# -- batched -------------------------------------------------------------------------------------------------------


def batches(
    op: Op | Composite, size: int, samples: list[Sample]
) -> Iterator[tuple[Case, list[Any], list[int | None], list[list[Any]]]]:
    """Samples as cases, batched arguments, their axes, and what each element of the batch has.

    Each argument is batched alone, then all of them are; along their first axis, and at last along their last one.
    """
    for sample in samples:
        drawn = [Case(op, sample, seed=seed) for seed in range(size)]
        case, n = drawn[0], len(drawn[0].primals)
        if not n:
            continue
        alone = [(0, [i]) for i in range(n)] if n > 1 else []
        for axis, chosen in [*alone, (0, range(n)), (-1, range(n))]:
            args, axes = list(case.primals), [axis if i in chosen else None for i in range(n)]
            for i in chosen:
                args[i] = np.stack([other.primals[i] for other in drawn], axis=axis)
            rows = [[other.primals[i] if i in chosen else case.primals[i] for i in range(n)] for other in drawn]
            yield case, args, axes, rows


def alike(results: Any) -> bool:
    """Whether the results of all elements have the same shapes: those of ``np.unique`` and its like may not."""
    return len({str([np.shape(x) for x in row]) for row in results}) == 1


def check_batched(op: Op | Composite) -> None:
    """``vmap`` gives the stack of the single results, whichever arguments are batched and along which axis."""
    for case, args, axes, rows in batches(op, 3, samples_of(op)):
        singles = [[np.asarray(leaf) for leaf in pytree.flatten(case.call(*primals))[0]] for primals in rows]
        if not alike(singles):
            continue
        with noted(case, axes=axes):
            function = vmap(case.call, tuple(axes))
            found = [np.asarray(leaf) for leaf in pytree.flatten(function(*args))[0]]
            expected = [np.stack(column) for column in zip(*singles, strict=True)]
            close(found, expected, 1e-11, "vmap")
            assert [x.dtype for x in found] == [x.dtype for x in expected]
            if isinstance(op, Op) and op.name not in ONE_BY_ONE:
                assert "runs once" not in function.explain()


def check_batched_under_reverse(op: Op | Composite) -> None:
    """The gradient through ``vmap``, of shared arguments too, and ``vmap`` of the gradient."""
    for case, args, axes, rows in batches(op, 2, some_of(op)):
        if not alike([case(*primals) for primals in rows]):
            continue
        with noted(case, axes=axes):
            weights = case.like(case.outputs)
            fun = lambda *xs, case=case, weights=weights: dot(weights, case(*xs))
            singles = [vjp(case, *primals)[1](weights) for primals in rows]
            stacked = [np.stack(column) for column in zip(*singles, strict=True)]
            close(vmap(grad(fun, all_of(case)), tuple(axes))(*args), stacked, 1e-9, "vmap of grad")
            expected = [
                np.sum(g, axis=0) if axis is None else np.moveaxis(g, 0, axis) for g, axis in zip(stacked, axes, strict=True)
            ]
            close(vjp(vmap(fun, tuple(axes)), *args)[1](np.ones(len(rows))), expected, 1e-9, "vjp of vmap")


# operations that have no rule, or one that does not serve every choice of batched arguments
ONE_BY_ONE = set(
    """
    np.bincount np.digitize np.histogram_bin_edges np.interp np.isin np.lexsort np.linalg.lstsq np.nanquantile np.quantile
    np.roots np.searchsorted convolve lfilter logm solve_banded solve_continuous_are solve_discrete_are solve_sylvester
    solve_triangular sqrtm
""".split()
)


@pytest.mark.parametrize("op", OPERATIONS, ids=name)
def test_batched(op):
    check_batched(op)


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=name)
def test_batched_under_reverse(op):
    check_batched_under_reverse(op)


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=name)
def test_batched_is_compiled(op):
    """``vmap`` of the gradient, traced twice, then compiled."""
    for case, args, axes, rows in list(batches(op, 2, samples_of(op)[-1:]))[-1:]:
        if alike([case(*primals) for primals in rows]):
            with noted(case, axes=axes):
                check_batched_is_compiled(case, args, axes)


def check_batched_is_compiled(case, args, axes):
    weights = case.like(case.outputs)
    function = vmap(grad(lambda *xs: dot(weights, case(*xs)), all_of(case)), tuple(axes))
    first = function(*args)
    function(*args)
    close(function(*args), first, 1e-11, "compiled")
    function.compiled(*args)  # raises if it was not


# -- what is not picked from results takes no part -----------------------------------------------------------------


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=name)
@np.errstate(all="ignore")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_parts_of_results(op):
    """Away from poles, to keep what was not picked out of a derivative changes nothing."""
    for case in cases(op)[:6]:

        def fun(*xs, case=case):
            parts = pytree.flatten(case(*[1.0 / (1.0 / x) for x in xs]))[0]  # itself, through operations that have poles
            return sum(np.sum(np.real(np.ravel(part)[1:]) ** 2) for part in parts)

        expected = grad(fun, all_of(case), mode="dynamic", double_where=False)(*case.primals)
        if all(np.all(np.isfinite(g)) for g in expected):
            with noted(case):
                close(grad(fun, all_of(case))(*case.primals), expected, 1e-9, "gradient")


# -- what is registered --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", COMPOSITE, ids=name)
def test_composite_is_numpys_function(op):
    for case in cases(op) + (cases(op, np.complex128) if op.complex else []) + cases(op, np.float32):
        numpys = case.run
        with noted(case):
            case.run = op.fun
            ours = case(*case.primals)
            case.run = numpys
            close(ours, case.outputs, 1e-4 if case.dtypes[0] == np.float32 else 1e-11, "value")
            assert [np.result_type(x) for x in ours] == [np.result_type(x) for x in case.outputs]


@pytest.mark.parametrize("op", CONSTANT, ids=name)
def test_constant_has_zero_derivative(op):
    for case in cases(op):
        with noted(case):
            check_constant(case)


def check_constant(case: Case) -> None:
    """Alone it gives zeros; beside something else it adds nothing, compiled too."""
    value, pullback = vjp(case, *case.primals)
    close(value, case.outputs, 1e-12, "value")
    assert not any(np.any(g) for g in pullback(case.like(value)))
    assert not any(np.any(t) for t in jvp(case, case.primals, case.like(case.primals))[1])
    weights = case.like(case.primals)
    fun = lambda *xs: dot(xs, weights) + sum(np.sum(y) for y in pytree.flatten(case.call(*xs))[0])
    for mode in ("auto", "dynamic"):
        derivative = grad(fun, all_of(case), mode=mode)
        for _ in range(3):
            close(derivative(*case.primals), weights, 1e-12, "gradient")


@pytest.mark.parametrize("key", [key for key, op in REGISTRY.items() if isinstance(op, Refused)], ids=lambda k: k.__name__)
def test_refused_says_what_to_do(key):
    try:
        needed = sum(p.default is p.empty for p in inspect.signature(key).parameters.values())
    except ValueError:
        pytest.skip("NumPy gives no signature")
    with pytest.raises(NotDifferentiable, match=rf"test_ops.py:\d+: .*{key.__name__} .*\b(write|use)\b"):
        grad(lambda x: np.sum(key(x, *[0] * (needed - 1))))(np.ones(3))


@pytest.mark.parametrize("op", OPERATIONS, ids=name)
def test_has_samples(op):
    made = cases(op)
    assert len(made) >= 1
    assert all(case.primals for case in made), "a sample has no array to differentiate"


@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if isinstance(op, Op) and op.key in REGISTRY], ids=name)
def test_rules_have_numpys_names(op):
    """The rules' arrays are NumPy's leading arguments, and their parameters are parameters of NumPy's, by name."""
    try:
        theirs = inspect.signature(op.key).parameters
    except ValueError:
        pytest.skip("NumPy gives no signature")
    if any(p.kind is p.VAR_POSITIONAL for p in theirs.values()) or (op._bind is not None and op.variadic):
        return
    if op.key is np.reshape and "newshape" in theirs:
        pytest.skip("NumPy 2.0 has another name for it")
    for rule in filter(None, op.rules):
        own = [p for p in inspect.signature(rule).parameters.values() if p.kind is not p.VAR_KEYWORD][3 if op.variadic else 2 :]
        arrays = [p.name for p in own if p.default is p.empty]
        assert len(arrays) == len(op.rules)
        assert arrays == list(theirs)[: len(arrays)]
        assert {p.name for p in own if p.default is p.empty or not callable(p.default)} <= set(theirs)  # how it is done is ours


def test_matrices_of_a_foreign_byte_order_are_decomposed() -> None:
    """Compiled code, too, which has LAPACK work in place."""
    matrix, weights = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]), np.arange(9.0).reshape(3, 3)
    for function in (np.linalg.cholesky, np.linalg.inv, lambda a: np.linalg.solve(a, weights)):
        derivative = grad(lambda a, function=function: np.sum(weights * function(a)))
        foreign = matrix.astype(matrix.dtype.newbyteorder())
        for _ in range(4):
            np.testing.assert_allclose(derivative(foreign), derivative(matrix))
        assert derivative.cache_info().hits == 4
