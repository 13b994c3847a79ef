def jacfwd_polar(p):
    """jacfwd polar   for p: float64[2]"""
    # golden_functions.py:110: r, phi = p
    r = p[0]
    phi = p[1]
    # golden_functions.py:111: return np.stack([r * np.cos(phi), r * np.sin(phi)])
    cos = np.cos(phi)
    sin = np.sin(phi)
    # tangents
    eye = np.eye(2)
    t_r = eye[:, 0]
    t_phi = eye[:, 1]
    t_result = np.stack([t_r * cos - t_phi * (sin * r), t_r * sin + t_phi * (cos * r)], axis=1)
    return t_result.T.copy()