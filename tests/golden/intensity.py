def grad_intensity(z):
    """grad intensity   for z: complex128[3]"""
    # backward
    prod = np.float64(2.0) * np.conjugate(z * (0.8775825618903728 + 0.479425538604203j))
    return np.conjugate(prod * (0.8775825618903728 + 0.479425538604203j))