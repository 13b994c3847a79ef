"""The exceptions. Each docstring says what happened and what to do; each message names the user's line."""

from __future__ import annotations


class SymgradError(Exception):
    """Base of everything that symgrad raises on purpose."""


class NotDifferentiable(SymgradError, TypeError):
    """A traced value met a function, or an option of one, that has no derivative rule.

    Write the step with the functions that the message names, or give it a rule of your own with
    ``symgrad.primitive`` or ``symgrad.custom_vjp``; ``symgrad.stop_gradient(x)`` says that it is a constant.
    """


class LeavesNumPy(SymgradError, TypeError):
    """A traced value was about to become a plain number or array, and its derivative would have been lost.

    Raised for ``float(t)``, ``math.sin(t)``, ``np.array(t, dtype=float)``, ``b[0] = t`` on an array made by code without
    source, and the like. Use NumPy's function (``np.sin``), or arrays of ``np.zeros_like(t)`` or ``symgrad.numpy.zeros``.
    """


class IntegerArgument(SymgradError, TypeError):
    """An integer or boolean array cannot be differentiated. Cast it: ``x.astype(float)``."""


class NonScalarOutput(SymgradError, TypeError):
    """``grad`` needs one real number as output. Use ``jacobian``, ``vjp``, ``elementwise_grad``, or sum the output."""


class EscapedTracer(SymgradError, RuntimeError):
    """A traced value outlived the call that made it (it was stored in a global, an attribute, a list, a closure).

    Return it from the function instead, or store ``stop_gradient(x)``'s plain value.
    """


class MutatedInput(SymgradError, ValueError):
    """The function changes an argument or a plain array in place; the caller would see it, or the derivative would not.

    Work on a copy: ``x = x.copy()`` before ``x[i] = v``, or ``x = x + y`` for ``x += y``. (Lists, dicts and dataclasses among
    the arguments are trees, made anew for the function: it may change them, and the caller's stay as they are. One that comes
    twice is one; one that the function finds outside, too, may not be changed.) A list or dict from outside is changed
    by its own name, or where ``append`` has put it: what ``sorted`` and its like make of several of them holds copies.
    """


class Unexplored(SymgradError, RuntimeError):
    """Generated code met a side of a branch that no call has taken yet.

    Calls through the ``Derivative`` trace that side and grow the code; generated code that is called by hand cannot.
    """


class NotExportable(SymgradError, ValueError):
    """``export`` met what a module that stands alone cannot hold: an object, a closure, a derivative in dynamic mode.

    The message names it. Bind objects before (``grad(lambda w: loss(w, model))``), and give primitives functions whose
    source can be copied.
    """


class MadeNaN(SymgradError, FloatingPointError):
    """With ``mode="debug_nans"``: the first operation, forward or backward, that made a NaN from numbers that are none.

    The message names the user's line, the operation and its arguments.
    """


class RecursiveDerivative(SymgradError, RecursionError):
    """The traced function recurses without end: Python's recursion limit was reached while it was traced."""


class CheckFailed(SymgradError, AssertionError):
    """``check_grads`` found a derivative that finite differences contradict."""


def not_installed(module: str, packages: str) -> ModuleNotFoundError:
    """What a module raises whose optional packages are missing."""
    return ModuleNotFoundError(f"{module} needs what is not installed: pip install {packages}")
