"""A derivative as a module that stands alone: ``export`` writes it, and only NumPy is needed to run it.

What the generated code reads from outside becomes a constant of the module, spelled out where it is short, else in an
``.npz`` file beside it. Functions that it calls besides NumPy's are copied by their source.
"""

from __future__ import annotations

import ast
import dataclasses
import math
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symgrad import runtime
from symgrad.api import Derivative, as_derivative
from symgrad.compile import Compiler, Variant
from symgrad.emit.build import Code, Rebuild, literal
from symgrad.emit.names import Names
from symgrad.errors import NotExportable
from symgrad.pytree import flatten, map_tree
from symgrad.source.instrument import definition

INLINE = 64  # elements of an array that is spelled out; larger ones go to the .npz file
LARGEST = 10_000  # elements that are spelled out all the same where there is no file
WIDTH = 100
TITLES = {"grad": "gradient", "value_and_grad": "value and gradient", "elementwise_grad": "elementwise gradient",
          "jacrev": "jacobian", "jacfwd": "jacobian", "hvp": "hessian-vector product", "function": "value"}  # fmt: skip
ROUNDS = 3  # more than there are examples, in which code is to be found that answers all
PLAIN = (np.ndarray, np.generic, int, float, complex, str, bytes)
FIXED: dict[str, tuple[Any, str]] = {  # what modules import under these names
    "np": (np, "import numpy as np"),
    "math": (math, "import math"),
    "NDArray": (NDArray, "from numpy.typing import NDArray"),
    "Any": (Any, "from typing import Any"),
    "NamedTuple": (NamedTuple, "from typing import NamedTuple"),
    "Path": (Path, "from pathlib import Path"),
    "dataclass": (dataclass, "from dataclasses import dataclass"),
}
IMPORTED = {*sys.stdlib_module_names, "numpy", "scipy"}  # packages that the module may import from; other functions are copied


def export(
    derivative: Any,
    *args: Any,
    path: str | Path | None = None,
    also: Sequence[tuple[Any, ...]] = (),
    check: bool = True,
    **kwargs: Any,
) -> str:
    """Write a derivative as a Python module that imports only NumPy; its source is returned.

    The module has one public function, typed and documented, for arguments with the structure, types and shapes of the
    examples; it refuses others. Arrays and numbers that your function reads from outside are constants of the module, as
    they are now. It can be read, reviewed, changed and shipped, and it checks itself: ``python module.py`` repeats the
    examples, and compares.

    Args:
        derivative: what ``grad`` and its kin return; or a plain function, which is written as it was traced.
        *args, **kwargs: an example call.
        path: the file to write, ``name.py``. Large arrays go to ``name.npz`` beside it.
        also: further example calls, each a tuple of arguments, for other shapes and types, and other sides of branches. A side
            that no example takes, and no two calls before have taken, raises ``Unexplored`` in the module.
        check: whether the module checks itself; it holds the examples for that.

    Raises:
        NotExportable: it runs in dynamic mode; or an argument, or something that it uses, is an object that cannot be written
            down.

    What it uses of SciPy is imported from there; the module's docstring says so.

    >>> import symgrad
    >>> text = symgrad.export(symgrad.grad(lambda x, y: x * y ** 2), 3.0, 2.0)
    >>> "import symgrad" in text
    False
    """
    target = None if path is None else Path(path)
    if target is not None and (target.suffix != ".py" or not target.stem.isidentifier()):
        raise ValueError(f"path={str(path)!r}: give the file of a module, such as 'gradient.py'")
    module = _Module(as_derivative(derivative))
    module.gather([(args, kwargs), *((tuple(more), {}) for more in also)])
    text, arrays = module.text(target is not None, check)
    if target is not None:
        target.write_text(text, encoding="utf-8")
        if arrays:
            stored: dict[str, Any] = dict(arrays)
            np.savez_compressed(target.with_suffix(".npz"), **stored)
    return text


class _Example(NamedTuple):
    """A call, its result, and the variant that gave it."""

    args: list[Any]
    result: Any
    variant: Variant


