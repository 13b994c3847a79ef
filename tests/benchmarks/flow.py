"""Loops of Python floats: the gradient against the one that an expert writes by hand in Python, and HIPS autograd's.

    python tests/benchmarks/flow.py [--rounds N]

Every round times every contender on inputs that vary from call to call; what is reported are medians over the rounds of
ratios within a round.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Flow:
    """A function with a loop, its gradient written by hand, and what both are called on in turn."""

    function: Callable[..., Any]
    hand: Callable[..., Any]
    argnums: int | tuple[int, ...]
    calls: list[tuple[float, ...]]


def newton(a):
    x = a
    while abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
    return x


def newton_by_hand(a):
    x, xs = a, []
    while abs(x * x - a) > 1e-10:
        xs.append(x)
        x = 0.5 * (x + a / x)
    g, g_a = 1.0, 0.0
    for x in reversed(xs):
        part = 0.5 * g / x
        g_a += part
        g = 0.5 * g - part * a / x
    return g + g_a


def lorenz(sigma, rho, beta):
    x = y = z = 1.0
    dt = 0.001
    for _ in range(1000):
        dx = sigma * (y - x)
        dy = x * (rho - z) - y
        dz = x * y - beta * z
        x = x + dt * dx
        y = y + dt * dy
        z = z + dt * dz
    return x + y + z


def lorenz_by_hand(sigma, rho, beta):
    x = y = z = 1.0
    dt = 0.001
    xs, ys, zs = [], [], []
    for _ in range(1000):
        xs.append(x)
        ys.append(y)
        zs.append(z)
        x, y, z = x + dt * (sigma * (y - x)), y + dt * (x * (rho - z) - y), z + dt * (x * y - beta * z)
    g_x = g_y = g_z = 1.0
    g_sigma = g_rho = g_beta = 0.0
    for x, y, z in zip(reversed(xs), reversed(ys), reversed(zs), strict=True):
        h_x, h_y, h_z = dt * g_x, dt * g_y, dt * g_z
        g_sigma += h_x * (y - x)
        g_rho += h_y * x
        g_beta -= h_z * z
        back = h_x * sigma
        g_x, g_y, g_z = g_x - back + h_y * (rho - z) + h_z * y, g_y + back - h_y + h_z * x, g_z - h_y * x - h_z * beta
    return g_sigma, g_rho, g_beta


_draw = random.Random(0)
FLOWS = {
    "newton": Flow(newton, newton_by_hand, 0, [(_draw.uniform(0.1, 1000.0),) for _ in range(64)]),
    "lorenz": Flow(lorenz, lorenz_by_hand, (0, 1, 2), [(10.0 + _draw.random(), 28.0, 8 / 3) for _ in range(2)]),
}


def seconds(function: Callable[..., Any], calls: list[tuple[float, ...]], repeat: int) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    for _ in range(repeat):
        for call in calls:
            function(*call)
    return (time.perf_counter() - start) / (repeat * len(calls))


def measure(flow: Flow, rounds: int) -> dict[str, float]:
    """Microseconds of the hand-written gradient and of symgrad's, and the ratios to the hand-written one."""
    from symgrad import grad

    contenders = {"hand": flow.hand, "symgrad": grad(flow.function, flow.argnums)}
    try:
        from autograd import grad as autograd

        contenders["autograd"] = autograd(flow.function, flow.argnums)
    except ImportError:
        pass
    for function in contenders.values():
        seconds(function, flow.calls, 2)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for place in range(rounds):
        for name, function in contenders.items():
            if name != "autograd" or place < 3:
                times[name].append(seconds(function, flow.calls, 1 if name == "autograd" else 5))
    found = {f"{name} us": 1e6 * median(values) for name, values in times.items()}
    for name, values in times.items():
        if name != "hand":
            found[f"{name}/hand"] = median(a / b for a, b in zip(values, times["hand"], strict=False))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31)
    options = parser.parse_args()
    for name, flow in FLOWS.items():
        found = measure(flow, options.rounds)
        print(f"{name:8}", "  ".join(f"{key} {value:.2f}" for key, value in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
