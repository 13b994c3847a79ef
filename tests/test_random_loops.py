"""Random loops over rows, and loops in loops: what passes take out of them, save, put together and write in place is what the
loop computes."""

import random
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest
from agreement import agrees_with_dynamic, few, program_of
from hypothesis import assume, example, given
from hypothesis import strategies as st

from symgrad import hvp, value_and_grad, vjp
from symgrad.optimize import distribute
from symgrad.tracing import trace

# statements on the states {a} (a matrix), {v} (one of its rows), {u} (one of its columns), {s} (a number), and on what is given
MATRICES = """
    np.tanh({a}) np.exp(-np.abs({a})) 1/(1+np.exp(-{a})) np.sqrt(1+{a}**2) np.maximum({a},0.1) np.where({a}>0,0.5,{b})
    {a}*{b} {a}-{b} {a}+{v} {a}*{v} {a}-{u}[:,None] {a}*{s} {a}@W {a}[::-1] np.roll({a},1,axis={i}) np.outer({u},{v})
    {a}-np.{r}({b},axis={i},keepdims=True) {a}/(2+np.{r}(np.abs({b}),axis={i},keepdims=True))
    {a}/(1+np.sum({b}>0.2,axis={i},keepdims=True)) {a}/np.count_nonzero({b}<9,axis={i},keepdims=True)
    np.exp({a}-np.max({a},axis={i},keepdims=True)) {a}/(0.1+np.linalg.norm({b},axis={i},keepdims=True))
    np.concatenate([{a}[:2],{b}[2:]]) np.reshape({a},{b}.shape,order="F") np.reshape({a}.T,{b}.shape) {a}[[1,0,2,4,3]]
    {a}[:,[1,0,3,2]] {a}[[[1,0,2,4,3]]][0] np.outer({a}[:,:1],{b}[:1]) np.tensordot({a},W,1) np.inner({a},W) {a}@W.T
    np.einsum("ij,kj->ik",{a},W) np.swapaxes({a},0,1).T {a}.T.reshape({b}.shape) np.expand_dims({a},1)[:,0]
    np.squeeze({a}[None]) np.stack([{a},{b}])[1] np.take({a},[1,0,2,4,3],axis=0) np.broadcast_to({v},{a}.shape)
    np.clip({a},-0.5,0.5) np.tril({a}) np.flip({a},{i}) np.diff(np.vstack([{a},{v}]),axis=0) np.moveaxis({a},0,1).T
    np.sum({a}[:,:,None]*W,axis=1) np.cumsum({a},axis={i}) np.sort({a},axis={i}) np.einsum("ij,j->ij",{a},{v})
    {a}*(np.sum({b},axis=1)[:,None]>0) {a}/np.std(np.concatenate([{b},-1-{b}]),axis=0)
""".split()
ROWS = """
    np.tanh({v})*{w} {v}@W {u}@{a} np.{r}({a},axis=0) {a}[2] {v}+{s} np.mean({a}-{u}[:,None],axis=0) {v}/(1+np.sum({b}>0))
    {a}[[0,1,2,3],[3,2,1,0]] np.diagonal({a}) np.tensordot({u},{a},1) np.einsum("i,ij->j",{u},{a}) {a}.T@{u} np.dot({u},{a})
""".split()
COLUMNS = """
    np.sin({u}) {a}@{v} np.{r}({a},axis=1) {a}[:,1] np.log(np.sum(np.exp({a}),axis=1)) {u}-np.sum({a}*{b},axis=-1)
    np.vecdot({a},{b}) {a}[[0,1,2,3,4],[0,1,2,3,0]] np.einsum("ij,ij->i",{a},{b}) np.inner({a},{v}) np.sum({a}*{v},1)
""".split()
NUMBERS = "{v}@{w} np.sum({a}*{b}) np.{r}({a}) {u}@{u} {s}*np.sum({v}) np.sum({a}>0.1)*{s}".split()
FORMS = {"a": MATRICES, "v": ROWS, "u": COLUMNS, "s": NUMBERS}
LOOPS = ["for t in range(12):", "for t in range(11, -1, -1):", "for t in range(2, 12):", "for t, x in enumerate(X):"]
STARTS = ["a, v, u, s = C, c, d, 0.1", "a, v, u, s = np.zeros((5, 4)), np.zeros(4), np.zeros(5), 0.0"]
SPECS = {"C": (5, 4), "X": (12, 5, 4), "c": (4,), "xs": (12, 4), "d": (5,), "W": (4, 4)}


