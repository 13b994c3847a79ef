def vmap_cross_entropy(w, b, x, label):
    """vmap cross_entropy   for w: float64[3, 4], b: float64[4], x: float64[5, 3], label: int64[5]"""
    z = np.tanh(x @ w + b)  # golden_functions.py:182
    # golden_functions.py:183: z = z - np.max(z)
    z_2 = z - np.max(z, axis=1)[:, None]
    # golden_functions.py:184: return np.log(np.sum(np.exp(z))) - z[label]
    e = np.exp(z_2)
    # backward
    g = np.zeros((5, 4))
    g[np.arange(5), label] = -1.0
    g_z = g + e / np.sum(e, axis=1)[:, None]
    g_b = g_z * (1 - z * z)
    return x[:, :, None] * g_b[:, None, :], g_b

# the code that runs

def vmap_cross_entropy(w, b, x, label):
    """vmap cross_entropy   for w: float64[3, 4], b: float64[4], x: float64[5, 3], label: int64[5]"""
    # golden_functions.py:182: z = np.tanh(x @ w + b)
    prod = x.dot(w)
    add(prod, b, prod)
    tanh(prod, prod)
    # golden_functions.py:183: z = z - np.max(z)
    max_ = maximum_reduce(prod, 1)
    z = subtract(prod, max_[:, None])
    # golden_functions.py:184: return np.log(np.sum(np.exp(z))) - z[label]
    exp(z, z)
    total = z.dot(ones)
    # backward
    divide(z, total[:, None], z)
    z[const, label] += -1.0
    multiply(prod, prod, prod)
    subtract(c1, prod, prod)
    multiply(z, prod, z)
    g_w = multiply(x[:, :, None], z[:, None, :])
    return np.ascontiguousarray(g_w), z