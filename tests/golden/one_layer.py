def grad_one_layer(w, b, x, y):
    """grad one_layer   for w: float64[5, 3], b: float64[3], x: float64[5], y: float64[3]"""
    z = x @ w + b  # golden_functions.py:15
    # golden_functions.py:16: return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))
    e = np.exp(-np.abs(z))
    # backward
    g_z = (np.heaviside(z, 0.5) - (e / (e + 1) * np.sign(z) + y)) / 3
    return np.outer(x, g_z), g_z

# the code that runs

def grad_one_layer(w, b, x, y):
    """grad one_layer   for w: float64[5, 3], b: float64[3], x: float64[5], y: float64[3]"""
    b_0, b_1, b_2 = b.tolist()
    x_0, x_1, x_2, x_3, x_4 = x.tolist()
    y_0, y_1, y_2 = y.tolist()
    # golden_functions.py:15: z = x @ w + b
    prod = x.dot(w)
    item, item_2, item_3 = prod.tolist()
    z_0 = b_0 + item
    z_1 = b_1 + item_2
    z_2 = b_2 + item_3
    # golden_functions.py:16: return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))
    e = exp(-z_0 if z_0 > 0.0 else z_0)
    e_2 = exp(-z_1 if z_1 > 0.0 else z_1)
    e_3 = exp(-z_2 if z_2 > 0.0 else z_2)
    # backward
    g_z_0 = ((1.0 if z_0 > 0.0 else e) / (e + 1.0) - y_0) / 3.0
    g_z_1 = ((1.0 if z_1 > 0.0 else e_2) / (e_2 + 1.0) - y_1) / 3.0
    g_z_2 = ((1.0 if z_2 > 0.0 else e_3) / (e_3 + 1.0) - y_2) / 3.0
    g_w = empty((5, 3))
    pack_15(g_w, 0, x_0 * g_z_0, x_0 * g_z_1, x_0 * g_z_2, x_1 * g_z_0, x_1 * g_z_1, x_1 * g_z_2, x_2 * g_z_0, x_2 * g_z_1, x_2 * g_z_2, x_3 * g_z_0, x_3 * g_z_1, x_3 * g_z_2, x_4 * g_z_0, x_4 * g_z_1, x_4 * g_z_2)
    pack_3(prod, 0, g_z_0, g_z_1, g_z_2)
    return g_w, prod