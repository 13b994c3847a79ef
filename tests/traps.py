# ruff: noqa: E501
"""The traps of ``test_staleness.py``: what a function reads from outside, how that changes, and where it is read.

A *capture* is a line of the table below: statements that set something up, an expression that reads it (a number), and
statements that change it, one after another. A *place* is a module in which a function reads that expression in some
way. Each capture in each place makes a trap: a module of its own, with source, whose ``f`` is differentiated.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Capture(NamedTuple):
    """One thing to read from outside. ``dynamic``: it cannot be compiled, and must not."""

    name: str
    setup: str
    read: str
    changes: tuple[str, ...]
    dynamic: bool = False


PRELUDE = """
from __future__ import annotations
import collections, dataclasses, enum, functools, itertools, math, operator, os, types
import numpy as np
from symgrad import grad, hessian, hvp, jacfwd, jacobian, jacrev, jvp, value_and_grad, vjp
"""


def _table(text: str) -> list[Capture]:
    """Captures from ``name: setup | read | change | change ...`` (``\\n`` and four spaces as in Python)."""
    found = []
    for line in text.strip().splitlines():
        if line and not line.startswith("#"):
            name, rest = line.split(":", 1)
            setup, read, *changes = (part.strip().replace("\\n", "\n") for part in rest.split(" | "))
            found.append(Capture(name.strip("!"), setup, read, tuple(changes), name.endswith("!")))
    return found


CAPTURES = _table(r"""
# numbers and flags
float: W = 2.0 | W | W = 3.0 | W = -1.5
float_deleted: W = 2.0 | W | del W | W = 4.0
float_to_int: W = 2.0 | W | W = 3 | W = 4.5
float_to_array: W = 2.0 | W | W = np.array([1.0, 5.0]) | W = np.array([[2.0], [3.0]])
float_to_bool: W = 2.0 | W | W = True | W = False
float_zero_sign: W = 0.0 | np.copysign(2.0, W) | W = -0.0
float_nan: W = 2.0 | (1.5 if W != W else W) | W = float("nan") | W = 2.5
int: N = 2 | N | N = 3 | N = 4 | N = 7
int_to_float: N = 2 | N | N = 2.5 | N = 2
int_as_range: N = 2 | sum([1.0 for i in range(N)]) | N = 3 | N = 5
int_exponent: N = 2 | abs(x[0]) ** N | N = 3 | N = 0
tuple_written_at: I = (0,)\ndef put(x):\n    y = x * 1.0\n    y[I] = 2.0\n    return np.sum(y * y) | put(x) | I = (1,) | I = (0,)
tuple_key: I = (0,) | 2.0 * len({I, (0,)}) | I = (1,) | I = (0,)
tuple_key_in_tuple: I = (0,) | 2.0 * len({(I, 1), ((0,), 1)}) | I = (1,) | I = (0,)
tuple_key_of_dict: I = (0,) | sum({(0,): 1.5, I: 2.5}.values()) | I = (1,) | I = (0,)
tuple_key_stored: I = (0,)\ndef put(x):\n    d = {(0,): 1.0}\n    d[I] = 2.0\n    return d[0,] | put(x) | I = (1,) | I = (0,)
frozenset_key: S = frozenset({1}) | 2.0 * len({S, frozenset({1})}) + len({frozenset({S}): 1}) | S = frozenset({2}) | S = frozenset({1})
int_index: N = 0; L = [1.5, 2.5, 3.5] | L[N] | N = 2 | N = -2
bool: FLAG = True | (2.0 if FLAG else 3.0) | FLAG = False | FLAG = True | FLAG = 0
bool_to_int: FLAG = True | (2.0 if FLAG is True else 3.0) | FLAG = 1
not_flag: FLAG = 0 | (2.0 if not FLAG else 3.0) | FLAG = 1 | FLAG = []
and_flags: A = 1; B = 0 | (2.0 if A and B else 3.0) | B = 1 | A = 0
str: KIND = "l2" | (2.0 if KIND == "l2" else 3.0) | KIND = "l1" | KIND = "l2"
str_method: KIND = "L2" | (2.0 if KIND.lower() == "l2" else 3.0) | KIND = "l1"
str_in: KIND = "l2" | (2.0 if KIND in ("l2", "l3") else 3.0) | KIND = "l1"
str_startswith: KIND = "l2" | (2.0 if KIND.startswith("l") else 3.0) | KIND = "m"
str_format: NAME = "a"; D = {"w_a": 2.0, "w_b": 3.0} | D[f"w_{NAME}"] | NAME = "b" | D["w_b"] = 5.0
bytes: KIND = b"x" | (2.0 if KIND == b"x" else 3.0) | KIND = b"y"
none: W = None | (2.0 if W is None else W) | W = 3.0 | W = None
none_or: W = None | (W or 2.0) | W = 3.0 | W = 0.0
ellipsis: S = ... | (2.0 if S is ... else 3.0) | S = None
np_float: W = np.float64(2.0) | W | W = np.float64(3.0) | W = np.float32(2.5)
np_int: N = np.int64(2) | N | N = np.int64(3) | N = np.int64(5)
np_bool: FLAG = np.bool_(True) | (2.0 if FLAG else 3.0) | FLAG = np.bool_(False)
complex: Z = 2.0 + 1.0j | Z.real | Z = 3.0 + 0.0j
fraction: import fractions; Q = fractions.Fraction(3, 2) | float(Q) | Q = fractions.Fraction(5, 2)
slice_object: S = slice(0, 1) | np.sum(x[S]) | S = slice(0, 2) | S = slice(1, 2)
dtype: D = np.dtype("f8") | np.float64(1.7).astype(D) | D = np.dtype("f4") | D = np.dtype("i8")
tolerance_branch: TOL = 0.5 | (2.0 if abs(x[0]) > TOL else 3.0) | TOL = 0.9 | TOL = 0.1
chained_compare: LO = 0.5; HI = 1.0 | (2.0 if LO < abs(x[0]) < HI else 3.0) | HI = 0.6 | LO = 0.55
min_max: LO = 0.5 | max(LO, 0.1) | LO = 0.05 | LO = 3.0
rounding: W = 2.4 | round(W) | W = 2.6 | W = -1.2
int_of_float: W = 2.4 | int(W) + 1 | W = 3.9 | W = 7.1
math_of_float: W = 2.0 | math.sqrt(W) | W = 3.0 | W = 5.0
float_of_float: W = 2.0 | float(W) | W = 3.0 | W = 5.0
str_of_float: W = 2.0 | len(str(W)) | W = 2.25 | W = 3.0
hash_key_float: W = 2.0; D = {2.0: 1.5, 3.0: 2.5} | D[W] | W = 3.0 | W = 4.0
sum_of: A = 1.0; B = 2.0 | sum((A, B)) | A = 5.0 | B = 7.0
# arrays
array: A = np.array([2.0, 3.0]) | A | A = np.array([1.0, 5.0]) | A = A * 2
array_in_place: A = np.array([2.0, 3.0]) | A | A[0] = 7.0 | A *= 2 | A[:] = 1.0 | A.fill(4.0) | A.sort()
array_element: A = np.array([2.0, 3.0]) | A[1] | A[1] = 7.0 | A = np.array([4.0, 9.0])
array_slice: A = np.array([2.0, 3.0, 4.0]) | A[1:] | A[1] = 7.0 | A = np.arange(3.0)
array_shape: A = np.array([2.0, 3.0]) | np.sum(A) | A = np.array([2.0, 3.0, 4.0]) | A = np.ones((2, 2))
array_shape_only: A = np.ones(2) | A.shape[0] | A = np.ones(3) | A = np.ones((4, 1))
array_reshaped: A = np.ones((2, 3)) | A.shape[1] | A = A.reshape(3, 2) | A = A.reshape(6, 1)
array_len: A = np.ones(2) | len(A) | A = np.ones(5)
array_size: A = np.ones(2) | A.size | A = np.ones(5)
array_ndim: A = np.ones(2) | A.ndim | A = np.ones((5, 1))
array_dtype: A = np.ones(2) | (2.0 if A.dtype == np.float64 else 3.0) | A = np.ones(2, "f4") | A = np.ones(2, "i8")
array_dtype_change: A = np.ones(2) | A | A = 2 * np.ones(2, "f4") | A = 3 * np.ones(2, "i8")
array_mean: A = np.array([2.0, 3.0]) | A.mean() | A[0] = 7.0 | A = np.arange(5.0)
array_np_mean: A = np.array([2.0, 3.0]) | np.mean(A) | A[0] = 7.0 | A = np.arange(5.0)
array_max: A = np.array([2.0, 3.0]) | A.max() | A[0] = 7.0 | A[:] = 1.0
array_argmax: A = np.array([2.0, 3.0]); L = [1.5, 2.5] | L[int(A.argmax())] | A[0] = 7.0
array_tolist: A = np.array([2.0, 3.0]) | A.tolist()[1] | A[1] = 7.0
array_item: A = np.array([2.0, 3.0]) | A[1].item() | A[1] = 7.0
array_float: A = np.array([2.0, 3.0]) | float(A[1]) | A[1] = 7.0
array_branch: A = np.array([2.0, 3.0]) | (2.0 if A[0] > 1 else 3.0) | A[0] = 0.5
array_any: A = np.array([0.0, 1.0]) | (2.0 if np.any(A > 0.5) else 3.0) | A[1] = 0.0
array_iter: A = np.array([2.0, 3.0]) | sum([a * a for a in A]) | A[1] = 7.0 | A = np.arange(4.0)
array_unpack: A = np.array([2.0, 3.0]) | (lambda a, b: a - 2 * b)(*A) | A[1] = 7.0
array_bool: M = np.array([True, False]) | np.where(M, 2.0, 3.0) | M[1] = True | M = ~M
array_mask: M = np.array([True, False]) | np.sum(x[M]) | M[1] = True | M[0] = False
array_int_index: I = np.array([0, 0, 1]) | np.sum(x[I]) | I[0] = 1 | I = np.array([1])
array_string: A = np.array(["a", "b"]) | (2.0 if A[0] == "a" else 3.0) | A[0] = "c" | A = np.array(["d", "e"])
array_object!: A = np.array([2.0, 3.0], object) | A[1] | A[1] = 7.0
array_view: B = np.ones((2, 2)); A = B[0] | A | B[0, 1] = 5.0 | B = np.zeros(2)
array_transposed: A = np.array([[1.0, 2.0], [3.0, 4.0]]) | np.sum(A.T @ x) | A[0, 1] = 7.0 | A = A.T
array_0d: A = np.array(2.0) | A | A[...] = 7.0 | A = np.array(1.0)
array_large: A = np.linspace(0, 1, 100_000) | np.sum(A) | A[5] = 777.0 | A = A[::2]
array_large_any: A = np.zeros(100_000) | (2.0 if A.any() else 3.0) | A[99_999] = 1.0
array_strided: B = np.arange(6.0); A = B[::2] | np.sum(A) | B[2] = 9.0 | A = B[::-2]
array_readonly: A = np.array([2.0, 3.0]); A.flags.writeable = False | A | A = np.array([4.0, 4.0]) | A.flags.writeable = True; A[0] = 9
structured: A = np.zeros(2, [("w", "f8")]); A["w"] = 2.0 | A["w"][0] | A["w"][0] = 3.0 | A["w"] = 5.0
masked!: A = np.ma.array([2.0, 3.0], mask=[0, 0]) | float(A.mean()) | A.mask[1] = True
flat: A = np.array([2.0, 3.0]) | A.flat[1] | A[1] = 7.0
nditer: A = np.array([2.0, 3.0]) | sum([float(v) for v in np.nditer(A)]) | A[1] = 7.0
# containers
list_item: L = [2.0, 3.0] | L[0] | L[0] = 5.0 | L = [7.0] | L.insert(0, 1.5)
list_negative: L = [2.0, 3.0] | L[-1] | L.append(5.0) | L.pop(); L.pop() | L.clear()
list_slice: L = [2.0, 3.0, 4.0] | sum(L[1:]) | L[2] = 5.0 | L.append(6.0) | del L[1:]
list_sum: L = [2.0, 3.0] | sum(L) | L.append(4.0) | L[0] = 1.0 | L.clear()
list_len: L = [2.0, 3.0] | len(L) | L.append(4.0) | L = [1.0]
list_truth: L = [] | (2.0 if L else 3.0) | L.append(1) | L.clear()
list_in: L = [1, 2] | (2.0 if 2 in L else 3.0) | L.remove(2) | L.append(2)
list_equal: L = [1, 2] | (2.0 if L == [1, 2] else 3.0) | L[0] = 2 | L = [1, 2]
list_sorted: L = [3.0, 1.0, 2.0] | sorted(L)[0] | L[0] = 0.5 | L.append(0.25)
list_reverse: L = [2.0, 3.0] | list(reversed(L))[0] | L[1] = 5.0
list_enumerate: L = [2.0, 3.0] | sum([i * w for i, w in enumerate(L)]) | L[1] = 5.0 | L.append(7.0)
list_zip: L = [2.0, 3.0]; M = [1.0, 2.0] | sum([a * b for a, b in zip(L, M)]) | M[1] = 5.0 | L.pop()
list_array: L = [2.0, 3.0] | np.array(L) | L[0] = 5.0 | L = [1.0, 1.0]
list_np_sum: L = [2.0, 3.0] | np.sum(L) | L[0] = 5.0 | L.append(1.0)
list_of_arrays: L = [np.ones(2), np.ones(2)] | L[0] + L[1] | L[0][1] = 5.0 | L[1] = np.arange(2.0)
list_nested: L = [[2.0], [3.0, 4.0]] | L[1][0] | L[1][0] = 5.0 | L[1] = [6.0] | L[0] = 0
list_map: L = [2.0, 3.0] | sum(map(abs, L)) | L[0] = -5.0 | L.append(1.0)
list_index_method: L = ["a", "b"] | L.index("b") + 1.0 | L.insert(0, "c") | L.remove("b")
list_count: L = [1, 2, 2] | L.count(2) | L.append(2)
list_copy: L = [2.0, 3.0] | L.copy()[0] | L[0] = 5.0
list_unpack: L = [2.0, 3.0] | (lambda a, b: a - b)(*L) | L[0] = 5.0 | L.append(1.0)
list_star: L = [2.0, 3.0] | sum([*L, 1.0]) | L[0] = 5.0 | L.append(1.0)
list_add: L = [2.0, 3.0] | sum(L + [1.0]) | L[0] = 5.0 | L.append(1.0)
list_times: L = [2.0, 3.0] | sum(L * 2) | L[0] = 5.0 | L.append(1.0)
list_self: L = [2.0, 3.0] | sum([L[i] for i in range(len(L))]) | L[0] = 5.0 | L.append(1.0)
list_min: L = [2.0, 3.0] | min(L) | L[0] = 5.0 | L.append(1.0)
list_any: L = [0, 0] | (2.0 if any(L) else 3.0) | L[1] = 1
list_all_gen: L = [1, 1] | (2.0 if all(v > 0 for v in L) else 3.0) | L[1] = 0
list_join: L = ["a", "b"]; D = {"ab": 2.0, "ac": 3.0} | D["".join(L)] | L[1] = "c" | L[1] = "d"
list_dot: L = [2.0, 3.0] | np.dot(L, x) | L[0] = 5.0
list_matmul: L = [2.0, 3.0] | L @ x | L[0] = 5.0
list_as_index: L = [0, 1] | np.sum(x[L]) | L[1] = 0 | L.append(1)
list_as_store_index: L = [0]\ndef use(x):\n    y = np.sin(x)\n    y[L] = 2.0\n    return y | use(x) | L[0] = 1 | L.append(0)
lists_in_array: L = [2.0, 3.0]; M = [1.0, 4.0] | np.array([L, M])[0] | L[0] = 5.0 | M[0] = 7.0
lists_in_list: L = [2.0]; M = [L, [1.0]] | M[0][0] + M[1][0] | L[0] = 5.0 | M[0] = [9.0]
list_concatenated: L = [2.0]; M = [3.0] | np.sum(np.concatenate([L, M])) | L.append(5.0) | M[0] = 7.0
list_local_name: L = [2.0, 3.0]\ndef use():\n    a = L\n    b = a[:1] + [1.0]\n    c, d = a\n    return sum(b) + c * d | use() | L[0] = 5.0
list_of_tuples: L = [("a", 2.0), ("b", 3.0)] | sum([w * len(k) for k, w in L]) | L[0] = ("cc", 2.0) | L.append(("d", 1.0))
list_nested_unpack: L = [(1.0, (2.0, 3.0))] | sum([a * b - c for a, (b, c) in L]) | L[0] = (1.0, (5.0, 3.0))
list_of_functions: L = [np.sin, np.cos] | L[0](0.5) | L[0] = np.exp | L = [np.tanh]
tuple_item: T = (2.0, 3.0) | T[0] | T = (5.0, 3.0) | T = (1.0,)
tuple_unpack: T = (2.0, 3.0) | (lambda: [a - b for a, b in [T]])()[0] | T = (5.0, 3.0)
tuple_list: T = ([2.0], 3.0) | T[0][0] | T[0][0] = 5.0
tuple_add: T = (2.0,) | sum(T + (1.0,)) | T = (5.0, 1.0)
tuple_compare: T = (1, 2) | (2.0 if T < (1, 3) else 3.0) | T = (1, 4)
dict_item: D = {"a": 2.0} | D["a"] | D["a"] = 3.0 | D = {"a": 4.0} | del D["a"] | D["a"] = 1.0
dict_get: D = {"a": 2.0} | D.get("b", 1.5) | D["b"] = 3.0 | D["b"] = 7.0 | del D["b"]
dict_get_default: D = {"a": 2.0}; W = 1.5 | D.get("b", W) | W = 2.5 | D["b"] = 3.0
dict_in: D = {"a": 2.0} | (2.0 if "b" in D else 3.0) | D["b"] = 3.0 | del D["b"]
dict_not_in: D = {"a": 2.0} | (2.0 if "b" not in D else 3.0) | D["b"] = 3.0 | del D["b"]
dict_keys: D = {"a": 2.0} | len(list(D.keys())) | D["b"] = 3.0 | D = {}
dict_values: D = {"a": 2.0} | sum(D.values()) | D["b"] = 3.0 | D["a"] = 1.0
dict_items: D = {"a": 2.0} | sum([len(k) * v for k, v in D.items()]) | D["bc"] = 3.0 | D["a"] = 1.0
dict_order: D = {"a": 2.0, "b": 3.0} | [v for v in D.values()][0] | D["a"] = D.pop("a") | D["b"] = 9.0
dict_iter: D = {"a": 2.0, "b": 3.0} | sum([D[k] for k in D]) | D["c"] = 1.0 | D["a"] = 7.0
dict_len: D = {"a": 2.0} | len(D) | D["b"] = 3.0
dict_nested: D = {"a": {"b": 2.0}} | D["a"]["b"] | D["a"]["b"] = 3.0 | D["a"] = {"b": 5.0} | D["a"] = 0
dict_int_key: D = {1: 2.0} | D[1] | D[1] = 3.0 | D = {True: 4.0}
dict_tuple_key: D = {(1, "a"): 2.0} | D[1, "a"] | D[1, "a"] = 3.0
dict_array: D = {"a": np.ones(2)} | D["a"] | D["a"][0] = 3.0 | D["a"] = np.arange(2.0)
dict_star: D = {"a": 2.0} | (lambda a, b=1.0: a + b)(**D) | D["b"] = 3.0 | D["a"] = 1.0
dict_merge: D = {"a": 2.0} | {"a": 1.0, **D}["a"] | D["a"] = 3.0 | del D["a"]
dict_or: D = {"a": 2.0} | ({"a": 1.0}|D)["a"] | D["a"] = 3.0
dict_max_key: D = {"a": 2.0, "b": 3.0}; L = {"a": 1.5, "b": 2.5} | L[max(D, key=D.get)] | D["a"] = 5.0
dict_dispatch: D = {"a": np.sin, "b": np.cos} | D["a"](0.5) | D["a"] = np.exp
dict_setdefault!: D = {"a": 2.0} | D.setdefault("b", 1.5) | D["b"] = 3.0
defaultdict: D = collections.defaultdict(float, a=2.0) | D["a"] | D["a"] = 3.0
ordered_dict: D = collections.OrderedDict(a=2.0, b=3.0) | list(D.values())[0] | D.move_to_end("a") | D["b"] = 9.0
chain_map: M = {"a": 2.0}; D = collections.ChainMap({}, M) | D["a"] | M["a"] = 3.0 | D.maps[0]["a"] = 4.0
counter: D = collections.Counter("aab") | D["a"] | D.update("a") | D.update("aa")
mapping_proxy: M = {"a": 2.0}; D = types.MappingProxyType(M) | D["a"] | M["a"] = 3.0
deque: L = collections.deque([2.0, 3.0]) | L[0] | L.appendleft(5.0) | L.rotate(1)
deque_full: L = collections.deque([2.0, 3.0], 2)\ndef use():\n    M = L.copy()\n    M.append(1.0)\n    return sum(M) + sum(L + L) | use() | L.append(5.0) | L = collections.deque([2.0], 3)
list_subclass_init: class K(list):\n    def __init__(self, n): super().__init__([2.0] * n)\nL = K(3) | sum(L) + np.sum(np.array(L)) | L[0] = 3.0 | L.append(1.0)
list_subclass_copy: import copy\nclass K(list): scale = 1.0\nL = K([1.0, 2.0])\nL.scale = 3.0 | copy.copy(L).scale * sum(L) | L.scale = 5.0 | K.scale = 2.0; del L.scale
dict_subclass_init: class K(dict):\n    def __init__(self, a, b): super().__init__(a=a, b=b)\nD = K(2.0, 3.0) | sum(D.values()) | D["a"] = 5.0 | D["c"] = 1.0
ordered_subclass_init: class K(collections.OrderedDict):\n    def __init__(self, a, b): super().__init__(a=a, b=b)\nD = K(2.0, 3.0) | list(D.values())[0] | D["a"] = 5.0 | D.move_to_end("a")
namedtuple_new: class K(collections.namedtuple("K", "w v")):\n    def __new__(cls, w): return super().__new__(cls, w, 2 * w)\nC = K(2.0) | sum(C) | C = K(3.0)
set_in: S = {1, 2} | (2.0 if 2 in S else 3.0) | S.remove(2) | S.add(2)
set_len: S = {1, 2} | len(S) | S.add(3)
set_sum: S = {1.0, 2.0} | sum(sorted(S)) | S.add(3.0)
set_subset: S = {1, 2} | (2.0 if S <= {1, 2, 3} else 3.0) | S.add(4)
set_and: S = {1, 2} | len(S & {2, 3}) + 1.0 | S.add(3)
frozenset: S = frozenset({1, 2}) | len(S|{5}) | S = frozenset({1})
array_module: import array; A = array.array("d", [2.0, 3.0]) | A[1] | A[1] = 5.0
array_module_slice!: import array; A = array.array("d", [2.0, 3.0]) | A[:2][1] | A[1] = 5.0
bytearray_slice!: B = bytearray(b"abc") | B[:2][1] * 1.0 | B[1] = 100
memoryview_slice!: A = bytearray(b"abc"); B = memoryview(A) | sum(B[:2]) * 1.0 | A[1] = 100
user_list_slice!: L = collections.UserList([2.0, 3.0]) | L[:2][1] | L[1] = 5.0
flat_item: A = np.array([2.0, 3.0]); F = A.flat | F[1] | A[1] = 5.0
flat_slice!: A = np.array([2.0, 3.0]); F = A.flat | F[:2][1] | A[1] = 5.0
poly_item: P = np.poly1d([1.0, 2.0]) | P[0] | P[0] = 3.0 | P = np.poly1d([1.0, 5.0])
range_object: R = range(3) | sum([float(i) for i in R]) | R = range(5)
# objects
attribute: C = types.SimpleNamespace(w=2.0) | C.w | C.w = 3.0 | C = types.SimpleNamespace(w=4.0) | del C.w | C.w = 1.0
chain: C = types.SimpleNamespace(o=types.SimpleNamespace(reg=2.0)) | C.o.reg | C.o.reg = 3.0 | C.o = types.SimpleNamespace(reg=5.0)
late_attribute: C = types.SimpleNamespace() | (C.w if hasattr(C, "w") else 2.0) | C.w = 3.0 | C.w = 4.0 | del C.w
getattr_default: C = types.SimpleNamespace() | getattr(C, "w", 2.0) | C.w = 3.0 | C.w = 4.0 | del C.w
getattr_name: C = types.SimpleNamespace(a=2.0, b=3.0); N = "a" | getattr(C, N) | N = "b" | C.b = 5.0
plain_object: class K:\n    def __init__(self): self.w = 2.0\nC = K() | C.w | C.w = 3.0 | C.w = np.ones(2) | C.__dict__["w"] = 6.0
class_attribute: class K:\n    w = 2.0\nC = K() | C.w | K.w = 3.0 | C.w = 4.0 | del C.w | K.w = 6.0
class_itself: class K:\n    w = 2.0 | K.w | K.w = 3.0 | del K.w
inherited: class B:\n    w = 2.0\nclass K(B): pass\nC = K() | C.w | B.w = 3.0 | K.w = 4.0 | C.w = 5.0
class_swapped: class K:\n    w = 2.0\nclass J:\n    w = 7.0\nC = K() | C.w | C.__class__ = J
slots: class K:\n    __slots__ = ("w",)\nC = K()\nC.w = 2.0 | C.w | C.w = 3.0 | del C.w
property: class K:\n    a = 2.0\n    @property\n    def w(self): return self.a * 2\nC = K() | C.w | C.a = 3.0 | K.a = 5.0; del C.a
property_redefined: class K:\n    a = 2.0\n    @property\n    def w(self): return self.a * 2\nC = K() | C.w | K.w = property(lambda self: self.a * 3)
property_setter: class K:\n    _w = 2.0\n    @property\n    def w(self): return self._w\n    @w.setter\n    def w(self, v): self._w = v\nC = K() | C.w | C.w = 3.0
cached_property: class K:\n    a = 2.0\n    @functools.cached_property\n    def w(self): return self.a * 2\nC = K() | C.w | C.a = 3.0 | del C.w
getattr_hook: class K:\n    d = {"w": 2.0}\n    def __getattr__(self, name): return self.d[name]\nC = K() | C.w | C.d["w"] = 3.0
getitem_hook: class K:\n    d = {"w": 2.0}\n    def __getitem__(self, name): return self.d[name]\nC = K() | C["w"] | C.d["w"] = 3.0
len_hook: class K:\n    n = 2\n    def __len__(self): return self.n\nC = K() | len(C) | C.n = 3
bool_hook: class K:\n    n = 2\n    def __bool__(self): return self.n > 1\nC = K() | (2.0 if C else 3.0) | C.n = 0
eq_hook!: class K:\n    n = 2\n    def __eq__(self, other): return self.n == other\nC = K() | (2.0 if C == 2 else 3.0) | C.n = 0
contains_hook: class K:\n    n = 2\n    def __contains__(self, other): return self.n == other\nC = K() | (2.0 if 2 in C else 3.0) | C.n = 0
iter_hook: class K:\n    d = [2.0]\n    def __iter__(self): return iter(self.d)\nC = K() | sum([w for w in C]) | C.d[0] = 3.0 | C.d.append(1.0)
add_hook: class K:\n    n = 2.0\n    def __mul__(self, other): return self.n * other\nC = K() | C * 1.5 | C.n = 3.0
float_hook!: class K:\n    n = 2.0\n    def __float__(self): return self.n\nC = K() | float(C) | C.n = 3.0
str_hook!: class K:\n    n = 2.0\n    def __str__(self): return str(self.n)\nC = K() | float(str(C)) | C.n = 3.0
format_hook!: class K:\n    n = 2.0\n    def __format__(self, s): return str(self.n)\nC = K() | float(f"{C}") | C.n = 3.0
hash_hook!: class K:\n    n = 2\n    def __hash__(self): return self.n\n    def __eq__(self, o): return self.n == o.n\nC = K(); D = {C: 2.0} | (1.5 if C in D else 2.5) | C.n = 3
index_hook!: class K:\n    n = 0\n    def __index__(self): return self.n\nC = K(); L = [1.5, 2.5] | L[C] | C.n = 1
array_hook!: class K:\n    n = 2.0\n    def __array__(self, dtype=None, copy=None): return np.array(self.n)\nC = K() | np.sin(C) | C.n = 3.0
call_hook: class K:\n    n = 2.0\n    def __call__(self, a): return self.n * a\nC = K() | C(1.5) | C.n = 3.0 | K.__call__ = lambda self, a: a
enter_hook: class K:\n    n = 2.0\n    def __enter__(self): return self.n\n    def __exit__(self, *e): pass\nC = K()\ndef use():\n    with C as n:\n        return n | use() | C.n = 3.0
dataclass: @dataclasses.dataclass\nclass K:\n    w: float = 2.0\n    f: bool = True\nC = K() | (C.w if C.f else 1.5) | C.w = 3.0 | C.f = False | C = K(9.0)
dataclass_frozen: @dataclasses.dataclass(frozen=True)\nclass K:\n    w: float\nC = K(2.0) | C.w | C = K(3.0) | object.__setattr__(C, "w", 4.0)
dataclass_replace: @dataclasses.dataclass\nclass K:\n    w: float = 2.0\n    v: float = 3.0\nC = K() | dataclasses.replace(C, w=1.0).v | C.v = 5.0
dataclass_eq: @dataclasses.dataclass\nclass K:\n    w: float = 2.0\nC = K(); D = K() | (2.0 if C == D else 3.0) | D.w = 5.0
dataclass_astuple: @dataclasses.dataclass\nclass K:\n    w: float = 2.0\nC = K() | dataclasses.astuple(C)[0] | C.w = 5.0
vars_of: C = types.SimpleNamespace(w=2.0) | vars(C)["w"] | C.w = 3.0
dict_of: C = types.SimpleNamespace(w=2.0) | C.__dict__["w"] | C.w = 3.0
namedtuple: K = collections.namedtuple("K", "w v"); C = K(2.0, 3.0) | C.w | C = K(5.0, 3.0) | C = C._replace(w=1.0)
namedtuple_index: K = collections.namedtuple("K", "w v"); C = K(2.0, 3.0) | C[0] + len(C) | C = K(5.0, 3.0)
enum_member: class K(enum.Enum):\n    A = 2.0\n    B = 3.0\nC = K.A | C.value | C = K.B
enum_is: class K(enum.Enum):\n    A = 1\n    B = 2\nC = K.A | (2.0 if C is K.A else 3.0) | C = K.B
int_enum: class K(enum.IntEnum):\n    A = 1\n    B = 2\nC = K.A | C * 1.0 | C = K.B
flag_enum: class K(enum.Flag):\n    A = 1\n    B = 2\nC = K.A | (2.0 if K.B in C else 3.0) | C = K.A or K.B | C = K.B
weakref!: import weakref\nclass K: pass\nC = K(); C.w = 2.0; R = weakref.ref(C) | R().w | C.w = 3.0
int_subclass: class K(int): pass\nN = K(2) | N * 1.0 | N = K(3) | N = 3
float_subclass: class K(float): pass\nW = K(2.0) | W * 1.0 | W = K(3.0)
list_subclass: class K(list): pass\nL = K([2.0]) | L[0] | L[0] = 3.0
dict_subclass_missing: class K(dict):\n    extra = 2.0\n    def __missing__(self, key): return self.extra\nD = K() | D["a"] | K.extra = 3.0
list_subclass_getitem: class K(list):\n    extra = 2.0\n    def __getitem__(self, i): return self.extra\nL = K([1.0]) | L[0] | K.extra = 3.0
protocol_data: import typing\n@typing.runtime_checkable\nclass P(typing.Protocol): w: float\nclass K: pass\nC = K() | (2.0 if isinstance(C, P) else 3.0) | C.w = 1.0 | del C.w | K.w = 1.0
# objects that the function makes
held_in_slots!: class K: w = 1.0\nclass O:\n    __slots__ = ("c",)\n    def __init__(self, c): self.c = c\n    def __lt__(self, o): return self.c.w < o.c.w\nC, D = K(), K()\nD.w = 2.0 | max([O(C), O(D)]).c.w | C.w = 3.0
held_method!: class K:\n    w = 1.0\n    def get(self): return self.w\nclass O:\n    def __init__(self, f): self.f = f\n    def __lt__(self, o): return self.f() < o.f()\nC, D = K(), K()\nD.w = 2.0 | max([O(C.get), O(D.get)]).f() | C.w = 3.0
held_partial!: class O:\n    def __init__(self, f): self.f = f\n    def __lt__(self, o): return self.f() < o.f()\nL, M = [1.0], [2.0] | max([O(functools.partial(max, L)), O(functools.partial(max, M))]).f() | L[0] = 3.0
held_bound!: class O:\n    def __init__(self, f): self.f = f\n    def __lt__(self, o): return self.f(1) < o.f(1)\nD, E = {1: 1.0}, {1: 2.0} | max([O(D.get), O(E.get)]).f(1) | D[1] = 3.0
held_functions: W = 1.0\ndef g(): return W\ndef h(): return 2.0\nclass O:\n    def __init__(self, f): self.f = [f]\n    def __lt__(self, o): return self.f[0]() < o.f[0]()\n | max([O(g), O(h)]).f[0]() | W = 3.0
property_of_getter: class K: w = 2.0\nclass O:\n    w = property(operator.attrgetter("c.w"))\n    def __init__(self, c): self.c = c\nC = K() | O(C).w | C.w = 3.0 | K.w = 5.0 | O.w = 1.5
partialmethod_replaced: class K:\n    def h(self, u, a): return u * a\n    g = functools.partialmethod(h, 1.5) | K().g(2.0) | K.g = functools.partialmethod(K.h, 2.5)
cached_property_replaced: def named(f):\n    f.__set_name__(None, "w")\n    return f\nclass K: w = named(functools.cached_property(lambda self: 2.0)) | K().w | K.w = named(functools.cached_property(lambda self: 3.0)) | K.w = 1.5
dispatch_replaced: class K:\n    g = functools.singledispatchmethod(lambda self, a: 2.0)\nC = K() | K().g(1) + C.g(1) | K.g = functools.singledispatchmethod(lambda self, a: 3.0)
cache_replaced!: class K: g = functools.lru_cache(lambda self: 2.0) | K().g() | K.g = functools.lru_cache(lambda self: 3.0)
class_gains_attribute: class K: pass | getattr(K(), "w", 2.0) + hasattr(K(), "v") | K.w = 3.0 | K.v = 1.0 | del K.w
class_gains_getattr: D = {}\nclass K:\n    def __getattr__(self, name):\n        if name in D: return D[name]\n        raise AttributeError(name) | getattr(K(), "w", 2.0) | D["w"] = 3.0 | del D["w"]
class_gains_init: class K: w = 2.0 | K().w | K.__init__ = lambda self: setattr(self, "w", 3.0) | del K.__init__
class_gains_truth: class K: pass | (2.0 if K() else 3.0) | K.__bool__ = lambda self: False | del K.__bool__ | K.__len__ = lambda self: 0
# functions
helper: def g(a): return a * 2 | g(1.5) | def g(a): return a * 3
helper_code: def g(a): return a * 2\ndef h(a): return a * 5 | g(1.5) | g.__code__ = h.__code__
helper_lambda: g = lambda a: a * 2 | g(1.5) | g = lambda a: a * 3
helper_default: def g(a, w=2.0): return a * w | g(1.5) | g.__defaults__ = (3.0,)
helper_default_list: def g(a, w=[2.0]): return a * w[0] | g(1.5) | g.__defaults__[0][0] = 3.0 | g.__defaults__ = ([5.0],)
helper_default_int: def g(a, w=2): return a * w | g(1.5) | g.__defaults__ = (3,) | g.__defaults__ = (4,)
helper_default_posonly: def g(a, w=2.0, /): return a * w | g(1.5) | g.__defaults__ = (3.0,)
helper_default_gone: def g(a, w=2.0): return a * w | g(1.5) | g.__defaults__ = None
helper_kwonly: def g(a, *, w=2.0): return a * w | g(1.5) | g.__kwdefaults__ = {"w": 3.0} | g.__kwdefaults__["w"] = 4.0
helper_kwonly_flag: def g(a, *, w=True): return a if w else -a | g(1.5) | g.__kwdefaults__ = {"w": False}
helper_attribute: def g(a): return a * g.w\ng.w = 2.0 | g(1.5) | g.w = 3.0
helper_closure: def make(w):\n    def g(a): return a * w\n    def put(v):\n        nonlocal w\n        w = v\n    return g, put\ng, put = make(2.0) | g(1.5) | put(3.0) | put(4.0)
helper_global: def g(a): return a * V\nV = 2.0 | g(1.5) | V = 3.0
helper_of_helper: def g(a): return h(a)\ndef h(a): return a * 2 | g(1.5) | def h(a): return a * 3
helper_varargs: def g(*a, **k): return sum(a) + sum(k.values())\nL = [1.0, 2.0]; D = {"u": 3.0} | g(*L, **D) | L.append(5.0) | D["v"] = 7.0 | D["u"] = 0.5
helper_decorated: def twice(h):\n    @functools.wraps(h)\n    def wrap(*a, **k): return S * h(*a, **k)\n    return wrap\nS = 2.0\n@twice\ndef g(a): return a * S | g(1.5) | S = 3.0
helper_wraps: def g(a): return a * 2.0\ndef h(a): return a * 3.0\nh.__wrapped__ = g | h(1.5) | h.__wrapped__ = None | def h(a): return a
helper_recursive: N = 3\ndef g(a, n): return a if n == 0 else g(a, n - 1) * 1.5 | g(1.0, N) | N = 4 | N = 2
helper_generator: L = [2.0, 3.0]\ndef g():\n    for w in L: yield w * 2 | sum(g()) | L[0] = 5.0 | L.append(1.0)
generator_expression: L = [2.0, 3.0] | sum(w * 2 for w in L) | L[0] = 5.0 | L.append(1.0)
partial: def h(a, w): return a * w\ng = functools.partial(h, w=2.0) | g(1.5) | g = functools.partial(h, w=3.0) | g.keywords["w"] = 4.0
partial_args: def h(w, a): return a * w\nL = [2.0]\ng = functools.partial(h, L[0]) | g(1.5) | g = functools.partial(h, 3.0)
partial_list: def h(w, a): return a * w[0]\nL = [2.0]\ng = functools.partial(h, L) | g(1.5) | L[0] = 3.0
partial_inner: def h(a): return a * 2\ng = functools.partial(h) | g(1.5) | def h(a): return a\ng = functools.partial(h)
partial_made: def h(w, a): return a * w\nW = 2.0 | functools.partial(h, W)(1.5) | W = 3.0
partial_of_partial: def h(u, w, a): return u + a * w\ng = functools.partial(functools.partial(h, 1.0), 2.0) | g(1.5) | g = functools.partial(functools.partial(h, 2.0), 2.0)
partialmethod: class K:\n    w = 2.0\n    def h(self, u, a): return self.w * u * a\n    g = functools.partialmethod(h, 1.5)\nC = K() | C.g(1.5) | C.w = 3.0
method: class K:\n    w = 2.0\n    def g(self, a): return self.w * a\nC = K() | C.g(1.5) | C.w = 3.0 | K.g = lambda self, a: a | C.g = lambda a: 2 * a
method_bound: class K:\n    w = 2.0\n    def g(self, a): return self.w * a\nC = K(); B = C.g | B(1.5) | C.w = 3.0 | B = K().g
method_in_dict: class K:\n    w = 2.0\n    def g(self, a): return self.w * a\nC = K(); D = {"m": C.g} | D["m"](1.5) | C.w = 3.0 | D["m"] = K().g
method_super: class B:\n    w = 2.0\n    def g(self, a): return self.w * a\nclass K(B):\n    def g(self, a): return super().g(a) + 1\nC = K() | C.g(1.5) | C.w = 3.0 | B.g = lambda self, a: a
method_private: class K:\n    def __init__(self): self.__w = 2.0\n    def g(self, a): return self.__w * a\nC = K() | C.g(1.5) | C._K__w = 3.0
classmethod: class K:\n    w = 2.0\n    @classmethod\n    def g(cls, a): return cls.w * a\nC = K() | C.g(1.5) | K.w = 3.0
classmethod_redefined: class K:\n    @classmethod\n    def g(cls, a): return 2 * a\nC = K() | C.g(1.5) | K.g = classmethod(lambda cls, a: 3 * a)
staticmethod: W = 2.0\nclass K:\n    @staticmethod\n    def g(a): return W * a | K.g(1.5) | W = 3.0 | K.g = staticmethod(lambda a: a)
staticmethod_instance: class K:\n    @staticmethod\n    def g(a): return 2.0 * a\nC = K() | C.g(1.5) | K.g = staticmethod(lambda a: a)
dispatch: @functools.singledispatch\ndef g(a): return 2.0 * a | g(1.5) | g.register(float, lambda a: 3.0 * a)
reduce: L = [2.0, 3.0] | functools.reduce(lambda a, b: a * b, L) | L[0] = 5.0 | L.append(1.5)
reduce_operator: L = [2.0, 3.0] | functools.reduce(operator.mul, L) | L[0] = 5.0 | L.append(1.5)
itemgetter: D = {"a": 2.0} | operator.itemgetter("a")(D) | D["a"] = 3.0
attrgetter: C = types.SimpleNamespace(w=2.0) | operator.attrgetter("w")(C) | C.w = 3.0
accumulate: L = [2.0, 3.0] | list(itertools.accumulate(L))[-1] | L[0] = 5.0
chain_from: L = [[2.0], [3.0]] | sum(itertools.chain.from_iterable(L)) | L[0][0] = 5.0 | L.append([1.0])
sort_key: L = ["b", "a"]; K = {"a": 1, "b": 0}; V = {"a": 2.0, "b": 3.0} | V[sorted(L, key=lambda n: K[n])[0]] | K["a"] = -1
isinstance_tuple: T = (float, int) | (2.0 if isinstance(1.0, T) else 3.0) | T = (int, str) | T = (str, float)
isinstance_nested: T = (float, int) | (2.0 if isinstance(1.0, (str, T)) else 3.0) | T = (int, str)
isinstance_union: T = operator.or_(float, int) | (2.0 if isinstance(1.0, T) else 3.0) | T = operator.or_(int, str) | T = operator.or_(str, float)
isinstance_of_argument: T = (np.ndarray,) | (2.0 if isinstance(x, T) else 3.0) | T = (float,)
issubclass_tuple: T = (float, int) | (2.0 if issubclass(float, T) else 3.0) | T = (int, str)
caught_tuple!: T = (KeyError, IndexError)\ndef look():\n    try:\n        return [2.0][1]\n    except T:\n        return 3.0\n    except Exception:\n        return 4.0 | look() | T = (KeyError,) | T = (IndexError,)
isinstance: C = [2.0] | (2.0 if isinstance(C, list) else 3.0) | C = (2.0,)
type_of: C = [2.0] | (2.0 if type(C) is list else 3.0) | C = (2.0,)
callable: C = 2.0 | (2.0 if callable(C) else 3.0) | C = abs
derivative: def h(a): return a * a\nd = grad(h) | d(1.5) | d = grad(lambda a: a * a * a)
derivative_reading: W = 2.0\ndef h(a): return a * a * W\nd = grad(h) | d(1.5) | W = 3.0 | W = -1.0
derivative_inside: W = 2.0 | grad(lambda a: a * a * W)(1.5) | W = 3.0
jacobian_inside: A = np.array([2.0, 3.0]) | jacobian(lambda a: a * a * A)(np.ones(2))[0, 0] | A[0] = 3.0 | A = np.ones(2)
vjp_inside: W = 2.0 | vjp(lambda a: a * W, 1.5)[1](2.0)[0] | W = 3.0
derivative_of_redefined: def h(a): return a * a\ndef g(a): return grad(h)(a) | g(1.5) | def h(a): return a * a * a
jvp_of: W = 2.0 | jvp(lambda a: a * a * W, (1.5,), (1.0,))[1] | W = 3.0
conditional_lambda: N = 0; g = lambda a: a if N else 2 * a | g(1.5) | N = 1
ufunc: F = np.sin | F(0.5) | F = np.cos | F = abs
numpy_function: F = np.sum; A = np.array([2.0, 3.0]) | F(A) | A[0] = 5.0 | F = np.max
numpy_partial: A = np.array([2.0, 3.0]); F = functools.partial(np.interp, xp=A, fp=A * 2) | F(2.5) | A[0] = 2.25
vectorize: F = np.vectorize(lambda a: a * 2.0) | F(0.5) | F = np.vectorize(lambda a: a * 3.0)
poly!: P = np.poly1d([1.0, 2.0]) | P(1.5) | P = np.poly1d([1.0, 5.0]) | P.coeffs[0] = 3.0
module_attribute: M = types.ModuleType("cfg"); M.w = 2.0 | M.w | M.w = 3.0 | del M.w | M.w = 1.0
module_function: M = types.ModuleType("cfg"); M.g = lambda a: a * 2 | M.g(1.5) | M.g = lambda a: a * 3
module_swapped: M = types.ModuleType("a"); M.w = 2.0; N = types.ModuleType("b"); N.w = 7.0 | M.w | M = N
globals_item!: W = 2.0 | globals().get("W", 2.5) | W = 3.0
environ: os.environ["TRAP"] = "2.0" | float(os.environ["TRAP"]) | os.environ["TRAP"] = "3.0"
environ_get: os.environ["TRAP"] = "2.0" | float(os.environ.get("TRAP", 1)) | os.environ["TRAP"] = "3.0"
getenv: os.environ["TRAP"] = "2.0" | float(os.getenv("TRAP", "1")) | os.environ["TRAP"] = "3.0"
lru_cache: W = 2.0\n@functools.lru_cache\ndef g(a): return a * W | g(1.5) | W = 3.0 | g.cache_clear()
cache_made: @functools.cache\ndef g(a): return a * 2.0 | g(1.5) | g.cache_clear()
numpy_patched: D = {"f": np.sin} | D["f"](0.5) | D["f"] = np.cos
errstate: W = 2.0 | np.divide(W, 1.0) | W = 3.0
logger: import logging\nLOG, W = logging.getLogger("trap"), 2.0\nLOG.setLevel(30) | W * (2 if LOG.isEnabledFor(10) else 1) + 0.0 * len(str(LOG.info("x"))) | LOG.setLevel(10); LOG.addHandler(logging.NullHandler()); LOG.propagate = False | LOG.setLevel(40)
dispatch_method: W = 2.0\nclass D:\n    @functools.singledispatchmethod\n    def g(self, v):\n        return v * W\nD0 = D() | D0.g(1.5) | W = 3.0 | D.g.register(float, lambda self, v: v * 5.0)
record_equal: @dataclasses.dataclass\nclass D:\n    a: float = 2.0\n    b: int = 1\nP, Q = D(), D() | (2.0 if P == Q else 3.0) | P.a = 5.0 | Q.a = 5.0 | Q = D(5.0, 2)
record_order: @dataclasses.dataclass(order=True)\nclass D:\n    a: float = 2.0\nP, Q = D(), D(3.0) | (2.0 if P < Q else 3.0) | P.a = 5.0 | Q = D(9.0)
record_asdict: @dataclasses.dataclass\nclass D:\n    a: float = 2.0\n    b: int = 1\nP = D() | sum(dataclasses.asdict(P).values()) + dataclasses.astuple(P)[0] | P.a = 5.0 | P = D(7.0, 3)
record_replace: @dataclasses.dataclass\nclass D:\n    a: float = 2.0\n    b: int = 1\nP = D() | dataclasses.replace(P, b=3).a * len(dataclasses.fields(P)) | P.a = 5.0 | P = D(7.0, 3)
record_nested!: class K: w = 1.0\n@dataclasses.dataclass\nclass D:\n    a: float\n    c: object\nP = D(2.0, [K()])\nP.c[0].w = 2.0 | dataclasses.asdict(P)["c"][0].w + dataclasses.astuple(P)[1][0].w | P.c[0].w = 3.0
record_of_equals!: class K:\n    w = 1\n    def __eq__(self, o): return self.w == o.w\n@dataclasses.dataclass\nclass D: c: object\nP, Q = D(K()), D(K()) | (2.0 if P == Q else 3.0) | P.c.w = 2
record_of_others: class K: pass\n@dataclasses.dataclass\nclass D: c: object\nP, Q = D(K()), D(K()) | (2.0 if P == Q else 3.0) | P.c = Q.c | Q.c = 1
record_factory: W = 2.0\n@dataclasses.dataclass\nclass D:\n    b: int\n    a: float = dataclasses.field(default_factory=lambda: W) | D(3).a * D(b=2).b | W = 3.0
record_made: W = 2.0\n@dataclasses.dataclass(slots=True)\nclass D:\n    a: float\n    c: dataclasses.InitVar[float] = 1.0\n    b: float = dataclasses.field(init=False, default=4.0)\n    def __post_init__(self, c):\n        self.b = self.a * W + c | D(1.5).b + D(1.5, c=2.0).b | W = 3.0
asserted: W = 2.0\ndef C():\n    try:\n        assert W < 2.5, "too big"\n        return W\n    except AssertionError as e:\n        return 9.0 + len(e.args) | C() | W = 3.0 | W = 1.0
own_keys: W, T = 2.0, [1]\ndef C():\n    try:\n        return {1: W}[len(T)] + [W][len(T) - 1]\n    except (KeyError, IndexError):\n        return 5.0 | C() | T.append(1) | T.clear() | W = 3.0; T.append(1)
parsed: S = "q"\ndef C():\n    try:\n        return float(S)\n    except ValueError:\n        return 7.0 | C() | S = "3.5" | S = "x"
text_of_array: W = 2.0 | W * len(str(np.arange(3) / 7)) | np.set_printoptions(precision=3) | np.set_printoptions(precision=8)
text_of_arrays: W = 2.0 | W * len(", ".join(map(str, [np.arange(2) / 7, 1.5]))) | np.set_printoptions(precision=3) | np.set_printoptions(precision=8)
formatted_array: W = 2.0 | W * len(f"{np.arange(3) / 7} {[np.float64(0.1)]!r}") | np.set_printoptions(precision=3, legacy="1.25") | np.set_printoptions(precision=8, legacy=False)
percent_of_array: W = 2.0 | W * len("%s" % (np.arange(3) / 7)) | np.set_printoptions(precision=3) | np.set_printoptions(precision=8)
# what starts to matter later
later_branch: W = 2.0; STEP = 0 | (W if STEP > 2 else 1.5) | W = 3.0 | STEP = 5 | W = 7.0
later_flag: C = types.SimpleNamespace(on=False, w=2.0) | (C.w if C.on else 1.5) | C.w = 3.0 | C.on = True | C.w = 9.0
later_key: D = {} | sum([D[k] for k in ("a", "b") if k in D]) + 1.0 | D["a"] = 2.0 | D["b"] = 3.0 | D["a"] = 1.0
later_try: D = {}\ndef use():\n    try:\n        return D["a"]\n    except KeyError:\n        return 2.0 | use() | D["a"] = 3.0
try_unneeded: D = {"a": 2.0}\ndef use():\n    try:\n        return D["a"]\n    except KeyError:\n        return 1.5 | use() | D["a"] = 3.0 | del D["a"]
default_or: W = 0.0 | (W or 1.5) | W = 3.0 | W = 0.0
zero_weight: W = 0.0 | (W * 2 if W > 0 else 1.5) | W = 3.0
while_global: N = 3\ndef use():\n    n, s = N, 1.0\n    while n > 0:\n        n, s = n - 1, s * 1.5\n    return s | use() | N = 4 | N = 1
match_value: C = {"kind": "a", "w": 2.0}\ndef use():\n    match C:\n        case {"kind": "a", "w": w}: return w\n        case {"kind": "b"}: return 1.5\n        case _: return 2.5 | use() | C["w"] = 3.0 | C["kind"] = "b" | C["kind"] = "c"
match_class!: @dataclasses.dataclass\nclass K:\n    w: float\nC = K(2.0)\ndef use():\n    match C:\n        case K(w=w): return w\n        case _: return 1.5 | use() | C.w = 3.0 | C = 4
match_nested!: class K: w = 2.0\nC = K(); C.w = 2.0\ndef use():\n    match (C, 1):\n        case (K(w=w), 1): return w | use() | C.w = 3.0
match_held!: class K:\n    def __init__(self, w): self.w = w\nC = K(2.0)\ndef use():\n    match K([C]):\n        case K(w=[K(w=w)]): return w | use() | C.w = 3.0
match_class_attribute: class K: w = 2.0\ndef use():\n    match [K()]:\n        case [K(w=w)]: return w | use() | K.w = 3.0
match_property: W = 2.0\nclass K:\n    @property\n    def w(self): return W\ndef use():\n    match K():\n        case K(w=w): return w | use() | W = 3.0
match_sequence: L = [2.0, 3.0]\ndef use():\n    match L:\n        case [a, b]: return a - 2 * b\n        case [a, *rest]: return a + len(rest)\n        case _: return 2.5 | use() | L[0] = 3.0 | L.append(5.0) | L.clear()
walrus: D = {"a": 2.0} | (w if (w := D.get("a")) else 1.5) | D["a"] = 3.0 | del D["a"]
swap: A = 2.0; B = 3.0 | A - 2 * B | A, B = B, A | A, B = B, A
two_at_once: A = 2; B = 3; C = True | (A - 2 * B if C else A) | A, B = 5, 8 | C = False | A = 1
alias: L = [2.0]; M = L | L[0] + M[0] | M[0] = 3.0 | M = [5.0] | L[0] = 7.0
same_object: L = [2.0]; C = {"l": L} | L[0] * C["l"][0] | L[0] = 3.0 | C["l"] = [5.0] | L[0] = 9.0
literal_equal: W = 2.0 | W * 2.0 | W = 3.0
int_literal: N = 2 | N * 2 | N = 3 | N = 5
# what keys and members are, and their order
set_order: S = {8, 16} | next(iter(S)) * 1.0 | S.clear(); S.update((16, 8)) | S.clear(); S.update((8, 16))
set_of_objects: class K: w = 2.0\nS = {K()} | sum([o.w for o in S]) | next(iter(S)).w = 3.0 | S.add(K())
frozenset_of_objects: class K: w = 2.0\nS = frozenset({K()}) | sum([o.w for o in S]) | next(iter(S)).w = 3.0 | S = frozenset({K()})
keys_of_objects: class K: w = 2.0\nC = K(); D = {(C, 1): 2.0, (C, 2): 1.0} | sum([c.w * n for c, n in D]) | C.w = 3.0 | del D[C, 2]
keys_of_dates: from datetime import date\nD = {date(2026, 1, 2): 2.0} | sum(D.values()) * len([k.year for k in D]) | D[date(2026, 1, 2)] = 3.0 | D[date(2026, 1, 3)] = 3.0
keys_of_places: P = collections.namedtuple("P", "w v"); D = {P(2.0, 1.0): 3.0} | sum([k.w * w for k, w in D.items()]) | D[P(2.0, 1.0)] = 5.0 | D[P(1.0, 1.0)] = 2.0
keys_of_records!: @dataclasses.dataclass(frozen=True)\nclass K: w: list = dataclasses.field(compare=False)\nD = {K([2.0]): 1.0} | sum([k.w[0] for k in D]) | next(iter(D)).w[0] = 3.0
""")


# where it is read: ``{read}`` stands in the function; ``<setup>`` is what the capture needs
PLACES = {
    "function": """
        <setup>
        def f(x):
            return np.sum(x * x) * 0.5 + np.sum(np.sin(x) * ({read}))
        """,
    "closure": """
        def make():
            <setup>
            def f(x):
                return np.sum(x * x) * 0.5 + np.sum(np.sin(x) * ({read}))
            def change(i):
                <nonlocal>
                <changes>
            return f, change
        f, change = make()
        """,
    "helper": """
        <setup>
        def scaled(x):
            y = np.sin(x)
            return y * ({read})
        def f(x):
            return np.sum(x * x) * 0.5 + np.sum(scaled(x))
        """,
    "method": """
        <setup>
        class Model:
            def __init__(self):
                self.half = 0.5
            def loss(self, x):
                return np.sum(x * x) * self.half + np.sum(self.term(x))
            def term(self, x):
                return np.sin(x) * ({read})
        f = Model().loss
        """,
    "nested": """
        <setup>
        def f(x):
            def inner(y):
                return np.sum(np.sin(y) * ({read}))
            return np.sum(x * x) * 0.5 + inner(x)
        """,
    "lambda": """
        <setup>
        f = lambda x: np.sum(x * x) * 0.5 + np.sum(np.sin(x) * ({read}))
        """,
    "comprehension": """
        <setup>
        def f(x):
            return np.sum(x * x) * 0.5 + sum([np.sum(np.sin(x) * ({read})) * c for c in (0.5, 1.5)])
        """,
    "generator": """
        <setup>
        def f(x):
            return np.sum(x * x) * 0.5 + sum(np.sum(np.sin(x) * ({read})) * c for c in (0.5, 1.5))
        """,
    "grad": """
        <setup>
        def inner(x):
            return np.sum(np.sin(x) * ({read}))
        def f(x):
            return np.sum(x * grad(inner)(x))
        """,
    "value_and_grad": """
        <setup>
        def f(x):
            value, slope = value_and_grad(lambda y: np.sum(np.sin(y) * ({read})))(x)
            return value + np.sum(slope * slope)
        """,
    "jacobian": """
        <setup>
        def inner(x):
            return np.sin(x) * np.sum(np.ones(2) * ({read}))
        def f(x):
            return np.sum(jacobian(inner)(x) @ x)
        """,
    "hvp": """
        <setup>
        def inner(x):
            return np.sum(np.sin(x) * ({read}))
        def f(x):
            return np.sum(hvp(inner)(x, np.ones(2)))
        """,
    "vjp": """
        <setup>
        def f(x):
            out, pull = vjp(lambda y: np.sum(np.sin(y) * ({read})), x)
            return out + np.sum(pull(2.0)[0])
        """,
    "module": """
        from {name}_library import scaled
        import {name}_library as library
        def f(x):
            return np.sum(x * x) * 0.5 + np.sum(scaled(x)) + np.sum(library.scaled(x))
        """,
}
LIBRARY = """
    <setup>
    def scaled(x):
        y = np.sin(x)
        return y * ({read})
