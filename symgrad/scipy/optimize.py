"""``scipy.optimize``: roots and minima, differentiated by the implicit function theorem.

SciPy finds the solution, with plain numbers. Two Newton steps from there, which do not move it, are what is traced: they
give the derivatives up to the third order, by ``args`` and by everything else that the function reads. Generated code has the
function for SciPy, which it calls; where the function decides by what is looked for, each call is traced anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.optimize as so

from symgrad.api import elementwise_grad, grad, jacobian, jvp
from symgrad.ops.index import array_of
from symgrad.scipy import found
from symgrad.scipy.plain import as_tuple, found_again, is_asked, is_written_out, noted, of_kind, on_plain, plain_values, rest_of
from symgrad.tracing.trace import followed

Fun = Callable[..., Any]


__getattr__ = rest_of(so)


def solved(x: Any, name: str, run: Fun | None, funs: dict[str, Fun], given: Sequence[Any] = (), **options: Any) -> Any:
    """The plain solution ``x`` as what ``run`` finds at every call; None where no derivative may be asked for."""
    if not is_asked():
        return None
    again = None if run is None else found_again(run, funs, given, x, **options)
    if again is None and noted(f"scipy.optimize.{name} runs SciPy's solver on your function"):
        return x
    return again


class Known(so.OptimizeResult):  # type: ignore[misc]
    """A result of SciPy's of which generated code knows what is ``found``: whoever asks for more gets it of a call of SciPy."""

    _found: frozenset[str] = frozenset()  # of one that is being copied
    _later: Mapping[str, Callable[[], Any]] = {}

    def __init__(self, result: Any, later: dict[str, Callable[[], Any]] | None = None, **found: Any) -> None:
        super().__init__({**result, **found})
        object.__setattr__(self, "_found", frozenset(["success", "converged", *found]))
        object.__setattr__(self, "_later", later or {})  # what is computed for those alone who ask for it

    def __getitem__(self, name: str) -> Any:
        if name in self._later and name not in self._found:
            self[name] = self._later[name]()
            object.__setattr__(self, "_found", self._found | {name})
        if name not in self._found and name in self:
            noted(f"the {name} of a solution is SciPy's own")
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self.keys() else default

    def values(self) -> Any:
        return [self[name] for name in self]

    def items(self) -> Any:
        return [(name, self[name]) for name in self]


def _start(x0: Any) -> Any:
    """What SciPy begins with, as a row of floats."""
    return np.ravel(array_of(x0)).astype(float)


def polished(fun: Fun, x: Any, alone: bool = False) -> Any:
    """The solution of ``fun(x) == 0`` with its derivatives, from its plain value. Raises where Newton's steps lead away.

    ``alone``: each element is the solution of an equation of its own.
    """
    lengths = []
    x = x * np.float64(1.0)  # Python's numbers would raise at a slope of 0
    for _ in range(2):
        slope = elementwise_grad(fun)(x) if alone else jacobian(fun)(x)
        step = np.linalg.solve(slope, fun(x)) if np.ndim(x) and not alone else fun(x) / slope
        x = x - step
        lengths.append(np.max(np.abs(step), initial=0.0))
    if not is_written_out() and lengths[1] > np.maximum(0.5 * lengths[0], 1e-6 * (1.0 + np.max(np.abs(x), initial=0.0))):
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
    shape = np.shape(result.x)  # most methods have a row of what they begin with, and call the function so
    equations = _vector(fun, args, shape)
    options = {"method": method, "tol": tol, "options": options}
    x = solved(np.ravel(result.x).astype(float), "root", found.root, {"equations": equations}, [_start(x0)], **options)
    return result if x is None else Known(result, x=np.reshape(polished(equations, x), shape))


def fsolve(func: Fun, x0: Any, args: Any = (), xtol: float = 1.49012e-8) -> Any:
    """The solution of a system of equations, itself."""
    return root(func, np.atleast_1d(plain_values(x0)), args, tol=xtol).x


def fixed_point(func: Fun, x0: Any, args: Any = (), xtol: float = 1e-8, maxiter: int = 500, method: str = "del2") -> Any:
    """The ``x`` with ``func(x) == x``."""
    func, args = followed(func), as_tuple(args)
    x = so.fixed_point(on_plain(func, args), plain_values(x0), xtol=xtol, maxiter=maxiter, method=method)
    shape, start, options = np.shape(x), _start(x0), {"xtol": xtol, "maxiter": maxiter, "method": method}
    function = _vector(func, args, shape)
    again = solved(np.ravel(np.asarray(x, float)), "fixed_point", found.fixed_point, {"function": function}, [start], **options)
    return x if again is None else np.reshape(polished(lambda v: function(v) - v, again), shape)


