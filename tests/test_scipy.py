"""``symgrad.scipy``: values are SciPy's, derivatives are those of finite differences; plain ``scipy.special`` works, too."""

from __future__ import annotations

import copy
import importlib
import itertools
import math
import re
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest

pytest.importorskip("scipy")

import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse.linalg
import scipy.special
import scipy.stats
import test_ops as generic
from agreement import agrees
from ops_samples import A, Case, Sample, cases, close, samples_of, some

import symgrad.scipy
from symgrad import elementwise_grad, grad, hessian, jacobian, jvp, value_and_grad, vmap
from symgrad.errors import LeavesNumPy, NotDifferentiable
from symgrad.loops.rolling import Roller
from symgrad.ops.core import REGISTRY, Op
from symgrad.pytree import flatten
from symgrad.scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, sparse, special, stats
from symgrad.testing import check_grads

UFUNCS = [op for key, op in REGISTRY.items() if isinstance(key, np.ufunc) and vars(scipy.special).get(key.__name__) is key]
OWN = [op for part in (special, linalg, signal, sparse) for op in vars(part).values() if isinstance(op, Op) and op.samples]
OPERATIONS = UFUNCS + OWN
name = lambda op: op.name
rng = np.random.default_rng(0)

# -- the operations, by the generic tests ----------------------------------------------------------------------------


@pytest.mark.whole
@pytest.mark.parametrize("op", OPERATIONS, ids=name)
def test_first_order(op):
    for case in cases(op) + (cases(op, np.complex128) if op.complex else []):
        with generic.noted(case):
            generic.check_first_order(case)


@pytest.mark.parametrize("op", OPERATIONS, ids=name)
def test_second_order(op):
    for case in cases(op) + (some(op, np.complex128) if op.complex else []):
        with generic.noted(case):
            generic.check_second_order(case)


@pytest.mark.parametrize("op", OPERATIONS, ids=name)
def test_compiled_equals_dynamic(op):
    for case in cases(op):
        with generic.noted(case):
            generic.check_compiled(case)


@pytest.mark.parametrize("op", [op for op in OPERATIONS if op.name != "logm"], ids=name)  # which warns in single precision
def test_single_precision(op):
    generic.test_single_precision(op, np.float32)


@pytest.mark.parametrize("op", OPERATIONS, ids=name)
def test_batched(op):
    generic.check_batched(op)
    generic.check_batched_under_reverse(op)


def test_plain_scipy_special_registers_itself():
    script = "import numpy as np, scipy.special, symgrad; print(symgrad.grad(lambda x: scipy.special.erf(x))(0.0))"
    run = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert math.isclose(float(run.stdout), 2 / math.sqrt(math.pi))


@pytest.mark.parametrize("fun", [scipy.special.zeta, scipy.special.lambertw])
def test_functions_that_are_no_ufuncs_are_named_where_they_have_a_rule(fun):
    args = (3.0,) if fun is scipy.special.zeta else ()
    with pytest.raises(NotDifferentiable, match=f"write symgrad.scipy.special.{fun.__name__}"):
        grad(lambda x: np.sum(np.real(fun(*args, x))))(np.array([2.5, 3.5]))


def test_an_argument_without_a_rule():
    with pytest.raises(NotDifferentiable, match=r"scipy\.special\.jv has no derivative rule by v"):
        grad(lambda v: scipy.special.jv(v, 1.0))(0.5)
    assert math.isclose(grad(lambda x: scipy.special.jv(0.0, x))(0.5), -scipy.special.j1(0.5))


# By the shape, computed with mpmath 1.3 and 40 digits; among them the far tails, where the functions are nearly constant.
BY_SHAPE = [
    ("gammaincc", (0.01, 0.5), 0.5655459117152578),
    ("gammainc", (0.3, 1e-06), -0.2409878693694988),
    ("gammaincc", (2.0, 40.0), 5.732487245607515e-16),
    ("gammainc", (5.0, 0.01), -5.215995234074975e-12),
    ("gammainc", (300.0, 260.0), -0.001320020353415833),
    ("gammaincc", (10000.0, 10300.0), 4.768499514046361e-5),
    ("betaincc", (0.01, 0.5, 0.3), 2.334275968937207),
    ("betainc", (2.0, 3.0, 1e-05), -6.557669175898806e-9),
    ("betaincc", (2.0, 3.0, 0.999), 4.327084533666821e-9),
    ("betaincc", (50.0, 700.0, 0.09), 0.003093799487994136),
    ("betaincc", (0.07, 0.04, 0.95), 2.982269887864679),
]


@pytest.mark.parametrize(("name", "args", "slope"), BY_SHAPE)
def test_far_tails_by_the_shape(name, args, slope):
    function = getattr(scipy.special, name)
    assert math.isclose(grad(lambda a: function(a, *args[1:]))(args[0]), slope, rel_tol=1e-9)


def test_points_where_formulas_are_0_by_0():
    for fun, x, expected in [
        (scipy.special.exprel, 0.0, 0.5),
        (scipy.special.ellipk, 0.0, math.pi / 8),
        (scipy.special.ellipe, 0.0, -math.pi / 8),
        (scipy.special.spence, 1.0, -1.0),
        (lambda x: scipy.special.boxcox(3.0, x), 0.0, math.log(3) ** 2 / 2),
        (lambda x: scipy.special.xlogy(0.0, x), 0.0, 0.0),
        (lambda x: scipy.special.xlogy(x, 0.0), 0.0, 0.0),
        (lambda x: scipy.special.rel_entr(0.0, x), 0.0, 0.0),
        (lambda x: scipy.special.sici(x)[0], 0.0, 1.0),
        (scipy.special.i1, 0.0, 0.5),
        (lambda p: scipy.special.boxcox(0.0, p), 2.0, 0.25),
        (lambda p: scipy.special.boxcox1p(-1.0, p), 0.5, 4.0),
        (scipy.special.j1, 0.0, 0.5),
    ]:
        np.testing.assert_allclose(grad(fun)(x), expected, rtol=1e-13)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_where_formulas_lose_their_digits_or_themselves():
    """At zeros times poles, at infinity, and where large terms cancel."""
    for fun, x, expected in [
        (scipy.special.log_ndtr, -1e5, 1.0000000000999999998e5),
        (scipy.special.log_ndtr, -1e30, 1e30),
        (scipy.special.log_ndtr, -math.inf, math.inf),
        (scipy.special.log_ndtr, math.inf, 0.0),
        (lambda x: scipy.special.ndtri_exp(scipy.special.log_ndtr(x)), -1e5, 1.0),
        (scipy.special.ndtri_exp, -math.inf, 0.0),
        (scipy.special.rgamma, 0.0, 1.0),
        (scipy.special.rgamma, -3.0, -6.0),
        (lambda x: scipy.special.gammainc(3.0, x), math.inf, 0.0),
        (lambda x: scipy.special.chdtrc(4.0, x), math.inf, 0.0),
        (lambda x: scipy.special.pseudo_huber(2.0, x), 1e200, 2.0),
        (lambda x: scipy.special.pseudo_huber(2.0, x), -math.inf, -2.0),
        (lambda x: scipy.special.struve(0, x), 0.0, 2 / math.pi),
        (lambda x: scipy.special.struve(1, x), 0.0, 0.0),
        (lambda x: scipy.special.modstruve(0, x), 0.0, 2 / math.pi),
        (scipy.special.ellipkm1, 1e-300, -5e299),
        (lambda x: scipy.special.eval_legendre(0, x), -1.0, 0.0),
        (lambda x: scipy.special.eval_jacobi(0, 0.5, 0.5, x), -1.0, 0.0),
    ]:
        np.testing.assert_allclose(grad(fun)(x), expected, rtol=1e-12)
        np.testing.assert_allclose(jvp(fun, (x,), (1.0,))[1], expected, rtol=1e-12)


# The first three derivatives at points where formulas are 0/0 or lose their digits, and near them, by mpmath 1.3, 60 digits.
HIGHER = {
    "scipy.special.rgamma(x)": [
        [0.5, 0.49, -2.0],
        [1.107791903872871, 1.113749406906283, 2.0],
        [-0.6090034884161107, -0.5824171899907614, -3.691137340393869],
        [-2.634620535021463, -2.682577030941162, -12.26041882647064],
    ],
    "scipy.special.ellipk(x)": [
        [0.0, 1e-09, -0.001, 0.09, 0.11],
        [0.3926990816987242, 0.3926990821405106, 0.392257754956743, 0.4365642294657045, 0.4475675483126193],
        [0.4417864669110647, 0.4417864678314531, 0.4408674858829618, 0.5376005716819356, 0.563019253753399],
        [0.9203884727313847, 0.9203884755500744, 0.9175754813023833, 1.228383134791948, 1.31477985544526],
    ],
    "scipy.special.ellipe(x)": [
        [0.0, 1e-09, -0.001, 0.09, 0.11],
        [-0.3926990816987242, -0.3926990818459863, -0.3925519115148756, -0.4067508611514653, -0.4101094272543705],
        [-0.1472621556370216, -0.1472621558210993, -0.1470782790662697, -0.1656298239679952, -0.1702641866284038],
        [-0.1840776945462769, -0.1840776949489469, -0.1836756579237189, -0.2261727765441668, -0.2373940630372164],
    ],
    "scipy.special.ellipkm1(x)": [
        [1.0, 0.999999999, 1.001, 0.9, 0.01],
        [-0.3926990816987242, -0.3926990821405106, -0.3922577549567431, -0.4420023502753652, -49.44632178764269],
        [0.4417864669110647, 0.4417864678314531, 0.4408674858829619, 0.550093966219585, 4988.010575013869],
        [-0.9203884727313847, -0.9203884755500744, -0.9175754813023836, -1.270610468535953, -998763.1263686242],
    ],
    "scipy.special.spence(x)": [
        [1.0, 1.000000001, 0.999, 1.09, 0.88],
        [-1.0, -0.9999999995, -1.000500333583534, -0.9575299582339148, -1.065278095915707],
        [0.5, 0.4999999993333333, 0.5006674174675009, 0.4455418397040482, 0.5923795037327408],
        [-0.6666666666666667, -0.6666666651666665, -0.668169070004291, -0.5489298460170722, -0.8880275548675427],
    ],
    "scipy.special.struve(0.0, x)": [
        [0.0, 1e-06, -0.1, 1.9, 2.1],
        [0.6366197723675813, 0.6366197723673691, 0.6344991207661558, 0.03695529574544998, -0.05642203919683827],
        [0.0, -4.24413181578331e-07, 0.04238475398067802, -0.4739107626037786, -0.4575023258196032],
        [-0.4244131815783876, -0.4244131815782178, -0.422716741101931, 0.04635937802880154, 0.1171279513639011],
    ],
    "scipy.special.struve(1.0, x)": [
        [0.0, 1e-06, -0.1, 1.9, 2.1],
        [0.0, 4.24413181578331e-07, -0.04238475398067802, 0.4739107626037786, 0.4575023258196032],
        [0.4244131815783876, 0.4244131815782178, 0.422716741101931, -0.04635937802880154, -0.1171279513639011],
        [0.0, -3.395305452626615e-07, 0.03390457171549146, -0.3618114333525657, -0.3439119564395905],
    ],
    "scipy.special.struve(2.0, x)": [
        [0.0, 1e-06, -0.1, 1.9, 2.1],
        [0.0, 1.273239544735486e-13, 0.001272229351487622, 0.3418806425922468, 0.3900404543201577],
        [0.0, 2.546479089469921e-07, -0.0254243894503049, 0.2497121041013527, 0.2303215870595777],
        [0.2546479089470325, 0.2546479089469113, 0.2534362427032956, -0.07321563655398769, -0.1201192354587127],
    ],
    "scipy.special.modstruve(0.0, x)": [
        [0.0, 1e-06, -0.1, 1.9, 2.1],
        [0.6366197723675813, 0.6366197723677935, 0.6387432533903457, 1.60719856124445, 1.884790289911277],
        [0.0, 4.244131815784441e-07, -0.0424979308393644, 1.259379457600688, 1.524160264907151],
        [0.4244131815783876, 0.4244131815785573, 0.4261120472731413, 1.213225658041005, 1.442031550963132],
    ],
    "scipy.special.modstruve(1.0, x)": [
        [0.0, 1e-06, -0.1, 1.9, 2.1],
        [0.0, 4.244131815784441e-07, -0.0424979308393644, 1.259379457600688, 1.524160264907151],
        [0.4244131815783876, 0.4244131815785573, 0.4261120472731413, 1.213225658041005, 1.442031550963132],
        [0.0, 3.395305452627585e-07, -0.03400158045204163, 1.035547956740628, 1.25915356344675],
    ],
    "scipy.special.modstruve(2.0, x)": [
        [0.0, 1e-06, -0.1, 1.9, 2.1],
        [0.0, 1.273239544735688e-13, 0.001274250366742983, 0.6070461640483653, 0.7870662212257933],
        [0.0, 2.546479089470729e-07, -0.02550523006471885, 0.8117164558805683, 0.9941468619863488],
        [0.2546479089470325, 0.2546479089471538, 0.2558614614716752, 0.830011495766848, 0.9999996851864207],
    ],
    "scipy.special.shichi(x)[0]": [
        [0.0, 1e-06, -0.1, 0.9, 1.1],
        [1.0, 1.000000000000167, 1.00166750019844, 1.14057413967575, 1.214224972840161],
        [0.0, 3.333333333333667e-07, -0.03336667857363341, 0.3250136064144712, 0.4129941645291779],
        [0.3333333333333333, 0.3333333333334333, 0.3343339287257721, 0.4183216809769254, 0.4633264918780192],
    ],
    "scipy.special.eval_chebyt(1.0, x)": [[-1.0, 0.5], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]],
    "scipy.special.eval_chebyu(1.0, x)": [[-1.0, 0.5], [2.0, 2.0], [0.0, 0.0], [0.0, 0.0]],
    "scipy.special.eval_gegenbauer(1.0, 3.0, x)": [[-1.0, 0.5], [6.0, 6.0], [0.0, 0.0], [0.0, 0.0]],
    "special.poch(x, 3.0)": [
        [0.0, -1.000001, -2.0, -5.0, -4.3],
        [2.0, -0.999999999997, 2.0, 47.0, 31.67],
        [6.0, -5.9999999995064e-06, -6.0, -24.0, -19.8],
        [6.0, 6.0, 6.0, 6.0, 6.0],
    ],
    "special.poch(x, 2.5)": [
        [0.0, -1.0, -2.0, -2.2, -3.2, 0.3],
        [1.329340388179137, -0.886226925452758, 3.544907701811032, 11.97370049320583, 47.81481135506759, 2.433879648404041],
        [3.404101235338736, 0.6846889279500362, -20.4632942208553, -84.02573622279749, -281.7144774131835, 3.94818635055505],
        [1.933300657171415, 4.149957509996456, 110.2880688528462, 796.5980197984188, 2794.353485405403, 1.706511204804924],
    ],
    "scipy.special.binom(x, 3.0)": [
        [0.0, 1.0, 2.000001, -1.5],
        [0.3333333333333333, -0.1666666666666667, 0.3333343333338335, 2.958333333333333],
        [-1.0, 0.0, 1.000001, -2.5],
        [1.0, 1.0, 1.0, 1.0],
    ],
    "scipy.special.binom(x, 2.5)": [
        [0.5, 1.2, 0.0],
        [-0.2666666666666667, 0.1202217533944356, -0.1630220651405888],
        [0.2060236592639417, 0.8359818903464163, -0.7760343251841035],
        [1.248726826296418, 0.6802996279938901, 3.239313233074883],
    ],
    "scipy.special.binom(1.0, x)": [
        [2.0, 3.0, 1.0, 3.2, 1.000001],
        [-0.5, 0.1666666666666667, -1.0, 0.09453187980024648, -1.000001289866199],
        [1.5, -0.2777777777777778, -1.289868133696453, -0.4148691665551681, -1.28986426409005],
        [-0.3151977994553207, -1.117156289070449, 3.869604401089359, -0.260083589324832, 3.869608404479952],
    ],
    "scipy.special.beta(x, 1.0)": [
        [-1.0, -2.0, -1.5],
        [-1.0, -0.25, -0.4444444444444444],
        [-2.0, -0.25, -0.5925925925925926],
        [-6.0, -0.375, -1.185185185185185],
    ],
    "scipy.special.beta(x, -1.5)": [
        [-1.5, 1.5, -0.1, 0.2],
        [-33.51032163829113, 2.094395102393195, -103.9963771566088, -26.6368977098343],
        [37.05980378913514, 2.570684168763176, -1989.364091850474, 255.9034620323497],
        [-671.4430338666035, -2.095425053293784, -60026.08331175548, -3759.257391902241],
    ],
    "scipy.special.betaln(x, 1.0)": [
        [-1.0, -2.0, -1.5],
        [1.0, 0.5, 0.6666666666666667],
        [1.0, 0.25, 0.4444444444444444],
        [2.0, 0.25, 0.5925925925925926],
    ],
    "scipy.special.pseudo_huber(x, 1.3)": [
        [0.0, 0.001, 0.7, 300.0],
        [1.3, 1.298001153845869, 0.4083521821478523, 2.644487379382412e-08],
        [-2.0, -1.997692308830222, -0.6842642525863049, -2.644454274862106e-10],
        [2.307692307692308, 2.307688893949825, 1.221106182052659, 3.525883859725989e-12],
    ],
    "scipy.special.voigt_profile(1.3, x, 0.4)": [
        [0.0, 0.001, 0.13, 0.4, 1.0],
        [0.0, 0.0001974732256582734, 0.02758025850818226, 0.1387521987261804, 0.03604863643911084],
        [0.1974724076252036, 0.1974748617301911, 0.2433012600369867, 0.462037778547837, -0.2583220939041468],
        [0.0, 0.00490823886490812, 0.7750854762925475, -2.271464384941662, 0.6502328535961068],
    ],
    "scipy.special.voigt_profile(x, 0.1, 0.4)": [
        [0.2, 1.3, 30.0],
        [-1.0699837008491, -0.09939525563997723, -9.428679794963155e-06],
        [-2.127486619283315, 0.2059487845351492, 9.426863893358375e-07],
        [35.26887312729156, -0.54950283157569, -1.256612569974959e-07],
    ],
    "scipy.special.voigt_profile(1.3, 0.1, x)": [
        [1e-09, 0.4, 30.0],
        [0.1917957694571837, 0.1433057049777003, -0.0003516799175864219],
        [-7.109111513433914e-10, -0.2059487845351493, 2.331257371370191e-05],
        [-0.7109111513433913, -0.1973714833602976, -2.313613746771502e-06],
    ],
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("text", HIGHER)
def test_derivatives_of_higher_orders(text):
    points, *orders = HIGHER[text]
    x, derivative, dynamic, forward = np.array(points), *[eval(f"lambda x: {text}", globals())] * 3
    for expected in orders:
        derivative, dynamic = elementwise_grad(derivative), elementwise_grad(dynamic, mode="dynamic")
        forward = lambda x, f=forward: jvp(f, (x,), (np.ones_like(x),))[1]
        for found in (derivative(x), dynamic(x), forward(x)):
            np.testing.assert_allclose(found, expected, 1e-9, 1e-14)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", [float, np.float64, np.array])
def test_third_derivatives_of_beta_functions_at_the_ends(kind):
    for a, b, x, expected in [(1.3, 2.1, 0.0, -np.inf), (2.0, 1.0, 0.0, 0.0), (1.0, 3.0, 1.0, 6.0), (3.0, 2.0, 0.0, 24.0)]:
        for sign, name in ((1, "betainc"), (-1, "betaincc")):
            third = grad(grad(grad(lambda x, a=a, b=b, name=name: getattr(scipy.special, name)(a, b, x))))
            np.testing.assert_allclose(third(kind(x)), sign * expected, 1e-12)
    for n, expected in [(2.0, 6.0), (4.0, -96.0)]:  # of x / (1 + x), (2 * x / (1 + 2 * x)) ** 2
        third = grad(grad(grad(lambda x, n=n: scipy.special.fdtr(n, 2.0, x))))
        np.testing.assert_allclose(third(kind(0.0)), expected, 1e-12)


# -- Python functions: values and derivatives ----------------------------------------------------------------------

