"""``scipy.integrate``: initial value problems and integrals.

Initial value problems are solved by the Runge-Kutta steps that SciPy takes, whose sizes count as constants: the derivatives are
those of the numerical solution, of any order, by the initial state, the times, ``args``, and whatever else the function reads.
The loop over the steps is compiled (``steps.py``).
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate as si
from scipy.integrate._ivp import common as checks

from symgrad.api import stop_gradient, vmap
from symgrad.errors import NotDifferentiable
from symgrad.ops.elementwise import moves
from symgrad.ops.index import array_of, traced_in
from symgrad.scipy.methods import METHODS, Method
from symgrad.scipy.plain import (
    as_tuple,
    begun_now,
    chooses_since,
    found_again,
    is_asked,
    is_written_out,
    noted,
    of_kind,
    on_plain,
    plain_values,
    refuse,
    rest_of,
)
from symgrad.scipy.steps import ends_of_steps, through
from symgrad.tracing.frames import where
from symgrad.tracing.trace import followed

Fun = Callable[..., Any]


__getattr__ = rest_of(si)


# -- initial value problems --------------------------------------------------------------------------------------------


def _size(x: Any, axis: int | None = None) -> Any:
    """The root of the mean square."""
    return np.sqrt(np.mean(np.abs(x) ** 2, axis=axis))


class _Problem(NamedTuple):
    """``dy/dt = fun(t, y)`` between two times, and how exact the solution is to be: what SciPy's solvers do at a step.

    Times are taken as constants, but those that ``fun`` gets, and ``asked`` ones.
    """

    fun: Callable[..., Any]
    begin: Any
    end: Any
    name: str  # of the method
    rtol: Any
    atol: Any
    longest: float
    since: int  # in the trace, what ``fun`` does

    @property
    def method(self) -> Method:
        return METHODS[self.name]

    def at(self, t: Any) -> Any:
        """A time that moves as the ends do, by as much as it is near them."""
        if moves(self.begin) or moves(self.end):
            begin, end = stop_gradient((self.begin, self.end))
            share = (t - begin) / np.where(begin == end, 1.0, end - begin)
            t = t + (1 - share) * (self.begin - begin) + share * (self.end - end)
        return t

    def first(self, t: Any, y: Any, f: Any, end: Any) -> Any:
        """How long the first step is to be.

        E. Hairer, S. P. Norsett, G. Wanner, "Solving Ordinary Differential Equations I", section II.4.
        """
        y, f, whole, sign = *stop_gradient((y, f)), np.abs(end - t), np.sign(end - t)
        allowed = self.atol + self.rtol * np.abs(y)
        size, slope = _size(y / allowed), _size(f / allowed)
        flat = (size < 1e-5) | (slope < 1e-5)
        h = np.minimum(np.where(flat, 1e-6, 0.01 * size / np.where(flat, 1.0, slope)), whole)
        bend = _size((stop_gradient(self.fun(t + sign * h, y + sign * h * f)) - f) / allowed) / np.where(h == 0, 1.0, h)
        flat, most = (slope <= 1e-15) & (bend <= 1e-15), np.maximum(slope, bend)
        longer = np.where(flat, np.maximum(1e-6, 1e-3 * h), (0.01 / np.where(flat, 1.0, most)) ** -self.method.power)
        return np.minimum(np.minimum(100 * h, longer), np.minimum(whole, self.longest))

    def error(self, t: Any, new: Any, y: Any, y_new: Any, slopes: Any) -> Any:
        """How large the error of a step is, beside what is allowed."""
        y, y_new, slopes = stop_gradient((y, y_new, slopes))
        allowed = self.atol + self.rtol * np.maximum(np.abs(y), np.abs(y_new))
        error, *other = [_size((new - t) * (weights @ slopes) / allowed) for weights in self.method.errors]
        if other:  # 0/0 is 0
            error = error * error / np.sqrt(np.maximum(error**2 + 0.01 * other[0] ** 2, np.finfo(float).tiny))
        return error

    def change(self, y: Any, changes: Any) -> Any:
        """What changes of the slope, in rows, move the state by in the whole time, beside what is allowed."""
        return _size(changes * (self.end - self.begin) / (self.atol + self.rtol * np.abs(y)), -1)

    def inside(self, h: Any, y: Any, y_new: Any, slopes: Any, f_new: Any) -> Any:
        """What the states within a step are made of, in rows."""
        parts = self.method.inside @ slopes
        if self.method.rows == len(parts):
            return parts
        move = y_new - y
        ends = [move, h * slopes[0] - move, 2 * move - h * (f_new + slopes[0])]
        return np.concatenate((np.stack(ends), h * parts))

    def longer(self, t: Any, new: Any, error: Any, most: Any) -> Any:
        """How long the next step is to be, of which the last one was good."""
        return np.minimum(self.longest, np.abs(new - t) * np.minimum(most, 0.9 * np.maximum(error, 1e-30) ** self.method.power))

    def shorter(self, t: Any, new: Any, error: Any) -> Any:
        """How long a step is to be that was not good."""
        return np.abs(new - t) * np.fmax(0.2, 0.9 * error**self.method.power)

    def begun(self, t: Any, y: Any) -> Any:
        """The state at a time that is the first one: how it moves with the two, by one step of Runge and Kutta's."""
        if not (moves(t) or moves(self.begin)):
            return y
        h = t - self.begin
        first = self.fun(self.begin, y)
        second = self.fun(self.begin + h / 2, y + h / 2 * first)
        third = self.fun(self.begin + h / 2, y + h / 2 * second)
        last = self.fun(t, y + h * third)
        return y + h / 6 * (first + 2 * second + 2 * third + last)

    def between(self, asked: Any, t: Any, new: Any, y: Any, parts: Any) -> Any:
        """The state at a time that was ``asked`` for, in the step between two times."""
        now, method = self.at(t), self.method
        h = self.at(new) - now
        x = (asked - now) / h
        if method.rows != len(method.inside):  # x, x (1 - x), x (1 - x) x, and so on
            return y + np.cumprod(np.where(np.arange(method.rows) % 2, 1 - x, x)) @ parts
        return y + h * (x ** np.arange(1, 1 + method.rows) @ parts)


