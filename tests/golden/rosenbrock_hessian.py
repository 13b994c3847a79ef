def hessian_rosenbrock(x):
    """hessian rosenbrock   for x: float64[4]"""
    # golden_functions.py:58: return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    part = x[:-1]
    # tangents
    t_x = np.eye(4)
    part_2 = t_x[:, :-1]
    diff = t_x[:, 1:] - 2.0 * (part_2 * part)
    g = np.zeros((4, 4))
    g[:, :-1] = 2.0 * part_2 - 400.0 * (diff * part + part_2 * (x[1:] - part ** 2))
    g[:, 1:] += 200.0 * diff
    return g.T