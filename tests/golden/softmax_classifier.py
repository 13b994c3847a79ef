def grad_softmax_classifier(w, b, x, labels):
    """grad softmax_classifier   for w: float64[3, 4], b: float64[4], x: float64[5, 3], labels: int64[5]"""
    z = x @ w + b  # golden_functions.py:25
    # golden_functions.py:26: z = z - np.max(z, axis=1, keepdims=True)
    z_2 = z - np.max(z, axis=1, keepdims=True)
    # golden_functions.py:27: logp = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
    e = np.exp(z_2)
    # backward
    g_logp = np.zeros((5, 4))
    g_logp[np.arange(5), labels] = -0.2
    prod = np.sum(g_logp, axis=1, keepdims=True) / np.sum(e, axis=1, keepdims=True) * e
    g_z = g_logp - prod
    return x.T @ g_z, np.sum(g_z, axis=0)

# the code that runs

def grad_softmax_classifier(w, b, x, labels):
    """grad softmax_classifier   for w: float64[3, 4], b: float64[4], x: float64[5, 3], labels: int64[5]"""
    b_0, b_1, b_2, b_3 = b.tolist()
    # golden_functions.py:25: z = x @ w + b
    prod = x.dot(w)
    item, item_2, item_3, item_4, item_5, item_6, item_7, item_8, item_9, item_10, item_11, item_12, item_13, item_14, item_15, item_16, item_17, item_18, item_19, item_20 = unpack_20(prod.tobytes())
    z_0_0 = b_0 + item
    z_0_1 = b_1 + item_2
    z_0_2 = b_2 + item_3
    z_0_3 = b_3 + item_4
    z_1_0 = b_0 + item_5
    z_1_1 = b_1 + item_6
    z_1_2 = b_2 + item_7
    z_1_3 = b_3 + item_8
    z_2_0 = b_0 + item_9
    z_2_1 = b_1 + item_10
    z_2_2 = b_2 + item_11
    z_2_3 = b_3 + item_12
    z_3_0 = b_0 + item_13
    z_3_1 = b_1 + item_14
    z_3_2 = b_2 + item_15
    z_3_3 = b_3 + item_16
    z_4_0 = b_0 + item_17
    z_4_1 = b_1 + item_18
    z_4_2 = b_2 + item_19
    z_4_3 = b_3 + item_20
    # golden_functions.py:26: z = z - np.max(z, axis=1, keepdims=True)
    larger = z_0_1 if z_0_0 <= z_0_1 or z_0_1 != z_0_1 else z_0_0
    larger_2 = z_0_2 if larger <= z_0_2 or z_0_2 != z_0_2 else larger
    larger_3 = z_0_3 if larger_2 <= z_0_3 or z_0_3 != z_0_3 else larger_2
    larger_4 = z_1_1 if z_1_0 <= z_1_1 or z_1_1 != z_1_1 else z_1_0
    larger_5 = z_1_2 if larger_4 <= z_1_2 or z_1_2 != z_1_2 else larger_4
    larger_6 = z_1_3 if larger_5 <= z_1_3 or z_1_3 != z_1_3 else larger_5
    larger_7 = z_2_1 if z_2_0 <= z_2_1 or z_2_1 != z_2_1 else z_2_0
    larger_8 = z_2_2 if larger_7 <= z_2_2 or z_2_2 != z_2_2 else larger_7
    larger_9 = z_2_3 if larger_8 <= z_2_3 or z_2_3 != z_2_3 else larger_8
    larger_10 = z_3_1 if z_3_0 <= z_3_1 or z_3_1 != z_3_1 else z_3_0
    larger_11 = z_3_2 if larger_10 <= z_3_2 or z_3_2 != z_3_2 else larger_10
    larger_12 = z_3_3 if larger_11 <= z_3_3 or z_3_3 != z_3_3 else larger_11
    larger_13 = z_4_1 if z_4_0 <= z_4_1 or z_4_1 != z_4_1 else z_4_0
    larger_14 = z_4_2 if larger_13 <= z_4_2 or z_4_2 != z_4_2 else larger_13
    larger_15 = z_4_3 if larger_14 <= z_4_3 or z_4_3 != z_4_3 else larger_14
    # golden_functions.py:27: logp = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
    e = exp(z_0_0 - larger_3)
    e_2 = exp(z_0_1 - larger_3)
    e_3 = exp(z_0_2 - larger_3)
    e_4 = exp(z_0_3 - larger_3)
    e_5 = exp(z_1_0 - larger_6)
    e_6 = exp(z_1_1 - larger_6)
    e_7 = exp(z_1_2 - larger_6)
    e_8 = exp(z_1_3 - larger_6)
    e_9 = exp(z_2_0 - larger_9)
    e_10 = exp(z_2_1 - larger_9)
    e_11 = exp(z_2_2 - larger_9)
    e_12 = exp(z_2_3 - larger_9)
    e_13 = exp(z_3_0 - larger_12)
    e_14 = exp(z_3_1 - larger_12)
    e_15 = exp(z_3_2 - larger_12)
    e_16 = exp(z_3_3 - larger_12)
    e_17 = exp(z_4_0 - larger_15)
    e_18 = exp(z_4_1 - larger_15)
    e_19 = exp(z_4_2 - larger_15)
    e_20 = exp(z_4_3 - larger_15)
    # backward
    ratio = -0.2 / (e_4 + (e_3 + (e + e_2)))
    ratio_2 = -0.2 / (e_8 + (e_7 + (e_5 + e_6)))
    ratio_3 = -0.2 / (e_12 + (e_11 + (e_9 + e_10)))
    ratio_4 = -0.2 / (e_16 + (e_15 + (e_13 + e_14)))
    ratio_5 = -0.2 / (e_20 + (e_19 + (e_17 + e_18)))
    pack_20(prod, 0, -(e * ratio), -(e_2 * ratio), -(e_3 * ratio), -(e_4 * ratio), -(e_5 * ratio_2), -(e_6 * ratio_2), -(e_7 * ratio_2), -(e_8 * ratio_2), -(e_9 * ratio_3), -(e_10 * ratio_3), -(e_11 * ratio_3), -(e_12 * ratio_3), -(e_13 * ratio_4), -(e_14 * ratio_4), -(e_15 * ratio_4), -(e_16 * ratio_4), -(e_17 * ratio_5), -(e_18 * ratio_5), -(e_19 * ratio_5), -(e_20 * ratio_5))
    prod[const, labels] += -0.2
    g_z_0_0, g_z_0_1, g_z_0_2, g_z_0_3, g_z_1_0, g_z_1_1, g_z_1_2, g_z_1_3, g_z_2_0, g_z_2_1, g_z_2_2, g_z_2_3, g_z_3_0, g_z_3_1, g_z_3_2, g_z_3_3, g_z_4_0, g_z_4_1, g_z_4_2, g_z_4_3 = unpack_20(prod.tobytes())
    prod_2 = x.T.dot(prod)
    g_b = empty(4)
    pack_4(g_b, 0, g_z_4_0 + (g_z_3_0 + (g_z_2_0 + (g_z_0_0 + g_z_1_0))), g_z_4_1 + (g_z_3_1 + (g_z_2_1 + (g_z_0_1 + g_z_1_1))), g_z_4_2 + (g_z_3_2 + (g_z_2_2 + (g_z_0_2 + g_z_1_2))), g_z_4_3 + (g_z_3_3 + (g_z_2_3 + (g_z_0_3 + g_z_1_3))))
    return prod_2, g_b