def lines(rng: random.Random) -> Iterator[str]:
    known = {"a": ["a", "C", "X[t]"], "v": ["v", "c", "xs[t]"], "u": ["u", "d"], "s": ["s", "xs[t, 0]"]}
    yield f"def program({', '.join(SPECS)}):"
    yield f"    {rng.choice(STARTS)}"
    yield f"    {rng.choice(LOOPS)}"
    for number in range(rng.randrange(2, 9)):
        kind = rng.choice("aaavus")
        drawn = {name: rng.choice(known[name]) for name in known}
        drawn |= {"b": rng.choice(known["a"]), "w": rng.choice(known["v"])}
        reduce = rng.choice(["sum", "mean", "max", "min", "var"])
        text = rng.choice(FORMS[kind]).format(**drawn, i=rng.randrange(2), r=reduce)
        if rng.random() < 0.6:
            yield "        " + rng.choice(
                ["{0} = 0.5 * {0} + np.tanh({1})", "{0} = np.tanh({1})", "{0} = {0} + {1} * 0.1"]
            ).format(kind, text)
        else:
            known[kind].append(f"x{number}")
            yield f"        x{number} = {text}"
    yield "    return np.sum(a * np.cos(a)) + np.sum(v**2) + np.sum(u**3) + s"


@pytest.fixture
def small_arrays_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done for large arrays is done for small ones."""
    monkeypatch.setattr(distribute, "SOME", 1)
    monkeypatch.setattr(distribute, "MUCH", 1)


@pytest.mark.usefixtures("small_arrays_too")
@given(st.integers(0, 2**40))
def test_loops_over_rows(seed: int) -> None:
    agrees_with_dynamic(program_of(lines(random.Random(seed)), SPECS, seed), scaled=True)


# -- loops in loops over the places of a table ---------------------------------------------------------------------

PLACES = [
    "x[i - 1]",
    "y[j - 1]",
    "R[i - 1, j]",
    "R[i, j - 1]",
    "R[i - 1, j - 1]",
    "R[i - 1, 4]",
    "R[i][j - 1]",
    "S[i - 1, j]",
    "S[i, j - 1]",
    "s",
    "acc",
    "q[2]",
]
CELLS = """
    {0}*{1} {0}+0.5*{1} np.sin({0}-{1}) np.tanh({0})*{1} np.minimum({0},{1}) np.exp(-{0}**2) abs({0})*0.5 np.sum(q)*{0}
    -0.1*np.log(np.sum(np.exp(-np.array([{0},{1},{2}])/0.1))) np.array([{0},{1}]).min() np.max([{0},{1},{2}]) R[i,:j]@y[:j]
    np.stack([{0},{1}]).sum()*{2} np.dot(R[i-1,1:4],y[:3])+{0} min({0},{1}) max({0},{1},{2})*0.9 max(R[i,j],0.1)
    max(0,{0})*{1} min(1,{0},{1})+np.cos({2}) np.where({0}>{1},np.sin({0}),{1}) S[i,j]-0.5*{0}
