def grad_black_scholes(spot, strike, rate, sigma, years):
    """grad black_scholes   for spot: float, strike: float, rate: float, sigma: float, years: float"""
    # golden_functions.py:69: spread = sigma * np.sqrt(years)
    root = np.sqrt(years)
    spread = sigma * root
    # golden_functions.py:70: d1 = (np.log(spot / strike) + (rate + 0.5 * sigma**2) * years) / spread
    d1 = (np.log(spot / strike) + (rate + 0.5 * sigma ** 2) * years) / spread
    d2 = d1 - spread  # golden_functions.py:71
    # golden_functions.py:63: poly = 1.0 + x * (0.196854 + x * (0.115194 + x * (0.000344 + x * 0.019527)))
    total = 0.000344 + d1 * 0.019527
    total_2 = 0.115194 + d1 * total
    total_3 = 0.196854 + d1 * total_2
    poly = 1.0 + d1 * total_3
    # golden_functions.py:64: return 1.0 - 0.5 / poly**4
    pow_ = poly ** 4
    total_4 = 0.000344 + d2 * 0.019527
    total_5 = 0.115194 + d2 * total_4
    total_6 = 0.196854 + d2 * total_5
    poly_2 = 1.0 + d2 * total_6
    pow__2 = poly_2 ** 4
    # backward
    prod = strike * np.exp(-rate * years) / pow__2 / pow__2 * poly_2 ** 3
    prod_2 = prod * d2
    prod_3 = prod_2 * d2
    g_d2 = -2.0 * (prod * total_6 + prod_2 * total_5 + prod_3 * total_4) - 0.039054 * (prod_3 * d2)
    prod_4 = spot / pow_ / pow_ * poly ** 3
    prod_5 = prod_4 * d1
    prod_6 = prod_5 * d1
    total_7 = 2.0 * (prod_4 * total_3 + prod_5 * total_2 + prod_6 * total) + 0.039054 * (prod_6 * d1)
    ratio = (total_7 + g_d2) / spread
    g_spot = 1.0 - 0.5 / pow_ + ratio / spot
    g_sigma = ratio * years * sigma - (g_d2 + ratio * d1) * root
    return float(g_spot), float(g_sigma)