CROSS = np.array([[False, True, False], [True, True, True], [False, False, True]])
SECTIONS = scipy.signal.butter(3, 0.4, output="sos")
MATRIX, SPD = A(3, 3, kind="well"), A(3, 3, kind="spd")
FUNCTIONS = {
    "special.logsumexp": [
        Sample(A(3, 4)),
        Sample(A(3, 4), axis=1),
        Sample(A(3, 4), axis=0, keepdims=True),
        Sample(A(3, 4), axis=1, b=A(3, 4, lo=0.2)),
        Sample(A(3, 4), b=A(4, lo=-2, hi=-1), return_sign=True),
        Sample(A(4, lo=800, hi=900)),
    ],
    "special.softmax": [Sample(A(3, 4)), Sample(A(3, 4), axis=1), Sample(A(4, lo=800, hi=900), axis=0)],
    "special.log_softmax": [Sample(A(3, 4)), Sample(A(3, 4), axis=-1), Sample(A(4, lo=-900, hi=-800))],
    "special.multigammaln": [Sample(A(3, lo=3, hi=5), 3), Sample(A(lo=2, hi=5), 1)],
    "special.factorial": [Sample(A(3, lo=0.5))],
    "special.comb": [Sample(A(3, lo=4, hi=5), A(3, lo=1, hi=3))],
    "special.polygamma": [Sample(1, A(3, lo=0.5))],
    "special.zeta": [Sample(2.5, A(3, lo=0.5))],
    "special.lambertw": [Sample(A(3, lo=0.5))],
    "linalg.solve_triangular": [
        Sample(MATRIX, A(3)),
        Sample(MATRIX, A(3, 2), trans="T", lower=True),
        Sample(MATRIX, A(3, 2), "C"),
    ],
    "linalg.solve_banded": [Sample((1, 0), A(2, 4, lo=1.0, hi=2.0), A(4)), Sample((0, 2), A(3, 5, lo=1.0), A(5, 2))],
    "linalg.solveh_banded": [Sample(A(1, 3, lo=1.0), A(3)), Sample(A(1, 3, lo=1.0), A(3, 2), lower=True)],
    "linalg.solve_discrete_lyapunov": [Sample(A(2, 2, lo=-0.4, hi=0.4), A(2, 2))],
    "linalg.cholesky": [Sample(SPD), Sample(SPD, lower=True)],
    "linalg.solve": [
        Sample(MATRIX, A(3)),
        Sample(MATRIX, A(3, 2)),
        Sample(MATRIX, A(3), transposed=True),
        *(Sample(SPD, A(3), assume_a=kind, lower=lower) for kind in ("sym", "her", "pos") for lower in (True, False)),
        *(Sample(MATRIX, A(3), assume_a=f"{half} triangular") for half in ("lower", "upper")),
    ],
    "linalg.eigh": [
        Sample(SPD, eigvals_only=True),
        *(Sample(SPD, A(3, 3, kind="spd"), lower=lower) for lower in (True, False)),
        Sample(SPD, A(3, 3, kind="spd"), eigvals_only=True),
    ],
    "linalg.eigvalsh_tridiagonal": [Sample(A(4), A(3)), Sample(A(1), A(0))],
    "linalg.eigh_tridiagonal": [Sample(A(4), A(3), eigvals_only=True)],
    "linalg.polar": [Sample(A(3, 3)), Sample(A(4, 2)), Sample(A(3, 3), side="left"), Sample(A(2, 4), "left"), Sample(A(1, 1))],
    "linalg.pinvh": [Sample(SPD), Sample(SPD, lower=False), Sample(A(2, 2, kind="spd"), rtol=1e-10)],
    "linalg.lstsq": [Sample(A(5, 3), A(5)), Sample(A(5, 3), A(5, 2)), Sample(A(3, 3), A(3)), Sample(A(2, 4), A(2), cond=1e-9)],
    "linalg.svd": [Sample(A(3, 2), compute_uv=False)],
    "linalg.expm": [Sample(A(3, 3)), Sample(A(2, 2, 2))],
    "linalg.sqrtm": [Sample(SPD)],
    "linalg.logm": [Sample(SPD)],
    "linalg.solve_sylvester": [Sample(SPD, SPD, A(3, 3))],
    "linalg.solve_continuous_lyapunov": [Sample(SPD, A(3, 3))],
    "linalg.qr": [Sample(A(3, 3)), Sample(A(4, 3), mode="economic"), Sample(A(4, 3), mode="r")],
    "linalg.eigvalsh": [Sample(SPD)],
    "linalg.lu": [Sample(A(3, 3)), Sample(A(3, 3), permute_l=True), Sample(A(1, 1))],
    "linalg.expm_frechet": [Sample(A(3, 3), A(3, 3)), Sample(A(2, 2), A(2, 2), compute_expm=False)],
    "linalg.cosm": [Sample(A(3, 3))],
    "linalg.sinm": [Sample(A(3, 3))],
    "linalg.tanm": [Sample(A(2, 2, lo=-0.5, hi=0.5))],
    "linalg.coshm": [Sample(A(3, 3))],
    "linalg.sinhm": [Sample(A(3, 3))],
    "linalg.tanhm": [Sample(A(2, 2))],
    "linalg.companion": [Sample(A(4, lo=1, hi=2)), Sample(A(2, lo=1, hi=2))],
    "linalg.solve_toeplitz": [Sample(A(3, lo=1, hi=2), A(3)), Sample((A(3, lo=1, hi=2), A(3)), A(3, 2))],
    "linalg.matmul_toeplitz": [Sample(A(3), A(3)), Sample((A(2), A(3)), A(3, 2))],
    "linalg.orthogonal_procrustes": [Sample(A(4, 2), A(4, 2))],
    "linalg.block_diag": [Sample(A(2, 2), A(1, 3), A(2)), Sample(A(2, 1))],
    "linalg.toeplitz": [Sample(A(3)), Sample(A(3), A(4)), Sample(A(1), A(2))],
    "linalg.hankel": [Sample(A(3)), Sample(A(3), A(4))],
    "linalg.circulant": [Sample(A(4))],
    "signal.convolve": [Sample(A(5), A(3)), Sample(A(3, 4), A(2, 2), "same"), Sample(A(3), A(5), "valid", "fft")],
    "signal.fftconvolve": [Sample(A(5), A(3)), Sample(A(3, 4), A(2, 2), "same")],
    "signal.oaconvolve": [Sample(A(5), A(3)), Sample(A(3, 4), A(2, 2), "same")],
    "signal.convolve2d": [Sample(A(3, 4), A(2, 2)), Sample(A(3, 4), A(2, 3), "same"), Sample(A(2, 2), A(3, 4), "valid")],
    "signal.correlate2d": [Sample(A(3, 4), A(2, 2)), Sample(A(3, 4), A(2, 3), "same"), Sample(A(2, 2), A(3, 4), "valid")],
    "signal.correlate": [
        *(Sample(A(5), A(3), mode) for mode in ("full", "same", "valid")),
        *(Sample(A(3), A(5), mode) for mode in ("full", "same", "valid")),
        Sample(A(3, 4), A(2, 2)),
    ],
    "signal.lfilter": [
        Sample(A(3), [1.0, 0.3, -0.2], A(6)),
        Sample([1.0, 0.5], A(3, lo=0.5, hi=0.9), A(2, 5)),
        Sample(A(2), A(2, lo=1, hi=1.5), A(5, 2), axis=0),
    ],
    "signal.lfilter_zi": [Sample(A(3), A(3, lo=1, hi=2)), Sample(A(2), A(4, lo=1, hi=2)), Sample(A(1), A(2, lo=1))],
    "signal.filtfilt": [
        Sample(A(2), [1.0, 0.3], A(9)),
        Sample(A(2), A(2, lo=1, hi=1.5), A(12), padtype="even"),
        Sample([1.0, 0.5], [1.0, 0.2, 0.1], A(3, 12, 2), axis=1, padtype="constant", padlen=4),
        Sample([1.0, 0.5], [1.0, 0.2], A(4), padtype=None),
    ],
    "signal.sosfilt": [Sample(SECTIONS, A(7)), Sample(SECTIONS, A(5, 2), axis=0)],
    "signal.sosfilt_zi": [Sample(SECTIONS), Sample(A(2, 6, lo=1, hi=1.4))],
    "signal.sosfiltfilt": [Sample(SECTIONS, A(16)), Sample(SECTIONS, A(2, 9), padlen=5, padtype="even")],
    "signal.savgol_filter": [
        Sample(A(7), 5, 2),
        Sample(A(2, 9, 2), 3, 1, axis=1),
        Sample(A(7), 5, 3, 1, 0.5),
        Sample(A(5), 5, 2),
        Sample(A(4), 1, 0),
        *(Sample(A(6), 5, 2, mode=mode, cval=2.0) for mode in ("mirror", "nearest", "wrap", "constant")),
    ],
    "signal.hilbert": [*(Sample(A(n)) for n in (1, 2, 3, 6)), Sample(A(2, 5), 7), Sample(A(5, 2), N=4, axis=0)],
    "signal.resample": [
        *(Sample(A(n), num) for n, num in itertools.product((5, 6), (3, 4, 5, 6, 7, 9))),
        Sample(A(2, 6, 2), 4, axis=1, window="hann"),
        Sample(A(5), 8, window=np.arange(1.0, 6.0)),
        Sample(A(6), 5, window=np.abs),
        *(Sample(A(n), num, domain="freq") for n, num in itertools.product((5, 6), (3, 4, 6, 7, 8))),
        Sample(A(6), 4, np.arange(6) * 0.5),
    ],
    "signal.periodogram": [
        *(Sample(A(n), 2.0, nfft=nfft) for n in (6, 7) for nfft in (None, 4, 9)),
        Sample(A(2, 6), window="hann", detrend="linear", scaling="spectrum", return_onesided=False),
        Sample(A(6, 2), axis=0, detrend=False, window=np.arange(1.0, 7.0)),
    ],
    "signal.welch": [
        Sample(A(12), 3.0, nperseg=5),
        Sample(A(12), nperseg=4, noverlap=1, nfft=6, scaling="spectrum"),
        Sample(A(2, 11, 2), nperseg=4, axis=1, average="median", window="hamming"),
        Sample(A(11, 2), nperseg=4, axis=-2, detrend="linear", return_onesided=False),
        Sample(A(9), window=A(4, lo=0.5)),
    ],
    "signal.csd": [
        Sample(A(12), A(12), 3.0, nperseg=5),
        Sample(A(12), A(9), nperseg=4, noverlap=1, average="median"),
        Sample(A(2, 10), A(2, 10), nperseg=5, nfft=8, return_onesided=False, scaling="spectrum"),
    ],
    "signal.stft": [
        Sample(A(11), 2.0, nperseg=4),
        *(Sample(A(11), nperseg=5, boundary=edge, noverlap=1) for edge in ("even", "odd", "constant", None)),
        Sample(A(2, 10), nperseg=4, padded=False, nfft=6, detrend="linear", scaling="psd"),
        Sample(A(10, 2), nperseg=4, axis=0, return_onesided=False, window=A(4, lo=0.5)),
    ],
    "signal.istft": [
        Sample(A(3, 5), 2.0),
        Sample(A(3, 5), nperseg=5, noverlap=3, scaling="psd"),
        Sample(A(2, 4, 5), nperseg=4, input_onesided=False, noverlap=1, window=A(4, lo=0.5)),
        Sample(A(5, 2, 4), time_axis=0, freq_axis=2, nperseg=5, nfft=6),
    ],
    "signal.spectrogram": [
        Sample(A(13), 2.0, nperseg=5),
        Sample(A(2, 12, 2), nperseg=4, nfft=6, axis=1, scaling="spectrum", noverlap=3),
        Sample(A(12, 2), window=A(4, lo=0.5), axis=-2, return_onesided=False),
        *(Sample(A(12), nperseg=4, mode=mode) for mode in ("complex", "magnitude", "angle", "phase")),
    ],
    "signal.coherence": [Sample(A(12), A(12), nperseg=4), Sample(A(2, 13), A(2, 13), 2.0, "hamming", 5, 1)],
    "signal.detrend": [Sample(A(6)), Sample(A(2, 5)), Sample(A(5, 2), axis=0, type="constant")],
    **{
        f"ndimage.{name}": [
            Sample(A(5), A(3)),
            Sample(A(4, 5), A(2, 3), mode="mirror"),
            Sample(A(4, 5), A(3, 2), mode="constant", cval=0.5),
            Sample(A(3, 3), A(1, 4), mode="wrap"),
            Sample(A(3, 3), A(5, 2), mode="nearest"),
        ]
        for name in ("convolve", "correlate")
    },
    **{
        f"ndimage.{name}": [Sample(A(5), A(3)), Sample(A(4, 5), A(4), 0, mode="mirror"), Sample(A(2, 3), A(5), mode="constant")]
        for name in ("convolve1d", "correlate1d")
    },
    "ndimage.gaussian_filter1d": [
        Sample(A(9), 1.0),
        Sample(A(3, 6), 0.7, axis=0, order=1),
        Sample(A(6), 1.0, order=2, radius=3),
    ],
    "ndimage.gaussian_filter": [
        Sample(A(4, 5), 0.8),
        Sample(A(4, 5), (0.5, 1.0), order=(0, 1), mode=("reflect", "wrap"), truncate=3.0),
        Sample(A(3, 4, 2), 0.6, axes=(0, 1), mode="nearest"),
    ],
    "ndimage.uniform_filter1d": [Sample(A(6), 3), Sample(A(4, 5), 2, axis=0, mode="wrap")],
    "ndimage.uniform_filter": [Sample(A(4, 5)), Sample(A(4, 5), (2, 3), mode="nearest"), Sample(A(4, 5), 4, axes=1)],
    "ndimage.gaussian_laplace": [Sample(A(4, 5), 0.8), Sample(A(5, 3), (0.5, 1.0), mode=("wrap", "grid-mirror"), axes=(0, 1))],
    "ndimage.gaussian_gradient_magnitude": [Sample(A(4, 5), 0.8), Sample(A(6), 0.5, mode="grid-constant", cval=1.0)],
    "ndimage.sobel": [Sample(A(4, 5)), Sample(A(4, 5), 0, mode="constant", cval=1.0)],
    "ndimage.prewitt": [Sample(A(4, 5)), Sample(A(4, 5), 0, mode="wrap")],
    "ndimage.laplace": [Sample(A(4, 5)), Sample(A(6), mode="mirror")],
    **{
        f"ndimage.{name}": [
            Sample(A(6), 3),
            Sample(A(4, 5), 2, axis=0, mode="wrap"),
            Sample(A(5), 4, mode="constant", cval=0.3),
        ]
        for name in ("maximum_filter1d", "minimum_filter1d")
    },
    **{
        f"ndimage.{name}": [
            Sample(A(4, 5), 3),
            Sample(A(4, 5), (2, 4), mode="mirror"),
            Sample(A(4, 5), (1, 3), mode=("wrap", "nearest")),
            Sample(A(3, 4, 2), 2, axes=(0, -2)),
            Sample(A(4, 5), footprint=CROSS, mode="constant", cval=0.3),
            Sample(A(4, 5), footprint=CROSS[:2]),
        ]
        for name in (
            "maximum_filter",
            "minimum_filter",
            "grey_erosion",
            "grey_dilation",
            "grey_opening",
            "grey_closing",
            "morphological_gradient",
            "morphological_laplace",
            "white_tophat",
            "black_tophat",
        )
    },
    "ndimage.map_coordinates": [
        *(Sample(A(4, 5), A(2, 7, lo=-2.3, hi=6.1), order=1, mode=mode, cval=0.5) for mode in ndimage.BEYOND),
        Sample(A(4, 5), A(2, 3, 2, lo=0.2, hi=2.7), order=0),
    ],
    **{
        f"fft.{name}": [Sample(A(6), type, norm=norm) for type in (1, 2, 3, 4) for norm in (None, "ortho", "forward")]
        + [Sample(A(3, 5, 2), axis=1), Sample(A(1)), Sample(A(2, 1), 3, norm="ortho"), Sample(A(1), 4), Sample(A(2), 1)]
        + [
            Sample(A(2, 5), type, n, norm=norm)
            for type, n, norm in ((1, 4, "ortho"), (2, 3, None), (3, 7, None), (4, 6, "ortho"))
        ]
        for name in ("dct", "idct", "dst", "idst")
    },
    **{
        f"fft.{name}": [
            Sample(A(3, 4)),
            Sample(A(2, 3, 4), 3, axes=(0, -1), norm="ortho"),
            Sample(A(3, 4), axes=1),
            Sample(A(2, 3, 4), s=(2, -1)),
            Sample(A(3, 4), 4, 5, 0),
        ]
        for name in ("dctn", "idctn", "dstn", "idstn")
    },
    **{
        f"fft.{name}": [
            *(Sample(A(3, 4), None, 0, norm, True, -1) for norm in (None, "ortho", "forward")),
            Sample(A(5), 6, workers=2),
            Sample(A(2, 5), n=4, plan=None),
        ]
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    },
    **{
        f"fft.{name}": [
            *(Sample(A(2, 3, 4), norm=norm, overwrite_x=True, workers=2) for norm in (None, "ortho", "forward")),
            Sample(A(2, 3, 4), s=(2, 5)),
            Sample(A(2, 3, 4), (-1, 4), (0, -1)),
            Sample(A(3, 4), s=5, axes=1),
        ]
        for name in (
            *("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"),
            *("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2"),
        )
    },
    "integrate.fixed_quad": [Sample(np.exp, A(), A(), n=4)],
    "integrate.trapezoid": [Sample(A(5)), Sample(A(5), A(5))],
}


class Mirror:
    """A function of this package and SciPy's, as an operation that samples can be drawn for."""

    complex, family = False, "op"

    def __init__(self, name, samples):
        part, function = name.split(".")
        self.name, self.samples = name, samples
        self.ours = getattr(globals()[part], function)
        self.key = getattr(getattr(scipy, part), function)

    def __call__(self, *args, **kwargs):
        return self.ours(*args, **kwargs)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_a_weight_of_zero_counts(mode):
    """... in the derivative of ``logsumexp`` by it, though not in its value, however large that term would be."""
    a, b = np.array([0.3, 0.5, -0.2]), np.array([1.0, 0.0, 2.0])
    shares = np.exp(a) / np.sum(b * np.exp(a))
    np.testing.assert_allclose(grad(lambda b: special.logsumexp(a, b=b), mode=mode)(b), shares, 1e-14)
    np.testing.assert_allclose(jacobian(lambda b: special.logsumexp(a, axis=0, b=b), mode=mode)(b), shares, 1e-14)
    np.testing.assert_allclose(jvp(lambda b: special.logsumexp(a, b=b), (b,), (np.eye(3)[1],))[1], shares[1], 1e-14)
    found = hessian(lambda b: special.logsumexp(a, b=b), mode=mode)(b)
    np.testing.assert_allclose(found, -np.outer(shares, shares), 1e-14)
    for large in (900.0, np.inf, np.nan):
        value, slope = value_and_grad(lambda a: special.logsumexp(a, b=b), mode=mode)(np.array([0.3, large, -0.2]))
        assert value == pytest.approx(np.log(np.exp(0.3) + 2 * np.exp(-0.2)), rel=1e-14)
        np.testing.assert_allclose(slope, b * shares, 1e-14)


@pytest.mark.parametrize("mirror", [Mirror(*item) for item in FUNCTIONS.items()], ids=name)
def test_mirror(mirror):
    for sample in mirror.samples:
        case = Case(mirror, sample)
        with generic.noted(case):
            theirs = Case(mirror, sample)
            theirs.run = mirror.key
            close(case.outputs, theirs(*case.primals), 1e-9, "value")
            generic.check_first_order(case)
            generic.check_second_order(case)
            generic.check_compiled(case)


def test_what_solve_reads():
    """Of a matrix that is assumed to be symmetric or triangular, a half."""
    a, b = np.array([[3.0, 1.0], [-9.0, 2.0]]), np.array([1.0, 2.0])
    for kind in ("sym", "her", "pos", "upper triangular", "lower triangular", "diagonal", "tridiagonal", "gen"):
        for lower in (False, True):
            if kind == "pos" and lower:
                continue  # which this is not
            mine, theirs = (part.solve(a, b, assume_a=kind, lower=lower) for part in (linalg, scipy.linalg))
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, err_msg=f"{kind} {lower}")


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_options_that_change(mode):
    """From the second value on such a number is an input of the generated code; as an option it is looked at."""
    a, b = np.array([[3.0, 1.0], [-9.0, 2.0]]), np.array([1.0, 2.0])
    derivative = grad(lambda a, trans: linalg.solve_triangular(a, b, trans=trans, lower=True).sum(), mode=mode)
    for trans in (0, 1, 1, 0, 2, 1, 2, 0):
        expected = grad(lambda a, t=trans: np.linalg.solve(np.tril(a).T if t else np.tril(a), b).sum())(a)
        np.testing.assert_allclose(derivative(a, trans), expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:floating point number truncated:RuntimeWarning")
@pytest.mark.parametrize("name", ["kn", "yn", "expn"])
def test_orders_are_cut_off(name):
    function, x = getattr(scipy.special, name), np.array([0.5, 1.5])
    for n in (0.7, 1.3, 2.9):
        expected = elementwise_grad(lambda x, n=n: function(int(n), x))(x)
        np.testing.assert_allclose(elementwise_grad(lambda x, n=n: function(n, x))(x), expected, rtol=1e-13)


def test_the_median_of_laplace():
    for q, slope in ((0.25, 4.0), (0.5, 2.0), (0.75, 4.0)):
        assert math.isclose(grad(stats.laplace.ppf)(q), slope)
        assert math.isclose(stats.laplace.ppf(q), scipy.stats.laplace.ppf(q), abs_tol=1e-15)


def test_refused_rather_than_otherwise():
    x = np.ones((2, 3))
    for fun in (linalg.toeplitz, linalg.hankel, linalg.circulant, lambda x: signal.fftconvolve(x, x, axes=0)):
        with pytest.raises(NotDifferentiable, match=r"symgrad\.vmap"):
            grad(lambda x, fun=fun: np.sum(fun(x)))(x)
    square, one = np.ones((2, 3, 3)), np.eye(3)
    for fun in (
        lambda x: linalg.solve_discrete_lyapunov(x, one),
        lambda x: linalg.solve_discrete_lyapunov(one, x),
        lambda x: linalg.solve_continuous_are(x, one, one, one),
        lambda x: linalg.solve_discrete_are(one, one, x, one),
        lambda x: linalg.eigvalsh_tridiagonal(x[0], x[0, :, 1:]),
        lambda x: linalg.eigvalsh_tridiagonal(x[0, 0], x[0, :2, 1:]),
        lambda x: linalg.block_diag(x, one),
        lambda x: linalg.lstsq(x, one)[0],
        linalg.lu_factor,
    ):
        with pytest.raises(NotDifferentiable, match=r"symgrad\.vmap"):
            grad(lambda x, fun=fun: np.sum(fun(x)))(square)


@pytest.mark.parametrize("right", [(3,), (3, 2), (2, 3, 1), (3, 3, 1)])
def test_stacks_of_right_hand_sides(right):
    """Each is solved on its own, also where there are as many as rows."""
    b, matrices = rng.normal(size=right), rng.normal(size=(right[0], 3, 3)) + 4 * np.eye(3)[[1, 2, 0]]
    alone = "(n,n),(n)->(n)" if len(right) == 1 else "(n,n),(n,k)->(n,k)"
    for trans in (0, 1):
        ours = lambda a, b, trans=trans: linalg.lu_solve(linalg.lu_factor(a), b, trans)
        theirs = lambda a, b, trans=trans: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b, trans)
        np.testing.assert_allclose(ours(matrices[0], b), np.vectorize(theirs, signature=alone)(matrices[0], b))
        agrees(ours, matrices[0], b)
    a = matrices @ np.swapaxes(matrices, 1, 2)
    for lower in (False, True):
        ours = lambda a, b, lower=lower: linalg.cho_solve(linalg.cho_factor(a, lower), b)
        theirs = lambda a, b, lower=lower: scipy.linalg.cho_solve(scipy.linalg.cho_factor(a, lower), b)
        np.testing.assert_allclose(ours(a, b), np.vectorize(theirs, signature=alone)(a, b))
        agrees(lambda root, b: ours(root @ np.swapaxes(root, 1, 2), b), matrices, b)  # noqa: B023


@pytest.mark.parametrize(
    "a", [np.eye(3), 2.0 * np.eye(4)[:, :2], 1j * np.eye(2), np.outer([1.0, 2.0], [2.0, 1.0]), np.zeros((2, 2))]
)
def test_polar_decompositions_where_singular_values_repeat_or_vanish(a):
    """The positive factor is smooth where they repeat, and where they vanish the gradient is the smallest of many."""
    weights, way = rng.normal(size=(2, *a.shape)) if a.dtype == float else rng.normal(size=(2, *a.shape)) @ [[1, 1j], [1, -1j]]
    weights = weights[: a.shape[1]]
    for side, turned in (("right", lambda a: a), ("left", lambda a: np.conj(a.T))):
        fun = lambda t, side=side, turned=turned: np.sum(np.real(linalg.polar(turned(a + t * way), side)[1] * weights))
        np.testing.assert_allclose(grad(fun)(0.0), numeric(fun, 0.0), rtol=1e-5, atol=1e-6)
        if np.linalg.matrix_rank(a) == a.shape[1]:
            np.testing.assert_allclose(grad(grad(fun))(0.0), numeric(grad(fun), 0.0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4)])
