"""Looking inside: pictures, highlighted sources, lines side by side, profiles, and where NaNs come from."""

import html
import os
import re
import stat
import xml.etree.ElementTree as ET

import golden_functions as fun
import numpy as np
import pytest

from symgrad import elementwise_grad, grad, graph, hessian, jvp, value_and_grad
from symgrad.errors import MadeNaN
from symgrad.ir import CONST
from symgrad.look import highlighted

X = np.sin(np.arange(1.0, 16.0)).reshape(5, 3)
LOGISTIC = (np.zeros(3), X, (X[:, 0] > 0) + 0.0)

# -- pictures ------------------------------------------------------------------------------------------------------


def drawn(view):
    return [node for node in view.nodes if node.op is not CONST or node in view.outputs]


VIEWS = [
    graph(lambda x: np.sin(x) * 2.0, 1.0),
    grad(fun.logistic).graph(*LOGISTIC),
    hessian(fun.rosenbrock).graph(np.arange(4.0)),
    graph(lambda x: 1.0, 2.0),
    graph(lambda a, b: (a, a), np.ones(2), 1.0),
]


@pytest.fixture
def no_graphviz(monkeypatch):
    monkeypatch.setattr("symgrad.draw.shutil.which", lambda name: None)


@pytest.mark.parametrize("view", VIEWS, ids=range(len(VIEWS)))
def test_svg(view, no_graphviz):
    """A box for each node, none over another, and an arrow for each use."""
    root = ET.fromstring(view._repr_svg_())
    boxes = [{k: float(r.get(k)) for k in ("x", "y", "width", "height")} for r in root.iter("{http://www.w3.org/2000/svg}rect")]
    nodes = drawn(view)
    assert len(boxes) == len(nodes)
    for i, a in enumerate(boxes):
        assert 0 <= a["x"] <= a["x"] + a["width"] <= float(root.get("width"))
        assert 0 <= a["y"] <= a["y"] + a["height"] <= float(root.get("height"))
        for b in boxes[:i]:
            assert a["y"] != b["y"] or a["x"] >= b["x"] + b["width"] or b["x"] >= a["x"] + a["width"]
    uses = sum(len(set(node.args) & set(nodes)) for node in nodes)
    assert sum(path.get("fill") == "none" for path in root.iter("{http://www.w3.org/2000/svg}path")) == uses


def test_labels_are_escaped(no_graphviz):
    view = graph(lambda x: np.where(x < 2.0, x, 0.0), np.ones(3))
    assert ET.fromstring(view._repr_svg_()) is not None
    assert "np.less(·, 2.0)" in view._repr_svg_()


def test_dot():
    view = VIEWS[1]
    text = view.to_dot()
    nodes = drawn(view)
    assert text.startswith("digraph {")
    assert text.endswith("}")
    assert len(re.findall(r"^    n\d+ \[label=", text, re.MULTILINE)) == len(nodes)
    assert len(re.findall(r"^    n\d+ -> n\d+;$", text, re.MULTILINE)) == sum(len(set(n.args) & set(nodes)) for n in nodes)
    assert r'label="z = np.matmul(·, ·)\nfloat64[5]"' in text


def test_graphviz_is_used_where_it_is(tmp_path, monkeypatch):
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho '<?xml?><svg>'; cat | head -1; echo '</svg>'\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert VIEWS[0]._repr_svg_() == "<svg>\ndigraph {\n</svg>\n"


# -- sources -------------------------------------------------------------------------------------------------------


def plain(markup):
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


@pytest.mark.parametrize("name", ["logistic", "newton_root"])
def test_highlighting_changes_no_letter(name):
    args = {"logistic": LOGISTIC, "newton_root": (2.0,)}[name]
    source = grad(getattr(fun, name)).source(*args)
    assert isinstance(source, str)
    markup = source._repr_html_()
    assert plain(markup) == source
    assert re.search('<span style="color: [^"]+">def</span>', markup)
    assert ET.fromstring(markup).tag == "pre"


@pytest.mark.parametrize("text", ["", "x", "def f(:\n  (", 'a = """\n<b>&"""\n', "α = 'é'  # ü\n", "    x = 1\n  y"])
def test_highlighting_of_anything(text):
    assert plain(highlighted(text)) == text


def test_without_pygments(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert highlighted("a < b  # é") == "a &lt; b  # é"


ANNOTATED = r"""
  19 def logistic\(w, x, y\): +\|
  20     z = x @ w +\|   z = x @ w
 +\| < return .*
  21     return np.mean\(np.maximum\(z, 0\) - z \* y \+ np.log1p\(np\.\.\. \|   e = np.exp\(-np.abs\(z\)\)
"""


def test_annotate():
    view = grad(fun.logistic).annotate(*LOGISTIC)
    assert re.fullmatch(ANNOTATED.strip("\n"), str(view)), str(view)
    markup = view._repr_html_()
    assert "def logistic(w, x, y):" in plain(markup)
    assert ET.fromstring(markup).tag == "table"


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(("name", "args"), [("logistic", LOGISTIC), ("newton_root", (2.0,)), ("huber", (0.5, 1.0))])
def test_every_generated_line_stands_somewhere(name, args, fast):
    derivative = value_and_grad(getattr(fun, name))
    for _ in range(3):
        derivative(*args)
    source = derivative.source(*args, fast=fast)
    expected = [line.split("  #")[0].strip() for line in source.splitlines()[2:] if not line.lstrip().startswith("#")]
    view = derivative.annotate(*args, fast=fast)
    found = sorted((made for lines in view.lines.values() for made in lines), key=lambda made: made.number)
    assert [made.text.split("  #")[0].strip() for made in found] == expected
    code = getattr(fun, name).__code__
    assert all(file == code.co_filename and line >= code.co_firstlineno for file, line in view.lines)


# -- profiles ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args"), [("logistic", LOGISTIC), ("newton_root", (2.0,)), ("huber", (0.5, 1.0)), ("ridge", (X[0],))]
)
def test_profile(name, args):
    derivative = value_and_grad(getattr(fun, name))
    found = derivative.profile(*args, seconds=0.01)
    assert found.calls >= 1
    timed = [made for lines in found.lines.values() for made in lines]
    assert timed
    assert all(made.seconds >= 0 for made in timed)
    assert sum(made.seconds for made in timed) == pytest.approx(found.seconds)
    source = derivative.source(*args, fast=True)
    assert all(made.text.split("  #")[0] in source for made in timed)
    assert "a call, over" in str(found)
    assert "100%" not in str(found).splitlines()[0]
    assert ET.fromstring(found._repr_html_()).tag == "table"