def minimize(
    fun: Fun, x0: Any, args: Any = (), method: str | None = None, tol: float | None = None, options: Any = None
) -> Any:
    """A minimum without constraints; its ``x`` and ``fun`` can be differentiated. SciPy gets the gradient from symgrad."""
    fun, args = followed(fun), as_tuple(args)
    start = np.asarray(plain_values(x0), float)
    slope = lambda x, *rest: grad(fun)(x, *rest)
    result = so.minimize(on_plain(fun, args), start, method=method, tol=tol, options=options, jac=on_plain(slope, args))
    shape = np.shape(result.x)  # a row, where ``x0`` is a number
    function, equations = lambda x: fun(np.reshape(x, shape), *args), _vector(slope, args, shape)
    options = {"method": method, "tol": tol, "options": options}
    run = found.minimize if result.success else None
    x = solved(np.ravel(result.x), "minimize", run, {"objective": function, "slope": equations}, [_start(x0)], **options)
    if x is None:
        return result
    x = np.reshape(polished(equations, x), shape)
    least = fun(x, *args)
    return Known(result, x=x, fun=np.reshape(least, ()) if np.ndim(least) else least)


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
    free = result.active_mask == 0
    run = found.least_squares if result.success and np.all(np.isinf(plain_values(bounds))) else None
    functions: dict[str, Fun] = {"residuals": lambda x: residuals(x, *args), "slopes": lambda x: slopes(x, *args)}
    x = solved(result.x, "least_squares", run, functions, [_start(x0)], method=method, **options)
    if x is None:
        return result
    if not np.all(free):
        spread, fixed = np.eye(len(start))[:, free], np.where(free, 0.0, result.x)
        slope = grad(lambda z: 0.5 * np.sum(residuals(spread @ z + fixed, *args) ** 2))
        x = spread @ polished(slope, result.x[free]) + fixed
    else:
        x = polished(grad(lambda z: 0.5 * np.sum(residuals(z, *args) ** 2)), x)
    errors = residuals(x, *args)
    return Known(result, {"jac": lambda: slopes(x, *args)}, x=x, fun=errors, cost=0.5 * np.sum(errors**2))


def minimize_scalar(fun: Fun, bracket: Any = None, bounds: Any = None, args: Any = (), **options: Any) -> Any:
    """A minimum of a function of one number; its ``x`` and ``fun`` can be differentiated. One at a bound is the bound."""
    fun, args = followed(fun), as_tuple(args)
    result = so.minimize_scalar(on_plain(fun, args), plain_values(bracket), plain_values(bounds), **options)
    run = found.minimize_scalar if result.success and bounds is None else None
    x = solved(float(result.x), "minimize_scalar", run, {"objective": lambda x: fun(x, *args)}, bracket=bracket, **options)
    if x is None:
        return result
    slope: Fun = lambda x: grad(fun)(x, *args)
    near = 2.0 * options.get("options", {}).get("xatol", 1e-5) + 1e-7 * abs(float(result.x))  # its iterates are within
    sides = [(side, end, side * (float(result.x) - plain_values(end)) <= near) for side, end in _sides(bounds)]
    at = [end for side, end, is_near in sides if is_near and side * plain_values(slope(end)) > 0]
    x = 1.0 * at[0] if at else polished(slope, x)
    return Known(result, x=x, fun=fun(x, *args))


def _sides(bounds: Any) -> list[tuple[int, Any]]:
    """Where the function must rise from, and where it must fall to, if its minimum is at a bound."""
    return [] if bounds is None else [(1, bounds[0]), (-1, bounds[1])]


# -- one equation --------------------------------------------------------------------------------------------------


def _between(name: str, f: Fun, a: Any, b: Any, args: Any, **options: Any) -> Any:
    f, args = followed(f), as_tuple(args)
    ends = plain_values((a, b))
    x = getattr(so, name)(on_plain(f, args), *ends, **options)
    equation = lambda x: f(x, *args)
    again = solved(float(x), name, getattr(so, name), {"equation": equation}, [a, b], **options)
    return x if again is None else of_kind(polished(equation, again), x)


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
        return _between(name, f, a, b, args, xtol=xtol, rtol=rtol, maxiter=maxiter)

    find.__name__ = find.__qualname__ = name
    find.__doc__ = "The solution of one equation between ``a`` and ``b``, where ``f`` has different signs."
    return find


brentq, brenth, bisect, ridder = map(_bracketing, ("brentq", "brenth", "bisect", "ridder"))


def toms748(
    f: Fun,
    a: Any,
    b: Any,
    args: Any = (),
    k: int = 1,
    xtol: float = 2e-12,
    rtol: float = 8.881784197001252e-16,
    maxiter: int = 100,
) -> Any:
    """The solution of one equation between ``a`` and ``b``, where ``f`` has different signs, by ``k`` steps at a time."""
    return _between("toms748", f, a, b, args, k=k, xtol=xtol, rtol=rtol, maxiter=maxiter)


def newton(func: Fun, x0: Any, args: Any = (), tol: float = 1.48e-8, maxiter: int = 50) -> Any:
    """The solution of one equation near ``x0``; of an array, that of one equation for each element."""
    func, args = followed(func), as_tuple(args)
    start = np.asarray(plain_values(x0), float)
    x = so.newton(on_plain(func, args), start if start.ndim else float(start), tol=tol, maxiter=maxiter)
    equations: Fun = lambda x: func(x, *args)
    given = 1.0 * (array_of(x0) if start.ndim else x0)
    again = solved(
        x if start.ndim else float(x), "newton", found.newton, {"equation": equations}, [given], tol=tol, maxiter=maxiter
    )
    if again is None:
        return x
    if start.ndim:
        _require_separate(equations, x)
    return polished(equations, again, alone=start.ndim > 0)


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


def root_scalar(f: Fun, args: Any = (), method: str | None = None, bracket: Any = None, x0: Any = None, **options: Any) -> Any:
    """The solution of one equation; its ``root`` can be differentiated."""
    f, args = followed(f), as_tuple(args)
    slopes = {name: on_plain(followed(fun), args) for name, fun in options.items() if callable(fun)}
    given = {"bracket": plain_values(bracket), "x0": plain_values(x0), **plain_values(options), **slopes}
    result = so.root_scalar(on_plain(f, args), method=method, **given)
    equation: Fun = lambda x: f(x, *args)
    run = found.root_scalar if result.converged else None
    root = solved(
        float(result.root), "root_scalar", run, {"equation": equation}, method=method, bracket=bracket, x0=x0, **options
    )
    return result if root is None else Known(result, root=of_kind(polished(equation, root), result.root))
