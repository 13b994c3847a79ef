"""``scipy.optimize``: roots and minima, differentiated by the implicit function theorem.

SciPy finds the solution, with plain numbers. Two Newton steps from there, which do not move it, are what is traced: they
give the derivatives up to the third order, by ``args`` and by everything else that the function reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize as so

from symgrad.api import elementwise_grad, grad, jacobian, jvp
from symgrad.ops.core import Traced
from symgrad.ops.index import array_of
from symgrad.scipy.plain import as_tuple, noted, of_kind, plain_values, rest_of
from symgrad.tracing.trace import followed

Fun = Callable[..., Any]


__getattr__ = rest_of(so)


def solved(name: str) -> bool:
    """Whether a derivative may be asked for. Then SciPy runs at every call, for no generated code can run it."""
    return noted(f"scipy.optimize.{name} runs SciPy's solver on your function")


def on_plain(fun: Fun, args: tuple[Any, ...]) -> Fun:
    """``fun`` of plain numbers, as SciPy calls it."""
    args = plain_values(args)
    return lambda x: plain_values(fun(x, *args))


def polished(fun: Fun, x: Any, alone: bool = False) -> Any:
    """The solution of ``fun(x) == 0`` with its derivatives, from its plain value. Raises where Newton's steps lead away.

    ``alone``: each element is the solution of an equation of its own.
    """
    lengths = []
    for _ in range(2):
        slope = elementwise_grad(fun)(x) if alone else jacobian(fun)(x)
        step = np.linalg.solve(slope, fun(x)) if np.ndim(x) and not alone else fun(x) / slope
        x = x - step
        lengths.append(np.max(np.abs(plain_values(step)), initial=0.0))
    if lengths[1] > max(0.5 * lengths[0], 1e-6 * (1.0 + np.max(np.abs(plain_values(x)), initial=0.0))):
        raise RuntimeError(
            "SciPy stopped where Newton's method does not converge, so that the solution has no derivative: it is not there "
            "yet (see the solver's tolerances and limits), or it is degenerate"
        )
    return x


def _vector(fun: Fun, args: tuple[Any, ...], shape: tuple[int, ...]) -> Fun:
    return lambda x: np.ravel(array_of(fun(np.reshape(x, shape), *args)))


# -- systems -------------------------------------------------------------------------------------------------------


def root(fun: Fun, x0: Any, args: Any = (), method: str = "hybr", tol: float | None = None, options: Any = None) -> Any:
    """The solution of a system of equations; its ``x`` can be differentiated. Raises where none is found."""
    fun, args = followed(fun), as_tuple(args)
    start = np.asarray(plain_values(x0), float)
    result = so.root(on_plain(fun, args), start, method=method, tol=tol, options=options)
    if not result.success:
        raise RuntimeError(f"scipy.optimize.root found no solution: {result.message}")
    if solved("root"):
        x = np.ravel(result.x).astype(float)
        result.x = np.reshape(polished(_vector(fun, args, np.shape(start)), x), np.shape(start))
    return result


def fsolve(func: Fun, x0: Any, args: Any = (), xtol: float = 1.49012e-8) -> Any:
    """The solution of a system of equations, itself."""
    return root(func, np.atleast_1d(plain_values(x0)), args, tol=xtol).x


def fixed_point(func: Fun, x0: Any, args: Any = (), xtol: float = 1e-8, maxiter: int = 500, method: str = "del2") -> Any:
    """The ``x`` with ``func(x) == x``."""
    func, args = followed(func), as_tuple(args)
    x = so.fixed_point(on_plain(func, args), plain_values(x0), xtol=xtol, maxiter=maxiter, method=method)
    if not solved("fixed_point"):
        return x
    shape = np.shape(x)
    return np.reshape(polished(lambda v: _vector(func, args, shape)(v) - v, np.ravel(np.asarray(x, float))), shape)


def minimize(
    fun: Fun, x0: Any, args: Any = (), method: str | None = None, tol: float | None = None, options: Any = None
) -> Any:
    """A minimum without constraints; its ``x`` and ``fun`` can be differentiated. SciPy gets the gradient from symgrad."""
    fun, args = followed(fun), as_tuple(args)
    start = np.asarray(plain_values(x0), float)
    slope = lambda x, *rest: grad(fun)(x, *rest)
    result = so.minimize(on_plain(fun, args), start, method=method, tol=tol, options=options, jac=on_plain(slope, args))
    if solved("minimize"):
        result.x = np.reshape(polished(_vector(slope, args, np.shape(start)), np.ravel(result.x)), np.shape(start))
        result.fun = fun(result.x, *args)
    return result


def least_squares(
    fun: Fun, x0: Any, bounds: Any = (-np.inf, np.inf), method: str = "trf", *, args: Any = (), **options: Any
) -> Any:
    """The ``x`` with the least sum of squares of ``fun(x)``; it can be differentiated, where at a bound it is a constant.

    ``options`` are SciPy's tolerances. SciPy gets the Jacobian from symgrad.
    """
    if options.get("loss", "linear") != "linear":
        raise ValueError("only loss='linear' can be differentiated; write the loss into the function and use minimize")
    fun, args = followed(fun), as_tuple(args)
    start = np.atleast_1d(np.asarray(plain_values(x0), float))
    residuals: Fun = lambda x, *rest: np.ravel(array_of(fun(x, *rest)))
    slopes: Fun = lambda x, *rest: jacobian(residuals)(x, *rest)
    result = so.least_squares(on_plain(residuals, args), start, on_plain(slopes, args), plain_values(bounds), method, **options)
    if solved("least_squares"):
        free = result.active_mask == 0
        spread = np.eye(len(start))[:, free]
        fixed = np.where(free, 0.0, result.x)
        slope = grad(lambda z: 0.5 * np.sum(residuals(spread @ z + fixed, *args) ** 2))
        result.x = spread @ polished(slope, result.x[free]) + fixed
        result.fun = residuals(result.x, *args)
        result.cost = 0.5 * np.sum(result.fun**2)
    return result


def minimize_scalar(fun: Fun, bracket: Any = None, bounds: Any = None, args: Any = (), **options: Any) -> Any:
    """A minimum of a function of one number; its ``x`` and ``fun`` can be differentiated. One at a bound is the bound."""
    fun, args = followed(fun), as_tuple(args)
    result = so.minimize_scalar(on_plain(fun, args), plain_values(bracket), plain_values(bounds), **options)
    if solved("minimize_scalar"):
        slope: Fun = lambda x: grad(fun)(x, *args)
        x = float(result.x)
        near = 2.0 * options.get("options", {}).get("xatol", 1e-5) + 1e-7 * abs(x)  # SciPy's iterates are within the bounds
        at = [side * (x - plain_values(end)) <= near and side * plain_values(slope(end)) > 0 for side, end in _sides(bounds)]
        result.x = 1.0 * bounds[at.index(True)] if any(at) else polished(slope, x)
        result.fun = fun(result.x, *args)
    return result


def _sides(bounds: Any) -> list[tuple[int, Any]]:
    """Where the function must rise from, and where it must fall to, if its minimum is at a bound."""
    return [] if bounds is None else [(1, bounds[0]), (-1, bounds[1])]


# -- one equation --------------------------------------------------------------------------------------------------


def _bracketing(name: str) -> Fun:
    def find(
        f: Fun,
        a: Any,
        b: Any,
        args: Any = (),
        xtol: float = 2e-12,
        rtol: float = 8.881784197001252e-16,
        maxiter: int = 100,
    ) -> Any:
        f, args = followed(f), as_tuple(args)
        ends = plain_values((a, b))
        x = getattr(so, name)(on_plain(f, args), *ends, xtol=xtol, rtol=rtol, maxiter=maxiter)
        return of_kind(polished(lambda x: f(x, *args), float(x)), x) if solved(name) else x

    find.__name__ = find.__qualname__ = name
    find.__doc__ = "The solution of one equation between ``a`` and ``b``, where ``f`` has different signs."
    return find


brentq, brenth, bisect, ridder, toms748 = map(_bracketing, ("brentq", "brenth", "bisect", "ridder", "toms748"))


def newton(func: Fun, x0: Any, args: Any = (), tol: float = 1.48e-8, maxiter: int = 50) -> Any:
    """The solution of one equation near ``x0``; of an array, that of one equation for each element."""
    func, args = followed(func), as_tuple(args)
    start = np.asarray(plain_values(x0), float)
    x = so.newton(on_plain(func, args), start if start.ndim else float(start), tol=tol, maxiter=maxiter)
    if not solved("newton"):
        return x
    equations: Fun = lambda x: func(x, *args)
    if not start.ndim:
        return polished(equations, float(x))
    _require_separate(equations, x)
    return polished(equations, x, alone=True)


def _require_separate(equations: Fun, x: Any) -> None:
    """Raises where an element of ``equations(x)`` hangs on other elements of ``x``: moved by ``along``, it tells."""
    along = np.random.default_rng(0).uniform(0.5, 1.5, np.shape(x))
    moved = np.asarray(plain_values(jvp(equations, (x,), (along,))[1]))
    alone = np.asarray(plain_values(elementwise_grad(equations)(x))) * along
    if moved.shape != alone.shape or not np.allclose(moved, alone, rtol=1e-6, atol=1e-9 * np.max(np.abs(alone), initial=0.0)):
        raise ValueError(
            "newton of an array solves one equation for each element by itself, but here one hangs on other elements, too; "
            "use symgrad.scipy.optimize.root for a system of equations"
        )


def root_scalar(f: Fun, args: Any = (), method: str = "brentq", bracket: Any = None, x0: Any = None, **options: Any) -> Any:
    """The solution of one equation; its ``root`` can be differentiated."""
    f, args = followed(f), as_tuple(args)
    if isinstance(x0, Traced):
        x0 = plain_values(x0)
    result = so.root_scalar(on_plain(f, args), method=method, bracket=plain_values(bracket), x0=x0, **options)
    if solved("root_scalar"):
        result.root = of_kind(polished(lambda x: f(x, *args), float(result.root)), result.root)
    return result
