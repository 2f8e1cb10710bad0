"""Factors that a batch of products shares: views of one matrix, repeated along axes of the batch.

    x[…, j, m, k] @ y[…, 1, k, n]   =   x[…, (j m), k] @ y[…, k, n]      one product of more rows

What shares a left factor is transposed first. `shared_batch` finds what is shared in a program,
whatever views are between, `shared_axes` finds it in memory.
"""

from __future__ import annotations

from itertools import takewhile
from math import prod

from lowering.plan.calls.library_call import StridedArray
from lowering.plan.nests.strides import common_stride
from tracegraph.ir.op import Elementwise
from tracegraph.ir.program import Atom, Literal
from tracegraph.ir.record import replace
from tracegraph.passes.rewrite import Defs

_DEPTH = 12
"""Equations through which a view is followed."""


def shared_batch(factor: Atom, defs: Defs) -> tuple[int, tuple[int, ...]]:
    """How many products share this factor, and the axes of the batch in an order in which these are
    next to each other.
    """
    shape = factor.type.shape
    axes = range(len(shape) - 2)
    shared = [a for a in axes if shape[a] == 1 or _is_constant(factor, a, defs, _DEPTH)]
    order = (*[a for a in axes if a not in shared], *shared)
    return prod([shape[a] for a in shared]), order


def _is_constant(x: Atom, axis: int, defs: Defs, depth: int) -> bool:
    """Whether the elements are equal along an axis, by the views that made the array."""
    if isinstance(x, Literal) or x.type.shape[axis] == 1:
        return True
    eqn = defs.get(x)
    if eqn is None or not depth:
        return False
    shape = x.type.shape
    if isinstance(eqn.op.form, Elementwise) or eqn.op.name == "broadcast_to":
        return all(
            axis < (missing := len(shape) - atom.type.ndim)
            or _is_constant(atom, axis - missing, defs, depth - 1)
            for atom in eqn.operands
        )
    source = eqn.operands[0] if eqn.operands else x
    match eqn.op.name:
        case "transpose":
            return _is_constant(source, eqn.attrs["axes"][axis], defs, depth - 1)
        case "slice":
            return _is_constant(source, axis, defs, depth - 1)
        case "reshape":
            place = _same_axis(source.type.shape, shape, axis)
            return place is not None and _is_constant(source, place, defs, depth - 1)
    return False


def _same_axis(old: tuple[int, ...], new: tuple[int, ...], axis: int) -> int | None:
    """The axis before a reshape that is this one after it, if there is one."""
    before = prod(new[:axis])
    for place, extent in enumerate(old):
        if extent == new[axis] and prod(old[:place]) == before:
            return place
    return None


def shared_axes(factor: StridedArray) -> int:
    """How many axes of the batch, the last ones, have the same matrix at each index."""
    batch = zip(reversed(factor.shape[:-2]), reversed(factor.strides[:-2]), strict=True)
    return len(list(takewhile(lambda each: each[0] == 1 or each[1] == 0, batch)))


def once(factor: StridedArray, axes: int) -> StridedArray:
    """A factor without axes of the batch, the last ones, that have the same matrix."""
    kept = len(factor.shape) - 2 - axes
    shape, strides = (
        (*each[:kept], *each[kept + axes :]) for each in (factor.shape, factor.strides)
    )
    return replace(factor, shape=shape, strides=strides)


def with_rows(factor: StridedArray, axes: int) -> StridedArray | None:
    """A factor with axes of the batch, the last ones, as rows; None if rows are apart in memory."""
    kept = len(factor.shape) - 2 - axes
    stride = common_stride(factor.shape[kept:-1], factor.strides[kept:-1])
    if stride is None:
        return None
    shape = (*factor.shape[:kept], prod(factor.shape[kept:-1]), factor.shape[-1])
    strides = (*factor.strides[:kept], stride, factor.strides[-1])
    return replace(factor, shape=shape, strides=strides)