def _begun(problem: _Problem, y: Any, first_step: float | None) -> tuple[Any, ...]:
    """What ``through`` begins with: the time, the end, the state, its slope, what the last step is made of, and how long the
    next one is."""
    t, end = [np.float64(1.0) * stop_gradient(one) for one in (problem.begin, problem.end)]
    f = problem.fun(problem.at(t), y)
    f = np.broadcast_to(f, np.shape(y)).astype(np.result_type(f.dtype, y.dtype))
    h = problem.first(t, y, f, end) if first_step is None else checks.validate_first_step(first_step, t, end)
    return t, end, y, f, np.stack([f] * problem.method.rows), np.minimum(h, problem.longest)


def odeint(
    func: Fun,
    y0: Any,
    t: Any,
    args: Any = (),
    *,
    tfirst: bool = False,
    rtol: float = 1.49e-8,
    atol: float = 1.49e-8,
    **options: Any,
) -> Any:
    """The solution of ``dy/dt = func(y, t, ...)`` at the times ``t``: one row a time. By Dormand and Prince's 8th order steps.

    For stiff equations, for which SciPy's own switches methods, it takes many steps.
    """
    refuse("integrate.odeint", options)
    func, args = followed(func), as_tuple(args)
    slope = lambda t, y: array_of(func(t, y, *args) if tfirst else func(y, t, *args))
    t = array_of(t)
    return np.moveaxis(solve_ivp(slope, (t[0], t[-1]), y0, "DOP853", t, rtol=rtol, atol=atol).y, -1, 0)


