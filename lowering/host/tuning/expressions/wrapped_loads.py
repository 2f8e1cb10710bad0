"""Wrapped loads (rolls, tiles): the pieces between breakpoints are copied into one temporary.

A reader of the copy is one contiguous call. If the nest were split at the breakpoints instead, it
would be one call per part, and parts are not contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import prod

from lowering.host.arena import Array
from lowering.host.evaluation import strided_views
from lowering.host.evaluation.access_maps import AxesOf, access_map
from lowering.host.evaluation.evaluate import Evaluation, Evaluator
from lowering.host.evaluation.instructions import Instruction, NumpyValue, Temporary, View
from lowering.host.source.python_source import PythonSource
from lowering.host.tuning.groups.index_breakpoints import breakpoints
from lowering.host.tuning.instructions.memory_orders import memory_order
from lowering.host.tuning.instructions.temporary_layouts import OperandLayout
from tracegraph.ir.scalar import TRUE, Axis, Expr, FloorDiv, Mod
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.subexpressions import subexpressions, substitution
from tracegraph.ir.types import row_major_strides

MOST_PIECES = 4
"""Most pieces of a load: a roll along two axes has four. With more, a gather may be as fast."""

RANGE_BYTES = 1 << 20
"""Most bytes that are copied as one range. A range spans all axes, so the nest cannot run in
blocks; larger nests do (`blocking.LARGE_BYTES`)."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The source and target of each piece; `order` is the memory order of the copy.

    A copy needs the `axes` whole. With `ranged`, the first piece is a contiguous range that goes to
    a range of flat positions. It overwrites elements of the other pieces, which are copied later.
    """

    sources: tuple[View, ...]
    targets: tuple[tuple[slice, ...], ...]
    axes: tuple[int, ...]
    order: tuple[int, ...] | None
    ranged: bool = False

    def copy(self) -> PieceCopy:
        """A function (*pieces, out)."""
        return PieceCopy(self.targets, self.order, self.ranged)


@dataclass(frozen=True, slots=True)
class PieceCopy:
    """Copies pieces to their places in one array: a function (*pieces, out)."""

    targets: tuple[tuple[slice, ...], ...]
    order: tuple[int, ...] | None
    ranged: bool

    def __call__(self, *arrays: Array) -> None:
        """Copy."""
        *sources, out = arrays
        for number, source in enumerate(sources):
            self.place(number, out)[...] = source

    def place(self, number: int, out: Array) -> Array:
        """The part of an array that a piece goes to."""
        whole = _flat(out, self.order) if self.ranged and not number else out
        return whole[self.targets[number]]

    def place_text(self, number: int, out: str, source: PythonSource) -> str:
        """The same as text, for an array called `out`."""
        if self.ranged and not number:
            ordered = out if self.order is None else f"{out}.transpose({self.order})"
            out = f"{ordered}.reshape(-1)"
        return f"{out}[{source.name(self.targets[number])}]"


def joined_pieces(run: Evaluator, expr: Expr) -> Evaluation | None:
    """The form of a load that wraps."""
    if not isinstance(expr, Load):
        return None
    pieces = pieces_of(expr, run.extents, run.axes_of)
    return None if pieces is None else Evaluation((), lambda: _join(run, pieces, expr))


def _join(run: Evaluator, pieces: Pieces, load: Load) -> NumpyValue:
    axes, order = run.axes_of(load), pieces.order
    rank = sum(extent > 1 for extent in run.extents)
    layout, spans_all = run.layout, len(axes) == rank and not pieces.ranged
    if spans_all and isinstance(layout, OperandLayout) and layout.has_accesses:
        order = layout.common  # the copy may as well transpose
    joined = Temporary(load.dtype, run.mesh(axes), {axis: axis for axis in axes}, order)
    made = Instruction("write", pieces.copy(), pieces.sources, joined)
    made = replace(made, whole_axes=pieces.axes, flat=pieces.ranged)
    run.instructions.append(made)
    return joined


def wraps(load: Load, extents: tuple[int, ...]) -> list[list[int]] | None:
    """The ends of the pieces of a load along each axis; None if it has one piece or too many."""
    below = subexpressions(load.indices)
    if load.guard not in (None, TRUE) or any(isinstance(e, Load) for e in below):
        return None
    if not any(isinstance(e, FloorDiv | Mod) for e in below):
        return None
    ends = breakpoints(below, extents)
    return ends if 1 < prod(len(each) - 1 for each in ends) <= MOST_PIECES else None


def pieces_of(load: Load, extents: tuple[int, ...], axes_of: AxesOf) -> Pieces | None:
    """The pieces of a wrapped load, if all of them are views."""
    ends = wraps(load, extents)
    if ends is None:
        return None
    dims = {axis: axis for axis in sorted(axes_of(load))}
    own_axes = [e for e in subexpressions(load.indices) if isinstance(e, Axis)]
    sources, targets = list[View](), list[tuple[slice, ...]]()
    for box in product(*map(pairwise, ends)):
        own = tuple(stop - start for start, stop in box)
        replacement: dict[Expr, Expr] = {
            axis: Axis.make(axis.number, own[axis.number]) + box[axis.number][0]
            for axis in own_axes
        }
        indices = tuple(map(substitution(replacement), load.indices))
        where = access_map(load.buffer, indices, own, axes_of)
        if where.fixed is None or not where.fits(load.buffer.type.size):
            return None
        size = load.dtype.itemsize
        strides = tuple(where.strides.get(axis, 0) * size for axis in range(len(own)))
        shape, offset = strided_views.mesh(own, dims), where.fixed * size
        sources.append(View(load.dtype, shape, dims, load.buffer, strides, offset))
        targets.append(tuple(slice(*p) if a in dims else slice(None) for a, p in enumerate(box)))
    cut = tuple(axis for axis, each in enumerate(ends) if len(each) > 2)
    largest = max(range(len(sources)), key=lambda k: prod(sources[k].shape))
    pieces = Pieces(tuple(sources), tuple(targets), cut, memory_order(sources[largest]))
    return _with_range(pieces, largest, strided_views.mesh(extents, dims))


def _with_range(pieces: Pieces, largest: int, shape: tuple[int, ...]) -> Pieces:
    """The pieces; the largest is a range if its strides are those of the copy."""
    view, target = pieces.sources[largest], pieces.targets[largest]
    order = pieces.order or tuple(range(len(shape)))
    dense = row_major_strides(tuple(shape[dim] for dim in order))
    strides = tuple(dense[order.index(dim)] for dim in range(len(shape)))
    size = view.dtype.itemsize
    wide = [dim for dim, extent in enumerate(view.shape) if extent > 1]
    if any(view.strides[dim] != strides[dim] * size for dim in wide):
        return pieces
    if prod(shape) * size > RANGE_BYTES:
        return pieces
    first = sum((part.start or 0) * stride for part, stride in zip(target, strides, strict=True))
    length = 1 + sum((view.shape[dim] - 1) * strides[dim] for dim in wide)
    ranged = View(view.dtype, (length,), {}, view.buffer, (size,), view.offset)
    others = [k for k in range(len(pieces.sources)) if k != largest]
    return Pieces(
        (ranged, *(pieces.sources[k] for k in others)),
        ((slice(first, first + length),), *(pieces.targets[k] for k in others)),
        tuple(view.dims),
        pieces.order,
        ranged=True,
    )


def _flat(array: Array, order: tuple[int, ...] | None) -> Array:
    """The elements of a contiguous array, in memory order."""
    return (array if order is None else array.transpose(order)).reshape(-1)
