"""``scipy.spatial``: its ``distance`` module."""

import scipy.spatial

from symgrad.scipy.plain import rest_of
from symgrad.scipy.spatial import distance

__all__ = ["distance"]

__getattr__ = rest_of(scipy.spatial)
