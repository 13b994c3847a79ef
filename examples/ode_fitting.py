"""Fit an ODE to data: hares and lynxes in Hudson Bay, 1900 to 1920, by the model of Lotka and Volterra.

The solver is a loop of Runge-Kutta steps in plain NumPy. symgrad differentiates through all of them, and writes the loop's
derivative as a loop.
"""

import numpy as np
from _picture import picture
from scipy.optimize import least_squares

from symgrad import jacobian

YEARS = np.arange(1900, 1921)
HARES = np.array([30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1, 40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6,
                  16.2, 24.7])  # fmt: skip
LYNXES = np.array([4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4, 8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1,
                   8.6])  # fmt: skip
PELTS = np.stack([HARES, LYNXES])  # thousands, as the Hudson's Bay Company counted them
STEPS = 10  # a year


def growth(state, rates):
    """How fast hares and lynxes become more."""
    hares, lynxes = state
    birth, caught, fed, death = rates
    return np.stack([(birth - caught * lynxes) * hares, (fed * hares - death) * lynxes])


def simulate(logs):
    """Both populations in each year; ``logs`` are the logarithms of four rates and two populations in 1900."""
    rates, state = np.exp(logs[:4]), np.exp(logs[4:])
    h = 1 / STEPS
    years = [state]
    for _ in range(len(YEARS) - 1):
        for _ in range(STEPS):
            k1 = growth(state, rates)
            k2 = growth(state + h / 2 * k1, rates)
            k3 = growth(state + h / 2 * k2, rates)
            k4 = growth(state + h * k3, rates)
            state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        years.append(state)
    return np.stack(years, axis=1)


def misfit(logs):
    """Differences of logarithms: the counts are uncertain by a factor."""
    return np.ravel(np.log(simulate(logs)) - np.log(PELTS))


def main():
    slope = jacobian(misfit)
    start = np.log([0.5, 0.03, 0.03, 0.8, 30.0, 4.0])
    found = least_squares(misfit, start, jac=slope)
    names = ("births of hares", "caught by a lynx", "lynxes fed by a hare", "deaths of lynxes", "hares 1900", "lynxes 1900")
    for name, value in zip(names, np.exp(found.x), strict=True):
        print(f"{name:22}{value:8.3f}")
    print(f"{found.nfev} evaluations; residual {np.sqrt(np.mean(found.fun**2)):.3f} in the logarithm")
    assert np.max(np.abs(slope(found.x).T @ found.fun)) < 1e-3
    assert np.allclose(np.exp(found.x[:4]), [0.55, 0.028, 0.024, 0.80], rtol=0.05)  # as the literature has it

    with picture("ode_fitting") as axes:
        for name, counted, fitted, colour in zip(("hares", "lynxes"), PELTS, simulate(found.x), ("C0", "C1"), strict=True):
            axes.plot(YEARS, counted, "o", color=colour, label=f"{name}, counted")
            axes.plot(YEARS, fitted, color=colour, label=f"{name}, model")
        axes.set(xlabel="year", ylabel="pelts, thousands", title="Lotka-Volterra, fitted")
        axes.legend()


if __name__ == "__main__":
    main()
