"""``torch.optim``: optimisers, and what changes their learning rates."""

from symgrad.eager.optim import lr_scheduler
from symgrad.eager.optim.lbfgs import LBFGS
from symgrad.eager.optim.optimizer import Optimizer
from symgrad.eager.optim.optimizers import ASGD, SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, NAdam, RAdam, RMSprop, Rprop

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]
