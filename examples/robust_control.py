"""Robust optimal control: tomorrow's heating of a house, planned before anyone knows how cold it will be.

One plan for all of 31 days of January weather at once: the cost is the mean over them, with a part for the worst. symgrad
differentiates through the simulation, a loop over time of arrays over days.
"""

from pathlib import Path

import numpy as np
from _picture import picture
from scipy.optimize import minimize

from symgrad import value_and_grad

DATA = Path(__file__).parent / "data" / "january.csv"
HOURS, PARTS, MOST = 24, 4, 12.0  # a quarter of an hour is one step; the heating has 12 kW
AIR, WALLS = 1.5, 12.0  # kWh that it takes to warm them by one degree
LEAK, WITHIN, WINDOWS = 0.15, 0.8, 3.0  # kW a degree to the outside and between air and walls; square metres of glass
NIGHT = np.arange(HOURS) < 6
PRICE = np.where(NIGHT, 0.2, 0.4)  # of a kWh
LOW, HIGH = np.where(NIGHT, 16.0, 20.0), np.where(NIGHT, 20.0, 23.0)  # what is comfortable


def load():
    """Temperature (degrees Celsius) and sunlight (kW a square metre), hours by days."""
    table = np.loadtxt(DATA, delimiter=",", skiprows=1)
    return table[:, 0].reshape(-1, HOURS).T, table[:, 1].reshape(-1, HOURS).T / 1000.0


def simulate(heating, outside, sun):
    """The temperature of the air in the house at the end of each hour, from midnight on, on all days."""
    air = walls = np.full_like(outside[0], 18.0)
    found = []
    for hour in range(HOURS):
        for _ in range(PARTS):
            exchange = WITHIN * (walls - air)
            air = air + (heating[hour] + LEAK * (outside[hour] - air) + exchange + WINDOWS * sun[hour]) / (AIR * PARTS)
            walls = walls - exchange / (WALLS * PARTS)
        found.append(air)
    return np.stack(found)


def power(controls):
    """Any numbers as heating between nothing and all."""
    return MOST / (1.0 + np.exp(-controls))


def excess(air):
    """Degrees too cold, or too warm."""
    return np.maximum(LOW[:, None] - air, 0.0) + np.maximum(air - HIGH[:, None], 0.0)


def cost(controls, outside, sun):
    """What the energy costs, and how far it is from comfortable: the mean of the days, and the worst."""
    heating = power(controls)
    discomfort = np.sum(excess(simulate(heating, outside, sun)) ** 2, axis=0)
    worst = 5.0 * np.logaddexp.reduce(discomfort / 5.0)  # about the largest
    return PRICE @ heating + np.mean(discomfort) + worst


def solve(outside, sun):
    """The heating of each hour."""
    start = np.full(HOURS, -1.0)
    found = minimize(value_and_grad(cost), start, args=(outside, sun), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return power(found.x)


def main():
    outside, sun = load()
    robust = solve(outside, sun)
    nominal = solve(outside.mean(axis=1, keepdims=True), sun.mean(axis=1, keepdims=True))
    plans = {"planned for the mean day": nominal, "planned for all days": robust}
    airs = {title: simulate(heating, outside, sun) for title, heating in plans.items()}
    worst = {title: excess(air).max(axis=0) for title, air in airs.items()}
    for title, heating in plans.items():
        print(f"{title}: at most {worst[title].max():.1f} degrees from comfortable, for {PRICE @ heating:.2f} a day")
    assert worst["planned for all days"].max() < 2.5 < worst["planned for the mean day"].max()

    with picture("robust_control", columns=2, size=(5.0, 3.8)) as axes:
        for one, (title, heating) in zip(axes, plans.items(), strict=True):
            one.plot(1 + np.arange(HOURS), outside, color="C0", alpha=0.2)
            one.plot(1 + np.arange(HOURS), airs[title], color="C3", alpha=0.5)
            one.stairs(HIGH, baseline=LOW, fill=True, color="C2", alpha=0.3, label="comfortable")
            one.stairs(heating, color="k", label="heating, kW")
            one.set(
                xlabel="hour", ylabel="degrees outside (blue) and inside (red)", title=title, xlim=(0, HOURS), ylim=(-14, 34)
            )
            one.legend(loc="upper left", ncols=2)


if __name__ == "__main__":
    main()
