"""A Python float in, a Python float out: what a call costs when there is nearly nothing to compute."""

import numpy as np

from .common import Workload


def make(np):
    def damped(x):
        return np.sin(x) * np.exp(-x)

    return damped


def inputs(rng, n):
    return (float(rng.uniform(0.5, 1.5)),)


def hand(x):
    return np.exp(-x) * (np.cos(x) - np.sin(x))


WORKLOAD = Workload("A", "sin · exp of a float", make, inputs, hand, draws=8, words={"casadi": make})