@pytest.mark.parametrize("values", [(1.0, 1.0, 1.0), (2.0, 2.0, 0.5)])
def test_nearest_unitary_matrices_where_singular_values_repeat(values, shape, kind):
    rng = np.random.default_rng(7)
    turns = [np.linalg.qr(rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if kind is complex else 0))[0] for n in shape]
    core = np.zeros(shape)
    core[range(3), range(3)] = values
    a, way, weights = turns[0] @ core @ turns[1], *rng.normal(size=(2, *shape)) * (1 if kind is float else 1 + 0.3j)
    fun = lambda t: np.sum(np.real(linalg.polar(a + t * way)[0] * weights))
    slope = lambda t: jvp(fun, (t,), (1.0,))[1]
    np.testing.assert_allclose(linalg.polar(a)[0], scipy.linalg.polar(a)[0], atol=1e-13)
    for mode in ("auto", "dynamic"):
        np.testing.assert_allclose(grad(fun, mode=mode)(0.0), numeric(fun, 0.0), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(grad(grad(fun, mode=mode), mode=mode)(0.0), numeric(slope, 0.0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(slope(0.0), numeric(fun, 0.0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [float, complex])
def test_rotations_between_equal_points(kind):
    """... of which all singular values are one."""
    rng = np.random.default_rng(8)
    points = np.linalg.qr(rng.normal(size=(5, 3)) + (1j * rng.normal(size=(5, 3)) if kind is complex else 0))[0]
    weights, way = rng.normal(size=(3, 3)), rng.normal(size=(5, 3))
    for place, expected in zip(linalg.orthogonal_procrustes(points, points), (np.eye(3), 3.0), strict=True):
        np.testing.assert_allclose(place, expected, atol=1e-13)
    turned = lambda t: np.sum(np.real(linalg.orthogonal_procrustes(points, points + t * way)[0]) * weights)
    scale = lambda t: linalg.orthogonal_procrustes(points, points + t * way)[1]
    for fun in (turned, scale):
        np.testing.assert_allclose(grad(fun)(0.0), numeric(fun, 0.0), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(grad(grad(fun))(0.0), numeric(grad(fun), 0.0), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(jvp(fun, (0.0,), (1.0,))[1], numeric(fun, 0.0), rtol=1e-5, atol=1e-6)


def test_triangles_of_stacks():
    a = rng.normal(size=(2, 3, 4))
    for given in (a[0], a):
        found = linalg.qr(given, mode="r")
        expected = np.linalg.qr(given, "r") if given is a else scipy.linalg.qr(given, mode="r")[0]
        np.testing.assert_allclose(found if given is a else found[0], expected)


@pytest.mark.parametrize("op", [op for op in UFUNCS if op.key.nin > 1 and op.key.nout == 1 and op.name != "zeta"], ids=name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_small_integers_beside(op):
    """They do not overflow, and nothing is computed of them in half precision."""
    x = np.array([0.45, 0.73, 0.61])
    for n in (np.array([2, 3, 1], np.int8), np.array([100, 3, 127], np.int8), np.array([200, 3, 250], np.uint8)):
        for place in range(op.key.nin):
            found = []
            for beside in (n, n.astype(np.int64)):
                args = [x if i == place else beside for i in range(op.key.nin)]
                call = lambda x, args=args, place=place: op.key(*args[:place], x, *args[place + 1 :])
                try:
                    found.append(jvp(call, (x,), (np.ones(3),))[1])
                except (TypeError, NotDifferentiable):  # it takes none there
                    break
            if len(found) == 2:
                np.testing.assert_allclose(*found, rtol=1e-9)


def test_numbers_that_a_ufunc_does_not_take_as_the_array_is():
    """SciPy has its loops of double precision first: beside a Python number they are those of single precision, too."""
    x = np.array([0.5, 2.0], np.float32)

    def fun(x):
        return np.sum(x), scipy.special.xlogy(x, 0.3), scipy.special.xlogy(x, np.float32(0.3)), np.ldexp(np.int64(2), n)

    n = np.arange(3)
    derivative = grad(lambda x: (fun(x)[0], fun(x)[1:]), has_aux=True)
    for _ in range(3):
        assert [y.dtype for y in derivative(x)[1]] == [y.dtype for y in fun(x)[1:]]


def test_cho_solve():
    a = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    for lower in (True, False):
        fun = lambda a, b, lower=lower: linalg.cho_solve(linalg.cho_factor(a, lower), b)
        b = np.array([1.0, 2.0, 3.0])
        np.testing.assert_allclose(fun(a, b), np.linalg.solve(a, b))
        np.testing.assert_allclose(jacobian(fun, 1)(a, b), np.linalg.inv(a), rtol=1e-12, atol=1e-12)
        agrees(lambda x, b, fun=fun: fun(x @ x.T + np.eye(3), b), a, b)


# -- distributions -------------------------------------------------------------------------------------------------

POINTS = np.array([0.3, 0.6, 0.85])
CONTINUOUS = {
    "norm": (), "uniform": (), "expon": (), "laplace": (), "logistic": (), "cauchy": (), "gumbel_r": (), "halfnorm": (),
    "rayleigh": (), "t": (3.5,), "gamma": (1.7,), "invgamma": (2.3,), "chi2": (3.4,), "beta": (1.6, 2.4), "lognorm": (0.7,),
    "weibull_min": (1.8,), "pareto": (2.2,), "gumbel_l": (), "halfcauchy": (), "maxwell": (), "chi": (3.4,), "f": (3.2, 4.6),
    "weibull_max": (1.8,), "powerlaw": (1.6,), "fisk": (2.2,), "lomax": (1.7,), "gompertz": (0.8,), "invgauss": (0.9,),
    "loggamma": (1.6,), "nakagami": (1.4,), "burr12": (1.8, 2.3), "invweibull": (1.7,), "levy": (),
    "moyal": (), "johnsonsu": (0.3, 1.4), "betaprime": (1.6, 2.4),
    "gennorm": (1.7,), "wrapcauchy": (0.4,), "truncnorm": (-0.7, 1.3),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.parametrize("kind", CONTINUOUS)
def test_continuous(kind):
    ours, theirs, shapes = getattr(stats, kind), getattr(scipy.stats, kind), CONTINUOUS[kind]
    for method in ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf"):
        if method in ("ppf", "isf") and kind == "invgauss":
            continue  # not here
        x = POINTS if method in ("ppf", "isf") else POINTS + {"pareto": 0.9, "weibull_max": -0.9}.get(kind, 0.0)
        mine, reference = getattr(ours, method), getattr(theirs, method)
        scale = 1.0 if method in ("ppf", "isf") else 0.9
        loc = -0.2 if kind in ("pareto", "uniform") else 0.05
        if kind == "weibull_max":
            loc = 0.2
        for rest in ((), (loc,), (loc, scale)):
            np.testing.assert_allclose(mine(x, *shapes, *rest), reference(x, *shapes, *rest), rtol=1e-10)
        agrees(lambda x, loc, scale, mine=mine: mine(x, *shapes, loc, scale), x, loc, 1.1)
        agrees(lambda x, *shapes, mine=mine: mine(x, *shapes), x, *shapes)
    outside = np.array([-3.0, 5.0]) if kind in ("uniform", "powerlaw") else np.array([-3.0, 7.0])
    for method in ("logpdf", "pdf", "cdf", "sf"):
        with np.errstate(all="ignore"):
            expected = getattr(theirs, method)(outside, *shapes)
            np.testing.assert_allclose(getattr(ours, method)(outside, *shapes), expected, rtol=1e-10)
            assert np.isnan(getattr(ours, method)(0.5, *shapes, 0.0, -1.0))
            assert ours._ppf is None or np.isnan(ours.ppf(0.5, *shapes, 0.0, -1.0))
            assert np.isnan(ours.isf(0.5, *shapes, 0.0, -1.0))
        assert np.all(np.isfinite(grad(lambda x, m=method: np.sum(np.exp(getattr(ours, m)(x, *shapes))))(outside)))


INVALID = {"johnsonsu": [(np.nan, 1.0), (0.3, 0.0), (0.3, -1.0)], "wrapcauchy": [(0.0,), (1.0,), (-0.3,), (np.nan,)],
           "truncnorm": [(1.0, 1.0), (1.3, -0.7), (np.nan, 1.0), (0.3, np.nan)]}  # fmt: skip # of others, what is not positive


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", CONTINUOUS)
def test_ends_and_what_is_outside(kind):
    """As SciPy has them: the ends of the support, beyond them, probabilities that are none, parameters that are none."""
    ours, theirs, usual = getattr(stats, kind), getattr(scipy.stats, kind), CONTINUOUS[kind]
    x = np.array([-np.inf, -40.0, -1.0, 0.0, 0.3, 1.0, 1.7, 40.0, np.inf, np.nan])
    q = np.array([-0.1, 0.0, 1e-12, 0.5, 1.0, 1.5, np.nan])
    shapes = {usual, *(tuple(0 * n + m for n in usual) for m in (0.7, 1.0, 2.0))}
    shapes |= {(-0.7, 1.3), (0.0, 1.3)} if kind in ("johnsonsu", "truncnorm") else set()
    shapes |= {(-np.inf, 1.3), (-0.7, np.inf), (-2.5, -0.5), (0.6, 9.0)} if kind == "truncnorm" else set()
    beside = INVALID.get(kind, [(*usual[:i], bad, *usual[i + 1 :]) for i in range(len(usual)) for bad in (0.0, -1.0, np.nan)])
    rest = [(), (0.5,), (0.5, 2.0)]
    for method in ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf"):
        if method in ("ppf", "isf") and kind == "invgauss":
            continue  # not here
        mine, reference = getattr(ours, method), getattr(theirs, method)
        points = {"ppf": q, "isf": np.where(q == 1e-12, 1e-3, q)}.get(method, x)  # where SciPy's isf is ppf(1 - q)
        linear = np.exp if method.startswith("log") else np.positive  # SciPy's logarithms are -inf below the smallest number
        for args in [shape + more for shape in shapes for more in rest]:
            expected = reference(points, *args)
            finite = np.isfinite(points)  # some densities of SciPy's are NaN at infinity
            known = ~np.isnan(expected) | np.isnan(points) | (finite & (points < 0))
            found = mine(points, *args)
            np.testing.assert_allclose(linear(found)[known], linear(expected)[known], 1e-8, 1e-15, err_msg=f"{method} {args}")
            for point, value in zip(points.tolist(), found, strict=True):
                np.testing.assert_array_max_ulp(np.asarray(mine(point, *args)), value, 8)
        for args in [*beside, *((*usual, 0.0, bad) for bad in (0.0, -1.0, np.nan)), (*usual, np.nan)]:
            assert np.all(np.isnan(reference(points[3:5], *args))), (method, args)
            assert np.all(np.isnan(mine(points, *args))), (method, args)
            assert np.isnan(mine(0.5, *args)), (method, args)
            for compiled in (value_and_grad(lambda *args, m=mine: m(*args), mode=mode) for mode in ("auto", "dynamic")):
                assert np.isnan(compiled(0.5, *map(float, args))[0]), (method, args)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_truncated_normals():
    """Far out, with infinite ends, and by their ends, with which the quantiles at 0 and 1 move."""
    ours, theirs = stats.truncnorm, scipy.stats.truncnorm
    for ends, x in (
        ((8.0, 10.0), 8.3),
        ((-40.0, -38.0), -38.2),
        ((-1.0, np.inf), 2.0),
        ((-np.inf, -3.0), -3.1),
        ((-1e-3, 9.0), 3.0),
    ):
        for method in ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf"):
            at = 0.3 if method in ("ppf", "isf") else x
            np.testing.assert_allclose(
                getattr(ours, method)(at, *ends), getattr(theirs, method)(at, *ends), 1e-9, err_msg=method
            )
            mine = lambda x, a, b, method=method: getattr(ours, method)(x, a, b)
            found = grad(mine, argnums=(0, 1, 2))(at, *ends)
            assert np.all(np.isfinite(found)), (method, ends)
            for i, end in enumerate(ends):
                assert np.isfinite(end) or found[1 + i] == 0
            if np.all(np.isfinite(ends)):
                agrees(mine, at, *ends)
    np.testing.assert_allclose([both_ways(lambda a, q=q: ours.ppf(q, a, 1.3))(-0.7) for q in (0.0, 1.0)], [1.0, 0.0])
    np.testing.assert_allclose([both_ways(lambda b, q=q: ours.isf(q, -0.7, b))(1.3) for q in (0.0, 1.0)], [1.0, 0.0])
    agrees(lambda x, m, s: ours.logpdf(x, (-1 - m) / s, (2 - m) / s, m, s), POINTS, 0.4, 1.3)


def test_densities_on_a_circle():
    x = np.array([-7.0, -0.3, 0.0, 0.3, 2.0, np.nan])
    for args in ((1.7,), (0.0,), (700.0, 0.2, 2.0), (-1.0,)):
        for method in ("logpdf", "pdf", "cdf"):
            with np.errstate(all="ignore"):
                expected = getattr(scipy.stats.vonmises, method)(x, *args)
            np.testing.assert_allclose(getattr(stats.vonmises, method)(x, *args), expected, 1e-12)
            np.testing.assert_allclose(getattr(stats.vonmises(*args), method)(x), expected, 1e-12)
    for fun in (stats.vonmises.logpdf, stats.vonmises.pdf, lambda *args: stats.vonmises(*args[1:]).logpdf(args[0])):
        agrees(fun, x[:-1], 1.7, 0.3, 1.2)
    with pytest.raises(NotDifferentiable, match="takes plain arrays only; give it a rule"):
        grad(lambda x: stats.vonmises.cdf(x, 1.0))(0.3)
    assert both_ways(lambda z: stats.gennorm.cdf(z, 1.7))(0.0) == pytest.approx(scipy.stats.gennorm.pdf(0.0, 1.7))
    assert both_ways(lambda q: stats.gennorm.ppf(q, 1.7))(0.5) == pytest.approx(1 / scipy.stats.gennorm.pdf(0.0, 1.7))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_of_several_kinds():
    k = np.array([-1, 0, 1, 2.5, 5, 6, np.nan])
    for args in ((5, 1.3, 0.7), (5, 1.3, 0.7, 1), (0, 2.0, 3.0), (2.5, 1.0, 1.0), (5, 0.0, 1.0), (5, 1.0, np.nan)):
        for method in ("logpmf", "pmf", "cdf"):
            expected = getattr(scipy.stats.betabinom, method)(k, *args)
            np.testing.assert_allclose(getattr(stats.betabinom, method)(k, *args), expected, 1e-10, 1e-15)
    agrees(lambda a, b: stats.betabinom.logpmf(np.arange(6), 5, a, b), 1.3, 0.7)
    agrees(lambda a, b: stats.betabinom(5, a, b).pmf(np.arange(7)), 1.3, 0.7)
    p = [0.2, 0.3, 0.5]
    for args in (
        ([1, 2, 1], 4, p), ([[1, 2, 1], [1, 1, 1]], 4, p), ([1, 2, 1], [4, 5], p), ([[1, 2, 1]], 4, [p, [1, 0, 0]]),
        ([1, 2.5, 0.5], 4, p), ([1, 4, -1], 4, p), ([1, 2, 1], 4, [-0.2, 0.7, 0.5]), ([0, 0, 1], 1, [0, 0, 1.0]),
    ):  # fmt: skip
        for method in ("logpmf", "pmf"):
            expected = getattr(scipy.stats.multinomial, method)(*args)
            np.testing.assert_allclose(getattr(stats.multinomial, method)(*args), expected, 1e-12)
    agrees(lambda z: stats.multinomial.logpmf(np.array([[1, 2, 1], [0, 0, 4]]), 4, special.softmax(z)), np.array(p))
    agrees(lambda z: stats.multinomial(4, special.softmax(z)).pmf([1, 2, 1]), np.array(p))
    for x in (3, [1, 2]):
        for part in (stats, scipy.stats):
            with pytest.raises(ValueError, match=r"must be an array|size of p: received 2, but expected 3"):
                part.multinomial.logpmf(x, 3, p)


DISCRETE = {"poisson": (2.3,), "binom": (5, 0.4), "bernoulli": (0.3,), "geom": (0.35,), "nbinom": (3.0, 0.4)}


@pytest.mark.parametrize("kind", DISCRETE)
def test_discrete(kind):
    ours, theirs, shapes = getattr(stats, kind), getattr(scipy.stats, kind), DISCRETE[kind]
    k = np.array([-1.0, 0.0, 1.0, 2.0, 2.5, 5.0, 9.0, np.nan])
    for method in ("logpmf", "pmf", "cdf", "sf"):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(
                getattr(ours, method)(k, *shapes), getattr(theirs, method)(k, *shapes), rtol=1e-10, atol=1e-14
            )
            np.testing.assert_allclose(
                getattr(ours, method)(k, *shapes, 1), getattr(theirs, method)(k, *shapes, 1), rtol=1e-10, atol=1e-14
            )
        fun = getattr(ours, method)
        agrees(lambda p, fun=fun: fun(np.array([1, 1]), *shapes[:-1], p) * np.array([1.0, 2.0]), shapes[-1])


IMPROPER = {
    "poisson": [(-1.0,), (np.nan,)], "binom": [(4, 1.5), (4, -0.1), (-1, 0.5), (2.5, 0.5), (4, np.nan)],
    "bernoulli": [(1.5,), (-0.1,), (np.nan,)], "geom": [(0.0,), (1.5,), (np.nan,)],
    "nbinom": [(5, 0.0), (5, 1.5), (0, 0.5), (-1, 0.5), (np.nan, 0.5)],
}  # fmt: skip
EXTREME = {"poisson": [(0.0,)], "binom": [(5, 0.0), (5, 1.0), (0, 0.5)], "bernoulli": [(0.0,), (1.0,)], "geom": [(1.0,)],
           "nbinom": [(5, 1.0), (0.5, 0.3)]}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", DISCRETE)
def test_extreme_probabilities(kind):
    ours, theirs = getattr(stats, kind), getattr(scipy.stats, kind)
    k = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 5.0, 6.0, np.inf, np.nan])
    for method in ("logpmf", "pmf", "cdf", "sf", "logcdf", "logsf"):
        mine, reference = getattr(ours, method), getattr(theirs, method)
        for args in (DISCRETE[kind], *EXTREME[kind]):
            np.testing.assert_allclose(mine(k, *args), reference(k, *args), 1e-10, 1e-14, err_msg=f"{method} {args}")
        for args in IMPROPER[kind]:
            assert np.isnan(theirs.cdf(1, *args)), args
            assert np.all(np.isnan(mine(k, *args))), (method, args)
            assert np.isnan(value_and_grad(lambda p, m=mine, first=args[:-1]: m(1, *first, p))(float(args[-1]))[0])


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_distributions_compute_in_double_precision(mode):
    x, q = np.array([0.5, 1.0], np.float32), np.array([0.3, 0.6], np.float32)
    for fun, reference, points in [
        (stats.norm.logpdf, scipy.stats.norm.logpdf, x),
        (lambda x: stats.gamma.cdf(x, np.float32(2)), lambda x: scipy.stats.gamma.cdf(x, np.float32(2)), x),
        (stats.cauchy.ppf, scipy.stats.cauchy.ppf, q),
        (lambda p: stats.geom.pmf([1, 2], p), lambda p: scipy.stats.geom.pmf([1, 2], p), q),
        (stats.multivariate_normal([0, 0]).logpdf, scipy.stats.multivariate_normal([0, 0]).logpdf, x),
    ]:
        derivative = value_and_grad(lambda x, fun=fun: (np.sum(fun(x)), fun(x)), has_aux=True, mode=mode)
        for _ in range(3):
            (_, found), slope = derivative(points)
            assert (found.dtype, slope.dtype) == (np.float64, np.float32)
            np.testing.assert_allclose(found, reference(points), rtol=1e-7)


@pytest.mark.parametrize("name", ["cauchy", "halfcauchy"])
def test_heavy_tails(name):
    """... are computed as such, not as differences from 1."""
    mine, theirs = getattr(stats, name), getattr(scipy.stats, name)
    x = 3.18 * 10.0 ** np.arange(0, 31, 3)
    x = np.concatenate([-x, x]) if name == "cauchy" else x
    for function in ("cdf", "sf", "logcdf", "logsf"):
        slope = grad(lambda x, function=function: np.sum(getattr(mine, function)(x)))(x)
        np.testing.assert_allclose(getattr(mine, function)(x), getattr(theirs, function)(x), rtol=1e-12)
        sign = 1.0 if "cdf" in function else -1.0
        density = theirs.pdf(x) / (getattr(theirs, function.removeprefix("log"))(x) if "log" in function else 1.0)
        np.testing.assert_allclose(slope, sign * density, rtol=1e-9)
    q = np.array([1e-30, 1e-9, 0.1, 0.25, 0.45, 0.6, 0.75, 1 - 1e-12])
    expected = np.where(q < 0.5, theirs.ppf(q), theirs.isf(1 - q))
    np.testing.assert_allclose(mine.ppf(q), expected, rtol=1e-9)
    np.testing.assert_allclose(elementwise_grad(mine.ppf)(q) * theirs.pdf(expected), 1.0, rtol=1e-6)


# By their values where SciPy has not all digits.
EXACT = {
    ("fisk", "sf"): lambda z, c: 1 / (1 + z**c), ("pareto", "cdf"): lambda z, b: -np.expm1(-b * np.log(z)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", CONTINUOUS)
def test_both_tails(kind):
    """Each function has all its digits there: the small probability, and the logarithm of the one that is nearly 1."""
    ours, theirs, shapes = getattr(stats, kind), getattr(scipy.stats, kind), CONTINUOUS[kind]
    p = np.array([1e-40, 1e-20, 1e-12, 1e-6, 0.02, 0.4])
    for small, large, points, sign in (("cdf", "sf", theirs.ppf(p, *shapes), 1.0), ("sf", "cdf", theirs.isf(p, *shapes), -1.0)):
        exact = EXACT.get((kind, small), getattr(theirs, small))
        x = points[theirs.pdf(points, *shapes) > 0]
        if kind in ("uniform", "powerlaw", "beta"):
            x = np.unique(x[(x < 1) | (small == "cdf")])
        if kind in ("truncnorm", "wrapcauchy"):
            x = x[(x > -0.69) & (x < (1.29 if kind == "truncnorm" else 6.28))]
        assert len(x) > 1
        rtol = 1e-11 if kind in ("invgauss", "t") else 1e-12
        probability, density = exact(x, *shapes), sign * theirs.pdf(x, *shapes)
        for method, value, slope in [
            (small, probability, density),
            (f"log{small}", np.log(probability), density / probability),
            (f"log{large}", np.log1p(-probability), -density / (1 - probability)),
        ]:
            mine = lambda x, method=method: getattr(ours, method)(x, *shapes)
            np.testing.assert_allclose(mine(x), value, rtol, err_msg=method)
            for derivative in (elementwise_grad(mine), elementwise_grad(mine, mode="dynamic")):
                np.testing.assert_allclose(derivative(x), slope, 1e-9, err_msg=method)
        if small == "sf" and kind not in ("invgauss", "powerlaw", "beta", "uniform", "weibull_max", "truncnorm", "wrapcauchy"):
            np.testing.assert_allclose(ours.sf(ours.isf(p, *shapes), *shapes), p, 1e-9)
        steps = getattr(theirs, large)(x, *shapes)
        np.testing.assert_allclose(getattr(ours, large)(x, *shapes), steps, rtol, err_msg=large)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (stats.invgauss.logcdf(1e-8, 1.7), scipy.stats.invgauss.logcdf(1e-8, 1.7)),
        (stats.lognorm.logsf(1e-8, 1.7), scipy.stats.lognorm.logsf(1e-8, 1.7)),
        (stats.halfnorm.logsf(40.0), math.log(2) + scipy.special.log_ndtr(-40.0)),
        (stats.laplace.logcdf(-1000.0), -1000 - math.log(2)),
        (stats.levy.logcdf(1e-8), math.log(2) + scipy.special.log_ndtr(-1e4)),
        (stats.levy.logcdf(1e-200), -0.5e200),
        (stats.moyal.logcdf(-20.0), math.log(2) + scipy.special.log_ndtr(-math.exp(10))),
        (stats.gumbel_r.logsf(800.0), -800.0),
        (stats.gumbel_l.logcdf(-800.0), -800.0),
        (stats.johnsonsu.logcdf(-1e30, 1.7, 2.6), scipy.special.log_ndtr(1.7 - 2.6 * math.asinh(1e30))),
        (stats.loggamma.cdf(-1000.0, 0.7), scipy.stats.loggamma.cdf(-1000.0, 0.7)),
        (stats.loggamma.logcdf(-2000.0, 1.7), 1.7 * -2000 - math.lgamma(2.7)),
        (stats.burr12.logcdf(1e-8, 1.7, 2.6), math.log(2.6) + 1.7 * math.log(1e-8)),
        (stats.pareto.cdf(1 + 1e-10, 1.7), -math.expm1(-1.7 * math.log1p((1 + 1e-10) - 1))),
    ],
)
def test_where_probabilities_vanish(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-10 if expected > -1 else 1e-12)


def test_slopes_where_logarithms_of_probabilities_are_large():
    assert math.isclose(grad(lambda z: stats.gumbel_r.logsf(z))(800.0), -1.0)
    assert math.isclose(grad(lambda z: stats.laplace.logsf(z))(1e3), -1.0)
    assert math.isclose(grad(lambda z, c: stats.loggamma.logcdf(z, c), 0)(-2000.0, 1.7), 1.7)
    assert math.isclose(grad(lambda z, mu: stats.invgauss.logcdf(z, mu))(1e-8, 1.7), 0.5e16, rel_tol=1e-7)
    assert math.isclose(grad(lambda z, mu: stats.invgauss.logsf(z, mu))(1e12, 0.7), -0.5 / 0.49, rel_tol=1e-3)


@pytest.mark.parametrize(
    ("fun", "x", "curvature"),
    [
        (stats.halfnorm.logsf, 1e7, -0.99999999999999),
        (stats.moyal.logcdf, -40.0, -math.exp(40) / 2),
        (stats.levy.logcdf, 1e-12, -1e36),
        (stats.norm.logcdf, 40.0, 0.0),
        (stats.norm.logsf, 1e8, -1.0),
    ],
)
def test_curvatures_of_logarithms_in_the_tails(fun, x, curvature):
    for mode in ("auto", "dynamic"):
        np.testing.assert_allclose(grad(grad(fun, mode=mode), mode=mode)(x), curvature, rtol=1e-10)


@pytest.mark.parametrize(
    ("kind", "k", "args", "slope"),
    [
        ("poisson", 18, (1.7,), lambda k, mu: scipy.stats.poisson.pmf(k, mu)),
        ("poisson", 40, (1.7,), lambda k, mu: scipy.stats.poisson.pmf(k, mu)),
        ("binom", 30, (40, 0.05), lambda k, n, p: n * scipy.stats.binom.pmf(k, n - 1, p)),
        ("geom", 100, (0.4,), lambda k, p: -k * (1 - p) ** (k - 1)),
        ("nbinom", 90, (3.0, 0.6), lambda k, n, p: -(p ** (n - 1)) * (1 - p) ** k / scipy.special.beta(n, k + 1)),
        ("bernoulli", 0, (1e-20,), lambda k, p: 1.0),
    ],
)  # fmt: skip
def test_upper_tails_of_whole_numbers(kind, k, args, slope):
    ours, theirs, *shapes, p = getattr(stats, kind), getattr(scipy.stats, kind), *args
    sf, by = theirs.sf(k, *args), slope(k, *args)
    if kind == "bernoulli":
        sf = 1e-20  # SciPy's is 0
    for method, value, derivative in [("sf", sf, by), ("logsf", np.log(sf), by / sf), ("logcdf", -sf, -by)]:
        mine = lambda p, method=method: getattr(ours, method)(k, *shapes, p)
        np.testing.assert_allclose(mine(p), value, 1e-12, err_msg=method)
        np.testing.assert_allclose(grad(mine)(p), derivative, 1e-10, err_msg=method)


def both_ways(fun):
    """The derivative by one number, of compiled code and in dynamic mode."""

    def derivative(x):
        compiled, dynamic = grad(fun), grad(fun, mode="dynamic")
        found = [*(compiled(x) for _ in range(3)), dynamic(x), float(jvp(fun, (x,), (1.0,))[1])]
        np.testing.assert_allclose(found, found[0], 1e-14)
        return found[0]

    return derivative


OVERFLOWING = [("gumbel_r", (), -720.0), ("gumbel_r", (), -1e3), ("gumbel_l", (), 720.0), ("gumbel_l", (), 1e3),
               ("gompertz", (1.7,), 720.0), ("loggamma", (1.7,), 720.0), ("loggamma", (0.7,), -1e3), ("moyal", (), -720.0),
               ("moyal", (), -1e4), ("levy", (), 1e-200), ("invgamma", (1.7,), 1e-200), ("invweibull", (1.7,), 1e-200),
               ("invgauss", (1.7,), 1e-200), ("invgauss", (1.7,), 1e30), ("weibull_min", (2.7,), 1e200),
               ("fisk", (2.7,), 1e200), ("weibull_max", (2.7,), -1e200), ("burr12", (2.7, 1.5), 1e200),
               ("betaprime", (0.7, 1.4), 1e200), ("t", (2.7,), 1e200)]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("kind", "shapes", "x"), OVERFLOWING)
def test_where_arguments_overflow(kind, shapes, x):
    ours = getattr(stats, kind)
    for method in ("pdf", "cdf", "sf"):
        mine = getattr(ours, method)
        assert abs(both_ways(lambda z, mine=mine: mine(z, *shapes))(x)) < 1e-150, method
        for i in range(len(shapes)):
            by = lambda a, i=i, mine=mine: mine(x, *shapes[:i], a, *shapes[i + 1 :])
            assert abs(both_ways(by)(shapes[i])) < 1e-150, (method, i)


# The slope of the density at the end of the support, where that is 0: the limit from within.
EDGES = [("gamma", (2.7,), 0.0, 0.0), ("gamma", (2.0,), 0.0, 1.0), ("gamma", (1.7,), 0.0, np.inf), ("chi", (2.7,), 0.0, 0.0),
         ("chi", (2.0,), 0.0, 1.0), ("chi2", (6.0,), 0.0, 0.0), ("chi2", (4.0,), 0.0, 0.25), ("maxwell", (), 0.0, 0.0),
         ("beta", (2.7, 2.6), 0.0, 0.0), ("beta", (2.7, 2.6), 1.0, 0.0), ("beta", (2.0, 3.0), 0.0, 12.0),
         ("beta", (3.0, 2.0), 1.0, -12.0), ("weibull_min", (2.7,), 0.0, 0.0), ("weibull_min", (2.0,), 0.0, 2.0),
         ("weibull_max", (2.7,), 0.0, 0.0), ("f", (6.0, 6.0), 0.0, 0.0), ("f", (4.0, 2.0), 0.0, 8.0),
         ("nakagami", (1.7,), 0.0, 0.0), ("nakagami", (1.0,), 0.0, 2.0), ("powerlaw", (2.7,), 0.0, 0.0),
         ("powerlaw", (2.0,), 0.0, 2.0), ("fisk", (2.7,), 0.0, 0.0), ("fisk", (2.0,), 0.0, 2.0),
         ("burr12", (2.7, 1.5), 0.0, 0.0), ("burr12", (2.0, 1.5), 0.0, 3.0),
         ("rayleigh", (), 0.0, 1.0), ("betaprime", (2.7, 1.5), 0.0, 0.0), ("betaprime", (2.0, 1.5), 0.0, 3.75)]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("kind", "shapes", "x", "slope"), EDGES)
def test_slopes_of_densities_at_the_ends(kind, shapes, x, slope):
    ours = getattr(stats, kind)
    np.testing.assert_allclose(both_ways(lambda z: ours.pdf(z, *shapes))(x), slope, 1e-12)
    np.testing.assert_allclose(both_ways(lambda z: ours.pdf(z, *shapes, 0.0, 2.0))(2 * x), slope / 4, 1e-12)
    np.testing.assert_allclose(both_ways(grad(lambda z: ours.cdf(z, *shapes)))(x), slope, 1e-12)
    np.testing.assert_allclose(both_ways(grad(lambda z: ours.sf(z, *shapes)))(x), -slope, 1e-12)
    for i in range(len(shapes)):
        by = lambda a, i=i: ours.pdf(x, *shapes[:i], a, *shapes[i + 1 :])
        assert both_ways(by)(shapes[i]) == 0.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_slopes_of_probabilities_that_are_0():
    """... of numbers by their probability: that of 1 rises from there, and falls at the other end."""
    for k, slope in ((0.0, -5.0), (1.0, 5.0), (2.0, 0.0)):
        assert both_ways(lambda p, k=k: stats.binom.pmf(k, 5, p))(0.0) == pytest.approx(slope)
        assert both_ways(lambda p, k=k: stats.binom.pmf(5 - k, 5, p))(1.0) == pytest.approx(-slope)
    for k, slope in ((0.0, -1.0), (1.0, 1.0), (2.0, 0.0)):
        assert both_ways(lambda mu, k=k: stats.poisson.pmf(k, mu))(0.0) == pytest.approx(slope)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "kind", [kind for kind, shapes in CONTINUOUS.items() if shapes and kind not in ("invgauss", "truncnorm")]
)
def test_the_ends_do_not_move_with_the_shapes(kind):
    ours, whole = getattr(stats, kind), kind in ("weibull_max", "t", "johnsonsu", "loggamma")
    first = 1.0 if kind == "pareto" else 0.0
    for shapes in (CONTINUOUS[kind], tuple(0.6 * a for a in CONTINUOUS[kind])):
        for i, a in enumerate(shapes):
            points = [
                ("ppf", 0.0),
                ("ppf", 1.0),
                ("isf", 0.0),
                ("isf", 1.0),
                *([] if whole else [("cdf", first), ("sf", first)]),
            ]
            for method, x in points:
                by = lambda a, method=method, x=x, i=i, s=shapes: getattr(ours, method)(x, *s[:i], a, *s[i + 1 :])
                assert both_ways(by)(a) == 0.0, (method, x, shapes, i)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_slopes_of_distribution_functions_and_quantiles_at_the_ends():
    for df, slope in ((0.7, np.inf), (1.0, math.sqrt(2 / math.pi)), (1.7, 0.0)):
        np.testing.assert_allclose(both_ways(lambda z, df=df: stats.chi.cdf(z, df))(0.0), slope, 1e-12)
        np.testing.assert_allclose(both_ways(lambda z, df=df: stats.chi.sf(z, df))(0.0), -slope, 1e-12)
        np.testing.assert_allclose(both_ways(lambda q, df=df: stats.chi.ppf(q, df))(0.0), 1 / slope if slope else np.inf, 1e-12)
    for n, slope in ((1.7, np.inf), (2.0, 1.0), (2.7, 0.0)):
        np.testing.assert_allclose(both_ways(lambda z, n=n: stats.f.cdf(z, n, 2.6))(0.0), slope, 1e-12)
        np.testing.assert_allclose(both_ways(lambda z, n=n: stats.f.sf(z, n, 2.6))(0.0), -slope, 1e-12)
    for inverse in (scipy.special.gammaincinv, scipy.special.gammainccinv):
        assert both_ways(lambda a, inverse=inverse: inverse(a, 0.0))(1.7) == 0.0
    for inverse in (scipy.special.betaincinv, scipy.special.betainccinv):
        assert both_ways(lambda a, inverse=inverse: inverse(a, 2.6, 0.0))(1.7) == 0.0
        assert both_ways(lambda b, inverse=inverse: inverse(1.7, b, 1.0))(2.6) == 0.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", [kind for kind, shapes in CONTINUOUS.items() if shapes and kind != "truncnorm"])
def test_probabilities_at_infinity_do_not_move_with_the_shapes(kind):
    ours, shapes = getattr(stats, kind), CONTINUOUS[kind]
    for method, z in itertools.product(("cdf", "sf"), (-np.inf, np.inf)):
        for i, a in enumerate(shapes):
            by = lambda a, m=method, z=z, i=i: getattr(ours, m)(z, *shapes[:i], a, *shapes[i + 1 :])
            assert both_ways(by)(a) == 0.0, (method, z, i)


def test_axes_of_one_element_are_squeezed():
    x, mean, cov, p = np.zeros((1, 3)), np.ones(3), np.diag([1.0, 2.0, 3.0]), np.full((3, 1), 1 / 3)
    for name, args in {
        "multivariate_normal": [(x, mean, cov), (x[None], mean, 2.0), (np.zeros((1, 4, 3)), mean, cov), (0.3,), ([0.3],)],
        "multivariate_t": [(x, mean, cov, 3.0), (np.zeros((4, 1, 3)), mean, cov, 3.0)],
        "dirichlet": [(p, mean), (p[:, :, None], mean)],
    }.items():
        for given in args:
            for method in ("logpdf", "pdf"):
                found, expected = (getattr(getattr(part, name), method)(*given) for part in (stats, scipy.stats))
                assert np.shape(found) == np.shape(expected)
                np.testing.assert_allclose(found, expected, rtol=1e-12)
    agrees(lambda x: stats.multivariate_normal.logpdf(x, mean, cov), x)
    degenerate = np.diag([1.0, 2.0, 0.0])
    found = stats.multivariate_normal.logpdf(x, 0 * mean, degenerate, allow_singular=True)
    assert found == pytest.approx(scipy.stats.multivariate_normal.logpdf(x, 0 * mean, degenerate, allow_singular=True))


def test_multivariate():
    x, mean = rng.normal(size=(4, 3)), rng.normal(size=3)
    root = rng.normal(size=(3, 3)) / 4 + np.eye(3)
    cov = root @ root.T
    for args in (
        (x, mean, cov),
        (x[0], mean, cov),
        (x, None, cov),
        (x, mean, 0.7),
        (x, mean, np.array([0.5, 1.0, 2.0])),
    ):
        reference = scipy.stats.multivariate_normal.logpdf(*args)
        np.testing.assert_allclose(stats.multivariate_normal.logpdf(*args), reference, rtol=1e-10)
    np.testing.assert_allclose(stats.multivariate_normal.pdf(x, mean, cov), scipy.stats.multivariate_normal.pdf(x, mean, cov))
    agrees(lambda x, m, r: stats.multivariate_normal.logpdf(x, m, r @ r.T), x, mean, root)
    p, alpha = rng.dirichlet([2.0, 3.0, 4.0], size=4).T, np.array([2.0, 3.0, 1.5])
    np.testing.assert_allclose(stats.dirichlet.logpdf(p, alpha), scipy.stats.dirichlet.logpdf(p, alpha))
    agrees(lambda p, a: stats.dirichlet.logpdf(p, a), p, alpha)


def test_banded_systems():
    ab, b = rng.uniform(-1, 1, (4, 6)), rng.normal(size=(6, 2))
    ab[2] += 5
    np.testing.assert_allclose(linalg.solve_banded((1, 2), ab, b), scipy.linalg.solve_banded((1, 2), ab, b))
    agrees(lambda ab, b: linalg.solve_banded((1, 2), ab, b), ab, b)
    for h, lower in ((ab[2::-1] + 0.0, True), (ab[:3] + 0.0, False)):
        wide = h.astype(complex)
        wide[1] += 0.4j
        np.testing.assert_allclose(linalg.solveh_banded(wide, b, lower=lower), scipy.linalg.solveh_banded(wide, b, lower=lower))
        agrees(lambda ab, b, lower=lower: linalg.solveh_banded(ab, b, lower=lower), h, b)
    with pytest.raises(ValueError, match="ab has 4 rows; l \\+ u \\+ 1 = 3"):
        linalg.solve_banded((1, 1), ab, b)


@pytest.mark.parametrize(
    ("stack", "right"), [((), (2, 5, 1)), ((3,), (5,)), ((3,), (5, 2)), ((3,), (3, 5, 2)), ((2, 1), (3, 5, 1)), ((0,), (5,))]
)
def test_stacks_of_banded_systems(stack, right):
    ab, b = rng.uniform(0.1, 1, (*stack, 3, 5)), rng.normal(size=right)
    ab[..., 1, :] += 5
    for name, options, given in (
        ("solve_banded", {}, ((1, 1), ab)),
        ("solveh_banded", {}, (ab[..., :2, :],)),
        ("solveh_banded", {"lower": True}, (ab[..., 1:, :],)),
    ):
        *reach, bands = given
        ours = lambda *x, name=name, reach=reach, options=options: getattr(linalg, name)(*reach, *x, **options)
        theirs = lambda *x, name=name, reach=reach, options=options: getattr(scipy.linalg, name)(*reach, *x, **options)
        one_by_one = np.vectorize(theirs, signature="(m,n),(n)->(n)" if b.ndim == 1 else "(m,n),(n,k)->(n,k)")
        if ab.size:
            np.testing.assert_allclose(ours(bands, b), one_by_one(bands, b), rtol=1e-9)
        agrees(ours, bands.copy(), b)


def test_singular_covariances():
    mean, root, z = rng.normal(size=4), rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    ours, theirs = stats.multivariate_normal, scipy.stats.multivariate_normal
    for x in (mean + z @ root.T, mean + z @ root.T + 0.1):  # in the space that the density is on, and beside it
        args = (x, mean, root @ root.T, True)
        np.testing.assert_allclose(ours.logpdf(*args), theirs.logpdf(*args))
    agrees(lambda z, r: ours(mean, r @ r.T, allow_singular=True).logpdf(mean + z @ r.T), z, root)
    for cov in (root.T @ root, 0.7, np.array([0.5, 2.0])):
        np.testing.assert_allclose(ours.entropy(mean[:2], cov), theirs.entropy(mean[:2], cov))
    agrees(lambda r: ours.entropy(None, r.T @ r), root)


def test_what_distributions_do_not_differentiate_is_scipys():
    for ours, theirs, args in ((stats.norm, scipy.stats.norm, (1.0, 2.0)), (stats.poisson, scipy.stats.poisson, (2.5,))):
        np.testing.assert_array_equal(ours.rvs(*args, size=3, random_state=0), theirs.rvs(*args, size=3, random_state=0))
        np.testing.assert_array_equal(ours(*args).rvs(3, random_state=0), theirs(*args).rvs(3, random_state=0))
        assert ours(*args).mean() == ours.mean(*args) == theirs.mean(*args)
    with pytest.raises(AttributeError, match="nothing"):
        stats.norm.nothing()
    with pytest.raises(NotDifferentiable):
        grad(lambda m: stats.norm.mean(m))(1.0)


def test_frozen_distributions():
    x = np.array([1.0, 2.0])
    assert stats.norm(0.5, scale=2.0).cdf(1.0) == stats.norm.cdf(1.0, 0.5, 2.0)
    agrees(lambda x, m, s: stats.norm(m, s).logpdf(x) + stats.gamma(s, scale=m).pdf(x), x, 0.7, 1.3)
    agrees(lambda m: stats.poisson(m).logpmf(np.array([1, 3])), 1.3)
    agrees(lambda m: stats.multivariate_normal(m, np.eye(2)).logpdf(x) + stats.dirichlet(m).logpdf([0.3, 0.7]), x)
    with pytest.raises(TypeError, match="missing parameter 'a'"):
        stats.gamma(scale=2.0)


# -- solvers -------------------------------------------------------------------------------------------------------


def numeric(fun, x, step=1e-5):
    """Central differences, extrapolated."""
    x = np.asarray(x, float)
    slope = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        ends = []
        for h in (step, step / 2):
            e = np.zeros_like(x)
            e[place] = h
            ends.append((fun(x + e) - fun(x - e)) / (2 * h))
        slope[place] = (4 * ends[1] - ends[0]) / 3
    return slope


def test_root_by_the_implicit_function_theorem():
    def equations(v, p):
        x, y = v
        return np.array([x * x + y - p[0], np.sin(x) - p[1] * y])

    def fun(p):
        return np.sum(optimize.root(equations, np.array([1.0, 1.0]), args=(p,), tol=1e-13).x * np.array([1.0, 2.0]))

    p = np.array([2.0, 0.7])
    for _ in range(3):
        np.testing.assert_allclose(grad(fun)(p), numeric(fun, p), rtol=1e-7)
    np.testing.assert_allclose(hessian(fun)(p)[0], numeric(lambda p: grad(fun)(p)[0], p), rtol=1e-6)
    derivative = grad(fun)
    for q in (p, p + 0.1, p - 0.1, p):  # never what an earlier call found
        np.testing.assert_allclose(derivative(q), numeric(fun, q), rtol=1e-7)


def test_closures_are_differentiated_too():
    fun = lambda p: optimize.brentq(lambda x: x**3 - p, 0.0, 10.0)
    assert math.isclose(grad(fun)(8.0), 1 / 12, rel_tol=1e-12)
    assert math.isclose(grad(grad(fun))(8.0), -2 / 9 * 8 ** (-5 / 3), rel_tol=1e-10)
    assert math.isclose(grad(grad(grad(fun)))(8.0), 10 / 27 * 8 ** (-8 / 3), rel_tol=1e-9)


def test_one_equation():
    f = lambda x, p: np.exp(x) * p - 3.0
    for solve in (optimize.brentq, optimize.brenth, optimize.bisect, optimize.ridder, optimize.toms748):
        assert math.isclose(solve(f, 0.0, 5.0, args=(0.5,)), math.log(6), rel_tol=1e-9)
        assert math.isclose(grad(lambda p, solve=solve: solve(f, 0.0, 5.0, args=(p,)))(0.5), -2, rel_tol=1e-9)
    assert math.isclose(grad(lambda p: optimize.newton(f, 1.0, args=(p,)))(0.5), -2, rel_tol=1e-9)
    assert math.isclose(grad(lambda p: optimize.root_scalar(f, (p,), bracket=(0, 5)).root)(0.5), -2, rel_tol=1e-9)
    fixed = lambda p: np.sum(optimize.fixed_point(lambda x: np.cos(p * x), np.array([0.7])))
    assert math.isclose(grad(fixed)(1.0), numeric(fixed, 1.0), rel_tol=1e-6)
    solved = lambda p: np.sum(optimize.fsolve(lambda x: x**2 - p, np.array([1.0, 2.0])))
    np.testing.assert_allclose(grad(solved)(np.array([2.0, 3.0])), 0.5 / np.sqrt([2.0, 3.0]), rtol=1e-9)


def test_numbers_are_of_the_kinds_that_scipys_are():
    """Python's float leaves an array of single precision what it is, as without a derivative."""
    for fun in (
        lambda x: np.sum(x * optimize.brentq(lambda z: z**3 - x[0], 0.0, 5.0)),
        lambda x: np.sum(x * optimize.root_scalar(lambda z: z**3 - x[0], bracket=(0, 5)).root),
        lambda x: np.sum(x * integrate.quad(lambda t: x[0] * t, 0.0, 1.0)[0]),
    ):
        x = np.array([0.5, 2.0], np.float32)
        value, _ = symgrad.value_and_grad(fun)(x)
        assert type(value) is type(fun(x))


def test_minimum():
    cost = lambda x, p: np.sum((x - p) ** 2) + 0.1 * np.sum(x**4)
    fun = lambda p: np.sum(optimize.minimize(cost, np.zeros(2), args=(p,), tol=1e-10).x ** 2)
    p = np.array([1.0, -0.5])
    np.testing.assert_allclose(grad(fun)(p), numeric(fun, p), rtol=1e-5)
    best = lambda p: optimize.minimize(cost, np.zeros(2), args=(p,), tol=1e-10).fun
    np.testing.assert_allclose(grad(best)(p), numeric(best, p), rtol=1e-5)


def test_newton_of_an_array():
    f = lambda x, a: x**3 + a * x - 0.4
    fun = lambda a: np.sum(optimize.newton(f, np.array([0.3, 0.1]), args=(a,)) * np.array([1.0, 2.0]))
    start = np.array([0.3, 0.1])
    np.testing.assert_allclose(optimize.newton(f, start, args=(1.2,)), scipy.optimize.newton(f, start, args=(1.2,)))
    for a in (1.2, np.array([1.2, 0.7])):
        roots = scipy.optimize.newton(f, start, args=(a,), tol=1e-14)
        slopes = -roots / (3 * roots**2 + a) * np.array([1.0, 2.0])
        for mode in ("auto", "dynamic"):
            derivative = grad(fun, mode=mode)
            for _ in range(3):
                np.testing.assert_allclose(derivative(a), slopes if np.ndim(a) else np.sum(slopes), rtol=1e-12)
    assert math.isclose(grad(grad(fun))(1.2), numeric(grad(fun), 1.2), rel_tol=1e-8)
    coupled = lambda p: np.sum(optimize.newton(lambda x: x - p + 0.1 * np.sin(np.sum(x)), np.zeros(2)))
    with pytest.raises(ValueError, match=r"hangs on other elements.*optimize\.root"):
        grad(coupled)(0.5)


def test_no_solution_is_an_error():
    with pytest.raises(RuntimeError, match="found no solution"), np.errstate(all="ignore"):
        grad(lambda p: optimize.root(lambda x: x * x + p, 1.0).x[()])(1.0)


def test_odeint():
    def swing(y, t, k, c):
        return np.array([y[1], -k * np.sin(y[0]) - c * y[1]])

    t, y0 = np.linspace(0, 0.6, 4), np.array([0.5, 0.1])
    reference = scipy.integrate.odeint(swing, y0, t, args=(2.0, 0.3), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(integrate.odeint(swing, y0, t, args=(2.0, 0.3)), reference, rtol=1e-6, atol=1e-7)
    exact = {"rtol": 1e-11, "atol": 1e-11}  # differences are also those of other steps
    solved = lambda y0, k, c: integrate.odeint(swing, y0, t, args=(k, c), **exact)
    moved = lambda end: integrate.odeint(swing, y0, np.stack([0.0, 0.3 * end, end]), args=(2.0, 0.3), **exact)
    for fun, args in ((solved, (y0, 2.0, 0.3)), (moved, (0.5,))):
        agrees(fun, *args, modes=("dynamic",))
        derivative, oracle = [grad(lambda *args, fun=fun: np.sum(fun(*args) ** 2), mode=mode) for mode in ("auto", "dynamic")]
        expected = oracle(*args)
        for _ in range(4):
            np.testing.assert_allclose(derivative(*args), expected, rtol=1e-9)
        assert derivative.cache_info().hits
    decay = lambda k: integrate.odeint(lambda y, t: -k * y, 1.0, np.array([0.0, 1.0]))[1, 0]
    for order, fun in enumerate([decay, grad(decay), grad(grad(decay))]):
        assert math.isclose(fun(0.7), (-1) ** order * math.exp(-0.7), rel_tol=1e-6)


def arrays_anew(x, p):
    """What makes arrays of traced values, and fills one, needs the trace to see it."""
    rate = (np.array(p) * 10).astype(float)
    out = np.zeros(2)
    for i in range(2):
        out[i] = rate[i] * x[i]
    return out


def arrays_at_times(y, t, p):
    return arrays_anew(y, p) - y**2


@pytest.mark.parametrize(
    "solved",
    [
        lambda p: integrate.odeint(lambda y, t: arrays_anew(y, p) - y**2, np.array([0.1, 0.2]), np.array([0.0, 0.5]))[1],
        lambda p: integrate.odeint(arrays_at_times, np.ones(2), np.array([0.0, 0.5]), (p,))[1],
        lambda p: integrate.solve_ivp(lambda t, y: arrays_anew(y, p) - y**2, (0.0, 0.5), np.ones(2), rtol=1e-8).y[:, -1],
        lambda p: integrate.quad(lambda t: np.sum(arrays_anew(np.array([t, t**2]), p)), 0.0, 1.0)[0],
        lambda p: optimize.root(lambda x: arrays_anew(x, p) + x**3 - 1.0, np.ones(2)).x,
        lambda p: optimize.brentq(lambda x: np.sum(arrays_anew(np.array([x, x]), p)) + x**3 - 1.0, 0.0, 2.0),
        lambda p: optimize.minimize(lambda x: np.sum(arrays_anew(x, p) ** 2) + np.sum(x), np.ones(2)).x,
        lambda p: optimize.least_squares(lambda x: arrays_anew(x, p) - 1.0, np.ones(2)).x,
    ],
)
def test_functions_that_make_arrays(solved):
    """The user's function runs as the function that is differentiated does, while SciPy runs it, too."""
    agrees(lambda p: np.sum(solved(p)), np.array([0.3, 0.4]))


@pytest.mark.parametrize("times", [None, np.array([0.5, 1.0])], ids=["steps", "times"])
@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
def test_solve_ivp(method, times):
    fun = lambda t, y, k: np.array([y[1], -k * y[0] + 0.1 * np.sin(t)])
    options = {"rtol": 1e-8, "atol": 1e-8, "method": method, "t_eval": times}
    ours = integrate.solve_ivp(fun, (0.0, 1.0), [1.0, 0.0], args=(2.0,), **options)
    theirs = scipy.integrate.solve_ivp(fun, (0.0, 1.0), [1.0, 0.0], args=(2.0,), **options)
    np.testing.assert_allclose(ours.t, theirs.t, rtol=1e-6)  # errors near rounding tell how long steps are
    np.testing.assert_allclose(ours.y, theirs.y, rtol=1e-5, atol=1e-6)
    last = lambda y0, k: integrate.solve_ivp(fun, (0.0, 1.0), y0, args=(k,), **options).y[:, -1]
    slope = grad(lambda k: np.sum(last(np.array([1.0, 0.0]), k)))(2.0)
    assert math.isclose(slope, numeric(lambda k: np.sum(last(np.array([1.0, 0.0]), k)), 2.0), rel_tol=1e-4)
    np.testing.assert_allclose(jacobian(last)(np.array([1.0, 0.0]), 2.0), [
        [math.cos(math.sqrt(2)), math.sin(math.sqrt(2)) / math.sqrt(2)],
        [-math.sqrt(2) * math.sin(math.sqrt(2)), math.cos(math.sqrt(2))],
    ], rtol=1e-6)  # fmt: skip


def epidemic(t, y, beta, gamma):
    s, i, _ = y
    return np.array([-beta * s * i, beta * s * i - gamma * i, gamma * i])


def backwards(t, y, k, c):
    return np.where(t > 1.0, 1.0, 0.5) * np.array([y[1], -k * np.sin(y[0]) - c * y[1], c * y[2] * np.cos(3 * t)])


@pytest.mark.parametrize(("fun", "ends"), [(epidemic, (0.0, 30.0)), (backwards, (2.0, -1.0))])
@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
def test_solve_ivp_is_compiled(method, fun, ends):
    """It takes the steps that SciPy's takes, and gives the same numbers; in code from the third call or so on."""
    times = np.linspace(*ends, 12)
    options = {"method": method, "t_eval": times, "rtol": 1e-5, "atol": 1e-7}
    y0, rng = np.array([0.95, 0.05, 0.3]), np.random.default_rng(2)

    def solved(p, y0):
        return integrate.solve_ivp(fun, ends, y0, args=(p[0], p[1]), **options).y

    derivative, oracle = [value_and_grad(lambda p, y0: np.sum(solved(p, y0) ** 2), (0, 1), mode=m) for m in ("auto", "dynamic")]
    for _ in range(9 if method == "DOP853" else 5):  # whose numbers of steps differ more
        p = np.array([0.4, 0.1]) * rng.uniform(0.8, 1.2, 2)
        theirs = scipy.integrate.solve_ivp(fun, ends, y0, args=(*p,), **options).y
        np.testing.assert_allclose(solved(p, y0), theirs, rtol=1e-6)
        (value, found), (other, expected) = derivative(p, y0), oracle(p, y0)
        assert math.isclose(value, np.sum(theirs**2), rel_tol=1e-6)
        assert math.isclose(value, other, rel_tol=1e-9)
        for one, another in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, another, rtol=1e-7)
    assert derivative.cache_info().hits >= 1


Measure = namedtuple("Measure", "start end factor")


def contacts(t, measures):
    share = 1.0
    for one in measures:
        if one.start <= t < one.end:
            share *= one.factor
    return share


@pytest.mark.parametrize(
    "method", [pytest.param("RK23", marks=pytest.mark.long), "RK45", pytest.param("DOP853", marks=pytest.mark.long)]
)
def test_equations_that_switch_in_time(method):
    """Each step finds a switch between other slopes of its own; that makes no more ways through the steps."""
    times, measures = np.linspace(0.0, 20.0, 5), [Measure(6.0, 12.0, 0.4)]

    def cases(p, measures):
        rhs = lambda t, y: [
            -p[0] * contacts(t, measures) * y[0] * y[1],
            p[0] * contacts(t, measures) * y[0] * y[1] - p[1] * y[1],
        ]
        found = integrate.solve_ivp(rhs, (0.0, 20.0), [0.95, 0.05], method, times, rtol=1e-3, atol=1e-5)
        return np.sum(found.y[1] ** 2)

    derivative, rng = grad(cases), np.random.default_rng(1)
    for _ in range(6):
        p = np.array([0.6, 0.2]) * rng.uniform(0.9, 1.1, 2)
        np.testing.assert_allclose(derivative(p, measures), grad(cases, mode="dynamic")(p, measures), rtol=1e-7)
    assert derivative.cache_info().hits >= 2


@pytest.mark.parametrize(
    "rhs",
    [
        lambda t, y, p: [-p[0] * y[0] + np.where(y[0] < 0.5, 1.0, 0.0) * p[1]],
        lambda t, y, p: [-p[0] * y[0] + (1.0 if t < p[0] else 0.0) * p[1]],
        lambda t, y, p: [-p[0] * y[0] + ((0.3 if y[0] < 0.8 else 0.0) if t > 0.1 else 0.0)],
        lambda t, y, p: [1.0 if t < p[0] else 0.0],
        lambda t, y, p: [-p[1] * np.floor(t / p[0])],
    ],
    ids=["where", "time", "late", "steady", "floor"],
)
@pytest.mark.parametrize("options", [{}, {"t_eval": [1.0, 2.0], "rtol": 1e-7}, {"method": "RK23", "max_step": 0.05}])
def test_equations_that_jump_where_it_is_differentiated_by(rhs, options):
    """The derivatives of steps lack what the place adds, so that they are refused, by code as well."""
    solved = grad(lambda p: integrate.solve_ivp(lambda t, y: rhs(t, y, p), (0.0, 2.0), [1.0], **options).y[0, -1])
    for p in (np.array([0.7, 0.3]), np.array([0.8, 0.3]), np.array([0.81, 0.3])):
        with pytest.raises(NotDifferentiable, match=r"jump after t = [01]\."):
            solved(p)


@pytest.mark.parametrize("times", [pytest.param(None, marks=pytest.mark.long), [2.0]])
def test_equations_that_choose_but_jump_nowhere_that_moves(times):
    """A kink, a jump at a fixed time, what begins where it jumps, and one solution up to the jump, and one from there."""
    options = {"rtol": 1e-9, "atol": 1e-10}

    def solve(rhs, begin, end, y):
        asked = None if times is None else np.stack([end])
        return integrate.solve_ivp(rhs, (begin, end), y, t_eval=asked, **options).y[:, -1]

    def kink(p):
        return solve(lambda t, y: [-p[0] * np.where(y[0] > 0.5, y[0] - 0.5, 0.0) - p[1]], 0.0, 2.0, [1.0])[0]

    def kept(p):
        return solve(lambda t, y: [-p[0] * (1.0 if t < 1.1 else 2.0)], 0.0, 2.0, [p[1]])[0]

    def rest(p):
        return solve(lambda t, y: [y[1], p[0] - p[1] * np.sign(y[1])], 0.0, 2.0, [0.0, 0.0])[1]

    def parts(p):
        y = solve(lambda t, y: [p[1]], 0.0, p[0], [1.0])
        return solve(lambda t, y: [0.0 * p[1]], p[0], 2.0, y)[0]

    for fun, exact in (
        (kink, lambda p: 0.5 - p[1] * (2.0 - np.log1p(0.5 * p[0] / p[1]) / p[0])),  # up to the length of a step
        (kept, lambda p: p[1] - p[0] * (1.1 + 2 * 0.9)),
        (rest, lambda p: 2 * (p[0] - p[1])),
        (parts, lambda p: 1 + p[0] * p[1]),
    ):
        derivative = value_and_grad(fun)
        for p in (np.array([0.7, 0.3]), np.array([0.8, 0.4]), np.array([0.81, 0.41])):
            value, expected = value_and_grad(exact)(p)
            found = derivative(p)
            assert found[0] == pytest.approx(value, abs=1e-6)
            np.testing.assert_allclose(found[1], expected, atol=1e-3 if fun is kink else 1e-6)


@pytest.mark.long
def test_steps_that_look_at_a_few_doses_are_run_as_those_before(monkeypatch):
    """Once an iteration of the loop over doses has gone each way, most steps are run at once: few such loops are recorded."""
    rolled = []
    monkeypatch.setattr(Roller, "_fork", lambda self, fork=Roller._fork: rolled.append(self.what) or fork(self))

    def exposure(p, doses):
        def rhs(t, y):
            given = 0.0
            for begin, end, rate in doses:
                if begin <= t < end:
                    given += rate
            return np.array([given - p[0] * y[0], p[0] * y[0] - p[1] * y[1]])

        found = integrate.solve_ivp(rhs, (0.0, 8.0), [0.0, 0.0], "RK23", np.linspace(1, 8, 4), rtol=1e-3, atol=1e-5)
        return np.sum(found.y[1] ** 2)

    derivative, doses = grad(exposure), [(0.0, 1.0, 5.0), (4.0, 5.0, 5.0)]
    for k in range(5):
        p = np.array([0.8, 0.2]) * (1 + 0.02 * k)
        rolled.clear()
        found = derivative(p, doses)
        assert len([what for what in rolled if what is not None and what.length == 2]) < 100  # of some 200 slopes
        np.testing.assert_allclose(found, grad(exposure, mode="dynamic")(p, doses), rtol=1e-7)
    assert derivative.cache_info().hits >= 1


@pytest.mark.parametrize("times", [[0.0, 0.3, 1.0], [0.5], [1.0, 1.0], [1.0, 0.4, 0.1]])
@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
def test_a_parameter_that_comes_in_late(method, times):
    """The first slopes hang on nothing, the later ones do; and times may be the only thing that moves."""
    begin, end = (0.0, 1.0) if times[-1] == max(times) else (1.0, 0.1)
    y0, area = np.array([1.0, 2.0]), lambda t: np.maximum(t - 0.2, 0.0) ** 4 / 4

    def solved(times, k):
        rhs = lambda t, y: -y * (0.5 + k * (t - 0.2) ** 3 if t > 0.2 else 0.5)
        return np.sum(integrate.solve_ivp(rhs, (begin, end), y0, method, times, rtol=1e-7, atol=1e-9).y ** 2)

    exact = lambda times, k: np.sum(np.sum(y0**2) * np.exp(begin - times - 2 * k * (area(times) - area(begin))))
    times = np.array(times)
    np.testing.assert_allclose(
        grad(lambda k: solved(times, k))(0.7), grad(lambda k: exact(times, k))(0.7), rtol=1e-3, atol=1e-7
    )
    inside = times[(times != begin) & (times != end)]
    if inside.size:
        np.testing.assert_allclose(grad(solved)(inside, 0.7), grad(exact)(inside, 0.7), rtol=1e-3)


def test_images_are_moved_by_arguments_of_scipys_names():
    x = np.arange(12.0).reshape(3, 4)
    for name, options in (("shift", {"shift": 0.5}), ("zoom", {"zoom": 2.0}), ("zoom", {"zoom": 2, "grid_mode": True})):
        moved = lambda x, name=name, options=options: getattr(ndimage, name)(x, order=1, mode="nearest", **options)
        theirs = getattr(scipy.ndimage, name)(x, order=1, mode="nearest", **options)
        np.testing.assert_allclose(moved(x), theirs)
        np.testing.assert_allclose(value_and_grad(lambda x, moved=moved: np.sum(moved(x)))(x)[0], np.sum(theirs))


def test_no_times_and_states_that_are_matrices():
    assert integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0, 2.0], t_eval=[]).y.shape == (2, 0)
    with pytest.raises(ValueError, match="1-dimensional"):
        integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), np.ones((2, 2)))


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
@pytest.mark.parametrize("times", [None, [0.0, 0.4, 1.0]])
def test_slopes_that_are_numbers_and_states_of_single_precision(method, times):
    """SciPy's numbers: of one number for all states, and in double precision whatever it is given."""
    options = {"method": method, "t_eval": times, "rtol": 1e-9, "atol": 1e-11}
    for rhs in (lambda t, y: -y[0], lambda t, y: 2.0, lambda t, y: np.cos(t)):
        for y0 in ([1.0], np.float32([1.5, 0.3])):
            ours, theirs = [module.solve_ivp(rhs, (0.0, 1.0), y0, **options) for module in (integrate, scipy.integrate)]
            assert ours.y.dtype == np.float64
            shown = slice(None) if times else slice(-1, None)  # errors near rounding tell how long steps are
            np.testing.assert_allclose(ours.y[:, shown], theirs.y[:, shown], rtol=1e-7, atol=1e-9)
            slope = lambda q, rhs=rhs, y0=y0: np.sum(integrate.solve_ivp(rhs, (0.0, 1.0), q * np.array(y0), **options).y[:, -1])
            assert math.isclose(grad(slope)(1.0), numeric(slope, 1.0), rel_tol=1e-6, abs_tol=1e-9)


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
def test_steps_of_solve_ivp(method):
    """Without times, there are as many columns as steps: code is one for all numbers of steps."""

    def solved(p, where=integrate):
        fun = lambda t, y: np.array([y[1], -p[0] * np.sin(y[0]) - p[1] * y[1]])
        return where.solve_ivp(fun, (0.0, p[2]), np.array([1.0, 0.0]), method)

    def at_the_end(p):
        found = solved(p)
        return found.y[0, -1] + found.t[-1] * found.y[1, -1]

    def of_all(p):
        found = solved(p)
        return np.trapezoid(found.y[0] ** 2, found.t) + np.mean(found.y[1]) + np.sum(np.diff(found.t) ** 2)

    rng = np.random.default_rng(3)
    for fun in (at_the_end, of_all):
        derivative, oracle, numbers = value_and_grad(fun), grad(fun, mode="dynamic"), set()
        for _ in range(8):
            p = rng.uniform([1, 0.1, 2], [9, 0.3, 5])
            own, theirs = solved(p), solved(p, scipy.integrate)
            numbers.add(len(own.t))
            np.testing.assert_allclose(own.t, theirs.t, rtol=1e-6)
            np.testing.assert_allclose(own.y, theirs.y, rtol=1e-6, atol=1e-9)
            value, slope = derivative(p)
            assert math.isclose(value, fun(p), rel_tol=1e-9)
            np.testing.assert_allclose(slope, oracle(p), rtol=1e-7, atol=1e-9)
        assert len(numbers) > 3
        assert derivative.cache_info().misses <= 4


