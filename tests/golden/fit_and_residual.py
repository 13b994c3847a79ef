def value_and_grad_fit_and_residual(w, x, y):
    """value_and_grad_fit_and_residual   for w: float64[3], x: float64[5, 3], y: float64[5]"""
    residual = x @ w - y  # golden_functions.py:174
    # backward
    return (np.mean(residual ** 2), residual), 0.4 * (residual @ x)