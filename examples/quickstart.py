"""Fit a model written as a plain NumPy loss: L2-regularised logistic regression, is a breast tumour benign?

Shows the fit against a reference, a check of the gradient, and the NumPy that symgrad wrote for it. How surely each tumour is
classified goes to ``output/quickstart.png``.
"""

from pathlib import Path

import numpy as np
from _picture import picture
from scipy.optimize import minimize

from symgrad import check_grads, value_and_grad

# The same penalised likelihood maximised by scikit-learn 1.9.1, LogisticRegression(C=1.0, solver="newton-cholesky",
# tol=1e-12) on the standardised columns, and once more by Newton's method with derivatives worked out by hand; the two
# agree to all the digits given.
REFERENCE = {
    "penalised loss": 37.758945962,
    "log-likelihood": -30.379966919,
    "intercept": 0.21450272,
    "mean radius": -0.36309253,
    "mean texture": -0.38767544,
}


def load():
    """The columns, standardised and with a leading column of ones, and 1 for benign, 0 for malignant."""
    table = np.loadtxt(Path(__file__).parent / "data" / "breast_cancer.csv", delimiter=",", skiprows=1)
    columns, benign = table[:, :-1], table[:, -1]
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    return np.column_stack([np.ones(len(columns)), columns]), benign


def loss(w, x, y, penalty):
    """The negative log-likelihood of logistic regression, and a penalty on all weights but the intercept."""
    z = x @ w
    misfit = np.sum(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))
    return misfit + 0.5 * penalty * np.sum(w[1:] ** 2)


def main():
    x, y = load()
    penalty = 1.0
    loss_and_gradient = value_and_grad(loss)

    fit = minimize(loss_and_gradient, np.zeros(x.shape[1]), args=(x, y, penalty), jac=True, options={"gtol": 1e-7})
    found = {
        "penalised loss": fit.fun,
        "log-likelihood": -loss(fit.x, x, y, 0.0),
        "intercept": fit.x[0],
        "mean radius": fit.x[1],
        "mean texture": fit.x[2],
    }
    print(f"{len(y)} tumours, {x.shape[1]} weights: {fit.nit} iterations, {fit.nfev} calls of loss and gradient")
    print(f"{np.mean((x @ fit.x > 0) == y):.1%} of the tumours are classified right\n")
    print(f"{'':16}{'found':>14}{'reference':>14}")
    for name, expected in REFERENCE.items():
        print(f"{name:16}{found[name]:14.6f}{expected:14.6f}")
    wrong = [name for name, expected in REFERENCE.items() if abs(found[name] - expected) > 1e-5]
    if wrong:
        raise SystemExit(f"the fit is not the reference's: {', '.join(wrong)}")

    check_grads(lambda w: loss(w, x, y, penalty), (fit.x,))
    print("\nThe gradient agrees with finite differences. symgrad wrote it as\n")
    print(loss_and_gradient.source(fit.x, x, y, penalty))

    with picture("quickstart") as axes:
        for name, kind in (("malignant", 0), ("benign", 1)):
            axes.hist((x @ fit.x)[y == kind], bins=np.linspace(-25, 15, 41), alpha=0.6, label=name)
        axes.set(xlabel="logit", ylabel="tumours", title="Logistic regression")
        axes.legend()


if __name__ == "__main__":
    main()
