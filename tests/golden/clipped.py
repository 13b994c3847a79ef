def grad_clipped(x):
    """grad clipped   for x: float64[3]"""
    # backward
    return np.clip(4.0 * np.sin(x) ** 3, -1.0, 1.0) * np.cos(x)