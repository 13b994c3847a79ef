"""Fit a regression to data that lies on a cluster: each worker differentiates the loss of its own rows.

The cluster here is two processes on this machine; with a scheduler's address in place of ``LocalCluster`` it is many
machines. How the loss falls goes to ``output/dask_regression.png``.
"""

from pathlib import Path

import dask.array as da
import numpy as np
from _picture import picture
from distributed import Client, LocalCluster
from scipy.optimize import minimize

import symgrad
from symgrad.dask import value_and_grad

DATA = Path(__file__).parent / "data" / "breast_cancer.csv"
PENALTY = 1.0


def load():
    """Standardised measurements with a column of ones, and 1 for benign tumours."""
    table = np.loadtxt(DATA, delimiter=",", skiprows=1)
    columns, benign = table[:, :-1], table[:, -1]
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    return np.column_stack([np.ones(len(columns)), columns]), benign


def misfit(w, x, y):
    """The negative log-likelihood of logistic regression: a sum over rows."""
    z = x @ w
    return np.sum(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))


def penalty(w):
    return 0.5 * PENALTY * np.sum(w[1:] ** 2)


def fit(misfit_and_slope, x, y):
    """The weights, and the loss at each iteration."""
    penalty_and_slope = symgrad.value_and_grad(penalty)
    losses = []

    def loss_and_slope(w):
        (a, slope_a), (b, slope_b) = misfit_and_slope(w, x, y), penalty_and_slope(w)
        losses.append(a + b)
        return a + b, slope_a + slope_b

    found = minimize(loss_and_slope, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B", options={"gtol": 1e-6})
    return found.x, losses


def main():
    x, y = load()
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        chunks = client.persist([da.from_array(x, chunks=(100, x.shape[1])), da.from_array(y, chunks=100)])
        weights, losses = fit(value_and_grad(misfit), *chunks)
    print(f"{len(losses)} evaluations on {len(chunks[0].chunks[0])} chunks: the loss is {losses[-1]:.6f}")

    alone, _ = fit(symgrad.value_and_grad(misfit), x, y)
    print(f"the weights are those of a single machine to {np.max(np.abs(weights - alone)):.1e}")
    assert np.allclose(weights, alone, atol=1e-3)
    assert abs(losses[-1] - 37.758946) < 1e-4

    with picture("dask_regression") as axes:
        axes.plot(losses, marker=".")
        axes.set(xlabel="evaluation", ylabel="penalised loss", yscale="log", title="Logistic regression on a Dask cluster")


if __name__ == "__main__":
    main()
