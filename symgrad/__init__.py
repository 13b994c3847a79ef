"""symgrad differentiates ordinary NumPy functions by writing NumPy code."""

from symgrad.api import (
    Derivative,
    elementwise_grad,
    grad,
    graph,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
)

__version__ = "0.1.0"