@pytest.mark.parametrize(
    "options", [{"first_step": 0.01}, {"max_step": 0.05}, {"atol": np.array([1e-9, 1e-6])}, {"rtol": 1e-9}]
)
def test_options_of_solve_ivp(options):
    fun = lambda t, y: np.array([y[1], -2.0 * y[0] + 0.1 * np.sin(t)])
    for times in (None, np.array([0.0, 0.25, 1.0])):
        both = [where.solve_ivp(fun, (0.0, 1.0), [1.0, 0.0], t_eval=times, **options) for where in (integrate, scipy.integrate)]
        np.testing.assert_allclose(both[0].t, both[1].t, rtol=1e-7)
        np.testing.assert_allclose(both[0].y, both[1].y, rtol=1e-7)
        steps = jacobian(lambda y0, times=times: integrate.solve_ivp(fun, (0.0, 1.0), y0, t_eval=times, **options).y[:, -1])
        turned = 2**0.5
        np.testing.assert_allclose(steps(np.array([1.0, 0.0])), [
            [math.cos(turned), math.sin(turned) / turned], [-turned * math.sin(turned), math.cos(turned)],
        ], rtol=1e-3)  # fmt: skip


def test_no_way_to_go():
    """Where it begins is where it ends."""
    for ends in ((1.0, 1.0), (1, 1)):
        for times in ([1.0], None):
            found = integrate.solve_ivp(lambda t, y: -y, ends, [2.0, 3.0], t_eval=times)
            np.testing.assert_array_equal(found.y, np.repeat([[2.0], [3.0]], len(found.t), axis=1))
    np.testing.assert_array_equal(integrate.odeint(lambda y, t: -y, [2.0], [0.0]), [[2.0]])
    np.testing.assert_array_equal(integrate.odeint(lambda y, t: -y, [2.0], [0.0, 0.0]), [[2.0], [2.0]])
    there = lambda t: integrate.solve_ivp(lambda t, y: -y, (t, t), [2.0], t_eval=np.stack([t])).y[0, 0]
    for derivative, slope in ((grad(lambda y0: integrate.odeint(lambda y, t: -y, y0, [0.0])[0, 0]), 1.0), (grad(there), 0.0)):
        for _ in range(3):
            assert derivative(2.0) == slope


