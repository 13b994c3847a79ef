"""``torch.utils``: what saves memory in backward passes."""

from symgrad.eager.utils import checkpoint

__all__ = ["checkpoint"]
