"""Loops of ``symgrad.scipy`` that decide by values: what is here is traced as the user's own code is, and so compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

MOST = 20_000
_SMALL = "the integration failed at t = {}: the steps get as small as numbers are apart"
_MANY = f"the integration takes more than {MOST:,} steps: the equations are stiff, or the tolerances small"


def through(problem: Any, asked: Any, times: Any, t: Any, end: Any, y: Any, f: Any, parts: Any, h: Any) -> Any:
    """The states at the times that are ``asked`` for, one row each, by the steps of a ``problem`` from ``t`` to its ``end``.

    ``times`` are these as constants, ``y`` and ``f`` the state and its slope at first; ``parts`` is what states within a step
    are made of, and ``h`` how long the first step is.
    """
    states = []
    old, y, f, parts = y * 1.0, y * 1.0, f * 1.0, parts * 1.0  # as all that goes round in a loop: nobody else holds it
    before, most, count, sign = t * 1.0, np.float64(10.0), 0, np.sign(end - t)
    for i in range(len(times)):
        while sign * (times[i] - t) > 0:
            new = sign * np.minimum(sign * t + h, sign * end)
            y_new, f_new, slopes, error = problem.take(t, y, f, new)
            if error < 1:
                h = problem.longer(t, new, error, most)
                old, before, parts = y, t, problem.inside(t, y, new, y_new, slopes)
                t, y, f, most = new, y_new, f_new, np.float64(10.0)
            else:  # or it is no number
                h, most = problem.shorter(t, new, error), np.float64(1.0)
                if not h > 10 * np.spacing(np.abs(t)):
                    raise RuntimeError(_SMALL.format(t))
            count += 1
            if count > MOST:
                raise RuntimeError(_MANY)
        states.append(problem.between(asked[i], before, t, old, parts))
    return np.stack(states)


def ends_of_steps(problem: Any, t: Any, end: Any, y: Any, f: Any, h: Any) -> tuple[Any, Any]:
    """When the steps of a ``problem`` begin and end, from ``t`` to its ``end``, and the states there, one row each."""
    y, f, most, count, sign = y * 1.0, f * 1.0, np.float64(10.0), 0, np.sign(end - t)
    times, states = [problem.at(t)], [y]
    while sign * (end - t) > 0:
        new = sign * np.minimum(sign * t + h, sign * end)
        y_new, f_new, _, error = problem.take(t, y, f, new)
        if error < 1:
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