""".split()
WRITTEN = [
    "R[i, j] = {}", "R[i, j] += {}", "acc = acc + {}", "s = 0.5 * s + {}", "z{number} = {}", "q = np.tanh(q + {})", "q[1] = {}",
    "acc = {}", "R[i, j - 1] = {}", "R[i - 1, j] *= 0.9", "w = R[i - 1]", "R[i, j] = w[j] + {}",
    "S[i, j] = {}", "S[i, j] = {}",
]  # fmt: skip
BEFORE = ["acc = 0.0", "R[i, 0] = R[i - 1, 0] + x[i - 1]", "w = R[i]", "w = R[i - 1].copy()", "q = q * 0.5", "p = x[i - 1]"]
AFTER = [
    "R[i] = R[i] * 0.9",
    "s = s + acc * R[i, 4]",
    "R[i, 1:] += 0.1 * y",
    "q = q + R[i, :3]",
    "s = s + q @ q",
    "R = R * 1.1",
]
ROUNDS = ["for i in range(1, 7):", "for i in range(6, 0, -1):", "for i, p in enumerate(x, 1):"]
ENDS = [
    "np.sum(R * np.cos(R)) + s + acc + np.sum(q) + np.sum(S)",
    "max(R[6, 4], S[6, 4], s) + acc",
    "min(R[6, 4], s + acc) * S[6, 3] + max(0, acc)",
]
COLUMNS_OF = [
    "for j in range(1, 5):",
    "for j in range(4, 0, -1):",
    "for j in range(1, min(i, 4) + 1):",
    "for j, p in enumerate(y, 1):",
]


def table(rng: random.Random) -> Iterator[str]:
    yield "def program(x, y):"
    yield f"    R, s, acc, q = {rng.choice(['np.zeros((7, 5))', 'np.full((7, 5), 0.3)'])}, 0.1, 0.0, np.ones(3)"
    yield "    w = np.ones(5)"
    yield f"    S = {rng.choice(['np.zeros((7, 5))', 'np.full((7, 5), -0.2)'])}"
    yield f"    {rng.choice(ROUNDS)}"
    yield from (f"        {text}" for text in rng.sample(BEFORE, rng.randrange(3)))
    for _ in range(rng.choice([1, 1, 1, 2])):
        yield f"        {rng.choice(COLUMNS_OF)}"
        places = list(PLACES)
        for number in range(rng.randrange(1, 5)):
            cell = rng.choice(CELLS).format(*rng.choices(places, k=3))
            line = rng.choice(WRITTEN).format(cell, number=number)
            places += [f"z{number}"] if line.startswith("z") else []
            yield f"            {line}"
    yield from (f"        {text}" for text in rng.sample(AFTER, rng.randrange(3)))
    yield f"    return {rng.choice(ENDS)}"


@example(49649)  # arrays that an inner loop saves, trimmed once more
@few
@given(st.integers(0, 2**40))
def test_tables(seed: int) -> None:
    """Also where the second derivative is taken, and where another point is asked for."""
    program = program_of(table(random.Random(seed)), {"x": (6,), "y": (4,)}, seed)
    args = program.arguments()
    derivative, product = value_and_grad(program.fun, (0, 1)), hvp(program.fun)
    for turn in range(4):
        x, y = args[0] + 0.01 * turn, args[1]
        with np.errstate(all="ignore"):
            value = program(x, y)
            assume(np.isfinite(value) and abs(value) < 1e4)
            _, expected = value_and_grad(program.fun, (0, 1), mode="dynamic")(x, y)
            second = hvp(program.fun, mode="dynamic")(x, np.ones(6), y)
            assume(all(np.max(np.abs(part)) < 1e4 for part in (*expected, second)))  # no chaotic one
            found, slopes = derivative(x, y)
            assert product(x, np.ones(6), y) == pytest.approx(second, rel=1e-7, abs=1e-7)
        assert found == pytest.approx(value, rel=1e-10, abs=1e-12)
        for mine, theirs in zip(slopes, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8)


# -- loops that read and write windows -----------------------------------------------------------------------------

VALUES = """
    x[i]*k 1.0*k np.sin(x[i]) p[{w}]*k q[{w}]+x[{v}] np.tanh(p[{w}])*x[i] x[{v}]*x[{w}] p[{w}][::-1]*k np.cumsum(q[{w}]) s*k
    np.sum(p[{w}])*k x[i]**2 np.flip(x[{v}])-x[i] np.where(q[{w}]>0.1,q[{w}],k) 1.0*z 0.5*z+q[{w}]
""".split()
INTO = """
    p[{w}]+={e} p[{w}]-={e} p[{w}]={e} q[{w}]+={e} q[{w}]={e} p[{w}]*=0.9*np.cos(x[i]) q[{w}]=p[{w}]+{e} p[{v}]+=q[{w}]
    z={e} z=p[{w}] z+={e} s=s+np.sum({e}) s=0.5*s+q[{w}]@k p[{w}]=p[{w}]+{e} q[{w}]=q[{w}]*x[i] r[0,{w}]+={e}
    r[1,{w}]={e} r[:,{w}]*=0.9 r[{w},0]+={e} q[i]=np.sum(p[{w}]) q[i]+=x[i]
