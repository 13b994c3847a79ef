"""A Python float in, a Python float out: what a call costs when there is nearly nothing to compute."""

import math

from .common import Workload


def make(np):
    def damped(x):
        return np.sin(x) * np.exp(-x)

    return damped


def make_torch(torch):
    return make(torch)


def inputs(rng, small):
    return (float(rng.uniform(0.5, 1.5)),)


def hand(x):
    return math.exp(-x) * (math.cos(x) - math.sin(x))


WORKLOAD = Workload("scalar", make, inputs, hand, make_torch)
