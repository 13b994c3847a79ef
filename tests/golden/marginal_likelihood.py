def value_and_grad_marginal_likelihood(theta, x, y):
    """value_and_grad_marginal_likelihood   for theta: float64[3], x: float64[5], y: float64[5]"""
    # golden_functions.py:77: length, signal, noise = np.exp(theta)
    e = np.exp(theta)
    length = e[0]
    signal = e[1]
    noise = e[2]
    gap = (x[:, None] - x[None, :]) / length  # golden_functions.py:78
    # golden_functions.py:79: k = signal**2 * np.exp(-0.5 * gap**2) + noise**2 * np.eye(len(x))
    pow_ = signal ** 2
    e_2 = np.exp(-0.5 * gap ** 2)
    k = pow_ * e_2 + noise ** 2 * np.eye(5)
    chol = np.linalg.cholesky(k)  # golden_functions.py:80
    alpha = np.linalg.solve(k, y)  # golden_functions.py:81
    # golden_functions.py:82: return 0.5 * y @ alpha + np.sum(np.log(np.diagonal(chol)))
    diagonal = np.diagonal(chol)
    result = 0.5 * y @ alpha + np.sum(np.log(diagonal))
    # backward
    tril = np.tril(chol.T @ np.diag(1.0 / diagonal))
    inv = np.linalg.inv(chol)
    g_k = 0.5 * (inv.T @ (tril + np.tril(tril, k=-1).T) @ inv) - np.outer(0.5 * np.linalg.solve(k.T, y), alpha)
    g_noise = 2.0 * (np.sum(g_k * np.eye(5)) * noise)
    prod = g_k * e_2
    g_signal = 2.0 * (np.sum(prod) * signal)
    g_length = np.sum(prod * gap * gap) * (pow_ / length)
    g = np.zeros(3)
    g[2] = g_noise
    g[1] = g_signal
    g[0] = g_length
    return result, g * e