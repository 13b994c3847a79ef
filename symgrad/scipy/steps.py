"""Loops of ``symgrad.scipy`` that decide by values: what is here is traced as the user's own code is, and so compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

import symgrad.numpy as snp
from symgrad.api import stop_gradient
from symgrad.errors import NotDifferentiable
from symgrad.scipy.methods import METHODS
from symgrad.scipy.plain import chooses_since

MOST = 20_000
PARTS = 10  # how often a step is cut into quarters to find a jump
_SMALL = "the integration failed at t = {}: the steps get as small as numbers are apart"
_JUMP = (
    "the equations that scipy.integrate solves jump after t = {}, at a time that moves with what is differentiated "
    "by, which is a part of the derivatives that no step has. Solve up to there, and on from there in a call of its own: the "
    "ends of t_span may be differentiated by (where a state decides, the time is a root: scipy.optimize.brentq)"
)
_MANY = f"the integration takes more than {MOST:,} steps: the equations are stiff, or the tolerances small"


def _slopes(problem: Any, now: Any, h: Any, y: Any, f: Any, many: int) -> tuple[Any, Any, Any]:
    """The first so ``many`` slopes of a step that begins ``now`` and takes ``h``, in rows; the new state, and its slope.

    They are a loop, however few: so steps in which ``fun`` decides otherwise at some of them are alike.
    """
    method = METHODS[problem.name]  # a global's arrays are read anew by code; those of ``problem.method`` would be constants
    shares, weights, last = method.shares, method.weights, method.last
    slopes = snp.zeros((len(shares), *y.shape), f.dtype)
    slopes[0] = f
    for i in range(1, many):
        slopes[i] = problem.fun(now + shares[i] * h, y + h * (weights[i] @ slopes))
    return slopes, y + h * (weights[last] @ slopes), slopes[last] * 1.0


def _quarters(problem: Any, begin: Any, length: Any, y: Any, move: Any, f: Any, f_new: Any) -> Any:
    """The slopes along a part of a step, at its quarters, one row each; ``f`` and ``f_new`` are those at its ends."""
    slopes = snp.zeros((5, *y.shape), f.dtype)
    slopes[0], slopes[4] = f, f_new
    for i in range(1, 4):
        slopes[i] = stop_gradient(problem.fun(begin + i / 4 * length, y + i / 4 * move))
    return slopes


def _jumps(problem: Any, begin: Any, length: Any, y: Any, y_new: Any, f: Any, f_new: Any) -> Any:
    """Whether ``fun`` jumps within a step, but as the first one begins.

    What makes one quarter of the step unlike the others in how the slope changes is as large in a part as short as the last.
    """
    begin, length, y, move, f, f_new = stop_gradient((begin, length, y, y_new - y, f, f_new))
    first = begin == stop_gradient(problem.begin)
    slopes = _quarters(problem, begin, length, y, move, f, f_new)
    changes = slopes[1:] - slopes[:-1]
    unlike, low = np.max(problem.change(y, np.diff(changes, 2, axis=0))), np.float64(0.0)
    if unlike < np.maximum(1.0, 0.1 * np.max(problem.change(y, changes))):
        return False
    for _ in range(PARTS):
        i = np.argmax(problem.change(y, changes - np.mean(changes, axis=0)))
        begin, y, low = begin + i / 4 * length, y + i / 4 * move, low + i
        length, move = length / 4, move / 4
        slopes = _quarters(problem, begin, length, y, move, slopes[i], slopes[i + 1])
        changes = slopes[1:] - slopes[:-1]
    return np.max(problem.change(y, changes)) > np.maximum(1.0, 0.1 * unlike) and not (first and low == 0)


def through(problem: Any, asked: Any, times: Any, t: Any, end: Any, y: Any, f: Any, parts: Any, h: Any) -> Any:
    """The states at the times that are ``asked`` for, one row each, by the steps of a ``problem`` from ``t`` to its ``end``.

    ``times`` are these as constants, ``y`` and ``f`` the state and its slope at first; ``parts`` is what states within a step
    are made of, and ``h`` how long the first step is.
    """
    many = len(METHODS[problem.name].shares)
    states = snp.zeros((len(times), *y.shape), np.result_type(y, f))
    old, y, f, parts = y * 1.0, y * 1.0, f * 1.0, parts * 1.0  # as all that goes round in a loop: nobody else holds it
    before, most, count, sign, i = t * 1.0, np.float64(10.0), 0, np.sign(end - t), 0
    while i < len(times):
        if sign * (times[i] - t) <= 0:
            states[i] = problem.between(asked[i], before, t, old, parts)
            i += 1
        else:
            new = sign * np.minimum(sign * t + h, sign * end)
            now = problem.at(t)
            length = problem.at(new) - now
            slopes, y_new, f_new = _slopes(problem, now, length, y, f, many)
            error = problem.error(t, new, y, y_new, slopes)
            if error < 1:
                if chooses_since(problem.since, y) and _jumps(problem, now, length, y, y_new, f, f_new):
                    raise NotDifferentiable(_JUMP.format(t))
                h = problem.longer(t, new, error, most)
                parts = problem.inside(length, y, y_new, slopes, f_new)
                old, before = y, t
                t, y, f, most = new, y_new, f_new, np.float64(10.0)
            else:  # or it is no number
                h, most = problem.shorter(t, new, error), np.float64(1.0)
                if not h > 10 * np.spacing(np.abs(t)):
                    raise RuntimeError(_SMALL.format(t))
            count += 1
            if count > MOST:
                raise RuntimeError(_MANY)
    return states


def ends_of_steps(problem: Any, t: Any, end: Any, y: Any, f: Any, h: Any) -> tuple[Any, Any]:
    """When the steps of a ``problem`` begin and end, from ``t`` to its ``end``, and the states there, one row each."""
    y, f, most, count, sign = y * 1.0, f * 1.0, np.float64(10.0), 0, np.sign(end - t)
    times, states, many = [problem.at(t)], [y], METHODS[problem.name].last + 1
    while sign * (end - t) > 0:
        new = sign * np.minimum(sign * t + h, sign * end)
        now = problem.at(t)
        length = problem.at(new) - now
        slopes, y_new, f_new = _slopes(problem, now, length, y, f, many)
        error = problem.error(t, new, y, y_new, slopes)
        if error < 1:
            if chooses_since(problem.since, y) and _jumps(problem, now, length, y, y_new, f, f_new):
                raise NotDifferentiable(_JUMP.format(t))
            h = problem.longer(t, new, error, most)
            t, y, f, most = new, y_new, f_new, np.float64(10.0)
            times.append(problem.at(t))
            states.append(y)
        else:
            h, most = problem.shorter(t, new, error), np.float64(1.0)
            if not h > 10 * np.spacing(np.abs(t)):
                raise RuntimeError(_SMALL.format(t))
        count += 1
        if count > MOST:
            raise RuntimeError(_MANY)
    return np.stack(times), np.stack(states)
