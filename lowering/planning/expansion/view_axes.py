"""Axes and strides of operands that are views: what a reshape has joined, and what a copy would
repeat.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from operator import mul

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tracegraph.ir.op import Elementwise
from tracegraph.ir.program import Atom, Eqn, Literal
from tracegraph.ir.types import row_major_strides
from tracegraph.passes.rewrite import Defs

_DEPTH = 12
"""Equations through which a view is followed."""

CHEAP = 1
"""The `Elementwise.cost` up to which an operand is computed again for each tile."""

Ints = tuple[int, ...]


def layout(x: Atom, defs: Defs, depth: int = _DEPTH) -> np.ndarray[Ints, np.dtype[np.int8]]:
    """An array without memory, with the strides in elements that views give to an operand.

    What is not a view of another value is taken to be in memory, in row-major order.
    """
    eqn = _view(x, defs)
    shape = x.type.shape
    if eqn is not None and depth:
        source = layout(eqn.operands[0], defs, depth - 1)
        match eqn.op.name:
            case "transpose":
                return source.transpose(eqn.attrs["axes"])
            case "broadcast_to":
                return np.broadcast_to(source, shape)
            case "windows":
                strides = (*source.strides, source.strides[eqn.attrs["axis"]])
                return as_strided(source, shape, strides)
            case "reshape":
                try:
                    return np.reshape(source, shape, copy=False)
                except ValueError:
                    pass
    return as_strided(np.empty((), np.int8), shape, row_major_strides(shape))


def is_by_columns(x: Atom, defs: Defs) -> bool:
    """Whether the columns of a matrix, or of each of a batch, are in memory as rows are mostly."""
    *_, row, column = layout(x, defs).strides
    return row == 1 and column != 1 and x.type.shape[-1] != 1


def has_windows(x: Atom, defs: Defs) -> bool:
    """Whether an operand has most elements of an array several times, as overlapping windows do."""
    size, seen = x.type.size, False
    for _ in range(_DEPTH):
        eqn = _view(x, defs)
        if eqn is None:
            break
        seen = seen or eqn.op.name == "windows"
        x = eqn.operands[0]
    return seen and size > 2 * x.type.size


def is_made_of_less(x: Atom, defs: Defs) -> bool:
    """Whether an operand is, or views, what is computed by elements of less than half its bytes."""
    view = _view(x, defs)
    while view is not None:
        x = view.operands[0]
        view = _view(x, defs)
    return 2 * _least_bytes(x, defs, _DEPTH) < x.type.nbytes


def _least_bytes(x: Atom, defs: Defs, depth: int) -> int:
    """The bytes of an operand, or of what its elements are computed of if those are fewer."""
    eqn = None if isinstance(x, Literal) else defs.get(x)
    if eqn is None or not depth:
        return x.type.nbytes
    form = eqn.op.form
    is_cheap = isinstance(form, Elementwise) and form.cost <= CHEAP
    if not (is_cheap or eqn.op.is_view):
        return x.type.nbytes
    return min(x.type.nbytes, sum([_least_bytes(each, defs, depth - 1) for each in eqn.operands]))


def joined_axes(x: Atom, defs: Defs) -> tuple[Ints, ...]:
    """For each axis of an operand, the extents that a reshape has joined to it."""
    eqn = _view(x, defs)
    shape = x.type.shape
    if eqn is not None and eqn.op.name == "transpose":
        inner = joined_axes(eqn.operands[0], defs)
        return tuple([inner[axis] for axis in eqn.attrs["axes"]])
    if eqn is not None and eqn.op.name == "reshape" and 0 not in shape:
        return _joined(eqn.operands[0].type.shape, shape)
    return tuple([(extent,) for extent in shape])


def _joined(old: Ints, new: Ints) -> tuple[Ints, ...]:
    rest = [extent for extent in old if extent != 1]
    found: list[Ints] = []
    for extent in new:
        sizes = list(accumulate(rest, mul, initial=1))
        count = bisect_left(sizes, extent)
        if count == len(sizes) or sizes[count] != extent:
            return tuple([(extent,) for extent in new])
        found.append(tuple(rest[:count]) or (1,))
        rest = rest[count:]
    return tuple(found)


def _view(x: Atom, defs: Defs) -> Eqn | None:
    eqn = None if isinstance(x, Literal) else defs.get(x)
    return eqn if eqn is not None and eqn.op.is_view else None