def test_equations_that_have_no_solution_raise(monkeypatch):
    for fun in (lambda t, y: y**2, lambda t, y: np.array([np.nan])):
        for times in (None, np.linspace(0.0, 5.0, 4)):
            with pytest.raises(RuntimeError, match="the integration failed at t ="), np.errstate(all="ignore"):
                integrate.solve_ivp(fun, (0.0, 5.0), [1.0], t_eval=times)
    monkeypatch.setattr("symgrad.scipy.steps.MOST", 50)
    with pytest.raises(RuntimeError, match="equations are stiff"):
        grad(lambda k: integrate.solve_ivp(lambda t, y: -k * y, (0.0, 1.0), [1.0], t_eval=[1.0]).y[0, 0])(1e4)
    for times, what in (([0.0, 2.0], "within"), ([0.5, 0.2], "sorted")):
        with pytest.raises(ValueError, match=f"`t_eval` are not .*{what}"):
            integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], t_eval=times)
    with pytest.raises(ValueError, match="first_step"):
        integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], t_eval=[1.0], first_step=2.0)


def test_complex_states():
    times = np.linspace(0.0, 1.0, 4)
    solved = lambda w: integrate.solve_ivp(lambda t, y: 1j * w * y, (0.0, 1.0), [1.0 + 0j], t_eval=times, rtol=1e-9).y
    np.testing.assert_allclose(solved(2.0)[0], np.exp(2j * times), rtol=1e-6)
    slope = grad(lambda w: np.sum(solved(w).real))
    for w in (2.0, 2.0, 2.5, 1.5):
        assert math.isclose(slope(w), np.sum(-times * np.sin(w * times)), rel_tol=1e-6)


def test_stiff_methods_are_refused():
    with pytest.raises(ValueError, match="choose one of RK23, RK45, DOP853"):
        integrate.solve_ivp(lambda t, y: -y, (0, 1), [1.0], method="Radau")


def test_other_names_are_scipys():
    assert special.erf is scipy.special.erf
    assert stats.theilslopes is scipy.stats.theilslopes
    assert len(samples_of(REGISTRY[scipy.special.erf])) > 3


# -- SciPy's own functions, called by mistake ----------------------------------------------------------------------

FROZEN = scipy.stats.gamma(2.0)
HELD = {
    "law": scipy.stats.norm,
    "many": scipy.stats.multivariate_normal(np.zeros(2)),
    "eye": scipy.sparse.csc_array(np.eye(2)),
}


