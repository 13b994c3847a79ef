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
    vmap,
)
from symgrad.custom import checkpoint, custom_jvp, custom_vjp, primitive
from symgrad.export import export
from symgrad.flat import flatten
from symgrad.optimize.switches import without
from symgrad.parallel import threads
from symgrad.testing import check_grads

__all__ = [
    "Derivative",
    "check_grads",
    "checkpoint",
    "custom_jvp",
    "custom_vjp",
    "elementwise_grad",
    "export",
    "flatten",
    "grad",
    "graph",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "primitive",
    "stop_gradient",
    "threads",
    "value_and_grad",
    "vjp",
    "vmap",
    "without",
]

__version__ = "0.1.0"
