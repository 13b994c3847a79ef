"""Factors of complex matrices: right for vectors turned as LAPACK turns them; NaN where the choice of vectors is arbitrary.

The generic tests cannot know of that: they take any combination of a function's results.
"""

import numpy as np
import pytest

from symgrad import grad, jvp


def draw(seed, shape, dtype=complex):
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype is complex else 0)


W = draw(0, (5, 5))


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def distance(x):
    """How far from some matrix: no two directions weigh the same."""
    m, n = x.shape[-2:]
    return np.sum(np.abs(x - W[:m, :n]) ** 3)


def propagator(x):
    w, v = np.linalg.eigh(x + adjoint(x))
    return distance((v * np.exp(-1j * w)[..., None, :]) @ adjoint(v))


def weights_of_states(x):
    w, v = np.linalg.eigh(x + adjoint(x), UPLO="U")
    return np.sum(np.abs(v) ** 3 * w[..., None, :])


def vectors(x):
    w, v = np.linalg.eig(x)
    return distance(v) + np.sum(np.imag(v) ** 2 * np.abs(w)[..., None, :])


def states(x):
    v = np.linalg.eigh(x + adjoint(x))[1]
    return distance(v) + np.sum(np.real(np.linalg.eigh(x + adjoint(x), UPLO="U")[1]) ** 3)


def singular_vectors(x):
    u, _, v = np.linalg.svd(x, full_matrices=False)
    return distance(u) + np.sum(np.imag(v) ** 3 + np.real(v[0]))


def rotation(x):
    u, s, v = np.linalg.svd(x, full_matrices=False)
    return distance(u @ v) + np.sum(np.abs(u * s[..., None, :]) ** 3)


def null_space(x):
    u, s, v = np.linalg.svd(x)
    rest = u[:, len(s) :] if len(u) > len(s) else adjoint(v)[:, len(s) :]
    return distance(rest @ adjoint(rest))


def triangle(x):
    q, r = np.linalg.qr(x)
    return distance(q) + np.sum(np.real(r * (1 + 2j)))


def completed(x):
    q, r = np.linalg.qr(x, mode="complete")
    k = min(x.shape)
    return distance(q[:, :k]) + distance(q[:, k:] @ adjoint(q[:, k:])) + np.sum(np.real(r * (2 - 1j)) ** 2)


FUNCTIONS = [
    (propagator, (4, 4)), (propagator, (2, 3, 3)), (weights_of_states, (4, 4)), (vectors, (4, 4)), (vectors, (2, 3, 3)),
    (states, (4, 4)), (states, (2, 3, 3)), (states, (1, 1)), (singular_vectors, (4, 4)), (singular_vectors, (5, 3)),
    (singular_vectors, (2, 3, 4)), (singular_vectors, (1, 3)),
    (rotation, (4, 4)), (rotation, (5, 3)), (rotation, (2, 3, 4)), (null_space, (5, 3)), (null_space, (3, 5)),
    (triangle, (4, 4)), (triangle, (5, 3)), (triangle, (3, 5)), (triangle, (2, 4, 3)), (completed, (5, 3)), (completed, (3, 4)),
]  # fmt: skip


def differences(fun, x, step=1e-3):
    """d/dre + i d/dim by central differences, extrapolated twice."""
    g = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        for unit in (1, 1j) if np.iscomplexobj(x) else (1,):

            def slope(h, place=place, unit=unit):
                up, down = x.copy(), x.copy()
                up[place] += h * unit
                down[place] -= h * unit
                return (fun(up) - fun(down)) / (2 * h)

            one, two, four = slope(step), slope(step / 2), slope(step / 4)
            g[place] += unit * (64 * four - 20 * two + one) / 45
    return g


def inner(x, y):
    return np.sum(np.real(np.conj(x) * y))


@pytest.mark.parametrize("dtype", [complex, float])
@pytest.mark.parametrize(("fun", "shape"), FUNCTIONS)
def test_derivatives(fun, shape, dtype):
    x, t = draw(1, shape, dtype), draw(2, shape, dtype)
    first = grad(fun)
    for _ in range(3):  # traced, traced, compiled
        np.testing.assert_allclose(first(x), differences(fun, x), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(grad(fun, mode="dynamic")(x), first(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(jvp(fun, (x,), (t,))[1], inner(first(x), t), rtol=1e-9)

    def along(x):
        return inner(t, first(x))

    second = grad(along)(x)
    np.testing.assert_allclose(second, differences(along, x), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(jvp(along, (x,), (t,))[1], inner(second, t), rtol=1e-8)


@pytest.mark.parametrize("fun", [
    lambda x: np.sum(1j * np.linalg.eigh(np.diag(np.diag(x + adjoint(x))))[1]), lambda x: np.linalg.svd(x[:, :2])[0][1, 2],
    lambda x: np.linalg.qr(x[:, :2], mode="complete")[0][1, 2],
])  # fmt: skip
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_arbitrary_phase_is_no_derivative(fun, mode):
    x = W[:3, :3]
    slope = grad(lambda x: np.real(fun(x)), mode=mode)
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="arbitrary phase"):
            assert np.isnan(slope(x)).any()
