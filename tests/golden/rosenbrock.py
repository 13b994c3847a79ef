def grad_rosenbrock(x):
    """grad rosenbrock   for x: float64[4]"""
    # golden_functions.py:58: return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    part = x[:-1]
    diff = x[1:] - part ** 2
    # backward
    g = np.zeros(4)
    g[:-1] = -2.0 * (1.0 - part) - 400.0 * (diff * part)
    g[1:] += 200.0 * diff
    return g