def jacfwd_polar(p):
    """jacfwd polar   for p: float64[2]"""
    # golden_functions.py:110: r, phi = p
    r = p[0]
    phi = p[1]
    # golden_functions.py:111: return np.stack([r * np.cos(phi), r * np.sin(phi)])
    cos = np.cos(phi)
    sin = np.sin(phi)
    eye = np.eye(2)
    part = eye[:, 0]
    part_2 = eye[:, 1]
    stack = np.stack([part * cos - part_2 * sin * r, part * sin + part_2 * cos * r], axis=1)
    return stack.T.copy()