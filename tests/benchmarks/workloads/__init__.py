"""The workloads, each with its plain NumPy function and the gradient that an expert would write by hand."""

from . import logistic, mlp, rosenbrock, scalar, softmax, tutorial
from .common import Workload as Workload

WORKLOADS: list[Workload] = [
    scalar.WORKLOAD,
    tutorial.WORKLOAD,
    logistic.WORKLOAD,
    softmax.WORKLOAD,
    mlp.WORKLOAD,
    mlp.WORKLOAD32,
    rosenbrock.WORKLOAD,
]