"""


class Trap(NamedTuple):
    """A function, and how to change what it reads: ``change(i)``, for ``i`` below ``changes``."""

    fun: Callable[..., Any]
    change: Callable[[int], None]
    changes: int


def _filled(template: str, capture: Capture, name: str) -> str:
    """A place's text with a capture in it."""
    tree = ast.parse("\n".join([capture.setup, *capture.changes]))
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del))}
    names |= {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    first = ast.parse(capture.setup)
    inner = [n for top in tree.body if isinstance(top, (ast.FunctionDef, ast.ClassDef)) for n in ast.walk(top)]
    hidden = {n.id for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    hidden |= {
        n.id for n in ast.walk(tree) if isinstance(n, ast.comprehension) for n in ast.walk(n.target) if isinstance(n, ast.Name)
    }
    own = {n.id for top in first.body if not isinstance(top, (ast.FunctionDef, ast.ClassDef)) for n in ast.walk(top)
           if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}  # fmt: skip
    names = (names - hidden) | own
    changes = "\n".join(f"if i == {i}:\n{textwrap.indent(change, '    ')}" for i, change in enumerate(capture.changes))
    lines = []
    for line in textwrap.dedent(template).strip().splitlines():
        word = line.strip()
        parts = {
            "<setup>": capture.setup,
            "<nonlocal>": f"nonlocal {', '.join(sorted(names))}" if names else "",
            "<changes>": changes,
        }
        if word in parts:
            lines.append(textwrap.indent(parts[word], line[: len(line) - len(word)]))
        else:
            lines.append(line.replace("{read}", capture.read).replace("{name}", name))
    return PRELUDE + "\n".join(lines) + "\n"


def _module(name: str, text: str, folder: Path) -> Any:
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def build(capture: Capture, place: str, folder: Path) -> Trap:
    """The trap, in modules of its own."""
    name = f"trap_{capture.name}_{place}"
    home = None
    if place == "module":
        home = _module(f"{name}_library", _filled(LIBRARY, capture, name), folder)
    module = _module(name, _filled(PLACES[place], capture, name), folder)
    if place == "closure":
        return Trap(module.f, module.change, len(capture.changes))
    space = vars(home or module)
    return Trap(module.f, lambda i: exec(capture.changes[i], space), len(capture.changes))
