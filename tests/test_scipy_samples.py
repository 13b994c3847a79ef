"""``symgrad.scipy.stats``: statistics of samples, as SciPy has them, derivatives as its differences are."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

pytest.importorskip("scipy")

import scipy.stats
from agreement import agrees, scalar

from symgrad import grad, hessian, jacobian, jvp
from symgrad.errors import NotDifferentiable
from symgrad.scipy import stats

SINCE_1_14 = hasattr(scipy.stats, "quantile")  # in which most of what came since 1.13 is


def sample(*shape, seed=0, low=0.2, high=3.0):
    return np.random.default_rng(seed + sum(shape)).uniform(low, high, shape)


X, ROWS, OTHER = sample(7), sample(4, 5), sample(4, 5, seed=1)
AXES = [{}, {"axis": 1}, {"axis": -1}, {"axis": None}]
KEPT = [*AXES, {"axis": 1, "keepdims": True}, {"axis": None, "keepdims": True}]
LIMITS = [{"limits": (0.5, 2.0), "axis": None}, {"limits": (None, 2.0), "inclusive": (True, False), "axis": 1}]
TAILS = [{"alternative": kind} for kind in ("less", "greater", "two-sided")]
STATISTICS = {
    "zscore": [*AXES, {"ddof": 1}],
    "gzscore": [*AXES, {"ddof": 2, "axis": 1}],
    "gstd": [*AXES, {"ddof": 0}],
    "moment": [
        *({"order": k} for k in range(6)),
        {"order": 3, "axis": 1},
        {"order": 2, "center": 0.7},
        {"order": 1, "center": 0.7},
    ],
    "skew": [*KEPT, {"bias": False}],
    "kurtosis": [*KEPT, {"bias": False, "fisher": False}, {"fisher": False, "axis": 1}],
    "variation": [*KEPT, {"ddof": 1}],
    "sem": [*KEPT, {"ddof": 0}],
    "iqr": [*KEPT, {"rng": (10, 80), "axis": 1}, {"scale": "normal"}, {"scale": 2.0, "interpolation": "lower", "axis": 0}],
    "entropy": [*AXES, {"base": 2.0, "axis": 1, "keepdims": True}],
    "tmean": [*KEPT, *LIMITS, {"limits": (0.5, 2.0), "axis": 1}],
    "tvar": [*KEPT, *LIMITS, {"limits": (0.5, 2.0), "axis": 1, "ddof": 0}],
    "tstd": [*KEPT, *LIMITS, {"limits": (0.5, 2.0), "axis": None, "ddof": 0}],
    "tsem": [*KEPT, *LIMITS],
    "circmean": [*KEPT, {"high": 5.0, "low": 1.0}],
    "circvar": [*KEPT, {"high": 5.0, "low": -1.0}],
    "circstd": [*KEPT, {"high": 50.0, "axis": 1}, {"normalize": True}],
}
ONE = [(name, options) for name, several in STATISTICS.items() for options in several]


@pytest.mark.parametrize(("name", "options"), ONE)
def test_statistics_of_a_sample(name, options):
    fun = getattr(stats, name)
    for x in (ROWS, X) if options.get("axis", 0) in (0, None) else (ROWS,):
        agrees(lambda x: fun(x, **options), x)
    agrees(lambda x: grad(scalar(lambda x: fun(x, **options)))(x), ROWS)
    value, slope = jvp(lambda x: fun(x, **options), (ROWS,), (OTHER,))
    assert np.shape(value) == np.shape(getattr(scipy.stats, name)(ROWS, **options))
    step = 1e-6
    ends = [getattr(scipy.stats, name)(ROWS + sign * step * OTHER, **options) for sign in (1, -1)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), 1e-6, 1e-7)


@pytest.mark.parametrize(("name", "options"), ONE)
def test_samples_of_other_kinds(name, options):
    """Of single precision, lists, complex numbers."""
    fun = lambda x, **more: getattr(stats, name)(x, **options, **more)
    value, slope = jvp(fun, (ROWS.astype(np.float32),), (OTHER.astype(np.float32),))
    np.testing.assert_allclose(value, fun(ROWS), 2e-4, 2e-4)
    assert np.result_type(value) == np.result_type(slope) == np.float32
    rows = lambda a, b, c: fun([[a, b, 1.1], [c, 1.9, 0.4], [1.5, 0.7, 0.9]])
    np.testing.assert_allclose(jvp(rows, (0.3, 1.0, 1.8), (0.0, 0.0, 0.0))[0], rows(0.3, 1.0, 1.8), 1e-12, 1e-12)
    with pytest.raises(NotDifferentiable, match=f"{name} has no derivative rule for complex numbers"):
        grad(lambda x: np.sum(np.real(fun(x + 1j))))(ROWS)
    with pytest.raises(NotDifferentiable, match=f"{name} has no derivative rule for nan_policy="):
        grad(lambda x: np.sum(fun(x, nan_policy="omit")))(ROWS)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", STATISTICS)
def test_rows_without_spread(name):
    """What SciPy has there is NaN or 0, and so are the derivatives; those of other rows are as they are."""
    x = np.stack([np.full(5, 1.25), ROWS[0]])
    options = {"axis": 1, **({"ddof": 0} if name in ("zscore", "gzscore") else {})}
    fun = lambda x: getattr(stats, name)(x, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(scipy.stats, name)(x, **options)
    for mode in ("auto", "dynamic"):
        found = jacobian(fun, mode=mode)(x)
        np.testing.assert_allclose(jvp(fun, (x,), (x * 0,))[0], theirs, 1e-12, 1e-7)
        alone = jacobian(fun, mode=mode)(x[1:])
        np.testing.assert_allclose(found[1][..., 1, :], alone[0][..., 0, :], 1e-10, 1e-12)
        if name in ("zscore", "gzscore", "skew", "kurtosis"):
            assert np.isnan(theirs[0]).all()
            assert np.isnan(found[0][..., 0, :]).all()
        elif name in ("gstd", "variation", "sem", "iqr", "tstd", "tsem", "circstd", "circvar"):
            np.testing.assert_allclose(np.sum(found[0][..., 0, :]), 0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [name for name in STATISTICS if name != "gstd" or SINCE_1_14])  # before which it raises
def test_samples_of_nothing_and_of_one(name):
    options = {"order": 2} if name == "moment" else {}
    fun = lambda x: getattr(stats, name)(x, **options)
    for x in (np.zeros(0), np.zeros((0, 3)), np.zeros((3, 0)), np.array([1.3]), np.array([[1.3, 2.0]])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = getattr(scipy.stats, name)(x, **options)
        found = jvp(fun, (x,), (np.ones_like(x),))[0]
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected, 1e-12, 1e-7)


def test_scores_among_others():
    agrees(stats.zmap, X, OTHER[0])
    found = jvp(lambda x: stats.zmap(x, np.arange(1, 8)), (X,), (X,))[0]
    np.testing.assert_allclose(found, scipy.stats.zmap(X, np.arange(1, 8)), 1e-12)
    agrees(lambda a, b: stats.zmap(a, b, axis=1, ddof=1), ROWS, OTHER)
    agrees(lambda a, b: stats.zmap(a, b, axis=None), ROWS, OTHER)
    agrees(lambda a, b: grad(scalar(stats.zmap), (0, 1))(a, b), X, OTHER[0])


def test_several_moments():
    agrees(lambda x: stats.moment(x, [0, 1, 2, 3]), ROWS)
    agrees(lambda x, c: stats.moment(x, [1, 2], center=c, axis=1), ROWS, 0.7)
    with pytest.raises(ValueError, match="integral"):
        grad(lambda x: stats.moment(x, 1.5))(X)


def test_divergences():
    agrees(stats.entropy, X, OTHER.ravel()[:7])
    agrees(lambda p, q: stats.entropy(p, q, base=3.0, axis=1), ROWS, OTHER)
    agrees(lambda p, q: stats.entropy(p[:, None], q), ROWS[:, 0], OTHER)
    agrees(lambda p, base: stats.entropy(p, base=base), X, 2.5)
    agrees(lambda p, q: grad(lambda p, q: stats.entropy(p, q), (0, 1))(p, q), X, OTHER.ravel()[:7])
    with pytest.raises(ValueError, match="positive"):
        grad(lambda p: stats.entropy(p, base=-1.0))(X)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_within_limits():
    rows = np.array([[0.1, 0.2], [1.0, 2.0]])
    for name in ("tmean", "tvar", "tstd", "tsem"):
        found = jvp(lambda x, name=name: getattr(stats, name)(x, (0.5, 3.0), axis=1), (rows,), (rows,))[0]
        np.testing.assert_allclose(found, getattr(scipy.stats, name)(rows, (0.5, 3.0), axis=1))
    with_nan = np.array([1.0, np.nan, 9.0])
    assert np.isnan(jvp(lambda x: stats.tmean(x, (0.0, 2.0)), (with_nan,), (with_nan,))[0])


# -- tests and lines -----------------------------------------------------------------------------------------------

Y = sample(7, seed=5) + 0.7 * X


@pytest.mark.parametrize("options", [{}, *TAILS])
def test_correlations(options):
    fun = lambda x, y: tuple(stats.pearsonr(x, y, **options))
    agrees(fun, X, Y)
    agrees(lambda x, y: grad(scalar(fun), (0, 1))(x, y), X, Y)
    agrees(lambda x, y: stats.pearsonr(x, y, **options).statistic, X[:3], -Y[:3])
    agrees(fun, X[:3], -Y[:3])
    result = jvp(
        lambda x: [(found := stats.pearsonr(x, Y)).statistic, found.correlation, found[0], len(found)][:3], (X,), (X,)
    )[0]
    np.testing.assert_allclose(result, [scipy.stats.pearsonr(X, Y).statistic] * 3)
    np.testing.assert_allclose(jvp(lambda x: stats.pearsonr(x, [2, 1, 5, 3, 3, 8, 1])[0], (X,), (X,))[0],
                               scipy.stats.pearsonr(X, [2, 1, 5, 3, 3, 8, 1])[0])  # fmt: skip


def test_correlations_of_rows():
    for axis in (0, 1, -1):
        fun = lambda x, axis=axis: tuple(stats.pearsonr(x, OTHER, axis=axis))
        found = jvp(fun, (ROWS,), (ROWS,))[0]
        rows = zip(np.moveaxis(ROWS, axis, -1), np.moveaxis(OTHER, axis, -1), strict=True)
        np.testing.assert_allclose(np.transpose(found), [tuple(scipy.stats.pearsonr(*row)) for row in rows], 1e-10)
    whole = jvp(lambda x: stats.pearsonr(x, OTHER, axis=None)[0], (ROWS,), (ROWS,))[0]
    np.testing.assert_allclose(whole, scipy.stats.pearsonr(ROWS.ravel(), OTHER.ravel())[0])


def test_correlations_of_one():
    """At its bounds the coefficient goes on as it does, so that the second derivatives are right."""
    line = 0.3 + 2 * X
    first = lambda y: stats.pearsonr(X, y).statistic
    np.testing.assert_allclose(grad(first)(line), 0, atol=1e-14)
    way = np.random.default_rng(3).normal(size=7)
    along = lambda t: first(line + t * way)
    rest = way - np.polyval(np.polyfit(X, way, 1), X)
    expected = -np.sum(rest**2) / np.sum((line - np.mean(line)) ** 2)
    np.testing.assert_allclose(hessian(along)(0.0), expected, 1e-8)
    assert jvp(first, (line,), (way,))[0] <= 1
    assert jvp(first, (line,), (line,))[0] == pytest.approx(1)
    r, p = jvp(lambda y: tuple(stats.pearsonr(X[:2], y)), (line[:2],), (line[:2],))[0]
    assert (r, p) == tuple(scipy.stats.pearsonr(X[:2], line[:2]))
    with pytest.raises(ValueError, match="length at least 2"):
        grad(lambda x: stats.pearsonr(x, x)[0])(X[:1])
    assert np.isnan(jvp(first, (np.ones(7),), (X,))[0])


@pytest.mark.parametrize("options", [{}, *TAILS])
def test_lines(options):
    fields = ("slope", "intercept", "rvalue", "pvalue", "stderr", "intercept_stderr")
    fun = lambda x, y: [getattr(stats.linregress(x, y, **options), field) for field in fields]
    agrees(fun, X, Y)
    agrees(lambda x, y: grad(scalar(fun), (0, 1))(x, y), X, Y)
    slope, intercept, *_, error = jvp(lambda y: tuple(stats.linregress(X, y, **options)), (Y,), (Y,))[0]
    expected = scipy.stats.linregress(X, Y, **options)
    np.testing.assert_allclose([slope, intercept, error], [expected.slope, expected.intercept, expected.stderr])


def test_lines_through_all_points():
    line = 0.3 + 2 * X
    for n, known in ((2, (2.0, 0.3, 1.0, 0.0, 0.0)), (7, scipy.stats.linregress(X[:7], line[:7]))):  # of two, new ones say NaN
        found = jvp(lambda y, n=n: tuple(stats.linregress(X[:n], y)), (line[:n],), (line[:n],))[0]
        np.testing.assert_allclose(found, known, 1e-7, 1e-7)
    np.testing.assert_array_equal(grad(lambda y: stats.linregress(X[:2], y).stderr)(line[:2]), 0)
    level = np.full(2, 0.7)
    assert jvp(lambda y: stats.linregress(X[:2], y).pvalue, (level,), (level,))[0] == 1


def test_lines_of_rows():
    both = grad(lambda both: stats.linregress(*both).slope)(np.stack([X, Y]))
    np.testing.assert_allclose(both, grad(lambda x, y: stats.linregress(x, y).slope, (0, 1))(X, Y))
    found = jvp(lambda x: stats.linregress(x, OTHER, axis=1).slope, (ROWS,), (ROWS,))[0]
    np.testing.assert_allclose(found, [scipy.stats.linregress(a, b).slope for a, b in zip(ROWS, OTHER, strict=True)])


TESTS = {
    "ttest_1samp": [(lambda fun, a, b, **options: fun(a, 0.7, **options)), [{}, {"axis": 1}, {"axis": None}]],
    "ttest_rel": [
        (lambda fun, a, b, **options: fun(a, b, **options)),
        [{}, {"axis": 1, **({"keepdims": True} if SINCE_1_14 else {})}],
    ],
    "ttest_ind": [
        (lambda fun, a, b, **options: fun(a, b, **options)),
        [{}, {"equal_var": False}, {"axis": 1}, {"axis": None, "equal_var": False}, {"axis": -1, "keepdims": True}],
    ],
}


@pytest.mark.parametrize(("name", "options"), [(name, options) for name, (_, several) in TESTS.items() for options in several])
def test_t_tests(name, options):
    call = TESTS[name][0]
    for more in TAILS if not options else [{}]:
        fun = lambda a, b, more=more: (found := call(getattr(stats, name), a, b, **options, **more)) and (*found, found.df)
        agrees(lambda a, b, fun=fun: fun(a, b), ROWS, OTHER)
        agrees(lambda a, b, fun=fun: grad(scalar(fun), (0, 1))(a, b), ROWS, OTHER)


def test_t_tests_of_samples_that_differ_in_length():
    for equal in (True, False):
        agrees(lambda a, b, equal=equal: tuple(stats.ttest_ind(a, b, equal_var=equal)), X, Y[:4])
    agrees(lambda a, mean: tuple(stats.ttest_1samp(a, mean)), X, 0.3)
    agrees(lambda a, mean: tuple(stats.ttest_1samp(a, mean)), ROWS, OTHER[:1])
    for options in ({"trim": 0.2}, {"nan_policy": "omit"}):
        with pytest.raises(NotDifferentiable, match=f"ttest_ind has no derivative rule for {next(iter(options))}="):
            grad(lambda a, options=options: stats.ttest_ind(a, Y, **options)[0])(X)
    with pytest.raises(ValueError, match="alternative"):
        grad(lambda a: stats.ttest_rel(a, Y, alternative="both")[0])(X)


# -- transforms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lmbda", [-1.3, 0.0, 0.5, 1.0, 2.0, 3.0])
def test_power_transforms(lmbda):
    x, mixed = ROWS, ROWS - 1.5
    agrees(lambda x: stats.boxcox(x, lmbda), x)
    agrees(lambda x: stats.yeojohnson(x, lmbda), mixed)
    agrees(lambda x: grad(scalar(lambda x: stats.yeojohnson(x, lmbda)))(x), mixed)
    for fun, data in ((stats.boxcox_llf, X), (stats.yeojohnson_llf, X - 1.5)):
        agrees(lambda x, fun=fun: fun(lmbda, x), data)
        agrees(lambda x, fun=fun: grad(lambda x: fun(lmbda, x))(x), data)
        if lmbda not in (0.0, 2.0):  # beside which SciPy's loses digits
            agrees(lambda lmbda, fun=fun, data=data: fun(lmbda, data), lmbda)
        agrees(lambda lmbda, fun=fun, data=data: grad(lambda lmbda: fun(lmbda, data))(lmbda), lmbda)
        found = jvp(lambda x, fun=fun: fun(lmbda, x), (data.reshape(-1, 1),), (data.reshape(-1, 1),))[0]
        np.testing.assert_allclose(found, [getattr(scipy.stats, fun.__name__)(lmbda, data)])


def test_power_transforms_at_their_ends():
    for name in ("boxcox", "yeojohnson"):
        with pytest.raises(NotDifferentiable, match=f"{name} has no derivative rule for lmbda=None"):
            grad(lambda x, name=name: np.sum(getattr(stats, name)(x)[0]))(X)
    for lmbda in (-800.0, 800.0):  # exponentials of which overflow
        agrees(lambda x, lmbda=lmbda: stats.boxcox_llf(lmbda, x), X / 100 + 1)
        assert math.isfinite(grad(lambda lmbda: stats.boxcox_llf(lmbda, 1e3 * X))(lmbda))


# -- densities -----------------------------------------------------------------------------------------------------

WIDTHS = [None, "silverman", 0.4, lambda kde: kde.neff**-0.3]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [1, 2])
def test_densities_estimated_from_points(width, weighted, size):
    data, at, weights = sample(size, 6), sample(size, 3, seed=2), sample(6) if weighted else None
    theirs, ours = (part.gaussian_kde(data, width, weights) for part in (scipy.stats, stats))
    for name in ("evaluate", "logpdf", "pdf"):
        np.testing.assert_allclose(getattr(ours, name)(at), getattr(theirs, name)(at), 1e-10)
        agrees(getattr(ours, name), at)
        agrees(lambda data, at, name=name: getattr(stats.gaussian_kde(data, width, weights), name)(at), data, at)
    np.testing.assert_allclose(ours(at), theirs(at), 1e-10)
    for name in ("neff", "factor", "covariance", "inv_cov", "weights"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), 1e-10)
    agrees(lambda data: grad(lambda data: np.sum(stats.gaussian_kde(data, width, weights).logpdf(at)))(data), data)
    if weighted:
        agrees(lambda weights: stats.gaussian_kde(data, width, weights)(at), weights)
    if width == 0.4:
        agrees(lambda width: stats.gaussian_kde(data, width, weights).logpdf(at), 0.4)


def test_what_estimated_densities_take():
    data = sample(2, 6)
    kde = stats.gaussian_kde(data)
    np.testing.assert_allclose(kde([0.3, 1.0]), scipy.stats.gaussian_kde(data)([0.3, 1.0]))
    np.testing.assert_allclose(kde.integrate_box([0, 0], [1, 1]), scipy.stats.gaussian_kde(data).integrate_box([0, 0], [1, 1]))
    assert grad(lambda x: np.sum(stats.gaussian_kde(X)(x)))(np.array([0.5, 1.0])).shape == (2,)
    for wrong, message in (
        (lambda: kde(np.ones((3, 2))), "dimension"),
        (lambda: stats.gaussian_kde(data.T), "Number of"),
        (lambda: stats.gaussian_kde(data, "wide"), "bw_method"),
        (lambda: stats.gaussian_kde([1.0]), "multiple"),
        (lambda: stats.gaussian_kde(data, weights=np.ones(3)), "length n"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


def test_multivariate_t():
    x, loc, root, df = sample(3, 2), sample(2), np.array([[1.0, 0.3], [0.2, 0.8]]), 3.3
    shape = lambda root: root @ root.T
    for name in ("logpdf", "pdf"):
        ours, theirs = getattr(stats.multivariate_t, name), getattr(scipy.stats.multivariate_t, name)
        for args in (
            (x, loc, shape(root), df),
            (x[0], loc, shape(root), df),
            (x, None, 2.0 * np.eye(2), 1),
            (0.3,),
            (X, 0.2, 2.0, 5.0),
        ):
            np.testing.assert_allclose(ours(*args), theirs(*args), 1e-11)
        normal = getattr(scipy.stats.multivariate_normal, name)(x, loc, shape(root))
        np.testing.assert_allclose(ours(x, loc, shape(root), np.inf), normal, 1e-11)
        agrees(lambda x, loc, root, df, ours=ours: ours(x, loc, shape(root), df), x, loc, root, df)
        agrees(lambda x, df, ours=ours: grad(lambda x, df: np.sum(ours(x, loc, shape(root), df)), (0, 1))(x, df), x, df)
    frozen = lambda x, df: stats.multivariate_t(loc, shape(root), df).logpdf(x)
    np.testing.assert_allclose(frozen(x, df), scipy.stats.multivariate_t(loc, shape(root), df).logpdf(x))
    agrees(frozen, x, df)
    with pytest.raises(NotDifferentiable, match="allow_singular="):
        stats.multivariate_t.pdf(x, loc, np.ones((2, 2)), df, allow_singular=True)


def test_entropies_of_dirichlet_distributions():
    alpha = sample(4)
    np.testing.assert_allclose(stats.dirichlet.entropy(alpha), scipy.stats.dirichlet.entropy(alpha))
    agrees(stats.dirichlet.entropy, alpha)
    agrees(lambda alpha: stats.dirichlet(alpha).entropy(), alpha)
    agrees(lambda alpha: grad(stats.dirichlet.entropy)(alpha), alpha)


def test_statistics_of_plain_arrays_are_scipys():
    """With what has no derivative rule."""
    x = np.array([1.0, np.nan, 3.0, 7.0])
    np.testing.assert_array_equal(stats.zscore(x, nan_policy="omit"), scipy.stats.zscore(x, nan_policy="omit"))
    assert type(stats.pearsonr(X, Y)) is type(scipy.stats.pearsonr(X, Y))
    assert stats.boxcox(X)[1] == scipy.stats.boxcox(X)[1]
    assert stats.ttest_ind(X, Y, trim=0.2) == scipy.stats.ttest_ind(X, Y, trim=0.2)
    if SINCE_1_14:  # before which that is NumPy alone
        with pytest.raises(NotDifferentiable, match=r"write symgrad\.scipy\.stats\.zscore"):
            grad(lambda x: np.sum(scipy.stats.zscore(x)))(X)


@pytest.mark.parametrize("width", [0.3, "silverman", lambda kde: kde.n**-0.5, None])
def test_another_width_of_densities(width):
    def estimated(part):
        def density(data, at):
            kde = part.gaussian_kde(data, 0.7)
            kde.set_bandwidth(width)
            return kde(at) * kde.covariance_factor()

        return density

    data, at = np.random.default_rng(5).normal(size=6), np.array([0.3, -1.0])
    np.testing.assert_allclose(estimated(stats)(data, at), estimated(scipy.stats)(data, at))
    agrees(estimated(stats), data, at)
    kde = stats.gaussian_kde(data)
    kde.set_bandwidth(0.3)
    np.testing.assert_allclose(kde.integrate_box_1d(0, 1), scipy.stats.gaussian_kde(data, 0.3).integrate_box_1d(0, 1))


class Narrow(stats.gaussian_kde):
    def covariance_factor(self):
        return 0.2


def test_a_rule_for_the_width_of_densities():
    data, at = np.random.default_rng(5).normal(size=6), np.array([0.3, -1.0])
    theirs = scipy.stats.gaussian_kde(data, 0.2)
    np.testing.assert_allclose(Narrow(data)(at), theirs(at))
    np.testing.assert_allclose(Narrow(data, "scott")(at), scipy.stats.gaussian_kde(data, "scott")(at))
    agrees(lambda data: Narrow(data)(at), data)