class _Module:
    """What goes into a module: the examples, and the code for them."""

    def __init__(self, derivative: Derivative[..., Any]) -> None:
        self.compiler: Compiler = derivative._compiler
        self.user = derivative._user
        fun = derivative.__wrapped__
        self.title = f"{TITLES.get(derivative._kind, derivative._kind)} of {getattr(fun, '__qualname__', type(fun).__name__)}"
        self.examples: list[_Example] = []
        self.parameters: list[str] = []
        self.constants: dict[Variant, dict[str, Any]] = {}

    def gather(self, calls: Sequence[tuple[tuple[Any, ...], dict[str, Any]]]) -> None:
        """Take example calls in: all anew where one has led to another way of tracing, so that the code for others is gone, or
        has made another loop of what they did."""
        for _ in range(ROUNDS + len(calls)):
            self.examples, self.constants = [], {}
            for args, kwargs in calls:
                self.add(args, kwargs)
            stay = all([variant in variant.family.variants for variant in self.constants])
            if stay and all([self.compiler.answers(self.user, *self._normal(args, kwargs)) for args, kwargs in calls]):
                return
        raise NotExportable("each of the examples leads to other code than those before: export fewer at a time")

    def _normal(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call as the code gets them, which may change its own."""
        given: tuple[tuple[Any, ...], dict[str, Any]] = map_tree(_copied, self.compiler.form.normal(args, kwargs))
        return given

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Take an example call in."""
        args, kwargs = self._normal(args, kwargs)
        try:
            variant = self.compiler.ready(self.user, args, kwargs)
        except RuntimeError as error:
            raise NotExportable(str(error)) from None
        names = variant.family.names
        if self.examples and names != self.parameters:
            raise NotExportable(f"the examples have different arguments, {self.parameters} and {names}: export each by itself")
        others = [known for known in self.constants if known in variant.family.variants]
        if others not in ([], [variant]):
            raise NotExportable("what is outside the arguments has changed from one example to the next: export each by itself")
        self.parameters = names
        for name, value in zip(names, [*args, *kwargs.values()], strict=True):
            odd = [leaf for leaf in flatten(value)[0] if not isinstance(leaf, PLAIN)]
            if odd:
                bound = ", ".join("..." if other == name else other for other in names)
                raise NotExportable(
                    f"the argument {name} is a {type(odd[0]).__name__}, which a module cannot check for: leave it out, "
                    f"as in grad(lambda {', '.join(n for n in names if n != name)}: fun({bound}))"
                )
        if variant.slots:
            drawn = ", ".join([repr(draw) for draw, *_ in variant.slots])
            raise NotExportable(f"it draws random numbers: {drawn:.200}; draw them outside, and pass them")
        if variant.family.layout.tree.repeats:
            raise NotExportable("a container among the arguments comes again, and the function tells; a module does not")
        if variant.puts:
            raise NotExportable(f"it changes what is outside: {', '.join(variant.puts):.200}; return that instead")
        lifted = variant.lifted(self.user.fun, args, kwargs)
        self.constants[variant] = dict(zip(variant.state_names().values(), lifted, strict=True))
        assert variant.template is not None
        result = variant.template.probe(self.user)(*args, **kwargs)
        self.examples.append(_Example([*args, *kwargs.values()], result, variant))

    def text(self, filed: bool, check: bool) -> tuple[str, dict[str, np.ndarray[Any, Any]]]:
        """The module's source, and the arrays in its file."""
        name = self.compiler.name
        codes = {variant: variant.readable(confirmed=True) for variant in self.constants}
        taken = {node.id for code in codes.values() for node in ast.walk(ast.parse(code.source)) if isinstance(node, ast.Name)}
        taken -= {old for variant, code in codes.items() for old in (*self.constants[variant], *code.namespace)}
        parts = _Parts(Names(taken.union(self.parameters, FIXED, ["Unexplored", name])), filed)
        own = {variant: parts.names.unique(f"_{name}") for variant in codes}
        functions = [self._entry(own, codes, parts)]
        for variant, code in codes.items():
            renamed = {old: parts.define(old, value) for old, value in (self.constants[variant] | code.namespace).items()}
            renamed[name] = own[variant]
            functions.append(self._function(_renamed(code.source, renamed, parts), own[variant], parts))
        checks = [self._check(i, example, parts) for i, example in enumerate(self.examples, 1)] if check else []
        if checks:
            calls = [f"    _check_{i}()" for i in range(1, len(checks) + 1)]
            checks.append("\n".join(['if __name__ == "__main__":', *calls, f'    print("{name}: the examples agree")']))
        if any("Unexplored(" in function for function in functions):
            parts.classes["Unexplored"] = UNEXPLORED
        sections = [self._head(parts, bool(checks)), *functions, *parts.classes.values(), *parts.functions.values(), *checks]
        return "\n\n\n".join(sections) + "\n", parts.arrays

    def _entry(self, own: dict[Variant, str], codes: dict[Variant, Code], parts: _Parts) -> str:
        """The function to call: typed and documented, it takes a call to the code for its types and shapes."""
        examples = [self._example(variant) for variant in own]
        types = [_either(map(parts.type_of, values)) for values in zip(*(e.args for e in examples), strict=True)]
        kind = _either(parts.result_type(e.result) for e in examples)
        given, result = ", ".join(self.parameters), Names({*self.parameters, *own.values()}).unique("result")
        lines = self._header(self.compiler.name, types, kind)
        if len(own) == 1:
            ((variant, name),) = own.items()
            lines += codes[variant].source.split("\n")[1 : _docstring(codes[variant].source)]
            lines += [f"    {parts.define('_require', _require)}([{given}], {_kinds(examples[0].args)!r})"]
            return "\n".join([*lines, f"    {result}: {kind} = {name}({given})", f"    return {result}"])
        kinds = parts.define("_kinds", _kinds)
        lines += [
            f'    """The {self.title}, by the code for the types and shapes of these arguments."""',
            f"    {result}: {kind}",
        ]
        for i, (example, name) in enumerate(zip(examples, own.values(), strict=True)):
            lines += [
                f"    {'elif' if i else 'if'} {kinds}([{given}]) == {_kinds(example.args)!r}:",
                f"        {result} = {name}({given})",
            ]
        refusal = f'raise TypeError(f"{self.compiler.name} has no code for {{{kinds}([{given}])}}")'
        return "\n".join([*lines, "    else:", f"        {refusal}", f"    return {result}"])

    def _function(self, source: str, name: str, parts: _Parts) -> str:
        """The code of one signature. Type checkers are to leave it alone: what NumPy's functions return, their stubs guess."""
        header = self._header(name, [parts.define("Any", Any)] * len(self.parameters), "Any")
        return "\n".join([*header, *source.rstrip().split("\n")[_docstring(source) if len(self.constants) == 1 else 1 :]])

    def _check(self, number: int, example: _Example, parts: _Parts) -> str:
        """A function that repeats an example."""
        values = zip(self.parameters, example.args, strict=True)
        found, result = (Names({*self.parameters, self.compiler.name}).unique(wish) for wish in ("found", "result"))
        lines = [f"def _check_{number}() -> None:", f'    """Example {number}, against what symgrad computed."""']
        typed = f": {parts.define('Any', Any)}"  # what is in a literal, is not always clear
        for name, value in values:
            kind = typed if isinstance(value, (dict, list, tuple)) else ""
            lines.append(f"    {name}{kind} = {parts.shown(value, f'example_{number}_{name}')}")
        lines.append(f"    {result}{typed} = {parts.shown(example.result, f'example_{number}_result')}")
        agree, kinds = parts.define("_agree", _agree), parts.define("_kinds", _kinds)
        lines.append(f"    {found} = {self.compiler.name}({', '.join(self.parameters)})")
        lines.append(f"    if {kinds}({found}) != {kinds}({result}) or not {agree}({found}, {result}):")
        lines.append(f'        raise SystemExit(f"{self.compiler.name}: example {number} gives {{{found}}}, not {{{result}}}")')
        return "\n".join(lines)

    def _head(self, parts: _Parts, check: bool) -> str:
        """The module's docstring, imports and constants."""
        needs = " and ".join(["NumPy", *(["SciPy"] if any("scipy" in line for line in parts.imports) else [])])
        rows = [f"The {self.title}, written by symgrad. Needs {needs} alone.", "", "The arguments that it is for:", ""]
        for variant in self.constants:
            kinds = zip(self.parameters, _kinds(self._example(variant).args), strict=True)
            rows += [f"* {', '.join(f'{name}: {_plainly(kind)}' for name, kind in kinds)}"]
        if check:
            rows += ["", "Run this file to check it: it repeats the calls that it was written from."]
        docstring = '"""' + "\n".join(rows).replace("\\", "\\\\").replace('"""', "'''") + '\n"""'
        outside = {line for line in parts.imports if line.split()[1].split(".")[0] in ("numpy", "scipy")}
        lines = [docstring, "", "from __future__ import annotations"]
        for group in (parts.imports - outside, outside):
            lines += ["", *_imports(group)] if group else []
        if parts.constants:
            lines += ["", *(f"{name} = {text}" for name, text in parts.constants.items())]
        return "\n".join(lines)

    def _header(self, name: str, types: Sequence[str], result: str) -> list[str]:
        parameters = [f"{parameter}: {kind}" for parameter, kind in zip(self.parameters, types, strict=True)]
        line = f"def {name}({', '.join(parameters)}) -> {result}:"
        if len(line) <= WIDTH:
            return [line]
        return [f"def {name}(", *(f"    {parameter}," for parameter in parameters), f") -> {result}:"]

    def _example(self, variant: Variant) -> _Example:
        return next(example for example in self.examples if example.variant is variant)


class _Parts:
    """What the functions of a module refer to: imports, constants, classes, copied functions, arrays in its file."""

    def __init__(self, names: Names, filed: bool) -> None:
        self.names, self.filed = names, filed
        self.imports = {"import numpy as np"}
        self.constants: dict[str, str] = {}
        self.classes: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.places = Names({"file", "allow_pickle"})  # of arrays in the file, which none of its writer's own options is
        self._known: dict[int, tuple[Any, str]] = {}  # of an object: itself, kept alive, and its name

    def define(self, wish: str, value: Any) -> str:
        """The name in the module of a value that code refers to."""
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        for name, (fixed, line) in FIXED.items():
            if value is fixed:
                self.imports.add(line)
                return name
        if isinstance(value, Rebuild):
            return self._class(value.tree.kind)
        if isinstance(value, ModuleType | FunctionType | BuiltinFunctionType | np.ufunc | type(np.sum) | type):
            return self._object(wish, value)
        name = self._named(wish, value)
        self.constants[name] = self.shown(value, name)
        return name

    def _named(self, wish: str, value: Any) -> str:
        name = self.names.unique(wish)
        self._known[id(value)] = (value, name)
        return name

    # ---- values as source ----

    def shown(self, value: Any, place: str) -> str:
        """A value as an expression; ``place`` names it in the file, should it go there."""
        if isinstance(value, np.ndarray):
            if value.size > (INLINE if self.filed else LARGEST):
                return self._filed(value, place)
            return _array(value)
        if type(value) in (list, tuple):
            items = [self.shown(item, f"{place}_{i}") for i, item in enumerate(value)]
            inner = ", ".join(items) + ("," if type(value) is tuple and len(items) == 1 else "")
            return f"[{inner}]" if type(value) is list else f"({inner})"
        if isinstance(value, dict):
            items = [f"{_key(key)}: {self.shown(item, f'{place}_{key}')}" for key, item in value.items()]
            return f"{{{', '.join(items)}}}"
        fields = _fields(value)
        if fields is not None:
            items = [f"{name}={self.shown(getattr(value, name), f'{place}_{name}')}" for name in fields]
            return f"{self._class(type(value))}({', '.join(items)})"
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
            return ast.unparse(literal(value))
        raise NotExportable(f"{place} is a {type(value).__name__}, which cannot be written down: {value!r:.60}")

    def _filed(self, array: np.ndarray[Any, Any], place: str) -> str:
        if not self.filed:
            raise NotExportable(f"{place} has {array.size} elements: give a path=, for a file of arrays beside the module")
        place = self.places.unique(place)
        self.arrays[place] = array
        return f'np.load({self.define("Path", Path)}(__file__).with_suffix(".npz"))["{place}"]'

    # ---- types ----

    def type_of(self, value: Any) -> str:
        """The type of an argument, as an annotation; any object with such attributes does for one of a class."""
        if isinstance(value, np.ndarray):
            return f"{self.define('NDArray', NDArray)}[np.{value.dtype.type.__name__}]"
        if isinstance(value, np.generic):
            return {"float64": "float", "complex128": "complex"}.get(value.dtype.name, f"np.{value.dtype.name}")
        if type(value) is list:
            return f"list[{_either(map(self.type_of, value)) or self._any()}]"
        if type(value) is tuple:
            return f"tuple[{', '.join(map(self.type_of, value)) or '()'}]"
        if isinstance(value, dict):
            keys, values = (_either(map(self.type_of, items)) or self._any() for items in (value, value.values()))
            return f"dict[{keys}, {values}]"
        return "None" if value is None else self._any() if _fields(value) is not None else type(value).__name__

    def result_type(self, value: Any) -> str:
        """The type of a result."""
        if isinstance(value, np.generic):
            kinds = {"f": "np.floating[Any]", "c": "np.complexfloating[Any, Any]"}
            return (self.define("Any", Any) and kinds.get(value.dtype.kind)) or f"np.{value.dtype.name}"
        if type(value) is tuple:
            return f"tuple[{', '.join(map(self.result_type, value))}]"
        return self.type_of(value) if _fields(value) is None else self._class(type(value))

    def _any(self) -> str:
        return self.define("Any", Any)

    # ---- functions and classes ----

    def _class(self, kind: type) -> str:
        """A class like the user's: its fields alone."""
        known = self._known.get(id(kind))
        if known is not None:
            return known[1]
        name = self._named(kind.__name__, kind)
        if issubclass(kind, dict):
            raise NotExportable(f"{kind.__qualname__} is a dict of another kind: take a plain one")
        self._any()
        fields = [f"    {field}: Any" for field in _fields(kind) or ()]
        if dataclasses.is_dataclass(kind):
            head = f"@{self.define('dataclass', dataclass)}\nclass {name}:"
        else:
            head = f"class {name}({self.define('NamedTuple', NamedTuple)}):"
        self.classes[name] = "\n".join([head, f'    """The fields of ``{kind.__qualname__}``."""', "", *fields])
        return name

    def _object(self, wish: str, value: Any) -> str:
        """A function, class or module: imported from the few packages that may be, or copied."""
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(value, np.ufunc):
            home = next(
                (m for m in ("numpy", "scipy.special") if getattr(sys.modules.get(m), value.__name__, None) is value), None
            )
        title = getattr(value, "__name__", repr(value))
        if home == "builtins":
            return title
        if home is not None and home.split(".")[0] in IMPORTED:
            name = self._named(title.rpartition(".")[2], value)
            whole, _, last = title.rpartition(".")
            origin = last if isinstance(value, ModuleType) else title
            source = whole if isinstance(value, ModuleType) else _public(home)
            line = f"from {source} import {origin}" if source else f"import {origin}"
            self.imports.add(line + ("" if name == origin else f" as {name}"))
            return name
        if not isinstance(value, FunctionType):
            raise NotExportable(f"{wish} is {value!r:.80}, which cannot be copied: use a plain function")
        return self._copy(value)

    def _copy(self, fun: FunctionType) -> str:
        """A function, by its source."""
        found = definition(fun)
        if found is None:
            raise NotExportable(f"the source of {fun.__qualname__} cannot be had, so it cannot be copied")
        name = self._named(f"_{fun.__name__.strip('<>_')}", fun)
        node = _plain_function(found[0], name)
        self.functions[name] = ""  # its place, before those that it calls
        _Copier(fun, node, self).visit(node)
        self._any()
        self.functions[name] = ast.unparse(ast.fix_missing_locations(node))
        return name


class _Copier(ast.NodeTransformer):
    """Gives a function's globals and closure variables their names in the module."""

    def __init__(self, fun: FunctionType, node: ast.AST, parts: _Parts) -> None:
        self.fun, self.parts = fun, parts
        self.cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
        inner = list(ast.walk(node))
        self.local = {n.id for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.local |= {n.arg for n in inner if isinstance(n, ast.arg)}

    def _value(self, name: str) -> Any:
        if name in self.local:
            return _MISSING
        if name in self.cells:
            return self.cells[name].cell_contents
        return self.fun.__globals__.get(name, _MISSING)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        value = self._value(node.id)
        return node if value is _MISSING else ast.Name(self.parts.define(node.id, value), node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        value = self._value(node.value.id) if isinstance(node.value, ast.Name) else _MISSING
        if isinstance(value, ModuleType) and value.__name__.split(".")[0] not in IMPORTED:
            return ast.Name(self.parts.define(node.attr, getattr(value, node.attr)), node.ctx)
        return self.generic_visit(node)


_MISSING: Any = object()


def _plain_function(found: ast.AST, name: str) -> ast.FunctionDef:
    """A copy of a function or lambda under a name, its first line of docstring left, its types replaced by ``Any``."""
    found = ast.parse(ast.unparse(found)).body[0]
    if isinstance(found, ast.Expr):
        assert isinstance(found.value, ast.Lambda)
        body: list[ast.stmt] = [ast.Return(found.value.body)]
        node = ast.FunctionDef(name, found.value.args, body, [], **_TYPE_PARAMS)
    else:
        assert isinstance(found, ast.FunctionDef)
        node = found
        doc = ast.get_docstring(node)
        if doc:
            node.body[0] = ast.Expr(ast.Constant(doc.splitlines()[0]))
    node.name, node.decorator_list = name, []
    args = node.args
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if arg is not None:
            arg.annotation = ast.Name("Any", ast.Load())
    node.returns = ast.Name("Any", ast.Load())
    return node


_TYPE_PARAMS: dict[str, Any] = {"type_params": []} if sys.version_info >= (3, 12) else {}


def _renamed(source: str, names: dict[str, str], parts: _Parts) -> str:
    """Generated source with other names for what it refers to; ``runtime``'s functions are copied. Comments stay."""
    tree = ast.parse(source)
    changes: list[tuple[ast.expr, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "runtime":
            changes.append((node, parts.define(node.attr, getattr(runtime, node.attr))))
        elif isinstance(node, ast.Name) and names.get(node.id, node.id) != node.id:
            changes.append((node, names[node.id]))
    lines = [line.encode() for line in source.split("\n")]
    for node, new in sorted(changes, key=lambda change: -change[0].col_offset):
        line = lines[node.lineno - 1]
        lines[node.lineno - 1] = line[: node.col_offset] + new.encode() + line[node.end_col_offset :]
    return "\n".join(line.decode() for line in lines)


def _docstring(source: str) -> int:
    """The last line of the docstring of a generated function."""
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.FunctionDef)
    return node.body[0].end_lineno or 1


# -- small helpers -------------------------------------------------------------------------------------------------


def _copied(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _fields(value: Any) -> tuple[str, ...] | None:
    """The fields of a namedtuple or a dataclass."""
    if dataclasses.is_dataclass(value):
        return tuple(field.name for field in dataclasses.fields(value))
    kind = value if isinstance(value, type) else type(value)
    return getattr(kind, "_fields", None) if issubclass(kind, tuple) else None


def _either(types: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(types))


def _key(key: Any) -> str:
    if type(key) in (str, int, float, bool, tuple):
        return repr(key)
    raise NotExportable(f"a dict has the key {key!r:.40}: only texts and numbers can be written down")


def _array(array: np.ndarray[Any, Any]) -> str:
    """``np.array([...], np.float64)``, over several lines where it is long."""
    kind = repr(array.dtype.str) if array.dtype.kind in "US" else f"np.{array.dtype.name}"
    if not array.size:
        return f"np.zeros({array.shape}, {kind})"
    text = f"np.array({_numbers(array.tolist())}, {kind})"
    return text if len(text) <= WIDTH else "\n    ".join(textwrap.wrap(text, WIDTH, break_long_words=False))


def _numbers(value: Any) -> str:
    return f"[{', '.join(map(_numbers, value))}]" if isinstance(value, list) else ast.unparse(literal(value))


def _plainly(kind: Any) -> str:
    return kind if isinstance(kind, str) else repr(kind).replace("'", "")


def _public(module: str) -> str:
    """``scipy.special`` for ``scipy.special._ufuncs``."""
    return module.partition("._")[0]


def _imports(lines: Iterable[str]) -> list[str]:
    """Imports, those from one module on one line."""
    names: dict[str, list[str]] = {}
    for line in sorted(lines):
        module, _, name = line.removeprefix("from ").partition(" import ")
        names.setdefault(module, []).extend([name] if name else [])
    plain = [module for module, found in names.items() if not found]
    return plain + [f"from {module} import {', '.join(found)}" for module, found in names.items() if found]


# -- what modules are given: these functions are copied into them ----------------------------------------------------

UNEXPLORED = '''class Unexplored(RuntimeError):
    """A branch went a way that no example had gone: there is no code for it here."""'''


def _kinds(value: Any) -> Any:
    """The structure of a value, with the type and shape of each number and array in it."""
    if isinstance(value, dict):
        return {key: _kinds(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_kinds(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return {name: _kinds(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, (int, float, complex, np.generic)) and not isinstance(value, bool):
        return str(np.dtype(type(value)))
    if hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    return repr(value)


def _require(arguments: Any, kinds: Any) -> None:
    """Raise a TypeError for arguments of another structure, other types or shapes."""
    if _kinds(arguments) != kinds:
        raise TypeError(f"this code is for arguments of {kinds}, not of {_kinds(arguments)}")


def _agree(actual: Any, expected: Any) -> Any:
    """Whether two results of one structure are equal, up to rounding."""
    if isinstance(expected, dict):
        return _agree([actual[key] for key in expected], list(expected.values()))
    if isinstance(expected, (list, tuple)):
        return all(map(_agree, actual, expected))
    if hasattr(expected, "__dataclass_fields__"):
        return _agree(vars(actual), vars(expected))
    if expected is None or isinstance(expected, str):
        return bool(actual == expected)
    same = 1e-3 if np.asarray(expected).dtype.itemsize < 8 else 1e-7
    scale = np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected))
    return np.allclose(actual, expected, same, same * scale, equal_nan=True)
