"""Hamiltonian Monte Carlo: how much did coaching help in eight schools? (Rubin 1981)

The sampler needs the gradient of a log density at each of some hundred thousand steps; a compiled call takes microseconds.
"""

import numpy as np
from _picture import picture

from symgrad import flatten, value_and_grad

EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])  # points in a test, in each school
ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
START, UNFLATTEN = flatten({"mean": 0.0, "log_spread": 1.0, "standard": np.zeros(8)})


def log_density(vector):
    """Schools are alike: each one's effect is normal about a common mean, of which little is known."""
    p = UNFLATTEN(vector)
    spread = np.exp(p["log_spread"])
    effects = p["mean"] + spread * p["standard"]
    likelihood = -0.5 * np.sum(((EFFECT - effects) / ERROR) ** 2)
    prior = -0.5 * np.sum(p["standard"] ** 2) - 0.5 * (p["mean"] / 5.0) ** 2
    return likelihood + prior - np.log(1.0 + (spread / 5.0) ** 2) + p["log_spread"]  # half-Cauchy, by the logarithm


def sample(density, start, count, step=0.25, leaps=12, seed=0):
    """Hamiltonian Monte Carlo with leapfrog steps; the samples, and how many were taken."""
    rng = np.random.default_rng(seed)
    x, (value, slope) = start, density(start)
    samples, taken = [], 0
    for _ in range(count):
        momentum = rng.normal(size=x.size)
        y, speed, new, force = x, momentum, value, slope
        for _ in range(leaps):
            speed = speed + 0.5 * step * force
            y = y + step * speed
            new, force = density(y)
            speed = speed + 0.5 * step * force
        if np.log(rng.uniform()) < new - value + 0.5 * (momentum @ momentum - speed @ speed):
            x, value, slope = y, new, force
            taken += 1
        samples.append(x)
    return np.array(samples), taken / count


def main():
    density = value_and_grad(log_density)
    samples, taken = sample(density, START, 4000)
    kept = [UNFLATTEN(x) for x in samples[500:]]
    mean = np.array([p["mean"] for p in kept])
    spread = np.exp([p["log_spread"] for p in kept])
    effects = mean[:, None] + spread[:, None] * np.array([p["standard"] for p in kept])
    print(f"{taken:.0%} of the proposals were taken; {density.cache_info().hits} gradients by compiled code")
    print(f"mean {mean.mean():.1f} ± {mean.std():.1f}, spread between schools {spread.mean():.1f}")
    assert taken > 0.7
    assert abs(mean.mean() - 4.4) < 0.8  # Stan's reference posterior: 4.4 ± 3.3, spread 3.6
    assert abs(spread.mean() - 3.6) < 0.8

    with picture("hamiltonian_monte_carlo") as axes:
        axes.boxplot(list(effects.T), showfliers=False)
        axes.plot(range(1, 9), EFFECT, "o", label="measured in the school alone")
        axes.set(xlabel="school", ylabel="effect, points", title="Eight schools: what each one tells about the others")
        axes.legend()


if __name__ == "__main__":
    main()
