"""What generated code calls for ``symgrad.scipy.optimize``: SciPy's solvers, of which each gives the solution alone.

They raise where there is none, so that a call of the code is a call of the function then, which says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize as so

Fun = Callable[..., Any]


def root(fun: Fun, x0: Any, args: tuple[Any, ...] = (), **options: Any) -> Any:
    """The solution of a system of equations."""
    return _sure(so.root(fun, x0, args, **options)).x


def minimize(fun: Fun, slope: Fun, x0: Any, args: tuple[Any, ...] = (), **options: Any) -> Any:
    """A minimum of a function of an array."""
    return _sure(so.minimize(fun, x0, args, jac=slope, **options)).x


def minimize_scalar(fun: Fun, args: tuple[Any, ...] = (), **options: Any) -> Any:
    """A minimum of a function of a number."""
    return float(_sure(so.minimize_scalar(fun, args=args, **options)).x)


def least_squares(fun: Fun, slopes: Fun, x0: Any, args: tuple[Any, ...] = (), **options: Any) -> Any:
    """Where a sum of squares is least."""
    return _sure(so.least_squares(fun, x0, slopes, args=args, **options)).x


def newton(fun: Fun, x0: Any, args: tuple[Any, ...] = (), **options: Any) -> Any:
    """The solution of an equation near ``x0``; of an array, that of one for each element."""
    x = so.newton(fun, x0, args=args, **options)
    return x if np.ndim(x) else float(x)


def root_scalar(fun: Fun, args: tuple[Any, ...] = (), **options: Any) -> Any:
    """The solution of an equation."""
    result = so.root_scalar(fun, args, **options)
    if not result.converged:
        raise RuntimeError(result.flag)
    return float(result.root)


def fixed_point(fun: Fun, x0: Any, args: tuple[Any, ...] = (), **options: Any) -> Any:
    """The ``x`` with ``fun(x) == x``."""
    return np.asarray(so.fixed_point(fun, x0, args, **options), float)


def _sure(result: Any) -> Any:
    if not result.success:
        raise RuntimeError(result.message)
    return result
