"""Test your own functions and derivatives with properties: symgrad draws the inputs, and checks the derivatives.

In a project these are tests that pytest runs; here ``main`` runs them, and draws where they looked.
"""

import numpy as np
from _picture import picture
from hypothesis import given, settings

from symgrad import custom_jvp, elementwise_grad
from symgrad.testing import arguments, arrays, away_from, check_grads

# -- the code under test -------------------------------------------------------------------------------------------


def huber(r, width=1.0):
    """Quadratic near zero, linear far away."""
    return np.where(np.abs(r) <= width, 0.5 * r**2, width * (np.abs(r) - 0.5 * width))


@custom_jvp
def softplus(x):
    """log(1 + exp(x)), safe for large x."""
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


softplus.defjvp(lambda primals, tangents: (softplus(*primals), tangents[0] / (1.0 + np.exp(-primals[0]))))


def normalised(params, x):
    """A layer that makes rows of unit length."""
    y = x @ params["w"] + params["b"]
    return y / np.sqrt(1e-3 + np.sum(y**2, axis=-1, keepdims=True))


# -- properties ----------------------------------------------------------------------------------------------------

SEEN = []


@settings(max_examples=15, deadline=None, derandomize=True)
@given(arrays((3,), elements=away_from([-1.0, 1.0], -3.0, 3.0)))
def test_huber(r):
    """Its derivatives are right away from where the pieces meet; so is its bound everywhere."""
    check_grads(huber, (r,), order=1)
    assert np.all(np.abs(elementwise_grad(huber)(r)) <= 1.0)
    SEEN.extend(r)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(arrays(lo=-30.0, hi=30.0))
def test_softplus(x):
    """The rule that we gave by hand is that of the function, for arrays of any shape and memory layout."""
    check_grads(softplus, (x,), order=2)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(arguments({"w": arrays((3, 2)), "b": arrays((2,), lo=0.5)}, arrays((4, 3))))
def test_normalised(args):
    """Parameters in a dict are drawn and checked as one."""
    check_grads(normalised, args, order=1)


def main():
    for test in (test_huber, test_softplus, test_normalised):
        test()
        print(f"{test.__name__}: {test.__doc__}")

    with picture("property_testing") as axes:
        x = np.linspace(-3, 3, 301)
        axes.plot(x, huber(x), label="huber")
        axes.plot(x, elementwise_grad(huber)(x), label="its derivative")
        axes.plot(SEEN, elementwise_grad(huber)(np.array(SEEN)), ".", color="k", ms=3, label="where it was tested")
        axes.set(title="Points that keep away from kinks")
        axes.legend()


if __name__ == "__main__":
    main()
