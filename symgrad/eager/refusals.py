"""The dtypes and numbers that torch's functions refuse, though NumPy's would take them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from symgrad.eager.core import Tensor
from symgrad.eager.dtypes import RANK, title
from symgrad.eager.pointwise import FUNCTIONS

# functions | the kinds of dtypes that they refuse | torch's kernel, in quotes, or all that torch says ("!": that it has not)
_TABLE = """
lt le gt ge xlogy cummax cummin | c | "{name}_cpu"
less | c | "lt_cpu"
less_equal | c | "le_cpu"
greater | c | "gt_cpu"
greater_equal | c | "ge_cpu"
maximum minimum fmax fmin | c | {name} not implemented for complex tensors.
max min | c | "{name}_all"
amax | c | "max_values_cpu"
amin | c | "min_values_cpu"
aminmax | c | "aminmax_cpu"
argmax argmin | cb | {name}(): does not support {kind} input
median nanmedian | cb | "median_cpu"
kthvalue | cb | "kthvalue_cpu"
mode | c | "mode_cpu"
sort argsort msort | c |  Sort does not support complex dtypes on CPU
topk | c |  topk does not support complex dtypes on CPU
topk | b | topk does not support bool dtypes on CPU
unique unique_consecutive | c | "unique"
isin | cb | Unsupported input type encountered for isin(): {title}
searchsorted bucketize | cb | "searchsorted_out_cpu"
histc | c | "aminmax_cpu"
histc | iub | "histogram_cpu"
histogram | iubc | "histogramdd"
nansum | c | nansum on CPU does not support complex inputs
nanmean | c | nansum on CPU does not support complex inputs
nanmean | iub | nanmean(): expected input to have floating point or complex dtype but got {title}
round | cb | "round_vml_cpu"
floor ceil trunc | b | "{name}_vml_cpu"
fix | b | "trunc_vml_cpu"
frac | iub | "frac_cpu"
abs absolute | b | "abs_cpu"
neg negative | b | !Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the \
`~` or `logical_not()` operator instead.
relu | c | clamp is not supported for complex types
relu | b | !Boolean inputs not supported for relu
logit | c | "logit_cpu"
digamma | c | "digamma"
hypot nextafter logaddexp logaddexp2 igamma igammac | iub | "{name}_cpu"
logcumsumexp | iub | "logcumsumexp_out_cpu"
logdet | iub | logdet: Expected a floating point or complex tensor as input. Got {title}
dist | iu | norm(): input dtype should be either floating point or complex. Got {title} instead.
cov corrcoef | b | cov(): bool dtype is not supported for input
trapezoid trapz cumulative_trapezoid | b | {name}: received a bool input for `y`, but bool is not supported
mm matmul inner | b | "addmm_impl_cpu_"
addmm | b | "addmm_impl_cpu_"
bmm | b | "bmm"
mv | b | "addmv_impl_cpu"
dot vdot tensordot | b | "dot"
trace | b | "trace"
pdist | iubc | pdist only supports floating-point dtypes
view_as_complex | iubc | {name} is only supported for half, float and double tensors, but got a tensor of scalar type: {title}
polar | iubc | Expected both inputs to be Half, Float or Double tensors but got {title} and {title}
"""


def _read() -> dict[str, dict[str, str]]:
    """The table, by function and kind of dtype."""
    found: dict[str, dict[str, str]] = {}
    for line in _TABLE.strip().splitlines():
        names, kinds, text = line.split(" | ", 2)
        for name in names.split():
            found.setdefault(name, {}).update(dict.fromkeys(kinds, text))
    return found


REFUSED = _read()


# what takes no numbers in place of tensors; and what takes none as the first argument
_OF_TENSORS = set(
    "maximum minimum fmax fmin hypot nextafter gcd lcm logical_and logical_or logical_xor atan2 arctan2 logaddexp logaddexp2 "
    "ldexp igamma igammac dist isclose allclose".split()
)
_TENSOR_FIRST = set("max min eq ne lt le gt ge less greater not_equal less_equal greater_equal fmod copysign rsub".split())


def _refusing(name: str, fun: Callable[..., Any], start: int) -> Callable[..., Any]:
    """A function that refuses arguments as torch's function of this name does, whose positions are counted from ``start``."""
    refused, tensors, first = REFUSED.get(name, {}), name in _OF_TENSORS, name in _TENSOR_FIRST

    @functools.wraps(fun)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if tensors:
            for i, x in enumerate(args[:2]):
                if isinstance(x, _NUMBERS):
                    key = ("input", "other")[i]
                    raise TypeError(f"{name}(): argument '{key}' (position {start + i}) must be Tensor, not {type(x).__name__}")
        if first and isinstance(args[0] if args else None, _NUMBERS):
            kinds = ", ".join([type(x).__name__ for x in args])
            raise TypeError(f"{name}() received an invalid combination of arguments - got ({kinds})")
        for x in (*args, *kwargs.values()) if kwargs else args:
            if isinstance(x, Tensor) and x.value.dtype.kind in refused:
                _check(name, [other.value.dtype for other in args if isinstance(other, Tensor)] or [x.value.dtype])
                break
        return fun(*args, **kwargs)

    return checked


_NUMBERS = (int, float, complex)


def _check(name: str, given: list[Any]) -> None:
    """Raise if a function refuses what several dtypes are promoted to."""
    lead = max(given, key=lambda kind: RANK[kind.kind])
    text, called = REFUSED[name].get(lead.kind), title(lead)
    if text is None:
        return
    if text.startswith('"'):
        raise NotImplementedError(f"{text.format(name=name)} not implemented for '{called}'")
    if text.startswith("!"):
        raise NotImplementedError(text[1:])
    raise RuntimeError(text.format(name=name, title=called, kind="bool" if lead.kind == "b" else "complex"))


def apply() -> None:
    """Let functions, methods and operators refuse what the tables say."""
    for name in {*REFUSED, *_OF_TENSORS, *_TENSOR_FIRST}:
        if name in FUNCTIONS:
            FUNCTIONS[name] = _refusing(name, FUNCTIONS[name], 1)
        for method in (name, f"{name}_", f"__{name}__"):
            if method in vars(Tensor):
                setattr(Tensor, method, _refusing(name, vars(Tensor)[method], 0))
