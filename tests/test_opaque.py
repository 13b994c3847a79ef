"""Functions of SciPy's, of values that no derivative flows through: they run as they are, here and in the code."""

import numpy as np
import pytest

from symgrad import grad, jvp, vmap

scipy = pytest.importorskip("scipy")
from scipy import linalg, ndimage, signal, sparse, stats  # noqa: E402
from scipy.spatial import cKDTree, distance  # noqa: E402


def distances(scale, points):
    return np.sum(np.exp(-distance.cdist(points, points, "minkowski", p=1.5) / scale))


def condensed(scale, points):
    return np.sum(np.exp(-distance.squareform(distance.pdist(points)) / scale))


def smooth(scale, points):
    return np.sum(np.exp(-(ndimage.gaussian_filter(points, 1.0) ** 2) / scale))


def standardized(scale, points):
    return np.sum(np.exp(-(stats.zscore(points) ** 2) / scale))


def ranked(scale, points):
    return np.sum(np.exp(-stats.rankdata(points[:, 0]) / scale))


def factorized(scale, points):
    return np.sum(np.exp(-(linalg.cholesky(points.T @ points + np.eye(2)) ** 2) / scale))


def factors(scale, points):
    q, r = linalg.qr(points, mode="economic")
    return np.sum(q @ r * scale) + np.sum(r**2) / scale


def filtered(scale, points):
    return np.sum(np.tanh(signal.savgol_filter(points[:, 1], 5, 2) / scale))


def of_loops(scale, points):
    total = 0.0
    for row in points:
        total += np.sum(distance.cdist(row[None], points)) / scale
    return total


def turned_by_values(scale, points):
    near = distance.cdist(points, points)
    if near[0, 1] > 1.0:
        return np.sum(near) / scale
    return np.sum(near) * scale


COMPILED = [distances, condensed, smooth, standardized, ranked, factorized, factors, filtered, of_loops, turned_by_values]


def queried(scale, points):
    found, _ = cKDTree(points).query(points, k=4)
    return np.sum(np.exp(-found / scale))


def of_sparse(scale, points):
    return np.sum(np.exp(-(sparse.csr_matrix(points) @ np.ones(2)) / scale))


def clustered(scale, points):
    tree = cKDTree(points)
    total = 0.0
    for place in tree.query_ball_point(points[0], 2.0):
        total = total + np.sum(points[place]) / scale
    return total


@pytest.mark.parametrize("fun", [*COMPILED, queried, of_sparse, clustered])
def test_functions_of_data_that_is_given(fun):
    """What an argument is made of by SciPy's functions, where nothing is differentiated by that argument."""
    rng = np.random.default_rng(5)
    slope = grad(fun)
    for _ in range(6):
        points, scale = rng.normal(size=(9, 2)), rng.uniform(1.0, 2.0)
        step = 1e-6
        expected = (fun(scale + step, points) - fun(scale - step, points)) / (2 * step)
        np.testing.assert_allclose(slope(scale, points), expected, rtol=1e-6)
        np.testing.assert_allclose(jvp(lambda s, p=points: fun(s, p), (scale,), (1.0,))[1], expected, rtol=1e-6)
    assert ("dynamic" in slope.explain()) == (fun not in COMPILED)


def test_other_sizes_and_kinds():
    slope, rng = grad(distances), np.random.default_rng(6)
    for n in (3, 3, 3, 5, 5, 1):
        points = rng.normal(size=(n, 2))
        near = distance.cdist(points, points, "minkowski", p=1.5)
        np.testing.assert_allclose(slope(2.0, points), np.sum(np.exp(-near / 2.0) * near / 4.0), rtol=1e-12)
    points = rng.integers(0, 9, (4, 2))
    near = distance.cdist(points, points, "minkowski", p=1.5)
    np.testing.assert_allclose(slope(2.0, points), np.sum(np.exp(-near / 2.0) * near / 4.0), rtol=1e-12)


def written_afterwards(scale, points):
    near = distance.cdist(points, points)
    near[0, 1] = scale
    near += scale
    return np.sum(near**2)


def what_writes(scale, points):
    linalg.solve_triangular(np.eye(2), points.T, overwrite_b=True)
    return scale * np.sum(points)


def test_what_is_written_into_results():
    points = np.random.default_rng(7).normal(size=(4, 2))
    for slope in (grad(written_afterwards), grad(written_afterwards, mode="dynamic")):
        for _ in range(4):
            step = 1e-6
            numeric = (written_afterwards(2.0 + step, points) - written_afterwards(2.0 - step, points)) / (2 * step)
            np.testing.assert_allclose(slope(2.0, points), numeric, rtol=1e-6)
    for _ in range(3):
        np.testing.assert_allclose(grad(what_writes)(2.0, points.copy()), np.sum(points), rtol=1e-12)


def with_draws(scale, points):
    whiten = stats.bootstrap((points[:, 0],), np.mean, n_resamples=9, random_state=0).standard_error
    return scale * whiten


def test_what_draws_numbers_of_data_is_asked_at_every_call():
    points = np.random.default_rng(8).normal(size=(6, 2))
    slope = grad(with_draws)
    for given in (points, points, points, points * 3.0):
        np.testing.assert_allclose(slope(2.0, given), with_draws(1.0, given), rtol=1e-12)


def test_in_vmap():
    sets = np.random.default_rng(9).normal(size=(3, 5, 2))
    found = vmap(grad(distances), (None, 0))(2.0, sets)
    np.testing.assert_allclose(found, [grad(distances)(2.0, points) for points in sets], rtol=1e-12)


def into_itself(scale, points):
    smoothed = points.copy()
    ndimage.median_filter(smoothed, 3, output=smoothed)
    return scale * np.sum(smoothed**2)


def into_another(scale, points):
    smoothed = np.zeros(points.shape)
    ndimage.gaussian_filter(points, 1.0, output=smoothed)
    return scale * np.sum(smoothed**2)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("fun", [into_itself, into_another])
def test_what_functions_write_into_arrays_that_they_are_given(fun, mode):
    slope = grad(fun, mode=mode)
    for seed in range(4):
        points = np.random.default_rng(seed).normal(size=(5, 6))
        np.testing.assert_allclose(slope(1.5, points), fun(1.0, points), rtol=1e-12)
