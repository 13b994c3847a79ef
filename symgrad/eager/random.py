"""Random numbers: torch's very own, for torch's seeds (its generator on the CPU is the Mersenne Twister)."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np

from symgrad.eager.core import NONE, Fused, Tensor, apply, assign, called, check_kernel, method, methods, numbers, wrap
from symgrad.eager.creation import creates, laid_as, laid_out, like
from symgrad.eager.dtypes import as_numpy, default, title
from symgrad.eager.shapes import sizes
from symgrad.tracing.trace import active_trace


class Generator:
    """A source of random numbers, with torch's state and order of draws."""

    def __init__(self, device: Any = "cpu") -> None:
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        """Start anew from ``seed``."""
        self._seed = int(seed)
        self._bits = np.random.MT19937()
        legacy: Any = np.random.RandomState(self._seed & 0xFFFFFFFF)
        self._bits.state = legacy.get_state(legacy=False)
        self._spare: float | None = None
        return self

    def initial_seed(self) -> int:
        return self._seed

    def seed(self) -> int:
        """Start anew from a seed of the system's."""
        seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
        self.manual_seed(seed)
        return seed

    def get_state(self) -> Any:
        return self._bits.state, self._spare

    def set_state(self, state: Any) -> Generator:
        self._bits.state, self._spare = state
        return self

    def _raw(self, n: int) -> Any:
        """``n`` draws of 32 bits. A derivative of symgrad's must not keep them: others are drawn in the next call."""
        trace = active_trace()
        if trace is not None:
            trace.note("random numbers are drawn")
        return self._bits.random_raw(n)

    def words(self, n: int) -> np.ndarray[Any, Any]:
        """The same, as an array."""
        return np.asarray(self._raw(n), dtype=np.uint64)

    def longs(self, n: int) -> np.ndarray[Any, Any]:
        """``n`` draws of 64 bits, the first word of each being the high one."""
        words = self.words(2 * n)
        return (words[0::2] << np.uint64(32)) | words[1::2]  # type: ignore[no-any-return]

    def uniform(self, n: int, kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """``n`` numbers in [0, 1), with as many bits as the dtype has; for small ones, as float32 has."""
        if kind.kind == "c":
            return self.uniform(2 * n, kind.type(0).real.dtype).view(kind)
        if kind == np.float64:
            return (self.longs(n) & np.uint64((1 << 53) - 1)).astype(np.float64) * 2.0**-53
        numbers = (self.words(n) & _LOW_24).astype(np.float32) * np.float32(2.0**-24)
        return numbers if kind == np.float32 else numbers.astype(kind)

    def normal(self, n: int, kind: np.dtype[Any], blocks: bool = True) -> np.ndarray[Any, Any]:
        """``n`` standard normal numbers: few one by one, many in blocks of 16, as torch draws them where they lie in order."""
        if kind.kind == "c":
            real = kind.type(0).real.dtype
            return (self.normal(2 * n, real, blocks) * real.type(math.sqrt(0.5))).view(kind)  # type: ignore[no-any-return]
        if n < 16 or not blocks:
            return np.array(self.few(n), dtype=kind)
        full = n - n % 16
        u = self.uniform(full, np.dtype(np.float32)) if kind == np.float16 else self.uniform(n, kind)
        if n == full:
            return _box_muller(u).astype(kind, copy=False)
        drawn = _box_muller(np.concatenate((u[:full], self.uniform(16, u.dtype))))  # the last 16 are drawn again
        return np.concatenate((drawn[: n - 16], drawn[full:])).astype(kind, copy=False)

    def exponential(self, n: int, rate: float = 1.0) -> np.ndarray[Any, Any]:
        """``n`` exponentially distributed numbers, in float64."""
        draws: np.ndarray[Any, Any] = np.log1p(-self.uniform(n, np.dtype(np.float64)))
        return draws / -rate

    def integers(self, n: int, span: int) -> np.ndarray[Any, Any]:
        """``n`` integers below ``span``."""
        raw = self.longs(n) if span >= 1 << 32 else self.words(n)
        return raw if span >= 1 << 64 else raw % np.uint64(span)

    def few(self, n: int) -> list[float]:
        """``n`` normal numbers, from pairs of uniform ones; of an odd number of them the last one is kept for the next time."""
        found = [] if self._spare is None or not n else [self._spare]
        if found:
            self._spare = None
        words = iter(self._raw(4 * ((n - len(found) + 1) // 2)).tolist())
        for a, b, c, d in zip(words, words, words, words, strict=True):  # as ``uniform`` of float64, faster for few
            u1, u2 = ((a << 32 | b) & _LOW_53) * 2.0**-53, ((c << 32 | d) & _LOW_53) * 2.0**-53
            radius, theta = math.sqrt(-2.0 * math.log1p(-u2)), 2.0 * math.pi * u1
            found += (radius * math.cos(theta), radius * math.sin(theta))
        if len(found) > n:
            self._spare = found.pop()
        return found


_LOW_24, _LOW_53 = np.uint64((1 << 24) - 1), (1 << 53) - 1


def _box_muller(u: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Uniform numbers, in blocks of 16, as normal ones."""
    kind, rows = u.dtype.type, u.reshape(-1, 16)
    radius = np.sqrt(kind(-2) * np.log(1 - rows[:, :8]))
    theta = kind(2 * math.pi) * rows[:, 8:]
    return np.concatenate((radius * np.cos(theta), radius * np.sin(theta)), 1).ravel()


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Start the random numbers anew from ``seed``."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start the random numbers anew from a seed of the system's."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the random numbers started from."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """The state of the random numbers."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Set the state of the random numbers."""
    default_generator.set_state(state)


def _drawn(name: str, method: str, kernel: str, doc: str) -> Any:
    @creates
    @called(name, doc)
    def make(*size: Any, generator: Any = None, dtype: Any = None, **named: Any) -> Any:
        shape, kind = sizes(size or (named["size"],)), default.real if dtype is None else as_numpy(dtype)
        check_kernel(kernel, kind, "fc")
        return getattr(generator or default_generator, method)(math.prod(shape), kind).reshape(shape)

    return make


rand = _drawn("rand", "uniform", "check_uniform_bounds", "Uniform numbers in [0, 1).")
randn = _drawn("randn", "normal", "normal_kernel_cpu", "Standard normal numbers.")


def _check_bounds(low: int, high: int, kind: np.dtype[Any]) -> None:
    """Raise where a dtype cannot hold integers from ``low`` on, below ``high``."""
    if kind.kind == "c":
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if kind.kind == "b":
        least, most = 0, 1
    else:
        limits = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
        least, most = int(limits.min), int(limits.max)
    for name, number in (("from", low), ("to - 1", high - 1)):
        if not least <= number <= most:
            raise RuntimeError(f"{name} is out of bounds for {kind.name}")


@creates
def randint(*args: Any, generator: Any = None, dtype: Any = None, **named: Any) -> Any:
    """Integers from ``low`` (0) on, below ``high``: ``randint(low, high, size)`` or ``randint(high, size)``."""
    *bounds, size = (*args, *([named["size"]] if "size" in named else []))
    low = named.get("low", bounds[0] if len(bounds) > 1 else 0)
    high: Any = named.get("high", bounds[-1] if bounds else None)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    shape = sizes((size,))
    _check_bounds(low, high, as_numpy(np.int64 if dtype is None else dtype))
    values = (generator or default_generator).integers(math.prod(shape), high - low).astype(np.int64) + low
    return values.reshape(shape).astype(as_numpy(np.int64 if dtype is None else dtype))


def randint_like(input: Tensor, low: int = 0, high: int | None = None, **options: Any) -> Tensor:
    """``randint`` of the size and dtype of another tensor."""
    low, high = (0, low) if high is None else (low, high)
    shape, options = laid_as(input, options)
    return randint(low, high, shape, **{"dtype": input.dtype, **options})  # type: ignore[no-any-return]


rand_like, randn_like = like(rand), like(randn)


@creates
def randperm(n: int, *, generator: Any = None, dtype: Any = None) -> Any:
    """The numbers below ``n`` in random order."""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    kind = as_numpy(np.int64 if dtype is None else dtype)
    check_kernel("randperm", kind, "fiu")
    values = np.arange(n)
    draws = (generator or default_generator).words(max(n - 1, 0))
    for i, draw in enumerate(draws.tolist()):
        j = i + draw % (n - i)
        values[i], values[j] = values[j], values[i]
    return values.astype(kind)


def _check_deviation(std: Any) -> None:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")


def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None, **options: Any
) -> Tensor:
    """Normal numbers of this mean and deviation."""
    if size is not None:
        _check_deviation(std)
        return randn(size, generator=generator, dtype=dtype, **options) * std + mean  # type: ignore[no-any-return]
    if not isinstance(std, Tensor):
        _check_deviation(std)
    elif not np.all(std.value >= 0):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    values = [numbers(x) if isinstance(x, Tensor) else x for x in (mean, std)]
    kind = np.result_type(*[x for x in values if isinstance(x, (np.ndarray, np.generic))])
    shape = np.broadcast_shapes(*map(np.shape, values))
    drawn = (generator or default_generator).normal(math.prod(shape), kind).reshape(shape)
    number = 1 if not isinstance(std, Tensor) else 2 if not isinstance(mean, Tensor) else 3
    return apply(_NORMAL, (mean, std, drawn * values[1] + values[0]), NONE, f"NormalBackward{number}")  # type: ignore[no-any-return]


# what was drawn already, from tensors through which no gradient goes, but zeros
_NORMAL = Fused(
    lambda mean, std, drawn: drawn,
    lambda g, y, mean, std, drawn: np.zeros_like(g),
    lambda g, y, mean, std, drawn: np.zeros_like(g),
    None,
    family="elementwise",
    name="normal",
)
_BERNOULLI = Fused(
    lambda p, drawn: drawn, lambda g, y, p, drawn: np.zeros_like(g), None, family="elementwise", name="bernoulli"
)


def _chosen(self: Tensor, p: Any, generator: Any) -> Any:
    """Ones with probability ``p``, a number or the elements of an array; else zeros."""
    source, value = generator or default_generator, self.value
    kind = np.dtype(np.float64)
    if isinstance(p, Tensor):
        p = p.value
        kind = p.dtype
        check_kernel("bernoulli_tensor_cpu_p_", kind)
    levels = np.asarray(p)
    if not np.all((levels >= 0) & (levels <= 1)):
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If so, please "
            "report an enhancement request to PyTorch.)"
            if levels.ndim
            else f"bernoulli_ expects p to be in [0, 1], but got p={p}"
        )
    return (laid_out(source.uniform(value.size, kind), value) < p).astype(value.dtype)


def bernoulli(input: Tensor, p: float | None = None, *, generator: Any = None) -> Tensor:
    """Ones with these probabilities, else zeros."""
    drawn = _chosen(input, input if p is None else p, generator)
    return wrap(drawn) if p is not None else apply(_BERNOULLI, (input, drawn))


def _written(self: Tensor, drawn: Any, verb: str) -> Tensor:
    """Write numbers into a tensor, in the order in which it lies in memory."""
    return assign(self, wrap(laid_out(drawn.astype(self.value.dtype), self.value)), verb)


@method
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Draw ones, with probability ``p``, and zeros into this tensor."""
    return assign(self, wrap(_chosen(self, p, generator)), "bernoulli_")


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Places drawn with probabilities in proportion to the numbers."""
    source, value = generator or default_generator, input.value
    if value.dtype.kind != "f":
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {title(value.dtype)}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if value.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not replacement and num_samples > value.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    rows = np.atleast_2d(value)
    if np.any(~(rows >= 0) | np.isinf(rows)):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if (rows.sum(1) <= 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if replacement and num_samples > 1:
        levels = np.cumsum(rows, 1)
        levels = levels / levels[:, -1:]
        draws = source.uniform(len(rows) * num_samples, np.dtype(np.float64)).reshape(len(rows), num_samples)
        picked = (draws[:, :, None] > levels[:, None, :-1]).sum(-1)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            keys = rows / source.exponential(rows.size).astype(rows.dtype).reshape(rows.shape)
        picked = np.argsort(-keys, axis=1, kind="stable")[:, :num_samples]
    return wrap((picked if value.ndim > 1 else picked[0]).astype(np.int64))


methods(bernoulli=bernoulli, multinomial=multinomial)


@method
def uniform_(self: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Any = None) -> Tensor:
    """Draw uniform numbers in [a, b) into this tensor."""
    kind = self.value.dtype
    check_kernel("check_uniform_bounds", kind, "fc")
    if not a <= b:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={a} > to={b}")
    drawn = (generator or default_generator).uniform(self.value.size, kind)
    return _written(self, drawn * kind.type(b - a) + kind.type(a), "uniform_")


@method
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Draw normal numbers into this tensor."""
    kind = self.value.dtype
    check_kernel("normal_kernel_cpu", kind, "fc")
    _check_deviation(std)
    drawn = (generator or default_generator).normal(self.value.size, kind, self.value.flags.c_contiguous)
    moved = complex(mean, mean) if kind.kind == "c" else mean  # as torch has it: both parts are moved
    return _written(self, drawn * kind.type(std) + kind.type(moved), "normal_")


@method
def random_(self: Tensor, low: int | None = None, high: int | None = None, *, generator: Any = None) -> Tensor:
    """Draw integers into this tensor: from ``low`` on, below ``high``; those that its dtype can hold, if none are given."""
    kind, n, source = self.value.dtype, self.value.size, generator or default_generator
    if low is not None:
        low, high = (0, low) if high is None else (low, high)
        return _written(self, randint(low, high, (n,), dtype=self.dtype, generator=source).value, "random_")
    largest = 1 << _MANTISSA[kind.itemsize] if kind.kind == "f" else 1 if kind.kind == "b" else int(np.iinfo(kind).max)
    drawn = source.longs(n) if kind in (np.float64, np.int64) else source.words(n)
    return _written(self, drawn % np.uint64(largest + 1), "random_")


_MANTISSA = {2: 11, 4: 24, 8: 53}


def _drawn_into(name: str, doc: str, kinds: str, wanted: tuple[str, str, Any], draw: Any) -> None:
    """``wanted``: a number that ``draw`` takes, what is expected of it, and whether it is so."""
    text, expected, is_fit = wanted

    @method
    @called(name, doc)
    def fill(self: Tensor, *args: Any, generator: Any = None, **options: Any) -> Tensor:
        check_kernel(f"{name[:-1]}_cpu", self.value.dtype, kinds)
        number = inspect.getcallargs(draw, None, 0, *args, **options)[text]
        if not is_fit(number):
            raise RuntimeError(f"{name} expects {expected}, but found {text}={number}")
        drawn = draw(generator or default_generator, self.value.size, *args, **options)
        return _written(self, drawn, name)


def _uniform(source: Generator, n: int) -> Any:
    return source.uniform(n, np.dtype(np.float64))


_drawn_into(
    "exponential_",
    "Draw exponentially distributed numbers into this tensor.",
    "f",
    ("lambd", "lambda > 0.0", lambda rate: rate > 0),
    lambda source, n, lambd=1.0: source.exponential(n, lambd),
)
_drawn_into(
    "cauchy_",
    "Draw Cauchy-distributed numbers into this tensor.",
    "f",
    ("sigma", "sigma > 0.0", lambda sigma: sigma > 0),
    lambda source, n, median=0.0, sigma=1.0: median + sigma * np.tan(math.pi * (_uniform(source, n) - 0.5)),
)
_drawn_into(
    "log_normal_",
    "Draw numbers whose logarithms are normally distributed into this tensor.",
    "f",
    ("std", "std > 0.0", lambda std: std > 0),
    lambda source, n, mean=1.0, std=2.0: np.exp(np.array(source.few(n)) * std + mean),
)
_drawn_into(
    "geometric_",
    "Draw into this tensor how many trials the first success takes, of probability ``p`` each.",
    "fiu",
    ("p", "p to be in (0, 1)", lambda p: 0 < p < 1),
    lambda source, n, p: np.ceil(np.log(_uniform(source, n)) / math.log1p(-p)),
)