@pytest.mark.parametrize(
    ("fun", "advice"),
    [
        (lambda x: scipy.special.logsumexp(x), "write symgrad.scipy.special.logsumexp"),
        (lambda x: scipy.stats.norm.logpdf(x).sum(), "write symgrad.scipy.stats.norm.logpdf"),
        (lambda x: scipy.linalg.expm(np.outer(x, x)).sum(), "write symgrad.scipy.linalg.expm"),
        (lambda x: scipy.optimize.brentq(lambda y: y - x[0], 0, 1), "write symgrad.scipy.optimize.brentq"),
        (lambda x: FROZEN.logpdf(x).sum(), "write symgrad.scipy.stats.gamma.logpdf"),
        (lambda x: HELD["law"].cdf(x).sum(), "write symgrad.scipy.stats.norm.cdf"),
        (
            lambda x: scipy.stats.multivariate_normal(np.zeros(2)).logpdf(x),
            "write symgrad.scipy.stats.multivariate_normal.logpdf",
        ),
        (lambda x: scipy.stats.norm.fit(x)[0], "give it a rule with symgrad.primitive"),
        (
            lambda x: scipy.sparse.linalg.spsolve(scipy.sparse.eye_array(2).tocsc(), x).sum(),
            "write symgrad.scipy.sparse.spsolve",
        ),
        (lambda x: scipy.linalg.signm(np.outer(x, x)).sum(), "give it a rule with symgrad.primitive"),
        (lambda x: linalg.signm(np.outer(x, x)).sum(), "linalg.signm takes plain arrays only"),
        (lambda x: fft.fht(x, 0.1, 0.5).sum(), "fft.fht takes plain arrays only"),
        (lambda x: scipy.fft.hfftn(x).sum(), "write symgrad.scipy.fft.hfftn"),
        (lambda x: linalg.schur(np.outer(x, x))[0].sum(), "scipy.linalg.schur: the triangle and the vectors"),
        (lambda x: linalg.null_space(np.outer(x, x)).sum(), "write np.eye(n) - np.linalg.pinv(a) @ a"),
        (lambda x: scipy.special.logsumexp(np.outer(x, np.ones(3000))), "write symgrad.scipy.special.logsumexp"),
        (lambda x: linalg.orth([x]).sum(), "write np.linalg.qr(a)[0]"),
        (lambda x: linalg.eigh_tridiagonal(x, x[1:])[1].sum(), "its vectors have no derivative rule; write np.linalg.eigh("),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_the_error_names_the_mirror(fun, advice, mode):
    with pytest.raises((NotDifferentiable, LeavesNumPy), match=r"test_scipy.py:\d+: .*" + re.escape(advice)):
        grad(fun, mode=mode)(np.array([0.3, 0.7]))


# -- sparse arrays -------------------------------------------------------------------------------------------------

ROWS, COLUMNS = np.array([0, 1, 2, 2, 0, 3, 3]), np.array([0, 1, 1, 2, 3, 3, 3])
HELD_ARRAYS = {
    "csr_array": scipy.sparse.csr_array((np.arange(1.0, 8.0), (ROWS, COLUMNS))),
    "csr_matrix": scipy.sparse.csr_matrix((np.arange(1.0, 8.0), (ROWS, COLUMNS))),
    "csc_array": scipy.sparse.csc_array((np.arange(1.0, 8.0), (ROWS, COLUMNS))),
    "dia_array": scipy.sparse.dia_array(np.diag([2.0, 3.0, 5.0, 7.0])),
    "integers": scipy.sparse.csr_array(np.eye(4, dtype=int)[[0, 0, 2, 3]]),
    "complex": scipy.sparse.csr_array((np.arange(1.0, 8.0) * (1 + 2j), (ROWS, COLUMNS))),
    "wide": scipy.sparse.csr_array(np.arange(12.0).reshape(3, 4) % 5),
}


@pytest.mark.parametrize("kind", HELD_ARRAYS)
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_products_with_sparse_arrays(kind, mode):
    a, x = HELD_ARRAYS[kind], np.array([0.5, -1.0, 2.0, 3.0])
    n = a.shape[0]
    pairs = {
        "@": (lambda x: a @ x, lambda a, x: a @ x),
        "dot": (lambda x: a.dot(x), lambda a, x: a @ x),
        "columns": (lambda x: a @ np.outer(x, x), lambda a, x: a @ np.outer(x, x)),
        "right": (lambda x: x[:n] @ a, lambda a, x: x[:n] @ a),
        "rows": (lambda x: np.outer(x, x)[:, :n] @ a, lambda a, x: np.outer(x, x)[:, :n] @ a),
        "turned": (lambda x: a.T @ (a @ x), lambda a, x: a.T @ (a @ x)),
        "loop": (lambda x: sum(a @ (k * x) for k in range(1, 9)), lambda a, x: 36.0 * (a @ x)),
    }
    full = a.toarray()
    for name, (sparse_one, dense_one) in pairs.items():
        derivative = jacobian(lambda x, product=sparse_one: np.real(product(x) ** 2), mode=mode)
        expected = jacobian(lambda x, product=dense_one: np.real(product(full, x) ** 2), mode=mode)(x)
        for _ in range(3):
            np.testing.assert_allclose(derivative(x), expected, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@np.errstate(all="ignore")
def test_rows_of_sparse_products_that_are_not_selected(mode):
    a, x, shown = sparse.csr_array(np.diag([2.0, 3.0])), np.array([1.5, 0.0]), np.array([True, False])
    for fun in (lambda x: np.where(shown, a @ np.sqrt(x), 0.0), lambda x: (a @ np.log(x))[shown]):
        derivative = grad(lambda x, fun=fun: np.sum(fun(x) ** 2), mode=mode)
        for _ in range(3):
            found = derivative(x)
            assert np.isfinite(found).all()
            assert found[1] == 0


def test_sparse_arrays_are_read_anew():
    a, x = scipy.sparse.csr_array(np.arange(12.0).reshape(3, 4) % 5), np.arange(4.0)
    derivative = grad(lambda x: np.sum((a @ x) ** 2))
    for factor in (1.0, 2.0, 3.0, -1.0):
        a.data *= factor
        np.testing.assert_allclose(derivative(x), 2 * a.T @ (a @ x))
    assert "compiled" in derivative.explain()
    a = scipy.sparse.csr_array(np.eye(4))
    np.testing.assert_allclose(derivative(x), 2 * x)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
def test_sparse_arrays_of_traced_elements(make, mode):
    x, data = np.array([0.5, -1.0, 2.0, 3.0]), np.array([1.0, 2.0, -1.0, 3.0, 0.5, 2.0, 1.0])  # the last two are one place
    dense = lambda d: np.array([[d[0], 0, 0, d[4]], [0, d[1], 0, 0], [0, d[2], d[3], 0], [0, 0, 0, d[5] + d[6]]])
    for fun, same in {
        (lambda d: make((d, (ROWS, COLUMNS))) @ x): lambda d: dense(d) @ x,
        (lambda d: x @ make((d, (ROWS, COLUMNS)), shape=(4, 4))): lambda d: x @ dense(d),
        (lambda d: make((d, (ROWS, COLUMNS))).toarray()): dense,
        (lambda d: sparse.spsolve(make((d * d, (ROWS, COLUMNS))), np.sin(d[:4]))): lambda d: np.linalg.solve(
            dense(d * d), np.sin(d[:4])
        ),
    }.items():
        np.testing.assert_allclose(fun(data), same(data))
        for _ in range(3):
            np.testing.assert_allclose(jacobian(fun, mode=mode)(data), jacobian(same)(data), rtol=1e-10, atol=1e-12)
        check_grads(lambda d, fun=fun: np.sum(np.sin(fun(d))), (data,), order=2)


def test_solutions_with_a_sparse_array_from_outside():
    a, b = scipy.sparse.csc_array(HELD_ARRAYS["csr_array"]), np.arange(1.0, 5.0)
    derivative = jacobian(lambda b: sparse.spsolve(a, b))
    for factor in (1.0, 2.0, 3.0):
        a.data *= factor
        np.testing.assert_allclose(derivative(b), np.linalg.inv(a.toarray()), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_a_right_hand_side_of_one_column_is_a_vector(mode):
    """... to SciPy, whose solution is one."""
    a = HELD_ARRAYS["csr_array"]
    matrix, b, weights = scipy.sparse.csc_array(a), np.arange(1.0, 5.0)[:, None], np.array([1.0, -2.0, 0.5, 3.0])
    solved = lambda b: sparse.spsolve(matrix, b)
    assert solved(b).shape == scipy.sparse.linalg.spsolve(matrix, b).shape == (4,)
    inverse, derivative = np.linalg.inv(a.toarray()), grad(lambda b: weights @ solved(b), mode=mode)
    for _ in range(3):
        np.testing.assert_allclose(derivative(b), (weights @ inverse)[:, None], rtol=1e-12)
    np.testing.assert_allclose(jvp(solved, (b,), (b,))[1], inverse @ b[:, 0], rtol=1e-12, atol=1e-15)
    by_data = lambda x, b: sparse.spsolve(sparse.csc_array((x, matrix.indices, matrix.indptr), shape=(4, 4)), b)
    slopes = grad(lambda x, b: weights @ by_data(x, b), mode=mode)
    np.testing.assert_allclose(slopes(matrix.data, b), slopes(matrix.data, b[:, 0]), rtol=1e-12, atol=1e-15)


def test_shapes_of_sparse_products():
    a = HELD_ARRAYS["wide"]
    for fun in (lambda x: a @ x[:3], lambda x: x @ a, lambda x: a @ np.ones((2, 4, 1)) * x):
        with pytest.raises(ValueError, match=r"sparse array of shape|matmul|could not interpret|dimension"):
            grad(lambda x, fun=fun: np.sum(fun(x)))(np.ones(4))


# -- integrals and curves ------------------------------------------------------------------------------------------

INTEGRALS = {
    "finite": (0.0, 2.0, lambda x, t: np.exp(-t * x) * np.sin(3 * x)),
    "backwards": (2.0, 0.0, lambda x, t: x**t),
    "to infinity": (0.5, np.inf, lambda x, t: np.exp(-t * x)),
    "from infinity": (-np.inf, 1.0, lambda x, t: np.exp(t * x)),
    "back to infinity": (1.0, -np.inf, lambda x, t: np.exp(t * x)),
    "all": (-np.inf, np.inf, lambda x, t: np.exp(-t * x * x)),
    "all, backwards": (np.inf, -np.inf, lambda x, t: np.exp(-t * x * x)),
}


@pytest.mark.parametrize("name", INTEGRALS)
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_quad(name, mode):
    a, b, f = INTEGRALS[name]
    value, slope = value_and_grad(lambda t: integrate.quad(f, a, b, args=(t,))[0], mode=mode)(1.3)
    assert math.isclose(value, scipy.integrate.quad(f, a, b, args=(1.3,))[0], rel_tol=1e-13)
    assert math.isclose(slope, numeric(lambda t: scipy.integrate.quad(f, a, b, args=(t,))[0], 1.3), rel_tol=1e-6)


def test_quad_by_its_ends_and_at_poles():
    between = lambda a: integrate.quad(lambda x: np.cos(x), a, 2 * a)[0]
    assert math.isclose(grad(between)(0.7), 2 * math.cos(1.4) - math.cos(0.7), rel_tol=1e-12)
    assert math.isclose(grad(lambda a: integrate.quad(lambda x: np.exp(-x), a, np.inf)[0])(0.7), -math.exp(-0.7), rel_tol=1e-8)
    assert math.isclose(integrate.quad(np.log, 0, 1)[0], -1.0)
    with pytest.raises(RuntimeError, match=r"test_scipy.py:\d+: .*split off what is singular"):
        grad(lambda t: integrate.quad(lambda x: t * np.log(np.abs(x - 0.3)), 0, 1)[0])(1.0)


ROUGH = {
    "logarithm": (0.0, 1.0, lambda x, t: t * np.log(x)),
    "root": (0.0, 1.0, lambda x, t: np.sqrt(x) * np.exp(-t * x)),
    "cube root": (0.0, 1.0, lambda x, t: np.cbrt(x) * t**2),
    "roots at both ends": (-1.0, 1.0, lambda x, t: np.sqrt(1 - x * x) * np.exp(t * x)),
    "root and step": (0.0, 60.0, lambda x, t: np.sqrt(x) / (np.exp((x - 1) / t) + 1)),
    "overflow": (0.0, np.inf, lambda x, t: x**3 / np.expm1(t * x)),
    "root and overflow": (0.0, np.inf, lambda x, t: np.sqrt(x) / (np.exp((x - 1) / t) + 1)),
    "single precision": (0.0, 1.2, lambda x, t: np.exp(-np.float32(t) * x) * np.cos(np.float32(4.0) * x)),
}


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("name", ROUGH)
def test_quad_of_what_ends_in_a_root_or_overflows(name):
    a, b, f = ROUGH[name]
    derivative = value_and_grad(lambda t: integrate.quad(f, a, b, args=(t,))[0])
    tolerance = 1e-3 if name == "single precision" else 1e-6
    for t in (0.7, 0.75, 0.8, 0.85):
        value, slope = derivative(t)
        assert math.isclose(value, scipy.integrate.quad(f, a, b, args=(t,))[0], rel_tol=1e-12)
        step = 1e-2 if name == "single precision" else 1e-4
        up, down = (scipy.integrate.quad(f, a, b, args=(t + h,))[0] for h in (step, -step))
        assert math.isclose(slope, (up - down) / (2 * step), rel_tol=tolerance)


def test_quad_whose_ends_move_where_there_is_a_root():
    half = value_and_grad(lambda a: integrate.quad(lambda x: np.sqrt(a * a - x * x), -a, a)[0])
    for a in (0.7, 0.8, 0.9):
        np.testing.assert_allclose(half(a), (math.pi * a * a / 2, math.pi * a), rtol=1e-9)


STEPS = {
    "if": lambda x, a: 1.0 if x < a else 2.0,
    "where": lambda x, a: np.where(x < a, 1.0, 2.0),
    "sign": lambda x, a: 1.5 + 0.5 * np.sign(x - a),
    "floor": lambda x, a: 1.0 + np.floor(x / a),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("a", [1.37, 1.5])
def test_quad_of_what_jumps_where_it_is_differentiated_by(name, a):
    f = STEPS[name]
    with pytest.raises(NotDifferentiable, match=r"test_scipy.py:\d+: .*jumps at a place .* points="):
        grad(lambda a: integrate.quad(f, 0, 2.5, args=(a,))[0])(a)
    named = grad(lambda a: integrate.quad(f, 0, 2.5, args=(a,), points=[a])[0])
    for place in (a, a + 0.01, a + 0.02):
        assert math.isclose(named(place), -1.0, rel_tol=1e-9)
    fixed = grad(lambda t: integrate.quad(lambda x: t * f(x, 1.37), 0, 2.5)[0])  # it stays where it is
    assert math.isclose(fixed(a), scipy.integrate.quad(f, 0, 2.5, args=(1.37,))[0], rel_tol=1e-6)


def test_quad_of_a_kink_that_moves():
    away = value_and_grad(lambda a: integrate.quad(lambda x: np.abs(x - a), 0, 1)[0])
    named = value_and_grad(lambda a: integrate.quad(lambda x: np.abs(x - a), 0, 1, points=[a])[0])
    for a in (0.3, 0.5, 0.61):
        np.testing.assert_allclose(away(a), ((a * a + (1 - a) ** 2) / 2, 2 * a - 1), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(named(a), ((a * a + (1 - a) ** 2) / 2, 2 * a - 1), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_samples(n):
    y, x = rng.normal(size=(2, n)), 3 * np.sort(rng.uniform(size=n))
    for options in ({}, {"dx": 0.3}, {"x": x}):
        for name in ("simpson", "cumulative_trapezoid"):
            ours, theirs = getattr(integrate, name), getattr(scipy.integrate, name)
            np.testing.assert_allclose(ours(y, **options), theirs(y, **options))
            np.testing.assert_allclose(ours(y.T, axis=0, **options), theirs(y.T, axis=0, **options))
    started = integrate.cumulative_trapezoid(y, x, initial=0)
    np.testing.assert_allclose(started, scipy.integrate.cumulative_trapezoid(y, x, initial=0))
    for fun in (integrate.simpson, integrate.cumulative_trapezoid):
        agrees(lambda y, x, fun=fun: fun(y, x=x), y, x)
        for places, axis in ((np.array([x, x]), 0), (x, 1)):  # of other dimensions, or of another length
            with pytest.raises(ValueError, match="as long along the axis"):
                fun(y[0] if axis == 0 else np.zeros((2, n + 1)), x=places)


def test_places_in_several_dimensions_are_those_of_the_samples():
    y, x = rng.normal(size=(2, 3, 4)), np.sort(rng.normal(size=(3, 4)), axis=0)
    for axis in range(-3, 3):
        whole = np.broadcast_to(x, y.shape)  # of which SciPy knew no axis before 1.14
        np.testing.assert_allclose(integrate.trapezoid(y, x, axis=axis), scipy.integrate.trapezoid(y, whole, axis=axis))
    agrees(lambda y, x: integrate.trapezoid(y, x, axis=1), y, x)
    with pytest.raises(ValueError, match="more dimensions"):
        integrate.trapezoid(y[0, 0], x)


def test_least_squares():
    times, data = np.linspace(0, 1, 7), np.array([2.1, 1.5, 1.3, 0.9, 0.75, 0.6, 0.4])

    def fit(data, solve=optimize.least_squares, **options):
        return solve(lambda p: p[0] * np.exp(-p[1] * times) - data, np.ones(2), xtol=1e-14, ftol=1e-14, gtol=1e-14, **options).x

    for options in ({}, {"bounds": ([0.0, 0.0], [1.5, 9.0])}):
        slopes = jacobian(lambda data, options=options: fit(data, **options))(data)
        for k, slope in enumerate(slopes):
            precise = {"jac": "3-point", **options}  # far more digits than the step has
            expected = numeric(lambda data: fit(data, scipy.optimize.least_squares, **precise)[k], data, 1e-3)  # noqa: B023
            np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="loss='linear'"):
        fit(data, loss="huber")
    lowest = lambda c: optimize.minimize_scalar(lambda x: (x - c) ** 2 + x**4 / 4).x
    assert math.isclose(grad(lowest)(1.0), 2 / (2 + 3 * lowest(1.0) ** 2), rel_tol=1e-7)


def test_a_minimum_at_a_bound_is_the_bound():
    lowest = lambda a, low, high: optimize.minimize_scalar(lambda x: (x + a) ** 2, bounds=(low, high)).x
    slopes = value_and_grad(lowest, argnums=(0, 1, 2))
    for a, value, expected in (
        (1.0, 0.0, (0.0, 1.0, 0.0)), (-2.0, 1.0, (0.0, 0.0, 1.0)), (-0.5, 0.5, (-1.0, 0.0, 0.0)), (1e-9, 0.0, (0.0, 1.0, 0.0))
    ):  # fmt: skip
        for _ in range(2):
            found = slopes(a, 0.0, 1.0)
            np.testing.assert_allclose(found[0], value, atol=1e-8)
            np.testing.assert_allclose(found[1], expected, atol=1e-8)


def _valley(x, a):
    return np.array([10 * (x[1] - a * x[0] ** 2), 1 - x[0]])


@pytest.mark.parametrize(
    "fun",
    [
        lambda a: optimize.minimize(lambda x: np.sum(_valley(x, a) ** 2), [-1.0, 2.0], options={"maxiter": 2}).x[0],
        lambda a: optimize.least_squares(lambda x: _valley(x, a), [-1.0, 2.0], max_nfev=2).x[0],
        lambda a: optimize.root_scalar(lambda x: x**3 - a, method="secant", x0=5.0, x1=4.0, maxiter=2).root,
    ],
    ids=["minimize", "least_squares", "root_scalar"],
)  # fmt: skip
def test_where_a_solver_stopped_short_there_is_no_derivative(fun):
    with pytest.raises(RuntimeError, match="stopped where Newton's method does not converge"):
        grad(fun)(1.0)


@pytest.mark.parametrize("kind", ["not-a-knot", "natural", "clamped"])
@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_cubic_spline(n, kind):
    x, at = np.sort(rng.uniform(size=n)) * 3, np.array([0.11, 0.93, 1.7, 2.9, -0.2])
    for axis, y in ((0, rng.normal(size=n)), (1, rng.normal(size=(2, n, 3)))):
        ours, theirs = (module.CubicSpline(x, y, axis, kind) for module in (interpolate, scipy.interpolate))
        for nu in range(4):
            np.testing.assert_allclose(ours(at, nu), theirs(at, nu), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(ours(at.reshape(5, 1)), theirs(at.reshape(5, 1)), rtol=1e-9, atol=1e-9)
    agrees(
        lambda x, y, at: interpolate.CubicSpline(x, y, bc_type=kind)(at), np.linspace(0, 3, n) ** 1.1, rng.normal(size=n), at
    )
    assert np.isnan(interpolate.CubicSpline(x, x, extrapolate=False)(-1.0))


def test_pchip():
    x, at = np.array([0.0, 0.7, 1.5, 2.0, 3.1, 3.5]), np.array([0.11, 0.93, 1.7, 2.9, -0.2, 3.7])
    for n in (2, 3, 4, 6):
        for axis, y in ((0, rng.normal(size=n)), (1, rng.normal(size=(2, n, 3))), (-1, np.sort(rng.normal(size=(2, n))))):
            ours, theirs = (module.PchipInterpolator(x[:n], y, axis) for module in (interpolate, scipy.interpolate))
            for nu in range(3):
                np.testing.assert_allclose(ours(at, nu), theirs(at, nu), rtol=1e-9, atol=1e-9)
    flat = np.array([1.0, 1.0, 2.0, 2.5, 0.3, 0.7])
    np.testing.assert_allclose(interpolate.pchip_interpolate(x, flat, at), scipy.interpolate.pchip_interpolate(x, flat, at))
    agrees(lambda x, y, at: interpolate.PchipInterpolator(x, y)(at), x, np.array([1.0, 1.3, 2.0, 2.5, 0.3, 0.7]), at)
    agrees(lambda x, y, at: interpolate.CubicHermiteSpline(x, y, y * y)(at), x, rng.normal(size=6), at)


@pytest.mark.parametrize("method", ["akima", "makima"])
def test_akima(method):
    x, at = np.array([0.0, 0.7, 1.5, 2.0, 3.1, 3.5]), np.array([0.11, 0.93, 1.7, 2.9, -0.2, 3.7])
    for n in (2, 3, 4, 6):
        for axis, y in (
            (0, rng.normal(size=n)),
            (1, rng.normal(size=(2, n, 3))),
            (0, 2 * x[:n]),
            (0, np.maximum(x[:n] - 1, 0)),
        ):
            for options in ({}, {"extrapolate": True}):
                ours, theirs = (
                    module.Akima1DInterpolator(x[:n], y, axis, method=method, **options)
                    for module in (interpolate, scipy.interpolate)
                )
                for nu in range(3):
                    np.testing.assert_allclose(ours(at, nu), theirs(at, nu), rtol=1e-9, atol=1e-9)
    made = lambda x, y, at: interpolate.Akima1DInterpolator(x, y, method=method)(at)
    agrees(made, x, np.array([1.0, 1.3, 2.0, 2.5, 0.3, 0.7]), at[:4])
    for module in (interpolate, scipy.interpolate):
        with pytest.raises(NotImplementedError, match="is unsupported"):
            module.Akima1DInterpolator(x, x, method="no")
        with pytest.raises(ValueError, match="only works with real values"):
            module.Akima1DInterpolator(x, x * 1j)


MADE = {
    "CubicSpline": lambda part, x, y, **options: part.CubicSpline(x, y, **options),
    "PchipInterpolator": lambda part, x, y, **options: part.PchipInterpolator(x, y, **options),
    "CubicHermiteSpline": lambda part, x, y, **options: part.CubicHermiteSpline(x, y, 2 * y, **options),
    "Akima1DInterpolator": lambda part, x, y, **options: part.Akima1DInterpolator(x, y, **options),
}


@pytest.mark.parametrize("kind", MADE)
def test_derivatives_and_integrals_of_splines(kind):
    x, at = np.array([0.3, 0.7, 1.5, 2.0, 3.1, 3.5]), np.array([[0.31, 0.93, 1.7], [2.9, -0.2, 3.7]])
    for options, y in (({}, rng.normal(size=6)), ({"axis": 1, "extrapolate": False}, rng.normal(size=(2, 6, 3)))):
        ours, theirs = (MADE[kind](part, x, y, **options) for part in (interpolate, scipy.interpolate))
        for nu in range(-2, 6):
            np.testing.assert_allclose(ours.derivative(nu)(at), theirs.derivative(nu)(at), 1e-9, 1e-9)
            np.testing.assert_allclose(ours.antiderivative(nu)(at, 1), theirs.antiderivative(nu)(at, 1), 1e-9, 1e-9)
        np.testing.assert_allclose(
            ours.antiderivative().derivative(2)(at), theirs.antiderivative().derivative(2)(at), 1e-9, 1e-9
        )
        for ends in ((0.4, 3.3), (2.2, 0.3), (1.0, 1.0), (-1.0, 2.0), (1.0, 4.0)):
            for extrapolate in (None, True, False):
                mine, expected = (spline.integrate(*ends, extrapolate) for spline in (ours, theirs))
                np.testing.assert_allclose(mine, expected, 1e-9, 1e-9)
    made = lambda x, y: MADE[kind](interpolate, x, y)
    places, heights = at.ravel()[:4], np.array([1.0, 1.3, 2.0, 2.5, 0.3, 0.7])
    agrees(lambda x, y, at: made(x, y).derivative()(at) + made(x, y).antiderivative(2)(at), x, heights, places)
    agrees(lambda x, y, a, b: made(x, y).integrate(a, b), x, heights, 0.4, 3.3)
    with pytest.raises(ValueError, match="extrapolate='periodic' is not here"):
        made(x, heights).integrate(0.4, 3.3, "periodic")


@pytest.mark.parametrize("kind", ["linear", "slinear", "cubic", *interpolate.STEPS, 0, 1, 3])
def test_interp1d(kind):
    x, at = np.array([0.0, 0.7, 1.5, 2.0, 3.1]), np.array([[0.11, 0.7, 1.7], [2.9, 0.0, 3.1]])
    for axis, y in ((-1, rng.normal(size=5)), (1, rng.normal(size=(2, 5, 3)))):
        turned = rng.permutation(5)
        for options in ({}, {"fill_value": "extrapolate"}, {"bounds_error": False}, {"fill_value": (-1.0, 2.0)}):
            given = (x[turned], np.take(y, turned, axis), kind, axis)
            ours, theirs = (
                module.interp1d(*given, **{"bounds_error": False, **options} if "fill_value" in options else options)
                for module in (interpolate, scipy.interpolate)
            )
            for points in (at, at + 1.0, at - 1.0, 0.3) if options else (at, 0.3):
                np.testing.assert_allclose(ours(points), theirs(points), rtol=1e-9, atol=1e-9)
    agrees(lambda x, y, at: interpolate.interp1d(x, y, kind)(at), x, rng.normal(size=5), np.array([0.11, 1.7, 2.9]))
    with pytest.raises(ValueError, match="outside of the interpolation range"):
        interpolate.interp1d(x, x, kind)(4.0)
    with pytest.raises(NotDifferentiable, match="no derivative rule for kind='quadratic'; choose"):
        interpolate.interp1d(x, x, "quadratic")


def test_splines_of_degree_zero_are_splines():
    """... to SciPy: of double precision, and no number where they are asked for none."""
    x, at = np.arange(4.0), np.array([0.5, np.nan, 3.0])
    for dtype, kind in itertools.product(("f4", "f8", "i4"), ("zero", 0)):
        y = np.array([1, 2, 3, 4], dtype)
        ours, theirs = (part.interp1d(x, y, kind)(at) for part in (interpolate, scipy.interpolate))
        np.testing.assert_array_equal(ours, theirs, strict=True)
    slope = grad(lambda y: np.nansum(interpolate.interp1d(x, y, "zero")(at)))(np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(slope, [1.0, 0.0, 0.0, 1.0])


def test_what_curves_are_made_of():
    """Their coefficients are SciPy's; what they have not says so."""
    x, y = np.arange(5.0) ** 1.2, rng.normal(size=(5, 2))
    for name in ("CubicSpline", "PchipInterpolator", "Akima1DInterpolator"):
        ours, theirs = (getattr(module, name)(x, y) for module in (interpolate, scipy.interpolate))
        np.testing.assert_allclose(ours.c, theirs.c, rtol=1e-9, atol=1e-12)
        with pytest.raises(AttributeError, match=rf"{name} has no roots; scipy.interpolate.{name} has it, of plain arrays"):
            ours.roots()
    agrees(lambda x, y: interpolate.CubicSpline(x, y).c, x, y)
    assert not hasattr(interpolate.interp1d(x, y[:, 0]), "colour")


def test_make_interp_spline():
    x, y, at = np.arange(5.0) ** 1.2, rng.normal(size=(5, 2)), np.array([0.3, 2.9, 7.0])
    for options in ({}, {"k": 1}, {"bc_type": "natural"}):
        ours, theirs = (module.make_interp_spline(x, y, **options) for module in (interpolate, scipy.interpolate))
        np.testing.assert_allclose(ours(at), theirs(at), rtol=1e-9)
    for nu in (-2, -1, 1):
        made = [module.make_interp_spline(x, y, 1).derivative(nu)(at[:2]) for module in (interpolate, scipy.interpolate)]
        np.testing.assert_allclose(*made, rtol=1e-9)
    for k in (1, 3):
        agrees(lambda x, y, at, k=k: interpolate.make_interp_spline(x, y, k)(at), x, y, at)
    with pytest.raises(NotDifferentiable, match="is here for k=1 and for k=3"):
        interpolate.make_interp_spline(x, y, 2)


@pytest.mark.parametrize("method", ["linear", "slinear", "nearest"])
def test_regular_grid(method):
    grid, values = (
        (np.array([0.0, 0.5, 2.0]), np.array([3.0, 1.0, 0.5, 0.0]), np.array([1.0, 2.0])),
        rng.normal(size=(3, 4, 2, 2)),
    )
    inside = np.array([[0.2, 0.3, 1.2], [2.0, 3.0, 2.0], [0.0, 0.0, 1.0], [1.3, 1.7, 1.9]])
    for bounds in ({}, {"bounds_error": False}, {"bounds_error": False, "fill_value": None}):
        ours, theirs = (
            module.RegularGridInterpolator(grid, values, method, **bounds) for module in (interpolate, scipy.interpolate)
        )
        for at in (inside, inside + 1.5, inside - 1.5, tuple(inside.T), inside.reshape(2, 2, 3)) if bounds else (inside,):
            np.testing.assert_allclose(ours(at), theirs(at), rtol=1e-12, atol=1e-12)
    for at in (inside, tuple(inside.T), inside[0]):
        np.testing.assert_allclose(
            *(module.interpn(grid, values, at, method) for module in (interpolate, scipy.interpolate)), rtol=1e-12
        )
    turn = lambda grid: np.flip(grid) * np.array([1.0, 1.0, 1.0])
    fun = lambda axis, values, at: interpolate.RegularGridInterpolator((axis, turn(grid[0])), values, method)(at)
    agrees(fun, np.array([0.0, 1.0, 1.5]), rng.normal(size=(3, 3)), np.array([[0.2, 0.3], [1.2, 1.7]]))
    with pytest.raises(ValueError, match="out of bounds"):
        interpolate.RegularGridInterpolator(grid, values)(inside + 5.0)
    with pytest.raises(NotDifferentiable, match="no derivative rule for method='cubic'"):
        interpolate.RegularGridInterpolator(grid, values, "cubic")


@pytest.mark.parametrize("n", [1, 2, 6])
def test_filters_with_a_state(n):
    for b, a, x, axis in (
        (np.array([0.5, 1.0, 0.3]), np.array([2.0, 0.4]), rng.normal(size=n), -1),
        (np.array([0.5]), np.array([1.0, 0.4, -0.2, 0.1]), rng.normal(size=(2, n, 3)), 1),
    ):
        shape = list(x.shape)
        shape[axis] = max(len(a), len(b)) - 1
        zi = rng.normal(size=shape)
        for ours, theirs in zip(signal.lfilter(b, a, x, axis, zi), scipy.signal.lfilter(b, a, x, axis, zi), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)
        agrees(lambda b, a, x, zi: signal.lfilter(b, a, x, axis, zi), b, a, x, zi)  # noqa: B023
    agrees(signal.sosfilt, np.abs(rng.normal(size=(2, 6))) + 1.0, rng.normal(size=5))
    zi = rng.normal(size=(len(SECTIONS), 2))
    for ours, theirs in zip(
        signal.sosfilt(SECTIONS, x[0, :, 0], zi=zi), scipy.signal.sosfilt(SECTIONS, x[0, :, 0], zi=zi), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("mode", ["constant", "nearest", "mirror", "wrap", "interp"])
@pytest.mark.parametrize("deriv", [0, 1, 2])
def test_derivatives_of_fitted_polynomials(mode, deriv):
    x, options = np.arange(8.0) ** 2, {"deriv": deriv, "mode": mode, "cval": 3.0}
    for delta in (0.5, 3.0):
        expected = scipy.signal.savgol_filter(x, 5, 2, delta=delta, **options)
        np.testing.assert_allclose(signal.savgol_filter(x, 5, 2, delta=delta, **options), expected, 1e-12, 1e-12)
    agrees(lambda x, delta, cval: signal.savgol_filter(x, 5, 2, **{**options, "delta": delta, "cval": cval}), x, 0.5, 3.0)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.float64, int])
def test_centers_of_mass(dtype):
    x, labels = (rng.uniform(1, 2, (3, 4)) * 9).astype(dtype), np.arange(12).reshape(3, 4) % 3
    several = [] if dtype is np.complex64 else [(labels, [0, 2])]  # of which SciPy drops the imaginary part, or raises
    for options in ((), (labels,), (labels, 2), (labels[0], 1), *several):
        ours, theirs = ndimage.center_of_mass(x, *options), scipy.ndimage.center_of_mass(x, *options)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
        assert type(ours) is type(theirs)
        if options == ():
            assert type(ours[0]) is type(theirs[0])
        if dtype is np.float64:
            agrees(lambda x, options=options: np.array(ndimage.center_of_mass(x, *options)), x)
    if dtype is not int:
        value = lambda x: np.real(ndimage.center_of_mass(x)[1])
        assert value_and_grad(value)(x)[0].dtype == value(x).dtype


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.float64])
def test_objects_that_scipy_makes_keep_the_precision(dtype):
    """The zeros of an array of objects, which SciPy's own code makes for traced numbers, are Python's."""
    x = np.ones((2, 2), dtype)
    for fun in (scipy.linalg.block_diag, linalg.block_diag):
        derivative = value_and_grad(lambda x, fun=fun: np.real(np.sum(fun(x, x) ** 2)))
        for _ in range(3):
            value, slopes = derivative(x)
            assert value.dtype == x.real.dtype
            np.testing.assert_array_equal(slopes, np.full((2, 2), 4, dtype), strict=True)


def test_filters_keep_single_precision():
    x = np.arange(9.0, dtype=np.float32)
    for name in ("ndimage.laplace", "ndimage.sobel", "signal.detrend", "ndimage.uniform_filter"):
        part, function = name.split(".")
        ours, theirs = (getattr(getattr(module, part), function) for module in (symgrad.scipy, scipy))
        assert ours(x).dtype == theirs(x).dtype == grad(lambda x: np.sum(ours(x)))(x).dtype == np.float32  # noqa: B023
        np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-5, atol=1e-5)


def test_integrals_of_samples_keep_single_precision():
    y = np.arange(4, dtype=np.float32)
    for options in ({}, {"initial": 0}):
        found = integrate.cumulative_trapezoid(y, **options)
        np.testing.assert_array_equal(found, scipy.integrate.cumulative_trapezoid(y, **options), strict=True)


@pytest.mark.filterwarnings("ignore:Input data is complex:UserWarning", "ignore:NOLA:UserWarning")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64, np.complex128])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("welch", {"nperseg": 5}), ("welch", {"nperseg": 4, "average": "median"}), ("periodogram", {}),
        ("stft", {"nperseg": 4}), ("csd", {"y": np.arange(9.0, dtype=np.float32), "nperseg": 3, "average": "median"}),
        ("resample", {"num": 7}),
        ("resample", {"num": 17, "window": "hann"}), ("resample", {"num": 8, "domain": "freq"}), ("hilbert", {}), ("istft", {}),
        ("istft", {"input_onesided": False, "boundary": False}),
    ],
)  # fmt: skip
def test_spectra_of_other_kinds(name, options, dtype):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=12) + (1j * rng.normal(size=12) if np.iscomplexobj(dtype(1)) else 0.0)).astype(dtype)
    x = x.reshape(4, 3) if name == "istft" else x
    if name == "hilbert" and x.dtype.kind == "c":
        with pytest.raises(ValueError, match="x must be real"):
            signal.hilbert(x)
        return
    last = lambda found: found[-1] if isinstance(found, tuple) else found
    fun = lambda x: (lambda y: (np.sum(np.abs(y) ** 2), y))(last(getattr(signal, name)(x, **options)))
    expected = last(getattr(scipy.signal, name)(x, **options))
    exact = last(getattr(scipy.signal, name)(x.astype(np.result_type(x, np.float64)), **options))
    allowed = 2 * np.max(np.abs(expected - exact)) + 1e-6 * np.max(np.abs(exact))  # of half precision, SciPy's is rounded, too
    for mode in ("auto", "dynamic"):
        (_, found), slopes = value_and_grad(fun, has_aux=True, mode=mode)(x)
        assert (found.dtype, found.shape, slopes.dtype) == (expected.dtype, expected.shape, x.dtype)
        assert np.max(np.abs(found - exact)) <= allowed


def test_plain_signals_go_to_scipy():
    """With what has no derivative rule, too; and what is wrong is an error of traced ones."""
    x = np.arange(12.0)
    by = lambda part: part - part[0]
    for ours, theirs in zip(signal.welch(x, nperseg=5, detrend=by), scipy.signal.welch(x, nperseg=5, detrend=by), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.warns(UserWarning, match="nperseg=256 is greater"):
        grad(lambda x: np.sum(signal.stft(x)[2].real))(x)
    for fun, message in (
        (lambda x: signal.welch(x, nperseg=0)[1], "not a positive integer"),
        (lambda x: signal.welch(x, nperseg=4, nfft=3)[1], "nfft must be greater"),
        (lambda x: signal.welch(x, nperseg=4, noverlap=4)[1], "noverlap must be less"),
        (lambda x: signal.welch(x, nperseg=4, scaling="no")[1], "Parameter scaling='no'"),
        (lambda x: signal.welch(x, nperseg=4, average="no")[1], "must be 'median' or 'mean'"),
        (lambda x: signal.welch(x, window=np.ones(13))[1], "longer than input"),
        (lambda x: signal.stft(x, nperseg=4, boundary="no")[2].real, "Unknown boundary"),
        (lambda x: signal.stft(x[:2], nperseg=2, window=np.ones(3))[2].real, "different from length"),
        (lambda x: signal.istft(x)[1], "at least 2d"),
        (lambda x: signal.resample(x, 3, domain="no"), "not in"),
        (lambda x: signal.resample(x, 3, window=np.ones(3)), "not equal to number of frequency bins"),
    ):
        with pytest.raises(ValueError, match=message):
            grad(lambda x, fun=fun: np.sum(fun(x)))(x)


@pytest.mark.parametrize("dtype", [int, bool, np.int8, np.float16, np.float32])
@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst", "dctn", "idctn", "dstn"])
def test_cosine_transforms_of_small_numbers(name, dtype):
    """Of integers they were zeros."""
    x = np.array([[1, 0, 3, 2], [0, 1, 1, 5]]).astype(dtype)
    for type, norm in itertools.product((1, 2, 3, 4), (None, "ortho", "forward", "backward")):
        ours, theirs = (getattr(module.fft, name)(x, type, norm=norm) for module in (symgrad.scipy, scipy))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
def test_transforms_of_nothing(name):
    for part in (fft, scipy.fft):
        for x, type, n in (
            (np.ones(0), 2, None),
            (np.ones(3), 2, 0),
            (np.ones(3), 4, -1),
            *([(np.ones(1), 1, None)] * ("c" in name)),
        ):
            with pytest.raises((ValueError, RuntimeError)):
                getattr(part, name)(x, type, n)


@pytest.mark.filterwarnings("ignore:Calling")  # SciPy will take no booleans
@pytest.mark.parametrize("dtype", [int, np.int8, bool])
@pytest.mark.parametrize(
    "name",
    [
        "signal.detrend",
        "signal.fftconvolve",
        "signal.filtfilt",
        "signal.sosfiltfilt",
        "signal.savgol_filter",
        "linalg.lstsq",
        "linalg.pinvh",
        "linalg.lu",
        "linalg.lu_factor",
    ],
)
def test_of_integers(name, dtype):
    """The results had been cut off to integers."""
    part, function = name.split(".")
    x, square = np.array([3, 0, 1, 2, 0, 7, 1, 0, 1, 1, 4, 0]).astype(dtype), np.array([[1, 0], [3, 2]]).astype(dtype)
    given = {
        "fftconvolve": (x, x[:3]),
        "filtfilt": ([0.5, 0.2], [1.0, 0.1], x),
        "sosfiltfilt": (scipy.signal.butter(1, 0.3, output="sos"), x),
        "savgol_filter": (x, 4, 2),
        "lstsq": (square, square[0]),
        "pinvh": (square,),
        "lu": (square,),
        "lu_factor": (square,),
    }.get(function, (x,))
    found, expected = (flatten(getattr(getattr(module, part), function)(*given))[0] for module in (symgrad.scipy, scipy))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)  # of int8, some of SciPy's are in single precision


def test_images_of_integers():
    """Their results are integers in SciPy."""
    x = np.arange(12).reshape(3, 4)
    for fun in (
        ndimage.sobel,
        ndimage.laplace,
        ndimage.uniform_filter,
        lambda x: ndimage.gaussian_filter(x, 1.0),
        lambda x: ndimage.map_coordinates(x, np.ones((2, 3)), order=1),
        lambda x: ndimage.convolve1d(x > 3, [1.0, 2.0]),
    ):
        with pytest.raises(NotDifferentiable, match=r"of integers rounds to integers; give it image.astype\(float\)"):
            grad(lambda w: np.sum(fun(x) * w))(1.0)  # noqa: B023
    widths = np.array([1.0, 0.5])
    np.testing.assert_allclose(ndimage.gaussian_filter(x * 1.0, widths), scipy.ndimage.gaussian_filter(x * 1.0, widths))
    assert ndimage.map_coordinates(x.astype(np.float32), np.ones((2, 3)), order=1).dtype == np.float32
    assert ndimage.convolve1d(x.astype(np.float32), [1j, 2.0]).dtype == np.complex64


def test_extremes_of_images():
    x = np.arange(12.0).reshape(3, 4) % 5
    for name in ("maximum_filter", "minimum_filter", "grey_erosion", "grey_dilation", "white_tophat"):
        ours, theirs = (getattr(module.ndimage, name) for module in (symgrad.scipy, scipy))
        np.testing.assert_array_equal(ours(x.astype(int), 3, origin=1), theirs(x.astype(int), 3, origin=1), strict=True)
        assert grad(lambda x, ours=ours: np.sum(ours(x, 3)))(x.astype(np.float32)).dtype == np.float32
        ints = lambda x, ours=ours: np.sum(ours(np.floor(x).astype(int), footprint=CROSS) * x)
        np.testing.assert_array_equal(grad(ints)(x), ours(x, footprint=CROSS))
        with pytest.warns(UserWarning, match="ignoring size because footprint is set"):
            grad(lambda x, ours=ours: np.sum(ours(x, 3, CROSS)))(x)
        for wrong, error in (
            (lambda x, ours=ours: ours(x), (RuntimeError, ValueError)),
            (lambda x, ours=ours: ours(x, footprint=CROSS & False), ValueError),
            (lambda x, ours=ours: ours(x, footprint=CROSS[0]), (RuntimeError, IndexError)),
            (lambda x, ours=ours: np.real(ours(x + 1j, 3)), TypeError),
        ):
            with pytest.raises(error):
                wrong(x)
            with pytest.raises(error):
                grad(lambda x, wrong=wrong: np.sum(wrong(x)))(x)


