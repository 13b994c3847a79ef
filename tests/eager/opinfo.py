"""Torch's own sample inputs, which its tests draw from, through symgrad.eager and torch, side by side.

python tests/eager/opinfo.py                        # every operation, in float64
python tests/eager/opinfo.py diff fft.rfft          # these, with all that differs
python tests/eager/opinfo.py --dtype float32 --limit 5 --second --errors
"""

from __future__ import annotations

import argparse
import collections
import re
import types
import warnings

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import symgrad.eager as eager

PRIVATE = ("_", "sparse", "torch.", "masked.", "jiterator", "ops.")  # no functions of torch's public namespace
EMPTY = re.compile("empty|resize")  # what they hold is arbitrary
TOLERANCE = {"float64": 1e-7, "complex128": 1e-7, "float32": 2e-4, "complex64": 2e-4, "float16": 2e-2}


class Pairs(list):
    """Tensors of torch with their twins here."""

    def twin(self, x):
        """The same argument in the words of symgrad.eager."""
        if isinstance(x, torch.Tensor):
            known = next((ours for theirs, ours in self if theirs is x), None)
            if known is None:
                known = eager.from_numpy(np.array(x.numpy(force=True), order="K"))
                known.requires_grad_(x.requires_grad)
                self.append((x, known))
            return known
        if isinstance(x, torch.dtype):
            return getattr(eager, str(x).split(".")[1])
        if isinstance(x, torch.Size):
            return eager.Size(x)
        if isinstance(x, torch.device):
            return eager.device(str(x))
        if isinstance(x, torch.layout | torch.memory_format):
            return getattr(eager, str(x).split(".")[1])
        if isinstance(x, dict):
            return {key: self.twin(value) for key, value in x.items()}
        return type(x)(map(self.twin, x)) if type(x) in (list, tuple) else x

    def wanting(self):
        return [pair for pair in self if pair[0].requires_grad]


def _seeded(fun, *args, **kwargs):
    eager.manual_seed(42)
    return fun(*args, **kwargs)


def found(op):
    """What ``op`` calls, taken from symgrad.eager; None where there is no such name."""
    fun = op.op
    if isinstance(fun, types.FunctionType) and fun.__module__.startswith("torch.testing."):
        scope = {**fun.__globals__, "torch": eager, "F": eager.nn.functional, "wrapper_set_seed": _seeded}
        ours = types.FunctionType(fun.__code__, scope, fun.__name__, fun.__defaults__, fun.__closure__)
        ours.__kwdefaults__ = fun.__kwdefaults__
        return ours if _found(op.name) is not None or hasattr(eager.Tensor, op.name) else None
    return _found(op.name)


def _found(name):
    place = eager
    for part in name.split("."):
        place = getattr(place, part, None)
    known = place is not None and not isinstance(place, eager.dtype)
    return place if known else getattr(eager.Tensor, name, None)


def operations(names=()):
    """The operations of torch's public namespace, or those of these names."""
    return [op for op in op_db if (op.name in names if names else not op.name.startswith(PRIVATE))]


def flat(tree):
    """The tensors and numbers in what an operation returns."""
    if isinstance(tree, (list, tuple)):
        return [x for item in tree for x in flat(item)]
    return [tree]


def _array(x):
    if isinstance(x, torch.Tensor):
        return x.numpy(force=True)
    return x.detach().numpy() if isinstance(x, eager.Tensor) else np.asarray(x)


def _gap(theirs, ours, times=1):
    """What distinguishes two results; None where nothing does."""
    if isinstance(theirs, torch.Tensor) != isinstance(ours, eager.Tensor):
        return f"{type(theirs).__name__} {type(ours).__name__}"
    x, y = _array(theirs), _array(ours)
    if (x.shape, x.dtype) != (y.shape, y.dtype):
        return f"{x.dtype}{list(x.shape)} {y.dtype}{list(y.shape)}"
    if x.dtype.kind not in "fc":
        return None if np.array_equal(x, y) else "value"
    tolerance = TOLERANCE[x.dtype.name] * times
    if np.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True):
        return None
    return f"value, by {np.nanmax(np.abs(x - y)):.2g}"


def _gradients(lib, outs, pairs, seeds, **options):
    wanted = [pair[lib is eager] for pair in pairs]
    return lib.autograd.grad(outs, wanted, seeds, allow_unused=True, **options)


def compare(op, sample, second=False, names=False):
    """What is different here: None, or in words. ``second``: second derivatives are looked at, too."""
    torch.manual_seed(42)
    eager.manual_seed(42)
    try:
        expected = op.op(sample.input, *sample.args, **sample.kwargs)
    except Exception:
        return None
    pairs = Pairs()
    given = pairs.twin([sample.input, list(sample.args), sample.kwargs])
    try:
        result = found(op)(given[0], *given[1], **given[2])
    except Exception as error:
        return f"raised {type(error).__name__}: {str(error)[:150]}"
    try:  # leaves out what is arbitrary, as signs of eigenvectors
        expected, result = sample.output_process_fn_grad(expected), sample.output_process_fn_grad(result)
    except Exception as error:
        return f"raised {type(error).__name__}, when results were processed: {str(error)[:150]}"
    theirs, ours = flat(expected), flat(result)
    if len(theirs) != len(ours):
        return f"{len(theirs)} results, {len(ours)} here"
    for x, y in zip(theirs, ours, strict=True):
        gap = None if EMPTY.search(op.name) else _gap(x, y)
        if gap is None and isinstance(x, torch.Tensor) and x.requires_grad != y.requires_grad:
            gap = f"requires_grad={y.requires_grad}"
        if gap is None and names and isinstance(x, torch.Tensor):
            both = [t.grad_fn and t.grad_fn.name().removeprefix("torch::autograd::") for t in (x, y)]
            gap = None if both[0] == both[1] else f"{both[0]}, {both[1]} here"
        if gap is not None:
            return gap
    outs = [(x, y) for x, y in zip(theirs, ours, strict=True) if isinstance(x, torch.Tensor) and x.requires_grad]
    if not outs or not pairs.wanting():
        return None
    return _backward(outs, pairs.wanting(), 1 + second)


