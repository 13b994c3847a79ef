"""``scipy.integrate``: initial value problems and integrals.

SciPy chooses the steps, with plain numbers; a trace then takes the same Runge-Kutta steps. The derivatives are those of the
numerical solution, of any order, by the initial state, the times, ``args``, and whatever else the function reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.integrate as si

from symgrad.ops.index import array_of
from symgrad.scipy.plain import as_tuple, noted, of_kind, plain_values, rest_of
from symgrad.tracing.trace import followed

Fun = Callable[..., Any]
METHODS = {"RK23": si.RK23, "RK45": si.RK45, "DOP853": si.DOP853}


__getattr__ = rest_of(si)


def _steps(fun: Fun, start: Any, y: Any, end: Any, method: Any, **options: Any) -> tuple[list[float], Any]:
    """Where SciPy's steps from one time to another end, as parts of the way, and the state there."""
    if start == end:
        return [], y
    solver, shares = method(fun, start, y, end, **options), []
    while solver.status == "running":
        message = solver.step()
        if solver.status == "failed":
            raise RuntimeError(f"the integration failed at t = {solver.t}: {message}")
        shares.append((solver.t - start) / (end - start))
        if len(shares) > 20_000:
            raise RuntimeError("the integration takes more than 20,000 steps: the equations are stiff, or the tolerances small")
    return shares, solver.y


def _step(fun: Fun, method: Any, t: Any, y: Any, h: Any) -> Any:
    """One explicit Runge-Kutta step."""
    slopes: list[Any] = []
    for row, share in zip(method.A, method.C, strict=True):
        slopes.append(fun(t + share * h, _moved(y, h, row, slopes)))
    return _moved(y, h, method.B, slopes)


def _moved(y: Any, h: Any, weights: Any, slopes: Sequence[Any]) -> Any:
    total: Any = None
    for weight, slope in zip(weights.tolist(), slopes, strict=False):
        if weight:
            total = weight * slope if total is None else total + weight * slope
    return y if total is None else y + h * total


def _on_plain(fun: Fun) -> Fun:
    """``fun`` of plain numbers, as SciPy calls it."""
    return lambda t, y: np.asarray(plain_values(fun(t, y)), np.float64)


def _through(fun: Fun, y: Any, times: Any, method: Any, **options: Any) -> list[Any]:
    """The states at each of several times; the first one is given."""
    state, known = np.asarray(plain_values(y), float), plain_values(times)
    found = [y]
    for i in range(1, len(known)):
        shares, state = _steps(_on_plain(fun), float(known[i - 1]), state, float(known[i]), method, **options)
        t, length, done = times[i - 1], times[i] - times[i - 1], 0.0
        for share in shares:
            y = _step(fun, method, t + done * length, y, (share - done) * length)
            done = share
        found.append(y)
    return found


def _traced(name: str) -> bool:
    """Whether a derivative may be asked for."""
    return noted(f"scipy.integrate.{name} chooses its steps by the values")


def odeint(
    func: Fun, y0: Any, t: Any, args: Any = (), *, tfirst: bool = False, rtol: float = 1.49e-8, atol: float = 1.49e-8
) -> Any:
    """The solution of ``dy/dt = func(y, t, ...)`` at the times ``t``: one row a time. By Dormand and Prince's 8th order steps.

    For stiff equations, for which SciPy's own switches methods, it takes many steps.
    """
    func, args = followed(func), as_tuple(args)
    _traced("odeint")
    slope = lambda t, y: array_of(func(t, y, *args) if tfirst else func(y, t, *args))
    states = _through(slope, np.atleast_1d(array_of(y0)), array_of(t), si.DOP853, rtol=rtol, atol=atol)
    return np.stack(states)


