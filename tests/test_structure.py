"""How the package is built: imports point one way, stand at the top of the files, and name few packages."""

import ast
import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import symgrad

ROOT = Path(symgrad.__file__).parent

# Each line may import from those above it, and from its own. A name stands for a module, or for all of a package.
LAYERS = """
    errors buffers parallel progress runtime ir equal pytree
    source
    ops.core
    ops
    tracing
    transform draw
    loops
    watch
    program
    optimize
    emit
    signature
    compile
    look
    api
    testing
    custom numpy scipy
    eager
    flat sparse export dask pytest_plugin
    __main__
"""
ALLOWED = {"numpy"}  # besides the standard library
GUESTS = {
    "emit.printer": {"astor"},
    "testing": {"hypothesis"},
    "scipy": {"scipy"},
    "sparse": {"scipy"},
    "dask": {"dask", "cloudpickle"},
    "pytest_plugin": {"pytest"},
}


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


@functools.cache
def tree_of(name: str) -> ast.Module:
    """Not at import: each worker that runs some of the tests collects them all."""
    return ast.parse(FILES[name].read_text(encoding="utf-8"))


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All of a file, without the expressions in them, which are most of a tree."""
    for _, field in ast.iter_fields(tree):
        for node in field if isinstance(field, list) else ():
            if isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                yield node
                yield from statements(node)


def imports(tree: ast.AST) -> Iterator[str]:
    """The modules that a file imports, as it names them; ``from a import b`` is ``a.b`` where that is a module."""
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner.removeprefix("symgrad.") in FILES else str(node.module)


def own_imports(name: str) -> set[str]:
    """The modules of the package that a module imports. What an ``__init__`` of a package gathers does not count."""
    found = {i for i in imports(tree_of(name)) if i == "symgrad" or i.startswith("symgrad.")}
    return {i.removeprefix("symgrad").removeprefix(".") for i in found} - {""}


def layer(name: str) -> int:
    lines = [line.split() for line in LAYERS.strip().splitlines()]
    prefixes = {prefix: number for number, line in enumerate(lines) for prefix in line}
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in prefixes:
            return prefixes[".".join(parts[:length])]
    raise AssertionError(f"{name} stands in no layer: say in this file where it belongs")


@pytest.mark.parametrize("name", [name for name in FILES if name])
def test_imports_point_one_way(name):
    above = sorted(other for other in own_imports(name) if layer(other) > layer(name))
    assert not above, f"symgrad.{name} imports from a later layer: {', '.join(above)}"


def test_no_circles():
    """No module imports itself by way of others; a package's ``__init__`` counts as importing what it gathers."""
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"circle: {' -> '.join((*path[path.index(name) :], name))}"
        if name not in done:
            for other in own_imports(name):
                visit(other, (*path, name))
            done.add(name)

    for name in FILES:
        visit(name, ())


@pytest.mark.parametrize("name", FILES)
def test_imports_stand_at_the_top(name):
    """No import in a function: it would only hide a circle. (Optional packages are imported in ``try`` at the top.)"""
    inner = [
        f"{function.name} in line {node.lineno}"
        for function in ast.walk(tree_of(name))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for node in ast.walk(function)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    assert not inner, f"symgrad.{name}: {inner}"


@pytest.mark.parametrize("name", FILES)
def test_few_packages(name):
    """NumPy and the standard library; astor in one file; what is optional, guarded."""
    roots = {i.split(".")[0] for i in imports(tree_of(name))} - {"symgrad"}
    outside = roots - ALLOWED - set(sys.stdlib_module_names)
    assert outside <= GUESTS.get(name, GUESTS.get(name.split(".")[0], set())), f"symgrad.{name} imports {outside}"


def test_import_is_light():
    """``import symgrad`` loads nothing that is optional, and changes nothing in NumPy."""
    script = (
        "import sys, numpy as np; before = dict(vars(np)); errors = np.geterr(); import symgrad; "
        "assert all(vars(np)[name] is value for name, value in before.items()) and np.geterr() == errors; "
        "print(sorted({'scipy', 'hypothesis', 'autograd', 'torch', 'jax', 'numba', 'pandas', 'pytest'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT.parent)}
    run = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    loaded = run.stdout.strip()
    assert loaded in ("[]", "['hypothesis']"), loaded


def test_every_module_says_what_it_is():
    for name in FILES:
        assert ast.get_docstring(tree_of(name)), f"symgrad.{name} has no docstring"


def is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def test_nothing_of_the_users_is_evaluated():
    """``eval`` and ``exec`` run generated code only, in the files that generate it."""
    users = {name: {node.func.id for node in ast.walk(tree_of(name)) if is_call(node)} for name in FILES}
    users = {name: sorted(called & {"eval", "exec"}) for name, called in users.items()}
    found = {name: calls for name, calls in users.items() if calls}
    assert all(calls == ["exec"] for calls in found.values()), found
    assert set(found) <= {
        "compile",
        "emit.build",
        "source.instrument",
        "watch.state",
        "testing",
        "export",
        "transform.iteration",
    }, found
