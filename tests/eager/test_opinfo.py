"""Torch's own sample inputs, some of each operation: values, dtypes, graphs and gradients are torch's."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", minversion="2.13", reason="the samples are torch's")
pytest.importorskip("expecttest", reason="what makes the samples needs it")

from eager import opinfo  # noqa: E402

# Where we differ knowingly, and why: a name, or a name and a dtype.
KNOWN = {
    "nn.functional.interpolate": "bicubic is not here",
    "nn.functional.triplet_margin_with_distance_loss": "the samples hand over one of torch's modules",
    "linalg.norm": "at zero the singular vectors are arbitrary; a second derivative there is NaN in torch",
    "linalg.cholesky": "complex cotangents are made Hermitian here, torch's are not; both are right along Hermitian directions",
    "special.bessel_j0": "torch's has an error of 2e-7, SciPy's has none",
    "special.bessel_y1": "as bessel_j0",
    ("logcumsumexp", "float32"): "rounding, in a gradient that spans many orders of magnitude",
    ("matrix_exp", "float32"): "rounding: sums of other terms in other orders",
    ("kthvalue", "int64"): "torch takes another one of equal elements",
    ("topk", "int64"): "as kthvalue",
    ("sort", "bool"): "as kthvalue: torch's sort is not stable, by default",
    ("argsort", "bool"): "as sort",
    ("sum_to_size", "bool"): "torch sums a single truth value to a whole number",
    ("logspace", "int64"): "torch rounds ends to whole numbers first, in one of several ways",
    ("linspace", "int64"): "as logspace",
    "linalg.cholesky_ex": "as linalg.cholesky",
    "cholesky": "as linalg.cholesky",
    ("mode", "int64"): "as kthvalue",
    ("mode", "bool"): "as kthvalue",
    ("logcumsumexp", "complex128"): "as logaddexp",
    ("logaddexp", "complex128"): "not here for complex numbers",
}


# Of which only the names in the graph are others.
OTHER_GRAPHS = {
    "to": "memory formats change nothing here, so that no copy is made for channels_last",
    "double": "as to",
    "sum_to_size": "a tensor of that size already is given back as it is, with no step in between",
    "meshgrid": "torch swaps dimensions before it expands them",
    "linalg.matrix_power": "the power 0: torch copies the identity, here a matrix is multiplied no times",
    "nn.functional.batch_norm": "of no elements, which torch clones",
    "nn.functional.scaled_dot_product_attention": "torch has a kernel of its own for some shapes",
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64", "bool"])
def test_samples_give_what_torch_gives(dtype):
    found = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for op in opinfo.operations():
            if opinfo.found(op) is None or {op.name, (op.name, dtype)} & KNOWN.keys():
                continue
            for sample in opinfo.samples(op, getattr(torch, dtype), 2 if dtype == "float64" else 1):
                graphs = dtype == "float64" and op.name not in OTHER_GRAPHS
                gap = opinfo.compare(op, sample, second=dtype == "float64", names=graphs)
                if gap is not None:
                    found.append(f"{op.name} {op.variant_test_name}: {gap}   of ({opinfo.shown(sample)})")
    assert not found, "\n".join(["", *found])


def test_known_differences_are_of_operations_that_are_here():
    here = {op.name for op in opinfo.operations() if opinfo.found(op) is not None}
    assert {key if isinstance(key, str) else key[0] for key in [*KNOWN, *OTHER_GRAPHS]} <= here
