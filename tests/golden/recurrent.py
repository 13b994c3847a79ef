def grad_recurrent(params, xs, target):
    """grad recurrent

    params[0]: float64[2, 3]
    params[1]: float64[3, 3]
    params[2]: float64[3]
    xs: float64[3, 2]
    target: float64[3]
    """
    w_x = params[0]
    w_h = params[1]
    b = params[2]
    # golden_functions.py:33: h = np.zeros_like(b)
    h = np.zeros(3)
    # golden_functions.py:34: for x in xs:
    x = xs[0]
    # golden_functions.py:35: h = np.tanh(x @ w_x + h @ w_h + b)
    h_2 = np.tanh(x @ w_x + h @ w_h + b)
    x_2 = xs[1]
    h_3 = np.tanh(x_2 @ w_x + h_2 @ w_h + b)
    x_3 = xs[2]
    h_4 = np.tanh(x_3 @ w_x + h_3 @ w_h + b)
    # backward
    prod = (h_4 - target) * (1 - h_4 * h_4)
    prod_2 = 2.0 * prod
    prod_3 = w_h @ prod * (1 - h_3 * h_3)
    prod_4 = 2.0 * prod_3
    prod_5 = w_h @ prod_3 * (1 - h_2 * h_2)
    prod_6 = 2.0 * prod_5
    g_w_x = np.outer(x_3, prod_2) + np.outer(x_2, prod_4) + np.outer(x, prod_6)
    g_w_h = np.outer(h_3, prod_2) + np.outer(h_2, prod_4) + np.outer(h, prod_6)
    g_b = 2.0 * (prod + prod_3 + prod_5)
    return g_w_x, g_w_h, g_b