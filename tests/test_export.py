"""Exported modules: they run where nothing but NumPy is, give what the derivative gives, and are clean."""

import importlib.util
import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import golden_functions as fun
import numpy as np
import pytest
from agreement import alike
from test_golden import CASES

import symgrad
from symgrad import elementwise_grad, export, grad, hessian, hvp, jacfwd, jacobian, jacrev, value_and_grad
from symgrad.errors import NotExportable

# Runs modules as programs, in a Python that knows the standard library and NumPy (and the packages named first) alone.
ALONE = """
import runpy, sys
known = {"numpy", *sys.argv[1].split(","), *sys.stdlib_module_names}

class Alone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in known and not name.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"there is no {name} here")

sys.meta_path.insert(0, Alone())
for path in sys.argv[2:]:
    runpy.run_path(path, run_name="__main__")
"""


def run_alone(*paths: Path, packages: str = "numpy") -> str:
    """What modules print as programs; warnings are errors."""
    command = [sys.executable, "-I", "-W", "error", "-c", ALONE, packages, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def load(path: Path) -> Any:
    """A module from its file."""
    spec = importlib.util.spec_from_file_location(f"exported_{path.stem}", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def function(module: Any) -> Any:
    """The one public function."""
    made = [value for name, value in vars(module).items() if callable(value) and name.split("_")[0] in KINDS]
    assert len(made) == 1
    return made[0]


KINDS = {"grad", "value", "elementwise", "jacobian", "jacrev", "jacfwd", "hessian", "hvp", "vmap", "function"}


class Line(NamedTuple):
    slope: Any
    offset: Any


@dataclass
class Scale:
    center: Any
    spread: Any


def straight(line, x):
    return np.sum((line.slope * x + line.offset) ** 2)


def scaled(scale, x):
    return np.sum(((x - scale.center) / scale.spread) ** 2)


def layers(params, x, kind="tanh"):
    for w, b in params:
        x = np.tanh(x @ w + b) if kind == "tanh" else np.maximum(x @ w + b, 0)
    return np.sum(x**2)


def steps(x, n):
    for _ in range(n):
        x = x - 0.1 * np.sin(x)
    return np.sum(x)


def determinant(a):
    return np.linalg.det(a)


def overwritten(x, i):
    y = np.zeros_like(x)
    y[i] = x[: len(i)] ** 2
    return np.sum(y**3)


def mixed(z):
    return np.sum(np.abs(z) ** 2)


def eigenvectors(a):
    w, v = np.linalg.eig(a)
    return np.sum(np.abs(v) ** 3 * np.abs(w))


def with_names(found, result, expected):
    return found * result**expected


def pair(x):
    return {"a": (np.sin(x), None), "b": [x[0] * 2.0]}


SIX = np.linspace(0.1, 1.2, 6)
LAYERS = [(np.ones((2, 3)) / 3, np.zeros(3)), (np.ones((3, 1)) / 2, np.ones(1))]
MORE = [
    ("namedtuple", grad(straight), [(Line(2.0, np.float64(1.0)), SIX)]),
    ("dataclass", grad(scaled), [(Scale(0.5, np.array([1.0, 2.0])), np.array([1.0, 3.0]))]),
    ("layers", grad(layers), [(LAYERS, np.ones((4, 2)))]),
    ("static", grad(layers), [(LAYERS, np.ones((4, 2)), "tanh"), (LAYERS, np.ones((4, 2)), "relu")]),
    ("shapes", value_and_grad(fun.rosenbrock), [(SIX,), (SIX[:3],), (SIX.astype(np.float32),)]),
    ("loop", grad(steps), [(SIX, 3), (SIX[:2], 7)]),
    ("adjugate", grad(determinant), [(np.eye(4) + 0.1 * np.arange(16.0).reshape(4, 4),)]),
    ("last_write", grad(overwritten), [(SIX, np.array([0, 2, 2]))]),
    ("complex", grad(mixed), [(SIX + 1j,)]),
    ("eigenvectors", grad(eigenvectors), [(np.arange(9.0).reshape(3, 3) % 4 + 1j * np.eye(3),)]),
    ("names", grad(with_names, (0, 1, 2)), [(2.0, 3.0, 1.5)]),
    ("structured", jacobian(pair), [(SIX,)]),
    ("reverse", jacrev(fun.swish), [(SIX,)]),
    ("forward", jacfwd(fun.polar), [(np.array([2.0, 0.3]),)]),
    ("second", hessian(fun.log_sum_exp), [(SIX,)]),
    ("product", hvp(fun.log_sum_exp), [(SIX, SIX[::-1])]),
    ("elementwise", elementwise_grad(fun.swish), [(SIX,)]),
    ("plain_function", fun.swish, [(SIX,)]),
    ("empty", grad(lambda x: np.sum(x**2)), [(np.zeros((0, 3)),)]),
]
EVERY = [(p.values[0].name, p.values[0].make(), p.values[0].calls) for p in CASES if p.id != "clipped"] + MORE


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """All of the modules, in one folder: ``{name: path}``."""
    folder = tmp_path_factory.mktemp("exported")
    paths = {}
    for name, derivative, calls in EVERY:
        paths[name] = folder / f"{name}.py"
        export(derivative, *calls[0], also=calls[1:], path=paths[name])
    return paths


def test_they_run_alone_and_check_themselves(written):
    assert run_alone(*written.values()).count("the examples agree") == len(EVERY)


@pytest.mark.parametrize(("name", "derivative", "calls"), EVERY, ids=[name for name, *_ in EVERY])
def test_same_results(written, name, derivative, calls):
    found = function(load(written[name]))
    for args in calls:
        if name in ("namedtuple", "dataclass"):  # a class of its own
            actual, expected = found(*args), derivative(*args)
            assert type(actual).__name__ == type(expected).__name__
            fields = Line._fields if name == "namedtuple" else ("center", "spread")
            alike([getattr(actual, f) for f in fields], [getattr(expected, f) for f in fields])
        else:
            alike(found(*args), derivative(*args))


def test_they_are_clean(written):
    folder = next(iter(written.values())).parent
    done = subprocess.run([sys.executable, "-m", "ruff", "check", "--isolated", folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_other_arguments_are_refused(written):
    one, many = function(load(written["logistic"])), function(load(written["shapes"]))
    with pytest.raises(TypeError, match=r"for arguments of \['float64\[3\]', .*not of \['float32\[3\]'"):
        one(np.zeros(3, np.float32), np.zeros((5, 3)), np.zeros(5))
    with pytest.raises(TypeError, match=r"value_and_grad_rosenbrock has no code for \['float64\[7\]'\]"):
        many(np.zeros(7))
    for wrong in ([LAYERS[0]], LAYERS[0], [[*LAYERS[0], 1.0], LAYERS[1]]):
        with pytest.raises(TypeError):
            function(load(written["layers"]))(wrong, np.ones((4, 2)))


def test_a_branch_without_code_is_an_error(tmp_path):
    path = tmp_path / "one_side.py"
    export(grad(fun.huber), 0.5, 1.0, path=path)
    module = load(path)
    assert function(module)(0.25, 1.0) == 0.25
    with pytest.raises(module.Unexplored, match=r"no call has gone this way yet \(golden_functions.py:130\)"):
        function(module)(3.0, 1.0)


def test_branches_that_calls_have_taken_are_there(tmp_path):
    derivative = grad(fun.huber)
    for _ in range(2):
        derivative(-3.0, 1.0)
    path = tmp_path / "both.py"
    text = export(derivative, 0.5, 1.0, path=path)
    assert "Unexplored" not in text
    assert function(load(path))(-2.0, 1.0) == -1.0


WEIGHTS = np.linspace(-1.0, 1.0, 1000)


def weighted(x):
    return np.sum(WEIGHTS * x**2)


def test_large_arrays_go_to_a_file_beside(tmp_path):
    path = tmp_path / "large.py"
    derivative = grad(weighted)
    text = export(derivative, np.ones(1000), path=path)
    assert 'WEIGHTS = np.load(Path(__file__).with_suffix(".npz"))["WEIGHTS"]' in text
    assert len(text) < 4000
    assert "agree" in run_alone(path)
    alike(function(load(path))(np.ones(1000)), derivative(np.ones(1000)))
    assert "np.array" not in export(derivative, np.ones(1000), path=path, check=False)
    assert [array.size for array in np.load(path.with_suffix(".npz")).values()] == [1000]
    assert "np.load" not in export(derivative, np.ones(1000))  # without a file, spelled out


def test_names_of_large_arrays_are_the_functions_own(tmp_path):
    """Those of the writer's options, and what the items of a list are called, are some, too."""
    rng = np.random.default_rng(0)
    file, allow_pickle, pair_0 = rng.normal(size=(3, 100))
    pair = [rng.normal(size=100), 2.0]
    derivative = grad(lambda x: np.sum(x * x * allow_pickle + x * file + x**3 * pair_0) + np.sum(x * pair[0]) * pair[1])
    path, x = tmp_path / "named.py", rng.normal(size=100)
    export(derivative, x, path=path)
    alike(function(load(path))(x), derivative(x))


def test_what_is_outside_is_as_it_was(tmp_path):
    """A constant stays, whatever becomes of the variable that it came from."""
    scale = np.array([2.0, 3.0])
    derivative = grad(lambda x: np.sum(scale * x))
    path = tmp_path / "constant.py"
    export(derivative, np.ones(2), path=path)
    scale[:] = 7.0
    np.testing.assert_array_equal(function(load(path))(np.ones(2)), [2.0, 3.0])


def helper(x):
    return math.gamma(x) * FACTOR


FACTOR = 2.0


@symgrad.primitive
def table(x):
    """A step that cannot be traced.

    More about it.
    """
    return helper(x)


table.defvjp(lambda g, y, x: g * slope_of_table(x, y))


@symgrad.primitive
def slope_of_table(x, y):
    return y * (1.0 + (lambda t: t - t)(x))


def test_functions_are_copied(tmp_path):
    path = tmp_path / "copied.py"
    derivative = grad(lambda x: table(x) ** 2)
    text = export(derivative, 2.5, path=path)
    assert "import math" in text
    assert "FACTOR = 2.0" in text
    assert "symgrad.primitive" not in text
    assert "agree" in run_alone(path)
    alike(function(load(path))(3.5), derivative(3.5))


def test_scipy_is_imported_where_it_is_used(tmp_path):
    special = pytest.importorskip("scipy.special")
    path = tmp_path / "special.py"
    text = export(grad(lambda x: np.sum(special.gammaln(x))), SIX, path=path)
    assert "from scipy.special import" in text
    assert "Needs NumPy and SciPy alone" in text
    assert "agree" in run_alone(path, packages="scipy")


def test_a_module_that_is_wrong_says_so(tmp_path):
    path = tmp_path / "wrong.py"
    text = export(grad(fun.ridge), np.ones(3), path=path)
    path.write_text(text.replace("residual @ FEATURES", "residual @ (FEATURES + 1e-3)"), encoding="utf-8")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert done.returncode == 1
    assert "grad_ridge: example 1 gives" in done.stderr


class Model:
    power = 2

    def __call__(self, x):
        return x**self.power


def random_step(x):
    return x * np.random.default_rng().normal()


def test_what_cannot_be_exported():
    with pytest.raises(NotExportable, match=r"random"):
        export(grad(random_step), 1.0)
    with pytest.raises(NotExportable, match=r"argument model is a Model.*grad\(lambda x: fun\(x, \.\.\.\)\)"):
        export(grad(lambda x, model: model(x)), 1.0, Model())
    with pytest.raises(NotExportable, match="different arguments"):
        export(grad(lambda x, n=2: x**2 * n), 1.0, also=[(1.0, 3)])
    with pytest.raises(NotExportable, match=r"give a path="):
        export(grad(lambda x: np.sum(x**2)), np.ones(20_000))
    gamma = symgrad.primitive(np.vectorize(math.gamma)).defvjp(lambda g, y, x: g * y)
    with pytest.raises(NotExportable, match="is a vectorize, which cannot be written down"):
        export(grad(lambda x: gamma(x)), 1.0)
    with pytest.raises(ValueError, match=r"'gradient.py'"):
        export(grad(fun.ridge), np.ones(3), path="no-module.txt")


def halved_or_squared(x):
    s = 0.0
    for v in x:
        if v > 0:
            s += v * v
        else:
            s -= 0.5 * v
    return s


def test_ways_through_loops_that_calls_have_taken(tmp_path):
    """The last call took another way than those that code was made of; one that none has taken is an error."""
    x = np.array([1.0, -2.0, 3.0, -4.0, 5.0])
    derivative = grad(halved_or_squared)
    for y in (abs(x), abs(x), abs(x), x):
        derivative(y)
    path = tmp_path / "both_ways.py"
    export(derivative, abs(x), path=path)
    for y in (x, abs(x), -x):
        np.testing.assert_array_equal(function(load(path))(y), grad(halved_or_squared, mode="dynamic")(y))
    path = tmp_path / "one_way.py"
    export(grad(halved_or_squared), abs(x), path=path)
    module = load(path)
    np.testing.assert_array_equal(function(module)(abs(x)), 2 * abs(x))
    with pytest.raises(module.Unexplored, match="no call has gone this way"):
        function(module)(x)


def many_ways(x):
    s = x[0] * x[0] if x[0] > 0 else x[1]
    s = s * x[1] if x[1] > 0 else s + x[2]
    s = s * x[2] if x[2] > 0 else s + x[3]
    s = s * x[3] if x[3] > 0 else s + x[4]
    return s * x[4] if x[4] > 0 else s + x[0]


def test_examples_of_many_ways(tmp_path):
    """So many that the function is traced otherwise from some example on: those before are, too."""
    calls = [(x,) for x in np.random.default_rng(3).normal(size=(20, 5))]
    path = tmp_path / "many_ways.py"
    derivative = grad(many_ways)
    export(derivative, *calls[0], also=calls[1:], path=path)
    assert "agree" in run_alone(path)
    for x in np.random.default_rng(4).normal(size=(20, 5)):
        np.testing.assert_allclose(function(load(path))(x), derivative(x), rtol=1e-12)


def halved(s):
    c = 0
    while abs(s) > 0.05 and c < 7:
        s = s * 0.7 if s > 0.3 else s * 0.4
        c += 1
    return s


@pytest.mark.parametrize("seed", range(1, 6))
def test_all_examples_run_where_one_changes_the_loop_of_another(seed):
    values = np.random.default_rng(seed).normal(size=4) * 2
    text = export(grad(halved), float(values[0]), also=[(float(value),) for value in values[1:]])
    module = {"__name__": "exported"}
    exec(compile(text, "exported.py", "exec"), module)
    for value in values:
        assert module["grad_halved"](float(value)) == pytest.approx(grad(halved, mode="dynamic")(float(value)), rel=1e-12)


def test_arrays_of_texts(tmp_path):
    chosen = grad(lambda x, kinds: np.sum(np.where(kinds == "a", x**2, x)))
    path = tmp_path / "chosen.py"
    for x in (np.array([1.0, 2.0]), np.ones(2)):
        found = chosen(x, np.array(["a", "it's"]))
    text = export(chosen, np.ones(2), np.array(["a", "it's"]), path=path)
    assert "NDArray[np.str_]" in text
    assert "agree" in run_alone(path)
    np.testing.assert_allclose(function(load(path))(np.ones(2), np.array(["a", "it's"])), found)


def read_back(t, x):
    z = np.zeros(3)
    z[1] = t
    return 1 / z[1] + x[0] % z[1] + np.sum(z)


def test_pythons_numbers_that_went_through_an_array_are_numpys(tmp_path):
    """What is divided by them is infinite where they are zero, though the array itself is not in the code."""
    path = tmp_path / "read_back.py"
    export(value_and_grad(read_back), 0.5, np.ones(2), path=path)
    found = function(load(path))
    for t in (0.5, -2.0):
        alike(found(t, np.ones(2)), value_and_grad(read_back)(t, np.ones(2)))
    with np.errstate(all="ignore"):
        assert np.isnan(found(0.0, np.ones(2))[0])
