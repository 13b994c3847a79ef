"""What reading from outside costs: five captured values and a branch, beside the same as arguments and as constants.

python tests/benchmarks/state.py [--rounds N]
"""

import argparse
import types
from statistics import median

import numpy as np
from run import interleaved

from symgrad import grad

SCALE = 1.5
TABLE = {"shift": 0.25}
WEIGHTS = np.array([1.0, 2.0, 3.0])


def reading(box):
    """A gradient of a function that reads a global number, an array, a dict, and a flag and a number of an object."""

    def loss(x):
        y = x * WEIGHTS * SCALE + TABLE["shift"]
        if box.squared:
            y = y * y
        return np.sum(y) * box.gain

    return grad(loss)


def passed():
    """The same with what it reads as arguments: the same arithmetic, and no guards."""

    def loss(x, weights, scale, shift, gain):
        y = x * weights * scale + shift
        y = y * y
        return np.sum(y) * gain

    return grad(loss)


def constant():
    """The same with what it reads written down, so that its arithmetic is folded; its array is an argument."""

    def loss(x, weights):
        y = x * weights * 1.5 + 0.25
        y = y * y
        return np.sum(y) * 2.0

    return grad(loss)


def main():
    """Print the microseconds that a call takes, and those that the five values add."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=101)
    options = parser.parse_args()
    x = np.array([0.5, -0.25, 2.0])
    lifted, given, fixed = reading(types.SimpleNamespace(squared=True, gain=2.0)), passed(), constant()
    np.testing.assert_allclose(lifted(x), fixed(x, WEIGHTS))
    np.testing.assert_allclose(lifted(x), given(x, WEIGHTS, SCALE, 0.25, 2.0))
    calls = {
        "reading": lambda: lifted(x),
        "passed": lambda: given(x, WEIGHTS, SCALE, 0.25, 2.0),
        "constants": lambda: fixed(x, WEIGHTS),
    }
    times = interleaved(calls, options.rounds, batch=0.002)
    for name, seconds in times.items():
        more = median(a - b for a, b in zip(times["reading"], seconds, strict=True))
        print(f"{name:12}{1e6 * median(seconds):8.2f} us; reading takes {1e6 * more:5.2f} us more")
    assert lifted.cache_info().misses == fixed.cache_info().misses == 2


if __name__ == "__main__":
    main()
