"""What a user writes, for mypy: the comments say what it infers, and which lines it finds wrong."""

from collections.abc import Callable
from typing import reveal_type

import numpy as np
from numpy.typing import NDArray

import symgrad
from symgrad import elementwise_grad, grad, hessian, hvp, jacobian, stop_gradient, value_and_grad

Vector = NDArray[np.float64]


def loss(w: Vector, x: Vector, *, scale: float = 1.0) -> float:
    return float(np.sum((x @ w) ** 2)) * scale


w, x = np.ones(3), np.ones((2, 3))

slope = grad(loss)
slope(w, x, scale=2.0)
slope(w)  # error: call-arg
slope(w, x, size=2.0)  # error: call-arg
slope("w", x)  # error: arg-type

value, gradient = value_and_grad(loss)(w, x)
reveal_type(value)  # note: float
value_and_grad(loss)(w, x, 1.0)  # error: call-arg


@grad
def decorated(t: float) -> float:
    return t**2


decorated(1.0)
decorated(1.0, 2.0)  # error: call-arg


@jacobian(argnums=1, mode="dynamic")
def twice(t: float, u: Vector) -> Vector:
    return t * u


twice(1.0, u=w)
twice(w, 1.0)  # error: arg-type arg-type
twice.source(1.0, w).upper()
jacobian(loss, modus="dynamic")  # error: call-overload call-overload

product = hvp(loss)
reveal_type(product(w, w, x))  # note: ndarray
product(w, x)  # error: call-arg

reveal_type(stop_gradient(w))  # note: ndarray
table: Callable[..., object] = hessian(loss)
elementwise_grad(twice.__wrapped__, 1)(2.0, w)
vector, unflatten = symgrad.flatten({"w": w})
text: str = symgrad.export(slope, w, x)
