"""Connectionist temporal classification (Graves et al., 2006): the loss of all ways to align labels with time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.eager.core import Fused, Tensor, apply, plain, wrap
from symgrad.eager.nn.losses import reduction_of
from symgrad.eager.shapes import squeeze, unsqueeze


def _spread(targets: Any, counts: Any, blank: int) -> Any:
    """The labels of each sequence with blanks around them, in rows of one length."""
    rows = np.full((len(counts), 2 * int(counts.max(initial=0)) + 1), blank)
    given = targets if targets.ndim == 2 else np.split(targets, np.cumsum(counts)[:-1])
    for row, labels, n in zip(rows, given, counts, strict=True):
        row[1 : 2 * n : 2] = labels[:n]
    return rows


def _moved(x: Any, by: int) -> Any:
    """Rows moved on by some places, from where nothing comes."""
    edge = np.full((len(x), min(by, x.shape[1])), -np.inf, x.dtype)
    return np.concatenate((edge, x[:, : x.shape[1] - by]), 1)


def _where(kept: Any, x: Any) -> Any:
    """Log probabilities, but zero chances where they are not kept."""
    return np.where(kept, x, x.dtype.type(-np.inf))


def _steps(emitted: Any, labels: Any, blank: int, start: Any, begins: Any) -> list[Any]:
    """The log probabilities of all that leads to each label at each time; rows begin at these times, at labels of ``start``."""
    skips = np.zeros(labels.shape, bool)  # from one label to another one, without the blank between them
    start = np.where(start, 0, -np.inf).astype(emitted.dtype)
    skips[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    now = np.full(labels.shape, -np.inf, emitted.dtype)
    found = []
    for t in range(len(emitted)):
        ways = np.logaddexp(np.logaddexp(now, _moved(now, 1)), _where(skips, _moved(now, 2)))
        now = np.where((begins == t)[:, None], start, ways) + emitted[t]
        found.append(now)
    return found


def _ctc(x: Any, labels: Any, times: Any, counts: Any, blank: int, finite: bool) -> Any:
    """The losses, infinite ones as zeros if they are to be ``finite``, and the steps that lead to them."""
    rows, places = np.arange(len(labels)), np.arange(labels.shape[1])
    start = places <= np.minimum(1, 2 * counts)[:, None]
    ahead = np.stack(_steps(x[:, rows[:, None], labels], labels, blank, start, np.zeros_like(times)))
    last = ahead[np.maximum(times - 1, 0), rows]
    ends = np.logaddexp(last[rows, 2 * counts], _where(counts > 0, last[rows, np.maximum(2 * counts - 1, 0)]))
    loss = -np.where(times > 0, ends, _where(counts == 0, np.zeros_like(ends)))
    return np.where(loss == np.inf, 0, loss) if finite else loss, ahead


def _ctc_backward(g: Any, x: Any, labels: Any, times: Any, counts: Any, blank: int, finite: bool) -> Any:
    """Chances less what of all ways goes through each label: the gradient of what ``log_softmax`` was of, as torch has it."""
    rows, places = np.arange(len(labels)), np.arange(labels.shape[1])
    loss, ahead = _ctc(x, labels, times, counts, blank, False)
    ends = (places == 2 * counts[:, None]) | (places == 2 * counts[:, None] - 1)
    emitted = x[:, rows[:, None], labels][::-1, :, ::-1]
    back = np.stack(_steps(emitted, labels[:, ::-1], blank, ends[:, ::-1], len(x) - times))[::-1, :, ::-1]
    through = np.full(x.shape, -np.inf, x.dtype)
    where: Any = (slice(None), rows[:, None], labels)
    np.logaddexp.at(through, where, ahead + back)
    slopes = (np.exp(x) - np.exp(through + loss[:, None] - x)) * g[:, None]
    known = np.arange(len(x))[:, None] < times
    return np.where((known & (loss < np.inf) if finite else known)[..., None], slopes, 0)


def _no_second(*args: Any, **params: Any) -> Any:
    raise RuntimeError("derivative for aten::_ctc_loss_backward is not implemented")


CTC = Fused(lambda x, **params: _ctc(x, **params)[0], lambda g, y, x, **params: CTC_BACKWARD(g, x, **params), name="ctc_loss")
CTC_BACKWARD: Fused = Fused(_ctc_backward, _no_second, _no_second, name="ctc_loss_backward")


def _lengths(name: str, given: Any, images: int, most: int | None = None) -> Any:
    """The lengths of all sequences, checked."""
    found = np.asarray(plain(given)).reshape(-1).astype(np.int64)
    if len(found) != images:
        raise RuntimeError(f"{name} must be of size batch_size")
    where = "(while checking arguments for ctc_loss_allocate_outputs)"
    if (found < 0).any():
        raise RuntimeError(f"Expected {name} to have value at least 0, but got value {found[found < 0][0]} {where}")
    if most is not None and (found > most).any():
        raise RuntimeError(f"Expected {name} to have value at most {most}, but got value {found[found > most][0]} {where}")
    return found


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """Minus the log probability of all ways to align ``targets`` with the times of ``log_probs``."""
    reduction = reduction_of(reduction)
    alone = log_probs.value.ndim == 2
    x = unsqueeze(log_probs, 1) if alone else log_probs
    if not x.value.size:
        raise RuntimeError("log_probs tensor must not be empty")
    if not 0 <= blank < x.value.shape[2]:
        raise RuntimeError("blank must be in label range")
    times = _lengths("input_lengths", input_lengths, x.value.shape[1], x.value.shape[0])
    given = targets.value
    counts = _lengths("target_lengths", target_lengths, x.value.shape[1])
    wanted = len(counts) if given.ndim == 2 else counts.sum()
    if len(given) != wanted:
        raise RuntimeError(
            f"Expected tensor to have size {wanted} at dimension 0, but got size {len(given)} for argument #2 'targets' (while "
            "checking arguments for ctc_loss_allocate_outputs)"
        )
    if given.ndim == 2 and counts.max(initial=0) > given.shape[1]:
        raise RuntimeError(
            f"Expected tensor to have size at least {counts.max()} at dimension 1, but got size {given.shape[1]} for argument "
            "#2 'targets' (while checking arguments for ctc_loss_allocate_outputs)"
        )
    params = {
        "labels": _spread(given, counts, blank),
        "times": times,
        "counts": counts,
        "blank": blank,
        "finite": zero_infinity,
    }
    loss = apply(CTC, (x,), params)
    if reduction == "mean":
        return (loss / wrap(np.maximum(counts, 1).astype(x.value.dtype))).mean()
    return loss.sum() if reduction == "sum" else squeeze(loss, 0) if alone else loss
