"""Per-example gradients by ``vmap(grad(loss))``: robust standard errors, and which observations a fit leans on.

Fits a logistic regression to the breast cancer data, as in ``quickstart.py``. The gradient of each tumour's own loss gives
the sandwich estimate of the standard errors, which holds where the model is not quite right, and an estimate of how the fit
would move without that tumour. Both are checked: against formulas worked out by hand, and by leaving tumours out.
"""

from pathlib import Path

import numpy as np
from _picture import picture
from scipy.optimize import minimize

from symgrad import grad, hessian, value_and_grad, vmap

PENALTY = 1.0
NAMES = ["intercept", "mean radius", "mean texture"]


def load():
    """The columns, standardised and with a leading column of ones, and 1 for benign, 0 for malignant."""
    table = np.loadtxt(Path(__file__).parent / "data" / "breast_cancer.csv", delimiter=",", skiprows=1)
    columns, benign = table[:, :2], table[:, -1]
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    return np.column_stack([np.ones(len(columns)), columns]), benign


def misfit(w, x, y):
    """The negative log-likelihood of one tumour."""
    z = x @ w
    return np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z)))


misfits = vmap(misfit, in_axes=(None, 0, 0))
gradients = vmap(grad(misfit), in_axes=(None, 0, 0))


def loss(w, x, y):
    """The penalised negative log-likelihood of all of them."""
    return np.sum(misfits(w, x, y)) + 0.5 * PENALTY * np.sum(w[1:] ** 2)


def fitted(x, y):
    return minimize(value_and_grad(loss), np.zeros(x.shape[1]), args=(x, y), jac=True, options={"gtol": 1e-9}).x


def main():
    x, y = load()
    w = fitted(x, y)
    curvature = hessian(loss)(w, x, y)

    each = gradients(w, x, y)  # one row a tumour
    by_hand = (1 / (1 + np.exp(-x @ w)) - y)[:, None] * x
    np.testing.assert_allclose(each, by_hand, rtol=1e-9, atol=1e-12)

    inverse = np.linalg.inv(curvature)
    usual = np.sqrt(np.diag(inverse))
    robust = np.sqrt(np.diag(inverse @ (each.T @ each) @ inverse))
    print(f"{len(y)} tumours; the standard errors that the model implies, and those that hold without it:\n")
    print(f"{'':14}{'weight':>10}{'usual':>10}{'robust':>10}")
    for name, *row in zip(NAMES, w, usual, robust, strict=True):
        print(f"{name:14}{row[0]:10.4f}{row[1]:10.4f}{row[2]:10.4f}")

    moves = each @ inverse  # how the weights would move without this tumour, to first order
    order = np.argsort(-np.sum((moves @ curvature) * moves, axis=1))
    print("\nThe fit leans most on these; how the weights move without each, as estimated and as fitted anew:\n")
    for i in order[:5]:
        moved = fitted(np.delete(x, i, axis=0), np.delete(y, i)) - w
        print(f"tumour {i:3}   " + "   ".join(f"{a:8.4f} {b:8.4f}" for a, b in zip(moves[i], moved, strict=True)))
        if np.max(np.abs(moves[i] - moved)) > 0.25 * np.max(np.abs(moved)):
            raise SystemExit(f"the estimate for tumour {i} is far off")

    print("\nsymgrad wrote the gradients of all tumours as\n")
    print(gradients.source(w, x, y))

    with picture("per_example_gradients", size=(6.0, 4.5)) as axes:
        for name, kind in (("malignant", 0), ("benign", 1)):
            leaning = 2000.0 * np.sum((moves @ curvature) * moves, axis=1)[y == kind]
            axes.scatter(x[y == kind, 1], x[y == kind, 2], s=leaning, alpha=0.5, label=name)
        radius = np.linspace(-2.0, 2.5, 2)
        axes.plot(radius, -(w[0] + w[1] * radius) / w[2], "k", lw=1, label="as likely one as the other")
        axes.set(xlabel=NAMES[1], ylabel=NAMES[2], ylim=(-2.5, 5.0), title="Tumours, as large as the fit leans on them")
        axes.legend(loc="upper right")


if __name__ == "__main__":
    main()
