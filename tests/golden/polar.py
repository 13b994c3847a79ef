def jacfwd_polar(p):
    """jacfwd polar   for p: float64[2]"""
    # golden_functions.py:110: r, phi = p
    r = p[0]
    phi = p[1]
    # golden_functions.py:111: return np.stack([r * np.cos(phi), r * np.sin(phi)])
    cos = np.cos(phi)
    sin = np.sin(phi)
    # tangents
    t_result = np.stack([-(sin * r), cos * r])
    return np.stack([np.stack([cos, sin]), t_result], axis=-1)