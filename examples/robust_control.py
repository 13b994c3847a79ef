"""Robust optimal control: swing up a pendulum whose mass and friction are not known well.

One control for all of eight pendulums at once: the cost is the mean over them, with a part for the worst. symgrad
differentiates through the simulation, a loop over time of arrays over pendulums.
"""

import numpy as np
from _picture import picture
from scipy.optimize import minimize

from symgrad import value_and_grad

STEPS, STEP, LIMIT = 80, 0.05, 4.0  # the motor is too weak to lift it in one go: that would take 9.81
RNG = np.random.default_rng(0)
MASS, FRICTION = RNG.uniform(0.9, 1.1, 8), RNG.uniform(0.05, 0.15, 8)


def simulate(torques, mass, friction):
    """Angle (0 hangs, pi stands) and speed of all pendulums at the end, by semi-implicit Euler steps."""
    angle, speed = np.zeros_like(mass), np.zeros_like(mass)
    for torque in torques:
        speed = speed + STEP * (torque / mass - friction * speed / mass - 9.81 * np.sin(angle))
        angle = angle + STEP * speed
    return angle, speed


def cost(controls, mass, friction):
    """How far each pendulum is from standing still upside down: the mean, the worst, and the effort."""
    torques = LIMIT * np.tanh(controls)
    angle, speed = simulate(torques, mass, friction)
    miss = 2.0 * (1.0 + np.cos(angle)) + 0.1 * speed**2
    worst = 0.1 * np.log(np.sum(np.exp(miss / 0.1)))
    return np.mean(miss) + 0.5 * worst + 1e-4 * np.sum(torques**2)


def solve(mass, friction):
    """Controls, from the best of a few starts."""
    both = value_and_grad(cost)
    starts = [0.5 * np.sin(frequency * STEP * np.arange(STEPS)) for frequency in (2.5,)]
    found = [minimize(both, x, args=(mass, friction), jac=True, method="L-BFGS-B", options={"maxiter": 150}) for x in starts]
    return min(found, key=lambda result: result.fun)


def paths(controls, mass, friction):
    """The angle of each pendulum at each time."""
    torques = LIMIT * np.tanh(controls)
    return np.array([simulate(torques[:k], mass, friction)[0] for k in range(STEPS + 1)])


def main():
    robust = solve(MASS, FRICTION)
    nominal = solve(np.ones(1), np.full(1, 0.1))
    miss = lambda controls: np.abs(paths(controls, MASS, FRICTION)[-1] % (2 * np.pi) - np.pi)
    print(f"worst angle from upright: {miss(robust.x).max():.2f} rad planned for all, {miss(nominal.x).max():.2f} for one")
    assert miss(robust.x).max() < 0.5 < miss(nominal.x).max()

    time = STEP * np.arange(STEPS + 1)
    with picture("robust_control", columns=2, size=(4.5, 3.5)) as axes:
        for one, title, controls in zip(axes, ("planned for one", "planned for all"), (nominal.x, robust.x), strict=True):
            one.plot(time, paths(controls, MASS, FRICTION), color="C0", alpha=0.6)
            one.step(time[1:], LIMIT * np.tanh(controls), color="gray", lw=1, label="torque")
            for upright in (-np.pi, np.pi):
                one.axhline(upright, color="C3", ls=":", lw=1)
            one.set(xlabel="seconds", ylabel="angle", title=title)
            one.legend(loc="lower left")


if __name__ == "__main__":
    main()
