"""An implicit function: a solar cell's current is defined by an equation that cannot be solved for it.

The cell (a 57 mm RTC France cell at 33 °C, measured by Easwarakhanthan and others in 1986) is a current source, a diode and
two resistors. Newton's method finds the current; the implicit function theorem gives its derivatives, as a rule of our own
that symgrad does not look behind.
"""

import numpy as np
from _picture import picture
from scipy.optimize import least_squares

from symgrad import custom_jvp, elementwise_grad, jacobian, jvp

VOLTS = np.array([-0.2057, -0.1291, -0.0588, 0.0057, 0.0646, 0.1185, 0.1678, 0.2132, 0.2545, 0.2924, 0.3269, 0.3585, 0.3873,
                  0.4137, 0.4373, 0.4590, 0.4784, 0.4960, 0.5119, 0.5265, 0.5398, 0.5521, 0.5633, 0.5736, 0.5833,
                  0.5900])  # fmt: skip
AMPERES = np.array([0.7640, 0.7620, 0.7605, 0.7605, 0.7600, 0.7590, 0.7570, 0.7570, 0.7555, 0.7540, 0.7505, 0.7465, 0.7385,
                    0.7280, 0.7065, 0.6755, 0.6320, 0.5730, 0.4990, 0.4130, 0.3165, 0.2120, 0.1035, -0.0100, -0.1230,
                    -0.2100])  # fmt: skip
THERMAL = 1.380649e-23 * 306.15 / 1.602176634e-19  # volts


def balance(current, p, volts):
    """Zero where the currents add up. ``p``: photocurrent, log of the diode's, ideality, series resistance, conductance."""
    photo, log_diode, ideality, series, shunt = p
    inner = volts + current * series
    return photo - np.exp(log_diode) * np.expm1(inner / (ideality * THERMAL)) - shunt * inner - current


def solve(p, volts):
    """The current, by Newton's method, elementwise."""
    slope = elementwise_grad(balance)
    current = np.zeros_like(volts)
    for _ in range(50):
        step = balance(current, p, volts) / slope(current, p, volts)
        current = current - step
        if np.max(np.abs(step)) < 1e-13:
            return current
    raise RuntimeError("Newton's method does not converge")


@custom_jvp
def current(p, volts):
    return solve(p, volts)


@current.defjvp
def current_jvp(primals, tangents):
    """balance(I(p), p) = 0 for all p, so its derivative is zero, too: by I times the tangent of I, plus that by p."""
    i = solve(*primals)
    change = jvp(lambda p, volts: balance(i, p, volts), primals, tangents)[1]
    return i, -change / elementwise_grad(balance)(i, *primals)


def misfit(p):
    return current(p, VOLTS) - AMPERES


def main():
    found = least_squares(misfit, np.array([0.75, np.log(1e-6), 1.6, 0.03, 0.02]), jac=jacobian(misfit), x_scale="jac")
    photo, log_diode, ideality, series, shunt = found.x
    error = np.sqrt(np.mean(found.fun**2))
    print(f"photocurrent {photo:.5f} A, diode {1e6 * np.exp(log_diode):.4f} µA, ideality {ideality:.4f}")
    print(f"series {series:.5f} Ω, shunt {1 / shunt:.2f} Ω; error {1e4 * error:.4f}e-4 A after {found.nfev} evaluations")
    assert abs(error - 7.7301e-4) < 1e-7  # the best that is known for this cell

    step = 1e-6 * np.eye(5)[3]
    numeric = (misfit(found.x + step) - misfit(found.x - step)) / 2e-6
    assert np.allclose(jacobian(misfit)(found.x)[:, 3], numeric, rtol=1e-5, atol=1e-7)

    volts = np.linspace(-0.2, 0.6, 200)
    with picture("implicit_function") as axes:
        axes.plot(VOLTS, AMPERES, "o", label="measured")
        axes.plot(volts, solve(found.x, volts), label="model")
        axes.set(xlabel="volts", ylabel="amperes", title="A solar cell, fitted through an implicit function", ylim=(-0.3, 0.9))
        axes.legend()


if __name__ == "__main__":
    main()
