def grad_intensity(z):
    """grad intensity   for z: complex128[3]"""
    # golden_functions.py:96: return np.sum(np.abs(z * np.exp(0.5j)) ** 2)
    prod = z * (0.8775825618903728 + 0.479425538604203j)
    abs_ = np.abs(prod)
    # backward
    prod_2 = abs_ * (np.conjugate(prod) / (abs_ + (abs_ == 0))) * (0.8775825618903728 + 0.479425538604203j)
    return np.conjugate(2.0 * prod_2)