""".split()
PATCHED = """
    P[{a},{b}]+=X[i,j]*K P[{a},{b}]=np.sin(X[i,j]*K) P[{a},{b}]*=0.9 P[{a},{b}]-=Q[{a},{b}] Q[{a},{b}]=P[{a},{b}]*X[i,j]
    s=s+np.sum(P[{a},{b}]*K) Q[i,j]=np.sum(Q[{a},{b}])+X[i,j] P[i,{b}]+=X[i,j]*k[:2] P[{a},j]=X[{a},j] Q[{b},{a}]+=K
    P[{a},{b}]=Q[{a},{b}]@K
""".split()
TURNS = ["range(34)", "range(33, -1, -1)", "range(1, 34)", "range(0, 34, 3)", "range(12)", "range(33, 0, -2)"]
MOVES = ["{i}:{i}+3", "{i}+1:{i}+4", "2*{i}:2*{i}+3", "3*{i}:3*{i}+3", "3*{i}:3*({i}+1)", "2+4*{i}:5+4*{i}"]
ARRAYS = ["np.zeros(160), np.sin(y)", "y * 1.0, np.ones(160)", "np.zeros(160), np.ones(160)"]
PAIRS = ["{i}:{i}+2", "{i}+1:{i}+3", "2*{i}:2*{i}+2", "3*{i}+1:3*{i}+3"]


def windowed(rng: random.Random) -> Iterator[str]:
    yield "def program(x, y, k):"
    yield f"    p, q = {rng.choice(ARRAYS)}"
    yield "    s, z = 0.1, k * 0.5"
    flat = rng.random() < 0.5  # so that there is nothing but numbers and tables of them
    into = [form for form in INTO if not flat or "r[" not in form]
    if not flat:
        yield "    r = np.ones((160, 160))"
    yield f"    for i in {rng.choice(TURNS)}:"
    for _ in range(rng.randrange(1, 5)):
        w, v = rng.choices(MOVES, k=2) if rng.random() < 0.5 else [rng.choice(MOVES)] * 2
        drawn = {"w": w.format(i="i"), "v": v.format(i="i")}
        test = "if x[i] > 0: " if rng.random() < 0.15 else ""
        yield f"        {test}" + rng.choice(into).format(e=rng.choice(VALUES).format(**drawn), **drawn)
    yield "    return np.sum(p * np.cos(p)) + np.sum(q**2) + s + np.sum(z)" + ("" if flat else " + np.sum(np.sin(r))")


def patched(rng: random.Random) -> Iterator[str]:
    yield "def program(X, Y, K, k):"
    yield f"    P, Q, s = {rng.choice(['np.zeros((30, 30)), np.sin(Y), 0.1', 'Y * 1.0, np.ones((30, 30)), 0.1'])}"
    yield f"    for i in range({rng.choice([5, 9])}):"
    yield f"        for j in {rng.choice(['range(7)', 'range(8, -1, -1)', 'range(1, 9, 3)'])}:"
    for _ in range(rng.randrange(1, 4)):
        a, b = rng.choices(PAIRS, k=2) if rng.random() < 0.5 else [rng.choice(PAIRS)] * 2
        yield "            " + rng.choice(PATCHED).format(a=a.format(i="i"), b=b.format(i="j"))
    yield "    return np.sum(P * np.cos(P)) + np.sum(np.tanh(Q)) + s"


@few
@given(st.integers(0, 2**40))
def test_windows(seed: int) -> None:
    specs = {"x": (160,), "y": (160,), "k": (3,)}
    agrees_with_dynamic(program_of(windowed(random.Random(seed)), specs, seed), scaled=True, calls=4)


@few
@given(st.integers(0, 2**40))
def test_patches(seed: int) -> None:
    specs = {"X": (30, 30), "Y": (30, 30), "K": (2, 2), "k": (3,)}
    agrees_with_dynamic(program_of(patched(random.Random(seed)), specs, seed), scaled=True, calls=4)


# -- decisions in loops, in which rows of tables are read and written ----------------------------------------------

TESTS = """
    i%3==0 i%2 i%5==1 i>9 x[i]>0 x[i]<x[i-1] T[i-1,0]>0.2 U[i,1]<0.4 s>0.3 v[0]>w[1] np.sum(T[i-1])>0.5 not_i%3
    i%4==0_and_x[i]>0
