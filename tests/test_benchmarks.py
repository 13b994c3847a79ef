"""The benchmarks' hand-written gradients are right, so that what they are compared to is."""

import numpy as np
import pytest
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.common import disagreement

from symgrad import grad


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_hand_written_gradient_agrees(workload):
    args = workload.inputs(np.random.default_rng(1), True)
    derivative = grad(workload.make(np), workload.argnums)
    for _ in range(3):  # traced, compiled and cached results alike
        assert disagreement(derivative(*args), workload.hand(*args)) <= workload.tolerance
