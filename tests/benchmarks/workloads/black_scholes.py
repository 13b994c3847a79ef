"""The price of many call options, summed, by all five inputs: long chains of elementwise functions on large arrays."""

import math

import numpy as np

from .common import Workload, empty

A, B = math.sqrt(2 / math.pi), 0.044715 * math.sqrt(2 / math.pi)


def make(np):
    def cdf(x):  # of the normal distribution, nearly
        return 0.5 * (1.0 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    def price(spot, strike, rate, volatility, time):
        spread = volatility * np.sqrt(time)
        d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * time) / spread
        d2 = d1 - spread
        return np.sum(spot * cdf(d1) - strike * np.exp(-rate * time) * cdf(d2))

    return price


def inputs(rng, n):
    return (
        rng.uniform(80.0, 120.0, n),
        rng.uniform(80.0, 120.0, n),
        rng.uniform(0.01, 0.05, n),
        rng.uniform(0.1, 0.4, n),
        rng.uniform(0.5, 2.0, n),
    )


def hand(spot, strike, rate, volatility, time):
    root = np.sqrt(time)
    spread = volatility * root
    d1 = spot / strike
    np.log(d1, out=d1)
    now = rate * time  # the strike, discounted
    d1 += now
    d1 /= spread
    half = 0.5 * spread
    d1 += half
    d2 = np.subtract(d1, spread, out=half)
    np.negative(now, out=now)
    np.exp(now, out=now)
    now *= strike

    p1, density1 = cdf_and_density(d1)
    p2, density2 = cdf_and_density(d2)
    density1 *= spot
    density2 *= now
    p2 *= now  # the discounted strike times the odds that it is paid

    g = np.subtract(density1, density2, out=density1)
    g /= spread  # by log(spot / strike)
    by_spread = np.multiply(g, d2, out=d2)
    by_spread = np.subtract(density2, by_spread, out=density2)
    by_spot = g / spot
    by_spot += p1
    by_drift = np.add(g, p2, out=d1)
    by_strike = np.divide(by_drift, strike, out=p1)
    np.negative(by_strike, out=by_strike)
    by_rate = by_drift * time
    by_time = np.multiply(by_drift, rate, out=by_drift)
    by_volatility = by_spread * root
    by_spread *= volatility
    by_spread /= root
    by_spread *= 0.5
    by_time += by_spread
    return by_spot, by_strike, by_rate, by_volatility, by_time


def cdf_and_density(x):
    square = x * x
    p = square * B
    p += A
    p *= x
    np.tanh(p, out=p)
    density = p * p
    np.subtract(0.5, density * 0.5, out=density)
    square *= 3.0 * B
    square += A
    density *= square
    p *= 0.5
    p += 0.5
    return p, density


def floor(spot, strike, rate, volatility, time):
    """The calls of the derivative by hand, with what they share, in blocks that stay in the cache."""
    arguments = (spot, strike, rate, volatility, time)
    results, scratch = [empty(x.shape) for x in arguments], empty((10, BLOCK))

    def calls():
        for lo in range(0, len(spot), BLOCK):
            block = [x[lo : lo + BLOCK] for x in arguments]
            price(*block, *(x[lo : lo + BLOCK] for x in results), *scratch[:, : len(block[0])])
        return tuple(results)

    return calls


def price(spot, strike, rate, volatility, time, g_spot, g_strike, g_rate, g_volatility, g_time, *scratch):
    """The derivative of a block, into ``g_spot`` to ``g_time``."""
    root, spread, d1, d2, p1, p2, density1, density2, now, t = scratch
    np.sqrt(time, root)
    np.multiply(volatility, root, spread)
    np.divide(spot, strike, d1)
    np.log(d1, d1)
    np.multiply(rate, time, now)
    np.add(d1, now, d1)
    np.divide(d1, spread, d1)
    np.multiply(spread, 0.5, t)
    np.add(d1, t, d1)
    np.subtract(d1, spread, d2)
    np.negative(now, now)
    np.exp(now, now)
    np.multiply(now, strike, now)
    for x, scale, p, density in ((d1, spot, p1, density1), (d2, now, p2, density2)):
        np.multiply(x, x, density)
        np.multiply(density, B, p)
        np.add(p, A, p)
        np.multiply(p, x, p)
        np.tanh(p, p)
        np.multiply(density, 1.5 * B, density)
        np.add(density, 0.5 * A, density)
        np.multiply(density, scale, density)
        np.multiply(p, p, t)
        np.subtract(1.0, t, t)
        np.multiply(density, t, density)
        np.multiply(p, 0.5, p)
        np.add(p, 0.5, p)
    g = np.subtract(density1, density2, density1)
    np.divide(g, spread, g)
    np.multiply(g, d2, d2)
    by_spread = np.subtract(density2, d2, density2)
    np.divide(g, spot, t)
    np.add(t, p1, g_spot)
    np.multiply(p2, now, p2)
    by_drift = np.add(g, p2, g)
    np.divide(by_drift, strike, t)
    np.negative(t, g_strike)
    np.multiply(by_drift, time, g_rate)
    np.multiply(by_spread, root, g_volatility)
    np.multiply(by_spread, volatility, by_spread)
    np.divide(by_spread, root, by_spread)
    np.multiply(by_spread, 0.5, by_spread)
    np.multiply(by_drift, rate, by_drift)
    np.add(by_drift, by_spread, g_time)


BLOCK = 16_384
WORKLOAD = Workload("F", "Black-Scholes", make, inputs, hand, 1_000_000, 10, argnums=(0, 1, 2, 3, 4), floor=floor)
