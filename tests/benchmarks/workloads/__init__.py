"""The workloads, each with its plain NumPy function and the derivative that an expert would write by hand."""

from . import (
    attention,
    black_scholes,
    bundle,
    gaussian_process,
    logistic,
    lorenz,
    lstm,
    mixture,
    mlp,
    newton,
    rosenbrock,
    scalar,
    softmax,
    tutorial,
)
from .common import Workload as Workload

WORKLOADS: list[Workload] = [
    scalar.WORKLOAD,
    tutorial.WORKLOAD,
    logistic.WORKLOAD,
    mlp.WORKLOAD,
    mlp.WORKLOAD32,
    rosenbrock.WORKLOAD,
    black_scholes.WORKLOAD,
    mixture.SMALL,
    mixture.LARGE,
    lstm.WORKLOAD,
    bundle.WORKLOAD,
    lorenz.WORKLOAD,
    lorenz.VECTOR,
    newton.WORKLOAD,
    logistic.HESSIAN,
    rosenbrock.HVP,
    attention.WORKLOAD,
    gaussian_process.WORKLOAD,
    softmax.WORKLOAD,
]
