"""The benchmarks' hand-written derivatives are right, so that what they are compared to is; and the suite runs."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.common import disagreement, leaves

from symgrad import grad, hessian, hvp


def derivative(workload):
    function = workload.function("symgrad", np)
    if workload.kind == "grad":
        return grad(function, workload.argnums)
    return {"hessian": hessian, "hvp": hvp}[workload.kind](function)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_hand_written_derivative_agrees(workload):
    ours = derivative(workload)
    rng = np.random.default_rng(1)
    for _ in range(3):  # traced, compiled and cached results alike
        args = workload.inputs(rng, workload.tiny)
        assert disagreement(ours(*args), workload.hand(*args)) <= workload.tolerance


def widened(tree):
    """Floats, and arrays of them, in as many digits as NumPy has."""
    if isinstance(tree, list | tuple):
        return type(tree)(map(widened, tree))
    floats = isinstance(tree, float) or (isinstance(tree, np.ndarray) and tree.dtype.kind == "f")
    return np.asarray(tree, np.longdouble)[()] if floats else tree


def rounding(actual, exact):
    """What is lost to rounding, relative to the size of the leaf that loses most."""
    pairs = zip(leaves(actual), leaves(exact), strict=True)
    return max(float(np.linalg.norm(np.ravel(a - e)) / np.linalg.norm(np.ravel(e))) for a, e in pairs)


@pytest.mark.skipif(np.finfo(np.longdouble).eps >= np.finfo(float).eps, reason="there is nothing more precise here")
@pytest.mark.parametrize("workload", [w for w in WORKLOADS if w.name != "N"], ids=lambda workload: workload.name)
def test_no_less_accurate_than_by_hand(workload):
    """N has matrices to factorise, which NumPy does in double precision: ``test_structure_of_matrices`` looks at it."""
    ours = derivative(workload)
    lost = []
    for seed in range(100 if workload.n == 1 else 10):  # of arrays, few tell enough
        args = workload.inputs(np.random.default_rng(seed), workload.tiny)
        exact = workload.hand(*widened(args))
        lost.append((rounding(ours(*args), exact), rounding(workload.hand(*args), exact)))
    found, allowed = np.mean(lost, axis=0)
    precision = np.finfo(np.float32 if workload.name == "D32" else float).eps
    assert found <= 1.5 * allowed + 0.5 * precision


@pytest.mark.parametrize("workload", [w for w in WORKLOADS if w.floor], ids=lambda workload: workload.name)
def test_floors_that_are_derivatives_are_right_and_leave_the_inputs_as_they_are(workload):
    args = workload.inputs(np.random.default_rng(1), workload.tiny)
    expected = workload.hand(*args)
    found = workload.floor(*args)()
    assert disagreement(workload.hand(*args), expected) == 0
    assert found is None or disagreement(found, expected) <= workload.tolerance


def test_the_suite_runs(tmp_path):
    script = Path(__file__).parent / "benchmarks" / "run.py"
    command = [sys.executable, str(script), "--only", "A,B,K,L1", "--peers", "", "--rounds", "1", "--json", "found.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert all(done.stdout.count(f"| {name} |") == 3 for name in "ABK"), done.stdout
    assert (tmp_path / "found.json").exists()
