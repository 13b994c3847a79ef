"""What is recorded: ``no_grad``, ``enable_grad``, ``set_grad_enabled``, ``inference_mode``, all per thread."""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


class _Mode(threading.local):
    """The switches of a thread.

    ``tracing`` is set while a derivative of symgrad's follows a function of tensors; then the others have no say:
    ``recording`` tells whether the call is recorded, and ``constant`` whether results are constants to the derivative, as under
    ``no_grad``. ``packing``: what packs values that are saved for backward and what
    unpacks them, if that is wanted; ``unhooked``: why that must not be. ``sweeps``: the backward passes that are
    under way. ``quiet(fun, *args)`` runs NumPy without its floating-point warnings, which torch has not.
    """

    def __init__(self) -> None:
        self.grad, self.inference, self.anomaly, self.check_nan = True, False, False, True
        self.tracing, self.recording, self.constant = False, False, False
        self.packing: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        self.unhooked: str | None = None
        self.sweeps: list[Any] = []
        context = copy_context()
        context.run(np.seterr, all="ignore")
        self.quiet: Callable[..., Any] = context.run


mode = _Mode()


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    return mode.grad


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in ``inference_mode``."""
    return mode.inference


def is_anomaly_enabled() -> bool:
    """Whether this thread remembers where operations were recorded."""
    return mode.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether a NaN that comes up backward is an error in that mode."""
    return mode.check_nan


class Switch:
    """A context manager and decorator that sets one of the switches."""

    values: Mapping[str, Any] = MappingProxyType({})

    def __enter__(self) -> Any:
        self.before = self.current()
        self.set()

    def current(self) -> dict[str, Any]:
        """What there is to be set back."""
        return {name: getattr(mode, name) for name in (*self.values, "constant")}

    def set(self) -> None:
        if not mode.tracing:
            for name, value in self.values.items():
                setattr(mode, name, value)
            mode.grad = mode.grad and not mode.inference
        elif "grad" in self.values:
            mode.constant = not self.values["grad"]

    def __exit__(self, *exc: object) -> None:
        for name, value in self.before.items():
            setattr(mode, name, value)

    def clone(self) -> Any:
        return type(self)()

    def __call__(self, fun: Any) -> Any:
        if inspect.isgeneratorfunction(fun):

            @functools.wraps(fun)
            def stepped(*args: Any, **kwargs: Any) -> Any:
                steps = fun(*args, **kwargs)
                step, given = steps.send, None
                while True:
                    try:
                        with self.clone():
                            value = step(given)
                    except StopIteration as end:
                        return end.value
                    try:
                        step, given = steps.send, (yield value)
                    except GeneratorExit:
                        with self.clone():
                            steps.close()
                        raise
                    except BaseException as error:
                        step, given = steps.throw, error

            return stepped

        @functools.wraps(fun)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return fun(*args, **kwargs)

        return wrapped


@contextmanager
def following(recording: bool) -> Iterator[None]:
    """Within the block, a derivative of symgrad's follows what is done to tensors."""
    names = "grad", "tracing", "recording", "constant"
    before = [getattr(mode, name) for name in names]
    mode.grad, mode.tracing, mode.recording, mode.constant = False, True, recording, False
    try:
        yield
    finally:
        for name, value in zip(names, before, strict=True):
            setattr(mode, name, value)


class no_grad(Switch):
    """Nothing is recorded: ``with no_grad(): ...`` or ``@no_grad()``."""

    values = MappingProxyType({"grad": False})

    def __new__(cls, fun: Any = None) -> Any:
        self = super().__new__(cls)
        return self if fun is None else self(fun)


def unrecorded(fun: F) -> F:
    """``fun``, in ``no_grad`` mode."""
    wrapped: F = no_grad(fun)
    return wrapped


class enable_grad(Switch):
    """Operations are recorded again, within ``no_grad``."""

    values = MappingProxyType({"grad": True})

    def __new__(cls, fun: Any = None) -> Any:
        self = super().__new__(cls)
        return self if fun is None else self(fun)


class _AtOnce(Switch):
    """A switch that is set when it is made, and set back when a block that it is entered for ends."""

    def __init__(self, **values: Any) -> None:
        self.values = values
        self.now = self.current()
        self.set()

    def __enter__(self) -> None:
        self.before = self.now
        self.set()


class set_grad_enabled(_AtOnce):
    """Turns recording on or off: at once when called, and until the block ends as a context manager."""

    def __init__(self, mode: bool) -> None:
        super().__init__(grad=bool(mode))

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.values['grad']})"

    def __call__(self, fun: Any) -> Any:
        for name, value in self.now.items():
            setattr(mode, name, value)
        return super().__call__(fun)

    def clone(self) -> Any:
        return set_grad_enabled(self.values["grad"])


class inference_mode(Switch):
    """As ``no_grad``, and what is made here can never be recorded."""

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if callable(mode):
            self.__init__()  # type: ignore[misc]
            return self(mode)
        return self

    def __init__(self, mode: bool = True) -> None:
        self.values = {"grad": False, "inference": True} if mode else {"grad": True, "inference": False}

    def clone(self) -> Any:
        return inference_mode(self.values["inference"])


class detect_anomaly(Switch):
    """Remember where each operation was recorded; name it when its backward fails or gives NaN."""

    def __init__(self, check_nan: bool = True) -> None:
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            stacklevel=2,
        )
        self.values = {"anomaly": True, "check_nan": check_nan}

    def clone(self) -> Any:
        return type(self)(self.values["check_nan"])


class set_detect_anomaly(_AtOnce):
    """``detect_anomaly`` that is switched on or off at once."""

    def __init__(self, mode_: bool, check_nan: bool = True) -> None:
        super().__init__(anomaly=mode_, check_nan=check_nan)
