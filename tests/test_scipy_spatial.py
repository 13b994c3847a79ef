"""``symgrad.scipy.spatial.distance``: values are SciPy's, derivatives are those of finite differences."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

pytest.importorskip("scipy")

import scipy.spatial.distance
from agreement import agrees

import symgrad.scipy
from symgrad import grad, hessian, jacfwd, jacobian, jacrev, jvp
from symgrad.errors import NotDifferentiable
from symgrad.scipy import spatial
from symgrad.scipy.spatial import distance

W = np.array([0.5, 2.0, 1.0, 0.3])
VI = np.diag([1.0, 2.0, 0.5, 1.0]) + 0.1
OPTIONS = {
    "euclidean": [{}, {"w": W}],
    "sqeuclidean": [{}, {"w": W}],
    "cityblock": [{}, {"w": W}],
    "chebyshev": [{}, {"w": np.array([1.0, 0.0, 2.0, 1.0])}],
    "minkowski": [{}, {"p": 1}, {"p": 3, "w": W}, {"p": 1.5}, {"p": np.inf}, {"p": np.inf, "w": W}, {"p": 2, "w": W}],
    "cosine": [{}, {"w": W}],
    "correlation": [{}, {"w": W}],
    "canberra": [{}, {"w": W}],
    "braycurtis": [{}, {"w": W}],
    "mahalanobis": [{"VI": VI}],
    "seuclidean": [{"V": W}],
    "jensenshannon": [{}, {"base": 2.0}],
}
CASES = [(name, options) for name, several in OPTIONS.items() for options in several]


def points(name, *shape):
    x = np.random.default_rng(len(name)).normal(size=shape)
    return np.abs(x) + 0.1 if name == "jensenshannon" else x


@pytest.mark.parametrize(("name", "options"), CASES)
def test_distances_of_two_vectors(name, options):
    mine, theirs = getattr(distance, name), getattr(scipy.spatial.distance, name)
    u, v = points(name, 2, 4)
    np.testing.assert_allclose(mine(u, v, **options), theirs(u, v, **options), 1e-12)
    agrees(lambda u, v: mine(u, v, **options), u, v)
    agrees(lambda u, v: grad(lambda u, v: mine(u, v, **options), (0, 1))(u, v), u, v)
    np.testing.assert_allclose(mine(u.astype(np.float32), v.astype(np.float32), **options), theirs(u, v, **options), 1e-5)
    for given in ("w", "V", "VI"):
        if given in options and name != "chebyshev" and options.get("p") != np.inf:
            agrees(lambda value, given=given: mine(u, v, **{**options, given: value}), options[given])
    if name not in ("jensenshannon", "mahalanobis"):
        numbers = np.arange(1, 5), np.array([3, -2, 1, 5])
        np.testing.assert_allclose(mine(*numbers, **options), theirs(*numbers, **options), 1e-12)
    with pytest.raises(ValueError, match="1-D"):
        mine(u[None], v, **options) if name != "jensenshannon" else distance.euclidean(u[None], v)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_distances_of_rows(name, options):
    if name == "jensenshannon" and options:
        return  # SciPy's has no base there
    a, b = points(name, 3, 4), points(name, 6, 4)[3:]
    mine = lambda a, b: distance.cdist(a, b, name, **options)
    listed = lambda a: distance.pdist(a, getattr(distance, name), **options)
    np.testing.assert_allclose(mine(a, b), scipy.spatial.distance.cdist(a, b, name, **options), 1e-10, 1e-12)
    np.testing.assert_allclose(jvp(mine, (a, b), (a, b))[0], mine(a, b), 1e-10, 1e-12)
    np.testing.assert_allclose(jvp(listed, (a,), (a,))[0], scipy.spatial.distance.pdist(a, name, **options), 1e-10, 1e-12)
    agrees(mine, a, b)
    agrees(listed, a)
    for metric in (getattr(distance, name), getattr(scipy.spatial.distance, name)):
        np.testing.assert_allclose(
            jvp(lambda a, m=metric: distance.cdist(a, b, m, **options), (a,), (a,))[0], mine(a, b), 1e-10
        )
    for x in (a.astype(np.float32), np.round(3 * a).astype(int) if name != "jensenshannon" else a):
        found = jvp(lambda b, x=x: distance.cdist(x, b, name, **options), (b,), (b,))[0]
        np.testing.assert_allclose(found, scipy.spatial.distance.cdist(x, b, name, **options), 1e-6)


@pytest.mark.parametrize(
    "name", ["euclidean", "minkowski", "seuclidean", "mahalanobis", "sqeuclidean", "cosine", "correlation"]
)
def test_distances_of_points_from_themselves(name):
    x, options = np.random.default_rng(1).normal(size=(3, 2 if name == "mahalanobis" else 3)), {}
    if name == "mahalanobis":
        options = {"VI": np.eye(2) + 0.3}
    if name == "seuclidean":
        options = {"V": np.array([1.0, 2.0, 0.7])}
    apart = lambda x: np.exp(-distance.cdist(x, x, name, **options))
    found, listed = jacobian(apart)(x), jacobian(lambda x: np.exp(-distance.pdist(x, name, **options)))(x)
    np.testing.assert_allclose(found[np.triu_indices(3, 1)], listed, 1e-10, 1e-12)
    np.testing.assert_allclose(found[range(3), range(3)], 0, atol=1e-12)
    for second in (hessian(lambda x: np.sum(apart(x))), hessian(lambda x: np.sum(apart(x)), mode="dynamic")):
        expected = 2 * hessian(lambda x: np.sum(np.exp(-distance.pdist(x, name, **options))))(x)
        np.testing.assert_allclose(second(x), expected, 1e-8, 1e-10)


def test_defaults_that_hang_on_the_rows():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    for name in ("mahalanobis", "seuclidean"):
        np.testing.assert_allclose(
            jvp(lambda a, n=name: distance.cdist(a, b, n), (a,), (a,))[0], scipy.spatial.distance.cdist(a, b, name), 1e-10
        )
        agrees(lambda a, b, name=name: distance.cdist(a, b, name), a, b)
        agrees(lambda a, name=name: distance.pdist(a, name), a)
    one = rng.normal(size=(4, 1))
    agrees(lambda x: distance.pdist(x, "mahalanobis"), one)
    with pytest.raises(ValueError, match="too small"):
        grad(lambda x: np.sum(distance.pdist(x, "mahalanobis")))(a[:2])


def test_the_power_of_a_minkowski_distance():
    u, v = np.array([0.3, -1.0, 2.0]), np.array([1.0, 0.4, 1.5])
    agrees(lambda p: distance.minkowski(u, v, p), 2.7)
    agrees(lambda p, w: distance.minkowski(u, v, p, w), 2.7, np.array([1.0, 0.5, 2.0]))
    with pytest.raises(ValueError, match="p must be greater than 0"):
        distance.minkowski(u, v, -1.0)
    with pytest.raises(ValueError, match="non-negative"):
        distance.euclidean(u, v, -u)


def test_metrics_of_ones_own():
    rng = np.random.default_rng(3)
    a, b, scale = rng.normal(size=(3, 2)), rng.normal(size=(2, 2)), np.array([0.5, 2.0])
    apart = lambda u, v, scale=scale: np.sum(scale * (u - v) ** 4)
    agrees(lambda a, b: distance.cdist(a, b, apart), a, b)
    agrees(lambda a: distance.pdist(a, apart), a)
    agrees(lambda scale: distance.cdist(a, b, apart, scale=scale), scale)
    agrees(lambda scale: distance.cdist(a, b, lambda u, v: scale @ np.abs(u - v)), scale)
    np.testing.assert_allclose(distance.cdist(a, b, apart), scipy.spatial.distance.cdist(a, b, apart))


def test_squares_of_distances():
    listed = np.arange(1.0, 7.0)
    matrix = scipy.spatial.distance.squareform(listed)
    weights = np.random.default_rng(4).normal(size=(4, 4))
    np.testing.assert_array_equal(jvp(distance.squareform, (listed,), (listed,))[0], matrix)
    np.testing.assert_array_equal(jvp(lambda m: distance.squareform(m, checks=False), (matrix,), (matrix,))[0], listed)
    agrees(lambda x: distance.squareform(x) * weights, listed)
    agrees(lambda x: distance.squareform(distance.squareform(x) ** 2), listed)
    agrees(lambda m: distance.squareform(m, "tovector", checks=False), matrix)
    assert jvp(distance.squareform, (np.zeros(0),), (np.zeros(0),))[0].shape == (1, 1)
    assert jvp(distance.squareform, (np.zeros((1, 1)),), (np.zeros((1, 1)),))[0].shape == (0,)
    with pytest.raises(ValueError, match="Incompatible vector size"):
        grad(lambda x: np.sum(distance.squareform(x)))(np.ones(4))
    with pytest.raises(ValueError, match="symmetric"):
        grad(lambda x: np.sum(distance.squareform(x)))(matrix + weights)


def test_edges_of_distances():
    a = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    agrees(lambda x: distance.canberra(x * a[0], a[1]), 2.0)
    found = jvp(lambda x: distance.cdist(x, a, "canberra"), (a,), (a,))[0]
    np.testing.assert_allclose(found, scipy.spatial.distance.cdist(a, a, "canberra"))
    for rows in (0, 1):
        x = np.ones((rows, 3))
        assert grad(lambda x: np.sum(distance.cdist(x, a)))(x).shape == x.shape
        assert jvp(distance.pdist, (x,), (x,))[0].shape == (0,)
    assert jvp(lambda x: distance.cdist(x, x, "chebyshev"), (np.ones((2, 0)),), (np.ones((2, 0)),))[0].tolist() == [
        [0, 0],
        [0, 0],
    ]
    assert distance.cdist(a, a, "eu").tolist() == scipy.spatial.distance.cdist(a, a).tolist()
    for wrong in ({"w": np.ones(2)}, {"w": np.ones((3, 3))}):
        with pytest.raises(ValueError, match="same size"):
            grad(lambda x, wrong=wrong: np.sum(distance.cdist(x, a, **wrong)))(a)


def test_metrics_without_a_rule():
    flags = np.array([[True, False, True], [False, False, True]])
    np.testing.assert_array_equal(
        distance.cdist(flags, flags, "jaccard"), scipy.spatial.distance.cdist(flags, flags, "jaccard")
    )
    assert distance.dice is scipy.spatial.distance.dice
    x = np.ones((2, 3))
    for call, what in (
        (lambda x: distance.cdist(x, x, "hamming"), "metric='hamming'"),
        (lambda x: distance.pdist(x, distance.jaccard), "metric='jaccard'"),
        (lambda x: distance.cdist(x, x, out=np.empty((2, 2))), "out="),
        (lambda x: distance.cdist(x, 1j * x), "real numbers"),
        (lambda x: distance.euclidean(x[0], 1j * x[0]), "real numbers"),
    ):
        with pytest.raises(NotDifferentiable, match=what):
            grad(lambda x, call=call: np.sum(np.real(call(x))))(x)
    with pytest.raises((NotDifferentiable, TypeError), match=r"write symgrad\.scipy\.spatial\.distance\.cdist"):
        grad(lambda x: np.sum(scipy.spatial.distance.cdist(x, x)))(x)


def test_the_module_of_distances_is_found():
    assert importlib.import_module("symgrad.scipy.spatial.distance") is distance is spatial.distance
    assert spatial.cKDTree is scipy.spatial.cKDTree
    assert "spatial" in symgrad.scipy.__all__


@pytest.mark.parametrize(
    "squared",
    [
        lambda x: distance.mahalanobis(x, np.zeros(3), np.diag([1.0, 2.0, 0.5])) ** 2,
        lambda x: distance.euclidean(x, np.zeros(3), np.array([1.0, 2.0, 0.5])) ** 2,
        lambda x: distance.minkowski(x, np.zeros(3), 2, np.array([1.0, 2.0, 0.5])) ** 2,
        lambda x: distance.seuclidean(x, np.zeros(3), np.array([1.0, 0.5, 2.0])) ** 2,
    ],
)
def test_squares_of_weighted_distances_are_smooth_where_both_are_one_place(squared):
    for x in (np.zeros(3), np.array([0.0, 0.3, -1.2])):
        for one in (jacfwd, jacrev):
            for other in (jacfwd, jacrev):
                np.testing.assert_allclose(one(other(squared))(x), np.diag([2.0, 4.0, 1.0]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", [np.uint8, np.int8, bool])
@pytest.mark.parametrize("name", ["sqeuclidean", "canberra", "braycurtis"])
def test_metrics_of_floats_that_are_given_small_integers(name, kind):
    """They do not run over, as those of SciPy's that are of floats."""
    u, v = np.array([1, 200, 3, 0]).astype(kind), np.array([5, 1, 100, 9]).astype(kind)
    expected = getattr(scipy.spatial.distance, name)(u, v)
    np.testing.assert_allclose(getattr(distance, name)(u, v), expected)
    np.testing.assert_allclose(grad(lambda x: x * getattr(distance, name)(u, v))(2.0), expected)