def solve_ivp(
    fun: Fun,
    t_span: Any,
    y0: Any,
    method: str = "RK45",
    t_eval: Any = None,
    args: Any = None,
    rtol: float = 1e-3,
    atol: float = 1e-6,
    max_step: float = np.inf,
    first_step: float | None = None,
) -> Any:
    """The solution of ``dy/dt = fun(t, y, ...)``; its ``y``, one column a time, can be differentiated.

    Without ``t_eval``, the times are the ends of SciPy's steps. With it, steps end at each of those times.
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} cannot be differentiated; choose one of {', '.join(METHODS)}")
    fun, args = followed(fun), () if args is None else as_tuple(args)
    _traced("solve_ivp")
    slope = lambda t, y: array_of(fun(t, y, *args))
    start, end = t_span
    y0 = np.atleast_1d(array_of(y0))
    options = {"rtol": rtol, "atol": atol, "max_step": max_step, "first_step": first_step}
    if t_eval is None:
        first, last = (float(x) for x in plain_values((start, end)))
        shares, _ = _steps(_on_plain(slope), first, np.asarray(plain_values(y0), float), last, METHODS[method], **options)
        times, states, done = [start], [y0], 0.0
        for share in shares:
            states.append(_step(slope, METHODS[method], times[-1], states[-1], (share - done) * (end - start)))
            times.append(start + share * (end - start))
            done = share
        t, y = np.stack([array_of(x) for x in times]), np.stack(states, axis=-1)
    else:
        t = array_of(t_eval)
        ahead = bool(np.size(t)) and plain_values(t)[0] != plain_values(start)
        whole = np.concatenate((np.reshape(array_of(start), (1,)), t)) if ahead else t
        y = np.stack(_through(slope, y0, whole, METHODS[method], **options)[int(ahead) :], axis=-1)
    return si._ivp.ivp.OdeResult(t=t, y=y, success=True, status=0, message="The solver reached the end.", sol=None)


# -- integrals of functions ----------------------------------------------------------------------------------------

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(21)


def quad(
    func: Fun,
    a: Any,
    b: Any,
    args: Any = (),
    *,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
    points: Any = None,
) -> Any:
    """The integral of ``func`` from ``a`` to ``b``, and an estimate of the error.

    SciPy chooses the intervals; the derivatives, by the ends, ``args`` and whatever else ``func`` reads, are those of a sum
    over 21 points in each. Raises where that is not the integral: at a pole, to which SciPy only extrapolates.
    """
    func, args = followed(func), as_tuple(args)
    traced = _traced("quad")
    start, end = (float(x) for x in plain_values((a, b)))
    at = lambda x: float(plain_values(func(x, *plain_values(args))))
    value, error, *rest = si.quad(
        at, start, end, epsabs=epsabs, epsrel=epsrel, limit=limit, points=plain_values(points), full_output=1
    )
    if not traced or start == end:
        return value, error
    count = rest[0]["last"]
    pairs = np.stack((rest[0]["alist"], rest[0]["blist"]), axis=1)[:count]
    total: Any = 0.0
    for low, high in pairs[np.argsort(pairs[:, 0])].tolist():
        for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
            place = 0.5 * (low + high) + 0.5 * (high - low) * node
            x, scale = _on_the_way(place, a, b, start, end)
            for one in x:
                total = total + weight * 0.5 * (high - low) * scale * func(one, *args)
    off = value - float(plain_values(total))
    if not abs(off) <= max(epsabs, epsrel * abs(value), 10 * error):
        raise RuntimeError("scipy.integrate.quad extrapolates to a pole of the function; split off what is singular")
    return of_kind(total + off, value), error


def _on_the_way(place: float, a: Any, b: Any, start: float, end: float) -> tuple[list[Any], Any]:
    """Where QUADPACK evaluates the function, and how fast that moves: an infinite end is at ``place == 0``."""
    far = (1 - place) / place if np.isinf(start) or np.isinf(end) else 0.0
    if np.isinf(start) and np.isinf(end):
        return [far, -far], np.sign(end) / place**2
    if np.isinf(end):
        return [a + np.sign(end) * far], np.sign(end) / place**2
    if np.isinf(start):
        return [b + np.sign(start) * far], -np.sign(start) / place**2
    share = (place - start) / (end - start)
    return [a + share * (b - a)], (b - a) / abs(end - start)


def fixed_quad(func: Fun, a: Any, b: Any, args: Any = (), n: int = 5) -> Any:
    """The integral by Gauss and Legendre's rule of ``n`` points, and None."""
    func, args = followed(func), as_tuple(args)
    nodes, weights = np.polynomial.legendre.leggauss(n)
    half = (b - a) / 2
    return half * np.sum(weights * func(half * (nodes + 1) + a, *args), axis=-1), None


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by the trapezoidal rule; unlike with NumPy's, ``x`` broadcasts to ``y``."""
    y = array_of(y)
    return np.trapezoid(y, np.broadcast_to(x, np.shape(y)) if np.ndim(x) > 1 else x, dx, axis)


def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """The integrals up to each sample by the trapezoidal rule; with ``initial=0``, beginning with that."""
    if initial not in (None, 0):
        raise ValueError("initial must be 0 or None")
    y = np.moveaxis(array_of(y), axis, -1)
    steps = _distances(y, x, dx, axis)
    total = np.cumsum(0.5 * steps * (y[..., 1:] + y[..., :-1]), axis=-1)
    if initial is not None:
        total = np.concatenate((np.zeros((*np.shape(y)[:-1], 1)), total), axis=-1)
    return np.moveaxis(total, -1, axis)


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by parabolas through three at a time.

    Over an interval that is left, the last parabola goes on: K. V. Cartwright, "Simpson's rule cumulative integration with MS
    Excel and irregularly-spaced data", J. Math. Sci. Math. Educ. 12 (2017) 1.
    """
    y = np.moveaxis(array_of(y), axis, -1)
    count = np.shape(y)[-1]
    h = _distances(y, x, dx, axis)
    if count < 3:
        return np.sum(0.5 * h * (y[..., 1:] + y[..., :-1]), axis=-1)
    even = count - 1 + count % 2  # samples that the pairs of intervals join
    first, second = h[..., : even - 1 : 2], h[..., 1 : even - 1 : 2]
    before, middle, after = y[..., : even - 2 : 2], y[..., 1 : even - 1 : 2], y[..., 2:even:2]
    both = first + second
    parts = (2 - second / first) * before + both * both / (first * second) * middle + (2 - first / second) * after
    total = np.sum(both / 6 * parts, axis=-1)
    if even == count:
        return total
    first, second = h[..., -2], h[..., -1]
    return total + second * (
        (2 * second + 3 * first) / (6 * (first + second)) * y[..., -1]
        + (second + 3 * first) / (6 * first) * y[..., -2]
        - second * second / (6 * first * (first + second)) * y[..., -3]
    )


def _distances(y: Any, x: Any, dx: Any, axis: int) -> Any:
    """Between neighbouring samples, which lie along the last axis of ``y``."""
    if x is None:
        return dx * np.ones(np.shape(y)[-1] - 1, np.finfo(np.result_type(y.dtype, 1.0)).dtype)
    x = array_of(x)
    x = x if np.ndim(x) == 1 else np.moveaxis(x, axis, -1)
    if np.ndim(x) not in (1, np.ndim(y)) or np.shape(x)[-1] != np.shape(y)[-1]:
        raise ValueError("x is to be one-dimensional, or of as many dimensions as y, and as long along the axis")
    return np.diff(x, axis=-1)
