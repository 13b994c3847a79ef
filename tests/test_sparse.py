"""Sparse Jacobians: no entry is missed, none too many where the structure is plain, and large ones are found fast."""

import numpy as np
import pytest

pytest.importorskip("scipy")
import scipy.sparse as sp
from ops_samples import DIFFERENTIABLE, cases

from symgrad import flatten, grad, hessian, jacobian
from symgrad.errors import NotDifferentiable, SymgradError
from symgrad.ops.core import REGISTRY
from symgrad.scipy.sparse import csr_array
from symgrad.sparse import RULES, sizes, sparse_hessian, sparse_jacobian

SIX = np.linspace(0.3, 1.4, 6)
TABLE = np.linspace(-1.0, 1.0, 12).reshape(3, 4)


def agrees(fun, *args, entries=None):
    """The sparse Jacobian is the dense one; with ``entries``, it holds just so many."""
    expected = jacobian(fun)(*args)
    expected = np.reshape(expected, (-1, np.size(args[0])))
    made = sparse_jacobian(fun)
    for _ in range(3):
        found = made(*args)
        assert isinstance(found, sp.csr_array)
        np.testing.assert_allclose(found.toarray(), expected, rtol=1e-12, atol=1e-12)
    if entries is not None:
        assert found.nnz == entries
    return made


def symmetric(case):
    return any(kind in ("spd",) for kind in case.kinds)


@pytest.mark.filterwarnings("ignore:.*fix:DeprecationWarning")
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_no_entry_is_missed(op):
    for case in cases(op):
        vector, unflatten = flatten(case.primals)
        if not vector.size or any(np.iscomplexobj(out) for out in case.outputs):
            continue

        def fun(v, case=case, unflatten=unflatten):
            return np.concatenate([np.ravel(out) for out in case(*unflatten(v))])

        if not sum(np.size(out) for out in case.outputs):
            continue
        dense = jacobian(fun, mode="dynamic")(vector)
        pattern = sparse_jacobian(fun).pattern(vector)
        assert not np.any((np.abs(np.nan_to_num(dense, nan=1.0)) > 1e-9) & ~pattern.toarray()), case


def upwind(u, c):
    out = np.zeros_like(u)
    out[0] = u[0]
    out[1:] = u[1:] - c * (u[1:] - u[:-1])
    return out


def heat(u):
    """Five points in two dimensions."""
    inner = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    return inner * u[1:-1, 1:-1] ** 2


def steps(x):
    for _ in range(3):
        x = x + 0.1 * np.sin(np.roll(x, 1))
    return x


BAND = np.diag(np.arange(1.0, 7.0)) + np.diag(np.ones(5), 1)

EXACT = [
    ("elementwise", lambda x: np.sin(x) * x, SIX, 6),
    ("broadcast", lambda x: x[:, None] * np.ones(3), SIX, 18),
    ("slices", lambda x: x[1:] * x[:-1] ** 2, SIX, 10),
    ("upwind", lambda x: upwind(x, 0.3), SIX, 11),
    ("diff", lambda x: np.diff(x**2), SIX, 10),
    ("second_diff", lambda x: np.diff(x, n=2), SIX, 12),
    ("columns", lambda x: np.diff(x, axis=0), TABLE, 16),
    ("rows", lambda x: np.sum(x**2, axis=1), TABLE, 12),
    ("keepdims", lambda x: x / np.max(x, axis=0, keepdims=True), TABLE + 2.0, 36),
    ("concatenate", lambda x: np.concatenate([x[::-1], x[:2] ** 2]), SIX, 8),
    ("stack", lambda x: np.stack([x, x * 2]).T.reshape(-1), SIX, 12),
    ("gather", lambda x: x[np.array([0, 3, 3])] ** 2, SIX, 3),
    ("where", lambda x: np.where(x > 1.0, x**2, x), SIX, 6),
    ("banded", lambda x: BAND @ x, SIX, 11),
    ("matrix", lambda x: TABLE @ x.reshape(4, 2), np.linspace(0, 1, 8), 24),
    ("einsum", lambda x: np.einsum("ij,ij->i", x, x), TABLE, 12),
    ("triangle", lambda x: np.tril(x), np.ones((3, 3)), 6),
    ("loop", steps, SIX, 24),
    ("heat", heat, np.linspace(0, 1, 30).reshape(5, 6), 60),
    ("constant", lambda x: np.ones(3) * np.floor(x[:3]), SIX, 0),
    ("cross", lambda x: np.cross(x.reshape(2, 3), np.arange(3.0)), SIX, 18),
    ("stack_of_matrices", lambda x: np.linalg.inv(x.reshape(2, 2, 2)), np.array([2.0, 1, 1, 3, 1, 0.5, -0.5, 2]), 32),
    ("products_of_matrices", lambda x: x.reshape(2, 1, 3) @ np.ones((2, 3, 2)), SIX, 12),
    ("dense_row", lambda x: np.concatenate([x**2, np.sum(x).reshape(1)]), SIX, 12),
    ("scalar", lambda x: np.sum(x**2), SIX, 6),
    ("norm", lambda x: np.linalg.norm(x, axis=0), TABLE, 12),
    ("quantiles", lambda x: np.quantile(x, [0.2, 0.5], axis=1), TABLE, 24),
    ("spectra", lambda x: np.fft.rfft(x, axis=1).real, TABLE, 36),
    ("einsum_with_dots", lambda x: np.einsum("...i,...i", x, x), TABLE, 12),
    ("tensordot", lambda x: np.tensordot(x, np.ones((4, 2)), 1), TABLE, 24),
    ("tensordot_axes", lambda x: np.tensordot(np.ones((2, 3)), x, ([1], [0])), TABLE, 24),
    ("table", lambda x: np.interp(x, [0.0, 1.0, 2.0], [0.0, 1.0, 4.0]), SIX, 6),
    ("band", lambda x: np.convolve(x, [1.0, 0.0, -1.0], "same"), SIX, 10),
    ("filter", lambda x: np.correlate(x, [1.0, -2.0, 1.0]), SIX, 12),
    ("sparse", lambda x: sp.diags_array([1.0, -2.0], offsets=[0, 2], shape=(6, 6), format="csr") @ x**2, SIX, 10),
    ("sparse_right", lambda x: x @ sp.diags_array([1.0, -2.0], offsets=[0, 2], shape=(6, 6), format="csr"), SIX, 10),
    ("sparse_columns", lambda x: sp.csc_array([[1.0, 0.0, 2.0]]) @ x, TABLE, 8),
    ("sparse_elements", lambda x: csr_array((x, ([0, 0, 1], [0, 1, 2]))) @ np.ones((3, 2)), TABLE[0, :3], 6),
    ("kernel", lambda x: np.convolve([1.0, 0.0, 0.0, 2.0], x), SIX, 12),
]  # fmt: skip


