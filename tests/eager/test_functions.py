"""What functions of tensors give and refuse where torch's have their own ways; the numbers are torch's."""

import math

import numpy as np
import pytest

import symgrad
import symgrad.eager as torch

NAN, INF = math.nan, math.inf


def given(numbers):
    return torch.tensor(numbers, dtype=torch.float64, requires_grad=True)


def slope(y, x, **options):
    return torch.autograd.grad(y, x, **options)[0]


def curvature(y, x, weights=1.0):
    """The gradient of the weighted sum of the gradient."""
    return slope((slope(y, x, create_graph=True) * weights).sum(), x)


# -- second derivatives --------------------------------------------------------------------------------------------


def test_the_direction_of_a_complex_zero_stays():
    x = given([0.0, 0.0])
    assert curvature(torch.complex(x, x * 2).abs().sum(), x).tolist() == [0, 0]
    assert not symgrad.hessian(lambda x: np.abs(x + 2j * x).sum())(np.zeros(2)).any()


def test_distances_by_products_of_equal_rows_are_zero():
    rng = np.random.default_rng(0)
    rows = rng.random((30, 2))
    x, weights = given(rows), torch.tensor(rng.random((30, 2)))
    found = [curvature(torch.cdist(x, torch.tensor(rows), compute_mode=f"{way}use_mm_for_euclid_dist").sum(), x, weights)
             for way in ("", "donot_")]  # fmt: skip
    np.testing.assert_allclose(*found, rtol=1e-6)


# -- matrices ------------------------------------------------------------------------------------------------------

UNEVEN = [[4.0, 1.2], [1.0, 3.0]]


EIGH = torch.linalg.eigh


@pytest.mark.parametrize("fun", [torch.linalg.cholesky, torch.linalg.eigvalsh, lambda x: EIGH(x)[0], lambda x: EIGH(x)[1]])
def test_gradients_of_matrices_that_are_read_by_halves_are_symmetric(fun):
    slopes = []
    for create_graph in (False, True):
        x = given(UNEVEN)
        y = fun(x)
        g = slope((y * torch.arange(y.numel()).reshape(y.shape)).sum(), x, create_graph=create_graph)
        np.testing.assert_allclose(g.detach(), g.mT.detach(), rtol=1e-12)
        slopes.append(g.detach())
    np.testing.assert_allclose(*slopes, rtol=1e-12)
