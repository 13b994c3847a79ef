"""Every public name of NumPy is in one class: differentiable, constant, refused, or not applicable, with the reason.

``tests/COVERAGE.md`` is the table; ``pytest --update-golden tests/test_coverage.py`` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symgrad import grad
from symgrad.errors import LeavesNumPy, MutatedInput, NotDifferentiable
from symgrad.ops import create, index
from symgrad.ops.core import REGISTRY, Composite, Op, Refused, Static
from symgrad.tracing.tracer import Tracer
from symgrad.transform import batch

TABLE = Path(__file__).with_name("COVERAGE.md")

# -- what the registry does not say --------------------------------------------------------------------------------

# functions that NumPy does not dispatch, whose bodies are traced
THROUGH = {
    "np.kaiser", "np.row_stack", "np.trapz", "np.fft.fftfreq", "np.fft.rfftfreq", "np.vectorize", "np.poly1d", "np.ndenumerate",
    "np.frompyfunc",
}  # fmt: skip

# arrays like a traced one that hold no traced number
ZEROS = {"np.zeros", "np.ones", "np.empty", "np.zeros_like", "np.ones_like", "np.empty_like"}

# complex where no arbitrary phase matters, which the generic tests cannot know (see test_complex_matrices.py)
BUT_FOR_PHASES = {"np.linalg.eigh", "np.linalg.svd", "np.linalg.qr"}

# what the tracer answers itself
TRACERS = {"np.may_share_memory", "np.shares_memory"}

# no rule, and no floating-point argument that a derivative could flow through
NO_FLOATS = {
    "dates": "busday_count busday_offset is_busday datetime_as_string datetime_data busdaycalendar isnat",
    "bits": "packbits unpackbits",
}

# a call for each name that is refused without a rule of its own: NumPy's protocols lead to the general advice
REFUSED = {
    "np.array2string": lambda x: np.array2string(x),
    "np.array_repr": lambda x: np.array_repr(x),
    "np.array_str": lambda x: np.array_str(x),
    "np.asmatrix": lambda x: np.asmatrix(x),
    "np.bmat": lambda x: np.bmat([[x]]),
    "np.format_float_positional": lambda x: np.format_float_positional(x[0]),
    "np.format_float_scientific": lambda x: np.format_float_scientific(x[0]),
    "np.matrix": lambda x: np.matrix(x),
    "np.nditer": lambda x: np.nditer(x),
    "np.save": lambda x: np.save("x.npy", x),
    "np.savetxt": lambda x: np.savetxt("x.txt", x),
    "np.savez": lambda x: np.savez("x.npz", x),
    "np.savez_compressed": lambda x: np.savez_compressed("x.npz", x),
}

NOT_APPLICABLE = {
    "a type, an exception or an iterator, not a function": "",  # whatever is a class
    "settings, files and information": """
        fromregex genfromtxt get_include get_printoptions getbufsize geterr geterrcall info linalg.test fft.test load loadtxt
        printoptions set_printoptions setbufsize seterr seterrcall show_config show_runtime test""",
    "makes a plain array from sizes, text or a buffer; with ``like=`` of a traced array, a traced one": """
        bartlett blackman diag_indices eye from_dlpack frombuffer fromfile fromfunction fromstring hamming hanning
        identity indices mask_indices tri tril_indices triu_indices""",
    "asks about a type or a size": "isdtype isfortran isscalar issubdtype iterable mintypecode promote_types typename",
    "text of integers": "base_repr binary_repr",
    "iterates over buffers, which traced arrays have not": "nested_iters",
}  # fmt: skip

METHODS = {  # of ndarray: attributes that lead out of NumPy, or change an array in place
    "refused": "byteswap ctypes data dump dumps getfield resize setfield setflags tobytes tofile tostring",
    "static": "device dtype flags itemsize nbytes ndim shape size strides",
    "constant": "argmax argmin argsort argpartition all any nonzero searchsorted",
}


def public() -> Iterator[tuple[str, Any]]:
    """Every public callable of NumPy's that this project covers, by name."""
    for prefix, module in (("np.", np), ("np.linalg.", np.linalg), ("np.fft.", np.fft)):
        for name in sorted(dir(module)):
            value = getattr(module, name)
            if not name.startswith("_") and callable(value):
                yield prefix + name, value
    yield "np.lib.stride_tricks.sliding_window_view", np.lib.stride_tricks.sliding_window_view


def listed(table: dict[str, str], name: str) -> str | None:
    """The heading under which a name stands."""
    return next((heading for heading, names in table.items() if name.removeprefix("np.") in names.split()), None)


def classes(name: str, value: Any) -> list[tuple[str, str]]:
    """The classes that a name is in, which should be one, and why it is in that."""
    handler = REGISTRY.get(value) if value.__hash__ else None
    found = []
    if name in ZEROS:
        found.append(("constant", "holds no traced number"))
    elif value in create.LIKE:
        found.append(("differentiable", "makes a traced array"))
    elif value in index.WRITERS:
        found.append(("differentiable", "writes into a traced array"))
    elif isinstance(handler, Composite) or (isinstance(handler, Op) and handler.family != "constant"):
        found.append(("differentiable", "traced" if isinstance(handler, Composite) else handler.family))
    elif isinstance(handler, Op):
        found.append(("constant", "zero derivative"))
    elif isinstance(handler, Static):
        found.append(("constant", "of shapes and dtypes alone"))
    elif isinstance(handler, Refused):
        found.append(("refused", handler.why))
    if name in THROUGH:
        found.append(("differentiable", "its body is traced"))
    if name in TRACERS:
        found.append(("constant", "the trace knows"))
    if name in REFUSED:
        found.append(("refused", "general advice"))
    if reason := listed(NO_FLOATS, name):
        found.append(("constant", f"takes {reason}, no floats"))
    if reason := listed(NOT_APPLICABLE, name):
        found.append(("not applicable", reason))
    if isinstance(value, type) and not found:
        found.append(("not applicable", next(iter(NOT_APPLICABLE))))
    return found


