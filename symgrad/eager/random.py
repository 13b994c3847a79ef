"""Random numbers: torch's very own, for torch's seeds (its generator on the CPU is the Mersenne Twister)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad.eager.core import Tensor, assign, method, plain, wrap
from symgrad.eager.creation import _like, _made
from symgrad.eager.dtypes import as_numpy, default
from symgrad.eager.shapes import sizes


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

    def words(self, n: int) -> np.ndarray[Any, Any]:
        """``n`` draws of 32 bits."""
        return np.asarray(self._bits.random_raw(n), dtype=np.uint64)

    def longs(self, n: int) -> np.ndarray[Any, Any]:
        """``n`` draws of 64 bits, the first word of each being the high one."""
        words = self.words(2 * n)
        return (words[0::2] << np.uint64(32)) | words[1::2]  # type: ignore[no-any-return]

    def uniform(self, n: int, kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """``n`` numbers in [0, 1), with as many bits as the dtype has."""
        if kind == np.float64:
            return (self.longs(n) & np.uint64((1 << 53) - 1)).astype(np.float64) * 2.0**-53
        bits = 11 if kind == np.float16 else 24
        return ((self.words(n) & np.uint64((1 << bits) - 1)).astype(np.float64) * 2.0**-bits).astype(kind)

    def normal(self, n: int, kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """``n`` standard normal numbers: few one by one, many in blocks of 16, as torch draws them."""
        if n < 16:
            return np.array([self._one() for _ in range(n)], dtype=kind)
        data = self.uniform(n, kind)
        full = n - n % 16
        data[:full] = _box_muller(data[:full].reshape(-1, 16)).ravel()
        if n % 16:
            data[-16:] = _box_muller(self.uniform(16, kind).reshape(1, 16)).ravel()
        return data

    def _one(self) -> float:
        if self._spare is not None:
            spare, self._spare = self._spare, None
            return spare
        u1, u2 = self.uniform(2, np.dtype(np.float64))
        radius, theta = math.sqrt(-2.0 * math.log1p(-u2)), 2.0 * math.pi * u1
        self._spare = radius * math.sin(theta)
        return radius * math.cos(theta)


def _box_muller(u: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Rows of 16 uniform numbers as normal ones."""
    kind = u.dtype.type
    radius = np.sqrt(kind(-2) * np.log(1 - u[:, :8]))
    theta = kind(2 * math.pi) * u[:, 8:]
    return np.concatenate((radius * np.cos(theta), radius * np.sin(theta)), 1)


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


def _drawn(name: str, doc: str) -> Any:
    def make(
        *size: Any,
        generator: Any = None,
        out: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        shape, kind = sizes(size), default.real if dtype is None else as_numpy(dtype)
        draw = getattr(generator or default_generator, name)
        return _made(draw(math.prod(shape), kind).reshape(shape), requires_grad)

    make.__doc__ = doc
    return make


rand = _drawn("uniform", "Uniform numbers in [0, 1).")
randn = _drawn("normal", "Standard normal numbers.")
rand.__name__, randn.__name__ = "rand", "randn"
rand_like, randn_like = _like(rand), _like(randn)


def randint(
    *args: Any, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False, **named: Any
) -> Tensor:
    """Integers from ``low`` (0) on, below ``high``: ``randint(low, high, size)`` or ``randint(high, size)``."""
    *bounds, size = (*args, *([named["size"]] if "size" in named else []))
    low = named.get("low", bounds[0] if len(bounds) > 1 else 0)
    high = named.get("high", bounds[-1] if bounds else None)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    shape = sizes((size,))
    source, n, span = generator or default_generator, math.prod(shape), high - low
    raw = source.longs(n) if span >= 1 << 32 else source.words(n)
    values = (raw % np.uint64(span)).astype(np.int64) + low
    return _made(values.reshape(shape).astype(as_numpy(np.int64 if dtype is None else dtype)), requires_grad)


def randint_like(input: Tensor, low: int, high: int | None = None, *, dtype: Any = None) -> Tensor:
    """``randint`` of the size and dtype of another tensor."""
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, input.value.shape, dtype=input.dtype if dtype is None else dtype)


def randperm(n: int, *, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The numbers below ``n`` in random order."""
    values = np.arange(n)
    draws = (generator or default_generator).words(max(n - 1, 0))
    for i, draw in enumerate(draws.tolist()):
        j = i + draw % (n - i)
        values[i], values[j] = values[j], values[i]
    return _made(values.astype(as_numpy(np.int64 if dtype is None else dtype)), requires_grad)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None) -> Tensor:
    """Normal numbers of this mean and deviation."""
    shape = np.broadcast_shapes(np.shape(plain(mean)), np.shape(plain(std))) if size is None else size
    return randn(shape, generator=generator, dtype=dtype) * std + mean  # type: ignore[no-any-return]


def bernoulli(input: Tensor, p: float | None = None, *, generator: Any = None) -> Tensor:
    """Ones with these probabilities, else zeros."""
    level = input.value if p is None else p
    draws = (generator or default_generator).uniform(input.value.size, input.value.dtype).reshape(input.value.shape)
    return wrap((draws < level).astype(input.value.dtype))


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Places drawn with probabilities in proportion to the numbers."""
    source, rows = generator or default_generator, np.atleast_2d(input.value.astype(np.float64))
    if replacement:
        levels = np.cumsum(rows, 1) / np.sum(rows, 1, keepdims=True)
        draws = source.uniform(len(rows) * num_samples, np.dtype(np.float64)).reshape(len(rows), num_samples)
        picked = (draws[:, :, None] > levels[:, None, :]).sum(-1)
    else:
        keys = np.log(np.maximum(source.uniform(rows.size, np.dtype(np.float64)), 1e-300)).reshape(rows.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            picked = np.argsort(-keys / rows, axis=1, kind="stable")[:, :num_samples]
    return wrap(picked.astype(np.int64) if input.value.ndim > 1 else picked[0].astype(np.int64))


@method
def uniform_(self: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Any = None) -> Tensor:
    """Draw uniform numbers in [a, b) into this tensor."""
    kind = self.value.dtype
    drawn = (generator or default_generator).uniform(self.value.size, kind).reshape(self.value.shape)
    return assign(self, wrap((drawn * kind.type(b - a) + kind.type(a)).astype(kind)), "uniform_")


@method
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Draw normal numbers into this tensor."""
    kind = self.value.dtype
    drawn = (generator or default_generator).normal(self.value.size, kind).reshape(self.value.shape)
    return assign(self, wrap((drawn * kind.type(std) + kind.type(mean)).astype(kind)), "normal_")


@method
def random_(self: Tensor, low: int = 0, high: int | None = None, *, generator: Any = None) -> Tensor:
    """Draw integers into this tensor."""
    low, high = (0, low) if high is None and low else (low, high if high is not None else 1 << 24)
    return assign(self, randint(low, high, self.value.shape, dtype=self.dtype, generator=generator), "random_")