@pytest.mark.parametrize(("fun", "x", "entries"), [case[1:] for case in EXACT], ids=[case[0] for case in EXACT])
def test_pattern_is_exact(fun, x, entries):
    agrees(fun, x, entries=entries)


def test_rows_that_are_zero_but_for_rounding():
    """Of a real vector that is padded with zeros, two imaginary parts of the spectrum are zero."""
    agrees(lambda x: np.fft.fft(x, n=6).imag, np.array([0.3, 1.7, 0.9]))
    agrees(lambda x: np.fft.fft(x, n=6, axis=0).imag.ravel(), TABLE[:3])


@pytest.mark.parametrize("seed", range(10))
def test_derivatives_that_are_rounding_alone(seed):
    """Terms that cancel leave what the check of the pattern must not take for derivatives."""
    x = np.random.default_rng(seed).standard_normal(4)
    made = sparse_hessian(lambda x: np.sum(np.log(np.exp(x))))
    for shift in range(3):
        np.testing.assert_allclose(made(x + shift).toarray(), 0.0, atol=1e-14)


def test_a_wrong_pattern_is_no_rounding(monkeypatch):
    monkeypatch.setitem(RULES, REGISTRY[np.sin], lambda p, node, i: sp.csr_array(sizes(node, i), dtype=np.int8))
    with pytest.raises(SymgradError, match="not what its pattern allows"):
        sparse_jacobian(lambda x: x + 1e-3 * np.sin(x[0]), SIX)


def test_functions_of_other_arrays():
    """Only one argument is differentiated by; what is made of the others is an array like any."""

    def written(x, y):
        q = y * 2.0
        q[0] = x[0]
        return q * x

    def copied(x, y):
        q = y + 0.0
        np.copyto(q, x, where=q > 0.7)
        return q

    agrees(written, SIX, SIX**2, entries=6)
    agrees(copied, SIX, SIX**2)
    agrees(lambda x, y: np.sort(y)[:2], SIX, SIX[::-1], entries=0)
    agrees(lambda x, y: np.reshape(np.cov(np.where(y > 0, y, y)), -1), SIX, SIX[::-1], entries=0)
    agrees(lambda x, at: x[at] ** 2, SIX, np.array([2, 1]), entries=2)
    found = sparse_jacobian(written, argnums="y")(x=SIX, y=SIX**2)
    np.testing.assert_allclose(found.toarray(), np.diag([0.0, *2.0 * SIX[1:]]))