# -- the table -----------------------------------------------------------------------------------------------------


def row(name: str, value: Any) -> str:
    kind, how = classes(name, value)[0]
    cells = [f"`{name}`", kind, how]
    handler = REGISTRY.get(value) if value.__hash__ else None
    if kind == "differentiable" and isinstance(handler, (Op, Composite)):
        op = handler if isinstance(handler, Op) else None
        forward = "traced" if op is None else {"op": "given" if op.jvp else "transposed"}.get(op.family, "the rule's")
        batched = "traced" if op is None else "one by one" if batch.rule_of(op) is batch.no_rule else "yes"
        cells += [
            "traced" if op is None else "yes",
            forward,
            "yes",
            "yes",
            "yes" if handler.complex else "yes, but for phases" if name in BUT_FOR_PHASES else "real only",
            batched,
        ]
    else:
        cells += [""] * 6
    return f"| {' | '.join(cells)} |"


HEAD = """# What NumPy's functions are to symgrad

Written by `tests/test_coverage.py`, from the registry of operations. The generic tests (`test_ops.py`) check what it says of
differentiable functions: against finite differences, in reverse, forward and second order, in single precision and complex.
*traced*: made of other functions, whose rules serve. *one by one*: `vmap` calls it for each element of the batch.

| function | class | how | reverse | forward | second order | float32 | complex | batched |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def method_rows() -> list[str]:
    rows = []
    x = np.ones((1, 1))  # has not all that dir() lists, in NumPy 2.0
    for name in sorted(n for n in dir(np.ndarray) if not n.startswith("_") and hasattr(x, n)):
        kind = listed(METHODS, name) or ("differentiable" if hasattr(Tracer, name) else "missing")
        rows.append(f"| `ndarray.{name}` | {'constant' if kind == 'static' else kind} | |" + " |" * 6)
    return rows


def written() -> list[str]:
    return [line for line in TABLE.read_text("utf-8").splitlines() if line.startswith("| `")] if TABLE.exists() else []


# -- the tests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "value"), list(public()), ids=[name for name, _ in public()])
def test_every_name_is_in_one_class(name, value):
    assert len(classes(name, value)) == 1


def test_the_table_is_up_to_date(request):
    rows = [row(name, value) for name, value in public()] + method_rows()
    named = lambda line: line.split("|")[1]
    if request.config.getoption("--update-golden"):  # what this NumPy has not stays
        old = [line for line in written() if named(line) not in set(map(named, rows))]
        TABLE.write_text(HEAD + "\n".join(sorted([*rows, *old], key=named)) + "\n", "utf-8")
    missing = set(rows) - set(written())
    assert not missing, "pytest --update-golden tests/test_coverage.py, if the change is meant"


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("name", [name for name, _ in public() if name in REFUSED])
def test_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((NotDifferentiable, LeavesNumPy), match=r"test_coverage.py:\d+: .*(write|use|make) "):
        grad(lambda x: np.sum(REFUSED[name](x)))(np.ones(3))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", METHODS)
def test_methods(kind):
    assert not [line for line in method_rows() if "missing" in line]
    for name in METHODS[kind].split():
        if not hasattr(np.ndarray, name):
            continue

        def fun(x, name=name):
            attribute = getattr(x + 0, name)
            if name in ("resize", "setflags"):
                attribute()
            elif kind == "constant":
                attribute(0) if name in ("argpartition", "searchsorted") else attribute()
            return np.sum(x)

        if kind == "refused":
            with pytest.raises((LeavesNumPy, MutatedInput), match=r"write|use|leave"):
                grad(fun)(np.ones(3))
        else:
            assert grad(fun)(np.ones(3)).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_bodies_are_traced():
    x = np.array([1.0, 2.0, 3.0])
    kaiser = lambda x: np.sum(np.kaiser(5, x[0]))
    step = 1e-6
    slope = (kaiser(x + step) - kaiser(x - step)) / (2 * step)
    np.testing.assert_allclose(grad(kaiser)(x), [slope, 0, 0], rtol=1e-7, atol=1e-12)
    for fun, expected in {
        (lambda x: np.sum(np.fft.fftfreq(5, x[0]) ** 2)): [-0.8, 0, 0],
        (lambda x: np.sum(np.fft.rfftfreq(5, x[0]))): [-0.6, 0, 0],
        (lambda x: np.sum(np.vectorize(lambda t: t * t)(x))): [2, 4, 6],
        (lambda x: np.poly1d(x)(2.0)): [4, 2, 1],
        (lambda x: np.sum(np.poly1d([1.0, 2.0, 3.0])(x))): [4, 6, 8],
        (lambda x: sum(t * i for (i,), t in np.ndenumerate(x))): [0, 1, 2],
        **({(lambda x: np.sum(np.row_stack([x, x]))): [2, 2, 2]} if hasattr(np, "row_stack") else {}),
        **({(lambda x: np.trapz(x)): [0.5, 1, 0.5]} if "trapz" in vars(np) else {}),
    }.items():
        np.testing.assert_allclose(grad(fun)(x), expected, rtol=1e-12, atol=1e-12)
