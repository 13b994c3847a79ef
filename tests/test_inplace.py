"""Writes into traced arrays: seen through views and aliases as NumPy's are, and differentiated."""

import contextlib
import functools
import inspect
import itertools
import operator
import tracemalloc

import numpy as np
import pytest
from agreement import agrees, alike
from hypothesis import given
from hypothesis import strategies as st
from ops_samples import OPERATIONS, cases

import symgrad.numpy as snp
from symgrad import grad, graph, jacobian, jvp, runtime, stop_gradient, value_and_grad, vjp, vmap, without
from symgrad.errors import MutatedInput, NotDifferentiable
from symgrad.ops.core import REGISTRY
from symgrad.pytree import flatten

V = np.array([0.31, -1.23, 0.74, 2.17])
M = np.arange(12.0).reshape(3, 4) / 5.3 - 1.07


def written(x, write):
    """What ``write(z, x)`` makes of a copy ``z`` of ``x``."""
    z = x * 1.0
    write(z, x)
    return z


# -- item assignment -----------------------------------------------------------------------------------------------

ITEMS = {
    "number": lambda z, x: z.__setitem__(1, x[0] ** 2),
    "slice": lambda z, x: z.__setitem__(slice(1, 3), x[:2] ** 2),
    "step": lambda z, x: z.__setitem__(slice(None, None, -2), x[:2] ** 2),
    "broadcast": lambda z, x: z.__setitem__(slice(None), x[3]),
    "ellipsis": lambda z, x: z.__setitem__(..., x[::-1] * 2),
    "constant": lambda z, x: z.__setitem__(slice(2), 0.5),
    "list": lambda z, x: z.__setitem__([0, 3], x[1:3] ** 2),
    "repeated": lambda z, x: z.__setitem__([0, 0, 1], x[1:] ** 2),
    "repeated number": lambda z, x: z.__setitem__(np.array([2, 2]), x[0] ** 2),
    "mask": lambda z, x: z.__setitem__(z < 0, 0.0),
    "mask of values": lambda z, x: z.__setitem__(x > 0.5, x[x > 0.5] ** 2),
    "plain mask": lambda z, x: z.__setitem__(np.array([True, False, True, False]), x[:2] ** 2),
    "overlap": lambda z, x: z.__setitem__(slice(1, None), z[:-1]),
    "overlap back": lambda z, x: z.__setitem__(slice(None, -1), z[1:] * x[0]),
    "list of values": lambda z, x: z.__setitem__(slice(1, 3), [x[3], 2.0]),
    "traced index": lambda z, x: z.__setitem__(np.argmax(x), x[0] ** 2),
    "traced indices": lambda z, x: z.__setitem__(np.argsort(x)[:2], x[:2] ** 2),
    "0-d result": lambda z, x: z.__setitem__(0, np.sum(x) ** 2),
    "1-element value": lambda z, x: z.__setitem__(slice(None), x[1:2]),
}


@pytest.mark.parametrize("write", ITEMS.values(), ids=ITEMS)
def test_item_assignment(write):
    agrees(lambda x: written(x, write), V)


MATRIX = {
    "row": lambda z, x: z.__setitem__(1, x[0] ** 2),
    "column": lambda z, x: z.__setitem__((slice(None), 1), x[:, 0] ** 2),
    "element": lambda z, x: z.__setitem__((1, -1), x[0, 0] ** 2),
    "points": lambda z, x: z.__setitem__(([0, 2], [1, 3]), x[0, :2] ** 2),
    "ix": lambda z, x: z.__setitem__(np.ix_([0, 2], [1, 3]), x[:2, :2] ** 2),
    "mixed": lambda z, x: z.__setitem__((1, [0, 3]), x[0, :2] ** 2),
    "row mask": lambda z, x: z.__setitem__(x[:, 0] > -0.5, 1.5),
    "mask": lambda z, x: z.__setitem__(x > 0, x[x > 0] ** 2),
    "newaxis": lambda z, x: z.__setitem__((slice(None), None, 0), x[:, 1:2] ** 2),
    "broadcast column": lambda z, x: z.__setitem__((slice(None), slice(2)), x[:, 3:] ** 2),
}


@pytest.mark.parametrize("write", MATRIX.values(), ids=MATRIX)
def test_item_assignment_in_a_matrix(write):
    agrees(lambda x: written(x, write), M)


BACK = slice(None, None, -1)
FLAGS = [
    (True, BACK, -1), (False, BACK, -1), (BACK, True, 1), (1, BACK, np.True_), (True, 0, 1), (True, True, BACK), (True, False),
    (True, None, BACK, 0), (True, ..., 0), (..., True, [0, 2]), (BACK, [0, 2], True), (True, M > 0), (np.array(True), BACK, -1),
    (np.array([True, False, True]), True), (True, slice(2), slice(1, 3)),
]  # fmt: skip


@pytest.mark.parametrize("key", FLAGS)
def test_true_and_false_in_an_index(key):
    """They make an axis, of which they take all or nothing."""
    agrees(lambda x: x[key] ** 2, M)
    agrees(lambda x: written(x, lambda z, x: operator.setitem(z, key, x[key] ** 2)), M)
    agrees(lambda x: written(x, lambda z, x: operator.setitem(z, key, z[key] + x[0, 0] ** 2)), M)
    for mode in ("auto", "dynamic"):
        derivative = jacobian(lambda x: x[key] ** 2, mode=mode)
        assert [derivative(M).shape for _ in range(3)] == [M[key].shape + M.shape] * 3


def test_traced_conditions_in_an_index():
    for scale in (1.0, -1.0):
        agrees(lambda x: x[x[1, 1] > 0, ::-1, -1] ** 2, scale * M)
        agrees(lambda x: written(x, lambda z, x: operator.setitem(z, (slice(None), x[1, 1] > 0), x[0, 0] ** 2)), scale * M)


def test_augmented_items():
    def fun(x):
        z = x * 1.0
        z[1:] += x[1:] ** 2
        z[0] *= x[3]
        z[[0, 0, 1]] += x[1]  # NumPy adds once
        z[x > 1] /= x[0]
        z[-1] **= 2
        z[::-1] -= x
        return z

    agrees(fun, V)


def test_slice_written_twice_is_recorded_once():
    """``z[1:] += v`` gets a view, writes through it, and assigns the view again: the last step changes nothing."""

    def fun(x):
        z = x * 2.0
        z[1:] += x[1:]
        return np.sum(z * z)

    agrees(fun, V)
    assert [node.op.name for node in graph(fun, V).nodes if node.op.name in ("setitem", "index_add")] == ["index_add"]
    assert np.allclose(grad(fun)(V), [8 * V[0], *(18 * V[1:])])


@pytest.mark.parametrize("step", [
    lambda u, v: operator.setitem(u, slice(1, -1), u[1:-1] + v),
    lambda u, v: operator.setitem(u, slice(1, -1), v + u[1:-1]),
    lambda u, v: operator.setitem(u, slice(1, -1), operator.iadd(u[1:-1], v)),
    lambda u, v: operator.setitem(u, slice(1, -1), operator.isub(u[1:-1], v)),
])  # fmt: skip
def test_the_way_back_through_what_is_added_to_a_slice_writes_nothing_new(step):
    def heat(u, k):
        u = u.copy()
        for _ in range(6):
            step(u, k * (u[2:] - 2 * u[1:-1] + u[:-2]))
        return np.sum(u**2)

    agrees(heat, np.linspace(0.0, 1.0, 200) ** 2, 0.1)
    names = [node.op.name for node in graph(grad(heat), np.linspace(0.0, 1.0, 200) ** 2, 0.1).nodes]
    assert "setitem" not in names


@pytest.mark.parametrize("step", [
    lambda u, v: operator.setitem(u, slice(1, -1), v - u[1:-1]),  # it takes the old value away
    lambda u, v: operator.setitem(u, slice(1, -1), u[2:] + v),  # from another place
    lambda u, v: (old := u[1:-1] + v, operator.setitem(u, 0, 5.0), operator.setitem(u, slice(0, -2), old)),
    lambda u, v: operator.setitem(u, slice(1, -1), u[1:-1] + u[1:-1]),
    lambda u, v: operator.setitem(u, slice(1, -1), u[1:-1] - u[1:-1]),
    lambda u, v: operator.setitem(u, slice(1, -1), u[1:-1] + v[0]),
])  # fmt: skip
def test_what_looks_like_adding_to_a_slice(step):
    def fun(u, v):
        u = u.copy()
        step(u, v)
        step(u, v * v)
        return np.sum(u**2)

    agrees(fun, np.linspace(0.5, 1.0, 6), np.linspace(1.0, 2.0, 4))


# -- views ---------------------------------------------------------------------------------------------------------


def through(view):
    """A function that writes through a view, and then reads both."""

    def fun(x):
        z = x * 1.0
        y = view(z)
        y[...] = y * x.ravel()[0] + 1
        y *= y
        z[0] = z[1] * 2
        return z, y * 1.0

    return fun


