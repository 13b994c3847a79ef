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


# -- writes, gradients and modes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "expected"), [([1.0, 2.0], [1, 1]), (2.0, 2)])
def test_each_value_for_a_place_has_its_gradient(values, expected):
    places = torch.tensor([1, 1])
    for put in (lambda y, v: y.__setitem__(places, v), lambda y, v: y.index_put_((places,), v)):
        y, v = torch.zeros(3, dtype=torch.float64), given(values)
        put(y, v)
        assert slope(y.sum(), v).tolist() == expected


def test_gradients_are_not_added_to_what_repeats_an_element():
    x = given([1.0, 2.0])
    x.grad = torch.ones(1, dtype=torch.float64).expand(2)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
        (x**2).sum().backward()


def test_batches_of_gradients_of_what_is_unused():
    x, w = given([1.0, 1.0]), given([1.0, 1.0, 1.0])
    for options, expected in (({"allow_unused": True}, None), ({"materialize_grads": True}, [0, 0, 0])):
        found, unused = torch.autograd.grad(x * x, (x, w), torch.eye(2).double(), is_grads_batched=True, **options)
        assert found.tolist() == [[2, 0], [0, 2]]
        assert (unused if unused is None else unused.tolist()) == expected


def test_generators_under_no_grad_are_thrown_into_and_closed():
    seen = []

    @torch.no_grad()
    def steps():
        try:
            yield
        except ValueError:
            seen.append(torch.is_grad_enabled())
            yield "caught"
        finally:
            seen.append(torch.is_grad_enabled())

    run = steps()
    next(run)
    assert run.throw(ValueError()) == "caught"
    run.close()
    assert seen == [False, False]
    assert torch.is_grad_enabled()


def test_nothing_is_recorded_in_inference_mode():
    with torch.inference_mode(), torch.enable_grad():
        assert not (torch.ones(2, requires_grad=True) * 2).requires_grad
        with torch.inference_mode(False):
            assert (torch.ones(2, requires_grad=True) * 2).requires_grad
