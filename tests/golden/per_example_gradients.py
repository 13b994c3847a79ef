def vmap_cross_entropy(w, b, x, label):
    """vmap cross_entropy   for w: float64[3, 4], b: float64[4], x: float64[5, 3], label: int64[5]"""
    z = np.tanh(x @ w + b)  # golden_functions.py:182
    # golden_functions.py:183: z = z - np.max(z)
    expand_dims = np.max(z, axis=1)[:, None]
    z_2 = z - expand_dims
    # golden_functions.py:184: return np.log(np.sum(np.exp(z))) - z[label]
    e = np.exp(z_2)
    # backward
    g = np.zeros((5, 4))
    g[np.arange(5), label] = -1.0
    g_z = g + e / np.sum(e, axis=1)[:, None]
    equal = z == expand_dims
    chosen = np.where(equal, (np.sum(g_z, axis=1) / np.sum(equal, axis=1, dtype=np.float64))[:, None], 0)
    g_b = (g_z - chosen) * (1 - z * z)
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
    expand_dims = max_[:, None]
    z = subtract(prod, expand_dims)
    # golden_functions.py:184: return np.log(np.sum(np.exp(z))) - z[label]
    exp(z, z)
    total = add_reduce(z, 1)
    # backward
    divide(z, total[:, None], z)
    z[const, label] += -1.0
    total_2 = add_reduce(z, 1)
    equal_2 = equal(prod, expand_dims)
    total_3 = np.sum(equal_2, axis=1, dtype=np.float64)
    divide(total_2, total_3, total_2)
    chosen = np.where(equal_2, total_2[:, None], 0)
    subtract(z, chosen, chosen)
    multiply(prod, prod, prod)
    subtract(c1, prod, prod)
    multiply(chosen, prod, chosen)
    g_w = multiply(x[:, :, None], chosen[:, None, :])
    return np.ascontiguousarray(g_w), np.ascontiguousarray(chosen)