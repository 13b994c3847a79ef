"""``symgrad.scipy.special``: derivatives by parameters, of elliptic integrals, Bessel functions and of complex numbers."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy")

import scipy.special
from agreement import agrees

from symgrad import elementwise_grad, grad, hessian, jvp
from symgrad.errors import NotDifferentiable
from symgrad.scipy import special

# the gradient and the lower triangle of the Hessian, by mpmath 1.3 and 50 digits
# fmt: off
DERIVATIVES = [
    ("agm", (1, 2), [0.605209239138149, 0.425790895954379], [-0.184477193047478, 0.092238596523739, -0.0461192982618695]),
    ("agm", (1, 1), [0.5, 0.5], [-0.125, 0.125, -0.125]),
    ("agm", (2, 2.0001), [0.500006249921877, 0.499993750234365], [-0.0625015624951173, 0.0624984375732386,
     -0.0624953128075983]),
    ("agm", (0.001, 50), [527.154574571415, 0.118146649448784], [-440778.788424814, 8.81557576849627, -0.000176311515369925]),
    ("ellipkinc", (0.7, 0.4), [1.0950115137216, 0.0612216199519852], [0.258773933595241, 0.272452846792495,
     0.0277012853304986]),
    ("ellipkinc", (2.9, -3), [0.923821242476761, 0.155566046020735], [0.549460319728925, 0.0225649977591281,
     0.0469019774402259]),
    ("ellipkinc", (-7.3, 0.9), [1.6925300860911, -19.1939333716011], [-1.95228580534504, 1.75332773418382,
     -196.612324581024]),
    ("ellipkinc", (1.2, 0), [1.0, 0.215567102431106], [0.0, 0.434348428885311, 0.187503045627069]),
    ("ellipkinc", (1.5707963267948966, 0.5), [1.4142135623731, 0.847213084793979], [0.0, 1.4142135623731, 1.85407467730137]),
    ("ellipeinc", (0.7, 0.4), [0.913232406663303, -0.0547500098294925], [-0.21581576010624, -0.227223883822867,
     -0.00808951265311592]),
    ("ellipeinc", (2.9, -3), [1.08246049562468, -0.44573862234796], [-0.643814043965143, -0.0264398755246526,
     -0.0483620960545375]),
    ("ellipeinc", (-7.3, 0.9), [0.590831447084937, 3.46651967314998], [0.681507440827438, -0.612054799447871,
     8.73745205469505]),
    ("ellipeinc", (1.2, 0), [1.0, -0.215567102431106], [0.0, -0.434348428885311, -0.0625010152090231]),
    ("elliprc", (1, 2), [-0.107300918301276, -0.142699081698724], [0.0890486225480862, 0.0359513774519138,
     0.0890486225480862]),
    ("elliprc", (1, 1), [-0.166666666666667, -0.333333333333333], [0.15, 0.1, 0.4]),
    ("elliprc", (3, 0.5), [-0.0798935566225255, -0.4974567125671], [0.0286911250005278, 0.0675339198644099,
     1.08716661851484]),
    ("elliprc", (1, -2), [0.103304500308254, 0.146695499691746], [-0.134985583487461, 0.00998558348746057,
     0.115014416512539]),
    ("elliprf", (1, 2, 3), [-0.093185369567574, -0.0625287288261924, -0.0484100468381651], [0.0755399215629227,
     0.0153283203706908, 0.0286433749432784, 0.0111938306823522, 0.00705934099401363, 0.0157675191956227]),
    ("elliprf", (1, 1, 1), [-0.166666666666667, -0.166666666666667, -0.166666666666667], [0.15, 0.05, 0.15, 0.05, 0.05,
     0.15]),
    ("elliprf", (0.001, 10000, 2), [-0.109356802602017, -2.31171191218338e-6, -0.00244428456106076], [55.8749524695093,
     5.46772509127773e-6, 3.2178540090421e-10, 0.0267415002603691, 1.22123067070843e-7, 0.00120922733531117]),
    ("elliprg", (1, 2, 3), [0.13514379908344, 0.119207755041035, 0.109121413609979], [-0.0321190663942192,
     -0.00796802202120268, -0.0182531716763659, -0.00650559636836516, -0.00504317071552764, -0.0126562563351897]),
    ("elliprg", (1, 1, 1), [0.166666666666667, 0.166666666666667, 0.166666666666667], [-0.05, -0.0166666666666667, -0.05,
     -0.0166666666666667, -0.0166666666666667, -0.05]),
    ("elliprg", (0.001, 10000, 2), [0.0140028441219777, 0.00249896296236177, 0.0116132379622179], [-0.0540801257167578,
     -5.75194115500206e-7, -1.24856929616482e-7, -0.000597700390135005, -4.55804910975002e-7, -0.000623986085484399]),
    ("elliprd", (1, 2, 3), [-0.0671629840941134, -0.0423560459640818, -0.0946051151737363], [0.062937644273799,
     0.0124034690650158, 0.0223960558837125, 0.026720959277151, 0.0162315113592545, 0.0591096019795603]),
    ("elliprd", (1, 1, 1), [-0.3, -0.3, -0.9], [0.321428571428571, 0.107142857142857, 0.321428571428571, 0.321428571428571,
     0.321428571428571, 1.60714285714286]),
    ("elliprd", (1e-12, 1e9, 1), [-47.4340700343382, -4.74341167629725e-14, -9.48681874790293e-5], [23717082451191.7,
     2.37170350171691e-8, 0.0, 71.1510576174847, 4.74340937157976e-14, 0.000189736303830718]),
    ("elliprj", (1, 2, 3, 0.4), [-0.267474964147784, -0.15778431294551, -0.11338882564496, -0.992282986501232],
     [0.290987802554846, 0.0548453256011372, 0.0942164653677682, 0.0385215346257059, 0.0221977436502746, 0.0472233388002202,
     0.381110881838054, 0.211473237690692, 0.147212564463714, 3.08753103910626]),
    ("poch", (-2, 0.3), [5.0278470381304, 0.0], [-24.2191576309463, -7.46996032941518, 0.0]),
    ("poch", (-2, -0.3), [-2.89421478851183, 0.0], [-13.8606193432783, -9.60104574088819, 0.0]),
    ("poch", (-3, 1.5), [-14.1796308072441, 0.0], [15.6815664496153, -9.97050156401158, 0.0]),
    ("poch", (-2.5, 0.3), [9.84269586936439, 12.4158646645753], [85.0617473512063, 118.170559108062, 131.867202662141]),
]
# fmt: on


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "args", "slopes", "curvatures"), DERIVATIVES)
def test_derivatives_by_all_arguments(name, args, slopes, curvatures):
    fun, args = getattr(scipy.special, name), tuple(map(float, args))
    every = tuple(range(len(args)))
    for mode in ("auto", "dynamic"):
        np.testing.assert_allclose(grad(fun, every, mode=mode)(*args), slopes, 1e-11, 1e-13)
        found = hessian(lambda x: fun(*x), mode=mode)(np.array(args))
        np.testing.assert_allclose(found[np.tril_indices(len(args))], curvatures, 1e-9, 1e-11)
    for i in every:
        way = tuple(float(i == k) for k in every)
        np.testing.assert_allclose(jvp(fun, args, way)[1], slopes[i], 1e-11, 1e-13)


def test_where_carlsons_integrals_have_poles():
    for fun in (
        lambda x: scipy.special.elliprf(x, 1.0, 2.0),
        lambda x: scipy.special.elliprc(x, 2.0),
        lambda x: scipy.special.elliprd(x, 1.0, 2.0),
        lambda x: scipy.special.elliprj(x, 1.0, 2.0, 3.0),
    ):
        assert grad(fun)(0.0) == -np.inf
    assert np.isfinite(grad(lambda x: scipy.special.elliprd(0.0, x, 2.0))(1.0))
    assert np.isnan(grad(lambda p: scipy.special.elliprj(1.0, 2.0, 3.0, p))(-0.5))  # a principal value
    np.testing.assert_allclose(grad(lambda x: scipy.special.elliprg(x, 1.0, 2.0))(0.0), scipy.special.elliprf(0.0, 1, 2) / 4)
    with pytest.raises(NotDifferentiable, match="no derivative rule for complex numbers"):
        grad(lambda x: np.real(scipy.special.elliprd(x + 1j, 1.0, 2.0)))(1.0)


@pytest.mark.parametrize(("u", "m"), [(0.7, 0.4), (5.0, 0.3), (-2.0, 0.9), (1.0, 0.0), (30.0, 0.1), (0.0, 0.5)])
def test_jacobis_elliptic_functions(u, m):
    agrees(lambda u: scipy.special.ellipj(u, m), u)
    if m:
        agrees(lambda u, m: scipy.special.ellipj(u, m), u, m)
        agrees(lambda u, m: grad(lambda u, m: sum(scipy.special.ellipj(u, m)), (0, 1))(u, m), u, m)
    agrees(lambda u, m: scipy.special.ellipj(u, m)[1], np.array([[u], [1.1]]), np.array([0.3, 0.6, 0.4]))


# the first three derivatives, by mpmath 1.3 and 400 digits; far from 0 the terms of the formulas cancel
# fmt: off
FAR_AWAY = {
    ("erfcx", -2.0): [-436.8919967270074, 1965.449795687986, -9609.367169659972],
    ("erfcx", 9.9): [-0.005670519706633622, 0.001128623686318808, -0.0003353298374220861],
    ("erfcx", 1e4): [-5.641895750849127e-9, 1.128379133244139e-12, -3.385137332029672e-16],
    ("erfcx", 1e8): [-5.641895835477562e-17, 1.128379167095512e-24, -3.385137501286536e-32],
    ("erfcx", 12 + 5j): [-0.00235065067629442 + 0.002341137751325084j, 0.0001969582425898466 - 0.0004674192464095867j,
     -1.41241892549437e-6 + 0.0001160715173687196j],
    ("erfcx", -3 + 12j): [0.003273882651259028 - 0.001765923500808615j, 0.0004110888226367985 + 0.0004462486451413394j,
     -8.096981417682536e-5 + 0.0001249458692006652j],
    ("dawsn", -1e8): [-5.000000000000001e-17, -1.0e-24, -3.000000000000001e-32],
    ("dawsn", -10.1): [-0.00497538353876205, -0.001000234261333787, -0.0003031979238942996],
    ("dawsn", 9.9): [-0.005181662905733047, 0.001063424229904935, -0.0003291481291855199],
    ("dawsn", 12 + 5j): [-0.002082754351160297 + 0.00212729635886293j, 0.0001682007358870264 - 0.0004290997042898425j,
     3.202700454130383e-6 + 0.0001072001086342372j],
    ("dawsn", 3 + 12j): [-9.346440041542926e+59 - 1.089131016663216e+58j, 5.327292007498725e+60 + 2.256989581769204e+61j,
     5.134523235962338e+62 - 2.632308178454551e+62j],
    ("wofz", 10.1 + 0j): [-1.006865060382479e-43 - 0.005614119133449045j, 2.023898460978721e-42 + 0.001128643502704214j,
     -4.048000288761718e-41 - 0.0003421222208289384j],
    ("wofz", 1000 + 1j): [-1.128380295473833e-9 - 5.641887372598548e-7j, 3.385143143176449e-12 + 1.128375781936854e-9j,
     -1.354058385647377e-14 - 3.385120575450931e-12j],
    ("wofz", 5 + 12j): [-0.002341137751325084 + 0.00235065067629442j, -0.0001969582425898466 - 0.0004674192464095867j,
     0.0001160715173687196 - 1.41241892549437e-6j],
    ("wofz", 12 - 5j): [0.002400396893579069 - 0.002350136620026811j, -0.0004841871669275032 + 0.0001897942062650551j,
     0.0001209623692932491 + 3.613860470888062e-6j],
    ("wofz", 3 - 4j): [10307.39183942942 + 19359.75469881221j, -218582.8818174858 - 29727.17562477178j,
     1508085.128545372 - 1647739.019586505j],
}
# fmt: on


@pytest.mark.parametrize(("name", "z"), FAR_AWAY)
def test_error_functions_far_from_zero(name, z):
    fun, expected = getattr(scipy.special, name), FAR_AWAY[name, z]
    for mode in ("auto", "dynamic"):
        derivative = fun
        for slope in expected:
            derivative = grad(derivative, holomorphic=isinstance(z, complex), mode=mode)
            np.testing.assert_allclose(derivative(z), slope, 1e-10)
    slope = jvp(fun, (z,), (1.0,))[1]
    np.testing.assert_allclose([np.real(slope), np.imag(slope)], [np.real(expected[0]), np.imag(expected[0])], 1e-12)
    assert abs(grad(fun, holomorphic=isinstance(z, complex))(type(z)(1e300))) < 1e-300


# the first two derivatives of the logarithm of the normal distribution function, by mpmath 1.3 and 60 digits
NORMAL = {
    -1e100: [1e100, -1.0], -30.0: [30.033259667433677, -0.9988962284881099], -1.0: [1.5251352761609813, -0.8009023344296513],
    0.0: [0.7978845608028654, -0.6366197723675814], 10.0: [7.694598626706419e-23, -7.694598626706419e-22],
    37.0: [2.1200065515245e-298, -7.84402424064104e-297], 40.0: [0.0, 0.0], 1e200: [0.0, 0.0], np.inf: [0.0, 0.0],
}  # fmt: skip


@pytest.mark.parametrize("x", NORMAL)
def test_far_out_under_the_normal_density(x):
    """One observation far out made a whole Hessian NaN."""
    for mode in ("auto", "dynamic"):
        derivative = grad(scipy.special.log_ndtr, mode=mode)
        for point in (x, np.float64(x), np.array(x)):
            np.testing.assert_allclose([derivative(point), grad(derivative, mode=mode)(point)], NORMAL[x], 1e-12)


# trigamma and its next two derivatives, by mpmath 1.3
COMPLEX = {
    0.5 + 1j: [0.036724551941014545 - 1.1170686578296001j, 1.351641900841261 + 0.22988695732450982j,
               -1.4336428852770683 + 3.1199956216732372j],
    -3.3 + 0.2j: [6.1632925787946186 + 6.2026553645117344j, -11.239565221382354 + 46.328762813228316j,
                  -237.87723761373277 + 233.80439923852917j],
    100 - 20j: [0.0096598936980763393 + 0.0019416557591234176j, -8.9542968283853407e-5 - 3.7511816675910287e-5j,
                1.5842641021153931e-6 + 1.0724176558577118e-6j],
    0.001j: [-999998.35506918007 - 0.0024041096586142181j, -2.4041013632163773 - 1999999999.993506j,
             6000000000006.4934 - 0.024886145121864267j],
    -200.5 + 31j: [-0.004859524023903671 - 0.00074947580960295688j, -2.3053219884058134e-5 - 7.2841634174002134e-6j,
                   -2.131360521544074e-7 - 1.0535013199954375e-7j],
}  # fmt: skip


@pytest.mark.parametrize("z", COMPLEX)
def test_polygamma_of_complex_numbers(z):
    trigamma, *higher = COMPLEX[z]
    for n, expected in enumerate(COMPLEX[z], 1):
        np.testing.assert_allclose(special.polygamma(n, z), expected, 1e-12)
    np.testing.assert_allclose(special.polygamma(np.arange(4), z)[1:], COMPLEX[z], 1e-12)
    for mode in ("auto", "dynamic"):
        slope = lambda fun, mode=mode: grad(fun, holomorphic=True, mode=mode)
        np.testing.assert_allclose(slope(scipy.special.digamma)(z), trigamma, 1e-12)
        np.testing.assert_allclose(slope(slope(scipy.special.loggamma))(z), trigamma, 1e-12)
        np.testing.assert_allclose(slope(slope(slope(scipy.special.loggamma)))(z), higher[0], 1e-12)
        found = slope(lambda z, slope=slope: np.sum(scipy.special.psi(z) ** 2))(np.array([z, z]))
        np.testing.assert_allclose(found, [2 * scipy.special.psi(z) * trigamma] * 2, 1e-12)
    np.testing.assert_allclose(jvp(scipy.special.psi, (z,), (1j,))[1], 1j * trigamma, 1e-12)
    single = grad(scipy.special.digamma, holomorphic=True)(np.complex64(z))
    np.testing.assert_allclose(single, trigamma, 1e-5)
    assert single.dtype == np.complex64


def test_zeta_functions():
    np.testing.assert_allclose(special.zeta(0.5), scipy.special.zeta(0.5))
    np.testing.assert_allclose(special.zeta(np.array([0.5, 3.0])), scipy.special.zeta(np.array([0.5, 3.0])))
    for q in (None, 2.0):
        with pytest.raises(NotDifferentiable, match="zeta has no derivative rule by x"):
            grad(lambda x, q=q: special.zeta(x, q))(3.0)


@pytest.mark.parametrize("name", ["spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"])
def test_spherical_bessel_functions(name):
    mine, theirs = getattr(special, name), getattr(scipy.special, name)
    for n in (0, 1, 2, 7, np.array([0, 1, 5])):
        for z in (np.array([0.3, 2.0, 40.0]), np.array([0.3 + 1j, 2 - 0.4j, 1j])):
            for derivative in (False, True):
                np.testing.assert_allclose(mine(n, z, derivative), theirs(n, z, derivative), 1e-11)
            found = jvp(lambda z, n=n: mine(n, z), (z,), (np.ones_like(z),))[1]
            np.testing.assert_allclose(found, theirs(n, z, True), 1e-11)
        agrees(lambda z, n=n: mine(n, z, derivative=True), np.array([1.5, 2.0, 4.0]))
    if name in ("spherical_jn", "spherical_in"):
        for n, slope in ((0, 0.0), (1, 1 / 3), (2, 0.0)):
            assert grad(lambda z, n=n: mine(n, z))(0.0) == pytest.approx(slope)
    if name == "spherical_yn":
        assert mine(2, 0.0, True) == np.inf


@pytest.mark.parametrize("name", ["ive", "jve", "yve", "kve"])
def test_bessel_functions_that_are_scaled(name):
    """... by a factor that is not holomorphic, but the last one's."""
    fun, points = getattr(scipy.special, name), np.array([[0.6, 0.8], [-1.3, 0.4], [0.7, -2.0], [-0.2, -0.5]])
    for v in (0.7, 2):
        made = lambda x, y, v=v: fun(v, x + 1j * y)
        agrees(made, *points.T)
        for x, y in points:
            for z in (x + 1j * y, np.array(x + 1j * y)):
                found = [jvp(lambda z, v=v: fun(v, z), (z,), (way,))[1] for way in (1.0, 1j)]
                h = 1e-6
                by_x = (made(x + h, y) - made(x - h, y)) / (2 * h)
                by_y = (made(x, y + h) - made(x, y - h)) / (2 * h)
                np.testing.assert_allclose(found, [by_x, by_y], 1e-6)
        agrees(lambda x, v=v: fun(v, x), np.array([0.6, 1.4]))
    agrees(lambda p: grad(lambda p: np.real(fun(0.7, p[0] + 1j * p[1])))(p), np.array([0.6, 0.8]))
    with pytest.raises(NotDifferentiable, match=rf"{name} has no derivative rule by v"):
        jvp(lambda v: fun(v, 0.4), (0.3,), (1.0,))


def test_inverse_distribution_functions_of_arrays():
    shape, x, p = np.array([1.5, 3.0]), np.array([0.7, 2.0]), np.array([[0.2], [0.9]])
    agrees(scipy.special.chdtri, shape, p)
    agrees(scipy.special.fdtri, shape, x, p)
    agrees(scipy.special.gdtrix, shape, x, p)
    agrees(scipy.special.gdtria, p, shape, x)
    agrees(scipy.special.gdtrib, shape, p, x)


def test_constants_among_shifted_polynomials():
    for fun in (
        scipy.special.eval_chebyc,
        scipy.special.eval_chebys,
        scipy.special.eval_sh_legendre,
        scipy.special.eval_sh_chebyt,
        scipy.special.eval_sh_chebyu,
        lambda n, x: scipy.special.eval_sh_jacobi(n, 2.5, 1.5, x),
    ):
        for n in (0, 1, 2, 5):
            agrees(lambda x, n=n, fun=fun: fun(n, x), np.array([0.2, 0.9]))
            agrees(lambda x, n=n, fun=fun: elementwise_grad(lambda x: fun(n, x))(x), np.array([0.2, 0.9]))