def test_hessian():
    def rosenbrock(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    found = sparse_hessian(rosenbrock, SIX)
    np.testing.assert_allclose(found.toarray(), hessian(rosenbrock)(SIX))
    assert found.nnz == 16
    made = sparse_hessian(lambda a, x: np.sum(a * x**4), argnums="x")
    for _ in range(3):
        assert made(2.0, SIX).nnz == made(2.0, x=SIX).nnz == made(x=SIX, a=2.0).nnz == 6


def products(made):
    """The kind of each call of compiled code, and for how many groups."""
    (plan,) = made._plans.values()
    return [(one.kind, len(one.seeds) - (k == 0)) for k, one in enumerate(plan.passes)]  # the first has the check, too


def last(x):
    return np.concatenate([x**2, np.sum(x**3).reshape(1)])


def arrow(x):
    return np.concatenate([x[:1] * np.sum(x**3), x[1:] * x[0]])


def squares(x):
    return np.sum((x[2:] * x[0] + x[1] - np.roll(x[2:], 1)) ** 2)


@pytest.mark.parametrize(
    ("fun", "expected"),
    [
        (last, [("pullbacks", 2)]),
        (lambda x: x * x[0], [("pushforwards", 2)]),
        (arrow, [("pushforwards", 2), ("pullbacks", 1)]),
        (grad(squares), [("pushforwards", 5), ("pullbacks", 2)]),
        (lambda x: x**2, [("pushforwards", 1)]),
        (lambda x: np.sum(x.reshape(5, 10) ** 2, axis=1), [("pullbacks", 1)]),
        (lambda x: np.zeros(3) * x[:3], [("pushforwards", 1)]),
    ],
    ids=["row", "column", "arrow", "bordered", "diagonal", "blocks", "nothing"],
)
def test_whichever_needs_fewer_products(fun, expected):
    """A dense row is one pullback, a dense column one pushforward, and both may be there."""
    x = np.linspace(1.0, 2.0, 50)
    made = agrees(fun, x)
    assert products(made) == expected


def test_other_branches_and_indices_are_found_again():
    def fun(x, k, far):
        if far > 0:
            return x * np.roll(x, 3)
        return x * x[k]

    made = sparse_jacobian(fun)
    for k, far in ((0, -1.0), (0, 1.0), (4, -1.0), (2, 1.0), (1, -1.0)):
        np.testing.assert_allclose(made(SIX, k, far).toarray(), jacobian(fun)(SIX, k, far))


@pytest.mark.parametrize("kind", ["same", "valid", "full"])
@pytest.mark.parametrize(("n", "m"), [(6, 3), (6, 2), (2, 5), (3, 6), (4, 4), (1, 3), (3, 1)])
@pytest.mark.parametrize("fun", [np.convolve, np.correlate])
def test_convolutions(fun, n, m, kind):
    a, v = np.linspace(1.0, 2.0, n), np.linspace(2.0, 3.0, m)
    entries = np.count_nonzero(jacobian(fun)(a, v, kind)), np.count_nonzero(jacobian(fun, 1)(a, v, kind))
    agrees(lambda x: fun(x, v, kind), a, entries=entries[0])
    agrees(lambda x: fun(a, x, kind), v, entries=entries[1])
    agrees(lambda x: fun(x[:n], x[n:], kind), np.concatenate([a, v]), entries=sum(entries))


def test_large_and_banded():
    n = 100_000
    made = sparse_jacobian(lambda u: u[1:-1] * (u[2:] - u[:-2]))
    u = np.linspace(0.0, 1.0, n)
    found = made(u)
    assert found.shape == (n - 2, n)
    assert found.nnz == 3 * (n - 2)
    np.testing.assert_allclose(found @ np.ones(n), u[2:] - u[:-2], atol=1e-12)


def test_large_and_an_arrow():
    n = 100_000
    u = np.linspace(0.0, 1.0, n)
    found = sparse_hessian(lambda u: np.sum(u[1:] * u[0] ** 2) + np.sum(u**4), u + 1.0)
    assert found.nnz == 3 * n - 2
    np.testing.assert_allclose(found.diagonal()[1:], 12 * (u[1:] + 1.0) ** 2)
    np.testing.assert_allclose(found[[0], 1:].toarray()[0], 2.0)


def test_not_sparse():
    with pytest.raises(ValueError, match="not sparse"):
        sparse_jacobian(np.cumsum, np.ones(20_000))
    with pytest.raises(ValueError, match="not sparse"):
        sparse_jacobian(lambda x: x * np.sum(x), np.ones(20_000))


def test_what_it_is_for():
    with pytest.raises(NotDifferentiable, match="real numbers"):
        sparse_jacobian(lambda x: x**2, np.ones(3) * 1j)
    with pytest.raises(NotDifferentiable, match="one array"):
        sparse_jacobian(lambda x: (x, x), np.ones(3))


def test_single_precision():
    found = sparse_jacobian(lambda x: x[1:] * x[:-1], SIX.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), jacobian(lambda x: x[1:] * x[:-1])(SIX), rtol=1e-6)