VIEWS = {
    "T": lambda z: z.T,
    "mT": lambda z: z.mT,
    "transpose": lambda z: np.transpose(z, (1, 0)),
    "swapaxes": lambda z: z.swapaxes(0, 1),
    "moveaxis": lambda z: np.moveaxis(z, 0, -1),
    "reshape": lambda z: z.reshape(2, 6),
    "ravel": lambda z: z.ravel(),
    "ravel that copies": lambda z: z.T.ravel(),
    "reshape that copies": lambda z: z.T.reshape(-1),
    "flatten": lambda z: z.flatten(),
    "squeeze": lambda z: z[None].squeeze(0),
    "expand_dims": lambda z: np.expand_dims(z, 1),
    "newaxis": lambda z: z[:, None],
    "flip": lambda z: np.flip(z, 1),
    "rot90": lambda z: np.rot90(z),
    "slice": lambda z: z[1:],
    "steps": lambda z: z[::-2, 1::2],
    "slice of slice": lambda z: z[1:][:, 1:][0],
    "T of slice": lambda z: z[1:].T[2:],
    "row": lambda z: z[1],
    "column": lambda z: z[:, 2],
    "list, a copy": lambda z: z[[0, 1]],
    "mask, a copy": lambda z: z[z > 0],
    "take, a copy": lambda z: np.take(z, 1, axis=0),
    "view": lambda z: z.view(),
    "ellipsis": lambda z: z[...],
    "copy": lambda z: z.copy(),
    "astype that copies": lambda z: z.astype(float),
    "astype that does not": lambda z: z.astype(float, copy=False),
    "astype in C": lambda z: z.astype(float, order="C", copy=False),
    "astype in F": lambda z: z.astype(float, order="F", copy=False),
    "real of real": lambda z: z.real,
    "einsum diagonal": lambda z: np.einsum("ii->i", z[:, :3]),
    "einsum transpose": lambda z: np.einsum("ij->ji", z),
    "split": lambda z: np.split(z, 2, axis=1)[1],
    "atleast_3d": lambda z: np.atleast_3d(z),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views(view):
    agrees(through(view), M)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_of_arrays_in_order_f(view):
    agrees(through(view), np.asfortranarray(M))


@pytest.mark.parametrize("second", ["np.asfortranarray(z.T)", "np.asarray(z.T, order='F')", "np.require(z.T, None, 'F')"])
def test_second_names_in_order_f_are_refused_without_source(second):
    scope = {"np": np}
    exec(f"def fun(x):\n z = x * 1.0\n y = {second}\n y[0] = 7.0\n return np.sum(z)", scope)
    with pytest.raises(MutatedInput):
        grad(scope["fun"])(M)


def test_aliases_and_sibling_views():
    def fun(x):
        z = x * 1.0
        other = z
        row, column, corner = z[0], z[:, 0], z[:2][:, :2]
        part = corner[1]  # a view of a view, which must see what others write below it
        row[0] = x[1, 1] ** 2
        column *= 3
        z += x
        z[1, 1] = x[2, 2] ** 2
        part[0] = x[0, 3] ** 2
        return other, row * column[1], corner * 1.0, part * x[0, 0]

    agrees(fun, M)


def test_later_views_follow_the_layout_of_a_written_one():
    def fun(x):
        z = x * 1.0
        column = z[:, 1]
        column[0] = x[0, 0] ** 2
        flat = column.ravel()  # a copy: the column is strided, also after it was written to
        flat[1] = 7.0
        line = z[1]
        line[0] = 5.0
        again = line.ravel()  # a view
        again[2] = x[0, 1] ** 2
        return z, flat

    agrees(fun, M)


def test_real_and_imaginary_parts():
    def fun(x):
        z = x * 1j + x**2
        z.real += 1.0
        z.imag = x**3
        z.imag[0] = x[1]
        part = np.real(z)
        part[1:] *= 2.0
        return z

    agrees(fun, V)
    with pytest.raises(TypeError, match="imaginary part"):
        grad(lambda x: setattr(x * 1.0, "imag", x))(V)


def test_flat():
    def fun(x):
        z = (x * 1.0).T
        z.flat[1] = x[0, 0] ** 2
        z.flat[3:5] = x[0, 1] ** 2
        z.flat[[6, 7, 8]] = x[1, :2]  # repeated as needed
        w = x * 1.0
        w.flat = x[0] ** 2
        return z, w, z.flat[2] * z.flat[1:4], sum(v * i for i, v in enumerate(z.flat)), len(z.flat), np.sum(z.flat)

    agrees(fun, M)


def test_nothing_to_repeat_in_flat():
    def f(x):
        z, w = x * x, x * 3.0
        z.flat, w.flat[:2] = np.zeros(0), x[:0]
        return z * w

    agrees(f, np.array([1.0, 2.0]))
    for values in ([], [1.0], [1.0, 2.0]):
        with pytest.raises(ValueError, match="single item"):
            grad(lambda x, values=values: (x * 1).flat.__setitem__(0, values))(np.ones(2))


PLACES_IN_FLAT = [
    lambda k, x: k,
    lambda k, x: slice(k, None, 2),
    lambda k, x: [k, 3],
    lambda k, x: np.argsort(x, axis=None)[:2],
    lambda k, x: np.ravel(x) > k / 3,
]


@pytest.mark.parametrize("places", PLACES_IN_FLAT)
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_traced_places_in_flat(places, mode):
    """They are of each call, not of the one that was traced."""

    def f(x, k):
        y = (x * 1.0).T
        y.flat[places(k, x)] = x[0, 0] * 3.0
        return np.sum(y * np.cos(np.arange(6.0).reshape(y.shape)))

    value = value_and_grad(f, mode=mode)
    rng = np.random.default_rng(0)
    for k in (1, 1, 2, 0, 2, 1):
        x = rng.normal(size=(2, 3))
        found, slope = value(x.copy(), k)
        assert np.isclose(found, f(x, k), rtol=1e-12)
        ends = [f(x + step * np.eye(3)[:2], k) for step in (1e-6, -1e-6)]
        assert np.isclose(slope[0, 0] + slope[1, 1], (ends[0] - ends[1]) / 2e-6, atol=1e-7)


def test_flat_is_compared_and_goes_on():
    def fun(x):
        first = x.flat
        before = next(first), first.index, first.coords
        start = first[2], next(first)  # which begins anew
        return (
            *(before[0] * before[1] * before[2][1], *start),
            np.where(x.flat > 0, x.ravel(), 2.0),
            x[0, 0] * (x.flat == x[0, 1]) + (x.flat > 0.5),
            np.concatenate([x.flat, x[0]]),
        )

    agrees(fun, M)
    with pytest.raises(IndexError):
        grad(lambda x: (x * 1).flat.__setitem__(None, 1.0))(np.ones(2))


OBJECTS = [
    lambda x: np.full_like(np.array([x[0], x[1], x[2]], dtype=object), 2.0),
    lambda x: np.full_like(np.polyder(np.poly1d([*x, 1.0])).coeffs, 2.0),
    lambda x: np.full_like(x, x[0], dtype=object),
    lambda x: np.full(3, x[0], object),
    lambda x: np.full(3, [1.0, x[0], 2.0], object),
    lambda x: np.zeros_like(x, dtype=object),
    lambda x: np.ones(3, object, like=x),
]


@pytest.mark.parametrize("make", OBJECTS)
def test_arrays_of_objects_that_are_made_full(make):
    def written(x):
        made = make(x)
        made[:1] = x[1] * 3.0
        return np.sum(made**2 * x[0])

    agrees(written, np.array([1.5, 0.7, 0.4]))


def test_copies_are_independent():
    def fun(x):
        z = x * 1.0
        a, b, c, d = z.copy(), np.copy(z), np.array(z), z + 0
        z[0] = 100.0
        a[1] = 200.0
        b[2] = 300.0
        c[3] = 400.0
        return z, a, b, c * 1.0, d

    agrees(fun, V)


def test_copies_share_nodes_and_no_memory():
    def fun(x):
        z = x * 1.0
        other = z.copy()
        a, b = other.ravel(), z.ravel()  # one node, two arrays
        z += x[0, 0]
        c = x.copy(order="F").ravel()  # a copy, where that of a C-contiguous array is a view
        d = (x * 1.0).ravel()
        d *= 3.0
        other[0] = 5.0
        return a * 1.0, b * 1.0, c, d

    agrees(fun, M)


# -- operators -----------------------------------------------------------------------------------------------------


def test_operators():
    def fun(x):
        z = x * 1.0
        alias = z
        z += x
        z -= 0.3
        z *= x
        z /= 1.7
        z **= 2
        z //= 0.37
        z += x
        z %= 0.9
        m = x.reshape(2, 2) * 1.0
        m @= np.array([[1.0, 2.0], [0.5, 1.0]])
        i = np.argsort(x)
        i <<= 2
        i |= 1
        i ^= 2
        i &= 7
        i >>= 1
        return alias, m, i * x

    agrees(fun, V)


def test_numbers_are_immutable():
    def fun(x):
        s = np.sum(x)
        t = s
        t += 1
        a = x[0]
        a *= 2
        return s * t, a, x

    agrees(fun, V)


def test_zero_dimensional_arrays():
    def fun(x):
        z = x.copy()
        y = z
        z += 1.5
        z *= z
        y[...] = y * 2
        y[()] = y + x
        y[y > 100] = 0.0
        y.fill(y * 3)
        return z

    agrees(fun, np.array(0.7))


@pytest.mark.parametrize("write", [lambda z, v: np.putmask(z, z < 0, v), lambda z, v: np.put(z, [7], v)])
def test_no_values_are_written_nowhere(write):
    def fun(x):
        z = x * 1.0
        write(z, x[x > 5.0])
        return z

    agrees(fun, V)


def test_zero_dimensional_arrays_are_told_what_is_true():
    def fun(x):
        z = np.array(2.0)
        y = x * z
        z[...] = x[0] > 0
        z[x[1] > 0] = x[2] > 5
        return y.sum() + z

    agrees(fun, V)


def test_dtypes_stay():
    """The left side keeps its dtype; what NumPy does not cast in place, symgrad does not either."""
    single = np.array([0.5, 1.5], dtype=np.float32)

    def narrow(x):
        z = x * np.float32(1)
        z += np.array([0.25, 0.5])
        z[0] = np.sum(x) * 1.0
        return np.sum(z * z), z.dtype == np.float32

    kept = narrow(single)[1]
    derivative = grad(narrow, has_aux=True)
    for _ in range(3):
        g, aux = derivative(single)
        assert g.dtype == np.float32
        assert bool(aux) is bool(kept) is True
    assert np.allclose(g, [2 * 2.0 + 0.0, 2 * 2.0 + 2 * 2.0])

    def integers(x):
        i = np.argsort(x)
        i += x
        return np.sum(i)

    with pytest.raises(TypeError, match="cast"):
        grad(integers)(V)
    with pytest.raises(TypeError, match="cast"):
        grad(lambda x: np.sum(x.astype(int).__iadd__(0.5)))(V)

    def truncated(x):
        i = np.argsort(x)
        i[0] = x[3] * 1.3  # assignment casts anything
        return np.sum(i * x)

    agrees(truncated, V)


def test_shapes_stay():
    def grown(x):
        z = x * 1.0
        z += np.ones((2, 4))
        return np.sum(z)

    with pytest.raises(ValueError, match="fit"):
        grad(grown)(V)
    with pytest.raises(ValueError, match="broadcast"):
        grad(lambda x: (x * 1.0).__setitem__(slice(2), x[:3]))(V)
    agrees(lambda x: (x * 1.0).__iadd__(x[:1]), V)


# -- out= and where= -----------------------------------------------------------------------------------------------


def into(compute, shape=(3, 4)):
    def fun(x):
        out = np.full(shape, 0.25, like=x)
        returned = compute(x, out)
        return out, returned

    return fun


OUT = {
    "exp": into(lambda x, o: np.exp(x, out=o)),
    "tuple": into(lambda x, o: np.multiply(x, x, out=(o,))),
    "positional": into(lambda x, o: np.add(x, 1.0, o)),
    "itself": into(lambda x, o: np.multiply(o, x, out=o)),
    "where": into(lambda x, o: np.sqrt(x, out=o, where=x > 0)),
    "plain where": into(lambda x, o: np.divide(1.0, x, out=o, where=np.arange(4) > 1)),
    "broadcast": into(lambda x, o: np.sin(x[0], out=o)),
    "view": into(lambda x, o: np.sum(x, axis=0, out=o[1])),
    "sum": into(lambda x, o: x.sum(axis=1, out=o), (3,)),
    "sum by position": into(lambda x, o: np.sum(x, 0, None, o), (4,)),
    "mean": into(lambda x, o: np.mean(x, axis=0, out=o), (4,)),
    "max": into(lambda x, o: x.max(0, o), (4,)),
    "reduce": into(lambda x, o: np.add.reduce(x, axis=1, out=o), (3,)),
    "accumulate": into(lambda x, o: np.add.accumulate(x, axis=1, out=o)),
    "cumsum": into(lambda x, o: np.cumsum(x, axis=1, out=o)),
    "matmul": into(lambda x, o: np.matmul(x, x.T, out=o), (3, 3)),
    "dot": into(lambda x, o: x.dot(x.T, o), (3, 3)),
    "clip": into(lambda x, o: np.clip(x, -0.55, 0.57, out=o)),
    "clip method": into(lambda x, o: x.clip(-0.55, 0.57, out=o)),
    "concatenate": into(lambda x, o: np.concatenate([x, x * 2], out=o), (6, 4)),
    "stack": into(lambda x, o: np.stack([x, x * 2], out=o), (2, 3, 4)),
    "take": into(lambda x, o: np.take(x, [1, 0], axis=0, out=o), (2, 4)),
}


@pytest.mark.parametrize("fun", OUT.values(), ids=OUT)
def test_out(fun):
    agrees(fun, M)


OF_NO_SHAPE = {
    "sum": into(lambda x, o: np.sum(x[:, :1], axis=0, out=o), (2,)),
    "sum of all": into(lambda x, o: x.sum(out=o), (1,)),
    "reduce": into(lambda x, o: np.multiply.reduce(x, axis=1, out=o), (2, 3)),
    "mean": into(lambda x, o: np.mean(x, axis=0, out=o), (1, 4)),
    "std": into(lambda x, o: np.std(x[:, :1], axis=0, out=o), (4,)),
    "max": into(lambda x, o: x[:, :1].max(0, o), (4,)),
    "matmul": into(lambda x, o: np.matmul(x[:1], x[:1].T, out=o), (3, 1)),
    "dot": into(lambda x, o: x[0].dot(x[0], o), (3,)),
    "accumulate": into(lambda x, o: np.add.accumulate(x[0], out=o), ()),
}


@pytest.mark.parametrize("fun", OF_NO_SHAPE.values(), ids=OF_NO_SHAPE)
def test_out_of_another_shape(fun):
    """NumPy's functions do not spread what they give, but those that go element by element."""
    for mode in ("auto", "dynamic"):
        with pytest.raises(ValueError, match=r"dimension|shape|broadcast|output array|acceptable"):
            grad(lambda x: np.sum(fun(x)[0]), mode=mode)(M)
    agrees(into(lambda x, o: np.matmul(x, x.T, out=o), (2, 3, 3)), M)
    agrees(into(lambda x, o: np.clip(x[:1], -0.55, 0.57, out=o)), M)


def test_several_outputs():
    def fun(x):
        q, r = np.zeros_like(x), np.ones_like(x)
        both = np.divmod(x, 0.61, out=(q, r))
        whole = np.zeros_like(x)
        part, same = np.modf(x, out=(None, whole))
        return q, r, both, part, same, whole, np.divmod(x, 0.61, out=(q, r), where=x > 0)

    agrees(fun, M)


def test_out_casts_as_numpy():
    def fun(x, casting):
        out = np.zeros(4, dtype=np.float32, like=x)
        np.multiply(x, 2.0, out=out, casting=casting)
        return np.sum(out)

    assert np.allclose(grad(fun)(V, "same_kind"), 2.0)
    with pytest.raises(TypeError, match="cast"):
        grad(fun)(V, "safe")
    with pytest.raises(TypeError, match="cast"):
        grad(lambda x: np.sum(np.add(x, 1.0, out=np.zeros(4, dtype=int, like=x))))(V)


# -- methods and functions that write ------------------------------------------------------------------------------

WRITES = {
    "sort": lambda z, x: z.sort(),
    "partition": lambda z, x: (z.partition(2), z.sort()),
    "fill": lambda z, x: z.fill(x[0] ** 2),
    "put": lambda z, x: z.put([0, -1], [x[1] ** 2, 3.0]),
    "put repeats": lambda z, x: np.put(z, [3, 1, 0], x[:2] ** 2),
    "put wrap": lambda z, x: np.put(z, [5, -6], x[0] ** 2, mode="wrap"),
    "put clip": lambda z, x: np.put(z, [9], x[0] ** 2, mode="clip"),
    "copyto": lambda z, x: np.copyto(z, x**2),
    "copyto where": lambda z, x: np.copyto(z, x**2, where=x > 0),
    "copyto number": lambda z, x: np.copyto(z, x[0], where=[True, False, True, False]),
    "putmask": lambda z, x: np.putmask(z, x > 0, x**2),
    "putmask repeats": lambda z, x: np.putmask(z, x > 0, x[:2] ** 2),
    "place": lambda z, x: np.place(z, x > 0, [x[0] ** 2, x[1]]),
    "put_along_axis": lambda z, x: np.put_along_axis(z, np.array([1, 2]), x[:2] ** 2, 0),
    "add.at": lambda z, x: np.add.at(z, [0, 0, 2], x[1] ** 2),
    "add.at slice": lambda z, x: np.add.at(z, slice(1, None), x[:3] ** 2),
    "subtract.at": lambda z, x: np.subtract.at(z, ([1, 1],), x[:2] ** 2),
    "subtract.at bools": lambda z, x: (np.subtract.at(z, [0, 1, 1, 3], x > 0), np.subtract.at(z, [0, 1], [True, False])),
    "subtract.at bytes": lambda z, x: np.subtract.at(z, [0, 0], np.array([1, 200], np.uint8)),
    "subtract.at small": lambda z, x: (np.subtract.at(z, 2, np.int8(-128)), np.subtract.at(z, 2, True)),
    "multiply.at": lambda z, x: np.multiply.at(z, [3, 1], x[2]),
    "maximum.at": lambda z, x: np.maximum.at(z, [0, 0, 2, 1], x[[1, 2, 3, 0]] ** 2),
    "minimum.at": lambda z, x: np.minimum.at(z, np.array([[3, 2], [3, 0]]), x[:2, None] ** 2 * [1, 2]),
    "fmax.at": lambda z, x: np.fmax.at(z, [2, 2, 1], x[0]),
    "fmin.at": lambda z, x: np.fmin.at(z, [[-1, 0, 3, 0]], np.sin(x)),
    "negative.at": lambda z, x: np.negative.at(z, [0]),
    "exp.at": lambda z, x: np.exp.at(z, slice(0, 2)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_functions_that_write(write):
    agrees(lambda x: written(x, write), V)


@pytest.mark.parametrize("dtype", [int, bool, np.uint8, np.float32, float])
@pytest.mark.parametrize("what", [0.5, 3, True, 1j, [1, 2, 3, 4], [0.5, 1, 2, 3], np.float32(2)], ids=str)
def test_copyto_casts_as_numpy(dtype, what):
    def fun(x):
        z = np.zeros(4, dtype)
        np.copyto(z, what)
        return np.sum(z * x)

    if np.can_cast(np.result_type(dtype, what) if np.isscalar(what) else np.array(what).dtype, dtype, "same_kind"):
        agrees(fun, V)
        return
    with pytest.raises(TypeError, match="cast") as expected:
        fun(V)
    for mode in ("auto", "dynamic"):
        with pytest.raises(TypeError, match="cast") as caught:
            grad(fun, mode=mode)(V)
        told, own = (str(error.value).split(" from ") for error in (expected, caught))
        assert told[0] == own[0]
        assert told[1].split(" to ")[1] == own[1].split(" to ")[1]  # before NumPy 2.1, it tells of ``1j`` in another precision


def test_copyto_takes_lists_of_traced_numbers():
    def fun(x):
        z = np.zeros(3, like=x)
        np.copyto(z, (x[1], x[0] ** 2, 3))
        return np.sum(z * x[:3])

    agrees(fun, V)


def test_functions_that_write_matrices():
    def fun(x):
        a, b, c, d = x * 1.0, x * 1.0, x * 1.0, x.T * 1.0
        np.fill_diagonal(a, x[0, 1] ** 2)
        np.fill_diagonal(d, x[0, :3] ** 2, wrap=True)
        np.put_along_axis(b, np.argmax(x, axis=1)[:, None], x[:, :1] ** 2, axis=1)
        c.sort(axis=0)
        return a, b, c, d

    agrees(fun, M)


def test_at_refuses_what_repeats():
    with pytest.raises(NotDifferentiable, match=r"np.multiply.at has a derivative rule only where no index repeats"):
        grad(lambda x: np.multiply.at(x * 1.0, [0, 0], x[:2]))(V)


def largest(x, v, places):
    """Of segments, as softmax over the edges of a graph takes them."""
    z = np.full(4, -np.inf)
    np.maximum.at(z, places, x * v)
    return np.sum(np.where(np.isfinite(z), z, 0.0) ** 2) + np.sum(np.exp(x - z[places]))


def test_extremes_at_places_that_are_arguments():
    derivative, dynamic = grad(largest, (0, 1)), grad(largest, (0, 1), mode="dynamic")
    rng = np.random.default_rng(0)
    for number in range(6):
        places = np.arange(4).repeat(2)[:6] if number == 3 else rng.integers(0, 4, 6)
        args = rng.normal(size=6), rng.normal(size=6), places
        for one, other in zip(derivative(*args), dynamic(*args), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert derivative.cache_info().misses == 2
    batch = rng.normal(size=(3, 6)), rng.normal(size=(3, 6)), rng.integers(0, 4, (3, 6))
    for flags in itertools.product((0, None), repeat=3):
        if set(flags) != {None}:
            args = [each if flag == 0 else each[0] for each, flag in zip(batch, flags, strict=True)]
            found = vmap(grad(largest), in_axes=flags)(*args)
            every = [[a[i] if flag == 0 else a for a, flag in zip(args, flags, strict=True)] for i in range(3)]
            np.testing.assert_allclose(found, [grad(largest)(*one) for one in every], rtol=1e-12)


def test_extremes_take_a_row_for_each_row_of_places():
    """Where NumPy may read beyond its memory."""
    places, row = np.array([[0, 1], [1, 2]]), np.array([3.0, -1.0])
    for _ in range(200):
        np.testing.assert_array_equal(runtime.combined_at(np.zeros(4), row * 1.0, places, "maximum"), [3.0, 3.0, 0.0, 0.0])


def test_extremes_at_a_place_share_evenly():
    """Those that tie, and what was there among them."""

    def fun(x, v):
        z = x * 1.0
        np.maximum.at(z, [0, 0, 1], v)
        return np.sum(z)

    for mode in ("auto", "dynamic"):
        derivative = grad(fun, (0, 1), mode=mode)
        for _ in range(3):
            x, v = derivative(np.array([1.0, 0.0]), np.array([1.0, 1.0, 5.0]))
            np.testing.assert_allclose(x, [1 / 3, 0.0])
            np.testing.assert_allclose(v, [1 / 3, 1 / 3, 1.0])


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.logaddexp, np.maximum])
def test_at_refuses_what_is_larger(ufunc, mode):
    """As NumPy does, where an assignment would take axes of length 1."""
    for places, shape in ((0, (1,)), ([0, 1], (1, 2)), ([1], (3,))):
        with pytest.raises(ValueError, match="broadcast"):
            ufunc.at(np.ones(4), places, np.ones(shape))
        with pytest.raises(ValueError, match=r"broadcast|sequence"):
            grad(lambda x, y, places=places: ufunc.at(x * 1.0, places, y), mode=mode)(V, np.ones(shape))


def test_random_shuffle_of_indices_only():
    """A plain array of indices may be changed at will."""

    def fun(x):
        order = np.arange(4)
        order[[0, 1]] = order[[1, 0]]
        order += 0
        return x[order] * x

    agrees(fun, V)


# -- what is refused -----------------------------------------------------------------------------------------------

REFUSED = {
    "argument": lambda x: x.__setitem__(0, 1.0),
    "argument +=": lambda x: x.__iadd__(1.0),
    "view of an argument": lambda x: x[1:].__setitem__(0, 1.0),
    "T of an argument": lambda x: x.T.__iadd__(1.0),
    "argument out": lambda x: np.add(x, x, out=x),
    "argument sort": lambda x: x.sort(),
    "argument at": lambda x: np.add.at(x, [0], 1.0),
    "argument copyto": lambda x: np.copyto(x, 0.0),
    "resize": lambda x: (x * 1.0).resize(8),
    "shape": lambda x: setattr(x * 1.0, "shape", (2, 2)),
    "setflags": lambda x: (x * 1.0).setflags(write=False),
}


@pytest.mark.parametrize("fun", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_refused(fun, mode):
    with pytest.raises(MutatedInput, match=r"test_inplace\.py:\d+"):
        grad(fun, mode=mode)(V.copy())


def test_read_only_views():
    with pytest.raises((ValueError, MutatedInput), match="read-only"):
        grad(lambda x: np.broadcast_to(x * 1.0, (2, 4)).__setitem__((0, 0), 1.0))(V)
    with pytest.raises((ValueError, MutatedInput), match="read-only"):
        grad(lambda x: np.diagonal(x * 1.0).__setitem__(0, 1.0))(M)


def test_arguments_are_not_changed():
    x = V.copy()

    def fun(x):
        z = x.copy()
        z[0] = 5.0
        y = x[1:].copy()
        y *= 2
        return np.sum(z * z) + np.sum(y)

    derivative = grad(fun)
    for _ in range(3):
        derivative(x)
        assert np.array_equal(x, V)


# -- arrays made by the function -----------------------------------------------------------------------------------


def filled(zeros):
    def fun(x):
        out = zeros(x)
        for i in range(4):
            out[i] = x[i] * x[-1]
        return out

    return fun


MADE = {
    "zeros_like": lambda x: np.zeros_like(x),
    "empty_like": lambda x: np.empty_like(x),
    "ones_like": lambda x: np.ones_like(x),
    "full_like": lambda x: np.full_like(x, 3.0),
    "zeros like": lambda x: np.zeros(4, like=x),
    "symgrad.numpy.zeros": lambda x: snp.zeros(4),
    "symgrad.numpy.empty": lambda x: snp.empty((4,)),
    "symgrad.numpy.array": lambda x: snp.array([1.0, 2.0, 3.0, 4.0]),
    "symgrad.numpy.arange": lambda x: snp.arange(4.0),
    "symgrad.numpy.eye": lambda x: snp.eye(4)[0],
    "dtype=object": lambda x: np.zeros(4, dtype=object),
    "list": lambda x: [0.0] * 4,
}


@pytest.mark.parametrize("zeros", MADE.values(), ids=MADE)
def test_arrays_to_fill(zeros):
    fun = filled(zeros)
    agrees(lambda x: np.stack(fun(x)) if isinstance(fun(x), list) else fun(x) * np.ones(4), V)
    assert np.allclose(jacobian(lambda x: snp.asarray(fun(x)))(V), V[-1] * np.eye(4) + np.outer(V, np.eye(4)[3]))


# -- at random -----------------------------------------------------------------------------------------------------


@st.composite
def steps(draw):
    """A program of views of one array and writes through them, as a list of instructions."""
    view = st.sampled_from(["T", "ravel", "[1:]", "[:, 0]", "[0]", "[::-1]", "[[0, 1]]", "reshape(-1)", "copy()", "[...]"])
    write = st.sampled_from(["+= s", "*= s", "[0] = s", "[-1] += s", "[::2] *= s", "[...] = s"])
    return draw(st.lists(st.tuples(st.integers(0, 5), view | write), min_size=2, max_size=10))


@given(steps())
def test_views_at_random(program):
    def fun(x):
        arrays, s = [x * 1.0], x[0, 0]
        for which, text in program:
            y = arrays[which % len(arrays)]
            few = y.size == 0 or y.ndim == 0 or (y.ndim == 1 and text in ("[:, 0]", "[0]"))
            if few or (y.shape[0] < 2 and text == "[[0, 1]]"):
                continue
            if text == "T":
                arrays.append(y.T)
            elif text in ("ravel", "copy()", "reshape(-1)"):
                arrays.append({"ravel": y.ravel, "copy()": y.copy, "reshape(-1)": lambda y=y: y.reshape(-1)}[text]())
            elif text == "+= s":
                y += s
            elif text == "*= s":
                y *= s
            elif text == "[0] = s":
                y[0] = s
            elif text == "[-1] += s":
                y[-1] += s
            elif text == "[::2] *= s":
                y[::2] *= s
            elif text == "[...] = s":
                y[...] = s
            else:
                key = {"[1:]": slice(1, None), "[:, 0]": (slice(None), 0), "[0]": 0, "[::-1]": slice(None, None, -1),
                       "[[0, 1]]": [0, 1], "[...]": ...}[text]  # fmt: skip
                arrays.append(y[key])
            s = s * 0.9 + 0.1
        return [a * 1.0 for a in arrays]

    agrees(fun, M, modes=("dynamic",))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")  # by NumPy 2.5
def test_results_are_views_where_numpys_are():
    """Writing to what NumPy returns as a new array must not change the argument, and the other way round."""
    wrong = []
    for op in OPERATIONS:
        if REGISTRY.get(op.key) is not op:
            continue
        for case in cases(op):
            traced = []

            def fun(*xs, case=case, traced=traced):
                leaves = flatten(case.call(*xs))[0]
                traced.extend([any(np.may_share_memory(leaf, x) for x in xs) for leaf in leaves])
                return 0.0

            plain = case.call(*case.primals)
            if case.primals:
                grad(fun, mode="dynamic")(*case.primals)
            for a, follows in zip(flatten(plain)[0], traced, strict=False):
                views = any(np.may_share_memory(a, x) for x in case.primals)
                if isinstance(a, np.ndarray) and a.size and views != follows:
                    wrong.append(f"{case!r}: {'a view' if views else 'an array of its own'}")
    assert not wrong, "\n".join(wrong)


ALIASES = {
    "asarray": np.asarray,
    "asarray in rows": lambda y: np.asarray(y, order="C"),
    "asarray in columns": lambda y: np.asarray(y, order="F"),
    "array": np.array,
    "array, no copy": lambda y: np.array(y, copy=None),
    "array in columns": lambda y: np.array(y, copy=None, order="F"),
    "finite": np.asarray_chkfinite,
    "finite in columns": lambda y: np.asarray_chkfinite(y, order="F"),
    "in rows": np.ascontiguousarray,
    "in columns": np.asfortranarray,
    "require": np.require,
    "require rows": lambda y: np.require(y, requirements="C"),
    "require columns": lambda y: np.require(y, None, ["F", "W"]),
    "require an owner": lambda y: np.require(y, requirements=["O"]),
    "float64": np.float64,
    "float32": np.float32,
    "astype": lambda y: y.astype(float, copy=False),
    "astype in columns": lambda y: y.astype(float, order="F"),
    "diff": lambda y: np.diff(y, n=0),
    "broadcast": lambda y: np.broadcast_arrays(y, y)[1],
    "meshgrid": lambda y: np.meshgrid(y, copy=False)[0],
    "copied meshgrid": lambda y: np.meshgrid(y)[0],
    "nan_to_num": lambda y: np.nan_to_num(y, copy=False),
    "ravel": np.ravel,
    "ravel of columns": lambda y: y.ravel("F"),
    "ravel as it lies": lambda y: y.ravel("K"),
    "ravel by kind": lambda y: y.ravel("A"),
    "flatten as it lies": lambda y: y.flatten("K"),
    "reshape": lambda y: y.reshape(-1),
    "reshape of columns": lambda y: y.reshape(-1, order="F"),
    "reshape by kind": lambda y: np.reshape(y, -1, order="A"),
    "copied reshape": lambda y: np.reshape(y, -1, copy=True),
}
if "copy" not in inspect.signature(np.reshape).parameters:
    del ALIASES["copied reshape"]  # from NumPy 2.1 on
LAID = {
    "product": lambda x: x * 2.0,
    "transpose": lambda x: (x * 2.0).T,
    "copied transpose": lambda x: (x * 2.0).T.copy("K"),
    "array of a transpose": lambda x: np.array((x * 2.0).T),
    "array of a transpose in rows": lambda x: np.array((x * 2.0).T, order="C"),
    "columns": lambda x: np.asfortranarray(x * 2.0),
    "function of columns": lambda x: np.exp(np.asfortranarray(x)),
    "function in columns": lambda x: np.multiply(x, 2.0, order="F"),
    "zeros": lambda x: np.zeros_like(x.T) + x.T,
    "ones": lambda x: np.ones_like((x * 2.0).T) * 3.0,
    "full": lambda x: np.full_like((x * 2.0).T, 3.0) * x[0, 0],
    "zeros in columns": lambda x: np.zeros(x.shape, order="F") + x,
    "seen before": lambda x: (np.asfortranarray(x) * 3.0, x * 3.0)[1],
    "seen before in columns": lambda x: (x * 3.0, np.asfortranarray(x) * 3.0)[1],
    "select": lambda x: np.select([x.T > 0], [x.T * 1.0], 0.5),
    "gradient": lambda x: np.gradient(x.T * 1.0, axis=0),
    "backwards": lambda x: (x * 2.0)[::-1],
    "stack": lambda x: np.moveaxis(np.stack([x, 2 * x]), 0, -1) * 1.0,
    "copy in rows": lambda x: np.copy(x.T, order="C"),
    "copy in columns": lambda x: np.copy(x * 2.0, order="F"),
    "out of rows": lambda x: np.multiply(x.T, 2.0, out=np.zeros(x.shape, like=x)),
    "out of columns": lambda x: np.multiply(x, 2.0, out=np.zeros(x.shape, order="F", like=x)),
    "a view, out": lambda x: np.einsum("ij->ji", x, out=np.zeros(x.shape, like=x)),
    "added to columns": lambda x: operator.iadd(np.zeros(x.shape, order="F", like=x), x),
}


@pytest.mark.parametrize("laid", LAID)
@pytest.mark.parametrize("alias", ALIASES)
def test_what_is_a_view_and_what_a_copy(laid, alias):
    """It hangs on how arrays lie in memory, those of the arguments too, which may be others in the next call."""

    def fun(x):
        y = LAID[laid](x)
        z = ALIASES[alias](y)
        z[...] = z * np.arange(z.size).reshape(z.shape) + 1.0
        return np.sum(y * np.arange(y.size).reshape(y.shape)) + np.sum(z, dtype=float)

    x = M[:2, :2] / 4
    fans = [x, x + 0.25, x + 0.5, np.asfortranarray(x), x[::-1], np.repeat(x, 2, 1)[:, ::2], np.repeat(x, 2, 0)[::2].T]
    for mode in ("auto", "dynamic"):
        derivative = value_and_grad(fun, mode=mode)
        for fan in fans:
            np.testing.assert_allclose(derivative(fan)[0], fun(fan.copy("K")), rtol=1e-12)


def test_order_in_memory_is_looked_at():
    """A decision on it is one that other calls may take otherwise."""
    derivative = grad(lambda x: np.sum(x) * (2.0 if np.isfortran(x) else 3.0))
    for x in (M, M, M, M.T, np.asfortranarray(M), M[:, ::2]):
        assert derivative(x)[0, 0] == (2.0 if np.isfortran(x) else 3.0)


@pytest.mark.parametrize("lock", [lambda y: setattr(y.flags, "writeable", False), lambda y: y.flags.__setitem__("W", False)])
@pytest.mark.parametrize("write", [lambda y: y.__setitem__(0, 1.0), lambda y: np.add(y, 1.0, out=y), lambda y: y[1:].fill(2.0)])
def test_locked_arrays_stay_as_they_are(lock, write):
    """As NumPy has it: to write into one is an error, which the function may catch; others of the same numbers are free."""

    def f(x):
        y, z = x * 2.0, x * 2.0
        lock(y)
        z[0] = 3.0
        try:
            write(y)
        except ValueError:
            return np.sum(y * y) + np.sum(z) + y.flags.writeable
        return np.sum(x)

    agrees(f, np.array([1.0, 2.0, 3.0]))


def unlocked_later(x):
    y = x * 2.0
    y.flags.writeable = False
    z = y[1:]
    y.flags.writeable = True
    with contextlib.suppress(ValueError):
        z[0] = 40.0
    return np.sum(y) + z.flags.writeable


def shown_before(x):
    y = x * 2.0
    z = y[1:]
    y.flags.writeable = False
    z[0] = 40.0
    return np.sum(y * x) + 10 * z.flags.writeable


def unlocked_alone(x, before=True):
    y = x * 2.0
    y.flags.writeable = not before
    z = y[1:].reshape(-1)
    y.flags.writeable = False
    try:
        z.flags.writeable = True
    except ValueError:
        return np.sum(y) + np.sum(z)
    return np.sum(y)


def locked_alone(x):
    y = x * 2.0
    z = y[1:]
    z.flags.writeable = False
    z.flags.writeable = True
    z[0] = 5.0
    return np.sum(y * x)


def flags_of_before(x):
    y = x * 1.0
    flags = y.flags
    y.flags.writeable = False
    return np.sum(y) + 10 * flags.writeable + 100 * y.flags.writeable + y.flags["BEHAVED"]


def copies(x):
    y = x * 1.0
    y.flags.writeable = False
    z = y[1:].copy()
    z[0] = 3.0
    return np.sum(y) + np.sum(z * z)


@pytest.mark.parametrize(
    "fun",
    [
        unlocked_later,
        shown_before,
        unlocked_alone,
        functools.partial(unlocked_alone, before=False),
        locked_alone,
        flags_of_before,
        copies,
    ],
)
def test_views_are_locked_as_they_were_made(fun):
    agrees(fun, np.array([1.0, 2.0, 3.0, 4.0]))


@pytest.mark.skipif(not hasattr(np, "astype"), reason="NumPy 2.1")
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_reshapes_that_must_not_copy(mode):
    """As an array lies in memory in each call, NumPy gives a view, or raises."""

    def f(x):
        y = x.copy("A")
        try:
            y.reshape(-1, copy=False)[0] *= 3.0
        except ValueError:
            return np.sum(x * x)
        return np.sum(y * y)

    value = value_and_grad(f, mode=mode)
    for x in (M, M, M, M.T, np.asfortranarray(M), M):
        found, slope = value(x)
        assert np.isclose(found, f(x))
        np.testing.assert_allclose(slope, 2 * x * (1 + 8 * (np.arange(x.size).reshape(x.shape) == 0) * x.flags.c_contiguous))


@pytest.mark.parametrize("order", "AK")
def test_elements_as_they_lie(order):
    fun = lambda x: np.sum(np.ravel(x, order) * np.sqrt(np.arange(x.size)))
    derivative = grad(fun)
    for x in (M, M, M, M.T, np.asfortranarray(M), M[:, ::2], np.asfortranarray(M)[:, ::2], M[::-1]):
        np.testing.assert_allclose(np.sum(derivative(x) * x), fun(x))  # it is linear


def test_zeros_that_are_filled_are_no_zeros_of_others():
    def fun(x, y):
        z = np.zeros_like(y)
        z[...] = x
        z[..., 0] -= 0.5
        return np.sum(np.sin(z))

    derivative, x, y = grad(fun, argnums=(0, 1)), np.array([0.1, 0.2, 0.3]), np.ones(3)
    space = {"np": np, "runtime": runtime}
    exec(derivative.source(x, y), space)
    for a, b in zip(space["grad_fun"](x, y), derivative(x, y), strict=True):
        np.testing.assert_allclose(a, b)


MIXED = {
    "array": lambda t: np.sum(np.sin(np.array([t[0], 1.0]))),
    "nested": lambda t: np.sum(np.exp(np.array([[t[0], 1], [0.0, t[1]]]))),
    "r_": lambda t: np.exp(np.r_[t[0], t[1], 2.0]).sum(),
    "c_": lambda t: np.sum(np.tanh(np.c_[t, np.ones(2)])),
    "inverse": lambda t: np.sum(np.linalg.inv(np.array([[t[0], t[1]], [-t[1], t[0]]]))),
    "transform": lambda t: np.abs(np.fft.fft(np.array([t[0], 1.0, t[1]]))[1]),
    "asarray": lambda t: np.sqrt(np.asarray((t[0], 2.0))).prod(),
    "determinant": lambda t: np.abs(np.linalg.det(np.array([[t[0], 1.0], [1j, t[1] ** 2]]))),
    "dtype": lambda t: np.sum(np.array([t[0], 1], dtype=float) ** 2) + np.sum(np.asarray(t, float) ** 2),
    "matrix of rows": lambda t: np.linalg.norm(np.array([t, np.ones(2)]) @ t),
    "norm of a list": lambda t: np.linalg.norm([t[0], 1.0, t[1] * t[0]]),
    "solve of lists": lambda t: np.linalg.solve([[t[0], 1.0], [0.0, 2.0]], [t[1], 1.0]).sum(),
    "statistics of lists": lambda t: np.mean([t[0], 1.0]) * np.std([t[0], t[1], 2.0]) + np.median((t[0], t[1])),
    "interpolated": lambda t: np.interp([t[0]], [0.0, 1.0], [t[1], t[0]]).sum(),
    "averaged": lambda t: np.average([t[0], t[1]], weights=[t[0], 1.0]) + np.nanmean([t[0], t[1]]),
    "joined": lambda t: np.sum(np.r_[0.0, t**2, 1:3] * np.c_[np.arange(5.0)][:, 0]) + np.sum(np.c_[t, t**2] @ t),
    "collected": lambda t: (lambda parts: np.array(parts) @ parts)([v**2 for v in t]),
    "handed on": lambda t: functools.reduce(lambda a, v: a + np.linalg.norm([v, 1.0]), t, 0.0),
    "written to": lambda t: (lambda a: (a.__setitem__(0, 3 * a[1]), np.sum(a**2))[1])(np.array([t[0], t[1]])),
    "no copy": lambda t: (lambda y: (np.asarray(y).__setitem__(0, y[1]), np.sum(y**2))[1])(t * 2),
    "a copy": lambda t: (lambda y: (np.array(y).__setitem__(0, y[1]), np.sum(y**2))[1])(t * 2),
    "another order": lambda t: (lambda y: (np.asfortranarray(y).__setitem__((0, 0), y[0, 1]), np.sum(y**2))[1])(np.outer(t, t)),
    "frompyfunc": lambda t: np.linalg.norm(np.frompyfunc(lambda v: v * 3, 1, 1)(np.asarray(t))),
    "frompyfunc as numbers": lambda t: np.linalg.norm(np.frompyfunc(lambda v: v * 3, 1, 1)(np.asarray(t)).astype(float)),
    "initial": lambda t: np.sum(t, initial=np.exp(t[0])) * np.max(t, initial=2.0 * t[1]),
    "before and after": lambda t: np.ediff1d(t, to_begin=[t[0]], to_end=(t[1], 2.0)) @ np.arange(4.0),
    "beside an array": lambda t: np.prod(np.broadcast_arrays(t, [t[1], 1.0])) + np.prod(np.meshgrid(t, [t[0], 2.0])),
    "trimmed": lambda t: (lambda some: some[1] * len(some) + len(some * 2) * t[0])(np.trim_zeros([0.0, t[0], t[1], 0.0])),
    "padded": lambda t: np.pad(t, 1, constant_values=(t[0], 1.0)) @ np.pad(t, 1, mode="linear_ramp", end_values=(0.5, t[1])),
}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("name", MIXED)
def test_arrays_made_of_traced_numbers(name, mode):
    """NumPy would make arrays of objects, which few of its functions take."""
    fun, t = MIXED[name], np.array([0.3, 0.4])
    derivative = grad(fun, mode=mode)
    steps = 1e-6 * np.eye(2)
    expected = [(fun(t + step) - fun(t - step)) / 2e-6 for step in steps]
    for _ in range(3):
        np.testing.assert_allclose(derivative(t), expected, rtol=1e-7)
    v = np.array([0.7, -0.3])
    np.testing.assert_allclose(jvp(fun, (t,), (v,))[1], expected @ v, rtol=1e-7)
    twice = grad(lambda t: grad(fun)(t) @ v, mode=mode)
    differences = [(derivative(t + step) - derivative(t - step)) @ v / 2e-6 for step in steps]
    for _ in range(3):
        np.testing.assert_allclose(twice(t), differences, rtol=1e-6, atol=1e-8)


AT_TIES = {
    "max of a list": (lambda t: np.max([t, 2 * t]), 1.5),
    "maximum": (lambda t: np.maximum(np.array([t, t]), np.array([2 * t, t])).sum(), 2.5),
    "clip": (lambda t: np.clip([t], 0.0, 1.0)[0], 1.0),
    "abs": (lambda t: np.sum(np.abs([t, 2 * t])), 0.0),
    "std": (lambda t: np.std([t, 2 * t]), 0.0),
}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("name", AT_TIES)
def test_arrays_of_traced_numbers_at_ties(name, mode):
    """Arrays of objects would compare element by element, and take the first."""
    fun, expected = AT_TIES[name]
    derivative = grad(fun, mode=mode)
    for _ in range(3):
        assert derivative(0.0) == expected


def _shifted(x):
    b = np.zeros(len(x))
    b[1:] = x[:-1] ** 2
    return b


class _Shifting:
    def shift(self, x):
        return _shifted(x)

    def __call__(self, x):
        return _shifted(x)


HANDED_ON = {
    "to apply_along_axis": lambda t: np.apply_along_axis(_shifted, 0, np.outer(t, t)),
    "by keyword": lambda t: np.apply_along_axis(func1d=_shifted, axis=0, arr=t),
    "a method": lambda t: np.apply_along_axis(_Shifting().shift, 0, t),
    "an object": lambda t: np.apply_along_axis(_Shifting(), 0, t),
    "to piecewise": lambda t: np.piecewise(t, [t > 0.0, t <= 0.0], [_shifted, _Shifting()]),
}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("name", HANDED_ON)
def test_functions_that_fill_arrays_are_followed(name, mode):
    fun, t = HANDED_ON[name], np.array([0.3, 0.4, -0.2])
    derivative = grad(lambda t: np.sum(fun(t) * [1.0, 2.0, 3.0] + 0.0), mode=mode)
    expected = [np.sum((fun(t + e) - fun(t - e)) * [1.0, 2.0, 3.0]) / 2e-6 for e in 1e-6 * np.eye(3)]
    for _ in range(3):
        np.testing.assert_allclose(derivative(t), expected, rtol=1e-7, atol=1e-9)


@np.vectorize
def _bend(a, k):
    return k * a * a if a > 0.35 else 0


VECTORIZED = {
    "results that are plain": lambda t: np.vectorize(lambda a, b: a * b if a > 0.35 else 0.0)(t, t[0]).sum(),
    "types": lambda t: np.vectorize(lambda a: (a * a, a), otypes=[float, float])(t)[0].sum(),
    "several results": lambda t: np.vectorize(lambda a: (a * a, 1.0))(t)[0].sum(),
    "rows": lambda t: np.vectorize(lambda a: a @ a, signature="(n)->()")(t[:, None] * t).prod(),
    "a keyword": lambda t: np.vectorize(lambda a, p: np.polyval(p, a), excluded=["p"])(t, p=t).sum(),
    "a builtin": lambda t: np.vectorize(max)(t, 0.35).sum(),
    "of a global": lambda t: _bend(t[::-1], 2.0).sum(),
}


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("name", VECTORIZED)
def test_vectorized_functions_are_followed(name, mode):
    fun, t = VECTORIZED[name], np.array([0.3, 0.4])
    derivative = grad(fun, mode=mode)
    expected = [(fun(t + step) - fun(t - step)) / 2e-6 for step in 1e-6 * np.eye(2)]
    for _ in range(3):
        np.testing.assert_allclose(derivative(t), expected, rtol=1e-7)
    assert mode == "dynamic" or "dynamic" not in derivative.explain()


def test_vectorized_results_are_of_the_first_ones_type():
    derivative = grad(lambda t: np.sum(_bend(t, 2.0)))
    for _ in range(3):
        np.testing.assert_array_equal(derivative(np.array([0.4, 0.5, 0.1])), [1.6, 2.0, 0.0])
        np.testing.assert_array_equal(derivative(np.array([0.1, 0.5, 1.4])), [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(grad(lambda t: np.sum(t * np.vectorize(lambda k: k * 2)(np.arange(3))))(V[:3]), [0, 2, 4])


def test_coordinates_in_a_list_are_no_table():
    fun = lambda x, y: np.histogramdd([x, y], 2)[1][1].sum()
    np.testing.assert_allclose(grad(fun, (0, 1))(V, 2 * V)[1], [0, 1.5, 0, 1.5])


def factor(a):
    """Cholesky's factor, written over the matrix as textbooks do."""
    a = a.copy()
    for i in range(len(a)):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])
    return np.tril(a)


def test_masks_known_beforehand_are_not_in_the_code():
    matrix = np.eye(5) + 0.1 * np.ones((5, 5))
    derivative = grad(lambda a: np.sum(factor(a) ** 3))
    step = np.random.default_rng(0).standard_normal((5, 5))
    expected = np.sum(3 * np.linalg.cholesky(matrix) ** 2 * jvp(factor, (matrix,), (step,))[1])
    for _ in range(3):
        np.testing.assert_allclose(np.sum(derivative(matrix) * step), expected, rtol=1e-12)
    assert "where" not in derivative.source(matrix)
    assert "bool" not in derivative.source(matrix)


def test_writes_over_what_was_read_need_no_copies():
    def filtered(x):
        y = np.sin(x)
        for i in range(1, len(x)):
            y[i] -= 0.5 * np.sum(y[:i] * x[:i])
            y[i:] *= y[i - 1]
            y[..., -1] += y[i] * y[0]
        return np.sum(y**2)

    x = np.linspace(0.2, 0.9, 40)
    derivative = grad(filtered)
    expected = grad(filtered, mode="dynamic")(x)
    for _ in range(3):
        np.testing.assert_allclose(derivative(x), expected, rtol=1e-12)
    copies = [line for line in str(derivative.source(x, fast=True)).splitlines() if ".copy()" in line]
    assert not any(line.split(" = ")[1] in ("y.copy()", "new.copy()", "g.copy()") for line in copies)
    with without("buffers"):
        np.testing.assert_allclose(grad(filtered)(x), expected, rtol=1e-12)


@pytest.mark.parametrize("count", [3, 40])
def test_masks_known_beforehand_may_be_needed_in_loops(count):
    """What a write into a constant place leaves of a cotangent is the same in all iterations: an array in the loop's body."""

    def fun(x, y):
        b = x.copy()
        for _ in range(8):
            b[b > 5.0] = -1.0
            b[0] = 0.1
            b = np.sqrt(np.abs(b)) + y
        return np.sum(b)

    x, y = np.linspace(-2.0, 2.5, count), np.linspace(0.1, 0.3, count)
    expected = grad(fun, (0, 1), mode="dynamic")(x, y)
    derivative = grad(fun, (0, 1))
    for _ in range(3):  # traced, compiled
        np.testing.assert_allclose(derivative(x, y), expected, rtol=1e-12)
    assert "np.sqrt" in derivative.source(x, y)


def test_real_arrays_are_their_own_conjugates():
    """``x.conj()`` of a real array is ``x`` itself, not a copy."""

    def fun(x):
        x = x.copy()
        same, copied = x.conj(), np.conj(x)
        x[0] = 3.0
        same.conjugate()[1] *= 2.0
        return np.sum(same * x * copied)

    for mode in ("auto", "dynamic"):
        derivative = grad(fun, mode=mode)
        for _ in range(3):
            np.testing.assert_allclose(derivative(np.array([2.0, 1.0, 0.5])), [9.0, 12.0, 0.75])


@pytest.mark.skipif(not hasattr(np, "astype"), reason="NumPy 2.1")
def test_casts_that_need_not_copy_do_not():
    def fun(x):
        x = x * 1.0
        same = np.astype(x, float, copy=False)
        x[0] = 3.0
        return np.sum(same * x)

    for mode in ("auto", "dynamic"):
        np.testing.assert_allclose(grad(fun, mode=mode)(np.array([2.0, 1.0])), [0.0, 2.0])


def test_views_of_copies_made_again_after_a_loop():
    """Nodes are known by their numbers, of which there are more than nodes once a loop has been rolled up."""

    def fun(x, y):
        for _ in range(6):
            y = y + np.cos(y)
        for _ in range(6):
            b = x.copy()
            w = b[1:]
            w += 0.5
        return np.sum(b * b) + np.sum(y)

    x = np.array([0.3, 0.7, 1.1])
    derivative = value_and_grad(fun)
    for _ in range(3):
        value, slope = derivative(x, 2 * x)
        assert value == fun(x, 2 * x)
        np.testing.assert_allclose(slope, [0.6, 2.4, 3.2], rtol=1e-14)


@pytest.mark.parametrize("again", [np.asarray, np.ravel, np.atleast_1d, lambda z: z[:3]])
@pytest.mark.parametrize("first", [False, True])
def test_second_names_of_what_np_polynomial_makes(again, first):
    """Its functions are Python code that puts traced numbers into arrays of objects."""

    def fun(x):
        z = np.polynomial.chebyshev.chebmul(x, [1.0, 2.0])
        y = again(z)
        one = z if first else y
        one[0] = 7.0
        return np.sum(z[:3] * y[:3] * np.arange(3))

    agrees(fun, V)


def test_axes_of_one_number_in_front_of_what_is_written():
    """NumPy leaves them out."""

    def written(x):
        v, w = np.zeros_like(x), np.ones(3)
        v[0] = x * x
        w[:] = np.sin(x)
        w[1] += np.sum(x[:, :1] * x[:, 1:2])
        return np.sum(np.sin(v)) + np.sum(w**2)

    derivative, dynamic = value_and_grad(written), value_and_grad(written, mode="dynamic")
    for x in np.random.default_rng(1).normal(size=(3, 1, 3)):
        (value, slope), (_, other) = derivative(x), dynamic(x)
        assert value == pytest.approx(written(x))
        np.testing.assert_allclose(slope, other, rtol=1e-12)


def rows_written(x, width):
    out = np.zeros((40, width))
    for i in range(40):
        out[i, : x.size] = np.sin(x * i)
    return np.sum(out**2)


def parts_read_and_written(x, width):
    out = np.zeros((40, width))
    for i in range(1, 40):
        out[i, 0] = x[i % 3] + 0.5 * out[i - 1, 2]
        row = out[i]
        out[i, 1:3] = np.cos(row[:2] * out[i - 1, :2])
        out[i, :3] /= 1.0 + row[0] ** 2
    return np.sum(np.sin(out))


def read_as_a_whole_between(x, width):
    out, total = np.zeros((40, width)), 0.0
    for i in range(1, 40):
        out[i, :3] = x * i + np.sin(out[i - 1, :3])
        out[i, 2] += 1.0
        if i in (7, 20, 21):
            total = total + np.sum(np.sin(out) * i)
    return total + np.sum(out**2)


def some_written_twice(x, width):
    out = np.zeros((40, width))
    for i in range(40):
        out[[i, i, i // 2], [0, 0, 1]] = x * (i + 1)
        out[i, 2] = np.sum(out[: i + 1, :2])
    return np.sum(np.sin(out))


def versions_returned(x, width):
    out, kept = np.zeros((40, width)), []
    for i in range(12):
        out[i, :3] = np.sin(x * i)
        out[i, 0] += 1.0
        if i in (3, 7, 8):
            kept.append(out.copy())
    return np.sum(np.sin(out)), (out, *kept)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_what_large_arrays_were_before_writes_is_returned(mode):
    derivative, few = (value_and_grad(versions_returned, has_aux=True, mode=one) for one in (mode, "dynamic"))
    for x in (V[:3], -V[1:], V[:3]):
        (value, arrays), slope = derivative(x, 600)
        expected, others = versions_returned(x, 600)
        assert value == pytest.approx(expected)
        for array, other in zip(arrays, others, strict=True):
            np.testing.assert_allclose(array, other)
        np.testing.assert_allclose(slope, few(x, 3)[1])


def the_same_writes_again(x, width):
    total = 0.0
    for k in range(3):
        out = np.zeros((40, width))
        out[0, 0] = x[0]
        out[1, 1] = x[1] * 2
        out[2, :3] = x
        total = total + np.sum(out**2) * (k + 1)
    return total


def a_copy_before_writes(x, width):
    out = np.zeros((40, width))
    out[0, :3] = x
    out[1, :3] = np.sin(x)
    before = out.copy()
    out[1, 1] = x[1] * 2
    out[2, :3] = x
    row = out[1]
    out[3, :3] = row[:3] * before[1, :3]
    return np.sum(before**3) + np.sum(out**2) + np.sum(before[:, 2:4])


WRITTEN = [
    *[rows_written, parts_read_and_written, read_as_a_whole_between, some_written_twice, the_same_writes_again],
    a_copy_before_writes,
]


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("fun", WRITTEN, ids=lambda fun: fun.__name__)
def test_large_arrays_are_written_into_as_small_ones(fun, mode):
    derivative, few = value_and_grad(fun, mode=mode), value_and_grad(fun, mode="dynamic")
    for x in (V[:3], -V[1:], V[:3]):
        (value, slope), (expected, other) = derivative(x, 600), few(x, 3)
        assert value == pytest.approx(expected)
        np.testing.assert_allclose(slope, other, rtol=1e-10)
    curvature, other = jacobian(grad(fun, mode=mode), mode=mode)(V[:3], 600), jacobian(grad(fun, mode="dynamic"))(V[:3], 3)
    np.testing.assert_allclose(curvature, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("fun", "mode"),
    [(rows_written, "auto"), (rows_written, "dynamic"), (parts_read_and_written, "dynamic"), (some_written_twice, "dynamic")],
)
def test_what_large_arrays_were_before_writes_is_not_kept(fun, mode):
    derivative = grad(fun, mode=mode)
    derivative(V[:3], 3)  # what is made once
    tracemalloc.start()
    derivative(V[:3], 20_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * 40 * 20_000 * 8


def rows_of_a_large_array(x):
    out = np.zeros((60, 2000))
    for i in range(60):
        out[i] = np.sin(x * i)
        if i:
            out[i] = out[i] * out[i - 1] + x
    return np.sum(out**2)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_large_arrays_are_written_into_in_place(mode, monkeypatch):
    """A copy is made of what the function did not write yet, not for each write, forwards or backwards."""
    derivative, x = value_and_grad(rows_of_a_large_array, mode=mode), np.linspace(0.2, 0.9, 2000)
    copies, setitem, index_add = [], runtime.setitem, runtime.index_add
    monkeypatch.setattr(runtime, "setitem", lambda *args: copies.append(args[0].shape) or setitem(*args))
    monkeypatch.setattr(runtime, "index_add", lambda *args: copies.append(args[0].shape) or index_add(*args))
    value, slope = derivative(x)
    assert copies.count((60, 2000)) <= 30  # of 119 writes, and as many on the way back
    assert value == pytest.approx(rows_of_a_large_array(x))
    step = 1e-6
    ends = [rows_of_a_large_array(x + sign * step) for sign in (1, -1)]
    assert np.sum(slope) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


def test_large_arrays_that_others_hold_are_copied():
    def fun(x):
        out = np.zeros((60, 2000))
        kept = []
        for i in range(60):
            out[i] = np.sin(x * i)
            if i % 20 == 0:
                kept += [out[i], out + 0.0, out.copy(), out[:2]]
        out[0] = x
        return np.sum(out) + sum(np.sum(one**2) for one in kept)

    x, step = np.linspace(0.2, 0.9, 2000), 1e-6
    expected = np.sum([(fun(x + step) - fun(x - step)) / (2 * step)])
    for mode in ("auto", "dynamic"):
        derivative = value_and_grad(fun, mode=mode)
        for _ in range(3):
            value, slope = derivative(x)
            assert value == pytest.approx(fun(x))
            assert np.sum(slope) == pytest.approx(expected, rel=1e-6)


def test_two_loops_with_one_body_write_into_arrays_of_their_own():
    """As the loops of a pullback do that is called twice."""
    n = 40

    def steps(u, f):
        for _ in range(6):
            if u[1] > f[1]:
                u = np.concatenate([u[1:] * f[1:], u[:1]])
            v = np.zeros((2, n))
            v[0, 2:] = u[2:] * u[:-2]
            v[1] = f * u
            u = np.sin(v[0] + v[1])
        return u

    def fun(x, f):
        u, pull = vjp(steps, x, f)
        (a, b), (c, d) = pull(np.cos(u)), pull(u)
        return np.sum(a * d) + np.sum(b * c)

    rng = np.random.default_rng(1)
    derivative, other = value_and_grad(fun, (0, 1)), value_and_grad(fun, (0, 1), mode="dynamic")
    for _ in range(6):
        x, f = rng.normal(size=(2, n))
        (value, slopes), (expected, wanted) = derivative(x, f), other(x, f)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        for mine, theirs in zip(slopes, wanted, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12 * np.abs(theirs).max())


# -- into buffers --------------------------------------------------------------------------------------------------

TRANSFORMS = {
    "fft": lambda z: np.fft.fft(z, axis=0),
    "padded": lambda z: np.fft.ifft(z, 700),
    "rfft": lambda z: np.fft.rfft(z.real, axis=0),
    "irfft": lambda z: np.fft.irfft(z, 500),
    "fft2": lambda z: np.fft.fft2(z, norm="ortho"),
    "fft2 padded": lambda z: np.fft.fft2(z, (130, 600)),
    "ifftn": lambda z: np.fft.ifftn(z, axes=(1,)),
    "along none": lambda z: np.fft.fftn(z, axes=()),
    "rfft2": lambda z: np.fft.rfft2(z.real),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_transforms_go_into_buffers(transform, dtype):
    """A transform is written where something else was, and of its own result nothing is written over that is read later."""

    def f(x, w):
        z = transform(x * w)
        kept = transform(2 * z) if z.shape == x.shape else z
        return np.sum(np.abs(z) ** 2) + np.sum(np.abs(kept * z) ** 2)

    rng = np.random.default_rng(0)
    w = np.exp(1j * rng.standard_normal((128, 512))).astype(np.result_type(dtype, np.complex64))
    g, plain = grad(f), without("buffers")(grad(f))
    for _ in range(5):
        x = rng.standard_normal((128, 512)).astype(dtype)
        result = g(x, w)
        np.testing.assert_allclose(result, plain(x, w), rtol=0, atol=np.finfo(dtype).eps * 50 * np.abs(result).max())


def test_a_big_transform_has_a_buffer():
    x, w = np.ones((128, 512)), np.full((128, 512), 1j)
    source = grad(lambda x, w: np.sum(np.abs(np.fft.fft2(x * w)) ** 2)).source(x, w, fast=True)
    calls = [line for line in source.splitlines() if " = np.fft.fft2(" in line]
    assert calls
    assert all("out=" in line for line in calls)


def smoothed(a, b):
    a, b = a.copy(), b.copy()
    for _ in range(10):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:])
    return np.sum(a * WEIGHTS)


def product_of_rows(a, c):
    return np.sum((a.reshape(-1, 6) @ c).reshape(a.shape) * np.cos(a))


def one_under_two_shapes(a, c):
    flat = a.reshape(-1, 6) @ c
    return {"flat": flat, "rows": flat.reshape(a.shape), "turned": flat.T, "part": flat[:2]}


WEIGHTS = np.cos(np.arange(400.0)).reshape(20, 20)


@pytest.mark.parametrize(("fun", "sizes"), [(smoothed, [(20, 20), (20, 20)]), (product_of_rows, [(3, 4, 6), (6, 6)])])
def test_results_of_ones_own_are_not_copied(fun, sizes):
    """Each call gives other arrays, in C order, which share no memory."""
    rng = np.random.default_rng(0)
    derivative = grad(fun, (0, 1))
    args = [rng.normal(size=size) for size in sizes]
    calls = [derivative(*args) for _ in range(5)]
    for found in calls:
        for one, other in zip(found, grad(fun, (0, 1), mode="dynamic")(*args), strict=True):
            assert one.flags.c_contiguous
            assert one.flags.writeable
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    every = [*args, *[g for found in calls for g in found]]
    assert not any([np.shares_memory(a, b) for i, a in enumerate(every) for b in every[:i]])
    assert ".copy()" not in str(derivative.source(*args, fast=True)).splitlines()[-1]


def test_results_that_would_share_memory_are_copied():
    rng = np.random.default_rng(0)
    a, c, b = rng.normal(size=(3, 4, 6)), rng.normal(size=(6, 6)), rng.normal(size=(3, 4, 6))
    for _ in range(4):
        values, slopes = jvp(one_under_two_shapes, (a, c), (b, 0 * c))
        every = [*values.values(), *slopes.values(), a, b, c]
        assert not any([np.shares_memory(x, y) for i, x in enumerate(every) for y in every[:i]])
        for found, expected in ((values, one_under_two_shapes(a, c)), (slopes, one_under_two_shapes(b, c))):
            for name, value in expected.items():
                np.testing.assert_allclose(found[name], value, rtol=1e-12)
                assert found[name].flags.c_contiguous


def summed_backwards(x):
    return np.sum(np.sin(x[::-1]) * np.arange(len(x))) + np.sum(np.cumsum(x) ** 2)


@pytest.mark.parametrize("n", [1, 7, 300, 20000])
def test_results_lie_forwards(n):
    derivative = grad(summed_backwards)
    for _ in range(4):
        found = derivative(np.linspace(0.0, 1.0, n))
        assert found.flags.c_contiguous
        np.testing.assert_allclose(found, grad(summed_backwards, mode="dynamic")(np.linspace(0.0, 1.0, n)), rtol=1e-9)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("columns", [2, 4, 8, 16])
@pytest.mark.parametrize("rows", [30, 3000])
def test_derivatives_are_computed_in_columns_of_arrays(rows, columns, dtype):
    """NumPy 2.4 misreads numbers of some strides that it negates into strided memory."""
    rng = np.random.default_rng(0)
    z, w = (rng.standard_normal((rows, columns)).astype(dtype) for _ in range(2))
    functions = (
        lambda z, w: np.sum((z[:, -1] - z[:, -2]) * w[:, 0]),
        lambda z, w: np.sum((z[:, -1:] - z[:, -2:-1]) * w[:, :1]),
        lambda z, w: np.sum(np.gradient(z, axis=1) * w),
        lambda z, w: np.sum(np.diff(z, axis=1) * w[:, 1:]),
        lambda z, w: np.sum(np.exp(-z[:, :2])),
        lambda z, w: np.sum(np.sin(-z[:, 1:3]) * w[:, :2]) + np.sum((w[:, :2] - z[:, :2]) ** 2 * z[:, -2:]),
    )
    for fun in functions:
        derivative, dynamic = (value_and_grad(fun, mode=mode) for mode in ("auto", "dynamic"))
        for _ in range(3):
            (value, slope), (other, expected) = derivative(z, w), dynamic(z, w)
            assert value == pytest.approx(other, rel=1e-4)
            np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [4, 120])
def test_a_row_that_was_read_before_its_array_is_done(n):
    """The rows of all iterations are computed over in one go after the loop; the last one is used after that."""

    def last_read(x, y):
        a, v = np.sin(y), y[0]
        for i in range(len(x)):
            v = a[i - 1]
            a[i] = np.sin(v) * x[i]
        return np.sum(a * x) + np.sum(v * y[0])

    def added_to(x, y):
        a, v = np.sin(x), x[0] * 1.0
        for i in range(len(x)):
            v += y[i] ** 2
            a[i] = np.sin(v) * x[i]
            v = a[i]
        return np.sum(np.tanh(a) * y)

    for fun in (last_read, added_to):
        derivative = value_and_grad(fun, (0, 1))
        for seed in range(4):
            rng = np.random.default_rng(seed)
            x, y = rng.normal(size=(2, 12, n))
            expected = value_and_grad(fun, (0, 1), mode="dynamic")(x.copy(), y.copy())
            alike(derivative(x, y), expected)


def picked(x, places):
    return np.sum(np.sin(x + x[places]))


def picked_and_turned(x, places):
    y = np.tanh(x)
    return np.sum(np.sin(y + y[places][:, ::-1]))


def added_to_itself(x, places):
    y = np.sin(x)
    np.add.at(y, places, y)
    return np.sum(y * y)


def largest_by_the_first(x, places):
    y = np.sin(x)
    return np.max(y, axis=0) @ y[0] + np.sum(x[places[:2]])


@pytest.mark.parametrize("fun", [picked, picked_and_turned, added_to_itself, largest_by_the_first])
@pytest.mark.parametrize("columns", [3, 20, 64])
def test_values_that_lie_in_what_they_are_added_to(fun, columns):
    rng = np.random.default_rng(columns)
    x, places = rng.normal(size=(2000, columns)), rng.integers(0, 2000, 2000)
    expected = value_and_grad(fun, mode="dynamic")(x.copy(), places)
    np.testing.assert_allclose(expected[0], fun(x.copy(), places), rtol=1e-12)
    derivative = value_and_grad(fun)
    for _ in range(3):
        value, slope = derivative(x, places)
        np.testing.assert_allclose(value, expected[0], rtol=1e-12)
        np.testing.assert_allclose(slope, expected[1], rtol=1e-10, atol=1e-12)
    if fun is picked:
        slope = np.cos(x + x[places])
        at_places = slope.copy()
        np.add.at(at_places, places, slope)
        np.testing.assert_allclose(derivative(x, places)[1], at_places, rtol=1e-12, atol=1e-13)


def test_a_sign_that_one_side_of_a_branch_saves():
    """There, the opposite is subtracted; on the other side, it is computed."""

    def fun(x, z, c):
        d = x[1::2] - x[::2]
        e = np.exp(d)
        base = e.sum() + np.sin(x).sum()
        if c > 0:
            return base + z.sum()
        s = stop_gradient(e)
        return base + (np.tanh(s) * np.cos(s) * (s * s + s) * np.sin(s) * z).sum()

    x, z = np.linspace(0, 1, 300_000), np.ones(150_000)
    derivative, dynamic = value_and_grad(fun, (0, 1)), value_and_grad(fun, (0, 1), mode="dynamic")
    for c in (1.0, 1.0, -1.0, -1.0, 1.0, -1.0):
        alike(derivative(x, z, c), dynamic(x, z, c), rtol=1e-10)


ROWS = np.arange(24.0).reshape(4, 6) % 7 - 2.5
OUTS = {
    "elements": (runtime.elements, (ROWS, np.arange(24).reshape(4, 6)[::-1] % 5)),
    "add_elements": (runtime.add_elements, (ROWS, np.arange(24).reshape(4, 6) % 5, ROWS * 2)),
    "select": (runtime.select, (ROWS > 0, ROWS, ROWS * 3)),
    "select_number": (runtime.select, (ROWS > 0, ROWS, 2.0)),
    "to_extremes": (runtime.to_extremes, (ROWS, ROWS.max(1, keepdims=True), np.arange(1.0, 5.0)[:, None])),
    "to_few_extremes": (runtime.to_extremes, (np.sin(ROWS), np.sin(ROWS).max(0, keepdims=True), np.arange(1.0, 7.0)[None])),
    "logistic": (runtime.logistic, (ROWS,)),
    "logaddexp": (runtime.logaddexp, (ROWS, ROWS * 3)),
    "weight": (runtime.weight, (ROWS, ROWS * 3)),
    "over": (lambda x, v, out=None: runtime.over(x, 2.0, v, out), (ROWS, np.array(3.0))),
    "over_far": (lambda x, v, out=None: runtime.over(x, 2.0, v, out), (ROWS * 1e200, np.array(1e200))),
    "running": (lambda x, out=None: runtime.running(np.add, x, 0, out), (ROWS,)),
    "solve": (runtime.solve, (np.eye(6) * 3 + np.sin(np.arange(36.0)).reshape(6, 6), ROWS.T.copy())),
    "inv": (runtime.inv, (np.eye(6) * 3 + np.sin(np.arange(36.0)).reshape(6, 6),)),
    "add_to_diagonal": (runtime.add_to_diagonal, (np.cos(np.arange(36.0)).reshape(6, 6), np.array(2.0))),
}


@pytest.mark.parametrize("name", OUTS)
def test_results_in_the_memory_of_arguments(name):
    """Whatever an operation is given, it reads before it writes over it: an argument, or what shows a part of one."""
    fun, args = OUTS[name]
    expected = fun(*map(np.copy, args))
    for i, place in enumerate(args):
        given = [np.array(arg) for arg in args]
        if given[i].shape == expected.shape and given[i].dtype == expected.dtype:
            np.testing.assert_allclose(fun(*given, out=given[i]), expected, rtol=1e-13, atol=1e-14)
            for j, other in enumerate(args):
                if i != j and np.size(other) <= np.size(place) and np.asarray(other).dtype == np.asarray(place).dtype:
                    given = [np.array(arg) for arg in args]
                    given[j] = given[i].reshape(-1)[: np.size(other)].reshape(np.shape(other))
                    wanted = fun(*map(np.copy, given))
                    np.testing.assert_allclose(fun(*given, out=given[i]), wanted, rtol=1e-13, atol=1e-14)


def test_a_diagonal_gets_a_number_that_lies_where_the_sum_is_written():
    def fun(a, u):
        e = np.exp(u)
        return np.sum((a + e[0, 0, ...] * np.eye(40)) ** 3)

    derivative, rng = value_and_grad(fun), np.random.default_rng(0)
    for _ in range(4):
        a, u = rng.standard_normal((2, 40, 40))
        np.testing.assert_allclose(derivative(a, u)[0], fun(a, u), rtol=1e-12)


@pytest.mark.parametrize("n", [301, 20_001, 200_001])
@pytest.mark.parametrize("cut", [1, 7])
def test_parts_of_an_array_that_loops_over_blocks_put_together(n, cut):
    """One part comes of such a loop, and the other of none."""

    def first_and_rest(x):
        z = np.cumsum(np.sin(x)) / 100
        whole = np.rint(5 * np.cos(x))
        u, v = z[:cut], z[cut:]
        return np.sum(np.sin(v) * np.exp(-v * v) * whole[cut:]) + np.sum(u * u * u)

    def rest_and_last(x):
        z = np.sin(x) * 0.5
        u, v = z[:-cut], z[-cut:]
        return np.sum(np.tanh(u) * np.cos(u) * u) + np.sum(v**3)

    rng = np.random.default_rng(n)
    for fun in (first_and_rest, rest_and_last):
        derivative, dynamic = grad(fun), grad(fun, mode="dynamic")
        for _ in range(4):
            x = rng.standard_normal(n)
            np.testing.assert_allclose(derivative(x), dynamic(x), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("n", [300, 20_000, 262_144])
def test_tangents_of_running_products(n):
    fun, rng = lambda a: np.cumprod(1 + a / 1000.0), np.random.default_rng(0)
    for _ in range(6):
        a, t = rng.standard_normal((2, n))
        value, tangent = jvp(fun, (a,), (t,))
        np.testing.assert_allclose(tangent, value * np.cumsum(t / 1000.0 / (1 + a / 1000.0)), rtol=1e-8, atol=1e-11)


def with_texts_and_objects(x):
    names, days = snp.array(["a", "b"]), snp.asarray(["2020-01-01", "2020-01-03"], dtype="M8[D]")
    things, texts, kept = snp.array([{"k": 2.0}, None], dtype=object), snp.full(3, "x"), snp.empty(1, dtype=object)
    kept[0] = x
    total = np.sum(snp.linspace(0, 1, 3, retstep=True)[0] * x) * days.size
    return np.sum(kept[0]) * things[0]["k"] * len(texts) + total if names[1] == "b" and not snp.zeros(2, "U3")[0] else None


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_arrays_of_what_is_no_number_are_plain(mode):
    """``symgrad.numpy`` makes texts, dates and objects as NumPy does, while a function is traced, too."""
    derivative = grad(with_texts_and_objects, mode=mode)
    for _ in range(3):
        np.testing.assert_array_equal(derivative(np.arange(3.0)), [6.0, 7.0, 8.0])


def test_constants_written_into_what_is_selected_as_a_whole():
    """Where the tangent may be other than zero, one test tells for all elements."""

    def fun(x):
        y = np.where(np.sum(x) > 0.05, np.sqrt(np.abs(np.sum(x)) + 0.2), x)
        z = np.log(np.abs(y) + 0.2)
        z[y < 0.3] = 0.07
        return np.sum(np.sin(z))

    for x in ([0.3, 0.2, 0.1], [-0.3, 0.02, 0.1], [0.5, -0.2, 0.01]):
        value, tangent = jvp(fun, (np.array(x),), (np.array([0.4, -1.0, 0.7]),))
        assert value == pytest.approx(fun(np.array(x)))
        assert tangent == pytest.approx(grad(fun)(np.array(x)) @ [0.4, -1.0, 0.7])