def _backward(outs, pairs, orders):
    """What is different in gradients of ``outs``, a list of results with their twins."""
    for order in range(orders):
        seeds = [torch.randn(x.shape, dtype=x.dtype) for x, _ in outs]
        again = order + 1 < orders
        try:
            expected = _gradients(torch, [x for x, _ in outs], pairs, seeds, create_graph=again)
        except Exception:
            return None
        twins = [eager.from_numpy(seed.numpy()) for seed in seeds]
        word = "gradient" if order == 0 else "second derivative"
        try:
            result = _gradients(eager, [y for _, y in outs], pairs, twins, create_graph=again)
        except Exception as error:
            return f"{word} raised {type(error).__name__}: {str(error)[:150]}"
        for x, y in zip(expected, result, strict=True):
            if (x is None) != (y is None):
                if order and np.allclose(_array(x if y is None else y), 0, atol=1e-12):
                    continue  # which zeros are computed, and which not, is a detail of rules
                return f"{word} is {'' if y is None else 'not '}None"
            gap = None if x is None else _gap(x, y, 10**order)
            if gap is not None:
                return f"{word}: {gap}"
        outs = [(x, y) for x, y in zip(expected, result, strict=True) if x is not None and y is not None]
        outs = [(x, y) for x, y in outs if x.requires_grad and y.requires_grad]
        if not outs:
            return None
    return None


def wrong_inputs(op):
    """Torch's inputs that must raise, as samples with an exception type and a pattern of its text."""
    try:
        return list(op.error_inputs("cpu"))
    except Exception:
        return []


def compare_error(op, wrong):
    """What is different in the exception that an operation must raise."""
    sample = wrong.sample_input
    try:
        given = Pairs().twin([sample.input, list(sample.args), sample.kwargs])
    except Exception:
        return None  # a device, layout or dtype that is not here
    try:
        op.op(sample.input, *sample.args, **sample.kwargs)
    except Exception as error:
        expected = error
    else:
        return None
    try:
        found(op)(given[0], *given[1], **given[2])
    except Exception as error:
        if not isinstance(error, wrong.error_type):
            return f"{type(error).__name__}: {str(error)[:120]!r} for {wrong.error_type.__name__}: {str(expected)[:160]!r}"
        if not re.search(wrong.error_regex, str(error)):
            return f"{str(error)[:160]!r} for {str(expected)[:200]!r}"
        return None
    return f"no error for {wrong.error_type.__name__}: {str(expected)[:200]!r}"


def samples(op, dtype, limit=None):
    """Samples of an operation, evenly drawn from torch's if there are more than ``limit``."""
    if dtype not in op.supported_dtypes("cpu"):
        return []
    wanting = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    try:
        made = list(op.sample_inputs("cpu", dtype, requires_grad=wanting))
    except Exception:
        return []
    made = [s for s in made if all(x.layout is torch.strided for x in flat([s.input, *s.args]) if isinstance(x, torch.Tensor))]
    step = 1 if limit is None else max(1, -(-len(made) // limit))
    return made[::step]


def shown(sample):
    """The arguments of a sample, in short."""

    def short(x):
        if isinstance(x, torch.Tensor):
            return f"{str(x.dtype).split('.')[1]}{list(x.shape)}"
        return "[" + ", ".join(map(short, x)) + "]" if type(x) in (list, tuple) else repr(x)

    return ", ".join([short(sample.input), *map(short, sample.args), *[f"{k}={short(v)}" for k, v in sample.kwargs.items()]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--second", action="store_true", help="second derivatives, too")
    parser.add_argument("--errors", action="store_true", help="only inputs that must raise")
    parser.add_argument("--graphs", action="store_true", help="the names of grad_fn, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    dtype = getattr(torch, options.dtype)
    counts = collections.Counter()
    absent = {op.name for op in operations(options.names) if found(op) is None}
    for op in operations(options.names):
        if op.name in absent:
            continue
        tried = wrong_inputs(op) if options.errors else samples(op, dtype, options.limit)
        gaps = []
        for i, sample in enumerate(tried):
            torch.manual_seed(i)
            gap = compare_error(op, sample) if options.errors else compare(op, sample, options.second, options.graphs)
            counts["same" if gap is None else "raised" if gap.startswith("raised") else "different"] += 1
            if gap is not None:
                gaps.append(f"    {i}: {gap}   of ({shown(sample.sample_input if options.errors else sample)})")
        if gaps:
            print(op.name, op.variant_test_name, f"{len(gaps)} of {len(tried)}", flush=True)
            print("\n".join(gaps if options.names else gaps[:2]), flush=True)
    print(len(absent), "absent:", *sorted(absent))
    print(dict(counts))


if __name__ == "__main__":
    main()