def solve_ivp(
    fun: Fun,
    t_span: Any,
    y0: Any,
    method: str = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    rtol: float = 1e-3,
    atol: float = 1e-6,
    max_step: float = np.inf,
    first_step: float | None = None,
    **options: Any,
) -> Any:
    """The solution of ``dy/dt = fun(t, y, ...)``; its ``y``, one column a time, can be differentiated.

    Without ``t_eval``, the times are the ends of the steps, of which each call may take another number. Raises where ``fun``
    jumps at a time that moves with what is differentiated by (``1.0 if t < p else 2.0``): the derivatives of the steps lack
    what that moves. Two calls have it, with ``t_span=(0.0, p)`` and from there. By a kink that moves, derivatives are as exact
    as the step over it is short, some root of ``rtol``; jumps at fixed times are right.
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} cannot be differentiated; choose one of {', '.join(METHODS)}")
    missing = {"dense_output": dense_output, "events": events is not None}
    refuse("integrate.solve_ivp", {name: True for name, given in missing.items() if given} | options)
    fun, args = followed(fun), () if args is None else as_tuple(args)
    slope = lambda t, y: array_of(fun(t, y, *args))
    if vectorized:  # of states in columns
        slope = lambda t, y: array_of(fun(t, y[:, None], *args))[:, 0]
    y = np.atleast_1d(array_of(y0))
    y = y.astype(np.result_type(y.dtype, float))
    if np.ndim(y) > 1:
        raise ValueError("`y0` must be 1-dimensional.")
    begin, end = t_span
    relative, absolute = checks.validate_tol(rtol, atol, np.size(y))
    problem = _Problem(slope, begin, end, method, relative, absolute[()], checks.validate_max_step(max_step), begun_now())
    if t_eval is None and stop_gradient(begin) == stop_gradient(end):
        t, states = np.stack((begin, end)), np.stack((y, problem.begun(end, y)))
    elif t_eval is None:
        now, last, y, f, _, h = _begun(problem, y, first_step)
        t, states = followed(ends_of_steps)(problem, now, last, y, f, h)
    else:
        t = array_of(t_eval)
        begin, end, known = stop_gradient((begin, end, t))
        if np.any(np.diff(known) * np.sign(end - begin) < 0):
            raise ValueError("Values in `t_eval` are not properly sorted.")
        if np.any((known < np.minimum(begin, end)) | (known > np.maximum(begin, end))):
            raise ValueError("Values in `t_eval` are not within `t_span`.")
        first = int(np.count_nonzero(known == begin))
        parts = [problem.begun(t[i], y)[None] for i in range(first)]
        if first < len(t):
            parts.append(followed(through)(problem, t[first:], known[first:], *_begun(problem, y, first_step)))
        states = np.concatenate(parts) if parts else np.zeros((0, np.size(y)))
    done = {"success": True, "status": 0, "message": "The solver reached the end.", "sol": None}
    return si._ivp.ivp.OdeResult(t=t, y=np.transpose(states), **done)


# -- integrals of functions ----------------------------------------------------------------------------------------

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(21)
FEW = 4  # intervals, which most integrals have no more of


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
    **rest: Any,
) -> Any:
    """The integral of ``func`` from ``a`` to ``b``, and an estimate of the error.

    SciPy chooses the intervals; the derivatives, by the ends, ``args`` and whatever else ``func`` reads, are those of a sum
    over 21 points in each. Between ``points`` that move, each part is an integral of its own. Raises where that is not the
    integral: at a pole, to which SciPy only extrapolates, or a root in the middle; and where ``func`` jumps at a place that
    moves, as one of ``points`` that is right (``quad(lambda x: 1.0 if x < a else 2.0, 0, 3, points=[a])``). By a place where it
    has a kink, derivatives are as exact as the interval is short that SciPy has there, some 1e-4, and exact where that is one
    of ``points``.
    """
    refuse("integrate.quad", rest)
    func, args = followed(func), as_tuple(args)
    if points is not None and any(map(moves, points)):
        if np.isinf(a) or np.isinf(b):
            raise ValueError("Infinity inputs cannot be used with break points.")
        inside = np.clip(np.sort(array_of(points)), np.minimum(a, b), np.maximum(a, b))
        ends = [a, *(inside if a <= b else inside[::-1]), b]
        found = [quad(func, *pair, args, epsabs=epsabs, epsrel=epsrel, limit=limit) for pair in itertools.pairwise(ends)]
        return sum([value for value, _ in found]), sum([error for _, error in found])
    start, end = plain_values((a, b))
    options = {"epsabs": epsabs, "epsrel": epsrel, "limit": limit, "points": points}
    evaluated = on_plain(func, args)
    kinds: list[Any] = [float]

    def number(x: float) -> float:
        found = evaluated(x)
        kinds[0] = type(found)
        return float(found)

    parts = intervals(number, start, end, **{**options, "points": plain_values(points)})
    exact = float(np.finfo(kinds[0]).eps) if issubclass(kinds[0], np.floating) else 0.0
    value, error = parts[-1].tolist()
    if not is_asked():
        return value, error
    if a == b:  # by a few points, for the derivatives of any order
        found = sum([weight * func(a + place * (b - a), *args) for place, weight in _POINTS])
        return of_kind(value + (b - a) * found, value), error
    (place, *_), _ = _on_the_way(np.mean(parts[0]), start, end)
    again = found_again(intervals, {"integrand": lambda x: func(x, *args)}, [a, b], parts, float(place), **options)
    if again is None:
        noted("scipy.integrate.quad runs SciPy's quadrature on your function")
        return of_kind(
            _integral(lambda x: np.stack([func(one, *args) for one in x]), a, b, parts, options, exact), value
        ), error
    integrand = vmap(func, (0, *[None] * len(args)))
    return of_kind(_integral(lambda x: integrand(x, *args), a, b, again, options, exact), value), of_kind(again[-1, 1], error)


_POINTS = [(0.5 + 0.5 * place, 0.5 * weight) for place, weight in zip(*np.polynomial.legendre.leggauss(5), strict=True)]


def intervals(func: Fun, a: Any, b: Any, args: tuple[Any, ...] = (), *, limit: int = 50, **options: Any) -> Any:
    """The intervals that QUADPACK integrates over, from the first to the last, then as many empty ones as it might have more;
    the last row is the integral, and an estimate of the error."""
    value, error, *rest = si.quad(func, a, b, args, full_output=1, limit=limit, **options)
    pairs = np.stack((rest[0]["alist"], rest[0]["blist"]), axis=1)[: rest[0]["last"]]
    pairs = pairs if len(pairs) else np.array([[a, b]], float)  # which are one
    found: Any = np.full((limit + 1, 2), np.mean(pairs[0]))  # where the function is finite
    found[: len(pairs)] = pairs[np.argsort(pairs[:, 0])]
    found[-1] = value, error
    return found


def _integral(at: Fun, a: Any, b: Any, parts: Any, options: Any, exact: float) -> Any:
    """The integral of ``at``, which is given a row of places, by 21 points in each interval; where that is not what SciPy
    finds, the first and the last interval, in which a root or a logarithm may end, are stretched (``_stretched``). ``exact``:
    how exact its numbers are."""
    value, error = parts[-1]
    few = len(parts) > FEW and not is_written_out() and parts[FEW, 0] == parts[FEW, 1]
    parts = parts[:FEW] if few else parts[:-1]
    low, high = parts[:, :1], parts[:, 1:]
    begun = begun_now()
    total, found = _sum(at, a, b, 0.5 * (low + high) + 0.5 * (high - low) * _NODES, 0.5 * (high - low) * _WEIGHTS)
    if is_written_out():
        return total + (value - stop_gradient(total))
    if chooses_since(begun) and _jumps(stop_gradient(found).reshape(-1, len(_NODES)), *stop_gradient((low, high))):
        raise NotDifferentiable(
            f"{where()}: the function that scipy.integrate.quad is given jumps at a place that is differentiated by; say where "
            "it does: quad(..., points=[place])"
        )
    most = np.maximum(max(options["epsabs"], 0.0), np.maximum(options["epsrel"] * np.abs(value), 10 * error))
    most = most + 10 * exact * np.max(np.abs(stop_gradient(found))) * np.sum(high - low)
    if not np.abs(value - stop_gradient(total)) <= most:
        total, _ = _sum(at, a, b, *_stretched(low, high))
        if not np.abs(value - stop_gradient(total)) <= most:
            why = "extrapolates: the function has a pole, or it jumps or has a root in the middle"
            raise RuntimeError(
                f"{where()}: scipy.integrate.quad {why}; split off what is singular, or name the place: points=[x]"
            )
    return total + (value - stop_gradient(total))


def _sum(at: Fun, a: Any, b: Any, places: Any, weights: Any) -> Any:
    """The sum over these places, and what the function is there. Towards an infinite end, where it is zero all the way, as
    where ``np.exp`` overflows in a denominator, nothing is differentiated."""
    places = np.ravel(places)
    x, scale = _on_the_way(places, a, b)
    found = functools.reduce(operator.add, map(at, x))
    if not is_written_out() and (np.isinf(stop_gradient(a)) or np.isinf(stop_gradient(b))):
        gone = np.cumsum(stop_gradient(found) != 0) == 0
        if gone[0]:
            x, scale = _on_the_way(np.where(gone, np.max(places), places), a, b)
            found = np.where(gone, 0.0, functools.reduce(operator.add, map(at, x)))
    return np.sum(np.ravel(weights) * scale * found), found


def _stretched(low: Any, high: Any) -> tuple[Any, Any]:
    """Places and weights where the first interval begins as ``u**4`` does, and the last one ends like that: of these, roots and
    logarithms at the ends have no singularity. Of intervals that are empty, nothing is added."""
    width, share = high - low, 0.5 * (_NODES + 1)
    first, last = low == np.min(low), high == np.max(high)
    rise, fall = share**4, 1 - (1 - share) ** 4
    both = 2.0**3 * np.where(share < 0.5, share, 1 - share) ** 4
    both = np.where(share < 0.5, both, 1 - both)
    moved = np.where(first & last, both, np.where(first, rise, np.where(last, fall, share)))
    slope = np.where(share < 0.5, 2.0**5 * share**3, 2.0**5 * (1 - share) ** 3)
    slope = np.where(first & last, slope, np.where(first, 4 * share**3, np.where(last, 4 * (1 - share) ** 3, 1.0)))
    return low + width * moved, 0.5 * width * _WEIGHTS * slope


def _jumps(found: Any, low: Any, high: Any) -> Any:
    """Whether what a function is in some intervals, a row for each, shows that it jumps: in a short one, to which QUADPACK has
    come down, or from one to the next."""
    width, span = (high - low)[:, 0], np.max(found) - np.min(found)
    short = (width > 0) & (width < 1e-4 * np.sum(width))
    within = short & (np.max(found, axis=1) - np.min(found, axis=1) > JUMP * span)
    begin, end = found @ _AT_BEGIN, found @ _AT_BEGIN[::-1]
    between = (width[:-1] > 0) & (width[1:] > 0) & (np.abs(end[:-1] - begin[1:]) > JUMP * span)
    return np.any(within) | np.any(between)


def _row_at(place: float) -> Any:
    """What the values at the nodes are multiplied by, to find what their polynomial is at a place."""
    return np.array([np.prod([(place - other) / (node - other) for other in _NODES if other != node]) for node in _NODES])


_AT_BEGIN = _row_at(-1.0)
JUMP = 0.05  # of all that a function goes up and down, which is a jump


def _on_the_way(place: Any, a: Any, b: Any) -> tuple[list[Any], Any]:
    """Where QUADPACK evaluates the function, and how fast that moves: an infinite end is at ``place == 0``."""
    start, end = stop_gradient(a), stop_gradient(b)
    if np.isinf(start) and np.isinf(end):
        return [(1 - place) / place, -(1 - place) / place], np.sign(end) / place**2
    if np.isinf(end):
        return [a + np.sign(end) * (1 - place) / place], np.sign(end) / place**2
    if np.isinf(start):
        return [b + np.sign(start) * (1 - place) / place], -np.sign(start) / place**2
    share = (place - start) / (end - start)
    return [a + share * (b - a)], (b - a) / np.abs(end - start)


def fixed_quad(func: Fun, a: Any, b: Any, args: Any = (), n: int = 5) -> Any:
    """The integral by Gauss and Legendre's rule of ``n`` points, and None."""
    func, args = followed(func), as_tuple(args)
    if any([traced_in(end) is None and np.isinf(end) for end in (a, b)]):
        raise ValueError("Gaussian quadrature is only available for finite limits.")
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
        total = np.concatenate((np.zeros((*np.shape(y)[:-1], 1), total.dtype), total), axis=-1)
    return np.moveaxis(total, -1, axis)


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by parabolas through three at a time.

    Over an interval that is left, the last parabola goes on: K. V. Cartwright, "Simpson's rule cumulative integration with MS
    Excel and irregularly-spaced data", J. Math. Sci. Math. Educ. 12 (2017) 1.
    """
    y = np.moveaxis(array_of(y), axis, -1)
    count = np.shape(y)[-1]
    h, scale = _distances(y, x, 1.0, axis), dx if x is None else 1.0
    if count < 3:
        return scale * np.sum(0.5 * h * (y[..., 1:] + y[..., :-1]), axis=-1)
    even = count - 1 + count % 2  # samples that the pairs of intervals join
    first, second = h[..., : even - 1 : 2], h[..., 1 : even - 1 : 2]
    before, middle, after = y[..., : even - 2 : 2], y[..., 1 : even - 1 : 2], y[..., 2:even:2]
    both = first + second
    parts = (2 - _over(second, first)) * before + both * _over(both, first * second) * middle
    parts = parts + (2 - _over(first, second)) * after
    total = np.sum(both / 6 * parts, axis=-1)
    if even == count:
        return scale * total
    first, second = h[..., -2], h[..., -1]
    rest = (
        second * _over(2 * second + 3 * first, 6 * (first + second)) * y[..., -1]
        + second * _over(second + 3 * first, 6 * first) * y[..., -2]
        - second**3 * _over(1, 6 * first * (first + second)) * y[..., -3]
    )
    return scale * (total + rest)


def _over(x: Any, h: Any) -> Any:
    """``x / h``, and 0 where two samples are at one place."""
    return np.where(h == 0, 0, x / np.where(h == 0, 1, h))


def _distances(y: Any, x: Any, dx: Any, axis: int) -> Any:
    """Between neighbouring samples, which lie along the last axis of ``y``."""
    if x is None:
        return dx * np.ones(np.shape(y)[-1] - 1, np.finfo(np.result_type(y.dtype, 1.0)).dtype)
    x = array_of(x)
    x = x if np.ndim(x) == 1 else np.moveaxis(x, axis, -1)
    if np.ndim(x) not in (1, np.ndim(y)) or np.shape(x)[-1] != np.shape(y)[-1]:
        raise ValueError("x is to be one-dimensional, or of as many dimensions as y, and as long along the axis")
    return np.diff(x, axis=-1)