def test_splines_are_of_double_precision():
    x = np.array([0.0, 0.7, 1.5, 2.0, 3.1], np.float32)
    at = np.array([0.11, 2.7, np.nan], np.float32)
    for name in ("CubicSpline", "PchipInterpolator"):
        for nu in (0, 1, 4):
            ours, theirs = (getattr(module.interpolate, name)(x, np.cos(x))(at, nu) for module in (symgrad.scipy, scipy))
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)
            assert ours.dtype == theirs.dtype
    with pytest.raises(ValueError, match="complex values neither rise nor fall"):
        interpolate.PchipInterpolator(x, x * 1j)


@pytest.mark.parametrize(
    "name", ["CubicSpline", "PchipInterpolator", "Akima1DInterpolator", "interp1d", "RegularGridInterpolator"]
)
def test_splines_that_are_made_in_the_function_are_compiled(name):
    """Of plain points, too, that are read at traced places."""
    points = lambda x: (x,) if name == "RegularGridInterpolator" else x
    height, made = np.cos(np.arange(5.0)), getattr(interpolate, name)
    agrees(lambda at: made(points(np.arange(5.0)), height)(at), np.array([0.3, 2.9]))
    derivative = symgrad.grad(lambda at, y: np.sum(made(points(np.arange(5.0)), y)(at) ** 2), argnums=(0, 1))
    for _ in range(4):
        derivative(np.array([0.3, 2.9]), height)
    assert derivative.cache_info()[:2] == (2, 2)


def test_splines_stay_when_what_they_were_made_of_changes():
    for name, options in (("CubicSpline", {}), ("PchipInterpolator", {}), ("interp1d", {"assume_sorted": True})):
        x, y = np.arange(5.0), np.cos(np.arange(5.0))
        spline = getattr(interpolate, name)(x, y, **options)
        before = spline(2.5)
        x[3], y[2] = 2.6, 5.0
        assert spline(2.5) == before


def test_points_outside():
    """What to do with them has SciPy's defaults; a coordinate that is NaN is nowhere."""
    x = np.array([0.0, 1.0, 2.0])
    for fill in (0.0, (1.0, 2.0), np.nan):
        for module in (interpolate, scipy.interpolate):
            with pytest.raises(ValueError, match="interpolation range"):
                module.interp1d(x, x, fill_value=fill)(3.0)
    with pytest.raises(ValueError, match="Cannot extrapolate and raise"):
        interpolate.interp1d(x, x, bounds_error=True, fill_value="extrapolate")
    values, at = np.arange(9).reshape(3, 3), np.array([[np.nan, 1.0], [0.4, 2.0], [5.0, np.nan]])
    for method in ("linear", "nearest"):
        ours, theirs = (
            module.RegularGridInterpolator((x, x), values * 1.0, method, bounds_error=False, fill_value=7.0)
            for module in (interpolate, scipy.interpolate)
        )
        np.testing.assert_allclose(ours(at), theirs(at))
        for point in (np.array([0.3, 1.2]), np.array([0.3, 1.2, 1.0, 2.0])):
            assert ours(point).shape == theirs(point).shape
        with pytest.raises(ValueError, match="out of bounds"):
            interpolate.RegularGridInterpolator((x, x), values, method)(at)
    with pytest.raises(NotDifferentiable, match="no derivative rule for method='cubic'"):
        ours(at, method="cubic")


def test_plain_arrays_go_to_scipy():
    a = rng.normal(size=(3, 3))
    for ours, theirs in ((linalg.schur, scipy.linalg.schur), (linalg.orth, scipy.linalg.orth), (linalg.eig, scipy.linalg.eig)):
        for one, other in zip(ours(a), theirs(a), strict=True):
            np.testing.assert_allclose(one, other)
    assert linalg.null_space(a[:2]).shape == (3, 1)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: linalg.eigh(x, subset_by_index=[0, 1]),
        lambda x: linalg.eig(x, left=True),
        lambda x: linalg.eigvalsh_tridiagonal(x[0], x[0, 1:], select="i", select_range=(0, 1)),
        lambda x: linalg.pinvh(x, return_rank=True),
        lambda x: signal.filtfilt([1.0], [1.0], x, method="gust"),
        lambda x: signal.detrend(x, bp=[2]),
        lambda x: signal.welch(x, nperseg=3, detrend=lambda part: part)[1],
        lambda x: ndimage.map_coordinates(x, x[:2]),
        lambda x: ndimage.map_coordinates(x, x[:2], order=1, mode="edge"),
        lambda x: ndimage.gaussian_gradient_magnitude(x, 0.5, axes=1),
        lambda x: ndimage.shift(x, 0.5),
        lambda x: ndimage.rotate(x, 0.5, order=1, output=float),
        lambda x: ndimage.convolve(x, x, origin=1),
        lambda x: ndimage.correlate1d(x, x[0], output=float),
        lambda x: ndimage.uniform_filter(x, mode="edge"),
        lambda x: ndimage.maximum_filter(x, 3, origin=1),
        lambda x: ndimage.minimum_filter1d(x, 3, output=float),
        lambda x: ndimage.grey_opening(x, structure=np.ones((2, 2))),
        lambda x: ndimage.grey_dilation(x, 3, mode="edge"),
        lambda x: integrate.quad(np.exp, 0, x[0, 0], weight="cos", wvar=1.0)[0],
        lambda x: integrate.solve_ivp(lambda t, y: -y, (0, 1), x[0], dense_output=True).y,
        lambda x: integrate.solve_ivp(lambda t, y: -y, (0, 1), x[0], events=lambda t, y: y[0] - 0.5).y,
        lambda x: integrate.solve_ivp(lambda t, y: -y, (0, 1), x[0], jac=np.eye(3)).y,
        lambda x: integrate.odeint(lambda y, t: -y, x[0], [0, 1], full_output=True)[0],
        lambda x: fft.dct(x, orthogonalize=True),
        lambda x: fft.dst(x, norm="none"),
        lambda x: fft.idct(x + 1j),
    ],
)
def test_options_without_a_rule(fun):
    with pytest.raises(NotDifferentiable, match=r"no derivative rule|are here for"):
        grad(lambda x: np.sum(fun(x)))(np.eye(3))


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_systems_are_solved_by_elimination(kind, trans):
    rng = np.random.default_rng(3)
    a = rng.standard_normal((4, 4)) + (1j * rng.standard_normal((4, 4)) if kind is complex else 0.0)
    b = rng.standard_normal((4, 2)) + (1j * rng.standard_normal((4, 2)) if kind is complex else 0.0)
    fun = lambda a, b: np.sum(np.abs(linalg.lu_solve(linalg.lu_factor(a), b, trans)) ** 2)
    same = lambda a, b: np.sum(np.abs(np.linalg.solve((a, a.T, np.conj(a).T)[trans], b)) ** 2)
    for one, other in zip(scipy.linalg.lu_factor(a), linalg.lu_factor(a), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14, atol=1e-14)
    derivative, expected = grad(fun, (0, 1)), grad(same, (0, 1))(a, b)
    for _ in range(3):
        for one, other in zip(derivative(a, b), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    if kind is float:
        check_grads(fun, [a, b], order=2)


def test_pivots_follow_the_matrix():
    fun = lambda a: linalg.lu(a)[2].trace() + linalg.lu(a, permute_l=True)[0][0].sum()
    derivative, batched = grad(fun), vmap(grad(fun))
    stack = np.random.default_rng(4).standard_normal((6, 3, 3))
    plain = [grad(fun, mode="dynamic")(a) for a in stack]
    for a, one in zip(stack, plain, strict=True):
        np.testing.assert_allclose(derivative(a), one)
    np.testing.assert_allclose(batched(stack), plain)


@pytest.mark.parametrize("name", ["eigvals", "cosm", "sinm"])
def test_complex_results_are_scipys(name):
    mine, theirs = getattr(linalg, name), getattr(scipy.linalg, name)
    for a in (np.array([[1.0, 0.3], [0.2, 2.0]]), np.array([[1.0, -0.3], [0.2, 1.0]]), np.array([[1j, 0.3], [0.2, 2.0]])):
        found, expected = mine(a), theirs(a)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
        if a.dtype == float:
            check_grads(lambda a: np.sum(np.abs(mine(a)) ** 2), [a], order=2)


@pytest.mark.parametrize("fun", [linalg.sqrtm, linalg.logm], ids=["sqrtm", "logm"])
def test_roots_and_logarithms_of_matrices_with_negative_eigenvalues(fun):
    """They lie on the cut; and whether the result is complex hangs on the values."""
    positive, other = np.array([[2.0, 0.3], [0.1, 1.5]]), np.array([[1.0, 0.3], [0.2, -2.0]])
    for a in (positive, other):
        check_grads(fun, (a,))
    size = lambda a: np.sum(np.abs(fun(a)) ** 2)
    compiled, dynamic = grad(size), grad(size, mode="dynamic")
    for a in (positive, positive, positive, other, other, other, positive):
        np.testing.assert_allclose(compiled(a), dynamic(a), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_logistic_functions(dtype):
    """By NumPy's exponentials, but where those overflow and the function is not zero yet."""
    derivative, plain = (
        symgrad.value_and_grad(lambda x: np.mean(np.log(scipy.special.expit(x)) * x), mode=m) for m in ("auto", "dynamic")
    )
    x = np.sin(np.arange(3000.0)).astype(dtype)
    lowest = -720 if dtype == np.float64 else -95
    for far in (0, lowest, 2 * lowest, np.nan, 800, lowest):
        given = np.where(np.arange(3000) == 5, far, x).astype(dtype)
        with np.errstate(all="ignore"):
            for _ in range(2):
                found = derivative(given)
            for one, other in zip(found, plain(given), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-11 if dtype == np.float64 else 2e-4)
    assert "runtime.expit" in derivative.source(x, fast=True)


def test_submodules_are_scipys_own():
    """Under no second name: a copy's classes would not be SciPy's, and its functions nobody's."""
    solved = importlib.import_module("symgrad.scipy.sparse.linalg")
    assert solved is sparse.linalg
    assert solved.spsolve is sparse.spsolve
    assert solved.LinearOperator is scipy.sparse.linalg.LinearOperator
    matrix = scipy.sparse.csc_array(np.diag([2.0, 4.0]))
    np.testing.assert_allclose(grad(lambda b: np.sum(solved.spsolve(matrix, b) ** 2))(np.ones(2)), [0.5, 0.125])
    assert stats.qmc is scipy.stats.qmc
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("symgrad.scipy.stats.qmc")


# two arguments, a function of SciPy's by them, and its mixed second derivative there by 40 digits
MIXED = {
    "beta": (special.beta, -7.7, 3.0, 0.09644738239148944),
    "beta at a zero": (special.beta, 2.3, -2.3, -8.563001678720003),
    "beta of two": (special.beta, -1.5, -1.5, 37.05980378913514),
    "betaln": (special.betaln, -7.7, 1.0, -14.940746594231243),
    "poch": (special.poch, -20.3, 3.0, -101950.0134729282),
    "binom": (special.binom, -5.3, 2.0, 230.29034373888913),
    "powm1": (special.powm1, 2.0, 0.0, 0.5),
    "gamma": (lambda x, a: stats.gamma.pdf(x, a), 1.7, 1.0, -0.09492393416702231),
    "beta's density": (lambda x, a: stats.beta.pdf(x, a, 2.0), 0.3, 1.0, 4.074612275318539),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixed_second_derivatives_where_terms_cancel(name):
    fun, a, b, expected = MIXED[name]
    for slope in (
        grad(lambda x: grad(lambda y: fun(x, y))(b))(a),
        grad(lambda y: grad(lambda x: fun(x, y))(a))(b),
        grad(lambda x: jvp(lambda y: fun(x, y), (b,), (1.0,))[1])(a),
    ):
        assert slope == pytest.approx(expected, rel=1e-10)


# a function of a shape and a place where its slope by the shape is 0, and that slope's own slope, by mpmath 1.3 and 50 digits
CENTRES = {
    "stdtr": (scipy.special.stdtr, 1.0, 0.0, 0.06148065706075626),
    "stdtrit": (scipy.special.stdtrit, 1.0, 0.5, -0.6067897635087055),
    "t.cdf": (lambda df, z: stats.t.cdf(z, df), 2.0, 0.0, 0.02010050707781852),
    "t.logsf": (lambda df, z: stats.t.logsf(z, df), 2.0, 0.0, -0.04020101415563705),
    "t.isf": (lambda df, q: stats.t.isf(q, df), 2.0, 0.5, 0.1608040566225482),
    "gennorm.cdf": (lambda b, z: stats.gennorm.cdf(z, b), 1.5, 0.0, 0.04474390768118932),
    "gennorm.ppf": (lambda b, q: stats.gennorm.ppf(q, b), 3.0, 0.5, 0.02620076897636029),
    "betainc by a": (lambda a, x: scipy.special.betainc(a, 1.0, x), 2.0, 1.0, 1.0),
    "betaincc by b": (lambda b, x: scipy.special.betaincc(1.0, b, x), 2.0, 0.0, -1.0),
    "betaprime.cdf": (lambda b, z: stats.betaprime.cdf(z, 1.0, b), 2.0, 0.0, 1.0),
    "beta.sf": (lambda a, z: stats.beta.sf(z, a, 1.0), 3.0, 1.0, -1.0),
    "chi.cdf": (lambda df, z: stats.chi.cdf(z, df), 1.4, 0.0, 0.0),
}


@pytest.mark.parametrize("name", CENTRES)
def test_mixed_second_derivatives_where_slopes_by_shapes_vanish(name):
    fun, shape, x, expected = CENTRES[name]
    for mode in ("auto", "dynamic"):
        curved = hessian(lambda p: fun(p[0], p[1]), mode=mode)
        for _ in range(3):
            found = curved(np.array([shape, x]))
            np.testing.assert_allclose([found[0, 1], found[1, 0]], expected, 1e-9, 1e-14)
    slope = jvp(lambda x: grad(lambda a: fun(a, x))(shape), (x,), (1.0,))[1]
    assert slope == pytest.approx(expected, rel=1e-9, abs=1e-14)


# the derivatives by the shapes, so many times by each of them, by mpmath 1.3 and 60 digits
OFTEN = {
    "gammainc": [(1.7, 5.0), (3, 0), -0.02481613446073769],
    "betainc": [(2.0, 3.0, 0.3), (2, 1, 0), -0.04511572417112276],
    "stdtr": [(3.5, 30.0), (2, 0), -7.107110075013112e-5],
    "stdtr within": [(0.3, 0.2), (3, 0), 0.9758770388938392],
}


@pytest.mark.parametrize("name", OFTEN)
def test_derivatives_by_shapes_of_higher_orders(name):
    args, times, expected = OFTEN[name]
    fun, one = getattr(scipy.special, name.split()[0]), [np.array([arg, arg]) for arg in args]
    derivative = lambda *args: np.sum(fun(*args))
    for place, n in enumerate(times):
        for _ in range(n):
            derivative = lambda *args, d=derivative, place=place: np.sum(grad(d, place)(*args))
    np.testing.assert_allclose(derivative(*one), 2 * expected, 1e-10)


def test_slopes_by_shapes_of_many_elements():
    """... are made of few at a time, which broadcast as they are."""
    x = np.linspace(0.1, 3.0, 301)
    for fun in (stats.gamma.cdf, stats.t.cdf, stats.gennorm.sf, lambda x, a: stats.beta.cdf(x / 4, a, 2.5)):
        slopes = grad(lambda a, fun=fun: np.sum(fun(x[:, None], a)))(np.array([1.7, 2.0]))
        single = [grad(lambda a, fun=fun: np.sum(fun(x[:5], a)))(1.7), grad(lambda a, fun=fun: np.sum(fun(x[5:], a)))(1.7)]
        assert slopes[0] == pytest.approx(sum(single), rel=1e-12)


@pytest.mark.parametrize("mode", ["auto", "dynamic"])
def test_infinitely_many_degrees_of_freedom(mode):
    """... of Student's distribution are the normal one."""
    x, q = np.array([-2.0, 0.0, 0.3, 5.0]), np.array([1e-10, 0.3, 0.5, 0.9])
    for method in ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf"):
        ours, points = getattr(stats.t, method), q if method in ("ppf", "isf") else x
        expected = value_and_grad(lambda x, m=method: np.sum(getattr(stats.norm, m)(x)))(points)
        for df in (np.inf, 1e30):
            value, slopes = value_and_grad(lambda x, df, f=ours: np.sum(f(x, df)), (0, 1), mode=mode)(points, df)
            np.testing.assert_allclose(value, expected[0], 1e-10)
            np.testing.assert_allclose(slopes[0], expected[1], 1e-10)
            assert abs(slopes[1]) < 1e-20
    mixed = grad(lambda x, df: np.sum(stats.t.logpdf(x, df)), mode=mode)(x[[0, 2]], np.array([np.inf, 3.0]))
    np.testing.assert_allclose(mixed, [2.0, -4 * 0.3 / 3.09])
    np.testing.assert_allclose(grad(lambda x: scipy.special.stdtr(np.inf, x), mode=mode)(0.3), scipy.stats.norm.pdf(0.3))


def test_factorials_of_negative_numbers():
    n = np.array([-1.0, -2.5, 0.0, 3.0])
    np.testing.assert_array_equal(special.factorial(n), scipy.special.factorial(n))
    assert grad(special.factorial)(-1.5) == 0.0
    assert type(special.factorial(2.0)) is np.float64


# by mpmath, with 40 digits
@pytest.mark.parametrize(
    ("a", "b", "x", "by_a", "by_b"),
    [
        (0.25, 1.85, 1e-17, -0.0026386582111619576, 1.126946940997514e-05),
        (0.25, 1.85, 0.0001, -1.0375017768695025, 0.020037482865255123),
        (2.0, 3.0, 0.3, -0.2460937277467235, 0.1295450609648719),
        (5.0, 0.5, 0.999999999999, -2.583352382230267e-07, 6.412256120572823e-05),
        (0.3, 0.3, 1e-200, -2.561937714304484e-58, 1.0882018084971135e-60),
    ],
)
def test_incomplete_betas_by_their_shapes_near_the_ends(a, b, x, by_a, by_b):
    """Where the rest of one beside ``x`` is one."""
    assert grad(lambda a: special.betainc(a, b, x))(a) == pytest.approx(by_a, rel=1e-12)
    assert grad(lambda b: special.betainc(a, b, x))(b) == pytest.approx(by_b, rel=1e-12)


@pytest.mark.parametrize("args", [(0.9999, 3.7, 0.5), (0.9999, 0.5, 0.5), (0.97, 3.0, 4.0), (0.3, 3.0, 4.0)])
def test_quantiles_of_f_near_one(args):
    q, n, d = args
    value, slopes = value_and_grad(lambda q, n, d: stats.f.ppf(q, n, d), (0, 1, 2))(q, n, d)
    assert value == pytest.approx(scipy.stats.f.ppf(q, n, d), rel=1e-10)
    assert slopes[0] == pytest.approx(1 / scipy.stats.f.pdf(value, n, d), rel=1e-6)
    for place in (1, 2):
        moved = [scipy.stats.f.ppf(*args[:place], args[place] + h, *args[place + 1 :]) for h in (1e-5, -1e-5)]
        assert slopes[place] == pytest.approx((moved[0] - moved[1]) / 2e-5, rel=1e-5)


def test_the_half_of_a_matrix_that_is_factorized():
    rng = np.random.default_rng(72)
    a = rng.normal(size=(4, 4))
    whole = a @ a.T + np.eye(4)
    for lower, half, other in ((False, np.triu, np.tril), (True, np.tril, np.triu)):
        given = half(whole) + other(a, 0) * (other(np.ones((4, 4))) - np.eye(4))
        expected = scipy.linalg.cholesky(given, lower=lower)
        np.testing.assert_allclose(linalg.cholesky(given, lower=lower), expected, rtol=1e-12, atol=1e-14)
        b = rng.normal(size=4)
        solved = scipy.linalg.cho_solve(scipy.linalg.cho_factor(given, lower=lower), b)
        np.testing.assert_allclose(linalg.cho_solve(linalg.cho_factor(given, lower=lower), b), solved, rtol=1e-10)
        slope = grad(lambda m, low=lower: np.sum(linalg.cholesky(m, lower=low) ** 3))(given)
        np.testing.assert_array_equal(slope, half(slope))
        direction, step = rng.normal(size=(4, 4)), 1e-6
        far, near = (np.sum(scipy.linalg.cholesky(given + h * direction, lower=lower) ** 3) for h in (step, -step))
        np.testing.assert_allclose(np.sum(slope * direction), (far - near) / (2 * step), rtol=1e-6)


def test_options_that_numpys_functions_have_not():
    a = np.array([[2.0, 1.0], [5.0, 3.0]])
    for fun in ("inv", "det", "pinv", "norm", "svdvals"):
        np.testing.assert_allclose(getattr(linalg, fun)(a, check_finite=False), getattr(scipy.linalg, fun)(a), rtol=1e-12)
    symmetric = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(linalg.inv(np.triu(symmetric), assume_a="sym"), np.linalg.inv(symmetric), rtol=1e-12)
    small = np.diag([1.0] * 99 + [5e-15])
    np.testing.assert_array_equal(linalg.pinv(small), scipy.linalg.pinv(small))
    np.testing.assert_allclose(linalg.pinv(small, rtol=1e-15), scipy.linalg.pinv(small, rtol=1e-15))
    with pytest.raises(NotDifferentiable, match="atol"):
        linalg.pinv(a, atol=1.0)


def test_binomial_coefficients_outside_the_triangle():
    for n, k in ((2.5, 3.0), (-2.0, 1.0), (5, 2), (5.0, 2.5), (3, -1), (np.arange(6.0), 2), (0, 0), (-1, 0)):
        np.testing.assert_allclose(special.comb(n, k), scipy.special.comb(n, k), rtol=1e-12)
    for n, k in ((2.5, 3.0), (5, 2), (5.0, 2.5), (np.arange(1, 6.0), 2)):
        np.testing.assert_allclose(special.comb(n, k, repetition=True), scipy.special.comb(n, k, repetition=True), rtol=1e-12)
    assert special.comb(5, 2, exact=True) == 10
    assert special.comb(5, 2, exact=True, repetition=True) == 15
    assert special.factorial(5, exact=True) == 120
    assert grad(special.comb)(2.5, 3.0) == 0.0
    agrees(lambda n: special.comb(n, 2.5), 4.2)


def test_integrals_from_a_place_to_itself():
    def fun(a, b):
        return integrate.quad(lambda t: np.exp(2 * t), a, b)[0]

    for a, b in ((0.5, 0.5), (-1.0, -1.0)):
        expected = [[-2 * math.exp(2 * a), 0.0], [0.0, 2 * math.exp(2 * b)]]
        np.testing.assert_allclose(hessian(fun, argnums=(0, 1))(a, b), expected, rtol=1e-8, atol=1e-12)
        third = grad(grad(grad(fun, 1), 1), 1)(a, b)
        assert third == pytest.approx(4 * math.exp(2 * b), rel=1e-8)


def test_parabolas_through_samples_at_one_place():
    for y, x in (([1, 2, 3, 5, 4], [0, 0, 1, 2, 3]), ([1, 2, 3, 5], [0, 1, 1, 2]), ([1, 2, 3, 5], [0, 1, 2, 2])):
        y, x = np.array(y, float), np.array(x, float)
        expected = scipy.integrate.simpson(y, x=x)
        assert integrate.simpson(y, x=x) == pytest.approx(expected, rel=1e-14)
        weights = [scipy.integrate.simpson(row, x=x) for row in np.eye(len(y))]
        np.testing.assert_allclose(grad(lambda y, x=x: integrate.simpson(y, x=x))(y), weights, rtol=1e-12, atol=1e-14)
    y = np.array([1.0, 2.0, 4.0, 3.0])
    assert integrate.simpson(y, dx=0.0) == 0.0
    assert grad(lambda dx: integrate.simpson(y, dx=dx))(0.0) == pytest.approx(scipy.integrate.simpson(y))


def test_complex_images_of_which_the_second_is_larger():
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=shape) + 1j * rng.normal(size=shape) for shape in ((2, 3), (4, 5)))
    for mode in ("full", "same", "valid"):
        for one, other in ((a, b), (b, a)):
            np.testing.assert_allclose(signal.correlate2d(one, other, mode), scipy.signal.correlate2d(one, other, mode))


def test_first_successes_that_are_sure():
    for p in (1.0, 0.7, 0.5, 0.2, 1e-9):
        for k in (1.0, 2.0, 5.0):
            with np.errstate(all="ignore"):
                expected = scipy.stats.geom.sf(k, p), scipy.stats.geom.cdf(k, p)
            np.testing.assert_allclose((stats.geom.sf(k, p), stats.geom.cdf(k, p)), expected, rtol=1e-13)
            slope = k * (1 - p) ** (k - 1)
            assert grad(lambda p, k=k: stats.geom.cdf(k, p))(p) == pytest.approx(slope, rel=1e-7)
            assert grad(lambda p, k=k: stats.geom.sf(k, p))(p) == pytest.approx(-slope, rel=1e-7)


@pytest.mark.parametrize("name", ["sf", "pdf", "logcdf", "cdf"])
def test_distributions_of_numbers_give_numbers(name):
    """... of parameters that may not be valid, too, so that something is chosen."""
    p = np.array([0.5, 1.2, 1.1])
    for fun in (
        lambda p: getattr(stats.t, name)(p[0], p[1], scale=p[2]),
        lambda p: getattr(stats.johnsonsu, name)(p[0], p[1], p[2]),
        lambda p: getattr(stats.gamma, name)(p[0], p[1], scale=p[2]),
    ):
        derivative = value_and_grad(fun)
        assert [type(value) for value in (fun(p), *[derivative(p)[0] for _ in range(3)])] == [np.float64] * 4


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
def test_solutions_at_the_time_when_they_begin(method):
    """By times that are the first one, and where there is no time between the ends, to the second order."""

    def slope(t, y):
        return -2 * y + t

    def solved(begin, end, times=None):
        start, options = np.array([1.0, 3.0]), {"method": method, "rtol": 1e-9, "atol": 1e-10}
        return np.sum(integrate.solve_ivp(slope, (begin, end), start, t_eval=times, **options).y[:, -1])

    def known(begin, end):  # y = (start - begin / 2 + 1/4) exp(-2 (t - begin)) + t / 2 - 1/4
        return sum((y - begin / 2 + 0.25) * np.exp(-2 * (end - begin)) + end / 2 - 0.25 for y in (1, 3))

    for fun, exact, at in (
        (lambda s: solved(0.0, 1.0, np.stack([s])), lambda s: known(0.0, s), 0.0),
        (lambda s: solved(0.0, 1.0, np.stack([s])), lambda s: known(0.0, s), 1.0),
        (lambda s: solved(0.0, s), lambda s: known(0.0, s), 0.0),
        (lambda s: solved(0.0, s, np.stack([s])), lambda s: known(0.0, s), 0.0),
        (lambda s: solved(s, 0.5), lambda s: known(s, 0.5), 0.5),
    ):
        for derivative in (grad, lambda fun: grad(grad(fun))):
            for _ in range(2):
                assert derivative(fun)(at) == pytest.approx(derivative(exact)(at), rel=1e-5)
    assert np.shape(integrate.solve_ivp(slope, (1.0, 1.0), np.ones(3), method).y) == (3, 2)


SIGN = np.array([[1.0, 2.0], [0.5, -1.0]])
EMPTY = [
    ("ndimage.laplace", (), lambda part, x: part.laplace(x)),
    ("ndimage.laplace", (0, 3), lambda part, x: part.laplace(x)),
    *(
        ("ndimage", shape, fun)
        for shape in ((0,), (0, 3))
        for fun in (
            lambda part, x: part.gaussian_filter(x, 1.0),
            lambda part, x: part.maximum_filter(x, 3),
            lambda part, x: part.grey_dilation(x, 2),
            lambda part, x: part.correlate1d(x, SIGN[0]),
        )
    ),
    ("ndimage", (0, 3), lambda part, x: part.convolve(x, SIGN)),
    ("ndimage", (0, 3), lambda part, x: part.minimum_filter(x, footprint=SIGN > 0)),
    ("linalg", (0, 0), lambda part, x: part.lu_factor(x)[0]),
    ("linalg", (0, 0), lambda part, x: part.lu(x)[2]),
    ("linalg", (0, 0), lambda part, x: part.sqrtm(x)),
    ("linalg", (0, 0), lambda part, x: part.solve_sylvester(x, np.eye(2), np.ones((0, 2)))),
    ("linalg", (3, 0), lambda part, x: part.solve_banded((0, 0), np.ones((1, 3)), x)),
    ("signal", (0,), lambda part, x: part.fftconvolve(x, SIGN[0])),
    ("signal", (0, 4), lambda part, x: part.welch(x, nperseg=3)[1]),
    ("signal", (0,), lambda part, x: part.welch(x)[1]),
    ("signal", (4, 0), lambda part, x: np.real(part.csd(x, np.ones((5, 1)), nperseg=3, axis=0)[1])),
    ("signal", (0, 4), lambda part, x: part.periodogram(x)[1]),
    ("signal", (0, 4), lambda part, x: np.real(part.stft(x, nperseg=2)[2])),
    ("interpolate", (3, 0), lambda part, x: part.Akima1DInterpolator([0, 1.0, 2], x)(np.array([0.5]))),
]


@pytest.mark.parametrize(("name", "shape", "fun"), EMPTY)
def test_of_no_elements(name, shape, fun):
    """Or of one without an axis: values and shapes are SciPy's, also of what is traced, and Jacobians have their shapes."""
    ours, theirs = (getattr(module, name.split(".")[0]) for module in (symgrad.scipy, scipy))
    x = np.full(shape, 3.0)
    expected = np.asarray(fun(theirs, x))
    np.testing.assert_array_equal(fun(ours, x), expected)
    total = lambda x: np.sum(fun(ours, x) ** 2)
    for mode in ("auto", "dynamic"):
        value, slopes = value_and_grad(total, mode=mode)(x)
        assert value == np.sum(expected**2)
        np.testing.assert_array_equal(slopes, 2 * x, strict=True)
    for _ in range(3):
        assert jacobian(lambda x: fun(ours, x))(x).shape == expected.shape + shape
        assert hessian(total)(x).shape == shape + shape


def test_elements_of_no_batch():
    """The one that the shapes come from is not singular, and has places, and ends."""
    x, banded = np.zeros((0, 2, 2)), lambda x: linalg.solve_banded((0, 0), x[None], x)
    assert vmap(banded)(x[:, 0]).shape == (0, 2)
    assert vmap(lambda x: linalg.solve_continuous_are(x, x, x, x))(x).shape == (0, 2, 2)
    assert vmap(jacobian(banded))(x[:, 0]).shape == (0, 2, 2)
    assert vmap(lambda x, i: x[i])(x, np.zeros(0, int)).shape == (0, 2)
    assert vmap(lambda x: 1 / x.item())(np.zeros(0)).shape == (0,)


SEVERAL = [name + end for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for end in "2n"]


@pytest.mark.parametrize("name", SEVERAL)
def test_axes_of_fourier_transforms(name):
    """They are SciPy's, of complex numbers, too; a wrong choice is an error."""
    x = rng.normal(size=(2, 3, 4)) + (0 if name in ("rfft2", "rfftn", "ihfft2", "ihfftn") else 1j * rng.normal(size=(2, 3, 4)))
    ours, theirs = (getattr(part, name) for part in (fft, scipy.fft))
    for options in ({}, {"s": (3, 5)}, {"s": (3, 5), "axes": (2, 0)}, {"s": (-1, 3)}, {"axes": 1}, {"axes": (1, 0, -1)}):
        np.testing.assert_allclose(ours(x, **options), theirs(x, **options), rtol=1e-12, atol=1e-13)
    for options in (
        {"axes": (0, 0)},
        {"axes": (1, -2)},
        {"axes": 3},
        {"s": (2,), "axes": (0, 1)},
        {"s": (2, 2, 2, 2), "axes": None},
    ):
        for transform in (ours, theirs):
            with pytest.raises(ValueError, match="ax"):
                transform(x, **options)


@pytest.mark.parametrize("name", ["fft", "irfft", "fft2", "irfftn", "hfftn"])
def test_fourier_transforms_of_small_numbers(name):
    for dtype in (np.float16, np.float32, int, bool):
        x = np.array([[1, 0, 3, 2], [0, 1, 1, 5]]).astype(dtype)
        ours, theirs = (getattr(part, name)(x) for part in (fft, scipy.fft))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        assert ours.dtype == theirs.dtype


MOVED = {
    "shift": [(0.7,), ((0.4, -1.3),)],
    "zoom": [(1.7,), ((0.6, 2.0),), (0.3,), ((1.5, 0.8), True)],
    "rotate": [(30.0,), (-90.0,), (17.0, (0, 1), False)],
    "affine_transform": [
        (np.array([[0.83, 0.117], [-0.21, 1.13]]), 0.3),
        (np.array([[0.83, 0.117, 0.527], [-0.21, 1.13, -0.73]]),),
        (np.array([[0.83, 0.117, 0.527], [-0.21, 1.13, -0.73], [0.0, 0.0, 1.0]]), 0.0, (3, 6)),
        (np.array([0.7, 1.3]), (0.1, 0.9)),
    ],
}


@pytest.mark.filterwarnings("ignore:It is recommended", "ignore:The behavior of affine_transform")
@pytest.mark.parametrize("mode", ndimage.BEYOND)
@pytest.mark.parametrize("name", MOVED)
def test_images_moved(name, mode):
    """As SciPy moves them, which plain ones go to."""
    image, ours = np.random.default_rng(4).normal(size=(4, 5)), getattr(ndimage, name)
    for order, (by, *rest) in itertools.product((0, 1), MOVED[name]):
        grid = {"grid_mode": True} if name == "zoom" and rest else {}
        more = {"axes": rest[0], "reshape": rest[1]} if name == "rotate" and rest else {}
        more |= dict(zip(("offset", "output_shape"), rest, strict=False)) if name == "affine_transform" else {}
        fun = lambda x, by: ours(x, by, order=order, mode=mode, cval=0.5, **grid, **more)  # noqa: B023
        expected = getattr(scipy.ndimage, name)(image, by, order=order, mode=mode, cval=0.5, **grid, **more)
        for _ in range(2):
            (_, found), _ = value_and_grad(lambda x: (np.sum(fun(x, by)), fun(x, by)), has_aux=True)(image)  # noqa: B023
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        if order and mode in ("constant", "mirror"):
            moves = name != "zoom" and np.shape(by) != (3, 3) and np.any(by != -90.0) and not isinstance(by, tuple)
            agrees(fun, image, by) if moves else agrees(lambda x: fun(x, by), image)  # noqa: B023


@pytest.mark.parametrize("mode", ndimage.BEYOND)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_nearest_of_two_that_are_as_near(mode, n):
    line, places = np.arange(1.0, n + 1), np.arange(-12, 12, 0.5)[None]
    fun = lambda x: ndimage.map_coordinates(x, places, order=0, mode=mode, cval=0.5)
    (_, found), _ = value_and_grad(lambda x: (np.sum(fun(x)), fun(x)), has_aux=True)(line)
    np.testing.assert_array_equal(found, scipy.ndimage.map_coordinates(line, places, order=0, mode=mode, cval=0.5))


def test_images_of_more_dimensions_turned():
    x = rng.normal(size=(3, 4, 2))
    agrees(lambda x, angle: ndimage.rotate(x, angle, (0, -1), order=1), x, 25.0)
    agrees(lambda x: ndimage.shift(x, (1, 0.5, 0), order=1, mode="nearest"), x)


@pytest.mark.parametrize("method", ["RK23", "DOP853"])
def test_states_in_columns(method):
    """The slopes of several states at once, of which there is one."""
    rates = np.array([0.5, 1.5])

    def slope(t, y, k):
        return -k[:, None] * y + np.flip(y, axis=0)

    options = {"method": method, "t_eval": np.array([0.3, 1.0]), "vectorized": True, "rtol": 1e-8}
    solved = lambda y, k: integrate.solve_ivp(slope, (0.0, 1.0), y, args=(k,), **options).y
    expected = scipy.integrate.solve_ivp(slope, (0.0, 1.0), np.array([1.0, 2.0]), args=(rates,), **options).y
    np.testing.assert_allclose(solved(np.array([1.0, 2.0]), rates), expected, rtol=1e-6)
    agrees(solved, np.array([1.0, 2.0]), rates)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: ndimage.gaussian_filter(x, 0.0),
        lambda x: ndimage.gaussian_filter(x, 1.0, axes=()),
        lambda x: ndimage.uniform_filter(x, 1),
        lambda x: ndimage.uniform_filter(x, 3, axes=()),
        lambda x: ndimage.maximum_filter(x, 1),
        lambda x: ndimage.minimum_filter1d(x, 1),
        lambda x: ndimage.grey_erosion(x, 1),
        lambda x: ndimage.grey_closing(x, 1),
        lambda x: fft.dctn(x, axes=()),
    ],
)
def test_what_is_written_into_a_result_is_not_in_the_image(fun):
    """Nor where there is nothing to filter."""

    def written(x):
        x = 1.0 * x
        y = fun(x)
        y[0] = 3.0
        return np.sum(y * x)

    image = np.array([0.3, -0.8, 1.1])
    for mode in ("auto", "dynamic"):
        derivative = value_and_grad(written, mode=mode)
        for x in (image, image + 1.0, image - 2.0):
            value, slope = derivative(x)
            assert math.isclose(value, 3 * x[0] + x[1] ** 2 + x[2] ** 2, rel_tol=1e-14)
            np.testing.assert_allclose(slope, [3.0, 2 * x[1], 2 * x[2]])


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: ndimage.convolve1d(x, [1.0, 2.0], 2),
        lambda x: ndimage.correlate1d(x, [1.0, 2.0], -3),
        lambda x: ndimage.sobel(x, 2),
        lambda x: ndimage.uniform_filter(x, 3, axes=(2,)),
        lambda x: ndimage.maximum_filter1d(x, 3, 2),
        lambda x: fft.dct(x, axis=2),
        lambda x: signal.lfilter([1.0, 2.0], 1.0, x, axis=2),
        lambda x: signal.filtfilt([1.0, 2.0], 1.0, x, axis=2),
        lambda x: signal.savgol_filter(x, 3, 1, axis=-3),
        lambda x: signal.fftconvolve(x, x, axes=(0, 3)),
        lambda x: interpolate.CubicSpline(np.arange(4.0), x, axis=2)(0.5),
        lambda x: interpolate.interp1d(np.arange(4.0), x, axis=2)(0.5),
    ],
)
def test_axes_that_are_not_there(fun):
    """They are counted from the first, or the last, of those that there are, and not on and on."""
    x = np.ones((4, 4))
    with pytest.raises((ValueError, IndexError)):
        fun(x)
    with pytest.raises((ValueError, IndexError)):
        grad(lambda x: np.sum(fun(x)))(x)


