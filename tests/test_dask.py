"""Sums over chunks on a cluster: the single machine's result, whatever becomes of the workers."""

import linecache
import os
import pickle
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("dask.array")
pytest.importorskip("distributed")
import cloudpickle
import dask
import dask.array as da
from distributed import Client, LocalCluster

import symgrad
from symgrad.dask import _packed, _unpacked, value_and_grad

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = (X @ np.array([1.0, -2.0, 0.5]) + 0.1 * rng.normal(size=60) > 0) + 0.0
W = np.array([0.1, 0.2, -0.3])


def loss(w, x, y):
    z = x @ w
    return np.sum(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))


def structured(params, x, y, scale=1.0):
    return scale * np.sum((x @ params["w"] + params["b"] - y) ** 2)


def same(actual, expected):
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-12)
    for a, b in zip(symgrad.flatten(actual[1])[0], symgrad.flatten(expected[1])[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def chunked(rows):
    return da.from_array(X, chunks=(rows, 3)), da.from_array(Y, chunks=rows)


@pytest.mark.parametrize("rows", [60, 7, 1])
def test_in_threads(rows):
    x, y = chunked(rows)
    with dask.config.set(scheduler="threads"):
        same(value_and_grad(loss)(W, x, y), symgrad.value_and_grad(loss)(W, X, Y))
        params = {"w": W, "b": 0.5}
        expected = symgrad.value_and_grad(structured)(params, X, Y, scale=2.0)
        same(value_and_grad(structured)(params, x, y, scale=2.0), expected)


def test_what_is_not_cut_alike():
    x, y = chunked(20)
    both = value_and_grad(loss)
    with pytest.raises(ValueError, match=r"\[3, 6\] chunks of rows: rechunk"):
        both(W, x, y.rechunk(10))
    with pytest.raises(ValueError, match="other axes"):
        both(W, x.rechunk((20, 1)), y)
    with pytest.raises(ValueError, match="no Dask array"):
        both(W, X, Y)


def test_a_worker_compiles_once():
    derivative = symgrad.value_and_grad(loss)
    payload = _packed(derivative, loss)
    copy = _unpacked(payload)
    assert _unpacked(payload) is copy
    same(copy(W, X, Y), derivative(W, X, Y))


def test_derivatives_pickle():
    for derivative in (symgrad.grad(np.sin), symgrad.hessian(np.tanh)):
        assert pickle.loads(pickle.dumps(derivative))(0.5) == derivative(0.5)


@pytest.fixture(scope="module")
def client():
    """Two processes. They cannot import this module, as a notebook's workers cannot import the notebook."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        yield client
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def test_on_a_cluster(client):
    x, y = client.persist(chunked(10))
    both = value_and_grad(loss)
    expected = symgrad.value_and_grad(loss)(W, X, Y)
    for _ in range(4):  # until the workers run compiled code
        first = both(W, x, y)
        same(first, expected)
    np.testing.assert_allclose(
        both(W, x, y)[0], first[0], rtol=4e-16
    )  # added up in the same order, by code that is compiled or not


def test_workers_compile(client):
    """Even where they cannot read the function's file."""
    source = "def cube(w, x):\n    return np.sum((x @ w) ** 3)\n"
    space = {"np": np}
    exec(compile(source, "<a notebook's cell>", "exec"), space)
    linecache.cache["<a notebook's cell>"] = (len(source), None, source.splitlines(True), "<a notebook's cell>")
    payload = _packed(symgrad.value_and_grad(space["cube"]), space["cube"])

    def work(payload, w, x):
        derivative = _unpacked(payload)
        for _ in range(3):
            result = derivative(w, x)
        return os.getpid(), derivative.cache_info().hits, result

    pid, hits, result = client.submit(work, payload, W, X).result()
    assert pid != os.getpid()
    assert hits == 1
    same(result, symgrad.value_and_grad(space["cube"])(W, X))


def test_a_killed_worker_loses_nothing(client, tmp_path):
    """It dies while it loads a chunk, with partial results of other chunks in its memory."""
    marker = str(tmp_path / "killed")

    @dask.delayed
    def load(i):
        if i == 4 and not Path(marker).exists():
            Path(marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return X[10 * i : 10 * (i + 1)]

    x = da.concatenate([da.from_delayed(load(i), (10, 3), dtype=float) for i in range(6)])
    y = da.from_array(Y, chunks=10)
    same(value_and_grad(loss)(W, x, y), symgrad.value_and_grad(loss)(W, X, Y))
    assert Path(marker).exists()