def test_profile_sees_where_the_time_goes():
    """A line that takes long by far."""

    def slow(x):
        y = x * 2.0
        z = np.linalg.inv(np.outer(y, y) + np.eye(200))
        return np.sum(z)

    found = value_and_grad(slow).profile(np.ones(200), seconds=0.05)
    by_line = {line: sum(made.seconds for made in lines) for (_, line), lines in found.lines.items()}
    assert max(by_line, key=by_line.get) == slow.__code__.co_firstlineno + 2


def test_profile_sees_into_code_that_asks_numpy_to_raise():
    def heard(logits, labels):
        lp = logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))
        said = [0]
        for label in labels:
            said += [label, 0]
        alpha = np.full((20, 11), -1e30)
        alpha[0, 0] = lp[0, 0]
        for t in range(1, 20):
            for s in range(11):
                a = alpha[t - 1, s]
                a = np.logaddexp(a, alpha[t - 1, s - 1]) if s > 0 else a
                if s > 1 and said[s] != 0 and said[s] != said[s - 2]:
                    a = np.logaddexp(a, alpha[t - 1, s - 2])
                alpha[t, s] = a + lp[t, said[s]]
        return -np.logaddexp(alpha[19, 10], alpha[19, 9])

    derivative, args = grad(heard), (np.random.default_rng(0).normal(size=(20, 6)), np.array([1, 2, 3, 2, 4]))
    found = derivative.profile(*args, seconds=0.01)
    assert "runtime.raising" in derivative.source(*args, fast=True)
    assert found.seconds > 1e-6


def test_profile_needs_compiled_code():
    with pytest.raises(RuntimeError, match="not compiled"):
        grad(lambda x: x * np.random.default_rng().normal()).profile(1.0)


# -- NaNs ----------------------------------------------------------------------------------------------------------


def logs(x):
    y = np.log(x)
    return np.sum(y * x)


def roots(x):
    r = np.sqrt(x)
    return np.sum(r * x)


def difference(x, n=3):
    for _ in range(n):
        x = x * 1e200
    return np.sum(x - x[::-1])


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:overflow")
@pytest.mark.parametrize(
    ("function", "x", "message"),
    [
        (logs, [1.0, -1.0], r"test_look.py:\d+ \(y = np.log\(x\)\): np.log\(-1.0 at \[1\]\) made a NaN$"),
        (
            logs,
            [1.0, 0.0],
            r"\(return np.sum\(y \* x\)\): np.multiply\(-inf.*\n  an infinity came from .*\(y = np.log\(x\)\): np.log",
        ),
        (roots, [4.0, 0.0], r"\(r = np.sqrt\(x\)\): .* made a NaN in the backward pass"),
        (difference, [1.0, 2.0], r"\(return np.sum\(x - x\[::-1\]\)\): np.subtract\(inf at \[0\], inf"),
    ],
    ids=["forward", "infinity", "backward", "loop"],
)
def test_debug_nans(function, x, message):
    with pytest.raises(MadeNaN, match=message):
        grad(function, mode="debug_nans")(np.array(x))


def test_debug_nans_lets_the_rest_pass():
    derivative = value_and_grad(fun.logistic, mode="debug_nans")
    expected = value_and_grad(fun.logistic)(*LOGISTIC)
    for _ in range(4):
        found = derivative(*LOGISTIC)
        assert found[0] == expected[0]
        np.testing.assert_array_equal(found[1], expected[1])
    assert np.isnan(elementwise_grad(lambda x: x**2, mode="debug_nans")(np.array([1.0, np.nan]))[1])  # it came from outside
    assert isinstance(MadeNaN(), FloatingPointError)


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_debug_nans_in_tangents():
    tangent = lambda x: jvp(lambda x: np.sqrt(x), (x,), (x,))[1]
    with pytest.raises(MadeNaN, match="in the tangents"):
        grad(tangent, mode="debug_nans")(0.0)


def test_the_backward_pass_is_announced_once():
    a, b, c, d = (np.ones(shape) for shape in ((4, 6), (6, 4), (4, 5), (5, 3)))
    fun = lambda a, b, c, d: np.einsum("ij,jk,kl,lm->", a, b, c, d)
    assert grad(fun, (0, 1)).source(a, b, c, d).count("# backward") == 1
