"""A Gaussian process: the yearly flow of the Nile, smoothed, with all hyperparameters learned by gradient.

The log marginal likelihood is written as in a textbook; its gradient goes through the Cholesky factor.
"""

import numpy as np
from _picture import picture
from scipy.optimize import minimize

from symgrad import value_and_grad

YEARS = np.arange(1871.0, 1971.0)
FLOW = np.array("""
1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140 1100 1210 1150 1250 1260 1220
1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831 726 456 824 702 1120 1100 832 764 821 768 845 864 862 698
845 744 796 1040 759 781 865 845 944 984 897 822 1010 771 676 649 846 812 742 801 1040 860 874 848 890 744 749 838 1050 918
986 797 923 975 815 1020 906 901 1170 912 746 919 718 714 740""".split(), float)  # fmt: skip


def kernel(x, y, length, height):
    """Matérn 3/2: once differentiable functions."""
    gap = np.sqrt(3.0) * np.abs(x[:, None] - y[None, :]) / length
    return height**2 * (1.0 + gap) * np.exp(-gap)


def negative_log_likelihood(logs, x, y):
    """Of the hyperparameters, as logarithms: length, height, noise."""
    length, height, noise = np.exp(logs)
    factor = np.linalg.cholesky(kernel(x, x, length, height) + noise**2 * np.eye(len(x)))
    white = np.linalg.solve(factor, y)
    return 0.5 * white @ white + np.sum(np.log(np.diagonal(factor))) + 0.5 * len(x) * np.log(2 * np.pi)


def predict(logs, x, y, at):
    """Mean and standard deviation of the function itself, without noise."""
    length, height, noise = np.exp(logs)
    factor = np.linalg.cholesky(kernel(x, x, length, height) + noise**2 * np.eye(len(x)))
    weights = np.linalg.solve(factor, kernel(x, at, length, height))
    mean = weights.T @ np.linalg.solve(factor, y)
    return mean, np.sqrt(height**2 - np.sum(weights**2, axis=0))


def main():
    middle = FLOW.mean()
    y = (FLOW - middle) / 100.0
    start = np.log([20.0, 1.0, 1.0])
    found = minimize(value_and_grad(negative_log_likelihood), start, args=(YEARS, y), jac=True)
    length, height, noise = np.exp(found.x)
    print(f"length {length:.1f} years, height {100 * height:.0f}, noise {100 * noise:.0f}; {found.nfev} evaluations")
    assert found.fun < negative_log_likelihood(start, YEARS, y)
    assert np.max(np.abs(found.jac)) < 1e-4

    at = np.linspace(1871.0, 1980.0, 400)
    mean, spread = predict(found.x, YEARS, y, at)
    with picture("gaussian_process", size=(7.0, 4.0)) as axes:
        axes.plot(YEARS, FLOW, ".", color="gray", label="measured")
        axes.plot(at, middle + 100 * mean, label="mean")
        low, high = (middle + 100 * (mean + sign * 2 * spread) for sign in (-1, 1))
        axes.fill_between(at, low, high, alpha=0.2, label="95%")
        axes.set(xlabel="year", ylabel="flow, 10$^8$ m$^3$", title="The Nile at Aswan, by a Gaussian process")
        axes.legend()


if __name__ == "__main__":
    main()
