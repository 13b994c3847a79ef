"""``match`` statements whose patterns are values are ``if``s: ``case "run" | "walk" if v > 0: …`` is ``elif state == "run" or
state == "walk": …``, which loops of the code have.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from symgrad.source.syntax import LOCAL_READERS, FunctionNode, assigned, copied, declared, fresh, located, placed, walk


def as_ifs(function: FunctionNode) -> FunctionNode:
    """The function, changed in place, as are those in it: such statements are ``if``s."""
    names = {item.id for item in walk(function) if isinstance(item, ast.Name)}
    if names.isdisjoint(LOCAL_READERS):
        _Matches(names, declared(function)).visit(function)
    return function


class _Matches(ast.NodeTransformer):
    def __init__(self, names: set[str], others: set[str]) -> None:
        self.names, self.others = names, others  # those that are taken, and those that functions may rebind

    def visit_Match(self, node: ast.Match) -> Any:
        self.generic_visit(node)
        if not all([_is_of_values(case.pattern) or (_is_all(case.pattern) and case.guard is None) for case in node.cases]):
            return node
        guards = [part for case in node.cases if case.guard is not None for part in walk(case.guard)]
        bound = {part.target.id for part in guards if isinstance(part, ast.NamedExpr)} | self.others
        own = isinstance(node.subject, ast.Name) and node.subject.id not in bound
        subject: Any = node.subject if own else placed(ast.Name(fresh("subject", self.names), ast.Load()), node.subject)
        start = [] if own else [assigned(subject.id, node.subject, node.subject)]
        return [*start, *_chosen(subject, node.cases)]


def _is_of_values(pattern: ast.pattern) -> bool:
    if isinstance(pattern, ast.MatchOr):
        return all(map(_is_of_values, pattern.patterns))
    return isinstance(pattern, (ast.MatchValue, ast.MatchSingleton))


def _is_all(pattern: ast.pattern) -> bool:
    """Whether anything matches, which may get a name."""
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


def _chosen(subject: ast.Name, cases: Sequence[ast.match_case]) -> list[ast.stmt]:
    """What the first of these cases that matches does."""
    if not cases:
        return []
    (case, *others), pattern = cases, cases[0].pattern
    if isinstance(pattern, ast.MatchAs):
        named = [] if pattern.name is None else [assigned(pattern.name, copied(subject), pattern)]
        return [*named, *case.body]
    test = _test(subject, pattern)
    if case.guard is not None:
        test = placed(ast.BoolOp(ast.And(), [test, case.guard]), pattern)
    return [located(placed(ast.If(test, case.body, _chosen(subject, others)), pattern))]


def _test(subject: ast.Name, pattern: Any) -> Any:
    """Whether a pattern of values matches."""
    if isinstance(pattern, ast.MatchOr):
        return placed(ast.BoolOp(ast.Or(), [_test(subject, one) for one in pattern.patterns]), pattern)
    single = isinstance(pattern, ast.MatchSingleton)
    value = placed(ast.Constant(pattern.value), pattern) if single else pattern.value
    return placed(ast.Compare(copied(subject), [ast.Is() if single else ast.Eq()], [value]), pattern)
