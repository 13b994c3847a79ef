def grad_perceptron(params, x, y):
    """grad perceptron

    params['hidden']['w']: float64[3, 4]
    params['hidden']['b']: float64[4]
    params['out']['w']: float64[4]
    params['out']['b']: float
    x: float64[5, 3]
    y: float64[5]
    """
    w = params['hidden']['w']
    b = params['hidden']['b']
    w_2 = params['out']['w']
    b_2 = params['out']['b']
    # golden_functions.py:41: h = np.tanh(x @ params["hidden"]["w"] + params["hidden"]["b"])
    h = np.tanh(x @ w + b)
    # golden_functions.py:42: out = h @ params["out"]["w"] + params["out"]["b"]
    out = h @ w_2 + b_2
    # golden_functions.py:43: return 0.5 * np.mean((out - y) ** 2)
    diff = out - y
    # backward
    prod = np.outer(diff / 5, w_2) * (1 - h * h)
    g_w = x.T @ prod
    g_b = np.sum(prod, axis=0)
    g_w_2 = diff @ h / 5
    g_b_2 = float(np.sum(diff) / 5)
    return {'hidden': {'w': g_w, 'b': g_b}, 'out': {'w': g_w_2, 'b': g_b_2}}

# the code that runs

def grad_perceptron(params, x, y):
    """grad perceptron

    params['hidden']['w']: float64[3, 4]
    params['hidden']['b']: float64[4]
    params['out']['w']: float64[4]
    params['out']['b']: float
    x: float64[5, 3]
    y: float64[5]
    """
    w = params['hidden']['w']
    b = params['hidden']['b']
    w_2 = params['out']['w']
    b_2 = params['out']['b']
    # golden_functions.py:41: h = np.tanh(x @ params["hidden"]["w"] + params["hidden"]["b"])
    prod = x.dot(w)
    add(prod, b, prod)
    tanh(prod, prod)
    # golden_functions.py:42: out = h @ params["out"]["w"] + params["out"]["b"]
    prod_2 = prod.dot(w_2)
    add(prod_2, b_2, prod_2)
    # golden_functions.py:43: return 0.5 * np.mean((out - y) ** 2)
    subtract(prod_2, y, prod_2)
    # backward
    g_out = divide(prod_2, c5)
    total = add_reduce(prod_2, None)
    g_h = g_out[:, None].dot(w_2[None])
    prod_3 = prod_2.dot(prod)
    divide(prod_3, c5, prod_3)
    multiply(prod, prod, prod)
    subtract(c1, prod, prod)
    multiply(g_h, prod, g_h)
    g_b = ones.dot(g_h)
    g_w = x.T.dot(g_h)
    return {'hidden': {'w': g_w, 'b': g_b}, 'out': {'w': prod_3, 'b': float(total / 5)}}