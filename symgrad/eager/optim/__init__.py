"""``torch.optim``: optimisers, and what changes their learning rates."""

from symgrad.eager.optim import lr_scheduler
from symgrad.eager.optim.lbfgs import LBFGS
from symgrad.eager.optim.optimizers import SGD, Adam, AdamW, Optimizer, RMSprop

__all__ = ["LBFGS", "SGD", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]