def test_weights_and_sizes_of_filters_that_scipy_refuses():
    for weights in ([], [[1.0, 2.0]]):
        with pytest.raises(RuntimeError, match="no filter weights"):
            ndimage.convolve1d(np.ones(4), weights)
    with pytest.raises(RuntimeError, match="incorrect filter size"):
        ndimage.uniform_filter1d(np.ones(4), 0)


def test_a_center_of_mass_of_no_labels():
    """Of all, also where several are asked for."""
    agrees(lambda x: np.stack(ndimage.center_of_mass(x, None, [1, 2])), np.arange(1.0, 7.0).reshape(2, 3))
    image = np.arange(1.0, 7.0).reshape(2, 3)
    assert ndimage.center_of_mass(image, None, [1, 2]) == scipy.ndimage.center_of_mass(image, None, [1, 2])


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize(
    ("rows", "columns", "what"),
    [
        ([0, 1, 3], [0, 1, 2], "exceeds the dimension 3"),
        ([0, 1, 2], [0, 4, 2], "exceeds the dimension 4"),
        ([0, -1, 2], [0, 1, 2], "is negative"),
        ([0, 1, 2], [0, -2, 2], "is negative"),
        ([0, 1], [0, 1], "the same length"),
        ([0, 1, 2], [0, 1], "the same length"),
    ],
)
def test_elements_beyond_a_sparse_array(make, rows, columns, what):
    """SciPy's products would read and write there, too."""
    for places in ((rows, columns), tuple(map(np.array, (rows, columns)))):
        fun = lambda d: np.sum(make((d, places), shape=(3, 4)) @ np.ones(4))  # noqa: B023
        with pytest.raises(ValueError, match=what):
            grad(fun)(np.ones(3))
    moved = grad(lambda d, rows: np.sum(make((d, (rows, [0, 1, 2])), shape=(3, 3)) @ np.arange(3.0)))
    for _ in range(3):
        np.testing.assert_allclose(moved(np.ones(3), np.array([0, 2, 1])), np.arange(3.0))
    with pytest.raises(ValueError, match="exceeds"):
        moved(np.ones(3), np.array([0, 2, 3]))


def test_a_sparse_array_of_single_precision_with_its_zeros():
    dense = lambda d: sparse.csr_array((d, ([0, 1], [1, 0])), shape=(2, 2)).toarray()
    assert jvp(dense, (np.ones(2, np.float32),), (np.ones(2, np.float32),))[0].dtype == np.float32


def test_solutions_have_the_shapes_of_scipys():
    """Those that begin with a number are a row, and so is what the function is given."""
    for fun in (
        lambda p: optimize.root(lambda x: x[0] ** 2 - p, 1.0, tol=1e-12).x,
        lambda p: optimize.root(lambda x: x * x - p, [[1.0], [2.0]], tol=1e-12).x,
        lambda p: optimize.root(lambda x: x * x - p, [[1.0, 2.0]], method="krylov", tol=1e-12).x,
        lambda p: optimize.root(lambda x: x * x - p, 1.0, method="df-sane", tol=1e-12).x,
        lambda p: optimize.fsolve(lambda x: x * np.array([2.0, 1.0]) - p, [[1.0], [1.0]]),
        lambda p: optimize.minimize(lambda x: (x[0] - p) ** 2, 1.0).x,
        lambda p: optimize.minimize(lambda x: (x - p) ** 2 + p, 1.0).fun,
    ):
        expected, slope = fun(2.0), grad(lambda p: np.sum(fun(p)))(2.0)  # noqa: B023
        for mode in ("auto", "dynamic"):
            derivative = value_and_grad(lambda p: (np.sum(fun(p)), fun(p)), has_aux=True, mode=mode)  # noqa: B023
            for _ in range(3):
                (_, found), again = derivative(2.0)
                assert np.shape(found) == np.shape(expected)
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
                np.testing.assert_allclose(again, slope)
        np.testing.assert_allclose(slope, numeric(lambda p: np.sum(fun(p)), 2.0), rtol=1e-5)  # noqa: B023


def test_solvers_that_evaluate_a_function_more_often_are_compiled_all_the_same():
    for fun in (
        lambda x: np.sum(optimize.minimize(lambda v: np.sum((v - x) ** 2), np.array([0.5, 0.5])).x),
        lambda x: np.sum(optimize.least_squares(lambda v: (v - x) * (2.0 + np.sin(v)), np.array([0.5, 0.5])).x),
    ):
        for seed in range(4):
            derivative, places = grad(fun), np.random.default_rng(seed)
            derivative.cache_clear()
            for x in places.uniform(0.5, 2.0, (4, 2)):
                np.testing.assert_allclose(derivative(x), [1.0, 1.0], rtol=1e-6)
            assert "compiled" in derivative.explain()


@pytest.mark.parametrize(
    ("fun", "what"),
    [
        (lambda x: signal.correlate(x, np.ones((3, 1)), "valid"), "at least as large"),
        (lambda x: signal.correlate(x, np.ones(2)), "dimensionality"),
        (lambda x: signal.convolve2d(x[0], np.ones(2)), "2-D"),
        (lambda x: signal.correlate2d(x[0], np.ones(2)), "2-D"),
        (lambda x: signal.lfilter([1.0], [0.0, 1.0], x), "must not be zero"),
        (lambda x: signal.sosfilt(SECTIONS, x[0], zi=np.ones((3, 2))), "is expected"),
        (lambda x: signal.sosfilt(np.ones((2, 5)), x), "n_sections, 6"),
    ],
)
def test_signals_and_filters_that_scipy_refuses(fun, what):
    with pytest.raises(ValueError, match=what):
        fun(np.ones((2, 4)))
    with pytest.raises(ValueError, match=what):
        grad(lambda x: np.sum(fun(x)))(np.ones((2, 4)))


def test_filters_of_one_section():
    x = np.array([0.3, -0.7, 1.2, 0.4])
    agrees(lambda x: signal.sosfilt(SECTIONS[0], x), x)
    np.testing.assert_allclose(signal.sosfilt(SECTIONS[0], x), scipy.signal.sosfilt(SECTIONS[0], x))


@pytest.mark.parametrize("fun", [signal.filtfilt, lambda b, a, x: signal.sosfiltfilt(np.concatenate((b, a))[None], x)])
def test_filters_both_ways_keep_single_precision(fun):
    b, a, x = (np.array(c, np.float32) for c in ([0.2, 0.3, 0.1], [1.0, -0.4, 0.2], np.sin(np.arange(16.0))))
    assert fun(b, a, x).dtype == np.float32
    assert jvp(lambda x: fun(b, a, x), (x,), (x,))[1].dtype == np.float32


def test_lines_through_several_points_at_one_place():
    """A jump, where SciPy takes one of the values there; and through a single point."""
    at = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
    for places in ([0.0, 1.0, 1.0, 2.0], [0.0, 0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 2.0]):
        lines = lambda y: interpolate.interp1d(places, y, bounds_error=False)(at)  # noqa: B023
        y = np.array([1.0, 4.0, 2.0, 8.0])
        np.testing.assert_allclose(lines(y), scipy.interpolate.interp1d(places, y)(at))
        if places[-2] < places[-1]:
            agrees(lines, y)
    agrees(lambda y: interpolate.interp1d([1.0], y)([1.0]), np.array([3.0]))


def test_points_of_curves_that_do_not_fit():
    for x, y in ((np.arange(4.0), np.ones(5)), (np.arange(4.0), np.ones(3)), (np.ones((1, 4)), np.ones(4))):
        for kind in ("linear", "nearest", "previous"):
            with pytest.raises(ValueError, match=r"equal in length|one dimension"):
                interpolate.interp1d(x, y, kind)
            with pytest.raises(ValueError, match=r"equal in length|one dimension"):
                grad(lambda y: np.sum(interpolate.interp1d(x, y, kind)([0.0])))(y)  # noqa: B023


def test_curves_that_rise_by_tiny_numbers():
    """Whose products are no numbers any more."""
    x, y, at = np.arange(4.0), np.array([0.0, 1.0, 3.0, 4.0]), np.array([0.5, 1.2])
    found = interpolate.PchipInterpolator(x, 1e-200 * y)(at)
    np.testing.assert_allclose(found, scipy.interpolate.PchipInterpolator(x, 1e-200 * y)(at))
    derivative = jacobian(lambda y: interpolate.PchipInterpolator(x, y)(at))
    np.testing.assert_allclose(derivative(1e-200 * y), derivative(y))


def test_jacobians_of_least_squares_move_with_the_solution():
    """They make covariances."""

    def spread(t):
        errors = lambda v: np.array([v[0] - t, v[1] * v[0] - 2.0, v[0] ** 2 - t * t])
        found = optimize.least_squares(errors, np.ones(2), ftol=1e-15, xtol=1e-15, gtol=1e-15)
        return np.sum(np.linalg.inv(found.jac.T @ found["jac"]))

    for mode in ("auto", "dynamic"):
        derivative = grad(spread, mode=mode)
        for t in (0.5, 1.0, 1.5, 0.7):
            np.testing.assert_allclose(derivative(t), numeric(spread, t), rtol=1e-5)
    found = optimize.least_squares(lambda v: v - 1.0, np.ones(2))
    assert {"x", "jac", "cost"} <= found.keys()


def test_steps_of_toms748():
    """Where SciPy has them among its arguments, which for other methods have a tolerance there."""
    f = lambda x, p: np.exp(x) * p - 3.0
    for k in (1, 2):
        found = lambda p: optimize.toms748(f, 0.0, 5.0, (p,), k)  # noqa: B023
        assert math.isclose(found(0.5), math.log(6), rel_tol=1e-12)
        for mode in ("auto", "dynamic"):
            derivative = value_and_grad(found, mode=mode)
            for p in (0.5, 0.7, 0.9):
                value, slope = derivative(p)
                assert math.isclose(value, math.log(3 / p), rel_tol=1e-12)
                assert math.isclose(slope, -1 / p, rel_tol=1e-9)


def test_methods_that_root_scalar_chooses():
    f = lambda x, p: np.exp(x) * p - 3.0
    for options in (
        {"x0": 1.0},
        {"x0": 1.0, "x1": 1.5},
        {"x0": 1.0, "fprime": lambda x, p: np.exp(x) * p},
        {"bracket": (0.0, 5.0)},
        {"x0": 1.0, "fprime": lambda x, p: np.exp(x) * p, "method": "newton", "xtol": 1e-12},
    ):
        for mode in ("auto", "dynamic"):
            derivative = grad(lambda p: optimize.root_scalar(f, (p,), **options).root, mode=mode)  # noqa: B023
            for p in (0.5, 0.7, 0.9):
                assert math.isclose(derivative(p), -1 / p, rel_tol=1e-6)


def test_rules_of_points_take_finite_ends():
    with pytest.raises(ValueError, match="finite limits"):
        grad(lambda x: integrate.fixed_quad(lambda t: np.exp(-x * t), 0.0, np.inf)[0])(1.0)


def test_copies_of_solutions():
    def fun(t):
        found = copy.copy(optimize.least_squares(lambda v: (v - t) * np.exp(v), np.array([1.5])))
        return found.x[0] + found.jac[0, 0]

    for mode in ("auto", "dynamic"):
        derivative = grad(fun, mode=mode)
        for t in (1.0, 1.2, 1.4):
            assert math.isclose(derivative(t), 1.0 + math.exp(t), rel_tol=1e-6)


def test_places_in_plain_images_are_scipys():
    """With all of its options."""
    image, places = np.arange(20.0).reshape(4, 5) ** 1.5, np.array([[0.5, 1.7], [2.2, 3.1]])
    expected = scipy.ndimage.map_coordinates(image, places)
    np.testing.assert_array_equal(ndimage.map_coordinates(image, places), expected)
    assert ndimage.map_coordinates(image, places, order=1, output=np.float32).dtype == np.float32


@pytest.mark.parametrize(
    "fun",
    [
        lambda a: linalg.solve(a, np.ones(2), assume_a="positive"),
        lambda a: linalg.inv(a, assume_a="foo"),
        lambda a: linalg.lu_solve(linalg.lu_factor(a), np.ones(2), 3),
        lambda a: linalg.solve_discrete_lyapunov(a, np.eye(2), "foo"),
        lambda a: linalg.eig(a, homogeneous_eigvals=True)[0],
    ],
)
def test_names_of_options_that_there_are_none_of(fun):
    a = np.array([[2.0, 0.5], [0.3, 1.0]])
    for call in (fun, grad(lambda a: np.sum(np.real(fun(a))))):
        with pytest.raises((ValueError, NotDifferentiable)):
            call(a)


@pytest.mark.parametrize("bc_type", ["not-a-knot", "natural", "clamped"])
@pytest.mark.parametrize("n", [47, 60])
def test_splines_through_many_points(n, bc_type):
    """From some number on, the slopes are those of a system of bands."""
    rng = np.random.default_rng(n)
    x, y, weights = np.sort(rng.uniform(0.0, 10.0, n)), rng.normal(size=(n, 2)), rng.normal(size=2)
    at = np.array([0.5 * (x[3] + x[4]), 0.3 * x[20] + 0.7 * x[21]])
    theirs = lambda x, y: scipy.interpolate.CubicSpline(x, y, bc_type=bc_type)(at) @ weights @ np.array([1.0, 2.0])
    ours = lambda x, y: interpolate.CubicSpline(x, y, bc_type=bc_type)(at) @ weights @ np.array([1.0, 2.0])
    derivative = value_and_grad(ours, (0, 1))
    for _ in range(3):
        value, (by_x, by_y) = derivative(x, y)
        assert math.isclose(value, theirs(x, y), rel_tol=1e-11)
    step = 1e-6
    for i in (0, 4, 20, n - 1):
        e = step * (np.arange(n) == i)
        assert math.isclose(by_x[i], (theirs(x + e, y) - theirs(x - e, y)) / (2 * step), rel_tol=1e-5, abs_tol=1e-7)
        e = e[:, None] * np.array([1.0, 0.0])
        assert math.isclose(by_y[i, 0], (theirs(x, y + e) - theirs(x, y - e)) / (2 * step), rel_tol=1e-5, abs_tol=1e-7)


def test_splines_in_loops_that_decide():
    """A curve that the function has made is a local of a loop as others are."""

    def fun(p, v):
        curve, s = interpolate.CubicSpline(np.linspace(-4, 4, 9), np.sin(np.linspace(-4, 4, 9)) * p[0]), 0.3
        for one in v:
            s = s * 0.9 + 0.1 * one * curve(s) if s > one else s * 0.8 + p[1] * 0.1
        return s + curve(s)

    derivative = value_and_grad(fun)
    for i in range(8):
        p, v = np.array([1.0 + 0.1 * i, 0.5]), np.random.default_rng(i).standard_normal(20)
        value, slope = derivative(p, v)
        assert math.isclose(value, fun(p, v), rel_tol=1e-11)
        for k, e in enumerate(1e-6 * np.eye(2)):
            assert math.isclose(slope[k], (fun(p + e, v) - fun(p - e, v)) / 2e-6, rel_tol=1e-5, abs_tol=1e-7)
    assert derivative.cache_info().misses <= 6
