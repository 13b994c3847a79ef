def grad_upwind(u, c):
    """grad upwind   for u: float64[5], c: float"""
    # golden_functions.py:149: out[1:] = u[1:] - c * (u[1:] - u[:-1])
    part = u[1:]
    diff = part - u[:-1]
    diff_2 = part - c * diff
    # backward
    prod = diff_2 * c
    g_c = -2.0 * np.sum(diff_2 * diff)
    g = np.zeros(5)
    g[:-1] = 2.0 * prod
    g[1:] += 2.0 * (diff_2 - prod)
    g[0] += 2.0 * u[0]
    return g, float(g_c)