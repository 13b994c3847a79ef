"""``torch.autograd``: the backward pass, own functions, checks, and derivatives of functions."""

from symgrad.eager.autograd import functional, graph
from symgrad.eager.autograd.checks import GradcheckError, gradcheck, gradgradcheck
from symgrad.eager.autograd.function import Function
from symgrad.eager.autograd.variable import Variable
from symgrad.eager.core import Node, Tensor
from symgrad.eager.engine import backward, grad
from symgrad.eager.modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
)

__all__ = [
    "Function",
    "GradcheckError",
    "Node",
    "Tensor",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]
