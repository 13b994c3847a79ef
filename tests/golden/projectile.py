def value_and_grad_projectile(v, angle):
    """value_and_grad_projectile   for v: float, angle: float"""
    # golden_functions.py:101: t = 2.0 * v * np.sin(angle) / 9.81
    sin = np.sin(angle)
    t = 2.0 * v * sin / 9.81
    # golden_functions.py:102: return v * np.cos(angle) * t
    cos = np.cos(angle)
    g_t = v * cos
    result = g_t * t
    # backward
    g_angle = 0.2038735983690112 * (g_t * v * cos) - t * v * sin
    g_v = t * cos + 0.2038735983690112 * (g_t * sin)
    return result, (float(g_v), float(g_angle))

# the code that runs

def value_and_grad_projectile(v, angle):
    """value_and_grad_projectile   for v: float, angle: float"""
    # golden_functions.py:101: t = 2.0 * v * np.sin(angle) / 9.81
    sin_2 = sin(angle)
    t = 2.0 * v * sin_2 / 9.81
    # golden_functions.py:102: return v * np.cos(angle) * t
    cos_2 = cos(angle)
    g_t = v * cos_2
    result = g_t * t
    g_v = t * cos_2 + 0.2038735983690112 * (g_t * sin_2)
    g_angle = 0.2038735983690112 * (g_t * v * cos_2) - t * v * sin_2
    return float64(result), (g_v, g_angle)