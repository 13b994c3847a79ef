"""What people look at: highlighted sources, the user's lines beside the generated ones, and where the time goes."""

from __future__ import annotations

import ast
import html
import importlib.util
import linecache
import os
import time
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from symgrad.compile import Variant
from symgrad.emit.build import Code, place
from symgrad.parallel import threads
from symgrad.source.instrument import definition

MARKS = {None: " ", "backward": "<", "tangents": ">"}  # of the passes, in text
WIDTH = 60  # of the user's lines, side by side
BAR = 20
CELL = 'style="text-align: left; vertical-align: top"'


# -- highlighted source --------------------------------------------------------------------------------------------


class Source(str):
    """Generated source: a string, which notebooks show in colours."""

    def _repr_html_(self) -> str:
        return f'<pre style="line-height: 1.35">{highlighted(self)}</pre>'


def highlighted(source: str) -> str:
    """Python source as HTML; in colours where Pygments is installed, which notebooks bring along."""
    if importlib.util.find_spec("pygments") is None:
        return html.escape(source)
    names = ("pygments", "pygments.lexers.python", "pygments.formatters.html")
    pygments, lexers, formatters = map(importlib.import_module, names)
    lexer = lexers.PythonLexer(stripnl=False, ensurenl=False)
    coloured: str = pygments.highlight(source, lexer, formatters.HtmlFormatter(nowrap=True, noclasses=True))
    return coloured if source.endswith("\n") else coloured.removesuffix("\n")


# -- side by side --------------------------------------------------------------------------------------------------


class Generated(NamedTuple):
    """A generated line: its number in the body, its text, the pass that wrote it, and the seconds that a call spends there."""

    number: int
    text: str
    phase: str | None
    seconds: float | None = None


class Annotation:
    """The user's lines, each with those generated for it: ``print`` shows them side by side, notebooks a table.

    ``lines`` maps the user's ``(file, line number)`` to its ``Generated`` lines, in the order of the file.
    """

    def __init__(self, fun: Any, code: Code, seconds: Sequence[float] | None = None) -> None:
        found: dict[tuple[str, int], list[Generated]] = {line: [] for line in _lines_of(fun)}
        last = next(iter(found), ("", 0))
        for number, (text, origin) in enumerate(zip(code.body, code.origins, strict=True)):
            if origin is None and text.lstrip().startswith("#"):
                continue
            last = last if origin is None or origin.line is None else origin.line
            phase = None if origin is None else origin.phase
            text = text.removeprefix("    ").removesuffix(f"  # {place(last)}")  # it stands beside that line here
            made = Generated(number, text, phase, None if seconds is None else seconds[number])
            found.setdefault(last, []).append(made)
        self.lines = dict(sorted(found.items()))

    def __str__(self) -> str:
        rows: list[str] = []
        for at, text, generated in self._shown():
            left = text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."
            for i, made in enumerate(generated or [None]):
                first = f"{at[1]:4} {left:{WIDTH}}" if i == 0 and at[1] else " " * (WIDTH + 5)
                rows.append(f"{first} |{self._beside(made)}".rstrip())
        return "\n".join(rows)

    __repr__ = __str__

    def _shown(self) -> Iterable[tuple[tuple[str, int], str, list[Generated]]]:
        for at, generated in self.lines.items():
            yield at, linecache.getline(*at).rstrip(), generated

    def _beside(self, made: Generated | None) -> str:
        return "" if made is None else f" {MARKS.get(made.phase, '<')} {made.text}"

    def _repr_html_(self) -> str:
        rows = []
        for at, text, generated in self._shown():
            for i, made in enumerate(generated or [None]):
                title = html.escape(f"{os.path.basename(at[0])}:{at[1]}") if at[1] else ""
                span = f' rowspan="{max(len(generated), 1)}"'
                own = f'<td{span} title="{title}">{at[1] or ""}</td><td{span} {CELL}>{_code(text)}</td>'
                rows.append(f"<tr>{own if i == 0 else ''}{self._cells(made)}</tr>")
        return f"<table>{''.join(rows)}</table>"

    def _cells(self, made: Generated | None) -> str:
        if made is None:
            return "<td></td>"
        colour = {"backward": "#fde7d3", "tangents": "#dcebfb"}.get(made.phase or "", "transparent")
        return f'<td style="background: {colour}; text-align: left">{_code(made.text)}</td>'


def _code(text: str) -> str:
    return f'<pre style="margin: 0">{highlighted(text)}</pre>'


def _lines_of(fun: Any) -> list[tuple[str, int]]:
    """All lines of the user's function."""
    found = definition(fun) if isinstance(fun, FunctionType) else None
    if found is None:
        return []
    node, _ = found
    return [(fun.__code__.co_filename, number) for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)]


