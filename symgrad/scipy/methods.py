"""Runge-Kutta methods, by SciPy's coefficients."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.integrate as si


class Method(NamedTuple):
    """An explicit method with two orders: SciPy's coefficients.

    ``shares`` are those of the step after which slopes are looked at, and ``weights`` those of all slopes before, one row each,
    of which number ``last`` is of the new state; those after it are looked at for states within a step alone. ``errors`` are
    the weights for the error, for DOP853 of two, by whose ``power`` a step gets longer; ``inside`` those for the states within
    a step.
    """

    shares: Any
    weights: Any
    last: int
    errors: tuple[Any, ...]
    power: float
    inside: Any

    @property
    def rows(self) -> int:
        """Of what the states within a step are made of."""
        return len(self.inside) + (3 if self.last + 1 < len(self.shares) else 0)


def _constant(array: Any) -> Any:
    """An array that nobody changes, so that it is one and the same whenever it is looked at."""
    array = np.array(array)
    array.flags.writeable = False
    return array


def _method(kind: Any) -> Method:
    last, power, more = len(kind.B), -1 / (kind.error_estimator_order + 1), kind is si.DOP853
    rows = [*kind.A, kind.B, *(kind.A_EXTRA if more else ())]

    def padded(row: Any) -> Any:
        return np.pad(row, (0, len(rows) - len(row)))

    return Method(
        shares=_constant([*kind.C, 1.0, *(kind.C_EXTRA if more else ())]),
        weights=_constant([padded(row) for row in rows]),
        last=last,
        errors=tuple([_constant(padded(row)) for row in ((kind.E5, kind.E3) if more else (kind.E,))]),
        power=power,
        inside=_constant(kind.D if more else kind.P.T),
    )


METHODS = {"RK23": _method(si.RK23), "RK45": _method(si.RK45), "DOP853": _method(si.DOP853)}