""".split()
READ = """
    T[i-1] T[i] T[i-2] U[i-1] U[i] U[-i] T[24-i] T[i,::-1] v w X[i] X[i-1]*y T[i-1]*x[i] T[i//2] U[i%5] T[i-1,1]*y T[i,2]+v s*y
""".split()
MADE = """
    {0}*{1} 0.5*{0}+0.3*{1} np.sin({0}-{1}) np.tanh({0})*{1} np.exp(-{0}**2)*{1} np.where({0}>0.1,{0},{1}) 1/(1+{0}**2)
    np.log(1+{0}**2+{1}**2) np.maximum({0},{1}) np.cos({0})+x[i] np.sqrt(0.1+{0}**2) np.abs({0})**1.5*{1}
""".split()
PUT = [
    "T[i] = {}", "T[i] = {}", "T[i] += 0.1 * ({})", "U[i] = {}", "U[i] = {}", "U[i] *= 0.5 * ({})", "T[i - 1] = {}", "v = {}",
    "v = 0.5 * v + {}", "s = 0.7 * s + np.sum({})", "T[i, 1:3] = ({})[1:3]", "T[i, 0] = ({})[0]", "U[i - 1, 2] += ({})[1]",
    "w = T[i - 1]", "w = U[i]", "w = {}", "v = T[i]", "z = {}", "T[i] = z", "T[:2] = {}", "U = U * 0.9",
]  # fmt: skip
OVER = ["for i in range(2, 24):", "for i in range(23, 1, -1):", "for i in range(2, 24, 2):", "for i, p in enumerate(x[2:], 2):"]


def decided(rng: random.Random) -> Iterator[str]:
    def block(depth: int, margin: str) -> Iterator[str]:
        for _ in range(rng.choice([1, 1, 2, 3] if depth else [1, 2, 3, 4])):
            if depth < 3 and rng.random() < 0.45:
                yield f"{margin}if {rng.choice(TESTS).replace('_', ' ')}:"
                yield from block(depth + 1, margin + "    ")
                if depth < 2 and rng.random() < 0.3:
                    yield f"{margin}elif {rng.choice(TESTS).replace('_', ' ')}:"
                    yield from block(depth + 1, margin + "    ")
                if rng.random() < 0.5:
                    yield f"{margin}else:"
                    yield from block(depth + 1, margin + "    ")
            else:
                yield margin + rng.choice(PUT).format(rng.choice(MADE).format(*rng.choices(READ, k=2)))

    yield "def program(x, y, X):"
    yield f"    T = {rng.choice(['np.zeros((25, 4))', 'np.ones((25, 4)) * y'])}"
    yield f"    U = {rng.choice(['np.sin(X)', 'np.zeros((25, 4))'])}"
    yield "    v, w, z, s = y * 1.0, y, y * 0.5, 0.1"
    yield f"    {rng.choice(OVER)}"
    yield from block(0, "        ")
    yield "    return np.sum(T * np.cos(T)) + np.sum(np.tanh(U)) + s + np.sum(v * w)"


@few
@given(st.integers(0, 2**40))
def test_decisions_over_rows(seed: int) -> None:
    specs = {"x": (25,), "y": (4,), "X": (25, 4)}
    agrees_with_dynamic(program_of(decided(random.Random(seed)), specs, seed), scaled=True, calls=5)


@few
@given(st.integers(0, 2**40))
def test_pulled_back_twice(seed: int) -> None:
    """Both loops backwards have one body, of which nothing is left from the first when the second is written."""
    program = program_of(decided(random.Random(seed)), {"x": (25,), "y": (4,), "X": (25, 4)}, seed)
    args = program.arguments()

    def twice(c):
        _, pull = vjp(program.fun, *args)
        return sum([np.sum(a * np.sin(b)) for a, b in zip(pull(c), pull(np.cos(c)), strict=True)])

    with np.errstate(all="ignore"):
        value, slope = value_and_grad(twice, mode="dynamic")(0.7)
        assume(abs(value) < 1e6 and abs(slope) < 1e6)
        derivative = value_and_grad(twice)
        for _ in range(5):
            found, mine = derivative(0.7)
    np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mine, slope, rtol=1e-8, atol=1e-8)


# slices of vectors {v} and of rows and columns of the table A, whose ends hang on the index {i}, or on numbers beside it
SLICES = ":{i} {i}: {i}+1: :{i}+1 {i}-1: :n-{i} -{i}: :{i}-1 {i}:n 1:{i} {i}:-1 {i}-3:{i}+2 :{i}//2 {i}:2*{i}".split()
OF_SLICES = """
    {0} {0}*{1} {0}-{1} np.sin({0}) np.tanh({0})*x[i] {0}/(1.5+np.square({1})) np.sqrt(1.0+{0}**2) np.maximum({0},{1}) s*.1+{0}
    np.where({0}>.3,{0},{1}*2) 1/(x[i]+{0}+3)
""".split()
SUMS = """
    np.sum({0}) np.sum({0}) np.dot({1},{0}) ({0})@{1} np.sum(({0})**2) np.linalg.norm(1.0+{0}) len({1})*.1 {1}.size*x[i]
    np.max(np.append({0},.2)) np.prod(1+.1*({0})) np.dot(np.flip({1}),{0}) np.any({1}>.9)*.5
""".split()
INNER = """range({0}) range({0},n) range({0}+1,n) range({0}-1,-1,-1) range(n-{0}) range(0,{0},2) range({0},0,-1) range(1,{0}+1)
    reversed(range({0})) range(3)""".split("\n")
NUMBERED = [
    "s = s + x[i] * y[j % n] * .1", "y[i] = y[i] - .1 * np.sin(y[j % n]) * x[j % n]", "y[j % n] = np.cos(y[j % n] + x[i])",
    "A[i, j % n] = A[i, j % n] * .9 + .1 * np.dot(A[i, :j], A[j % n, :j])", "A[j % n, i] -= .1 * y[j % n]",
    "k = j", "k = max(i, j) - 1", "s, k = s * .9, j + 1",
]  # fmt: skip


def spanned(rng: random.Random) -> Iterator[str]:
    def statement(i: str, margin: str, inner: bool) -> Iterator[str]:
        part = rng.choice(SLICES).format(i=i)
        rows = [f"A[i, {part}]", f"A[{part}, i]"]
        vectors = rng.choices([f"x[{part}]", f"y[{part}]", f"z[{part}]", *rows], k=2)
        made, into = rng.choice(OF_SLICES).format(*vectors), rng.choice([f"y[{part}]", f"z[{part}]", *rows])
        total = rng.choice(SUMS).format(made, vectors[1])
        kind = rng.randrange(9 if inner else 8)
        if kind < 2:
            yield f"{margin}s = s + .1 * {total}"
        elif kind == 2:
            yield f"{margin}y[{i} % n] = np.tanh({total} + x[i])"
        elif kind == 3:
            yield f"{margin}{into} = .5 * ({made})"
        elif kind == 4:
            yield f"{margin}{into} {rng.choice(['+=', '-=', '*='])} .3 * ({made})"
        elif kind == 5:
            yield f"{margin}{into} = {rng.choice(['.25', 'x[i]', 's * .01'])}"
        elif kind == 6:
            yield f"{margin}v = {into}"
            yield f"{margin}{rng.choice(['v *= .7', 'v += .1', 'y[0] = .3 * x[i]', 'v[...] = np.sin(v)'])}"
            yield f"{margin}s = s + .1 * np.sum(v)"
        elif kind == 7:
            yield f"{margin}if x[{i} % n] > .5:"
            yield f"{margin}    s = s + .2 * {total}"
        else:
            yield f"{margin}for j in {rng.choice(INNER[0].split() + INNER[1].split()).format(i)}:"
            yield f"{margin}    {rng.choice(NUMBERED)}"
            if rng.random() < 0.5:
                yield from statement("j", margin + "    ", False)
            if rng.random() < 0.3:
                yield f"{margin}s = s + .1 * x[k % n] * k"

    yield "def program(x, A):"
    yield "    n, k, s, y, z, A = len(x), 0, 0.0, x.copy(), np.sin(x), A.copy()"
    for _ in range(rng.choice([1, 1, 2])):
        yield f"    for i in {rng.choice(['range(n)', 'range(1, n)', 'range(n - 1, -1, -1)', 'range(2, n - 1)'])}:"
        for _ in range(rng.choice([1, 2, 3])):
            yield from statement("i", "        ", True)
    yield "    return s + np.sum(y * z) + np.sum(np.cos(A))"


# statements of loops in loops, over {0}, {1} and {2}, and what those run over, whose ends hang on the indices around
RANGES = """range({0}) range({0}+1) range({0},n) range({0}+1,n) range({0}-1,-1,-1) range(n-{0}) range(1,{0}) range({0},0,-1)
    range({0},min({0}+3,n)) range(2)""".split("\n")
OF_ONE = [
    "s = s + .1 * x[{0}] * A[{0}, 0]", "m = np.sin(x[{0}] + s * .1)", "x[{0}] = x[{0}] * .9 + .1 * m", "k = {0}", "m = 0.0",
    "m = m * .5 + A[{0}, {0}]", "d = d * (1 + .01 * A[{0}, {0}] ** 2)", "s = s + x[k] * .1",
    "s = s + np.sqrt(A[{0}, 0] ** 2 + 1)",
]  # fmt: skip
OF_TWO = [
    "m = A[{1}, {0}] / (2.0 + A[{0}, {0}] ** 2)", "x[{1}] -= .1 * m * x[{0}]", "m = m + x[{0}] * x[{1}] * .1",
    "A[{1}, {0}] = np.tanh(A[{1}, {0}] + m * .1)", "A[{0}, {1}] = A[{0}, {1}] * .9 + .1 * s", "m = .1 * x[{1}]",
    "if {0} == {1}: A[{0}, {1}] = np.sqrt(1.5 + m ** 2)", "if {1} > {0}: m = m + .1 * x[{1}]", "k = max({0}, {1})",
    "A[{0}, {1}] = np.sqrt(1.0 + m * m) if {0} == {1} else A[{0}, {1}] / (2.0 + A[{1}, {1}] ** 2)",
    "if x[{1}] > .4: s = s + .2 * x[{0}]", "x[{0}] = x[{0}] + .1 * A[{0}, {1}]",
]  # fmt: skip
OF_THREE = [
    "A[{1}, {2}] -= .1 * m * A[{0}, {2}]", "A[{1}, {2}] -= .1 * A[{1}, {0}] * A[{0}, {2}]", "x[{2}] = x[{2}] + .1 * m",
    "s = s + .01 * x[{0}] * x[{1}] * x[{2}]", "if A[{0}, {2}] > A[{2}, {1}]: m = m + .1 * A[{0}, {2}]", "m = m * .9",
    "A[{0}, {1}] = min(A[{0}, {1}], A[{0}, {2}] + A[{2}, {1}])", "m = m + .1 * A[{0}, {2}] * A[{1}, {2}]",
    "if {2} == {1}: s = s + m * .1",
]  # fmt: skip


def nested(rng: random.Random) -> Iterator[str]:
    def some(statements: list[str], *names: str) -> Iterator[str]:
        for statement in rng.choices(statements, k=rng.choice([0, 1, 1, 2])):
            yield "    " * (len(names) + 1) + statement.format(*names)

    over = [part for line in RANGES for part in line.split()]
    yield "def program(x, A):"
    yield "    n, k, s, m, d, x, A = len(x), 0, 0.0, 0.0, 1.0, x.copy(), A.copy()"
    for _ in range(rng.choice([1, 1, 2])):
        a, b, c = rng.choice(["ijk", "kij", "ijl", "pqr"])
        yield f"    for {a} in {rng.choice(['range(n)', 'range(1, n)', 'range(n - 1, -1, -1)', 'range(n - 1)'])}:"
        yield f"        s = s + .01 * x[{a}]"
        yield from some(OF_ONE, a)
        yield f"        for {b} in {rng.choice(over).format(a)}:"
        yield f"            m = m * .9 + .1 * x[{b}]"
        yield from some(OF_TWO, a, b)
        if rng.random() < 0.7:
            yield f"            for {c} in {rng.choice(over).format(rng.choice([a, b]))}:"
            yield f"                {rng.choice(OF_THREE).format(a, b, c)}"
            yield from some(OF_THREE, a, b, c)
            yield from some(OF_TWO, a, b)
        yield from some(OF_ONE, a)
    yield "    return s + m + d + np.sum(x * x) + np.sum(np.cos(A))"


@pytest.mark.long
@given(st.integers(0, 2**40))
@example(44947739)  # a loop that never runs, beyond the end of an array
def test_nests_whose_ends_hang_on_the_loops_around(seed: int) -> None:
    with patch.object(trace, "LONG", 20):
        agrees_with_dynamic(program_of(nested(random.Random(seed)), {"x": (7,), "A": (7, 7)}, seed), scaled=True, calls=8)


@few
@given(st.integers(0, 2**40))
def test_slices_and_loops_as_long_as_an_index_says(seed: int) -> None:
    with patch.object(trace, "LONG", 20):
        agrees_with_dynamic(program_of(spanned(random.Random(seed)), {"x": (9,), "A": (9, 9)}, seed), scaled=True, calls=5)


# -- long loops that turn: what they do hangs on where they are ------------------------------------------------------

ADVANCES = """
    x=x+0.02*(p[0]-x*v) x=0.98*x+0.01*np.sin(k*0.1) v=v-0.03*x*p[1] v=np.tanh(v+0.1*x) n+=1 n=n+2 h=0.9*h+0.1*p[2]*x
    h=h*0.95+rate*v x,v=v*0.9,x*0.9 y=x+1.0 v=np.minimum(v,0.7)*0.99 out[k]=x out[k]+=s*0.1 out[k-1]=v rows.append(x)
    box["x"]=box["x"]*0.9+x box["n"]+=1 x+=box["n"]*0.001 q=q*0.95+0.02*p q[0]+=0.01*x w=q x=x*0.99+table[k-1]*0.01
""".split()
LOOKS = """
    s+=x s=s+v*v s+=n*x s-=0.1*v*k s+=y*0.1 s+=box["x"] s+=q[1] s+=w[2]*0.5 s+=table[k]*x s+=h s=s*0.9+x*v s=np.sin(s+v)
""".split()
SINCE = """
    k<50 k>=40 k==89 k!=0 k==0 30<=k<70 k%45==44 k*0.1>4.5 k>40andk<80 notk<60 k//40==1 k<35ork>=80 k==33 k>=88 n<45 k!=60
""".split()


def turning(rng: random.Random) -> Iterator[str]:
    yield "def program(p, table):"
    yield "    x, v, s, n, h, y, rate, out, rows, q, w = p[0], 0.3, 0.0, 0, 1.0, 0.5, 0.1, np.zeros(90), [], p * 1.0, p"
    yield '    box = {"x": p[1], "n": 0}'
    yield rng.choice(["    for k in range(90):", "    for k in range(1, 90):", "    for k, z in enumerate(table):"])
    yield from (f"        {step}" for step in rng.sample(ADVANCES, rng.randrange(1, 3)))
    for _ in range(rng.randrange(1, 4)):
        turn = rng.choice(SINCE).replace("and", " and ").replace("or", " or ").replace("not", "not ")
        these, others = (rng.sample(rng.choice([ADVANCES, LOOKS]), rng.randrange(1, 3)) for _ in range(2))
        kind = rng.randrange(6)
        if kind == 0:
            yield f"        rate = 0.5 if {turn} else 0.1"
            continue
        yield f"        if {turn}:"
        yield from (f"            {step}" for step in these)
        if kind == 1 and not turn.startswith("n"):
            yield "            continue"
        elif kind == 2:
            yield "        else:"
            yield from (f"            {step}" for step in others)
    ends = ["0.0", "x", "v * h", "n * 0.1", "np.sum(out**2)", "np.sum(q)", "sum(rows)", "y * rate", "h"]
    yield f"    return s + {rng.choice(rng.choice([ends[:1], ends]))}"


@given(st.integers(0, 2**40))
def test_long_loops_that_turn(seed: int) -> None:
    agrees_with_dynamic(program_of(turning(random.Random(seed)), {"p": (3,), "table": (90,)}, seed), scaled=True)