# -- where the time goes -------------------------------------------------------------------------------------------


class Profile(Annotation):
    """The time of each generated line, under the user's line that it is from: a table with bars.

    ``seconds`` is that of a call, ``calls`` how many were timed; ``lines`` holds the seconds of each generated line.
    """

    def __init__(self, fun: Any, code: Code, seconds: Sequence[float], calls: int) -> None:
        super().__init__(fun, code, seconds)
        self.seconds, self.calls = sum(seconds), calls

    def __str__(self) -> str:
        head = f"{_duration(self.seconds).strip()} a call, over {self.calls} calls"
        rows = [head, ""]
        for at, text, generated in self._shown():
            spent = sum(made.seconds or 0.0 for made in generated)
            if generated:
                rows.append(f"{_duration(spent)} {self._bar(spent)} {at[1] or '':4} {text}".rstrip())
                rows += [
                    f"{_duration(made.seconds or 0.0)} {self._bar(made.seconds)}     {self._beside(made)}" for made in generated
                ]
        return "\n".join(rows)

    __repr__ = __str__

    def _share(self, seconds: float | None) -> float:
        return (seconds or 0.0) / self.seconds if self.seconds else 0.0

    def _bar(self, seconds: float | None) -> str:
        return f"{100 * self._share(seconds):3.0f}% {'█' * round(BAR * self._share(seconds)):{BAR}}"

    def _cells(self, made: Generated | None) -> str:
        seconds = made.seconds if made is not None else 0.0
        bar = f'<div style="background: #6c9bd2; height: 0.8em; width: {100 * self._share(seconds):.1f}px"></div>'
        return f"{super()._cells(made)}<td>{_duration(seconds or 0.0) if made else ''}</td><td>{bar if made else ''}</td>"


def _duration(seconds: float) -> str:
    for unit, scale in (("s ", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:6.1f} {unit}"
    return f"{seconds / 1e-9:6.0f} ns"


def profile(fun: Any, variant: Variant, args: Sequence[Any], kwargs: dict[str, Any], seconds: float) -> Profile:
    """Time the lines of the code that runs, for about so many seconds."""
    code = variant.running()
    clock = _Clock(len(code.body))
    timed = variant.load(_ticking(code), code, _tick=clock.tick)
    given = [*args, *kwargs.values(), *variant.lifted(fun, args, kwargs)]
    with threads(1):
        clock.time(timed, given, 0.0)  # warm
        calls = clock.time(timed, given, seconds)
    return Profile(fun, code, [total / calls for total in clock.totals], calls)


class _Clock:
    """Adds up the time between ticks, by the line that ends there."""

    def __init__(self, lines: int) -> None:
        self.totals = [0.0] * lines
        self.last = 0.0

    def tick(self, line: int) -> None:
        now = time.perf_counter()
        self.totals[line] += now - self.last
        self.last = time.perf_counter()

    def time(self, function: Callable[..., Any], given: Sequence[Any], seconds: float) -> int:
        """Call a function until the time is over; how many times."""
        self.totals = [0.0] * len(self.totals)
        calls, start = 0, time.perf_counter()
        while calls == 0 or time.perf_counter() - start < seconds:
            self.last = time.perf_counter()
            function(*given)
            calls += 1
        return calls


def _ticking(code: Code) -> str:
    """The source with a tick after each statement."""
    tree = ast.parse(code.source)
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    first = len(code.source.splitlines()) - len(code.body) + 1
    function.body = _ticked(function.body, first)
    return ast.unparse(ast.fix_missing_locations(tree))


def _ticked(body: Sequence[ast.stmt], first: int) -> list[ast.stmt]:
    result: list[ast.stmt] = []
    for statement in body:
        if statement.lineno < first:  # the docstring
            result.append(statement)
            continue
        tick = ast.parse(f"_tick({statement.lineno - first})").body
        if isinstance(statement, ast.Return) and statement.value is not None:
            kept = ast.Assign([ast.Name("_result", ast.Store())], statement.value)
            result += [kept, *tick, ast.Return(ast.Name("_result", ast.Load()))]
        elif isinstance(statement, ast.If):
            test = ast.Assign([ast.Name("_test", ast.Store())], statement.test)
            inner = ast.If(ast.Name("_test", ast.Load()), _ticked(statement.body, first), _ticked(statement.orelse, first))
            result += [test, *tick, inner]
        elif isinstance(statement, (ast.For, ast.While, ast.Try)):
            statement.body = [*tick, *_ticked(statement.body, first)]
            result += [statement, *tick]
        elif isinstance(statement, ast.FunctionDef):
            statement.body = _ticked(statement.body, first)
            result += [statement, *tick]
        else:
            result += [statement, *tick]
    return result
